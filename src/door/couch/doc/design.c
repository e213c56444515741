/*
 * What CouchDB demands of a design document. Every write of one is checked, so that CouchDB accepts
 * what this server has accepted, and a builder of views can rely on its shape.
 */
#include "base/quote.h"
#include "doc/json.h"
#include "doc/json_value.h"
#include "door/couch/admin/tx.h"
#include "door/couch/doc/design.h"
#include "door/couch/doc/endpoints.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "index/view/design.h"
#include "model/revisioned/revisioned.h"

enum {
	TYPE_STRING = 1,
	TYPE_OBJECT = 2,
	TYPE_ARRAY = 4,
	TYPE_BOOLEAN = 8,
};

struct type {
	unsigned kinds;
	const char *name;
};

static const struct type of_string = { TYPE_STRING, "string" };
static const struct type of_object = { TYPE_OBJECT, "object" };
static const struct type of_boolean = { TYPE_BOOLEAN, "boolean" };
static const struct type of_function = { TYPE_OBJECT | TYPE_STRING, "string or object" };
static const struct type of_rewrites = { TYPE_STRING | TYPE_ARRAY, "array or string" };

/* Members that are one value, and those that are an object of functions by name. */
static const struct {
	const char *name;
	const struct type *type;
	bool functions;
} fields[] = {
	{ "filters", &of_object, true },     { "language", &of_string, false },
	{ "lists", &of_object, true },       { "options", &of_object, false },
	{ "rewrites", &of_rewrites, false }, { "shows", &of_object, true },
	{ "updates", &of_object, true },     { "validate_doc_update", &of_string, false },
	{ "views", &of_object, false },
};

struct design {
	struct couch_req *r;
	struct arena *arena;
	struct couch_fail *fail;
	struct json_member *members;
	size_t count;
	struct str language; /* ptr NULL: CouchDB's default, JavaScript */
};

static unsigned
design_kind_of(const struct json_value *value)
{
	if (value->kind == JSON_STRING)
		return TYPE_STRING;
	if (value->kind == JSON_OBJECT_BEGIN)
		return TYPE_OBJECT;
	if (value->kind == JSON_ARRAY_BEGIN)
		return TYPE_ARRAY;
	return value->kind == JSON_TRUE || value->kind == JSON_FALSE ? TYPE_BOOLEAN : 0;
}

/* A member that is missing has no wrong type. */
static bool
design_kind_fits(const struct json_value *value, const struct type *type)
{
	return !value || (design_kind_of(value) & type->kinds);
}

static enum status
design_refuse(struct design *d, const struct type *type, const char *outer, struct str name,
	      const char *inner)
{
	return couch_fail_set(d->fail, COUCH_ERROR_INVALID_DESIGN,
			      "`%s%s%s%s%s` field must have %s type", outer, name.len ? "." : "",
			      QUOTE_SHOW(name), *inner ? "." : "", inner, type->name);
}

static enum status
design_members_of(struct design *d, const struct json_value *object, struct json_member **ret,
		  size_t *ret_count)
{
	return json_value_members(object, d->arena, ret, ret_count, &d->fail->err);
}

static enum status
design_check_functions(struct design *d, const char *field, const struct json_value *object)
{
	struct json_member *functions;
	size_t count;

	TRY(design_members_of(d, object, &functions, &count));
	for (size_t i = 0; i < count; i++)
		if (!design_kind_fits(&functions[i].value, &of_function))
			return design_refuse(d, &of_function, field, functions[i].name, "");
	return STATUS_OK;
}

static enum status
design_check_options(struct design *d, const struct json_value *object)
{
	static const char *const names[] = { "include_design", "local_seq", "partitioned" };
	struct json_member *options;
	const struct json_value *value;
	size_t count;

	TRY(design_members_of(d, object, &options, &count));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		value = json_value_find(options, count, names[i]);
		if (!design_kind_fits(value, &of_boolean))
			return design_refuse(d, &of_boolean, "options", str_from_cstr(names[i]),
					     "");
	}
	value = json_value_find(options, count, "partitioned");
	if (!value || value->kind != JSON_TRUE)
		return STATUS_OK;
	TRY(couch_db_ensure(d->r));
	if (!rev_db_is_partitioned(d->r->db))
		return couch_fail_set(d->fail, COUCH_ERROR_INVALID_DESIGN,
				      "partitioned option cannot be true in a non-partitioned "
				      "database.");
	return STATUS_OK;
}

