/*
 * Counters by range: exact whatever writers know of ranges, and bounded reads once somebody has
 * tended them.
 */
#include "fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/rand.h"
#include "catalog/tally_int.h"
#include "kv/engine.h"
#include "kv/tuple.h"
#include "model/revisioned/revisioned_int.h"

enum {
	PLACES = 30, /* that are compared, and a few more */
	TINY = 4,    /* keys of a new range */
	DOCS = 150,  /* ids of the random workload */
	STEPS = 250,
	GUIDES = 3, /* descriptions of different age, that edits are made through */
	PURGED_EVERY = 6,
	WRITERS = 4,
	TENDERS = 2,
	ROUNDS = 20, /* batches of each writer */
	MANY = 8000,
	BATCH = 500,
};

static const struct catalog_tally_sizes tiny = { TINY, 2 };

/* The counters of a list. */
static size_t
ranges_of(struct fixture *f, enum rev_subspace space)
{
	struct buf lo = BUF_INIT(64), hi = BUF_INIT(64);
	struct kv_scan scan = { 0 };
	struct kv_tx *tx = fixture_begin(f);
	struct kv_pair pair;
	size_t n = 0;

	buf_append_str(&lo, f->db->prefix);
	tuple_put_u64(&lo, REV_SUBSPACE_TALLIES);
	tuple_put_u64(&lo, space);
	assert_int_equal(tuple_prefix_end(buf_str(&lo), &hi), STATUS_OK);
	assert_int_equal(kv_scan_init(&scan, tx, buf_str(&lo), buf_str(&hi), NULL), STATUS_OK);
	while (kv_scan_next(&scan, &pair) == STATUS_OK)
		n++;
	kv_scan_release(&scan);
	kv_tx_free(tx);
	buf_release(&lo);
	buf_release(&hi);
	return n;
}

static bool
tend(struct fixture *f, const struct catalog_tally_sizes *sizes)
{
	struct err err = { 0 };
	bool more;
	enum status status = catalog_tally_tend(f->store, f->db, sizes, &more, &err);

	if (status != STATUS_OK)
		fail_msg("catalog_tally_tend: %s %s", status_name(status), err.text);
	return more;
}

static void
tend_all(struct fixture *f, const struct catalog_tally_sizes *sizes)
{
	for (int i = 0; tend(f, sizes); i++)
		assert_true(i < 1000);
}

/* ---- Comparing with a count of everything ---- */

/* Places all over both lists, in one snapshot. */
static void
compare_all(struct fixture *f)
{
	struct arena_mark mark = arena_mark(f->arena);
	struct rev_change_range range = fixture_all_changes();
	struct name_range names = { .limit = SIZE_MAX };
	struct rev_entry_page entries;
	struct rev_change_page page;
	struct kv_tx *tx = fixture_begin(f);
	uint64_t n;

	assert_int_equal(rev_all_docs_page(tx, f->db, &names, f->arena, &entries), STATUS_OK);
	assert_false(entries.more);
	for (size_t i = 0; i < entries.count; i += 1 + entries.count / PLACES) {
		names = (struct name_range){ .begin = entries.entries[i].id, .has_begin = true };
		assert_int_equal(rev_all_docs_offset(tx, f->db, &names, &n), STATUS_OK);
		assert_int_equal(n, i);
		names.exclusive_begin = true;
		assert_int_equal(rev_all_docs_offset(tx, f->db, &names, &n), STATUS_OK);
		assert_int_equal(n, i + 1);
		names.descending = true;
		assert_int_equal(rev_all_docs_offset(tx, f->db, &names, &n), STATUS_OK);
		assert_int_equal(n, entries.count - i);
		names.exclusive_begin = false;
		assert_int_equal(rev_all_docs_offset(tx, f->db, &names, &n), STATUS_OK);
		assert_int_equal(n, entries.count - i - 1);
	}
	assert_int_equal(rev_changes_page(tx, f->db, &range, f->arena, &page), STATUS_OK);
	assert_false(page.more);
	assert_int_equal(rev_changes_count(tx, f->db, &range, &n), STATUS_OK);
	assert_int_equal(n, page.count);
	for (size_t i = 0; i < page.count; i += 1 + page.count / PLACES) {
		range = fixture_all_changes();
		range.since = page.changes[i].seq;
		assert_int_equal(rev_changes_count(tx, f->db, &range, &n), STATUS_OK);
		assert_int_equal(n, page.count - i - 1);
		range = fixture_all_changes();
		range.until = page.changes[i].seq;
		assert_int_equal(rev_changes_count(tx, f->db, &range, &n), STATUS_OK);
		assert_int_equal(n, i + 1);
		range.exclusive_until = true;
		range.since = page.changes[i / 2].seq;
		assert_int_equal(rev_changes_count(tx, f->db, &range, &n), STATUS_OK);
		assert_int_equal(n, i - i / 2 - (i > 0));
	}
	kv_tx_free(tx);
	arena_reset(f->arena, mark);
}

