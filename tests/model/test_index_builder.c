/*
 * Turns of the chore that builds indexes and clears dropped ones: which databases have their turns,
 * in which order and for how long; what becomes of indexes in each state, and of databases that are
 * damaged, on their way to another store or not there any more; how its threads share a build.
 */
#include "builder_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "catalog/keys.h"
#include "catalog/move.h"
#include "catalog/records.h"
#include "index/engine/scan.h"
#include "index/engine/settings.h"
#include "kv/faulty/faulty.h"
#include "kv/keyspace.h"
#include "model/revisioned/shape.h"

enum {
	TURN_MS = 1000,
	LOOK_STEPS = 8,
	THREADS = 4,
	WORK_MOST = 100, /* databases that a turn looks at */
	SURVEY_PAGE = 200,
	CALLS_MOST = 1000,
	ELEMENTS = 700, /* of a document with that many entries */
	ELEMENT_DOCS = 8,
};

/* ---- Databases and their indexes ---- */

struct db_arg {
	struct fixture *f;
	struct str name;
	struct catalog_db *db;
	enum index_state state;
	uint32_t flags;
	uint64_t number; /* of an index */
	size_t count;
};

static enum status
db_create_body(struct kv_tx *tx, void *arg)
{
	const struct db_arg *a = arg;

	return rev_db_create(tx, a->name, fixture_scheme(), NULL);
}

static enum status
db_open_body(struct kv_tx *tx, void *arg)
{
	struct db_arg *a = arg;

	return rev_db_open(tx, NULL, a->name, &a->db, NULL);
}

static struct catalog_db *
db_open(struct fixture *f, const char *name)
{
	struct db_arg arg = { .name = str_from_cstr(name) };

	assert_int_equal(kv_run_read(f->calm, db_open_body, &arg, NULL), STATUS_OK);
	return arg.db;
}

/* Its number. */
static uint64_t
db_create(struct fixture *f, const char *name)
{
	struct db_arg arg = { .name = str_from_cstr(name) };
	uint64_t number;

	assert_int_equal(kv_run(f->calm, db_create_body, &arg, NULL, NULL), STATUS_OK);
	assert_int_equal(kv_run_read(f->calm, db_open_body, &arg, NULL), STATUS_OK);
	number = arg.db->number;
	catalog_db_unref(arg.db);
	return number;
}

static enum status
index_create_body(struct kv_tx *tx, void *arg)
{
	static const struct str path[] = { { "n", 1 } };
	static const struct index_column column = { .path = path, .path_count = 1 };
	struct db_arg *a = arg;
	const struct index_def terms = {
		.state = a->state,
		.flags = a->flags | INDEX_SPARSE,
		.order = DOC_KEY_COUCH,
		.name = STR("by-n"),
		.owner = STR("owner"),
		.columns = &column,
		.column_count = 1,
	};

	return index_create(tx, a->db, &terms, &a->number, NULL);
}

static uint64_t
index_in(struct fixture *f, const char *name, enum index_state state)
{
	struct db_arg arg = { .db = db_open(f, name), .state = state, .flags = INDEX_MULTIKEY };

	assert_int_equal(kv_run(f->calm, index_create_body, &arg, NULL, NULL), STATUS_OK);
	catalog_db_unref(arg.db);
	fixture_reopen(f);
	return arg.number;
}

static enum status
state_body(struct kv_tx *tx, void *arg)
{
	struct db_arg *a = arg;

	TRY(index_work_note(tx, a->db));
	return index_state_set(tx, a->db, index_find(a->db, a->number), a->state,
			       a->state == INDEX_FAILED ? STR("it failed") : STR(""));
}

static void
index_becomes(struct fixture *f, uint64_t number, enum index_state state)
{
	struct db_arg arg = { .db = f->db, .state = state, .number = number };

	assert_int_equal(kv_run(f->calm, state_body, &arg, NULL, NULL), STATUS_OK);
	fixture_reopen(f);
}

/* As another version of ICU would have made it. */
static enum status
other_collator_body(struct kv_tx *tx, void *arg)
{
	struct db_arg *a = arg;
	struct index_def def = *index_find(a->db, a->number);

	def.collator = STR("1/1");
	return index_state_set(tx, a->db, &def, a->state, STR(""));
}

static void
collate_otherwise(struct fixture *f, uint64_t number, enum index_state state)
{
	struct db_arg arg = { .db = f->db, .state = state, .number = number };

	assert_int_equal(kv_run(f->calm, other_collator_body, &arg, NULL, NULL), STATUS_OK);
	fixture_reopen(f);
}

static enum index_state
state_of(struct fixture *f, uint64_t number)
{
	const struct index_def *def;

	fixture_reopen(f);
	def = index_find(f->db, number);
	assert_non_null(def);
	return def->state;
}

