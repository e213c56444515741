/*
 * A load generator for servers that speak CouchDB's HTTP API. Each connection is kept alive and
 * has one request under way; the next is sent as soon as an answer is complete and was found right.
 * A wrong answer ends the run with exit code 1. Prints one line of JSON.
 */
#include <argp.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/thread.h"
#include "cpu.h"
#include "load.h"
#include "load_data.h"

enum {
	TURN_NS = 100000,
	OPT_HOST = 'h',
	OPT_PORT = 'p',
	OPT_AUTH = 'a',
	OPT_DB = 'd',
	OPT_CONNECTIONS = 'c',
	OPT_SECONDS = 's',
	OPT_COUNT = 'n',
	OPT_IDLE = 0x100,
	OPT_DOCS,
	OPT_FIRST,
	OPT_BATCH,
	OPT_ROWS,
	OPT_BIG,
	OPT_QUERY,
	OPT_PID,
	OPT_SCATTER,
	OPT_FILE,
	OPT_HOLD,

	BATCH = 1000,
	BIG_BYTES = 500 * 1000,
	HEAD_BYTES = 4096,
};

struct settings {
	struct load load;
	const char *host;
	const char *auth;
	int port;
	double hold_seconds;
};

static const struct argp_option options[] = {
	{ "host", OPT_HOST, "ADDRESS", 0, "IPv4 address (default 127.0.0.1)", 0 },
	{ "port", OPT_PORT, "PORT", 0, "Port (default 5984)", 0 },
	{ "auth", OPT_AUTH, "BASE64", 0, "Credentials of HTTP Basic, encoded", 0 },
	{ "db", OPT_DB, "NAME", 0, "Database (default bench)", 0 },
	{ "connections", OPT_CONNECTIONS, "N", 0, "Connections, a request each (default 1)", 0 },
	{ "idle", OPT_IDLE, "N", 0, "Further connections that stay open and silent", 0 },
	{ "seconds", OPT_SECONDS, "S", 0, "Ends after that time", 0 },
	{ "count", OPT_COUNT, "N", 0, "Ends after that many documents or requests", 0 },
	{ "docs", OPT_DOCS, "N", 0, "Documents to read from, or that updates go round", 0 },
	{ "first", OPT_FIRST, "N", 0, "Number of the first document to put or update", 0 },
	{ "batch", OPT_BATCH, "N", 0, "Documents of one _bulk_docs (default 1000)", 0 },
	{ "rows", OPT_ROWS, "N", 0, "Rows that a listing, or a range, has to have", 0 },
	{ "big", OPT_BIG, "BYTES", 0, "Size of the large document (default 500000)", 0 },
	{ "query", OPT_QUERY, "QUERY", 0, "Of a listing, such as include_docs=true", 0 },
	{ "pid", OPT_PID, "PID", 0, "Process whose time is measured; repeatable", 0 },
	{ "scatter", OPT_SCATTER, NULL, 0, "Ids in no order", 0 },
	{ "file", OPT_FILE, "FILE", 0, "Documents, one a line, for bulk-lines and get-lines", 0 },
	{ "hold", OPT_HOLD, "S", 0, "Keeps the connections open that long afterwards", 0 },
	{ 0 },
};

static bool
set_number(struct load *l, int key, const char *arg)
{
	uint64_t n;

	if (!str_to_u64(str_from_cstr(arg), &n))
		return false;
	switch (key) {
	case OPT_CONNECTIONS:
		l->connections = (unsigned)n;
		return n > 0 && n <= LOAD_CONNECTIONS;
	case OPT_IDLE:
		l->idle = (unsigned)n;
		return n <= LOAD_CONNECTIONS;
	case OPT_COUNT:
		l->count = n;
		return true;
	case OPT_DOCS:
		l->docs = n;
		return n > 0;
	case OPT_FIRST:
		l->first = n;
		return true;
	case OPT_BATCH:
		l->batch = (unsigned)n;
		return n > 0 && n <= 10000;
	case OPT_ROWS:
		l->rows = n;
		return true;
	case OPT_BIG:
		l->big_bytes = n;
		return n > 0;
	case OPT_PID:
		if (l->pid_count == LOAD_PIDS)
			return false;
		l->pids[l->pid_count++] = (int)n;
		return true;
	default:
		return false;
	}
}

