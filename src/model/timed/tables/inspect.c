/* Cells as `frond inspect` shows them: (0x1f03, 'user1', 10), msg_column_id, 2026-… -> 'hello' */
#include <endian.h>

#include "catalog/draw.h"
#include "index/engine/draw.h"
#include "index/typed/form.h"
#include "kv/tuple.h"
#include "model/timed/tables/packed.h"

enum {
	DRAW_ARENA_BYTES = 4 * 1024 * 1024,
};

/* ---- Places ---- */

/* The name of a column, of one that was dropped, too. */
static void
draw_column(const struct table_schema *schema, uint64_t id, struct buf *ret)
{
	const struct table_column *column = table_column_by_id(schema, id);

	for (size_t i = 0; !column && i < schema->dropped_count; i++)
		if (schema->dropped[i].column.id == id)
			column = &schema->dropped[i].column;
	if (column)
		buf_printf(ret, "%.*s_column_id", STR_ARG(column->name));
	else
		buf_printf(ret, "column_id %llu", (unsigned long long)id);
}

static void
draw_place(const struct table_schema *schema, const struct table_place *place, struct buf *ret)
{
	buf_printf(ret, "(0x%04x", place->hash);
	for (size_t i = 0; i < place->key_count; i++) {
		buf_append_cstr(ret, ", ");
		timed_draw_scalar(&place->key[i], ret);
	}
	buf_append_byte(ret, ')');
	if (!place->column)
		return;
	buf_append_cstr(ret, ", ");
	draw_column(schema, place->column, ret);
	if (place->has_element) {
		buf_append_cstr(ret, ", ");
		timed_draw_scalar(&place->element, ret);
	}
	if (place->is_piece)
		buf_printf(ret, ", piece %llu", (unsigned long long)place->piece);
}

enum status
table_draw_key(const struct catalog_db *db, uint64_t space, struct str tail, struct arena *arena,
	       struct buf *ret)
{
	struct table_place place;

	if (space != TIMED_SPACE_ROWS && space != TIMED_SPACE_COUNTER)
		return STATUS_NOT_FOUND;
	TRY(table_place_parse(table_schema_of(db), tail, arena, &place));
	draw_place(table_schema_of(db), &place, ret);
	return STATUS_OK;
}

/* ---- Cells ---- */

/* {name_column_id: value, …} */
static enum status
draw_packed(const struct catalog_db *db, const struct timed_cell *own, struct arena *arena,
	    struct buf *ret)
{
	struct table_packed p = table_packed_of(own);
	const char *before = "{";
	struct doc_scalar s;
	enum status status;
	struct str value;
	uint64_t id;

	while ((status = table_packed_next(&p, &id, &value)) == STATUS_OK) {
		buf_append_cstr(ret, before);
		draw_column(table_schema_of(db), id, ret);
		buf_append_cstr(ret, ": ");
		TRY(table_packed_scalar(value, arena, &s));
		timed_draw_scalar(&s, ret);
		before = ", ";
	}
	buf_append_byte(ret, '}');
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
draw_cell(const struct catalog_db *db, struct str tail, struct str value, struct arena *arena,
	  struct buf *ret)
{
	const struct table_schema *schema = table_schema_of(db);
	struct table_place place;
	struct timed_cell cell;
	struct doc_scalar s;

	TRY(table_place_parse(schema, tail, arena, &place));
	if (place.is_piece) {
		draw_place(schema, &place, ret);
		buf_printf(ret, " -> [%zu bytes]", value.len ? value.len - 1 : 0);
		return STATUS_OK;
	}
	TRY(timed_cell_parse(value, &cell, NULL));
	draw_place(schema, &place, ret);
	timed_draw_written(db, &cell, ret);
	if (cell.piece_bytes) {
		buf_printf(ret, "[%llu bytes in pieces]", (unsigned long long)cell.piece_bytes);
		return STATUS_OK;
	}
	if (cell.packed.len)
		return draw_packed(db, &cell, arena, ret);
	if (!cell.value.len) {
		buf_append_cstr(ret, "[NULL]");
		return STATUS_OK;
	}
	TRY(timed_cell_scalar(&cell, arena, &s));
	timed_draw_scalar(&s, ret);
	return STATUS_OK;
}

static enum status
draw_counter(const struct catalog_db *db, struct str tail, struct str value, struct arena *arena,
	     struct buf *ret)
{
	uint64_t n;

