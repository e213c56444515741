/*
 * CREATE INDEX, UNIQUE, DROP INDEX. PostgreSQL has no indexes of foreign tables: frond has them,
 * and plans ask frond's table (table.c); PostgreSQL's catalog only tells of them (catalog.c). A
 * UNIQUE constraint is a unique index. What frond cannot do is refused here with its reason.
 */
#include "frond_pg.h"
#include "frond_catalog.h"
#include "frond_computed.h"
#include "frond_push.h"

#include "access/genam.h"
#include "access/relation.h"
#include "access/sysattr.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_foreign_table.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "executor/spi.h"
#include "foreign/foreign.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_clause.h"
#include "parser/parse_coerce.h"
#include "parser/parse_collate.h"
#include "parser/parse_expr.h"
#include "parser/parse_relation.h"
#include "parser/parse_target.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/pg_locale.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"
#include "utils/syscache.h"

enum {
	BUILD_PAUSE_US = 20 * 1000, /* between two questions about a build that others do */
	FOR_CONDITION = -1,         /* what is computed is no column of the index */
};

/* An index that is to be. */
struct making {
	Relation rel;
	const struct frond_table *t;
	struct frows_index index;
	struct frows_index_column columns[FROWS_KEY_COLUMNS];
	List *computed; /* what frond keeps for it in columns of its own: expressions, … */
	int computed_for[FROWS_KEY_COLUMNS + 1]; /* … each for this column, or its condition */
	uint32 included[FROWS_KEY_COLUMNS];
	struct frows_condition conditions[FROWS_KEY_COLUMNS];
	StringInfoData names; /* of the columns, for the name of the index */
	bool remade;          /* its table is, in frond's transaction, and has no rows yet */
	char *spec;
	struct frond_catalog_index catalog;
};

static void
refuse(const char *what)
{
	ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
		errmsg("indexes in frond have no %s", what));
}

/* ---- Columns ---- */

static const struct frond_column *
column_named(const struct making *m, const char *name)
{
	AttrNumber attnum = get_attnum(m->t->relid, name);

	if (attnum <= 0)
		ereport(ERROR, errcode(ERRCODE_UNDEFINED_COLUMN),
			errmsg("column \"%s\" does not exist", name));
	return &m->t->columns[attnum - 1];
}

static void
check_deterministic(Oid collation, const char *column)
{
	if (OidIsValid(collation) && !get_collation_isdeterministic(collation))
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("the column \"%s\" cannot be in an index: its collation takes "
			       "different texts for equal",
			       column));
}

static void fail_order(const char *column, Oid type) pg_attribute_noreturn();

static void
fail_order(const char *column, Oid type)
{
	ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
		errmsg("the column \"%s\" cannot be in an index: frond does not know the order of "
		       "%s",
		       column, format_type_be(type)));
}

/* Gives the collation of the column in the index. */
static Oid
check_collation(const struct making *m, const IndexElem *e)
{
	AttrNumber attnum = get_attnum(m->t->relid, e->name);
	Oid collation = TupleDescAttr(RelationGetDescr(m->rel), attnum - 1)->attcollation;

	if (e->collation)
		collation = get_collation_oid(e->collation, false);
	check_deterministic(collation, e->name);
	return collation;
}

/* InvalidOid: the default. */
static Oid
check_opclass(const IndexElem *e, Oid type)
{
	Oid opclass = e->opclass ? frond_catalog_opclass(e->opclass, type) : InvalidOid;

	if (e->opclass && !OidIsValid(opclass))
		refuse("operator classes with another order than the default or that of bytes");
	return opclass;
}

/* The expression, or condition, of a statement: its Vars have the number 1. */
static Node *
expression_analyze(const struct making *m, Node *raw, ParseExprKind kind)
{
	ParseState *state = make_parsestate(NULL);
	ParseNamespaceItem *item = addRangeTableEntryForRelation(state, m->rel, AccessShareLock,
								 NULL, false, true);
	Node *e;

	addNSItemToQuery(state, item, false, true, true);
	e = kind == EXPR_KIND_INDEX_PREDICATE ? transformWhereClause(state, raw, kind, "WHERE")
					      : transformExpr(state, raw, kind);
	assign_expr_collations(state, e);
	return e;
}

