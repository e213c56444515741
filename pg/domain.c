/* ALTER DOMAIN: PostgreSQL looks through heaps for values that a new constraint refuses. */
#include "frond_define.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "executor/spi.h"
#include "nodes/makefuncs.h"
#include "parser/parse_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

/* A column of the domain, or of a domain over it. */
struct used {
	Oid relid, type;
	char *name;
};

static const char columns_text[] =
	"WITH RECURSIVE d AS (SELECT $1::pg_catalog.oid AS oid UNION"
	" SELECT t.oid FROM pg_catalog.pg_type t, d WHERE t.typbasetype OPERATOR(pg_catalog.=) "
	"d.oid)"
	" SELECT a.attrelid, a.atttypid, a.attname FROM d, pg_catalog.pg_attribute a,"
	" pg_catalog.pg_class c WHERE a.atttypid OPERATOR(pg_catalog.=) d.oid"
	" AND c.oid OPERATOR(pg_catalog.=) a.attrelid AND c.relkind OPERATOR(pg_catalog.=) 'f'"
	" AND a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped ORDER BY 1, a.attnum";

/* Of tables in frond. */
static List *
columns_of(Oid domain, MemoryContext memory)
{
	Oid types[] = { OIDOID };
	Datum values[] = { ObjectIdGetDatum(domain) };
	List *all = NIL;

	if (SPI_execute_with_args(columns_text, 1, types, values, NULL, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "the columns of a domain are not found");
	for (uint64 i = 0; i < SPI_processed; i++) {
		HeapTuple row = SPI_tuptable->vals[i];
		TupleDesc desc = SPI_tuptable->tupdesc;
		MemoryContext old = MemoryContextSwitchTo(memory);
		struct used *used = palloc(sizeof(*used));
		bool is_null;

		used->relid = DatumGetObjectId(SPI_getbinval(row, desc, 1, &is_null));
		used->type = DatumGetObjectId(SPI_getbinval(row, desc, 2, &is_null));
		used->name = SPI_getvalue(row, desc, 3);
		if (frond_is_table(used->relid))
			all = lappend(all, used);
		MemoryContextSwitchTo(old);
	}
	return all;
}

/* The error of a value, as PostgreSQL says it of a column. */
static void
fail_column(const struct used *used, const ErrorData *e)
{
	const char *what = e->sqlerrcode == ERRCODE_NOT_NULL_VIOLATION
				   ? "contains null values"
				   : "contains values that violate the new constraint";

	ereport(ERROR, errcode(e->sqlerrcode),
		errmsg("column \"%s\" of table \"%s\" %s", used->name, get_rel_name(used->relid),
		       what));
}

/* Each value becomes one of the domain again, which looks at it. */
static void
column_check(const struct used *used)
{
	const char *table = quote_qualified_identifier(
		get_namespace_name(get_rel_namespace(used->relid)), get_rel_name(used->relid));
	const char *sql = psprintf(
		"SELECT pg_catalog.count(CAST(CAST(%s AS %s) AS %s)) FROM ONLY %s",
		quote_identifier(used->name), format_type_be_qualified(getBaseType(used->type)),
		format_type_be_qualified(used->type), table);
	MemoryContext memory = CurrentMemoryContext;

	PG_TRY();
	{
		if (SPI_execute(sql, false, 0) != SPI_OK_SELECT)
			elog(ERROR, "the statement failed: %s", sql);
	}
	PG_CATCH();
	{
		ErrorData *e;

		MemoryContextSwitchTo(memory);
		e = CopyErrorData();
		FlushErrorState();
		if (e->sqlerrcode != ERRCODE_NOT_NULL_VIOLATION &&
		    e->sqlerrcode != ERRCODE_CHECK_VIOLATION)
			ReThrowError(e);
		fail_column(used, e);
	}
	PG_END_TRY();
}

void
frond_domain_check(const AlterDomainStmt *statement)
{
	bool refuses = statement->subtype == 'O' || statement->subtype == 'V' ||
		       (statement->subtype == 'C' &&
			!castNode(Constraint, statement->def)->skip_validation);
	MemoryContext memory = CurrentMemoryContext;
	ListCell *cell;
	Oid domain;

	if (!refuses)
		return;
	CommandCounterIncrement();
	domain = typenameTypeId(NULL, makeTypeNameFromNameList(statement->typeName));
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "no SPI");
	foreach (cell, columns_of(domain, memory))
		column_check(lfirst(cell));
	SPI_finish();
}
