#include "door/cql/run/compiled.h"

#include "door/cql/run/modify.h"
#include "door/cql/run/select.h"

static enum status
compile_select(struct compiled *c, struct run *run)
{
	struct select *s = arena_alloc(run->r->arena, sizeof(*s));

	if (!s)
		return STATUS_LIMIT;
	TRY(select_compile(s, run));
	/* Where something is wrong, it is told in its turn. */
	s->checked = select_check(s, false) == STATUS_OK;
	c->select = s;
	return STATUS_OK;
}

static enum status
compile_modify(struct compiled *c, struct run *run)
{
	struct modify *m = arena_alloc(run->r->arena, sizeof(*m));

	if (!m)
		return STATUS_LIMIT;
	TRY(modify_compile(m, run));
	c->modify = m;
	return STATUS_OK;
}

/* Compiles it in the arena that the request has for the time of this. */
static enum status
compile(struct compiled *c, const struct run *of)
{
	struct catalog_db *db = of->table->db;
	struct run run;

	TRY(kv_get_metadata_version(of->tx, c->version));
	TRY(run_begin(&run, of->r, of->tx, of->statement, of->outer, of->keyspace));
	TRY(schema_table_apart(run.q, &run.types, db, &run.table));
	c->table = run.table;
	TRY(arena_copy(run.r->arena, db->name, &c->name));
	TRY(run_set_scope(&run));
	/* What is compiled may look at the description, and keeps nothing of it. */
	run.table->db = db;
	run.table->schema = table_schema_of(db);
	TRY(run.statement->kind == CQL_SELECT ? compile_select(c, &run) : compile_modify(c, &run));
	run.table->db = NULL;
	run.table->schema = NULL;
	c->named = run.named;
	c->scope = run.scope;
	c->scope.arg = NULL;
	return STATUS_OK;
}

const struct compiled *
compiled_new(const struct run *run, struct arena *arena)
{
	struct cql_request *r = run->r;
	struct arena *own = r->arena;
	const struct arena_mark mark = arena_mark(arena);
	const enum cql_code code = r->q.code;
	const struct err err = r->err;
	struct compiled *c;
	enum status status = STATUS_LIMIT;

	if (!run->table->db)
		return NULL;
	r->arena = r->q.arena = arena;
	c = arena_zalloc(arena, sizeof(*c));
	if (c)
		status = compile(c, run);
	r->arena = r->q.arena = own;
	/* Whoever compiles it for the transaction is told the same. */
	r->q.code = code;
	r->err = err;
	if (status == STATUS_OK)
		return c;
	arena_reset(arena, mark);
	return NULL;
}
