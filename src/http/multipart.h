/*
 * Reading multipart bodies (RFC 2046), such as multipart/related, mixed and form-data.
 *
 * The body is read as it arrives, in bounded memory: parts come one after another, and the content
 * of each in pieces, whatever its length. A part may be multipart itself: http_multipart_read() is
 * then the source of a second reader.
 *
 * A reader belongs to one request and is used by one fiber. Its source and the source's argument
 * are the caller's and outlive it.
 */
#ifndef FROND_HTTP_MULTIPART_H
#define FROND_HTTP_MULTIPART_H

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

enum {
	HTTP_BOUNDARY_BYTES = 256,             /* of a boundary; RFC 2046 allows 70 */
	HTTP_PART_HEAD_BYTES = 16 * 1024,      /* of the headers of one part */
	HTTP_MULTIPART_BUFFER_BYTES = 1 << 20, /* of the body, read and not yet used */
};

/*
 * Where a body comes from: its next stretch, valid until the next call, never empty and shorter
 * than half of HTTP_MULTIPART_BUFFER_BYTES. STATUS_NOT_FOUND at its end; any other failure, with
 * `err` set, is handed on as it is.
 */
typedef enum status http_multipart_source(void *arg, struct str *ret, struct err *err);

enum http_multipart_at {
	HTTP_MULTIPART_CONTENT,   /* of a part, or of what precedes the first boundary */
	HTTP_MULTIPART_DELIMITER, /* a part has ended, and its delimiter has been read */
	HTTP_MULTIPART_END,       /* behind the last boundary */
};

struct http_multipart {
	http_multipart_source *source;
	void *arg;
	struct buf delimiter; /* CR LF, two dashes, the boundary */
	struct buf in;        /* of the body; what lies before `used` has been handed out */
	size_t used;
	struct buf head; /* headers of the current part, unfolded, a CR LF behind each */
	enum http_multipart_at at;
	bool in_part;
	bool cut_off; /* the source ended before the last boundary */
};

/* True for "multipart/…". */
bool http_is_multipart(struct str content_type);

/*
 * `content_type` is the header that names the boundary; it is not used after the call.
 * STATUS_INVALID, explained, if it names none or one past HTTP_BOUNDARY_BYTES; STATUS_NOMEM. The
 * reader may be ended with http_multipart_fini() whatever came back.
 */
MUST_USE enum status http_multipart_init(struct http_multipart *m, struct str content_type,
					 http_multipart_source *source, void *arg, struct err *err);
void http_multipart_fini(struct http_multipart *m);

/*
 * Goes on to the next part, past what is left of the current one. STATUS_NOT_FOUND behind the last
 * part; STATUS_INVALID, explained, for a body that ends too early (then `cut_off` is set), for text
 * behind a boundary, and for headers past HTTP_PART_HEAD_BYTES; failures of the source. After a
 * failure the reader can only be ended.
 */
MUST_USE enum status http_multipart_next(struct http_multipart *m, struct err *err);

/* A header of the current part, valid until the next part; ptr NULL if it has none of that name. */
struct str http_multipart_header(const struct http_multipart *m, struct str name);

/*
 * An http_multipart_source of the current part's content; `m` is the struct http_multipart. A piece
 * is valid until the next call for this reader. STATUS_NOT_FOUND at the end of the part.
 */
http_multipart_source http_multipart_read;

#endif
