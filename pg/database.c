/*
 * DROP DATABASE with frond.drop_database = on: what CREATE TABLE has made in frond for the database
 * goes with it. The session that drops it is in another database, and cannot read its catalog. So a
 * background worker reads there which tables these are, and ends before PostgreSQL drops the
 * database. When that is done, the session drops the tables in frond, as its own user.
 */
#include "frond_define.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "commands/dbcommands.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/dsm.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"

enum {
	LIST_BYTES = 4 * 1024 * 1024, /* of what a worker tells of a database's tables */
	TIMEOUT_MS = 60 * 1000,
};

/* What a table is told by: texts one behind the other, each with its NUL. An empty one: there is no
 * such option. */
enum field {
	FIELD_HOST,
	FIELD_PORT,
	FIELD_TLS,
	FIELD_CA_FILE,
	FIELD_USER,
	FIELD_PASSWORD,
	FIELD_SCHEMA,
	FIELD_TABLE,
	FIELDS,
};

/* What the session and its worker share. */
struct list {
	Oid database, user;
	bool is_done; /* the worker has read all */
	bool is_cut;  /* there were more tables than LIST_BYTES have room for */
	size_t bytes;
	char texts[FLEXIBLE_ARRAY_MEMBER];
};

bool frond_drop_database;

const char *
frond_database_id(Oid database)
{
	return psprintf(UINT64_FORMAT ".%u", GetSystemIdentifier(), database);
}

/* ---- The worker, in the database that goes ---- */

static void
list_add(struct list *list, HeapTuple row, TupleDesc of)
{
	size_t begin = list->bytes;

	for (int i = 0; i < FIELDS; i++) {
		const char *text = SPI_getvalue(row, of, i + 1);
		size_t len = text ? strlen(text) + 1 : 1;

		if (list->bytes + len > LIST_BYTES) {
			list->bytes = begin;
			list->is_cut = true;
			return;
		}
		memcpy(list->texts + list->bytes, text ? text : "", len);
		list->bytes += len;
	}
}

static const char *
option_sql(const char *options, const char *name)
{
	return psprintf("(SELECT option_value FROM pg_catalog.pg_options_to_table(%s)"
			" WHERE option_name = '%s')",
			options, name);
}

static const char *
tables_sql(const struct list *list)
{
	return psprintf(
		"SELECT %s, %s, %s, %s, %s, %s, %s, %s FROM pg_catalog.pg_foreign_table f"
		" JOIN pg_catalog.pg_foreign_server s ON s.oid = f.ftserver"
		" JOIN pg_catalog.pg_foreign_data_wrapper w ON w.oid = s.srvfdw"
		" LEFT JOIN LATERAL (SELECT umoptions FROM pg_catalog.pg_user_mapping"
		" WHERE umserver = s.oid AND umuser IN (%u, 0) ORDER BY umuser DESC LIMIT 1) m"
		" ON true WHERE w.fdwname = 'frond' AND %s = '%s' ORDER BY s.oid",
		option_sql("s.srvoptions", "host"), option_sql("s.srvoptions", "port"),
		option_sql("s.srvoptions", "tls"), option_sql("s.srvoptions", "ca_file"),
		option_sql("m.umoptions", "user"), option_sql("m.umoptions", "password"),
		option_sql("f.ftoptions", FROND_OPTION_SCHEMA),
		option_sql("f.ftoptions", FROND_OPTION_TABLE), list->user,
		option_sql("f.ftoptions", FROND_OPTION_MADE), frond_database_id(list->database));
}

void
frond_database_worker(Datum arg)
{
	dsm_segment *shared;
	struct list *list;

	BackgroundWorkerUnblockSignals();
	shared = dsm_attach(DatumGetUInt32(arg));
	if (!shared)
		return;
	list = dsm_segment_address(shared);
	BackgroundWorkerInitializeConnectionByOid(list->database, InvalidOid,
						  BGWORKER_BYPASS_ALLOWCONN);
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	if (SPI_connect() != SPI_OK_CONNECT ||
	    SPI_execute(tables_sql(list), true, 0) != SPI_OK_SELECT)
		elog(ERROR, "the foreign tables are not found");
	for (uint64 i = 0; i < SPI_processed && !list->is_cut; i++)
		list_add(list, SPI_tuptable->vals[i], SPI_tuptable->tupdesc);
	SPI_finish();
	PopActiveSnapshot();
	CommitTransactionCommand();
	list->is_done = true;
	dsm_detach(shared);
}

/* ---- The session ---- */

