
/* One parameter: its content as text and, for the ones that are JSON, its value. */
#include <stddef.h>

#include "base/quote.h"
#include "doc/json.h"
#include "doc/json_value.h"
#include "door/couch/admin/partition.h"
#include "door/couch/doc/doc_opts.h"
#include "door/couch/list/view_args.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/params.h"
#include "door/couch/wire/request.h"

struct param {
	struct str name;
	struct str text;
	const struct json_value *json; /* NULL: in a query, `text` is the JSON */
};

void
couch_view_args_init(struct couch_view_args *args)
{
	*args = (struct couch_view_args){ .limit = UINT64_MAX };
}

/* A number in a body must be a number of JSON; what is no integer is refused as in a query. */
static enum status
view_args_take_count(struct couch_req *r, const struct param *p, void *ret)
{
	if (p->json && p->json->kind != JSON_NUMBER)
		return couch_fail_set(&r->fail, COUCH_ERROR_QUERY_PARSE,
				      "Invalid value for integer: \"%s\"", QUOTE_SHOW(p->text));
	return couch_count_parse(r, p->text, ret);
}

static enum status
view_args_parse_json(struct couch_req *r, const struct param *p, struct json_value *ret)
{
	if (p->json) {
		*ret = *p->json;
		return STATUS_OK;
	}
	return json_value_read(p->text, r->arena, ret, &r->fail.err);
}

static struct couch_bound
view_args_bound(const struct json_value *value)
{
	return (struct couch_bound){
		.given = true,
		.below_all = value->kind != JSON_STRING,
		.id = value->string,
		.text = value->text,
	};
}

static enum status
view_args_take_bound(struct couch_req *r, const struct param *p, void *ret)
{
	struct json_value value;

	TRY(view_args_parse_json(r, p, &value));
	*(struct couch_bound *)ret = view_args_bound(&value);
	return STATUS_OK;
}

static enum status
view_args_take_key(struct couch_req *r, const struct param *p, void *into)
{
	struct couch_view_args *args = into;

	TRY(view_args_take_bound(r, p, &args->start));
	args->end = args->start;
	return STATUS_OK;
}

static enum status
view_args_take_keys(struct couch_req *r, const struct param *p, void *into)
{
	struct couch_view_args *args = into;
	struct json_value value;
	struct json_value *key;
	struct json_list keys;
	size_t count;

	TRY(view_args_parse_json(r, p, &value));
	if (value.kind != JSON_ARRAY_BEGIN && args->of_view)
		return couch_fail_set(&r->fail, COUCH_ERROR_QUERY_PARSE,
				      "`keys` must be an array of strings.");
	if (value.kind != JSON_ARRAY_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      p->json ? "`keys` body member must be an array."
					      : "`keys` parameter must be an array.");
	TRY(json_list_init(&keys, &value, r->arena, &r->fail.err));
	if (args->of_view && keys.count == 1) {
		TRY(json_value_items(&value, r->arena, &key, &count, &r->fail.err));
		args->start = args->end = view_args_bound(key);
		return STATUS_OK;
	}
	args->has_keys = true;
	args->keys = keys;
	return STATUS_OK;
}

static enum status
view_args_take_docid(struct couch_req *r, const struct param *p, void *ret)
{
	(void)r;
	*(struct couch_bound *)ret = (struct couch_bound){ .given = true,
							   .id = p->text,
							   .text = p->text };
	return STATUS_OK;
}

static enum status
view_args_take_flag(struct couch_req *r, const struct param *p, void *ret)
{
	return couch_flag_parse(r, p->text, ret);
}

/* Of a flag whose opposite is kept. */
static enum status
view_args_take_no_flag(struct couch_req *r, const struct param *p, void *ret)
{
	bool on = true;

	TRY(couch_flag_parse(r, p->text, &on));
	*(bool *)ret = !on;
	return STATUS_OK;
}

static enum status
view_args_take_choice(struct couch_req *r, const struct param *p, void *ret)
{
	bool on = false;

	TRY(couch_flag_parse(r, p->text, &on));
	*(enum couch_view_flag *)ret = on ? COUCH_VIEW_FLAG_ON : COUCH_VIEW_FLAG_OFF;
	return STATUS_OK;
}

static enum status
view_args_refuse_word(struct couch_req *r, const struct param *p)
{
	return couch_fail_set(&r->fail, COUCH_ERROR_QUERY_PARSE, "Invalid value for `%s`.",
			      QUOTE_SHOW(p->name));
}

static enum status
view_args_take_update(struct couch_req *r, const struct param *p, void *ret)
{
	enum couch_view_update *update = ret;

	if (str_eq(p->text, STR("true")))
		*update = COUCH_VIEW_UPDATE_FIRST;
	else if (str_eq(p->text, STR("false")))
		*update = COUCH_VIEW_UPDATE_NONE;
	else if (str_eq(p->text, STR("lazy")))
		*update = COUCH_VIEW_UPDATE_LAZY;
	else
		return view_args_refuse_word(r, p);
	return STATUS_OK;
}

