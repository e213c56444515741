/*
 * A statement that meets other transactions is tried again, where nobody has heard of it yet.
 *
 * That is an INSERT, UPDATE or DELETE which is a whole transaction: it runs in a subtransaction,
 * and frond's transaction commits at the end of that, before the client is told anything. If that
 * fails with 40001, the subtransaction is rolled back and the statement runs anew. What RETURNING
 * gives lies in its portal until the statement has ended.
 *
 * It is not committed in the middle of a pipeline: the statements there are one transaction until
 * the client sends Sync, and only where that has come already nothing can follow.
 *
 * A statement that is the first of a longer transaction, and so is SELECT … FOR UPDATE, runs in
 * such a subtransaction, too, which commits nothing: it is tried again if it has waited for a row
 * that has changed meanwhile. The rows of a SELECT are kept until it has them all.
 */
#include "frond_pg.h"

#include "access/xact.h"
#include "common/pg_prng.h"
#include "executor/executor.h"
#include "executor/tstoreReceiver.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "storage/latch.h"
#include "tcop/pquery.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"

enum {
	PAUSE_MS = 1, /* before the first repetition, and twice as long before each other one */
	PAUSE_MOST_MS = 64,
	SYNC = 'S', /* the message */
};

/* Of libpq/libpq.h, which wants headers of Kerberos that PostgreSQL's package does not bring. */
extern bool pq_buffer_has_data(void);
extern void pq_startmsgread(void);
extern int pq_peekbyte(void);
extern void pq_endmsgread(void);

static ExecutorRun_hook_type next_executor_run;
static bool is_trying;

/* ---- Which statements ---- */

/* No other statement of the client's can come before this one's transaction ends. */
static bool
is_alone(Portal portal)
{
	int next;

	if (IsInTransactionBlock(true) || whereToSendOutput != DestRemote)
		return false;
	/* A portal that nobody sees is a query by itself; PostgreSQL makes blocks of several. */
	if (!portal->visible)
		return true;
	if (!pq_buffer_has_data())
		return false;
	pq_startmsgread();
	next = pq_peekbyte();
	pq_endmsgread();
	return next == SYNC;
}

static bool
changes_only_frond(const PlannedStmt *statement)
{
	ListCell *cell;

	foreach (cell, statement->resultRelations)
		if (!frond_is_table(rt_fetch(lfirst_int(cell), statement->rtable)->relid))
			return false;
	return statement->resultRelations && !statement->hasModifyingCTE;
}

static bool
locks_frond(const PlannedStmt *statement)
{
	ListCell *cell;
	bool locks = false;

	foreach (cell, statement->rowMarks) {
		const PlanRowMark *mark = lfirst(cell);

		if (RowMarkRequiresRowShareLock(mark->markType))
			locks |= frond_is_table(rt_fetch(mark->rti, statement->rtable)->relid);
	}
	return locks && !statement->hasModifyingCTE;
}

/* Whether the query is the client's own statement, and no part of another one. */
static bool
is_whole_statement(const QueryDesc *query, Portal portal)
{
	return !frond_in_utility && portal && list_length(portal->stmts) == 1 &&
	       linitial(portal->stmts) == query->plannedstmt;
}

static bool
can_try(const QueryDesc *query, Portal portal)
{
	if (is_trying || frond_retries == 0 || frond_bulk_load ||
	    !is_whole_statement(query, portal))
		return false;
	/* In a savepoint of the client's, frond's transaction would begin without one. */
	if (GetCurrentTransactionNestLevel() > 1 || frond_link_is_used())
		return false;
	if (portal->strategy == PORTAL_ONE_SELECT)
		return locks_frond(query->plannedstmt);
	return (portal->strategy == PORTAL_MULTI_QUERY ||
		portal->strategy == PORTAL_ONE_RETURNING) &&
	       changes_only_frond(query->plannedstmt);
}

/* Whether the transaction ends with the statement. */
static bool
can_commit(const QueryDesc *query, Portal portal)
{
	if (query->operation == CMD_SELECT)
		return false;
	/* Once the transaction has committed, no text may turn out to be none for the client. */
	if (query->plannedstmt->hasReturning && pg_get_client_encoding() != GetDatabaseEncoding())
		return false;
	return is_alone(portal);
}

