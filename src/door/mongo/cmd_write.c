/*
 * insert, delete and update. A statement that many documents fulfil is done in several
 * transactions, each of which says how far it has come.
 */
#include <stdio.h>

#include "bson/order.h"
#include "door/mongo/client.h"
#include "door/mongo/commands.h"
#include "door/mongo/data.h"
#include "door/mongo/retry.h"
#include "door/mongo/run.h"

enum {
	WRITE_STATEMENTS,
	WRITE_ORDERED,
	WRITE_BYPASS,
	WRITE_LET,
	WRITE_ERROR_BYTES = 16 * 1024 * 1024, /* of what is told of the statements that failed */
	MONGO_ID_ROOM = 100,                  /* for an `_id` that a document is given */
	DELETE_PAGE_DOCS = 200,               /* that one transaction deletes */
	UPDATE_PAGE_DOCS = 20,                /* likewise */
};

#define WRITE_ARGS(statements)                                                                     \
	{                                                                                          \
		[WRITE_STATEMENTS] = { statements, ARG_DOCUMENTS | ARG_REQUIRED },                 \
		[WRITE_ORDERED] = { "ordered", ARG_BOOL },                                         \
		[WRITE_BYPASS] = { "bypassDocumentValidation", ARG_BOOL },                         \
		[WRITE_LET] = { "let", ARG_OBJECT }, { NULL, 0 },                                  \
	}

const struct arg args_insert[] = WRITE_ARGS("documents");
const struct arg args_delete[] = WRITE_ARGS("deletes");
const struct arg args_update[] = WRITE_ARGS("updates");

/* How far a command has come: what an attempt has done counts when it has committed. */
struct progress {
	struct data_list list; /* the statements that are left */
	size_t index;
	size_t errors; /* how many, and how long their documents are */
	size_t errors_len;
	size_t upserted_len;
	uint64_t matched;
	uint64_t modified;
	bool ends;
};

struct writing {
	struct call *call;
	struct data data;
	bool ordered;
	struct buf errors;   /* documents of `writeErrors`, one behind the other */
	struct buf upserted; /* likewise */
	struct progress done;
	struct progress now;     /* in the present attempt */
	struct plain_doc staged; /* of the first statement that is left, if it is large */
	bool is_staged;
	struct retry retry;
};

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

static enum status
writing_begin(struct writing *w, struct call *c, bool creates)
{
	struct str ns;

	*w = (struct writing){ .call = c, .ordered = call_bool(c, WRITE_ORDERED, true) };
	buf_init(&w->errors, WRITE_ERROR_BYTES);
	buf_init(&w->upserted, WRITE_ERROR_BYTES);
	TRY(data_check_concern(c));
	TRY(count_statements(c));
	TRY(retry_init(&w->retry, c));
	TRY(data_ns(c, &ns));
	data_init(&w->data, c, ns, creates);
	data_list_begin(&w->done.list, &c->args[WRITE_STATEMENTS]);
	return STATUS_OK;
}

static void
writing_end(struct writing *w)
{
	data_fini(&w->data);
	retry_fini(&w->retry);
	buf_release(&w->errors);
	buf_release(&w->upserted);
}

/* In each attempt, first. */
static enum status
writing_attempt(struct writing *w, struct kv_tx *tx)
{
	w->now = w->done;
	w->errors.len = w->done.errors_len;
	w->upserted.len = w->done.upserted_len;
	TRY(data_begin(&w->data, tx));
	return retry_begin(&w->retry, tx);
}

/* The attempt has committed. */
static void
writing_keep(struct writing *w)
{
	w->done = w->now;
	w->is_staged = false;
	retry_keep(&w->retry);
}

static void
put_duplicate(struct bson_builder *b, const struct bson_value *id)
{
	bson_begin_document(b, STR("keyPattern"));
	bson_put_int32(b, STR("_id"), 1);
	bson_end(b);
	bson_begin_document(b, STR("keyValue"));
	bson_put(b, STR("_id"), id);
	bson_end(b);
}

/* Notes the failure of a statement; `id` is that of a duplicate key, or NULL. */
static enum status
note_failure(struct writing *w, int code, const char *text, const struct bson_value *id)
{
	struct bson_builder b;

	w->now.ends = w->ordered;
	w->now.errors++;
	bson_builder_init(&b, &w->errors);
	bson_begin(&b);
	bson_put_int32(&b, STR("index"), (int32_t)w->now.index);
	bson_put_int32(&b, STR("code"), code);
	if (id)
		put_duplicate(&b, id);
	bson_put_string(&b, STR("errmsg"), str_from_cstr(text));
	bson_end(&b);
	w->now.errors_len = w->errors.len;
	return buf_status(&w->errors);
}

