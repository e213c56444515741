/*
 * Attachments at the door: how they come in (att_in.c, multipart.c, att_put.c) and go out
 * (att_out.c, att_get.c, att_range.c). Bytes pass through in pieces in both directions; only what
 * fits a document's transaction is held in memory.
 */
#ifndef FROND_DOOR_COUCH_ATT_H
#define FROND_DOOR_COUCH_ATT_H

#include "door/couch/couch_int.h"
#include "model/revisioned/att_json.h"

enum {
	COUCH_ATTS_MEMORY_BYTES = 4 * 1000000, /* of a document's attachments, in its transaction */
	COUCH_BOUNDARY_BYTES = 200,            /* of a multipart body's boundary; RFC 2046 has 70 */
	COUCH_PART_HEADER_BYTES = 16 * 1024,   /* of a part's headers */
	COUCH_RANGES = 10,                     /* so many, and all of it is sent instead */
};

/* ---- Coming in (att_in.c) ---- */

/* The 412 for a stub that stands for nothing. */
MUST_USE enum status couch_missing_stub(struct str id, struct str name, struct couch_fail *fail);

/* The attachments that one request brings. */
struct couch_uploads {
	struct couch_req *r;
	struct rev_upload **items;
	size_t count;
	size_t cap;
	size_t memory; /* bytes that go into the document's own transaction */
	uint64_t touched_ns;
	bool taken; /* everything has become some revision's */
};

void couch_uploads_init(struct couch_uploads *u, struct couch_req *r);
/* Takes back what has not been taken. */
void couch_uploads_release(struct couch_uploads *u);

/* A new one of this type; `gzip`: what comes is gzipped already. r->db must be open. */
MUST_USE enum status couch_upload_begin(struct couch_uploads *u, const struct rev_att *att,
					bool gzip, struct rev_upload **ret);
/* More of it; the others are kept alive. */
MUST_USE enum status couch_upload_write(struct couch_uploads *u, struct rev_upload *upload,
					const struct rev_att *att, struct str data);
MUST_USE enum status couch_upload_end(struct couch_uploads *u, struct rev_upload *upload,
				      struct rev_att_edit *ret,
				      uint8_t ret_md5[REV_ATT_DIGEST_BYTES]);

struct couch_multipart;

/*
 * Loads what the document brings along: inline data and, from `parts` (NULL: there are none), what
 * follows. Afterwards couch_doc_edit() has all attachments. Opens r->db if it is not open.
 */
MUST_USE enum status couch_atts_load(struct couch_uploads *u, struct couch_doc *doc,
				     struct couch_multipart *parts);

/* ---- Multipart bodies (multipart.c) ---- */

/* Where the body comes from: as http_read(). */
typedef enum status couch_multipart_source(void *arg, struct str *ret);

struct couch_multipart {
	couch_multipart_source *source;
	void *arg;
	struct couch_fail *fail;
	char delimiter[COUCH_BOUNDARY_BYTES + 8]; /* CR LF, two dashes, the boundary */
	size_t delimiter_len;
	struct buf in;
	size_t at;         /* what is before it has been used */
	bool at_delimiter; /* a part has ended, and the next has not begun */
	bool broken;       /* the body ended too early */
};

/* `type`: the Content-Type, which names the boundary. `fail` is the caller's. */
MUST_USE enum status couch_multipart_init(struct couch_multipart *m, struct str type,
					  couch_multipart_source *source, void *arg,
					  struct couch_fail *fail);
/* The body of a request. */
MUST_USE enum status couch_multipart_open(struct couch_multipart *m, struct couch_req *r);
void couch_multipart_release(struct couch_multipart *m);
/* Goes on to the next part; its headers, valid until the next call. STATUS_NOT_FOUND: no more. */
MUST_USE enum status couch_multipart_next(struct couch_multipart *m, struct str *ret_headers);
/* The next piece of the part's content; STATUS_NOT_FOUND at its end. */
MUST_USE enum status couch_multipart_read(struct couch_multipart *m, struct str *ret);
/* The value of a header among a part's, or ptr NULL. */
struct str couch_part_header(struct str headers, struct str name);
/* A parameter such as `boundary` of a header's value, without quotes; ptr NULL without one. */
struct str couch_header_param(struct str value, struct str name);

/* ---- Going out (att_out.c) ---- */

enum couch_hole_kind {
	COUCH_HOLE_BASE64, /* the content, inside a JSON string */
	COUCH_HOLE_STORED, /* as it is stored */
};

/* True if the document's answer has the attachment itself, and not only a stub. */
bool couch_att_whole(const struct couch_doc_opts *opts, const struct rev_doc *doc,
		     const struct rev_branch *branch, size_t i);
bool couch_atts_any_whole(const struct couch_doc_opts *opts, const struct rev_doc *doc,
			  const struct rev_branch *branch);

/* Appends `,"_attachments":{…}`; nothing if there are none. */
MUST_USE enum status couch_atts_write(const struct couch_doc_out *d, struct buf *out);

/*
 * Appends a document and the attachments that it shows as one multipart/related body, without the
 * header that names `boundary`.
 */
MUST_USE enum status couch_related_write(const struct couch_doc_out *d, struct str boundary,
					 struct buf *out);

/* A name in a part's header: what would end it there is escaped, as browsers do it. */
void couch_header_write(struct str name, struct buf *out);

/* Sends the bytes of an attachment, [begin, end) of what is stored unless it is decoded. */
MUST_USE enum status couch_att_send(struct couch_snapshot *s, const struct rev_att *att,
				    bool decode, uint64_t begin, uint64_t end);

/* ---- Ranges (att_range.c) ---- */

struct couch_range {
	uint64_t begin;
	uint64_t end; /* behind the last byte */
};

/*
 * The Range header as CouchDB takes it, of `length` bytes. *ret_count 0: send all of it. False: it
 * asks for what is not there.
 */
bool couch_ranges_parse(struct str header, uint64_t length, struct couch_range ret[COUCH_RANGES],
			size_t *ret_count);

/* ---- Changing a document's attachments (att_put.c, att_form.c) ---- */

/* A new revision with other attachments. */
struct couch_att_change {
	struct str id;
	struct rev_id rev;               /* that is extended; pos 0: none */
	const struct couch_doc *doc;     /* the new revision's body and other attachments; NULL: as
					  * they are */
	const struct rev_att_edit *news; /* they come first, and replace others of their names */
	size_t news_count;
	struct str removed; /* ptr NULL: none */
};

MUST_USE enum status couch_att_change_run(struct couch_req *r,
					  const struct couch_att_change *change,
					  struct rev_id *ret_rev);

/* CouchDB's complaints about a name in a URL or a form. */
MUST_USE enum status couch_att_name_check(struct couch_req *r, struct str name);

/* ---- Endpoints ---- */

/* POST of a form to a document. */
MUST_USE enum status couch_doc_form(struct couch_req *r, struct str id);

MUST_USE enum status couch_att_get(struct couch_req *r, struct str id, struct str name);
MUST_USE enum status couch_att_put(struct couch_req *r, struct str id, struct str name);
MUST_USE enum status couch_att_delete(struct couch_req *r, struct str id, struct str name);

#endif
