/*
 * Random operations on a table against a model that keeps every row in an array: single columns,
 * static ones, maps, lists, expiry by the row, the cell and the table, deletions of all sizes,
 * several writes in a transaction; compared by reads, and by scans in both directions that stop and
 * go on from places, now and at moments of the past. Where there are indexes, they come and go, and
 * are built while others write; what is read through one is compared with what the model has.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rand.h"
#include "catalog/store_format.h"
#include "model/timed/tables/index.h"
#include "model/timed/tables/keyspaces.h"
#include "model/timed/tables/row.h"
#include "packing.h"
#include "random_table.h"
#include "store.h"
#include "verified.h"

enum {
	ARENA_BYTES = 64 * 1024 * 1024,
	START_MS = 1000 * 1000,
	TTL_MS = 20 * 1000,
	PARTITIONS = 4,
	FIRSTS = 3,
	SECONDS = 2,
	ROWS = FIRSTS * SECONDS,
	KEYS = 3,  /* of maps */
	ITEMS = 6, /* of lists, at most */
	PASTS = 40,
	BATCH = 3,
	LONG_ROUNDS = 25, /* each reads megabytes */
	BOTH_KEYS = 3,    /* components of a row's key */
	FEW = 6,          /* values where there are indexes, so that rows have the same */
	CREATED = 50,     /* indexes at most, dropped ones with them */
};

/* Two partitions have one token; they lie in the order of their hash components then. */
static const int64_t tokens[PARTITIONS] = { INT64_MIN, -5, 7, 7 };

/* ---- The model ---- */

struct cell {
	bool there;
	int64_t value;
	uint64_t expires_ms; /* 0: never */
};

struct list {
	struct cell items[ITEMS];
	size_t count;
};

struct model_row {
	struct cell own, v, w, m[KEYS];
	struct list l;
};

struct model_partition {
	struct cell s, sm[KEYS];
	struct model_row rows[ROWS]; /* in the order in which they lie */
};

struct model {
	struct model_partition partitions[PARTITIONS];
};

static bool
lives(const struct cell *c, uint64_t now_ms)
{
	return c->there && (!c->expires_ms || c->expires_ms > now_ms);
}

/* ---- The world ---- */

struct world {
	char dir[64];
	struct kv_store *store;
	struct arena *arena;
	struct timed_clock clock;
	uint64_t now_ms;
	struct rand_seq r;
	bool has_history;
	struct model model;
	struct model pasts[PASTS];
	uint64_t pasts_us[PASTS];
	size_t past_count;
	int64_t next_value;
	bool has_indexes;
	bool has_long;
	unsigned created;
	struct err err;
};

static uint64_t
world_now(void *arg)
{
	const struct world *w = arg;

	return w->now_ms;
}

static uint64_t
below(struct world *w, uint64_t n)
{
	return rand_seq_below(&w->r, n);
}

static struct doc_scalar
number(int64_t n)
{
	return (struct doc_scalar){ .kind = DOC_INT64, .n = n };
}

/* ---- Operations ---- */

enum op_kind {
	OP_WRITE,
	OP_CLEAR_ROW,
	OP_CLEAR_STATICS,
	OP_CLEAR_PARTITION,
	OP_CLEAR_RANGE,
};

enum {
	CHANGES = 5,
};

/* What is done to one row, or to a partition. */
struct op {
	enum op_kind kind;
	size_t partition;
	size_t row; /* ROWS: the static columns */
	bool inserts;
	bool has_long; /* some values lie in pieces */
	struct timed_expiry expiry;
	struct table_change changes[CHANGES];
	size_t change_count;
	/* Of a range: first components, from one to another, both included if they are closed. */
	int64_t from, to;
	bool closed;
};

static struct table_key
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

static struct table_change
random_change(struct world *w, bool is_static)
{
	static const enum table_change_kind lists[] = { TABLE_CHANGE_APPEND, TABLE_CHANGE_PREPEND,
							TABLE_CHANGE_APPEND, TABLE_CHANGE_CLEAR };
	static const enum table_change_kind maps[] = { TABLE_CHANGE_PUT_ELEMENT,
						       TABLE_CHANGE_PUT_ELEMENT,
						       TABLE_CHANGE_CLEAR_ELEMENT,
						       TABLE_CHANGE_CLEAR };
	struct table_change c = { .value = number(w->next_value++), .expiry = random_expiry(w) };

	if (w->has_indexes)
		c.value = number((int64_t)below(w, FEW));
	c.element = number((int64_t)below(w, KEYS));
	switch (below(w, is_static ? 2 : 4)) {
	case 0:
		c.column = is_static ? S : below(w, 2) ? V : W;
		if (below(w, 5) == 0)
			c.value = (struct doc_scalar){ .kind = DOC_NULL };
		return c;
	case 1:
		c.column = is_static ? SM : M;
		c.kind = maps[below(w, 4)];
		return c;
	default:
		c.column = L;
		c.kind = lists[below(w, 4)];
		return c;
	}
}

