/* Request bodies with Content-Encoding: gzip. */
#include <assert.h>
#include <zlib.h>

#include "door/couch/wire/encoding.h"

#include "base/metric.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/request.h"
#include "loop/wait.h"

enum {
	WINDOW_BITS = 15,
	GZIP_FORMAT = 16,          /* added to the bits: gzip's header and trailer */
	TRAILER_BYTES = 4,         /* the end of a gzip file: the length of what it stands for */
	LEAST_BYTES = 18,          /* header and trailer */
	INFLATE_BYTES = 48 * 1024, /* what zlib takes */
	DEFLATE_RATIO = 1032,      /* one byte of deflate yields at most so many */
};

struct inflating {
	struct str in;
	char *out;
	size_t length;
	bool done;
};

/* Inflates the whole body. It runs in the pool, by wait_offload(), since it may take long. */
static void
encoding_inflate_all(void *arg)
{
	struct inflating *g = arg;
	union {
		const char *in;
		Bytef *out;
	} base = { .in = g->in.ptr }; /* zlib only reads it */
	union {
		char *in;
		Bytef *out;
	} to = { .in = g->out };
	z_stream z = { .next_in = base.out, .avail_in = (uInt)g->in.len };

	if (inflateInit2(&z, WINDOW_BITS + GZIP_FORMAT) != Z_OK)
		return;
	z.next_out = to.out;
	z.avail_out = (uInt)g->length;
	g->done = inflate(&z, Z_FINISH) == Z_STREAM_END && z.avail_out == 0 && z.avail_in == 0;
	(void)inflateEnd(&z);
}

static size_t
encoding_read_length(struct str body)
{
	const char *end = body.ptr + body.len;
	size_t length = 0;

	for (int i = 1; i <= TRAILER_BYTES; i++)
		length = length << 8 | (unsigned char)end[-i];
	return length;
}

/*
 * The trailer says how long the inflated body is. So a body that is too large is refused before any
 * of it is inflated, and the memory is taken at once. A trailer that is wrong makes the request
 * fail.
 */
enum status
couch_inflate(struct couch_req *r, struct str body, size_t max_bytes, struct str *ret)
{
	struct inflating g = { .in = body };

	if (body.len < LEAST_BYTES || body.len > UINT32_MAX)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "The body of the request is not gzip.");
	g.length = encoding_read_length(body);
	if (g.length > max_bytes)
		return couch_fail_body_bytes(&r->fail, max_bytes, r->settings->body_bytes);
	assert(g.length <= max_bytes);
	if (g.length / DEFLATE_RATIO <= body.len) {
		g.out = arena_bytes(r->arena, g.length + 1);
		if (!g.out && !http_memory(r->x)->refused)
			return couch_fail_entity_memory(&r->fail, r->arena);
		if (!g.out)
			return STATUS_LIMIT;
		budget_count(http_memory(r->x), INFLATE_BYTES);
		wait_offload(encoding_inflate_all, &g);
		budget_unuse(http_memory(r->x), INFLATE_BYTES);
	}
	if (!g.done)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "The body of the request is not a whole gzip file.");
	*ret = str_of(g.out, g.length);
	return STATUS_OK;
}
