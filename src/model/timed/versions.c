/*
 * Versions of items, where a history is bounded by them: what writers leave, and what readers of
 * the past look at. trim.c removes what is too old.
 *
 *     (P, VERSIONS, era, 0, row, moment)  → the bucket: a transaction of that moment has changed
 *                                           the item whose header is at (P, ROWS, row)
 *     (P, VERSIONS, era, 1, space, group) → microseconds: what lies at (P, space, group), a header
 *                                           or all of a body, cannot be read at moments before
 *     (P, VERSIONS, era, 2, group)        → microseconds: the body was given to another header then
 *     (P, TRIM, slot, row)                → '': the item was changed in that second
 *
 * `row` is two elements, `group` is those or the id of a body, as one element. An era is a stretch
 * of buckets: so all that belongs to buckets that are gone is cleared as one range, and yet the
 * notes of one item lie in a few ranges.
 *
 * Writers read none of this. A second is over when the sweep looks at what was changed in it, so it
 * does not conflict with writers, however often one item is changed.
 */
#include <assert.h>
#include <endian.h>

#include "base/mem.h"
#include "model/timed/versions.h"

enum {
	SLOT_SHIFT = 20, /* of a moment: a slot is about a second */
	NUMBER_BYTES = sizeof(uint64_t),
};

/* ---- Keys and values ---- */

uint64_t
timed_versions_era(uint64_t bucket)
{
	return bucket / HISTORY_BUCKETS;
}

void
timed_versions_key(const struct catalog_db *db, uint64_t era, enum timed_version_key kind,
		   struct buf *ret)
{
	timed_key_space(ret, db, TIMED_SPACE_VERSIONS);
	tuple_put_u64(ret, era);
	tuple_put_u64(ret, kind);
}

uint64_t
timed_trim_slot(uint64_t us)
{
	return (us >> SLOT_SHIFT) + 1; /* 0 has the work that is under way */
}

bool
timed_version_number(struct str value, uint64_t *ret)
{
	uint64_t number;

	if (value.len != sizeof(number))
		return false;
	memcpy(&number, value.ptr, sizeof(number));
	*ret = le64toh(number);
	return true;
}

enum status
timed_version_set(struct timed *t, struct buf *key, uint64_t number)
{
	number = htole64(number);
	TRY(catalog_key_status(key));
	return kv_set(t->tx, buf_str(key), str_of(&number, sizeof(number)));
}

/* What lies behind the number of the subspace. */
static struct str
key_tail(const struct timed *t, struct str key)
{
	assert(str_starts_with(key, t->db->prefix));
	return str_skip(key, t->db->prefix.len + TIMED_SPACE_BYTES);
}

/* ---- For writers ---- */

static bool
versions_are_bounded(const struct timed *t)
{
	return t->has_history && t->state.most_versions;
}

enum status
timed_version_note(struct timed *t, struct str row, uint64_t *noted_us)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	uint64_t bucket;

	if (!versions_are_bounded(t) || *noted_us == t->now_us)
		return STATUS_OK;
	assert(t->now_us && !t->at_us);
	*noted_us = t->now_us;
	bucket = t->state.buckets[t->state.count - 1].number;
	timed_versions_key(t->db, timed_versions_era(bucket), TIMED_VERSION_NOTE, &key);
	buf_append_str(&key, key_tail(t, row));
	tuple_put_u64(&key, t->now_us);
	TRY(timed_version_set(t, &key, bucket));
	timed_key_space(&key, t->db, TIMED_SPACE_TRIM);
	tuple_put_u64(&key, timed_trim_slot(t->now_us));
	buf_append_str(&key, key_tail(t, row));
	TRY(catalog_key_status(&key));
	return kv_set(t->tx, buf_str(&key), STR(""));
}

enum status
timed_version_share(struct timed *t, struct str body)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	uint64_t bucket;

	if (!versions_are_bounded(t) || !body.len)
		return STATUS_OK;
	bucket = t->state.buckets[t->state.count - 1].number;
	timed_versions_key(t->db, timed_versions_era(bucket), TIMED_VERSION_SHARED, &key);
	buf_append_str(&key, key_tail(t, body));
	return timed_version_set(t, &key, t->now_us);
}