static struct op
random_op(struct world *w)
{
	struct op op = { .partition = below(w, PARTITIONS),
			 .row = below(w, ROWS + 1),
			 .from = (int64_t)below(w, FIRSTS),
			 .to = (int64_t)below(w, FIRSTS),
			 .closed = below(w, 2),
			 .has_long = w->has_long };
	uint64_t kind = below(w, 40);

	if (kind < 34) {
		op.inserts = op.row < ROWS && below(w, 2);
		op.expiry = random_expiry(w);
		op.change_count = 1 + below(w, CHANGES);
		for (size_t i = 0; i < op.change_count; i++)
			op.changes[i] = random_change(w, op.row == ROWS);
		/* As INSERT has it; such values are packed, where rows are. */
		for (size_t i = 0; i < op.change_count && op.inserts && kind < 24; i++)
			op.changes[i].expiry = op.expiry;
	} else if (kind < 37) {
		op.kind = op.row == ROWS ? OP_CLEAR_STATICS : OP_CLEAR_ROW;
	} else {
		op.kind = kind < 39 ? OP_CLEAR_RANGE : OP_CLEAR_PARTITION;
	}
	return op;
}

static enum status
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
	bool more;

	switch (op->kind) {
	case OP_WRITE:
		return op->has_long ? write_long(t, write) : table_write(t, &write);
	case OP_CLEAR_ROW:
	case OP_CLEAR_STATICS:
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

static struct cell
model_cell(const struct doc_scalar *value, struct timed_expiry expiry, uint64_t now_us)
{
	uint64_t now_ms = now_us / 1000;
	struct cell c = { .there = value->kind != DOC_NULL, .value = value->n };

	if (expiry.kind == TIMED_EXPIRY_DEFAULT)
		c.expires_ms = now_ms + TTL_MS;
	else if (expiry.kind == TIMED_EXPIRY_AFTER)
		c.expires_ms = now_ms + expiry.ms;
	return c;
}

static void
model_map(struct cell map[KEYS], const struct table_change *c, uint64_t now_us)
{
	if (c->kind == TABLE_CHANGE_CLEAR)
		memset(map, 0, KEYS * sizeof(*map));
	else if (c->kind == TABLE_CHANGE_CLEAR_ELEMENT)
		map[c->element.n] = (struct cell){ 0 };
	else
		map[c->element.n] = model_cell(&c->value, c->expiry, now_us);
}

static void
model_list(struct list *l, const struct table_change *c, uint64_t now_us)
{
	if (c->kind == TABLE_CHANGE_CLEAR) {
		l->count = 0;
		return;
	}
	assert_true(l->count < ITEMS);
	if (c->kind == TABLE_CHANGE_PREPEND)
		memmove(&l->items[1], &l->items[0], l->count * sizeof(l->items[0]));
	l->items[c->kind == TABLE_CHANGE_PREPEND ? 0 : l->count] = model_cell(&c->value, c->expiry,
									      now_us);
	l->count++;
}

static void
model_write(struct model *m, const struct op *op, uint64_t now_us)
{
	struct model_partition *p = &m->partitions[op->partition];
	struct model_row *row = &p->rows[op->row % ROWS];
	const struct doc_scalar own = number(0);

	if (op->inserts)
		row->own = model_cell(&own, op->expiry, now_us);
	for (size_t i = 0; i < op->change_count; i++) {
		const struct table_change *c = &op->changes[i];

		switch (c->column) {
		case S:
			p->s = model_cell(&c->value, c->expiry, now_us);
			break;
		case V:
			row->v = model_cell(&c->value, c->expiry, now_us);
			break;
		case W:
			row->w = model_cell(&c->value, c->expiry, now_us);
			break;
		case SM:
		case M:
			model_map(c->column == SM ? p->sm : row->m, c, now_us);
			break;
		default:
			model_list(&row->l, c, now_us);
			break;
		}
	}
}

static void
model_op(struct model *m, const struct op *op, uint64_t now_us)
{
	struct model_partition *p = &m->partitions[op->partition];

	switch (op->kind) {
	case OP_WRITE:
		model_write(m, op, now_us);
		return;
	case OP_CLEAR_ROW:
		p->rows[op->row] = (struct model_row){ 0 };
		return;
	case OP_CLEAR_STATICS:
		p->s = (struct cell){ 0 };
		memset(p->sm, 0, sizeof(p->sm));
		return;
	case OP_CLEAR_PARTITION:
		*p = (struct model_partition){ 0 };
		return;
	case OP_CLEAR_RANGE:
		for (size_t i = 0; i < ROWS; i++) {
			int64_t first = (int64_t)(i / SECONDS);

			if (op->closed ? first >= op->from && first <= op->to
				       : first > op->from && first < op->to)
				p->rows[i] = (struct model_row){ 0 };
		}
		return;
	}
}

/* A list would have too many items after the operation: then it is not done. */
static bool
fits(const struct model *m, const struct op *op)
{
	size_t count = op->row < ROWS ? m->partitions[op->partition].rows[op->row].l.count : 0;

	for (size_t i = 0; op->kind == OP_WRITE && i < op->change_count; i++)
		if (op->changes[i].column == L && op->changes[i].kind == TABLE_CHANGE_CLEAR)
			count = 0;
		else if (op->changes[i].column == L && ++count > ITEMS)
			return false;
	return true;
}

/* ---- Drawing both ---- */

static void
draw_cell(const char *name, int64_t key, const struct cell *c, uint64_t now_ms, bool *any,
	  struct buf *ret)
{
	if (!lives(c, now_ms))
		return;
	*any = true;
	buf_printf(ret, " %s", name);
	if (key >= 0)
		buf_printf(ret, "[%lld]", (long long)key);
	buf_printf(ret, "=%lld@%llu", (long long)c->value, (unsigned long long)c->expires_ms);
}

static void
draw_map(const char *name, const struct cell map[KEYS], uint64_t now_ms, bool *any, struct buf *ret)
{
	for (int64_t i = 0; i < KEYS; i++)
		draw_cell(name, i, &map[i], now_ms, any, ret);
}

static bool
draw_statics(const struct model_partition *p, uint64_t now_ms, struct buf *ret)
{
	bool any = false;

	draw_cell("s", -1, &p->s, now_ms, &any, ret);
	draw_map("sm", p->sm, now_ms, &any, ret);
	return any;
}

/* False, and nothing drawn, if the row is not there. */
static bool
draw_model_row(const struct model *m, size_t partition, size_t at, uint64_t now_ms, bool statics,
	       struct buf *ret)
{
	const struct model_partition *p = &m->partitions[partition];
	const struct model_row *row = &p->rows[at];
	bool any = lives(&row->own, now_ms);
	struct doc_scalar parts[BOTH_KEYS];
	size_t len = ret->len;

	(void)key_of(partition, at, parts);
	buf_printf(ret, "(%lld/%lld/%lld%s", (long long)parts[0].n, (long long)parts[1].n,
		   (long long)parts[2].n, any ? "*" : "");
	draw_cell("v", -1, &row->v, now_ms, &any, ret);
	draw_cell("w", -1, &row->w, now_ms, &any, ret);
	draw_map("m", row->m, now_ms, &any, ret);
	for (size_t i = 0; i < row->l.count; i++)
		draw_cell("l", -1, &row->l.items[i], now_ms, &any, ret);
	if (!any) {
		ret->len = len;
		return false;
	}
	if (statics)
		(void)draw_statics(p, now_ms, ret);
	buf_append_cstr(ret, ")\n");
	return true;
}

static void
draw_model(const struct model *m, uint64_t now_ms, bool reverse, struct buf *ret)
{
	for (size_t i = 0; i < PARTITIONS; i++) {
		size_t partition = reverse ? PARTITIONS - 1 - i : i, len;
		bool any = false;

		for (size_t j = 0; j < ROWS; j++)
			any = draw_model_row(m, partition, reverse ? ROWS - 1 - j : j, now_ms, true,
					     ret) ||
			      any;
		len = ret->len;
		if (any)
			continue;
		buf_printf(ret, "(%zu", partition);
		if (!draw_statics(&m->partitions[partition], now_ms, ret))
			ret->len = len;
		else
			buf_append_cstr(ret, ")\n");
	}
}

static void
draw_cells(const struct table_cell *cells, size_t count, struct buf *ret)
{
	for (size_t i = 0; i < count; i++) {
		buf_printf(ret, " %.*s", STR_ARG(cells[i].column->name));
		if (cells[i].column->storage == TABLE_MAP)
			buf_printf(ret, "[%lld]", (long long)cells[i].element.n);
		buf_printf(ret, "=%lld@%llu", (long long)number_of(&cells[i].value),
			   (unsigned long long)cells[i].expires_ms);
	}
}

static void
draw_row(const struct table_row *row, struct buf *ret)
{
	for (size_t i = 0; i < row->key_count; i++)
		buf_printf(ret, "%c%lld", i ? '/' : '(', (long long)row->key[i].n);
	buf_append_cstr(ret, row->inserted ? "*" : "");
	draw_cells(row->cells, row->cell_count, ret);
	draw_cells(row->statics, row->static_count, ret);
	buf_append_cstr(ret, ")\n");
}

/* ---- Transactions ---- */

struct step {
	struct world *w;
	const struct op *ops; /* writes, or … */
	size_t op_count;
	uint64_t at_us; /* … a moment that is read */
	uint64_t now_us;
	struct table_scan_options options;
	size_t page;
	struct buf out, place;
	bool more;
	bool gone; /* the past does not go back so far */
	/* A row that is read by its key. */
	bool reads;
	size_t partition, row;
};

static enum status
step_scan(struct timed *t, struct step *s)
{
	size_t rows = 0, len = s->out.len;
	struct table_scan *scan;
	struct table_row row;
	enum status status;

	s->options.after = buf_str(&s->place);
	TRY(table_scan_open(t, &s->options, &scan));
	while ((status = table_scan_next(scan, s->w->arena, &row)) == STATUS_OK) {
		draw_row(&row, &s->out);
		if (++rows == s->page)
			break;
	}
	s->more = status == STATUS_OK || table_scan_paused(scan);
	if (s->more && (status == STATUS_OK || status == STATUS_NOT_FOUND)) {
		buf_clear(&s->place);
		assert_int_equal(table_scan_place(scan, &s->place), STATUS_OK);
	} else if (status != STATUS_NOT_FOUND) {
		s->out.len = len; /* it is tried again */
	}
	table_scan_close(scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
step_read(struct timed *t, struct step *s)
{
	struct doc_scalar parts[BOTH_KEYS];
	const struct table_key key = key_of(s->partition, s->row, parts);
	struct table_row row;
	enum status status = table_read(t, &key, false, NULL, s->w->arena, &row);

	buf_clear(&s->out);
	if (status == STATUS_OK)
		draw_row(&row, &s->out);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
step_opened(struct timed *t, struct step *s)
{
	enum status status = STATUS_OK;

	for (size_t i = 0; i < s->op_count; i++)
		TRY(op_run(t, &s->ops[i]));
	if (s->op_count)
		TRY(timed_now(t));
	else
		status = s->reads ? step_read(t, s) : step_scan(t, s);
	s->now_us = t->now_us;
	s->gone = status == STATUS_INVALID && s->at_us;
	return s->gone ? STATUS_OK : status;
}

static enum status
step_body(struct kv_tx *tx, void *arg)
{
	struct step *s = arg;
	struct catalog_db *db;
	struct timed t;
	enum status status;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, STR("ks.t"), &db, &s->w->err));
	timed_init(&t, tx, db, &s->w->clock, &s->w->err);
	if (s->at_us)
		timed_at_us(&t, s->at_us);
	status = step_opened(&t, s);
	catalog_db_unref(db);
	return status;
}

static void
step_run(struct step *s)
{
	arena_clear(s->w->arena);
	assert_int_equal(kv_run(s->w->store, step_body, s, NULL, &s->w->err), STATUS_OK);
}

/* ---- Comparing ---- */

static void
same(const struct buf *got, const struct buf *wanted)
{
	if (str_eq(buf_str(got), buf_str(wanted)))
		return;
	print_error("got:\n%.*s\nwanted:\n%.*s\n", STR_ARG(buf_str(got)), STR_ARG(buf_str(wanted)));
	fail();
}

/* Scans all of it, a page in a transaction of its own each time. */
static void
compare_scan(struct world *w, const struct model *m, uint64_t at_us)
{
	AUTO(buf_release) struct buf wanted = BUF_INIT(1000 * 1000);
	struct step s = { .w = w,
			  .at_us = at_us,
			  .page = below(w, 5),
			  .out = BUF_INIT(1000 * 1000),
			  .place = BUF_INIT(TABLE_PLACE_BYTES) };

	s.options = (struct table_scan_options){ .reverse = below(w, 2),
						 .statics = true,
						 .static_alone = true,
						 .rows = s.page,
						 .borrows = below(w, 2),
						 .pairs_most = below(w, 2) ? below(w, 30) : 0 };
	do
		step_run(&s);
	while (s.more && !s.gone);
	if (!s.gone) {
		/* Of several transactions, the last is the latest; no time passes in between. */
		draw_model(m, s.now_us / 1000, s.options.reverse, &wanted);
		same(&s.out, &wanted);
	}
	buf_release(&s.out);
	buf_release(&s.place);
}

static void
compare_row(struct world *w)
{
	AUTO(buf_release) struct buf wanted = BUF_INIT(1000 * 1000);
	struct step s = { .w = w,
			  .reads = true,
			  .partition = below(w, PARTITIONS),
			  .row = below(w, ROWS),
			  .out = BUF_INIT(1000 * 1000),
			  .place = BUF_INIT(TABLE_PLACE_BYTES) };

	step_run(&s);
	(void)draw_model_row(&w->model, s.partition, s.row, s.now_us / 1000, false, &wanted);
	same(&s.out, &wanted);
	buf_release(&s.out);
}

/* ---- The test ---- */

static enum status
history_body(struct kv_tx *tx, void *arg)
{
	struct world *w = arg;
	struct catalog_db *db;
	struct timed t;
	enum status status;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, STR("ks.t"), &db, &w->err));
	timed_init(&t, tx, db, &w->clock, &w->err);
	status = timed_history_set(&t, (struct timed_history_bounds){ .seconds = 1000 });
	catalog_db_unref(db);
	return status;
}

