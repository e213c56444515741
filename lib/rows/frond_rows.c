#include "frond_rows_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

enum {
	STATE_BYTES = 5,
	MAGIC = 0x46524f57,
	VERSION_ESTIMATES = 3,
	VERSION_REFRESH = 4,
	VERSION_BINDS = 4, /* a BEGIN that fails is to be rolled back, too */
	ASK_MS = 500,      /* between two questions to `interrupted`; also what a receive blocks */
	BUSY_MS = 10,      /* between two tries at a Unix socket where too many wait to connect */

	REQUEST_HELLO = 1,
	REQUEST_LOGIN = 2,
	REQUEST_PING = 3,
	REQUEST_BEGIN = 4,
	REQUEST_COMMIT = 5,
	REQUEST_ROLLBACK = 6,
	REQUEST_SAVEPOINT = 7,
	REQUEST_RELEASE = 8,
	REQUEST_ROLLBACK_TO = 9,
	REQUEST_SCHEMAS = 10,
	REQUEST_SCHEMA_CREATE = 11,
	REQUEST_SCHEMA_DROP = 12,
	REQUEST_TABLES = 13,
	REQUEST_TABLE = 14,
	REQUEST_TABLE_CREATE = 15,
	REQUEST_TABLE_ALTER = 16,
	REQUEST_TABLE_DROP = 17,
	REQUEST_TABLE_EMPTY = 18,
	REQUEST_ESTIMATE = 27,
	REQUEST_REFRESH = 28,
	ANSWER_DONE = 128,
	ANSWER_ERROR = 129,
};

/* ---- Failures ---- */

__attribute__((format(printf, 3, 4))) static bool
fail(struct frows *c, const char *state, const char *format, ...)
{
	va_list args;

	memcpy(c->failure.state, state, STATE_BYTES + 1);
	c->failure.row = -1;
	c->failure.index[0] = '\0';
	va_start(args, format);
	vsnprintf(c->failure.text, sizeof(c->failure.text), format, args);
	va_end(args);
	return false;
}

static void
lose(struct frows *c)
{
	if (c->ssl)
		SSL_free(c->ssl);
	c->ssl = NULL;
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->ahead_at = c->ahead_len = 0;
}

static bool
fail_lost(struct frows *c, const char *why)
{
	lose(c);
	return fail(c, "08006", "the connection is lost: %s", why);
}

bool
frows_fail_memory(struct frows *c)
{
	return fail(c, "53200", "out of memory, or more than %d bytes", FROWS_ANSWER_BYTES);
}

/* ---- Sending and receiving ---- */

/* Waits until the socket can be read, or written. */
static bool
wait_for(struct frows *c, short events)
{
	struct pollfd p = { .fd = c->fd, .events = events };
	int left = c->timeout_ms ? c->timeout_ms : -1, n;

	do {
		int turn = c->interrupted && (left < 0 || left > ASK_MS) ? ASK_MS : left;

		if (c->interrupted && c->interrupted(c->interrupted_arg)) {
			lose(c);
			return fail(c, "57014", "interrupted while frond was waited for");
		}
		n = poll(&p, 1, turn);
		if (n > 0)
			return true;
		if (!n && left > 0)
			left -= turn;
	} while ((!n && left) || (n < 0 && errno == EINTR));
	return fail_lost(c, n ? strerror(errno) : "the server does not answer in time");
}

/* What is left to do after an operation of OpenSSL's that gave no bytes. */
static bool
tls_wait(struct frows *c, int result)
{
	switch (SSL_get_error(c->ssl, result)) {
	case SSL_ERROR_WANT_READ:
		return wait_for(c, POLLIN);
	case SSL_ERROR_WANT_WRITE:
		return wait_for(c, POLLOUT);
	default:
		ERR_clear_error();
		return fail_lost(c, "TLS has failed");
	}
}