/* Takes something that frond shall keep, for a column of the index, or FOR_CONDITION. */
static void
computed_take(struct making *m, Node *e, int column)
{
	Bitmapset *used = NULL;

	if (contain_mutable_functions((Node *)expression_planner((Expr *)copyObject(e))))
		ereport(ERROR, errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
			errmsg("functions in index %s must be marked IMMUTABLE",
			       column == FOR_CONDITION ? "predicate" : "expression"));
	pull_varattnos(e, 1, &used);
	if (bms_next_member(used, -1) >= 0 &&
	    bms_next_member(used, -1) <= 0 - FirstLowInvalidHeapAttributeNumber)
		refuse("system columns or whole rows");
	m->computed_for[list_length(m->computed)] = column;
	m->computed = lappend(m->computed, eval_const_expressions(NULL, copyObject(e)));
}

static bool
has_column_named(const struct making *m, const char *name)
{
	for (int i = 0; i < m->catalog.count; i++)
		if (strcmp(m->catalog.columns[i].name, name) == 0)
			return true;
	return false;
}

/* What PostgreSQL calls a column of the index: `base`, with a number where another has it. */
static const char *
column_name(const struct making *m, const char *base)
{
	const char *name = base;

	for (int n = 1; has_column_named(m, name); n++)
		name = makeObjectName(base, NULL, psprintf("%d", n));
	return name;
}

static void
expression_take(struct making *m, const IndexElem *e, Node *expression)
{
	struct frond_catalog_column *to = &m->catalog.columns[m->catalog.count];
	Oid type = exprType(expression), collation = exprCollation(expression);
	const char *name = e->indexcolname ? e->indexcolname : FigureIndexColname(e->expr);

	name = column_name(m, name ? name : "expr");
	if (e->collation)
		collation = get_collation_oid(e->collation, false);
	check_deterministic(collation, name);
	if (frond_kind_of(getBaseType(type)) == FROWS_OTHER)
		fail_order(name, type);
	*to = (struct frond_catalog_column){
		.expression = (Expr *)expression,
		.name = name,
		.descending = e->ordering == SORTBY_DESC,
		.collation = collation,
		.opclass = check_opclass(e, getBaseType(type)),
	};
	computed_take(m, expression, (int)m->index.count);
	m->catalog.key_count = ++m->catalog.count;
	m->columns[m->index.count++] = (struct frows_index_column){ .descending = e->ordering ==
										  SORTBY_DESC };
	appendStringInfo(&m->names, "%s%s", m->names.len ? "_" : "", name);
}

static void
column_take(struct making *m, IndexElem *e)
{
	struct frond_catalog_column *to = &m->catalog.columns[m->catalog.count];
	const struct frond_column *c;

	if (m->index.count == FROWS_KEY_COLUMNS)
		ereport(ERROR, errcode(ERRCODE_TOO_MANY_COLUMNS),
			errmsg("an index has %d columns at most", FROWS_KEY_COLUMNS));
	if (!e->name) {
		Node *expression = expression_analyze(m, e->expr, EXPR_KIND_INDEX_EXPRESSION);

		if (IsA(expression, Var) && ((Var *)expression)->varattno > 0) {
			e->name = get_attname(m->t->relid, ((Var *)expression)->varattno, false);
		} else {
			expression_take(m, e, expression);
			return;
		}
	}
	c = column_named(m, e->name);
	if (c->kind == FROWS_OTHER)
		fail_order(e->name, c->type);
	*to = (struct frond_catalog_column){
		.attnum = get_attnum(m->t->relid, e->name),
		.name = column_name(m, e->name),
		.descending = e->ordering == SORTBY_DESC,
		.collation = check_collation(m, e),
		.opclass = check_opclass(e, c->type),
	};
	m->catalog.key_count = ++m->catalog.count;
	m->columns[m->index.count++] = (struct frows_index_column){
		.id = c->id, .descending = e->ordering == SORTBY_DESC
	};
	appendStringInfo(&m->names, "%s%s", m->names.len ? "_" : "", to->name);
}

