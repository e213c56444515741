#include "http/gzip.h"

#include <zlib.h>

#include "base/mem.h"
#include "http/field.h"

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
gzip_alloc(voidpf opaque, uInt items, uInt size)
{
	(void)opaque;
	return mem_alloc((size_t)items * size);
}

static void
gzip_release(voidpf opaque, voidpf p)
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
	g->z = (z_stream){ .zalloc = gzip_alloc, .zfree = gzip_release };
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

bool
gzip_accepted(struct str header)
{
	struct http_preference gzip = http_preference_of(header, STR("gzip"));
	struct http_preference old_name = http_preference_of(header, STR("x-gzip"));

	/* "*" stands for both names; where the list has one of them, that is what counts. */
	return (old_name.match > gzip.match ? old_name : gzip).quality > 0;
}
