#include "door/rows/data/txn.h"

#include <assert.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/metric.h"
#include "door/rows/data/undo.h"
#include "kv/fate.h"
#include "kv/refresh.h"
#include "model/timed/renew.h"
#include "net/memory.h"
#include "serve/open_txn.h"

METRIC_COUNTER(conflicts, "frond_rows_conflicts_total", METRIC_NUMBER,
	       "Transactions of the protocol for rows that ended with a conflict (40001).");

enum {
	/* What one takes beside what the store has: its struct, the first block of its arena. */
	TXN_FLAT_BYTES = 17 * 1024,
};

enum txn_state {
	TXN_OPEN,
	TXN_FAILED, /* a savepoint may bring it back */
	TXN_DEAD,   /* nothing can: there was a conflict */
	TXN_OVER,   /* it has had its time */
};

struct savepoint {
	uint32_t number;
	size_t undo; /* how much was noted when it was made */
};

struct rows_txn {
	struct unit unit;
	enum txn_state state;
	bool read_only;
	bool has_defined;     /* it has changed definitions */
	struct open_txn open; /* the unit has its `tx`, too */
	struct buf undo;
	struct buf savepoints;   /* struct savepoint, the oldest first */
	uint32_t savepoint_last; /* the highest number so far */
};

static struct savepoint *
savepoints_of(const struct rows_txn *txn)
{
	return (struct savepoint *)(void *)txn->savepoints.ptr;
}

static size_t
savepoint_count(const struct rows_txn *txn)
{
	return txn->savepoints.len / sizeof(struct savepoint);
}

/* Keeps the first `count` of them. */
static void
savepoints_cut(struct rows_txn *txn, size_t count)
{
	txn->savepoints.len = count * sizeof(struct savepoint);
}

/* ---- Units ---- */

static struct unit_table *
unit_table_find(const struct unit *u, const struct rows_table *wanted)
{
	for (struct unit_table *t = u->tables; t; t = t->next) {
		struct str name = t->table->db->name;

		if (name.len == wanted->schema.len + 1 + wanted->name.len &&
		    str_starts_with(name, wanted->schema) && name.ptr[wanted->schema.len] == '.' &&
		    str_eq(str_skip(name, wanted->schema.len + 1), wanted->name))
			return t;
	}
	return NULL;
}

static enum status
table_add(struct unit *u, const struct rows_table *wanted, struct unit_table **ret)
{
	struct catalog_caches *caches = &u->r->door->caches;
	struct unit_table *t = arena_zalloc(u->arena, sizeof(*t));
	struct catalog_cache *cache;
	enum status status;

	if (!t)
		return STATUS_LIMIT;
	if (u->table_count == ROWS_TXN_TABLES)
		return rows_fail(u->r, ROWS_STATE_TOO_LARGE,
				 "a transaction may use %d tables (ROWS_TXN_TABLES)",
				 ROWS_TXN_TABLES);
	cache = catalog_caches_take(caches);
	status = rows_table_open(u->r, u->tx, cache, wanted, u->arena, &t->table);
	catalog_caches_give(caches, cache);
	TRY(status);
	timed_init(&t->timed, u->tx, t->table->db, NULL, &u->r->err);
	t->number = u->table_count++;
	t->next = u->tables;
	u->tables = t;
	*ret = t;
	return STATUS_OK;
}

enum status
rows_unit_table_open(struct unit *u, const struct rows_table *wanted, struct unit_table **ret)
{
	*ret = unit_table_find(u, wanted);
	if (!*ret)
		return table_add(u, wanted, ret);
	(*ret)->timed.err = &u->r->err;
	if (wanted->id.len && memcmp(wanted->id.ptr, (*ret)->table->schema->id, ROWS_ID_BYTES) != 0)
		return rows_fail(u->r, ROWS_STATE_CHANGED, "the table was made anew since");
	return STATUS_OK;
}

