#include "mql/expr/script.h"

#include <assert.h>

#include "bson/tagged.h"
#include "mql/mql_int.h"

/* ---- Failures ---- */

/* The text that a JSON string is; anything else is shown as it is. */
static struct str
reason_text(struct mql *q, struct str json)
{
	struct bson_value v;
	struct buf out = mql_buf(q, MQL_SCRIPT_BYTES);
	struct str text = json;

	if (bson_tagged_read(json, &out, NULL) == STATUS_OK &&
	    bson_find(buf_str(&out), STR(""), &v) && v.type == BSON_STRING) {
		text = arena_dup(q->arena, bson_text(&v));
		if (!text.ptr)
			text = STR("");
	}
	buf_release(&out);
	return text;
}

enum status
mql_script_fail(struct mql *q, struct str name, struct str reason_json)
{
	struct str reason = reason_text(q, reason_json);

	return mql_fail(q, MQL_SCRIPT_FAILED, "%.*s: %.*s", STR_ARG(name), STR_ARG(reason));
}

/* ---- Compiling ---- */

static enum status
script_check(struct mql *q, int code)
{
	struct err why = { 0 };

	if (!q->scripts)
		return mql_fail(q, MQL_BAD_VALUE, "JavaScript is not allowed in this context");
	if (q->scripts->check(q->scripts, &why) == STATUS_OK)
		return STATUS_OK;
	return mql_fail(q, code, "%s%s",
			code == MQL_SCRIPT_NO_WHERE
				? "no globalScriptEngine in $where parsing :: caused by :: "
				: "Cannot run server-side javascript without the javascript engine "
				  "enabled :: caused by :: ",
			why.text);
}

enum status
mql_script_new(struct mql *q, enum mql_script_kind kind, int code,
	       const struct mql_script_source *sources, size_t count, const struct mql_script **ret)
{
	struct mql_script *s = arena_zalloc(q->arena, sizeof(*s));
	struct buf document = mql_buf(q, BSON_MOST_BYTES);
	struct buf out = mql_buf(q, MQL_SCRIPT_BYTES);
	struct bson_builder b;
	enum status status;

	if (!s)
		return mql_full(q);
	TRY(script_check(q, code));
	s->kind = kind;
	bson_builder_init(&b, &document);
	bson_begin(&b);
	for (size_t i = 0; i < count; i++)
		bson_put_string(&b, str_from_cstr(sources[i].name), sources[i].source);
	bson_end(&b);
	out.failed = buf_status(&document);
	if (out.failed == STATUS_OK)
		bson_tagged_write(&out, &BSON_OF_DOCUMENT(buf_str(&document)), false);
	buf_release(&document);
	status = mql_keep(q, &out, &s->text);
	/* Calls of an accumulator wait for each other, and are made together by itself. */
	q->script_count += kind != MQL_SCRIPT_ACCUMULATE;
	*ret = s;
	return status;
}

/* ---- Values ---- */

enum status
mql_script_text(struct mql *q, const struct bson_value *v, bool ints, struct str *ret)
{
	struct buf out = mql_buf(q, MQL_SCRIPT_BYTES);
	const struct bson_value null = BSON_OF_NULL;

	TRY(step_count_bytes(bson_is_container(v) ? bson_text(v).len : 0));
	bson_tagged_write(&out, mql_is_missing(v) ? &null : v, ints);
	return mql_keep(q, &out, ret);
}

enum status
mql_script_value(struct mql *q, struct str text, struct bson_value *ret)
{
	struct buf out = mql_buf(q, BSON_MOST_BYTES);
	struct err why = { 0 };
	struct str document;
	enum status status = bson_tagged_read(text, &out, &why);

	if (status == STATUS_OK || status == STATUS_LIMIT) {
		out.failed = status;
		TRY(mql_keep(q, &out, &document));
		return bson_find(document, STR(""), ret) ? STATUS_OK : STATUS_CORRUPT;
	}
	buf_release(&out);
	if (status == STATUS_INVALID || status == STATUS_JSON_DEPTH || status == STATUS_JSON_UTF8 ||
	    status == STATUS_JSON_SYNTAX)
		return mql_fail(q, MQL_SCRIPT_FAILED,
				"Invalid BSON returned from JavaScript function :: caused by :: %s",
				why.text);
	return status;
}

/* ---- Calls ---- */

static enum status
result_take(struct mql *q, const struct mql_script_result *r, struct str *ret)
{
	if (r->error_name.len)
		return mql_script_fail(q, r->error_name, r->error_reason);
	*ret = r->text;
	return STATUS_OK;
}

