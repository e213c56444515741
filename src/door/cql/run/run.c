#include "door/cql/run/run.h"

#include "base/hash.h"
#include "door/cql/run/batch.h"
#include "door/cql/run/ddl.h"
#include "door/cql/run/describe.h"
#include "door/cql/run/joint.h"
#include "door/cql/run/lane.h"
#include "door/cql/run/modify.h"
#include "door/cql/run/news.h"
#include "door/cql/run/prepared.h"
#include "door/cql/run/role.h"
#include "door/cql/run/select.h"
#include "door/cql/schema/system.h"
#include "kv/fate.h"
#include "kv/overlap.h"
#include "loop/step.h"
#include "model/timed/tables/index.h"

enum {
	INDEX_STEPS = 2, /* of the build of an index that the statement creating it waits for */
};

/* A statement that is run, in as many attempts as its transaction needs. */
struct job {
	struct lane_member member; /* first; of a conditional statement */
	struct cql_request *r;
	const struct cql_statement *statement;
	struct prepared *prepared;       /* borrowed; NULL: it is none */
	struct str id;                   /* of the one that is prepared, as the request has it */
	const struct compiled *compiled; /* NULL: it was not compiled before its transaction */
	struct str keyspace;
	const struct params *params;
	/* The answer and the arena go back to these in each attempt. */
	size_t out;
	struct arena_mark mark;
	struct ddl_outcome outcome;
	/* A batch. */
	enum cql_batch_kind batch_kind;
	const struct batch_item *items;
	size_t item_count;
};

static void
job_restart(struct job *job)
{
	struct cql_request *r = job->r;

	buf_clear(r->out);
	r->out->len = job->out;
	arena_reset(r->arena, job->mark);
	r->q.code = (enum cql_code)0;
	r->err.text[0] = '\0';
	r->answers_failure = false;
	job->outcome = (struct ddl_outcome){ 0 };
}

static void
job_init(struct job *job, struct cql_request *r, const struct cql_statement *statement,
	 struct str keyspace, const struct params *p)
{
	*job = (struct job){ .r = r,
			     .statement = statement,
			     .keyspace = keyspace,
			     .params = p,
			     .out = r->out->len,
			     .mark = arena_mark(r->arena) };
	r->has_timestamp = p && p->flags & PARAMS_HAS_TIMESTAMP;
	r->timestamp = r->has_timestamp ? p->timestamp : 0;
}

static enum cql_class
class_of(const struct cql_statement *s)
{
	switch ((int)s->kind) {
	case CQL_SELECT:
		return CQL_CLASS_SELECT;
	case CQL_INSERT:
		return CQL_CLASS_INSERT;
	case CQL_UPDATE:
		return CQL_CLASS_UPDATE;
	case CQL_DELETE:
		return CQL_CLASS_DELETE;
	case CQL_BATCH:
	case CQL_TRANSACTION:
		return CQL_CLASS_BATCH;
	default:
		return ddl_is(s) ? CQL_CLASS_SCHEMA : CQL_CLASS_OTHER;
	}
}

static const struct cql_name *
table_of(const struct cql_statement *s)
{
	switch ((int)s->kind) {
	case CQL_SELECT:
		return &s->select.table;
	case CQL_INSERT:
		return &s->insert.table;
	case CQL_UPDATE:
		return &s->update.table;
	case CQL_DELETE:
		return &s->remove.table;
	default:
		return NULL;
	}
}

/* ---- Bodies of transactions ---- */

static enum status
allow_table(struct run *run)
{
	bool reads = run->statement->kind == CQL_SELECT;

	if (reads && str_eq(run->table->keyspace, STR("system_auth")))
		return request_allow_on(run->r, GRANT_DESCRIBE,
					&(struct grant_resource){ .of_roles = true });
	if (reads && run->table->system)
		return STATUS_OK;
	return request_allow(run->r, reads ? GRANT_SELECT : GRANT_MODIFY, run->table->keyspace,
			     run->table->name);
}

