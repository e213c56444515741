/*
 * What a build of an index needs of rows (index/engine/build.h). They have no Sequences, and are
 * read by snapshot: those that others change meanwhile have marks (index/engine/marks.h).
 */
#include "index/engine/build.h"
#include "index/engine/marks.h"
#include "model/timed/tables/tables_int.h"

enum {
	VISIT_BYTES = 8 * 1024 * 1024, /* of rows in one step, and the one that passes it */
};

/* The places of the rows `after` < row <= `end`; either may be empty. */
static enum status
stretch_bounds(const struct catalog_db *db, struct str after, struct str end, struct buf *ret_begin,
	       struct buf *ret_end)
{
	timed_key_space(ret_begin, db, TIMED_SPACE_ROWS);
	timed_key_space(ret_end, db, TIMED_SPACE_ROWS);
	buf_append_str(ret_begin, after);
	if (after.len)
		buf_append_byte(ret_begin, CATALOG_KEY_LAST);
	buf_append_str(ret_end, end);
	buf_append_byte(ret_end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(ret_begin));
	return catalog_key_status(ret_end);
}

/* Where the store says that much lies: nobody counts rows. */
static enum status
indexed_cut(struct kv_tx *tx, const struct catalog_db *db, size_t parts, struct arena *arena,
	    const struct str **ret_ids, size_t *ret_count, uint64_t *ret_documents)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	size_t prefix = db->prefix.len + TIMED_SPACE_BYTES, count, ids = 0, len;
	struct str *keys = arena_zalloc(arena, parts * sizeof(*keys));

	if (!keys)
		return STATUS_LIMIT;
	TRY(stretch_bounds(db, STR(""), STR(""), &begin, &end));
	TRY(index_cut_range(tx, buf_str(&begin), buf_str(&end), parts, arena, keys, &count));
	for (size_t i = 0; i < count; i++) {
		TRY(timed_key_row_bytes(db, keys[i], &len));
		keys[ids] = str_of(keys[i].ptr + prefix, len - prefix);
		/* Two keys may be of one row. */
		if (ids == 0 || str_cmp(keys[ids - 1], keys[ids]) < 0)
			ids++;
	}
	*ret_ids = keys;
	*ret_count = ids;
	*ret_documents = 0;
	return STATUS_OK;
}

struct visit {
	struct kv_tx *tx;
	const struct catalog_db *db;
	const struct index_def *def;
	bool of_statics;
	struct kv_scan rows;
	struct index_marks marks;
	bool has_pair;
	struct kv_pair pair; /* of rows, the next one */
	size_t prefix;       /* of a row's key, in front of what is its id */
	struct buf id;
	struct arena *arena;
	index_visitor *visitor;
	void *arg;
	size_t bytes;
};

static enum status
visit_open(struct visit *v, const struct index_stretch *stretch)
{
	const struct kv_range_options options = { .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	v->prefix = v->db->prefix.len + TIMED_SPACE_BYTES;
	TRY(stretch_bounds(v->db, stretch->after, stretch->end, &begin, &end));
	TRY(kv_scan_init(&v->rows, v->tx, buf_str(&begin), buf_str(&end), &options));
	return index_marks_open(&v->marks, v->tx, v->db, v->def, stretch);
}

/* Makes v->pair the next pair of rows. STATUS_NOT_FOUND. */
static enum status
visit_peek(struct visit *v)
{
	if (v->has_pair)
		return STATUS_OK;
	TRY(kv_scan_next(&v->rows, &v->pair));
	v->has_pair = true;
	v->bytes += v->pair.key.len + v->pair.value.len;
	return STATUS_OK;
}

/* Reads the pairs of the row that the scan stands before; v->id is the row's. */
static enum status
visit_read(struct visit *v, struct table_stored *s, bool *ret_is_static)
{
	enum status status = STATUS_OK;
	size_t len, partition;

	TRY(timed_key_row_bytes(v->db, v->pair.key, &len));
	partition = tuple_skip(v->pair.key, v->prefix, TUPLE_SKIP_TEXT);
	*ret_is_static = table_schema_of(v->db)->key_count > table_schema_of(v->db)->hash_count &&
			 len == partition + 2;
	buf_clear(&v->id);
	buf_append(&v->id, v->pair.key.ptr + v->prefix, len - v->prefix);
	TRY(buf_status(&v->id));
	TRY(table_stored_begin(s, v->db, v->arena, buf_str(&v->id)));
	while (status == STATUS_OK &&
	       str_starts_with(str_skip(v->pair.key, v->prefix), buf_str(&v->id))) {
		TRY(table_stored_take(s, str_skip(v->pair.key, len), v->pair.value));
		v->has_pair = false;
		status = visit_peek(v);
	}
	return status == STATUS_OK || status == STATUS_NOT_FOUND ? table_stored_end(s) : status;
}

/*
 * Takes the expired cells out of a row that the index has no entry of yet. Their entries would be
 * in the way of other rows of a unique index.
 */
static enum status
visit_expire(struct visit *v, struct table_stored *s)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct timed t;
	bool any;

	timed_init(&t, v->tx, v->db, NULL, kv_tx_err(v->tx));
	timed_key_space(&key, v->db, TIMED_SPACE_ROWS);
	buf_append_buf(&key, &v->id);
	TRY(catalog_key_status(&key));
	TRY(table_row_expire(&t, buf_str(&key), v->def, &any));
	if (!any)
		return STATUS_OK;
	/* By a snapshot, as all rows here: whoever writes one conflicts with the marks. */
	return table_stored_read(s, v->tx, v->db, buf_str(&key), NULL, KV_SNAPSHOT, NULL, v->arena,
				 &any);
}