/* After a call that moved no byte, and returned `n`: true once it may be made again. */
static bool
may_go_on(struct frows *c, ssize_t n, short events)
{
	if (c->ssl)
		return tls_wait(c, (int)n);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return wait_for(c, events);
	c->was_closed = true;
	return fail_lost(c, n ? strerror(errno) : "the server has closed it");
}

static bool
send_all(struct frows *c, const uint8_t *at, size_t left)
{
	while (left) {
		ssize_t n = c->ssl ? SSL_write(c->ssl, at, left > INT32_MAX ? INT32_MAX : (int)left)
				   : send(c->fd, at, left, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n > 0) {
			at += n;
			left -= (size_t)n;
		} else if (!may_go_on(c, n, POLLOUT)) {
			return false;
		}
	}
	return true;
}

/* Reads some bytes: at least one. */
static bool
receive_some(struct frows *c, uint8_t *to, size_t most, size_t *ret)
{
	for (;;) {
		ssize_t n;

		if (c->polls && !wait_for(c, POLLIN))
			return false;
		n = c->ssl ? SSL_read(c->ssl, to, most > INT32_MAX ? INT32_MAX : (int)most)
			   : recv(c->fd, to, most, 0);
		if (n > 0) {
			*ret = (size_t)n;
			return true;
		}
		if (!may_go_on(c, n, POLLIN))
			return false;
	}
}

/* An answer, or several, are mostly short: one call brings them, header and body. */
static bool
receive_all(struct frows *c, uint8_t *to, size_t left)
{
	while (left) {
		size_t n;

		if (c->ahead_at == c->ahead_len) {
			c->ahead_at = c->ahead_len = 0;
			if (left < AHEAD_BYTES) {
				if (!receive_some(c, c->ahead, AHEAD_BYTES, &c->ahead_len))
					return false;
				continue;
			}
			if (!receive_some(c, to, left, &n))
				return false;
		} else {
			n = c->ahead_len - c->ahead_at;
			n = n < left ? n : left;
			memcpy(to, c->ahead + c->ahead_at, n);
			c->ahead_at += n;
		}
		to += n;
		left -= n;
	}
	return true;
}

/* Takes an error out of the answer. */
static bool
take_error(struct frows *c)
{
	const uint8_t *state = take(&c->read, STATE_BYTES);
	int32_t row = (int32_t)take_int(&c->read, 4);
	struct frows_text text = take_text(&c->read);

	struct frows_text index = take_text(&c->read);

	if (c->read.bad)
		return fail_lost(c, "the answer is malformed");
	(void)fail(c, "XX000", "%.*s", (int)text.len, text.ptr);
	snprintf(c->failure.index, sizeof(c->failure.index), "%.*s", (int)index.len, index.ptr);
	memcpy(c->failure.state, state, STATE_BYTES);
	c->failure.row = row;
	return false;
}

static bool
receive(struct frows *c)
{
	uint8_t header[HEADER_BYTES];
	struct reader r = { header, sizeof(header), false };
	uint64_t length, code, number;

	if (!receive_all(c, header, sizeof(header)))
		return false;
	length = take_int(&r, 4);
	code = take_int(&r, 1);
	number = take_int(&r, 3); /* behind a byte that is 0 */
	if ((code != ANSWER_DONE && code != ANSWER_ERROR) ||
	    number != (uint16_t)(c->answered + 1) || length > FROWS_ANSWER_BYTES)
		return fail_lost(c, "what came is no answer of this protocol");
	c->answered++;
	c->in.len = 0;
	if (c->in.cap < length && !bytes_grow(&c->in, length)) {
		c->in.failed = false;
		lose(c);
		return frows_fail_memory(c);
	}
	if (!receive_all(c, c->in.ptr, length))
		return false;
	c->in.len = length;
	c->read = (struct reader){ c->in.ptr, length, false };
	c->refreshed |= c->answered == c->refresh && length && c->in.ptr[0] == true;
	return code == ANSWER_DONE || take_error(c);
}