static void
sweep(struct world *w)
{
	uint64_t done;
	bool more = true;

	for (int i = 0; more && i < 100; i++)
		assert_int_equal(timed_sweep(w->store, &w->clock, 10, &done, &more, &w->err),
				 STATUS_OK);
}

/* Writes a few at once, and remembers what there was then. */
static void
write_some(struct world *w)
{
	struct model after = w->model;
	struct op ops[BATCH];
	struct step s = { .w = w, .ops = ops };
	size_t count = 1 + below(w, BATCH);

	for (size_t i = 0; i < count; i++) {
		ops[s.op_count] = random_op(w);
		if (!fits(&after, &ops[s.op_count]))
			continue;
		/* The moment is not known yet; only how many items a list has counts here. */
		model_op(&after, &ops[s.op_count], 0);
		s.op_count++;
	}
	if (!s.op_count)
		return;
	step_run(&s);
	for (size_t i = 0; i < s.op_count; i++)
		model_op(&w->model, &ops[i], s.now_us);
	w->pasts[w->past_count % PASTS] = w->model;
	w->pasts_us[w->past_count++ % PASTS] = s.now_us;
}

/* ---- Indexes ---- */

#define PART(id, how)                                                                              \
	{                                                                                          \
		.column = (id), .part = (how)                                                      \
	}

