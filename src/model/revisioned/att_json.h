/*
 * _attachments as documents have it in JSON: CouchDB's members, and data in base64. For whoever
 * reads documents from clients or files.
 */
#ifndef FROND_MODEL_ATT_JSON_H
#define FROND_MODEL_ATT_JSON_H

#include "model/revisioned/revisioned.h"

enum rev_att_kind {
	REV_ATT_KIND_STUB,
	REV_ATT_KIND_INLINE,  /* base64 in the JSON */
	REV_ATT_KIND_FOLLOWS, /* elsewhere: behind the document in a multipart body */
};

/* A member of _attachments. */
struct rev_att_json {
	enum rev_att_kind kind;
	struct rev_att_edit edit; /* complete but for what an upload fills in */
	struct str data;          /* INLINE: the string's JSON text, borrowed */
	bool has_length;          /* FOLLOWS: edit.att.encoded_length is known */
	bool has_digest;          /* FOLLOWS: edit.att.digest is what must come */
};

/*
 * Takes the object apart, in its order. STATUS_INVALID with CouchDB's complaint, also for names
 * that begin with '_' and for doubles; STATUS_DOC_TOO_LARGE past REV_ATTS_MAX; STATUS_LIMIT.
 */
MUST_USE enum status rev_atts_parse(struct str text, struct arena *arena, struct rev_att_json **ret,
				    size_t *ret_count, struct err *err);

/* STATUS_INVALID for "_x", and for a type that would not pass through a header. */
MUST_USE enum status rev_att_name_check(struct str name, struct err *err);
MUST_USE enum status rev_att_type_check(struct str type, struct err *err);

/* Whether a type, its parameters left aside, is among these, which may have wildcards. */
bool rev_att_type_in(struct str type, struct str patterns);

/*
 * Decodes the data of an INLINE one into its upload. STATUS_INVALID ("Invalid attachment data for
 * …"); otherwise as rev_upload_write().
 */
MUST_USE enum status rev_att_inline(const struct rev_att_json *att, struct rev_upload *upload,
				    struct err *err);

/*
 * The next piece of what an attachment stands for, in base64, as JSON has it: rev_att_reader_next()
 * of a decoding reader, with its failures. The piece is in `text`; what does not divide by three
 * waits in `carry`. Both are the caller's, empty at first, with REV_ATT_BASE64_BYTES of room.
 */
enum {
	REV_ATT_BASE64_BYTES = 2 * REV_ATT_CHUNK_BYTES,
};

MUST_USE enum status rev_att_base64_next(struct rev_att_reader *reader, struct kv_tx *tx,
					 struct buf *carry, struct buf *text, struct str *ret);

#endif
