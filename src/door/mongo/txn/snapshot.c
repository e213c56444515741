#include "door/mongo/txn/snapshot.h"

#include "base/clock.h"
#include "base/mem.h"
#include "door/mongo/txn/cluster_time.h"
#include "door/mongo/txn/mongo_int.h"

static const struct snapshot *
snapshot_of(const struct expiring_entry *e)
{
	return (const struct snapshot *)e;
}

static bool
snapshot_is(const struct expiring_entry *e, const void *version)
{
	return snapshot_of(e)->version == *(const uint64_t *)version;
}

static bool
snapshot_is_over(const struct expiring_entry *e, uint64_t now_ns)
{
	return now_ns >= snapshot_of(e)->txn.open.until_ns;
}

static void
snapshot_free(struct expiring_entry *e)
{
	kv_tx_free(snapshot_of(e)->txn.open.tx);
	mem_free(e);
}

/* Two commands may begin to read at the same version; each keeps it. */
static const struct expiring_rules snapshot_rules = {
	.most = SNAPSHOT_MOST,
	.replaces = true,
	.alike = true,
	.is = snapshot_is,
	.is_over = snapshot_is_over,
	.free = snapshot_free,
};

void
snapshots_init(struct expiring *snapshots)
{
	expiring_init(snapshots, &snapshot_rules);
}

static uint64_t
life_ms(const struct kv_store *store)
{
	return kv_is_shared(store) ? OPEN_TXN_SHARED_MS : SNAPSHOT_LIFE_MS;
}

/* The version that the command names. */
static enum status
snapshot_take(struct call *c, struct snapshot **ret)
{
	uint64_t version = c->at_version;
	struct expiring_entry *e;
	enum status status = expiring_take(&c->mongo->snapshots, version, &version, &e);

	if (status == STATUS_OK) {
		*ret = (struct snapshot *)e;
		return STATUS_OK;
	}
	if (status == STATUS_BUSY)
		return call_fail(c, MONGO_CONFLICTING_OPERATION,
				 "another command reads this version of the data now");
	return call_fail(c, MONGO_SNAPSHOT_TOO_OLD,
			 "Read timestamp is older than the oldest available timestamp: versions "
			 "are kept for %llu s after the first read with readConcern 'snapshot', "
			 "and the latest %d of them",
			 (unsigned long long)(life_ms(c->mongo->config.store) / 1000),
			 SNAPSHOT_MOST);
}

/* A new one of the present version. */
static enum status
snapshot_begin(struct call *c, struct snapshot **ret)
{
	struct snapshot *s = mem_zalloc(sizeof(*s));
	struct kv_store *store = c->mongo->config.store;
	enum status status;

	if (!s)
		return STATUS_NOMEM;
	s->txn.open.until_ns = clock_after_ms(life_ms(store));
	status = kv_begin(store, KV_TX_READ_ONLY, &s->txn.open.tx);
	if (status == STATUS_OK)
		status = kv_get_read_version(s->txn.open.tx, &s->version);
	if (status == STATUS_OK && expiring_add(&c->mongo->snapshots, s->version, &s->version,
						&s->txn.entry, 0) != STATUS_OK)
		status = call_fail(c, MONGO_TEMPORARILY_UNAVAILABLE,
				   "there are %d commands with readConcern 'snapshot' already "
				   "(SNAPSHOT_MOST)",
				   SNAPSHOT_MOST);
	if (status != STATUS_OK) {
		snapshot_free(&s->txn.entry);
		return status;
	}
	*ret = s;
	return STATUS_OK;
}

enum status
snapshot_enter(struct call *c)
{
	struct snapshot *s;

	if (!c->snapshot)
		return STATUS_OK;
	TRY(c->at_version ? snapshot_take(c, &s) : snapshot_begin(c, &s));
	c->txn = &s->txn;
	return STATUS_OK;
}

void
snapshot_leave(struct call *c)
{
	if (!c->snapshot || !c->txn)
		return;
	expiring_give(&c->mongo->snapshots, &c->txn->entry);
	c->txn = NULL;
}

void
snapshot_put(struct call *c)
{
	if (c->snapshot && c->txn)
		bson_put_timestamp(c->reply, STR("atClusterTime"),
				   time_of_version(((struct snapshot *)c->txn)->version));
}