static const struct table_index_column index_columns[][2] = {
	{ PART(V, INDEX_TYPED_COLUMN) },
	{ { .column = W, .descending = true }, PART(FIRST, INDEX_TYPED_COLUMN) },
	{ PART(FIRST, INDEX_TYPED_COLUMN) },
	{ PART(M, INDEX_TYPED_KEYS) },
	{ PART(M, INDEX_TYPED_VALUES) },
	{ PART(M, INDEX_TYPED_ENTRIES) },
	{ PART(L, INDEX_TYPED_VALUES) },
	{ PART(S, INDEX_TYPED_COLUMN) },
	{ PART(SM, INDEX_TYPED_KEYS) },
	{ PART(V, INDEX_TYPED_COLUMN) },
};

/* Of the last one: rows with w >= 3. */
static const struct index_typed_condition condition = {
	.column = W,
	.op = INDEX_TYPED_GE,
	.value = { .kind = DOC_INT64, .n = 3 },
};

enum {
	INDEXES = sizeof(index_columns) / sizeof(index_columns[0]),
	CONDITIONAL = INDEXES - 1,
	ASKED_ROWS = 200,
};

static struct str
index_name(size_t which, char room[16])
{
	return str_of(room, (size_t)snprintf(room, 16, "i%zu", which));
}

