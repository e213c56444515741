/*
 * Statements that define tables. CREATE TABLE … USING frond becomes CREATE FOREIGN TABLE: the key
 * is taken out before PostgreSQL refuses it, and the table is made in frond with it. What frond
 * cannot do is refused here with its reason.
 */
#include "frond_pg.h"
#include "frond_catalog.h"

#include <ctype.h>

#include "access/tableam.h"
#include "common/hashfn.h"
#include "lib/stringinfo.h"
#include "parser/parser.h"
#include "parser/parsetree.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "commands/tablecmds.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"

enum {
	NAME_BYTES = 48,     /* of a table or a schema in frond: TABLE_NAME_BYTES */
	NAME_HASH_BYTES = 9, /* of one that was cut, with the underscore before it */
};

/* What PostgreSQL gives with a statement. */
struct utility {
	PlannedStmt *planned;
	const char *text;
	bool read_only_tree;
	ProcessUtilityContext context;
	ParamListInfo params;
	QueryEnvironment *environment;
	DestReceiver *dest;
	QueryCompletion *completion;
};

bool frond_at_top_level;
bool frond_in_utility;
bool frond_in_definition;

static ProcessUtility_hook_type next_utility;
static ExecutorStart_hook_type next_executor_start;
static object_access_hook_type next_object_access;

static void
run_next(const struct utility *u)
{
	(next_utility ? next_utility
		      : standard_ProcessUtility)(u->planned, u->text, u->read_only_tree, u->context,
						 u->params, u->environment, u->dest, u->completion);
}

static void
run_other(Node *statement, void *arg)
{
	struct utility other = *(const struct utility *)arg;

	other.planned = copyObject(other.planned);
	other.planned->utilityStmt = statement;
	other.read_only_tree = false;
	run_next(&other);
}

static void
refuse(const char *what)
{
	ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
		errmsg("tables in frond have no %s", what));
}

/* ---- The key of CREATE TABLE ---- */

static bool
has_name(List *names, const char *name)
{
	ListCell *cell;

	foreach (cell, names)
		if (strcmp(strVal(lfirst(cell)), name) == 0)
			return true;
	return false;
}

static void
key_take(const Constraint *c, List *columns, struct frond_key_spec *key)
{
	if (key->columns)
		ereport(ERROR, errcode(ERRCODE_INVALID_TABLE_DEFINITION),
			errmsg("a table has one primary key"));
	if (c->deferrable)
		refuse("deferrable primary keys");
	if (c->including)
		refuse("columns that a primary key includes: each row is kept with its key");
	key->name = c->conname;
	key->columns = columns;
}

/* An index is made for it when the table is there. */
static void
unique_take(const Constraint *from, List *columns, struct frond_key_spec *key)
{
	Constraint *c = copyObject((Constraint *)from);

	c->keys = columns;
	key->unique = lappend(key->unique, c);
}

/* It is added when the table is there, which it may refer to. */
static void
foreign_take(const Constraint *from, List *columns, struct frond_key_spec *key)
{
	Constraint *c = copyObject((Constraint *)from);

	/* At a column the statement does not name it again. */
	if (!c->fk_attrs)
		c->fk_attrs = columns;
	key->foreign = lappend(key->foreign, c);
}

/* DEFERRABLE and its kin stand behind the constraint that they are about. */
static void
attribute_take(ConstrType attribute, ConstrType of, struct frond_key_spec *key)
{
	Constraint *c = of == CONSTR_FOREIGN  ? llast(key->foreign)
			: of == CONSTR_UNIQUE ? llast(key->unique)
					      : NULL;
	bool defers = attribute == CONSTR_ATTR_DEFERRABLE || attribute == CONSTR_ATTR_DEFERRED;

	if (!c && defers)
		refuse("deferrable keys");
	if (!c)
		return;
	if (defers)
		c->deferrable = true;
	if (attribute == CONSTR_ATTR_DEFERRED)
		c->initdeferred = true;
}

/* Refuses a constraint, takes the key, or leaves the constraint to PostgreSQL. */
static bool
constraint_stays(const Constraint *c, List *columns, struct frond_key_spec *key)
{
	switch (c->contype) {
	case CONSTR_PRIMARY:
		key_take(c, columns, key);
		return false;
	case CONSTR_UNIQUE:
		unique_take(c, columns, key);
		return false;
	case CONSTR_EXCLUSION:
		refuse("EXCLUDE constraints");
		return false;
	case CONSTR_FOREIGN:
		foreign_take(c, columns, key);
		return false;
	default:
		return true;
	}
}

