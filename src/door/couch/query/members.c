#include "door/couch/query/members.h"

#include <limits.h>

#include "base/quote.h"
#include "door/couch/wire/error.h"

enum {
	MEMBERS_SORT_FIELDS = 100, /* the fields of one sort or one index */
};

enum status
query_members_check(struct couch_req *r, const struct json_member *members, size_t members_count,
		    const struct query_member *table, size_t count, void *into)
{
	for (size_t i = 0; i < count; i++) {
		const struct json_value *v = json_value_find(members, members_count, table[i].name);

		if (v)
			TRY(table[i].take(r, v, (char *)into + table[i].at));
		else if (table[i].required)
			return couch_fail_set(&r->fail, COUCH_ERROR_MISSING_REQUIRED_KEY,
					      "Missing required key: %s", table[i].name);
	}
	for (size_t m = 0; m < members_count; m++) {
		bool known = false;

		for (size_t i = 0; i < count && !known; i++)
			known = str_eq(members[m].name, str_from_cstr(table[i].name));
		if (!known)
			return couch_fail_set(&r->fail, COUCH_ERROR_INVALID_KEY,
					      "Invalid key %s for this request.",
					      QUOTE_SHOW(members[m].name));
	}
	return STATUS_OK;
}

enum status
query_members_read(struct couch_req *r, size_t max_bytes, const struct query_member *table,
		   size_t count, void *into)
{
	struct json_member *members;
	size_t members_count;

	TRY(couch_require_json(r));
	TRY(couch_read_object(r, max_bytes, &members, &members_count));
	return query_members_check(r, members, members_count, table, count, into);
}

enum status
query_take_value(struct couch_req *r, const struct json_value *v, void *ret)
{
	(void)r;
	*(const struct json_value **)ret = v;
	return STATUS_OK;
}

enum status
query_take_bool(struct couch_req *r, const struct json_value *v, void *ret)
{
	if (v->kind != JSON_TRUE && v->kind != JSON_FALSE)
		return couch_fail_set(&r->fail, COUCH_ERROR_INVALID_BOOLEAN,
				      "Invalid boolean value: %s", QUOTE_SHOW(v->text));
	*(bool *)ret = v->kind == JSON_TRUE;
	return STATUS_OK;
}

/* Reads an integer that is not negative. One that is too large becomes the largest. */
static bool
members_read_count(const struct json_value *v, uint64_t *ret)
{
	int64_t n;

	if (v->kind != JSON_NUMBER || !v->is_integer)
		return false;
	if (!str_to_i64(v->text, &n))
		n = v->text.ptr[0] == '-' ? INT64_MIN : INT64_MAX;
	*ret = (uint64_t)n;
	return n >= 0;
}

enum status
query_take_count(struct couch_req *r, const struct json_value *v, void *ret)
{
	if (members_read_count(v, ret))
		return STATUS_OK;
	return couch_fail_set(&r->fail, COUCH_ERROR_INVALID_NON_NEG_INTEGER,
			      "%s is not an integer greater than or equal to zero",
			      QUOTE_SHOW(v->text));
}

enum status
query_take_positive(struct couch_req *r, const struct json_value *v, void *ret)
{
	if (members_read_count(v, ret) && *(uint64_t *)ret > 0)
		return STATUS_OK;
	return couch_fail_set(&r->fail, COUCH_ERROR_INVALID_POS_INTEGER,
			      "%s is not an integer greater than zero", QUOTE_SHOW(v->text));
}

enum status
query_take_name(struct couch_req *r, const struct json_value *v, void *ret)
{
	if (v->kind != JSON_STRING)
		return couch_fail_set(&r->fail, COUCH_ERROR_INVALID_STRING, "Invalid string: %s",
				      QUOTE_SHOW(v->text));
	if (v->string.len == 0)
		return couch_fail_set(&r->fail, COUCH_ERROR_INVALID_EMPTY_STRING,
				      "Index name or ddoc cannot be empty string");
	*(struct str *)ret = v->string;
	return STATUS_OK;
}

/* ---- Selectors ---- */

