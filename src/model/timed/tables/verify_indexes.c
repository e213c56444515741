/* What the check of indexes (index/engine/verify.h) knows of tables, and the count of entries. */
#include <endian.h>

#include "index/engine/update.h"
#include "index/engine/verify.h"
#include "model/timed/tables/tables_int.h"

#define TABLE_FINDING_INDEX       "table_index"       /* an entry that is not as its row */
#define TABLE_FINDING_INDEX_STRAY "table_index_stray" /* an entry that no row has */

static enum status
load(struct index_verify_on *on, struct err *err)
{
	return table_extend(on->v->tx, &on->db, &on->db.extension, err);
}

/* The row of the first pair that it has; v->own keeps which one that was. */
static bool
row_id(struct index_verify_on *on, struct str tail, struct str *ret)
{
	struct buf *last = on->v->own;
	size_t len = tuple_skip(tail, 0, TUPLE_SKIP_TEXT);

	len = len ? tuple_skip(tail, len, TUPLE_SKIP_TEXT) : 0;
	if (!len || str_eq(str_of(tail.ptr, len), buf_str(last)))
		return false;
	buf_clear(last);
	buf_append(last, tail.ptr, len);
	*ret = arena_dup(on->arena, buf_str(last));
	return buf_status(last) == STATUS_OK && ret->ptr;
}

static enum status
source(struct index_verify_on *on, struct str id, struct index_source *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct table_stored *s = arena_alloc(on->arena, sizeof(*s));
	enum status status;
	bool there;

	if (!s)
		return STATUS_LIMIT;
	timed_key_space(&key, &on->db, TIMED_SPACE_ROWS);
	buf_append_str(&key, id);
	TRY(catalog_key_status(&key));
	status = table_stored_read(s, on->v->tx, &on->db, buf_str(&key), NULL, KV_SNAPSHOT,
				   on->arena, &there);
	/* The check of cells tells what cannot be read. */
	if (status == STATUS_CORRUPT || status == STATUS_NEWER || (status == STATUS_OK && !there))
		return STATUS_NOT_FOUND;
	*ret = (struct index_source){ .id = id, .row = &s->row };
	return status;
}

/* (P, STATS, "entry_count") */
static enum status
check_total(struct catalog_verify *v, uint64_t entries)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };
	AUTO(buf_release) struct buf name = BUF_INIT(64);
	uint64_t count = 0;

	tuple_put_str(&name, STR(INDEX_STAT_ENTRIES));
	TRY(buf_status(&name));
	TRY(catalog_verify_cursor_open(v, &c, TIMED_SPACE_STATS));
	while (!c.done) {
		if (!str_eq(c.tail, buf_str(&name)))
			catalog_verify_found(v, CATALOG_FINDING_KEY, c.pair.key,
					     "no counter is called so");
		else if (c.pair.value.len != CATALOG_COUNTER_BYTES)
			catalog_verify_found(v, CATALOG_FINDING_VALUE, c.pair.key, "not a counter");
		else
			memcpy(&count, c.pair.value.ptr, sizeof(count));
		TRY(catalog_verify_cursor_next(v, &c));
	}
	if (le64toh(count) == entries)
		return STATUS_OK;
	timed_key_space(&v->key, v->db, TIMED_SPACE_STATS);
	catalog_verify_found(v, TABLE_FINDING_INDEX, buf_str(&v->key),
			     "the counter says %llu, and there are %llu entries",
			     (unsigned long long)le64toh(count), (unsigned long long)entries);
	return STATUS_OK;
}

enum status
table_verify_indexes(struct catalog_verify *v)
{
	static const struct index_verify_model model = {
		.finding = TABLE_FINDING_INDEX,
		.finding_stray = TABLE_FINDING_INDEX_STRAY,
		.arena_bytes = TABLE_INDEX_ARENA_BYTES,
		.documents = TIMED_SPACE_ROWS,
		.load = load,
		.unload = table_extension_free,
		.id = row_id,
		.source = source,
	};
	AUTO(buf_release) struct buf last = CATALOG_KEY_INIT;
	uint64_t entries;
	enum status status;

	v->own = &last;
	status = index_verify(v, &model, &entries);
	v->own = NULL;
	TRY(status);
	TRY(check_total(v, entries));
	return catalog_verify_tallies(v);
}
