/*
 * The pairs that were read and written lately, in front of RocksDB (kv/embedded/recent.h): the
 * module alone, against a history of versions that is too simple to be wrong, and within a store.
 */
#include "fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rand.h"
#include "kv/embedded/embedded_int.h"

enum {
	SMALL = RECENT_RING_BYTES, /* makes one shard with the smallest ring */
	LARGE = 16 << 20,
	MOST = 968, /* bytes of a pair that the smallest ring keeps */
};

static struct cell
cell(const char *value)
{
	return (struct cell){ value != NULL, value ? str_from_cstr(value) : str_of(NULL, 0) };
}

static const char *
told(struct recent *r, const char *key, uint64_t version, bool head)
{
	static struct recent_answer a;

	if (!recent_find(r, str_from_cstr(key), version, head, &a))
		return "?";
	if (!a.present)
		return "-";
	assert_true(a.len < sizeof(a.value));
	a.value[a.len] = '\0';
	return a.value;
}

/* What a reader at the version is told: the value, "-" for absent, "?" for nothing. */
static const char *
found(struct recent *r, const char *key, uint64_t version)
{
	return told(r, key, version, false);
}

/* The same, of a reader that wants the beginning of the value only. */
static const char *
found_head(struct recent *r, const char *key, uint64_t version)
{
	return told(r, key, version, true);
}

static void
keep(struct recent *r, const char *key, const char *value, uint64_t version)
{
	recent_keep(r, str_from_cstr(key), cell(value), version, false);
}

static void
keep_head(struct recent *r, const char *key, const char *value, uint64_t version)
{
	recent_keep(r, str_from_cstr(key), cell(value), version, true);
}

static void
written(struct recent *r, const char *key, const char *value, uint64_t version)
{
	const struct recent_pair pair = { str_from_cstr(key), cell(value) };

	recent_write(r, &pair, 1, version);
}

/* ---- Versions ---- */

static void
what_was_read_is_told_until_it_is_written(void **state)
{
	struct recent *r = recent_new(LARGE);

	(void)state;
	assert_string_equal(found(r, "a", 10), "?");
	keep(r, "a", "1", 10);
	keep(r, "b", NULL, 10);
	assert_string_equal(found(r, "a", 10), "1");
	assert_string_equal(found(r, "b", 10), "-");
	/* Nobody has written them since the store was opened, so they were so before, too. */
	assert_string_equal(found(r, "a", 9), "1");
	written(r, "a", "2", 11);
	written(r, "b", "in place of nothing", 11);
	assert_string_equal(found(r, "a", 10), "?");
	assert_string_equal(found(r, "a", 11), "2");
	assert_string_equal(found(r, "b", 12), "in place of nothing");
	written(r, "a", NULL, 12);
	assert_string_equal(found(r, "a", 11), "?");
	assert_string_equal(found(r, "a", 12), "-");
	recent_free(r);
}

static void
old_reader_leaves_nothing_that_has_been_written_since(void **state)
{
	struct recent *r = recent_new(LARGE);

	(void)state;
	written(r, "a", "2", 11);
	assert_string_equal(found(r, "a", 11), "?");
	keep(r, "a", "1", 10);
	assert_string_equal(found(r, "a", 10), "?");
	assert_string_equal(found(r, "a", 11), "?");
	/* It holds from its write on. */
	keep(r, "a", "2", 15);
	assert_string_equal(found(r, "a", 10), "?");
	assert_string_equal(found(r, "a", 11), "2");
	recent_free(r);
}

static void
nothing_from_before_the_floor_counts(void **state)
{
	struct recent *r = recent_new(LARGE);

	(void)state;
	keep(r, "a", "1", 10);
	keep(r, "b", "1", 10);
	recent_forget(r, 12);
	assert_string_equal(found(r, "a", 11), "?");
	assert_string_equal(found(r, "a", 12), "?");
	keep(r, "a", "1", 11);
	assert_string_equal(found(r, "a", 12), "?");
	/* A write by the same version that has forgotten the rest is behind it. */
	written(r, "b", "2", 12);
	assert_string_equal(found(r, "b", 12), "2");
	keep(r, "a", NULL, 12);
	assert_string_equal(found(r, "a", 12), "-");
	assert_string_equal(found(r, "a", 11), "?");
	recent_free(r);
}

