/*
 * The limit of the FoundationDB engine: the client library doing the key-value work of an
 * operation, and nothing else, through the same functions that the engine calls. As many
 * transactions are under way as are asked for; all of it happens in the library's own thread, which
 * is the least that a client can spend.
 *
 *     cluster_raw CLUSTER_FILE OPERATION IN_FLIGHT SECONDS
 *
 * Prints one line of JSON, as the load generator does. The keys lie beneath one of their own, and
 * stay there for the next run: a cluster that clears much is busy with that while others are
 * measured. Not for a cluster that somebody uses.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cpu.h"
#include "histogram.h"
#include "kv/fdb/fdb_int.h"
#include "loop/wait.h"

enum {
	SLOTS = 1024,
	KEYS = 100000, /* that operations on what is there choose from */
	PARTS = 2,     /* pairs of each of them */
	KEY_BYTES = 40,
	VALUE_BYTES = 1000,
	SMALL_BYTES = 30, /* of the pairs beside a document's own */
	ADD_BYTES = 8,
	LISTED = 100, /* pairs of a range at most; there are none, or a few */
};

#define ROOM "frond-bench-raw/"

/* What an operation does: its reads one after the other, then its writes, then a commit. */
struct operation {
	const char *name;
	unsigned ranges;
	unsigned gets;
	unsigned sets; /* the first one of `bytes` */
	unsigned clears;
	unsigned adds;
	unsigned bytes;
	bool fresh; /* of a key that no transaction before has had */
	/* Of so many keys in a row, a range each; 0: of one, with what lies beneath. */
	unsigned rows;
};

static const struct operation operations[] = {
	{ .name = "put", .ranges = 1, .sets = 4, .adds = 3, .bytes = VALUE_BYTES, .fresh = true },
	{ .name = "update", .ranges = 1, .sets = 4, .clears = 2, .adds = 3, .bytes = VALUE_BYTES },
	{ .name = "get", .gets = 2 },
	{ .name = "redis-set", .gets = 1, .sets = 1, .bytes = 3 },
	{ .name = "redis-incr", .gets = 1, .sets = 1, .bytes = 3 },
	{ .name = "redis-get", .gets = 1 },
	{ .name = "insert", .gets = 1, .sets = 2, .adds = 1, .bytes = VALUE_BYTES, .fresh = true },
	{ .name = "find", .gets = 1 },
	{ .name = "mongo-update", .gets = 1, .sets = 2, .bytes = VALUE_BYTES },
	/* bench/cluster.py knows of how many documents these are. */
	{ .name = "bulk",
	  .ranges = 1,
	  .sets = 4,
	  .bytes = VALUE_BYTES,
	  .fresh = true,
	  .rows = 100 },
	{ .name = "list", .ranges = 20, .rows = 1000 },
	/* Steps of builds: documents are read, and what is made of each is written. */
	{ .name = "index", .ranges = 1, .sets = 1, .bytes = SMALL_BYTES, .rows = 1000 },
	{ .name = "view", .ranges = 1, .sets = 2, .bytes = SMALL_BYTES, .rows = 1000 },
};

struct slot {
	FDBTransaction *tx;
	FDBFuture *asked;
	uint64_t key;
	uint64_t begun_ns;
	unsigned ranges;
	unsigned gets;
	bool commits;
};

static const struct operation *op;
static FDBDatabase *database;
static struct slot slots[SLOTS];
static uint8_t value[VALUE_BYTES];
static struct histogram latencies;
static _Atomic uint64_t next_key;
static _Atomic uint64_t conflicts;
static _Atomic unsigned running;
static _Atomic uint64_t deadline_ns;
static struct event ended;

static void
must(int code, const char *what)
{
	if (code == 0)
		return;
	fprintf(stderr, "cluster_raw: %s: %s\n", what, fdb.get_error(code));
	_exit(1);
}

static int
put_key(char buf[static KEY_BYTES], uint64_t n, unsigned part)
{
	return snprintf(buf, KEY_BYTES, ROOM "%012" PRIu64 "/%02u", n, part);
}

static void slot_go_on(struct slot *s);

