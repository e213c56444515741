/* Writing and clearing rows and cells. */
#include "loop/step.h"
#include "model/timed/tables/packed.h"

/* ---- Checking ---- */

static bool
change_fits(enum table_change_kind kind, enum table_storage storage)
{
	switch (kind) {
	case TABLE_CHANGE_PUT:
		return storage == TABLE_SINGLE;
	case TABLE_CHANGE_CLEAR:
		return true;
	case TABLE_CHANGE_PUT_ELEMENT:
		return storage == TABLE_MAP || storage == TABLE_SET;
	case TABLE_CHANGE_CLEAR_ELEMENT:
		return storage == TABLE_MAP || storage == TABLE_SET || storage == TABLE_LIST;
	case TABLE_CHANGE_APPEND:
	case TABLE_CHANGE_PREPEND:
	case TABLE_CHANGE_PUT_PLACE:
		return storage == TABLE_LIST;
	case TABLE_CHANGE_ADD:
		return storage == TABLE_COUNTER;
	}
	return false;
}

/* An element at such a place was made when it was appended or prepended (change.c). */
static bool
place_fits(const struct table_change *c, const struct table_column *column)
{
	return column->storage != TABLE_LIST || c->kind == TABLE_CHANGE_CLEAR ||
	       c->kind == TABLE_CHANGE_APPEND || c->kind == TABLE_CHANGE_PREPEND ||
	       (c->element.kind == DOC_BYTES && c->element.text.len == TABLE_LIST_PLACE_BYTES);
}

/* Sets *ret_writes if something is written and not only cleared. */
static enum status
check_change(struct timed *t, const struct table_schema *schema, const struct table_change *c,
	     bool is_static, bool *ret_writes)
{
	const struct table_column *column = table_column_by_id(schema, c->column);

	if (!column || column->kind != (is_static ? TABLE_STATIC : TABLE_REGULAR))
		return err_set(t->err, STATUS_INVALID, "no column with the id %llu is in such rows",
			       (unsigned long long)c->column);
	if (!change_fits(c->kind, column->storage) || !place_fits(c, column))
		return err_set(t->err, STATUS_INVALID,
			       "the column \"%.*s\" cannot be changed in this way",
			       STR_ARG(column->name));
	if (c->kind == TABLE_CHANGE_ADD && c->value.kind != DOC_INT64)
		return err_set(t->err, STATUS_INVALID, "a counter is changed by an integer");
	if (c->kind != TABLE_CHANGE_CLEAR && c->kind != TABLE_CHANGE_CLEAR_ELEMENT)
		*ret_writes = true;
	return STATUS_OK;
}

static enum status
check_write(struct timed *t, const struct table_write *write, bool *ret_writes)
{
	const struct table_schema *schema = table_schema_of(t->db);
	bool is_static = table_key_is_static(schema, &write->key);

	*ret_writes = write->inserts;
	if (!is_static && write->key.count != schema->key_count)
		return err_set(t->err, STATUS_INVALID, "a row's key has %zu components here",
			       schema->key_count);
	if (write->inserts && (is_static || schema->counters))
		return err_set(t->err, STATUS_INVALID,
			       "%s are not inserted: only what is in them counts",
			       is_static ? "static columns" : "rows of counters");
	for (size_t i = 0; i < write->change_count; i++)
		TRY(check_change(t, schema, &write->changes[i], is_static, ret_writes));
	return STATUS_OK;
}

/* ---- Writing ---- */

static enum status
row_write_cells(struct table_writing *w, const struct table_write *write, struct table_packing *p)
{
	struct timed *t = w->t;

	if (p->needed && !w->schema->stamped)
		return table_packing_write(p);
	if (p->needed || w->order.compares)
		TRY(table_packed_unpack(t, buf_str(&w->row), p->own));
	if (w->order.compares)
		return table_contest_write(w, write);
	if (write->inserts)
		TRY(timed_cell_write(t, buf_str(&w->row), TIMED_INSERTED, NULL, write->expiry));
	for (size_t i = 0; i < write->change_count; i++)
		TRY(table_writing_change(w, &write->changes[i]));
	return STATUS_OK;
}

static enum status
row_write_all(struct table_writing *w, const struct table_write *write, struct table_packing *p)
{
	const struct table_known *known;
	struct table_indexing x;
	enum status status;

	TRY(table_packing_wait(p, &known));
	status = table_indexing_begin(&x, w->t, buf_str(&w->row), write->changes,
				      write->change_count, known);
	if (status == STATUS_OK)
		status = row_write_cells(w, write, p);
	if (status == STATUS_OK)
		status = table_indexing_finish(&x);
	table_indexing_end(&x);
	return status;
}

static enum status
row_write(struct table_writing *w, const struct table_write *write, bool writes)
{
	struct table_packing p;
	enum status status;

	TRY(table_key_row(w->t, &write->key, &w->row));
	status = table_packing_ask(&p, w, write);
	if (status == STATUS_OK)
		status = table_order_begin(w->t, writes || p.needed, &w->order);
	if (status == STATUS_OK)
		status = row_write_all(w, write, &p);
	table_packing_end(&p);
	return status;
}

enum status
table_write(struct timed *t, const struct table_write *write)
{
	struct table_writing w = { .t = t,
				   .schema = table_schema_of(t->db),
				   .row = CATALOG_KEY_INIT,
				   .cell = CATALOG_KEY_INIT };
	enum status status;
	bool writes;

	TRY(check_write(t, write, &writes));
	if (!write->inserts && !write->change_count)
		return STATUS_OK;
	TRY(table_count_check(t, write->tells_count));
	TRY(table_write_allow_pieces(t, write));
	status = row_write(&w, write, writes);
	buf_release(&w.row);
	buf_release(&w.cell);
	return status;
}

