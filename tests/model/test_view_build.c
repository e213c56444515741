/*
 * Building views: in steps that end anywhere, by two builders, under faults; what cleanup clears,
 * and what verify finds.
 */
#include "views_world.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/arena_apart.h"
#include "base/mem.h"
#include "catalog/keys.h"
#include "catalog/verify.h"
#include "index/view/keys.h"
#include "index/view/run.h"
#include "kv/faulty/faulty.h"

enum {
	FEW = 800,        /* documents of a build in one step */
	LIFE_READS = 300, /* of a transaction, fewer than a whole step has */
};

/* A build that ends after each of its steps, and edits in between. */
struct stopping {
	unsigned steps;
};

static bool
stop_after_step(void *arg, const struct view_step *step, struct catalog_seq *ret_least)
{
	struct stopping *s = arg;

	(void)step, (void)ret_least;
	return s->steps-- > 1;
}

static enum status
run_steps(struct world *w, unsigned steps)
{
	struct stopping stopping = { steps };
	const struct view_run_hooks hooks = { .stepped = stop_after_step, .arg = &stopping };
	const struct view_build build = { .store = w->f->store,
					  .space = CATALOG_SPACE_COUCH,
					  .db_name = w->f->db->name,
					  .db_number = w->f->db->number,
					  .design = &w->design,
					  .functions = &views_functions };
	struct catalog_seq least = newest(w);
	struct view_error error;
	struct err err = { 0 };
	enum status status = view_run(&build, &least, &hooks, w->f->arena, &error, &err);

	if (status != STATUS_OK && status != STATUS_CANCELLED)
		fail_msg("view_run: %s %s", status_name(status), err.text);
	return status;
}

static void
first_build_goes_on_wherever_it_ends(void **state)
{
	struct world *w = world_new(*state);
	unsigned runs = 1;

	put_many(w, 0, MANY - 300);
	assert_int_equal(run_steps(w, 1), STATUS_CANCELLED);
	/* What is more than a batch is not summed up before all rows are there. */
	assert_int_equal(phase_of(w), VIEW_PHASE_ROWS);
	put_many(w, MANY - 300, MANY - 200);
	while (run_steps(w, 1) == STATUS_CANCELLED)
		runs++;
	assert_true(runs > 1); /* a commit of unknown outcome advances it without a step */
	put_many(w, MANY - 200, MANY);
	update(w);
	check_many(w, MANY);
	world_free(w);
}

static void *
race_main(void *arg)
{
	struct world *w = arg;
	struct view_engine *engine;
	const struct view_engine_config config = { .store = w->f->store };
	struct view_target target = target_of(w);
	struct catalog_seq least = newest(w);
	struct arena *arena = arena_new(WORK_BYTES);
	struct view_error error;
	struct err err = { 0 };

	assert_int_equal(view_engine_new(&config, &engine, &err), STATUS_OK);
	assert_int_equal(
		view_update(engine, &target, &least, WAIT_FOREVER, NULL, arena, &error, &err),
		STATUS_OK);
	view_engine_free(engine);
	arena_free(arena);
	return NULL;
}

static void
two_builders_do_no_harm(void **state)
{
	struct world *w = world_new(*state);
	pthread_t threads[2];

	put_many(w, 0, MANY);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, race_main, w), 0);
	for (size_t i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	check_many(w, MANY);
	world_free(w);
}

enum {
	RIVAL_ROUNDS = 25,
};

/* A builder that writes its batch at the same time as another one. */
struct rival {
	struct world *w;
	pthread_barrier_t *start;
	struct arena *arena;
	struct view_batch *batch;
	struct view_build build;
	struct reduce_asked asked;
	enum status status; /* STATUS_OK: it was written; STATUS_BUSY: the other one was */
};

static void
rival_answer(struct rival *r)
{
	struct index_work work = { .arena = r->arena };
	struct view_error error;
	struct err err = { 0 };
	const struct reduce_run run = { .design = &r->w->design,
					.functions = &views_functions,
					.memo = r->build.memo,
					.asked = &r->asked,
					.w = &work,
					.error = &error,
					.err = &err };

	assert_int_equal(reduce_answer(&run), STATUS_OK);
}

static void *
rival_main(void *arg)
{
	struct rival *r = arg;
	struct view_step_size size = { VIEW_BATCH_DOCS, VIEW_STEP_BYTES };
	struct view_step step;
	struct err err = { 0 };

	pthread_barrier_wait(r->start);
	while ((r->status = view_step_write(&r->build, r->batch, &size, r->arena, &step, &err)) ==
		       STATUS_BUSY &&
	       r->asked.count)
		rival_answer(r);
	return NULL;
}

static void
rival_init(struct rival *r, struct world *w, pthread_barrier_t *start)
{
	*r = (struct rival){ .w = w, .start = start, .arena = arena_new(WORK_BYTES) };
	r->build = (struct view_build){ .store = w->f->calm,
					.space = CATALOG_SPACE_COUCH,
					.db_name = w->f->db->name,
					.db_number = w->f->db->number,
					.design = &w->design,
					.functions = &views_functions,
					.asked = &r->asked };
	assert_int_equal(reduce_memo_new(VIEW_MEMO_BYTES, &r->build.memo), STATUS_OK);
	assert_int_equal(reduce_asked_init(&r->asked), STATUS_OK);
	assert_int_equal(view_batch_new(&r->batch), STATUS_OK);
}

