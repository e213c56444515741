/*
 * The steps of a build over documents that a table makes up: how many each step takes, by what the
 * one before has taken and by what was in its way; which stretches it goes on with, and what it
 * says when the index or the database is no more what it was.
 */
#include <stdio.h>
#include <string.h>

#include "base/arena_apart.h"
#include "base/clock.h"
#include "base/mem.h"
#include "catalog/records.h"
#include "fixture.h"
#include "index/engine/build.h"
#include "kv/faulty/faulty.h"
#include "loop/pause.h"

enum {
	VISITS_MOST = 64,
	BUILD_WAIT_MS = 10,
	CUTS_MOST = INDEX_BUILD_STRETCHES - 1,
	MANY_STEPS = 40,
	ENDLESS = -1, /* documents of a stretch that no step comes to the end of */
	PIECE_BYTES = 50000,
	REQUEST_WAITS = 50, /* of a request, for others of its process */
	EXAMPLES = 20,      /* documents that a stretch names at most */
	TOLD_BYTES = 4096,  /* of what an index failed with */
	FAILURE_BYTES = TOLD_BYTES + 16,
	LONG_ID_BYTES = 500,
	PROGRESS_BYTES = 1 << 20,
	INDEXES_MOST = 17, /* of a database in these tests */
};

/* ---- In the place of the clock and of pauses ---- */

static uint64_t now_ns; /* 0: the clock is the machine's */
static unsigned pauses;
static void (*at_pause)(void);

uint64_t __real_clock_mono_ns(void);
uint64_t __wrap_clock_mono_ns(void);
void __wrap_wait_pause(uint64_t ms);

uint64_t
__wrap_clock_mono_ns(void)
{
	return now_ns ? now_ns : __real_clock_mono_ns();
}

void
__wrap_wait_pause(uint64_t ms)
{
	/* Other pauses are those before another attempt. */
	if (ms != BUILD_WAIT_MS)
		return;
	pauses++;
	if (at_pause)
		at_pause();
}

/* ---- Documents that are made up ---- */

/* What becomes of a visit. */
struct visit {
	uint64_t took_ms;
	size_t bytes;       /* that it writes */
	enum status status; /* of the visit */
	bool conflicts;     /* somebody changes what it has read before it commits */
	bool idle;          /* it passes no document */
};

static struct world {
	struct fixture *f;
	const struct index_documents *documents; /* those of the model */
	uint64_t number;                         /* of the index */
	const struct visit *script; /* what becomes of the visits, in turn; then nothing */
	size_t script_count;
	int left; /* documents in a stretch, or ENDLESS */
	struct str cuts[CUTS_MOST];
	size_t cut_count;
	uint64_t total;
	/* What was asked for. */
	struct index_stretch visits[VISITS_MOST];
	size_t count;
	unsigned cut_calls;
	size_t cut_parts;
	void (*at_visit)(void);
	const char *const *entered; /* ids of documents with the same value, that are visited */
	size_t empty;               /* so many visits meet none of these */
} world;

static enum status
cut(struct kv_tx *tx, const struct catalog_db *db, size_t parts, struct arena *arena,
    const struct str **ret_ids, size_t *ret_count, uint64_t *ret_documents)
{
	(void)tx;
	(void)db;
	(void)arena;
	world.cut_calls++;
	world.cut_parts = parts;
	*ret_ids = world.cuts;
	*ret_count = world.cut_count;
	*ret_documents = world.total;
	return STATUS_OK;
}

static void
obstacle_key(const struct catalog_db *db, struct buf *key)
{
	buf_append_str(key, db->prefix);
	tuple_put_str(key, STR("obstacle"));
}

static enum status
obstacle_body(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf key = BUF_INIT(KV_LIMIT_KEY_BYTES);

	obstacle_key(arg, &key);
	return kv_set(tx, buf_str(&key), STR("written"));
}

/* Reads a key, which somebody else changes before this transaction commits. */
static enum status
visit_conflict(struct kv_tx *tx, const struct catalog_db *db)
{
	AUTO(buf_release) struct buf key = BUF_INIT(KV_LIMIT_KEY_BYTES);
	struct catalog_db copy = *db;
	struct kv_future *f;

	obstacle_key(db, &key);
	f = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	return kv_run(world.f->calm, obstacle_body, &copy, NULL, NULL);
}

/* Writes so many bytes beneath the database, and clears them again. */
static enum status
visit_write(struct kv_tx *tx, const struct catalog_db *db, size_t bytes)
{
	static char piece[PIECE_BYTES];
	AUTO(buf_release) struct buf key = BUF_INIT(KV_LIMIT_KEY_BYTES);

	obstacle_key(db, &key);
	for (size_t done = 0; done < bytes; done += sizeof(piece))
		TRY(kv_set(tx, buf_str(&key), str_of(piece, sizeof(piece))));
	return STATUS_OK;
}

