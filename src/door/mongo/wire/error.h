/* MongoDB's codes of errors and their names, and what becomes of a status. */
#ifndef FROND_DOOR_MONGO_WIRE_ERROR_H
#define FROND_DOOR_MONGO_WIRE_ERROR_H

#include "base/status.h"
#include "bson/bson.h"

/* Codes that have names of their own, and these names. */
#define MONGO_CODES(CODE)                                                                          \
	CODE(INTERNAL_ERROR, 1, "InternalError")                                                   \
	CODE(BAD_VALUE, 2, "BadValue")                                                             \
	CODE(NO_SUCH_KEY, 4, "NoSuchKey")                                                          \
	CODE(GRAPH_CYCLE, 5, "GraphContainsCycle")                                                 \
	CODE(HOST_UNREACHABLE, 6, "HostUnreachable")                                               \
	CODE(HOST_NOT_FOUND, 7, "HostNotFound")                                                    \
	CODE(UNKNOWN_ERROR, 8, "UnknownError")                                                     \
	CODE(FAILED_TO_PARSE, 9, "FailedToParse")                                                  \
	CODE(USER_NOT_FOUND, 11, "UserNotFound")                                                   \
	CODE(UNAUTHORIZED, 13, "Unauthorized")                                                     \
	CODE(TYPE_MISMATCH, 14, "TypeMismatch")                                                    \
	CODE(OVERFLOW, 15, "Overflow")                                                             \
	CODE(INVALID_LENGTH, 16, "InvalidLength")                                                  \
	CODE(PROTOCOL_ERROR, 17, "ProtocolError")                                                  \
	CODE(AUTHENTICATION_FAILED, 18, "AuthenticationFailed")                                    \
	CODE(ILLEGAL_OPERATION, 20, "IllegalOperation")                                            \
	CODE(INVALID_BSON, 22, "InvalidBSON")                                                      \
	CODE(ALREADY_INITIALIZED, 23, "AlreadyInitialized")                                        \
	CODE(NAMESPACE_NOT_FOUND, 26, "NamespaceNotFound")                                         \
	CODE(INDEX_NOT_FOUND, 27, "IndexNotFound")                                                 \
	CODE(PATH_NOT_VIABLE, 28, "PathNotViable")                                                 \
	CODE(ROLE_NOT_FOUND, 31, "RoleNotFound")                                                   \
	CODE(CONFLICTING_UPDATE_OPERATORS, 40, "ConflictingUpdateOperators")                       \
	CODE(CURSOR_NOT_FOUND, 43, "CursorNotFound")                                               \
	CODE(NO_MATCHING_DOCUMENT, 47, "NoMatchingDocument")                                       \
	CODE(NAMESPACE_EXISTS, 48, "NamespaceExists")                                              \
	CODE(MAX_TIME_EXPIRED, 50, "MaxTimeMSExpired")                                             \
	CODE(DOLLAR_PREFIXED, 52, "DollarPrefixedFieldName")                                       \
	CODE(INVALID_ID_FIELD, 53, "InvalidIdField")                                               \
	CODE(NOT_SINGLE_VALUE_FIELD, 54, "NotSingleValueField")                                    \
	CODE(EMPTY_FIELD_NAME, 56, "EmptyFieldName")                                               \
	CODE(DOTTED_FIELD_NAME, 57, "DottedFieldName")                                             \
	CODE(COMMAND_NOT_FOUND, 59, "CommandNotFound")                                             \
	CODE(SHARD_KEY_NOT_FOUND, 61, "ShardKeyNotFound")                                          \
	CODE(WRITE_CONCERN_TIMEOUT, 64, "WriteConcernTimeout")                                     \
	CODE(IMMUTABLE_FIELD, 66, "ImmutableField")                                                \
	CODE(CANNOT_CREATE_INDEX, 67, "CannotCreateIndex")                                         \
	CODE(INDEX_ALREADY_EXISTS, 68, "IndexAlreadyExists")                                       \
	CODE(INVALID_OPTIONS, 72, "InvalidOptions")                                                \
	CODE(INVALID_NAMESPACE, 73, "InvalidNamespace")                                            \
	CODE(NO_REPLICATION, 76, "NoReplicationEnabled")                                           \
	CODE(UNKNOWN_WRITE_CONCERN, 79, "UnknownReplWriteConcern")                                 \
	CODE(FAIL_POINT, 82, "FailPointSetFailed")                                                 \
	CODE(INDEX_OPTIONS_CONFLICT, 85, "IndexOptionsConflict")                                   \
	CODE(INDEX_KEY_SPECS_CONFLICT, 86, "IndexKeySpecsConflict")                                \
	CODE(NETWORK_TIMEOUT, 89, "NetworkTimeout")                                                \
	CODE(SHUTDOWN_IN_PROGRESS, 91, "ShutdownInProgress")                                       \
	CODE(OPERATION_FAILED, 96, "OperationFailed")                                              \
	CODE(UNSATISFIABLE_WRITE_CONCERN, 100, "UnsatisfiableWriteConcern")                        \
	CODE(WRITE_CONFLICT, 112, "WriteConflict")                                                 \
	CODE(COMMAND_NOT_SUPPORTED, 115, "CommandNotSupported")                                    \
	CODE(CONFLICTING_OPERATION, 117, "ConflictingOperationInProgress")                         \
	CODE(DOCUMENT_VALIDATION, 121, "DocumentValidationFailure")                                \
	CODE(COMMAND_FAILED, 125, "CommandFailed")                                                 \
	CODE(FAILED_TO_SATISFY_READ_PREFERENCE, 133, "FailedToSatisfyReadPreference")              \
	CODE(READ_CONCERN_MAJORITY_NOT_AVAILABLE_YET, 134, "ReadConcernMajorityNotAvailableYet")   \
	CODE(JS_INTERPRETER_FAILURE, 139, "JSInterpreterFailure")                                  \
	CODE(EXCEEDED_MEMORY_LIMIT, 146, "ExceededMemoryLimit")                                    \
	CODE(VIEW_DEPTH, 165, "ViewDepthLimitExceeded")                                            \
	CODE(NOT_ON_VIEW, 166, "CommandNotSupportedOnView")                                        \
	CODE(OPTION_NOT_ON_VIEW, 167, "OptionNotSupportedOnView")                                  \
	CODE(PIPELINE_OPERATOR, 168, "InvalidPipelineOperator")                                    \
	CODE(PARALLEL_ARRAYS, 171, "CannotIndexParallelArrays")                                    \
	CODE(QUERY_PLAN_KILLED, 175, "QueryPlanKilled")                                            \
	CODE(AMBIGUOUS_INDEX, 181, "AmbiguousIndexKeyPattern")                                     \
	CODE(METADATA_CANNOT_CHANGE, 186, "ClientMetadataCannotBeMutated")                         \
	CODE(PRIMARY_STEPPED_DOWN, 189, "PrimarySteppedDown")                                      \
	CODE(INVALID_INDEX_OPTION, 197, "InvalidIndexSpecificationOption")                         \
	CODE(NO_SUCH_SESSION, 206, "NoSuchSession")                                                \
	CODE(INVALID_UUID, 207, "InvalidUUID")                                                     \
	CODE(INCOMPLETE_HISTORY, 217, "IncompleteTransactionHistory")                              \
	CODE(ILLEGAL_OP_MSG_FLAG, 223, "IllegalOpMsgFlag")                                         \
	CODE(TRANSACTION_TOO_OLD, 225, "TransactionTooOld")                                        \
	CODE(TOO_MANY_DOCUMENT_SEQUENCES, 233, "TooManyDocumentSequences")                         \
	CODE(NOT_IMPLEMENTED, 238, "NotImplemented")                                               \
	CODE(SNAPSHOT_TOO_OLD, 239, "SnapshotTooOld")                                              \
	CODE(CONVERSION_FAILURE, 241, "ConversionFailure")                                         \
	CODE(NO_SUCH_TRANSACTION, 251, "NoSuchTransaction")                                        \
	CODE(TRANSACTION_COMMITTED, 256, "TransactionCommitted")                                   \
	CODE(TRANSACTION_TOO_LARGE, 257, "TransactionTooLarge")                                    \
	CODE(INVALID_RESUME_TOKEN, 260, "InvalidResumeToken")                                      \
	CODE(EXCEEDED_TIME_LIMIT, 262, "ExceededTimeLimit")                                        \
	CODE(NOT_IN_TRANSACTION, 263, "OperationNotSupportedInTransaction")                        \
	CODE(INDEX_BUILD_ABORTED, 276, "IndexBuildAborted")                                        \
	CODE(CHANGE_STREAM_FATAL, 280, "ChangeStreamFatalError")                                   \
	CODE(HISTORY_LOST, 286, "ChangeStreamHistoryLost")                                         \
	CODE(CHECKSUM_MISMATCH, 288, "ChecksumMismatch")                                           \
	CODE(TRANSACTION_EXPIRED, 290, "TransactionExceededLifetimeLimitSeconds")                  \
	CODE(NO_QUERY_PLANS, 291, "NoQueryExecutionPlans")                                         \
	CODE(API_VERSION, 322, "APIVersionError")                                                  \
	CODE(API_STRICT, 323, "APIStrictError")                                                    \
	CODE(MECHANISM_UNAVAILABLE, 334, "MechanismUnavailable")                                   \
	CODE(UNSUPPORTED_OP_QUERY, 352, "UnsupportedOpQueryCommand")                               \
	CODE(TEMPORARILY_UNAVAILABLE, 365, "TemporarilyUnavailable")                               \
	CODE(REAUTHENTICATION_REQUIRED, 391, "ReauthenticationRequired")                           \
	CODE(REQUEST_RATE, 462, "IngressRequestRateLimitExceeded")                                 \
	CODE(SOCKET_EXCEPTION, 9001, "SocketException")                                            \
	CODE(NOT_WRITABLE_PRIMARY, 10107, "NotWritablePrimary")                                    \
	CODE(BSON_TOO_LARGE, 10334, "BSONObjectTooLarge")                                          \
	CODE(DUPLICATE_KEY, 11000, "DuplicateKey")                                                 \
	CODE(INTERRUPTED_AT_SHUTDOWN, 11600, "InterruptedAtShutdown")                              \
	CODE(INTERRUPTED, 11601, "Interrupted")                                                    \
	CODE(INTERRUPTED_DUE_TO_REPL_STATE_CHANGE, 11602, "InterruptedDueToReplStateChange")       \
	CODE(NOT_PRIMARY_NO_SECONDARY_OK, 13435, "NotPrimaryNoSecondaryOk")                        \
	CODE(NOT_PRIMARY_OR_SECONDARY, 13436, "NotPrimaryOrSecondary")                             \
	CODE(OUT_OF_DISK, 14031, "OutOfDiskSpace")                                                 \
	CODE(NOT_RETRYABLE, 50768, "NotARetryableWriteCommand")

