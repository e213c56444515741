/* Failures as CouchDB's clients know them. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/log.h"
#include "base/metric.h"
#include "base/quote.h"
#include "doc/json.h"
#include "doc/json_value.h"
#include "door/couch/wire/error.h"
#include "kv/kv.h"
#include "loop/step.h"

static const struct {
	int code;
	const char *name;
	const char *reason;
	enum status status;
} errors[] = {
#define COUCH_ERROR_ROW(constant, ...) { __VA_ARGS__ },
	COUCH_ERRORS(COUCH_ERROR_ROW)
#undef COUCH_ERROR_ROW
};

static const enum couch_error by_status[STATUS_COUNT] = {
	[STATUS_OK] = COUCH_ERROR_INTERNAL,
	[STATUS_NOMEM] = COUCH_ERROR_UNAVAILABLE,
	[STATUS_LIMIT] = COUCH_ERROR_TOO_LARGE,
	[STATUS_BUSY] = COUCH_ERROR_BUSY,
	[STATUS_IO] = COUCH_ERROR_INTERNAL,
	[STATUS_FULL] = COUCH_ERROR_FULL,
	[STATUS_CORRUPT] = COUCH_ERROR_INTERNAL,
	[STATUS_NEWER] = COUCH_ERROR_INTERNAL,
	[STATUS_UNAVAILABLE] = COUCH_ERROR_UNAVAILABLE,
	[STATUS_STANDBY] = COUCH_ERROR_STANDBY,
	[STATUS_LOCKED] = COUCH_ERROR_UNAVAILABLE,
	[STATUS_TIMEOUT] = COUCH_ERROR_TIMEOUT,
	[STATUS_CANCELLED] = COUCH_ERROR_UNAVAILABLE,
	[STATUS_TOO_MANY] = COUCH_ERROR_TOO_MANY,
	[STATUS_STEPS] = COUCH_ERROR_TOO_LARGE,
	[STATUS_FUNCTION] = COUCH_ERROR_FUNCTION,
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
	[STATUS_DUPLICATE] = COUCH_ERROR_DUPLICATE,
	[STATUS_ATT_MISSING] = COUCH_ERROR_MISSING_STUB,
	[STATUS_PARTITION_FULL] = COUCH_ERROR_PARTITION_OVERFLOW,
	[STATUS_UNAUTHORIZED] = COUCH_ERROR_UNAUTHORIZED,
	[STATUS_FORBIDDEN] = COUCH_ERROR_FORBIDDEN,
	[STATUS_UNVETTED] = COUCH_ERROR_UNAVAILABLE,
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

	assert(error > COUCH_ERROR_NONE && error < COUCH_ERROR_COUNT);
	f->error = error;
	f->err.status = errors[error].status;
	f->reason = (struct str){ NULL, 0 };
	va_start(args, fmt);
	(void)vsnprintf(f->err.text, sizeof(f->err.text), fmt, args);
	va_end(args);
	return f->err.status;
}

enum status
couch_fail_function(struct couch_fail *f, struct str name, struct str reason, struct arena *arena)
{
	static const enum couch_error known[] = { COUCH_ERROR_FORBIDDEN, COUCH_ERROR_UNAUTHORIZED,
						  COUCH_ERROR_NOT_FOUND, COUCH_ERROR_METHOD };
	AUTO(buf_release) struct buf quoted = BUF_INIT_OF(SIZE_MAX, arena_part(arena));
	enum couch_error error = COUCH_ERROR_FUNCTION;
	struct json_value value;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (str_eq(name, str_from_cstr(errors[known[i]].name)))
			error = known[i];
	(void)couch_fail_set(f, error, "%s",
			     name.len ? QUOTE_SHOW(name) : errors[COUCH_ERROR_FUNCTION].name);
	if (json_value_read(reason, arena, &value, NULL) == STATUS_OK) {
		f->reason = arena_dup(arena, value.text);
	} else {
		quote_json(&quoted, reason);
		f->reason = buf_dup(&quoted, arena);
	}
	if (!f->reason.ptr || buf_status(&quoted) != STATUS_OK)
		f->reason = STR("null");
	return f->err.status;
}

/* True if the reason is the function's, and no later failure has taken its place. */
static bool
fail_is_of_function(const struct couch_fail *f, const char *name)
{
	return f->reason.ptr && f->error != COUCH_ERROR_NONE && strcmp(f->err.text, name) == 0;
}

