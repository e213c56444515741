/*
 * What a schema was at a moment: the name of each keyspace, type and table with a hash of what
 * clients know of it, so that two moments can be compared. A process learns in this way what other
 * processes at its store have changed.
 *
 * Threading: reading blocks a plain thread, or waits on a fiber; a snapshot never changes.
 */
#ifndef FROND_DOOR_CQL_SCHEMA_SNAPSHOT_H
#define FROND_DOOR_CQL_SCHEMA_SNAPSHOT_H

#include "door/cql/schema/table.h"

enum {
	SCHEMA_SNAPSHOT_BYTES = 64 * 1024 * 1024, /* of the schema while one is made of it */
};

/* In the order in which clients are told of new ones. */
enum schema_target {
	SCHEMA_KEYSPACE,
	SCHEMA_TYPE,
	SCHEMA_TABLE,
};

struct schema_entry {
	enum schema_target target;
	struct str keyspace;
	struct str object; /* empty: the keyspace itself */
	uint64_t hash;     /* means nothing outside of the process */
};

struct schema_snapshot {
	uint8_t stamp[TABLE_STAMP_BYTES];
	const struct schema_entry *entries; /* by keyspace, target and object */
	size_t count;
	struct arena *arena; /* private */
};

/* STATUS_LIMIT for a schema that is too large; errors of the store. */
MUST_USE enum status schema_snapshot_read(struct kv_store *store, struct schema_snapshot **ret,
					  struct err *err);
void schema_snapshot_free(struct schema_snapshot *s); /* NULL is fine */

enum schema_change {
	SCHEMA_CREATED,
	SCHEMA_UPDATED,
	SCHEMA_DROPPED,
};

/* Called for each difference, in the order of the entries. What a keyspace had goes with it. */
typedef void schema_differs(void *arg, enum schema_change change, const struct schema_entry *entry);

void schema_snapshot_compare(const struct schema_snapshot *before,
			     const struct schema_snapshot *after, schema_differs *differs,
			     void *arg);

#endif
