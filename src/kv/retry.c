/*
 * The retry loop, and what it takes to survive a commit of which nobody knows the outcome: the ids
 * that attempts leave behind, which txid.h describes, and their removal.
 */
#include <assert.h>

#include "base/big_endian.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/steady.h"
#include "base/mem.h"
#include "base/metric.h"
#include "base/rand.h"
#include "kv/engine.h"
#include "kv/fate.h"
#include "kv/turns.h"
#include "kv/txid.h"
#include "kv/version.h"
#include "loop/pause.h"
#include "loop/step.h"

enum {
	SWEEP_TX_IDS = 2000, /* ids that one transaction of the sweep looks at */
	SWEEP_TXS = 10,      /* transactions of one call */
};

enum retry_reason {
	RETRY_CONFLICT,
	RETRY_TOO_OLD,
	RETRY_UNKNOWN,
	RETRY_OTHER,
	RETRY_REASONS,
};

static const char *const retry_reasons[RETRY_REASONS] = {
	[RETRY_CONFLICT] = "conflict",
	[RETRY_TOO_OLD] = "too_old",
	[RETRY_UNKNOWN] = "unknown_result",
	[RETRY_OTHER] = "other",
};

METRIC_COUNTER(commits, "frond_kv_commits_total", METRIC_NUMBER,
	       "Transactions with writes that were committed.");
METRIC_HISTOGRAM(commit_time, "frond_kv_commit_duration_seconds", METRIC_SECONDS,
		 "Time from the start of a commit to its result, of each attempt with writes.",
		 METRIC_TIME_LEAST, METRIC_TIME_BUCKETS);
METRIC_COUNTERS(retries, "frond_kv_retries_total", METRIC_NUMBER,
		"Attempts of transactions that failed and were followed by another one, by reason.",
		"reason", retry_reasons);
METRIC_COUNTER(unknown_results, "frond_kv_unknown_results_total", METRIC_NUMBER,
	       "Commits of which it was not known at first whether they had taken place.");
METRIC_COUNTER(given_up, "frond_kv_gave_up_total", METRIC_NUMBER,
	       "Transactions that failed after the last of all their attempts.");

METRIC_COUNTER(
	turns_taken, "frond_kv_turns_total", METRIC_NUMBER,
	"Transactions that had a turn at a key, behind others of the process that changed it.");

/* All attempts of one kv_run(). */
struct kv_attempts {
	struct kv_store *store;
	kv_body *body;
	void *arg;
	bool commits;
	bool repeatable;       /* taking place twice is the same as once: no id is left */
	uint8_t *ret_stamp;    /* or NULL */
	uint64_t *ret_version; /* or NULL */
	bool unknown;          /* the outcome of an attempt is unknown: later ones ask first */
	struct txid id;        /* taken by the first attempt that writes, and left by each */
	uint64_t commit_ns;    /* when the commit under way has begun */
	/* Ids of earlier runs that the attempt under way clears as well; NULL: none. */
	struct txid_span *clearing;
	bool left; /* a commit under way is the store's now, with its transaction and the ids */
	struct kv_lanes *lanes; /* that the caller has; NULL: none that it tells of */
	struct buf met;         /* the key at which it conflicts; empty: not known */
	bool queued;            /* it has waited for a turn, once and for all */
	struct kv_turn turn;
};

static enum status
tx_on_error(struct kv_tx *tx, enum status status, bool pauses)
{
	int delay_ms = tx->engine->retry_delay_ms(tx, status);
	uint32_t attempts = tx->attempts + 1;

	if (delay_ms < 0)
		return status;
	kv_tx_reset(tx);
	tx->attempts = attempts;
	if (delay_ms > 0 && pauses)
		wait_pause((uint64_t)delay_ms);
	return STATUS_OK;
}

enum status
kv_on_error(struct kv_tx *tx, enum status status)
{
	return tx_on_error(tx, status, true);
}

static bool
tx_has_written(const struct kv_tx *tx)
{
	return tx->stats.sets || tx->stats.clears;
}

