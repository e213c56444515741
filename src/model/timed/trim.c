/*
 * Removing versions of items, where a history is bounded by them (versions.c has what lies where).
 *
 * Whoever changes an item leaves a note and says in TRIM that it has done so. The sweep counts the
 * notes of such an item, the newest first. If there are more than the bound, the moment of the
 * first one beyond it is the horizon: what the item was before then cannot be read from that
 * transaction on. Later transactions remove what only such reads would need, in slices:
 *
 *     (P, TRIM, 0, ROWS, row) → the notes up to the horizon go, and with each the record of the
 *                               header; a body that went in that transaction goes as well
 *     (P, TRIM, 0, BODY, id)  → so do records of the body; of one that is gone, all of it does
 *
 * A body is read through a header, so the horizon of the header is enough, but where the body has
 * had another header before (timed_item_rename()): then the body has a horizon, too, because what
 * it was under the former name has gone as well.
 *
 * A transaction that is slow may commit a note from before the horizon. It is counted with the
 * others, and goes when the item is looked at for it.
 */
#include <assert.h>
#include <endian.h>

#include "model/timed/versions.h"

enum {
	TRIM_JOBS = 20,         /* that one transaction goes on with */
	TRIM_MARKS = 100,       /* items that it looks at */
	TRIM_NOTES = 10 * 1000, /* that it counts for that, or of one item more */
	TRIM_ARENA_BYTES = 32 * 1024 * 1024,
	TRIM_JOB_BYTES = 2 * CATALOG_KEY_BYTES,
};

/* One transaction of the sweep. */
struct trim {
	struct timed *t;
	struct timed_tended *tended;
	struct arena *arena;
	struct history h;
	size_t budget;     /* of pairs that may still be removed, or read for that */
	uint64_t since_us; /* all changes after it are noted */
	uint64_t done;
	bool more;
};

/* ---- Jobs ---- */

bool
timed_trim_job_parse(struct str value, struct buf *scratch, struct timed_trim_job *ret)
{
	struct tuple_reader r = tuple_reader(value);

	*ret = (struct timed_trim_job){ 0 };
	return tuple_next_u64(&r, &ret->until_us) == STATUS_OK &&
	       tuple_next_u64(&r, &ret->first) == STATUS_OK &&
	       tuple_next_u64(&r, &ret->last) == STATUS_OK &&
	       tuple_next_bool(&r, &ret->gone) == STATUS_OK &&
	       tuple_next_u64(&r, &ret->at) == STATUS_OK &&
	       tuple_next_bytes(&r, scratch, &ret->place) == STATUS_OK && !r.rest.len;
}

static enum status
job_key(struct trim *r, enum timed_space space, struct str group, struct buf *ret)
{
	timed_key_space(ret, r->t->db, TIMED_SPACE_TRIM);
	tuple_put_u64(ret, 0);
	tuple_put_u64(ret, space);
	buf_append_str(ret, group);
	return catalog_key_status(ret);
}

static enum status
job_write(struct trim *r, struct str key, const struct timed_trim_job *job)
{
	AUTO(buf_release) struct buf value = BUF_INIT(TRIM_JOB_BYTES);

	tuple_put_u64(&value, job->until_us);
	tuple_put_u64(&value, job->first);
	tuple_put_u64(&value, job->last);
	tuple_put_bool(&value, job->gone);
	tuple_put_u64(&value, job->at);
	tuple_put_bytes(&value, job->place);
	TRY(buf_status(&value));
	return kv_set(r->t->tx, key, buf_str(&value));
}

/* Adds a job, or adds to the one that is there, which then begins again. */
static enum status
job_add(struct trim *r, enum timed_space space, struct str group, struct timed_trim_job job)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf scratch = BUF_INIT(TRIM_JOB_BYTES);
	struct timed_trim_job old;
	struct kv_future *f;
	struct str value;

	TRY(job_key(r, space, group, &key));
	f = kv_get(r->t->tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	if (kv_future_value(f, &value)) {
		if (!timed_trim_job_parse(value, &scratch, &old))
			return STATUS_CORRUPT;
		job.until_us = job.until_us > old.until_us ? job.until_us : old.until_us;
		job.first = !job.first || (old.first && old.first < job.first) ? old.first
									       : job.first;
		job.last = job.last > old.last ? job.last : old.last;
		job.gone = job.gone || old.gone;
	}
	r->more = true;
	return job_write(r, buf_str(&key), &job);
}