/* ---- Room ---- */

static void
writes_make_no_entries(void **state)
{
	struct recent *r = recent_new(LARGE);
	uint64_t before = recent_stats(r).bytes;
	char key[16];

	(void)state;
	for (int i = 0; i < 1000; i++) {
		snprintf(key, sizeof(key), "%d", i);
		written(r, key, "value", 5);
	}
	assert_int_equal(recent_stats(r).bytes, before);
	assert_string_equal(found(r, "7", 5), "?");
	recent_free(r);
}

static void
value_that_grows_moves_and_one_that_is_too_large_goes(void **state)
{
	struct recent *r = recent_new(SMALL);
	char value[MOST + 1] = { 0 };

	(void)state;
	keep(r, "k", "", 1);
	for (size_t len = 1; len < MOST; len++) {
		memset(value, 'a' + (int)(len % 26), len);
		written(r, "k", value, 1 + len);
		assert_string_equal(found(r, "k", 1 + len), value);
		assert_string_equal(found(r, "k", len), "?");
	}
	memset(value, 'x', MOST);
	written(r, "k", value, MOST + 1);
	assert_string_equal(found(r, "k", MOST + 1), "?");
	keep(r, "k", value, MOST + 1);
	assert_string_equal(found(r, "k", MOST + 1), "?");
	/* The next small value has to be read first. */
	written(r, "k", "small", MOST + 2);
	assert_string_equal(found(r, "k", MOST + 2), "?");
	recent_free(r);
}

/* Makes a text of `len` bytes. */
static char *
long_value(char first, size_t len)
{
	static char value[RECENT_PAIR_BYTES];

	assert_true(len < sizeof(value));
	memset(value, first, len);
	value[len] = '\0';
	return value;
}

static void
only_the_beginning_is_kept_until_all_of_the_value_is_read(void **state)
{
	struct recent *r = recent_new(LARGE);
	char head[KV_HEAD_BYTES + 1] = { 0 };

	(void)state;
	memset(head, 'a', KV_HEAD_BYTES);
	keep_head(r, "k", long_value('a', 500), 1);
	assert_string_equal(found_head(r, "k", 1), head);
	assert_string_equal(found(r, "k", 1), "?");
	keep(r, "k", long_value('a', 500), 1);
	assert_string_equal(found_head(r, "k", 1), head);
	assert_string_equal(found(r, "k", 1), long_value('a', 500));
	/* One who wants less leaves it as it is. */
	keep_head(r, "k", long_value('a', 500), 1);
	assert_string_equal(found(r, "k", 1), long_value('a', 500));
	/* A value that is short is whole. */
	keep_head(r, "short", long_value('b', KV_HEAD_BYTES), 1);
	assert_string_equal(found(r, "short", 1), long_value('b', KV_HEAD_BYTES));
	keep_head(r, "absent", NULL, 1);
	assert_string_equal(found(r, "absent", 1), "-");
	recent_free(r);
}

static void
write_leaves_the_beginning_of_a_value_of_which_that_was_kept(void **state)
{
	struct recent *r = recent_new(LARGE);
	char head[KV_HEAD_BYTES + 1] = { 0 };

	(void)state;
	keep_head(r, "k", long_value('a', 500), 1);
	written(r, "k", long_value('b', 900), 2);
	memset(head, 'b', KV_HEAD_BYTES);
	assert_string_equal(found_head(r, "k", 1), "?");
	assert_string_equal(found_head(r, "k", 2), head);
	assert_string_equal(found(r, "k", 2), "?");
	/* What is short now is all that there is. */
	written(r, "k", "c", 3);
	assert_string_equal(found(r, "k", 3), "c");
	written(r, "k", NULL, 4);
	assert_string_equal(found(r, "k", 4), "-");
	assert_string_equal(found_head(r, "k", 4), "-");
	recent_free(r);
}

