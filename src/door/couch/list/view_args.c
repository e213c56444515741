
/* One parameter: its content as text and, for the ones that are JSON, its value. */
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

enum param_id {
	PARAM_KEY,
	PARAM_KEYS,
	PARAM_START,
	PARAM_END,
	PARAM_START_DOCID,
	PARAM_END_DOCID,
	PARAM_LIMIT,
	PARAM_SKIP,
	PARAM_DESCENDING,
	PARAM_INCLUDE_DOCS,
	PARAM_INCLUSIVE_END,
	PARAM_CONFLICTS,
	PARAM_UPDATE_SEQ,
	PARAM_REDUCE,
	PARAM_GROUP,
	PARAM_GROUP_LEVEL,
	PARAM_STABLE,
	PARAM_STALE,
	PARAM_UPDATE,
	PARAM_ATTACHMENTS,
	PARAM_ATT_ENCODING_INFO,
	PARAM_PARTITION,
	PARAM_SORTED,
	PARAM_UNKNOWN,
};

static const struct {
	const char *name;
	enum param_id id;
} params[] = {
	{ "key", PARAM_KEY },
	{ "keys", PARAM_KEYS },
	{ "startkey", PARAM_START },
	{ "start_key", PARAM_START },
	{ "endkey", PARAM_END },
	{ "end_key", PARAM_END },
	{ "startkey_docid", PARAM_START_DOCID },
	{ "start_key_doc_id", PARAM_START_DOCID },
	{ "endkey_docid", PARAM_END_DOCID },
	{ "end_key_doc_id", PARAM_END_DOCID },
	{ "limit", PARAM_LIMIT },
	{ "skip", PARAM_SKIP },
	{ "descending", PARAM_DESCENDING },
	{ "include_docs", PARAM_INCLUDE_DOCS },
	{ "inclusive_end", PARAM_INCLUSIVE_END },
	{ "conflicts", PARAM_CONFLICTS },
	{ "update_seq", PARAM_UPDATE_SEQ },
	{ "reduce", PARAM_REDUCE },
	{ "group", PARAM_GROUP },
	{ "group_level", PARAM_GROUP_LEVEL },
	{ "stale", PARAM_STALE },
	{ "update", PARAM_UPDATE },
	{ "partition", PARAM_PARTITION },
	{ "attachments", PARAM_ATTACHMENTS },
	{ "att_encoding_info", PARAM_ATT_ENCODING_INFO },
	{ "sorted", PARAM_SORTED },
	{ "stable", PARAM_STABLE },
};

void
couch_view_args_init(struct couch_view_args *args)
{
	*args = (struct couch_view_args){ .limit = UINT64_MAX };
}

static enum param_id
view_args_find_param(struct str name)
{
	for (size_t i = 0; i < sizeof(params) / sizeof(params[0]); i++) {
		if (str_eq(name, str_from_cstr(params[i].name)))
			return params[i].id;
	}
	return PARAM_UNKNOWN;
}

/* A number in a body must be a number of JSON; what is no integer is refused as in a query. */
static enum status
view_args_parse_count(struct couch_req *r, const struct param *p, uint64_t *ret)
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
view_args_parse_bound(struct couch_req *r, const struct param *p, struct couch_bound *ret)
{
	struct json_value value;

	TRY(view_args_parse_json(r, p, &value));
	*ret = view_args_bound(&value);
	return STATUS_OK;
}

