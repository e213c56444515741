/*
 * bulkWrite: statements of all kinds, on collections of all databases.
 *
 * They are done in their order, as many in one transaction as it holds, so several collections are
 * open in one: the present one is `data` of the writing, and the others wait beside it.
 */
#include "door/mongo/cmd/commands.h"
#include "door/mongo/cmd/update.h"
#include "door/mongo/cmd/validate.h"
#include "door/mongo/txn/client.h"
#include "door/mongo/txn/cursor.h"
#include "door/mongo/txn/run.h"
#include "door/mongo/txn/txn.h"

enum {
	BULK_NAMES = WRITE_LET + 1,
	BULK_ERRORS_ONLY,
	BULK_CURSOR,
	BULK_COLLECTIONS = 16, /* that are open in one transaction */
	/* Of what all statements have to say; those behind it are not done. */
	BULK_RESULTS_BYTES = 32 * 1024 * 1024,
	BULK_RESULT_BYTES = 18 * 1024 * 1024, /* of one statement */
	BULK_BATCH_BYTES = 16 * 1024 * 1024,
	BULK_REPLY_BYTES = BULK_RESULTS_BYTES + BULK_RESULT_BYTES,
};

const struct arg args_bulk_write[] = {
	[WRITE_STATEMENTS] = { "ops", ARG_DOCUMENTS | ARG_REQUIRED },
	[WRITE_ORDERED] = { "ordered", ARG_BOOL },
	[WRITE_BYPASS] = { "bypassDocumentValidation", ARG_BOOL },
	[WRITE_LET] = { "let", ARG_OBJECT },
	[BULK_NAMES] = { "nsInfo", ARG_DOCUMENTS | ARG_REQUIRED },
	[BULK_ERRORS_ONLY] = { "errorsOnly", ARG_BOOL },
	[BULK_CURSOR] = { "cursor", ARG_OBJECT },
	{ NULL, 0 },
};

enum bulk_kind {
	BULK_INSERT,
	BULK_UPDATE,
	BULK_DELETE
};

struct bulk_op {
	enum bulk_kind kind;
	struct str ns;       /* "db.collection" */
	struct str document; /* of an insert */
	struct statement s;  /* of the others */
};

struct bulk {
	struct updating u; /* first */
	struct str *names;
	size_t name_count;
	bool errors_only;
	/* Of the present attempt: collections that are open, but for the present one. */
	struct data others[BULK_COLLECTIONS - 1];
	size_t other_count;
	unsigned events; /* that the transaction has logged in all of them */
	/*
	 * Whether the `_id` of each of the next inserts is new. `new_at` is the next of `new_count`
	 * such inserts; nothing is known of later ones.
	 */
	bool are_new[DATA_PAGE_DOCS];
	size_t new_at, new_count;
};

/* ---- Statements ---- */

/* The first member: which kind it is, and where. */
static enum status
op_target(struct bulk *b, const struct bson_element *e, struct bulk_op *op)
{
	static const char *const kinds[] = { "insert", "update", "delete" };
	struct call *c = b->u.w.call;
	size_t kind = 0;
	int64_t n;

	while (kind < 3 && !str_eq(e->name, str_from_cstr(kinds[kind])))
		kind++;
	if (kind == 3)
		return call_fail(
			c, MONGO_FAILED_TO_PARSE,
			"An entry of bulkWrite.ops has to begin with 'insert', 'update' or "
			"'delete', not with '%.*s'",
			(int)(e->name.len < 100 ? e->name.len : 100), e->name.ptr);
	op->kind = (enum bulk_kind)kind;
	if (update_is_left_out(&e->value))
		return statement_missing(c, kinds[kind]);
	if (!bson_is_number(&e->value))
		return statement_wrong_type(c, e, "type 'int'");
	if (!bson_to_int64(&e->value, &n) || n < 0 || (uint64_t)n >= b->name_count)
		return call_fail(c, MONGO_BAD_VALUE,
				 "BulkWrite ops entry has an invalid nsInfo index.");
	op->ns = b->names[n];
	return STATUS_OK;
}

