/*
 * Clients that have registered for it are told of changes of the schema, whichever process has made
 * them. Where nobody else writes to the store, whoever changes the schema tells of it. At a store
 * that others write to, a cluster or a standby's, a chore of each process looks for changes, every
 * NEWS_LOOK_MS and after each statement that this process has committed, and compares the schema
 * with the one of its latest look: so each change is told once, whoever has made it.
 *
 * Threading: a snapshot that is there belongs to the chore; a fiber only puts the first one there.
 */
#ifndef FROND_DOOR_CQL_RUN_NEWS_H
#define FROND_DOOR_CQL_RUN_NEWS_H

#include "door/cql/conn/client.h"

struct chores;

enum {
	NEWS_LOOK_MS = 500, /* between two looks at the stamp of the schemas */
};

void cql_news_chores_add(struct cql_door *door, struct chores *chores);
/* When no thread uses the door any more. */
void cql_news_fini(struct cql_door *door);

/*
 * A client registers: what changes from now on is told. On its fiber. Errors of the store;
 * STATUS_LIMIT for a schema that is too large.
 */
MUST_USE enum status cql_news_begin(struct cql_door *door, struct err *err);

/* This process has committed a change. On a fiber. */
void cql_news_committed(struct cql_door *door, const struct cql_schema_change *change);

#endif
