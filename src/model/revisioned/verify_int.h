/* What the files of the check share. */
#ifndef FROND_MODEL_VERIFY_INT_H
#define FROND_MODEL_VERIFY_INT_H

#include "model/revisioned/revisioned_int.h"
#include "model/revisioned/verify.h"

struct verify {
	struct kv_tx *tx;
	/*
	 * Nobody writes to what is checked, so that it can be read at several versions: each cursor
	 * has a transaction of its own, and reads that fail are made again.
	 */
	bool still;
	const struct rev_verify_options *options;
	struct rev_verify_sum sum;
	uint64_t read_version;
	struct arena *scratch; /* of one pair; cleared with the next one */
	struct buf key;        /* of a single read, or of a finding */
	struct buf value;      /* what should be there */

	/* Of the database that is being checked; NULL: the store. */
	const struct rev_db *db;
	uint64_t live;
	uint64_t deleted;
	uint64_t changes_there; /* entries found under the Sequences of winners */
	struct rev_seq newest;  /* of all changes */
	uint64_t pointers;      /* to attachments: their fingerprint */
};

void verify_found(struct verify *v, enum rev_finding_kind kind, struct str key, const char *fmt,
		  ...) PRINTF(4, 5);

/*
 * After a read of v->tx that has failed with `status`: STATUS_OK if it can be made again, at
 * another version; otherwise `status`. `failures` begins with 0.
 */
MUST_USE enum status verify_again(struct verify *v, unsigned *failures, enum status status);

/* Single reads, answered; the answer is to be used and freed before the next one. */
MUST_USE enum status verify_get(struct verify *v, struct str key, struct kv_future **ret);
MUST_USE enum status verify_get_range(struct verify *v, struct str begin, struct str end,
				      const struct kv_range_options *options,
				      struct kv_future **ret);

/* ---- Going through ranges ---- */

struct verify_cursor {
	struct kv_scan scan;
	struct kv_tx *own;   /* of what stands still */
	struct kv_pair pair; /* valid until the next step */
	struct str tail;     /* the key behind the subspace's prefix */
	size_t prefix_len;
	bool done;
};

/* Stands at the first pair of a subspace, and then at the next one, if there is one. */
MUST_USE enum status verify_cursor_open(struct verify *v, struct verify_cursor *c,
					enum rev_subspace space);
MUST_USE enum status verify_cursor_next(struct verify *v, struct verify_cursor *c);
void verify_cursor_close(struct verify_cursor *c);

/* One pair has been read: counts it. */
void verify_count(struct verify *v, const struct kv_pair *pair);

/* ---- Elements ---- */

/* A revision as the keys of REVISIONS and DOCUMENTS have it. Borrows from the key. */
struct verify_rev {
	struct str id;       /* encoded */
	struct str encoding; /* from the id to the hash */
	struct str rev;      /* the position and the hash, encoded */
	bool deleted;
	struct str rest; /* behind it */
};

bool verify_rev_parse(struct str tail, struct verify_rev *ret);

/* The next element as it is encoded, if it is of that kind and not empty. */
bool verify_text_next(struct tuple_reader *r, enum tuple_kind kind, struct str *ret);
/* The same for a revision's hash, which may be empty. */
bool verify_hash_next(struct tuple_reader *r, struct str *ret);

/* Incarnation and versionstamp. */
bool verify_seq_next(struct tuple_reader *r, struct rev_seq *ret);

/* ---- Bodies (verify_body.c) ---- */

struct verify_body {
	struct doc_assembler assembler;
	struct buf out; /* what the assembler has to say about the last leaf */
	struct buf key; /* the root's */
	bool open;
	bool root;
	bool packed; /* the root has the body */
	bool broken; /* a finding was told about it */
};

void verify_body_init(struct verify_body *b);
void verify_body_release(struct verify_body *b);
/* `root`: the first bytes of a key. */
MUST_USE enum status verify_body_begin(struct verify_body *b, struct str root);
/* The root, once it is known what it says (doc_root_read()). */
MUST_USE enum status verify_body_root(struct verify *v, struct verify_body *b, struct str packed);
/* A pair below the root, by its path there. */
MUST_USE enum status verify_body_leaf(struct verify *v, struct verify_body *b, struct str path,
				      struct str value);
MUST_USE enum status verify_body_end(struct verify *v, struct verify_body *b);

/* ---- Subspaces ---- */

/* REVISIONS, ALL_DOCS and DOCUMENTS, side by side (verify_docs.c). */
MUST_USE enum status verify_documents(struct verify *v);
/* LOCAL (verify_body.c). */
MUST_USE enum status verify_locals(struct verify *v);
/* ATTACHMENTS, after verify_documents(), which calls the second (verify_atts.c). */
MUST_USE enum status verify_attachments(struct verify *v);
MUST_USE enum status verify_pointer(struct verify *v, struct str key, struct str path,
				    struct str value);
/* TALLIES (verify_tallies.c). */
MUST_USE enum status verify_tallies(struct verify *v);
/* CHANGES, after verify_documents() (verify_changes.c). */
MUST_USE enum status verify_changes(struct verify *v);
/* The entry of a winner (verify_changes.c). `rev` and `count` as REVISIONS has them. */
MUST_USE enum status verify_change(struct verify *v, const struct rev_seq *seq,
				   const struct verify_rev *rev, uint64_t count);

#endif
