#include "base/mem.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* Every heap keeps what was freed in the middle; by default there are eight a processor. */
	MEM_HEAPS = 2,
	/*
	 * A mapping of its own costs a fault a page each time it is made, which is most of what a
	 * large request costs the kernel. So all but the largest pieces come from the heaps, and
	 * these keep what is free until mem_trim(). Setting one of both also ends glibc's way of
	 * raising them to whatever was freed last.
	 */
	MEM_MAPPED_BYTES = 16 * 1024 * 1024,
	MEM_TRIM_BYTES = 64 * 1024 * 1024, /* free at a heap's end before it shrinks by itself */
};

static _Thread_local uint64_t allocations;
static _Thread_local uint64_t fail_after;

static bool
must_fail(void)
{
	allocations++;
	return fail_after && allocations >= fail_after;
}

void *
mem_alloc(size_t n)
{
	return must_fail() ? NULL : malloc(n ? n : 1);
}

void *
mem_zalloc(size_t n)
{
	return must_fail() ? NULL : calloc(1, n ? n : 1);
}

void *
mem_realloc(void *p, size_t n)
{
	return must_fail() ? NULL : realloc(p, n ? n : 1);
}

void
mem_free(void *p)
{
	free(p);
}

char *
mem_strdup(struct str s)
{
	char *p = mem_alloc(s.len + 1);

	if (!p)
		return NULL;
	if (s.len)
		memcpy(p, s.ptr, s.len);
	p[s.len] = '\0';
	return p;
}

uint64_t
mem_fail_after(uint64_t after)
{
	uint64_t made = allocations;

	allocations = 0;
	fail_after = after;
	return made;
}

void
mem_tune(void)
{
	(void)mallopt(M_ARENA_MAX, MEM_HEAPS);
	(void)mallopt(M_MMAP_THRESHOLD, MEM_MAPPED_BYTES);
	(void)mallopt(M_TRIM_THRESHOLD, MEM_TRIM_BYTES);
}

void
mem_trim(void)
{
	(void)malloc_trim(0);
}
