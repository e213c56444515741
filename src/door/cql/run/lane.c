#include "door/cql/run/lane.h"

#include <assert.h>

#include "base/metric.h"
#include "kv/fate.h"
#include "loop/step.h"
#include "serve/wanted.h"

METRIC_COUNTER(shared_statements, "frond_cql_shared_statements_total", METRIC_NUMBER,
	       "Conditional statements of Cassandra's door that were run in a transaction with "
	       "others of the same partition.");
METRIC_COUNTER(shared_transactions, "frond_cql_shared_transactions_total", METRIC_NUMBER,
	       "Transactions of Cassandra's door that several conditional statements have "
	       "shared.");

struct lane_group {
	struct lane_member *first;
	struct arena *arena; /* of the first one's request */
	struct arena_mark mark;
	struct err err;

	/* Of the attempt under way. */
	struct lane_table table;
	size_t ran;
	bool dropped; /* a member has left that had written something */
};

static struct lane_member *
group_next(const struct lane_member *m)
{
	return (struct lane_member *)m->lane.group;
}

enum status
lane_share(struct lane_table *shared, struct run *run)
{
	if (!shared->table) {
		shared->table = run->table;
		timed_init(&shared->timed, run->tx, run->table->db, NULL, &run->r->err);
		return STATUS_OK;
	}
	if (shared->table->db->number != run->table->db->number)
		return STATUS_UNSUPPORTED;
	shared->timed.err = &run->r->err;
	return STATUS_OK;
}

/* ---- A member ---- */

/* True if the failure is the transaction's, which is tried again with all that are in it. */
static bool
is_of_transaction(enum status status)
{
	return status == STATUS_TX_CONFLICT || status == STATUS_TX_TOO_OLD;
}

static uint64_t
tx_changes(const struct kv_tx *tx)
{
	struct kv_tx_stats s = kv_tx_stats(tx);

	return s.sets + s.clears;
}

/* Runs the statement with the leader's arena in place of its own. */
static enum status
member_run_borrowing(struct lane_group *g, struct lane_member *m, struct kv_tx *tx)
{
	struct cql_request *r = m->r;
	const struct error_more more = r->more;
	struct arena *arena = r->arena;
	struct buf *out = r->out;
	bool writes = r->writes;
	const struct schema_table *table = g->table.table;
	struct arena_mark mark = arena_mark(g->arena);
	enum status status;

	buf_clear(&m->answer);
	r->arena = r->q.arena = g->arena;
	r->out = &m->answer;
	r->q.code = (enum cql_code)0;
	r->err.text[0] = '\0';
	step_unit();
	(void)wanted_work_for(r->op);
	status = m->run(m, tx, &g->table);
	(void)wanted_work_for(NULL);
	if (status == STATUS_OK)
		status = buf_status(&m->answer);
	r->arena = r->q.arena = arena;
	r->out = out;
	/* What it says of a failure may lie in the leader's arena. */
	r->more = more;
	r->more.write = ERROR_WRITE_CAS;
	if (status != STATUS_OK)
		r->writes = writes;
	/* The group's table lies behind the mark of the member that has opened it. */
	if (g->table.table == table)
		arena_reset(g->arena, mark);
	return status;
}

/* One that fails leaves the group. Fails itself where the attempt is over with that. */
static enum status
group_run_member(struct lane_group *g, struct lane_member *m, struct kv_tx *tx)
{
	uint64_t before = tx_changes(tx);
	enum status status;

	/* Its own fiber says that it was ended. */
	if (wanted_is_ended(m->r->op)) {
		m->outcome = LANE_ALONE;
		return STATUS_OK;
	}
	status = member_run_borrowing(g, m, tx);
	if (status == STATUS_OK) {
		m->outcome = LANE_RAN;
		g->ran++;
		return STATUS_OK;
	}
	if (is_of_transaction(status))
		return status;
	m->outcome = LANE_ALONE;
	g->dropped = tx_changes(tx) != before;
	return g->dropped ? STATUS_CANCELLED : STATUS_OK;
}

/* ---- A group, on the fiber of its first member ---- */

/* Ends what the attempt before has left. */
static void
group_restart(struct lane_group *g)
{
	schema_table_close(g->table.table);
	g->table.table = NULL;
	arena_reset(g->arena, g->mark);
	g->ran = 0;
	g->dropped = false;
	for (struct lane_member *m = g->first; m; m = group_next(m))
		if (m->outcome == LANE_RAN)
			m->outcome = LANE_WAITS;
}

