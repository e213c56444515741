/* Databases of items as a whole: pages of keys, their count, making and emptying one. */
#include <endian.h>

#include "model/timed/items/item_int.h"
#include "model/timed/items/items.h"

/* ---- Pages ---- */

/* The hash of a key of ROWS, and the item's own key, if it is whole. */
static enum status
row_parse(struct timed *t, struct str row, struct arena *arena, uint64_t *ret_hash,
	  struct str *ret_key)
{
	AUTO(buf_release) struct buf space = CATALOG_KEY_INIT;
	struct timed_place place;

	timed_key_space(&space, t->db, TIMED_SPACE_ROWS);
	TRY(catalog_key_status(&space));
	TRY(timed_place_parse(timed_schema_of(t->db), str_skip(row, space.len), arena, &place));
	if (place.path.count || place.key[0].kind != DOC_BYTES)
		return STATUS_CORRUPT;
	*ret_hash = place.hash;
	*ret_key = place.key[0].text;
	return STATUS_OK;
}

static enum status
items_page_take(struct timed *t, const struct kv_pair *pair, struct str key, struct arena *arena,
		struct timed_items *page, size_t *cap)
{
	struct timed_item item = { .t = t, .arena = arena, .key = key };
	struct timed_header h;

	TRY(timed_header_parse(pair->value, &h, t->err));
	if (timed_is_cut(key))
		item.key = arena_dup(arena, h.whole);
	item.row = arena_dup(arena, pair->key);
	if (!item.key.ptr || !item.row.ptr)
		return STATUS_LIMIT;
	TRY(timed_item_take(&item, &h));
	TRY(timed_dues_look(&item));
	if (item.type == TIMED_LEAF)
		return STATUS_OK;
	item.value = arena_dup(arena, item.value);
	page->items = arena_grow(arena, page->items, page->count, cap, sizeof(*page->items));
	if (!page->items || !item.value.ptr)
		return STATUS_LIMIT;
	page->items[page->count++] = item;
	return STATUS_OK;
}

static enum status
items_page_read(struct timed *t, struct timed_cursor *scan, size_t least, struct arena *arena,
		struct timed_items *page)
{
	uint64_t hash = 0, last = TIMED_HASHES;
	struct kv_pair pair;
	struct str key;
	enum status status;
	size_t cap = 0;

	while ((status = timed_cursor_next(scan, &pair)) == STATUS_OK) {
		TRY(row_parse(t, pair.key, arena, &hash, &key));
		if (page->count && page->count >= least && hash != last) {
			page->next = hash;
			return STATUS_OK;
		}
		last = hash;
		TRY(items_page_take(t, &pair, key, arena, page, &cap));
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status
timed_items_page(struct timed *t, uint64_t from, size_t least, struct arena *arena,
		 struct timed_items *ret)
{
	AUTO(timed_cursor_close) struct timed_cursor scan = { 0 };
	AUTO(buf_release) struct buf space = CATALOG_KEY_INIT;
	struct timed_items page = { 0 };
	struct str begin, end;
	enum status status;

	*ret = page;
	if (from >= TIMED_HASHES)
		return STATUS_OK;
	timed_key_space(&space, t->db, TIMED_SPACE_ROWS);
	TRY(buf_status(&space));
	TRY(timed_hash_key(arena, buf_str(&space), from, &begin));
	TRY(timed_hash_key(arena, buf_str(&space), TIMED_HASHES, &end));
	TRY(timed_ask(t));
	TRY(timed_cursor_open_few(&scan, t, begin, end, &(struct kv_range_options){ .ahead = true },
				  timed_page_pairs(least)));
	TRY(timed_now(t));
	status = items_page_read(t, &scan, least, arena, &page);
	if (status == STATUS_CORRUPT)
		return err_set(t->err, status, "an item of the database \"%.*s\" cannot be read",
			       STR_ARG(t->db->name));
	TRY(status);
	*ret = page;
	return STATUS_OK;
}

enum status
timed_items_count(struct timed *t, uint64_t *ret)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	AUTO(timed_cursor_close) struct timed_cursor scan = { 0 };
	struct kv_pair pair;
	enum status status;

	timed_key_space(&begin, t->db, TIMED_SPACE_COUNT);
	buf_append_buf(&end, &begin);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	TRY(timed_cursor_open(&scan, t, buf_str(&begin), buf_str(&end), NULL));
	*ret = 0;
	while ((status = timed_cursor_next(&scan, &pair)) == STATUS_OK) {
		uint64_t n;

		if (pair.value.len != sizeof(n))
			return err_set(t->err, STATUS_CORRUPT,
				       "a count of the database \"%.*s\" cannot be read",
				       STR_ARG(t->db->name));
		memcpy(&n, pair.value.ptr, sizeof(n));
		*ret += le64toh(n);
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- Databases ---- */

static enum status
items_create(struct kv_tx *tx, struct str name, bool replaces, struct err *err)
{
	struct timed_key_column key = { .name = STR("key") };
	const struct timed_schema schema = { .key = &key, .hash_count = 1, .key_count = 1 };

	return timed_create_of(tx, &timed_redis_kind, name, &schema, 0, replaces, err);
}

enum status
timed_items_create(struct kv_tx *tx, struct str name, struct err *err)
{
	return items_create(tx, name, false, err);
}

enum status
timed_items_flush(struct timed *t)
{
	struct str name = t->db->name;
	struct timed_history_bounds bounds = { .seconds = timed_history_seconds(t->db) };
	struct catalog_db *db;
	struct timed fresh;
	enum status status;

	if (bounds.seconds)
		TRY(timed_history_bounds_get(t, &bounds));
	TRY(catalog_db_check_writable(t->db, t->err));
	TRY(items_create(t->tx, name, true, t->err));
	if (!bounds.seconds)
		return STATUS_OK;
	TRY(catalog_open(t->tx, NULL, timed_redis_kind.space, name, &db, t->err));
	timed_init(&fresh, t->tx, db, t->clock, t->err);
	status = timed_history_set(&fresh, bounds);
	catalog_db_unref(db);
	return status;
}