static void
rival_fini(struct rival *r)
{
	view_batch_free(r->batch);
	reduce_asked_release(&r->asked);
	reduce_memo_free(r->build.memo);
	arena_free(r->arena);
}

/* A group that begins at the same time as another one. */
struct newcomer {
	struct world *w;
	pthread_barrier_t *start;
	struct view_design design;
	uint64_t number;
};

static void *
newcomer_main(void *arg)
{
	struct newcomer *n = arg;
	const struct view_build build = { .store = n->w->f->store,
					  .space = CATALOG_SPACE_COUCH,
					  .db_name = n->w->f->db->name,
					  .db_number = n->w->f->db->number,
					  .design = &n->design };
	struct arena *arena = arena_new(WORK_BYTES);
	struct view_record record;
	struct err err = { 0 };

	pthread_barrier_wait(n->start);
	assert_int_equal(view_build_state(&build, arena, &record, &err), STATUS_OK);
	n->number = record.group.number;
	arena_free(arena);
	return NULL;
}

static void
groups_that_begin_together_have_numbers_of_their_own(void **state)
{
	struct world *w = world_new(*state);
	struct newcomer newcomers[2];
	pthread_barrier_t start;
	pthread_t threads[2];

	assert_int_equal(pthread_barrier_init(&start, NULL, 2), 0);
	for (uint8_t round = 0; round < RIVAL_ROUNDS; round++) {
		for (uint8_t i = 0; i < 2; i++) {
			newcomers[i] = (struct newcomer){ .w = w,
							  .start = &start,
							  .design = w->design };
			newcomers[i].design.signature[0] = i;
			newcomers[i].design.signature[1] = round;
			assert_int_equal(
				pthread_create(&threads[i], NULL, newcomer_main, &newcomers[i]), 0);
		}
		for (size_t i = 0; i < 2; i++)
			pthread_join(threads[i], NULL);
		assert_true(newcomers[0].number != newcomers[1].number);
	}
	pthread_barrier_destroy(&start);
	world_free(w);
}

/* Two batches from one place of the group, which hold other revisions. */
static void
of_two_steps_from_one_place_one_is_written(void **state)
{
	struct world *w = world_new(*state);
	struct rival rivals[2];
	pthread_barrier_t start;
	pthread_t threads[2];

	assert_int_equal(pthread_barrier_init(&start, NULL, 2), 0);
	edit_randomly(w, EDITS);
	update(w);
	for (size_t round = 0; round < RIVAL_ROUNDS; round++) {
		for (size_t i = 0; i < 2; i++) {
			struct view_record record;
			struct err err = { 0 };

			edit_randomly(w, EDITS);
			rival_init(&rivals[i], w, &start);
			assert_int_equal(
				view_build_state(&rivals[i].build, rivals[i].arena, &record, &err),
				STATUS_OK);
			assert_int_equal(view_batch_make(&rivals[i].build, record.group.number,
							 &record.group.covers,
							 &record.group.purge_seq, rivals[i].batch,
							 &err),
					 STATUS_OK);
		}
		for (size_t i = 0; i < 2; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, rival_main, &rivals[i]),
					 0);
		for (size_t i = 0; i < 2; i++)
			pthread_join(threads[i], NULL);
		assert_int_equal(rivals[0].status == STATUS_OK, rivals[1].status == STATUS_BUSY);
		assert_int_equal(rivals[1].status == STATUS_OK, rivals[0].status == STATUS_BUSY);
		for (size_t i = 0; i < 2; i++)
			rival_fini(&rivals[i]);
	}
	pthread_barrier_destroy(&start);
	update(w);
	check_all(w);
	world_free(w);
}

/* An update would be cancelled, since `stop` is set. */
static void
what_is_covered_is_not_updated(void **state)
{
	struct world *w = world_new(*state);
	struct view_target target = target_of(w);
	struct catalog_seq least;
	struct view_error error;
	struct event stop;
	struct err err = { 0 };

	event_init(&stop);
	event_set(&stop);
	put_many(w, 0, FEW);
	update(w);
	least = newest(w);
	assert_int_equal(view_update(w->engine, &target, &least, WAIT_FOREVER, &stop, w->f->arena,
				     &error, &err),
			 STATUS_OK);
	world_free(w);
}

static enum status
map_fails(void *arg, const struct view_design *design, const struct str *docs, size_t count,
	  struct arena *arena, struct view_sink *sink, size_t *ret_done,
	  struct view_error *ret_error, struct err *err)
{
	(void)arg, (void)design, (void)docs, (void)count, (void)arena, (void)sink, (void)ret_done;
	(void)err;
	*ret_error = (struct view_error){ STR("os_process_error"), STR("\"lost\"") };
	return STATUS_FUNCTION;
}

static void
an_update_hands_on_why_its_map_failed(void **state)
{
	struct world *w = world_new(*state);
	struct view_functions functions = views_functions;
	struct view_target target = target_of(w);
	struct catalog_seq least;
	struct view_error error;
	struct err err = { 0 };

	functions.map = map_fails;
	target.functions = &functions;
	put_many(w, 0, FEW);
	least = newest(w);
	assert_int_equal(view_update(w->engine, &target, &least, WAIT_FOREVER, NULL, w->f->arena,
				     &error, &err),
			 STATUS_FUNCTION);
	assert_true(str_eq(error.name, STR("os_process_error")));
	assert_true(str_eq(error.reason, STR("\"lost\"")));
	world_free(w);
}

