/* What goes wrong, as CouchDB's clients know it: the one table of codes and names. */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"
#include "door/couch/couch_int.h"

#define LOG_EVERY_NS (10 * 1000 * CLOCK_NS_PER_MS)

static const struct {
	int code;
	const char *name;
	const char *reason; /* when nobody has said anything better */
	enum status status; /* what couch_fail_set() returns */
} errors[COUCH_ERROR_COUNT] = {
	[COUCH_ERROR_NONE] = { 500, "internal_server_error", "", STATUS_INVALID },
	[COUCH_ERROR_BAD_REQUEST] = { 400, "bad_request", "", STATUS_INVALID },
	[COUCH_ERROR_QUERY_PARSE] = { 400, "query_parse_error", "", STATUS_INVALID },
	[COUCH_ERROR_DOC_VALIDATION] = { 400, "doc_validation", "", STATUS_INVALID },
	[COUCH_ERROR_INVALID_DESIGN] = { 400, "invalid_design_doc", "", STATUS_INVALID },
	[COUCH_ERROR_ILLEGAL_DOCID] = { 400, "illegal_docid", "", STATUS_INVALID },
	[COUCH_ERROR_ILLEGAL_DB_NAME] = { 400, "illegal_database_name", "", STATUS_INVALID },
	[COUCH_ERROR_DB_NAME_TOO_LONG] = { 400, "database_name_too_long", "", STATUS_INVALID },
	[COUCH_ERROR_UNAUTHORIZED] = { 401, "unauthorized", "Name or password is incorrect.",
				       STATUS_UNAUTHORIZED },
	[COUCH_ERROR_FORBIDDEN] = { 403, "forbidden", "", STATUS_FORBIDDEN },
	[COUCH_ERROR_NOT_FOUND] = { 404, "not_found", "missing", STATUS_NOT_FOUND },
	[COUCH_ERROR_METHOD] = { 405, "method_not_allowed", "", STATUS_INVALID },
	[COUCH_ERROR_NOT_ACCEPTABLE] = { 406, "not_acceptable", "", STATUS_INVALID },
	[COUCH_ERROR_CONFLICT] = { 409, "conflict", "Document update conflict.",
				   STATUS_DOC_CONFLICT },
	[COUCH_ERROR_MISSING_REV] = { 409, "not_found", "missing_rev", STATUS_DOC_CONFLICT },
	[COUCH_ERROR_PATCH_FAILED] = { 409, "patch_failed", "", STATUS_PATCH_FAILED },
	[COUCH_ERROR_GONE] = { 410, "gone", "", STATUS_UNSUPPORTED },
	[COUCH_ERROR_FILE_EXISTS] = { 412, "file_exists",
				      "The database could not be created, the file already exists.",
				      STATUS_EXISTS },
	[COUCH_ERROR_MISSING_STUB] = { 412, "missing_stub", "", STATUS_ATT_MISSING },
	[COUCH_ERROR_TOO_LARGE] = { 413, "too_large", "the request entity is too large",
				    STATUS_LIMIT },
	[COUCH_ERROR_DOC_TOO_LARGE] = { 413, "document_too_large", "the document is too large",
					STATUS_DOC_TOO_LARGE },
	[COUCH_ERROR_ATT_TOO_LARGE] = { 413, "attachment_too_large", "", STATUS_LIMIT },
	[COUCH_ERROR_MD5] = { 400, "content_md5_mismatch", "Possible message corruption.",
			      STATUS_INVALID },
	[COUCH_ERROR_RANGE] = { 416, "requested_range_not_satisfiable",
				"Requested range not satisfiable", STATUS_INVALID },
	[COUCH_ERROR_CONTENT_TYPE] = { 415, "bad_content_type", "", STATUS_INVALID },
	[COUCH_ERROR_ALL_OR_NOTHING] = { 417, "not_implemented", "", STATUS_UNSUPPORTED },
	[COUCH_ERROR_INTERNAL] = { 500, "internal_server_error", "", STATUS_IO },
	[COUCH_ERROR_TIMEOUT] = { 500, "timeout",
				  "The request could not be processed in a reasonable amount of "
				  "time.",
				  STATUS_TIMEOUT },
	[COUCH_ERROR_NOT_IMPLEMENTED] = { 501, "not_implemented", "this feature is not implemented",
					  STATUS_UNSUPPORTED },
	[COUCH_ERROR_UNAVAILABLE] = { 503, "service unavailable", "", STATUS_UNAVAILABLE },
};

