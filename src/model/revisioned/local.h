/*
 * Local documents: revision "0-N", never replicated.
 *
 * Every function that takes a transaction leaves the commit to its caller, and may be called again
 * in the next attempt. What is returned lives in the arena given. Threading: that of the
 * transaction.
 */
#ifndef FROND_MODEL_LOCAL_H
#define FROND_MODEL_LOCAL_H

#include "base/arena.h"
#include "catalog/catalog.h"
#include "catalog/name_range.h"
#include "doc/doc.h"
#include "kv/kv.h"
#include "model/revisioned/list.h"
#include "model/revisioned/read.h"

/*
 * Writes the document, whatever was there before. `ret_rev`: `parent` + 1; 0 is for none named. The
 * arena is for taking the document apart or packing it.
 * STATUS_INVALID (an empty id, a revision out of bounds), STATUS_KEY_TOO_LARGE.
 */
MUST_USE enum status rev_local_put(struct kv_tx *tx, const struct catalog_db *db, struct str id,
				   uint64_t parent, const struct doc *doc, struct arena *arena,
				   uint64_t *ret_rev, struct err *err);
/* STATUS_NOT_FOUND. */
MUST_USE enum status rev_local_get(struct kv_tx *tx, const struct catalog_db *db, struct str id,
				   struct arena *arena, uint64_t *ret_rev, struct rev_doc *ret);
/* STATUS_NOT_FOUND. */
MUST_USE enum status rev_local_delete(struct kv_tx *tx, const struct catalog_db *db, struct str id,
				      struct err *err);
MUST_USE enum status rev_local_page(struct kv_tx *tx, const struct catalog_db *db,
				    const struct name_range *range, struct arena *arena,
				    struct rev_entry_page *ret);

/* The length of a local document's key prefix, for doc_explode(). */
size_t rev_local_prefix_bytes(const struct catalog_db *db, struct str id);

#endif
