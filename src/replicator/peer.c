/* Requests to one end of a replication. */
#include "replicator/peer.h"

#include "base/mem.h"
#include "base/quote.h"
#include "http/escape.h"

static bool
peer_protocol_allowed(const struct peer_env *env, const struct repl_end *end)
{
	if (end->local)
		return true;
	return str_starts_with(end->url, STR("https://")) ? env->https_allowed : env->http_allowed;
}

enum status
peer_init(struct peer *p, const struct peer_env *env, const struct repl_end *end,
	  const struct repl_spec *spec, struct net_scope *scope, struct budget_part *part,
	  struct err *err)
{
	struct buf AUTO(buf_release) url = BUF_INIT(SPEC_ARENA_BYTES);

	*p = (struct peer){ .env = env, .end = end, .spec = spec, .scope = scope, .part = part };
	if (!peer_protocol_allowed(env, end))
		return err_set(err, STATUS_UNSUPPORTED, "%s: its protocol is not allowed here",
			       QUOTE_SHOW(end->name));
	if (end->local) {
		buf_append_cstr(&url, env->self);
		http_escape(&url, end->url);
		buf_append_byte(&url, '/');
	} else {
		buf_append_str(&url, end->url);
	}
	p->url = buf_status(&url) == STATUS_OK ? mem_strdup(buf_str(&url)) : NULL;
	return p->url ? STATUS_OK : err_set(err, STATUS_NOMEM, "out of memory");
}

void
peer_fini(struct peer *p)
{
	mem_free(p->url);
	p->url = NULL;
}

/* The URL of the end's server: that of the database without its last segment. */
static struct str
peer_server_root(const struct peer *p)
{
	size_t n = strlen(p->url) - 1;

	while (n && p->url[n - 1] != '/')
		n--;
	return str_of(p->url, n);
}

static void
peer_add_header(struct net_request *rq, const char *name, struct str value)
{
	rq->headers[rq->headers_count++] = (struct net_header){ str_from_cstr(name), value };
}

/* The owner is looked up for each request: a replication has the rights that the owner has now. */
static enum status
peer_write_cookie(const struct peer *p, struct buf *out, struct err *err)
{
	struct str owner = p->spec->owner;
	struct arena *arena = arena_new(PEER_COOKIE_BYTES * 4);
	struct str value;
	enum status status = arena ? p->env->cookie(p->env->cookie_arg, owner, arena, &value)
				   : STATUS_NOMEM;

	if (status == STATUS_OK) {
		buf_printf(out, "AuthSession=%.*s", STR_ARG(value));
		status = buf_status(out);
	} else if (status == STATUS_NOT_FOUND) {
		status = err_set(err, STATUS_FORBIDDEN,
				 "unauthorized: the owner of the replication, %s, is no user of "
				 "this server any more",
				 QUOTE_SHOW(owner));
	} else {
		status = err_set(err, STATUS_IO,
				 "the owner of the replication, %s, cannot be "
				 "looked up: %s",
				 QUOTE_SHOW(owner), status_name(status));
	}
	arena_free(arena);
	return status;
}

enum status
peer_open(struct peer *p, const struct peer_request *request, struct net_call **ret,
	  struct err *err)
{
	struct buf AUTO(buf_release) url = BUF_INIT(SPEC_ARENA_BYTES);
	struct buf AUTO(buf_release) cookie = BUF_INIT(PEER_COOKIE_BYTES);
	struct net_request rq = {
		.method = request->method,
		.user = p->end->user,
		.password = p->end->password,
		.proxy = p->end->proxy,
		.body = request->body,
		.streams = request->streams,
		.stream_bytes = request->stream_bytes,
		.own = p->end->local,
		.inflate = !p->end->local && !request->exact,
		.connect_ms = p->spec->options.timeout_ms,
		.stall_ms = request->stall_ms ? request->stall_ms : p->spec->options.timeout_ms,
		.heartbeats = request->heartbeats,
		.scope = p->scope,
		.part = p->part,
	};

	if (p->hasty && rq.stall_ms > PEER_SETTLE_MS)
		rq.stall_ms = rq.connect_ms = PEER_SETTLE_MS;
	buf_append_str(&url, request->path.ptr ? str_from_cstr(p->url) : peer_server_root(p));
	buf_append_str(&url, request->path);
	buf_append_byte(&url, '\0');
	TRY(buf_status(&url));
	rq.url = url.ptr;
	for (size_t i = 0; i < p->end->headers_count; i++)
		rq.headers[rq.headers_count++] = p->end->headers[i];
	peer_add_header(&rq, "Accept",
			str_from_cstr(request->accept ? request->accept : "application/json"));
	if (request->body.ptr || request->streams)
		peer_add_header(&rq, "Content-Type",
				str_from_cstr(request->type ? request->type : "application/json"));
	if (p->end->local && p->spec->owner.len) {
		TRY(peer_write_cookie(p, &cookie, err));
		peer_add_header(&rq, "Cookie", buf_str(&cookie));
	}
	return net_open(p->env->net, &rq, ret, err);
}

