/*
 * Updates of views that requests wait for: until when they do, how many there are at once, what
 * they are told of a failure, and what becomes of them when the engine ends.
 */
#include "views_world.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

enum {
	PATIENCE_MS = 60000,
};

static atomic_bool held; /* maps wait */

static enum status
map_when_let_go(void *arg, const struct view_design *design, const struct str *docs, size_t count,
		struct arena *arena, struct view_sink *sink, size_t *ret_done,
		struct view_error *ret_error, struct err *err)
{
	uint64_t end = clock_after_ms(PATIENCE_MS);

	while (atomic_load(&held) && clock_mono_ns() < end)
		(void)usleep(1000);
	return views_functions.map(arg, design, docs, count, arena, sink, ret_done, ret_error, err);
}

static enum status
update_by(struct world *w, const struct view_functions *functions, uint64_t deadline_ns,
	  struct event *stop, struct view_error *ret_error)
{
	struct view_target target = target_of(w);
	struct catalog_seq least = newest(w);
	struct err err = { 0 };

	target.functions = functions;
	return view_update(w->engine, &target, &least, deadline_ns, stop, w->f->arena, ret_error,
			   &err);
}

static void
a_request_waits_until_its_deadline_or_its_end(void **state)
{
	const struct view_functions holding = { .map = map_when_let_go,
						.reduce = views_functions.reduce };
	struct world *w = world_new(*state);
	struct view_progress list[2];
	struct view_activity activity;
	struct view_error error;
	struct event stop;
	struct arena *little;

	event_init(&stop);
	doc_put(w, &w->docs[0]);
	assert_int_equal(view_progress_list(w->engine, 2, w->f->arena, list), 0);
	atomic_store(&held, true);
	assert_int_equal(update_by(w, &holding, clock_after_ms(20), NULL, &error), STATUS_TIMEOUT);
	assert_int_equal(update_by(w, &holding, clock_after_ms(20), &stop, &error), STATUS_TIMEOUT);
	event_set(&stop);
	assert_int_equal(update_by(w, &holding, WAIT_FOREVER, &stop, &error), STATUS_CANCELLED);
	/* The update goes on, and nobody waits. */
	view_activity_get(w->engine, w->f->db->number, w->design.signature, &activity);
	assert_true(activity.updating);
	assert_int_equal(activity.waiting, 0);
	assert_int_equal(view_progress_list(w->engine, 0, w->f->arena, list), 0);
	assert_int_equal(view_progress_list(w->engine, 2, w->f->arena, list), 1);
	assert_true(str_eq(list[0].db_name, w->f->db->name));
	assert_true(str_eq(list[0].design, STR("_design/x")));
	assert_true(list[0].started_ms > 0 && list[0].updated_ms >= list[0].started_ms);
	assert_false(list[0].summing);
	/* Without memory for both of its texts it is not told. */
	for (size_t bytes = 0; bytes < 64; bytes += 8) {
		size_t told;

		little = arena_new(bytes);
		told = view_progress_list(w->engine, 2, little, list);
		assert_int_equal(told, arena_is_full(little) ? 0 : 1);
		arena_free(little);
	}
	atomic_store(&held, false);
	assert_int_equal(update_by(w, &holding, WAIT_FOREVER, NULL, &error), STATUS_OK);
	check_all(w);
	world_free(w);
}

enum {
	LATE_NS = 1, /* a deadline, which is noticed when the updates of `late` have ended */
};

static struct world *late;

size_t __real_event_wait_any(struct event *const *events, size_t n, uint64_t deadline_ns);
size_t __wrap_event_wait_any(struct event *const *events, size_t n, uint64_t deadline_ns);

size_t
__wrap_event_wait_any(struct event *const *events, size_t n, uint64_t deadline_ns)
{
	if (deadline_ns != LATE_NS)
		return __real_event_wait_any(events, n, deadline_ns);
	updates_end(late);
	return n;
}

/* The update that it wants to leave is not there any more, and has left an answer. */
static void
a_deadline_that_comes_with_the_answer_is_in_time(void **state)
{
	struct world *w = world_new(*state);
	struct view_error error;

	doc_put(w, &w->docs[0]);
	late = w;
	assert_int_equal(update_by(w, &views_functions, LATE_NS, NULL, &error), STATUS_OK);
	check_all(w);
	world_free(w);
}

/* Returns at once, as nobody waits for it. */
static enum status
ask(struct world *w, const struct view_functions *functions)
{
	struct view_target target = target_of(w);
	struct view_error error;
	struct err err = { 0 };

	target.functions = functions;
	return view_update(w->engine, &target, NULL, WAIT_FOREVER, NULL, w->f->arena, &error, &err);
}

