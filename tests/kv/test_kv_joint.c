/*
 * Transactions that commit at the same time, on fibers of one loop, as clients' requests do. What
 * takes place is what would if each were committed by itself; a cluster's engine commits them
 * together (kv/fdb/joint.c).
 */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/metric.h"
#include "base/rand.h"

enum {
	PARTS = 24,
	KEY_BYTES = 32,
	ACCOUNTS = 8, /* in pairs, of which the two together never owe */
	ACCOUNT_BEGINS_WITH = 20,
	TURNS = 60,
};

struct part {
	struct kv_store *store;
	void (*run)(struct part *p);
	unsigned n;
	struct kv_tx *tx;
	enum status status; /* what has failed first, or STATUS_OK */
	uint64_t version;   /* of its commit */
	struct rand_seq rand;
};

static void
part_main(void *arg)
{
	struct part *p = arg;

	p->run(p);
}

static void
run_parts(struct kv_store *store, void (*run)(struct part *p), struct part parts[static PARTS])
{
	uint64_t seed = test_seed();

	print_message("# FROND_TEST_SEED=%llu\n", (unsigned long long)seed);
	for (unsigned i = 0; i < PARTS; i++) {
		parts[i] = (struct part){
			.store = store,
			.run = run,
			.n = i,
			.rand = { .state = seed + i },
		};
	}
	run_on_fibers(PARTS, part_main, parts, sizeof(parts[0]));
}

static void
part_begin(struct part *p)
{
	uint8_t metadata[KV_VERSIONSTAMP_TX_BYTES];

	p->status = kv_begin(p->store, KV_TX_READ_WRITE, &p->tx);
	if (p->status == STATUS_OK)
		p->status = kv_get_metadata_version(p->tx, metadata);
}

static void
part_end(struct part *p)
{
	if (p->status == STATUS_OK)
		p->status = kv_future_wait(kv_commit(p->tx));
	if (p->status == STATUS_OK)
		p->status = kv_committed_version(p->tx, &p->version);
	kv_tx_free(p->tx);
}

static struct str
key_of(const char *name, unsigned n, char ret[static KEY_BYTES])
{
	(void)snprintf(ret, KEY_BYTES, "t/%s/%02u", name, n % PARTS);
	return str_from_cstr(ret);
}

static enum status
read_key(struct kv_tx *tx, struct str key)
{
	struct kv_future *f = kv_get(tx, key, KV_READ);
	enum status status = kv_future_wait(f);

	kv_future_free(f);
	return status;
}

static uint64_t
metric_of(const char *name)
{
	AUTO(buf_release) struct buf text = BUF_INIT(1 << 20);
	char line[64];
	const char *at;

	metric_write(&text);
	buf_append_byte(&text, 0);
	assert_ok(buf_status(&text));
	(void)snprintf(line, sizeof(line), "\n%s ", name);
	at = strstr(text.ptr, line);
	return at ? strtoull(at + strlen(line), NULL, 10) : 0;
}

/* ---- All of them take place ---- */

static enum status
stamp_all(struct part *p)
{
	static const char stamp[KV_VERSIONSTAMP_BYTES];
	char key[KEY_BYTES], stamped[KEY_BYTES + KV_VERSIONSTAMP_BYTES];
	struct str name = STR("t/log/");

	TRY(read_key(p->tx, key_of("own", p->n, key)));
	TRY(kv_set(p->tx, str_from_cstr(key), STR("mine")));
	TRY(kv_atomic(p->tx, KV_ADD, STR("t/n"), STR("\1")));
	memcpy(stamped, name.ptr, name.len);
	memset(stamped + name.len, 0, KV_VERSIONSTAMP_BYTES);
	/* Two each, with the orders 0 and 1. */
	for (char order = 0; order < 2; order++) {
		stamped[name.len + KV_VERSIONSTAMP_BYTES - 1] = order;
		TRY(kv_set_versionstamped_key(p->tx,
					      str_of(stamped, name.len + KV_VERSIONSTAMP_BYTES),
					      name.len, key_of("own", p->n, key)));
	}
	return kv_set_versionstamped_value(p->tx, key_of("stamp", p->n, key),
					   str_of(stamp, sizeof(stamp)), 0);
}

static void
stamp(struct part *p)
{
	unsigned meeting = 0;

	part_begin(p);
	meet_fibers(&meeting);
	if (p->status == STATUS_OK)
		p->status = stamp_all(p);
	meet_fibers(&meeting);
	part_end(p);
}

