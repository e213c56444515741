/*
 * A load generator for servers that speak MongoDB's protocol. Each connection has one request
 * under way; the next is sent as soon as an answer is complete and was found right. A wrong answer
 * ends the run with exit code 1. Prints one line of JSON.
 *
 * mongo_load OP PORT CONNECTIONS SECONDS FIRST DOCS [PID...]
 *
 * OP: insert (documents from FIRST on), insert-many (1,000 in a request), find, update, ping. Finds
 * and updates go to the documents 0 to DOCS - 1 at random. SECONDS 0: once for each of DOCS.
 *
 * Of documents of some 90 bytes: insert-small (1,000 in a request); fill, which makes those of the
 * collection that is asked by index (makes the index), find-group (all with one value, by the
 * index), group-covered and group (a sum for each value, of fields that the index has, or not).
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rand.h"
#include "base/thread.h"
#include "bson/json.h"
#include "cpu.h"
#include "histogram.h"
#include "load_data.h"

enum {
	TURN_NS = 100000,
	CONNECTIONS = 1024,
	BATCH = 1000,
	GROUPS = 90, /* values of the field that has an index */
	PIDS = 64,
	ANSWER_BYTES = 64 * 1024,
	REQUEST_BYTES = 4 * 1024 * 1024,
	HEADER_BYTES = 16,
	OP_MSG = 2013,
};

struct conn {
	int fd;
	struct buf out;
	size_t sent;
	char in[ANSWER_BYTES];
	size_t got;
	uint64_t sent_ns;
	uint64_t units; /* of the request under way */
	bool busy;
};

struct run {
	struct op const *op;
	uint64_t next; /* document */
	uint64_t docs;
	uint64_t left; /* units that may still be asked for; UINT64_MAX: any number */
	uint64_t requests;
	uint64_t units;
	uint64_t update;
	struct rand_seq rand;
	struct histogram latencies;
	struct buf document; /* the template of a document, its _id first */
};

struct op {
	const char *name;
	void (*make)(struct run *r, struct conn *c, struct bson_builder *b);
	/* What the answer has to have. */
	const char *member; /* as many as units */
	const char *path;   /* of the last result that a cursor's first batch has */
	bool many;          /* BATCH documents in a request */
};

/* ---- Requests ---- */

/* The document `i`, whose number is the eight bytes behind "_id". */
static struct str
document(struct run *r, uint64_t i)
{
	memcpy(r->document.ptr + 9, &i, sizeof(i));
	return buf_str(&r->document);
}

static bool
document_init(struct run *r)
{
	struct buf text = BUF_INIT(64 * 1024), bson = BUF_INIT(64 * 1024);
	struct err err = { 0 };
	struct bson_builder b;

	if (!data_init())
		return false;
	data_append_doc(&text, 1, false, STR(""));
	if (bson_json_read(buf_str(&text), &bson, &err) != STATUS_OK)
		return false;
	bson_builder_init(&b, &r->document);
	bson_begin(&b);
	bson_put_int64(&b, STR("_id"), 0);
	bson_put_elements(&b, buf_str(&bson));
	bson_end(&b);
	buf_release(&text);
	buf_release(&bson);
	return buf_status(&r->document) == STATUS_OK;
}

static void
put_id(struct bson_builder *b, const char *name, uint64_t i)
{
	bson_begin_document(b, str_from_cstr(name));
	bson_put_int64(b, STR("_id"), (int64_t)i);
	bson_end(b);
}

static void
make_insert(struct run *r, struct conn *c, struct bson_builder *b)
{
	bson_put_string(b, STR("insert"), STR("c"));
	bson_begin_array(b, STR("documents"));
	for (uint64_t i = 0; i < c->units; i++)
		bson_put_document(b, STR(""), document(r, r->next++));
	bson_end(b);
}

static void
make_find(struct run *r, struct conn *c, struct bson_builder *b)
{
	(void)c;
	bson_put_string(b, STR("find"), STR("c"));
	put_id(b, "filter", rand_seq_below(&r->rand, r->docs));
	bson_put_int32(b, STR("limit"), 1);
	bson_put_bool(b, STR("singleBatch"), true);
}

