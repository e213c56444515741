/*
 * The pace of builds: when an update yields to requests, and what becomes of a step whose commit a
 * cluster does not answer in time.
 */
#include "views_world.h"

#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "index/view/build.h"
#include "index/view/run.h"
#include "kv/fate.h"

enum {
	FEW = 800,
	LARGE_BYTES = 4000000, /* of the rows of a document, up to which a group is not large */
	PROMPT_MS = 1000,      /* for so long an update has the priority of requests */
};

/* ---- In the place of the clock, of thread_set_nice() and of kv_commit_in_time() ---- */

static _Atomic uint64_t passed_ns;  /* beside what really passes */
static _Atomic uint64_t stopped_ns; /* where the clock stands still; 0: it goes on */
static _Atomic uint64_t yielded_ns; /* when an update has yielded; 0: none has */
static _Atomic unsigned yields;
static atomic_uint commits_to_leave;
static atomic_uint commits_too_old;

uint64_t __real_clock_mono_ns(void);
uint64_t __wrap_clock_mono_ns(void);
void __wrap_thread_set_nice(int nice);
enum status __real_kv_commit_in_time(struct kv_tx *tx, bool *ret_left);
enum status __wrap_kv_commit_in_time(struct kv_tx *tx, bool *ret_left);

uint64_t
__wrap_clock_mono_ns(void)
{
	uint64_t now = atomic_load(&stopped_ns);

	return (now ? now : __real_clock_mono_ns()) + atomic_load(&passed_ns);
}

void
__wrap_thread_set_nice(int nice)
{
	(void)nice;
	atomic_store(&yielded_ns, clock_mono_ns());
	atomic_fetch_add(&yields, 1);
}

enum status
__wrap_kv_commit_in_time(struct kv_tx *tx, bool *ret_left)
{
	if (atomic_load(&commits_too_old)) {
		atomic_fetch_sub(&commits_too_old, 1);
		*ret_left = false;
		return STATUS_TX_TOO_OLD;
	}
	if (!atomic_load(&commits_to_leave))
		return __real_kv_commit_in_time(tx, ret_left);
	atomic_fetch_sub(&commits_to_leave, 1);
	/* The transaction is the store's from then on. */
	kv_tx_free(tx);
	*ret_left = true;
	return STATUS_TX_UNKNOWN;
}

/* ---- Updates that nobody waits for ---- */

/* Returns when it has begun; then it is over. */
static uint64_t
update_lazily(struct world *w, const struct view_functions *functions)
{
	struct view_target target = target_of(w);
	uint64_t began_ns = clock_mono_ns();
	struct view_error error;
	struct err err = { 0 };

	target.functions = functions;
	assert_int_equal(view_update(w->engine, &target, NULL, WAIT_FOREVER, NULL, w->f->arena,
				     &error, &err),
			 STATUS_OK);
	updates_end(w);
	return began_ns;
}

static enum status
map_slowly(void *arg, const struct view_design *design, const struct str *docs, size_t count,
	   struct arena *arena, struct view_sink *sink, size_t *ret_done,
	   struct view_error *ret_error, struct err *err)
{
	atomic_fetch_add(&passed_ns, PROMPT_MS * CLOCK_NS_PER_MS);
	return views_functions.map(arg, design, docs, count, arena, sink, ret_done, ret_error, err);
}

static _Atomic uint64_t map_takes_ns; /* the next call, and none after it */

static enum status
map_once_slowly(void *arg, const struct view_design *design, const struct str *docs, size_t count,
		struct arena *arena, struct view_sink *sink, size_t *ret_done,
		struct view_error *ret_error, struct err *err)
{
	atomic_fetch_add(&passed_ns, atomic_exchange(&map_takes_ns, 0));
	return views_functions.map(arg, design, docs, count, arena, sink, ret_done, ret_error, err);
}

static void
an_update_yields_when_it_has_taken_a_while_and_not_before(void **state)
{
	struct world *w = world_new(*state);
	struct view_functions slow = views_functions;
	uint64_t began_ns;

	atomic_store(&yielded_ns, 0);
	put_many(w, 0, FEW);
	began_ns = update_lazily(w, &views_functions);
	/* The machine may have stood still for so long. */
	if (atomic_load(&yielded_ns))
		assert_true(atomic_load(&yielded_ns) - began_ns >= PROMPT_MS * CLOCK_NS_PER_MS);
	atomic_store(&yielded_ns, 0);
	slow.map = map_slowly;
	put_many(w, FEW, 2 * FEW);
	(void)update_lazily(w, &slow);
	assert_true(atomic_load(&yielded_ns) > 0);
	check_many(w, 2 * FEW);
	world_free(w);
}

