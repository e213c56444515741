/* Databases: creating, deleting, listing, settings, the cache, and what leaves no trace. */
#include "base/clock.h"
#include "kv/tuple.h"
#include "fixture.h"

#include <stdio.h>

/* One call in a transaction of its own. */
struct call {
	struct fixture *f;
	struct str name;
	struct str value;
	struct catalog_cache *cache;
	uint32_t number;
	struct err err;
};

static enum status
create(struct kv_tx *tx, void *arg)
{
	struct call *c = arg;

	return rev_db_create(tx, c->name, fixture_scheme(), &c->err);
}

static enum status delete (struct kv_tx *tx, void *arg) {
	struct call *c = arg;

		return catalog_delete(tx, CATALOG_SPACE_COUCH, c->name, &c->err);
}

static enum status
run(struct fixture *f, kv_body *body, const char *name, struct call *ret)
{
	struct call c = { .f = f, .name = str_from_cstr(name) };
	enum status status = kv_run(f->store, body, &c, NULL, NULL);

	if (ret)
		*ret = c;
	return status;
}

static struct kv_tx *
begin(struct fixture *f, enum kv_tx_kind kind)
{
	struct kv_tx *tx;

	assert_int_equal(kv_begin(f->calm, kind, &tx), STATUS_OK);
	return tx;
}

static void
names_are_couchdbs(void **state)
{
	char name[CATALOG_NAME_BYTES + 1];

	(void)state;
	assert_true(rev_db_name_valid(STR("a")));
	assert_true(rev_db_name_valid(STR("a0_$()+-/z")));
	assert_true(rev_db_name_valid(STR("z9a")));
	assert_true(rev_db_name_valid(STR("_users")));
	assert_true(rev_db_name_valid(STR("_replicator")));
	assert_true(rev_db_name_valid(STR("_global_changes")));
	assert_false(rev_db_name_valid(STR("")));
	assert_false(rev_db_name_valid(STR("_other")));
	assert_false(rev_db_name_valid(STR("0a")));
	assert_false(rev_db_name_valid(STR("A")));
	assert_false(rev_db_name_valid(STR("aB")));
	assert_false(rev_db_name_valid(STR("a.b")));
	assert_false(rev_db_name_valid(STR("a\0")));
	memset(name, 'a', sizeof(name));
	assert_true(rev_db_name_valid(str_of(name, CATALOG_NAME_BYTES)));
	assert_false(rev_db_name_valid(str_of(name, sizeof(name))));
}

static void
a_database_is_created_once(void **state)
{
	struct fixture *f = *state;
	struct call c;

	assert_int_equal(run(f, create, "db", &c), STATUS_EXISTS);
	assert_string_equal(c.err.text,
			    "The database could not be created, the file already exists.");
	assert_int_equal(run(f, create, "Upper", &c), STATUS_INVALID);
	assert_non_null(strstr(c.err.text, "Must begin with a letter."));
	assert_int_equal(run(f, create, "other", NULL), STATUS_OK);
	assert_int_equal(run(f, create, "other", NULL), STATUS_EXISTS);
}

