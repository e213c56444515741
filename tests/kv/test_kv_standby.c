/* Standbys of the embedded engine: copies, the log, promoting; records that are cut or changed. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/metric.h"
#include "base/rand.h"
#include "fixture.h"
#include "kv/embedded/kept.h"
#include "kv/embedded/log_record.h"
#include "kv/log.h"

enum {
	LOG_BYTES = 1 << 28,
	TURNS = 40,
	TURN_TXS = 30,
	KEYS = 400,
	VALUE_MOST = 3000,
	ANSWER_BYTES = 64 * 1024,
	ROOM = 64 * 1024 * 1024,
	PAUSE_US = 50 * 1000,
	KEYS_TXS = 4,
	KEYS_MANY = 1300,
	KEY_BYTES = 9000,
};

struct pair_of_stores {
	struct kv_store *first;
	struct kv_store *standby;
	struct rand_seq rand;
	struct err err;
	struct buf records;
	char top[64];
	char first_url[160];
	char standby_url[160];
};

/* ---- Reads that are interrupted ---- */

enum {
	SHORT_READ = 500,
};

ssize_t __real_pread64(int fd, void *to, size_t n, off_t at);
ssize_t __wrap_pread64(int fd, void *to, size_t n, off_t at);

static atomic_bool interrupts;
static atomic_uint preads;

/* As of a file system that a signal interrupts: every other call, and what is read is little. */
ssize_t
__wrap_pread64(int fd, void *to, size_t n, off_t at)
{
	if (!interrupts)
		return __real_pread64(fd, to, n, at);
	if (++preads % 2) {
		errno = EINTR;
		return -1;
	}
	return __real_pread64(fd, to, n < SHORT_READ ? n : SHORT_READ, at);
}

static void
first_open(struct pair_of_stores *p, uint64_t log_bytes)
{
	p->first = fixture_open(p->first_url,
				(struct kv_options){ .create = true, .log_bytes = log_bytes });
}

static void
standby_open(struct pair_of_stores *p)
{
	p->standby = fixture_open(p->standby_url, (struct kv_options){ .follows = true });
}

static int
setup(void **state)
{
	struct pair_of_stores *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	snprintf(p->top, sizeof(p->top), "/tmp/frond-standby-XXXXXX");
	assert_non_null(mkdtemp(p->top));
	snprintf(p->first_url, sizeof(p->first_url), "embedded:%s/first", p->top);
	snprintf(p->standby_url, sizeof(p->standby_url), "embedded:%s/standby", p->top);
	buf_init(&p->records, ROOM);
	rand_bytes(&p->rand, sizeof(p->rand));
	interrupts = false;
	first_open(p, LOG_BYTES);
	*state = p;
	return 0;
}

static int
teardown(void **state)
{
	struct pair_of_stores *p = *state;

	kv_close(p->first);
	kv_close(p->standby);
	buf_release(&p->records);
	test_remove_tree(p->top);
	free(p);
	return 0;
}

static struct str
random_key(struct pair_of_stores *p, char ret[16])
{
	int n = snprintf(ret, 16, "k%03u", (unsigned)rand_seq_below(&p->rand, KEYS));

	return str_of(ret, (size_t)n);
}

static enum status
random_tx(struct kv_tx *tx, void *arg)
{
	static char value[VALUE_MOST];
	struct pair_of_stores *p = arg;
	char a[16], b[16];
	uint64_t one = 1;

	for (size_t i = 0; i < 1 + rand_seq_below(&p->rand, 5); i++)
		TRY(kv_set(tx, random_key(p, a),
			   str_of(value, (size_t)rand_seq_below(&p->rand, VALUE_MOST))));
	if (rand_seq_below(&p->rand, 4) == 0)
		TRY(kv_clear(tx, random_key(p, a)));
	if (rand_seq_below(&p->rand, 20) == 0)
		TRY(kv_clear_range(tx, random_key(p, a), random_key(p, b)));
	return kv_atomic(tx, KV_ADD, STR("sum"), str_of((char *)&one, sizeof(one)));
}

static void
write_some(struct pair_of_stores *p, int txs)
{
	for (int i = 0; i < txs; i++)
		assert_int_equal(kv_run(p->first, random_tx, p, NULL, &p->err), STATUS_OK);
}

