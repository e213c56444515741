/*
 * Numbers of SERIAL and identity columns of tables in frond, by blocks from the store: two
 * PostgreSQLs over one frond, or one that was restored, never give the same number.
 *
 * A block is what PostgreSQL's own CACHE is: numbers that a session takes from the sequence at
 * once, to count on by itself. So a session draws a block from a counter in frond, sets the
 * sequence to its beginning and lets PostgreSQL take the block from there; currval() and lastval()
 * are PostgreSQL's. What the sequence gives outside of the block that was drawn is dropped, and the
 * next one drawn.
 *
 * There is no hook in nextval(): the planner's puts frond_nextval() in its place, where a query
 * calls it of a sequence that a column of frond's owns. COPY plans no query, and copy.c does it
 * there.
 */
#include "frond_pg.h"

#include "access/htup_details.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_sequence.h"
#include "catalog/pg_type.h"
#include "commands/sequence.h"
#include "common/int.h"
#include "executor/spi.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/planner.h"
#include "parser/parsetree.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

enum {
	PREFIX_BYTES = 2 * FROWS_ID_BYTES + 16, /* of what a counter's name begins with */
	NAME_BYTES = PREFIX_BYTES + 16,         /* of the name */
	ATTEMPTS = 1000, /* while others take numbers of the sequence between two steps of ours */
};

int frond_sequence_block;

static planner_hook_type next_planner;

/* ---- Which sequences ---- */

struct owner {
	Oid table;
	int32 attnum;
};

/* Whether its numbers come from frond: it rises, and a column of a table there owns it. */
static bool
sequence_is_ours(Oid seq, struct owner *ret)
{
	Form_pg_sequence form;
	HeapTuple tuple;
	bool rises;

	if ((!sequenceIsOwned(seq, DEPENDENCY_AUTO, &ret->table, &ret->attnum) &&
	     !sequenceIsOwned(seq, DEPENDENCY_INTERNAL, &ret->table, &ret->attnum)) ||
	    !frond_is_table(ret->table))
		return false;
	tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(seq));
	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_sequence)GETSTRUCT(tuple);
	rises = form->seqincrement > 0 && !form->seqcycle;
	ReleaseSysCache(tuple);
	return rises;
}

/* What the names of a table's counters begin with: its id is never another one's. */
static void
counter_prefix(const uint8 id[FROWS_ID_BYTES], char ret[PREFIX_BYTES])
{
	char hex[2 * FROWS_ID_BYTES + 1];

	hex[hex_encode((const char *)id, FROWS_ID_BYTES, hex)] = '\0';
	snprintf(ret, PREFIX_BYTES, "sequence %s ", hex);
}

/* Behind that stands the id of a column, which is never another one's of the table. */
static void
counter_name(const struct frond_table *t, AttrNumber attnum, char ret[NAME_BYTES])
{
	char prefix[PREFIX_BYTES];

	counter_prefix(t->id, prefix);
	snprintf(ret, NAME_BYTES, "%s%u", prefix, t->columns[attnum - 1].id);
}

/* ---- Blocks ---- */

/* The block that this session has drawn last. */
struct block {
	Oid seq;
	Oid filenode; /* another one since the sequence was altered, or restarted */
	int64 first, last;
	int64 given; /* the number that was given last */
};

static HTAB *blocks;

static struct block *
block_of(Oid seq)
{
	struct block *b;
	bool found;

	if (!blocks) {
		HASHCTL how = { .keysize = sizeof(Oid), .entrysize = sizeof(struct block) };

		blocks = hash_create("blocks of frond's sequences", 16, &how,
				     HASH_ELEM | HASH_BLOBS);
	}
	b = hash_search(blocks, &seq, HASH_ENTER, &found);
	if (!found)
		b->filenode = InvalidOid;
	return b;
}

static void
sequence_is(Oid seq, Oid *ret_filenode, Oid *ret_owner)
{
	HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(seq));

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "there is no sequence %u", seq);
	*ret_filenode = ((Form_pg_class)GETSTRUCT(tuple))->relfilenode;
	*ret_owner = ((Form_pg_class)GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
}