/* A statement that makes or changes a role may have a password, which nobody is to read again. */
static void
trace_statement(const struct cql_request *r, const struct cql_statement *statement, struct str text)
{
	if (statement->kind != CQL_CREATE_ROLE && statement->kind != CQL_ALTER_ROLE)
		trace_set_text(r->trace, text);
}

/* What an attempt has done since `before`; its commit is still to come. */
static void
trace_attempt(const struct cql_request *r, struct kv_tx *tx, const struct kv_tx_stats *before)
{
	struct kv_tx_stats s;

	if (!r->trace)
		return;
	s = kv_tx_stats(tx);
	trace_note(r->trace,
		   "Transaction: %llu reads of %llu pairs (%llu bytes); %llu pairs set, %llu "
		   "clears (%llu bytes)",
		   (unsigned long long)(s.reads - before->reads),
		   (unsigned long long)(s.keys_read - before->keys_read),
		   (unsigned long long)(s.bytes_read - before->bytes_read),
		   (unsigned long long)(s.sets - before->sets),
		   (unsigned long long)(s.clears - before->clears),
		   (unsigned long long)(s.bytes_written - before->bytes_written));
}

/* `shared`: of the group that the statement is in; NULL: it has the transaction for itself. */
static enum status
change_run(struct run *run, struct lane_table *shared)
{
	struct timed own;

	if (shared) {
		TRY(lane_share(shared, run));
		return modify_run(run, &shared->timed);
	}
	timed_init(&own, run->tx, run->table->db, NULL, &run->r->err);
	return modify_run(run, &own);
}

/* Runs a statement on a table. `shared`: as in change_run(). `joint`: whose transaction it is. */
static enum status
data_run(struct job *job, struct kv_tx *tx, struct lane_table *shared, struct joint *joint)
{
	const struct cql_name *table = table_of(job->statement);
	struct kv_tx_stats before = { 0 };
	enum status status;
	struct run run;

	TRY(run_begin(&run, job->r, tx, job->statement, NULL, job->keyspace));
	run.values = job->params->values;
	run.value_count = job->params->value_count;
	run.joint = joint;
	run.spare_rows = joint ? &joint->rows : NULL;
	if (job->r->trace && (joint || shared))
		before = kv_tx_stats(tx);
	TRY(joint ? joint_open(joint, &run, table, job->prepared)
		  : run_open_compiled(&run, table, job->compiled));
	status = allow_table(&run);
	if (status == STATUS_OK && job->prepared)
		status = prepared_check(job->prepared, job->id, &run);
	if (status == STATUS_OK)
		status = job->statement->kind == CQL_SELECT ? select_run(&run, job->params)
							    : change_run(&run, shared);
	if (!shared || shared->table != run.table)
		run_close_table(&run);
	trace_attempt(job->r, tx, &before);
	return status;
}

static enum status
data_body(struct kv_tx *tx, void *arg)
{
	struct job *job = arg;

	/* What a scan holds is its client's. A write's transaction is small, or its group's. */
	if (job->statement->kind == CQL_SELECT)
		kv_tx_set_memory(tx, arena_part(job->r->arena),
				 cql_client_stretch_bytes(job->r->client));
	else if (job->r->beside)
		kv_tx_overlap(tx);
	job_restart(job);
	return data_run(job, tx, NULL, NULL);
}

/*
 * Reads in the transaction that the request has in common with others, if the statement may. What
 * fails there without words of its own is read again in a transaction of the statement's, which
 * tells why, and is what a transaction that is too old needs.
 */
static enum status
read_data(struct job *job)
{
	struct cql_request *r = job->r;
	struct joint *joint = r->joint;
	struct kv_tx *tx = NULL;
	enum status status;

	if (joint && job->prepared && job->prepared->reads_row)
		tx = joint_tx(joint, r);
	if (tx) {
		job_restart(job);
		status = data_run(job, tx, NULL, joint);
		if (status == STATUS_OK)
			joint_ran(joint);
		if (status == STATUS_OK || r->q.code)
			return status;
		joint_end(joint);
		TRY(step_ask());
	}
	return kv_run_read(r->door->config.store, data_body, job, &r->err);
}

