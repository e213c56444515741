#include "door/cql/run/batch.h"

#include "door/cql/run/modify.h"
#include "door/cql/run/status_row.h"
#include "door/cql/schema/options.h"

/* A statement of the batch that runs. */
struct member {
	struct run run;
	struct modify modify;
	struct condition_state state; /* of one with conditions */
	bool conditional;
	bool holds; /* its conditions, if it has some */
};

struct batching {
	struct cql_request *r;
	struct kv_tx *tx;
	struct member *members;
	size_t count;        /* whose tables are open */
	struct timed *timed; /* one for each table */
	size_t timed_count;
	bool conditional;
	bool tells; /* RETURNS STATUS AS ROW */
};

/* A table of whose options one says so is in no transaction, as in YCQL; all others may be. */
static enum status
check_transactional(struct cql_request *r, const struct run *run)
{
	bool forbids;

	TRY(options_forbid_transactions(&r->q, run->table, &forbids));
	if (!forbids)
		return STATUS_OK;
	return request_fail(r, CQL_CODE_INVALID,
			    "Transactions are not enabled in the table %.*s.%.*s",
			    STR_ARG(run->table->keyspace), STR_ARG(run->table->name));
}

static enum status
check_kind(struct cql_request *r, enum cql_batch_kind kind, const struct run *run)
{
	if (kind == CQL_BATCH_TRANSACTION)
		return check_transactional(r, run);
	if (run->table->counters && kind == CQL_BATCH_LOGGED)
		return request_fail(r, CQL_CODE_INVALID,
				    "Cannot include a counter statement in a logged batch");
	if (!run->table->counters && kind == CQL_BATCH_COUNTER)
		return request_fail(r, CQL_CODE_INVALID,
				    "Cannot include non-counter statement in a counter batch");
	return STATUS_OK;
}

static enum status
check_statement(struct cql_request *r, enum cql_batch_kind kind, const struct cql_statement *s)
{
	if (s->kind == CQL_INSERT || s->kind == CQL_UPDATE || s->kind == CQL_DELETE)
		return STATUS_OK;
	if (kind == CQL_BATCH_TRANSACTION)
		return request_fail(r, CQL_CODE_INVALID,
				    "Invalid statement in a transaction: only INSERT, UPDATE and "
				    "DELETE are allowed.");
	return request_fail(r, CQL_CODE_INVALID,
			    "Invalid statement in batch: only UPDATE, INSERT and DELETE statements "
			    "are allowed.");
}

static const struct cql_name *
table_of(const struct cql_statement *s)
{
	return s->kind == CQL_INSERT   ? &s->insert.table
	       : s->kind == CQL_UPDATE ? &s->update.table
				       : &s->remove.table;
}

/* The transaction of a table: all statements on it share one moment. */
static struct timed *
timed_of(struct batching *b, const struct catalog_db *db)
{
	for (size_t i = 0; i < b->timed_count; i++)
		if (b->timed[i].db->number == db->number)
			return &b->timed[i];
	timed_init(&b->timed[b->timed_count], b->tx, db, NULL, &b->r->err);
	return &b->timed[b->timed_count++];
}

static enum status
member_open(struct batching *b, enum cql_batch_kind kind, const struct batch_item *item)
{
	struct member *m = &b->members[b->count];
	struct prepared *prepared = item->prepared;
	struct cql_request *r = b->r;

	TRY(check_statement(r, kind, item->statement));
	TRY(run_begin(&m->run, r, b->tx, item->statement, item->outer, item->keyspace));
	m->run.values = item->values;
	m->run.value_count = item->value_count;
	TRY(run_open_compiled(&m->run, table_of(item->statement),
			      prepared ? prepared->compiled : NULL));
	m->modify.look = NULL;
	b->count++;
	TRY(request_allow(r, GRANT_MODIFY, m->run.table->keyspace, m->run.table->name));
	if (prepared)
		TRY(prepared_check(prepared, item->id, &m->run));
	TRY(check_kind(r, kind, &m->run));
	TRY(modify_begin(&m->modify, &m->run));
	TRY(catalog_db_check_writable(m->run.table->db, &r->err));
	if (m->run.table->counters != b->members[0].run.table->counters)
		return request_fail(r, CQL_CODE_INVALID,
				    "Counter and non-counter mutations cannot exist in the same "
				    "batch");
	m->conditional = modify_is_conditional(item->statement);
	b->conditional |= m->conditional;
	TRY(run_bind(&m->run));
	return modify_prepare(&m->modify, timed_of(b, m->run.table->db));
}

/* ---- Conditions ---- */

