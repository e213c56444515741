/*
 * Databases of Redis's door, whose rows are items (item.h): their kind, pages of their keys, how
 * many items there are, making and emptying one. Nothing here commits. Threading: that of the
 * transaction.
 */
#ifndef FROND_MODEL_TIMED_ITEMS_ITEMS_H
#define FROND_MODEL_TIMED_ITEMS_ITEMS_H

#include "model/timed/items/group.h"

enum {
	TIMED_REDIS_DATABASES = 16, /* "0" to "15"; and TIMED_FUNCTIONS */
};

/* Registers the kind with the catalog, and with what sweeps; again is fine. */
void timed_items_register(void);

extern const struct catalog_kind timed_redis_kind;

/* The database with the libraries of functions, which no client can select. */
#define TIMED_FUNCTIONS "functions"

/*
 * timed_item_ask() for several items at once, at least one and at most KV_MANY, each of which
 * timed_item_name() has made. Between both, nothing else is done with them.
 */
MUST_USE enum status timed_item_name(struct timed *t, struct str key, struct arena *arena,
				     struct timed_item *ret);
void timed_items_ask(struct timed *t, struct timed_item *const *items, size_t count);

/* A page of items: headers alone, of what is there and has not expired. */
struct timed_items {
	struct timed_item *items; /* their keys are in the arena */
	size_t count;
	uint64_t next; /* where the next page begins; 0: this is the last one */
};

/*
 * A page in the order of the hashes of the keys, as timed_members_page() has them. Each page may be
 * of a transaction of its own. RANDOMKEY: begin at a random position below 2^16 + 1.
 */
MUST_USE enum status timed_items_page(struct timed *t, uint64_t from, size_t least,
				      struct arena *arena, struct timed_items *ret);

/* How many items are stored; those that have expired count until they are removed. */
MUST_USE enum status timed_items_count(struct timed *t, uint64_t *ret);

/*
 * Creates a database of Redis's door, for items; STATUS_EXISTS. Open it with
 * catalog_open(tx, cache, CATALOG_SPACE_REDIS, name).
 */
MUST_USE enum status timed_items_create(struct kv_tx *tx, struct str name, struct err *err);

/*
 * Empties the database: another one, without a key and without a past, has its name. It keeps a
 * history if this one did. `t` is of no use afterwards.
 */
MUST_USE enum status timed_items_flush(struct timed *t);

#endif
