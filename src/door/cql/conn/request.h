/*
 * One request of a client, while it is served: what it came with, where its answer goes, and how it
 * fails. Lives until it is answered, on the fiber's stack or as one of those that are under way
 * together (door/cql/flight.h).
 */
#ifndef FROND_DOOR_CQL_CONN_REQUEST_H
#define FROND_DOOR_CQL_CONN_REQUEST_H

#include "cql/cql.h"
#include "door/cql/conn/client.h"
#include "door/cql/wire/error.h"
#include "door/cql/wire/frame.h"

struct cql_flight;
struct joint;

struct cql_request {
	struct cql_door *door;
	struct cql_client *client;
	struct frame_header header;
	struct arena *arena;       /* of the request: cleared behind it */
	struct buf *out;           /* the answer's body is appended */
	enum frame_opcode answer;  /* of it; FRAME_RESULT at first */
	enum cql_class class;      /* CQL_CLASS_OTHER at first */
	struct ops_op *op;         /* its operation */
	struct cql_flight *flight; /* that it is of; NULL: nothing of its client runs beside it */
	struct joint *joint;       /* that it may read in (run/joint.h); NULL: there is none */
	bool again;                /* it is left, and is to be served again by itself */
	bool admitted;             /* the limits of its client allow it, and have counted it */
	bool beside;               /* others of its connection are under way */
	bool writes;               /* what it has begun may have been done when it fails */
	bool answers_failure;      /* it has failed, and a row tells so (run/status_row.h) */
	bool has_timestamp;        /* the client has sent one beside the statement */
	int64_t timestamp;         /* in microseconds, if it has */
	struct cql q;              /* how it fails: its code (0: by the status) and `err` */
	struct err err;            /* of `q` */
	struct error_more more;    /* what stands behind the text of an error */
	/* What it works on, for those who look; borrowed from its text. */
	struct str keyspace, table;
	uint64_t began_ns;
	struct trace *trace; /* what it does, for its client; NULL: nobody asks */
};

/* Records a failure with a code of its own; the value of the expression is STATUS_INVALID. */
#define request_fail(r, number, ...)                                                               \
	({                                                                                         \
		(r)->q.code = (number);                                                            \
		err_set(&(r)->err, STATUS_INVALID, __VA_ARGS__);                                   \
	})

/*
 * True if the request may wait for memory with nothing of it held, and be run again: it has written
 * nothing, and no statement is under way of which its connection's fiber is to send the answer.
 */
bool request_may_wait(const struct cql_request *r);

/*
 * While a request gathers an answer: true if it should give that back, and wait for memory first
 * (net_memory_should_ask()). It fails with STATUS_LIMIT then.
 */
bool request_gives_way(const struct cql_request *r);

/* Fails with the code for somebody who may not do that, unless he may. */
MUST_USE enum status request_allow(struct cql_request *r, enum grant wanted, struct str keyspace,
				   struct str table);

/* The same for permissions on anything: all of `wanted`. */
MUST_USE enum status request_allow_on(struct cql_request *r, unsigned wanted,
				      const struct grant_resource *on);

#endif
