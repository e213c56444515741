/* The replicator as the doors see it: requests for jobs. */
#include <assert.h>

#include "base/mem.h"
#include "base/metric.h"
#include "replicator/job.h"
#include "replicator/job_lease.h"
#include "replicator/looks.h"
#include "replicator/schedule.h"

/* ---- Requests that wait for a job ---- */

static struct replicator_wait *
replicator_wait_new(void)
{
	struct replicator_wait *w = mem_zalloc(sizeof(*w));

	if (!w)
		return NULL;
	event_init(&w->done);
	buf_init(&w->answer, REPLICATOR_ANSWER_BYTES);
	atomic_init(&w->refs, 2); /* the request's, and the job's */
	return w;
}

/* ---- Requests ---- */

const struct repl_defaults *
replicator_defaults(const struct replicator *r)
{
	return &r->config.defaults;
}

enum status
replicator_id(struct replicator *r, const struct repl_spec *spec, char ret[SPEC_FULL_ID_BYTES],
	      struct err *err)
{
	char id[SPEC_ID_BYTES + 1];

	TRY(replicator_ensure_store_id(r, err));
	repl_spec_id(spec, str_from_cstr(r->store_id), id, ret);
	return STATUS_OK;
}

enum status
replicator_add(struct replicator *r, struct repl_spec *spec, char ret_id[SPEC_FULL_ID_BYTES],
	       struct replicator_wait **ret, struct err *err)
{
	struct replicator_wait *w = NULL;
	enum status status = replicator_ensure_store_id(r, err);

	if (status == STATUS_OK) {
		w = replicator_wait_new();
		status = w ? STATUS_OK : err_set(err, STATUS_NOMEM, "out of memory");
	}
	if (status == STATUS_OK) {
		pthread_mutex_lock(&r->lock);
		if (look_is_needed(r, spec, ret_id))
			status = look_add(r, &spec, w, err);
		else
			status = job_join(r, &spec, w, ret_id, err);
		pthread_mutex_unlock(&r->lock);
	}
	repl_spec_free(spec);
	if (status != STATUS_OK && w) {
		replicator_wait_unref(w);
		replicator_wait_unref(w);
		return status;
	}
	*ret = w;
	return status;
}

enum status
replicator_cancel(struct replicator *r, struct str id, struct str user, bool any,
		  struct replicator_wait **ret, struct err *err)
{
	struct replicator_wait *w = replicator_wait_new();
	enum status status = STATUS_OK;
	struct job *j;

	if (!w)
		return err_set(err, STATUS_NOMEM, "out of memory");
	pthread_mutex_lock(&r->lock);
	j = job_find(r, id);
	if (!j)
		status = err_set(err, STATUS_NOT_FOUND, "not found");
	else if (!any && !str_eq(j->spec->owner, user))
		status = err_set(err, STATUS_UNAUTHORIZED, "You are not a server admin.");
	if (status == STATUS_OK) {
		w->next = j->leave_waits;
		j->leave_waits = w;
		replicator_ring(r);
	}
	pthread_mutex_unlock(&r->lock);
	/* The job may be another process's: clearing its lease stops it there. */
	if (status == STATUS_NOT_FOUND && any && job_lease_cancel(r, id, err) == STATUS_OK) {
		replicator_wait_end(w, STATUS_OK, NULL, STR(""));
		*ret = w;
		return STATUS_OK;
	}
	if (status != STATUS_OK) {
		replicator_wait_unref(w);
		replicator_wait_unref(w);
		return status;
	}
	*ret = w;
	return STATUS_OK;
}

/* ---- What metrics tell ---- */

enum {
	METRIC_JOBS = 5,
};

static const char *const job_states[METRIC_JOBS] = { "pending", "running", "crashing", "completed",
						     "failed" };

METRIC_COLLECTED_BY(jobs_by_state, METRIC_KIND_GAUGE, "frond_replication_jobs", METRIC_NUMBER,
		    "Replications that this process knows, by state.", "state", job_states);

/* On a thread that asks for metrics. */
static void
replicator_collect(void *arg)
{
	struct replicator *r = arg;
	size_t counts[METRIC_JOBS] = { 0 };

	pthread_mutex_lock(&r->lock);
	for (struct job *j = job_next(r, NULL); j; j = job_next(r, j))
		for (size_t i = 0; i < METRIC_JOBS; i++)
			counts[i] += strcmp(job_state_name(j->state), job_states[i]) == 0;
	pthread_mutex_unlock(&r->lock);
	for (size_t i = 0; i < METRIC_JOBS; i++)
		metric_report(&jobs_by_state, i, counts[i]);
}

/* ---- Life ---- */

void
replicator_init(struct replicator *r, const struct replicator_config *config, struct loop *loop,
		job_run_fn *run)
{
	*r = (struct replicator){ .config = *config, .loop = loop, .run = run };
	pthread_mutex_init(&r->lock, NULL);
	event_init(&r->bell);
	event_init(&r->verdicts_bell);
	event_init(&r->docs_stop);
	event_init(&r->leases_bell);
	r->shared = kv_is_shared(config->store);
	r->collector = (struct metric_collector){ .collect = replicator_collect, .arg = r };
	metric_collector_add(&r->collector);
}

void
replicator_fini(struct replicator *r)
{
	struct job *j;

	assert(r->running == 0 && r->fibers == 0);
	metric_collector_remove(&r->collector);
	while ((j = job_next(r, NULL))) {
		job_table_remove(r, j);
		job_free(j);
	}
	leases_free(r->leases);
	pthread_mutex_destroy(&r->lock);
}

enum status
replicator_begin(struct replicator *r, const struct peer_env *env, struct err *err)
{
	r->env = *env;
	r->config.defaults.self = env->self;
	if (r->shared)
		TRY(job_leases_init(r, err));
	TRY(schedule_begin(r, err));
	r->started = true;
	return STATUS_OK;
}

void
replicator_end(struct replicator *r)
{
	pthread_mutex_lock(&r->lock);
	r->stopping = true;
	replicator_ring(r);
	pthread_mutex_unlock(&r->lock);
}
