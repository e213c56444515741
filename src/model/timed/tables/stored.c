/* Rows as entries of indexes are made of them: what is stored, whether or not it has expired. */
#include "kv/many.h"
#include "kv/tuple.h"
#include "model/timed/tables/packed.h"

static bool
is_used(const struct table_extension *x, uint64_t column)
{
	size_t from = 0, to = x->used_count;

	while (from < to) {
		size_t at = from + (to - from) / 2;

		if (x->used[at] == column)
			return true;
		if (x->used[at] < column)
			from = at + 1;
		else
			to = at;
	}
	return false;
}

/*
 * Makes room for a cell of the column. Cells are in the order of columns, and what is packed came
 * before all leaves. `single`: it takes the place of what is packed of the column.
 */
static enum status
cell_add(struct table_stored *s, uint64_t column, bool single, struct index_typed_cell **ret)
{
	size_t at = s->row.count;

	while (at && s->cells[at - 1].column > column)
		at--;
	if (!single || !at || s->cells[at - 1].column != column) {
		s->cells = arena_grow(s->arena, s->cells, s->row.count, &s->cap, sizeof(*s->cells));
		if (!s->cells)
			return STATUS_LIMIT;
		memmove(&s->cells[at + 1], &s->cells[at], (s->row.count - at) * sizeof(*s->cells));
		s->row.cells = s->cells;
		s->row.count++;
		at++;
	}
	*ret = &s->cells[at - 1];
	**ret = (struct index_typed_cell){ .column = column,
					   .element = { .kind = DOC_NULL },
					   .value = { .kind = DOC_NULL } };
	return STATUS_OK;
}

/* The columns of the key have the lowest ids. */
static bool
uses_key(const struct table_extension *x)
{
	for (size_t i = 0; x->used_count && i < x->schema.key_count; i++)
		if (x->used[0] <= x->schema.columns[i].id)
			return true;
	return false;
}

enum status
table_stored_begin(struct table_stored *s, const struct catalog_db *db, struct arena *arena,
		   struct str tail)
{
	const struct table_schema *schema = table_schema_of(db);
	struct index_typed_cell *cell;
	struct table_place place;
	size_t len;

	*s = (struct table_stored){ .extension = db->extension, .arena = arena };
	if (!uses_key(s->extension))
		return STATUS_OK;
	TRY(table_place_row(schema, tail, arena, &place, &len));
	/* No index of static columns has others. */
	for (size_t i = 0; place.key_count == schema->key_count && i < place.key_count; i++) {
		if (!is_used(s->extension, schema->columns[i].id))
			continue;
		TRY(cell_add(s, schema->columns[i].id, false, &cell));
		cell->value = place.key[i];
		cell->is_key = true;
	}
	return STATUS_OK;
}

/* What the row's own cell has packed. */
static enum status
take_own(struct table_stored *s, struct str value)
{
	struct timed_cell own;
	struct table_packed p;
	enum status status;
	uint64_t column;

	TRY(timed_cell_parse(value, &own, NULL));
	p = table_packed_of(&own);
	while ((status = table_packed_next(&p, &column, &value)) == STATUS_OK) {
		struct index_typed_cell *to;

		if (!is_used(s->extension, column))
			continue;
		TRY(cell_add(s, column, false, &to));
		to->expires = own.at_ms != TIMED_CELL_NEVER;
		TRY(table_packed_scalar(value, s->arena, &to->value));
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status
table_stored_take(struct table_stored *s, struct str rest, struct str value)
{
	struct table_place place = { 0 };
	struct index_typed_cell *to;
	struct timed_cell cell;

	if (!rest.len && s->extension->schema.packed)
		return take_own(s, value);
	TRY(table_place_column(rest, &place.column));
	if (!is_used(s->extension, place.column))
		return STATUS_OK;
	TRY(table_place_cell(rest, s->arena, &place));
	if (place.is_piece)
		return table_pieces_take(&s->pieces, place.piece, value) ? STATUS_OK
									 : STATUS_CORRUPT;
	TRY(table_stored_end(s));
	TRY(timed_cell_parse(value, &cell, NULL));
	TRY(cell_add(s, place.column, !place.has_element, &to));
	to->expires = cell.at_ms != TIMED_CELL_NEVER;
	if (place.has_element)
		to->element = place.element;
	if (cell.piece_bytes)
		return table_pieces_open(&s->pieces, &cell, s->arena, &to->value);
	return cell.value.len ? timed_cell_scalar(&cell, s->arena, &to->value) : STATUS_OK;
}

enum status
table_stored_end(const struct table_stored *s)
{
	return s->pieces.left ? STATUS_CORRUPT : STATUS_OK;
}

/* Reads all pairs of the row, or of the span what lies between its first and its last column. */
static enum status
read_range(struct table_stored *s, struct kv_tx *tx, struct str key, const struct table_span *span,
	   enum kv_read mode, bool *ret_there)
{
	const struct kv_range_options options = { .mode = mode };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct kv_pair pair;
	enum status status;

	buf_append_str(&begin, key);
	buf_append_str(&end, key);
	if (span && span->some) {
		/* What is packed lies in front of all columns. */
		if (!s->extension->schema.packed)
			tuple_put_u64(&begin, span->first);
		tuple_put_u64(&end, span->last);
	}
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&begin));
	TRY(catalog_key_status(&end));
	TRY(kv_scan_init(&scan, tx, buf_str(&begin), buf_str(&end), &options));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		*ret_there = true;
		TRY(table_stored_take(s, str_skip(pair.key, key.len), pair.value));
	}
	return status == STATUS_NOT_FOUND ? table_stored_end(s) : status;
}