static enum status
op_member(struct call *c, const struct bson_element *e, struct bulk_op *op)
{
	bool known = op->kind == BULK_INSERT && str_eq(e->name, STR("document"));

	if (known)
		return update_is_left_out(&e->value) ? STATUS_OK
						     : statement_read_document(c, e, &op->document);
	if (op->kind != BULK_INSERT)
		TRY(statement_read_member(
			c, op->kind == BULK_UPDATE ? STATEMENT_OP_UPDATE : STATEMENT_OP_DELETE, e,
			&op->s, &known));
	if (!known)
		return call_fail(c, MONGO_FIELD_UNKNOWN,
				 "BSON field 'bulkWrite.ops.%.*s' is an unknown field.",
				 (int)(e->name.len < 100 ? e->name.len : 100), e->name.ptr);
	return op->s.ask.update ? update_check_pipeline(c, op->s.ask.update) : STATUS_OK;
}

/* What `*ret` refers to is in itself, so it stays where it is. */
static enum status
op_read(struct bulk *b, struct str bytes, struct bulk_op *ret)
{
	struct call *c = b->u.w.call;
	struct bson_element e;
	struct bson_iter i;

	*ret = (struct bulk_op){ 0 };
	bson_iter_begin(&i, bytes);
	if (!bson_iter_read(&i, &e))
		return call_fail(c, MONGO_FAILED_TO_PARSE, "An entry of bulkWrite.ops is empty");
	TRY(op_target(b, &e, ret));
	while (bson_iter_read(&i, &e))
		TRY(op_member(c, &e, ret));
	if (ret->kind == BULK_INSERT)
		return ret->document.ptr ? STATUS_OK : statement_missing(c, "document");
	if (!ret->s.ask.filter.ptr)
		return statement_missing(c, "filter");
	if (ret->kind == BULK_UPDATE && !ret->s.ask.update)
		return statement_missing(c, "updateMods");
	return STATUS_OK;
}

static bool
op_creates(const struct bulk_op *op)
{
	return op->kind == BULK_INSERT || op->s.ask.upsert;
}

/* ---- Reading the command ---- */

static enum status
bulk_read_name(struct bulk *b, struct str info, struct str *ret)
{
	struct call *c = b->u.w.call;
	struct bson_element e;
	struct bson_iter i;
	struct str rest, db;

	*ret = (struct str){ 0 };
	for (bson_iter_begin(&i, info); bson_iter_read(&i, &e);) {
		bool known = str_eq(e.name, STR("ns")) || str_eq(e.name, STR("collectionUUID")) ||
			     str_eq(e.name, STR("encryptionInformation"));

		if (!known)
			return call_fail(c, MONGO_FIELD_UNKNOWN,
					 "BSON field 'bulkWrite.nsInfo.%.*s' is an unknown field.",
					 (int)(e.name.len < 100 ? e.name.len : 100), e.name.ptr);
		if (update_is_left_out(&e.value))
			continue;
		if (!str_eq(e.name, STR("ns")))
			return call_fail(c, MONGO_NOT_IMPLEMENTED,
					 "bulkWrite.nsInfo.%.*s is not there", STR_ARG(e.name));
		if (e.value.type != BSON_STRING)
			return call_type_mismatch(c, &e.value, "type 'string'",
						  "bulkWrite.nsInfo.ns");
		*ret = bson_text(&e.value);
	}
	if (!ret->ptr)
		return call_fail(c, MONGO_FIELD_MISSING,
				 "BSON field 'bulkWrite.nsInfo.ns' is missing but a required "
				 "field");
	TRY(call_check_ns(c, *ret));
	rest = *ret;
	db = str_cut(&rest, '.');
	TRY(call_check_rights(c, db, RIGHT_WRITE));
	TRY(txn_check_db(c, db));
	return validate_check_bypass(c, db);
}

