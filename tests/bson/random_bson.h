/*
 * Random values and documents of every BSON type, among them many numbers that are equal or nearly
 * so although their types differ. They are checked documents but for `deep` ones. Texts and
 * documents lie in the arena.
 */
#ifndef FROND_TESTS_BSON_RANDOM_BSON_H
#define FROND_TESTS_BSON_RANDOM_BSON_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "../doc/random_scalar.h"
#include "bson/bson.h"

enum {
	RANDOM_BSON_BYTES = 1 << 20,
};

static const enum bson_type random_types[] = {
	BSON_DOUBLE,    BSON_STRING,     BSON_DOCUMENT, BSON_ARRAY,   BSON_BINARY,
	BSON_UNDEFINED, BSON_OBJECT_ID,  BSON_BOOL,     BSON_DATE,    BSON_NULL,
	BSON_REGEX,     BSON_DB_POINTER, BSON_CODE,     BSON_SYMBOL,  BSON_CODE_SCOPE,
	BSON_INT32,     BSON_TIMESTAMP,  BSON_INT64,    BSON_DECIMAL, BSON_MAX_KEY,
	BSON_MIN_KEY,   BSON_INT32,      BSON_INT64,    BSON_DOUBLE,  BSON_DECIMAL,
	BSON_STRING,    BSON_DOUBLE,     BSON_DECIMAL,  BSON_INT64,   BSON_STRING,
};

/* Of regular expressions, in the order that they have in BSON. */
static const char *const random_options[] = { "", "i", "im", "x" };

static struct str random_document(struct rand_seq *r, struct arena *arena, unsigned depth);

static inline struct bson_decimal
random_bson_decimal(struct rand_seq *r)
{
	struct doc_scalar s = random_decimal128(r);

	return (struct bson_decimal){ .low = s.low, .high = s.high };
}

static inline struct str random_container(struct rand_seq *r, struct arena *arena, unsigned depth,
					  bool array);

static inline struct bson_value
random_value(struct rand_seq *r, struct arena *arena, unsigned depth)
{
	struct bson_value v = { .type = random_types[rand_seq_below(
					r, sizeof(random_types) / sizeof(random_types[0]))] };

	if ((v.type == BSON_DOCUMENT || v.type == BSON_ARRAY || v.type == BSON_CODE_SCOPE) &&
	    !depth)
		v.type = BSON_NULL;
	switch ((int)v.type) {
	case BSON_DOUBLE:
		v.as_d = random_double(r);
		break;
	case BSON_STRING:
	case BSON_CODE:
	case BSON_SYMBOL:
		v.as_text = random_text(r, arena, true);
		break;
	case BSON_DOCUMENT:
	case BSON_ARRAY:
		v.as_text = random_container(r, arena, depth - 1, v.type == BSON_ARRAY);
		break;
	case BSON_CODE_SCOPE:
		v.as_text = random_text(r, arena, true);
		v.as_more = random_container(r, arena, depth - 1, false);
		break;
	case BSON_BINARY:
		v.subtype = (uint8_t)rand_seq_below(r, 3);
		v.as_text = v.subtype == 2 ? str_of("\2\0\0\0ab", 4 + 2)
					   : random_bytes(r, arena, rand_seq_below(r, 6));
		break;
	case BSON_OBJECT_ID:
		v.as_text = random_bytes(r, arena, BSON_OBJECT_ID_BYTES);
		break;
	case BSON_BOOL:
		v.as_truth = rand_seq_below(r, 2);
		break;
	case BSON_DATE:
	case BSON_INT64:
	case BSON_TIMESTAMP:
		v.as_n = random_i64(r, 64);
		break;
	case BSON_INT32:
		v.as_n = random_i64(r, 32);
		break;
	case BSON_REGEX:
		v.as_text = random_text(r, arena, false);
		v.as_more = str_from_cstr(random_options[rand_seq_below(r, 4)]);
		break;
	case BSON_DB_POINTER:
		v.as_text = random_text(r, arena, true);
		v.as_more = random_bytes(r, arena, BSON_OBJECT_ID_BYTES);
		break;
	case BSON_DECIMAL:
		v.as_decimal = random_bson_decimal(r);
		break;
	default:
		break;
	}
	return v;
}

static inline struct str
random_container(struct rand_seq *r, struct arena *arena, unsigned depth, bool array)
{
	struct buf out = BUF_INIT(RANDOM_BSON_BYTES);
	size_t count = rand_seq_below(r, 5);
	struct bson_builder b;
	struct str copy;

	bson_builder_init(&b, &out);
	if (array)
		bson_begin_outer_array(&b);
	else
		bson_begin(&b);
	for (size_t i = 0; i < count; i++) {
		struct bson_value v = random_value(r, arena, depth);

		bson_put(&b, random_text(r, arena, false), &v);
	}
	bson_end(&b);
	assert_int_equal(buf_status(&out), STATUS_OK);
	copy = arena_dup(arena, buf_str(&out));
	assert_non_null(copy.ptr);
	buf_release(&out);
	return copy;
}

static inline struct str
random_document(struct rand_seq *r, struct arena *arena, unsigned depth)
{
	return random_container(r, arena, depth, false);
}

#endif
