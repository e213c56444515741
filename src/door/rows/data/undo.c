/*
 * An entry, in the order of its parts; the last one is read first:
 *
 *     key        token (8), parts (4): each as a leaf's value (doc/scalar.h) with its length (4)
 *     row        is it there, inserted (1 each), its times
 *     cells      how many (4): column (8), element, value, times
 *     times      write time, expiry (8 each), has it a stamp (1), the stamp (8)
 *     end        by how many rows the write has changed the table's count (1), the number of the
 *                table (4), the length of all before (4)
 */
#include "door/rows/data/undo.h"

#include <assert.h>

enum {
	END_BYTES = 8,             /* that are read first */
	TOLD_BYTES = 1,            /* before these */
	SCALAR_BYTES = 128 * 1024, /* of one, with its kind */
};

/* ---- Noting ---- */

static void
put_scalar(struct buf *undo, const struct doc_scalar *s)
{
	size_t at = undo->len;

	rows_put_u32(undo, 0);
	doc_scalar_put(undo, s);
	rows_set_u32(undo, at, (uint32_t)(undo->len - at - 4));
}

static void
put_times(struct buf *undo, uint64_t write_us, uint64_t expires_ms, bool has_stamp, int64_t stamp)
{
	rows_put_u64(undo, write_us);
	rows_put_u64(undo, expires_ms);
	rows_put_u8(undo, has_stamp);
	rows_put_u64(undo, (uint64_t)stamp);
}

static void
put_row(struct buf *undo, const struct table_row *row)
{
	rows_put_u8(undo, row->is_row);
	rows_put_u8(undo, row->inserted);
	put_times(undo, row->write_us, row->expires_ms, row->has_stamp, row->stamp);
	rows_put_u32(undo, (uint32_t)row->cell_count);
	for (size_t i = 0; i < row->cell_count; i++) {
		rows_put_u64(undo, row->cells[i].column->id);
		put_scalar(undo, &row->cells[i].element);
		put_scalar(undo, &row->cells[i].value);
		put_times(undo, row->cells[i].write_us, row->cells[i].expires_ms,
			  row->cells[i].has_stamp, row->cells[i].stamp);
	}
}

enum status
rows_undo_note(struct unit_table *t, const struct table_key *key, struct arena *arena,
	       struct buf *undo)
{
	struct table_row row = { 0 };
	size_t from = undo->len;
	enum status status = table_read(&t->timed, key, false, NULL, arena, &row);

	if (status == STATUS_NOT_FOUND)
		row = (struct table_row){ 0 };
	else
		TRY(status);
	rows_put_u64(undo, (uint64_t)key->token);
	rows_put_u32(undo, (uint32_t)key->count);
	for (size_t i = 0; i < key->count; i++)
		put_scalar(undo, &key->parts[i]);
	put_row(undo, &row);
	rows_put_u8(undo, 0);
	rows_put_u32(undo, (uint32_t)t->number);
	rows_put_u32(undo, (uint32_t)(undo->len - from));
	if (buf_status(undo) != STATUS_OK)
		undo->len = from;
	return buf_status(undo);
}

void
rows_undo_told(struct buf *undo, int rows)
{
	assert(undo->len >= END_BYTES + TOLD_BYTES);
	undo->ptr[undo->len - END_BYTES - TOLD_BYTES] = (char)rows;
}

/* ---- Taking back ---- */

struct taking {
	struct rows_in in;
	struct arena *arena;
	struct buf scratch;
};

static uint64_t
take_u64(struct taking *k)
{
	uint64_t high = rows_in_u32(&k->in);

	return high << 32 | rows_in_u32(&k->in);
}

/* Copied, since the entry goes while it is written. */
static enum status
take_scalar(struct taking *k, struct doc_scalar *ret)
{
	struct str value = rows_in_long(&k->in);

	*ret = (struct doc_scalar){ 0 };
	TRY(arena_copy(k->arena, value, &value));
	TRY(doc_scalar_read(value, &k->scratch, ret));
	if (ret->text.len)
		TRY(arena_copy(k->arena, ret->text, &ret->text));
	if (ret->more.len)
		TRY(arena_copy(k->arena, ret->more, &ret->more));
	return STATUS_OK;
}

static enum status
take_key(struct taking *k, struct table_key *ret)
{
	struct doc_scalar *parts = arena_alloc(k->arena, TABLE_KEY_COLUMNS * sizeof(*parts));

	if (!parts)
		return STATUS_LIMIT;
	ret->token = (int64_t)take_u64(k);
	ret->count = rows_in_u32(&k->in);
	assert(ret->count <= TABLE_KEY_COLUMNS);
	for (size_t i = 0; i < ret->count; i++)
		TRY(take_scalar(k, &parts[i]));
	ret->parts = parts;
	return STATUS_OK;
}