/* ---- Updates that nobody waits for ---- */

/* The first call of the map, which is held until `go`. */
static struct {
	struct event called, go;
	int nice;
} held;

static enum status
map_when_told(void *arg, const struct view_design *design, const struct str *docs, size_t count,
	      struct arena *arena, struct view_sink *sink, size_t *ret_done,
	      struct view_error *ret_error, struct err *err)
{
	if (!event_is_set(&held.called)) {
		held.nice = getpriority(PRIO_PROCESS, (id_t)gettid());
		event_set(&held.called);
		(void)event_wait(&held.go, WAIT_FOREVER);
	}
	return views_functions.map(arg, design, docs, count, arena, sink, ret_done, ret_error, err);
}

/* As update=lazy does: returns at once. */
static void
update_lazily(struct world *w, const struct view_functions *functions)
{
	struct view_target target = target_of(w);
	struct view_error error;
	struct err err = { 0 };

	target.functions = functions;
	assert_int_equal(view_update(w->engine, &target, NULL, WAIT_FOREVER, NULL, w->f->arena,
				     &error, &err),
			 STATUS_OK);
}

static bool
update_is_under_way(struct world *w)
{
	struct view_activity activity;

	view_activity_get(w->engine, w->f->db->number, w->design.signature, &activity);
	return activity.updating;
}

static void
a_lazy_update_has_the_priority_of_requests_and_misses_nothing(void **state)
{
	struct world *w = world_new(*state);
	struct view_functions functions = views_functions;

	functions.map = map_when_told;
	event_init(&held.called);
	event_init(&held.go);
	put_many(w, 0, FEW / 2);
	update_lazily(w, &functions);
	(void)event_wait(&held.called, WAIT_FOREVER);
	/* At a lower one it would hardly begin beside other processes that compute. */
	assert_int_equal(held.nice, getpriority(PRIO_PROCESS, (id_t)gettid()));
	put_many(w, FEW / 2, FEW);
	update_lazily(w, &functions);
	event_set(&held.go);
	while (update_is_under_way(w))
		usleep(1000);
	check_many(w, FEW);
	world_free(w);
}

static void
a_lazy_update_takes_as_many_steps_as_it_needs(void **state)
{
	struct world *w = world_new(*state);
	/* Where a step takes a whole batch. */
	const struct view_engine_config config = { .store = w->f->calm };
	struct err err = { 0 };

	view_engine_free(w->engine);
	assert_int_equal(view_engine_new(&config, &w->engine, &err), STATUS_OK);
	put_many(w, 0, 1);
	update(w);
	put_many(w, 1, VIEW_BATCH_DOCS + 50);
	update_lazily(w, &views_functions);
	while (update_is_under_way(w))
		usleep(1000);
	check_many(w, VIEW_BATCH_DOCS + 50);
	world_free(w);
}

/*
 * Where a store forgets versions sooner than a whole step is done, smaller steps get there. What is
 * new is summed up with what is there, which reads much more than making its rows.
 */
static void
steps_shrink_until_they_end_in_time(void **state)
{
	struct world *w = world_new(*state);

	put_many(w, 0, FEW);
	update(w);
	put_many(w, FEW, FEW + FEW / 2);
	if (test_store_fails())
		kv_faulty_wear_out(w->f->store, LIFE_READS);
	update(w);
	if (test_store_fails())
		kv_faulty_wear_out(w->f->store, 0);
	check_many(w, FEW + FEW / 2);
	world_free(w);
}

struct failing {
	enum status status;
	const char *why;
};

static enum status
failing_body(struct kv_tx *tx, void *arg)
{
	const struct failing *f = arg;

	return err_set(kv_tx_err(tx), f->status, "%s", f->why);
}

static void
a_step_fails_for_the_reason_of_its_last_attempt(void **state)
{
	struct fixture *f = *state;
	struct failing old = { STATUS_TX_TOO_OLD, "it has taken too long" };
	struct failing first = { STATUS_TX_TOO_LARGE, "there is too much" };
	struct failing last = { STATUS_CORRUPT, "a row is damaged" };
	struct err err = { 0 };
	struct view_step_size size = { 4, 0 };

	assert_int_equal(view_step_run(f->calm, failing_body, &old, &size, &err), STATUS_BUSY);
	assert_int_equal(size.most, 2);
	assert_int_equal(view_step_run(f->calm, failing_body, &first, &size, &err), STATUS_BUSY);
	assert_int_equal(size.most, 1);
	assert_int_equal(view_step_run(f->calm, failing_body, &last, &size, &err), STATUS_CORRUPT);
	assert_string_equal(err.text, last.why);
	/* There is nothing smaller to try. */
	assert_int_equal(view_step_run(f->calm, failing_body, &first, &size, &err),
			 STATUS_TX_TOO_LARGE);
	assert_string_equal(err.text, first.why);
}

/* ---- Reduces that are functions ---- */

