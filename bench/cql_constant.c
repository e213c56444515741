/*
 * A server of constants for Cassandra's clients: what it is asked for the first time it asks frond,
 * and from then on it answers with the same bytes. So drivers find a server that knows its schema,
 * and what they reach here is the most that they could reach. Of EXECUTE the statement alone
 * decides: each row is the first one. It writes nothing down and waits for no disk. Version 4 of
 * the protocol, without compression.
 *
 * cql_constant PORT-OF-FROND
 *
 * Prints the port on which it listens, and serves until it is ended.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/big_endian.h"
#include "base/buf.h"
#include "base/hash.h"
#include "socket.h"

enum {
	CONNECTIONS = 1024,
	KNOWN = 1024, /* questions with their answers */
	FRAME_BYTES = 16 * 1024 * 1024,
	FRAME_HEADER = 9,
	VERSION = 4,
	RECEIVE_BYTES = 64 * 1024,
	OP_STARTUP = 1,
	OP_EXECUTE = 10,
};

struct known {
	uint64_t question;
	struct buf answer; /* a frame */
};

struct conn {
	int fd;
	struct buf in, out;
};

static struct known known[KNOWN];
static size_t known_count;
static struct conn frond;

static struct sockaddr_in
loopback(int port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons((uint16_t)port),
				     .sin_addr = { htonl(INADDR_LOOPBACK) } };
}

static void
conn_init(struct conn *c, int fd)
{
	int one = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	*c = (struct conn){ fd, BUF_INIT(2 * FRAME_BYTES), BUF_INIT(2 * FRAME_BYTES) };
}

static bool
conn_receive(struct conn *c)
{
	char bytes[RECEIVE_BYTES];
	ssize_t n = recv(c->fd, bytes, sizeof(bytes), 0);

	if (n <= 0)
		return false;
	buf_append(&c->in, bytes, (size_t)n);
	return buf_status(&c->in) == STATUS_OK;
}

/* The length of the frame that the bytes begin with; 0: not all of it is here. */
static size_t
frame_len(struct str in)
{
	size_t len;

	if (in.len < FRAME_HEADER)
		return 0;
	len = FRAME_HEADER + (size_t)big_endian_32(in.ptr + 5);
	return len <= in.len ? len : 0;
}

/*
 * What the answer depends on: the opcode and the body; of EXECUTE the statement's id, of STARTUP
 * nothing else.
 */
static uint64_t
question_of(struct str frame)
{
	struct str body = str_skip(frame, FRAME_HEADER);

	if (frame.ptr[4] == OP_EXECUTE && body.len >= 2) {
		size_t id = 2 + ((size_t)(uint8_t)body.ptr[0] << 8 | (uint8_t)body.ptr[1]);

		body.len = id < body.len ? id : body.len;
	} else if (frame.ptr[4] == OP_STARTUP) {
		body.len = 0;
	}
	return hash_keyed((uint8_t)frame.ptr[4], body);
}

static struct known *
known_find(uint64_t question)
{
	for (size_t i = 0; i < known_count; i++)
		if (known[i].question == question)
			return &known[i];
	return NULL;
}

/* Asks frond; NULL: it does not answer, or there are too many questions. */
static struct known *
known_learn(uint64_t question, struct str frame)
{
	struct known *k = &known[known_count];
	size_t len;

	if (known_count == KNOWN)
		return NULL;
	buf_append_str(&frond.out, frame);
	if (!socket_send_all(frond.fd, &frond.out))
		return NULL;
	while (!(len = frame_len(buf_str(&frond.in))))
		if (!conn_receive(&frond))
			return NULL;
	*k = (struct known){ question, BUF_INIT(FRAME_BYTES) };
	buf_append(&k->answer, frond.in.ptr, len);
	buf_consume(&frond.in, len);
	/* An error, such as a statement that is not prepared yet, may be another answer later. */
	if (k->answer.ptr && k->answer.ptr[4])
		known_count++;
	return buf_status(&k->answer) == STATUS_OK ? k : NULL;
}

/* Answers a frame. False: the connection ends. */
static bool
answer(struct conn *c, struct str frame)
{
	uint64_t question;
	struct known *k;
	size_t from = c->out.len;

	/* As frond does, which a client of a newer version then follows. */
	if (frame.ptr[0] != VERSION)
		return false;
	question = question_of(frame);
	k = known_find(question);
	if (!k)
		k = known_learn(question, frame);
	if (!k)
		return false;
	buf_append_str(&c->out, buf_str(&k->answer));
	if (buf_status(&c->out) != STATUS_OK)
		return false;
	memcpy(c->out.ptr + from + 2, frame.ptr + 2, 2); /* the stream */
	return true;
}

static bool
turn(struct conn *c)
{
	size_t taken = 0, len;

	if (!conn_receive(c))
		return false;
	while ((len = frame_len(str_skip(buf_str(&c->in), taken)))) {
		if (!answer(c, str_of(c->in.ptr + taken, len)))
			return false;
		taken += len;
	}
	buf_consume(&c->in, taken);
	return socket_send_all(c->fd, &c->out);
}

static void
conn_end(struct conn *c)
{
	close(c->fd);
	buf_release(&c->in);
	buf_release(&c->out);
	free(c);
}

/* Connects to frond, whose answer to STARTUP is then everybody's. */
static bool
frond_connect(int port)
{
	struct sockaddr_in address = loopback(port);
	const struct str startup = STR("\4\0\0\0\1\0\0\0\26\0\1\0\13CQL_VERSION\0\5"
				       "3.0.0");
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0)
		return false;
	conn_init(&frond, fd);
	return known_learn(question_of(startup), startup) != NULL;
}

static int
listen_begin(void)
{
	struct sockaddr_in address = loopback(0);
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, len) != 0 ||
	    listen(fd, CONNECTIONS) != 0 || getsockname(fd, (struct sockaddr *)&address, &len) != 0)
		return -1;
	printf("%d\n", ntohs(address.sin_port));
	fflush(stdout);
	return fd;
}

static bool
watch(int poll, int fd, struct conn *c)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = c };

	return epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* A connection that cannot be taken is closed. */
static void
conn_accept(int poll, int listener)
{
	int fd = accept(listener, NULL, NULL);
	struct conn *c = fd < 0 ? NULL : malloc(sizeof(*c));

	if (!c) {
		if (fd >= 0)
			close(fd);
		return;
	}
	conn_init(c, fd);
	if (!watch(poll, fd, c))
		conn_end(c);
}

int
main(int argc, char **argv)
{
	struct epoll_event events[CONNECTIONS];
	int poll = epoll_create1(EPOLL_CLOEXEC), listener;

	if (argc != 2 || poll < 0 || !frond_connect(atoi(argv[1]))) {
		fprintf(stderr, "cql_constant PORT-OF-FROND\n");
		return 2;
	}
	listener = listen_begin();
	if (listener < 0 || !watch(poll, listener, NULL)) {
		perror("cql_constant");
		return 1;
	}
	for (;;) {
		int n = epoll_wait(poll, events, CONNECTIONS, -1);

		for (int i = 0; i < n; i++) {
			struct conn *c = events[i].data.ptr;

			if (!c)
				conn_accept(poll, listener);
			else if (!turn(c))
				conn_end(c);
		}
	}
}
