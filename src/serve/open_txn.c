#include "serve/open_txn.h"

#include <assert.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/metric.h"
#include "net/memory.h"

static const char *const doors[OPEN_TXN_DOORS] = {
	[OPEN_TXN_MONGO] = "mongo",
	[OPEN_TXN_ROWS] = "rows",
};

METRIC_GAUGES(
	gauge, "frond_open_transactions", METRIC_NUMBER,
	"Transactions that clients have begun and not ended, and that go on in further requests.",
	"door", doors);
METRIC_COUNTERS(expirations, "frond_open_transactions_expired_total", METRIC_NUMBER,
		"Transactions that were rolled back since they had lasted longer than "
		"transaction_seconds, or since others needed their memory.",
		"door", doors);

/* At most OPEN_TXN_MOST, but while one is refused. */
static atomic_size_t open_count;

uint64_t
open_txn_life_ms(struct kv_store *store, uint64_t seconds)
{
	uint64_t ms = seconds * 1000;

	return kv_is_shared(store) && ms > OPEN_TXN_SHARED_MS ? OPEN_TXN_SHARED_MS : ms;
}

enum status
open_txn_open(struct open_txn *o, enum open_txn_door door, uint64_t life_ms,
	      const struct budget_part *of)
{
	assert(!o->open && !o->tx);
	if (atomic_fetch_add(&open_count, 1) >= OPEN_TXN_MOST) {
		atomic_fetch_sub(&open_count, 1);
		METRIC_REFUSED("OPEN_TXN_MOST");
		return STATUS_LIMIT;
	}
	*o = (struct open_txn){ .open = true, .door = door, .until_ns = clock_after_ms(life_ms) };
	net_memory_part_init(&o->part, of, false);
	net_memory_part_keep(&o->part);
	metric_gauge_add_at(&gauge, door, 1);
	return STATUS_OK;
}

enum status
open_txn_begin(struct open_txn *o, struct kv_store *store)
{
	assert(o->open && !o->tx);
	return kv_begin(store, KV_TX_READ_WRITE, &o->tx);
}

bool
open_txn_is_over(const struct open_txn *o, uint64_t now_ns)
{
	return o->open && (now_ns >= o->until_ns || budget_is_unwanted(&o->part));
}

void
open_txn_use(struct open_txn *o)
{
	net_memory_part_rouse(&o->part);
}

void
open_txn_rest(struct open_txn *o)
{
	if (o->open)
		net_memory_part_rest(&o->part);
}

bool
open_txn_count(struct open_txn *o, size_t more)
{
	assert(o->open && o->tx);
	return net_memory_part_resize(&o->part,
				      OPEN_TXN_FLAT_BYTES + kv_tx_stats(o->tx).size_bytes + more);
}

struct kv_tx *
open_txn_end(struct open_txn *o)
{
	struct kv_tx *tx = o->tx;

	if (!o->open)
		return NULL;
	atomic_fetch_sub(&open_count, 1);
	metric_gauge_add_at(&gauge, o->door, -1);
	budget_part_release(&o->part);
	o->open = false;
	o->tx = NULL;
	return tx;
}

struct kv_tx *
open_txn_expire(struct open_txn *o)
{
	assert(o->open);
	metric_add_at(&expirations, o->door, 1);
	return open_txn_end(o);
}

size_t
open_txn_number(void)
{
	return atomic_load(&open_count);
}
