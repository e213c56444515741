/*
 * What is put off and done once (kv/fdb/fold.c) leaves what doing it at once does: random notes of
 * few keys, done both ways in a model of what a cluster makes of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/rand.h"
#include "kv/fdb/fdb_int.h"
#include "kv/fdb/joint.h"
#include "store.h"

enum {
	KEYS = 6,
	MANY = 2 * FDB_FOLD_SLOTS, /* keys, of which not all can be put off */
	VALUE_BYTES = 24,
	NOTES = 60,
	ROUNDS = 3000,
};

struct value {
	size_t len; /* 0: there is none */
	uint8_t bytes[VALUE_BYTES];
};

/* What the library's transactions of these tests are. */
struct FDB_transaction {
	struct value values[MANY];
	unsigned calls;
};

static size_t
key_number(const uint8_t *key)
{
	return key[0];
}

static void
model_set(FDBTransaction *tx, const uint8_t *key, int key_len, const uint8_t *value, int len)
{
	struct value *v = &tx->values[key_number(key)];

	(void)key_len;
	assert_true((size_t)len <= sizeof(v->bytes));
	tx->calls++;
	v->len = (size_t)len;
	memcpy(v->bytes, value, v->len);
}

static void
model_clear(FDBTransaction *tx, const uint8_t *key, int key_len)
{
	(void)key_len;
	tx->calls++;
	tx->values[key_number(key)].len = 0;
}

static void
model_clear_range(FDBTransaction *tx, const uint8_t *begin, int begin_len, const uint8_t *end,
		  int end_len)
{
	(void)begin_len, (void)end_len;
	tx->calls++;
	for (size_t i = key_number(begin); i < key_number(end); i++)
		tx->values[i].len = 0;
}

static uint64_t
number_of(const uint8_t *bytes, size_t len, size_t most)
{
	uint64_t n = 0;

	for (size_t i = len < most ? len : most; i-- > 0;)
		n = n << 8 | bytes[i];
	return n;
}

/* As FoundationDB does it: numbers are little-endian, and as long as the operand. */
static void
model_atomic_op(FDBTransaction *tx, const uint8_t *key, int key_len, const uint8_t *operand,
		int operand_len, int type)
{
	struct value *v = &tx->values[key_number(key)];
	size_t len = (size_t)operand_len;
	uint64_t old = number_of(v->bytes, v->len, len), mine = number_of(operand, len, len);
	struct str before = str_of((const char *)v->bytes, v->len);
	int order = str_cmp(before, str_of((const char *)operand, len));

	(void)key_len;
	tx->calls++;
	switch (type) {
	case FDB_MUTATION_ADD:
		mine += v->len ? old : 0;
		break;
	case FDB_MUTATION_MAX:
		mine = v->len && old > mine ? old : mine;
		break;
	case FDB_MUTATION_MIN:
		mine = v->len && old < mine ? old : mine;
		break;
	case FDB_MUTATION_BYTE_MAX:
		if (!v->len || order < 0)
			model_set(tx, key, key_len, operand, operand_len);
		return;
	case FDB_MUTATION_COMPARE_AND_CLEAR:
		if (order == 0)
			v->len = 0;
		return;
	case FDB_MUTATION_STAMPED_VALUE:
		model_set(tx, key, key_len, operand, operand_len - FDB_STAMP_PLACE_BYTES);
		return;
	default:
		fail_msg("a mutation of type %d", type);
	}
	v->len = len;
	for (size_t i = 0; i < len; i++, mine >>= 8)
		v->bytes[i] = (uint8_t)mine;
}

static int
model_set_option(FDBTransaction *tx, int option, const uint8_t *value, int len)
{
	(void)tx, (void)value, (void)len;
	assert_int_equal(option, FDB_TX_NEXT_WRITE_NO_CONFLICT);
	return 0;
}

static int
setup(void **state)
{
	(void)state;
	fdb.transaction_set = model_set;
	fdb.transaction_set_option = model_set_option;
	fdb.transaction_clear = model_clear;
	fdb.transaction_clear_range = model_clear_range;
	fdb.transaction_atomic_op = model_atomic_op;
	return 0;
}

/* ---- Random notes ---- */

struct text {
	char bytes[VALUE_BYTES];
};

