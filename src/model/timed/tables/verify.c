/* Checks a table: keys, cells, that what expires has an entry, that the keyspace is there. */
#include "kv/keyspace.h"
#include "kv/tuple.h"
#include "model/timed/check.h"
#include "model/timed/tables/packed.h"

#define TABLE_FINDING_CELL     "table_cell"     /* a cell that cannot be where it is */
#define TABLE_FINDING_PIECES   "table_pieces"   /* a value whose pieces are not all there */
#define TABLE_FINDING_EXPIRY   "table_expiry"   /* a cell whose expiry no entry tells of */
#define TABLE_FINDING_KEYSPACE "table_keyspace" /* a table without a keyspace */

/* A table while it is checked. */
struct table_check {
	struct catalog_verify *v;
	const struct table_schema *schema;
	bool retiming;              /* the sweep has yet to write entries for a changed default */
	bool dropping;              /* and to clear cells of columns that were dropped */
	struct table_pieces pieces; /* of the cell before */
	struct buf pieced;          /* its key; what begins so is a piece of it */
	uint64_t rows;              /* that have begun */
};

/* ---- Cells ---- */

static bool
storage_has_elements(enum table_storage storage)
{
	return storage == TABLE_MAP || storage == TABLE_SET || storage == TABLE_LIST;
}

/* NULL, or what is wrong. */
static const char *
place_is_wrong(const struct table_check *c, const struct table_place *place)
{
	bool is_static = place->key_count < c->schema->key_count;
	const struct table_column *column = table_column_by_id(c->schema, place->column);

	if (!place->column)
		return is_static || c->schema->counters ? "nothing can be inserted at this place"
							: NULL;
	if (!column && place->column < c->schema->next_id && c->dropping)
		return NULL;
	if (!column)
		return place->column < c->schema->next_id ? "its column was dropped long ago"
							  : "there was never such a column";
	if (column->kind != (is_static ? TABLE_STATIC : TABLE_REGULAR))
		return "its column is not in such rows";
	return storage_has_elements(column->storage) == place->has_element
		       ? NULL
		       : "the values of its column do not lie so";
}

/* ---- Pieces ---- */

/* Another cell, or the end of the rows: all pieces of the cell before have come. */
static void
check_pieces_end(struct table_check *c)
{
	if (c->pieces.left)
		catalog_verify_found(c->v, TABLE_FINDING_PIECES, buf_str(&c->pieced),
				     "%llu bytes of the value are missing",
				     (unsigned long long)c->pieces.left);
	c->pieces = (struct table_pieces){ 0 };
	buf_clear(&c->pieced);
}

static enum status
check_pieces_begin(struct table_check *c, const struct kv_pair *pair,
		   const struct table_place *place, const struct timed_cell *cell)
{
	const struct table_column *column = table_column_by_id(c->schema, place->column);

	if (cell->piece_bytes > TABLE_VALUE_BYTES || (column && !column->has_pieces))
		catalog_verify_found(c->v, TABLE_FINDING_PIECES, pair->key,
				     "a value in pieces cannot be at this place");
	table_pieces_begin(&c->pieces, cell);
	buf_append_str(&c->pieced, pair->key);
	return buf_status(&c->pieced);
}

static void
check_piece(struct table_check *c, const struct kv_pair *pair, const struct table_place *place)
{
	const struct table_column *column = table_column_by_id(c->schema, place->column);

	/* Those of a column that was dropped are cleared one after the other. */
	if (!column && c->dropping)
		return;
	if (!c->pieced.len || !str_starts_with(pair->key, buf_str(&c->pieced)) ||
	    !table_pieces_take(&c->pieces, place->piece, pair->value))
		catalog_verify_found(c->v, TABLE_FINDING_PIECES, pair->key,
				     "not the next piece of the value before it");
}

/* ---- What is packed ---- */

/* NULL, or what is wrong with a packed column. */
static const char *
packed_is_wrong(const struct table_check *c, uint64_t id)
{
	const struct table_column *column = table_column_by_id(c->schema, id);

	if (!column && id < c->schema->next_id && c->dropping)
		return NULL;
	if (!column)
		return "a column is packed that is not there";
	return table_column_packs(column) ? NULL : "a column is packed that cannot be";
}

