/*
 * FOREIGN KEY while rows are written. A table in frond refers to another table in frond.
 *
 * A row that refers: its values are noted when it is written, and looked for in the other table
 * when the statement ends, or when the transaction commits if the constraint is deferred. They are
 * looked for within frond's transaction, which is serializable: what it has read cannot change
 * before it commits. So nothing is locked.
 *
 * A deferrable UNIQUE is kept in the same way: the values of rows are noted, and looked for at an
 * index which frond does not take for unique.
 *
 * A row that others refer to: PostgreSQL's own functions for such triggers do what ON DELETE and
 * ON UPDATE say, by statements that run like any other. Their permissions are the table owner's, as
 * always, but frond is asked as the person who writes: a transaction there belongs to one person.
 */
#include "frond_pg.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "common/hashfn.h"
#include "executor/spi.h"
#include "executor/tuptable.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

enum {
	KEYS_AT_ONCE = 1000, /* of one request */
	PENDING_FIRST = 256,
};

struct pending_key {
	Oid constraint;
	uint64 a, b; /* hashes of the values */
};

/* Values that are to be found in the table that a constraint refers to. How many there may be is
 * bounded by what a transaction may write. */
struct pending {
	struct pending_key key;
	Oid child, user;
	int level; /* of the subtransaction */
	struct frows_value *values;
};

/* A row that has gone while a deferred constraint refers to it. */
struct gone {
	Oid constraint, parent, child, user;
	int level;
	HeapTuple row;
};

/* What SET CONSTRAINTS has said; the last one that fits holds. */
struct mode {
	Oid constraint; /* InvalidOid: all */
	bool deferred;
	int level;
};

static MemoryContext memory; /* of all these; NULL: there are none */
static HTAB *pending;
static List *gone_rows; /* of struct gone */
static List *modes;     /* of struct mode */

/* ---- What the catalog has ---- */

/* The columns of a UNIQUE constraint. */
static int
columns_read(HeapTuple tuple, AttrNumber *ret)
{
	bool is_null;
	ArrayType *all = DatumGetArrayTypeP(
		SysCacheGetAttr(CONSTROID, tuple, Anum_pg_constraint_conkey, &is_null));
	int count = Min(ARR_DIMS(all)[0], INDEX_MAX_KEYS);

	memcpy(ret, ARR_DATA_PTR(all), count * sizeof(*ret));
	return count;
}

static void
reference_fill(HeapTuple tuple, struct frond_reference *ret)
{
	Form_pg_constraint form = (Form_pg_constraint)GETSTRUCT(tuple);
	Oid operators[INDEX_MAX_KEYS];

	*ret = (struct frond_reference){ .is_unique = form->contype == CONSTRAINT_UNIQUE };
	if (ret->is_unique) {
		ret->constraint = form->oid;
		ret->parent = form->conrelid;
		ret->is_deferred = form->condeferred;
		ret->count = columns_read(tuple, ret->own);
		return;
	}

	ret->constraint = form->oid;
	ret->parent = form->confrelid;
	ret->is_full = form->confmatchtype == FKCONSTR_MATCH_FULL;
	ret->is_deferred = form->condeferred;
	DeconstructFkConstraintRow(tuple, &ret->count, ret->own, ret->theirs, operators, NULL, NULL,
				   NULL, NULL);
}

static bool
is_kept_here(Form_pg_constraint form)
{
	return form->contype == CONSTRAINT_FOREIGN ||
	       (form->contype == CONSTRAINT_UNIQUE && form->condeferrable);
}

void
frond_references_load(Oid relid, struct frond_table *t)
{
	Relation all = table_open(ConstraintRelationId, AccessShareLock);
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple tuple;
	int room = 0;

	ScanKeyInit(&key, Anum_pg_constraint_conrelid, BTEqualStrategyNumber, F_OIDEQ,
		    ObjectIdGetDatum(relid));
	scan = systable_beginscan(all, ConstraintRelidTypidNameIndexId, true, NULL, 1, &key);
	while ((tuple = systable_getnext(scan))) {
		if (!is_kept_here((Form_pg_constraint)GETSTRUCT(tuple)))
			continue;
		if (t->reference_count == room) {
			room = 2 * room + 1;
			t->references = t->references ? repalloc(t->references,
								 room * sizeof(*t->references))
						      : palloc(room * sizeof(*t->references));
		}
		reference_fill(tuple, &t->references[t->reference_count++]);
	}
	systable_endscan(scan);
	table_close(all, AccessShareLock);
}

