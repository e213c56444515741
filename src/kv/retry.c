/*
 * The retry loop, and what it takes to survive a commit that nobody knows the end of.
 *
 * Where an engine can answer STATUS_TX_UNKNOWN, each writing attempt of one kv_run() also sets
 * (ROOT, 255, id), with one id for all of them. Its value is (milliseconds since 1970,
 * versionstamp): the age for the sweep, and the stamp to report for an attempt that turns out to
 * have succeeded.
 */
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/rand.h"
#include "kv/engine.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"

enum {
	TXID_BYTES = 16,
	TXID_KEY_MAX_BYTES = 64,
	TXID_VALUE_MAX_BYTES = 64,
	SWEEP_LIMIT = 1000, /* transaction ids looked at by one sweep */
};

struct run {
	struct kv_store *store;
	kv_body *body;
	void *arg;
	bool commits;
	uint8_t *ret_stamp; /* or NULL */
	bool unknown;       /* an attempt has ended so: ask before each later one */
	char key_bytes[TXID_KEY_MAX_BYTES];
	struct str key; /* of the transaction id; empty until one is needed */
};

enum status
kv_on_error(struct kv_tx *tx, enum status status)
{
	int delay_ms = tx->engine->retry_delay_ms(tx, status);
	uint32_t attempts = tx->attempts + 1;

	if (delay_ms < 0)
		return status;
	kv_tx_reset(tx);
	tx->attempts = attempts;
	if (delay_ms > 0) {
		struct event never;

		event_init(&never);
		event_wait(&never, clock_after_ms((uint64_t)delay_ms));
	}
	return STATUS_OK;
}

static bool
has_written(const struct kv_tx *tx)
{
	return tx->stats.sets || tx->stats.clears;
}

static void
put_txid_prefix(struct buf *b)
{
	tuple_put_u64(b, KV_ROOT);
	tuple_put_u64(b, KV_ROOT_TXIDS);
}

static enum status
make_txid(struct run *run)
{
	struct buf b AUTO(buf_release) = BUF_INIT(TXID_KEY_MAX_BYTES);
	char id[TXID_BYTES];

	rand_bytes(id, sizeof(id));
	put_txid_prefix(&b);
	tuple_put_bytes(&b, str_of(id, sizeof(id)));
	TRY(buf_status(&b));
	memcpy(run->key_bytes, b.ptr, b.len);
	run->key = str_of(run->key_bytes, b.len);
	return STATUS_OK;
}

static enum status
leave_txid(struct run *run, struct kv_tx *tx)
{
	static const uint8_t zero[KV_VERSIONSTAMP_BYTES];
	struct buf b AUTO(buf_release) = BUF_INIT(TXID_VALUE_MAX_BYTES);
	size_t offset;

	if (run->key.len == 0)
		TRY(make_txid(run));
	tuple_put_u64(&b, clock_wall_ms());
	offset = tuple_put_versionstamp(&b, zero);
	TRY(buf_status(&b));
	return kv_set_versionstamped_value(tx, run->key, buf_str(&b), offset);
}

static enum status
read_txid(struct str value, uint64_t *ret_ms, const uint8_t **ret_stamp)
{
	struct tuple_reader r = tuple_reader(value);

	TRY(tuple_next_u64(&r, ret_ms));
	return tuple_next_versionstamp(&r, ret_stamp);
}

/*
 * After an unknown result: has one of the attempts succeeded after all? The read conflicts with a
 * commit of it that is still under way.
 */
static enum status
ask_txid(struct run *run, struct kv_tx *tx, bool *ret_done)
{
	struct kv_future *f = kv_get(tx, run->key, KV_READ);
	const uint8_t *stamp;
	struct str value;
	uint64_t ms;

	TRY(kv_future_wait(f));
	*ret_done = kv_future_value(f, &value);
	if (*ret_done && run->ret_stamp) {
		TRY(read_txid(value, &ms, &stamp));
		memcpy(run->ret_stamp, stamp, KV_VERSIONSTAMP_TX_BYTES);
	}
	return STATUS_OK;
}

