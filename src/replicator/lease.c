#include "replicator/lease.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"

enum {
	SPACE_BEATS = 1,
	SPACE_LEASES = 2,
	KEY_BYTES = 1024,
	VALUE_BYTES = KV_LIMIT_VALUE_BYTES,
};

/* Of another process: when its beat was last seen to change. */
struct beat {
	struct beat *next;
	uint8_t process[LEASE_PROCESS_BYTES];
	uint64_t count;
	uint64_t seen_ns;
	bool there; /* in the last look */
};

/* One look at the store, and what was written in it. */
struct look {
	struct replicator *r;
	struct arena *arena; /* of the entries */
	struct lease_entry *entries;
	size_t count;
	size_t cap;
	bool leave; /* give everything back */
};

static void
put_key(struct buf *key, unsigned space, struct str name)
{
	buf_clear(key);
	tuple_put_u64(key, KV_ROOT);
	tuple_put_u64(key, KV_ROOT_REPLICATOR);
	tuple_put_u64(key, space);
	if (name.ptr)
		tuple_put_bytes(key, name);
}

static struct str
self(const struct replicator *r)
{
	return str_of(r->process, LEASE_PROCESS_BYTES);
}

/* ---- Who is alive ---- */

static struct beat *
find_beat(struct replicator *r, struct str process)
{
	struct beat *b = r->beats;

	while (b && memcmp(b->process, process.ptr, LEASE_PROCESS_BYTES) != 0)
		b = b->next;
	return b;
}

static bool
is_dead(struct replicator *r, struct str process)
{
	struct beat *b = find_beat(r, process);

	return !b || clock_mono_ns() - b->seen_ns > LEASE_MS * CLOCK_NS_PER_MS;
}

static enum status
see_beat(struct replicator *r, struct str process, uint64_t count)
{
	struct beat *b = find_beat(r, process);

	if (!b) {
		b = mem_zalloc(sizeof(*b));
		if (!b)
			return STATUS_NOMEM;
		memcpy(b->process, process.ptr, LEASE_PROCESS_BYTES);
		b->next = r->beats;
		r->beats = b;
		b->count = count + 1;
	}
	b->there = true;
	if (b->count != count) {
		b->count = count;
		b->seen_ns = clock_mono_ns();
	}
	return STATUS_OK;
}

/* Those that were not there in the last look are dead for certain. */
static void
forget_beats(struct replicator *r, bool all)
{
	struct beat **at = &r->beats;

	while (*at) {
		struct beat *b = *at;

		if (b->there && !all) {
			at = &b->next;
			continue;
		}
		*at = b->next;
		mem_free(b);
	}
}

