#include "doc/json_list.h"

#include <assert.h>

enum status
json_list_init(struct json_list *list, const struct json_value *array, struct arena *arena,
	       struct err *err)
{
	struct json_reader AUTO(json_reader_release) reader;
	size_t count = 0;
	size_t cap = 0;
	enum json_token token;

	*list = (struct json_list){ .text = array->text };
	json_reader_init(&reader, array->text, err);
	reader.scratch.part = arena_part(arena);
	TRY(json_next(&reader, &token));
	if (token != JSON_ARRAY_BEGIN)
		return err_set(err, STATUS_INVALID, "the value is not an array");
	for (;; count++) {
		/* The comma before the element belongs to the page, except before the first one. */
		size_t offset = (size_t)(reader.at - array->text.ptr);
		struct str skipped;

		TRY(json_next(&reader, &token));
		if (token == JSON_ARRAY_END)
			break;
		TRY(json_skip(&reader, token, &skipped));
		if (count % JSON_LIST_PAGE)
			continue;
		list->offsets = arena_grow(arena, list->offsets, list->pages, &cap,
					   sizeof(*list->offsets));
		if (!list->offsets)
			return STATUS_LIMIT;
		list->offsets[list->pages++] = offset;
	}
	list->count = count;
	return STATUS_OK;
}

enum status
json_list_page(const struct json_list *list, size_t page, struct arena *arena,
	       struct json_value ret[JSON_LIST_PAGE], size_t *ret_count)
{
	struct json_reader AUTO(json_reader_release) reader;
	size_t left = list->count - page * JSON_LIST_PAGE;
	size_t count = left < JSON_LIST_PAGE ? left : JSON_LIST_PAGE;
	enum json_token token;

	assert(page < list->pages);
	json_reader_init_within(&reader, list->text, list->offsets[page], NULL);
	reader.scratch.part = arena_part(arena);
	for (size_t i = 0; i < count; i++) {
		TRY(json_next(&reader, &token));
		TRY(json_value_take(&reader, token, arena, &ret[i]));
	}
	*ret_count = count;
	return STATUS_OK;
}
