#include "door/mongo/txn/run.h"

#include "door/mongo/txn/client.h"
#include "door/mongo/txn/cluster_time.h"
#include "door/mongo/txn/mongo_int.h"
#include "door/mongo/txn/txn.h"
#include "kv/version.h"
#include "net/memory.h"

/* A body, and the version that it has read at; 0: it has written, and the commit's counts. */
struct running {
	struct call *call;
	kv_body *body;
	void *arg;
	uint64_t version;
	struct access_uses uses;
};

static enum status
running_body(struct kv_tx *tx, void *arg)
{
	struct running *r = arg;
	struct kv_tx_stats stats;

	r->uses.count = 0;
	r->version = 0;
	TRY(r->body(tx, r->arg));
	stats = kv_tx_stats(tx);
	if (stats.sets || stats.clears)
		return STATUS_OK;
	return kv_get_read_version(tx, &r->version);
}

/* In the transaction of several commands, or in one of its own. NULL: it only reads. */
static enum status
run(struct running *r, kv_body *body, uint64_t *ret_committed)
{
	struct call *c = r->call;
	struct access_uses *outer = c->uses;
	enum status status;

	c->uses = &r->uses;
	if (c->txn)
		status = txn_run(c, body, r->arg);
	else if (ret_committed)
		status = kv_run_versioned(c->mongo->config.store, running_body, r, ret_committed,
					  &c->err);
	else
		status = kv_run_read(c->mongo->config.store, running_body, r, &c->err);
	c->uses = outer;
	if (status == STATUS_OK)
		access_count_uses(&c->mongo->accesses, &r->uses);
	return status;
}

enum status
call_run(struct call *c, kv_body *body, void *arg)
{
	struct running r = { .call = c, .body = body, .arg = arg };
	uint64_t committed;

	c->writes = true;
	TRY(run(&r, body, &committed));
	if (c->txn)
		return STATUS_OK;
	time_note(c, committed ? committed : r.version);
	return STATUS_OK;
}

enum status
call_read(struct call *c, kv_body *body, void *arg)
{
	struct running r = { .call = c, .body = body, .arg = arg };

	TRY(run(&r, body, NULL));
	if (!c->txn)
		time_note(c, r.version);
	return STATUS_OK;
}

bool
call_gives_way(const struct call *c)
{
	return !c->in_transaction && !c->writes && c->command->flags & COMMAND_SNAPSHOT &&
	       net_memory_should_ask(net_stream_session(c->client->stream));
}