/* Whatever becomes of a step's transactions, what it has been told it does not ask again. */
static void
a_step_asks_a_reduce_once(void **state)
{
	struct world *w = world_new(*state);

	for (size_t i = 0; i < DOCS; i++)
		doc_put(w, &w->docs[i]);
	for (size_t round = 0; round < 4; round++) {
		asked_reduces = (struct asked_reduces){ .counting = true };
		update(w);
		assert_true(asked_reduces.count > 0);
		/*
		 * A step that was too old is followed by smaller ones, and what it has been told is
		 * forgotten when the first of them has ended. Who forgets after each attempt asks
		 * more often again than for the first time.
		 */
		if (test_store_fails())
			assert_in_range(asked_reduces.again, 0, asked_reduces.count / 2);
		else
			assert_int_equal(asked_reduces.again, 0);
		asked_reduces.counting = false;
		check_all(w);
		for (size_t i = 0; i < 5; i++)
			doc_put(w, &w->docs[rand_seq_below(&w->rand, DOCS)]);
	}
	world_free(w);
}

/* ---- A builder that is always overtaken ---- */

enum {
	OVERTAKEN = VIEW_BUILD_TRIES + 50, /* documents */
};

struct overtaking {
	struct rival rival;
	unsigned steps;
};

/* Writes the next document. */
static void
overtake(struct overtaking *o)
{
	struct view_step_size size = { 1, VIEW_STEP_BYTES };
	struct rival *r = &o->rival;
	struct view_record record;
	struct view_step step;
	struct err err = { 0 };
	enum status status;

	arena_clear(r->arena);
	assert_int_equal(view_build_state(&r->build, r->arena, &record, &err), STATUS_OK);
	assert_int_equal(view_batch_make(&r->build, record.group.number, &record.group.covers,
					 &record.group.purge_seq, r->batch, &err),
			 STATUS_OK);
	while ((status = view_step_write(&r->build, r->batch, &size, r->arena, &step, &err)) ==
		       STATUS_BUSY &&
	       r->asked.count)
		rival_answer(r);
	assert_int_equal(status, STATUS_OK);
	o->steps++;
}

/* The map of the one that is overtaken: the other one writes meanwhile. */
static enum status
overtaken_map(void *arg, const struct view_design *design, const struct str *docs, size_t count,
	      struct arena *arena, struct view_sink *sink, size_t *ret_done,
	      struct view_error *ret_error, struct err *err)
{
	overtake(arg);
	return views_functions.map(NULL, design, docs, count, arena, sink, ret_done, ret_error,
				   err);
}

static bool
no_step(void *arg, const struct view_step *step, struct catalog_seq *ret_least)
{
	(void)arg, (void)step, (void)ret_least;
	fail_msg("a step was written");
	return false;
}

static void
a_builder_gives_up_that_is_always_overtaken(void **state)
{
	const struct view_run_hooks hooks = { .stepped = no_step };
	struct view_functions functions = views_functions;
	struct world *w = world_new(*state);
	struct overtaking other = { .steps = 0 };
	const struct view_build build = { .store = w->f->calm,
					  .space = CATALOG_SPACE_COUCH,
					  .db_name = w->f->db->name,
					  .db_number = w->f->db->number,
					  .design = &w->design,
					  .functions = &functions,
					  .arg = &other };
	struct view_error error;
	struct err err = { 0 };
	struct catalog_seq least;

	functions.map = overtaken_map;
	put_many(w, 0, OVERTAKEN);
	least = newest(w);
	rival_init(&other.rival, w, NULL);
	assert_int_equal(view_run(&build, &least, &hooks, w->f->arena, &error, &err), STATUS_BUSY);
	assert_int_equal(other.steps, VIEW_BUILD_TRIES);
	rival_fini(&other.rival);
	update(w);
	check_many(w, OVERTAKEN);
	world_free(w);
}

/* Whichever allocation fails, a batch that is made has all rows. */
static void
a_batch_has_all_rows_or_memory_is_short(void **state)
{
	struct world *w = world_new(*state);
	const struct view_build build = { .store = w->f->calm,
					  .space = CATALOG_SPACE_COUCH,
					  .db_name = w->f->db->name,
					  .db_number = w->f->db->number,
					  .design = &w->design,
					  .functions = &views_functions };
	const struct catalog_seq nothing = { 0 };
	struct view_record record;
	struct err err = { 0 };
	size_t rows = 0;
	bool failed = true;

	for (size_t i = 0; i < 3; i++)
		doc_put(w, &w->docs[i]);
	assert_int_equal(view_build_state(&build, w->f->arena, &record, &err), STATUS_OK);
	for (uint64_t nth = 1; nth <= 2; nth++) {
		struct view_batch *none = NULL;

		(void)mem_fail_only(nth);
		assert_int_equal(view_batch_new(&none), STATUS_NOMEM);
		assert_int_equal(mem_fail_only(0), nth);
		assert_null(none);
	}
	for (uint64_t nth = 0; nth == 0 || failed; nth++) {
		struct view_batch *batch;
		enum status status;

		assert_int_equal(view_batch_new(&batch), STATUS_OK);
		arena_set_apart(nth > 0);
		(void)mem_fail_only(nth);
		status = view_batch_make(&build, record.group.number, &nothing,
					 &record.group.purge_seq, batch, &err);
		failed = mem_fail_only(0) >= nth;
		arena_set_apart(false);
		if (!nth)
			rows = batch->row_count;
		assert_true(status == STATUS_OK || (nth && failed));
		if (status == STATUS_OK)
			assert_int_equal(batch->row_count, rows);
		view_batch_free(batch);
	}
	assert_true(rows > 0);
	world_free(w);
}