static enum status
ddl_body(struct kv_tx *tx, void *arg)
{
	struct job *job = arg;
	struct run run;

	job_restart(job);
	TRY(run_begin(&run, job->r, tx, job->statement, NULL, job->keyspace));
	return ddl_run(&run, &job->outcome);
}

static enum status
describe_body(struct kv_tx *tx, void *arg)
{
	struct job *job = arg;
	struct run run;

	kv_tx_set_memory(tx, arena_part(job->r->arena), 0);
	job_restart(job);
	TRY(run_begin(&run, job->r, tx, job->statement, NULL, job->keyspace));
	return describe_run(&run);
}

static enum status
batch_body(struct kv_tx *tx, void *arg)
{
	struct job *job = arg;
	enum status status;

	if (job->r->beside)
		kv_tx_overlap(tx);
	job_restart(job);
	status = batch_run(job->r, tx, job->batch_kind, job->items, job->item_count);
	trace_attempt(job->r, tx, &(struct kv_tx_stats){ 0 });
	return status;
}

/*
 * Runs the body and commits it, together with what others of the connection write meanwhile. A
 * client that leaves does not end it: what has come as a whole is done. A failure that is told as a
 * row is no failure of the request. `lanes` are those that the job has, or NULL.
 */
static enum status
job_write(struct job *job, kv_body *body, struct kv_lanes *lanes)
{
	struct cql_request *r = job->r;
	struct kv_store *store = r->door->config.store;
	enum status status;

	r->op->ends = OPS_LASTS;
	status = lanes ? kv_run_in_lanes(store, body, job, lanes, &r->err)
		       : kv_run(store, body, job, NULL, &r->err);
	if (status == STATUS_OK || !r->answers_failure)
		return status;
	r->q.code = (enum cql_code)0;
	return STATUS_OK;
}

/* ---- Statements with conditions, which meet others at their partition ---- */

/* The hash that a partition has in this process: of its table's name and of the key's values. */
static uint64_t
hash_of_table(const struct job *job)
{
	const struct cql_name *name = table_of(job->statement);

	if (!name)
		return 0;
	return hash_keyed(hash_keyed(0, name->keyspace.ptr ? name->keyspace : job->keyspace),
			  name->name);
}

/* Finds it without the table, of a prepared statement whose partition key is markers. */
static bool
hash_markers(const struct job *job, uint64_t *ret)
{
	const struct params_value *values = job->params->values;
	const struct prepared *p = job->prepared;
	size_t count = job->params->value_count;

	if (!p || !p->partition_count || !count || values[0].name.len)
		return false;
	*ret = hash_of_table(job);
	for (size_t i = 0; i < p->partition_count; i++) {
		unsigned at = p->partition[i];

		if (at >= count || values[at].kind != FRAME_BYTES_VALUE)
			return false;
		*ret = hash_keyed(*ret, values[at].bytes);
	}
	return true;
}

struct probing {
	struct job *job;
	uint64_t hash;
	bool found;
};

static void
probe_partition(struct probing *p, struct run *run)
{
	const struct cql_value *values;
	struct timed timed;
	struct modify m;

	timed_init(&timed, run->tx, run->table->db, NULL, &run->r->err);
	if (modify_begin(&m, run) != STATUS_OK || run_bind(run) != STATUS_OK ||
	    modify_prepare(&m, &timed) != STATUS_OK)
		return;
	values = modify_partition(&m);
	p->found = values != NULL;
	p->hash = hash_of_table(p->job);
	for (size_t i = 0; values && i < run->table->partition_count; i++)
		p->hash = hash_keyed(p->hash, values[i].bytes);
}

