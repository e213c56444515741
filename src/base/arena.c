#include "base/arena.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/arena_apart.h"
#include "base/budget.h"
#include "base/mem.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

enum {
	ARENA_BLOCK_BYTES = 16 * 1024,
	ARENA_BLOCK_MOST_BYTES = 1024 * 1024, /* a larger allocation gets a block of its own size */
	ARENA_ALIGN = 16,
	/*
	 * Under the address sanitizer, bytes behind each allocation that belong to none, so that
	 * the sanitizer reports an access beyond the end of one. They count towards no limit.
	 */
#ifdef __SANITIZE_ADDRESS__
	ARENA_GAP_BYTES = 16,
#else
	ARENA_GAP_BYTES = 0,
#endif
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
	/* The part of a budget that counts all blocks but the first as used, or NULL. */
	struct budget_part *part;
	bool starved; /* the system had no memory for a block */
	bool full;    /* an allocation would have passed the limit */
	/*
	 * In front of the first block: the newest one while there is no other. More of it is used
	 * than it has, so that nothing fits, not even an allocation of no bytes.
	 */
	struct arena_block none;
};

static _Thread_local bool arena_apart;

void
arena_set_apart(bool on)
{
	arena_apart = on;
}

/* The sanitizer reports every access to these bytes until they are handed out. */
static void
arena_poison(const char *p, size_t n)
{
#ifdef __SANITIZE_ADDRESS__
	__asan_poison_memory_region(p, n);
#else
	(void)p;
	(void)n;
#endif
}

static void
arena_unpoison(const char *p, size_t n)
{
#ifdef __SANITIZE_ADDRESS__
	__asan_unpoison_memory_region(p, n);
#else
	(void)p;
	(void)n;
#endif
}

static struct arena_block *
arena_block_new(struct arena_block *prev, size_t cap)
{
	struct arena_block *b = mem_alloc(sizeof(*b) + cap + ARENA_GAP_BYTES);

	if (!b)
		return NULL;
	b->prev = prev;
	b->cap = cap;
	b->used = 0;
	arena_poison(b->data, cap + ARENA_GAP_BYTES);
	return b;
}

/* Takes back what the newest block has handed out behind its first `used` bytes. */
static void
arena_block_cut(struct arena_block *b, size_t used)
{
	assert(used <= b->used);
	arena_poison(b->data + used, b->used - used);
	b->used = used;
}

struct arena *
arena_new(size_t limit_bytes)
{
	struct arena *a = mem_alloc(sizeof(*a));

	if (!a)
		return NULL;
	a->none = (struct arena_block){ .used = 1 };
	a->block = &a->none;
	a->total = 0;
	a->limit_bytes = limit_bytes;
	a->part = NULL;
	a->starved = false;
	a->full = false;
	return a;
}

static bool
arena_is_empty(const struct arena *a)
{
	return a->block == &a->none || (a->block->used == 0 && a->block->prev == &a->none);
}

/* The first block, when it is first needed, with room for `n`. NULL when memory is short. */
static struct arena_block *
arena_add_first_block(struct arena *a, size_t n)
{
	struct arena_block *b = arena_block_new(&a->none, arena_apart ? n : ARENA_BLOCK_BYTES);

	if (b)
		a->block = b;
	else
		a->starved = true;
	return b;
}

static struct arena_block *
arena_add_block(struct arena *a, size_t cap)
{
	struct arena_block *b;

	if (a->part && !budget_use(a->part, cap))
		return NULL;
	b = arena_block_new(a->block, cap);
	if (!b) {
		a->starved = true;
		if (a->part)
			budget_unuse(a->part, cap);
	}
	return b;
}

/* Not the first one. */
static void
arena_drop_block(struct arena *a)
{
	struct arena_block *prev = a->block->prev;

	if (a->part)
		budget_unuse(a->part, a->block->cap);
	mem_free(a->block);
	a->block = prev;
}

/* Empties the first block, if there is one, and drops all others. */
static void
arena_drop_blocks(struct arena *a)
{
	if (a->block == &a->none)
		return;
	while (a->block->prev != &a->none)
		arena_drop_block(a);
	arena_block_cut(a->block, 0);
}

void
arena_free(struct arena *a)
{
	if (!a)
		return;
	arena_drop_blocks(a);
	if (a->block != &a->none)
		mem_free(a->block);
	mem_free(a);
}

void
arena_set_part(struct arena *a, struct budget_part *part)
{
	assert(a->block == &a->none || a->block->prev == &a->none);
	a->part = part;
}

struct budget_part *
arena_part(const struct arena *a)
{
	return a->part;
}

/*
 * arena_take() where the newest block has no room, or the limit is passed. A new block is as large
 * as all that is in use, between the two limits, so that a large request needs few blocks.
 */
