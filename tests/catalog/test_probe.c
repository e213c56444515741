/*
 * What operations on the catalog and on leases answer when a call of the store fails, when their
 * memory ends and when what they read is damaged; and by what they conflict (probe.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "catalog/catalog_int.h"
#include "catalog/events.h"
#include "catalog/lease.h"
#include "catalog/move.h"
#include "catalog/move_int.h"
#include "catalog/stored_settings.h"
#include "catalog/store_format.h"
#include "catalog/tally.h"
#include "catalog/verify.h"
#include "kv/faulty/faulty.h"
#include "kv/keyspace.h"
#include "probe.h"
#include "store.h"
#include "tiny.h"

enum {
	KEYS = 400,
	RANGE_KEYS = 20, /* of the counters of a database */
	TENDS = 50,
	DROPPED_NUMBER = 100, /* of a deleted database; the next one keeps keys for a while */
	KEPT_UNTIL_MS = 5000,
};

static const struct catalog_tally_sizes sizes = { RANGE_KEYS, 2 };

#define TINY ((enum catalog_space)TINY_SPACE)

struct world {
	char dir[64];
	struct kv_store *store;
	struct kv_store *target; /* where one database is moved to */
	struct catalog_db *db;   /* "1", which has keys */
	struct arena *arena;
};

static void
say(struct probe *p, struct str s)
{
	buf_append_str(&p->said, s);
	buf_append_byte(&p->said, '|');
}

static void
say_number(struct probe *p, uint64_t n)
{
	buf_printf(&p->said, "%llu|", (unsigned long long)n);
}

static void
say_db(struct probe *p, const struct catalog_db *db)
{
	say(p, db->name);
	say(p, str_of(db->uuid, sizeof(db->uuid)));
	say_number(p, db->number);
	say_number(p, db->incarnation);
	say_number(p, db->created_ms);
	say_number(p, db->fence);
	for (size_t i = 0; i < CATALOG_OPTIONS; i++)
		say_number(p, db->options[i]);
}

static const struct catalog_db *
db_of(const struct probe *p)
{
	const struct world *w = p->world;

	return w->db;
}

/* ---- Databases ---- */

static enum status
open_any(struct probe *p, const char *name)
{
	struct catalog_db *db = NULL;

	probe_begin(p);
	TRY(catalog_open(p->tx, NULL, TINY, str_from_cstr(name), &db, &p->err));
	say_db(p, db);
	catalog_db_unref(db);
	return STATUS_OK;
}

static enum status
open_one(struct probe *p)
{
	return open_any(p, "1");
}

static enum status
open_nothing(struct probe *p)
{
	return open_any(p, "99");
}

static enum status
open_moving(struct probe *p)
{
	return open_any(p, "3");
}

static enum status
open_bare(struct probe *p)
{
	struct catalog_db *db = NULL;

	probe_begin(p);
	TRY(catalog_open_bare(p->tx, NULL, TINY, STR("1"), &db, &p->err));
	say_db(p, db);
	catalog_db_unref(db);
	return STATUS_OK;
}

static enum status
check_now(struct probe *p)
{
	probe_begin(p);
	return catalog_db_check_now(p->tx, db_of(p), &p->err);
}

static enum status
list(struct probe *p)
{
	const struct name_range range = { .limit = 10, .skip = 1 };
	struct name_page page;

	probe_begin(p);
	TRY(catalog_list(p->tx, TINY, &range, p->arena, &page));
	for (size_t i = 0; i < page.count; i++)
		say(p, page.names[i]);
	return STATUS_OK;
}

static enum status
all(struct probe *p)
{
	AUTO(buf_release) struct buf last = BUF_INIT(10000);
	struct catalog_page page;

	probe_begin(p);
	TRY(catalog_all(p->tx, &last, 2, p->arena, &page, &p->err));
	for (size_t i = 0; i < page.count; i++)
		say_db(p, &page.dbs[i]);
	say_number(p, page.more);
	return STATUS_OK;
}

static enum status delete (struct probe *p) {
	probe_begin(p); return catalog_delete(p->tx, TINY, STR("1"), &p->err);
}

static enum status
delete_moving(struct probe *p)
{
	probe_begin(p);
	return catalog_delete(p->tx, TINY, STR("3"), &p->err);
}

static enum status
rename_one(struct probe *p)
{
	probe_begin(p);
	return catalog_rename(p->tx, tiny_kind(), STR("1"), STR("77"), &p->err);
}

static enum status
swap(struct probe *p)
{
	probe_begin(p);
	return catalog_swap(p->tx, TINY, STR("1"), STR("2"), &p->err);
}

static enum status
option_set(struct probe *p)
{
	probe_begin(p);
	return catalog_option_set(p->tx, db_of(p), 1, 5, &p->err);
}

