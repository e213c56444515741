#include "replicator/net.h"

#include <assert.h>
#include <curl/curl.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/metric.h"
#include "http/gunzip.h"
#include "loop/libuv.h"
#include "replicator/redirect.h"

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

/* One socket that libcurl wants to be watched. */
struct net_socket {
	uv_poll_t poll;
	struct net *net;
	curl_socket_t fd;
};

struct net_call {
	struct net *net;
	struct net_scope *scope;
	struct net_call *next;
	struct net_call **link; /* the pointer to this call in its scope's list */
	CURL *easy;
	struct curl_slist *headers;
	struct net_bell bell;
	struct buf in;     /* received, and not yet given out */
	struct buf read;   /* the piece that the last net_read() gave out */
	struct buf out;    /* of a streamed body: not yet taken by libcurl */
	uint64_t moved_ns; /* when a byte last moved in either direction */
	uint64_t stall_ms;
	/*
	 * The window that the minimum rate is measured in: the bytes that have moved, and how long
	 * the caller has waited for them. It begins with the first byte, and time in which the
	 * caller itself keeps the transfer waiting does not count.
	 */
	uint64_t window_bytes;
	uint64_t window_ns;
	curl_off_t sent;       /* bytes of the request's body */
	size_t head_bytes;     /* of the heads so far */
	struct gunzip *gunzip; /* NULL: the body is not compressed */
	struct str packed;     /* the rest of `read` that is to be inflated */
	char type[NET_TYPE_BYTES];
	const char *refusal; /* why the transfer was ended here; NULL: it was not */
	char failure[CURL_ERROR_SIZE];
	int status;
	CURLcode code;
	bool streams;
	bool inflate;
	bool heartbeats;
	bool attached; /* `easy` has been added to the multi handle */
	bool answered; /* the answer's headers are complete */
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

static const char *const call_ends[] = { "answered", "failed" };

METRIC_COUNTERS(calls_ended, "frond_replication_requests_total", METRIC_NUMBER,
		"Requests of replications to their sources and targets, by whether an answer came, "
		"whatever its status.",
		"end", call_ends);

enum call_limit {
	CALL_LIMIT_REDIRECT,
	CALL_LIMIT_HEAD,
	CALL_LIMIT_ENCODING,
	CALL_LIMIT_RATE,
};

static const char *const call_limits[] = {
	[CALL_LIMIT_REDIRECT] = "redirect",
	[CALL_LIMIT_HEAD] = "head",
	[CALL_LIMIT_ENCODING] = "encoding",
	[CALL_LIMIT_RATE] = "minimum_rate",
};

METRIC_COUNTERS(calls_refused, "frond_replication_refusals_total", METRIC_NUMBER,
		"Requests of replications that ended because the other server passed a limit.",
		"limit", call_limits);

/* Marks the calls whose transfers have ended, and wakes their fibers. */
static void
net_collect_ended(struct net *n)
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
		metric_add_at(&calls_ended, c->code != CURLE_OK, 1);
		net_bell_ring(&c->bell);
	}
}

static void
net_timer_fired(uv_timer_t *timer)
{
	struct net *n = timer->data;
	int running;

	curl_multi_socket_action(n->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	net_collect_ended(n);
}

static int
net_set_timer(CURLM *multi, long timeout_ms, void *arg)
{
	struct net *n = arg;

	(void)multi;
	if (timeout_ms < 0) {
		uv_timer_stop(&n->timer);
		return 0;
	}
	uv_update_time(loop_uv(n->loop));
	return uv_timer_start(&n->timer, net_timer_fired, (uint64_t)timeout_ms, 0) == 0 ? 0 : -1;
}

static void
net_socket_ready(uv_poll_t *poll, int status, int events)
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
	net_collect_ended(n);
}

static void
net_socket_closed(uv_handle_t *handle)
{
	struct net_socket *s = handle->data;

	s->net->open_handles--;
	mem_free(s);
}

