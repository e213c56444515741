#include "base/mem.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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
