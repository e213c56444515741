/*
 * Writes. What a statement writes is kept and sent in few requests: when it is much, when another
 * query of the backend reads the table, and when the statement ends. So a statement does not see
 * its own rows, as PostgreSQL has it, and a duplicate key may be told at its end.
 */
#include "frond_pg.h"
#include "frond_computed.h"
#include "frond_lock.h"
#include "frond_own.h"
#include "frond_written.h"

#include "access/sysattr.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "executor/executor.h"
#include "foreign/fdwapi.h"
#include "funcapi.h"
#include "lib/ilist.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "optimizer/appendinfo.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "storage/itemptr.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

enum {
	SEND_BYTES = 256 * 1024, /* of rows that are kept, where the statement does not read them */
	BATCH_ROWS = 1000,       /* of an INSERT that asks of each row whether it was there */
	VALUE_BYTES = 8,         /* about: of a value in a request, beside its own bytes */
	KEPT_BYTES = 16 * 1024 * 1024, /* of rows otherwise: more than a transaction may have */
	LATER_BYTES = 4096,            /* of rows that go with the next request */
	CELL_BYTES = 128, /* about: of what the store keeps of a column of a row beside its value */
	ROW_BITS = 16,    /* of a hidden key, which a ctid has as its offset */
	ROWS_FIRST = 64,
	TOUCHED_FIRST = 1024,
};

struct kept {
	enum frows_op op;
	struct frows_value *key, *values;
	size_t bytes;
	const struct frows_value *all; /* the row as it becomes, by attnum - 1; NULL: not known */
};

/* Rows that are kept, or were sent and are not answered yet. */
struct batch {
	MemoryContext memory; /* theirs */
	struct kept *rows;
	int count, room;
	size_t bytes;
};

struct modify {
	dlist_node open; /* of those that are open, while `is_open` */
	bool is_open;
	MemoryContextCallback gone;
	const struct frond_table *table;
	Relation rel;
	Oid user;
	EState *estate;
	int level; /* of the subtransaction that it began in */

	AttrNumber junk[FROWS_KEY_COLUMNS]; /* where the old key stands in the plan's rows */
	AttrNumber whole_row;
	ModifyTableState *conflict; /* ON CONFLICT DO UPDATE */
	bool asks;                  /* ON CONFLICT DO NOTHING: each row's answer is waited for */
	bool skips_key;             /* … and one whose key is there is none */
	const struct frond_index *arbiter; /* of ON CONFLICT; NULL: the key */
	const struct frond_index **looked; /* unique indexes that DO NOTHING looks at */
	ExprState **predicates;            /* of these */
	int looked_count;
	Oid deferred; /* a constraint that ON CONFLICT would look at, and which is deferrable */
	struct frond_computing *computing; /* NULL: nothing is computed of rows */
	uint32 mark;                       /* frond_own_mark() when the statement began to read */
	bool reads_it;    /* the statement reads the table: nothing is sent before it ends */
	bool key_changes; /* an UPDATE sets columns of the key */
	int *attnums;     /* of the columns that are written */
	uint32 *columns;
	int column_count;
	HTAB *touched; /* rows that a join may bring twice */
	/* Rows may go to which others refer, which is known when the statement ends: before that
	 * nothing is committed. */
	bool ends_whole;

	struct batch kept, sent;
};

struct touched {
	uint64 a, b;
};

static dlist_head open_writes = DLIST_STATIC_INIT(open_writes);
static Oid writer; /* of what was written last */

Oid
frond_modify_writer(void)
{
	return writer;
}

/* ---- Plans ---- */

const char *
frond_modify_key_name(int key)
{
	static char name[] = "frond_key00";
	const size_t digits = sizeof(name) - 3;

	/* Each UPDATE and DELETE asks twice, and psprintf() takes 500 instructions. */
	StaticAssertStmt(FROWS_KEY_COLUMNS <= 100, "a name has two digits");
	name[digits] = (char)('0' + key / 10);
	name[digits + 1] = (char)('0' + key % 10);
	return name;
}

void
frond_modify_targets(PlannerInfo *root, Index rti, RangeTblEntry *rte, Relation rel)
{
	const struct frond_table *t = frond_table_get(RelationGetRelid(rel), frond_user_of(rte));

	for (int i = 0; i < t->key_count; i++) {
		AttrNumber attnum = t->key[i].attnum;
		Var *var;

		if (attnum) {
			Form_pg_attribute a = TupleDescAttr(RelationGetDescr(rel), attnum - 1);

			var = makeVar(rti, attnum, a->atttypid, a->atttypmod, a->attcollation, 0);
		} else {
			var = makeVar(rti, SelfItemPointerAttributeNumber, TIDOID, -1, InvalidOid,
				      0);
		}
		add_row_identity_var(root, var, rti, frond_modify_key_name(i));
	}
	/* RETURNING of a deletion has all columns. */
	if (root->parse->commandType == CMD_DELETE && root->parse->returningList)
		add_row_identity_var(root, makeWholeRowVar(rte, rti, 0, false), rti, "wholerow");
}

