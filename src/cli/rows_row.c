/* Keys of rows and paths below them as JSON: an object of components, an array of steps. */
#include "cli/rows.h"

enum status
rows_key_read(const struct timed_schema *schema, const struct json_member *fields, size_t count,
	      struct arena *arena, struct timed_key *ret, struct err *err)
{
	struct doc_scalar *parts = arena_zalloc(arena, schema->key_count * sizeof(*parts));
	size_t known = 0;

	if (!parts)
		return STATUS_LIMIT;
	for (; known < schema->key_count; known++) {
		const struct json_value *value = NULL;

		for (size_t i = 0; i < count; i++)
			if (str_eq(fields[i].name, schema->key[known].name))
				value = &fields[i].value;
		if (!value)
			break;
		TRY(rows_scalar_read(value, arena, &parts[known], err));
	}
	*ret = (struct timed_key){ parts, known };
	return STATUS_OK;
}

enum status
rows_key_check(const struct timed_schema *schema, const struct timed_key *key, size_t least,
	       struct err *err)
{
	if (key->count >= least)
		return STATUS_OK;
	return err_set(err, STATUS_INVALID, "the component \"%.*s\" of the key is missing",
		       STR_ARG(schema->key[key->count].name));
}

enum status
rows_column_read(const struct timed_schema *schema, struct str name, struct timed_step *ret,
		 struct err *err)
{
	*ret = (struct timed_step){ .column = timed_column_find(schema, name) };
	if (ret->column)
		return STATUS_OK;
	return err_set(err, STATUS_INVALID, "there is no column \"%.*s\"", STR_ARG(name));
}

enum status
rows_path_read(const struct timed_schema *schema, const struct json_value *list,
	       struct arena *arena, struct timed_path *ret, struct err *err)
{
	struct json_value *items;
	size_t count;

	*ret = (struct timed_path){ 0 };
	if (!list)
		return STATUS_OK;
	TRY(json_value_items(list, arena, &items, &count, err));
	for (size_t i = 0; i < count; i++) {
		struct timed_step step = { 0 };

		if (i == 0 && schema->column_count)
			TRY(rows_column_read(schema, items[i].string, &step, err));
		else
			TRY(rows_scalar_read(&items[i], arena, &step.key, err));
		*ret = rows_path_below(ret, step, arena);
		if (!ret->steps)
			return STATUS_LIMIT;
	}
	return STATUS_OK;
}

void
rows_key_write(const struct timed_schema *schema, const struct doc_scalar *key, struct buf *out)
{
	buf_append_byte(out, '{');
	for (size_t i = 0; i < schema->key_count; i++) {
		if (i)
			buf_append_byte(out, ',');
		json_write_str(out, schema->key[i].name);
		buf_append_byte(out, ':');
		rows_scalar_write(&key[i], out);
	}
	buf_append_byte(out, '}');
}

void
rows_path_write(const struct timed_schema *schema, const struct timed_path *path, struct buf *out)
{
	buf_append_byte(out, '[');
	for (size_t i = 0; i < path->count; i++) {
		const struct timed_step *step = &path->steps[i];

		if (i)
			buf_append_byte(out, ',');
		if (step->column)
			json_write_str(out, schema->columns[step->column - 1]);
		else
			rows_scalar_write(&step->key, out);
	}
	buf_append_byte(out, ']');
}

const char *
rows_type_name(enum timed_type type)
{
	static const char *const names[TIMED_TYPES] = {
		[TIMED_LEAF] = "updated", [TIMED_INSERTED] = "inserted", [TIMED_VALUE] = "value",
		[TIMED_HASH] = "hash",    [TIMED_SET] = "set",           [TIMED_ZSET] = "zset",
		[TIMED_LIST] = "list",    [TIMED_STREAM] = "stream",     [TIMED_JSON] = "json",
	};

	return names[type];
}

enum timed_type
rows_type_read(const struct json_value *value)
{
	for (int type = TIMED_LEAF; value && type < TIMED_TYPES; type++)
		if (str_eq(value->string, str_from_cstr(rows_type_name((enum timed_type)type))))
			return (enum timed_type)type;
	return TIMED_TYPES;
}
