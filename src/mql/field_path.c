#include "mql/field_path.h"

#include "mql/mql_int.h"

static enum status
check_part(struct mql *q, struct str name)
{
	if (!name.len)
		return mql_fail(q, 15998, "FieldPath field names may not be empty strings.");
	if (name.ptr[0] == '$' && !mql_is(name, "$id") && !mql_is(name, "$ref") &&
	    !mql_is(name, "$db"))
		return mql_fail(q, 16410,
				"FieldPath field names may not start with '$'. Consider using "
				"$getField or $setField.");
	if (memchr(name.ptr, '\0', name.len))
		return mql_fail(q, 16411, "FieldPath field names may not contain '\\0'.");
	return STATUS_OK;
}

enum status
mql_field_path_check(struct mql *q, struct str path)
{
	struct str rest = path;
	size_t names = 0;

	if (!path.len)
		return mql_fail(q, 40352, "FieldPath cannot be constructed with empty string");
	if (path.ptr[path.len - 1] == '.')
		return mql_fail(q, 40353, "FieldPath must not end with a '.'.");
	while (rest.len) {
		TRY(step_count(1));
		TRY(check_part(q, str_cut(&rest, '.')));
		if (++names > BSON_DEPTH)
			return mql_fail(q, 5984700, "FieldPath is too long");
	}
	return STATUS_OK;
}

enum status
mql_field_name_check(struct mql *q, struct str name)
{
	TRY(check_part(q, name));
	if (memchr(name.ptr, '.', name.len))
		return mql_fail(q, 16412,
				"FieldPath field names may not contain '.'. Consider using "
				"$getField or $setField.");
	return STATUS_OK;
}
