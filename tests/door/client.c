#include "client.h"

#include "access/follow.h"
#include "access/limits.h"
#include "access/people.h"
#include "access/person.h"
#include "base/log.h"
#include "model/revisioned/revisioned.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "catalog/chores.h"
#include "http/server.h"
#include "http/settings.h"
#include "index/view/view.h"
#include "js/js.h"
#include "js/settings.h"
#include "model/revisioned/shape.h"
#include "serve/ops.h"
#include "store.h"

/* As programs ask; without it some answers come in parts. */
#define ACCEPT_JSON "Accept: application/json\r\n"

enum {
	NARROW_BYTES = 64 * 1024, /* of a socket that holds little */
	/* On a busy machine 10,000 documents take a cluster long, or a server with a sanitizer. */
	TIMEOUT_MS = 600000,
	LINE_BYTES = 1 << 20,
	RECENT_BYTES = 32 * 1024, /* so few pairs in front of RocksDB that some are pushed out */
};

struct client {
	int fd;
	char *in; /* what has come and is not used */
	size_t len;
	size_t cap;
	bool eof;

	/* A chunked body read line by line. */
	char *line;
	size_t line_len;
	bool ended;
};

/* `holds`: what its socket keeps of an answer that is not read; 0: what the system thinks best. */
static struct client *
client_open_at(uint16_t port, int holds)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct client *c = calloc(1, sizeof(*c));
	int one = 1;

	assert_non_null(c);
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(c->fd >= 0);
	if (holds)
		assert_int_equal(setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &holds, sizeof(holds)),
				 0);
	assert_int_equal(connect(c->fd, (struct sockaddr *)&address, sizeof(address)), 0);
	(void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return c;
}

struct client *
client_open(uint16_t port)
{
	return client_open_at(port, 0);
}

struct client *
client_open_narrow(uint16_t port)
{
	return client_open_at(port, NARROW_BYTES);
}

void
client_close(struct client *c)
{
	if (!c)
		return;
	(void)close(c->fd);
	free(c->in);
	free(c->line);
	free(c);
}

void
response_release(struct response *r)
{
	free(r->head);
	free(r->body);
	*r = (struct response){ 0 };
}

const char *
response_header(const struct response *r, const char *name)
{
	static _Thread_local char value[8192];
	size_t len = strlen(name);

	for (const char *at = strstr(r->head, "\r\n"); at; at = strstr(at, "\r\n")) {
		at += 2;
		if (strncasecmp(at, name, len) == 0 && at[len] == ':') {
			const char *from = at + len + 1;
			const char *end = strstr(from, "\r\n");

			while (*from == ' ')
				from++;
			(void)snprintf(value, sizeof(value), "%.*s", (int)(end - from), from);
			return value;
		}
	}
	return NULL;
}

static void
send_bytes(struct client *c, const char *bytes, size_t len)
{
	while (len) {
		ssize_t n = send(c->fd, bytes, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		/* A server may refuse a body while it is still being sent: the answer tells. */
		if (n < 0)
			return;
		bytes += n;
		len -= (size_t)n;
	}
}

void
client_send_bytes(struct client *c, const char *method, const char *target, const char *headers,
		  const void *body, size_t body_len)
{
	size_t room = strlen(target) + (headers ? strlen(headers) : 0) + 256;
	char *head = malloc(room);
	int n;

	assert_non_null(head);
	if (body)
		n = snprintf(head, room,
			     "%s %s HTTP/1.1\r\nHost: localhost:5984\r\nContent-Length: %zu\r\n"
			     "%s\r\n",
			     method, target, body_len, headers ? headers : "");
	else
		n = snprintf(head, room, "%s %s HTTP/1.1\r\nHost: localhost:5984\r\n%s\r\n", method,
			     target, headers ? headers : "");
	assert_true(n > 0 && (size_t)n < room);
	send_bytes(c, head, (size_t)n);
	if (body)
		send_bytes(c, body, body_len);
	free(head);
}

void
client_send_raw(struct client *c, const char *bytes)
{
	send_bytes(c, bytes, strlen(bytes));
}

void
client_send(struct client *c, const char *method, const char *target, const char *headers,
	    const char *body)
{
	client_send_bytes(c, method, target, headers, body, body ? strlen(body) : 0);
}

/* More bytes within the time; false at the end of the stream or in time. */
static bool
more(struct client *c, int timeout_ms)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };
	ssize_t n;

	if (c->eof || poll(&p, 1, timeout_ms) <= 0)
		return false;
	if (c->cap - c->len < 65536) {
		c->cap = 2 * c->cap + 65536;
		c->in = realloc(c->in, c->cap + 1);
		assert_non_null(c->in);
	}
	n = recv(c->fd, c->in + c->len, c->cap - c->len, 0);
	if (n <= 0) {
		c->eof = true;
		return false;
	}
	c->len += (size_t)n;
	c->in[c->len] = '\0';
	return true;
}