/* Moments before this one cannot be read any more, of a header or a body. */
static enum status
horizon_raise(struct trim *r, enum timed_space space, struct str group, uint64_t us)
{
	const struct history_state *state = &r->t->state;
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	uint64_t number = htole64(us);

	timed_versions_key(r->t->db, timed_versions_era(state->buckets[state->count - 1].number),
			   TIMED_VERSION_HORIZON, &key);
	tuple_put_u64(&key, space);
	buf_append_str(&key, group);
	TRY(catalog_key_status(&key));
	return kv_atomic(r->t->tx, KV_MAX, buf_str(&key), str_of(&number, sizeof(number)));
}

static uint64_t
era_first(const struct trim *r)
{
	return timed_versions_era(r->t->state.buckets[0].number);
}

static uint64_t
era_last(const struct trim *r)
{
	return timed_versions_era(r->t->state.buckets[r->t->state.count - 1].number);
}

/* ---- A header ---- */

/* The body that the value of a header names, if there is one. */
struct named_body {
	struct buf id; /* as it is in keys; empty: none */
	uint64_t made_us;
	/* When it was given to another header, the last time. UINT64_MAX: that is not known. */
	uint64_t shared_us;
};

#define NAMED_BODY_INIT                                                                            \
	(struct named_body)                                                                        \
	{                                                                                          \
		.id = BUF_INIT(TIMED_CHECKED_BYTES)                                                \
	}

/* `value.ptr` NULL: there is no header. */
static enum status
body_named(struct trim *r, struct str value, struct named_body *ret)
{
	buf_clear(&ret->id);
	ret->shared_us = 0;
	if (!value.ptr)
		return STATUS_OK;
	TRY(timed_kind_of(r->t->db)->body_of(r->t, value, &ret->id, &ret->made_us));
	return buf_status(&ret->id);
}

static enum status
body_shared(struct trim *r, struct named_body *body)
{
	body->shared_us = UINT64_MAX;
	if (body->made_us <= r->since_us)
		return STATUS_OK;
	return timed_version_latest(r->t, TIMED_VERSION_SHARED, buf_str(&body->id), 0,
				    &body->shared_us);
}

/*
 * The transaction at the moment has changed the header, which named a body. If the body has gone
 * with that, all of it goes now. What it was under a former name cannot be read any more then.
 */
static enum status
body_left(struct trim *r, struct str row, const struct history_record *record, uint64_t bucket,
	  const struct timed_trim_job *of)
{
	struct timed_trim_job job = { of->until_us, of->first, bucket, .gone = true };
	struct named_body before = NAMED_BODY_INIT, after = NAMED_BODY_INIT;
	enum status status = body_named(r, record->value, &before);
	struct str value;
	bool same = true;

	if (status == STATUS_OK && before.id.len) {
		status = history_after(&r->h, row, record->us, r->arena, &value);
		if (status == STATUS_OK)
			status = body_named(r, value, &after);
		same = str_eq(buf_str(&before.id), buf_str(&after.id));
		if (status == STATUS_OK && !same)
			status = body_shared(r, &before);
	}
	/* Of what another header has had since the body stays as long as its bucket. */
	if (status == STATUS_OK && !same && before.shared_us < record->us) {
		if (before.shared_us)
			status = horizon_raise(r, TIMED_SPACE_BODY, buf_str(&before.id),
					       of->until_us);
		if (status == STATUS_OK)
			status = job_add(r, TIMED_SPACE_BODY, buf_str(&before.id), job);
	}
	buf_release(&before.id);
	buf_release(&after.id);
	return status;
}

/* Removes what the transaction of the note has left of the header, and the note. */
static enum status
note_forget(struct trim *r, struct str row, const struct kv_pair *note, uint64_t us,
	    struct timed_trim_job *job)
{
	struct history_record record;
	enum status status;
	uint64_t bucket;