/* 0 as well if the index is not there. */
static enum status
entries_body(struct kv_tx *tx, void *arg)
{
	struct db_arg *a = arg;
	uint64_t total;

	TRY(index_total_count(tx, a->f->db, &total));
	a->count = (size_t)total;
	return STATUS_OK;
}

static size_t
entries_of(struct fixture *f)
{
	struct db_arg arg = { .f = f };

	fixture_reopen(f);
	assert_int_equal(kv_run_read(f->calm, entries_body, &arg, NULL), STATUS_OK);
	return arg.count;
}

/* Documents that have ELEMENTS entries each. */
static void
put_elements(struct fixture *f, unsigned docs)
{
	AUTO(buf_release) struct buf json = BUF_INIT(65536);
	char id[8];

	buf_append_cstr(&json, "{\"n\":[");
	for (unsigned i = 0; i < ELEMENTS; i++)
		buf_printf(&json, "%s%u", i ? "," : "", i);
	buf_append_str(&json, (struct str){ "]}", 3 });
	for (unsigned i = 0; i < docs; i++) {
		(void)snprintf(id, sizeof(id), "e%u", i);
		fixture_put(f, id, NULL, json.ptr);
	}
}

static enum status
work_count_body(struct kv_tx *tx, void *arg)
{
	struct db_arg *a = arg;
	struct index_work_entry *entries;

	arena_clear(a->f->arena);
	return index_work_list(tx, 0, 4 * WORK_MOST, a->f->arena, &entries, &a->count);
}

/* How many databases have work. */
static size_t
work_left(struct fixture *f)
{
	struct db_arg arg = { .f = f };

	assert_int_equal(kv_run_read(f->calm, work_count_body, &arg, NULL), STATUS_OK);
	return arg.count;
}

static enum status
work_clear_body(struct kv_tx *tx, void *arg)
{
	return index_work_clear(tx, *(const uint64_t *)arg);
}

static void
work_clear(struct fixture *f, uint64_t db_number)
{
	assert_int_equal(kv_run(f->calm, work_clear_body, &db_number, NULL, NULL), STATUS_OK);
}

/* ---- Turns ---- */

static struct err turn_err;

static void
add_builder(struct fixture *f, unsigned threads, unsigned percent)
{
	index_chores_add(NULL, &(struct index_builder_options){
				       .store = f->store, .threads = threads, .percent = percent });
}

static int
setup(void **state)
{
	at.threads = THREADS_REAL;
	assert_int_equal(fixture_setup(state), 0);
	builder_world_begin();
	add_builder(*state, 1, 100);
	return 0;
}

static int
teardown(void **state)
{
	builder_world_end();
	/* A store may have threads of its own, which its end waits for. */
	at.threads = THREADS_REAL;
	return fixture_teardown(state);
}

static enum status
turn_status(struct chore_turn *ret)
{
	enum threads threads = at.threads;
	enum status status;

	/* Only what a turn creates is made up. */
	*ret = (struct chore_turn){ 0 };
	turn_err = (struct err){ 0 };
	at.threads = threads == THREADS_REAL ? THREADS_IN_TURN : threads;
	if (at.running == RUN_MEETING)
		at.threads = THREADS_REAL;
	status = at.chore.run(at.chore.arg, ret, &turn_err);
	at.threads = threads;
	assert_int_equal(builds_running(), 0);
	return status;
}

/* A turn that succeeds. */
static struct chore_turn
turn(void)
{
	struct chore_turn t;

	if (turn_status(&t) != STATUS_OK)
		fail_msg("the turn: %s", turn_err.text);
	assert_int_equal(turn_err.status, STATUS_OK);
	return t;
}

static void
turn_is(uint64_t done, bool more)
{
	struct chore_turn t = turn();

	if (t.done != done || t.more != more)
		fail_msg("the turn has done %llu%s, and should have done %llu%s",
			 (unsigned long long)t.done, t.more ? " and more" : "",
			 (unsigned long long)done, more ? " and more" : "");
}

static void
the_chore_is_leased_and_not_listed(void **state)
{
	(void)state;
	assert_string_equal(at.chore.name, INDEX_CHORE_BUILD);
	assert_true(at.chore.leased);
	assert_true(at.chore.unlisted);
	assert_int_equal(at.chore.pause_ms, 250);
	assert_int_equal(at.chore.more_ms, 1);
	assert_int_equal(at.chore.failed_ms, 2000);
}

static void
a_turn_builds_what_is_waiting(void **state)
{
	struct fixture *f = *state;
	uint64_t number;

	turn_is(0, false);
	fixture_put(f, "a", NULL, "{\"n\":1}");
	number = index_in(f, "db", INDEX_BUILDING);
	assert_int_equal(work_left(f), 1);
	turn_is(1, false);
	assert_int_equal(state_of(f, number), INDEX_READY);
	assert_int_equal(entries_of(f), 1);
	assert_int_equal(at.run_count, 1);
	assert_int_equal(at.runs[0].db_number, f->db->number);
	assert_int_equal(at.runs[0].number, number);
	assert_int_equal(at.runs[0].steps, LOOK_STEPS);
	assert_true(at.runs[0].claims);
	assert_int_equal(at.building_most, 1);
	/* The turn that finds nothing more to do clears the work. */
	assert_int_equal(work_left(f), 1);
	turn_is(1, false);
	assert_int_equal(work_left(f), 0);
	turn_is(0, false);
	assert_int_equal(at.run_count, 1);
}

