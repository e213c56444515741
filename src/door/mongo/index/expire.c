#include "catalog/chore_pass.h"
#include "door/mongo/index/expire.h"

#include "door/mongo/index/clustered.h"
#include "door/mongo/index/index.h"
#include "door/mongo/txn/data.h"
#include "index/engine/scan.h"

struct expire {
	struct kv_store *store;
	uint64_t now_ms;
	struct arena *arena;
	struct err *err;
	struct str name; /* of the collection */
	/* Of the last transaction. */
	uint64_t removed;
	bool more; /* the collection has more of them */
};

/* The dates that are over, as an index of them is asked. False: nothing expires by this index. */
static bool
dates_over(const struct index_def *def, uint64_t now_ms, struct bson_value *low,
	   struct bson_value *high)
{
	struct bson_value seconds;
	int64_t n;

	if (!index_is_readable(def) || def->column_count != 1 ||
	    !bson_find(def->spec, STR("expireAfterSeconds"), &seconds) ||
	    !bson_to_int64(&seconds, &n))
		return false;
	*low = BSON_OF_DATE(INT64_MIN);
	*high = BSON_OF_DATE((int64_t)now_ms - n * 1000);
	return true;
}

/*
 * Removes the document of an entry. What the entry says holds, since both are read in one
 * transaction, and the document with a conflict. A document that an earlier entry of this
 * transaction has removed is no longer there.
 */
static enum status
remove_one(struct expire *x, struct plain *p, struct str id_key, size_t *bytes)
{
	struct arena_mark mark = arena_mark(x->arena);
	struct bson_value id;
	struct plain_got got;
	enum status status;
	struct str doc;

	TRY(plain_ask_key(p, id_key, KV_READ, x->arena, &got));
	status = plain_wait(p, &got, KV_READ, x->arena, &doc);
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	TRY(status);
	if (!bson_find(doc, STR("_id"), &id))
		return STATUS_CORRUPT;
	*bytes += doc.len;
	TRY(data_keep_images_of(p, x->store, PLAIN_IMAGE_BYTES, doc, STR("")));
	TRY(plain_delete(p, &id, (struct str){ 0 }, x->arena));
	arena_reset(x->arena, mark);
	x->removed++;
	return STATUS_OK;
}

static enum status
remove_by(struct expire *x, struct plain *p, const struct index_def *def)
{
	const struct index_scan_options options = { .mode = KV_SNAPSHOT, .limit = EXPIRE_PAGE };
	struct index_work w = { .arena = x->arena };
	struct index_interval interval = { 0 };
	struct bson_value low, high;
	struct index_entry entry;
	struct index_range range;
	struct index_scan scan;
	enum status status;
	size_t bytes = 0, count = 0;

	if (!dates_over(def, x->now_ms, &low, &high))
		return STATUS_OK;
	interval.low = &low;
	interval.high = &high;
	TRY(index_range_make(p->db, def, &interval, &w, &range));
	TRY(index_scan_init(&scan, p->tx, p->db, def, &range, &options));
	while (bytes < EXPIRE_PAGE_BYTES &&
	       (status = index_scan_next(&scan, &w, &entry)) == STATUS_OK) {
		count++;
		status = remove_one(x, p, entry.id, &bytes);
		if (status != STATUS_OK)
			break;
	}
	index_scan_release(&scan);
	x->more = x->more || count == EXPIRE_PAGE || bytes >= EXPIRE_PAGE_BYTES;
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Removes documents whose `_id` is a date that is over, of a collection that is clustered by it. */
static enum status
remove_by_id(struct expire *x, struct plain *p)
{
	struct bson_value low = BSON_OF_DATE(INT64_MIN), high;
	struct plain_range range = { .from = &low, .to = &high, .mode = KV_READ };
	struct plain_scan scan = { 0 };
	size_t bytes = 0, count = 0;
	struct bson_value id;
	enum status status;
	int64_t seconds;
	struct str doc;

	if (!clustered_expires(p->db, &seconds))
		return STATUS_OK;
	high = BSON_OF_DATE((int64_t)x->now_ms - seconds * 1000);
	status = plain_scan_open(&scan, p, &range);
	while (status == STATUS_OK && count < EXPIRE_PAGE && bytes < EXPIRE_PAGE_BYTES) {
		struct arena_mark mark = arena_mark(x->arena);

		status = plain_scan_next(&scan, x->arena, &doc);
		if (status != STATUS_OK)
			break;
		if (!bson_find(doc, STR("_id"), &id)) {
			status = STATUS_CORRUPT;
			break;
		}
		count++;
		bytes += doc.len;
		status = data_keep_images_of(p, x->store, PLAIN_IMAGE_BYTES, doc, STR(""));
		if (status == STATUS_OK)
			status = plain_delete(p, &id, (struct str){ 0 }, x->arena);
		x->removed += status == STATUS_OK;
		arena_reset(x->arena, mark);
	}
	plain_scan_close(&scan);
	x->more = status == STATUS_OK;
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
expire_body(struct kv_tx *tx, void *arg)
{
	struct expire *x = arg;
	const struct index_def *def;
	struct catalog_db *db;
	struct plain p;
	enum status status;

	x->removed = 0;
	x->more = false;
	status = catalog_open(tx, NULL, CATALOG_SPACE_MONGO, x->name, &db, x->err);
	if (status != STATUS_OK) /* it may have been dropped meanwhile */
		return status == STATUS_NOT_FOUND ? STATUS_OK : status;
	plain_init(&p, tx, db, x->now_ms, x->err);
	status = remove_by_id(x, &p);
	for (size_t i = 0; status == STATUS_OK && !x->more && (def = index_at(db, i)) != NULL; i++)
		status = remove_by(x, &p, def);
	catalog_db_unref(db);
	return status;
}

static enum status
expire_collections(struct expire *x, struct buf *place, bool *ret_more, uint64_t *ret_removed)
{
	unsigned transactions = 0;
	struct arena_mark mark;
	struct name_page page;
	enum status status;

	TRY(catalog_list_behind(x->store, CATALOG_SPACE_MONGO, buf_str(place), EXPIRE_COLLECTIONS,
				x->arena, &page, x->err));
	mark = arena_mark(x->arena);
	for (size_t i = 0; i < page.count; i++) {
		x->name = page.names[i];
		do {
			if (transactions++ == EXPIRE_TRANSACTIONS) {
				*ret_more = true; /* of this collection, too */
				return STATUS_OK;
			}
			arena_reset(x->arena, mark);
			status = kv_run(x->store, expire_body, x, NULL, x->err);
			if (status != STATUS_OK) {
				TRY(chore_pass_over(EXPIRE_CHORE, x->name, status, x->err));
				break;
			}
			*ret_removed += x->removed;
		} while (x->more);
		buf_set(place, x->name);
		TRY(buf_status(place));
	}
	*ret_more = page.more;
	if (!page.more)
		buf_clear(place);
	return STATUS_OK;
}

enum status
expire_turn(struct kv_store *store, uint64_t now_ms, struct buf *place, bool *ret_more,
	    uint64_t *ret_removed, struct err *err)
{
	struct expire x = { .store = store, .now_ms = now_ms, .err = err };
	enum status status;

	*ret_more = false;
	*ret_removed = 0;
	x.arena = arena_new(EXPIRE_ARENA_BYTES);
	if (!x.arena)
		return STATUS_NOMEM;
	status = expire_collections(&x, place, ret_more, ret_removed);
	arena_free(x.arena);
	return status;
}
