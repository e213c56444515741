/*
 * Percent-escapes (RFC 3986) in paths and queries, both ways, and the parameters of a query.
 *
 * Everything here is a pure function of its arguments and may be called on any thread. What is
 * written goes to a buffer or an arena of the caller's.
 */
#ifndef FROND_HTTP_ESCAPE_H
#define FROND_HTTP_ESCAPE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

enum {
	HTTP_QUERY_PARAMS = 256, /* in one query */
	HTTP_ESCAPE_BYTES = 3,   /* of one escaped byte: "%2F" */
};

/*
 * Appends `s` as one segment of a path, or as a name or value in a query: letters, digits and
 * "-_.~" as they are, every other byte as an escape.
 */
void http_escape(struct buf *b, struct str s);

/* The same, but the characters of `keep` stay as they are, too. */
void http_escape_keeping(struct buf *b, struct str s, const char *keep);

/* Writes the escape of one byte. */
void http_escape_byte(uint8_t byte, char ret[HTTP_ESCAPE_BYTES]);

/*
 * Undoes escapes, and takes '+' for a space if `plus` is set. The result is in the arena.
 * STATUS_INVALID for a broken escape, STATUS_NOMEM.
 */
MUST_USE enum status http_unescape(struct str s, bool plus, struct arena *arena, struct str *ret);

/* Takes the first parameter, as it is, off a query: up to the next '&' or ';', which goes, too. */
struct str http_cut_param(struct str *query);

struct http_param {
	struct str name;
	struct str value;
};

/*
 * The parameters of "a=1&b=2" or "a=1;b=2" (as CouchDB takes them, which some of its clients send),
 * in their order, unescaped and in the arena. Empty ones ("&&") are passed over. STATUS_INVALID for
 * a broken escape; STATUS_LIMIT past HTTP_QUERY_PARAMS; STATUS_NOMEM.
 */
MUST_USE enum status http_parse_query(struct str query, struct arena *arena,
				      struct http_param **ret, size_t *ret_count);

#endif
