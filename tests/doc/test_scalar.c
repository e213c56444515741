#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doc_test.h"
#include "random_scalar.h"
#include "vectors.h"

enum {
	ROUNDS = 40000,
};

static bool
scalars_are_same(const struct doc_scalar *a, const struct doc_scalar *b)
{
	if (a->kind != b->kind)
		return false;
	switch ((int)a->kind) {
	case DOC_NULL:
	case DOC_UNDEFINED:
	case DOC_MIN_KEY:
	case DOC_MAX_KEY:
	case DOC_EMPTY_ARRAY:
	case DOC_EMPTY_OBJECT:
		return true;
	case DOC_BOOL:
		return a->truth == b->truth;
	case DOC_DOUBLE:
		return !memcmp(&a->d, &b->d, sizeof(a->d));
	case DOC_FLOAT:
		return !memcmp(&a->f, &b->f, sizeof(a->f));
	case DOC_NUMBER:
		return !memcmp(&a->d, &b->d, sizeof(a->d)) && str_eq(a->text, b->text);
	case DOC_DECIMAL128:
		return a->high == b->high && a->low == b->low;
	case DOC_INTEGER:
		return a->negative == b->negative && str_eq(a->text, b->text);
	case DOC_DECIMAL:
		return a->negative == b->negative && a->n == b->n && str_eq(a->text, b->text);
	case DOC_DURATION:
		return a->months == b->months && a->days == b->days && a->n == b->n;
	case DOC_BINARY:
		return a->n == b->n && str_eq(a->text, b->text);
	case DOC_REGEX:
	case DOC_CODE_SCOPE:
	case DOC_DB_POINTER:
		return str_eq(a->text, b->text) && str_eq(a->more, b->more);
	case DOC_TEXT:
	case DOC_BYTES:
	case DOC_UUID:
	case DOC_TIMEUUID:
	case DOC_OBJECT_ID:
	case DOC_CODE:
	case DOC_SYMBOL:
	case DOC_INET:
		return str_eq(a->text, b->text);
	default:
		return a->n == b->n;
	}
}

static void
every_scalar_comes_back_with_its_type(void **state)
{
	struct rand_seq r = { 1 };
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct buf value = BUF_INIT(TEST_MAX_BYTES);
	struct buf scratch = BUF_INIT(TEST_MAX_BYTES);

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		struct doc_scalar s = random_scalar_any(&r, arena);
		struct doc_scalar back;

		buf_clear(&value);
		doc_scalar_put(&value, &s);
		assert_int_equal(buf_status(&value), STATUS_OK);
		assert_int_equal(doc_scalar_read(buf_str(&value), &scratch, &back), STATUS_OK);
		if (!scalars_are_same(&s, &back))
			fail_msg("kind %d became kind %d in round %d", s.kind, back.kind, i);
		arena_clear(arena);
	}
	buf_release(&scratch);
	buf_release(&value);
	arena_free(arena);
}

static void
beginnings_of_values_and_values_with_more_behind_are_refused(void **state)
{
	struct rand_seq r = { 2 };
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct buf value = BUF_INIT(TEST_MAX_BYTES);
	struct buf scratch = BUF_INIT(TEST_MAX_BYTES);
	struct doc_scalar back;

	(void)state;
	for (int i = 0; i < ROUNDS / 10; i++) {
		struct doc_scalar s = random_scalar_any(&r, arena);

		buf_clear(&value);
		doc_scalar_put(&value, &s);
		/* A NUL that FF does not follow ends a text: one with NULs begins with others. */
		for (size_t len = 0; len < value.len; len++)
			if (doc_scalar_read(str_of(value.ptr, len), &scratch, &back) == STATUS_OK)
				assert_true(back.kind == s.kind &&
					    (s.kind == DOC_TEXT || s.kind == DOC_BYTES) &&
					    back.text.len < s.text.len);
		buf_append_byte(&value, (uint8_t)rand_seq_below(&r, 255));
		assert_int_equal(doc_scalar_read(buf_str(&value), &scratch, &back), STATUS_CORRUPT);
		arena_clear(arena);
	}
	buf_release(&scratch);
	buf_release(&value);
	arena_free(arena);
}