/*
 * Compiles a statement before its transaction, since its lane has to be known by then; the
 * transaction uses the same result. A prepared statement was compiled when it was prepared; if its
 * table has changed since, it is compiled anew while it runs.
 */
static enum status
keep_compiled(struct job *job, struct run *run)
{
	const struct compiled *c;

	if (run->compiled || job->prepared)
		return STATUS_OK;
	c = compiled_new(run, job->r->arena);
	if (!c)
		return STATUS_OK;
	job->compiled = c;
	job->mark = arena_mark(job->r->arena);
	return run_take_compiled(run, c);
}

static enum status
probe_body(struct kv_tx *tx, void *arg)
{
	struct probing *p = arg;
	struct job *job = p->job;
	enum status status;
	struct run run;

	job_restart(job);
	TRY(run_begin(&run, job->r, tx, job->statement, NULL, job->keyspace));
	run.values = job->params->values;
	run.value_count = job->params->value_count;
	TRY(run_open_compiled(&run, table_of(job->statement), job->compiled));
	status = keep_compiled(job, &run);
	if (status == STATUS_OK)
		probe_partition(p, &run);
	run_close_table(&run);
	return status;
}

/*
 * Finds the hash of the partition. False: it is not known, and the statement takes no lane; if
 * something is wrong with it, running it tells what.
 */
static bool
hash_partition(struct job *job, uint64_t *ret)
{
	struct probing p = { .job = job };
	struct err ignored;

	if (hash_markers(job, ret))
		return true;
	if (kv_run_read(job->r->door->config.store, probe_body, &p, &ignored) != STATUS_OK)
		return false;
	*ret = p.hash;
	return p.found;
}

static enum status
member_run(struct lane_member *m, struct kv_tx *tx, struct lane_table *shared)
{
	return data_run((struct job *)m, tx, shared, NULL);
}

static enum status
member_run_alone(struct lane_member *m)
{
	return job_write((struct job *)m, data_body, m->lanes);
}

static enum status
run_change(struct job *job)
{
	uint64_t hash;

	if (!modify_is_conditional(job->statement) || !hash_partition(job, &hash))
		return job_write(job, data_body, NULL);
	job->r->op->ends = OPS_LASTS;
	job->member.r = job->r;
	job->member.run = member_run;
	job->member.alone = member_run_alone;
	return lane_run(&job->member, hash);
}

/* ---- USE ---- */

static enum status
use_body(struct kv_tx *tx, void *arg)
{
	struct job *job = arg;
	struct table_keyspace stored;
	struct str name = job->statement->use;
	enum status status;

	job_restart(job);
	if (schema_keyspace_is_system(name))
		return STATUS_OK;
	status = table_keyspace_read(tx, name, job->r->arena, &stored, NULL);
	if (status == STATUS_NOT_FOUND || status == STATUS_INVALID)
		return request_fail(job->r, CQL_CODE_INVALID, "Keyspace '%.*s' does not exist",
				    STR_ARG(name));
	return status;
}

static enum status
run_use(struct job *job)
{
	struct cql_client *c = job->r->client;
	struct str name = job->statement->use;

	TRY(kv_run_read(job->r->door->config.store, use_body, job, &job->r->err));
	if (name.len >= sizeof(c->keyspace))
		return request_fail(job->r, CQL_CODE_INVALID, "Keyspace '%.*s' does not exist",
				    STR_ARG(name));
	memcpy(c->keyspace, name.ptr, name.len);
	c->keyspace[name.len] = '\0';
	frame_put_i32(job->r->out, RESULT_KEYSPACE);
	frame_put_short(job->r->out, name);
	return STATUS_OK;
}

/* ---- Statements ---- */

static enum cql_batch_kind
kind_of_batch(enum batch_type type)
{
	switch (type) {
	case BATCH_LOGGED:
		return CQL_BATCH_LOGGED;
	case BATCH_UNLOGGED:
		return CQL_BATCH_UNLOGGED;
	case BATCH_COUNTER:
		break;
	}
	return CQL_BATCH_COUNTER;
}

