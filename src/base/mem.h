/*
 * The counted allocator for everything that outlives a request. Thread-safe. Tests can make the Nth
 * allocation fail. No function here ends the process.
 */
#ifndef FROND_BASE_MEM_H
#define FROND_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* These work as malloc, calloc(1, n) and realloc do, and return NULL when memory is short. */
void *mem_alloc(size_t n) __attribute__((malloc));
void *mem_zalloc(size_t n) __attribute__((malloc));
void *mem_realloc(void *p, size_t n);
void mem_free(void *p);

/*
 * Returns a copy of `s` with a NUL behind it, which the caller frees with mem_free(), or NULL when
 * memory is short.
 */
char *mem_strdup(struct str s) __attribute__((malloc));

/*
 * Returns `n` zero bytes, in whole pages that come from the system and not from malloc's heaps. A
 * page takes memory only once it is touched, so this is for a table that may never be full. NULL
 * when memory is short. mem_unmap() gives the pages back, with the same `n`; NULL is fine.
 */
void *mem_map(size_t n);
void mem_unmap(void *p, size_t n);

/*
 * Tunes malloc for a server that runs for long: threads share a few heaps, and the heaps keep freed
 * memory for later allocations, so the process has to call mem_trim() from time to time. Call this
 * once, before the process starts threads.
 */
void mem_tune(void);

/* Gives freed memory in any heap back to the system. This takes milliseconds. */
void mem_trim(void);

/*
 * Makes the calling thread's `after`-th allocation from now on fail (1 is the next one), and every
 * allocation after it; 0 switches this off. Returns how many allocations the thread has made since
 * the last call.
 */
uint64_t mem_fail_after(uint64_t after);

/* The same, but only the `nth` allocation fails, and those after it do not. */
uint64_t mem_fail_only(uint64_t nth);

/*
 * How many allocations of the process have failed. A request that fails while this grows may have
 * failed for lack of memory, even if it was told that a limit was reached.
 */
uint64_t mem_shortages(void);

#endif
