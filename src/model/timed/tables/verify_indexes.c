/* What the check of indexes (index/engine/verify.h) knows of tables. */
#include "index/engine/verify.h"
#include "model/timed/check.h"
#include "model/timed/tables/tables_int.h"

#define TABLE_FINDING_INDEX       "table_index"       /* an entry that is not as its row */
#define TABLE_FINDING_INDEX_STRAY "table_index_stray" /* an entry that no row has */

static enum status
load(struct index_verify_on *on, struct err *err)
{
	buf_clear(on->v->own);
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
	/* Without room in `last` the row's next pair counts as its first, too: only more work. */
	buf_set(last, str_of(tail.ptr, len));
	*ret = arena_dup(on->arena, str_of(tail.ptr, len));
	return catalog_verify_parsed(on->v, ret->ptr ? STATUS_OK : STATUS_NOMEM);
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
	status = table_stored_read(s, on->v->tx, &on->db, buf_str(&key), NULL, KV_SNAPSHOT, NULL,
				   on->arena, &there);
	/* The check of cells tells what cannot be read. */
	if (status == STATUS_CORRUPT || status == STATUS_NEWER || (status == STATUS_OK && !there))
		return STATUS_NOT_FOUND;
	*ret = (struct index_source){ .id = id, .row = &s->row };
	return status;
}

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

static enum status
verify_total(struct catalog_verify *v)
{
	return index_verify_total(v, &model, TIMED_SPACE_STATS, NULL);
}

enum status
table_verify_indexes_in_ranges(struct catalog_verify *v)
{
	AUTO(buf_release) struct buf last = CATALOG_KEY_INIT;
	enum status status;

	v->own = &last;
	status = index_verify_in_ranges(v, &model);
	v->own = NULL;
	TRY(status);
	TRY(catalog_verify_once(v, verify_total, "the number of entries"));
	return catalog_verify_tallies_in_ranges(v);
}

enum status
table_verify_indexes(struct catalog_verify *v)
{
	AUTO(buf_release) struct buf last = CATALOG_KEY_INIT;
	uint64_t entries;
	enum status status;

	v->own = &last;
	status = index_verify(v, &model, &entries);
	v->own = NULL;
	TRY(status);
	TRY(index_verify_total(v, &model, TIMED_SPACE_STATS, &entries));
	return catalog_verify_tallies(v);
}