static enum status
raise_one(struct probe *p)
{
	probe_begin(p);
	return catalog_incarnation_raise(p->tx, TINY, STR("1"), &p->err);
}

static enum status
store_incarnation(struct probe *p)
{
	uint8_t n;

	probe_begin(p);
	TRY(catalog_store_incarnation(p->tx, &n));
	say_number(p, n);
	return STATUS_OK;
}

static enum status
check_reached(struct probe *p)
{
	const struct catalog_seq seq = { { 0, 0, 0, 0, 0, 0, 0, 0, 1 } };

	probe_begin(p);
	return catalog_seq_check_reached(p->tx, &seq, &p->err);
}

static enum status
events(struct probe *p)
{
	struct catalog_events_wanted wanted = { .space = TINY, .most = 10 };
	struct catalog_events s;
	enum status status = STATUS_OK;

	memset(wanted.before.bytes, 0xff, sizeof(wanted.before.bytes));
	probe_begin(p);
	catalog_events_init(&s, &wanted, p->arena, NULL);
	while (status == STATUS_OK && !s.done)
		status = catalog_events_page(p->tx, &s, &p->err);
	if (status == STATUS_OK)
		catalog_events_sort(&s);
	for (size_t i = 0; status == STATUS_OK && i < s.count; i++) {
		struct catalog_event e = catalog_events_at(&s, i);

		say(p, e.name);
		say_number(p, e.kind);
	}
	catalog_events_release(&s);
	return status;
}

static enum status
watch(struct probe *p)
{
	struct kv_future *f;

	probe_begin(p);
	TRY(catalog_watch(p->tx, &f));
	kv_future_free(f);
	TRY(catalog_watch_name(p->tx, TINY, STR("1"), &f));
	kv_future_free(f);
	return STATUS_OK;
}

static const struct probe_op databases[] = {
	{ "open", open_one, "ok, conflicts 1 0+0; 1: C/CNCNC~C~C~C 2-12: O/O" },
	{ "open what is not there", open_nothing, "not_found, conflicts 1 0+0" },
	{ "open what is being moved", open_moving, "ok, conflicts 1 0+0; 1: C~C/CNCNC~C~C~C" },
	{ "open bare", open_bare, "ok, conflicts 1 0+0; 1: C/CNCNC~C~C~C" },
	{ "check", check_now, "ok, conflicts 1 0+0; 1: C/CNCNC0COCOC" },
	{ "list", list, "ok, conflicts 0 0+0; 1-3: O/O" },
	{ "all of all kinds", all,
	  "ok, conflicts 0 0+0; despite allocation 14=ok; 1: C/CNCNC~C~C~C 2: ~/~ 3: O/O" },
	{ "delete", delete, "ok, conflicts 2 0+0; 1: C/CNCNCOCOCOC" },
	{ "delete what is being moved", delete_moving,
	  "unavailable, conflicts 1 0+0; 1: C~C/CNCNCOCOCOC" },
	{ "rename", rename_one, "ok, conflicts 3 0+0; 1: C/CNCNCOCOCOC" },
	{ "swap", swap, "ok, conflicts 2 0+0; 1-2: C/CNCNCOCOCOC" },
	{ "set an option", option_set, "ok, conflicts 1 0+0; 1: C/CNCNC0COCOC" },
	{ "raise the Incarnation", raise_one, "ok, conflicts 2 0+0; 1: C/CNCNCOCOCOC" },
	{ "the store's Incarnation", store_incarnation, "ok, conflicts 1 0+0" },
	{ "a Sequence that was reached", check_reached, "ok, conflicts 1 0+0" },
	{ "events", events,
	  "ok, conflicts 1 0+0; 1-2: C/CNC~CO 3: C/CNC~OCO 4-5: C/CNCNCOCOCOC 6: "
	  "COC/CNCNCOCOCOC" },
	{ "watch", watch, "ok, conflicts 0 0+0; despite 1=ok 2=ok" },
};

/* ---- Databases, of which another one is in the way, and those that go ---- */

static enum status
create_any(struct probe *p, const char *name)
{
	probe_begin(p);
	return catalog_create(p->tx, tiny_kind(), str_from_cstr(name),
			      (const uint64_t[CATALOG_OPTIONS]){ 0, 3 }, &p->err);
}

static enum status
create_new(struct probe *p)
{
	return create_any(p, "50");
}

static enum status
create_again(struct probe *p)
{
	return create_any(p, "2");
}

static enum status
create_misnamed(struct probe *p)
{
	return create_any(p, "x");
}

static enum status
create_what_is_moving(struct probe *p)
{
	return create_any(p, "3");
}

