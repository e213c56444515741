/*
 * Transactions. Every call is handed on to the inner transaction. What becomes of reads, commits
 * and watches is drawn (dice.c), and their answers come through the delayer (delay.c).
 */
#include "base/mem.h"
#include "kv/faulty/faulty_int.h"

static struct faulty_tx *
tx_of(struct kv_tx *base)
{
	return (struct faulty_tx *)base;
}

/* The inner transaction's explanation becomes that of the outer one. */
static enum status
tx_explain(struct faulty_tx *tx, enum status status)
{
	if (status != STATUS_OK)
		tx->base.err = tx->inner->err;
	return status;
}

static enum status
tx_check(struct faulty_tx *tx)
{
	if (atomic_load(&tx->cancelled))
		return STATUS_CANCELLED;
	if (tx->used)
		return err_set(&tx->base.err, STATUS_TX_USED,
			       "the transaction has been committed; reset it first");
	return STATUS_OK;
}

static enum status
tx_inject(struct faulty_tx *tx, enum status status, enum kv_faulty_event event)
{
	faulty_count(event);
	return err_set(&tx->base.err, status, "the faulty store says so");
}

/* ---- Futures ---- */

static void
read_unlink(struct faulty_future *f)
{
	if (f->prev)
		f->prev->next = f->next;
	else
		f->tx->reads = f->next;
	if (f->next)
		f->next->prev = f->prev;
}

static void
faulty_future_free(struct kv_future *base)
{
	struct faulty_future *f = (struct faulty_future *)base;

	if (base->kind == KV_FUTURE_COMMIT)
		return; /* part of its transaction */
	faulty_delayer_remove(f->delayer, f);
	faulty_tap_free_copies(f);
	kv_future_free(f->inner);
	if (base->kind == KV_FUTURE_WATCH)
		faulty_delayer_unref(f->delayer);
	else
		read_unlink(f);
	mem_free(f);
}

static void
faulty_future_init(struct faulty_future *f, struct faulty_tx *tx, enum kv_future_kind kind,
		   struct kv_future *inner)
{
	*f = (struct faulty_future){
		.base = { .engine = &kv_engine_faulty, .kind = kind },
		.inner = inner,
		.tx = tx,
		.delayer = tx->store->delayer,
	};
	if (kind != KV_FUTURE_WATCH)
		f->base.tx = &tx->base;
}

/* ---- Beginning and ending ---- */

static void
faulty_tx_start_over(struct faulty_tx *tx)
{
	uint32_t wear;

	atomic_store(&tx->cancelled, false);
	tx->used = false;
	tx->wrote = false;
	/* The outer transaction checks sizes, and says which writes may use the reserve. */
	tx->inner->uses_reserve = true;
	tx->reads_left = faulty_dice_read(&tx->store->dice, tx->after_unknown);
	wear = atomic_load_explicit(&tx->store->wear, memory_order_relaxed);
	if (wear && (!tx->reads_left || tx->reads_left > wear))
		tx->reads_left = wear + 1;
}

/* Lets go of all futures that refer to answers of the inner transaction. */
static void
tx_release(struct faulty_tx *tx)
{
	if (tx->used)
		faulty_delayer_remove(tx->store->delayer, &tx->commit);
	while (tx->reads)
		faulty_future_free(&tx->reads->base);
	faulty_delayer_forget(tx->store->delayer, tx);
}

void
kv_faulty_wear_out(struct kv_store *store, uint32_t reads)
{
	atomic_store_explicit(&((struct faulty_store *)store)->wear, reads, memory_order_relaxed);
}

bool
kv_faulty_interrupt(struct kv_store *base, uint32_t nth, kv_faulty_step *step, void *arg)
{
	struct faulty_store *store = (struct faulty_store *)base;
	bool waited;

	pthread_mutex_lock(&store->interrupt_lock);
	waited = store->interrupt;
	store->interrupt = step;
	store->interrupt_arg = arg;
	store->interrupt_left = nth;
	pthread_mutex_unlock(&store->interrupt_lock);
	return waited;
}