/* True if it is several statements in one text. */
static bool
has_items(const struct cql_statement *s)
{
	return s->kind == CQL_BATCH || s->kind == CQL_TRANSACTION;
}

/* The statements of a BATCH or a transaction in one text. */
static enum status
items_of(struct job *job)
{
	const struct cql_batch *b = &job->statement->batch;
	struct batch_item *items = arena_alloc(job->r->arena, (b->count + 1) * sizeof(*items));

	if (!items)
		return STATUS_LIMIT;
	for (size_t i = 0; i < b->count; i++)
		items[i] = (struct batch_item){
			.statement = b->statements[i],
			.outer = job->statement,
			.keyspace = job->keyspace,
			.values = job->params ? job->params->values : NULL,
			.value_count = job->params ? job->params->value_count : 0,
		};
	job->items = items;
	job->item_count = b->count;
	job->batch_kind = b->kind;
	job->mark = arena_mark(job->r->arena);
	return STATUS_OK;
}

static enum status
fail_unsupported(struct job *job, const char *what)
{
	return request_fail(job->r, CQL_CODE_INVALID, "%s is not supported", what);
}

static enum status
refuse(struct job *job)
{
	switch ((int)job->statement->kind) {
	case CQL_TRANSACTION_BEGIN:
	case CQL_TRANSACTION_END:
		return request_fail(job->r, CQL_CODE_INVALID,
				    "a transaction is one request: its beginning, its statements "
				    "and its end stand in one text, or in one batch");
	case CQL_REFUSED:
		return request_fail(job->r, CQL_CODE_INVALID, "%.*s is not supported",
				    STR_ARG(job->statement->refused));
	default:
		return fail_unsupported(job, "this statement");
	}
}

/*
 * Builds a part of a new index, so that the one of a small table is ready when the statement is
 * answered. The index is there in any case: what fails or is left is the background's.
 */
static void
build_index(struct job *job)
{
	struct err ignored = { 0 };

	(void)!table_index_build(job->r->door->config.store, job->outcome.table, job->outcome.index,
				 INDEX_STEPS, &ignored);
}

static enum status
history_body(struct kv_tx *tx, void *arg)
{
	struct job *job = arg;
	struct err ignored;

	return ddl_begin_history(tx, job->outcome.history_of, &ignored);
}

static enum status
run_ddl(struct job *job)
{
	struct cql_request *r = job->r;
	struct err ignored;

	r->op->ends = OPS_LASTS;
	TRY(kv_run(r->door->config.store, ddl_body, job, NULL, &r->err));
	/* Where this fails, the next turn of the sweep begins the past of the table. */
	if (job->outcome.history_of.len)
		(void)!kv_run(r->door->config.store, history_body, job, NULL, &ignored);
	if (job->outcome.index)
		build_index(job);
	if (job->outcome.changed)
		cql_news_committed(r->door, &job->outcome.change);
	return STATUS_OK;
}

static enum status
run_statement(struct job *job)
{
	struct cql_request *r = job->r;
	struct kv_store *store = r->door->config.store;

	r->class = class_of(job->statement);
	switch ((int)job->statement->kind) {
	case CQL_USE:
		return run_use(job);
	case CQL_SELECT:
		return read_data(job);
	case CQL_INSERT:
	case CQL_UPDATE:
	case CQL_DELETE:
		return run_change(job);
	case CQL_BATCH:
	case CQL_TRANSACTION:
		r->more.write = ERROR_WRITE_BATCH;
		TRY(items_of(job));
		return job_write(job, batch_body, NULL);
	case CQL_DESCRIBE:
		return kv_run_read(store, describe_body, job, &r->err);
	default:
		if (role_is(job->statement))
			return role_run(r, job->statement, job->keyspace);
		return ddl_is(job->statement) ? run_ddl(job) : refuse(job);
	}
}