static void
make_update(struct run *r, struct conn *c, struct bson_builder *b)
{
	(void)c;
	bson_put_string(b, STR("update"), STR("c"));
	bson_begin_array(b, STR("updates"));
	bson_begin_document(b, STR(""));
	put_id(b, "q", rand_seq_below(&r->rand, r->docs));
	bson_begin_document(b, STR("u"));
	bson_begin_document(b, STR("$set"));
	bson_put_int64(b, STR("number"), (int64_t)++r->update);
	bson_end(b);
	bson_end(b);
	bson_end(b);
	bson_end(b);
}

static void
make_ping(struct run *r, struct conn *c, struct bson_builder *b)
{
	(void)r;
	(void)c;
	bson_put_int32(b, STR("ping"), 1);
}

/* ---- Requests about small documents ---- */

static void
put_small(struct bson_builder *b, uint64_t i)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "name-%08" PRIu64, i);
	bson_begin_document(b, STR(""));
	bson_put_int64(b, STR("_id"), (int64_t)i);
	bson_put_int32(b, STR("group"), (int32_t)(i % GROUPS));
	bson_put_int32(b, STR("kind"), (int32_t)(i % GROUPS));
	bson_put_int32(b, STR("number"), (int32_t)i);
	bson_put_string(b, STR("name"), str_from_cstr(name));
	bson_put_double(b, STR("price"), (double)i / 4);
	bson_end(b);
}

static void
put_smalls(struct run *r, struct conn *c, struct bson_builder *b, struct str collection)
{
	bson_put_string(b, STR("insert"), collection);
	bson_begin_array(b, STR("documents"));
	for (uint64_t i = 0; i < c->units; i++)
		put_small(b, r->next++);
	bson_end(b);
}

static void
make_insert_small(struct run *r, struct conn *c, struct bson_builder *b)
{
	put_smalls(r, c, b, STR("small"));
}

static void
make_fill(struct run *r, struct conn *c, struct bson_builder *b)
{
	put_smalls(r, c, b, STR("asked"));
}

static void
make_index(struct run *r, struct conn *c, struct bson_builder *b)
{
	(void)r;
	(void)c;
	bson_put_string(b, STR("createIndexes"), STR("asked"));
	bson_begin_array(b, STR("indexes"));
	bson_begin_document(b, STR(""));
	bson_begin_document(b, STR("key"));
	bson_put_int32(b, STR("group"), 1);
	bson_put_int32(b, STR("number"), 1);
	bson_end(b);
	bson_put_string(b, STR("name"), STR("group_1_number_1"));
	bson_end(b);
	bson_end(b);
}

static void
make_find_group(struct run *r, struct conn *c, struct bson_builder *b)
{
	(void)c;
	bson_put_string(b, STR("find"), STR("asked"));
	bson_begin_document(b, STR("filter"));
	bson_put_int32(b, STR("group"), (int32_t)rand_seq_below(&r->rand, GROUPS));
	bson_end(b);
	bson_put_int32(b, STR("batchSize"), BATCH);
}

/* {$group: {_id: KEY, sum: {$sum: VALUE}}} */
static void
put_group(struct bson_builder *b, const char *key, const char *value)
{
	bson_put_string(b, STR("aggregate"), STR("asked"));
	bson_begin_array(b, STR("pipeline"));
	bson_begin_document(b, STR(""));
	bson_begin_document(b, STR("$group"));
	bson_put_string(b, STR("_id"), str_from_cstr(key));
	bson_begin_document(b, STR("sum"));
	bson_put_string(b, STR("$sum"), str_from_cstr(value));
	bson_end(b);
	bson_end(b);
	bson_end(b);
	bson_end(b);
	bson_begin_document(b, STR("cursor"));
	bson_end(b);
}

static void
make_group_covered(struct run *r, struct conn *c, struct bson_builder *b)
{
	(void)r;
	(void)c;
	put_group(b, "$group", "$number");
}

