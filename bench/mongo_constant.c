/*
 * MongoDB's protocol and nothing behind it: answers each command with the same bytes. Commands that
 * write are appended to a log as they came, and answered after one fsync of it, which all that have
 * come together share. A server that keeps what it is told does that much at least. It could spare
 * the file system the new size of the file, which each fsync here brings to the disk: frond makes
 * its log longer ahead of what it writes (kv/embedded/fill.h), and is quicker in that. It says that
 * it is a server on its own, as frond does unless it is told of a replica set. A find in the
 * collection that is asked by index (mongo_load.c) has all documents of one value, and an
 * aggregation has a sum for each value.
 *
 * mongo_constant PORT FILE
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "bson/json.h"
#include "load_data.h"
#include "socket.h"

enum {
	CONNECTIONS = 1024,
	MESSAGE_BYTES = 48000000,
	HEADER_BYTES = 16,
	DOCUMENT_BYTES = 64 * 1024,
	LOG_BYTES = 64 * 1024 * 1024, /* past that the log begins anew, as an empty file */
	WIRE_VERSION = 25,
	ASKED = 22000, /* documents of the collection that is asked by index */
	GROUPS = 90,   /* values of the field that has an index */
	ANSWER_BYTES = 64 * 1024,
	OP_REPLY = 1,
	OP_QUERY = 2004,
	OP_MSG = 2013,
};

struct conn {
	int fd;
	struct buf in;
	struct buf out; /* answers that wait for the fsync */
};

static struct buf document = BUF_INIT(DOCUMENT_BYTES);
static struct buf asked = BUF_INIT(ANSWER_BYTES);  /* an array: the documents of one value */
static struct buf groups = BUF_INIT(ANSWER_BYTES); /* likewise: those of a $group */
static struct buf told = BUF_INIT(UINT32_MAX); /* commands that write, and are not in the log yet */
static int file;

static uint32_t
u32_at(const char *from)
{
	uint32_t n;

	memcpy(&n, from, sizeof(n));
	return n;
}

/* ---- Answers ---- */

static void
put_hello(struct bson_builder *b)
{
	bson_put_bool(b, STR("helloOk"), true);
	bson_put_bool(b, STR("ismaster"), true);
	bson_put_bool(b, STR("isWritablePrimary"), true);
	bson_put_int32(b, STR("maxBsonObjectSize"), 16 * 1024 * 1024);
	bson_put_int32(b, STR("maxMessageSizeBytes"), MESSAGE_BYTES);
	bson_put_int32(b, STR("maxWriteBatchSize"), 100000);
	bson_put_date(b, STR("localTime"), (int64_t)clock_wall_ms());
	bson_put_int32(b, STR("logicalSessionTimeoutMinutes"), 30);
	bson_put_int32(b, STR("connectionId"), 1);
	bson_put_int32(b, STR("minWireVersion"), 0);
	bson_put_int32(b, STR("maxWireVersion"), WIRE_VERSION);
	bson_put_bool(b, STR("readOnly"), false);
}

/* The documents of an insert: in its body, or a sequence of them behind it. */
static int32_t
count_documents(struct str body, struct str behind)
{
	struct bson_value v;
	int32_t n = 0;

	if (bson_find(body, STR("documents"), &v))
		return (int32_t)bson_count(bson_text(&v));
	behind = str_skip(behind,
			  behind.len > 15 ? 15 : behind.len); /* kind, length, "documents" */
	for (size_t len; (len = bson_length(behind)); n++)
		behind = str_skip(behind, len);
	return n;
}

static void
put_batch(struct bson_builder *b, const struct buf *array)
{
	bson_begin_document(b, STR("cursor"));
	if (array) {
		bson_put(b, STR("firstBatch"), &BSON_OF_ARRAY(buf_str(array)));
	} else {
		bson_begin_array(b, STR("firstBatch"));
		bson_put_document(b, STR(""), buf_str(&document));
		bson_end(b);
	}
	bson_put_int64(b, STR("id"), 0);
	bson_put_string(b, STR("ns"), STR("bench.c"));
	bson_end(b);
}