/* How many keys a database's number has below it. */
static size_t
keys_below(struct kv_store *store, uint64_t number)
{
	struct buf lo = BUF_INIT(64);
	struct buf hi = BUF_INIT(64);
	struct kv_scan scan;
	struct kv_pair pair;
	struct kv_tx *tx;
	size_t n = 0;

	tuple_put_u64(&lo, number);
	assert_int_equal(tuple_prefix_end(buf_str(&lo), &hi), STATUS_OK);
	assert_int_equal(kv_begin(store, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(kv_scan_init(&scan, tx, buf_str(&lo), buf_str(&hi), NULL), STATUS_OK);
	while (kv_scan_next(&scan, &pair) == STATUS_OK)
		n++;
	kv_scan_release(&scan);
	kv_tx_free(tx);
	buf_release(&lo);
	buf_release(&hi);
	return n;
}

static void
a_large_deleted_database_is_cleared_bit_by_bit(void **state)
{
	struct fixture *f = *state;
	struct buf json = BUF_INIT(SIZE_MAX);
	uint64_t number = f->db->number;
	size_t left, before;
	bool more = true;

	buf_append_cstr(&json, "{\"a\":[0");
	for (size_t i = 0; i < 2 * CATALOG_DROP_KEYS; i++)
		buf_append_cstr(&json, ",1");
	buf_append(&json, "]}", 3);
	fixture_put(f, "large", NULL, json.ptr);
	buf_release(&json);
	before = keys_below(f->calm, number);
	assert_true(before > 2 * CATALOG_DROP_KEYS);

	/* Nothing is cleared with the deletion itself, and no more than was asked for after it. */
	assert_int_equal(run(f, delete, "db", NULL), STATUS_OK);
	assert_int_equal(run(f, create, "db", NULL), STATUS_OK);
	assert_int_equal(catalog_drop_sweep(&(struct catalog_sweeping){ .store = f->store },
					    clock_wall_ms(), 1, &more, NULL),
			 STATUS_OK);
	left = keys_below(f->calm, number);
	if (kv_clears_cheaply(f->store)) {
		assert_int_equal(left, 0);
	} else {
		assert_true(more);
		assert_int_equal(left, before - CATALOG_DROP_KEYS);
	}
	assert_int_equal(catalog_drop_sweep(&(struct catalog_sweeping){ .store = f->store },
					    clock_wall_ms(), 10, &more, NULL),
			 STATUS_OK);
	assert_false(more);
	assert_int_equal(keys_below(f->calm, number), 0);
	fixture_reopen(f);
	fixture_put(f, "a", NULL, "{}");
	fixture_check(f);
}

static void
a_deleted_database_takes_everything_with_it(void **state)
{
	struct fixture *f = *state;
	uint64_t number = f->db->number;
	struct call c;
	struct catalog_db *db;
	struct kv_tx *tx;
	bool more;

	fixture_put(f, "a", NULL, "{\"n\":1}");
	assert_int_equal(run(f, delete, "db", NULL), STATUS_OK);
	assert_int_equal(run(f, delete, "db", &c), STATUS_NOT_FOUND);
	assert_string_equal(c.err.text, "Database does not exist.");
	tx = begin(f, KV_TX_READ_ONLY);
	assert_int_equal(rev_db_open(tx, NULL, STR("db"), &db, NULL), STATUS_NOT_FOUND);
	kv_tx_free(tx);
	assert_int_equal(catalog_drop_sweep(&(struct catalog_sweeping){ .store = f->store },
					    clock_wall_ms(), 10, &more, NULL),
			 STATUS_OK);
	assert_false(more);
	assert_int_equal(keys_below(f->calm, number), 0);

	/* Made again it is empty, and another one. */
	assert_int_equal(run(f, create, "db", NULL), STATUS_OK);
	fixture_reopen(f);
	assert_true(f->db->number > number);
	assert_string_equal(fixture_changes(f), "");
	fixture_put(f, "a", NULL, "{}");
	fixture_check(f);
}

static void
databases_do_not_see_each_other(void **state)
{
	struct fixture *f = *state;
	struct catalog_db *first = catalog_db_ref(f->db);
	struct catalog_db *second;
	struct kv_tx *tx;

	assert_int_equal(run(f, create, "second", NULL), STATUS_OK);
	tx = begin(f, KV_TX_READ_ONLY);
	assert_int_equal(rev_db_open(tx, NULL, STR("second"), &second, NULL), STATUS_OK);
	kv_tx_free(tx);
	fixture_put(f, "a", NULL, "{\"n\":1}");
	catalog_db_unref(f->db);
	f->db = second;
	assert_string_equal(fixture_body(f, "a"), "missing");
	fixture_put(f, "a", NULL, "{\"n\":2}");
	fixture_check(f);
	assert_int_equal(run(f, delete, "second", NULL), STATUS_OK);
	catalog_db_unref(f->db);
	f->db = first;
	assert_string_equal(fixture_body(f, "a"), "{\"n\":1}");
	fixture_check(f);
}

static void
a_description_tells_what_was_created(void **state)
{
	struct fixture *f = *state;
	static const uint8_t none[16];

	assert_true(str_eq(f->db->name, STR("db")));
	assert_true(f->db->number >= 1);
	assert_int_equal(f->db->incarnation, 0);
	assert_int_equal(rev_db_revs_limit(f->db), REV_LIMIT_DEFAULT);
	assert_true(f->db->created_ms > UINT64_C(1500000000000));
	assert_memory_not_equal(f->db->uuid, none, sizeof(none));
}

/* ---- The cache ---- */

static void
a_cached_description_costs_no_read(void **state)
{
	struct fixture *f = *state;
	struct catalog_cache *cache = catalog_cache_new();
	struct catalog_db *db;
	struct kv_tx *tx;

	assert_non_null(cache);
	for (int i = 0; i < 2; i++) {
		tx = begin(f, KV_TX_READ_ONLY);
		assert_int_equal(rev_db_open(tx, cache, STR("db"), &db, NULL), STATUS_OK);
		assert_int_equal(kv_tx_stats(tx).keys_read, i == 0 ? 1 : 0);
		catalog_db_unref(db);
		kv_tx_free(tx);
	}
	/* A database that comes changes nothing of what is known. One that goes does. */
	assert_int_equal(run(f, create, "other", NULL), STATUS_OK);
	tx = begin(f, KV_TX_READ_ONLY);
	assert_int_equal(rev_db_open(tx, cache, STR("db"), &db, NULL), STATUS_OK);
	assert_int_equal(kv_tx_stats(tx).keys_read, 0);
	catalog_db_unref(db);
	kv_tx_free(tx);
	assert_int_equal(run(f, delete, "other", NULL), STATUS_OK);
	tx = begin(f, KV_TX_READ_ONLY);
	assert_int_equal(rev_db_open(tx, cache, STR("db"), &db, NULL), STATUS_OK);
	assert_int_equal(kv_tx_stats(tx).keys_read, 1);
	catalog_db_unref(db);
	kv_tx_free(tx);
	assert_int_equal(run(f, delete, "db", NULL), STATUS_OK);
	tx = begin(f, KV_TX_READ_ONLY);
	assert_int_equal(rev_db_open(tx, cache, STR("db"), &db, NULL), STATUS_NOT_FOUND);
	kv_tx_free(tx);
	catalog_cache_free(cache);
	catalog_cache_free(NULL);
}

static void
opening_a_database_the_first_time_waits_twice(void **state)
{
	struct fixture *f = *state;
	struct catalog_cache *cache = catalog_cache_new();
	struct catalog_db *db;
	struct kv_tx *tx;

	assert_non_null(cache);
	tx = begin(f, KV_TX_READ_ONLY);
	assert_int_equal(rev_db_open(tx, cache, STR("db"), &db, NULL), STATUS_OK);
	/* For the description, and for the counters and indexes together. */
	assert_int_equal(kv_tx_stats(tx).round_trips, 2);
	catalog_db_unref(db);
	kv_tx_free(tx);
	catalog_cache_free(cache);
}

static void
a_cache_follows_a_database_that_was_made_again(void **state)
{
	struct fixture *f = *state;
	struct catalog_cache *cache = catalog_cache_new();
	struct catalog_db *before, *after;
	struct kv_tx *tx;

	assert_non_null(cache);
	tx = begin(f, KV_TX_READ_ONLY);
	assert_int_equal(rev_db_open(tx, cache, STR("db"), &before, NULL), STATUS_OK);
	kv_tx_free(tx);
	assert_int_equal(run(f, delete, "db", NULL), STATUS_OK);
	assert_int_equal(run(f, create, "db", NULL), STATUS_OK);
	tx = begin(f, KV_TX_READ_ONLY);
	assert_int_equal(rev_db_open(tx, cache, STR("db"), &after, NULL), STATUS_OK);
	kv_tx_free(tx);
	assert_int_not_equal(before->number, after->number);
	catalog_cache_free(cache);
	assert_true(str_eq(before->name, after->name)); /* they outlive the cache */
	catalog_db_unref(before);
	catalog_db_unref(after);
}

/* Creates a database in each of two transactions that overlap. */
static void
create_at_once(struct fixture *f, const char *first, const char *second, enum status want)
{
	struct kv_tx *a = begin(f, KV_TX_READ_WRITE);
	struct kv_tx *b = begin(f, KV_TX_READ_WRITE);

	assert_int_equal(rev_db_create(a, str_from_cstr(first), fixture_scheme(), NULL), STATUS_OK);
	assert_int_equal(rev_db_create(b, str_from_cstr(second), fixture_scheme(), NULL),
			 STATUS_OK);
	assert_int_equal(kv_future_wait(kv_commit(a)), STATUS_OK);
	assert_int_equal(kv_future_wait(kv_commit(b)), want);
	kv_tx_free(a);
	kv_tx_free(b);
}

static uint64_t
number_of(struct fixture *f, const char *name)
{
	struct kv_tx *tx = begin(f, KV_TX_READ_ONLY);
	struct catalog_db *db;
	uint64_t number;

	assert_int_equal(rev_db_open(tx, NULL, str_from_cstr(name), &db, NULL), STATUS_OK);
	number = db->number;
	catalog_db_unref(db);
	kv_tx_free(tx);
	return number;
}

static void
creations_conflict_only_over_a_name(void **state)
{
	struct fixture *f = *state;

	create_at_once(f, "one", "two", STATUS_OK);
	assert_int_not_equal(number_of(f, "one"), number_of(f, "two"));
	create_at_once(f, "same", "same", STATUS_TX_CONFLICT);
	fixture_check(f);
}

static enum status
create_and_fail(struct kv_tx *tx, void *arg)
{
	struct call *c = arg;
	struct catalog_db *db;

	TRY(rev_db_create(tx, c->name, fixture_scheme(), NULL));
	TRY(rev_db_open(tx, c->cache, c->name, &db, NULL));
	catalog_db_unref(db);
	return STATUS_INVALID;
}

static void
a_cache_does_not_keep_what_was_never_committed(void **state)
{
	struct fixture *f = *state;
	struct catalog_cache *cache = catalog_cache_new();
	struct call c = { .f = f, .name = STR("never") };
	struct catalog_db *db;
	struct kv_tx *tx;

	assert_non_null(cache);
	c.cache = cache;
	assert_int_equal(kv_run(f->store, create_and_fail, &c, NULL, NULL), STATUS_INVALID);
	tx = begin(f, KV_TX_READ_ONLY);
	assert_int_equal(rev_db_open(tx, cache, STR("never"), &db, NULL), STATUS_NOT_FOUND);
	kv_tx_free(tx);
	catalog_cache_free(cache);
}

static void
a_write_conflicts_with_the_deletion_of_its_database(void **state)
{
	struct fixture *f = *state;
	struct catalog_cache *cache = catalog_cache_new();
	struct kv_tx *tx;

	assert_non_null(cache);
	for (int i = 0; i < 2; i++) { /* once from the store, once from the cache */
		struct rev_edit edit = fixture_edit(f, "a", NULL, "{}");
		struct rev_result result;
		struct catalog_db *db;
		bool last = i == 1;

		tx = begin(f, KV_TX_READ_WRITE);
		assert_int_equal(rev_db_open(tx, last ? cache : NULL, STR("db"), &db, NULL),
				 STATUS_OK);
		assert_int_equal(rev_write(tx, db, &edit, 1, 0, f->arena, &result, NULL),
				 STATUS_OK);
		assert_int_equal(run(f, delete, "db", NULL), STATUS_OK);
		assert_int_equal(kv_future_wait(kv_commit(tx)), STATUS_TX_CONFLICT);
		kv_tx_free(tx);
		catalog_db_unref(db);
		if (!last) {
			assert_int_equal(run(f, create, "db", NULL), STATUS_OK);
			tx = begin(f, KV_TX_READ_ONLY);
			assert_int_equal(rev_db_open(tx, cache, STR("db"), &db, NULL), STATUS_OK);
			catalog_db_unref(db);
			kv_tx_free(tx);
		}
	}
	catalog_cache_free(cache);
}

static enum status
create_and_open(struct kv_tx *tx, void *arg)
{
	struct call *c = arg;
	struct catalog_cache *cache = catalog_cache_new();
	struct catalog_db *db = NULL;
	enum status status = rev_db_create(tx, c->name, fixture_scheme(), NULL);

	if (status == STATUS_OK)
		status = rev_db_open(tx, cache, c->name, &db, NULL);
	catalog_db_unref(db);
	catalog_cache_free(cache);
	return status;
}

static void
a_database_can_be_opened_where_it_was_created(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(run(f, create_and_open, "fresh", NULL), STATUS_OK);
}

/* ---- Listing ---- */

static void
assert_list(struct fixture *f, struct name_range range, const char *want, bool more)
{
	struct kv_tx *tx = begin(f, KV_TX_READ_ONLY);
	struct buf b = BUF_INIT(10000);
	struct name_page page;

	assert_int_equal(catalog_list(tx, CATALOG_SPACE_COUCH, &range, f->arena, &page), STATUS_OK);
	kv_tx_free(tx);
	for (size_t i = 0; i < page.count; i++) {
		buf_append_cstr(&b, i ? " " : "");
		buf_append_str(&b, page.names[i]);
	}
	buf_append_byte(&b, 0);
	assert_string_equal(b.ptr, want);
	assert_int_equal(page.more, more);
	buf_release(&b);
}

static void
names_are_listed_in_order_and_in_pages(void **state)
{
	struct fixture *f = *state;
	static const char *const names[] = { "e", "c", "a", "ca", "_users" };

	for (size_t i = 0; i < 5; i++)
		assert_int_equal(run(f, create, names[i], NULL), STATUS_OK);
	assert_list(f, (struct name_range){ .limit = 100 }, "_users a c ca db e", false);
	assert_list(f, (struct name_range){ .limit = 2, .skip = 1 }, "a c", true);
	assert_list(f, (struct name_range){ .limit = 6 }, "_users a c ca db e", false);
	assert_list(f, (struct name_range){ .limit = 0 }, "", true);
	assert_list(f, (struct name_range){ .limit = SIZE_MAX, .descending = true },
		    "e db ca c a _users", false);
	assert_list(f,
		    (struct name_range){ .limit = 9,
					 .has_begin = true,
					 .begin = STR("c"),
					 .has_end = true,
					 .end = STR("db") },
		    "c ca db", false);
	assert_list(f,
		    (struct name_range){ .limit = 9,
					 .has_begin = true,
					 .begin = STR("c"),
					 .has_end = true,
					 .end = STR("db"),
					 .exclusive_begin = true,
					 .exclusive_end = true },
		    "ca", false);
	assert_list(f,
		    (struct name_range){ .limit = 2,
					 .has_begin = true,
					 .begin = STR("db"),
					 .has_end = true,
					 .end = STR("a"),
					 .descending = true },
		    "db ca", true);
	assert_list(f,
		    (struct name_range){ .limit = 9,
					 .has_begin = true,
					 .begin = STR("db"),
					 .has_end = true,
					 .end = STR("a"),
					 .descending = true,
					 .exclusive_begin = true,
					 .exclusive_end = true },
		    "ca c", false);
	assert_list(f,
		    (struct name_range){ .limit = 9,
					 .has_begin = true,
					 .begin = STR("z"),
					 .has_end = true,
					 .end = STR("a") },
		    "", false);
}

/* ---- Settings ---- */

static enum status
config_set(struct kv_tx *tx, void *arg)
{
	struct call *c = arg;

	return rev_config_set(tx, c->f->db, c->name, c->value, NULL);
}

static void
settings_are_kept(void **state)
{
	struct fixture *f = *state;
	struct call c = { .f = f, .name = STR("security"), .value = STR("{\"admins\":{}}") };
	struct kv_tx *tx = begin(f, KV_TX_READ_ONLY);
	struct str value;

	assert_int_equal(rev_config_get(tx, f->db, c.name, f->arena, &value), STATUS_NOT_FOUND);
	kv_tx_free(tx);
	assert_int_equal(kv_run(f->store, config_set, &c, NULL, NULL), STATUS_OK);
	tx = begin(f, KV_TX_READ_ONLY);
	assert_int_equal(rev_config_get(tx, f->db, c.name, f->arena, &value), STATUS_OK);
	kv_tx_free(tx);
	assert_true(str_eq(value, c.value));
	c.value = STR("");
	assert_int_equal(kv_run(f->store, config_set, &c, NULL, NULL), STATUS_OK);
	tx = begin(f, KV_TX_READ_ONLY);
	assert_int_equal(rev_config_get(tx, f->db, c.name, f->arena, &value), STATUS_OK);
	kv_tx_free(tx);
	assert_int_equal(value.len, 0);
}

static enum status
limit_set(struct kv_tx *tx, void *arg)
{
	struct call *c = arg;

	return rev_limit_set(tx, c->f->db, c->number, &c->err);
}

/* A description with others is damaged. */
static void
options_that_no_database_has_are_corrupt(void **state)
{
	static const struct {
		unsigned option;
		uint64_t value;
		enum status status;
	} cases[] = {
		{ REV_OPTION_SCHEME, REV_SCHEME_EXPLODED, STATUS_OK },
		{ REV_OPTION_SCHEME, REV_SCHEME_PACKED, STATUS_OK },
		{ REV_OPTION_SCHEME, 0, STATUS_CORRUPT },
		{ REV_OPTION_SCHEME, REV_SCHEME_PACKED + 1, STATUS_CORRUPT },
		{ REV_OPTION_REVS_LIMIT, 0, STATUS_CORRUPT },
		{ REV_OPTION_REVS_LIMIT, 1, STATUS_OK },
		{ REV_OPTION_REVS_LIMIT, REV_LIMIT_MAX, STATUS_OK },
		{ REV_OPTION_REVS_LIMIT, REV_LIMIT_MAX + 1, STATUS_CORRUPT },
		{ REV_OPTION_PARTITIONED, 1, STATUS_OK },
		{ REV_OPTION_PARTITIONED, 2, STATUS_CORRUPT },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t options[CATALOG_OPTIONS];

		memcpy(options, f->db->options, sizeof(options));
		options[cases[i].option] = cases[i].value;
		if (f->db->kind->check_options(options) != cases[i].status)
			fail_msg("option %u is %llu", cases[i].option,
				 (unsigned long long)cases[i].value);
	}
}

static void
revs_limit_has_bounds(void **state)
{
	struct fixture *f = *state;
	struct call c = { .f = f };

	assert_int_equal(kv_run(f->store, limit_set, &c, NULL, NULL), STATUS_INVALID);
	c.number = REV_LIMIT_MAX + 1;
	assert_int_equal(kv_run(f->store, limit_set, &c, NULL, NULL), STATUS_INVALID);
	assert_non_null(strstr(c.err.text, "4000"));
	c.number = REV_LIMIT_MAX;
	assert_int_equal(kv_run(f->store, limit_set, &c, NULL, NULL), STATUS_OK);
	fixture_reopen(f);
	assert_int_equal(rev_db_revs_limit(f->db), REV_LIMIT_MAX);
	c.number = 1;
	assert_int_equal(kv_run(f->store, limit_set, &c, NULL, NULL), STATUS_OK);
	fixture_reopen(f);
	fixture_put(f, "a", fixture_put(f, "a", NULL, "{}"), "{}");
	assert_null(strchr(fixture_tree(f, "a", true), '('));
	/* Not for a database that has taken the name since. */
	assert_int_equal(run(f, delete, "db", NULL), STATUS_OK);
	assert_int_equal(run(f, create, "db", NULL), STATUS_OK);
	assert_int_equal(kv_run(f->store, limit_set, &c, NULL, NULL), STATUS_NOT_FOUND);
}

/* ---- Local documents ---- */

struct local {
	struct fixture *f;
	const char *id;
	uint64_t parent;
	const char *json; /* NULL: delete */
	uint64_t rev;
};

static enum status
local_body(struct kv_tx *tx, void *arg)
{
	struct local *l = arg;
	struct doc doc;

	if (!l->json)
		return rev_local_delete(tx, l->f->db, str_from_cstr(l->id), NULL);
	doc = fixture_doc(l->f, l->json);
	return rev_local_put(tx, l->f->db, str_from_cstr(l->id), l->parent, &doc, l->f->arena,
			     &l->rev, NULL);
}

static enum status
local_do(struct fixture *f, const char *id, uint64_t parent, const char *json, uint64_t *ret_rev)
{
	struct local l = { f, id, parent, json, 0 };
	enum status status = kv_run(f->store, local_body, &l, NULL, NULL);

	if (ret_rev)
		*ret_rev = l.rev;
	return status;
}

static void
local_documents_count_their_revisions(void **state)
{
	struct fixture *f = *state;
	struct rev_doc doc;
	struct kv_tx *tx;
	uint64_t rev;

	assert_int_equal(local_do(f, "x", 0, "{\"a\":[1],\"b\":2}", &rev), STATUS_OK);
	assert_int_equal(rev, 1);
	assert_int_equal(local_do(f, "x", 1, "{\"b\":3}", &rev), STATUS_OK);
	assert_int_equal(rev, 2);
	tx = begin(f, KV_TX_READ_ONLY);
	assert_int_equal(rev_local_get(tx, f->db, STR("x"), f->arena, &rev, &doc), STATUS_OK);
	assert_int_equal(rev_local_get(tx, f->db, STR("y"), f->arena, &rev, &doc),
			 STATUS_NOT_FOUND);
	kv_tx_free(tx);
	assert_int_equal(rev, 2);
	assert_int_equal(rev_body_explode(&doc, f->arena), STATUS_OK);
	assert_int_equal(doc.count, 1);
	assert_int_equal(local_do(f, "x", 2, NULL, NULL), STATUS_OK);
	assert_int_equal(local_do(f, "x", 2, NULL, NULL), STATUS_NOT_FOUND);
	assert_int_equal(local_do(f, "x", 0, "{}", &rev), STATUS_OK);
	assert_int_equal(rev, 1);
	/* Whatever revision is named, the next one is what there is then. */
	assert_int_equal(local_do(f, "x", 0, "{}", &rev), STATUS_OK);
	assert_int_equal(rev, 1);
	assert_int_equal(local_do(f, "x", 41, "{}", &rev), STATUS_OK);
	assert_int_equal(rev, 42);
	assert_int_equal(local_do(f, "x", INT64_MAX, "{}", NULL), STATUS_INVALID);
	/* They are no documents. */
	assert_string_equal(fixture_changes(f), "");
	fixture_check(f);
}

static void
assert_locals(struct fixture *f, struct name_range range, const char *want, bool more)
{
	struct kv_tx *tx = begin(f, KV_TX_READ_ONLY);
	struct buf b = BUF_INIT(10000);
	struct rev_entry_page page;

	assert_int_equal(rev_local_page(tx, f->db, &range, f->arena, &page), STATUS_OK);
	kv_tx_free(tx);
	for (size_t i = 0; i < page.count; i++) {
		buf_append_cstr(&b, i ? " " : "");
		buf_append_str(&b, page.entries[i].id);
		buf_append_byte(&b, ':');
		rev_id_write(page.entries[i].rev, &b);
	}
	buf_append_byte(&b, 0);
	assert_string_equal(b.ptr, want);
	assert_int_equal(page.more, more);
	buf_release(&b);
}

static void
local_documents_are_listed_without_their_leaves(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(local_do(f, "a", 0, "{\"a\":[1,2,3],\"b\":2}", NULL), STATUS_OK);
	assert_int_equal(local_do(f, "b", 0, "{}", NULL), STATUS_OK);
	assert_int_equal(local_do(f, "c", 0, "{\"c\":1}", NULL), STATUS_OK);
	assert_int_equal(local_do(f, "c", 1, "{\"c\":1}", NULL), STATUS_OK);
	assert_locals(f, (struct name_range){ .limit = 9 }, "a:0-1 b:0-1 c:0-2", false);
	assert_locals(f, (struct name_range){ .limit = 1, .skip = 1 }, "b:0-1", true);
	assert_locals(f, (struct name_range){ .limit = 3 }, "a:0-1 b:0-1 c:0-2", false);
	assert_locals(f, (struct name_range){ .limit = 9, .descending = true }, "c:0-2 b:0-1 a:0-1",
		      false);
	assert_locals(
		f,
		(struct name_range){
			.limit = 9, .has_begin = true, .begin = STR("a"), .exclusive_begin = true },
		"b:0-1 c:0-2", false);
	assert_locals(f, (struct name_range){ .limit = 9, .has_end = true, .end = STR("a") },
		      "a:0-1", false);
	assert_locals(f,
		      (struct name_range){ .limit = 9,
					   .has_begin = true,
					   .begin = STR("c"),
					   .exclusive_begin = true,
					   .descending = true },
		      "b:0-1 a:0-1", false);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		TEST(names_are_couchdbs),
		TEST(a_database_is_created_once),
		TEST(a_deleted_database_takes_everything_with_it),
		TEST(a_large_deleted_database_is_cleared_bit_by_bit),
		TEST(databases_do_not_see_each_other),
		TEST(a_description_tells_what_was_created),
		TEST(a_cached_description_costs_no_read),
		TEST(opening_a_database_the_first_time_waits_twice),
		TEST(a_cache_follows_a_database_that_was_made_again),
		TEST(creations_conflict_only_over_a_name),
		TEST(a_cache_does_not_keep_what_was_never_committed),
		TEST(a_write_conflicts_with_the_deletion_of_its_database),
		TEST(a_database_can_be_opened_where_it_was_created),
		TEST(names_are_listed_in_order_and_in_pages),
		TEST(settings_are_kept),
		TEST(revs_limit_has_bounds),
		TEST(options_that_no_database_has_are_corrupt),
		TEST(local_documents_count_their_revisions),
		TEST(local_documents_are_listed_without_their_leaves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
