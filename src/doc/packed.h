/*
 * Packed documents: one value instead of a pair for each leaf.
 *
 * The body is kept as JSON text in one form of its own: no white space, members in key order, each
 * name once, strings with as few escapes as JSON allows, numbers as they came. It is, byte for
 * byte, what doc_assemble_leaf() makes of the document's leaves, so that whoever reads a document
 * gets the same from both, and reading a packed one copies it.
 *
 * The document's root value (doc/root.h) tells where the text lies: in that value, or, if it is too
 * long for one, in chunks (doc/chunks.h).
 */
#ifndef FROND_DOC_PACKED_H
#define FROND_DOC_PACKED_H

#include "doc/doc.h"

enum {
	/* The longest text that a root value has: chosen by measurement (README.md). */
	DOC_PACKED_BYTES = 16 * 1024,
	/*
	 * What the leaves of a document may take of a transaction, with their keys: half of it, so
	 * that attachments and what belongs to the revision fit beside them. A document whose
	 * leaves would take more is packed, whatever the length of its text, and kept in chunks.
	 */
	DOC_LEAVES_BYTES = KV_LIMIT_TX_BYTES / 2,
};

/* Whether the document has no members at all. */
bool doc_is_empty(const struct doc *doc);

/*
 * The members of a packed body, for a caller that has written `{` and perhaps members
 * (`has_members`), and the closing brace: as doc_assemble_init_object() and what follows it.
 */
MUST_USE enum status doc_packed_write(struct str packed, bool has_members, struct buf *out);

/*
 * The text of the value at `pointer`, borrowed from `packed`; goes through the text up to it, and
 * decodes nothing. STATUS_NOT_FOUND; STATUS_CORRUPT for what is no packed text, as far as it was
 * looked at; STATUS_NOMEM.
 */
MUST_USE enum status doc_packed_find(struct str packed, const struct doc_pointer *pointer,
				     struct str *ret);

/* A member of a document's root that is looked for. */
struct doc_member {
	struct str written; /* the name as a packed text has it between its quotes */
	struct str path;    /* the name as the first element of a leaf's path */
};

/* Prepares a name to be looked for; in the arena. STATUS_LIMIT when that is full; STATUS_NOMEM. */
MUST_USE enum status doc_member_init(struct str name, struct arena *arena, struct doc_member *ret);

/*
 * The leaves of some members of a packed body, in the arena, as doc_unpack() makes them of all. The
 * members are in the order of their paths, each once. The text is gone through up to the last of
 * them, and nothing else is decoded. STATUS_CORRUPT; STATUS_LIMIT, STATUS_NOMEM; the failures of
 * step_count().
 */
MUST_USE enum status doc_packed_leaves(struct str packed, const struct doc_member *members,
				       size_t members_count, struct arena *arena,
				       struct kv_pair **ret, size_t *ret_count);

/* The leaves of a packed body, in the arena. STATUS_CORRUPT; STATUS_LIMIT, STATUS_NOMEM. */
MUST_USE enum status doc_unpack(struct str packed, struct arena *arena, struct kv_pair **ret,
				size_t *ret_count);

/*
 * The packed body of leaves, in the arena. `*ret` has ptr NULL if it takes more than `max_bytes`.
 * STATUS_CORRUPT for leaves that no document has; STATUS_LIMIT when the arena is full.
 */
MUST_USE enum status doc_pack(const struct kv_pair *leaves, size_t count, size_t max_bytes,
			      struct arena *arena, struct str *ret);

/* STATUS_CORRUPT unless the text is in its form in every byte. The arena is used for the while. */
MUST_USE enum status doc_packed_check(struct str packed, struct arena *arena);

#endif