/* In arenas of growing sizes, up to one that is enough. */
static void
a_step_writes_all_rows_or_memory_is_short(void **state)
{
	static const char design[] = "{\"views\":{\"p\":{\"map\":\"pairs\",\"reduce\":\"_sum\"}}}";
	struct world *w = world_new(*state);
	struct reduce_asked asked;
	struct view_build build = { .store = w->f->calm,
				    .space = CATALOG_SPACE_COUCH,
				    .db_name = w->f->db->name,
				    .db_number = w->f->db->number,
				    .design = &w->design,
				    .functions = &views_functions,
				    .asked = &asked };
	enum status status = STATUS_LIMIT;
	struct view_record record;
	struct view_batch *batch;
	struct err err = { 0 };
	const char *rev;

	assert_int_equal(reduce_memo_new(VIEW_MEMO_BYTES, &build.memo), STATUS_OK);
	assert_int_equal(reduce_asked_init(&asked), STATUS_OK);
	assert_int_equal(
		view_design_parse(str_from_cstr(design), false, w->f->arena, &w->design, &err),
		STATUS_OK);
	rev = fixture_put(w->f, "d", NULL,
			  "{\"rows\":[[0,0],[1,1],[1,2],[1,3],[1,4],[1,5],[1,6],[1,7],[2,1],[2,2],"
			  "[2,3],[2,4],[2,5],[2,6],[2,7],[3,1],[3,2],[3,3],[3,4],[3,5],[3,6]]}");
	update(w);
	(void)fixture_put(w->f, "d", rev, "{\"rows\":[[0,0],[1,2],[5,1]]}");
	assert_int_equal(view_build_state(&build, w->f->arena, &record, &err), STATUS_OK);
	assert_int_equal(view_batch_new(&batch), STATUS_OK);
	assert_int_equal(view_batch_make(&build, record.group.number, &record.group.covers,
					 &record.group.purge_seq, batch, &err),
			 STATUS_OK);
	/* Small sizes are tried one by one: these end amid the document. */
	for (size_t bytes = 0; status != STATUS_OK; bytes += bytes < 32768 ? 16 : bytes) {
		struct view_step_size size = { VIEW_BATCH_DOCS, VIEW_STEP_BYTES };
		struct arena *arena = arena_new(bytes);
		struct view_step step;

		status = view_step_write(&build, batch, &size, arena, &step, &err);
		assert_int_equal(status, arena_is_full(arena) ? STATUS_LIMIT : STATUS_OK);
		arena_free(arena);
	}
	view_batch_free(batch);
	assert_int_equal(view_build_state(&build, w->f->arena, &record, &err), STATUS_OK);
	assert_int_equal(record.group.rows[PAIRS_MAP], 3);
	reduce_asked_release(&asked);
	reduce_memo_free(build.memo);
	world_free(w);
}

/*
 * A document that is written row by row is counted among those that are only half written until it
 * has all of its rows, also while it has none: when its old ones are gone, and no new one is there.
 */
static void
a_document_in_parts_is_half_written_until_it_is_whole(void **state)
{
	struct world *w = world_new(*state);
	struct reduce_asked asked;
	struct view_build build = { .store = w->f->calm,
				    .space = CATALOG_SPACE_COUCH,
				    .db_name = w->f->db->name,
				    .db_number = w->f->db->number,
				    .design = &w->design,
				    .functions = &views_functions,
				    .asked = &asked };
	struct view_record record;
	struct view_error error;
	struct err err = { 0 };
	unsigned parts = 0;

	assert_int_equal(reduce_memo_new(VIEW_MEMO_BYTES, &build.memo), STATUS_OK);
	assert_int_equal(reduce_asked_init(&asked), STATUS_OK);
	doc_put(w, &w->docs[0]);
	update(w);
	for (int round = 0; round < 20; round++) {
		struct view_step step = { .whole = false };

		doc_put(w, &w->docs[0]);
		while (!step.whole) {
			struct view_step_size size = { 1, 1 };
			struct index_work work = { .arena = arena_new(WORK_BYTES) };
			const struct reduce_run run = view_build_reduces(&build, &work, &error,
									 &err);
			struct view_batch *batch;

			assert_int_equal(view_build_state(&build, work.arena, &record, &err),
					 STATUS_OK);
			assert_int_equal(view_batch_new(&batch), STATUS_OK);
			assert_int_equal(view_batch_make(&build, record.group.number,
							 &record.group.covers,
							 &record.group.purge_seq, batch, &err),
					 STATUS_OK);
			while (view_step_write(&build, batch, &size, work.arena, &step, &err) !=
			       STATUS_OK)
				assert_int_equal(reduce_answer(&run), STATUS_OK);
			assert_int_equal(view_build_state(&build, work.arena, &record, &err),
					 STATUS_OK);
			assert_int_equal(record.group.halves, !step.whole);
			parts += !step.whole;
			view_batch_free(batch);
			arena_free(work.arena);
		}
	}
	assert_true(parts > 0);
	reduce_asked_release(&asked);
	reduce_memo_free(build.memo);
	check_all(w);
	world_free(w);
}

/*
 * A step never waits for a function: it says what has to be asked. Only when it has been answered,
 * and no transaction is open, the step is committed.
 */