static enum status
visit_entered(index_visitor *visitor, void *arg, uint64_t *count)
{
	static const char json[] = "{\"n\":1}";

	for (size_t i = 0; world.entered[i]; i++) {
		struct doc doc = fixture_doc(world.f, json);
		const struct index_source source = { .id = str_from_cstr(world.entered[i]),
						     .body = doc.packed,
						     .leaves = doc.leaves,
						     .count = doc.count };

		TRY(visitor(arg, &source));
		++*count;
	}
	return STATUS_OK;
}

static enum status
visit(struct kv_tx *tx, const struct catalog_db *db, const struct index_def *def,
      const struct index_stretch *stretch, struct arena *arena, index_visitor *visitor, void *arg,
      struct index_passed *ret)
{
	const struct visit nothing = { 0 };
	const struct visit *v = world.count < world.script_count ? &world.script[world.count]
								 : &nothing;
	struct index_stretch *noted = &world.visits[world.count];

	assert_int_equal(def->number, world.number);
	assert_true(world.count < VISITS_MOST);
	world.count++;
	*noted = *stretch;
	noted->after = arena_dup(world.f->arena, stretch->after);
	noted->end = arena_dup(world.f->arena, stretch->end);
	if (now_ns)
		now_ns += v->took_ms * CLOCK_NS_PER_MS;
	if (world.at_visit)
		world.at_visit();
	*ret = (struct index_passed){ .last = STR("") };
	if (world.entered && noted < world.visits + world.empty)
		return STATUS_OK;
	if (world.entered)
		return visit_entered(visitor, arg, &ret->count);
	TRY(visit_write(tx, db, v->bytes));
	if (v->conflicts)
		TRY(visit_conflict(tx, db));
	ret->more = world.left == ENDLESS;
	ret->count = v->idle ? 0 : ret->more ? stretch->limit : (uint64_t)world.left;
	ret->last = arena_printf(arena, "%.*s+%zu", STR_ARG(stretch->after), world.count);
	assert_non_null(ret->last.ptr);
	return v->status;
}

static struct index_documents made_up;

struct create_arg {
	struct fixture *f;
	uint32_t flags;
	uint64_t number;
};

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	static const struct str path[] = { { "n", 1 } };
	static const struct index_column column = { .path = path, .path_count = 1 };
	struct create_arg *a = arg;
	const struct index_def terms = {
		.state = INDEX_BUILDING,
		.flags = a->flags | INDEX_SPARSE,
		.order = DOC_KEY_COUCH,
		.name = STR("by-n"),
		.owner = STR("owner"),
		.columns = &column,
		.column_count = 1,
	};

	return index_create(tx, a->f->db, &terms, &a->number, NULL);
}

static void
create_index(uint32_t flags)
{
	struct create_arg arg = { .f = world.f, .flags = flags };

	assert_int_equal(kv_run(world.f->calm, create_body, &arg, NULL, NULL), STATUS_OK);
	fixture_reopen(world.f);
	world.number = arg.number;
}

static int
setup(void **state)
{
	assert_int_equal(fixture_setup(state), 0);
	world = (struct world){ .f = *state, .left = ENDLESS };
	world.documents = index_documents_of(world.f->db);
	made_up = *world.documents;
	made_up.cut = cut;
	made_up.visit = visit;
	made_up.make_way = NULL;
	index_documents_register(&made_up);
	create_index(0);
	pauses = 0;
	at_pause = NULL;
	return 0;
}

static int
teardown(void **state)
{
	now_ns = 0;
	index_documents_register(world.documents);
	return fixture_teardown(state);
}

static struct index_build_key
build_key(void)
{
	return (struct index_build_key){ .space = CATALOG_SPACE_COUCH,
					 .db_name = STR("db"),
					 .db_number = world.f->db->number,
					 .number = world.number };
}

static enum status
run_key(const struct index_build_key *key, uint64_t preferred, unsigned steps,
	enum index_state *ret_state)
{
	struct err err = { 0 };
	enum status status = index_build_run(world.f->store, key, preferred, steps, ret_state,
					     &err);

	assert_true(status == STATUS_OK || err.status == STATUS_OK || err.status == status);
	return status;
}

/* Runs steps that succeed; the state of the index. */
static enum index_state
run_steps(uint64_t preferred, unsigned steps)
{
	const struct index_build_key key = build_key();
	enum index_state state;

	assert_int_equal(run_key(&key, preferred, steps, &state), STATUS_OK);
	return state;
}

/* ---- How many documents a step takes ---- */

