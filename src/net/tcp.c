#include "net/tcp.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/address_path.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "loop/libuv.h"
#include "net/conn.h"
#include "net/given.h"
#include "net/path.h"

enum {
	TCP_BACKLOG = 1024,
	TCP_PROBE_S = NET_KEEPALIVE_S / 3, /* between two probes of a peer that does not answer */
	TCP_PROBES = 3,                    /* so many without an answer: the connection is lost */
	/*
	 * About how many unsent bytes the kernel keeps for a connection: at first, and after the
	 * client has shown that it reads.
	 */
	TCP_UNSENT_FIRST_BYTES = 16 * 1024,
	TCP_UNSENT_BYTES = 128 * 1024,
	TCP_PROOF_BYTES = 256 * 1024,  /* a client that has taken so much reads */
	TCP_ACCEPTS = 64,              /* in a row, before other sockets have their turn */
	TCP_ACCEPT_PAUSE_MS = 100,     /* when there are no file descriptors left */
	TCP_ACCEPT_LOG_MS = 10 * 1000, /* between two lines about that */
};

union tcp_address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_un un;
};

struct tcp_acceptor {
	struct net_acceptor base;
	int fd;
	int fd_limit; /* the first descriptor that is no socket's any more */
	bool polled;  /* `poll` is a handle of the loop */
	bool made;    /* the file of `path`, which goes with it */
	struct net_path path;
	uv_poll_t poll;
	struct timer pause;
	uint64_t log_ns; /* not to tell of failures before */
};

struct tcp_stream {
	union {
		uv_handle_t any;
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe; /* of a Unix socket */
	} uv;
	uint32_t given;  /* bytes of output that the kernel has taken, up to TCP_PROOF_BYTES */
	bool has_filled; /* the last read filled the buffer, so others come before the next */
};

struct tcp_write {
	uv_write_t write;
	size_t bytes;
};

_Static_assert(sizeof(struct tcp_write) <= NET_WRITE_BYTES, "a write has room in a net_write");

/* ---- Descriptors ---- */

size_t
net_tcp_share(size_t wanted, size_t *ret_limit)
{
	struct rlimit limit = { .rlim_cur = RLIM_INFINITY };
	size_t share;

	getrlimit(RLIMIT_NOFILE, &limit);
	*ret_limit = limit.rlim_cur;
	share = limit.rlim_cur >= INT_MAX ? SIZE_MAX : limit.rlim_cur / 8 * 5;
	return wanted < share ? wanted : share;
}

/* An eighth is beyond the reach of sockets, even while many are being refused. */
static int
tcp_fd_limit(void)
{
	struct rlimit limit = { .rlim_cur = RLIM_INFINITY };

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur >= INT_MAX)
		return INT_MAX;
	return (int)(limit.rlim_cur - limit.rlim_cur / 8);
}

/* ---- Listening ---- */

static bool
tcp_parse_address(const char *host_port, union tcp_address *ret)
{
	struct str text = str_from_cstr(host_port);
	const char *colon = strrchr(host_port, ':');
	char host[64];
	struct str name;
	uint64_t port;

	if (address_is_path(host_port)) {
		ret->un.sun_family = AF_UNIX;
		(void)snprintf(ret->un.sun_path, sizeof(ret->un.sun_path), "%s", host_port);
		return address_check_path(host_port, NULL) == STATUS_OK;
	}
	if (!colon || !str_to_u64(str_from_cstr(colon + 1), &port) || port > UINT16_MAX)
		return false;
	name = str_of(text.ptr, (size_t)(colon - text.ptr));
	if (name.len > 2 && name.ptr[0] == '[' && name.ptr[name.len - 1] == ']') {
		name = str_of(name.ptr + 1, name.len - 2);
		snprintf(host, sizeof(host), "%.*s", STR_ARG(name));
		return name.len < sizeof(host) && uv_ip6_addr(host, (int)port, &ret->in6) == 0;
	}
	snprintf(host, sizeof(host), "%.*s", STR_ARG(name));
	return name.len < sizeof(host) && uv_ip4_addr(host, (int)port, &ret->in) == 0;
}

