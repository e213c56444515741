#include "door/couch/query/index_def.h"

#include <openssl/sha.h>
#include <stddef.h>

#include "base/quote.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/reply.h"

struct str
query_design_id(struct str name, struct arena *arena)
{
	char *text;

	if (str_starts_with(name, STR("_design/")))
		return name;
	text = arena_bytes(arena, strlen("_design/") + name.len);
	if (!text)
		return (struct str){ NULL, 0 };
	memcpy(text, "_design/", strlen("_design/"));
	memcpy(text + strlen("_design/"), name.ptr, name.len);
	return str_of(text, strlen("_design/") + name.len);
}

static enum status
index_read_paths(struct query_index *index, struct arena *arena)
{
	index->paths = arena_alloc(arena, (index->columns.count + 1) * sizeof(*index->paths));
	if (!index->paths)
		return STATUS_LIMIT;
	for (size_t i = 0; i < index->columns.count; i++)
		TRY(normal_path_read(index->columns.fields[i], arena, &index->paths[i]));
	return STATUS_OK;
}

/* ---- What a request asks for ---- */

struct index_body {
	const struct json_value *definition;
	struct str type;
	struct str name;
	struct str ddoc;
	uint64_t w;
	bool has_partitioned;
	bool partitioned;
};

static enum status
body_take_type(struct couch_req *r, const struct json_value *v, void *into)
{
	if (v->kind != JSON_STRING)
		return couch_fail_set(&r->fail, COUCH_ERROR_INVALID_STRING, "Invalid string: %s",
				      QUOTE_SHOW(v->text));
	((struct index_body *)into)->type = v->string;
	return STATUS_OK;
}

static enum status
body_take_partitioned(struct couch_req *r, const struct json_value *v, void *into)
{
	struct index_body *b = into;

	if (v->kind != JSON_TRUE && v->kind != JSON_FALSE)
		return couch_fail_set(&r->fail, COUCH_ERROR_UNKNOWN,
				      "Unknown Error: mango_opts :: {invalid_partitioned_value,%s}",
				      QUOTE_SHOW(v->text));
	b->has_partitioned = true;
	b->partitioned = v->kind == JSON_TRUE;
	return STATUS_OK;
}

static const struct query_member body_members[] = {
	{ "index", true, query_take_value, offsetof(struct index_body, definition) },
	{ "type", false, body_take_type, 0 },
	{ "name", false, query_take_name, offsetof(struct index_body, name) },
	{ "ddoc", false, query_take_name, offsetof(struct index_body, ddoc) },
	{ "w", false, query_take_positive, offsetof(struct index_body, w) },
	{ "partitioned", false, body_take_partitioned, 0 },
};

/* ---- Names that are made of definitions ---- */

/* Elements of Erlang's external term format, as far as a name needs them. */
static void
term_put_atom(struct buf *out, const char *name)
{
	buf_append_byte(out, 100);
	buf_append_byte(out, 0);
	buf_append_byte(out, (uint8_t)strlen(name));
	buf_append_cstr(out, name);
}

static void
term_put_u32(struct buf *out, size_t n)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		buf_append_byte(out, (uint8_t)(n >> shift));
}

static void
term_put_binary(struct buf *out, struct str s)
{
	buf_append_byte(out, 109);
	term_put_u32(out, s.len);
	buf_append_str(out, s);
}

static void
term_begin_pair(struct buf *out)
{
	buf_append_byte(out, 104);
	buf_append_byte(out, 2);
}

static void
term_put_option(struct buf *out, const char *name, struct str value)
{
	term_begin_pair(out);
	term_put_atom(out, name);
	if (value.ptr)
		term_put_binary(out, value);
	else
		term_put_atom(out, "auto_name");
}

static void
term_put_w(struct buf *out, uint64_t w)
{
	term_begin_pair(out);
	term_put_atom(out, "w");
	buf_append_byte(out, w < 256 ? 97 : 98);
	if (w < 256)
		buf_append_byte(out, (uint8_t)w);
	else
		term_put_u32(out, (size_t)w);
}

/*
 * The name that CouchDB gives: the SHA-1 of the term {Definition, Options}, where the options are
 * those of the request and the defaults of the others, in the order of their names.
 */
