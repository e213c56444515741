/*
 * Leases: which of the processes at one store does a piece of work, by the name of the work.
 *
 * A process does the work only while it holds the lease of that name. It shows that it lives by a
 * beat, a record that it changes every leases_beat_ms(). A process takes a lease that nobody has,
 * or whose holder's beat has not changed for that holder's time (leases_set_time(), which the beat
 * tells) by the taker's own clock, so clocks need not agree. A process that could not store a beat
 * for leases_give_up_ms() stops what it does, before others may take its leases. Whether it asks
 * again for a lease that somebody else has cleared, its owner decides.
 *
 * A struct leases is one process's side of one space of leases. Its owner calls leases_exchange()
 * every leases_beat_ms(), says in a callback which leases it wants, and takes over what came of it
 * with leases_adopt(). A store that belongs to one process (kv_is_shared()) needs none of this.
 *
 * What is stored is written and read in lease_record.c:
 *
 *     (ROOT, REPLICATOR, 1, process)  = (count[, ms]): the process lives, and counts up to show it;
 *                                       its time, unless that is LEASE_MS
 *     (ROOT, REPLICATOR, 2, job)      = (process, texts…): the lease of a replication job
 *     (ROOT, REPLICATOR, 3, chore)    = (process): the lease of a chore
 *
 * Processes of different versions may share a store. A lease of format 1, which is the present one,
 * begins with the process; one of a later format begins with its number. A beat has no format: what
 * matters is that its value changes. A process that does not know of the time in it waits for
 * LEASE_MS, which is the longest.
 *
 * Threading: one thread or fiber exchanges. leases_adopt(), leases_forget() and the functions that
 * look at what is known are to be called under one lock of the owner's.
 */
#ifndef FROND_CATALOG_LEASE_H
#define FROND_CATALOG_LEASE_H

#include "base/arena.h"
#include "base/buf.h"
#include "kv/kv.h"

enum {
	LEASE_MS = 12 * 1000, /* the time of a process, by default and at most */
	LEASE_LEAST_MS = 600,
	LEASE_PROCESS_BYTES = 16,
	LEASE_KEY_BYTES = 1024,
	LEASE_FORMAT = 1,
	LEASE_TEXTS_MAX = 4,
};

/* The third element of a key. Stored: never renumber. 0 is the id of the store. */
enum lease_space {
	LEASE_BEATS = 1,
	LEASE_JOBS = 2,
	LEASE_CHORES = 3,
};

/* What is stored of a lease. Which texts there are is the owner's business. */
struct lease_record {
	struct str process; /* that holds it: LEASE_PROCESS_BYTES */
	struct str texts[LEASE_TEXTS_MAX];
};

/* A lease that the last exchange has met. */
struct lease_entry {
	struct str name;
	struct lease_record record; /* zero if `newer` */
	bool mine;                  /* this process holds it */
	bool newer;                 /* a newer frond has written it: it is left alone */
	bool kept;                  /* the exchange does not give it back */
};

struct leases;
struct lease_exchange;

/* How long this process may be silent before others take its leases. Before there are leases. */
void leases_set_time(uint64_t ms);
/* How often it exchanges, which is a sixth of that, and when it stops its work by itself. */
uint64_t leases_beat_ms(void);
uint64_t leases_give_up_ms(void);

/*
 * Asks for leases by lease_hold(), in the transaction of an exchange. It is called again when the
 * transaction is tried again, and must not wait for the store. Its failure is the exchange's.
 */
typedef enum status lease_ask_fn(struct lease_exchange *exchange, void *arg);

struct leases_config {
	struct kv_store *store; /* outlives the leases */
	enum lease_space space; /* not LEASE_BEATS */
	size_t texts;           /* of each lease, at most LEASE_TEXTS_MAX */
	size_t known_bytes;     /* of memory for what is known of all leases */
	lease_ask_fn *ask;
	void *arg;
};

/* Holds nothing yet, under a process id of its own. NULL when out of memory. */
struct leases *leases_new(const struct leases_config *config);
void leases_free(struct leases *leases); /* NULL is fine */

/*
 * One transaction: reads the beats and the leases of all processes, stores a beat of its own, asks
 * for leases and gives back those that are not asked for. With `leave` it gives everything back,
 * the beat as well, and asks for nothing. The store's failures; STATUS_LIMIT past known_bytes.
 */
MUST_USE enum status leases_exchange(struct leases *leases, bool leave, struct err *err);

/* Makes the outcome of the exchange that has just succeeded what is known. */
void leases_adopt(struct leases *leases);

/* Empties what is known. */
void leases_forget(struct leases *leases);

/* True if no other process may have taken a lease that the last exchange held. NULL: false. */
bool leases_are_certain(const struct leases *leases);

/* What is known; the leases of all processes, valid until the next adoption. NULL: none. */
const struct lease_entry *leases_known(const struct leases *leases, size_t *ret_count);

/* ---- Within lease_ask_fn ---- */

/* The lease of that name as the exchange has found it; NULL if nobody has it. */
struct lease_entry *lease_find(struct lease_exchange *exchange, struct str name);

/* True if this process holds that lease or may take it; `entry` is from lease_find(), or NULL. */
bool lease_is_free(struct lease_exchange *exchange, const struct lease_entry *entry);

/*
 * Takes or renews a lease that is free: `entry` is what lease_find() has said of the name, `texts`
 * has as many as the config says. To leave a lease as it is, set `kept` of its entry instead. The
 * store's failures.
 */
MUST_USE enum status lease_hold(struct lease_exchange *exchange, struct str name,
				struct lease_entry *entry, const struct str *texts);

/* Memory for texts, until lease_hold() returns; what it takes counts against known_bytes. */
struct arena *lease_arena(struct lease_exchange *exchange);

/* ---- Others' leases ---- */

/* Clears a lease, whoever holds it. STATUS_NOT_FOUND; the store's failures. */
MUST_USE enum status lease_clear(struct kv_store *store, enum lease_space space, struct str name,
				 struct err *err);

/* ---- Records (lease_record.c): pure functions, any thread ---- */

/*
 * Replaces `ret` by the key of a record or, with a name of ptr NULL, by what all keys of the space
 * begin with. STATUS_LIMIT for a name that does not fit; STATUS_NOMEM.
 */
MUST_USE enum status lease_record_key(enum lease_space space, struct str name, struct buf *ret);

/* The name in a key of which `prefix_bytes` are the space's. In `scratch` or the key. */
MUST_USE enum status lease_record_key_name(struct str key, size_t prefix_bytes, struct buf *scratch,
					   struct str *ret);

/* Append values. `ms`: the time of the process. */
void lease_record_put_beat(uint64_t count, uint64_t ms, struct buf *value);
void lease_record_put(const struct lease_record *lease, size_t texts, struct buf *value);

/* The time that a beat tells of its process; LEASE_MS if it tells none. */
uint64_t lease_record_beat_ms(struct str value);

/*
 * Reads a lease with that many texts into the arena. STATUS_NEWER if a newer frond has written it,
 * in *ret_format. STATUS_CORRUPT; STATUS_LIMIT when the arena is full.
 */
MUST_USE enum status lease_record_parse(struct str value, size_t texts, struct arena *arena,
					struct lease_record *ret, uint64_t *ret_format);

#endif