	if (value.len != sizeof(n))
		return STATUS_CORRUPT;
	TRY(table_draw_key(db, TIMED_SPACE_COUNTER, tail, arena, ret));
	memcpy(&n, value.ptr, sizeof(n));
	buf_printf(ret, " -> %lld", (long long)le64toh(n));
	return STATUS_OK;
}

/* An entry of what expires: the time, and the place. */
static enum status
draw_entry(const struct catalog_db *db, struct str tail, struct arena *arena, struct buf *ret)
{
	struct tuple_reader r = tuple_reader(tail);
	uint64_t shard, ms;

	TRY(tuple_next_u64(&r, &shard));
	TRY(tuple_next_u64(&r, &ms));
	timed_draw_time(ms * TIMED_US_PER_MS, ret);
	buf_append_cstr(ret, ", ");
	return table_draw_key(db, TIMED_SPACE_ROWS, r.rest, arena, ret);
}

/* ---- Marks of deletions ---- */

/* What is deleted: a place, by a key of ROWS behind the subspace. */
static enum status
draw_mark_place(const struct catalog_db *db, struct str tail, struct arena *arena, struct buf *ret)
{
	struct tuple_reader r;
	struct table_place place;
	uint64_t column;
	size_t len;

	TRY(table_place_row(table_schema_of(db), tail, arena, &place, &len));
	r = tuple_reader(str_skip(tail, len));
	if (tuple_next_u64(&r, &column) != STATUS_OK || column)
		return table_draw_key(db, TIMED_SPACE_ROWS, tail, arena, ret);
	TRY(table_draw_key(db, TIMED_SPACE_ROWS, str_of(tail.ptr, len), arena, ret));
	buf_append_cstr(ret, ", liveness_column_id");
	return STATUS_OK;
}

/* The partition of a range; `*ret_rest` is what is behind it. */
static enum status
draw_partition(const struct catalog_db *db, struct str tail, struct arena *arena, struct buf *ret,
	       struct str *ret_rest)
{
	AUTO(buf_release) struct buf row = CATALOG_KEY_INIT;
	size_t len = tuple_skip(tail, 0, TUPLE_SKIP_TEXT);

	if (!len)
		return STATUS_CORRUPT;
	buf_append(&row, tail.ptr, len);
	tuple_put_bytes(&row, STR(""));
	TRY(buf_status(&row));
	*ret_rest = str_skip(tail, len);
	return table_draw_key(db, TIMED_SPACE_ROWS, buf_str(&row), arena, ret);
}

static void
draw_mark(const struct table_mark *mark, struct buf *ret)
{
	buf_append_cstr(ret, ", ");
	timed_draw_time(mark->made_us, ret);
	buf_printf(ret, " (TIMESTAMP = %lld) -> deleted", (long long)mark->stamp);
}

static void
draw_bound(const char *before, struct str bound, struct buf *ret)
{
	const struct doc_scalar bytes = { .kind = DOC_BYTES, .text = bound };

	buf_append_cstr(ret, before);
	timed_draw_scalar(&bytes, ret);
}

/* What a mark is of, by its key behind MARKS. */
static enum status
draw_of(const struct catalog_db *db, struct str tail, struct arena *arena, struct buf *ret)
{
	struct tuple_reader r = tuple_reader(tail);
	struct str rest;
	uint64_t part;

	TRY(tuple_next_u64(&r, &part));
	if (part == TABLE_MARK_PLACES)
		return draw_mark_place(db, r.rest, arena, ret);
	if (part != TABLE_MARK_RANGES)
		return STATUS_CORRUPT;
	TRY(draw_partition(db, r.rest, arena, ret, &rest));
	r = tuple_reader(rest);
	TRY(tuple_next_u64(&r, &part));
	buf_printf(ret, ", rows %llu", (unsigned long long)part);
	return STATUS_OK;
}

static enum status
draw_mark_pair(const struct catalog_db *db, struct str tail, struct str value, struct arena *arena,
	       struct buf *ret)
{
	struct tuple_reader r = tuple_reader(tail);
	struct table_mark mark;
	uint64_t part, us;