static void
beginning_of_a_value_that_is_too_large_is_kept(void **state)
{
	struct recent *r = recent_new(SMALL);
	char head[KV_HEAD_BYTES + 1] = { 0 };

	(void)state;
	memset(head, 'x', KV_HEAD_BYTES);
	keep(r, "k", long_value('x', MOST), 1);
	assert_string_equal(found_head(r, "k", 1), "?");
	keep_head(r, "k", long_value('x', MOST), 1);
	assert_string_equal(found_head(r, "k", 1), head);
	keep(r, "k", long_value('x', MOST), 1);
	assert_string_equal(found_head(r, "k", 1), head);
	assert_string_equal(found(r, "k", 1), "?");
	recent_free(r);
}

/* Asks for keys that nobody asks for again, often enough that the ring keeps them. */
static void
push(struct recent *r, int from, int count)
{
	char key[16];

	for (int i = from; i < from + count; i++) {
		snprintf(key, sizeof(key), "push%d", i);
		keep(r, key, "some value", 1);
		keep(r, key, "some value", 1);
	}
}

static void
what_is_used_stays_and_the_oldest_goes(void **state)
{
	struct recent *r = recent_new(SMALL);

	(void)state;
	keep(r, "used", "1", 1);
	keep(r, "unused", "2", 1);
	for (int i = 0; i < 200; i++) {
		push(r, i * 10, 10);
		assert_string_equal(found(r, "used", 1), "1");
	}
	assert_string_equal(found(r, "unused", 1), "?");
	recent_free(r);
}

static void
full_ring_keeps_what_is_asked_for_twice(void **state)
{
	struct recent *r = recent_new(SMALL);

	(void)state;
	push(r, 0, 1000);
	keep(r, "once", "1", 1);
	assert_string_equal(found(r, "once", 1), "?");
	keep(r, "once", "1", 1);
	assert_string_equal(found(r, "once", 1), "1");
	recent_free(r);
}

/* ---- Which pairs stay, one by one ---- */

enum {
	ONE_BUCKET = 256, /* bytes, of which the index has a quarter */
	WAYS = 8,         /* pairs of a bucket */
	SEEN = 4,         /* keys that it remembers to have been asked for */
	LONG = 900,       /* bytes of values of which eight fill the smallest ring */
};

static const char *
numbered(char room[8], unsigned n)
{
	(void)snprintf(room, 8, "key%u", n);
	return room;
}

/* Keeps as many pairs as there is room for, and reads those of the mask. */
static void
fill_and_read(struct recent *r, const char *value, unsigned mask)
{
	char room[8];

	for (unsigned i = 0; i < WAYS; i++)
		keep(r, numbered(room, i), value, 10);
	for (unsigned i = 0; i < WAYS; i++)
		if (mask >> i & 1)
			assert_string_equal(found(r, numbered(room, i), 10), value);
}

/* The oldest of those that were not read; or of all, if all were. */
static unsigned
first_to_go(unsigned mask)
{
	for (unsigned i = 0; i < WAYS; i++)
		if (!(mask >> i & 1))
			return i;
	return 0;
}

static void
check_who_goes(size_t bytes, const char *value)
{
	for (unsigned mask = 0; mask < 1u << WAYS; mask++) {
		struct recent *r = recent_new(bytes);
		char room[8];

		fill_and_read(r, value, mask);
		keep(r, numbered(room, WAYS), value, 10);
		assert_string_equal(found(r, numbered(room, WAYS), 10), value);
		for (unsigned i = 0; i < WAYS; i++)
			assert_string_equal(found(r, numbered(room, i), 10),
					    i == first_to_go(mask) ? "?" : value);
		recent_free(r);
	}
}