static enum status
view_args_take_stale(struct couch_req *r, const struct param *p, void *ret)
{
	enum couch_view_update *update = ret;

	if (str_eq(p->text, STR("ok")))
		*update = COUCH_VIEW_UPDATE_NONE;
	else if (str_eq(p->text, STR("update_after")))
		*update = COUCH_VIEW_UPDATE_LAZY;
	else
		return view_args_refuse_word(r, p);
	return STATUS_OK;
}

/* Where rows come from is always the same place, so this has no effect. */
static enum status
view_args_check_stable(struct couch_req *r, const struct param *p, void *ret)
{
	(void)ret;
	if (str_eq(p->text, STR("true")) || str_eq(p->text, STR("false")))
		return STATUS_OK;
	return view_args_refuse_word(r, p);
}

/* A flag that is on stays on, as in CouchDB, whatever follows it. */
static enum status
view_args_take_doc_flag(struct couch_req *r, const struct param *p, unsigned flag, unsigned *flags)
{
	bool on = false;

	TRY(couch_flag_parse(r, p->text, &on));
	*flags |= on ? flag : 0;
	return STATUS_OK;
}

static enum status
view_args_take_atts(struct couch_req *r, const struct param *p, void *flags)
{
	return view_args_take_doc_flag(r, p, COUCH_DOC_ATTS, flags);
}

static enum status
view_args_take_att_encoding(struct couch_req *r, const struct param *p, void *flags)
{
	return view_args_take_doc_flag(r, p, COUCH_DOC_ATT_ENCODING, flags);
}

static enum status
view_args_take_partition(struct couch_req *r, const struct param *p, void *ret)
{
	*(struct str *)ret = p->text;
	return couch_partition_check_name(r, p->text);
}

#define AT(member) offsetof(struct couch_view_args, member)

static const struct {
	const char *name;
	/* Puts the content at that place in the arguments. */
	enum status (*take)(struct couch_req *r, const struct param *p, void *into);
	size_t at;
	size_t given; /* of a bool: it was given; 0: none */
} params[] = {
	{ "key", view_args_take_key, 0, 0 },
	{ "keys", view_args_take_keys, 0, 0 },
	{ "startkey", view_args_take_bound, AT(start), 0 },
	{ "start_key", view_args_take_bound, AT(start), 0 },
	{ "endkey", view_args_take_bound, AT(end), 0 },
	{ "end_key", view_args_take_bound, AT(end), 0 },
	{ "startkey_docid", view_args_take_docid, AT(start_docid), 0 },
	{ "start_key_doc_id", view_args_take_docid, AT(start_docid), 0 },
	{ "endkey_docid", view_args_take_docid, AT(end_docid), 0 },
	{ "end_key_doc_id", view_args_take_docid, AT(end_docid), 0 },
	{ "limit", view_args_take_count, AT(limit), AT(has_limit) },
	{ "skip", view_args_take_count, AT(skip), 0 },
	{ "descending", view_args_take_flag, AT(descending), 0 },
	{ "include_docs", view_args_take_flag, AT(include_docs), 0 },
	{ "inclusive_end", view_args_take_no_flag, AT(exclusive_end), 0 },
	{ "conflicts", view_args_take_flag, AT(conflicts), AT(has_conflicts) },
	{ "update_seq", view_args_take_flag, AT(update_seq), 0 },
	{ "reduce", view_args_take_choice, AT(reduce), 0 },
	{ "group", view_args_take_choice, AT(group), 0 },
	{ "group_level", view_args_take_count, AT(group_level), AT(has_group_level) },
	{ "stale", view_args_take_stale, AT(update), 0 },
	{ "update", view_args_take_update, AT(update), 0 },
	{ "partition", view_args_take_partition, AT(partition), 0 },
	{ "attachments", view_args_take_atts, AT(doc_flags), 0 },
	{ "att_encoding_info", view_args_take_att_encoding, AT(doc_flags), 0 },
	{ "sorted", view_args_take_no_flag, AT(unsorted), 0 },
	{ "stable", view_args_check_stable, 0, 0 },
};

/* Takes a parameter; one of another name is ignored. */
static enum status
view_args_take_param(struct couch_req *r, const struct param *p, struct couch_view_args *args)
{
	for (size_t i = 0; i < sizeof(params) / sizeof(params[0]); i++) {
		if (!str_eq(p->name, str_from_cstr(params[i].name)))
			continue;
		if (params[i].given)
			*(bool *)((char *)args + params[i].given) = true;
		return params[i].take(r, p, (char *)args + params[i].at);
	}
	return STATUS_OK;
}

enum status
couch_view_args_query(struct couch_req *r, struct couch_view_args *args)
{
	for (size_t i = 0; i < r->params_count; i++) {
		const struct param p = { r->params[i].name, r->params[i].value, NULL };

		TRY(view_args_take_param(r, &p, args));
	}
	return STATUS_OK;
}