/* Copies the first to the standby's place, and opens it there. */
static void
copy_all(struct pair_of_stores *p)
{
	struct kv_log_copy *from;
	struct kv_store *to;
	bool done = false;
	struct str record;
	uint64_t version;

	kv_close(p->standby);
	p->standby = NULL;
	assert_int_equal(kv_log_copy_begin(p->first, &from, &p->err), STATUS_OK);
	/* What comes meanwhile is not in the copy. */
	write_some(p, 3);
	assert_int_equal(kv_log_copy_make(p->standby_url, &fixture_shape, &to, &p->err), STATUS_OK);
	for (;;) {
		buf_clear(&p->records);
		assert_int_equal(kv_log_copy_next(from, ANSWER_BYTES, &p->records, &done, &p->err),
				 STATUS_OK);
		if (done)
			break;
		assert_int_equal(kv_log_record(buf_str(&p->records), &version, &record, &p->err),
				 STATUS_OK);
		assert_int_equal(version, 0);
		assert_int_equal(kv_log_copy_load(to, record, &p->err), STATUS_OK);
	}
	/* The record that ends it is empty. */
	buf_clear(&p->records);
	kv_log_copy_put_end(from, &p->records);
	assert_int_equal(kv_log_record(buf_str(&p->records), &version, &record, &p->err),
			 STATUS_OK);
	assert_true(version > 0 && record.len == 0);
	kv_log_copy_end(from);
	assert_int_equal(kv_log_copy_place(to, p->standby_url, &p->err), STATUS_OK);
	standby_open(p);
}

/* Applies what the log has until there is no more. */
static enum status
follow_all(struct pair_of_stores *p)
{
	while (kv_log_published(p->standby) < kv_log_published(p->first)) {
		buf_clear(&p->records);
		TRY(kv_log_read(p->first, STR("one"), kv_log_published(p->standby), ANSWER_BYTES,
				&p->records, &p->err));
		assert_true(p->records.len > 0);
		TRY(kv_log_apply(p->standby, buf_str(&p->records), &p->err));
	}
	return STATUS_OK;
}

/* Both have the same pairs and the same version. */
static void
assert_same(struct pair_of_stores *p)
{
	struct kv_scan a, b;
	struct kv_tx *ta, *tb;
	uint64_t va, vb;
	enum status sa, sb;

	assert_int_equal(kv_begin(p->first, KV_TX_READ_ONLY, &ta), STATUS_OK);
	assert_int_equal(kv_begin(p->standby, KV_TX_READ_ONLY, &tb), STATUS_OK);
	assert_int_equal(kv_get_read_version(ta, &va), STATUS_OK);
	assert_int_equal(kv_get_read_version(tb, &vb), STATUS_OK);
	assert_int_equal(va, vb);
	assert_int_equal(kv_scan_init(&a, ta, STR(""), STR("\xff"), NULL), STATUS_OK);
	assert_int_equal(kv_scan_init(&b, tb, STR(""), STR("\xff"), NULL), STATUS_OK);
	do {
		struct kv_pair x = { 0 }, y = { 0 };

		sa = kv_scan_next(&a, &x);
		sb = kv_scan_next(&b, &y);
		assert_int_equal(sa, sb);
		if (sa == STATUS_OK)
			assert_true(str_eq(x.key, y.key) && str_eq(x.value, y.value));
	} while (sa == STATUS_OK);
	assert_int_equal(sa, STATUS_NOT_FOUND);
	kv_scan_release(&a);
	kv_scan_release(&b);
	kv_tx_free(ta);
	kv_tx_free(tb);
}

static void
a_standby_has_all_versions_through_restarts_and_new_logs(void **state)
{
	struct pair_of_stores *p = *state;

	write_some(p, 100);
	copy_all(p);
	for (int turn = 0; turn < TURNS; turn++) {
		write_some(p, TURN_TXS);
		switch (rand_seq_below(&p->rand, 4)) {
		case 0:
			kv_close(p->first);
			/* A command without the setting keeps the log as well. */
			first_open(p, 0);
			write_some(p, 2);
			kv_close(p->first);
			first_open(p, LOG_BYTES);
			break;
		case 1:
			kv_close(p->standby);
			standby_open(p);
			break;
		case 2:
			assert_int_equal(kv_compact(p->first, &p->err), STATUS_OK);
			break;
		default:
			break;
		}
		if (rand_seq_below(&p->rand, 3))
			continue;
		assert_int_equal(follow_all(p), STATUS_OK);
		assert_same(p);
	}
	assert_int_equal(follow_all(p), STATUS_OK);
	assert_same(p);
}

static void
reads_of_the_log_go_on_after_signals(void **state)
{
	struct pair_of_stores *p = *state;

	copy_all(p);
	write_some(p, 20);
	interrupts = true;
	assert_int_equal(follow_all(p), STATUS_OK);
	interrupts = false;
	assert_true(preads > 2);
	assert_same(p);
}

