/* Partitions, for those that write documents and check them. */
#ifndef FROND_MODEL_PARTITION_INT_H
#define FROND_MODEL_PARTITION_INT_H

#include "model/revisioned/body_int.h"
#include "model/revisioned/partition.h"
#include "model/revisioned/revisioned_int.h"

/* The counters of a partition. Stored: never renumber. */
enum rev_partition_counter {
	REV_PARTITION_DELETED = 0,
	REV_PARTITION_EXTERNAL = 1,
	REV_PARTITION_ACTIVE = 2,
	REV_PARTITION_COUNTERS,
};

/* What a batch adds to the counters of a partition. */
struct rev_partition_delta {
	struct str partition; /* empty: of documents in no partition; borrowed from an edit */
	int64_t by[REV_PARTITION_COUNTERS];
};

/* (P, PARTITIONS, "partition:", counter) */
void rev_key_partition(struct buf *key, const struct catalog_db *db, struct str partition,
		       enum rev_partition_counter counter);

enum {
	/* What a body without a leaf counts, as its text does: a partition of such is full, too. */
	REV_EMPTY_BODY_BYTES = 2,
};

/*
 * Notes what becomes of a document: how many more are deleted, and (unless NULL) the sizes of a
 * head that comes (`sign` 1) or goes (-1). Nothing in a database without partitions.
 */
MUST_USE enum status rev_partition_count(struct rev_writer *w, struct str id, int64_t deleted,
					 const struct rev_sizes *sizes, int sign);

/* At the end of a batch: adds what was noted to the counters. */
MUST_USE enum status rev_partitions_settle(struct rev_writer *w);

/* Asks for a counter, for catalog_counter_wait(). It is read as a snapshot: nobody conflicts. */
MUST_USE enum status rev_partition_ask(struct kv_tx *tx, const struct catalog_db *db,
				       struct str partition, enum rev_partition_counter counter,
				       struct buf *key, struct kv_future **ret);

/* ---- Edits (apply.c) ---- */

/* The sizes that the new head will have. `atts`: as many as the edit has. */
MUST_USE enum status rev_update_sizes(struct rev_writer *w, const struct rev_edit *edit,
				      const struct rev_att *atts, struct rev_sizes *ret);

#endif
