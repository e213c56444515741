/*
 * A connection's state. A client belongs to its fiber; what others may read or change is its entry
 * in the list of connections (serve/clients.h).
 */
#ifndef FROND_DOOR_MONGO_TXN_CLIENT_H
#define FROND_DOOR_MONGO_TXN_CLIENT_H

#include "access/auth_scram.h"
#include "access/visitor.h"
#include "base/buf.h"
#include "door/mongo/txn/mongo_int.h"
#include "door/mongo/txn/rights.h"
#include "door/mongo/wire/compress.h"
#include "serve/clients.h"
#include "serve/wanted.h"

enum {
	CLIENT_APP_BYTES = 128, /* of the name that an application gives itself */
};

/* A login under way: saslStart and saslContinue. */
struct mongo_login {
	struct auth_scram *scram; /* NULL: none */
	bool skips_empty;         /* the client wants no empty message at the end */
	bool confirmed;           /* the password was right; an empty message is still to come */
	int32_t id;               /* conversationId */
};

struct mongo_client {
	struct clients_entry entry; /* first; its name is the application's */
	struct mongo *mongo;
	struct net_stream *stream;
	bool ends;      /* after what was answered so far */
	bool greeted;   /* it has sent a hello with its metadata */
	struct buf in;  /* one message */
	struct buf raw; /* one that came compressed, as it was before */
	struct buf out;
	bool compressors[COMPRESSORS]; /* that both sides know */

	struct rights rights; /* in the arena of the entry's person */
	struct mongo_login login;
};

/* On its fiber. NULL when out of memory. Adds it to the list. */
struct mongo_client *mongo_client_new(struct mongo *m, struct net_stream *stream);
void mongo_client_free(struct mongo_client *c);

/* ---- What it does ---- */

/*
 * Between two parts of a command (serve/wanted.h), and between two looks at what others do, when
 * its person may have changed, too (serve/visit.h).
 */
MUST_USE static inline enum status
mongo_client_check(const struct mongo_client *c)
{
	return wanted_check(&c->entry.op);
}

MUST_USE static inline enum status
mongo_client_check_waiting(struct mongo_client *c)
{
	return visit_check_waiting(&c->entry);
}

/*
 * Waits for a turn to last, before the client is kept waiting for what may take as long as it
 * likes. STATUS_LIMIT, explained: there is no room; STATUS_CANCELLED.
 */
MUST_USE enum status mongo_client_last(struct mongo_client *c, struct err *err);

/*
 * Waits until the deadline. True: that has come; false: the client has sent something, has left, or
 * the operation was ended, or its person may not wait any more.
 */
bool mongo_client_wait(struct mongo_client *c, uint64_t deadline_ns);

/* ---- Who it is ---- */

/* Forgets a login under way. */
void mongo_client_forget_login(struct mongo_client *c);

/* What the door makes of the people on its connections. */
struct visit_rules mongo_visit_rules(const struct mongo_config *config);

#endif
