/*
 * What a build of an index needs of rows (index/engine/build.h). They have no Sequences: a writer
 * who changes entries of an index that is being built leaves a mark with the row's key.
 *
 * Rows are read by snapshot. Those with a mark have been entered by their writers. For all others
 * the step gets a read conflict with the place of the mark: whoever changes the row in a way that
 * matters to the index sets the mark, so the step fails then, and skips the row the next time.
 */
#include "index/engine/build.h"
#include "model/timed/tables/tables_int.h"

enum {
	VISIT_BYTES = 8 * 1024 * 1024, /* of rows in one step, and the one that passes it */
};

/* One stretch: all of the table. */
static enum status
indexed_cut(struct kv_tx *tx, const struct catalog_db *db, size_t parts, struct arena *arena,
	    const struct str **ret_ids, size_t *ret_count, uint64_t *ret_documents)
{
	(void)tx;
	(void)db;
	(void)parts;
	(void)arena;
	*ret_ids = NULL;
	*ret_count = 0;
	*ret_documents = 0; /* nobody counts rows */
	return STATUS_OK;
}

struct visit {
	struct kv_tx *tx;
	const struct catalog_db *db;
	const struct index_def *def;
	bool of_statics;
	struct kv_scan rows;
	struct kv_scan marks; /* in the order of rows */
	bool has_pair, marks_done;
	struct kv_pair pair; /* of rows, the next one */
	size_t prefix;       /* of a row's key, in front of what is its id */
	size_t mark_prefix;
	struct buf id, marked, key;
	struct arena *arena;
	index_visitor *visitor;
	void *arg;
	size_t bytes;
};

/* Opens a scan of what begins with the key, behind the element `after`. */
static enum status
scan_open(struct visit *v, struct kv_scan *scan, struct str after)
{
	const struct kv_range_options options = { .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	TRY(catalog_key_status(&v->key));
	buf_append_str(&end, buf_str(&v->key));
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	buf_append_str(&v->key, after);
	if (after.len)
		buf_append_byte(&v->key, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&v->key));
	return kv_scan_init(scan, v->tx, buf_str(&v->key), buf_str(&end), &options);
}

static enum status
visit_open(struct visit *v, struct str after)
{
	AUTO(buf_release) struct buf mark = CATALOG_KEY_INIT;

	timed_key_space(&v->key, v->db, TIMED_SPACE_ROWS);
	v->prefix = v->key.len;
	TRY(scan_open(v, &v->rows, after));
	index_key_mark(&v->key, v->db, v->def->number, STR(""));
	v->mark_prefix = v->key.len;
	if (after.len)
		tuple_put_bytes(&mark, after);
	TRY(catalog_key_status(&mark));
	return scan_open(v, &v->marks, buf_str(&mark));
}

static enum status
marks_next(struct visit *v)
{
	struct kv_pair pair;
	enum status status = kv_scan_next(&v->marks, &pair);
	struct tuple_reader r;
	struct str id;

	v->marks_done = status != STATUS_OK;
	if (v->marks_done)
		return status == STATUS_NOT_FOUND ? STATUS_OK : status;
	r = tuple_reader(str_skip(pair.key, v->mark_prefix));
	TRY(catalog_next_text(&r, TUPLE_BYTES, v->arena, true, &id));
	buf_clear(&v->marked);
	buf_append_str(&v->marked, id);
	return buf_status(&v->marked);
}

/* Whether the row has a mark; if not, whoever sets one conflicts with this transaction. */
static enum status
visit_is_marked(struct visit *v, struct str id, bool *ret)
{
	AUTO(buf_release) struct buf next = CATALOG_KEY_INIT;

	while (!v->marks_done && str_cmp(buf_str(&v->marked), id) < 0)
		TRY(marks_next(v));
	*ret = !v->marks_done && str_eq(buf_str(&v->marked), id);
	if (*ret)
		return STATUS_OK;
	index_key_mark(&v->key, v->db, v->def->number, id);
	buf_append_str(&next, buf_str(&v->key));
	buf_append_byte(&next, CATALOG_KEY_NEXT);
	TRY(catalog_key_status(&v->key));
	TRY(catalog_key_status(&next));
	return kv_add_read_conflict_range(v->tx, buf_str(&v->key), buf_str(&next));
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
	buf_append_str(&key, buf_str(&v->id));
	TRY(catalog_key_status(&key));
	TRY(table_row_expire(&t, buf_str(&key), v->def, &any));
	if (!any)
		return STATUS_OK;
	return table_stored_read(s, v->tx, v->db, buf_str(&key), NULL, KV_READ, v->arena, &any);
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
	TRY(visit_is_marked(v, buf_str(&v->id), &marked));
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
		.marked = CATALOG_KEY_INIT,
		.key = CATALOG_KEY_INIT,
		.arena = arena,
		.visitor = visitor,
		.arg = arg,
	};
	enum status status;

	*ret = (struct index_passed){ 0 };
	for (size_t i = 0; i < extension->kept_count; i++)
		if (extension->kept[i].def == def)
			v.of_statics = extension->kept[i].of_statics;
	status = visit_open(&v, stretch->after);
	if (status == STATUS_OK)
		status = visit_all(&v, stretch->limit, ret);
	if (status == STATUS_OK) {
		ret->last = arena_dup(arena, buf_str(&v.id));
		if (!ret->last.ptr)
			status = STATUS_LIMIT;
	}
	kv_scan_release(&v.rows);
	kv_scan_release(&v.marks);
	buf_release(&v.id);
	buf_release(&v.marked);
	buf_release(&v.key);
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
