/*
 * Regular expressions: PCRE2 with UTF-8, with the options of BSON's. A match has a limit of steps
 * and of memory, and lets other fibers run meanwhile.
 */
#ifndef FROND_MQL_REGEX_H
#define FROND_MQL_REGEX_H

#include "mql/mql.h"

struct mql_regex;

/* Options: of i, m, s, x, u. */
MUST_USE enum status mql_regex_compile(struct mql *q, struct str pattern, struct str options,
				       struct mql_regex **ret);

/* Groups of the expression, the whole match not counted. */
uint32_t mql_regex_groups(const struct mql_regex *regex);

/*
 * Whether the text has a match that begins at byte `from` or later. Unless `ret_places` is NULL, it
 * gets two offsets for the whole match and for each group, SIZE_MAX for one that took no part; the
 * array lies in the arena of `q`.
 */
MUST_USE enum status mql_regex_match(const struct mql_regex *regex, struct mql *q, struct str text,
				     size_t from, bool *ret, const size_t **ret_places);

#endif