static void
a_step_calls_no_reduce(void **state)
{
	struct world *w = world_new(*state);
	struct reduce_asked asked;
	struct view_build build = { .store = w->f->calm,
				    .space = CATALOG_SPACE_COUCH,
				    .db_name = w->f->db->name,
				    .db_number = w->f->db->number,
				    .design = &w->design,
				    .functions = &views_functions,
				    .asked = &asked };
	struct index_work work = { .arena = w->f->arena };
	struct view_batch *batch;
	struct view_record record;
	struct view_step step;
	struct view_step_size size = { VIEW_BATCH_DOCS, VIEW_STEP_BYTES };
	size_t rounds = 0;
	struct err err = { 0 };
	struct view_error error;
	const struct catalog_seq nothing = { 0 };

	for (size_t i = 0; i < DOCS; i++)
		doc_put(w, &w->docs[i]);
	assert_int_equal(reduce_memo_new(VIEW_MEMO_BYTES, &build.memo), STATUS_OK);
	assert_int_equal(reduce_asked_init(&asked), STATUS_OK);
	assert_int_equal(view_build_state(&build, w->f->arena, &record, &err), STATUS_OK);
	assert_int_equal(view_batch_new(&batch), STATUS_OK);
	assert_int_equal(view_batch_make(&build, record.group.number, &nothing,
					 &record.group.purge_seq, batch, &err),
			 STATUS_OK);
	asked_reduces = (struct asked_reduces){ .counting = true };
	for (;;) {
		const struct reduce_run run = { .design = &w->design,
						.functions = &views_functions,
						.memo = build.memo,
						.asked = &asked,
						.w = &work,
						.error = &error,
						.err = &err };
		size_t before = asked_reduces.count;
		enum status status = view_step_write(&build, batch, &size, w->f->arena, &step,
						     &err);

		assert_int_equal(asked_reduces.count, before);
		if (status == STATUS_OK)
			break;
		assert_int_equal(status, STATUS_BUSY);
		assert_true(asked.count > 0);
		assert_true(++rounds < 20);
		assert_int_equal(reduce_answer(&run), STATUS_OK);
		assert_int_equal(asked.count, 0);
	}
	assert_true(rounds > 0);
	assert_true(step.whole);
	asked_reduces.counting = false;
	view_batch_free(batch);
	reduce_asked_release(&asked);
	reduce_memo_free(build.memo);
	check_all(w);
	world_free(w);
}

/* ---- The memo ---- */

static void
an_answer_without_room_is_an_error_and_not_asked_again(void **state)
{
	static char text[200000];
	const struct reduce_question q = { STR("own"), false, STR("[]"), STR("[1]") };
	struct reduce_memo *memo;
	struct str answer;

	(void)state;
	memset(text, 'x', sizeof(text));
	assert_int_equal(reduce_memo_new(100000, &memo), STATUS_OK);
	assert_int_equal(reduce_memo_keep(memo, &q, str_of(text, sizeof(text))), STATUS_OK);
	answer = reduce_memo_find(memo, &q);
	assert_true(str_eq(answer, STR(REDUCE_OVERFLOW)));
	reduce_memo_free(memo);
}

static void
questions_past_the_limit_wait_for_the_next_attempt(void **state)
{
	struct reduce_asked asked;
	struct str large = { calloc(1, REDUCE_ASKED_BYTES / 4), REDUCE_ASKED_BYTES / 4 };
	const struct reduce_question q = { STR("own"), false, STR("[]"), large };

	(void)state;
	assert_non_null(large.ptr);
	assert_int_equal(reduce_asked_init(&asked), STATUS_OK);
	for (size_t i = 0; i < 20; i++)
		assert_int_equal(reduce_asked_add(&asked, &q), STATUS_OK);
	assert_int_equal(asked.count, 4);
	reduce_asked_clear(&asked);
	assert_int_equal(asked.count, 0);
	assert_int_equal(reduce_asked_add(&asked, &q), STATUS_OK);
	assert_int_equal(asked.count, 1);
	reduce_asked_release(&asked);
	free((char *)(uintptr_t)large.ptr);
}

/* ---- Cleanup ---- */

static size_t
keys_of_views(struct fixture *f)
{
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;
	struct kv_tx *tx = fixture_begin(f);
	struct kv_scan scan;
	struct kv_pair pair;
	size_t count = 0;

	buf_append_str(&lo, f->db->prefix);
	tuple_put_u64(&lo, REV_SUBSPACE_VIEWS);
	assert_int_equal(tuple_prefix_end(buf_str(&lo), &hi), STATUS_OK);
	assert_int_equal(kv_scan_init(&scan, tx, buf_str(&lo), buf_str(&hi), NULL), STATUS_OK);
	while (kv_scan_next(&scan, &pair) == STATUS_OK)
		count++;
	kv_scan_release(&scan);
	kv_tx_free(tx);
	return count;
}

static void
cleanup_clears_groups_that_nobody_has(void **state)
{
	struct world *w = world_new(*state);
	const struct str name = w->f->db->name;
	uint8_t live[1][VIEW_SIGNATURE_BYTES];
	struct err err = { 0 };
	uint64_t cleared;

	edit_randomly(w, EDITS);
	update(w);
	memcpy(live[0], w->design.signature, sizeof(live[0]));
	assert_int_equal(
		view_cleanup(w->f->store, CATALOG_SPACE_COUCH, name, live, 1, &cleared, &err),
		STATUS_OK);
	assert_int_equal(cleared, 0);
	check_all(w);
	updates_end(w);
	assert_int_equal(
		view_cleanup(w->f->store, CATALOG_SPACE_COUCH, name, NULL, 0, &cleared, &err),
		STATUS_OK);
	assert_int_equal(cleared, 1);
	assert_int_equal(keys_of_views(w->f), 1); /* the number of the next group */
	update(w);
	check_all(w);
	world_free(w);
}

