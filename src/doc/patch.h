/*
 * Changing a document by a patch: JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7396).
 *
 * A patch works on leaves. It opens only the containers that it goes through; everything beside
 * them stays a run of the document's own leaves, however large it is.
 *
 * The result is the document that a client would have written that reads the document, changes it
 * and writes it back. So its term, and with it the hash of the revision, has the members in key
 * order, as doc_assemble_leaf() gives them out, and the same limits hold.
 *
 * Members at the top of a document whose names start with an underscore do not belong to its body:
 * a patch that names one is refused.
 *
 * Everything lives in the caller's arena. A patch that has been read is not changed by applying it.
 */
#ifndef FROND_DOC_PATCH_H
#define FROND_DOC_PATCH_H

#include "doc/doc.h"

enum {
	DOC_PATCH_BYTES = DOC_LIMIT_MAX_BYTES, /* of a patch's text */
	DOC_PATCH_OPS = 100000,                /* operations of a JSON Patch */
	/* Leaves and members that applying a patch may look at or move: about half a second. */
	DOC_PATCH_STEPS = 50 * 1000 * 1000,
};

enum doc_patch_kind {
	DOC_PATCH_JSON,  /* application/json-patch+json */
	DOC_PATCH_MERGE, /* application/merge-patch+json */
};

struct doc_patch_op; /* private */

/* A patch that has been read; lives in the arena it was read with. */
struct doc_patch {
	enum doc_patch_kind kind;
	struct doc_patch_op *ops; /* JSON */
	size_t count;
	struct doc merge; /* MERGE */
};

/*
 * Reads a patch. Errors: the JSON reader's; STATUS_INVALID for what is no patch, or names a member
 * with an underscore, or (MERGE) is not an object; STATUS_DOC_TOO_LARGE past DOC_PATCH_BYTES or
 * DOC_PATCH_OPS; STATUS_PATH_TOO_LONG; STATUS_LIMIT when the arena is full.
 */
MUST_USE enum status doc_patch_read(enum doc_patch_kind kind, struct str text, struct arena *arena,
				    struct doc_patch *ret, struct err *err);

/*
 * Applies the patch, all or nothing, to the document with these leaves, as doc_assemble_leaf()
 * takes them. The call borrows them. `prefix_bytes` counts for the limit of paths, as in
 * doc_explode().
 *
 * Errors, each of which names the operation and the path: STATUS_PATCH_FAILED for a test that fails
 * and for a place that is not there; STATUS_INVALID for a result that is no document;
 * STATUS_DOC_TOO_LARGE, STATUS_PATH_TOO_LONG and STATUS_JSON_DEPTH for a result past the limits;
 * STATUS_LIMIT for more than DOC_PATCH_STEPS and when the arena is full; STATUS_CORRUPT for leaves
 * that no document has.
 */
MUST_USE enum status doc_patch_apply(const struct doc_patch *patch, const struct kv_pair *leaves,
				     size_t count, const struct doc_limits *limits,
				     size_t prefix_bytes, struct arena *arena, struct doc *ret,
				     struct err *err);

#endif