static enum status
check_one_partition(struct batching *b)
{
	const struct member *of = &b->members[0];
	struct table_key key;
	bool has_token = false;
	int64_t token = 0;

	for (size_t i = 0; i < b->count; i++) {
		struct member *m = &b->members[i];

		if (!str_eq(m->run.table->name, of->run.table->name) ||
		    !str_eq(m->run.table->keyspace, of->run.table->keyspace))
			return request_fail(b->r, CQL_CODE_INVALID,
					    "Batch with conditions cannot span multiple tables");
		if (m->modify.kind != CQL_INSERT && !m->modify.plan.partition_count)
			continue;
		if (m->modify.plan.nothing)
			continue;
		if (m->modify.kind != CQL_INSERT && m->modify.plan.in_partition)
			return request_fail(b->r, CQL_CODE_INVALID,
					    "Batch with conditions cannot span multiple "
					    "partitions");
		TRY(modify_key(&m->modify, &key));
		if (has_token && key.token != token)
			return request_fail(b->r, CQL_CODE_INVALID,
					    "Batch with conditions cannot span multiple "
					    "partitions");
		has_token = true;
		token = key.token;
	}
	return STATUS_OK;
}

static enum status
read_conditions(struct batching *b, bool *applied)
{
	*applied = true;
	for (size_t i = 0; i < b->count; i++) {
		struct member *m = &b->members[i];

		m->holds = true;
		if (!m->conditional)
			continue;
		TRY(condition_read(&m->modify, true, &m->state));
		TRY(condition_holds(&m->modify, &m->state, &m->holds));
		*applied &= m->holds;
	}
	return STATUS_OK;
}

/* A refused batch tells the keys of the rows that its conditions are about, and their columns. */
static bool
tells_column(const struct batching *b, const struct schema_column *c)
{
	if (c->kind <= SCHEMA_CLUSTERING)
		return true;
	for (size_t i = 0; i < b->count; i++) {
		const struct modify *m = &b->members[i].modify;

		if (!b->members[i].conditional)
			continue;
		if (m->condition->not_exists)
			return true;
		for (size_t j = 0; j < m->condition_count; j++)
			if (str_eq(m->conditions[j].column->name, c->name))
				return true;
	}
	return false;
}

/* A transaction's conditions may be about rows of several tables, so it tells only [applied]. */
static enum status
transaction_answer(struct batching *b, bool applied)
{
	const struct result_column column = { STR("[applied]"), CQL_NATIVE(BOOLEAN) };
	const struct schema_table *t = b->members[0].run.table;
	const struct result_columns result = { t->keyspace, t->name, &column, 1 };

	metadata_put_rows(b->r->out, b->r->header.version, &result, false, (struct str){ 0 });
	frame_put_i32(b->r->out, 1);
	cql_element_put(b->r->out, CQL_VALUE(applied ? STR("\1") : STR("\0")));
	return STATUS_OK;
}

static enum status
conditions_answer(struct batching *b, bool applied)
{
	const struct schema_table *t = b->members[0].run.table;
	struct buf *out = b->r->out;
	struct result_column *columns = arena_alloc(b->r->arena, (t->count + 1) * sizeof(*columns));
	struct result_columns result = { t->keyspace, t->name, columns, 1 };
	int32_t rows = 0;

	if (!columns)
		return STATUS_LIMIT;
	columns[0] = (struct result_column){ STR("[applied]"), CQL_NATIVE(BOOLEAN) };
	for (size_t i = 0; i < b->count && !applied; i++)
		rows += b->members[i].conditional && b->members[i].state.exists;
	for (size_t i = 0; i < t->count && rows; i++)
		if (tells_column(b, &t->columns[i]))
			columns[result.count++] = (struct result_column){ t->columns[i].name,
									  t->columns[i].type };
	metadata_put_rows(out, b->r->header.version, &result, false, (struct str){ 0 });
	frame_put_i32(out, rows ? rows : 1);
	if (!rows)
		cql_element_put(out, CQL_VALUE(applied ? STR("\1") : STR("\0")));
	for (size_t i = 0; i < b->count && rows; i++) {
		const struct member *m = &b->members[i];

		if (!m->conditional || !m->state.exists)
			continue;
		cql_element_put(out, CQL_VALUE(STR("\0")));
		for (size_t j = 0; j < t->count; j++)
			if (tells_column(b, &t->columns[j]))
				cql_element_put(out, m->state.row.values[j]);
	}
	return STATUS_OK;
}

/* ---- RETURNS STATUS AS ROW ---- */

/* All statements of a batch say so, which are about one table, or none. */
static enum status
check_telling(struct batching *b)
{
	const struct schema_table *t = b->count ? b->members[0].run.table : NULL;
	size_t telling = 0;

	for (size_t i = 0; i < b->count; i++)
		telling += status_row_asked(b->members[i].run.statement);
	if (telling && telling < b->count)
		return request_fail(b->r, CQL_CODE_INVALID,
				    "RETURNS STATUS AS ROW is of all statements of a batch, or of "
				    "none");
	for (size_t i = 0; i < telling; i++)
		if (b->members[i].run.table->db->number != t->db->number)
			return request_fail(b->r, CQL_CODE_INVALID,
					    "RETURNS STATUS AS ROW of a batch is about one table");
	b->tells = telling > 0;
	return STATUS_OK;
}