/* Where names lie that say no keyspace. USE may change that of the client before this is done. */
static enum status
keyspace_of(const struct cql_request *r, struct str said, struct str *ret)
{
	*ret = said;
	return said.len ? STATUS_OK : arena_copy(r->arena, str_from_cstr(r->client->keyspace), ret);
}

enum status
run_query(struct cql_request *r, struct str text, const struct params *p)
{
	struct cql_statement *statement;
	struct str keyspace;
	struct job job;

	TRY(keyspace_of(r, p->keyspace, &keyspace));
	TRY(cql_parse(&r->q, text, &statement));
	trace_statement(r, statement, text);
	trace_note(r->trace, "Parsed");
	job_init(&job, r, statement, keyspace, p);
	return run_statement(&job);
}

/*
 * Before prepared statements are given back: copies what the request tells of them and borrows from
 * them. Without memory it tells nothing.
 */
static void
keep_told(struct cql_request *r)
{
	struct str *const told[] = { &r->keyspace, &r->table, &r->more.keyspace, &r->more.table };

	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		*told[i] = arena_dup(r->arena, *told[i]);
		if (!told[i]->ptr)
			*told[i] = STR("");
	}
}

/* ---- PREPARE ---- */

/* The numbers of the markers that are the partition key; none where not all of it is markers. */
static size_t
partition_markers(const struct run *run, const struct where *w, struct cql_expr *const *key,
		  unsigned *ret)
{
	const struct schema_table *t = run->table;

	for (size_t i = 0; i < t->partition_count; i++) {
		bool found = key && key[i] && cql_expr_is_marker(key[i], &ret[i]);

		for (size_t j = 0; w && j < w->count && !found; j++)
			found = where_term_is(&w->terms[j], &t->columns[i]) &&
				w->terms[j].relation->op == CQL_OP_EQ &&
				cql_expr_is_marker(w->terms[j].exprs[0], &ret[i]);
		if (!found)
			return 0;
	}
	return t->partition_count;
}

/* True if the statement names a collection of which each element is a pair: there may be many. */
static bool
reads_elements(const struct run *run)
{
	const struct schema_table *t = run->table;

	for (size_t i = t->key_count; i < t->count; i++) {
		enum table_storage storage = t->columns[i].stored->storage;

		if (run->named[i] && storage != TABLE_SINGLE && storage != TABLE_COUNTER)
			return true;
	}
	return false;
}

/* True of a SELECT of one row, or none, by its whole key and by nothing else. */
static bool
reads_row(const struct select *s)
{
	const struct schema_table *t = s->run->table;
	bool by_key = s->where.count == t->key_count && !t->system && !s->groups && !s->as_of &&
		      !s->order_count && !s->s->distinct && !reads_elements(s->run);

	for (size_t i = 0; i < t->key_count && by_key; i++) {
		bool found = false;

		for (size_t j = 0; j < s->where.count && !found; j++)
			found = where_term_is(&s->where.terms[j], &t->columns[i]) &&
				s->where.terms[j].column_count == 1 &&
				s->where.terms[j].relation->op == CQL_OP_EQ;
		by_key = found;
	}
	return by_key;
}

/* Compiles it, to keep that, and for the types of its markers and its result. */
static enum status
describe_data(struct job *job, struct run *run, struct prepared *p)
{
	struct cql_request *r = job->r;
	unsigned *partition = arena_alloc(r->arena,
					  (run->table->partition_count + 1) * sizeof(*partition));
	struct str id = str_of(p->id, sizeof(p->id));
	const struct compiled *c;
	struct select s;
	struct modify m;
	size_t count;
	enum status status;

	if (!partition)
		return STATUS_LIMIT;
	p->hash = schema_table_hash(run->table);
	p->compiled = c = compiled_new(run, p->arena);
	if (c)
		TRY(run_take_compiled(run, c));
	if (job->statement->kind == CQL_SELECT) {
		status = select_begin(&s, run);
		if (status == STATUS_OK) {
			count = partition_markers(run, &s.where, NULL, partition);
			p->reads_row = c && reads_row(&s);
			metadata_put_prepared(r->out, r->header.version, id, run, partition, count,
					      &s.result);
		}
		select_release(&s);
		return status;
	}
	TRY(modify_begin(&m, run));
	count = partition_markers(run, &m.where, m.key, partition);
	TRY(prepared_set_partition(p, partition, count));
	metadata_put_prepared(r->out, r->header.version, id, run, partition, count, NULL);
	return STATUS_OK;
}

