/* What frond has of foreign tables: ids, columns, keys and indexes, kept until one changes. */
#include "frond_pg.h"
#include "frond_catalog.h"
#include "frond_computed.h"
#include "frond_own.h"

#include "catalog/pg_type.h"
#include "access/stratnum.h"
#include "nodes/makefuncs.h"
#include "utils/typcache.h"
#include "foreign/fdwapi.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_foreign_table.h"
#include "commands/defrem.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

enum {
	TABLES_FIRST = 64,
	ROWS_KEPT_MS = 10 * 1000, /* for so long an estimate is good */
	ROWS_WRITTEN_LEAST = 50,  /* and until this backend has written so many rows, and … */
	ROWS_WRITTEN_PART = 5,    /* … more than this part of them */
};

struct entry {
	Oid relid;
	MemoryContext memory; /* NULL: it has to be asked for */
	struct frond_table *table;
	TimestampTz rows_at; /* when frond has estimated the rows; 0: it has to be asked */
	double rows;
	bool rows_exact;
	double added;   /* by this transaction; less than 0: more were deleted */
	double written; /* since frond was asked: by this transaction and by earlier ones */
};

Oid frond_acting_user;

static HTAB *entries;
static struct entry *latest; /* the entry that was looked up last; none is ever removed */
static bool has_added;       /* some entry has rows that this transaction has added */
static List *stale;          /* of MemoryContext: somebody may still use what is there */

/* NULL: nobody has asked for the table. A statement asks for one of them several times. */
static struct entry *
entry_find(Oid relid)
{
	if (!latest || latest->relid != relid)
		latest = hash_search(entries, &relid, HASH_FIND, NULL);
	return latest;
}

/* ---- Names ---- */

bool
frond_is_table(Oid relid)
{
	const struct entry *e = entry_find(relid);
	ForeignServer *server;
	ForeignDataWrapper *wrapper;

	/* What follows reads options each time. */
	if (e && e->memory)
		return true;
	if (get_rel_relkind(relid) != RELKIND_FOREIGN_TABLE)
		return false;
	server = GetForeignServer(GetForeignServerIdByRelId(relid));
	wrapper = GetForeignDataWrapper(server->fdwid);
	return strcmp(wrapper->fdwname, "frond") == 0;
}

void
frond_table_names(Oid relid, Oid *ret_server, const char **ret_schema, const char **ret_table)
{
	ForeignTable *table = GetForeignTable(relid);
	const char *schema = frond_option(table->options, FROND_OPTION_SCHEMA);
	const char *name = frond_option(table->options, FROND_OPTION_TABLE);

	*ret_server = table->serverid;
	*ret_schema = schema ? schema : get_namespace_name(get_rel_namespace(relid));
	*ret_table = name ? name : get_rel_name(relid);
}

const char *
frond_column_name(Relation rel, AttrNumber attnum)
{
	List *options = GetForeignColumnOptions(RelationGetRelid(rel), attnum);
	const char *name = frond_option(options, FROND_OPTION_COLUMN);

	return name ? name : NameStr(TupleDescAttr(RelationGetDescr(rel), attnum - 1)->attname);
}

Oid
frond_user_of(const RangeTblEntry *rte)
{
	if (OidIsValid(frond_acting_user))
		return frond_acting_user;
	return OidIsValid(rte->checkAsUser) ? rte->checkAsUser : GetUserId();
}

struct frows_of
frond_table_of(const struct frond_table *t)
{
	return (struct frows_of){ t->schema, t->table, t->id };
}

const struct frond_column *
frond_key_column(const struct frond_table *t, int key)
{
	AttrNumber attnum = t->key[key].attnum;

	return attnum ? &t->columns[attnum - 1] : &t->hidden;
}

/* ---- Asking frond ---- */

const struct frows_column *
frond_stored_column(const struct frows_table *f, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < f->count; i++)
		if (f->columns[i].name.len == len && memcmp(f->columns[i].name.ptr, name, len) == 0)
			return &f->columns[i];
	return NULL;
}