static void
frame_begin(struct bytes *b, unsigned code)
{
	b->len = 0;
	b->failed = false;
	put_int(b, 0, 4);
	put_int(b, code, 1);
	put_int(b, 0, 1);
	put_int(b, 0, 2);
}

void
frows_make_request(struct frows *c, unsigned code)
{
	frame_begin(&c->out, code);
	c->left = 0;
}

/* Its length and its number: answers come in the order of these. */
static void
frame_end(struct frows *c, struct bytes *b)
{
	if (b->failed)
		return;
	frows_put_int(b->ptr, (int64_t)(b->len - HEADER_BYTES), 4);
	frows_put_int(b->ptr + 6, ++c->number, 2);
}

/* ---- Requests that wait for the next one ---- */

static void
front_clear(struct frows *c)
{
	c->front.len = c->front_count = 0;
	c->front.failed = false;
	c->front_begins = c->front_refreshes = false;
}

bool
frows_front_put(struct frows *c, unsigned code, const void *body, size_t len)
{
	put_int(&c->front, len, 4);
	put_int(&c->front, code, 1);
	put_int(&c->front, 0, 3);
	put(&c->front, body, len);
	c->front_count++;
	if (!c->front.failed)
		return true;
	lose(c);
	return frows_fail_memory(c);
}

static void
front_number(struct frows *c)
{
	for (size_t at = 0; at < c->front.len;) {
		struct reader header = { c->front.ptr + at, HEADER_BYTES, false };

		frows_put_int(c->front.ptr + at + 6, ++c->number, 2);
		at += HEADER_BYTES + take_int(&header, 4);
	}
}

/* Sends the request, and those that wait for it before it. */
static bool
send_request(struct frows *c)
{
	bool done;

	front_number(c);
	frame_end(c, &c->out);
	if (!c->front.len)
		return send_all(c, c->out.ptr, c->out.len);
	put(&c->front, c->out.ptr, c->out.len);
	if (c->front.failed) {
		lose(c);
		return frows_fail_memory(c);
	}
	done = send_all(c, c->front.ptr, c->front.len);
	front_clear(c);
	return done;
}

/* Reads the answers of earlier requests: false if the connection is lost, or one has failed. */
static bool
receive_earlier(struct frows *c, uint16_t until)
{
	struct frows_failure first;
	bool failed = false;

	while (c->answered != until) {
		if (receive(c))
			continue;
		if (c->fd < 0)
			return false;
		if (!failed)
			first = c->failure;
		failed = true;
	}
	if (failed)
		c->failure = first;
	return !failed;
}

static bool
check_sends(struct frows *c)
{
	c->read = (struct reader){ 0 };
	if (c->fd < 0)
		return fail(c, "08003", "the connection is lost");
	return !c->out.failed || frows_fail_memory(c);
}

static bool
owed_forget(struct frows *c)
{
	c->owed = 0;
	c->commits = false;
	return false;
}

static bool
owed_lost(struct frows *c)
{
	if (c->commits)
		(void)fail(c, "08007",
			   "the connection was lost while a transaction committed: it is not known "
			   "whether it has");
	return owed_forget(c);
}

bool
frows_owed_take(struct frows *c, uint16_t keep)
{
	bool done = true;

	if (c->owed > keep) {
		/* Those of before are of a ROLLBACK that nobody has waited for. */
		(void)receive_earlier(c, (uint16_t)(c->number - c->owed));
		done = c->fd >= 0 && receive_earlier(c, (uint16_t)(c->number - keep));
		if (c->fd < 0)
			return owed_lost(c);
		c->owed = keep;
	}
	c->commits = c->commits && c->owed;
	return done;
}

bool
frows_owed_send(struct frows *c, uint16_t *ret_sent)
{
	uint16_t before = c->number;

	if (!check_sends(c))
		return owed_forget(c);
	if (!send_request(c))
		return owed_lost(c);
	*ret_sent = (uint16_t)(c->number - before);
	c->owed = (uint16_t)(c->owed + *ret_sent);
	return true;
}