/* The ids of this process in the store. NULL: out of memory. */
static struct txids *
store_txids(struct kv_store *store)
{
	struct txids *known = atomic_load_explicit(&store->txids, memory_order_acquire);
	struct txids *made;

	if (known)
		return known;
	made = txids_new();
	/* Another thread may have been quicker; then its ids are everybody's. */
	if (made && !atomic_compare_exchange_strong(&store->txids, &known, made)) {
		txids_free(made);
		return known;
	}
	return made;
}

/*
 * Leaves the run's id in the transaction. Now and then a transaction also clears what earlier runs
 * have left: one clear of a range, unless the transaction is large already.
 */
static enum status
attempt_leave_id(struct kv_attempts *run, struct kv_tx *tx)
{
	struct txids *ids = store_txids(run->store);

	if (!ids)
		return STATUS_NOMEM;
	assert(!run->clearing);
	tx->uses_reserve = true;
	if (tx->stats.size_bytes < KV_LIMIT_TX_BYTES / 2)
		run->clearing = txids_claim(ids, false);
	if (run->clearing)
		TRY(txid_span_clear(ids, run->clearing, tx));
	/* Behind the claim, so that a span that is full does not get this id, too. */
	if (!run->id.span)
		TRY(txid_take(ids, &run->id));
	return txid_write(tx, &run->id);
}

/* The attempt is over. If it failed, or nobody knows, a later transaction clears them again. */
static void
attempt_settle_clearing(struct kv_attempts *run, bool committed)
{
	if (!run->clearing)
		return;
	if (committed)
		txids_cleared(run->store->txids, run->clearing);
	else
		txids_not_cleared(run->store->txids, run->clearing);
	run->clearing = NULL;
}

/*
 * After an unknown outcome: finds out whether one of the attempts took place after all. If one of
 * their commits should still be under way, this read conflicts with it, so it cannot be missed.
 */
static enum status
attempt_ask_id(struct kv_attempts *run, struct kv_tx *tx, bool *ret_done)
{
	struct kv_future *f = kv_get(tx, run->id.key, KV_READ);
	struct txid_record record;
	struct str value;

	TRY(kv_future_wait(f));
	*ret_done = kv_future_value(f, &value);
	if (*ret_done && (run->ret_stamp || run->ret_version)) {
		TRY(txid_record_parse(value, &record));
		if (run->ret_stamp)
			memcpy(run->ret_stamp, record.stamp, KV_VERSIONSTAMP_TX_BYTES);
		if (run->ret_version)
			*run->ret_version = big_endian_64(record.stamp);
	}
	return STATUS_OK;
}

/* ---- Turns at a key ---- */

/* Those of a store. NULL: out of memory, or nobody waits for turns there. */
static struct kv_turns *
store_turns(struct kv_store *store, bool make)
{
	struct kv_turns *known = atomic_load_explicit(&store->turns, memory_order_acquire);
	struct kv_turns *made;

	if (known || !make || !store->engine->conflicting_key)
		return known;
	made = kv_turns_new();
	if (made && !atomic_compare_exchange_strong(&store->turns, &known, made)) {
		kv_turns_free(made);
		return known;
	}
	return made;
}

/* Before each attempt: until it has had its turn it may meet others who have theirs. */
static void
attempt_mind_turns(struct kv_attempts *run, struct kv_tx *tx)
{
	buf_clear(&run->met);
	tx->met = &run->met;
	tx->turns = run->commits && !run->queued ? store_turns(run->store, false) : NULL;
}

/*
 * After a conflict: true if it is known at which key. The store says so of a second attempt: a
 * transaction that conflicts once need not wait for anybody.
 */
static bool
attempt_finds_key(struct kv_attempts *run, struct kv_tx *tx, enum status status)
{
	if (status != STATUS_TX_CONFLICT || run->queued || !run->commits ||
	    !tx->engine->conflicting_key)
		return false;
	if (!run->met.len && tx->attempts > 0 &&
	    tx->engine->conflicting_key(tx, &run->met) != STATUS_OK)
		buf_clear(&run->met);
	return run->met.len > 0 && buf_status(&run->met) == STATUS_OK;
}

