#include <assert.h>

#include "model/timed/rows/rows_int.h"

/* ---- One row ---- */

/* A row while its pairs are read. */
struct row_read {
	struct timed *t;
	struct arena *arena;
	struct timed_row row;
	size_t cap;
	bool any; /* a pair has been read, whose key has the row's components */
};

/* True if the rows of this database are tables', whose columns outlive the row's own cell. */
static bool
is_table(const struct timed *t)
{
	return timed_schema_of(t->db)->column_count > 0;
}

static enum status
row_take_own(struct row_read *r, const struct timed_cell *cell)
{
	/* Its key is the beginning of all others of the row, so it comes before them. */
	assert(!r->row.leaf_count);
	if (cell->type == TIMED_LEAF)
		return STATUS_CORRUPT;
	if (timed_has_expired(r->t, cell))
		return STATUS_OK;
	r->row.type = cell->type;
	r->row.write_us = cell->write_us;
	r->row.expires_ms = timed_cell_expires_ms(r->t->db, cell);
	return cell->type == TIMED_VALUE ? timed_cell_scalar(cell, r->arena, &r->row.value)
					 : STATUS_OK;
}

static enum status
row_take_leaf(struct row_read *r, const struct timed_cell *cell, struct timed_path path)
{
	struct timed_leaf *leaf;

	if (cell->type != TIMED_LEAF)
		return STATUS_CORRUPT;
	if (timed_has_expired(r->t, cell))
		return STATUS_OK;
	r->row.leaves = arena_grow(r->arena, r->row.leaves, r->row.leaf_count, &r->cap,
				   sizeof(*r->row.leaves));
	if (!r->row.leaves)
		return STATUS_LIMIT;
	leaf = &r->row.leaves[r->row.leaf_count++];
	*leaf = (struct timed_leaf){
		.path = path,
		.write_us = cell->write_us,
		.expires_ms = timed_cell_expires_ms(r->t->db, cell),
	};
	return timed_cell_scalar(cell, r->arena, &leaf->value);
}

static enum status
row_take_pair(struct row_read *r, const struct kv_pair *pair)
{
	AUTO(buf_release) struct buf space = CATALOG_KEY_INIT;
	struct timed_place place;
	struct timed_cell cell;

	timed_key_space(&space, r->t->db, TIMED_SPACE_ROWS);
	TRY(catalog_key_status(&space));
	TRY(timed_place_parse(timed_schema_of(r->t->db), str_skip(pair->key, space.len), r->arena,
			      &place));
	TRY(timed_cell_parse(pair->value, &cell, r->t->err));
	if (!r->any)
		r->row.key = place.key;
	r->any = true;
	return place.path.count ? row_take_leaf(r, &cell, place.path) : row_take_own(r, &cell);
}

/*
 * True if the row is there: it was inserted, or something in it has a value. A row that is a
 * collection is there only with a cell of its own that has not expired: without it, its members do
 * not count.
 */
static bool
row_is_there(const struct row_read *r)
{
	if (!r->any)
		return false;
	return r->row.type != TIMED_LEAF || (is_table(r->t) && r->row.leaf_count > 0);
}

static enum status
fail_corrupt(struct timed *t, enum status status)
{
	if (status != STATUS_CORRUPT)
		return status;
	return err_set(t->err, status, "a row of the database \"%.*s\" cannot be read",
		       STR_ARG(t->db->name));
}

/* ---- Reading a place ---- */

/* The row's own cell, for what lies below it. */
static enum status
read_own(struct row_read *r, const struct buf *row)
{
	struct kv_pair pair = { .key = buf_str(row) };
	struct timed_got got;

	TRY(timed_data_ask(r->t, pair.key, KV_READ, &got));
	TRY(timed_now(r->t));
	TRY(timed_data_wait(r->t, &got, r->arena, &pair.value));
	return pair.value.ptr ? row_take_pair(r, &pair) : STATUS_OK;
}

