/*
 * A second kind of databases beside the revisioned one: both are created, listed, checked, moved
 * and dropped by the same functions of the catalog, and equal names in different name spaces are
 * different databases.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "catalog/check.h"
#include "catalog/draw.h"
#include "catalog/events.h"
#include "catalog/move.h"
#include "catalog/store_format.h"
#include "catalog/tally.h"
#include "kv/faulty/faulty.h"
#include "kv/keyspace.h"
#include "model/revisioned/revisioned.h"
#include "store.h"
#include "tiny.h"

enum {
	ARENA_BYTES = 64 * 1024 * 1024,
	KEYS = 50,
	MANY_KEYS = 3000, /* of counters that are split */
	PARTS_MOST = 8,
};

#define TINY ((enum catalog_space)TINY_SPACE)

struct fixture {
	char dir[64];
	char url[256];
	struct kv_store *store;
	struct arena *arena;
	struct str name; /* what a body is about */
	size_t first;
	size_t keys;
	uint64_t number;
	struct catalog_db *db;
};

/* Opens the store of f->url, with what is in it. */
static void
open_again(struct fixture *f)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct err err = { 0 };

	if (catalog_store_open(f->url, &options, &f->store, &err) != STATUS_OK)
		fail_msg("%s", err.text);
}

static void
open_store(struct fixture *f, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	test_store_url(path, f->url, sizeof(f->url));
	open_again(f);
}

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	rev_register();
	tiny_register();
	test_make_dir("catalog", f->dir, sizeof(f->dir));
	f->arena = arena_new(ARENA_BYTES);
	assert_non_null(f->arena);
	open_store(f, "store");
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	catalog_db_unref(f->db);
	kv_close(f->store);
	arena_free(f->arena);
	test_remove_tree(f->dir);
	free(f);
	return 0;
}

/* ---- Bodies ---- */

static void
run(struct fixture *f, kv_body *body)
{
	struct err err = { 0 };
	enum status status = kv_run(f->store, body, f, NULL, &err);

	if (status != STATUS_OK)
		fail_msg("%s: %s", status_name(status), err.text);
}

static enum status
create_tiny(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;

	return tiny_create(tx, f->name, NULL);
}

static enum status
create_revisioned(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;

	return rev_db_create(tx, f->name, REV_SCHEME_DEFAULT, NULL);
}

static enum status
open_tiny(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;

	catalog_db_unref(f->db);
	f->db = NULL;
	return catalog_open(tx, NULL, TINY, f->name, &f->db, NULL);
}

static enum status
delete_tiny(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;

	return catalog_delete(tx, TINY, f->name, NULL);
}

static enum status
fill_tiny(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;

	for (size_t i = 0; i < f->keys; i++) {
		struct str key = arena_printf(f->arena, "key%05zu", f->first + i);
		struct str value = arena_printf(f->arena, "value %zu", f->first + i);

		TRY(tiny_put(tx, f->db, f->arena, key, value, NULL));
	}
	return STATUS_OK;
}

/* A tiny database of this name with some keys. */
static void
make_tiny(struct fixture *f, const char *name)
{
	f->name = str_from_cstr(name);
	f->first = 0;
	f->keys = KEYS;
	run(f, create_tiny);
	run(f, open_tiny);
	run(f, fill_tiny);
}

static struct kv_tx *
begin(struct fixture *f)
{
	struct kv_tx *tx;

	assert_int_equal(kv_begin(kv_faulty_inner(f->store), KV_TX_READ_ONLY, &tx), STATUS_OK);
	return tx;
}

static void
fail_found(const struct catalog_finding *finding, void *arg)
{
	(void)arg;
	fail_msg("%s: %s", finding->kind, finding->text);
}

static void
check_store(struct fixture *f, uint64_t databases)
{
	const struct catalog_verify_options options = { .found = fail_found };
	struct catalog_verify_sum sum = { 0 };
	struct kv_tx *tx = begin(f);

	assert_int_equal(catalog_verify_store(tx, &options, &sum, NULL), STATUS_OK);
	assert_int_equal(sum.databases, databases);
	kv_tx_free(tx);
}

