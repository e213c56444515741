/*
 * Which store a test runs against.
 *
 * FROND_TEST_FAULTS has settings of the faulty engine (kv/faulty/faulty.h) but for the seed; when
 * it is there, every store made here is seen through them. FROND_TEST_SEED repeats a run; without
 * it FROND_TEST_DEFAULT_SEED counts, by which variants differ, and FROND_TEST_TURN, by which runs
 * of all tests do, and without them chance.
 *
 * FROND_TEST_ON=fdb: stores are a FoundationDB cluster, emptied for each test. FROND_TEST_FDB names
 * its cluster file, or several with colons between them, of which a program takes the first that no
 * other has, or waits for one; without a name the program is skipped.
 */
#ifndef FROND_TESTS_STORE_H
#define FROND_TESTS_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Writes the URL of a store in the directory `path`. Each call's faults have a seed of their own.
 */
void test_store_url(const char *path, char *ret, size_t size);

/* True if stores fail now and then: a test that has to know each outcome has no place there. */
bool test_store_fails(void);

/*
 * In the body of a transaction: the call has to end with `want`. In a store that fails now and then
 * it may also end as reads do that fail, and then the body ends with that, for another attempt.
 */
#define TRY_WANT(want, call)                                                                       \
	do {                                                                                       \
		enum status try_status_ = (call);                                                  \
		if (try_status_ == STATUS_TX_TOO_OLD && test_store_fails())                        \
			return try_status_;                                                        \
		assert_int_equal(try_status_, want);                                               \
	} while (0)

/* True on a cluster: what a test knows of the embedded engine alone is not so there. */
bool test_store_is_cluster(void);

/*
 * How many rounds of what is drawn to do: `quick` of them, or a third where each takes longer: with
 * faults, on a cluster, under a sanitizer. What is drawn differs from run to run.
 */
int test_rounds(int quick);

/* The cluster file, or that and "?prefix=…"; the cluster is this program's until it ends. */
const char *test_store_cluster(void);

/* False if FROND_TEST_SCHEME is "exploded": new databases are to keep documents so. */
bool test_scheme_is_packed(void);

/*
 * How many of a program's cases to run: on a cluster not the last `embedded`, which hold for the
 * embedded engine alone. Names those that it leaves out.
 */
struct CMUnitTest;
size_t test_store_cases(const struct CMUnitTest *tests, size_t count, size_t embedded);

/*
 * From now on an abort() of the program first prints what the assertions of cmocka have said.
 * cmocka keeps that until the test's teardown has run, and after a failed test the teardown often
 * aborts: a store asserts that all of its transactions have been freed when it is closed.
 */
void test_show_failures(void);

/* Makes a directory for one test, in TMPDIR if that is set, and writes its path. */
void test_make_dir(const char *name, char *ret, size_t size);

/* Removes the directory with all that is in it. What cannot be removed stays. */
void test_remove_tree(const char *path);

/* The same at every call. */
uint64_t test_seed(void);

#endif