static enum status
visit_row(struct visit *v)
{
	struct table_stored s;
	struct index_source source;
	bool marked, is_static;

	TRY(visit_read(v, &s, &is_static));
	if (is_static != v->of_statics)
		return STATUS_OK;
	TRY(index_marks_have(&v->marks, buf_str(&v->id), v->arena, &marked));
	if (!marked && (v->def->flags & INDEX_UNIQUE))
		TRY(visit_expire(v, &s));
	source = (struct index_source){ .id = buf_str(&v->id), .row = &s.row };
	return marked ? STATUS_OK : v->visitor(v->arg, &source);
}

static enum status
visit_all(struct visit *v, size_t limit, struct index_passed *ret)
{
	for (;;) {
		struct arena_mark mark = arena_mark(v->arena);
		enum status status = visit_peek(v);

		if (status == STATUS_NOT_FOUND)
			return STATUS_OK;
		TRY(status);
		TRY(visit_row(v));
		arena_reset(v->arena, mark);
		if (++ret->count < limit && v->bytes < VISIT_BYTES)
			continue;
		ret->more = true;
		return STATUS_OK;
	}
}

static enum status
indexed_visit(struct kv_tx *tx, const struct catalog_db *db, const struct index_def *def,
	      const struct index_stretch *stretch, struct arena *arena, index_visitor *visitor,
	      void *arg, struct index_passed *ret)
{
	const struct table_extension *extension = db->extension;
	struct visit v = {
		.tx = tx,
		.db = db,
		.def = def,
		.id = CATALOG_KEY_INIT,
		.arena = arena,
		.visitor = visitor,
		.arg = arg,
	};
	enum status status;

	*ret = (struct index_passed){ 0 };
	for (size_t i = 0; i < extension->kept_count; i++)
		if (extension->kept[i].def == def)
			v.of_statics = extension->kept[i].of_statics;
	status = visit_open(&v, stretch);
	if (status == STATUS_OK)
		status = visit_all(&v, stretch->limit, ret);
	if (status == STATUS_OK)
		status = index_marks_finish(&v.marks, buf_str(&v.id));
	if (status == STATUS_OK) {
		ret->last = buf_dup(&v.id, arena);
		if (!ret->last.ptr)
			status = STATUS_LIMIT;
	}
	kv_scan_release(&v.rows);
	index_marks_close(&v.marks);
	buf_release(&v.id);
	return status;
}

/* The row that has an entry makes way where it has expired. */
static enum status
indexed_make_way(struct kv_tx *tx, const struct catalog_db *db, struct str taken, bool *ret_gone)
{
	struct timed t;

	timed_init(&t, tx, db, NULL, kv_tx_err(tx));
	return table_taken_expire(&t, taken, ret_gone);
}

const struct index_documents table_indexed_rows = {
	.kind = CATALOG_KIND_TABLE,
	.list = TABLE_LIST_ENTRIES,
	.cut = indexed_cut,
	.visit = indexed_visit,
	.make_way = indexed_make_way,
};