/* The names of a space, with a blank between them. */
static const char *
names(struct fixture *f, enum catalog_space space)
{
	const struct name_range range = { .limit = 100 };
	AUTO(buf_release) struct buf text = BUF_INIT(4096);
	struct kv_tx *tx = begin(f);
	struct name_page page;

	assert_int_equal(catalog_list(tx, space, &range, f->arena, &page), STATUS_OK);
	for (size_t i = 0; i < page.count; i++)
		buf_printf(&text, "%s%.*s", i ? " " : "", STR_ARG(page.names[i]));
	kv_tx_free(tx);
	return arena_dup(f->arena, buf_str(&text)).ptr;
}

/* ---- Tests ---- */

static void
equal_names_in_different_spaces_are_different_databases(void **state)
{
	struct fixture *f = *state;
	struct catalog_db *revisioned, *tiny;
	struct kv_tx *tx;

	/* "users" is a name that both could have, were the tiny one's not digits. */
	f->name = STR("db");
	run(f, create_revisioned);
	make_tiny(f, "7");
	assert_string_equal(names(f, CATALOG_SPACE_COUCH), "db");
	assert_string_equal(names(f, TINY), "7");

	tx = begin(f);
	assert_int_equal(catalog_open(tx, NULL, CATALOG_SPACE_COUCH, STR("7"), &revisioned, NULL),
			 STATUS_NOT_FOUND);
	assert_int_equal(catalog_open(tx, NULL, TINY, STR("db"), &tiny, NULL), STATUS_NOT_FOUND);
	assert_int_equal(catalog_open(tx, NULL, CATALOG_SPACE_COUCH, STR("db"), &revisioned, NULL),
			 STATUS_OK);
	assert_int_equal(revisioned->kind->number, CATALOG_KIND_REVISIONED);
	assert_ptr_equal(f->db->kind, tiny_kind());
	assert_int_not_equal(revisioned->number, f->db->number);
	catalog_db_unref(revisioned);
	kv_tx_free(tx);
	check_store(f, 2);
}

static enum status
create_any(struct kv_tx *tx, void *arg)
{
	static struct catalog_kind loose;
	struct fixture *f = arg;

	/* The same kind with the revisioned one's rule of names: "db" is then a name of both. */
	loose = *tiny_kind();
	loose.check_name = catalog_kind_find(CATALOG_KIND_REVISIONED)->check_name;
	return catalog_create(tx, &loose, f->name, (const uint64_t[CATALOG_OPTIONS]){ 0 }, NULL);
}

static enum status
delete_couch(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;

	return catalog_delete(tx, CATALOG_SPACE_COUCH, f->name, NULL);
}

static void
the_same_name_is_two_databases_of_two_spaces(void **state)
{
	struct catalog_cache *cache = catalog_cache_new();
	struct fixture *f = *state;
	struct catalog_db *couch, *tiny;
	struct kv_tx *tx;

	assert_non_null(cache);
	f->name = STR("db");
	run(f, create_revisioned);
	run(f, create_any);
	tx = begin(f);
	for (int i = 0; i < 2; i++) { /* from the store, then from the cache, one slot for both */
		assert_int_equal(
			catalog_open(tx, cache, CATALOG_SPACE_COUCH, f->name, &couch, NULL),
			STATUS_OK);
		assert_int_equal(catalog_open(tx, cache, TINY, f->name, &tiny, NULL), STATUS_OK);
		assert_int_not_equal(couch->number, tiny->number);
		assert_int_equal(couch->kind->number, CATALOG_KIND_REVISIONED);
		assert_int_equal(tiny->kind->number, TINY_KIND);
		catalog_db_unref(couch);
		catalog_db_unref(tiny);
	}
	kv_tx_free(tx);
	catalog_cache_free(cache);
	run(f, delete_couch);
	assert_string_equal(names(f, CATALOG_SPACE_COUCH), "");
	assert_string_equal(names(f, TINY), "db");
}