static enum status
group_body(struct kv_tx *tx, void *arg)
{
	struct lane_group *g = arg;

	group_restart(g);
	for (struct lane_member *m = g->first; m; m = group_next(m)) {
		/* The others are run in the next transaction. */
		if (g->ran && kv_tx_stats(tx).size_bytes > CQL_LANE_BYTES)
			break;
		if (m->outcome == LANE_WAITS)
			TRY(group_run_member(g, m, tx));
	}
	return STATUS_OK;
}

static void
group_settle(struct lane_group *g)
{
	for (struct lane_member *m = g->first; m; m = group_next(m)) {
		if (m->outcome != LANE_RAN)
			continue;
		m->outcome = LANE_DONE;
		m->status = STATUS_OK;
		if (g->ran > 1)
			trace_note(m->r->trace, "Committed with %zu other statements", g->ran - 1);
	}
	if (g->ran < 2)
		return;
	metric_add(&shared_statements, g->ran);
	metric_add(&shared_transactions, 1);
}

/*
 * The transaction did not take place, or nobody knows. What several need too much room for each can
 * try alone. It says nothing about those that were not in it. They go on, unless it ended before it
 * ran any, since then the store does not serve; or its commit was left, so that the lane is owed
 * (`left`): then nothing is done for them.
 */
static void
group_settle_failure(struct lane_group *g, enum status status, bool left)
{
	bool alone = status == STATUS_TX_TOO_LARGE && g->ran > 1;

	for (struct lane_member *m = g->first; m; m = group_next(m)) {
		bool waits = m->outcome == LANE_WAITS;

		if (m->outcome != LANE_RAN && !(waits && (left || !g->ran)))
			continue;
		m->lane.ret_refused = waits && left;
		m->outcome = alone ? LANE_ALONE : LANE_DONE;
		m->status = status;
		m->r->err = g->err;
	}
}

static bool
group_waits(const struct lane_group *g)
{
	for (const struct lane_member *m = g->first; m; m = group_next(m))
		if (m->outcome == LANE_WAITS || m->outcome == LANE_RAN)
			return true;
	return false;
}

static void
group_run(struct lane_member *leader, struct kv_lanes *lanes)
{
	struct arena *arena = leader->r->arena;
	struct lane_group g = { .first = leader, .arena = arena, .mark = arena_mark(arena) };
	struct kv_store *store = leader->r->door->config.store;
	struct wanted_group clients;

	wanted_group_begin(&clients, &leader->lane);
	/* Each turn takes at least one member out. */
	while (group_waits(&g)) {
		enum status status = kv_run_in_lanes(store, group_body, &g, lanes, &g.err);

		if (status == STATUS_OK)
			group_settle(&g);
		else if (!g.dropped)
			group_settle_failure(&g, status, lanes->ret_left);
	}
	wanted_group_end(&clients);
	schema_table_close(g.table.table);
	arena_reset(arena, g.mark);
}

/* ---- A statement ---- */

/* On its own fiber, behind the group. */
static enum status
member_take(struct lane_member *m)
{
	struct cql_request *r = m->r;

	if (m->outcome == LANE_ALONE) {
		TRY(step_ask());
		return m->alone(m);
	}
	if (m->lane.ret_refused)
		return err_set(&r->err, STATUS_UNAVAILABLE,
			       "nothing was done: the cluster has not answered an earlier commit "
			       "to this partition");
	assert(m->outcome == LANE_DONE);
	if (m->status == STATUS_OK)
		buf_append_buf(r->out, &m->answer);
	return m->status;
}

enum status
lane_run(struct lane_member *m, uint64_t hash)
{
	struct cql_door *door = m->r->door;
	struct lanes *lanes = &door->lanes[(hash >> 32) % CQL_LANE_TABLES];
	struct kv_lanes held = { .of = lanes, .which = lanes_of(hash & UINT32_MAX) };
	enum status status;

	m->lane = (struct lanes_job){
		.lanes = held.which,
		.prompt = true,
		.patience_ms = kv_commit_wait(),
		.works_for = m->r->op,
	};
	m->lanes = NULL;
	m->outcome = LANE_WAITS;
	m->answer = BUF_SHORT(CQL_LANE_ANSWER_BYTES);
	if (lanes_enter(lanes, &m->lane)) {
		bool lone = !m->lane.group;

		/* One lane is all that a group has, since none of these jobs is small. */
		assert(lanes_of_group(&m->lane) == held.which);
		if (lone) {
			m->lanes = &held;
			status = m->alone(m);
			m->lanes = NULL;
		} else {
			group_run(m, &held);
		}
		lanes_leave(lanes, &m->lane, held.which);
		if (lone)
			return status;
	}
	status = member_take(m);
	buf_release(&m->answer);
	return status;
}

void
lane_fini(struct kv_store *store, struct lanes *lanes)
{
	kv_lanes_forget(store, lanes);
	lanes_fini(lanes);
}
