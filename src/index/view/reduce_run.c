/* Calling the reduces of design documents, for many accumulators at once. */
#include "index/view/keys.h"
#include "index/view/reduce.h"

/* What the next call is to work on, and where its results go. */
struct calling {
	const struct reduce_run *run;
	const struct view_reduce *reduce;
	bool rereduce;
	struct view_group_input inputs[REDUCE_CALL_GROUPS];
	struct reduce_segment *segments[REDUCE_CALL_GROUPS];
	size_t count;
	size_t bytes;
};

/* A result as it is kept: 'r' and the text, or 'e', name, NUL, reason. */
static enum status
result_keep(struct arena *arena, struct str result, const struct view_error *error, struct str *ret)
{
	struct str name = error->name.len ? error->name : STR("invalid_value");
	size_t len = result.ptr ? 1 + result.len : 2 + name.len + error->reason.len;
	char *at;

	if (result.ptr && !view_text_is_json(result))
		return result_keep(arena, (struct str){ 0 },
				   &(struct view_error){ STR("invalid_value"),
							 STR("\"A reduce returned no JSON.\"") },
				   ret);
	at = arena_bytes(arena, len);
	if (!at)
		return STATUS_LIMIT;
	*ret = str_of(at, len);
	if (result.ptr) {
		*at = 'r';
		memcpy(at + 1, result.ptr, result.len);
		return STATUS_OK;
	}
	*at++ = 'e';
	memcpy(at, name.ptr, name.len);
	at += name.len;
	*at++ = '\0';
	if (error->reason.len)
		memcpy(at, error->reason.ptr, error->reason.len);
	return STATUS_OK;
}

static struct reduce_question
calling_question(const struct calling *c, size_t i)
{
	return (struct reduce_question){ .name = c->reduce->name,
					 .rereduce = c->rereduce,
					 .keys = c->inputs[i].keys,
					 .values = c->inputs[i].values };
}

static void
segment_end(struct reduce_segment *s, struct str partial)
{
	s->partial = partial;
	s->is_partial = true;
	buf_release(&s->keys);
	buf_release(&s->values);
}

/* Removes the questions that the memo has answered, so that only new ones are left. */
static void
calling_recall(struct calling *c)
{
	size_t left = 0;

	for (size_t i = 0; i < c->count; i++) {
		struct reduce_question q = calling_question(c, i);
		struct str answer = reduce_memo_find(c->run->memo, &q);

		if (answer.ptr) {
			segment_end(c->segments[i], answer);
			continue;
		}
		c->inputs[left] = c->inputs[i];
		c->segments[left++] = c->segments[i];
	}
	c->count = left;
}

/* Leaves the questions to reduce_answer(). The segments end, so that the attempt can go on. */
static enum status
calling_ask(struct calling *c)
{
	for (size_t i = 0; i < c->count; i++) {
		struct reduce_question q = calling_question(c, i);

		TRY(reduce_asked_add(c->run->asked, &q));
		segment_end(c->segments[i], STR("rnull"));
	}
	c->count = c->bytes = 0;
	return STATUS_OK;
}

static enum status
calling_flush(struct calling *c)
{
	const struct reduce_run *run = c->run;
	struct view_error *errors;
	struct str *results;

	if (run->memo)
		calling_recall(c);
	if (run->asked)
		return calling_ask(c);
	results = arena_zalloc(run->w->arena, (c->count + 1) * sizeof(*results));
	errors = arena_zalloc(run->w->arena, (c->count + 1) * sizeof(*errors));
	if (!results || !errors)
		return STATUS_LIMIT;
	if (c->count)
		TRY(run->functions->reduce(run->arg, run->design, &c->reduce->name, 1, c->rereduce,
					   c->inputs, c->count, run->w->arena, results, errors,
					   run->error, run->err));
	for (size_t i = 0; i < c->count; i++) {
		struct reduce_question q = calling_question(c, i);
		struct str partial;

		TRY(result_keep(run->w->arena, results[i], &errors[i], &partial));
		if (run->memo)
			TRY(reduce_memo_keep(run->memo, &q, partial));
		segment_end(c->segments[i], partial);
	}
	c->count = c->bytes = 0;
	return STATUS_OK;
}

static enum status
calling_add(struct calling *c, struct reduce_segment *s)
{
	buf_append_byte(&s->values, ']');
	if (!c->rereduce)
		buf_append_byte(&s->keys, ']');
	TRY(buf_status(&s->keys));
	TRY(buf_status(&s->values));
	c->inputs[c->count].keys = c->rereduce ? STR("null") : buf_str(&s->keys);
	c->inputs[c->count].values = buf_str(&s->values);
	c->segments[c->count++] = s;
	c->bytes += s->keys.len + s->values.len;
	if (c->count == REDUCE_CALL_GROUPS || c->bytes > REDUCE_RUN_BYTES)
		return calling_flush(c);
	return STATUS_OK;
}

