#include "door/cql/run/joint.h"

#include "base/metric.h"
#include "door/cql/run/prepared.h"
#include "kv/brief.h"
#include "kv/state.h"

METRIC_COUNTER(joint_reads, "frond_cql_joint_reads_total", METRIC_NUMBER,
	       "SELECTs of one row of Cassandra's door that were run in a transaction with others "
	       "of their connection.");
METRIC_COUNTER(joint_transactions, "frond_cql_joint_transactions_total", METRIC_NUMBER,
	       "Transactions of Cassandra's door that several SELECTs of one row have shared.");

enum {
	JOINT_BYTES = 256 * 1024, /* that one transaction reads */
};

bool
joint_takes(struct cql_door *door, struct str id)
{
	struct prepared *p;
	bool takes;

	/* At a cluster each statement would wait for what those before it wait for. */
	if (kv_is_shared(door->config.store))
		return false;
	p = prepared_find(door, id);
	takes = p && p->reads_row;

	prepared_unref(p);
	return takes;
}

struct kv_tx *
joint_tx(struct joint *j, struct cql_request *r)
{
	if (j->tx && kv_tx_stats(j->tx).bytes_read > JOINT_BYTES)
		joint_end(j);
	if (j->tx)
		return j->tx;
	if (kv_begin(r->door->config.store, KV_TX_READ_ONLY, &j->tx) != STATUS_OK)
		return NULL;
	kv_tx_brief(j->tx);
	kv_tx_set_memory(j->tx, arena_part(r->arena), 0);
	return j->tx;
}

static void
joint_forget_table(struct joint *j)
{
	prepared_unref(j->prepared);
	catalog_db_unref(j->db);
	j->prepared = NULL;
	j->db = NULL;
	j->timed.db = NULL;
}

enum status
joint_open(struct joint *j, struct run *run, const struct cql_name *name, struct prepared *p)
{
	if (p == j->prepared)
		return run_open_again(run, name, p->compiled, j->db);
	TRY(run_open_compiled(run, name, p->compiled));
	joint_forget_table(j);
	/* Without what was compiled, clients have to be told of a table that has changed. */
	if (!run->compiled)
		return STATUS_OK;
	atomic_fetch_add(&p->refs, 1);
	j->prepared = p;
	j->db = catalog_db_ref(run->table->db);
	return STATUS_OK;
}

enum status
joint_timed(struct joint *j, const struct run *run, struct timed *ret)
{
	if (j->timed.db != run->table->db) {
		timed_init(ret, run->tx, run->table->db, NULL, &run->r->err);
		TRY(timed_now(ret));
		j->timed = *ret;
	}
	*ret = j->timed;
	ret->err = &run->r->err;
	return STATUS_OK;
}

struct prepared *
joint_prepared(struct joint *j, struct str id)
{
	struct prepared *p = j ? j->prepared : NULL;

	if (!p || !str_eq(id, str_of(p->id, sizeof(p->id))))
		return NULL;
	atomic_fetch_add(&p->refs, 1);
	return p;
}

void
joint_ran(struct joint *j)
{
	j->reads++;
}

void
joint_end(struct joint *j)
{
	if (j->reads > 1) {
		metric_add(&joint_reads, j->reads);
		metric_add(&joint_transactions, 1);
	}
	kv_tx_free(j->tx);
	joint_forget_table(j);
	buf_release(&j->rows);
	*j = (struct joint){ 0 };
}