static void
make_group(struct run *r, struct conn *c, struct bson_builder *b)
{
	(void)r;
	(void)c;
	put_group(b, "$kind", "$price");
}

static const struct op ops[] = {
	{ "insert", make_insert, "n", NULL, false },
	{ "insert-many", make_insert, "n", NULL, true },
	{ "find", make_find, NULL, "cursor.firstBatch.0._id", false },
	{ "update", make_update, "n", NULL, false },
	{ "ping", make_ping, NULL, NULL, false },
	{ "insert-small", make_insert_small, "n", NULL, true },
	{ "fill", make_fill, "n", NULL, true },
	{ "index", make_index, NULL, NULL, false },
	{ "find-group", make_find_group, NULL, "cursor.firstBatch.243._id", false },
	{ "group-covered", make_group_covered, NULL, "cursor.firstBatch.89.sum", false },
	{ "group", make_group, NULL, "cursor.firstBatch.89.sum", false },
};

/* ---- Messages ---- */

static void
put_u32(char *to, uint32_t n)
{
	memcpy(to, &n, sizeof(n));
}

/* Makes the next request; false: there is none. */
static bool
request_make(struct run *r, struct conn *c)
{
	static const char head[HEADER_BYTES + 5];
	struct bson_builder b;

	c->units = r->op->many ? BATCH : 1;
	if (c->units > r->left)
		c->units = r->left;
	if (!c->units)
		return false;
	if (r->left != UINT64_MAX)
		r->left -= c->units;
	buf_clear(&c->out);
	buf_append(&c->out, head, sizeof(head));
	bson_builder_init(&b, &c->out);
	bson_begin(&b);
	r->op->make(r, c, &b);
	bson_put_string(&b, STR("$db"), STR("bench"));
	bson_end(&b);
	if (buf_status(&c->out) != STATUS_OK)
		return false;
	put_u32(c->out.ptr, (uint32_t)c->out.len);
	put_u32(c->out.ptr + 12, OP_MSG);
	c->sent = 0;
	c->got = 0;
	c->busy = true;
	c->sent_ns = clock_mono_ns();
	return true;
}

static bool
request_send(struct conn *c)
{
	while (c->sent < c->out.len) {
		ssize_t n = send(c->fd, c->out.ptr + c->sent, c->out.len - c->sent, MSG_NOSIGNAL);

		if (n < 0)
			return false;
		c->sent += (size_t)n;
	}
	return true;
}

static bool
answer_is_right(const struct run *r, const struct conn *c)
{
	struct str body = str_of(c->in + HEADER_BYTES + 5, c->got - HEADER_BYTES - 5);
	struct bson_value ok, v;
	int64_t n;

	if (bson_check(body, NULL) != STATUS_OK || !bson_find(body, STR("ok"), &ok) ||
	    bson_to_double(&ok) != 1)
		return false;
	if (r->op->path)
		return bson_find_path(body, str_from_cstr(r->op->path), &v);
	return !r->op->member || (bson_find(body, str_from_cstr(r->op->member), &v) &&
				  bson_to_int64(&v, &n) && n == (int64_t)c->units);
}

/* Reads what has come. True in `*ret` if the answer is whole. */
static bool
answer_read(struct conn *c, bool *ret)
{
	ssize_t n = recv(c->fd, c->in + c->got, sizeof(c->in) - c->got, 0);
	uint32_t length = 0;

	*ret = false;
	if (n <= 0)
		return false;
	c->got += (size_t)n;
	if (c->got < HEADER_BYTES + 5)
		return true;
	memcpy(&length, c->in, sizeof(length));
	if (length > sizeof(c->in))
		return false;
	*ret = c->got == length;
	return c->got <= length;
}

/* ---- The run ---- */

static bool
conn_open(struct conn *c, int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)port),
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int one = 1;

	c->out = (struct buf)BUF_INIT(REQUEST_BYTES);
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return c->fd >= 0 &&
	       connect(c->fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
	       setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0;
}