static void
records_that_are_cut_or_changed_are_refused(void **state)
{
	struct pair_of_stores *p = *state;
	uint64_t before, version;
	struct str first;

	copy_all(p);
	assert_int_equal(follow_all(p), STATUS_OK);
	write_some(p, 5);
	before = kv_log_published(p->standby);
	buf_clear(&p->records);
	assert_int_equal(
		kv_log_read(p->first, STR("one"), before, ANSWER_BYTES, &p->records, &p->err),
		STATUS_OK);
	assert_int_equal(
		kv_log_apply(p->standby, str_of(p->records.ptr, p->records.len - 1), &p->err),
		STATUS_CORRUPT);
	for (size_t at = 0; at < p->records.len; at += 1 + p->records.len / 300) {
		p->records.ptr[at] = (char)(p->records.ptr[at] ^ 0x10);
		assert_int_equal(kv_log_apply(p->standby, buf_str(&p->records), &p->err),
				 STATUS_CORRUPT);
		assert_true(kv_log_published(p->standby) == before);
		p->records.ptr[at] = (char)(p->records.ptr[at] ^ 0x10);
	}
	/* All but the first record: the second names the version of the first as the one before. */
	assert_int_equal(kv_log_record(buf_str(&p->records), &version, &first, &p->err), STATUS_OK);
	assert_int_equal(
		kv_log_apply(p->standby,
			     str_skip(buf_str(&p->records), KV_LOG_HEADER_BYTES + first.len),
			     &p->err),
		STATUS_CORRUPT);
	assert_non_null(strstr(p->err.text, "misses commits"));
	assert_int_equal(kv_log_apply(p->standby, buf_str(&p->records), &p->err), STATUS_OK);
	assert_same(p);
	/* Again: nothing of it is new. */
	assert_int_equal(kv_log_apply(p->standby, buf_str(&p->records), &p->err), STATUS_OK);
	assert_same(p);
}

/* Applies one record, whose checksum is right. */
static enum status
apply_one(struct pair_of_stores *p, uint64_t version, struct str payload)
{
	AUTO(buf_release) struct buf records = BUF_INIT(ROOM);

	kept_put_record(&records, version, payload);
	p->err = (struct err){ 0 };
	return kv_log_apply(p->standby, buf_str(&records), &p->err);
}

static void
a_record_that_does_not_make_its_version_is_refused(void **state)
{
	struct pair_of_stores *p = *state;
	static const char empty[KEPT_BATCH_HEADER_BYTES];
	struct str payload;
	uint64_t version;
	size_t value_at;

	copy_all(p);
	assert_int_equal(follow_all(p), STATUS_OK);
	write_some(p, 1);
	buf_clear(&p->records);
	assert_int_equal(kv_log_read(p->first, STR("one"), kv_log_published(p->standby),
				     ANSWER_BYTES, &p->records, &p->err),
			 STATUS_OK);
	assert_int_equal(kv_log_record(buf_str(&p->records), &version, &payload, &p->err),
			 STATUS_OK);
	assert_int_equal(version, kv_log_published(p->first));
	assert_int_equal(apply_one(p, 0, str_of(empty, sizeof(empty))), STATUS_CORRUPT);
	assert_non_null(strstr(p->err.text, "does not make the version 0"));
	assert_int_equal(apply_one(p, version, str_of(empty, sizeof(empty))), STATUS_CORRUPT);
	assert_int_equal(apply_one(p, version + 1, payload), STATUS_CORRUPT);
	assert_int_equal(apply_one(p, version - 1, payload), STATUS_CORRUPT);
	assert_non_null(strstr(p->err.text, "does not make the version"));
	/* Without the link there is nothing that tells what was before. */
	value_at = KV_LOG_HEADER_BYTES + payload.len - LOG_BATCH_END_BYTES - LOG_LINK_VALUE_BYTES;
	p->records.ptr[value_at - 2]++;
	assert_int_equal(apply_one(p, version, payload), STATUS_CORRUPT);
	assert_non_null(strstr(p->err.text, "misses commits"));
	p->records.ptr[value_at - 2]--;
	for (size_t i = 0; i < LOG_LINK_HISTORY_BYTES; i++) {
		p->records.ptr[value_at + LOG_LINK_HISTORY + i]++;
		assert_int_equal(apply_one(p, version, payload), STATUS_DOC_CONFLICT);
		assert_non_null(strstr(p->err.text, "is of another history"));
		p->records.ptr[value_at + LOG_LINK_HISTORY + i]--;
	}
	assert_int_equal(apply_one(p, version, payload), STATUS_OK);
	assert_same(p);
}

