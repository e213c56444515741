/*
 * Callouts in long patterns of PCRE2. One before each item, as PCRE2_AUTO_CALLOUT puts them, takes
 * thrice the room of the letter behind it, and the code of a pattern has a size that it cannot
 * exceed: with them it is too large from some 8,000 letters on. A long pattern of plain characters
 * gets fewer of them.
 */
#ifndef FROND_BASE_CALLOUTS_H
#define FROND_BASE_CALLOUTS_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/str.h"

/*
 * True of a pattern that may be too long for a callout before each item, and in which nothing
 * repeats, groups or means a class: so no match of a few of its characters takes long.
 */
bool callouts_are_sparse(struct str pattern);

/*
 * Such a pattern with a callout before every few characters, to be compiled without
 * PCRE2_AUTO_CALLOUT. In the arena; NULL: that is full.
 */
struct str callouts_put(struct str pattern, struct arena *arena);

#endif
