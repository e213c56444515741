#include "js/worker.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/mem.h"

enum {
	READ_BYTES = 256 * 1024,
	READ_AT_ONCE_BYTES = 4 * 1024 * 1024, /* of one worker, before others have their turn */
	KEPT_BYTES = 1024 * 1024,             /* a larger buffer is given back after its call */
	CONTEXT_AT = WIRE_HEAD_BYTES,
	NUMBER_AT = 2 * sizeof(uint32_t),
};

struct js_worker *
js_worker_new(const struct js_process *process, enum js_lane lane, const struct wire_limits *limits)
{
	struct js_worker *w = mem_zalloc(sizeof(*w));
	size_t frame;

	if (!w)
		return NULL;
	w->process = *process;
	w->lane = lane;
	w->state = JS_WORKER_STARTING;
	buf_init(&w->ahead, 2 * (WIRE_HEAD_BYTES + (size_t)WIRE_PAYLOAD_BYTES));
	buf_init(&w->after, JS_BEHIND_MOST * (size_t)JS_BEHIND_BYTES);
	buf_init(&w->in, WIRE_HEAD_BYTES + (size_t)WIRE_PAYLOAD_BYTES + READ_BYTES);
	frame = wire_begin(&w->ahead, WIRE_HELLO, 0);
	wire_put_u32(&w->ahead, WIRE_VERSION);
	wire_put_u32(&w->ahead, limits->slice_ms);
	wire_put_u64(&w->ahead, limits->output_bytes);
	wire_put_u64(&w->ahead, limits->answer_bytes);
	wire_end(&w->ahead, frame);
	if (buf_status(&w->ahead) == STATUS_OK)
		return w;
	js_worker_free(w);
	return NULL;
}

void
js_worker_free(struct js_worker *w)
{
	for (size_t i = 0; i < w->loaded_count; i++)
		mem_free(w->loaded[i].key);
	buf_release(&w->ahead);
	buf_release(&w->request);
	buf_release(&w->after);
	buf_release(&w->in);
	mem_free(w);
}

static struct js_loaded *
worker_find(struct js_worker *w, struct str key)
{
	for (size_t i = 0; i < w->loaded_count; i++)
		if (str_eq(str_of(w->loaded[i].key, w->loaded[i].key_len), key))
			return &w->loaded[i];
	return NULL;
}

bool
js_worker_has(const struct js_worker *w, struct str key)
{
	for (size_t i = 0; i < w->loaded_count; i++)
		if (str_eq(str_of(w->loaded[i].key, w->loaded[i].key_len), key))
			return true;
	return false;
}

/* Makes room for one more: the one that was not used for longest goes. */
static void
worker_unload_oldest(struct js_worker *w)
{
	struct js_loaded *oldest = &w->loaded[0];
	size_t frame;

	for (size_t i = 1; i < w->loaded_count; i++)
		if (w->loaded[i].used < oldest->used)
			oldest = &w->loaded[i];
	frame = wire_begin(&w->ahead, WIRE_UNLOAD, 0);
	wire_put_u64(&w->ahead, oldest->context);
	wire_end(&w->ahead, frame);
	mem_free(oldest->key);
	*oldest = w->loaded[--w->loaded_count];
}

/* NULL when out of memory; nothing is then loaded. */
static struct js_loaded *
worker_load(struct js_worker *w, const struct js_design *design, uint64_t context)
{
	char *key = mem_strdup(design->key);
	struct js_loaded *loaded;
	size_t before;
	size_t frame;

	if (!key)
		return NULL;
	/* Memory first: after an UNLOAD is in the buffer, there is no way back. */
	if (!buf_reserve(&w->ahead, design->text.len + design->language.len + 1024)) {
		mem_free(key);
		return NULL;
	}
	if (w->loaded_count == JS_CONTEXTS_MOST)
		worker_unload_oldest(w);
	before = w->ahead.len;
	frame = wire_begin(&w->ahead, WIRE_LOAD, 0);
	wire_put_u64(&w->ahead, context);
	wire_put_text(&w->ahead, design->language);
	wire_put_text(&w->ahead, design->text);
	wire_end(&w->ahead, frame);
	if (buf_status(&w->ahead) != STATUS_OK) {
		w->ahead.len = before;
		w->ahead.failed = STATUS_OK;
		mem_free(key);
		return NULL;
	}
	loaded = &w->loaded[w->loaded_count++];
	*loaded = (struct js_loaded){ .context = context, .key = key, .key_len = design->key.len };
	return loaded;
}

static size_t
worker_bytes_to_send(const struct js_worker *w)
{
	return w->ahead.len + w->request.len + w->after.len;
}

void
js_worker_return_request(struct js_worker *w)
{
	if (w->run && !w->run->followed && !w->run->request.len) {
		w->run->request = w->request;
		w->request = (struct buf){ 0 };
	}
}

/* All of it has been sent. */
static void
worker_clear_sent(struct js_worker *w)
{
	assert(js_worker_has_sent(w));
	w->sent_before += w->sent;
	w->sent = 0;
	if (w->ahead.cap > KEPT_BYTES)
		buf_release(&w->ahead);
	buf_clear(&w->ahead);
	js_worker_return_request(w);
	buf_release(&w->request);
	buf_clear(&w->after);
}

/* Writes into the call's request what depends on the worker. */
static void
worker_address(struct js_worker *w, struct js_run *run, struct js_loaded *loaded)
{
	loaded->used = ++w->uses;
	run->number = ++w->number;
	memcpy(run->request.ptr + NUMBER_AT, &run->number, sizeof(run->number));
	memcpy(run->request.ptr + CONTEXT_AT, &loaded->context, sizeof(loaded->context));
}