/* A question: the values of an index's first columns. */
struct asked {
	struct world *w;
	size_t which;
	struct index_typed_value values[2];
	struct doc_scalar second; /* of a pair */
	size_t count;
	bool bounds; /* of the first column: from the first value to the second */
	bool ready;
	size_t page;
	bool more;
	struct buf place;
	uint64_t now_us;
	struct str lines[ASKED_ROWS]; /* of rows that have the values */
	size_t line_count;
	struct buf out;
	/* One that is created or dropped. */
	bool creates;
	uint64_t number;
};

static bool
value_is(const struct asked *a, int64_t value)
{
	if (a->bounds)
		return value >= a->values[0].first.n && value <= a->values[1].first.n;
	return value == a->values[0].first.n;
}

static bool
cell_is(const struct asked *a, uint64_t column, int64_t key, int64_t value)
{
	const struct table_index_column *c = &index_columns[a->which][0];

	if (c->column != column)
		return false;
	switch (c->part) {
	case INDEX_TYPED_COLUMN:
	case INDEX_TYPED_VALUES:
		return value_is(a, value);
	case INDEX_TYPED_KEYS:
		return value_is(a, key);
	case INDEX_TYPED_ENTRIES:
		return key == a->values[0].first.n && value == a->second.n;
	case INDEX_TYPED_JSON: /* there are no documents here */
	case INDEX_TYPED_JSON_TEXT:
	case INDEX_TYPED_ORDER: /* nor values of other equality than their bytes' */
		break;
	}
	return false;
}

