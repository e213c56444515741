#include "stamps_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "random_table.h"

static const int64_t tokens[PARTITIONS] = { -5, 7, 7 };

uint64_t
below(struct world *w, uint64_t n)
{
	return rand_seq_below(&w->r, n);
}

struct doc_scalar
number(int64_t n)
{
	return (struct doc_scalar){ .kind = DOC_INT64, .n = n };
}

/* ---- Operations ---- */

struct table_key
key_of(size_t partition, size_t row, struct doc_scalar parts[BOTH_KEYS])
{
	parts[0] = number((int64_t)partition);
	parts[1] = number((int64_t)(row / SECONDS));
	/* Descending. */
	parts[2] = number(SECONDS - 1 - (int64_t)(row % SECONDS));
	return (struct table_key){ tokens[partition], parts, row == ROWS ? 1 : BOTH_KEYS };
}

static struct timed_expiry
random_expiry(struct world *w)
{
	switch (below(w, 4)) {
	case 0:
		return (struct timed_expiry){ TIMED_EXPIRY_AFTER, 1 + below(w, 8000) };
	case 1:
		return (struct timed_expiry){ TIMED_EXPIRY_NEVER, 0 };
	default:
		return (struct timed_expiry){ TIMED_EXPIRY_DEFAULT, 0 };
	}
}

static int64_t
random_stamp(struct world *w)
{
	int64_t now_us = (int64_t)w->now_ms * 1000, near = 2000 * 1000;
	int64_t stamp = now_us - near + (int64_t)below(w, 2 * (uint64_t)near);

	/* Values in pieces are not in the order of their numbers, so none may be equally late. */
	if (w->has_long)
		return stamp / 4096 * 4096 + w->next_value++ % 4096;
	switch (below(w, 4)) {
	case 0:
		return -42 + (int64_t)below(w, FEW);
	case 1:
		return now_us + (int64_t)below(w, FEW) * 1000;
	default:
		return stamp;
	}
}

static struct table_change
random_change(struct world *w, bool is_static, bool lists)
{
	static const enum table_change_kind list_kinds[] = { TABLE_CHANGE_APPEND,
							     TABLE_CHANGE_PREPEND,
							     TABLE_CHANGE_CLEAR };
	static const enum table_change_kind maps[] = { TABLE_CHANGE_PUT_ELEMENT,
						       TABLE_CHANGE_PUT_ELEMENT,
						       TABLE_CHANGE_CLEAR_ELEMENT,
						       TABLE_CHANGE_CLEAR };
	struct table_change c = { .value = number(w->has_long ? w->next_value++
							      : (int64_t)below(w, FEW)),
				  .element = number((int64_t)below(w, KEYS)),
				  .expiry = random_expiry(w),
				  .makes_way = below(w, 2) };

	switch (below(w, is_static ? 2 : lists ? 4 : 3)) {
	case 0:
		c.column = is_static ? S : V;
		break;
	case 1:
		c.column = is_static ? SM : M;
		c.kind = maps[below(w, 4)];
		return c;
	case 2:
		c.column = W;
		break;
	default:
		c.column = L;
		c.kind = list_kinds[below(w, 3)];
		return c;
	}
	if (below(w, 4) == 0)
		c.value = (struct doc_scalar){ .kind = DOC_NULL };
	return c;
}

struct op
random_op(struct world *w, bool lists)
{
	struct op op = { .partition = below(w, PARTITIONS),
			 .row = below(w, ROWS + 1),
			 .has_stamp = below(w, 5) > 1,
			 .from = (int64_t)below(w, FIRSTS),
			 .to = (int64_t)below(w, FIRSTS),
			 .closed = below(w, 2),
			 .has_long = w->has_long };
	uint64_t kind = below(w, 20);

	op.stamp = random_stamp(w);
	op.kind = kind < 16   ? OP_WRITE
		  : kind < 18 ? OP_CLEAR_ROW
		  : kind < 19 ? OP_CLEAR_RANGE
			      : OP_CLEAR_PARTITION;
	if (op.kind != OP_WRITE)
		return op;
	op.inserts = op.row < ROWS && below(w, 2);
	op.expiry = random_expiry(w);
	/* Those of one operation would compete with each other. */
	op.change_count = w->has_long ? 1 : 1 + below(w, CHANGES);
	for (size_t i = 0; i < op.change_count; i++)
		op.changes[i] = random_change(w, op.row == ROWS, lists);
	/* As INSERT has it; such values are packed, where rows are. */
	for (size_t i = 0; i < op.change_count && op.inserts && kind < 8; i++)
		op.changes[i].expiry = op.expiry;
	return op;
}

