/* What PostgreSQL calls first: the library is loaded; the functions that the extension declares. */
#include "frond_pg.h"
#include "frond_sums.h"
#include "frond_lock.h"
#include "frond_shown.h"

#include "access/reloptions.h"
#include "foreign/fdwapi.h"

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);
PGDLLEXPORT Datum frond_handler(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum frond_validator(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum frond_access_method(PG_FUNCTION_ARGS);

PG_FUNCTION_INFO_V1(frond_handler);
PG_FUNCTION_INFO_V1(frond_validator);
PG_FUNCTION_INFO_V1(frond_access_method);

void
_PG_init(void)
{
	frond_settings_init();
	frond_link_init();
	frond_table_init();
	frond_ddl_init();
	frond_conflict_init();
	frond_retry_init();
	frond_sequence_init();
	frond_unique_init();
	frond_shown_init();
}

Datum
frond_handler(PG_FUNCTION_ARGS)
{
	FdwRoutine *routine = makeNode(FdwRoutine);

	routine->GetForeignRelSize = frond_plan_size;
	routine->GetForeignPaths = frond_plan_paths;
	routine->GetForeignUpperPaths = frond_plan_upper;
	routine->GetForeignPlan = frond_plan_scan;
	routine->BeginForeignScan = frond_scan_begin;
	routine->IterateForeignScan = frond_scan_next;
	routine->ReScanForeignScan = frond_scan_again;
	routine->EndForeignScan = frond_scan_end;
	routine->ExplainForeignScan = frond_scan_explain;
	routine->AddForeignUpdateTargets = frond_modify_targets;
	routine->PlanForeignModify = frond_modify_plan;
	routine->BeginForeignModify = frond_modify_begin;
	routine->ExecForeignInsert = frond_modify_insert;
	routine->ExecForeignBatchInsert = frond_modify_insert_batch;
	routine->GetForeignModifyBatchSize = frond_modify_batch_size;
	routine->ExecForeignUpdate = frond_modify_update;
	routine->ExecForeignDelete = frond_modify_delete;
	routine->EndForeignModify = frond_modify_end;
	routine->BeginForeignInsert = frond_modify_begin_insert;
	routine->EndForeignInsert = frond_modify_end;
	routine->ExecForeignTruncate = frond_modify_truncate;
	routine->GetForeignRowMarkType = frond_mark_type;
	routine->RefetchForeignRow = frond_row_refetch;
	routine->AnalyzeForeignTable = frond_analyze;
	routine->ImportForeignSchema = frond_import;
	PG_RETURN_POINTER(routine);
}

Datum
frond_validator(PG_FUNCTION_ARGS)
{
	frond_options_check(untransformRelOptions(PG_GETARG_DATUM(0)), PG_GETARG_OID(1));
	PG_RETURN_VOID();
}

Datum
frond_access_method(PG_FUNCTION_ARGS)
{
	ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
		errmsg("this statement cannot make a table in frond"),
		errhint("CREATE TABLE does, where session_preload_libraries has \"frond\"."));
}
