/*
 * Any bytes as what another server answers: the same rows come out of them whatever pieces
 * they arrive in.
 */
#include <stdlib.h>

#include "replicator/rows.h"

enum {
	MAX_BYTES = 1 << 20,
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
describe_rows(struct str text, size_t piece, struct buf *out)
{
	struct body body = { text, piece };
	struct rows rows;
	struct str part;
	struct str row;
	enum status status = STATUS_NOT_FOUND;

	rows_init(&rows, MAX_BYTES, NULL);
	while (status == STATUS_NOT_FOUND && read_body(&body, &part, NULL) == STATUS_OK) {
		while ((status = rows_next(&rows, &part, &row)) == STATUS_OK) {
			buf_append_str(out, row);
			buf_append_byte(out, '|');
		}
	}
	if (status == STATUS_NOT_FOUND && (status = rows_end(&rows, &row)) == STATUS_OK)
		buf_append_str(out, row);
	rows_release(&rows);
	return status;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = str_of(data, size);
	struct buf whole = BUF_INIT(MAX_BYTES);
	struct buf pieces = BUF_INIT(MAX_BYTES);

	if (describe_rows(text, size + 1, &whole) != describe_rows(text, size % 7 + 1, &pieces) ||
	    !str_eq(buf_str(&whole), buf_str(&pieces)))
		abort();
	buf_release(&whole);
	buf_release(&pieces);
	return 0;
}
