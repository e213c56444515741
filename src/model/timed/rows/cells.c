/* Going through the cells of a database of rows, for a dump. */
#include <assert.h>

#include "model/timed/rows/rows_int.h"

/* One pass over the database. */
struct cells {
	struct timed *t;
	struct arena *arena;
	struct buf space; /* what all keys of ROWS begin with */
	struct buf row;   /* the key of the row that is gone through; empty: none yet */
	bool any;         /* a cell of the row has been given to the visitor */
	bool hidden;      /* the row is a collection that is not there, with all its members */
};

static struct timed_expiry
expiry_of(const struct timed_cell *cell)
{
	if (cell->by_default)
		return (struct timed_expiry){ .kind = TIMED_EXPIRY_DEFAULT };
	if (cell->at_ms == TIMED_CELL_NEVER)
		return (struct timed_expiry){ .kind = TIMED_EXPIRY_NEVER };
	return (struct timed_expiry){ TIMED_EXPIRY_AT, cell->at_ms };
}

/* Notices that a row begins. */
static enum status
cells_take_row(struct cells *c, struct str key, bool own)
{
	size_t len;

	TRY(timed_key_row_bytes(c->t->db, key, &len));
	if (c->row.len && str_eq(buf_str(&c->row), str_of(key.ptr, len)))
		return STATUS_OK;
	buf_clear(&c->row);
	buf_append(&c->row, key.ptr, len);
	c->any = false;
	/* Members that have no cell of a collection before them are left from one that expired. */
	c->hidden = !own && !timed_schema_of(c->t->db)->column_count;
	return buf_status(&c->row);
}

static enum status
cells_take_pair(struct cells *c, const struct kv_pair *pair, timed_cell_visitor *visit, void *arg)
{
	const struct timed_schema *schema = timed_schema_of(c->t->db);
	struct timed_cell_seen seen = { 0 };
	struct timed_place place;
	struct timed_cell cell;
	bool own;

	TRY(timed_place_parse(schema, str_skip(pair->key, c->space.len), c->arena, &place));
	TRY(timed_cell_parse(pair->value, &cell, c->t->err));
	own = !place.path.count;
	/* A row's own cell has the shortest key: it decides before its members come. */
	TRY(cells_take_row(c, pair->key, own));
	if (timed_has_expired(c->t, &cell)) {
		c->hidden = c->hidden || (own && !schema->column_count);
		return STATUS_OK;
	}
	if (c->hidden)
		return STATUS_OK;
	seen.begins = !c->any;
	seen.key = (struct timed_key){ place.key, schema->key_count };
	seen.path = place.path;
	seen.type = cell.type;
	seen.write_us = cell.write_us;
	seen.expiry = expiry_of(&cell);
	if (cell.value.len)
		TRY(timed_cell_scalar(&cell, c->arena, &seen.value));
	c->any = true;
	return visit(arg, &seen);
}

static enum status
cells_take_all(struct cells *c, timed_cell_visitor *visit, void *arg)
{
	AUTO(timed_cursor_close) struct timed_cursor cursor = { 0 };
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct kv_pair pair;
	enum status status;

	timed_key_space(&c->space, c->t->db, TIMED_SPACE_ROWS);
	buf_append_buf(&end, &c->space);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&c->space));
	TRY(catalog_key_status(&end));
	TRY(timed_now(c->t));
	TRY(timed_cursor_open(&cursor, c->t, buf_str(&c->space), buf_str(&end), NULL));
	while ((status = timed_cursor_next(&cursor, &pair)) == STATUS_OK) {
		arena_clear(c->arena);
		TRY(cells_take_pair(c, &pair, visit, arg));
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status
timed_cells(struct timed *t, struct arena *arena, timed_cell_visitor *visit, void *arg)
{
	struct cells c = {
		.t = t, .arena = arena, .space = CATALOG_KEY_INIT, .row = CATALOG_KEY_INIT
	};
	enum status status = cells_take_all(&c, visit, arg);

	buf_release(&c.space);
	buf_release(&c.row);
	if (status != STATUS_CORRUPT)
		return status;
	return err_set(t->err, status, "a row of the database \"%.*s\" cannot be read",
		       STR_ARG(t->db->name));
}