/* A turn ends after a second, and the next one goes on behind the database it has ended with. */
static void
databases_have_their_turns_one_behind_the_other(void **state)
{
	struct fixture *f = *state;
	uint64_t numbers[3] = { f->db->number, db_create(f, "b"), db_create(f, "a") };

	index_in(f, "db", INDEX_BUILDING);
	index_in(f, "b", INDEX_BUILDING);
	index_in(f, "a", INDEX_BUILDING);
	assert_int_equal(work_left(f), 3);
	at.running = RUN_BUILDING;
	at.run_ms = TURN_MS / 2;
	for (unsigned i = 0; i < 3; i++)
		turn_is(1, true);
	turn_is(0, true); /* behind the last one there is none */
	turn_is(1, true);
	assert_int_equal(at.run_count, 8);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(at.runs[i].db_number, numbers[i / 2 % 3]);
	/* A little less than the turn has is followed by another run. */
	at.run_count = 0;
	at.run_ms = TURN_MS - 1;
	turn_is(1, true);
	assert_int_equal(at.run_count, 2);
	/* Behind the last one come those that were before it. */
	turn_is(1, true);
	at.run_count = 0;
	at.running = RUN_READY;
	at.run_ms = 0;
	turn_is(0, true);
	turn_is(3, false);
	assert_int_equal(at.run_count, 3);
}

static void
a_turn_that_has_no_time_left_begins_nothing(void **state)
{
	struct fixture *f = *state;
	uint64_t number;

	index_in(f, "db", INDEX_BUILDING);
	turn_is(1, false);
	number = index_in(f, "db", INDEX_BUILDING);
	at.run_count = 0;
	at.look_ms = TURN_MS; /* it is over when it is first looked at */
	turn_is(1, true);
	assert_int_equal(at.run_count, 0);
	assert_int_equal(work_left(f), 1);
	at.look_ms = 0;
	turn_is(0, true);
	turn_is(1, false);
	assert_int_equal(at.run_count, 1);
	/* Nor is anything cleared. */
	index_becomes(f, number, INDEX_DROPPED);
	at.look_ms = TURN_MS;
	turn_is(1, true);
	assert_int_equal(state_of(f, number), INDEX_DROPPED);
	at.look_ms = 0;
	turn_is(0, true);
	turn_is(1, false);
	fixture_reopen(f);
	assert_null(index_find(f->db, number));
}

/* ---- Threads ---- */

static void
threads_begin_with_stretches_of_their_own(void **state)
{
	struct fixture *f = *state;
	bool seen[INDEX_BUILD_STRETCHES] = { false };

	add_builder(f, THREADS, 100);
	index_in(f, "db", INDEX_BUILDING);
	at.running = RUN_MEETING;
	assert_int_equal(pthread_barrier_init(&at.meeting, NULL, THREADS), 0);
	turn_is(1, false);
	(void)pthread_barrier_destroy(&at.meeting);
	assert_int_equal(at.run_count, THREADS);
	for (unsigned i = 0; i < THREADS; i++) {
		assert_true(at.runs[i].preferred < INDEX_BUILD_STRETCHES);
		seen[at.runs[i].preferred] = true;
	}
	for (unsigned i = 0; i < THREADS; i++)
		assert_true(seen[i * INDEX_BUILD_STRETCHES / THREADS]);
	assert_int_equal(at.building_most, 1);
	assert_int_equal(at.niced, THREADS);
	assert_int_equal(at.named, THREADS);
}

static void
there_are_no_more_threads_than_may_be(void **state)
{
	struct fixture *f = *state;

	index_in(f, "db", INDEX_BUILDING);
	at.running = RUN_READY;
	add_builder(f, INDEX_BUILD_THREADS_MAX + 1, 100);
	turn_is(1, false);
	assert_int_equal(at.created, INDEX_BUILD_THREADS_MAX);
	assert_int_equal(at.joined, INDEX_BUILD_THREADS_MAX);
	at.created = 0;
	add_builder(f, INDEX_BUILD_THREADS_MAX, 100);
	turn_is(1, false);
	assert_int_equal(at.created, INDEX_BUILD_THREADS_MAX);
	at.created = 0;
	add_builder(f, 3, 100);
	turn_is(1, false);
	assert_int_equal(at.created, 3);
	/* The first one has found the index ready, and the others have nothing to do. */
	assert_int_equal(at.run_count, 3);
}

