#include "door/mongo/cmd/write.h"

#include <assert.h>
#include <stdio.h>

#include "base/clock.h"
#include "door/mongo/cmd/validate.h"
#include "door/mongo/index/index.h"
#include "door/mongo/txn/client.h"
#include "door/mongo/txn/run.h"

/* Counts the statements, which have limits, and looks that each is a document. */
static enum status
count_statements(struct call *c)
{
	struct data_list list;
	struct str one;
	size_t n = 0;

	for (data_list_begin(&list, &c->args[WRITE_STATEMENTS]); data_list_next(&list, &one); n++)
		if (!one.len)
			return call_fail(c, MONGO_TYPE_MISMATCH,
					 "BSON field '%s.%s.%zu' is the wrong type, expected type "
					 "'object'",
					 c->command->name, c->command->args[WRITE_STATEMENTS].name,
					 n);
	if (!n || n > MONGO_BATCH_WRITES)
		return call_fail(c, MONGO_INVALID_LENGTH,
				 "Write batch sizes must be between 1 and %d. Got %zu operations.",
				 MONGO_BATCH_WRITES, n);
	return STATUS_OK;
}

enum status
writing_init(struct writing *w, struct call *c)
{
	*w = (struct writing){ .call = c, .ordered = call_bool(c, WRITE_ORDERED, true) };
	w->errors = BUF_INIT_OF(WRITE_ERROR_BYTES, arena_part(c->arena));
	w->upserted = BUF_INIT_OF(WRITE_ERROR_BYTES, arena_part(c->arena));
	w->place = BUF_SHORT(WRITE_PLACE_BYTES);
	w->place_now = BUF_SHORT(WRITE_PLACE_BYTES);
	TRY(data_check_concern(c));
	TRY(count_statements(c));
	TRY(retry_init(&w->retry, c));
	data_list_begin(&w->done.list, &c->args[WRITE_STATEMENTS]);
	return STATUS_OK;
}

enum status
writing_begin(struct writing *w, struct call *c, bool creates)
{
	struct str ns;

	TRY(writing_init(w, c));
	TRY(validate_check_bypass(c, c->db));
	TRY(data_ns(c, &ns));
	data_init(&w->data, c, ns, creates);
	return STATUS_OK;
}

void
writing_end(struct writing *w)
{
	data_fini(&w->data);
	retry_fini(&w->retry);
	buf_release(&w->errors);
	buf_release(&w->upserted);
	buf_release(&w->place);
	buf_release(&w->place_now);
}

/* ---- Attempts ---- */

enum status
writing_attempt(struct writing *w, struct kv_tx *tx)
{
	/* What the last attempt has noted was not committed: all of it goes. */
	assert(w->done.errors_len <= w->errors.len && w->done.upserted_len <= w->upserted.len);
	w->now = w->done;
	w->errors.len = w->done.errors_len;
	w->upserted.len = w->done.upserted_len;
	buf_set_buf(&w->place_now, &w->place);
	TRY(buf_status(&w->place_now));
	w->tx = tx;
	w->tries++;
	w->docs = 0;
	w->began_ns = clock_mono_ns();
	TRY(mongo_client_check(w->call->client));
	TRY(data_begin(&w->data, tx));
	return retry_begin(&w->retry, tx);
}

bool
writing_is_full(const struct writing *w)
{
	unsigned halves = w->tries > WRITE_TRIES ? 2 * (w->tries - WRITE_TRIES) : 0;
	uint64_t ms = WRITE_TX_MS, bytes = WRITE_TX_BYTES, docs = WRITE_TX_DOCS;

	if (!kv_keeps_versions(w->call->mongo->config.store))
		ms = WRITE_TX_CLUSTER_MS;
	if (halves > 2 * WRITE_QUARTERS)
		halves = 2 * WRITE_QUARTERS;
	return kv_tx_stats(w->tx).size_bytes >= bytes >> halves || w->docs >= docs >> halves ||
	       clock_mono_ns() - w->began_ns >= (ms * CLOCK_NS_PER_MS) >> halves;
}

void
writing_count_from(struct writing *w)
{
	if (w->now.resumes)
		return;
	w->now.matched_before = w->now.matched;
	w->now.modified_before = w->now.modified;
}

void
writing_uncount(struct writing *w)
{
	w->now.matched = w->now.matched_before;
	w->now.modified = w->now.modified_before;
}

void
writing_keep(struct writing *w)
{
	struct buf place = w->place;

	/* Committed: no attempt behind this one begins in front of it. */
	assert(w->now.index >= w->done.index);
	w->done = w->now;
	w->place = w->place_now;
	w->place_now = place;
	w->is_staged = false;
	w->tries = 0;
	retry_keep(&w->retry);
}

