#include "door/mongo/txn/retry.h"

#include <assert.h>
#include <stdlib.h>

#include "door/mongo/txn/client.h"
#include "door/mongo/txn/mongo_int.h"
#include "loop/sort.h"

/* An id as it is kept, in 32 bits. */
static enum status
read_id(struct call *c, const char *member, const struct bson_value *v, int32_t *ret)
{
	int64_t n;

	if (!bson_is_number(v))
		return call_type_mismatch(c, v, "type 'int'", "%s.%s", c->command->name, member);
	if (!bson_to_int64(v, &n) || n < INT32_MIN || n > INT32_MAX)
		return call_fail(c, MONGO_BAD_VALUE,
				 "BSON field '%s.%s' must be a whole number of 32 bits",
				 c->command->name, member);
	*ret = (int32_t)n;
	return STATUS_OK;
}

static enum status
read_ids(struct retry *r, struct str array)
{
	struct bson_element e;
	struct bson_iter i;

	r->has_ids = true;
	for (bson_iter_begin(&i, array); bson_iter_read(&i, &e);) {
		int32_t id = -1;

		TRY(read_id(r->call, "stmtIds", &e.value, &id));
		buf_append(&r->ids, &id, sizeof(id));
	}
	return buf_status(&r->ids);
}

enum status
retry_init(struct retry *r, struct call *c)
{
	struct budget_part *part = arena_part(c->arena);
	struct bson_value v;

	*r = (struct retry){ .call = c, .on = c->has_number && !c->in_transaction };
	r->known = BUF_INIT_OF(SESSION_KNOWN_BYTES, part);
	r->places = BUF_INIT_OF(SESSION_KNOWN_BYTES, part);
	r->ids = BUF_INIT_OF(WIRE_MESSAGE_BYTES, part);
	r->made = BUF_INIT_OF(SESSION_RESULT_BYTES, part);
	r->retried = BUF_INIT_OF(MONGO_BATCH_WRITES * sizeof(int32_t), part);
	r->id = (struct session_id){ c->lsid, str_from_cstr(c->client->entry.user) };
	if (bson_find(c->body, STR("stmtId"), &v))
		TRY(read_id(c, "stmtId", &v, &r->first));
	if (bson_find(c->body, STR("stmtIds"), &v)) {
		if (v.type != BSON_ARRAY)
			return call_type_mismatch(c, &v, "type 'array'", "%s.stmtIds",
						  c->command->name);
		TRY(read_ids(r, bson_text(&v)));
	}
	return STATUS_OK;
}

void
retry_fini(struct retry *r)
{
	buf_release(&r->ids);
	buf_release(&r->known);
	buf_release(&r->places);
	buf_release(&r->made);
	buf_release(&r->retried);
}

/* Numbers go on at the least one behind the greatest one: only that they differ matters. */
static int32_t
statement_id(const struct retry *r, size_t index)
{
	int32_t id = -1;

	if (!r->has_ids)
		return (int32_t)((uint32_t)r->first + (uint32_t)index);
	if (index < r->ids.len / sizeof(id))
		memcpy(&id, r->ids.ptr + index * sizeof(id), sizeof(id));
	return id;
}

/* ---- What is stored ---- */

static void
forget(struct retry *r)
{
	buf_clear(&r->known);
	buf_clear(&r->places);
	r->placed_bytes = 0;
	r->known_pages = 0;
	r->is_known = false;
}