/* ---- Queries that need no transaction ---- */

/*
 * Whether a function of these expressions is not immutable, so that it may run a statement itself.
 * Columns and constants, which most expressions are, have no function.
 */
static bool
have_mutable_function(List *expressions)
{
	ListCell *cell;

	foreach (cell, expressions) {
		Node *e = lfirst(cell);

		if (IsA(e, TargetEntry))
			e = (Node *)((TargetEntry *)e)->expr;
		if (!IsA(e, Var) && !IsA(e, Const) && contain_mutable_functions(e))
			return true;
	}
	return false;
}

/* Nothing but the scan, or a LIMIT above it, whose expressions ask nobody. */
static bool
is_only_plan(const Plan *top, const Plan *scan)
{
	const ForeignScan *foreign = (const ForeignScan *)scan;

	if (IsA(top, Limit) && !top->initPlan &&
	    !contain_mutable_functions(((const Limit *)top)->limitCount) &&
	    !contain_mutable_functions(((const Limit *)top)->limitOffset))
		top = top->lefttree;
	return top == scan && !scan->initPlan && IsA(scan, ForeignScan) &&
	       !have_mutable_function(scan->targetlist) && !have_mutable_function(scan->qual) &&
	       !have_mutable_function(foreign->fdw_exprs);
}

bool
frond_is_only_scan(const EState *estate, const Plan *scan)
{
	const PlannedStmt *statement = estate->es_plannedstmt;
	Portal portal = ActivePortal;

	return !is_trying && !frond_in_utility && portal && list_length(portal->stmts) == 1 &&
	       linitial(portal->stmts) == statement && statement->commandType == CMD_SELECT &&
	       !statement->subplans && !statement->rowMarks && !statement->hasModifyingCTE &&
	       is_only_plan(statement->planTree, scan) && !frond_link_is_used() && is_alone(portal);
}

/* ---- Trying ---- */

/* The query itself never runs: each try has one of its own. */
static void
run_copy(QueryDesc *query, DestReceiver *to)
{
	QueryDesc *copy;

	PushActiveSnapshot(GetTransactionSnapshot());
	copy = CreateQueryDesc(query->plannedstmt, query->sourceText, GetActiveSnapshot(),
			       InvalidSnapshot, to, query->params, query->queryEnv,
			       query->instrument_options);
	ExecutorStart(copy, 0);
	ExecutorRun(copy, ForwardScanDirection, 0, true);
	query->estate->es_processed = copy->estate->es_processed;
	ExecutorFinish(copy);
	ExecutorEnd(copy);
	FreeQueryDesc(copy);
	PopActiveSnapshot();
}

