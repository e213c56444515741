/*
 * What becomes of collections, in one log of the whole store:
 *
 *     (ROOT, 15, Incarnation, versionstamp) = (format, ms, kind, number, uuid, name, to, length),
 *                                             and a document of that length behind it
 *     (ROOT, 15)                            = the versionstamp of the newest, which is watched
 */
#include "base/steady.h"
#include "catalog/check.h"
#include "catalog/chore_pass.h"
#include "catalog/format.h"
#include "kv/keyspace.h"
#include "model/plain/plain_int.h"

enum {
	NOTICE_FORMAT = 2,
	NOTICE_FORMAT_BARE = 1, /* without the length of the document */
	NOTICE_KINDS = PLAIN_NOTICE_INDEXES_DROPPED,
	NOTICES_CLEAR_PAGE = 1000,
};

/* ---- Keys and records ---- */

static void
notices_key(struct buf *key)
{
	buf_clear(key);
	tuple_put_u64(key, KV_ROOT);
	tuple_put_u64(key, KV_ROOT_NOTICES);
}

/* All notices from that Sequence on; for all zero, from the first. */
static enum status
notices_range(const struct catalog_seq *from, struct buf *begin, struct buf *end)
{
	static const struct catalog_seq none;

	notices_key(begin);
	if (catalog_seq_cmp(from, &none)) {
		tuple_put_u64(begin, from->bytes[0]);
		tuple_put_versionstamp(begin, from->bytes + 1);
	} else {
		buf_append_byte(begin, CATALOG_KEY_NEXT);
	}
	notices_key(end);
	buf_append_byte(end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(begin));
	return catalog_key_status(end);
}

static void
notice_record_put(const struct plain_notice *notice, struct buf *value)
{
	tuple_put_u64(value, NOTICE_FORMAT);
	tuple_put_u64(value, notice->ms);
	tuple_put_u64(value, notice->kind);
	tuple_put_u64(value, notice->number);
	tuple_put_uuid(value, notice->uuid);
	tuple_put_str(value, notice->name);
	tuple_put_str(value, notice->to);
	/* Behind a text, a document may begin with what would be taken for more of it. */
	tuple_put_u64(value, notice->detail.len);
	buf_append_str(value, notice->detail);
}

/* STATUS_NEWER, explained; STATUS_CORRUPT. The texts are copies in the arena. */
static enum status
notice_record_parse(struct str value, struct arena *arena, struct plain_notice *ret,
		    struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format, kind, length;
	struct tuple_elem e;

	TRY(catalog_format_next(&r, "notice of a collection", NOTICE_FORMAT, &format, err));
	TRY(tuple_next_u64(&r, &ret->ms));
	TRY(tuple_next_u64(&r, &kind));
	TRY(tuple_next_u64(&r, &ret->number));
	TRY(tuple_next_elem(&r, &e));
	if (e.kind != TUPLE_UUID || !kind || kind > NOTICE_KINDS)
		return STATUS_CORRUPT;
	memcpy(ret->uuid, e.raw.ptr, sizeof(ret->uuid));
	ret->kind = (enum plain_notice_kind)kind;
	TRY(catalog_next_text(&r, TUPLE_STRING, arena, true, &ret->name));
	TRY(catalog_next_text(&r, TUPLE_STRING, arena, true, &ret->to));
	if (format != NOTICE_FORMAT_BARE) {
		TRY(tuple_next_u64(&r, &length));
		if (length != r.rest.len)
			return STATUS_CORRUPT;
	}
	if (bson_length(r.rest) != r.rest.len)
		return STATUS_CORRUPT;
	ret->detail = arena_dup(arena, r.rest);
	return ret->detail.ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
notice_read(const struct kv_pair *pair, struct arena *arena, struct plain_notice *ret,
	    struct err *err)
{
	AUTO(buf_release) struct buf root = CATALOG_KEY_INIT;
	enum status status;

	notices_key(&root);
	TRY(catalog_key_status(&root));
	status = plain_seq_parse(str_skip(pair->key, root.len), &ret->seq);
	if (status == STATUS_OK)
		status = notice_record_parse(pair->value, arena, ret, err);
	if (status == STATUS_CORRUPT || status == STATUS_NOT_FOUND)
		return err_set(err, STATUS_CORRUPT, "a notice of a collection cannot be read");
	return status;
}

/* ---- Writing ---- */

static enum status
notices_wake(struct kv_tx *tx)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	uint8_t stamp[KV_VERSIONSTAMP_BYTES];

	notices_key(&key);
	TRY(catalog_key_status(&key));
	catalog_stamp(0, stamp);
	return kv_set_versionstamped_value(tx, buf_str(&key), str_of(stamp, sizeof(stamp)), 0);
}