	if (!timed_version_number(note->value, &bucket))
		return STATUS_CORRUPT;
	TRY(kv_clear(r->t->tx, note->key));
	r->tended->forgotten++;
	r->done++;
	/* What was in a bucket that is gone has gone with it. */
	if (history_bucket_at(&r->t->state, bucket) == r->t->state.count)
		return STATUS_OK;
	job->first = job->first && job->first < bucket ? job->first : bucket;
	job->last = job->last > bucket ? job->last : bucket;
	status = history_record_get(&r->h, bucket, row, us, r->arena, &record);
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK; /* it has changed the body alone */
	TRY(status);
	if (record.there)
		TRY(body_left(r, row, &record, bucket, job));
	return history_forget(&r->h, &record.pair);
}

/* Notes of one era. */
static enum status
notes_forget(struct trim *r, struct str row, struct str group, uint64_t era,
	     struct timed_trim_job *job, bool *ret_more)
{
	const struct kv_range_options options = { .limit = r->budget, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct kv_range range;
	uint64_t us;

	timed_versions_key(r->t->db, era, TIMED_VERSION_NOTE, &begin);
	buf_append_str(&begin, group);
	buf_append_buf(&end, &begin);
	tuple_put_u64(&end, job->until_us + 1);
	TRY(catalog_key_status(&begin));
	TRY(catalog_key_status(&end));
	f = kv_get_range(r->t->tx, buf_str(&begin), buf_str(&end), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	for (size_t i = 0; i < range.count; i++) {
		struct tuple_reader reader = tuple_reader(str_skip(range.pairs[i].key, begin.len));
		struct arena_mark mark = arena_mark(r->arena);

		TRY(tuple_next_u64(&reader, &us));
		TRY(note_forget(r, row, &range.pairs[i], us, job));
		arena_reset(r->arena, mark);
	}
	r->budget -= range.count;
	*ret_more = range.more;
	return STATUS_OK;
}

/* All records of the header are gone: those of the body that it had at the horizon are next. */
static enum status
header_done(struct trim *r, struct str row, const struct timed_trim_job *of)
{
	struct timed_trim_job job = { of->until_us, of->first, of->last, .gone = false };
	struct named_body body = NAMED_BODY_INIT;
	enum status status;
	struct str value;

	TRY(history_after(&r->h, row, of->until_us, r->arena, &value));
	status = body_named(r, value, &body);
	if (status == STATUS_OK && body.id.len && of->first) {
		status = body_shared(r, &body);
		if (status == STATUS_OK && body.shared_us)
			status = horizon_raise(r, TIMED_SPACE_BODY, buf_str(&body.id),
					       of->until_us);
		if (status == STATUS_OK)
			status = job_add(r, TIMED_SPACE_BODY, buf_str(&body.id), job);
	}
	buf_release(&body.id);
	return status;
}

static enum status
header_trim(struct trim *r, struct str key, struct str group, struct timed_trim_job *job)
{
	AUTO(buf_release) struct buf row = CATALOG_KEY_INIT;
	bool more = false;

	timed_key_space(&row, r->t->db, TIMED_SPACE_ROWS);
	buf_append_str(&row, group);
	TRY(catalog_key_status(&row));
	for (uint64_t era = era_first(r); era <= era_last(r) && !more; era++) {
		if (r->budget)
			TRY(notes_forget(r, buf_str(&row), group, era, job, &more));
		more = more || !r->budget;
	}
	if (more)
		return job_write(r, key, job);
	TRY(header_done(r, buf_str(&row), job));
	return kv_clear(r->t->tx, key);
}

/* ---- A body ---- */

struct body_trim {
	struct trim *r;
	const struct timed_trim_job *job;
};

static enum status
record_trim(void *arg, const struct history_record *record)
{
	AUTO(buf_release) struct buf left = CATALOG_KEY_INIT;
	const struct body_trim *b = arg;
	struct trim *r = b->r;

	if (record->us > b->job->until_us)
		return STATUS_OK;
	TRY(timed_kind_of(r->t->db)->left_by(r->t, record, &left));
	TRY(buf_status(&left));
	if (left.len)
		TRY(timed_gone_release(r->t, b->job->at, buf_str(&left)));
	r->done++;
	return history_forget(&r->h, &record->pair);
}

/* Gives the body that is gone, and what had gone of it before, to the sweep. */
static enum status
body_release(struct trim *r, struct str group, uint64_t bucket, bool *ret_more)
{
	const struct kv_range_options options = { .limit = r->budget, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct kv_range range;
	size_t skip;

	timed_key_space(&begin, r->t->db, TIMED_SPACE_GONE);
	tuple_put_u64(&begin, bucket);
	skip = begin.len;
	buf_append_str(&begin, group);
	buf_append_buf(&end, &begin);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&begin));
	TRY(catalog_key_status(&end));
	f = kv_get_range(r->t->tx, buf_str(&begin), buf_str(&end), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	for (size_t i = 0; i < range.count; i++)
		TRY(timed_gone_release(r->t, bucket, str_skip(range.pairs[i].key, skip)));
	r->budget -= range.count;
	*ret_more = range.more;
	return STATUS_OK;
}

/* Goes on in the bucket that the job is at. */
static enum status
body_trim_bucket(struct trim *r, struct str body, struct str group, struct timed_trim_job *job,
		 bool *ret_more)
{
	const struct history_slice slice = { job->at, body, job->place, r->budget };
	struct body_trim b = { r, job };
	size_t records;

	*ret_more = false;
	if (history_bucket_at(&r->t->state, job->at) == r->t->state.count)
		return STATUS_OK;
	TRY(history_slice_take(&r->h, &slice, r->arena, record_trim, &b, &records, &job->place));
	assert(records <= r->budget);
	r->budget -= records;
	*ret_more = job->place.len > 0 || (job->gone && !r->budget);
	return *ret_more || !job->gone ? STATUS_OK : body_release(r, group, job->at, ret_more);
}

static enum status
body_trim(struct trim *r, struct str key, struct str group, struct timed_trim_job *job)
{
	AUTO(buf_release) struct buf body = CATALOG_KEY_INIT;
	const struct history_state *state = &r->t->state;
	bool more;

	timed_key_space(&body, r->t->db, TIMED_SPACE_BODY);
	buf_append_str(&body, group);
	TRY(catalog_key_status(&body));
	if (job->at < job->first)
		job->at = job->first;
	if (job->at < state->buckets[0].number)
		job->at = state->buckets[0].number;
	for (; job->at <= job->last; job->at++) {
		more = !r->budget;
		if (!more)
			TRY(body_trim_bucket(r, buf_str(&body), group, job, &more));
		if (more)
			return job_write(r, key, job);
		job->place = STR("");
	}
	return kv_clear(r->t->tx, key);
}

static enum status
jobs_run(struct trim *r)
{
	const struct kv_range_options options = { .limit = TRIM_JOBS, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf scratch = BUF_INIT(TRIM_JOB_BYTES);
	struct kv_future *f;
	struct kv_range range;

	timed_key_space(&begin, r->t->db, TIMED_SPACE_TRIM);
	tuple_put_u64(&begin, 0);
	buf_append_buf(&end, &begin);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	f = kv_get_range(r->t->tx, buf_str(&begin), buf_str(&end), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	r->more = r->more || range.count;
	for (size_t i = 0; i < range.count && r->budget; i++) {
		const struct kv_pair *pair = &range.pairs[i];
		struct tuple_reader reader = tuple_reader(str_skip(pair->key, begin.len));
		struct timed_trim_job job;
		uint64_t space;

		buf_clear(&scratch);
		TRY(tuple_next_u64(&reader, &space));
		if (!timed_trim_job_parse(pair->value, &scratch, &job))
			return STATUS_CORRUPT;
		TRY(space == TIMED_SPACE_ROWS ? header_trim(r, pair->key, reader.rest, &job)
					      : body_trim(r, pair->key, reader.rest, &job));
		r->done++;
	}
	return STATUS_OK;
}

/* ---- Items that were changed ---- */

/*
 * Counts the notes of an item, the newest first: the moment of the one that is the first beyond the
 * bound; 0: there are no more.
 */
static enum status
notes_count(struct trim *r, struct str group, size_t *notes, uint64_t *ret_us)
{
	struct kv_range_options options = { .reverse = true, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	size_t left = (size_t)r->t->state.most_versions + 1;

	*ret_us = 0;
	for (uint64_t era = era_last(r) + 1; era-- > era_first(r);) {
		struct tuple_reader reader;
		struct kv_future *f;
		struct kv_range range;

		timed_versions_key(r->t->db, era, TIMED_VERSION_NOTE, &begin);
		buf_append_str(&begin, group);
		buf_clear(&end);
		buf_append_buf(&end, &begin);
		buf_append_byte(&end, CATALOG_KEY_LAST);
		TRY(catalog_key_status(&begin));
		TRY(catalog_key_status(&end));
		options.limit = left;
		f = kv_get_range(r->t->tx, buf_str(&begin), buf_str(&end), &options);
		TRY(kv_future_wait(f));
		range = kv_future_range(f);
		*notes += range.count;
		left -= range.count;
		if (left)
			continue;
		reader = tuple_reader(str_skip(range.pairs[range.count - 1].key, begin.len));
		return tuple_next_u64(&reader, ret_us);
	}
	return STATUS_OK;
}

static enum status
item_look(struct trim *r, struct str mark, struct str group, size_t *notes)
{
	AUTO(buf_release) struct buf tail = CATALOG_KEY_INIT;
	struct kv_future *f;
	uint64_t us, now_us;
	struct str ignored;

	/* Who has changed it in that second, but is slow, conflicts and leaves a mark again. */
	f = kv_get(r->t->tx, mark, KV_READ);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &ignored))
		return STATUS_OK;
	TRY(kv_clear(r->t->tx, mark));
	TRY(notes_count(r, group, notes, &us));
	r->done++;
	if (!us)
		return STATUS_OK;
	tuple_put_u64(&tail, TIMED_SPACE_ROWS);
	buf_append_str(&tail, group);
	TRY(buf_status(&tail));
	TRY(timed_version_latest(r->t, TIMED_VERSION_HORIZON, buf_str(&tail), 0, &now_us));
	if (us > now_us)
		TRY(horizon_raise(r, TIMED_SPACE_ROWS, group, us));
	return job_add(r, TIMED_SPACE_ROWS, group,
		       (struct timed_trim_job){ .until_us = us > now_us ? us : now_us });
}

/* Looks at items that were changed in seconds that are over. */
static enum status
items_look(struct trim *r)
{
	const struct kv_range_options options = { .limit = TRIM_MARKS, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct kv_range range;
	size_t skip, notes = 0, i;

	timed_key_space(&begin, r->t->db, TIMED_SPACE_TRIM);
	skip = begin.len;
	buf_append_buf(&end, &begin);
	tuple_put_u64(&begin, 1);
	tuple_put_u64(&end, timed_trim_slot(r->t->now_us));
	TRY(catalog_key_status(&begin));
	TRY(catalog_key_status(&end));
	f = kv_get_range(r->t->tx, buf_str(&begin), buf_str(&end), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	for (i = 0; i < range.count && notes < TRIM_NOTES; i++) {
		struct tuple_reader reader = tuple_reader(str_skip(range.pairs[i].key, skip));
		uint64_t slot;

		TRY(tuple_next_u64(&reader, &slot));
		TRY(item_look(r, range.pairs[i].key, reader.rest, &notes));
	}
	r->more = r->more || range.more || i < range.count;
	return STATUS_OK;
}

/* ---- All items, after the bound was lowered ---- */

enum status
timed_trim_all(struct timed *t)
{
	return timed_walk_begin(t, TIMED_SPACE_RETRIM, TIMED_SPACE_VERSIONS);
}

/* Has the item of a note looked at. */
static enum status
note_mark(struct timed *t, const struct kv_pair *pair, void *arg)
{
	struct tuple_reader r = tuple_reader(
		str_skip(pair->key, t->db->prefix.len + TIMED_SPACE_BYTES));
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	uint64_t era, kind;
	size_t len = 0;

	(void)arg;
	TRY(tuple_next_u64(&r, &era));
	TRY(tuple_next_u64(&r, &kind));
	if (kind != TIMED_VERSION_NOTE)
		return STATUS_OK;
	for (int i = 0; i < 2; i++) {
		len = tuple_skip(r.rest, len, TUPLE_SKIP_TEXT);
		if (!len)
			return STATUS_CORRUPT;
	}
	timed_key_space(&key, t->db, TIMED_SPACE_TRIM);
	tuple_put_u64(&key, timed_trim_slot(t->now_us));
	buf_append(&key, r.rest.ptr, len);
	TRY(catalog_key_status(&key));
	return kv_set(t->tx, buf_str(&key), STR(""));
}

enum status
timed_trim_end(struct timed *t)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	TRY(timed_walk_key(t->db, TIMED_SPACE_RETRIM, &key));
	TRY(kv_clear(t->tx, buf_str(&key)));
	timed_key_space(&key, t->db, TIMED_SPACE_TRIM);
	buf_append_buf(&end, &key);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	return kv_clear_range(t->tx, buf_str(&key), buf_str(&end));
}

/* ---- The turn of the sweep ---- */

/* The moment since which changes are noted; UINT64_MAX: it is not known yet. */
static uint64_t
noted_since_us(const struct history_state *state)
{
	size_t i = history_bucket_at(state, state->versions_from);

	if (i == state->count)
		return 0; /* all that can be read is */
	return state->buckets[i].start_us ? state->buckets[i].start_us : UINT64_MAX;
}

/* True if the bytes of all that is kept are known, or nobody asks for them. */
static enum status
bytes_are_counted(struct timed *t, bool *ret)
{
	const struct history h = timed_history_of(t);
	struct history_held held;

	*ret = true;
	if (!t->state.most_bytes)
		return STATUS_OK;
	TRY(history_held_read(&h, &held));
	*ret = held.all;
	return held.all ? timed_weigh_is_listed(t, ret) : STATUS_OK;
}

enum status
timed_trim(struct timed *t, struct timed_tended *tended, uint64_t *ret_done, bool *ret_more)
{
	static const struct timed_walk walk = {
		.record = TIMED_SPACE_RETRIM,
		.space = TIMED_SPACE_VERSIONS,
		.look = note_mark,
	};
	struct trim r = { .t = t, .tended = tended, .budget = HISTORY_CLEAR_KEYS };
	enum status status;
	bool counted;

	if (!t->has_history || !t->state.most_versions)
		return STATUS_OK;
	r.since_us = noted_since_us(&t->state);
	if (r.since_us == UINT64_MAX)
		return STATUS_OK;
	/* Only then is it known which bytes are counted. */
	TRY(bytes_are_counted(t, &counted));
	if (!counted)
		return STATUS_OK;
	TRY(timed_walk_turn(t, &walk, ret_done, ret_more));
	r.h = timed_history_of(t);
	r.arena = arena_new(TRIM_ARENA_BYTES);
	status = r.arena ? jobs_run(&r) : STATUS_NOMEM;
	if (status == STATUS_OK)
		status = items_look(&r);
	arena_free(r.arena);
	*ret_done += r.done;
	*ret_more = *ret_more || r.more;
	if (status == STATUS_CORRUPT)
		return err_set(t->err, status,
			       "the versions of the database \"%.*s\" cannot be read",
			       STR_ARG(t->db->name));
	return status;
}

enum status
timed_trim_clear(struct timed *t, uint64_t *ret_done, bool *ret_more)
{
	const struct kv_range_options options = { .limit = HISTORY_CLEAR_KEYS,
						  .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct history_state *state = &t->state;
	struct kv_future *f;
	struct kv_range range;
	bool all;

	if (!t->has_history || !history_state_forgets(state))
		return STATUS_OK;
	all = !state->most_versions && state->versions_until < state->buckets[0].number;
	timed_key_space(&begin, t->db, TIMED_SPACE_VERSIONS);
	buf_append_buf(&end, &begin);
	if (all)
		buf_append_byte(&end, CATALOG_KEY_LAST);
	else
		tuple_put_u64(&end, timed_versions_era(state->buckets[0].number));
	TRY(catalog_key_status(&end));
	f = kv_get_range(t->tx, buf_str(&begin), buf_str(&end), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	*ret_done += range.count;
	*ret_more = *ret_more || range.more;
	for (size_t i = 0; i < range.count; i++)
		TRY(kv_clear(t->tx, range.pairs[i].key));
	if (!all || range.more)
		return STATUS_OK;
	state->versions_until = 0;
	return timed_history_write(t);
}
