/* update and delete: statements that change the documents that a filter finds. */
#include "door/mongo/cmd/update.h"

#include "door/mongo/cmd/commands.h"

const struct arg args_delete[] = WRITE_ARGS("deletes");
const struct arg args_update[] = WRITE_ARGS("updates");

/* ---- Statements ---- */

static enum status
read_limit(struct call *c, const struct bson_value *v, struct statement *s)
{
	int64_t n = -1;

	if (!bson_to_int64(v, &n) || n < 0 || n > 1)
		return call_fail(c, MONGO_FAILED_TO_PARSE,
				 "The limit field in delete objects must be 0 or 1. Got %lld",
				 (long long)n);
	s->many = n == 0;
	return STATUS_OK;
}

static enum status
read_statement(struct call *c, struct str statement, bool deletes, struct statement *ret)
{
	enum statement_kind kind = deletes ? STATEMENT_DELETE : STATEMENT_UPDATE;
	struct bson_element e;
	struct bson_iter i;

	*ret = (struct statement){ 0 };
	for (bson_iter_begin(&i, statement); bson_iter_read(&i, &e);) {
		bool known;

		TRY(statement_read_member(c, kind, &e, ret, &known));
		if (!known && deletes && str_eq(e.name, STR("limit")))
			TRY(read_limit(c, &e.value, ret));
		else if (!known)
			return call_fail(
				c, MONGO_FIELD_UNKNOWN, "BSON field '%s.%.*s' is an unknown field.",
				deletes ? "delete.deletes" : "update.updates", STR_ARG(e.name));
	}
	if (!ret->ask.filter.ptr)
		return statement_missing(c, "q");
	if (deletes && !bson_find(statement, STR("limit"), NULL))
		return statement_missing(c, "limit");
	if (!deletes && !ret->ask.update)
		return statement_missing(c, "u");
	return STATUS_OK;
}

/* ---- Doing them ---- */

/* What is stored of an update: {m: 1} if it has changed a document, {u: id} if it has added one. */
static enum status
note_update(struct writing *w, const struct bson_value *upserted)
{
	struct buf AUTO(buf_release) made = BUF_SHORT(2 * PLAIN_ID_VALUE_BYTES);
	struct bson_builder b;

	if (!w->retry.on)
		return STATUS_OK;
	bson_open(&b, &made);
	if (upserted)
		bson_put(&b, STR("u"), upserted);
	else
		bson_put_int32(&b, STR("m"), 1);
	bson_end(&b);
	TRY(buf_status(&made));
	return retry_note(&w->retry, w->now.index, buf_str(&made));
}

void
update_count_known(struct writing *w, struct str known)
{
	struct bson_value v;

	w->now.matched++;
	if (bson_find(known, STR("m"), NULL))
		w->now.modified++;
	if (bson_find(known, STR("u"), &v))
		writing_note_upserted(w, &v);
}

static enum status
check_number(struct writing *w, const struct statement *s)
{
	if (!w->retry.on || !s->many)
		return STATUS_OK;
	return call_fail(w->call, MONGO_INVALID_OPTIONS,
			 s->ask.update ? "Cannot use retryable writes with multi=true"
				       : "Cannot use (or request) retryable writes with limit=0");
}

/* Changes a document that was found. */
static enum status
do_document(struct writing *w, struct change *ch, struct str doc, int64_t position)
{
	bool changed = true;

	if (ch->ask.update)
		TRY(change_update(ch, doc, position, &doc, &changed));
	else
		TRY(change_delete(ch, doc));
	w->now.matched++;
	w->now.modified += changed;
	w->docs += changed;
	if (!changed)
		return STATUS_OK;
	return ch->ask.update ? note_update(w, NULL) : retry_note(&w->retry, w->now.index, STR(""));
}

/*
 * Goes through the documents until the end, or until the transaction is full: then `*ret_more`, and
 * the next one goes on behind the last document.
 */