enum status
couch_fail_entity_memory(struct couch_fail *f, const struct arena *arena)
{
	if (arena_is_starved(arena))
		return couch_fail_set(f, COUCH_ERROR_UNAVAILABLE, "out of memory");
	METRIC_REFUSED("request_bytes");
	return couch_fail_set(f, COUCH_ERROR_TOO_LARGE,
			      "the request entity is too large: the limit of a request's memory, "
			      "request_bytes, is %zu bytes",
			      arena_limit_bytes(arena));
}

enum status
couch_fail_body_bytes(struct couch_fail *f, size_t limit_bytes, size_t body_bytes)
{
	METRIC_REFUSED("max_http_request_size");
	return couch_fail_set(f, COUCH_ERROR_TOO_LARGE,
			      "the request entity is too large: the limit%s is %zu bytes",
			      limit_bytes == body_bytes ? ", max_http_request_size," : "",
			      limit_bytes);
}

bool
couch_fail_explains(const struct couch_fail *f, enum status status)
{
	return f->err.status == status && f->err.text[0] &&
	       strcmp(f->err.text, status_name(status)) != 0;
}

struct couch_answer
couch_fail_answer(enum status status, const struct couch_fail *f)
{
	enum couch_error error = f->error;

	if (error == COUCH_ERROR_NONE || f->err.status != status)
		error = by_status[status];
	if (error == COUCH_ERROR_FUNCTION && f->reason.ptr)
		return (struct couch_answer){ errors[error].code, f->err.text, error };
	return (struct couch_answer){ errors[error].code, errors[error].name, error };
}

#define TEXT_OF(number) #number
#define TEXT(number)    TEXT_OF(number)
#define KEY_BYTES       10000
#define VALUE_BYTES     100000
#define TX_BYTES        10000000

_Static_assert(KV_LIMIT_KEY_BYTES == KEY_BYTES && KV_LIMIT_VALUE_BYTES == VALUE_BYTES &&
		       KV_LIMIT_TX_BYTES == TX_BYTES,
	       "the reasons say what the limits are");

/*
 * Names the limit of the store that was passed, for a failure without an explanation. NULL if the
 * status is about no limit.
 */
static const char *
error_store_limit(enum status status)
{
	if (status == STATUS_KEY_TOO_LARGE)
		return "an id and a revision, or an attachment's name, are too long together: the "
		       "limit is " TEXT(KEY_BYTES) " bytes";
	if (status == STATUS_VALUE_TOO_LARGE)
		return "the document is too large: the limit of one value is " TEXT(
			VALUE_BYTES) " bytes";
	if (status == STATUS_TX_TOO_LARGE)
		return "the document is too large: the limit of one transaction's keys and values "
		       "is " TEXT(TX_BYTES) " bytes";
	return NULL;
}

/* The reason where there is no other. */
static const char *
error_reason(enum status status)
{
	if (status == STATUS_NOMEM)
		return "out of memory";
	if (status == STATUS_BUSY)
		return "others use what the request needs: try again later";
	if (status == STATUS_TX_CONFLICT)
		return "too many others write the same at once";
	return status_name(status);
}

/*
 * Logs a failure that is not the client's, such as a full disk or a lack of memory: for each status
 * at most one line in LOG_LIMIT_NS.
 */
static void
error_log(const char *event, int code, enum status status, struct str reason)
{
	static struct log_limit limits[STATUS_COUNT];
	uint64_t before;

	if (log_limit_pass(&limits[status], &before))
		log_event(code == 500 && status != STATUS_FUNCTION ? LOG_LEVEL_ERROR
								   : LOG_LEVEL_WARN,
			  event, "status=%s code=%d reason=\"%s\" before=%llu", status_name(status),
			  code, QUOTE_SHOW(reason), (unsigned long long)before);
}

