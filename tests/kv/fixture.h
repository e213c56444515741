/*
 * What the tests of the key-value store share: a store of their own, and calls that fail the test
 * instead of returning a status. FROND_TEST_STORE names another store to run the contract against;
 * keys below "t/" in it are cleared. With FROND_TEST_KV_VIEWS what begin() begins has read the
 * metadata version, as requests do first.
 */
#ifndef FROND_TESTS_KV_FIXTURE_H
#define FROND_TESTS_KV_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kv/kv.h"
#include "kv/shape.h"
#include "store.h"

struct fixture {
	struct kv_store *store;
	char dir[256]; /* empty unless the store is a directory that this made */
	char url[300];
};

enum {
	/* A subspace in which an entity has six elements, as the bodies of documents have. */
	FIXTURE_SPACE_OF_SIX = 4,
	/* For pairs in front of RocksDB (kv/embedded/recent.h): so few that some are pushed out. */
	FIXTURE_RECENT_BYTES = 8 * 1024,
	/* What the store of fixture_setup() gathers for a table, whatever memory there is. */
	FIXTURE_WRITE_BUFFER_BYTES = 16 * 1024 * 1024,
	/* For gaps (kv/embedded/gaps.h): every search for a first pair is remembered. */
	FIXTURE_SEARCH_NS = 1,
};

/* The shape that fixture_open() gives a store: that of frond's stores. */
extern const struct kv_shape fixture_shape;

/* A new, empty store; a cmocka setup and teardown. */
int fixture_setup(void **state);
int fixture_teardown(void **state);

/* The store's directory alone; for tests that open it themselves. */
void fixture_make_dir(struct fixture *f);
void fixture_remove_dir(struct fixture *f);
void fixture_empty_dir(const struct fixture *f);
struct kv_store *fixture_open(const char *url, struct kv_options options);

/* A cmocka setup and teardown of that directory, and its URL. */
int fixture_dir_setup(void **state);
int fixture_dir_teardown(void **state);
const char *url_of(void **state);

/* Fails the test if the store can be opened. */
enum status open_status(const char *url, struct kv_options options, struct err *err);

struct kv_store *store_of(void **state);

#define assert_ok(expr) assert_int_equal((expr), STATUS_OK)

struct kv_tx *begin(struct kv_store *store);
struct kv_tx *begin_read(struct kv_store *store);

/* Commits and frees. */
void commit(struct kv_tx *tx);
enum status try_commit(struct kv_tx *tx);

void put(struct kv_tx *tx, const char *key, const char *value);
void put_now(struct kv_store *store, const char *key, const char *value);

/* `value` NULL: absent. */
void assert_get(struct kv_tx *tx, const char *key, const char *value);
void assert_stored(struct kv_store *store, const char *key, const char *value);
enum status get_status(struct kv_tx *tx, struct str key);

/* The range's pairs as "key=value key=value", with "+" at the end when there is more. */
void assert_range(struct kv_tx *tx, const char *begin_key, const char *end_key,
		  const struct kv_range_options *options, const char *expected);

/*
 * From here to the end, this thread waits as a fiber does whose loop serves nobody else: what it
 * commits may be written by itself.
 */
void be_alone_begin(void);
void be_alone_end(void);

/*
 * Runs `run` on `count` fibers of one loop, as requests of clients run, each with its element of
 * `args`. Returns when the last of them has.
 */
void run_on_fibers(unsigned count, void (*run)(void *arg), void *args, size_t arg_bytes);

/* Waits until all these fibers are here; each counts its own meetings in `meeting`, from 0. */
void meet_fibers(unsigned *meeting);

#endif