/* What the plan has: the action of ON CONFLICT, and its target, if it has one. */
List *
frond_modify_plan(PlannerInfo *root, ModifyTable *plan, Index rti, int subplan)
{
	List *private = list_make1_int(plan->onConflictAction);
	uint32 target;

	if (root && root->parse->onConflict &&
	    frond_conflict_target(root->parse->onConflict, &target))
	private = lappend_int(private, (int)target);
	return private;
}

/* ---- Beginning ---- */

static bool
estate_reads(EState *estate, Oid relid)
{
	ListCell *cell;
	int times = 0;

	foreach (cell, estate->es_range_table) {
		const RangeTblEntry *rte = lfirst(cell);

		times += rte->rtekind == RTE_RELATION && rte->relid == relid;
	}
	return times > 1;
}

/* The columns that are written: none of the key. `some`: those with these numbers; NULL: all. */
static void
columns_init(struct modify *m, const Bitmapset *some)
{
	const struct frond_table *t = m->table;

	m->attnums = palloc((t->natts + t->computed_count + 1) * sizeof(*m->attnums));
	m->columns = palloc((t->natts + t->computed_count + 1) * sizeof(*m->columns));
	for (int i = 1; i <= t->natts + t->computed_count; i++) {
		const struct frond_column *c = &t->columns[i - 1];

		if (!c->is_there || c->is_key ||
		    (some && !bms_is_member(i - FirstLowInvalidHeapAttributeNumber, some)))
			continue;
		m->attnums[m->column_count] = i;
		m->columns[m->column_count++] = c->id;
	}
}

/* An abort frees the executor's memory, this with it, before it says that it aborts. */
static void
modify_unlink(void *arg)
{
	struct modify *m = arg;

	if (m->is_open)
		dlist_delete(&m->open);
	m->is_open = false;
}

static struct modify *
modify_new(EState *estate, ResultRelInfo *rel, Index rti)
{
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);
	struct modify *m = palloc0(sizeof(*m));
	Oid relid = RelationGetRelid(rel->ri_RelationDesc);

	m->rel = rel->ri_RelationDesc;
	m->user = rti ? frond_user_of(exec_rt_fetch(rti, estate)) : GetUserId();
	writer = m->user;
	m->table = frond_table_get(relid, m->user);
	if (m->table->is_computed_elsewhere)
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("rows of \"%s\" cannot be written here: it has an index that "
			       "another PostgreSQL computes",
			       RelationGetRelationName(m->rel)));
	if (m->table->computed_count)
		m->computing = frond_computing_new(m->table, estate);
	m->estate = estate;
	m->level = GetCurrentTransactionNestLevel();
	m->reads_it = estate_reads(estate, relid);
	m->kept.memory = AllocSetContextCreate(estate->es_query_cxt, "rows for frond",
					       ALLOCSET_DEFAULT_SIZES);
	m->sent.memory = AllocSetContextCreate(estate->es_query_cxt, "rows sent to frond",
					       ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(old);
	frond_modify_flush(relid, estate);
	m->mark = frond_own_mark();
	dlist_push_head(&open_writes, &m->open);
	m->is_open = true;
	m->gone = (MemoryContextCallback){ .func = modify_unlink, .arg = m };
	MemoryContextRegisterResetCallback(estate->es_query_cxt, &m->gone);
	rel->ri_FdwState = m;
	return m;
}

static void
touched_init(struct modify *m)
{
	HASHCTL how = { .keysize = sizeof(struct touched), .entrysize = sizeof(struct touched) };

	how.hcxt = m->estate->es_query_cxt;
	m->touched = hash_create("rows of frond's that were changed", TOUCHED_FIRST, &how,
				 HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

static bool
has_users_triggers(const TriggerDesc *triggers)
{
	for (int i = 0; triggers && i < triggers->numtriggers; i++)
		if (!triggers->triggers[i].tgisinternal)
			return true;
	return false;
}

/* PostgreSQL takes the row for a new one, and asks nobody whether the old one may go. */
static void
check_conflict_sets(const struct modify *m, ResultRelInfo *rel)
{
	Bitmapset *referenced = frond_referenced_columns(rel->ri_TrigDesc);
	int at = -1;

	while ((at = bms_next_member(referenced, at)) >= 0)
		if (bms_is_member(at - FirstLowInvalidHeapAttributeNumber,
				  ExecGetUpdatedCols(rel, m->estate)))
			ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("ON CONFLICT DO UPDATE cannot set columns in frond to which "
				       "a foreign key refers"));
}

static void
conflict_init(struct modify *m, ModifyTableState *state, ResultRelInfo *rel)
{
	check_conflict_sets(m, rel);
	if (has_users_triggers(rel->ri_TrigDesc))
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("ON CONFLICT DO UPDATE is not supported on tables in frond that "
			       "have triggers"));
	if (m->table->has_hidden_key && !m->arbiter && !OidIsValid(m->deferred))
		ereport(ERROR, errcode(ERRCODE_INVALID_COLUMN_REFERENCE),
			errmsg("there is no primary key for ON CONFLICT DO UPDATE"));
	m->conflict = state;
	m->reads_it = true;
	touched_init(m);
}