bool
frows_run(struct frows *c)
{
	struct frows_failure failure;
	uint16_t before, front;
	bool done;

	if (!check_sends(c) || !frows_owed_take(c, 0))
		return false;
	c->read = (struct reader){ 0 };
	before = c->number;
	front = c->front_count;
	if (!send_request(c))
		return false;
	/* How a ROLLBACK that nobody waited for has ended is nobody's business. */
	if (!receive_earlier(c, before) && c->fd < 0)
		return false;
	/* What went before it is a part of it. */
	done = receive_earlier(c, (uint16_t)(before + front));
	if (done)
		return receive(c);
	failure = c->failure;
	if (c->fd < 0)
		return false;
	/* The row that it may be about is none of this request's. */
	failure.row = -1;
	(void)receive(c);
	if (c->fd >= 0)
		c->failure = failure;
	c->read = (struct reader){ 0 };
	return false;
}

bool
frows_taken(struct frows *c)
{
	return !c->read.bad || fail_lost(c, "the answer is malformed");
}

/* ---- Connections ---- */

static bool
connect_one(struct frows *c, const struct addrinfo *to)
{
	int one = 1, error = 0;
	socklen_t len = sizeof(error);

	c->fd = socket(to->ai_family, to->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
		       to->ai_protocol);
	if (c->fd < 0)
		return fail(c, "08001", "%s", strerror(errno));
	(void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(c->fd, to->ai_addr, to->ai_addrlen) == 0)
		return true;
	if (errno == EINPROGRESS) {
		if (!wait_for(c, POLLOUT))
			return false;
		if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && !error)
			return true;
		errno = error;
	}
	(void)fail(c, "08001", "%s", strerror(errno));
	lose(c);
	return false;
}

/* At a Unix socket, where connecting never is under way: it is done, or there is no room yet. */
static bool
connect_path(struct frows *c, const struct frows_where *where)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int left = where->timeout_ms;

	if (where->tls)
		return fail(c, "08001", "%s: there is no TLS at a Unix socket", where->host);
	if (strlen(where->host) >= sizeof(to.sun_path))
		return fail(c, "08001", "%s: the path is too long", where->host);
	strcpy(to.sun_path, where->host);
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->fd < 0)
		return fail(c, "08001", "%s", strerror(errno));
	c->polls = true;
	while (connect(c->fd, (struct sockaddr *)&to, sizeof(to)) != 0) {
		if (errno != EAGAIN && errno != EINTR)
			return fail(c, "08001", "%s: %s", where->host, strerror(errno));
		if (c->interrupted && c->interrupted(c->interrupted_arg))
			return fail(c, "57014", "interrupted while frond was waited for");
		if (where->timeout_ms && (left -= BUSY_MS) < 0)
			return fail(c, "08001", "%s: the server is busy", where->host);
		(void)poll(NULL, 0, BUSY_MS);
	}
	return true;
}

static bool
connect_any(struct frows *c, const struct frows_where *where)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *all;
	bool done = false;
	int error;

	if (where->host[0] == '/')
		return connect_path(c, where);
	error = getaddrinfo(where->host, where->port, &hints, &all);
	if (error)
		return fail(c, "08001", "%s: %s", where->host, gai_strerror(error));
	for (const struct addrinfo *to = all; to && !done; to = to->ai_next)
		done = connect_one(c, to);
	freeaddrinfo(all);
	return done;
}

static bool
is_address(const char *host)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST }, *found;

	if (getaddrinfo(host, NULL, &hints, &found))
		return false;
	freeaddrinfo(found);
	return true;
}

/* The name that the certificate is to be for, which the server learns, too. */
static bool
tls_set_name(struct frows *c, const char *host)
{
	char *name = strdup(host);
	bool done = name && SSL_set1_host(c->ssl, name) == 1 &&
		    SSL_set_tlsext_host_name(c->ssl, name) == 1;

	free(name);
	return done;
}