static error_t
parse_option(int key, char *arg, struct argp_state *state)
{
	struct settings *s = state->input;

	switch (key) {
	case OPT_HOST:
		s->host = arg;
		break;
	case OPT_PORT:
		s->port = atoi(arg);
		break;
	case OPT_AUTH:
		s->auth = arg;
		break;
	case OPT_DB:
		s->load.db = arg;
		break;
	case OPT_SECONDS:
		s->load.seconds = atof(arg);
		break;
	case OPT_HOLD:
		s->hold_seconds = atof(arg);
		break;
	case OPT_QUERY:
		s->load.query = arg;
		break;
	case OPT_FILE:
		if (!load_lines_read(arg, &s->load.lines))
			argp_failure(state, 1, 0, "%s cannot be used", arg);
		break;
	case OPT_SCATTER:
		data_scatter_ids();
		break;
	case ARGP_KEY_ARG:
		if (s->load.op)
			argp_error(state, "one operation at a time");
		s->load.op = load_op_find(arg);
		if (!s->load.op)
			argp_error(state, "no operation is called %s", arg);
		break;
	case ARGP_KEY_END:
		if (!s->load.op || (s->load.seconds <= 0 && s->load.count == 0))
			argp_error(state, "an operation is needed, and --seconds or --count");
		break;
	default:
		if (key < ' ' || (key > 0x7f && key < OPT_IDLE) || key > OPT_HOLD || !arg)
			return ARGP_ERR_UNKNOWN;
		if (!set_number(&s->load, key, arg))
			argp_error(state, "%s makes no sense there", arg);
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_option,
	.args_doc =
		"put|bulk|update|get|constant|_changes|_all_docs|view|find|find-range|find-none|"
		"put-big|get-big|path|bulk-lines|get-lines",
	.doc = "Asks a server the same thing over and over, and tells how fast it answers.",
};

static void
allow_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static void
note_server_cpu(struct load *l)
{
	for (unsigned i = 0; i < l->pid_count; i++)
		l->pid_cpu_us[i] = cpu_of_process_us(l->pids[i]);
}

/* Since it was noted. What a process has used that has ended meanwhile, a worker, is not known. */
static uint64_t
server_cpu_us(const struct load *l)
{
	uint64_t us = 0;

	for (unsigned i = 0; i < l->pid_count; i++) {
		uint64_t now_us = cpu_of_process_us(l->pids[i]);

		if (now_us > l->pid_cpu_us[i])
			us += now_us - l->pid_cpu_us[i];
	}
	return us;
}

static void
hold(double seconds)
{
	struct timespec time = { .tv_sec = (time_t)seconds };

	if (seconds > 0)
		nanosleep(&time, NULL);
}

static void
print(const struct load *l, uint64_t server_us, uint64_t own_us)
{
	printf("{\"op\":\"%s\",\"connections\":%u,\"seconds\":%.6f,\"requests\":%" PRIu64
	       ",\"units\":%" PRIu64 ",\"bytes\":%" PRIu64
	       ",\"p50_us\":%.1f,\"p99_us\":%.1f,\"max_us\":%.1f,\"server_cpu_us\":%" PRIu64
	       ",\"client_cpu_us\":%" PRIu64 ",\"next\":%" PRIu64 "}\n",
	       l->op->name, l->connections, (double)(l->end_ns - l->begin_ns) / 1e9, l->requests,
	       l->units, l->bytes, (double)histogram_at(&l->latencies, 0.5) / 1e3,
	       (double)histogram_at(&l->latencies, 0.99) / 1e3, (double)l->latencies.max_ns / 1e3,
	       server_us, own_us, l->next);
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	static struct settings s = {
		.load = { .db = "bench",
			  .connections = 1,
			  .docs = 1,
			  .batch = BATCH,
			  .big_bytes = BIG_BYTES,
			  .head = BUF_INIT(HEAD_BYTES) },
		.host = "127.0.0.1",
		.port = 5984,
	};
	struct load *l = &s.load;
	uint64_t own_us;

	argp_parse(&argp, argc, argv, 0, NULL, &s);
	signal(SIGPIPE, SIG_IGN);
	allow_descriptors();
	/* The clients that it stands for have processors of their own. */
	thread_set_turn(TURN_NS);
	if (uv_ip4_addr(s.host, s.port, &l->address) < 0 || !data_init()) {
		fprintf(stderr, "load: cannot start\n");
		return 1;
	}
	buf_printf(&l->head, "Host: %s:%d\r\nAccept: application/json\r\n", s.host, s.port);
	if (s.auth)
		buf_printf(&l->head, "Authorization: Basic %s\r\n", s.auth);
	data_big_path(l->big_path, sizeof(l->big_path), l->big_bytes);
	l->rand.state = clock_mono_ns();
	if (!load_open(l))
		return 1;
	note_server_cpu(l);
	own_us = cpu_of_self_us();
	if (!load_measure(l))
		return 1;
	print(l, server_cpu_us(l), cpu_of_self_us() - own_us);
	hold(s.hold_seconds);
	return 0;
}
