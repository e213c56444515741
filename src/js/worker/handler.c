#include "js/worker/handler.h"

#include <assert.h>

#include "base/clock.h"
#include "base/mem.h"

enum {
	LOG_TEXT_BYTES = 1024, /* a longer text is cut */
	LEAST_SLICE_MS = 1,
};

struct handler_context {
	uint64_t id;
	struct engine_context *engine; /* NULL: it could not be loaded, and `failure` tells why */
	struct buf failure;
};

struct handler {
	const struct engine *engine;
	bool (*ready)(void *arg);
	void *ready_arg;
	bool greeted;
	struct wire_limits limits;
	struct engine_host host;
	struct handler_context contexts[JS_CONTEXTS_MOST];
	size_t context_count;
	struct buf answer; /* of the engine */
	struct buf body;   /* the elements of a batch that are done */

	/* Of the call under way. */
	struct buf *out; /* what log() says goes out at once, in front of the answer */
	uint32_t number;
	unsigned logged;
	uint64_t end_ns; /* of its time slice */
};

/* What batches differ in. */
struct batch {
	enum engine_op begin;
	enum engine_op element;
	size_t texts;        /* of each element */
	bool keeps_failures; /* a failure is the element's, not the batch's */
	/* Appends the engine's answer to `h->body`. */
	void (*put)(struct handler *h, size_t functions);
};

/* ---- Answers ---- */

static void
handler_log(void *arg, struct str text)
{
	struct handler *h = arg;
	size_t frame;

	if (!h->out || h->logged >= JS_LOGS_MOST)
		return;
	h->logged++;
	if (text.len > LOG_TEXT_BYTES)
		text.len = LOG_TEXT_BYTES;
	frame = wire_begin(h->out, WIRE_LOG, h->number);
	wire_put_text(h->out, text);
	wire_end(h->out, frame);
}

/* A failure as the engine tells it: "-", name, line end, reason. */
static void
put_failure(struct buf *out, struct str failure)
{
	struct str reason = str_skip(failure, 1);

	wire_put_text(out, str_cut(&reason, '\n'));
	wire_put_text(out, reason);
}

static void
answer_failure(struct handler *h, struct str failure)
{
	size_t frame = wire_begin(h->out, WIRE_ERROR, h->number);

	put_failure(h->out, failure);
	wire_end(h->out, frame);
}

static bool
has_failed(const struct handler *h)
{
	return h->answer.ptr[0] == '-';
}

/* The engine's answer without its first byte, which says what it is. */
static struct str
result_of(const struct handler *h)
{
	assert(h->answer.len > 0);
	return str_skip(buf_str(&h->answer), 1);
}

static void
put_rows(struct buf *out, struct str text)
{
	size_t at = out->len;
	uint32_t rows = 0;

	wire_put_u32(out, 0);
	for (; text.len > 0; rows++) {
		wire_put_text(out, str_cut(&text, '\n'));
		wire_put_text(out, str_cut(&text, '\n'));
	}
	wire_patch_u32(out, at, rows);
}

static void
put_mapped(struct handler *h, size_t functions)
{
	struct str text = result_of(h);

	for (size_t i = 0; i < functions; i++) {
		struct str one = str_cut(&text, '\x01');

		if (one.len > 0 && one.ptr[0] == '\x02') {
			wire_put_u32(&h->body, (uint32_t)WIRE_FAILED);
			wire_put_text(&h->body, str_skip(one, 1));
		} else {
			put_rows(&h->body, one);
		}
	}
}

static void
put_reduced(struct handler *h, size_t functions)
{
	struct str text = result_of(h);

	wire_put_u8(&h->body, has_failed(h) ? WIRE_FAULTY : WIRE_ALLOWED);
	if (has_failed(h)) {
		put_failure(&h->body, buf_str(&h->answer));
		return;
	}
	for (size_t i = 0; i < functions; i++)
		wire_put_text(&h->body, str_cut(&text, '\n'));
}

static void
put_verdict(struct handler *h, size_t functions)
{
	(void)functions;
	switch (h->answer.ptr[0]) {
	case '-':
		wire_put_u8(&h->body, WIRE_FAULTY);
		put_failure(&h->body, buf_str(&h->answer));
		return;
	case 'f':
		wire_put_u8(&h->body, WIRE_FORBIDDEN);
		wire_put_text(&h->body, STR("forbidden"));
		wire_put_text(&h->body, result_of(h));
		return;
	case 'u':
		wire_put_u8(&h->body, WIRE_UNAUTHORIZED);
		wire_put_text(&h->body, STR("unauthorized"));
		wire_put_text(&h->body, result_of(h));
		return;
	default:
		wire_put_u8(&h->body, WIRE_ALLOWED);
	}
}

static void
put_choice(struct handler *h, size_t functions)
{
	(void)functions;
	wire_put_u8(&h->body, str_eq(result_of(h), STR("1")));
}

static const struct batch map_batch = { ENGINE_MAP_BEGIN, ENGINE_MAP_DOCUMENT, 1, false,
					put_mapped };
