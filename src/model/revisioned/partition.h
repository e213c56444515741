/*
 * Partitioned databases: every document's id is "partition:rest", but for design documents. What
 * belongs to a partition lies together in every subspace whose keys begin with an id, so a range of
 * ids is all of a partition.
 *
 *     (P, PARTITIONS, "partition:", counter)
 *                                → little-endian counter: of deleted documents, of bytes
 *
 * The colon makes these keys sort as the documents do.
 *
 * Writers add to the counters blindly, in the transaction that writes the document, and clear one
 * that has become 0. Documents that are not deleted have no such counter, because ALL_DOCS is
 * counted by ranges (catalog/tally.h).
 *
 * Sizes are of heads, conflicts and tombstones included. `external` is what a body takes as packed
 * text, or in its leaves ("{}" where it has none), and its attachments as their authors know them;
 * `active` has the attachments as they are stored. An attachment that several heads have counts for
 * each of them.
 *
 * What is returned lives in the arena given.
 *
 * Threading: on the thread or fiber that has the transaction.
 */
#ifndef FROND_MODEL_PARTITION_H
#define FROND_MODEL_PARTITION_H

#include "base/arena.h"
#include "catalog/catalog.h"
#include "catalog/name_range.h"
#include "kv/kv.h"

struct rev_sizes {
	uint64_t external;
	uint64_t active;
};

/* The part of an id before its first colon. False if it has no colon. */
bool rev_partition_of(struct str id, struct str *ret);

/* True for design documents and local ones, which are in no partition and may have any id. */
bool rev_id_has_no_partition(struct str id);

/*
 * Why a document of a partitioned database cannot have this id, in CouchDB's words; NULL if it can.
 * For an id that any database can have.
 */
const char *rev_partition_id_fault(struct str id);

/* Why nothing can be a partition of this name, in CouchDB's words; NULL if it can be one. */
const char *rev_partition_name_fault(struct str partition);

/*
 * The ids of a partition, and only those. Its bounds lie in the arena. Whoever lists, searches or
 * indexes a partition reads this range. STATUS_LIMIT when the arena is full.
 */
MUST_USE enum status rev_partition_range(struct str partition, struct arena *arena,
					 struct name_range *ret);

struct rev_partition_info {
	uint64_t doc_count; /* whose winner is not deleted */
	uint64_t doc_del_count;
	struct rev_sizes sizes;
};

/*
 * Sums up one partition, which need not have any document, without going through it: three counters
 * and two places in ALL_DOCS are read. The database must be partitioned.
 */
MUST_USE enum status rev_partition_info(struct kv_tx *tx, const struct catalog_db *db,
					struct str partition, struct rev_partition_info *ret);

/* The sizes of all documents of a partitioned database, design documents included. Two keys. */
MUST_USE enum status rev_partitions_sizes(struct kv_tx *tx, const struct catalog_db *db,
					  struct rev_sizes *ret);

#endif