enum status
plain_notice_put(struct kv_tx *tx, const struct catalog_db *db, enum plain_notice_kind kind,
		 struct str name, struct str to, struct str detail, unsigned *events,
		 struct err *err)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	struct plain_notice notice = {
		.ms = steady_ms(),
		.kind = kind,
		.number = db->number,
		.name = name,
		.to = to,
		.detail = detail.len && detail.len <= PLAIN_DETAIL_BYTES ? detail : BSON_EMPTY,
	};
	uint8_t stamp[KV_VERSIONSTAMP_BYTES];
	uint8_t incarnation;
	size_t offset;

	if (*events >= PLAIN_EVENTS)
		return err_set(err, STATUS_TX_TOO_LARGE,
			       "a transaction may change %d documents (PLAIN_EVENTS)",
			       PLAIN_EVENTS);
	memcpy(notice.uuid, db->uuid, sizeof(notice.uuid));
	notice_record_put(&notice, &value);
	TRY(buf_status(&value));
	TRY(catalog_store_incarnation(tx, &incarnation));
	notices_key(&key);
	tuple_put_u64(&key, incarnation);
	catalog_stamp((uint16_t)(*events)++, stamp);
	offset = tuple_put_versionstamp(&key, stamp);
	TRY(catalog_key_status(&key));
	TRY(notices_wake(tx));
	return kv_set_versionstamped_key(tx, buf_str(&key), offset, buf_str(&value));
}

/* ---- Reading ---- */

enum status
plain_notices_read(struct kv_tx *tx, const struct catalog_seq *from, size_t most,
		   plain_notice_wanted *wanted, void *arg, struct arena *arena,
		   struct plain_notice **ret, size_t *ret_count, struct err *err)
{
	const struct kv_range_options options = { .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct plain_notice *notices = NULL;
	size_t count = 0, cap = 0;
	struct kv_pair pair;
	enum status status;

	TRY(notices_range(from, &begin, &end));
	TRY(kv_scan_init(&scan, tx, buf_str(&begin), buf_str(&end), &options));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		notices = arena_grow(arena, notices, count, &cap, sizeof(*notices));
		if (!notices)
			return STATUS_LIMIT;
		notices[count] = (struct plain_notice){ 0 };
		TRY(notice_read(&pair, arena, &notices[count], err));
		if (!wanted(arg, &notices[count]))
			continue;
		if (++count > most)
			return STATUS_LIMIT;
	}
	if (status != STATUS_NOT_FOUND)
		return status;
	*ret = notices;
	*ret_count = count;
	return STATUS_OK;
}

enum status
plain_notices_first(struct kv_tx *tx, struct arena *arena, struct plain_notice *ret,
		    struct err *err)
{
	const struct kv_range_options options = { .limit = 1, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	static const struct catalog_seq none;
	struct kv_range range;
	struct kv_future *f;

	TRY(notices_range(&none, &begin, &end));
	f = kv_get_range(tx, buf_str(&begin), buf_str(&end), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	return range.count ? notice_read(&range.pairs[0], arena, ret, err) : STATUS_NOT_FOUND;
}

enum status
plain_notices_watch(struct kv_tx *tx, struct kv_future **ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	notices_key(&key);
	TRY(catalog_key_status(&key));
	*ret = kv_watch(tx, buf_str(&key));
	return STATUS_OK;
}

/* ---- Clearing ---- */

/*
 * The old ones of a page but the newest of them, which tells readers that others have been cleared.
 */
enum status
plain_notices_clear(struct kv_tx *tx, uint64_t ms, bool *ret_more, struct err *err)
{
	const struct kv_range_options options = { .limit = NOTICES_CLEAR_PAGE,
						  .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct arena *arena = arena_new(2 * KV_LIMIT_RANGE_BYTES);
	enum status status = arena ? STATUS_OK : STATUS_NOMEM;
	static const struct catalog_seq none;
	struct kv_range range = { 0 };
	size_t old = 0;

	if (status == STATUS_OK)
		status = notices_range(&none, &begin, &end);
	if (status == STATUS_OK) {
		struct kv_future *f = kv_get_range(tx, buf_str(&begin), buf_str(&end), &options);

		status = kv_future_wait(f);
		if (status == STATUS_OK)
			range = kv_future_range(f);
	}
	for (size_t at = 0; status == STATUS_OK && at < range.count; at++) {
		struct plain_notice notice = { 0 };

		arena_clear(arena);
		status = notice_read(&range.pairs[at], arena, &notice, err);
		/* One that cannot be read is old if one behind it is. */
		if (chore_may_pass(status)) {
			status = STATUS_OK;
			continue;
		}
		if (status != STATUS_OK || notice.ms >= ms)
			break;
		old = at + 1;
	}
	arena_free(arena);
	TRY(status);
	*ret_more = range.more && old == range.count;
	return old > 1 ? kv_clear_range(tx, buf_str(&begin), range.pairs[old - 1].key) : STATUS_OK;
}

/* ---- The check ---- */

void
plain_notices_verify(struct catalog_verify *v, struct tuple_reader key, const struct kv_pair *pair)
{
	struct arena *arena = arena_new(2 * KV_LIMIT_RANGE_BYTES);
	struct plain_notice notice = { 0 };
	struct err err = { 0 };
	enum status status;

	if (!key.rest.len) {
		if (pair->value.len != KV_VERSIONSTAMP_BYTES)
			catalog_verify_found(v, CATALOG_FINDING_VALUE, pair->key,
					     "not a versionstamp");
	} else if (!arena) {
		v->starved = true;
	} else {
		status = notice_read(pair, arena, &notice, &err);
		if (!catalog_verify_parsed_in(v, status, arena))
			catalog_verify_unreadable(v, status, &err, pair->key, "not a notice");
	}
	arena_free(arena);
}