/*
 * After a statement that failed for itself: notes it, and gives STATUS_OK. What the store has
 * failed is a failure of the command.
 */
static enum status
settle(struct writing *w, enum status status)
{
	struct call *c = w->call;
	int code = c->code ? c->code : (int)mongo_code_of(status);

	if (status == STATUS_OK)
		return STATUS_OK;
	if (!c->code && status != STATUS_INVALID && status != STATUS_DOC_TOO_LARGE)
		return status;
	TRY(note_failure(w, code, c->err.text[0] ? c->err.text : status_name(status), NULL));
	c->code = 0;
	c->err = (struct err){ 0 };
	return STATUS_OK;
}

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

/* Runs transactions until no statement is left. */
static enum status
writing_run(struct writing *w, kv_body *page, enum status (*before)(struct writing *w))
{
	struct call *c = w->call;

	while (!w->done.ends) {
		if (mongo_client_is_interrupted(c->client))
			return call_fail(c, MONGO_INTERRUPTED, "operation was interrupted");
		if (before)
			TRY(before(w));
		TRY(call_run(c, page, w));
		writing_keep(w);
	}
	return STATUS_OK;
}

static enum status
writing_answer(struct writing *w, enum status status)
{
	struct bson_builder *b = w->call->reply;

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

/* ---- insert ---- */

static enum status
insert_one(struct writing *w, struct str given, size_t *bytes)
{
	struct call *c = w->call;
	struct plain_doc one = w->staged;
	struct bson_value id = BSON_OF_NULL;
	struct str doc = one.bytes;
	char text[DATA_NS_BYTES + 100];
	enum status status = STATUS_OK;

	if (!w->is_staged) {
		status = data_document(c, given, &doc);
		if (status == STATUS_OK)
			one = plain_doc_of(doc);
	}
	if (status == STATUS_OK)
		status = plain_insert(&w->data.plain, &one, c->arena);
	*bytes += given.len;
	if (status == STATUS_EXISTS) {
		(void)bson_find(doc, STR("_id"), &id);
		c->err = (struct err){ 0 };
		snprintf(text, sizeof(text),
			 "E11000 duplicate key error collection: %.*s index: _id_ dup key",
			 STR_ARG(w->data.ns));
		return note_failure(w, MONGO_DUPLICATE_KEY, text, &id);
	}
	w->now.matched += status == STATUS_OK;
	if (status == STATUS_OK)
		return retry_note(&w->retry, w->now.index, STR(""));
	return settle(w, status);
}

static enum status
insert_page(struct kv_tx *tx, void *arg)
{
	struct writing *w = arg;
	struct str known;
	size_t bytes = 0;

	TRY(writing_attempt(w, tx));
	for (size_t docs = 0; docs < DATA_PAGE_DOCS && bytes < DATA_PAGE_BYTES; docs++) {
		struct data_list before = w->now.list;
		struct str doc;

		if (!data_list_next(&w->now.list, &doc)) {
			w->now.ends = true;
			break;
		}
		if (retry_find(&w->retry, w->now.index, &known)) {
			w->now.matched++;
			w->now.index++;
			if (w->is_staged)
				break; /* it was this one */
			continue;
		}
		/* A large one has a transaction of its own, for which it is staged. */
		if (doc.len > PLAIN_AHEAD_BYTES - MONGO_ID_ROOM && (docs || !w->is_staged)) {
			w->now.list = before;
			break;
		}
		TRY(insert_one(w, doc, &bytes));
		w->now.index++;
		if (w->now.ends || w->is_staged)
			break;
	}
	return retry_end(&w->retry, tx);
}

static enum status
make_collection(struct kv_tx *tx, void *arg)
{
	struct writing *w = arg;

	return data_begin(&w->data, tx);
}

/* Writes the next document ahead if it is large. Its collection has to be there then. */
static enum status
insert_stage(struct writing *w)
{
	struct call *c = w->call;
	struct data_list list = w->done.list;
	struct str given, doc;
	enum status status;

	if (!data_list_next(&list, &given) || given.len <= PLAIN_AHEAD_BYTES - MONGO_ID_ROOM)
		return STATUS_OK;
	TRY(call_run(c, make_collection, w));
	status = data_document(c, given, &doc);
	if (status == STATUS_OK)
		status = plain_stage(c->mongo->config.store, w->data.db, doc, &w->staged, &c->err);
	if (status == STATUS_OK) {
		w->is_staged = true;
		w->data.mark = arena_mark(c->arena); /* the document lies there */
		return STATUS_OK;
	}
	w->now = w->done;
	TRY(settle(w, status));
	w->now.list = list;
	w->now.index++;
	writing_keep(w);
	return STATUS_OK;
}

enum status
mongo_run_insert(struct call *c)
{
	struct writing w;
	enum status status = writing_begin(&w, c, true);

	if (status == STATUS_OK)
		status = writing_run(&w, insert_page, insert_stage);
	return writing_answer(&w, status);
}

/* ---- delete ---- */

struct deletion {
	struct data_filter filter;
	bool one;
};

static enum status
read_deletion(struct call *c, struct str statement, struct deletion *ret)
{
	struct bson_value query, limit, other;
	int64_t n;

	if (!bson_find(statement, STR("q"), &query) || query.type != BSON_DOCUMENT)
		return call_fail(c, MONGO_FIELD_MISSING,
				 "BSON field 'delete.deletes.q' is missing but a required field");
	if (!bson_find(statement, STR("limit"), &limit))
		return call_fail(
			c, MONGO_FIELD_MISSING,
			"BSON field 'delete.deletes.limit' is missing but a required field");
	if (!bson_to_int64(&limit, &n) || n < 0 || n > 1)
		return call_fail(c, MONGO_FAILED_TO_PARSE,
				 "The limit field in delete objects must be 0 or 1. Got %lld",
				 bson_to_int64(&limit, &n) ? (long long)n : -1);
	if (bson_find(statement, STR("collation"), &other))
		return call_fail(c, MONGO_NOT_IMPLEMENTED, "collation is not there yet");
	ret->one = n == 1;
	return data_filter_read(c, query.text, &ret->filter);
}

/* Deletes up to `most` documents; `*ret_more`: there are others. */
static enum status
delete_all(struct writing *w, size_t most, bool *ret_more)
{
	struct plain_range range = { .mode = KV_READ };
	struct plain_scan scan = { 0 };
	struct call *c = w->call;
	enum status status = plain_scan_open(&scan, &w->data.plain, &range);
	struct bson_value id;
	struct str doc;

	for (size_t i = 0; status == STATUS_OK && i < most; i++) {
		status = plain_scan_next(&scan, c->arena, &doc);
		if (status == STATUS_OK && bson_find(doc, STR("_id"), &id))
			status = plain_delete(&w->data.plain, &id, STR(""), c->arena);
		w->now.matched += status == STATUS_OK;
	}
	plain_scan_close(&scan);
	*ret_more = status == STATUS_OK;
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
delete_statement(struct writing *w, struct str statement, bool *ret_more)
{
	uint64_t matched = w->now.matched;
	struct deletion d;
	struct str known;
	enum status status;

	*ret_more = false;
	TRY(read_deletion(w->call, statement, &d));
	if (w->retry.on && !d.one)
		return call_fail(w->call, MONGO_INVALID_OPTIONS,
				 "Cannot use (or request) retryable writes with limit=0");
	if (retry_find(&w->retry, w->now.index, &known)) {
		w->now.matched++;
		return STATUS_OK;
	}
	if (!w->data.is_there)
		return STATUS_OK;
	if (!d.filter.by_id) {
		TRY(delete_all(w, d.one ? 1 : DELETE_PAGE_DOCS, ret_more));
		*ret_more = *ret_more && !d.one;
	} else {
		status = plain_delete(&w->data.plain, &d.filter.id, STR(""), w->call->arena);
		w->now.matched += status == STATUS_OK;
		if (status != STATUS_OK)
			return status == STATUS_NOT_FOUND ? STATUS_OK : status;
	}
	return w->now.matched == matched ? STATUS_OK : retry_note(&w->retry, w->now.index, STR(""));
}

static enum status
delete_page(struct kv_tx *tx, void *arg)
{
	struct writing *w = arg;
	bool more = false;

	TRY(writing_attempt(w, tx));
	for (size_t i = 0; i < DELETE_PAGE_DOCS && !w->now.ends; i++) {
		struct data_list before = w->now.list;
		struct str statement;

		if (!data_list_next(&w->now.list, &statement)) {
			w->now.ends = true;
			break;
		}
		TRY(settle(w, delete_statement(w, statement, &more)));
		if (more) {
			w->now.list = before; /* the same again */
			break;
		}
		w->now.index++;
	}
	return retry_end(&w->retry, tx);
}

enum status
mongo_run_delete(struct call *c)
{
	struct writing w;
	enum status status = writing_begin(&w, c, false);

	if (status == STATUS_OK)
		status = writing_run(&w, delete_page, NULL);
	return writing_answer(&w, status);
}

/* ---- update: by another document ---- */

struct replacing {
	struct data_filter filter;
	struct str document;
	bool upsert;
};

static enum status
read_replacing(struct call *c, struct str statement, struct replacing *ret)
{
	struct bson_value query, update, flag;
	struct bson_element e;
	struct bson_iter i;

	if (!bson_find(statement, STR("q"), &query) || query.type != BSON_DOCUMENT)
		return call_fail(c, MONGO_FIELD_MISSING,
				 "BSON field 'update.updates.q' is missing but a required field");
	if (!bson_find(statement, STR("u"), &update))
		return call_fail(c, MONGO_FIELD_MISSING,
				 "BSON field 'update.updates.u' is missing but a required field");
	if (update.type != BSON_DOCUMENT)
		return call_fail(c, MONGO_NOT_IMPLEMENTED,
				 "updates by pipelines are not there yet");
	bson_iter_begin(&i, update.text);
	if (bson_iter_read(&i, &e) && e.name.len && e.name.ptr[0] == '$')
		return call_fail(c, MONGO_NOT_IMPLEMENTED,
				 "updates by operators such as %.*s are not there yet",
				 (int)(e.name.len < 100 ? e.name.len : 100), e.name.ptr);
	if (bson_find(statement, STR("multi"), &flag) && bson_is_true(&flag))
		return call_fail(c, MONGO_FAILED_TO_PARSE,
				 "multi update is not supported for replacement-style update");
	ret->upsert = bson_find(statement, STR("upsert"), &flag) && bson_is_true(&flag);
	ret->document = update.text;
	return data_filter_read(c, query.text, &ret->filter);
}

/* The document that is replaced; STATUS_NOT_FOUND: there is none. */
static enum status
find_replaced(struct writing *w, const struct replacing *r, struct str *ret)
{
	struct plain_range range = { .mode = KV_READ };
	struct plain_scan scan = { 0 };
	enum status status;

	if (!w->data.is_there)
		return STATUS_NOT_FOUND;
	if (r->filter.by_id)
		return plain_get(&w->data.plain, &r->filter.id, KV_READ, w->call->arena, ret);
	status = plain_scan_open(&scan, &w->data.plain, &range);
	if (status == STATUS_OK)
		status = plain_scan_next(&scan, w->call->arena, ret);
	plain_scan_close(&scan);
	return status;
}

/* The new document, with the `_id` of the one that it replaces, or of the filter, in front. */
static enum status
make_replacement(struct writing *w, const struct replacing *r, const struct bson_value *id,
		 struct str *ret)
{
	struct buf AUTO(buf_release) made = BUF_INIT(BSON_MOST_BYTES);
	struct call *c = w->call;
	struct bson_element e;
	struct bson_builder b;
	struct bson_value own;
	struct bson_iter i;

	if (!id)
		return data_document(c, r->document, ret);
	if (bson_find(r->document, STR("_id"), &own) && !bson_equals(&own, id))
		return call_fail(c, MONGO_IMMUTABLE_FIELD,
				 "After applying the update, the (immutable) field '_id' was found "
				 "to have been altered");
	bson_builder_init(&b, &made);
	bson_begin(&b);
	bson_put(&b, STR("_id"), id);
	for (bson_iter_begin(&i, r->document); bson_iter_read(&i, &e);)
		if (!str_eq(e.name, STR("_id")))
			bson_put_element(&b, &e);
	bson_end(&b);
	TRY(buf_status(&made));
	*ret = arena_dup(c->arena, buf_str(&made));
	return ret->ptr ? data_document(c, *ret, ret) : STATUS_LIMIT;
}

static void
note_upserted(struct writing *w, const struct bson_value *id)
{
	struct bson_builder b;

	bson_builder_init(&b, &w->upserted);
	bson_begin(&b);
	bson_put_int32(&b, STR("index"), (int32_t)w->now.index);
	bson_put(&b, STR("_id"), id);
	bson_end(&b);
	w->now.upserted_len = w->upserted.len;
}

/* What is stored of an update: {m: 1} if it has changed a document, {u: id} if it has added one. */
static enum status
note_update(struct writing *w, const struct bson_value *upserted)
{
	struct buf AUTO(buf_release) made = BUF_INIT(2 * PLAIN_ID_VALUE_BYTES);
	struct bson_builder b;

	if (!w->retry.on)
		return STATUS_OK;
	bson_builder_init(&b, &made);
	bson_begin(&b);
	if (upserted)
		bson_put(&b, STR("u"), upserted);
	else
		bson_put_int32(&b, STR("m"), 1);
	bson_end(&b);
	TRY(buf_status(&made));
	return retry_note(&w->retry, w->now.index, buf_str(&made));
}

/* Counts an update that was done by an earlier request. */
static void
count_update(struct writing *w, struct str known)
{
	struct bson_value v;

	w->now.matched++;
	if (bson_find(known, STR("m"), NULL))
		w->now.modified++;
	if (bson_find(known, STR("u"), &v))
		note_upserted(w, &v);
}

static enum status
update_statement(struct writing *w, struct str statement)
{
	struct call *c = w->call;
	struct bson_value id = BSON_OF_NULL;
	struct plain_doc one;
	struct replacing r;
	struct str old, doc, known;
	enum status status;
	bool there;

	TRY(read_replacing(c, statement, &r));
	if (retry_find(&w->retry, w->now.index, &known)) {
		count_update(w, known);
		return STATUS_OK;
	}
	status = find_replaced(w, &r, &old);
	there = status == STATUS_OK;
	if (!there && (status != STATUS_NOT_FOUND || !r.upsert))
		return status == STATUS_NOT_FOUND ? STATUS_OK : status;
	if (there)
		(void)bson_find(old, STR("_id"), &id);
	TRY(make_replacement(w, &r, there ? &id : r.filter.by_id ? &r.filter.id : NULL, &doc));
	w->now.matched++;
	if (there && str_eq(old, doc))
		return STATUS_OK;
	if (doc.len > PLAIN_AHEAD_BYTES)
		return call_fail(c, MONGO_BSON_TOO_LARGE,
				 "a document that replaces another one may have %d bytes "
				 "(PLAIN_AHEAD_BYTES)",
				 PLAIN_AHEAD_BYTES);
	one = plain_doc_of(doc);
	if (there) {
		w->now.modified++;
		TRY(plain_replace(&w->data.plain, &one, false, PLAIN_EVENT_REPLACE, STR(""),
				  c->arena));
		return note_update(w, NULL);
	}
	id = BSON_OF_NULL;
	(void)bson_find(doc, STR("_id"), &id);
	note_upserted(w, &id);
	TRY(plain_insert(&w->data.plain, &one, c->arena));
	return note_update(w, &id);
}

static enum status
update_page(struct kv_tx *tx, void *arg)
{
	struct writing *w = arg;

	TRY(writing_attempt(w, tx));
	for (size_t i = 0; i < UPDATE_PAGE_DOCS && !w->now.ends; i++) {
		struct str statement;
		uint64_t matched = w->now.matched;
		enum status status;

		if (!data_list_next(&w->now.list, &statement)) {
			w->now.ends = true;
			break;
		}
		status = update_statement(w, statement);
		if (status != STATUS_OK)
			w->now.matched = matched;
		TRY(settle(w, status));
		w->now.index++;
	}
	return retry_end(&w->retry, tx);
}

/* True if a statement may add a document, for which the collection has to be there. */
static bool
may_upsert(const struct call *c)
{
	struct bson_value flag;
	struct data_list list;
	struct str one;

	for (data_list_begin(&list, &c->args[WRITE_STATEMENTS]); data_list_next(&list, &one);)
		if (bson_find(one, STR("upsert"), &flag) && bson_is_true(&flag))
			return true;
	return false;
}

enum status
mongo_run_update(struct call *c)
{
	struct writing w;
	enum status status = writing_begin(&w, c, may_upsert(c));

	if (status == STATUS_OK)
		status = writing_run(&w, update_page, NULL);
	return writing_answer(&w, status);
}