static void
look_at(struct modify *m, const struct frond_index *index)
{
	m->looked[m->looked_count] = index;
	m->predicates[m->looked_count++] = ExecPrepareQual(index->predicate, m->estate);
}

/* The key and all unique indexes: where ON CONFLICT DO NOTHING has no target. */
static void
look_at_all(struct modify *m)
{
	const struct frond_table *t = m->table;

	m->skips_key = true;
	for (int i = 0; i < t->index_count; i++)
		if (t->indexes[i].is_unique && t->indexes[i].is_usable)
			look_at(m, &t->indexes[i]);
	for (int i = 0; i < t->reference_count; i++)
		if (t->references[i].is_unique)
			m->deferred = t->references[i].constraint;
}

/* What ON CONFLICT looks at. */
static void
target_init(struct modify *m, List *private)
{
	const struct frond_table *t = m->table;
	uint32 target;

	m->looked = palloc((t->index_count + 1) * sizeof(*m->looked));
	m->predicates = palloc((t->index_count + 1) * sizeof(*m->predicates));
	if (list_length(private) == 1) {
		look_at_all(m);
		return;
	}
	target = (uint32)lsecond_int(private);
	if (target >= FROND_TARGET_DEFERRED) {
		m->deferred = t->references[target - FROND_TARGET_DEFERRED].constraint;
		return;
	}
	if (target == FROND_TARGET_KEY) {
		m->skips_key = m->asks;
		return;
	}
	m->arbiter = frond_index_numbered(t, target);
	if (!m->arbiter || !m->arbiter->is_usable)
		ereport(ERROR, errcode(ERRCODE_INVALID_COLUMN_REFERENCE),
			errmsg("there is no unique or exclusion constraint matching the ON "
			       "CONFLICT specification"));
	look_at(m, m->arbiter);
}

static void
check_deferred(const struct modify *m)
{
	if (OidIsValid(m->deferred))
		ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("ON CONFLICT does not support deferrable unique "
			       "constraints/exclusion constraints as arbiters"),
			errtableconstraint(m->rel, get_constraint_name(m->deferred)));
}

/* The value of a column of a row, or of what an index computes of it: in memory that is that of the
 * row, or the current context's. */
static struct frows_value
slot_value(const struct modify *m, TupleTableSlot *slot, AttrNumber attnum)
{
	bool is_null;
	Datum d;

	if (frond_computed_of(m->table, attnum))
		return frond_computing_value(m->computing, attnum, slot);
	d = slot_getattr(slot, attnum, &is_null);
	return is_null ? (struct frows_value){ NULL, FROWS_NULL }
		       : frond_value_put(&m->table->columns[attnum - 1], d);
}

/* The values of a row in an index. False: it has no entry there, or one that is like no other. */
static bool
index_values(struct modify *m, int looked, TupleTableSlot *slot, struct frows_value *ret)
{
	ExprContext *context = GetPerTupleExprContext(m->estate);
	const struct frond_index *index = m->looked[looked];

	context->ecxt_scantuple = slot;
	if (!ExecQual(m->predicates[looked], context))
		return false;
	for (int i = 0; i < index->count; i++) {
		ret[i] = slot_value(m, slot, index->columns[i].attnum);
		if (ret[i].len < 0)
			return false;
	}
	return true;
}

/* Whether a row has the values of this one in a unique index that DO NOTHING looks at. */
static bool
is_taken(struct modify *m, TupleTableSlot *slot)
{
	struct frows_value values[FROWS_KEY_COLUMNS], key[FROWS_KEY_COLUMNS];

	for (int i = 0; i < m->looked_count; i++)
		if (index_values(m, i, slot, values) &&
		    frond_conflict_find(m->table, m->user, m->looked[i], values, key))
			return true;
	return false;
}

static void
junk_find(struct modify *m, ModifyTableState *state)
{
	List *targets = outerPlanState(state)->plan->targetlist;

	for (int i = 0; i < m->table->key_count; i++) {
		m->junk[i] = ExecFindJunkAttributeInTlist(targets, frond_modify_key_name(i));
		if (!AttributeNumberIsValid(m->junk[i]))
			elog(ERROR, "the plan has no %s", frond_modify_key_name(i));
	}
	m->whole_row = ExecFindJunkAttributeInTlist(targets, "wholerow");
	if (list_length(m->estate->es_range_table) > 1)
		touched_init(m);
}

/* With these columns if one of them is set; `set`: NULL: whatever is. */
static Bitmapset *
with_columns(Bitmapset *all, const Bitmapset *set, const AttrNumber *columns, int count)
{
	Bitmapset *some = NULL;

	for (int i = 0; i < count; i++)
		some = bms_add_member(some, columns[i] - FirstLowInvalidHeapAttributeNumber);
	return !set || bms_overlap(some, set) ? bms_union(all, some) : all;
}

/* With all columns of a unique index, or of a foreign key, of which some are set: a violation is
 * told by its values. */
