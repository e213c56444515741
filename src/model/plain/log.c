#include "model/plain/plain_int.h"

enum {
	IMAGE_PART_BYTES = 90000,
	IMAGE_BEFORE = 1, /* stored: never renumber */
	IMAGE_AFTER = 2,
	LOG_CLEAR_PAGE = 1000, /* events that are looked at to find where to clear to */
};

/* ---- Writing ---- */

/* (P, IMAGES, Incarnation, versionstamp, before or after, n): the nth part of a document. */
static enum status
image_write(struct plain *p, const uint8_t stamp[KV_VERSIONSTAMP_BYTES], uint64_t which,
	    struct str image)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	size_t offset;

	if (image.len > PLAIN_IMAGE_BYTES)
		return STATUS_OK;
	for (uint64_t n = 0; image.len; n++) {
		struct str part = image.len > IMAGE_PART_BYTES ? str_of(image.ptr, IMAGE_PART_BYTES)
							       : image;

		plain_key_space(&key, p->db, PLAIN_SPACE_IMAGES);
		tuple_put_u64(&key, p->db->incarnation);
		offset = tuple_put_versionstamp(&key, stamp);
		tuple_put_u64(&key, which);
		tuple_put_u64(&key, n);
		TRY(catalog_key_status(&key));
		TRY(kv_set_versionstamped_key(p->tx, buf_str(&key), offset, part));
		image = str_skip(image, part.len);
	}
	return STATUS_OK;
}

/* Images are of one event. */
static enum status
images_write(struct plain *p, const uint8_t stamp[KV_VERSIONSTAMP_BYTES],
	     const struct plain_event *event)
{
	struct str before = p->before, after = p->after;

	p->before = p->after = STR("");
	/* An event of a whole document has it already. */
	if (event->detail.len && event->kind != PLAIN_EVENT_UPDATE)
		after = STR("");
	TRY(image_write(p, stamp, IMAGE_BEFORE, before));
	return image_write(p, stamp, IMAGE_AFTER, after);
}

enum status
plain_log(struct plain *p, enum plain_event_kind kind, const struct bson_value *id,
	  struct str detail)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	struct plain_event event = { .ms = p->now_ms, .kind = kind, .id = *id, .detail = detail };
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
	if (p->before.len || p->after.len)
		TRY(images_write(p, stamp, &event));
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
	status = plain_seq_parse(str_skip(pair->key, space.len), &ret->seq);
	if (status == STATUS_OK)
		status = plain_event_parse(pair->value, arena, ret, p->err);
	if (status == STATUS_CORRUPT || status == STATUS_NOT_FOUND)
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

enum status
plain_image_read(struct plain *p, const struct catalog_seq *seq, bool after, struct arena *arena,
		 struct str *ret)
{
	const struct kv_range_options options = { .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf image = BUF_INIT(PLAIN_IMAGE_BYTES);
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct kv_pair pair;
	enum status status;

	plain_key_space(&begin, p->db, PLAIN_SPACE_IMAGES);
	tuple_put_u64(&begin, seq->bytes[0]);
	tuple_put_versionstamp(&begin, seq->bytes + 1);
	tuple_put_u64(&begin, after ? IMAGE_AFTER : IMAGE_BEFORE);
	TRY(plain_key_end(buf_str(&begin), &end));
	TRY(kv_scan_init(&scan, p->tx, buf_str(&begin), buf_str(&end), &options));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK)
		buf_append_str(&image, pair.value);
	if (status != STATUS_NOT_FOUND)
		return status;
	TRY(buf_status(&image));
	if (!image.len)
		return STATUS_NOT_FOUND;
	if (bson_length(buf_str(&image)) != image.len)
		return plain_fail_corrupt(p, buf_str(&begin), "a document of an event");
	*ret = arena_dup(arena, buf_str(&image));
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

/* ---- Clearing ---- */

/* The images of events before the one with that key. */
static enum status
images_clear(struct plain *p, struct str key)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	plain_key_space(&begin, p->db, PLAIN_SPACE_LOG);
	key = str_skip(key, begin.len);
	plain_key_space(&begin, p->db, PLAIN_SPACE_IMAGES);
	buf_append_str(&end, buf_str(&begin));
	buf_append_str(&end, key);
	TRY(catalog_key_status(&begin));
	TRY(catalog_key_status(&end));
	return kv_clear_range(p->tx, buf_str(&begin), buf_str(&end));
}

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
	while (status == STATUS_OK && old + 1 < range.count) {
		struct plain_event event = { 0 };

		arena_clear(arena);
		status = event_read(p, &range.pairs[old], arena, &event);
		if (status != STATUS_OK || event.ms >= ms)
			break;
		old++;
	}
	arena_free(arena);
	TRY(status);
	*ret_more = range.more && old + 1 == range.count;
	if (!old)
		return STATUS_OK;
	TRY(images_clear(p, range.pairs[old].key));
	return kv_clear_range(p->tx, buf_str(&begin), range.pairs[old].key);
}