enum status
js_worker_assign(struct js_worker *w, struct js_run *run, uint64_t context)
{
	struct js_loaded *loaded = worker_find(w, run->design->key);

	assert(w->state == JS_WORKER_IDLE && !w->sending && js_worker_has_sent(w));
	worker_clear_sent(w);
	if (!loaded)
		loaded = worker_load(w, run->design, context);
	if (!loaded)
		return STATUS_NOMEM;
	worker_address(w, run, loaded);
	w->request = run->request;
	run->request = (struct buf){ 0 };
	run->ends_at = w->sent_before + worker_bytes_to_send(w);
	run->followed = false;
	w->run = run;
	w->state = JS_WORKER_BUSY;
	return STATUS_OK;
}

enum status
js_worker_follow(struct js_worker *w, struct js_run *run)
{
	struct js_loaded *loaded = worker_find(w, run->design->key);
	struct js_run **at = &w->behind;

	assert(w->state == JS_WORKER_BUSY && (!w->sending || w->to_send) && loaded);
	if (js_worker_has_sent(w))
		worker_clear_sent(w);
	if (!buf_reserve(&w->after, run->request.len))
		return STATUS_NOMEM;
	worker_address(w, run, loaded);
	buf_append_buf(&w->after, &run->request);
	run->ends_at = w->sent_before + worker_bytes_to_send(w);
	run->followed = true;
	run->next = NULL;
	while (*at)
		at = &(*at)->next;
	*at = run;
	w->behind_count++;
	return STATUS_OK;
}

void
js_worker_advance(struct js_worker *w, uint64_t now)
{
	w->took_ns = now - w->since_ns;
	w->since_ns = now;
	w->run = w->behind;
	if (!w->run) {
		w->state = JS_WORKER_IDLE;
		return;
	}
	w->behind = w->run->next;
	w->behind_count--;
	w->run->began_ns = now;
	w->computed_ns = js_process_computed_ns(&w->process);
}

bool
js_worker_has_sent(const struct js_worker *w)
{
	return w->sent == worker_bytes_to_send(w);
}

bool
js_worker_has_sent_run(const struct js_worker *w)
{
	return w->sent_before + w->sent >= w->run->ends_at;
}

/* Adds what has not been sent of one buffer; `skip` bytes, of it and of those behind it, have. */
static void
worker_add_part(struct msghdr *message, const struct buf *b, size_t *skip)
{
	size_t sent = *skip < b->len ? *skip : b->len;

	*skip -= sent;
	if (b->len > sent)
		message->msg_iov[message->msg_iovlen++] = (struct iovec){ b->ptr + sent,
									  b->len - sent };
}

bool
js_worker_send(struct js_worker *w)
{
	while (!js_worker_has_sent(w)) {
		struct iovec parts[3];
		struct msghdr message = { .msg_iov = parts };
		size_t skip = w->sent;
		ssize_t n;

		worker_add_part(&message, &w->ahead, &skip);
		worker_add_part(&message, &w->request, &skip);
		worker_add_part(&message, &w->after, &skip);
		n = sendmsg(w->process.socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		w->sent += (size_t)n;
	}
	return true;
}

enum js_worker_news
js_worker_receive(struct js_worker *w)
{
	size_t before = w->in.len;

	while (w->in.len - before < READ_AT_ONCE_BYTES) {
		ssize_t n;

		if (!buf_reserve(&w->in, READ_BYTES))
			return JS_WORKER_GARBAGE; /* more than a frame can have */
		n = recv(w->process.socket, w->in.ptr + w->in.len, READ_BYTES, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0)
			return JS_WORKER_LOST;
		w->in.len += (size_t)n;
		/* That was all there is, and the socket tells when there is more. */
		if (n < READ_BYTES)
			break;
	}
	return JS_WORKER_NOTHING;
}

/* Sorts a whole frame by what it may be in the worker's state. */
static struct js_worker_letter
worker_sort(const struct js_worker *w, const struct wire_head *head, struct str payload)
{
	struct js_worker_letter letter = { .news = JS_WORKER_GARBAGE, .kind = head->kind };
	struct wire_reader r = { .rest = payload };

	if (w->state == JS_WORKER_STARTING) {
		if (head->kind == WIRE_HELLO && wire_u32(&r) == WIRE_VERSION && wire_at_end(&r))
			letter.news = JS_WORKER_READY;
		return letter;
	}
	if (w->state != JS_WORKER_BUSY || head->number != w->run->number)
		return letter;
	if (head->kind == WIRE_LOG) {
		letter.text = wire_text(&r);
		if (wire_at_end(&r))
			letter.news = JS_WORKER_LOG;
	} else if (head->kind == WIRE_DONE || head->kind == WIRE_ERROR) {
		letter.text = payload;
		letter.news = JS_WORKER_ANSWERED;
	}
	return letter;
}

struct js_worker_letter
js_worker_next(struct js_worker *w, size_t *at)
{
	struct wire_head head;
	struct str rest = str_skip(buf_str(&w->in), *at);
	enum status status = wire_read_head(rest, &head);

	if (status == STATUS_CORRUPT)
		return (struct js_worker_letter){ .news = JS_WORKER_GARBAGE };
	if (status == STATUS_OK && rest.len - WIRE_HEAD_BYTES >= head.bytes) {
		*at += WIRE_HEAD_BYTES + (size_t)head.bytes;
		return worker_sort(w, &head, str_of(rest.ptr + WIRE_HEAD_BYTES, head.bytes));
	}
	buf_consume(&w->in, *at);
	*at = 0;
	if (w->in.len == 0 && w->in.cap > KEPT_BYTES)
		buf_release(&w->in);
	return (struct js_worker_letter){ .news = JS_WORKER_NOTHING };
}
