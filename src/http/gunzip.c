#include "http/gunzip.h"

#include <zlib.h>

#include "base/mem.h"

enum {
	WINDOW_BITS = 15,
	GZIP_FORMAT = 16, /* added to the bits: gzip's header and trailer */
};

struct gunzip {
	z_stream z;
	bool complete;
	Bytef out[GUNZIP_PIECE_BYTES];
};

static voidpf
gunzip_alloc(voidpf opaque, uInt items, uInt size)
{
	(void)opaque;
	return mem_alloc((size_t)items * size);
}

static void
gunzip_release(voidpf opaque, voidpf p)
{
	(void)opaque;
	mem_free(p);
}

struct gunzip *
gunzip_new(void)
{
	struct gunzip *g = mem_alloc(sizeof(*g));

	if (!g)
		return NULL;
	g->z = (z_stream){ .zalloc = gunzip_alloc, .zfree = gunzip_release };
	g->complete = false;
	if (inflateInit2(&g->z, WINDOW_BITS + GZIP_FORMAT) != Z_OK) {
		mem_free(g);
		return NULL;
	}
	return g;
}

void
gunzip_free(struct gunzip *g)
{
	if (!g)
		return;
	(void)inflateEnd(&g->z);
	mem_free(g);
}

enum status
gunzip_next(struct gunzip *g, struct str *in, struct str *ret)
{
	size_t taken = in->len < UINT32_MAX ? in->len : UINT32_MAX;
	int code;

	if (g->complete)
		return in->len ? STATUS_CORRUPT : STATUS_NOT_FOUND;
	g->z.next_in = (z_const Bytef *)(uintptr_t)in->ptr;
	g->z.avail_in = (uInt)taken;
	g->z.next_out = g->out;
	g->z.avail_out = sizeof(g->out);
	code = inflate(&g->z, Z_NO_FLUSH);
	if (g->z.avail_in < taken) /* `in` may be nothing, without an address */
		*in = str_skip(*in, taken - g->z.avail_in);
	g->complete = code == Z_STREAM_END;
	if (code == Z_MEM_ERROR)
		return STATUS_NOMEM;
	/* Z_BUF_ERROR: there is nothing to read and nothing to give. */
	if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
		return STATUS_CORRUPT;
	*ret = str_of((const char *)g->out, sizeof(g->out) - g->z.avail_out);
	return ret->len ? STATUS_OK : STATUS_NOT_FOUND;
}

bool
gunzip_is_complete(const struct gunzip *g)
{
	return g->complete;
}
