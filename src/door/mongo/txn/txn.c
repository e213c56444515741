#include "door/mongo/txn/txn.h"

#include <assert.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "door/mongo/txn/client.h"
#include "door/mongo/txn/cluster_time.h"
#include "door/mongo/txn/data.h"
#include "door/mongo/txn/mongo_int.h"
#include "door/mongo/txn/settings.h"
#include "kv/fate.h"
#include "model/plain/plain.h"
#include "net/memory.h"

#define TXN_KNOWN_NS (MONGO_SESSION_MINUTES * 60 * 1000 * CLOCK_NS_PER_MS)

/* ---- In the table ---- */

static struct txn *
txn_of(struct expiring_entry *e)
{
	return (struct txn *)e;
}

static const struct txn *
txn_seen(const struct expiring_entry *e)
{
	return (const struct txn *)e;
}

static bool
txn_is(const struct expiring_entry *e, const void *key)
{
	const struct session_id *id = key;

	return str_eq(str_of(txn_seen(e)->session, SESSION_ID_BYTES), id->id) &&
	       str_eq(str_from_cstr(txn_seen(e)->user), id->user);
}

/* An open one is given up; of one that has ended only that is forgotten. */
static bool
txn_is_over(const struct expiring_entry *e, uint64_t now_ns)
{
	const struct txn *t = txn_seen(e);

	if (t->state == TXN_OPEN)
		return open_txn_is_over(&t->open, now_ns);
	return now_ns - e->used_ns >= TXN_KNOWN_NS;
}

/*
 * The transaction has ended so. The caller has it, or holds the table's lock while nobody has it.
 * Returns the transaction of the store, or NULL; the caller closes it without the lock.
 */
static struct kv_tx *
txn_settle(struct txn *t, enum txn_state state)
{
	/* It ends once: what it holds, and its place among the open ones, are given back here. */
	assert(t->state == TXN_OPEN && state != TXN_OPEN);
	t->state = state;
	holder_release(&t->all->holds, &t->holder);
	return open_txn_end(&t->open);
}

/* The same of one that is given up, perhaps since it is over. */
static struct kv_tx *
txn_give_up(struct txn *t, uint64_t now_ns)
{
	assert(t->state == TXN_OPEN);
	if (!open_txn_is_over(&t->open, now_ns))
		return txn_settle(t, TXN_ABORTED);
	t->state = TXN_ABORTED;
	holder_release(&t->all->holds, &t->holder);
	return open_txn_expire(&t->open);
}

/* An open one stays, to tell its client what became of it. */
static bool
txn_end(struct expiring_entry *e, uint64_t now_ns, void **ret_close)
{
	if (txn_of(e)->state != TXN_OPEN)
		return txn_is_over(e, now_ns);
	*ret_close = txn_give_up(txn_of(e), now_ns);
	return false;
}

static void
txn_close(void *tx)
{
	kv_tx_free(tx);
}

static void
txn_free(struct expiring_entry *e)
{
	mem_free(e);
}

static const struct expiring_rules txn_rules = {
	.most = TXN_KNOWN_MOST,
	.is = txn_is,
	.is_over = txn_is_over,
	.end = txn_end,
	.close = txn_close,
	.free = txn_free,
};

/* ---- For all ---- */

void
txns_init(struct txns *all)
{
	expiring_init(&all->table, &txn_rules);
	holds_init(&all->holds);
}

void
txns_fini(struct txns *all)
{
	expiring_fini(&all->table);
	holds_fini(&all->holds);
}

static bool
txn_is_of_session(const void *which, const struct expiring_entry *e)
{
	return session_matches(which, str_of(txn_seen(e)->session, SESSION_ID_BYTES),
			       str_from_cstr(txn_seen(e)->user));
}

void
txns_end_sessions(struct txns *all, const struct session_pattern *which)
{
	expiring_end_all(&all->table, txn_is_of_session, which);
}

uint64_t
txn_life_ms(const struct mongo *m)
{
	return open_txn_life_ms(m->config.store, atomic_load(&m->txn_seconds));
}

