/*
 * Prepared statements, shared by the connections of a process. A statement's id is made of its
 * keyspace and text alone: it is the same in every process, and after a restart, so that a client
 * who prepares it again goes on with the id that it has.
 *
 * Threading: any thread. A struct prepared never changes, and is counted.
 */
#ifndef FROND_DOOR_CQL_RUN_PREPARED_H
#define FROND_DOOR_CQL_RUN_PREPARED_H

#include <stdatomic.h>

#include "door/cql/run/compiled.h"

enum {
	PREPARED_ID_BYTES = 16,
};

struct prepared {
	atomic_uint refs;
	struct arena *arena; /* of all below */
	uint8_t id[PREPARED_ID_BYTES];
	struct str keyspace; /* of the client that prepared it */
	struct str text;
	const struct cql_statement *statement;
	/* The numbers of the markers that are the partition key; none where not all of it is. */
	const unsigned *partition;
	size_t partition_count;
	/* It is a SELECT of one row, by its whole key: joint.h. */
	bool reads_row;
	uint64_t hash; /* of the columns of its table (schema_table_hash()); 0: it has none */
	/* What it was compiled to for the table as it was then; NULL: it is compiled each time. */
	const struct compiled *compiled;
};

void prepared_init(struct cql_door *door);

/*
 * Parses a statement into an object of its own, with one reference, which the caller owns. Fails as
 * cql_parse() does.
 */
MUST_USE enum status prepared_new(struct cql_request *r, struct str keyspace, struct str text,
				  struct prepared **ret);
/* Copies the markers of its partition key into its arena. STATUS_LIMIT when that is full. */
MUST_USE enum status prepared_set_partition(struct prepared *p, const unsigned *markers,
					    size_t count);
/*
 * Keeps it for the clients that execute it, in place of an older one with the same id. Nothing in
 * it changes from then on. STATUS_NOMEM when memory is short.
 */
MUST_USE enum status prepared_keep(struct cql_door *door, struct prepared *p);
/* A new reference. NULL: there is none of that id. */
struct prepared *prepared_find(struct cql_door *door, struct str id);
/*
 * For a transaction in which the statement runs, whose table is open: fails if clients know another
 * table by its id (`id`, the request's), and have to prepare it again. Where its table is the same,
 * but what it was compiled to holds no more, it is compiled anew for those who execute it next.
 */
MUST_USE enum status prepared_check(struct prepared *p, struct str id, const struct run *run);
void prepared_unref(struct prepared *p); /* NULL is fine */

#endif
