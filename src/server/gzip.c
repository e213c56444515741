#include "server/gzip.h"

#include <zlib.h>

#include "base/mem.h"

enum {
	OUT_BYTES = 16 * 1024,
	WINDOW_BITS = 15,
	GZIP_FORMAT = 16, /* added to the bits: gzip's header and trailer */
	MEMORY_LEVEL = 8, /* zlib's default */
};

struct gzip {
	z_stream z;
	bool ended;
	bool flushed; /* the flush that is under way has given everything */
	Bytef out[OUT_BYTES];
};

static voidpf
take_memory(voidpf opaque, uInt items, uInt size)
{
	(void)opaque;
	return mem_alloc((size_t)items * size);
}

static void
give_memory(voidpf opaque, voidpf p)
{
	(void)opaque;
	mem_free(p);
}

struct gzip *
gzip_new(int level)
{
	struct gzip *g = mem_alloc(sizeof(*g));

	if (!g)
		return NULL;
	g->z = (z_stream){ .zalloc = take_memory, .zfree = give_memory };
	g->ended = g->flushed = false;
	if (deflateInit2(&g->z, level, Z_DEFLATED, WINDOW_BITS + GZIP_FORMAT, MEMORY_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK) {
		mem_free(g);
		return NULL;
	}
	return g;
}

void
gzip_free(struct gzip *g)
{
	if (!g)
		return;
	(void)deflateEnd(&g->z);
	mem_free(g);
}

struct str
gzip_next(struct gzip *g, enum gzip_step step, struct str *in)
{
	static const int flush[] = {
		[GZIP_MORE] = Z_NO_FLUSH,
		[GZIP_FLUSH] = Z_SYNC_FLUSH,
		[GZIP_END] = Z_FINISH,
	};
	union {
		const char *in;
		Bytef *out;
	} base = { .in = in->ptr }; /* zlib only reads it */
	uInt given = in->len < UINT32_MAX ? (uInt)in->len : UINT32_MAX;

	if (g->ended || (step == GZIP_MORE && !in->len) || (step == GZIP_FLUSH && g->flushed)) {
		g->flushed = false;
		return (struct str){ NULL, 0 };
	}
	g->z.next_in = base.out;
	g->z.avail_in = given;
	g->z.next_out = g->out;
	g->z.avail_out = OUT_BYTES;
	g->ended = deflate(&g->z, flush[step]) == Z_STREAM_END;
	if (given)
		*in = str_skip(*in, given - g->z.avail_in);
	/* Room that is left tells that a flush has given all it had. */
	g->flushed = step == GZIP_FLUSH && g->z.avail_out > 0 && g->z.avail_out < OUT_BYTES;
	return str_of(g->out, OUT_BYTES - g->z.avail_out);
}

/* "q=0", "q=0.000": not at all. */
static bool
is_refused(struct str params)
{
	const char *q = params.len ? memchr(params.ptr, '=', params.len) : NULL;

	if (!q)
		return false;
	for (const char *at = q + 1; at < params.ptr + params.len; at++)
		if (*at != '0' && *at != '.' && *at != ' ')
			return false;
	return true;
}

bool
gzip_accepted(struct str header)
{
	bool any = false;

	while (header.len) {
		const char *comma = memchr(header.ptr, ',', header.len);
		size_t len = comma ? (size_t)(comma - header.ptr) : header.len;
		const char *semicolon = memchr(header.ptr, ';', len);
		size_t name_len = semicolon ? (size_t)(semicolon - header.ptr) : len;
		struct str name = str_trim(str_of(header.ptr, name_len));
		bool refused = is_refused(str_of(header.ptr + name_len, len - name_len));

		if (str_eq_nocase(name, STR("gzip")) || str_eq_nocase(name, STR("x-gzip")))
			return !refused;
		if (str_eq(name, STR("*")))
			any = !refused;
		header = str_skip(header, comma ? len + 1 : len);
	}
	return any;
}
