/* Values and rows as JSON, in Cassandra's forms: INSERT JSON, SELECT JSON, fromJson(), toJson(). */
#ifndef FROND_CQL_JSON_H
#define FROND_CQL_JSON_H

#include "cql/value.h"

/* Appends the value as toJson() has it. The bytes were checked. */
void cql_json_print(struct buf *out, const struct cql_type *type, struct cql_value v);

/*
 * Appends a member's name as SELECT JSON has it: a name with upper-case letters is in quotes of
 * its own inside of the string's.
 */
void cql_json_print_name(struct buf *out, struct str name);

/*
 * Reads a JSON value as a value of the type; null is CQL_NULL. Errors: CQL_E_JSON_*, and those of
 * the types' texts.
 */
MUST_USE enum status cql_json_read(struct cql *q, const struct cql_type *type, struct str json,
				   struct cql_value *ret);

struct cql_json_member {
	struct str name; /* of a column: folded, or taken out of its quotes */
	struct str json; /* the value's text */
};

/*
 * The members of INSERT JSON's object, in order; of two of one name the last one counts.
 * CQL_E_JSON_DECODE for another text.
 */
MUST_USE enum status cql_json_members(struct cql *q, struct str json, struct cql_json_member **ret,
				      size_t *ret_count);

/* jsonb: the text without white space, members sorted; CQL_E_BAD_JSONB. */
MUST_USE enum status cql_jsonb_normalize(struct cql *q, struct str json, struct str *ret);
/*
 * The value at a path of members' names and numbers of elements; ptr NULL: nothing is there.
 * `as_text`: a string without its quotes.
 */
MUST_USE enum status cql_jsonb_get(struct cql *q, struct str json, const struct str *path,
				   size_t count, bool as_text, struct str *ret);
/* The document with the value at a path set; CQL_E_BAD_JSONB where no such place can be. */
MUST_USE enum status cql_jsonb_set(struct cql *q, struct str json, const struct str *path,
				   size_t count, struct str value, struct str *ret);

#endif