/* False: it has met another transaction, and nothing has happened. */
static bool
try_once(QueryDesc *query, DestReceiver *to, bool commits, bool is_last)
{
	MemoryContext before = CurrentMemoryContext;
	MemoryContext memory = AllocSetContextCreate(before, "a statement that frond may refuse",
						     ALLOCSET_DEFAULT_SIZES);
	ResourceOwner owner = CurrentResourceOwner;
	volatile bool is_done = true;

	BeginInternalSubTransaction(NULL);
	frond_link_try();
	is_trying = true;
	MemoryContextSwitchTo(memory);
	PG_TRY();
	{
		run_copy(query, to);
		/* What has changed local tables has to commit with them. */
		frond_link_try_end(commits &&
				   !TransactionIdIsValid(GetCurrentTransactionIdIfAny()));
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData *error;

		MemoryContextSwitchTo(before);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(before);
		CurrentResourceOwner = owner;
		is_trying = false;
		if (is_last || error->sqlerrcode != ERRCODE_T_R_SERIALIZATION_FAILURE)
			ReThrowError(error);
		FreeErrorData(error);
		is_done = false;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(before);
	CurrentResourceOwner = owner;
	is_trying = false;
	MemoryContextDelete(memory);
	return is_done;
}

/* Those that have met shall not meet again: nobody waits as long as the others. */
static void
pause_random(int most_ms)
{
	double ms = (0.5 + pg_prng_double(&pg_global_prng_state) / 2) * most_ms;

	(void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, (long)ms + 1,
			PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}

/* `rows`: what they are put into in place of the client; NULL: a statement's own is kept. */
static void
run_until_done(QueryDesc *query, Portal portal, Tuplestorestate *rows)
{
	bool commits = can_commit(query, portal);
	DestReceiver *to = query->dest;
	int pause_ms = PAUSE_MS;

	if (rows) {
		to = CreateTuplestoreDestReceiver();
		SetTuplestoreDestReceiverParams(to, rows, CurrentMemoryContext, false, NULL, NULL);
	} else {
		rows = portal->holdStore;
	}
	for (int left = frond_retries; !try_once(query, to, commits, left == 0); left--) {
		if (rows)
			tuplestore_clear(rows);
		pause_random(pause_ms);
		pause_ms = Min(2 * pause_ms, PAUSE_MOST_MS);
	}
}

/* A SELECT: the client gets the rows when they are all there and locked. */
static void
select_until_done(QueryDesc *query, Portal portal)
{
	Tuplestorestate *rows = tuplestore_begin_heap(false, false, work_mem);
	TupleTableSlot *slot = MakeSingleTupleTableSlot(query->tupDesc, &TTSOpsMinimalTuple);

	run_until_done(query, portal, rows);
	query->dest->rStartup(query->dest, CMD_SELECT, query->tupDesc);
	while (tuplestore_gettupleslot(rows, true, false, slot) &&
	       query->dest->receiveSlot(slot, query->dest))
		;
	query->dest->rShutdown(query->dest);
	ExecDropSingleTupleTableSlot(slot);
	tuplestore_end(rows);
}

static void at_executor_run(QueryDesc *query, ScanDirection direction, uint64 count,
			    bool execute_once);

/* Whether another extension may look at the plan of a query that never runs. */
static bool
others_look(void)
{
	return ExecutorRun_hook != at_executor_run || next_executor_run || ExecutorFinish_hook ||
	       ExecutorEnd_hook;
}

/*
 * What ExecutorFinish() and ExecutorEnd() need of a query. Nothing of the plan is there: what it
 * needs is made, and looked at for rights, by each try.
 */
static void
start_without_plan(QueryDesc *query)
{
	EState *estate = CreateExecutorState();
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);

	estate->es_plannedstmt = query->plannedstmt;
	estate->es_sourceText = query->sourceText;
	estate->es_snapshot = RegisterSnapshot(query->snapshot);
	/* It has no triggers that AfterTriggerEndQuery() would run: those of a try have run. */
	estate->es_top_eflags = EXEC_FLAG_SKIP_TRIGGERS;
	query->estate = estate;
	MemoryContextSwitchTo(old);
}

bool
frond_retry_start(QueryDesc *query, int eflags)
{
	if (eflags || query->operation == CMD_SELECT || query->instrument_options ||
	    others_look() || !can_try(query, ActivePortal))
		return false;
	start_without_plan(query);
	return true;
}

static void
at_executor_run(QueryDesc *query, ScanDirection direction, uint64 count, bool execute_once)
{
	Portal portal = ActivePortal;

	/* A client that wants all rows at once, and may not come back for others. */
	bool is_whole = count == 0 && ScanDirectionIsForward(direction) &&
			(query->dest->mydest == DestRemote ||
			 query->dest->mydest == DestRemoteExecute);

	if (query->planstate &&
	    (!can_try(query, portal) || (query->operation == CMD_SELECT && !is_whole))) {
		(next_executor_run ? next_executor_run : standard_ExecutorRun)(query, direction,
									       count, execute_once);
		return;
	}
	/* frond_retry_start() has started what has no state. */
	if (query->planstate && query->operation == CMD_SELECT)
		select_until_done(query, portal);
	else
		run_until_done(query, portal, NULL);
	/*
	 * Extensions that were loaded before have measured the copy that has run, and not this
	 * query, which would count as one more execution. Without this it is none to them when it
	 * ends.
	 */
	if (ExecutorRun_hook == at_executor_run)
		query->totaltime = NULL;
}

void
frond_retry_init(void)
{
	next_executor_run = ExecutorRun_hook;
	ExecutorRun_hook = at_executor_run;
}