/* Everything that has happened in a space. */
static void
search(struct fixture *f, enum catalog_space space, struct catalog_events *s)
{
	struct catalog_events_wanted wanted = { .space = space, .most = CATALOG_EVENTS_MOST };

	memset(&wanted.before, 0xff, sizeof(wanted.before));
	catalog_events_init(s, &wanted, f->arena, NULL);
	while (!s->done) {
		struct kv_tx *tx = begin(f);

		assert_int_equal(catalog_events_page(tx, s, NULL), STATUS_OK);
		kv_tx_free(tx);
	}
	catalog_events_sort(s);
}

static void
events_are_told_in_their_space(void **state)
{
	struct fixture *f = *state;
	struct catalog_events s;

	f->name = STR("db");
	run(f, create_revisioned);
	make_tiny(f, "1");
	run(f, delete_tiny);
	make_tiny(f, "2");
	search(f, TINY, &s);
	assert_int_equal(s.dbs_count, 1);
	assert_int_equal(s.count, 2);
	assert_true(str_eq(catalog_events_at(&s, 0).name, STR("1")));
	assert_int_equal(catalog_events_at(&s, 0).kind, CATALOG_EVENT_DELETED);
	assert_true(str_eq(catalog_events_at(&s, 1).name, STR("2")));
	assert_int_equal(catalog_events_at(&s, 1).kind, CATALOG_EVENT_CREATED);
	catalog_events_release(&s);
	search(f, CATALOG_SPACE_COUCH, &s);
	assert_int_equal(s.dbs_count, 1);
	assert_int_equal(s.count, 1);
	catalog_events_release(&s);
}

static void
deleted_database_is_swept(void **state)
{
	struct fixture *f = *state;
	uint64_t number;
	bool more = true;

	f->name = STR("db");
	run(f, create_revisioned);
	make_tiny(f, "3");
	number = f->db->number;
	run(f, delete_tiny);
	check_store(f, 1); /* its keys are there, and so is the word that they are to go */
	while (more)
		assert_int_equal(catalog_drop_sweep(&(struct catalog_sweeping){ .store = f->store },
						    clock_wall_ms(), 10, &more, NULL),
				 STATUS_OK);
	check_store(f, 1);
	make_tiny(f, "3");
	assert_int_not_equal(f->db->number, number);
	check_store(f, 2);
}

/* Records of deleted databases that no frond of today can read, before that of f->number. */
static enum status
put_unreadable_drops(struct kv_tx *tx, void *arg)
{
	static const struct {
		uint64_t part;
		const char *value;
	} records[] = {
		{ KV_ROOT_DROPPED, "\x15\x63" }, /* format 99 */
		{ KV_ROOT_DROPPED, "junk" },
	};

	struct fixture *f = arg;

	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
		AUTO(buf_release) struct buf key = BUF_INIT(64);

		tuple_put_u64(&key, KV_ROOT);
		tuple_put_u64(&key, records[i].part);
		tuple_put_u64(&key, f->number - 1 - i);
		TRY(buf_status(&key));
		TRY(kv_set(tx, buf_str(&key), str_from_cstr(records[i].value)));
	}
	return STATUS_OK;
}

static enum status
count_tiny_keys(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf begin = BUF_INIT(64);
	AUTO(buf_release) struct buf end = BUF_INIT(64);
	struct fixture *f = arg;
	struct kv_future *future;

	tuple_put_u64(&begin, f->number);
	TRY(tuple_prefix_end(buf_str(&begin), &end));
	future = kv_get_range(tx, buf_str(&begin), buf_str(&end), NULL);
	TRY(kv_future_wait(future));
	f->keys = kv_future_range(future).count;
	return STATUS_OK;
}

