/*
 * The load generator's parts: connections that are kept alive, each with one request under way
 * (load_conn.c), and the operations that say what is asked and what a right answer is (load_op.c).
 * One thread, one loop.
 */
#ifndef FROND_BENCH_LOAD_H
#define FROND_BENCH_LOAD_H

#include <llhttp.h>
#include <uv.h>

#include "base/buf.h"
#include "base/rand.h"
#include "histogram.h"

enum {
	LOAD_CONNECTIONS = 20000,
	LOAD_PIDS = 64,
	LOAD_REQUEST_BYTES = 64 * 1024 * 1024,
	LOAD_KEPT_BYTES = 8 * 1024 * 1024, /* of an answer that is looked into as a whole */
	LOAD_READ_BYTES = 256 * 1024,
	LOAD_REV_BYTES = 128,
	LOAD_PATH_BYTES = 128,
	LOAD_NEEDLE_BYTES = 32,
	LOAD_BATCH_BYTES = 4 * 1024 * 1024, /* of lines of one _bulk_docs */
};

/* A file of documents, one a line, each beginning with its _id. */
struct load_lines {
	struct str *at;
	size_t count;
};

struct load;
struct load_conn;

/* What one request of a kind is. */
struct load_op {
	const char *name;
	/* Writes the next request; false: this connection has none left. */
	bool (*make)(struct load *l, struct load_conn *c);
	/* Whether the answer, complete, is right; adds to `units`. */
	bool (*check)(struct load *l, struct load_conn *c);
	/* As make and check, before the clock starts, until make says false. May be NULL. */
	bool (*prepare_make)(struct load *l, struct load_conn *c);
	bool (*prepare_check)(struct load *l, struct load_conn *c);
	/* Counted in an answer's body as it comes; NULL: the body is kept for check(). */
	const char *needle;
};

struct load_conn {
	struct load *load;
	uv_tcp_t tcp;
	uv_write_t write;
	uv_connect_t connect;
	llhttp_t parser;
	struct buf request;
	struct buf body;
	uint64_t body_bytes;
	uint64_t needles;
	char tail[LOAD_NEEDLE_BYTES]; /* the end of the body so far: a needle may be cut */
	size_t tail_len;
	uint64_t sent_ns;
	unsigned index;
	uint64_t doc; /* the one that the request under way is about */
	uint64_t prepared;
	uint64_t batch; /* documents in the request under way */
	bool is_idle;   /* has asked once and stays open */
	bool is_busy;
};

struct load {
	/* The command line's. */
	const struct load_op *op;
	const char *db;
	unsigned connections;
	unsigned idle;
	uint64_t docs;  /* that there are, or that updates go round */
	uint64_t first; /* number of the first new document, or of the first to update */
	uint64_t count; /* units at most; 0: no limit */
	double seconds;
	unsigned batch;
	uint64_t rows; /* that a listing must have */
	uint64_t big_bytes;
	const char *query;
	struct load_lines lines;
	struct buf head; /* the headers of every request */
	int pids[LOAD_PIDS];
	uint64_t pid_cpu_us[LOAD_PIDS]; /* when measuring began */
	unsigned pid_count;

	/* The run's. */
	uv_loop_t loop;
	struct sockaddr_in address;
	struct load_conn *conns;
	char (*revs)[LOAD_REV_BYTES];
	struct rand_seq rand;
	char big_path[LOAD_PATH_BYTES];
	unsigned ready; /* connections that have nothing left to prepare */
	unsigned busy;
	bool measuring;
	bool failed;
	uint64_t next; /* of new documents */
	uint64_t begin_ns;
	uint64_t end_ns;
	uint64_t deadline_ns;
	uint64_t requests;
	uint64_t units;
	uint64_t bytes;
	struct histogram latencies;
};

/* Reads a file whole; false, having told why, if that fails. Kept until the end. */
bool load_lines_read(const char *path, struct load_lines *ret);

/* NULL if there is none of that name. */
const struct load_op *load_op_find(const char *name);

/* Opens all connections and prepares. False: something went wrong, and was told. */
bool load_open(struct load *l);

/* The run itself, until the time or the count is over; fills in what came of it. As load_open(). */
bool load_measure(struct load *l);

/* Tells what is wrong, once, and ends the run. Returns false. */
bool load_fail(struct load *l, struct load_conn *c, const char *what);

#endif