enum mongo_code {
	/* No client sees it: call_runs_again() makes something else of it. */
	MONGO_OTHER_COLLATION = -1,
#define MONGO_CODE_CONSTANT(constant, code, name) MONGO_##constant = (code),
	MONGO_CODES(MONGO_CODE_CONSTANT)
#undef MONGO_CODE_CONSTANT
	/* "Location16766" and so on. */
	MONGO_HASHED_ARRAY = 16766,
	MONGO_NO_SEARCH = 31082,
	MONGO_HASHED_FIELDS = 31303,
	MONGO_FIELD_DUPLICATE = 40413,
	MONGO_FIELD_MISSING = 40414,
	MONGO_FIELD_UNKNOWN = 40415,
	MONGO_BODY_AND_SEQUENCE = 40433,
	MONGO_NO_DB = 40571,
	MONGO_PASSWORD_EMPTY = 50687,
	MONGO_CURSOR_OF_NO_SESSION = 50736,
	MONGO_CURSOR_OF_SESSION = 50737,
	MONGO_CURSOR_OF_OTHER_SESSION = 50738,
	MONGO_CURSOR_OF_OTHER = 50740,
	MONGO_SAME_TRANSACTION = 50911,
	MONGO_USER_EXISTS = 51003,
	MONGO_RANGE_NO_ORDER = 51175,
	MONGO_NOT_ON_STANDALONE = 51300,
	MONGO_CONFIRM_VERSION = 7369100,
};

/* "BadValue"; "Location40415" for a code that has no name of its own. Valid until the next call. */
const char *mongo_code_name(int code, char buf[static 32]);

/*
 * Puts `errmsg`. Bytes that are not UTF-8 are left out: an error quotes only the beginning of a
 * long name, which may end inside a character.
 */
void mongo_put_errmsg(struct bson_builder *b, const char *text);

/* True for failures of a server that goes or comes: the same may succeed a moment later. */
bool mongo_code_is_passing(int code);

/* True for failures of a transaction that may not fail when it is done again. */
bool mongo_code_is_transient(int code);

/* True for failures that a change stream goes on behind. */
bool mongo_code_is_resumable(int code);

/* The one table from a status to MongoDB's codes. */
enum mongo_code mongo_code_of(enum status status);

#endif
