#include "base/quote.h"
#include "index/selector/selector_int.h"

/* Encodes the element in the arena. `ptr` is NULL when the arena is full. */
static struct str
path_encode_member(struct str name, struct arena *arena)
{
	AUTO(buf_release) struct buf encoded = BUF_INIT((size_t)2 * SELECTOR_TEXT_BYTES);

	tuple_put_str(&encoded, name);
	if (buf_status(&encoded) != STATUS_OK)
		return (struct str){ NULL, 0 };
	return buf_dup(&encoded, arena);
}

static struct str
path_encode_position(uint64_t index, struct arena *arena)
{
	char bytes[16];
	struct buf encoded = { .ptr = bytes, .cap = sizeof(bytes), .max_bytes = sizeof(bytes) };

	tuple_put_u64(&encoded, index);
	return buf_dup(&encoded, arena);
}

static enum status
path_add_name(struct str text, struct arena *arena, struct selector_path *path, struct err *err)
{
	struct selector_name *name;
	int64_t index;

	if (path->count == SELECTOR_PATH_NAMES)
		return err_set(err, STATUS_LIMIT, "The path of a field has more than %d names.",
			       (int)SELECTOR_PATH_NAMES);
	name = &path->names[path->count];
	*name = (struct selector_name){ .text = text, .member = path_encode_member(text, arena) };
	if (!name->member.ptr)
		return STATUS_LIMIT;
	if (str_to_i64(text, &index) && index >= 0) {
		name->index = path_encode_position((uint64_t)index, arena);
		if (!name->index.ptr)
			return STATUS_LIMIT;
	}
	path->count++;
	return STATUS_OK;
}

/* Where the first name of the field ends: at a dot without a backslash before it. */
static size_t
path_name_end(struct str field)
{
	size_t at = 0;

	while (at < field.len && (field.ptr[at] != '.' || (at > 0 && field.ptr[at - 1] == '\\')))
		at++;
	return at;
}

enum status
selector_name_cut(struct str *field, struct arena *arena, struct str *ret, bool *ret_more)
{
	size_t end = path_name_end(*field);
	size_t len = 0;
	char *text;

	if (end == 0)
		return STATUS_INVALID;
	text = arena_bytes(arena, end);
	if (!text)
		return STATUS_LIMIT;
	for (size_t i = 0; i < end; i++) {
		if (field->ptr[i] != '\\')
			text[len++] = field->ptr[i];
	}
	*ret = str_of(text, len);
	*ret_more = end < field->len;
	*field = str_skip(*field, *ret_more ? end + 1 : end);
	return STATUS_OK;
}

enum status
selector_path_add(struct str field, struct arena *arena, struct selector_path *path,
		  enum selector_error *error, struct err *err)
{
	struct str rest = field;
	struct str name;
	bool more = true;

	while (more) {
		enum status status = selector_name_cut(&rest, arena, &name, &more);

		if (status == STATUS_INVALID) {
			*error = SELECTOR_ERROR_INVALID_FIELD_NAME;
			return err_set(err, STATUS_INVALID, "Invalid field name: %s",
				       QUOTE_SHOW(field));
		}
		TRY(status);
		TRY(path_add_name(name, arena, path, err));
	}
	return STATUS_OK;
}

enum status
selector_step(const struct leaf_value *v, const struct selector_name *name, struct leaf_value *ret,
	      enum selector_found *ret_found)
{
	enum leaf_kind kind;
	bool found = false;

	TRY(leaf_kind(v, &kind));
	if (kind == LEAF_OBJECT)
		found = leaf_find(v, name->member, ret);
	else if (kind == LEAF_ARRAY && name->index.len)
		found = leaf_find(v, name->index, ret);
	if (found)
		*ret_found = SELECTOR_FOUND;
	else
		*ret_found = kind == LEAF_OBJECT ? SELECTOR_NO_MEMBER : SELECTOR_BAD_PATH;
	return STATUS_OK;
}

enum status
selector_lookup(const struct selector_doc *doc, const struct selector_path *path,
		struct leaf_value *ret, enum selector_found *ret_found)
{
	struct leaf_value v = { doc->leaves, doc->count, 0 };
	size_t at = 0;

	*ret_found = SELECTOR_FOUND;
	for (size_t i = 0; path->count && i < doc->specials_count; i++) {
		if (str_eq(doc->specials[i].name, path->names[0].text)) {
			v = doc->specials[i].value;
			at = 1;
			break;
		}
	}
	for (; at < path->count && *ret_found == SELECTOR_FOUND; at++)
		TRY(selector_step(&v, &path->names[at], &v, ret_found));
	*ret = v;
	return STATUS_OK;
}
