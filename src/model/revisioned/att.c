/* Attachments as they are stored: pointers below their revision, data by id, uploads under way. */
#include <limits.h>
#include <stdlib.h>

#include "base/steady.h"
#include "catalog/chore_pass.h"
#include "kv/keyspace.h"
#include "model/revisioned/record.h"
#include "model/revisioned/revisioned_int.h"

/* ---- Keys ---- */

void
rev_key_att(struct buf *key, const struct catalog_db *db, struct str space,
	    const uint8_t id[REV_ATT_ID_BYTES])
{
	rev_key_named(key, db, REV_SUBSPACE_ATTACHMENTS, space);
	tuple_put_uuid(key, id);
}

void
rev_key_upload(struct buf *key, uint64_t number, const uint8_t id[REV_ATT_ID_BYTES])
{
	buf_clear(key);
	tuple_put_u64(key, KV_ROOT);
	tuple_put_u64(key, KV_ROOT_UPLOADS);
	tuple_put_u64(key, number);
	tuple_put_uuid(key, id);
}

/* ---- Pointers ---- */

enum status
rev_att_list_add(struct rev_att_list *list, struct str path, struct str value, struct arena *arena,
		 struct err *err)
{
	TRY(catalog_array_grow(arena, (void **)&list->atts, sizeof(*list->atts), list->count,
			       &list->cap));
	TRY(catalog_array_grow(arena, (void **)&list->orders, sizeof(*list->orders), list->count,
			       &list->orders_cap));
	TRY(rev_att_parse(path, value, arena, &list->atts[list->count], &list->orders[list->count],
			  err));
	list->count++;
	return STATUS_OK;
}

/* Insertion sort: the pointer records come by name, and there are nearly always few. */
void
rev_att_list_sort(struct rev_att_list *list)
{
	for (size_t i = 1; i < list->count; i++) {
		struct rev_att att = list->atts[i];
		uint64_t order = list->orders[i];
		size_t to = i;

		for (; to > 0 && list->orders[to - 1] > order; to--) {
			list->atts[to] = list->atts[to - 1];
			list->orders[to] = list->orders[to - 1];
		}
		list->atts[to] = att;
		list->orders[to] = order;
	}
}

static void
att_pointer_bounds(struct buf *key, const struct catalog_db *db, struct str id, struct rev_id rev,
		   bool deleted, size_t *ret_begin_len)
{
	rev_key_rev(key, db, REV_SUBSPACE_DOCUMENTS, id, deleted, rev);
	tuple_put_null(key);
	*ret_begin_len = key->len;
	if (buf_reserve(key, key->len + 1)) {
		buf_append(key, key->ptr, key->len);
		buf_append_byte(key, CATALOG_KEY_LAST);
	}
}

enum status
rev_atts_get(struct kv_tx *tx, const struct catalog_db *db, struct str id, struct rev_id rev,
	     bool deleted, struct buf *key, struct kv_future **ret)
{
	struct kv_range_options options = { .mode = KV_READ };
	size_t len;

	att_pointer_bounds(key, db, id, rev, deleted, &len);
	TRY(catalog_key_status(key));
	*ret = kv_get_range(tx, str_of(key->ptr, len), str_of(key->ptr + len, key->len - len),
			    &options);
	return STATUS_OK;
}

enum status
rev_atts_wait(struct kv_tx *tx, const struct catalog_db *db, struct str id, struct rev_id rev,
	      bool deleted, struct kv_future *f, struct buf *key, struct arena *arena,
	      struct rev_att_list *ret)
{
	struct rev_att_list list = { 0 };
	size_t len;

	att_pointer_bounds(key, db, id, rev, deleted, &len);
	TRY(catalog_key_status(key));
	for (;;) {
		AUTO(buf_release) struct buf next = BUF_INIT(KV_LIMIT_KEY_BYTES + 1);
		struct kv_range_options options = { .mode = KV_READ };
		struct kv_range range;

		TRY(kv_future_wait(f));
		range = kv_future_range(f);
		for (size_t i = 0; i < range.count; i++)
			TRY(rev_att_list_add(&list,
					     str_skip(range.pairs[i].key, len - REV_ATT_MARK.len),
					     range.pairs[i].value, arena, kv_tx_err(tx)));
		if (!range.more || range.count == 0)
			break;
		buf_append_str(&next, range.pairs[range.count - 1].key);
		buf_append_byte(&next, CATALOG_KEY_NEXT);
		TRY(buf_status(&next));
		f = kv_get_range(tx, buf_str(&next), str_of(key->ptr + len, key->len - len),
				 &options);
	}
	rev_att_list_sort(&list);
	*ret = list;
	return STATUS_OK;
}

