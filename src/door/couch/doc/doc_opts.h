/*
 * What a client wants to know about a document, and the document that is to be shown. Plain values
 * that writers of documents borrow.
 */
#ifndef FROND_DOOR_COUCH_DOC_DOC_OPTS_H
#define FROND_DOOR_COUCH_DOC_DOC_OPTS_H

#include "door/couch/wire/holes.h"
#include "model/revisioned/revisioned.h"

enum couch_doc_flags {
	COUCH_DOC_REVS = 1,
	COUCH_DOC_REVS_INFO = 2,
	COUCH_DOC_CONFLICTS = 4,
	COUCH_DOC_DELETED_CONFLICTS = 8,
	COUCH_DOC_LOCAL_SEQ = 16,
	COUCH_DOC_LATEST = 32,
	COUCH_DOC_ATTS = 64,          /* attachments=true */
	COUCH_DOC_ATT_ENCODING = 128, /* att_encoding_info=true */
	COUCH_DOC_FOLLOWS = 256,      /* the attachments come as parts behind the document */

	/* The flags that need the tree, and those that say something of one head among several. */
	COUCH_DOC_OF_THE_TREE = COUCH_DOC_REVS | COUCH_DOC_REVS_INFO | COUCH_DOC_CONFLICTS |
				COUCH_DOC_DELETED_CONFLICTS | COUCH_DOC_LOCAL_SEQ,
	COUCH_DOC_OF_A_HEAD = COUCH_DOC_REVS | COUCH_DOC_ATTS | COUCH_DOC_ATT_ENCODING |
			      COUCH_DOC_FOLLOWS,
};

/* What an answer shows of a document. */
struct couch_doc_opts {
	unsigned flags;
	uint64_t revs_limit; /* the most revisions that `revs` shows; 0: all */
	/*
	 * atts_since, with COUCH_DOC_ATTS: attachments that are newer than the newest of these
	 * revisions are shown in whole, the others as stubs.
	 */
	bool has_since;
	struct rev_id *since;
	size_t since_count;
	struct couch_holes
		*holes; /* where attachments belong in the text; NULL: only stubs are shown */
	/*
	 * For an answer with several documents: what attachments are read with before the answer
	 * promises them inflated. One that is no valid gzip is shown as a stub. NULL: they are not
	 * read.
	 */
	struct kv_tx *check_tx;
	struct couch_req *check_req;
};

/*
 * A document that is to be shown. With `tree`, the flags say what is shown of it. `branch` is the
 * one whose head is shown.
 */
struct couch_doc_out {
	struct str id;
	const struct rev_doc *doc;
	const struct rev_tree *tree;
	const struct rev_branch *branch;
	const struct couch_doc_opts *opts; /* NULL: nothing but the document, with stubs */
};

#endif