static const struct batch reduce_batch = { ENGINE_REDUCE_BEGIN, ENGINE_REDUCE_GROUP, 2, true,
					   put_reduced };
static const struct batch validate_batch = { ENGINE_VALIDATE_BEGIN, ENGINE_VALIDATE_DOCUMENT, 2,
					     true, put_verdict };
static const struct batch filter_batch = { ENGINE_FILTER_BEGIN, ENGINE_FILTER_DOCUMENT, 1, false,
					   put_choice };
static const struct batch script_batch = { ENGINE_SCRIPT_BEGIN, ENGINE_SCRIPT_CALL, 1, true,
					   put_reduced };

/* ---- Contexts ---- */

static struct handler_context *
find_context(struct handler *h, uint64_t id)
{
	for (size_t i = 0; i < h->context_count; i++)
		if (h->contexts[i].id == id)
			return &h->contexts[i];
	return NULL;
}

static void
drop_context(struct handler *h, struct handler_context *c)
{
	if (c->engine)
		h->engine->unload(c->engine);
	buf_release(&c->failure);
	*c = h->contexts[--h->context_count];
}

/* A design document that cannot be loaded is told of at each call. */
static bool
handle_load(struct handler *h, struct wire_reader *r)
{
	uint64_t id = wire_u64(r);
	struct str language = wire_text(r);
	struct str design = wire_text(r);
	struct handler_context *c;

	if (!wire_at_end(r) || find_context(h, id) || h->context_count == JS_CONTEXTS_MOST)
		return false;
	c = &h->contexts[h->context_count++];
	*c = (struct handler_context){ .id = id, .failure = BUF_INIT(WIRE_PAYLOAD_BYTES) };
	if (str_eq(language, STR("javascript")))
		c->engine = h->engine->load(design, ENGINE_COUCH, &h->host, &c->failure);
	else if (str_eq(language, STR("mongodb")))
		c->engine = h->engine->load(design, ENGINE_MONGO, &h->host, &c->failure);
	else
		buf_append_cstr(&c->failure, "-unknown_query_language\n"
					     "\"the worker knows javascript only\"");
	return true;
}

static bool
handle_unload(struct handler *h, struct wire_reader *r)
{
	struct handler_context *c = find_context(h, wire_u64(r));

	if (!wire_at_end(r) || !c)
		return false;
	drop_context(h, c);
	return true;
}

/* ---- Calls. Each returns false if the frame is malformed, and then need not answer ---- */

static bool
has_slice_left(const struct handler *h)
{
	return h->body.len < h->limits.answer_bytes && clock_mono_ns() < h->end_ns;
}

/*
 * Does elements until the slice has ended, one at least, so that the server gets on. `args` are the
 * texts that the batch begins with; `functions` results come of each element.
 */
static bool
run_batch(struct handler *h, struct engine_context *c, struct wire_reader *r,
	  const struct batch *batch, const struct str *args, size_t arg_count, size_t functions)
{
	uint32_t count = wire_count(r, batch->texts * WIRE_TEXT_OVERHEAD);
	uint32_t done = 0;
	size_t frame;

	h->engine->call(c, batch->begin, args, arg_count, &h->answer);
	if (has_failed(h)) {
		answer_failure(h, buf_str(&h->answer));
		return true;
	}
	buf_clear(&h->body);
	while (done < count && (done == 0 || has_slice_left(h))) {
		struct str texts[2];

		for (size_t i = 0; i < batch->texts; i++)
			texts[i] = wire_text(r);
		if (r->bad)
			return false;
		h->engine->call(c, batch->element, texts, batch->texts, &h->answer);
		if (has_failed(h) && !batch->keeps_failures) {
			answer_failure(h, buf_str(&h->answer));
			return true;
		}
		batch->put(h, functions);
		done++;
	}
	if (buf_status(&h->body) != STATUS_OK) {
		answer_failure(h, STR("-os_process_error\n\"the answer is too large\""));
		return true;
	}
	frame = wire_begin(h->out, WIRE_DONE, h->number);
	wire_put_u32(h->out, done);
	buf_append_buf(h->out, &h->body);
	wire_end(h->out, frame);
	return !r->bad;
}

/* Reads the names of functions behind what is in `args` already. */
static bool
read_names(struct wire_reader *r, struct str *args, size_t *count, size_t *ret_functions)
{
	uint32_t n = wire_count(r, WIRE_TEXT_OVERHEAD);

	if (r->bad || n > JS_FUNCTIONS_MOST)
		return false;
	for (uint32_t i = 0; i < n; i++)
		args[(*count)++] = wire_text(r);
	*ret_functions = n;
	return !r->bad;
}

static bool
handle_map(struct handler *h, struct engine_context *c, struct wire_reader *r)
{
	struct str args[ENGINE_ARGS_MOST];
	size_t functions;
	size_t count = 0;

	return read_names(r, args, &count, &functions) &&
	       run_batch(h, c, r, &map_batch, args, count, functions);
}