static void
included_take(struct making *m, const IndexElem *e)
{
	if (!e->name)
		refuse("expressions");
	if (m->index.included_count == FROWS_KEY_COLUMNS)
		ereport(ERROR, errcode(ERRCODE_TOO_MANY_COLUMNS),
			errmsg("an index includes %d columns at most", FROWS_KEY_COLUMNS));
	m->included[m->index.included_count++] = column_named(m, e->name)->id;
	m->catalog.columns[m->catalog.count] = (struct frond_catalog_column){
		.attnum = get_attnum(m->t->relid, e->name),
		.name = column_name(m, e->name),
	};
	m->catalog.count++;
}

/* ---- WHERE ---- */

/* The conditions of the statement, as PostgreSQL's planner has them. */
static List *
where_analyze(struct making *m, Node *raw)
{
	Node *where = expression_analyze(m, raw, EXPR_KIND_INDEX_PREDICATE);

	m->spec = deparse_expression(
		where, deparse_context_for(RelationGetRelationName(m->rel), m->t->relid), false,
		false);
	return make_ands_implicit(
		canonicalize_qual((Expr *)eval_const_expressions(NULL, where), false));
}

/* A condition that frond does not know is computed here, and frond looks whether it is true. */
static void
where_compute(struct making *m)
{
	computed_take(m, (Node *)make_ands_explicit(copyObject(m->catalog.predicate)),
		      FOR_CONDITION);
	m->index.condition_count = 1;
}

/* The constant as the column has it; one without bytes: it cannot have it, or frond does not
 * compare its kind there. */
static struct frows_value
condition_value(const struct frond_column *c, const struct frond_test *test)
{
	const struct frows_value none = { NULL, FROWS_NULL };
	const Const *value = (const Const *)test->value;
	struct frond_column of = { 0 };
	uint8 *bytes;
	int64 n;
	int size;

	if (!IsA(value, Const) || value->constisnull || c->kind == FROWS_FLOAT4 ||
	    c->kind == FROWS_FLOAT8 || c->kind == FROWS_NUMERIC || c->kind == FROWS_INTERVAL)
		return none;
	if (c->kind != FROWS_INT2 && c->kind != FROWS_INT4 && c->kind != FROWS_INT8) {
		frond_column_set_type(&of, test->type, -1);
		return frond_value_put(&of, value->constvalue);
	}
	n = test->type == INT2OID   ? DatumGetInt16(value->constvalue)
	    : test->type == INT4OID ? DatumGetInt32(value->constvalue)
	    : test->type == OIDOID  ? (int64)DatumGetObjectId(value->constvalue)
				    : DatumGetInt64(value->constvalue);
	size = c->kind == FROWS_INT2 ? 2 : c->kind == FROWS_INT4 ? 4 : 8;
	if (size < 8 &&
	    (n >= INT64CONST(1) << (8 * size - 1) || n < -(INT64CONST(1) << (8 * size - 1))))
		return none;
	bytes = palloc(size);
	frows_put_int(bytes, n, size);
	return (struct frows_value){ bytes, size };
}