static void
a_thread_that_cannot_be_started_is_done_without(void **state)
{
	struct fixture *f = *state;

	index_in(f, "db", INDEX_BUILDING);
	at.running = RUN_READY;
	add_builder(f, THREADS, 100);
	at.threads = THREADS_NONE;
	turn_is(1, false);
	assert_int_equal(at.created, THREADS);
	assert_int_equal(at.joined, 0);
	assert_int_equal(at.run_count, 1);
	assert_int_equal(at.runs[0].preferred, 0);
	assert_int_equal(at.niced, 0);
	at.threads = THREADS_SECOND;
	at.created = at.run_count = 0;
	turn_is(1, false);
	assert_int_equal(at.created, THREADS);
	assert_int_equal(at.joined, THREADS / 2);
	assert_int_equal(at.run_count, 1);
	assert_int_equal(at.runs[0].preferred, INDEX_BUILD_STRETCHES / THREADS);
}

static void
threads_rest_as_long_as_the_percentage_says(void **state)
{
	static const struct {
		unsigned percent;
		uint64_t rest_ms; /* for 100 of work */
	} rows[] = { { 100, 0 }, { 50, 100 }, { 25, 300 }, { 80, 25 }, { 1, 9900 } };
	struct fixture *f = *state;

	index_in(f, "db", INDEX_BUILDING);
	at.running = RUN_BUILDING;
	at.run_ms = 100;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t whole = at.run_ms + rows[i].rest_ms;
		uint64_t runs = (TURN_MS + whole - 1) / whole;

		add_builder(f, 1, rows[i].percent);
		at.run_count = at.sleeps = 0;
		at.slept_ns = 0;
		turn_is(1, true);
		assert_int_equal(at.run_count, runs);
		assert_int_equal(at.sleeps, runs);
		assert_int_equal(at.slept_ns, runs * rows[i].rest_ms * CLOCK_NS_PER_MS);
	}
}

static void
a_failure_of_one_thread_ends_the_turn(void **state)
{
	struct fixture *f = *state;
	struct chore_turn t;

	db_create(f, "e");
	index_in(f, "db", INDEX_BUILDING);
	index_in(f, "e", INDEX_BUILDING);
	add_builder(f, 3, 100);
	at.running = RUN_FAILING;
	assert_int_equal(turn_status(&t), STATUS_IO);
	assert_int_equal(turn_err.status, STATUS_IO);
	assert_string_equal(turn_err.text, "the run 1");
	assert_int_equal(at.run_count, 1);
	assert_int_equal(at.joined, 3);
	/* Nothing is lost. */
	assert_int_equal(work_left(f), 2);
	at.running = RUN_READY;
	turn_is(2, false);
}

/* What is damaged, or a newer frond's, is in nobody's way. */
static void
a_build_that_may_be_passed_over_leaves_the_others_their_turns(void **state)
{
	static const enum status passed[] = { STATUS_CORRUPT, STATUS_NEWER };
	struct fixture *f = *state;

	db_create(f, "e");
	index_in(f, "db", INDEX_BUILDING);
	index_in(f, "e", INDEX_BUILDING);
	at.running = RUN_FAILING;
	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++) {
		at.failure = passed[i];
		at.run_count = 0;
		turn_is(2, false);
		assert_int_equal(at.run_count, 2);
		assert_int_not_equal(at.runs[0].db_number, at.runs[1].db_number);
		assert_int_equal(work_left(f), 2);
	}
	assert_string_equal(at.logged, "chore_passed_over");
}

/* ---- Indexes in each state ---- */

/* More entries than one transaction clears. */
static void
a_dropped_index_is_cleared_and_forgotten(void **state)
{
	struct fixture *f = *state;
	uint64_t number = index_in(f, "db", INDEX_READY), other;

	put_elements(f, ELEMENT_DOCS);
	assert_int_equal(entries_of(f), ELEMENT_DOCS * ELEMENTS);
	other = index_in(f, "db", INDEX_BUILDING);
	index_becomes(f, number, INDEX_DROPPED);
	turn_is(1, false);
	fixture_reopen(f);
	assert_null(index_find(f->db, number));
	/* What is beside it was built in the same turn. */
	assert_int_equal(state_of(f, other), INDEX_READY);
	assert_int_equal(entries_of(f), ELEMENT_DOCS * ELEMENTS);
	turn_is(1, false);
	assert_int_equal(work_left(f), 0);
}