List *
frond_constraints_take(List *constraints, const char *column, struct frond_key_spec *key)
{
	ConstrType last = CONSTR_NULL;
	bool was_taken = false;
	List *kept = NIL;
	ListCell *cell;

	foreach (cell, constraints) {
		Constraint *c = lfirst(cell);
		bool is_attribute = c->contype == CONSTR_ATTR_DEFERRABLE ||
				    c->contype == CONSTR_ATTR_NOT_DEFERRABLE ||
				    c->contype == CONSTR_ATTR_DEFERRED ||
				    c->contype == CONSTR_ATTR_IMMEDIATE;

		/* Of the one that was taken out before it. */
		if (is_attribute && was_taken) {
			attribute_take(c->contype, last, key);
			continue;
		}
		last = c->contype;
		was_taken = !constraint_stays(c, list_make1(makeString(pstrdup(column))), key);
		if (!was_taken)
			kept = lappend(kept, c);
	}
	return kept;
}

/* The elements of the statement without what the store takes over. */
static List *
elements_kept(List *elements, struct frond_key_spec *key)
{
	List *kept = NIL;
	ListCell *cell;

	foreach (cell, elements) {
		Node *element = lfirst(cell);

		if (IsA(element, ColumnDef)) {
			ColumnDef *column = (ColumnDef *)element;

			column->constraints = frond_constraints_take(column->constraints,
								     column->colname, key);
		} else if (IsA(element, Constraint)) {
			Constraint *c = (Constraint *)element;

			if (!constraint_stays(c, c->keys, key))
				continue;
		}
		kept = lappend(kept, element);
	}
	foreach (cell, kept) {
		ColumnDef *column = lfirst(cell);

		if (IsA(column, ColumnDef) && has_name(key->columns, column->colname))
			column->is_not_null = true;
	}
	return kept;
}

/* "a, b desc" as names; with `descending` those with "desc" go there, too. */
static List *
option_columns(DefElem *option, List **descending)
{
	char *rest = pstrdup(defGetString(option)), *one;
	List *names = NIL;

	while ((one = strsep(&rest, ","))) {
		char *name = strtok(one, " \t"), *order = strtok(NULL, " \t");
		bool is_descending = order && pg_strcasecmp(order, "desc") == 0;

		if (!name || strtok(NULL, " \t") ||
		    (order &&
		     (!descending || (!is_descending && pg_strcasecmp(order, "asc") != 0))))
			ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("%s = '%s' is no list of columns", option->defname,
				       defGetString(option)));
		names = lappend(names, makeString(pstrdup(name)));
		if (is_descending)
			*descending = lappend(*descending, makeString(pstrdup(name)));
	}
	return names;
}

/* What only says how a heap lies on its pages, and when these are swept. */
static bool
is_of_heaps(const DefElem *option)
{
	static const char *const names[] = { "fillfactor", "parallel_workers",
					     "toast_tuple_target" };

	for (size_t i = 0; i < lengthof(names); i++)
		if (strcmp(option->defname, names[i]) == 0)
			return true;
	return strncmp(option->defname, "autovacuum_", strlen("autovacuum_")) == 0 ||
	       (option->defnamespace && strcmp(option->defnamespace, "toast") == 0);
}

bool
frond_storage_take(const DefElem *option)
{
	if (!is_of_heaps(option))
		return false;
	ereport(NOTICE,
		errmsg("the storage parameter \"%s\" means nothing in frond", option->defname));
	return true;
}

/* WITH (hash = 'a', range = 'b desc') beside the primary key. */
static void
options_take(List *options, struct frond_key_spec *key)
{
	List *range = NIL;
	ListCell *cell;

	foreach (cell, options) {
		DefElem *option = lfirst(cell);

		if (strcmp(option->defname, "hash") == 0)
			key->hash = option_columns(option, NULL);
		else if (strcmp(option->defname, "range") == 0)
			range = option_columns(option, &key->descending);
		else if (!frond_storage_take(option))
			ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("tables in frond have no storage parameter \"%s\"",
				       option->defname));
	}
	if (!key->columns && (key->hash || range))
		ereport(ERROR, errcode(ERRCODE_INVALID_TABLE_DEFINITION),
			errmsg("\"hash\" and \"range\" name columns of the primary key"));
	if (range && list_length(range) + list_length(key->hash) != list_length(key->columns))
		ereport(ERROR, errcode(ERRCODE_INVALID_TABLE_DEFINITION),
			errmsg("\"hash\" and \"range\" do not name the columns of the key"));
	foreach (cell, list_concat_copy(key->hash, range))
		if (!has_name(key->columns, strVal(lfirst(cell))))
			ereport(ERROR, errcode(ERRCODE_INVALID_TABLE_DEFINITION),
				errmsg("the column \"%s\" is none of the primary key",
				       strVal(lfirst(cell))));
	/* The order of the key in frond: hashed columns first. */
	if (range)
		key->columns = list_concat_copy(key->hash, range);
	else if (key->hash) {
		List *all = list_copy(key->hash);

		foreach (cell, key->columns)
			if (!has_name(key->hash, strVal(lfirst(cell))))
				all = lappend(all, lfirst(cell));
		key->columns = all;
	}
}

