/*
 * Small JSON values, taken apart member by member: requests, settings, answers of other servers.
 *
 * What is returned lives in the caller's arena or borrows the text that was read. Plain functions:
 * threads may use them at the same time with arenas of their own.
 */
#ifndef FROND_DOC_JSON_VALUE_H
#define FROND_DOC_JSON_VALUE_H

#include "base/arena.h"
#include "doc/json.h"

struct json_value {
	enum json_token kind; /* JSON_OBJECT_BEGIN and JSON_ARRAY_BEGIN for containers */
	struct str text;      /* the value's text */
	struct str string;    /* JSON_STRING: the content */
	bool is_integer;      /* JSON_NUMBER */
};

struct json_member {
	struct str name;
	struct json_value value;
};

/* Reads a text that is one value. Errors: the reader's; STATUS_LIMIT when the arena is full. */
MUST_USE enum status json_value_read(struct str text, struct arena *arena, struct json_value *ret,
				     struct err *err);

/* The members of an object, in order, duplicates included; STATUS_INVALID for another value. */
MUST_USE enum status json_value_members(const struct json_value *object, struct arena *arena,
					struct json_member **ret, size_t *ret_count,
					struct err *err);
/* The same of a text that is one object. */
MUST_USE enum status json_read_members(struct str text, struct arena *arena,
				       struct json_member **ret, size_t *ret_count,
				       struct err *err);

/* The elements of an array; STATUS_INVALID for another value. */
MUST_USE enum status json_value_items(const struct json_value *array, struct arena *arena,
				      struct json_value **ret, size_t *ret_count, struct err *err);

/* The last member of that name, or NULL. */
const struct json_value *json_value_find(const struct json_member *members, size_t count,
					 const char *name);

/*
 * What lies at a path of members' names and, in arrays, numbers of elements. `*ret` NULL: nothing
 * does. The failures of json_value_members().
 */
MUST_USE enum status json_value_at(const struct json_value *value, const struct str *path,
				   size_t count, struct arena *arena,
				   const struct json_value **ret);

/* Reads the value whose first token `first` has just been read, to its end. */
MUST_USE enum status json_value_take(struct json_reader *reader, enum json_token first,
				     struct arena *arena, struct json_value *ret);

#endif