static struct net_socket *
net_socket_new(struct net *n, curl_socket_t fd)
{
	struct net_socket *s = mem_zalloc(sizeof(*s));

	if (!s)
		return NULL;
	s->net = n;
	s->fd = fd;
	if (uv_poll_init_socket(loop_uv(n->loop), &s->poll, fd) != 0) {
		mem_free(s);
		return NULL;
	}
	s->poll.data = s;
	n->open_handles++;
	curl_multi_assign(n->multi, fd, s);
	return s;
}

static int
net_watch_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket)
{
	struct net *n = arg;
	struct net_socket *s = socket;
	int events = 0;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (s) {
			curl_multi_assign(n->multi, fd, NULL);
			uv_poll_stop(&s->poll);
			uv_close((uv_handle_t *)&s->poll, net_socket_closed);
		}
		return 0;
	}
	if (!s)
		s = net_socket_new(n, fd);
	if (!s)
		return -1;
	if (what & CURL_POLL_IN)
		events |= UV_READABLE;
	if (what & CURL_POLL_OUT)
		events |= UV_WRITABLE;
	return uv_poll_start(&s->poll, events, net_socket_ready) == 0 ? 0 : -1;
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
	if (!n->multi || uv_timer_init(loop_uv(loop), &n->timer) != 0) {
		if (n->multi)
			curl_multi_cleanup(n->multi);
		mem_free(n);
		return err_set(err, STATUS_NOMEM, "out of memory for an HTTP client");
	}
	n->timer.data = n;
	n->open_handles = 1;
	curl_multi_setopt(n->multi, CURLMOPT_SOCKETFUNCTION, net_watch_socket);
	curl_multi_setopt(n->multi, CURLMOPT_SOCKETDATA, n);
	curl_multi_setopt(n->multi, CURLMOPT_TIMERFUNCTION, net_set_timer);
	curl_multi_setopt(n->multi, CURLMOPT_TIMERDATA, n);
	curl_multi_setopt(n->multi, CURLMOPT_MAXCONNECTS, (long)CACHED_CONNECTIONS);
	*ret = n;
	return STATUS_OK;
}

static void
net_timer_closed(uv_handle_t *handle)
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
	uv_close((uv_handle_t *)&n->timer, net_timer_closed);
	while (n->open_handles)
		uv_run(loop_uv(n->loop), UV_RUN_ONCE);
	mem_free(n);
}

/* ---- libcurl's callbacks for one transfer ---- */

static void
call_note_progress(struct net_call *c)
{
	c->moved_ns = clock_mono_ns();
	net_bell_ring(&c->bell);
}

/* Ends the transfer for a reason of this side. The result is what a callback returns then. */
static size_t
call_refuse(struct net_call *c, enum call_limit limit, const char *why)
{
	metric_add_at(&calls_refused, limit, 1);
	c->refusal = why;
	return 0;
}

static bool
call_is_heartbeat(const struct net_call *c, struct str data)
{
	for (size_t i = 0; c->heartbeats && i < data.len; i++) {
		if (data.ptr[i] != '\n' && data.ptr[i] != '\r')
			return false;
	}
	return c->heartbeats;
}

static void
call_note_received(struct net_call *c, struct str data)
{
	if (call_is_heartbeat(c, data))
		c->window_bytes = c->window_ns = 0;
	else
		c->window_bytes += data.len;
	call_note_progress(c);
}