/* ---- Making the table in frond ---- */

static void
column_new(Relation rel, AttrNumber attnum, struct frows_new *ret)
{
	Form_pg_attribute a = TupleDescAttr(RelationGetDescr(rel), attnum - 1);

	*ret = (struct frows_new){
		.name = frond_column_name(rel, attnum),
		.kind = frond_kind_of(a->atttypid),
		.role = FROWS_REGULAR,
	};
}

static void
key_column_new(Relation rel, const struct frond_key_spec *key, const char *name,
	       struct frows_new *ret)
{
	AttrNumber attnum = get_attnum(RelationGetRelid(rel), name);
	Oid collation;

	if (attnum <= 0)
		ereport(ERROR, errcode(ERRCODE_UNDEFINED_COLUMN),
			errmsg("column \"%s\" named in key does not exist", name));
	column_new(rel, attnum, ret);
	if (ret->kind == FROWS_OTHER)
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("the column \"%s\" cannot be in a key: frond does not know the "
			       "order of %s",
			       name, format_type_be(get_atttype(RelationGetRelid(rel), attnum))));
	collation = TupleDescAttr(RelationGetDescr(rel), attnum - 1)->attcollation;
	if (OidIsValid(collation) && !get_collation_isdeterministic(collation))
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("the column \"%s\" cannot be in a key: its collation takes "
			       "different texts for equal",
			       name));
	ret->role = has_name(key->hash, name) ? FROWS_HASH : FROWS_RANGE;
	ret->descending = has_name(key->descending, name);
}

/* The columns that the table has in frond. Returns how many. */
static size_t
columns_new(Relation rel, const struct frond_key_spec *key, struct frows_new *ret)
{
	TupleDesc all = RelationGetDescr(rel);
	size_t count = 0;
	ListCell *cell;

	foreach (cell, key->columns)
		key_column_new(rel, key, strVal(lfirst(cell)), &ret[count++]);
	if (!key->columns)
		ret[count++] = (struct frows_new){ .name = FROND_HIDDEN_KEY,
						   .kind = FROWS_INT8,
						   .role = FROWS_RANGE };
	for (int i = 0; i < all->natts; i++) {
		Form_pg_attribute a = TupleDescAttr(all, i);

		if (!a->attisdropped && !has_name(key->columns, NameStr(a->attname)))
			column_new(rel, a->attnum, &ret[count++]);
	}
	return count;
}

static void
schema_ensure(struct frows *c, const char *schema)
{
	struct frows_text name;
	bool is_there = false;

	if (!frows_schemas(c))
		frond_fail(c);
	while (frows_name_next(c, &name))
		is_there |= name.len == strlen(schema) && memcmp(name.ptr, schema, name.len) == 0;
	if (!is_there && !frows_schema_create(c, schema))
		frond_fail(c);
}

void
frond_table_make(Relation rel, const struct frond_key_spec *key, bool again, bool within)
{
	const struct frond_key_spec no_key = { NIL };
	size_t room = (RelationGetNumberOfAttributes(rel) + 1) * sizeof(struct frows_new);
	struct frows_new *columns = palloc(room), *before = palloc(room);
	size_t count = columns_new(rel, key, columns);
	size_t before_count = again ? columns_new(rel, &no_key, before) : 0;
	const char *schema, *table;
	struct frows *c;
	Oid server;

	frond_table_names(RelationGetRelid(rel), &server, &schema, &table);
	c = within ? frond_link_define_within(server, GetUserId())
		   : frond_link_for_schema(server, GetUserId());
	if (again && !frows_table_drop(c, schema, table))
		frond_fail(c);
	/* A request that fails makes the transaction fail. */
	if (frond_link_has_written(server, GetUserId()) && !again)
		schema_ensure(c, schema);
	if (!frows_table_create(c, schema, table, columns, count, NULL)) {
		if (strcmp(frows_failure(c)->state, "3F000") != 0)
			frond_fail(c);
		if (!frows_schema_create(c, schema) &&
		    strcmp(frows_failure(c)->state, "42P06") != 0)
			frond_fail(c);
		if (!frows_table_create(c, schema, table, columns, count, NULL))
			frond_fail(c);
	}
	frond_link_made(server, GetUserId(), schema, table, NULL, before, before_count);
}

