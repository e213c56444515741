/*
 * The errors of CQL, one table: the protocol's number and Cassandra's text of each. Clients and
 * their tests look for parts of these texts, so they are Cassandra's words where it has some.
 *
 * Doors add theirs here, too: a text is written once.
 */
#ifndef FROND_CQL_ERROR_H
#define FROND_CQL_ERROR_H

/* Numbers of the protocol. */
enum cql_code {
	CQL_CODE_SERVER = 0x0000,
	CQL_CODE_PROTOCOL = 0x000a,
	CQL_CODE_LOGIN = 0x0100,
	CQL_CODE_UNAVAILABLE = 0x1000,
	CQL_CODE_OVERLOADED = 0x1001,
	CQL_CODE_TRUNCATE = 0x1003,
	CQL_CODE_WRITE_TIMEOUT = 0x1100,
	CQL_CODE_READ_TIMEOUT = 0x1200,
	CQL_CODE_READ_FAILURE = 0x1300,
	CQL_CODE_FUNCTION = 0x1400,
	CQL_CODE_WRITE_FAILURE = 0x1500,
	CQL_CODE_CAS_UNKNOWN = 0x1700,
	CQL_CODE_SYNTAX = 0x2000,
	CQL_CODE_UNAUTHORIZED = 0x2100,
	CQL_CODE_INVALID = 0x2200,
	CQL_CODE_CONFIG = 0x2300,
	CQL_CODE_EXISTS = 0x2400,
	CQL_CODE_UNPREPARED = 0x2500,
};

