/*
 * The limit of the engine: RocksDB doing the key-value work that frond does for the load
 * generator's documents, and nothing else. The pairs are those of a store that frond has written,
 * so that whatever frond keeps for a document is what is written and read here.
 *
 *     raw write STORE DIR THREADS BATCH SECONDS    each batch of documents a synced WriteBatch
 *     raw update STORE DIR THREADS 1 SECONDS       a new revision's pairs, deleting the last one's
 *     raw _changes STORE - 1 DOCS SECONDS          scans of that listing's rows; DOCS 1: and of
 *     raw _all_docs STORE - 1 DOCS SECONDS         each row's document
 *
 * STORE is the directory of a frond store that holds the database "bench" and is not being written
 * to; DIR is made. Prints one line of JSON, as the load generator does.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cpu.h"
#include "histogram.h"
#include "kv/tuple.h"
#include "load_data.h"
#include "rocks.h"

enum {
	THREADS = 64,
	KEPT_DOCS = 20000, /* whose pairs are written over and over, with ids of their own */
	PAIRS = 64,        /* of a document, at most */
	PREFIX_BYTES = 32,
	COPY_BYTES = 1024 * 1024,
	STAMP_BYTES = 12,
	/* Behind the id in a revision's key: its end, a boolean, the position in two bytes, the
	 * hash's type. */
	ID_TO_HASH = 1 + 1 + 2 + 1,
	HASH_BYTES = 16,

	/* src/model/revisioned/revisioned.h */
	SUBSPACE_ALL_DOCS = 1,
	SUBSPACE_CHANGES = 2,
	SUBSPACE_DOCUMENTS = 4,
};

static const char id_begin[] = "bench-";

struct pair {
	struct str key;
	struct str value;
	size_t id_at; /* in the key, or SIZE_MAX */
};

struct doc {
	struct pair pairs[PAIRS];
	size_t count;
};

struct job {
	const char *what;
	rocksdb_t *db;
	rocksdb_t *store; /* frond's */
	struct doc *docs;
	size_t doc_count;
	unsigned threads;
	unsigned batch;
	uint64_t deadline_ns;
	bool with_docs;
	char rows_room[PREFIX_BYTES];
	char documents_room[PREFIX_BYTES];
	struct str rows;      /* what the keys of the listing begin with */
	struct str documents; /* and those of documents */
	void (*step)(struct job *job, struct histogram *h);
	_Atomic uint64_t next;
	_Atomic uint64_t units;
	_Atomic uint64_t bytes;
	pthread_mutex_t lock;
	struct histogram latencies;
};

static void
die(const char *why)
{
	fprintf(stderr, "raw: %s\n", why);
	exit(1);
}

static struct str
copy(const char *ptr, size_t len)
{
	char *p = mem_strdup(str_of(ptr, len));

	if (!p)
		die("out of memory");
	return str_of(p, len);
}

static size_t
find_id(struct str s)
{
	const char *at = memmem(s.ptr, s.len, id_begin, sizeof(id_begin) - 1);

	return at && s.len - (size_t)(at - s.ptr) >= DATA_ID_BYTES ? (size_t)(at - s.ptr)
								   : SIZE_MAX;
}

/* ---- What frond wrote ---- */

static rocksdb_t *
open_store(const char *path, const rocksdb_options_t *options)
{
	char *error = NULL;
	rocksdb_t *db = rocksdb_open_for_read_only(options, path, 0, &error);

	rocks_must(error, path);
	return db;
}

/* Documents are numbered from 0, so the digits of an id say whose pair it is. */
static struct doc *
doc_of(struct job *job, const char *id)
{
	char digits[DATA_ID_BYTES + 1];
	uint64_t i;

	memcpy(digits, id, DATA_ID_BYTES);
	digits[DATA_ID_BYTES] = '\0';
	if (!str_to_u64(str_from_cstr(digits + sizeof(id_begin) - 1), &i) || i >= KEPT_DOCS)
		return NULL;
	if (i >= job->doc_count)
		job->doc_count = i + 1;
	return &job->docs[i];
}

static void
keep_pair(struct job *job, struct str key, struct str value)
{
	size_t in_key = find_id(key);
	size_t in_value = in_key == SIZE_MAX ? find_id(value) : SIZE_MAX;
	struct doc *doc;

	if (in_key == SIZE_MAX && in_value == SIZE_MAX)
		return;
	doc = doc_of(job, in_key != SIZE_MAX ? key.ptr + in_key : value.ptr + in_value);
	if (!doc)
		return;
	if (doc->count == PAIRS)
		die("a document has more pairs than the load generator's have");
	doc->pairs[doc->count++] = (struct pair){
		.key = copy(key.ptr, key.len),
		.value = copy(value.ptr, value.len),
		.id_at = in_key,
	};
}

