/* Transactions that clients leave open: how many there are, when one is over, what it holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/metric.h"
#include "kv/faulty/faulty.h"
#include "serve/open_txn.h"
#include "store.h"

enum {
	LIFE_MS = 60 * 1000,
	SECONDS = 60,
	BUDGET_BYTES = 4 * 1024 * 1024,
};

static char dir[4096];
static struct kv_store *store;

static struct kv_store *
store_open(const char *faults)
{
	const struct kv_options options = { .create = true };
	struct err err = { 0 };
	struct kv_store *opened;
	char url[8192];

	(void)snprintf(url, sizeof(url), "faulty:%s:embedded:%s", faults, dir);
	if (kv_open(url, &options, &opened, &err) != STATUS_OK)
		fail_msg("%s", err.text);
	return opened;
}

static int
setup(void **state)
{
	(void)state;
	test_make_dir("open_txn", dir, sizeof(dir));
	store = store_open("rate=0,delay=0,watch=0");
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	kv_close(store);
	test_remove_tree(dir);
	return 0;
}

/* The value of a metric whose series are doors. */
static int64_t
told(const char *name, enum open_txn_door door)
{
	int64_t value = -1;

	for (size_t i = 0; i < metric_count(); i++)
		if (strcmp(metric_at(i)->name, name) == 0)
			assert_true(metric_value(metric_at(i), door, &value));
	assert_true(value >= 0);
	return value;
}

static void
the_process_has_so_many_of_all_doors_and_no_more(void **state)
{
	struct open_txn *all = mem_zalloc(OPEN_TXN_MOST * sizeof(*all));
	struct open_txn more = { 0 };

	(void)state;
	assert_non_null(all);
	for (size_t i = 0; i < OPEN_TXN_MOST; i++)
		assert_int_equal(open_txn_open(&all[i], i % OPEN_TXN_DOORS, LIFE_MS, NULL),
				 STATUS_OK);
	assert_int_equal(open_txn_number(), OPEN_TXN_MOST);
	assert_int_equal(told("frond_open_transactions", OPEN_TXN_ROWS),
			 OPEN_TXN_MOST / OPEN_TXN_DOORS);
	assert_int_equal(open_txn_open(&more, OPEN_TXN_ROWS, LIFE_MS, NULL), STATUS_LIMIT);
	assert_false(more.open);
	assert_null(open_txn_end(&more));
	assert_null(open_txn_end(&all[0])); /* the store's has not begun */
	assert_int_equal(open_txn_open(&more, OPEN_TXN_ROWS, LIFE_MS, NULL), STATUS_OK);
	assert_null(open_txn_end(&more));
	for (size_t i = 0; i < OPEN_TXN_MOST; i++)
		assert_null(open_txn_end(&all[i]));
	assert_int_equal(open_txn_number(), 0);
	assert_int_equal(told("frond_open_transactions", OPEN_TXN_MONGO), 0);
	mem_free(all);
}

static void
one_is_over_when_its_time_has_passed(void **state)
{
	int64_t before = told("frond_open_transactions_expired_total", OPEN_TXN_MONGO);
	struct open_txn o = { 0 };
	struct kv_tx *tx;

	(void)state;
	assert_false(open_txn_is_over(&o, UINT64_MAX)); /* none is open */
	assert_int_equal(open_txn_open(&o, OPEN_TXN_MONGO, LIFE_MS, NULL), STATUS_OK);
	assert_int_equal(open_txn_begin(&o, store), STATUS_OK);
	assert_false(open_txn_is_over(&o, clock_mono_ns()));
	assert_true(open_txn_is_over(&o, clock_mono_ns() + LIFE_MS * CLOCK_NS_PER_MS));
	assert_false(open_txn_is_over(&o, o.until_ns - 1));
	assert_true(open_txn_is_over(&o, o.until_ns));
	tx = open_txn_expire(&o);
	assert_non_null(tx);
	kv_tx_free(tx);
	assert_false(open_txn_is_over(&o, UINT64_MAX));
	assert_int_equal(told("frond_open_transactions_expired_total", OPEN_TXN_MONGO), before + 1);
	assert_int_equal(open_txn_number(), 0);
}

static void
what_it_holds_is_of_the_memory_of_all(void **state)
{
	char value[KV_LIMIT_VALUE_BYTES / 2] = { 0 };
	struct open_txn o = { 0 };
	struct budget_part request;
	struct budget budget;
	size_t empty;

	(void)state;
	budget_init(&budget, BUDGET_BYTES);
	budget_part_init(&request, &budget);
	assert_int_equal(open_txn_open(&o, OPEN_TXN_ROWS, LIFE_MS, &request), STATUS_OK);
	assert_int_equal(open_txn_begin(&o, store), STATUS_OK);
	assert_true(open_txn_count(&o, 0));
	empty = budget_held(&budget);
	assert_true(empty >= OPEN_TXN_FLAT_BYTES);
	assert_int_equal(kv_set(o.tx, STR("key"), str_of(value, sizeof(value))), STATUS_OK);
	open_txn_rest(&o);
	assert_true(open_txn_count(&o, 1000));
	assert_true(budget_held(&budget) >= empty + sizeof(value) + 1000);
	open_txn_use(&o);
	assert_false(open_txn_count(&o, BUDGET_BYTES));
	kv_tx_free(open_txn_end(&o));
	assert_int_equal(budget_held(&budget), 0);
	budget_part_release(&request);
	budget_fini(&budget);
}

static void
a_cluster_keeps_none_for_longer_than_its_versions(void **state)
{
	struct kv_store *shared;

	(void)state;
	assert_int_equal(open_txn_life_ms(store, SECONDS), SECONDS * 1000);
	kv_close(store);
	shared = store_open("shared=1,rate=0,delay=0,watch=0");
	assert_int_equal(open_txn_life_ms(shared, SECONDS), OPEN_TXN_SHARED_MS);
	assert_int_equal(open_txn_life_ms(shared, 1), 1000);
	kv_close(shared);
	store = store_open("rate=0,delay=0,watch=0");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_process_has_so_many_of_all_doors_and_no_more),
		cmocka_unit_test_setup_teardown(one_is_over_when_its_time_has_passed, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_it_holds_is_of_the_memory_of_all, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_cluster_keeps_none_for_longer_than_its_versions,
						setup, teardown),
	};

	kv_faulty_register();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
