/*
 * Checkpoints: the documents _local/ID that both ends keep of a replication, with the history of
 * its sessions, in the form that CouchDB's and PouchDB's replicators write and read.
 */
#ifndef FROND_REPLICATOR_CHECKPOINT_H
#define FROND_REPLICATOR_CHECKPOINT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

enum {
	CHECKPOINT_HISTORY = 50, /* sessions remembered, as CouchDB does */
	CHECKPOINT_SESSION_BYTES = 32,
	CHECKPOINT_DATE_BYTES = 40,
};

/* What a replication has done so far, in all its runs. */
struct checkpoint_counts {
	uint64_t revisions_checked;
	uint64_t missing_found;
	uint64_t docs_read;
	uint64_t docs_written;
	uint64_t write_failures;
	uint64_t bulk_get_docs;
	uint64_t bulk_get_attempts;
};

/* How far the last session got that both ends remember. */
struct checkpoint_found {
	struct str seq;      /* JSON; "0" where there is nothing in common */
	struct str *history; /* entries, JSON, newest first: what comes behind a new one */
	size_t history_count;
	struct checkpoint_counts counts; /* of the newest of these entries; without one, 0 */
};

/*
 * Compares the bodies of the two documents (ptr NULL: the end has none). If they are of different
 * sessions, the newest session that is in both histories counts. A body that cannot be read counts
 * as none. The result borrows from the bodies. STATUS_LIMIT when the arena is full.
 */
MUST_USE enum status checkpoint_compare(struct str source, struct str target, struct arena *arena,
					struct checkpoint_found *ret);

struct checkpoint_session {
	char id[CHECKPOINT_SESSION_BYTES + 1];
	char started[CHECKPOINT_DATE_BYTES]; /* as HTTP writes dates */
	struct str start_seq;                /* JSON */
	bool by_ids; /* CouchDB repeats the figures in front of the history of such a one */
};

/*
 * Appends the members of a checkpoint without braces, "session_id":… to "history":[…]. The answer
 * to POST /_replicate has the same members. `ended_ms` is the end of
 * the session, in milliseconds after the epoch.
 */
void checkpoint_write(const struct checkpoint_session *session, struct str seq, uint64_t ended_ms,
		      const struct checkpoint_counts *counts, const struct checkpoint_found *before,
		      struct buf *out);

/* `ms` after the epoch as "Thu, 01 Jan 1970 00:00:00 GMT" and as "1970-01-01T00:00:00Z". */
void checkpoint_http_date(uint64_t ms, char ret[CHECKPOINT_DATE_BYTES]);
void checkpoint_iso_date(uint64_t ms, char ret[CHECKPOINT_DATE_BYTES]);

#endif