enum status
rows_unit_leaves(struct unit *u, const struct rows_table *wanted, struct unit_table *t)
{
	struct table *again;

	TRY(table_leaves_begin(&t->timed));
	/* Not from a cache, which has what is committed. */
	TRY(rows_table_open(u->r, u->tx, NULL, wanted, u->arena, &again));
	rows_table_close(t->table);
	t->table = again;
	timed_init(&t->timed, u->tx, again->db, NULL, &u->r->err);
	return STATUS_OK;
}

static void
unit_close(struct unit *u)
{
	for (struct unit_table *t = u->tables; t; t = t->next)
		rows_table_close(t->table);
	u->tables = NULL;
	u->table_count = 0;
}

enum status
rows_unit_note(struct unit *u, struct unit_table *t, const struct table_key *key)
{
	struct rows_txn *txn = u->txn;
	struct arena_mark mark = arena_mark(u->r->arena);
	enum status status;

	if (!txn || !savepoint_count(txn))
		return STATUS_OK;
	status = rows_undo_note(t, key, u->r->arena, &txn->undo);
	arena_reset(u->r->arena, mark);
	if (status == STATUS_LIMIT && txn->undo.failed == STATUS_LIMIT &&
	    !budget_has_failed(&txn->open.part))
		return rows_fail(u->r, ROWS_STATE_TOO_LARGE,
				 "savepoints may bring back %d bytes of rows (ROWS_UNDO_BYTES)",
				 ROWS_UNDO_BYTES);
	return status;
}

void
rows_unit_told(struct unit *u, struct unit_table *t, int rows)
{
	if (!t->table->schema->counted)
		return;
	t->added += rows;
	/* The note of the row is the last one. */
	if (u->txn && savepoint_count(u->txn))
		rows_undo_told(&u->txn->undo, rows);
}

enum status
rows_unit_settle(struct unit *u)
{
	for (struct unit_table *t = u->tables; t; t = t->next) {
		TRY(table_count_add(&t->timed, t->added));
		t->added = 0;
	}
	return STATUS_OK;
}

/* ---- Requests outside of a transaction ---- */

struct single {
	struct rows_request *r;
	unit_body *body;
	void *arg;
	size_t out;
	struct arena_mark mark;
	bool writes;
};

static enum status
single_body(struct kv_tx *tx, void *arg)
{
	struct single *s = arg;
	struct unit u = { .r = s->r, .tx = tx, .arena = s->r->arena };
	enum status status;

	/* What a scan holds is its client's. */
	if (!s->writes)
		kv_tx_set_memory(tx, arena_part(s->r->arena), 0);
	s->r->out->failed = STATUS_OK;
	s->r->out->len = s->out;
	s->r->state = NULL;
	s->r->at = ROWS_NOWHERE;
	s->r->unique = STR("");
	s->r->err.text[0] = '\0';
	arena_reset(s->r->arena, s->mark);
	status = s->body(&u, s->arg);
	unit_close(&u);
	return status;
}

/* ---- The client's transaction ---- */

/* Everything but what tells that there was one. Returns what is still to be ended. */
static struct open_txn *
txn_release_all(struct rows_client *c)
{
	struct rows_txn *txn = c->txn;

	unit_close(&txn->unit);
	txn->unit.tx = NULL;
	buf_release(&txn->undo);
	buf_release(&txn->savepoints);
	arena_free(txn->unit.arena);
	txn->unit.arena = NULL;
	return &txn->open;
}

void
rows_txn_free(struct rows_client *c)
{
	if (!c->txn)
		return;
	kv_tx_free(open_txn_end(txn_release_all(c)));
	mem_free(c->txn);
	c->txn = NULL;
}

uint64_t
rows_txn_until_ns(const struct rows_client *c)
{
	return c->txn && c->txn->state != TXN_OVER ? c->txn->open.until_ns : 0;
}

