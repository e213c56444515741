#include "door/mongo/txn/session.h"

#include <assert.h>

#include "base/steady.h"
#include "catalog/check.h"
#include "catalog/format.h"
#include "catalog/keys.h"
#include "kv/keyspace.h"

enum {
	SESSION_FORMAT = 1,
	SESSION_HEAD_BYTES = 64, /* of a row beside its results */
	SESSION_SWEEP_KEYS = 500,
};

/* ---- Keys and rows ---- */

static void
session_key_root(struct buf *key)
{
	buf_clear(key);
	tuple_put_u64(key, KV_ROOT);
	tuple_put_u64(key, KV_ROOT_SESSIONS);
}

static enum status
session_key(const struct session_id *id, struct buf *key)
{
	assert(id->id.len == SESSION_ID_BYTES);
	session_key_root(key);
	tuple_put_uuid(key, (const uint8_t *)id->id.ptr);
	tuple_put_bytes(key, id->user);
	return catalog_key_status(key);
}

static enum status
session_key_page(const struct session_id *id, uint64_t page, struct buf *key)
{
	TRY(session_key(id, key));
	tuple_put_u64(key, page);
	return catalog_key_status(key);
}

static enum status
row_parse(struct str value, struct session_row *ret, struct err *err)
{
	struct session_row row = { .is_there = true };
	struct tuple_reader r = tuple_reader(value);
	uint64_t format, kind;

	TRY(catalog_format_next(&r, "session", SESSION_FORMAT, &format, err));
	TRY(tuple_next_u64(&r, &row.ms));
	TRY(tuple_next_i64(&r, &row.number));
	TRY(tuple_next_u64(&r, &kind));
	TRY(tuple_next_u64(&r, &row.pages));
	/* Keys of pages are cleared up to the one behind the last. */
	if (kind < SESSION_WRITES || kind > SESSION_ABORTED || row.pages == UINT64_MAX)
		return STATUS_CORRUPT;
	row.kind = (enum session_kind)kind;
	row.results = r.rest;
	*ret = row;
	return STATUS_OK;
}

static void
row_put(const struct session_row *row, struct buf *value)
{
	tuple_put_u64(value, SESSION_FORMAT);
	tuple_put_u64(value, row->ms);
	tuple_put_i64(value, row->number);
	tuple_put_u64(value, row->kind);
	tuple_put_u64(value, row->pages);
	buf_append_str(value, row->results);
}

/* ---- Reading ---- */

enum status
session_read(struct kv_tx *tx, const struct session_id *id, struct session_row *ret,
	     struct err *err)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct str value;
	enum status status;

	*ret = (struct session_row){ 0 };
	TRY(session_key(id, &key));
	f = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return STATUS_OK;
	status = row_parse(value, ret, err);
	if (status == STATUS_OK || status == STATUS_NEWER)
		return status;
	return err_set(err, STATUS_CORRUPT, "the row of a session cannot be read");
}

enum status
session_results(struct kv_tx *tx, const struct session_id *id, const struct session_row *row,
		uint64_t after, struct buf *ret)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct kv_pair pair;
	enum status status;

	/* Pages are only ever added to a number's row: a reader that knows more knows another's. */
	assert(after <= row->pages);
	/* What the row itself has is the first part of the results. */
	if (!after)
		buf_append_str(ret, row->results);
	if (row->pages <= after)
		return buf_status(ret);
	TRY(session_key_page(id, after + 1, &begin));
	TRY(session_key_page(id, row->pages + 1, &end));
	TRY(kv_scan_init(&scan, tx, buf_str(&begin), buf_str(&end), NULL));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK)
		buf_append_str(ret, pair.value);
	return status == STATUS_NOT_FOUND ? buf_status(ret) : status;
}

/* ---- Writing ---- */

static enum status
pages_clear(struct kv_tx *tx, const struct session_id *id, uint64_t pages)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	assert(pages > 0 && pages < UINT64_MAX);
	TRY(session_key_page(id, 1, &begin));
	TRY(session_key_page(id, pages + 1, &end));
	return kv_clear_range(tx, buf_str(&begin), buf_str(&end));
}

static enum status
pages_add(struct kv_tx *tx, const struct session_id *id, struct str results, uint64_t *pages)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	while (results.len) {
		size_t n = results.len < SESSION_PAGE_BYTES ? results.len : SESSION_PAGE_BYTES;

		TRY(session_key_page(id, ++*pages, &key));
		TRY(kv_set(tx, buf_str(&key), str_of(results.ptr, n)));
		results = str_skip(results, n);
	}
	return STATUS_OK;
}