static struct fdb_note
random_note(struct rand_seq *rand, size_t keys, struct text *key, struct text *other)
{
	static const int mutations[] = {
		FDB_MUTATION_ADD,           FDB_MUTATION_ADD,      FDB_MUTATION_MAX,
		FDB_MUTATION_MIN,           FDB_MUTATION_BYTE_MAX, FDB_MUTATION_COMPARE_AND_CLEAR,
		FDB_MUTATION_STAMPED_VALUE,
	};
	enum fdb_note_kind kinds[] = {
		FDB_NOTE_MUTATION, FDB_NOTE_MUTATION, FDB_NOTE_MUTATION, FDB_NOTE_MUTATION,
		FDB_NOTE_MUTATION, FDB_NOTE_SET,      FDB_NOTE_CLEAR,    FDB_NOTE_SET_NO_CONFLICT,
	};
	struct fdb_note note = { .kind = kinds[rand_seq_below(rand, 8)] };
	size_t len = rand_seq_below(rand, 4) ? 8 : 1 + rand_seq_below(rand, 9);

	if (rand_seq_below(rand, 30) == 0)
		note.kind = FDB_NOTE_CLEAR_RANGE;
	key->bytes[0] = (char)rand_seq_below(rand, keys);
	for (size_t i = 0; i < sizeof(other->bytes); i++)
		other->bytes[i] = (char)(rand_seq_below(rand, 3) ? 0 : rand_seq_next(rand));
	note.first = str_of(key->bytes, 1);
	note.second = str_of(other->bytes, len);
	if (note.kind == FDB_NOTE_MUTATION)
		note.mutation = mutations[rand_seq_below(rand, 7)];
	if (note.mutation == FDB_MUTATION_STAMPED_VALUE)
		note.second.len = 16 + FDB_STAMP_PLACE_BYTES;
	if (note.kind == FDB_NOTE_CLEAR_RANGE)
		other->bytes[0] = (char)rand_seq_below(rand, keys);
	return note;
}

static void
compare(struct rand_seq *rand, size_t keys)
{
	static FDBTransaction direct, folded;
	struct text firsts[NOTES], seconds[NOTES];
	struct fdb_fold fold;

	memset(&direct, 0, sizeof(direct));
	for (size_t i = 0; i < keys; i++) {
		struct value *v = &direct.values[i];

		v->len = rand_seq_below(rand, 10);
		for (size_t k = 0; k < v->len; k++)
			v->bytes[k] = (uint8_t)rand_seq_next(rand);
	}
	folded = direct;
	fdb_fold_init(&fold, &folded);
	for (size_t i = 0; i < NOTES; i++) {
		struct fdb_note note = random_note(rand, keys, &firsts[i], &seconds[i]);

		assert_int_equal(fdb_note_do(&direct, &note), 0);
		assert_int_equal(fdb_fold_note(&fold, &note), 0);
	}
	assert_int_equal(fdb_fold_end(&fold), 0);
	for (size_t i = 0; i < keys; i++) {
		assert_int_equal(folded.values[i].len, direct.values[i].len);
		assert_memory_equal(folded.values[i].bytes, direct.values[i].bytes,
				    direct.values[i].len);
	}
}

static void
what_is_put_off_leaves_the_same(void **state)
{
	struct rand_seq rand = { test_seed() };

	(void)state;
	print_message("# FROND_TEST_SEED=%llu\n", (unsigned long long)rand.state);
	for (int i = 0; i < ROUNDS; i++)
		compare(&rand, i % 2 ? KEYS : MANY);
}

/* ---- What it is for ---- */

static void
add(struct fdb_fold *fold, char *key, char *number)
{
	const struct fdb_note note = {
		.kind = FDB_NOTE_MUTATION,
		.mutation = FDB_MUTATION_ADD,
		.first = str_of(key, 1),
		.second = str_of(number, 8),
	};

	assert_int_equal(fdb_fold_note(fold, &note), 0);
}

static void
what_all_add_to_is_changed_once(void **state)
{
	static FDBTransaction tx;
	char number[8] = { (char)0xff, (char)0xff };
	char keys[2] = { 0, 1 };
	struct fdb_fold fold;

	(void)state;
	fdb_fold_init(&fold, &tx);
	for (int i = 0; i < 100; i++)
		for (int k = 0; k < 2; k++)
			add(&fold, &keys[k], number);
	assert_int_equal(tx.calls, 0);
	assert_int_equal(fdb_fold_end(&fold), 0);
	assert_int_equal(tx.calls, 2);
	for (int k = 0; k < 2; k++)
		assert_int_equal(number_of(tx.values[k].bytes, 8, 8), 100 * 0xffff);
	/* Nothing is done twice. */
	assert_int_equal(fdb_fold_end(&fold), 0);
	assert_int_equal(tx.calls, 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_put_off_leaves_the_same),
		cmocka_unit_test(what_all_add_to_is_changed_once),
	};

	return cmocka_run_group_tests_name("fold", tests, setup, NULL);
}