uint64_t
rows_txn_look(void *client)
{
	struct rows_client *c = client;

	/* While a request is served its end looks. */
	if (c->txn && !c->txn->unit.r)
		rows_txn_expire(c);
	return UINT64_MAX;
}

void
rows_txn_expire(struct rows_client *c)
{
	struct rows_txn *txn = c->txn;

	if (!txn || !open_txn_is_over(&txn->open, clock_mono_ns()))
		return;
	kv_tx_free(open_txn_expire(txn_release_all(c)));
	txn->state = TXN_OVER;
}

static uint64_t
txn_life_ms(const struct rows_request *r)
{
	return open_txn_life_ms(r->door->config.store, r->door->config.settings->txn_seconds);
}

static enum status
fail_none(struct rows_request *r)
{
	return rows_fail(r, ROWS_STATE_NO_TXN, "there is no transaction in progress");
}

static enum status
fail_over(struct rows_request *r)
{
	return rows_fail(r, ROWS_STATE_TXN_OVER,
			 "the transaction was rolled back: it has lasted longer than "
			 "transaction_seconds, %llu, or others needed its memory",
			 (unsigned long long)(txn_life_ms(r) / 1000));
}

static enum status
fail_dead(struct rows_request *r)
{
	return rows_fail(r, ROWS_STATE_FAILED,
			 "the transaction has failed: nothing but ROLLBACK is left");
}

/* Whether the transaction can do something. */
static enum status
check_open(struct rows_request *r)
{
	rows_txn_expire(r->client);
	if (!r->client->txn)
		return fail_none(r);
	switch (r->client->txn->state) {
	case TXN_OPEN:
		return STATUS_OK;
	case TXN_OVER:
		return fail_over(r);
	case TXN_FAILED:
	case TXN_DEAD:
		break;
	}
	return fail_dead(r);
}

/* What the store says of a failure, but for conflicts, which are told alike wherever they come. */
static enum status
explained(struct rows_request *r, const struct kv_tx *tx, enum status status)
{
	if (status != STATUS_OK && status != STATUS_TX_CONFLICT && status != STATUS_TX_TOO_OLD &&
	    !r->err.text[0] && kv_tx_error(tx)[0])
		(void)err_set(&r->err, status, "%s", kv_tx_error(tx));
	return status;
}

/* Counts what it holds. STATUS_LIMIT, explained: there is no room for that. */
static enum status
count_memory(struct rows_request *r, struct rows_txn *txn)
{
	if (open_txn_count(&txn->open, TXN_FLAT_BYTES + txn->undo.cap + txn->savepoints.cap +
					       arena_used_bytes(txn->unit.arena)))
		return STATUS_OK;
	r->state = ROWS_STATE_MEMORY;
	return net_memory_refuse(net_stream_session(r->client->stream), &r->err);
}

/* After an operation: what it holds is counted, and a failure is kept. */
static enum status
txn_settle(struct rows_request *r, enum status status)
{
	struct rows_txn *txn = r->client->txn;

	if (status == STATUS_OK) {
		status = count_memory(r, txn);
		if (status != STATUS_OK)
			txn->state = TXN_DEAD;
	}
	if (status == STATUS_TX_CONFLICT || status == STATUS_TX_TOO_OLD ||
	    status == STATUS_TX_TOO_LARGE) {
		txn->state = TXN_DEAD;
		metric_add(&conflicts, status != STATUS_TX_TOO_LARGE);
	} else if (status != STATUS_OK && txn->state == TXN_OPEN) {
		txn->state = TXN_FAILED;
	}
	return explained(r, txn->unit.tx, status);
}

/* Whether no table still waits for an answer that it has asked for, as after a failure. */
static bool
all_is_answered(const struct unit *u)
{
	for (const struct unit_table *t = u->tables; t; t = t->next)
		if (t->timed.asked || t->timed.asked_state)
			return false;
	return true;
}

