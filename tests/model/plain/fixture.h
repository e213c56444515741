/* A store with a collection of each scheme, for tests of collections. */
#ifndef FROND_TESTS_MODEL_PLAIN_FIXTURE_H
#define FROND_TESTS_MODEL_PLAIN_FIXTURE_H

#include "base/arena.h"
#include "base/status.h"
#include "kv/kv.h"

enum {
	ARENA_BYTES = 256 * 1024 * 1024, /* of the fixture's arena */
};

#define PACKED   "db.packed"
#define EXPLODED "db.exploded"

struct fixture {
	char dir[64];
	struct kv_store *store;
	struct arena *arena;
	struct err err;
};

/* For cmocka: `*state` is the fixture. */
int fixture_setup(void **state);
int fixture_teardown(void **state);

#endif