static enum status
read_range(struct row_read *r, const struct buf *begin)
{
	AUTO(timed_cursor_close) struct timed_cursor scan = { 0 };
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct kv_pair pair;
	enum status status;

	buf_append_buf(&end, begin);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	TRY(timed_cursor_open(&scan, r->t, buf_str(begin), buf_str(&end), NULL));
	TRY(timed_now(r->t));
	while ((status = timed_cursor_next(&scan, &pair)) == STATUS_OK)
		TRY(row_take_pair(r, &pair));
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status
timed_read(struct timed *t, const struct timed_key *key, const struct timed_path *place,
	   struct arena *arena, struct timed_row *ret)
{
	AUTO(buf_release) struct buf at = CATALOG_KEY_INIT;
	struct row_read r = { .t = t, .arena = arena };

	TRY(timed_key_row(t, key, &at));
	TRY(timed_ask(t));
	if (place->count && !is_table(t))
		TRY(fail_corrupt(t, read_own(&r, &at)));
	TRY(timed_key_path(t, place, &at));
	TRY(fail_corrupt(t, read_range(&r, &at)));
	if (!row_is_there(&r) || (place->count && !r.row.leaf_count))
		return STATUS_NOT_FOUND;
	*ret = r.row;
	return STATUS_OK;
}

/* ---- Going through rows ---- */

static enum status
scan_begin(struct timed_scan *scan, struct str begin, struct str end)
{
	TRY(timed_ask(scan->t));
	TRY(timed_cursor_open(&scan->scan, scan->t, begin, end, NULL));
	scan->open = true;
	return timed_now(scan->t);
}

enum status
timed_scan_open(struct timed_scan *scan, struct timed *t, const struct timed_key *hash)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	*scan = (struct timed_scan){ .t = t, .row = CATALOG_KEY_INIT };
	if (hash)
		TRY(timed_key_hash(t, hash, &begin));
	else
		timed_key_space(&begin, t->db, TIMED_SPACE_ROWS);
	buf_append_buf(&end, &begin);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	return scan_begin(scan, buf_str(&begin), buf_str(&end));
}

enum status
timed_scan_open_rows(struct timed_scan *scan, struct timed *t, const struct timed_rows *rows)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	*scan = (struct timed_scan){ .t = t, .row = CATALOG_KEY_INIT };
	TRY(timed_key_rows(t, rows, &begin, &end));
	return scan_begin(scan, buf_str(&begin), buf_str(&end));
}

/* Makes scan->pair the next pair, unless it is there already. */
static enum status
scan_peek(struct timed_scan *scan)
{
	if (!scan->has_pair)
		TRY(timed_cursor_next(&scan->scan, &scan->pair));
	scan->has_pair = true;
	return STATUS_OK;
}

/* All pairs of the next row, whether it is there or not. STATUS_NOT_FOUND at the end. */
static enum status
scan_read_row(struct timed_scan *scan, struct row_read *r)
{
	enum status status;
	size_t len;

	TRY(scan_peek(scan));
	TRY(timed_key_row_bytes(scan->t->db, scan->pair.key, &len));
	buf_clear(&scan->row);
	buf_append(&scan->row, scan->pair.key.ptr, len);
	TRY(buf_status(&scan->row));
	/* The pair goes with the cursor's next step; what the row keeps of it is a copy. */
	do {
		TRY(row_take_pair(r, &scan->pair));
		scan->has_pair = false;
		status = scan_peek(scan);
	} while (status == STATUS_OK && str_starts_with(scan->pair.key, buf_str(&scan->row)));
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status
timed_scan_next(struct timed_scan *scan, struct arena *arena, struct timed_row *ret)
{
	for (;;) {
		struct row_read r = { .t = scan->t, .arena = arena };

		TRY(fail_corrupt(scan->t, scan_read_row(scan, &r)));
		if (row_is_there(&r)) {
			*ret = r.row;
			return STATUS_OK;
		}
	}
}

void
timed_scan_close(struct timed_scan *scan)
{
	if (scan->open)
		timed_cursor_close(&scan->scan);
	buf_release(&scan->row);
	scan->open = false;
}