/* In the library's thread. A transaction that failed begins again, and its time goes on. */
static void
slot_on_ready(FDBFuture *asked, void *arg)
{
	enum {
		NOT_COMMITTED = 1020,
	};
	struct slot *s = arg;
	int code = fdb.future_get_error(asked);

	fdb.future_destroy(asked);
	s->asked = NULL;
	if (code != 0 && code != NOT_COMMITTED)
		must(code, op->name);
	if (code == NOT_COMMITTED) {
		atomic_fetch_add(&conflicts, 1);
		fdb.transaction_reset(s->tx);
		s->ranges = s->gets = 0;
		s->commits = false;
	}
	slot_go_on(s);
}

static void
slot_await(struct slot *s, FDBFuture *asked)
{
	s->asked = asked;
	must(fdb.future_set_callback(asked, slot_on_ready, s), "callback");
}

static void
slot_write(struct slot *s)
{
	static const uint8_t one[ADD_BYTES] = { 1 };
	char key[KEY_BYTES];

	for (uint64_t n = s->key; n < s->key + (op->rows ? op->rows : 1); n++)
		for (unsigned i = 0; i < op->sets; i++) {
			int len = put_key(key, n, i);

			fdb.transaction_set(s->tx, (uint8_t *)key, len, value,
					    (int)(i ? SMALL_BYTES : op->bytes));
		}
	for (unsigned i = 0; i < op->clears; i++) {
		int len = put_key(key, s->key, op->sets + i);

		fdb.transaction_clear(s->tx, (uint8_t *)key, len);
	}
	for (unsigned i = 0; i < op->adds; i++) {
		int len = put_key(key, UINT64_MAX >> 24, i);

		fdb.transaction_atomic_op(s->tx, (uint8_t *)key, len, one, sizeof(one),
					  FDB_MUTATION_ADD);
	}
}

static void
slot_begin(struct slot *s)
{
	uint64_t n = atomic_fetch_add(&next_key, op->rows ? op->rows : 1);

	if (op->fresh)
		s->key = KEYS + n;
	else if (op->rows)
		s->key = op->sets ? n % KEYS : 0;
	else
		s->key = n * 7919 % KEYS;
	s->begun_ns = clock_mono_ns();
	s->ranges = s->gets = 0;
	s->commits = false;
}

static void
slot_end(struct slot *s)
{
	histogram_add(&latencies, clock_mono_ns() - s->begun_ns);
	fdb.transaction_reset(s->tx);
	if (clock_mono_ns() < atomic_load(&deadline_ns)) {
		slot_begin(s);
		slot_go_on(s);
		return;
	}
	if (atomic_fetch_sub(&running, 1) == 1)
		event_set(&ended);
}

static void
slot_go_on(struct slot *s)
{
	char key[KEY_BYTES];
	char end[KEY_BYTES];

	if (s->ranges < op->ranges) {
		uint64_t from = s->key + (uint64_t)op->rows * s->ranges++;
		int len = put_key(key, from, 0);
		int end_len = op->rows ? put_key(end, from + op->rows, 0) : put_key(end, from, 99);
		int most = op->rows ? (int)op->rows * PARTS : LISTED;

		slot_await(s, fdb.transaction_get_range(s->tx, (uint8_t *)key, len, 0, 1,
							(uint8_t *)end, end_len, 0, 1, most, 0,
							FDB_MODE_EXACT, 0, !op->sets, 0));
	} else if (s->gets < op->gets) {
		int len = put_key(key, s->key, s->gets++);

		slot_await(s, fdb.transaction_get(s->tx, (uint8_t *)key, len, !op->sets));
	} else if (op->sets && !s->commits) {
		slot_write(s);
		s->commits = true;
		slot_await(s, fdb.transaction_commit(s->tx));
	} else {
		slot_end(s);
	}
}

/* ---- Before and after ---- */

static void
set_event(FDBFuture *asked, void *event)
{
	(void)asked;
	event_set(event);
}

static void
block_on(FDBFuture *asked, const char *what)
{
	struct event ready;

	event_init(&ready);
	must(fdb.future_set_callback(asked, set_event, &ready), "callback");
	(void)event_wait(&ready, WAIT_FOREVER);
	must(fdb.future_get_error(asked), what);
	fdb.future_destroy(asked);
}