static bool
handle_reduce(struct handler *h, struct engine_context *c, struct wire_reader *r)
{
	struct str args[ENGINE_ARGS_MOST];
	size_t functions;
	size_t count = 2;

	args[0] = wire_u8(r) ? STR("true") : STR("");
	args[1] = wire_text(r);
	return read_names(r, args, &count, &functions) &&
	       run_batch(h, c, r, &reduce_batch, args, count, functions);
}

static bool
handle_validate(struct handler *h, struct engine_context *c, struct wire_reader *r)
{
	struct str args[2];

	args[0] = wire_text(r);
	args[1] = wire_text(r);
	return !r->bad && run_batch(h, c, r, &validate_batch, args, 2, 1);
}

static bool
handle_filter(struct handler *h, struct engine_context *c, struct wire_reader *r)
{
	struct str args[3];

	args[0] = wire_u8(r) ? STR("view") : STR("");
	args[1] = wire_text(r);
	args[2] = wire_text(r);
	return !r->bad && run_batch(h, c, r, &filter_batch, args, 3, 1);
}

static bool
handle_script(struct handler *h, struct engine_context *c, struct wire_reader *r)
{
	const struct str how = wire_text(r);

	return !r->bad && run_batch(h, c, r, &script_batch, &how, 1, 1);
}

static bool
handle_update(struct handler *h, struct engine_context *c, struct wire_reader *r)
{
	struct str args[3];
	struct str rest;
	size_t frame;

	for (size_t i = 0; i < 3; i++)
		args[i] = wire_text(r);
	if (r->bad)
		return false;
	h->engine->call(c, ENGINE_UPDATE, args, 3, &h->answer);
	if (has_failed(h)) {
		answer_failure(h, buf_str(&h->answer));
		return true;
	}
	rest = result_of(h);
	frame = wire_begin(h->out, WIRE_DONE, h->number);
	wire_put_text(h->out, str_cut(&rest, '\n'));
	wire_put_text(h->out, rest);
	wire_end(h->out, frame);
	return true;
}

static bool
handle_call(struct handler *h, uint32_t kind, struct wire_reader *r)
{
	struct handler_context *c = find_context(h, wire_u64(r));

	h->logged = 0;
	h->end_ns = clock_after_ms(h->limits.slice_ms);
	if (!c)
		return false;
	if (!c->engine) {
		answer_failure(h, buf_str(&c->failure));
		return true;
	}
	switch (kind) {
	case WIRE_MAP:
		return handle_map(h, c->engine, r);
	case WIRE_REDUCE:
		return handle_reduce(h, c->engine, r);
	case WIRE_VALIDATE:
		return handle_validate(h, c->engine, r);
	case WIRE_FILTER:
		return handle_filter(h, c->engine, r);
	case WIRE_UPDATE:
		return handle_update(h, c->engine, r);
	case WIRE_SCRIPT:
		return handle_script(h, c->engine, r);
	default:
		return false;
	}
}

/* ---- ---- */

static bool
handle_hello(struct handler *h, struct wire_reader *r)
{
	uint32_t version = wire_u32(r);
	size_t frame;

	h->limits.slice_ms = wire_u32(r);
	h->limits.output_bytes = wire_u64(r);
	h->limits.answer_bytes = wire_u64(r);
	if (!wire_at_end(r) || version != WIRE_VERSION || h->limits.slice_ms < LEAST_SLICE_MS)
		return false;
	h->host = (struct engine_host){ .log = handler_log,
					.arg = h,
					.output_bytes = h->limits.output_bytes };
	if (!h->ready(h->ready_arg))
		return false;
	h->greeted = true;
	frame = wire_begin(h->out, WIRE_HELLO, h->number);
	wire_put_u32(h->out, WIRE_VERSION);
	wire_end(h->out, frame);
	return true;
}

struct handler *
handler_new(const struct engine *engine, bool (*ready)(void *arg), void *arg)
{
	struct handler *h = mem_zalloc(sizeof(*h));

	if (!h)
		return NULL;
	h->engine = engine;
	h->ready = ready;
	h->ready_arg = arg;
	buf_init(&h->answer, WIRE_PAYLOAD_BYTES);
	buf_init(&h->body, WIRE_PAYLOAD_BYTES);
	return h;
}

void
handler_free(struct handler *h)
{
	if (!h)
		return;
	while (h->context_count > 0)
		drop_context(h, &h->contexts[0]);
	buf_release(&h->answer);
	buf_release(&h->body);
	mem_free(h);
}

bool
handler_handle(struct handler *h, const struct wire_head *head, struct str payload, struct buf *out)
{
	struct wire_reader r = { .rest = payload };
	bool good;

	h->out = out;
	h->number = head->number;
	if (head->kind == WIRE_HELLO)
		good = !h->greeted && handle_hello(h, &r);
	else if (!h->greeted)
		good = false;
	else if (head->kind == WIRE_LOAD)
		good = handle_load(h, &r);
	else if (head->kind == WIRE_UNLOAD)
		good = handle_unload(h, &r);
	else
		good = handle_call(h, head->kind, &r);
	h->out = NULL;
	return good && buf_status(out) == STATUS_OK;
}
