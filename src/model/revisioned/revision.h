/*
 * Revision ids and Sequences: their order, how clients write them, and what is refused.
 *
 * Ownership: what is returned lives in the arena given. Threading: none of it keeps anything.
 */
#ifndef FROND_MODEL_REVISION_H
#define FROND_MODEL_REVISION_H

#include "base/arena.h"
#include "base/buf.h"
#include "catalog/catalog.h"
#include "catalog/seq.h"
#include "kv/kv.h"

enum {
	REV_HASH_BYTES = 16, /* CouchDB's hashes; opaque ones, as clients make them, may differ */
	REV_HASH_LIMIT_BYTES = 512, /* of an opaque one */
};

/* Bytes are borrowed. {0, empty} is "none". */
struct rev_id {
	uint64_t pos;
	struct str hash; /* REV_HASH_BYTES bytes, or opaque text of another length */
};

/*
 * "3-9b2e…": a suffix of 32 characters must be hexadecimal, any other (UTF-8, REV_HASH_LIMIT_BYTES
 * at most, perhaps empty) is taken as it is. STATUS_INVALID ("Invalid rev format") otherwise. The
 * hash is in the arena. "0-…", as local documents have it, is read, and is no document's revision.
 */
MUST_USE enum status rev_id_parse(struct str text, struct arena *arena, struct rev_id *ret,
				  struct err *err);

/* Hashes of REV_HASH_BYTES in hexadecimal, opaque ones as they are (unescaped). */
void rev_id_write(struct rev_id rev, struct buf *ret);
bool rev_id_eq(struct rev_id a, struct rev_id b);

/* Winner order among heads: not deleted, then position, then hash bytes. <0, 0, >0. */
int rev_id_cmp(bool a_not_deleted, struct rev_id a, bool b_not_deleted, struct rev_id b);

/*
 * CouchDB's own revision hash: md5 over [Deleted, OldPos, OldHash|0, Body, Atts] in Erlang's
 * external term format, `term` being the body as struct doc has it; an empty one is that of `{}`.
 * `parent.pos` 0: none.
 */
void rev_hash(bool deleted, struct rev_id parent, struct str term, uint8_t ret[REV_HASH_BYTES]);

struct rev_att;

/* The same for a revision with attachments. */
void rev_hash_atts(bool deleted, struct rev_id parent, struct str term, const struct rev_att *atts,
		   size_t atts_count, uint8_t ret[REV_HASH_BYTES]);

/*
 * The hash that a client writes behind a revision's dash, or as one of `_revisions.ids`. A text of
 * 32 characters must be hexadecimal and becomes REV_HASH_BYTES bytes; any other text is opaque and
 * stays as it is. An opaque hash stands in an ETag as it was written, so it may consist only of
 * what RFC 9110 allows there: no space, no quote and no control character. STATUS_INVALID for any
 * other character, for bytes that are not UTF-8 and for more than REV_HASH_LIMIT_BYTES;
 * STATUS_LIMIT when the arena is full.
 */
MUST_USE enum status rev_hash_parse(struct str text, struct arena *arena, struct str *ret);

/*
 * STATUS_INVALID, with an explanation for the client, if `seq` lies beyond every Sequence that the
 * database can have given out: a reader that goes on after it would wait for ever. A Sequence is
 * compared within its Incarnation. One with a lower Incarnation than the database's is from before
 * the database moved or was restored, so all new changes lie behind it and it is fine.
 *
 * Where `tx` does not know the Sequence yet, a second transaction asks for the newest version and
 * the newest description: the Sequence may be of a commit that `tx` is too old to see. Otherwise
 * no key is read.
 */
MUST_USE enum status rev_seq_check_reached(struct kv_tx *tx, const struct catalog_db *db,
					   const struct catalog_seq *seq, struct err *err);

#endif