static void
one_more_takes_the_place_of_the_oldest_that_nobody_has_read(void **state)
{
	char value[LONG + 1];

	(void)state;
	/* A bucket is full. */
	check_who_goes(ONE_BUCKET, "value");
	/* The ring is. */
	memset(value, 'v', LONG);
	value[LONG] = '\0';
	check_who_goes(SMALL, value);
}

/* A bucket remembers the last keys that were asked for, once the ring has been full. */
static void
a_key_is_kept_if_it_is_asked_for_again_soon(void **state)
{
	char value[LONG + 1], room[8];

	(void)state;
	memset(value, 'v', LONG);
	value[LONG] = '\0';
	for (unsigned between = 0; between <= SEEN + 1; between++) {
		struct recent *r = recent_new(ONE_BUCKET);

		/* One key more than there is room for. */
		for (unsigned i = 0; i <= WAYS; i++)
			keep(r, numbered(room, i), value, 10);
		keep(r, "asked", "1", 10);
		for (unsigned i = 0; i < between; i++)
			keep(r, numbered(room, 20 + i), "1", 10);
		assert_string_equal(found(r, "asked", 10), "?");
		keep(r, "asked", "1", 10);
		assert_string_equal(found(r, "asked", 10), between < SEEN ? "1" : "?");
		recent_free(r);
	}
}

/* Writes of values that fit move nothing: no more memory is used. */
static void
a_value_that_fits_is_written_in_its_place(void **state)
{
	struct recent *r = recent_new(ONE_BUCKET);
	uint64_t bytes, version = 11;

	(void)state;
	/* With the key, as many bytes as entries are rounded up to. */
	keep(r, "key", "12345", 10);
	bytes = recent_stats(r).bytes;
	for (size_t len = 0; len <= 5; len++) {
		const char *value = &"67890"[5 - len];

		written(r, "key", value, version);
		assert_string_equal(found(r, "key", version++), value);
	}
	written(r, "key", NULL, version);
	assert_string_equal(found(r, "key", version++), "-");
	assert_true(recent_stats(r).bytes == bytes);
	written(r, "key", "123456", version);
	assert_string_equal(found(r, "key", version++), "123456");
	assert_true(recent_stats(r).bytes > bytes);
	recent_free(r);
}

/* The version from which on a pair is known to hold stays, whoever reads it again. */
static void
a_pair_that_is_kept_again_holds_as_long_as_before(void **state)
{
	struct recent *r = recent_new(ONE_BUCKET);

	(void)state;
	written(r, "other", "1", 3);
	keep(r, "key", "value", 10);
	written(r, "other", "2", 7);
	assert_string_equal(found(r, "key", 3), "value");
	keep(r, "key", "value", 10);
	assert_string_equal(found(r, "key", 2), "?");
	assert_string_equal(found(r, "key", 3), "value");
	recent_free(r);
}

/* The index has a quarter of the memory, in whole powers of two. */
static void
memory_is_divided_as_told(void **state)
{
	(void)state;
	for (size_t bytes = 256; bytes <= SMALL; bytes *= 2)
		for (int more = -1; more <= 1; more++) {
			struct recent *r = recent_new(bytes + more);
			const size_t index = more < 0 && bytes > 256 ? bytes / 8 : bytes / 4;

			assert_int_equal(recent_stats(r).bytes, index);
			recent_free(r);
		}
	for (uint64_t n = 1; n <= 3; n++) {
		(void)mem_fail_only(n);
		assert_null(recent_new(SMALL));
		(void)mem_fail_only(0);
	}
}

static void
empty_and_large_keys_are_asked_of_rocksdb(void **state)
{
	struct recent *r = recent_new(SMALL);
	char large[RECENT_RING_BYTES] = { 0 };

	(void)state;
	memset(large, 'k', sizeof(large) - 1);
	for (int i = 0; i < 2; i++) {
		keep(r, "", "1", 1);
		keep(r, large, NULL, 1);
		assert_string_equal(found(r, "", 1), "?");
		assert_string_equal(found(r, large, 1), "?");
	}
	assert_string_equal(found(NULL, "a", 1), "?");
	keep(NULL, "a", "1", 1);
	written(NULL, "a", "1", 2);
	recent_forget(NULL, 3);
	assert_int_equal(recent_stats(NULL).hits, 0);
	recent_free(NULL);
	recent_free(r);
}

