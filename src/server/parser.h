/*
 * The request parser: bytes in, one request at a time out. llhttp reads the grammar; what it would
 * let pass and intermediaries might read differently is refused here: every line must end in CRLF,
 * no line may be folded, no NUL, exactly one Host, one way to tell a body's length. Bytes beyond
 * ASCII in a target are taken, and come out as escapes.
 *
 * Knows no sockets. How the bytes are cut into stretches makes no difference to what comes out.
 */
#ifndef FROND_SERVER_PARSER_H
#define FROND_SERVER_PARSER_H

#include <llhttp.h>

#include "base/buf.h"
#include "server/http.h"

enum {
	PARSER_TARGET_BYTES = 16 * 1024, /* 414 past it, which makes CouchDB's replicator halve */
	PARSER_HEADERS = 256,            /* 431 past it */
};

struct parser_span {
	uint32_t name_at;
	uint32_t name_len;
	uint32_t value_at;
	uint32_t value_len;
};

enum parser_result {
	PARSER_RESULT_MORE, /* everything was used, the request goes on */
	PARSER_RESULT_DONE, /* the request is complete; what is unused belongs to the next one */
	PARSER_RESULT_BAD,  /* `refusal` and `reason` say why; nothing more can be parsed */
};

struct parser {
	llhttp_t llhttp;
	/* Takes a stretch of the body; false (out of memory) stops the parser. */
	bool (*body)(void *arg, struct str data);
	void *body_arg;
	size_t header_bytes; /* the limit of the head */

	struct buf text; /* target, names and values, one behind the other */
	struct parser_span *spans;
	size_t span_count;
	size_t span_cap;
	size_t target_len;
	size_t path_at; /* in the target: behind scheme and authority, where there are any */

	size_t head_used;   /* bytes of the head so far */
	size_t gap;         /* bytes of framing since the request's begin or the last of the body */
	const char *unseen; /* where the check of line ends has come to */
	bool in_value;
	bool after_cr;
	bool after_lf;

	bool target_done;
	bool head_done;
	bool complete;
	bool keep_alive;      /* as far as the request goes */
	bool chunked;         /* else content_length is exact */
	bool expect_continue; /* the client waits for "100 Continue" */
	uint64_t content_length;
	int refusal; /* the status to refuse with; 0: none */
	const char *reason;
};

void parser_init(struct parser *p, size_t header_bytes, bool (*body)(void *arg, struct str data),
		 void *body_arg);
/* Ready for another request, keeping the memory. */
void parser_clear(struct parser *p);
void parser_release(struct parser *p);

/*
 * Parses until `data` ends or the request does. `ret_used` tells how much was used; once the head
 * is there (head_done), the accessors below work.
 */
enum parser_result parser_feed(struct parser *p, struct str data, size_t *ret_used);

struct str parser_method(const struct parser *p);
struct str parser_target(const struct parser *p);
unsigned parser_minor_version(const struct parser *p);
struct http_header parser_header(const struct parser *p, size_t i);
/* ptr NULL if there is none. */
struct str parser_find_header(const struct parser *p, struct str name);

#endif