/* However little is done in a turn. */
static void
clearing_goes_on_in_the_next_turn(void **state)
{
	static const uint64_t looks_ms[] = { 20, 60, 120 };
	struct fixture *f = *state;

	put_elements(f, ELEMENT_DOCS);
	turn_is(0, false);
	for (size_t i = 0; i < sizeof(looks_ms) / sizeof(looks_ms[0]); i++) {
		uint64_t number = index_in(f, "db", INDEX_BUILDING);
		unsigned turns = 0;

		turn_is(1, false);
		assert_int_equal(entries_of(f), ELEMENT_DOCS * ELEMENTS);
		index_becomes(f, number, INDEX_DROPPED);
		at.look_ms = looks_ms[i];
		while (work_left(f)) {
			(void)turn();
			turns++;
			assert_in_range(turns, 1, 20);
		}
		at.look_ms = 0;
		assert_int_equal(entries_of(f), 0);
		assert_null(index_find(f->db, number));
		(void)turn(); /* of those behind the database, which there are none of */
		turn_is(0, false);
	}
}

static void
a_failed_index_loses_its_entries_and_stays(void **state)
{
	struct fixture *f = *state;
	uint64_t number = index_in(f, "db", INDEX_READY);

	put_elements(f, ELEMENT_DOCS);
	index_becomes(f, number, INDEX_FAILED);
	turn_is(1, false);
	assert_int_equal(entries_of(f), 0);
	assert_int_equal(state_of(f, number), INDEX_FAILED);
	assert_true(str_eq(index_find(f->db, number)->failure, STR("it failed")));
	assert_int_equal(work_left(f), 0);
	assert_int_equal(at.run_count, 0);
}

static void
what_is_ready_is_left_as_it_is(void **state)
{
	struct fixture *f = *state;
	uint64_t number = index_in(f, "db", INDEX_READY);

	fixture_put(f, "a", NULL, "{\"n\":1}");
	index_becomes(f, number, INDEX_READY);
	assert_int_equal(work_left(f), 1);
	turn_is(1, false);
	assert_int_equal(work_left(f), 0);
	assert_int_equal(entries_of(f), 1);
	assert_int_equal(state_of(f, number), INDEX_READY);
	assert_string_equal(at.logged, "");
}

/* In each state in which others may use it; where nobody may, it is not made anew. */
static void
an_index_of_another_collation_is_made_anew(void **state)
{
	static const enum index_state states[] = { INDEX_READY, INDEX_BUILDING, INDEX_STALE };
	struct fixture *f = *state;

	fixture_put(f, "a", NULL, "{\"n\":1}");
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		uint64_t number = index_in(f, "db", INDEX_BUILDING);

		turn_is(1, false);
		collate_otherwise(f, number, states[i]);
		/* A process that begins finds it, though nobody has noted it. */
		work_clear(f, f->db->number);
		at.logged[0] = '\0';
		turn_is(0, false);
		add_builder(f, 1, 100);
		turn_is(1, false);
		assert_string_equal(at.logged, "index_renewed");
		fixture_reopen(f);
		assert_null(index_find(f->db, number));
		assert_int_equal(state_of(f, number + 1), INDEX_READY);
		assert_true(str_eq(index_find(f->db, number + 1)->collator, index_collator(false)));
		assert_int_equal(entries_of(f), i + 1);
	}
}

static void
an_index_of_another_collation_that_nobody_uses_is_not_made_anew(void **state)
{
	struct fixture *f = *state;
	uint64_t number = index_in(f, "db", INDEX_READY);

	collate_otherwise(f, number, INDEX_FAILED);
	index_becomes(f, number, INDEX_FAILED);
	turn_is(1, false);
	assert_int_equal(index_set_of(f->db)->count, 1);
	assert_string_equal(at.logged, "");
	assert_int_equal(work_left(f), 0);
}

/* ---- The survey ---- */

/* Several pages of databases; what has work in any of them is found, once in a process. */
static void
a_process_that_begins_looks_at_all_databases(void **state)
{
	struct fixture *f = *state;
	uint64_t first, last;
	char name[16];

	first = db_create(f, "a");
	for (unsigned i = 0; i < SURVEY_PAGE; i++) {
		(void)snprintf(name, sizeof(name), "m%03u", i);
		db_create(f, name);
	}
	last = db_create(f, "z");
	index_in(f, "a", INDEX_BUILDING);
	index_in(f, "z", INDEX_BUILDING);
	work_clear(f, first);
	work_clear(f, last);
	assert_int_equal(work_left(f), 0);
	turn_is(2, false);
	assert_int_equal(at.run_count, 2);
	assert_int_equal(at.runs[0].db_number, first);
	assert_int_equal(at.runs[1].db_number, last);
	turn_is(2, false);
	assert_int_equal(work_left(f), 0);
	index_in(f, "a", INDEX_BUILDING);
	work_clear(f, first);
	turn_is(0, false);
	assert_int_equal(work_left(f), 0);
}

