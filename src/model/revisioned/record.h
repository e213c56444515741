/*
 * The records of documents with revisions, each put and parsed in one file and with a format number
 * of its own: entries of ALL_DOCS (entry_record.c), entries of CHANGES (change_record.c),
 * descriptions of attachments (att_record.c), records of uploads (upload_record.c), of purges and
 * of their readers (purge_record.c). Those of branches, root values and local documents have
 * headers of their own.
 *
 * Putting replaces what the buffer held. Parsing gives STATUS_NEWER for a record of a newer frond,
 * explained in `err` (or NULL), and STATUS_CORRUPT for what is no such record.
 *
 * Ownership: what is parsed borrows from the value, or lies in the arena if `keep`. Threading: none
 * of its own.
 */
#ifndef FROND_MODEL_RECORD_H
#define FROND_MODEL_RECORD_H

#include "catalog/format.h"
#include "model/revisioned/att.h"
#include "model/revisioned/list.h"
#include "model/revisioned/purges.h"
#include "model/revisioned/revision.h"

/* The newest formats. */
enum {
	REV_ENTRY_FORMAT = 1,
	REV_CHANGE_FORMAT = 1,
	REV_ATT_FORMAT = 1,
	REV_UPLOAD_FORMAT = 1,
	REV_PURGE_FORMAT = 1,
	REV_PURGE_MARK_FORMAT = 1,
};

/* (P, ALL_DOCS, id) = (format, position, hash): the winner of a document that is not deleted. */
void rev_entry_put(struct buf *value, struct rev_id winner);
MUST_USE enum status rev_entry_parse(struct str value, bool keep, struct arena *arena,
				     struct rev_id *ret, struct err *err);

/* (P, CHANGES, Sequence) = (format, id, position, hash, branch count, not deleted) */
void rev_change_put(struct buf *value, const struct rev_change *change);
/* Everything but the Sequence. */
MUST_USE enum status rev_change_parse(struct str value, bool keep, struct arena *arena,
				      struct rev_change *ret, struct err *err);

/*
 * Below a revision's key: (null, name) = (format, id, type, length, stored length, encoding,
 * digest, revpos, order). `path`: the key from the null on. Its strings always lie in the arena.
 */
void rev_att_put(struct buf *value, const struct rev_att *att, uint64_t order);
MUST_USE enum status rev_att_parse(struct str path, struct str value, struct arena *arena,
				   struct rev_att *ret, uint64_t *ret_order, struct err *err);

/* (ROOT, 3, P, id) = (format, begun, last): times in ms. */
struct rev_upload_record {
	uint64_t begun_ms;
	uint64_t last_ms; /* its last sign of life */
};

void rev_upload_record_put(struct buf *value, const struct rev_upload_record *record);
MUST_USE enum status rev_upload_record_parse(struct str value, struct rev_upload_record *ret,
					     struct err *err);

/*
 * (P, PURGES, "records", Sequence, part) = (format, purge's id, id, position, hash, …): heads of a
 * document that were purged. Putting is begun, then adds them one by one. What is parsed lies in
 * the arena, without the Sequence.
 */
void rev_purge_record_begin(struct buf *value, const uint8_t id[REV_PURGE_ID_BYTES],
			    struct str doc_id);
void rev_purge_record_add(struct buf *value, struct rev_id rev);
MUST_USE enum status rev_purge_record_parse(struct str value, struct arena *arena,
					    struct rev_purge *ret, struct err *err);

/*
 * (P, PURGES, "readers", name) = (format, incarnation, versionstamp): how far a reader has read.
 * (P, PURGES, "cleared") likewise: the newest record that has been cleared.
 */
void rev_purge_mark_put(struct buf *value, const struct catalog_seq *seq);
MUST_USE enum status rev_purge_mark_parse(struct str value, struct catalog_seq *ret,
					  struct err *err);

#endif
