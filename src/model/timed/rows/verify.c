/* Checks a database of rows: keys, cells, that what expires has an entry. */
#include "model/timed/check.h"
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
	if (!catalog_verify_parsed(v, timed_place_parse(schema, tail, v->scratch, &place))) {
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
row_pair(struct catalog_verify *v, const struct catalog_verify_cursor *c, void *retiming)
{
	v->sum.documents += c->begins_unit;
	v->sum.leaves++;
	return verify_cell(v, &c->pair, c->tail, *(const bool *)retiming);
}

/* `range`: NULL for all of them. */
static enum status
verify_rows(struct catalog_verify *v, struct catalog_verify_range *range)
{
	bool retiming;
	const struct catalog_verify_walk walk = { TIMED_SPACE_ROWS, "the row", timed_verify_row,
						  row_pair, &retiming };

	TRY(verify_is_retiming(v, &retiming));
	return catalog_verify_walk(v, &walk, range);
}

/* Entries may outlive their cells; each of them names a place all the same. */
static enum status
verify_entry(struct catalog_verify *v, const struct catalog_verify_cursor *c, void *arg)
{
	struct tuple_reader r = tuple_reader(c->tail);
	struct timed_place place;
	uint64_t shard, ms;

	(void)arg;
	arena_clear(v->scratch);
	if (tuple_next_u64(&r, &shard) != STATUS_OK || shard >= TIMED_EXPIRY_SHARDS ||
	    tuple_next_u64(&r, &ms) != STATUS_OK ||
	    !catalog_verify_parsed(
		    v, timed_place_parse(timed_schema_of(v->db), r.rest, v->scratch, &place)))
		catalog_verify_found(v, CATALOG_FINDING_KEY, c->pair.key,
				     "not the place of a cell that expires");
	return STATUS_OK;
}

static const struct catalog_verify_walk entries = { TIMED_SPACE_EXPIRY, "the entry", NULL,
						    verify_entry, NULL };

static enum status
verify_walk(struct catalog_verify *v)
{
	return timed_verify_single(v, TIMED_SPACE_RETIME, timed_walk_is_good);
}

enum status
timed_rows_verify(struct catalog_verify *v)
{
	TRY(verify_rows(v, NULL));
	TRY(catalog_verify_walk(v, &entries, NULL));
	return verify_walk(v);
}

enum status
timed_rows_verify_in_ranges(struct catalog_verify *v)
{
	TRY(timed_verify_ranges(v, verify_rows, NULL));
	TRY(timed_verify_pairs(v, &entries));
	return timed_verify_once(v, verify_walk, "what is left for later");
}