static const struct frond_reference *
reference_of(const struct frond_table *t, Oid constraint)
{
	for (int i = 0; i < t->reference_count; i++)
		if (t->references[i].constraint == constraint)
			return &t->references[i];
	return NULL;
}

Bitmapset *
frond_referenced_columns(const TriggerDesc *triggers)
{
	Bitmapset *all = NULL;

	for (int i = 0; triggers && i < triggers->numtriggers; i++) {
		const Trigger *trigger = &triggers->triggers[i];
		struct frond_reference r;
		HeapTuple tuple;

		if (!trigger->tgisinternal || !TRIGGER_FOR_ROW(trigger->tgtype))
			continue;
		tuple = SearchSysCache1(CONSTROID, ObjectIdGetDatum(trigger->tgconstraint));
		if (!HeapTupleIsValid(tuple))
			continue;
		reference_fill(tuple, &r);
		ReleaseSysCache(tuple);
		for (int j = 0; j < r.count; j++)
			all = bms_add_member(all, r.theirs[j]);
	}
	return all;
}

/* ---- Deferred constraints ---- */

static bool
is_deferred(Oid constraint, bool initially)
{
	for (int i = list_length(modes) - 1; i >= 0; i--) {
		const struct mode *mode = list_nth(modes, i);

		if (mode->constraint == constraint)
			return mode->deferred;
		if (!OidIsValid(mode->constraint)) {
			HeapTuple tuple = SearchSysCache1(CONSTROID, ObjectIdGetDatum(constraint));
			bool deferrable = HeapTupleIsValid(tuple) &&
					  ((Form_pg_constraint)GETSTRUCT(tuple))->condeferrable;

			if (HeapTupleIsValid(tuple))
				ReleaseSysCache(tuple);
			return deferrable && mode->deferred;
		}
	}
	return initially;
}

