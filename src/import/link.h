/*
 * A connection to a server of Redis's protocol, by hiredis' reader and curl's sockets, which also
 * do TLS. One thread's.
 */
#ifndef FROND_IMPORT_LINK_H
#define FROND_IMPORT_LINK_H

#include <hiredis/hiredis.h>

#include "base/buf.h"
#include "base/status.h"

enum {
	LINK_REQUEST_BYTES = 1024 * 1024 * 1024, /* of requests that have not been sent yet */
	LINK_TIMEOUT_MS = 60 * 1000,             /* for a byte, either way */
};

struct link;

/*
 * `url`: redis:// or rediss:// (with TLS), [NAME:PASSWORD@]HOST[:PORT]. Logs in. Errors: STATUS_IO,
 * STATUS_UNAUTHORIZED, STATUS_INVALID.
 */
MUST_USE enum status link_open(const char *url, struct link **ret, struct err *err);
void link_close(struct link *l); /* NULL is fine */

/* The URL without name and password. */
const char *link_name(const struct link *l);

/* Adds a command, which is sent with the next answer that is asked for, or by link_flush(). */
void link_add(struct link *l, size_t count, const struct str *words);
/* The same of C strings, up to a NULL. */
void link_say(struct link *l, ...) __attribute__((sentinel));
MUST_USE enum status link_flush(struct link *l, struct err *err);

/* The answer to the next command, the caller's to freeReplyObject(). An error is an answer, too. */
MUST_USE enum status link_reply(struct link *l, redisReply **ret, struct err *err);

/* The same for a message that may come within `wait_ms`; `*ret` NULL: none has. */
MUST_USE enum status link_message(struct link *l, uint64_t wait_ms, redisReply **ret,
				  struct err *err);

/* One command of C strings, and its answer. */
MUST_USE enum status link_ask(struct link *l, redisReply **ret, struct err *err, ...)
	__attribute__((sentinel));

/* How many bytes wait to be sent. */
size_t link_waiting(const struct link *l);

static inline bool
reply_is_error(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ERROR;
}

/* Of a string, a status or an error. */
static inline struct str
reply_text(const redisReply *reply)
{
	return reply->str ? str_of(reply->str, (size_t)reply->len) : STR("");
}

#endif
