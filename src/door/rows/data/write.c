#include <assert.h>

#include "door/rows/data/index.h"
#include "door/rows/data/rows.h"

enum {
	GAP_ROWS = 4, /* of a request: with as many it looks for many rows at once */
	/* Of a row that an update writes as a whole where rows are one pair each. */
	REWRITE_BYTES = 4 * 1024,
	VALUE_HEAD_BYTES = 32, /* more than what is packed with a value */
};

struct writing {
	struct rows_write write;
	struct table_gap gap;
	bool has_gap;
	const struct column **columns;
	struct rows_value *values;
	struct table_change *changes;
};

/* One row while it is written. */
struct row_op {
	enum rows_op op;
	struct table_key key;
	bool is_there;        /* if the operation has to know */
	bool inserted;        /* it is there whatever its columns are */
	bool is_new;          /* not even what has expired of it is there */
	bool rewrites;        /* it is there, and all of it is written: keeps_whole() */
	struct table_row row; /* as it is, if `rewrites` */
};

/* Of a table that is counted it has to be known of each row whether it was there. */
static bool
op_reads(enum rows_op op, const struct unit_table *t)
{
	return (op != ROWS_OP_PUT && op != ROWS_OP_REPLACE && op != ROWS_OP_DELETE_ANY) ||
	       t->table->schema->counted;
}

/* True if the row is expected to be a new one. */
static bool
op_adds(enum rows_op op)
{
	return op == ROWS_OP_INSERT || op == ROWS_OP_INSERT_NEW || op == ROWS_OP_PUT;
}

/*
 * Where rows are one pair each, an update keeps it so: it reads the row and writes all of it, as
 * PostgreSQL does with its own. So a column costs no pair of its own, and whoever reads the row
 * asks for one key. Nothing expires in a counted table, so that no column has a life of its own to
 * lose.
 */
static bool
keeps_whole(const struct unit_table *t)
{
	return t->table->schema->whole && t->table->schema->counted;
}