static void
use(struct client *c, size_t n)
{
	assert_true(n <= c->len);
	memmove(c->in, c->in + n, c->len - n + 1);
	c->len -= n;
}

/* False if the connection ends, or the time passes, before a whole head has come. */
static bool
receive_head(struct client *c, struct response *r)
{
	char *end;

	while (c->len == 0 || !(end = strstr(c->in, "\r\n\r\n"))) {
		if (!more(c, TIMEOUT_MS))
			return false;
	}
	r->head = strndup(c->in, (size_t)(end - c->in) + 2);
	assert_non_null(r->head);
	assert_int_equal(sscanf(r->head, "HTTP/1.1 %d", &r->status), 1);
	use(c, (size_t)(end - c->in) + 4);
	return true;
}

struct response
client_receive_head(struct client *c)
{
	struct response r = { 0 };

	if (!receive_head(c, &r))
		fail_msg("no answer");
	return r;
}

static void
append(struct response *r, const char *bytes, size_t n)
{
	/* To twice of what is needed: a body of many chunks is not to be moved with each. */
	if (r->body_len + n + 1 > r->body_cap) {
		r->body_cap = 2 * (r->body_len + n) + 1;
		r->body = realloc(r->body, r->body_cap);
		assert_non_null(r->body);
	}
	memcpy(r->body + r->body_len, bytes, n);
	r->body_len += n;
	r->body[r->body_len] = '\0';
}

/* A whole chunk into the response, or into the line when there is none. 0: the last; -1: none. */
static int
take_chunk(struct client *c, struct response *r, int timeout_ms)
{
	char *line_end;
	size_t size;
	size_t head;

	while (c->len == 0 || !(line_end = strstr(c->in, "\r\n"))) {
		if (!more(c, timeout_ms))
			return -1;
	}
	size = strtoul(c->in, NULL, 16);
	head = (size_t)(line_end - c->in) + 2;
	while (c->len < head + size + 2) {
		if (!more(c, timeout_ms))
			return -1;
	}
	if (r) {
		append(r, c->in + head, size);
	} else {
		c->line = realloc(c->line, c->line_len + size + 1);
		assert_non_null(c->line);
		memcpy(c->line + c->line_len, c->in + head, size);
		c->line_len += size;
		c->line[c->line_len] = '\0';
	}
	use(c, head + size + 2);
	return size != 0;
}

/* The body behind a head. */
static struct response
receive_body(struct client *c, struct response r, bool head_only)
{
	const char *length = response_header(&r, "Content-Length");
	const char *encoding;

	append(&r, "", 0);
	if (head_only || r.status == 304)
		return r;
	if (length) {
		size_t n = strtoul(length, NULL, 10);

		while (c->len < n && more(c, TIMEOUT_MS)) {
		}
		r.broken = c->len < n;
		if (!r.broken) {
			append(&r, c->len ? c->in : "", n);
			if (n)
				use(c, n);
		}
		return r;
	}
	encoding = response_header(&r, "Transfer-Encoding");
	if (encoding && strcmp(encoding, "chunked") == 0) {
		int got;

		while ((got = take_chunk(c, &r, TIMEOUT_MS)) > 0) {
		}
		r.broken = got < 0;
	}
	return r;
}

struct response
client_receive(struct client *c, bool head_only)
{
	return receive_body(c, client_receive_head(c), head_only);
}

struct response
client_receive_or_end(struct client *c, bool head_only)
{
	struct response r = { 0 };

	if (receive_head(c, &r))
		return receive_body(c, r, head_only);
	if (!c->eof)
		fail_msg("neither an answer nor an end");
	r.broken = true;
	return r;
}

const char *
client_line(struct client *c, int timeout_ms)
{
	static _Thread_local char line[LINE_BYTES];
	char *newline;

	while (c->line_len == 0 || !(newline = memchr(c->line, '\n', c->line_len))) {
		int got;

		if (c->ended)
			return NULL;
		got = take_chunk(c, NULL, timeout_ms);
		if (got == 0)
			c->ended = true;
		if (got < 0)
			return NULL;
	}
	assert_true((size_t)(newline - c->line) < sizeof(line));
	memcpy(line, c->line, (size_t)(newline - c->line));
	line[newline - c->line] = '\0';
	c->line_len -= (size_t)(newline - c->line) + 1;
	memmove(c->line, newline + 1, c->line_len + 1);
	return line;
}

bool
client_ended(const struct client *c)
{
	return c->ended;
}

bool
client_lost(const struct client *c)
{
	return c->eof;
}

