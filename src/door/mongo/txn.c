#include "door/mongo/txn.h"

#include <assert.h>

#include "base/clock.h"
#include "base/mem.h"
#include "door/mongo/client.h"
#include "door/mongo/cluster_time.h"
#include "door/mongo/commands.h"
#include "door/mongo/data.h"
#include "door/mongo/mongo_int.h"
#include "door/mongo/settings.h"
#include "model/plain/plain.h"

enum {
	CLOSING_MOST = 64,
};

/*
 * Transactions of the store that have been taken out of the list with its lock, which is never held
 * over storage: whoever has let go of the lock closes them.
 */
struct closing {
	struct kv_tx *txs[CLOSING_MOST];
	size_t count;
};

static void
closing_close(struct closing *closing)
{
	while (closing->count)
		kv_tx_free(closing->txs[--closing->count]);
}

/* ---- With the list's lock ---- */

static struct txn **
bucket_of(struct txns *all, struct str id)
{
	return &all->buckets[str_hash(id) % TXN_BUCKETS];
}

static struct txn *
find(struct txns *all, struct str id, struct str user)
{
	for (struct txn *t = *bucket_of(all, id); t; t = t->next)
		if (memcmp(t->session, id.ptr, SESSION_ID_BYTES) == 0 &&
		    str_eq(str_from_cstr(t->user), user))
			return t;
	return NULL;
}

static void
end(struct txns *all, struct txn *t, enum txn_state state, struct closing *closing)
{
	assert(closing->count < CLOSING_MOST);
	if (t->state == TXN_OPEN)
		all->open--;
	t->state = state;
	t->doomed = false;
	holder_release(&all->holds, &t->holder);
	if (t->tx)
		closing->txs[closing->count++] = t->tx;
	t->tx = NULL;
}

/* True if it was in use no longer than that ago, or is. */
static bool
is_worth_knowing(const struct txn *t, uint64_t now_ns)
{
	return t->busy || t->state == TXN_OPEN ||
	       now_ns - t->used_ns < MONGO_SESSION_MINUTES * 60 * 1000 * CLOCK_NS_PER_MS;
}

/* Frees entries, so no other one that was found before is used behind it. True: go on with it. */
static bool
expire(struct txns *all, uint64_t now_ns, struct closing *closing)
{
	bool more = false;

	for (size_t i = 0; i < TXN_BUCKETS; i++)
		for (struct txn **at = &all->buckets[i]; *at;) {
			struct txn *t = *at;

			if (t->state == TXN_OPEN && !t->busy && now_ns >= t->until_ns) {
				more = closing->count == CLOSING_MOST;
				if (more)
					return true;
				end(all, t, TXN_ABORTED, closing);
			}
			if (is_worth_knowing(t, now_ns)) {
				at = &t->next;
				continue;
			}
			*at = t->next;
			all->count--;
			mem_free(t);
		}
	return more;
}

static struct txn *
make(struct txns *all, struct str id, struct str user)
{
	struct txn *t = all->count < TXN_KNOWN_MOST ? mem_zalloc(sizeof(*t)) : NULL;
	struct txn **bucket = bucket_of(all, id);

	if (!t || user.len >= sizeof(t->user)) {
		mem_free(t);
		return NULL;
	}
	memcpy(t->session, id.ptr, SESSION_ID_BYTES);
	memcpy(t->user, user.ptr, user.len);
	t->number = -1;
	t->state = TXN_ABORTED;
	t->next = *bucket;
	*bucket = t;
	all->count++;
	return t;
}

/* ---- For all ---- */

void
txns_init(struct txns *all)
{
	pthread_mutex_init(&all->lock, NULL);
	holds_init(&all->holds);
}

void
txns_fini(struct txns *all)
{
	for (size_t i = 0; i < TXN_BUCKETS; i++)
		while (all->buckets[i]) {
			struct txn *t = all->buckets[i];

			all->buckets[i] = t->next;
			holder_release(&all->holds, &t->holder);
			kv_tx_free(t->tx);
			mem_free(t);
		}
	holds_fini(&all->holds);
	pthread_mutex_destroy(&all->lock);
}

void
txns_expire(struct txns *all)
{
	struct closing closing = { .count = 0 };
	bool more = true;

	while (more) {
		pthread_mutex_lock(&all->lock);
		more = expire(all, clock_mono_ns(), &closing);
		pthread_mutex_unlock(&all->lock);
		closing_close(&closing);
	}
}