static enum status
read_names(struct bulk *b)
{
	struct call *c = b->u.w.call;
	struct data_list list;
	struct str info;
	size_t n = 0;

	for (data_list_begin(&list, &c->args[BULK_NAMES]); data_list_next(&list, &info);)
		n++;
	if (!n || n > MONGO_BATCH_WRITES)
		return call_fail(c, MONGO_INVALID_LENGTH,
				 "bulkWrite.nsInfo has to have between 1 and %d entries, not %zu",
				 MONGO_BATCH_WRITES, n);
	b->names = arena_alloc(c->arena, n * sizeof(*b->names));
	if (!b->names)
		return STATUS_LIMIT;
	for (data_list_begin(&list, &c->args[BULK_NAMES]); data_list_next(&list, &info);)
		TRY(bulk_read_name(b, info, &b->names[b->name_count++]));
	return STATUS_OK;
}

/* A statement that makes no sense fails the whole command, before anything is done. */
static enum status
check_ops(struct bulk *b)
{
	struct writing *w = &b->u.w;
	struct data_list list = w->done.list;
	struct bulk_op op;
	struct str bytes;

	while (data_list_next(&list, &bytes)) {
		TRY(op_read(b, bytes, &op));
		if (w->retry.on && op.kind != BULK_INSERT && op.s.many)
			return call_fail(w->call, MONGO_INVALID_OPTIONS,
					 "Cannot use retryable writes with multi=true");
	}
	return STATUS_OK;
}

static enum status
bulk_begin(struct bulk *b, struct call *c)
{
	struct writing *w = &b->u.w;

	TRY(writing_init(w, c));
	w->errors = BUF_INIT_OF(BULK_REPLY_BYTES, arena_part(c->arena));
	w->items = true;
	b->errors_only = call_bool(c, BULK_ERRORS_ONLY, false);
	TRY(read_names(b));
	TRY(check_ops(b));
	data_init(&w->data, c, b->names[0], false);
	w->data.takes_views = true; /* a view fails the statements on it, and not the others */
	return STATUS_OK;
}

/* ---- Collections ---- */

/*
 * Closes all collections and names the first one of the next attempt. A transaction of several
 * commands goes on counting its events where they have ended.
 */
static void
collections_close(struct bulk *b, struct str ns, bool creates)
{
	struct data *d = &b->u.w.data;

	for (size_t i = 0; i < b->other_count; i++) {
		b->others[i].plain.events = b->events;
		data_fini(&b->others[i]);
	}
	b->other_count = 0;
	d->plain.events = b->events;
	data_fini(d);
	d->ns = ns;
	d->creates = creates;
}

/* The place of a collection among the others; other_count: it is not there. */
static size_t
collection_find(const struct bulk *b, struct str ns)
{
	size_t i = 0;

	while (i < b->other_count && !str_eq(b->others[i].ns, ns))
		i++;
	return i;
}

/* Makes a collection the present one. False: too many are open. */
static bool
collection_turn_to(struct bulk *b, struct str ns)
{
	struct data *d = &b->u.w.data;
	size_t i = collection_find(b, ns);
	struct data found = { .call = d->call, .ns = ns, .takes_views = true };

	if (i == BULK_COLLECTIONS - 1)
		return false;
	if (i == b->other_count)
		b->other_count++;
	else
		found = b->others[i];
	found.mark = d->mark;
	b->others[i] = *d;
	*d = found;
	return true;
}

/* `*ret_full`: the statement has to wait for another transaction. */
static enum status
collection_select(struct bulk *b, const struct bulk_op *op, bool *ret_full)
{
	struct data *d = &b->u.w.data;

	if (!str_eq(d->ns, op->ns) && !collection_turn_to(b, op->ns)) {
		*ret_full = true;
		return STATUS_OK;
	}
	if (!d->is_there && (!d->db || op_creates(op))) {
		d->creates = op_creates(op);
		TRY(data_open(d, b->u.w.tx));
	}
	d->plain.events = b->events;
	return STATUS_OK;
}

