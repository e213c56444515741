/*
 * Moves whose records at the two stores are written by hand: what a move and its rollback make of
 * each pair of them, what is refused and how that is explained, and what is noticed of a copy.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "catalog/catalog_int.h"
#include "catalog/check.h"
#include "catalog/move_int.h"
#include "catalog/store_format.h"
#include "kv/faulty/faulty.h"
#include "kv/prefix.h"
#include "store.h"
#include "tiny.h"

#define TINY ((enum catalog_space)TINY_SPACE)

enum {
	ARENA_BYTES = 16 * 1024 * 1024,
	KEYS = 3,
	OTHER_KIND = 78, /* a tiny database as well, whose moves are told to it */
	NO_KIND = 79,
	FAILURES_MOST = 2000,
};

struct fixture {
	char dir[64];
	struct kv_store *from, *to;
	struct arena *arena;
	char name[16]; /* of the database */
	unsigned number;
	const struct catalog_kind *kind; /* of databases that are made */
	struct catalog_move_options options;
	struct catalog_move_sum sum;
	struct err err;

	/* What bodies do and find. */
	struct catalog_move move;
	struct catalog_db db;
	bool there;
	uint8_t incarnation;
	enum catalog_fence fence;
	const char *value; /* of each key */

	/* What progress tells. */
	char told[256];
	unsigned calls, stop_at;
	void (*at_stop)(struct fixture *f); /* NULL: cancels */
	unsigned findings;
};

static enum status
progress(const struct catalog_move_progress *now, void *arg)
{
	struct fixture *f = arg;
	size_t len = strlen(f->told);

	snprintf(f->told + len, sizeof(f->told) - len, "%s%c%d%d", len ? " " : "",
		 "BCcvE"[now->phase], now -> source, now -> target);
	if (++f->calls != f->stop_at)
		return STATUS_OK;
	if (!f->at_stop)
		return STATUS_CANCELLED;
	f->at_stop(f);
	return STATUS_OK;
}

static void
found(const struct catalog_finding *finding, void *arg)
{
	struct fixture *f = arg;

	assert_string_equal(finding->kind, CATALOG_FINDING_VALUE);
	f->findings++;
}

static struct kv_store *
open_store(struct fixture *f, const char *name)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct kv_store *store;
	char path[128], url[256];

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	test_store_url(path, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &store, NULL), STATUS_OK);
	return store;
}

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	tiny_register();
	test_make_dir("moves", f->dir, sizeof(f->dir));
	f->from = open_store(f, "from");
	f->to = open_store(f, "to");
	f->arena = arena_new(ARENA_BYTES);
	assert_non_null(f->arena);
	f->kind = tiny_kind();
	f->value = "value";
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	kv_close(f->from);
	kv_close(f->to);
	arena_free(f->arena);
	test_remove_tree(f->dir);
	free(f);
	return 0;
}

static void
run(struct fixture *f, struct kv_store *store, kv_body *body)
{
	struct err err = { 0 };

	if (kv_run(store, body, f, NULL, &err) != STATUS_OK)
		fail_msg("%s", err.text);
}

/* ---- Databases and records ---- */

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	struct catalog_db *db;

	TRY(catalog_create(tx, f->kind, str_from_cstr(f->name),
			   (const uint64_t[CATALOG_OPTIONS]){ 0 }, NULL));
	TRY(catalog_open(tx, NULL, TINY, str_from_cstr(f->name), &db, NULL));
	for (int i = 0; i < KEYS; i++)
		assert_int_equal(tiny_put(tx, db, f->arena, arena_printf(f->arena, "key%d", i),
					  str_from_cstr(f->value), NULL),
				 STATUS_OK);
	catalog_db_unref(db);
	return STATUS_OK;
}

static enum status
look_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	struct catalog_db db;
	enum status status = catalog_description_get(tx, TINY, str_from_cstr(f->name), &db, NULL);

	f->there = status == STATUS_OK;
	f->fence = f->there ? db.fence : CATALOG_FENCE_NONE;
	f->incarnation = f->there ? db.incarnation : 0;
	return f->there || status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static bool
is_at(struct fixture *f, struct kv_store *store)
{
	run(f, store, look_body);
	return f->there;
}