static bool
row_is(const struct asked *a, const struct table_row *row)
{
	bool is = index_columns[a->which][0].column == FIRST && row->key_count == BOTH_KEYS &&
		  value_is(a, row->key[1].n);
	bool chosen = a->which != CONDITIONAL;

	for (size_t i = 0; i < row->cell_count; i++)
		is = is || cell_is(a, row->cells[i].column->id, row->cells[i].element.n,
				   row->cells[i].value.n);
	for (size_t i = 0; !row->is_row && i < row->static_count; i++)
		is = is || cell_is(a, row->statics[i].column->id, row->statics[i].element.n,
				   row->statics[i].value.n);
	for (size_t i = 0; i < row->cell_count; i++)
		chosen = chosen || (row->cells[i].column->id == W &&
				    row->cells[i].value.n >= condition.value.n);
	return is && chosen && (a->count < 2 || a->bounds || row->key[1].n == a->values[1].first.n);
}

static bool
model_cell_is(const struct asked *a, uint64_t column, int64_t key, const struct cell *c)
{
	return lives(c, a->now_us / 1000) && cell_is(a, column, key, c->value);
}

static bool
model_is(const struct asked *a, size_t partition, size_t at)
{
	const struct model_row *row = &a->w->model.partitions[partition].rows[at];
	int64_t first = (int64_t)(at / SECONDS);
	bool is = index_columns[a->which][0].column == FIRST && value_is(a, first);

	is = is || model_cell_is(a, V, 0, &row->v) || model_cell_is(a, W, 0, &row->w);
	for (int64_t i = 0; i < KEYS; i++)
		is = is || model_cell_is(a, M, i, &row->m[i]);
	for (size_t i = 0; i < row->l.count; i++)
		is = is || model_cell_is(a, L, 0, &row->l.items[i]);
	return is &&
	       (a->which != CONDITIONAL ||
		(lives(&row->w, a->now_us / 1000) && row->w.value >= condition.value.n)) &&
	       (a->count < 2 || a->bounds || first == a->values[1].first.n);
}

static bool
model_partition_is(const struct asked *a, size_t partition)
{
	const struct model_partition *p = &a->w->model.partitions[partition];
	bool is = model_cell_is(a, S, 0, &p->s);

	for (int64_t i = 0; i < KEYS; i++)
		is = is || model_cell_is(a, SM, i, &p->sm[i]);
	return is;
}

static void
asked_draw_model(struct asked *a, struct buf *ret)
{
	uint64_t now_ms = a->now_us / 1000;

	for (size_t i = 0; i < PARTITIONS; i++) {
		if (index_columns[a->which][0].column == S ||
		    index_columns[a->which][0].column == SM) {
			if (!model_partition_is(a, i))
				continue;
			buf_printf(ret, "(%zu", i);
			(void)draw_statics(&a->w->model.partitions[i], now_ms, ret);
			buf_append_cstr(ret, ")\n");
			continue;
		}
		for (size_t j = 0; j < ROWS; j++)
			if (model_is(a, i, j))
				(void)draw_model_row(&a->w->model, i, j, now_ms, true, ret);
	}
}

/* Keeps what a page has read, unless it is tried again. */
static enum status
asked_take(struct asked *a, struct timed *t, struct table_index_scan *scan)
{
	size_t rows = 0;
	struct table_row row;
	enum status status = STATUS_OK;

	while ((!a->page || rows < a->page) &&
	       (status = table_index_next(scan, a->w->arena, &row)) == STATUS_OK) {
		AUTO(buf_release) struct buf line = BUF_INIT(10000);

		rows++;
		if (!row_is(a, &row))
			continue;
		draw_row(&row, &line);
		assert_true(a->line_count < ASKED_ROWS);
		a->lines[a->line_count] = arena_dup(a->w->arena, buf_str(&line));
		assert_non_null(a->lines[a->line_count++].ptr);
	}
	a->now_us = t->now_us;
	a->more = status == STATUS_OK;
	if (!a->more)
		return status == STATUS_NOT_FOUND ? STATUS_OK : status;
	buf_clear(&a->place);
	return table_index_place(scan, &a->place);
}