/* A reducer whose name starts with an underscore is one of CouchDB's own. */
static enum status
design_check_reducer(struct design *d, struct str source)
{
	struct view_reduce reduce = { .n = 0 };
	struct err err = { 0 };

	if (view_reduce_parse(source, &reduce, &err) == STATUS_OK)
		return STATUS_OK;
	return couch_fail_set(d->fail, COUCH_ERROR_INVALID_DESIGN, "%s", err.text);
}

static enum status
design_check_view(struct design *d, struct str name, const struct json_value *view)
{
	bool query = str_eq(d->language, STR("query"));
	const struct type *of_map = query ? &of_object : &of_string;
	const struct json_value *map;
	const struct json_value *reduce;
	struct json_member *members;
	size_t count;

	if (!design_kind_fits(view, &of_object))
		return design_refuse(d, &of_object, "views", name, "");
	TRY(design_members_of(d, view, &members, &count));
	map = json_value_find(members, count, "map");
	reduce = json_value_find(members, count, "reduce");
	if (!design_kind_fits(map, of_map))
		return design_refuse(d, of_map, "views", name, "map");
	if (!design_kind_fits(reduce, &of_string))
		return design_refuse(d, &of_string, "views", name, "reduce");
	if (str_eq(name, STR("lib"))) /* modules that the functions share */
		return STATUS_OK;
	if (!map)
		return couch_fail_set(d->fail, COUCH_ERROR_INVALID_DESIGN,
				      "View `%s` must contain map function", QUOTE_SHOW(name));
	/* Only JavaScript's reducers are known here; those of another language are not checked. */
	if (!reduce || (d->language.ptr && !str_eq(d->language, STR("javascript"))))
		return STATUS_OK;
	return design_check_reducer(d, reduce->string);
}

static enum status
design_check_views(struct design *d, const struct json_value *object)
{
	struct json_member *views;
	size_t count;

	TRY(design_members_of(d, object, &views, &count));
	for (size_t i = 0; i < count; i++)
		TRY(design_check_view(d, views[i].name, &views[i].value));
	return STATUS_OK;
}

static enum status
design_check(struct design *d, struct str text)
{
	const struct json_value *value;
	struct json_value object;

	TRY(json_value_read(text, d->arena, &object, &d->fail->err));
	TRY(design_members_of(d, &object, &d->members, &d->count));
	value = json_value_find(d->members, d->count, "language");
	if (value && value->kind == JSON_STRING)
		d->language = value->string;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		value = json_value_find(d->members, d->count, fields[i].name);
		if (!design_kind_fits(value, fields[i].type))
			return design_refuse(d, fields[i].type, fields[i].name, STR(""), "");
		if (value && fields[i].functions)
			TRY(design_check_functions(d, fields[i].name, value));
	}
	value = json_value_find(d->members, d->count, "options");
	if (value)
		TRY(design_check_options(d, value));
	value = json_value_find(d->members, d->count, "views");
	return value ? design_check_views(d, value) : STATUS_OK;
}

enum status
couch_design_validate(struct couch_req *r, struct str id, const struct doc *doc,
		      struct couch_fail *fail)
{
	struct buf AUTO(buf_release) text = couch_buf(r, COUCH_ROW_BYTES);
	const struct rev_doc body = {
		.packed = doc->packed,
		.leaves = doc->leaves,
		.count = doc->count,
	};
	struct design d = { .r = r, .arena = r->arena, .fail = fail };

	if (!couch_is_design(id))
		return STATUS_OK;
	buf_append_byte(&text, '{');
	TRY(rev_body_write(&body, false, &text));
	TRY(buf_status(&text));
	return design_check(&d, buf_str(&text));
}

/* ---- What is asked of a design document ---- */

static enum status
design_find(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	const struct str *id = arg;
	struct rev_id rev;

	return rev_winner_read(tx, r->db, *id, r->arena, &rev);
}

enum status
couch_design_require(struct couch_req *r, struct str id)
{
	TRY(couch_docid_check(id, &r->fail));
	return couch_db_read(r, COUCH_ACCESS_MEMBER, design_find, &id);
}
