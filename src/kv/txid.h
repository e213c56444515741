/*
 * Transaction ids: what kv_run() leaves in the store so that a later attempt can tell whether an
 * earlier one, of which nobody knows the outcome, took place.
 *
 *   (ROOT, 255, owner span number)  =  (milliseconds since 1970, versionstamp, format)
 *
 * The last element of the key is bytes: 16 random ones of the process, which is the owner, then the
 * number of a span and the number of the id, eight bytes each, big-endian. A span is a stretch of
 * the owner's ids. Once the outcome of every run that took an id from it is known, nobody will ask
 * for these ids again, and one range clear removes all of them however many there are. A run that
 * takes long therefore holds up its own span alone.
 *
 * A span is full when TXIDS_SPAN_MS have passed since its first id. Whoever writes next in the same
 * process clears it with its own transaction: a clear that reads nothing, of keys that nobody
 * reads, so that it costs neither a conflict nor a round trip. When nobody writes,
 * kv_txids_clear() does it, and kv_close() clears what is left.
 *
 * Ids whose owner has died are left to kv_txids_sweep().
 *
 * Private to kv/, but for the record, which `frond verify` checks. Threads: a `struct txids` may be
 * used from any thread. A `struct txid` belongs to one run.
 */
#ifndef FROND_KV_TXID_H
#define FROND_KV_TXID_H

#include "base/status.h"
#include "base/str.h"
#include "kv/kv.h"

enum {
	TXID_FORMAT = 1,
	TXID_OWNER_BYTES = 16,
	TXID_BYTES = TXID_OWNER_BYTES + 2 * sizeof(uint64_t),
	/* Of a key: two numbers, and the id with each zero byte in it escaped. */
	TXID_KEY_MAX_BYTES = 16 + 2 * TXID_BYTES,
	TXID_VALUE_MAX_BYTES = 64,
	TXIDS_SPAN_MS = 1000,
};

/* ---- The record ---- */

struct txid_record {
	uint64_t ms;          /* when it was written, by the writer's clock */
	const uint8_t *stamp; /* of its transaction; within the value */
	uint64_t format;
};

/*
 * Reads the value of an id. The first two elements are the same in every format, since processes of
 * several versions share a cluster; the format was added behind them, and counts as 1 where it is
 * missing. STATUS_CORRUPT.
 */
MUST_USE enum status txid_record_parse(struct str value, struct txid_record *ret);

/* ---- The ids of a process ---- */

struct txids;
struct txid_span;

struct txid {
	struct txid_span *span; /* NULL: none has been taken */
	char key_bytes[TXID_KEY_MAX_BYTES];
	struct str key; /* within key_bytes */
};

/* NULL: out of memory. */
struct txids *txids_new(void);
void txids_free(struct txids *ids); /* NULL is fine */

/* Takes an id that nobody has had. STATUS_NOMEM. */
MUST_USE enum status txid_take(struct txids *ids, struct txid *ret);
/* The outcome of its run is known, or nobody will ask for it any more. */
void txid_release(struct txids *ids, struct txid *id);

/* Sets the id, with the time and the commit's stamp. */
MUST_USE enum status txid_write(struct kv_tx *tx, const struct txid *id);

/*
 * The oldest ids that can be cleared; NULL if there are none. With `last_of_all` a span counts that
 * is not full yet. The caller owns them until it says how it went.
 */
struct txid_span *txids_claim(struct txids *ids, bool last_of_all);
void txids_cleared(struct txids *ids, struct txid_span *span);     /* they are gone */
void txids_not_cleared(struct txids *ids, struct txid_span *span); /* somebody else has to */

/* Clears them in a transaction. */
MUST_USE enum status txid_span_clear(const struct txids *ids, const struct txid_span *span,
				     struct kv_tx *tx);

/* ---- All ids of the store ---- */

/* Where they lie: a range that has every id, and a place in it that is drawn at random. */
struct txid_range {
	char begin_bytes[TXID_KEY_MAX_BYTES];
	char middle_bytes[TXID_KEY_MAX_BYTES];
	char end_bytes[TXID_KEY_MAX_BYTES];
	struct str begin;
	struct str middle;
	struct str end;
};

MUST_USE enum status txid_range_init(struct txid_range *ret);

#endif