/* The transaction holds nothing meanwhile. */
static void
attempt_take_turn(struct kv_attempts *run, struct kv_tx *tx)
{
	struct kv_turns *turns = store_turns(run->store, true);

	run->queued = true;
	if (!turns || !kv_turn_take(turns, buf_str(&run->met), &run->turn))
		return;
	metric_add(&turns_taken, 1);
	/* Who conflicts from now on is another process. */
	tx->attempts = 0;
}

/*
 * The first half of an attempt. With STATUS_OK its commit is under way, or `*ret_commit` is NULL
 * and there is nothing to wait for. `*ret_settled` says whether it is known that no earlier attempt
 * took place. If it is not, a failure must not be reported as such: the work may have been done.
 */
static enum status
attempt_begin(struct kv_attempts *run, struct kv_tx *tx, struct kv_future **ret_commit,
	      bool *ret_settled)
{
	bool done = false;

	*ret_commit = NULL;
	*ret_settled = !run->unknown;
	attempt_mind_turns(run, tx);
	if (run->ret_stamp)
		memset(run->ret_stamp, 0, KV_VERSIONSTAMP_TX_BYTES);
	if (run->ret_version)
		*run->ret_version = 0;
	if (run->unknown) {
		TRY(attempt_ask_id(run, tx, &done));
		*ret_settled = true;
		if (done)
			return STATUS_OK;
	}
	if (run->ret_stamp)
		kv_want_versionstamp(tx);
	TRY(run->body(tx, run->arg));
	if (!run->commits)
		return STATUS_OK;
	if (tx_has_written(tx))
		TRY(fates_check(tx));
	if (tx_has_written(tx) && tx->engine->unknown_results && !run->repeatable)
		TRY(attempt_leave_id(run, tx));
	if (tx_has_written(tx))
		run->commit_ns = clock_mono_ns();
	*ret_commit = kv_commit(tx);
	return STATUS_OK;
}

static void
attempt_count_commit(const struct kv_attempts *run, enum status status)
{
	metric_observe(&commit_time, clock_mono_ns() - run->commit_ns);
	if (status == STATUS_OK)
		metric_add(&commits, 1);
	else if (status == STATUS_TX_UNKNOWN)
		metric_add(&unknown_results, 1);
}

static enum retry_reason
retry_reason(enum status status)
{
	if (status == STATUS_TX_CONFLICT)
		return RETRY_CONFLICT;
	if (status == STATUS_TX_TOO_OLD)
		return RETRY_TOO_OLD;
	return status == STATUS_TX_UNKNOWN ? RETRY_UNKNOWN : RETRY_OTHER;
}

/*
 * Waits for the commit for a while. Returns true if a cluster has not answered it by then: the
 * store keeps the transaction and the ids until it has, and this run is over.
 */
static bool
attempt_leave(struct kv_attempts *run, struct kv_tx *tx, struct kv_future *commit)
{
	const struct fate_ids ids = {
		.taken = run->id.span,
		.clearing = run->clearing,
		.lanes = run->lanes,
	};

	run->left = fates_wait(tx, commit, &ids);
	if (!run->left)
		return false;
	if (run->lanes)
		run->lanes->ret_left = true;
	run->id.span = NULL;
	run->clearing = NULL;
	metric_add(&unknown_results, 1);
	return true;
}

static enum status
attempt_end(struct kv_attempts *run, struct kv_tx *tx, struct kv_future *commit)
{
	enum status status;

	if (!commit)
		return STATUS_OK;
	if (attempt_leave(run, tx, commit))
		return STATUS_TX_UNKNOWN;
	status = kv_future_wait(commit);
	if (tx_has_written(tx))
		attempt_count_commit(run, status);
	if (status == STATUS_TX_UNKNOWN && tx_has_written(tx) && !run->repeatable)
		run->unknown = true;
	if (status != STATUS_OK || !tx_has_written(tx))
		return status;
	if (run->ret_version)
		TRY(kv_committed_version(tx, run->ret_version));
	return run->ret_stamp ? kv_versionstamp(tx, run->ret_stamp) : STATUS_OK;
}

/*
 * Explains a failure: by the engine's text if there is one; otherwise by what the body has put into
 * the same `err`; otherwise by the status's name.
 */
static void
run_explain(struct err *err, const struct kv_tx *tx, enum status status)
{
	if (tx->err.status == status && tx->err.text[0])
		err_set(err, status, "%s", tx->err.text);
	else if (err && err->status != status)
		err_set(err, status, "%s", status_name(status));
}