static enum status
replace_any(struct probe *p, const char *name)
{
	struct catalog_db *db = NULL;

	probe_begin(p);
	TRY(catalog_replace(p->tx, tiny_kind(), str_from_cstr(name),
			    (const uint64_t[CATALOG_OPTIONS]){ 0, 3 }, &p->err));
	TRY(catalog_open(p->tx, NULL, TINY, str_from_cstr(name), &db, &p->err));
	say_number(p, db->options[1]);
	say_number(p, db->number == db_of(p)->number);
	catalog_db_unref(db);
	return STATUS_OK;
}

static enum status
replace(struct probe *p)
{
	return replace_any(p, "1");
}

static enum status
replace_nothing(struct probe *p)
{
	return replace_any(p, "99");
}

static enum status
replace_moving(struct probe *p)
{
	return replace_any(p, "3");
}

static enum status
rename_to(struct probe *p, const char *from, const char *to)
{
	probe_begin(p);
	return catalog_rename(p->tx, tiny_kind(), str_from_cstr(from), str_from_cstr(to), &p->err);
}

static enum status
rename_to_another(struct probe *p)
{
	return rename_to(p, "1", "2");
}

static enum status
rename_to_itself(struct probe *p)
{
	return rename_to(p, "1", "1");
}

static enum status
rename_to_no_name(struct probe *p)
{
	return rename_to(p, "1", "x");
}

static enum status
rename_nothing(struct probe *p)
{
	return rename_to(p, "99", "98");
}

static enum status
rename_moving(struct probe *p)
{
	return rename_to(p, "3", "98");
}

static enum status
rename_to_what_is_moving(struct probe *p)
{
	return rename_to(p, "1", "3");
}

static enum status
swap_moving(struct probe *p)
{
	probe_begin(p);
	return catalog_swap(p->tx, TINY, STR("1"), STR("3"), &p->err);
}

static enum status
swap_with_moving(struct probe *p)
{
	probe_begin(p);
	return catalog_swap(p->tx, TINY, STR("3"), STR("1"), &p->err);
}

static enum status
swap_with_nothing(struct probe *p)
{
	probe_begin(p);
	return catalog_swap(p->tx, TINY, STR("1"), STR("99"), &p->err);
}

static enum status
option_set_of_moving(struct probe *p)
{
	struct catalog_db db = *db_of(p);

	db.name = STR("3");
	probe_begin(p);
	/* It has another number, as one that was made again under its name. */
	return catalog_option_set(p->tx, &db, 1, 5, &p->err);
}

/* What a cache has is there without a read, and what it does not have is nothing. */
static enum status
open_cached(struct probe *p)
{
	struct catalog_cache *cache = catalog_cache_new();
	struct catalog_db *db = NULL, *again = NULL;
	enum status status;

	if (!cache)
		return STATUS_NOMEM;
	probe_begin(p);
	assert_null(catalog_cache_peek(cache, TINY, STR("1")));
	status = catalog_open(p->tx, cache, TINY, STR("1"), &db, &p->err);
	if (status == STATUS_OK) {
		again = catalog_open_cached(p->tx, cache, TINY, STR("1"));
		say_number(p, again == db);
		say_number(p, catalog_cache_peek(cache, TINY, STR("1")) == db);
		/* Some of these names are remembered in the same place. */
		for (unsigned i = 2; i < 2000; i++) {
			char name[16];

			(void)snprintf(name, sizeof(name), "%u", i);
			assert_null(catalog_cache_peek(cache, TINY, str_from_cstr(name)));
		}
		assert_null(catalog_cache_peek(cache, CATALOG_SPACE_COUCH, STR("1")));
		assert_null(catalog_open_cached(p->tx, cache, TINY, STR("2")));
	}
	catalog_db_unref(again);
	catalog_db_unref(db);
	catalog_cache_free(cache);
	return status;
}

static enum status
bytes(struct probe *p)
{
	uint64_t n;

	probe_begin(p);
	return catalog_db_bytes(p->tx, db_of(p), &n);
}

static enum status
watch_database(struct probe *p)
{
	const struct catalog_watched db = { .kind = tiny_kind(), .number = db_of(p)->number };
	struct kv_future *f;

	probe_begin(p);
	TRY(catalog_watch_db(p->tx, &db, &f));
	kv_future_free(f);
	return STATUS_OK;
}

