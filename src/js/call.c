/* The calls of js.h: a request out of arguments, and results out of an answer. */
#include <assert.h>

#include "js/bounds.h"
#include "js/pool.h"

enum {
	/*
	 * What one request carries of a batch at most, unless a single element has more. Longer
	 * batches are sent in parts, so that neither side holds all of it.
	 */
	REQUEST_BYTES = 4 * 1024 * 1024,
	/*
	 * The most workers lost so far that one batch may lose. Each may have run for as long as a
	 * document may take.
	 */
	LOST_WORKERS_MOST = 8,
};

/* What a batch is made of. */
struct elements {
	size_t count;
	void (*put)(struct buf *out, const void *all, size_t i);
	const void *all;
};

/* ---- Requests ---- */

/* Begins a request: NULL when out of memory. The context is filled in by the worker's owner. */
static struct js_run *
request_begin(const struct js_call *call, enum wire_kind kind, size_t functions)
{
	const struct answer_shape shape = { .kind = kind, .functions = functions };
	struct js_run *run = js_run_new(call, &shape);

	if (!run)
		return NULL;
	(void)wire_begin(&run->request, kind, 0);
	wire_put_u64(&run->request, 0);
	return run;
}

static void
put_texts(struct buf *out, const struct str *texts, size_t count)
{
	assert(count <= JS_FUNCTIONS_MOST);
	wire_put_u32(out, (uint32_t)count);
	for (size_t i = 0; i < count; i++)
		wire_put_text(out, texts[i]);
}

/* Puts elements from `from` up to `to` into a request: as many as fit, but at least one. */
static void
put_elements(struct js_run *run, const struct elements *e, size_t from, size_t to)
{
	struct buf *out = &run->request;
	size_t at = out->len;
	size_t n = 0;

	wire_put_u32(out, 0);
	while (from + n < to && n < WIRE_BATCH_MOST && (n == 0 || out->len < REQUEST_BYTES)) {
		e->put(out, e->all, from + n);
		n++;
	}
	wire_patch_u32(out, at, (uint32_t)n);
	run->shape.elements = n;
}

/* The error of a function, or that the server made of it, in the call and in `err`. */
static enum status
report_failure(struct js_call *call, const struct js_run *run, struct err *err)
{
	call->error.name = arena_dup(call->arena, run->error_name);
	call->error.reason = arena_dup(call->arena, run->error_reason);
	if (!call->error.name.ptr || !call->error.reason.ptr)
		return err_set(err, STATUS_LIMIT, "no memory for the error of a function");
	return err_set(err, STATUS_FUNCTION, "%.*s: %.*s", STR_ARG(call->error.name),
		       STR_ARG(call->error.reason));
}

/* Completes the request and has it done. After STATUS_OK `(*run)->answer` is good. */
static enum status
request_run(struct js_call *call, struct js_run **run, struct err *err)
{
	enum status status;

	wire_end(&(*run)->request, 0);
	status = buf_status(&(*run)->request);
	if (status == STATUS_LIMIT)
		return err_set(err, status, "the call of a function passes %d bytes",
			       WIRE_PAYLOAD_BYTES);
	if (status != STATUS_OK)
		return err_set(err, status, "out of memory");
	status = js_pool_run(call, run, err);
	return status == STATUS_FUNCTION ? report_failure(call, *run, err) : status;
}

/* A text of an answer, in the arena. */
static enum status
keep_text(const struct js_call *call, struct wire_reader *r, struct str *ret, struct err *err)
{
	*ret = arena_dup(call->arena, wire_text(r));
	if (!ret->ptr)
		return err_set(err, STATUS_LIMIT, "no memory for what a function has answered");
	return STATUS_OK;
}

/*
 * Has a batch done to its end, request by request. `begin` makes a request up to its elements;
 * `take` reads the results of the next element.
 */
struct batch {
	struct js_call *call;
	struct elements elements;
	struct js_run *(*begin)(const struct batch *b);
	enum status (*take)(const struct batch *b, struct wire_reader *r, size_t i,
			    struct err *err);
	/*
	 * Notes that this element made a worker end, for the reason in call->error. NULL: a lost
	 * worker fails the whole batch.
	 */
	enum status (*lost)(const struct batch *b, size_t i);
	const void *args; /* of begin() */
	void *results;    /* the results that take() and lost() fill */
};

