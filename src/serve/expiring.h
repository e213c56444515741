/*
 * A table of objects that live for a time between the commands that use them: cursors, open
 * transactions, versions that are read, texts of scripts.
 *
 * An object is idle or taken. One that is taken belongs to its taker, who alone reads and writes it
 * until giving it back; whoever else asks for it is told that it is busy. An idle object ends when
 * its time is over, when somebody ends it, or when it makes room for another; one that is to end
 * while it is taken ends when it is given back.
 *
 * The lock owns which objects there are, the entries in front of them, and all of the idle ones. It
 * is held for a look at them, and never while an object is closed or freed: closing may wait for
 * storage or files. So the functions of the rules that are called with the lock only look and mark,
 * and what has to be closed comes after it.
 *
 * Threading: any thread. No function waits, but for what rules->close and rules->free do.
 */
#ifndef FROND_SERVE_EXPIRING_H
#define FROND_SERVE_EXPIRING_H

#include <pthread.h>

#include "base/status.h"
#include "base/str.h"

enum {
	EXPIRING_SLOTS = 1024,
	EXPIRING_BATCH = 64, /* objects that are closed before the lock is taken again */
};

/* The first member of every object. Private, but for reading `used_ns` and `taken` in a look. */
struct expiring_entry {
	struct expiring_entry *next; /* of the same slot; of those that are to be freed */
	struct expiring_entry *older;
	struct expiring_entry *newer; /* by their last use */
	uint64_t hash;
	uint64_t used_ns; /* when it was added, found or given back */
	size_t bytes;     /* that it counts of rules->most_bytes */
	bool taken;
	bool doomed; /* it ends when it is given back */
};

struct expiring_rules {
	size_t most;
	size_t most_bytes; /* of all; 0: they are not counted */
	bool replaces;     /* idle objects, unused for longest first, make room for new ones */
	bool alike;        /* several objects may have one key */

	/* With the lock: whether it is the object of that key. Only what never changes is read. */
	bool (*is)(const struct expiring_entry *e, const void *key);
	/*
	 * With the lock: whether the time of an idle object is over. Where the function is NULL,
	 * objects end only when they are ended or make room.
	 */
	bool (*is_over)(const struct expiring_entry *e, uint64_t now_ns);
	/*
	 * With the lock: an idle object is to end. Returns true if it leaves the table; false if
	 * only what it had has ended, and the object stays to tell of that. `*ret_close` is what
	 * close() gets afterwards, without the lock, or NULL if there is nothing to close. Where
	 * the function is NULL, an object that ends leaves the table.
	 */
	bool (*end)(struct expiring_entry *e, uint64_t now_ns, void **ret_close);
	void (*close)(void *what); /* may be NULL with `end` */
	/* Frees an object that has left the table, or was refused. Without the lock. */
	void (*free)(struct expiring_entry *e);
};

struct expiring {
	pthread_mutex_t lock;
	const struct expiring_rules *rules;
	struct expiring_entry *slots[EXPIRING_SLOTS];
	struct expiring_entry *newest;
	struct expiring_entry *oldest;
	size_t count;
	size_t bytes;
};

void expiring_init(struct expiring *x, const struct expiring_rules *rules);
/* Nobody has an object any more. */
void expiring_fini(struct expiring *x);

/*
 * Adds a new object, which then is taken. `key` is its own. Where there is no room, ends those
 * whose time is over, and others if the rules say so. STATUS_EXISTS: there is one of that key, and
 * the rules allow one; STATUS_LIMIT: there is no room. The object is the caller's then, as before.
 */
MUST_USE enum status expiring_add(struct expiring *x, uint64_t hash, const void *key,
				  struct expiring_entry *e, size_t bytes);

/*
 * Puts a new object in place of the idle one of its key, or adds it where there is none. Whoever
 * looks for the key meanwhile finds the one or the other. The new object is idle afterwards. `may`
 * is called with the lock, and says whether the old object may be replaced; where it is NULL, any
 * may be. STATUS_EXISTS: the old one may not be replaced, or is taken. STATUS_LIMIT: there is no
 * room for the new one, and the old one has ended. The new object is still the caller's after a
 * failure. Only for rules without an `end`, by which a key has one object.
 */
MUST_USE enum status expiring_put(struct expiring *x, uint64_t hash, const void *key,
				  struct expiring_entry *e, size_t bytes,
				  bool (*may)(const void *arg, const struct expiring_entry *old),
				  const void *arg);

/*
 * Takes the idle object of that key whose time is not over. STATUS_NOT_FOUND: there is none;
 * STATUS_BUSY: there is, and somebody has it. Of several with one key it takes any.
 */
MUST_USE enum status expiring_take(struct expiring *x, uint64_t hash, const void *key,
				   struct expiring_entry **ret);

/* What becomes of an object that was looked at. */
enum expiring_look {
	EXPIRING_LEAVE,
	EXPIRING_USE,  /* it counts as used now */
	EXPIRING_TAKE, /* it was idle, and is taken now */
	EXPIRING_END,  /* it was idle, and ends now */
};

/*
 * Calls `look` with the object of that key and the lock, once, and does what that says: for a
 * decision that depends on the state of the object. `look` may write to an idle one. Returns the
 * object if it was taken, or else NULL.
 */
struct expiring_entry *
expiring_look(struct expiring *x, uint64_t hash, const void *key,
	      enum expiring_look (*look)(void *arg, struct expiring_entry *e), void *arg);

/* Gives an object back. It ends if somebody has ended it meanwhile. */
void expiring_give(struct expiring *x, struct expiring_entry *e);

/* Ends an object that the caller has taken. It leaves the table whatever rules->end says. */
void expiring_drop(struct expiring *x, struct expiring_entry *e);

/* Ends the object of that key, now or when it is given back. False: there is none. */
bool expiring_end(struct expiring *x, uint64_t hash, const void *key);

/*
 * Ends all objects for which `matches` is true, or all objects if it is NULL. `matches` is called
 * with the lock, and of a taken object it reads only what never changes.
 */
void expiring_end_all(struct expiring *x,
		      bool (*matches)(const void *arg, const struct expiring_entry *e),
		      const void *arg);

/* Ends those whose time is over. For a chore. */
void expiring_sweep(struct expiring *x);

/*
 * Calls `see` with each object and the lock, in no order. Of a taken object `see` reads only what
 * never changes.
 */
void expiring_each(struct expiring *x, void (*see)(void *arg, const struct expiring_entry *e),
		   void *arg);

size_t expiring_count(struct expiring *x);
/* What rules->most_bytes counts of all of them. */
size_t expiring_bytes(struct expiring *x);

#endif
