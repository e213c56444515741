/* Which jobs run when, and what follows when a run has ended. */
#include "replicator/schedule.h"

#include <assert.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metric.h"
#include "loop/task.h"
#include "replicator/docs.h"
#include "replicator/job_lease.h"
#include "replicator/looks.h"
#include "replicator/verdicts.h"

uint64_t
schedule_backoff_ms(const struct replicator_config *config, unsigned crashes)
{
	unsigned doublings = crashes ? crashes - 1 : 0;

	if (doublings > REPLICATOR_BACKOFF_DOUBLINGS)
		doublings = REPLICATOR_BACKOFF_DOUBLINGS;
	return config->backoff_ms << doublings;
}

/* ---- Runs ---- */

/* How a run has ended. */
struct run_end {
	enum job_event event;
	enum status status;
	struct err err;
	struct buf answer;
};

static void job_handle_event(struct job *j, enum job_event event, struct run_end *how);

static bool
job_is_running(const struct job *j)
{
	return j->state == JOB_RUNNING || j->state == JOB_YIELDING || j->state == JOB_LEAVING;
}

/*
 * True if no further run can succeed: what the job asks for is not allowed here, or its owner is
 * gone. Somebody else who takes that name later must not get the owner's replications.
 */
static bool
status_is_final(enum status status)
{
	return status == STATUS_UNSUPPORTED || status == STATUS_FORBIDDEN;
}

static void
job_run(void *arg)
{
	struct job *j = arg;
	struct replicator *r = j->replicator;
	struct run_end how = { .event = JOB_ENDED };
	const struct run_config config = {
		.env = &r->env,
		.loop = r->loop,
		.spec = j->spec,
		.id = j->id,
		.scope = &j->scope,
		.settling = &j->settling,
		.progress = &j->progress,
	};

	task_set_doing(STR("replication"), str_from_cstr(j->full_id));
	buf_init(&how.answer, REPLICATOR_ANSWER_BYTES);
	log_event(LOG_LEVEL_INFO, "replication_started",
		  "id=%s source=\"%.*s\" target=\"%.*s\" continuous=%s", j->full_id,
		  STR_ARG(j->spec->source.name), STR_ARG(j->spec->target.name),
		  j->spec->continuous ? "true" : "false");
	how.status = r->run(&config, &how.answer, &how.err);
	if (how.status == STATUS_CANCELLED)
		how.event = JOB_STOPPED;
	else if (how.status != STATUS_OK)
		how.event = status_is_final(how.status) ? JOB_REFUSED : JOB_CRASHED;
	pthread_mutex_lock(&r->lock);
	assert(r->running > 0 && job_is_running(j));
	r->running--;
	job_handle_event(j, how.event, &how);
	replicator_ring(r);
	pthread_mutex_unlock(&r->lock);
	buf_release(&how.answer);
}

static void
waits_end_all(struct replicator_wait **waits, enum status status, const struct err *err,
	      struct str answer)
{
	struct replicator_wait *w = *waits;

	*waits = NULL;
	while (w) {
		struct replicator_wait *next = w->next;

		replicator_wait_end(w, status, err, answer);
		w = next;
	}
}

/* ---- The actions of the table in states.c ---- */

static void
job_start(struct job *j)
{
	struct replicator *r = j->replicator;

	j->scope = j->settling = (struct net_scope){ 0 };
	run_progress_fini(&j->progress);
	run_progress_init(&j->progress, &r->lock);
	j->progress.started_ms = j->progress.updated_ms = clock_wall_ms();
	j->started_ns = clock_mono_ns();
	if (task_spawn(r->loop, job_run, j) != STATUS_OK) {
		/* There may be memory for it later: the job backs off as after any crash. */
		struct run_end how = { .status = STATUS_NOMEM };

		(void)err_set(&how.err, STATUS_NOMEM, "out of memory for a replication");
		job_handle_event(j, JOB_CRASHED, &how);
		return;
	}
	r->running++;
	job_remember(j, JOB_PAST_STARTED, NULL);
}