/* ---- A random workload ---- */

struct world {
	struct fixture *f;
	struct rand_seq rand;
	struct catalog_db *guides[GUIDES];
	const char *revs[DOCS]; /* NULL: not there, or deleted */
	const char *ids[DOCS];
};

static uint64_t
below(struct world *w, uint64_t n)
{
	return rand_seq_below(&w->rand, n);
}

struct open_call {
	struct catalog_db *db;
};

static enum status
open_body(struct kv_tx *tx, void *arg)
{
	struct open_call *c = arg;

	catalog_db_unref(c->db);
	c->db = NULL;
	return rev_db_open(tx, NULL, STR("db"), &c->db, NULL);
}

static struct catalog_db *
open_db(struct fixture *f)
{
	struct open_call c = { NULL };

	assert_int_equal(kv_run_read(f->store, open_body, &c, NULL), STATUS_OK);
	return c.db;
}

struct purge_call {
	const struct catalog_db *db;
	struct rev_purge_query query;
	struct rev_purge_result result;
	struct arena *arena;
};

static enum status
purge_body(struct kv_tx *tx, void *arg)
{
	struct purge_call *c = arg;

	return rev_purge(tx, c->db, &c->query, 1, c->arena, &c->result, NULL);
}

static void
purge(struct world *w, size_t doc)
{
	struct rev_id rev = fixture_rev(w->f, w->revs[doc]);
	struct purge_call c = { .db = w->f->db, .arena = w->f->arena };

	c.query = (struct rev_purge_query){ str_from_cstr(w->ids[doc]), &rev, 1 };
	assert_int_equal(kv_run(w->f->store, purge_body, &c, NULL, NULL), STATUS_OK);
	assert_int_equal(c.result.count, 1);
	w->revs[doc] = NULL;
}

/* Edits of different documents in one transaction, most of them near each other. */
static void
edit_some(struct world *w)
{
	struct fixture *f = w->f;
	size_t count = 1 + below(w, 12), first = below(w, DOCS), kept = 0;
	size_t docs[16];
	struct rev_edit edits[16];
	struct rev_result results[16];

	for (size_t i = 0; i < count; i++) {
		size_t doc = (first + i) % DOCS;
		const char *rev = w->revs[doc];

		if (rev && below(w, PURGED_EVERY) == 0) {
			purge(w, doc);
			continue;
		}
		docs[kept] = doc;
		edits[kept++] = fixture_edit(f, w->ids[doc], rev,
					     rev && below(w, 2) ? NULL : "{\"n\":1}");
	}
	if (kept == 0)
		return;
	fixture_write(f, edits, kept, results);
	for (size_t i = 0; i < kept; i++) {
		assert_int_equal(results[i].status, STATUS_OK);
		w->revs[docs[i]] = edits[i].deleted ? NULL : fixture_text(f, results[i].rev);
	}
}

/* Another description takes the fixture's place, sometimes a new one. */
static void
change_guide(struct world *w)
{
	size_t at = below(w, GUIDES);
	struct catalog_db *db = w->guides[at];

	if (!db || below(w, 4) == 0) {
		catalog_db_unref(db);
		db = open_db(w->f);
	}
	w->guides[at] = w->f->db;
	w->f->db = db;
}

static void
any_writer_counts_right_whatever_ranges_it_knows(void **state)
{
	struct fixture *f = *state;
	struct world w = { .f = f };
	uint64_t seed = test_seed();

	print_message("# FROND_TEST_SEED=%llu\n", (unsigned long long)seed);
	w.rand = (struct rand_seq){ seed };
	for (size_t i = 0; i < DOCS; i++)
		w.ids[i] = arena_printf(f->arena, i % 7 ? "d%04zu" : "d%04zu-%040d", i * 37 % 1000,
					0)
				   .ptr;
	for (int step = 0; step < STEPS; step++) {
		edit_some(&w);
		if (below(&w, 3) == 0)
			change_guide(&w);
		if (below(&w, 3) == 0)
			(void)tend(f, &tiny);
		if (step % 20 == 0)
			compare_all(f);
	}
	assert_true(ranges_of(f, REV_SUBSPACE_CHANGES) > 3);
	fixture_check(f);
	fixture_reopen(f);
	tend_all(f, &tiny);
	compare_all(f);
	fixture_check(f);
	for (size_t i = 0; i < GUIDES; i++)
		catalog_db_unref(w.guides[i]);
}