/* The number behind which PostgreSQL's sequence would go on: setval() may have raised it. */
static int64
last_of_sequence(Oid seq, int64 increment)
{
	const char *name = quote_qualified_identifier(get_namespace_name(get_rel_namespace(seq)),
						      get_rel_name(seq));
	bool is_null;
	int64 last;

	SPI_connect();
	if (SPI_execute(psprintf("SELECT last_value - CASE WHEN is_called THEN 0 ELSE " INT64_FORMAT
				 " END FROM %s",
				 increment, name),
			true, 1) != SPI_OK_SELECT ||
	    SPI_processed != 1)
		elog(ERROR, "the sequence %s cannot be read", name);
	last = DatumGetInt64(
		SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &is_null));
	SPI_finish();
	return last;
}

/* Draws a block. */
static void
block_draw(struct block *b, const struct owner *owner, const struct FormData_pg_sequence *s)
{
	const struct frond_table *t = frond_table_get(owner->table, GetUserId());
	Oid was, owned_by, filenode;
	char name[NAME_BYTES];
	int64 before, add;
	int context;

	sequence_is(b->seq, &filenode, &owned_by);
	counter_name(t, owner->attnum, name);
	if (pg_mul_s64_overflow(s->seqincrement, s->seqcache, &add))
		add = PG_INT64_MAX;
	/* Of one who may insert nothing more is asked than PostgreSQL does. */
	GetUserIdAndSecContext(&was, &context);
	SetUserIdAndSecContext(owned_by, context | SECURITY_LOCAL_USERID_CHANGE);
	before = last_of_sequence(b->seq, s->seqincrement);
	SetUserIdAndSecContext(was, context);
	before = frond_counter_take(t->server, was, name, before, add);
	if (before > s->seqmax - s->seqincrement)
		ereport(ERROR, errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
			errmsg("nextval: reached maximum value of sequence \"%s\" (%lld)",
			       get_rel_name(b->seq), (long long)s->seqmax));
	b->first = before + s->seqincrement;
	b->last = s->seqmax - before < add ? s->seqmax : before + add;
	b->given = before;
	b->filenode = filenode;
	SetUserIdAndSecContext(owned_by, context | SECURITY_LOCAL_USERID_CHANGE);
	(void)DirectFunctionCall3(setval3_oid, ObjectIdGetDatum(b->seq), Int64GetDatum(b->first),
				  BoolGetDatum(false));
	SetUserIdAndSecContext(was, context);
}

/* The next number of PostgreSQL's sequence. False: it is not of the block that was drawn. */
static bool
block_next(struct block *b, int64 *ret)
{
	Oid filenode, owner;

	sequence_is(b->seq, &filenode, &owner);
	if (filenode != b->filenode || b->given >= b->last)
		return false;
	*ret = b->given = nextval_internal(b->seq, false);
	return *ret >= b->first && *ret <= b->last;
}

static int64
number_draw(struct block *b, const struct owner *owner)
{
	HeapTuple tuple = SearchSysCacheCopy1(SEQRELID, ObjectIdGetDatum(b->seq));
	const FormData_pg_sequence *s = (Form_pg_sequence)GETSTRUCT(tuple);
	bool done = false;
	int64 n;

	/* Nobody else who draws sets the sequence until its numbers are this session's. */
	LockRelationOid(b->seq, ShareUpdateExclusiveLock);
	for (int i = 0; !done && i < ATTEMPTS; i++) {
		block_draw(b, owner, s);
		done = block_next(b, &n);
	}
	UnlockRelationOid(b->seq, ShareUpdateExclusiveLock);
	if (!done)
		ereport(ERROR, errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			errmsg("the sequence \"%s\" is in use all the time", get_rel_name(b->seq)));
	return n;
}