static void
answers_are_counted(void **state)
{
	struct recent *r = recent_new(LARGE);
	struct recent_stats stats;

	(void)state;
	keep(r, "a", "1", 1);
	found(r, "a", 1);
	found(r, "a", 1);
	found(r, "b", 1);
	stats = recent_stats(r);
	assert_int_equal(stats.hits, 2);
	assert_int_equal(stats.misses, 1);
	assert_true(stats.bytes > 0 && stats.bytes < LARGE);
	recent_free(r);
}

/* ---- Against a model ---- */

enum {
	KEYS = 400,
	VERSIONS = 3000,
	VALUE_BYTES = 120,
};

/* What each key has at each version: a length, 0 for absent. The bytes follow from the two. */
struct history {
	uint8_t lengths[VERSIONS][KEYS];
};

static struct cell
value_of(const struct history *h, int key, int version, char ret[VALUE_BYTES + 1])
{
	uint8_t len = h->lengths[version][key];

	memset(ret, 'a' + (key + len) % 26, len);
	ret[len] = '\0';
	return (struct cell){ len != 0, str_of(ret, len) };
}

static void
model_read(struct recent *r, const struct history *h, int key, int version, bool head)
{
	char name[16], value[VALUE_BYTES + 1];
	struct cell c = value_of(h, key, version, value);
	const char *answer;

	snprintf(name, sizeof(name), "key%d", key);
	answer = told(r, name, (uint64_t)version, head);
	if (strcmp(answer, "?") == 0) {
		recent_keep(r, str_from_cstr(name), c, (uint64_t)version, head);
		return;
	}
	if (head && c.value.len > KV_HEAD_BYTES)
		value[KV_HEAD_BYTES] = '\0';
	assert_string_equal(answer, c.present ? value : "-");
}

static void
model_write(struct recent *r, const struct history *h, int key, int version)
{
	char name[16], value[VALUE_BYTES + 1];
	struct recent_pair pair;

	snprintf(name, sizeof(name), "key%d", key);
	pair = (struct recent_pair){ str_from_cstr(name), value_of(h, key, version, value) };
	recent_write(r, &pair, 1, (uint64_t)version);
}

/* Readers lag behind by up to a few versions. A few keys are asked for far more often. */
static void
random_reads_and_writes_agree_with_a_history(void **state)
{
	static const size_t sizes[] = { SMALL, 64 << 10, LARGE };
	struct rand_seq rand = { test_seed() };
	struct history *h = calloc(1, sizeof(*h));

	(void)state;
	assert_non_null(h);
	print_message("# FROND_TEST_SEED=%llu\n", (unsigned long long)rand.state);
	for (size_t size = 0; size < 3; size++) {
		struct recent *r = recent_new(sizes[size]);

		memset(h->lengths[0], 0, KEYS);
		for (int v = 1; v < VERSIONS; v++) {
			bool forgets = rand_seq_below(&rand, 300) == 0;

			memcpy(h->lengths[v], h->lengths[v - 1], KEYS);
			if (forgets) {
				recent_forget(r, (uint64_t)v);
				memset(h->lengths[v], 0, KEYS / 2);
			}
			for (uint64_t n = rand_seq_below(&rand, 4); n; n--) {
				int key = (int)rand_seq_below(&rand, KEYS);

				h->lengths[v][key] = (uint8_t)rand_seq_below(&rand, VALUE_BYTES);
				model_write(r, h, key, v);
			}
			for (int n = 0; n < 20; n++) {
				uint64_t most = n % 2 ? KEYS : 20;
				uint64_t lag = rand_seq_below(&rand, 4);

				model_read(r, h, (int)rand_seq_below(&rand, most),
					   v > (int)lag ? v - (int)lag : v,
					   rand_seq_below(&rand, 2) == 0);
			}
		}
		assert_true(recent_stats(r).hits > 1000);
		recent_free(r);
	}
	free(h);
}