/* ---- The server ---- */

static void *
serve(void *arg)
{
	struct err err = { 0 };

	return server_run(arg, &err) == STATUS_OK ? NULL : arg;
}

struct door *
door_start(bool with_admin)
{
	static const door_setting none[] = { { NULL } };

	return door_start_with(with_admin, none, NULL);
}

static const struct setting_group *const setting_groups[] = {
	&couch_setting_group,  &access_setting_group, &log_setting_group,
	&server_setting_group, &js_setting_group,
};

static struct settings *
make_settings(bool with_admin, const door_setting *wanted)
{
	struct settings *settings = settings_new(setting_groups, 5);
	struct err err = { 0 };

	assert_non_null(settings);
	if (!test_scheme_is_packed())
		assert_int_equal(
			settings_set(settings, STR("frond"), STR("scheme"), STR("exploded"), &err),
			STATUS_OK);
	if (with_admin)
		assert_int_equal(
			settings_set_person(settings, STR("admin"), STR("secret"), false, &err),
			STATUS_OK);
	assert_int_equal(
		settings_set(settings, STR("chttpd_auth"), STR("iterations"), STR("10"), &err),
		STATUS_OK);
	for (; (*wanted)[0]; wanted++)
		if (settings_set(settings, str_from_cstr((*wanted)[0]), str_from_cstr((*wanted)[1]),
				 str_from_cstr((*wanted)[2]), &err) != STATUS_OK)
			fail_msg("%s", err.text);
	return settings;
}

struct door *
door_start_with(bool with_admin, const door_setting *settings, const char *utils_dir)
{
	return door_start_handled(with_admin, settings, utils_dir, couch_handle);
}

static void
door_open_store(struct door *d)
{
	const struct kv_options options = { .create = true,
					    .no_sync = true,
					    .shape = &rev_store_shape,
					    .recent_bytes = RECENT_BYTES };
	struct err err = { 0 };
	char path[128];
	char url[256];

	(void)snprintf(d->path, sizeof(d->path), "/tmp/frond-door-XXXXXX");
	assert_non_null(mkdtemp(d->path));
	(void)snprintf(path, sizeof(path), "%s/store", d->path);
	test_store_url(path, url, sizeof(url));
	if (kv_open(url, &options, &d->store, &err) != STATUS_OK)
		fail_msg("%s", err.text);
}

/* A door of this test has brought limits, which hold for all doors of a process. */
static bool limited;

static bool hears;

void
doors_hear(void)
{
	hears = true;
}

static void
door_hear(struct door *d)
{
	d->news = people_news_new(d->store, d->live);
	d->chores = chores_new(d->store);
	assert_true(d->news && d->chores);
	people_news_chores_add(d->news, d->chores);
	assert_int_equal(chores_start(d->chores, NULL), STATUS_OK);
}

static struct door *
door_serve(struct door *d, bool with_admin, const door_setting *settings, const char *utils_dir,
	   void (*handler)(struct http_exchange *x, void *couch))
{
	struct couch_config config = { .utils_dir = utils_dir };
	struct server_config server = { .loops = 2, .drain_timeout_ms = 5000 };
	struct js_config js;
	struct err err = { 0 };
	pthread_t thread;

	d->settings = make_settings(with_admin, settings);
	if (people_prepare(d->store, d->settings, &err) != STATUS_OK ||
	    settings_live_new(d->store, d->settings, &people_live_ops, NULL, &d->live, &err) !=
		    STATUS_OK ||
	    settings_live_reload(d->live, &err) != STATUS_OK)
		fail_msg("%s", err.text);
	config.store = d->store;
	config.live = d->live;
	js_config_set(&js, settings_of(d->settings, &js_setting_group));
	js.worker = getenv("FROND_JS_WORKER");
	assert_int_equal(js_new(&js, &d->js, &err), STATUS_OK);
	config.js = d->js;
	if (view_engine_new(&(struct view_engine_config){ .store = d->store }, &d->views, &err) !=
	    STATUS_OK)
		fail_msg("%s", err.text);
	config.views = d->views;
	if (hears)
		door_hear(d);
	config.news = d->news;
	rev_register();
	/* A change of rights leaves a stamp among people, too. */
	person_register();
	if (!limited) {
		d->limits = limits_new(d->live);
		assert_non_null(d->limits);
		ops_limit(d->limits);
		limited = true;
	}
	d->couch = couch_new(&config);
	assert_non_null(d->couch);
	server.handler = handler;
	server.request_bytes = (size_t)((const struct server_settings *)settings_of(
						d->settings, &server_setting_group))
				       ->request_bytes;
	server.arg = d->couch;
	server.loop_new = couch_loop_new;
	server.loop_free = couch_loop_free;
	if (server_new(&server, &d->server, &err) != STATUS_OK ||
	    server_listen(d->server, "127.0.0.1:0", &err) != STATUS_OK)
		fail_msg("%s", err.text);
	d->port = server_port(d->server);
	assert_int_equal(pthread_create(&thread, NULL, serve, d->server), 0);
	d->thread = (uint64_t)thread;
	d->client = client_open(d->port);
	return d;
}

