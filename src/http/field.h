/*
 * Values of header fields (RFC 9110, section 5.6): lists with commas, parameters behind semicolons,
 * quoted strings, weighted preferences, entity tags.
 *
 * Readers are lenient as the RFC asks: empty elements of a list are passed over, white space around
 * elements is dropped, a quoted string that is not closed ends with the value. Texts that come out
 * borrow from the value that went in. Pure functions: any thread.
 */
#ifndef FROND_HTTP_FIELD_H
#define FROND_HTTP_FIELD_H

#include "base/buf.h"
#include "base/str.h"

/* ---- Lists and parameters ---- */

/*
 * Takes the next element off `*rest`, the part of a list that has not been read yet. A comma inside
 * of a quoted string separates nothing. False at the end of the list.
 */
bool http_list_next(struct str *rest, struct str *ret);

/* What stands in front of the parameters: "text/html" of "text/html; charset=utf-8". */
struct str http_field_value(struct str field);

/*
 * The value of the first parameter of that name (in any case of letters), as it was written: see
 * http_unquote(). False, leaving *ret alone, if there is none.
 */
bool http_field_param(struct str field, struct str name, struct str *ret);

/* Appends the content of a quoted string, or a token as it is. */
void http_unquote(struct str written, struct buf *ret);

/*
 * Appends `text` as a quoted string. Control characters, which cannot stand in a header at all,
 * become percent-escapes.
 */
void http_quote(struct str text, struct buf *out);

/* Appends `text` without quotes, its control characters as percent-escapes. */
void http_write_text(struct str text, struct buf *out);

/* ---- What a client prefers ---- */

enum http_match {
	HTTP_MATCH_NONE,   /* the list says nothing of it */
	HTTP_MATCH_ANY,    /* "*", or "*" and "/" and "*" for a media type */
	HTTP_MATCH_FAMILY, /* "text" and "/" and "*" */
	HTTP_MATCH_NAME,
};

enum {
	HTTP_QUALITY_MAX = 1000, /* a q-value of 1 */
};

struct http_preference {
	enum http_match match;
	unsigned quality; /* thousandths; 0: not acceptable */
};

/*
 * What a list such as Accept or Accept-Encoding says of a media type or a coding. The most specific
 * element that matches counts, and of equally specific ones the one with the highest quality. A
 * q-value that is none counts as 1; other parameters of an element do not matter.
 */
struct http_preference http_preference_of(struct str list, struct str name);

/* ---- Entity tags ---- */

/*
 * True if a list of entity tags, as If-None-Match has it, names `tag` ("…" with its quotes). The
 * comparison is the weak one: a W/ in front of either makes no difference. "*" names no tag.
 */
bool http_etag_listed(struct str list, struct str tag);

/*
 * The trace id, 32 hexadecimal digits, of a `traceparent` (W3C Trace Context), borrowed from it.
 * Empty for a value that is none: whoever reads it goes on without.
 */
struct str http_trace_id(struct str traceparent);

#endif