static void *
free_engine(void *engine)
{
	view_engine_free(engine);
	return NULL;
}

/* An engine ends with its updates: until then nothing is begun that nobody would end. */
static void
nothing_is_asked_of_an_engine_that_ends(void **state)
{
	const struct view_functions holding = { .map = map_when_let_go,
						.reduce = views_functions.reduce };
	struct world *w = world_new(*state);
	const struct view_engine_config config = { .store = w->f->store };
	enum status status = STATUS_OK;
	struct view_error error;
	struct err err = { 0 };
	pthread_t thread;

	doc_put(w, &w->docs[0]);
	atomic_store(&held, true);
	assert_int_equal(ask(w, &holding), STATUS_OK);
	assert_int_equal(pthread_create(&thread, NULL, free_engine, w->engine), 0);
	for (unsigned turn = 0; turn < PATIENCE_MS && status == STATUS_OK; turn++) {
		(void)usleep(1000);
		status = ask(w, &holding);
	}
	assert_int_equal(status, STATUS_CANCELLED);
	assert_int_equal(update_by(w, &holding, WAIT_FOREVER, NULL, &error), STATUS_CANCELLED);
	/* Nor of a group that has no update. */
	assert_int_equal(view_design_parse(STR("{\"views\":{\"p\":{\"map\":\"pairs\"}}}"), false,
					   w->f->arena, &w->design, &err),
			 STATUS_OK);
	assert_int_equal(ask(w, &holding), STATUS_CANCELLED);
	assert_int_equal(update_by(w, &holding, WAIT_FOREVER, NULL, &error), STATUS_CANCELLED);
	atomic_store(&held, false);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(view_engine_new(&config, &w->engine, &err), STATUS_OK);
	world_free(w);
}

/* ---- Many groups ---- */

/* From now on the design is that of one view of this number. */
static void
design_number(struct world *w, unsigned number)
{
	struct str text = arena_printf(w->f->arena, "{\"views\":{\"v%u\":{\"map\":\"pairs\"}}}",
				       number);
	struct err err = { 0 };

	assert_int_equal(view_design_parse(text, false, w->f->arena, &w->design, &err), STATUS_OK);
}

static bool
is_updating(struct world *w)
{
	struct view_activity activity;

	view_activity_get(w->engine, w->f->db->number, w->design.signature, &activity);
	return activity.updating;
}

static void
so_many_groups_are_updated_at_once(void **state)
{
	enum {
		GROUPS = VIEW_UPDATERS_MOST + 2,
	};
	const struct view_functions holding = { .map = map_when_let_go,
						.reduce = views_functions.reduce };
	struct world *w = world_new(*state);
	struct view_progress list[GROUPS];
	struct view_error error;

	doc_put(w, &w->docs[0]);
	atomic_store(&held, true);
	for (unsigned i = 0; i < GROUPS; i++) {
		design_number(w, i);
		assert_int_equal(ask(w, &holding), STATUS_OK);
		assert_int_equal(is_updating(w), i < VIEW_UPDATERS_MOST);
	}
	/* Whoever waits for one of the others waits until its deadline, too. */
	assert_int_equal(update_by(w, &holding, clock_after_ms(20), NULL, &error), STATUS_TIMEOUT);
	assert_int_equal(view_progress_list(w->engine, GROUPS, w->f->arena, list),
			 VIEW_UPDATERS_MOST);
	atomic_store(&held, false);
	for (unsigned i = 0; i < GROUPS; i++) {
		design_number(w, i);
		assert_int_equal(update_by(w, &holding, WAIT_FOREVER, NULL, &error), STATUS_OK);
	}
	world_free(w);
}

struct ending {
	struct world *w;
	uint8_t signature[VIEW_SIGNATURE_BYTES];
};

/* Once somebody waits. */
static void *
end_engine(void *arg)
{
	struct ending *e = arg;
	uint64_t end = clock_after_ms(PATIENCE_MS);
	struct view_activity activity = { 0 };

	while (!activity.waiting && clock_mono_ns() < end) {
		(void)usleep(1000);
		view_activity_get(e->w->engine, e->w->f->db->number, e->signature, &activity);
	}
	view_engine_free(e->w->engine);
	return NULL;
}

