/* Leases of jobs: a fiber asks for them, and jobs learn which of them this process holds. */
#include "replicator/job_lease.h"

#include "base/clock.h"
#include "base/log.h"

/* ---- Asking for leases ---- */

/* Keeps a text for the lease. One that is too long is left out. */
static struct str
job_lease_keep_text(struct arena *arena, struct buf *text)
{
	struct str kept = { "", 0 };

	if (buf_status(text) == STATUS_OK && text->len)
		kept = buf_dup(text, arena);
	buf_clear(text);
	return kept.ptr ? kept : STR("");
}

/* Takes or renews the lease of a job, with what it says of the job. Under the lock. */
static enum status
job_lease_hold(struct lease_exchange *x, struct lease_entry *e, const struct job *j)
{
	struct buf AUTO(buf_release) text = BUF_INIT(JOB_LEASE_TEXT_BYTES);
	struct arena *arena = lease_arena(x);
	struct arena_mark mark = arena_mark(arena);
	bool has_doc = j->spec->doc_id.ptr != NULL;
	struct str texts[JOB_LEASE_TEXTS];
	enum status status;

	texts[JOB_LEASE_DOC_ID] = has_doc ? j->spec->doc_id : STR("");
	job_write(j, &text);
	texts[JOB_LEASE_JOB] = job_lease_keep_text(arena, &text);
	if (j->state == JOB_RUNNING || j->state == JOB_YIELDING)
		job_write_task(j, &text);
	texts[JOB_LEASE_TASK] = job_lease_keep_text(arena, &text);
	if (has_doc)
		job_write_doc(j, &text);
	texts[JOB_LEASE_DOC] = job_lease_keep_text(arena, &text);
	status = lease_hold(x, str_from_cstr(j->full_id), e, texts);
	arena_reset(arena, mark);
	return status;
}

/* True if this process holds the job's lease or may take it. */
static bool
job_lease_may_hold(struct lease_exchange *x, const struct lease_entry *e, const struct job *j)
{
	/* A lease that was held and is gone: another process has cancelled the job. */
	if (!e && j->lease == JOB_LEASE_HELD && !j->spec->doc_id.ptr)
		return false;
	return lease_is_free(x, e);
}

static enum status
job_leases_ask(struct lease_exchange *x, void *replicator)
{
	struct replicator *r = replicator;
	enum status status = STATUS_OK;

	pthread_mutex_lock(&r->lock);
	for (struct job *j = job_next(r, NULL); j && status == STATUS_OK; j = job_next(r, j)) {
		struct lease_entry *e = lease_find(x, str_from_cstr(j->full_id));

		j->lease_next = job_lease_may_hold(x, e, j) ? JOB_LEASE_HELD : JOB_LEASE_ELSEWHERE;
		if (j->lease_next != JOB_LEASE_HELD)
			continue;
		/* The table still has the job: its lease goes when the job has left it. */
		if (j->state != JOB_GONE)
			status = job_lease_hold(x, e, j);
		else if (e)
			e->kept = true;
	}
	pthread_mutex_unlock(&r->lock);
	return status;
}

/* ---- What came of it ---- */

static const struct lease_entry *
job_lease_known(struct replicator *r, struct str job)
{
	size_t count;
	const struct lease_entry *known = leases_known(r->leases, &count);

	for (size_t i = 0; i < count; i++)
		if (str_eq(known[i].name, job))
			return &known[i];
	return NULL;
}

/* Under the lock, after the commit. */
static void
job_leases_adopt(struct replicator *r)
{
	leases_adopt(r->leases);
	for (struct job *j = job_next(r, NULL); j; j = job_next(r, j)) {
		if (j->lease == JOB_LEASE_HELD && j->lease_next == JOB_LEASE_ELSEWHERE) {
			if (job_lease_known(r, str_from_cstr(j->full_id)))
				j->lost = true;
			else
				j->dropped = true;
		}
		if (j->lease_next != JOB_LEASE_NONE)
			j->lease = j->lease_next;
		j->lease_next = JOB_LEASE_NONE;
	}
	replicator_ring(r);
}

static void
job_leases_exchange(struct replicator *r, bool leave)
{
	struct err err = { 0 };
	enum status status = leases_exchange(r->leases, leave, &err);

	if (status != STATUS_OK) {
		log_event(LOG_LEVEL_WARN, "replicator_leases", "status=%s reason=\"%s\"",
			  status_name(status), err.text);
		return;
	}
	pthread_mutex_lock(&r->lock);
	job_leases_adopt(r);
	pthread_mutex_unlock(&r->lock);
}

/* ---- Life ---- */

enum status
job_leases_init(struct replicator *r, struct err *err)
{
	struct leases *leases = leases_new(&(struct leases_config){
		.store = r->config.store,
		.space = LEASE_JOBS,
		.texts = JOB_LEASE_TEXTS,
		.known_bytes = JOB_LEASES_KNOWN_BYTES,
		.ask = job_leases_ask,
		.arg = r,
	});

	if (!leases)
		return err_set(err, STATUS_NOMEM, "out of memory for leases");
	/* Doors may list jobs already. */
	pthread_mutex_lock(&r->lock);
	r->leases = leases;
	pthread_mutex_unlock(&r->lock);
	return STATUS_OK;
}

void
job_leases_renew(void *replicator)
{
	struct replicator *r = replicator;
	bool over = false;

	while (!over) {
		job_leases_exchange(r, false);
		(void)event_wait(&r->leases_bell, clock_after_ms(leases_beat_ms()));
		pthread_mutex_lock(&r->lock);
		event_init(&r->leases_bell);
		over = r->stopping && r->drained;
		pthread_mutex_unlock(&r->lock);
	}
	job_leases_exchange(r, true);
	pthread_mutex_lock(&r->lock);
	leases_forget(r->leases);
	pthread_mutex_unlock(&r->lock);
	replicator_fiber_ended(r);
}

/* ---- Jobs of others ---- */

const struct lease_entry *
job_lease_elsewhere(struct replicator *r, struct str job)
{
	const struct lease_entry *e = job_lease_known(r, job);

	return e && !e->mine ? e : NULL;
}

const struct lease_entry *
job_lease_elsewhere_doc(struct replicator *r, struct str doc_id)
{
	size_t count;
	const struct lease_entry *known = leases_known(r->leases, &count);

	for (size_t i = 0; i < count; i++)
		if (!known[i].mine && doc_id.len &&
		    str_eq(known[i].record.texts[JOB_LEASE_DOC_ID], doc_id))
			return &known[i];
	return NULL;
}

enum status
job_lease_cancel(struct replicator *r, struct str job, struct err *err)
{
	return r->shared ? lease_clear(r->config.store, LEASE_JOBS, job, err) : STATUS_NOT_FOUND;
}
