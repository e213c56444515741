/* An exchange's life, and its request as the handler sees it. */
#include <assert.h>

#include "base/clock.h"
#include "base/mem.h"
#include "server/conn.h"
#include "server/gzip.h"
#include "server/server_int.h"

/* ---- Life ---- */

static bool
take_body(void *arg, struct str data)
{
	struct http_exchange *x = arg;

	x->body_taken += data.len;
	if (x->skipping)
		return true;
	buf_append_str(&x->body_in, data);
	return buf_status(&x->body_in) == STATUS_OK;
}

static void
trim(struct buf *b)
{
	if (b->cap > CONN_SPARE_BYTES)
		buf_release(b);
	else
		buf_clear(b);
}

struct http_exchange *
exchange_take(struct conn *c)
{
	struct loop *l = c->loop;
	struct http_exchange *x = l->spare;

	if (x) {
		l->spare = x->next_spare;
		l->spare_count--;
	} else {
		size_t out_bytes = l->config->output_bytes + CONN_SPARE_BYTES;

		x = mem_zalloc(sizeof(*x));
		if (!x)
			return NULL;
		parser_init(&x->parser, l->config->header_bytes, take_body, x);
		buf_init(&x->body_in, CONN_BODY_BYTES + LOOP_READ_BYTES);
		buf_init(&x->body_out, CONN_BODY_BYTES + LOOP_READ_BYTES);
		buf_init(&x->out, out_bytes);
		buf_init(&x->flying, out_bytes);
	}
	x->conn = c;
	x->loop = l;
	budget_part_init(&x->part, server_memory(l->server));
	x->status = 200;
	x->chunk_at = SIZE_MAX;
	x->write.data = x;
	event_init(&x->progress);
	event_init(&x->closed);
	event_init(&x->stopping);
	return x;
}

static void
exchange_free(struct http_exchange *x)
{
	gzip_free(x->gzip);
	parser_release(&x->parser);
	buf_release(&x->body_in);
	buf_release(&x->body_out);
	buf_release(&x->body_whole);
	budget_part_release(&x->part);
	buf_release(&x->out);
	buf_release(&x->flying);
	mem_free(x);
}

void
exchange_put(struct http_exchange *x)
{
	struct loop *l = x->loop;

	assert(!x->task);
	if (l->spare_count >= LOOP_SPARE_EXCHANGES) {
		exchange_free(x);
		return;
	}
	if (x->parser.text.cap > CONN_SPARE_BYTES / 4)
		parser_release(&x->parser);
	parser_clear(&x->parser);
	trim(&x->body_in);
	trim(&x->body_out);
	buf_release(&x->body_whole);
	trim(&x->out);
	trim(&x->flying);
	gzip_free(x->gzip);
	x->gzip = NULL;
	x->gzip_level = 0;
	budget_part_release(&x->part);
	x->output_counted = false;
	x->conn = NULL;
	x->body_taken = 0;
	x->continued = x->skipping = false;
	x->header_count = 0;
	x->broken = x->started = x->finished = x->bodiless = x->chunked = false;
	x->remaining = 0;
	x->flying_left = 0;
	x->next_spare = l->spare;
	l->spare = x;
	l->spare_count++;
}

void
conn_drop_spares(struct loop *l)
{
	while (l->spare) {
		struct http_exchange *x = l->spare;

		l->spare = x->next_spare;
		exchange_free(x);
	}
	l->spare_count = 0;
}

/* ---- The handler ---- */

static void
handler_main(void *arg)
{
	struct http_exchange *x = arg;

	x->loop->config->handler(x, x->loop->config->arg);
	if (!x->started) {
		x->header_count = 0;
		http_set_status(x, 500);
		if (http_send(x, STR("")) != STATUS_OK)
			http_abort(x);
	} else if (!x->finished) {
		http_abort(x);
	}
}

/* On the loop again, with the fiber idle. */
static void
handler_done(void *arg)
{
	struct http_exchange *x = arg;
	struct conn *c = x->conn;

	loop_put_task(x->loop, x->task);
	x->task = NULL;
	x->skipping = true;
	buf_clear(&x->body_in);
	buf_release(&x->body_whole);
	budget_settle(&x->part); /* the rest of the answer may take its time */
	conn_finish(c);
}

bool
exchange_run(struct http_exchange *x)
{
	x->task = loop_take_task(x->loop);
	if (!x->task)
		return false;
	arena_set_part(x->task->arena, &x->part);
	x->continued = !x->parser.expect_continue || x->parser.complete;
	loop_note_request(x->loop, x->conn);
	task_start(x->task, handler_main, handler_done, x);
	return true;
}

void
exchange_progress(struct http_exchange *x)
{
	event_set(&x->progress);
}

bool
exchange_wait(struct http_exchange *x)
{
	event_init(&x->progress);
	return event_wait(&x->progress, clock_after_ms(x->loop->config->body_timeout_ms));
}