/* A column of PostgreSQL's beside the one of frond's that it is. */
static void
column_fill(Relation rel, const struct frows_table *f, int i, struct frond_table *t)
{
	Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(rel), i);
	struct frond_column *c = &t->columns[i];
	const struct frows_column *from;
	const char *name;

	if (attribute->attisdropped)
		return;
	name = frond_column_name(rel, attribute->attnum);
	from = frond_stored_column(f, name);
	if (!from)
		ereport(ERROR, errcode(ERRCODE_UNDEFINED_COLUMN),
			errmsg("the table \"%s\" has no column \"%s\" in frond",
			       RelationGetRelationName(rel), name));
	frond_column_set_type(c, attribute->atttypid, attribute->atttypmod);
	/* What goes as its text may be read as that. */
	if (from->kind == FROWS_OTHER && (c->type == TEXTOID || c->type == VARCHAROID))
		c->kind = FROWS_OTHER;
	if (c->kind != from->kind)
		ereport(ERROR, errcode(ERRCODE_DATATYPE_MISMATCH),
			errmsg("the column \"%s\" of \"%s\" has another type in frond: %.*s", name,
			       RelationGetRelationName(rel), (int)from->type.len, from->type.ptr));
	c->is_there = true;
	c->not_null = attribute->attnotnull;
	c->id = from->id;
	c->ordered = from->ordered;
	if (from < f->columns + f->key_count) {
		struct frond_key_column *key = &t->key[from - f->columns];

		c->is_key = true;
		key->attnum = attribute->attnum;
		key->descending = from->descending;
	}
}

static void
hidden_fill(const struct frows_column *from, struct frond_table *t)
{
	t->has_hidden_key = true;
	t->hidden.is_there = t->hidden.is_key = t->hidden.ordered = true;
	t->hidden.kind = FROWS_INT8;
	t->hidden.type = INT8OID;
	t->hidden.id = from->id;
}

static void
key_check(Relation rel, const struct frows_table *f, struct frond_table *t)
{
	if (f->key_count == 1 && !t->key[0].attnum && f->columns[0].kind == FROWS_INT8 &&
	    frond_stored_column(f, FROND_HIDDEN_KEY) == f->columns) {
		hidden_fill(f->columns, t);
		return;
	}
	for (int i = 0; i < t->key_count; i++)
		if (!t->key[i].attnum)
			ereport(ERROR, errcode(ERRCODE_FDW_INCONSISTENT_DESCRIPTOR_INFORMATION),
				errmsg("the foreign table \"%s\" lacks the column \"%.*s\" of the "
				       "key",
				       RelationGetRelationName(rel), (int)f->columns[i].name.len,
				       f->columns[i].name.ptr));
}

static void
table_fill(Relation rel, const struct frows_table *f, struct frond_table *t)
{
	memcpy(t->id, f->id, sizeof(t->id));
	t->natts = RelationGetNumberOfAttributes(rel);
	frond_computed_find(f, t);
	if (f->key_count > FROWS_KEY_COLUMNS)
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("a key has %d columns at most", FROWS_KEY_COLUMNS));
	t->key_count = (int)f->key_count;
	for (size_t i = 0; i < f->key_count; i++)
		t->hash_count += f->columns[i].role == FROWS_HASH;
	for (int i = 0; i < t->natts; i++)
		column_fill(rel, f, i, t);
	key_check(rel, f, t);
}

/* ---- Indexes ---- */

const struct frond_index *
frond_index_numbered(const struct frond_table *t, uint32 number)
{
	for (int i = 0; i < t->index_count; i++)
		if (t->indexes[i].number == number)
			return &t->indexes[i];
	return NULL;
}

const struct frond_index *
frond_index_named(const struct frond_table *t, const char *name)
{
	for (int i = 0; i < t->index_count; i++)
		if (strcmp(t->indexes[i].name, name) == 0)
			return &t->indexes[i];
	return NULL;
}

const struct frond_index *
frond_index_stored(const struct frond_table *t, const char *stored)
{
	for (int i = 0; i < t->index_count; i++)
		if (strcmp(t->indexes[i].stored, stored) == 0)
			return &t->indexes[i];
	return NULL;
}

/* 0: PostgreSQL's table has no column for it. */
static AttrNumber
attnum_of(const struct frond_table *t, uint32 id)
{
	for (int i = 0; i < t->natts + t->computed_count; i++)
		if (t->columns[i].is_there && t->columns[i].id == id)
			return (AttrNumber)(i + 1);
	return InvalidAttrNumber;
}

