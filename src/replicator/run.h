/*
 * One run of a replication: from its checkpoints to the end of the source's changes, or, if it is
 * continuous, until somebody stops it.
 *
 *     reader ──batches──> workers ──in whatever order──> through ──now and then──> checkpoint
 *
 * A reader takes pages of the source's changes. Each is a batch; workers compare it with the target
 * and copy what is missing. The run has got through a batch when it and all before it are copied,
 * and a checkpoint never says more than that. At most RUN_BATCHES_A_WORKER batches for each worker
 * are under way, and a worker holds RUN_FLUSH_BYTES of documents and one more: so much memory, and
 * not more, whatever the documents and attachments are.
 */
#ifndef FROND_REPLICATOR_RUN_H
#define FROND_REPLICATOR_RUN_H

#include <pthread.h>

#include "replicator/checkpoint.h"
#include "replicator/peer.h"

enum {
	RUN_BATCHES_A_WORKER = 2,
	RUN_BATCH_BYTES = 64 << 20,      /* memory of one batch: ids, revisions, what is missing */
	RUN_ROW_BYTES = 64 << 20,        /* of one change, or one document, as it comes */
	RUN_FLUSH_BYTES = 1 << 20,       /* of documents gathered for one _bulk_docs */
	RUN_DOC_ARENA_BYTES = 256 << 20, /* for taking one document's JSON apart */
	RUN_REVS_AT_ONCE = 50,           /* of one document in one request */
	RUN_SEQ_BYTES = 16 * 1024,       /* of a source's sequence */
	RUN_FILTER_STALL_MS = 10 * 60 * 1000, /* that a filter may take to find a first change */
};

/* Where a run has got to, as others see it. Guarded by the lock. */
struct run_progress {
	pthread_mutex_t *lock;
	struct checkpoint_counts counts;
	char *source_seq;  /* JSON: of the newest change read; owned, NULL before the first */
	char *through_seq; /* everything up to it is copied */
	char *committed_seq;
	bool pending_known;
	uint64_t pending;
	uint64_t started_ms;
	uint64_t updated_ms;
	uint64_t checkpoint_ms;
};

void run_progress_init(struct run_progress *p, pthread_mutex_t *lock);
void run_progress_fini(struct run_progress *p);

/* Fibers of one loop that fibers of it start. */
struct spawner;
MUST_USE enum status spawner_new(struct loop *loop, struct spawner **ret, struct err *err);
void spawner_free(struct spawner *s); /* NULL is fine */
/* Runs fn(arg) on a fiber of its own, a turn of the loop later. STATUS_NOMEM. */
MUST_USE enum status spawn(struct spawner *s, void (*fn)(void *arg), void *arg);

struct run_config {
	const struct peer_env *env;
	struct spawner *spawner;
	const struct repl_spec *spec;
	const char *id;          /* SPEC_ID_BYTES: names the checkpoints */
	struct net_scope *scope; /* cancelling it stops the run, which leaves a checkpoint */
	struct run_progress *progress;
};

/*
 * Runs it, on a fiber of the spawner's loop. STATUS_OK: it is complete, and `ret_answer` holds the
 * members of POST /_replicate's answer behind "ok". STATUS_CANCELLED: it was stopped. Anything else
 * is explained in `err`, beginning with CouchDB's word for it: "db_not_found: …".
 */
MUST_USE enum status run_replication(const struct run_config *config, struct buf *ret_answer,
				     struct err *err);

#endif
