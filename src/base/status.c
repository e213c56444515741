#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const status_names[STATUS_COUNT] = {
	[STATUS_OK] = "ok",
	[STATUS_NOMEM] = "nomem",
	[STATUS_LIMIT] = "limit",
	[STATUS_BUSY] = "busy",
	[STATUS_IO] = "io",
	[STATUS_FULL] = "full",
	[STATUS_CORRUPT] = "corrupt",
	[STATUS_NEWER] = "newer",
	[STATUS_UNAVAILABLE] = "unavailable",
	[STATUS_STANDBY] = "standby",
	[STATUS_LOCKED] = "locked",
	[STATUS_TIMEOUT] = "timeout",
	[STATUS_CANCELLED] = "cancelled",
	[STATUS_TOO_MANY] = "too_many",
	[STATUS_STEPS] = "steps",
	[STATUS_FUNCTION] = "function",
	[STATUS_TX_CONFLICT] = "tx_conflict",
	[STATUS_TX_TOO_OLD] = "tx_too_old",
	[STATUS_TX_UNKNOWN] = "tx_unknown",
	[STATUS_TX_USED] = "tx_used",
	[STATUS_TX_UNREADABLE] = "tx_unreadable",
	[STATUS_TX_TOO_LARGE] = "tx_too_large",
	[STATUS_KEY_TOO_LARGE] = "key_too_large",
	[STATUS_VALUE_TOO_LARGE] = "value_too_large",
	[STATUS_INVALID] = "invalid",
	[STATUS_UNSUPPORTED] = "unsupported",
	[STATUS_NOT_FOUND] = "not_found",
	[STATUS_DELETED] = "deleted",
	[STATUS_EXISTS] = "exists",
	[STATUS_DOC_CONFLICT] = "doc_conflict",
	[STATUS_DUPLICATE] = "duplicate",
	[STATUS_ATT_MISSING] = "att_missing",
	[STATUS_PARTITION_FULL] = "partition_full",
	[STATUS_UNAUTHORIZED] = "unauthorized",
	[STATUS_FORBIDDEN] = "forbidden",
	[STATUS_UNVETTED] = "unvetted",
	[STATUS_ANSWERED] = "answered",
	[STATUS_JSON_SYNTAX] = "json_syntax",
	[STATUS_JSON_UTF8] = "json_utf8",
	[STATUS_JSON_DEPTH] = "json_depth",
	[STATUS_DOC_TOO_LARGE] = "doc_too_large",
	[STATUS_PATH_TOO_LONG] = "path_too_long",
	[STATUS_PATCH_FAILED] = "patch_failed",
};

/* No character of UTF-8 is left in part. */
static void
err_end_cut(struct err *err)
{
	size_t end = sizeof(err->text) - 4;

	for (int i = 0; i < 3 && ((unsigned char)err->text[end] & 0xc0) == 0x80; i++)
		end--;
	memcpy(err->text + end, "...", 4);
}

void
err_write(struct err *err, enum status status, const char *fmt, ...)
{
	va_list args;
	int n;

	if (!err)
		return;

	err->status = status;
	va_start(args, fmt);
	n = vsnprintf(err->text, sizeof(err->text), fmt, args);
	va_end(args);
	if (n >= (int)sizeof(err->text))
		err_end_cut(err);
}

const char *
status_name(enum status status)
{
	return (unsigned)status < STATUS_COUNT ? status_names[status] : "unknown";
}