/* With the lock. True: go on with it. */
static bool
end_sessions(struct txns *all, const struct session_pattern *which, struct closing *closing)
{
	for (size_t i = 0; i < TXN_BUCKETS; i++)
		for (struct txn *t = all->buckets[i]; t; t = t->next) {
			if (t->state != TXN_OPEN ||
			    !session_matches(which, str_of(t->session, SESSION_ID_BYTES),
					     str_from_cstr(t->user)))
				continue;
			if (closing->count == CLOSING_MOST)
				return true;
			if (t->busy)
				t->doomed = true;
			else
				end(all, t, TXN_ABORTED, closing);
		}
	return false;
}

void
txns_end_sessions(struct txns *all, const struct session_pattern *which)
{
	struct closing closing = { .count = 0 };
	bool more = true;

	while (more) {
		pthread_mutex_lock(&all->lock);
		more = end_sessions(all, which, &closing);
		pthread_mutex_unlock(&all->lock);
		closing_close(&closing);
	}
}

uint64_t
txn_life_ms(const struct mongo *m)
{
	uint64_t ms = atomic_load(&m->txn_seconds) * 1000;

	return kv_is_shared(m->config.store) && ms > TXN_LIFE_SHARED_MS ? TXN_LIFE_SHARED_MS : ms;
}

/* ---- Failures ---- */

static enum status
fail_number(struct call *c, const struct txn *t)
{
	return call_fail(c, MONGO_TRANSACTION_TOO_OLD,
			 "Cannot start transaction with { txnNumber: %lld } on session because a "
			 "newer transaction with txnNumber %lld has already started on this "
			 "session.",
			 (long long)c->number, (long long)t->number);
}

static enum status
fail_missing(struct call *c, const struct txn *t)
{
	return call_fail(c, MONGO_NO_SUCH_TRANSACTION,
			 "Given transaction number %lld does not match any in-progress "
			 "transactions. The active transaction number is %lld",
			 (long long)c->number, t ? (long long)t->number : -1);
}

static enum status
fail_aborted(struct call *c)
{
	return call_fail(c, MONGO_NO_SUCH_TRANSACTION,
			 "Transaction with { txnNumber: %lld } has been aborted.",
			 (long long)c->number);
}

static enum status
fail_committed(struct call *c)
{
	return call_fail(c, MONGO_TRANSACTION_COMMITTED,
			 "Transaction with { txnNumber: %lld } has been committed.",
			 (long long)c->number);
}

static enum status
fail_expired(struct call *c)
{
	if (c->snapshot)
		return call_fail(c, MONGO_SNAPSHOT_TOO_OLD,
				 "the version that this command has read is no longer kept");
	return call_fail(c, MONGO_TRANSACTION_EXPIRED,
			 "the transaction has lasted longer than transactionLifetimeLimitSeconds, "
			 "%llu",
			 (unsigned long long)(txn_life_ms(c->mongo) / 1000));
}

enum status
txn_explain(struct call *c, enum status status)
{
	if (status == STATUS_OK || c->code)
		return status;
	if (status == STATUS_TX_TOO_OLD)
		return fail_expired(c);
	if (status == STATUS_TX_TOO_LARGE)
		return call_fail(c, MONGO_TRANSACTION_TOO_LARGE,
				 "the transaction is larger than %d bytes (KV_LIMIT_TX_BYTES)",
				 KV_LIMIT_TX_BYTES);
	if (status == STATUS_TX_CONFLICT)
		return call_fail(c, MONGO_WRITE_CONFLICT,
				 "Caused by :: Write conflict during the transaction. :: Please "
				 "retry your operation or multi-document transaction.");
	return status;
}

enum status
txn_check(struct call *c)
{
	return clock_mono_ns() < c->txn->until_ns ? STATUS_OK : fail_expired(c);
}

/* ---- Entering ---- */

static struct session_id
session_of(const struct call *c)
{
	return (struct session_id){ c->lsid, str_from_cstr(c->client->user_name) };
}