static enum status
prepare_in(struct job *job, struct run *run, struct prepared *p)
{
	struct str id = str_of(p->id, sizeof(p->id));
	enum status status;

	if (table_of(job->statement)) {
		TRY(run_open_table(run, table_of(job->statement)));
		status = allow_table(run);
		if (status == STATUS_OK)
			status = describe_data(job, run, p);
		run_close_table(run);
		return status;
	}
	if (has_items(job->statement))
		TRY(batch_describe(run, job->batch_kind, job->items, job->item_count));
	metadata_put_prepared(job->r->out, job->r->header.version, id, run, NULL, 0, NULL);
	return STATUS_OK;
}

struct preparing {
	struct job job;
	struct prepared *prepared;
	struct arena_mark mark; /* in its arena: what an attempt keeps goes with the next one */
};

static enum status
prepare_body(struct kv_tx *tx, void *arg)
{
	struct preparing *p = arg;
	struct run run;

	job_restart(&p->job);
	p->prepared->compiled = NULL;
	p->prepared->reads_row = false;
	p->prepared->partition_count = 0;
	arena_reset(p->prepared->arena, p->mark);
	TRY(run_begin(&run, p->job.r, tx, p->job.statement, NULL, p->job.keyspace));
	run.describes = true;
	return prepare_in(&p->job, &run, p->prepared);
}

enum status
run_prepare(struct cql_request *r, struct str text, struct str keyspace)
{
	struct preparing p = { .prepared = NULL };
	enum status status;

	TRY(keyspace_of(r, keyspace, &keyspace));
	TRY(prepared_new(r, keyspace, text, &p.prepared));
	p.mark = arena_mark(p.prepared->arena);
	trace_statement(r, p.prepared->statement, text);
	job_init(&p.job, r, p.prepared->statement, p.prepared->keyspace, NULL);
	status = has_items(p.prepared->statement) ? items_of(&p.job) : STATUS_OK;
	if (status == STATUS_OK)
		status = kv_run_read(r->door->config.store, prepare_body, &p, &r->err);
	if (status == STATUS_OK)
		status = prepared_keep(r->door, p.prepared);
	keep_told(r);
	prepared_unref(p.prepared);
	return status;
}

/* ---- EXECUTE, BATCH ---- */

static enum status
fail_unprepared(struct cql_request *r, struct str id)
{
	AUTO(buf_release) struct buf hex = BUF_SHORT(4 * PREPARED_ID_BYTES);

	buf_append_hex(&hex, str_of(id.ptr, id.len < 2 * (size_t)PREPARED_ID_BYTES
						    ? id.len
						    : 2 * (size_t)PREPARED_ID_BYTES));
	r->more.id = id;
	return request_fail(
		r, CQL_CODE_UNPREPARED,
		"Prepared query with ID %.*s not found (either the query was not "
		"prepared on this host (maybe the host has been restarted?) or you have "
		"prepared too many queries and it has been evicted from the internal "
		"cache)",
		STR_ARG(buf_str(&hex)));
}

/* After a statement has run: gives up the references to prepared statements. */
static enum status
run_end(struct cql_request *r, struct prepared **prepared, size_t count, enum status status)
{
	keep_told(r);
	for (size_t i = 0; i < count; i++)
		prepared_unref(prepared[i]);
	return status;
}