static Bitmapset *
with_whole_keys(const struct frond_table *t, Bitmapset *set)
{
	Bitmapset *all = set;

	for (int i = 0; i < t->index_count; i++) {
		const struct frond_index *index = &t->indexes[i];
		AttrNumber columns[FROWS_KEY_COLUMNS];

		Bitmapset *chosen = NULL;

		for (int j = 0; j < index->count; j++)
			columns[j] = index->columns[j].attnum;
		/* Its condition may hold now. */
		pull_varattnos((Node *)index->predicate, 1, &chosen);
		all = with_columns(all, bms_overlap(chosen, set) ? NULL : set, columns,
				   index->is_unique ? index->count : 0);
	}
	for (int i = 0; i < t->reference_count; i++)
		all = with_columns(all, set, t->references[i].own, t->references[i].count);
	return all;
}

/* With what is computed of columns that are set. */
static Bitmapset *
with_computed(const struct frond_table *t, Bitmapset *set, int computed)
{
	AttrNumber attnum = (AttrNumber)(t->natts + computed + 1);
	int at = -1;

	while ((at = bms_next_member(t->computed[computed].used, at)) >= 0)
		if (bms_is_member(at - FirstLowInvalidHeapAttributeNumber, set))
			return bms_add_member(set, attnum - FirstLowInvalidHeapAttributeNumber);
	return set;
}

/* What an UPDATE writes; triggers may set what they like. */
static void
columns_init_update(struct modify *m, ResultRelInfo *rel)
{
	Bitmapset *set = bms_union(ExecGetUpdatedCols(rel, m->estate),
				   ExecGetExtraUpdatedCols(rel, m->estate));
	bool all = rel->ri_TrigDesc && rel->ri_TrigDesc->trig_update_before_row;

	m->key_changes = all;
	for (int i = 0; i < m->table->key_count; i++)
		if (bms_is_member(m->table->key[i].attnum - FirstLowInvalidHeapAttributeNumber,
				  set))
			m->key_changes = true;
	for (int i = 0; i < m->table->computed_count; i++)
		set = with_computed(m->table, set, i);
	if (!m->key_changes)
		set = with_whole_keys(m->table, set);
	columns_init(m, m->key_changes ? NULL : set);
}

void
frond_modify_begin(ModifyTableState *state, ResultRelInfo *rel, List *private, int subplan,
		   int eflags)
{
	EState *estate = state->ps.state;
	MemoryContext old;
	struct modify *m;

	if (eflags & EXEC_FLAG_EXPLAIN_ONLY)
		return;
	m = modify_new(estate, rel, rel->ri_RangeTableIndex);
	old = MemoryContextSwitchTo(estate->es_query_cxt);
	if (state->operation == CMD_INSERT) {
		m->asks = linitial_int(private) == ONCONFLICT_NOTHING;
		if (linitial_int(private) != ONCONFLICT_NONE)
			target_init(m, private);
		if (linitial_int(private) == ONCONFLICT_UPDATE)
			conflict_init(m, state, rel);
		columns_init(m, NULL);
	} else {
		m->reads_it = true;
		junk_find(m, state);
		m->ends_whole = rel->ri_TrigDesc && (rel->ri_TrigDesc->trig_delete_after_row ||
						     rel->ri_TrigDesc->trig_update_after_row);
		if (state->operation == CMD_UPDATE)
			columns_init_update(m, rel);
	}
	MemoryContextSwitchTo(old);
}

void
frond_modify_begin_insert(ModifyTableState *state, ResultRelInfo *rel)
{
	struct modify *m = modify_new(state->ps.state, rel, rel->ri_RangeTableIndex);
	MemoryContext old = MemoryContextSwitchTo(m->estate->es_query_cxt);

	columns_init(m, NULL);
	MemoryContextSwitchTo(old);
}

/* ---- Sending ---- */

/* `row`: NULL if it is not known. */
static struct frond_written
written_of(const struct modify *m, const struct kept *row)
{
	return (struct frond_written){
		.rel = m->rel,
		.table = m->table,
		.attnums = m->attnums,
		.count = m->column_count,
		.key = row ? row->key : NULL,
		.values = row ? row->values : NULL,
	};
}

/* `first`: the first row of the request that has failed. */
static void
fail_write(const struct modify *m, const struct batch *b, struct frows *c, int first)
{
	int at = first + frows_failure(c)->row;
	struct frond_written written = written_of(m, at >= first && at < b->count ? &b->rows[at]
										  : NULL);

	frond_fail_write(c, &written);
}

static void
batch_forget(struct batch *b)
{
	MemoryContextReset(b->memory);
	*b = (struct batch){ .memory = b->memory };
}

/* Makes a request of rows from `first` on, as many as it takes. Returns the row behind them. */
static int
request_make(const struct modify *m, struct frows *c, int first)
{
	const struct frows_of of = frond_table_of(m->table);
	int i = first;

	frows_write(c, &of, m->columns, m->column_count);
	for (; i < m->kept.count; i++) {
		const struct kept *row = &m->kept.rows[i];

		if (i > first && frows_request_bytes(c) + row->bytes > frows_request_most(c))
			break;
		frows_write_row(c, row->op, row->key, m->table->key_count, row->values);
	}
	return i;
}

