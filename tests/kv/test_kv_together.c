/*
 * Transactions that begin together, on fibers of one loop, and first read the metadata version, as
 * requests do. What they see and what they conflict with is what each has alone; a cluster's engine
 * reads for them together.
 */
#include "fixture.h"

#include <stdio.h>
#include <string.h>

enum {
	PARTS = 12,
	KEY_BYTES = 16,
};

struct part {
	struct kv_store *store;
	void (*run)(struct part *p);
	unsigned n;
	enum kv_tx_kind kind;
	enum status status; /* what has failed first, or STATUS_OK */
	uint64_t version;
	bool right; /* what was read is what it should be */
};

static void
part_main(void *arg)
{
	struct part *p = arg;

	p->run(p);
}

/* Runs them on the fibers of a loop; every second one only reads. */
static void
run_parts(struct kv_store *store, void (*run)(struct part *p), struct part parts[static PARTS])
{
	for (unsigned i = 0; i < PARTS; i++) {
		parts[i] = (struct part){
			.store = store,
			.run = run,
			.n = i,
			.kind = i % 2 ? KV_TX_READ_ONLY : KV_TX_READ_WRITE,
		};
	}
	run_on_fibers(PARTS, part_main, parts, sizeof(parts[0]));
}

static enum status
get(struct kv_tx *tx, const char *key, struct str *ret, bool *ret_present)
{
	struct kv_future *f = kv_get(tx, str_from_cstr(key), KV_READ);

	TRY(kv_future_wait(f));
	*ret_present = kv_future_value(f, ret);
	return STATUS_OK;
}

static bool
is(struct str value, bool present, const char *expected)
{
	return present && str_eq(value, str_from_cstr(expected));
}

/* ---- What they see ---- */

static enum status
see_body(struct kv_tx *tx, void *arg)
{
	uint8_t metadata[KV_VERSIONSTAMP_TX_BYTES];
	char key[KEY_BYTES];
	struct part *p = arg;
	struct str value;
	bool present;

	TRY(kv_get_metadata_version(tx, metadata));
	TRY(kv_get_read_version(tx, &p->version));
	TRY(get(tx, "t/before", &value, &present));
	p->right = is(value, present, "1");
	if (p->kind == KV_TX_READ_ONLY)
		return STATUS_OK;
	(void)snprintf(key, sizeof(key), "t/%u", p->n);
	TRY(kv_set(tx, str_from_cstr(key), STR("mine")));
	TRY(get(tx, key, &value, &present));
	p->right &= is(value, present, "mine");
	return STATUS_OK;
}

static void
see(struct part *p)
{
	p->status = p->kind == KV_TX_READ_ONLY ? kv_run_read(p->store, see_body, p, NULL)
					       : kv_run(p->store, see_body, p, NULL, NULL);
}

static void
those_that_begin_together_see_what_was_committed_before(void **state)
{
	struct kv_store *store = store_of(state);
	struct part parts[PARTS];

	for (int round = 0; round < 5; round++) {
		uint64_t version;
		struct kv_tx *tx;

		put_now(store, "t/before", "0");
		put_now(store, "t/before", "1");
		tx = begin_read(store);
		assert_ok(kv_get_read_version(tx, &version));
		kv_tx_free(tx);
		run_parts(store, see, parts);
		for (unsigned i = 0; i < PARTS; i++) {
			char key[KEY_BYTES];

			assert_ok(parts[i].status);
			assert_true(parts[i].right);
			assert_true(parts[i].version >= version);
			(void)snprintf(key, sizeof(key), "t/%u", i);
			assert_stored(store, key, i % 2 ? NULL : "mine");
		}
	}
}

/* ---- What they do not see ---- */

/* All have a version before the first of them writes. */
static void
stay(struct part *p)
{
	uint8_t metadata[KV_VERSIONSTAMP_TX_BYTES];
	unsigned meeting = 0;
	struct kv_tx *tx, *other;
	struct str value;
	bool present = false;

	p->status = kv_begin(p->store, p->kind, &tx);
	if (p->status == STATUS_OK)
		p->status = kv_get_metadata_version(tx, metadata);
	meet_fibers(&meeting);
	if (p->n == 0 && kv_begin(p->store, KV_TX_READ_WRITE, &other) == STATUS_OK) {
		p->right = kv_set(other, STR("t/before"), STR("2")) == STATUS_OK &&
			   kv_future_wait(kv_commit(other)) == STATUS_OK;
		kv_tx_free(other);
	}
	meet_fibers(&meeting);
	if (p->status == STATUS_OK)
		p->status = get(tx, "t/before", &value, &present);
	if (p->status == STATUS_OK)
		p->right = (p->n || p->right) && is(value, present, "1");
	kv_tx_free(tx);
}

static void
those_that_begin_together_stay_at_their_version(void **state)
{
	struct kv_store *store = store_of(state);
	struct part parts[PARTS];

	put_now(store, "t/before", "1");
	run_parts(store, stay, parts);
	for (unsigned i = 0; i < PARTS; i++) {
		/* A library that keeps one version of the store says that it is gone. */
		if (parts[i].status == STATUS_TX_TOO_OLD)
			continue;
		assert_ok(parts[i].status);
		assert_true(parts[i].right);
	}
	assert_stored(store, "t/before", "2");
}

/* ---- Conflicts with a change of the metadata version ---- */