static void
sweep_goes_on_past_records_it_cannot_read(void **state)
{
	struct fixture *f = *state;
	bool more = true;

	for (int i = 1; i <= 3; i++)
		make_tiny(f, arena_printf(f->arena, "%d", i).ptr);
	f->number = f->db->number;
	run(f, delete_tiny);
	run(f, put_unreadable_drops);
	run(f, count_tiny_keys);
	assert_int_not_equal(f->keys, 0);
	for (int i = 0; i < 20 && more; i++)
		assert_int_equal(catalog_drop_sweep(&(struct catalog_sweeping){ .store = f->store },
						    clock_wall_ms(), 1, &more, NULL),
				 STATUS_OK);
	assert_false(more);
	run(f, count_tiny_keys);
	assert_int_equal(f->keys, 0);
}

/* The first key of a deleted database that is left. */
static enum status
find_tiny_key(struct kv_tx *tx, void *arg)
{
	const struct kv_range_options options = { .limit = 1 };
	AUTO(buf_release) struct buf begin = BUF_INIT(64);
	AUTO(buf_release) struct buf end = BUF_INIT(64);
	struct fixture *f = arg;
	struct kv_future *future;

	tuple_put_u64(&begin, f->number);
	TRY(tuple_prefix_end(buf_str(&begin), &end));
	future = kv_get_range(tx, buf_str(&begin), buf_str(&end), &options);
	TRY(kv_future_wait(future));
	assert_int_equal(kv_future_range(future).count, 1);
	f->name = arena_dup(f->arena, kv_future_range(future).pairs[0].key);
	return STATUS_OK;
}

enum {
	NUMBERED = 1000,
};

static void
set_place(struct fixture *f, uint64_t i, struct catalog_sweep_place *place)
{
	AUTO(buf_release) struct buf key = BUF_INIT(64);

	tuple_put_u64(&key, f->number);
	tuple_put_u64(&key, NUMBERED + i); /* behind all that is of the database */
	place->number = f->number;
	place->len = key.len;
	memcpy(place->key, key.ptr, key.len);
}

static enum status
put_numbered_keys(struct kv_tx *tx, void *arg)
{
	struct catalog_sweep_place place;
	struct fixture *f = arg;

	for (uint64_t i = 0; i < f->keys; i++) {
		set_place(f, i, &place);
		TRY(kv_set(tx, str_of(place.key, place.len), STR("")));
	}
	return STATUS_OK;
}

static void
drop_numbered_keys(struct fixture *f, size_t keys)
{
	make_tiny(f, "1");
	f->number = f->db->number;
	run(f, delete_tiny);
	f->keys = keys;
	run(f, put_numbered_keys);
}

/* What is in front of the place is cleared at last. */
static void
a_sweep_goes_on_at_its_place(void **state)
{
	struct fixture *f = *state;
	struct catalog_sweeping s = { .store = f->store };
	bool more = false;
	size_t all;

	drop_numbered_keys(f, 100);
	run(f, count_tiny_keys);
	all = f->keys;
	set_place(f, 10, &s.place);
	assert_int_equal(catalog_drop_sweep(&s, clock_wall_ms(), 1, &more, NULL), STATUS_OK);
	assert_true(more);
	assert_int_equal(s.place.len, 0);
	run(f, count_tiny_keys);
	assert_int_equal(f->keys, all - 90);
	assert_int_equal(catalog_drop_sweep(&s, clock_wall_ms(), 2, &more, NULL), STATUS_OK);
	assert_false(more);
	run(f, count_tiny_keys);
	assert_int_equal(f->keys, 0);
}