static void
note_written(const struct modify *m, int first, int end)
{
	/* What the statement itself has called may have written the rows meanwhile. */
	bool is_sure = m->mark == frond_own_mark();
	int added = 0;

	for (int i = first; i < end; i++) {
		const struct kept *row = &m->kept.rows[i];

		added += row->op == FROWS_DELETE ? -1 : row->op != FROWS_UPDATE;
		if (row->all && is_sure)
			frond_own_note(m->table, m->user, row->key, row->all);
		else
			frond_own_forget(m->table->relid);
	}
	frond_table_wrote(m->table, end - first, added);
}

/* Waits for what was sent. */
static void
sent_wait(struct modify *m)
{
	struct frows *c;

	if (!m->sent.count)
		return;
	c = frond_link_inside(m->table->server, m->user, true);
	if (!frows_write_wait(c))
		fail_write(m, &m->sent, c, 0);
	batch_forget(&m->sent);
}

/*
 * Whether nothing is to be heard of the rows: no other row can be in their way, and what they need
 * is little. Then they go with the transaction's next request, which fails if they do.
 */
static bool
can_go_later(const struct modify *m)
{
	if (m->asks || frond_bulk_load || m->kept.bytes > LATER_BYTES)
		return false;
	for (int i = 0; i < m->table->index_count; i++)
		if (m->table->indexes[i].is_unique)
			return false;
	for (int i = 0; i < m->kept.count; i++)
		if (m->kept.rows[i].op != FROWS_UPDATE && m->kept.rows[i].op != FROWS_PUT &&
		    m->kept.rows[i].op != FROWS_DELETE)
			return false;
	return true;
}

/*
 * Sends rows from `first` on, and waits for the answer, if anything is to be heard. Returns the row
 * behind them.
 */
static int
send_some(struct modify *m, struct frows *c, int first)
{
	int end = request_make(m, c, first);

	if (!(can_go_later(m) ? frows_write_later(c) : frows_write_run(c)))
		fail_write(m, &m->kept, c, first);
	note_written(m, first, end);
	return end;
}

static void
rows_send_each(struct modify *m)
{
	sent_wait(m);
	for (int i = 0; i < m->kept.count;)
		i = send_some(m, frond_link_inside(m->table->server, m->user, true), i);
	batch_forget(&m->kept);
}

/* The same for one request, which is answered while others are kept. False: it takes several. */
static bool
rows_send_ahead(struct modify *m)
{
	struct frows *c = frond_link_inside(m->table->server, m->user, true);
	struct batch answered;

	if (request_make(m, c, 0) < m->kept.count)
		return false;
	if (!frows_write_send(c))
		fail_write(m, &m->sent, c, 0);
	note_written(m, 0, m->kept.count);
	batch_forget(&m->sent);
	answered = m->sent;
	m->sent = m->kept;
	m->kept = answered;
	return true;
}

/* `ends`: with all that was sent, so that it is known what has become of it. */
static void
rows_send(struct modify *m, bool ends)
{
	size_t bytes = m->kept.bytes + (size_t)m->kept.count * (m->column_count + 1) * CELL_BYTES;

	if (!m->kept.count) {
		sent_wait(m);
		return;
	}
	frond_scan_read_all(m->table->relid);
	frond_link_check_built(m->table->relid);
	if (ends || !rows_send_ahead(m))
		rows_send_each(m);
	if (!m->ends_whole)
		frond_link_wrote(m->table->server, m->user, bytes, m->sent.count > 0);
}

/* A STABLE function that a statement calls sees what was there when that began. */
static bool
is_seen(const struct modify *m, const EState *reader)
{
	return m->estate != reader && (!reader || !reader->es_snapshot ||
				       reader->es_snapshot->curcid > m->estate->es_output_cid);
}

void
frond_modify_flush(Oid relid, const EState *reader)
{
	dlist_iter at;

	dlist_foreach(at, &open_writes)
	{
		struct modify *m = dlist_container(struct modify, open, at.cur);

		if (m->table->relid == relid && is_seen(m, reader))
			rows_send(m, true);
	}
}

void
frond_modify_forget(int level)
{
	dlist_mutable_iter at;

	dlist_foreach_modify(at, &open_writes)
	{
		struct modify *m = dlist_container(struct modify, open, at.cur);

		if (m->level >= level)
			modify_unlink(m);
	}
}

/* ---- Keeping ---- */

/* What a row that is written refers to. */
static void
references_note(const struct modify *m, const struct kept *row)
{
	const struct frond_written written = written_of(m, row);
	struct frows_value values[INDEX_MAX_KEYS];

	for (int i = 0; i < m->table->reference_count && row->op != FROWS_DELETE; i++) {
		const struct frond_reference *r = &m->table->references[i];
		int count = 0;

		for (; count < r->count; count++) {
			const struct frows_value *v = frond_written_value(&written, r->own[count]);

			if (!v)
				break;
			values[count] = *v;
		}
		/* An UPDATE that writes none of its columns. */
		if (count == r->count)
			frond_reference_note(m->table, m->user, r, values);
	}
}

