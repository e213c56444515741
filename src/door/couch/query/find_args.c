#include "door/couch/query/find_args.h"

#include <stddef.h>

#include "base/quote.h"
#include "door/couch/admin/partition.h"
#include "door/couch/wire/error.h"
#include "model/revisioned/revisioned.h"

enum {
	FIND_INDEX_PARTS = 3, /* of the name of an index: _design, the document's, its own */
};

static enum status
find_take_selector(struct couch_req *r, const struct json_value *v, void *into)
{
	struct find_args *a = into;

	a->text = v->text;
	TRY(query_selector_compile(r, v->text, &a->selector));
	return normal_read(v->text, r->arena, &a->normal);
}

/* ---- use_index ---- */

static enum status
find_refuse_index_name(struct couch_req *r, const struct json_value *v)
{
	return couch_fail_set(&r->fail, COUCH_ERROR_INVALID_INDEX_NAME, "Invalid index name: %s",
			      QUOTE_SHOW(v->text));
}

/* Splits "_design/ddoc/name" at its slashes. */
static enum status
find_split_index_name(struct couch_req *r, const struct json_value *v, struct str **ret,
		      size_t *ret_count)
{
	struct str *parts = arena_alloc(r->arena, FIND_INDEX_PARTS * sizeof(*parts));
	struct str rest = v->string;
	size_t count = 0;

	if (!parts)
		return STATUS_LIMIT;
	for (;;) {
		const char *slash = rest.len ? memchr(rest.ptr, '/', rest.len) : NULL;
		size_t len = slash ? (size_t)(slash - rest.ptr) : rest.len;

		if (count == FIND_INDEX_PARTS)
			return find_refuse_index_name(r, v);
		parts[count++] = str_of(rest.ptr, len);
		if (!slash)
			break;
		rest = str_skip(rest, len + 1);
	}
	if (count > 1 && str_eq(parts[0], STR("_design"))) {
		parts++;
		count--;
	}
	if (count == FIND_INDEX_PARTS)
		return find_refuse_index_name(r, v);
	*ret = parts;
	*ret_count = count;
	return STATUS_OK;
}

enum status
find_args_index_name(struct couch_req *r, const struct json_value *v, struct str **ret,
		     size_t *ret_count)
{
	struct json_value *items;
	size_t count;

	*ret_count = 0;
	if (v->kind == JSON_NULL)
		return STATUS_OK;
	if (v->kind == JSON_STRING)
		return find_split_index_name(r, v, ret, ret_count);
	if (v->kind != JSON_ARRAY_BEGIN)
		return find_refuse_index_name(r, v);
	TRY(json_value_items(v, r->arena, &items, &count, &r->fail.err));
	if (count > 2)
		return find_refuse_index_name(r, v);
	*ret = arena_alloc(r->arena, (count + 1) * sizeof(**ret));
	if (!*ret)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		if (items[i].kind != JSON_STRING)
			return find_refuse_index_name(r, v);
		(*ret)[i] = items[i].string;
	}
	*ret_count = count;
	return STATUS_OK;
}

static enum status
find_take_use_index(struct couch_req *r, const struct json_value *v, void *into)
{
	struct find_args *a = into;

	return find_args_index_name(r, v, &a->use_index, &a->use_index_count);
}

/* ---- The others, in CouchDB's order ---- */

static enum status
find_take_bookmark(struct couch_req *r, const struct json_value *v, void *into)
{
	struct find_args *a = into;

	if (v->kind == JSON_NULL)
		return STATUS_OK;
	if (v->kind != JSON_STRING)
		return couch_fail_set(&r->fail, COUCH_ERROR_INVALID_BOOKMARK,
				      "Invalid bookmark value: %s", QUOTE_SHOW(v->text));
	if (v->string.len)
		a->bookmark = v->string;
	return STATUS_OK;
}

static enum status
find_take_limit(struct couch_req *r, const struct json_value *v, void *into)
{
	((struct find_args *)into)->has_limit = true;
	return query_take_count(r, v, &((struct find_args *)into)->limit);
}

static enum status
find_take_fields(struct couch_req *r, const struct json_value *v, void *into)
{
	struct find_args *a = into;
	struct index_work work = { .arena = r->arena };
	struct json_value *items;
	enum selector_error error;
	enum status status = selector_fields_compile(v->text, &work, &a->shown, &error,
						     &r->fail.err);

	if (status != STATUS_OK)
		return query_refuse_selector(r, status, error);
	TRY(json_value_items(v, r->arena, &items, &a->fields_count, &r->fail.err));
	a->fields = arena_alloc(r->arena, (a->fields_count + 1) * sizeof(*a->fields));
	if (!a->fields)
		return STATUS_LIMIT;
	for (size_t i = 0; i < a->fields_count; i++)
		a->fields[i] = items[i].string;
	return STATUS_OK;
}