static enum status
do_documents(struct updating *u, struct change *ch, bool many, bool *ret_more)
{
	struct writing *w = &u->w;
	enum status status;
	int64_t position;
	struct str doc;

	while ((status = change_next(ch, &doc, &position)) == STATUS_OK) {
		if (doc.len) {
			w->now.found = true;
			TRY(do_document(w, ch, doc, position));
			if (!many)
				return STATUS_OK;
		}
		if (writing_is_full(w) || (doc.len && u->staged.is_there)) {
			*ret_more = true;
			buf_set(&w->place_now, change_place(ch));
			return buf_status(&w->place_now);
		}
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
do_upsert(struct writing *w, struct change *ch)
{
	struct bson_value id = BSON_OF_NULL;
	enum status status;
	struct str doc;

	status = change_upsert(ch, &doc);
	if (status == STATUS_OK || status == STATUS_EXISTS)
		(void)bson_find(doc, STR("_id"), &id);
	if (status == STATUS_EXISTS)
		return writing_note_duplicate(w, &id);
	TRY(status);
	writing_note_upserted(w, &id);
	w->now.matched++;
	w->docs++;
	return note_update(w, &id);
}

/* Changes the first document in the order that the statement asks for. */
static enum status
do_first(struct updating *u, struct change *ch)
{
	struct buf AUTO(buf_release)
		best = BUF_INIT_OF(BSON_MOST_BYTES, arena_part(u->w.call->arena));
	int64_t position = -1;

	TRY(change_find_first(ch, &best, &position));
	if (!best.len)
		return STATUS_OK;
	u->w.now.found = true;
	return do_document(&u->w, ch, buf_str(&best), position);
}

static enum status
check_kind(struct call *c, const struct statement *s, const struct change *ch)
{
	if (s->many && ch->update && mql_update_is_replacement(ch->update))
		return call_fail(c, MONGO_FAILED_TO_PARSE,
				 "multi update is not supported for replacement-style update");
	if (s->many && s->sort.len)
		return call_fail(c, MONGO_FAILED_TO_PARSE, "Cannot specify sort with multi=true");
	return STATUS_OK;
}

enum status
update_do(struct updating *u, struct statement *s, bool *ret_more, bool *ret_alone)
{
	struct writing *w = &u->w;
	struct call *c = w->call;
	struct change ch = { 0 };
	enum status status;
	struct str known;

	TRY(check_number(w, s));
	s->ask.let = call_text(c, WRITE_LET);
	s->ask.many = s->many;
	s->ask.again = w->tries > 1;
	s->ask.sort = s->sort;
	s->ask.bare = !s->sort.len;
	if (retry_find(&w->retry, w->now.index, &known)) {
		update_count_known(w, known);
		return STATUS_OK;
	}
	/* One that may be too much for a transaction has all of one, so that it is atomic. */
	*ret_alone = s->many && w->docs;
	if (*ret_alone)
		return STATUS_OK;
	status = change_begin(&ch, c, &w->data, &s->ask, &u->staged, buf_str(&w->place_now));
	if (status == STATUS_OK)
		status = check_kind(c, s, &ch);
	if (status == STATUS_OK)
		status = s->sort.len ? do_first(u, &ch) : do_documents(u, &ch, s->many, ret_more);
	if (status == STATUS_OK && !w->now.found && !*ret_more && s->ask.upsert)
		status = do_upsert(w, &ch);
	change_end(&ch);
	return status;
}

static enum status
do_statement(struct updating *u, struct str bytes, bool *ret_more, bool *ret_alone)
{
	struct call *c = u->w.call;
	struct statement s;

	TRY(read_statement(c, bytes, strcmp(c->command->name, "delete") == 0, &s));
	return update_do(u, &s, ret_more, ret_alone);
}

static enum status
update_page(struct kv_tx *tx, void *arg)
{
	struct updating *u = arg;
	struct writing *w = &u->w;

	TRY(writing_attempt(w, tx));
	while (!w->now.ends) {
		struct data_list before = w->now.list;
		bool more = false, alone = false;
		struct str statement;
		enum status status;

		if (!data_list_next(&w->now.list, &statement)) {
			w->now.ends = true;
			break;
		}
		writing_count_from(w);
		status = do_statement(u, statement, &more, &alone);
		if (status != STATUS_OK)
			writing_uncount(w);
		TRY(writing_settle(w, status));
		if (more || alone) {
			w->now.list = before;
			w->now.resumes = more;
			break;
		}
		arena_reset(w->call->arena, w->data.mark);
		buf_clear(&w->place_now);
		w->now.resumes = w->now.found = false;
		w->now.index++;
		if (writing_is_full(w) || u->staged.is_there)
			break;
	}
	return retry_end(&w->retry, tx);
}

enum status
update_forget_staged(struct writing *w)
{
	struct updating *u = (struct updating *)w;

	u->staged.is_there = false;
	return STATUS_OK;
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
update_check_pipeline(struct call *c, const struct bson_value *update)
{
	struct mql q;

	if (update->type != BSON_ARRAY)
		return STATUS_OK;
	data_mql(c, c->arena, NULL, &q);
	return data_mql_status(c, &q, mql_pipeline_check_names(&q, bson_text(update)));
}

/*
 * A statement that lacks a member, or has a wrong one, fails the whole command before anything is
 * done, as does a pipeline with an unknown stage.
 */
static enum status
check_statements(struct call *c, bool deletes)
{
	struct statement s;
	struct data_list list;
	struct str one;

	for (data_list_begin(&list, &c->args[WRITE_STATEMENTS]); data_list_next(&list, &one);) {
		TRY(read_statement(c, one, deletes, &s));
		if (s.ask.update)
			TRY(update_check_pipeline(c, s.ask.update));
	}
	return STATUS_OK;
}

static enum status
run_statements(struct call *c, bool deletes)
{
	struct updating u = { 0 };
	enum status status = writing_begin(&u.w, c, !deletes && may_upsert(c));

	if (status == STATUS_OK)
		status = check_statements(c, deletes);
	if (status == STATUS_OK)
		status = writing_run(&u.w, update_page, update_forget_staged);
	return writing_answer(&u.w, status);
}

enum status
mongo_run_delete(struct call *c)
{
	return run_statements(c, true);
}

enum status
mongo_run_update(struct call *c)
{
	return run_statements(c, false);
}
