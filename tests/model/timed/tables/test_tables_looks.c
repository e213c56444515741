/*
 * What an INSERT into packed rows reads to know whether there are leaves, where a server answers
 * reads: keys or ranges, and whom these meet.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "catalog/store_format.h"
#include "kv/many.h"
#include "model/timed/tables/keyspaces.h"
#include "model/timed/tables/tables_int.h"
#include "probe.h"
#include "store.h"
#include "test_tables.h"

enum {
	NOW_MS = 1000 * 1000,
};

#define WIDE  "ks.wide"  /* with a map between other columns */
#define TWO   "ks.two"   /* two things are looked for: the row's own cell, and one column */
#define THREE "ks.three" /* one more column */

struct world {
	char dir[64];
	struct kv_store *store;
	struct timed_clock clock;
};

static uint64_t
world_now(void *arg)
{
	(void)arg;
	return NOW_MS;
}

/* ---- The tables ---- */

enum { /* ids of columns of WIDE, whose key is `k` */
	WIDE_A = 2,
	WIDE_B,
	WIDE_M,
	WIDE_C,
};

#define KEY                                                                                        \
	{                                                                                          \
		.name = TEXT("k"), .kind = TABLE_HASH                                              \
	}
#define COLUMN(n)                                                                                  \
	{                                                                                          \
		.name = TEXT(n), .kind = TABLE_REGULAR                                             \
	}
#define MAP                                                                                        \
	{                                                                                          \
		.name = TEXT("m"), .kind = TABLE_REGULAR, .storage = TABLE_MAP                     \
	}

static const struct table_column wide_columns[] = { KEY, COLUMN("a"), COLUMN("b"), MAP,
						    COLUMN("c") };
static const struct table_column two_columns[] = { KEY, COLUMN("a"), MAP };
static const struct table_column three_columns[] = { KEY, COLUMN("a"), COLUMN("b"), MAP };

static enum status
create_packed(struct kv_tx *tx, struct str name, const struct table_column *columns, size_t count)
{
	const struct table_property packs[] = { { STR(TABLE_PROPERTY_PACKED), STR("true") } };
	const struct table_schema schema = {
		.columns = columns, .column_count = count, .properties = packs, .property_count = 1
	};

	return table_create(tx, name, &schema, 0, NULL);
}

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	const struct table_keyspace ks = { .name = STR("ks") };

	TRY(table_keyspace_create(tx, &ks, arg));
	TRY(create_packed(tx, STR(WIDE), wide_columns, 5));
	TRY(create_packed(tx, STR(TWO), two_columns, 3));
	return create_packed(tx, STR(THREE), three_columns, 4);
}

static int
setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct world *w = calloc(1, sizeof(*w));
	struct err err = { 0 };
	char url[256];

	assert_non_null(w);
	test_show_failures();
	tables_register();
	test_make_dir("looks", w->dir, sizeof(w->dir));
	probe_store_url(w->dir, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &w->store, &err), STATUS_OK);
	w->clock = (struct timed_clock){ .now_ms = world_now, .arg = w };
	assert_int_equal(kv_run(w->store, create_body, &err, NULL, &err), STATUS_OK);
	*state = w;
	return 0;
}

static int
teardown(void **state)
{
	struct world *w = *state;

	kv_close(w->store);
	test_remove_tree(w->dir);
	free(w);
	return 0;
}

/* ---- Whom it meets ---- */

struct wide_write {
	struct world *w;
	struct table_change change;
	bool inserts;
};

static enum status
wide_write_body(struct kv_tx *tx, void *arg)
{
	const struct wide_write *x = arg;
	const struct doc_scalar k = number(1);
	const struct table_write write = {
		.key = { 1, &k, 1 }, .inserts = x->inserts, .changes = &x->change, .change_count = 1
	};
	struct catalog_db *db;
	enum status status;
	struct timed t;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, STR(WIDE), &db, NULL));
	timed_init(&t, tx, db, &x->w->clock, NULL);
	status = table_write(&t, &write);
	catalog_db_unref(db);
	return status;
}

/* An INSERT, in front of whose commit another write of the row comes. */
static enum status
insert_behind(struct world *w, struct table_change change)
{
	struct wide_write other = { .w = w, .change = change };
	struct wide_write insert = { .w = w,
				     .change = { .column = WIDE_A, .value = number(1) },
				     .inserts = true };
	struct err err = { 0 };
	enum status status;
	struct kv_tx *tx;

	assert_int_equal(kv_begin(w->store, KV_TX_READ_WRITE, &tx), STATUS_OK);
	assert_false(kv_looks_up(tx));
	assert_int_equal(wide_write_body(tx, &insert), STATUS_OK);
	assert_int_equal(kv_run(w->store, wide_write_body, &other, NULL, &err), STATUS_OK);
	status = kv_future_wait(kv_commit(tx));
	kv_tx_free(tx);
	return status;
}

static void
an_insert_meets_who_writes_what_it_packs_alone(void **state)
{
	struct world *w = *state;

	assert_int_equal(insert_behind(w, (struct table_change){ .kind = TABLE_CHANGE_PUT_ELEMENT,
								 .column = WIDE_M,
								 .element = text("x"),
								 .value = number(1) }),
			 STATUS_OK);
	for (uint64_t column = WIDE_A; column <= WIDE_C; column++)
		if (column != WIDE_M)
			assert_int_equal(
				insert_behind(w, (struct table_change){ .column = column,
									.value = number(2) }),
				STATUS_TX_CONFLICT);
}

/* ---- What it reads ---- */

static enum status
insert_nothing_body(struct kv_tx *tx, const char *name, struct world *w, uint64_t *ret_reads)
{
	const struct doc_scalar k = number(1);
	const struct table_write write = { .key = { 1, &k, 1 }, .inserts = true };
	struct catalog_db *db;
	enum status status;
	struct timed t;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, str_from_cstr(name), &db, NULL));
	timed_init(&t, tx, db, &w->clock, NULL);
	*ret_reads = kv_tx_stats(tx).reads;
	status = table_write(&t, &write);
	*ret_reads = kv_tx_stats(tx).reads - *ret_reads;
	catalog_db_unref(db);
	return status;
}

/* How much is read by an INSERT that has no values. */
static uint64_t
insert_reads(struct world *w, const char *name)
{
	struct kv_tx *tx;
	uint64_t reads;

	assert_int_equal(kv_begin(w->store, KV_TX_READ_WRITE, &tx), STATUS_OK);
	assert_false(kv_looks_up(tx));
	assert_int_equal(insert_nothing_body(tx, name, w, &reads), STATUS_OK);
	kv_tx_free(tx);
	return reads;
}

static void
two_pairs_are_asked_for_as_keys_and_more_as_a_range(void **state)
{
	struct world *w = *state;

	assert_int_equal(insert_reads(w, TWO), insert_reads(w, THREE) + 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_insert_meets_who_writes_what_it_packs_alone,
						setup, teardown),
		cmocka_unit_test_setup_teardown(two_pairs_are_asked_for_as_keys_and_more_as_a_range,
						setup, teardown),
	};

	return cmocka_run_group_tests_name("table_looks", tests, NULL, NULL);
}