static enum status
asked_body(struct kv_tx *tx, void *arg)
{
	struct asked *a = arg;
	struct world *w = a->w;
	struct table_index_options options = { .statics = true, .rows = a->page };
	size_t lines = a->line_count;
	struct table_index_scan *scan;
	const struct table_index *index;
	struct catalog_db *db;
	struct timed t;
	enum status status;
	char room[16];

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, STR("ks.t"), &db, &w->err));
	timed_init(&t, tx, db, &w->clock, &w->err);
	index = table_index_named(db, index_name(a->which, room));
	a->ready = index && index->is_ready;
	a->more = false;
	status = STATUS_OK;
	if (a->ready) {
		options.after = buf_str(&a->place);
		options.interval.equal = a->values;
		options.interval.equal_count = a->bounds ? 0 : a->count;
		if (a->bounds) {
			options.interval.low = &a->values[0];
			options.interval.high = &a->values[1];
		}
		status = table_index_open(&t, index, &options, &scan);
		if (status == STATUS_OK) {
			status = asked_take(a, &t, scan);
			table_index_close(scan);
		}
	}
	if (status != STATUS_OK)
		a->line_count = lines;
	catalog_db_unref(db);
	return status;
}

static int
compare_lines(const void *x, const void *y)
{
	return str_cmp(*(const struct str *)x, *(const struct str *)y);
}

/* Sorts lines, each with its end. */
static void
sort_lines(struct str *lines, size_t count, struct buf *ret)
{
	qsort(lines, count, sizeof(*lines), compare_lines);
	for (size_t i = 0; i < count; i++)
		buf_append_str(ret, lines[i]);
}

static void
sort_text(struct buf *text)
{
	AUTO(buf_release) struct buf copy = BUF_INIT(1000 * 1000);
	struct str lines[ASKED_ROWS], rest;
	size_t count = 0;

	buf_append_str(&copy, buf_str(text));
	for (rest = buf_str(&copy); rest.len; count++) {
		size_t len = (size_t)((const char *)memchr(rest.ptr, '\n', rest.len) - rest.ptr) +
			     1;

		lines[count] = str_of(rest.ptr, len);
		rest = str_skip(rest, len);
	}
	buf_clear(text);
	sort_lines(lines, count, text);
}

/* Asks an index for values, a page in a transaction of its own each time. */
static void
compare_index(struct world *w)
{
	AUTO(buf_release) struct buf got = BUF_INIT(1000 * 1000);
	AUTO(buf_release) struct buf wanted = BUF_INIT(1000 * 1000);
	struct asked a = { .w = w,
			   .which = below(w, INDEXES),
			   .page = below(w, 4),
			   .count = 1,
			   .place = BUF_INIT(TABLE_PLACE_BYTES) };
	const struct table_index_column *c = index_columns[a.which];

	a.values[0].first = number((int64_t)below(w, FEW));
	a.values[1].first = number((int64_t)below(w, FEW));
	a.second = number((int64_t)below(w, FEW));
	if (c->part == INDEX_TYPED_ENTRIES)
		a.values[0].second = &a.second;
	else if (c[1].column)
		a.count = 1 + below(w, 2);
	/* A row has several entries where a collection is asked for several values. */
	a.bounds = c->part == INDEX_TYPED_COLUMN && a.count == 1 && below(w, 2);
	arena_clear(w->arena);
	do
		assert_int_equal(kv_run(w->store, asked_body, &a, NULL, &w->err), STATUS_OK);
	while (a.more);
	if (a.ready) {
		sort_lines(a.lines, a.line_count, &got);
		asked_draw_model(&a, &wanted);
		sort_text(&wanted);
		same(&got, &wanted);
	}
	buf_release(&a.place);
}

static enum status
change_body(struct kv_tx *tx, void *arg)
{
	struct asked *a = arg;
	struct table_index terms = { .columns = index_columns[a->which] };
	const struct table_index *index;
	struct catalog_db *db;
	struct timed t;
	enum status status;
	char room[16];

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, STR("ks.t"), &db, &a->w->err));
	timed_init(&t, tx, db, &a->w->clock, &a->w->err);
	terms.name = index_name(a->which, room);
	terms.column_count = terms.columns[1].column ? 2 : 1;
	terms.conditions = &condition;
	terms.condition_count = a->which == CONDITIONAL;
	index = table_index_named(db, terms.name);
	a->creates = !index;
	status = index ? table_index_drop(&t, index) : table_index_create(&t, &terms, &a->number);
	catalog_db_unref(db);
	return status;
}