static void
a_sweep_remembers_where_it_stopped(void **state)
{
	struct fixture *f = *state;
	struct catalog_sweeping s = { .store = f->store };
	struct tuple_reader r;
	uint64_t number, i;
	bool more = false;

	drop_numbered_keys(f, CATALOG_DROP_KEYS + 100);
	assert_int_equal(catalog_drop_sweep(&s, clock_wall_ms(), 1, &more, NULL), STATUS_OK);
	assert_true(more);
	r = tuple_reader(str_of(s.place.key, s.place.len));
	assert_int_equal(tuple_next_u64(&r, &number), STATUS_OK);
	assert_int_equal(number, f->number);
	assert_int_equal(tuple_next_u64(&r, &i), STATUS_OK);
	/* What is left begins behind it. */
	set_place(f, i + 1 - NUMBERED, &s.place);
	run(f, find_tiny_key);
	assert_true(str_eq(f->name, str_of(s.place.key, s.place.len)));
}

/*
 * A part ends at the end of a range, of which each has a share of all keys; the last one may be
 * empty, where keys have come in order.
 */
static void
parts_are_about_equal(struct fixture *f, struct kv_tx *tx, size_t parts)
{
	struct str bounds[PARTS_MOST] = { 0 };
	uint64_t keys, before, last = 0;
	size_t count;

	assert_int_equal(catalog_tally_cut(tx, f->db, 0, parts, f->arena, bounds, &count, &keys),
			 STATUS_OK);
	assert_int_equal(keys, MANY_KEYS);
	assert_true(count < parts && (parts == 1 || count > 0));
	assert_null(bounds[count].ptr);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(catalog_tally_rank(tx, f->db, 0, bounds[i], false, &before),
				 STATUS_OK);
		assert_true(before > last && before >= keys / parts * (i + 1));
		last = before;
	}
	assert_true(last <= keys);
}

static void
its_counters_are_split_and_counted_by(void **state)
{
	struct fixture *f = *state;
	struct kv_tx *tx;
	bool more = true;

	f->name = STR("4");
	run(f, create_tiny);
	run(f, open_tiny);
	f->keys = 500;
	for (f->first = 0; f->first < MANY_KEYS; f->first += f->keys)
		run(f, fill_tiny);
	for (int i = 0; i < 20 && more; i++)
		assert_int_equal(catalog_tally_tend(f->store, f->db, NULL, &more, NULL), STATUS_OK);
	assert_false(more);
	tx = begin(f);
	for (size_t at = 0; at <= MANY_KEYS; at += 750) {
		AUTO(buf_release) struct buf tail = BUF_INIT(64);
		uint64_t before, behind;

		tuple_put_str(&tail, arena_printf(f->arena, "key%05zu", at));
		assert_int_equal(catalog_tally_rank(tx, f->db, 0, buf_str(&tail), false, &before),
				 STATUS_OK);
		assert_int_equal(catalog_tally_rank(tx, f->db, 0, buf_str(&tail), true, &behind),
				 STATUS_OK);
		assert_int_equal(before, at);
		assert_int_equal(behind, MANY_KEYS - at);
	}
	for (size_t parts = 1; parts <= PARTS_MOST; parts++)
		parts_are_about_equal(f, tx, parts);
	kv_tx_free(tx);
	check_store(f, 1);
}

static enum status
damage_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;

	TRY(tiny_put(tx, f->db, f->arena, STR("a"), STR("\xff is no text"), NULL));
	return tiny_put(tx, f->db, f->arena, STR("b"), STR("a text"), NULL);
}

static void
count_found(const struct catalog_finding *finding, void *arg)
{
	uint64_t *count = arg;

	assert_string_equal(finding->kind, CATALOG_FINDING_VALUE);
	assert_string_equal(finding->text, "not a text, but 12 bytes");
	assert_true(str_eq(finding->database, STR("5")));
	(*count)++;
}

