#include "replicator/schedule.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "replicator/docs.h"
#include "replicator/lease.h"

uint64_t
schedule_backoff_ms(const struct replicator_config *config, unsigned crashes)
{
	unsigned doublings = crashes ? crashes - 1 : 0;

	if (doublings > REPLICATOR_BACKOFF_DOUBLINGS)
		doublings = REPLICATOR_BACKOFF_DOUBLINGS;
	return config->backoff_ms << doublings;
}

/* ---- Runs ---- */

/* What a run that has ended leaves for the scheduler. */
struct ended {
	enum job_event event;
	enum status status;
	struct err err;
	struct buf answer;
};

static void job_happens(struct job *j, enum job_event event, struct ended *how);

/* No further run can do better: what was asked for makes no sense. */
static bool
is_final(enum status status)
{
	return status == STATUS_UNSUPPORTED;
}

static void
run_job(void *arg)
{
	struct job *j = arg;
	struct replicator *r = j->replicator;
	struct ended how = { .event = JOB_ENDED };
	const struct run_config config = {
		.env = &r->env,
		.spawner = r->spawner,
		.spec = j->spec,
		.id = j->id,
		.scope = &j->scope,
		.progress = &j->progress,
	};

	buf_init(&how.answer, REPLICATOR_ANSWER_BYTES);
	log_event(LOG_LEVEL_INFO, "replication_started",
		  "id=%s source=\"%.*s\" target=\"%.*s\" continuous=%s", j->full_id,
		  STR_ARG(j->spec->source.name), STR_ARG(j->spec->target.name),
		  j->spec->continuous ? "true" : "false");
	how.status = run_replication(&config, &how.answer, &how.err);
	if (how.status == STATUS_CANCELLED)
		how.event = JOB_STOPPED;
	else if (how.status != STATUS_OK)
		how.event = is_final(how.status) ? JOB_REFUSED : JOB_CRASHED;
	pthread_mutex_lock(&r->lock);
	r->running--;
	job_happens(j, how.event, &how);
	replicator_ring(r);
	pthread_mutex_unlock(&r->lock);
	buf_release(&how.answer);
}

static void
tell_waits(struct replicator_wait **waits, enum status status, const struct err *err,
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

/* ---- What the table's actions are ---- */

static void
start(struct job *j)
{
	struct replicator *r = j->replicator;

	j->scope = (struct net_scope){ 0 };
	run_progress_fini(&j->progress);
	run_progress_init(&j->progress, &r->lock);
	j->progress.started_ms = j->progress.updated_ms = clock_wall_ms();
	j->started_ns = clock_mono_ns();
	if (spawn(r->spawner, run_job, j) != STATUS_OK) {
		/* Without memory now, perhaps with some later. */
		struct ended how = { .status = STATUS_NOMEM };

		(void)err_set(&how.err, STATUS_NOMEM, "out of memory for a replication");
		job_happens(j, JOB_CRASHED, &how);
		return;
	}
	r->running++;
	job_remember(j, JOB_PAST_STARTED, NULL);
}

static void
back_off(struct job *j, const struct ended *how)
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
	/* Who waits for an answer gets it; what is to run on has a document, or is continuous. */
	tell_waits(&j->waits, how->status, &how->err, STR(""));
}

static void
complete(struct job *j, const struct ended *how)
{
	log_event(LOG_LEVEL_INFO, "replication_completed",
		  "id=%s docs_read=%llu docs_written=%llu doc_write_failures=%llu", j->full_id,
		  (unsigned long long)j->progress.counts.docs_read,
		  (unsigned long long)j->progress.counts.docs_written,
		  (unsigned long long)j->progress.counts.write_failures);
	tell_waits(&j->waits, STATUS_OK, NULL, buf_str(&how->answer));
	if (j->spec->doc_id.ptr && !j->dropped)
		docs_tell(j->replicator, j, NULL);
}