/* Adds a condition. False: frond does not know it. */
static bool
condition_take(struct making *m, const struct frond_test *test)
{
	static const enum frows_condition_op ops[] = {
		[FROND_LT] = FROWS_CONDITION_LT, [FROND_LE] = FROWS_CONDITION_LE,
		[FROND_EQ] = FROWS_CONDITION_EQ, [FROND_GE] = FROWS_CONDITION_GE,
		[FROND_GT] = FROWS_CONDITION_GT, [FROND_NOT_NULL] = FROWS_CONDITION_NOT_NULL,
	};
	const struct frond_column *c = &m->t->columns[test->attnum - 1];
	struct frows_condition *to = &m->conditions[m->index.condition_count++];

	if (test->op == FROND_NULL || test->place == FROND_IN || test->is_implied)
		return false;
	*to = (struct frows_condition){ .column = c->id, .op = ops[test->op] };
	to->value = (struct frows_value){ NULL, FROWS_NULL };
	if (test->op == FROND_NOT_NULL)
		return true;
	to->value = condition_value(c, test);
	return to->value.len >= 0;
}

static void
where_take(struct making *m, Node *raw)
{
	RelOptInfo *rel = makeNode(RelOptInfo);
	struct frond_push push;
	ListCell *cell;

	rel->relid = 1;
	rel->relids = bms_make_singleton(1);
	m->catalog.predicate = where_analyze(m, raw);
	frond_push_make(rel, m->t, NULL, copyObject(m->catalog.predicate), &push);
	if (!push.is_exact || list_length(push.tests) > FROWS_KEY_COLUMNS) {
		where_compute(m);
		return;
	}
	foreach (cell, push.tests)
		if (!condition_take(m, lfirst(cell))) {
			where_compute(m);
			return;
		}
}

/* ---- Names ---- */

/* Whether frond's schema has an index of that name: *ret is its table, if it is wanted. */
static bool
index_is_there(Oid server, const char *schema, const char *name, char **ret)
{
	struct frows *c = frond_link_outside(server, GetUserId());
	struct frows_text table;

	if (!frows_index_find(c, schema, name)) {
		if (strcmp(frows_failure(c)->state, "42704") != 0)
			frond_fail(c);
		return false;
	}
	if (ret && frows_name_next(c, &table))
		*ret = pnstrdup(table.ptr, table.len);
	return true;
}

static bool
name_is_taken(const struct making *m, const char *name)
{
	return OidIsValid(get_relname_relid(name, RelationGetNamespace(m->rel))) ||
	       frond_index_named(m->t, name);
}

/* table_column_idx, with a number behind it where there is one already. */
static const char *
name_choose(const struct making *m, const char *label)
{
	const char *name = makeObjectName(RelationGetRelationName(m->rel), m->names.data, label);

	for (int n = 1;
	     name_is_taken(m, name) || index_is_there(m->t->server, m->t->schema, name, NULL); n++)
		name = makeObjectName(RelationGetRelationName(m->rel), m->names.data,
				      psprintf("%s%d", label, n));
	return name;
}

/* ---- Making ---- */

static void
fail_equal(const struct making *m)
{
	ereport(ERROR, errcode(ERRCODE_UNIQUE_VIOLATION),
		errmsg("could not create unique index \"%.*s\"", (int)m->index.name.len,
		       m->index.name.ptr),
		errdetail("Several rows have the same values."));
}

/* Waits until all rows have their entries. What was made goes if this fails. */
static void
build(const struct making *m, uint32 number)
{
	const struct frows_of of = frond_table_of(m->t);
	bool ready = false, failed = false;

	for (;;) {
		struct frows *c = frond_link_outside(m->t->server, GetUserId());

		CHECK_FOR_INTERRUPTS();
		if (!frows_index_build(c, &of, number, &ready, &failed))
			frond_fail(c);
		if (ready)
			return;
		if (failed)
			break;
		pg_usleep(BUILD_PAUSE_US);
	}
	fail_equal(m);
}

/*
 * An index of rows that a transaction has changed is built behind its commit, when nothing may fail
 * any more, and frond does not compare the rows of a deferrable UNIQUE. So this looks for equal
 * rows before.
 */