/* ---- What verify finds ---- */

static void
count_finding(const struct catalog_finding *finding, void *arg)
{
	(void)finding;
	++*(size_t *)arg;
}

/* What is lent is not looked at. `arg` counts what has not been given back. */
static void *
lend(void *arg, const struct catalog_db *db, struct str id, struct str text)
{
	(void)db, (void)text;
	assert_true(str_starts_with(id, STR("_design/")));
	++*(int *)arg;
	return arg;
}

static void
give_back(void *arg)
{
	--*(int *)arg;
}

static enum status
worker_is_lost(void *arg, const struct view_design *design, const struct str *names,
	       size_t name_count, bool rereduce, const struct view_group_input *groups,
	       size_t group_count, struct arena *arena, struct str *ret_results,
	       struct view_error *ret_errors, struct view_error *ret_error, struct err *err)
{
	(void)arg, (void)design, (void)names, (void)name_count, (void)rereduce, (void)groups;
	(void)group_count, (void)arena, (void)ret_results, (void)ret_errors, (void)err;
	*ret_error = (struct view_error){ STR("os_process_error"), STR("\"lost\"") };
	return STATUS_FUNCTION;
}

static size_t
findings_by(struct fixture *f, const struct catalog_verify_lender *lender, uint64_t *ret_functions)
{
	size_t findings = 0;
	const struct catalog_verify_options options = { .found = count_finding,
							.arg = &findings,
							.lender = lender };
	struct catalog_verify_sum sum;
	struct kv_tx *tx = fixture_begin(f);

	assert_int_equal(
		catalog_verify_db(tx, CATALOG_SPACE_COUCH, f->db->name, &options, &sum, NULL),
		STATUS_OK);
	kv_tx_free(tx);
	*ret_functions = sum.functions;
	return findings;
}

static size_t
findings_of(struct fixture *f)
{
	uint64_t functions;

	return findings_by(f, NULL, &functions);
}

struct damage {
	struct fixture *f;
	unsigned level; /* whose first pair goes */
	struct kv_pair pair;
};

static enum status
damage_body(struct kv_tx *tx, void *arg)
{
	struct damage *d = arg;
	const struct kv_range_options options = { .limit = 1 };
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;
	struct kv_future *future;

	if (d->pair.key.ptr)
		return kv_set(tx, d->pair.key, d->pair.value);
	view_key_level(&lo, d->f->db, 1, PAIRS_MAP, d->level);
	TRY(view_prefix_end(buf_str(&lo), &hi));
	future = kv_get_range(tx, buf_str(&lo), buf_str(&hi), &options);
	TRY(kv_future_wait(future));
	assert_int_equal(kv_future_range(future).count, 1);
	d->pair.key = arena_dup(d->f->arena, kv_future_range(future).pairs[0].key);
	d->pair.value = arena_dup(d->f->arena, kv_future_range(future).pairs[0].value);
	return kv_clear(tx, d->pair.key);
}

static void
verify_finds_rows_and_sums_that_do_not_agree(void **state)
{
	struct world *w = world_new(*state);

	for (size_t i = 0; i < DOCS; i++)
		doc_put(w, &w->docs[i]);
	update(w);
	naive_rows(w);
	assert_true(w->row_count > 0);
	assert_int_equal(findings_of(w->f), 0);
	for (unsigned level = 0; level <= 2; level++) {
		struct damage damage = { .f = w->f, .level = level };

		/* The first kv_run() of each pair clears it, the second one puts it back. */
		assert_int_equal(kv_run(w->f->calm, damage_body, &damage, NULL, NULL), STATUS_OK);
		assert_true(findings_of(w->f) > 0);
		assert_int_equal(kv_run(w->f->calm, damage_body, &damage, NULL, NULL), STATUS_OK);
		assert_int_equal(findings_of(w->f), 0);
	}
	world_free(w);
}

/* Replaces the results in the first sum of a level that has rows by others of the same form. */
struct falsifying {
	struct fixture *f;
	unsigned level;
	const struct view_design *design;
	bool functions; /* their results alone */
	struct kv_pair pair;
};

