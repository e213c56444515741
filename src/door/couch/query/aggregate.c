#include "door/couch/query/aggregate.h"

#include <stddef.h>

#include "base/quote.h"
#include "doc/json.h"
#include "door/couch/wire/error.h"

const char *
aggregate_kind_name(enum aggregate_kind kind)
{
	static const char *const names[AGGREGATE_KINDS] = {
		[AGGREGATE_SUM] = "sum",
		[AGGREGATE_MIN] = "min",
		[AGGREGATE_MAX] = "max",
		[AGGREGATE_AVG] = "avg",
	};

	return names[kind];
}

/* ---- Reading ---- */

/* Appends the fields of one list. Of a function, no field may be there twice. */
static enum status
aggregate_take_fields(struct couch_req *r, const char *name, const struct json_value *v,
		      size_t begin, size_t most, struct aggregate *a)
{
	struct json_value *items;
	size_t count;

	if (v->kind != JSON_ARRAY_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_INVALID_AGGREGATE,
				      "`%s` must be a list of names of fields, not: %s", name,
				      QUOTE_SHOW(v->text));
	TRY(json_value_items(v, r->arena, &items, &count, &r->fail.err));
	if (count > most)
		return couch_fail_set(&r->fail, COUCH_ERROR_INVALID_AGGREGATE,
				      "`%s` has too many fields: the limit is %zu", name, most);
	for (size_t i = 0; i < count; i++) {
		enum status status = STATUS_INVALID;

		if (items[i].kind == JSON_STRING && items[i].string.len)
			status = normal_path_read(items[i].string, r->arena, &a->paths[a->count]);
		if (status == STATUS_INVALID)
			return couch_fail_set(&r->fail, COUCH_ERROR_INVALID_AGGREGATE,
					      "`%s` has what is no name of a field: %s", name,
					      QUOTE_SHOW(items[i].text));
		TRY(status);
		for (size_t k = begin; k < a->count; k++) {
			if (normal_path_eq(&a->paths[k], &a->paths[a->count]))
				return couch_fail_set(&r->fail, COUCH_ERROR_INVALID_AGGREGATE,
						      "`%s` names the field %s twice", name,
						      QUOTE_SHOW(items[i].text));
		}
		a->fields[a->count++] = items[i].string;
	}
	return STATUS_OK;
}

/* The members of `aggregate`, of which some are found, and none may be another one. */
struct aggregate_body {
	const struct json_value *group_by;
	const struct json_value *count;
	const struct json_value *functions[AGGREGATE_KINDS];
};

#define BODY_FUNCTION(kind) offsetof(struct aggregate_body, functions[kind])

static enum status
body_take_count(struct couch_req *r, const struct json_value *v, void *into)
{
	((struct aggregate_body *)into)->count = v;
	if (v->kind == JSON_TRUE)
		return STATUS_OK;
	return couch_fail_set(&r->fail, COUCH_ERROR_INVALID_AGGREGATE,
			      "`count` counts documents, and can only be true, not: %s",
			      QUOTE_SHOW(v->text));
}

static const struct query_member aggregate_members[] = {
	{ "group_by", false, query_take_value, offsetof(struct aggregate_body, group_by) },
	{ "count", false, body_take_count, 0 },
	{ "sum", false, query_take_value, BODY_FUNCTION(AGGREGATE_SUM) },
	{ "min", false, query_take_value, BODY_FUNCTION(AGGREGATE_MIN) },
	{ "max", false, query_take_value, BODY_FUNCTION(AGGREGATE_MAX) },
	{ "avg", false, query_take_value, BODY_FUNCTION(AGGREGATE_AVG) },
};

static enum status
aggregate_new(struct arena *arena, struct aggregate **ret)
{
	size_t most = AGGREGATE_GROUP_FIELDS + AGGREGATE_FUNCTIONS + 1;
	struct aggregate *a = arena_zalloc(arena, sizeof(*a));

	if (!a)
		return STATUS_LIMIT;
	a->fields = arena_zalloc(arena, most * sizeof(*a->fields));
	a->paths = arena_zalloc(arena, most * sizeof(*a->paths));
	a->kinds = arena_zalloc(arena, most * sizeof(*a->kinds));
	*ret = a;
	return a->fields && a->paths && a->kinds ? STATUS_OK : STATUS_LIMIT;
}

enum status
aggregate_read(struct couch_req *r, const struct json_value *v, void *into)
{
	struct aggregate_body body = { 0 };
	struct aggregate **ret = into;
	struct json_member *members;
	size_t count;

	TRY(aggregate_new(r->arena, ret));
	if (v->kind != JSON_OBJECT_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_INVALID_AGGREGATE,
				      "`aggregate` must be an object, not: %s",
				      QUOTE_SHOW(v->text));
	TRY(json_value_members(v, r->arena, &members, &count, &r->fail.err));
	TRY(query_members_check(r, members, count, aggregate_members,
				sizeof(aggregate_members) / sizeof(aggregate_members[0]), &body));
	(*ret)->counts = body.count != NULL;
	if (body.group_by)
		TRY(aggregate_take_fields(r, "group_by", body.group_by, 0, AGGREGATE_GROUP_FIELDS,
					  *ret));
	(*ret)->group_count = (*ret)->count;
	for (int kind = 0; kind < AGGREGATE_KINDS; kind++) {
		size_t begin = (*ret)->count;
		size_t most = AGGREGATE_FUNCTIONS - (begin - (*ret)->group_count);

		if (!body.functions[kind])
			continue;
		TRY(aggregate_take_fields(r, aggregate_kind_name((enum aggregate_kind)kind),
					  body.functions[kind], begin, most, *ret));
		for (size_t i = begin; i < (*ret)->count; i++)
			(*ret)->kinds[i] = (enum aggregate_kind)kind;
	}
	if ((*ret)->counts || (*ret)->count > (*ret)->group_count)
		return STATUS_OK;
	return couch_fail_set(&r->fail, COUCH_ERROR_INVALID_AGGREGATE,
			      "`aggregate` asks for nothing: it needs `count`, `sum`, `min`, `max` "
			      "or `avg`");
}

/* ---- Writing ---- */

void
aggregate_write(const struct aggregate *a, struct buf *out)
{
	buf_append_cstr(out, "\"group_by\":[");
	for (size_t i = 0; i < a->group_count; i++) {
		buf_append_cstr(out, i ? "," : "");
		json_write_str(out, a->fields[i]);
	}
	buf_append_cstr(out, a->counts ? "],\"count\":true" : "]");
	for (size_t i = a->group_count; i < a->count; i++) {
		bool first = i == a->group_count || a->kinds[i] != a->kinds[i - 1];

		if (first)
			buf_printf(out, ",\"%s\":[", aggregate_kind_name(a->kinds[i]));
		buf_append_cstr(out, first ? "" : ",");
		json_write_str(out, a->fields[i]);
		if (i + 1 == a->count || a->kinds[i + 1] != a->kinds[i])
			buf_append_byte(out, ']');
	}
}