enum status
query_refuse_selector(struct couch_req *r, enum status status, enum selector_error error)
{
	static const enum couch_error errors[] = {
		[SELECTOR_ERROR_NONE] = COUCH_ERROR_BAD_REQUEST,
		[SELECTOR_ERROR_BAD_ARG] = COUCH_ERROR_BAD_ARG,
		[SELECTOR_ERROR_INVALID_OPERATOR] = COUCH_ERROR_INVALID_OPERATOR,
		[SELECTOR_ERROR_NOT_SUPPORTED] = COUCH_ERROR_NOT_SUPPORTED,
		[SELECTOR_ERROR_INVALID_SELECTOR] = COUCH_ERROR_INVALID_SELECTOR,
		[SELECTOR_ERROR_INVALID_SELECTOR_JSON] = COUCH_ERROR_INVALID_SELECTOR_JSON,
		[SELECTOR_ERROR_INVALID_FIELD_NAME] = COUCH_ERROR_INVALID_FIELD_NAME,
		[SELECTOR_ERROR_INVALID_FIELDS] = COUCH_ERROR_INVALID_FIELDS,
		[SELECTOR_ERROR_INVALID_FIELD] = COUCH_ERROR_INVALID_FIELD,
	};
	struct err err = r->fail.err;

	if (err.status != status || (status != STATUS_LIMIT && error == SELECTOR_ERROR_NONE))
		return status;
	return couch_fail_set(&r->fail, errors[error], "%s", err.text);
}

enum status
query_selector_compile(struct couch_req *r, struct str text, struct selector **ret)
{
	struct index_work work = { .arena = r->arena };
	enum selector_error error;
	enum status status = selector_compile(text, &work, ret, &error, &r->fail.err);

	return status == STATUS_OK ? status : query_refuse_selector(r, status, error);
}

/* ---- Sorts ---- */

static enum status
members_refuse_sort_field(struct couch_req *r, const struct json_value *v)
{
	return couch_fail_set(&r->fail, COUCH_ERROR_INVALID_SORT_FIELD, "Invalid sort field: %s",
			      QUOTE_SHOW(v->text));
}

/* Reads one field: its name, or an object of its name and a direction. */
static enum status
members_take_sort_field(struct couch_req *r, const struct json_value *v, struct str *ret,
			bool *ret_descending)
{
	struct json_member *members;
	size_t count;

	*ret_descending = false;
	*ret = v->string;
	if (v->kind == JSON_STRING && v->string.len)
		return STATUS_OK;
	if (v->kind != JSON_OBJECT_BEGIN)
		return members_refuse_sort_field(r, v);
	TRY(json_value_members(v, r->arena, &members, &count, &r->fail.err));
	if (count != 1 || members[0].name.len == 0)
		return members_refuse_sort_field(r, v);
	*ret = members[0].name;
	*ret_descending = members[0].value.kind == JSON_STRING &&
			  str_eq(members[0].value.string, STR("desc"));
	if (*ret_descending ||
	    (members[0].value.kind == JSON_STRING && str_eq(members[0].value.string, STR("asc"))))
		return STATUS_OK;
	return members_refuse_sort_field(r, v);
}

enum status
query_take_sort(struct couch_req *r, const struct json_value *v, void *into)
{
	struct query_sort *ret = into;
	struct json_value *items;
	bool descending;

	if (v->kind != JSON_ARRAY_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_INVALID_SORT_JSON,
				      "Sort must be an array of sort specs, not: %s",
				      QUOTE_SHOW(v->text));
	TRY(json_value_items(v, r->arena, &items, &ret->count, &r->fail.err));
	if (ret->count > MEMBERS_SORT_FIELDS)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "There are more than %d fields in one sort or index.",
				      (int)MEMBERS_SORT_FIELDS);
	ret->fields = arena_alloc(r->arena, (ret->count + 1) * sizeof(*ret->fields));
	if (!ret->fields)
		return STATUS_LIMIT;
	for (size_t i = 0; i < ret->count; i++) {
		TRY(members_take_sort_field(r, &items[i], &ret->fields[i], &descending));
		if (i && descending != ret->descending)
			return couch_fail_set(&r->fail, COUCH_ERROR_UNSUPPORTED_MIXED_SORT,
					      "Sorts currently only support a single direction "
					      "for all fields.");
		ret->descending = descending;
	}
	return STATUS_OK;
}