static void
check_unique(const struct making *m)
{
	const char *table = quote_qualified_identifier(
		get_namespace_name(RelationGetNamespace(m->rel)), RelationGetRelationName(m->rel));
	List *context = deparse_context_for(RelationGetRelationName(m->rel), m->t->relid);
	StringInfoData columns, present;

	initStringInfo(&columns);
	initStringInfo(&present);
	for (size_t i = 0; i < m->index.count; i++) {
		const struct frond_catalog_column *c = &m->catalog.columns[i];
		const char *name = c->attnum ? quote_identifier(
						       get_attname(m->t->relid, c->attnum, false))
					     : psprintf("(%s)",
							deparse_expression((Node *)c->expression,
									   context, false, false));

		appendStringInfo(&columns, "%s%s", i ? ", " : "", name);
		appendStringInfo(&present, "%s%s IS NOT NULL", i ? " AND " : "", name);
	}
	if (m->spec)
		appendStringInfo(&present, " AND (%s)", m->spec);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "no SPI");
	(void)SPI_execute(
		psprintf("SELECT 1 FROM %s WHERE %s GROUP BY %s HAVING count(*) > 1 LIMIT 1", table,
			 present.data, columns.data),
		false, 1);
	if (SPI_processed)
		fail_equal(m);
	SPI_finish();
}

/* What frond calls it: a renamed index keeps its name there. */
static const char *
stored_choose(const struct making *m, const char *name)
{
	const char *ret = name;

	for (int n = 1; index_is_there(m->t->server, m->t->schema, ret, NULL); n++)
		ret = makeObjectName(name, NULL, psprintf("%d", n));
	return ret;
}

/* Makes columns in frond for what is computed, fills them, and has the index be of them. */
static void
computed_make(struct making *m, struct frows *c)
{
	uint8 *yes = palloc(1);
	uint32 *ids = palloc(list_length(m->computed) * sizeof(*ids));

	frond_computed_make(c, m->t, m->computed, ids);
	for (int i = 0; i < list_length(m->computed); i++) {
		int column = m->computed_for[i];

		if (column != FOR_CONDITION) {
			m->columns[column].id = ids[i];
			continue;
		}
		*yes = true;
		m->conditions[0] = (struct frows_condition){ .column = ids[i],
							     .op = FROWS_CONDITION_EQ,
							     .value = { yes, 1 } };
	}
	if (!m->remade)
		frond_computed_fill(m->rel, m->computed, ids);
}

/* Whether an index that was made is ready: its table has no rows. */
static bool
is_ready(const struct making *m, uint32 number)
{
	struct frows *c = frond_link_outside(m->t->server, GetUserId());
	struct frows_indexes all;
	bool ready = false;

	if (!frows_indexes(c, m->t->schema, m->t->table, &all))
		frond_fail(c);
	for (size_t i = 0; i < all.count; i++)
		ready |= all.all[i].number == number && all.all[i].ready;
	frows_indexes_free(&all);
	return ready;
}

static void
making_init(struct making *m, Oid relid)
{
	memset(m, 0, sizeof(*m));
	m->rel = relation_open(relid, AccessExclusiveLock);
	m->t = frond_table_get(relid, GetUserId());
	m->index.columns = m->columns;
	m->index.included = m->included;
	m->index.conditions = m->conditions;
	initStringInfo(&m->names);
}

/* The condition as frond shows it to people: it keeps printable ASCII alone, and no quotes of
 * names. */
static const char *
spec_shown(const char *spec)
{
	char *shown = spec ? pstrdup(spec) : NULL;

	for (char *at = shown; at && *at; at++)
		if (*at < ' ' || *at > '~' || *at == '"')
			*at = '?';
	return shown;
}

