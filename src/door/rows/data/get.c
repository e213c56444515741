#include "door/rows/data/pick.h"
#include "door/rows/data/rows.h"

struct getting {
	struct rows_get get;
	struct pick pick;
};

static enum status
get_one(struct unit *u, const struct getting *g, struct unit_table *t, const struct rows_key *key)
{
	struct rows_request *r = u->r;
	struct table_row row = { 0 };
	struct table_key stored;
	enum status status;

	if (key->count != rows_table_key_columns(t->table))
		return rows_fail(r, ROWS_STATE_DEFINITION, "a key has %zu columns here",
				 rows_table_key_columns(t->table));
	TRY(rows_key_make(r, t->table, key->values, key->count, &stored));
	status = table_read(&t->timed, &stored, g->pick.statics, &g->pick.wanted, r->arena, &row);
	if (status != STATUS_NOT_FOUND)
		TRY(status);
	rows_put_u8(r->out, status == STATUS_OK && row.is_row);
	for (size_t i = 0; status == STATUS_OK && row.is_row && i < g->pick.count; i++)
		TRY(rows_pick_put(r, t->table, g->pick.columns[i], &row, r->out));
	return buf_status(r->out);
}

static enum status
get_body(struct unit *u, void *arg)
{
	struct getting *g = arg;
	struct rows_request *r = u->r;
	struct rows_in keys = g->get.keys;
	struct unit_table *t;
	struct arena_mark mark;
	struct rows_key key;

	TRY(rows_unit_table_open(u, &g->get.table, &t));
	TRY(rows_table_check_key(r, t->table));
	TRY(rows_pick_make(r, t->table, g->get.columns, g->get.column_count, 0, &g->pick));
	rows_pick_end(&g->pick);
	rows_put_u32(r->out, g->get.key_count);
	mark = arena_mark(r->arena);
	for (uint32_t i = 0; i < g->get.key_count; i++) {
		r->at = (int32_t)i;
		rows_key_next(&keys, &key);
		TRY(get_one(u, g, t, &key));
		arena_reset(r->arena, mark);
	}
	r->at = ROWS_NOWHERE;
	return STATUS_OK;
}

enum status
rows_serve_get(struct rows_request *r)
{
	struct getting g;

	TRY(rows_get_read(r->body, r->arena, &g.get, &r->err));
	r->schema = g.get.table.schema;
	r->table = g.get.table.name;
	TRY(rows_request_allow(r, GRANT_SELECT, r->schema, r->table));
	return rows_unit_run(r, get_body, &g, false);
}