/* A row that is kept, whose bytes are the current memory context's, m->kept.memory. */
static void
row_keep(struct modify *m, enum frows_op op, struct frows_value *key, struct frows_value *values)
{
	struct batch *b = &m->kept;
	struct kept *row;

	if (b->count == b->room) {
		b->room = b->room ? 2 * b->room : ROWS_FIRST;
		b->rows = b->rows ? repalloc_huge(b->rows, b->room * sizeof(*b->rows))
				  : palloc(b->room * sizeof(*b->rows));
	}
	row = &b->rows[b->count++];
	*row = (struct kept){ .op = op, .key = key, .values = values, .bytes = VALUE_BYTES };
	for (int i = 0; i < m->table->key_count; i++)
		row->bytes += key[i].len + VALUE_BYTES;
	for (int i = 0; values && i < m->column_count; i++)
		row->bytes += Max(values[i].len, 0) + VALUE_BYTES;
	b->bytes += row->bytes;
	/* With ON CONFLICT DO NOTHING it is not known yet whether the row is written. */
	if (!m->asks)
		references_note(m, row);
}

/* Copies what may be in memory that is shorter lived than the row. */
static struct frows_value
value_keep(const struct frond_column *c, Datum d)
{
	return frond_value_copy(frond_value_put(c, d));
}

static struct frows_value *
slot_values(const struct modify *m, TupleTableSlot *slot)
{
	struct frows_value *values = palloc((m->column_count + 1) * sizeof(*values));

	for (int i = 0; i < m->column_count; i++)
		values[i] = frond_value_copy(slot_value(m, slot, (AttrNumber)m->attnums[i]));
	return values;
}

static struct frows_value
hidden_value(int64 row)
{
	uint8 *bytes = palloc(sizeof(row));

	frows_put_int(bytes, row, sizeof(row));
	return (struct frows_value){ bytes, sizeof(row) };
}

/* The key of a new row; a hidden one is made. */
static struct frows_value *
slot_key(const struct modify *m, TupleTableSlot *slot)
{
	struct frows_value *key = palloc(m->table->key_count * sizeof(*key));

	for (int i = 0; i < m->table->key_count; i++) {
		AttrNumber attnum = m->table->key[i].attnum;
		bool is_null;
		Datum d;

		if (!attnum) {
			key[i] = hidden_value(frond_next_row(m->table->server, m->user));
			continue;
		}
		d = slot_getattr(slot, attnum, &is_null);
		if (is_null)
			ereport(ERROR, errcode(ERRCODE_NOT_NULL_VIOLATION),
				errmsg("null value in a column of the primary key of \"%s\"",
				       RelationGetRelationName(m->rel)));
		key[i] = value_keep(frond_key_column(m->table, i), d);
	}
	return key;
}

/* The key of the row that the plan has found. */
static struct frows_value *
old_key(const struct modify *m, TupleTableSlot *plan_slot)
{
	struct frows_value *key = palloc(m->table->key_count * sizeof(*key));

	for (int i = 0; i < m->table->key_count; i++) {
		bool is_null;
		Datum d = ExecGetJunkAttribute(plan_slot, m->junk[i], &is_null);

		if (is_null)
			elog(ERROR, "a row has no key");
		if (m->table->key[i].attnum) {
			key[i] = value_keep(frond_key_column(m->table, i), d);
		} else {
			ItemPointer tid = (ItemPointer)DatumGetPointer(d);
			int64 row = (int64)ItemPointerGetBlockNumberNoCheck(tid) << ROW_BITS |
				    ItemPointerGetOffsetNumberNoCheck(tid);

			key[i] = hidden_value(row);
		}
	}
	return key;
}

static bool
keys_equal(const struct modify *m, const struct frows_value *a, const struct frows_value *b)
{
	for (int i = 0; i < m->table->key_count; i++)
		if (a[i].len != b[i].len || memcmp(a[i].ptr, b[i].ptr, a[i].len) != 0)
			return false;
	return true;
}

/* True if this statement has met these values already: it changes a row once. */
static bool
is_touched(struct modify *m, const struct frows_value *key, int count)
{
	struct touched hash = { 0, 0 };
	bool found;

	if (!m->touched)
		return false;
	for (int i = 0; i < count; i++) {
		hash.a = hash_bytes_extended(key[i].ptr, key[i].len, hash.a + 1);
		hash.b = hash_bytes_extended(key[i].ptr, key[i].len, ~hash.b);
	}
	(void)hash_search(m->touched, &hash, HASH_ENTER, &found);
	return found;
}

/* Sends what is kept if it is much: later where the statement itself might see it. */
static void
settle(struct modify *m)
{
	if (m->kept.bytes > (m->reads_it && !frond_bulk_load ? KEPT_BYTES : SEND_BYTES))
		rows_send(m, false);
}

static void
check_constraints(ResultRelInfo *rel, TupleTableSlot *slot, EState *estate)
{
	/* PostgreSQL leaves those of foreign tables to whoever has the rows. */
	if (rel->ri_RelationDesc->rd_att->constr)
		ExecConstraints(rel, slot, estate);
}

