/*
 * Load for the door for Cassandra's clients: raw connections with prepared statements, some of them
 * under way at a time; and the same of Redis's door, whose hashes have the fields that rows have as
 * columns. It looks at every answer; one that is wrong ends the run with exit code 1. Prints one
 * line of JSON.
 *
 * cql_load OP PORT CONNECTIONS IN_FLIGHT SECONDS FIRST ROWS [PID...]
 *
 * OP: insert, insert-updated, insert-indexed, hset (new rows from FIRST on); select, select-column,
 * hgetall, update, hset-one, lwt, lwt-column, counter, hincrby (of the rows 0 to ROWS - 1 at
 * random); hot-lwt, hot-counter, hot-update (all of row 0); select-updated (of the table that
 * insert-updated fills, and whose columns the updates write); fill-partitions, partition (100 rows
 * of one of ROWS partitions); scan (all rows of these, in pages of 5,000, over and over);
 * fill-small, scan-small (the same of rows of three small columns). Units are rows where rows are
 * read, otherwise requests. SECONDS 0: ROWS requests.
 * The connections of a scan share its place: each asks for the page behind the last answer.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/big_endian.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/rand.h"
#include "base/thread.h"
#include "cpu.h"
#include "histogram.h"
#include "socket.h"

enum {
	TURN_NS = 100000,
	CONNECTIONS = 1024,
	IN_FLIGHT = 64,
	PIDS = 64,
	COLUMNS = 6,
	COLUMN_BYTES = 166, /* 1,000 bytes in all */
	OWN_BYTES = 8,      /* of a text: those that are not the same in all rows */
	SMALL_BYTES = 10,
	PARTITION_ROWS = 100,
	PAGE_ROWS = 5000,
	ANSWER_BYTES = 8 * 1024 * 1024,
	REQUEST_BYTES = 1024 * 1024,
	ID_BYTES = 64,
	STATE_BYTES = 16 * 1024,

	/* Cassandra's protocol, version 4. */
	FRAME_HEADER = 9,
	OP_STARTUP = 1,
	OP_READY = 2,
	OP_RESULT = 8,
	OP_PREPARE = 9,
	OP_EXECUTE = 10,
	RESULT_ROWS = 2,
	RESULT_PREPARED = 4,
	HAS_VALUES = 1,
	SKIP_METADATA = 2,
	HAS_PAGE_SIZE = 4,
	HAS_STATE = 8,
	MORE_PAGES = 2,
	NO_METADATA = 4,
};

struct run;

struct conn {
	int fd;
	struct buf out; /* what is not sent yet */
	struct buf in;  /* what is not taken yet */
	uint64_t sent_ns[IN_FLIGHT];
	unsigned first, count; /* of those under way: answers come in their order */
};

struct op {
	const char *name;
	const char *statement; /* NULL: of Redis's door */
	void (*make)(struct run *r, struct buf *out);
	uint64_t rows; /* in an answer; 0: none are read; UINT64_MAX: any number */
	bool is_new;   /* rows from FIRST on */
};

struct run {
	const struct op *op;
	uint64_t next, rows, left;
	uint64_t requests, units;
	unsigned in_flight;
	struct rand_seq rand;
	struct histogram latencies;
	char id[ID_BYTES]; /* of the prepared statement */
	size_t id_len;
	struct buf state; /* where the scan goes on */
	char text[COLUMN_BYTES];
};

/* ---- Bytes ---- */

static void
put_16(struct buf *out, uint64_t n)
{
	buf_append_byte(out, (char)(n >> 8));
	buf_append_byte(out, (char)n);
}

static void
put_32(struct buf *out, uint64_t n)
{
	put_16(out, n >> 16);
	put_16(out, n);
}

static uint64_t
row_of(struct run *r)
{
	return r->op->is_new ? r->next++ : rand_seq_below(&r->rand, r->rows);
}

/* ---- Cassandra's requests ---- */

static void
frame_begin(struct buf *out, uint8_t opcode)
{
	const char head[FRAME_HEADER] = { 4, 0, 0, 0, (char)opcode };

	buf_append(out, head, sizeof(head));
}

static void
frame_end(struct buf *out, size_t from)
{
	if (buf_status(out) == STATUS_OK)
		big_endian_put_32(out->ptr + from + 5, (uint32_t)(out->len - from - FRAME_HEADER));
}

