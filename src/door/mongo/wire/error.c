#include "door/mongo/wire/error.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

const char *
mongo_code_name(int code, char buf[static 32])
{
	switch (code) {
#define MONGO_CODE_CASE(constant, code, name)                                                      \
	case MONGO_##constant:                                                                     \
		return name;
		MONGO_CODES(MONGO_CODE_CASE)
#undef MONGO_CODE_CASE
	default:
		snprintf(buf, 32, "Location%d", code);
		return buf;
	}
}

void
mongo_put_errmsg(struct bson_builder *b, const char *text)
{
	char kept[ERR_TEXT_BYTES];
	struct str rest = str_from_cstr(text);
	size_t len = 0, valid;

	if (rest.len > sizeof(kept))
		rest.len = sizeof(kept);
	for (; rest.len; rest = str_skip(rest, valid + (valid < rest.len))) {
		valid = utf8_valid_prefix(rest);
		memcpy(kept + len, rest.ptr, valid);
		len += valid;
	}
	bson_put_string(b, STR("errmsg"), str_of(kept, len));
}

bool
mongo_code_is_passing(int code)
{
	switch (code) {
	case MONGO_HOST_UNREACHABLE:
	case MONGO_HOST_NOT_FOUND:
	case MONGO_NETWORK_TIMEOUT:
	case MONGO_SHUTDOWN_IN_PROGRESS:
	case MONGO_PRIMARY_STEPPED_DOWN:
	case MONGO_EXCEEDED_TIME_LIMIT:
	case MONGO_SOCKET_EXCEPTION:
	case MONGO_NOT_WRITABLE_PRIMARY:
	case MONGO_INTERRUPTED_AT_SHUTDOWN:
	case MONGO_INTERRUPTED_DUE_TO_REPL_STATE_CHANGE:
	case MONGO_NOT_PRIMARY_NO_SECONDARY_OK:
	case MONGO_NOT_PRIMARY_OR_SECONDARY:
		return true;
	default:
		return false;
	}
}

bool
mongo_code_is_transient(int code)
{
	/* Fail points also have LockTimeout, SnapshotUnavailable, PreparedTransactionInProgress. */
	return code == MONGO_WRITE_CONFLICT || code == MONGO_NO_SUCH_TRANSACTION ||
	       code == MONGO_TRANSACTION_EXPIRED || code == MONGO_SNAPSHOT_TOO_OLD || code == 24 ||
	       code == 246 || code == 267;
}

bool
mongo_code_is_resumable(int code)
{
	/*
	 * Of a cluster that changes: StaleShardVersion, FailedToSatisfyReadPreference, StaleEpoch,
	 * RetryChangeStream, StaleConfig.
	 */
	return mongo_code_is_passing(code) || code == 63 || code == 133 || code == 150 ||
	       code == 234 || code == 13388;
}

enum mongo_code
mongo_code_of(enum status status)
{
	switch ((int)status) {
	case STATUS_NOMEM:
	case STATUS_LIMIT:
		return MONGO_EXCEEDED_MEMORY_LIMIT;
	case STATUS_DOC_TOO_LARGE:
		return MONGO_BSON_TOO_LARGE;
	case STATUS_BUSY:
	case STATUS_TX_CONFLICT:
	case STATUS_TX_TOO_OLD:
		return MONGO_WRITE_CONFLICT;
	case STATUS_TX_UNKNOWN:
	case STATUS_UNAVAILABLE:
	case STATUS_LOCKED:
		return MONGO_HOST_UNREACHABLE;
	case STATUS_STANDBY:
		return MONGO_NOT_WRITABLE_PRIMARY;
	case STATUS_FULL:
		return MONGO_OUT_OF_DISK;
	case STATUS_UNAUTHORIZED:
		return MONGO_AUTHENTICATION_FAILED;
	case STATUS_FORBIDDEN:
		return MONGO_UNAUTHORIZED;
	case STATUS_TOO_MANY:
		return MONGO_TEMPORARILY_UNAVAILABLE;
	case STATUS_INVALID:
	case STATUS_KEY_TOO_LARGE:
	case STATUS_VALUE_TOO_LARGE:
	case STATUS_PATH_TOO_LONG:
		return MONGO_BAD_VALUE;
	case STATUS_TX_TOO_LARGE:
		return MONGO_TRANSACTION_TOO_LARGE;
	case STATUS_UNSUPPORTED:
		return MONGO_NOT_IMPLEMENTED;
	case STATUS_NOT_FOUND:
		return MONGO_NAMESPACE_NOT_FOUND;
	case STATUS_EXISTS:
		return MONGO_NAMESPACE_EXISTS;
	case STATUS_DUPLICATE:
		return MONGO_DUPLICATE_KEY;
	case STATUS_TIMEOUT:
	case STATUS_STEPS:
		return MONGO_MAX_TIME_EXPIRED;
	case STATUS_CANCELLED:
		return MONGO_INTERRUPTED;
	default:
		return MONGO_INTERNAL_ERROR;
	}
}