/* ---- Doing statements ---- */

/* Reads the next statement of the list. False: there is none. */
static bool
op_next(struct bulk *b, struct data_list *list, struct bulk_op *ret)
{
	struct str bytes;

	/* All of them were read before. */
	return data_list_next(list, &bytes) && op_read(b, bytes, ret) == STATUS_OK;
}

/*
 * Looks together for the `_id`s of an insert and of the inserts behind it into the same collection,
 * before the first of them is written. It ends in front of an insert that has no `_id` yet.
 */
static enum status
inserts_look(struct bulk *b, const struct bulk_op *first)
{
	struct writing *w = &b->u.w;
	struct arena *arena = w->call->arena;
	struct data_list list = w->now.list;
	struct bulk_op op = *first;
	struct bson_value *ids = NULL;
	size_t count = 0, cap = 0, bytes = 0;

	b->new_at = b->new_count = 0;
	if (!w->data.is_there || w->is_staged || w->retry.places.len)
		return STATUS_OK;
	do {
		struct bson_value id;

		if (op.kind != BULK_INSERT || !str_eq(op.ns, first->ns) ||
		    writing_insert_is_large(op.document) ||
		    !bson_find(op.document, STR("_id"), &id))
			break;
		TRY(arena_room(arena, &ids, count, &cap, sizeof(*ids)));
		ids[count++] = id;
		bytes += op.document.len;
	} while (count < DATA_PAGE_DOCS && bytes < DATA_PAGE_BYTES && op_next(b, &list, &op));
	if (count < 2)
		return STATUS_OK;
	TRY(plain_find_new(&w->data.plain, ids, count, arena, b->are_new));
	b->new_count = count;
	return STATUS_OK;
}

static enum status
do_insert(struct bulk *b, const struct bulk_op *op)
{
	struct writing *w = &b->u.w;
	bool is_new = false;
	struct str known;
	size_t bytes = 0;

	if (retry_find(&w->retry, w->now.index, &known)) {
		update_count_known(w, known);
		return STATUS_OK;
	}
	if (b->new_at == b->new_count)
		TRY(inserts_look(b, op));
	if (b->new_at < b->new_count)
		is_new = b->are_new[b->new_at++];
	w->docs++;
	return writing_insert(w, op->document, is_new, &bytes);
}

static enum status
put_item(struct bulk *b, const struct bulk_op *op)
{
	struct writing *w = &b->u.w;
	struct bson_value id;
	struct bson_builder r;

	if (b->errors_only)
		return STATUS_OK;
	bson_open(&r, &w->errors);
	bson_put_double(&r, STR("ok"), 1);
	bson_put_int32(&r, STR("idx"), (int32_t)w->now.index);
	bson_put_int32(&r, STR("n"), (int32_t)w->now.matched);
	if (op->kind == BULK_UPDATE)
		bson_put_int32(&r, STR("nModified"), (int32_t)w->now.modified);
	if (w->upserted.len && bson_find(buf_str(&w->upserted), STR("_id"), &id)) {
		bson_begin_document(&r, STR("upserted"));
		bson_put(&r, STR("_id"), &id);
		bson_end(&r);
	}
	bson_end(&r);
	w->now.errors_len = w->errors.len;
	return buf_status(&w->errors);
}

/* A statement has come to its end: counts what it has done. */
static void
count_op(struct bulk *b, const struct bulk_op *op)
{
	struct progress *now = &b->u.w.now;
	bool upserted = b->u.w.upserted.len;

	if (op->kind == BULK_INSERT)
		now->totals.inserted += now->matched;
	else if (op->kind == BULK_DELETE)
		now->totals.deleted += now->matched;
	else
		now->totals.matched += now->matched - upserted;
	now->totals.modified += op->kind == BULK_UPDATE ? now->modified : 0;
	now->totals.upserted += upserted;
	now->matched = now->modified = 0;
	now->resumes = now->found = false;
	now->index++;
	b->u.w.upserted.len = now->upserted_len = 0;
	buf_clear(&b->u.w.place_now);
}