/* The progress of a batch. */
struct batch_at {
	size_t from;
	size_t alone_to; /* elements up to here are sent one by one */
	unsigned lost;   /* workers */
};

static enum status
batch_take_answer(const struct batch *b, const struct js_run *run, size_t *from, struct err *err)
{
	struct wire_reader r = { .rest = buf_str(&run->answer) };
	uint32_t done = wire_u32(&r);

	for (uint32_t i = 0; i < done; i++)
		TRY(b->take(b, &r, *from + i, err));
	assert(!r.bad);
	*from += done;
	return STATUS_OK;
}

/*
 * Called when a request with the elements from at->from on has lost a worker. Arranges for these
 * elements to be sent one by one, which shows which of them did it.
 */
static enum status
batch_lose_worker(const struct batch *b, struct batch_at *at, size_t sent)
{
	if (!b->lost || b->elements.count == 1 || !str_eq(b->call->error.name, STR(JS_LOST)) ||
	    ++at->lost > LOST_WORKERS_MOST)
		return STATUS_FUNCTION;
	if (sent > 1) {
		at->alone_to = at->from + sent;
		return STATUS_OK;
	}
	TRY(b->lost(b, at->from));
	at->from++;
	return STATUS_OK;
}

static enum status
batch_run(const struct batch *b, struct err *err)
{
	struct batch_at at = { 0 };

	while (at.from < b->elements.count) {
		bool alone = at.from < at.alone_to;
		struct js_run *run = b->begin(b);
		enum status status;
		size_t sent;

		if (!run)
			return err_set(err, STATUS_NOMEM, "out of memory");
		put_elements(run, &b->elements, at.from, alone ? at.from + 1 : b->elements.count);
		sent = run->shape.elements;
		status = request_run(b->call, &run, err);
		if (status == STATUS_OK)
			status = batch_take_answer(b, run, &at.from, err);
		else if (status == STATUS_FUNCTION)
			status = batch_lose_worker(b, &at, sent);
		js_run_free(run);
		if (status != STATUS_OK)
			return status;
	}
	return STATUS_OK;
}

static void
put_text_element(struct buf *out, const void *all, size_t i)
{
	const struct str *texts = all;

	wire_put_text(out, texts[i]);
}

/* ---- Maps ---- */

enum status
js_map(struct js_call *call, const struct str *views, size_t view_count, const struct str *docs,
       size_t doc_count, struct js_mapped *ret, struct err *err)
{
	const struct elements elements = { doc_count, put_text_element, docs };
	struct js_run *run = request_begin(call, WIRE_MAP, view_count);
	enum status status;

	if (!run)
		return err_set(err, STATUS_NOMEM, "out of memory");
	put_texts(&run->request, views, view_count);
	put_elements(run, &elements, 0, doc_count);
	status = request_run(call, &run, err);
	if (status == STATUS_OK) {
		struct wire_reader r = { .rest = buf_str(&run->answer) };

		*ret = (struct js_mapped){ .bytes = run->answer, .done = wire_u32(&r) };
		ret->at = sizeof(uint32_t);
		run->answer = (struct buf){ 0 };
	}
	js_run_free(run);
	return status;
}

void
js_mapped_release(struct js_mapped *m)
{
	buf_release(&m->bytes);
}

static struct wire_reader
mapped_reader(const struct js_mapped *m)
{
	return (struct wire_reader){ .rest = str_skip(buf_str(&m->bytes), m->at) };
}

static void
mapped_read_to(struct js_mapped *m, const struct wire_reader *r)
{
	assert(!r->bad); /* the answer was checked when it came */
	m->at = m->bytes.len - r->rest.len;
}

bool
js_mapped_next(struct js_mapped *m, struct str *ret_reason)
{
	struct str key;
	struct str value;
	struct wire_reader r;
	uint32_t rows;

	while (js_mapped_row(m, &key, &value))
		;
	r = mapped_reader(m);
	rows = wire_u32(&r);
	if (rows == (uint32_t)WIRE_FAILED)
		*ret_reason = wire_text(&r);
	else
		m->rows = rows;
	mapped_read_to(m, &r);
	return rows != (uint32_t)WIRE_FAILED;
}

bool
js_mapped_row(struct js_mapped *m, struct str *ret_key, struct str *ret_value)
{
	struct wire_reader r = mapped_reader(m);

	if (m->rows == 0)
		return false;
	m->rows--;
	*ret_key = wire_text(&r);
	*ret_value = wire_text(&r);
	mapped_read_to(m, &r);
	return true;
}

