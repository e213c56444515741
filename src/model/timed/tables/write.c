/* Writing and clearing rows and cells. */
#include <assert.h>
#include <endian.h>

#include "base/rand.h"
#include "loop/step.h"
#include "model/timed/tables/tables_int.h"

/* ---- Places in lists ---- */

/*
 * The place of a list's element, whose bytes are in its order:
 *
 *     moment   8 bytes: above the middle when it was appended, below when it was prepended
 *     writer   4 bytes at random, of the transaction
 *     number   4 bytes, of what this transaction has put into lists
 *
 * So writers extend a list blindly: an element lies behind, or before, all that were there when its
 * transaction began, as the moments of transactions that see each other rise. The elements of two
 * that do not lie side by side, those of each together.
 */
struct list_place {
	uint64_t moment;
	uint32_t writer;
	uint32_t number;
} __attribute__((packed));

#define LIST_MIDDLE (UINT64_C(1) << 63)

static void
list_place_next(struct timed *t, bool before, struct list_place *ret)
{
	uint32_t number = ++t->places;

	if (!t->writer)
		rand_bytes(&t->writer, sizeof(t->writer));
	ret->moment = htobe64(before ? LIST_MIDDLE - t->now_us : LIST_MIDDLE + t->now_us);
	ret->writer = t->writer;
	/* What a transaction prepends later lies before what it has prepended. */
	ret->number = htobe32(before ? UINT32_MAX - number : number);
}

/* ---- One change ---- */

/* A row while it is written. */
struct row_write {
	struct timed *t;
	const struct table_schema *schema;
	struct buf row;  /* its key */
	struct buf cell; /* the key of a cell in it */
};

/* The key of a column's cell, or of an element in it. */
static enum status
cell_key(struct row_write *w, uint64_t column, const struct doc_scalar *element)
{
	buf_clear(&w->cell);
	buf_append_str(&w->cell, buf_str(&w->row));
	return table_key_cell(w->t, column, element, &w->cell);
}

static enum status
cell_clear(struct row_write *w, const struct table_column *column)
{
	return table_cell_clear(w->t, buf_str(&w->cell), column->has_pieces);
}

static enum status
put_cell(struct row_write *w, const struct table_change *c, const struct doc_scalar *element)
{
	static const struct doc_scalar nothing = { .kind = DOC_NULL };
	const struct table_column *column = table_column_by_id(w->schema, c->column);
	bool set = column->storage == TABLE_SET;

	TRY(cell_key(w, c->column, element));
	if (!set && c->value.kind == DOC_NULL)
		return cell_clear(w, column);
	/* A place in a list that this write makes has held nothing. */
	if (column->has_pieces && c->kind != TABLE_CHANGE_APPEND && c->kind != TABLE_CHANGE_PREPEND)
		TRY(cell_clear(w, column));
	if (table_value_is_long(&c->value))
		return table_pieces_write(w->t, buf_str(&w->cell), &c->value, c->expiry);
	return timed_cell_write(w->t, buf_str(&w->cell), TIMED_LEAF, set ? &nothing : &c->value,
				c->expiry);
}

static enum status
put_into_list(struct row_write *w, const struct table_change *c)
{
	struct list_place place;
	struct doc_scalar element = { .kind = DOC_BYTES };

	list_place_next(w->t, c->kind == TABLE_CHANGE_PREPEND, &place);
	element.text = str_of(&place, sizeof(place));
	return put_cell(w, c, &element);
}

static enum status
clear_column(struct row_write *w, const struct table_change *c)
{
	const struct table_column *column = table_column_by_id(w->schema, c->column);

	TRY(cell_key(w, c->column, NULL));
	if (column->storage == TABLE_SINGLE || column->storage == TABLE_COUNTER)
		return cell_clear(w, column);
	return timed_data_clear_below(w->t, buf_str(&w->cell));
}

static enum status
write_change(struct row_write *w, const struct table_change *c)
{
	switch (c->kind) {
	case TABLE_CHANGE_PUT:
		return put_cell(w, c, NULL);
	case TABLE_CHANGE_CLEAR:
		return clear_column(w, c);
	case TABLE_CHANGE_PUT_ELEMENT:
	case TABLE_CHANGE_PUT_PLACE:
		return put_cell(w, c, &c->element);
	case TABLE_CHANGE_CLEAR_ELEMENT:
		TRY(cell_key(w, c->column, &c->element));
		return cell_clear(w, table_column_by_id(w->schema, c->column));
	case TABLE_CHANGE_APPEND:
	case TABLE_CHANGE_PREPEND:
		return put_into_list(w, c);
	case TABLE_CHANGE_ADD:
		TRY(cell_key(w, c->column, NULL));
		return timed_data_add(w->t, buf_str(&w->cell), c->value.n);
	}
	return STATUS_OK;
}

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

