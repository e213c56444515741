/* A value of each type of BSON's, for what takes or refuses values by their types. */
#ifndef FROND_TESTS_MQL_SAMPLES_H
#define FROND_TESTS_MQL_SAMPLES_H

#include <stdlib.h>
#include <string.h>

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
};

/* The code that `codes`, such as "int:0 long:0", have for a type; `other` for all others. */
static inline int
code_of(const char *codes, const char *type, int other)
{
	const char *at = codes;
	size_t len = strlen(type);

	while (at && *at) {
		if (!strncmp(at, type, len) && at[len] == ':')
			return atoi(at + len + 1);
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	return other;
}

#endif