/*
 * Has the kernel probe silent peers. So a peer that vanished without closing its connection is also
 * noticed where the server has nothing to send, as to a subscriber. Connections inherit this from
 * the socket that listens.
 */
static void
tcp_keep_alive(int fd)
{
	int one = 1, idle_s = NET_KEEPALIVE_S, between_s = TCP_PROBE_S, probes = TCP_PROBES;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between_s, sizeof(between_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

static enum status
tcp_bind(int fd, const union tcp_address *address, const char *host_port, struct err *err)
{
	socklen_t len = address->any.sa_family == AF_INET ? sizeof(address->in)
							  : sizeof(address->in6);
	int one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (address->any.sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (bind(fd, &address->any, len) != 0 || listen(fd, TCP_BACKLOG) != 0)
		return err_set(err, STATUS_IO, "cannot listen on %s: %s", host_port,
			       strerror(errno));
	return STATUS_OK;
}

/* Makes a socket that listens. `a` keeps what is to be done when it does no more. */
static enum status
tcp_make(const union tcp_address *address, const char *host_port, struct tcp_acceptor *a,
	 struct err *err)
{
	enum status status;

	a->fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (a->fd < 0)
		return err_set(err, STATUS_IO, "cannot make a socket: %s", strerror(errno));
	if (address->any.sa_family == AF_UNIX) {
		status = net_path_listen(a->fd, &address->un, TCP_BACKLOG, &a->path, err);
		a->made = status == STATUS_OK;
	} else {
		status = tcp_bind(a->fd, address, host_port, err);
		if (status == STATUS_OK)
			net_given_made(a->fd);
	}
	if (status != STATUS_OK)
		close(a->fd);
	return status;
}

static enum status
tcp_listen(const char *host_port, struct net_acceptor **ret, struct err *err)
{
	union tcp_address address = { 0 };
	struct tcp_acceptor *a;
	enum status status = STATUS_OK;

	if (!tcp_parse_address(host_port, &address))
		return err_set(err, STATUS_INVALID,
			       "cannot listen on \"%s\": not an address and port, as in "
			       "127.0.0.1:5984 or [::1]:5984, nor the path of a Unix socket",
			       host_port);
	a = mem_zalloc(sizeof(*a));
	if (!a)
		return err_set(err, STATUS_NOMEM, "out of memory for a listener");
	a->fd = net_given_take(&address.any);
	if (a->fd < 0)
		status = tcp_make(&address, host_port, a, err);
	if (status != STATUS_OK) {
		mem_free(a);
		return status;
	}
	if (address.any.sa_family != AF_UNIX)
		tcp_keep_alive(a->fd);
	a->fd_limit = tcp_fd_limit();
	*ret = &a->base;
	return STATUS_OK;
}

static uint16_t
tcp_port(const struct net_acceptor *base)
{
	const struct tcp_acceptor *a = (const struct tcp_acceptor *)base;
	union tcp_address address = { 0 };
	socklen_t len = sizeof(address);

	if (getsockname(a->fd, &address.any, &len) != 0 || address.any.sa_family == AF_UNIX)
		return 0;
	return ntohs(address.any.sa_family == AF_INET6 ? address.in6.sin6_port
						       : address.in.sin_port);
}

/* ---- Accepting ---- */

/* Of a peer at a Unix socket: the numbers of its user and of its process. */
static void
tcp_format_user(int fd, char *ret, size_t n)
{
	struct ucred who = { .uid = (uid_t)-1 };
	socklen_t len = sizeof(who);

	(void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len);
	(void)snprintf(ret, n, "unix-%u:%d", (unsigned)who.uid, (int)who.pid);
}

static void
tcp_format_address(const union tcp_address *address, char *ret, size_t n)
{
	char host[INET6_ADDRSTRLEN] = "";

	if (address->any.sa_family == AF_UNIX) {
		snprintf(ret, n, "%.*s", (int)n - 1, address->un.sun_path);
	} else if (address->any.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &address->in6.sin6_addr, host, sizeof(host));
		snprintf(ret, n, "[%s]:%u", host, ntohs(address->in6.sin6_port));
	} else {
		inet_ntop(AF_INET, &address->in.sin_addr, host, sizeof(host));
		snprintf(ret, n, "%s:%u", host, ntohs(address->in.sin_port));
	}
}

/* Without descriptors every poll would report the same connection again, at once. */
static void
tcp_pause_accepting(struct tcp_acceptor *a, int error)
{
	uint64_t now = clock_mono_ns();

	if (now >= a->log_ns) {
		log_event(LOG_LEVEL_WARN, "accept_failed", "error=\"%s\"", strerror(error));
		a->log_ns = now + TCP_ACCEPT_LOG_MS * CLOCK_NS_PER_MS;
	}
	uv_poll_stop(&a->poll);
	loop_set_timer(a->base.loop, &a->pause, clock_after_ms(TCP_ACCEPT_PAUSE_MS));
}

static void
tcp_on_acceptable(uv_poll_t *poll, int status, int events)
{
	struct tcp_acceptor *a = poll->data;

	(void)status;
	(void)events;
	for (int i = 0; i < TCP_ACCEPTS; i++) {
		union tcp_address address = { 0 };
		socklen_t len = sizeof(address);
		char peer[NET_PEER_BYTES];
		int fd = accept4(a->fd, &address.any, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= a->fd_limit) {
			close(fd);
			tcp_pause_accepting(a, EMFILE);
			break;
		}
		if (fd >= 0) {
			if (address.any.sa_family == AF_UNIX)
				tcp_format_user(fd, peer, sizeof(peer));
			else
				tcp_format_address(&address, peer, sizeof(peer));
			a->base.arrived(&a->base, fd, peer);
			continue;
		}
		if (errno == EINTR || errno == ECONNABORTED)
			continue;
		if (errno != EAGAIN)
			tcp_pause_accepting(a, errno);
		break;
	}
}

static void
tcp_accept_again(struct timer *pause)
{
	struct tcp_acceptor *a = (struct tcp_acceptor *)((char *)pause -
							 offsetof(struct tcp_acceptor, pause));

	uv_poll_start(&a->poll, UV_READABLE, tcp_on_acceptable);
}

static enum status
tcp_accept(struct net_acceptor *base, struct err *err)
{
	struct tcp_acceptor *a = (struct tcp_acceptor *)base;

	TRY(loop_attach_timer(base->loop, &a->pause, tcp_accept_again));
	if (uv_poll_init(loop_uv(base->loop), &a->poll, a->fd) != 0) {
		loop_detach_timer(base->loop, &a->pause);
		return err_set(err, STATUS_IO, "cannot poll a listening socket");
	}
	a->polled = true;
	a->poll.data = a;
	tcp_accept_again(&a->pause);
	return STATUS_OK;
}

static void
tcp_free_acceptor(struct tcp_acceptor *a)
{
	close(a->fd);
	mem_free(a);
}

static void
tcp_on_poll_closed(uv_handle_t *handle)
{
	tcp_free_acceptor(handle->data);
}

static void
tcp_close_acceptor(struct net_acceptor *base)
{
	struct tcp_acceptor *a = (struct tcp_acceptor *)base;

	if (a->made)
		net_path_remove(&a->path);
	if (a->polled) {
		loop_detach_timer(base->loop, &a->pause);
		uv_close((uv_handle_t *)&a->poll, tcp_on_poll_closed);
		return;
	}
	tcp_free_acceptor(a);
}

/* ---- Streams ---- */

static struct tcp_stream *
tcp_of(const struct net_conn *c)
{
	return net_conn_stream(c);
}

static uv_stream_t *
tcp_uv(const struct net_conn *c)
{
	return &tcp_of(c)->uv.stream;
}

static bool
tcp_is_unix(const struct net_conn *c)
{
	return tcp_of(c)->uv.any.type == UV_NAMED_PIPE;
}

static void
tcp_drop(intptr_t handle)
{
	close((int)handle);
}

/*
 * Without this the kernel takes megabytes of output for a client that reads nothing. Only bytes
 * that it cannot send yet are limited; how much may be on its way follows from the path, as before.
 * At a Unix socket nothing is ever on its way, so there the limit is for all bytes that the peer
 * has not read.
 */
static void
tcp_limit_unsent(const struct net_conn *c, int fd, int bytes)
{
	if (tcp_is_unix(c))
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	else
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof(bytes));
}

/*
 * Thousands of clients may ask for much and read nothing. Each costs as much as the kernel keeps
 * unsent, so that limit starts low. A client that has taken TCP_PROOF_BYTES must have read some,
 * because the kernel's buffers on both sides hold less, unless the client has enlarged its own.
 * From then on the limit is higher, so that the kernel has enough to send while the loop is busy
 * with other clients.
 */
static void
tcp_count_given(struct net_conn *c, size_t n)
{
	struct tcp_stream *s = tcp_of(c);
	int fd;

	if (s->given >= TCP_PROOF_BYTES)
		return;
	s->given = n < TCP_PROOF_BYTES - s->given ? s->given + (uint32_t)n : TCP_PROOF_BYTES;
	if (s->given == TCP_PROOF_BYTES && uv_fileno(&s->uv.any, &fd) == 0)
		tcp_limit_unsent(c, fd, TCP_UNSENT_BYTES);
}

static bool
tcp_open(struct net_conn *c, intptr_t handle)
{
	struct tcp_stream *s = tcp_of(c);

	int family = AF_INET, error;
	socklen_t len = sizeof(family);

	(void)getsockopt((int)handle, SOL_SOCKET, SO_DOMAIN, &family, &len);
	if (family == AF_UNIX) {
		uv_pipe_init(loop_uv(&c->loop->loop), &s->uv.pipe, 0);
		error = uv_pipe_open(&s->uv.pipe, (int)handle);
	} else {
		uv_tcp_init(loop_uv(&c->loop->loop), &s->uv.tcp);
		error = uv_tcp_open(&s->uv.tcp, (int)handle);
	}
	s->uv.any.data = c;
	if (error) {
		close((int)handle);
		return false;
	}
	if (family != AF_UNIX)
		uv_tcp_nodelay(&s->uv.tcp, 1);
	tcp_limit_unsent(c, (int)handle, TCP_UNSENT_FIRST_BYTES);
	return true;
}

/*
 * libuv repeats a read that filled the buffer up to 32 times, which is two megabytes of a fast body
 * before other connections get a turn. If it gets no buffer, it returns to the loop and reads the
 * rest in the next turn.
 */
static void
tcp_on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *ret)
{
	struct net_conn *c = handle->data;

	(void)size;
	if (tcp_of(c)->has_filled)
		*ret = uv_buf_init(NULL, 0);
	else
		*ret = uv_buf_init(c->loop->read_buffer, (unsigned)net_conn_read_bytes(c));
}

