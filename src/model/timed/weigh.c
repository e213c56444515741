/*
 * The bytes of bodies that are gone. Such a body stays as long as the past can refer to it, so it
 * is part of the bytes that a history is bounded by. Whoever drops it does not know how many bytes
 * it has, so the sweep reads it, in slices, and adds what it has to the bytes of the bucket in
 * which it went (history/history.h). A body that is gone never changes.
 *
 *     (P, GONE, bucket, tail…)  → '': not weighed; or what all pairs below (P, BODY, tail…) have
 *     (P, WEIGH, bucket, tail…) → '': is to be weighed; or what the pairs up to a place have, and
 *                                 the place, which is a key behind (P, BODY, tail…)
 *     (P, WEIGH, 0)             → a bucket and a place: what went in older buckets is from before
 *                                 bytes were bounded, and what lies behind the place, a key behind
 *                                 (P, GONE), is still to be looked at
 *
 * Values are a number of 8 bytes, little-endian, and the place. Pairs that are gone twice, as
 * pieces of a member that was overwritten and whose item was deleted later, are weighed twice.
 */
#include <assert.h>
#include <endian.h>

#include "model/timed/timed_int.h"

enum {
	WEIGH_BYTES = 1024 * 1024, /* that one transaction reads of bodies */
	WEIGH_BODIES = 100,        /* that one transaction looks at */
	WEIGHT_NUMBER_BYTES = sizeof(uint64_t),
};

/* ---- Keys and values ---- */

/* What lies behind the number of the subspace. */
static struct str
key_tail(const struct timed *t, struct str key)
{
	return str_skip(key, t->db->prefix.len + TIMED_SPACE_BYTES);
}

static enum status
key_of(const struct timed *t, enum timed_space space, struct str tail, struct buf *ret)
{
	timed_key_space(ret, t->db, space);
	buf_append_str(ret, tail);
	return catalog_key_status(ret);
}

static enum status
mark_key(const struct timed *t, struct buf *ret)
{
	timed_key_space(ret, t->db, TIMED_SPACE_WEIGH);
	tuple_put_u64(ret, 0);
	return catalog_key_status(ret);
}

bool
timed_weight_parse(struct str value, uint64_t *ret_number, struct str *ret_place)
{
	uint64_t number = 0;

	if (value.len && value.len < WEIGHT_NUMBER_BYTES)
		return false;
	if (value.len)
		memcpy(&number, value.ptr, sizeof(number));
	*ret_number = le64toh(number);
	*ret_place = value.len ? str_skip(value, WEIGHT_NUMBER_BYTES) : value;
	return true;
}

static enum status
weight_set(const struct timed *t, struct str key, uint64_t number, struct str place)
{
	AUTO(buf_release) struct buf value = BUF_INIT(WEIGHT_NUMBER_BYTES + CATALOG_KEY_BYTES);

	number = htole64(number);
	buf_append_str(&value, str_of(&number, sizeof(number)));
	buf_append_str(&value, place);
	TRY(buf_status(&value));
	return kv_set(t->tx, key, buf_str(&value));
}

/* ---- For writers, and for whoever bounds a history ---- */

enum status
timed_gone_put(struct timed *t, struct str gone)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	TRY(kv_set(t->tx, gone, STR("")));
	if (!t->has_history || !t->state.most_bytes)
		return STATUS_OK;
	TRY(key_of(t, TIMED_SPACE_WEIGH, key_tail(t, gone), &key));
	return kv_set(t->tx, buf_str(&key), STR(""));
}

enum status
timed_gone_release(struct timed *t, uint64_t bucket, struct str tail)
{
	const struct history h = timed_history_of(t);
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct str value, place;
	uint64_t bytes;

	timed_key_space(&key, t->db, TIMED_SPACE_GONE);
	tuple_put_u64(&key, bucket);
	buf_append_str(&key, tail);
	TRY(catalog_key_status(&key));
	/* Whoever weighs it writes this. */
	f = kv_get(t->tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return STATUS_OK;
	if (!timed_weight_parse(value, &bytes, &place))
		return STATUS_CORRUPT;
	TRY(kv_clear(t->tx, buf_str(&key)));
	if (t->state.most_bytes) {
		TRY(history_held_less(&h, bucket, bytes));
		timed_key_space(&key, t->db, TIMED_SPACE_WEIGH);
		tuple_put_u64(&key, bucket);
		buf_append_str(&key, tail);
		TRY(catalog_key_status(&key));
		TRY(kv_clear(t->tx, buf_str(&key)));
	}
	timed_key_space(&key, t->db, TIMED_SPACE_GONE);
	tuple_put_u64(&key, 0);
	buf_append_str(&key, tail);
	TRY(catalog_key_status(&key));
	return kv_set(t->tx, buf_str(&key), STR(""));
}

enum status
timed_weigh_begin(struct timed *t, uint64_t bucket)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	TRY(mark_key(t, &key));
	return weight_set(t, buf_str(&key), bucket, STR(""));
}