/* A row for each statement: all were applied, or none since a condition does not hold. */
static enum status
tell_conditions(struct batching *b, bool applied)
{
	const struct schema_table *t = b->members[0].run.table;
	const struct str others = STR("not applied: a condition of the batch does not hold");

	TRY(status_row_begin(b->r, t, b->count));
	for (size_t i = 0; i < b->count; i++) {
		const struct member *m = &b->members[i];

		if (applied || !m->holds)
			status_row_put(b->r, t, applied, (struct str){ 0 },
				       applied ? NULL : &m->state.row);
		else
			status_row_put(b->r, t, false, others, NULL);
	}
	return STATUS_OK;
}

/* The same where one of them has failed. */
static enum status
tell_failure(struct batching *b, size_t failed)
{
	const struct schema_table *t = b->members[0].run.table;
	const struct str others = STR("not applied: a statement of the batch has failed");

	TRY(status_row_begin(b->r, t, b->count));
	for (size_t i = 0; i < b->count; i++)
		status_row_put(b->r, t, false, i == failed ? str_from_cstr(b->r->err.text) : others,
			       NULL);
	b->r->answers_failure = true;
	return STATUS_OK;
}

/* ---- All of it ---- */

enum {
	BATCH_AHEAD = 16, /* INSERTs that ask for their rows together */
};

/*
 * Asks for what the INSERTs from `at` on have to read of their rows, before the first of them is
 * run: a cluster answers all of them in one round trip. No statement between them writes these
 * rows, so each gets what it would have got at its turn. An INSERT into a row that an earlier
 * one of them writes asks at its turn. `*ret`: behind the last one that was looked at.
 */
static enum status
ask_some(struct batching *b, size_t at, size_t *ret)
{
	size_t to = at;

	for (; to < b->count && to - at < BATCH_AHEAD; to++) {
		struct modify *m = &b->members[to].modify;

		if (m->kind != CQL_INSERT || m->has_stamp)
			break;
		TRY(modify_ask(m));
		for (size_t i = at; m->look && i < to; i++)
			if (b->members[i].modify.look &&
			    table_look_meets(m->look, b->members[i].modify.look)) {
				table_look_end(m->look);
				m->look = m->write.look = NULL;
			}
	}
	*ret = to > at ? to : at + 1;
	return STATUS_OK;
}

static enum status
apply_all(struct batching *b)
{
	size_t asked = 0;

	for (size_t i = 0; i < b->count; i++) {
		enum status status = STATUS_OK;

		if (i == asked && b->count > 1 && !b->tells)
			status = ask_some(b, i, &asked);
		if (status == STATUS_OK)
			status = modify_apply(&b->members[i].modify);

		if (b->tells && status_row_tells(b->r, status))
			TRY(tell_failure(b, i));
		TRY(status);
	}
	return STATUS_OK;
}

static enum status
run_all(struct batching *b, enum cql_batch_kind kind, const struct batch_item *items, size_t count)
{
	bool applied = true;

	for (size_t i = 0; i < count; i++)
		TRY(member_open(b, kind, &items[i]));
	TRY(check_telling(b));
	if (b->conditional) {
		b->r->more.write = ERROR_WRITE_CAS;
		if (kind != CQL_BATCH_TRANSACTION)
			TRY(check_one_partition(b));
		TRY(read_conditions(b, &applied));
	}
	/* Beside conditions only what a statement says itself counts. */
	for (size_t i = 0; i < count && b->conditional; i++)
		b->members[i].modify.has_stamp = b->members[i].modify.stamp_is_said;
	if (applied)
		TRY(apply_all(b));
	if (b->tells)
		return tell_conditions(b, applied);
	if (b->conditional)
		return kind == CQL_BATCH_TRANSACTION ? transaction_answer(b, applied)
						     : conditions_answer(b, applied);
	frame_put_i32(b->r->out, RESULT_VOID);
	return STATUS_OK;
}

enum status
batch_run(struct cql_request *r, struct kv_tx *tx, enum cql_batch_kind kind,
	  const struct batch_item *items, size_t count)
{
	struct batching b = { .r = r, .tx = tx };
	enum status status = STATUS_LIMIT;

	b.members = arena_alloc(r->arena, (count + 1) * sizeof(*b.members));
	b.timed = arena_alloc(r->arena, (count + 1) * sizeof(*b.timed));
	if (b.members && b.timed)
		status = run_all(&b, kind, items, count);
	for (size_t i = 0; i < b.count; i++) {
		table_look_end(b.members[i].modify.look);
		run_close_table(&b.members[i].run);
	}
	return status;
}

enum status
batch_describe(struct run *outer, enum cql_batch_kind kind, const struct batch_item *items,
	       size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct modify m;
		struct run run;
		enum status status;

		TRY(check_statement(outer->r, kind, items[i].statement));
		TRY(run_begin(&run, outer->r, outer->tx, items[i].statement, outer->outer,
			      outer->keyspace));
		run.describes = true;
		run.scope.markers = outer->scope.markers;
		TRY(run_open_table(&run, table_of(items[i].statement)));
		status = request_allow(outer->r, GRANT_MODIFY, run.table->keyspace,
				       run.table->name);
		if (status == STATUS_OK)
			status = check_kind(outer->r, kind, &run);
		if (status == STATUS_OK)
			status = modify_compile(&m, &run);
		run_close_table(&run);
		TRY(status);
	}
	return STATUS_OK;
}
