/*
 * Packed documents: one value instead of a pair for each leaf.
 *
 * The body is kept as JSON text in one form of its own: no white space, members in key order, each
 * name once, strings with as few escapes as JSON allows, numbers as they came. It is, byte for
 * byte, what doc_assemble_leaf() makes of the document's leaves, so that whoever reads a document
 * gets the same from both, and reading a packed one copies it.
 *
 * Where the body lies is told by the document's root value, a tuple:
 *
 *     (1)                in leaves below the root key
 *     (2, text)          here, and there is nothing below the root key
 *     (2, text, true)    here, and no leaves; there is something else below the root key
 */
#ifndef FROND_DOC_PACKED_H
#define FROND_DOC_PACKED_H

#include "doc/doc.h"
#include "kv/tuple.h"

/* Stored: never renumber. */
enum doc_form {
	DOC_FORM_EXPLODED = 1,
	DOC_FORM_PACKED = 2,
};

enum {
	/* The longest text that is packed: a named limit, chosen by measurement (README.md). */
	DOC_PACKED_BYTES = 16 * 1024,
};

/*
 * Appends a root value; `packed` with ptr NULL: the document has leaves. `more`: so that whoever
 * reads a packed document knows that there is more to be read than its root.
 */
void doc_root_put(struct buf *value, struct str packed, bool more);

/*
 * What a root value says: the packed text, borrowed from it, or ptr NULL for leaves. STATUS_CORRUPT
 * for what is no root value. Of the text only the ends are looked at. `ret_more` (or NULL): there
 * is something below the root key, or, with leaves, may be.
 */
MUST_USE enum status doc_root_read(struct str value, struct str *ret_packed, bool *ret_more);

/* The same in two steps, for values that have something of their own between form and text. */
MUST_USE enum status doc_root_form(struct tuple_reader *r, enum doc_form *ret);
MUST_USE enum status doc_root_end(struct tuple_reader *r, enum doc_form form,
				  struct str *ret_packed, bool *ret_more);

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
