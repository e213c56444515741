/*
 * What the keys at the top are called. Every key is a tuple; its first element is ROOT for what
 * belongs to the store as a whole, or a database's number, from KV_FIRST_PREFIX up. Stored: never
 * renumber.
 */
#ifndef FROND_KV_KEYSPACE_H
#define FROND_KV_KEYSPACE_H

enum {
	KV_ROOT = 0,
	KV_FIRST_PREFIX = 1,

	/* The second element below ROOT. */
	KV_ROOT_FORMAT = 0,      /* the format of the whole store */
	KV_ROOT_DATABASES = 1,   /* (ROOT, 1, name): a database's description */
	KV_ROOT_NEXT_PREFIX = 2, /* the number behind the last block that was taken */
	KV_ROOT_UPLOADS = 3,     /* (ROOT, 3, P, id): attachments that are being uploaded */
	KV_ROOT_DROPPED = 4,     /* (ROOT, 4, P): deleted databases with keys still to be cleared */
	KV_ROOT_EVENTS = 5,      /* (ROOT, 5, name): a database's creation or deletion */
	KV_ROOT_INCARNATION = 6, /* that of new databases and of events; absent: 0 */
	KV_ROOT_MOVES = 7,       /* (ROOT, 7, name): a database that moves away, or comes */
	KV_ROOT_REPLICATOR = 8,  /* (ROOT, 8, …): the id of the store, and who runs what */
	KV_ROOT_SETTINGS = 9,    /* (ROOT, 9, section, name): a setting of all servers */
	KV_ROOT_INDEX_WORK = 10, /* (ROOT, 10, P): it has indexes to be built or cleared */
	KV_ROOT_PEOPLE = 11,     /* (ROOT, 11, name): a person, for every door */
	KV_ROOT_VIEW_WORK = 12,  /* (ROOT, 12, P, id): a design document with views to build */
	KV_ROOT_MESSAGES = 13,   /* (ROOT, 13, shard, versionstamp): what Redis's clients publish */
	KV_ROOT_SESSIONS = 14,   /* (ROOT, 14, id, user): what MongoDB's clients may send again */
	KV_ROOT_NOTICES = 15,    /* (ROOT, 15, …): what became of MongoDB's collections */
	KV_ROOT_KEPT = 16,   /* (ROOT, 16, ms, P): deleted databases with keys kept until then */
	KV_ROOT_CLOCKS = 17, /* (ROOT, 17, start of a machine): what its clocks showed */
	KV_ROOT_DOORS = 18,  /* (ROOT, 18, name, door): what of a person holds at one door alone */
	KV_ROOT_TRACKERS = 19,  /* (ROOT, 19, id): a process with Redis clients that keep reads */
	KV_ROOT_KEYSPACES = 20, /* (ROOT, 20, …): keyspaces and types of tables, and their stamp */
	KV_ROOT_TXIDS = 255,    /* (ROOT, 255, txid): transactions of unknown result */
};

#endif