/* Those of which nothing is to be done are not noted. */
static void
the_survey_notes_what_has_work_and_nothing_else(void **state)
{
	static const struct {
		enum index_state state;
		bool has_work;
	} rows[] = { { INDEX_BUILDING, true },
		     { INDEX_READY, false },
		     { INDEX_FAILED, false },
		     { INDEX_DROPPED, true },
		     { INDEX_STALE, true } };
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t number = index_in(f, "db", INDEX_BUILDING);

		(void)turn();
		index_becomes(f, number, rows[i].state);
		work_clear(f, f->db->number);
		add_builder(f, 1, 100);
		at.look_ms = TURN_MS; /* nothing but the survey */
		(void)turn();
		at.look_ms = 0;
		assert_int_equal(work_left(f), rows[i].has_work);
		if (rows[i].state == INDEX_BUILDING)
			assert_int_equal(state_of(f, number), INDEX_BUILDING);
		index_becomes(f, number, INDEX_DROPPED);
		(void)turn();
		(void)turn();
		(void)turn();
		assert_int_equal(work_left(f), 0);
		fixture_reopen(f);
		assert_null(index_find(f->db, number));
	}
}

/* ---- Databases that are not what they were ---- */

struct record_arg {
	struct buf key;
	struct str value;
};

static enum status
record_body(struct kv_tx *tx, void *arg)
{
	const struct record_arg *a = arg;

	return a->value.ptr ? kv_set(tx, buf_str(&a->key), a->value)
			    : kv_clear(tx, buf_str(&a->key));
}

/* (ROOT, space, …): sets what is there. */
static void
record_set(struct fixture *f, struct buf *key, struct str value)
{
	struct record_arg arg = { *key, value };

	assert_int_equal(kv_run(f->calm, record_body, &arg, NULL, NULL), STATUS_OK);
}

static void
description_spoil(struct fixture *f, const char *name, const char *value)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	tuple_put_u64(&key, KV_ROOT);
	tuple_put_u64(&key, KV_ROOT_DATABASES);
	tuple_put_str(&key, str_from_cstr(name));
	record_set(f, &key, str_from_cstr(value));
}

static void
work_spoil(struct fixture *f, uint64_t db_number, struct str value)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	tuple_put_u64(&key, KV_ROOT);
	tuple_put_u64(&key, KV_ROOT_INDEX_WORK);
	tuple_put_u64(&key, db_number);
	record_set(f, &key, value);
}

/* By the survey, and by each turn. */
static void
a_damaged_database_is_passed_over(void **state)
{
	struct fixture *f = *state;

	db_create(f, "a");
	db_create(f, "c");
	index_in(f, "a", INDEX_BUILDING);
	index_in(f, "c", INDEX_BUILDING);
	description_spoil(f, "a", "damaged");
	at.running = RUN_READY;
	turn_is(2, false);
	assert_int_equal(at.run_count, 1);
	assert_string_equal(at.logged, "chore_passed_over");
	assert_int_equal(work_left(f), 2);
	turn_is(2, false);
	assert_int_equal(at.run_count, 2);
}

static void
a_damaged_note_of_work_is_passed_over(void **state)
{
	struct fixture *f = *state;

	index_in(f, "db", INDEX_BUILDING);
	work_spoil(f, f->db->number + 1, STR("damaged"));
	work_spoil(f, f->db->number + 2, STR("\x15\x01\x14\x02\x37\0")); /* of no name space */
	at.running = RUN_READY;
	turn_is(1, false);
	assert_int_equal(at.run_count, 1);
	assert_string_equal(at.logged, "chore_passed_over");
}

static enum status
replace_body(struct kv_tx *tx, void *arg)
{
	(void)arg;
	TRY(catalog_delete(tx, CATALOG_SPACE_COUCH, STR("r"), NULL));
	return rev_db_create(tx, STR("r"), fixture_scheme(), NULL);
}

static enum status
delete_body(struct kv_tx *tx, void *arg)
{
	(void)arg;
	return catalog_delete(tx, CATALOG_SPACE_COUCH, STR("r"), NULL);
}

/* The work of a database that is gone is nobody's, also when another one has its name. */
static void
work_of_a_database_that_is_gone_is_cleared(void **state)
{
	struct fixture *f = *state;

	db_create(f, "r");
	index_in(f, "r", INDEX_BUILDING);
	assert_int_equal(kv_run(f->calm, replace_body, NULL, NULL, NULL), STATUS_OK);
	assert_int_equal(work_left(f), 1);
	turn_is(1, false);
	assert_int_equal(work_left(f), 0);
	index_in(f, "r", INDEX_BUILDING);
	assert_int_equal(kv_run(f->calm, delete_body, NULL, NULL, NULL), STATUS_OK);
	assert_int_equal(work_left(f), 1);
	turn_is(1, false);
	assert_int_equal(work_left(f), 0);
	assert_int_equal(at.run_count, 0);
}

static enum status
stop_moving(const struct catalog_move_progress *progress, void *arg)
{
	(void)arg;
	return progress->source == CATALOG_MOVE_MOVING ? STATUS_CANCELLED : STATUS_OK;
}

