#include "catalog/chore_pass.h"
#include "model/plain/plain_int.h"

enum {
	LOG_CLEAR_PAGE = 1000, /* events that are looked at to find where to clear to */
};

/* ---- Writing ---- */

enum status
plain_log(struct plain *p, enum plain_event_kind kind, const struct bson_value *id,
	  struct str detail)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	struct plain_event event = { .ms = p->now_ms,
				     .kind = kind,
				     .id = *id,
				     .detail = detail,
				     .session = p->session,
				     .number = p->number };
	uint8_t stamp[KV_VERSIONSTAMP_BYTES];
	size_t offset;

	if (p->events >= PLAIN_EVENTS)
		return err_set(p->err, STATUS_TX_TOO_LARGE,
			       "a transaction may change %d documents (PLAIN_EVENTS)",
			       PLAIN_EVENTS);
	event.detail_is_cut = detail.len > PLAIN_DETAIL_BYTES;
	if (event.detail_is_cut)
		event.detail = (struct str){ "", 0 };
	(void)buf_reserve(&value, event.detail.len + PLAIN_HEAD_BYTES);
	plain_event_put(&event, &value);
	TRY(buf_status(&value));
	plain_key_space(&key, p->db, PLAIN_SPACE_LOG);
	tuple_put_u64(&key, p->db->incarnation);
	catalog_stamp((uint16_t)p->events++, stamp);
	offset = tuple_put_versionstamp(&key, stamp);
	TRY(catalog_key_status(&key));
	if (p->before.bytes.len || p->after.bytes.len)
		TRY(plain_images_write(p, stamp, &event));
	return kv_set_versionstamped_key(p->tx, buf_str(&key), offset, buf_str(&value));
}

/* ---- Reading ---- */

/* The key of a Sequence; for all zero, what comes before every key of the log. */
static enum status
log_key(struct plain *p, const struct catalog_seq *seq, bool behind, struct buf *key)
{
	static const struct catalog_seq none;

	plain_key_space(key, p->db, PLAIN_SPACE_LOG);
	if (catalog_seq_cmp(seq, &none)) {
		tuple_put_u64(key, seq->bytes[0]);
		tuple_put_versionstamp(key, seq->bytes + 1);
		if (behind)
			buf_append_byte(key, CATALOG_KEY_NEXT);
	}
	return catalog_key_status(key);
}

static enum status
log_end(struct plain *p, struct buf *key)
{
	plain_key_space(key, p->db, PLAIN_SPACE_LOG);
	buf_append_byte(key, CATALOG_KEY_LAST);
	return catalog_key_status(key);
}

static enum status
event_read(struct plain *p, const struct kv_pair *pair, struct arena *arena,
	   struct plain_event *ret)
{
	AUTO(buf_release) struct buf space = CATALOG_KEY_INIT;
	enum status status;

	plain_key_space(&space, p->db, PLAIN_SPACE_LOG);
	TRY(catalog_key_status(&space));
	status = plain_seq_parse(str_skip(pair->key, space.len), &ret->seq);
	if (status == STATUS_OK)
		status = plain_event_parse(pair->value, arena, ret, p->err);
	if (status == STATUS_CORRUPT)
		return plain_fail_corrupt(p, pair->key, "an event");
	return status;
}

enum status
plain_log_read(struct plain *p, const struct catalog_seq *after, size_t limit, struct arena *arena,
	       struct plain_event **ret, size_t *ret_count)
{
	const struct kv_range_options options = { .limit = limit, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct plain_event *events = NULL;
	size_t count = 0, cap = 0;
	struct kv_pair pair;
	enum status status;

	TRY(log_key(p, after, true, &begin));
	TRY(log_end(p, &end));
	TRY(kv_scan_init(&scan, p->tx, buf_str(&begin), buf_str(&end), &options));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		events = arena_grow(arena, events, count, &cap, sizeof(*events));
		if (!events)
			return STATUS_LIMIT;
		events[count] = (struct plain_event){ 0 };
		TRY(event_read(p, &pair, arena, &events[count]));
		count++;
	}
	if (status != STATUS_NOT_FOUND)
		return status;
	*ret = events;
	*ret_count = count;
	return STATUS_OK;
}

enum status
plain_log_last(struct plain *p, struct catalog_seq *ret)
{
	const struct kv_range_options options = { .limit = 1,
						  .reverse = true,
						  .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct kv_range range;
	struct kv_future *f;

	*ret = (struct catalog_seq){ 0 };
	TRY(log_key(p, ret, false, &begin));
	TRY(log_end(p, &end));
	f = kv_get_range(p->tx, buf_str(&begin), buf_str(&end), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	if (!range.count)
		return STATUS_OK;
	if (plain_seq_parse(str_skip(range.pairs[0].key, begin.len), ret) != STATUS_OK)
		return plain_fail_corrupt(p, range.pairs[0].key, "the key of an event");
	return STATUS_OK;
}

/* ---- Clearing ---- */

/* Up to the first of a page of events that is new enough; the last event stays. */
enum status
plain_log_clear(struct plain *p, uint64_t ms, bool *ret_more)
{
	const struct kv_range_options options = { .limit = LOG_CLEAR_PAGE, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct arena *arena = arena_new(2 * KV_LIMIT_RANGE_BYTES);
	enum status status = arena ? STATUS_OK : STATUS_NOMEM;
	static const struct catalog_seq none;
	struct kv_range range = { 0 };
	size_t old = 0;

	if (status == STATUS_OK)
		status = log_key(p, &none, false, &begin);
	if (status == STATUS_OK)
		status = log_end(p, &end);
	if (status == STATUS_OK) {
		struct kv_future *f = kv_get_range(p->tx, buf_str(&begin), buf_str(&end), &options);

		status = kv_future_wait(f);
		if (status == STATUS_OK)
			range = kv_future_range(f);
	}
	for (size_t at = 0; status == STATUS_OK && at + 1 < range.count; at++) {
		struct plain_event event = { 0 };

		arena_clear(arena);
		status = event_read(p, &range.pairs[at], arena, &event);
		/* One that cannot be read is old if one behind it is. */
		if (chore_may_pass(status)) {
			status = STATUS_OK;
			continue;
		}
		if (status != STATUS_OK || event.ms >= ms)
			break;
		old = at + 1;
	}
	arena_free(arena);
	TRY(status);
	*ret_more = range.more && old + 1 == range.count;
	if (!old)
		return STATUS_OK;
	TRY(plain_images_clear(p, str_skip(range.pairs[old].key, begin.len)));
	return kv_clear_range(p->tx, buf_str(&begin), range.pairs[old].key);
}