__attribute__((noinline)) static char *
arena_take_beyond(struct arena *a, size_t n)
{
	size_t cap = a->total > ARENA_BLOCK_BYTES ? a->total : ARENA_BLOCK_BYTES;
	struct arena_block *b;

	if (n > a->limit_bytes || a->total > a->limit_bytes - n) {
		a->full = true;
		return NULL;
	}
	if (a->block == &a->none && !arena_add_first_block(a, n))
		return NULL;
	b = a->block;
	if (b->used || n > b->cap) {
		if (cap > ARENA_BLOCK_MOST_BYTES)
			cap = ARENA_BLOCK_MOST_BYTES;
		if (arena_apart)
			cap = n;
		b = arena_add_block(a, n > cap ? n : cap);
		if (!b)
			return NULL;
		a->block = b;
	}
	a->total += n;
	b->used = n + ARENA_GAP_BYTES;
	assert(n <= b->cap);
	arena_unpoison(b->data, n);
	return b->data;
}

/* Returns NULL past the limit, past the budget or when memory is short. */
static inline char *
arena_take(struct arena *a, size_t n, size_t align)
{
	struct arena_block *b = a->block;
	size_t at = (b->used + align - 1) & ~(align - 1);
	size_t end;
	size_t total;

	if (__builtin_add_overflow(a->total, n, &total) || total > a->limit_bytes ||
	    __builtin_add_overflow(at, n, &end) || end > b->cap)
		return arena_take_beyond(a, n);
	a->total += end - b->used;
	b->used = end + ARENA_GAP_BYTES;
	arena_unpoison(b->data + at, n);
	return b->data + at;
}

void *
arena_alloc(struct arena *a, size_t n)
{
	return arena_take(a, n, ARENA_ALIGN);
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
	return arena_take(a, n, 1);
}

struct str
arena_dup(struct arena *a, struct str s)
{
	char *p = arena_take(a, s.len + 1, 1);

	if (!p)
		return (struct str){ 0 };
	if (s.len)
		memcpy(p, s.ptr, s.len);
	p[s.len] = '\0';
	return str_of(p, s.len);
}

enum status
arena_copy(struct arena *a, struct str s, struct str *ret)
{
	struct str copy = arena_dup(a, s);

	if (!copy.ptr)
		return STATUS_LIMIT;
	*ret = copy;
	return STATUS_OK;
}

struct str
arena_dup_beyond(struct arena *a, struct str s, size_t beyond)
{
	struct str copy;

	a->limit_bytes += beyond;
	copy = arena_dup(a, s);
	a->limit_bytes -= beyond;
	return copy;
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
	p = n < 0 ? NULL : arena_take(a, (size_t)n + 1, 1);
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
	/* An empty arena may give its first block back and get another, while the mark stands. */
	if (arena_is_empty(a))
		return (struct arena_mark){ .total = a->total };
	return (struct arena_mark){ a->block, a->block->used, a->total };
}

void
arena_reset(struct arena *a, struct arena_mark mark)
{
	a->total = mark.total;
	if (!mark.block) {
		arena_drop_blocks(a);
		return;
	}
	while (a->block != mark.block)
		arena_drop_block(a);
	arena_block_cut(a->block, mark.used);
}

void
arena_clear(struct arena *a)
{
	arena_drop_blocks(a);
	a->total = 0;
	a->starved = false;
	a->full = false;
}

void
arena_trim(struct arena *a)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	char *unused = a->block->data + a->block->used;
	uintptr_t from = ((uintptr_t)unused + page - 1) & ~(page - 1);
	uintptr_t to = (uintptr_t)(a->block->data + a->block->cap) & ~(page - 1);

	/* Nobody looks at what is there: an arena hands out memory without any content. */
	if (from < to)
		(void)madvise(unused + (from - (uintptr_t)unused), to - from, MADV_DONTNEED);
	/* After its pages: malloc keeps what is freed as it is. */
	if (a->block != &a->none && arena_is_empty(a)) {
		mem_free(a->block);
		a->block = &a->none;
	}
}

size_t
arena_used_bytes(const struct arena *a)
{
	return a->total;
}

bool
arena_is_starved(const struct arena *a)
{
	return a->starved;
}

bool
arena_is_full(const struct arena *a)
{
	return a->full;
}

size_t
arena_limit_bytes(const struct arena *a)
{
	return a->limit_bytes;
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

enum status
arena_room(struct arena *arena, void *array, size_t count, size_t *cap, size_t elem_bytes)
{
	void *grown;

	/* Arrays are of any type, and a pointer to a pointer to it is no `void **`. */
	memcpy(&grown, array, sizeof(grown));
	grown = arena_grow(arena, grown, count, cap, elem_bytes);
	if (!grown)
		return STATUS_LIMIT;
	memcpy(array, &grown, sizeof(grown));
	return STATUS_OK;
}