/* The head of EXECUTE, up to how many values follow. */
static void
execute_begin(struct run *r, struct buf *out, size_t values)
{
	put_16(out, r->id_len);
	buf_append(out, r->id, r->id_len);
	put_16(out, 1);
	buf_append_byte(out, HAS_VALUES | SKIP_METADATA);
	put_16(out, values);
}

static void
put_key(struct buf *out, uint64_t n)
{
	put_32(out, 8);
	put_32(out, n >> 32);
	put_32(out, n);
}

static void
put_text(struct run *r, struct buf *out)
{
	put_32(out, sizeof(r->text));
	buf_append(out, r->text, sizeof(r->text));
}

/*
 * Of the column that may have an index: a value of each row's own. If all had the same one, entries
 * would differ in their last bytes alone, and all of them be compared up to there.
 */
static void
put_own_text(struct run *r, struct buf *out)
{
	char own[OWN_BYTES];

	for (size_t i = 0; i < sizeof(own); i++)
		own[i] = (char)('a' + rand_seq_below(&r->rand, 26));
	put_32(out, sizeof(r->text));
	buf_append(out, own, sizeof(own));
	buf_append(out, r->text + sizeof(own), sizeof(r->text) - sizeof(own));
}

static void
make_insert(struct run *r, struct buf *out)
{
	execute_begin(r, out, 1 + COLUMNS);
	put_key(out, row_of(r));
	put_own_text(r, out);
	for (int i = 1; i < COLUMNS; i++)
		put_text(r, out);
}

static void
make_key(struct run *r, struct buf *out)
{
	execute_begin(r, out, 1);
	put_key(out, row_of(r));
}

static void
make_update(struct run *r, struct buf *out)
{
	execute_begin(r, out, 2);
	put_text(r, out);
	put_key(out, row_of(r));
}

static void
make_hot_update(struct run *r, struct buf *out)
{
	execute_begin(r, out, 2);
	put_text(r, out);
	put_key(out, 0);
}

static void
make_hot_counter(struct run *r, struct buf *out)
{
	execute_begin(r, out, 1);
	put_key(out, 0);
}

static void
make_partition_row(struct run *r, struct buf *out)
{
	uint64_t n = row_of(r);

	execute_begin(r, out, 3);
	put_key(out, n / PARTITION_ROWS);
	put_key(out, n % PARTITION_ROWS);
	put_text(r, out);
}

static void
make_small_row(struct run *r, struct buf *out)
{
	uint64_t n = row_of(r);

	execute_begin(r, out, 4);
	put_key(out, n);
	put_32(out, 4);
	put_32(out, n % 1000);
	put_key(out, n * 7);
	put_32(out, SMALL_BYTES);
	buf_append(out, r->text, SMALL_BYTES);
}

static void
make_scan(struct run *r, struct buf *out)
{
	put_16(out, r->id_len);
	buf_append(out, r->id, r->id_len);
	put_16(out, 1);
	buf_append_byte(out, SKIP_METADATA | HAS_PAGE_SIZE | (r->state.len ? HAS_STATE : 0));
	put_32(out, PAGE_ROWS);
	if (r->state.len) {
		put_32(out, r->state.len);
		buf_append_str(out, buf_str(&r->state));
	}
}

/* ---- Redis's requests ---- */

static void
put_words(struct buf *out, unsigned count, const char *command, uint64_t row)
{
	char key[32];
	int len = snprintf(key, sizeof(key), "row:%" PRIu64, row);

	buf_printf(out, "*%u\r\n$%zu\r\n%s\r\n$%d\r\n%s\r\n", count, strlen(command), command, len,
		   key);
}

static void
put_field(struct run *r, struct buf *out, int i)
{
	buf_printf(out, "$1\r\n%c\r\n$%d\r\n", 'a' + i, COLUMN_BYTES);
	buf_append(out, r->text, sizeof(r->text));
	buf_append_cstr(out, "\r\n");
}

static void
make_hset(struct run *r, struct buf *out)
{
	put_words(out, 2 + 2 * COLUMNS, "HSET", row_of(r));
	for (int i = 0; i < COLUMNS; i++)
		put_field(r, out, i);
}

static void
make_hset_one(struct run *r, struct buf *out)
{
	put_words(out, 4, "HSET", row_of(r));
	put_field(r, out, 0);
}