enum status
timed_weigh_forget(struct timed *t, uint64_t bucket)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	timed_key_space(&begin, t->db, TIMED_SPACE_WEIGH);
	buf_append_buf(&end, &begin);
	/* The mark stays as long as the bound. */
	tuple_put_u64(&begin, bucket == UINT64_MAX ? 0 : 1);
	tuple_put_u64(&end, bucket);
	TRY(catalog_key_status(&begin));
	TRY(catalog_key_status(&end));
	return kv_clear_range(t->tx, buf_str(&begin), buf_str(&end));
}

/* ---- What went before bytes were bounded ---- */

/* Lists an entry of GONE in WEIGH, or counts what it has been found to have. */
static enum status
mark_take(struct timed *t, const struct kv_pair *gone)
{
	const struct history h = timed_history_of(t);
	struct tuple_reader r = tuple_reader(key_tail(t, gone->key));
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	uint64_t bucket, bytes;
	struct str place;

	if (!timed_weight_parse(gone->value, &bytes, &place))
		return STATUS_CORRUPT;
	TRY(tuple_next_u64(&r, &bucket));
	if (gone->value.len)
		return history_held_more(&h, bucket, bytes);
	TRY(key_of(t, TIMED_SPACE_WEIGH, key_tail(t, gone->key), &key));
	return kv_set(t->tx, buf_str(&key), STR(""));
}

