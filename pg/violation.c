/*
 * What a client is told of a row that frond has refused: SQLSTATE, constraint and values, as of a
 * heap table.
 */
#include "frond_pg.h"
#include "frond_written.h"

#include "catalog/pg_constraint.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"

const struct frows_value *
frond_written_value(const struct frond_written *w, AttrNumber attnum)
{
	for (int i = 0; i < w->table->key_count; i++)
		if (w->table->key[i].attnum == attnum)
			return &w->key[i];
	for (int i = 0; i < w->count && w->values; i++)
		if (w->attnums[i] == attnum)
			return &w->values[i];
	return NULL;
}

/* "Key (a, b)=(1, 2) already exists." NULL: not all values are known. */
static const char *
duplicate_text(const struct frond_written *w, Oid index, const AttrNumber *attnums, int count)
{
	StringInfoData names, values;

	initStringInfo(&names);
	initStringInfo(&values);
	for (int i = 0; i < count && w->key; i++) {
		const struct frond_column *c = &w->table->columns[attnums[i] - 1];
		const struct frows_value *value = frond_written_value(w, attnums[i]);
		FmgrInfo out = c->out;

		if (!value || value->len < 0)
			return NULL;
		/* Without the catalog nothing is computed. */
		if (!OidIsValid(index))
			appendStringInfo(
				&names, "%s%s", i ? ", " : "",
				quote_identifier(get_attname(w->table->relid, attnums[i], false)));
		appendStringInfo(&values, "%s%s", i ? ", " : "",
				 OutputFunctionCall(&out, frond_value_get(c, *value)));
	}
	if (!values.len)
		return NULL;
	return psprintf("Key (%s)=(%s) already exists.",
			OidIsValid(index) ? pg_get_indexdef_columns(index, true) : names.data,
			values.data);
}

static void fail_duplicate(const struct frond_written *w, const char *name, const char *detail)
	pg_attribute_noreturn();

static void
fail_duplicate(const struct frond_written *w, const char *name, const char *detail)
{
	ereport(ERROR, errcode(ERRCODE_UNIQUE_VIOLATION),
		errmsg("duplicate key value violates unique constraint \"%s\"", name),
		detail ? errdetail("%s", detail) : 0,
		err_generic_string(PG_DIAG_SCHEMA_NAME,
				   get_namespace_name(RelationGetNamespace(w->rel))),
		err_generic_string(PG_DIAG_TABLE_NAME, RelationGetRelationName(w->rel)),
		err_generic_string(PG_DIAG_CONSTRAINT_NAME, name));
}

void
frond_fail_write(struct frows *c, const struct frond_written *w)
{
	const struct frows_failure *f = frows_failure(c);
	AttrNumber attnums[FROWS_KEY_COLUMNS];
	Oid key = InvalidOid;
	int count = 0;

	if (strcmp(f->state, "23505") != 0 || f->row < 0)
		frond_fail(c);
	if (f->index[0]) {
		const struct frond_index *index = frond_index_stored(w->table, f->index);
		const char *name = index ? index->name : pstrdup(f->index);

		for (; index && count < index->count; count++)
			attnums[count] = index->columns[count].attnum;
		fail_duplicate(w, name,
			       duplicate_text(w, index ? index->oid : InvalidOid, attnums, count));
	}
	if (!w->key || w->table->has_hidden_key)
		frond_fail(c);
	for (; count < w->table->key_count; count++)
		attnums[count] = w->table->key[count].attnum;
	(void)get_primary_key_attnos(w->table->relid, true, &key);
	/* One of a table that an earlier frond has made has the usual name. */
	fail_duplicate(w,
		       OidIsValid(key) ? get_constraint_name(key)
				       : psprintf("%s_pkey", RelationGetRelationName(w->rel)),
		       duplicate_text(w, OidIsValid(key) ? get_constraint_index(key) : InvalidOid,
				      attnums, count));
}
