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

	/* Who it is. */
	struct visitor who;
	struct rows_rights rights; /* in its arena */

	struct rows_txn *txn; /* NULL: none is open */
	bool txn_refused;     /* one could not begin, and is still to be ended */
};

/* On its fiber. NULL when out of memory. Adds it to the list. */
struct rows_client *rows_client_new(struct rows_door *door, struct net_stream *stream);
/* Its transaction has ended. */
void rows_client_free(struct rows_client *c);

/* Sends the frames of `out`, and empties it. STATUS_CANCELLED: the connection is lost. */
MUST_USE enum status rows_client_send(struct rows_client *c);

/* ---- Who it is ---- */

/* A connection begins: everybody is in charge where nobody else is. */
void rows_client_become_nobody(struct rows_client *c);

/* Logs in. Fails as auth_login() does. */
MUST_USE enum status rows_client_login(struct rows_client *c, struct str name, struct str password,
				       struct err *err);

/* Follows changes of people (access/follow.h). Somebody who has gone is nobody from then on. */
void rows_client_check_roles(struct rows_client *c);

/* The peer, for audit lines. */
struct audit_by rows_client_audit_by(const struct rows_client *c);

#endif
