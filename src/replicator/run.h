/*
 * One run of a replication: from its checkpoints to the end of the source's changes or, if it is
 * continuous, until somebody stops it.
 *
 *     reader ──batches──> workers ──in whatever order──> through ──now and then──> checkpoint
 *
 * The reader asks the source for pages of its changes. Each page is a batch. Workers compare
 * batches with the target and copy what is missing there. The run has got through a batch when
 * that batch and all before it are copied, and a checkpoint never claims more than that.
 *
 * The memory of a run is bounded whatever the documents and attachments are: at most
 * RUN_BATCHES_A_WORKER batches for each worker are under way, and a worker holds RUN_FLUSH_BYTES of
 * documents and one more document.
 *
 * A run belongs to the replicator's thread: its reader, workers and checkpoints are fibers there.
 */
#ifndef FROND_REPLICATOR_RUN_H
#define FROND_REPLICATOR_RUN_H

#include <pthread.h>

#include "replicator/checkpoint.h"
#include "replicator/peer.h"

enum {
	RUN_BATCHES_A_WORKER = 2,
	RUN_BATCH_BYTES = 64 << 20,           /* of one batch: ids, revisions, what is missing */
	RUN_ROW_BYTES = 64 << 20,             /* of one change or one document as it arrives */
	RUN_FLUSH_BYTES = 1 << 20,            /* of documents gathered for one _bulk_docs */
	RUN_DOC_ARENA_BYTES = 256 << 20,      /* for taking one document's JSON apart */
	RUN_REVS_AT_ONCE = 50,                /* revisions of one document in one request */
	RUN_ANSWER_REVS = 10000,              /* of one document in one answer */
	RUN_SEQ_BYTES = 16 * 1024,            /* of a source's sequence */
	RUN_FILTER_STALL_MS = 10 * 60 * 1000, /* a filter may find no change for so long */
};

/* How far a run has got, as the doors show it. Everything but `lock` is guarded by it. */
struct run_progress {
	pthread_mutex_t *lock;
	struct checkpoint_counts counts;
	char *source_seq;    /* JSON: of the newest change read; owned, NULL before the first */
	char *through_seq;   /* everything up to it is copied */
	char *committed_seq; /* the newest checkpoint's */
	bool pending_known;
	uint64_t pending;
	uint64_t started_ms;
	uint64_t updated_ms;
	uint64_t checkpoint_ms;
	bool lacks_filter; /* the run failed before it had the function that it filters by */
};

void run_progress_init(struct run_progress *p, pthread_mutex_t *lock);
void run_progress_fini(struct run_progress *p);

struct run_config {
	const struct peer_env *env;
	struct loop *loop; /* the one that the run's fibers run on */
	const struct repl_spec *spec;
	const char *id;          /* SPEC_ID_BYTES: names the checkpoints */
	struct net_scope *scope; /* cancelling it stops the run, which then leaves a checkpoint */
	struct net_scope *settling; /* cancelling it as well ends that checkpoint, too */
	struct run_progress *progress;
	bool looks_only; /* it ends, complete, when it has found what it filters by */
};

/*
 * Runs a replication; to be called on a fiber of the replicator's loop. STATUS_OK: the replication
 * is complete, and `ret_answer` holds the members behind "ok" of the answer to POST /_replicate.
 * STATUS_CANCELLED: it was stopped. Any other failure is explained in `err`, beginning with
 * CouchDB's word for it: "db_not_found: …".
 */
MUST_USE enum status run_replication(const struct run_config *config, struct buf *ret_answer,
				     struct err *err);

#endif