static MemoryContext
memory_get(void)
{
	HASHCTL how = { .keysize = sizeof(struct pending_key),
			.entrysize = sizeof(struct pending) };

	if (memory)
		return memory;
	memory = AllocSetContextCreate(TopTransactionContext, "references of frond's rows",
				       ALLOCSET_DEFAULT_SIZES);
	how.hcxt = memory;
	pending = hash_create("values that frond has to have", PENDING_FIRST, &how,
			      HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	return memory;
}

static void
mode_add(Oid constraint, bool deferred)
{
	MemoryContext old = MemoryContextSwitchTo(memory_get());
	struct mode *mode = palloc(sizeof(*mode));

	*mode = (struct mode){ constraint, deferred, GetCurrentTransactionNestLevel() };
	modes = lappend(modes, mode);
	MemoryContextSwitchTo(old);
}

/* All such constraints of that name in the schemas that the name means. */
static void
modes_add_named(const RangeVar *name, bool deferred)
{
	Relation all = table_open(ConstraintRelationId, AccessShareLock);
	List *schemas = name->schemaname
				? list_make1_oid(get_namespace_oid(name->schemaname, false))
				: fetch_search_path(true);
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple tuple;

	ScanKeyInit(&key, Anum_pg_constraint_conname, BTEqualStrategyNumber, F_NAMEEQ,
		    CStringGetDatum(name->relname));
	scan = systable_beginscan(all, InvalidOid, false, NULL, 1, &key);
	while ((tuple = systable_getnext(scan))) {
		Form_pg_constraint form = (Form_pg_constraint)GETSTRUCT(tuple);

		if (is_kept_here(form) && list_member_oid(schemas, form->connamespace) &&
		    frond_is_table(form->conrelid))
			mode_add(form->oid, deferred);
	}
	systable_endscan(scan);
	table_close(all, AccessShareLock);
}

void
frond_references_set(const ConstraintsSetStmt *statement)
{
	ListCell *cell;

	if (!statement->constraints)
		mode_add(InvalidOid, statement->deferred);
	foreach (cell, statement->constraints)
		modes_add_named(lfirst(cell), statement->deferred);
	if (!statement->deferred)
		frond_references_check(InvalidOid, false);
}

/* ---- Rows that refer to others ---- */

static const char *
values_text(const struct frond_table *t, const struct frond_reference *r,
	    const struct frows_value *values)
{
	StringInfoData names, texts;

	initStringInfo(&names);
	initStringInfo(&texts);
	for (int i = 0; i < r->count; i++) {
		const struct frond_column *c = &t->columns[r->own[i] - 1];
		FmgrInfo out = c->out;

		appendStringInfo(&names, "%s%s", i ? ", " : "",
				 get_attname(t->relid, r->own[i], false));
		appendStringInfo(&texts, "%s%s", i ? ", " : "",
				 OutputFunctionCall(&out, frond_value_get(c, values[i])));
	}
	return psprintf("Key (%s)=(%s)", names.data, texts.data);
}

static void
fail_missing(const struct frond_table *t, const struct frond_reference *r, const char *detail)
{
	const char *constraint = get_constraint_name(r->constraint);

	ereport(ERROR, errcode(ERRCODE_FOREIGN_KEY_VIOLATION),
		errmsg("insert or update on table \"%s\" violates foreign key constraint \"%s\"",
		       get_rel_name(t->relid), constraint),
		errdetail("%s", detail),
		err_generic_string(PG_DIAG_SCHEMA_NAME,
				   get_namespace_name(get_rel_namespace(t->relid))),
		err_generic_string(PG_DIAG_TABLE_NAME, get_rel_name(t->relid)),
		err_generic_string(PG_DIAG_CONSTRAINT_NAME, constraint));
}

void
frond_reference_note(const struct frond_table *t, Oid user, const struct frond_reference *r,
		     const struct frows_value *values)
{
	struct pending_key key = { .constraint = r->constraint };
	int nulls = 0;
	MemoryContext old;
	struct pending *p;
	bool found;

	if (SessionReplicationRole == SESSION_REPLICATION_ROLE_REPLICA)
		return;
	for (int i = 0; i < r->count; i++) {
		if (values[i].len < 0) {
			nulls++;
			continue;
		}
		key.a = hash_bytes_extended(values[i].ptr, values[i].len, key.a + 1);
		key.b = hash_bytes_extended(values[i].ptr, values[i].len, ~key.b);
	}
	if (r->is_full && nulls && nulls < r->count) {
		/* What the store refuses of the rows themselves is told first. */
		frond_modify_flush(t->relid, NULL);
		fail_missing(t, r,
			     "MATCH FULL does not allow mixing of null and nonnull key values.");
	}
	if (nulls)
		return;
	old = MemoryContextSwitchTo(memory_get());
	p = hash_search(pending, &key, HASH_ENTER, &found);
	if (!found) {
		p->child = t->relid;
		p->user = user;
		p->level = GetCurrentTransactionNestLevel();
		p->values = palloc(r->count * sizeof(*p->values));
		for (int i = 0; i < r->count; i++)
			p->values[i] = frond_value_copy(values[i]);
	}
	MemoryContextSwitchTo(old);
}

/* The value as the other table's column has it. False: it cannot have such a one. */
static bool
value_convert(const struct frond_column *to, struct frows_value v, struct frows_value *ret)
{
	int size = to->kind == FROWS_INT2 ? 2 : to->kind == FROWS_INT4 ? 4 : 8;
	uint8 *bytes;
	int64 n;

	*ret = v;
	if (to->kind != FROWS_INT2 && to->kind != FROWS_INT4 && to->kind != FROWS_INT8)
		return true;
	if (v.len == size)
		return true;
	n = frows_int(v);
	if (size < 8 &&
	    (n >= INT64CONST(1) << (8 * size - 1) || n < -(INT64CONST(1) << (8 * size - 1))))
		return false;
	bytes = palloc(size);
	frows_put_int(bytes, n, size);
	*ret = (struct frows_value){ bytes, size };
	return true;
}

/* How rows of the other table are found. */
struct finder {
	const struct frond_table *t;
	const struct frond_index *index; /* NULL: by the key */
	int from[FROWS_KEY_COLUMNS];     /* which of the values each of its columns is */
};

/* Whether the index tells rows apart by these columns. */
static bool
is_of(const struct frond_index *index, const Bitmapset *named)
{
	Bitmapset *columns = NULL;

	for (int i = 0; i < index->count; i++)
		columns = bms_add_member(columns, index->columns[i].attnum);
	return frond_index_tells_apart(index) && bms_equal(columns, named);
}

bool
frond_reference_target(const struct frond_table *t, const AttrNumber *columns, int count,
		       const struct frond_index **ret)
{
	Bitmapset *named = NULL, *key = NULL;

	for (int i = 0; i < count; i++)
		named = bms_add_member(named, columns[i]);
	for (int i = 0; i < t->key_count; i++)
		key = bms_add_member(key, t->key[i].attnum);
	*ret = NULL;
	if (bms_equal(named, key))
		return true;
	for (int i = 0; i < t->index_count; i++)
		if (is_of(&t->indexes[i], named)) {
			*ret = &t->indexes[i];
			return true;
		}
	return false;
}

static void
finder_init(struct finder *f, const struct frond_table *t, const struct frond_reference *r)
{
	const struct frond_key_column *columns;

	f->t = t;
	if (!frond_reference_target(t, r->theirs, r->count, &f->index))
		ereport(ERROR, errcode(ERRCODE_INVALID_FOREIGN_KEY),
			errmsg("the table \"%s\" has no unique index any more that the constraint "
			       "\"%s\" needs",
			       t->table, get_constraint_name(r->constraint)));
	columns = f->index ? f->index->columns : t->key;
	for (int i = 0; i < r->count; i++)
		for (int j = 0; j < r->count; j++)
			if (r->theirs[j] == columns[i].attnum)
				f->from[i] = j;
}

/* False: a value is none that the other table could have. */
static bool
finder_values(const struct finder *f, int count, const struct frows_value *values,
	      struct frows_value *ret)
{
	const struct frond_key_column *columns = f->index ? f->index->columns : f->t->key;

	for (int i = 0; i < count; i++)
		if (!value_convert(&f->t->columns[columns[i].attnum - 1], values[f->from[i]],
				   &ret[i]))
			return false;
	return true;
}

static bool
find_by_index(const struct finder *f, struct frows *c, int count, const struct frows_value *values)
{
	struct frows_value equal[FROWS_KEY_COLUMNS], place = { NULL, 0 }, none;
	struct frows_scan scan = { .of = frond_table_of(f->t),
				   .index = f->index->number,
				   .equal = equal,
				   .equal_count = count,
				   .rows = 1 };

	if (!finder_values(f, count, values, equal))
		return false;
	for (;;) {
		if (!frows_scan_page_at(c, &scan, place))
			frond_fail(c);
		if (frows_scan_row(c, &none))
			return true;
		if (!frows_has_more(c))
			return false;
		place = frond_value_copy(frows_scan_place(c));
	}
}

/* The first of them that is not there; `count`: all are. */
static int
find_by_key(const struct finder *f, struct frows *c, int columns, struct pending **all, int count)
{
	const struct frows_of of = frond_table_of(f->t);
	struct frows_value key[FROWS_KEY_COLUMNS], none;
	bool found;

	frows_get(c, &of, NULL, 0);
	for (int i = 0; i < count; i++) {
		if (!finder_values(f, columns, all[i]->values, key))
			return i;
		frows_get_key(c, key, columns);
	}
	if (!frows_get_run(c))
		frond_fail(c);
	for (int i = 0; i < count && frows_get_row(c, &found, &none); i++)
		if (!found)
			return i;
	return count;
}

static int
find_by_indexes(const struct finder *f, struct frows *c, int columns, struct pending **all,
		int count)
{
	for (int i = 0; i < count; i++)
		if (!find_by_index(f, c, columns, all[i]->values))
			return i;
	return count;
}

/* Whether a row still refers to these values, which may be long ago: it may have been deleted, or
 * refer to others. The owner of the table asks, as in PostgreSQL's own functions for this. */
static bool
still_refers(const struct frond_table *t, const struct frond_reference *r, const struct pending *p)
{
	Oid was_acting = frond_acting_user, was_user, types[FROWS_KEY_COLUMNS];
	bool has_snapshot = ActiveSnapshotSet(), found = false;
	Datum values[FROWS_KEY_COLUMNS];
	StringInfoData sql;
	Relation rel = relation_open(t->relid, AccessShareLock);
	int was_context;

	initStringInfo(&sql);
	appendStringInfo(&sql, "SELECT 1 FROM %s",
			 quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)),
						    RelationGetRelationName(rel)));
	for (int i = 0; i < r->count; i++) {
		const struct frond_column *c = &t->columns[r->own[i] - 1];

		appendStringInfo(&sql, " %s %s OPERATOR(pg_catalog.=) $%d", i ? "AND" : "WHERE",
				 quote_identifier(get_attname(t->relid, r->own[i], false)), i + 1);
		types[i] = c->type;
		values[i] = frond_value_get(c, p->values[i]);
	}
	GetUserIdAndSecContext(&was_user, &was_context);
	if (!has_snapshot)
		PushActiveSnapshot(GetTransactionSnapshot());
	PG_TRY();
	{
		frond_acting_user = p->user;
		SetUserIdAndSecContext(rel->rd_rel->relowner, was_context |
								      SECURITY_LOCAL_USERID_CHANGE |
								      SECURITY_NOFORCE_RLS);
		if (SPI_connect() != SPI_OK_CONNECT ||
		    SPI_execute_with_args(sql.data, r->count, types, values, NULL, false, 1) !=
			    SPI_OK_SELECT)
			elog(ERROR, "the statement failed: %s", sql.data);
		found = SPI_processed > 0;
		SPI_finish();
	}
	PG_FINALLY();
	{
		frond_acting_user = was_acting;
		SetUserIdAndSecContext(was_user, was_context);
	}
	PG_END_TRY();
	if (!has_snapshot)
		PopActiveSnapshot();
	relation_close(rel, AccessShareLock);
	return found;
}

