/* Values inside of a request's JSON: small ones, taken apart member by member. */
#include "door/couch/couch_int.h"

void *
couch_grow(struct arena *arena, void *array, size_t count, size_t *cap, size_t elem_bytes)
{
	size_t wanted = *cap ? 2 * *cap : 8;
	void *grown;

	if (count < *cap)
		return array;
	grown = arena_alloc(arena, wanted * elem_bytes);
	if (!grown)
		return NULL;
	if (count)
		memcpy(grown, array, count * elem_bytes);
	*cap = wanted;
	return grown;
}

enum status
couch_json_take(struct json_reader *reader, enum json_token first, struct arena *arena,
		struct couch_json *ret)
{
	struct couch_json value = { .kind = first };

	if (first == JSON_STRING) {
		value.string = arena_dup(arena, reader->text);
		if (!value.string.ptr)
			return STATUS_LIMIT;
	}
	value.is_integer = first == JSON_NUMBER && reader->is_integer;
	TRY(json_skip(reader, first, &value.text));
	*ret = value;
	return STATUS_OK;
}

enum status
couch_json_read(struct str text, struct arena *arena, struct couch_json *ret, struct err *err)
{
	struct json_reader AUTO(json_reader_release) reader;
	enum json_token token;

	json_reader_init(&reader, text, err);
	TRY(json_next(&reader, &token));
	if (token == JSON_END)
		return err_set(err, STATUS_JSON_SYNTAX, "there is no value");
	TRY(couch_json_take(&reader, token, arena, ret));
	return json_next(&reader, &token);
}

enum status
couch_json_members(const struct couch_json *object, struct arena *arena, struct couch_member **ret,
		   size_t *ret_count, struct err *err)
{
	struct json_reader AUTO(json_reader_release) reader;
	struct couch_member *members = NULL;
	size_t count = 0;
	size_t cap = 0;
	enum json_token token;

	json_reader_init(&reader, object->text, err);
	TRY(json_next(&reader, &token));
	if (token != JSON_OBJECT_BEGIN)
		return err_set(err, STATUS_INVALID, "the value is not an object");
	for (;;) {
		struct couch_member *grown;

		TRY(json_next(&reader, &token));
		if (token == JSON_OBJECT_END)
			break;
		grown = couch_grow(arena, members, count, &cap, sizeof(*members));
		if (!grown)
			return STATUS_LIMIT;
		members = grown;
		members[count].name = arena_dup(arena, reader.text);
		if (!members[count].name.ptr)
			return STATUS_LIMIT;
		TRY(json_next(&reader, &token));
		TRY(couch_json_take(&reader, token, arena, &members[count].value));
		count++;
	}
	*ret = members;
	*ret_count = count;
	return STATUS_OK;
}

enum status
couch_json_items(const struct couch_json *array, struct arena *arena, struct couch_json **ret,
		 size_t *ret_count, struct err *err)
{
	struct json_reader AUTO(json_reader_release) reader;
	struct couch_json *items = NULL;
	size_t count = 0;
	size_t cap = 0;
	enum json_token token;

	json_reader_init(&reader, array->text, err);
	TRY(json_next(&reader, &token));
	if (token != JSON_ARRAY_BEGIN)
		return err_set(err, STATUS_INVALID, "the value is not an array");
	for (;;) {
		struct couch_json *grown;

		TRY(json_next(&reader, &token));
		if (token == JSON_ARRAY_END)
			break;
		grown = couch_grow(arena, items, count, &cap, sizeof(*items));
		if (!grown)
			return STATUS_LIMIT;
		items = grown;
		TRY(couch_json_take(&reader, token, arena, &items[count]));
		count++;
	}
	*ret = items;
	*ret_count = count;
	return STATUS_OK;
}

const struct couch_json *
couch_json_find(const struct couch_member *members, size_t count, const char *name)
{
	for (size_t i = count; i-- > 0;) {
		if (str_eq(members[i].name, str_from_cstr(name)))
			return &members[i].value;
	}
	return NULL;
}

enum status
couch_read_object(struct couch_req *r, size_t max_bytes, struct couch_member **ret,
		  size_t *ret_count)
{
	struct couch_json body;
	struct str text;

	TRY(couch_read_body(r, max_bytes, &text));
	TRY(couch_json_read(text, r->arena, &body, &r->fail.err));
	if (body.kind != JSON_OBJECT_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Request body must be a JSON object");
	return couch_json_members(&body, r->arena, ret, ret_count, &r->fail.err);
}
