/*
 * Any bytes as a multipart body: the same headers and contents come out, in whatever pieces the
 * body arrives, also where a part is a multipart body itself.
 */
#include <stdlib.h>

#include "http/multipart.h"

enum {
	MAX_BYTES = 1 << 20,
	DEPTH = 3,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct body {
	struct str rest;
	size_t piece;
};

static enum status
read_body(void *arg, struct str *ret, struct err *err)
{
	struct body *body = arg;
	size_t n = body->rest.len < body->piece ? body->rest.len : body->piece;

	(void)err;
	if (n == 0)
		return STATUS_NOT_FOUND;
	*ret = str_of(body->rest.ptr, n);
	body->rest = str_skip(body->rest, n);
	return STATUS_OK;
}

static enum status
describe_parts(struct str type, http_multipart_source *source, void *arg, int depth,
	       struct buf *out)
{
	struct http_multipart m;
	struct str content;
	enum status status = http_multipart_init(&m, type, source, arg, NULL);

	while (status == STATUS_OK && (status = http_multipart_next(&m, NULL)) == STATUS_OK) {
		struct str inner = http_multipart_header(&m, STR("Content-Type"));
		bool nested = depth < DEPTH && http_is_multipart(inner);

		buf_append_byte(out, '<');
		buf_append_str(out, inner);
		buf_append_byte(out, '>');
		buf_append_str(out, http_multipart_header(&m, STR("a")));
		if (nested)
			buf_append_u64(out, describe_parts(inner, http_multipart_read, &m,
							   depth + 1, out));
		while ((status = http_multipart_read(&m, &content, NULL)) == STATUS_OK) {
			if (content.len == 0)
				abort();
			/* What the inner reader leaves behind its end depends on the pieces. */
			if (!nested)
				buf_append_str(out, content);
		}
		buf_append_byte(out, '|');
		if (status == STATUS_NOT_FOUND)
			status = STATUS_OK;
	}
	http_multipart_fini(&m);
	return status;
}

static void
describe(struct str text, size_t piece, struct buf *out)
{
	struct body body = { text, piece };

	buf_append_u64(out, describe_parts(STR("multipart/related; boundary=\"b\""), read_body,
					   &body, 0, out));
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
	return 0;
}
