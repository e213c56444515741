/*
 * The request parser takes bytes and gives one request at a time. llhttp reads the grammar. The
 * parser also refuses what llhttp would accept but intermediaries might read differently: every
 * line must end in CRLF, no line may be folded, no NUL may appear, an HTTP/1.1 request must have
 * exactly one Host header, and there must be only one statement of the body's length. Bytes beyond
 * ASCII in a target are accepted and become escapes.
 *
 * The parser knows no sockets. The result does not depend on how the bytes are divided among the
 * calls.
 */
#ifndef FROND_HTTP_PARSER_H
#define FROND_HTTP_PARSER_H

#include <llhttp.h>

#include "base/buf.h"
#include "http/http.h"

enum {
	/* a longer target gets a 414, after which the replicator of CouchDB halves its requests */
	PARSER_TARGET_BYTES = 16 * 1024,
	PARSER_HEADERS = 256, /* a request with more headers gets a 431 */
	PARSER_REASON_BYTES = 96,
};

struct parser_span {
	uint32_t name_at;
	uint32_t name_len;
	uint32_t value_at;
	uint32_t value_len;
};

enum parser_result {
	PARSER_RESULT_MORE, /* all bytes were used, and the request is not complete yet */
	PARSER_RESULT_DONE, /* the request is complete; unused bytes belong to the next one */
	PARSER_RESULT_BAD,  /* `refusal` and `reason` say why; nothing more can be parsed */
};

struct parser {
	llhttp_t llhttp;
	/*
	 * Receives the next bytes of the body. False means that memory is short and stops the
	 * parser.
	 */
	bool (*body)(void *arg, struct str data);
	void *body_arg;
	size_t header_bytes; /* the largest head that is accepted */

	struct buf text; /* the target, then the names and values of the headers, without gaps */
	struct parser_span *spans;
	size_t span_count;
	size_t span_cap;
	size_t target_len;
	size_t path_at; /* where the path begins in the target, after a scheme and an authority */

	/* bytes of the head so far; a byte of the target that is escaped counts as three */
	size_t head_used;
	/* bytes outside the body since the request's start or the last bytes of the body */
	size_t gap;
	const char *unseen; /* the first byte that the check of line ends has not seen */
	bool in_value;
	bool after_cr;
	bool after_lf;

	bool target_done;
	bool head_done;
	bool complete;
	bool keep_alive;      /* what the request asks for */
	bool chunked;         /* if false, content_length is exact */
	bool expect_continue; /* the client waits for "100 Continue" */
	uint64_t content_length;
	int refusal; /* the status to refuse with; 0: none */
	const char *reason;
	char limit_reason[PARSER_REASON_BYTES]; /* a reason that names a limit and its value */
};

void parser_init(struct parser *p, size_t header_bytes, bool (*body)(void *arg, struct str data),
		 void *body_arg);
/* Prepares the parser for another request and keeps the memory. */
void parser_clear(struct parser *p);
void parser_release(struct parser *p);

/*
 * Parses until `data` or the request ends. `*ret_used` gets the number of bytes that were used.
 * Once the head is complete (head_done), the accessors below work.
 */
enum parser_result parser_feed(struct parser *p, struct str data, size_t *ret_used);

struct str parser_method(const struct parser *p);
struct str parser_target(const struct parser *p);
unsigned parser_minor_version(const struct parser *p);
struct http_header parser_header(const struct parser *p, size_t i);
/* Returns the value of the first header with that name; `ptr` is NULL if there is none. */
struct str parser_find_header(const struct parser *p, struct str name);

#endif