static int
place_compare(const void *a, const void *b)
{
	const struct retry_place *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

/*
 * Finds the places of results that were read. Each of up to MONGO_BATCH_WRITES statements asks for
 * its own one, in each transaction of the command, so they are not searched one by one. Statements
 * are stored in their order, unless some of them were done by an earlier command and others by a
 * later one: only then are they sorted.
 */
static enum status
place_results(struct retry *r)
{
	struct str all = buf_str(&r->known), rest = str_skip(all, r->placed_bytes), doc;
	struct retry_place last = { .id = INT32_MIN };
	bool sorted = true;

	/* What was read before is a part of what is there now, at the same places. */
	assert(r->placed_bytes <= all.len);
	assert(r->places.len % sizeof(last) == 0);
	if (r->places.len)
		memcpy(&last, r->places.ptr + r->places.len - sizeof(last), sizeof(last));
	while (wire_document_cut(&rest, &doc)) {
		struct retry_place place = { .at = (uint32_t)(doc.ptr - all.ptr) };
		struct bson_value v;
		int64_t n;

		if (!bson_find(doc, STR("s"), &v) || !bson_to_int64(&v, &n))
			continue;
		place.id = (int32_t)n;
		sorted = sorted && place.id >= last.id;
		buf_append(&r->places, &place, sizeof(place));
		last = place;
	}
	r->placed_bytes = all.len;
	TRY(buf_status(&r->places));
	if (sorted)
		return STATUS_OK;
	return sort_items_by(r->places.ptr, r->places.len / sizeof(last), sizeof(last),
			     place_compare, r->call->arena);
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
 * What is stored is read by the first attempt. Later ones read what has been added to it: by the
 * transactions of this command, or by the same write, sent again through another connection.
 */
enum status
retry_begin(struct retry *r, struct kv_tx *tx)
{
	struct session_row *row = &r->row;

	/* What the last attempt has made was not committed; what was kept before it stays. */
	assert(r->retried_len <= r->retried.len || r->retried.failed != STATUS_OK);
	r->made.len = 0;
	r->retried.len = r->retried_len;
	if (!r->on)
		return STATUS_OK;
	TRY(session_read(tx, &r->id, row, &r->call->err));
	if (row->is_there && row->number > r->call->number)
		return too_old(r);
	if (!row->is_there || row->number < r->call->number) {
		forget(r);
		return STATUS_OK;
	}
	if (row->kind != SESSION_WRITES)
		return call_fail(r->call, MONGO_INCOMPLETE_HISTORY,
				 "txnNumber %lld of this session is that of a transaction",
				 (long long)row->number);
	if (r->is_known && r->known_pages == row->pages && r->known_within == row->results.len)
		return STATUS_OK;
	/*
	 * Pages come behind those that are there, and what the row itself has stays. A row of
	 * which that is not so is another one than what is known was read of.
	 */
	if (!r->is_known || r->known_pages > row->pages || r->known_within != row->results.len)
		forget(r);
	r->is_known = false;
	TRY(session_results(tx, &r->id, row, r->known_pages, &r->known));
	TRY(place_results(r));
	assert(r->placed_bytes == r->known.len);
	r->is_known = true;
	r->known_pages = row->pages;
	r->known_within = row->results.len;
	return STATUS_OK;
}

bool
retry_find(struct retry *r, size_t index, struct str *ret_result)
{
	struct retry_place wanted = { 0 };
	const struct retry_place *found;
	struct bson_value v;
	struct str rest, doc;

	if (!r->on || !r->places.len)
		return false;
	wanted.id = statement_id(r, index);
	found = bsearch(&wanted, r->places.ptr, r->places.len / sizeof(wanted), sizeof(wanted),
			place_compare);
	if (!found)
		return false;
	assert(found->at < r->known.len);
	rest = str_skip(buf_str(&r->known), found->at);
	if (!wire_document_cut(&rest, &doc))
		return false;
	*ret_result = bson_find(doc, STR("r"), &v) ? bson_text(&v) : BSON_EMPTY;
	buf_append(&r->retried, &wanted.id, sizeof(wanted.id));
	return true;
}

enum status
retry_note(struct retry *r, size_t index, struct str result)
{
	struct bson_builder b;

	if (!r->on)
		return STATUS_OK;
	bson_open(&b, &r->made);
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
	/* In the transaction of the writes: both are there after a crash, or neither. */
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
	assert(r->retried_len % sizeof(id) == 0 && r->retried_len <= r->retried.len);
	bson_begin_array(b, STR("retriedStmtIds"));
	for (size_t at = 0; at < r->retried_len; at += sizeof(id)) {
		memcpy(&id, r->retried.ptr + at, sizeof(id));
		bson_put_int32(b, STR(""), id);
	}
	bson_end(b);
}
