/* Transactions of a request. Every attempt begins in the same way. */
#include "door/couch/admin/tx.h"

#include <assert.h>

#include "base/clock.h"
#include "kv/reads_first.h"

enum {
	BEGUN_MOST_MS = 20, /* of a transaction that a write goes on in */
};

/* One attempt. The request's own arena is back in its place when the attempt is over. */
static enum status
tx_attempt_in_db(struct kv_tx *tx, void *arg)
{
	struct couch_tx *t = arg;
	struct couch_req *r = t->r;
	struct arena *arena = r->arena;
	struct kv_future *asked = NULL;
	enum status status;

	arena_reset(t->arena, t->mark);
	r->arena = t->arena;
	if (t->reads_first)
		kv_tx_reads_first(tx);
	if (t->writes && t->access == COUCH_ACCESS_MEMBER)
		status = couch_db_open_to_write(r, tx, &asked);
	else
		status = couch_db_open(r, tx, t->access);
	if (status == STATUS_OK && t->body)
		status = t->body(r, tx, t->arg);
	if (asked)
		status = couch_security_confirm(r, asked, status);
	r->arena = arena;
	return status;
}

static enum status
tx_attempt_in_store(struct kv_tx *tx, void *arg)
{
	struct couch_tx *t = arg;

	arena_reset(t->arena, t->mark);
	return t->body(t->r, tx, t->arg);
}

static struct couch_tx
tx_of(struct couch_req *r, enum couch_access access, couch_tx_body *body, void *arg)
{
	return (struct couch_tx){
		.r = r,
		.access = access,
		.body = body,
		.arg = arg,
		.arena = r->arena,
		.mark = arena_mark(r->arena),
	};
}

enum status
couch_db_read(struct couch_req *r, enum couch_access access, couch_tx_body *body, void *arg)
{
	struct couch_tx t = tx_of(r, access, body, arg);

	return kv_run_read(r->couch->config.store, tx_attempt_in_db, &t, &r->fail.err);
}

/*
 * The transaction that the request began with, for its first attempt to write; NULL: none. Its read
 * version costs no other round trip. What others write after that is a conflict, so it has to be
 * young.
 */
static struct kv_tx *
tx_take_begun(struct couch_req *r)
{
	struct kv_tx *tx = r->begun;

	if (tx && clock_mono_ns() - r->begun_ns > (uint64_t)BEGUN_MOST_MS * CLOCK_NS_PER_MS) {
		couch_drop_begun(r);
		return NULL;
	}
	assert(!tx || r->ahead.tx != tx);
	r->begun = NULL;
	return tx;
}

enum status
couch_db_write(struct couch_req *r, enum couch_access access, couch_tx_body *body, void *arg)
{
	for (;;) {
		struct couch_tx t = tx_of(r, access, body, arg);
		enum status status;

		t.writes = true;
		status = kv_run_in(r->couch->config.store, tx_take_begun(r), tx_attempt_in_db, &t,
				   &r->fail.err);
		if (status != STATUS_UNVETTED)
			return status;
		/* What the attempt has left for the validators stays in the arena. */
		r->fail = (struct couch_fail){ .error = COUCH_ERROR_NONE };
		TRY(r->vet(r));
	}
}

enum status
couch_store_read(struct couch_req *r, couch_tx_body *body, void *arg)
{
	struct couch_tx t = tx_of(r, COUCH_ACCESS_MEMBER, body, arg);

	return kv_run_read(r->couch->config.store, tx_attempt_in_store, &t, &r->fail.err);
}

enum status
couch_store_write(struct couch_req *r, couch_tx_body *body, void *arg)
{
	struct couch_tx t = tx_of(r, COUCH_ACCESS_MEMBER, body, arg);

	return kv_run(r->couch->config.store, tx_attempt_in_store, &t, NULL, &r->fail.err);
}

enum status
couch_tx_begin(struct couch_tx *t)
{
	assert(!t->running && t->body);
	/* Attempts of transactions that overlap must not free each other's memory. */
	assert(t->arena != t->r->arena);
	t->writes = true;
	t->mark = arena_mark(t->arena);
	return kv_run_begin(t->r->couch->config.store, tx_attempt_in_db, t, &t->running,
			    &t->r->fail.err);
}

enum status
couch_tx_end(struct couch_tx *t, struct err *err)
{
	struct kv_running *running = t->running;

	assert(running);
	t->running = NULL;
	return kv_run_end(running, err);
}

enum status
couch_tx_run(struct couch_tx *t)
{
	assert(!t->running);
	t->writes = true;
	t->mark = arena_mark(t->arena);
	return kv_run(t->r->couch->config.store, tx_attempt_in_db, t, NULL, &t->r->fail.err);
}

static enum status
tx_attempt_to_judge(struct kv_tx *tx, void *arg)
{
	struct couch_tx *t = arg;

	arena_reset(t->arena, t->mark);
	return couch_db_open_judging(t->r, tx, t->arg);
}

enum status
couch_db_precheck(struct couch_req *r)
{
	struct couch_judged judged;
	struct couch_tx t = tx_of(r, COUCH_ACCESS_MEMBER, NULL, &judged);

	if (r->user.admin)
		return STATUS_OK;
	if (r->judged.known)
		return couch_judge(r);
	TRY(kv_run_read(r->couch->config.store, tx_attempt_to_judge, &t, &r->fail.err));
	r->judged = judged;
	return STATUS_OK;
}

enum status
couch_db_ensure(struct couch_req *r)
{
	return r->db ? STATUS_OK : couch_db_read(r, COUCH_ACCESS_MEMBER, NULL, NULL);
}

enum status
couch_db_require_json(struct couch_req *r)
{
	enum status status = couch_require_json(r);

	if (status == STATUS_OK)
		return STATUS_OK;
	/* If there is no such database, the client has to know that first. */
	TRY(couch_db_ensure(r));
	/*
	 * Opening the database may have left another explanation behind: the refusal's comes last.
	 */
	return couch_require_json(r);
}