enum status
rows_unit_run(struct rows_request *r, unit_body *body, void *arg, bool writes)
{
	struct single s = { .r = r,
			    .body = body,
			    .arg = arg,
			    .out = r->out->len,
			    .mark = arena_mark(r->arena),
			    .writes = writes };
	struct kv_store *store = r->door->config.store;
	struct rows_txn *txn = r->client->txn;
	enum status status;
	uint64_t mark;

	if (!txn)
		return writes ? kv_run(store, single_body, &s, NULL, &r->err)
			      : kv_run_read(store, single_body, &s, &r->err);
	TRY(check_open(r));
	if (writes && txn->read_only)
		return rows_fail(r, ROWS_STATE_READ_ONLY, "the transaction only reads");
	open_txn_use(&txn->open);
	mark = kv_reads_mark(txn->unit.tx);
	txn->unit.r = r;
	status = txn_settle(r, body(&txn->unit, arg));
	txn->unit.r = NULL;
	if (all_is_answered(&txn->unit))
		kv_reads_forget(txn->unit.tx, mark);
	open_txn_rest(&txn->open);
	return status;
}

/* ---- Definitions ---- */

bool
rows_txn_has_defined(const struct rows_client *c)
{
	return c->txn && c->txn->state == TXN_OPEN && c->txn->has_defined;
}

enum status
rows_txn_define(struct rows_request *r, kv_body *body, void *arg, bool changes)
{
	struct rows_txn *txn = r->client->txn;
	enum status status;

	TRY(check_open(r));
	if (changes && txn->read_only)
		return rows_fail(r, ROWS_STATE_READ_ONLY, "the transaction only reads");
	if (changes && savepoint_count(txn))
		return rows_fail(r, ROWS_STATE_UNSUPPORTED,
				 "definitions cannot change while a savepoint is open");
	open_txn_use(&txn->open);
	txn->unit.r = r;
	status = body(txn->unit.tx, arg);
	if (status == STATUS_OK && changes) {
		/* What rows are written by is read again. No note of a savepoint names a table. */
		assert(!txn->undo.len);
		txn->has_defined = true;
		unit_close(&txn->unit);
	}
	/* A table that is not there is no reason to fail for a transaction that has only asked. */
	if (changes || status == STATUS_TX_CONFLICT || status == STATUS_TX_TOO_OLD)
		status = txn_settle(r, status);
	txn->unit.r = NULL;
	open_txn_rest(&txn->open);
	return status;
}

/* ---- BEGIN ---- */

static enum status
body_u32(struct rows_request *r, uint32_t *ret)
{
	struct rows_in in = { .rest = r->body };

	*ret = rows_in_u32(&in);
	if (in.bad || in.rest.len)
		return rows_fail(r, ROWS_STATE_PROTOCOL, "the request is malformed");
	return STATUS_OK;
}

static enum status
body_none(struct rows_request *r)
{
	if (r->body.len)
		return rows_fail(r, ROWS_STATE_PROTOCOL, "the request is malformed");
	return STATUS_OK;
}

enum status
rows_txn_check_none(struct rows_request *r)
{
	if (!r->client->txn)
		return STATUS_OK;
	return rows_fail(r, ROWS_STATE_IN_TXN, "this cannot be done in a transaction");
}

static enum status
txn_open(struct rows_request *r, bool read_only)
{
	struct rows_client *c = r->client;
	struct rows_txn *txn = mem_zalloc(sizeof(*txn));
	enum status status;

	if (!txn)
		return STATUS_NOMEM;
	if (open_txn_open(&txn->open, OPEN_TXN_ROWS, txn_life_ms(r), arena_part(r->arena)) !=
	    STATUS_OK) {
		mem_free(txn);
		return rows_fail(r, ROWS_STATE_BUSY,
				 "there are %d open transactions, as many as a server may have "
				 "(OPEN_TXN_MOST)",
				 OPEN_TXN_MOST);
	}
	c->txn = txn;
	txn->read_only = read_only;
	txn->undo = BUF_INIT_OF(ROWS_UNDO_BYTES, &txn->open.part);
	txn->savepoints = BUF_INIT_OF(ROWS_SAVEPOINTS * sizeof(struct savepoint), &txn->open.part);
	txn->unit.txn = txn;
	txn->unit.arena = arena_new(ROWS_TXN_BYTES);
	status = txn->unit.arena ? open_txn_begin(&txn->open, c->door->config.store) : STATUS_NOMEM;
	txn->unit.tx = txn->open.tx;
	if (status == STATUS_OK)
		status = count_memory(r, txn);
	if (status != STATUS_OK)
		rows_txn_free(c);
	else
		open_txn_rest(&txn->open);
	return status;
}