/* ---- INSERT ---- */

static void
insert_keep(struct modify *m, ResultRelInfo *rel, EState *estate, TupleTableSlot *slot)
{
	enum frows_op op = m->table->has_hidden_key ? FROWS_PUT
			   : m->skips_key           ? FROWS_INSERT_NEW
						    : FROWS_INSERT;
	struct frows_value *key;
	MemoryContext old;

	check_constraints(rel, slot, estate);
	old = MemoryContextSwitchTo(m->kept.memory);
	key = slot_key(m, slot);
	row_keep(m, op, key, slot_values(m, slot));
	MemoryContextSwitchTo(old);
}

/* Sends the rows, and keeps those slots whose rows were new. */
static int
ask(struct modify *m, TupleTableSlot **slots)
{
	struct frows *c;
	int kept = 0, at = 0;
	bool done;

	frond_scan_read_all(m->table->relid);
	c = frond_link_inside(m->table->server, m->user, true);
	while (at < m->kept.count) {
		int first = at;

		at = send_some(m, c, first);
		for (int i = first; frows_write_done(c, &done); i++)
			if (done) {
				references_note(m, &m->kept.rows[i]);
				slots[kept++] = slots[i];
			}
	}
	batch_forget(&m->kept);
	return kept;
}

/* A row that changes: under another key it is another row. */
static void
update_keep(struct modify *m, struct frows_value *was, TupleTableSlot *slot)
{
	struct frows_value *is = m->table->has_hidden_key ? was : slot_key(m, slot);

	if (m->table->has_hidden_key || keys_equal(m, was, is)) {
		row_keep(m, FROWS_UPDATE, was, slot_values(m, slot));
		return;
	}
	row_keep(m, FROWS_DELETE, was, NULL);
	row_keep(m, FROWS_INSERT, is, slot_values(m, slot));
}

/* The key of the row that is in the way of an INSERT … DO UPDATE, copied. False: there is none. */
static bool
conflict_find(struct modify *m, TupleTableSlot *slot, const struct frows_value *key,
	      struct frows_value *ret)
{
	struct frows_value values[FROWS_KEY_COLUMNS];
	int count = m->table->key_count;

	if (!m->arbiter) {
		memcpy(ret, key, count * sizeof(*ret));
		memcpy(values, key, count * sizeof(*values));
	} else {
		count = m->arbiter->count;
		if (!index_values(m, 0, slot, values))
			return false;
	}
	if (is_touched(m, values, count))
		ereport(ERROR, errcode(ERRCODE_CARDINALITY_VIOLATION),
			errmsg("ON CONFLICT DO UPDATE command cannot affect row a second time"),
			errhint("Ensure that no rows proposed for insertion within the same "
				"command "
				"have duplicate constrained values."));
	return !m->arbiter || frond_conflict_find(m->table, m->user, m->arbiter, values, ret);
}

/* ON CONFLICT DO UPDATE: the row is inserted, or the one that is there is changed, or left. */
static TupleTableSlot *
upsert(struct modify *m, ResultRelInfo *rel, TupleTableSlot *slot)
{
	/* PostgreSQL has made it since the beginning. */
	ExprContext *context = m->conflict->ps.ps_ExprContext;
	enum frond_conflict outcome = FROND_CONFLICT_NONE;
	TupleTableSlot *result = slot;
	struct frows_value *key, *there;
	MemoryContext old;

	check_constraints(rel, slot, m->estate);
	old = MemoryContextSwitchTo(m->kept.memory);
	key = slot_key(m, slot);
	there = palloc(m->table->key_count * sizeof(*there));
	/* Where it is known which row may be in the way, it is locked before it is read. */
	if (!m->arbiter)
		frond_lock_wait(m->table, m->user, key, ExclusiveLock);
	if (conflict_find(m, slot, key, there)) {
		if (m->arbiter)
			frond_lock_wait(m->table, m->user, there, ExclusiveLock);
		/* The row that is read, and what SET makes of it, live as long as this row does. */
		MemoryContextSwitchTo(GetPerTupleMemoryContext(m->estate));
		outcome = frond_conflict_update(m->table, m->user, rel, context, there, slot);
		MemoryContextSwitchTo(m->kept.memory);
	}
	switch (outcome) {
	case FROND_CONFLICT_NONE:
		row_keep(m, m->table->has_hidden_key ? FROWS_PUT : FROWS_INSERT, key,
			 slot_values(m, slot));
		break;
	case FROND_CONFLICT_SKIPPED:
		result = NULL;
		break;
	case FROND_CONFLICT_UPDATED:
		result = rel->ri_onConflict->oc_ProjSlot;
		check_constraints(rel, result, m->estate);
		update_keep(m, there, result);
		break;
	}
	MemoryContextSwitchTo(old);
	settle(m);
	return result;
}