enum status
op_run(struct timed *t, const struct op *op)
{
	const struct doc_scalar from = number(op->from), to = number(op->to);
	const enum timed_bound_kind bound = op->closed ? TIMED_BOUND_INCLUSIVE
						       : TIMED_BOUND_EXCLUSIVE;
	const struct table_edge from_edge = { bound, &from, 1 }, to_edge = { bound, &to, 1 };
	struct doc_scalar parts[BOTH_KEYS];
	const struct table_key key = key_of(op->partition, op->row, parts);
	const struct table_key partition = { key.token, parts, 1 };
	const struct table_write write = { .key = key,
					   .inserts = op->inserts,
					   .expiry = op->expiry,
					   .changes = op->changes,
					   .change_count = op->change_count };
	bool more = false;

	if (op->has_stamp)
		TRY(table_stamp_set(t, op->stamp));
	else
		table_stamp_unset(t);
	switch (op->kind) {
	case OP_WRITE:
		return op->has_long ? write_long(t, write) : table_write(t, &write);
	case OP_CLEAR_ROW:
		return table_clear_row(t, &key);
	case OP_CLEAR_PARTITION:
		TRY(table_clear_partition(t, &partition, &more));
		break;
	case OP_CLEAR_RANGE:
		TRY(table_clear_range(t, &partition, &from_edge, &to_edge, &more));
		break;
	}
	assert_false(more);
	return STATUS_OK;
}

/* ---- The same on the model ---- */

static bool
covers(const struct place *d, size_t partition, int64_t row, int64_t column, int64_t key)
{
	int64_t first = row / SECONDS;

	if (d->partition != partition)
		return false;
	if (d->of_range)
		return row < ROWS && (d->closed ? first >= d->from && first <= d->to
						: first > d->from && first < d->to);
	return (d->row == ANY || d->row == row) && (d->column == ANY || d->column == column) &&
	       (d->key == ANY || d->key == key);
}

struct writer {
	struct world *w;
	struct model *m;
	const struct op *op;
	int64_t stamp;
	uint64_t now_ms;
};

static uint64_t
or_never(uint64_t ms)
{
	return ms ? ms : UINT64_MAX;
}

static void
model_put(struct writer *x, struct cell *c, int64_t column, int64_t key, int64_t value,
	  struct timed_expiry expiry)
{
	uint64_t expires_ms = expiry.kind == TIMED_EXPIRY_DEFAULT ? x->now_ms + TTL_MS
			      : expiry.kind == TIMED_EXPIRY_AFTER ? x->now_ms + expiry.ms
			      : expiry.kind == TIMED_EXPIRY_AT    ? expiry.ms
								  : 0;
	bool ties = !x->op->has_stamp;

	for (const struct deletion *d = x->w->deletions; d; d = d->next)
		if (covers(&d->place, x->op->partition, (int64_t)x->op->row, column, key) &&
		    (d->stamp > x->stamp || (d->stamp == x->stamp && !ties)))
			return;
	if (c->there && c->stamp > x->stamp)
		return;
	if (c->there && c->stamp == x->stamp && !ties) {
		if (c->expires_ms && c->expires_ms <= x->now_ms)
			return;
		if (c->value > value ||
		    (c->value == value && or_never(c->expires_ms) >= or_never(expires_ms)))
			return;
	}
	*c = (struct cell){ true, value, x->op->has_stamp, x->stamp, expires_ms };
}

static void
cell_delete(const struct place *p, struct cell *c, int64_t stamp, size_t partition, int64_t row,
	    int64_t column, int64_t key)
{
	if (c->there && c->stamp <= stamp && covers(p, partition, row, column, key))
		*c = (struct cell){ 0 };
}