/*
 * Runs the second half of the first attempt, whose first half has ended with `first`, and then
 * further attempts, until one succeeds or none can help.
 */
static enum status
run_until_settled(struct kv_attempts *run, struct kv_tx *tx, enum status first,
		  struct kv_future *commit, struct err *err)
{
	enum status status = first;
	bool settled = true;

	for (int attempts = 1;; attempts++) {
		enum status verdict;
		bool queues;

		if (status == STATUS_OK)
			status = attempt_end(run, tx, commit);
		if (run->left)
			return err_set(err, STATUS_TX_UNKNOWN,
				       "the cluster has not answered in time, and the change may "
				       "have taken place, or may still take place");
		attempt_settle_clearing(run, status == STATUS_OK);
		if (status == STATUS_OK)
			return STATUS_OK;
		if (!settled && tx->engine->retry_delay_ms(tx, status) < 0)
			return err_set(err, STATUS_TX_UNKNOWN,
				       "an attempt may have succeeded, and asking failed (%s)",
				       status_name(status));
		run_explain(err, tx, status);
		queues = attempt_finds_key(run, tx, status);
		verdict = tx_on_error(tx, status, !queues);
		if (verdict != STATUS_OK)
			return verdict;
		if (queues)
			attempt_take_turn(run, tx);
		if (attempts == KV_RETRY_LIMIT)
			break;
		/*
		 * A client that has gone, or whose time is over, waits for no further attempt. No
		 * attempt has committed anything.
		 */
		verdict = run->unknown ? STATUS_OK : step_ask();
		if (verdict != STATUS_OK)
			return err_set(err, verdict,
				       "the transaction was not tried again: nobody waits for it");
		metric_add_at(&retries, retry_reason(status), 1);
		status = attempt_begin(run, tx, &commit, &settled);
	}
	metric_add(&given_up, 1);
	if (run->unknown)
		return err_set(err, STATUS_TX_UNKNOWN,
			       "an attempt may have succeeded; gave up after %d", KV_RETRY_LIMIT);
	return err_set(err, status, "gave up after %d attempts: %s", KV_RETRY_LIMIT,
		       status_name(status));
}

/* The run is over, and nobody will ask for its id. */
static void
run_release(struct kv_attempts *run)
{
	assert(!run->clearing);
	kv_turn_end(run->store->turns, &run->turn);
	buf_release(&run->met);
	if (run->id.span)
		txid_release(run->store->txids, &run->id);
}

static enum status
run_begin_tx(const struct kv_attempts *run, enum kv_tx_kind kind, struct kv_tx **ret,
	     struct err *err)
{
	enum status status = kv_begin(run->store, kind, ret);

	if (status != STATUS_OK)
		return err_set(err, status, "no transaction can begin: %s", status_name(status));
	return STATUS_OK;
}

/* Frees the transaction. */
static enum status
run_all_in(struct kv_attempts *run, struct kv_tx *tx, struct err *err)
{
	struct kv_future *commit;
	enum status status;
	bool settled;

	status = attempt_begin(run, tx, &commit, &settled);
	status = run_until_settled(run, tx, status, commit, err);
	if (!run->left)
		kv_tx_free(tx);
	run_release(run);
	return status;
}

static enum status
run_all(struct kv_attempts *run, enum kv_tx_kind kind, struct err *err)
{
	struct kv_tx *tx;

	TRY(run_begin_tx(run, kind, &tx, err));
	return run_all_in(run, tx, err);
}

enum status
kv_run(struct kv_store *store, kv_body *body, void *arg, uint8_t *ret_stamp, struct err *err)
{
	struct kv_attempts r = {
		.store = store,
		.met = BUF_INIT(KV_LIMIT_KEY_BYTES + 1),
		.body = body,
		.arg = arg,
		.commits = true,
		.ret_stamp = ret_stamp,
	};

	return run_all(&r, KV_TX_READ_WRITE, err);
}

