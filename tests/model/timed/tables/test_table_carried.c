/*
 * Indexes that include columns: what entries carry is what rows have, whatever is written, expires
 * and is swept. Each question is asked twice in one transaction, of entries and of rows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/rand.h"
#include "catalog/store_format.h"
#include "index/engine/def.h"
#include "kv/tuple.h"
#include "model/timed/tables/index.h"
#include "model/timed/tables/keyspaces.h"
#include "packing.h"
#include "store.h"
#include "test_tables.h"
#include "verified.h"

enum {
	ARENA_BYTES = 64 * 1024 * 1024,
	START_MS = 1000 * 1000,
	ROWS = 12,
	FEW = 3,
	K = 1, /* ids of columns */
	C,
	V,
	W,
	TEXT_COLUMN,
	X,
	INDEXES = 3,
	LONG_BYTES = 2500, /* more than an entry carries */
};

static const struct table_column columns[] = {
	{ .name = TEXT("k"), .kind = TABLE_HASH },    { .name = TEXT("c"), .kind = TABLE_RANGE },
	{ .name = TEXT("v"), .kind = TABLE_REGULAR }, { .name = TEXT("w"), .kind = TABLE_REGULAR },
	{ .name = TEXT("t"), .kind = TABLE_REGULAR }, { .name = TEXT("x"), .kind = TABLE_REGULAR },
};

/* Of a column, of a column of the key, and of a path. */
static const struct str path[] = { TEXT("a") };
static const struct table_index_column first_columns[INDEXES] = {
	{ .column = V },
	{ .column = C },
	{ .column = TEXT_COLUMN, .part = INDEX_TYPED_JSON_TEXT, .steps = path, .step_count = 1 },
};
static const uint64_t carried[INDEXES][2] = { { W, TEXT_COLUMN }, { V, W }, { V, W } };
static const uint64_t wanted_ids[] = { V, W };
static const struct table_wanted wanted = { .some = true, .ids = wanted_ids, .count = 2 };

struct world {
	char dir[64];
	struct kv_store *store;
	struct arena *arena;
	struct timed_clock clock;
	uint64_t now_ms;
	struct rand_seq r;
	struct err err;
	size_t from_entries, rows;
	char long_text[LONG_BYTES];
	/* What the next transaction does. */
	size_t which;
	uint64_t number;
	uint64_t ttl_ms;
	struct table_index terms;
};

static uint64_t
below(struct world *w, uint64_t n)
{
	return rand_seq_below(&w->r, n);
}

static uint64_t
world_now(void *arg)
{
	return ((const struct world *)arg)->now_ms;
}

/* ---- Transactions ---- */

struct call {
	struct world *w;
	enum status (*run)(struct world *w, struct timed *t);
};

static enum status
call_body(struct kv_tx *tx, void *arg)
{
	struct call *c = arg;
	struct catalog_db *db;
	struct timed t;
	enum status status;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, STR("ks.t"), &db, &c->w->err));
	timed_init(&t, tx, db, &c->w->clock, &c->w->err);
	status = c->run(c->w, &t);
	catalog_db_unref(db);
	return status;
}

static enum status
run(struct world *w, enum status (*body)(struct world *w, struct timed *t))
{
	struct call c = { w, body };

	arena_clear(w->arena);
	return kv_run(w->store, call_body, &c, NULL, &w->err);
}

static struct str
index_name(size_t which)
{
	static const char *const names[INDEXES] = { "i0", "i1", "i2" };

	return str_from_cstr(names[which]);
}

static enum status
create(struct world *w, struct timed *t)
{
	const struct table_index terms = { .name = index_name(w->which),
					   .columns = &first_columns[w->which],
					   .column_count = 1,
					   .carried = carried[w->which],
					   .carried_count = 2 };

	return table_index_create(t, &terms, &w->number);
}

static enum status
drop(struct world *w, struct timed *t)
{
	return table_index_drop(t, table_index_named(t->db, index_name(w->which)));
}

static enum status
set_ttl(struct world *w, struct timed *t)
{
	return timed_ttl_set(t, w->ttl_ms);
}

static struct timed_expiry
some_expiry(struct world *w)
{
	switch (below(w, 6)) {
	case 0:
		return (struct timed_expiry){ TIMED_EXPIRY_AFTER, 1 + below(w, 3000) };
	case 1:
		return (struct timed_expiry){ TIMED_EXPIRY_NEVER, 0 };
	default:
		return (struct timed_expiry){ TIMED_EXPIRY_DEFAULT, 0 };
	}
}