/* The certificate has to be for the host, and signed by somebody who is trusted. */
static bool
tls_begin(struct frows *c, const struct frows_where *where)
{
	int result;

	c->ssl_context = SSL_CTX_new(TLS_client_method());
	if (!c->ssl_context)
		return frows_fail_memory(c);
	SSL_CTX_set_min_proto_version(c->ssl_context, TLS1_2_VERSION);
	SSL_CTX_set_verify(c->ssl_context, SSL_VERIFY_PEER, NULL);
	if (where->ca_file
		    ? SSL_CTX_load_verify_locations(c->ssl_context, where->ca_file, NULL) != 1
		    : SSL_CTX_set_default_verify_paths(c->ssl_context) != 1) {
		ERR_clear_error();
		return fail(c, "08001", "the authorities of TLS cannot be read");
	}
	c->ssl = SSL_new(c->ssl_context);
	if (!c->ssl || SSL_set_fd(c->ssl, c->fd) != 1)
		return frows_fail_memory(c);
	if (is_address(where->host)) {
		if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(c->ssl), where->host) != 1)
			return frows_fail_memory(c);
	} else if (!tls_set_name(c, where->host)) {
		return frows_fail_memory(c);
	}
	while ((result = SSL_connect(c->ssl)) != 1)
		if (!tls_wait(c, result))
			return false;
	return true;
}

/*
 * Lets a receive by TCP block, which spares a poll() for each answer. It blocks for so long at
 * most, and until a signal comes, even one that restarts other calls; then wait_for() goes on
 * waiting. At a Unix socket a receive that blocks would also be woken when the server reads the
 * request, to find nothing: the process would be switched to twice for each answer. poll() is woken
 * by the answer alone.
 */
static bool
receive_blocks(struct frows *c)
{
	const struct timeval most = { .tv_usec = ASK_MS * 1000 };

	return c->polls ||
	       (setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)) == 0 &&
		fcntl(c->fd, F_SETFL, 0) == 0) ||
	       fail(c, "08001", "%s", strerror(errno));
}

static bool
hello(struct frows *c)
{
	frows_make_request(c, REQUEST_HELLO);
	put_int(&c->out, MAGIC, 4);
	put_int(&c->out, FROWS_VERSION_LEAST, 2);
	put_int(&c->out, FROWS_VERSION, 2);
	if (!frows_run(c))
		return false;
	c->version = (unsigned)take_int(&c->read, 2);
	c->most = (uint32_t)take_int(&c->read, 4);
	if (!c->read.bad && (c->version < FROWS_VERSION_LEAST || c->version > FROWS_VERSION))
		return fail_lost(c, "the server speaks another version");
	return frows_taken(c);
}

bool
frows_open(const struct frows_where *where, struct frows **ret)
{
	struct frows *c = calloc(1, sizeof(*c));

	*ret = c;
	if (!c)
		return false;
	c->fd = -1;
	c->timeout_ms = where->timeout_ms;
	c->interrupted = where->interrupted;
	c->interrupted_arg = where->interrupted_arg;
	if (!connect_any(c, where) || !(where->tls ? tls_begin(c, where) : receive_blocks(c)) ||
	    !hello(c)) {
		lose(c);
		return false;
	}
	if (!where->user)
		return true;
	frows_make_request(c, REQUEST_LOGIN);
	put_text(&c->out, where->user);
	put_text(&c->out, where->password);
	if (frows_run(c))
		return true;
	lose(c);
	return false;
}

static void
wipe(struct bytes *b)
{
	if (b->ptr)
		OPENSSL_cleanse(b->ptr, b->cap);
	free(b->ptr);
}

void
frows_close(struct frows *c)
{
	if (!c)
		return;
	lose(c);
	SSL_CTX_free(c->ssl_context);
	wipe(&c->out);
	free(c->front.ptr);
	free(c->in.ptr);
	free(c->place.ptr);
	free(c);
}

const struct frows_failure *
frows_failure(const struct frows *c)
{
	return &c->failure;
}