static enum status
index_make_name(const struct index_body *b, struct arena *arena, struct str *ret)
{
	const struct doc_limits limits = { .doc_bytes = SIZE_MAX,
					   .path_bytes = KV_LIMIT_KEY_BYTES };
	AUTO(buf_release) struct buf term = BUF_INIT_OF(SIZE_MAX, arena_part(arena));
	AUTO(buf_release) struct buf hex = BUF_SHORT(2 * SHA_DIGEST_LENGTH);
	uint8_t digest[SHA_DIGEST_LENGTH];
	struct doc definition;

	TRY(doc_explode_value_text(b->definition->text, arena, &limits, &definition, NULL));
	buf_append_byte(&term, 131);
	term_begin_pair(&term);
	buf_append_str(&term, definition.term);
	buf_append_byte(&term, 108);
	term_put_u32(&term, 6);
	term_put_option(&term, "ddoc", b->ddoc);
	term_begin_pair(&term);
	term_put_atom(&term, "def");
	buf_append_str(&term, definition.term);
	term_put_option(&term, "name", b->name);
	term_begin_pair(&term);
	term_put_atom(&term, "partitioned");
	term_put_atom(&term, !b->has_partitioned ? "db_default"
			     : b->partitioned    ? "true"
						 : "false");
	term_put_option(&term, "type", b->type);
	term_put_w(&term, b->w);
	buf_append_byte(&term, 106);
	TRY(buf_status(&term));
	SHA1((const unsigned char *)term.ptr, term.len, digest);
	buf_append_hex(&hex, str_of(digest, sizeof(digest)));
	return buf_copy(&hex, arena, ret);
}

/* ---- Definitions ---- */

static enum status
definition_take_filter(struct couch_req *r, const struct json_value *v, void *into)
{
	AUTO(buf_release) struct buf text = couch_buf(r, SIZE_MAX);
	struct query_index *index = into;
	struct selector *selector;
	struct normal_node *normal;

	TRY(query_selector_compile(r, v->text, &selector));
	TRY(normal_read(v->text, r->arena, &normal));
	if (normal->kind == NORMAL_ANYTHING)
		return STATUS_OK;
	normal_write(normal, &text);
	return buf_copy(&text, r->arena, &index->filter);
}

static const struct query_member definition_members[] = {
	{ "fields", true, query_take_sort, offsetof(struct query_index, columns) },
	{ "partial_filter_selector", false, definition_take_filter, 0 },
};

static enum status
index_read_definition(struct couch_req *r, const struct json_value *v, struct query_index *index)
{
	struct json_member *members;
	size_t count;

	if (v->kind != JSON_OBJECT_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_INVALID_INDEX,
				      "JSON indexes must be an object, not: %s",
				      QUOTE_SHOW(v->text));
	TRY(json_value_members(v, r->arena, &members, &count, &r->fail.err));
	TRY(query_members_check(r, members, count, definition_members,
				sizeof(definition_members) / sizeof(definition_members[0]), index));
	if (index->columns.count == 0)
		return couch_fail_set(&r->fail, COUCH_ERROR_INVALID_INDEX,
				      "An index needs at least one field.");
	for (size_t i = 0; i < index->columns.count; i++) {
		struct normal_path path;

		if (normal_path_read(index->columns.fields[i], r->arena, &path) == STATUS_INVALID)
			return couch_fail_set(&r->fail, COUCH_ERROR_INVALID_FIELD_NAME,
					      "Invalid field name: %s",
					      QUOTE_SHOW(index->columns.fields[i]));
	}
	return index_read_paths(index, r->arena);
}

static enum status
index_check_type(struct couch_req *r, struct str type)
{
	if (str_eq(type, STR("json")))
		return STATUS_OK;
	if (str_eq(type, STR("text")) || str_eq(type, STR("nouveau")))
		return couch_fail_set(&r->fail, COUCH_ERROR_INDEX_NOT_IMPLEMENTED,
				      "%s: there is no full-text search here. An index of the type "
				      "json serves $beginsWith, and $regex looks into strings.",
				      QUOTE_SHOW(type));
	return couch_fail_set(&r->fail, COUCH_ERROR_INVALID_INDEX, "Invalid type for index: %s",
			      QUOTE_SHOW(type));
}