/* Clears a row by its key. */
static enum status
row_clear(struct timed *t, struct str row)
{
	struct table_indexing x;
	enum status status = table_indexing_begin(&x, t, row, NULL, 0, NULL);

	if (status == STATUS_OK)
		status = table_schema_of(t->db)->whole ? timed_data_clear(t, row)
						       : timed_data_clear_below(t, row);
	if (status == STATUS_OK)
		status = table_indexing_finish(&x);
	table_indexing_end(&x);
	return status;
}

/* Clears of a row what a deletion wins against. */
static enum status
row_clear_losers(struct timed *t, const struct table_order *o, struct str row)
{
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	bool more;

	buf_append_str(&end, row);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	return table_contest_clear(t, o, row, buf_str(&end), SIZE_MAX, &more);
}

static enum status
row_clear_by_key(struct timed *t, const struct table_key *key, bool tells)
{
	AUTO(buf_release) struct buf row = CATALOG_KEY_INIT;
	struct table_order o;

	TRY(table_count_check(t, tells));
	TRY(table_key_row(t, key, &row));
	TRY(table_order_begin(t, false, &o));
	if (t->restores && table_schema_of(t->db)->stamped)
		TRY(table_marks_forget(t, buf_str(&row)));
	if (o.marks)
		TRY(table_mark_raise(t, &o, buf_str(&row), false, o.stamp));
	return o.compares ? row_clear_losers(t, &o, buf_str(&row)) : row_clear(t, buf_str(&row));
}

enum status
table_clear_row(struct timed *t, const struct table_key *key)
{
	return row_clear_by_key(t, key, false);
}

enum status
table_clear_told_row(struct timed *t, const struct table_key *key)
{
	return row_clear_by_key(t, key, true);
}

/* A row of a range that is cleared one by one. */
struct cleared {
	struct cleared *next;
	struct str key;
};

/*
 * Finds the rows of a range that together have TIMED_CLEAR_KEYS pairs, or one that has more.
 * `*ret_more`: there are others behind them.
 */
static enum status
rows_find(struct timed *t, struct str begin, struct str end, struct arena *arena,
	  struct cleared **ret, bool *ret_more)
{
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct cleared *last = NULL, **to = ret;
	struct kv_pair pair;
	enum status status;

	*ret = NULL;
	TRY(kv_scan_init(&scan, t->tx, begin, end, NULL));
	for (size_t pairs = 0; (status = kv_scan_next(&scan, &pair)) == STATUS_OK; pairs++) {
		size_t len;

		TRY(step_count(1));
		TRY(timed_key_row_bytes(t->db, pair.key, &len));
		if (last && str_eq(last->key, str_of(pair.key.ptr, len)))
			continue;
		*ret_more = pairs >= TIMED_CLEAR_KEYS;
		if (*ret_more)
			return STATUS_OK;
		last = arena_zalloc(arena, sizeof(*last));
		if (!last)
			return STATUS_LIMIT;
		TRY(arena_copy(arena, str_of(pair.key.ptr, len), &last->key));
		*to = last;
		to = &last->next;
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
rows_clear_each(struct timed *t, struct str begin, struct str end, struct arena *arena,
		bool *ret_more)
{
	struct cleared *rows;

	TRY(table_fail_corrupt(t, rows_find(t, begin, end, arena, &rows, ret_more)));
	for (const struct cleared *row = rows; row; row = row->next)
		TRY(row_clear(t, row->key));
	return STATUS_OK;
}

/* Clears rows: where there are indexes, whose entries are in many places, one by one. */
static enum status
rows_clear(struct timed *t, const struct table_order *o, struct str begin, struct str end,
	   bool *ret_more)
{
	const struct table_extension *extension = t->db->extension;
	struct arena *arena;
	enum status status;

	if (o->marks)
		TRY(table_range_mark_put(t, begin, end, o->stamp));
	if (o->compares)
		return table_contest_clear(t, o, begin, end, TIMED_CLEAR_KEYS, ret_more);
	if (!extension->kept_count)
		return timed_data_clear_rows(t, begin, end, ret_more);
	arena = arena_new(TABLE_INDEX_ARENA_BYTES);
	if (!arena)
		return STATUS_NOMEM;
	status = timed_touch(t);
	if (status == STATUS_OK)
		status = rows_clear_each(t, begin, end, arena, ret_more);
	arena_free(arena);
	return status;
}

enum status
table_clear_range(struct timed *t, const struct table_key *partition, const struct table_edge *from,
		  const struct table_edge *to, bool *ret_more)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct table_order o;

	*ret_more = false;
	TRY(table_count_check(t, false));
	TRY(table_key_range(t, partition, from, to, &begin, &end));
	TRY(table_order_begin(t, false, &o));
	if (str_eq(buf_str(&begin), buf_str(&end)))
		return STATUS_OK;
	return rows_clear(t, &o, buf_str(&begin), buf_str(&end), ret_more);
}

enum status
table_clear_partition(struct timed *t, const struct table_key *partition, bool *ret_more)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct table_order o;

	*ret_more = false;
	TRY(table_count_check(t, false));
	TRY(table_key_partition(t, partition, &begin));
	buf_append_buf(&end, &begin);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	TRY(table_order_begin(t, false, &o));
	return rows_clear(t, &o, buf_str(&begin), buf_str(&end), ret_more);
}