/* A move that has just begun: "db" is on its way to another store. */
static struct catalog_move_options
move_begin(struct fixture *f, struct kv_store **ret_target)
{
	const struct kv_options options = { .create = true,
					    .no_sync = true,
					    .shape = &rev_store_shape };
	struct catalog_move_options move = { .from = f->calm,
					     .from_url = "source",
					     .to_url = "target",
					     .space = CATALOG_SPACE_COUCH,
					     .name = STR("db"),
					     .progress = stop_moving };
	struct catalog_move_sum sum;
	char url[128];

	(void)snprintf(url, sizeof(url), "embedded:%s/target", f->dir);
	assert_int_equal(kv_open(url, &options, ret_target, NULL), STATUS_OK);
	move.to = *ret_target;
	assert_int_equal(catalog_move(&move, &sum, NULL), STATUS_CANCELLED);
	return move;
}

static void
a_database_that_is_being_moved_is_left_alone(void **state)
{
	struct fixture *f = *state;
	uint64_t number = index_in(f, "db", INDEX_READY);
	struct catalog_move_options move;
	struct kv_store *target;

	fixture_put(f, "a", NULL, "{\"n\":1}");
	index_becomes(f, number, INDEX_DROPPED);
	index_in(f, "db", INDEX_BUILDING);
	at.now_ns = 0;
	move = move_begin(f, &target);
	at.now_ns = __real_clock_mono_ns();
	turn_is(1, false);
	assert_int_equal(at.run_count, 0);
	assert_int_equal(state_of(f, number), INDEX_DROPPED);
	assert_int_equal(entries_of(f), 1);
	assert_int_equal(work_left(f), 1);
	/* It is built when it has come back. */
	at.now_ns = 0;
	move.progress = NULL;
	assert_int_equal(catalog_move_rollback(&move, NULL), STATUS_OK);
	at.now_ns = __real_clock_mono_ns();
	turn_is(1, false);
	assert_int_equal(at.run_count, 1);
	assert_int_equal(state_of(f, number + 1), INDEX_READY);
	kv_close(target);
}

/* As many as a turn looks at have work that cannot be done: others have their turns, too. */
static void
work_that_cannot_be_done_is_in_nobodys_way(void **state)
{
	struct fixture *f = *state;
	uint64_t last;
	char name[16];

	for (unsigned i = 0; i < WORK_MOST; i++) {
		(void)snprintf(name, sizeof(name), "m%03u", i);
		db_create(f, name);
		index_in(f, name, INDEX_BUILDING);
	}
	last = db_create(f, "z");
	index_in(f, "z", INDEX_BUILDING);
	at.running = RUN_FAILING;
	at.failure = STATUS_CORRUPT;
	turn_is(WORK_MOST, false);
	assert_int_equal(at.run_count, WORK_MOST);
	at.run_count = 0;
	at.running = RUN_READY;
	turn_is(1, true);
	assert_int_equal(at.run_count, 1);
	assert_int_equal(at.runs[0].db_number, last);
}

static enum status
put_damaged_notes_body(struct kv_tx *tx, void *arg)
{
	(void)arg;
	/* Their keys lie in front of the notes of all databases. */
	for (uint64_t i = 0; i < 2 * WORK_MOST + 1; i++) {
		AUTO(buf_release) struct buf key = BUF_INIT(64);

		tuple_put_u64(&key, KV_ROOT);
		tuple_put_u64(&key, KV_ROOT_INDEX_WORK);
		tuple_put_u64(&key, 1);
		tuple_put_u64(&key, i);
		assert_int_equal(buf_status(&key), STATUS_OK);
		TRY(kv_set(tx, buf_str(&key), STR("no work")));
	}
	return STATUS_OK;
}

static void
notes_that_cannot_be_read_hide_no_work(void **state)
{
	struct fixture *f = *state;
	uint64_t number = db_create(f, "z");

	index_in(f, "z", INDEX_BUILDING);
	assert_int_equal(kv_run(f->calm, put_damaged_notes_body, NULL, NULL, NULL), STATUS_OK);
	at.running = RUN_READY;
	turn_is(1, false);
	assert_int_equal(at.run_count, 1);
	assert_int_equal(at.runs[0].db_number, number);
}

/* ---- Failures ---- */

/*
 * A call of the store that fails ends the turn, or is one of those after which the next attempt
 * succeeds; nothing is lost, and the turn behind it does what is left.
 */
