/* Looks at bytes that a parser has given. */
#ifndef FROND_FUZZ_LOOK_H
#define FROND_FUZZ_LOOK_H

#include <stdlib.h>

#include "base/status.h"
#include "base/str.h"

/*
 * Looks at each byte, so that the sanitizer does, and returns a sum by which two readings are
 * compared. The result must be used, or the compiler leaves the reading out.
 */
static inline MUST_USE uint64_t
look(struct str s)
{
	uint64_t sum = s.len;

	for (size_t i = 0; i < s.len; i++)
		sum = sum * 31 + (uint8_t)s.ptr[i];
	return sum;
}

/* Ends the process, as a finding, unless the claim holds. */
static inline void
must(bool good)
{
	if (!good)
		abort();
}

/* Ends the process unless a part that was read of the whole lies in it. */
static inline void
expect_inside(struct str part, struct str whole)
{
	if (part.len && (part.ptr < whole.ptr || part.ptr + part.len > whole.ptr + whole.len))
		abort();
}

#endif