/* The explanation of the failure; empty if it has none of its own. */
static struct str
error_said(enum status status, const struct couch_fail *f)
{
	/*
	 * An attempt that was retried may have left the explanation of another failure. The retry
	 * loop puts the status's name where there is no explanation, and that explains nothing
	 * either.
	 */
	if (couch_fail_explains(f, status))
		return str_from_cstr(f->err.text);
	return (struct str){ NULL, 0 };
}

void
couch_fail_log_cut(enum status status, const struct couch_fail *f)
{
	struct str said = error_said(status, f);

	error_log("answer_cut", couch_fail_answer(status, f).code, status,
		  said.len ? said : str_from_cstr(error_reason(status)));
}

/* Counts the refusals for a limit that a status or an error alone tells. */
static void
error_count_refusal(enum status status, enum couch_error error)
{
	if (status == STATUS_STEPS)
		METRIC_REFUSED("request_steps");
	else if (status == STATUS_TX_TOO_LARGE)
		METRIC_REFUSED("transaction_bytes");
	else if (status == STATUS_KEY_TOO_LARGE)
		METRIC_REFUSED("key_bytes");
	else if (status == STATUS_VALUE_TOO_LARGE)
		METRIC_REFUSED("value_bytes");
	else if (error == COUCH_ERROR_DOC_TOO_LARGE)
		METRIC_REFUSED("max_document_size");
	else if (error == COUCH_ERROR_ATT_TOO_LARGE)
		METRIC_REFUSED("max_attachment_size");
}

void
couch_fail_write(enum status status, const struct couch_fail *f, struct buf *out)
{
	struct couch_answer answer = couch_fail_answer(status, f);
	struct str said = error_said(status, f);
	struct str detail = { NULL, 0 };
	/* Not from the heap, so that a failure for lack of memory is explained, too. */
	char room[2 * ERR_TEXT_BYTES];
	struct buf reason = { .ptr = room, .cap = sizeof(room), .max_bytes = sizeof(room) };

	error_count_refusal(status, answer.error);
	if (fail_is_of_function(f, answer.name)) {
		if (answer.code >= 500)
			error_log("request_failed", answer.code, status, f->reason);
		buf_append_cstr(out, "\"error\":");
		json_write_str(out, str_from_cstr(answer.name));
		buf_append_cstr(out, ",\"reason\":");
		buf_append_str(out, f->reason);
		return;
	}
	if (status == STATUS_JSON_SYNTAX || status == STATUS_JSON_UTF8) {
		/* Clients compare CouchDB's words, so the details go into a member of their own. */
		buf_append_cstr(&reason, "invalid UTF-8 JSON");
		detail = said;
	} else if (said.len) {
		buf_append_str(&reason, said);
	} else if (status == STATUS_DELETED) {
		buf_append_cstr(&reason, "deleted");
	} else if (status == STATUS_STEPS) {
		buf_printf(&reason,
			   "the request needs more computing than one may take: the limit, "
			   "request_steps, is %llu steps",
			   (unsigned long long)step_limit());
	} else if (error_store_limit(status)) {
		buf_append_cstr(&reason, error_store_limit(status));
	} else {
		buf_append_cstr(&reason, errors[answer.error].reason);
	}
	if (reason.len == 0)
		buf_append_cstr(&reason, error_reason(status));
	if (answer.code >= 500)
		error_log("request_failed", answer.code, status, buf_str(&reason));

	buf_append_cstr(out, "\"error\":");
	json_write_str(out, str_from_cstr(answer.name));
	buf_append_cstr(out, ",\"reason\":");
	/* The text may hold what a client sent, and may have been cut inside a character. */
	quote_json(out, buf_str(&reason));
	if (detail.len) {
		buf_append_cstr(out, ",\"detail\":");
		quote_json(out, detail);
	}
}