/* A pair of a named column, or in front of them the row's own cell. */
struct span_pair {
	struct str key;          /* in the arena */
	struct kv_future *asked; /* NULL: it is known */
	struct str value;        /* `ptr` NULL: there is none */
};

static enum status
span_pair_make(const struct table_stored *s, struct str key, uint64_t column,
	       const struct table_known *known, struct span_pair *ret, bool *ret_known)
{
	AUTO(buf_release) struct buf cell = CATALOG_KEY_INIT;

	*ret = (struct span_pair){ .key = key };
	*ret_known = known && table_known_find(known, column, &ret->value);
	if (!column)
		return STATUS_OK;
	buf_set(&cell, key);
	tuple_put_u64(&cell, column);
	TRY(catalog_key_status(&cell));
	return arena_copy(s->arena, buf_str(&cell), &ret->key);
}

/* Asks for those that are not known. */
static enum status
span_ask(const struct table_stored *s, struct kv_tx *tx, struct str key,
	 const struct table_span *span, enum kv_read mode, const struct table_known *known,
	 struct span_pair *pairs, size_t *ret_count)
{
	struct kv_future *asked[TABLE_SPAN_KEYS + 1];
	struct str keys[TABLE_SPAN_KEYS + 1];
	size_t places[TABLE_SPAN_KEYS + 1];
	size_t count = 0, unknown = 0;

	for (size_t i = s->extension->schema.packed ? 0 : 1; i <= span->count; i++) {
		bool is_known;

		TRY(span_pair_make(s, key, i ? span->ids[i - 1] : 0, known, &pairs[count],
				   &is_known));
		if (!is_known) {
			keys[unknown] = pairs[count].key;
			places[unknown++] = count;
		}
		count++;
	}
	kv_get_many(tx, keys, unknown, mode, asked);
	for (size_t i = 0; i < unknown; i++)
		pairs[places[i]].asked = asked[i];
	*ret_count = count;
	return STATUS_OK;
}

/* Reads the named columns. `*ret_whole`: all is there; a value in pieces has more keys. */
static enum status
read_keys(struct table_stored *s, struct kv_tx *tx, struct str key, const struct table_span *span,
	  enum kv_read mode, const struct table_known *known, bool *ret_there, bool *ret_whole)
{
	struct span_pair pairs[TABLE_SPAN_KEYS + 1];
	size_t count;

	TRY(span_ask(s, tx, key, span, mode, known, pairs, &count));
	*ret_whole = true;
	for (size_t i = 0; i < count && *ret_whole; i++) {
		struct span_pair *p = &pairs[i];

		if (p->asked) {
			TRY(kv_future_wait(p->asked));
			if (!kv_future_value(p->asked, &p->value))
				continue;
		}
		if (!p->value.ptr)
			continue;
		*ret_there = true;
		TRY(table_stored_take(s, str_skip(p->key, key.len), p->value));
		*ret_whole = !s->pieces.left;
	}
	return STATUS_OK;
}

enum status
table_stored_read(struct table_stored *s, struct kv_tx *tx, const struct catalog_db *db,
		  struct str key, const struct table_span *span, enum kv_read mode,
		  const struct table_known *known, struct arena *arena, bool *ret_there)
{
	struct str tail = str_skip(key, db->prefix.len + TIMED_SPACE_BYTES);
	bool whole = false;

	*ret_there = false;
	TRY(table_stored_begin(s, db, arena, tail));
	if (span && span->count)
		TRY(read_keys(s, tx, key, span, mode, known, ret_there, &whole));
	if (whole)
		return STATUS_OK;
	if (span && span->count)
		TRY(table_stored_begin(s, db, arena, tail));
	return read_range(s, tx, key, span, mode, ret_there);
}