/* The call waits: the evaluation ends here, and is done again when the answer is known. */
static enum status
ahead_wait(struct mql *q, const struct mql_script *s, struct str ask)
{
	struct mql_ahead *a = q->ahead;

	a->ask = arena_dup(a->arena, ask);
	if (!a->ask.ptr)
		return err_set(q->err, STATUS_LIMIT, "the memory of a batch is used up");
	a->script = s;
	return STATUS_CANCELLED;
}

enum status
mql_script_call(const struct mql_script *s, struct mql *q, struct str ask, struct str *ret)
{
	struct mql_ahead *a = q->ahead;
	struct mql_script_result result = { 0 };

	/*
	 * An evaluation that is repeated usually makes the same calls in the same order. But a
	 * number that it draws may lead to another function this time. The known answer is then
	 * one of a different function, and is not taken.
	 */
	assert(!a || a->used <= a->count);
	if (a && a->used < a->count && a->known[a->used].script == s)
		return result_take(q, &a->known[a->used++].result, ret);
	if (a && a->used == a->count && a->count < MQL_AHEAD_CALLS)
		return ahead_wait(q, s, ask);
	if (!q->scripts)
		return mql_fail(q, MQL_BAD_VALUE, "JavaScript is not allowed in this context");
	TRY(q->scripts->run(q->scripts, q, s, &ask, 1, &result));
	return result_take(q, &result, ret);
}

enum status
mql_script_where(const struct mql_script *s, struct mql *q, struct str document, bool *ret)
{
	struct str ask, text;

	TRY(mql_script_text(q, &BSON_OF_DOCUMENT(document), false, &ask));
	TRY(mql_script_call(s, q, ask, &text));
	*ret = str_eq(text, STR("true"));
	return STATUS_OK;
}

/* ---- Batches ---- */

/* Keeps an answer for the next evaluation of an item. */
static enum status
ahead_keep(struct mql_ahead *a, const struct mql_script_result *result)
{
	struct mql_script_result *kept = &a->known[a->count].result;

	*kept = (struct mql_script_result){ .text = arena_dup(a->arena, result->text),
					    .error_name = arena_dup(a->arena, result->error_name),
					    .error_reason = arena_dup(a->arena,
								      result->error_reason) };
	if (!kept->text.ptr || !kept->error_name.ptr || !kept->error_reason.ptr)
		return STATUS_LIMIT;
	a->known[a->count++].script = a->script;
	a->script = NULL;
	return STATUS_OK;
}

/*
 * Makes the calls that items from `from` on wait for, if they are of the same script as its own.
 * `*ret_calls`: how many these are, after a failure, too.
 */
static enum status
ahead_ask(struct mql *q, struct mql_ahead *aheads, size_t from, size_t count, size_t *ret_calls)
{
	const struct mql_script *s = aheads[from].script;
	struct arena_mark mark = arena_mark(q->arena);
	struct mql_script_result *results = arena_zalloc(q->arena,
							 (count - from) * sizeof(*results));
	struct str *asks = arena_alloc(q->arena, (count - from) * sizeof(*asks));
	size_t n = 0;

	if (!results || !asks)
		return mql_full(q);
	for (size_t i = from; i < count; i++)
		if (aheads[i].script == s)
			asks[n++] = aheads[i].ask;
	*ret_calls = n;
	TRY(q->scripts->run(q->scripts, q, s, asks, n, results));
	for (size_t i = from, at = 0; i < count; i++)
		if (aheads[i].script == s && ahead_keep(&aheads[i], &results[at++]) != STATUS_OK)
			return err_set(q->err, STATUS_LIMIT, "the memory of a batch is used up");
	arena_reset(q->arena, mark);
	return STATUS_OK;
}

/* A run of mql_ahead_run(). */
struct ahead_run {
	struct mql_ahead *aheads;
	size_t count; /* of items; becomes less where one fails */
	enum status (*eval)(void *arg, struct mql *q, size_t i);
	void *arg;
	enum status failed; /* of the item behind the last one */
};

/* Evaluates the items from `from` on whose calls are known. */
static void
ahead_eval(struct ahead_run *r, struct mql *q, size_t from)
{
	for (size_t i = from; i < r->count; i++) {
		struct mql_ahead *a = &r->aheads[i];
		enum status status;

		if (a->done || a->script)
			continue;
		a->used = 0;
		q->ahead = a;
		status = r->eval(r->arg, q, i);
		q->ahead = NULL;
		/* One that waits for a call has not failed. */
		if (a->script)
			continue;
		a->done = true;
		if (status != STATUS_OK) {
			r->failed = status;
			r->count = i;
		}
	}
}

