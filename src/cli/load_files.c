#include "cli/load_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/progress.h"

static enum status
file_take(struct load_files *l, struct input *in)
{
	enum status status = l->begin ? l->begin(l->arg) : STATUS_OK;
	struct input_item item;

	while (status == STATUS_OK) {
		status = input_next(in, &item, l->err);
		if (status == STATUS_NOT_FOUND) {
			*l->err = (struct err){ 0 };
			return l->flush(l->arg);
		}
		if (status != STATUS_OK || item.too_large)
			l->line = status == STATUS_OK ? item.line : input_line(in);
		if (status == STATUS_OK && item.too_large)
			return err_set(l->err, STATUS_LIMIT,
				       "the line is longer than %d bytes (INPUT_VALUE_BYTES)",
				       INPUT_VALUE_BYTES);
		if (status == STATUS_OK)
			status = l->take(l->arg, &item);
	}
	return status;
}

static enum status
file_load(struct load_files *l, const char *path)
{
	bool standard = strcmp(path, "-") == 0;
	int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	struct input *in;
	enum status status;

	if (fd < 0) {
		cli_complain("cannot open %s: %s", path, strerror(errno));
		return STATUS_IO;
	}
	l->first_line = 1;
	l->line = 1;
	in = input_new(input_read_fd, &fd, l->request->format, NULL);
	status = in ? file_take(l, in) : STATUS_NOMEM;
	input_free(in);
	if (!standard)
		close(fd);
	if (status != STATUS_OK)
		cli_complain("%s:%llu: %s; nothing from line %llu on was loaded",
			     standard ? "standard input" : path, (unsigned long long)l->line,
			     l->err->text[0] ? l->err->text : status_name(status),
			     (unsigned long long)(l->first_line ? l->first_line : l->line));
	return status;
}

enum status
load_files_run(struct load_files *l)
{
	static char standard[] = "-";
	char *const only_standard[] = { standard };
	const struct load_request *r = l->request;
	char *const *files = r->files_count ? r->files : only_standard;
	int count = r->files_count ? r->files_count : 1;

	struct progress progress;

	progress_init(&progress, stderr, true, 0);
	for (int i = 0; i < count; i++)
		TRY(file_load(l, files[i]));
	if (!r->quiet)
		printf("%llu lines loaded into %s in %.1f s\n", (unsigned long long)l->loaded,
		       r->name, (double)progress_elapsed_ms(&progress) / 1000);
	return STATUS_OK;
}

bool
load_is_header(struct str line)
{
	return str_starts_with(line, STR("{\"frond\":"));
}