/*
 * The first half of an attempt: with STATUS_OK its commit is under way, or `*ret_commit` is NULL
 * and there is nothing to wait for. `*ret_settled`: it is known whether earlier attempts of unknown
 * result have happened, so that a failure is what it says.
 */
static enum status
attempt_begin(struct run *run, struct kv_tx *tx, struct kv_future **ret_commit, bool *ret_settled)
{
	bool done = false;

	*ret_commit = NULL;
	*ret_settled = !run->unknown;
	if (run->ret_stamp)
		memset(run->ret_stamp, 0, KV_VERSIONSTAMP_TX_BYTES);
	if (run->unknown) {
		TRY(ask_txid(run, tx, &done));
		*ret_settled = true;
		if (done)
			return STATUS_OK;
	}
	TRY(run->body(tx, run->arg));
	if (!run->commits)
		return STATUS_OK;
	if (has_written(tx) && tx->engine->unknown_results)
		TRY(leave_txid(run, tx));
	*ret_commit = kv_commit(tx);
	return STATUS_OK;
}

static enum status
attempt_end(struct run *run, struct kv_tx *tx, struct kv_future *commit)
{
	enum status status;

	if (!commit)
		return STATUS_OK;
	status = kv_future_wait(commit);
	if (status == STATUS_TX_UNKNOWN)
		run->unknown = has_written(tx);
	if (status == STATUS_OK && has_written(tx) && run->ret_stamp)
		return kv_versionstamp(tx, run->ret_stamp);
	return status;
}

/*
 * The engine's explanation, if it has one; otherwise the body may have put its own into the same
 * `err`, which stays.
 */
static void
explain(struct err *err, const struct kv_tx *tx, enum status status)
{
	if (tx->err.status == status && tx->err.text[0])
		err_set(err, status, "%s", tx->err.text);
	else if (err && err->status != status)
		err_set(err, status, "%s", status_name(status));
}

/* `first`: the first half of the first attempt has ended so, which makes the other half due. */
static enum status
run_on(struct run *run, struct kv_tx *tx, enum status first, struct kv_future *commit,
       struct err *err)
{
	enum status status = first;
	bool settled = true;

	for (int attempts = 1;; attempts++) {
		enum status verdict;

		if (status == STATUS_OK)
			status = attempt_end(run, tx, commit);
		if (status == STATUS_OK)
			return STATUS_OK;
		if (!settled && tx->engine->retry_delay_ms(tx, status) < 0)
			return err_set(err, STATUS_TX_UNKNOWN,
				       "an attempt may have succeeded, and asking failed (%s)",
				       status_name(status));
		explain(err, tx, status);
		verdict = kv_on_error(tx, status);
		if (verdict != STATUS_OK)
			return verdict;
		if (attempts == KV_RETRY_LIMIT)
			break;
		status = attempt_begin(run, tx, &commit, &settled);
	}
	if (run->unknown)
		return err_set(err, STATUS_TX_UNKNOWN,
			       "an attempt may have succeeded; gave up after %d", KV_RETRY_LIMIT);
	return err_set(err, status, "gave up after %d attempts: %s", KV_RETRY_LIMIT,
		       status_name(status));
}

static enum status
begin(const struct run *run, enum kv_tx_kind kind, struct kv_tx **ret, struct err *err)
{
	enum status status = kv_begin(run->store, kind, ret);

	if (status != STATUS_OK)
		return err_set(err, status, "no transaction can begin: %s", status_name(status));
	return STATUS_OK;
}