enum status
writing_run(struct writing *w, kv_body *page, enum status (*before)(struct writing *w))
{
	struct call *c = w->call;

	while (!w->done.ends) {
		TRY(mongo_client_check(c->client));
		if (before)
			TRY(before(w));
		TRY(call_run(c, page, w));
		writing_keep(w);
	}
	return STATUS_OK;
}

/* ---- What statements have to say ---- */

/*
 * Notes the failure of a statement. Of a duplicate key `id` is the `_id`, or `refused` says what an
 * index has; else both are NULL.
 */
static enum status
note_failure(struct writing *w, int code, const char *text, const struct bson_value *id,
	     const struct plain_refused *refused)
{
	struct bson_builder b;

	assert(code);
	w->now.ends = w->ordered;
	w->now.errors++;
	w->call->spoils = true;
	bson_open(&b, &w->errors);
	if (w->items)
		bson_put_double(&b, STR("ok"), 0);
	bson_put_int32(&b, w->items ? STR("idx") : STR("index"), (int32_t)w->now.index);
	bson_put_int32(&b, STR("code"), code);
	if (id)
		index_put_duplicate_id(&b, id);
	if (refused)
		index_put_duplicate(&b, refused);
	if (code == MONGO_DOCUMENT_VALIDATION && w->call->err_info.ptr &&
	    w->errors.len < WRITE_INFO_BYTES)
		bson_put_document(&b, STR("errInfo"), w->call->err_info);
	mongo_put_errmsg(&b, text);
	if (w->items)
		bson_put_int32(&b, STR("n"), 0);
	if (w->items && w->item_updates)
		bson_put_int32(&b, STR("nModified"), 0);
	bson_end(&b);
	w->now.errors_len = w->errors.len;
	return buf_status(&w->errors);
}

enum status
writing_settle(struct writing *w, enum status status)
{
	const struct plain_refused *refused = &w->data.plain.refused;
	bool duplicate = status == STATUS_DUPLICATE;
	struct call *c = w->call;
	int code;

	if (status == STATUS_OK)
		return STATUS_OK;
	if (!c->code && refused->def && (duplicate || status == STATUS_UNSUPPORTED))
		status = index_fail(c, w->data.ns, refused, status);
	code = c->code ? c->code : (int)mongo_code_of(status);
	if (!c->code && status != STATUS_INVALID && status != STATUS_DOC_TOO_LARGE)
		return status;
	TRY(note_failure(w, code, c->err.text[0] ? c->err.text : status_name(status), NULL,
			 duplicate ? refused : NULL));
	c->code = 0;
	c->err = (struct err){ 0 };
	return STATUS_OK;
}

enum status
writing_note_duplicate(struct writing *w, const struct bson_value *id)
{
	char text[DATA_NS_BYTES + 100];

	w->call->err = (struct err){ 0 };
	snprintf(text, sizeof(text),
		 "E11000 duplicate key error collection: %.*s index: _id_ dup key",
		 STR_ARG(w->data.ns));
	return note_failure(w, MONGO_DUPLICATE_KEY, text, id, NULL);
}

void
writing_note_upserted(struct writing *w, const struct bson_value *id)
{
	struct bson_builder b;

	bson_open(&b, &w->upserted);
	bson_put_int32(&b, STR("index"), (int32_t)w->now.index);
	bson_put(&b, STR("_id"), id);
	bson_end(&b);
	w->now.upserted_len = w->upserted.len;
}

/* ---- The answer ---- */

static void
put_documents(struct bson_builder *b, struct str name, const struct buf *documents)
{
	struct str rest = buf_str(documents);
	struct str doc;

	if (!rest.len)
		return;
	bson_begin_array(b, name);
	while (wire_document_cut(&rest, &doc))
		bson_put_document(b, STR(""), doc);
	bson_end(b);
}

enum status
writing_answer(struct writing *w, enum status status)
{
	struct bson_builder *b = w->call->reply;

	if (status == STATUS_OK)
		status = buf_status(&w->upserted);
	if (status == STATUS_OK)
		bson_put_int32(b, STR("n"), (int32_t)w->done.matched);
	if (status == STATUS_OK && strcmp(w->call->command->name, "update") == 0) {
		put_documents(b, STR("upserted"), &w->upserted);
		bson_put_int32(b, STR("nModified"), (int32_t)w->done.modified);
	}
	if (status == STATUS_OK) {
		put_documents(b, STR("writeErrors"), &w->errors);
		retry_put(&w->retry);
		data_put_concern(w->call);
	}
	writing_end(w);
	return status;
}