/* ---- Reduces ---- */

struct reduce_args {
	const struct str *views;
	size_t view_count;
	bool rereduce;
	enum js_reduce_limit limit;
};

struct reduce_results {
	struct str *results;
	struct js_error *errors;
	size_t view_count;
};

static void
put_group(struct buf *out, const void *all, size_t i)
{
	const struct js_group *groups = all;

	wire_put_text(out, groups[i].keys);
	wire_put_text(out, groups[i].values);
}

static struct js_run *
reduce_begin(const struct batch *b)
{
	static const char *const limits[] = { "", "log", "true" };
	const struct reduce_args *args = b->args;
	struct js_run *run = request_begin(b->call, WIRE_REDUCE, args->view_count);

	if (!run)
		return NULL;
	wire_put_u8(&run->request, args->rereduce);
	wire_put_text(&run->request, str_from_cstr(limits[args->limit]));
	put_texts(&run->request, args->views, args->view_count);
	return run;
}

static enum status
reduce_take(const struct batch *b, struct wire_reader *r, size_t i, struct err *err)
{
	const struct reduce_results *results = b->results;
	struct str *texts = &results->results[i * results->view_count];

	results->errors[i] = (struct js_error){ 0 };
	if (wire_u8(r) == WIRE_ALLOWED) {
		for (size_t j = 0; j < results->view_count; j++)
			TRY(keep_text(b->call, r, &texts[j], err));
		return STATUS_OK;
	}
	for (size_t j = 0; j < results->view_count; j++)
		texts[j] = (struct str){ 0 };
	TRY(keep_text(b->call, r, &results->errors[i].name, err));
	return keep_text(b->call, r, &results->errors[i].reason, err);
}

enum status
js_reduce(struct js_call *call, const struct str *views, size_t view_count, bool rereduce,
	  enum js_reduce_limit limit, const struct js_group *groups, size_t group_count,
	  struct str *ret_results, struct js_error *ret_errors, struct err *err)
{
	const struct reduce_args args = { views, view_count, rereduce, limit };
	struct reduce_results results = { ret_results, ret_errors, view_count };
	const struct batch batch = {
		.call = call,
		.elements = { group_count, put_group, groups },
		.begin = reduce_begin,
		.take = reduce_take,
		.args = &args,
		.results = &results,
	};

	return batch_run(&batch, err);
}

/* ---- Compiling ---- */

enum status
js_compile(struct js_call *call, enum js_view_function kind, const struct str *views,
	   size_t view_count, struct err *err)
{
	const bool reduces = kind == JS_VIEW_REDUCE;
	struct js_run *run = request_begin(call, reduces ? WIRE_REDUCE : WIRE_MAP, view_count);
	enum status status;

	if (!run)
		return err_set(err, STATUS_NOMEM, "out of memory");
	if (reduces) {
		wire_put_u8(&run->request, false);
		wire_put_text(&run->request, STR(""));
	}
	put_texts(&run->request, views, view_count);
	wire_put_u32(&run->request, 0); /* no documents: compiling the functions is all */
	status = request_run(call, &run, err);
	js_run_free(run);
	return status;
}

/* ---- Validation ---- */

struct validate_args {
	struct str user_ctx;
	struct str security;
};

static void
put_edit(struct buf *out, const void *all, size_t i)
{
	const struct js_edit *edits = all;

	wire_put_text(out, edits[i].doc);
	wire_put_text(out, edits[i].old);
}

static struct js_run *
validate_begin(const struct batch *b)
{
	const struct validate_args *args = b->args;
	struct js_run *run = request_begin(b->call, WIRE_VALIDATE, 1);

	if (!run)
		return NULL;
	wire_put_text(&run->request, args->user_ctx);
	wire_put_text(&run->request, args->security);
	return run;
}

static enum status
validate_take(const struct batch *b, struct wire_reader *r, size_t i, struct err *err)
{
	static const enum js_verdict_kind kinds[] = {
		[WIRE_ALLOWED] = JS_ALLOWED,
		[WIRE_FORBIDDEN] = JS_FORBIDDEN,
		[WIRE_UNAUTHORIZED] = JS_UNAUTHORIZED,
		[WIRE_FAULTY] = JS_FAULTY,
	};
	struct js_verdict *verdicts = b->results;

	verdicts[i] = (struct js_verdict){ .kind = kinds[wire_u8(r)] };
	if (verdicts[i].kind == JS_ALLOWED)
		return STATUS_OK;
	TRY(keep_text(b->call, r, &verdicts[i].error.name, err));
	return keep_text(b->call, r, &verdicts[i].error.reason, err);
}