static void
index_make(struct making *m, const char *name)
{
	const struct frows_of of = frond_table_of(m->t);
	struct frows *c;
	uint32 number;
	bool within;

	m->catalog.name = name;
	name = stored_choose(m, name);
	if (strcmp(name, m->catalog.name) != 0)
		m->catalog.stored = name;
	m->index.name = (struct frows_text){ name, strlen(name) };
	if (m->catalog.deferrable && !m->remade)
		check_unique(m);
	c = m->remade ? frond_link_define_within(m->t->server, GetUserId())
		      : frond_link_for_schema(m->t->server, GetUserId());
	within = frond_link_has_written(m->t->server, GetUserId());
	if (within && m->index.unique && !m->remade)
		check_unique(m);
	if (m->computed)
		computed_make(m, c);
	if (!frows_index_create(c, &of, &m->index, spec_shown(m->spec), &number))
		frond_fail(c);
	frond_link_made_index(m->t->server, GetUserId(), m->t->schema, name);
	if (!within)
		build(m, number);
	else if (!is_ready(m, number))
		frond_link_build_later(m->t, GetUserId(), number, &m->index);
	frond_catalog_index_add(m->rel, &m->catalog);
	/* Other backends have plans without it. */
	CacheInvalidateRelcache(m->rel);
	relation_close(m->rel, NoLock);
	frond_table_forget();
}

static void
check_statement(const IndexStmt *s)
{
	if (s->accessMethod && strcmp(s->accessMethod, "btree") != 0 &&
	    strcmp(s->accessMethod, "frond") != 0)
		refuse(psprintf("access method \"%s\"", s->accessMethod));
	if (s->excludeOpNames)
		refuse("EXCLUDE constraints");
	if (s->nulls_not_distinct)
		refuse("NULLS NOT DISTINCT");
}