enum status
session_write(struct kv_tx *tx, const struct session_id *id, const struct session_row *old,
	      int64_t number, enum session_kind kind, struct str results)
{
	AUTO(buf_release) struct buf value = BUF_SHORT(SESSION_HEAD_BYTES + SESSION_WITHIN_BYTES);
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	bool goes_on = old->is_there && old->number == number && old->kind == kind;
	struct session_row row = { .ms = steady_ms(), .number = number, .kind = kind };

	/* Numbers of a session only grow: callers have refused an older one by the row. */
	assert(!old->is_there || old->number <= number);
	assert(!results.len || kind == SESSION_WRITES);
	if (goes_on) {
		row.pages = old->pages;
		row.results = old->results;
	} else if (old->pages) {
		TRY(pages_clear(tx, id, old->pages));
	}
	if (!goes_on && results.len <= SESSION_WITHIN_BYTES)
		row.results = results;
	else
		TRY(pages_add(tx, id, results, &row.pages));
	TRY(session_key(id, &key));
	row_put(&row, &value);
	TRY(buf_status(&value));
	return kv_set(tx, buf_str(&key), buf_str(&value));
}

/* ---- Removing ---- */

struct sweep {
	uint64_t ms;
	struct buf *place; /* behind the last key that was looked at; empty: from the first */
	struct buf next;
	bool more;
	struct err *err;
};

/* Clears the row, and its pages, if it is old enough. */
static enum status
sweep_row(struct sweep *s, struct kv_tx *tx, const struct kv_pair *pair)
{
	AUTO(buf_release) struct buf next = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct session_row row;
	struct err ignored = { 0 };

	/* What cannot be read is told by `frond verify`, and stays. */
	if (row_parse(pair->value, &row, &ignored) != STATUS_OK || row.ms >= s->ms)
		return STATUS_OK;
	buf_append_str(&next, pair->key);
	buf_append_byte(&next, CATALOG_KEY_NEXT);
	TRY(catalog_key_status(&next));
	/* If it is used again meanwhile, it stays. */
	TRY(kv_add_read_conflict_range(tx, pair->key, buf_str(&next)));
	buf_append_str(&end, pair->key);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	return kv_clear_range(tx, pair->key, buf_str(&end));
}

/* True for the key of a session itself, and not of one of its pages. */
static bool
is_row(struct str key)
{
	struct tuple_reader r = tuple_reader(key);
	struct tuple_elem e;

	for (int i = 0; i < 4; i++)
		if (tuple_next(&r, &e) != STATUS_OK)
			return false;
	return !r.rest.len;
}

static enum status
sessions_sweep_body(struct kv_tx *tx, void *arg)
{
	const struct kv_range_options options = { .limit = SESSION_SWEEP_KEYS,
						  .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct sweep *s = arg;
	struct kv_range range;
	struct kv_future *f;

	session_key_root(&end);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	if (s->place->len)
		buf_append_buf(&begin, s->place);
	else
		session_key_root(&begin);
	TRY(catalog_key_status(&begin));
	TRY(catalog_key_status(&end));
	f = kv_get_range(tx, buf_str(&begin), buf_str(&end), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	for (size_t i = 0; i < range.count; i++)
		if (is_row(range.pairs[i].key))
			TRY(sweep_row(s, tx, &range.pairs[i]));
	s->more = range.more && range.count;
	buf_clear(&s->next);
	if (s->more) {
		buf_append_str(&s->next, range.pairs[range.count - 1].key);
		buf_append_byte(&s->next, CATALOG_KEY_NEXT);
	}
	return buf_status(&s->next);
}

enum status
session_sweep(struct kv_store *store, uint64_t ms, struct buf *place, bool *ret_more,
	      struct err *err)
{
	struct sweep s = { .ms = ms, .place = place, .next = CATALOG_KEY_INIT, .err = err };
	enum status status = kv_run(store, sessions_sweep_body, &s, NULL, err);

	if (status == STATUS_OK) {
		buf_set_buf(place, &s.next);
		status = buf_status(place);
	}
	buf_release(&s.next);
	*ret_more = status == STATUS_OK && s.more;
	return status;
}

/* ---- The check ---- */

static void
session_verify(struct catalog_verify *v, struct tuple_reader key, const struct kv_pair *pair)
{
	struct err err = { 0 };
	struct session_row row;
	struct tuple_elem e;
	enum status status;
	uint64_t page;

	if (tuple_next(&key, &e) != STATUS_OK || e.kind != TUPLE_UUID ||
	    tuple_next(&key, &e) != STATUS_OK || e.kind != TUPLE_BYTES ||
	    (key.rest.len && (tuple_next_u64(&key, &page) != STATUS_OK || key.rest.len))) {
		catalog_verify_found(v, CATALOG_FINDING_KEY, pair->key, "not a session");
		return;
	}
	if (!is_row(pair->key))
		return;
	status = row_parse(pair->value, &row, &err);
	if (status != STATUS_OK)
		catalog_verify_unreadable(v, status, &err, pair->key, "not a session's row");
}

void
session_register(void)
{
	catalog_verify_register(KV_ROOT_SESSIONS, session_verify);
}