enum status
rev_att_read(struct kv_tx *tx, const struct catalog_db *db, struct str id, struct rev_id rev,
	     bool deleted, struct str name, struct arena *arena, struct rev_att *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *root, *pointer;
	struct str value;
	uint64_t order;
	size_t len;

	rev_key_rev(&key, db, REV_SUBSPACE_DOCUMENTS, id, deleted, rev);
	TRY(catalog_key_status(&key));
	root = kv_get(tx, buf_str(&key), KV_READ);
	len = key.len;
	tuple_put_null(&key);
	tuple_put_str(&key, name);
	if (catalog_key_status(&key) == STATUS_KEY_TOO_LARGE || key.len > kv_key_limit(tx)) {
		TRY(kv_future_wait(root)); /* no attachment has such a name */
		return kv_future_value(root, &value) ? STATUS_DELETED : STATUS_NOT_FOUND;
	}
	TRY(catalog_key_status(&key));
	pointer = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(root));
	if (!kv_future_value(root, &value))
		return STATUS_NOT_FOUND;
	TRY(kv_future_wait(pointer));
	if (!kv_future_value(pointer, &value))
		return STATUS_DELETED;
	return rev_att_parse(str_skip(buf_str(&key), len), value, arena, ret, &order,
			     kv_tx_err(tx));
}

/* ---- Data ---- */

enum status
rev_att_write_data(struct kv_tx *tx, const struct catalog_db *db,
		   const uint8_t id[REV_ATT_ID_BYTES], uint64_t first, struct str data,
		   struct buf *key)
{
	while (data.len) {
		size_t n = data.len < REV_ATT_CHUNK_BYTES ? data.len : REV_ATT_CHUNK_BYTES;

		rev_key_att(key, db, REV_ATT_SPACE_DATA, id);
		tuple_put_u64(key, first++);
		TRY(catalog_key_status(key));
		TRY(kv_set(tx, buf_str(key), str_of(data.ptr, n)));
		data = str_skip(data, n);
	}
	return STATUS_OK;
}

enum status
rev_att_clear(struct kv_tx *tx, const struct catalog_db *db, const uint8_t id[REV_ATT_ID_BYTES],
	      struct buf *key)
{
	rev_key_att(key, db, REV_ATT_SPACE_REFS, id);
	TRY(catalog_key_status(key));
	TRY(kv_clear(tx, buf_str(key)));
	rev_key_att(key, db, REV_ATT_SPACE_DATA, id);
	TRY(catalog_key_status(key));
	return doc_clear(tx, buf_str(key));
}

/* ---- The sweep ---- */

enum {
	SWEEP_PAGE = 1000,    /* upload records that one transaction reads */
	SWEEP_REMOVALS = 200, /* uploads that one transaction removes */
	SWEEP_PAGES = 100,
};

struct uploads_sweep {
	uint64_t until_ms; /* the last sign of life of what is removed, at the latest */
	struct buf next;   /* where the next page begins */
	struct buf end;
	bool more;
	bool passes;      /* over records that it cannot read */
	uint64_t removed; /* by the page */
};

/* Removes the upload with this record, if its last sign of life is old enough. */
static enum status
uploads_sweep_record(struct uploads_sweep *s, struct kv_tx *tx, const struct kv_pair *pair,
		     struct buf *key)
{
	struct tuple_reader k = tuple_reader(pair->key);
	AUTO(buf_release) struct buf prefix = BUF_INIT(16);
	AUTO(buf_release) struct buf behind = BUF_INIT(KV_LIMIT_KEY_BYTES + 1);
	struct catalog_db db = { 0 };
	struct rev_upload_record record;
	struct tuple_elem id;
	uint64_t skipped;

