/* Snapshots of a database that last as long as an answer. */
#include <assert.h>

#include "door/couch/admin/access.h"
#include "door/couch/admin/again.h"
#include "door/couch/admin/snapshot.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/request.h"
#include "kv/kv.h"

/* Opens the database in the fresh transaction, and tries again after a failure that may pass. */
static enum status
snapshot_open(struct couch_snapshot *s)
{
	for (;;) {
		/* Lists also go by counters, which a bare database has not. */
		enum status status = s->lists ? couch_db_open(s->r, s->tx, COUCH_ACCESS_MEMBER)
					      : couch_db_open_bare(s->r, s->tx);

		if (status == STATUS_OK || ++s->failures > KV_RETRY_LIMIT)
			return status;
		TRY(kv_on_error(s->tx, status));
	}
}

/* ---- Memory ---- */

/*
 * The stretches of a scan for a turn of so many bytes: two scans, of rows and of documents, have
 * two stretches each, which take some more than the pairs that are in them.
 */
static size_t
snapshot_stretch_bytes(size_t read_bytes)
{
	enum {
		STRETCHES = 8,
		SPARE_BYTES = 4 * 1024, /* the engine adds it, and rounds up to a power of two */
	};
	size_t room = COUCH_READ_LEAST_BYTES / STRETCHES;

	while (room * 2 <= read_bytes / STRETCHES)
		room *= 2;
	return room - SPARE_BYTES;
}

/*
 * Begins the transaction. That of a list first waits for a turn to read, and makes its pages as
 * large as the turn allows.
 */
static enum status
snapshot_begin_tx(struct couch_snapshot *s)
{
	struct budget_part *part = http_memory(s->r->x);
	size_t n = COUCH_READ_MOST_BYTES;

	if (!s->lists && s->r->begun && s->r->method == COUCH_GET) {
		/* On a cluster its read version is known, so that it costs no round trip. */
		s->tx = s->r->begun;
		s->r->begun = NULL;
		kv_tx_set_memory(s->tx, part, 0);
		return STATUS_OK;
	}
	if (!s->lists) {
		TRY(kv_begin(s->r->couch->config.store, KV_TX_READ_ONLY, &s->tx));
		kv_tx_set_memory(s->tx, part, 0);
		return STATUS_OK;
	}
	if (part->budget)
		n = budget_read_portion(part->budget, COUCH_READ_MOST_BYTES,
					COUCH_READ_LEAST_BYTES);
	if (n < s->read_bytes)
		n = s->read_bytes;
	TRY(http_ask_to_read(s->r->x, n));
	TRY(kv_begin(s->r->couch->config.store, KV_TX_READ_ONLY, &s->tx));
	kv_tx_set_memory(s->tx, part, snapshot_stretch_bytes(n));
	return STATUS_OK;
}

/* ---- Life ---- */

static enum status
snapshot_begin(struct couch_snapshot *s)
{
	TRY(snapshot_begin_tx(s));
	return snapshot_open(s);
}

enum status
couch_snapshot_begin(struct couch_snapshot *s, struct couch_req *r)
{
	*s = (struct couch_snapshot){ .r = r };
	return snapshot_begin(s);
}

enum status
couch_snapshot_begin_list(struct couch_snapshot *s, struct couch_req *r)
{
	*s = (struct couch_snapshot){ .r = r, .lists = true };
	TRY(http_ask_to_last(r->x, COUCH_EXPECTED_BYTES));
	s->expects = true;
	return snapshot_begin(s);
}

/* Opens the database in the transaction, which is new; it must be the one of before. */
static enum status
snapshot_reopen(struct couch_snapshot *s)
{
	uint64_t number = s->r->db->number;

	TRY(snapshot_open(s));
	/*
	 * The database was deleted and created anew, so the rows that were sent belong to another
	 * one.
	 */
	if (s->r->db->number != number)
		return couch_fail_set(&s->r->fail, COUCH_ERROR_NOT_FOUND,
				      "Database does not exist.");
	return STATUS_OK;
}