/* The key of the log that has this stamp is that of the same transaction. */
static void
check_stamped(struct kv_tx *tx, struct str stamp, const char *own)
{
	char key[KEY_BYTES + KV_VERSIONSTAMP_BYTES] = "t/log/";
	size_t begin = strlen(key);
	struct kv_future *f;
	struct str value;

	assert_int_equal(stamp.len, KV_VERSIONSTAMP_BYTES);
	memcpy(key + begin, stamp.ptr, stamp.len);
	f = kv_get(tx, str_of(key, begin + stamp.len), KV_READ);
	assert_ok(kv_future_wait(f));
	assert_true(kv_future_value(f, &value));
	assert_true(str_eq(value, str_from_cstr(own)));
}

/* Clears what was there, lets all commit, and asks for all of it. */
static void
all_take_place(struct kv_store *store)
{
	struct part parts[PARTS];
	struct kv_range range;
	struct kv_future *f;
	struct kv_tx *tx = begin(store);

	assert_ok(kv_clear_range(tx, STR("t/"), STR("t0")));
	assert_ok(kv_future_wait(kv_commit(tx)));
	kv_tx_free(tx);
	run_parts(store, stamp, parts);
	tx = begin_read(store);
	for (unsigned i = 0; i < PARTS; i++) {
		char own[KEY_BYTES], key[KEY_BYTES];
		struct str value;

		assert_ok(parts[i].status);
		assert_get(tx, key_of("own", i, own).ptr, "mine");
		f = kv_get(tx, key_of("stamp", i, key), KV_READ);
		assert_ok(kv_future_wait(f));
		assert_true(kv_future_value(f, &value));
		check_stamped(tx, value, own);
	}
	assert_get(tx, "t/n", (const char[]){ PARTS, 0 });
	f = kv_get_range(tx, STR("t/log/"), STR("t/log0"), NULL);
	assert_ok(kv_future_wait(f));
	range = kv_future_range(f);
	/* In the order of the commits, each one's two after each other. */
	assert_int_equal(range.count, 2 * PARTS);
	for (size_t i = 0; i < range.count; i += 2)
		assert_true(str_eq(range.pairs[i].value, range.pairs[i + 1].value));
	kv_tx_free(tx);
}

/*
 * Only commits that meet are committed together. On a busy machine the answers may come one by one,
 * each before the next commit, so there are several turns.
 */
static void
those_that_commit_together_all_take_place(void **state)
{
	uint64_t before = metric_of("frond_cluster_joint_transactions_total");
	struct kv_store *store = store_of(state);
	bool together = false;

	for (unsigned turn = 0; turn < TURNS && !together; turn++) {
		all_take_place(store);
		together = !kv_is_shared(store) ||
			   metric_of("frond_cluster_joint_transactions_total") > before;
	}
	assert_true(together);
}

/* ---- What one reads and another writes ---- */

/* Each reads what its neighbour writes: on one side, or on the other. */
static void
cross(struct part *p, unsigned neighbour)
{
	char key[KEY_BYTES];
	unsigned meeting = 0;

	part_begin(p);
	if (p->status == STATUS_OK)
		p->status = read_key(p->tx, key_of("own", neighbour, key));
	if (p->status == STATUS_OK)
		p->status = kv_set(p->tx, key_of("own", p->n, key), STR("mine"));
	meet_fibers(&meeting);
	part_end(p);
}

static void
cross_next(struct part *p)
{
	cross(p, p->n + 1);
}

static void
cross_last(struct part *p)
{
	cross(p, p->n + PARTS - 1);
}

/*
 * Whoever has read what another has written comes before that one, and a ring of all has no first
 * one.
 */
static void
not_all_of_a_ring_take_place(void **state)
{
	void (*const runs[])(struct part *) = { cross_next, cross_last };
	struct kv_store *store = store_of(state);

	for (size_t r = 0; r < 2; r++) {
		struct part parts[PARTS];
		unsigned done = 0;

		run_parts(store, runs[r], parts);
		for (unsigned i = 0; i < PARTS; i++) {
			if (parts[i].status != STATUS_TX_CONFLICT &&
			    parts[i].status != STATUS_TX_TOO_OLD)
				assert_ok(parts[i].status);
			done += parts[i].status == STATUS_OK;
		}
		assert_true(done > 0 && done < PARTS);
	}
}

static void
clear_or_read(struct part *p)
{
	struct kv_range_options few = { .limit = 2, .reverse = p->n % 3 == 1 };
	unsigned meeting = 0;
	char key[KEY_BYTES];
	struct kv_future *f;

	part_begin(p);
	if (p->status == STATUS_OK && p->n % 2 == 0) {
		f = kv_get_range(p->tx, STR("t/seen/"), STR("t/seen0"), &few);
		p->status = kv_future_wait(f);
		if (p->n % 4 == 0)
			kv_future_free(f);
	}
	if (p->status == STATUS_OK)
		p->status = p->n % 2 ? kv_clear_range(p->tx, STR("t/seen/"), STR("t/seen0"))
				     : kv_set(p->tx, key_of("reader", p->n, key), STR(""));
	meet_fibers(&meeting);
	part_end(p);
}