static enum status
find_take_partition(struct couch_req *r, const struct json_value *v, void *into)
{
	struct find_args *a = into;

	if (v->kind != JSON_STRING)
		return couch_fail_set(&r->fail, COUCH_ERROR_ILLEGAL_PARTITION,
				      "Partition must be a string");
	if (!v->string.len)
		return STATUS_OK;
	a->partition = v->string;
	return couch_partition_check_name(r, v->string);
}

static enum status
find_take_stale(struct couch_req *r, const struct json_value *v, void *into)
{
	struct find_args *a = into;

	a->stale = v->kind == JSON_STRING && str_eq(v->string, STR("ok"));
	if (a->stale || v->kind == JSON_FALSE ||
	    (v->kind == JSON_STRING && str_eq(v->string, STR("false"))))
		return STATUS_OK;
	return couch_fail_set(&r->fail, COUCH_ERROR_UNKNOWN,
			      "Unknown Error: mango_opts :: {invalid_ok_or_false_value,%s}",
			      QUOTE_SHOW(v->text));
}

/* Refuses what has no meaning beside `aggregate`. Its fields are what the planner has to cover. */
static enum status
find_args_settle_aggregate(struct couch_req *r, struct find_args *a)
{
	const char *other = a->sort.count     ? "sort"
			    : a->fields_count ? "fields"
			    : a->bookmark.ptr ? "bookmark"
			    : a->conflicts    ? "conflicts"
					      : NULL;

	if (other)
		return couch_fail_set(&r->fail, COUCH_ERROR_INVALID_AGGREGATE,
				      "`%s` has no meaning beside `aggregate`: groups come in the "
				      "order of their values, all of them without a `limit`",
				      other);
	a->fields = a->aggregate->fields;
	a->fields_count = a->aggregate->count;
	if (!a->has_limit)
		a->limit = UINT64_MAX;
	return STATUS_OK;
}

static const struct query_member find_members[] = {
	{ "selector", true, find_take_selector, 0 },
	{ "use_index", false, find_take_use_index, 0 },
	{ "bookmark", false, find_take_bookmark, 0 },
	{ "limit", false, find_take_limit, 0 },
	{ "skip", false, query_take_count, offsetof(struct find_args, skip) },
	{ "sort", false, query_take_sort, offsetof(struct find_args, sort) },
	{ "fields", false, find_take_fields, 0 },
	{ "partition", false, find_take_partition, 0 },
	{ "r", false, query_take_positive, offsetof(struct find_args, r) },
	{ "conflicts", false, query_take_bool, offsetof(struct find_args, conflicts) },
	{ "stale", false, find_take_stale, 0 },
	{ "update", false, query_take_bool, offsetof(struct find_args, update) },
	{ "stable", false, query_take_bool, offsetof(struct find_args, stable) },
	{ "execution_stats", false, query_take_bool, offsetof(struct find_args, execution_stats) },
	{ "allow_fallback", false, query_take_bool, offsetof(struct find_args, allow_fallback) },
	{ "aggregate", false, aggregate_read, offsetof(struct find_args, aggregate) },
};

/* The partition that the path or the query names. The body must not name another one. */
static enum status
find_args_take_partition(struct couch_req *r, struct find_args *a)
{
	struct str outside = r->partition;

	if (!outside.ptr && !couch_param(r, "partition", &outside))
		return STATUS_OK;
	if (a->partition.ptr && !str_eq(a->partition, outside))
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Conflicting values for `partition`: %s in the body",
				      QUOTE_SHOW(a->partition));
	if (!outside.len)
		return STATUS_OK;
	a->partition = outside;
	return couch_partition_check_name(r, outside);
}

enum status
find_args_check_partition(struct couch_req *r, const struct find_args *args)
{
	TRY(couch_partition_check_db(r));
	if (!args->partition.ptr || rev_db_is_partitioned(r->db))
		return STATUS_OK;
	return couch_fail_set(&r->fail, COUCH_ERROR_QUERY_PARSE,
			      "`partition` parameter is not supported on this db");
}

enum status
find_args_read(struct couch_req *r, struct find_args *ret)
{
	*ret = (struct find_args){
		.limit = r->settings->find_limit,
		.r = 1,
		.update = true,
		.allow_fallback = true,
	};
	TRY(query_members_read(r, (size_t)r->settings->body_bytes, find_members,
			       sizeof(find_members) / sizeof(find_members[0]), ret));
	TRY(find_args_take_partition(r, ret));
	return ret->aggregate ? find_args_settle_aggregate(r, ret) : STATUS_OK;
}
