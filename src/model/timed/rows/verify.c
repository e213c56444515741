/* Checks a database of rows: keys, cells, that what expires has an entry. */
#include "model/timed/rows/rows_int.h"

#define TIMED_FINDING_CELL   "row_cell"   /* a cell that cannot be where it is */
#define TIMED_FINDING_EXPIRY "row_expiry" /* a cell whose expiry no entry tells of */

static bool
cell_fits(const struct timed_schema *schema, const struct timed_place *place,
	  const struct timed_cell *cell)
{
	bool table = schema->column_count > 0;
	const struct timed_path *path = &place->path;

	if (!path->count)
		return table ? cell->type == TIMED_INSERTED
			     : cell->type != TIMED_LEAF && cell->type != TIMED_INSERTED;
	for (size_t i = 0; i < path->count; i++)
		if ((table && i == 0) != (path->steps[i].column > 0) ||
		    path->steps[i].column > schema->column_count)
			return false;
	return cell->type == TIMED_LEAF;
}

static enum status
verify_cell(struct catalog_verify *v, const struct kv_pair *pair, struct str tail, bool retiming)
{
	const struct timed_schema *schema = timed_schema_of(v->db);
	struct timed_place place;
	struct timed_cell cell;
	struct doc_scalar s;
	struct err err = { 0 };
	enum status status;

	arena_clear(v->scratch);
	if (timed_place_parse(schema, tail, v->scratch, &place) != STATUS_OK) {
		catalog_verify_found(v, CATALOG_FINDING_KEY, pair->key, "not a place in a row");
		return STATUS_OK;
	}
	status = timed_cell_parse(pair->value, &cell, &err);
	if (status == STATUS_OK && cell.value.len)
		status = timed_cell_scalar(&cell, v->scratch, &s);
	if (status != STATUS_OK) {
		catalog_verify_unreadable(v, status, &err, pair->key, "not a cell of a row");
		return STATUS_OK;
	}
	if (!cell_fits(schema, &place, &cell))
		catalog_verify_found(v, TIMED_FINDING_CELL, pair->key,
				     "such a cell cannot be at this place");
	/* After a change of the default, the sweep has yet to write such entries. */
	if (cell.by_default && retiming)
		return STATUS_OK;
	return timed_verify_entry(v, TIMED_FINDING_EXPIRY, pair->key,
				  timed_cell_expires_ms(v->db, &cell));
}

/* True if a default was changed and not all cells have their entries yet. */
static enum status
verify_is_retiming(struct catalog_verify *v, bool *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct str ignored;

	TRY(timed_walk_key(v->db, TIMED_SPACE_RETIME, &key));
	TRY(catalog_verify_get(v, buf_str(&key), &f));
	*ret = kv_future_value(f, &ignored);
	kv_future_free(f);
	return STATUS_OK;
}

static enum status
verify_rows(struct catalog_verify *v)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };
	AUTO(buf_release) struct buf row = CATALOG_KEY_INIT;
	bool retiming;

	TRY(verify_is_retiming(v, &retiming));
	TRY(catalog_verify_cursor_open(v, &c, TIMED_SPACE_ROWS));
	while (!c.done) {
		size_t len;

		if (timed_key_row_bytes(v->db, c.pair.key, &len) == STATUS_OK &&
		    !str_eq(str_of(c.pair.key.ptr, len), buf_str(&row))) {
			v->sum.documents++;
			buf_clear(&row);
			buf_append(&row, c.pair.key.ptr, len);
			TRY(buf_status(&row));
		}
		v->sum.leaves++;
		TRY(verify_cell(v, &c.pair, c.tail, retiming));
		TRY(catalog_verify_cursor_next(v, &c));
	}
	return STATUS_OK;
}

/* Entries may outlive their cells; each of them names a place all the same. */
static enum status
verify_entries(struct catalog_verify *v)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };

	TRY(catalog_verify_cursor_open(v, &c, TIMED_SPACE_EXPIRY));
	while (!c.done) {
		struct tuple_reader r = tuple_reader(c.tail);
		struct timed_place place;
		uint64_t shard, ms;

		arena_clear(v->scratch);
		if (tuple_next_u64(&r, &shard) != STATUS_OK || shard >= TIMED_EXPIRY_SHARDS ||
		    tuple_next_u64(&r, &ms) != STATUS_OK ||
		    timed_place_parse(timed_schema_of(v->db), r.rest, v->scratch, &place) !=
			    STATUS_OK)
			catalog_verify_found(v, CATALOG_FINDING_KEY, c.pair.key,
					     "not the place of a cell that expires");
		TRY(catalog_verify_cursor_next(v, &c));
	}
	return STATUS_OK;
}

enum status
timed_rows_verify(struct catalog_verify *v)
{
	TRY(verify_rows(v));
	TRY(verify_entries(v));
	return timed_verify_single(v, TIMED_SPACE_RETIME, timed_walk_is_good);
}