static enum status
row_look(struct unit *u, struct writing *w, struct unit_table *t, struct row_op *o)
{
	const struct table_wanted nothing = { .some = true };
	bool all = keeps_whole(t) && (o->op == ROWS_OP_UPDATE || o->op == ROWS_OP_PUT);
	struct arena_mark mark = arena_mark(u->r->arena);
	struct table_row row = { 0 };
	enum status status;

	if (!op_reads(o->op, t))
		return STATUS_OK;
	if (w->has_gap && op_adds(o->op)) {
		TRY(table_gap_look(&w->gap, &t->timed, &o->key, &o->is_new));
		if (o->is_new)
			return STATUS_OK;
	}
	status = table_read(&t->timed, &o->key, false, all ? NULL : &nothing, u->r->arena, &row);
	o->is_there = status == STATUS_OK && row.is_row;
	o->inserted = o->is_there && row.inserted;
	o->is_new = status == STATUS_NOT_FOUND && !row.has_pairs;
	o->rewrites = all && o->is_there;
	if (o->rewrites)
		o->row = row;
	else
		arena_reset(u->r->arena, mark);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Room for the columns that are written, and for changes of all of the table's. */
static enum status
columns_room(struct unit *u, struct writing *w, const struct table *t)
{
	struct arena *arena = u->r->arena;
	size_t count = w->write.column_count + 1, changes = count + t->schema->column_count;

	w->columns = arena_alloc(arena, count * sizeof(const struct column *));
	w->values = arena_alloc(arena, count * sizeof(*w->values));
	w->changes = arena_alloc(arena, changes * sizeof(*w->changes));
	return w->columns && w->values && w->changes ? STATUS_OK : STATUS_LIMIT;
}

static enum status
columns_find(struct unit *u, struct writing *w, const struct table *t)
{
	struct rows_request *r = u->r;

	for (size_t i = 0; i < w->write.column_count; i++) {
		TRY(rows_table_column_find(r, t, w->write.columns[i], &w->columns[i]));
		if (w->columns[i]->stored->kind != TABLE_REGULAR)
			return rows_fail(r, ROWS_STATE_UNSUPPORTED,
					 "the column \"%.*s\" is not written by itself",
					 STR_ARG(w->columns[i]->stored->name));
	}
	return STATUS_OK;
}

/* The changes of the columns; what is null is cleared, unless nothing is there to be cleared. */
static enum status
changes_make(struct unit *u, struct writing *w, const struct unit_table *t, const struct row_op *o,
	     size_t *ret_count)
{
	bool is_new = o->op == ROWS_OP_REPLACE || (op_reads(o->op, t) && !o->is_there);
	size_t count = 0;

	for (size_t i = 0; i < w->write.column_count; i++) {
		struct table_change *c = &w->changes[count];

		*c = (struct table_change){ .column = w->columns[i]->stored->id,
					    .kind = TABLE_CHANGE_PUT };
		switch (w->values[i].presence) {
		case ROWS_ABSENT:
			continue;
		case ROWS_NULL:
			if (is_new)
				continue;
			c->kind = TABLE_CHANGE_CLEAR;
			break;
		case ROWS_VALUE:
			TRY(rows_column_to_scalar(u->r, w->columns[i], w->values[i].bytes,
						  &c->value));
			break;
		}
		count++;
	}
	*ret_count = count;
	return STATUS_OK;
}

static bool
writes_column(const struct writing *w, const struct table_column *column)
{
	for (size_t i = 0; i < w->write.column_count; i++)
		if (w->columns[i]->stored == column && w->values[i].presence != ROWS_ABSENT)
			return true;
	return false;
}

/*
 * What stays of a row that is written as a whole: each column is named, also those without a value,
 * so that nobody has to look again what there is. Cells are in the order of the columns.
 */
static void
changes_keep(struct writing *w, const struct table_schema *schema, const struct table_row *row,
	     size_t *count)
{
	size_t at = 0;

	for (size_t i = schema->key_count; i < schema->column_count; i++) {
		const struct table_column *column = &schema->columns[i];
		bool there = at < row->cell_count && row->cells[at].column == column;
		struct table_change change = { .column = column->id, .kind = TABLE_CHANGE_CLEAR };

		if (there) {
			change.kind = TABLE_CHANGE_PUT;
			change.value = row->cells[at++].value;
		}
		if (!writes_column(w, column))
			w->changes[(*count)++] = change;
	}
	assert(at == row->cell_count);
}

/* Whether the row stays one pair. */
static bool
changes_fit(const struct writing *w, const struct table *t, size_t count, bool rewrites)
{
	size_t room = rewrites ? REWRITE_BYTES : TABLE_PACKED_BYTES;

	for (size_t i = 0; i < count; i++) {
		const struct table_change *c = &w->changes[i];
		size_t bytes = VALUE_HEAD_BYTES + c->value.text.len + c->value.more.len;

		if (c->kind != TABLE_CHANGE_PUT)
			continue;
		if (bytes > room || table_column_by_id(t->schema, c->column)->has_pieces)
			return false;
		room -= bytes;
	}
	return true;
}

/* The changes of a row whose table has whole rows, or has them no more. */
static enum status
changes_whole(struct unit *u, struct writing *w, struct unit_table *t, struct row_op *o,
	      size_t *count)
{
	if (o->rewrites)
		changes_keep(w, t->table->schema, &o->row, count);
	if (changes_fit(w, t->table, *count, o->rewrites))
		return STATUS_OK;
	TRY(rows_unit_leaves(u, &w->write.table, t));
	o->rewrites = false;
	TRY(columns_find(u, w, t->table));
	return changes_make(u, w, t, o, count);
}

static enum status
row_put(struct unit *u, struct writing *w, struct unit_table *t, struct row_op *o)
{
	struct table_write write = { .key = o->key,
				     .is_new = o->is_new || o->op == ROWS_OP_REPLACE,
				     .tells_count = true,
				     .changes = w->changes };

	TRY(changes_make(u, w, t, o, &write.change_count));
	if (keeps_whole(t))
		TRY(changes_whole(u, w, t, o, &write.change_count));
	/* A row of CQL's that was only ever updated would go with its last column. */
	write.inserts = o->op != ROWS_OP_UPDATE || !o->inserted || o->rewrites;
	TRY(rows_unit_note(u, t, &o->key));
	if (o->op == ROWS_OP_REPLACE)
		TRY(table_clear_told_row(&t->timed, &o->key));
	TRY(table_write(&t->timed, &write));
	rows_unit_told(u, t, !o->is_there);
	return STATUS_OK;
}

static enum status
row_clear(struct unit *u, struct unit_table *t, const struct row_op *o)
{
	TRY(rows_unit_note(u, t, &o->key));
	TRY(table_clear_told_row(&t->timed, &o->key));
	rows_unit_told(u, t, -o->is_there);
	return STATUS_OK;
}

/* `*ret_done` is false if nothing happened. */
static enum status
row_run(struct unit *u, struct writing *w, struct unit_table *t, struct row_op *o, bool *ret_done)
{
	TRY(row_look(u, w, t, o));
	*ret_done = true;
	switch (o->op) {
	case ROWS_OP_INSERT:
		if (o->is_there)
			return rows_fail(u->r, ROWS_STATE_UNIQUE,
					 "the table \"%.*s\" has a row with this key",
					 STR_ARG(t->table->db->name));
		return row_put(u, w, t, o);
	case ROWS_OP_INSERT_NEW:
		*ret_done = !o->is_there;
		return o->is_there ? STATUS_OK : row_put(u, w, t, o);
	case ROWS_OP_UPDATE:
		*ret_done = o->is_there;
		return o->is_there ? row_put(u, w, t, o) : STATUS_OK;
	case ROWS_OP_DELETE:
		*ret_done = o->is_there;
		return o->is_there ? row_clear(u, t, o) : STATUS_OK;
	case ROWS_OP_DELETE_ANY:
		return row_clear(u, t, o);
	case ROWS_OP_PUT:
	case ROWS_OP_REPLACE:
	case ROWS_OPS_END:
		break;
	}
	return row_put(u, w, t, o);
}

/* Says which unique index has another row with the values of this one. */
static enum status
fail_unique(struct rows_request *r, const struct unit_table *t)
{
	const struct table_index *index = rows_index_numbered(t->table, t->timed.refused_by);

	if (index)
		TRY(arena_copy(r->arena, index->name, &r->unique));
	return rows_fail(r, ROWS_STATE_UNIQUE,
			 "the table \"%.*s\" has a row with the same values in the unique index "
			 "\"%.*s\"",
			 STR_ARG(t->table->db->name), STR_ARG(r->unique));
}

/* The next row of the request. */
static enum status
row_next(struct rows_request *r, struct writing *w, const struct table *t, struct rows_in *ops,
	 struct row_op *ret)
{
	struct rows_key key;

	*ret = (struct row_op){ 0 };
	rows_write_next(ops, w->write.column_count, &ret->op, &key, w->values);
	if (key.count != rows_table_key_columns(t))
		return rows_fail(r, ROWS_STATE_DEFINITION, "a key has %zu columns here",
				 rows_table_key_columns(t));
	return rows_key_make(r, t, key.values, key.count, &ret->key);
}

/* Where several rows come, and the last one is to be added, others may be new together with it. */
static enum status
gap_begin(struct rows_request *r, struct writing *w, struct unit_table *t)
{
	struct rows_in ops = w->write.ops;
	struct rows_key key;
	struct row_op last;

	w->has_gap = false;
	if (w->write.count < GAP_ROWS)
		return STATUS_OK;
	for (uint32_t i = 1; i < w->write.count; i++)
		rows_write_next(&ops, w->write.column_count, &last.op, &key, w->values);
	/* What is wrong with that row is told when its turn comes. */
	if (row_next(r, w, t->table, &ops, &last) != STATUS_OK) {
		r->state = NULL;
		r->err.text[0] = '\0';
		return STATUS_OK;
	}
	w->has_gap = op_adds(last.op) && op_reads(last.op, t);
	return w->has_gap ? table_gap_begin(&w->gap, &t->timed, &last.key) : STATUS_OK;
}

static enum status
write_rows(struct unit *u, struct writing *w)
{
	struct rows_request *r = u->r;
	struct rows_in ops = w->write.ops;
	struct arena_mark mark;
	struct unit_table *t;
	enum status status;
	bool done;

	TRY(rows_unit_table_open(u, &w->write.table, &t));
	TRY(rows_table_check_key(r, t->table));
	if (t->table->schema->counters)
		return rows_fail(r, ROWS_STATE_UNSUPPORTED, "a table of counters is only read");
	TRY(columns_room(u, w, t->table));
	TRY(columns_find(u, w, t->table));
	rows_put_u32(r->out, w->write.count);
	mark = arena_mark(r->arena);
	TRY(gap_begin(r, w, t));
	arena_reset(r->arena, mark);
	for (uint32_t i = 0; i < w->write.count; i++) {
		const struct table *was = t->table;
		struct row_op o;

		r->at = (int32_t)i;
		TRY(row_next(r, w, t->table, &ops, &o));
		status = row_run(u, w, t, &o, &done);
		if (status == STATUS_DUPLICATE)
			return fail_unique(r, t);
		TRY(status);
		rows_put_u8(r->out, done);
		/* A table that was opened again may lie in this arena. */
		if (t->table != was)
			mark = arena_mark(r->arena);
		else
			arena_reset(r->arena, mark);
	}
	r->at = ROWS_NOWHERE;
	TRY(rows_unit_settle(u));
	return buf_status(r->out);
}

static enum status
write_body(struct unit *u, void *arg)
{
	struct writing *w = arg;
	enum status status;

	table_gap_init(&w->gap);
	status = write_rows(u, w);
	table_gap_release(&w->gap);
	return status;
}

enum status
rows_serve_write(struct rows_request *r)
{
	struct writing w;

	TRY(rows_write_read(r->body, r->arena, &w.write, &r->err));
	r->schema = w.write.table.schema;
	r->table = w.write.table.name;
	TRY(rows_request_allow(r, GRANT_MODIFY, r->schema, r->table));
	return rows_unit_run(r, write_body, &w, true);
}