/* ---- Deferrable UNIQUE constraints ---- */

/* Whether more than one row has these values, by the index of the constraint. */
static bool
are_several(const struct frond_table *t, const struct frond_index *index, struct frows *c,
	    const struct frond_reference *r, const struct frows_value *values)
{
	struct frows_value equal[FROWS_KEY_COLUMNS], place = { NULL, 0 }, none;
	struct frows_scan scan = { .of = frond_table_of(t),
				   .index = index->number,
				   .equal = equal,
				   .equal_count = index->count,
				   .rows = 2 };
	int found = 0;

	for (int i = 0; i < index->count; i++)
		for (int j = 0; j < r->count; j++)
			if (r->own[j] == index->columns[i].attnum)
				equal[i] = values[j];
	for (;;) {
		if (!frows_scan_page_at(c, &scan, place))
			frond_fail(c);
		while (frows_scan_row(c, &none))
			found++;
		if (found > 1 || !frows_has_more(c))
			return found > 1;
		place = frond_value_copy(frows_scan_place(c));
	}
}

/* Frond's transaction is serializable: whoever else writes such a row meets what was read here. */
static void
unique_check(const struct frond_table *t, const struct frond_reference *r, struct pending **all,
	     int count)
{
	const char *name = get_constraint_name(r->constraint);
	const struct frond_index *index = frond_index_named(t, name);
	struct frows *c;

	if (!index || !index->is_usable)
		ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("the index of the constraint \"%s\" is not there, or not built yet",
			       name));
	frond_modify_flush(t->relid, NULL);
	c = frond_link_inside(t->server, all[0]->user, false);
	for (int i = 0; i < count; i++) {
		CHECK_FOR_INTERRUPTS();
		if (!are_several(t, index, c, r, all[i]->values))
			continue;
		ereport(ERROR, errcode(ERRCODE_UNIQUE_VIOLATION),
			errmsg("duplicate key value violates unique constraint \"%s\"", name),
			errdetail("%s already exists.", values_text(t, r, all[i]->values)),
			err_generic_string(PG_DIAG_SCHEMA_NAME,
					   get_namespace_name(get_rel_namespace(t->relid))),
			err_generic_string(PG_DIAG_TABLE_NAME, get_rel_name(t->relid)),
			err_generic_string(PG_DIAG_CONSTRAINT_NAME, name));
	}
}

