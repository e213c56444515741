/*
 * A packed text that is too long for one value, cut into chunks.
 *
 * Chunk n lies under a key that begins with a prefix of the caller's and ends with n as a tuple
 * element; it has DOC_CHUNK_BYTES bytes of the text, the last chunk what is left. A text never
 * changes: another text lies under another prefix, and a root value elsewhere (doc/packed.h) says
 * which one counts. So chunks can be read without conflicts, as long as that root value is read
 * with one.
 *
 * Ownership and threading: as for the transaction. Prefixes and texts are borrowed for the call,
 * but by a reader for as long as it is open.
 */
#ifndef FROND_DOC_CHUNKS_H
#define FROND_DOC_CHUNKS_H

#include "base/arena.h"
#include "base/buf.h"
#include "kv/kv.h"

enum {
	DOC_CHUNK_BYTES = 90000, /* stored: never change */
	/* Of the text, read at once. */
	DOC_CHUNKS_READ_BYTES = 512 * 1024,
};

/* The prefix of the chunks of a text that 16 bytes name, below the prefix of all such texts. */
void doc_text_prefix(struct buf *ret, struct str texts, const uint8_t text_id[]);

/* How many chunks a text of that length has. */
uint64_t doc_chunks_count(uint64_t text_bytes);

/* Sets the chunks of a text. */
MUST_USE enum status doc_chunks_write(struct kv_tx *tx, struct str prefix, struct str text);

/*
 * Reads a text piece by piece, in bounded memory:
 *
 *     TRY(doc_chunks_open(&r, tx, prefix, text_bytes));
 *     while ((status = doc_chunks_next(&r, &piece)) == STATUS_OK) …
 *     doc_chunks_close(&r);
 *
 * A piece is valid until the next call. STATUS_NOT_FOUND at the end; STATUS_CORRUPT for a chunk
 * that is missing or has not the length that it should have; the store's failures.
 */
struct doc_chunks_reader {
	struct kv_scan scan; /* private, as all of it */
	size_t prefix_len;
	uint64_t next; /* the chunk that comes next */
	uint64_t left; /* bytes of the text that are still to come */
};

MUST_USE enum status doc_chunks_open(struct doc_chunks_reader *r, struct kv_tx *tx,
				     struct str prefix, uint64_t text_bytes);
MUST_USE enum status doc_chunks_next(struct doc_chunks_reader *r, struct str *ret);
void doc_chunks_close(struct doc_chunks_reader *r);

/* The whole text, in the arena. STATUS_CORRUPT as above; STATUS_LIMIT when the arena is full. */
MUST_USE enum status doc_chunks_read(struct kv_tx *tx, struct str prefix, uint64_t text_bytes,
				     struct arena *arena, struct str *ret);

#endif