/* ---- Several at once ---- */

struct racer {
	struct fixture *f;
	struct catalog_db *db;
	struct arena *arena;
	unsigned number;
	const char *failed;
	struct rev_edit edits[8];
	struct rev_result results[8];
	size_t count;
};

static atomic_bool racing;

static enum status
race_body(struct kv_tx *tx, void *arg)
{
	struct racer *r = arg;

	return rev_write(tx, r->db, r->edits, r->count, 0, r->arena, r->results, NULL);
}

/* Documents that appear and go again, at ids that ascend, that come in any order, and old ones. */
static void *
race_write(void *arg)
{
	struct racer *r = arg;
	struct rand_seq rand;

	rand = (struct rand_seq){ r->number + 1 };
	for (unsigned round = 0; round < ROUNDS && !r->failed; round++) {
		r->count = sizeof(r->edits) / sizeof(r->edits[0]);
		for (unsigned i = 0; i < r->count; i++) {
			struct str id = { NULL, 0 };

			if (i % 2)
				id = arena_printf(r->arena, "z%06u-%u-%u", round, r->number, i);
			else
				id = arena_printf(
					r->arena, "%08llx",
					(unsigned long long)rand_seq_below(&rand, UINT32_MAX));
			r->edits[i] = (struct rev_edit){ .id = id };
		}
		if (kv_run(r->f->store, race_body, r, NULL, NULL) != STATUS_OK)
			r->failed = "a batch of new documents";
		/* Every other one goes again. */
		for (unsigned i = 0; i < r->count / 2 && round % 3; i++) {
			r->edits[i] = (struct rev_edit){ .id = r->edits[2 * i].id,
							 .deleted = round % 2,
							 .parent = r->results[2 * i].rev };
			if (r->results[2 * i].status != STATUS_OK)
				r->failed = "a new document";
		}
		r->count /= 2;
		if (round % 3 && kv_run(r->f->store, race_body, r, NULL, NULL) != STATUS_OK)
			r->failed = "a batch of deletions";
	}
	return NULL;
}

static void *
race_tend(void *arg)
{
	struct racer *r = arg;

	while (atomic_load(&racing) && !r->failed) {
		struct err err = { 0 };
		bool more;

		if (catalog_tally_tend(r->f->store, r->db, &tiny, &more, &err) != STATUS_OK)
			r->failed = arena_printf(r->arena, "tending: %s", err.text).ptr;
	}
	return NULL;
}

/*
 * Each tender renews the knowledge of half of the writers, and the last writer learns of ranges
 * from nobody, so that many count in ranges that others are about to take apart.
 */