static enum status
mark_move(struct timed *t, struct str mark, struct str value, uint64_t *ret_done)
{
	const struct kv_range_options options = { .limit = HISTORY_CLEAR_KEYS,
						  .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct kv_range range;
	struct str place;
	uint64_t until;

	if (!timed_weight_parse(value, &until, &place))
		return STATUS_CORRUPT;
	timed_key_space(&end, t->db, TIMED_SPACE_GONE);
	buf_append_buf(&begin, &end);
	tuple_put_u64(&begin, t->state.buckets[0].number);
	if (str_cmp(key_tail(t, buf_str(&begin)), place) < 0) {
		TRY(key_of(t, TIMED_SPACE_GONE, place, &begin));
		buf_append_byte(&begin, CATALOG_KEY_NEXT);
	}
	tuple_put_u64(&end, until);
	TRY(catalog_key_status(&begin));
	TRY(catalog_key_status(&end));
	f = kv_get_range(t->tx, buf_str(&begin), buf_str(&end), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	for (size_t i = 0; i < range.count; i++)
		TRY(mark_take(t, &range.pairs[i]));
	*ret_done += range.count;
	if (!range.more)
		return kv_clear(t->tx, mark);
	return weight_set(t, mark, until, key_tail(t, range.pairs[range.count - 1].key));
}

/* ---- Weighing ---- */

/* What one transaction may still read. */
struct weigh_budget {
	size_t pairs, bytes;
};

static enum status
body_range(const struct timed *t, struct str body_tail, struct str place, struct buf *begin,
	   struct buf *end)
{
	TRY(key_of(t, TIMED_SPACE_BODY, body_tail, begin));
	buf_append_buf(end, begin);
	buf_append_byte(end, CATALOG_KEY_LAST);
	buf_append_str(begin, place);
	if (place.len)
		buf_append_byte(begin, CATALOG_KEY_NEXT);
	TRY(catalog_key_status(begin));
	return catalog_key_status(end);
}

/* All of the body has been read: its bytes are those of the bucket from now on. */
static enum status
body_weighed(struct timed *t, struct str entry, uint64_t bucket, uint64_t bytes)
{
	const struct history h = timed_history_of(t);
	AUTO(buf_release) struct buf gone = CATALOG_KEY_INIT;

	TRY(kv_clear(t->tx, entry));
	TRY(key_of(t, TIMED_SPACE_GONE, key_tail(t, entry), &gone));
	TRY(weight_set(t, buf_str(&gone), bytes, STR("")));
	return history_held_more(&h, bucket, bytes);
}

/* Goes on with one entry of WEIGH. */
static enum status
body_weigh(struct timed *t, struct str entry, struct weigh_budget *budget)
{
	const struct kv_range_options options = { .limit = budget->pairs,
						  .limit_bytes = budget->bytes,
						  .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct tuple_reader r = tuple_reader(key_tail(t, entry));
	uint64_t bucket, bytes, read = 0;
	struct kv_future *f;
	struct kv_range range;
	struct str value, place;
	size_t body_len;

	/* Whoever else weighs it has cleared the entry, or conflicts. */
	f = kv_get(t->tx, entry, KV_READ);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return STATUS_OK;
	TRY(tuple_next_u64(&r, &bucket));
	if (!timed_weight_parse(value, &bytes, &place))
		return STATUS_CORRUPT;
	TRY(body_range(t, r.rest, place, &begin, &end));
	body_len = t->db->prefix.len + TIMED_SPACE_BYTES + r.rest.len;
	f = kv_get_range(t->tx, buf_str(&begin), buf_str(&end), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	for (size_t i = 0; i < range.count; i++)
		read += range.pairs[i].key.len - t->db->prefix.len + range.pairs[i].value.len;
	assert(range.count <= budget->pairs);
	budget->pairs -= range.count;
	budget->bytes = read < budget->bytes ? budget->bytes - read : 0;
	if (!range.more)
		return body_weighed(t, entry, bucket, bytes + read);
	budget->bytes = 0;
	place = str_skip(range.pairs[range.count - 1].key, body_len);
	return weight_set(t, entry, bytes + read, place);
}

/* The first entries of WEIGH. */
static enum status
entries_read(struct timed *t, size_t limit, struct kv_range *ret)
{
	const struct kv_range_options options = { .limit = limit, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct kv_future *f;

	timed_key_space(&begin, t->db, TIMED_SPACE_WEIGH);
	buf_append_buf(&end, &begin);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	f = kv_get_range(t->tx, buf_str(&begin), buf_str(&end), &options);
	TRY(kv_future_wait(f));
	*ret = kv_future_range(f);
	return STATUS_OK;
}

enum status
timed_weigh(struct timed *t, uint64_t *ret_done, bool *ret_more)
{
	struct weigh_budget budget = { HISTORY_CLEAR_KEYS, WEIGH_BYTES };
	AUTO(buf_release) struct buf mark = CATALOG_KEY_INIT;
	struct kv_range entries;
	struct kv_future *f;
	struct str value;

	TRY(entries_read(t, WEIGH_BODIES, &entries));
	if (!entries.count)
		return STATUS_OK;
	*ret_more = true;
	TRY(mark_key(t, &mark));
	if (str_eq(entries.pairs[0].key, buf_str(&mark))) {
		f = kv_get(t->tx, buf_str(&mark), KV_READ);
		TRY(kv_future_wait(f));
		return kv_future_value(f, &value) ? mark_move(t, buf_str(&mark), value, ret_done)
						  : STATUS_OK;
	}
	for (size_t i = 0; i < entries.count && budget.pairs && budget.bytes; i++) {
		TRY(body_weigh(t, entries.pairs[i].key, &budget));
		++*ret_done;
	}
	return STATUS_OK;
}

enum status
timed_weigh_is_listed(struct timed *t, bool *ret)
{
	AUTO(buf_release) struct buf mark = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct str ignored;

	TRY(mark_key(t, &mark));
	f = kv_get(t->tx, buf_str(&mark), KV_READ);
	TRY(kv_future_wait(f));
	*ret = !kv_future_value(f, &ignored);
	return STATUS_OK;
}

enum status
timed_weigh_is_done(struct timed *t, bool *ret)
{
	struct kv_range entries;

	TRY(entries_read(t, 1, &entries));
	*ret = !entries.count;
	return STATUS_OK;
}