enum status
index_request_read(struct couch_req *r, struct index_request *ret)
{
	struct index_body b = { .type = STR("json"), .w = 2 };
	struct query_index *index = &ret->index;

	*ret = (struct index_request){ 0 };
	TRY(query_members_read(r, (size_t)r->settings->body_bytes, body_members,
			       sizeof(body_members) / sizeof(body_members[0]), &b));
	TRY(index_check_type(r, b.type));
	TRY(index_read_definition(r, b.definition, index));
	ret->definition = b.definition->text;
	ret->has_partitioned = b.has_partitioned;
	index->partitioned = b.partitioned;
	index->name = b.name;
	if (!b.name.ptr)
		TRY(index_make_name(&b, r->arena, &index->name));
	if (!b.ddoc.ptr)
		TRY(index_make_name(&b, r->arena, &b.ddoc));
	index->ddoc = query_design_id(b.ddoc, r->arena);
	return index->ddoc.ptr ? couch_docid_check(index->ddoc, &r->fail) : STATUS_LIMIT;
}

/* ---- Writing ---- */

static const char *
index_direction(const struct query_index *index)
{
	return index->columns.descending ? "\"desc\"" : "\"asc\"";
}

void
index_request_write_view(const struct index_request *q, struct buf *out)
{
	const struct query_index *index = &q->index;

	json_write_str(out, index->name);
	buf_append_cstr(out, ":{\"map\":{\"fields\":{");
	for (size_t i = 0; i < index->columns.count; i++) {
		buf_append_cstr(out, i ? "," : "");
		json_write_str(out, index->columns.fields[i]);
		buf_append_byte(out, ':');
		buf_append_cstr(out, index_direction(index));
	}
	buf_append_cstr(out, "},\"partial_filter_selector\":");
	buf_append_str(out, index->filter.ptr ? index->filter : STR("{}"));
	buf_append_cstr(out, "},\"reduce\":\"_count\",\"options\":{\"def\":");
	buf_append_str(out, q->definition);
	buf_append_cstr(out, "}}");
}

void
query_index_write(const struct query_index *index, struct buf *out)
{
	buf_append_cstr(out, "{\"ddoc\":");
	if (index->ddoc.ptr)
		json_write_str(out, index->ddoc);
	else
		buf_append_cstr(out, "null");
	buf_append_cstr(out, ",\"name\":");
	json_write_str(out, index->name);
	if (index->ddoc.ptr)
		buf_append_cstr(out, index->partitioned
					     ? ",\"type\":\"json\",\"partitioned\":true"
					     : ",\"type\":\"json\",\"partitioned\":false");
	else
		buf_append_cstr(out, ",\"type\":\"special\"");
	buf_append_cstr(out, ",\"def\":{\"fields\":[");
	for (size_t i = 0; i < index->columns.count; i++) {
		buf_append_cstr(out, i ? ",{" : "{");
		json_write_str(out, index->columns.fields[i]);
		buf_append_byte(out, ':');
		buf_append_cstr(out, index_direction(index));
		buf_append_byte(out, '}');
	}
	buf_append_byte(out, ']');
	if (index->filter.ptr) {
		buf_append_cstr(out, ",\"partial_filter_selector\":");
		buf_append_str(out, index->filter);
	}
	buf_append_cstr(out, "}}");
}

/* ---- Design documents ---- */

enum status
query_index_all_docs(struct arena *arena, struct query_index *ret)
{
	struct str *fields = arena_alloc(arena, sizeof(*fields));

	if (!fields)
		return STATUS_LIMIT;
	fields[0] = STR("_id");
	*ret = (struct query_index){ .name = STR("_all_docs"),
				     .columns = { .fields = fields, .count = 1 } };
	return index_read_paths(ret, arena);
}

/* Reads {"a":"asc","b":"asc"}; false for what is no list of columns. */
static enum status
view_read_columns(struct couch_req *r, const struct json_value *fields, struct query_index *index,
		  bool *ret_valid)
{
	struct json_member *members;
	size_t count;

	*ret_valid = false;
	if (!fields || fields->kind != JSON_OBJECT_BEGIN)
		return STATUS_OK;
	TRY(json_value_members(fields, r->arena, &members, &count, NULL));
	index->columns.fields = arena_alloc(r->arena, (count + 1) * sizeof(*index->columns.fields));
	if (!index->columns.fields)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		struct str direction = members[i].value.string;

		if (members[i].value.kind != JSON_STRING ||
		    (!str_eq(direction, STR("asc")) && !str_eq(direction, STR("desc"))))
			return STATUS_OK;
		index->columns.fields[i] = members[i].name;
		index->columns.descending = str_eq(direction, STR("desc"));
	}
	index->columns.count = count;
	*ret_valid = count > 0;
	return STATUS_OK;
}