static void
fail(struct job *j, const struct ended *how)
{
	log_event(LOG_LEVEL_WARN, "replication_failed", "id=%s reason=\"%s\"", j->full_id,
		  how->err.text);
	tell_waits(&j->waits, how->status, &how->err, STR(""));
	if (j->spec->doc_id.ptr && !j->dropped)
		docs_tell(j->replicator, j, how->err.text);
}

static void
remove_job(struct job *j)
{
	struct err err = { 0 };

	(void)err_set(&err, STATUS_CANCELLED, "the replication was cancelled");
	tell_waits(&j->waits, STATUS_CANCELLED, &err, STR(""));
	tell_waits(&j->leave_waits, STATUS_OK, NULL, STR(""));
}

static void
job_happens(struct job *j, enum job_event event, struct ended *how)
{
	struct job_step step = job_step(j->state, event);

	if (step.action == JOB_IMPOSSIBLE) {
		log_event(LOG_LEVEL_ERROR, "replication_confused", "id=%s state=%s event=%d",
			  j->full_id, job_state_name(j->state), (int)event);
		return;
	}
	j->state = step.next;
	switch (step.action) {
	case JOB_IMPOSSIBLE:
	case JOB_NOTHING:
		break;
	case JOB_START:
		start(j);
		break;
	case JOB_STOP:
		net_scope_cancel(&j->scope);
		break;
	case JOB_PUT_BACK:
		job_remember(j, JOB_PAST_STOPPED, NULL);
		break;
	case JOB_BACK_OFF:
		back_off(j, how);
		break;
	case JOB_COMPLETE:
		complete(j, how);
		break;
	case JOB_FAIL:
		fail(j, how);
		break;
	case JOB_REMOVE:
		remove_job(j);
		break;
	}
}

/* ---- Which runs when ---- */

/* A job that came by request, and not to stay, ends with its only run. */
static bool
is_over(const struct job *j)
{
	if (j->state == JOB_COMPLETED || j->state == JOB_FAILED)
		return true;
	return j->state == JOB_CRASHING && !j->spec->continuous && !j->spec->doc_id.ptr;
}

static bool
is_running(const struct job *j)
{
	return j->state == JOB_RUNNING || j->state == JOB_YIELDING || j->state == JOB_LEAVING;
}

static void
sweep(struct replicator *r)
{
	struct job *next;

	for (struct job *j = job_next(r, NULL); j; j = next) {
		next = job_next(r, j);
		if (j->state != JOB_GONE && j->state != JOB_LEAVING &&
		    (is_over(j) || j->leave_waits || j->dropped || r->stopping))
			job_happens(j, JOB_CANCEL, NULL);
		if (j->state == JOB_CRASHING && clock_mono_ns() >= j->rested_ns)
			job_happens(j, JOB_RESTED, NULL);
		if (j->state == JOB_GONE) {
			job_table_remove(r, j);
			if (!r->stopping)
				docs_succeed(r, j);
			event_set(&r->leases_bell);
			job_free(j);
		}
	}
}

static bool
may_run(const struct replicator *r, const struct job *j)
{
	return !r->shared || j->lease == JOB_LEASE_HELD;
}

/* Jobs that this process may no longer run, or cannot be sure that it may. */
static void
stop_unheld(struct replicator *r)
{
	bool unsure = clock_mono_ns() - r->beaten_ns > LEASE_GIVE_UP_MS * CLOCK_NS_PER_MS;

	for (struct job *j = job_next(r, NULL); j && r->shared; j = job_next(r, j)) {
		if (unsure)
			j->lease = JOB_LEASE_NONE;
		if (j->state == JOB_RUNNING && (unsure || j->lost))
			job_happens(j, JOB_MAKE_ROOM, NULL);
		j->lost = false;
		/* The sooner a new one is spoken for, the sooner it runs. */
		if (j->lease == JOB_LEASE_NONE && !unsure)
			event_set(&r->leases_bell);
	}
}

/* The one that has waited longest since it last ran. */
static struct job *
next_in_turn(struct replicator *r)
{
	struct job *best = NULL;

	for (struct job *j = job_next(r, NULL); j; j = job_next(r, j))
		if (j->state == JOB_PENDING && may_run(r, j) &&
		    (!best || j->started_ns < best->started_ns))
			best = j;
	return best;
}

