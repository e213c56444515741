/*
 * Values that are too long for one pair. The column's cell, or the element's, has the bytes of the
 * value and its kind, and what they are lies below it:
 *
 *     (cell's key, n) → a byte of zero, then bytes from n * TIMED_VALUE_BYTES on
 *
 * Whoever writes a value knows whether pieces may lie below it: the schema says so of the column,
 * and a writer reads it with the description of the table. So other columns are written blindly,
 * by one pair. Who meets the first long value of a column changes the schema by a transaction of
 * its own, and begins again. A history records pieces as it does cells.
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

/* True if the change writes its value into a cell. */
static bool
writes_value(enum table_change_kind kind)
{
	return kind == TABLE_CHANGE_PUT || kind == TABLE_CHANGE_PUT_ELEMENT ||
	       kind == TABLE_CHANGE_PUT_PLACE || kind == TABLE_CHANGE_APPEND ||
	       kind == TABLE_CHANGE_PREPEND;
}

/* ---- Columns that let values lie so ---- */

/* The changes of a write whose columns have had no long values. */
struct allowing {
	struct str table;
	const struct table_write *write;
	struct err *err;
};

static bool
is_first_of_column(const struct table_schema *schema, const struct table_change *c)
{
	const struct table_column *column = table_column_by_id(schema, c->column);

	return !column->has_pieces && writes_value(c->kind) &&
	       c->value.text.len <= TABLE_VALUE_BYTES && table_value_is_long(&c->value);
}

static enum status
allow_all(struct kv_tx *tx, const struct catalog_db *db, const struct allowing *a)
{
	const struct table_schema *schema = table_schema_of(db);
	struct timed t;

	timed_init(&t, tx, db, NULL, a->err);
	for (size_t i = 0; i < a->write->change_count; i++) {
		const struct table_change *c = &a->write->changes[i];

		if (table_column_by_id(schema, c->column) && is_first_of_column(schema, c))
			TRY(table_allow_pieces(&t, c->column));
	}
	return STATUS_OK;
}

static enum status
allow_body(struct kv_tx *tx, void *arg)
{
	const struct allowing *a = arg;
	struct catalog_db *db;
	enum status status = catalog_open(tx, NULL, CATALOG_SPACE_TABLE, a->table, &db, a->err);

	/* Dropped meanwhile: the writer finds that, too. */
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	TRY(status);
	status = allow_all(tx, db, a);
	catalog_db_unref(db);
	return status;
}

enum status
table_write_allow_pieces(struct timed *t, const struct table_write *write)
{
	const struct table_schema *schema = table_schema_of(t->db);
	struct allowing a = { .table = t->db->name, .write = write, .err = t->err };
	bool any = false;

	for (size_t i = 0; !any && i < write->change_count; i++)
		any = is_first_of_column(schema, &write->changes[i]);
	if (!any)
		return STATUS_OK;
	TRY(kv_run(kv_tx_store(t->tx), allow_body, &a, NULL, t->err));
	return STATUS_TX_CONFLICT;
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
