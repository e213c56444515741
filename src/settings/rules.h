/*
 * Rules for texts that people choose, such as passwords: a setting lists regular expressions, and a
 * text must match each of them. The list is written as CouchDB does, in Erlang's terms:
 *
 *     [{".{10,}", "It is too short."}, {"[0-9]"}, "[a-z]"]
 *
 * A string behind an expression tells people what is wrong. Everything here is a pure function of
 * its arguments, uses a few kilobytes of the stack, and may be called on any thread.
 */
#ifndef FROND_SETTINGS_RULES_H
#define FROND_SETTINGS_RULES_H

#include "base/status.h"
#include "base/str.h"

enum {
	RULES_COUNT = 100,        /* expressions in a list */
	RULES_STRING_BYTES = 256, /* of an expression, and of what stands behind it */
	RULES_NESTING = 32,       /* groups inside each other */
	/*
	 * What one expression may take for one text, as people who choose texts must not keep a
	 * server busy. A text for which it would take more does not match.
	 */
	RULES_MATCH_CALLS = 20000,
	RULES_MATCH_KIB = 1024,
};

/* One element of a list, without the escapes. */
struct rule {
	char expression[RULES_STRING_BYTES];
	size_t expression_len;
	char reason[RULES_STRING_BYTES]; /* ends in NUL; may be empty */
};

/* Checks a list. STATUS_INVALID, explained; STATUS_NOMEM. */
MUST_USE enum status rules_check(struct str rules, struct err *err);

/*
 * Applies a list that rules_check() has found sound. `*ret_kept` is false if the text does not
 * match an expression: the first of these is in `*ret_broken`. STATUS_NOMEM.
 */
MUST_USE enum status rules_apply(struct str rules, struct str text, struct rule *ret_broken,
				 bool *ret_kept, struct err *err);

#endif
