#include "fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	CLIENT_BYTES = 256 * 1024 * 1024,
	CLIENT_TIMEOUT_S = 20,
};

static void *
fixture_main(void *arg)
{
	struct fixture *f = arg;
	struct err err = { 0 };

	f->run_status = server_run(f->server, &err);
	return NULL;
}

void
fixture_make(struct fixture *f, const struct server_config *config, http_handler *handler)
{
	struct server_config own = config ? *config : (struct server_config){ 0 };
	struct err err = { 0 };

	*f = (struct fixture){ 0 };
	own.handler = handler;
	if (!own.loops)
		own.loops = 2;
	assert_int_equal(server_new(&own, &f->server, &err), STATUS_OK);
	assert_int_equal(server_listen(f->server, "127.0.0.1:0", &err), STATUS_OK);
}

void
fixture_run(struct fixture *f)
{
	assert_int_equal(pthread_create(&f->thread, NULL, fixture_main, f), 0);
}

void
fixture_start(struct fixture *f, const struct server_config *config, http_handler *handler)
{
	fixture_make(f, config, handler);
	fixture_run(f);
}

enum status
fixture_join(struct fixture *f)
{
	if (!f->joined)
		pthread_join(f->thread, NULL);
	f->joined = true;
	return f->run_status;
}

void
fixture_stop(struct fixture *f)
{
	server_stop(f->server);
	fixture_join(f);
	assert_true(server_free(f->server));
}

void
client_open_port(struct client *c, uint16_t port, int receive_bytes)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct timeval timeout = { .tv_sec = CLIENT_TIMEOUT_S };

	*c = (struct client){ .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
			      .in = BUF_INIT(CLIENT_BYTES) };
	assert_true(c->fd >= 0);
	setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	if (receive_bytes)
		setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
	assert_int_equal(connect(c->fd, (struct sockaddr *)&address, sizeof(address)), 0);
}

void
client_open(struct client *c, const struct fixture *f)
{
	client_open_port(c, server_port(f->server), 0);
}

void
client_open_small(struct client *c, const struct fixture *f, int receive_bytes)
{
	client_open_port(c, server_port(f->server), receive_bytes);
}

void
client_close(struct client *c)
{
	close(c->fd);
	buf_release(&c->in);
}

void
client_close_reset(struct client *c)
{
	struct linger none = { .l_onoff = 1, .l_linger = 0 };

	setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	client_close(c);
}

void
client_shutdown(struct client *c)
{
	shutdown(c->fd, SHUT_WR);
}

bool
client_send(struct client *c, struct str data)
{
	while (data.len) {
		ssize_t n = send(c->fd, data.ptr, data.len, MSG_NOSIGNAL);

		if (n < 0)
			return false;
		data = str_skip(data, (size_t)n);
	}
	return true;
}

bool
client_send_cstr(struct client *c, const char *text)
{
	return client_send(c, str_from_cstr(text));
}

bool
client_receive(struct client *c)
{
	static _Thread_local char some[64 * 1024];
	ssize_t n = recv(c->fd, some, sizeof(some), 0);

	if (n > 0) {
		buf_append(&c->in, some, (size_t)n);
		return true;
	}
	if (n < 0 && errno == ECONNRESET)
		c->reset = true;
	else
		assert_int_equal(n, 0);
	c->eof = true;
	return false;
}

/* Until `n` bytes are there. */
static bool
need(struct client *c, size_t n)
{
	while (c->in.len < n)
		if (c->eof || !client_receive(c))
			return false;
	return true;
}

/* The length of the line at `at`, its CRLF included; 0 if it never comes. */
static size_t
line_at(struct client *c, size_t at)
{
	for (size_t i = at;; i++) {
		if (!need(c, i + 1))
			return 0;
		if (c->in.ptr[i] == '\n')
			return i + 1 - at;
	}
}

static bool
take_head(struct client *c, struct answer *a)
{
	size_t at = 0;
	size_t n;

	do {
		n = line_at(c, at);
		if (!n)
			return false;
		at += n;
	} while (n > 2);
	buf_append(&a->head, c->in.ptr, at);
	buf_append_byte(&a->head, '\0');
	buf_consume(&c->in, at);
	return true;
}

static bool
take_bytes(struct client *c, struct buf *to, size_t n)
{
	if (!need(c, n))
		return false;
	buf_append(to, c->in.ptr, n);
	buf_consume(&c->in, n);
	return true;
}

static bool
take_chunks(struct client *c, struct answer *a)
{
	for (;;) {
		size_t line = line_at(c, 0);
		size_t n;

		if (!line)
			return false;
		n = strtoul(c->in.ptr, NULL, 16);
		buf_consume(&c->in, line);
		if (n && !take_bytes(c, &a->body, n))
			return false;
		if (!need(c, 2))
			return false;
		assert_memory_equal(c->in.ptr, "\r\n", 2);
		buf_consume(&c->in, 2);
		if (!n)
			return true;
	}
}

bool
answer_has(const struct answer *a, const char *in_head)
{
	return a->head.ptr && strcasestr(a->head.ptr, in_head);
}

void
client_answer(struct client *c, struct answer *a, bool bodiless)
{
	const char *length;

	answer_release(a);
	if (!take_head(c, a))
		return;
	a->status = atoi(a->head.ptr + sizeof("HTTP/1.1"));
	a->close = answer_has(a, "\r\nConnection: close\r\n");
	length = strcasestr(a->head.ptr, "\r\nContent-Length: ");
	if (bodiless || a->status == 204 || a->status == 304 || a->status < 200) {
		a->whole = true;
	} else if (answer_has(a, "\r\nTransfer-Encoding: chunked\r\n")) {
		a->whole = take_chunks(c, a);
	} else if (length) {
		size_t n = strtoul(length + sizeof("\r\nContent-Length: ") - 1, NULL, 10);

		a->whole = take_bytes(c, &a->body, n);
	} else {
		while (client_receive(c))
			;
		a->whole = take_bytes(c, &a->body, c->in.len) && !c->reset;
	}
}

void
answer_release(struct answer *a)
{
	buf_release(&a->head);
	buf_release(&a->body);
	*a = (struct answer){ .head = BUF_INIT(CLIENT_BYTES), .body = BUF_INIT(CLIENT_BYTES) };
}

void
client_ask(struct client *c, const char *request, struct answer *a, int status)
{
	assert_true(client_send_cstr(c, request));
	client_answer(c, a, strncmp(request, "HEAD ", 5) == 0);
	assert_int_equal(a->status, status);
}