/* Every second one reads some of a range, and every other clears it. */
static void
readers_of_a_range_come_before_it_is_cleared(void **state)
{
	struct kv_store *store = store_of(state);
	uint64_t first_clear = UINT64_MAX;
	struct part parts[PARTS];

	for (unsigned i = 0; i < PARTS; i++) {
		char key[KEY_BYTES];

		put_now(store, key_of("seen", i, key).ptr, "1");
	}
	run_parts(store, clear_or_read, parts);
	for (unsigned i = 1; i < PARTS; i += 2) {
		if (parts[i].status == STATUS_TX_TOO_OLD)
			continue;
		assert_ok(parts[i].status); /* it has read nothing */
		if (parts[i].version < first_clear)
			first_clear = parts[i].version;
	}
	for (unsigned i = 0; i < PARTS; i += 2)
		if (parts[i].status == STATUS_OK)
			assert_true(parts[i].version <= first_clear);
		else if (parts[i].status != STATUS_TX_TOO_OLD)
			assert_int_equal(parts[i].status, STATUS_TX_CONFLICT);
}

/* ---- One that conflicts ---- */

static void
meet_another(struct part *p)
{
	unsigned meeting = 0;
	char key[KEY_BYTES];

	part_begin(p);
	if (p->status == STATUS_OK)
		p->status = read_key(p->tx,
				     p->n == PARTS / 2 ? STR("t/seen") : key_of("own", p->n, key));
	if (p->status == STATUS_OK)
		p->status = kv_set(p->tx, key_of("own", p->n, key), STR("mine"));
	meet_fibers(&meeting);
	if (p->n == 0) {
		struct kv_tx *other;

		if (kv_begin(p->store, KV_TX_READ_WRITE, &other) == STATUS_OK) {
			if (kv_set(other, STR("t/seen"), STR("2")) != STATUS_OK ||
			    kv_future_wait(kv_commit(other)) != STATUS_OK)
				p->status = STATUS_IO;
			kv_tx_free(other);
		}
	}
	meet_fibers(&meeting);
	part_end(p);
}

static void
one_that_conflicts_leaves_the_others(void **state)
{
	uint64_t before = metric_of("frond_cluster_joint_refused_total");
	struct kv_store *store = store_of(state);
	bool refused = false;

	/* It may be alone in its commit, or be committed by itself since one was refused before. */
	for (unsigned round = 0; round < 20 && !refused; round++) {
		struct part parts[PARTS];

		run_parts(store, meet_another, parts);
		for (unsigned i = 0; i < PARTS; i++) {
			char key[KEY_BYTES];

			if (parts[i].status == STATUS_TX_TOO_OLD)
				continue;
			assert_int_equal(parts[i].status,
					 i == PARTS / 2 ? STATUS_TX_CONFLICT : STATUS_OK);
			assert_stored(store, key_of("own", i, key).ptr,
				      i == PARTS / 2 ? NULL : "mine");
		}
		refused = !kv_is_shared(store) ||
			  metric_of("frond_cluster_joint_refused_total") > before;
	}
	assert_true(refused);
}

/* ---- One that is cancelled ---- */

/* Every second one is cancelled, and gone before the others commit, one after the other. */
static void
cancel_or_commit(struct part *p)
{
	unsigned meeting = 0;
	char key[KEY_BYTES];

	part_begin(p);
	if (p->status == STATUS_OK)
		p->status = kv_set(p->tx, key_of("own", p->n, key), STR("mine"));
	meet_fibers(&meeting);
	if (p->n % 2) {
		kv_cancel(p->tx);
		part_end(p);
	}
	for (unsigned i = 0; i < PARTS; i++) {
		meet_fibers(&meeting);
		if (i == p->n && p->n % 2 == 0)
			part_end(p);
	}
}

static void
those_that_are_cancelled_leave_the_others(void **state)
{
	struct kv_store *store = store_of(state);
	struct part parts[PARTS];

	run_parts(store, cancel_or_commit, parts);
	for (unsigned i = 0; i < PARTS; i++) {
		char key[KEY_BYTES];

		assert_int_equal(parts[i].status, i % 2 ? STATUS_CANCELLED : STATUS_OK);
		assert_stored(store, key_of("own", i, key).ptr, i % 2 ? NULL : "mine");
	}
}

/* ---- Many that meet ---- */