/* The partial results of an accumulator become one segment, which is to be rereduced. */
static enum status
acc_join(struct calling *c, struct reduce_acc *acc)
{
	struct reduce_segment joined = { 0 };

	for (size_t i = 0; i < acc->segment_count; i++) {
		struct str partial = acc->segments[i].partial;

		if (partial.ptr[0] == 'e' && !acc->failed.ptr)
			acc->failed = partial;
	}
	if (acc->failed.ptr || acc->segment_count == 1)
		return STATUS_OK;
	buf_init(&joined.keys, REDUCE_BUF_BYTES);
	buf_init(&joined.values, REDUCE_BUF_BYTES);
	for (size_t i = 0; i < acc->segment_count; i++) {
		buf_append_byte(&joined.values, i ? ',' : '[');
		buf_append_str(&joined.values, str_skip(acc->segments[i].partial, 1));
	}
	acc->segments[0] = joined;
	acc->segment_count = 1;
	return calling_add(c, &acc->segments[0]);
}

static enum status
calling_all(struct calling *c, struct reduce_acc *accs, size_t count, bool rereduce)
{
	c->rereduce = rereduce;
	for (size_t i = 0; i < count; i++) {
		struct reduce_acc *acc = &accs[i];

		if (acc->reduce->kind != VIEW_REDUCE_FUNCTION)
			continue;
		if (c->count && !str_eq(c->reduce->name, acc->reduce->name))
			TRY(calling_flush(c));
		c->reduce = acc->reduce;
		for (size_t j = 0; !rereduce && j < acc->segment_count; j++)
			if (!acc->segments[j].is_partial)
				TRY(calling_add(c, &acc->segments[j]));
		if (rereduce && acc->segment_count)
			TRY(acc_join(c, acc));
	}
	return c->count ? calling_flush(c) : STATUS_OK;
}

/* After a rereduce the result may be an error. */
static void
accs_take_errors(struct reduce_acc *accs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (accs[i].segment_count == 1 && accs[i].segments[0].partial.len &&
		    accs[i].segments[0].partial.ptr[0] == 'e' && !accs[i].failed.ptr)
			accs[i].failed = accs[i].segments[0].partial;
}

enum status
reduce_run(const struct reduce_run *run, struct reduce_acc *accs, size_t count)
{
	struct calling *c;
	bool any = false;

	for (size_t i = 0; i < count; i++)
		any |= accs[i].reduce->kind == VIEW_REDUCE_FUNCTION && accs[i].segment_count;
	if (!any)
		return STATUS_OK;
	c = arena_zalloc(run->w->arena, sizeof(*c));
	if (!c)
		return STATUS_LIMIT;
	c->run = run;
	TRY(calling_all(c, accs, count, false));
	/* What is rereduced are the answers. */
	if (reduce_run_waits(run))
		return STATUS_OK;
	TRY(calling_all(c, accs, count, true));
	accs_take_errors(accs, count);
	return STATUS_OK;
}

/* ---- Questions of an attempt that has ended ---- */

/* How many of the questions from `at` on one call takes: they are of one reduce. */
static size_t
answer_count(const struct reduce_asked *asked, size_t at)
{
	const struct reduce_question *first = &asked->questions[at];
	size_t bytes = 0, n = 0;

	while (at + n < asked->count && n < REDUCE_CALL_GROUPS && bytes <= REDUCE_RUN_BYTES) {
		const struct reduce_question *q = &first[n];

		if (!str_eq(q->name, first->name) || q->rereduce != first->rereduce)
			break;
		bytes += q->keys.len + q->values.len;
		n++;
	}
	return n;
}

static enum status
answer_call(const struct reduce_run *run, const struct reduce_question *questions, size_t count)
{
	struct arena *arena = run->w->arena;
	struct view_group_input *inputs = arena_alloc(arena, count * sizeof(*inputs));
	struct view_error *errors = arena_zalloc(arena, count * sizeof(*errors));
	struct str *results = arena_zalloc(arena, count * sizeof(*results));
	struct str partial;

	if (!inputs || !errors || !results)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		inputs[i] = (struct view_group_input){ questions[i].keys, questions[i].values };
	TRY(run->functions->reduce(run->arg, run->design, &questions->name, 1, questions->rereduce,
				   inputs, count, arena, results, errors, run->error, run->err));
	for (size_t i = 0; i < count; i++) {
		TRY(result_keep(arena, results[i], &errors[i], &partial));
		TRY(reduce_memo_keep(run->memo, &questions[i], partial));
	}
	return STATUS_OK;
}

enum status
reduce_answer(const struct reduce_run *run)
{
	struct reduce_asked *asked = run->asked;

	for (size_t at = 0, n; at < asked->count; at += n) {
		struct arena_mark mark = arena_mark(run->w->arena);

		n = answer_count(asked, at);
		TRY(answer_call(run, asked->questions + at, n));
		arena_reset(run->w->arena, mark);
	}
	reduce_asked_clear(asked);
	return STATUS_OK;
}
