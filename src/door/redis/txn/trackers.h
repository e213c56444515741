/*
 * Which processes have clients that keep what they have read (tracking.h), where several serve one
 * store. Each has a record, under an id that it has drawn:
 *
 *     (ROOT, 19, id) → (format, count)
 *
 * While there is any record, whoever changes keys tells of them in the log of messages
 * (messages.h), in the transaction that changes them.
 *
 * == A writer need not read the records ==
 *
 * Putting and removing a record touches the store's metadata version. A process remembers which
 * version it had when it last read the records. As long as the version is the same, a transaction
 * need not read them again, and it conflicts with whoever puts a record before it commits. So each
 * transaction that commits after a record was put tells of its keys; where nobody tracks, it
 * compares ten bytes.
 *
 * == A process that has died is forgotten ==
 *
 * A process counts its record up every TRACKERS_BEAT_MS. A chore removes one whose count has stood
 * still for TRACKERS_LEASE_MS by the chore's own clock. A record that was removed never comes back:
 * a process that finds its own gone puts another one, and then tells its clients that all they keep
 * may be wrong, since nobody may have told it of changes in between.
 *
 * Threading: on the thread or fiber that has the transaction, unless a function says otherwise.
 */
#ifndef FROND_DOOR_REDIS_TXN_TRACKERS_H
#define FROND_DOOR_REDIS_TXN_TRACKERS_H

#include <pthread.h>
#include <stdatomic.h>

#include "kv/kv.h"

enum {
	TRACKERS_BEAT_MS = 5000,
	TRACKERS_LEASE_MS = 30000,
	TRACKERS_IDLE_MS = 30000, /* a record stays when no client tracks any more */
	TRACKERS_SEEN = 256, /* records that the chore knows of at a time; others stay longer */
};

/* Puts the record, which is not there. */
MUST_USE enum status trackers_put(struct kv_tx *tx, uint64_t id);
/* Removes it; one that is gone already is no error. */
MUST_USE enum status trackers_remove(struct kv_tx *tx, uint64_t id);
/* Counts it up. STATUS_NOT_FOUND: it was removed. */
MUST_USE enum status trackers_beat(struct kv_tx *tx, uint64_t id);

/* What a process knows of all records. Any thread. */
struct trackers_known {
	pthread_mutex_t lock;
	bool valid;
	_Atomic bool any;
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES]; /* at which that was so */
};

void trackers_known_init(struct trackers_known *known);
void trackers_known_fini(struct trackers_known *known);

/*
 * Tells whether there is any record. The answer holds until the transaction commits, or the commit
 * fails with a conflict. To be called before the transaction touches the metadata version.
 */
MUST_USE enum status trackers_any(struct kv_tx *tx, struct trackers_known *known, bool *ret);
/* What trackers_any() last told any transaction of this process. */
bool trackers_were_any(const struct trackers_known *known);

/*
 * Called in a transaction that removes what has expired: tells of it in the log, for all processes,
 * if there is a record. It reads the records itself, since a process that removes something may
 * serve no clients of Redis, and then knows nothing of them.
 */
struct timed_expired;
MUST_USE enum status trackers_tell_removed(struct kv_tx *tx, const struct timed_expired *first);

struct trackers_record {
	uint64_t id;
	uint64_t count;
	uint64_t at_ns; /* when the chore saw this count first */
};

/* Records as a chore has seen them: its own. */
struct trackers_seen {
	struct trackers_record records[TRACKERS_SEEN];
	size_t count;
};

/* Reads TRACKERS_SEEN records at most, without the times. */
MUST_USE enum status trackers_list(struct kv_tx *tx, struct trackers_seen *ret);
/* Adds what trackers_list() has found at `now_ns` to what the chore has seen before. */
void trackers_look(struct trackers_seen *seen, const struct trackers_seen *listed, uint64_t now_ns);
/*
 * Gives a record whose count has stood still for TRACKERS_LEASE_MS, and forgets that it was seen.
 * False: there is none.
 */
bool trackers_next_dead(struct trackers_seen *seen, uint64_t now_ns, struct trackers_record *ret);
/* Removes the record if its count is still that one. */
MUST_USE enum status trackers_remove_dead(struct kv_tx *tx, const struct trackers_record *dead);

/* Makes `frond verify` check the records. May be called more than once. */
void trackers_register(void);

#endif