	TRY(tuple_next_u64(&r, &part));
	if (part == TABLE_MARK_HIGHEST) {
		TRY(timed_clock_parse(value, &us));
		buf_printf(ret, "highest TIMESTAMP = %llu", (unsigned long long)us);
		return STATUS_OK;
	}
	if (part == TABLE_MARK_DUES) {
		TRY(tuple_next_u64(&r, &us));
		timed_draw_time(us, ret);
		buf_append_cstr(ret, ", ");
		return draw_of(db, r.rest, arena, ret);
	}
	TRY(draw_of(db, tail, arena, ret));
	if (part == TABLE_MARK_PLACES) {
		TRY(table_mark_parse(value, &mark, NULL));
		draw_mark(&mark, ret);
		return STATUS_OK;
	}
	TRY(table_mark_parse_range(value, arena, &mark, NULL));
	draw_bound(" from ", mark.begin, ret);
	draw_bound(" to ", mark.end, ret);
	draw_mark(&mark, ret);
	return STATUS_OK;
}

/* ---- The schema ---- */

static void
draw_column_of_schema(const struct table_column *c, struct buf *ret)
{
	static const char *const kinds[] = {
		[TABLE_HASH] = "hash",
		[TABLE_RANGE] = "range",
		[TABLE_STATIC] = "static",
		[TABLE_REGULAR] = "regular",
	};

	timed_draw_text(c->name, ret);
	buf_append_byte(ret, ' ');
	timed_draw_text(c->type, ret);
	buf_printf(ret, " %s%s%s %llu", kinds[c->kind], c->descending ? " descending" : "",
		   c->has_pieces ? " in pieces" : "", (unsigned long long)c->id);
}

static enum status
draw_schema(struct str value, struct arena *arena, struct buf *ret)
{
	struct table_schema schema;

	TRY(table_schema_parse(value, arena, &schema, NULL));
	for (size_t i = 0; i < schema.column_count; i++) {
		buf_append_cstr(ret, i ? ", " : "columns: ");
		draw_column_of_schema(&schema.columns[i], ret);
	}
	for (size_t i = 0; i < schema.dropped_count; i++) {
		buf_append_cstr(ret, i ? ", " : "; dropped: ");
		draw_column_of_schema(&schema.dropped[i].column, ret);
		buf_append_byte(ret, ' ');
		timed_draw_time(schema.dropped[i].dropped_us, ret);
	}
	for (size_t i = 0; i < schema.property_count; i++) {
		buf_append_cstr(ret, i ? ", " : "; properties: ");
		timed_draw_text(schema.properties[i].name, ret);
		buf_append_cstr(ret, " = ");
		timed_draw_text(schema.properties[i].value, ret);
	}
	if (schema.stamped)
		buf_append_cstr(ret, "; clients' timestamps count");
	if (schema.packed)
		buf_append_cstr(ret, schema.whole ? "; rows are whole" : "; rows may be packed");
	if (schema.counts)
		buf_append_cstr(ret, schema.counted ? "; rows are counted"
						    : "; rows are no longer counted");
	return STATUS_OK;
}

/* ---- Indexes ---- */

const char *
table_space_name(uint64_t space)
{
	switch (space) {
	case INDEX_SPACE_DEFS:
		return "indexes";
	case INDEX_SPACE_ENTRIES:
		return "entries";
	default:
		return timed_space_name(space);
	}
}

/* A definition; what else is in the subspace is drawn as the tuple that it is. */
static enum status
draw_index(struct str tail, struct str value, struct buf *ret)
{
	struct tuple_reader r = tuple_reader(tail);
	uint64_t number;

	if (tuple_next_u64(&r, &number) != STATUS_OK || r.rest.len)
		return STATUS_NOT_FOUND;
	buf_printf(ret, "index %llu: ", (unsigned long long)number);
	return index_draw_def(&index_typed_form, value, ret);
}

/* ---- Pairs ---- */

static enum status
draw_count(struct str tail, struct str value, struct buf *ret)
{
	uint64_t rows;

	if (tail.len || !table_count_parse(value, &rows))
		return STATUS_NOT_FOUND;
	buf_printf(ret, "rows -> %llu", (unsigned long long)rows);
	return STATUS_OK;
}

static enum status
draw_any(const struct catalog_db *db, uint64_t space, struct str tail, struct str value,
	 struct arena *arena, struct buf *ret)
{
	switch (space) {
	case TIMED_SPACE_ROWS:
		return draw_cell(db, tail, value, arena, ret);
	case TIMED_SPACE_COUNTER:
		return draw_counter(db, tail, value, arena, ret);
	case TIMED_SPACE_COUNT:
		return draw_count(tail, value, ret);
	case TIMED_SPACE_EXPIRY:
		return draw_entry(db, tail, arena, ret);
	case TIMED_SPACE_MARKS:
		return draw_mark_pair(db, tail, value, arena, ret);
	case TIMED_SPACE_TABLE:
		return draw_schema(value, arena, ret);
	case INDEX_SPACE_DEFS:
		return draw_index(tail, value, ret);
	default:
		return timed_draw_pair(db, space, tail, value, ret) ? STATUS_OK : STATUS_NOT_FOUND;
	}
}

bool
table_draw_pair(const struct catalog_db *db, uint64_t space, struct str tail, struct str value,
		struct buf *ret)
{
	struct arena *arena = db->extension ? catalog_draw_arena(DRAW_ARENA_BYTES, ret) : NULL;
	enum status status = STATUS_NOT_FOUND;
	size_t len = ret->len;

	if (arena)
		status = draw_any(db, space, tail, value, arena, ret);
	arena_free(arena);
	if (status != STATUS_OK)
		ret->len = len;
	return status == STATUS_OK;
}

/* ---- One row ---- */

static bool
row_descends(const struct catalog_db *db, size_t at)
{
	return table_schema_of(db)->columns[at].descending;
}

static enum status
row_parse(const struct catalog_db *db, struct str tail, struct arena *arena,
	  const struct doc_scalar **ret, size_t *ret_count)
{
	struct table_place place;
	size_t len;

	TRY(table_place_row(table_schema_of(db), tail, arena, &place, &len));
	*ret = place.key;
	*ret_count = place.key_count;
	return STATUS_OK;
}

enum status
table_inspect(struct kv_tx *tx, const struct catalog_db *db, struct str id, struct arena *arena,
	      catalog_draw_prefix *draw, void *arg)
{
	const struct table_schema *schema = table_schema_of(db);
	const struct timed_row_form form = { table_space(schema), schema->hash_count,
					     schema->key_count, row_descends, row_parse };

	(void)arena;
	return timed_inspect_row(tx, db, &form, id, draw, arg);
}