static void
tcp_on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct net_conn *c = stream->data;

	tcp_of(c)->has_filled = n == (ssize_t)buf->len;
	/* libuv says 0 where it has found nothing to read; for net_conn_on_read() that is the end.
	 */
	if (n == 0 || n == UV_ENOBUFS)
		return;
	if (n == UV_EOF)
		n = 0;
	net_conn_on_read(c, n);
}

static bool
tcp_read(struct net_conn *c, bool on)
{
	tcp_of(c)->has_filled = false;
	if (on)
		return uv_read_start(tcp_uv(c), tcp_on_alloc, tcp_on_read) == 0;
	uv_read_stop(tcp_uv(c));
	return true;
}

static enum net_peer
tcp_probe(const struct net_conn *c)
{
	struct pollfd p = { .events = POLLRDHUP };
	int left = 0;

	if (uv_fileno((uv_handle_t *)tcp_uv(c), &p.fd) != 0 || poll(&p, 1, 0) <= 0)
		return NET_PEER_THERE;
	/* A Unix socket tells at once that its peer has closed it, behind bytes that count. */
	if (tcp_is_unix(c) && ioctl(p.fd, FIONREAD, &left) == 0 && left > 0)
		return NET_PEER_ENDED;
	if (p.revents & (POLLERR | POLLHUP | POLLNVAL))
		return NET_PEER_GONE;
	return p.revents & POLLRDHUP ? NET_PEER_ENDED : NET_PEER_THERE;
}