enum status
rows_txn_begin(struct rows_request *r)
{
	struct rows_in in = { .rest = r->body };
	unsigned flags = rows_in_u8(&in);

	if (in.bad || in.rest.len || flags > 1)
		return rows_fail(r, ROWS_STATE_PROTOCOL, "the request is malformed");
	if (r->client->txn)
		return rows_fail(r, ROWS_STATE_IN_TXN,
				 "there is already a transaction in progress");
	return txn_open(r, flags);
}

void
rows_txn_refused(struct rows_client *c)
{
	c->txn_refused = !c->txn && c->entry.who.authenticated && c->version >= ROWS_VERSION_BINDS;
}

enum status
rows_txn_check_begun(struct rows_request *r)
{
	if (!r->client->txn_refused)
		return STATUS_OK;
	if (r->header.code == ROWS_ROLLBACK)
		return STATUS_OK;
	if (r->header.code == ROWS_COMMIT)
		r->client->txn_refused = false;
	return rows_fail(r, ROWS_STATE_FAILED, "the transaction could not begin");
}

/* ---- A later state of the store ---- */

static bool
unit_can_renew(const struct unit *u)
{
	for (const struct unit_table *t = u->tables; t; t = t->next)
		if (!timed_can_renew(&t->timed))
			return false;
	return true;
}

enum status
rows_txn_refresh(struct rows_request *r)
{
	struct rows_txn *txn;
	bool moved;

	TRY(body_none(r));
	TRY(check_open(r));
	txn = r->client->txn;
	open_txn_use(&txn->open);
	moved = !txn->has_defined && unit_can_renew(&txn->unit) && kv_refresh(txn->unit.tx);
	for (struct unit_table *t = txn->unit.tables; moved && t; t = t->next)
		timed_renew(&t->timed);
	open_txn_rest(&txn->open);
	rows_put_u8(r->out, moved);
	return buf_status(r->out);
}

/* ---- COMMIT, ROLLBACK ---- */

enum status
rows_txn_commit(struct rows_request *r)
{
	uint8_t stamp[KV_VERSIONSTAMP_TX_BYTES] = { 0 };
	struct rows_client *c = r->client;
	enum status status;
	bool left;

	TRY(body_none(r));
	status = check_open(r);
	if (status != STATUS_OK) {
		/* It has ended, whatever was wrong with it. */
		rows_txn_free(c);
		return status;
	}
	open_txn_use(&c->txn->open);
	kv_want_versionstamp(c->txn->unit.tx);
	status = kv_commit_in_time(c->txn->unit.tx, &left);
	if (status == STATUS_TX_CONFLICT || status == STATUS_TX_TOO_OLD)
		metric_add(&conflicts, 1);
	if (left)
		c->txn->open.tx = c->txn->unit.tx = NULL;
	else
		status = explained(r, c->txn->unit.tx, status);
	if (status == STATUS_OK && kv_versionstamp(c->txn->unit.tx, stamp) != STATUS_OK)
		memset(stamp, 0, sizeof(stamp));
	rows_txn_free(c);
	TRY(status);
	buf_append(r->out, stamp, sizeof(stamp));
	return STATUS_OK;
}