static void
a_group_whose_turn_never_comes_is_cancelled(void **state)
{
	const struct view_functions holding = { .map = map_when_let_go,
						.reduce = views_functions.reduce };
	struct world *w = world_new(*state);
	const struct view_engine_config config = { .store = w->f->store };
	struct ending ending = { .w = w };
	struct view_error error;
	struct err err = { 0 };
	pthread_t thread;

	doc_put(w, &w->docs[0]);
	atomic_store(&held, true);
	for (unsigned i = 0; i < VIEW_UPDATERS_MOST; i++) {
		design_number(w, i);
		assert_int_equal(ask(w, &holding), STATUS_OK);
	}
	design_number(w, VIEW_UPDATERS_MOST);
	memcpy(ending.signature, w->design.signature, sizeof(ending.signature));
	assert_int_equal(pthread_create(&thread, NULL, end_engine, &ending), 0);
	assert_int_equal(update_by(w, &holding, WAIT_FOREVER, NULL, &error), STATUS_CANCELLED);
	atomic_store(&held, false);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(view_engine_new(&config, &w->engine, &err), STATUS_OK);
	world_free(w);
}

/* What cannot be begun is not there, either. */
static void
an_update_without_memory_is_not_begun(void **state)
{
	const struct view_functions holding = { .map = map_when_let_go,
						.reduce = views_functions.reduce };
	struct world *w = world_new(*state);
	enum status status = STATUS_NOMEM;
	struct view_error error;
	uint64_t failing;

	doc_put(w, &w->docs[0]);
	atomic_store(&held, true);
	for (failing = 1; status != STATUS_OK; failing++) {
		(void)mem_fail_only(failing);
		status = ask(w, &holding);
		(void)mem_fail_only(0);
		assert_true(status == STATUS_OK || status == STATUS_NOMEM ||
			    status == STATUS_LIMIT);
		assert_int_equal(is_updating(w), status == STATUS_OK);
		assert_in_range(failing, 1, 1000);
	}
	assert_true(failing > 2);
	atomic_store(&held, false);
	assert_int_equal(update_by(w, &holding, WAIT_FOREVER, NULL, &error), STATUS_OK);
	check_all(w);
	world_free(w);
}

/* ---- Failures ---- */

#define FAILURE        "compilation_error" /* longer than its reason */
#define FAILURE_REASON "\"no function\""

static atomic_bool fails;

static enum status
map_or_fail(void *arg, const struct view_design *design, const struct str *docs, size_t count,
	    struct arena *arena, struct view_sink *sink, size_t *ret_done,
	    struct view_error *ret_error, struct err *err)
{
	if (!atomic_load(&fails))
		return views_functions.map(arg, design, docs, count, arena, sink, ret_done,
					   ret_error, err);
	*ret_error = (struct view_error){ STR(FAILURE), STR(FAILURE_REASON) };
	return err_set(err, STATUS_FUNCTION, "the map fails");
}

static void
whoever_waits_for_an_update_is_told_why_it_failed(void **state)
{
	const struct view_functions failing = { .map = map_or_fail,
						.reduce = views_functions.reduce };
	struct world *w = world_new(*state);
	struct view_target target = target_of(w);
	/* Without faults: attempts that fail would have told why, too. */
	const struct view_engine_config config = { .store = w->f->calm };
	struct view_engine *engine;
	struct catalog_seq least;
	struct view_error error;
	struct err err = { 0 };

	assert_int_equal(view_engine_new(&config, &engine, &err), STATUS_OK);
	target.functions = &failing;
	doc_put(w, &w->docs[0]);
	least = newest(w);
	atomic_store(&fails, true);
	assert_int_equal(
		view_update(engine, &target, &least, WAIT_FOREVER, NULL, w->f->arena, &error, &err),
		STATUS_FUNCTION);
	assert_int_equal(err.status, STATUS_FUNCTION);
	assert_string_equal(err.text, "the map fails");
	assert_int_equal(
		view_update(engine, &target, &least, WAIT_FOREVER, NULL, w->f->arena, &error, NULL),
		STATUS_FUNCTION);
	/* What was told before is not taken back by what succeeds. */
	atomic_store(&fails, false);
	assert_int_equal(
		view_update(engine, &target, &least, WAIT_FOREVER, NULL, w->f->arena, &error, &err),
		STATUS_OK);
	assert_string_equal(err.text, "the map fails");
	view_engine_free(engine);
	world_free(w);
}

