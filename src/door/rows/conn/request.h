/*
 * One request of a client, while it is served: what it came with, where its answer goes, and how it
 * fails. Lives on the fiber's stack for as long as its frame is served.
 */
#ifndef FROND_DOOR_ROWS_CONN_REQUEST_H
#define FROND_DOOR_ROWS_CONN_REQUEST_H

#include "door/rows/conn/client.h"
#include "door/rows/conn/state.h"
#include "door/rows/wire/frame.h"

struct rows_request {
	struct rows_door *door;
	struct rows_client *client;
	struct rows_header header;
	struct str body;
	struct arena *arena;    /* of the request: cleared behind it */
	struct buf *out;        /* the answer's body is appended */
	size_t out_from;        /* where that begins */
	struct arena_mark mark; /* of the arena, to which an attempt of a transaction goes back */
	const char *state;      /* SQLSTATE of the failure; NULL: by its status */
	int32_t at;             /* the row of the request that it is about; ROWS_NOWHERE */
	struct str unique; /* the unique index that has refused it, in the arena; empty: none */
	struct err err;
	struct str schema, table; /* what it works on, for those who look */
	uint64_t began_ns;
};

/* Records a failure with a state of its own; the value of the expression is STATUS_INVALID. */
#define rows_fail(r, sqlstate, ...)                                                                \
	({                                                                                         \
		(r)->state = (sqlstate);                                                           \
		err_set(&(r)->err, STATUS_INVALID, __VA_ARGS__);                                   \
	})

/* Fails with 42501 unless the person has the right. */
MUST_USE enum status rows_request_allow(struct rows_request *r, enum grant wanted,
					struct str schema, struct str table);

#endif
