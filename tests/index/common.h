/* What the test programs of index/ begin with: an arena for each test, and JSON texts as leaves. */
#ifndef FROND_TESTS_INDEX_COMMON_H
#define FROND_TESTS_INDEX_COMMON_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rand.h"
#include "index/collate.h"
#include "index/selector/selector.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum {
	TEST_ARENA_BYTES = 64 << 20,
	ROOM_STEP = 16, /* what an arena hands out is a multiple of it */
};

static struct arena *arena;
static struct index_work work; /* in that arena */

static inline int
setup(void **state)
{
	(void)state;
	arena = arena_new(TEST_ARENA_BYTES);
	work = (struct index_work){ .arena = arena };
	return arena ? 0 : -1;
}

static inline int
teardown(void **state)
{
	(void)state;
	arena_free(arena);
	return 0;
}

static inline struct leaf_value
value_of(const char *json)
{
	struct leaf_value v;
	struct err err = { 0 };

	if (leaf_parse(str_from_cstr(json), arena, &v, &err) != STATUS_OK)
		fail_msg("%s: %s", json, err.text);
	return v;
}

/* A document: its body, and the specials _id "Doc" and _rev "1-abc". */
static inline void
doc_of(const char *json, struct selector_special specials[2], struct selector_doc *ret)
{
	const struct doc_limits limits = { .doc_bytes = SIZE_MAX,
					   .path_bytes = KV_LIMIT_KEY_BYTES };
	struct err err = { 0 };
	struct doc doc;

	if (doc_explode_text(str_from_cstr(json), arena, &limits, 0, &doc, &err) != STATUS_OK)
		fail_msg("%s: %s", json, err.text);
	specials[0] = (struct selector_special){ STR("_id"), value_of("\"Doc\"") };
	specials[1] = (struct selector_special){ STR("_rev"), value_of("\"1-abc\"") };
	*ret = (struct selector_doc){ doc.leaves, doc.count, specials, 2 };
}

#endif
