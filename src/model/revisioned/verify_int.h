/* What the files of the check share. */
#ifndef FROND_MODEL_VERIFY_INT_H
#define FROND_MODEL_VERIFY_INT_H

#include "catalog/check.h"
#include "doc/root.h"
#include "index/view/reduce.h"
#include "index/view/view.h"
#include "model/revisioned/partition_int.h"
#include "model/revisioned/revisioned_int.h"
#include "model/revisioned/verify.h"

/* What the parts of the check of one database hand to each other. */
struct rev_verify {
	uint64_t live;
	uint64_t deleted;
	uint64_t changes_there;    /* entries found under the Sequences of winners */
	struct catalog_seq newest; /* of all changes */
	struct catalog_seq purged; /* of the newest purge, as STATS has it */
	uint64_t purges;           /* records of purges */
	uint64_t pointers;         /* to attachments: their fingerprint */
	struct rev_sizes sizes;    /* of all heads, in a partitioned database */
};

static inline struct rev_verify *
rev_verify_of(struct catalog_verify *v)
{
	return v->own;
}

/* ---- Elements (verify_rev.c) ---- */

/* A revision as the keys of REVISIONS and DOCUMENTS have it. Borrows from the key. */
struct verify_rev {
	struct str id;       /* encoded */
	struct str encoding; /* from the id to the hash */
	struct str rev;      /* the position and the hash, encoded */
	bool deleted;
	struct str rest; /* behind it */
};

bool verify_rev_parse(struct str tail, struct verify_rev *ret);

/* The next element as it is encoded, if it is bytes: a revision's hash, which may be empty. */
bool verify_hash_next(struct tuple_reader *r, struct str *ret);

/* ---- Partitions (verify_partitions.c) ---- */

/* All of it is counted while the documents are read, in the order of their ids. */
struct verify_partitions {
	bool active; /* the database is partitioned */
	bool counts; /* the document is in a partition */
	struct catalog_verify_cursor counters;
	struct buf prefix; /* of the partition's ids as they are encoded; empty: none yet */
	uint64_t sums[REV_PARTITION_COUNTERS];
	struct rev_sizes all;
};

MUST_USE enum status verify_partitions_open(struct catalog_verify *v, struct verify_partitions *p);
void verify_partitions_close(struct verify_partitions *p);
/* A document begins; `id` as it is encoded. `key`: of its first branch. */
MUST_USE enum status verify_partitions_document(struct catalog_verify *v,
						struct verify_partitions *p, struct str id,
						struct str key);
/* Its winner is deleted. */
void verify_partitions_deleted(struct verify_partitions *p);
/* One of its heads: the sizes that the branch under `key` says it has, and those of its body. */
void verify_partitions_head(struct catalog_verify *v, struct verify_partitions *p, struct str key,
			    const struct rev_sizes *said, bool has_sizes,
			    const struct rev_sizes *found);
/* All documents have been read. */
MUST_USE enum status verify_partitions_end(struct catalog_verify *v, struct verify_partitions *p);

/* ---- Bodies (verify_body.c) ---- */

struct verify_body {
	struct doc_assembler assembler;
	struct buf out; /* what the assembler has to say about the last leaf */
	struct buf key; /* the root's */
	bool open;
	bool root;
	bool packed;     /* the root has the body, or names its text */
	uint64_t chunks; /* of a local document's text */
	bool broken;     /* a finding was told about it */
};

void verify_body_init(struct verify_body *b);
void verify_body_release(struct verify_body *b);
/* `root`: the first bytes of a key. */
MUST_USE enum status verify_body_begin(struct verify_body *b, struct str root);
/* The root, once it is known what it says (doc_root_read()). */
MUST_USE enum status verify_body_root(struct catalog_verify *v, struct verify_body *b,
				      struct str packed);
/* A pair below the root, by its path there. */
MUST_USE enum status verify_body_leaf(struct catalog_verify *v, struct verify_body *b,
				      struct str path, struct str value);
MUST_USE enum status verify_body_end(struct catalog_verify *v, struct verify_body *b);

/*
 * Reads the text in the chunks below `prefix`, and tells if it is not there whole or not in its
 * form. `key`: of the root. Takes the memory of the text while it runs.
 */
