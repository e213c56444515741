#include "index/view/run.h"

#include <pthread.h>

#include "base/thread.h"

enum {
	STEP_DOCS = VIEW_BATCH_DOCS + VIEW_BATCH_PURGES,
	STEP_GROWTH = 8, /* a step after a smaller one may do an eighth more, see step_grow() */
};

/* A batch that another thread makes. */
struct ahead {
	const struct view_build *build;
	struct view_batch *batch;
	struct view_batch *before; /* behind which it begins; NULL: there is no such batch */
	uint64_t number;
	struct catalog_seq from;
	struct catalog_seq purges_from;
	pthread_t thread;
	bool started;
	enum status status;
	struct err err;
};

struct run {
	const struct view_build *build;
	const struct view_run_hooks *hooks;
	struct arena *arena; /* of the caller, for what is returned */
	struct arena *step_arena;
	struct catalog_seq least;
	struct view_batch *batch; /* that is being written; NULL: none */
	struct ahead ahead;
	struct view_step_size write; /* what a step does */
	struct view_step_size sum;   /* what a step does that sums up */
	unsigned busy;               /* attempts in a row that were STATUS_BUSY */
	struct view_error *error;
	struct err *err;
};

/* ---- The next batch ---- */

static void *
ahead_main(void *arg)
{
	struct ahead *a = arg;

	thread_set_name("view ahead");
	a->status = view_batch_make(a->build, a->number, &a->from, &a->purges_from, a->batch,
				    &a->err);
	return NULL;
}

/* Begins the batch behind the present one. Without a thread it is made later. */
static void
ahead_begin(struct run *r)
{
	struct ahead *a = &r->ahead;

	*a = (struct ahead){ .build = r->build,
			     .number = r->batch->number,
			     .from = r->batch->to,
			     .purges_from = r->batch->purges_to };
	if (view_batch_new(&a->batch) != STATUS_OK)
		return;
	a->started = pthread_create(&a->thread, NULL, ahead_main, a) == 0;
	if (a->started)
		return;
	view_batch_free(a->batch);
	a->batch = NULL;
}

static void
ahead_wait(struct ahead *a)
{
	if (a->started)
		pthread_join(a->thread, NULL);
	a->started = false;
}

static void
ahead_drop(struct ahead *a)
{
	ahead_wait(a);
	view_batch_free(a->batch);
	a->batch = NULL;
}

/* ---- Steps ---- */

static enum status
run_fail(struct run *r, enum status status, const struct view_error *error)
{
	if (status != STATUS_FUNCTION)
		return status;
	r->error->name = arena_dup(r->arena, error->name);
	r->error->reason = arena_dup(r->arena, error->reason);
	return STATUS_FUNCTION;
}

/* The batch for a group that is here: the one that was made ahead, or a new one. */
static enum status
run_take_batch(struct run *r, const struct view_record *record)
{
	const struct view_group *g = &record->group;
	struct ahead *a = &r->ahead;
	enum status status;

	if (r->batch && r->batch->number == g->number &&
	    !catalog_seq_cmp(&r->batch->from, &g->covers) &&
	    !catalog_seq_cmp(&r->batch->purges_from, &g->purge_seq))
		return STATUS_OK; /* the previous step was not committed, or wrote a part of one */
	ahead_wait(a);
	view_batch_free(r->batch);
	r->batch = NULL;
	if (a->batch && a->number == g->number && !catalog_seq_cmp(&a->from, &g->covers) &&
	    !catalog_seq_cmp(&a->purges_from, &g->purge_seq)) {
		r->batch = a->batch;
		a->batch = NULL;
		status = a->status;
		if (status != STATUS_OK && r->err)
			*r->err = a->err;
	} else {
		ahead_drop(a);
		TRY(view_batch_new(&r->batch));
		status = view_batch_make(r->build, g->number, &g->covers, &g->purge_seq, r->batch,
					 r->err);
	}
	if (status != STATUS_OK) {
		status = run_fail(r, status, &r->batch->error);
		view_batch_free(r->batch);
		r->batch = NULL;
		return status;
	}
	if (r->batch->more)
		ahead_begin(r);
	return STATUS_OK;
}

/* Tells what limits have kept out of the documents that the step has written. */
static void
run_tell(struct run *r, const struct view_step *step)
{
	const struct view_batch *b = r->batch;

	for (size_t i = 0; r->hooks->left_out && i < step->docs; i++)
		for (size_t n = 0; n < b->docs[i].left_out_count; n++)
			r->hooks->left_out(r->hooks->arg,
					   &b->left_out[b->docs[i].left_out_first + n]);
}

