/* Settings of the extension, and the options of its servers, user mappings, tables and columns. */
#include "frond_define.h"
#include "frond_lock.h"
#include "frond_shown.h"

#include "utils/builtins.h"
#include "access/table.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_foreign_table.h"
#include "catalog/pg_user_mapping.h"
#include "commands/defrem.h"
#include "utils/guc.h"

char *frond_server_name;
bool frond_allow_mixed_writes;
bool frond_bulk_load;
int frond_retries;

enum {
	RETRIES = 100,
	RETRIES_MOST = 10000,
	SEQUENCE_BLOCK = 100,
	ROW_LOCKS = 200,
	ROW_LOCKS_MOST = 1000000,
	LOCK_TIMEOUT_MS = 60 * 1000,
	LOCK_TIMEOUT_MOST_MS = 24 * 3600 * 1000,
	SEQUENCE_BLOCK_MOST = 1000000,
};

static const struct {
	Oid catalog;
	const char *name;
} options_known[] = {
	{ ForeignServerRelationId, "host" },
	{ ForeignServerRelationId, "port" },
	{ ForeignServerRelationId, "tls" },
	{ ForeignServerRelationId, "ca_file" },
	{ ForeignServerRelationId, "timeout_ms" },
	{ UserMappingRelationId, "user" },
	{ UserMappingRelationId, "password" },
	{ ForeignTableRelationId, FROND_OPTION_SCHEMA },
	{ ForeignTableRelationId, FROND_OPTION_TABLE },
	{ ForeignTableRelationId, FROND_OPTION_MADE },
	{ AttributeRelationId, FROND_OPTION_COLUMN },
};

void
frond_settings_init(void)
{
	DefineCustomStringVariable("frond.server", "The server in which CREATE TABLE makes tables.",
				   NULL, &frond_server_name, "frond", PGC_USERSET, 0, NULL, NULL,
				   NULL);
	DefineCustomBoolVariable(
		"frond.allow_mixed_writes",
		"Lets a transaction write to frond's and to local tables.",
		"If the server ends between the two commits, only frond's changes are there.",
		&frond_allow_mixed_writes, false, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable(
		"frond.bulk_load", "Commits what a long transaction writes in parts.",
		"A transaction that fails leaves the parts that were committed before.",
		&frond_bulk_load, false, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable(
		"frond.drop_database",
		"Lets DROP DATABASE drop the tables that CREATE TABLE has made in frond for it.",
		NULL, &frond_drop_database, false, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable(
		"frond.show_tables",
		"Shows tables in frond as tables in information_schema.tables and pg_tables.",
		"Of those that CREATE TABLE has made; otherwise they are foreign tables there.",
		&frond_show_tables, true, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable(
		"frond.retries", "How often a statement is tried again that has met others.",
		"Of statements that are a transaction by themselves; 0: they fail with 40001.",
		&frond_retries, RETRIES, 0, RETRIES_MOST, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable(
		"frond.sequence_block",
		"How many numbers a session draws at once for SERIAL and identity columns.",
		"The CACHE of sequences that such columns of tables in frond get.",
		&frond_sequence_block, SEQUENCE_BLOCK, 1, SEQUENCE_BLOCK_MOST, PGC_USERSET, 0, NULL,
		NULL, NULL);
	DefineCustomIntVariable("frond.row_locks", "How many rows in frond a transaction locks.",
				"Others are only checked when it commits; 0: no row is locked.",
				&frond_row_locks, ROW_LOCKS, 0, ROW_LOCKS_MOST, PGC_USERSET, 0,
				NULL, NULL, NULL);
	DefineCustomIntVariable("frond.lock_timeout",
				"How long a row in frond is waited for, where lock_timeout is 0.",
				NULL, &frond_lock_timeout, LOCK_TIMEOUT_MS, 1, LOCK_TIMEOUT_MOST_MS,
				PGC_USERSET, GUC_UNIT_MS, NULL, NULL, NULL);
	MarkGUCPrefixReserved("frond");
}

static void
check_value(DefElem *option)
{
	if (strcmp(option->defname, "tls") == 0)
		(void)defGetBoolean(option);
	else if (strcmp(option->defname, "timeout_ms") == 0)
		(void)pg_strtoint32(defGetString(option));
}

void
frond_options_check(List *options, Oid catalog)
{
	ListCell *cell;

	foreach (cell, options) {
		DefElem *option = lfirst(cell);
		bool is_known = false;

		for (size_t i = 0; i < lengthof(options_known); i++)
			is_known |= options_known[i].catalog == catalog &&
				    strcmp(options_known[i].name, option->defname) == 0;
		if (!is_known)
			ereport(ERROR, errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
				errmsg("invalid option \"%s\"", option->defname));
		check_value(option);
	}
}

const char *
frond_option(List *options, const char *name)
{
	ListCell *cell;

	foreach (cell, options) {
		DefElem *option = lfirst(cell);

		if (strcmp(option->defname, name) == 0)
			return defGetString(option);
	}
	return NULL;
}
