/*
 * Callouts of PCRE2 in long patterns. PCRE2 limits the size of a compiled pattern. With the option
 * PCRE2_AUTO_CALLOUT it puts a callout before each item of the pattern, which takes three times as
 * much room as a letter, so a pattern of more than some 8,000 letters is too large. A long pattern
 * of plain characters is therefore compiled without that option, and has callouts at greater
 * distances, which are put into its text.
 */
#ifndef FROND_BASE_CALLOUTS_H
#define FROND_BASE_CALLOUTS_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/str.h"

/*
 * True if the pattern may be too long for a callout before each item, and has no repeats, groups,
 * classes or escapes. To match a few characters of such a pattern never takes long.
 */
bool callouts_are_sparse(struct str pattern);

/*
 * Returns such a pattern with a callout before every few characters, in the arena. It is to be
 * compiled without PCRE2_AUTO_CALLOUT. Its `ptr` is NULL if the arena is full.
 */
struct str callouts_put(struct str pattern, struct arena *arena);

#endif