static void
check_packed(struct table_check *c, const struct kv_pair *pair, const struct timed_cell *own)
{
	struct table_packed p = table_packed_of(own);
	struct err err = { 0 };
	struct doc_scalar s;
	enum status status;
	struct str value;
	uint64_t id;

	if (own->packed.len && !c->schema->packed)
		catalog_verify_found(c->v, TABLE_FINDING_CELL, pair->key,
				     "a packed row in a table that has none");
	while ((status = table_packed_next(&p, &id, &value)) == STATUS_OK) {
		const char *wrong = packed_is_wrong(c, id);

		if (wrong)
			catalog_verify_found(c->v, TABLE_FINDING_CELL, pair->key, "%s", wrong);
		status = table_packed_scalar(value, c->v->scratch, &s);
		if (status != STATUS_OK)
			break;
	}
	if (status != STATUS_NOT_FOUND)
		catalog_verify_unreadable(c->v, status, &err, pair->key, "not a packed row");
}

static enum status
check_leaf(struct table_check *c, const struct kv_pair *pair, const struct table_place *place)
{
	struct timed_cell cell;
	struct doc_scalar s;
	struct err err = { 0 };
	enum status status;

	status = timed_cell_parse(pair->value, &cell, &err);
	if (status == STATUS_OK && cell.value.len)
		status = timed_cell_scalar(&cell, c->v->scratch, &s);
	if (status != STATUS_OK) {
		catalog_verify_unreadable(c->v, status, &err, pair->key, "not a cell of a row");
		return STATUS_OK;
	}
	if (cell.piece_bytes)
		TRY(check_pieces_begin(c, pair, place, &cell));
	if (cell.type != (place->column ? TIMED_LEAF : TIMED_INSERTED))
		catalog_verify_found(c->v, TABLE_FINDING_CELL, pair->key,
				     "such a cell cannot be at this place");
	if (place->column && c->schema->whole)
		catalog_verify_found(c->v, TABLE_FINDING_CELL, pair->key,
				     "a cell beside a row that is whole");
	check_packed(c, pair, &cell);
	if (cell.has_stamp)
		TRY(table_verify_stamp(c->v, pair->key, &cell));
	if (cell.by_default && c->retiming)
		return STATUS_OK;
	return timed_verify_entry(c->v, TABLE_FINDING_EXPIRY, pair->key,
				  timed_cell_expires_ms(c->v->db, &cell));
}

static enum status
check_cell(struct table_check *c, const struct kv_pair *pair, struct str tail)
{
	struct table_place place;
	const char *wrong;

	arena_clear(c->v->scratch);
	if (!catalog_verify_parsed(c->v,
				   table_place_parse(c->schema, tail, c->v->scratch, &place))) {
		catalog_verify_found(c->v, CATALOG_FINDING_KEY, pair->key, "not a place in a row");
		return STATUS_OK;
	}
	wrong = place_is_wrong(c, &place);
	if (wrong)
		catalog_verify_found(c->v, TABLE_FINDING_CELL, pair->key, "%s", wrong);
	if (place.is_piece) {
		check_piece(c, pair, &place);
		return STATUS_OK;
	}
	check_pieces_end(c);
	if (!c->schema->counters)
		return check_leaf(c, pair, &place);
	if (pair->value.len != CATALOG_COUNTER_BYTES)
		catalog_verify_found(c->v, CATALOG_FINDING_VALUE, pair->key, "not a counter");
	return STATUS_OK;
}

/* ---- Rows ---- */

static enum status
key_is_there(struct catalog_verify *v, const struct buf *key, bool *ret)
{
	struct kv_future *f;
	struct str ignored;

	TRY(catalog_verify_get(v, buf_str(key), &f));
	*ret = kv_future_value(f, &ignored);
	kv_future_free(f);
	return STATUS_OK;
}

/* True in `*ret` if a walk of the sweep has yet to look at rows. */
static enum status
is_walked(struct catalog_verify *v, enum timed_space record, bool *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	TRY(timed_walk_key(v->db, record, &key));
	return key_is_there(v, &key, ret);
}

static enum status
row_pair(struct catalog_verify *v, const struct catalog_verify_cursor *cursor, void *arg)
{
	struct table_check *c = arg;

	v->sum.documents += cursor->begins_unit;
	c->rows += cursor->begins_unit;
	v->sum.leaves++;
	return check_cell(c, &cursor->pair, cursor->tail);
}

