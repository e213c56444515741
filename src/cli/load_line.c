#include "cli/load_timed.h"

enum status
load_line_u64(const struct load_line *line, const char *name, uint64_t *ret)
{
	const struct json_value *value = json_value_find(line->members, line->count, name);

	if (!value || (value->kind == JSON_NUMBER && str_to_u64(value->text, ret)))
		return STATUS_OK;
	return err_set(line->err, STATUS_INVALID, "\"%s\" is a whole number", name);
}

enum status
load_line_list(const struct load_line *line, const char *name, bool needs, struct json_value **ret,
	       size_t *ret_count)
{
	const struct json_value *list = json_value_find(line->members, line->count, name);

	if (list)
		return json_value_items(list, line->arena, ret, ret_count, line->err);
	if (needs)
		return err_set(line->err, STATUS_INVALID, "\"%s\" is missing", name);
	*ret_count = 0;
	return STATUS_OK;
}

enum status
load_line_text(const struct load_line *line, const char *name, struct str *ret)
{
	const struct json_value *value = json_value_find(line->members, line->count, name);

	*ret = (struct str){ 0 };
	if (!value)
		return STATUS_OK;
	if (value->kind != JSON_STRING)
		return err_set(line->err, STATUS_INVALID, "\"%s\" is a text", name);
	*ret = value->string;
	return STATUS_OK;
}

bool
load_line_is_true(const struct load_line *line, const char *name)
{
	const struct json_value *value = json_value_find(line->members, line->count, name);

	return value && value->kind == JSON_TRUE;
}