/* Or that there was no memory to be told: never by half. */
static void
a_reason_that_has_no_room_is_told_as_a_limit(void **state)
{
	const struct view_functions failing = { .map = map_or_fail,
						.reduce = views_functions.reduce };
	struct world *w = world_new(*state);
	struct view_target target = target_of(w);
	struct arena *room = arena_new(WORK_BYTES);
	unsigned limits = 0, failures = 0;
	struct catalog_seq least;
	/* Without faults each request takes as much memory as the one before. */
	const struct view_engine_config config = { .store = w->f->calm };
	struct view_engine *engine;
	struct view_error error;
	struct err err = { 0 };
	size_t bytes;

	assert_int_equal(view_engine_new(&config, &engine, &err), STATUS_OK);
	target.functions = &failing;
	doc_put(w, &w->docs[0]);
	least = newest(w);
	atomic_store(&fails, true);
	/* The second one finds the group that the first one has begun, as all others do. */
	for (int i = 0; i < 2; i++) {
		arena_clear(room);
		assert_int_equal(view_update(engine, &target, &least, WAIT_FOREVER, NULL, room,
					     &error, &err),
				 STATUS_FUNCTION);
	}
	bytes = arena_used_bytes(room);
	arena_free(room);
	assert_in_range(bytes, sizeof(FAILURE) + sizeof(FAILURE_REASON), WORK_BYTES);
	for (size_t less = sizeof(FAILURE) + sizeof(FAILURE_REASON) + 1; less-- > 0;) {
		enum status status;

		room = arena_new(bytes - less);
		status = view_update(engine, &target, &least, WAIT_FOREVER, NULL, room, &error,
				     &err);
		assert_int_equal(status, arena_is_full(room) ? STATUS_LIMIT : STATUS_FUNCTION);
		limits += status == STATUS_LIMIT;
		failures += status == STATUS_FUNCTION;
		if (status == STATUS_FUNCTION) {
			assert_true(str_eq(error.name, STR(FAILURE)));
			assert_true(str_eq(error.reason, STR(FAILURE_REASON)));
		}
		arena_free(room);
	}
	assert_true(limits > 0);
	assert_true(failures > 0);
	atomic_store(&fails, false);
	view_engine_free(engine);
	world_free(w);
}

static void
a_failed_update_is_remembered_until_one_succeeds(void **state)
{
	const struct view_functions failing = { .map = map_or_fail,
						.reduce = views_functions.reduce };
	struct world *w = world_new(*state);
	const uint64_t db = w->f->db->number;
	uint8_t other[VIEW_SIGNATURE_BYTES];
	struct view_error error;

	memcpy(other, w->design.signature, sizeof(other));
	other[0] ^= 1;
	doc_put(w, &w->docs[0]);
	assert_false(view_update_has_failed(w->engine, db, w->design.signature));
	for (int round = 0; round < 2; round++) {
		atomic_store(&fails, true);
		assert_int_equal(update_by(w, &failing, WAIT_FOREVER, NULL, &error),
				 STATUS_FUNCTION);
		assert_true(str_eq(error.name, STR(FAILURE)));
		assert_true(str_eq(error.reason, STR(FAILURE_REASON)));
		assert_true(view_update_has_failed(w->engine, db, w->design.signature));
		assert_false(view_update_has_failed(w->engine, db, other));
		assert_false(view_update_has_failed(w->engine, db + 1, w->design.signature));
		atomic_store(&fails, false);
		assert_int_equal(update_by(w, &failing, WAIT_FOREVER, NULL, &error), STATUS_OK);
		/* The request is answered before the update ends. */
		for (uint64_t end = clock_after_ms(PATIENCE_MS); clock_mono_ns() < end;) {
			if (!view_update_has_failed(w->engine, db, w->design.signature))
				break;
			(void)usleep(1000);
		}
		assert_false(view_update_has_failed(w->engine, db, w->design.signature));
		doc_put(w, &w->docs[1]);
	}
	world_free(w);
}

static void
so_many_failed_updates_are_remembered(void **state)
{
	const struct view_functions failing = { .map = map_or_fail,
						.reduce = views_functions.reduce };
	struct world *w = world_new(*state);
	struct view_error error;

	doc_put(w, &w->docs[0]);
	atomic_store(&fails, true);
	for (unsigned i = 0; i <= VIEW_FAILED_KEPT; i++) {
		/* A group that fails once more is no other one. */
		for (int again = 0; again < 2; again++) {
			design_number(w, i);
			assert_int_equal(update_by(w, &failing, WAIT_FOREVER, NULL, &error),
					 STATUS_FUNCTION);
		}
	}
	for (unsigned i = 0; i <= VIEW_FAILED_KEPT; i++) {
		design_number(w, i);
		assert_int_equal(
			view_update_has_failed(w->engine, w->f->db->number, w->design.signature),
			i > 0);
	}
	atomic_store(&fails, false);
	world_free(w);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_request_waits_until_its_deadline_or_its_end),
		TEST(a_deadline_that_comes_with_the_answer_is_in_time),
		TEST(nothing_is_asked_of_an_engine_that_ends),
		TEST(so_many_groups_are_updated_at_once),
		TEST(a_group_whose_turn_never_comes_is_cancelled),
		TEST(an_update_without_memory_is_not_begun),
		TEST(whoever_waits_for_an_update_is_told_why_it_failed),
		TEST(a_reason_that_has_no_room_is_told_as_a_limit),
		TEST(a_failed_update_is_remembered_until_one_succeeds),
		TEST(so_many_failed_updates_are_remembered),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
