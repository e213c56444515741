#include "replicator/job.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"
#include "replicator/lease.h"
#include "replicator/schedule.h"
#include "server/pool.h"

enum {
	KEY_BYTES = 64,
	STORE_ID_BYTES = 16,
	LOOP_REQUEST_BYTES = 1 << 20, /* of a fiber's own arena, which jobs do not use */
};

/* ---- The store's own id ---- */

/* (ROOT, REPLICATOR, 0) = the id, made when a replication first needs it. */
static enum status
read_store_id(struct kv_tx *tx, void *arg)
{
	uint8_t *id = arg;
	struct buf AUTO(buf_release) key = BUF_INIT(KEY_BYTES);
	struct kv_future *f;
	struct str value;
	enum status status;

	tuple_put_u64(&key, KV_ROOT);
	tuple_put_u64(&key, KV_ROOT_REPLICATOR);
	tuple_put_u64(&key, 0);
	TRY(buf_status(&key));
	f = kv_get(tx, buf_str(&key), KV_READ);
	status = kv_future_wait(f);
	if (status == STATUS_OK && kv_future_value(f, &value)) {
		if (value.len == STORE_ID_BYTES)
			memcpy(id, value.ptr, STORE_ID_BYTES);
		else
			status = STATUS_CORRUPT;
	} else if (status == STATUS_OK) {
		rand_bytes(id, STORE_ID_BYTES);
		status = kv_set(tx, buf_str(&key), str_of(id, STORE_ID_BYTES));
	}
	kv_future_free(f);
	return status;
}

enum status
replicator_ensure_store_id(struct replicator *r, struct err *err)
{
	struct buf AUTO(buf_release) text = BUF_INIT(KEY_BYTES);
	uint8_t id[STORE_ID_BYTES];
	bool known;

	pthread_mutex_lock(&r->lock);
	known = r->store_id[0] != '\0';
	pthread_mutex_unlock(&r->lock);
	if (known)
		return STATUS_OK;
	TRY(kv_run(r->config.store, read_store_id, id, NULL, err));
	buf_append_hex(&text, str_of(id, sizeof(id)));
	TRY(buf_status(&text));
	pthread_mutex_lock(&r->lock);
	memcpy(r->store_id, text.ptr, text.len);
	pthread_mutex_unlock(&r->lock);
	return STATUS_OK;
}

/* ---- Jobs ---- */

static struct job **
bucket_of(struct replicator *r, struct str full_id)
{
	return &r->jobs[str_hash(full_id) % JOB_BUCKETS];
}

struct job *
job_find(struct replicator *r, struct str full_id)
{
	struct job *j = *bucket_of(r, full_id);

	while (j && !str_eq(str_from_cstr(j->full_id), full_id))
		j = j->next;
	return j;
}

void
job_table_add(struct replicator *r, struct job *j)
{
	struct job **bucket = bucket_of(r, str_from_cstr(j->full_id));

	j->next = *bucket;
	*bucket = j;
	r->jobs_count++;
}

void
job_table_remove(struct replicator *r, struct job *j)
{
	struct job **at = bucket_of(r, str_from_cstr(j->full_id));

	while (*at != j)
		at = &(*at)->next;
	*at = j->next;
	r->jobs_count--;
}

struct job *
job_next(struct replicator *r, struct job *j)
{
	size_t bucket = 0;

	if (j && j->next)
		return j->next;
	if (j)
		bucket = str_hash(str_from_cstr(j->full_id)) % JOB_BUCKETS + 1;
	while (bucket < JOB_BUCKETS && !r->jobs[bucket])
		bucket++;
	return bucket < JOB_BUCKETS ? r->jobs[bucket] : NULL;
}

struct job *
job_new(struct replicator *r, struct repl_spec *spec)
{
	struct job *j = mem_zalloc(sizeof(*j));

	if (!j)
		return NULL;
	j->replicator = r;
	j->spec = spec;
	j->added_ms = clock_wall_ms();
	repl_spec_id(spec, str_from_cstr(r->store_id), j->id, j->full_id);
	run_progress_init(&j->progress, &r->lock);
	job_remember(j, JOB_PAST_ADDED, NULL);
	return j;
}

void
job_free(struct job *j)
{
	for (unsigned i = 0; i < j->past_count; i++)
		mem_free(j->past[i].reason);
	run_progress_fini(&j->progress);
	mem_free(j->doc_rev);
	mem_free(j->successor_rev);
	repl_spec_free(j->successor);
	repl_spec_free(j->spec);
	mem_free(j);
}

void
job_remember(struct job *j, enum job_past what, const char *reason)
{
	unsigned most = j->replicator->config.max_history;

	if (most > REPLICATOR_HISTORY_MAX)
		most = REPLICATOR_HISTORY_MAX;
	if (j->past_count >= most)
		mem_free(j->past[--j->past_count].reason);
	memmove(&j->past[1], &j->past[0], j->past_count * sizeof(j->past[0]));
	j->past[0] = (struct job_moment){
		.what = what,
		.at_ms = clock_wall_ms(),
		.reason = reason ? mem_strdup(str_from_cstr(reason)) : NULL,
	};
	j->past_count++;
}

/* ---- Who waits ---- */

static struct replicator_wait *
wait_new(void)
{
	struct replicator_wait *w = mem_zalloc(sizeof(*w));

	if (!w)
		return NULL;
	event_init(&w->done);
	buf_init(&w->answer, REPLICATOR_ANSWER_BYTES);
	atomic_init(&w->refs, 2); /* the request's, and the job's */
	return w;
}

void
replicator_wait_unref(struct replicator_wait *w)
{
	if (!w || atomic_fetch_sub(&w->refs, 1) != 1)
		return;
	buf_release(&w->answer);
	mem_free(w);
}

