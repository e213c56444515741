#include "door/mongo/run.h"

#include "door/mongo/cluster_time.h"
#include "door/mongo/mongo_int.h"
#include "door/mongo/txn.h"

/* A body, and the version that it has read at. */
struct running {
	struct call *call;
	kv_body *body;
	void *arg;
	uint64_t version;
};

static enum status
running_body(struct kv_tx *tx, void *arg)
{
	struct running *r = arg;

	TRY(r->body(tx, r->arg));
	return kv_get_read_version(tx, &r->version);
}

enum status
call_run(struct call *c, kv_body *body, void *arg)
{
	struct running r = { .call = c, .body = body, .arg = arg };
	uint8_t stamp[KV_VERSIONSTAMP_TX_BYTES];
	uint64_t version;

	if (c->txn)
		return txn_run(c, body, arg);
	TRY(kv_run(c->mongo->config.store, running_body, &r, stamp, &c->err));
	version = time_of_stamp(stamp);
	time_note(c, version ? version : r.version);
	return STATUS_OK;
}

enum status
call_read(struct call *c, kv_body *body, void *arg)
{
	struct running r = { .call = c, .body = body, .arg = arg };

	if (c->txn)
		return txn_run(c, body, arg);
	TRY(kv_run_read(c->mongo->config.store, running_body, &r, &c->err));
	time_note(c, r.version);
	return STATUS_OK;
}