/* Gives the database the fence and the Incarnation that are wanted. */
static enum status
describe_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	struct catalog_db db;

	TRY(catalog_description_get(tx, TINY, str_from_cstr(f->name), &db, NULL));
	db.fence = f->fence;
	db.incarnation = f->incarnation;
	TRY(catalog_description_set(tx, &db));
	return kv_touch_metadata_version(tx);
}

static enum status
record_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;

	if (f->move.state >= CATALOG_MOVE_RESERVED && !f->move.number)
		TRY(kv_prefix_take(kv_tx_store(tx), &f->move.number, NULL));
	return catalog_move_set(tx, &f->move);
}

static void
write_record(struct fixture *f, struct kv_store *store, enum catalog_move_state state, char id,
	     const char *other)
{
	if (state == CATALOG_MOVE_NONE)
		return;
	f->move = (struct catalog_move){
		.space = TINY,
		.name = str_from_cstr(f->name),
		.kind = f->kind->number,
		.state = state,
		.id = { [CATALOG_MOVE_ID_BYTES - 1] = (uint8_t)id },
		.begun_ms = 5,
		.other = str_from_cstr(other),
	};
	run(f, store, record_body);
}

static enum status
read_record_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;

	return catalog_move_get(tx, TINY, str_from_cstr(f->name), f->arena, &f->move, NULL);
}

static enum catalog_move_state
state_at(struct fixture *f, struct kv_store *store)
{
	run(f, store, read_record_body);
	return f->move.state;
}

/* A database of its own for each case, since moves leave something. */
static void
begin(struct fixture *f)
{
	arena_clear(f->arena);
	snprintf(f->name, sizeof(f->name), "%u", ++f->number);
	f->options = (struct catalog_move_options){
		.from = f->from,
		.to = f->to,
		.from_url = "here",
		.to_url = "there",
		.space = TINY,
		.name = str_from_cstr(f->name),
		.progress = progress,
		.found = found,
		.arg = f,
	};
	f->told[0] = '\0';
	f->calls = f->stop_at = f->findings = 0;
	f->at_stop = NULL;
	f->err = (struct err){ 0 };
}

static enum status
move(struct fixture *f)
{
	return catalog_move(&f->options, &f->sum, &f->err);
}

static enum status
move_back(struct fixture *f)
{
	return catalog_move_rollback(&f->options, &f->err);
}

static void
assert_refused(struct fixture *f, enum status status, enum status expected, const char *text)
{
	assert_int_equal(status, expected);
	assert_int_equal(f->err.status, expected);
	assert_string_equal(f->err.text, text);
}

/* ---- Each record by each ---- */

/* Texts by letter, in which NAME is the name. */
static const struct {
	char letter;
	enum status status;
	const char *text;
} refusals[] = {
	{ 'I', STATUS_LOCKED,
	  "the database \"NAME\" is itself being moved, from there: finish that first" },
	{ 'P', STATUS_LOCKED,
	  "the database \"NAME\" is being moved already, to there: name that store, or roll it "
	  "back" },
	{ 'p', STATUS_LOCKED,
	  "the database \"NAME\" is being moved already, to there: name that store" },
	{ 'A', STATUS_LOCKED,
	  "a database \"NAME\" is being moved away from there, to here: finish that first" },
	{ 'H', STATUS_LOCKED,
	  "a database \"NAME\" is being moved there already, from here: name that store, or roll "
	  "it back" },
	{ 'F', STATUS_FORBIDDEN,
	  "all of it is at the target already: it cannot be rolled back, only finished, by the "
	  "same without --rollback" },
	{ 'N', STATUS_NOT_FOUND, "no move of \"NAME\" is under way" },
	{ 'E', STATUS_EXISTS, "there is a database \"NAME\" already where it should go" },
};

