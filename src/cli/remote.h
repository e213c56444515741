/*
 * A client of a CouchDB, or of frond itself, at a URL. One thread's.
 */
#ifndef FROND_CLI_REMOTE_H
#define FROND_CLI_REMOTE_H

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

enum {
	REMOTE_ANSWER_BYTES = 256 * 1024 * 1024, /* of an answer that is read whole */
	REMOTE_CONNECT_TIMEOUT_S = 30,
	REMOTE_STALL_SECONDS = 300, /* without a byte either way */
};

/* The environment variable that names a file of certificates to trust instead of the system's. */
#define REMOTE_TRUSTED_ENV "SSL_CERT_FILE"

struct remote;

/*
 * `url`: http:// or https://, with NAME:PASSWORD@ where the server asks for it, and a path where it
 * lives below one. STATUS_INVALID; nothing is connected yet.
 */
MUST_USE enum status remote_new(const char *url, struct remote **ret, struct err *err);
void remote_free(struct remote *r); /* NULL is fine */

/* The URL, with name and password, without a slash at the end. */
const char *remote_url(const struct remote *r);

/* The URL without name and password, for messages. */
const char *remote_name(const struct remote *r);

/*
 * From now on an answer may take any time to begin, as the answer to a backup does. A server that
 * has vanished is noticed nevertheless.
 */
void remote_be_patient(struct remote *r);

/* From now on a request has so many seconds, from its beginning to the end of its answer. */
void remote_hurry(struct remote *r, long seconds);

/*
 * Whole answers are given up with STATUS_IO when `stopped(arg)` is true, which is asked about once
 * a second, on the thread of the request.
 */
void remote_stop_when(struct remote *r, bool (*stopped)(void *arg), void *arg);

/*
 * One request with its whole answer in `ret`, which is cleared first. `path` begins with '/' and is
 * escaped; `body` is JSON, ptr NULL for none. STATUS_IO, explained, if there is no answer; whatever
 * HTTP status came is a success.
 */
MUST_USE enum status remote_request(struct remote *r, const char *method, struct str path,
				    struct str body, int *ret_status, struct buf *ret,
				    struct err *err);

/* Explains an answer that is an error: "400 bad_request: the reason", from its JSON body. */
enum status remote_refused(const struct remote *r, struct str path, int http_status,
			   struct str body, struct err *err);

/*
 * A GET whose answer is read as it comes; any HTTP status but 200 is a failure. Other requests of
 * the same remote can be made meanwhile.
 */
struct remote_stream;
MUST_USE enum status remote_open(struct remote *r, struct str path, struct remote_stream **ret,
				 struct err *err);
/* An input_reader (cli/input.h); `stream` is a struct remote_stream. A cut answer is STATUS_IO. */
MUST_USE enum status remote_read(void *stream, char *to, size_t n, size_t *ret, struct err *err);
void remote_close(struct remote_stream *stream); /* NULL is fine */

#endif
