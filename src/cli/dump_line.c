#include "cli/cli.h"
#include "cli/dump.h"

enum status
dump_end_line(struct dump *d, uint64_t from, struct err *err)
{
	struct buf *out = output_buf(&d->output);

	buf_append_byte(out, '\n');
	d->docs++;
	d->bytes += output_position(&d->output) - from;
	progress_update(&d->progress, d->docs, d->bytes);
	return output_ready(&d->output, err);
}

void
dump_warn(struct dump *d, const char *text)
{
	progress_hide(&d->progress);
	cli_complain("%s", text);
}