/* Calls the step that is to come before this commit, if there is one. */
static void
commit_interrupt(struct faulty_store *store)
{
	kv_faulty_step *step = NULL;
	void *arg;

	pthread_mutex_lock(&store->interrupt_lock);
	arg = store->interrupt_arg;
	if (store->interrupt && --store->interrupt_left == 0) {
		step = store->interrupt;
		store->interrupt = NULL;
	}
	pthread_mutex_unlock(&store->interrupt_lock);
	/* Without the lock, since the step commits, too. */
	if (step)
		step(arg);
}

static atomic_uint_fast64_t transactions;

uint64_t
kv_faulty_transactions(void)
{
	return atomic_load_explicit(&transactions, memory_order_relaxed);
}

static atomic_uint_fast64_t round_trips;

uint64_t
kv_faulty_round_trips(void)
{
	return atomic_load_explicit(&round_trips, memory_order_relaxed);
}

/* Before the transaction's statistics go. */
static void
tx_count_round_trips(struct kv_tx *base)
{
	if (tx_of(base)->counts)
		atomic_fetch_add_explicit(&round_trips, base->stats.round_trips,
					  memory_order_relaxed);
}

static enum status
faulty_begin(struct kv_store *base, enum kv_tx_kind kind, struct kv_tx **ret)
{
	struct faulty_store *store = (struct faulty_store *)base;
	struct faulty_tx *tx = mem_zalloc(sizeof(*tx));
	enum status status;

	if (!tx)
		return STATUS_NOMEM;
	status = kv_begin(store->inner, kind, &tx->inner);
	if (status != STATUS_OK) {
		mem_free(tx);
		return status;
	}
	tx->store = store;
	tx->counts = wait_on_fiber();
	if (tx->counts)
		atomic_fetch_add_explicit(&transactions, 1, memory_order_relaxed);
	atomic_init(&tx->cancelled, false);
	faulty_tx_start_over(tx);
	*ret = &tx->base;
	return STATUS_OK;
}

static void
faulty_tx_free(struct kv_tx *base)
{
	struct faulty_tx *tx = tx_of(base);

	tx_count_round_trips(base);
	tx_release(tx);
	kv_tx_free(tx->inner);
	mem_free(tx);
}

static void
faulty_tx_reset(struct kv_tx *base)
{
	struct faulty_tx *tx = tx_of(base);

	tx_count_round_trips(base);
	tx_release(tx);
	kv_tx_reset(tx->inner);
	faulty_tx_start_over(tx);
}

static void
faulty_cancel(struct kv_tx *base)
{
	struct faulty_tx *tx = tx_of(base);

	atomic_store(&tx->cancelled, true);
	kv_cancel(tx->inner);
	faulty_delayer_hurry(tx->store->delayer);
}

static int
faulty_retry_delay_ms(struct kv_tx *base, enum status status)
{
	struct faulty_tx *tx = tx_of(base);
	int delay_ms;

	tx->inner->attempts = base->attempts;
	delay_ms = tx->inner->engine->retry_delay_ms(tx->inner, status);
	if (delay_ms >= 0 && base->attempts + 1 == KV_RETRY_LIMIT)
		faulty_count(KV_FAULTY_RETRY_LIMIT);
	return delay_ms;
}

/* ---- Reads ---- */

/* Counts a read. True if it is the one of this attempt that fails. */
static bool
tx_read_fails(struct faulty_tx *tx)
{
	faulty_dice_pass(&tx->store->dice, FAULTY_EXIT_READ);
	if (tx->reads_left == 0 || --tx->reads_left > 0)
		return false;
	if (tx->after_unknown)
		faulty_count(KV_FAULTY_UNKNOWN_THEN_RETRY);
	return true;
}

/* Makes a future whose answer is that of `inner`, unless `inner` has failed already. */
static struct kv_future *
tx_answer(struct faulty_tx *tx, enum kv_future_kind kind, struct kv_future *inner)
{
	struct faulty_future *f;

	if (!inner->engine) {
		(void)tx_explain(tx, inner->status);
		return inner;
	}
	f = mem_alloc(sizeof(*f));
	if (!f) {
		kv_future_free(inner);
		return kv_future_failed(STATUS_NOMEM);
	}
	faulty_future_init(f, tx, kind, inner);
	if (tx_read_fails(tx))
		f->verdict = tx_inject(tx, STATUS_TX_TOO_OLD, KV_FAULTY_TOO_OLD_READ);
	f->delay_ns = faulty_dice_delay(&tx->store->dice);
	if (f->delay_ns)
		faulty_count(KV_FAULTY_READ_DELAYED);
	f->next = tx->reads;
	if (f->next)
		f->next->prev = f;
	tx->reads = f;
	faulty_delayer_add(tx->store->delayer, f);
	faulty_tap_answer(tx, f);
	return &f->base;
}

