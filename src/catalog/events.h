/*
 * What happens to databases. A store keeps one event for each name that a database has, or had:
 * that it was created, or deleted, in the same transaction. That it was updated is not written
 * down: it is the newest change of the database. Reading events therefore reads one key of each
 * database, and a write of a document costs nothing for them, no key and no conflict.
 *
 *     (ROOT, 5, name)         → format, kind of event, Incarnation, Versionstamp; CouchDB's names
 *     (ROOT, 5, space, name)  → the same in any other name space
 *     (ROOT, 5)               → the versionstamp of the newest of them: what feeds watch
 *
 * Threading: that of the transaction.
 */
#ifndef FROND_CATALOG_EVENTS_H
#define FROND_CATALOG_EVENTS_H

#include "base/arena.h"
#include "catalog/kind.h"
#include "catalog/seq.h"
#include "kv/kv.h"

enum catalog_event_kind {
	CATALOG_EVENT_CREATED = 1, /* stored: never renumber */
	CATALOG_EVENT_DELETED = 2,
	CATALOG_EVENT_UPDATED = 3, /* never stored */
};

struct catalog_event {
	struct catalog_seq seq; /* in one order over all databases; UPDATED: the change's own */
	struct str name;
	enum catalog_event_kind kind;
};

struct catalog_view_db {
	struct str name;
	struct str prefix;
	uint64_t number;
	const struct catalog_kind *kind;
};

/* Which databases of a name space there are and were. True as long as the metadata version is this
 * one. */
struct catalog_view {
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES];
	struct catalog_view_db *dbs;
	size_t dbs_count;
	struct catalog_event *events; /* CREATED and DELETED */
	size_t events_count;
};

/* In the arena, two pairs a database; STATUS_LIMIT when it is full. */
MUST_USE enum status catalog_view_read(struct kv_tx *tx, enum catalog_space space,
				       struct arena *arena, struct catalog_view *ret,
				       struct err *err);

/* All events after `since` as the transaction sees them, oldest first. */
MUST_USE enum status catalog_events_read(struct kv_tx *tx, const struct catalog_view *view,
					 const struct catalog_seq *since, struct arena *arena,
					 struct catalog_event **ret, size_t *ret_count);

/* Watches: for a database that is created or deleted; for an update of one of the view's. */
MUST_USE enum status catalog_watch(struct kv_tx *tx, struct kv_future **ret);
MUST_USE enum status catalog_watch_db(struct kv_tx *tx, const struct catalog_view_db *db,
				      struct kv_future **ret);

#endif