static enum status
falsify_body(struct kv_tx *tx, void *arg)
{
	struct falsifying *d = arg;
	const struct kv_range_options options = { .limit = 1000 };
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	struct kv_future *future;
	struct view_sum sum;

	if (d->pair.key.ptr)
		return kv_set(tx, d->pair.key, d->pair.value);
	view_key_level(&lo, d->f->db, 1, PAIRS_MAP, d->level);
	TRY(view_prefix_end(buf_str(&lo), &hi));
	future = kv_get_range(tx, buf_str(&lo), buf_str(&hi), &options);
	TRY(kv_future_wait(future));
	/* The first sum of a level covers nothing if its first row begins another one. */
	for (size_t i = 0; !d->pair.key.ptr; i++) {
		struct kv_range range = kv_future_range(future);

		assert_true(i < range.count);
		assert_int_equal(view_sum_parse(range.pairs[i].value, d->f->arena, &sum, NULL),
				 STATUS_OK);
		if (sum.rows == 0)
			continue;
		d->pair.key = arena_dup(d->f->arena, range.pairs[i].key);
		d->pair.value = arena_dup(d->f->arena, range.pairs[i].value);
	}
	assert_int_equal(view_sum_parse(d->pair.value, d->f->arena, &sum, NULL), STATUS_OK);
	kv_future_free(future);
	for (size_t i = 0; i < sum.count; i++)
		if (!d->functions ||
		    d->design->maps[PAIRS_MAP].reduces[i].kind == VIEW_REDUCE_FUNCTION)
			sum.partials[i] = STR("r123456");
	view_sum_put(&value, &sum);
	return kv_set(tx, d->pair.key, buf_str(&value));
}

static void
verify_finds_results_that_their_rows_do_not_make(void **state)
{
	struct world *w = world_new(*state);

	fixture_put(w->f, "_design/other", NULL, "{\"views\":{\"a\":{\"map\":\"x\"}}}");
	for (size_t i = 0; i < DOCS; i++)
		doc_put(w, &w->docs[i]);
	update(w);
	naive_rows(w);
	assert_true(w->row_count > 0);
	for (unsigned level = 1; level <= VIEW_LEVELS; level++) {
		struct falsifying all = { .f = w->f, .level = level };

		/* No design document says what the results are of. */
		assert_int_equal(kv_run(w->f->calm, falsify_body, &all, NULL, NULL), STATUS_OK);
		assert_int_equal(findings_of(w->f), 0);
		assert_int_equal(kv_run(w->f->calm, falsify_body, &all, NULL, NULL), STATUS_OK);
	}
	world_put_design(w);
	assert_int_equal(findings_of(w->f), 0);
	for (unsigned level = 1; level <= VIEW_LEVELS; level++) {
		struct falsifying one = { .f = w->f, .level = level };

		assert_int_equal(kv_run(w->f->calm, falsify_body, &one, NULL, NULL), STATUS_OK);
		assert_true(findings_of(w->f) > 0);
		assert_int_equal(kv_run(w->f->calm, falsify_body, &one, NULL, NULL), STATUS_OK);
		assert_int_equal(findings_of(w->f), 0);
	}
	world_free(w);
}

static void
verify_calls_functions_where_it_has_some(void **state)
{
	struct world *w = world_new(*state);
	struct view_functions functions = views_functions;
	int lent = 0;
	const struct catalog_verify_lender lender = { &functions, lend, &lent };
	struct falsifying one = { .f = w->f, .level = 1, .design = &w->design, .functions = true };
	uint64_t uncompared;

	functions.release = give_back;
	world_put_design(w);
	for (size_t i = 0; i < DOCS; i++)
		doc_put(w, &w->docs[i]);
	update(w);
	assert_int_equal(findings_by(w->f, &lender, &uncompared), 0);
	assert_int_equal(uncompared, 0);
	assert_int_equal(kv_run(w->f->calm, falsify_body, &one, NULL, NULL), STATUS_OK);
	assert_int_equal(findings_by(w->f, NULL, &uncompared), 0);
	assert_true(uncompared > 0);
	assert_true(findings_by(w->f, &lender, &uncompared) > 0);
	assert_int_equal(uncompared, 0);
	/* A worker that ends is no damage of the store. */
	functions.reduce = worker_is_lost;
	assert_int_equal(findings_by(w->f, &lender, &uncompared), 0);
	assert_true(uncompared > 0);
	assert_int_equal(lent, 0);
	assert_int_equal(kv_run(w->f->calm, falsify_body, &one, NULL, NULL), STATUS_OK);
	world_free(w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(first_build_goes_on_wherever_it_ends, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(steps_shrink_until_they_end_in_time, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(a_step_fails_for_the_reason_of_its_last_attempt,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(of_two_steps_from_one_place_one_is_written,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(two_builders_do_no_harm, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(a_step_writes_all_rows_or_memory_is_short,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(
			groups_that_begin_together_have_numbers_of_their_own, fixture_setup,
			fixture_teardown),
		cmocka_unit_test_setup_teardown(what_is_covered_is_not_updated, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(an_update_hands_on_why_its_map_failed,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(
			a_lazy_update_has_the_priority_of_requests_and_misses_nothing,
			fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(a_lazy_update_takes_as_many_steps_as_it_needs,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(a_step_asks_a_reduce_once, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(a_builder_gives_up_that_is_always_overtaken,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(a_batch_has_all_rows_or_memory_is_short,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(
			a_document_in_parts_is_half_written_until_it_is_whole, fixture_setup,
			fixture_teardown),
		cmocka_unit_test_setup_teardown(a_step_calls_no_reduce, fixture_setup,
						fixture_teardown),
		cmocka_unit_test(an_answer_without_room_is_an_error_and_not_asked_again),
		cmocka_unit_test(questions_past_the_limit_wait_for_the_next_attempt),
		cmocka_unit_test_setup_teardown(cleanup_clears_groups_that_nobody_has,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(verify_finds_rows_and_sums_that_do_not_agree,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(verify_calls_functions_where_it_has_some,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(verify_finds_results_that_their_rows_do_not_make,
						fixture_setup, fixture_teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