static struct kv_future *
faulty_get(struct kv_tx *base, struct str key, enum kv_read mode)
{
	struct faulty_tx *tx = tx_of(base);
	enum status status = tx_check(tx);

	if (status == STATUS_OK)
		status = faulty_tap_read(tx, mode);
	if (status != STATUS_OK)
		return kv_future_failed(status);
	return tx_answer(tx, KV_FUTURE_VALUE, kv_get(tx->inner, key, mode));
}

static struct kv_future *
faulty_get_range(struct kv_tx *base, struct str begin, struct str end,
		 const struct kv_range_options *options)
{
	struct faulty_tx *tx = tx_of(base);
	enum status status = tx_check(tx);
	struct kv_range_options inner = *options;

	if (status == STATUS_OK)
		status = faulty_tap_read(tx, options->mode);
	if (status != STATUS_OK)
		return kv_future_failed(status);
	inner.ahead = false; /* how late the answer is settles this engine */
	return tx_answer(tx, KV_FUTURE_RANGE, kv_get_range(tx->inner, begin, end, &inner));
}

static enum status
faulty_get_read_version(struct kv_tx *base, uint64_t *ret)
{
	struct faulty_tx *tx = tx_of(base);

	TRY(tx_check(tx));
	TRY(faulty_tap_call(tx));
	return tx_explain(tx, kv_get_read_version(tx->inner, ret));
}

static enum status
faulty_get_metadata_version(struct kv_tx *base, uint8_t ret[KV_VERSIONSTAMP_TX_BYTES])
{
	struct faulty_tx *tx = tx_of(base);

	TRY(tx_check(tx));
	TRY(faulty_tap_call(tx));
	TRY(tx_explain(tx, kv_get_metadata_version(tx->inner, ret)));
	return tx_read_fails(tx) ? tx_inject(tx, STATUS_TX_TOO_OLD, KV_FAULTY_TOO_OLD_READ)
				 : STATUS_OK;
}

/* ---- Writes ---- */

static enum status
tx_note_write(struct faulty_tx *tx, enum status status)
{
	if (status == STATUS_OK)
		tx->wrote = true;
	return tx_explain(tx, status);
}

static enum status
faulty_set(struct kv_tx *base, struct str key, struct str value)
{
	struct faulty_tx *tx = tx_of(base);

	TRY(tx_check(tx));
	TRY(faulty_tap_call(tx));
	return tx_note_write(tx, kv_set(tx->inner, key, value));
}

static enum status
faulty_set_no_conflict(struct kv_tx *base, struct str key, struct str value)
{
	struct faulty_tx *tx = tx_of(base);

	TRY(tx_check(tx));
	TRY(faulty_tap_call(tx));
	return tx_note_write(tx, kv_set_no_conflict(tx->inner, key, value));
}

static enum status
faulty_clear(struct kv_tx *base, struct str key)
{
	struct faulty_tx *tx = tx_of(base);

	TRY(tx_check(tx));
	TRY(faulty_tap_call(tx));
	return tx_note_write(tx, kv_clear(tx->inner, key));
}

static enum status
faulty_clear_range(struct kv_tx *base, struct str begin, struct str end)
{
	struct faulty_tx *tx = tx_of(base);

	TRY(tx_check(tx));
	TRY(faulty_tap_call(tx));
	if (str_cmp(begin, end) >= 0)
		return STATUS_OK;
	return tx_note_write(tx, kv_clear_range(tx->inner, begin, end));
}

static enum status
faulty_atomic(struct kv_tx *base, enum kv_atomic op, struct str key, struct str operand)
{
	struct faulty_tx *tx = tx_of(base);

	TRY(tx_check(tx));
	TRY(faulty_tap_call(tx));
	return tx_note_write(tx, kv_atomic(tx->inner, op, key, operand));
}

static enum status
faulty_set_versionstamped_key(struct kv_tx *base, struct str key, size_t offset, struct str value)
{
	struct faulty_tx *tx = tx_of(base);

	TRY(tx_check(tx));
	TRY(faulty_tap_call(tx));
	return tx_note_write(tx, kv_set_versionstamped_key(tx->inner, key, offset, value));
}