static bool
conn_turn(struct run *r, struct conn *c, bool goes_on)
{
	bool whole;

	if (!answer_read(c, &whole))
		return false;
	if (!whole)
		return true;
	histogram_add(&r->latencies, clock_mono_ns() - c->sent_ns);
	if (!answer_is_right(r, c))
		return false;
	c->busy = false;
	r->requests++;
	r->units += c->units;
	return !goes_on || !request_make(r, c) || request_send(c);
}

static bool
any_busy(const struct conn *conns, int count)
{
	for (int i = 0; i < count; i++)
		if (conns[i].busy)
			return true;
	return false;
}

static bool
measure(struct run *r, struct conn *conns, int count, uint64_t until_ns)
{
	struct epoll_event events[CONNECTIONS];
	int poll = epoll_create1(EPOLL_CLOEXEC);

	for (int i = 0; i < count; i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.ptr = &conns[i] };

		if (epoll_ctl(poll, EPOLL_CTL_ADD, conns[i].fd, &event) != 0 ||
		    (request_make(r, &conns[i]) && !request_send(&conns[i])))
			return false;
	}
	while (any_busy(conns, count)) {
		int n = epoll_wait(poll, events, CONNECTIONS, -1);
		bool goes_on = clock_mono_ns() < until_ns;

		for (int i = 0; i < n; i++)
			if (!conn_turn(r, events[i].data.ptr, goes_on))
				return false;
	}
	close(poll);
	return true;
}

int
main(int argc, char **argv)
{
	static struct conn conns[CONNECTIONS];
	static struct run r = { .document = BUF_INIT(64 * 1024) };
	int connections = argc > 3 ? atoi(argv[3]) : 0;
	double seconds = argc > 4 ? atof(argv[4]) : 0;
	uint64_t begin_ns, end_ns, server_us, own_us;

	for (size_t i = 0; argc > 6 && i < sizeof(ops) / sizeof(ops[0]); i++)
		if (strcmp(argv[1], ops[i].name) == 0)
			r.op = &ops[i];
	if (!r.op || connections < 1 || connections > CONNECTIONS || argc - 7 > PIDS) {
		fprintf(stderr, "mongo_load OP PORT CONNECTIONS SECONDS FIRST DOCS [PID...]\n");
		return 2;
	}
	r.next = strtoull(argv[5], NULL, 10);
	r.docs = strtoull(argv[6], NULL, 10);
	r.left = seconds > 0 ? UINT64_MAX : r.docs;
	r.rand.state = clock_mono_ns();
	/* The clients that it stands for have processors of their own. */
	thread_set_turn(TURN_NS);
	if (!document_init(&r)) {
		fprintf(stderr, "mongo_load: out of memory\n");
		return 1;
	}
	for (int i = 0; i < connections; i++)
		if (!conn_open(&conns[i], atoi(argv[2]))) {
			perror("mongo_load");
			return 1;
		}
	server_us = cpu_of_processes_us(argv + 7, argc - 7);
	own_us = cpu_of_self_us();
	begin_ns = clock_mono_ns();
	if (!measure(&r, conns, connections,
		     seconds > 0 ? begin_ns + (uint64_t)(seconds * 1e9) : UINT64_MAX)) {
		fprintf(stderr, "mongo_load: a wrong answer, or a broken connection\n");
		return 1;
	}
	end_ns = clock_mono_ns();
	printf("{\"op\":\"%s\",\"connections\":%d,\"seconds\":%.6f,\"requests\":%" PRIu64
	       ",\"units\":%" PRIu64 ",\"p50_us\":%.1f,\"p99_us\":%.1f,\"server_cpu_us\":%" PRIu64
	       ",\"client_cpu_us\":%" PRIu64 ",\"next\":%" PRIu64 "}\n",
	       r.op->name, connections, (double)(end_ns - begin_ns) / 1e9, r.requests, r.units,
	       (double)histogram_at(&r.latencies, 0.5) / 1e3,
	       (double)histogram_at(&r.latencies, 0.99) / 1e3,
	       cpu_of_processes_us(argv + 7, argc - 7) - server_us, cpu_of_self_us() - own_us,
	       r.next);
	return 0;
}
