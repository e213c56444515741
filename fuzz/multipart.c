/*
 * Any bytes as a multipart body: the parts are the same, whatever pieces the body comes in; and any
 * bytes as headers and ranges: what comes of them lies within bounds.
 */
#include <stdlib.h>

#include "door/couch/att.h"

enum {
	MAX_BYTES = 1 << 20,
	LENGTH = 1000,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct body {
	struct str rest;
	size_t piece;
};

static enum status
read_body(void *arg, struct str *ret)
{
	struct body *body = arg;
	size_t n = body->rest.len < body->piece ? body->rest.len : body->piece;

	if (n == 0)
		return STATUS_NOT_FOUND;
	*ret = str_of(body->rest.ptr, n);
	body->rest = str_skip(body->rest, n);
	return STATUS_OK;
}

/* The parts one behind the other, and how it ended. */
static void
describe(struct str text, size_t piece, struct buf *out)
{
	struct body body = { text, piece };
	struct couch_fail fail = { 0 };
	struct couch_multipart m;
	struct str headers, content;
	enum status status = couch_multipart_init(&m, STR("multipart/related; boundary=\"b\""),
						  read_body, &body, &fail);

	while (status == STATUS_OK) {
		status = couch_multipart_next(&m, &headers);
		if (status != STATUS_OK)
			break;
		buf_append_str(out, STR("<"));
		buf_append_str(out, headers);
		buf_append_str(out, STR(">"));
		buf_append_str(out,
			       couch_header_param(couch_part_header(headers, STR("a")), STR("b")));
		while ((status = couch_multipart_read(&m, &content)) == STATUS_OK) {
			if (content.len == 0)
				abort();
			/* An end that is missing is known when it comes, and not before. */
			buf_append_str(out, content);
		}
		buf_append_byte(out, '|');
		if (status == STATUS_NOT_FOUND)
			status = STATUS_OK;
	}
	buf_append_u64(out, status);
	couch_multipart_release(&m);
}

static void
check_ranges(struct str text)
{
	struct couch_range ranges[COUCH_RANGES];
	size_t count;

	if (!couch_ranges_parse(text, LENGTH, ranges, &count))
		return;
	if (count >= COUCH_RANGES)
		abort();
	for (size_t i = 0; i < count; i++)
		if (ranges[i].begin >= ranges[i].end || ranges[i].end > LENGTH)
			abort();
	if (couch_ranges_parse(text, 0, ranges, &count) && count)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf whole = BUF_INIT(MAX_BYTES), cut = BUF_INIT(MAX_BYTES);
	struct str text = str_of(data, size);

	describe(text, SIZE_MAX, &whole);
	describe(text, 1 + size % 7, &cut);
	if (!str_eq(buf_str(&whole), buf_str(&cut)))
		abort();
	buf_release(&whole);
	buf_release(&cut);
	check_ranges(text);
	return 0;
}