static enum status
faulty_set_versionstamped_value(struct kv_tx *base, struct str key, struct str value, size_t offset)
{
	struct faulty_tx *tx = tx_of(base);

	TRY(tx_check(tx));
	TRY(faulty_tap_call(tx));
	return tx_note_write(tx, kv_set_versionstamped_value(tx->inner, key, value, offset));
}

static enum status
faulty_add_read_conflict(struct kv_tx *base, struct str begin, struct str end)
{
	struct faulty_tx *tx = tx_of(base);

	TRY(tx_check(tx));
	TRY(faulty_tap_call(tx));
	if (tx->store->tap)
		tx->store->tap->read_ranges++;
	return tx_explain(tx, kv_add_read_conflict_range(tx->inner, begin, end));
}

static enum status
faulty_add_write_conflict(struct kv_tx *base, struct str begin, struct str end)
{
	struct faulty_tx *tx = tx_of(base);

	TRY(tx_check(tx));
	TRY(faulty_tap_call(tx));
	if (tx->store->tap)
		tx->store->tap->write_ranges++;
	if (str_cmp(begin, end) >= 0)
		return STATUS_OK;
	return tx_note_write(tx, kv_add_write_conflict_range(tx->inner, begin, end));
}

static enum status
faulty_touch_metadata_version(struct kv_tx *base)
{
	struct faulty_tx *tx = tx_of(base);

	TRY(tx_check(tx));
	TRY(faulty_tap_call(tx));
	return tx_note_write(tx, kv_touch_metadata_version(tx->inner));
}

/* ---- Commits ---- */

static enum status
tx_verdict(struct faulty_tx *tx, enum faulty_commit fate)
{
	switch (fate) {
	case FAULTY_COMMIT_WELL:
		break;
	case FAULTY_COMMIT_CONFLICT:
		return tx_inject(tx, STATUS_TX_CONFLICT, KV_FAULTY_CONFLICT);
	case FAULTY_COMMIT_TOO_OLD:
		return tx_inject(tx, STATUS_TX_TOO_OLD, KV_FAULTY_TOO_OLD_COMMIT);
	case FAULTY_COMMIT_UNKNOWN_APPLIED:
		return err_set(&tx->base.err, STATUS_TX_UNKNOWN, "the faulty store says so");
	case FAULTY_COMMIT_UNKNOWN_NOT_APPLIED:
		return tx_inject(tx, STATUS_TX_UNKNOWN, KV_FAULTY_UNKNOWN_NOT_APPLIED);
	}
	return STATUS_OK;
}

/* Draws what becomes of a commit. One that writes nothing cannot fail. */
static enum faulty_commit
tx_draw_commit(struct faulty_tx *tx)
{
	enum faulty_commit fate;

	if (!tx->wrote)
		return FAULTY_COMMIT_WELL;
	faulty_dice_pass(&tx->store->dice, FAULTY_EXIT_BEFORE_COMMIT);
	fate = faulty_dice_commit(&tx->store->dice, tx->after_unknown);
	if (fate != FAULTY_COMMIT_WELL && tx->after_unknown)
		faulty_count(KV_FAULTY_UNKNOWN_THEN_RETRY);
	if (fate >= FAULTY_COMMIT_UNKNOWN_APPLIED) {
		if (tx->after_unknown)
			faulty_count(KV_FAULTY_UNKNOWN_TWICE);
		tx->after_unknown = true;
	}
	return fate;
}

static struct kv_future *
faulty_commit(struct kv_tx *base)
{
	struct faulty_tx *tx = tx_of(base);
	struct kv_future *inner = NULL;
	enum status status = tx_check(tx);
	enum faulty_commit fate;

	if (status == STATUS_OK)
		status = faulty_tap_call(tx);
	if (status != STATUS_OK)
		return kv_future_failed(status);
	if (tx->wrote)
		commit_interrupt(tx->store);
	fate = tx_draw_commit(tx);
	if (fate == FAULTY_COMMIT_WELL || fate == FAULTY_COMMIT_UNKNOWN_APPLIED) {
		if (tx->base.wants_stamp)
			kv_want_versionstamp(tx->inner);
		inner = kv_commit(tx->inner);
		if (!inner->engine) {
			(void)tx_explain(tx, inner->status);
			return inner;
		}
	}
	tx->used = true;
	faulty_future_init(&tx->commit, tx, KV_FUTURE_COMMIT, inner);
	tx->commit.verdict = tx_verdict(tx, fate);
	tx->commit.delay_ns = faulty_dice_delay(&tx->store->dice);
	if (tx->commit.delay_ns)
		faulty_count(KV_FAULTY_COMMIT_DELAYED);
	faulty_delayer_add(tx->store->delayer, &tx->commit);
	return &tx->commit.base;
}