static enum status
view_args_take_keys(struct couch_req *r, const struct param *p, struct couch_view_args *args)
{
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

static void
view_args_take_docid(const struct param *p, struct couch_bound *ret)
{
	*ret = (struct couch_bound){ .given = true, .id = p->text, .text = p->text };
}

static enum status
view_args_take_choice(struct couch_req *r, const struct param *p, enum couch_view_flag *ret)
{
	bool on = false;

	TRY(couch_flag_parse(r, p->text, &on));
	*ret = on ? COUCH_VIEW_FLAG_ON : COUCH_VIEW_FLAG_OFF;
	return STATUS_OK;
}

static enum status
view_args_refuse_word(struct couch_req *r, const struct param *p)
{
	return couch_fail_set(&r->fail, COUCH_ERROR_QUERY_PARSE, "Invalid value for `%s`.",
			      QUOTE_SHOW(p->name));
}

static enum status
view_args_take_update(struct couch_req *r, const struct param *p, struct couch_view_args *args)
{
	if (str_eq(p->text, STR("true")))
		args->update = COUCH_VIEW_UPDATE_FIRST;
	else if (str_eq(p->text, STR("false")))
		args->update = COUCH_VIEW_UPDATE_NONE;
	else if (str_eq(p->text, STR("lazy")))
		args->update = COUCH_VIEW_UPDATE_LAZY;
	else
		return view_args_refuse_word(r, p);
	return STATUS_OK;
}

static enum status
view_args_take_stale(struct couch_req *r, const struct param *p, struct couch_view_args *args)
{
	if (str_eq(p->text, STR("ok")))
		args->update = COUCH_VIEW_UPDATE_NONE;
	else if (str_eq(p->text, STR("update_after")))
		args->update = COUCH_VIEW_UPDATE_LAZY;
	else
		return view_args_refuse_word(r, p);
	return STATUS_OK;
}

/* Where rows come from is always the same place, so this has no effect. */
static enum status
view_args_check_stable(struct couch_req *r, const struct param *p)
{
	if (str_eq(p->text, STR("true")) || str_eq(p->text, STR("false")))
		return STATUS_OK;
	return view_args_refuse_word(r, p);
}

/* A flag that is on stays on, as in CouchDB, whatever follows it. */
static enum status
view_args_take_flag(struct couch_req *r, const struct param *p, unsigned flag,
		    struct couch_view_args *args)
{
	bool on = false;

	TRY(couch_flag_parse(r, p->text, &on));
	args->doc_flags |= on ? flag : 0;
	return STATUS_OK;
}

static enum status
view_args_take_param(struct couch_req *r, const struct param *p, struct couch_view_args *args)
{
	bool on = true;

	switch (view_args_find_param(p->name)) {
	case PARAM_KEY:
		TRY(view_args_parse_bound(r, p, &args->start));
		args->end = args->start;
		return STATUS_OK;
	case PARAM_KEYS:
		return view_args_take_keys(r, p, args);
	case PARAM_START:
		return view_args_parse_bound(r, p, &args->start);
	case PARAM_END:
		return view_args_parse_bound(r, p, &args->end);
	case PARAM_START_DOCID:
		view_args_take_docid(p, &args->start_docid);
		return STATUS_OK;
	case PARAM_END_DOCID:
		view_args_take_docid(p, &args->end_docid);
		return STATUS_OK;
	case PARAM_LIMIT:
		args->has_limit = true;
		return view_args_parse_count(r, p, &args->limit);
	case PARAM_SKIP:
		return view_args_parse_count(r, p, &args->skip);
	case PARAM_DESCENDING:
		return couch_flag_parse(r, p->text, &args->descending);
	case PARAM_INCLUDE_DOCS:
		return couch_flag_parse(r, p->text, &args->include_docs);
	case PARAM_INCLUSIVE_END:
		TRY(couch_flag_parse(r, p->text, &on));
		args->exclusive_end = !on;
		return STATUS_OK;
	case PARAM_CONFLICTS:
		args->has_conflicts = true;
		return couch_flag_parse(r, p->text, &args->conflicts);
	case PARAM_UPDATE_SEQ:
		return couch_flag_parse(r, p->text, &args->update_seq);
	case PARAM_REDUCE:
		return view_args_take_choice(r, p, &args->reduce);
	case PARAM_GROUP:
		return view_args_take_choice(r, p, &args->group);
	case PARAM_GROUP_LEVEL:
		args->has_group_level = true;
		return view_args_parse_count(r, p, &args->group_level);
	case PARAM_STABLE:
		return view_args_check_stable(r, p);
	case PARAM_STALE:
		return view_args_take_stale(r, p, args);
	case PARAM_UPDATE:
		return view_args_take_update(r, p, args);
	case PARAM_PARTITION:
		args->partition = p->text;
		return couch_partition_check_name(r, p->text);
	case PARAM_ATTACHMENTS:
		return view_args_take_flag(r, p, COUCH_DOC_ATTS, args);
	case PARAM_ATT_ENCODING_INFO:
		return view_args_take_flag(r, p, COUCH_DOC_ATT_ENCODING, args);
	case PARAM_SORTED:
		TRY(couch_flag_parse(r, p->text, &on));
		args->unsorted = !on;
		return STATUS_OK;
	case PARAM_UNKNOWN:
		break;
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
