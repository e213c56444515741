/*
 * Versions of the store that were read with readConcern "snapshot" outside of a transaction. They
 * are kept for some time: such a read answers with its time, and a later read that sends this time
 * (atClusterTime) sees the same version. Drivers' snapshot sessions do this.
 *
 * A version is kept by a transaction of the store that only reads, in the memory of this process.
 * It is used by one command at a time, which has it as `c->txn`, as if it were one of a transaction
 * of several commands.
 *
 * Threading: any thread.
 */
#ifndef FROND_DOOR_MONGO_TXN_SNAPSHOT_H
#define FROND_DOOR_MONGO_TXN_SNAPSHOT_H

#include "door/mongo/txn/txn.h"

enum {
	SNAPSHOT_MOST =
		64, /* that are kept; one more takes the place of the one used longest ago */
	SNAPSHOT_LIFE_MS = 300 * 1000, /* on a cluster OPEN_TXN_SHARED_MS */
};

/* One of a table of the door's (serve/expiring.h). */
struct snapshot {
	struct txn txn; /* first; its entry is the snapshot's */
	uint64_t version;
};

void snapshots_init(struct expiring *snapshots);

/*
 * In front of a command with `c->snapshot`: takes the version of `c->at_version`, or begins one.
 * Fails with SnapshotTooOld where it is not kept. snapshot_leave() behind the command.
 */
MUST_USE enum status snapshot_enter(struct call *c);
void snapshot_leave(struct call *c);

/* Appends `atClusterTime` to the answer of such a command. */
void snapshot_put(struct call *c);

#endif
