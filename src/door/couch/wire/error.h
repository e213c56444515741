/*
 * CouchDB's errors: what a failure is called at this door, and how a client gets to see it.
 *
 * A status says what kind of failure travels up; the explanation waits in a struct couch_fail that
 * the request owns. The one table of codes and names is in error.c. No state; any thread.
 */
#ifndef FROND_DOOR_COUCH_WIRE_ERROR_H
#define FROND_DOOR_COUCH_WIRE_ERROR_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"

/* CouchDB's errors as clients see them. error.c has the table of their codes and names. */
enum couch_error {
	COUCH_ERROR_NONE, /* none was set: the status decides */
	COUCH_ERROR_BAD_REQUEST,
	COUCH_ERROR_QUERY_PARSE,
	COUCH_ERROR_DOC_VALIDATION,
	COUCH_ERROR_INVALID_DESIGN,
	COUCH_ERROR_COMPILATION,
	COUCH_ERROR_ILLEGAL_DOCID,
	COUCH_ERROR_ILLEGAL_PARTITION,
	COUCH_ERROR_ILLEGAL_DB_NAME,
	COUCH_ERROR_DB_NAME_TOO_LONG,
	COUCH_ERROR_UNAUTHORIZED,
	COUCH_ERROR_FORBIDDEN,
	COUCH_ERROR_PARTITION_OVERFLOW,
	COUCH_ERROR_NOT_FOUND,
	COUCH_ERROR_METHOD,
	COUCH_ERROR_NOT_ACCEPTABLE,
	COUCH_ERROR_CONFLICT,
	COUCH_ERROR_DUPLICATE,
	COUCH_ERROR_MISSING_REV,
	COUCH_ERROR_PATCH_FAILED,
	COUCH_ERROR_GONE,
	COUCH_ERROR_FILE_EXISTS,
	COUCH_ERROR_MISSING_STUB,
	COUCH_ERROR_TOO_LARGE,
	COUCH_ERROR_ATT_TOO_LARGE,
	COUCH_ERROR_MD5,
	COUCH_ERROR_RANGE,
	COUCH_ERROR_DOC_TOO_LARGE,
	COUCH_ERROR_CONTENT_TYPE,
	COUCH_ERROR_ALL_OR_NOTHING,
	COUCH_ERROR_TOO_MANY,
	COUCH_ERROR_INTERNAL,
	COUCH_ERROR_FUNCTION, /* a design document's function failed; its name is the function's */
	COUCH_ERROR_TIMEOUT,
	COUCH_ERROR_NOT_IMPLEMENTED,
	COUCH_ERROR_UNAVAILABLE,
	COUCH_ERROR_BUSY, /* the same for a client; others have what the request needs */
	COUCH_ERROR_FULL,
	/* Of queries: what is wrong with a selector, … */
	COUCH_ERROR_BAD_ARG,
	COUCH_ERROR_INVALID_OPERATOR,
	COUCH_ERROR_NOT_SUPPORTED,
	COUCH_ERROR_INVALID_SELECTOR,
	COUCH_ERROR_INVALID_SELECTOR_JSON,
	COUCH_ERROR_INVALID_FIELD_NAME,
	COUCH_ERROR_INVALID_FIELDS,
	COUCH_ERROR_INVALID_FIELD,
	/* … with another member of the request, … */
	COUCH_ERROR_INVALID_KEY,
	COUCH_ERROR_MISSING_REQUIRED_KEY,
	COUCH_ERROR_INVALID_STRING,
	COUCH_ERROR_INVALID_EMPTY_STRING,
	COUCH_ERROR_INVALID_BOOLEAN,
	COUCH_ERROR_INVALID_POS_INTEGER,
	COUCH_ERROR_INVALID_NON_NEG_INTEGER,
	COUCH_ERROR_INVALID_BOOKMARK,
	COUCH_ERROR_INVALID_INDEX_NAME,
	COUCH_ERROR_INVALID_SORT_JSON,
	COUCH_ERROR_INVALID_SORT_DIR,
	COUCH_ERROR_INVALID_SORT_FIELD,
	COUCH_ERROR_UNSUPPORTED_MIXED_SORT,
	COUCH_ERROR_INVALID_AGGREGATE,
	COUCH_ERROR_UNKNOWN,
	/* … and with an index, or the lack of one. */
	COUCH_ERROR_NO_USABLE_INDEX,
	COUCH_ERROR_INVALID_INDEX,
	COUCH_ERROR_INVALID_BULK_DOCS,
	COUCH_ERROR_INVALID_DDOC_LANG,
	COUCH_ERROR_INVALID_PARTITIONED_OPTION,
	COUCH_ERROR_INVALID_LIST_INDEX_PARAMS,
	COUCH_ERROR_ERROR_SAVING_DDOC,
	COUCH_ERROR_INDEX_NOT_IMPLEMENTED,
	COUCH_ERROR_COUNT
};

/* Why something failed. `error` is set by the door; a lower layer sets `err` alone. */
struct couch_fail {
	enum couch_error error;
	struct err err;
	/* By couch_fail_function(): the reason as JSON text; err.text is the error's name. */
	struct str reason;
};

/* Records the failure and returns its status, which is never STATUS_OK. */
enum status couch_fail_set(struct couch_fail *f, enum couch_error error, const char *fmt, ...)
	PRINTF(3, 4);

/*
 * Records what a design document's function, or a worker for it, has said: an error's name and its
 * reason, which is taken as JSON text if it is some. "forbidden", "unauthorized", "not_found" and
 * "method_not_allowed" are CouchDB's errors of these names, all others are answered with 500. The
 * reason is copied into the arena, which the failure must not outlive.
 */
enum status couch_fail_function(struct couch_fail *f, struct str name, struct str reason,
				struct arena *arena);

/*
 * The 413 for a body that needs more memory than one request, whose arena this is, may take; a 503
 * if it was the system that had none.
 */
enum status couch_fail_entity_memory(struct couch_fail *f, const struct arena *arena);

/*
 * Refuses a body that is larger than `limit_bytes`. The setting is named if the limit is
 * `body_bytes`, which is what the setting says.
 */
MUST_USE enum status couch_fail_body_bytes(struct couch_fail *f, size_t limit_bytes,
					   size_t body_bytes);

/*
 * True if `f` explains a failure with this status. Where there is no explanation, the retry loop of
 * transactions puts the status's name.
 */
bool couch_fail_explains(const struct couch_fail *f, enum status status);

struct couch_answer {
	int code;
	const char *name;
	enum couch_error error;
};

/* How a client sees a failure with this status, explained by `f`. */
struct couch_answer couch_fail_answer(enum status status, const struct couch_fail *f);

/* Appends `"error":"…","reason":"…"`, and logs it if it is a 5xx. */
void couch_fail_write(enum status status, const struct couch_fail *f, struct buf *out);

/* Logs why an answer that had begun was cut off. */
void couch_fail_log_cut(enum status status, const struct couch_fail *f);

#endif