struct door *
door_start_handled(bool with_admin, const door_setting *settings, const char *utils_dir,
		   void (*handler)(struct http_exchange *x, void *couch))
{
	struct door *d = calloc(1, sizeof(*d));

	assert_non_null(d);
	door_open_store(d);
	return door_serve(d, with_admin, settings, utils_dir, handler);
}

struct door *
door_start_beside(const struct door *other, bool with_admin, const door_setting *settings)
{
	struct door *d = calloc(1, sizeof(*d));

	assert_non_null(d);
	d->beside = true;
	d->store = other->store;
	return door_serve(d, with_admin, settings, NULL, couch_handle);
}

void
door_stop(struct door *d)
{
	void *failed;

	client_close(d->client);
	response_release(&d->last);
	server_stop(d->server);
	assert_int_equal(pthread_join((pthread_t)d->thread, &failed), 0);
	assert_null(failed);
	assert_true(server_free(d->server));
	couch_free(d->couch);
	if (d->chores)
		chores_stop(d->chores);
	chores_free(d->chores);
	people_news_free(d->news);
	if (d->limits) {
		ops_limit(NULL);
		limits_free(d->limits);
		limited = false;
	}
	view_engine_free(d->views);
	js_free(d->js);
	settings_live_free(d->live);
	settings_free(d->settings);
	if (!d->beside) {
		kv_close(d->store);
		test_remove_tree(d->path);
	}
	free(d);
}

const struct response *
door_request(struct door *d, const char *method, const char *target, const char *headers,
	     const char *body)
{
	char all[2048];

	response_release(&d->last);
	if (d->client->eof) {
		client_close(d->client);
		d->client = client_open(d->port);
	}
	(void)snprintf(all, sizeof(all), "%s%s", headers ? headers : "",
		       body && !(headers && strcasestr(headers, "content-type:"))
			       ? "Content-Type: application/json\r\n"
			       : "");
	client_send(d->client, method, target, all, body);
	d->last = client_receive(d->client, strcmp(method, "HEAD") == 0);
	if (response_header(&d->last, "Connection") &&
	    strcmp(response_header(&d->last, "Connection"), "close") == 0)
		d->client->eof = true;
	return &d->last;
}

void
door_expect(struct door *d, const char *method, const char *target, const char *body, int status,
	    const char *text)
{
	const struct response *r = door_request(d, method, target, ACCEPT_JSON, body);

	if (r->status != status || !strstr(r->body, text))
		fail_msg("%s %s: expected %d with %s, got %d: %s", method, target, status, text,
			 r->status, r->body);
	if (strcmp(method, "HEAD") != 0 && r->status != 304)
		assert_int_equal(r->body[r->body_len - 1], '\n');
}

void
door_expect_body(struct door *d, const char *method, const char *target, const char *body,
		 int status, const char *text)
{
	const struct response *r = door_request(d, method, target, ACCEPT_JSON, body);
	size_t len = strlen(text);

	if (r->status != status || r->body_len != len + 1 || memcmp(r->body, text, len) != 0 ||
	    r->body[len] != '\n')
		fail_msg("%s %s: expected %d %s, got %d: %s", method, target, status, text,
			 r->status, r->body);
}

void
door_has(const struct door *d, const char *text)
{
	if (!strstr(d->last.body, text))
		fail_msg("expected %s in: %s", text, d->last.body);
}

void
door_has_not(const struct door *d, const char *text)
{
	if (strstr(d->last.body, text))
		fail_msg("expected no %s in: %s", text, d->last.body);
}

const char *
door_member(const struct door *d, const char *name)
{
	static char values[8][256];
	static unsigned next;
	char *value = values[next++ % 8];
	char wanted[64];
	const char *at;
	size_t n;

	(void)snprintf(wanted, sizeof(wanted), "\"%s\":\"", name);
	at = strstr(d->last.body, wanted);
	if (!at)
		fail_msg("no %s in: %s", name, d->last.body);
	at += strlen(wanted);
	n = strcspn(at, "\"");
	assert_true(n < 256);
	memcpy(value, at, n);
	value[n] = '\0';
	return value;
}

void
door_create(struct door *d, const char *name)
{
	char target[256];

	(void)snprintf(target, sizeof(target), "/%s", name);
	door_expect_body(d, "PUT", target, NULL, 201, "{\"ok\":true}");
}
