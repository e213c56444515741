/* Connections and the run: prepare, measure, stop. */
#include "load.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "load_data.h"

static char read_room[LOAD_READ_BYTES];

static void next_request(struct load_conn *c);

bool
load_fail(struct load *l, struct load_conn *c, const char *what)
{
	size_t shown = c && c->body.len < 300 ? c->body.len : 300;

	if (l->failed)
		return false;
	l->failed = true;
	fprintf(stderr, "load: %s: %s", l->op->name, what);
	if (c && c->body.len)
		fprintf(stderr, ": %.*s", (int)shown, c->body.ptr);
	fprintf(stderr, "\n");
	uv_stop(&l->loop);
	return false;
}

static bool
is_over(const struct load *l)
{
	return (l->deadline_ns && clock_mono_ns() >= l->deadline_ns) ||
	       (l->count && l->units + (l->busy - 1) >= l->count);
}

/* ---- Answers ---- */

/* Also those cut in two by the end of what was read: they are looked for in the seam. */
static void
count_needles(struct load_conn *c, const char *at, size_t len)
{
	const char *needle = c->load->op->needle;
	size_t n = strlen(needle);
	char seam[2 * LOAD_NEEDLE_BYTES];
	size_t head = len < n - 1 ? len : n - 1;
	const char *end = at + len;

	memcpy(seam, c->tail, c->tail_len);
	memcpy(seam + c->tail_len, at, head);
	if (memmem(seam, c->tail_len + head, needle, n))
		c->needles++;
	for (const char *p = at; (p = memmem(p, (size_t)(end - p), needle, n)) != NULL; p += n)
		c->needles++;
	if (len >= n - 1) {
		c->tail_len = n - 1;
		memcpy(c->tail, end - c->tail_len, c->tail_len);
	} else {
		size_t all = c->tail_len + len;

		c->tail_len = all < n - 1 ? all : n - 1;
		memcpy(c->tail, seam + all - c->tail_len, c->tail_len);
	}
}

static int
on_body(llhttp_t *parser, const char *at, size_t len)
{
	struct load_conn *c = parser->data;

	c->body_bytes += len;
	if (c->load->op->needle && parser->status_code < 300 && c->load->measuring)
		count_needles(c, at, len);
	else
		buf_append(&c->body, at, len);
	return 0;
}

static bool
check_answer(struct load_conn *c)
{
	struct load *l = c->load;

	if (c->is_idle)
		return c->parser.status_code == 200;
	if (!l->measuring)
		return l->op->prepare_check(l, c);
	histogram_add(&l->latencies, clock_mono_ns() - c->sent_ns);
	l->requests++;
	l->bytes += c->body_bytes;
	return l->op->check(l, c);
}

static int
on_message_complete(llhttp_t *parser)
{
	struct load_conn *c = parser->data;
	struct load *l = c->load;
	char what[64];

	if (!check_answer(c)) {
		snprintf(what, sizeof(what), "wrong answer, status %d", parser->status_code);
		load_fail(l, c, what);
		return HPE_USER;
	}
	c->is_busy = false;
	return 0;
}

static const llhttp_settings_t parser_settings = {
	.on_body = on_body,
	.on_message_complete = on_message_complete,
};

/* ---- Sockets ---- */

static void
on_alloc(uv_handle_t *handle, size_t wanted, uv_buf_t *ret)
{
	(void)handle;
	(void)wanted;
	*ret = uv_buf_init(read_room, sizeof(read_room));
}

static void
on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct load_conn *c = stream->data;

	if (n == 0)
		return;
	if (n < 0) {
		load_fail(c->load, c, uv_strerror((int)n));
		return;
	}
	if (llhttp_execute(&c->parser, buf->base, (size_t)n) != HPE_OK) {
		load_fail(c->load, c, llhttp_get_error_reason(&c->parser));
		return;
	}
	if (!c->is_busy)
		next_request(c);
}

static void
on_written(uv_write_t *write, int status)
{
	struct load_conn *c = write->data;

	if (status < 0 && status != UV_ECANCELED)
		load_fail(c->load, c, uv_strerror(status));
}