static enum status
validate_lost(const struct batch *b, size_t i)
{
	struct js_verdict *verdicts = b->results;

	verdicts[i] = (struct js_verdict){ .kind = JS_FAULTY, .error = b->call->error };
	return STATUS_OK;
}

enum status
js_validate(struct js_call *call, struct str user_ctx, struct str security,
	    const struct js_edit *edits, size_t count, struct js_verdict *ret_verdicts,
	    struct err *err)
{
	const struct validate_args args = { user_ctx, security };
	const struct batch batch = {
		.call = call,
		.elements = { count, put_edit, edits },
		.begin = validate_begin,
		.take = validate_take,
		.lost = validate_lost,
		.args = &args,
		.results = ret_verdicts,
	};

	return batch_run(&batch, err);
}

/* ---- Filters ---- */

struct filter_args {
	bool is_view;
	struct str name;
	struct str request;
};

static struct js_run *
filter_begin(const struct batch *b)
{
	const struct filter_args *args = b->args;
	struct js_run *run = request_begin(b->call, WIRE_FILTER, 1);

	if (!run)
		return NULL;
	wire_put_u8(&run->request, args->is_view);
	wire_put_text(&run->request, args->name);
	wire_put_text(&run->request, args->request);
	return run;
}

static enum status
filter_take(const struct batch *b, struct wire_reader *r, size_t i, struct err *err)
{
	bool *passed = b->results;

	(void)err;
	passed[i] = wire_u8(r) != 0;
	return STATUS_OK;
}

enum status
js_filter(struct js_call *call, bool is_view, struct str name, struct str request,
	  const struct str *docs, size_t count, bool *ret_passed, struct err *err)
{
	const struct filter_args args = { is_view, name, request };
	const struct batch batch = {
		.call = call,
		.elements = { count, put_text_element, docs },
		.begin = filter_begin,
		.take = filter_take,
		.args = &args,
		.results = ret_passed,
	};

	return batch_run(&batch, err);
}

/* ---- Functions of MongoDB's clients ---- */

static struct js_run *
script_begin(const struct batch *b)
{
	const struct str *how = b->args;
	struct js_run *run = request_begin(b->call, WIRE_SCRIPT, 1);

	if (run)
		wire_put_text(&run->request, *how);
	return run;
}

static enum status
script_take(const struct batch *b, struct wire_reader *r, size_t i, struct err *err)
{
	struct js_script_result *results = b->results;

	results[i] = (struct js_script_result){ 0 };
	if (wire_u8(r) == WIRE_ALLOWED)
		return keep_text(b->call, r, &results[i].text, err);
	TRY(keep_text(b->call, r, &results[i].error.name, err));
	return keep_text(b->call, r, &results[i].error.reason, err);
}

enum status
js_script(struct js_call *call, struct str how, const struct str *asks, size_t count,
	  struct js_script_result *ret_results, struct err *err)
{
	const struct batch batch = {
		.call = call,
		.elements = { count, put_text_element, asks },
		.begin = script_begin,
		.take = script_take,
		.args = &how,
		.results = ret_results,
	};

	return batch_run(&batch, err);
}

/* ---- Updates ---- */

enum status
js_update(struct js_call *call, struct str name, struct str doc, struct str request,
	  struct str *ret_doc, struct str *ret_response, struct err *err)
{
	struct js_run *run = request_begin(call, WIRE_UPDATE, 1);
	struct str texts[2];
	enum status status;

	if (!run)
		return err_set(err, STATUS_NOMEM, "out of memory");
	run->shape.elements = 1;
	wire_put_text(&run->request, name);
	wire_put_text(&run->request, doc);
	wire_put_text(&run->request, request);
	status = request_run(call, &run, err);
	if (status == STATUS_OK) {
		struct wire_reader r = { .rest = buf_str(&run->answer) };

		status = keep_text(call, &r, &texts[0], err);
		if (status == STATUS_OK)
			status = keep_text(call, &r, &texts[1], err);
	}
	js_run_free(run);
	if (status != STATUS_OK)
		return status;
	*ret_doc = texts[0];
	*ret_response = texts[1];
	return STATUS_OK;
}