static void
conflict(struct part *p)
{
	uint8_t metadata[KV_VERSIONSTAMP_TX_BYTES];
	unsigned meeting = 0;
	char key[KEY_BYTES];
	struct kv_tx *tx, *other;

	(void)snprintf(key, sizeof(key), "t/%u", p->n);
	p->status = kv_begin(p->store, p->kind, &tx);
	if (p->status == STATUS_OK)
		p->status = kv_get_metadata_version(tx, metadata);
	meet_fibers(&meeting);
	if (p->n == 0 && kv_begin(p->store, KV_TX_READ_WRITE, &other) == STATUS_OK) {
		p->right = kv_touch_metadata_version(other) == STATUS_OK &&
			   kv_future_wait(kv_commit(other)) == STATUS_OK;
		kv_tx_free(other);
	}
	meet_fibers(&meeting);
	if (p->status == STATUS_OK && p->kind == KV_TX_READ_WRITE)
		p->status = kv_set(tx, str_from_cstr(key), STR("1"));
	if (p->status == STATUS_OK && p->kind == KV_TX_READ_WRITE)
		p->status = kv_future_wait(kv_commit(tx));
	kv_tx_free(tx);
}

static void
writers_that_begin_together_conflict_with_a_change_of_the_metadata(void **state)
{
	struct kv_store *store = store_of(state);
	struct part parts[PARTS];

	run_parts(store, conflict, parts);
	assert_true(parts[0].right);
	for (unsigned i = 0; i < PARTS; i++) {
		char key[KEY_BYTES];

		(void)snprintf(key, sizeof(key), "t/%u", i);
		assert_stored(store, key, NULL);
		if (i % 2)
			assert_ok(parts[i].status);
		else if (parts[i].status != STATUS_TX_TOO_OLD)
			assert_int_equal(parts[i].status, STATUS_TX_CONFLICT);
	}
}

/* ---- One that is cancelled ---- */

static void
cancel_one(struct part *p)
{
	uint8_t metadata[KV_VERSIONSTAMP_TX_BYTES];
	unsigned meeting = 0;
	struct kv_tx *tx;
	struct str value;
	bool present = false;

	p->status = kv_begin(p->store, KV_TX_READ_ONLY, &tx);
	if (p->status == STATUS_OK)
		p->status = kv_get_metadata_version(tx, metadata);
	meet_fibers(&meeting);
	if (p->n == 0)
		kv_cancel(tx);
	meet_fibers(&meeting);
	if (p->status == STATUS_OK)
		p->status = get(tx, "t/before", &value, &present);
	/* The others begin again, at worst. */
	if (p->n && p->status != STATUS_OK && kv_on_error(tx, p->status) == STATUS_OK)
		p->status = get(tx, "t/before", &value, &present);
	p->right = p->status == STATUS_OK && is(value, present, "1");
	kv_tx_free(tx);
}

static void
one_that_is_cancelled_leaves_the_others(void **state)
{
	struct kv_store *store = store_of(state);
	struct part parts[PARTS];

	put_now(store, "t/before", "1");
	run_parts(store, cancel_one, parts);
	assert_int_equal(parts[0].status, STATUS_CANCELLED);
	for (unsigned i = 1; i < PARTS; i++) {
		assert_ok(parts[i].status);
		assert_true(parts[i].right);
	}
}

/* ---- Watches of those that only read ---- */

static void
watch_key(struct part *p)
{
	uint8_t metadata[KV_VERSIONSTAMP_TX_BYTES];
	unsigned meeting = 0;
	struct kv_future *watch = NULL;
	struct kv_tx *tx, *other;
	bool present;
	struct str value;

	p->status = kv_begin(p->store, KV_TX_READ_ONLY, &tx);
	if (p->status == STATUS_OK)
		p->status = kv_get_metadata_version(tx, metadata);
	if (p->status == STATUS_OK)
		p->status = get(tx, "t/before", &value, &present);
	if (p->status == STATUS_OK) {
		watch = kv_watch(tx, STR("t/before"));
		p->status = kv_future_wait(kv_commit(tx));
	}
	kv_tx_free(tx);
	meet_fibers(&meeting);
	if (p->n == 0 && kv_begin(p->store, KV_TX_READ_WRITE, &other) == STATUS_OK) {
		p->right = kv_set(other, STR("t/before"), STR("2")) == STATUS_OK &&
			   kv_future_wait(kv_commit(other)) == STATUS_OK;
		kv_tx_free(other);
	}
	if (watch)
		p->status = p->status == STATUS_OK ? kv_future_wait(watch) : p->status;
	kv_future_free(watch);
}

static void
readers_that_begin_together_watch(void **state)
{
	struct kv_store *store = store_of(state);
	struct part parts[PARTS];

	put_now(store, "t/before", "1");
	run_parts(store, watch_key, parts);
	assert_true(parts[0].right);
	for (unsigned i = 0; i < PARTS; i++)
		assert_ok(parts[i].status);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(those_that_begin_together_see_what_was_committed_before),
		T(those_that_begin_together_stay_at_their_version),
		T(writers_that_begin_together_conflict_with_a_change_of_the_metadata),
		T(one_that_is_cancelled_leaves_the_others),
		T(readers_that_begin_together_watch),
	};

	return cmocka_run_group_tests_name("together", tests, NULL, NULL);
}