void
replicator_wait_end(struct replicator_wait *w, enum status status, const struct err *err,
		    struct str answer)
{
	w->status = status;
	if (err)
		w->err = *err;
	buf_append_str(&w->answer, answer);
	if (status == STATUS_OK)
		w->status = buf_status(&w->answer);
	event_set(&w->done);
	replicator_wait_unref(w);
}

/* ---- Requests ---- */

void
replicator_ring(struct replicator *r)
{
	event_set(&r->bell);
}

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

/* Under the lock. */
static enum status
add_locked(struct replicator *r, struct repl_spec **spec, struct replicator_wait *w,
	   char ret_id[SPEC_FULL_ID_BYTES], struct err *err)
{
	char id[SPEC_ID_BYTES + 1];
	struct job *j;

	if (r->stopping || !r->started)
		return err_set(err, STATUS_UNAVAILABLE, "the replicator is not running");
	repl_spec_id(*spec, str_from_cstr(r->store_id), id, ret_id);
	j = job_find(r, str_from_cstr(ret_id));
	if (!j) {
		if (r->jobs_count >= REPLICATOR_JOBS_MAX)
			return err_set(err, STATUS_LIMIT, "there are %d replications",
				       REPLICATOR_JOBS_MAX);
		j = job_new(r, *spec);
		if (!j)
			return err_set(err, STATUS_NOMEM, "out of memory for a replication");
		*spec = NULL;
		job_table_add(r, j);
	}
	if (j->spec->continuous) {
		replicator_wait_end(w, STATUS_OK, NULL, STR(""));
	} else {
		w->next = j->waits;
		j->waits = w;
	}
	return STATUS_OK;
}

enum status
replicator_add(struct replicator *r, struct repl_spec *spec, char ret_id[SPEC_FULL_ID_BYTES],
	       struct replicator_wait **ret, struct err *err)
{
	struct replicator_wait *w = NULL;
	enum status status = replicator_ensure_store_id(r, err);

	if (status == STATUS_OK) {
		w = wait_new();
		status = w ? STATUS_OK : err_set(err, STATUS_NOMEM, "out of memory");
	}
	if (status == STATUS_OK) {
		pthread_mutex_lock(&r->lock);
		status = add_locked(r, &spec, w, ret_id, err);
		if (status == STATUS_OK)
			replicator_ring(r);
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
	struct replicator_wait *w = wait_new();
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
	/* Another process may run it. */
	if (status == STATUS_NOT_FOUND && any && lease_cancel(r, id, err) == STATUS_OK) {
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

/* ---- The thread ---- */

static void *
run_thread(void *arg)
{
	struct replicator *r = arg;

	loop_run(&r->loop);
	return NULL;
}

enum status
replicator_new(const struct replicator_config *config, struct replicator **ret, struct err *err)
{
	struct replicator *r = mem_zalloc(sizeof(*r));
	enum status status;

	if (!r)
		return err_set(err, STATUS_NOMEM, "out of memory for the replicator");
	r->config = *config;
	r->loop_config.request_bytes = LOOP_REQUEST_BYTES;
	pthread_mutex_init(&r->lock, NULL);
	event_init(&r->bell);
	event_init(&r->verdicts_bell);
	event_init(&r->docs_stop);
	event_init(&r->leases_bell);
	r->shared = kv_is_shared(config->store);
	rand_bytes(r->process, sizeof(r->process));
	r->beaten_ns = clock_mono_ns();
	status = loop_init(&r->loop, NULL, &r->loop_config, err);
	if (status == STATUS_OK)
		status = pool_new(SERVER_POOL_THREADS, &r->loop.pool, err);
	if (status == STATUS_OK)
		status = net_new(&r->loop, &r->config.net, &r->net, err);
	if (status == STATUS_OK)
		status = spawner_new(&r->loop, &r->spawner, err);
	if (status != STATUS_OK) {
		replicator_free(r);
		return status;
	}
	*ret = r;
	return STATUS_OK;
}

enum status
replicator_start(struct replicator *r, const char *self, replicator_cookie *cookie, void *arg,
		 struct err *err)
{
	r->self = mem_strdup(str_from_cstr(self));
	if (!r->self)
		return err_set(err, STATUS_NOMEM, "out of memory for the replicator");
	r->config.defaults.self = r->self;
	r->env = (struct peer_env){
		.net = r->net,
		.cookie = cookie,
		.cookie_arg = arg,
		.self = r->self,
		.http_allowed = r->config.http_allowed,
		.https_allowed = r->config.https_allowed,
	};
	TRY(schedule_begin(r, err));
	r->started = true;
	if (pthread_create(&r->thread, NULL, run_thread, r) != 0) {
		r->started = false;
		return err_set(err, STATUS_LIMIT, "cannot start a thread");
	}
	return STATUS_OK;
}

void
replicator_stop(struct replicator *r)
{
	if (!r || !r->started)
		return;
	pthread_mutex_lock(&r->lock);
	r->stopping = true;
	replicator_ring(r);
	pthread_mutex_unlock(&r->lock);
	pthread_join(r->thread, NULL);
	r->started = false;
}

void
replicator_free(struct replicator *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < JOB_BUCKETS; i++) {
		while (r->jobs[i]) {
			struct job *j = r->jobs[i];

			r->jobs[i] = j->next;
			job_free(j);
		}
	}
	spawner_free(r->spawner);
	net_free(r->net);
	pool_free(r->loop.pool);
	loop_fini(&r->loop);
	pthread_mutex_destroy(&r->lock);
	mem_free(r->self);
	mem_free(r);
}