/*
 * True if calls have failed together because of what one of them does: it loops, or takes too much
 * memory. Which one that is shows when they are made one by one. The failure is forgotten then.
 */
static bool
failed_running(struct mql *q, enum status status)
{
	if (status != STATUS_INVALID ||
	    (q->code != MQL_SCRIPT_INTERRUPTED && q->code != MQL_SCRIPT_FAILED))
		return false;
	q->code = 0;
	if (q->err)
		*q->err = (struct err){ 0 };
	return true;
}

enum status
mql_ahead_run(struct mql *q, struct mql_ahead *aheads, size_t count,
	      enum status (*eval)(void *arg, struct mql *q, size_t i), void *arg, size_t *ret_done)
{
	struct ahead_run r = { .aheads = aheads, .count = count, .eval = eval, .arg = arg };
	size_t first = 0;
	bool alone = false;

	ahead_eval(&r, q, 0);
	while (first < r.count) {
		enum status status;
		size_t calls = 0;

		if (aheads[first].done) {
			first++;
			continue;
		}
		status = ahead_ask(q, aheads, first, alone ? first + 1 : r.count, &calls);
		if (calls > 1 && failed_running(q, status)) {
			alone = true;
			continue;
		}
		if (status != STATUS_OK) {
			*ret_done = first;
			return status;
		}
		ahead_eval(&r, q, first);
	}
	*ret_done = r.count;
	return r.failed;
}

/* ---- Batches ---- */

enum status
mql_batch_init(struct mql_batch *b, size_t bytes, struct budget_part *part)
{
	*b = (struct mql_batch){ .arena = arena_new(bytes), .want = 1 };
	if (!b->arena)
		return STATUS_NOMEM;
	arena_set_part(b->arena, part);
	return STATUS_OK;
}

void
mql_batch_fini(struct mql_batch *b)
{
	arena_free(b->arena);
	b->arena = NULL;
}

void *
mql_batch_begin(struct mql_batch *b, size_t item_bytes)
{
	void *items;

	arena_clear(b->arena);
	b->count = b->at = 0;
	items = arena_zalloc(b->arena, b->want * item_bytes);
	b->aheads = arena_zalloc(b->arena, b->want * sizeof(*b->aheads));
	if (!items || !b->aheads)
		return NULL;
	for (size_t i = 0; i < b->want; i++)
		b->aheads[i].arena = b->arena;
	return items;
}

void
mql_batch_read(struct mql_batch *b, enum status (*read)(void *arg, size_t *ret_bytes), void *arg)
{
	size_t bytes = 0;

	while (b->count < b->want && bytes < MQL_AHEAD_BYTES) {
		size_t more;
		enum status status = read(arg, &more);

		b->ended = status == STATUS_NOT_FOUND;
		b->failed = b->ended ? STATUS_OK : status;
		if (status != STATUS_OK)
			return;
		bytes += more;
		b->count++;
	}
	b->failed = STATUS_OK;
}

/* A batch that took much memory, by what functions have answered, is followed by a smaller one. */
static void
batch_choose_want(struct mql_batch *b, size_t given)
{
	size_t used = arena_used_bytes(b->arena);

	if (used > 2 * MQL_AHEAD_MEMORY)
		b->want = given > 4 ? given / 4 : 1;
	else if (used <= MQL_AHEAD_MEMORY)
		b->want *= 4;
	if (b->want > MQL_AHEAD_DOCUMENTS)
		b->want = MQL_AHEAD_DOCUMENTS;
}

/* Keeps what has failed. */
static void
batch_note(struct mql_batch *b, struct mql *q)
{
	b->code = q->code;
	q->code = 0;
	if (b->failed == STATUS_OK || !q->err)
		return;
	b->err = *q->err;
	*q->err = (struct err){ 0 };
}

void
mql_batch_run(struct mql_batch *b, struct mql *q,
	      enum status (*eval)(void *arg, struct mql *q, size_t i), void *arg)
{
	enum status read = b->failed;
	size_t given = b->count;

	batch_note(b, q);
	/* What the store has failed is told at once. */
	if (read == STATUS_OK || read == STATUS_INVALID || read == STATUS_UNSUPPORTED) {
		b->failed = mql_ahead_run(q, b->aheads, b->count, eval, arg, &b->count);
		if (b->failed != STATUS_OK)
			batch_note(b, q);
		else
			b->failed = read;
	} else {
		b->count = 0;
	}
	batch_choose_want(b, given);
}

enum status
mql_batch_failure(const struct mql_batch *b, struct mql *q)
{
	q->code = b->code;
	if (q->err)
		*q->err = b->err;
	return b->failed;
}
