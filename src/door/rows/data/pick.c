#include "door/rows/data/pick.h"

enum status
rows_pick_make(struct rows_request *r, const struct table *t, const uint32_t *ids, size_t count,
	       size_t more, struct pick *ret)
{
	*ret = (struct pick){ .count = count, .wanted.some = true };
	ret->columns = arena_alloc(r->arena, (count + 1) * sizeof(const struct column *));
	ret->ids = arena_alloc(r->arena, (count + more + 1) * sizeof(*ret->ids));
	if (!ret->columns || !ret->ids)
		return STATUS_LIMIT;
	ret->wanted.ids = ret->ids;
	for (size_t i = 0; i < count; i++) {
		TRY(rows_table_column_find(r, t, ids[i], &ret->columns[i]));
		rows_pick_want(ret, ret->columns[i]);
	}
	return STATUS_OK;
}

void
rows_pick_want(struct pick *p, const struct column *c)
{
	if (c->stored->kind == TABLE_HASH || c->stored->kind == TABLE_RANGE)
		return;
	p->statics |= c->stored->kind == TABLE_STATIC;
	p->ids[p->wanted.count++] = c->stored->id;
}

void
rows_pick_end(struct pick *p)
{
	/* They come nearly in order, and are few. */
	for (size_t i = 1; i < p->wanted.count; i++) {
		uint64_t id = p->ids[i];
		size_t at = i;

		for (; at && p->ids[at - 1] > id; at--)
			p->ids[at] = p->ids[at - 1];
		p->ids[at] = id;
	}
}

enum status
rows_pick_put(struct rows_request *r, const struct table *t, const struct column *c,
	      const struct table_row *row, struct buf *out)
{
	bool is_static = c->stored->kind == TABLE_STATIC;
	const struct table_cell *cells;
	size_t at = (size_t)(c - t->columns), count;

	if (at < t->schema->key_count)
		return rows_column_put_part(r, c, &row->key[at], out);
	cells = table_cells_of(is_static ? row->statics : row->cells,
			       is_static ? row->static_count : row->cell_count, c->stored, &count);
	if (count)
		return rows_column_put_scalar(r, c, &cells[0].value, out);
	rows_put_null(out);
	return buf_status(out);
}
