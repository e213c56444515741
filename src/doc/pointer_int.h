/* Searching a text in chunks, for pointer.c. */
#ifndef FROND_DOC_POINTER_INT_H
#define FROND_DOC_POINTER_INT_H

#include "doc/chunks.h"
#include "doc/packed_find.h"
#include "doc/root.h"

struct doc_search {
	struct doc_finder finder;
	struct buf value;
	bool missing; /* there is nothing at the pointer; set before, it is not searched for */
};

/* The pointer is borrowed. The search must stay where it is. */
void doc_search_init(struct doc_search *s, const struct doc_pointer *pointer);
void doc_search_release(struct doc_search *s);

/*
 * Goes through the text that `root` names, below `texts` (struct doc_place), until each search has
 * its value or is `missing`. STATUS_CORRUPT; STATUS_LIMIT where a value, or all of them together,
 * pass `max_bytes`; the store's failures.
 */
MUST_USE enum status doc_search_chunks(struct kv_tx *tx, struct str texts,
				       const struct doc_root *root, struct doc_search *searches,
				       size_t count, size_t max_bytes);

#endif