/*
 * The order of the columns. Members of a stored object come in the order of their names, so it is
 * taken from the definition that the view keeps among its options, which is an array.
 */
static enum status
view_order_columns(struct couch_req *r, const struct json_member *view, size_t count,
		   struct query_index *index)
{
	const struct json_value *v = json_value_find(view, count, "options");
	struct json_member *members;
	size_t members_count;
	struct query_sort order = { 0 };
	struct couch_fail fail = r->fail;
	size_t same = 0;

	for (size_t i = 0; i < 2 && v; i++) {
		if (v->kind != JSON_OBJECT_BEGIN)
			return STATUS_OK;
		TRY(json_value_members(v, r->arena, &members, &members_count, NULL));
		v = json_value_find(members, members_count, i ? "fields" : "def");
	}
	if (!v || query_take_sort(r, v, &order) != STATUS_OK) {
		r->fail = fail;
		return STATUS_OK;
	}
	for (size_t i = 0; i < order.count; i++) {
		for (size_t k = 0; k < index->columns.count; k++)
			same += str_eq(order.fields[i], index->columns.fields[k]);
	}
	if (same == order.count && order.count == index->columns.count)
		index->columns.fields = order.fields;
	return STATUS_OK;
}

/* Reads a view. `*ret_valid` is false for one that defines no index. */
static enum status
view_read(struct couch_req *r, const struct json_value *view, struct query_index *index,
	  bool *ret_valid)
{
	struct json_member *members;
	struct json_member *map;
	const struct json_value *v;
	size_t count;
	size_t map_count;

	*ret_valid = false;
	if (view->kind != JSON_OBJECT_BEGIN)
		return STATUS_OK;
	TRY(json_value_members(view, r->arena, &members, &count, NULL));
	v = json_value_find(members, count, "map");
	if (!v || v->kind != JSON_OBJECT_BEGIN)
		return STATUS_OK;
	TRY(json_value_members(v, r->arena, &map, &map_count, NULL));
	TRY(view_read_columns(r, json_value_find(map, map_count, "fields"), index, ret_valid));
	if (!*ret_valid)
		return STATUS_OK;
	TRY(view_order_columns(r, members, count, index));
	v = json_value_find(map, map_count, "partial_filter_selector");
	if (v && v->kind == JSON_OBJECT_BEGIN && !str_eq(v->text, STR("{}")))
		index->filter = v->text;
	*ret_valid = index_read_paths(index, r->arena) == STATUS_OK;
	return STATUS_OK;
}

static enum status
design_read_partitioned(struct couch_req *r, const struct json_value *options, bool *partitioned)
{
	struct json_member *members;
	const struct json_value *v;
	size_t count;

	if (!options || options->kind != JSON_OBJECT_BEGIN)
		return STATUS_OK;
	TRY(json_value_members(options, r->arena, &members, &count, NULL));
	v = json_value_find(members, count, "partitioned");
	if (v && (v->kind == JSON_TRUE || v->kind == JSON_FALSE))
		*partitioned = v->kind == JSON_TRUE;
	return STATUS_OK;
}

enum status
query_indexes_add(struct couch_req *r, struct str ddoc, struct str text, bool db_partitioned,
		  struct query_indexes *list)
{
	struct json_member *members;
	struct json_member *views;
	struct json_value value;
	const struct json_value *v;
	size_t count;
	size_t views_count;

	TRY(json_value_read(text, r->arena, &value, NULL));
	TRY(json_value_members(&value, r->arena, &members, &count, NULL));
	v = json_value_find(members, count, "language");
	if (!v || v->kind != JSON_STRING || !str_eq(v->string, STR("query")))
		return STATUS_OK;
	TRY(design_read_partitioned(r, json_value_find(members, count, "options"),
				    &db_partitioned));
	v = json_value_find(members, count, "views");
	if (!v || v->kind != JSON_OBJECT_BEGIN)
		return STATUS_OK;
	TRY(json_value_members(v, r->arena, &views, &views_count, NULL));
	for (size_t i = 0; i < views_count; i++) {
		struct query_index index = { .ddoc = ddoc,
					     .name = views[i].name,
					     .partitioned = db_partitioned };
		bool valid;

		TRY(view_read(r, &views[i].value, &index, &valid));
		if (!valid)
			continue;
		TRY(arena_room(r->arena, &list->items, list->count, &list->cap,
			       sizeof(*list->items)));
		list->items[list->count++] = index;
	}
	return STATUS_OK;
}