static struct doc_scalar
some_text(struct world *w)
{
	static const char *const texts[] = { "{\"a\":0}", "{\"a\":\"1\"}", "{\"b\":2}", "none" };

	if (below(w, 5) == 0)
		return (struct doc_scalar){ .kind = DOC_TEXT,
					    .text = str_of(w->long_text, LONG_BYTES) };
	return (struct doc_scalar){ .kind = DOC_TEXT, .text = str_from_cstr(texts[below(w, 4)]) };
}

static enum status
write_some(struct world *w, struct timed *t)
{
	for (uint64_t i = 1 + below(w, 3); i; i--) {
		int64_t row = (int64_t)below(w, ROWS);
		const struct doc_scalar parts[] = { number(row / FEW), number(row % FEW) };
		const struct table_key key = { row / FEW, parts, 2 };
		struct table_change changes[3];
		const struct table_write write = { .key = key,
						   .inserts = below(w, 3) > 0,
						   .expiry = some_expiry(w),
						   .changes = changes,
						   .change_count = below(w, 4) };

		for (size_t j = 0; j < 3; j++) {
			struct table_change *c = &changes[j];

			*c = (struct table_change){ .column = V + below(w, 4),
						    .expiry = some_expiry(w) };
			c->value = c->column == TEXT_COLUMN ? some_text(w)
							    : number((int64_t)below(w, FEW));
			if (below(w, 5) == 0)
				c->value = (struct doc_scalar){ .kind = DOC_NULL };
		}
		if (below(w, 6) == 0)
			TRY(table_clear_row(t, &key));
		else if (write.inserts || write.change_count)
			TRY(table_write(t, &write));
	}
	return STATUS_OK;
}

/* ---- Asking twice ---- */

static void
draw_answer(const struct table_row *row, struct buf *ret)
{
	for (size_t i = 0; i < row->key_count; i++)
		buf_printf(ret, "%lld/", (long long)row->key[i].n);
	buf_printf(ret, "%lld", (long long)row->token);
	/* Only an entry of the text's own index has it besides. */
	for (size_t i = 0; i < row->cell_count; i++)
		if (row->cells[i].column->id <= W)
			buf_printf(ret, " %.*s=%lld", STR_ARG(row->cells[i].column->name),
				   (long long)row->cells[i].value.n);
	buf_append_byte(ret, '\n');
}

/*
 * Entries lead to rows that have expired values in place of those that were asked for: a caller
 * compares. Rows from entries need not be compared with a path.
 */
static bool
has_value(const struct world *w, const struct table_row *row, int64_t value)
{
	if (w->which == 1)
		return row->key[1].n == value;
	for (size_t i = 0; i < row->cell_count; i++)
		if (row->cells[i].column->id == first_columns[w->which].column)
			return w->which == 2 || row->cells[i].value.n == value;
	return false;
}

