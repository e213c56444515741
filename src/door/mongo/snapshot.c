#include "door/mongo/snapshot.h"

#include "base/clock.h"
#include "door/mongo/cluster_time.h"
#include "door/mongo/mongo_int.h"

void
snapshots_init(struct snapshots *s)
{
	pthread_mutex_init(&s->lock, NULL);
}

void
snapshots_fini(struct snapshots *s)
{
	for (size_t i = 0; i < SNAPSHOT_MOST; i++)
		kv_tx_free(s->all[i].txn.tx);
	pthread_mutex_destroy(&s->lock);
}

/* With the lock. What it was is closed without, by kv_tx_free(). */
static struct kv_tx *
drop(struct snapshot *one)
{
	struct kv_tx *tx = one->txn.tx;

	one->txn.tx = NULL;
	return tx;
}

void
snapshots_expire(struct snapshots *s)
{
	uint64_t now_ns = clock_mono_ns();
	struct kv_tx *over[SNAPSHOT_MOST];
	size_t count = 0;

	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < SNAPSHOT_MOST; i++)
		if (!s->all[i].txn.busy && now_ns >= s->all[i].txn.until_ns)
			over[count++] = drop(&s->all[i]);
	pthread_mutex_unlock(&s->lock);
	while (count)
		kv_tx_free(over[--count]);
}

static uint64_t
life_ms(const struct kv_store *store)
{
	return kv_is_shared(store) ? TXN_LIFE_SHARED_MS : SNAPSHOT_LIFE_MS;
}

/* With the lock: the version that the command names. */
static enum status
take_known(struct call *c, struct snapshot **ret)
{
	struct snapshots *s = &c->mongo->snapshots;
	uint64_t now_ns = clock_mono_ns();
	bool busy = false;

	for (size_t i = 0; i < SNAPSHOT_MOST; i++) {
		struct snapshot *one = &s->all[i];

		if (one->version != c->at_version || !one->txn.tx || now_ns >= one->txn.until_ns)
			continue;
		if (!one->txn.busy) {
			*ret = one;
			return STATUS_OK;
		}
		busy = true;
	}
	if (busy)
		return call_fail(c, MONGO_CONFLICTING_OPERATION,
				 "another command reads this version of the data now");
	return call_fail(c, MONGO_SNAPSHOT_TOO_OLD,
			 "Read timestamp is older than the oldest available timestamp: versions "
			 "are kept for %llu s after the first read with readConcern 'snapshot', "
			 "and the latest %d of them",
			 (unsigned long long)(life_ms(c->mongo->config.store) / 1000),
			 SNAPSHOT_MOST);
}

/* With the lock: a place for one more. `*ret_old` was there, and is closed without the lock. */
static enum status
take_place(struct call *c, struct snapshot **ret, struct kv_tx **ret_old)
{
	struct snapshots *s = &c->mongo->snapshots;

	*ret = NULL;
	for (size_t i = 0; i < SNAPSHOT_MOST; i++) {
		struct snapshot *one = &s->all[i];

		if (one->txn.busy)
			continue;
		if (!one->txn.tx) {
			*ret = one;
			return STATUS_OK;
		}
		if (!*ret || one->txn.used_ns < (*ret)->txn.used_ns)
			*ret = one;
	}
	if (!*ret)
		return call_fail(c, MONGO_TEMPORARILY_UNAVAILABLE,
				 "there are %d commands with readConcern 'snapshot' already "
				 "(SNAPSHOT_MOST)",
				 SNAPSHOT_MOST);
	*ret_old = drop(*ret);
	return STATUS_OK;
}

static enum status
begin(struct call *c, struct snapshot *one)
{
	TRY(kv_begin(c->mongo->config.store, KV_TX_READ_ONLY, &one->txn.tx));
	return kv_get_read_version(one->txn.tx, &one->version);
}

enum status
snapshot_enter(struct call *c)
{
	struct snapshots *s = &c->mongo->snapshots;
	struct snapshot *one = NULL;
	struct kv_tx *old = NULL;
	enum status status;

	if (!c->snapshot)
		return STATUS_OK;
	pthread_mutex_lock(&s->lock);
	status = c->at_version ? take_known(c, &one) : take_place(c, &one, &old);
	if (status == STATUS_OK)
		one->txn.busy = true;
	pthread_mutex_unlock(&s->lock);
	kv_tx_free(old);
	TRY(status);
	c->txn = &one->txn;
	if (!c->at_version) {
		one->txn.until_ns = clock_after_ms(life_ms(c->mongo->config.store));
		status = begin(c, one);
	}
	if (status != STATUS_OK)
		snapshot_leave(c);
	return status;
}

void
snapshot_leave(struct call *c)
{
	struct snapshots *s = &c->mongo->snapshots;
	struct snapshot *one = (struct snapshot *)c->txn;

	if (!c->snapshot || !one)
		return;
	pthread_mutex_lock(&s->lock);
	one->txn.busy = false;
	one->txn.used_ns = clock_mono_ns();
	pthread_mutex_unlock(&s->lock);
	c->txn = NULL;
}

void
snapshot_put(struct call *c)
{
	if (c->snapshot && c->txn)
		bson_put_timestamp(c->reply, STR("atClusterTime"),
				   time_of_version(((struct snapshot *)c->txn)->version));
}