MUST_USE enum status verify_text(struct catalog_verify *v, struct str key, struct str prefix,
				 uint64_t text_bytes);

/* ---- Subspaces ---- */

/* REVISIONS, ALL_DOCS and DOCUMENTS, side by side (verify_docs.c). */
MUST_USE enum status verify_documents(struct catalog_verify *v);
/*
 * In ranges: documents with all that is theirs; changes, each with its winner; attachments, each
 * with its counter. `arg` of the last is a struct verify_data, zeroed.
 */
MUST_USE enum status verify_documents_range(struct catalog_verify *v,
					    struct catalog_verify_range *range);
MUST_USE enum status verify_changes_range(struct catalog_verify *v,
					  struct catalog_verify_range *range);
MUST_USE enum status verify_attachments_range(struct catalog_verify *v,
					      struct catalog_verify_range *range);
/* LOCAL (verify_body.c). */
MUST_USE enum status verify_locals(struct catalog_verify *v);
/* PURGES, when `purged` is known (verify_purges.c). */
MUST_USE enum status verify_purges(struct catalog_verify *v);
/* INDEXES and ENTRIES (verify_indexes.c). */
MUST_USE enum status verify_indexes(struct catalog_verify *v);
MUST_USE enum status verify_indexes_in_ranges(struct catalog_verify *v);
/* ---- Results of reduces (verify_view_values.c) ---- */

/* Of one group, while its sums are gone through. All fields are private. */
struct verify_view_values {
	struct catalog_verify *v;
	const struct view_group *group;
	struct arena *design_arena;
	struct view_design design;
	bool known;    /* a design document has these views: there is something to compare */
	struct str id; /* the design document's */
	struct str text;
	void *lent;          /* what functions are called with; NULL: they are not compared */
	struct arena *arena; /* of one sum */
	struct index_work w;
	const struct view_map *map;
	struct reduce_acc accs[VIEW_VIEWS_MOST];
	bool broken; /* the present sum cannot be computed */
};

/* Finds the views' design document. verify_view_values_close() also after a failure. */
MUST_USE enum status verify_view_values_open(struct catalog_verify *v,
					     const struct view_group *group,
					     struct verify_view_values *values);
void verify_view_values_close(struct verify_view_values *values);
/* A sum of a level begins; then come the pairs of the level below that it covers, in order. */
void verify_view_values_begin(struct verify_view_values *values, size_t map);
MUST_USE enum status verify_view_values_take(struct verify_view_values *values, size_t map,
					     unsigned level, struct str place, struct str value);
/* The sum, as it is stored under `key`. */
MUST_USE enum status verify_view_values_compare(struct verify_view_values *values, struct str key,
						struct str value);

/* ---- Subspaces, continued ---- */

/* VIEWS (verify_views.c). */
MUST_USE enum status verify_views(struct catalog_verify *v);
/* The attachment or text whose chunks are being read. */
struct verify_data {
	bool open;
	uint8_t id[REV_ATT_ID_BYTES];
	uint64_t chunks;
	size_t last_bytes; /* of the last one */
};

/* ATTACHMENTS, after verify_documents(), which calls the second, and adds to `sizes`
 * (verify_atts.c). */
MUST_USE enum status verify_attachments(struct catalog_verify *v);
MUST_USE enum status verify_pointer(struct catalog_verify *v, struct str key, struct str path,
				    struct str value, struct rev_sizes *sizes);
/* Likewise for a root value that names a text in chunks: it refers to data as a pointer does. */
MUST_USE enum status verify_text_pointer(struct catalog_verify *v, struct str key,
					 const struct doc_root *root);
/* CHANGES, after verify_documents() (verify_changes.c). */
MUST_USE enum status verify_changes(struct catalog_verify *v);
/* Puts the Sequence of the newest change where verify_changes() would have. */
MUST_USE enum status verify_newest_change(struct catalog_verify *v);
/* The entry of a winner (verify_changes.c). `rev` and `count` as REVISIONS has them. */
MUST_USE enum status verify_change(struct catalog_verify *v, const struct catalog_seq *seq,
				   const struct verify_rev *rev, uint64_t count);

#endif