/* By a clock that passes only while a map runs: so it does whatever the machine does. */
static void
an_update_yields_once_at_the_end_of_its_time(void **state)
{
	static const uint64_t at_ns[] = {
		0,
		1,
		PROMPT_MS * CLOCK_NS_PER_MS - 1,
		PROMPT_MS * CLOCK_NS_PER_MS,
		PROMPT_MS * CLOCK_NS_PER_MS + 1,
	};
	struct world *w = world_new(*state);
	struct view_functions slow = views_functions;
	int docs = 0;

	slow.map = map_once_slowly;
	atomic_store(&stopped_ns, __real_clock_mono_ns());
	for (size_t i = 0; i < sizeof(at_ns) / sizeof(at_ns[0]); i++) {
		put_many(w, docs, docs + FEW);
		docs += FEW;
		atomic_store(&yields, 0);
		atomic_store(&map_takes_ns, at_ns[i]);
		(void)update_lazily(w, &slow);
		assert_int_equal(atomic_load(&yields), at_ns[i] >= PROMPT_MS * CLOCK_NS_PER_MS);
	}
	atomic_store(&stopped_ns, 0);
	check_many(w, (size_t)docs);
	world_free(w);
}

static atomic_uint reduced, reduced_after_yield;

static enum status
reduce_and_look(void *arg, const struct view_design *design, const struct str *names,
		size_t name_count, bool rereduce, const struct view_group_input *groups,
		size_t group_count, struct arena *arena, struct str *ret_results,
		struct view_error *ret_errors, struct view_error *ret_error, struct err *err)
{
	atomic_fetch_add(&reduced, 1);
	if (atomic_load(&yields))
		atomic_fetch_add(&reduced_after_yield, 1);
	return views_functions.reduce(arg, design, names, name_count, rereduce, groups, group_count,
				      arena, ret_results, ret_errors, ret_error, err);
}

/*
 * A first build in several steps makes the sums when it has all rows, which have taken long. The
 * request waits for both; an update yields no sooner than it has answered.
 */
static void
an_update_does_not_yield_while_somebody_waits(void **state)
{
	struct world *w = world_new(*state);
	struct view_functions slow = views_functions;
	struct view_target target = target_of(w);
	struct catalog_seq least;
	struct view_error error;
	struct err err = { 0 };

	slow.map = map_slowly;
	slow.reduce = reduce_and_look;
	target.functions = &slow;
	put_many(w, 0, MANY);
	least = newest(w);
	atomic_store(&yields, 0);
	assert_int_equal(view_update(w->engine, &target, &least, WAIT_FOREVER, NULL, w->f->arena,
				     &error, &err),
			 STATUS_OK);
	updates_end(w);
	assert_true(atomic_load(&reduced) > 0);
	assert_int_equal(atomic_load(&reduced_after_yield), 0);
	check_many(w, MANY);
	world_free(w);
}

/* ---- Steps ---- */

static enum status
count_body(struct kv_tx *tx, void *arg)
{
	(void)tx;
	++*(unsigned *)arg;
	return STATUS_OK;
}

/* Whether it has happened the record tells, which the next step reads. */
static void
a_step_that_was_left_is_followed_by_another_one(void **state)
{
	struct fixture *f = *state;
	struct view_step_size size = { 4, 0 };
	struct err err = { 0 };
	unsigned runs = 0;

	atomic_store(&commits_to_leave, 1);
	assert_int_equal(view_step_run(f->calm, count_body, &runs, &size, &err), STATUS_BUSY);
	assert_int_equal(view_step_run(f->calm, count_body, &runs, &size, &err), STATUS_OK);
	assert_int_equal(runs, 2);
	assert_int_equal(size.most, 4);
}

/* In the middle of a build, of which no row is missing and none is there twice. */
static void
a_build_goes_on_when_commits_are_left(void **state)
{
	struct world *w = world_new(*state);

	put_many(w, 0, FEW);
	atomic_store(&commits_to_leave, 3);
	update(w);
	assert_int_equal(atomic_load(&commits_to_leave), 0);
	check_many(w, FEW);
	world_free(w);
}

/* ---- How much a step does ---- */

/* The phases behind the steps of a run, one letter each. */
struct phases {
	char letters[20];
	size_t count;
};

static bool
note_phase(void *arg, const struct view_step *step, struct catalog_seq *ret_least)
{
	struct phases *p = arg;

	(void)ret_least;
	assert_true(p->count < sizeof(p->letters) - 1);
	p->letters[p->count++] = step->phase == VIEW_PHASE_ROWS   ? 'r'
				 : step->phase == VIEW_PHASE_SUMS ? 's'
								  : '.';
	return true;
}