static void
make_hgetall(struct run *r, struct buf *out)
{
	put_words(out, 2, "HGETALL", row_of(r));
}

static void
make_hincrby(struct run *r, struct buf *out)
{
	put_words(out, 4, "HINCRBY", UINT64_C(1) << 40 | row_of(r));
	buf_append_cstr(out, "$1\r\nn\r\n$1\r\n1\r\n");
}

/*
 * Rows of table "t" stay as INSERT has written them. UPDATEs go to table "u", where a column that
 * was updated lies apart from its row. Table "i" has an index.
 */
#define ROW_INSERT(table)                                                                          \
	"INSERT INTO bench." table " (k, a, b, c, d, e, f) VALUES (?, ?, ?, ?, ?, ?, ?)"
#define ROW_UPDATE "UPDATE bench.u SET a = ? WHERE k = ?"

static const struct op ops[] = {
	{ "insert", ROW_INSERT("t"), make_insert, 0, true },
	{ "insert-updated", ROW_INSERT("u"), make_insert, 0, true },
	{ "select", "SELECT * FROM bench.t WHERE k = ?", make_key, 1, false },
	{ "select-updated", "SELECT * FROM bench.u WHERE k = ?", make_key, 1, false },
	{ "select-column", "SELECT a FROM bench.t WHERE k = ?", make_key, 1, false },
	{ "update", ROW_UPDATE, make_update, 0, false },
	{ "hot-update", ROW_UPDATE, make_hot_update, 0, false },
	{ "lwt", ROW_UPDATE " IF EXISTS", make_update, 1, false },
	{ "lwt-column", ROW_UPDATE " IF b >= ''", make_update, 1, false },
	{ "hot-lwt", ROW_UPDATE " IF EXISTS", make_hot_update, 1, false },
	{ "counter", "UPDATE bench.counts SET n = n + 1 WHERE k = ?", make_key, 0, false },
	{ "hot-counter", "UPDATE bench.counts SET n = n + 1 WHERE k = ?", make_hot_counter, 0,
	  false },
	{ "fill-partitions", "INSERT INTO bench.p (k, c, v) VALUES (?, ?, ?)", make_partition_row,
	  0, true },
	{ "partition", "SELECT * FROM bench.p WHERE k = ?", make_key, PARTITION_ROWS, false },
	{ "scan", "SELECT * FROM bench.p", make_scan, UINT64_MAX, false },
	{ "insert-indexed", ROW_INSERT("i"), make_insert, 0, true },
	{ "fill-small", "INSERT INTO bench.s (k, a, b, c) VALUES (?, ?, ?, ?)", make_small_row, 0,
	  true },
	{ "scan-small", "SELECT * FROM bench.s", make_scan, UINT64_MAX, false },
	{ "hset", NULL, make_hset, 0, true },
	{ "hset-one", NULL, make_hset_one, 0, false },
	{ "hgetall", NULL, make_hgetall, 1, false },
	{ "hincrby", NULL, make_hincrby, 0, false },
};

/* ---- Answers ---- */

/* The rows of a RESULT without metadata, and where the scan goes on. */
static bool
rows_take(struct run *r, struct str body, uint64_t *ret)
{
	uint32_t flags;

	if (body.len < 16)
		return false;
	flags = big_endian_32(body.ptr + 4);
	body = str_skip(body, 12);
	buf_clear(&r->state);
	if (flags & MORE_PAGES) {
		uint32_t len = big_endian_32(body.ptr);

		if (body.len < 4 + (size_t)len)
			return false;
		buf_append(&r->state, body.ptr + 4, len);
		body = str_skip(body, 4 + (size_t)len);
	}
	/* A conditional statement tells its columns each time, and gives one row. */
	*ret = flags & NO_METADATA && body.len >= 4 ? big_endian_32(body.ptr) : 1;
	return buf_status(&r->state) == STATUS_OK;
}

/* The length of the first answer; 0: not all of it is here; -1: it is wrong. */
static ssize_t
cql_answer(struct run *r, struct str in, uint64_t *ret_rows)
{
	struct str body;
	uint32_t len;

	if (in.len < FRAME_HEADER)
		return 0;
	len = big_endian_32(in.ptr + 5);
	if (in.len < FRAME_HEADER + (size_t)len)
		return 0;
	body = str_of(in.ptr + FRAME_HEADER, len);
	if (in.ptr[4] != OP_RESULT || body.len < 4)
		return -1;
	*ret_rows = 0;
	if (big_endian_32(body.ptr) == RESULT_ROWS && !rows_take(r, body, ret_rows))
		return -1;
	return (ssize_t)(FRAME_HEADER + len);
}