/* `*ret_again`: the statement, or the rest of it, is for another transaction. */
static enum status
do_op(struct bulk *b, struct bulk_op *op, bool *ret_again)
{
	struct writing *w = &b->u.w;
	size_t errors = w->now.errors;
	bool more = false, alone = false;
	enum status status;

	writing_count_from(w);
	w->item_updates = op->kind == BULK_UPDATE;
	if (w->errors.len > BULK_RESULTS_BYTES) {
		status = call_fail(w->call, MONGO_EXCEEDED_MEMORY_LIMIT,
				   "what the statements have to say has more than %d bytes "
				   "(BULK_RESULTS_BYTES)",
				   BULK_RESULTS_BYTES);
		TRY(writing_settle(w, status));
		w->now.ends = true;
		return STATUS_OK;
	}
	status = data_refuse_view(&w->data);
	if (status == STATUS_OK && op->kind == BULK_INSERT)
		status = do_insert(b, op);
	else if (status == STATUS_OK)
		status = update_do(&b->u, &op->s, &more, &alone);
	if (w->data.is_there)
		b->events = w->data.plain.events;
	if (status != STATUS_OK) {
		writing_uncount(w);
		w->upserted.len = w->now.upserted_len = 0;
	}
	TRY(writing_settle(w, status));
	*ret_again = more || alone;
	w->now.resumes = more;
	if (*ret_again)
		return STATUS_OK;
	if (w->now.errors == errors)
		TRY(put_item(b, op));
	count_op(b, op);
	return STATUS_OK;
}

/* True if a statement wants a transaction that it is the first of. */
static bool
op_wants_own(const struct bulk *b, const struct bulk_op *op, bool first)
{
	return op->kind == BULK_INSERT && writing_insert_is_large(op->document) &&
	       !(first && b->u.w.is_staged);
}

/* Begins an attempt with the collection of its first statement. */
static enum status
bulk_attempt(struct bulk *b, struct kv_tx *tx)
{
	struct writing *w = &b->u.w;
	struct data_list list = w->done.list;
	struct bulk_op op;

	if (op_next(b, &list, &op))
		collections_close(b, op.ns, op_creates(&op));
	TRY(writing_attempt(w, tx));
	b->events = w->call->txn ? w->call->txn->events : 0;
	b->new_at = b->new_count = 0;
	return STATUS_OK;
}

static enum status
bulk_page(struct kv_tx *tx, void *arg)
{
	struct bulk *b = arg;
	struct writing *w = &b->u.w;

	TRY(bulk_attempt(b, tx));
	for (bool first = true; !w->now.ends; first = false) {
		struct data_list before = w->now.list;
		bool again = false;
		struct bulk_op op;

		if (!op_next(b, &w->now.list, &op)) {
			w->now.ends = true;
			break;
		}
		again = op_wants_own(b, &op, first);
		if (!again)
			TRY(collection_select(b, &op, &again));
		if (!again)
			TRY(do_op(b, &op, &again));
		if (again) {
			w->now.list = before;
			break;
		}
		arena_reset(w->call->arena, w->data.mark);
		if (writing_is_full(w) || b->u.staged.is_there || w->is_staged)
			break;
	}
	return retry_end(&w->retry, tx);
}

/* Before each transaction: writes its first document ahead if that is a large one. */
static enum status
bulk_before(struct writing *w)
{
	struct bulk *b = (struct bulk *)w;
	struct data_list list = w->done.list;
	struct bulk_op op;

	TRY(update_forget_staged(w));
	if (!op_next(b, &list, &op) || op.kind != BULK_INSERT ||
	    !writing_insert_is_large(op.document))
		return STATUS_OK;
	w->item_updates = false;
	collections_close(b, op.ns, true);
	return writing_insert_stage(w, op.document, &list);
}

/* ---- The answer ---- */

