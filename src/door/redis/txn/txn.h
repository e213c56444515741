/*
 * A transaction of commands: the databases and items that its commands use, and its effects, what
 * is to happen in this process after the commit. Messages for other processes are written with it.
 *
 * A struct txn is made anew for each attempt. It belongs to the fiber that runs the group.
 */
#ifndef FROND_DOOR_REDIS_TXN_TXN_H
#define FROND_DOOR_REDIS_TXN_TXN_H

#include "base/hash_table.h"
#include "door/redis/acl/acl.h"
#include "door/redis/acl/command.h"
#include "door/redis/txn/messages.h"
#include "door/redis/txn/redis_config.h"
#include "kv/many.h"
#include "model/timed/items/items.h"

enum {
	TXN_SLOTS = 64,                  /* for items that need no memory beside their own */
	TXN_NAME_BYTES = 16,             /* of a database */
	TXN_FUNCTIONS = REDIS_DATABASES, /* the number, here, of the database of functions */
	TXN_DATABASES,
};

/* Keyspace notifications, by the letters of notify-keyspace-events. */
enum event_class {
	EVENT_KEYSPACE = 1 << 0, /* K */
	EVENT_KEYEVENT = 1 << 1, /* E */
	EVENT_GENERIC = 1 << 2,  /* g */
	EVENT_STRING = 1 << 3,   /* $ */
	EVENT_LIST = 1 << 4,     /* l */
	EVENT_SET = 1 << 5,      /* s */
	EVENT_HASH = 1 << 6,     /* h */
	EVENT_ZSET = 1 << 7,     /* z */
	EVENT_EXPIRED = 1 << 8,  /* x */
	EVENT_EVICTED = 1 << 9,  /* e */
	EVENT_STREAM = 1 << 10,  /* t */
	EVENT_MISS = 1 << 11,    /* m */
	EVENT_MODULE = 1 << 12,  /* d */
	EVENT_NEW = 1 << 13,     /* n */
	EVENT_ALL = EVENT_GENERIC | EVENT_STRING | EVENT_LIST | EVENT_SET | EVENT_HASH |
		    EVENT_ZSET | EVENT_EXPIRED | EVENT_EVICTED | EVENT_STREAM | EVENT_MODULE,
};

enum effect_kind {
	EFFECT_EVENT,   /* a key was changed, or something is told of it */
	EFFECT_PUBLISH, /* a message to a channel */
	EFFECT_SPUBLISH,
	EFFECT_FLUSH, /* all keys of a database are gone */
	EFFECT_SWAP,  /* all of them are those of another one */
	EFFECT_WATCH, /* a client watches a key */
	EFFECT_CALL,  /* a script has called a command, or was refused it */
	EFFECT_DENY,  /* a command that runs was denied what its client may not do */
	EFFECT_SHOW,  /* a client has run a command, which is shown to those who look */
};

struct effect {
	struct effect *next;
	enum effect_kind kind;
	enum event_class class;
	bool changes; /* EVENT: the key has another value now */
	/*
	 * EVENT: the group has run the commands of those who wait for the key and came up to this
	 * ticket (effects_claim()).
	 */
	bool served;
	uint64_t served_ticket;
	const char *event;
	unsigned db;
	struct str key;        /* or the channel; DENY: what was denied */
	struct str message;    /* WATCH: the version */
	struct client *client; /* WATCH, SHOW, DENY; of whom the command of an event was, or NULL */
	enum acl_denial denial;
	const char *context; /* DENY: as of struct acl_refusal */
	/* SHOW, CALL; the error that it has answered is the message, or that is empty. */
	const struct command *command;
	struct str *argv;
	size_t argc;
	uint64_t ns;
	bool refused;
};

struct txn_item {
	struct hash_entry entry; /* of its slot or in the table */
	unsigned db;
	bool was_there; /* when a command last asked for it */
	struct timed_item item;
};

struct txn_db {
	struct catalog_db *db;
	struct timed timed;
};

struct txn {
	struct redis *redis;
	struct kv_tx *tx;
	struct catalog_cache *cache;
	struct arena *arena;
	struct err *err;
	uint64_t at_us; /* the moment of the past that it reads; 0: the present */
	struct txn_db *dbs[TXN_DATABASES]; /* in the arena; NULL: not opened */
	bool missing[TXN_DATABASES];       /* it was looked for, and is not there */
	uint32_t looked_for;               /* bits: of the databases that are either */
	struct timed_stages stages;        /* of the unit that runs */
	/*
	 * The items: the first ones in slots, which most transactions have enough of, and the rest
	 * in a table. Keys with one hash are a chain of TXN_SLOTS in the slots at worst, so a quick
	 * hash will do there; the table's is one that no client knows.
	 */
	size_t slots_used;
	uint64_t slots_set; /* a bit for each slot that has any */
	struct hash_table items;
	struct effect *effects;
	struct effect **effects_end;
	struct messages_writer messages; /* for other processes */
	bool tracked;         /* clients of theirs may keep what they read: they are told of keys */
	uint64_t moment;      /* at which it began (tracking.h) */
	enum caching caching; /* of the unit that runs */
	bool met_expired;     /* a command that reads has met an item that is not removed yet */
	/* The soonest expiry that it has written in databases that it has closed; 0: none. */
	uint64_t soonest_ms;
	/* The last member. Those without a bit in slots_set mean nothing. */
	struct hash_entry *slots[TXN_SLOTS];
};

_Static_assert(TXN_SLOTS == 64, "slots_set has a bit for each");

void txn_init(struct txn *x, struct redis *r, struct kv_tx *tx, struct catalog_cache *cache,
	      struct arena *arena, struct err *err);
