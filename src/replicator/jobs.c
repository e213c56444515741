/* The table of jobs, what each job remembers, and what the users of both share. */
#include <assert.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/hash.h"
#include "base/rand.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"
#include "replicator/job.h"

static struct job **
job_bucket(struct replicator *r, struct str full_id)
{
	return &r->jobs[hash_keyed(0, full_id) % JOB_BUCKETS];
}

struct job *
job_find(struct replicator *r, struct str full_id)
{
	struct job *j = *job_bucket(r, full_id);

	while (j && !str_eq(str_from_cstr(j->full_id), full_id))
		j = j->next;
	return j;
}

void
job_table_add(struct replicator *r, struct job *j)
{
	struct job **bucket = job_bucket(r, str_from_cstr(j->full_id));

	j->next = *bucket;
	*bucket = j;
	r->jobs_count++;
}

void
job_table_remove(struct replicator *r, struct job *j)
{
	struct job **at = job_bucket(r, str_from_cstr(j->full_id));

	while (*at != j) {
		assert(*at && "a job that is removed is in the table");
		at = &(*at)->next;
	}
	*at = j->next;
	assert(r->jobs_count > 0);
	r->jobs_count--;
}

struct job *
job_next(struct replicator *r, struct job *j)
{
	size_t bucket = 0;

	if (j && j->next)
		return j->next;
	if (j)
		bucket = hash_keyed(0, str_from_cstr(j->full_id)) % JOB_BUCKETS + 1;
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

struct job *
job_of_doc(struct replicator *r, struct str id)
{
	for (struct job *j = job_next(r, NULL); j; j = job_next(r, j))
		if (j->spec->doc_id.ptr && str_eq(j->spec->doc_id, id))
			return j;
	return NULL;
}

/* ---- What requests and fibers share ---- */

void
replicator_ring(struct replicator *r)
{
	event_set(&r->bell);
}

void
replicator_fiber_ended(struct replicator *r)
{
	pthread_mutex_lock(&r->lock);
	r->fibers--;
	replicator_ring(r);
	pthread_mutex_unlock(&r->lock);
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

enum status
job_join(struct replicator *r, struct repl_spec **spec, struct replicator_wait *w,
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
			return err_set(err, STATUS_BUSY, "there are %d replications",
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
	replicator_ring(r);
	return STATUS_OK;
}

/* ---- The store's own id ---- */

enum {
	STORE_ID_RECORD = 0, /* (ROOT, REPLICATOR, 0) = the id; catalog/lease.h has the others */
	STORE_ID_KEY_BYTES = 64,
};

/* Reads the id, or makes it when a replication first needs it. */
static enum status
store_id_body(struct kv_tx *tx, void *arg)
{
	uint8_t *id = arg;
	struct buf AUTO(buf_release) key = BUF_INIT(STORE_ID_KEY_BYTES);
	struct kv_future *f;
	struct str value;
	enum status status;

	tuple_put_u64(&key, KV_ROOT);
	tuple_put_u64(&key, KV_ROOT_REPLICATOR);
	tuple_put_u64(&key, STORE_ID_RECORD);
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
	struct buf AUTO(buf_release) text = BUF_INIT(2 * STORE_ID_BYTES);
	uint8_t id[STORE_ID_BYTES];
	bool known;

	pthread_mutex_lock(&r->lock);
	known = r->store_id[0] != '\0';
	pthread_mutex_unlock(&r->lock);
	if (known)
		return STATUS_OK;
	TRY(kv_run(r->config.store, store_id_body, id, NULL, err));
	buf_append_hex(&text, str_of(id, sizeof(id)));
	TRY(buf_status(&text));
	pthread_mutex_lock(&r->lock);
	memcpy(r->store_id, text.ptr, text.len);
	pthread_mutex_unlock(&r->lock);
	return STATUS_OK;
}
