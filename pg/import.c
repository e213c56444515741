/* IMPORT FOREIGN SCHEMA: the tables that frond has, whoever made them. ANALYZE: a sample. */
#include "frond_pg.h"
#include "frond_computed.h"

#include "access/htup_details.h"
#include "commands/vacuum.h"
#include "executor/tuptable.h"
#include "foreign/fdwapi.h"
#include "foreign/foreign.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/rel.h"

enum {
	ROW_BYTES = 64, /* about: of a row, for a number of pages */
};

/* ---- IMPORT FOREIGN SCHEMA ---- */

static char *
text_copy(struct frows_text text)
{
	return pnstrdup(text.ptr, text.len);
}

static List *
tables_list(struct frows *c, const char *schema)
{
	List *names = NIL;
	char *after = pstrdup("");
	struct frows_text name;

	do {
		if (!frows_tables(c, schema, after))
			frond_fail(c);
		while (frows_name_next(c, &name))
			names = lappend(names, text_copy(name));
		after = text_copy(frows_names_after(c));
	} while (*after);
	return names;
}

/* The definition of a table. NULL: its key has a column that PostgreSQL cannot have. */
static char *
table_text(const struct frows_table *t, const char *schema, const char *table, const char *server)
{
	StringInfoData text;
	bool is_first = true;

	initStringInfo(&text);
	appendStringInfo(&text, "CREATE FOREIGN TABLE %s (", quote_identifier(table));
	for (size_t i = 0; i < t->count; i++) {
		const struct frows_column *c = &t->columns[i];
		const char *type = frond_type_of_kind(c->kind), *name = text_copy(c->name);

		if (i == 0 && t->key_count == 1 && strcmp(name, FROND_HIDDEN_KEY) == 0)
			continue;
		if (frond_computed_is(name, strlen(name)))
			continue;
		if (!type && i < t->key_count)
			return NULL;
		if (!type)
			continue;
		appendStringInfo(&text, "%s%s %s%s", is_first ? "" : ", ", quote_identifier(name),
				 type, i < t->key_count ? " NOT NULL" : "");
		is_first = false;
	}
	appendStringInfo(&text, ") SERVER %s OPTIONS (%s %s, \"%s\" %s)", quote_identifier(server),
			 FROND_OPTION_SCHEMA, quote_literal_cstr(schema), FROND_OPTION_TABLE,
			 quote_literal_cstr(table));
	return text.data;
}

List *
frond_import(ImportForeignSchemaStmt *statement, Oid server)
{
	struct frows *c = frond_link_outside(server, GetUserId());
	const char *schema = statement->remote_schema;
	List *commands = NIL;
	ListCell *cell;

	foreach (cell, tables_list(c, schema)) {
		const char *name = lfirst(cell);
		struct frows_table t;
		char *text;

		if (!IsImportableForeignTable(name, statement))
			continue;
		if (!frows_table(c, schema, name, &t))
			frond_fail(c);
		text = table_text(&t, schema, name, statement->server_name);
		frows_table_free(&t);
		if (text)
			commands = lappend(commands, text);
		else
			ereport(NOTICE, errmsg("the table \"%s\" has a key that PostgreSQL has no "
					       "type for, and is left out",
					       name));
	}
	return commands;
}

/* ---- ANALYZE ---- */

static double
rows_count(const struct frond_table *t)
{
	struct frows_scan scan = { .of = frond_table_of(t), .only_count = true };
	struct frows_value place = { NULL, 0 }, none;
	double rows = 0;

	for (;;) {
		struct frows *c = frond_link_inside(t->server, GetUserId(), false);

		CHECK_FOR_INTERRUPTS();
		if (!frows_scan_page_at(c, &scan, place))
			frond_fail(c);
		rows += (double)frows_scan_sums(c, &none);
		if (!frows_has_more(c))
			return rows;
		place = frond_value_copy(frows_scan_place(c));
	}
}

static HeapTuple
row_form(const struct frond_table *t, Relation rel, const struct frows_value *values,
	 const int *attnums, int count)
{
	int natts = RelationGetNumberOfAttributes(rel);
	Datum *datums = palloc0(natts * sizeof(*datums));
	bool *nulls = palloc(natts * sizeof(*nulls));

	memset(nulls, true, natts * sizeof(*nulls));
	for (int i = 0; i < count; i++) {
		if (values[i].len < 0)
			continue;
		datums[attnums[i] - 1] = frond_value_get(&t->columns[attnums[i] - 1], values[i]);
		nulls[attnums[i] - 1] = false;
	}
	return heap_form_tuple(RelationGetDescr(rel), datums, nulls);
}

static int
sample(Relation rel, int level, HeapTuple *rows, int most, double *total, double *dead)
{
	const struct frond_table *t = frond_table_get(RelationGetRelid(rel), GetUserId());
	struct frows_value *values = palloc((t->natts + 1) * sizeof(*values));
	struct frows_value place = { NULL, 0 };
	int *attnums = palloc((t->natts + 1) * sizeof(*attnums));
	uint32 *columns = palloc((t->natts + 1) * sizeof(*columns));
	struct frows_scan scan = { .of = frond_table_of(t), .columns = columns };
	int count = 0;

	*total = rows_count(t);
	*dead = 0;
	if (*total > most)
		scan.sample = (uint32)(most / *total * PG_UINT32_MAX);
	for (int i = 0; i < t->natts; i++)
		if (t->columns[i].is_there) {
			attnums[scan.column_count] = i + 1;
			columns[scan.column_count++] = t->columns[i].id;
		}
	for (;;) {
		struct frows *c = frond_link_inside(t->server, GetUserId(), false);

		CHECK_FOR_INTERRUPTS();
		if (!frows_scan_page_at(c, &scan, place))
			frond_fail(c);
		while (count < most && frows_scan_row(c, values))
			rows[count++] = row_form(t, rel, values, attnums, (int)scan.column_count);
		if (count == most || !frows_has_more(c))
			return count;
		place = frond_value_copy(frows_scan_place(c));
	}
}

bool
frond_analyze(Relation rel, int (**ret_sample)(Relation, int, HeapTuple *, int, double *, double *),
	      uint32 *pages)
{
	double rows = rows_count(frond_table_get(RelationGetRelid(rel), GetUserId()));

	*ret_sample = sample;
	*pages = (uint32)(rows * ROW_BYTES / BLCKSZ) + 1;
	return true;
}