static const struct probe_op others[] = {
	{ "create", create_new, "ok, conflicts 4 0+0; 1: C/CN" },
	{ "create what is there", create_again, "exists, conflicts 1 0+0; 1: C/CNCNCOCOCOC" },
	{ "create without a good name", create_misnamed, "invalid, conflicts 0 0+0" },
	{ "create what is being moved", create_what_is_moving,
	  "exists, conflicts 1 0+0; 1: COC/CNCNCOCOCOC" },
	{ "replace", replace, "ok, conflicts 7 0+0; 1: C/CNCNCOCOCOC 2: C/CN 3: C/CNCNCOCOCOC~" },
	{ "replace what is not there", replace_nothing, "not_found, conflicts 1 0+0" },
	{ "replace what is being moved", replace_moving,
	  "unavailable, conflicts 1 0+0; 1: COC/CNCNCOCOCOC" },
	{ "rename to another one's name", rename_to_another,
	  "exists, conflicts 2 0+0; 1-2: C/CNCNCOCOCOC" },
	{ "rename to the same name", rename_to_itself,
	  "exists, conflicts 2 0+0; 1-2: C/CNCNCOCOCOC" },
	{ "rename to no good name", rename_to_no_name, "invalid, conflicts 0 0+0" },
	{ "rename what is not there", rename_nothing, "not_found, conflicts 1 0+0" },
	{ "rename what is being moved", rename_moving,
	  "unavailable, conflicts 1 0+0; 1: C~C/CNCNCOCOCOC" },
	{ "rename to what is being moved", rename_to_what_is_moving,
	  "exists, conflicts 2 0+0; 1: C/CNCNCOCOCOC 2: COC/CNCNCOCOCOC" },
	{ "swap with what is being moved", swap_moving,
	  "unavailable, conflicts 2 0+0; 1: C/CNCNCOCOCOC 2: C~C/CNCNCOCOCOC" },
	{ "swap what is being moved", swap_with_moving,
	  "unavailable, conflicts 2 0+0; 1: C~C/CNCNCOCOCOC 2: C/CNCNCOCOCOC" },
	{ "swap with nothing", swap_with_nothing, "not_found, conflicts 2 0+0; 1: C/CNCNCOCOCOC" },
	{ "set an option of another one", option_set_of_moving,
	  "not_found, conflicts 1 0+0; 1: COC/CNCNCOCOCOC" },
	{ "open by a cache", open_cached,
	  "ok, conflicts 1 0+0; despite 5=ok 6=ok; 1: C/CNCNCOCOCOC 2-12: O/O" },
	{ "bytes", bytes, "ok, conflicts 0 0+0" },
	{ "watch a database", watch_database, "ok, conflicts 0 0+0; despite 1=ok" },
};

/* ---- Work with transactions of its own ---- */

/* A tiny kind that keeps some of its keys for a while. */
static struct catalog_kind keeping;

static void
keeping_register(void)
{
	keeping = *tiny_kind();
	keeping.number = TINY_KIND + 1;
	keeping.kept_spaces[0] = 1;
	catalog_kind_register(&keeping);
}

static enum status
list_behind(struct probe *p)
{
	struct name_page page;

	probe_begin(p);
	TRY(catalog_list_behind(p->store, TINY, STR("1"), 1, p->arena, &page, &p->err));
	say_number(p, page.more);
	for (size_t i = 0; i < page.count; i++)
		say(p, page.names[i]);
	TRY(catalog_list_behind(p->store, TINY, (struct str){ NULL, 0 }, 2, p->arena, &page,
				&p->err));
	for (size_t i = 0; i < page.count; i++)
		say(p, page.names[i]);
	return STATUS_OK;
}

static enum status
sweep_all(struct probe *p, uint64_t now_ms, unsigned transactions)
{
	bool more = true;

	probe_begin(p);
	TRY(catalog_drop_sweep(&(struct catalog_sweeping){ .store = p->store }, now_ms,
			       transactions, &more, &p->err));
	say_number(p, more);
	return STATUS_OK;
}

static enum status
sweep(struct probe *p)
{
	return sweep_all(p, 1000, 10);
}

static enum status
sweep_what_was_kept(struct probe *p)
{
	return sweep_all(p, KEPT_UNTIL_MS + 1, 10);
}

static enum status
sweep_a_little(struct probe *p)
{
	return sweep_all(p, 1000, 1);
}

static enum status
tend(struct probe *p)
{
	const struct world *w = p->world;
	bool more = false;

	probe_begin(p);
	TRY(catalog_tally_tend(p->store, w->db, &sizes, &more, &p->err));
	say_number(p, more);
	return STATUS_OK;
}

static void
note_kind(const struct catalog_finding *finding, void *arg)
{
	struct probe *p = arg;

	say(p, str_from_cstr(finding->kind));
}

