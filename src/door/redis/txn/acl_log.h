/*
 * ACL LOG: calls that were refused because the user lacks the right, and logins that failed. Equal
 * refusals within a minute are one entry with a count. Any thread.
 */
#ifndef FROND_DOOR_REDIS_TXN_ACL_LOG_H
#define FROND_DOOR_REDIS_TXN_ACL_LOG_H

#include "door/redis/acl/acl.h"
#include "door/redis/txn/client.h"

enum {
	ACL_LOG_ENTRIES = 1024,      /* the most that acllog-max-len may be */
	ACL_LOG_OBJECT_BYTES = 1024, /* of a key, a channel or a name; what is longer is cut */
	ACL_LOG_GROUP_MS = 60000,    /* between two refusals that are one entry */
	ACL_LOG_GROUP_ENTRIES = 10,  /* how many of the newest are looked at for that */
};

/* What was refused. */
struct acl_refusal {
	enum acl_denial denial;
	const char *context; /* "toplevel", "multi" or "lua" */
	struct str object;   /* the command, the key, the channel */
	struct str user;     /* who tried; ptr NULL: the client's */
};

/*
 * Adds it. Entries beyond acllog-max-len go, all of them where that is 0. Without memory nothing is
 * added. Takes the locks of the list of clients and of the client.
 */
void acl_log_add(struct client *c, const struct acl_refusal *refusal);

/* Answers ACL LOG with the newest `most` entries, the newest first; with none if it is negative. */
void acl_log_get(struct redis *r, int64_t most, struct reply *reply);

#endif