/* Runs as many steps as there are limits, and compares. */
static void
expect_limits(const struct visit *script, size_t count, const size_t *limits, size_t limit_count)
{
	unsigned steps = 0;

	world.script = script;
	world.script_count = count;
	world.count = 0;
	for (size_t i = 0; i < limit_count; i++)
		steps += i >= count || (script[i].status == STATUS_OK && !script[i].conflicts);
	now_ns = CLOCK_NS_PER_MS;
	assert_int_equal(run_steps(0, steps), INDEX_BUILDING);
	now_ns = 0;
	assert_int_equal(world.count, limit_count);
	for (size_t i = 0; i < limit_count; i++)
		if (world.visits[i].limit != limits[i])
			fail_msg("the visit %zu has the limit %zu, and not %zu", i,
				 world.visits[i].limit, limits[i]);
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define EXPECT_LIMITS(script, ...)                                                                 \
	expect_limits(script, COUNT(script), (const size_t[]){ __VA_ARGS__ },                      \
		      COUNT(((const size_t[]){ __VA_ARGS__ })))

static void
steps_grow_up_to_the_most_while_nothing_is_in_the_way(void **state)
{
	static const struct visit fast[] = { { 0 } };

	(void)state;
	EXPECT_LIMITS(fast, 1000, 4000, 16000, 16000);
	/* Each run begins anew. */
	EXPECT_LIMITS(fast, 1000, 4000);
}

/* A step is to take INDEX_BUILD_STEP_MS: so many documents as are likely to take that. */
static void
steps_take_as_many_as_they_have_time_for(void **state)
{
	static const struct visit quarter[] = { { .took_ms = 100 } };
	static const struct visit a_little_more[] = { { .took_ms = 125 } };
	static const struct visit half[] = { { .took_ms = 200 } };
	static const struct visit almost[] = { { .took_ms = 399 } };
	static const struct visit all[] = { { .took_ms = 400 }, { .took_ms = 400 } };
	static const struct visit too_long[] = { { .took_ms = 401 }, { .took_ms = 401 } };
	static const struct visit far_too_long[] = { { .took_ms = 4000 } };

	(void)state;
	EXPECT_LIMITS(quarter, 1000, 4000);
	EXPECT_LIMITS(a_little_more, 1000, 3200);
	EXPECT_LIMITS(half, 1000, 2000, 8000);
	EXPECT_LIMITS(almost, 1000, 1002);
	EXPECT_LIMITS(all, 1000, 1000, 1000, 4000);
	EXPECT_LIMITS(too_long, 1000, 500, 250);
	EXPECT_LIMITS(far_too_long, 1000, 500, 2000);
}

/* Down to one document, and no further. */
static void
steps_that_take_too_long_have_one_document_at_last(void **state)
{
	static struct visit slow[14];

	(void)state;
	for (size_t i = 0; i < COUNT(slow); i++)
		slow[i].took_ms = 1000;
	EXPECT_LIMITS(slow, 1000, 500, 250, 125, 62, 31, 15, 7, 3, 1, 1, 1);
}

static void
steps_write_as_many_bytes_as_they_should(void **state)
{
	static const struct visit some[] = { { .bytes = 100000 } };
	static const struct visit half[] = { { .bytes = 2000000 } };
	static const struct visit twice[] = { { .bytes = 8000000 } };

	(void)state;
	EXPECT_LIMITS(some, 1000, 4000);
	world.script = half;
	world.script_count = 1;
	world.count = 0;
	assert_int_equal(run_steps(0, 2), INDEX_BUILDING);
	assert_in_range(world.visits[1].limit, 1900, 1999);
	world.script = twice;
	world.count = 0;
	assert_int_equal(run_steps(0, 2), INDEX_BUILDING);
	assert_in_range(world.visits[1].limit, 480, 499);
}

/* A step that passes nothing says nothing of the next one. */
static void
steps_that_pass_no_document_leave_the_limit_as_it_is(void **state)
{
	static const struct visit idle[] = { { .idle = true, .took_ms = 1000 },
					     { .idle = true, .bytes = 8000000 } };

	(void)state;
	EXPECT_LIMITS(idle, 1000, 1000, 1000, 4000);
}

/* Each attempt has half as many, and the step behind it does not grow. */
static void
an_attempt_that_met_a_writer_is_followed_by_a_smaller_one(void **state)
{
	static const struct visit script[] = {
		{ 0 }, { .conflicts = true }, { .conflicts = true }, { 0 }, { 0 },
	};

	(void)state;
	EXPECT_LIMITS(script, 1000, 4000, 2000, 1000, 1000, 4000);
	assert_false(world.visits[0].exact);
	assert_false(world.visits[1].exact);
	for (size_t i = 2; i < world.count; i++)
		assert_true(world.visits[i].exact);
	/* The attempts are at the same documents, and the next step is behind them. */
	assert_true(str_eq(world.visits[2].after, world.visits[1].after));
	assert_true(str_eq(world.visits[3].after, world.visits[1].after));
	assert_false(str_eq(world.visits[4].after, world.visits[3].after));
	/* The next run knows nothing of that. */
	EXPECT_LIMITS(script, 1000);
	assert_false(world.visits[0].exact);
}

/* What no transaction holds is tried with a quarter, and later steps have no more than that. */
static void
a_step_that_is_too_large_makes_all_that_follow_smaller(void **state)
{
	static const struct visit too_large[] = { { .status = STATUS_TX_TOO_LARGE } };
	static const struct visit full[] = { { .status = STATUS_LIMIT }, { 0 } };
	static const struct visit later[] = { { 0 }, { .status = STATUS_TX_TOO_LARGE } };

	(void)state;
	EXPECT_LIMITS(too_large, 1000, 250, 250, 250);
	EXPECT_LIMITS(full, 1000, 250, 250);
	EXPECT_LIMITS(later, 1000, 4000, 1000, 1000);
}

static void
expect_failure(enum status status, const size_t *limits, size_t count)
{
	static struct visit script[VISITS_MOST];
	const struct index_build_key key = build_key();
	enum index_state state;

	for (size_t i = 0; i < VISITS_MOST; i++)
		script[i].status = status;
	world.script = script;
	world.script_count = VISITS_MOST;
	world.count = 0;
	assert_int_equal(run_key(&key, 0, 1, &state), status);
	assert_int_equal(state, INDEX_BUILDING);
	assert_int_equal(world.count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(world.visits[i].limit, limits[i]);
}

static void
a_step_of_one_document_that_fails_ends_the_run(void **state)
{
	static const size_t down[] = { 1000, 250, 62, 15, 3, 1 };

	(void)state;
	expect_failure(STATUS_TX_TOO_LARGE, down, COUNT(down));
	expect_failure(STATUS_LIMIT, down, COUNT(down));
	expect_failure(STATUS_IO, down, 1);
	expect_failure(STATUS_CORRUPT, down, 1);
}

/* ---- Stretches ---- */

static const struct str three_cuts[] = { { "f", 1 }, { "m", 1 }, { "t", 1 } };

static void
cut_in_four(void)
{
	memcpy(world.cuts, three_cuts, sizeof(three_cuts));
	/* No cut: the last stretch has no end. */
	world.cuts[COUNT(three_cuts)] = STR("z");
	world.cut_count = COUNT(three_cuts);
	world.left = 5;
	world.total = 20;
}

static bool
visit_was_of(size_t at, const char *after, const char *end)
{
	return str_eq(world.visits[at].after, str_from_cstr(after)) &&
	       str_eq(world.visits[at].end, str_from_cstr(end));
}

static void
stretches_lie_between_the_cuts_and_each_is_done_once(void **state)
{
	(void)state;
	cut_in_four();
	assert_int_equal(run_steps(0, MANY_STEPS), INDEX_READY);
	assert_int_equal(world.cut_calls, 1);
	assert_int_equal(world.cut_parts, INDEX_BUILD_STRETCHES);
	assert_int_equal(world.count, 4);
	assert_true(visit_was_of(0, "", "f"));
	assert_true(visit_was_of(1, "f", "m"));
	assert_true(visit_was_of(2, "m", "t"));
	assert_true(visit_was_of(3, "t", ""));
	/* It is what it is, and nobody looks at documents again. */
	assert_int_equal(run_steps(0, MANY_STEPS), INDEX_READY);
	assert_int_equal(world.count, 4);
}

/* As many as there may be, of which the last has no end. */
static void
there_are_as_many_stretches_as_there_may_be(void **state)
{
	static char ids[CUTS_MOST][4];

	(void)state;
	for (size_t i = 0; i < CUTS_MOST; i++) {
		(void)snprintf(ids[i], sizeof(ids[i]), "%c", 'b' + (int)i);
		world.cuts[i] = str_from_cstr(ids[i]);
	}
	world.cut_count = CUTS_MOST;
	world.left = 1;
	assert_int_equal(run_steps(INDEX_BUILD_STRETCHES - 1, MANY_STEPS), INDEX_READY);
	assert_int_equal(world.count, INDEX_BUILD_STRETCHES);
	assert_true(visit_was_of(0, ids[CUTS_MOST - 1], ""));
	assert_true(visit_was_of(1, "", ids[0]));
	assert_true(visit_was_of(CUTS_MOST, ids[CUTS_MOST - 2], ids[CUTS_MOST - 1]));
}

static void
a_run_begins_with_the_stretch_that_it_prefers_and_comes_round(void **state)
{
	(void)state;
	cut_in_four();
	assert_int_equal(run_steps(2, 1), INDEX_BUILDING);
	assert_int_equal(run_steps(2, 1), INDEX_BUILDING);
	assert_int_equal(run_steps(2, 1), INDEX_BUILDING);
	assert_true(visit_was_of(0, "m", "t"));
	assert_true(visit_was_of(1, "t", ""));
	assert_true(visit_was_of(2, "", "f"));
	/* A preference beyond the stretches that there are is one of them: 7 of 4 is the last. */
	/* Nothing is left behind it but the end, which is no step. */
	assert_int_equal(run_steps(7, 1), INDEX_READY);
	assert_true(visit_was_of(3, "f", "m"));
	assert_int_equal(world.count, 4);
}

/* A step that has not come to the end of its stretch is followed by one of the same stretch. */
static void
a_stretch_goes_on_where_it_was(void **state)
{
	(void)state;
	cut_in_four();
	world.left = ENDLESS;
	assert_int_equal(run_steps(1, 3), INDEX_BUILDING);
	assert_true(visit_was_of(0, "f", "m"));
	assert_true(visit_was_of(1, "f+1", "m"));
	assert_true(visit_was_of(2, "f+1+2", "m"));
	assert_int_equal(run_steps(1, 1), INDEX_BUILDING);
	assert_true(visit_was_of(3, "f+1+2+3", "m"));
	assert_int_equal(run_steps(3, 1), INDEX_BUILDING);
	assert_true(visit_was_of(4, "t", ""));
}

static void
a_run_without_steps_makes_the_stretches_alone(void **state)
{
	(void)state;
	cut_in_four();
	assert_int_equal(run_steps(0, 0), INDEX_BUILDING);
	assert_int_equal(world.cut_calls, 1);
	assert_int_equal(world.count, 0);
	assert_int_equal(run_steps(0, 0), INDEX_BUILDING);
	assert_int_equal(world.cut_calls, 1);
	assert_int_equal(world.count, 0);
	assert_int_equal(run_steps(0, 3), INDEX_BUILDING);
	assert_int_equal(world.count, 3);
	assert_int_equal(run_steps(0, 0), INDEX_BUILDING);
	assert_int_equal(run_steps(0, 1), INDEX_READY);
	assert_int_equal(world.count, 4);
}

/* ---- Stretches of others ---- */

static struct index_build_key
claiming_key(void)
{
	struct index_build_key key = build_key();

	key.claims = true;
	return key;
}

static enum index_state
run_claiming(uint64_t preferred, unsigned steps)
{
	const struct index_build_key key = claiming_key();
	enum index_state state;

	assert_int_equal(run_key(&key, preferred, steps, &state), STATUS_OK);
	return state;
}

static void
what_others_are_at_is_left_to_them(void **state)
{
	const struct index_build_key key = claiming_key();

	(void)state;
	cut_in_four();
	assert_true(index_builds_claim(&key, 0));
	assert_true(index_builds_claim(&key, 2));
	assert_false(index_builds_claim(&key, 2));
	assert_int_equal(run_claiming(0, 2), INDEX_BUILDING);
	assert_true(visit_was_of(0, "f", "m"));
	assert_true(visit_was_of(1, "t", ""));
	assert_int_equal(pauses, 0);
	/* All that is left is theirs: a wait, and nothing else. */
	assert_int_equal(run_claiming(0, 2), INDEX_BUILDING);
	assert_int_equal(pauses, 1);
	assert_int_equal(world.count, 2);
	/* Without a step to do there is nothing to wait for. */
	assert_int_equal(run_claiming(0, 0), INDEX_BUILDING);
	assert_int_equal(pauses, 1);
	index_builds_leave(&key, 0);
	assert_int_equal(run_claiming(0, 2), INDEX_BUILDING);
	assert_true(visit_was_of(2, "", "f"));
	assert_int_equal(pauses, 2);
	/* Who does not claim does what others are at, too. */
	assert_int_equal(run_steps(0, 2), INDEX_READY);
	assert_true(visit_was_of(3, "m", "t"));
	index_builds_leave(&key, 2);
}

static void
leave_at_the_third_pause(void)
{
	const struct index_build_key key = claiming_key();

	if (pauses == 3)
		index_builds_leave(&key, 2);
}

/* A request is to find the index ready if that is soon. */
static void
a_request_waits_longer_for_others_and_not_for_ever(void **state)
{
	const struct index_build_key key = claiming_key();

	(void)state;
	cut_in_four();
	assert_true(index_builds_claim(&key, 2));
	assert_int_equal(run_claiming(INDEX_BUILD_OF_REQUESTS, MANY_STEPS), INDEX_BUILDING);
	assert_int_equal(world.count, 3);
	assert_int_equal(pauses, REQUEST_WAITS);
	pauses = 0;
	at_pause = leave_at_the_third_pause;
	assert_int_equal(run_claiming(INDEX_BUILD_OF_REQUESTS, MANY_STEPS), INDEX_READY);
	assert_int_equal(pauses, 3);
	assert_int_equal(world.count, 4);
}

/* The end is claimed as a stretch is. */
static void
one_thread_finishes_a_build(void **state)
{
	const struct index_build_key key = claiming_key();

	(void)state;
	cut_in_four();
	assert_true(index_builds_claim(&key, INDEX_BUILD_STRETCHES));
	assert_int_equal(run_claiming(0, 4), INDEX_BUILDING);
	assert_int_equal(pauses, 0);
	assert_int_equal(run_claiming(0, 4), INDEX_BUILDING);
	assert_int_equal(pauses, 1);
	index_builds_leave(&key, INDEX_BUILD_STRETCHES);
	assert_int_equal(run_claiming(0, 4), INDEX_READY);
	assert_int_equal(world.count, 4);
	/* A run leaves what it has claimed. */
	for (uint64_t i = 0; i <= INDEX_BUILD_STRETCHES; i++) {
		assert_true(index_builds_claim(&key, i));
		index_builds_leave(&key, i);
	}
}

static void
claim_is_there(void)
{
	const struct index_build_key key = claiming_key();

	assert_false(index_builds_claim(&key, 1));
	assert_true(index_builds_claim(&key, 0));
	index_builds_leave(&key, 0);
}

static void
a_run_claims_the_stretch_that_it_is_at(void **state)
{
	static const struct visit fails[] = { { .status = STATUS_IO } };
	struct index_build_key key = claiming_key(), other = key;
	enum index_state index_state;

	(void)state;
	cut_in_four();
	world.at_visit = claim_is_there;
	assert_int_equal(run_claiming(1, 1), INDEX_BUILDING);
	world.left = ENDLESS;
	world.at_visit = NULL;
	world.script = fails;
	world.script_count = 1;
	world.count = 0;
	assert_int_equal(run_key(&key, 2, 1, &index_state), STATUS_IO);
	assert_true(index_builds_claim(&key, 2));
	/* Another index, and another database, have stretches of their own. */
	other.number++;
	assert_true(index_builds_claim(&other, 2));
	index_builds_leave(&other, 2);
	other = key;
	other.db_number++;
	assert_true(index_builds_claim(&other, 2));
	index_builds_leave(&other, 2);
	assert_false(index_builds_claim(&key, 2));
	index_builds_leave(&key, 2);
	index_builds_leave(&key, 2); /* what is not claimed can be left, too */
	assert_true(index_builds_claim(&key, 2));
	index_builds_leave(&key, 2);
}

/* Without room to note a claim everybody has it. */
static void
more_claims_than_can_be_noted_are_granted(void **state)
{
	enum {
		NOTED = 256
	};
	struct index_build_key key = claiming_key();

	(void)state;
	for (uint64_t i = 0; i < NOTED; i++)
		assert_true(index_builds_claim(&key, i));
	assert_true(index_builds_claim(&key, NOTED));
	assert_true(index_builds_claim(&key, NOTED));
	assert_false(index_builds_claim(&key, NOTED - 1));
	index_builds_leave(&key, 7);
	assert_true(index_builds_claim(&key, NOTED));
	assert_false(index_builds_claim(&key, NOTED));
	assert_true(index_builds_claim(&key, 7));
	for (uint64_t i = 0; i <= NOTED; i++)
		index_builds_leave(&key, i);
	for (uint64_t i = 0; i <= NOTED; i++) {
		assert_true(index_builds_claim(&key, i));
		index_builds_leave(&key, i);
	}
}

/* ---- What is built is not there any more ---- */

static void
what_is_no_index_of_the_database_is_dropped(void **state)
{
	struct index_build_key key = build_key();
	enum index_state index_state;

	(void)state;
	key.number++;
	assert_int_equal(run_key(&key, 0, 1, &index_state), STATUS_OK);
	assert_int_equal(index_state, INDEX_DROPPED);
	key = build_key();
	key.db_number++;
	assert_int_equal(run_key(&key, 0, 1, &index_state), STATUS_OK);
	assert_int_equal(index_state, INDEX_DROPPED);
	key = build_key();
	key.db_name = STR("nowhere");
	assert_int_equal(run_key(&key, 0, 1, &index_state), STATUS_OK);
	assert_int_equal(index_state, INDEX_DROPPED);
	assert_int_equal(world.cut_calls, 0);
	assert_int_equal(world.count, 0);
}

static enum status
drop_body(struct kv_tx *tx, void *arg)
{
	(void)arg;
	return index_drop(tx, world.f->db, index_find(world.f->db, world.number));
}

static void
drop_while_it_is_visited(void)
{
	world.at_visit = NULL;
	assert_int_equal(kv_run(world.f->calm, drop_body, NULL, NULL, NULL), STATUS_OK);
}

static void
an_index_that_is_dropped_meanwhile_is_not_built_on(void **state)
{
	(void)state;
	world.at_visit = drop_while_it_is_visited;
	assert_int_equal(run_steps(0, MANY_STEPS), INDEX_DROPPED);
	assert_int_equal(world.count, 1);
}

static enum status
delete_body(struct kv_tx *tx, void *arg)
{
	(void)arg;
	return catalog_delete(tx, CATALOG_SPACE_COUCH, STR("db"), NULL);
}

static void
delete_while_it_is_visited(void)
{
	world.at_visit = NULL;
	assert_int_equal(kv_run(world.f->calm, delete_body, NULL, NULL, NULL), STATUS_OK);
}

static void
a_database_that_is_deleted_meanwhile_is_not_built_on(void **state)
{
	(void)state;
	world.at_visit = delete_while_it_is_visited;
	assert_int_equal(run_steps(0, MANY_STEPS), INDEX_DROPPED);
	assert_int_equal(world.count, 1);
}

/* ---- How far it is ---- */

static void
progress_is(size_t most, uint64_t done, uint64_t total, size_t expected)
{
	struct kv_tx *tx = fixture_begin(world.f);
	struct index_progress *list;
	size_t count;

	assert_int_equal(index_progress_list(tx, most, world.f->arena, &list, &count), STATUS_OK);
	kv_tx_free(tx);
	assert_int_equal(count, expected);
	for (size_t i = 0; i < count; i++)
		assert_true(str_eq(list[i].name, STR("by-n")) &&
			    str_eq(list[i].owner, STR("owner")) &&
			    str_eq(list[i].db_name, STR("db")));
	if (!count)
		return;
	assert_int_equal(list[0].done, done);
	assert_int_equal(list[0].total, total);
	assert_true(list[0].started_ms <= list[0].updated_ms);
	assert_true((list[0].started_ms > 0) == (total > 0));
}

static void
progress_is_what_all_stretches_have_passed(void **state)
{
	(void)state;
	cut_in_four();
	progress_is(5, 0, 0, 1);
	assert_int_equal(run_steps(0, 0), INDEX_BUILDING);
	progress_is(5, 0, 20, 1);
	assert_int_equal(run_steps(2, 1), INDEX_BUILDING);
	progress_is(5, 5, 20, 1);
	assert_int_equal(run_steps(2, 2), INDEX_BUILDING);
	progress_is(5, 15, 20, 1);
	create_index(0);
	progress_is(5, 15, 20, 2);
	progress_is(1, 15, 20, 1);
	progress_is(0, 0, 0, 0);
	world.number--;
	assert_int_equal(run_steps(0, 2), INDEX_READY);
	progress_is(5, 0, 0, 1);
}

static void
progress_that_has_no_memory_says_so(void **state)
{
	size_t bytes;

	(void)state;
	cut_in_four();
	assert_int_equal(run_steps(0, 1), INDEX_BUILDING);
	for (bytes = 0;; bytes += 16) {
		struct arena *arena = arena_new(bytes);
		struct kv_tx *tx = fixture_begin(world.f);
		struct index_progress *list;
		size_t count;
		enum status status = index_progress_list(tx, 3, arena, &list, &count);

		kv_tx_free(tx);
		arena_free(arena);
		if (status == STATUS_OK)
			break;
		assert_int_equal(status, STATUS_LIMIT);
		assert_true(bytes < 100000);
	}
	assert_true(bytes > 0);
}

/* Whether the room for definitions is full or not. */
static void
progress_is_of_each_index_that_is_built(void **state)
{
	(void)state;
	for (size_t count = 1; count <= INDEXES_MOST; count++) {
		struct kv_tx *tx = fixture_begin(world.f);
		struct index_progress *list;
		size_t listed;

		assert_int_equal(
			index_progress_list(tx, 2 * INDEXES_MOST, world.f->arena, &list, &listed),
			STATUS_OK);
		kv_tx_free(tx);
		assert_int_equal(listed, count);
		create_index(0);
	}
}

/* Each allocation fails once, and those behind it do not. */
static void
progress_is_told_whole_or_not_at_all(void **state)
{
	bool failed = true;

	(void)state;
	cut_in_four();
	assert_int_equal(run_steps(0, 1), INDEX_BUILDING);
	for (uint64_t nth = 1; failed; nth++) {
		struct arena *arena = arena_new(PROGRESS_BYTES);
		struct kv_tx *tx = fixture_begin(world.f);
		struct index_progress *list;
		enum status status;
		size_t count;

		arena_set_apart(true);
		(void)mem_fail_only(nth);
		status = index_progress_list(tx, 3, arena, &list, &count);
		failed = mem_fail_only(0) >= nth;
		arena_set_apart(false);
		kv_tx_free(tx);
		if (status == STATUS_OK) {
			assert_int_equal(count, 1);
			assert_true(str_eq(list[0].name, STR("by-n")) &&
				    str_eq(list[0].owner, STR("owner")) &&
				    str_eq(list[0].db_name, STR("db")));
			assert_int_equal(list[0].done, 5);
		} else {
			assert_true(failed);
			assert_true(status == STATUS_NOMEM || status == STATUS_LIMIT);
		}
		arena_free(arena);
	}
}

/* ---- What violates ---- */

static const char *
failure_of_index(void)
{
	const struct index_def *def;

	fixture_reopen(world.f);
	def = index_find(world.f->db, world.number);
	assert_int_equal(def->state, INDEX_FAILED);
	return arena_printf(world.f->arena, "%.*s", STR_ARG(def->failure)).ptr;
}

static size_t
named_in(const char *text)
{
	size_t quotes = 0;

	for (; *text; text++)
		quotes += *text == '"';
	return quotes / 2;
}

/* All stretches visit documents of these ids, which all have the same value. */
static const char *
fail_to_build(const char *const *ids)
{
	world.entered = ids;
	create_index(INDEX_UNIQUE);
	assert_int_equal(run_steps(0, MANY_STEPS), INDEX_FAILED);
	return failure_of_index();
}

static void
violations_are_counted_and_named(void **state)
{
	static const char *const two[] = { "a", "b", NULL };
	static const char *const three[] = { "a", "b", "c", NULL };

	(void)state;
	world.left = 0;
	assert_string_equal(fail_to_build(two),
			    "1 documents have the values of others; some of them: [\"b\"]");
	assert_string_equal(fail_to_build(three),
			    "2 documents have the values of others; some of them: [\"b\",\"c\"]");
	/* "a" has the value in both stretches, and is none that violates. */
	world.cuts[0] = STR("k");
	world.cut_count = 1;
	assert_string_equal(fail_to_build(two), "2 documents have the values of others; some of "
						"them: [\"b\",\"b\"]");
	/* A stretch without any names none. */
	world.empty = world.count + 1;
	assert_string_equal(fail_to_build(two),
			    "1 documents have the values of others; some of them: [\"b\"]");
}

static void
as_many_violations_are_named_as_may_be(void **state)
{
	static const char *ids[EXAMPLES + 4];
	static char texts[EXAMPLES + 4][8];
	const char *failure;

	(void)state;
	for (size_t i = 0; i < EXAMPLES + 3; i++) {
		(void)snprintf(texts[i], sizeof(texts[i]), "d%zu", i);
		ids[i] = texts[i];
	}
	ids[EXAMPLES + 1] = NULL;
	failure = fail_to_build(ids);
	assert_int_equal(named_in(failure), EXAMPLES);
	assert_memory_equal(failure, "20 ", 3);
	ids[EXAMPLES + 1] = texts[EXAMPLES + 1];
	ids[EXAMPLES + 2] = texts[EXAMPLES + 2];
	failure = fail_to_build(ids);
	assert_int_equal(named_in(failure), EXAMPLES);
	assert_memory_equal(failure, "22 ", 3);
}

/* Ids that are too long for all of them to be named are counted all the same. */
static void
violations_of_long_ids_are_named_as_there_is_room(void **state)
{
	static char texts[EXAMPLES][LONG_ID_BYTES + 1];
	static const char *ids[EXAMPLES + 1];
	const char *failure;

	(void)state;
	for (size_t i = 0; i < EXAMPLES; i++) {
		memset(texts[i], 'a' + (int)i, LONG_ID_BYTES);
		ids[i] = texts[i];
	}
	ids[5] = NULL;
	failure = fail_to_build(ids);
	assert_int_equal(named_in(failure), 4);
	ids[5] = texts[5];
	failure = fail_to_build(ids);
	assert_memory_equal(failure, "19 ", 3);
	assert_int_equal(named_in(failure), 8);
	/* Nothing is left of the one that there was no room for. */
	assert_non_null(strstr(failure, "i\"]"));
	assert_true(strlen(failure) <= FAILURE_BYTES);
	/* Two stretches, of which one has room for what it has found. */
	ids[6] = NULL;
	world.cuts[0] = STR("k");
	world.cut_count = 1;
	failure = fail_to_build(ids);
	assert_memory_equal(failure, "10 ", 3);
	assert_true(strlen(failure) <= FAILURE_BYTES);
	assert_int_equal(named_in(failure), 5);
}

/* To the byte: what is longer by one is not named, and counted all the same. */
static void
violations_are_named_up_to_the_limit_of_the_text(void **state)
{
	static const char head[] = "1 documents have the values of others; some of them: [";
	static char id[TOLD_BYTES];
	const char *const ids[] = { "a", id, NULL };

	(void)state;
	/* Beside the id are its quotes, the bracket, and a comma that another one might need. */
	memset(id, 'x', TOLD_BYTES - strlen(head) - 4);
	assert_int_equal(named_in(fail_to_build(ids)), 1);
	id[strlen(id)] = 'x';
	assert_string_equal(fail_to_build(ids),
			    "1 documents have the values of others; some of them: []");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(steps_grow_up_to_the_most_while_nothing_is_in_the_way),
		TEST(steps_take_as_many_as_they_have_time_for),
		TEST(steps_that_take_too_long_have_one_document_at_last),
		TEST(steps_write_as_many_bytes_as_they_should),
		TEST(steps_that_pass_no_document_leave_the_limit_as_it_is),
		TEST(an_attempt_that_met_a_writer_is_followed_by_a_smaller_one),
		TEST(a_step_that_is_too_large_makes_all_that_follow_smaller),
		TEST(a_step_of_one_document_that_fails_ends_the_run),
		TEST(stretches_lie_between_the_cuts_and_each_is_done_once),
		TEST(there_are_as_many_stretches_as_there_may_be),
		TEST(a_run_begins_with_the_stretch_that_it_prefers_and_comes_round),
		TEST(a_stretch_goes_on_where_it_was),
		TEST(a_run_without_steps_makes_the_stretches_alone),
		TEST(what_others_are_at_is_left_to_them),
		TEST(a_request_waits_longer_for_others_and_not_for_ever),
		TEST(one_thread_finishes_a_build),
		TEST(a_run_claims_the_stretch_that_it_is_at),
		TEST(more_claims_than_can_be_noted_are_granted),
		TEST(what_is_no_index_of_the_database_is_dropped),
		TEST(an_index_that_is_dropped_meanwhile_is_not_built_on),
		TEST(a_database_that_is_deleted_meanwhile_is_not_built_on),
		TEST(progress_is_what_all_stretches_have_passed),
		TEST(progress_that_has_no_memory_says_so),
		TEST(progress_is_of_each_index_that_is_built),
		TEST(progress_is_told_whole_or_not_at_all),
		TEST(violations_are_counted_and_named),
		TEST(as_many_violations_are_named_as_may_be),
		TEST(violations_of_long_ids_are_named_as_there_is_room),
		TEST(violations_are_named_up_to_the_limit_of_the_text),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