static void
model_delete(struct writer *x, const struct place *p, int64_t stamp)
{
	for (size_t i = 0; i <= ROWS; i++) {
		struct model_row *row = &x->m->rows[p->partition][i];
		int64_t at = (int64_t)i, map = i == ROWS ? SM : M;
		size_t count = 0;

		cell_delete(p, &row->own, stamp, p->partition, at, OWN, 0);
		cell_delete(p, &row->v, stamp, p->partition, at, i == ROWS ? S : V, 0);
		cell_delete(p, &row->w, stamp, p->partition, at, W, 0);
		for (int64_t k = 0; k < KEYS; k++)
			cell_delete(p, &row->m[k], stamp, p->partition, at, map, k);
		for (size_t k = 0; k < row->l.count; k++) {
			cell_delete(p, &row->l.items[k], stamp, p->partition, at, L, (int64_t)k);
			if (row->l.items[k].there)
				row->l.items[count++] = row->l.items[k];
		}
		row->l.count = count;
	}
	if (x->w->stamped && x->m == &x->w->model) {
		struct deletion *d = calloc(1, sizeof(*d));

		*d = (struct deletion){ *p, stamp, x->w->deletions };
		x->w->deletions = d;
	}
}

static void
model_list(struct writer *x, struct list *l, const struct table_change *c)
{
	struct cell item = { 0 };

	model_put(x, &item, L, ANY - 1, c->value.n, c->expiry);
	if (!item.there)
		return;
	assert_true(l->count < ITEMS);
	if (c->kind == TABLE_CHANGE_PREPEND)
		memmove(&l->items[1], &l->items[0], l->count * sizeof(l->items[0]));
	l->items[c->kind == TABLE_CHANGE_PREPEND ? 0 : l->count] = item;
	l->count++;
}

static void
model_change(struct writer *x, struct model_row *row, const struct table_change *c)
{
	struct place p = { .partition = x->op->partition,
			   .row = (int64_t)x->op->row,
			   .column = (int64_t)c->column,
			   .key = ANY };
	bool is_map = c->column == M || c->column == SM;
	struct cell *cell = is_map ? &row->m[c->element.n] : c->column == W ? &row->w : &row->v;

	if (c->kind == TABLE_CHANGE_CLEAR) {
		bool before = c->makes_way && x->op->has_stamp && (is_map || c->column == L);

		model_delete(x, &p, x->stamp - before);
		return;
	}
	p.key = is_map ? c->element.n : ANY;
	if (c->kind == TABLE_CHANGE_CLEAR_ELEMENT || c->value.kind == DOC_NULL)
		model_delete(x, &p, x->stamp);
	else if (c->column == L)
		model_list(x, &row->l, c);
	else
		model_put(x, cell, (int64_t)c->column, is_map ? p.key : 0, c->value.n, c->expiry);
}

void
model_op(struct world *w, struct model *m, const struct op *op, uint64_t now_us)
{
	struct writer x = { .w = w,
			    .m = m,
			    .op = op,
			    .stamp = op->has_stamp ? op->stamp : (int64_t)now_us,
			    .now_ms = now_us / 1000 };
	struct place p = { .partition = op->partition, .row = ANY, .column = ANY, .key = ANY };
	struct model_row *row = &m->rows[op->partition][op->row];

	switch (op->kind) {
	case OP_WRITE:
		if (op->inserts)
			model_put(&x, &row->own, OWN, 0, 0, op->expiry);
		for (size_t i = 0; i < op->change_count; i++)
			model_change(&x, row, &op->changes[i]);
		return;
	case OP_CLEAR_ROW:
		p.row = (int64_t)op->row;
		break;
	case OP_CLEAR_RANGE:
		p.of_range = true;
		p.from = op->from;
		p.to = op->to;
		p.closed = op->closed;
		break;
	case OP_CLEAR_PARTITION:
		break;
	}
	model_delete(&x, &p, x.stamp);
}

bool
fits(const struct world *w, const struct op *op)
{
	return w->model.rows[op->partition][op->row].l.count + BATCH * CHANGES < ITEMS;
}