static void
send_request(struct load_conn *c)
{
	uv_buf_t buf = uv_buf_init(c->request.ptr, (unsigned)c->request.len);
	int n;

	if (buf_status(&c->request) != STATUS_OK) {
		load_fail(c->load, c, "out of memory");
		return;
	}
	c->is_busy = true;
	c->body_bytes = 0;
	c->needles = 0;
	c->tail_len = 0;
	buf_clear(&c->body);
	c->sent_ns = clock_mono_ns();
	n = uv_try_write((uv_stream_t *)&c->tcp, &buf, 1);
	if (n == (int)buf.len)
		return;
	if (n < 0 && n != UV_EAGAIN) {
		load_fail(c->load, c, uv_strerror(n));
		return;
	}
	buf = uv_buf_init(buf.base + (n > 0 ? n : 0),
			  (unsigned)(buf.len - (size_t)(n > 0 ? n : 0)));
	c->write.data = c;
	n = uv_write(&c->write, (uv_stream_t *)&c->tcp, &buf, 1, on_written);
	if (n < 0)
		load_fail(c->load, c, uv_strerror(n));
}

/* ---- The run ---- */

static void
note_ready(struct load *l)
{
	if (++l->ready == l->connections + l->idle)
		uv_stop(&l->loop);
}

static void
next_request(struct load_conn *c)
{
	struct load *l = c->load;

	if (c->is_idle) {
		note_ready(l);
		return;
	}
	if (!l->measuring) {
		if (l->op->prepare_make && l->op->prepare_make(l, c))
			send_request(c);
		else
			note_ready(l);
		return;
	}
	if (!is_over(l) && l->op->make(l, c)) {
		send_request(c);
		return;
	}
	if (--l->busy == 0)
		uv_stop(&l->loop);
}

static void
on_connect(uv_connect_t *connect, int status)
{
	struct load_conn *c = connect->data;

	if (status < 0 || uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read) < 0) {
		load_fail(c->load, c, status < 0 ? uv_strerror(status) : "cannot read");
		return;
	}
	uv_tcp_nodelay(&c->tcp, 1);
	if (c->is_idle) {
		buf_clear(&c->request);
		buf_append_cstr(&c->request, "GET / HTTP/1.1\r\n");
		buf_append_str(&c->request, buf_str(&c->load->head));
		buf_append_cstr(&c->request, "\r\n");
		send_request(c);
		return;
	}
	next_request(c);
}

static bool
open_conn(struct load *l, unsigned index)
{
	struct load_conn *c = &l->conns[index];

	c->load = l;
	c->index = index;
	c->is_idle = index >= l->connections;
	c->tcp.data = c;
	c->connect.data = c;
	buf_init(&c->request, LOAD_REQUEST_BYTES);
	buf_init(&c->body, LOAD_KEPT_BYTES);
	llhttp_init(&c->parser, HTTP_RESPONSE, &parser_settings);
	c->parser.data = c;
	if (uv_tcp_init(&l->loop, &c->tcp) < 0 ||
	    uv_tcp_connect(&c->connect, &c->tcp, (const struct sockaddr *)&l->address, on_connect) <
		    0)
		return load_fail(l, c, "cannot connect");
	return true;
}

bool
load_measure(struct load *l)
{
	l->measuring = true;
	l->next = l->first;
	l->busy = l->connections;
	l->begin_ns = clock_mono_ns();
	l->deadline_ns = l->seconds > 0 ? l->begin_ns + (uint64_t)(l->seconds * 1e9) : 0;
	for (unsigned i = 0; i < l->connections && !l->failed; i++) {
		l->conns[i].prepared = 0;
		next_request(&l->conns[i]);
	}
	if (l->busy && !l->failed)
		uv_run(&l->loop, UV_RUN_DEFAULT);
	l->end_ns = clock_mono_ns();
	return !l->failed;
}

bool
load_open(struct load *l)
{
	unsigned all = l->connections + l->idle;

	l->conns = mem_zalloc(all * sizeof(*l->conns));
	l->revs = mem_zalloc((size_t)(l->docs + l->connections) * LOAD_REV_BYTES);
	if (!l->conns || !l->revs || uv_loop_init(&l->loop) < 0)
		return load_fail(l, NULL, "out of memory");
	for (unsigned i = 0; i < all && !l->failed; i++)
		open_conn(l, i);
	if (!l->failed)
		uv_run(&l->loop, UV_RUN_DEFAULT);
	return !l->failed;
}