/* What was expected of the listing is counted as what it is from now on. */
static void
snapshot_end_expecting(struct couch_snapshot *s)
{
	if (s->expects)
		budget_unuse(http_memory(s->r->x), COUCH_EXPECTED_BYTES);
	s->expects = false;
}

void
couch_snapshot_rest(struct couch_snapshot *s)
{
	snapshot_end_expecting(s);
	if (!s->tx)
		return;
	kv_tx_free(s->tx);
	s->tx = NULL;
	budget_settle(http_memory(s->r->x));
	s->resting = true;
}

enum status
couch_snapshot_resume(struct couch_snapshot *s)
{
	struct arena_mark mark;
	enum status status;

	TRY(couch_check_reader(s->r, s->lists));
	if (!s->resting)
		return STATUS_OK;
	assert(!s->tx);
	s->resting = false;
	mark = arena_mark(s->r->arena);
	TRY(snapshot_begin_tx(s));
	status = snapshot_reopen(s);
	arena_reset(s->r->arena, mark);
	return status;
}

enum status
couch_snapshot_last(struct couch_snapshot *s)
{
	if (!budget_may_last(http_memory(s->r->x)))
		couch_snapshot_rest(s);
	TRY(http_ask_to_last(s->r->x, 0));
	return couch_snapshot_resume(s);
}

bool
couch_snapshot_is_wanted(const struct couch_snapshot *s)
{
	const struct budget *b = http_memory(s->r->x)->budget;

	return s->lists && b && budget_is_wanted(b);
}

/*
 * A page or row has not found the memory it needs beside what the turn has. Takes a turn with more,
 * if that can help.
 */
static bool
snapshot_take_larger_turn(struct couch_snapshot *s, enum status status)
{
	enum {
		GROWTH = 4,
	};
	struct budget_part *part = http_memory(s->r->x);

	if (!s->lists || !part->refused || (status != STATUS_LIMIT && status != STATUS_NOMEM) ||
	    s->read_bytes > part->budget->limit_bytes / GROWTH)
		return false;
	part->refused = false;
	s->read_bytes = (s->read_bytes ? s->read_bytes : COUCH_READ_LEAST_BYTES) * GROWTH;
	couch_snapshot_rest(s);
	return true;
}

enum status
couch_snapshot_renew(struct couch_snapshot *s, enum status status)
{
	if (!s->tx)
		return status; /* The view had been let go of, so no reading has failed. */
	if (++s->failures > KV_RETRY_LIMIT)
		return status;
	if (snapshot_take_larger_turn(s, status))
		return couch_snapshot_resume(s);
	/* kv_run() does the same for requests that read in one transaction of its own. */
	if (status == STATUS_NEWER && kv_tx_err(s->tx)->status == status)
		s->r->fail.err = *kv_tx_err(s->tx);
	TRY(kv_on_error(s->tx, status));
	return snapshot_reopen(s);
}

enum status
couch_snapshot_run(struct couch_snapshot *s, couch_tx_body *body, void *arg)
{
	struct couch_req *r = s->r;
	struct arena_mark mark = arena_mark(r->arena);

	TRY(couch_snapshot_resume(s));
	assert(s->tx);
	for (;;) {
		enum status status = body(r, s->tx, arg);

		if (status == STATUS_OK) {
			s->failures = 0;
			return STATUS_OK;
		}
		TRY(couch_snapshot_renew(s, status));
		arena_reset(r->arena, mark);
	}
}

void
couch_snapshot_end(struct couch_snapshot *s)
{
	snapshot_end_expecting(s);
	s->resting = false;
	if (!s->tx)
		return;
	kv_tx_free(s->tx);
	s->tx = NULL;
	if (s->lists)
		budget_settle(http_memory(s->r->x));
}