static enum status
tx_check_committed(struct faulty_tx *tx)
{
	const struct kv_future *f = &tx->commit.base;

	if (!tx->used || !kv_future_ready(f) || f->status != STATUS_OK)
		return err_set(&tx->base.err, STATUS_NOT_FOUND,
			       "only a commit that wrote something has a version");
	return STATUS_OK;
}

static enum status
faulty_committed_version(struct kv_tx *base, uint64_t *ret)
{
	struct faulty_tx *tx = tx_of(base);

	TRY(tx_check_committed(tx));
	return tx_explain(tx, kv_committed_version(tx->inner, ret));
}

static enum status
faulty_versionstamp(struct kv_tx *base, uint8_t ret[KV_VERSIONSTAMP_TX_BYTES])
{
	struct faulty_tx *tx = tx_of(base);

	TRY(tx_check_committed(tx));
	return tx_explain(tx, kv_versionstamp(tx->inner, ret));
}

/* ---- Watches ---- */

static struct kv_future *
faulty_watch(struct kv_tx *base, struct str key)
{
	struct faulty_tx *tx = tx_of(base);
	enum status status = tx_check(tx);
	enum faulty_watch fate;
	struct kv_future *inner;
	struct faulty_future *f;

	if (status == STATUS_OK)
		status = faulty_tap_call(tx);
	if (status != STATUS_OK)
		return kv_future_failed(status);
	inner = kv_watch(tx->inner, key);
	if (!inner->engine) {
		(void)tx_explain(tx, inner->status);
		return inner;
	}
	fate = faulty_dice_watch(&tx->store->dice);
	if (fate == FAULTY_WATCH_WELL)
		return inner; /* the inner future itself: a watch belongs to no transaction */
	f = mem_alloc(sizeof(*f));
	if (!f) {
		kv_future_free(inner);
		return kv_future_failed(STATUS_NOMEM);
	}
	faulty_future_init(f, tx, KV_FUTURE_WATCH, inner);
	f->watch = fate;
	f->delay_ns = faulty_dice_watch_delay(&tx->store->dice);
	faulty_delayer_ref(f->delayer);
	faulty_delayer_add(f->delayer, f);
	return &f->base;
}

const struct kv_engine kv_engine_faulty = {
	.scheme = "faulty",
	.library = "faulty 0",
	.unknown_results = true,
	.open = faulty_open,
	.close = faulty_close,
	.begin = faulty_begin,
	.store_stats = faulty_store_stats,
	.estimate_bytes = faulty_estimate_bytes,
	.compact = faulty_compact,
	.backup_create = faulty_backup_create,
	.backup_restore = faulty_backup_restore,
	.tx_free = faulty_tx_free,
	.tx_reset = faulty_tx_reset,
	.cancel = faulty_cancel,
	.get = faulty_get,
	.get_range = faulty_get_range,
	.get_read_version = faulty_get_read_version,
	.set = faulty_set,
	.set_no_conflict = faulty_set_no_conflict,
	.clear_range = faulty_clear_range,
	.clear = faulty_clear,
	.atomic = faulty_atomic,
	.set_versionstamped_key = faulty_set_versionstamped_key,
	.set_versionstamped_value = faulty_set_versionstamped_value,
	.add_read_conflict = faulty_add_read_conflict,
	.add_write_conflict = faulty_add_write_conflict,
	.get_metadata_version = faulty_get_metadata_version,
	.touch_metadata_version = faulty_touch_metadata_version,
	.commit = faulty_commit,
	.committed_version = faulty_committed_version,
	.versionstamp = faulty_versionstamp,
	.watch = faulty_watch,
	.retry_delay_ms = faulty_retry_delay_ms,
	.future_free = faulty_future_free,
};