/* The letter of a refusal; of success where the database is: here, there, or at both. */
static char
outcome(struct fixture *f, enum status status)
{
	bool here, there;

	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		const char *at = strstr(refusals[i].text, "NAME");
		struct str text = at ? arena_printf(f->arena, "%.*s%s%s",
						    (int)(at - refusals[i].text), refusals[i].text,
						    f->name, at + 4)
				     : str_from_cstr(refusals[i].text);

		if (status == refusals[i].status && str_eq(str_from_cstr(f->err.text), text))
			return refusals[i].letter;
	}
	if (status != STATUS_OK)
		fail_msg("%s: %s", status_name(status), f->err.text);
	here = is_at(f, f->from) && f->fence == CATALOG_FENCE_NONE;
	there = is_at(f, f->to) && f->fence == CATALOG_FENCE_NONE;
	return "-ht*"[here + 2 * there];
}

static char
outcome_of(struct fixture *f, enum catalog_move_state source, enum catalog_move_state target,
	   char id, enum status (*fn)(struct fixture *f))
{
	begin(f);
	run(f, f->from, create_body);
	write_record(f, f->from, source, 1, "there");
	if (source == CATALOG_MOVE_MOVING || source == CATALOG_MOVE_HANDED_OVER) {
		f->fence = CATALOG_FENCE_MOVING;
		f->incarnation = 0;
		run(f, f->from, describe_body);
	}
	if (target == CATALOG_MOVE_LIVE)
		run(f, f->to, create_body);
	write_record(f, f->to, target, id, "here");
	return outcome(f, fn(f));
}

/* A row for each state at the source, in which each letter is for a state at the target. */
static void
assert_outcomes(struct fixture *f, char id, enum status (*fn)(struct fixture *f),
		const char *const expected[CATALOG_MOVE_STATES])
{
	for (int source = 0; source < CATALOG_MOVE_STATES; source++) {
		char row[CATALOG_MOVE_STATES + 1] = { 0 };

		for (int target = 0; target < CATALOG_MOVE_STATES; target++)
			row[target] = outcome_of(f, (enum catalog_move_state)source,
						 (enum catalog_move_state)target, id, fn);
		assert_string_equal(row, expected[source]);
	}
}

static void
a_move_goes_on_from_each_pair_of_records_or_says_why_not(void **state)
{
	static const char *const same[] = {
		"tAAtHH*", "PPPtttP", "ppppptt", "IIIIIII", "IIIIIII", "IIIIIII", "IIIIIII",
	};
	static const char *const other[] = {
		"tAAtHH*", "PPPPPPP", "ppppppp", "IIIIIII", "IIIIIII", "IIIIIII", "IIIIIII",
	};
	struct fixture *f = *state;

	assert_outcomes(f, 1, move, same);
	assert_outcomes(f, 2, move, other);
}

static void
a_rollback_undoes_each_pair_of_records_or_says_why_not(void **state)
{
	static const char *const same[] = {
		"NAAhhhF", "hhhhhh*", "FFFFFFF", "IIIIIII", "IIIIIII", "IIIIIII", "IIIIIII",
	};
	static const char *const other[] = {
		"NAAhhhF", "hhhhhh*", "FFFFFFF", "IIIIIII", "IIIIIII", "IIIIIII", "IIIIIII",
	};
	struct fixture *f = *state;

	assert_outcomes(f, 1, move_back, same);
	assert_outcomes(f, 2, move_back, other);
}

/* ---- What is told, and in what order ---- */

static void
a_move_tells_each_part_of_its_work(void **state)
{
	struct fixture *f = *state;
	unsigned calls;

	begin(f);
	run(f, f->from, create_body);
	assert_int_equal(move(f), STATUS_OK);
	assert_string_equal(f->told, "B03 B13 C14 c14 B15 E25 E26 B06 E06 E06");
	assert_int_equal(f->sum.documents, KEYS);
	calls = f->calls;
	/* It can be stopped by each of them, but for the check, and goes on behind it. */
	for (unsigned at = 1; at <= calls; at++) {
		begin(f);
		run(f, f->from, create_body);
		f->stop_at = at;
		if (move(f) != STATUS_OK)
			assert_int_equal(f->err.status, STATUS_CANCELLED);
		f->stop_at = 0;
		assert_int_equal(move(f), STATUS_OK);
		assert_int_equal(f->sum.documents, KEYS);
		assert_true(is_at(f, f->to));
		assert_false(is_at(f, f->from));
	}
	/* Nobody needs to be told. */
	begin(f);
	run(f, f->from, create_body);
	f->options.progress = NULL;
	assert_int_equal(catalog_move(&f->options, NULL, NULL), STATUS_OK);
	assert_true(is_at(f, f->to));
}

