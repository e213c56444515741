/*
 * Tells clients that have registered for it of changes of the schema, whichever process has made
 * them.
 *
 * Where this process alone writes to the store, the statement that changes the schema tells of it.
 * Where other processes write, too (a cluster, or a standby's store), a background task of each
 * process compares the schema with the one it saw last: every NEWS_LOOK_MS, and after each change
 * that this process has committed. So each change is told once.
 *
 * Threading: the first look is made by the fiber of the first client that registers; from then on
 * only the background task uses what was seen.
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