static void
run_is(struct world *w, const char *phases)
{
	const struct view_build build = { .store = w->f->calm,
					  .space = CATALOG_SPACE_COUCH,
					  .db_name = w->f->db->name,
					  .db_number = w->f->db->number,
					  .design = &w->design,
					  .functions = &views_functions };
	struct phases noted = { .count = 0 };
	const struct view_run_hooks hooks = { .stepped = note_phase, .arg = &noted };
	const struct catalog_seq least = newest(w);
	struct view_error error;
	struct err err = { 0 };

	assert_int_equal(view_run(&build, &least, &hooks, w->f->arena, &error, &err), STATUS_OK);
	assert_string_equal(noted.letters, phases);
}

/* The last letter is that of the end, which is told too. */
static void
a_step_does_as_much_as_it_may(void **state)
{
	struct world *w = world_new(*state);

	put_many(w, 0, VIEW_BATCH_DOCS + 1);
	run_is(w, "rs..");
	put_many(w, VIEW_BATCH_DOCS + 1, VIEW_BATCH_DOCS + 2);
	run_is(w, "..");
	run_is(w, ".");
	world_free(w);
}

struct written {
	size_t docs[100];
	size_t count;
};

static bool
note_docs(void *arg, const struct view_step *step, struct catalog_seq *ret_least)
{
	struct written *n = arg;

	(void)ret_least;
	assert_true(n->count < sizeof(n->docs) / sizeof(n->docs[0]));
	if (step->docs)
		n->docs[n->count++] = step->docs;
	return true;
}

/* What takes too long is halved; behind what does not comes an eighth more, not all there is. */
static void
steps_grow_again_little_by_little(void **state)
{
	enum {
		TOO_OLD = 9,
		LEAST = (VIEW_BATCH_DOCS + VIEW_BATCH_PURGES) >> TOO_OLD,
	};
	struct world *w = world_new(*state);
	const struct view_build build = { .store = w->f->calm,
					  .space = CATALOG_SPACE_COUCH,
					  .db_name = w->f->db->name,
					  .db_number = w->f->db->number,
					  .design = &w->design,
					  .functions = &views_functions };
	struct written written = { .count = 0 };
	const struct view_run_hooks hooks = { .stepped = note_docs, .arg = &written };
	struct catalog_seq least;
	struct view_error error;
	struct err err = { 0 };
	size_t most = LEAST, left = VIEW_BATCH_DOCS;

	put_many(w, 0, VIEW_BATCH_DOCS);
	least = newest(w);
	atomic_store(&commits_too_old, TOO_OLD);
	assert_int_equal(view_run(&build, &least, &hooks, w->f->arena, &error, &err), STATUS_OK);
	assert_int_equal(atomic_load(&commits_too_old), 0);
	for (size_t i = 0; i < written.count; i++) {
		assert_int_equal(written.docs[i], left < most ? left : most);
		left -= written.docs[i];
		most += most / 8 + 1;
	}
	assert_int_equal(left, 0);
	check_many(w, VIEW_BATCH_DOCS);
	world_free(w);
}

/* One by one, from the end; then the others come. */
static void
rows_of_before_go_as_a_step_has_room(void **state)
{
	static const uint64_t rows[] = { 3, 2, 1, 0, 1, 2 };
	struct world *w = world_new(*state);
	struct reduce_asked asked;
	const struct view_build build = { .store = w->f->calm,
					  .space = CATALOG_SPACE_COUCH,
					  .db_name = w->f->db->name,
					  .db_number = w->f->db->number,
					  .design = &w->design,
					  .functions = &views_functions,
					  .asked = &asked };
	struct view_step_size size = { 1, 1 };
	struct view_record record;
	struct view_batch *batch;
	struct view_step step;
	struct err err = { 0 };
	const char *rev;

	assert_int_equal(view_design_parse(STR("{\"views\":{\"p\":{\"map\":\"pairs\"}}}"), false,
					   w->f->arena, &w->design, &err),
			 STATUS_OK);
	assert_int_equal(reduce_asked_init(&asked), STATUS_OK);
	rev = fixture_put(w->f, "a", NULL, "{\"rows\":[[1,1],[2,2],[3,3],[4,4]]}");
	update(w);
	updates_end(w);
	(void)fixture_put(w->f, "a", rev, "{\"rows\":[[1,5],[6,6]]}");
	assert_int_equal(view_build_state(&build, w->f->arena, &record, &err), STATUS_OK);
	assert_int_equal(view_batch_new(&batch), STATUS_OK);
	assert_int_equal(view_batch_make(&build, record.group.number, &record.group.covers,
					 &record.group.purge_seq, batch, &err),
			 STATUS_OK);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(view_step_write(&build, batch, &size, w->f->arena, &step, &err),
				 STATUS_OK);
		assert_int_equal(view_build_state(&build, w->f->arena, &record, &err), STATUS_OK);
		assert_int_equal(record.group.rows[0], rows[i]);
		assert_int_equal(record.group.halves, !step.whole);
	}
	assert_true(step.whole);
	view_batch_free(batch);
	reduce_asked_release(&asked);
	world_free(w);
}