/* The lengths at which RocksDB writes a length in one byte more. */
static void
keys_and_values_of_each_length_are_copied(void **state)
{
	static const size_t lengths[] = { 0, 1, 127, 128, 129, 16383, 16384, 16385 };
	static char text[16385];
	struct pair_of_stores *p = *state;
	struct kv_tx *tx = begin(p->first);

	memset(text, 'k', sizeof(text));
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		char key[16];

		(void)snprintf(key, sizeof(key), "v%zu", i);
		assert_ok(kv_set(tx, str_from_cstr(key), str_of(text, lengths[i])));
		if (lengths[i] && lengths[i] <= 129)
			assert_ok(kv_set(tx, str_of(text, lengths[i]), STR("key")));
	}
	commit(tx);
	copy_all(p);
	assert_int_equal(follow_all(p), STATUS_OK);
	assert_same(p);
}

static void
a_log_that_was_cut_short_asks_for_a_new_copy(void **state)
{
	struct pair_of_stores *p = *state;

	copy_all(p);
	write_some(p, 10);
	kv_close(p->first);
	first_open(p, 1);
	write_some(p, 10);
	assert_int_equal(kv_compact(p->first, &p->err), STATUS_OK);
	kv_log_prune(p->first);
	write_some(p, 1);
	assert_int_equal(follow_all(p), STATUS_NOT_FOUND);
	copy_all(p);
	assert_int_equal(follow_all(p), STATUS_OK);
	assert_same(p);
	assert_int_equal(kv_log_read(p->first, STR("one"), kv_log_published(p->first) + 1,
				     ANSWER_BYTES, &p->records, &p->err),
			 STATUS_DOC_CONFLICT);
}

static void
a_standby_is_written_to_when_it_is_promoted(void **state)
{
	struct pair_of_stores *p = *state;
	struct kv_log_position of_first, position;
	struct kv_store *store;

	copy_all(p);
	assert_int_equal(follow_all(p), STATUS_OK);
	assert_int_equal(kv_log_position(p->first, &of_first, &p->err), STATUS_OK);
	kv_close(p->standby);
	p->standby = NULL;
	assert_int_equal(kv_open(p->standby_url, &(struct kv_options){ 0 }, &store, &p->err),
			 STATUS_FORBIDDEN);
	assert_non_null(strstr(p->err.text, " is a standby of another store: "));
	standby_open(p);
	assert_int_equal(kv_log_promote_begin(p->standby, &p->err), STATUS_OK);
	kv_close(p->standby);
	/* A crash here leaves what can only be promoted. */
	standby_open(p);
	assert_int_equal(kv_log_promote_begin(p->standby, &p->err), STATUS_OK);
	assert_int_equal(kv_log_promote_end(p->standby, &p->err), STATUS_OK);
	kv_close(p->standby);
	p->standby = fixture_open(p->standby_url, (struct kv_options){ 0 });
	assert_int_equal(kv_log_position(p->standby, &position, &p->err), STATUS_OK);
	assert_false(position.follows);
	assert_int_equal(position.promoted_at, of_first.version);
	assert_memory_equal(position.before, of_first.history, KV_LOG_HISTORY_BYTES);
	assert_memory_not_equal(position.history, of_first.history, KV_LOG_HISTORY_BYTES);
	assert_int_equal(kv_run(p->standby, random_tx, p, NULL, &p->err), STATUS_OK);
	kv_close(p->standby);
	p->standby = NULL;
	assert_int_equal(
		kv_open(p->standby_url, &(struct kv_options){ .follows = true }, &store, &p->err),
		STATUS_INVALID);
}

/* ---- The keys of the log ---- */

/* What a commit has changed, in any order: "k001 k002-k005". */
struct told_keys {
	struct pair_of_stores *p;
	uint64_t after;
	uint64_t versions[KEYS_TXS];
	struct buf said;
	size_t count;
	size_t most; /* after which the reading is ended */
};

static enum status
note_key(void *arg, const struct kv_log_key *key)
{
	struct told_keys *t = arg;

	assert_true(key->version > t->after);
	assert_true(key->time_ms > 0);
	if (t->count++ == t->most)
		return STATUS_CANCELLED;
	if (!str_starts_with(key->key, STR("k")))
		return STATUS_OK;
	for (size_t i = 0; i < KEYS_TXS; i++)
		if (t->versions[i] == key->version)
			buf_printf(&t->said, "%zu:", i);
	buf_append_str(&t->said, key->key);
	if (key->end.ptr) {
		buf_append_byte(&t->said, '-');
		buf_append_str(&t->said, key->end);
	}
	buf_append_byte(&t->said, ' ');
	return STATUS_OK;
}

