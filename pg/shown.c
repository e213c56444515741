/*
 * information_schema.tables, pg_indexes and their kin, in which applications look for what they
 * have made. PostgreSQL tells there of a foreign table, or nothing. So a query that names one of
 * these views has a subquery in its place, as the rewriter would make one of it: in tables and
 * pg_tables what CREATE TABLE has made in frond is a table as others are, and those of constraints
 * and indexes have foreign tables, too.
 */
#include "frond_pg.h"
#include "frond_shown.h"

#include "access/table.h"
#include "access/transam.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/analyze.h"
#include "parser/parser.h"
#include "rewrite/prs2lock.h"
#include "rewrite/rewriteHandler.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

bool frond_show_tables;

static post_parse_analyze_hook_type next_analyze;
static bool is_replacing; /* what is analyzed takes the place of a view */

/* PostgreSQL's own views, and no table of its catalog. */
static bool
is_view_of_postgresql(const RangeTblEntry *rte)
{
	return rte->rtekind == RTE_RELATION && rte->relkind == RELKIND_VIEW &&
	       rte->relid < FirstNormalObjectId;
}

/* What CREATE TABLE has made, by the OID of pg_class. */
#define MADE                                                                                       \
	"(SELECT f.ftrelid FROM pg_catalog.pg_foreign_table f "                                    \
	"JOIN pg_catalog.pg_foreign_server s ON s.oid OPERATOR(pg_catalog.=) f.ftserver "          \
	"JOIN pg_catalog.pg_foreign_data_wrapper w ON w.oid OPERATOR(pg_catalog.=) s.srvfdw "      \
	"WHERE w.fdwname OPERATOR(pg_catalog.=) 'frond' AND EXISTS (SELECT FROM "                  \
	"pg_catalog.pg_options_to_table(f.ftoptions) o "                                           \
	"WHERE o.option_name OPERATOR(pg_catalog.=) 'made'))"

static const char tables_query[] =
	"SELECT t.table_catalog, t.table_schema, t.table_name, (CASE "
	"WHEN t.table_type::pg_catalog.text OPERATOR(pg_catalog.=) 'FOREIGN' AND EXISTS (SELECT "
	"FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n "
	"ON n.oid OPERATOR(pg_catalog.=) c.relnamespace "
	"WHERE c.relname OPERATOR(pg_catalog.=) t.table_name::pg_catalog.name "
	"AND n.nspname OPERATOR(pg_catalog.=) t.table_schema::pg_catalog.name "
	"AND c.oid OPERATOR(pg_catalog.=) ANY " MADE ") THEN 'BASE TABLE' "
	"ELSE t.table_type::pg_catalog.text END)::information_schema.character_data, "
	"t.self_referencing_column_name, t.reference_generation, t.user_defined_type_catalog, "
	"t.user_defined_type_schema, t.user_defined_type_name, t.is_insertable_into, t.is_typed, "
	"t.commit_action FROM information_schema.tables t";

static const char pg_tables_query[] =
	"SELECT * FROM pg_catalog.pg_tables UNION ALL "
	"SELECT n.nspname, c.relname, pg_catalog.pg_get_userbyid(c.relowner), "
	"NULL::pg_catalog.name, EXISTS (SELECT FROM pg_catalog.pg_index i "
	"WHERE i.indrelid OPERATOR(pg_catalog.=) c.oid), c.relhasrules, c.relhastriggers, "
	"c.relrowsecurity FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n "
	"ON n.oid OPERATOR(pg_catalog.=) c.relnamespace "
	"WHERE c.oid OPERATOR(pg_catalog.=) ANY " MADE;

static const struct shown_view {
	const char *schema, *name;
	const char *query; /* NULL: the view's own, with foreign tables beside other ones */
} views[] = {
	{ "information_schema", "tables", tables_query },
	{ "information_schema", "table_constraints", NULL },
	{ "information_schema", "key_column_usage", NULL },
	{ "information_schema", "constraint_column_usage", NULL },
	{ "information_schema", "constraint_table_usage", NULL },
	{ "information_schema", "check_constraints", NULL },
	{ "pg_catalog", "pg_tables", pg_tables_query },
	{ "pg_catalog", "pg_indexes", NULL },
	{ "pg_catalog", "pg_statio_all_tables", NULL },
};

static const struct shown_view *
view_find(Oid view)
{
	const char *name = get_rel_name(view), *schema;

	for (size_t i = 0; name && i < lengthof(views); i++) {
		if (strcmp(name, views[i].name) != 0)
			continue;
		schema = get_namespace_name(get_rel_namespace(view));
		if (schema && strcmp(schema, views[i].schema) == 0)
			return &views[i];
	}
	return NULL;
}

/* ---- The view's own query, with foreign tables ---- */

static Const *
relkind_const(char kind)
{
	return makeConst(CHAROID, -1, InvalidOid, sizeof(char), CharGetDatum(kind), false, true);
}

