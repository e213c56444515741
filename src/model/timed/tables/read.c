/* Rows from their pairs; reading one row. */
#include <assert.h>
#include <endian.h>

#include "model/timed/tables/tables_int.h"

enum status
table_fail_corrupt(struct timed *t, enum status status)
{
	if (status != STATUS_CORRUPT)
		return status;
	return err_set(t->err, status, "a row of the table \"%.*s\" cannot be read",
		       STR_ARG(t->db->name));
}

/* ---- Rows from pairs ---- */

static bool
is_wanted(const struct table_wanted *wanted, uint64_t id)
{
	size_t from = 0, to;

	if (!wanted || !wanted->some)
		return true;
	to = wanted->count;
	while (from < to) {
		size_t at = from + (to - from) / 2;

		if (wanted->ids[at] == id)
			return true;
		if (wanted->ids[at] < id)
			from = at + 1;
		else
			to = at;
	}
	return false;
}

static enum status
take_own(struct table_reading *r, struct str value)
{
	struct timed_cell cell;

	if (r->is_static || r->schema->counters)
		return STATUS_CORRUPT;
	TRY(timed_cell_parse(value, &cell, r->t->err));
	if (cell.type != TIMED_INSERTED)
		return STATUS_CORRUPT;
	if (timed_has_expired(r->t, &cell))
		return STATUS_OK;
	r->lives = true;
	r->row.inserted = true;
	r->row.write_us = cell.write_us;
	r->row.expires_ms = timed_cell_expires_ms(r->t->db, &cell);
	r->row.by_default = cell.by_default;
	return STATUS_OK;
}

static enum status
cell_add(struct table_reading *r, const struct table_column *column, struct str rest,
	 struct table_cell **ret)
{
	struct table_place place = { 0 };

	r->row.cells = arena_grow(r->arena, r->row.cells, r->row.cell_count, &r->cap,
				  sizeof(*r->row.cells));
	if (!r->row.cells)
		return STATUS_LIMIT;
	TRY(table_place_cell(rest, r->arena, &place));
	if (place.has_element != (column->storage == TABLE_MAP || column->storage == TABLE_SET ||
				  column->storage == TABLE_LIST))
		return STATUS_CORRUPT;
	*ret = &r->row.cells[r->row.cell_count++];
	**ret = (struct table_cell){ .column = column, .element = place.element };
	if (!place.has_element)
		(*ret)->element.kind = DOC_NULL;
	return STATUS_OK;
}

static enum status
take_counter(struct table_reading *r, const struct table_column *column, struct str rest,
	     struct str value)
{
	struct table_cell *to;
	uint64_t n;

	if (value.len != sizeof(n))
		return STATUS_CORRUPT;
	r->lives = true;
	if (!is_wanted(r->wanted, column->id))
		return STATUS_OK;
	TRY(cell_add(r, column, rest, &to));
	memcpy(&n, value.ptr, sizeof(n));
	to->value = (struct doc_scalar){ .kind = DOC_INT64, .n = (int64_t)le64toh(n) };
	return STATUS_OK;
}

static enum status
take_leaf(struct table_reading *r, const struct table_column *column, struct str rest,
	  struct str value)
{
	struct table_cell *to;
	struct timed_cell cell;

	TRY(timed_cell_parse(value, &cell, r->t->err));
	if (cell.type != TIMED_LEAF)
		return STATUS_CORRUPT;
	if (timed_has_expired(r->t, &cell))
		return STATUS_OK;
	r->lives = true;
	if (!is_wanted(r->wanted, column->id))
		return STATUS_OK;
	TRY(cell_add(r, column, rest, &to));
	to->write_us = cell.write_us;
	to->expires_ms = timed_cell_expires_ms(r->t->db, &cell);
	to->by_default = cell.by_default;
	return timed_cell_scalar(&cell, r->arena, &to->value);
}

/* The key of the row, from the first pair of it that is read. */
static enum status
take_key(struct table_reading *r, struct str tail)
{
	struct table_place place;
	size_t len;

	TRY(table_place_row(r->schema, tail, r->arena, &place, &len));
	r->any = true;
	r->is_static = place.key_count < r->schema->key_count;
	r->row.is_row = !r->is_static;
	r->row.token = place.token;
	r->row.key = place.key;
	r->row.key_count = place.key_count;
	return STATUS_OK;
}

enum status
table_reading_take(struct table_reading *r, const struct kv_pair *pair, size_t row_len)
{
	const struct table_column *column;
	struct str rest = str_skip(pair->key, row_len);
	uint64_t id;

	if (!r->any)
		TRY(take_key(r, str_skip(pair->key, r->t->db->prefix.len + TIMED_SPACE_BYTES)));
	TRY(table_place_column(rest, &id));
	if (!id)
		return take_own(r, pair->value);
	column = table_column_by_id(r->schema, id);
	if (!column) /* it was dropped */
		return STATUS_OK;
	if (column->kind != (r->is_static ? TABLE_STATIC : TABLE_REGULAR))
		return STATUS_CORRUPT;
	return column->storage == TABLE_COUNTER ? take_counter(r, column, rest, pair->value)
						: take_leaf(r, column, rest, pair->value);
}