static void
writers_and_tenders_at_once_leave_counts_right(void **state)
{
	struct fixture *f = *state;
	struct racer racers[WRITERS + TENDERS] = { 0 };
	pthread_t threads[WRITERS + TENDERS];

	atomic_store(&racing, true);
	for (unsigned i = 0; i < WRITERS + TENDERS; i++) {
		struct racer *r = &racers[i];

		*r = (struct racer){ .f = f, .number = i, .arena = arena_new(64 * 1024 * 1024) };
		assert_non_null(r->arena);
		if (i < TENDERS || i == WRITERS - 1)
			r->db = open_db(f);
		else
			r->db = catalog_db_ref(racers[i % TENDERS].db);
		assert_int_equal(
			pthread_create(&threads[i], NULL, i < WRITERS ? race_write : race_tend, r),
			0);
	}
	for (int i = 0; i < 10; i++)
		compare_all(f);
	for (unsigned i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	atomic_store(&racing, false);
	for (unsigned i = WRITERS; i < WRITERS + TENDERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	for (unsigned i = 0; i < WRITERS + TENDERS; i++) {
		if (racers[i].failed)
			fail_msg("%u: %s", i, racers[i].failed);
		arena_free(racers[i].arena);
		catalog_db_unref(racers[i].db);
	}
	fixture_check(f);
	compare_all(f);
	tend_all(f, &tiny);
	fixture_check(f);
	compare_all(f);
}

/* ---- What it costs ---- */

enum order {
	ORDER_ASCENDING,
	ORDER_RANDOM,
};

static void
put_many(struct fixture *f, enum order order)
{
	struct rev_edit *edits = arena_zalloc(f->arena, BATCH * sizeof(*edits));
	struct rev_result *results = arena_zalloc(f->arena, BATCH * sizeof(*results));

	assert_non_null(edits);
	assert_non_null(results);
	for (size_t i = 0; i < MANY; i += BATCH) {
		struct arena_mark mark = arena_mark(f->arena);

		for (size_t j = 0; j < BATCH; j++) {
			size_t n = order == ORDER_ASCENDING ? i + j : (i + j) * 7919 % MANY;

			edits[j] = fixture_edit(f, arena_printf(f->arena, "d%06zu", n).ptr, NULL,
						"{}");
		}
		fixture_write(f, edits, BATCH, results);
		arena_reset(f->arena, mark);
		(void)tend(f, NULL);
	}
	tend_all(f, NULL);
}

static uint64_t
cost_of_offset(struct fixture *f, size_t at, bool descending)
{
	struct name_range range = { .has_begin = true, .descending = descending };
	struct kv_tx *tx = fixture_begin(f);
	uint64_t n, cost;

	range.begin = arena_printf(f->arena, "d%06zu", at);
	assert_int_equal(rev_all_docs_offset(tx, f->db, &range, &n), STATUS_OK);
	assert_int_equal(n, descending ? MANY - 1 - at : at);
	cost = kv_tx_stats(tx).keys_read;
	kv_tx_free(tx);
	return cost;
}

static uint64_t
cost_of_pending(struct fixture *f, struct catalog_seq since, uint64_t want)
{
	struct rev_change_range range = fixture_all_changes();
	struct kv_tx *tx = fixture_begin(f);
	uint64_t n, cost;

	range.since = since;
	assert_int_equal(rev_changes_count(tx, f->db, &range, &n), STATUS_OK);
	assert_int_equal(n, want);
	cost = kv_tx_stats(tx).keys_read;
	kv_tx_free(tx);
	return cost;
}

/* A new range has half to one and a half times 256 keys here; one with more than 1,024 is cut. */
static void
check_costs(struct fixture *f, enum order order)
{
	static const size_t places[] = { 0, 1, MANY / 2, MANY - 2, MANY - 1 };
	struct rev_change_range range = fixture_all_changes();
	struct rev_change_page page;
	struct catalog_seq at = { { 0 } };
	struct kv_tx *tx;
	size_t left = MANY;
	const char *rev;

	put_many(f, order);
	assert_in_range(ranges_of(f, REV_SUBSPACE_ALL_DOCS), MANY / 1024, MANY / 128);
	assert_in_range(ranges_of(f, REV_SUBSPACE_CHANGES), MANY / 1024, MANY / 128);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		assert_true(cost_of_offset(f, places[i], false) <= 1024 + 64);
		assert_true(cost_of_offset(f, places[i], true) <= 1024 + 64);
	}
	assert_true(cost_of_pending(f, at, MANY) <= 1024 + 64);
	range.limit = MANY / 10;
	do {
		struct arena_mark mark = arena_mark(f->arena);

		range.since = at;
		tx = fixture_begin(f);
		assert_int_equal(rev_changes_page(tx, f->db, &range, f->arena, &page), STATUS_OK);
		kv_tx_free(tx);
		at = page.changes[page.count - 1].seq;
		left -= page.count;
		assert_true(cost_of_pending(f, at, left) <= 1024 + 64);
		arena_reset(f->arena, mark);
	} while (left);
	/* And a write costs what it always does. */
	rev = fixture_put(f, "e", NULL, "{}");
	assert_int_equal(f->cost.keys_read, 0);
	assert_int_equal(f->cost.round_trips, 1);
	rev = fixture_put(f, "e", rev, "{\"n\":1}");
	assert_int_equal(f->cost.keys_read, 1);
	assert_int_equal(f->cost.round_trips, 1);
	fixture_delete(f, "e", rev);
	assert_int_equal(f->cost.keys_read, 1);
	assert_int_equal(f->cost.round_trips, 1);
}

static void
page_anywhere_reads_few_keys_after_ids_came_in_order(void **state)
{
	check_costs(*state, ORDER_ASCENDING);
}

static void
page_anywhere_reads_few_keys_after_ids_came_in_any_order(void **state)
{
	check_costs(*state, ORDER_RANDOM);
}

/* ---- Estimates ---- */

static uint64_t
estimate_of(struct fixture *f, size_t from, size_t to)
{
	struct name_range range = { .has_begin = true, .has_end = true };
	struct kv_tx *tx = fixture_begin(f);
	uint64_t n;

	range.begin = arena_printf(f->arena, "d%04zu", from);
	range.end = arena_printf(f->arena, "d%04zu", to);
	assert_int_equal(rev_all_docs_estimate(tx, f->db, &range, &n), STATUS_OK);
	assert_int_equal(kv_tx_stats(tx).keys_read, 0);
	kv_tx_free(tx);
	return n;
}

/* Either end lies somewhere in a range, of which half is counted. */
static void
keys_between_ids_are_estimated_without_reading(void **state)
{
	enum {
		IDS = 3000,
		OFF = 110, /* a range has half the root of that many keys to four times as many */
	};
	struct fixture *f = *state;
	struct rev_edit *edits = arena_zalloc(f->arena, IDS * sizeof(*edits));
	struct rev_result *results = arena_zalloc(f->arena, BATCH * sizeof(*results));

	assert_non_null(edits);
	assert_non_null(results);

	for (size_t i = 0; i < IDS; i++)
		edits[i] = fixture_edit(f, arena_printf(f->arena, "d%04zu", i).ptr, NULL, "{}");
	for (size_t i = 0; i < IDS; i += BATCH)
		fixture_write(f, &edits[i], BATCH, results);
	tend_all(f, &tiny);
	for (size_t from = 0; from < IDS; from += 97) {
		assert_in_range(estimate_of(f, from, from), 1, OFF);
		for (size_t to = from + 3 * OFF; to < IDS; to += 429)
			assert_in_range(estimate_of(f, from, to), to - from - OFF, to - from + OFF);
	}
}

/* ---- Coming and going ---- */

static void
nothing_is_left_of_ranges_whose_documents_have_gone(void **state)
{
	struct fixture *f = *state;
	const char *revs[300];

	for (size_t i = 0; i < 300; i++)
		revs[i] = fixture_put(f, arena_printf(f->arena, "d%03zu", i).ptr, NULL, "{}");
	tend_all(f, &tiny);
	assert_true(ranges_of(f, REV_SUBSPACE_ALL_DOCS) >= 8);
	for (size_t i = 0; i < 300; i++)
		fixture_delete(f, arena_printf(f->arena, "d%03zu", i).ptr, revs[i]);
	compare_all(f);
	fixture_check(f);
	tend_all(f, &tiny);
	assert_in_range(ranges_of(f, REV_SUBSPACE_ALL_DOCS), 1, 2);
	compare_all(f);
	fixture_check(f);
}

static void
document_that_is_edited_again_and_again_makes_no_ranges(void **state)
{
	struct fixture *f = *state;
	const char *rev = NULL;

	for (int i = 0; i < 100; i++) {
		rev = fixture_put(f, "a", rev, arena_printf(f->arena, "{\"n\":%d}", i).ptr);
		tend_all(f, &tiny);
	}
	assert_int_equal(ranges_of(f, REV_SUBSPACE_CHANGES), 1);
	assert_int_equal(ranges_of(f, REV_SUBSPACE_ALL_DOCS), 1);
	compare_all(f);
}

static enum status
forget_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	struct buf lo = BUF_INIT(64), hi = BUF_INIT(64);
	enum status status;

	buf_append_str(&lo, f->db->prefix);
	tuple_put_u64(&lo, REV_SUBSPACE_TALLIES);
	assert_int_equal(tuple_prefix_end(buf_str(&lo), &hi), STATUS_OK);
	status = kv_clear_range(tx, buf_str(&lo), buf_str(&hi));
	buf_release(&lo);
	buf_release(&hi);
	return status;
}

