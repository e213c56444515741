/* What the files of the catalog share. */
#ifndef FROND_CATALOG_CATALOG_INT_H
#define FROND_CATALOG_CATALOG_INT_H

#include "catalog/catalog.h"
#include "catalog/events.h"
#include "catalog/keys.h"

enum {
	CATALOG_CACHE_SLOTS = 256, /* databases that a cache remembers */
};

/* ---- Names in keys (description.c) ---- */

/* What the keys of all names of the space begin with, in that part of the root. */
void catalog_key_names(struct buf *key, uint64_t part, enum catalog_space space);
void catalog_key_name(struct buf *key, uint64_t part, enum catalog_space space, struct str name);

/*
 * The name at the end of a key, and its space. STATUS_CORRUPT for anything else.
 */
MUST_USE enum status catalog_key_name_next(struct tuple_reader key, struct arena *arena,
					   enum catalog_space *ret_space, struct str *ret);

/* Every name of the space in that part of the root, by snapshot reads. */
MUST_USE enum status catalog_names_scan(struct kv_tx *tx, uint64_t part, enum catalog_space space,
					catalog_take_root *take, void *arg);

/* (P,) encoded: what every key of the database with this number begins with. In the arena. */
MUST_USE enum status catalog_prefix_put(uint64_t number, struct arena *arena, struct str *ret);

/* ---- Descriptions of databases (description.c, cache.c) ---- */

/*
 * Reads that of one database, all but the prefix; its name is borrowed. STATUS_NOT_FOUND. Writing
 * or clearing one leaves it to the caller to touch the metadata version.
 */
MUST_USE enum status catalog_description_get(struct kv_tx *tx, enum catalog_space space,
					     struct str name, struct catalog_db *ret,
					     struct err *err);
/* Says in `err` (unless NULL) that the description of that database is damaged: STATUS_CORRUPT. */
enum status catalog_description_unreadable(struct str name, struct err *err);
MUST_USE enum status catalog_description_set(struct kv_tx *tx, const struct catalog_db *db);
MUST_USE enum status catalog_description_clear(struct kv_tx *tx, const struct catalog_db *db);

/*
 * Deletes the database, whatever state it is in; `until_ms` as for catalog_drop_begin(). Touches
 * the metadata version.
 */
MUST_USE enum status catalog_remove(struct kv_tx *tx, const struct catalog_db *db,
				    uint64_t until_ms);

/* STATUS_UNAVAILABLE if a database of this name is being moved here (move_record.c). */
MUST_USE enum status catalog_move_check_absent(struct kv_tx *tx, enum catalog_space space,
					       struct str name, struct err *err);

/* Counted, with one reference. NULL when out of memory. `from` gives everything but the prefix. */
struct catalog_db *catalog_db_new(const struct catalog_db *from);

/* What the cache's descriptions share; NULL: nothing. */
struct catalog_tallies *catalog_cache_tallies(const struct catalog_cache *cache);

/* The description that is valid at this metadata version, with a new reference; NULL if unknown. */
struct catalog_db *catalog_cache_find(struct catalog_cache *cache,
				      const uint8_t version[KV_VERSIONSTAMP_TX_BYTES],
				      enum catalog_space space, struct str name);

/* Remembers a description read at that metadata version, if the cache is still there. */
void catalog_cache_add(struct catalog_cache *cache, const uint8_t version[KV_VERSIONSTAMP_TX_BYTES],
		       struct catalog_db *db);

/* ---- Deleted databases (drop.c) ---- */

/*
 * Leaves word that the keys of the database with this number are to be cleared; those that its kind
 * keeps only after `until_ms`, with 0 at once.
 */
MUST_USE enum status catalog_drop_begin(struct kv_tx *tx, const struct catalog_kind *kind,
					uint64_t number, uint64_t until_ms);

/*
 * One transaction of catalog_drop_sweep(), for who has the store to himself and need not leave
 * others their turn: CATALOG_DROP_ALONE_KEYS at once.
 */
enum {
	CATALOG_DROP_ALONE_KEYS = 50000,
};

MUST_USE enum status catalog_drop_clear(struct catalog_sweeping *s, bool *ret_more,
					struct err *err);

/* ---- The store, and what happens to its databases (incarnation.c, events.c) ---- */

MUST_USE enum status catalog_store_incarnation_set(struct kv_tx *tx, uint8_t incarnation);

/* Notes that the database has been created or deleted by this transaction, and wakes feeds. */
MUST_USE enum status catalog_event_put(struct kv_tx *tx, const struct catalog_kind *kind,
				       struct str name, enum catalog_event_kind event,
				       uint8_t incarnation);

#endif