/* Programs that do not read larger documents do not read such a group. */
static void
a_group_is_large_from_a_document_of_so_many_bytes_on(void **state)
{
	struct world *w = world_new(*state);
	struct reduce_asked asked;
	const struct view_build build = { .store = w->f->calm,
					  .space = CATALOG_SPACE_COUCH,
					  .db_name = w->f->db->name,
					  .db_number = w->f->db->number,
					  .design = &w->design,
					  .functions = &views_functions,
					  .asked = &asked };
	struct view_step_size size = { 1, 2 * LARGE_BYTES };
	struct err err = { 0 };

	assert_int_equal(view_design_parse(STR("{\"views\":{\"p\":{\"map\":\"pairs\"}}}"), false,
					   w->f->arena, &w->design, &err),
			 STATUS_OK);
	assert_int_equal(reduce_asked_init(&asked), STATUS_OK);
	for (size_t more = 0; more < 2; more++) {
		struct view_record record;
		struct view_batch *batch;
		struct view_step step;

		(void)fixture_put(w->f, more ? "b" : "a", NULL, "{\"rows\":[[1,1]]}");
		assert_int_equal(view_build_state(&build, w->f->arena, &record, &err), STATUS_OK);
		assert_int_equal(view_batch_new(&batch), STATUS_OK);
		assert_int_equal(view_batch_make(&build, record.group.number, &record.group.covers,
						 &record.group.purge_seq, batch, &err),
				 STATUS_OK);
		assert_int_equal(batch->count, 1);
		batch->docs[0].bytes = LARGE_BYTES + more;
		assert_int_equal(view_step_write(&build, batch, &size, w->f->arena, &step, &err),
				 STATUS_OK);
		assert_true(step.whole);
		assert_int_equal(view_build_state(&build, w->f->arena, &record, &err), STATUS_OK);
		assert_int_equal(record.group.large, more);
		view_batch_free(batch);
	}
	reduce_asked_release(&asked);
	world_free(w);
}

/* However much room a step has: it clears what is behind the rows that stay, and none of these. */
static void
rows_that_stay_are_not_cleared(void **state)
{
	enum {
		STEP_BYTES = 1000000,
	};
	static const uint64_t rows[] = { 2, 3 };
	struct world *w = world_new(*state);
	struct reduce_asked asked;
	const struct view_build build = { .store = w->f->calm,
					  .space = CATALOG_SPACE_COUCH,
					  .db_name = w->f->db->name,
					  .db_number = w->f->db->number,
					  .design = &w->design,
					  .functions = &views_functions,
					  .asked = &asked };
	struct view_step_size size = { 1, STEP_BYTES };
	struct view_record record;
	struct view_batch *batch;
	struct view_step step;
	struct err err = { 0 };
	const char *rev;

	assert_int_equal(view_design_parse(STR("{\"views\":{\"p\":{\"map\":\"pairs\"}}}"), false,
					   w->f->arena, &w->design, &err),
			 STATUS_OK);
	assert_int_equal(reduce_asked_init(&asked), STATUS_OK);
	rev = fixture_put(w->f, "a", NULL, "{\"rows\":[[1,1],[2,2],[3,3],[4,4]]}");
	update(w);
	updates_end(w);
	(void)fixture_put(w->f, "a", rev, "{\"rows\":[[1,1],[2,2],[6,6]]}");
	assert_int_equal(view_build_state(&build, w->f->arena, &record, &err), STATUS_OK);
	assert_int_equal(view_batch_new(&batch), STATUS_OK);
	assert_int_equal(view_batch_make(&build, record.group.number, &record.group.covers,
					 &record.group.purge_seq, batch, &err),
			 STATUS_OK);
	/* It is written in parts, as if its rows were as large. */
	batch->docs[0].bytes = STEP_BYTES;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(view_step_write(&build, batch, &size, w->f->arena, &step, &err),
				 STATUS_OK);
		assert_int_equal(view_build_state(&build, w->f->arena, &record, &err), STATUS_OK);
		assert_int_equal(record.group.rows[0], rows[i]);
		assert_int_equal(record.group.halves, !step.whole);
	}
	assert_true(step.whole);
	view_batch_free(batch);
	reduce_asked_release(&asked);
	world_free(w);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_update_yields_when_it_has_taken_a_while_and_not_before),
		T(an_update_yields_once_at_the_end_of_its_time),
		T(an_update_does_not_yield_while_somebody_waits),
		T(a_step_that_was_left_is_followed_by_another_one),
		T(a_build_goes_on_when_commits_are_left),
		T(a_step_does_as_much_as_it_may),
		T(steps_grow_again_little_by_little),
		T(rows_of_before_go_as_a_step_has_room),
		T(a_group_is_large_from_a_document_of_so_many_bytes_on),
		T(rows_that_stay_are_not_cleared),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
