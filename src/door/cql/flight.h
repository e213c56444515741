/*
 * Statements of a connection that are under way together. While a statement that writes waits for
 * its commit, the connection's fiber serves the next frames that are there already; so what a
 * client has sent without waiting is committed in few groups, and each is answered when the group
 * of the oldest one is. Statements of one connection that are under way together may take effect in
 * any order, as in Cassandra: a client that minds waits for the answer.
 *
 * Only what is small and is there whole overlaps (cql_input_has_next()): a fiber that waits for its
 * client, or for memory, has nothing under way.
 *
 * Threading: on the connection's fiber.
 */
#ifndef FROND_DOOR_CQL_FLIGHT_H
#define FROND_DOOR_CQL_FLIGHT_H

#include "door/cql/conn/request.h"
#include "door/cql/input.h"

/* One of them: its request, with memory of its own. */
struct cql_flight {
	struct cql_flight *next;
	struct cql_request r;
	struct arena *arena;
	struct buf body; /* as it came */
	struct buf out;
	size_t from; /* of `out`: where the answer begins */
};

/* With a copy of the frame. NULL when memory is short: the frame is served alone. */
struct cql_flight *flight_new(struct cql_client *c, const struct input_frame *f);
void flight_free(struct cql_flight *fl);

/* Its commit is under way: it becomes the newest one of the connection's. */
void flight_push(struct cql_client *c, struct cql_flight *fl);
/* The oldest one, which is the caller's; NULL: there is none. */
struct cql_flight *flight_pop(struct cql_client *c);

#endif