static const enum couch_error by_status[STATUS_COUNT] = {
	[STATUS_OK] = COUCH_ERROR_INTERNAL,
	[STATUS_NOMEM] = COUCH_ERROR_UNAVAILABLE,
	[STATUS_LIMIT] = COUCH_ERROR_UNAVAILABLE,
	[STATUS_IO] = COUCH_ERROR_INTERNAL,
	[STATUS_CORRUPT] = COUCH_ERROR_INTERNAL,
	[STATUS_UNAVAILABLE] = COUCH_ERROR_UNAVAILABLE,
	[STATUS_LOCKED] = COUCH_ERROR_UNAVAILABLE,
	[STATUS_TIMEOUT] = COUCH_ERROR_TIMEOUT,
	[STATUS_CANCELLED] = COUCH_ERROR_UNAVAILABLE,
	[STATUS_TX_CONFLICT] = COUCH_ERROR_UNAVAILABLE,
	[STATUS_TX_TOO_OLD] = COUCH_ERROR_TIMEOUT,
	[STATUS_TX_UNKNOWN] = COUCH_ERROR_TIMEOUT,
	[STATUS_TX_USED] = COUCH_ERROR_INTERNAL,
	[STATUS_TX_UNREADABLE] = COUCH_ERROR_INTERNAL,
	[STATUS_TX_TOO_LARGE] = COUCH_ERROR_DOC_TOO_LARGE,
	[STATUS_KEY_TOO_LARGE] = COUCH_ERROR_BAD_REQUEST,
	[STATUS_VALUE_TOO_LARGE] = COUCH_ERROR_DOC_TOO_LARGE,
	[STATUS_INVALID] = COUCH_ERROR_BAD_REQUEST,
	[STATUS_UNSUPPORTED] = COUCH_ERROR_NOT_IMPLEMENTED,
	[STATUS_NOT_FOUND] = COUCH_ERROR_NOT_FOUND,
	[STATUS_DELETED] = COUCH_ERROR_NOT_FOUND,
	[STATUS_EXISTS] = COUCH_ERROR_FILE_EXISTS,
	[STATUS_DOC_CONFLICT] = COUCH_ERROR_CONFLICT,
	[STATUS_ATT_MISSING] = COUCH_ERROR_MISSING_STUB,
	[STATUS_UNAUTHORIZED] = COUCH_ERROR_UNAUTHORIZED,
	[STATUS_FORBIDDEN] = COUCH_ERROR_FORBIDDEN,
	[STATUS_JSON_SYNTAX] = COUCH_ERROR_BAD_REQUEST,
	[STATUS_JSON_UTF8] = COUCH_ERROR_BAD_REQUEST,
	[STATUS_JSON_DEPTH] = COUCH_ERROR_BAD_REQUEST,
	[STATUS_DOC_TOO_LARGE] = COUCH_ERROR_DOC_TOO_LARGE,
	[STATUS_PATH_TOO_LONG] = COUCH_ERROR_DOC_VALIDATION,
	[STATUS_PATCH_FAILED] = COUCH_ERROR_PATCH_FAILED,
};

enum status
couch_fail_set(struct couch_fail *f, enum couch_error error, const char *fmt, ...)
{
	va_list args;

	f->error = error;
	f->err.status = errors[error].status;
	va_start(args, fmt);
	(void)vsnprintf(f->err.text, sizeof(f->err.text), fmt, args);
	va_end(args);
	return f->err.status;
}

struct couch_answer
couch_fail_answer(enum status status, const struct couch_fail *f)
{
	enum couch_error error = f->error;

	if (error == COUCH_ERROR_NONE || f->err.status != status)
		error = by_status[status];
	return (struct couch_answer){ errors[error].code, errors[error].name, error };
}

_Static_assert(KV_LIMIT_KEY_BYTES == 10000, "the reason for a key too large says so");

/* The last resort, where the error's name alone would not do. */
static const char *
reason_of(enum status status)
{
	if (status == STATUS_NOMEM)
		return "out of memory";
	if (status == STATUS_LIMIT)
		return "a limit of this server was reached";
	if (status == STATUS_KEY_TOO_LARGE)
		return "an id and a revision, or an attachment's name, are too long together: the "
		       "limit is 10000 bytes";
	if (status == STATUS_TX_CONFLICT)
		return "too many others write the same at once";
	return status_name(status);
}

/* What an operator has to know, such as a full disk; of many in a row, one in ten seconds. */
static void
log_failure(enum status status, struct str reason)
{
	static _Atomic uint64_t not_before_ns;
	static _Atomic uint64_t untold;
	uint64_t now = clock_mono_ns();
	uint64_t limit = atomic_load(&not_before_ns);

	if (now < limit ||
	    !atomic_compare_exchange_strong(&not_before_ns, &limit, now + LOG_EVERY_NS)) {
		atomic_fetch_add(&untold, 1);
		return;
	}
	log_event(LOG_LEVEL_ERROR, "request_failed", "status=%s reason=\"%.*s\" before=%llu",
		  status_name(status), STR_ARG(reason),
		  (unsigned long long)atomic_exchange(&untold, 0));
}

void
couch_fail_write(enum status status, const struct couch_fail *f, struct buf *out)
{
	struct couch_answer answer = couch_fail_answer(status, f);
	struct str said = { NULL, 0 };
	struct str detail = { NULL, 0 };
	struct buf reason = BUF_INIT(2 * ERR_TEXT_BYTES);

	/*
	 * An explanation left behind by an attempt that was retried is of another failure, and the
	 * status's own name, which the retry loop puts where there is none, explains nothing.
	 */
	if (f->err.status == status && strcmp(f->err.text, status_name(status)) != 0)
		said = str_from_cstr(f->err.text);

	if (status == STATUS_JSON_SYNTAX || status == STATUS_JSON_UTF8 ||
	    status == STATUS_JSON_DEPTH) {
		/* CouchDB's words alone, which clients compare. */
		buf_append_cstr(&reason, "invalid UTF-8 JSON");
		detail = said;
	} else if (said.len) {
		buf_append_str(&reason, said);
	} else if (status == STATUS_DELETED) {
		buf_append_cstr(&reason, "deleted");
	} else {
		buf_append_cstr(&reason, errors[answer.error].reason);
	}
	if (reason.len == 0)
		buf_append_cstr(&reason, reason_of(status));
	if (answer.error == COUCH_ERROR_INTERNAL)
		log_failure(status, buf_str(&reason));

	buf_append_cstr(out, "\"error\":");
	json_write_str(out, str_from_cstr(answer.name));
	buf_append_cstr(out, ",\"reason\":");
	/* A cut text may end inside of a character. */
	json_write_str(out, str_of(reason.ptr, utf8_valid_prefix(buf_str(&reason))));
	if (detail.len) {
		buf_append_cstr(out, ",\"detail\":");
		json_write_str(out, str_of(detail.ptr, utf8_valid_prefix(detail)));
	}
	buf_release(&reason);
}
