/*
 * The embedded engine against raw RocksDB, in the same run: synced commits, reads of keys and of
 * ranges, a second.
 *
 * Both sides have the same documents (12 leaves, 60-byte keys that share 40 bytes, 20-byte values)
 * and the same settings of RocksDB. A commit writes one document; RocksDB's is one WriteBatch, with
 * its own group commit. Both copy what they read to the caller. The sides alternate; medians of the
 * rounds are printed with their ratio.
 *
 * Usage: kv_bench [DIRECTORY [MILLISECONDS_A_ROUND [WORD]]]; WORD is in what is to be measured.
 */
#include <inttypes.h>
#include <pthread.h>
#include <rocksdb/c.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rand.h"
#include "loop/wait.h"
#include "kv/kv.h"
#include "rocks.h"

enum {
	LEAVES = 12,
	KEY_BYTES = 60,
	VALUE_BYTES = 20,
	LOADED_DOCS = 20000,
	LOAD_BATCH = 100, /* documents of one transaction */
	GETS = 10,        /* of one transaction */
	SCAN_PAIRS = 1000,
	MAX_THREADS = 64,
	ROUNDS = 7,
	ROUND_MS = 500,
	PATH_BYTES = 256,
};

struct side {
	char path[PATH_BYTES];
	struct kv_store *store;
	rocksdb_t *db;
	rocksdb_options_t *options;
	rocksdb_writeoptions_t *sync;
	rocksdb_readoptions_t *read;
};

/* One thread's. */
struct worker {
	const struct side *frond;
	const struct side *raw;
	const struct measure *measure;
	bool is_raw;
	struct rand_seq rand;
	uint64_t done;
	size_t bytes_read; /* so that no read can be left out */
};

struct measure {
	const char *name;
	int threads;
	uint64_t ops; /* of one call */
	void (*frond)(struct worker *w);
	void (*raw)(struct worker *w);
};

static _Atomic uint64_t next_doc;
static atomic_bool stop;

static void
die(const char *what, const char *why)
{
	fprintf(stderr, "kv_bench: %s: %s\n", what, why);
	exit(1);
}

static void
must(enum status status, const char *what)
{
	if (status != STATUS_OK)
		die(what, status_name(status));
}

/* Documents come in no order, as their ids do. */
static struct str
make_key(uint64_t doc, uint64_t leaf, char ret[KEY_BYTES + 1])
{
	snprintf(ret, KEY_BYTES + 1, "\x15%016" PRIx64 "%023d%020" PRIu64,
		 doc * UINT64_C(0x9e3779b97f4a7c15), 0, leaf);
	return str_of(ret, KEY_BYTES);
}

static const struct str value = { "twenty bytes of text", VALUE_BYTES };

static uint64_t
random_doc(struct worker *w)
{
	return rand_seq_below(&w->rand, LOADED_DOCS);
}

/* ---- Commits ---- */

static void
set_doc(struct kv_tx *tx, uint64_t doc)
{
	char key[KEY_BYTES + 1];

	for (uint64_t i = 0; i < LEAVES; i++)
		must(kv_set(tx, make_key(doc, i, key), value), "set");
}

static void
put_doc(rocksdb_writebatch_t *batch, uint64_t doc)
{
	char key[KEY_BYTES + 1];

	for (uint64_t i = 0; i < LEAVES; i++) {
		make_key(doc, i, key);
		rocksdb_writebatch_put(batch, key, KEY_BYTES, value.ptr, value.len);
	}
}

static void
commit_frond(struct worker *w)
{
	struct kv_tx *tx;

	must(kv_begin(w->frond->store, KV_TX_READ_WRITE, &tx), "begin");
	set_doc(tx, atomic_fetch_add(&next_doc, 1));
	must(kv_future_wait(kv_commit(tx)), "commit");
	kv_tx_free(tx);
}

static void
commit_raw(struct worker *w)
{
	rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
	char *error = NULL;

	put_doc(batch, atomic_fetch_add(&next_doc, 1));
	rocksdb_write(w->raw->db, w->raw->sync, batch, &error);
	rocks_must(error, "write");
	rocksdb_writebatch_destroy(batch);
}

/* ---- Reads of keys ---- */

static void
get_frond(struct worker *w, uint64_t count)
{
	char key[KEY_BYTES + 1];
	struct kv_tx *tx;

	must(kv_begin(w->frond->store, KV_TX_READ_ONLY, &tx), "begin");
	for (uint64_t i = 0; i < count; i++) {
		struct kv_future *f = kv_get(tx, make_key(random_doc(w), i % LEAVES, key), KV_READ);
		struct str found;

		must(kv_future_wait(f), "get");
		if (!kv_future_value(f, &found))
			die("get", "a key is missing");
		w->bytes_read += found.len;
	}
	kv_tx_free(tx);
}