/* With the lock. The session's transaction becomes that of the call, or its state is told. */
static enum status
take_begun(struct call *c, struct txn *t)
{
	bool ends = c->command->flags & COMMAND_ENDS_TRANSACTION;

	if (t && t->number > c->number)
		return fail_number(c, t);
	if (t && t->number == c->number && t->busy)
		return call_fail(c, MONGO_CONFLICTING_OPERATION,
				 "another command of transaction %lld is still running",
				 (long long)c->number);
	if (t && t->number == c->number && t->state == TXN_OPEN) {
		t->busy = true;
		c->txn = t;
		return STATUS_OK;
	}
	if (ends)
		return STATUS_OK;
	if (!t || t->number < c->number)
		return fail_missing(c, t);
	return t->state == TXN_COMMITTED ? fail_committed(c) : fail_aborted(c);
}

/* With the lock; `t` is the session's, or NULL. */
static enum status
take_new(struct call *c, struct txn *t, struct closing *closing)
{
	struct txns *all = &c->mongo->txns;
	struct session_id id = session_of(c);

	if (t && t->number > c->number)
		return fail_number(c, t);
	if (t && t->number == c->number)
		return call_fail(
			c, MONGO_SAME_TRANSACTION,
			"Cannot start a transaction at given transaction number %lld: a "
			"transaction with the same number has been started on this session",
			(long long)c->number);
	if (t && t->busy)
		return call_fail(c, MONGO_CONFLICTING_OPERATION,
				 "a command of the session's transaction %lld is still running",
				 (long long)t->number);
	if (t && t->state == TXN_OPEN)
		end(all, t, TXN_ABORTED, closing);
	if (!t)
		t = make(all, id.id, id.user);
	if (!t || all->open == TXN_OPEN_MOST)
		return call_fail(c, MONGO_TEMPORARILY_UNAVAILABLE,
				 "there are too many transactions; the limits are %d open ones "
				 "(TXN_OPEN_MOST), and %d sessions (TXN_KNOWN_MOST)",
				 TXN_OPEN_MOST, TXN_KNOWN_MOST);
	t->state = TXN_OPEN;
	t->number = c->number;
	t->busy = true;
	t->events = 0;
	t->until_ns = clock_after_ms(txn_life_ms(c->mongo));
	t->holder = (struct holder){ .until_ns = t->until_ns };
	all->open++;
	c->txn = t;
	return STATUS_OK;
}

static enum status
read_row(struct kv_tx *tx, void *arg)
{
	struct call *c = arg;
	struct session_id id = session_of(c);
	struct session_row *row = &c->txn->row;

	TRY(session_read(tx, &id, row, &c->err));
	row->results = STR("");
	if (row->is_there && row->number >= c->number)
		return call_fail(c, MONGO_TRANSACTION_TOO_OLD,
				 "Cannot start transaction with { txnNumber: %lld } on session "
				 "because txnNumber %lld was used on this session before.",
				 (long long)c->number, (long long)row->number);
	return STATUS_OK;
}

enum status
txn_check_db(struct call *c, struct str db)
{
	if (c->in_transaction &&
	    (str_eq(db, STR("admin")) || str_eq(db, STR("config")) || str_eq(db, STR("local"))))
		return call_fail(c, MONGO_NOT_IN_TRANSACTION,
				 "Cannot run command against the '%.*s' database in a transaction.",
				 STR_ARG(db));
	return STATUS_OK;
}

/* Whether it may be one of a transaction, and what it says of how to read and write. */
static enum status
check_command(struct call *c)
{
	const struct command *command = c->command;

	if (command->flags & COMMAND_ENDS_TRANSACTION)
		return STATUS_OK;
	if (!(command->flags & COMMAND_IN_TRANSACTION))
		return call_fail(c, MONGO_NOT_IN_TRANSACTION,
				 "Cannot run '%s' in a multi-document transaction.%s",
				 command->name,
				 strcmp(command->name, "count") == 0
					 ? " Count with an aggregation's $count instead."
					 : "");
	/* What goes on with a cursor has no rights of its own; that of a bulkWrite is of admin. */
	if (!(command->flags & COMMAND_ADMIN_DB) && command->needs)
		TRY(txn_check_db(c, c->db));
	if (c->starts && strcmp(command->name, "killCursors") == 0)
		return call_fail(c, MONGO_NOT_IN_TRANSACTION,
				 "Cannot run killCursors as the first operation in a "
				 "multi-document transaction.");
	if (bson_find(c->body, STR("writeConcern"), NULL))
		return call_fail(c, MONGO_INVALID_OPTIONS,
				 "writeConcern is not allowed within a multi-statement "
				 "transaction");
	return STATUS_OK;
}