/* ---- The request ---- */

struct str
http_method(const struct http_exchange *x)
{
	return parser_method(&x->parser);
}

struct str
http_target(const struct http_exchange *x)
{
	return parser_target(&x->parser);
}

struct str
http_path(const struct http_exchange *x)
{
	struct str target = http_target(x);
	const char *mark = memchr(target.ptr, '?', target.len);

	return mark ? str_of(target.ptr, (size_t)(mark - target.ptr)) : target;
}

struct str
http_query(const struct http_exchange *x)
{
	struct str target = http_target(x);
	size_t path = http_path(x).len;

	return str_skip(target, path < target.len ? path + 1 : path);
}

struct str
http_request_header(const struct http_exchange *x, struct str name)
{
	return parser_find_header(&x->parser, name);
}

size_t
http_request_header_count(const struct http_exchange *x)
{
	return x->parser.span_count;
}

struct http_header
http_request_header_at(const struct http_exchange *x, size_t i)
{
	assert(i < x->parser.span_count);
	return parser_header(&x->parser, i);
}

struct str
http_peer(const struct http_exchange *x)
{
	return str_from_cstr(x->conn->peer);
}

struct arena *
http_arena(struct http_exchange *x)
{
	return x->task->arena;
}

struct budget_part *
http_memory(struct http_exchange *x)
{
	return &x->part;
}

void *
http_loop_context(struct http_exchange *x)
{
	return x->loop->context;
}

struct event *
http_closed_event(struct http_exchange *x)
{
	return &x->closed;
}

struct event *
http_stopping_event(struct http_exchange *x)
{
	return &x->stopping;
}

/* ---- Its body ---- */

static void
send_continue(struct http_exchange *x)
{
	x->continued = true;
	if (x->parser.complete || x->body_taken > 0 || x->started)
		return;
	buf_append_str(&x->out, STR("HTTP/1.1 100 Continue\r\n\r\n"));
	exchange_send(x);
}

enum status
http_read(struct http_exchange *x, struct str *ret)
{
	if (!x->continued)
		send_continue(x);
	for (;;) {
		if (x->conn->lost)
			return STATUS_CANCELLED;
		if (x->body_in.len) {
			struct buf taken = x->body_in;

			x->body_in = x->body_out;
			x->body_out = taken;
			buf_clear(&x->body_in);
			conn_update_reading(x->conn);
			*ret = buf_str(&x->body_out);
			return STATUS_OK;
		}
		if (x->parser.complete)
			return STATUS_NOT_FOUND;
		if (x->parser.refusal)
			return STATUS_INVALID;
		if (!exchange_wait(x)) {
			http_abort(x);
			return STATUS_CANCELLED;
		}
	}
}

enum status
http_ask_memory(struct http_exchange *x, size_t bytes)
{
	if (!x->parser.chunked && x->parser.content_length <= BUDGET_FREE_BYTES)
		return STATUS_OK;
	return budget_ask(&x->part, bytes, clock_after_ms(x->loop->config->memory_timeout_ms),
			  &x->closed);
}

/*
 * Before a large body is read: for it and for what is going to be made of it. Until then the client
 * is not asked for it, or held back. Chunked ones do not say how much is to come, and take what is
 * free as they grow.
 */
static enum status
ask_for_memory(struct http_exchange *x)
{
	uint64_t length = x->parser.content_length;

	if (x->parser.chunked)
		return STATUS_OK;
	if (length > SIZE_MAX / HTTP_BODY_COST)
		return STATUS_LIMIT;
	return http_ask_memory(x, (size_t)length * HTTP_BODY_COST);
}

enum status
http_read_all(struct http_exchange *x, size_t max_bytes, struct str *ret)
{
	size_t limit = x->loop->config->request_bytes;
	struct str part;
	enum status s;

	if (max_bytes > limit)
		max_bytes = limit;
	if (!x->parser.chunked && x->parser.content_length > max_bytes)
		return STATUS_LIMIT;
	/* The common case: all of it came with the request, and is the exchange's already. */
	if (x->parser.complete) {
		s = http_read(x, &part);
		if (s == STATUS_OK && part.len > max_bytes)
			return STATUS_LIMIT;
		*ret = s == STATUS_OK ? part : (struct str){ "", 0 };
		return s == STATUS_NOT_FOUND ? STATUS_OK : s;
	}
	TRY(ask_for_memory(x));
	x->body_whole = BUF_INIT_OF(max_bytes, &x->part);
	if (!x->parser.chunked)
		buf_reserve(&x->body_whole, (size_t)x->parser.content_length);
	while ((s = http_read(x, &part)) == STATUS_OK) {
		buf_append_str(&x->body_whole, part);
		TRY(buf_status(&x->body_whole));
	}
	if (s != STATUS_NOT_FOUND)
		return s;
	*ret = x->body_whole.len ? buf_str(&x->body_whole) : (struct str){ "", 0 };
	return STATUS_OK;
}
