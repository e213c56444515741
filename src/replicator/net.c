#include "replicator/net.h"

#include <curl/curl.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/mem.h"
#include "server/loop.h"

enum {
	CACHED_CONNECTIONS = 256, /* idle ones, kept for reuse */
};

struct net {
	struct loop *loop;
	struct net_config config;
	CURLM *multi;
	uv_timer_t timer;
	unsigned open_handles; /* of libuv: the timer and the sockets' polls */
};

/* One socket of libcurl's. */
struct net_socket {
	uv_poll_t poll;
	struct net *net;
	curl_socket_t fd;
};

struct net_call {
	struct net *net;
	struct net_scope *scope;
	struct net_call *next;
	struct net_call **link; /* what points to it in its scope */
	CURL *easy;
	struct curl_slist *headers;
	struct net_bell bell;
	struct buf in;     /* read from the socket, not yet asked for */
	struct buf read;   /* what the last net_read() gave out */
	struct buf out;    /* to be sent */
	uint64_t moved_ns; /* when a byte last moved */
	uint64_t stall_ms;
	char type[NET_TYPE_BYTES];
	char failure[CURL_ERROR_SIZE];
	int status;
	CURLcode code;
	bool streams;
	bool attached; /* to the multi handle */
	bool answered; /* the headers are complete */
	bool done;
	bool in_paused;
	bool out_paused;
	bool cancelled;
};

/* ---- Bells ---- */

struct net_waiter {
	struct event rung;
	struct net_waiter *next;
};

void
net_bell_wait(struct net_bell *bell, uint64_t deadline_ns)
{
	struct net_waiter w;
	struct net_waiter **at;

	event_init(&w.rung);
	w.next = bell->waiters;
	bell->waiters = &w;
	(void)event_wait(&w.rung, deadline_ns);
	for (at = &bell->waiters; *at; at = &(*at)->next) {
		if (*at == &w) {
			*at = w.next;
			break;
		}
	}
}

void
net_bell_ring(struct net_bell *bell)
{
	for (struct net_waiter *w = bell->waiters; w; w = w->next)
		event_set(&w->rung);
}

void
net_scope_cancel(struct net_scope *scope)
{
	scope->cancelled = true;
	for (struct net_call *c = scope->calls; c; c = c->next) {
		c->cancelled = true;
		net_bell_ring(&c->bell);
	}
	net_bell_ring(&scope->bell);
}

enum status
net_pause(struct net_scope *scope, uint64_t ms)
{
	uint64_t until = clock_after_ms(ms);

	while (!scope->cancelled && clock_mono_ns() < until)
		net_bell_wait(&scope->bell, until);
	return scope->cancelled ? STATUS_CANCELLED : STATUS_OK;
}

/* ---- Between libcurl and libuv ---- */

/* Collects the transfers that have ended. */
static void
take_ended(struct net *n)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(n->multi, &left))) {
		struct net_call *c = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&c);
		c->code = message->data.result;
		c->done = true;
		net_bell_ring(&c->bell);
	}
}

static void
on_timer(uv_timer_t *timer)
{
	struct net *n = timer->data;
	int running;

	curl_multi_socket_action(n->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	take_ended(n);
}

static int
set_timer(CURLM *multi, long timeout_ms, void *arg)
{
	struct net *n = arg;

	(void)multi;
	if (timeout_ms < 0) {
		uv_timer_stop(&n->timer);
		return 0;
	}
	uv_update_time(&n->loop->uv);
	return uv_timer_start(&n->timer, on_timer, (uint64_t)timeout_ms, 0) == 0 ? 0 : -1;
}

static void
on_socket(uv_poll_t *poll, int status, int events)
{
	struct net_socket *s = poll->data;
	struct net *n = s->net;
	int flags = 0;
	int running;

	if (status < 0)
		flags = CURL_CSELECT_ERR;
	if (events & UV_READABLE)
		flags |= CURL_CSELECT_IN;
	if (events & UV_WRITABLE)
		flags |= CURL_CSELECT_OUT;
	curl_multi_socket_action(n->multi, s->fd, flags, &running);
	take_ended(n);
}

static void
on_socket_closed(uv_handle_t *handle)
{
	struct net_socket *s = handle->data;

	s->net->open_handles--;
	mem_free(s);
}

static struct net_socket *
socket_new(struct net *n, curl_socket_t fd)
{
	struct net_socket *s = mem_zalloc(sizeof(*s));

	if (!s)
		return NULL;
	s->net = n;
	s->fd = fd;
	if (uv_poll_init_socket(&n->loop->uv, &s->poll, fd) != 0) {
		mem_free(s);
		return NULL;
	}
	s->poll.data = s;
	n->open_handles++;
	curl_multi_assign(n->multi, fd, s);
	return s;
}

static int
watch_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket)
{
	struct net *n = arg;
	struct net_socket *s = socket;
	int events = 0;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (s) {
			curl_multi_assign(n->multi, fd, NULL);
			uv_poll_stop(&s->poll);
			uv_close((uv_handle_t *)&s->poll, on_socket_closed);
		}
		return 0;
	}
	if (!s)
		s = socket_new(n, fd);
	if (!s)
		return -1;
	if (what & CURL_POLL_IN)
		events |= UV_READABLE;
	if (what & CURL_POLL_OUT)
		events |= UV_WRITABLE;
	return uv_poll_start(&s->poll, events, on_socket) == 0 ? 0 : -1;
}