/* As a database that was made before there were ranges. */
static void
database_without_ranges_is_counted_and_gets_them(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < 100; i++)
		fixture_put(f, arena_printf(f->arena, "d%03zu", i).ptr, NULL, "{}");
	assert_int_equal(kv_run(f->store, forget_body, f, NULL, NULL), STATUS_OK);
	fixture_reopen(f);
	compare_all(f);
	fixture_check(f);
	fixture_put(f, "new", NULL, "{}");
	compare_all(f);
	tend_all(f, &tiny);
	assert_true(ranges_of(f, REV_SUBSPACE_ALL_DOCS) > 4);
	compare_all(f);
	fixture_check(f);
}

/* ---- Two tenders ---- */

static struct fixture *interrupted;
static const struct kv_engine *true_engine;

/* The first commit comes after all that another tender does, and is not to take place. */
static struct kv_future *
commit_late(struct kv_tx *tx)
{
	struct fixture *f = interrupted;
	struct kv_future *commit;

	interrupted = NULL;
	if (f)
		tend_all(f, &tiny);
	commit = true_engine->commit(tx);
	if (f)
		assert_int_not_equal(kv_future_wait(commit), STATUS_OK);
	return commit;
}

static void
counts_are_moved_by_one_of_two_tenders(void **state)
{
	struct fixture *f = *state;
	static struct kv_engine late;

	for (size_t i = 0; i < 100; i++)
		fixture_put(f, arena_printf(f->arena, "d%03zu", i).ptr, NULL, "{}");
	/* What is in no range goes to one range of all keys: added twice, it would be wrong. */
	assert_int_equal(kv_run(f->store, forget_body, f, NULL, NULL), STATUS_OK);
	true_engine = f->store->engine;
	late = *true_engine;
	late.commit = commit_late;
	interrupted = f;
	f->store->engine = &late;
	tend_all(f, &tiny);
	f->store->engine = true_engine;
	assert_null(interrupted);
	compare_all(f);
	fixture_check(f);
}