/* `range`: NULL for all of them. */
static enum status
check_rows(struct catalog_verify *v, struct catalog_verify_range *range)
{
	struct table_check c = { .v = v,
				 .schema = table_schema_of(v->db),
				 .pieced = CATALOG_KEY_INIT };
	const struct catalog_verify_walk walk = { table_space(c.schema), "the row",
						  timed_verify_row, row_pair, &c };
	enum status status = is_walked(v, TIMED_SPACE_RETIME, &c.retiming);

	if (status == STATUS_OK)
		status = is_walked(v, TIMED_SPACE_DROPPED, &c.dropping);
	if (status == STATUS_OK)
		status = catalog_verify_walk(v, &walk, range);
	if (status == STATUS_OK)
		check_pieces_end(&c);
	if (status == STATUS_OK && !range)
		status = table_verify_count(v, &c.rows);
	buf_release(&c.pieced);
	return status;
}

/* ---- Entries, and what is left for later ---- */

/* Entries may outlive their cells; each of them names a place all the same. */
static enum status
check_entry(struct catalog_verify *v, const struct catalog_verify_cursor *cursor, void *arg)
{
	struct tuple_reader r = tuple_reader(cursor->tail);
	struct table_place place;
	uint64_t shard, ms;

	(void)arg;
	arena_clear(v->scratch);
	if (tuple_next_u64(&r, &shard) != STATUS_OK || shard >= TIMED_EXPIRY_SHARDS ||
	    tuple_next_u64(&r, &ms) != STATUS_OK ||
	    !catalog_verify_parsed(
		    v, table_place_parse(table_schema_of(v->db), r.rest, v->scratch, &place)))
		catalog_verify_found(v, CATALOG_FINDING_KEY, cursor->pair.key,
				     "not the place of a cell that expires");
	return STATUS_OK;
}

static const struct catalog_verify_walk entries = { TIMED_SPACE_EXPIRY, "the entry", NULL,
						    check_entry, NULL };

/* False for the copy of a table that is being moved here: its keyspace may come with its name. */
static enum status
is_named(struct catalog_verify *v, bool *ret)
{
	unsigned failures = 0;
	struct catalog_db *db;
	enum status status;

	*ret = false;
	for (;;) {
		struct err err = { 0 };

		status = catalog_open_bare(v->tx, NULL, CATALOG_SPACE_TABLE, v->db->name, &db,
					   &err);
		if (status == STATUS_NOT_FOUND)
			return STATUS_OK;
		if (status == STATUS_OK)
			break;
		TRY(catalog_verify_again(v, &failures, status));
	}
	*ret = db->number == v->db->number;
	catalog_db_unref(db);
	return STATUS_OK;
}

static enum status
check_keyspace(struct catalog_verify *v)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct str keyspace, table;
	bool there;

	TRY(is_named(v, &there));
	if (!there)
		return STATUS_OK;
	table_name_split(v->db->name, &keyspace, &table);
	tuple_put_u64(&key, KV_ROOT);
	tuple_put_u64(&key, KV_ROOT_KEYSPACES);
	tuple_put_str(&key, keyspace);
	TRY(catalog_key_status(&key));
	TRY(key_is_there(v, &key, &there));
	if (there)
		return STATUS_OK;
	TRY(table_schema_key(v->db, &key));
	catalog_verify_found(v, TABLE_FINDING_KEYSPACE, buf_str(&key),
			     "the table is in a keyspace that is not there");
	return STATUS_OK;
}

static enum status
check_rest(struct catalog_verify *v)
{
	TRY(check_keyspace(v));
	/* The other of the two subspaces that rows may be in is empty. */
	TRY(timed_verify_single(
		v, table_schema_of(v->db)->counters ? TIMED_SPACE_ROWS : TIMED_SPACE_COUNTER,
		NULL));
	TRY(timed_verify_single(v, TIMED_SPACE_RETIME, timed_walk_is_good));
	return timed_verify_single(v, TIMED_SPACE_DROPPED, timed_walk_is_good);
}

/* In ranges, each at a version of its own, the number of all rows is not known. */
static enum status
check_counter(struct catalog_verify *v)
{
	return table_verify_count(v, NULL);
}

enum status
table_verify(struct catalog_verify *v)
{
	TRY(check_rows(v, NULL));
	TRY(catalog_verify_walk(v, &entries, NULL));
	TRY(table_verify_indexes(v));
	TRY(table_verify_marks(v, NULL));
	return check_rest(v);
}

enum status
table_verify_in_ranges(struct catalog_verify *v)
{
	TRY(timed_verify_ranges(v, check_rows, NULL));
	TRY(timed_verify_once(v, check_counter, "the number of rows"));
	TRY(timed_verify_pairs(v, &entries));
	TRY(table_verify_indexes_in_ranges(v));
	TRY(timed_verify_ranges(v, table_verify_marks, NULL));
	return timed_verify_once(v, check_rest, "the keyspace and what is left for later");
}