/* ---- What is refused ---- */

static void
set_description(struct fixture *f, enum catalog_fence fence, uint8_t incarnation)
{
	f->fence = fence;
	f->incarnation = incarnation;
	run(f, f->from, describe_body);
}

static void
a_database_that_cannot_go_is_refused(void **state)
{
	struct fixture *f = *state;

	begin(f);
	assert_refused(f, move(f), STATUS_NOT_FOUND,
		       arena_printf(f->arena, "there is no database \"%s\"", f->name).ptr);
	begin(f);
	run(f, f->from, create_body);
	set_description(f, CATALOG_FENCE_KEPT, 0);
	assert_refused(f, move(f), STATUS_FORBIDDEN,
		       arena_printf(f->arena,
				    "the database \"%s\" has been moved already; this is what was "
				    "kept of it",
				    f->name)
			       .ptr);
	begin(f);
	run(f, f->from, create_body);
	set_description(f, CATALOG_FENCE_NONE, UINT8_MAX);
	assert_refused(f, move(f), STATUS_LIMIT,
		       arena_printf(f->arena,
				    "the database \"%s\" has been moved or restored 255 times, "
				    "and cannot be any more",
				    f->name)
			       .ptr);
	/* One fewer is fine, and is the last one. */
	set_description(f, CATALOG_FENCE_NONE, UINT8_MAX - 1);
	assert_int_equal(move(f), STATUS_OK);
	assert_true(is_at(f, f->to));
	assert_int_equal(f->incarnation, UINT8_MAX);
	/* Fenced without a record, as by somebody else. */
	begin(f);
	run(f, f->from, create_body);
	set_description(f, CATALOG_FENCE_MOVING, 0);
	assert_int_equal(move(f), STATUS_UNAVAILABLE);
	assert_int_equal(state_at(f, f->from), CATALOG_MOVE_NONE);
}

static void
a_name_that_is_taken_at_the_target_is_refused(void **state)
{
	struct fixture *f = *state;

	begin(f);
	run(f, f->from, create_body);
	run(f, f->to, create_body);
	assert_int_equal(outcome(f, move(f)), 'E');
	/* Once it has been handed over, that is damage. */
	begin(f);
	run(f, f->from, create_body);
	write_record(f, f->from, CATALOG_MOVE_HANDED_OVER, 1, "there");
	run(f, f->to, create_body);
	write_record(f, f->to, CATALOG_MOVE_COPIED, 1, "here");
	assert_int_equal(move(f), STATUS_CORRUPT);
}

static void
a_copy_of_an_unknown_kind_is_not_discarded(void **state)
{
	const struct catalog_kind unknown = { .number = NO_KIND };
	struct fixture *f = *state;

	begin(f);
	f->kind = &unknown;
	write_record(f, f->to, CATALOG_MOVE_COPIED, 1, "here");
	assert_refused(
		f, move_back(f), STATUS_NEWER,
		"the database was written by a newer frond: it is of kind 79, which this one "
		"does not have");
	assert_int_equal(state_at(f, f->to), CATALOG_MOVE_COPIED);
}

static void
a_copy_that_came_from_elsewhere_is_not_discarded(void **state)
{
	struct fixture *f = *state;

	begin(f);
	write_record(f, f->to, CATALOG_MOVE_COPIED, 1, "elsewhere");
	assert_refused(f, move_back(f), STATUS_LOCKED,
		       arena_printf(f->arena,
				    "a database \"%s\" is being moved there already, from "
				    "elsewhere: name that store, or roll it back",
				    f->name)
			       .ptr);
	assert_int_equal(state_at(f, f->to), CATALOG_MOVE_COPIED);
}

