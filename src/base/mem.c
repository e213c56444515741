#include "base/mem.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	/*
	 * Each heap keeps memory that was freed in its middle, so few heaps waste less memory. The
	 * default of glibc is eight heaps for each processor.
	 */
	MEM_HEAPS = 2,
	/*
	 * If malloc maps a block separately, each allocation of such a block costs one page fault
	 * for each page, which is most of what a large request costs the kernel. So the heaps serve
	 * all but the largest blocks, and they keep free memory until mem_trim(). Blocks of a MiB
	 * and more are mapped: buffers that double in a heap leave holes behind that are too small
	 * for the next one, and thousands of long answers took three times of what they used.
	 * Setting either of these two limits also stops glibc from raising both limits to the size
	 * of the block that was freed last.
	 */
	MEM_MAPPED_BYTES = 1024 * 1024,
	/* free bytes at the end of a heap before glibc shrinks it */
	MEM_TRIM_BYTES = 64 * 1024 * 1024,
};

static _Thread_local uint64_t allocations;
static _Thread_local uint64_t fail_after;
static _Thread_local uint64_t fail_until;

static _Atomic uint64_t shortages;

/* Counts an allocation that has failed, and returns `p`. */
static void *
mem_check(void *p)
{
	if (!p)
		atomic_fetch_add_explicit(&shortages, 1, memory_order_relaxed);
	return p;
}

uint64_t
mem_shortages(void)
{
	return atomic_load_explicit(&shortages, memory_order_relaxed);
}

static bool
mem_must_fail(void)
{
	allocations++;
	return fail_after && allocations >= fail_after && allocations <= fail_until;
}

void *
mem_alloc(size_t n)
{
	return mem_check(mem_must_fail() ? NULL : malloc(n ? n : 1));
}

void *
mem_zalloc(size_t n)
{
	return mem_check(mem_must_fail() ? NULL : calloc(1, n ? n : 1));
}

void *
mem_realloc(void *p, size_t n)
{
	return mem_check(mem_must_fail() ? NULL : realloc(p, n ? n : 1));
}

void
mem_free(void *p)
{
	free(p);
}

void *
mem_map(size_t n)
{
	void *p = mem_must_fail() ? MAP_FAILED
				  : mmap(NULL, n ? n : 1, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return mem_check(p == MAP_FAILED ? NULL : p);
}

void
mem_unmap(void *p, size_t n)
{
	if (p)
		(void)munmap(p, n ? n : 1);
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
	fail_until = UINT64_MAX;
	return made;
}

uint64_t
mem_fail_only(uint64_t nth)
{
	uint64_t made = mem_fail_after(nth);

	fail_until = nth;
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