/* ---- CREATE TABLE ---- */

static bool
is_frond(const char *method)
{
	return method && strcmp(method, "frond") == 0;
}

enum created {
	CREATED_BY_OTHERS,
	CREATED_HERE,
	CREATED_AS_HEAP, /* frond is the default, and cannot make it */
};

static enum created
create_is_ours(const CreateStmt *statement)
{
	const char *why = NULL;

	if (statement->accessMethod ? !is_frond(statement->accessMethod)
				    : !is_frond(default_table_access_method))
		return CREATED_BY_OTHERS;
	if (statement->relation->relpersistence == RELPERSISTENCE_TEMP)
		why = "temporary tables";
	else if (statement->relation->relpersistence == RELPERSISTENCE_UNLOGGED)
		why = "unlogged tables";
	else if (statement->partspec || statement->partbound)
		why = "partitions";
	else if (statement->inhRelations)
		why = "inheritance";
	else if (statement->ofTypename)
		why = "tables of a type";
	if (!why)
		return CREATED_HERE;
	if (statement->accessMethod)
		refuse(why);
	/* A partitioned table has no access method. */
	return statement->partspec ? CREATED_BY_OTHERS : CREATED_AS_HEAP;
}

static void
create_heap(const struct utility *u, CreateStmt *from)
{
	CreateStmt *statement = copyObject(from);

	frond_foreign_check_local(statement->tableElts);
	statement->accessMethod = pstrdup("heap");
	run_other((Node *)statement, (void *)u);
}

/* Whether a table of this database, which may have been renamed, has that name in frond, or one
 * that this transaction has dropped and frond still has. */
static bool
is_name_used(const char *schema, const char *table)
{
	Oid types[] = { TEXTARRAYOID };
	Datum options[] = { CStringGetTextDatum(psprintf("%s=%s", FROND_OPTION_SCHEMA, schema)),
			    CStringGetTextDatum(psprintf("%s=%s", FROND_OPTION_TABLE, table)) };
	Datum values[] = { PointerGetDatum(
		construct_array(options, lengthof(options), TEXTOID, -1, false, TYPALIGN_INT)) };
	bool ret;

	if (frond_link_drops(schema, table, NULL))
		return true;
	if (SPI_connect() != SPI_OK_CONNECT ||
	    SPI_execute_with_args("SELECT 1 FROM pg_catalog.pg_foreign_table"
				  " WHERE ftoptions OPERATOR(pg_catalog.@>) $1",
				  1, types, values, NULL, true, 1) != SPI_OK_SELECT)
		elog(ERROR, "the foreign tables are not found");
	ret = SPI_processed > 0;
	SPI_finish();
	return ret;
}

/* A name that frond takes: one that it would refuse is cut, and has a hash of all of it behind. */
static char *
name_for_frond(const char *name)
{
	size_t len = strlen(name);
	char *ret = pstrdup(name);
	bool is_taken = len <= NAME_BYTES;

	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)ret[i]) || (unsigned char)ret[i] >= 0x80) {
			is_taken &= ret[i] == '_';
			ret[i] = '_';
		}
	if (is_taken)
		return ret;
	return psprintf("%.*s_%08x", NAME_BYTES - NAME_HASH_BYTES, ret,
			hash_bytes((const unsigned char *)name, (int)len));
}

/* What frond shall call a new table. */
static char *
name_in_frond(const char *schema, const char *table)
{
	char *ret = name_for_frond(table);

	for (int n = 1; is_name_used(schema, ret); n++)
		ret = name_for_frond(makeObjectName(table, NULL, psprintf("%d", n)));
	return ret;
}