enum status
kv_run_versioned(struct kv_store *store, kv_body *body, void *arg, uint64_t *ret_version,
		 struct err *err)
{
	struct kv_attempts r = {
		.store = store,
		.met = BUF_INIT(KV_LIMIT_KEY_BYTES + 1),
		.body = body,
		.arg = arg,
		.commits = true,
		.ret_version = ret_version,
	};

	return run_all(&r, KV_TX_READ_WRITE, err);
}

enum status
kv_run_in_lanes(struct kv_store *store, kv_body *body, void *arg, struct kv_lanes *lanes,
		struct err *err)
{
	struct kv_attempts r = {
		.store = store,
		.met = BUF_INIT(KV_LIMIT_KEY_BYTES + 1),
		.body = body,
		.arg = arg,
		.commits = true,
		.lanes = lanes,
	};

	lanes->ret_left = false;
	return run_all(&r, KV_TX_READ_WRITE, err);
}

enum status
kv_run_in(struct kv_store *store, struct kv_tx *begun, kv_body *body, void *arg, struct err *err)
{
	struct kv_attempts r = {
		.store = store,
		.met = BUF_INIT(KV_LIMIT_KEY_BYTES + 1),
		.body = body,
		.arg = arg,
		.commits = true,
	};

	if (!begun)
		return run_all(&r, KV_TX_READ_WRITE, err);
	assert((begun->kind == KV_TX_READ_WRITE || store->read_only) && !tx_has_written(begun));
	return run_all_in(&r, begun, err);
}

enum status
kv_run_read(struct kv_store *store, kv_body *body, void *arg, struct err *err)
{
	struct kv_attempts r = { .store = store, .body = body, .arg = arg };

	return run_all(&r, KV_TX_READ_ONLY, err);
}

/* ---- In two halves ---- */

struct kv_running {
	struct kv_attempts run;
	struct kv_tx *tx;
	struct kv_future *commit;
	enum status status; /* of the first half */
};

enum status
kv_run_begin(struct kv_store *store, kv_body *body, void *arg, struct kv_running **ret,
	     struct err *err)
{
	struct kv_running *r = mem_alloc(sizeof(*r));
	enum status status;
	bool settled;

	if (!r)
		return err_set(err, STATUS_NOMEM, "no transaction can begin: out of memory");
	*r = (struct kv_running){
		.run = { .store = store,
			 .met = BUF_INIT(KV_LIMIT_KEY_BYTES + 1),
			 .body = body,
			 .arg = arg,
			 .commits = true },
	};
	status = run_begin_tx(&r->run, KV_TX_READ_WRITE, &r->tx, err);
	if (status != STATUS_OK) {
		mem_free(r);
		return status;
	}
	r->status = attempt_begin(&r->run, r->tx, &r->commit, &settled);
	*ret = r;
	return STATUS_OK;
}

enum status
kv_run_end(struct kv_running *r, struct err *err)
{
	enum status status = run_until_settled(&r->run, r->tx, r->status, r->commit, err);

	if (!r->run.left)
		kv_tx_free(r->tx);
	run_release(&r->run);
	mem_free(r);
	return status;
}

/* ---- Clearing transaction ids ---- */

/* Runs a body of which it does not matter whether it takes place once or twice. */
static enum status
run_repeatable(struct kv_store *store, kv_body *body, void *arg, struct err *err)
{
	struct kv_attempts r = {
		.store = store,
		.met = BUF_INIT(KV_LIMIT_KEY_BYTES + 1),
		.body = body,
		.arg = arg,
		.commits = true,
		.repeatable = true,
	};

	return run_all(&r, KV_TX_READ_WRITE, err);
}

struct span_clearing {
	const struct txids *ids;
	const struct txid_span *span;
};

static enum status
clear_span_body(struct kv_tx *tx, void *arg)
{
	const struct span_clearing *c = arg;
	uint64_t version;

	/* Fails after a while if the cluster does not answer, which a commit would wait for. */
	TRY(kv_get_read_version(tx, &version));
	return txid_span_clear(c->ids, c->span, tx);
}