/* Of one constraint. */
static void
check_all(struct pending **all, int count)
{
	const struct frond_table *child = frond_table_get(all[0]->child, all[0]->user);
	const struct frond_reference *r = reference_of(child, all[0]->key.constraint);
	const struct frond_table *parent;
	struct finder f;
	struct frows *c;

	/* It was dropped since. */
	if (!r)
		return;
	if (r->is_unique) {
		unique_check(child, r, all, count);
		return;
	}
	parent = frond_table_get(r->parent, all[0]->user);
	/* What the store refuses of the rows themselves is told first. */
	frond_modify_flush(child->relid, NULL);
	frond_modify_flush(r->parent, NULL);
	c = frond_link_inside(parent->server, all[0]->user, false);
	finder_init(&f, parent, r);
	for (int i = 0; i < count;) {
		int some = Min(count - i, KEYS_AT_ONCE);
		int there = f.index ? find_by_indexes(&f, c, r->count, all + i, some)
				    : find_by_key(&f, c, r->count, all + i, some);

		CHECK_FOR_INTERRUPTS();
		i += there;
		if (there == some)
			continue;
		if (still_refers(child, r, all[i]))
			fail_missing(child, r,
				     psprintf("%s is not present in table \"%s\".",
					      values_text(child, r, all[i]->values),
					      get_rel_name(r->parent)));
		i++;
	}
}