static void
create_run(const struct utility *u, CreateStmt *from)
{
	CreateForeignTableStmt *statement = makeNode(CreateForeignTableStmt);
	CreateStmt *base = copyObject(from);
	struct frond_key_spec key = { NIL };
	struct frond_likes likes;
	Oid existing, namespace;
	ListCell *cell;
	char *schema;
	Relation rel;

	namespace = RangeVarGetAndCheckCreationNamespace(base->relation, NoLock, &existing);
	base->tableElts = elements_kept(frond_likes_expand(base->tableElts, &likes), &key);
	options_take(base->options, &key);
	if (likes.has_key && !key.hash && !key.descending) {
		key.hash = likes.hash;
		key.descending = likes.descending;
	}
	base->options = NIL;
	base->accessMethod = NULL;
	base->tablespacename = NULL;
	statement->base = *base;
	NodeSetTag(statement, T_CreateForeignTableStmt);
	statement->servername = frond_server_name;
	schema = name_for_frond(get_namespace_name(namespace));
	statement->options = list_make3(
		makeDefElem(FROND_OPTION_SCHEMA, (Node *)makeString(schema), -1),
		makeDefElem(FROND_OPTION_TABLE,
			    (Node *)makeString(name_in_frond(schema, base->relation->relname)), -1),
		makeDefElem(FROND_OPTION_MADE,
			    (Node *)makeString(pstrdup(frond_database_id(MyDatabaseId))), -1));
	run_other((Node *)statement, (void *)u);
	if (OidIsValid(existing))
		return;
	CommandCounterIncrement();
	rel = relation_open(get_relname_relid(base->relation->relname, namespace),
			    AccessExclusiveLock);
	frond_table_make(rel, &key, false, false);
	frond_catalog_key_add(rel, &key);
	foreach (cell, key.unique)
		frond_index_add_unique(RelationGetRelid(rel), lfirst(cell));
	foreach (cell, key.foreign)
		frond_foreign_add(RelationGetRelid(rel), lfirst(cell), true);
	frond_likes_finish(RelationGetRelid(rel), &likes);
	relation_close(rel, NoLock);
	if (u->completion)
		SetQueryCompletion(u->completion, CMDTAG_CREATE_TABLE, 0);
}

/* ---- CREATE TABLE AS ---- */

static bool
create_as_is_ours(const CreateTableAsStmt *statement)
{
	const IntoClause *into = statement->into;

	if (statement->objtype != OBJECT_TABLE ||
	    into->rel->relpersistence != RELPERSISTENCE_PERMANENT)
		return false;
	return is_frond(into->accessMethod ? into->accessMethod : default_table_access_method);
}

/* What frond cannot make of a query while it is the default: PostgreSQL keeps it for itself. */
static bool
create_as_is_heaps(const CreateTableAsStmt *statement)
{
	return !statement->into->accessMethod && is_frond(default_table_access_method) &&
	       (statement->objtype == OBJECT_MATVIEW ||
		statement->into->rel->relpersistence != RELPERSISTENCE_PERMANENT);
}

/* The table that the query's columns say. */
static CreateStmt *
create_of_query(const CreateTableAsStmt *from, const Query *query)
{
	const ListCell *name = list_head(from->into->colNames), *cell;
	CreateStmt *statement = makeNode(CreateStmt);

	foreach (cell, query->targetList) {
		const TargetEntry *entry = lfirst(cell);
		Node *e = (Node *)entry->expr;

		if (entry->resjunk)
			continue;
		statement->tableElts = lappend(
			statement->tableElts,
			makeColumnDef(name ? strVal(lfirst(name)) : entry->resname, exprType(e),
				      exprTypmod(e), exprCollation(e)));
		name = name ? lnext(from->into->colNames, name) : NULL;
	}
	if (name)
		ereport(ERROR, errcode(ERRCODE_SYNTAX_ERROR),
			errmsg("too many column names were specified"));
	statement->relation = copyObject(from->into->rel);
	statement->options = copyObject(from->into->options);
	statement->if_not_exists = from->if_not_exists;
	/* Which is refused of a table that stays. */
	statement->oncommit = from->into->onCommit;
	return statement;
}

/* The table is made, and the query's rows are inserted. */
static void
create_as_run(const struct utility *u, CreateTableAsStmt *from)
{
	Query *query = castNode(Query, copyObject(from->query));
	CreateStmt *statement;
	Oid existing, namespace;
	uint64 rows = 0;

	if (query->commandType == CMD_UTILITY)
		refuse("CREATE TABLE AS EXECUTE");
	namespace = RangeVarGetAndCheckCreationNamespace(from->into->rel, NoLock, &existing);
	statement = create_of_query(from, query);
	create_run(u, statement);
	if (!OidIsValid(existing) && !from->into->skipData) {
		const char *sql = psprintf("INSERT INTO %s %s",
					   quote_qualified_identifier(get_namespace_name(namespace),
								      from->into->rel->relname),
					   pg_get_querydef(query, false));

		if (SPI_connect() != SPI_OK_CONNECT || SPI_execute(sql, false, 0) < 0)
			elog(ERROR, "the statement failed: %s", sql);
		rows = SPI_processed;
		SPI_finish();
	}
	if (u->completion)
		SetQueryCompletion(u->completion, CMDTAG_SELECT, rows);
}