static void
job_back_off(struct job *j, const struct run_end *how)
{
	struct replicator *r = j->replicator;
	uint64_t ran_ms = (clock_mono_ns() - j->started_ns) / CLOCK_NS_PER_MS;
	uint64_t rest_ms;

	j->crashes = ran_ms > r->config.health_ms ? 1 : j->crashes + 1;
	rest_ms = schedule_backoff_ms(&r->config, j->crashes);
	j->rested_ns = clock_after_ms(rest_ms);
	job_remember(j, JOB_PAST_CRASHED, how->err.text);
	log_event(LOG_LEVEL_WARN, "replication_crashed",
		  "id=%s crashes=%u rest_ms=%llu reason=\"%s\"", j->full_id, j->crashes,
		  (unsigned long long)rest_ms, how->err.text);
	/* Requests get the failure as their answer. The job runs again if it has a document or is
	 * continuous. */
	waits_end_all(&j->waits, how->status, &how->err, STR(""));
}

static void
job_complete(struct job *j, const struct run_end *how)
{
	log_event(LOG_LEVEL_INFO, "replication_completed",
		  "id=%s docs_read=%llu docs_written=%llu doc_write_failures=%llu", j->full_id,
		  (unsigned long long)j->progress.counts.docs_read,
		  (unsigned long long)j->progress.counts.docs_written,
		  (unsigned long long)j->progress.counts.write_failures);
	waits_end_all(&j->waits, STATUS_OK, NULL, buf_str(&how->answer));
	if (j->spec->doc_id.ptr && !j->dropped)
		verdict_note_end(j->replicator, j, NULL);
}

static void
job_fail(struct job *j, const struct run_end *how)
{
	log_event(LOG_LEVEL_WARN, "replication_failed", "id=%s reason=\"%s\"", j->full_id,
		  how->err.text);
	waits_end_all(&j->waits, how->status, &how->err, STR(""));
	if (j->spec->doc_id.ptr && !j->dropped)
		verdict_note_end(j->replicator, j, how->err.text);
}

static const char *const run_ends[] = { "completed", "stopped", "crashed", "refused" };

METRIC_COUNTERS(runs_ended, "frond_replication_runs_total", METRIC_NUMBER,
		"Runs of replications that have ended: completed, stopped to let others run or "
		"because nobody wants them, crashed to be tried again, refused for good.",
		"end", run_ends);

static void
job_count_event(enum job_event event)
{
	switch (event) {
	case JOB_ENDED:
		metric_add_at(&runs_ended, 0, 1);
		break;
	case JOB_STOPPED:
		metric_add_at(&runs_ended, 1, 1);
		break;
	case JOB_CRASHED:
		metric_add_at(&runs_ended, 2, 1);
		break;
	case JOB_REFUSED:
		metric_add_at(&runs_ended, 3, 1);
		break;
	case JOB_TURN:
	case JOB_MAKE_ROOM:
	case JOB_RESTED:
	case JOB_CANCEL:
	case JOB_EVENTS:
		break;
	}
}

static void
job_handle_event(struct job *j, enum job_event event, struct run_end *how)
{
	struct job_step step = job_step(j->state, event);

	if (step.action == JOB_IMPOSSIBLE) {
		log_event(LOG_LEVEL_ERROR, "replication_confused", "id=%s state=%s event=%d",
			  j->full_id, job_state_name(j->state), (int)event);
		return;
	}
	j->state = step.next;
	job_count_event(event);
	switch (step.action) {
	case JOB_IMPOSSIBLE:
	case JOB_NOTHING:
		break;
	case JOB_START:
		job_start(j);
		break;
	case JOB_STOP:
		net_scope_cancel(&j->scope);
		break;
	case JOB_PUT_BACK:
		job_remember(j, JOB_PAST_STOPPED, NULL);
		break;
	case JOB_BACK_OFF:
		job_back_off(j, how);
		break;
	case JOB_COMPLETE:
		job_complete(j, how);
		break;
	case JOB_FAIL:
		job_fail(j, how);
		break;
	case JOB_REMOVE: /* by the sweep */
		break;
	}
}

/* ---- Which runs when ---- */

/* True for a job that has had its last run. One made by a request has one run only, unless it is
 * continuous. */
static bool
job_is_over(const struct job *j)
{
	if (j->state == JOB_COMPLETED || j->state == JOB_FAILED)
		return true;
	return j->state == JOB_CRASHING && !j->spec->continuous && !j->spec->doc_id.ptr;
}

/*
 * Requests that have joined a job after its last run had ended, before it was removed: they want
 * a run of their own. A document's job is not run again.
 */