bool
frows_is_open(const struct frows *c)
{
	return c->fd >= 0;
}

bool
frows_was_closed(const struct frows *c)
{
	return c->fd < 0 && c->was_closed;
}

bool
frows_is_alive(struct frows *c)
{
	uint8_t byte;
	ssize_t n;

	/* Whoever asks this has no transaction, and so waits for nothing that was sent. */
	(void)owed_forget(c);
	if (c->fd < 0 || (!receive_earlier(c, c->number) && c->fd < 0))
		return false;
	n = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return true;
	lose(c);
	return false;
}

/* A request without a body, or with a number. */
static bool
run_bare(struct frows *c, unsigned code)
{
	frows_make_request(c, code);
	return frows_run(c);
}

bool
frows_ping(struct frows *c)
{
	return run_bare(c, REQUEST_PING);
}

/* ---- Transactions ---- */

/* Forgets what waits. True: BEGIN is a part of it, so that there is no transaction. */
static bool
front_drop(struct frows *c)
{
	bool begins = c->front_begins;

	front_clear(c);
	return begins;
}

bool
frows_begin(struct frows *c, bool read_only)
{
	frows_make_request(c, REQUEST_BEGIN);
	put_int(&c->out, read_only, 1);
	if (frows_run(c))
		return true;
	/* That of a transaction which is open already leaves that alone. */
	if (c->fd >= 0 && c->version >= VERSION_BINDS && strcmp(c->failure.state, "25001") != 0)
		frows_rollback_later(c);
	return false;
}

bool
frows_commit(struct frows *c, uint8_t *stamp)
{
	const uint8_t *at;

	if (!run_bare(c, REQUEST_COMMIT))
		return false;
	at = take(&c->read, FROWS_STAMP_BYTES);
	if (at && stamp)
		memcpy(stamp, at, FROWS_STAMP_BYTES);
	return frows_taken(c);
}

bool
frows_commit_send(struct frows *c)
{
	uint16_t sent;

	frows_make_request(c, REQUEST_COMMIT);
	c->commits = true;
	return frows_owed_send(c, &sent);
}

bool
frows_rollback(struct frows *c)
{
	(void)owed_forget(c);
	/* It has not begun. */
	if (front_drop(c))
		return true;
	return run_bare(c, REQUEST_ROLLBACK);
}

void
frows_begin_later(struct frows *c, bool read_only)
{
	uint8_t flags = read_only;

	front_clear(c);
	c->front_begins = frows_front_put(c, REQUEST_BEGIN, &flags, 1);
}

bool
frows_refresh(struct frows *c, bool *ret_moved)
{
	*ret_moved = false;
	if (c->version < VERSION_REFRESH)
		return true;
	if (!run_bare(c, REQUEST_REFRESH))
		return false;
	*ret_moved = take_int(&c->read, 1);
	return frows_taken(c);
}

void
frows_refresh_later(struct frows *c)
{
	/* What begins with the next request reads what is committed then. */
	c->refreshed = c->front_begins;
	if (c->version < VERSION_REFRESH || c->front_begins || c->front_refreshes)
		return;
	c->front_refreshes = frows_front_put(c, REQUEST_REFRESH, NULL, 0);
	c->refresh = (uint16_t)(c->number + c->front_count);
}

bool
frows_refreshed(const struct frows *c)
{
	return c->refreshed;
}

void
frows_rollback_later(struct frows *c)
{
	(void)owed_forget(c);
	if (front_drop(c) || c->fd < 0)
		return;
	frows_make_request(c, REQUEST_ROLLBACK);
	if (c->out.failed)
		lose(c);
	else
		(void)send_request(c);
}

bool
frows_savepoint(struct frows *c, uint32_t *ret)
{
	if (!run_bare(c, REQUEST_SAVEPOINT))
		return false;
	*ret = (uint32_t)take_int(&c->read, 4);
	return frows_taken(c);
}