static enum status
txids_clear_spans(struct kv_store *store, bool last_of_all, struct err *err)
{
	struct txids *ids = atomic_load_explicit(&store->txids, memory_order_acquire);
	struct span_clearing c = { .ids = ids };
	struct txid_span *span;
	enum status status;

	while (ids && (span = txids_claim(ids, last_of_all))) {
		c.span = span;
		status = run_repeatable(store, clear_span_body, &c, err);
		if (status != STATUS_OK) {
			txids_not_cleared(ids, span);
			return status;
		}
		txids_cleared(ids, span);
	}
	return STATUS_OK;
}

enum status
kv_txids_clear(struct kv_store *store, struct err *err)
{
	fates_settle(store);
	return txids_clear_spans(store, false, err);
}

void
kv_txids_finish(struct kv_store *store)
{
	/* What cannot be cleared now is the sweep's. */
	(void)txids_clear_spans(store, true, NULL);
	txids_free(atomic_exchange(&store->txids, NULL));
}

/* ---- The sweep ---- */

struct sweep {
	uint64_t before_ms;
	struct str begin; /* of the part of all ids that is still to be looked at */
	struct str end;
	struct buf next; /* owned: where `begin` is next */
	bool more;       /* there is something behind `next` */
	size_t cleared;
};

static enum status
txid_sweep_body(struct kv_tx *tx, void *arg)
{
	const struct kv_range_options options = { .limit = SWEEP_TX_IDS, .mode = KV_SNAPSHOT };
	struct sweep *sweep = arg;
	struct kv_future *f = kv_get_range(tx, sweep->begin, sweep->end, &options);
	struct kv_range range;

	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	sweep->more = range.more;
	sweep->cleared = 0;
	for (size_t i = 0; i < range.count; i++) {
		struct txid_record record;

		/* Not an id, which `frond verify` tells; or a newer frond's, which sweeps it. */
		if (txid_record_parse(range.pairs[i].value, &record) != STATUS_OK ||
		    record.format > TXID_FORMAT)
			continue;
		if (record.ms < sweep->before_ms) {
			/* Key by key: an id that is new may have come to lie between two. */
			TRY(kv_clear(tx, range.pairs[i].key));
			sweep->cleared++;
		}
	}
	buf_clear(&sweep->next);
	if (range.count) {
		buf_append_str(&sweep->next, range.pairs[range.count - 1].key);
		buf_append_str(&sweep->next, str_of("", 1));
	}
	return buf_status(&sweep->next);
}

/* Looks at the ids from `begin` to `end`, with `*txs` transactions at most; counts them down. */
static enum status
sweep_part(struct sweep *sweep, struct kv_store *store, struct str begin, struct str end,
	   size_t *txs, size_t *cleared, struct err *err)
{
	struct buf at AUTO(buf_release) = BUF_INIT(KV_LIMIT_KEY_BYTES + 1);

	sweep->begin = begin;
	sweep->end = end;
	while (*txs > 0) {
		--*txs;
		TRY(run_repeatable(store, txid_sweep_body, sweep, err));
		*cleared += sweep->cleared;
		if (!sweep->more)
			return STATUS_OK;
		buf_clear(&at);
		buf_append_buf(&at, &sweep->next);
		TRY(buf_status(&at));
		sweep->begin = buf_str(&at);
	}
	return STATUS_OK;
}

enum status
kv_txids_sweep(struct kv_store *store, uint64_t age_ms, bool *ret_more, struct err *err)
{
	uint64_t now_ms = steady_ms();
	struct sweep sweep = {
		.before_ms = now_ms > age_ms ? now_ms - age_ms : 0,
		.next = BUF_INIT(KV_LIMIT_KEY_BYTES + 1),
	};
	struct txid_range range;
	size_t txs = SWEEP_TXS, cleared = 0;
	enum status status;

	*ret_more = false;
	if (txid_range_init(&range) != STATUS_OK)
		return err_set(err, STATUS_NOMEM, "out of memory");
	/* From a place drawn at random, so that every part gets its turn. */
	status = sweep_part(&sweep, store, range.middle, range.end, &txs, &cleared, err);
	if (status == STATUS_OK)
		status = sweep_part(&sweep, store, range.begin, range.middle, &txs, &cleared, err);
	buf_release(&sweep.next);
	/* Ids of processes that live are looked at, too: without garbage among them it can wait. */
	*ret_more = status == STATUS_OK && txs == 0 && cleared > 0;
	return status;
}
