/*
 * Cutting a stream into documents: whatever comes in, the pieces in which it comes make no
 * difference, items lie inside the input, and the end is found.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "cli/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct source {
	struct str text;
	size_t piece;
};

static enum status
read_source(void *arg, char *to, size_t n, size_t *ret, struct err *err)
{
	struct source *s = arg;

	(void)err;
	n = n < s->piece ? n : s->piece;
	n = n < s->text.len ? n : s->text.len;
	if (n)
		memcpy(to, s->text.ptr, n);
	s->text = str_skip(s->text, n);
	*ret = n;
	return STATUS_OK;
}

/* All that the input gives, in one buffer. */
static void
collect(struct str text, enum input_format format, size_t piece, struct buf *ret)
{
	struct source source = { text, piece };
	struct input *in = input_new(read_source, &source, format, "rows");
	struct input_item item;
	struct err err = { 0 };
	enum status status;

	if (!in)
		abort();
	while ((status = input_next(in, &item, &err)) == STATUS_OK) {
		buf_printf(ret, "%llu:", (unsigned long long)item.line);
		buf_append_str(ret, item.id);
		buf_append_byte(ret, '=');
		buf_append_str(ret, item.text);
		buf_append_byte(ret, ';');
	}
	if (input_bytes(in) > text.len)
		abort();
	buf_printf(ret, "%d %d %llu %s", (int)status, (int)input_format(in),
		   (unsigned long long)input_line(in), err.text);
	input_free(in);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf whole = BUF_INIT(1 << 24);
	struct buf pieces = BUF_INIT(1 << 24);
	enum input_format format;
	struct str text;

	if (size == 0)
		return 0;
	format = (enum input_format)(data[0] % (INPUT_ROWS + 1));
	text = str_of(data + 1, size - 1);
	collect(text, format, SIZE_MAX, &whole);
	collect(text, format, 1 + data[0] / (INPUT_ROWS + 1), &pieces);
	if (buf_status(&whole) == STATUS_OK && buf_status(&pieces) == STATUS_OK &&
	    !str_eq(buf_str(&whole), buf_str(&pieces)))
		abort();
	buf_release(&whole);
	buf_release(&pieces);
	return 0;
}