struct range_set {
	struct fixture *f;
	const char *lo, *hi; /* first letters of ids; "": from the first one, or to the end */
	int64_t count;
};

static enum status
range_set_body(struct kv_tx *tx, void *arg)
{
	const struct range_set *r = arg;
	AUTO(buf_release) struct buf lo = BUF_INIT(64);
	AUTO(buf_release) struct buf hi = BUF_INIT(64);
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	/* The beginning of a string in a tuple. */
	if (*r->lo)
		buf_printf(&lo, "\2%s", r->lo);
	if (*r->hi)
		buf_printf(&hi, "\2%s", r->hi);
	else
		buf_append_str(&hi, CATALOG_TALLY_END);
	catalog_key_range(&key, r->f->db, REV_LIST_DOCS, buf_str(&lo), buf_str(&hi));
	TRY(catalog_key_status(&key));
	return catalog_counter_add(tx, &key, r->count);
}

static void
a_range_that_counts_wrong_does_not_keep_others_whole(void **state)
{
	enum {
		IDS = 100,
	};
	struct fixture *f = *state;
	struct range_set ranges[] = { { f, "", "b", IDS },
				      { f, "b", "c", IDS - 1 },
				      { f, "c", "d", IDS },
				      { f, "d", "", 1 } };
	struct err err = { 0 };
	bool more;

	for (size_t i = 0; i < 3 * IDS; i++)
		fixture_put(f, arena_printf(f->arena, "%c%03zu", (char)('a' + i % 3), i).ptr, NULL,
			    "{}");
	assert_int_equal(kv_run(f->store, forget_body, f, NULL, NULL), STATUS_OK);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(kv_run(f->store, range_set_body, &ranges[i], NULL, NULL),
				 STATUS_OK);
	assert_int_equal(ranges_of(f, REV_SUBSPACE_ALL_DOCS), 4);
	assert_int_equal(catalog_tally_tend(f->calm, f->db, &tiny, &more, &err), STATUS_CORRUPT);
	/* The first and the third one have been split into ranges of 17 to 25 keys. */
	assert_true(ranges_of(f, REV_SUBSPACE_ALL_DOCS) >= 2 * IDS / 25 + 2);
}

/* Keys of the list of ids: "a00000", "a00001" and so on, without documents. */
struct ids_put {
	struct fixture *f;
	char letter;
	int count;
};

static enum status
ids_put_body(struct kv_tx *tx, void *arg)
{
	const struct ids_put *p = arg;
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	char id[16];

	for (int i = 0; i < p->count; i++) {
		int n = snprintf(id, sizeof(id), "%c%05d", p->letter, i);

		catalog_key_list(&key, p->f->db, REV_LIST_DOCS);
		tuple_put_str(&key, str_of(id, (size_t)n));
		TRY(catalog_key_status(&key));
		TRY(kv_set(tx, buf_str(&key), STR("")));
	}
	return STATUS_OK;
}

enum {
	WIDE = 1000,                /* keys of a range; so many begin with the same letters */
	FIRST_IDS = 2 * WIDE + 100, /* a00000 to a02099 */
	FOLDED_IDS = 16 * WIDE,     /* of those behind them, that one transaction looks at */
	OTHER_IDS = FOLDED_IDS + WIDE + 600, /* b00000 to b17599 */
	UNSEEN = OTHER_IDS - FOLDED_IDS,
};

static const struct catalog_tally_sizes wide = { WIDE, 2 };

/* Beside the first step a writer of old knowledge has counted in a range that begins before. */
static struct kv_future *
commit_beside_a_writer(struct kv_tx *tx)
{
	struct fixture *f = interrupted;
	struct range_set ranges[] = { { f, "a02", "b02", UNSEEN }, { f, "b", "c", -UNSEEN } };

	interrupted = NULL;
	for (size_t i = 0; f && i < 2; i++)
		assert_int_equal(kv_run(f->calm, range_set_body, &ranges[i], NULL, NULL),
				 STATUS_OK);
	return true_engine->commit(tx);
}