/* As a server does it beside writers. */
static enum status
verify_in_ranges(struct probe *p)
{
	const struct catalog_verify_options options = {
		.found = note_kind, .arg = p, .ranges = true, .range_units = 150
	};
	struct catalog_verify_sum sum;
	struct kv_tx *tx;
	enum status status;

	assert_int_equal(kv_begin(p->store, KV_TX_READ_ONLY, &tx), STATUS_OK);
	probe_begin(p);
	status = catalog_verify_db(tx, TINY, STR("1"), &options, &sum, &p->err);
	kv_tx_free(tx);
	if (status == STATUS_OK)
		say_number(p, sum.documents);
	return status;
}

static const struct probe_op apart[] = {
	{ "list behind", list_behind, "ok, conflicts 0 0+0; 1-5: O/O" },
	{ "sweep", sweep, "ok, conflicts 4 0+0; 1-10: O/O" },
	{ "sweep what was kept", sweep_what_was_kept, "ok, conflicts 4 0+0; 1-10: O/O" },
	{ "sweep a little", sweep_a_little, "ok, conflicts 1 0+0; 1-5: O/O" },
	{ "tend", tend, "ok, conflicts 1 0+0; 1: C/CNCNC0COCOC 2-12: C/O" },
	{ "verify in ranges", verify_in_ranges, "ok, conflicts 6 0+0; 1: C/CNCNC~COCOC 2-12: O/O" },
};

static enum status
clear_root(struct kv_tx *tx, uint64_t part)
{
	AUTO(buf_release) struct buf begin = BUF_INIT(100);
	AUTO(buf_release) struct buf end = BUF_INIT(100);

	tuple_put_u64(&begin, KV_ROOT);
	tuple_put_u64(&begin, part);
	TRY(tuple_prefix_end(buf_str(&begin), &end));
	return kv_clear_range(tx, buf_str(&begin), buf_str(&end));
}

static enum status
dropped_body(struct kv_tx *tx, void *arg)
{
	(void)arg;
	TRY(clear_root(tx, KV_ROOT_DROPPED));
	TRY(clear_root(tx, KV_ROOT_KEPT));
	TRY(catalog_drop_begin(tx, tiny_kind(), DROPPED_NUMBER, 0));
	for (uint64_t number = DROPPED_NUMBER; number <= DROPPED_NUMBER + 1; number++)
		for (uint64_t i = 0; i < 3; i++) {
			AUTO(buf_release) struct buf key = BUF_INIT(100);

			tuple_put_u64(&key, number);
			tuple_put_u64(&key, i);
			TRY(kv_set(tx, buf_str(&key), STR("value")));
		}
	return catalog_drop_begin(tx, &keeping, DROPPED_NUMBER + 1, KEPT_UNTIL_MS);
}

static void
prepare_dropped(void *arg)
{
	struct world *w = arg;

	assert_int_equal(kv_run(kv_faulty_inner(w->store), dropped_body, w, NULL, NULL), STATUS_OK);
}

/* ---- Counters, settings, moves, the check ---- */

static enum status
put(struct probe *p)
{
	probe_begin(p);
	return tiny_put(p->tx, db_of(p), p->arena, STR("k1x"), STR("value"), &p->err);
}

static enum status
rank(struct probe *p)
{
	uint64_t before, behind;

	probe_begin(p);
	TRY(catalog_tally_rank(p->tx, db_of(p), 0, CATALOG_TALLY_END, false, &before));
	TRY(catalog_tally_rank(p->tx, db_of(p), 0, STR("\x02k2"), true, &behind));
	say_number(p, before);
	say_number(p, behind);
	return STATUS_OK;
}

static enum status
cut(struct probe *p)
{
	struct str bounds[4];
	uint64_t keys;
	size_t count;

	probe_begin(p);
	TRY(catalog_tally_cut(p->tx, db_of(p), 0, 4, p->arena, bounds, &count, &keys));
	for (size_t i = 0; i < count; i++)
		say(p, bounds[i]);
	say_number(p, keys);
	return STATUS_OK;
}

static enum status
settings_read(struct probe *p)
{
	struct catalog_settings settings;

	probe_begin(p);
	TRY(catalog_settings_read(p->tx, p->arena, &settings, &p->err));
	for (size_t i = 0; i < settings.count; i++) {
		say(p, settings.items[i].section);
		say(p, settings.items[i].name);
		say(p, settings.items[i].text);
		say_number(p, settings.items[i].text.ptr != NULL);
	}
	return STATUS_OK;
}

static enum status
setting_put(struct probe *p)
{
	const struct catalog_setting setting = { STR("s"), STR("n"), STR("other") };

	probe_begin(p);
	return catalog_setting_put(p->tx, &setting, &p->err);
}