/* ---- Failures ---- */

static enum status
fail_number(struct call *c, int64_t newer)
{
	return call_fail(c, MONGO_TRANSACTION_TOO_OLD,
			 "Cannot start transaction with { txnNumber: %lld } on session because a "
			 "newer transaction with txnNumber %lld has already started on this "
			 "session.",
			 (long long)c->number, (long long)newer);
}

/* `active` is the number of the session's latest transaction; -1: none is known. */
static enum status
fail_missing(struct call *c, int64_t active)
{
	return call_fail(c, MONGO_NO_SUCH_TRANSACTION,
			 "Given transaction number %lld does not match any in-progress "
			 "transactions. The active transaction number is %lld",
			 (long long)c->number, (long long)active);
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
	return clock_mono_ns() < c->txn->open.until_ns ? STATUS_OK : fail_expired(c);
}

/* ---- Entering ---- */

static struct session_id
session_of(const struct call *c)
{
	return (struct session_id){ c->lsid, str_from_cstr(c->client->entry.user) };
}

/* What a look at the session's transaction has found. */
struct entering {
	struct call *call;
	enum status status;
	bool known;          /* there is one */
	struct kv_tx *close; /* of the one before, or whose time is over; NULL: none */
};

/* With the table's lock. What is taken belongs to its command: of that only the number is read. */
static enum expiring_look
look_begun(void *arg, struct expiring_entry *e)
{
	struct entering *in = arg;
	struct call *c = in->call;
	struct txn *t = txn_of(e);
	uint64_t now_ns = clock_mono_ns();

	in->known = true;
	if (t->number > c->number) {
		in->status = fail_number(c, t->number);
		return EXPIRING_LEAVE;
	}
	if (t->number == c->number && e->taken) {
		in->status = call_fail(c, MONGO_CONFLICTING_OPERATION,
				       "another command of transaction %lld is still running",
				       (long long)c->number);
		return EXPIRING_LEAVE;
	}
	if (!e->taken && t->state == TXN_OPEN && now_ns >= t->open.until_ns)
		in->close = txn_give_up(t, now_ns);
	if (t->number == c->number && t->state == TXN_OPEN)
		return EXPIRING_TAKE;
	if (c->command->flags & COMMAND_ENDS_TRANSACTION)
		return EXPIRING_LEAVE;
	if (t->number < c->number)
		in->status = fail_missing(c, t->number);
	else if (t->state == TXN_COMMITTED)
		in->status = fail_committed(c);
	else
		in->status = fail_aborted(c);
	return EXPIRING_LEAVE;
}

/* The session's transaction becomes that of the call, or its state is told. */
static enum status
enter_begun(struct call *c)
{
	struct session_id id = session_of(c);
	struct entering in = { .call = c };
	struct expiring_entry *e = expiring_look(&c->mongo->txns.table, hash_keyed(0, id.id), &id,
						 look_begun, &in);

	kv_tx_free(in.close);
	if (e) {
		c->txn = txn_of(e);
		open_txn_use(&c->txn->open);
	} else if (!in.known && !(c->command->flags & COMMAND_ENDS_TRANSACTION))
		return fail_missing(c, -1);
	return in.status;
}

static enum status
fail_too_many(struct call *c)
{
	return call_fail(c, MONGO_TEMPORARILY_UNAVAILABLE,
			 "there are too many transactions; the limits are %d open ones "
			 "(OPEN_TXN_MOST), and %d sessions (TXN_KNOWN_MOST)",
			 OPEN_TXN_MOST, TXN_KNOWN_MOST);
}

/* Opens one that nobody else has, or with the table's lock. */
static enum status
txn_open(struct call *c, struct txn *t)
{
	if (open_txn_open(&t->open, OPEN_TXN_MONGO, txn_life_ms(c->mongo), arena_part(c->arena)) !=
	    STATUS_OK)
		return fail_too_many(c);
	t->state = TXN_OPEN;
	t->number = c->number;
	t->events = 0;
	t->holder = (struct holder){ .until_ns = t->open.until_ns };
	return STATUS_OK;
}