static bool
has_relkind(const List *kinds, char kind)
{
	ListCell *cell;

	foreach (cell, kinds)
		if (IsA(lfirst(cell), Const) &&
		    DatumGetChar(lfirst_node(Const, cell)->constvalue) == kind)
			return true;
	return false;
}

/* "relkind IN ('r', 'p')" gets an 'f'. */
static Node *
with_foreign(Node *node, void *arg)
{
	const ScalarArrayOpExpr *e = (ScalarArrayOpExpr *)node;

	if (!node)
		return NULL;
	if (IsA(node, Query))
		return (Node *)query_tree_mutator((Query *)node, with_foreign, arg, 0);
	if (IsA(node, ScalarArrayOpExpr) && IsA(lsecond(e->args), ArrayExpr)) {
		ArrayExpr *kinds = copyObject(lsecond_node(ArrayExpr, e->args));
		const Var *var = linitial(e->args);

		if (e->useOr && IsA(var, Var) && var->varattno == Anum_pg_class_relkind &&
		    kinds->element_typeid == CHAROID &&
		    has_relkind(kinds->elements, RELKIND_RELATION) &&
		    !has_relkind(kinds->elements, RELKIND_FOREIGN_TABLE)) {
			ScalarArrayOpExpr *wider = copyObject((ScalarArrayOpExpr *)e);

			kinds->elements = lappend(kinds->elements,
						  relkind_const(RELKIND_FOREIGN_TABLE));
			lsecond(wider->args) = kinds;
			return (Node *)wider;
		}
	}
	return expression_tree_mutator(node, with_foreign, arg);
}

static Query *
own_query(Oid view)
{
	Relation rel = table_open(view, AccessShareLock);
	Query *query = NULL;

	for (int i = 0; rel->rd_rules && i < rel->rd_rules->numLocks && !query; i++)
		if (rel->rd_rules->rules[i]->event == CMD_SELECT)
			query = copyObject(linitial_node(Query, rel->rd_rules->rules[i]->actions));
	table_close(rel, NoLock);
	if (!query)
		return NULL;
	AcquireRewriteLocks(query, true, false);
	return castNode(Query, with_foreign((Node *)query, NULL));
}

/* ---- Queries that name views ---- */

static Query *
query_analyze(const char *text)
{
	Query *query;

	is_replacing = true;
	PG_TRY();
	{
		query = parse_analyze_fixedparams(
			linitial_node(RawStmt, raw_parser(text, RAW_PARSE_DEFAULT)), text, NULL, 0,
			NULL);
	}
	PG_FINALLY();
	{
		is_replacing = false;
	}
	PG_END_TRY();
	return query;
}

static void
view_replace(RangeTblEntry *rte)
{
	const struct shown_view *view = view_find(rte->relid);
	Query *query = !view         ? NULL
		       : view->query ? query_analyze(view->query)
				     : own_query(rte->relid);

	if (!query)
		return;
	rte->subquery = query;
	rte->rtekind = RTE_SUBQUERY;
	rte->relid = InvalidOid;
	rte->relkind = 0;
	rte->rellockmode = 0;
	rte->inh = false;
	/* Everybody may read the view; what it reads is asked for each. */
	rte->requiredPerms = 0;
	rte->selectedCols = NULL;
}

/* Adds the views that a query names to a list. What is replaced is not looked into again. */
static bool
views_find(Node *node, void *arg)
{
	List **found = arg;

	if (!node)
		return false;
	if (IsA(node, RangeTblEntry)) {
		if (is_view_of_postgresql((RangeTblEntry *)node))
			*found = lappend(*found, node);
		return false;
	}
	if (IsA(node, Query))
		return query_tree_walker((Query *)node, views_find, arg, QTW_EXAMINE_RTES_BEFORE);
	return expression_tree_walker(node, views_find, arg);
}

/* Whether such a view may be named: most queries are of tables alone. */
static bool
may_name_views(const Query *query)
{
	ListCell *cell;

	if (query->commandType == CMD_UTILITY)
		return false;
	if (query->hasSubLinks || query->cteList)
		return true;
	foreach (cell, query->rtable) {
		const RangeTblEntry *rte = lfirst(cell);

		if (rte->rtekind == RTE_SUBQUERY || is_view_of_postgresql(rte))
			return true;
	}
	return false;
}

static void
views_replace(Query *query)
{
	List *found = NIL;
	ListCell *cell;

	(void)views_find((Node *)query, &found);
	foreach (cell, found)
		view_replace(lfirst(cell));
}

static void
at_analyze(ParseState *state, Query *query, JumbleState *jumble)
{
	/* A view or a function that is made of a query keeps the names that it has. */
	if (frond_show_tables && !is_replacing && !frond_in_definition && may_name_views(query))
		views_replace(query);
	if (next_analyze)
		next_analyze(state, query, jumble);
}

void
frond_shown_init(void)
{
	next_analyze = post_parse_analyze_hook;
	post_parse_analyze_hook = at_analyze;
}