static void
read_pairs(struct job *job)
{
	rocksdb_readoptions_t *options = rocks_read_options();
	rocksdb_iterator_t *it = rocksdb_create_iterator(job->store, options);
	char *error = NULL;

	job->docs = mem_zalloc(KEPT_DOCS * sizeof(*job->docs));
	if (!job->docs)
		die("out of memory");
	for (rocksdb_iter_seek_to_first(it); rocksdb_iter_valid(it); rocksdb_iter_next(it)) {
		struct str key;
		struct str value;

		key.ptr = rocksdb_iter_key(it, &key.len);
		value.ptr = rocksdb_iter_value(it, &value.len);
		keep_pair(job, key, value);
	}
	rocksdb_iter_get_error(it, &error);
	rocks_must(error, "reading the store");
	rocksdb_iter_destroy(it);
	rocksdb_readoptions_destroy(options);
	if (job->doc_count == 0)
		die("the store has no documents of the load generator");
}

static void
free_pairs(struct job *job)
{
	for (size_t i = 0; i < job->doc_count; i++) {
		for (size_t n = 0; n < job->docs[i].count; n++) {
			mem_free((char *)(uintptr_t)job->docs[i].pairs[n].key.ptr);
			mem_free((char *)(uintptr_t)job->docs[i].pairs[n].value.ptr);
		}
	}
	mem_free(job->docs);
}

/* ---- Writes ---- */

static void
write_digits(char *at, uint64_t n)
{
	char id[DATA_ID_BYTES + 1];

	data_id(n, id);
	memcpy(at, id, DATA_ID_BYTES);
}

static void
write_big_endian(char *at, uint64_t n)
{
	for (int i = 7; i >= 0; i--, n >>= 8)
		at[i] = (char)n;
}

/* The key as document `n` has it; a key without an id ends in the stamp of its change. */
static void
write_key(const struct pair *p, uint64_t n, char *ret)
{
	memcpy(ret, p->key.ptr, p->key.len);
	if (p->id_at != SIZE_MAX)
		write_digits(ret + p->id_at, n);
	else if (p->key.len >= STAMP_BYTES)
		write_big_endian(ret + p->key.len - STAMP_BYTES, n + 1);
}

static bool
names_revision(const struct pair *p)
{
	return p->id_at != SIZE_MAX &&
	       p->key.len > p->id_at + DATA_ID_BYTES + ID_TO_HASH + HASH_BYTES;
}

static void
commit(struct job *job, rocksdb_writebatch_t *batch, struct histogram *h)
{
	rocksdb_writeoptions_t *sync = rocksdb_writeoptions_create();
	uint64_t begin = clock_mono_ns();
	char *error = NULL;

	rocksdb_writeoptions_set_sync(sync, 1);
	rocksdb_write(job->db, sync, batch, &error);
	rocks_must(error, "write");
	histogram_add(h, clock_mono_ns() - begin);
	rocksdb_writeoptions_destroy(sync);
}

static void
write_step(struct job *job, struct histogram *h)
{
	rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
	uint64_t first = atomic_fetch_add(&job->next, job->batch);
	char key[4096];

	for (uint64_t n = first; n < first + job->batch; n++) {
		const struct doc *doc = &job->docs[n % job->doc_count];

		for (size_t i = 0; i < doc->count; i++) {
			const struct pair *p = &doc->pairs[i];

			if (p->key.len > sizeof(key))
				die("a key is too long");
			write_key(p, n, key);
			rocksdb_writebatch_put(batch, key, p->key.len, p->value.ptr, p->value.len);
		}
	}
	commit(job, batch, h);
	rocksdb_writebatch_destroy(batch);
	atomic_fetch_add(&job->units, job->batch);
}

