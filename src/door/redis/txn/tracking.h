/*
 * CLIENT TRACKING: a client that caches what it has read is told when a key of it has changed.
 *
 * A client is told of a key once, unless it has read it again; or, with BCAST, of every key that
 * begins with one of its prefixes. A client gets such a message after the answer with the value
 * that it is about, since its answers are always sent before its messages.
 *
 * == Nothing is missed ==
 *
 * A key is noted after it was read, and may have been changed in between. Therefore each
 * transaction takes the moment at which it began, before it reads anything (tracking_moment()),
 * and the table knows for each of TRACKING_SLOTS hashes of keys when one of them was changed last.
 * A key that may have been changed since the moment is not noted, and its client is told at once.
 * So a client may be told of a key in vain, but keeps no value that is not the present one.
 *
 * == Other processes ==
 *
 * Where several processes serve one store, each tells its own clients of what it changes itself.
 * What the others change it reads in the log of messages (others.h), and tells of by the same call,
 * tracking_happen(). A process's record has them write that (trackers.h). The rule above covers it:
 * a transaction that begins after a change was read in the log sees the change.
 *
 * Threading: any thread, unless a function says otherwise. One lock owns the table; the locks of
 * connections may be taken under it, and not the other way.
 */
#ifndef FROND_DOOR_REDIS_TXN_TRACKING_H
#define FROND_DOOR_REDIS_TXN_TRACKING_H

#include "door/redis/acl/command.h"
#include "door/redis/txn/client.h"

enum {
	TRACKING_SLOTS = 4096,
	TRACKING_PREFIXES = 1000, /* of one client */
	TRACKING_KEYS = 1000000,  /* tracking-table-max-keys, by default */
};

enum tracking_flags {
	TRACKING_BCAST = 1 << 0,
	TRACKING_OPTIN = 1 << 1,
	TRACKING_OPTOUT = 1 << 2,
	TRACKING_NOLOOP = 1 << 3,
};

struct effect;
struct tracking;

/* NULL: out of memory. */
struct tracking *tracking_new(void);
void tracking_free(struct tracking *t); /* no client is left; NULL is fine */

struct tracking_options {
	unsigned flags;
	uint64_t redirect; /* the id of who gets the messages; 0: the client itself */
	const struct str *prefixes;
	size_t prefix_count;
};

/*
 * On the client's fiber: begins, or changes the options of what has begun; prefixes are added.
 * STATUS_INVALID, STATUS_NOT_FOUND (whom to redirect to), STATUS_NOMEM, failures of the store:
 * explained, as the client is to be told.
 */
MUST_USE enum status tracking_begin(struct client *c, const struct tracking_options *o,
				    struct err *err);
/* On its fiber; again is fine. */
void tracking_end(struct client *c);
/* On its fiber: the client leaves. It ends, and nobody's messages go there from now on. */
void tracking_leave(struct client *c);

/* What it does, on its fiber. False: nothing; the rest is not set then. */
struct tracking_state {
	unsigned flags;
	uint64_t redirect;
	bool broken; /* whom it redirects to has left */
};
bool tracking_state(struct client *c, struct tracking_state *ret);
/* Calls for each of its prefixes; how many there are, with `take` NULL, too. */
size_t tracking_prefixes(struct client *c, void (*take)(void *arg, struct str prefix), void *arg);

/* Before a transaction reads. */
uint64_t tracking_moment(const struct redis *r);
/* After a command has run: notes the keys of one that only reads. */
void tracking_note(struct call *c);
/* Likewise of keys that a script was called with, which has read something. */
void tracking_note_keys(struct call *c, const struct str *keys, size_t count);

/* True if the effect is that a key has another value, or none, from the commit on. */
bool tracking_is_about(const struct effect *e);
/* After a commit: tells of what its effects have changed, the first of which may be NULL. */
void tracking_happen(struct redis *r, const struct effect *first);

/* Some keys may have been changed: tells each client that tracks that all it keeps may be wrong. */
void tracking_doubt(struct redis *r);

/* True if any client tracks. */
bool tracking_is_on(const struct redis *r);

/* tracking-table-max-keys; 0: no limit but that of memory. */
void tracking_limit(struct redis *r, uint64_t keys);

struct tracking_counts {
	size_t clients;
	size_t keys;
	size_t items; /* a key counts for each client that has read it */
	size_t prefixes;
};
struct tracking_counts tracking_count(struct redis *r);

#endif
