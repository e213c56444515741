#include "door/mongo/txn/run.h"

#include "door/mongo/txn/client.h"
#include "door/mongo/txn/cluster_time.h"
#include "door/mongo/txn/mongo_int.h"
#include "door/mongo/txn/txn.h"
#include "net/memory.h"

/* A body, and the version that it has read at. */
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

	r->uses.count = 0;
	TRY(r->body(tx, r->arg));
	return kv_get_read_version(tx, &r->version);
}

/* In the transaction of several commands, or in one of its own. */
static enum status
run(struct running *r, kv_body *body, bool writes, uint8_t *stamp)
{
	struct call *c = r->call;
	struct access_uses *outer = c->uses;
	enum status status;

	c->uses = &r->uses;
	if (c->txn)
		status = txn_run(c, body, r->arg);
	else if (writes)
		status = kv_run(c->mongo->config.store, running_body, r, stamp, &c->err);
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
	uint8_t stamp[KV_VERSIONSTAMP_TX_BYTES];
	uint64_t version;

	c->writes = true;
	TRY(run(&r, body, true, stamp));
	if (c->txn)
		return STATUS_OK;
	version = time_of_stamp(stamp);
	time_note(c, version ? version : r.version);
	return STATUS_OK;
}

enum status
call_read(struct call *c, kv_body *body, void *arg)
{
	struct running r = { .call = c, .body = body, .arg = arg };

	TRY(run(&r, body, false, NULL));
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