/* Of 1,024 documents: what names a revision, or the change, is deleted and written anew. */
static void
update_step(struct job *job, struct histogram *h)
{
	enum {
		UPDATED = 1024
	};
	rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
	uint64_t round = atomic_fetch_add(&job->next, 1);
	uint64_t n = round % UPDATED;
	const struct doc *doc = &job->docs[n % job->doc_count];
	char key[4096];

	for (size_t i = 0; i < doc->count; i++) {
		const struct pair *p = &doc->pairs[i];
		size_t hash_at = p->id_at + DATA_ID_BYTES + ID_TO_HASH;

		if (p->key.len > sizeof(key))
			die("a key is too long");
		for (uint64_t turn = 0; turn < 2; turn++) {
			/* The last round that met this document, and this one. */
			uint64_t revision = round + UPDATED * turn;

			write_key(p, p->id_at != SIZE_MAX ? n : revision, key);
			if (names_revision(p))
				write_big_endian(key + hash_at, revision);
			if (turn)
				rocksdb_writebatch_put(batch, key, p->key.len, p->value.ptr,
						       p->value.len);
			else if (names_revision(p) || p->id_at == SIZE_MAX)
				rocksdb_writebatch_delete(batch, key, p->key.len);
		}
	}
	commit(job, batch, h);
	rocksdb_writebatch_destroy(batch);
	atomic_fetch_add(&job->units, 1);
}

/* ---- Scans ---- */

/* The bytes that all keys of a subspace of the database begin with, found by its own pairs. */
static struct str
subspace(struct job *job, uint64_t wanted, char ret[PREFIX_BYTES])
{
	rocksdb_readoptions_t *options = rocks_read_options();
	rocksdb_iterator_t *it = rocksdb_create_iterator(job->store, options);
	struct str found = { NULL, 0 };

	for (rocksdb_iter_seek_to_first(it); !found.ptr && rocksdb_iter_valid(it);
	     rocksdb_iter_next(it)) {
		struct str key;
		struct str value;
		struct tuple_reader r;
		struct tuple_elem database;
		uint64_t number;

		key.ptr = rocksdb_iter_key(it, &key.len);
		value.ptr = rocksdb_iter_value(it, &value.len);
		r = tuple_reader(key);
		if ((find_id(key) == SIZE_MAX && find_id(value) == SIZE_MAX) ||
		    tuple_next(&r, &database) != STATUS_OK ||
		    tuple_next_u64(&r, &number) != STATUS_OK || number != wanted ||
		    key.len < r.rest.len || key.len - r.rest.len > PREFIX_BYTES)
			continue;
		memcpy(ret, key.ptr, key.len - r.rest.len);
		found = str_of(ret, key.len - r.rest.len);
	}
	rocksdb_iter_destroy(it);
	rocksdb_readoptions_destroy(options);
	if (!found.ptr)
		die("the store lacks rows of that kind");
	return found;
}

/* As a caller who needs the bytes has to. */
static size_t
copy_pair(rocksdb_iterator_t *it, char *room)
{
	size_t key_len;
	size_t value_len;
	const char *key = rocksdb_iter_key(it, &key_len);
	const char *value = rocksdb_iter_value(it, &value_len);

	if (key_len + value_len > COPY_BYTES)
		die("a pair is too large");
	memcpy(room, key, key_len);
	memcpy(room + key_len, value, value_len);
	return key_len + value_len;
}

static bool
is_at(rocksdb_iterator_t *it, struct str prefix)
{
	struct str key;

	if (!rocksdb_iter_valid(it))
		return false;
	key.ptr = rocksdb_iter_key(it, &key.len);
	return str_starts_with(key, prefix);
}

/* The pairs of the document that a row is about; a neighbour of the last one needs no seek. */
static size_t
read_doc(rocksdb_iterator_t *docs, struct str documents, rocksdb_iterator_t *row, char *room)
{
	char prefix[PREFIX_BYTES + 1 + DATA_ID_BYTES + 1];
	struct str begin = { prefix, documents.len + 1 + DATA_ID_BYTES + 1 };
	struct str key;
	struct str value;
	size_t bytes = 0;
	size_t at;
	const char *id;

	key.ptr = rocksdb_iter_key(row, &key.len);
	value.ptr = rocksdb_iter_value(row, &value.len);
	at = find_id(key);
	id = at != SIZE_MAX ? key.ptr + at : NULL;
	if (!id && (at = find_id(value)) != SIZE_MAX)
		id = value.ptr + at;
	if (!id)
		return 0;
	memcpy(prefix, documents.ptr, documents.len);
	prefix[documents.len] = '\x02';
	memcpy(prefix + documents.len + 1, id, DATA_ID_BYTES);
	prefix[documents.len + 1 + DATA_ID_BYTES] = '\0';
	if (!is_at(docs, begin))
		rocksdb_iter_seek(docs, begin.ptr, begin.len);
	for (; is_at(docs, begin); rocksdb_iter_next(docs))
		bytes += copy_pair(docs, room);
	return bytes;
}