static void
a_turn_that_fails_is_followed_by_one_that_goes_on(void **state)
{
	struct fixture *f = *state;
	struct kv_faulty_tap tap;
	struct chore_turn t;
	uint64_t number;
	uint32_t call;

	fixture_put(f, "a", NULL, "{\"n\":1}");
	for (call = 1;; call++) {
		tap = (struct kv_faulty_tap){
			.fail_call = call, .fail_with = STATUS_IO, .cut = SIZE_MAX, .flip = SIZE_MAX
		};
		number = index_in(f, "db", INDEX_BUILDING);
		add_builder(f, 1, 100);
		at.run_count = 0;
		kv_faulty_tap(f->store, &tap);
		if (turn_status(&t) == STATUS_OK && tap.calls < call)
			break;
		kv_faulty_tap(f->store, NULL);
		(void)turn();
		assert_int_equal(state_of(f, number), INDEX_READY);
		index_becomes(f, number, INDEX_DROPPED);
		(void)turn();
		(void)turn();
		assert_int_equal(work_left(f), 0);
		assert_in_range(call, 1, CALLS_MOST);
	}
	kv_faulty_tap(f->store, NULL);
	assert_int_equal(state_of(f, number), INDEX_READY);
	assert_in_range(call, 10, CALLS_MOST);
}

/* What fails in the survey or in clearing is left to the next turn: this one tries it no more. */
static void
a_turn_ends_with_the_first_failure(void **state)
{
	struct fixture *f = *state;
	uint32_t call;

	fixture_put(f, "a", NULL, "{\"n\":1}");
	for (call = 1;; call++) {
		struct kv_faulty_tap tap = {
			.fail_call = call, .fail_with = STATUS_IO, .cut = SIZE_MAX, .flip = SIZE_MAX
		};
		uint64_t number = index_in(f, "db", INDEX_READY);
		struct chore_turn t;
		enum status status;

		index_becomes(f, number, INDEX_DROPPED);
		add_builder(f, 1, 100);
		kv_faulty_tap(f->store, &tap);
		status = turn_status(&t);
		kv_faulty_tap(f->store, NULL);
		assert_int_equal(status, tap.calls < call ? STATUS_OK : STATUS_IO);
		if (tap.calls < call)
			break;
		(void)turn();
		assert_int_equal(work_left(f), 0);
		assert_in_range(call, 1, CALLS_MOST);
	}
	assert_int_equal(work_left(f), 0);
	assert_in_range(call, 10, CALLS_MOST);
}

/* The same of each allocation. */
static void
a_turn_without_memory_is_followed_by_one_that_goes_on(void **state)
{
	struct fixture *f = *state;
	struct chore_turn t;
	uint64_t failing, number;

	fixture_put(f, "a", NULL, "{\"n\":1}");
	for (failing = 1;; failing++) {
		enum status status;
		bool failed;

		number = index_in(f, "db", INDEX_BUILDING);
		add_builder(f, 1, 100);
		at.run_count = 0;
		(void)mem_fail_only(failing);
		status = turn_status(&t);
		failed = mem_fail_only(0) >= failing;
		if (!failed)
			break;
		assert_true(status == STATUS_OK || status == STATUS_NOMEM ||
			    status == STATUS_LIMIT);
		(void)turn();
		assert_int_equal(state_of(f, number), INDEX_READY);
		index_becomes(f, number, INDEX_DROPPED);
		(void)turn();
		(void)turn();
		assert_int_equal(work_left(f), 0);
		assert_in_range(failing, 1, 10000);
	}
	assert_true(failing > 10);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_chore_is_leased_and_not_listed),
		TEST(a_turn_builds_what_is_waiting),
		TEST(databases_have_their_turns_one_behind_the_other),
		TEST(a_turn_that_has_no_time_left_begins_nothing),
		TEST(threads_begin_with_stretches_of_their_own),
		TEST(there_are_no_more_threads_than_may_be),
		TEST(a_thread_that_cannot_be_started_is_done_without),
		TEST(threads_rest_as_long_as_the_percentage_says),
		TEST(a_failure_of_one_thread_ends_the_turn),
		TEST(a_build_that_may_be_passed_over_leaves_the_others_their_turns),
		TEST(a_dropped_index_is_cleared_and_forgotten),
		TEST(clearing_goes_on_in_the_next_turn),
		TEST(a_failed_index_loses_its_entries_and_stays),
		TEST(what_is_ready_is_left_as_it_is),
		TEST(an_index_of_another_collation_is_made_anew),
		TEST(an_index_of_another_collation_that_nobody_uses_is_not_made_anew),
		TEST(a_process_that_begins_looks_at_all_databases),
		TEST(the_survey_notes_what_has_work_and_nothing_else),
		TEST(a_damaged_database_is_passed_over),
		TEST(a_damaged_note_of_work_is_passed_over),
		TEST(work_of_a_database_that_is_gone_is_cleared),
		TEST(a_database_that_is_being_moved_is_left_alone),
		TEST(work_that_cannot_be_done_is_in_nobodys_way),
		TEST(notes_that_cannot_be_read_hide_no_work),
		TEST(a_turn_that_fails_is_followed_by_one_that_goes_on),
		TEST(a_turn_ends_with_the_first_failure),
		TEST(a_turn_without_memory_is_followed_by_one_that_goes_on),
	};

	/* A store through which calls can be made to fail. */
	(void)setenv("FROND_TEST_FAULTS", "rate=0,delay=0,watch=0", 1);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