static void
fill(struct replicator *r)
{
	struct job *j;

	while (!r->stopping && r->running < r->config.max_jobs && (j = next_in_turn(r)))
		job_happens(j, JOB_TURN, NULL);
}

/* Those that have run longest, and not just begun, make room for as many that wait. */
static void
make_room(struct replicator *r)
{
	uint64_t latest_ns = clock_mono_ns() - r->config.interval_ms * CLOCK_NS_PER_MS;
	unsigned waiting = 0;

	for (struct job *j = job_next(r, NULL); j; j = job_next(r, j))
		waiting += j->state == JOB_PENDING;
	for (unsigned i = 0; i < waiting && i < r->config.max_churn; i++) {
		struct job *oldest = NULL;

		for (struct job *j = job_next(r, NULL); j; j = job_next(r, j))
			if (j->state == JOB_RUNNING && j->spec->continuous &&
			    j->started_ns <= latest_ns &&
			    (!oldest || j->started_ns < oldest->started_ns))
				oldest = j;
		if (!oldest)
			return;
		job_happens(oldest, JOB_MAKE_ROOM, NULL);
	}
}

static uint64_t
next_look_ns(struct replicator *r, uint64_t room_ns)
{
	uint64_t next = room_ns;

	if (r->shared && clock_after_ms(LEASE_BEAT_MS) < next)
		next = clock_after_ms(LEASE_BEAT_MS);

	for (struct job *j = job_next(r, NULL); j; j = job_next(r, j))
		if (j->state == JOB_CRASHING && j->rested_ns < next)
			next = j->rested_ns;
	return next;
}

static bool
any_running(struct replicator *r)
{
	for (struct job *j = job_next(r, NULL); j; j = job_next(r, j))
		if (is_running(j))
			return true;
	return false;
}

/* The fiber that decides. */
static void
schedule(void *arg)
{
	struct replicator *r = arg;
	uint64_t room_ns = clock_after_ms(r->config.interval_ms);
	uint64_t give_up_ns = WAIT_FOREVER;

	for (;;) {
		uint64_t until;
		bool over;

		pthread_mutex_lock(&r->lock);
		if (r->stopping && give_up_ns == WAIT_FOREVER)
			give_up_ns = clock_after_ms(REPLICATOR_STOP_MS);
		sweep(r);
		stop_unheld(r);
		fill(r);
		if (clock_mono_ns() >= room_ns) {
			make_room(r);
			room_ns = clock_after_ms(r->config.interval_ms);
		}
		until = next_look_ns(r, room_ns);
		over = r->stopping && !any_running(r);
		if (over) {
			r->drained = true;
			event_set(&r->verdicts_bell);
			event_set(&r->leases_bell);
		}
		if (r->stopping)
			event_set(&r->docs_stop);
		over = over && r->fibers == 0;
		event_init(&r->bell);
		pthread_mutex_unlock(&r->lock);
		if (over)
			break;
		(void)event_wait(&r->bell, until < give_up_ns ? until : give_up_ns);
	}
	uv_stop(&r->loop.uv);
}

void
replicator_fiber_ended(struct replicator *r)
{
	pthread_mutex_lock(&r->lock);
	r->fibers--;
	replicator_ring(r);
	pthread_mutex_unlock(&r->lock);
}

enum status
schedule_begin(struct replicator *r, struct err *err)
{
	if (spawn(r->spawner, schedule, r) != STATUS_OK ||
	    spawn(r->spawner, docs_follow, r) != STATUS_OK ||
	    spawn(r->spawner, docs_write_verdicts, r) != STATUS_OK ||
	    (r->shared && spawn(r->spawner, leases_keep, r) != STATUS_OK))
		return err_set(err, STATUS_NOMEM, "out of memory for the replicator");
	r->fibers = r->shared ? 3 : 2;
	return STATUS_OK;
}