/* ---- For readers ---- */

/* The eras that may say something of moments from the one on. */
static void
eras_from(const struct timed *t, uint64_t us, uint64_t *ret_first, uint64_t *ret_last)
{
	const struct history_state *state = &t->state;
	size_t i = state->count - 1;

	while (i && (!state->buckets[i].start_us || state->buckets[i].start_us > us))
		i--;
	*ret_first = timed_versions_era(state->buckets[i].number);
	*ret_last = timed_versions_era(state->buckets[state->count - 1].number);
}

enum status
timed_version_latest(struct timed *t, enum timed_version_key kind, struct str tail, uint64_t us,
		     uint64_t *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	uint64_t first, last, found;
	struct kv_future *f;
	struct str value;

	*ret = 0;
	eras_from(t, us, &first, &last);
	for (uint64_t era = first; era <= last; era++) {
		timed_versions_key(t->db, era, kind, &key);
		buf_append_str(&key, tail);
		TRY(catalog_key_status(&key));
		f = kv_get(t->tx, buf_str(&key), KV_SNAPSHOT);
		TRY(kv_future_wait(f));
		if (!kv_future_value(f, &value))
			continue;
		if (!timed_version_number(value, &found))
			return STATUS_CORRUPT;
		*ret = found > *ret ? found : *ret;
	}
	return STATUS_OK;
}

static enum status
forgotten(struct timed *t, uint64_t horizon_us)
{
	return err_set(t->err, STATUS_INVALID,
		       "the history of a key of the database \"%.*s\" begins at %llu ms",
		       STR_ARG(t->db->name),
		       (unsigned long long)((horizon_us + TIMED_US_PER_MS - 1) / TIMED_US_PER_MS -
					    (uint64_t)timed_ahead_ms(t)));
}

enum status
timed_version_check(struct timed *t, struct str key)
{
	struct tuple_reader r = tuple_reader(str_skip(key, t->db->prefix.len));
	AUTO(buf_release) struct buf tail = CATALOG_KEY_INIT;
	uint64_t space, horizon_us;
	struct str group;
	size_t len;

	assert(t->at_us && t->has_history);
	if (!history_state_forgets(&t->state))
		return STATUS_OK;
	TRY(tuple_next_u64(&r, &space));
	group = r.rest;
	len = tuple_skip(group, 0, TUPLE_SKIP_TEXT);
	/* A range that is not within one body, or of numbers. */
	if ((space != TIMED_SPACE_ROWS && space != TIMED_SPACE_BODY) || !len)
		return STATUS_OK;
	if (space == TIMED_SPACE_BODY)
		group = str_of(group.ptr, len);
	tuple_put_u64(&tail, space);
	buf_append_str(&tail, group);
	TRY(buf_status(&tail));
	/* Most reads are of the body of the one before. */
	if (str_eq(buf_str(&tail), str_of(t->checked, t->checked_len)))
		return STATUS_OK;
	TRY(timed_version_latest(t, TIMED_VERSION_HORIZON, buf_str(&tail), t->at_us, &horizon_us));
	if (horizon_us > t->at_us)
		return forgotten(t, horizon_us);
	t->checked_len = tail.len <= sizeof(t->checked) ? tail.len : 0;
	if (t->checked_len)
		memcpy(t->checked, tail.ptr, tail.len);
	return STATUS_OK;
}