/* ---- Other statements ---- */

/* DROP TABLE of tables of both sorts is two statements. */
static void
drop_run(const struct utility *u, DropStmt *from)
{
	DropStmt *ours = copyObject(from), *others = copyObject(from);
	ListCell *cell;

	ours->removeType = OBJECT_FOREIGN_TABLE;
	ours->objects = others->objects = NIL;
	foreach (cell, from->objects) {
		Oid relid = RangeVarGetRelid(makeRangeVarFromNameList(lfirst(cell)), NoLock, true);

		if (OidIsValid(relid) && frond_is_table(relid))
			ours->objects = lappend(ours->objects, lfirst(cell));
		else
			others->objects = lappend(others->objects, lfirst(cell));
	}
	if (others->objects || !ours->objects)
		run_other((Node *)others, (void *)u);
	if (ours->objects)
		run_other((Node *)ours, (void *)u);
	if (u->completion)
		SetQueryCompletion(u->completion, CMDTAG_DROP_TABLE, 0);
}

/* Indexes of frond's go when the transaction commits; PostgreSQL drops, or misses, all others. */
static void
drop_indexes_run(const struct utility *u, DropStmt *from)
{
	DropStmt *others = copyObject(from);
	ListCell *cell;

	others->objects = NIL;
	foreach (cell, from->objects) {
		List *name = lfirst(cell);
		Oid relid = frond_index_find(name);

		if (!OidIsValid(relid) ||
		    !frond_index_drop(relid, strVal(llast(name)), FROND_INDEX_ALONE))
			others->objects = lappend(others->objects, name);
	}
	if (others->objects)
		run_other((Node *)others, (void *)u);
	if (u->completion)
		SetQueryCompletion(u->completion, CMDTAG_DROP_INDEX, 0);
}

/* COPY … TO is of a query: PostgreSQL does it so for views, and refuses foreign tables. */
static void
copy_to_query(CopyStmt *statement, Oid relid)
{
	Relation rel = relation_open(relid, AccessShareLock);
	List *names = statement->attlist;
	StringInfoData sql;
	ListCell *cell;

	for (int i = 0; !statement->attlist && i < RelationGetNumberOfAttributes(rel); i++) {
		Form_pg_attribute a = TupleDescAttr(RelationGetDescr(rel), i);

		if (!a->attisdropped && !a->attgenerated)
			names = lappend(names, makeString(NameStr(a->attname)));
	}
	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT ");
	foreach (cell, names) {
		const char *name = strVal(lfirst(cell));
		AttrNumber attnum = get_attnum(relid, name);

		if (attnum > 0 && TupleDescAttr(RelationGetDescr(rel), attnum - 1)->attgenerated)
			ereport(ERROR, errcode(ERRCODE_INVALID_COLUMN_REFERENCE),
				errmsg("column \"%s\" is a generated column", name),
				errdetail("Generated columns cannot be used in COPY."));
		appendStringInfo(&sql, "%s%s", foreach_current_index(cell) ? ", " : "",
				 quote_identifier(name));
	}
	appendStringInfo(&sql, " FROM %s",
			 quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)),
						    RelationGetRelationName(rel)));
	statement->query = linitial_node(RawStmt, raw_parser(sql.data, RAW_PARSE_DEFAULT))->stmt;
	statement->relation = NULL;
	statement->attlist = NIL;
	relation_close(rel, NoLock);
}

/* FREEZE means nothing where there are no old versions of rows. */
static void
copy_run(const struct utility *u, CopyStmt *from)
{
	CopyStmt *statement = copyObject(from);
	Oid relid = statement->relation ? RangeVarGetRelid(statement->relation, NoLock, true)
					: InvalidOid;
	ListCell *cell;

	if (statement->is_from && OidIsValid(relid)) {
		if (!frond_is_table(relid)) {
			if (get_rel_persistence(relid) != RELPERSISTENCE_TEMP)
				frond_link_local_write();
		} else {
			foreach (cell, statement->options)
				if (strcmp(((DefElem *)lfirst(cell))->defname, "freeze") == 0)
					statement->options = foreach_delete_current(
						statement->options, cell);
		}
	}
	if (!statement->is_from && OidIsValid(relid) && frond_is_table(relid))
		copy_to_query(statement, relid);
	if (OidIsValid(relid) && frond_is_table(relid) &&
	    frond_copy_has_numbers(statement, relid)) {
		uint64 rows = frond_copy_from(statement, u->text, u->environment);

		if (u->completion)
			SetQueryCompletion(u->completion, CMDTAG_COPY, rows);
		return;
	}
	run_other((Node *)statement, (void *)u);
}

