#include "doc/json_value.h"

enum status
json_value_take(struct json_reader *reader, enum json_token first, struct arena *arena,
		struct json_value *ret)
{
	struct json_value value = { .kind = first };

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
json_value_read(struct str text, struct arena *arena, struct json_value *ret, struct err *err)
{
	struct json_reader AUTO(json_reader_release) reader;
	enum json_token token;

	json_reader_init(&reader, text, err);
	reader.scratch.part = arena_part(arena);
	TRY(json_next(&reader, &token));
	if (token == JSON_END)
		return err_set(err, STATUS_JSON_SYNTAX, "there is no value");
	TRY(json_value_take(&reader, token, arena, ret));
	return json_next(&reader, &token);
}

enum status
json_value_members(const struct json_value *object, struct arena *arena, struct json_member **ret,
		   size_t *ret_count, struct err *err)
{
	struct json_reader AUTO(json_reader_release) reader;
	struct json_member *members = NULL;
	size_t count = 0;
	size_t cap = 0;
	enum json_token token;

	json_reader_init(&reader, object->text, err);
	reader.scratch.part = arena_part(arena);
	TRY(json_next(&reader, &token));
	if (token != JSON_OBJECT_BEGIN)
		return err_set(err, STATUS_INVALID, "the value is not an object");
	for (;;) {
		struct json_member *grown;

		TRY(json_next(&reader, &token));
		if (token == JSON_OBJECT_END)
			break;
		grown = arena_grow(arena, members, count, &cap, sizeof(*members));
		if (!grown)
			return STATUS_LIMIT;
		members = grown;
		members[count].name = arena_dup(arena, reader.text);
		if (!members[count].name.ptr)
			return STATUS_LIMIT;
		TRY(json_next(&reader, &token));
		TRY(json_value_take(&reader, token, arena, &members[count].value));
		count++;
	}
	*ret = members;
	*ret_count = count;
	return STATUS_OK;
}

enum status
json_read_members(struct str text, struct arena *arena, struct json_member **ret, size_t *ret_count,
		  struct err *err)
{
	struct json_value object;

	TRY(json_value_read(text, arena, &object, err));
	return json_value_members(&object, arena, ret, ret_count, err);
}

enum status
json_value_items(const struct json_value *array, struct arena *arena, struct json_value **ret,
		 size_t *ret_count, struct err *err)
{
	struct json_reader AUTO(json_reader_release) reader;
	struct json_value *items = NULL;
	size_t count = 0;
	size_t cap = 0;
	enum json_token token;

	json_reader_init(&reader, array->text, err);
	reader.scratch.part = arena_part(arena);
	TRY(json_next(&reader, &token));
	if (token != JSON_ARRAY_BEGIN)
		return err_set(err, STATUS_INVALID, "the value is not an array");
	for (;;) {
		struct json_value *grown;

		TRY(json_next(&reader, &token));
		if (token == JSON_ARRAY_END)
			break;
		grown = arena_grow(arena, items, count, &cap, sizeof(*items));
		if (!grown)
			return STATUS_LIMIT;
		items = grown;
		TRY(json_value_take(&reader, token, arena, &items[count]));
		count++;
	}
	*ret = items;
	*ret_count = count;
	return STATUS_OK;
}

const struct json_value *
json_value_find(const struct json_member *members, size_t count, const char *name)
{
	for (size_t i = count; i-- > 0;) {
		if (str_eq(members[i].name, str_from_cstr(name)))
			return &members[i].value;
	}
	return NULL;
}

/* One step of a path; NULL: nothing is there. */
static enum status
step_into(const struct json_value *v, struct str name, struct arena *arena,
	  const struct json_value **ret)
{
	struct json_member *members;
	struct json_value *items;
	uint64_t n;
	size_t count;

	*ret = NULL;
	if (v->kind == JSON_OBJECT_BEGIN) {
		TRY(json_value_members(v, arena, &members, &count, NULL));
		for (size_t i = 0; i < count; i++)
			if (str_eq(members[i].name, name))
				*ret = &members[i].value;
	} else if (v->kind == JSON_ARRAY_BEGIN) {
		TRY(json_value_items(v, arena, &items, &count, NULL));
		if (str_to_u64(name, &n) && n < count)
			*ret = &items[n];
	}
	return STATUS_OK;
}

enum status
json_value_at(const struct json_value *value, const struct str *path, size_t count,
	      struct arena *arena, const struct json_value **ret)
{
	*ret = value;
	for (size_t i = 0; i < count && *ret; i++)
		TRY(step_into(*ret, path[i], arena, ret));
	return STATUS_OK;
}
