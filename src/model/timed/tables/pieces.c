/*
 * Values that are too long for one pair. The cell of the column, or of the element in it, has the
 * value's length and kind then, and the bytes of the value lie in pairs below the cell's key:
 *
 *     (cell's key, n) → a byte of zero, then bytes from n * TIMED_VALUE_BYTES on
 *
 * A writer knows from the table's description whether the values of a column may lie in pieces, and
 * only then clears what is below a cell. So other columns are written without a read, by one pair.
 * The first writer of a long value in a column changes the description by a transaction of its own,
 * and then begins its own transaction again. A history records pieces in the way it records cells.
 */
#include "model/timed/tables/tables_int.h"

enum {
	/* Around the text of a scalar. */
	ENCODED_BYTES = 16,
};

bool
table_value_is_long(const struct doc_scalar *value)
{
	size_t bytes = value->text.len + ENCODED_BYTES;

	if (value->kind != DOC_TEXT && value->kind != DOC_BYTES)
		return false;
	/* A zero takes two bytes. */
	if (bytes + value->text.len <= TIMED_VALUE_BYTES)
		return false;
	for (size_t i = 0; i < value->text.len; i++)
		bytes += !value->text.ptr[i];
	return bytes > TIMED_VALUE_BYTES;
}

bool
table_change_is_long(const struct table_change *c)
{
	bool writes = c->kind == TABLE_CHANGE_PUT || c->kind == TABLE_CHANGE_PUT_ELEMENT ||
		      c->kind == TABLE_CHANGE_PUT_PLACE || c->kind == TABLE_CHANGE_APPEND ||
		      c->kind == TABLE_CHANGE_PREPEND;

	return writes && c->value.text.len <= TABLE_VALUE_BYTES && table_value_is_long(&c->value);
}

/* ---- Writing ---- */

enum status
table_cell_clear(struct timed *t, struct str cell, bool has_pieces)
{
	return has_pieces ? timed_data_clear_below(t, cell) : timed_data_clear(t, cell);
}

static enum status
piece_write(struct timed *t, struct str cell, uint64_t n, struct str bytes)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);

	buf_append_str(&key, cell);
	tuple_put_u64(&key, n);
	TRY(catalog_key_status(&key));
	buf_append_byte(&value, TIMED_PIECE_MARK);
	buf_append_str(&value, bytes);
	TRY(buf_status(&value));
	return timed_data_set(t, buf_str(&key), buf_str(&value));
}

enum status
table_pieces_write(struct timed *t, struct str cell, const struct doc_scalar *value,
		   struct timed_expiry expiry)
{
	struct str left = value->text;

	if (left.len > TABLE_VALUE_BYTES)
		return err_set(t->err, STATUS_VALUE_TOO_LARGE,
			       "a value in a row may have %d bytes (TABLE_VALUE_BYTES)",
			       TABLE_VALUE_BYTES);
	TRY(timed_cell_write_pieces(t, cell, value, expiry));
	for (uint64_t n = 0; left.len; n++) {
		size_t len = left.len < TIMED_VALUE_BYTES ? left.len : TIMED_VALUE_BYTES;

		TRY(piece_write(t, cell, n, str_of(left.ptr, len)));
		left = str_skip(left, len);
	}
	return STATUS_OK;
}

/* ---- Reading ---- */

void
table_pieces_begin(struct table_pieces *p, const struct timed_cell *cell)
{
	*p = (struct table_pieces){ .left = cell->piece_bytes };
}

enum status
table_pieces_open(struct table_pieces *p, const struct timed_cell *cell, struct arena *arena,
		  struct doc_scalar *ret)
{
	char *bytes;

	if (cell->piece_bytes > TABLE_VALUE_BYTES)
		return STATUS_CORRUPT;
	bytes = arena_bytes(arena, (size_t)cell->piece_bytes);
	if (!bytes)
		return STATUS_LIMIT;
	*ret = (struct doc_scalar){ .kind = cell->piece_kind,
				    .text = str_of(bytes, (size_t)cell->piece_bytes) };
	table_pieces_begin(p, cell);
	p->to = bytes;
	return STATUS_OK;
}

void
table_pieces_skip(struct table_pieces *p)
{
	*p = (struct table_pieces){ .skips = true };
}

bool
table_pieces_take(struct table_pieces *p, uint64_t n, struct str value)
{
	size_t len = value.len - 1;
	uint64_t wanted = p->left < TIMED_VALUE_BYTES ? p->left : TIMED_VALUE_BYTES;

	if (n != p->next || !p->left || len != wanted || !timed_is_piece(value))
		return false;
	if (p->to)
		memcpy(p->to, value.ptr + 1, len);
	p->to = p->to ? p->to + len : NULL;
	p->left -= len;
	p->next++;
	return true;
}

enum status
table_pieces_keep(struct table_pieces *p, uint64_t n, struct str value, struct arena *arena)
{
	struct table_piece *piece = arena_alloc(arena, sizeof(*piece));

	if (!piece)
		return STATUS_LIMIT;
	*piece = (struct table_piece){ .n = n, .next = p->kept };
	TRY(arena_copy(arena, value, &piece->value));
	p->kept = piece;
	return STATUS_OK;
}