	TRY(tuple_next_u64(&k, &skipped));
	TRY(tuple_next_u64(&k, &skipped));
	TRY(tuple_next_u64(&k, &db.number));
	if (tuple_next(&k, &id) != STATUS_OK || id.kind != TUPLE_UUID)
		return STATUS_CORRUPT;
	TRY(rev_upload_record_parse(pair->value, &record, kv_tx_err(tx)));
	if (record.last_ms > s->until_ms)
		return STATUS_OK;
	/*
	 * The conflict range makes this transaction fail if the upload gives a sign of life
	 * meanwhile, or if a revision takes it over.
	 */
	buf_append_str(&behind, pair->key);
	buf_append_byte(&behind, CATALOG_KEY_NEXT);
	TRY(buf_status(&behind));
	TRY(kv_add_read_conflict_range(tx, pair->key, buf_str(&behind)));
	TRY(kv_clear(tx, pair->key));
	/* Only the prefix of the database is needed. The database itself may be deleted already. */
	tuple_put_u64(&prefix, db.number);
	TRY(buf_status(&prefix));
	db.prefix = buf_str(&prefix);
	s->removed++;
	return rev_att_clear(tx, &db, (const uint8_t *)id.raw.ptr, key);
}

/* A record is parsed before anything is written: one that cannot be read stays as it is. */
static enum status
uploads_sweep_or_pass(struct uploads_sweep *s, struct kv_tx *tx, const struct kv_pair *pair,
		      struct buf *key)
{
	uint64_t removed = s->removed;
	enum status status = uploads_sweep_record(s, tx, pair, key);

	if (!s->passes || s->removed != removed)
		return status;
	return chore_pass_over(REV_UPLOADS_CHORE, pair->key, status, kv_tx_err(tx));
}

static enum status
uploads_sweep_page(struct kv_tx *tx, void *arg)
{
	struct uploads_sweep *s = arg;
	const struct kv_range_options options = { .limit = SWEEP_PAGE, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *f = kv_get_range(tx, buf_str(&s->next), buf_str(&s->end), &options);
	struct kv_range range;
	size_t seen = 0;

	s->removed = 0;
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	for (; seen < range.count && s->removed < SWEEP_REMOVALS; seen++)
		TRY(uploads_sweep_or_pass(s, tx, &range.pairs[seen], &key));
	s->more = range.more || seen < range.count;
	if (!s->more)
		return STATUS_OK;
	/*
	 * An attempt that is repeated begins a little later, and leaves the rest to the next run.
	 */
	buf_clear(&s->next);
	buf_append_str(&s->next, range.pairs[seen - 1].key);
	buf_append_byte(&s->next, CATALOG_KEY_NEXT);
	return buf_status(&s->next);
}

/* Sweeps one database, or all of them for number 0, in at most `pages` transactions. */
static enum status
uploads_sweep_pages(struct kv_store *store, uint64_t number, uint64_t until_ms, unsigned pages,
		    uint64_t *ret_removed, struct err *err)
{
	struct uploads_sweep s = {
		.until_ms = until_ms,
		.next = BUF_INIT(KV_LIMIT_KEY_BYTES + 1),
		.end = BUF_INIT(64),
		.more = true,
		.passes = !number,
	};
	enum status status = STATUS_OK;
	uint64_t removed = 0;

	tuple_put_u64(&s.next, KV_ROOT);
	tuple_put_u64(&s.next, KV_ROOT_UPLOADS);
	if (number)
		tuple_put_u64(&s.next, number);
	buf_append_buf(&s.end, &s.next);
	buf_append_byte(&s.end, CATALOG_KEY_LAST);
	if (buf_status(&s.next) != STATUS_OK || buf_status(&s.end) != STATUS_OK)
		status = err_set(err, STATUS_NOMEM, "out of memory");
	for (unsigned page = 0; status == STATUS_OK && s.more && page < pages; page++) {
		status = kv_run(store, uploads_sweep_page, &s, NULL, err);
		if (status == STATUS_OK)
			removed += s.removed;
	}
	buf_release(&s.next);
	buf_release(&s.end);
	if (ret_removed)
		*ret_removed = removed;
	return status;
}

enum status
rev_uploads_sweep(struct kv_store *store, uint64_t age_ms, uint64_t *ret_removed, struct err *err)
{
	uint64_t now = steady_ms();

	return uploads_sweep_pages(store, 0, now > age_ms ? now - age_ms : 0, SWEEP_PAGES,
				   ret_removed, err);
}

enum status
rev_uploads_clear(struct kv_store *store, uint64_t number, struct err *err)
{
	return uploads_sweep_pages(store, number, UINT64_MAX, UINT_MAX, NULL, err);
}