static enum status
ask(struct world *w, struct timed *t, int64_t value, bool of_entries, struct buf *ret)
{
	static const uint64_t all_ids[] = { V, W, TEXT_COLUMN };
	static const struct table_wanted all = { .some = true, .ids = all_ids, .count = 3 };
	char digit = (char)('0' + value);
	const struct doc_scalar text = { .kind = DOC_TEXT, .text = str_of(&digit, 1) };
	const struct index_typed_value equal = { .first = w->which == 2 ? text : number(value) };
	const struct table_index_options options = { .interval = { .equal = &equal,
								   .equal_count = 1 },
						     .wanted = &all,
						     .of_entry = of_entries ? &wanted : NULL };
	const struct table_index *index = table_index_named(t->db, index_name(w->which));
	struct table_index_scan *scan;
	struct table_row row;
	enum status status;

	TRY(table_index_open(t, index, &options, &scan));
	while ((status = table_index_next(scan, w->arena, &row)) == STATUS_OK) {
		bool is_carried = table_index_is_carried(scan);

		assert_true(row.is_row);
		assert_true(of_entries || !is_carried);
		w->from_entries += is_carried;
		w->rows += of_entries;
		if ((is_carried && w->which == 2) || has_value(w, &row, value))
			draw_answer(&row, ret);
	}
	table_index_close(scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
compare(struct world *w, struct timed *t)
{
	const struct table_index *index = table_index_named(t->db, index_name(w->which));

	for (int64_t value = 0; index && index->is_ready && value < FEW; value++) {
		AUTO(buf_release) struct buf entries = BUF_INIT(100 * 1000);
		AUTO(buf_release) struct buf rows = BUF_INIT(100 * 1000);

		TRY(ask(w, t, value, true, &entries));
		TRY(ask(w, t, value, false, &rows));
		assert_int_equal(buf_status(&entries), STATUS_OK);
		if (!str_eq(buf_str(&entries), buf_str(&rows)))
			fail_msg("index %zu, value %lld:\n%.*sbut\n%.*s", w->which,
				 (long long)value, STR_ARG(buf_str(&entries)),
				 STR_ARG(buf_str(&rows)));
	}
	return STATUS_OK;
}

static void
sweep(struct world *w)
{
	uint64_t done;
	bool more = true;

	for (int i = 0; more && i < 100; i++)
		assert_int_equal(timed_sweep(w->store, &w->clock, 10, &done, &more, &w->err),
				 STATUS_OK);
}

/* ---- Tests ---- */

static void
entries_carry_what_rows_have(void **state)
{
	struct world *w = *state;
	int rounds = test_rounds(400);

	for (int i = 0; i < rounds; i++) {
		w->now_ms += below(w, 500);
		assert_int_equal(run(w, write_some), STATUS_OK);
		w->which = below(w, INDEXES);
		if (i < INDEXES) {
			w->which = (size_t)i;
			assert_int_equal(run(w, create), STATUS_OK);
		} else if (below(w, 60) == 0) {
			/* Built anew over rows that are there, while one more writes. */
			assert_int_equal(run(w, drop), STATUS_OK);
			assert_int_equal(run(w, create), STATUS_OK);
			assert_int_equal(run(w, write_some), STATUS_OK);
		}
		assert_int_equal(table_index_build(w->store, STR("ks.t"), w->number, 3, &w->err),
				 STATUS_OK);
		if (below(w, 20) == 0)
			sweep(w);
		if (below(w, 50) == 0) {
			/* Once more than none, then none again. */
			w->ttl_ms = w->ttl_ms ? 0 : 1500;
			assert_int_equal(run(w, set_ttl), STATUS_OK);
		}
		assert_int_equal(run(w, compare), STATUS_OK);
		if (below(w, 40) == 0)
			verified_none(w->store);
	}
	verified_none(w->store);
	assert_true(w->from_entries > 0 && w->from_entries < w->rows);
}

static enum status
write_one(struct world *w, struct timed *t)
{
	const struct doc_scalar parts[] = { number(1), number(1) };
	const struct table_change changes[] = { { .column = V, .value = number(2) },
						{ .column = W, .value = number(3) } };
	const struct table_write write = { .key = { 1, parts, 2 },
					   .changes = changes,
					   .change_count = 2 };

	(void)w;
	return table_write(t, &write);
}

static enum status
ask_one(struct world *w, struct timed *t)
{
	AUTO(buf_release) struct buf answer = BUF_INIT(1000);

	TRY(ask(w, t, 2, true, &answer));
	buf_append_byte(&answer, 0);
	assert_non_null(strstr(answer.ptr, " v=2 w=3\n"));
	return STATUS_OK;
}

/* Where there is one, rows are read; where there is none any more, nothing of them expires. */
static void
entries_carry_what_went_by_a_default(void **state)
{
	struct world *w = *state;

	w->ttl_ms = 60000;
	assert_int_equal(run(w, set_ttl), STATUS_OK);
	assert_int_equal(run(w, create), STATUS_OK);
	assert_int_equal(table_index_build(w->store, STR("ks.t"), w->number, 3, &w->err),
			 STATUS_OK);
	assert_int_equal(run(w, write_one), STATUS_OK);
	assert_int_equal(run(w, ask_one), STATUS_OK);
	assert_int_equal(w->from_entries, 0);
	w->ttl_ms = 0;
	assert_int_equal(run(w, set_ttl), STATUS_OK);
	w->from_entries = w->rows = 0;
	assert_int_equal(run(w, ask_one), STATUS_OK);
	assert_int_equal(w->from_entries, 1);
	assert_int_equal(w->rows, 1);
}

/* Gives the only entry a column that the table never had in place of W. */
static enum status
damage_entry(struct world *w, struct timed *t)
{
	AUTO(buf_release) struct buf begin = BUF_INIT(KV_LIMIT_KEY_BYTES);
	AUTO(buf_release) struct buf end = BUF_INIT(KV_LIMIT_KEY_BYTES);
	const char named[] = { TUPLE_CODE_INT_ZERO + 1, W }, stray = 99;
	struct kv_future *f;
	struct str value;
	char *at, *copy;

	buf_append_str(&begin, t->db->prefix);
	tuple_put_u64(&begin, INDEX_SPACE_ENTRIES);
	buf_append_str(&end, buf_str(&begin));
	buf_append_byte(&end, 0xff);
	f = kv_get_range(t->tx, buf_str(&begin), buf_str(&end), NULL);
	TRY(kv_future_wait(f));
	assert_int_equal(kv_future_range(f).count, 1);
	value = kv_future_range(f).pairs[0].value;
	copy = arena_bytes(w->arena, value.len);
	memcpy(copy, value.ptr, value.len);
	at = memmem(copy, value.len, named, sizeof(named));
	assert_non_null(at);
	at[1] = stray;
	return kv_set(t->tx, kv_future_range(f).pairs[0].key, str_of(copy, value.len));
}

static void
a_column_that_an_entry_cannot_have_is_damage(void **state)
{
	struct world *w = *state;

	assert_int_equal(run(w, create), STATUS_OK);
	assert_int_equal(table_index_build(w->store, STR("ks.t"), w->number, 3, &w->err),
			 STATUS_OK);
	assert_int_equal(run(w, write_one), STATUS_OK);
	assert_int_equal(run(w, ask_one), STATUS_OK);
	assert_int_equal(run(w, damage_entry), STATUS_OK);
	assert_int_equal(run(w, ask_one), STATUS_CORRUPT);
}

static enum status
create_terms(struct world *w, struct timed *t)
{
	return table_index_create(t, &w->terms, &w->number);
}

/* The format of the definition, which older fronds refuse. */
static enum status
check_format(struct world *w, struct timed *t)
{
	AUTO(buf_release) struct buf key = BUF_INIT(KV_LIMIT_KEY_BYTES);
	struct kv_future *record;
	struct tuple_reader r;
	struct str value;
	uint64_t format;

	index_key_def(&key, t->db, w->number);
	record = kv_get(t->tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(record));
	assert_true(kv_future_value(record, &value));
	r = tuple_reader(value);
	TRY(tuple_next_u64(&r, &format));
	assert_int_equal(format, INDEX_FORMAT);
	return STATUS_OK;
}

static void
single_values_behind_the_key_are_included(void **state)
{
	/* Also where another one lies between. */
	static const struct {
		uint64_t ids[3];
		size_t count;
	} wrong[] = { { { C }, 1 }, { { W, W }, 2 },        { { W, X, W }, 3 },
		      { { V }, 1 }, { { TEXT_COLUMN }, 1 }, { { 99 }, 1 } };
	static const struct table_index_column two[] = { { .column = V },
							 { .column = TEXT_COLUMN } };
	struct world *w = *state;
	uint64_t many[TABLE_INDEX_CARRIED + 1] = { W };

	w->terms = (struct table_index){ .name = STR("i"), .columns = two, .column_count = 2 };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		w->terms.carried = wrong[i].ids;
		w->terms.carried_count = wrong[i].count;
		assert_int_equal(run(w, create_terms), STATUS_INVALID);
	}
	w->terms.carried = many;
	w->terms.carried_count = TABLE_INDEX_CARRIED + 1;
	assert_int_equal(run(w, create_terms), STATUS_INVALID);
	assert_non_null(strstr(w->err.text, "TABLE_INDEX_CARRIED"));
	w->terms.carried_count = 1;
	assert_int_equal(run(w, create_terms), STATUS_OK);
	assert_int_equal(run(w, check_format), STATUS_OK);
}

/* ---- The store ---- */

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	const struct table_keyspace ks = { .name = STR("ks") };
	const struct table_schema t = { .columns = columns,
					.column_count = sizeof(columns) / sizeof(*columns) };

	(void)arg;
	TRY(table_keyspace_create(tx, &ks, NULL));
	return packing_create(tx, STR("ks.t"), &t, 0);
}