static enum status
read_beats(struct kv_tx *tx, struct replicator *r)
{
	struct buf AUTO(buf_release) key = BUF_INIT(KEY_BYTES);
	struct buf AUTO(buf_release) end = BUF_INIT(KEY_BYTES);
	struct kv_scan scan;
	struct kv_pair pair;
	enum status status;

	put_key(&key, SPACE_BEATS, (struct str){ NULL, 0 });
	TRY(buf_status(&key));
	TRY(tuple_prefix_end(buf_str(&key), &end));
	for (struct beat *b = r->beats; b; b = b->next)
		b->there = false;
	TRY(kv_scan_init(&scan, tx, buf_str(&key), buf_str(&end), NULL));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		struct tuple_reader name = tuple_reader(str_skip(pair.key, key.len));
		struct tuple_reader value = tuple_reader(pair.value);
		struct buf AUTO(buf_release) scratch = BUF_INIT(KEY_BYTES);
		struct str process;
		uint64_t count;

		if (tuple_next_bytes(&name, &scratch, &process) != STATUS_OK ||
		    process.len != LEASE_PROCESS_BYTES ||
		    tuple_next_u64(&value, &count) != STATUS_OK)
			continue;
		status = see_beat(r, process, count);
		if (status != STATUS_OK)
			break;
	}
	kv_scan_release(&scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- Leases ---- */

static enum status
take_lease(struct look *l, struct str name, struct str value)
{
	struct tuple_reader r = tuple_reader(value);
	struct buf AUTO(buf_release) scratch = BUF_INIT(2 * VALUE_BYTES);
	struct lease_entry *e;
	struct str parts[5];
	void *grown;

	for (size_t i = 0; i < 5; i++) {
		buf_clear(&scratch);
		TRY(tuple_next_bytes(&r, &scratch, &parts[i]));
		parts[i] = arena_dup(l->arena, parts[i]);
		if (!parts[i].ptr)
			return STATUS_LIMIT;
	}
	if (parts[0].len != LEASE_PROCESS_BYTES)
		return STATUS_CORRUPT;
	grown = arena_grow(l->arena, l->entries, l->count, &l->cap, sizeof(*l->entries));
	if (!grown)
		return STATUS_LIMIT;
	l->entries = grown;
	e = &l->entries[l->count];
	*e = (struct lease_entry){
		.job = arena_dup(l->arena, name),
		.doc_id = parts[1],
		.holder = parts[0],
		.mine = str_eq(parts[0], self(l->r)),
		.texts = { parts[2], parts[3], parts[4] },
	};
	if (!e->job.ptr)
		return STATUS_LIMIT;
	l->count++;
	return STATUS_OK;
}

static enum status
read_leases(struct kv_tx *tx, struct look *l)
{
	struct buf AUTO(buf_release) key = BUF_INIT(KEY_BYTES);
	struct buf AUTO(buf_release) end = BUF_INIT(KEY_BYTES);
	struct kv_scan scan;
	struct kv_pair pair;
	enum status status;

	put_key(&key, SPACE_LEASES, (struct str){ NULL, 0 });
	TRY(buf_status(&key));
	TRY(tuple_prefix_end(buf_str(&key), &end));
	TRY(kv_scan_init(&scan, tx, buf_str(&key), buf_str(&end), NULL));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		struct tuple_reader name = tuple_reader(str_skip(pair.key, key.len));
		struct buf AUTO(buf_release) scratch = BUF_INIT(KEY_BYTES);
		struct str job;

		if (tuple_next_bytes(&name, &scratch, &job) != STATUS_OK)
			continue;
		status = take_lease(l, job, pair.value);
		if (status != STATUS_OK && status != STATUS_CORRUPT)
			break;
	}
	kv_scan_release(&scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static void
put_text(struct buf *value, struct buf *text)
{
	if (buf_status(text) != STATUS_OK)
		buf_clear(text);
	tuple_put_bytes(value, buf_str(text));
	buf_clear(text);
}

/* What a lease says of a job; under the lock. */
static enum status
describe(struct replicator *r, const struct job *j, struct buf *value)
{
	struct buf AUTO(buf_release) text = BUF_INIT(LEASE_TEXT_BYTES);

	buf_clear(value);
	tuple_put_bytes(value, self(r));
	tuple_put_bytes(value, j->spec->doc_id.ptr ? j->spec->doc_id : STR(""));
	job_write(j, &text);
	put_text(value, &text);
	if (j->state == JOB_RUNNING || j->state == JOB_YIELDING)
		job_write_task(j, &text);
	put_text(value, &text);
	if (j->spec->doc_id.ptr)
		job_write_doc(j, &text);
	put_text(value, &text);
	return buf_status(value);
}

static const struct lease_entry *
find_entry(const struct lease_entry *entries, size_t count, struct str job)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq(entries[i].job, job))
			return &entries[i];
	return NULL;
}

/* Whether this process has, or may take, the job's lease. */
static bool
may_hold(struct look *l, const struct job *j)
{
	const struct lease_entry *e = find_entry(l->entries, l->count, str_from_cstr(j->full_id));

	if (!e)
		/* Gone although it was held: it was cancelled elsewhere. */
		return j->lease != JOB_LEASE_HELD || j->spec->doc_id.ptr;
	return e->mine || is_dead(l->r, e->holder);
}

/* Under the lock: writes the leases of the jobs of this process. */
static enum status
write_leases(struct kv_tx *tx, struct look *l)
{
	struct replicator *r = l->r;
	struct buf AUTO(buf_release) key = BUF_INIT(KEY_BYTES);
	struct buf AUTO(buf_release) value = BUF_INIT(VALUE_BYTES);

	for (struct job *j = job_next(r, NULL); j && !l->leave; j = job_next(r, j)) {
		j->lease_next = may_hold(l, j) ? JOB_LEASE_HELD : JOB_LEASE_ELSEWHERE;
		if (j->lease_next != JOB_LEASE_HELD || j->state == JOB_GONE)
			continue;
		put_key(&key, SPACE_LEASES, str_from_cstr(j->full_id));
		TRY(buf_status(&key));
		TRY(describe(r, j, &value));
		TRY(kv_set(tx, buf_str(&key), buf_str(&value)));
	}
	return STATUS_OK;
}

/* Leases of this process without a job. */
static enum status
clear_leases(struct kv_tx *tx, struct look *l)
{
	struct buf AUTO(buf_release) key = BUF_INIT(KEY_BYTES);

	for (size_t i = 0; i < l->count; i++) {
		const struct lease_entry *e = &l->entries[i];

		if (!e->mine || (!l->leave && job_find(l->r, e->job)))
			continue;
		put_key(&key, SPACE_LEASES, e->job);
		TRY(buf_status(&key));
		TRY(kv_clear(tx, buf_str(&key)));
	}
	return STATUS_OK;
}