static void
tcp_local(const struct net_conn *c, char ret[static NET_PEER_BYTES])
{
	union tcp_address address = { 0 };
	socklen_t len = sizeof(address);
	int fd;

	*ret = '\0';
	if (uv_fileno((uv_handle_t *)tcp_uv(c), &fd) == 0 &&
	    getsockname(fd, &address.any, &len) == 0)
		tcp_format_address(&address, ret, NET_PEER_BYTES);
}

static uv_buf_t
tcp_buf(struct str data)
{
	union {
		const char *in;
		char *out;
	} base = { .in = data.ptr }; /* libuv only reads it */

	return uv_buf_init(base.out, (unsigned)data.len);
}

static ssize_t
tcp_try_write(struct net_conn *c, const struct str *pieces, size_t n)
{
	uv_buf_t bufs[2];
	int went;

	assert(n <= 2);
	for (size_t i = 0; i < n; i++)
		bufs[i] = tcp_buf(pieces[i]);
	went = uv_try_write(tcp_uv(c), bufs, (unsigned)n);
	if (went > 0)
		tcp_count_given(c, (size_t)went);
	return went == UV_EAGAIN ? 0 : went;
}

static void
tcp_on_written(uv_write_t *write, int status)
{
	struct net_write *w = write->data;

	if (status == 0)
		tcp_count_given(w->conn, ((struct tcp_write *)w->space)->bytes);
	net_conn_on_written(w->conn, status == 0);
}