static void
a_long_url_is_cut_and_still_the_same(void **state)
{
	struct fixture *f = *state;
	char url[CATALOG_MOVE_URL_BYTES + 2];

	memset(url, 'u', sizeof(url));
	for (size_t len = CATALOG_MOVE_URL_BYTES - 1; len <= CATALOG_MOVE_URL_BYTES + 1; len++) {
		size_t kept = len < CATALOG_MOVE_URL_BYTES ? len : CATALOG_MOVE_URL_BYTES;

		begin(f);
		run(f, f->from, create_body);
		url[len] = '\0';
		f->options.from_url = url;
		f->stop_at = 1; /* the name is reserved */
		assert_int_equal(move(f), STATUS_CANCELLED);
		assert_int_equal(state_at(f, f->to), CATALOG_MOVE_RESERVED);
		assert_int_equal(f->move.other.len, kept);
		assert_int_equal(move_back(f), STATUS_OK);
		assert_int_equal(state_at(f, f->to), CATALOG_MOVE_NONE);
		url[len] = 'u';
	}
}

/* ---- What is kept ---- */

static void
a_source_is_kept_if_that_was_said_at_any_time(void **state)
{
	struct fixture *f = *state;

	/* Said until it is stopped, or from then on: the last one is said after the end. */
	for (unsigned at = 1; at <= 12; at++)
		for (int first = 0; first < 2; first++) {
			bool stopped, fenced, left;

			begin(f);
			run(f, f->from, create_body);
			f->options.keep = first;
			f->stop_at = at;
			stopped = move(f) != STATUS_OK;
			fenced = state_at(f, f->from) != CATALOG_MOVE_NONE;
			left = !fenced && at > 2;
			f->options.keep = !first;
			f->stop_at = 0;
			if (stopped)
				assert_int_equal(move(f), STATUS_OK);
			/* What is only said before the fence is not written anywhere. */
			assert_int_equal(is_at(f, f->from),
					 left || fenced ? (first || !left) : !first);
			if (f->there)
				assert_int_equal(f->fence, CATALOG_FENCE_KEPT);
			if (f->there)
				assert_int_equal(move(f), STATUS_FORBIDDEN);
		}
}

/* ---- What is noticed of a copy ---- */

static void
a_sum_that_differs_is_noticed(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 5; i++) {
		struct catalog_move_sum sum;

		begin(f);
		run(f, f->from, create_body);
		f->stop_at = 3; /* all is copied */
		assert_int_equal(move(f), STATUS_CANCELLED);
		assert_int_equal(state_at(f, f->to), CATALOG_MOVE_COPYING);
		sum = f->move.sum;
		f->move.sum.documents += i == 0;
		f->move.sum.keys += i == 1;
		f->move.sum.bytes += i == 2;
		f->move.sum.fingerprint += i == 3;
		run(f, f->to, record_body);
		f->stop_at = 0;
		if (i == 4) {
			assert_int_equal(move(f), STATUS_OK);
			continue;
		}
		assert_refused(
			f, move(f), STATUS_CORRUPT,
			arena_printf(f->arena,
				     "the copy is not what was copied: %llu documents, %llu keys, "
				     "%llu bytes instead of %llu, %llu, %llu",
				     (unsigned long long)sum.documents,
				     (unsigned long long)sum.keys, (unsigned long long)sum.bytes,
				     (unsigned long long)sum.documents + (i == 0),
				     (unsigned long long)sum.keys + (i == 1),
				     (unsigned long long)sum.bytes + (i == 2))
				.ptr);
		assert_int_equal(move_back(f), STATUS_OK);
	}
}

static void
a_database_with_damage_is_not_handed_over(void **state)
{
	struct fixture *f = *state;

	for (int told = 0; told < 2; told++) {
		begin(f);
		f->value = "\xff";
		run(f, f->from, create_body);
		if (!told)
			f->options.found = NULL;
		assert_refused(f, move(f), STATUS_CORRUPT,
			       "3 things are wrong in the database, as \"frond verify\" finds "
			       "them; it is not moved like that, and can be rolled back");
		assert_int_equal(f->findings, told ? KEYS : 0);
		assert_int_equal(state_at(f, f->from), CATALOG_MOVE_MOVING);
		assert_int_equal(move_back(f), STATUS_OK);
		f->value = "value";
	}
}

/* ---- Two at once ---- */

static void
move_all(struct fixture *f)
{
	struct catalog_move_options options = f->options;

	options.progress = NULL;
	assert_int_equal(catalog_move(&options, NULL, NULL), STATUS_OK);
}