bool
table_reading_end(struct table_reading *r)
{
	struct table_row *row = &r->row;

	for (size_t i = 0, j = row->cell_count; r->reverse && i + 1 < j; i++) {
		const struct table_cell cell = row->cells[i];

		row->cells[i] = row->cells[--j];
		row->cells[j] = cell;
	}
	if (r->is_static) {
		row->statics = row->cells;
		row->static_count = row->cell_count;
		row->cells = NULL;
		row->cell_count = 0;
	}
	return r->lives;
}

/* ---- One row ---- */

/* All pairs from one key on. */
struct one_row {
	struct timed_cursor cursor;
	struct buf begin; /* the row's key */
	struct buf end;
	struct table_reading reading;
};

static enum status
one_open(struct one_row *o, const struct table_key *key, const struct table_wanted *wanted,
	 struct arena *arena, struct timed *t)
{
	o->reading = (struct table_reading){
		.t = t, .schema = table_schema_of(t->db), .wanted = wanted, .arena = arena
	};
	TRY(table_key_row(t, key, &o->begin));
	buf_append_str(&o->end, buf_str(&o->begin));
	buf_append_byte(&o->end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&o->end));
	return timed_cursor_open(&o->cursor, t, buf_str(&o->begin), buf_str(&o->end), NULL);
}

static enum status
one_read(struct one_row *o, bool *ret_there)
{
	struct kv_pair pair;
	enum status status;

	while ((status = timed_cursor_next(&o->cursor, &pair)) == STATUS_OK) {
		status = table_reading_take(&o->reading, &pair, o->begin.len);
		if (status != STATUS_OK)
			return table_fail_corrupt(o->reading.t, status);
	}
	*ret_there = table_reading_end(&o->reading);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static void
one_close(struct one_row *o)
{
	timed_cursor_close(&o->cursor);
	buf_release(&o->begin);
	buf_release(&o->end);
}

/* The key as it was asked for, where no pair has told it. */
static enum status
key_of(const struct table_key *key, struct arena *arena, struct table_row *ret)
{
	ret->key = arena_alloc(arena, key->count * sizeof(*ret->key));
	if (!ret->key)
		return STATUS_LIMIT;
	memcpy(ret->key, key->parts, key->count * sizeof(*ret->key));
	for (size_t i = 0; i < key->count; i++) {
		ret->key[i].text = arena_dup(arena, key->parts[i].text);
		if (key->parts[i].text.len && !ret->key[i].text.ptr)
			return STATUS_LIMIT;
	}
	ret->key_count = key->count;
	ret->token = key->token;
	return STATUS_OK;
}

static enum status
read_both(struct timed *t, const struct table_key *key, const struct table_key *of_statics,
	  const struct table_wanted *wanted, struct arena *arena, struct one_row both[2],
	  struct table_row *ret)
{
	bool there = false, statics = false;

	/* Both ranges and the clock are asked for before the first answer is waited for. */
	TRY(timed_ask(t));
	TRY(one_open(&both[0], key, wanted, arena, t));
	if (of_statics)
		TRY(one_open(&both[1], of_statics, wanted, arena, t));
	TRY(timed_now(t));
	TRY(one_read(&both[0], &there));
	if (of_statics)
		TRY(one_read(&both[1], &statics));
	if (!there && !statics)
		return STATUS_NOT_FOUND;
	*ret = both[0].reading.row;
	ret->is_row = there && ret->is_row;
	if (of_statics) {
		ret->statics = both[1].reading.row.statics;
		ret->static_count = both[1].reading.row.static_count;
	}
	return there ? STATUS_OK : key_of(of_statics, arena, ret);
}

enum status
table_read(struct timed *t, const struct table_key *key, bool statics,
	   const struct table_wanted *wanted, struct arena *arena, struct table_row *ret)
{
	const struct table_schema *schema = table_schema_of(t->db);
	const struct table_key partition = { key->token, key->parts, schema->hash_count };
	struct one_row both[2] = { { .begin = CATALOG_KEY_INIT, .end = CATALOG_KEY_INIT },
				   { .begin = CATALOG_KEY_INIT, .end = CATALOG_KEY_INIT } };
	bool beside = statics && schema->static_count && key->count == schema->key_count;
	enum status status;

	status = read_both(t, key, beside ? &partition : NULL, wanted, arena, both, ret);
	one_close(&both[0]);
	one_close(&both[1]);
	return status;
}

const struct table_cell *
table_cells_of(const struct table_cell *cells, size_t count, const struct table_column *column,
	       size_t *ret_count)
{
	size_t from = 0, to = count;

	while (from < to) {
		size_t at = from + (to - from) / 2;

		if (cells[at].column->id < column->id)
			from = at + 1;
		else
			to = at;
	}
	for (to = from; to < count && cells[to].column->id == column->id;)
		to++;
	*ret_count = to - from;
	return cells ? &cells[from] : NULL;
}
