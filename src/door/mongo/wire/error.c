#include "door/mongo/wire/error.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

static const struct {
	int code;
	const char *name;
} names[] = {
	{ 1, "InternalError" },
	{ 2, "BadValue" },
	{ 4, "NoSuchKey" },
	{ 5, "GraphContainsCycle" },
	{ 6, "HostUnreachable" },
	{ 7, "HostNotFound" },
	{ 8, "UnknownError" },
	{ 9, "FailedToParse" },
	{ 11, "UserNotFound" },
	{ 13, "Unauthorized" },
	{ 14, "TypeMismatch" },
	{ 15, "Overflow" },
	{ 16, "InvalidLength" },
	{ 17, "ProtocolError" },
	{ 18, "AuthenticationFailed" },
	{ 20, "IllegalOperation" },
	{ 22, "InvalidBSON" },
	{ 23, "AlreadyInitialized" },
	{ 26, "NamespaceNotFound" },
	{ 27, "IndexNotFound" },
	{ 28, "PathNotViable" },
	{ 31, "RoleNotFound" },
	{ 40, "ConflictingUpdateOperators" },
	{ 43, "CursorNotFound" },
	{ 47, "NoMatchingDocument" },
	{ 48, "NamespaceExists" },
	{ 50, "MaxTimeMSExpired" },
	{ 52, "DollarPrefixedFieldName" },
	{ 53, "InvalidIdField" },
	{ 54, "NotSingleValueField" },
	{ 56, "EmptyFieldName" },
	{ 57, "DottedFieldName" },
	{ 59, "CommandNotFound" },
	{ 61, "ShardKeyNotFound" },
	{ 64, "WriteConcernTimeout" },
	{ 66, "ImmutableField" },
	{ 67, "CannotCreateIndex" },
	{ 68, "IndexAlreadyExists" },
	{ 72, "InvalidOptions" },
	{ 73, "InvalidNamespace" },
	{ 76, "NoReplicationEnabled" },
	{ 79, "UnknownReplWriteConcern" },
	{ 82, "FailPointSetFailed" },
	{ 85, "IndexOptionsConflict" },
	{ 86, "IndexKeySpecsConflict" },
	{ 89, "NetworkTimeout" },
	{ 91, "ShutdownInProgress" },
	{ 96, "OperationFailed" },
	{ 100, "UnsatisfiableWriteConcern" },
	{ 112, "WriteConflict" },
	{ 115, "CommandNotSupported" },
	{ 117, "ConflictingOperationInProgress" },
	{ 121, "DocumentValidationFailure" },
	{ 125, "CommandFailed" },
	{ 133, "FailedToSatisfyReadPreference" },
	{ 134, "ReadConcernMajorityNotAvailableYet" },
	{ 139, "JSInterpreterFailure" },
	{ 146, "ExceededMemoryLimit" },
	{ 165, "ViewDepthLimitExceeded" },
	{ 166, "CommandNotSupportedOnView" },
	{ 167, "OptionNotSupportedOnView" },
	{ 168, "InvalidPipelineOperator" },
	{ 171, "CannotIndexParallelArrays" },
	{ 175, "QueryPlanKilled" },
	{ 181, "AmbiguousIndexKeyPattern" },
	{ 186, "ClientMetadataCannotBeMutated" },
	{ 189, "PrimarySteppedDown" },
	{ 197, "InvalidIndexSpecificationOption" },
	{ 206, "NoSuchSession" },
	{ 207, "InvalidUUID" },
	{ 217, "IncompleteTransactionHistory" },
	{ 223, "IllegalOpMsgFlag" },
	{ 225, "TransactionTooOld" },
	{ 233, "TooManyDocumentSequences" },
	{ 238, "NotImplemented" },
	{ 239, "SnapshotTooOld" },
	{ 241, "ConversionFailure" },
	{ 251, "NoSuchTransaction" },
	{ 256, "TransactionCommitted" },
	{ 257, "TransactionTooLarge" },
	{ 260, "InvalidResumeToken" },
	{ 262, "ExceededTimeLimit" },
	{ 263, "OperationNotSupportedInTransaction" },
	{ 276, "IndexBuildAborted" },
	{ 280, "ChangeStreamFatalError" },
	{ 286, "ChangeStreamHistoryLost" },
	{ 288, "ChecksumMismatch" },
	{ 290, "TransactionExceededLifetimeLimitSeconds" },
	{ 291, "NoQueryExecutionPlans" },
	{ 322, "APIVersionError" },
	{ 323, "APIStrictError" },
	{ 334, "MechanismUnavailable" },
	{ 352, "UnsupportedOpQueryCommand" },
	{ 365, "TemporarilyUnavailable" },
	{ 462, "IngressRequestRateLimitExceeded" },
	{ 391, "ReauthenticationRequired" },
	{ 9001, "SocketException" },
	{ 10107, "NotWritablePrimary" },
	{ 10334, "BSONObjectTooLarge" },
	{ 11000, "DuplicateKey" },
	{ 11600, "InterruptedAtShutdown" },
	{ 11601, "Interrupted" },
	{ 11602, "InterruptedDueToReplStateChange" },
	{ 13435, "NotPrimaryNoSecondaryOk" },
	{ 13436, "NotPrimaryOrSecondary" },
	{ 14031, "OutOfDiskSpace" },
	{ 50768, "NotARetryableWriteCommand" },
};

const char *
mongo_code_name(int code, char buf[static 32])
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].code == code)
			return names[i].name;
	snprintf(buf, 32, "Location%d", code);
	return buf;
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
	static const int passing[] = { 6,    7,     89,    91,    189,   262,
				       9001, 10107, 11600, 11602, 13435, 13436 };

	for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
		if (passing[i] == code)
			return true;
	return false;
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