static void
damage_is_found_by_the_function_of_its_kind(void **state)
{
	struct fixture *f = *state;
	uint64_t count = 0;
	const struct catalog_verify_options options = { .found = count_found, .arg = &count };
	struct catalog_verify_sum sum = { 0 };
	struct err err = { 0 };
	struct kv_tx *tx;

	make_tiny(f, "5");
	run(f, damage_body);
	tx = begin(f);
	assert_int_equal(catalog_verify_db(tx, TINY, STR("5"), &options, &sum, &err), STATUS_OK);
	assert_int_equal(sum.documents, KEYS + 2);
	assert_int_equal(sum.findings, 1);
	assert_int_equal(count, 1);
	assert_int_equal(catalog_verify_db(tx, CATALOG_SPACE_COUCH, STR("5"), &options, &sum, &err),
			 STATUS_NOT_FOUND);
	kv_tx_free(tx);
}

struct lines {
	struct buf text;
	size_t count;
};

static enum status
dump_end_line(void *arg, struct err *err)
{
	struct lines *lines = arg;

	(void)err;
	lines->count++;
	buf_append_byte(&lines->text, '\n');
	return buf_status(&lines->text);
}

/* Keys in order, of which all have damaged values, each longer by a byte than the one before. */
static enum status
damage_more_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;

	for (size_t i = 0; i < f->keys; i++)
		TRY(tiny_put(tx, f->db, f->arena, arena_printf(f->arena, "key%02zu", i),
			     arena_printf(f->arena, "\xff%0*d", (int)i, 0), NULL));
	return STATUS_OK;
}

static void
append_found(const struct catalog_finding *finding, void *arg)
{
	struct buf *all = arg;

	assert_true(str_eq(finding->database, STR("6")));
	assert_true(finding->key.len > 5);
	buf_printf(all, "%s %s;", finding->kind, finding->text);
}

static void
findings_of_ranges_are_told_as_those_of_all_at_once(void **state)
{
	struct fixture *f = *state;
	AUTO(buf_release) struct buf expected = BUF_INIT(4096);

	f->name = STR("6");
	run(f, create_tiny);
	run(f, open_tiny);
	f->keys = 20;
	run(f, damage_more_body);
	for (size_t i = 0; i < f->keys; i++)
		buf_printf(&expected, "unreadable_value not a text, but %zu bytes;", i ? 1 + i : 2);
	for (size_t units = 0; units <= 21; units++) {
		AUTO(buf_release) struct buf all = BUF_INIT(4096);
		const struct catalog_verify_options options = { .found = append_found,
								.arg = &all,
								.ranges = units > 0,
								.range_units = units };
		struct catalog_verify_sum sum = { 0 };
		struct kv_tx *tx = begin(f);

		assert_int_equal(catalog_verify_store(tx, &options, &sum, NULL), STATUS_OK);
		kv_tx_free(tx);
		assert_int_equal(sum.documents, f->keys);
		assert_int_equal(sum.findings, f->keys);
		assert_int_equal(sum.unchecked, 0);
		if (!str_eq(buf_str(&all), buf_str(&expected)))
			fail_msg("%zu a range: %.*s", units, STR_ARG(buf_str(&all)));
	}
}

static void
it_is_dumped_by_the_function_of_its_kind(void **state)
{
	struct lines lines = { .text = BUF_INIT(4096) };
	struct fixture *f = *state;
	struct catalog_dump dump = { .out = &lines.text, .end_line = dump_end_line, .arg = &lines };

	make_tiny(f, "10");
	dump.tx = begin(f);
	dump.db = f->db;
	assert_int_equal(f->db->kind->dump(&dump), STATUS_OK);
	assert_int_equal(lines.count, KEYS);
	assert_true(
		str_starts_with(buf_str(&lines.text), STR("key00000=value 0\nkey00001=value 1\n")));
	kv_tx_free(dump.tx);
	buf_release(&lines.text);
}

struct drawn {
	const struct catalog_kind *kind;
	struct kv_tx *tx;
	struct buf text;
};