/* As for nextval(); of an identity column whoever may insert, may. */
static void
check_right(Oid seq, const struct owner *owner)
{
	Oid user = GetUserId();

	if (pg_class_aclcheck(seq, user, ACL_USAGE | ACL_UPDATE) != ACLCHECK_OK &&
	    (!sequenceIsOwned(seq, DEPENDENCY_INTERNAL, &(Oid){ 0 }, &(int32){ 0 }) ||
	     (pg_class_aclcheck(owner->table, user, ACL_INSERT) != ACLCHECK_OK &&
	      pg_attribute_aclcheck_all(owner->table, user, ACL_INSERT, ACLMASK_ANY) !=
		      ACLCHECK_OK)))
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_SEQUENCE, get_rel_name(seq));
}

PG_FUNCTION_INFO_V1(frond_nextval);
PGDLLEXPORT Datum frond_nextval(PG_FUNCTION_ARGS);

Datum
frond_nextval(PG_FUNCTION_ARGS)
{
	Oid seq = PG_GETARG_OID(0);
	struct owner owner;
	struct block *b;
	int64 n;

	if (!sequence_is_ours(seq, &owner))
		ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE),
			errmsg("no column of a table in frond owns this sequence, or it does not "
			       "rise"));
	check_right(seq, &owner);
	PreventCommandIfReadOnly("nextval()");
	b = block_of(seq);
	PG_RETURN_INT64(block_next(b, &n) ? n : number_draw(b, &owner));
}

void
frond_sequences_restart(Oid relid)
{
	const struct frond_table *t = frond_table_get(relid, GetUserId());
	List *owned = getOwnedSequences(relid);
	struct owner owner;
	char name[NAME_BYTES];
	ListCell *cell;

	foreach (cell, owned) {
		if (!sequence_is_ours(lfirst_oid(cell), &owner))
			continue;
		counter_name(t, owner.attnum, name);
		frond_counter_forget(t->server, GetUserId(), name);
	}
}

void
frond_sequences_forget(struct frows *c, const struct frows_table *t, const char *column)
{
	char prefix[PREFIX_BYTES], from[NAME_BYTES], to[NAME_BYTES];
	const struct frows_column *one;

	counter_prefix(t->id, prefix);
	if (!column) {
		snprintf(to, sizeof(to), "%s:", prefix);
		frond_counters_forget(c, prefix, to);
		return;
	}
	one = frond_stored_column(t, column);
	if (!one)
		return;
	snprintf(from, sizeof(from), "%s%u", prefix, one->id);
	snprintf(to, sizeof(to), "%s ", from);
	frond_counters_forget(c, from, to);
}

/* ---- In the place of nextval() ---- */

/*
 * What calls nextval(), or would: NextValueExpr is an identity column's. Each query is looked
 * through, and PostgreSQL's walker is slow with what most of one is made of.
 */
static bool
calls_nextval(Node *node, void *arg)
{
	ListCell *cell;

	if (!node || IsA(node, Var) || IsA(node, Const) || IsA(node, RangeTblRef))
		return false;
	if (IsA(node, TargetEntry))
		return calls_nextval((Node *)((TargetEntry *)node)->expr, arg);
	if (IsA(node, List)) {
		foreach (cell, (List *)node)
			if (calls_nextval(lfirst(cell), arg))
				return true;
		return false;
	}
	if (IsA(node, NextValueExpr) ||
	    (IsA(node, FuncExpr) && ((FuncExpr *)node)->funcid == F_NEXTVAL))
		return true;
	if (IsA(node, Query))
		return query_tree_walker((Query *)node, calls_nextval, arg, 0);
	return expression_tree_walker(node, calls_nextval, arg);
}

/* The extension's function; InvalidOid: it is not there. */
static Oid
function_oid(void)
{
	ForeignDataWrapper *wrapper = GetForeignDataWrapperByName("frond", true);
	Oid type = REGCLASSOID;

	if (!wrapper || !OidIsValid(wrapper->fdwhandler))
		return InvalidOid;
	/* Nobody needs a right on the schema for that. */
	return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum("frond_nextval"),
			       PointerGetDatum(buildoidvector(&type, 1)),
			       ObjectIdGetDatum(get_func_namespace(wrapper->fdwhandler)));
}