/* The length of a line with its end; 0: it is not here. */
static size_t
line_len(struct str in)
{
	const char *end = in.len ? memchr(in.ptr, '\n', in.len) : NULL;

	return end ? (size_t)(end - in.ptr) + 1 : 0;
}

static ssize_t
redis_answer(struct str in, uint64_t *ret_rows)
{
	size_t at = line_len(in);
	long parts;

	*ret_rows = 0;
	if (!at || in.ptr[0] == ':')
		return (ssize_t)at;
	if (in.ptr[0] != '*')
		return -1;
	parts = strtol(in.ptr + 1, NULL, 10);
	*ret_rows = parts == 2L * COLUMNS;
	while (parts--) {
		size_t line = line_len(str_skip(in, at));
		long len;

		if (!line)
			return 0;
		len = strtol(in.ptr + at + 1, NULL, 10);
		at += line + (size_t)len + 2;
		if (len < 0 || at > in.len)
			return len < 0 ? -1 : 0;
	}
	return (ssize_t)at;
}

/* ---- Connections ---- */

/* Appends requests until as many are under way as may be. */
static bool
fill(struct run *r, struct conn *c)
{
	while (c->count < r->in_flight && r->left) {
		size_t from = c->out.len;

		if (r->left != UINT64_MAX)
			r->left--;
		if (r->op->statement)
			frame_begin(&c->out, OP_EXECUTE);
		r->op->make(r, &c->out);
		if (r->op->statement)
			frame_end(&c->out, from);
		c->sent_ns[(c->first + c->count++) % IN_FLIGHT] = clock_mono_ns();
	}
	return buf_status(&c->out) == STATUS_OK && socket_send_all(c->fd, &c->out);
}

static bool
receive(struct conn *c)
{
	char bytes[64 * 1024];
	ssize_t n = recv(c->fd, bytes, sizeof(bytes), 0);

	if (n <= 0)
		return false;
	buf_append(&c->in, bytes, (size_t)n);
	return buf_status(&c->in) == STATUS_OK;
}

/* Asks for one thing and waits for its answer, whose body is `*ret`. */
static bool
ask(struct conn *c, uint8_t opcode, struct str body, struct str *ret)
{
	buf_clear(&c->in);
	frame_begin(&c->out, opcode);
	buf_append_str(&c->out, body);
	frame_end(&c->out, 0);
	if (!socket_send_all(c->fd, &c->out))
		return false;
	do {
		if (!receive(c))
			return false;
	} while (c->in.len < FRAME_HEADER ||
		 c->in.len < FRAME_HEADER + (size_t)big_endian_32(c->in.ptr + 5));
	*ret = str_skip(buf_str(&c->in), FRAME_HEADER);
	return c->in.ptr[4] == OP_READY || c->in.ptr[4] == OP_RESULT;
}

static bool
prepare(struct run *r, struct conn *c)
{
	struct buf body = BUF_INIT(REQUEST_BYTES);
	struct str answer;
	bool good;

	put_32(&body, strlen(r->op->statement));
	buf_append_cstr(&body, r->op->statement);
	good = ask(c, OP_STARTUP,
		   STR("\0\1\0\13CQL_VERSION\0\5"
		       "3.0.0"),
		   &answer) &&
	       ask(c, OP_PREPARE, buf_str(&body), &answer) && answer.len >= 6 &&
	       big_endian_32(answer.ptr) == RESULT_PREPARED;
	if (good) {
		r->id_len = (size_t)((uint8_t)answer.ptr[4] << 8 | (uint8_t)answer.ptr[5]);
		good = r->id_len <= sizeof(r->id) && answer.len >= 6 + r->id_len;
	}
	if (good)
		memcpy(r->id, answer.ptr + 6, r->id_len);
	buf_clear(&c->in);
	buf_release(&body);
	return good;
}

static bool
conn_open(struct run *r, struct conn *c, int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)port),
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int one = 1;

	c->out = (struct buf)BUF_INIT(IN_FLIGHT * REQUEST_BYTES);
	c->in = (struct buf)BUF_INIT(ANSWER_BYTES);
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return c->fd >= 0 &&
	       connect(c->fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
	       setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0 &&
	       (!r->op->statement || prepare(r, c));
}