enum status
rows_txn_rollback(struct rows_request *r)
{
	struct rows_client *c = r->client;

	TRY(body_none(r));
	if (!c->txn && !c->txn_refused)
		return fail_none(r);
	c->txn_refused = false;
	rows_txn_free(c);
	return STATUS_OK;
}

/* ---- Savepoints ---- */

enum status
rows_txn_savepoint(struct rows_request *r)
{
	struct rows_txn *txn = r->client->txn;

	TRY(body_none(r));
	TRY(check_open(r));
	if (savepoint_count(txn) == ROWS_SAVEPOINTS)
		return rows_fail(r, ROWS_STATE_TOO_LARGE,
				 "a transaction may have %d savepoints (ROWS_SAVEPOINTS)",
				 ROWS_SAVEPOINTS);
	buf_append(&txn->savepoints, &(struct savepoint){ ++txn->savepoint_last, txn->undo.len },
		   sizeof(struct savepoint));
	if (buf_status(&txn->savepoints) != STATUS_OK) {
		txn->savepoints.failed = STATUS_OK;
		r->state = ROWS_STATE_MEMORY;
		return net_memory_refuse(net_stream_session(r->client->stream), &r->err);
	}
	rows_put_u32(r->out, txn->savepoint_last);
	return STATUS_OK;
}

/* Its place among those that are open. */
static enum status
savepoint_find(struct rows_request *r, size_t *ret)
{
	struct rows_txn *txn = r->client->txn;
	uint32_t number;

	TRY(body_u32(r, &number));
	for (size_t i = 0; i < savepoint_count(txn); i++) {
		if (savepoints_of(txn)[i].number == number) {
			*ret = i;
			return STATUS_OK;
		}
	}
	return rows_fail(r, ROWS_STATE_NO_SAVEPOINT, "there is no savepoint %u", (unsigned)number);
}

enum status
rows_txn_release(struct rows_request *r)
{
	struct rows_txn *txn = r->client->txn;
	size_t at;

	TRY(check_open(r));
	TRY(savepoint_find(r, &at));
	savepoints_cut(txn, at);
	/* What the ones before may bring back is still noted. */
	if (!at)
		buf_clear(&txn->undo);
	return STATUS_OK;
}

static struct unit_table *
table_numbered(const struct unit *u, size_t number)
{
	struct unit_table *t = u->tables;

	while (t && t->number != number)
		t = t->next;
	return t;
}

/* Takes back what was noted behind `until`. */
static enum status
undo_until(struct unit *u, void *arg)
{
	const size_t *until = arg;
	struct buf *undo = &u->txn->undo;
	struct arena_mark mark = arena_mark(u->r->arena);
	struct unit_table *t;
	size_t from;

	/* An entry that found no room was not written, and its row neither. */
	undo->failed = STATUS_OK;
	while (undo->len > *until) {
		t = table_numbered(u, rows_undo_last(undo, &from));
		/* A note is of a table that the transaction has opened. */
		if (!t)
			return STATUS_CORRUPT;
		t->timed.err = &u->r->err;
		TRY(rows_undo_take(t, u->r->arena, undo, from));
		arena_reset(u->r->arena, mark);
	}
	return rows_unit_settle(u);
}

enum status
rows_txn_rollback_to(struct rows_request *r)
{
	struct rows_txn *txn = r->client->txn;
	enum status status;
	size_t at;

	rows_txn_expire(r->client);
	if (!txn)
		return fail_none(r);
	if (txn->state == TXN_OVER)
		return fail_over(r);
	if (txn->state == TXN_DEAD)
		return fail_dead(r);
	TRY(savepoint_find(r, &at));
	txn->state = TXN_OPEN;
	status = rows_unit_run(r, undo_until, &savepoints_of(txn)[at].undo, false);
	/* The savepoint itself stays. */
	if (status == STATUS_OK)
		savepoints_cut(txn, at + 1);
	else
		txn->state = TXN_DEAD;
	return status;
}