static struct str
account(unsigned n, char ret[static KEY_BYTES])
{
	return key_of("account", n, ret);
}

static enum status
balance(struct kv_tx *tx, unsigned n, int64_t *ret)
{
	char key[KEY_BYTES];
	struct kv_future *f = kv_get(tx, account(n, key), KV_READ);
	struct str value;

	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value) || value.len != sizeof(*ret))
		return STATUS_CORRUPT;
	memcpy(ret, value.ptr, sizeof(*ret));
	return STATUS_OK;
}

static enum status
set_balance(struct kv_tx *tx, unsigned n, int64_t amount)
{
	char key[KEY_BYTES];

	return kv_set(tx, account(n, key), str_of((const char *)&amount, sizeof(amount)));
}

/*
 * Takes from one of a pair what the two have together, and gives it to another pair's. Whoever has
 * read the two before somebody else took from the other one would take what is not there.
 */
static enum status
transfer_body(struct kv_tx *tx, void *arg)
{
	struct part *p = arg;
	uint8_t metadata[KV_VERSIONSTAMP_TX_BYTES];
	unsigned from = (unsigned)rand_seq_below(&p->rand, ACCOUNTS);
	unsigned to = (unsigned)rand_seq_below(&p->rand, ACCOUNTS);
	int64_t mine, twin, other, amount;

	TRY(kv_get_metadata_version(tx, metadata));
	TRY(balance(tx, from, &mine));
	TRY(balance(tx, from ^ 1, &twin));
	amount = mine + twin;
	if (amount < 0)
		return STATUS_CORRUPT; /* more was taken than there was */
	if (amount > 3)
		amount = 1 + (int64_t)rand_seq_below(&p->rand, 3);
	if (from / 2 == to / 2 || amount == 0)
		return STATUS_OK;
	TRY(balance(tx, to, &other));
	TRY(set_balance(tx, from, mine - amount));
	return set_balance(tx, to, other + amount);
}

static void
transfer(struct part *p)
{
	for (unsigned i = 0; i < TURNS && p->status == STATUS_OK; i++) {
		p->status = kv_run(p->store, transfer_body, p, NULL, NULL);
		/* Those that gave up after all their attempts have done nothing. */
		if (p->status == STATUS_TX_CONFLICT)
			p->status = STATUS_OK;
	}
}

static void
no_account_pays_what_it_has_not(void **state)
{
	struct kv_store *store = store_of(state);
	struct part parts[PARTS];
	int64_t sum = 0, pair = 0;
	struct kv_tx *tx = begin(store);

	for (unsigned i = 0; i < ACCOUNTS; i++)
		assert_ok(set_balance(tx, i, ACCOUNT_BEGINS_WITH));
	commit(tx);
	run_parts(store, transfer, parts);
	for (unsigned i = 0; i < PARTS; i++)
		assert_ok(parts[i].status);
	tx = begin_read(store);
	for (unsigned i = 0; i < ACCOUNTS; i++) {
		int64_t amount;

		assert_ok(balance(tx, i, &amount));
		sum += amount;
		pair = i % 2 ? pair + amount : amount;
		assert_true(i % 2 == 0 || pair >= 0);
	}
	assert_int_equal(sum, ACCOUNTS * ACCOUNT_BEGINS_WITH);
	kv_tx_free(tx);
}

/* ---- Orders without room ---- */

static void
stamp_without_order(struct part *p)
{
	unsigned meeting = 0;

	part_begin(p);
	if (p->status == STATUS_OK)
		p->status = kv_set_versionstamped_key(p->tx, STR("t/s.........."), 3, STR(""));
	meet_fibers(&meeting);
	part_end(p);
}

static void
stamps_without_an_order_differ(void **state)
{
	struct kv_store *store = store_of(state);
	struct part parts[PARTS];
	struct kv_future *f;
	struct kv_tx *tx;

	run_parts(store, stamp_without_order, parts);
	for (unsigned i = 0; i < PARTS; i++)
		assert_ok(parts[i].status);
	tx = begin_read(store);
	f = kv_get_range(tx, STR("t/s"), STR("t/t"), NULL);
	assert_ok(kv_future_wait(f));
	assert_int_equal(kv_future_range(f).count, PARTS);
	kv_tx_free(tx);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(those_that_commit_together_all_take_place),
		T(not_all_of_a_ring_take_place),
		T(readers_of_a_range_come_before_it_is_cleared),
		T(one_that_conflicts_leaves_the_others),
		T(those_that_are_cancelled_leave_the_others),
		T(no_account_pays_what_it_has_not),
		T(stamps_without_an_order_differ),
	};

	return cmocka_run_group_tests_name("joint", tests, NULL, NULL);
}
