/*
 * Looking for what belongs to one thing, where filters tell which tables to ask: how its keys
 * begin, and that nothing is missed in a store of any age. The rest is the random test's.
 */
#include "fixture.h"

#include <rocksdb/c.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "kv/embedded/embedded_int.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"

enum {
	KEY_BYTES = 64,
	/* Enough for some partitions of the filters: these are of 4 KB, 10 bits a key. */
	ENTITIES = 12000,
	TABLES = 3,
	A_TX = 2000,
};

/* ---- Keys ---- */

static void
entity_is_two_numbers_a_name_and_a_version(void **state)
{
	static const struct {
		struct str key;
		size_t len;
	} cases[] = {
		{ STR("\x15\x01\x15\x03\x02"
		      "a\x00"),
		  7 },
		{ STR("\x15\x01\x15\x03\x02"
		      "a\x00\x27\x15\x01"),
		  7 },
		{ STR("\x15\x01\x15\x03\x01"
		      "a\x00\x27\x15\x01"),
		  7 },
		{ STR("\x14\x16\x01\x02\x02\x00\x02"
		      "b\x00"),
		  6 },
		{ STR("\x13\xfe\x14\x02"
		      "a\x00\xff"
		      "b\x00\x05"),
		  9 },
		{ STR("\x15\x01\x15\x04\x02"
		      "a\x00\x27\x15\x07\x01"
		      "h\x00\x02leaf\x00"),
		  13 },
		{ STR("\x15\x01\x15\x04\x02"
		      "a\x00\x26\x14\x01"
		      "h\x00\xff\x00"),
		  14 },
		{ STR("\x15\x01\x15\x04\x02"
		      "a\x00\x27\x15\x07"),
		  0 },
		{ STR("\x15\x01\x15\x04\x02"
		      "a\x00"),
		  0 },
		{ STR("\x15\x01\x15\x03\x02"
		      "a\x00\xff"),
		  0 },
		{ STR("\x15\x01\x15\x03\x02"
		      "a"),
		  0 },
		{ STR("\x15\x01\x15\x03\x02"), 0 },
		{ STR("\x15\x01\x15\x03"), 0 },
		{ STR("\x15\x01\x15\x03\x15\x02"), 0 },
		{ STR("\x15\x01\x02"
		      "a\x00"),
		  0 },
		{ STR("\x15\x01\x16\x03"), 0 },
		{ STR("\x1c\x01"), 0 },
		{ STR("\x1d\x01\x01\x14\x02\x00"), 0 },
		{ STR("\xff/version"), 0 },
		{ STR(""), 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(emb_entity_len(cases[i].key), cases[i].len);
}

static void
range_within_an_entity_has_no_other_key(void **state)
{
	const struct str a = STR("\x14\x14\x02"
				 "a\x00");
	const struct str a_row = STR("\x14\x14\x02"
				     "a\x00\x27");
	const struct str a_last = STR("\x14\x14\x02"
				      "a\x00\xff");
	const struct str a_nul_b = STR("\x14\x14\x02"
				       "a\x00\xff"
				       "b\x00");
	const struct str b = STR("\x14\x14\x02"
				 "b\x00");

	(void)state;
	assert_true(emb_is_within_entity(a, a_row));
	assert_true(emb_is_within_entity(a, a_last));
	assert_true(emb_is_within_entity(a_row, a_last));
	assert_false(emb_is_within_entity(a, a_nul_b));
	assert_false(emb_is_within_entity(a, b));
	assert_false(emb_is_within_entity(a_last, a_nul_b));
	assert_false(emb_is_within_entity(STR("a"), STR("b")));
	assert_false(emb_is_within_entity(STR(""), STR("\xff")));
}

/* ---- Stores ---- */

/* Of the nth thing: its key, or that of one of its rows. */
static struct str
key_of(size_t n, size_t row, char ret[KEY_BYTES])
{
	struct buf b AUTO(buf_release) = BUF_INIT(KEY_BYTES);
	char name[KEY_BYTES / 2];

	/* In no order, so that each table has some of all. */
	snprintf(name, sizeof(name), "%08x", (unsigned)(n * 2654435761u));
	tuple_put_u64(&b, 7);
	tuple_put_u64(&b, n % 2 ? 3 : KV_SPACE_VERSIONS);
	tuple_put_str(&b, str_from_cstr(name));
	if (n % 2 == 0) {
		tuple_put_bool(&b, true);
		tuple_put_u64(&b, 1);
		tuple_put_bytes(&b, STR("hash"));
	}
	if (row) {
		tuple_put_bool(&b, true);
		tuple_put_u64(&b, row);
	}
	assert_ok(buf_status(&b));
	memcpy(ret, b.ptr, b.len);
	return str_of(ret, b.len);
}

static size_t
rows_of(size_t n)
{
	return n % 3;
}

/* What reading its range gives, with limits and directions that matter, is what it has. */
static void
check_thing(struct kv_tx *tx, size_t n, size_t rows)
{
	char begin_key[KEY_BYTES];
	char end_key[KEY_BYTES];
	char key[KEY_BYTES];
	struct str from = key_of(n, 0, begin_key);
	struct str to = key_of(n, 0, end_key);

	to.len++;
	end_key[to.len - 1] = (char)0xff;
	for (int way = 0; way < 4; way++) {
		const struct kv_range_options options = { .limit = (size_t)way % 3,
							  .reverse = way > 0 };
		struct kv_future *f = kv_get_range(tx, from, to, &options);
		size_t expected = options.limit && options.limit < rows ? options.limit : rows;
		struct kv_range range;

		assert_ok(kv_future_wait(f));
		range = kv_future_range(f);
		assert_int_equal(range.count, expected);
		for (size_t i = 0; i < expected; i++)
			assert_true(str_eq(range.pairs[i].key,
					   key_of(n, options.reverse ? rows - i : i + 1, key)));
		kv_future_free(f);
	}
}

static void
check_all(struct kv_store *store, size_t count)
{
	struct kv_tx *tx = NULL;

	/* Those behind the last are absent. */
	for (size_t n = 0; n < count + A_TX; n++) {
		if (n % A_TX == 0) {
			kv_tx_free(tx);
			tx = n / A_TX % 2 ? begin(store) : begin_read(store);
		}
		check_thing(tx, n, n < count ? rows_of(n) : 0);
	}
	kv_tx_free(tx);
}

static void
write_some(struct kv_store *store, size_t from, size_t to)
{
	struct kv_tx *tx = begin(store);
	char key[KEY_BYTES];

	for (size_t n = from; n < to; n++) {
		for (size_t row = 1; row <= rows_of(n); row++)
			assert_ok(kv_set(tx, key_of(n, row, key), STR("value")));
		/* What was there once leaves a mark that lookups step over. */
		for (size_t row = 1; n % 7 == 0 && row < 40; row++)
			assert_ok(kv_clear(tx, key_of(n, 100 + row, key)));
	}
	commit(tx);
}

static void
each_is_found_in_tables_of_many_filters(void **state)
{
	struct fixture *f = *state;
	struct err err = { 0 };

	for (size_t from = 0; from < ENTITIES; from += ENTITIES / TABLES) {
		write_some(f->store, from, from + ENTITIES / TABLES);
		if (from == 0)
			assert_ok(kv_compact(f->store, &err));
		kv_close(f->store);
		f->store = fixture_open(f->url, (struct kv_options){ .no_sync = true });
	}
	check_all(f->store, ENTITIES);
	assert_ok(kv_compact(f->store, &err));
	write_some(f->store, 0, A_TX); /* in memory, too */
	check_all(f->store, ENTITIES);
	kv_close(f->store);
	f->store = fixture_open(f->url, (struct kv_options){ .read_only = true });
	check_all(f->store, ENTITIES);
}

/* As a program opens it that knows of no entities. */
static rocksdb_t *
open_plain(const char *dir)
{
	rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
	rocksdb_options_t *o = rocksdb_options_create();
	char *error = NULL;
	rocksdb_t *db;

	rocksdb_block_based_options_set_filter_policy(table,
						      rocksdb_filterpolicy_create_bloom_full(10));
	rocksdb_block_based_options_set_index_type(
		table, rocksdb_block_based_table_index_type_two_level_index_search);
	rocksdb_block_based_options_set_partition_filters(table, 1);
	rocksdb_options_set_block_based_table_factory(o, table);
	rocksdb_block_based_options_destroy(table);
	db = rocksdb_open(o, dir, &error);
	assert_null(error);
	rocksdb_options_destroy(o);
	return db;
}

static void
write_plain(rocksdb_t *db, size_t from, size_t to)
{
	rocksdb_writeoptions_t *w = rocksdb_writeoptions_create();
	rocksdb_flushoptions_t *flush = rocksdb_flushoptions_create();
	char key[KEY_BYTES];
	char *error = NULL;

	for (size_t n = from; n < to; n++) {
		for (size_t row = 1; row <= rows_of(n); row++) {
			struct str k = key_of(n, row, key);

			rocksdb_put(db, w, k.ptr, k.len, "value", 5, &error);
			assert_null(error);
		}
	}
	rocksdb_flush(db, flush, &error);
	assert_null(error);
	rocksdb_flushoptions_destroy(flush);
	rocksdb_writeoptions_destroy(w);
}

static void
check_plain(rocksdb_t *db, size_t count)
{
	rocksdb_readoptions_t *r = rocksdb_readoptions_create();
	char key[KEY_BYTES];
	char *error = NULL;

	for (size_t n = 0; n < count; n++) {
		struct str k = key_of(n, rows_of(n), key);
		rocksdb_pinnableslice_t *slice;

		slice = rocksdb_get_pinned(db, r, k.ptr, k.len, &error);
		assert_null(error);
		assert_int_equal(slice != NULL, rows_of(n) > 0);
		rocksdb_pinnableslice_destroy(slice);
	}
	rocksdb_readoptions_destroy(r);
}

static void
store_of_an_older_program_is_read_and_read_by_it(void **state)
{
	struct fixture *f = *state;
	rocksdb_t *db;

	kv_close(f->store);
	db = open_plain(f->dir);
	write_plain(db, 0, A_TX);
	rocksdb_close(db);
	f->store = fixture_open(f->url, (struct kv_options){ .no_sync = true });
	check_all(f->store, A_TX);
	write_some(f->store, A_TX, 2 * A_TX);
	check_all(f->store, 2 * A_TX);
	kv_close(f->store);

	db = open_plain(f->dir);
	check_plain(db, 2 * A_TX);
	write_plain(db, 2 * A_TX, 3 * A_TX);
	rocksdb_close(db);
	f->store = fixture_open(f->url, (struct kv_options){ .no_sync = true });
	check_all(f->store, 3 * A_TX);
}

/* ---- What a lookup keeps ---- */

static void
lookups_of_one_transaction_keep_its_version(void **state)
{
	struct kv_store *store = store_of(state);
	struct kv_tx *tx = begin(store);

	check_thing(tx, 1, 0);
	write_some(store, 0, A_TX);
	for (size_t n = 0; n < 10; n++)
		check_thing(tx, n, 0);
	kv_tx_reset(tx);
	for (size_t n = 0; n < 10; n++)
		check_thing(tx, n, rows_of(n));
	kv_tx_free(tx);
}

static void
transaction_lets_go_of_its_iterator_at_the_commit(void **state)
{
	struct kv_store *store = store_of(state);
	struct kv_tx *tx = begin(store);
	const struct emb_tx *emb = (const struct emb_tx *)tx;

	check_thing(tx, 1, 0);
	assert_non_null(emb->lookup);
	assert_ok(kv_set(tx, STR("t/a"), STR("b")));
	assert_ok(kv_future_wait(kv_commit(tx)));
	assert_null(emb->lookup);
	kv_tx_free(tx);

	tx = begin_read(store); /* may last long, and keeps nothing */
	emb = (const struct emb_tx *)tx;
	check_thing(tx, 1, 0);
	assert_null(emb->lookup);
	kv_tx_free(tx);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entity_is_two_numbers_a_name_and_a_version),
		cmocka_unit_test(range_within_an_entity_has_no_other_key),
		cmocka_unit_test_setup_teardown(each_is_found_in_tables_of_many_filters,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(store_of_an_older_program_is_read_and_read_by_it,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(lookups_of_one_transaction_keep_its_version,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(transaction_lets_go_of_its_iterator_at_the_commit,
						fixture_setup, fixture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