static int
world_setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct world *w = calloc(1, sizeof(*w));
	const char *seed = getenv("FROND_TEST_SEED");
	char url[256];

	test_show_failures();
	tables_register();
	rand_bytes(&w->r.state, sizeof(w->r.state));
	if (seed)
		w->r.state = strtoull(seed, NULL, 10);
	print_message("# FROND_TEST_SEED=%llu\n", (unsigned long long)w->r.state);
	memset(w->long_text, 'x', LONG_BYTES);
	test_make_dir("table_carried", w->dir, sizeof(w->dir));
	test_store_url(w->dir, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &w->store, &w->err), STATUS_OK);
	w->arena = arena_new(ARENA_BYTES);
	w->clock = (struct timed_clock){ .now_ms = world_now, .arg = w };
	w->now_ms = START_MS;
	assert_int_equal(kv_run(w->store, create_body, NULL, NULL, &w->err), STATUS_OK);
	*state = w;
	return 0;
}

static int
world_teardown(void **state)
{
	struct world *w = *state;

	arena_free(w->arena);
	kv_close(w->store);
	test_remove_tree(w->dir);
	free(w);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(entries_carry_what_rows_have),
		TEST(entries_carry_what_went_by_a_default),
		TEST(a_column_that_an_entry_cannot_have_is_damage),
		TEST(single_values_behind_the_key_are_included),
	};

	return cmocka_run_group_tests_name("table_carried", tests, NULL, NULL);
}