/* Horizons of one era. */
static enum status
check_era(struct timed *t, uint64_t era)
{
	const struct kv_range_options options = { .mode = KV_SNAPSHOT };
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct kv_pair pair;
	enum status status;
	uint64_t us;

	timed_versions_key(t->db, era, TIMED_VERSION_HORIZON, &begin);
	buf_append_buf(&end, &begin);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	TRY(kv_scan_init(&scan, t->tx, buf_str(&begin), buf_str(&end), &options));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		if (!timed_version_number(pair.value, &us))
			return STATUS_CORRUPT;
		if (us > t->at_us)
			return forgotten(t, us);
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status
timed_version_check_all(struct timed *t)
{
	uint64_t first, last;

	if (!t->has_history || !history_state_forgets(&t->state))
		return STATUS_OK;
	eras_from(t, t->at_us, &first, &last);
	for (uint64_t era = first; era <= last; era++)
		TRY(check_era(t, era));
	return STATUS_OK;
}

/* ---- For readers of ranges of headers ---- */

enum {
	ERAS_MOST = HISTORY_BUCKETS_MOST / HISTORY_BUCKETS + 2,
};

/* Horizons of one era, in the order in which the range is gone through. */
struct horizon_stream {
	struct kv_scan scan;
	bool open;
	bool has_pair;
	struct str row; /* behind the subspace of ROWS */
	uint64_t us;
};

struct timed_horizons {
	struct timed *t;
	bool reverse;
	struct horizon_stream streams[ERAS_MOST];
	size_t count;
};

static enum status
stream_next(struct timed_horizons *h, struct horizon_stream *s)
{
	enum status status;
	struct kv_pair pair;
	uint64_t ignored;

	status = kv_scan_next(&s->scan, &pair);
	s->has_pair = status == STATUS_OK;
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	TRY(status);
	struct tuple_reader r = tuple_reader(key_tail(h->t, pair.key));
	for (int i = 0; i < 3; i++) /* the era, the kind, the subspace */
		TRY(tuple_next_u64(&r, &ignored));
	s->row = r.rest;
	return timed_version_number(pair.value, &s->us) ? STATUS_OK : STATUS_CORRUPT;
}

static enum status
stream_open(struct timed_horizons *h, uint64_t era, struct str begin, struct str end)
{
	const struct kv_range_options options = { .reverse = h->reverse, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf from = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf to = CATALOG_KEY_INIT;
	struct horizon_stream *s = &h->streams[h->count];

	assert(h->count < ERAS_MOST);
	timed_versions_key(h->t->db, era, TIMED_VERSION_HORIZON, &from);
	tuple_put_u64(&from, TIMED_SPACE_ROWS);
	buf_append_buf(&to, &from);
	buf_append_str(&from, key_tail(h->t, begin));
	buf_append_str(&to, key_tail(h->t, end));
	TRY(catalog_key_status(&from));
	TRY(catalog_key_status(&to));
	TRY(kv_scan_init(&s->scan, h->t->tx, buf_str(&from), buf_str(&to), &options));
	s->open = true;
	h->count++;
	return stream_next(h, s);
}

enum status
timed_horizons_open(struct timed *t, struct str begin, struct str end, bool reverse,
		    struct timed_horizons **ret)
{
	AUTO(buf_release) struct buf rows = CATALOG_KEY_INIT;
	struct timed_horizons *h;
	uint64_t first, last;

	*ret = NULL;
	timed_key_space(&rows, t->db, TIMED_SPACE_ROWS);
	TRY(buf_status(&rows));
	if (!history_state_forgets(&t->state))
		return STATUS_OK;
	if (!str_starts_with(begin, buf_str(&rows)) || !str_starts_with(end, buf_str(&rows)))
		return timed_version_check(t, begin);
	h = mem_zalloc(sizeof(*h));
	if (!h)
		return STATUS_NOMEM;
	*ret = h;
	h->t = t;
	h->reverse = reverse;
	eras_from(t, t->at_us, &first, &last);
	for (uint64_t era = first; era <= last; era++)
		TRY(stream_open(h, era, begin, end));
	return STATUS_OK;
}

enum status
timed_horizons_pass(struct timed_horizons *h, struct str key)
{
	if (!h)
		return STATUS_OK;
	for (size_t i = 0; i < h->count; i++) {
		struct horizon_stream *s = &h->streams[i];

		while (s->has_pair) {
			int order = key.ptr ? str_cmp(s->row, key_tail(h->t, key)) : 0;

			if (h->reverse ? order < 0 : order > 0)
				break;
			if (s->us > h->t->at_us)
				return forgotten(h->t, s->us);
			TRY(stream_next(h, s));
		}
	}
	return STATUS_OK;
}

void
timed_horizons_close(struct timed_horizons *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->count; i++)
		if (h->streams[i].open)
			kv_scan_release(&h->streams[i].scan);
	mem_free(h);
}