static const char *
keys_behind(struct told_keys *t, uint64_t after)
{
	t->after = after;
	t->count = 0;
	buf_clear(&t->said);
	assert_int_equal(kv_log_keys(t->p->first, after, note_key, t, &t->p->err), STATUS_OK);
	buf_append_byte(&t->said, 0);
	return t->said.ptr;
}

/* Keys of more bytes than are cleared one by one. */
static void
put_many(struct kv_store *store)
{
	char *key = malloc(KEY_BYTES);
	struct kv_tx *tx = NULL;

	assert_non_null(key);
	memset(key, 'x', KEY_BYTES);
	memcpy(key, "k7", 2);
	for (int i = 0; i < KEYS_MANY; i++) {
		if (!tx)
			tx = begin(store);
		(void)snprintf(key + 2, 6, "%05d", i);
		key[7] = 'x';
		assert_ok(kv_set(tx, str_of(key, KEY_BYTES), STR("")));
		if (i % 200 == 0 || i + 1 == KEYS_MANY) {
			commit(tx);
			tx = NULL;
		}
	}
	free(key);
}

static void
write_keys(struct told_keys *t, size_t n)
{
	struct kv_tx *tx = begin(t->p->first);

	switch (n) {
	case 0:
		put(tx, "k1", "1");
		put(tx, "k2", "2");
		break;
	case 1:
		assert_ok(kv_clear(tx, STR("k1")));
		assert_ok(kv_atomic(tx, KV_ADD, STR("k3"), STR("\1")));
		break;
	case 2:
		/* Few keys one by one, and a range of many. */
		assert_ok(kv_clear_range(tx, STR("k2"), STR("k4")));
		assert_ok(kv_clear_range(tx, STR("k7"), STR("k8")));
		put(tx, "k5", "5");
		break;
	default:
		put(tx, "k6", "6");
		break;
	}
	assert_ok(kv_future_wait(kv_commit(tx)));
	assert_ok(kv_committed_version(tx, &t->versions[n]));
	kv_tx_free(tx);
}

static void
the_log_tells_each_key_that_was_written(void **state)
{
	struct pair_of_stores *p = *state;
	struct told_keys t = { .p = p, .said = BUF_INIT(ROOM), .most = SIZE_MAX };
	uint64_t before;

	put_many(p->first);
	before = kv_log_published(p->first);
	for (size_t i = 0; i < KEYS_TXS; i++)
		write_keys(&t, i);
	assert_string_equal(keys_behind(&t, before),
			    "0:k1 0:k2 1:k1 1:k3 2:k7-k8 2:k2 2:k3 2:k5 3:k6 ");
	assert_string_equal(keys_behind(&t, t.versions[0]),
			    "1:k1 1:k3 2:k7-k8 2:k2 2:k3 2:k5 3:k6 ");
	assert_string_equal(keys_behind(&t, t.versions[2]), "3:k6 ");
	assert_string_equal(keys_behind(&t, kv_log_published(p->first)), "");
	/* Who is told may end it. */
	t.after = before;
	for (t.most = 0; t.most < 3; t.most++) {
		t.count = 0;
		assert_int_equal(kv_log_keys(p->first, before, note_key, &t, &p->err),
				 STATUS_CANCELLED);
		assert_int_equal(t.count, t.most + 1);
	}
	/* Not so of a log that has been cut short. */
	t.most = SIZE_MAX;
	kv_close(p->first);
	first_open(p, 1);
	write_some(p, 3);
	assert_int_equal(kv_compact(p->first, &p->err), STATUS_OK);
	kv_log_prune(p->first);
	write_some(p, 1);
	assert_int_equal(kv_log_keys(p->first, before, note_key, &t, &p->err), STATUS_NOT_FOUND);
	buf_release(&t.said);
}

/* ---- What is refused ---- */

static enum status
read_as(struct pair_of_stores *p, struct str name)
{
	buf_clear(&p->records);
	return kv_log_read(p->first, name, kv_log_published(p->first), ANSWER_BYTES, &p->records,
			   &p->err);
}

static void
names_of_standbys_have_their_limits(void **state)
{
	static const char name[KV_LOG_NAME_BYTES + 1] =
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	struct pair_of_stores *p = *state;

	assert_int_equal(read_as(p, STR("")), STATUS_INVALID);
	assert_int_equal(read_as(p, str_of(name, 1)), STATUS_OK);
	assert_int_equal(read_as(p, str_of(name, KV_LOG_NAME_BYTES)), STATUS_OK);
	assert_int_equal(read_as(p, str_of(name, KV_LOG_NAME_BYTES + 1)), STATUS_INVALID);
	assert_int_equal(read_as(p, str_of("a\0b", 3)), STATUS_INVALID);
	/* However many there are: the one that has been away for longest makes room. */
	for (int i = 0; i <= 2 * KV_LOG_FOLLOWERS; i++) {
		char one[16];

		(void)snprintf(one, sizeof(one), "s%d", i);
		assert_int_equal(read_as(p, str_from_cstr(one)), STATUS_OK);
	}
}