static int
compare_constraints(const void *a, const void *b)
{
	const struct pending *x = *(struct pending *const *)a, *y = *(struct pending *const *)b;

	return x->key.constraint < y->key.constraint   ? -1
	       : x->key.constraint > y->key.constraint ? 1
						       : 0;
}

static bool
is_due(const struct pending *p, bool at_commit)
{
	const struct frond_reference *r;

	if (at_commit)
		return true;
	r = reference_of(frond_table_get(p->child, p->user), p->key.constraint);
	return !r || !is_deferred(r->constraint, r->is_deferred);
}

static void
pending_check(Oid child, bool at_commit)
{
	struct pending **all = palloc((hash_get_num_entries(pending) + 1) *
				      sizeof(struct pending *));
	MemoryContext work = AllocSetContextCreate(CurrentMemoryContext,
						   "references that are checked",
						   ALLOCSET_DEFAULT_SIZES),
		      old;
	HASH_SEQ_STATUS seq;
	struct pending *p;
	int count = 0, first = 0;

	hash_seq_init(&seq, pending);
	while ((p = hash_seq_search(&seq)))
		if ((!OidIsValid(child) || p->child == child) && is_due(p, at_commit))
			all[count++] = p;
	qsort(all, count, sizeof(struct pending *), compare_constraints);
	old = MemoryContextSwitchTo(work);
	for (int i = 1; i <= count; i++)
		if (i == count || compare_constraints(&all[i], &all[first]) != 0) {
			check_all(all + first, i - first);
			first = i;
		}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(work);
	for (int i = 0; i < count; i++)
		(void)hash_search(pending, &all[i]->key, HASH_REMOVE, NULL);
	pfree(all);
}

/* ---- Rows that others refer to ---- */

