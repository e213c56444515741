/*
 * Attachments that go out: their descriptions in a document, and their bytes, which pass through in
 * pieces.
 */
#ifndef FROND_DOOR_COUCH_DOC_ATT_OUT_H
#define FROND_DOOR_COUCH_DOC_ATT_OUT_H

#include "door/couch/admin/snapshot.h"
#include "door/couch/doc/doc_opts.h"

/* Of which attachments of a document the answer has the bytes, and not only stubs. */
struct couch_att_choice {
	bool none;
	bool all;
	uint64_t since_pos; /* otherwise: of those that are newer */
};

struct couch_att_choice couch_att_choose(const struct couch_doc_opts *opts,
					 const struct rev_branch *branch);
bool couch_att_whole(const struct couch_att_choice *choice, const struct rev_att *att);
bool couch_atts_any_whole(const struct couch_doc_opts *opts, const struct rev_doc *doc,
			  const struct rev_branch *branch);

/* Appends `,"_attachments":{…}`; nothing if there are none. */
MUST_USE enum status couch_atts_write(const struct couch_doc_out *d, struct buf *out);

enum {
	/*
	 * A gzipped attachment of so many stored bytes is inflated up to so many others before an
	 * answer promises it inflated. Of one with more, the first piece of a rev_att_reader is.
	 */
	COUCH_ATT_CHECK_STORED_BYTES = 1024 * 1024,
	COUCH_ATT_CHECK_BYTES = 4 * 1024 * 1024,
};

/* Fails with 406 if the attachment is stored as gzip, and is not valid as far as it is checked. */
MUST_USE enum status couch_att_check(struct couch_req *r, struct kv_tx *tx,
				     const struct rev_att *att);

/* Sends the stored bytes [begin, end) of an attachment. */
MUST_USE enum status couch_att_send(struct couch_snapshot *s, const struct rev_att *att,
				    uint64_t begin, uint64_t end);

/* A gzipped attachment that is sent inflated. */
struct couch_att_decoded {
	struct rev_att_reader *reader;
	struct str first; /* the piece that has been read already; empty if there is none */
};

/*
 * Checks the attachment before the answer's head is sent, and fails as couch_att_check() does.
 * After STATUS_OK the caller calls couch_att_send_decoded() or rev_att_reader_free(), once.
 */
MUST_USE enum status couch_att_open_decoded(struct couch_snapshot *s, const struct rev_att *att,
					    struct couch_att_decoded *ret);
/* Sends the whole. Frees the reader. */
MUST_USE enum status couch_att_send_decoded(struct couch_snapshot *s,
					    const struct couch_att_decoded *d);

/* A couch_hole_fill, whose argument is the struct couch_snapshot that is read. */
couch_hole_fill couch_att_fill;

#endif