static bool
worker_run(dsm_segment *shared)
{
	BackgroundWorkerHandle *handle;
	BackgroundWorker worker = {
		.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION,
		.bgw_start_time = BgWorkerStart_RecoveryFinished,
		.bgw_restart_time = BGW_NEVER_RESTART,
		.bgw_library_name = "frond",
		.bgw_function_name = "frond_database_worker",
		.bgw_name = "frond: tables of a database that is dropped",
		.bgw_type = "frond",
		.bgw_main_arg = UInt32GetDatum(dsm_segment_handle(shared)),
		.bgw_notify_pid = MyProcPid,
	};

	return RegisterDynamicBackgroundWorker(&worker, &handle) &&
	       WaitForBackgroundWorkerShutdown(handle) == BGWH_STOPPED;
}

/* The tables of a database, copied; NULL: they could not be read, which a warning tells. */
static struct list *
list_read(Oid database)
{
	dsm_segment *shared = dsm_create(offsetof(struct list, texts) + LIST_BYTES, 0);
	struct list *list = dsm_segment_address(shared), *ret = NULL;

	*list = (struct list){ .database = database, .user = GetUserId() };
	if (worker_run(shared) && list->is_done) {
		size_t bytes = offsetof(struct list, texts) + list->bytes;

		ret = memcpy(palloc(bytes), list, bytes);
	}
	dsm_detach(shared);
	if (!ret)
		ereport(WARNING,
			errmsg("the tables of the database stay in frond: they could not be read"),
			errhint("max_worker_processes has to leave room for one."));
	return ret;
}

/* The fields of the table at `at`; returns where the next one begins. */
static const char *
table_read(const char *at, const char *fields[FIELDS])
{
	for (int i = 0; i < FIELDS; i++) {
		fields[i] = *at ? at : NULL;
		at += strlen(at) + 1;
	}
	return at;
}

static bool
is_same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Connects, unless the connection of the table before is the one. */
static void
server_open(const char *fields[FIELDS], const char *before[FIELDS], struct frows **c)
{
	bool tls = fields[FIELD_TLS] && parse_bool(fields[FIELD_TLS], &tls) && tls;
	const struct frows_where where = {
		.host = fields[FIELD_HOST] ? fields[FIELD_HOST] : "127.0.0.1",
		.port = fields[FIELD_PORT] ? fields[FIELD_PORT] : "9342",
		.user = fields[FIELD_USER],
		.password = fields[FIELD_PASSWORD],
		.ca_file = fields[FIELD_CA_FILE],
		.timeout_ms = TIMEOUT_MS,
		.tls = tls,
	};
	bool is_one = *c != NULL;

	for (int i = 0; i < FIELD_SCHEMA; i++)
		is_one &= is_same(fields[i], before[i]);
	if (is_one)
		return;
	frows_close(*c);
	*c = NULL;
	(void)frows_open(&where, c);
}

static bool
table_drop(struct frows *c, const char *fields[FIELDS])
{
	struct frows_table t;
	bool done;

	if (!c || !frows_is_open(c))
		return false;
	if (!frows_table(c, fields[FIELD_SCHEMA], fields[FIELD_TABLE], &t))
		return strcmp(frows_failure(c)->state, "42P01") == 0;
	done = frows_table_drop(c, fields[FIELD_SCHEMA], fields[FIELD_TABLE]);
	if (done)
		frond_sequences_forget(c, &t, NULL);
	frows_table_free(&t);
	return done;
}

/* The database is gone: a failure is only told. */
static void
list_drop(const struct list *list)
{
	const char *fields[FIELDS] = { NULL }, *before[FIELDS] = { NULL };
	const char *at = list->texts, *why = NULL;
	struct frows *c = NULL;
	int left = 0;

	while (at < list->texts + list->bytes) {
		memcpy(before, fields, sizeof(before));
		at = table_read(at, fields);
		server_open(fields, before, &c);
		if (table_drop(c, fields))
			continue;
		if (!left++)
			why = psprintf("%s.%s: %s", fields[FIELD_SCHEMA], fields[FIELD_TABLE],
				       c ? frows_failure(c)->text : "out of memory");
	}
	frows_close(c);
	if (left)
		ereport(WARNING, errmsg("%d tables of the database stay in frond", left),
			errdetail("%s", why));
	if (list->is_cut)
		ereport(WARNING, errmsg("tables of the database stay in frond: it had more of them "
					"than can be told"));
}

void
frond_database_drop(const DropdbStmt *statement, frond_run_utility *run, void *arg)
{
	Oid database = get_database_oid(statement->dbname, true);
	struct list *list = OidIsValid(database) && frond_drop_database &&
					    pg_database_ownercheck(database, GetUserId())
				    ? list_read(database)
				    : NULL;

	run((Node *)copyObject((DropdbStmt *)statement), arg);
	if (list)
		list_drop(list);
}