static bool
tcp_write(struct net_conn *c, struct net_write *w, struct str data)
{
	struct tcp_write *t = (struct tcp_write *)w->space;
	uv_buf_t buf = tcp_buf(data);

	t->write.data = w;
	t->bytes = data.len;
	return uv_write(&t->write, tcp_uv(c), &buf, 1, tcp_on_written) == 0;
}

static size_t
tcp_unwritten(const struct net_conn *c)
{
	return uv_stream_get_write_queue_size(tcp_uv(c));
}

static size_t
tcp_unconfirmed(const struct net_conn *c)
{
	int bytes = 0;
	int fd;

	if (uv_fileno((uv_handle_t *)tcp_uv(c), &fd) != 0 || ioctl(fd, SIOCOUTQ, &bytes) != 0)
		return 0;
	return bytes > 0 ? (size_t)bytes : 0;
}

static bool
tcp_shutdown(struct net_conn *c)
{
	int fd;

	return uv_fileno((uv_handle_t *)tcp_uv(c), &fd) == 0 && shutdown(fd, SHUT_WR) == 0;
}

static void
tcp_on_closed(uv_handle_t *handle)
{
	net_conn_on_closed(handle->data);
}

static void
tcp_close(struct net_conn *c, bool reset)
{
	struct tcp_stream *s = tcp_of(c);

	if (reset && !tcp_is_unix(c) && uv_tcp_close_reset(&s->uv.tcp, tcp_on_closed) == 0)
		return;
	uv_close(&s->uv.any, tcp_on_closed);
}

const struct net_io net_tcp = {
	.loop = &loop_uv_ops,
	.stream_bytes = sizeof(struct tcp_stream),
	.listen = tcp_listen,
	.port = tcp_port,
	.accept = tcp_accept,
	.close_acceptor = tcp_close_acceptor,
	.drop = tcp_drop,
	.open = tcp_open,
	.read = tcp_read,
	.probe = tcp_probe,
	.local = tcp_local,
	.try_write = tcp_try_write,
	.write = tcp_write,
	.unwritten = tcp_unwritten,
	.unconfirmed = tcp_unconfirmed,
	.shutdown = tcp_shutdown,
	.close = tcp_close,
};
