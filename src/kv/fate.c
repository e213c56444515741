/* Commits whose end a client did not wait for (fate.h). */
#include "kv/fate.h"

#include <assert.h>
#include <pthread.h>

#include "base/budget.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/metric.h"
#include "kv/engine.h"
#include "kv/txid.h"
#include "loop/lanes.h"
#include "loop/pause.h"

static _Atomic int64_t awaited;

static int64_t
awaited_read(void)
{
	return atomic_load_explicit(&awaited, memory_order_relaxed);
}

METRIC_COUNTER(left, "frond_kv_commits_left_total", METRIC_NUMBER,
	       "Commits that a cluster had not answered within commit_wait_ms: the client was told "
	       "that their outcome is not known.");
METRIC_READ(awaited_gauge, METRIC_KIND_GAUGE, "frond_kv_commits_awaited", METRIC_NUMBER,
	    "Commits of those that a cluster has still not answered.", awaited_read);

struct fate {
	struct kv_tx *tx;
	struct kv_future *commit;
	struct fate_ids ids; /* but `lanes`, which is gone */
	struct lanes *lanes; /* that are owed until then; NULL: none */
	uint64_t owed;
	struct fate *next;
};

struct fates {
	pthread_mutex_t lock; /* of the list; lanes are paid with it held */
	struct fate *list;
	_Atomic size_t count; /* of those in it, and of those that are being ended */
};

static _Atomic uint64_t commit_wait_ms = KV_COMMIT_WAIT_MS;

void
kv_set_commit_wait(uint64_t ms)
{
	atomic_store(&commit_wait_ms, ms);
}

uint64_t
kv_commit_wait(void)
{
	return atomic_load(&commit_wait_ms);
}

static struct fates *
store_fates(struct kv_store *store)
{
	struct fates *known = atomic_load_explicit(&store->fates, memory_order_acquire);
	struct fates *made;

	if (known)
		return known;
	made = mem_zalloc(sizeof(*made));
	if (!made)
		return NULL;
	pthread_mutex_init(&made->lock, NULL);
	/* Another thread may have been quicker. */
	if (!atomic_compare_exchange_strong(&store->fates, &known, made)) {
		pthread_mutex_destroy(&made->lock);
		mem_free(made);
		return known;
	}
	return made;
}

size_t
kv_fates(struct kv_store *store)
{
	struct fates *fates = atomic_load_explicit(&store->fates, memory_order_acquire);

	return fates ? atomic_load(&fates->count) : 0;
}

enum status
fates_check(struct kv_tx *tx)
{
	if (kv_fates(tx->store) < KV_LIMIT_FATES)
		return STATUS_OK;
	fates_settle(tx->store);
	if (kv_fates(tx->store) < KV_LIMIT_FATES)
		return STATUS_OK;
	return err_set(&tx->err, STATUS_UNAVAILABLE,
		       "the cluster has not answered %d commits (KV_LIMIT_FATES), so none is begun",
		       KV_LIMIT_FATES);
}

/* ---- Leaving ---- */

/* False without memory: the caller then waits by itself. */
static bool
fate_leave(struct kv_tx *tx, struct kv_future *commit, const struct fate_ids *ids)
{
	struct fates *fates = store_fates(tx->store);
	struct fate *fate = fates ? mem_alloc(sizeof(*fate)) : NULL;

	if (!fate)
		return false;
	/* Its memory was counted as the client's, who goes now. */
	if (tx->part)
		budget_unuse(tx->part, KV_TX_BYTES + tx->held_bytes);
	tx->part = NULL;
	*fate = (struct fate){ .tx = tx, .commit = commit, .ids = *ids };
	fate->ids.lanes = NULL;
	if (ids->lanes) {
		/* Before anybody may find that it is answered, and pay them. */
		fate->lanes = ids->lanes->of;
		fate->owed = ids->lanes->which;
		lanes_owe(fate->lanes, fate->owed);
	}
	atomic_fetch_add(&fates->count, 1);
	atomic_fetch_add_explicit(&awaited, 1, memory_order_relaxed);
	metric_add(&left, 1);
	pthread_mutex_lock(&fates->lock);
	fate->next = fates->list;
	fates->list = fate;
	pthread_mutex_unlock(&fates->lock);
	return true;
}