static void
a_store_without_a_log_gives_none(void **state)
{
	struct pair_of_stores *p = *state;
	struct kv_log_position position;
	struct kv_log_copy *copy;
	struct kv_store *store;

	write_some(p, 1);
	kv_close(p->first);
	p->first = NULL;
	store = fixture_open(p->standby_url, (struct kv_options){ .create = true });
	assert_int_equal(kv_log_read(store, STR("one"), 0, ANSWER_BYTES, &p->records, &p->err),
			 STATUS_FORBIDDEN);
	assert_int_equal(kv_log_copy_begin(store, &copy, &p->err), STATUS_FORBIDDEN);
	kv_log_prune(store);
	assert_int_equal(kv_log_position(store, &position, &p->err), STATUS_OK);
	assert_false(position.follows || position.replaced || position.promotes);
	assert_int_equal(kv_log_promote_begin(store, &p->err), STATUS_INVALID);
	kv_close(store);
	first_open(p, LOG_BYTES);
}

static void
places_of_copies_are_directories(void **state)
{
	struct pair_of_stores *p = *state;
	char url[PATH_MAX + 32];
	struct kv_store *copy;

	assert_int_equal(kv_log_copy_make("fdb:x", &fixture_shape, &copy, &p->err),
			 STATUS_UNSUPPORTED);
	assert_int_equal(kv_log_copy_make("embedded:", &fixture_shape, &copy, &p->err),
			 STATUS_UNSUPPORTED);
	memset(url, 'x', sizeof(url));
	memcpy(url, "embedded:/", 10);
	url[sizeof(url) - 1] = 0;
	assert_int_equal(kv_log_copy_make(url, &fixture_shape, &copy, &p->err), STATUS_INVALID);
	/* With slashes at its end it is the same place. */
	(void)snprintf(url, sizeof(url), "%s//", p->standby_url);
	assert_int_equal(kv_log_copy_make(url, &fixture_shape, &copy, &p->err), STATUS_OK);
	kv_close(copy);
	copy_all(p);
	assert_int_equal(follow_all(p), STATUS_OK);
	assert_same(p);
}

/* ---- A store whose standby has taken its place ---- */

static void
a_store_that_was_replaced_is_only_read(void **state)
{
	struct pair_of_stores *p = *state;
	struct kv_log_position position;
	struct kv_store *store;

	write_some(p, 3);
	assert_int_equal(kv_log_replaced(p->first, &p->err), STATUS_OK);
	assert_int_equal(kv_log_position(p->first, &position, &p->err), STATUS_OK);
	assert_true(position.replaced && position.follows && !position.promotes);
	kv_close(p->first);
	p->first = NULL;
	assert_int_equal(kv_open(p->first_url, &(struct kv_options){ 0 }, &store, &p->err),
			 STATUS_FORBIDDEN);
	assert_non_null(strstr(p->err.text, "has taken its place"));
	p->first = fixture_open(p->first_url, (struct kv_options){ .read_only = true });
	assert_int_equal(kv_log_position(p->first, &position, &p->err), STATUS_OK);
	assert_true(position.replaced);
	kv_close(p->first);
	p->first = fixture_open(p->first_url, (struct kv_options){ .follows = true });
	assert_int_equal(kv_log_promote_begin(p->first, &p->err), STATUS_OK);
	assert_int_equal(kv_log_position(p->first, &position, &p->err), STATUS_OK);
	assert_true(position.promotes && !position.replaced);
	assert_int_equal(kv_log_promote_end(p->first, &p->err), STATUS_OK);
	kv_close(p->first);
	first_open(p, LOG_BYTES);
	write_some(p, 1);
}

/* ---- Readers of a standby ---- */

static enum status
write_both(struct kv_tx *tx, void *arg)
{
	const uint64_t *n = arg;
	struct str value = str_of((const char *)n, sizeof(*n));

	TRY(kv_set(tx, STR("left"), value));
	return kv_set(tx, STR("right"), value);
}

static uint64_t
read_number(struct kv_tx *tx, struct str key)
{
	struct kv_future *f = kv_get(tx, key, KV_SNAPSHOT);
	uint64_t n = 0;
	struct str value;

	assert_int_equal(kv_future_wait(f), STATUS_OK);
	if (kv_future_value(f, &value)) {
		assert_int_equal(value.len, sizeof(n));
		memcpy(&n, value.ptr, sizeof(n));
	}
	return n;
}

