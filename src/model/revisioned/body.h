/*
 * Bodies on their way into the store: the form that a body takes, and texts that go ahead.
 *
 * A body is kept packed in its root value, as leaves, or as a text in chunks (doc/root.h). Chunks
 * lie where the data of attachments do, under 16 random bytes, and have a counter of the revisions
 * that refer to them, as attachments have. A text of more than REV_TEXT_AHEAD_BYTES may be stored
 * ahead, in transactions of its own, as an upload; the revision's transaction then publishes it by
 * its root value alone. What is abandoned on the way is swept with the uploads of attachments.
 *
 * Ownership: what is returned lives in the arena given, or is the document's own. Threading: that
 * of the transaction.
 */
#ifndef FROND_MODEL_BODY_H
#define FROND_MODEL_BODY_H

#include "model/revisioned/att.h"
#include "model/revisioned/write.h"

enum {
	/* A longer text goes ahead: what one transaction of an upload takes. */
	REV_TEXT_AHEAD_BYTES = REV_ATT_CHUNK_BYTES * REV_ATT_BATCH_CHUNKS,
};

/* A text that is in the store already, which an edit makes its body. */
enum rev_text_source {
	REV_TEXT_STAGED, /* stored ahead by rev_text_stage() */
	REV_TEXT_SHARED, /* another revision's, read in the same transaction */
};

struct rev_text {
	enum rev_text_source source;
	uint8_t id[REV_ATT_ID_BYTES];
	uint64_t bytes;
};

/*
 * Before the transaction: stores the body's text ahead if it will lie in chunks and is longer than
 * REV_TEXT_AHEAD_BYTES. Then `*ret` is what the edit's `text` is to point to, and `*ret_upload` is
 * to be given to rev_upload_free() after the transaction; otherwise `*ret_upload` is NULL. A body
 * that is not stored ahead is written by its revision's transaction, which has room for it, but
 * perhaps for little else.
 *
 * The failures of rev_upload_write(); STATUS_LIMIT when the arena is full.
 */
MUST_USE enum status rev_text_stage(struct kv_store *store, struct catalog_db *db, struct str id,
				    const struct doc *doc, struct arena *arena,
				    struct rev_text *ret, struct rev_upload **ret_upload,
				    struct err *err);

#endif