bool
fates_wait(struct kv_tx *tx, struct kv_future *commit, const struct fate_ids *ids)
{
	struct event *event;

	if (!tx->engine->shared)
		return false;
	event = kv_future_event(commit);
	if (!event || event_wait(event, clock_after_ms(atomic_load(&commit_wait_ms))))
		return false;
	fates_settle(tx->store);
	return fate_leave(tx, commit, ids);
}

enum status
kv_commit_in_time(struct kv_tx *tx, bool *ret_left)
{
	const struct fate_ids none = { 0 };
	struct kv_future *commit;

	*ret_left = false;
	TRY(fates_check(tx));
	commit = kv_commit(tx);
	*ret_left = fates_wait(tx, commit, &none);
	return *ret_left ? STATUS_TX_UNKNOWN : kv_future_wait(commit);
}

/* ---- Ending ---- */

/* The cluster has answered. That it does not know either is an answer: the commit is over. */
static void
fate_end(struct fates *fates, struct fate *fate)
{
	struct txids *txids = fate->tx->store->txids;
	struct txid id = { .span = fate->ids.taken };
	enum status status = kv_future_wait(fate->commit);

	if (fate->ids.clearing && status == STATUS_OK)
		txids_cleared(txids, fate->ids.clearing);
	else if (fate->ids.clearing)
		txids_not_cleared(txids, fate->ids.clearing);
	if (id.span)
		txid_release(txids, &id);
	kv_tx_free(fate->tx);
	mem_free(fate);
	atomic_fetch_sub_explicit(&awaited, 1, memory_order_relaxed);
	atomic_fetch_sub(&fates->count, 1);
}

void
fates_settle(struct kv_store *store)
{
	struct fates *fates = atomic_load_explicit(&store->fates, memory_order_acquire);
	struct fate *ready = NULL, *next;

	if (!fates || atomic_load(&fates->count) == 0)
		return;
	pthread_mutex_lock(&fates->lock);
	for (struct fate **at = &fates->list; *at;) {
		struct fate *fate = *at;

		if (!kv_future_ready(fate->commit)) {
			at = &fate->next;
			continue;
		}
		*at = fate->next;
		fate->next = ready;
		ready = fate;
		/* With the lock held, so that kv_lanes_forget() returns behind the last use. */
		if (fate->lanes)
			lanes_pay(fate->lanes, fate->owed);
	}
	pthread_mutex_unlock(&fates->lock);
	for (; ready; ready = next) {
		next = ready->next;
		fate_end(fates, ready);
	}
}

void
kv_lanes_forget(struct kv_store *store, const struct lanes *lanes)
{
	struct fates *fates = atomic_load_explicit(&store->fates, memory_order_acquire);

	if (!fates)
		return;
	pthread_mutex_lock(&fates->lock);
	for (struct fate *fate = fates->list; fate; fate = fate->next)
		if (fate->lanes == lanes)
			fate->lanes = NULL;
	pthread_mutex_unlock(&fates->lock);
}

bool
fates_finish(struct kv_store *store)
{
	enum {
		LOOK_MS = 20,
	};
	uint64_t until_ns = clock_after_ms(atomic_load(&commit_wait_ms));
	struct fates *fates = atomic_load(&store->fates);

	for (;;) {
		fates_settle(store);
		if (kv_fates(store) == 0)
			break;
		if (clock_mono_ns() >= until_ns)
			return false;
		wait_pause(LOOK_MS);
	}
	atomic_store(&store->fates, NULL);
	if (fates) {
		assert(!fates->list);
		pthread_mutex_destroy(&fates->lock);
		mem_free(fates);
	}
	return true;
}