enum status
net_new(struct loop *loop, const struct net_config *config, struct net **ret, struct err *err)
{
	struct net *n = mem_zalloc(sizeof(*n));

	if (!n)
		return err_set(err, STATUS_NOMEM, "out of memory for an HTTP client");
	n->loop = loop;
	n->config = *config;
	curl_global_init(CURL_GLOBAL_DEFAULT);
	n->multi = curl_multi_init();
	if (!n->multi || uv_timer_init(&loop->uv, &n->timer) != 0) {
		if (n->multi)
			curl_multi_cleanup(n->multi);
		mem_free(n);
		return err_set(err, STATUS_NOMEM, "out of memory for an HTTP client");
	}
	n->timer.data = n;
	n->open_handles = 1;
	curl_multi_setopt(n->multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
	curl_multi_setopt(n->multi, CURLMOPT_SOCKETDATA, n);
	curl_multi_setopt(n->multi, CURLMOPT_TIMERFUNCTION, set_timer);
	curl_multi_setopt(n->multi, CURLMOPT_TIMERDATA, n);
	curl_multi_setopt(n->multi, CURLMOPT_MAXCONNECTS, (long)CACHED_CONNECTIONS);
	*ret = n;
	return STATUS_OK;
}

static void
on_timer_closed(uv_handle_t *handle)
{
	struct net *n = handle->data;

	n->open_handles--;
}

void
net_free(struct net *n)
{
	if (!n)
		return;
	curl_multi_cleanup(n->multi);
	uv_timer_stop(&n->timer);
	uv_close((uv_handle_t *)&n->timer, on_timer_closed);
	while (n->open_handles)
		uv_run(&n->loop->uv, UV_RUN_ONCE);
	mem_free(n);
}

/* ---- libcurl's callbacks for one transfer ---- */

static void
moved(struct net_call *c)
{
	c->moved_ns = clock_mono_ns();
	net_bell_ring(&c->bell);
}

static size_t
on_body(char *data, size_t size, size_t n, void *arg)
{
	struct net_call *c = arg;

	if (c->cancelled)
		return 0;
	if (c->in.len && c->in.len + size * n > NET_BUFFER_BYTES) {
		c->in_paused = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	buf_append(&c->in, data, size * n);
	c->answered = true;
	moved(c);
	return buf_status(&c->in) == STATUS_OK ? size * n : 0;
}

static void
keep_type(struct net_call *c, struct str line)
{
	static const struct str name = { "content-type:", 13 };
	struct str value;

	if (line.len <= name.len || !str_eq_nocase(str_of(line.ptr, name.len), name))
		return;
	value = str_trim(str_skip(line, name.len));
	if (value.len >= sizeof(c->type))
		value.len = sizeof(c->type) - 1;
	memcpy(c->type, value.ptr, value.len);
	c->type[value.len] = '\0';
}

/* A line of the answer's head; the empty one ends it. After a redirect or a 100 comes another. */
static size_t
on_header(char *data, size_t size, size_t n, void *arg)
{
	struct net_call *c = arg;
	struct str line = str_trim(str_of(data, size * n));
	long status = 0;

	curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
	if (str_starts_with(line, STR("HTTP/")))
		c->type[0] = '\0';
	else if (line.len)
		keep_type(c, line);
	else if (status >= 200 && (status < 300 || status >= 400 || status == 304)) {
		c->status = (int)status;
		c->answered = true;
	}
	moved(c);
	return size * n;
}

static size_t
on_send(char *to, size_t size, size_t n, void *arg)
{
	struct net_call *c = arg;
	size_t taken = c->out.len < size * n ? c->out.len : size * n;

	if (c->cancelled)
		return CURL_READFUNC_ABORT;
	if (taken == 0) {
		c->out_paused = true;
		return CURL_READFUNC_PAUSE;
	}
	memcpy(to, c->out.ptr, taken);
	buf_consume(&c->out, taken);
	moved(c);
	return taken;
}

static int
on_progress(void *arg, curl_off_t down_all, curl_off_t down, curl_off_t up_all, curl_off_t up)
{
	struct net_call *c = arg;

	(void)down_all;
	(void)down;
	(void)up_all;
	(void)up;
	return c->cancelled ? 1 : 0;
}

/* ---- Calls ---- */

static bool
add_header(struct net_call *c, struct str name, struct str value)
{
	struct buf AUTO(buf_release) line = BUF_INIT(NET_BUFFER_BYTES);
	struct curl_slist *grown;

	buf_printf(&line, "%.*s:%s%.*s", STR_ARG(name), value.len ? " " : "", STR_ARG(value));
	buf_append_byte(&line, '\0');
	if (buf_status(&line) != STATUS_OK)
		return false;
	grown = curl_slist_append(c->headers, line.ptr);
	if (!grown)
		return false;
	c->headers = grown;
	return true;
}

static void
set_tls(struct net_call *c, const struct net_config *config)
{
	curl_easy_setopt(c->easy, CURLOPT_SSL_VERIFYPEER, config->verify ? 1L : 0L);
	curl_easy_setopt(c->easy, CURLOPT_SSL_VERIFYHOST, config->verify ? 2L : 0L);
	if (config->trusted)
		curl_easy_setopt(c->easy, CURLOPT_CAINFO, config->trusted);
	if (config->certificate)
		curl_easy_setopt(c->easy, CURLOPT_SSLCERT, config->certificate);
	if (config->key)
		curl_easy_setopt(c->easy, CURLOPT_SSLKEY, config->key);
	if (config->key_password)
		curl_easy_setopt(c->easy, CURLOPT_KEYPASSWD, config->key_password);
}

static void
set_body(struct net_call *c, const struct net_request *rq)
{
	if (rq->streams) {
		curl_easy_setopt(c->easy, CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(c->easy, CURLOPT_READFUNCTION, on_send);
		curl_easy_setopt(c->easy, CURLOPT_READDATA, c);
		curl_easy_setopt(c->easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)rq->stream_bytes);
	} else if (rq->body.ptr) {
		curl_easy_setopt(c->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)rq->body.len);
		curl_easy_setopt(c->easy, CURLOPT_POSTFIELDS, rq->body.ptr);
	} else {
		curl_easy_setopt(c->easy, CURLOPT_HTTPGET, 1L);
	}
	curl_easy_setopt(c->easy, CURLOPT_CUSTOMREQUEST, rq->method);
}

static void
set_options(struct net_call *c, const struct net_request *rq)
{
	CURL *e = c->easy;

	curl_easy_setopt(e, CURLOPT_PRIVATE, c);
	curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(e, CURLOPT_ERRORBUFFER, c->failure);
	curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(e, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 1L);
	curl_easy_setopt(e, CURLOPT_POSTREDIR, (long)CURL_REDIR_POST_ALL);
	curl_easy_setopt(e, CURLOPT_MAXREDIRS, (long)NET_REDIRECTS);
	curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)rq->connect_ms);
	curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(e, CURLOPT_USERAGENT, "frond-replicator/" FROND_VERSION);
	/* The environment's proxies are for people's commands, not for a server. */
	curl_easy_setopt(e, CURLOPT_PROXY, rq->proxy ? rq->proxy : "");
	curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(e, CURLOPT_WRITEDATA, c);
	curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(e, CURLOPT_HEADERDATA, c);
	curl_easy_setopt(e, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(e, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(e, CURLOPT_XFERINFODATA, c);
	if (rq->user) {
		curl_easy_setopt(e, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
		curl_easy_setopt(e, CURLOPT_USERNAME, rq->user);
		curl_easy_setopt(e, CURLOPT_PASSWORD, rq->password ? rq->password : "");
	}
	if (rq->inflate)
		curl_easy_setopt(e, CURLOPT_ACCEPT_ENCODING, "gzip");
	set_body(c, rq);
}

static enum status
prepare(struct net_call *c, const struct net_request *rq)
{
	/* Nobody waits for a "100 Continue": bodies are resent when it comes to that. */
	bool ok = add_header(c, STR("Expect"), STR(""));

	for (size_t i = 0; i < rq->headers_count && ok; i++)
		ok = add_header(c, rq->headers[i].name, rq->headers[i].value);
	if (!ok)
		return STATUS_NOMEM;
	set_options(c, rq);
	set_tls(c, &c->net->config);
	if (curl_easy_setopt(c->easy, CURLOPT_URL, rq->url) != CURLE_OK ||
	    curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, c->headers) != CURLE_OK)
		return STATUS_NOMEM;
	return STATUS_OK;
}

enum status
net_open(struct net *n, const struct net_request *rq, struct net_call **ret, struct err *err)
{
	struct net_call *c;

	if (rq->scope->cancelled)
		return err_set(err, STATUS_CANCELLED, "the replication is being stopped");
	c = mem_zalloc(sizeof(*c));
	if (!c)
		return err_set(err, STATUS_NOMEM, "out of memory for a request");
	c->net = n;
	c->scope = rq->scope;
	c->stall_ms = rq->stall_ms;
	c->streams = rq->streams;
	c->moved_ns = clock_mono_ns();
	buf_init(&c->in, (size_t)NET_BUFFER_BYTES + CURL_MAX_READ_SIZE);
	buf_init(&c->read, (size_t)NET_BUFFER_BYTES + CURL_MAX_READ_SIZE);
	buf_init(&c->out, NET_BUFFER_BYTES);
	c->next = rq->scope->calls;
	c->link = &rq->scope->calls;
	if (c->next)
		c->next->link = &c->next;
	rq->scope->calls = c;
	c->easy = curl_easy_init();
	if (!c->easy || prepare(c, rq) != STATUS_OK ||
	    curl_multi_add_handle(n->multi, c->easy) != CURLM_OK) {
		net_close(c);
		return err_set(err, STATUS_NOMEM, "out of memory for a request");
	}
	c->attached = true;
	*ret = c;
	return STATUS_OK;
}

void
net_close(struct net_call *c)
{
	if (!c)
		return;
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	if (c->attached)
		curl_multi_remove_handle(c->net->multi, c->easy);
	if (c->easy)
		curl_easy_cleanup(c->easy);
	curl_slist_free_all(c->headers);
	buf_release(&c->in);
	buf_release(&c->read);
	buf_release(&c->out);
	mem_free(c);
}

/* Waits for something to happen to the call. */
static enum status
await(struct net_call *c, struct err *err)
{
	uint64_t until = c->moved_ns + c->stall_ms * CLOCK_NS_PER_MS;

	if (c->cancelled)
		return err_set(err, STATUS_CANCELLED, "the replication is being stopped");
	if (clock_mono_ns() >= until)
		return err_set(err, STATUS_TIMEOUT, "no byte has moved for %llu ms",
			       (unsigned long long)c->stall_ms);
	net_bell_wait(&c->bell, until);
	return STATUS_OK;
}

static enum status
broken(const struct net_call *c, struct err *err)
{
	if (c->cancelled)
		return err_set(err, STATUS_CANCELLED, "the replication is being stopped");
	if (c->code == CURLE_COULDNT_RESOLVE_HOST)
		return err_set(err, STATUS_IO, "nxdomain: %s", c->failure);
	return err_set(err, STATUS_IO, "%s",
		       c->failure[0] ? c->failure : curl_easy_strerror(c->code));
}

enum status
net_write(struct net_call *c, struct str data, struct err *err)
{
	while (data.len) {
		size_t room = NET_BUFFER_BYTES - c->out.len;
		size_t n = data.len < room ? data.len : room;

		if (c->done && c->code != CURLE_OK)
			return broken(c, err);
		if (c->done || c->answered)
			return STATUS_NOT_FOUND;
		if (n == 0) {
			TRY(await(c, err));
			continue;
		}
		buf_append(&c->out, data.ptr, n);
		TRY(buf_status(&c->out));
		data = str_skip(data, n);
		/* The wait for the other side begins when there is something to wait for. */
		c->moved_ns = clock_mono_ns();
		if (c->out_paused) {
			c->out_paused = false;
			curl_easy_pause(c->easy, c->in_paused ? CURLPAUSE_RECV : CURLPAUSE_CONT);
		}
	}
	return STATUS_OK;
}

enum status
net_answer(struct net_call *c, int *ret_status, struct err *err)
{
	while (!c->answered && !c->done)
		TRY(await(c, err));
	if (!c->answered)
		return broken(c, err);
	*ret_status = c->status;
	return STATUS_OK;
}

struct str
net_content_type(const struct net_call *c)
{
	return str_from_cstr(c->type);
}

enum status
net_read(struct net_call *c, struct str *ret, struct err *err)
{
	struct buf empty;

	while (c->in.len == 0) {
		if (c->done)
			return c->code == CURLE_OK ? STATUS_NOT_FOUND : broken(c, err);
		if (c->in_paused) {
			c->in_paused = false;
			c->moved_ns = clock_mono_ns();
			curl_easy_pause(c->easy, c->out_paused ? CURLPAUSE_SEND : CURLPAUSE_CONT);
			continue;
		}
		TRY(await(c, err));
	}
	empty = c->read;
	c->read = c->in;
	c->in = empty;
	buf_clear(&c->in);
	*ret = buf_str(&c->read);
	return STATUS_OK;
}

/* ---- URLs ---- */

static struct str
url_part(CURLU *url, CURLUPart part, unsigned flags, struct arena *arena)
{
	char *text = NULL;
	struct str copy = { NULL, 0 };

	if (curl_url_get(url, part, &text, flags) == CURLUE_OK && text)
		copy = arena_dup(arena, str_from_cstr(text));
	curl_free(text);
	return copy;
}

static enum status
url_take(CURLU *url, struct arena *arena, struct net_url *ret, struct err *err)
{
	struct str port = url_part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT, arena);
	uint64_t number = 0;

	ret->scheme = url_part(url, CURLUPART_SCHEME, 0, arena);
	ret->host = url_part(url, CURLUPART_HOST, 0, arena);
	ret->path = url_part(url, CURLUPART_PATH, 0, arena);
	ret->user = url_part(url, CURLUPART_USER, CURLU_URLDECODE, arena);
	ret->password = url_part(url, CURLUPART_PASSWORD, CURLU_URLDECODE, arena);
	curl_url_set(url, CURLUPART_USER, NULL, 0);
	curl_url_set(url, CURLUPART_PASSWORD, NULL, 0);
	ret->bare = url_part(url, CURLUPART_URL, 0, arena);
	if (!ret->scheme.ptr || !ret->host.ptr || !ret->bare.ptr || !str_to_u64(port, &number) ||
	    number == 0 || number > UINT16_MAX)
		return err_set(err, STATUS_INVALID, "not a URL of a server");
	if (!str_eq(ret->scheme, STR("http")) && !str_eq(ret->scheme, STR("https")))
		return err_set(err, STATUS_INVALID, "neither http nor https");
	ret->port = (uint16_t)number;
	return STATUS_OK;
}

enum status
net_url_parse(struct str text, struct arena *arena, struct net_url *ret, struct err *err)
{
	struct str copy = arena_dup(arena, text);
	CURLU *url = curl_url();
	enum status status = STATUS_NOMEM;

	*ret = (struct net_url){ 0 };
	if (copy.ptr && url) {
		status = memchr(copy.ptr, '\0', copy.len) ||
					 curl_url_set(url, CURLUPART_URL, copy.ptr, 0) != CURLUE_OK
				 ? err_set(err, STATUS_INVALID, "not a URL")
				 : url_take(url, arena, ret, err);
	}
	curl_url_cleanup(url);
	return status;
}

void
net_escape(struct buf *b, struct str s)
{
	static const char hex[] = "0123456789ABCDEF";

	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		    c == '-' || c == '_' || c == '.' || c == '~') {
			buf_append_byte(b, c);
			continue;
		}
		buf_append_byte(b, '%');
		buf_append_byte(b, (uint8_t)hex[c >> 4]);
		buf_append_byte(b, (uint8_t)hex[c & 15]);
	}
}
