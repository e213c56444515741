/* Documents that go out: their bodies, read in a transaction, and the JSON that shows them. */
#ifndef FROND_DOOR_COUCH_DOC_DOC_OUT_H
#define FROND_DOOR_COUCH_DOC_DOC_OUT_H

#include "door/couch/doc/doc_opts.h"
#include "door/couch/wire/request.h"
#include "kv/kv.h"

/* The flags that a query sets. "meta" stands for three of them. */
unsigned couch_doc_flags(const struct couch_req *r);

/*
 * Appends `,"_revisions":{…}`, of `limit` revisions at most (0: all). A revs_limit that was lowered
 * counts in answers at once; the stored branch is cut by its next edit.
 */
void couch_revisions_write(const struct rev_branch *branch, uint64_t limit, struct buf *out);

/* Appends the document. */
MUST_USE enum status couch_doc_write(const struct couch_doc_out *d, struct buf *out);

/* Reads the body of a head. A tombstone may have none; then its body is empty. */
MUST_USE enum status couch_head_read(struct couch_req *r, struct kv_tx *tx, struct str id,
				     const struct rev_branch *branch, struct rev_doc *ret);

/* The same where the body has been read already, which ended with `status`. */
MUST_USE enum status couch_head_finish_read(enum status status, const struct rev_branch *branch,
					    struct rev_doc *doc);

/* Reads the body of a head and appends the document. */
MUST_USE enum status couch_head_write(struct couch_req *r, struct kv_tx *tx, struct str id,
				      const struct rev_tree *tree, const struct rev_branch *branch,
				      const struct couch_doc_opts *opts, struct buf *out);

/*
 * The head for a revision that a client names: the head itself, or with `latest` the best that
 * descends from it. With its ancestors. STATUS_NOT_FOUND: there is no document, or no such head.
 */
MUST_USE enum status couch_head_look_up(struct couch_req *r, struct kv_tx *tx, struct str id,
					struct rev_id rev, bool latest, struct rev_branch *ret);

/* Which of the revisions that a client wants are there, each head once, and which are missing. */
struct couch_wanted {
	const struct rev_branch **heads;
	size_t heads_count;
	struct rev_id *missing;
	size_t missing_count;
};

/*
 * Looks them up; `flags` are those of rev_descent_read(): without REV_DESCENT_ITSELF there are also
 * all heads that descend from one of them. In the arena.
 */
MUST_USE enum status couch_heads_wanted(struct couch_req *r, struct kv_tx *tx, struct str id,
					const struct rev_id *revs, size_t count, unsigned flags,
					struct couch_wanted *ret);

/* True if what is shown of a head depends on its ancestors. */
bool couch_opts_need_ancestors(const struct couch_doc_opts *opts);

/* The head of a tree that was read without ancestors, with them if they are needed. */
MUST_USE enum status couch_head_complete(struct couch_req *r, struct kv_tx *tx, struct str id,
					 const struct rev_branch *head,
					 const struct couch_doc_opts *opts, struct rev_branch *ret);

#endif
