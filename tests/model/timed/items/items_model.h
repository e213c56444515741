/*
 * What tests of items share: a store with two databases of items, transactions on them, random
 * changes with a model of arrays, and the comparison of an item with the model in all ways to read
 * it.
 */
#ifndef FROND_TESTS_MODEL_TIMED_ITEMS_ITEMS_MODEL_H
#define FROND_TESTS_MODEL_TIMED_ITEMS_ITEMS_MODEL_H

#include "base/rand.h"
#include "model/timed/items/items.h"

enum {
	ITEMS_ARENA_BYTES = 256 * 1024 * 1024,
	ITEMS_START_MS = 1000 * 1000,
	SPACE_ROWS = 33, /* as they are stored */
	SPACE_EXPIRY = 34,
	SPACE_BODY = 37,
	SPACE_GONE = 38,
	ITEMS_SWEEPS = 1000,
	SPACE_UNDO = 40,
	SPACE_HELD = 47,
	SPACE_WEIGH = 48,
};

struct items {
	char dir[64];
	struct kv_store *store;
	struct arena *arena;
	struct timed_clock clock;
	uint64_t now_ms;
	/* When the model last let something expire. A step back in time may bring that to life
	 * again in the store, but not in the model. */
	uint64_t expired_ms;
	struct kv_tx_stats cost; /* of the last step */
	struct timed_maps *maps;
	unsigned steps;  /* one in three goes without the maps */
	unsigned packed; /* collections in headers that were compared with the model */
	struct err err;
};

/* A transaction of its own, which starts over when it has to. */
typedef enum status items_step(struct timed *t, struct arena *arena, void *arg);

enum {
	ITEMS_KEYS = 5,
	ITEMS_NAMES = 600,
	ITEMS_ENTRIES = 3000,
	ITEMS_POPPED = 60,
};

struct items_model_entry {
	unsigned name;       /* of a member; of a list's element: what it is */
	double score;        /* TIMED_ZSET */
	unsigned value;      /* TIMED_HASH */
	uint64_t expires_ms; /* TIMED_HASH; 0: with the item */
};

struct items_model_item {
	enum timed_type type;
	uint64_t expires_ms;
	struct items_model_entry
		*entries; /* members in the order of their numbers; a list in its own */
	size_t count;
	char *bytes; /* TIMED_VALUE */
	size_t len;
};

struct items_model {
	struct items_model_item items[ITEMS_KEYS];
};

struct items_compare {
	struct items *f;
	const struct items_model_item *m;
	unsigned key;
	uint64_t random;
	uint64_t at_ms; /* 0: the present */
};

struct items_change {
	struct items_model *model; /* NULL: the store's turn */
	unsigned key, other;
	unsigned kind;
	uint64_t seed;
	uint64_t now_ms;
	uint64_t now_us; /* of the transaction */
	/* Names of members that were popped: those that are cut have an order of their own. */
	unsigned popped[ITEMS_POPPED];
	size_t popped_count;
};

/* setup and teardown of cmocka */
int items_setup(void **state);
int items_teardown(void **state);
enum status items_try(struct items *f, const char *db, items_step *run, void *arg);
void items_must(struct items *f, items_step *run, void *arg);
/*
 * A transaction that has done its step, and that items_commit() ends: others may come in between.
 * Without faults, whose outcomes would not be known. The arena is not cleared.
 */
struct kv_tx *items_open(struct items *f, bool has_maps, items_step *run, void *arg);
enum status items_commit(struct kv_tx *tx);
void items_verify(struct items *f);
void items_sweep(struct items *f);
size_t items_pairs(struct items *f, uint64_t space);
void items_model_clear(struct items_model_item *m);
void items_model_copy(struct items_model_item *to, const struct items_model_item *m);
enum status items_compare(struct timed *t, struct arena *arena, void *arg);
struct items_change items_change(struct items *f, struct items_model *model, struct rand_seq *r);

#endif