static void
roll_all_back(struct fixture *f)
{
	struct catalog_move_options options = f->options;

	options.progress = NULL;
	assert_int_equal(catalog_move_rollback(&options, NULL), STATUS_OK);
}

/* Wherever the other one has gone on, or has undone it, this one ends and says why. */
static void
a_move_that_somebody_else_goes_on_with_ends(void **state)
{
	static const char gone_on[] = "somebody else has gone on with this move, or has undone it";
	static const struct {
		void (*other)(struct fixture *f);
		unsigned at;
		enum status status;
		const char *text; /* NULL: the one about another move under way */
	} cases[] = {
		{ move_all, 1, STATUS_NOT_FOUND, "Database does not exist." },
		{ move_all, 2, STATUS_LOCKED, gone_on },
		{ move_all, 3, STATUS_LOCKED, gone_on },
		{ move_all, 4, STATUS_LOCKED, gone_on },
		{ move_all, 5, STATUS_LOCKED, gone_on },
		{ roll_all_back, 1, STATUS_LOCKED, NULL },
		{ roll_all_back, 2, STATUS_LOCKED, gone_on },
		{ roll_all_back, 3, STATUS_LOCKED, gone_on },
		{ roll_all_back, 4, STATUS_LOCKED, gone_on },
		{ roll_all_back, 5, STATUS_LOCKED, gone_on },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum status status;

		begin(f);
		run(f, f->from, create_body);
		f->stop_at = cases[i].at;
		f->at_stop = cases[i].other;
		status = move(f);
		if (cases[i].text)
			assert_refused(f, status, cases[i].status, cases[i].text);
		else
			assert_int_equal(outcome(f, status), 'P');
		assert_int_equal(is_at(f, f->to), cases[i].other == move_all);
		assert_int_equal(is_at(f, f->from), cases[i].other != move_all);
	}
}

static enum status
reserve_body(struct kv_tx *tx, void *arg)
{
	(void)tx;
	write_record(arg, ((struct fixture *)arg)->to, CATALOG_MOVE_RESERVED, 1, "here");
	return STATUS_OK;
}

/* A name that is reserved meanwhile; one that was moved here, and was deleted since, is free. */
static void
a_database_is_created_only_where_no_move_comes(void **state)
{
	struct fixture *f = *state;

	for (int i = CATALOG_MOVE_RESERVED; i < CATALOG_MOVE_STATES; i++) {
		struct err err = { 0 };
		struct kv_tx *tx;
		enum status status;

		begin(f);
		write_record(f, f->to, (enum catalog_move_state)i, 1, "here");
		assert_int_equal(kv_begin(f->to, KV_TX_READ_WRITE, &tx), STATUS_OK);
		status = tiny_create(tx, str_from_cstr(f->name), &err);
		kv_tx_free(tx);
		if (i == CATALOG_MOVE_LIVE) {
			assert_int_equal(status, STATUS_OK);
			continue;
		}
		assert_int_equal(status, STATUS_UNAVAILABLE);
		assert_string_equal(
			err.text,
			"A database of this name is being moved here from another store.");
	}
}

static void
who_creates_a_name_conflicts_with_whoever_reserves_it(void **state)
{
	struct fixture *f = *state;
	struct kv_future *commit;
	struct kv_tx *tx;

	begin(f);
	assert_int_equal(kv_begin(f->to, KV_TX_READ_WRITE, &tx), STATUS_OK);
	assert_int_equal(tiny_create(tx, str_from_cstr(f->name), NULL), STATUS_OK);
	assert_int_equal(reserve_body(NULL, f), STATUS_OK);
	commit = kv_commit(tx);
	assert_int_equal(kv_future_wait(commit), STATUS_TX_CONFLICT);
	kv_future_free(commit);
	kv_tx_free(tx);
}