/* What lived by the table's default goes on doing so. */
static struct timed_expiry
expiry_of(const struct timed *t, uint64_t write_us, uint64_t expires_ms)
{
	uint64_t ttl_ms = timed_ttl_ms(t->db);

	if (expires_ms == (ttl_ms ? write_us / 1000 + ttl_ms : 0))
		return (struct timed_expiry){ .kind = TIMED_EXPIRY_DEFAULT };
	if (!expires_ms)
		return (struct timed_expiry){ .kind = TIMED_EXPIRY_NEVER };
	return (struct timed_expiry){ .kind = TIMED_EXPIRY_AT, .ms = expires_ms };
}

/* The times of what is written next. */
static enum status
take_times(struct taking *k, struct timed *t, struct timed_expiry *ret)
{
	uint64_t write_us = take_u64(k), expires_ms = take_u64(k);
	bool has_stamp = rows_in_u8(&k->in);
	int64_t stamp = (int64_t)take_u64(k);

	*ret = expiry_of(t, write_us, expires_ms);
	if (has_stamp)
		TRY(table_stamp_set(t, stamp));
	else
		table_stamp_unset(t);
	return timed_written_at(t, write_us);
}

static enum table_change_kind
change_of(enum table_storage storage)
{
	switch (storage) {
	case TABLE_MAP:
	case TABLE_SET:
		return TABLE_CHANGE_PUT_ELEMENT;
	case TABLE_LIST:
		return TABLE_CHANGE_PUT_PLACE;
	case TABLE_SINGLE:
	case TABLE_COUNTER:
		break;
	}
	return TABLE_CHANGE_PUT;
}

/* The value of a noted cell, as the change that writes it again, and the times of that. */
static enum status
take_change(struct taking *k, struct unit_table *t, struct table_change *ret)
{
	const struct table_column *column;

	*ret = (struct table_change){ .column = take_u64(k) };
	column = table_column_by_id(t->table->schema, ret->column);
	TRY(take_scalar(k, &ret->element));
	TRY(take_scalar(k, &ret->value));
	TRY(take_times(k, &t->timed, &ret->expiry));
	/* No transaction that changes the schema is under way in this one. */
	assert(column);
	ret->kind = change_of(column->storage);
	return STATUS_OK;
}

static enum status
take_cells(struct taking *k, struct unit_table *t, const struct table_key *key, uint32_t cells)
{
	for (uint32_t i = 0; i < cells; i++) {
		struct table_change change;
		struct table_write write = {
			.key = *key, .tells_count = true, .changes = &change, .change_count = 1
		};

		TRY(take_change(k, t, &change));
		TRY(table_write(&t->timed, &write));
	}
	return STATUS_OK;
}

/*
 * Where a row is one pair, its cells have the times of the row, so one write makes it that pair
 * again.
 */
static enum status
take_whole(struct taking *k, struct unit_table *t, struct table_write *write, uint32_t cells)
{
	struct table_change *changes = arena_alloc(k->arena, (cells + 1) * sizeof(*changes));

	if (!changes)
		return STATUS_LIMIT;
	for (uint32_t i = 0; i < cells; i++)
		TRY(take_change(k, t, &changes[i]));
	write->changes = changes;
	write->change_count = cells;
	return table_write(&t->timed, write);
}

static enum status
undo_take_row(struct taking *k, struct unit_table *t)
{
	bool inserted, is_whole;
	struct table_key key;
	struct table_write write;
	uint32_t cells;

	TRY(take_key(k, &key));
	inserted = rows_in_u8(&k->in);
	inserted &= rows_in_u8(&k->in);
	is_whole = inserted && t->table->schema->whole;
	TRY(table_clear_told_row(&t->timed, &key));
	write = (struct table_write){ .key = key, .inserts = true, .tells_count = true };
	TRY(take_times(k, &t->timed, &write.expiry));
	if (inserted && !is_whole)
		TRY(table_write(&t->timed, &write));
	cells = rows_in_u32(&k->in);
	TRY(is_whole ? take_whole(k, t, &write, cells) : take_cells(k, t, &key, cells));
	t->added -= (int8_t)rows_in_u8(&k->in);
	assert(!k->in.bad);
	return STATUS_OK;
}

size_t
rows_undo_last(const struct buf *undo, size_t *ret_from)
{
	struct rows_in end;
	uint32_t number, len;

	assert(undo->len >= END_BYTES);
	end = (struct rows_in){ .rest = str_of(undo->ptr + undo->len - END_BYTES, END_BYTES) };
	number = rows_in_u32(&end);
	len = rows_in_u32(&end);
	assert(len + 4 <= undo->len);
	*ret_from = undo->len - 4 - len;
	return number;
}

enum status
rows_undo_take(struct unit_table *t, struct arena *arena, struct buf *undo, size_t from)
{
	struct taking k = { .in = { .rest = str_skip(buf_str(undo), from) },
			    .arena = arena,
			    .scratch = BUF_SHORT(SCALAR_BYTES) };
	enum status status, reset;

	table_restore_begin(&t->timed);
	status = undo_take_row(&k, t);
	table_restore_end(&t->timed);
	reset = timed_written_at(&t->timed, 0);
	buf_release(&k.scratch);
	TRY(status);
	TRY(reset);
	undo->len = from;
	return STATUS_OK;
}
