#include "door/mongo/retry.h"

#include "door/mongo/client.h"
#include "door/mongo/mongo_int.h"

enum status
retry_init(struct retry *r, struct call *c)
{
	struct bson_value v;
	int64_t n;

	*r = (struct retry){ .call = c, .on = c->has_number && !c->in_transaction };
	buf_init(&r->known, SESSION_KNOWN_BYTES);
	buf_init(&r->made, SESSION_RESULT_BYTES);
	buf_init(&r->retried, MONGO_BATCH_WRITES * sizeof(int32_t));
	r->id = (struct session_id){ c->lsid, str_from_cstr(c->client->user_name) };
	if (bson_find(c->body, STR("stmtId"), &v) && bson_to_int64(&v, &n) && n >= 0 &&
	    n <= INT32_MAX)
		r->first = (int32_t)n;
	if (bson_find(c->body, STR("stmtIds"), &v)) {
		if (v.type != BSON_ARRAY)
			return call_type_mismatch(c, &v, "type 'array'", "%s.stmtIds",
						  c->command->name);
		r->ids = v;
	}
	return STATUS_OK;
}

void
retry_fini(struct retry *r)
{
	buf_release(&r->known);
	buf_release(&r->made);
	buf_release(&r->retried);
}

static int32_t
statement_id(const struct retry *r, size_t index)
{
	struct bson_element e;
	struct bson_iter i;
	int64_t n = 0;

	if (r->ids.type != BSON_ARRAY)
		return r->first + (int32_t)index;
	for (bson_iter_begin(&i, r->ids.text); bson_iter_read(&i, &e); index--)
		if (!index)
			return bson_to_int64(&e.value, &n) ? (int32_t)n : -1;
	return -1;
}

static enum status
too_old(struct retry *r)
{
	return call_fail(r->call, MONGO_TRANSACTION_TOO_OLD,
			 "Retryable write with txnNumber %lld is prohibited on session because a "
			 "newer retryable write or transaction with txnNumber %lld has already "
			 "started on this session.",
			 (long long)r->call->number, (long long)r->row.number);
}

/*
 * What is stored is read by the first attempt, and again where somebody else has added to it
 * meanwhile: the same write, sent again through another connection.
 */
enum status
retry_begin(struct retry *r, struct kv_tx *tx)
{
	struct session_row *row = &r->row;

	r->made.len = 0;
	r->retried.len = r->retried_len;
	if (!r->on)
		return STATUS_OK;
	TRY(session_read(tx, &r->id, row, &r->call->err));
	if (row->is_there && row->number > r->call->number)
		return too_old(r);
	if (!row->is_there || row->number < r->call->number) {
		buf_clear(&r->known);
		r->is_known = false;
		return STATUS_OK;
	}
	if (row->kind != SESSION_WRITES)
		return call_fail(r->call, MONGO_INCOMPLETE_HISTORY,
				 "txnNumber %lld of this session is that of a transaction",
				 (long long)row->number);
	if (r->is_known && r->known_pages == row->pages && r->known_within == row->results.len)
		return STATUS_OK;
	buf_clear(&r->known);
	TRY(session_results(tx, &r->id, row, &r->known));
	r->is_known = true;
	r->known_pages = row->pages;
	r->known_within = row->results.len;
	r->at = 0;
	return STATUS_OK;
}

/* The result of a statement from there on. Most clients send statements again in their order. */
static bool
find_from(struct retry *r, size_t at, int32_t id, struct str *ret)
{
	struct str rest = str_skip(buf_str(&r->known), at);
	struct bson_value v;
	struct str doc;
	int64_t n;

	while (wire_document_cut(&rest, &doc)) {
		if (!bson_find(doc, STR("s"), &v) || !bson_to_int64(&v, &n) || n != id)
			continue;
		r->at = r->known.len - rest.len;
		*ret = bson_find(doc, STR("r"), &v) ? v.text : BSON_EMPTY;
		return true;
	}
	return false;
}

bool
retry_find(struct retry *r, size_t index, struct str *ret_result)
{
	int32_t id;

	if (!r->on || !r->known.len)
		return false;
	id = statement_id(r, index);
	if (!find_from(r, r->at, id, ret_result) && !(r->at && find_from(r, 0, id, ret_result)))
		return false;
	buf_append(&r->retried, &id, sizeof(id));
	return true;
}

enum status
retry_note(struct retry *r, size_t index, struct str result)
{
	struct bson_builder b;

	if (!r->on)
		return STATUS_OK;
	bson_builder_init(&b, &r->made);
	bson_begin(&b);
	bson_put_int32(&b, STR("s"), statement_id(r, index));
	if (result.len)
		bson_put_document(&b, STR("r"), result);
	bson_end(&b);
	if (r->made.failed == STATUS_LIMIT)
		return call_fail(
			r->call, MONGO_BSON_TOO_LARGE,
			"what a write answers may have %d bytes where it may be sent again "
			"(SESSION_RESULT_BYTES): connect with retryWrites=false",
			SESSION_RESULT_BYTES);
	TRY(buf_status(&r->made));
	return fail_statement(r->call);
}

enum status
retry_end(struct retry *r, struct kv_tx *tx)
{
	if (!r->on || !r->made.len)
		return STATUS_OK;
	TRY(fail_commit(r->call));
	return session_write(tx, &r->id, &r->row, r->call->number, SESSION_WRITES,
			     buf_str(&r->made));
}

void
retry_keep(struct retry *r)
{
	r->retried_len = r->retried.len;
}

void
retry_put(const struct retry *r)
{
	struct bson_builder *b = r->call->reply;
	int32_t id;

	if (!r->retried_len)
		return;
	bson_begin_array(b, STR("retriedStmtIds"));
	for (size_t at = 0; at < r->retried_len; at += sizeof(id)) {
		memcpy(&id, r->retried.ptr + at, sizeof(id));
		bson_put_int32(b, STR(""), id);
	}
	bson_end(b);
}