/* What did not fit the first batch. */
static enum status
keep_rest(struct bulk *b, struct str rest, struct str ns, int64_t *ret)
{
	struct call *c = b->u.w.call;
	struct buf AUTO(buf_release) rows = BUF_INIT_OF(2 * BULK_REPLY_BYTES, arena_part(c->arena));
	struct cursor *cursor;
	struct bson_builder r;
	struct str doc;

	bson_builder_init(&r, &rows);
	bson_begin_outer_array(&r);
	while (wire_document_cut(&rest, &doc))
		bson_put_document(&r, STR(""), doc);
	bson_end(&r);
	TRY(buf_status(&rows));
	TRY(cursor_begin(c, ns, &cursor));
	return cursor_keep(c, cursor, cursor_set_rows(cursor, &rows), ret);
}

static enum status
put_results(struct bulk *b, int64_t most)
{
	struct call *c = b->u.w.call;
	struct str rest = buf_str(&b->u.w.errors), behind = rest, doc;
	struct str ns = STR("admin." BULK_CURSOR_NAME);
	size_t bytes = 0;
	int64_t id = 0;

	bson_begin_document(c->reply, STR("cursor"));
	bson_begin_array(c->reply, STR("firstBatch"));
	for (int64_t n = 0; n < most && wire_document_cut(&behind, &doc); n++) {
		bytes += doc.len;
		if (n && bytes > BULK_BATCH_BYTES)
			break;
		bson_put_document(c->reply, STR(""), doc);
		rest = behind;
	}
	bson_end(c->reply);
	if (rest.len)
		TRY(keep_rest(b, rest, ns, &id));
	bson_put_int64(c->reply, STR("id"), id);
	bson_put_string(c->reply, STR("ns"), ns);
	bson_end(c->reply);
	return STATUS_OK;
}

static enum status
bulk_answer(struct bulk *b, int64_t most)
{
	const struct progress *done = &b->u.w.done;
	struct bson_builder *r = b->u.w.call->reply;

	TRY(put_results(b, most));
	bson_put_int32(r, STR("nErrors"), (int32_t)done->errors);
	bson_put_int32(r, STR("nInserted"), (int32_t)done->totals.inserted);
	bson_put_int32(r, STR("nMatched"), (int32_t)done->totals.matched);
	bson_put_int32(r, STR("nModified"), (int32_t)done->totals.modified);
	bson_put_int32(r, STR("nUpserted"), (int32_t)done->totals.upserted);
	bson_put_int32(r, STR("nDeleted"), (int32_t)done->totals.deleted);
	retry_put(&b->u.w.retry);
	data_put_concern(b->u.w.call);
	return STATUS_OK;
}

static enum status
batch_size(struct call *c, int64_t *ret)
{
	struct bson_value v;

	*ret = INT64_MAX;
	if (!call_has(c, BULK_CURSOR) ||
	    !bson_find(bson_text(&c->args[BULK_CURSOR].value), STR("batchSize"), &v))
		return STATUS_OK;
	if (!bson_is_number(&v))
		return call_type_mismatch(c, &v, "types '[long, int, decimal, double]'",
					  "bulkWrite.cursor.batchSize");
	if (!bson_to_int64(&v, ret) || *ret < 0)
		return call_fail(c, MONGO_BAD_VALUE,
				 "BSON field 'batchSize' value must be a whole number >= 0");
	return STATUS_OK;
}

enum status
mongo_run_bulk_write(struct call *c)
{
	struct bulk *b = arena_zalloc(c->arena, sizeof(*b));
	enum status status;
	int64_t most;

	if (!b)
		return STATUS_LIMIT;
	TRY(batch_size(c, &most));
	status = bulk_begin(b, c);
	if (status == STATUS_OK)
		status = writing_run(&b->u.w, bulk_page, bulk_before);
	if (b->u.w.data.call)
		collections_close(b, STR(""), false);
	if (status == STATUS_OK)
		status = bulk_answer(b, most);
	writing_end(&b->u.w);
	return status;
}