static enum status
draw_prefix(void *arg, struct str prefix)
{
	AUTO(buf_release) struct buf end = BUF_INIT(KV_LIMIT_KEY_BYTES + 1);
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct drawn *drawn = arg;
	struct kv_pair pair;

	buf_append_str(&end, prefix);
	buf_append_byte(&end, 0xff);
	TRY(kv_scan_init(&scan, drawn->tx, prefix, buf_str(&end), NULL));
	while (kv_scan_next(&scan, &pair) == STATUS_OK) {
		catalog_draw_pair(drawn->kind, pair.key, pair.value, &drawn->text);
		buf_append_byte(&drawn->text, '\n');
	}
	return buf_status(&drawn->text);
}

static void
it_is_drawn_by_the_functions_of_its_kind(void **state)
{
	struct fixture *f = *state;
	struct drawn drawn = { .kind = tiny_kind(), .text = BUF_INIT(65536) };

	make_tiny(f, "11");
	drawn.tx = begin(f);
	assert_int_equal(f->db->kind->inspect(drawn.tx, f->db, STR("key00003"), f->arena,
					      draw_prefix, &drawn),
			 STATUS_OK);
	assert_true(str_eq(buf_str(&drawn.text), STR("(\"keys\", \"key00003\") = \"value 3\"\n")));
	buf_clear(&drawn.text);
	assert_int_equal(draw_prefix(&drawn, f->db->prefix), STATUS_OK);
	buf_append_byte(&drawn.text, '\0');
	assert_non_null(strstr(drawn.text.ptr, "(\"counters\", \"keys\", '', \\xff) = 50\n"));
	assert_non_null(strstr(drawn.text.ptr, "(\"stats\", \"keys\") = 50\n"));
	kv_tx_free(drawn.tx);
	buf_release(&drawn.text);
}

static void
it_moves_to_another_store(void **state)
{
	struct fixture *f = *state;
	struct fixture to = { .arena = f->arena };
	struct catalog_move_options options = {
		.from_url = "embedded:here",
		.to_url = "embedded:there",
		.space = TINY,
		.name = STR("6"),
	};
	struct catalog_move_sum sum;
	struct err err = { 0 };
	struct kv_tx *tx;
	struct str value;

	if (test_store_is_cluster()) /* a move needs two stores, and there is one cluster */
		return;
	f->name = STR("db");
	run(f, create_revisioned);
	make_tiny(f, "6");
	memcpy(to.dir, f->dir, sizeof(to.dir));
	open_store(&to, "target");
	options.from = f->store;
	options.to = to.store;
	if (catalog_move(&options, &sum, &err) != STATUS_OK)
		fail_msg("%s", err.text);
	assert_int_equal(sum.documents, KEYS);
	assert_string_equal(names(f, TINY), "");
	assert_string_equal(names(f, CATALOG_SPACE_COUCH), "db");
	assert_string_equal(names(&to, TINY), "6");
	check_store(f, 1);
	check_store(&to, 1);
	to.name = STR("6");
	run(&to, open_tiny);
	assert_int_equal(to.db->incarnation, 1);
	tx = begin(&to);
	assert_int_equal(tiny_get(tx, to.db, STR("key00007"), f->arena, &value), STATUS_OK);
	assert_true(str_eq(value, STR("value 7")));
	kv_tx_free(tx);
	catalog_db_unref(to.db);
	kv_close(to.store);
}

static void
incarnations_of_all_spaces_are_raised(void **state)
{
	struct fixture *f = *state;
	uint64_t count = 0;

	f->name = STR("db");
	run(f, create_revisioned);
	make_tiny(f, "8");
	assert_int_equal(catalog_incarnations_raise(f->store, &count, NULL), STATUS_OK);
	assert_int_equal(count, 2);
	run(f, open_tiny);
	assert_int_equal(f->db->incarnation, 1);
}

/* ---- The store's format ---- */

struct format {
	uint64_t number; /* to be stored; as it is found */
	bool found;
};

static enum status
format_put(struct kv_tx *tx, void *arg)
{
	struct format *format = arg;
	AUTO(buf_release) struct buf key = BUF_INIT(64);
	AUTO(buf_release) struct buf value = BUF_INIT(64);

	tuple_put_u64(&key, KV_ROOT);
	tuple_put_u64(&key, KV_ROOT_FORMAT);
	tuple_put_u64(&value, format->number);
	return kv_set(tx, buf_str(&key), buf_str(&value));
}

