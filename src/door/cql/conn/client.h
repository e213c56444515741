/*
 * A connection's state. A client belongs to its fiber; what others may read or change is its entry
 * in the list of connections (serve/clients.h), and the events that it has registered for, which
 * belong to the entry's lock.
 */
#ifndef FROND_DOOR_CQL_CONN_CLIENT_H
#define FROND_DOOR_CQL_CONN_CLIENT_H

#include "access/visitor.h"
#include "base/buf.h"
#include "door/cql/conn/cql_int.h"
#include "door/cql/people/grants.h"
#include "door/cql/wire/compress.h"
#include "serve/clients.h"

/* What others tell a client (serve/clients.h). */
enum cql_client_signal {
	CQL_CLIENT_EVENTS = 1 << 0, /* there are events to send */
	CQL_CLIENT_LOST = 1 << 1,   /* events were dropped, since it does not read: it ends */
};

enum cql_event_kind {
	CQL_EVENT_TOPOLOGY = 1 << 0,
	CQL_EVENT_STATUS = 1 << 1,
	CQL_EVENT_SCHEMA = 1 << 2,
};

struct cql_flight;

/* Statements of a connection that are under way together (door/cql/flight.h). */
struct cql_flights {
	size_t count;                        /* that have begun and whose answers were not sent */
	size_t waiting_count;                /* of these: that wait to be the only one */
	struct cql_flight *only;             /* that has waited so, and goes on */
	struct cql_flight *asks;             /* the same one, while it waits for memory */
	struct cql_flight *done, **done_end; /* to be answered, the oldest first */
	struct cql_flight *waiting, **waiting_end; /* to be the only one, likewise */
	/* Of groups: that their fiber has left, and which are to be served anew, likewise. */
	struct cql_flight *left, **left_end;
	struct cql_flight *spare; /* to be used again */
	size_t spare_count;
	bool rests;          /* the connection's fiber waits for the client and for them */
	struct event *ended; /* that fiber waits for them alone: set when one is done */
};

struct cql_client {
	struct clients_entry entry; /* first; its name is the driver's */
	struct cql_door *door;
	struct net_stream *stream;
	bool ends; /* after what was answered so far */

	/* The protocol. */
	unsigned version; /* of the first frame; 0: none has come */
	bool started;     /* STARTUP was right */
	bool segmented;   /* version 5: frames come and go in segments */
	enum cql_compressor compressor;
	size_t skips;      /* bytes of a frame that was refused, which are still to come */
	struct buf in;     /* one frame's body, or frames of segments that were not served */
	size_t at;         /* of `in`: the first of these */
	struct buf raw;    /* a segment's payload, or a body, as it came */
	struct buf plain;  /* a body that came compressed, as it was before */
	struct buf out;    /* answers: frames */
	struct buf packed; /* segments that are sent */

	struct cql_flights flights;
	unsigned beside_lately; /* so many further statements have fibers of their own */

	/*
	 * In the arena of the entry's person, who changes only while none of its statements is
	 * under way beside others.
	 */
	struct grants grants;

	char keyspace[CQL_KEYSPACE_BYTES + 1]; /* of USE; empty: none */

	/* The entry's lock. */
	unsigned registered;            /* enum cql_event_kind */
	struct buf events;              /* frames */
	struct budget_part events_part; /* that counts them, also those that are being sent */
};

/* On its fiber. NULL when out of memory. Adds it to the list. */
struct cql_client *cql_client_new(struct cql_door *door, struct net_stream *stream);
void cql_client_free(struct cql_client *c);

/* ---- What it does ---- */

/* The address at which it has reached this process: 4 or 16 bytes. */
void cql_client_address(const struct cql_client *c, uint8_t ret[static 16], size_t *ret_len);

/* The address that the client has itself: 4 or 16 bytes. */
void cql_client_peer(const struct cql_client *c, uint8_t ret[static 16], size_t *ret_len);

/* ---- Sending ---- */

/* Sends the frames of `out`, and empties it. STATUS_CANCELLED: the connection is lost. */
MUST_USE enum status cql_client_send(struct cql_client *c, struct buf *out);
/* Sends frames that somebody else has, and that were counted (ops_moved()). Fails likewise. */
MUST_USE enum status cql_client_write(struct cql_client *c, struct str frames);
/* Sends the events that have come. STATUS_CANCELLED likewise, and where some were lost. */
MUST_USE enum status cql_client_send_events(struct cql_client *c);

/* ---- Events ---- */

void cql_client_register(struct cql_client *c, unsigned kinds);

/* A change of the schema. `object` is empty for a keyspace. */
struct cql_schema_change {
	const char *change; /* "CREATED", "UPDATED", "DROPPED" */
	const char *target; /* "KEYSPACE", "TABLE", "TYPE" */
	struct str keyspace;
	struct str object;
};

/* Appends it as RESULT and EVENT have it. */
void cql_schema_change_put(struct buf *out, const struct cql_schema_change *change);

/* Any thread: sends it to all clients that have registered for it. */
void cql_tell_schema_change(struct cql_door *door, const struct cql_schema_change *change);

/* Any thread: ends all clients that have registered for it, since they cannot be told. */
void cql_end_registered(struct cql_door *door);

/* ---- Who it is ---- */

/* What the door makes of the people on its connections. */
struct visit_rules cql_visit_rules(const struct cql_config *config);

/* What a scan of its asks the store for at a time (net_memory_stretch_bytes()). */
size_t cql_client_stretch_bytes(const struct cql_client *c);

#endif