static bool
run_number(struct frows *c, unsigned code, uint32_t n)
{
	frows_make_request(c, code);
	put_int(&c->out, n, 4);
	return frows_run(c);
}

bool
frows_release(struct frows *c, uint32_t savepoint)
{
	return run_number(c, REQUEST_RELEASE, savepoint);
}

bool
frows_rollback_to(struct frows *c, uint32_t savepoint)
{
	(void)owed_forget(c);
	return run_number(c, REQUEST_ROLLBACK_TO, savepoint);
}

/* ---- Schemas ---- */

bool
frows_run_names(struct frows *c, unsigned code, const char *schema, const char *table, bool both)
{
	frows_make_request(c, code);
	put_text(&c->out, schema);
	if (both)
		put_text(&c->out, table);
	return frows_run(c);
}

bool
frows_schema_create(struct frows *c, const char *schema)
{
	return frows_run_names(c, REQUEST_SCHEMA_CREATE, schema, NULL, false);
}

bool
frows_schema_drop(struct frows *c, const char *schema)
{
	return frows_run_names(c, REQUEST_SCHEMA_DROP, schema, NULL, false);
}

bool
frows_schemas(struct frows *c)
{
	if (!run_bare(c, REQUEST_SCHEMAS))
		return false;
	c->left = (uint32_t)take_int(&c->read, 4);
	return frows_taken(c);
}

bool
frows_tables(struct frows *c, const char *schema, const char *after)
{
	if (!frows_run_names(c, REQUEST_TABLES, schema, after, true))
		return false;
	c->left = (uint32_t)take_int(&c->read, 4);
	return frows_taken(c);
}

bool
frows_name_next(struct frows *c, struct frows_text *ret)
{
	if (!c->left)
		return false;
	c->left--;
	*ret = take_text(&c->read);
	return !c->read.bad;
}

struct frows_text
frows_names_after(const struct frows *c)
{
	struct reader rest = c->read;

	for (uint32_t i = 0; i < c->left; i++)
		(void)take_text(&rest);
	return take_text(&rest);
}

static void
take_column(struct reader *r, struct frows_column *ret)
{
	unsigned flags;

	ret->id = (uint32_t)take_int(r, 4);
	ret->name = take_text(r);
	ret->kind = (enum frows_kind)take_int(r, 1);
	ret->role = (enum frows_role)take_int(r, 1);
	flags = (unsigned)take_int(r, 1);
	ret->descending = flags & FROWS_FLAG_DESCENDING;
	ret->ordered = flags & FROWS_FLAG_ORDERED;
	ret->type = take_text(r);
}

bool
frows_table(struct frows *c, const char *schema, const char *table, struct frows_table *ret)
{
	struct reader r;
	const uint8_t *id;
	uint8_t *body;

	*ret = (struct frows_table){ 0 };
	if (!frows_run_names(c, REQUEST_TABLE, schema, table, true))
		return false;
	ret->count = 0;
	id = take(&c->read, FROWS_ID_BYTES);
	ret->count = take_int(&c->read, 2);
	/* The columns, and behind them the texts that they refer to. */
	ret->memory = calloc(1, ret->count * sizeof(*ret->columns) + c->read.left + 1);
	if (!ret->memory)
		return frows_fail_memory(c);
	ret->columns = ret->memory;
	body = (uint8_t *)(ret->columns + ret->count);
	memcpy(body, c->read.at, c->read.left);
	r = (struct reader){ body, c->read.left, c->read.bad };
	if (id)
		memcpy(ret->id, id, FROWS_ID_BYTES);
	for (size_t i = 0; i < ret->count; i++) {
		take_column(&r, &ret->columns[i]);
		ret->key_count += ret->columns[i].role == FROWS_HASH ||
				  ret->columns[i].role == FROWS_RANGE;
	}
	c->read.bad |= r.bad;
	if (frows_taken(c))
		return true;
	frows_table_free(ret);
	return false;
}