static void
get_raw(struct worker *w, uint64_t count)
{
	char key[KEY_BYTES + 1];

	for (uint64_t i = 0; i < count; i++) {
		char *error = NULL;
		size_t len;
		char *found;

		make_key(random_doc(w), i % LEAVES, key);
		found = rocksdb_get(w->raw->db, w->raw->read, key, KEY_BYTES, &len, &error);
		rocks_must(error, "get");
		if (!found)
			die("get", "a key is missing");
		w->bytes_read += len;
		rocksdb_free(found);
	}
}

static void
get_one_frond(struct worker *w)
{
	get_frond(w, 1);
}

static void
get_one_raw(struct worker *w)
{
	get_raw(w, 1);
}

static void
get_some_frond(struct worker *w)
{
	get_frond(w, GETS);
}

static void
get_some_raw(struct worker *w)
{
	get_raw(w, GETS);
}

/* ---- Reads of ranges ---- */

static void
range_frond(struct worker *w, struct str begin, struct str end, size_t limit)
{
	const struct kv_range_options options = { .limit = limit };
	struct kv_range range;
	struct kv_future *f;
	struct kv_tx *tx;

	must(kv_begin(w->frond->store, KV_TX_READ_ONLY, &tx), "begin");
	f = kv_get_range(tx, begin, end, &options);
	must(kv_future_wait(f), "range");
	range = kv_future_range(f);
	for (size_t i = 0; i < range.count; i++)
		w->bytes_read += range.pairs[i].key.len + range.pairs[i].value.len;
	kv_tx_free(tx);
}

static void
range_raw(struct worker *w, struct str begin, struct str end, size_t limit)
{
	static _Thread_local char copy[SCAN_PAIRS * (KEY_BYTES + VALUE_BYTES)];
	rocksdb_readoptions_t *options = rocks_read_options();
	rocksdb_iterator_t *it;
	char *error = NULL;
	size_t at = 0;

	rocksdb_readoptions_set_iterate_upper_bound(options, end.ptr, end.len);
	it = rocksdb_create_iterator(w->raw->db, options);
	rocksdb_iter_seek(it, begin.ptr, begin.len);
	for (size_t i = 0; i < limit && rocksdb_iter_valid(it); i++) {
		size_t key_len;
		size_t value_len;
		const char *key = rocksdb_iter_key(it, &key_len);
		const char *found = rocksdb_iter_value(it, &value_len);

		if (at + key_len + value_len > sizeof(copy))
			die("range", "an unknown pair");
		memcpy(copy + at, key, key_len);
		memcpy(copy + at + key_len, found, value_len);
		at += key_len + value_len;
		rocksdb_iter_next(it);
	}
	rocksdb_iter_get_error(it, &error);
	rocks_must(error, "range");
	rocksdb_iter_destroy(it);
	rocksdb_readoptions_destroy(options);
	w->bytes_read += at;
}

/* One document's leaves. */
static void
read_doc(struct worker *w, void (*range)(struct worker *w, struct str, struct str, size_t))
{
	char begin[KEY_BYTES + 1];
	char end[KEY_BYTES + 1];
	uint64_t doc = random_doc(w);

	range(w, make_key(doc, 0, begin), make_key(doc, LEAVES, end), LEAVES);
}

static void
read_doc_frond(struct worker *w)
{
	read_doc(w, range_frond);
}

static void
read_doc_raw(struct worker *w)
{
	read_doc(w, range_raw);
}

static void
scan_frond(struct worker *w)
{
	char begin[KEY_BYTES + 1];

	range_frond(w, make_key(random_doc(w), 0, begin), STR("\x16"), SCAN_PAIRS);
}

static void
scan_raw(struct worker *w)
{
	char begin[KEY_BYTES + 1];

	range_raw(w, make_key(random_doc(w), 0, begin), STR("\x16"), SCAN_PAIRS);
}

/* ---- Rounds ---- */

static void *
worker_main(void *arg)
{
	struct worker *w = arg;

	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		if (w->is_raw)
			w->measure->raw(w);
		else
			w->measure->frond(w);
		w->done += w->measure->ops;
	}
	return NULL;
}

