/*
 * The counted allocator behind everything that outlives a request. Thread-safe. Tests make the Nth
 * allocation fail; nothing here ends the process.
 */
#ifndef FROND_BASE_MEM_H
#define FROND_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* As malloc, calloc(1, n) and realloc; NULL when memory is short. */
void *mem_alloc(size_t n) __attribute__((malloc));
void *mem_zalloc(size_t n) __attribute__((malloc));
void *mem_realloc(void *p, size_t n);
void mem_free(void *p);

/* A copy of `s` with a NUL behind it (not counted); free with mem_free(). NULL when out of memory.
 */
char *mem_strdup(struct str s) __attribute__((malloc));

/*
 * For a process that serves for long: threads share their heaps, and these keep what is freed for
 * what comes next, so that somebody has to call mem_trim() at times. Once, before there are
 * threads.
 */
void mem_tune(void);

/* Gives freed memory back to the system, wherever it lies. Takes milliseconds. */
void mem_trim(void);

/*
 * The calling thread's `after`-th allocation from now on (1 is the next), and every one after it,
 * fails; 0 switches this off. Returns how many allocations the thread has made since the last call.
 */
uint64_t mem_fail_after(uint64_t after);

#endif
