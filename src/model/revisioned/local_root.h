/*
 * The root value of a local document. A record: its format number is the form of its body.
 *
 *     (1, N)            the body lies in leaves below the root key
 *     (2, N, text)      it is packed, and here
 *     (3, N, bytes)     it is packed, and lies in chunks below (root key, null)
 *
 * N is that of the revision 0-N. A local document belongs to nobody but its writer, and its chunks
 * always fit one transaction; so they lie where clearing the document clears them, without a read.
 */
#ifndef FROND_MODEL_LOCAL_ROOT_H
#define FROND_MODEL_LOCAL_ROOT_H

#include "doc/root.h"

struct rev_local_root {
	enum doc_form form;
	uint64_t rev;        /* N */
	struct str packed;   /* PACKED: borrowed from the value; otherwise ptr NULL */
	uint64_t text_bytes; /* CHUNKED */
};

/* Replaces what the buffer held. */
void rev_local_root_put(struct buf *value, const struct rev_local_root *root);

/* STATUS_CORRUPT; STATUS_NEWER, explained in `err` (or NULL). */
MUST_USE enum status rev_local_root_read(struct str value, struct rev_local_root *ret,
					 struct err *err);

#endif