/* Creates an index, or drops it; a new one is built now, or while others write. */
static void
change_index(struct world *w)
{
	struct asked a = { .w = w, .which = below(w, INDEXES) };

	if (w->created >= CREATED)
		return;
	assert_int_equal(kv_run(w->store, change_body, &a, NULL, &w->err), STATUS_OK);
	w->created += a.creates;
	if (!a.creates)
		return;
	for (uint64_t i = below(w, 5); i; i--)
		write_some(w);
	verified_none(w->store);
	assert_int_equal(table_index_build(w->store, STR("ks.t"), a.number, 3, &w->err), STATUS_OK);
}

static void
run_rounds(struct world *w, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		w->now_ms += below(w, 500);
		write_some(w);
		if (below(w, 20) == 0)
			sweep(w);
		if (below(w, 3) == 0)
			compare_scan(w, &w->model, 0);
		else
			compare_row(w);
		if (w->has_indexes && below(w, 12) == 0)
			change_index(w);
		for (int j = 0; w->has_indexes && j < 4; j++)
			compare_index(w);
		if (w->has_indexes && below(w, 40) == 0)
			verified_none(w->store);
		if (w->has_history && below(w, 3) == 0) {
			size_t at = below(w, w->past_count < PASTS ? w->past_count : PASTS);

			compare_scan(w, &w->pasts[at], w->pasts_us[at]);
		}
	}
	verified_none(w->store);
}

static int
rounds_of_test(void)
{
	return test_rounds(1000);
}

static void
tables_are_as_the_model_says(void **state)
{
	run_rounds(*state, rounds_of_test());
}

static void
begin_history(struct world *w)
{
	assert_int_equal(kv_run(w->store, history_body, w, NULL, &w->err), STATUS_OK);
	sweep(w);
	w->now_ms += 1000;
	sweep(w);
	w->has_history = true;
}

static void
tables_were_as_the_model_says(void **state)
{
	struct world *w = *state;

	begin_history(w);
	run_rounds(w, w->has_indexes ? rounds_of_test() / 3 : rounds_of_test());
}

static void
indexes_are_as_the_model_says(void **state)
{
	struct world *w = *state;

	w->has_indexes = true;
	run_rounds(w, rounds_of_test() / 3);
}

static void
indexes_are_as_the_model_says_beside_a_past(void **state)
{
	((struct world *)*state)->has_indexes = true;
	tables_were_as_the_model_says(state);
}

/* With values in pieces: at first all columns have short ones. */
static void
long_values_are_and_were_as_the_model_says(void **state)
{
	struct world *w = *state;

	begin_history(w);
	run_rounds(w, 15);
	w->has_long = true;
	run_rounds(w, LONG_ROUNDS);
}

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	const struct table_keyspace ks = { .name = STR("ks") };
	const struct table_schema t = { .columns = columns,
					.column_count = sizeof(columns) / sizeof(*columns) };

	(void)arg;
	TRY(table_keyspace_create(tx, &ks, NULL));
	return packing_create(tx, STR("ks.t"), &t, TTL_MS);
}

static int
world_setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct world *w = calloc(1, sizeof(*w));
	const char *seed = getenv("FROND_TEST_SEED");
	char url[256];

	test_show_failures();
	tables_register();
	rand_bytes(&w->r.state, sizeof(w->r.state));
	if (seed)
		w->r.state = strtoull(seed, NULL, 10);
	print_message("# FROND_TEST_SEED=%llu\n", (unsigned long long)w->r.state);
	test_make_dir("tables", w->dir, sizeof(w->dir));
	test_store_url(w->dir, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &w->store, &w->err), STATUS_OK);
	w->arena = arena_new(ARENA_BYTES);
	w->clock = (struct timed_clock){ .now_ms = world_now, .arg = w };
	w->now_ms = START_MS;
	assert_int_equal(kv_run(w->store, create_body, NULL, NULL, &w->err), STATUS_OK);
	*state = w;
	return 0;
}

static int
world_teardown(void **state)
{
	struct world *w = *state;

	arena_free(w->arena);
	kv_close(w->store);
	test_remove_tree(w->dir);
	free(w);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(tables_are_as_the_model_says, world_setup,
						world_teardown),
		cmocka_unit_test_setup_teardown(tables_were_as_the_model_says, world_setup,
						world_teardown),
		cmocka_unit_test_setup_teardown(indexes_are_as_the_model_says, world_setup,
						world_teardown),
		cmocka_unit_test_setup_teardown(indexes_are_as_the_model_says_beside_a_past,
						world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(long_values_are_and_were_as_the_model_says,
						world_setup, world_teardown),
	};

	return cmocka_run_group_tests_name("tables_random", tests, NULL, NULL);
}