void txn_fini(struct txn *x);

/*
 * In how many milliseconds the soonest expires of what the transaction has written. UINT64_MAX:
 * nothing does.
 */
uint64_t txn_soonest(const struct txn *x);

/* The name of a database in the store. */
struct str txn_db_name(unsigned db, char buf[static TXN_NAME_BYTES]);

/* The database, which is created if it is not there. */
MUST_USE enum status txn_open(struct txn *x, unsigned db, struct timed **ret);

/*
 * The database, which is created for a command that writes. `*ret` NULL: there is none yet, so it
 * has no keys.
 */
MUST_USE enum status txn_db(struct call *c, unsigned db, struct timed **ret);

/* The same, but that none is created. */
MUST_USE enum status txn_db_there(struct call *c, unsigned db, struct timed **ret);
/* How many keys it has; none if it is not there. */
MUST_USE enum status txn_db_count(struct call *c, unsigned db, uint64_t *ret);

/*
 * The item of a key in the call's database. One that is not there has the type TIMED_LEAF; where
 * the call only reads, such an item must not be used for anything else.
 */
MUST_USE enum status txn_item(struct call *c, struct str key, struct timed_item **ret);
MUST_USE enum status txn_item_of(struct call *c, unsigned db, struct str key,
				 struct timed_item **ret);
/* Several at once, in one round trip. `ret` has room for them. */
MUST_USE enum status txn_items(struct call *c, const struct str *keys, size_t count, size_t step,
			       struct timed_item **ret);

/*
 * For a command that writes, about an item that it has only read: counts a hit or a miss, and tells
 * of a miss (`keymiss`), as txn_item() does by itself for commands that only read; for these it
 * does nothing.
 */
MUST_USE enum status txn_looked_up(struct call *c, const struct timed_item *item);

/* Counts a hit or a miss, without an event. Returns true for a miss. */
bool txn_count_look(struct call *c, const struct timed_item *item);

/*
 * Asks for an item without waiting for it, if the transaction does not have it yet. It never
 * writes, so a caller may ignore a failure and go on: no half-made change is in the transaction.
 */
MUST_USE enum status txn_ask(struct call *c, unsigned db, struct str key);

/* Items that are asked for together; all zeroes at first. */
struct txn_asking {
	unsigned db; /* of all of them */
	struct timed *t;
	struct timed_item *items[KV_MANY];
	size_t count;
};

/*
 * The same, but the item may wait in `a` for others that are asked for in one call. Whatever that
 * returns, txn_asking_send() is called before anything else is done in the transaction.
 */
MUST_USE enum status txn_ask_soon(struct call *c, unsigned db, struct str key,
				  struct txn_asking *a);
void txn_asking_send(struct txn_asking *a);

/* The versions of items (timed_item_version()), in one more round trip. */
MUST_USE enum status txn_versions(struct call *c, struct timed_item *const *items, size_t count,
				  struct str *ret);

/* True if the transaction knows that nothing is at the key. */
bool txn_lacks(struct txn *x, unsigned db, struct str key);

/*
 * Finds out whether other processes are to be told of keys; before anything else, in a transaction
 * that may write. And tells them of those that have been changed, at its end.
 */
MUST_USE enum status txn_ask_tracked(struct txn *x);
MUST_USE enum status txn_tell_tracked(struct txn *x);

/* Forgets items and databases: after a flush or a swap. */
void txn_forget(struct txn *x);

/* The transaction's moment in the client's database, in milliseconds since 1970. */
MUST_USE enum status txn_now_ms(struct call *c, uint64_t *ret);
/*
 * Likewise how far that is ahead of the wall clock that clients name moments by
 * (timed_ahead_ms()), after txn_now_ms().
 */
int64_t txn_ahead_ms(struct call *c);

/* The key has another value: clients that wait for it are told after the commit. */
MUST_USE enum status txn_changed(struct call *c, struct str key, enum event_class class,
				 const char *event);
/*
 * Tells that the key is new, also where another value was replaced by it. txn_changed() tells so of
 * a key that was not there when the command asked for it.
 */
MUST_USE enum status txn_is_new(struct call *c, unsigned db, struct str key);
/* The same as txn_changed() in another database; and an event without a change. */
MUST_USE enum status txn_changed_in(struct call *c, unsigned db, struct str key,
				    enum event_class class, const char *event);
MUST_USE enum status txn_event(struct call *c, struct str key, enum event_class class,
			       const char *event);
MUST_USE enum status txn_flushed(struct call *c, unsigned db);
/* Exchanges two databases, with the effects. */
MUST_USE enum status txn_swap(struct call *c, unsigned a, unsigned b);
/* From the commit on the call's client watches the key, which has that version. */
MUST_USE enum status txn_watch(struct call *c, struct str key, struct str version);
/*
 * A script has called the command, which has answered the error, if it is one; or it was refused
 * the command. To be counted.
 */
MUST_USE enum status txn_called(struct call *c, struct str answer, uint64_t ns, bool refused);
/*
 * The call was denied what its client may not do, by a script or by a command that runs another:
 * the audit log and ACL LOG note it after the commit. `object` as of struct acl_refusal; the call's
 * own name if the command is denied.
 */
MUST_USE enum status txn_denied(struct call *c, enum acl_denial denial, struct str object);
/* A client has run the command, and somebody looks (monitor.h). */
MUST_USE enum status txn_shown(struct txn *x, struct client *client, unsigned db,
			       const struct command *command, struct str *argv, size_t argc);
MUST_USE enum status txn_publish(struct call *c, enum effect_kind kind, struct str channel,
				 struct str message);

#endif
