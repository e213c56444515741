/* A store with items, for probes (probe.h) of what is done with them. Its clock is the test's. */
#ifndef FROND_TESTS_ITEMS_WORLD_H
#define FROND_TESTS_ITEMS_WORLD_H

#include "model/timed/items/items.h"
#include "probe.h"

enum {
	START_MS = 1000 * 1000,     /* when the world is filled */
	LATER_MS = START_MS + 5000, /* when operations run */
};

struct world {
	char dir[64];
	struct kv_store *store;
	struct arena *arena;
	struct timed_clock clock;
	uint64_t now_ms;
};

typedef enum status world_fill(struct timed *t, struct world *w);

/* Makes a world, and fills it, each in a transaction. For a test's setup: fails the test, or 0. */
int world_open(world_fill *const *fills, size_t count, struct world **ret);
void world_close(struct world *w);

typedef enum status world_body(struct probe *p, struct timed *t, struct timed_item *item);

/* Runs an operation on the item of that key, which may be NULL, in the transaction of a probe. */
enum status world_item(struct probe *p, const char *key, world_body *body);

#endif