struct standby_reader {
	struct kv_store *store;
	atomic_bool ends;
	pthread_t thread;
};

/* What one transaction of the first has written is there whole, and never goes back. */
static void *
read_both(void *arg)
{
	struct standby_reader *r = arg;
	uint64_t last = 0;

	while (!atomic_load(&r->ends)) {
		uint64_t left, right;
		struct kv_tx *tx;

		assert_int_equal(kv_begin(r->store, KV_TX_READ_ONLY, &tx), STATUS_OK);
		left = read_number(tx, STR("left"));
		right = read_number(tx, STR("right"));
		assert_int_equal(left, right);
		assert_true(left >= last);
		last = left;
		kv_tx_free(tx);
	}
	return NULL;
}

static void
readers_see_whole_transactions_while_a_standby_follows(void **state)
{
	struct standby_reader readers[3] = { 0 };
	struct pair_of_stores *p = *state;
	struct kv_tx *tx;

	copy_all(p);
	kv_close(p->standby);
	p->standby = fixture_open(p->standby_url,
				  (struct kv_options){ .follows = true, .recent_bytes = 1 << 20 });
	for (size_t i = 0; i < 3; i++) {
		readers[i].store = p->standby;
		assert_int_equal(pthread_create(&readers[i].thread, NULL, read_both, &readers[i]),
				 0);
	}
	for (uint64_t n = 1; n <= 300; n++) {
		assert_int_equal(kv_run(p->first, write_both, &n, NULL, &p->err), STATUS_OK);
		if (n % 3 == 0)
			assert_int_equal(follow_all(p), STATUS_OK);
	}
	for (size_t i = 0; i < 3; i++) {
		atomic_store(&readers[i].ends, true);
		assert_int_equal(pthread_join(readers[i].thread, NULL), 0);
	}
	assert_int_equal(kv_begin(p->standby, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(read_number(tx, STR("right")), 300);
	kv_tx_free(tx);
}

static struct kv_future *
watch_on_standby(struct pair_of_stores *p, struct str key)
{
	struct kv_future *watch;
	struct kv_tx *tx;

	assert_int_equal(kv_begin(p->standby, KV_TX_READ_WRITE, &tx), STATUS_OK);
	watch = kv_watch(tx, key);
	assert_int_equal(kv_future_wait(kv_commit(tx)), STATUS_OK);
	kv_tx_free(tx);
	return watch;
}

static void
a_standby_takes_no_commit_and_completes_watches(void **state)
{
	struct pair_of_stores *p = *state;
	struct kv_future *left, *other;
	uint64_t n = 1;

	copy_all(p);
	assert_true(kv_follows(p->standby) && kv_is_shared(p->standby));
	assert_int_equal(kv_store_stats(p->standby).state, KV_STORE_STANDBY);
	assert_int_equal(kv_run(p->standby, write_both, &n, NULL, &p->err), STATUS_STANDBY);
	assert_non_null(strstr(p->err.text, "is a standby"));
	left = watch_on_standby(p, STR("left"));
	other = watch_on_standby(p, STR("nobody writes this"));
	assert_int_equal(kv_run(p->first, write_both, &n, NULL, &p->err), STATUS_OK);
	assert_false(event_is_set(kv_future_event(left)));
	assert_int_equal(follow_all(p), STATUS_OK);
	assert_int_equal(kv_future_wait(left), STATUS_OK);
	assert_false(event_is_set(kv_future_event(other)));
	kv_future_free(left);
	kv_future_free(other);

	kv_log_heard(p->standby, kv_log_published(p->standby) + 7);
	assert_int_equal(kv_log_behind(p->standby).versions, 7);
	kv_log_heard(p->standby, kv_log_published(p->standby));
	assert_int_equal(kv_log_behind(p->standby).versions, 0);
	assert_int_equal(kv_log_behind(p->first).ns, 0);
}

/* Since it last heard of no version that it has not. */
static void
a_standby_is_behind_since_it_heard_of_more(void **state)
{
	struct pair_of_stores *p = *state;
	uint64_t has, had_ns, heard_ns;

	copy_all(p);
	has = kv_log_published(p->standby);
	had_ns = clock_mono_ns();
	for (uint64_t less = 0; less <= 1; less++) {
		usleep(PAUSE_US);
		heard_ns = clock_mono_ns();
		kv_log_heard(p->standby, has - less);
		assert_int_equal(kv_log_behind(p->standby).versions, 0);
		assert_true(kv_log_behind(p->standby).ns <= clock_mono_ns() - heard_ns);
	}
	had_ns = clock_mono_ns();
	usleep(PAUSE_US);
	heard_ns = clock_mono_ns();
	kv_log_heard(p->standby, has + 1);
	assert_int_equal(kv_log_behind(p->standby).versions, 1);
	assert_true(kv_log_behind(p->standby).ns >= heard_ns - had_ns);
}

/* For how long a standby has not had all that was committed. */
static uint64_t
behind_ns(void)
{
	int64_t ns = 0;

	metric_hold();
	assert_true(metric_sum("frond_followers_behind_seconds", NULL, &ns));
	metric_release();
	return (uint64_t)ns;
}

static void
ask_at_the_end(struct pair_of_stores *p)
{
	buf_clear(&p->records);
	assert_int_equal(kv_log_read(p->first, STR("one"), kv_log_published(p->first), ANSWER_BYTES,
				     &p->records, &p->err),
			 STATUS_OK);
	assert_int_equal(p->records.len, 0);
}

/* It is behind since it was last known to have all, and not since it was first seen. */
static void
a_standby_is_told_to_be_behind_since_it_had_all(void **state)
{
	struct pair_of_stores *p = *state;
	uint64_t had_all_ns, behind;

	write_some(p, 1);
	ask_at_the_end(p);
	usleep(PAUSE_US);
	had_all_ns = clock_mono_ns();
	ask_at_the_end(p);
	assert_int_equal(behind_ns(), 0);
	write_some(p, 1);
	behind = behind_ns();
	assert_true(behind > 0);
	assert_true(behind <= clock_mono_ns() - had_all_ns);
}

/* True if somebody reports the first series of the metric; its value is then in `*ret`. */
static bool
metric_is_told(const char *name, int64_t *ret)
{
	const struct metric *m = metric_find(name);
	bool told;

	assert_non_null(m);
	metric_hold();
	told = metric_value(m, 0, ret);
	metric_release();
	return told;
}

static void
only_a_standby_tells_how_far_it_is_behind(void **state)
{
	static const char *const metrics[] = {
		"frond_store_memory_bytes",
		"frond_store_files",
		"frond_store_tables_bytes",
		"frond_store_writes_stopped",
		"frond_store_disk_free_bytes",
		"frond_store_commit_queue_length",
		"frond_store_block_cache_capacity_bytes",
	};
	struct pair_of_stores *p = *state;
	int64_t value;

	for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++)
		assert_true(metric_is_told(metrics[i], &value));
	assert_true(metric_is_told("frond_store_disk_size_bytes", &value) && value > 0);
	assert_false(metric_is_told("frond_follow_behind_versions", &value));
	assert_false(metric_is_told("frond_follow_behind_seconds", &value));
	copy_all(p);
	assert_true(metric_is_told("frond_follow_behind_versions", &value));
	assert_true(metric_is_told("frond_follow_behind_seconds", &value));
	/* What both have is added up: tables of the standby, which it was copied into. */
	assert_true(metric_is_told("frond_store_memory_bytes", &value) && value > 0);
	kv_close(p->standby);
	p->standby = NULL;
	assert_false(metric_is_told("frond_follow_behind_versions", &value));
	kv_close(p->first);
	p->first = NULL;
	for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++)
		assert_false(metric_is_told(metrics[i], &value));
}