static uint64_t
ids_before(struct fixture *f, const char *id)
{
	struct kv_tx *tx = fixture_begin(f);
	struct str at = arena_printf(f->arena, "\2%s", id);
	uint64_t n;

	assert_int_equal(catalog_tally_rank(tx, f->db, REV_LIST_DOCS, at, false, &n), STATUS_OK);
	kv_tx_free(tx);
	return n;
}

/* What could be looked at has as many keys as are counted there, and behind it there are more. */
static void
a_range_that_is_looked_at_in_part_is_not_split_by_itself(void **state)
{
	struct fixture *f = *state;
	struct ids_put ids[] = { { f, 'a', FIRST_IDS }, { f, 'b', OTHER_IDS } };
	struct range_set ranges[] = { { f, "", "b", FIRST_IDS },
				      { f, "b", "c", OTHER_IDS },
				      { f, "c", "", -FIRST_IDS - OTHER_IDS } };
	static struct kv_engine beside;
	bool more = true;

	for (size_t i = 0; i < 2; i++)
		assert_int_equal(kv_run(f->calm, ids_put_body, &ids[i], NULL, NULL), STATUS_OK);
	/* As many ids as documents, none: the last range has the difference. */
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(kv_run(f->calm, range_set_body, &ranges[i], NULL, NULL),
				 STATUS_OK);
	true_engine = f->calm->engine;
	beside = *true_engine;
	beside.commit = commit_beside_a_writer;
	interrupted = f;
	f->calm->engine = &beside;
	while (more)
		assert_int_equal(catalog_tally_tend(f->calm, f->db, &wide, &more, NULL), STATUS_OK);
	f->calm->engine = true_engine;
	assert_null(interrupted);
	assert_int_equal(ids_before(f, "a02"), 2 * WIDE);
	assert_int_equal(ids_before(f, "b03"), FIRST_IDS + 3 * WIDE);
	assert_int_equal(ids_before(f, "b16"), FIRST_IDS + FOLDED_IDS);
	assert_int_equal(ids_before(f, "b17"), FIRST_IDS + FOLDED_IDS + WIDE);
}

static enum status
delete_body(struct kv_tx *tx, void *arg)
{
	(void)arg;
	return catalog_delete(tx, CATALOG_SPACE_COUCH, STR("db"), NULL);
}

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	(void)arg;
	return rev_db_create(tx, STR("db"), REV_SCHEME_EXPLODED, NULL);
}

static void
deleted_database_is_not_tended(void **state)
{
	struct fixture *f = *state;
	bool more;

	for (size_t i = 0; i < 30; i++)
		fixture_put(f, arena_printf(f->arena, "d%03zu", i).ptr, NULL, "{}");
	assert_int_equal(kv_run(f->store, delete_body, NULL, NULL, NULL), STATUS_OK);
	assert_int_equal(catalog_tally_tend(f->store, f->db, &tiny, &more, NULL), STATUS_NOT_FOUND);
	assert_int_equal(kv_run(f->store, create_body, NULL, NULL, NULL), STATUS_OK);
	assert_int_equal(catalog_tally_tend(f->store, f->db, &tiny, &more, NULL), STATUS_NOT_FOUND);
	fixture_reopen(f);
	fixture_put(f, "a", NULL, "{}");
	compare_all(f);
	fixture_check(f);
}

/* As after a restore: new Sequences begin with another byte, and sort behind all others. */
static void
ranges_go_on_under_another_incarnation(void **state)
{
	struct fixture *f = *state;

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 40; i++)
			fixture_put(f, arena_printf(f->arena, "d%d-%02d", round, i).ptr, NULL,
				    "{}");
		tend_all(f, &tiny);
		compare_all(f);
		assert_int_equal(catalog_incarnations_raise(f->store, NULL, NULL), STATUS_OK);
		fixture_reopen(f);
	}
	assert_true(ranges_of(f, REV_SUBSPACE_CHANGES) >= 8);
	fixture_check(f);
}

/* ---- What a process shares ---- */

struct shared {
	struct catalog_cache *caches[2];
	struct catalog_db *dbs[2];
};

static enum status
shared_body(struct kv_tx *tx, void *arg)
{
	struct shared *s = arg;

	for (int i = 0; i < 2; i++) {
		catalog_db_unref(s->dbs[i]);
		s->dbs[i] = NULL;
	}
	for (int i = 0; i < 2; i++)
		TRY(rev_db_open(tx, s->caches[i], STR("db"), &s->dbs[i], NULL));
	return STATUS_OK;
}