/* Appends the members of an answer. True: the command writes. */
static bool
answer(struct bson_builder *b, struct str body, struct str behind)
{
	struct bson_element e = { 0 };
	bool writes = false;
	struct bson_iter i;

	bson_iter_begin(&i, body);
	if (!bson_iter_read(&i, &e))
		return false;
	if (str_eq(e.name, STR("find"))) {
		put_batch(b, str_eq(bson_text(&e.value), STR("asked")) ? &asked : NULL);
	} else if (str_eq(e.name, STR("aggregate"))) {
		put_batch(b, &groups);
	} else if (str_eq(e.name, STR("insert"))) {
		bson_put_int32(b, STR("n"), count_documents(body, behind));
		writes = true;
	} else if (str_eq(e.name, STR("update"))) {
		bson_put_int32(b, STR("n"), 1);
		bson_put_int32(b, STR("nModified"), 1);
		writes = true;
	} else if (str_eq_nocase(e.name, STR("ismaster")) || str_eq(e.name, STR("hello"))) {
		put_hello(b);
	}
	bson_put_double(b, STR("ok"), 1);
	return writes;
}

/* ---- Messages ---- */

/* Answers one message; one that writes goes to `told`, too. False: it makes no sense. */
static bool
message(struct conn *c, struct str in)
{
	bool query = u32_at(in.ptr + 12) == OP_QUERY;
	size_t skip = HEADER_BYTES + 5, from = c->out.len;
	static const char head[HEADER_BYTES + 20];
	struct bson_builder b;
	struct str body;
	uint32_t length;

	if (query) /* flags, a name, two numbers */
		skip = HEADER_BYTES + 4 + strnlen(in.ptr + HEADER_BYTES + 4, in.len - 20) + 1 + 8;
	if (skip >= in.len)
		return false;
	body = str_skip(in, skip);
	if (!bson_length(body))
		return false;
	buf_append(&c->out, head, query ? HEADER_BYTES + 20 : HEADER_BYTES + 5);
	bson_builder_init(&b, &c->out);
	bson_begin(&b);
	if (answer(&b, str_of(body.ptr, bson_length(body)), str_skip(body, bson_length(body))))
		buf_append(&told, in.ptr, in.len);
	bson_end(&b);
	if (buf_status(&c->out) != STATUS_OK || buf_status(&told) != STATUS_OK)
		return false;
	length = (uint32_t)(c->out.len - from);
	memcpy(c->out.ptr + from, &length, 4);
	memcpy(c->out.ptr + from + 8, in.ptr + 4, 4);
	c->out.ptr[from + 12] = (char)((query ? OP_REPLY : OP_MSG) & 255);
	c->out.ptr[from + 13] = (char)((query ? OP_REPLY : OP_MSG) >> 8);
	if (query)
		c->out.ptr[from + HEADER_BYTES + 16] = 1; /* one document */
	return true;
}

/* Reads what has come, and answers the messages that are whole. */
static bool
conn_read(struct conn *c)
{
	char bytes[64 * 1024];
	ssize_t n = recv(c->fd, bytes, sizeof(bytes), 0);
	size_t at = 0;

	if (n <= 0)
		return false;
	buf_append(&c->in, bytes, (size_t)n);
	if (buf_status(&c->in) != STATUS_OK)
		return false;
	while (c->in.len - at >= HEADER_BYTES + 5) {
		uint32_t length = u32_at(c->in.ptr + at);

		if (length < HEADER_BYTES + 5)
			return false;
		if (c->in.len - at < length)
			break;
		if (!message(c, str_of(c->in.ptr + at, length)))
			return false;
		at += length;
	}
	memmove(c->in.ptr, c->in.ptr + at, c->in.len - at);
	c->in.len -= at;
	return true;
}

static void
conn_free(struct conn *c)
{
	close(c->fd);
	buf_release(&c->in);
	buf_release(&c->out);
	free(c);
}

