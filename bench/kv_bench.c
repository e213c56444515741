/*
 * Synced transactions a second: the embedded engine against raw RocksDB, in the same run.
 *
 * Both sides write the same documents (12 leaves, 60-byte keys that share 40 bytes, 20-byte values)
 * from the same number of threads, one synced commit each: RocksDB as one WriteBatch, with its own
 * group commit. The sides alternate; medians of the rounds are printed with their ratio.
 *
 * Usage: kv_bench [DIRECTORY [MILLISECONDS_A_ROUND]]
 */
#include <inttypes.h>
#include <pthread.h>
#include <rocksdb/c.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/wait.h"
#include "kv/kv.h"

enum {
	LEAVES = 12,
	KEY_BYTES = 60,
	VALUE_BYTES = 20,
	MAX_THREADS = 64,
	ROUNDS = 5,
	ROUND_MS = 1000,
	PATH_BYTES = 256,
};

struct side {
	const char *name;
	struct kv_store *store; /* one of these two */
	rocksdb_t *db;
	rocksdb_writeoptions_t *sync;
	_Atomic uint64_t next_doc;
	atomic_bool stop;
	_Atomic uint64_t commits;
};

static void
die(const char *what, const char *why)
{
	fprintf(stderr, "kv_bench: %s: %s\n", what, why);
	exit(1);
}

/* Documents come in no order, as their ids do. */
static void
make_key(uint64_t doc, int leaf, char ret[KEY_BYTES + 1])
{
	snprintf(ret, KEY_BYTES + 1, "\x15%016" PRIx64 "%023d%020d",
		 doc * UINT64_C(0x9e3779b97f4a7c15), 0, leaf);
}

static const char value[VALUE_BYTES] = "twenty bytes of text";

static void
commit_frond(struct side *side, uint64_t doc)
{
	struct kv_tx *tx = NULL;
	enum status status = kv_begin(side->store, KV_TX_READ_WRITE, &tx);
	char key[KEY_BYTES + 1];

	for (int i = 0; i < LEAVES && status == STATUS_OK; i++) {
		make_key(doc, i, key);
		status = kv_set(tx, str_of(key, KEY_BYTES), str_of(value, VALUE_BYTES));
	}
	if (status == STATUS_OK)
		status = kv_future_wait(kv_commit(tx));
	if (status != STATUS_OK)
		die("commit", status_name(status));
	kv_tx_free(tx);
}

static void
commit_rocksdb(struct side *side, uint64_t doc)
{
	rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
	char key[KEY_BYTES + 1];
	char *error = NULL;

	for (int i = 0; i < LEAVES; i++) {
		make_key(doc, i, key);
		rocksdb_writebatch_put(batch, key, KEY_BYTES, value, VALUE_BYTES);
	}
	rocksdb_write(side->db, side->sync, batch, &error);
	if (error)
		die("write", error);
	rocksdb_writebatch_destroy(batch);
}

static void *
writer_main(void *arg)
{
	struct side *side = arg;

	while (!atomic_load_explicit(&side->stop, memory_order_relaxed)) {
		uint64_t doc = atomic_fetch_add(&side->next_doc, 1);

		if (side->store)
			commit_frond(side, doc);
		else
			commit_rocksdb(side, doc);
		atomic_fetch_add_explicit(&side->commits, 1, memory_order_relaxed);
	}
	return NULL;
}

/* Commits a second. */
static double
run_round(struct side *side, int threads, uint64_t ms)
{
	pthread_t ids[MAX_THREADS];
	uint64_t start = clock_mono_ns();
	struct event never;

	atomic_store(&side->stop, false);
	atomic_store(&side->commits, 0);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, writer_main, side) != 0)
			die("thread", "cannot start");
	event_init(&never);
	event_wait(&never, start + ms * CLOCK_NS_PER_MS);
	atomic_store(&side->stop, true);
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	return (double)atomic_load(&side->commits) * 1e9 / (double)(clock_mono_ns() - start);
}

static int
by_size(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
median(double rates[ROUNDS])
{
	qsort(rates, ROUNDS, sizeof(rates[0]), by_size);
	return rates[ROUNDS / 2];
}

static void
compare(struct side *frond, struct side *raw, int threads, uint64_t ms)
{
	double rates[2][ROUNDS];
	double ours;
	double theirs;

	for (int i = 0; i < ROUNDS; i++) {
		rates[0][i] = run_round(frond, threads, ms);
		rates[1][i] = run_round(raw, threads, ms);
	}
	ours = median(rates[0]);
	theirs = median(rates[1]);
	printf("%8d %12.0f %12.0f %8.2f\n", threads, ours, theirs, ours / theirs);
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	static const int thread_counts[] = { 1, 16, 64 };
	const struct kv_options options = { .create = true };
	rocksdb_options_t *o = rocksdb_options_create();
	struct side frond = { .name = "frond" };
	struct side raw = { .name = "rocksdb" };
	const char *dir = argc > 1 ? argv[1] : "/tmp/kv_bench";
	uint64_t ms = argc > 2 ? strtoull(argv[2], NULL, 10) : ROUND_MS;
	char path[PATH_BYTES];
	char *error = NULL;
	struct err err = { 0 };

	snprintf(path, sizeof(path), "embedded:%s.frond", dir);
	if (kv_open(path, &options, &frond.store, &err) != STATUS_OK)
		die(path, err.text);
	snprintf(path, sizeof(path), "%s.rocksdb", dir);
	rocksdb_options_set_create_if_missing(o, 1);
	rocksdb_options_set_compression(o, rocksdb_lz4_compression);
	raw.db = rocksdb_open(o, path, &error);
	if (error)
		die(path, error);
	raw.sync = rocksdb_writeoptions_create();
	rocksdb_writeoptions_set_sync(raw.sync, 1);

	printf("synced commits a second, %d leaves each; medians of %d rounds of %" PRIu64 " ms\n",
	       LEAVES, ROUNDS, ms);
	printf("%8s %12s %12s %8s\n", "threads", frond.name, raw.name, "ratio");
	for (size_t i = 0; i < sizeof(thread_counts) / sizeof(thread_counts[0]); i++)
		compare(&frond, &raw, thread_counts[i], ms);

	rocksdb_close(raw.db);
	rocksdb_writeoptions_destroy(raw.sync);
	rocksdb_options_destroy(o);
	kv_close(frond.store);
	return 0;
}