static enum status
moves(struct probe *p)
{
	struct catalog_move *found;
	size_t count;

	probe_begin(p);
	TRY(catalog_moves_read(p->tx, p->arena, &found, &count, &p->err));
	for (size_t i = 0; i < count; i++) {
		say(p, found[i].name);
		say(p, found[i].other);
		say_number(p, found[i].state);
		say_number(p, found[i].begun_ms);
		say_number(p, found[i].keep);
	}
	return STATUS_OK;
}

static enum status
move_get(struct probe *p)
{
	struct catalog_move move = { 0 };

	probe_begin(p);
	TRY(catalog_move_get(p->tx, CATALOG_SPACE_COUCH, STR("none"), p->arena, &move, &p->err));
	say_number(p, move.state);
	return STATUS_OK;
}

static const struct probe_op at_target[] = {
	{ "read moves at the target", moves, "ok, conflicts 0 0+0; 1: C/CNCOCOC~C~COC" },
};

static const struct probe_op around[] = {
	{ "count a key", put, "ok, conflicts 0 0+0" },
	{ "rank", rank, "ok, conflicts 0 0+0; 1-12: C/O" },
	{ "cut a list", cut, "ok, conflicts 0 0+0; 1-12: C/~" },
	{ "read settings", settings_read, "ok, conflicts 0 0+0; 1: C/CNC~C 2: C/CNC" },
	{ "put a setting", setting_put, "ok, conflicts 0 0+0" },
	{ "read moves", moves, "ok, conflicts 0 0+0; 1: C/CNCOCOC~C~C" },
	{ "get a move that is not there", move_get, "ok, conflicts 1 0+0" },
	{ "verify", probe_verify,
	  "ok, conflicts 0 0+0; 1: ~/~O 2-3: ~/~O~O~ 4: ~O~/~O~O~ 5: ~/~O 6: ~/O 7-9: "
	  "~/~O~O 10: ~/~O~O~O~O~ 11: ~/~O~ 12: ~/~" },
};

/* ---- Leases ---- */

#define OTHER "0123456789abcdef"

static enum status
ask_leases(struct lease_exchange *exchange, void *arg)
{
	static const char *const names[] = { "free", "taken" };
	struct probe *p = arg;

	for (size_t i = 0; i < 2; i++) {
		struct lease_entry *entry = lease_find(exchange, str_from_cstr(names[i]));
		const struct str texts[] = { STR("text") };

		say_number(p, lease_is_free(exchange, entry));
		if (entry && !entry->newer)
			say(p, entry->record.texts[0]);
		if (lease_is_free(exchange, entry))
			TRY(lease_hold(exchange, str_from_cstr(names[i]), entry, texts));
	}
	return STATUS_OK;
}

static enum status
exchange(struct probe *p, size_t known_bytes, bool leave)
{
	const struct leases_config config = {
		.store = p->store,
		.space = LEASE_JOBS,
		.texts = 1,
		.known_bytes = known_bytes,
		.ask = ask_leases,
		.arg = p,
	};
	struct leases *leases = leases_new(&config);
	enum status status;

	assert_non_null(leases);
	probe_begin(p);
	status = leases_exchange(leases, leave, &p->err);
	if (status == STATUS_OK) {
		size_t count;

		leases_adopt(leases);
		(void)leases_known(leases, &count);
		say_number(p, count);
	}
	leases_free(leases);
	return status;
}

static enum status
exchange_and_hold(struct probe *p)
{
	return exchange(p, 100000, false);
}

static enum status
exchange_and_leave(struct probe *p)
{
	return exchange(p, 100000, true);
}

static enum status
exchange_without_room(struct probe *p)
{
	return exchange(p, 10, false);
}

static enum status
clear(struct probe *p)
{
	probe_begin(p);
	return lease_clear(p->store, LEASE_JOBS, STR("taken"), &p->err);
}

static enum status
clear_nothing(struct probe *p)
{
	probe_begin(p);
	return lease_clear(p->store, LEASE_JOBS, STR("nowhere"), &p->err);
}

static const struct probe_op leasing[] = {
	{ "exchange", exchange_and_hold, "ok, conflicts 2 0+0; 1: O/O 2: ~/~" },
	{ "leave", exchange_and_leave, "ok, conflicts 2 0+0; 1: O/O 2: ~/~O~O~" },
	{ "exchange without room", exchange_without_room,
	  "limit, conflicts 2 0+0; 1: O/O 2: ~O/~O" },
	{ "clear", clear, "ok, conflicts 1 0+0; 1: O/O" },
	{ "clear what is not there", clear_nothing, "not_found, conflicts 1 0+0" },
};

