/*
 * How long transactions wait for a cluster. The library has an option for that, which costs a timer
 * for each transaction: it stays among the library's timers until its moment, long after the
 * transaction has ended, and wakes the library's thread then. Here a thread of the store looks a
 * few times a second at the transaction that has waited longest, and has an open joint commit begun
 * that has waited too long (joint.c).
 *
 * == Safety ==
 *
 * A transaction is in the list only while its owner has it: fdb_time_end() takes it out under the
 * store's lock before it is reset or freed. What the timekeeper does with it happens under the same
 * lock, and only asks the library to cancel, which does not call back before that returns.
 */
#include <assert.h>

#include "base/clock.h"
#include "base/thread.h"
#include "base/timespec.h"
#include "kv/fdb/fdb_int.h"
#include "kv/fdb/joint.h"

/* With the store's lock held. */
static void
time_unlink(struct fdb_store *store, struct fdb_tx *tx)
{
	assert(tx->timed);
	if (tx->earlier)
		tx->earlier->later = tx->later;
	else
		store->asked_first = tx->later;
	if (tx->later)
		tx->later->earlier = tx->earlier;
	else
		store->asked_last = tx->earlier;
	tx->timed = false;
}

void
fdb_time_begin(struct fdb_tx *tx)
{
	struct fdb_store *store = (struct fdb_store *)tx->base.store;

	if (tx->asked_ns)
		return;
	pthread_mutex_lock(&store->lock);
	assert(!tx->timed);
	tx->asked_ns = clock_mono_ns();
	tx->later = NULL;
	tx->earlier = store->asked_last;
	if (tx->earlier)
		tx->earlier->later = tx;
	else
		store->asked_first = tx;
	store->asked_last = tx;
	tx->timed = true;
	pthread_mutex_unlock(&store->lock);
}

void
fdb_time_end(struct fdb_tx *tx)
{
	struct fdb_store *store = (struct fdb_store *)tx->base.store;

	if (!tx->asked_ns)
		return;
	pthread_mutex_lock(&store->lock);
	if (tx->timed)
		time_unlink(store, tx);
	pthread_mutex_unlock(&store->lock);
}

/* With the store's lock held, which it lets go of for a while. */
static void
time_is_over(struct fdb_store *store, struct fdb_tx *tx)
{
	uint64_t life = tx->life;

	time_unlink(store, tx);
	pthread_mutex_lock(&tx->lock);
	/* Before the library answers that it was cancelled: future.c then says why. */
	atomic_store(&tx->timed_out, true);
	if (tx->tx && !tx->committing)
		fdb.transaction_cancel(tx->tx);
	pthread_mutex_unlock(&tx->lock);
	pthread_mutex_unlock(&store->lock);
	fdb_watches_cancel(store, life);
	pthread_mutex_lock(&store->lock);
}

static void *
timekeeper_main(void *arg)
{
	struct fdb_store *store = arg;

	thread_set_name("cluster time");
	pthread_mutex_lock(&store->lock);
	while (!store->closing) {
		uint64_t now_ns = clock_mono_ns();
		struct fdb_tx *first = store->asked_first;
		struct timespec until;

		if (first && now_ns - first->asked_ns >= FDB_READ_TIMEOUT_MS * CLOCK_NS_PER_MS) {
			time_is_over(store, first);
			continue;
		}
		pthread_mutex_unlock(&store->lock);
		fdb_joint_hurry(store, now_ns);
		pthread_mutex_lock(&store->lock);
		if (store->closing)
			break;
		until = timespec_of_ns(now_ns + FDB_TIME_LOOK_MS * CLOCK_NS_PER_MS);
		(void)pthread_cond_timedwait(&store->timekeeper_woken, &store->lock, &until);
	}
	pthread_mutex_unlock(&store->lock);
	return NULL;
}

enum status
fdb_time_start(struct fdb_store *store)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&store->timekeeper_woken, &attr);
	pthread_condattr_destroy(&attr);
	if (pthread_create(&store->timekeeper, NULL, timekeeper_main, store) != 0) {
		pthread_cond_destroy(&store->timekeeper_woken);
		return STATUS_NOMEM;
	}
	store->timekeeper_runs = true;
	return STATUS_OK;
}

void
fdb_time_stop(struct fdb_store *store)
{
	if (!store->timekeeper_runs)
		return;
	pthread_mutex_lock(&store->lock);
	assert(!store->asked_first);
	store->closing = true;
	pthread_cond_signal(&store->timekeeper_woken);
	pthread_mutex_unlock(&store->lock);
	(void)pthread_join(store->timekeeper, NULL);
	pthread_cond_destroy(&store->timekeeper_woken);
	store->timekeeper_runs = false;
}
