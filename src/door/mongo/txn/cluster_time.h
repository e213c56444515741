/*
 * Cluster time. MongoDB tells clients the time of each answer, and clients send back the newest
 * that they have seen. Here that is a version of the store, so it only grows, in all processes, and
 * the version can be told from it:
 *
 *     timestamp = version + 2^32
 *
 * The upper half of a timestamp, which is seconds in MongoDB, is no time of a clock here.
 *
 * Threading: any thread.
 */
#ifndef FROND_DOOR_MONGO_TXN_CLUSTER_TIME_H
#define FROND_DOOR_MONGO_TXN_CLUSTER_TIME_H

#include "door/mongo/txn/command.h"
#include "kv/kv.h"

enum {
	MONGO_AFTER_TIME_MS = 10 * 1000, /* that a read at a standby waits for its time */
};

#define TIME_BIAS (1ULL << 32) /* clients take a timestamp without seconds for none */

static inline uint64_t
time_of_version(uint64_t version)
{
	return version + TIME_BIAS;
}

/* 0 for what is no time of this store. */
static inline uint64_t
time_to_version(uint64_t timestamp)
{
	return timestamp > TIME_BIAS ? timestamp - TIME_BIAS : 0;
}

/* The version in a versionstamp; 0: the transaction has written nothing. */
uint64_t time_of_stamp(const uint8_t stamp[KV_VERSIONSTAMP_TX_BYTES]);

/* The call has read at, or has committed, that version. */
void time_note(struct call *c, uint64_t version);

/* A version that the store has reached: the call's, or the newest that the process has seen. */
uint64_t time_now(struct call *c);

/* Appends operationTime and $clusterTime to an answer, where clients take this for a set. */
void time_put(struct call *c);

/* Checks the `readConcern` of the request. */
MUST_USE enum status time_check_concern(struct call *c);

/* True in front of a standby (kv/log.h), which is a secondary to drivers. */
bool mongo_is_secondary(const struct mongo *mongo);

#endif