static void
who_goes_on_conflicts_with_whoever_changes_the_record(void **state)
{
	struct fixture *f = *state;
	struct kv_future *commit;
	struct catalog_move read;
	struct kv_tx *tx;

	begin(f);
	assert_int_equal(reserve_body(NULL, f), STATUS_OK);
	assert_int_equal(kv_begin(f->to, KV_TX_READ_WRITE, &tx), STATUS_OK);
	assert_int_equal(catalog_move_get(tx, TINY, str_from_cstr(f->name), f->arena, &read, NULL),
			 STATUS_OK);
	assert_int_equal(kv_set(tx, STR("\x7f"), STR("any")), STATUS_OK);
	assert_int_equal(reserve_body(NULL, f), STATUS_OK);
	commit = kv_commit(tx);
	assert_int_equal(kv_future_wait(commit), STATUS_TX_CONFLICT);
	kv_future_free(commit);
	kv_tx_free(tx);
}

/* ---- A move that fails anywhere ---- */

static enum status
keys_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	struct catalog_db *db;

	TRY(catalog_open(tx, NULL, TINY, str_from_cstr(f->name), &db, NULL));
	for (int i = 0; i < KEYS; i++) {
		struct str value;

		assert_int_equal(
			tiny_get(tx, db, arena_printf(f->arena, "key%d", i), f->arena, &value),
			STATUS_OK);
		assert_true(str_eq(value, str_from_cstr(f->value)));
	}
	catalog_db_unref(db);
	return STATUS_OK;
}

/* It is in this store alone, as a whole, and nothing is left of the move. */
static void
assert_only_at(struct fixture *f, struct kv_store *store)
{
	struct kv_store *other = store == f->from ? f->to : f->from;

	assert_true(is_at(f, store));
	assert_int_equal(f->fence, CATALOG_FENCE_NONE);
	assert_false(is_at(f, other));
	assert_int_equal(state_at(f, f->from), CATALOG_MOVE_NONE);
	assert_int_equal(state_at(f, f->to), CATALOG_MOVE_NONE);
	run(f, store, keys_body);
}

static enum status
clear_body(struct kv_tx *tx, void *arg)
{
	(void)arg;
	return kv_clear_range(tx, STR(""), STR("\xff"));
}

/* The next database, in stores that are empty otherwise. */
static void
begin_alone(struct fixture *f)
{
	run(f, f->from, clear_body);
	run(f, f->to, clear_body);
	begin(f);
	run(f, f->from, create_body);
}

/* What a move that failed is followed by. */
enum then {
	THEN_GO_ON,
	THEN_GO_BACK, /* or on, if it is too late for that */
	THENS
};

static void
move_is_ended(struct fixture *f, enum status failed, enum then then)
{
	enum status status;

	f->err = (struct err){ 0 };
	if (failed == STATUS_OK) {
		assert_only_at(f, f->to);
		return;
	}
	if (then == THEN_GO_BACK) {
		status = move_back(f);
		if (status == STATUS_OK ||
		    (status == STATUS_NOT_FOUND && is_at(f, f->from) && !is_at(f, f->to))) {
			assert_only_at(f, f->from);
			return;
		}
		assert_true(status == STATUS_FORBIDDEN || status == STATUS_NOT_FOUND);
		if (status == STATUS_NOT_FOUND) {
			assert_only_at(f, f->to);
			return;
		}
		f->err = (struct err){ 0 };
	}
	status = move(f);
	/* It may have failed when all was done. */
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		fail_msg("%s: %s", status_name(status), f->err.text);
	assert_only_at(f, f->to);
}

/* Each call of one of the stores fails in turn: how many there are. */
static uint32_t
fail_calls(struct fixture *f, struct kv_store *store, enum status with, enum then then)
{
	for (uint32_t call = 1;; call++) {
		struct kv_faulty_tap tap = {
			.fail_call = call, .fail_with = with, .cut = SIZE_MAX, .flip = SIZE_MAX
		};
		enum status status;

		begin_alone(f);
		kv_faulty_tap(store, &tap);
		status = move(f);
		kv_faulty_tap(store, NULL);
		if (status != STATUS_OK) {
			assert_int_equal(status, with);
			assert_int_equal(f->err.status, with);
		}
		move_is_ended(f, status, then);
		assert_in_range(call, 1, FAILURES_MOST);
		if (tap.calls < call)
			return call;
		/* What another attempt helps against is no failure of the move. */
		if (with == STATUS_TX_CONFLICT)
			assert_int_equal(status, STATUS_OK);
	}
}

