/*
 * Values that one transaction cannot write (model/timed/items/item.h): their chunks go to the store
 * in transactions of their own, on the fiber of the connection and in no lanes; then the command
 * runs again, and publishes them.
 */
#include "door/redis/txn/stage.h"

#include "base/err_clear.h"
#include "base/metric.h"
#include "door/redis/txn/redis_int.h"

METRIC_COUNTER(staged, "frond_redis_staged_total", METRIC_NUMBER,
	       "Values of Redis's door that several transactions have written.");

/* A transaction that stages, or drops what was staged. */
struct stage_run {
	struct redis *redis;
	unsigned db;
	const struct timed_stage *stage;
	struct timed_stage next; /* what it is if the transaction commits */
	bool drops;
	struct arena *arena;
	struct arena_mark mark;
	struct err *err;
};

static enum status
stage_body(struct kv_tx *tx, void *arg)
{
	struct stage_run *run = arg;
	struct timed *t;
	struct txn x;
	enum status status;

	arena_reset(run->arena, run->mark);
	txn_init(&x, run->redis, tx, NULL, run->arena, run->err);
	run->next = *run->stage;
	status = txn_open(&x, run->db, &t);
	if (status == STATUS_OK)
		status = run->drops ? timed_stage_drop(t, run->stage, run->arena)
				    : timed_stage_write(t, &run->next, run->arena);
	txn_fini(&x);
	return status;
}

static enum status
stage_transact(struct stage_run *run)
{
	enum status status;

	run->mark = arena_mark(run->arena);
	status = kv_run(run->redis->config.store, stage_body, run, NULL, run->err);
	arena_reset(run->arena, run->mark);
	return status;
}

enum status
stage_value(struct redis *r, struct job *job, struct arena *arena, struct err *err)
{
	struct staged *one = arena_alloc(arena, sizeof(*one));
	struct timed_stage *s;
	struct stage_run run;

	if (!one)
		return STATUS_LIMIT;
	s = &one->stage;
	run = (struct stage_run){
		.redis = r, .db = job->wanted_db, .stage = s, .arena = arena, .err = err
	};
	if (job->stage_count++ == REDIS_STAGES)
		return err_set(err, STATUS_TX_CONFLICT,
			       "the values of a command were staged %d times (REDIS_STAGES), and "
			       "changed meanwhile",
			       REDIS_STAGES);
	*one = (struct staged){ .stage = job->wanted, .db = job->wanted_db };
	s->next = stage_first(job);
	job->staged = one;
	metric_add(&staged, 1);
	while (!s->complete && !s->stale) {
		TRY(stage_transact(&run));
		*s = run.next;
	}
	return STATUS_OK;
}

void
stage_drop_all(struct redis *r, struct job *job, struct arena *arena)
{
	struct err ignored;

	for (const struct timed_stage *s = stage_first(job); s; s = s->next) {
		struct stage_run run = { .redis = r,
					 .db = ((const struct staged *)s)->db,
					 .stage = s,
					 .drops = true,
					 .arena = arena,
					 .err = &ignored };

		err_clear(&ignored);
		/* What cannot be dropped now goes when its time has come. */
		(void)!stage_transact(&run);
	}
	job->staged = NULL;
}