static void
index_create_as(Oid relid, IndexStmt *s, bool remade)
{
	struct making m;
	const char *name;
	ListCell *cell;

	check_statement(s);
	if (!pg_class_ownercheck(relid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_TABLE, get_rel_name(relid));
	making_init(&m, relid);
	m.remade = remade;
	/* frond looks at each row, so this looks when the statement, or the transaction, ends. */
	m.index.unique = s->unique && !s->deferrable;
	m.catalog.unique = s->unique;
	m.catalog.deferrable = s->deferrable;
	m.catalog.deferred = s->initdeferred;
	m.catalog.is_constraint = s->isconstraint;
	foreach (cell, s->indexParams)
		column_take(&m, lfirst(cell));
	foreach (cell, s->indexIncludingParams)
		included_take(&m, lfirst(cell));
	if (s->whereClause)
		where_take(&m, s->whereClause);
	if (s->idxname && frond_link_drops_index(m.t->schema, s->idxname)) {
		frond_link_drop_index_now(m.t->server, GetUserId(), m.t->schema, s->idxname);
		frond_table_forget();
		m.t = frond_table_get(relid, GetUserId());
	}
	name = s->idxname ? s->idxname : name_choose(&m, s->isconstraint ? "key" : "idx");
	if (s->idxname && name_is_taken(&m, name)) {
		if (!s->if_not_exists)
			ereport(ERROR, errcode(ERRCODE_DUPLICATE_TABLE),
				errmsg("relation \"%s\" already exists", name));
		ereport(NOTICE, errcode(ERRCODE_DUPLICATE_TABLE),
			errmsg("relation \"%s\" already exists, skipping", name));
		relation_close(m.rel, NoLock);
		return;
	}
	index_make(&m, name);
}

void
frond_index_create(Oid relid, IndexStmt *s)
{
	index_create_as(relid, s, false);
}

void
frond_index_create_within(Oid relid, IndexStmt *s)
{
	index_create_as(relid, s, true);
}

Node *
frond_index_where(Oid relid, const struct frond_index *index)
{
	if (!index->predicate)
		return NULL;
	return frond_expression_parse(
		deparse_expression((Node *)make_ands_explicit(copyObject(index->predicate)),
				   deparse_context_for(get_rel_name(relid), relid), false, false));
}

static List *
elements_of(List *names)
{
	List *elements = NIL;
	ListCell *cell;

	foreach (cell, names) {
		IndexElem *e = makeNode(IndexElem);

		e->name = strVal(lfirst(cell));
		elements = lappend(elements, e);
	}
	return elements;
}

void
frond_index_add_unique(Oid relid, const Constraint *c)
{
	IndexStmt *s = makeNode(IndexStmt);

	if (c->indexname)
		refuse("UNIQUE USING INDEX");
	s->idxname = c->conname;
	s->indexParams = elements_of(c->keys);
	s->indexIncludingParams = elements_of(c->including);
	s->unique = s->isconstraint = true;
	s->deferrable = c->deferrable;
	s->initdeferred = c->initdeferred;
	s->nulls_not_distinct = c->nulls_not_distinct;
	frond_index_create(relid, s);
}

/* ---- Dropping ---- */

bool
frond_index_drop(Oid relid, const char *name, enum frond_index_dropped what)
{
	const struct frond_table *t = frond_table_get(relid, GetUserId());
	const struct frond_index *index = frond_index_named(t, name);
	Relation rel;

	if (!index)
		return false;
	if (!pg_class_ownercheck(relid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_INDEX, name);
	if (what != FROND_INDEX_OF_COLUMN)
		frond_foreign_check_index(t, name);
	(void)frond_catalog_index_drop(relid, name, what != FROND_INDEX_ALONE);
	frond_link_drop_index_later(t->server, GetUserId(), t->schema, index->stored);
	for (int i = 0; i < t->computed_count; i++)
		if (t->computed[i].expression && t->computed[i].index == index - t->indexes)
			frond_link_drop_later(t->server, GetUserId(), t->schema, t->table,
					      t->computed[i].name);
	rel = relation_open(relid, AccessExclusiveLock);
	CacheInvalidateRelcache(rel);
	relation_close(rel, NoLock);
	frond_table_forget();
	return true;
}

/* The foreign table of the namespace that is frond's table of this name. */
static Oid
table_called(Oid server, Oid namespace, const char *schema, const char *table)
{
	Relation all = table_open(ForeignTableRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(all, InvalidOid, false, NULL, 0, NULL);
	Oid found = InvalidOid;
	HeapTuple tuple;

	while (!OidIsValid(found) && (tuple = systable_getnext(scan))) {
		Form_pg_foreign_table form = (Form_pg_foreign_table)GETSTRUCT(tuple);
		const char *its_schema, *its_table;
		Oid its_server;

		if (form->ftserver != server || get_rel_namespace(form->ftrelid) != namespace)
			continue;
		frond_table_names(form->ftrelid, &its_server, &its_schema, &its_table);
		if (strcmp(its_schema, schema) == 0 && strcmp(its_table, table) == 0)
			found = form->ftrelid;
	}
	systable_endscan(scan);
	table_close(all, AccessShareLock);
	return found;
}

static Oid
find_in(Oid server, Oid namespace, const char *name)
{
	const char *schema = get_namespace_name(namespace);
	char *table = NULL;

	if (!schema || !index_is_there(server, schema, name, &table) || !table)
		return InvalidOid;
	return table_called(server, namespace, schema, table);
}

Oid
frond_index_find(List *names)
{
	ForeignServer *server = GetForeignServerByName(frond_server_name, true);
	RangeVar *name = makeRangeVarFromNameList(names);
	Oid found = InvalidOid, relid;
	ListCell *cell;

	if (!server)
		return InvalidOid;
	relid = RangeVarGetRelid(name, NoLock, true);
	if (OidIsValid(relid))
		return frond_catalog_table_of(relid);
	/* The catalog lacks those that an earlier frond, or another PostgreSQL, has made. */
	if (name->schemaname) {
		Oid namespace = get_namespace_oid(name->schemaname, true);

		return OidIsValid(namespace) ? find_in(server->serverid, namespace, name->relname)
					     : InvalidOid;
	}
	foreach (cell, fetch_search_path(false)) {
		found = find_in(server->serverid, lfirst_oid(cell), name->relname);
		if (OidIsValid(found))
			break;
	}
	return found;
}