static enum status
leases_body(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf key = BUF_INIT(LEASE_KEY_BYTES);
	AUTO(buf_release) struct buf end = BUF_INIT(LEASE_KEY_BYTES);
	AUTO(buf_release) struct buf value = BUF_INIT(LEASE_KEY_BYTES);
	const struct lease_record taken = { STR(OTHER), { STR("other's") } };

	(void)arg;
	for (enum lease_space space = LEASE_BEATS; space <= LEASE_JOBS; space++) {
		TRY(lease_record_key(space, (struct str){ NULL, 0 }, &key));
		buf_clear(&end);
		buf_append_str(&end, buf_str(&key));
		buf_append_byte(&end, '\xff');
		TRY(kv_clear_range(tx, buf_str(&key), buf_str(&end)));
	}
	TRY(lease_record_key(LEASE_BEATS, STR(OTHER), &key));
	lease_record_put_beat(7, LEASE_MS, &value);
	TRY(kv_set(tx, buf_str(&key), buf_str(&value)));
	buf_clear(&value);
	TRY(lease_record_key(LEASE_JOBS, STR("taken"), &key));
	lease_record_put(&taken, 1, &value);
	return kv_set(tx, buf_str(&key), buf_str(&value));
}

static void
prepare_leases(void *arg)
{
	const struct world *w = arg;

	assert_int_equal(kv_run(kv_faulty_inner(w->store), leases_body, NULL, NULL, NULL),
			 STATUS_OK);
}

/* ---- The world ---- */

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	const struct catalog_setting set = { STR("s"), STR("n"), STR("text") };
	const struct catalog_setting unset = { STR("s"), STR("u"), { NULL, 0 } };

	(void)arg;
	TRY(catalog_setting_put(tx, &set, NULL));
	TRY(catalog_setting_put(tx, &unset, NULL));
	TRY(tiny_create(tx, STR("1"), NULL));
	TRY(tiny_create(tx, STR("2"), NULL));
	return tiny_create(tx, STR("3"), NULL);
}

static enum status
fill_body(struct kv_tx *tx, void *arg)
{
	struct world *w = arg;
	char name[16];

	TRY(catalog_open(tx, NULL, TINY, STR("1"), &w->db, NULL));
	for (int i = 0; i < KEYS; i++) {
		(void)snprintf(name, sizeof(name), "k%d", 1000 + i);
		TRY(tiny_put(tx, w->db, w->arena, str_from_cstr(name), STR("value"), NULL));
	}
	return STATUS_OK;
}

static enum status
reopen_body(struct kv_tx *tx, void *arg)
{
	struct world *w = arg;

	return catalog_open(tx, NULL, TINY, STR("1"), &w->db, NULL);
}

static enum status
stop_moving(const struct catalog_move_progress *progress, void *arg)
{
	(void)arg;
	return progress->source == CATALOG_MOVE_MOVING ? STATUS_CANCELLED : STATUS_OK;
}

static void
begin_move(struct world *w)
{
	const struct catalog_move_options options = {
		.from = w->store,
		.to = w->target,
		.from_url = "embedded:source",
		.to_url = "embedded:target",
		.space = TINY,
		.name = STR("3"),
		.progress = stop_moving,
	};
	struct catalog_move_sum sum;

	assert_int_equal(catalog_move(&options, &sum, NULL), STATUS_CANCELLED);
}

static void
open_store(const struct world *w, const char *name, struct kv_store **ret)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct err err = { 0 };
	char path[128], url[256];

	(void)snprintf(path, sizeof(path), "%s/%s", w->dir, name);
	probe_store_url(path, url, sizeof(url));
	if (catalog_store_open(url, &options, ret, &err) != STATUS_OK)
		fail_msg("%s", err.text);
}

static void
must_run(struct world *w, kv_body *body)
{
	struct err err = { 0 };

	if (kv_run(w->store, body, w, NULL, &err) != STATUS_OK)
		fail_msg("%s", err.text);
}

static int
setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	bool more = true;

	test_show_failures();
	tiny_register();
	keeping_register();
	test_make_dir("probe", w->dir, sizeof(w->dir));
	open_store(w, "store", &w->store);
	open_store(w, "target", &w->target);
	w->arena = arena_new(SIZE_MAX);
	must_run(w, create_body);
	must_run(w, fill_body);
	for (int i = 0; more && i < TENDS; i++)
		assert_int_equal(catalog_tally_tend(w->store, w->db, &sizes, &more, NULL),
				 STATUS_OK);
	catalog_db_unref(w->db);
	must_run(w, reopen_body);
	begin_move(w);
	*state = w;
	return 0;
}

static int
teardown(void **state)
{
	struct world *w = *state;

	catalog_db_unref(w->db);
	arena_free(w->arena);
	kv_close(w->store);
	kv_close(w->target);
	test_remove_tree(w->dir);
	free(w);
	return 0;
}

