#include "catalog/clock.h"

#include "base/log.h"
#include "catalog/chores.h"
#include "catalog/keys.h"
#include "kv/keyspace.h"

enum {
	CLOCK_VALUE_BYTES = 64,
	CLOCK_CHORE_PAUSE_MS = 5000,
};

#define CLOCK_HOUR_US (UINT64_C(3600) * 1000 * 1000)      /* the age at which it is written again */
#define CLOCK_GONE_US (UINT64_C(30) * 24 * CLOCK_HOUR_US) /* and that of another machine goes */

static void
clock_key(const uint8_t boot[CLOCK_BOOT_ID_BYTES], struct buf *key)
{
	buf_clear(key);
	tuple_put_u64(key, KV_ROOT);
	tuple_put_u64(key, KV_ROOT_CLOCKS);
	tuple_put_bytes(key, str_of(boot, CLOCK_BOOT_ID_BYTES));
}

/* ---- Reading ---- */

struct clock_look {
	struct kv_store *store;
	struct kv_tx *tx;
	struct steady_state now;   /* `now.boot` is what is looked for */
	struct steady_state own;   /* of this start of the machine */
	struct steady_state other; /* the latest of others */
	bool has_own, has_other;
	bool clears; /* those that nobody needs */
	struct err *err;
};

static enum status
clock_take(void *arg, struct tuple_reader key, struct str value)
{
	AUTO(buf_release) struct buf gone = CATALOG_KEY_INIT;
	struct clock_look *look = arg;
	struct steady_state state;
	struct tuple_elem e;

	if (tuple_next(&key, &e) != STATUS_OK || e.kind != TUPLE_BYTES)
		return STATUS_OK;
	tuple_unescape(&e, &gone);
	if (gone.len != CLOCK_BOOT_ID_BYTES ||
	    catalog_clock_record_parse(value, &state, look->err) != STATUS_OK)
		return STATUS_OK; /* a newer frond's; the check tells of damage */
	memcpy(state.boot, gone.ptr, CLOCK_BOOT_ID_BYTES);
	if (memcmp(state.boot, look->now.boot, CLOCK_BOOT_ID_BYTES) == 0) {
		look->own = state;
		look->has_own = true;
		return STATUS_OK;
	}
	if (!look->has_other || state.steady_us > look->other.steady_us)
		look->other = state;
	look->has_other = true;
	if (!look->clears ||
	    (kv_is_shared(look->store) && state.steady_us + CLOCK_GONE_US >= look->now.steady_us))
		return STATUS_OK;
	clock_key(state.boot, &gone);
	TRY(catalog_key_status(&gone));
	return kv_clear(look->tx, buf_str(&gone));
}

static enum status
clock_look_body(struct kv_tx *tx, void *arg)
{
	struct clock_look *look = arg;

	look->tx = tx;
	look->has_own = look->has_other = false;
	return catalog_root_scan(tx, KV_ROOT_CLOCKS, clock_take, look);
}

enum status
catalog_clock_restore(struct kv_store *store, struct err *err)
{
	struct err ignored = { 0 };
	struct clock_look look = { .store = store, .err = &ignored };

	clock_boot_id(look.now.boot);
	TRY(kv_run_read(store, clock_look_body, &look, err));
	if (look.has_own)
		(void)steady_restore(&look.own);
	else if (look.has_other && !kv_is_shared(store))
		(void)steady_restore(&look.other);
	return STATUS_OK;
}

/* ---- Writing ---- */

/* True if the record says what the clocks show, and is not old. */
static bool
clock_is_kept(const struct clock_look *look)
{
	return look->has_own && steady_follows(&look->own, &look->now) &&
	       look->now.boot_us - look->own.boot_us < CLOCK_HOUR_US;
}

static enum status
clock_keep_body(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(CLOCK_VALUE_BYTES);
	struct clock_look *look = arg;

	TRY(clock_look_body(tx, look));
	clock_key(look->now.boot, &key);
	catalog_clock_record_put(&look->now, &value);
	TRY(catalog_key_status(&key));
	TRY(buf_status(&value));
	return kv_set(tx, buf_str(&key), buf_str(&value));
}

enum status
catalog_clock_keep(struct kv_store *store, bool *ret_written, struct err *err)
{
	struct err ignored = { 0 };
	struct clock_look look = { .store = store, .err = &ignored };

	*ret_written = false;
	steady_save(&look.now);
	TRY(kv_run_read(store, clock_look_body, &look, err));
	if (clock_is_kept(&look))
		return STATUS_OK;
	look.clears = true;
	TRY(kv_run(store, clock_keep_body, &look, NULL, err));
	*ret_written = true;
	return STATUS_OK;
}

/* ---- As a chore ---- */

/* The process has one clock, so it is told of a step once, whatever number of stores it has. */
static void
clock_tell(void)
{
	static _Atomic uint64_t told;
	struct steady_steps steps;

	steady_steps(&steps);
	if (atomic_exchange(&told, steps.count) == steps.count)
		return;
	log_event(LOG_LEVEL_WARN, "clock_stepped", "by_ms=%lld lifetimes_ahead_ms=%lld steps=%llu",
		  (long long)steps.last_ms, (long long)steady_ahead_ms(),
		  (unsigned long long)steps.count);
}

static enum status
clock_chore_run(void *store, struct chore_turn *turn, struct err *err)
{
	bool ignored;

	(void)turn;
	(void)steady_us(); /* looks at the wall clock even if nobody else does */
	clock_tell();
	return catalog_clock_keep(store, &ignored, err);
}

void
catalog_clock_chores_add(struct chores *chores, struct kv_store *store)
{
	chores_add(chores, &(struct chore){
				   .name = "keep_clock",
				   .run = clock_chore_run,
				   .arg = store,
				   .thread = CHORE_QUICK,
				   .writes = true,
				   .unlisted = true,
				   .pause_ms = CLOCK_CHORE_PAUSE_MS,
			   });
}