/* Calls one of PostgreSQL's functions for a trigger; frond is asked as this person. */
static void
run_action(PGFunction action, TriggerData *data, Oid user)
{
	LOCAL_FCINFO(call, 0);
	Oid was = frond_acting_user;

	InitFunctionCallInfoData(*call, NULL, 0, InvalidOid, (Node *)data, NULL);
	PG_TRY();
	{
		frond_acting_user = user;
		(void)action(call);
	}
	PG_FINALLY();
	{
		frond_acting_user = was;
	}
	PG_END_TRY();
}

/* The trigger as those functions want it: PostgreSQL keeps the other table of triggers alone that
 * may be deferred. */
static Trigger
trigger_of(const Trigger *from, Oid child)
{
	Trigger trigger = *from;

	trigger.tgconstrrelid = child;
	return trigger;
}

static PGFunction
action_of(char action, bool is_delete)
{
	switch (action) {
	case FKCONSTR_ACTION_RESTRICT:
		return is_delete ? RI_FKey_restrict_del : RI_FKey_restrict_upd;
	case FKCONSTR_ACTION_CASCADE:
		return is_delete ? RI_FKey_cascade_del : RI_FKey_cascade_upd;
	case FKCONSTR_ACTION_SETNULL:
		return is_delete ? RI_FKey_setnull_del : RI_FKey_setnull_upd;
	case FKCONSTR_ACTION_SETDEFAULT:
		return is_delete ? RI_FKey_setdefault_del : RI_FKey_setdefault_upd;
	default:
		return is_delete ? RI_FKey_noaction_del : RI_FKey_noaction_upd;
	}
}

static void
gone_note(Oid constraint, Oid child, const TriggerData *data)
{
	MemoryContext old = MemoryContextSwitchTo(memory_get());
	struct gone *g = palloc(sizeof(*g));

	*g = (struct gone){ .constraint = constraint,
			    .parent = RelationGetRelid(data->tg_relation),
			    .child = child,
			    .user = frond_modify_writer(),
			    .level = GetCurrentTransactionNestLevel(),
			    .row = ExecCopySlotHeapTuple(data->tg_trigslot) };
	gone_rows = lappend(gone_rows, g);
	MemoryContextSwitchTo(old);
}

/* As PostgreSQL's own function does when the row goes: nothing refers to it, or it is back. */
static void
gone_check(const struct gone *g)
{
	Relation rel = relation_open(g->parent, AccessShareLock);
	TupleTableSlot *slot = MakeSingleTupleTableSlot(RelationGetDescr(rel), &TTSOpsHeapTuple);
	TriggerData data = { .type = T_TriggerData,
			     .tg_event = TRIGGER_EVENT_DELETE | TRIGGER_EVENT_ROW,
			     .tg_relation = rel,
			     .tg_trigtuple = g->row,
			     .tg_trigslot = slot };
	Trigger trigger;

	for (int i = 0; rel->trigdesc && i < rel->trigdesc->numtriggers; i++)
		if (rel->trigdesc->triggers[i].tgconstraint == g->constraint) {
			trigger = trigger_of(&rel->trigdesc->triggers[i], g->child);
			data.tg_trigger = &trigger;
		}
	ExecStoreHeapTuple(g->row, slot, false);
	if (data.tg_trigger)
		run_action(RI_FKey_noaction_del, &data, g->user);
	ExecDropSingleTupleTableSlot(slot);
	relation_close(rel, AccessShareLock);
}

static void
gone_check_all(bool at_commit)
{
	List *rest = NIL, *due = NIL;
	ListCell *cell;

	foreach (cell, gone_rows) {
		struct gone *g = lfirst(cell);

		if (at_commit || !is_deferred(g->constraint, true))
			due = lappend(due, g);
		else
			rest = lappend(rest, g);
	}
	if (!due)
		return;
	PushActiveSnapshot(GetTransactionSnapshot());
	foreach (cell, due)
		gone_check(lfirst(cell));
	PopActiveSnapshot();
	gone_rows = NIL;
	foreach (cell, rest) {
		MemoryContext old = MemoryContextSwitchTo(memory);

		gone_rows = lappend(gone_rows, lfirst(cell));
		MemoryContextSwitchTo(old);
	}
}

