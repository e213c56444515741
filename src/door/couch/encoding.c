/* Bodies that come compressed. */
#include <zlib.h>

#include "door/couch/couch_int.h"

enum {
	WINDOW_BITS = 15,
	GZIP_FORMAT = 16,     /* added to the bits: gzip's header and trailer */
	TRAILER_BYTES = 4,    /* the end of a gzip file: the length of what it stands for */
	LEAST_BYTES = 18,     /* header and trailer */
	DEFLATE_RATIO = 1032, /* no byte of deflate stands for more */
};

struct inflating {
	struct str in;
	char *out;
	size_t length;
	bool done;
};

/* It may take a while: for wait_offload(). */
static void
inflate_all(void *arg)
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
read_length(struct str body)
{
	const char *end = body.ptr + body.len;
	size_t length = 0;

	for (int i = 1; i <= TRAILER_BYTES; i++)
		length = length << 8 | (unsigned char)end[-i];
	return length;
}

/*
 * The trailer tells how much it is going to be, so that too much is refused without inflating any
 * of it, and memory is taken once; a trailer that lies is an error like any other.
 */
enum status
couch_inflate(struct couch_req *r, struct str body, size_t max_bytes, struct str *ret)
{
	struct inflating g = { .in = body };

	if (body.len < LEAST_BYTES || body.len > UINT32_MAX)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "The body of the request is not gzip.");
	g.length = read_length(body);
	if (g.length > max_bytes)
		return couch_fail_set(&r->fail, COUCH_ERROR_TOO_LARGE,
				      "the request entity is too large: the limit is %zu bytes",
				      max_bytes);
	if (g.length / DEFLATE_RATIO <= body.len) {
		g.out = arena_bytes(r->arena, g.length + 1);
		if (!g.out && !http_memory(r->x)->refused)
			return couch_fail_set(&r->fail, COUCH_ERROR_TOO_LARGE,
					      "the request entity is too large for the memory of "
					      "a request");
		if (!g.out)
			return STATUS_LIMIT;
		wait_offload(inflate_all, &g);
	}
	if (!g.done)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "The body of the request is not a whole gzip file.");
	*ret = str_of(g.out, g.length);
	return STATUS_OK;
}
