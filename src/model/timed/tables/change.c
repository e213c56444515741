/* Making one change of a row: what is written and cleared, whatever is there. */
#include <endian.h>

#include "base/rand.h"
#include "model/timed/tables/packed.h"
#include "model/timed/tables/stamps.h"

/* ---- Places in lists ---- */

/*
 * The place of a list's element, whose bytes are in its order:
 *
 *     moment   8 bytes: above the middle when it was appended, below when it was prepended
 *     writer   4 bytes at random, of the transaction
 *     number   4 bytes, of what this transaction has put into lists
 *
 * So writers extend a list blindly: an element lies behind, or before, all that were there when its
 * transaction began, as the moments of transactions that see each other rise. The elements of two
 * that do not lie side by side, those of each together.
 */
struct list_place {
	uint64_t moment;
	uint32_t writer;
	uint32_t number;
} __attribute__((packed));

_Static_assert(sizeof(struct list_place) == TABLE_LIST_PLACE_BYTES, "places have a size");

#define LIST_MIDDLE (UINT64_C(1) << 63)

static void
list_place_next(struct timed *t, bool before, struct list_place *ret)
{
	uint32_t number = ++t->places;

	if (!t->writer)
		rand_bytes(&t->writer, sizeof(t->writer));
	ret->moment = htobe64(before ? LIST_MIDDLE - t->now_us : LIST_MIDDLE + t->now_us);
	ret->writer = t->writer;
	/* What a transaction prepends later lies before what it has prepended. */
	ret->number = htobe32(before ? UINT32_MAX - number : number);
}

/* ---- One change ---- */

enum status
table_writing_key(struct table_writing *w, uint64_t column, const struct doc_scalar *element)
{
	buf_clear(&w->cell);
	buf_append_buf(&w->cell, &w->row);
	return table_key_cell(w->t, column, element, &w->cell);
}

/* Clears the cell, as somebody has asked for. */
static enum status
cell_clear(struct table_writing *w, const struct table_column *column)
{
	TRY(table_cell_clear(w->t, buf_str(&w->cell), column->has_pieces));
	if (!w->order.marks)
		return STATUS_OK;
	return table_mark_put(w->t, buf_str(&w->cell), false, w->order.stamp);
}

static enum status
put_cell(struct table_writing *w, const struct table_change *c, const struct doc_scalar *element)
{
	static const struct doc_scalar nothing = { .kind = DOC_NULL };
	const struct table_column *column = table_column_by_id(w->schema, c->column);
	bool set = column->storage == TABLE_SET;

	TRY(table_writing_key(w, c->column, element));
	if (!set && c->value.kind == DOC_NULL)
		return cell_clear(w, column);
	TRY(table_leaf_allow(w->t));
	/* A place in a list that this write makes has held nothing. */
	if (column->has_pieces && c->kind != TABLE_CHANGE_APPEND && c->kind != TABLE_CHANGE_PREPEND)
		TRY(table_cell_clear(w->t, buf_str(&w->cell), true));
	if (table_value_is_long(&c->value))
		return table_pieces_write(w->t, buf_str(&w->cell), &c->value, c->expiry);
	return timed_cell_write(w->t, buf_str(&w->cell), TIMED_LEAF, set ? &nothing : &c->value,
				c->expiry);
}

static enum status
put_into_list(struct table_writing *w, const struct table_change *c)
{
	struct list_place place;
	struct doc_scalar element = { .kind = DOC_BYTES };

	list_place_next(w->t, c->kind == TABLE_CHANGE_PREPEND, &place);
	element.text = str_of(&place, sizeof(place));
	return put_cell(w, c, &element);
}

static enum status
clear_column(struct table_writing *w, const struct table_change *c)
{
	const struct table_column *column = table_column_by_id(w->schema, c->column);

	TRY(table_writing_key(w, c->column, NULL));
	if (column->storage == TABLE_SINGLE || column->storage == TABLE_COUNTER)
		return cell_clear(w, column);
	TRY(timed_data_clear_below(w->t, buf_str(&w->cell)));
	if (!w->order.marks)
		return STATUS_OK;
	return table_mark_put(w->t, buf_str(&w->cell), false, w->order.stamp);
}

enum status
table_writing_change(struct table_writing *w, const struct table_change *c)
{
	switch (c->kind) {
	case TABLE_CHANGE_PUT:
		return put_cell(w, c, NULL);
	case TABLE_CHANGE_CLEAR:
		return clear_column(w, c);
	case TABLE_CHANGE_PUT_ELEMENT:
	case TABLE_CHANGE_PUT_PLACE:
		return put_cell(w, c, &c->element);
	case TABLE_CHANGE_CLEAR_ELEMENT:
		TRY(table_writing_key(w, c->column, &c->element));
		return cell_clear(w, table_column_by_id(w->schema, c->column));
	case TABLE_CHANGE_APPEND:
	case TABLE_CHANGE_PREPEND:
		return put_into_list(w, c);
	case TABLE_CHANGE_ADD:
		TRY(table_writing_key(w, c->column, NULL));
		return timed_data_add(w->t, buf_str(&w->cell), c->value.n);
	}
	return STATUS_OK;
}