void
frond_references_check(Oid child, bool at_commit)
{
	if (!memory)
		return;
	if (hash_get_num_entries(pending))
		pending_check(child, at_commit);
	if (gone_rows && (at_commit || !OidIsValid(child)))
		gone_check_all(at_commit);
}

/* ---- The triggers ---- */

PG_FUNCTION_INFO_V1(frond_reference);
PG_FUNCTION_INFO_V1(frond_referenced);
PGDLLEXPORT Datum frond_reference(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum frond_referenced(PG_FUNCTION_ARGS);

static TriggerData *
trigger_data(FunctionCallInfo fcinfo)
{
	TriggerData *data = (TriggerData *)fcinfo->context;

	if (!CALLED_AS_TRIGGER(fcinfo) || !data->tg_trigger->tgisinternal)
		ereport(ERROR, errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
			errmsg("this function belongs to FOREIGN KEY constraints"));
	return data;
}

/* A statement has written rows that refer to others. */
Datum
frond_reference(PG_FUNCTION_ARGS)
{
	const TriggerData *data = trigger_data(fcinfo);

	frond_references_check(RelationGetRelid(data->tg_relation), false);
	PG_RETURN_POINTER(NULL);
}

/* A row that others may refer to was deleted or changed. */
Datum
frond_referenced(PG_FUNCTION_ARGS)
{
	TriggerData data = *trigger_data(fcinfo);
	bool is_delete = TRIGGER_FIRED_BY_DELETE(data.tg_event);
	Oid constraint = data.tg_trigger->tgconstraint;
	HeapTuple tuple = SearchSysCache1(CONSTROID, ObjectIdGetDatum(constraint));
	Form_pg_constraint form;
	Trigger trigger;
	bool deferred;
	char action;
	Oid child;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "the constraint %u is not there", constraint);
	form = (Form_pg_constraint)GETSTRUCT(tuple);
	child = form->conrelid;
	action = is_delete ? form->confdeltype : form->confupdtype;
	deferred = form->condeferrable && is_deferred(constraint, form->condeferred);
	ReleaseSysCache(tuple);
	trigger = trigger_of(data.tg_trigger, child);
	data.tg_trigger = &trigger;
	if (!is_delete && !RI_FKey_pk_upd_check_required(&trigger, data.tg_relation,
							 data.tg_trigslot, data.tg_newslot))
		PG_RETURN_POINTER(NULL);
	frond_modify_flush(RelationGetRelid(data.tg_relation), NULL);
	if (deferred && action == FKCONSTR_ACTION_NOACTION)
		gone_note(constraint, child, &data);
	else
		run_action(action_of(action, is_delete), &data, frond_modify_writer());
	PG_RETURN_POINTER(NULL);
}

/* ---- Transactions end ---- */

/*
 * A subtransaction of the level `ended` is over, and so are those within it. What it has noted
 * becomes its parent's, or goes if it has aborted: then this gives false.
 */
static bool
level_end(int *level, int ended, bool committed)
{
	if (*level < ended)
		return true;
	*level = ended - 1;
	return committed;
}

static void
levels_end(int ended, bool committed)
{
	HASH_SEQ_STATUS seq;
	struct pending *p;
	ListCell *cell;

	if (!memory)
		return;
	hash_seq_init(&seq, pending);
	while ((p = hash_seq_search(&seq)))
		if (!level_end(&p->level, ended, committed))
			(void)hash_search(pending, &p->key, HASH_REMOVE, NULL);
	foreach (cell, gone_rows)
		if (!level_end(&((struct gone *)lfirst(cell))->level, ended, committed))
			gone_rows = foreach_delete_current(gone_rows, cell);
	foreach (cell, modes)
		if (!level_end(&((struct mode *)lfirst(cell))->level, ended, committed))
			modes = foreach_delete_current(modes, cell);
}

void
frond_references_forget(int level)
{
	levels_end(level, false);
}

void
frond_references_rise(int level)
{
	levels_end(level, true);
}

/* Its memory goes with the transaction's. */
void
frond_references_end(void)
{
	memory = NULL;
	pending = NULL;
	gone_rows = modes = NIL;
}