#define COUNT(ops) (sizeof(ops) / sizeof((ops)[0]))

static void
databases_hand_failures_on(void **state)
{
	struct world *w = *state;

	probe_each(w->store, w, databases, COUNT(databases));
}

static enum status
number_body(struct kv_tx *tx, void *arg)
{
	(void)arg;
	return tiny_create(tx, STR("60"), NULL);
}

static void
databases_in_each_others_way_hand_failures_on(void **state)
{
	struct world *w = *state;

	/* A block of numbers is taken once in a while, and not in the middle of this. */
	must_run(w, number_body);
	probe_each(w->store, w, others, COUNT(others));
}

static void
work_apart_hands_failures_on(void **state)
{
	struct world *w = *state;

	probe_each_alone(w->store, w, prepare_dropped, apart, COUNT(apart));
}

static enum status
left_body(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf begin = BUF_INIT(100);
	AUTO(buf_release) struct buf end = BUF_INIT(100);
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct kv_pair pair;
	enum status status;

	tuple_put_u64(&begin, DROPPED_NUMBER);
	tuple_put_u64(&end, DROPPED_NUMBER + 2);
	TRY(kv_scan_init(&scan, tx, buf_str(&begin), buf_str(&end), NULL));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		buf_append_hex(arg, pair.key);
		buf_append_byte(arg, ' ');
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static void
sweep_leaves(struct world *w, uint64_t now_ms, const char *expected)
{
	AUTO(buf_release) struct buf left = BUF_INIT(1000);
	bool more = true;

	assert_int_equal(catalog_drop_sweep(&(struct catalog_sweeping){ .store = w->store }, now_ms,
					    10, &more, NULL),
			 STATUS_OK);
	assert_false(more);
	assert_int_equal(kv_run_read(w->store, left_body, &left, NULL), STATUS_OK);
	buf_append_byte(&left, '\0');
	assert_string_equal(left.ptr, expected);
}

static void
what_a_kind_keeps_stays_until_its_time(void **state)
{
	struct world *w = *state;

	prepare_dropped(w);
	sweep_leaves(w, 1000, "15651501 ");
	sweep_leaves(w, KEPT_UNTIL_MS - 1, "15651501 ");
	sweep_leaves(w, KEPT_UNTIL_MS, "");
	/* One whose time has passed before anybody looks. */
	prepare_dropped(w);
	sweep_leaves(w, KEPT_UNTIL_MS, "");
}

static void
count_findings(const struct catalog_finding *finding, void *arg)
{
	(void)finding;
	++*(unsigned *)arg;
}

/* Whichever call fails because its transaction is too old. */
static void
the_check_of_one_that_stands_still_reads_again(void **state)
{
	struct world *w = *state;
	struct kv_faulty_tap tap = { .cut = SIZE_MAX,
				     .flip = SIZE_MAX,
				     .fail_with = STATUS_TX_TOO_OLD };
	unsigned found = 0;
	const struct catalog_verify_options options = { .found = count_findings, .arg = &found };
	struct catalog_verify_sum sum;
	struct err err = { 0 };

	do {
		enum status status;

		tap.calls = 0;
		kv_faulty_tap(w->store, &tap);
		status = catalog_verify_still(w->store, w->db, &options, &sum, &err);
		kv_faulty_tap(w->store, NULL);
		if (status != STATUS_OK)
			fail_msg("call %u: %s %s", tap.fail_call, status_name(status), err.text);
		assert_int_equal(sum.documents, KEYS);
		assert_int_equal(found, 0);
	} while (tap.fail_call++ <= tap.calls);
	assert_true(tap.calls > 5);
}

static void
what_is_around_hands_failures_on(void **state)
{
	struct world *w = *state;

	probe_each(w->store, w, around, COUNT(around));
}

static void
a_target_hands_failures_on(void **state)
{
	struct world *w = *state;

	probe_each(w->target, w, at_target, COUNT(at_target));
}

static void
leases_hand_failures_on(void **state)
{
	struct world *w = *state;

	probe_each_alone(w->store, w, prepare_leases, leasing, COUNT(leasing));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(databases_hand_failures_on, setup, teardown),
		cmocka_unit_test_setup_teardown(databases_in_each_others_way_hand_failures_on,
						setup, teardown),
		cmocka_unit_test_setup_teardown(work_apart_hands_failures_on, setup, teardown),
		cmocka_unit_test_setup_teardown(what_a_kind_keeps_stays_until_its_time, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_check_of_one_that_stands_still_reads_again,
						setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_around_hands_failures_on, setup, teardown),
		cmocka_unit_test_setup_teardown(a_target_hands_failures_on, setup, teardown),
		cmocka_unit_test_setup_teardown(leases_hand_failures_on, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