static void
conn_accept(int listener, int poll)
{
	struct conn *c = calloc(1, sizeof(*c));
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = c };
	int one = 1;

	if (!c)
		return;
	c->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	c->in = (struct buf)BUF_INIT(MESSAGE_BYTES);
	c->out = (struct buf)BUF_INIT(MESSAGE_BYTES);
	if (c->fd < 0 || epoll_ctl(poll, EPOLL_CTL_ADD, c->fd, &event) != 0) {
		free(c);
		return;
	}
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

/* Appends to the log what has been told, and syncs it. */
static bool
log_write(void)
{
	static uint64_t written;

	if (written > LOG_BYTES) {
		if (ftruncate(file, 0) != 0)
			return false;
		written = 0;
	}
	for (size_t at = 0; at < told.len;) {
		ssize_t n = pwrite(file, told.ptr + at, told.len - at, (off_t)written);

		if (n <= 0)
			return false;
		at += (size_t)n;
		written += (uint64_t)n;
	}
	buf_clear(&told);
	return fdatasync(file) == 0;
}

static void
serve(int listener, int poll)
{
	struct epoll_event events[CONNECTIONS];
	int n = epoll_wait(poll, events, CONNECTIONS, -1);

	for (int i = 0; i < n; i++) {
		struct conn *c = events[i].data.ptr;

		if (!c) {
			conn_accept(listener, poll);
		} else if (!conn_read(c)) {
			conn_free(c);
			events[i].data.ptr = NULL;
		}
	}
	if (told.len && !log_write())
		exit(1);
	for (int i = 0; i < n; i++) {
		struct conn *c = events[i].data.ptr;

		if (c && !socket_send_all(c->fd, &c->out))
			conn_free(c);
	}
}

/* As mongo_load makes them. */
static void
answers_init(void)
{
	struct bson_builder b;
	char name[32];

	bson_builder_init(&b, &asked);
	bson_begin_outer_array(&b);
	for (int i = 0; i < ASKED; i += GROUPS) {
		(void)snprintf(name, sizeof(name), "name-%08d", i);
		bson_begin_document(&b, STR(""));
		bson_put_int64(&b, STR("_id"), i);
		bson_put_int32(&b, STR("group"), 0);
		bson_put_int32(&b, STR("kind"), 0);
		bson_put_int32(&b, STR("number"), i);
		bson_put_string(&b, STR("name"), str_from_cstr(name));
		bson_put_double(&b, STR("price"), i / 4.0);
		bson_end(&b);
	}
	bson_end(&b);
	bson_builder_init(&b, &groups);
	bson_begin_outer_array(&b);
	for (int i = 0; i < GROUPS; i++) {
		bson_begin_document(&b, STR(""));
		bson_put_int32(&b, STR("_id"), i);
		bson_put_int32(&b, STR("sum"), ASKED / GROUPS * ASKED / 2);
		bson_end(&b);
	}
	bson_end(&b);
}

static bool
document_init(void)
{
	struct buf text = BUF_INIT(DOCUMENT_BYTES);
	struct err err = { 0 };

	if (!data_init())
		return false;
	data_append_doc(&text, 1, true, STR(""));
	answers_init();
	return bson_json_read(buf_str(&text), &document, &err) == STATUS_OK &&
	       buf_status(&asked) == STATUS_OK && buf_status(&groups) == STATUS_OK;
}

int
main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)(argc > 1 ? atoi(argv[1]) : 0)),
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct epoll_event event = { .events = EPOLLIN };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int poll = epoll_create1(EPOLL_CLOEXEC), one = 1;

	if (argc != 3) {
		fprintf(stderr, "mongo_constant PORT FILE\n");
		return 2;
	}
	file = open(argv[2], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	signal(SIGPIPE, SIG_IGN);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (file < 0 || !document_init() ||
	    bind(listener, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(listener, CONNECTIONS) != 0 ||
	    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event) != 0) {
		perror("mongo_constant");
		return 1;
	}
	printf("mongo_constant at 127.0.0.1:%s\n", argv[1]);
	fflush(stdout);
	for (;;)
		serve(listener, poll);
}