void
frows_table_free(struct frows_table *t)
{
	free(t->memory);
	*t = (struct frows_table){ 0 };
}

bool
frows_estimate(struct frows *c, const char *schema, const char *table, uint64_t *ret_rows,
	       bool *ret_exact)
{
	if (c->version < VERSION_ESTIMATES)
		return fail(c, "0A000", "the server has no estimates");
	if (!frows_run_names(c, REQUEST_ESTIMATE, schema, table, true))
		return false;
	*ret_exact = take_int(&c->read, 1);
	*ret_rows = take_int(&c->read, 8);
	return frows_taken(c);
}

bool
frows_table_create(struct frows *c, const char *schema, const char *table,
		   const struct frows_new *columns, size_t count, uint8_t *id)
{
	const uint8_t *at;

	frows_make_request(c, REQUEST_TABLE_CREATE);
	put_text(&c->out, schema);
	put_text(&c->out, table);
	put_int(&c->out, count, 2);
	for (size_t i = 0; i < count; i++) {
		put_text(&c->out, columns[i].name);
		put_int(&c->out, columns[i].kind, 1);
		put_int(&c->out, columns[i].role, 1);
		put_int(&c->out, columns[i].descending ? FROWS_FLAG_DESCENDING : 0, 1);
	}
	if (!frows_run(c))
		return false;
	at = take(&c->read, FROWS_ID_BYTES);
	if (at && id)
		memcpy(id, at, FROWS_ID_BYTES);
	return frows_taken(c);
}

void
frows_put_of(struct bytes *b, const struct frows_of *of)
{
	static const uint8_t any[FROWS_ID_BYTES];

	put_text(b, of->schema);
	put_text(b, of->table);
	put(b, of->id ? of->id : any, FROWS_ID_BYTES);
}

bool
frows_table_alter(struct frows *c, const char *schema, const char *table,
		  const struct frows_new *add, size_t add_count, const char *const *drop,
		  size_t drop_count, const char *const *rename, size_t rename_count)
{
	frows_make_request(c, REQUEST_TABLE_ALTER);
	frows_put_of(&c->out, &(struct frows_of){ schema, table, NULL });
	put_int(&c->out, add_count, 2);
	for (size_t i = 0; i < add_count; i++) {
		put_text(&c->out, add[i].name);
		put_int(&c->out, add[i].kind, 1);
	}
	put_int(&c->out, drop_count, 2);
	for (size_t i = 0; i < drop_count; i++)
		put_text(&c->out, drop[i]);
	put_int(&c->out, rename_count, 2);
	for (size_t i = 0; i < 2 * rename_count; i++)
		put_text(&c->out, rename[i]);
	return frows_run(c);
}

bool
frows_table_drop(struct frows *c, const char *schema, const char *table)
{
	return frows_run_names(c, REQUEST_TABLE_DROP, schema, table, true);
}

bool
frows_table_empty(struct frows *c, const char *schema, const char *table)
{
	return frows_run_names(c, REQUEST_TABLE_EMPTY, schema, table, true);
}

/* ---- Numbers as bytes ---- */

void
frows_put_int(uint8_t *to, int64_t n, size_t bytes)
{
	uint64_t left = (uint64_t)n;

	for (size_t i = bytes; i; left >>= 8)
		to[--i] = (uint8_t)left;
}

int64_t
frows_int(struct frows_value v)
{
	const uint8_t *at = v.ptr;
	uint64_t n = v.len > 0 && at[0] & 0x80 ? UINT64_MAX : 0;

	for (int32_t i = 0; i < v.len; i++)
		n = n << 8 | at[i];
	return (int64_t)n;
}

void
frows_put_float8(uint8_t to[8], double d)
{
	int64_t bits;

	memcpy(&bits, &d, sizeof(bits));
	frows_put_int(to, bits, sizeof(bits));
}

double
frows_float8(struct frows_value v)
{
	int64_t bits = frows_int(v);
	double d;

	memcpy(&d, &bits, sizeof(d));
	return d;
}
