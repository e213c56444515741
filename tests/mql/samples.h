/* A value of each type of BSON's, for what takes or refuses values by their types. */
#ifndef FROND_TESTS_MQL_SAMPLES_H
#define FROND_TESTS_MQL_SAMPLES_H

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

/* A value of each type. */
static const struct {
	const char *type, *value;
} samples[] = {
	{ "double", "1.5" },
	{ "string", "'x'" },
	{ "object", "{'b':1}" },
	{ "array", "[1]" },
	{ "binData", "{'$binary':{'base64':'AA==','subType':'00'}}" },
	{ "undefined", "{'$undefined':true}" },
	{ "objectId", "{'$oid':'0123456789abcdef01234567'}" },
	{ "bool", "true" },
	{ "date", "{'$date':'2024-01-01T00:00:00Z'}" },
	{ "null", "null" },
	{ "regex", "{'$regularExpression':{'pattern':'x','options':''}}" },
	{ "javascript", "{'$code':'x'}" },
	{ "int", "1" },
	{ "timestamp", "{'$timestamp':{'t':1,'i':1}}" },
	{ "long", "{'$numberLong':'1'}" },
	{ "decimal", "{'$numberDecimal':'1'}" },
	{ "minKey", "{'$minKey':1}" },
	{ "maxKey", "{'$maxKey':1}" },
	{ "dbPointer", "{'$dbPointer':{'$ref':'c','$id':{'$oid':'0123456789abcdef01234567'}}}" },
	{ "symbol", "{'$symbol':'x'}" },
	{ "javascriptWithScope", "{'$code':'x','$scope':{'b':1}}" },
};

/* Where `words`, such as "int:0 long:0", says something of a type; NULL: nowhere. */
static inline const char *
said_of(const char *words, const char *type)
{
	const char *at = words;
	size_t len = strlen(type);

	while (at && *at) {
		if (!strncmp(at, type, len) && at[len] == ':')
			return at + len + 1;
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	return NULL;
}

/* The code that `codes` have for a type; `other` for all others. */
static inline int
code_of(const char *codes, const char *type, int other)
{
	const char *said = said_of(codes, type);

	return said ? atoi(said) : other;
}

/* The word that `words` have for a type, likewise. */
static inline const char *
word_of(struct arena *arena, const char *words, const char *type, const char *other)
{
	const char *said = said_of(words, type);

	return said ? arena_printf(arena, "%.*s", (int)strcspn(said, " "), said).ptr : other;
}

#endif
