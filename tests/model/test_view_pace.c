/*
 * The pace of builds: when an update yields to requests, and what becomes of a step whose commit a
 * cluster does not answer in time.
 */
#include "views_world.h"

#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "kv/fate.h"

enum {
	FEW = 800,
	PROMPT_MS = 1000, /* for so long an update has the priority of requests */
};

/* ---- In the place of the clock, of thread_set_nice() and of kv_commit_in_time() ---- */

static _Atomic uint64_t passed_ns;  /* beside what really passes */
static _Atomic uint64_t yielded_ns; /* when an update has yielded; 0: none has */
static atomic_uint commits_to_leave;

uint64_t __real_clock_mono_ns(void);
uint64_t __wrap_clock_mono_ns(void);
void __wrap_thread_set_nice(int nice);
enum status __real_kv_commit_in_time(struct kv_tx *tx, bool *ret_left);
enum status __wrap_kv_commit_in_time(struct kv_tx *tx, bool *ret_left);

uint64_t
__wrap_clock_mono_ns(void)
{
	return __real_clock_mono_ns() + atomic_load(&passed_ns);
}

void
__wrap_thread_set_nice(int nice)
{
	(void)nice;
	atomic_store(&yielded_ns, clock_mono_ns());
}

enum status
__wrap_kv_commit_in_time(struct kv_tx *tx, bool *ret_left)
{
	if (!atomic_load(&commits_to_leave))
		return __real_kv_commit_in_time(tx, ret_left);
	atomic_fetch_sub(&commits_to_leave, 1);
	/* The transaction is the store's from then on. */
	kv_tx_free(tx);
	*ret_left = true;
	return STATUS_TX_UNKNOWN;
}

/* ---- Updates that nobody waits for ---- */

static bool
update_is_under_way(struct world *w)
{
	struct view_activity activity;

	view_activity_get(w->engine, w->f->db->number, w->design.signature, &activity);
	return activity.updating;
}

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
	while (update_is_under_way(w))
		usleep(1000);
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

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_update_yields_when_it_has_taken_a_while_and_not_before),
		T(a_step_that_was_left_is_followed_by_another_one),
		T(a_build_goes_on_when_commits_are_left),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