static bool
is_ours(const RangeVar *name)
{
	Oid relid = name ? RangeVarGetRelid(name, NoLock, true) : InvalidOid;

	return OidIsValid(relid) && frond_is_table(relid);
}

static void
create_index_run(const struct utility *u, IndexStmt *statement)
{
	ListCell *cell;

	foreach (cell, statement->options)
		ereport(NOTICE, errmsg("the storage parameter \"%s\" means nothing in frond",
				       ((DefElem *)lfirst(cell))->defname));
	frond_index_create(RangeVarGetRelid(statement->relation, AccessExclusiveLock, false),
			   copyObject(statement));
	if (u->completion)
		SetQueryCompletion(u->completion, CMDTAG_CREATE_INDEX, 0);
}

/* ---- LOCK TABLE ---- */

/* Who may do what the mode is for. */
static void
lock_allow(const RangeVar *name, Oid relid, Oid old, void *arg)
{
	const LOCKMODE mode = *(const LOCKMODE *)arg;
	const AclMode writes = ACL_UPDATE | ACL_DELETE | ACL_TRUNCATE;
	AclResult result;

	if (!OidIsValid(relid))
		return;
	result = pg_class_aclcheck(relid, GetUserId(),
				   mode == AccessShareLock    ? ACL_SELECT
				   : mode == RowExclusiveLock ? writes | ACL_INSERT
							      : writes);
	if (result != ACLCHECK_OK)
		aclcheck_error(result, OBJECT_TABLE, name->relname);
}

/* PostgreSQL refuses LOCK TABLE of foreign tables, although every statement that reads or writes
 * one takes a lock of it. So this statement takes one, too. */
static void
lock_run(const struct utility *u, const LockStmt *from)
{
	LOCKMODE mode = from->mode;
	ListCell *cell;

	foreach (cell, from->relations) {
		LockStmt *other;

		if (is_ours(lfirst(cell))) {
			RequireTransactionBlock(u->context == PROCESS_UTILITY_TOPLEVEL,
						"LOCK TABLE");
			(void)RangeVarGetRelidExtended(lfirst(cell), mode,
						       from->nowait ? RVR_NOWAIT : 0, lock_allow,
						       &mode);
			continue;
		}
		other = copyObject((LockStmt *)from);
		other->relations = list_make1(copyObject(lfirst(cell)));
		run_other((Node *)other, (void *)u);
	}
}

static void
utility_run(const struct utility *u)
{
	Node *statement = u->planned->utilityStmt;

	switch (nodeTag(statement)) {
	case T_CreateStmt:
		switch (create_is_ours((CreateStmt *)statement)) {
		case CREATED_HERE:
			create_run(u, (CreateStmt *)statement);
			return;
		case CREATED_AS_HEAP:
			create_heap(u, (CreateStmt *)statement);
			return;
		case CREATED_BY_OTHERS:
			frond_foreign_check_local(((CreateStmt *)statement)->tableElts);
			break;
		}
		break;
	case T_CreateTableAsStmt:
		if (create_as_is_ours((CreateTableAsStmt *)statement)) {
			create_as_run(u, (CreateTableAsStmt *)statement);
			return;
		}
		if (create_as_is_heaps((CreateTableAsStmt *)statement)) {
			CreateTableAsStmt *heap = copyObject((CreateTableAsStmt *)statement);

			heap->into->accessMethod = pstrdup("heap");
			run_other((Node *)heap, (void *)u);
			return;
		}
		break;
	case T_RefreshMatViewStmt:
		frond_link_local_write();
		break;
	case T_DropStmt:
		if (((DropStmt *)statement)->removeType == OBJECT_TABLE) {
			drop_run(u, (DropStmt *)statement);
			return;
		}
		if (((DropStmt *)statement)->removeType == OBJECT_INDEX) {
			drop_indexes_run(u, (DropStmt *)statement);
			return;
		}
		break;
	case T_CopyStmt:
		copy_run(u, (CopyStmt *)statement);
		return;
	case T_AlterTableStmt:
		if (frond_alter_table((AlterTableStmt *)statement, run_other, (void *)u))
			return;
		frond_foreign_check_local(((AlterTableStmt *)statement)->cmds);
		break;
	case T_AlterDomainStmt:
		run_next(u);
		frond_domain_check((AlterDomainStmt *)statement);
		return;
	case T_ConstraintsSetStmt:
		run_next(u);
		frond_references_set((ConstraintsSetStmt *)statement);
		return;
	case T_AlterSeqStmt:
		run_other((Node *)frond_sequence_owned((AlterSeqStmt *)statement), (void *)u);
		return;
	case T_DropdbStmt:
		frond_database_drop((DropdbStmt *)statement, run_other, (void *)u);
		return;
	case T_LockStmt:
		lock_run(u, (LockStmt *)statement);
		return;
	case T_RenameStmt:
		if (frond_rename((RenameStmt *)statement, run_other, (void *)u))
			return;
		break;
	case T_IndexStmt:
		if (is_ours(((IndexStmt *)statement)->relation)) {
			create_index_run(u, (IndexStmt *)statement);
			return;
		}
		break;
	default:
		break;
	}
	run_next(u);
}

