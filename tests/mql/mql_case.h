/* What the tests of mql/ share: documents as Extended JSON, in an arena a test. */
#ifndef FROND_TESTS_MQL_MQL_CASE_H
#define FROND_TESTS_MQL_MQL_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "bson/json.h"
#include "mql/mql.h"

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

static inline struct mql
case_mql(struct arena *arena)
{
	case_err = (struct err){ 0 };
	return (struct mql){ .arena = arena, .err = &case_err, .now_ms = 1700000000123 };
}

/* The document of a text in which ' stands for ". */
static inline struct str
case_bson(struct arena *arena, const char *text)
{
	struct buf out = BUF_INIT(CASE_BYTES);
	char *json = arena_bytes(arena, strlen(text) + 1);
	struct str kept;
	struct err err = { 0 };

	memcpy(json, text, strlen(text) + 1);
	for (char *c = json; *c; c++) {
		if (*c == '\'')
			*c = '"';
	}
	if (bson_json_read(str_from_cstr(json), &out, &err) != STATUS_OK)
		fail_msg("%s: %s", text, err.text);
	kept = arena_dup(arena, buf_str(&out));
	buf_release(&out);
	return kept;
}

/* Canonical text, with ' for ". */
static inline const char *
case_json(struct arena *arena, struct str document)
{
	struct buf out = BUF_INIT(CASE_BYTES);
	char *text;

	bson_json_write(&out, document, BSON_JSON_RELAXED);
	text = arena_bytes(arena, out.len + 1);
	memcpy(text, out.ptr, out.len);
	text[out.len] = '\0';
	buf_release(&out);
	for (char *c = text; *c; c++) {
		if (*c == '"')
			*c = '\'';
	}
	return text;
}

#endif