static struct replicator_wait *
job_take_late_waits(struct job *j)
{
	struct replicator_wait *late = j->waits;

	if (!job_is_over(j) || j->leave_waits || j->dropped || j->replicator->stopping ||
	    j->spec->doc_id.ptr)
		return NULL;
	j->waits = NULL;
	return late;
}

/* Has a job that is removed run once more, as another one, for those who wait for that. */
static void
job_begin_again(struct replicator *r, struct job *gone, struct replicator_wait *late)
{
	struct job *j = job_new(r, gone->spec);
	struct err err = { 0 };

	if (!j) {
		(void)err_set(&err, STATUS_NOMEM, "out of memory for a replication");
		waits_end_all(&late, STATUS_NOMEM, &err, STR(""));
		return;
	}
	gone->spec = NULL;
	j->waits = late;
	job_table_add(r, j);
	replicator_ring(r);
}

static void
job_end_waits(struct job *j)
{
	struct err err = { 0 };

	(void)err_set(&err, STATUS_CANCELLED, "the replication was cancelled");
	waits_end_all(&j->waits, STATUS_CANCELLED, &err, STR(""));
	waits_end_all(&j->leave_waits, STATUS_OK, NULL, STR(""));
}

static void
schedule_sweep(struct replicator *r)
{
	struct job *next;

	for (struct job *j = job_next(r, NULL); j; j = next) {
		struct replicator_wait *late = job_take_late_waits(j);

		next = job_next(r, j);
		if (j->state != JOB_GONE && j->state != JOB_LEAVING &&
		    (job_is_over(j) || j->leave_waits || j->dropped || r->stopping))
			job_handle_event(j, JOB_CANCEL, NULL);
		if (j->state == JOB_CRASHING && clock_mono_ns() >= j->rested_ns)
			job_handle_event(j, JOB_RESTED, NULL);
		if (j->state == JOB_GONE) {
			job_table_remove(r, j);
			/* Not before: who has an answer neither finds the job nor joins it. */
			job_end_waits(j);
			if (!r->stopping)
				docs_start_successor(r, j);
			event_set(&r->leases_bell);
			if (late)
				job_begin_again(r, j, late);
			job_free(j);
		}
	}
}

static bool
schedule_may_run(const struct replicator *r, const struct job *j)
{
	return !r->shared || j->lease == JOB_LEASE_HELD;
}

/* Stops the jobs whose leases this process has lost, or may have lost without knowing. */
static void
schedule_stop_unheld(struct replicator *r)
{
	bool unsure = r->shared && !leases_are_certain(r->leases);

	for (struct job *j = job_next(r, NULL); j && r->shared; j = job_next(r, j)) {
		if (unsure)
			j->lease = JOB_LEASE_NONE;
		if (j->state == JOB_RUNNING && (unsure || j->lost))
			job_handle_event(j, JOB_MAKE_ROOM, NULL);
		/* Whoever has lost its lease is stopped once: it asks for the lease again. */
		j->lost = false;
		/* A new job runs as soon as it has a lease: do not wait for the next beat. */
		if (j->lease == JOB_LEASE_NONE && !unsure)
			event_set(&r->leases_bell);
	}
}

/* The pending job whose last run began longest ago; NULL if none may run. */
static struct job *
schedule_next_job(struct replicator *r)
{
	struct job *best = NULL;

	for (struct job *j = job_next(r, NULL); j; j = job_next(r, j))
		if (j->state == JOB_PENDING && schedule_may_run(r, j) &&
		    (!best || j->started_ns < best->started_ns))
			best = j;
	return best;
}

static void
schedule_fill_places(struct replicator *r)
{
	struct job *j;

	while (!r->stopping && r->running < r->config.max_jobs && (j = schedule_next_job(r)))
		job_handle_event(j, JOB_TURN, NULL);
}

/*
 * Stops the jobs that have run longest, at least for an interval, one for each job that waits. Only
 * continuous jobs make room: the others end by themselves.
 */
static void
schedule_make_room(struct replicator *r)
{
	uint64_t latest_ns = clock_mono_ns() - r->config.interval_ms * CLOCK_NS_PER_MS;
	unsigned waiting = 0;

	for (struct job *j = job_next(r, NULL); j; j = job_next(r, j))
		waiting += j->state == JOB_PENDING && schedule_may_run(r, j);
	for (unsigned i = 0; i < waiting && i < r->config.max_churn; i++) {
		struct job *oldest = NULL;

		for (struct job *j = job_next(r, NULL); j; j = job_next(r, j))
			if (j->state == JOB_RUNNING && j->spec->continuous &&
			    j->started_ns <= latest_ns &&
			    (!oldest || j->started_ns < oldest->started_ns))
				oldest = j;
		if (!oldest)
			return;
		job_handle_event(oldest, JOB_MAKE_ROOM, NULL);
	}
}