enum status
run_execute(struct cql_request *r, struct str id, const struct params *p)
{
	struct prepared *prepared = joint_prepared(r->joint, id);
	struct job job;

	if (!prepared)
		prepared = prepared_find(r->door, id);
	if (!prepared)
		return fail_unprepared(r, id);
	trace_statement(r, prepared->statement, prepared->text);
	job_init(&job, r, prepared->statement, prepared->keyspace, p);
	job.prepared = prepared;
	job.compiled = prepared->compiled;
	job.id = id;
	return run_end(r, &prepared, 1, run_statement(&job));
}

/* A batch of the protocol: texts and prepared statements. */
struct batch_job {
	struct job job;
	struct prepared **prepared; /* references */
	struct batch_item *items;
	size_t count;
	size_t item_count; /* of them, without what begins and ends a transaction */
};

static enum status
batch_add(struct batch_job *b, const struct batch_statement *s, struct str keyspace)
{
	struct cql_request *r = b->job.r;
	struct batch_item *item = &b->items[b->count];
	struct cql_statement *statement;

	b->prepared[b->count] = NULL;
	*item = (struct batch_item){ .keyspace = keyspace,
				     .values = s->values,
				     .value_count = s->value_count };
	if (s->is_prepared) {
		struct prepared *p = prepared_find(r->door, s->text);

		if (!p)
			return fail_unprepared(r, s->text);
		b->prepared[b->count] = p;
		item->statement = p->statement;
		item->keyspace = p->keyspace;
		item->prepared = p;
		item->id = s->text;
	} else {
		TRY(cql_parse(&r->q, s->text, &statement));
		item->statement = statement;
	}
	b->count++;
	return STATUS_OK;
}

static enum status
batch_fill(struct batch_job *b, const struct batch *batch)
{
	struct arena *arena = b->job.r->arena;
	struct str keyspace;

	TRY(keyspace_of(b->job.r, batch->params.keyspace, &keyspace));
	b->items = arena_alloc(arena, (batch->count + 1) * sizeof(*b->items));
	b->prepared = arena_alloc(arena, (batch->count + 1) * sizeof(struct prepared *));
	if (!b->items || !b->prepared)
		return STATUS_LIMIT;
	for (size_t i = 0; i < batch->count; i++)
		TRY(batch_add(b, &batch->statements[i], keyspace));
	return STATUS_OK;
}

/*
 * A transaction in a batch: its first statement begins it and its last one ends it. What is
 * between them is left. `*ret`: the batch is one.
 */
static enum status
batch_take_transaction(struct batch_job *b, bool *ret)
{
	size_t count = b->count;

	*ret = count && b->items[0].statement->kind == CQL_TRANSACTION_BEGIN;
	if (!*ret)
		return STATUS_OK;
	if (b->items[count - 1].statement->kind != CQL_TRANSACTION_END)
		return request_fail(b->job.r, CQL_CODE_INVALID,
				    "the last statement of a batch that begins a transaction has "
				    "to end it");
	b->items++;
	b->item_count = count - 2;
	return STATUS_OK;
}

enum status
run_batch(struct cql_request *r, const struct batch *batch)
{
	struct batch_job b = { .count = 0 };
	bool transaction = false;
	enum status status;

	job_init(&b.job, r, NULL, STR(""), &batch->params);
	trace_set_text(r->trace, STR("BATCH"));
	status = batch_fill(&b, batch);
	trace_note(r->trace, "A batch of %zu statements", b.count);
	if (status == STATUS_OK) {
		b.item_count = b.count;
		status = batch_take_transaction(&b, &transaction);
	}
	if (status == STATUS_OK) {
		b.job.items = b.items;
		b.job.item_count = b.item_count;
		b.job.batch_kind = transaction ? CQL_BATCH_TRANSACTION : kind_of_batch(batch->type);
		b.job.mark = arena_mark(r->arena);
		status = job_write(&b.job, batch_body, NULL);
	}
	return run_end(r, b.prepared, b.count, status);
}