/* X(name, protocol's number, text) */
#define CQL_ERRORS(X)                                                                              \
	/* Syntax. {} are line, column and what was found. */                                      \
	X(SYNTAX, SYNTAX, "line {}:{} no viable alternative at input '{}'")                        \
	X(MISMATCH, SYNTAX, "line {}:{} mismatched input '{}' expecting {}")                       \
	X(MISMATCH_END, SYNTAX, "line {}:{} mismatched input '<EOF>' expecting {}")                \
	X(EXTRANEOUS, SYNTAX, "line {}:{} extraneous input '{}' expecting <EOF>")                  \
	X(CHARACTER, SYNTAX, "line {}:{} no viable alternative at character '{}'")                 \
	X(TOO_DEEP, SYNTAX, "line {}:{} more than CQL_DEPTH ({}) things inside each other")        \
	X(TOO_LONG, SYNTAX, "the statement has more than CQL_STATEMENT_BYTES ({}) bytes")          \
	X(TOO_MANY_ELEMENTS, SYNTAX, "line {}:{} more than CQL_ELEMENTS ({}) elements")            \
	X(TOO_MANY_MARKERS, SYNTAX, "line {}:{} more than CQL_MARKERS ({}) bind variables")        \
	X(REPEATED_CLAUSE, SYNTAX, "line {}:{} {}")                                                \
	X(UTF8, PROTOCOL, "Cannot decode string as UTF8")                                          \
	X(NAME_TOO_LONG, INVALID,                                                                  \
	  "{} name must not be empty, more than {} characters long, or contain non-alphanumeric-"  \
	  "underscore characters (got \"{}\")")                                                    \
	X(UNSUPPORTED, INVALID, "{} is not supported")                                             \
	X(KEYSPACE_MARKER, SYNTAX, "line {}:{} Bind variables cannot be used for keyspace names")  \
	X(MULTIPLE_SET, SYNTAX, "Multiple incompatible setting of column {}")                      \
	X(UNMATCHED, INVALID, "Unmatched column names/values")                                     \
	X(TTL_REPEATED, SYNTAX, "Multiple definitions for property '{}'")                          \
	X(ONLY_PLUS, SYNTAX,                                                                       \
	  "line {}:{} Only expressions of the form X = X + <value> are supported.")                \
	X(ONLY_MINUS, SYNTAX,                                                                      \
	  "line {}:{} Only expressions of the form X = X - <value> are supported.")                \
	X(ONLY_PREPEND, SYNTAX,                                                                    \
	  "line {}:{} Only expressions of the form X = <value> + X are supported.")                \
	/* Types. */                                                                               \
	X(UNKNOWN_TYPE, INVALID, "Unknown type {}")                                                \
	X(UNKNOWN_TYPE_OF, INVALID, "Unknown type {}.{}")                                          \
	X(UDT_ELSEWHERE, INVALID,                                                                  \
	  "Statement on keyspace {} cannot refer to a user type in keyspace {}; user types can"    \
	  " only be used in the keyspace they are defined in")                                     \
	X(TYPE_SYNTAX, SYNTAX, "Could not parse the type {}")                                      \
	X(TYPE_LARGE, INVALID,                                                                     \
	  "a type has at most CQL_TYPE_PARTS ({}) others in it, CQL_DEPTH ({}) inside each other") \
	X(UNFROZEN, INVALID, "Non-frozen collections are not allowed inside collections: {}")      \
	X(UNFROZEN_UDT, INVALID, "Non-frozen UDTs are not allowed inside collections: {}")         \
	X(UNFROZEN_IN_UDT, INVALID,                                                                \
	  "Non-frozen UDTs with nested non-frozen collections are not"                             \
	  " supported")                                                                            \
	X(FROZEN_NATIVE, INVALID,                                                                  \
	  "frozen<> is only allowed on collections, tuples, and user-defined types (got {})")      \
	X(COUNTER_INSIDE, INVALID, "Counters are not allowed inside {}: {}")                       \
	X(DURATION_INSIDE, INVALID, "Durations are not allowed {}: {}")                            \
	X(CUSTOM_TYPE, INVALID, "Custom types are not supported: {}")                              \
	/* Values. */                                                                              \
	X(UNSET, INVALID, "Invalid unset value for {}")                                            \
	X(MARKER_COUNT, INVALID, "Invalid amount of bind variables")                               \
	X(NULL_IN_COLLECTION, INVALID, "null is not supported inside collections")                 \
	X(UNSET_IN_COLLECTION, INVALID, "unset value is not supported inside collections")         \
	X(INVALID_CONSTANT, INVALID, "Invalid {} constant ({}) for \"{}\" of type {}")             \
	X(INVALID_VALUE, INVALID, "{}")                                                            \
	X(LENGTH, INVALID, "Expected {} ({})")                                                     \
	X(LENGTH_SHORT, INVALID, "Not enough bytes to read {}")                                    \
	X(TRAILING, INVALID, "Unexpected extraneous bytes after {}")                               \
	X(BAD_TEXT, INVALID, "String didn't validate.")                                            \
	X(BAD_ASCII, INVALID, "Invalid byte for ascii: {}")                                        \
	X(BAD_BOOLEAN, INVALID, "Unable to make boolean from '{}'")                                \
	X(BAD_INTEGER, INVALID, "Unable to make {} from '{}'")                                     \
	X(BAD_DATE, INVALID, "Unable to coerce '{}' to a formatted date (long)")                   \
	X(BAD_DAY, INVALID, "Unable to coerce '{}' to a formatted date (long)")                    \
	X(BAD_TIME, INVALID, "Unable to coerce '{}' to a formatted time (long)")                   \
	X(BAD_UUID, INVALID, "Unable to make UUID from '{}'")                                      \
	X(BAD_TIMEUUID, INVALID, "TimeUUID supports only version 1 UUIDs")                         \
	X(BAD_INET, INVALID, "Unable to make inet address from '{}'")                              \
	X(BAD_BLOB, INVALID, "{}")                                                                 \
	X(BAD_COPY, INVALID, "Unable to make {} from '{}'")                                        \
	X(BAD_DURATION, INVALID, "Unable to convert '{}' to a duration")                           \
	X(DURATION_ORDER, INVALID,                                                                 \
	  "Invalid duration. The units should be in the following order: {}")                      \
	X(DURATION_LARGE, INVALID,                                                                 \
	  "Invalid duration. The total number of {} must be less or equal to {}")                  \
	X(DURATION_REPEATED, INVALID, "Invalid duration. The {} are specified multiple times")     \
	X(DURATION_WIDE, INVALID, "The duration {} must be a 32 bits integer. Was: {}")            \
	X(DURATION_SIGNS, INVALID,                                                                 \
	  "The duration months, days and nanoseconds must be all of the same sign ({}, {}, {})")   \
	X(BAD_JSONB, INVALID, "Invalid JSON value for jsonb: {}")                                  \
	X(LIST_LITERAL, INVALID, "Invalid list literal for {} of type {}")                         \
	X(SET_LITERAL, INVALID, "Invalid set literal for {} of type {}")                           \
	X(MAP_LITERAL, INVALID, "Invalid map literal for {} of type {}")                           \
	X(TUPLE_LITERAL, INVALID, "Invalid tuple type literal for {} of type {}")                  \
	X(UDT_LITERAL, INVALID, "Invalid user type literal for {} of type {}")                     \
	X(LIST_ELEMENT, INVALID, "Invalid list literal for {}: value {} is not of type {}")        \
	X(SET_ELEMENT, INVALID, "Invalid set literal for {}: value {} is not of type {}")          \
	X(MAP_KEY, INVALID, "Invalid map literal for {}: key {} is not of type {}")                \
	X(MAP_VALUE, INVALID, "Invalid map literal for {}: value {} is not of type {}")            \
	X(TUPLE_ELEMENT, INVALID, "Invalid tuple literal for {}: component {} is not of type {}")  \
	X(TUPLE_COUNT, INVALID,                                                                    \
	  "Invalid tuple literal for {}: too many elements. Type {} expects {} but got {}")        \
	X(TUPLE_SHORT, INVALID,                                                                    \
	  "Invalid tuple literal for {}: not enough elements. Type {} expects {} but got {}")      \
	X(TUPLE_BYTES, INVALID, "Invalid remaining data after end of tuple value")                 \
	X(UDT_FIELD, INVALID, "Invalid user type literal for {}: field {} is not of type {}")      \
	X(UDT_UNKNOWN_FIELD, INVALID, "Unknown field '{}' in value of user defined type {}")       \
	X(NUMBER_LONG, INVALID, "A number has more than CQL_DIGITS ({}) digits")                   \
	/* Expressions and functions. */                                                           \
	X(UNDEFINED_COLUMN, INVALID, "Undefined column name {} in table {}")                       \
	X(UNKNOWN_FUNCTION, INVALID, "Unknown function '{}'")                                      \
	X(UNKNOWN_FUNCTION_CALLED, INVALID, "Unknown function {} called")                          \
	X(ARGUMENT_COUNT, INVALID,                                                                 \
	  "Invalid number of arguments in call to function {}: {} required but {} provided")       \
	X(ARGUMENT_TYPE, INVALID,                                                                  \
	  "Type error: {} cannot be passed as argument {} of function {} of type {}")              \
	X(NO_OVERLOAD, INVALID,                                                                    \
	  "Invalid call to function {}, none of its type signatures match (known type"             \
	  " signatures: {})")                                                                      \
	X(AMBIGUOUS_CALL, INVALID,                                                                 \
	  "Ambiguous call to function {} (can be matched by following signatures: {}): use type"   \
	  " casts to disambiguate")                                                                \
	X(CANNOT_INFER, INVALID,                                                                   \
	  "Cannot infer type for term {} in selection clause (try using a cast to force a type)")  \
	X(NOT_ASSIGNABLE, INVALID,                                                                 \
	  "Type error: cannot assign result of function {} (type {}) to {} (type {})")             \
	X(CAST_TERM, INVALID, "Cannot cast value {} to type {}")                                   \
	X(CAST_ASSIGN, INVALID, "Cannot assign value {} to {} of type {}")                         \
	X(NO_CAST, INVALID, "{} cannot be cast to {}")                                             \
	X(NO_OPERATION, INVALID, "the '{}' operation is not supported between {} and {}")          \
	X(OPERATION_AMBIGUOUS, INVALID,                                                            \
	  "Ambiguous '{}' operation with args {} and {}: use type hint to disambiguate, example"   \
	  " '(int) ?'")                                                                            \
	X(OPERATION_FAILED, FUNCTION, "the operation '{} {} {}' failed: {}")                       \
	X(BAD_BLOB_VALUE, INVALID,                                                                 \
	  "In call to function system.{}, value {} is not a valid binary representation for type"  \
	  " {}")                                                                                   \
	X(KEY_LONG, INVALID, "A column of the partition key has more than 65535 bytes")            \
	X(FUNCTION_FAILED, FUNCTION, "execution of '{}' failed: {}")                               \
	X(AGGREGATE_NESTED, INVALID,                                                               \
	  "aggregate functions cannot be used as arguments of"                                     \
	  " aggregate functions")                                                                  \
	X(AGGREGATE_HERE, INVALID, "Aggregation function are not supported in the where clause")   \
	X(NOT_A_UDT, INVALID, "Invalid field selection: {} of type {} is not a user type")         \
	X(NO_FIELD, INVALID, "{} of type {} has no field {}")                                      \
	X(NOT_A_COLLECTION, INVALID,                                                               \
	  "Invalid element selection: {} is of type {} is not a collection")                       \
	X(ELEMENT_OF_LIST, INVALID,                                                                \
	  "Element selection is only allowed on sets and maps, but {} is a list")                  \
	X(SLICE_OF_LIST, INVALID,                                                                  \
	  "Slice selection is only allowed on sets and maps, but {} is a list")                    \
	X(WRITETIME_KEY, INVALID, "Cannot use selection function {} on PRIMARY KEY part {}")       \
	X(WRITETIME_COLLECTION, INVALID, "Cannot use selection function {} on non-frozen {} {}")   \
	X(WRITETIME_HERE, INVALID, "Function {} can only be used on a column in a selection")      \
	X(TOKEN_ARGUMENTS, INVALID,                                                                \
	  "Invalid number of arguments in call to function system.token: {} required but {} "      \
	  "provided")                                                                              \
	X(NOT_JSONB, INVALID, "The operators -> and ->> need a jsonb column, and {} is {}")        \
	/* JSON. */                                                                                \
	X(JSON_DECODE, INVALID, "Could not decode JSON string as a map: {}. (String was: {})")     \
	X(JSON_UNKNOWN, INVALID, "JSON values map contains unrecognized column: {}")               \
	X(JSON_VALUE, INVALID, "Error decoding JSON value for {}: {}")                             \
	X(JSON_EXPECTED, INVALID, "Expected {}, but got a {}: {}")                                 \
	X(JSON_NULL_ELEMENT, INVALID, "Invalid null element in {}")                                \
	X(JSON_NULL_MAP, INVALID, "Invalid null {} in map")                                        \
	X(FROM_JSON, FUNCTION, "execution of 'system.fromjson[text]' failed: {}")                  \
	X(TO_JSON_HERE, INVALID, "toJson() may only be used within the selection clause")          \
	X(FROM_JSON_TYPED, INVALID,                                                                \
	  "fromJson() may only be used where the type of its result is known")

enum cql_error {
#define CQL_ERROR_NAME(name, code, text) CQL_E_##name,
	CQL_ERRORS(CQL_ERROR_NAME)
#undef CQL_ERROR_NAME
	CQL_ERROR_COUNT
};

#endif