static bool
keeps_query(const Node *statement)
{
	return IsA(statement, ViewStmt) || IsA(statement, RuleStmt) ||
	       IsA(statement, CreateFunctionStmt) ||
	       (IsA(statement, CreateTableAsStmt) &&
		((const CreateTableAsStmt *)statement)->objtype == OBJECT_MATVIEW);
}

static void
at_utility(PlannedStmt *planned, const char *text, bool read_only_tree,
	   ProcessUtilityContext context, ParamListInfo params, QueryEnvironment *environment,
	   DestReceiver *dest, QueryCompletion *completion)
{
	struct utility u = { planned, text,        read_only_tree, context,
			     params,  environment, dest,           completion };
	bool was = frond_at_top_level, was_in = frond_in_utility, was_def = frond_in_definition;

	if (!IsTransactionState()) {
		run_next(&u);
		return;
	}
	frond_at_top_level = context == PROCESS_UTILITY_TOPLEVEL;
	frond_in_utility = true;
	frond_in_definition = keeps_query(planned->utilityStmt);
	PG_TRY();
	{
		utility_run(&u);
	}
	PG_FINALLY();
	{
		frond_at_top_level = was;
		frond_in_utility = was_in;
		frond_in_definition = was_def;
	}
	PG_END_TRY();
}

/* ---- What else is heard ---- */

/* A statement that changes local tables. */
static void
at_executor_start(QueryDesc *query, int eflags)
{
	ListCell *cell;

	if (!(eflags & EXEC_FLAG_EXPLAIN_ONLY))
		foreach (cell, query->plannedstmt->resultRelations) {
			Oid relid = rt_fetch(lfirst_int(cell), query->plannedstmt->rtable)->relid;
			char kind = get_rel_relkind(relid);

			if ((kind == RELKIND_RELATION || kind == RELKIND_PARTITIONED_TABLE) &&
			    get_rel_persistence(relid) != RELPERSISTENCE_TEMP)
				frond_link_local_write();
		}
	if (next_executor_start)
		next_executor_start(query, eflags);
	else if (ExecutorStart_hook != at_executor_start || !frond_retry_start(query, eflags))
		standard_ExecutorStart(query, eflags);
}

/* A table that CREATE TABLE has made, or a column of one, goes: by whatever statement. */
static void
dropped(Oid relid, int column)
{
	const char *schema, *table, *name = NULL;
	Relation rel;
	Oid server;

	if (!frond_is_table(relid) ||
	    !frond_option(GetForeignTable(relid)->options, FROND_OPTION_MADE))
		return;
	frond_table_names(relid, &server, &schema, &table);
	if (column) {
		rel = relation_open(relid, NoLock);
		name = frond_column_name(rel, (AttrNumber)column);
		relation_close(rel, NoLock);
	}
	frond_link_drop_later(server, GetUserId(), schema, table, name);
}

static void
at_object_access(ObjectAccessType access, Oid catalog, Oid object, int part, void *arg)
{
	if (next_object_access)
		next_object_access(access, catalog, object, part, arg);
	if (access == OAT_DROP && catalog == RelationRelationId && part >= 0)
		dropped(object, part);
}

void
frond_ddl_init(void)
{
	next_utility = ProcessUtility_hook;
	ProcessUtility_hook = at_utility;
	next_executor_start = ExecutorStart_hook;
	ExecutorStart_hook = at_executor_start;
	next_object_access = object_access_hook;
	object_access_hook = at_object_access;
}