enum status
peer_read_all(struct net_call *c, struct buf *ret, struct err *err)
{
	struct str piece;
	enum status status;

	while ((status = net_read(c, &piece, err)) == STATUS_OK) {
		buf_append_str(ret, piece);
		if (buf_status(ret) != STATUS_OK)
			return err_set(err, buf_status(ret), "an answer exceeds %zu bytes",
				       ret->max_bytes);
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- Trying again ---- */

bool
peer_status_passes(int http_status)
{
	/* 501 is about the request: what a server does not offer now it will not offer later. */
	return http_status == 408 || http_status == 429 ||
	       (http_status >= 500 && http_status != 501);
}

bool
peer_may_retry(enum status status)
{
	return status == STATUS_IO || status == STATUS_TIMEOUT;
}

struct peer_tries
peer_tries(const struct peer *p)
{
	return (struct peer_tries){ p->hasty ? 0 : p->spec->options.retries, PEER_RETRY_MS };
}

enum status
peer_try_again(struct peer *p, struct peer_tries *t, enum status status, struct err *err)
{
	if (!peer_may_retry(status) || t->left == 0)
		return status;
	t->left--;
	if (net_pause(p->scope, t->pause_ms) != STATUS_OK)
		return err_set(err, STATUS_CANCELLED, "the replication is being stopped");
	t->pause_ms *= 2;
	if (t->pause_ms > PEER_RETRY_MOST_MS)
		t->pause_ms = PEER_RETRY_MOST_MS;
	return STATUS_OK;
}

static enum status
peer_ask_once(struct peer *p, const struct peer_request *request, int *ret_status, struct buf *ret,
	      struct err *err)
{
	struct net_call *c;
	enum status status;

	buf_clear(ret);
	TRY(peer_open(p, request, &c, err));
	status = net_answer(c, ret_status, err);
	if (status == STATUS_OK)
		status = peer_read_all(c, ret, err);
	net_close(c);
	if (status == STATUS_OK && peer_status_passes(*ret_status))
		status = peer_refused(p, request, *ret_status, err);
	return status;
}

enum status
peer_ask(struct peer *p, const struct peer_request *request, int *ret_status, struct buf *ret,
	 struct err *err)
{
	struct peer_tries tries = peer_tries(p);

	for (;;) {
		enum status status = peer_ask_once(p, request, ret_status, ret, err);

		if (status == STATUS_OK)
			return STATUS_OK;
		TRY(peer_try_again(p, &tries, status, err));
	}
}

enum status
peer_refused(const struct peer *p, const struct peer_request *request, int http_status,
	     struct err *err)
{
	struct str name = p->end->name;
	struct str path;
	const char *query;

	if (http_status == 401 || http_status == 403)
		return err_set(err, STATUS_UNAUTHORIZED,
			       "unauthorized: unauthorized to access or create database %s",
			       QUOTE_SHOW(name));
	if (http_status == 404 && request->path.ptr && request->path.len == 0)
		return err_set(err, STATUS_NOT_FOUND, "db_not_found: could not open %s",
			       QUOTE_SHOW(name));
	path = request->path;
	query = path.len ? memchr(path.ptr, '?', path.len) : NULL;
	if (query)
		path.len = (size_t)(query - path.ptr);
	return err_set(err, peer_status_passes(http_status) ? STATUS_IO : STATUS_INVALID,
		       "http_error_code: %d for %s %s%s", http_status, request->method,
		       QUOTE_SHOW(name), QUOTE_SHOW(path));
}

void
peer_escape_id(struct buf *b, struct str id)
{
	static const char *const spaces[] = { "_design/", "_local/" };

	for (size_t i = 0; i < 2; i++) {
		struct str space = str_from_cstr(spaces[i]);

		if (str_starts_with(id, space)) {
			buf_append_str(b, space);
			id = str_skip(id, space.len);
		}
	}
	http_escape(b, id);
}

/* Says which limit an answer with rows has passed. */
static enum status
peer_explain_long_answer(const struct rows *rows, struct err *err)
{
	if (rows->between > ROWS_BETWEEN_BYTES)
		return err_set(err, STATUS_LIMIT, "an answer has more than %d bytes between rows",
			       ROWS_BETWEEN_BYTES);
	if (buf_status(&rows->rest) == STATUS_LIMIT)
		return err_set(err, STATUS_LIMIT,
			       "an answer has more than %d bytes beside its rows", ROWS_REST_BYTES);
	return err_set(err, STATUS_LIMIT, "a row of an answer exceeds %zu bytes",
		       rows->row.max_bytes);
}

enum status
peer_read_rows(struct rows *rows, struct net_call *call, peer_take_row *take, void *arg,
	       struct str *ret_rest, struct err *err)
{
	struct str piece;
	struct str row;
	enum status status;

	while ((status = net_read(call, &piece, err)) == STATUS_OK) {
		while ((status = rows_next(rows, &piece, &row)) == STATUS_OK)
			TRY(take(arg, row, err));
		if (status == STATUS_LIMIT)
			return peer_explain_long_answer(rows, err);
		if (status != STATUS_NOT_FOUND)
			return status;
	}
	return status == STATUS_NOT_FOUND ? rows_end(rows, ret_rest) : status;
}