/* What is read has one encoding: the one that was read. */
static void
damaged_values_are_refused_or_are_the_encoding_of_what_they_say(void **state)
{
	struct rand_seq r = { 3 };
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct buf value = BUF_INIT(TEST_MAX_BYTES);
	struct buf again = BUF_INIT(TEST_MAX_BYTES);
	struct buf scratch = BUF_INIT(TEST_MAX_BYTES);
	size_t refused = 0;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		struct doc_scalar s = random_scalar_any(&r, arena);
		struct doc_scalar back;

		buf_clear(&value);
		doc_scalar_put(&value, &s);
		for (uint64_t n = 1 + rand_seq_below(&r, 3); n; n--)
			value.ptr[rand_seq_below(&r, value.len)] = (char)rand_seq_next(&r);
		if (doc_scalar_read(buf_str(&value), &scratch, &back) != STATUS_OK) {
			refused++;
			continue;
		}
		buf_clear(&again);
		doc_scalar_put(&again, &back);
		assert_true(str_eq(buf_str(&again), buf_str(&value)));
		arena_clear(arena);
	}
	assert_true(refused > ROUNDS / 4);
	buf_release(&scratch);
	buf_release(&again);
	buf_release(&value);
	arena_free(arena);
}

static void
long_integers_come_back(void **state)
{
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct buf value = BUF_INIT(TEST_MAX_BYTES);
	struct buf scratch = BUF_INIT(TEST_MAX_BYTES);

	(void)state;
	for (size_t len = 1; len < 600; len++) {
		char *bytes = arena_bytes(arena, len);
		struct doc_scalar s = { .kind = DOC_INTEGER, .text = { bytes, len } };
		struct doc_scalar back;

		memset(bytes, 0, len);
		bytes[0] = 1;
		for (int kind = 0; kind < 4; kind++) {
			s.negative = kind & 1;
			s.kind = kind & 2 ? DOC_DECIMAL : DOC_INTEGER;
			s.n = kind & 2 ? -7 : 0;
			buf_clear(&value);
			doc_scalar_put(&value, &s);
			assert_int_equal(doc_scalar_read(buf_str(&value), &scratch, &back),
					 STATUS_OK);
			assert_true(scalars_are_same(&s, &back));
		}
	}
	buf_release(&scratch);
	buf_release(&value);
	arena_free(arena);
}

static void
published_vectors_hold(void **state)
{
	struct vectors v;
	struct buf value = BUF_INIT(TEST_MAX_BYTES);
	struct buf scratch = BUF_INIT(TEST_MAX_BYTES);
	size_t count = 0;

	(void)state;
	vectors_open(&v, VECTORS "/scalars.txt");
	while (vectors_next(&v)) {
		struct doc_scalar back;

		buf_clear(&value);
		doc_scalar_put(&value, &v.scalar);
		if (!str_eq(buf_str(&value), v.bytes))
			fail_msg("line %zu: another encoding", v.line);
		assert_int_equal(doc_scalar_read(v.bytes, &scratch, &back), STATUS_OK);
		assert_true(scalars_are_same(&v.scalar, &back));
		count++;
	}
	assert_true(count > 60);
	vectors_close(&v);
	buf_release(&scratch);
	buf_release(&value);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_scalar_comes_back_with_its_type),
		cmocka_unit_test(beginnings_of_values_and_values_with_more_behind_are_refused),
		cmocka_unit_test(damaged_values_are_refused_or_are_the_encoding_of_what_they_say),
		cmocka_unit_test(long_integers_come_back),
		cmocka_unit_test(published_vectors_hold),
	};

	return cmocka_run_group_tests_name("scalar", tests, NULL, NULL);
}