/* Operations a second. */
static double
run_round(const struct worker *like, uint64_t ms)
{
	static struct worker workers[MAX_THREADS];
	pthread_t threads[MAX_THREADS];
	uint64_t start = clock_mono_ns();
	struct event never;
	uint64_t done = 0;

	atomic_store(&stop, false);
	for (int i = 0; i < like->measure->threads; i++) {
		workers[i] = *like;
		workers[i].rand.state = start + (uint64_t)i;
		if (pthread_create(&threads[i], NULL, worker_main, &workers[i]) != 0)
			die("thread", "cannot start");
	}
	event_init(&never);
	event_wait(&never, start + ms * CLOCK_NS_PER_MS);
	atomic_store(&stop, true);
	for (int i = 0; i < like->measure->threads; i++) {
		pthread_join(threads[i], NULL);
		done += workers[i].done;
	}
	return (double)done * 1e9 / (double)(clock_mono_ns() - start);
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
compare(const struct side *frond, const struct side *raw, const struct measure *m, uint64_t ms)
{
	struct worker w = { .frond = frond, .raw = raw, .measure = m };
	double rates[2][ROUNDS];
	double ours;
	double theirs;

	for (int i = 0; i < ROUNDS; i++) {
		w.is_raw = false;
		rates[0][i] = run_round(&w, ms);
		w.is_raw = true;
		rates[1][i] = run_round(&w, ms);
	}
	ours = median(rates[0]);
	theirs = median(rates[1]);
	printf("%-36s %8d %12.0f %12.0f %8.2f\n", m->name, m->threads, ours, theirs, ours / theirs);
	fflush(stdout);
}

/* ---- Sides ---- */

static void
open_frond(struct side *side, bool no_sync)
{
	const struct kv_options options = { .create = true, .no_sync = no_sync };
	struct err err = { 0 };

	if (kv_open(side->path, &options, &side->store, &err) != STATUS_OK)
		die(side->path, err.text);
}

static void
open_raw(struct side *side)
{
	char *error = NULL;

	side->options = rocks_options();
	side->sync = rocksdb_writeoptions_create();
	rocksdb_writeoptions_set_sync(side->sync, 1);
	side->read = rocks_read_options();
	side->db = rocksdb_open(side->options, side->path, &error);
	rocks_must(error, side->path);
}

static void
load(const struct side *frond, const struct side *raw)
{
	rocksdb_writeoptions_t *no_sync = rocksdb_writeoptions_create();
	rocksdb_writebatch_t *batch = rocksdb_writebatch_create();

	for (uint64_t doc = 0; doc < LOADED_DOCS; doc += LOAD_BATCH) {
		char *error = NULL;
		struct kv_tx *tx;

		must(kv_begin(frond->store, KV_TX_READ_WRITE, &tx), "begin");
		rocksdb_writebatch_clear(batch);
		for (uint64_t i = doc; i < doc + LOAD_BATCH; i++) {
			set_doc(tx, i);
			put_doc(batch, i);
		}
		must(kv_future_wait(kv_commit(tx)), "commit");
		kv_tx_free(tx);
		rocksdb_write(raw->db, no_sync, batch, &error);
		rocks_must(error, "write");
	}
	rocksdb_writebatch_destroy(batch);
	rocksdb_writeoptions_destroy(no_sync);
}

static void
close_sides(struct side *frond, struct side *raw)
{
	kv_close(frond->store);
	rocksdb_close(raw->db);
	rocksdb_readoptions_destroy(raw->read);
	rocksdb_writeoptions_destroy(raw->sync);
	rocksdb_options_destroy(raw->options);
}

/* Reads come first: the commits of one side are more than the other's. */
static const struct measure measures[] = {
	{ "gets, one a transaction", 1, 1, get_one_frond, get_one_raw },
	{ "gets, ten a transaction", 1, GETS, get_some_frond, get_some_raw },
	{ "gets, ten a transaction", 16, GETS, get_some_frond, get_some_raw },
	{ "documents by range, one a transaction", 1, 1, read_doc_frond, read_doc_raw },
	{ "documents by range, one a transaction", 16, 1, read_doc_frond, read_doc_raw },
	{ "scans of 1000 pairs", 1, 1, scan_frond, scan_raw },
	{ "synced commits", 1, 1, commit_frond, commit_raw },
	{ "synced commits", 16, 1, commit_frond, commit_raw },
	{ "synced commits", 64, 1, commit_frond, commit_raw },
};

int
main(int argc, char **argv)
{
	struct side frond = { .store = NULL };
	struct side raw = { .db = NULL };
	const char *dir = argc > 1 ? argv[1] : "/tmp/kv_bench";
	uint64_t ms = argc > 2 ? strtoull(argv[2], NULL, 10) : ROUND_MS;
	const char *word = argc > 3 ? argv[3] : "";

	if (dir[0] == '-') {
		fprintf(stderr, "usage: %s [PATH [MILLISECONDS [WORD]]]\n", argv[0]);
		return 2;
	}
	snprintf(frond.path, sizeof(frond.path), "embedded:%s.frond", dir);
	snprintf(raw.path, sizeof(raw.path), "%s.rocksdb", dir);
	open_frond(&frond, true);
	open_raw(&raw);
	load(&frond, &raw);
	atomic_store(&next_doc, LOADED_DOCS);
	/* Opening again makes tables of what is in the logs. */
	close_sides(&frond, &raw);
	open_frond(&frond, false);
	open_raw(&raw);

	printf("a second, medians of %d rounds of %" PRIu64 " ms; documents have %d leaves\n",
	       ROUNDS, ms, LEAVES);
	printf("%-36s %8s %12s %12s %8s\n", "", "threads", "frond", "rocksdb", "ratio");
	for (size_t i = 0; i < sizeof(measures) / sizeof(measures[0]); i++)
		if (strstr(measures[i].name, word))
			compare(&frond, &raw, &measures[i], ms);
	close_sides(&frond, &raw);
	return 0;
}