static enum status
format_get(struct kv_tx *tx, void *arg)
{
	struct format *format = arg;
	AUTO(buf_release) struct buf key = BUF_INIT(64);
	struct kv_future *future;
	struct tuple_reader r;
	struct str value;

	tuple_put_u64(&key, KV_ROOT);
	tuple_put_u64(&key, KV_ROOT_FORMAT);
	future = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(future));
	format->found = kv_future_value(future, &value);
	if (!format->found)
		return STATUS_OK;
	r = tuple_reader(value);
	return tuple_next_u64(&r, &format->number);
}

static void
store_of_a_newer_frond_is_refused_as_that(void **state)
{
	struct fixture *f = *state;
	struct format format = { .number = 17 };
	struct kv_store *store = NULL;
	struct err err = { 0 };

	assert_int_equal(kv_run(f->store, format_put, &format, NULL, NULL), STATUS_OK);
	assert_int_equal(catalog_store_check(f->store, &err), STATUS_NEWER);
	assert_string_equal(err.text, "the store was written by a newer frond: format 17, this one "
				      "reads up to 2");
	kv_close(f->store);
	f->store = NULL;
	for (int i = 0; i < 2; i++) {
		const struct kv_options options = { .read_only = i == 1 };

		memset(&err, 0, sizeof(err));
		assert_int_equal(catalog_store_open(f->url, &options, &store, &err), STATUS_NEWER);
		assert_non_null(strstr(err.text, "format 17, this one reads up to 2"));
	}
}

static void
format_is_raised_by_the_first_database_that_needs_it(void **state)
{
	struct fixture *f = *state;
	struct format format = { 0 };

	f->name = STR("db");
	run(f, create_revisioned);
	assert_int_equal(kv_run_read(f->store, format_get, &format, NULL), STATUS_OK);
	assert_true(!format.found || format.number == 1);
	make_tiny(f, "9");
	assert_int_equal(kv_run_read(f->store, format_get, &format, NULL), STATUS_OK);
	assert_true(format.found);
	assert_int_equal(format.number, 2);
	assert_int_equal(catalog_store_check(f->store, NULL), STATUS_OK);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

/* What a process has left of its block of numbers is lost with it. */
static void
numbers_stay_different_when_the_store_is_opened_again(void **state)
{
	struct fixture *f = *state;
	uint64_t last = 0;
	char name[32];

	for (int i = 0; i < 20; i++) {
		if (i % 5 == 0) {
			kv_close(f->store);
			open_again(f);
		}
		(void)snprintf(name, sizeof(name), "%d", i);
		f->name = str_from_cstr(name);
		run(f, create_tiny);
		run(f, open_tiny);
		assert_true(f->db->number > last);
		last = f->db->number;
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(equal_names_in_different_spaces_are_different_databases),
		T(the_same_name_is_two_databases_of_two_spaces),
		T(events_are_told_in_their_space),
		T(deleted_database_is_swept),
		T(sweep_goes_on_past_records_it_cannot_read),
		T(a_sweep_goes_on_at_its_place),
		T(a_sweep_remembers_where_it_stopped),
		T(its_counters_are_split_and_counted_by),
		T(damage_is_found_by_the_function_of_its_kind),
		T(findings_of_ranges_are_told_as_those_of_all_at_once),
		T(it_is_dumped_by_the_function_of_its_kind),
		T(it_is_drawn_by_the_functions_of_its_kind),
		T(it_moves_to_another_store),
		T(incarnations_of_all_spaces_are_raised),
		T(store_of_a_newer_frond_is_refused_as_that),
		T(format_is_raised_by_the_first_database_that_needs_it),
		T(numbers_stay_different_when_the_store_is_opened_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