static void
all_caches_of_a_process_learn_of_ranges_at_once(void **state)
{
	struct fixture *f = *state;
	struct catalog_tallies *tallies = catalog_tallies_new();
	struct catalog_db *own = f->db;
	struct shared s = { 0 };
	struct err err = { 0 };
	size_t before;
	bool more;

	assert_non_null(tallies);
	for (int i = 0; i < 2; i++) {
		s.caches[i] = catalog_cache_new();
		assert_non_null(s.caches[i]);
		catalog_cache_share(s.caches[i], tallies);
	}
	assert_int_equal(kv_run_read(f->store, shared_body, &s, NULL), STATUS_OK);
	assert_ptr_equal(s.dbs[0]->tally, s.dbs[1]->tally);
	assert_int_equal(catalog_tallies_tend(tallies, f->store, true, &more, &err), STATUS_OK);
	assert_false(more);
	f->db = s.dbs[0];
	for (size_t i = 0; i < 1500; i++)
		fixture_put(f, arena_printf(f->arena, "d%04zu", i).ptr, NULL, "{}");
	do {
		assert_int_equal(catalog_tallies_tend(tallies, f->store, false, &more, &err),
				 STATUS_OK);
	} while (more);
	before = ranges_of(f, REV_SUBSPACE_ALL_DOCS);
	assert_true(before > 1);
	/* Whoever knows of them adds to one that is there. */
	f->db = s.dbs[1];
	fixture_put(f, "d0700x", NULL, "{}");
	assert_int_equal(ranges_of(f, REV_SUBSPACE_ALL_DOCS), before);
	f->db = own;
	compare_all(f);
	fixture_check(f);
	for (int i = 0; i < 2; i++) {
		catalog_db_unref(s.dbs[i]);
		catalog_cache_free(s.caches[i]);
	}
	catalog_tallies_free(tallies);
}

/* ---- Out of memory ---- */

struct opening {
	struct catalog_cache *cache;
	uint64_t failing;
	bool failed;
};

static enum status
opening_body(struct kv_tx *tx, void *arg)
{
	struct opening *o = arg;
	struct catalog_db *db = NULL;
	enum status status;

	(void)mem_fail_only(o->failing);
	status = rev_db_open(tx, o->cache, STR("db"), &db, NULL);
	o->failed = mem_fail_only(0) >= o->failing;
	if (status == STATUS_OK)
		assert_non_null(db->tally);
	catalog_db_unref(db);
	return status;
}

static void
a_database_is_opened_with_its_counters_or_not_at_all(void **state)
{
	struct fixture *f = *state;
	struct opening o = { .failed = true };

	for (o.failing = 1; o.failed; o.failing++) {
		enum status status;

		o.cache = catalog_cache_new();
		assert_non_null(o.cache);
		status = kv_run_read(f->calm, opening_body, &o, NULL);
		assert_true(status == STATUS_OK || status == STATUS_NOMEM ||
			    status == STATUS_LIMIT);
		catalog_cache_free(o.cache);
	}
}

static void
every_failed_allocation_is_reported(void **state)
{
	struct fixture *f = *state;
	enum status status;
	uint64_t n = 1;
	bool more;

	for (size_t i = 0; i < 40; i++)
		fixture_put(f, arena_printf(f->arena, "d%03zu", i).ptr, NULL, "{}");
	do {
		mem_fail_after(n++);
		status = catalog_tally_tend(f->calm, f->db, &tiny, &more, NULL);
		mem_fail_after(0);
		assert_true(status == STATUS_OK || status == STATUS_NOMEM ||
			    status == STATUS_LIMIT);
	} while (status != STATUS_OK && n < 2000);
	assert_int_equal(status, STATUS_OK);
	tend_all(f, &tiny);
	compare_all(f);
	fixture_check(f);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		TEST(any_writer_counts_right_whatever_ranges_it_knows),
		TEST(writers_and_tenders_at_once_leave_counts_right),
		TEST(page_anywhere_reads_few_keys_after_ids_came_in_order),
		TEST(page_anywhere_reads_few_keys_after_ids_came_in_any_order),
		TEST(keys_between_ids_are_estimated_without_reading),
		TEST(nothing_is_left_of_ranges_whose_documents_have_gone),
		TEST(document_that_is_edited_again_and_again_makes_no_ranges),
		TEST(database_without_ranges_is_counted_and_gets_them),
		TEST(counts_are_moved_by_one_of_two_tenders),
		TEST(a_range_that_counts_wrong_does_not_keep_others_whole),
		TEST(a_range_that_is_looked_at_in_part_is_not_split_by_itself),
		TEST(a_database_is_opened_with_its_counters_or_not_at_all),
		TEST(deleted_database_is_not_tended),
		TEST(ranges_go_on_under_another_incarnation),
		TEST(all_caches_of_a_process_learn_of_ranges_at_once),
		TEST(every_failed_allocation_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
