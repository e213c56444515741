/* What the tests of cql/ share: an arena a test, texts of errors. */
#ifndef FROND_TESTS_CQL_CQL_CASE_H
#define FROND_TESTS_CQL_CQL_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "cql/cql.h"

enum {
	CASE_BYTES = 1 << 22,
};

#define CASES(array) (sizeof(array) / sizeof((array)[0]))

static struct err case_err;

static inline int
case_setup(void **state)
{
	*state = arena_new(CASE_BYTES);
	return *state ? 0 : -1;
}

static inline int
case_teardown(void **state)
{
	arena_free(*state);
	return 0;
}

static inline struct cql
case_cql(struct arena *arena)
{
	case_err = (struct err){ 0 };
	return (struct cql){ .arena = arena, .err = &case_err };
}

/* The buffer's text in the arena, with a NUL. */
static inline const char *
case_text(struct arena *arena, struct buf *b)
{
	struct str kept = arena_dup(arena, buf_str(b));

	buf_release(b);
	return kept.ptr;
}

/* Bytes of hexadecimal digits. */
static inline struct str
case_hex(struct arena *arena, const char *digits)
{
	struct str s = str_from_cstr(digits);
	char *bytes = arena_bytes(arena, s.len / 2 + 1);

	if (!str_from_hex(s, bytes))
		fail_msg("%s is not hexadecimal", digits);
	return str_of(bytes, s.len / 2);
}

static inline const char *
case_hex_of(struct arena *arena, struct str bytes)
{
	struct buf b = BUF_INIT(CASE_BYTES);

	buf_append_hex(&b, bytes);
	return case_text(arena, &b);
}

#endif