/* Where there is no place for one more, forgets what has ended, before anybody is found. */
static void
make_room(struct txns *all)
{
	bool full;

	pthread_mutex_lock(&all->lock);
	full = all->open == TXN_OPEN_MOST || all->count == TXN_KNOWN_MOST;
	pthread_mutex_unlock(&all->lock);
	if (full)
		txns_expire(all);
}

enum status
txn_enter(struct call *c)
{
	struct txns *all = &c->mongo->txns;
	struct session_id id = session_of(c);
	struct closing closing = { .count = 0 };
	enum status status;
	struct txn *t;

	if (!c->in_transaction)
		return STATUS_OK;
	TRY(check_command(c));
	if (c->starts)
		make_room(all);
	pthread_mutex_lock(&all->lock);
	t = find(all, id.id, id.user);
	if (t && t->state == TXN_OPEN && !t->busy && clock_mono_ns() >= t->until_ns)
		end(all, t, TXN_ABORTED, &closing);
	status = c->starts ? take_new(c, t, &closing) : take_begun(c, t);
	pthread_mutex_unlock(&all->lock);
	closing_close(&closing);
	TRY(status);
	if (!c->starts)
		return STATUS_OK;
	status = kv_begin(c->mongo->config.store, KV_TX_READ_WRITE, &c->txn->tx);
	if (status == STATUS_OK)
		status = txn_run(c, read_row, c);
	if (status != STATUS_OK)
		txn_leave(c, status);
	return status;
}

void
txn_leave(struct call *c, enum status status)
{
	struct txns *all = &c->mongo->txns;
	struct closing closing = { .count = 0 };
	struct txn *t = c->txn;

	if (!t)
		return;
	pthread_mutex_lock(&all->lock);
	t->busy = false;
	t->used_ns = clock_mono_ns();
	if (t->state == TXN_OPEN && (status != STATUS_OK || c->spoils || t->doomed))
		end(all, t, TXN_ABORTED, &closing);
	pthread_mutex_unlock(&all->lock);
	closing_close(&closing);
	c->txn = NULL;
}

enum status
txn_run(struct call *c, kv_body *body, void *arg)
{
	struct txn *t = c->txn;
	uint64_t mark = kv_reads_mark(t->tx);
	enum status status;
	uint64_t version;

	TRY(txn_check(c));
	status = body(t->tx, arg);
	if (status == STATUS_OK)
		status = kv_get_read_version(t->tx, &version);
	if (status == STATUS_OK)
		time_note(c, version);
	else if (!c->code && !c->err.text[0] && kv_tx_error(t->tx)[0])
		(void)err_set(&c->err, status, "%s", kv_tx_error(t->tx));
	kv_reads_forget(t->tx, mark);
	return txn_explain(c, status);
}

/* ---- commitTransaction, abortTransaction ---- */

const struct arg args_end_transaction[] = {
	{ "recoveryToken", ARG_IGNORED }, /* for servers in front of several others */
	{ NULL, 0 },
};

static enum status
check_transaction(struct call *c)
{
	if (c->in_transaction)
		return STATUS_OK;
	return call_fail(c, MONGO_COMMAND_FAILED, "%s must be run within a transaction",
			 c->command->name);
}

static void
set_state(struct call *c, enum txn_state state)
{
	struct txns *all = &c->mongo->txns;
	struct closing closing = { .count = 0 };

	pthread_mutex_lock(&all->lock);
	end(all, c->txn, state, &closing);
	pthread_mutex_unlock(&all->lock);
	closing_close(&closing);
}

/* What the session's row says; and where it says nothing, that the transaction never commits. */
struct settling {
	struct call *call;
	enum txn_state state;
};

static enum status
settle_body(struct kv_tx *tx, void *arg)
{
	struct settling *s = arg;
	struct call *c = s->call;
	struct session_id id = session_of(c);
	struct session_row row;

	TRY(session_read(tx, &id, &row, &c->err));
	s->state = TXN_ABORTED;
	if (row.is_there && row.number == c->number) {
		if (row.kind == SESSION_COMMITTED)
			s->state = TXN_COMMITTED;
		return STATUS_OK;
	}
	if (row.is_there && row.number > c->number)
		return call_fail(c, MONGO_TRANSACTION_TOO_OLD,
				 "transaction %lld is too old: txnNumber %lld was used on this "
				 "session since",
				 (long long)c->number, (long long)row.number);
	/*
	 * A commit that is still under way has read the row, so it fails once this one has been
	 * written.
	 */
	return session_write(tx, &id, &row, c->number, SESSION_ABORTED, STR(""));
}

