/*
 * The root value of a document: where its body lies. A record: its format number is its form.
 *
 *     (1)                     in leaves below the root key
 *     (2, text)               packed: here, and there is nothing below the root key
 *     (2, text, true)         packed: here, and there are attachments below the root key
 *     (3, id, bytes)          packed, in chunks (doc/chunks.h) that `id` names
 *     (3, id, bytes, true)    the same, and there are attachments below the root key
 *
 * Ownership: what is read is borrowed from the value. Threading: none of it keeps anything.
 */
#ifndef FROND_DOC_ROOT_H
#define FROND_DOC_ROOT_H

#include "base/buf.h"
#include "kv/tuple.h"

/* Stored: never renumber. */
enum doc_form {
	DOC_FORM_EXPLODED = 1,
	DOC_FORM_PACKED = 2,
	DOC_FORM_CHUNKED = 3,
};

enum {
	DOC_TEXT_ID_BYTES = 16, /* what names a text in chunks: random bytes */
};

struct doc_root {
	enum doc_form form;
	struct str packed;                  /* PACKED: the text; otherwise ptr NULL */
	uint8_t text_id[DOC_TEXT_ID_BYTES]; /* CHUNKED */
	uint64_t text_bytes;                /* CHUNKED: the length of the text */
	/* PACKED, CHUNKED: there is more to be read below the root key; EXPLODED: there may be. */
	bool more;
};

/* Appends the value. `more` says nothing where the body is in leaves. */
void doc_root_put(struct buf *value, const struct doc_root *root);

/*
 * STATUS_CORRUPT for what is no root value, STATUS_NEWER, explained in `err` (or NULL), for
 * a form that this frond does not know. Of a packed text only the ends are looked at.
 */
MUST_USE enum status doc_root_read(struct str value, struct doc_root *ret, struct err *err);

/*
 * The elements that other records begin with or share, which have something of their own between
 * them: the form, and a packed text.
 */
MUST_USE enum status doc_root_next_form(struct tuple_reader *r, enum doc_form *ret,
					struct err *err);
MUST_USE enum status doc_root_next_text(struct tuple_reader *r, struct str *ret);

#endif
