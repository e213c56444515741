/* findAndModify: one document is changed, and it is answered as it was or as it is now. */
#include "door/mongo/cmd/change.h"
#include "door/mongo/cmd/commands.h"
#include "door/mongo/cmd/validate.h"
#include "door/mongo/index/index.h"
#include "door/mongo/txn/retry.h"
#include "door/mongo/txn/run.h"
#include "mql/stage/project.h"

#define ARGS_FIND_AND_MODIFY(ARG)                                                                  \
	ARG(MODIFY_QUERY, "query", ARG_OBJECT)                                                     \
	ARG(MODIFY_SORT, "sort", ARG_OBJECT)                                                       \
	ARG(MODIFY_REMOVE, "remove", ARG_BOOL)                                                     \
	ARG(MODIFY_UPDATE, "update", ARG_OBJECT | ARG_ARRAY)                                       \
	ARG(MODIFY_NEW, "new", ARG_BOOL)                                                           \
	ARG(MODIFY_FIELDS, "fields", ARG_OBJECT)                                                   \
	ARG(MODIFY_UPSERT, "upsert", ARG_BOOL)                                                     \
	ARG(MODIFY_BYPASS, "bypassDocumentValidation", ARG_BOOL)                                   \
	ARG(MODIFY_FILTERS, "arrayFilters", ARG_ARRAY)                                             \
	ARG(MODIFY_HINT, "hint", ARG_OBJECT | ARG_STRING)                                          \
	ARG(MODIFY_COLLATION, "collation", ARG_OBJECT)                                             \
	ARG(MODIFY_LET, "let", ARG_OBJECT)
ARGS_DEFINE(args_find_and_modify, ARGS_FIND_AND_MODIFY);

struct modify {
	struct call *call;
	struct data data;
	struct change_ask ask;
	struct change_staged staged;
	struct retry retry;
	bool remove;
	bool wants_new;
	struct buf best;  /* the document that is changed */
	struct buf reply; /* a document: the answer */
};

static enum status
modify_check(struct call *c, const struct modify *m)
{
	bool update = call_has(c, MODIFY_UPDATE);

	if (m->remove && update)
		return call_fail(c, MONGO_FAILED_TO_PARSE,
				 "Cannot specify both an update and remove=true");
	if (!m->remove && !update)
		return call_fail(c, MONGO_FAILED_TO_PARSE,
				 "Either an update or remove=true must be specified");
	if (m->remove && m->ask.upsert)
		return call_fail(c, MONGO_FAILED_TO_PARSE,
				 "Cannot specify both upsert=true and remove=true");
	if (m->remove && m->wants_new)
		return call_fail(c, MONGO_FAILED_TO_PARSE,
				 "Cannot specify both new=true and remove=true; 'remove' always "
				 "returns the deleted document");
	return STATUS_OK;
}

static enum status
modify_read(struct call *c, struct modify *m)
{
	struct change_ask *ask = &m->ask;
	struct bson_value *by;
	int64_t n;

	m->remove = call_bool(c, MODIFY_REMOVE, false);
	m->wants_new = call_bool(c, MODIFY_NEW, false);
	ask->upsert = call_bool(c, MODIFY_UPSERT, false);
	TRY(modify_check(c, m));
	ask->filter = call_has(c, MODIFY_QUERY) ? call_text(c, MODIFY_QUERY) : BSON_EMPTY;
	if (call_has(c, MODIFY_UPDATE))
		ask->update = &c->args[MODIFY_UPDATE].value;
	if (call_has(c, MODIFY_FILTERS))
		ask->array_filters = &c->args[MODIFY_FILTERS].value;
	if (call_has(c, MODIFY_HINT))
		ask->hint = &c->args[MODIFY_HINT].value;
	ask->collation = data_choose_collation(call_text(c, MODIFY_COLLATION), STR(""));
	ask->let = call_text(c, MODIFY_LET);
	if (!call_has(c, MODIFY_SORT) || bson_is_empty(call_text(c, MODIFY_SORT)))
		return STATUS_OK;
	by = arena_alloc(c->arena, sizeof(*by));
	if (!by)
		return STATUS_LIMIT;
	ask->sort = call_text(c, MODIFY_SORT);
	if (bson_count(ask->sort) == 1 && bson_find(ask->sort, STR("_id"), by) &&
	    bson_to_int64(by, &n) && (n == 1 || n == -1) && !ask->collation.len &&
	    (!ask->hint || plan_hint_is_id(ask->hint))) {
		ask->order = (int)n;
		ask->sort = (struct str){ 0 };
	}
	return STATUS_OK;
}

/* ---- Changing it ---- */

static enum status
modify_project(struct modify *m, struct change *ch, struct str doc, int64_t position,
	       struct str *ret)
{
	struct call *c = m->call;
	struct str fields = call_text(c, MODIFY_FIELDS);
	struct mql_projection *p;