/* Takes the answers that are here. */
static bool
conn_turn(struct run *r, struct conn *c, bool goes_on)
{
	size_t taken = 0;

	if (!receive(c))
		return false;
	while (c->count) {
		struct str in = str_skip(buf_str(&c->in), taken);
		uint64_t rows;
		ssize_t len = r->op->statement ? cql_answer(r, in, &rows) : redis_answer(in, &rows);

		if (len < 0 || (len && r->op->rows != UINT64_MAX && rows != r->op->rows))
			return false;
		if (!len)
			break;
		taken += (size_t)len;
		histogram_add(&r->latencies, clock_mono_ns() - c->sent_ns[c->first]);
		c->first = (c->first + 1) % IN_FLIGHT;
		c->count--;
		r->requests++;
		r->units += r->op->rows ? rows : 1;
	}
	memmove(c->in.ptr, c->in.ptr + taken, c->in.len - taken);
	c->in.len -= taken;
	return !goes_on || fill(r, c);
}

/* ---- The run ---- */

static bool
any_busy(const struct conn *conns, int count)
{
	for (int i = 0; i < count; i++)
		if (conns[i].count)
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

		if (epoll_ctl(poll, EPOLL_CTL_ADD, conns[i].fd, &event) != 0 || !fill(r, &conns[i]))
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
	static struct run r = { .state = BUF_INIT(STATE_BYTES) };
	int connections = argc > 3 ? atoi(argv[3]) : 0, in_flight = argc > 4 ? atoi(argv[4]) : 0;
	double seconds = argc > 5 ? atof(argv[5]) : 0;
	uint64_t begin_ns, end_ns, server_us, own_us;

	for (size_t i = 0; argc > 7 && i < sizeof(ops) / sizeof(ops[0]); i++)
		if (strcmp(argv[1], ops[i].name) == 0)
			r.op = &ops[i];
	if (!r.op || connections < 1 || connections > CONNECTIONS || in_flight < 1 ||
	    in_flight > IN_FLIGHT || argc - 8 > PIDS) {
		fprintf(stderr, "cql_load OP PORT CONNECTIONS IN_FLIGHT SECONDS FIRST ROWS "
				"[PID...]\n");
		return 2;
	}
	r.in_flight = (unsigned)in_flight;
	r.next = strtoull(argv[6], NULL, 10);
	r.rows = strtoull(argv[7], NULL, 10);
	r.left = seconds > 0 ? UINT64_MAX : r.rows;
	r.rand.state = clock_mono_ns();
	for (size_t i = 0; i < sizeof(r.text); i++)
		r.text[i] = (char)('a' + rand_seq_below(&r.rand, 26));
	/* The clients that it stands for have processors of their own. */
	thread_set_turn(TURN_NS);
	for (int i = 0; i < connections; i++)
		if (!conn_open(&r, &conns[i], atoi(argv[2]))) {
			perror("cql_load");
			return 1;
		}
	server_us = cpu_of_processes_us(argv + 8, argc - 8);
	own_us = cpu_of_self_us();
	begin_ns = clock_mono_ns();
	if (!measure(&r, conns, connections,
		     seconds > 0 ? begin_ns + (uint64_t)(seconds * 1e9) : UINT64_MAX)) {
		fprintf(stderr, "cql_load: a wrong answer, or a broken connection\n");
		return 1;
	}
	end_ns = clock_mono_ns();
	printf("{\"op\":\"%s\",\"connections\":%d,\"in_flight\":%d,\"seconds\":%.6f,"
	       "\"requests\":%" PRIu64 ",\"units\":%" PRIu64 ",\"p50_us\":%.1f,\"p99_us\":%.1f,"
	       "\"server_cpu_us\":%" PRIu64 ",\"client_cpu_us\":%" PRIu64 ",\"next\":%" PRIu64
	       "}\n",
	       r.op->name, connections, in_flight, (double)(end_ns - begin_ns) / 1e9, r.requests,
	       r.units, (double)histogram_at(&r.latencies, 0.5) / 1e3,
	       (double)histogram_at(&r.latencies, 0.99) / 1e3,
	       cpu_of_processes_us(argv + 8, argc - 8) - server_us, cpu_of_self_us() - own_us,
	       r.next);
	return 0;
}