#define STANDBY_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		STANDBY_TEST(a_standby_has_all_versions_through_restarts_and_new_logs),
		STANDBY_TEST(reads_of_the_log_go_on_after_signals),
		STANDBY_TEST(records_that_are_cut_or_changed_are_refused),
		STANDBY_TEST(a_record_that_does_not_make_its_version_is_refused),
		STANDBY_TEST(keys_and_values_of_each_length_are_copied),
		STANDBY_TEST(a_log_that_was_cut_short_asks_for_a_new_copy),
		STANDBY_TEST(a_standby_is_written_to_when_it_is_promoted),
		STANDBY_TEST(the_log_tells_each_key_that_was_written),
		STANDBY_TEST(names_of_standbys_have_their_limits),
		STANDBY_TEST(a_store_without_a_log_gives_none),
		STANDBY_TEST(places_of_copies_are_directories),
		STANDBY_TEST(a_store_that_was_replaced_is_only_read),
		STANDBY_TEST(readers_see_whole_transactions_while_a_standby_follows),
		STANDBY_TEST(a_standby_takes_no_commit_and_completes_watches),
		STANDBY_TEST(a_standby_is_behind_since_it_heard_of_more),
		STANDBY_TEST(a_standby_is_told_to_be_behind_since_it_had_all),
		STANDBY_TEST(only_a_standby_tells_how_far_it_is_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