/* A condition on a column as PostgreSQL would write it; NULL: it has no such operator. */
static Expr *
condition_expr(Relation rel, const struct frond_table *t, const struct frows_condition *from)
{
	static const int strategies[] = {
		[FROWS_CONDITION_EQ] = BTEqualStrategyNumber,
		[FROWS_CONDITION_NE] = InvalidStrategy,
		[FROWS_CONDITION_LT] = BTLessStrategyNumber,
		[FROWS_CONDITION_LE] = BTLessEqualStrategyNumber,
		[FROWS_CONDITION_GT] = BTGreaterStrategyNumber,
		[FROWS_CONDITION_GE] = BTGreaterEqualStrategyNumber,
	};
	AttrNumber attnum = attnum_of(t, from->column);
	const struct frond_column *c = attnum ? &t->columns[attnum - 1] : NULL;
	Form_pg_attribute a = attnum ? TupleDescAttr(RelationGetDescr(rel), attnum - 1) : NULL;
	Expr *var, *value;
	Oid type, opno;
	int16 len;
	bool by_value;

	if (!c)
		return NULL;
	var = (Expr *)makeVar(1, attnum, a->atttypid, a->atttypmod, a->attcollation, 0);
	if (from->op == FROWS_CONDITION_NOT_NULL) {
		NullTest *test = makeNode(NullTest);

		test->arg = var;
		test->nulltesttype = IS_NOT_NULL;
		test->location = -1;
		return (Expr *)test;
	}
	if (c->type == BOOLOID && from->op == FROWS_CONDITION_EQ)
		return DatumGetBool(frond_value_get(c, from->value)) ? var : make_notclause(var);
	type = c->type == VARCHAROID ? TEXTOID : c->type == CIDROID ? INETOID : c->type;
	if (from->op > FROWS_CONDITION_GE || strategies[from->op] == InvalidStrategy)
		return NULL;
	opno = get_opfamily_member(lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY)->btree_opf,
				   type, type, (int16)strategies[from->op]);
	if (!OidIsValid(opno))
		return NULL;
	if (a->atttypid != type)
		var = (Expr *)makeRelabelType(var, type, -1, a->attcollation, COERCE_IMPLICIT_CAST);
	get_typlenbyval(type, &len, &by_value);
	value = (Expr *)makeConst(type, -1, get_typcollation(type), len,
				  frond_value_get(c, from->value), false, by_value);
	return make_opclause(opno, BOOLOID, false, var, value, InvalidOid, a->attcollation);
}

/* The index of PostgreSQL's catalog that frond has by that name. InvalidOid: it has none. */
static Oid
catalog_index(List *oids, const char *stored)
{
	ListCell *cell;

	foreach (cell, oids)
		if (strcmp(frond_catalog_index_stored(lfirst_oid(cell)), stored) == 0)
			return lfirst_oid(cell);
	return InvalidOid;
}

/* An index whose columns or conditions PostgreSQL does not have is not usable. */
static void
index_fill(Relation rel, struct frond_table *t, List *oids, const struct frows_index *from,
	   struct frond_index *ret)
{
	List *condition;

	ret->number = from->number;
	ret->stored = ret->name = pnstrdup(from->name.ptr, from->name.len);
	ret->oid = catalog_index(oids, ret->stored);
	if (OidIsValid(ret->oid))
		ret->name = get_rel_name(ret->oid);
	condition = frond_computed_load(t, (int)(ret - t->indexes), ret->oid, from);
	ret->is_unique = from->unique;
	ret->is_usable = from->known && from->ready && from->count <= FROWS_KEY_COLUMNS;
	for (size_t i = 0; i < from->count && i < FROWS_KEY_COLUMNS; i++) {
		AttrNumber attnum = attnum_of(t, from->columns[i].id);

		ret->columns[i].attnum = attnum;
		ret->columns[i].descending = from->columns[i].descending;
		ret->ordered[i] = from->columns[i].ordered;
		ret->carried = bms_add_member(ret->carried, attnum);
		ret->is_usable &= attnum != InvalidAttrNumber;
	}
	for (size_t i = 0; i < from->included_count; i++)
		ret->carried = bms_add_member(ret->carried, attnum_of(t, from->included[i]));
	if (!from->included_count)
		ret->carried = NULL;
	ret->predicate = condition;
	for (size_t i = 0; i < from->condition_count && !condition; i++) {
		Expr *e = condition_expr(rel, t, &from->conditions[i]);

		if (e)
			ret->predicate = lappend(ret->predicate, e);
		else
			ret->is_usable = false;
	}
	ret->has_groups = from->groups;
	ret->count = ret->is_usable ? (int)from->count : 0;
}

static void
indexes_load(Relation rel, struct frows *c, struct frond_table *t)
{
	List *oids = frond_catalog_index_oids(t->relid);
	struct frows_indexes all;

	if (!frows_indexes(c, t->schema, t->table, &all))
		frond_fail(c);
	PG_TRY();
	{
		t->indexes = palloc0((all.count + 1) * sizeof(*t->indexes));
		for (size_t i = 0; i < all.count; i++)
			index_fill(rel, t, oids, &all.all[i], &t->indexes[t->index_count++]);
	}
	PG_FINALLY();
	{
		frows_indexes_free(&all);
	}
	PG_END_TRY();
}

