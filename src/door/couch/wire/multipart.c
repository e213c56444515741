/* The body of a request as the source of a multipart reader. */
#include "door/couch/wire/multipart.h"

static enum status
read_request_body(void *arg, struct str *ret, struct err *err)
{
	enum status status = http_read(arg, ret);

	if (status == STATUS_INVALID)
		return err_set(err, STATUS_INVALID, "The body of the request is broken.");
	return status;
}

enum status
couch_multipart_open(struct http_multipart *m, struct couch_req *r)
{
	enum status status = http_multipart_init(m, http_request_header(r->x, STR("Content-Type")),
						 read_request_body, r->x, &r->fail.err);

	/* What it holds of the body counts as memory of the request. */
	budget_count(http_memory(r->x), m->in.cap);
	m->in.part = http_memory(r->x);
	return status;
}