/* Calls the reduces that the last attempt has asked for. No transaction is open. */
static enum status
run_answer(struct run *r, struct view_step *step)
{
	struct index_work w = { .arena = r->step_arena };
	const struct reduce_run run = view_build_reduces(r->build, &w, &step->error, r->err);
	enum status status = reduce_answer(&run);

	return status == STATUS_OK ? STATUS_OK : run_fail(r, status, &step->error);
}

static enum status
run_step(struct run *r, const struct view_record *record, struct view_step *step)
{
	enum status status;

	if (record->group.phase == VIEW_PHASE_SUMS) {
		status = view_step_sums(r->build, &r->sum, r->step_arena, step, r->err);
		return status == STATUS_OK ? STATUS_OK : run_fail(r, status, &step->error);
	}
	TRY(run_take_batch(r, record));
	status = view_step_write(r->build, r->batch, &r->write, r->step_arena, step, r->err);
	if (status != STATUS_OK)
		return run_fail(r, status, &step->error);
	run_tell(r, step);
	/* If it was empty, the next one begins at the same place, and must not be taken for it. */
	if (step->whole && !r->batch->more) {
		view_batch_free(r->batch);
		r->batch = NULL;
	}
	return STATUS_OK;
}

/*
 * A step has ended: the next one may do more, up to `whole`. What made steps smaller may have been
 * a slow moment.
 */
static void
step_grow(size_t *most, size_t whole)
{
	*most += *most / STEP_GROWTH + 1;
	if (*most > whole)
		*most = whole;
}

static enum status
run_steps(struct run *r)
{
	for (;;) {
		struct view_record record;
		struct view_step step;
		enum status status;
		bool goes_on;

		arena_clear(r->step_arena);
		reduce_asked_clear(r->build->asked);
		TRY(view_build_state(r->build, r->step_arena, &record, r->err));
		if (record.group.phase == VIEW_PHASE_READY &&
		    catalog_seq_cmp(&record.group.covers, &r->least) >= 0) {
			step = (struct view_step){ .covers = record.group.covers,
						   .phase = VIEW_PHASE_READY };
			goes_on = r->hooks->stepped(r->hooks->arg, &step, &r->least);
			if (catalog_seq_cmp(&record.group.covers, &r->least) >= 0)
				return STATUS_OK;
			if (!goes_on)
				return STATUS_CANCELLED;
		}
		status = run_step(r, &record, &step);
		/* An attempt that has asked reduces has made progress: it is no vain one. */
		if (status == STATUS_BUSY && r->build->asked->count) {
			TRY(run_answer(r, &step));
			continue;
		}
		if (status == STATUS_BUSY && ++r->busy < VIEW_BUILD_TRIES)
			continue;
		TRY(status);
		r->busy = 0;
		step_grow(&r->write.most, STEP_DOCS);
		step_grow(&r->write.bytes, VIEW_STEP_BYTES);
		step_grow(&r->sum.most, VIEW_STEP_ROWS);
		reduce_memo_clear(r->build->memo);
		if (!r->hooks->stepped(r->hooks->arg, &step, &r->least))
			return STATUS_CANCELLED;
	}
}

enum status
view_run(const struct view_build *build, const struct catalog_seq *least,
	 const struct view_run_hooks *hooks, struct arena *arena, struct view_error *ret_error,
	 struct err *err)
{
	struct reduce_asked asked = { 0 };
	struct view_build own = *build;
	struct run r = { .build = &own,
			 .hooks = hooks,
			 .arena = arena,
			 .least = *least,
			 .write = { STEP_DOCS, VIEW_STEP_BYTES },
			 .sum = { VIEW_STEP_ROWS, 0 },
			 .error = ret_error,
			 .err = err };
	enum status status;

	*ret_error = (struct view_error){ 0 };
	r.step_arena = arena_new(VIEW_STEP_ARENA_BYTES);
	if (!r.step_arena)
		return STATUS_NOMEM;
	status = reduce_memo_new(VIEW_MEMO_BYTES, &own.memo);
	own.asked = &asked;
	if (status == STATUS_OK)
		status = reduce_asked_init(&asked);
	if (status == STATUS_OK)
		status = run_steps(&r);
	ahead_drop(&r.ahead);
	view_batch_free(r.batch);
	arena_free(r.step_arena);
	reduce_memo_free(own.memo);
	reduce_asked_release(&asked);
	return status;
}
