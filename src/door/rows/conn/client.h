/*
 * A connection's state. A client belongs to its fiber; what others may read or change is its entry
 * in the list of connections (serve/clients.h).
 */
#ifndef FROND_DOOR_ROWS_CONN_CLIENT_H
#define FROND_DOOR_ROWS_CONN_CLIENT_H

#include "access/visitor.h"
#include "base/buf.h"
#include "door/rows/conn/rights.h"
#include "door/rows/conn/rows_int.h"

struct rows_txn; /* data/txn.h */

struct rows_client {
	struct clients_entry entry; /* first */
	struct rows_door *door;
	struct net_stream *stream;
	bool ends;        /* after what was answered so far */
	bool greeted;     /* HELLO was right */
	unsigned version; /* of the protocol, which it speaks from then on */
	size_t skips;     /* bytes of a body that was refused, which are still to come */
	struct buf in;    /* one body */
	struct buf out;   /* answers: frames */

	struct rows_rights rights; /* in the arena of the entry's person */

	struct rows_txn *txn; /* NULL: none is open */
	bool txn_refused;     /* one could not begin, and is still to be ended */
};

/* On its fiber. NULL when out of memory. Adds it to the list. */
struct rows_client *rows_client_new(struct rows_door *door, struct net_stream *stream);
/* Its transaction has ended. */
void rows_client_free(struct rows_client *c);

/* Sends the frames of `out`, and empties it. STATUS_CANCELLED: the connection is lost. */
MUST_USE enum status rows_client_send(struct rows_client *c);

/* What the door makes of the people on its connections. */
struct visit_rules rows_visit_rules(const struct rows_config *config);

#endif