/* True if an earlier run has written the keys: the last of them is there. */
static bool
is_filled(FDBTransaction *tx)
{
	char key[KEY_BYTES];
	int len = put_key(key, KEYS - 1, 1);
	FDBFuture *asked = fdb.transaction_get(tx, (uint8_t *)key, len, 1);
	struct event ready;
	const uint8_t *bytes;
	int present, bytes_len;

	event_init(&ready);
	must(fdb.future_set_callback(asked, set_event, &ready), "callback");
	(void)event_wait(&ready, WAIT_FOREVER);
	must(fdb.future_get_value(asked, &present, &bytes, &bytes_len), "look");
	fdb.future_destroy(asked);
	return present;
}

/* Writes the keys that are read or overwritten. */
static void
prepare(void)
{
	enum {
		BATCH = 2000,
	};
	FDBTransaction *tx;

	must(fdb.database_create_transaction(database, &tx), "transaction");
	for (uint64_t n = 0; !is_filled(tx) && n < KEYS; n += BATCH) {
		fdb.transaction_reset(tx);
		for (uint64_t i = n; i < n + BATCH; i++)
			for (unsigned part = 0; part < PARTS; part++) {
				char key[KEY_BYTES];
				int len = put_key(key, i, part);

				fdb.transaction_set(tx, (uint8_t *)key, len, value,
						    part ? VALUE_BYTES : SMALL_BYTES);
			}
		block_on(fdb.transaction_commit(tx), "fill");
		fdb.transaction_reset(tx);
	}
	fdb.transaction_destroy(tx);
}

static void
run(unsigned in_flight, double seconds)
{
	uint64_t cpu_us = cpu_of_process_us(getpid());
	uint64_t begin_ns = clock_mono_ns();
	double took;

	event_init(&ended);
	atomic_store(&running, in_flight);
	atomic_store(&deadline_ns, begin_ns + (uint64_t)(seconds * 1e9));
	for (unsigned i = 0; i < in_flight; i++) {
		must(fdb.database_create_transaction(database, &slots[i].tx), "transaction");
		slot_begin(&slots[i]);
	}
	for (unsigned i = 0; i < in_flight; i++)
		slot_go_on(&slots[i]);
	(void)event_wait(&ended, WAIT_FOREVER);
	took = (double)(clock_mono_ns() - begin_ns) / 1e9;
	cpu_us = cpu_of_process_us(getpid()) - cpu_us;
	for (unsigned i = 0; i < in_flight; i++)
		fdb.transaction_destroy(slots[i].tx);
	printf("{\"rate\": %.1f, \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"cpu_us\": %.2f, "
	       "\"conflicts\": %" PRIu64 "}\n",
	       (double)latencies.count / took, (double)histogram_at(&latencies, 0.5) / 1e6,
	       (double)histogram_at(&latencies, 0.99) / 1e6,
	       (double)cpu_us / (double)(latencies.count ? latencies.count : 1),
	       atomic_load(&conflicts));
}

int
main(int argc, char **argv)
{
	struct err err = { 0 };
	unsigned in_flight;

	for (size_t i = 0; argc == 5 && i < sizeof(operations) / sizeof(operations[0]); i++)
		if (strcmp(argv[2], operations[i].name) == 0)
			op = &operations[i];
	in_flight = argc == 5 ? (unsigned)atoi(argv[3]) : 0;
	if (!op || !in_flight || in_flight > SLOTS) {
		fprintf(stderr, "cluster_raw CLUSTER_FILE OPERATION IN_FLIGHT SECONDS\n");
		return 2;
	}
	if (fdb_library_load(&err) != STATUS_OK) {
		fprintf(stderr, "cluster_raw: %s\n", err.text);
		return 1;
	}
	must(fdb.create_database(argv[1], &database), argv[1]);
	memset(value, 'x', sizeof(value));
	if (op->fresh)
		atomic_store(&next_key, clock_mono_ns() / 1000); /* behind those of other runs */
	else
		prepare();
	run(in_flight, atof(argv[4]));
	fdb.database_destroy(database);
	return 0;
}