static void
entry_load(struct entry *e, Oid user)
{
	Relation rel = relation_open(e->relid, NoLock);
	MemoryContext memory = AllocSetContextCreate(CurrentMemoryContext, "a table of frond's",
						     ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(memory);
	struct frond_table *t = palloc0(sizeof(*t));
	struct frows_table f;
	struct frows *c;

	t->relid = e->relid;
	frond_table_names(e->relid, &t->server, &t->schema, &t->table);
	c = frond_link_outside(t->server, user);
	if (!frows_table(c, t->schema, t->table, &f))
		frond_fail(c);
	PG_TRY();
	{
		table_fill(rel, &f, t);
	}
	PG_FINALLY();
	{
		frows_table_free(&f);
	}
	PG_END_TRY();
	indexes_load(rel, c, t);
	frond_computed_check(t);
	frond_references_load(e->relid, t);
	frond_uniques_load(t);
	MemoryContextSwitchTo(old);
	relation_close(rel, NoLock);
	MemoryContextSetParent(memory, CacheMemoryContext);
	e->memory = memory;
	e->table = t;
}

const struct frond_table *
frond_table_get(Oid relid, Oid user)
{
	struct entry *e = entry_find(relid);

	if (!e) {
		e = hash_search(entries, &relid, HASH_ENTER, NULL);
		*e = (struct entry){ .relid = relid };
	}
	if (!e->memory)
		entry_load(e, user);
	return e->table;
}

/* ---- How many rows there are ---- */

/* Whether frond has to be asked. What this transaction has written it does not count. */
static bool
estimate_is_old(const struct entry *e, TimestampTz now)
{
	if (!e->rows_at)
		return true;
	return !e->added &&
	       (TimestampDifferenceExceeds(e->rows_at, now, ROWS_KEPT_MS) ||
		(e->written > ROWS_WRITTEN_LEAST && e->written > e->rows / ROWS_WRITTEN_PART));
}

double
frond_table_rows(const struct frond_table *t, Oid user, bool *ret_exact)
{
	struct entry *e = entry_find(t->relid);
	TimestampTz now = GetCurrentTimestamp();

	if (estimate_is_old(e, now)) {
		uint64_t rows;
		bool exact;

		if (!frows_estimate(frond_link_outside(t->server, user), t->schema, t->table, &rows,
				    &exact))
			return -1;
		e->rows = (double)rows;
		e->rows_exact = exact;
		e->rows_at = now;
		e->written = 0;
	}
	*ret_exact = e->rows_exact;
	return Max(e->rows + e->added, 0);
}

void
frond_table_wrote(const struct frond_table *t, int rows, int added)
{
	struct entry *e = entry_find(t->relid);

	e->written += rows;
	e->added += added;
	has_added |= added != 0;
}

/* The transaction has ended: what it has added counts, or what it has written is to be asked. */
static void
estimates_settle(bool committed)
{
	HASH_SEQ_STATUS all;
	struct entry *e;

	if (!has_added)
		return;
	has_added = false;
	hash_seq_init(&all, entries);
	while ((e = hash_seq_search(&all))) {
		if (!committed && e->added)
			e->rows_at = 0;
		e->rows = Max(e->rows + e->added, 0);
		e->added = 0;
	}
}

/* ---- Forgetting ---- */

static void
entry_forget(struct entry *e)
{
	MemoryContext old;

	if (!e->memory)
		return;
	frond_own_forget(e->relid);
	old = MemoryContextSwitchTo(TopMemoryContext);
	stale = lappend(stale, e->memory);
	MemoryContextSwitchTo(old);
	e->memory = NULL;
}

static void
at_change(Datum arg, Oid relid)
{
	HASH_SEQ_STATUS all;
	struct entry *e;

	hash_seq_init(&all, entries);
	while ((e = hash_seq_search(&all)))
		if (!OidIsValid(relid) || e->relid == relid)
			entry_forget(e);
}

void
frond_table_forget(void)
{
	at_change((Datum)0, InvalidOid);
}

static void
at_xact(XactEvent event, void *arg)
{
	ListCell *cell;

	if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT)
		return;
	estimates_settle(event == XACT_EVENT_COMMIT);
	foreach (cell, stale)
		MemoryContextDelete(lfirst(cell));
	list_free(stale);
	stale = NIL;
}

void
frond_table_init(void)
{
	HASHCTL how = { .keysize = sizeof(Oid), .entrysize = sizeof(struct entry) };

	entries = hash_create("frond's tables", TABLES_FIRST, &how, HASH_ELEM | HASH_BLOBS);
	CacheRegisterRelcacheCallback(at_change, (Datum)0);
	RegisterXactCallback(at_xact, NULL);
}