enum status
couch_view_args_members(struct couch_req *r, const struct json_member *members, size_t count,
			struct couch_view_args *args)
{
	for (size_t i = 0; i < count; i++) {
		const struct json_value *value = &members[i].value;
		const struct param p = {
			members[i].name,
			value->kind == JSON_STRING ? value->string : value->text,
			value,
		};

		TRY(view_args_take_param(r, &p, args));
	}
	return STATUS_OK;
}

uint64_t
couch_view_args_group_level(const struct couch_view_args *args)
{
	if (args->has_group_level)
		return args->group_level;
	return args->group == COUCH_VIEW_FLAG_ON ? UINT64_MAX : 0;
}

/* The range of a view of ids may be given by `key` or a bound in addition to a single key. */
static bool
view_args_keys_exclude(enum couch_view_kind kind, const struct couch_view_args *args)
{
	size_t alone = kind == COUCH_VIEW_IDS ? 1 : 0;

	return args->has_keys && args->keys.count > alone && (args->start.given || args->end.given);
}

static const char *
view_args_fault(enum couch_view_kind kind, const struct couch_view_args *args)
{
	uint64_t level = couch_view_args_group_level(args);
	bool reduces = kind == COUCH_VIEW_REDUCE;

	if (args->group == COUCH_VIEW_FLAG_OFF && args->has_group_level && level)
		return "Can't specify group=false and group_level>0 at the same time";
	if (!reduces && args->reduce == COUCH_VIEW_FLAG_ON)
		return "Reduce is invalid for map-only views.";
	if (reduces && args->has_keys && level != UINT64_MAX)
		return "Multi-key fetches for reduce views must use `group=true`";
	if (view_args_keys_exclude(kind, args))
		return "`keys` is incompatible with `key`, `start_key` and `end_key`";
	if (!reduces && level)
		return "Invalid use of grouping on a map view.";
	if (reduces && args->include_docs)
		return "`include_docs` is invalid for reduce";
	if (reduces && args->has_conflicts)
		return "`conflicts` is invalid for reduce views.";
	return NULL;
}

enum status
couch_view_args_check_use(struct couch_req *r, enum couch_view_kind kind,
			  const struct couch_view_args *args)
{
	const char *fault = view_args_fault(kind, args);

	return fault ? couch_fail_set(&r->fail, COUCH_ERROR_QUERY_PARSE, "%s", fault) : STATUS_OK;
}

/* In CouchDB `key` overrides the bounds. */
enum status
couch_view_args_check(struct couch_req *r, enum couch_view_kind kind, struct couch_view_args *args)
{
	uint64_t most;

	if (r->partition.ptr)
		args->partition = r->partition;
	most = args->partition.ptr ? r->settings->partition_query_limit : r->settings->query_limit;
	if (most && !args->has_limit)
		args->limit = most;
	if (most && args->limit > most)
		return couch_fail_set(&r->fail, COUCH_ERROR_QUERY_PARSE,
				      "Limit is too large, must not exceed %llu",
				      (unsigned long long)most);
	return couch_view_args_check_use(r, kind, args);
}

/* One bound of the answer's range of ids. */
struct edge {
	bool has;
	bool exclusive;
	struct str id;
};

/* Narrows the bounds to those of `within`. */
static void
edges_clip(struct edge *low, struct edge *high, const struct name_range *within)
{
	if (!low->has || str_cmp(low->id, within->begin) < 0)
		*low = (struct edge){ true, false, within->begin };
	if (!high->has || str_cmp(high->id, within->end) >= 0)
		*high = (struct edge){ true, true, within->end };
}

enum status
couch_view_args_range(const struct couch_view_args *args, const struct name_range *within,
		      struct arena *arena, struct name_range *ret, bool *ret_any)
{
	const struct couch_bound *start = args->start.given ? &args->start : &args->start_docid;
	const struct couch_bound *end = args->end.given ? &args->end : &args->end_docid;
	const struct couch_bound *first = args->descending ? end : start;
	const struct couch_bound *last = args->descending ? start : end;
	struct edge low = { first->given && !first->below_all,
			    args->descending && args->exclusive_end, first->id };
	struct edge high = { last->given, !args->descending && args->exclusive_end, last->id };

	struct name_range partition;

	*ret_any = !last->given || !last->below_all;
	if (within)
		edges_clip(&low, &high, within);
	if (args->partition.ptr) {
		TRY(rev_partition_range(args->partition, arena, &partition));
		edges_clip(&low, &high, &partition);
	}

	*ret = (struct name_range){ .descending = args->descending, .skip = args->skip };
	if (args->descending) {
		struct edge swap = low;

		low = high;
		high = swap;
	}
	ret->has_begin = low.has;
	ret->exclusive_begin = low.exclusive;
	ret->begin = low.id;
	ret->has_end = high.has;
	ret->exclusive_end = high.exclusive;
	ret->end = high.id;
	return STATUS_OK;
}