/* ---- Many threads ---- */

/*
 * The writer gives each key its version as its value, publishes the version, and every now and then
 * forgets. A reader takes the published version; what a key had at it is in the history.
 */
struct crowd {
	struct recent *r;
	_Atomic uint32_t published;
	_Atomic uint32_t values[64][VERSIONS]; /* by key and version */
};

static void *
crowd_reader(void *arg)
{
	static char complaint[] = "a reader was told another version's value";
	struct crowd *c = arg;
	struct rand_seq rand = { test_seed() };
	uint32_t version;
	char name[16], value[16];

	while ((version = atomic_load(&c->published)) < VERSIONS - 1) {
		uint64_t key = rand_seq_below(&rand, 64);
		uint32_t holds = atomic_load(&c->values[key][version]);
		struct recent_answer a;

		snprintf(name, sizeof(name), "key%d", (int)key);
		snprintf(value, sizeof(value), "%u", holds);
		if (!recent_find(c->r, str_from_cstr(name), version, false, &a))
			recent_keep(c->r, str_from_cstr(name), cell(holds ? value : NULL), version,
				    false);
		else if (a.present ? !str_eq(str_of(a.value, a.len), str_from_cstr(value)) : holds)
			return complaint;
	}
	return NULL;
}

static void
threads_are_told_what_holds_at_their_version(void **state)
{
	struct crowd *c = calloc(1, sizeof(*c));
	struct rand_seq rand = { test_seed() };
	pthread_t readers[4];
	void *complaint;

	(void)state;
	assert_non_null(c);
	c->r = recent_new(SMALL);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&readers[i], NULL, crowd_reader, c), 0);
	for (uint32_t v = 1; v < VERSIONS; v++) {
		uint64_t written_key = rand_seq_below(&rand, 64);
		char name[16], value[16];
		struct recent_pair pair;

		for (int key = 0; key < 64; key++)
			atomic_store(&c->values[key][v], atomic_load(&c->values[key][v - 1]));
		atomic_store(&c->values[written_key][v], v);
		snprintf(name, sizeof(name), "key%d", (int)written_key);
		snprintf(value, sizeof(value), "%u", v);
		if (v % 100 == 0)
			recent_forget(c->r, v);
		pair = (struct recent_pair){ str_from_cstr(name), cell(value) };
		recent_write(c->r, &pair, 1, v);
		atomic_store(&c->published, v);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(readers[i], &complaint);
		if (complaint)
			fail_msg("%s", (const char *)complaint);
	}
	recent_free(c->r);
	free(c);
}

/* ---- Within a store ---- */

static uint64_t
hits(void **state)
{
	return recent_stats(((struct emb_store *)store_of(state))->recent).hits;
}

static void
second_read_of_a_key_does_not_ask_rocksdb(void **state)
{
	struct kv_store *store = store_of(state);
	struct kv_tx *old, *tx;
	uint64_t before;

	put_now(store, "t/a", "1");
	old = begin_read(store);
	assert_get(old, "t/a", "1");
	assert_get(old, "t/none", NULL);
	before = hits(state);
	assert_get(old, "t/a", "1");
	assert_get(old, "t/none", NULL);
	assert_int_equal(hits(state), before + 2);
	put_now(store, "t/a", "2");
	put_now(store, "t/none", "now");
	before = hits(state);
	assert_get(old, "t/a", "1");
	assert_get(old, "t/none", NULL);
	assert_int_equal(hits(state), before);
	tx = begin(store);
	assert_get(tx, "t/a", "2");
	assert_get(tx, "t/none", "now");
	assert_int_equal(hits(state), before + 2);
	/* It is a read like any other: what it was told must not have changed. */
	put_now(store, "t/a", "3");
	put(tx, "t/b", "1");
	assert_int_equal(try_commit(tx), STATUS_TX_CONFLICT);
	kv_tx_free(old);
}