/* With the table's lock, as above. */
static enum expiring_look
look_new(void *arg, struct expiring_entry *e)
{
	struct entering *in = arg;
	struct call *c = in->call;
	struct txn *t = txn_of(e);

	in->known = true;
	if (t->number > c->number)
		in->status = fail_number(c, t->number);
	else if (t->number == c->number)
		in->status = call_fail(
			c, MONGO_SAME_TRANSACTION,
			"Cannot start a transaction at given transaction number %lld: a "
			"transaction with the same number has been started on this session",
			(long long)c->number);
	else if (e->taken)
		in->status = call_fail(c, MONGO_CONFLICTING_OPERATION,
				       "a command of the session's transaction %lld is still "
				       "running",
				       (long long)t->number);
	if (in->status != STATUS_OK)
		return EXPIRING_LEAVE;
	if (t->state == TXN_OPEN)
		in->close = txn_give_up(t, clock_mono_ns());
	in->status = txn_open(c, t);
	return in->status == STATUS_OK ? EXPIRING_TAKE : EXPIRING_LEAVE;
}

/* STATUS_EXISTS: another command has begun the first transaction of the session meanwhile. */
static enum status
enter_first(struct call *c, const struct session_id *id)
{
	struct txns *all = &c->mongo->txns;
	struct txn *t = id->user.len < sizeof(t->user) ? mem_zalloc(sizeof(*t)) : NULL;
	enum status status;

	if (!t)
		return fail_too_many(c);
	t->all = all;
	t->state = TXN_ABORTED;
	memcpy(t->session, id->id.ptr, SESSION_ID_BYTES);
	memcpy(t->user, id->user.ptr, id->user.len);
	status = txn_open(c, t);
	if (status == STATUS_OK) {
		status = expiring_add(&all->table, hash_keyed(0, id->id), id, &t->entry, 0);
		if (status == STATUS_OK) {
			c->txn = t;
			return STATUS_OK;
		}
		kv_tx_free(txn_settle(t, TXN_ABORTED));
	}
	mem_free(t);
	return status == STATUS_LIMIT ? fail_too_many(c) : status;
}