static size_t
call_take_body(char *data, size_t size, size_t n, void *arg)
{
	struct net_call *c = arg;

	if (c->cancelled)
		return 0;
	/* libcurl keeps what a paused transfer has refused, and offers it again. */
	if (c->in.len && c->in.len + size * n > NET_BUFFER_BYTES) {
		c->in_paused = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	buf_append(&c->in, data, size * n);
	c->answered = true;
	call_note_received(c, str_of(data, size * n));
	return buf_status(&c->in) == STATUS_OK ? size * n : 0;
}

/* The value of a header line of that name, which ends with a colon; ptr NULL for another one. */
static struct str
header_value(struct str line, struct str name)
{
	if (line.len <= name.len || !str_eq_nocase(str_of(line.ptr, name.len), name))
		return (struct str){ NULL, 0 };
	return str_trim(str_skip(line, name.len));
}

static void
call_keep_type(struct net_call *c, struct str value)
{
	if (value.len >= sizeof(c->type))
		value.len = sizeof(c->type) - 1;
	memcpy(c->type, value.ptr, value.len);
	c->type[value.len] = '\0';
}

/* False if the transfer must end because of the body's encoding. */
static bool
call_keep_encoding(struct net_call *c, struct str value)
{
	if (!c->inflate || str_eq_nocase(value, STR("identity")))
		return true;
	if (c->gunzip ||
	    (!str_eq_nocase(value, STR("gzip")) && !str_eq_nocase(value, STR("x-gzip"))))
		return false;
	c->gunzip = gunzip_new();
	return c->gunzip != NULL;
}

static bool
call_may_follow(struct net_call *c, struct str location)
{
	const char *from = NULL;

	curl_easy_getinfo(c->easy, CURLINFO_EFFECTIVE_URL, &from);
	return from && redirect_is_allowed(from, location);
}

/* Takes a header of the answer, or of one that leads elsewhere. False if the transfer must end. */
static bool
call_keep_header(struct net_call *c, struct str line, long status)
{
	struct str type = header_value(line, STR("content-type:"));
	struct str encoding = header_value(line, STR("content-encoding:"));
	struct str location = header_value(line, STR("location:"));

	if (type.ptr)
		call_keep_type(c, type);
	if (location.ptr && status >= 300 && status < 400 && !call_may_follow(c, location))
		call_refuse(c, CALL_LIMIT_REDIRECT,
			    "it redirects to another server: only redirects to the same scheme, "
			    "host and port are followed, or from http to https at the same host");
	else if (encoding.ptr && !(status >= 300 && status < 400) &&
		 !call_keep_encoding(c, encoding))
		call_refuse(c, CALL_LIMIT_ENCODING,
			    "its answer has a Content-Encoding that was not asked for");
	return !c->refusal;
}

/*
 * Takes one line of the answer's head. The empty line ends a head, but the head of a redirect or of
 * a 100 is followed by another one.
 */
static size_t
call_take_header(char *data, size_t size, size_t n, void *arg)
{
	struct net_call *c = arg;
	struct str line = str_trim(str_of(data, size * n));
	long status = 0;

	_Static_assert(NET_HEAD_BYTES == 262144, "the text below has the number");
	c->head_bytes += size * n;
	if (c->head_bytes > NET_HEAD_BYTES)
		return call_refuse(c, CALL_LIMIT_HEAD,
				   "the head of its answer exceeds 262144 bytes");
	curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
	if (str_starts_with(line, STR("HTTP/"))) {
		c->type[0] = '\0';
	} else if (line.len) {
		if (!call_keep_header(c, line, status))
			return 0;
	} else if (status >= 200 && (status < 300 || status >= 400 || status == 304)) {
		c->status = (int)status;
		c->answered = true;
	}
	c->window_bytes += size * n;
	call_note_progress(c);
	return size * n;
}

static size_t
call_give_body(char *to, size_t size, size_t n, void *arg)
{
	struct net_call *c = arg;
	size_t taken = c->out.len < size * n ? c->out.len : size * n;

	if (c->cancelled)
		return CURL_READFUNC_ABORT;
	if (taken == 0) {
		c->out_paused = true;
		return CURL_READFUNC_PAUSE;
	}
	assert(taken <= c->out.len);
	memcpy(to, c->out.ptr, taken);
	buf_consume(&c->out, taken);
	call_note_progress(c);
	return taken;
}

/* Called by libcurl now and then, at least once a second. */
static int
call_note_upload(void *arg, curl_off_t down_all, curl_off_t down, curl_off_t up_all, curl_off_t up)
{
	struct net_call *c = arg;

	(void)down_all;
	(void)down;
	(void)up_all;
	if (up > c->sent) {
		c->window_bytes += (uint64_t)(up - c->sent);
		c->sent = up;
		call_note_progress(c);
	}
	return c->cancelled ? 1 : 0;
}

/* ---- Calls ---- */

static bool
call_add_header(struct net_call *c, struct str name, struct str value)
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
call_set_tls(struct net_call *c, const struct net_config *config, bool own)
{
	bool verify = config->verify && !own;

	curl_easy_setopt(c->easy, CURLOPT_SSL_VERIFYPEER, verify ? 1L : 0L);
	curl_easy_setopt(c->easy, CURLOPT_SSL_VERIFYHOST, verify ? 2L : 0L);
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
call_set_body(struct net_call *c, const struct net_request *rq)
{
	if (rq->streams) {
		curl_easy_setopt(c->easy, CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(c->easy, CURLOPT_READFUNCTION, call_give_body);
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
call_set_options(struct net_call *c, const struct net_request *rq)
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
	/* An empty proxy keeps libcurl from taking one out of the environment. */
	curl_easy_setopt(e, CURLOPT_PROXY, rq->proxy ? rq->proxy : "");
	curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, call_take_body);
	curl_easy_setopt(e, CURLOPT_WRITEDATA, c);
	curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, call_take_header);
	curl_easy_setopt(e, CURLOPT_HEADERDATA, c);
	curl_easy_setopt(e, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(e, CURLOPT_XFERINFOFUNCTION, call_note_upload);
	curl_easy_setopt(e, CURLOPT_XFERINFODATA, c);
	if (rq->user) {
		curl_easy_setopt(e, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
		curl_easy_setopt(e, CURLOPT_USERNAME, rq->user);
		curl_easy_setopt(e, CURLOPT_PASSWORD, rq->password ? rq->password : "");
	}
	call_set_body(c, rq);
}

static enum status
call_prepare(struct net_call *c, const struct net_request *rq)
{
	/* An empty Expect keeps libcurl from waiting for a "100 Continue" before a body. */
	bool ok = call_add_header(c, STR("Expect"), STR(""));

	for (size_t i = 0; i < rq->headers_count && ok; i++)
		ok = call_add_header(c, rq->headers[i].name, rq->headers[i].value);
	/* The answer is inflated here, and not by libcurl, which would do so without bounds. */
	if (ok && rq->inflate)
		ok = call_add_header(c, STR("Accept-Encoding"), STR("gzip"));
	if (!ok)
		return STATUS_NOMEM;
	call_set_options(c, rq);
	call_set_tls(c, &c->net->config, rq->own);
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
	c->inflate = rq->inflate;
	c->heartbeats = rq->heartbeats;
	c->moved_ns = clock_mono_ns();
	buf_init(&c->in, (size_t)NET_BUFFER_BYTES + CURL_MAX_READ_SIZE);
	buf_init(&c->read, (size_t)NET_BUFFER_BYTES + CURL_MAX_READ_SIZE);
	buf_init(&c->out, NET_BUFFER_BYTES);
	c->in.part = c->read.part = c->out.part = rq->part;
	c->next = rq->scope->calls;
	c->link = &rq->scope->calls;
	if (c->next)
		c->next->link = &c->next;
	rq->scope->calls = c;
	c->easy = curl_easy_init();
	if (!c->easy || call_prepare(c, rq) != STATUS_OK ||
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
	gunzip_free(c->gunzip);
	buf_release(&c->in);
	buf_release(&c->read);
	buf_release(&c->out);
	mem_free(c);
}

/* Counts time in which the caller has waited. STATUS_TIMEOUT if too few bytes moved meanwhile. */
static enum status
call_check_rate(struct net_call *c, uint64_t waited_ns, struct err *err)
{
	uint64_t rate = c->net->config.minimum_rate;
	uint64_t bytes = c->window_bytes;

	if (!bytes || !rate)
		return STATUS_OK;
	c->window_ns += waited_ns;
	if (c->window_ns < c->stall_ms * CLOCK_NS_PER_MS)
		return STATUS_OK;
	c->window_bytes = c->window_ns = 0;
	if (bytes >= rate * c->stall_ms / 1000)
		return STATUS_OK;
	metric_add_at(&calls_refused, CALL_LIMIT_RATE, 1);
	return err_set(err, STATUS_TIMEOUT,
		       "%llu bytes have moved in %llu ms: the limit, minimum_rate, is %llu bytes "
		       "a second",
		       (unsigned long long)bytes, (unsigned long long)c->stall_ms,
		       (unsigned long long)rate);
}

/* Waits for something to happen to the call. */
static enum status
call_await_progress(struct net_call *c, struct err *err)
{
	uint64_t until = c->moved_ns + c->stall_ms * CLOCK_NS_PER_MS;
	uint64_t begin = clock_mono_ns();

	if (c->cancelled)
		return err_set(err, STATUS_CANCELLED, "the replication is being stopped");
	if (begin >= until)
		return err_set(err, STATUS_TIMEOUT, "no byte has moved for %llu ms",
			       (unsigned long long)c->stall_ms);
	net_bell_wait(&c->bell, until);
	return call_check_rate(c, clock_mono_ns() - begin, err);
}

static enum status
call_explain_failure(const struct net_call *c, struct err *err)
{
	if (c->cancelled)
		return err_set(err, STATUS_CANCELLED, "the replication is being stopped");
	if (c->refusal)
		return err_set(err, STATUS_INVALID, "%s", c->refusal);
	if (c->code == CURLE_TOO_MANY_REDIRECTS)
		return err_set(err, STATUS_INVALID, "more than %d redirects", NET_REDIRECTS);
	if (buf_status(&c->in) == STATUS_LIMIT)
		return STATUS_LIMIT;
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
			return call_explain_failure(c, err);
		if (c->done || c->answered)
			return STATUS_NOT_FOUND;
		if (n == 0) {
			TRY(call_await_progress(c, err));
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
		TRY(call_await_progress(c, err));
	if (!c->answered)
		return call_explain_failure(c, err);
	*ret_status = c->status;
	return STATUS_OK;
}

struct str
net_content_type(const struct net_call *c)
{
	return str_from_cstr(c->type);
}

/* The next piece of the body as it was sent. */
static enum status
call_read_sent(struct net_call *c, struct str *ret, struct err *err)
{
	struct buf empty;

	while (c->in.len == 0) {
		if (c->done)
			return c->code == CURLE_OK ? STATUS_NOT_FOUND
						   : call_explain_failure(c, err);
		if (c->in_paused) {
			c->in_paused = false;
			c->moved_ns = clock_mono_ns();
			curl_easy_pause(c->easy, c->out_paused ? CURLPAUSE_SEND : CURLPAUSE_CONT);
			continue;
		}
		TRY(call_await_progress(c, err));
	}
	/*
	 * The two buffers change places: libcurl's callbacks go on filling `in` while the caller
	 * uses the piece, which stays valid until the next call.
	 */
	empty = c->read;
	c->read = c->in;
	c->in = empty;
	buf_clear(&c->in);
	*ret = buf_str(&c->read);
	return STATUS_OK;
}

enum status
net_read(struct net_call *c, struct str *ret, struct err *err)
{
	enum status status;

	if (!c->gunzip)
		return call_read_sent(c, ret, err);
	while ((status = gunzip_next(c->gunzip, &c->packed, ret)) == STATUS_NOT_FOUND) {
		status = call_read_sent(c, &c->packed, err);
		if (status == STATUS_NOT_FOUND && !gunzip_is_complete(c->gunzip))
			return err_set(err, STATUS_IO, "a compressed answer ends too early");
		TRY(status);
	}
	return status == STATUS_CORRUPT
		       ? err_set(err, STATUS_IO, "an answer is not the gzip that it says it is")
		       : status;
}