static enum status
look_body(struct kv_tx *tx, void *arg)
{
	struct look *l = arg;
	struct replicator *r = l->r;
	struct buf AUTO(buf_release) key = BUF_INIT(KEY_BYTES);
	struct buf AUTO(buf_release) value = BUF_INIT(64);
	enum status status;

	arena_clear(l->arena);
	l->entries = NULL;
	l->count = l->cap = 0;
	TRY(read_beats(tx, r));
	TRY(read_leases(tx, l));
	put_key(&key, SPACE_BEATS, self(r));
	tuple_put_u64(&value, ++r->beat_count);
	TRY(buf_status(&key));
	TRY(buf_status(&value));
	TRY(l->leave ? kv_clear(tx, buf_str(&key)) : kv_set(tx, buf_str(&key), buf_str(&value)));
	/* Nothing waits for the store here: the writes are buffered until the commit. */
	pthread_mutex_lock(&r->lock);
	status = write_leases(tx, l);
	if (status == STATUS_OK)
		status = clear_leases(tx, l);
	pthread_mutex_unlock(&r->lock);
	return status;
}

/* Under the lock, after the commit. */
static void
adopt(struct replicator *r, struct look *l)
{
	struct arena *old = r->leases_arena;

	for (struct job *j = job_next(r, NULL); j; j = job_next(r, j)) {
		if (j->lease == JOB_LEASE_HELD && j->lease_next == JOB_LEASE_ELSEWHERE) {
			const struct lease_entry *e = find_entry(l->entries, l->count,
								 str_from_cstr(j->full_id));

			if (e)
				j->lost = true;
			else
				j->dropped = true;
		}
		if (j->lease_next != JOB_LEASE_NONE)
			j->lease = j->lease_next;
		j->lease_next = JOB_LEASE_NONE;
	}
	r->leases = l->entries;
	r->leases_count = l->count;
	r->leases_arena = l->arena;
	l->arena = old;
	r->beaten_ns = clock_mono_ns();
	forget_beats(r, false);
	replicator_ring(r);
}

static void
look(struct replicator *r, struct look *l, bool leave)
{
	struct err err = { 0 };
	enum status status;

	l->leave = leave;
	status = kv_run(r->config.store, look_body, l, NULL, &err);
	if (status != STATUS_OK) {
		log_event(LOG_LEVEL_WARN, "replicator_leases", "status=%s reason=\"%s\"",
			  status_name(status), err.text);
		return;
	}
	pthread_mutex_lock(&r->lock);
	adopt(r, l);
	pthread_mutex_unlock(&r->lock);
}

void
leases_keep(void *replicator)
{
	struct replicator *r = replicator;
	struct look l = { .r = r, .arena = arena_new(LEASE_KNOWN_BYTES) };
	bool over = false;

	r->leases_arena = arena_new(LEASE_KNOWN_BYTES);
	while (l.arena && r->leases_arena && !over) {
		look(r, &l, false);
		(void)event_wait(&r->leases_bell, clock_after_ms(LEASE_BEAT_MS));
		pthread_mutex_lock(&r->lock);
		event_init(&r->leases_bell);
		over = r->stopping && r->drained;
		pthread_mutex_unlock(&r->lock);
	}
	if (over)
		look(r, &l, true);
	pthread_mutex_lock(&r->lock);
	r->leases = NULL;
	r->leases_count = 0;
	pthread_mutex_unlock(&r->lock);
	forget_beats(r, true);
	arena_free(l.arena);
	arena_free(r->leases_arena);
	r->leases_arena = NULL;
	replicator_fiber_ended(r);
}

/* ---- Jobs of others ---- */

const struct lease_entry *
lease_elsewhere(struct replicator *r, struct str job)
{
	const struct lease_entry *e = find_entry(r->leases, r->leases_count, job);

	return e && !e->mine ? e : NULL;
}

const struct lease_entry *
lease_elsewhere_doc(struct replicator *r, struct str doc_id)
{
	for (size_t i = 0; i < r->leases_count; i++)
		if (!r->leases[i].mine && doc_id.len && str_eq(r->leases[i].doc_id, doc_id))
			return &r->leases[i];
	return NULL;
}

struct cancelling {
	struct str job;
};

static enum status
cancel_body(struct kv_tx *tx, void *arg)
{
	struct cancelling *c = arg;
	struct buf AUTO(buf_release) key = BUF_INIT(KEY_BYTES);
	struct kv_future *f;
	struct str value;
	enum status status;

	put_key(&key, SPACE_LEASES, c->job);
	TRY(buf_status(&key));
	f = kv_get(tx, buf_str(&key), KV_READ);
	status = kv_future_wait(f);
	if (status == STATUS_OK && !kv_future_value(f, &value))
		status = STATUS_NOT_FOUND;
	kv_future_free(f);
	TRY(status);
	return kv_clear(tx, buf_str(&key));
}

enum status
lease_cancel(struct replicator *r, struct str job, struct err *err)
{
	struct cancelling c = { job };

	return r->shared ? kv_run(r->config.store, cancel_body, &c, NULL, err) : STATUS_NOT_FOUND;
}