	*ret = doc;
	if (!fields.len || bson_is_empty(fields))
		return STATUS_OK;
	TRY(data_mql_status(c, &ch->mql,
			    mql_projection_compile(&ch->mql, fields, ch->match, ch->scope, &p)));
	return data_mql_status(c, &ch->mql,
			       mql_projection_run(p, &ch->mql, doc, position, ch->bound, ret));
}

/* `value`: ptr NULL for null. `upserted`: NULL if no document was added. */
static enum status
modify_answer(struct modify *m, bool found, const struct bson_value *upserted, struct str value)
{
	struct bson_builder b;

	buf_clear(&m->reply);
	bson_open(&b, &m->reply);
	bson_begin_document(&b, STR("lastErrorObject"));
	bson_put_int32(&b, STR("n"), found || upserted);
	if (!m->remove)
		bson_put_bool(&b, STR("updatedExisting"), found);
	if (upserted)
		bson_put(&b, STR("upserted"), upserted);
	bson_end(&b);
	if (value.ptr)
		bson_put_document(&b, STR("value"), value);
	else
		bson_put_null(&b, STR("value"));
	bson_end(&b);
	return buf_status(&m->reply);
}

static enum status
modify_upsert(struct modify *m, struct change *ch)
{
	struct call *c = m->call;
	struct bson_value id = BSON_OF_NULL;
	struct str doc, value = { 0 };
	enum status status = change_upsert(ch, &doc);

	if (status == STATUS_OK || status == STATUS_EXISTS)
		(void)bson_find(doc, STR("_id"), &id);
	if (status == STATUS_EXISTS)
		return index_fail_id(c, m->data.ns, &id);
	TRY(status);
	if (m->wants_new)
		TRY(modify_project(m, ch, doc, -1, &value));
	return modify_answer(m, false, &id, value);
}

static enum status
modify_found(struct modify *m, struct change *ch, int64_t position)
{
	struct str old = buf_str(&m->best), new = old, value;
	bool changed;

	if (m->remove)
		TRY(change_delete(ch, old));
	else
		TRY(change_update(ch, old, position, &new, &changed));
	TRY(modify_project(m, ch, m->wants_new ? new : old, position, &value));
	return modify_answer(m, true, NULL, value);
}

static enum status
modify_do(struct modify *m, struct change *ch)
{
	int64_t position = -1;

	TRY(change_find_first(ch, &m->best, &position));
	if (m->best.len)
		TRY(modify_found(m, ch, position));
	else if (m->ask.upsert)
		TRY(modify_upsert(m, ch));
	else
		return modify_answer(m, false, NULL, (struct str){ 0 });
	return retry_note(&m->retry, 0, buf_str(&m->reply));
}

static enum status
modify_body(struct kv_tx *tx, void *arg)
{
	struct modify *m = arg;
	struct change ch = { 0 };
	enum status status;
	struct str known;

	TRY(data_begin(&m->data, tx));
	TRY(retry_begin(&m->retry, tx));
	if (retry_find(&m->retry, 0, &known)) {
		buf_set(&m->reply, known);
		TRY(buf_status(&m->reply));
		return retry_end(&m->retry, tx);
	}
	status = change_begin(&ch, m->call, &m->data, &m->ask, &m->staged, STR(""));
	m->ask.again = true;
	if (status == STATUS_OK)
		status = modify_do(m, &ch);
	change_end(&ch);
	if (!m->call->code && m->data.plain.refused.def &&
	    (status == STATUS_DUPLICATE || status == STATUS_UNSUPPORTED))
		return index_fail_command(m->call, m->data.ns, &m->data.plain.refused, status);
	return status == STATUS_OK ? retry_end(&m->retry, tx) : status;
}

static enum status
modify_run(struct call *c, struct modify *m)
{
	struct str ns;

	TRY(data_check_concern(c));
	TRY(validate_check_bypass(c, c->db));
	TRY(modify_read(c, m));
	TRY(retry_init(&m->retry, c));
	TRY(data_ns(c, &ns));
	data_init(&m->data, c, ns, m->ask.upsert);
	TRY(call_run(c, modify_body, m));
	retry_keep(&m->retry);
	bson_put_elements(c->reply, buf_str(&m->reply));
	retry_put(&m->retry);
	data_put_concern(c);
	return STATUS_OK;
}

enum status
mongo_run_find_and_modify(struct call *c)
{
	struct modify m = { .call = c,
			    .best = BUF_INIT_OF(BSON_MOST_BYTES, arena_part(c->arena)),
			    .reply = BUF_INIT_OF(2 * BSON_MOST_BYTES, arena_part(c->arena)) };
	enum status status = modify_run(c, &m);

	data_fini(&m.data);
	retry_fini(&m.retry);
	buf_release(&m.best);
	buf_release(&m.reply);
	return status;
}