static void
atomic_operations_and_cleared_ranges_are_seen(void **state)
{
	struct kv_store *store = store_of(state);
	struct kv_tx *tx;

	put_now(store, "t/n", "\1");
	put_now(store, "t/o", "o");
	assert_stored(store, "t/n", "\1");
	assert_stored(store, "t/o", "o");
	for (char sum = 2; sum < 20; sum++) {
		const char now[] = { sum, '\0' };

		tx = begin(store);
		assert_ok(kv_atomic(tx, KV_ADD, STR("t/n"), STR("\1")));
		commit(tx);
		assert_stored(store, "t/n", now);
	}
	/* A clear behind an own write does not know its keys: RocksDB deletes the range. */
	tx = begin(store);
	put(tx, "t/n0", "1");
	assert_ok(kv_clear_range(tx, STR("t/n"), STR("t/o")));
	put(tx, "t/n1", "2");
	commit(tx);
	assert_stored(store, "t/n", NULL);
	assert_stored(store, "t/n0", NULL);
	assert_stored(store, "t/n1", "2");
	assert_stored(store, "t/o", "o");
	tx = begin(store);
	assert_ok(kv_atomic(tx, KV_ADD, STR("t/n"), STR("\5")));
	assert_ok(kv_clear_range(tx, STR("t/o"), STR("t/p")));
	commit(tx);
	assert_stored(store, "t/n", "\5");
	assert_stored(store, "t/o", NULL);
}

static void
store_without_such_memory_asks_rocksdb_every_time(void **state)
{
	struct fixture *f = *state;
	const struct kv_options options = { .no_sync = true };

	kv_close(f->store);
	assert_ok(kv_open(f->url, &options, &f->store, NULL));
	assert_null(((struct emb_store *)f->store)->recent);
	put_now(f->store, "t/a", "1");
	assert_stored(f->store, "t/a", "1");
	put_now(f->store, "t/a", "2");
	assert_stored(f->store, "t/a", "2");
}

#define S(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_read_is_told_until_it_is_written),
		cmocka_unit_test(old_reader_leaves_nothing_that_has_been_written_since),
		cmocka_unit_test(nothing_from_before_the_floor_counts),
		cmocka_unit_test(writes_make_no_entries),
		cmocka_unit_test(value_that_grows_moves_and_one_that_is_too_large_goes),
		cmocka_unit_test(only_the_beginning_is_kept_until_all_of_the_value_is_read),
		cmocka_unit_test(write_leaves_the_beginning_of_a_value_of_which_that_was_kept),
		cmocka_unit_test(beginning_of_a_value_that_is_too_large_is_kept),
		cmocka_unit_test(what_is_used_stays_and_the_oldest_goes),
		cmocka_unit_test(full_ring_keeps_what_is_asked_for_twice),
		cmocka_unit_test(one_more_takes_the_place_of_the_oldest_that_nobody_has_read),
		cmocka_unit_test(a_key_is_kept_if_it_is_asked_for_again_soon),
		cmocka_unit_test(a_value_that_fits_is_written_in_its_place),
		cmocka_unit_test(a_pair_that_is_kept_again_holds_as_long_as_before),
		cmocka_unit_test(memory_is_divided_as_told),
		cmocka_unit_test(empty_and_large_keys_are_asked_of_rocksdb),
		cmocka_unit_test(answers_are_counted),
		cmocka_unit_test(random_reads_and_writes_agree_with_a_history),
		cmocka_unit_test(threads_are_told_what_holds_at_their_version),
		S(second_read_of_a_key_does_not_ask_rocksdb),
		S(atomic_operations_and_cleared_ranges_are_seen),
		S(store_without_such_memory_asks_rocksdb_every_time),
	};

	return cmocka_run_group_tests_name("recent", tests, NULL, NULL);
}