static Node *
call_make(Oid seq, Oid type)
{
	Oid cast = type == INT2OID ? F_INT2_INT8 : type == INT4OID ? F_INT4_INT8 : InvalidOid;
	Oid function = function_oid();
	Expr *call;

	if (!OidIsValid(function))
		return NULL;
	call = (Expr *)makeFuncExpr(function, INT8OID,
				    list_make1(makeConst(REGCLASSOID, -1, InvalidOid, sizeof(Oid),
							 ObjectIdGetDatum(seq), false, true)),
				    InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
	if (OidIsValid(cast))
		call = (Expr *)makeFuncExpr(cast, type, list_make1(call), InvalidOid, InvalidOid,
					    COERCE_IMPLICIT_CAST);
	return (Node *)call;
}

/* The sequence of which a node calls nextval(), and the type that it gives; InvalidOid: none. */
static Oid
sequence_of(Node *node, const Query *query, Oid *ret_type)
{
	const FuncExpr *f = (const FuncExpr *)node;
	const Const *arg;

	if (IsA(node, NextValueExpr)) {
		*ret_type = ((NextValueExpr *)node)->typeId;
		/* Through a view nobody's own right to insert is asked. */
		if (query->resultRelation &&
		    OidIsValid(rt_fetch(query->resultRelation, query->rtable)->checkAsUser))
			return InvalidOid;
		return ((NextValueExpr *)node)->seqid;
	}
	*ret_type = INT8OID;
	if (!IsA(node, FuncExpr) || f->funcid != F_NEXTVAL)
		return InvalidOid;
	arg = linitial(f->args);
	return IsA(arg, Const) && !arg->constisnull ? DatumGetObjectId(arg->constvalue)
						    : InvalidOid;
}

static Node *
put_calls(Node *node, void *query)
{
	struct owner owner;
	Node *call = NULL;
	Oid seq, type;

	if (!node)
		return NULL;
	if (IsA(node, Query))
		return (Node *)query_tree_mutator((Query *)node, put_calls, node, 0);
	seq = sequence_of(node, query, &type);
	if (OidIsValid(seq) && sequence_is_ours(seq, &owner))
		call = call_make(seq, type);
	return call ? call : expression_tree_mutator(node, put_calls, query);
}

Node *
frond_sequence_numbers(Node *expression)
{
	Node *numbers;

	if (!calls_nextval(expression, NULL))
		return NULL;
	numbers = put_calls(expression, makeNode(Query));
	return equal(numbers, expression) ? NULL : numbers;
}

static PlannedStmt *
at_planner(Query *query, const char *text, int options, ParamListInfo params)
{
	if (calls_nextval((Node *)query, NULL))
		query = (Query *)put_calls((Node *)query, NULL);
	return (next_planner ? next_planner : standard_planner)(query, text, options, params);
}

/* ---- Definitions ---- */

AlterSeqStmt *
frond_sequence_owned(AlterSeqStmt *statement)
{
	List *column = NIL;
	HeapTuple tuple;
	RangeVar *table;
	ListCell *cell;
	bool is_plain;
	Oid seq, relid;

	foreach (cell, statement->options) {
		DefElem *option = lfirst(cell);

		if (strcmp(option->defname, "cache") == 0)
			return statement;
		if (strcmp(option->defname, "owned_by") == 0)
			column = (List *)option->arg;
	}
	if (list_length(column) < 2)
		return statement;
	table = makeRangeVarFromNameList(list_copy_head(column, list_length(column) - 1));
	relid = RangeVarGetRelid(table, NoLock, true);
	seq = RangeVarGetRelid(statement->sequence, NoLock, true);
	if (!OidIsValid(relid) || !OidIsValid(seq) || !frond_is_table(relid))
		return statement;
	tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(seq));
	is_plain = HeapTupleIsValid(tuple) && ((Form_pg_sequence)GETSTRUCT(tuple))->seqcache == 1;
	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	if (!is_plain)
		return statement;
	statement = copyObject(statement);
	statement->options = lappend(
		statement->options,
		makeDefElem("cache", (Node *)makeInteger(frond_sequence_block), -1));
	return statement;
}

void
frond_sequence_init(void)
{
	next_planner = planner_hook;
	planner_hook = at_planner;
}
