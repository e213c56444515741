/*
 * COPY … FROM that leaves columns out whose numbers come from the store (sequence.c). PostgreSQL
 * plans no query for it, so the planner's hook hears of nothing: the statement is run here by the
 * functions that PostgreSQL itself has for it, with other defaults.
 */
#include "frond_pg.h"

#include "access/sysattr.h"
#include "access/table.h"
#include "catalog/pg_authid.h"
#include "commands/copy.h"
#include "commands/copyfrom_internal.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_coerce.h"
#include "parser/parse_collate.h"
#include "parser/parse_expr.h"
#include "parser/parse_relation.h"
#include "rewrite/rewriteHandler.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/* The default of a column with the store's numbers; NULL: it has none of these. */
static Node *
default_of(Relation rel, AttrNumber attnum)
{
	Form_pg_attribute a = TupleDescAttr(RelationGetDescr(rel), attnum - 1);

	return a->attisdropped || a->attgenerated
		       ? NULL
		       : frond_sequence_numbers(build_column_default(rel, attnum));
}

bool
frond_copy_has_numbers(const CopyStmt *statement, Oid relid)
{
	Relation rel;
	List *copied;
	bool has = false;

	if (!statement->is_from || !statement->attlist)
		return false;
	rel = table_open(relid, AccessShareLock);
	copied = CopyGetAttnums(RelationGetDescr(rel), rel, statement->attlist);
	for (int i = 1; i <= RelationGetNumberOfAttributes(rel); i++)
		has |= !list_member_int(copied, i) && default_of(rel, (AttrNumber)i);
	table_close(rel, AccessShareLock);
	return has;
}

/* As PostgreSQL has it. */
static void
check_source(const CopyStmt *statement)
{
	Oid role = statement->is_program ? ROLE_PG_EXECUTE_SERVER_PROGRAM
					 : ROLE_PG_READ_SERVER_FILES;

	if (!statement->filename || has_privs_of_role(GetUserId(), role))
		return;
	ereport(ERROR, errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
		errmsg("must be superuser or have privileges of the %s role to COPY from %s",
		       statement->is_program ? "pg_execute_server_program" : "pg_read_server_files",
		       statement->is_program ? "an external program" : "a file"),
		errhint("Anyone can COPY to stdout or from stdin. psql's \\copy command also works "
			"for anyone."));
}

static void
check_rights(const ParseState *state, RangeTblEntry *rte, Relation rel, List *attlist)
{
	ListCell *cell;

	rte->requiredPerms = ACL_INSERT;
	foreach (cell, CopyGetAttnums(RelationGetDescr(rel), rel, attlist))
		rte->insertedCols = bms_add_member(
			rte->insertedCols, lfirst_int(cell) - FirstLowInvalidHeapAttributeNumber);
	(void)ExecCheckRTPerms(state->p_rtable, true);
	if (XactReadOnly)
		PreventCommandIfReadOnly("COPY FROM");
}

/* WHERE as COPY wants it: conditions that all have to hold. */
static Node *
where_of(ParseState *state, ParseNamespaceItem *item, Node *raw)
{
	Node *where;

	if (!raw)
		return NULL;
	addNSItemToQuery(state, item, false, true, true);
	where = coerce_to_boolean(state, transformExpr(state, raw, EXPR_KIND_COPY_WHERE), "WHERE");
	assign_expr_collations(state, where);
	where = eval_const_expressions(NULL, where);
	return (Node *)make_ands_implicit(canonicalize_qual((Expr *)where, false));
}

static void
defaults_put(CopyFromState copy)
{
	MemoryContext old = MemoryContextSwitchTo(copy->copycontext);

	for (int i = 0; i < copy->num_defaults; i++) {
		Node *numbers = default_of(copy->rel, (AttrNumber)(copy->defmap[i] + 1));

		if (numbers)
			copy->defexprs[i] = ExecInitExpr(expression_planner((Expr *)numbers), NULL);
	}
	MemoryContextSwitchTo(old);
}

uint64
frond_copy_from(const CopyStmt *statement, const char *text, QueryEnvironment *environment)
{
	ParseState *state = make_parsestate(NULL);
	ParseNamespaceItem *item;
	CopyFromState copy;
	Relation rel;
	uint64 rows;
	Node *where;

	state->p_sourcetext = text;
	state->p_queryEnv = environment;
	check_source(statement);
	rel = table_openrv(statement->relation, RowExclusiveLock);
	item = addRangeTableEntryForRelation(state, rel, RowExclusiveLock, NULL, false, false);
	where = where_of(state, item, statement->whereClause);
	check_rights(state, item->p_rte, rel, statement->attlist);
	copy = BeginCopyFrom(state, rel, where, statement->filename, statement->is_program, NULL,
			     statement->attlist, statement->options);
	defaults_put(copy);
	rows = CopyFrom(copy);
	EndCopyFrom(copy);
	table_close(rel, NoLock);
	free_parsestate(state);
	return rows;
}