static enum status
run(struct run *run, enum kv_tx_kind kind, struct err *err)
{
	struct kv_future *commit;
	struct kv_tx *tx;
	enum status status;
	bool settled;

	TRY(begin(run, kind, &tx, err));
	status = attempt_begin(run, tx, &commit, &settled);
	status = run_on(run, tx, status, commit, err);
	kv_tx_free(tx);
	return status;
}

enum status
kv_run(struct kv_store *store, kv_body *body, void *arg, uint8_t *ret_stamp, struct err *err)
{
	struct run r = {
		.store = store,
		.body = body,
		.arg = arg,
		.commits = true,
		.ret_stamp = ret_stamp,
	};

	return run(&r, KV_TX_READ_WRITE, err);
}

enum status
kv_run_read(struct kv_store *store, kv_body *body, void *arg, struct err *err)
{
	struct run r = { .store = store, .body = body, .arg = arg };

	return run(&r, KV_TX_READ_ONLY, err);
}

/* ---- In two halves ---- */

struct kv_running {
	struct run run;
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
		.run = { .store = store, .body = body, .arg = arg, .commits = true },
	};
	status = begin(&r->run, KV_TX_READ_WRITE, &r->tx, err);
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
	enum status status = run_on(&r->run, r->tx, r->status, r->commit, err);

	kv_tx_free(r->tx);
	mem_free(r);
	return status;
}

/* ---- The sweep ---- */

struct sweep {
	uint64_t before_ms;
	struct str prefix;
	struct str start; /* somewhere in the range, so that every part of it gets its turn */
	struct str end;
};

static enum status
sweep_part(struct sweep *sweep, struct kv_tx *tx, struct str begin, struct str end, size_t limit,
	   size_t *ret_seen)
{
	const struct kv_range_options options = { .limit = limit, .mode = KV_SNAPSHOT };
	struct kv_future *f = kv_get_range(tx, begin, end, &options);
	const uint8_t *stamp;
	struct kv_range range;

	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	for (size_t i = 0; i < range.count; i++) {
		uint64_t ms;

		TRY(read_txid(range.pairs[i].value, &ms, &stamp));
		if (ms < sweep->before_ms)
			TRY(kv_clear(tx, range.pairs[i].key));
	}
	*ret_seen = range.count;
	return STATUS_OK;
}

static enum status
sweep_body(struct kv_tx *tx, void *arg)
{
	struct sweep *sweep = arg;
	size_t seen;

	TRY(sweep_part(sweep, tx, sweep->start, sweep->end, SWEEP_LIMIT, &seen));
	if (seen == SWEEP_LIMIT)
		return STATUS_OK;
	return sweep_part(sweep, tx, sweep->prefix, sweep->start, SWEEP_LIMIT - seen, &seen);
}

enum status
kv_txids_sweep(struct kv_store *store, uint64_t age_ms, struct err *err)
{
	struct buf prefix AUTO(buf_release) = BUF_INIT(TXID_KEY_MAX_BYTES);
	struct buf start AUTO(buf_release) = BUF_INIT(TXID_KEY_MAX_BYTES);
	struct buf end AUTO(buf_release) = BUF_INIT(TXID_KEY_MAX_BYTES);
	uint64_t now = clock_wall_ms();
	struct sweep sweep = { .before_ms = now > age_ms ? now - age_ms : 0 };
	char id[TXID_BYTES];

	rand_bytes(id, sizeof(id));
	put_txid_prefix(&prefix);
	put_txid_prefix(&start);
	tuple_put_bytes(&start, str_of(id, sizeof(id)));
	if (buf_status(&prefix) != STATUS_OK || buf_status(&start) != STATUS_OK ||
	    tuple_prefix_end(buf_str(&prefix), &end) != STATUS_OK || buf_status(&end) != STATUS_OK)
		return err_set(err, STATUS_NOMEM, "out of memory");
	sweep.prefix = buf_str(&prefix);
	sweep.start = buf_str(&start);
	sweep.end = buf_str(&end);
	return kv_run(store, sweep_body, &sweep, NULL, err);
}