/* An element at such a place was made by list_place_next(). */
static bool
place_fits(const struct table_change *c, const struct table_column *column)
{
	return column->storage != TABLE_LIST || c->kind == TABLE_CHANGE_CLEAR ||
	       c->kind == TABLE_CHANGE_APPEND || c->kind == TABLE_CHANGE_PREPEND ||
	       (c->element.kind == DOC_BYTES && c->element.text.len == sizeof(struct list_place));
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

/* What every function that only clears calls first. */
static enum status
clear_begin(struct timed *t)
{
	/* Without a history it needs no moment, and reads nothing. */
	if (timed_history_seconds(t->db))
		return timed_write_begin(t);
	TRY(catalog_db_check_writable(t->db, t->err));
	return timed_touch(t);
}

static enum status
row_write_cells(struct row_write *w, const struct table_write *write)
{
	struct timed *t = w->t;

	if (write->inserts)
		TRY(timed_cell_write(t, buf_str(&w->row), TIMED_INSERTED, NULL, write->expiry));
	for (size_t i = 0; i < write->change_count; i++)
		TRY(write_change(w, &write->changes[i]));
	return STATUS_OK;
}

static enum status
row_write_all(struct row_write *w, const struct table_write *write)
{
	struct table_indexing x;
	enum status status;

	TRY(table_key_row(w->t, &write->key, &w->row));
	status = table_indexing_begin(&x, w->t, buf_str(&w->row), write->changes,
				      write->change_count);
	if (status == STATUS_OK)
		status = row_write_cells(w, write);
	if (status == STATUS_OK)
		status = table_indexing_finish(&x);
	table_indexing_end(&x);
	return status;
}

enum status
table_write(struct timed *t, const struct table_write *write)
{
	struct row_write w = { .t = t,
			       .schema = table_schema_of(t->db),
			       .row = CATALOG_KEY_INIT,
			       .cell = CATALOG_KEY_INIT };
	enum status status;
	bool writes;

	TRY(check_write(t, write, &writes));
	if (!write->inserts && !write->change_count)
		return STATUS_OK;
	TRY(table_write_allow_pieces(t, write));
	TRY(writes ? timed_write_begin(t) : clear_begin(t));
	status = row_write_all(&w, write);
	buf_release(&w.row);
	buf_release(&w.cell);
	return status;
}

/* Clears a row by its key. */
static enum status
row_clear(struct timed *t, struct str row)
{
	struct table_indexing x;
	enum status status = table_indexing_begin(&x, t, row, NULL, 0);

	if (status == STATUS_OK)
		status = timed_data_clear_below(t, row);
	if (status == STATUS_OK)
		status = table_indexing_finish(&x);
	table_indexing_end(&x);
	return status;
}

enum status
table_clear_row(struct timed *t, const struct table_key *key)
{
	AUTO(buf_release) struct buf row = CATALOG_KEY_INIT;

	TRY(table_key_row(t, key, &row));
	TRY(clear_begin(t));
	return row_clear(t, buf_str(&row));
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
rows_clear(struct timed *t, struct str begin, struct str end, bool *ret_more)
{
	const struct table_extension *extension = t->db->extension;
	struct arena *arena;
	enum status status;

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

	*ret_more = false;
	TRY(table_key_range(t, partition, from, to, &begin, &end));
	TRY(clear_begin(t));
	if (str_eq(buf_str(&begin), buf_str(&end)))
		return STATUS_OK;
	return rows_clear(t, buf_str(&begin), buf_str(&end), ret_more);
}

enum status
table_clear_partition(struct timed *t, const struct table_key *partition, bool *ret_more)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	*ret_more = false;
	TRY(table_key_partition(t, partition, &begin));
	buf_append_str(&end, buf_str(&begin));
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	TRY(clear_begin(t));
	return rows_clear(t, buf_str(&begin), buf_str(&end), ret_more);
}