static void
a_move_of_which_a_call_fails_goes_on_or_back(void **state)
{
	struct fixture *f = *state;

	for (enum then then = THEN_GO_ON; then < THENS; then++) {
		assert_true(fail_calls(f, f->from, STATUS_IO, then) > 20);
		assert_true(fail_calls(f, f->to, STATUS_IO, then) > 20);
	}
}

static void
a_move_whose_transactions_conflict_is_a_whole_one(void **state)
{
	struct fixture *f = *state;

	assert_true(fail_calls(f, f->from, STATUS_TX_CONFLICT, THEN_GO_ON) > 20);
	assert_true(fail_calls(f, f->to, STATUS_TX_CONFLICT, THEN_GO_ON) > 20);
}

static void
a_move_without_memory_goes_on_or_back(void **state)
{
	struct fixture *f = *state;

	for (enum then then = THEN_GO_ON; then < THENS; then++)
		for (uint64_t failing = 1;; failing++) {
			enum status status;
			bool failed;

			begin_alone(f);
			(void)mem_fail_only(failing);
			status = move(f);
			failed = mem_fail_only(0) >= failing;
			assert_true(status == STATUS_OK || status == STATUS_NOMEM ||
				    status == STATUS_LIMIT);
			move_is_ended(f, status, then);
			assert_in_range(failing, 1, FAILURES_MOST);
			if (!failed) {
				assert_int_equal(status, STATUS_OK);
				break;
			}
		}
}

/* The same of going back: what has failed can be repeated. */
static void
a_rollback_of_which_a_call_fails_can_be_repeated(void **state)
{
	struct fixture *f = *state;
	struct kv_store *const stores[] = { f->from, f->to };

	for (size_t i = 0; i < 2; i++)
		for (uint32_t call = 1;; call++) {
			struct kv_faulty_tap tap = { .fail_call = call,
						     .fail_with = STATUS_IO,
						     .cut = SIZE_MAX,
						     .flip = SIZE_MAX };
			enum status status;

			begin_alone(f);
			f->stop_at = 2;
			assert_int_equal(move(f), STATUS_CANCELLED);
			kv_faulty_tap(stores[i], &tap);
			status = move_back(f);
			kv_faulty_tap(stores[i], NULL);
			assert_true(status == STATUS_OK || status == STATUS_IO);
			if (status != STATUS_OK) {
				status = move_back(f);
				assert_true(status == STATUS_OK || status == STATUS_NOT_FOUND);
			}
			assert_only_at(f, f->from);
			assert_in_range(call, 1, FAILURES_MOST);
			if (tap.calls < call)
				break;
		}
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_move_goes_on_from_each_pair_of_records_or_says_why_not),
		CASE(a_rollback_undoes_each_pair_of_records_or_says_why_not),
		CASE(a_move_tells_each_part_of_its_work),
		CASE(a_database_that_cannot_go_is_refused),
		CASE(a_name_that_is_taken_at_the_target_is_refused),
		CASE(a_copy_of_an_unknown_kind_is_not_discarded),
		CASE(a_copy_that_came_from_elsewhere_is_not_discarded),
		CASE(a_long_url_is_cut_and_still_the_same),
		CASE(a_source_is_kept_if_that_was_said_at_any_time),
		CASE(a_sum_that_differs_is_noticed),
		CASE(a_database_with_damage_is_not_handed_over),
		CASE(a_move_that_somebody_else_goes_on_with_ends),
		CASE(a_database_is_created_only_where_no_move_comes),
		CASE(who_creates_a_name_conflicts_with_whoever_reserves_it),
		CASE(who_goes_on_conflicts_with_whoever_changes_the_record),
		CASE(a_move_of_which_a_call_fails_goes_on_or_back),
		CASE(a_move_whose_transactions_conflict_is_a_whole_one),
		CASE(a_move_without_memory_goes_on_or_back),
		CASE(a_rollback_of_which_a_call_fails_can_be_repeated),
	};

	/* Stores through which calls can be made to fail. */
	(void)setenv("FROND_TEST_FAULTS", "rate=0,delay=0,watch=0", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