static enum status
settle(struct call *c, enum txn_state *ret)
{
	struct settling s = { .call = c };
	uint8_t stamp[KV_VERSIONSTAMP_TX_BYTES];
	enum status status = kv_run(c->mongo->config.store, settle_body, &s, stamp, &c->err);

	/* Nobody knows; the client asks again. */
	c->is_unknown = status != STATUS_OK && !c->code;
	*ret = s.state;
	return status;
}

/*
 * What became of a transaction that is not open here: it has ended, or another process had it.
 * `*ret_known`: this process was told so already, and has not asked the store.
 */
static enum status
find_end(struct call *c, enum txn_state *ret, bool *ret_known)
{
	struct txns *all = &c->mongo->txns;
	struct session_id id = session_of(c);
	struct txn *t;

	*ret = TXN_OPEN;
	pthread_mutex_lock(&all->lock);
	t = find(all, id.id, id.user);
	if (t && t->number == c->number)
		*ret = t->state;
	pthread_mutex_unlock(&all->lock);
	*ret_known = *ret == TXN_COMMITTED || *ret == TXN_ABORTED;
	return *ret_known ? STATUS_OK : settle(c, ret);
}

static enum status
commit_again(struct call *c)
{
	enum txn_state state;
	bool known;

	TRY(find_end(c, &state, &known));
	return state == TXN_COMMITTED ? STATUS_OK : fail_aborted(c);
}

static enum status
commit_open(struct call *c)
{
	struct kv_tx *tx = c->txn->tx;
	struct session_id id = session_of(c);
	struct kv_tx_stats stats = kv_tx_stats(tx);
	enum txn_state state;
	enum status status;
	uint64_t version;

	TRY(txn_check(c));
	if (!stats.sets && !stats.clears) {
		set_state(c, TXN_COMMITTED);
		return STATUS_OK;
	}
	TRY(txn_explain(
		c, session_write(tx, &id, &c->txn->row, c->number, SESSION_COMMITTED, STR(""))));
	status = kv_future_wait(kv_commit(tx));
	if (status == STATUS_OK) {
		TRY(kv_committed_version(tx, &version));
		time_note(c, version);
		set_state(c, TXN_COMMITTED);
		return STATUS_OK;
	}
	if (status != STATUS_TX_UNKNOWN) {
		if (kv_tx_error(tx)[0])
			(void)err_set(&c->err, status, "%s", kv_tx_error(tx));
		return txn_explain(c, status);
	}
	status = settle(c, &state);
	if (status != STATUS_OK) {
		set_state(c, TXN_UNKNOWN);
		return status;
	}
	set_state(c, state);
	return state == TXN_COMMITTED ? STATUS_OK : fail_aborted(c);
}

enum status
mongo_run_commit_transaction(struct call *c)
{
	TRY(data_check_concern(c));
	TRY(check_transaction(c));
	c->writes = true;
	TRY(c->txn ? commit_open(c) : commit_again(c));
	data_put_concern(c);
	return STATUS_OK;
}

enum status
mongo_run_abort_transaction(struct call *c)
{
	enum txn_state state;
	enum status status;
	bool known;

	TRY(data_check_concern(c));
	TRY(check_transaction(c));
	if (c->txn) {
		set_state(c, TXN_ABORTED);
		return STATUS_OK;
	}
	/* Where the store does not know it either, it never commits: settle() has seen to that. */
	status = find_end(c, &state, &known);
	c->is_unknown = false; /* only of a commit */
	TRY(status);
	if (state == TXN_COMMITTED)
		return fail_committed(c);
	return known ? fail_aborted(c) : fail_missing(c, NULL);
}

enum status
txn_refuse_large(struct call *c)
{
	return call_fail(c, MONGO_TRANSACTION_TOO_LARGE,
			 "a document of more than %d bytes (PLAIN_AHEAD_BYTES) cannot be written "
			 "in a transaction of several commands",
			 PLAIN_AHEAD_BYTES);
}