TupleTableSlot *
frond_modify_insert(EState *estate, ResultRelInfo *rel, TupleTableSlot *slot,
		    TupleTableSlot *plan_slot)
{
	struct modify *m = rel->ri_FdwState;

	check_deferred(m);
	if (m->conflict)
		return upsert(m, rel, slot);
	if (is_taken(m, slot))
		return NULL;
	insert_keep(m, rel, estate, slot);
	if (m->asks)
		return ask(m, &slot) ? slot : NULL;
	settle(m);
	return slot;
}

TupleTableSlot **
frond_modify_insert_batch(EState *estate, ResultRelInfo *rel, TupleTableSlot **slots,
			  TupleTableSlot **plan_slots, int *count)
{
	struct modify *m = rel->ri_FdwState;
	/* PostgreSQL's own array keeps all of them. */
	TupleTableSlot **kept = palloc(*count * sizeof(*kept));

	check_deferred(m);
	for (int i = 0; i < *count; i++)
		insert_keep(m, rel, estate, kept[i] = slots[i]);
	*count = ask(m, kept);
	return kept;
}

/* More than one only where each row's answer is waited for, and nobody looks at the rows. */
int
frond_modify_batch_size(ResultRelInfo *rel)
{
	const struct modify *m = rel->ri_FdwState;

	if (!m || !m->asks || m->looked_count || rel->ri_projectReturning ||
	    rel->ri_WithCheckOptions || has_users_triggers(rel->ri_TrigDesc))
		return 1;
	return BATCH_ROWS;
}

/* ---- UPDATE, DELETE ---- */

/*
 * Notes with the row that was kept last what all of it becomes. Not of many rows, which nobody asks
 * for one by one, nor where another part of the statement may write the row, too.
 */
static void
row_note_all(struct modify *m, TupleTableSlot *slot)
{
	struct kept *row = &m->kept.rows[m->kept.count - 1];
	struct frows_value *all;

	if (m->touched || m->table->has_hidden_key || frond_bulk_load ||
	    m->kept.count > FROND_OWN_ROWS)
		return;
	all = palloc((m->table->natts + 1) * sizeof(*all));
	for (int i = 0, next = 0; i < m->table->natts; i++) {
		if (next < m->column_count && m->attnums[next] == i + 1)
			all[i] = row->values[next++];
		else if (m->table->columns[i].is_there)
			all[i] = frond_value_copy(slot_value(m, slot, (AttrNumber)(i + 1)));
		else
			all[i] = (struct frows_value){ NULL, FROWS_NULL };
	}
	row->all = all;
}

TupleTableSlot *
frond_modify_update(EState *estate, ResultRelInfo *rel, TupleTableSlot *slot,
		    TupleTableSlot *plan_slot)
{
	struct modify *m = rel->ri_FdwState;
	struct frows_value *was;
	MemoryContext old;

	check_constraints(rel, slot, estate);
	old = MemoryContextSwitchTo(m->kept.memory);
	was = old_key(m, plan_slot);
	if (is_touched(m, was, m->table->key_count)) {
		MemoryContextSwitchTo(old);
		return NULL;
	}
	frond_lock_wait(m->table, m->user, was,
			m->key_changes ? AccessExclusiveLock : ExclusiveLock);
	if (m->key_changes && !m->table->has_hidden_key) {
		update_keep(m, was, slot);
	} else {
		row_keep(m, FROWS_UPDATE, was, slot_values(m, slot));
		row_note_all(m, slot);
	}
	MemoryContextSwitchTo(old);
	settle(m);
	return slot;
}

TupleTableSlot *
frond_modify_delete(EState *estate, ResultRelInfo *rel, TupleTableSlot *slot,
		    TupleTableSlot *plan_slot)
{
	struct modify *m = rel->ri_FdwState;
	MemoryContext old = MemoryContextSwitchTo(m->kept.memory);
	struct frows_value *key = old_key(m, plan_slot);
	bool again = is_touched(m, key, m->table->key_count), is_null;

	if (!again) {
		frond_lock_wait(m->table, m->user, key, AccessExclusiveLock);
		row_keep(m, FROWS_DELETE, key, NULL);
	}
	MemoryContextSwitchTo(old);
	if (again)
		return NULL;
	if (AttributeNumberIsValid(m->whole_row) && rel->ri_projectReturning) {
		Datum row = ExecGetJunkAttribute(plan_slot, m->whole_row, &is_null);
		HeapTupleHeader header = DatumGetHeapTupleHeader(row);
		HeapTupleData tuple;

		tuple.t_len = HeapTupleHeaderGetDatumLength(header);
		ItemPointerSetInvalid(&tuple.t_self);
		tuple.t_tableOid = m->table->relid;
		tuple.t_data = header;
		ExecForceStoreHeapTuple(heap_copytuple(&tuple), slot, true);
	}
	settle(m);
	return slot;
}

void
frond_modify_end(EState *estate, ResultRelInfo *rel)
{
	struct modify *m = rel->ri_FdwState;

	if (!m)
		return;
	rows_send(m, true);
	modify_unlink(m);
	MemoryContextDelete(m->kept.memory);
	MemoryContextDelete(m->sent.memory);
	rel->ri_FdwState = NULL;
}