/* Begins the session's next transaction, in the place of the one before. */
static enum status
enter_new(struct call *c)
{
	struct txns *all = &c->mongo->txns;
	struct session_id id = session_of(c);
	struct expiring_entry *e;
	struct entering in;
	enum status status;

	/* Where there is no place for one more, those go first whose time is over. */
	if (open_txn_number() >= OPEN_TXN_MOST)
		expiring_sweep(&all->table);
	do {
		in = (struct entering){ .call = c };
		e = expiring_look(&all->table, hash_keyed(0, id.id), &id, look_new, &in);
		kv_tx_free(in.close);
		status = in.known ? in.status : enter_first(c, &id);
	} while (status == STATUS_EXISTS);
	if (e)
		c->txn = txn_of(e);
	return status;
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

enum status
txn_enter(struct call *c)
{
	enum status status;

	if (!c->in_transaction)
		return STATUS_OK;
	TRY(check_command(c));
	if (!c->starts)
		return enter_begun(c);
	TRY(enter_new(c));
	status = open_txn_begin(&c->txn->open, c->mongo->config.store);
	if (status == STATUS_OK)
		status = txn_run(c, read_row, c);
	return status == STATUS_OK ? status : txn_leave(c, status);
}

enum status
txn_leave(struct call *c, enum status status)
{
	struct txn *t = c->txn;

	if (!t)
		return status;
	/* The command's own until expiring_give(): `state` and `open` are used without the lock. */
	assert(t->entry.taken);
	/* What it has written is staged until it ends, as long as its client likes. */
	if (t->state == TXN_OPEN && status == STATUS_OK && !open_txn_count(&t->open, 0)) {
		c->code = MONGO_EXCEEDED_MEMORY_LIMIT;
		status = net_memory_refuse(net_stream_session(c->client->stream), &c->err);
	}
	if (t->state == TXN_OPEN && (status != STATUS_OK || c->spoils))
		kv_tx_free(txn_settle(t, TXN_ABORTED));
	open_txn_rest(&t->open);
	/* Where somebody has ended the session meanwhile, this gives the transaction up. */
	expiring_give(&c->mongo->txns.table, &t->entry);
	c->txn = NULL;
	return status;
}

enum status
txn_run(struct call *c, kv_body *body, void *arg)
{
	struct txn *t = c->txn;
	uint64_t mark = kv_reads_mark(t->open.tx);
	enum status status;
	uint64_t version;

	TRY(txn_check(c));
	status = body(t->open.tx, arg);
	if (status == STATUS_OK)
		status = kv_get_read_version(t->open.tx, &version);
	if (status == STATUS_OK)
		time_note(c, version);
	else if (!c->code && !c->err.text[0] && kv_tx_error(t->open.tx)[0])
		(void)err_set(&c->err, status, "%s", kv_tx_error(t->open.tx));
	kv_reads_forget(t->open.tx, mark);
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
txn_finish(struct call *c, enum txn_state state)
{
	kv_tx_free(txn_settle(c->txn, state));
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

/* What this process knows of a transaction's end. */
struct ending {
	int64_t number;
	enum txn_state state; /* TXN_OPEN: nothing */
};

static enum expiring_look
look_end(void *arg, struct expiring_entry *e)
{
	struct ending *ending = arg;

	if (!e->taken && txn_of(e)->number == ending->number)
		ending->state = txn_of(e)->state;
	return EXPIRING_LEAVE;
}

/*
 * What became of a transaction that is not open here: it has ended, or another process had it.
 * `*ret_known`: this process was told so already, and has not asked the store.
 */
static enum status
find_end(struct call *c, enum txn_state *ret, bool *ret_known)
{
	struct session_id id = session_of(c);
	struct ending ending = { .number = c->number, .state = TXN_OPEN };

	(void)expiring_look(&c->mongo->txns.table, hash_keyed(0, id.id), &id, look_end, &ending);
	*ret = ending.state;
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
	struct kv_tx *tx = c->txn->open.tx;
	struct session_id id = session_of(c);
	struct kv_tx_stats stats = kv_tx_stats(tx);
	enum txn_state state;
	enum status status;
	uint64_t version;
	bool left;

	TRY(txn_check(c));
	if (!stats.sets && !stats.clears) {
		txn_finish(c, TXN_COMMITTED);
		return STATUS_OK;
	}
	TRY(txn_explain(
		c, session_write(tx, &id, &c->txn->row, c->number, SESSION_COMMITTED, STR(""))));
	status = kv_commit_in_time(tx, &left);
	if (left)
		c->txn->open.tx = NULL;
	if (status == STATUS_OK) {
		TRY(kv_committed_version(tx, &version));
		time_note(c, version);
		txn_finish(c, TXN_COMMITTED);
		return STATUS_OK;
	}
	if (status != STATUS_TX_UNKNOWN) {
		if (kv_tx_error(tx)[0])
			(void)err_set(&c->err, status, "%s", kv_tx_error(tx));
		return txn_explain(c, status);
	}
	status = settle(c, &state);
	if (status != STATUS_OK) {
		txn_finish(c, TXN_UNKNOWN);
		return status;
	}
	txn_finish(c, state);
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
		txn_finish(c, TXN_ABORTED);
		return STATUS_OK;
	}
	/* Where the store does not know it either, it never commits: settle() has seen to that. */
	status = find_end(c, &state, &known);
	c->is_unknown = false; /* only of a commit */
	TRY(status);
	if (state == TXN_COMMITTED)
		return fail_committed(c);
	return known ? fail_aborted(c) : fail_missing(c, -1);
}

enum status
txn_refuse_large(struct call *c)
{
	return call_fail(c, MONGO_TRANSACTION_TOO_LARGE,
			 "a document of more than %d bytes (PLAIN_AHEAD_BYTES) cannot be written "
			 "in a transaction of several commands",
			 PLAIN_AHEAD_BYTES);
}