static uint64_t
schedule_next_look_ns(struct replicator *r, uint64_t room_ns)
{
	uint64_t next = room_ns;

	if (r->shared && clock_after_ms(leases_beat_ms()) < next)
		next = clock_after_ms(leases_beat_ms());

	for (struct job *j = job_next(r, NULL); j; j = job_next(r, j))
		if (j->state == JOB_CRASHING && j->rested_ns < next)
			next = j->rested_ns;
	return next;
}

static bool
schedule_any_running(struct replicator *r)
{
	for (struct job *j = job_next(r, NULL); j; j = job_next(r, j))
		if (job_is_running(j))
			return true;
	return false;
}

/* Ends the checkpoints that stopped runs are leaving: there is no more time for them. */
static void
schedule_give_up(struct replicator *r)
{
	for (struct job *j = job_next(r, NULL); j; j = job_next(r, j))
		if (job_is_running(j))
			net_scope_cancel(&j->settling);
}

/* When the scheduler has something to do even if nobody rings. */
struct schedule_times {
	uint64_t room_ns; /* jobs make room for others */
	/* A stop has taken too long. WAIT_FOREVER before a stop, and when it has been given up. */
	uint64_t give_up_ns;
	bool stop_noticed;
};

static void
schedule_stop_in_time(struct replicator *r, struct schedule_times *t)
{
	if (r->stopping && !t->stop_noticed) {
		t->stop_noticed = true;
		t->give_up_ns = clock_after_ms(REPLICATOR_STOP_MS);
	}
	if (clock_mono_ns() >= t->give_up_ns) {
		schedule_give_up(r);
		t->give_up_ns = WAIT_FOREVER;
	}
}

/* Does what there is to do now. True if everything has stopped. Under the lock. */
static bool
schedule_turn(struct replicator *r, struct schedule_times *t)
{
	bool drained;

	schedule_stop_in_time(r, t);
	looks_turn(r);
	schedule_sweep(r);
	schedule_stop_unheld(r);
	schedule_fill_places(r);
	if (clock_mono_ns() >= t->room_ns) {
		schedule_make_room(r);
		t->room_ns = clock_after_ms(r->config.interval_ms);
	}
	assert(r->running <= r->config.max_jobs);
	drained = r->stopping && !schedule_any_running(r);
	if (drained) {
		/* Nothing adds verdicts or needs leases any more: their fibers may end. */
		r->drained = true;
		event_set(&r->verdicts_bell);
		event_set(&r->leases_bell);
	}
	if (r->stopping)
		event_set(&r->docs_stop);
	return drained && r->fibers == 0;
}

/* The scheduler's fiber. It ends, and the loop with it, when everything has stopped. */
static void
schedule_fiber(void *arg)
{
	struct replicator *r = arg;
	struct schedule_times t = { clock_after_ms(r->config.interval_ms), WAIT_FOREVER, false };

	for (;;) {
		uint64_t until;
		bool over;

		pthread_mutex_lock(&r->lock);
		over = schedule_turn(r, &t);
		until = schedule_next_look_ns(r, t.room_ns);
		/* Who rings does so under the lock: no ring is lost between here and the wait. */
		event_init(&r->bell);
		pthread_mutex_unlock(&r->lock);
		if (over)
			break;
		(void)event_wait(&r->bell, until < t.give_up_ns ? until : t.give_up_ns);
	}
	loop_stop(r->loop);
}

enum status
schedule_begin(struct replicator *r, struct err *err)
{
	if (task_spawn(r->loop, schedule_fiber, r) != STATUS_OK ||
	    task_spawn(r->loop, docs_follow, r) != STATUS_OK ||
	    task_spawn(r->loop, verdicts_store, r) != STATUS_OK ||
	    (r->shared && task_spawn(r->loop, job_leases_renew, r) != STATUS_OK))
		return err_set(err, STATUS_NOMEM, "out of memory for the replicator");
	r->fibers = r->shared ? 3 : 2;
	return STATUS_OK;
}
