#include "base/arena.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/budget.h"
#include "base/mem.h"

enum {
	ARENA_BLOCK_BYTES = 16 * 1024,
	ARENA_BLOCK_MOST_BYTES = 1024 * 1024, /* but for what is larger itself */
	ARENA_ALIGN = 16,
};

struct arena_block {
	struct arena_block *prev;
	size_t cap;
	size_t used;
	_Alignas(ARENA_ALIGN) char data[];
};

struct arena {
	struct arena_block *block; /* the newest; never NULL */
	size_t total;              /* bytes handed out, padding included */
	size_t limit_bytes;
	struct budget_part *part; /* what all blocks but the first are of; or NULL */
};

static struct arena_block *
block_new(struct arena_block *prev, size_t cap)
{
	struct arena_block *b = mem_alloc(sizeof(*b) + cap);

	if (!b)
		return NULL;
	b->prev = prev;
	b->cap = cap;
	b->used = 0;
	return b;
}

struct arena *
arena_new(size_t limit_bytes)
{
	struct arena *a = mem_alloc(sizeof(*a));

	if (!a)
		return NULL;
	a->block = block_new(NULL, ARENA_BLOCK_BYTES);
	if (!a->block) {
		mem_free(a);
		return NULL;
	}
	a->total = 0;
	a->limit_bytes = limit_bytes;
	a->part = NULL;
	return a;
}

static struct arena_block *
add_block(struct arena *a, size_t cap)
{
	struct arena_block *b;

	if (a->part && !budget_use(a->part, cap))
		return NULL;
	b = block_new(a->block, cap);
	if (!b && a->part)
		budget_unuse(a->part, cap);
	return b;
}

static void
drop_block(struct arena *a)
{
	struct arena_block *prev = a->block->prev;

	if (a->part)
		budget_unuse(a->part, a->block->cap);
	mem_free(a->block);
	a->block = prev;
}

void
arena_free(struct arena *a)
{
	if (!a)
		return;
	while (a->block->prev)
		drop_block(a);
	mem_free(a->block);
	mem_free(a);
}

void
arena_set_part(struct arena *a, struct budget_part *part)
{
	assert(!a->block->prev);
	a->part = part;
}

static char *
take(struct arena *a, size_t n, size_t align)
{
	struct arena_block *b = a->block;
	size_t at = (b->used + align - 1) & ~(align - 1);

	if (n > a->limit_bytes || a->total > a->limit_bytes - n)
		return NULL;
	if (at > b->cap || n > b->cap - at) {
		/* Blocks double with what is in use, so that a large request makes few of them. */
		size_t cap = a->total > ARENA_BLOCK_BYTES ? a->total : ARENA_BLOCK_BYTES;

		if (cap > ARENA_BLOCK_MOST_BYTES)
			cap = ARENA_BLOCK_MOST_BYTES;
		b = add_block(a, n > cap ? n : cap);
		if (!b)
			return NULL;
		a->block = b;
		at = 0;
	}
	a->total += at + n - b->used;
	b->used = at + n;
	return b->data + at;
}

void *
arena_alloc(struct arena *a, size_t n)
{
	return take(a, n, ARENA_ALIGN);
}

void *
arena_zalloc(struct arena *a, size_t n)
{
	void *p = arena_alloc(a, n);

	if (p)
		memset(p, 0, n);
	return p;
}

char *
arena_bytes(struct arena *a, size_t n)
{
	return take(a, n, 1);
}

struct str
arena_dup(struct arena *a, struct str s)
{
	char *p = take(a, s.len + 1, 1);

	if (!p)
		return (struct str){ 0 };
	if (s.len)
		memcpy(p, s.ptr, s.len);
	p[s.len] = '\0';
	return str_of(p, s.len);
}

struct str
arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list args;
	char *p;
	int n;

	va_start(args, fmt);
	n = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	p = n < 0 ? NULL : take(a, (size_t)n + 1, 1);
	if (!p)
		return (struct str){ 0 };
	va_start(args, fmt);
	vsnprintf(p, (size_t)n + 1, fmt, args);
	va_end(args);
	return str_of(p, (size_t)n);
}

struct arena_mark
arena_mark(const struct arena *a)
{
	return (struct arena_mark){ a->block, a->block->used, a->total };
}

void
arena_reset(struct arena *a, struct arena_mark mark)
{
	while (a->block != mark.block)
		drop_block(a);
	a->block->used = mark.used;
	a->total = mark.total;
}

void
arena_clear(struct arena *a)
{
	while (a->block->prev)
		drop_block(a);
	a->block->used = 0;
	a->total = 0;
}

size_t
arena_used_bytes(const struct arena *a)
{
	return a->total;
}

void *
arena_grow(struct arena *arena, void *array, size_t count, size_t *cap, size_t elem_bytes)
{
	size_t wanted = *cap ? 2 * *cap : 8;
	void *grown;

	if (count < *cap)
		return array;
	grown = arena_alloc(arena, wanted * elem_bytes);
	if (!grown)
		return NULL;
	if (count)
		memcpy(grown, array, count * elem_bytes);
	*cap = wanted;
	return grown;
}