static void
scan_step(struct job *job, struct histogram *h)
{
	static char room[COPY_BYTES];
	rocksdb_readoptions_t *options = rocks_read_options();
	rocksdb_iterator_t *it;
	rocksdb_iterator_t *docs;
	uint64_t begin = clock_mono_ns();
	uint64_t count = 0;
	uint64_t bytes = 0;

	it = rocksdb_create_iterator(job->store, options);
	docs = rocksdb_create_iterator(job->store, options);
	for (rocksdb_iter_seek(it, job->rows.ptr, job->rows.len); is_at(it, job->rows);
	     rocksdb_iter_next(it)) {
		bytes += copy_pair(it, room);
		if (job->with_docs)
			bytes += read_doc(docs, job->documents, it, room);
		count++;
	}
	rocksdb_iter_destroy(docs);
	rocksdb_iter_destroy(it);
	rocksdb_readoptions_destroy(options);
	histogram_add(h, clock_mono_ns() - begin);
	atomic_fetch_add(&job->units, count);
	atomic_fetch_add(&job->bytes, bytes);
}

static void
find_listing(struct job *job)
{
	bool by_changes = strcmp(job->what, "_changes") == 0;

	job->rows = subspace(job, by_changes ? SUBSPACE_CHANGES : SUBSPACE_ALL_DOCS,
			     job->rows_room);
	job->documents = subspace(job, SUBSPACE_DOCUMENTS, job->documents_room);
}

/* ---- The run ---- */

static void *
work(void *arg)
{
	struct job *job = arg;
	struct histogram *h = mem_zalloc(sizeof(*h));

	if (!h)
		die("out of memory");
	do
		job->step(job, h);
	while (clock_mono_ns() < job->deadline_ns);
	pthread_mutex_lock(&job->lock);
	histogram_merge(&job->latencies, h);
	pthread_mutex_unlock(&job->lock);
	mem_free(h);
	return NULL;
}

static void
run(struct job *job, double seconds)
{
	pthread_t threads[THREADS];
	uint64_t cpu_us = cpu_of_process_us(getpid());
	uint64_t begin_ns = clock_mono_ns();
	double elapsed;

	job->deadline_ns = begin_ns + (uint64_t)(seconds * 1e9);
	for (unsigned i = 0; i < job->threads; i++)
		if (pthread_create(&threads[i], NULL, work, job) != 0)
			die("cannot start a thread");
	for (unsigned i = 0; i < job->threads; i++)
		pthread_join(threads[i], NULL);
	elapsed = (double)(clock_mono_ns() - begin_ns) / 1e9;
	printf("{\"op\":\"%s\",\"connections\":%u,\"seconds\":%.6f,\"requests\":%" PRIu64
	       ",\"units\":%" PRIu64 ",\"bytes\":%" PRIu64
	       ",\"p50_us\":%.1f,\"p99_us\":%.1f,\"max_us\":%.1f,\"server_cpu_us\":%" PRIu64 "}\n",
	       job->what, job->threads, elapsed, job->latencies.count, atomic_load(&job->units),
	       atomic_load(&job->bytes), (double)histogram_at(&job->latencies, 0.5) / 1e3,
	       (double)histogram_at(&job->latencies, 0.99) / 1e3,
	       (double)job->latencies.max_ns / 1e3, cpu_of_process_us(getpid()) - cpu_us);
}

int
main(int argc, char **argv)
{
	static struct job job = { .lock = PTHREAD_MUTEX_INITIALIZER };
	rocksdb_options_t *options = rocks_options();
	char *error = NULL;
	bool writes;

	if (argc != 7) {
		fprintf(stderr, "raw write|update|_changes|_all_docs STORE DIR THREADS "
				"BATCH|DOCS SECONDS\n");
		return 2;
	}
	job.what = argv[1];
	writes = job.what[0] != '_';
	job.threads = (unsigned)atoi(argv[4]);
	job.batch = (unsigned)atoi(argv[5]);
	job.with_docs = job.batch > 0;
	if (job.threads == 0 || job.threads > (writes ? THREADS : 1) || (writes && job.batch == 0))
		die("too many threads, or none, or an empty batch");
	job.store = open_store(argv[2], options);
	job.step = !writes ? scan_step : strcmp(job.what, "update") == 0 ? update_step : write_step;
	if (writes) {
		read_pairs(&job);
		job.db = rocksdb_open(options, argv[3], &error);
		rocks_must(error, argv[3]);
	} else {
		find_listing(&job);
	}
	run(&job, atof(argv[6]));
	free_pairs(&job);
	rocksdb_close(job.store);
	if (job.db)
		rocksdb_close(job.db);
	rocksdb_options_destroy(options);
	return 0;
}
