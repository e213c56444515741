/*
 * CouchDB's errors: what a failure is called at this door, and how a client gets to see it.
 *
 * A status says what kind of failure travels up; the explanation waits in a struct couch_fail that
 * the request owns. No state; any thread.
 */
#ifndef FROND_DOOR_COUCH_WIRE_ERROR_H
#define FROND_DOOR_COUCH_WIRE_ERROR_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"

/*
 * CouchDB's errors as clients see them: the one table of codes, names, the reason where a failure
 * has no explanation of its own, and the status that couch_fail_set() returns.
 *
 * NONE: no error was set, so the status decides. FUNCTION: a function of a design document failed;
 * the error's name is the one that the function gave. BUSY: like UNAVAILABLE for a client; others
 * have what the request needs.
 */
#define COUCH_ERRORS(ERROR)                                                                        \
	ERROR(NONE, 500, "internal_server_error", "", STATUS_INVALID)                              \
	ERROR(BAD_REQUEST, 400, "bad_request", "", STATUS_INVALID)                                 \
	ERROR(QUERY_PARSE, 400, "query_parse_error", "", STATUS_INVALID)                           \
	ERROR(DOC_VALIDATION, 400, "doc_validation", "", STATUS_INVALID)                           \
	ERROR(INVALID_DESIGN, 400, "invalid_design_doc", "", STATUS_INVALID)                       \
	ERROR(COMPILATION, 400, "compilation_error", "", STATUS_INVALID)                           \
	ERROR(ILLEGAL_DOCID, 400, "illegal_docid", "", STATUS_INVALID)                             \
	ERROR(ILLEGAL_PARTITION, 400, "illegal_partition", "", STATUS_INVALID)                     \
	ERROR(ILLEGAL_DB_NAME, 400, "illegal_database_name", "", STATUS_INVALID)                   \
	ERROR(DB_NAME_TOO_LONG, 400, "database_name_too_long", "", STATUS_INVALID)                 \
	ERROR(UNAUTHORIZED, 401, "unauthorized", "Name or password is incorrect.",                 \
	      STATUS_UNAUTHORIZED)                                                                 \
	ERROR(FORBIDDEN, 403, "forbidden", "", STATUS_FORBIDDEN)                                   \
	ERROR(PARTITION_OVERFLOW, 403, "partition_overflow", "", STATUS_PARTITION_FULL)            \
	ERROR(NOT_FOUND, 404, "not_found", "missing", STATUS_NOT_FOUND)                            \
	ERROR(METHOD, 405, "method_not_allowed", "", STATUS_INVALID)                               \
	ERROR(NOT_ACCEPTABLE, 406, "not_acceptable", "", STATUS_INVALID)                           \
	ERROR(CONFLICT, 409, "conflict", "Document update conflict.", STATUS_DOC_CONFLICT)         \
	ERROR(DUPLICATE, 409, "duplicate",                                                         \
	      "A unique index has these values from another document.", STATUS_DUPLICATE)          \
	ERROR(MISSING_REV, 409, "not_found", "missing_rev", STATUS_DOC_CONFLICT)                   \
	ERROR(PATCH_FAILED, 409, "patch_failed", "", STATUS_PATCH_FAILED)                          \
	ERROR(GONE, 410, "gone", "", STATUS_UNSUPPORTED)                                           \
	ERROR(FILE_EXISTS, 412, "file_exists",                                                     \
	      "The database could not be created, the file already exists.", STATUS_EXISTS)        \
	ERROR(MISSING_STUB, 412, "missing_stub", "", STATUS_ATT_MISSING)                           \
	ERROR(TOO_LARGE, 413, "too_large", "the request entity is too large", STATUS_LIMIT)        \
	ERROR(ATT_TOO_LARGE, 413, "attachment_too_large", "", STATUS_LIMIT)                        \
	ERROR(MD5, 400, "content_md5_mismatch", "Possible message corruption.", STATUS_INVALID)    \
	ERROR(RANGE, 416, "requested_range_not_satisfiable", "Requested range not satisfiable",    \
	      STATUS_INVALID)                                                                      \
	ERROR(DOC_TOO_LARGE, 413, "document_too_large", "the document is too large",               \
	      STATUS_DOC_TOO_LARGE)                                                                \
	ERROR(CONTENT_TYPE, 415, "bad_content_type", "", STATUS_INVALID)                           \
	ERROR(ALL_OR_NOTHING, 417, "not_implemented", "", STATUS_UNSUPPORTED)                      \
	ERROR(TOO_MANY, 429, "too_many_requests", "", STATUS_TOO_MANY)                             \
	ERROR(INTERNAL, 500, "internal_server_error", "", STATUS_IO)                               \
	ERROR(FUNCTION, 500, "unknown_error", "", STATUS_FUNCTION)                                 \
	ERROR(TIMEOUT, 500, "timeout",                                                             \
	      "The request could not be processed in a reasonable amount of time.",                \
	      STATUS_TIMEOUT)                                                                      \
	ERROR(NOT_IMPLEMENTED, 501, "not_implemented", "this feature is not implemented",          \
	      STATUS_UNSUPPORTED)                                                                  \
	ERROR(UNAVAILABLE, 503, "service unavailable", "", STATUS_UNAVAILABLE)                     \
	ERROR(STANDBY, 503, "standby", "", STATUS_STANDBY)                                         \
	ERROR(BUSY, 503, "service unavailable", "", STATUS_BUSY)                                   \
	ERROR(FULL, 507, "insufficient_storage", "the disk of the server is full", STATUS_FULL)    \
	/* Of queries: what is wrong with a selector, */                                           \
	ERROR(BAD_ARG, 400, "bad_arg", "", STATUS_INVALID)                                         \
	ERROR(INVALID_OPERATOR, 400, "invalid_operator", "", STATUS_INVALID)                       \
	ERROR(NOT_SUPPORTED, 400, "not_supported", "", STATUS_INVALID)                             \
	ERROR(INVALID_SELECTOR, 400, "invalid_selector", "", STATUS_INVALID)                       \
	ERROR(INVALID_SELECTOR_JSON, 400, "invalid_selector_json", "", STATUS_INVALID)             \
	ERROR(INVALID_FIELD_NAME, 400, "invalid_field_name", "", STATUS_INVALID)                   \
	ERROR(INVALID_FIELDS, 400, "invalid_fields", "", STATUS_INVALID)                           \
	ERROR(INVALID_FIELD, 400, "invalid_field", "", STATUS_INVALID)                             \
	/* with another member of the request, */                                                  \
	ERROR(INVALID_KEY, 400, "invalid_key", "", STATUS_INVALID)                                 \
	ERROR(MISSING_REQUIRED_KEY, 400, "missing_required_key", "", STATUS_INVALID)               \
	ERROR(INVALID_STRING, 400, "invalid_string", "", STATUS_INVALID)                           \
	ERROR(INVALID_EMPTY_STRING, 400, "invalid_empty_string", "", STATUS_INVALID)               \
	ERROR(INVALID_BOOLEAN, 400, "invalid_boolean", "", STATUS_INVALID)                         \
	ERROR(INVALID_POS_INTEGER, 400, "invalid_pos_integer", "", STATUS_INVALID)                 \
	ERROR(INVALID_NON_NEG_INTEGER, 400, "invalid_non_neg_integer", "", STATUS_INVALID)         \
	ERROR(INVALID_BOOKMARK, 400, "invalid_bookmark", "", STATUS_INVALID)                       \
	ERROR(INVALID_INDEX_NAME, 400, "invalid_index_name", "", STATUS_INVALID)                   \
	ERROR(INVALID_SORT_JSON, 400, "invalid_sort_json", "", STATUS_INVALID)                     \
	ERROR(INVALID_SORT_DIR, 400, "invalid_sort_dir", "", STATUS_INVALID)                       \
	ERROR(INVALID_SORT_FIELD, 400, "invalid_sort_field", "", STATUS_INVALID)                   \
	ERROR(UNSUPPORTED_MIXED_SORT, 400, "unsupported_mixed_sort", "", STATUS_INVALID)           \
	ERROR(INVALID_AGGREGATE, 400, "invalid_aggregate", "", STATUS_INVALID)                     \
	ERROR(UNKNOWN, 500, "unknown_error", "", STATUS_INVALID)                                   \
	/* and with an index, or the lack of one. */                                               \
	ERROR(NO_USABLE_INDEX, 400, "no_usable_index", "", STATUS_INVALID)                         \
	ERROR(INVALID_INDEX, 400, "invalid_index", "", STATUS_INVALID)                             \
	ERROR(INVALID_BULK_DOCS, 400, "invalid_bulk_docs", "", STATUS_INVALID)                     \
	ERROR(INVALID_DDOC_LANG, 400, "invalid_ddoc_lang", "", STATUS_INVALID)                     \
	ERROR(INVALID_PARTITIONED_OPTION, 400, "invalid_partitioned_option", "", STATUS_INVALID)   \
	ERROR(INVALID_LIST_INDEX_PARAMS, 500, "invalid_list_index_params", "", STATUS_INVALID)     \
	ERROR(ERROR_SAVING_DDOC, 500, "error_saving_ddoc", "", STATUS_INVALID)                     \
	ERROR(INDEX_NOT_IMPLEMENTED, 501, "index_not_implemented", "", STATUS_UNSUPPORTED)

enum couch_error {
#define COUCH_ERROR_CONSTANT(constant, code, name, reason, status) COUCH_ERROR_##constant,
	COUCH_ERRORS(COUCH_ERROR_CONSTANT)
#undef COUCH_ERROR_CONSTANT
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
