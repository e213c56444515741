/* Lists of fields: a tree of the names wanted, which a document's leaves are read along. */
#include "index/selector/selector_int.h"

struct field {
	struct selector_name name;
	bool whole; /* the value and all below it */
	struct field *first;
	struct field *next; /* in the order of names */
};

struct selector_fields {
	struct field *first;
};

static struct field *
field_get(struct field **list, const struct selector_name *name, struct arena *arena)
{
	struct field *f;
	int c = -1;

	while (*list && (c = str_cmp((*list)->name.text, name->text)) < 0)
		list = &(*list)->next;
	if (*list && c == 0)
		return *list;
	f = arena_zalloc(arena, sizeof(*f));
	if (!f)
		return NULL;
	f->name = *name;
	f->next = *list;
	*list = f;
	return f;
}

static enum status
fields_add(struct selector_fields *fields, const struct selector_path *path, struct arena *arena)
{
	struct field **list = &fields->first;
	struct field *f = NULL;

	for (size_t i = 0; i < path->count; i++) {
		f = field_get(list, &path->names[i], arena);
		if (!f)
			return STATUS_LIMIT;
		list = &f->first;
	}
	if (f)
		f->whole = true;
	return STATUS_OK;
}

static enum status
fields_read(struct json_reader *r, struct str text, struct arena *arena,
	    struct selector_fields *fields, size_t *ret_count, enum selector_error *error,
	    struct err *err)
{
	enum json_token token;

	TRY(json_next(r, &token));
	if (token != JSON_ARRAY_BEGIN) {
		*error = SELECTOR_ERROR_INVALID_FIELDS;
		return err_set(err, STATUS_INVALID, "Fields must be an array of strings, not: %.*s",
			       STR_ARG(text));
	}
	for (*ret_count = 0;; ++*ret_count) {
		struct selector_name names[SELECTOR_PATH_NAMES];
		struct selector_path path = { names, 0 };

		TRY(json_next(r, &token));
		if (token == JSON_ARRAY_END)
			break;
		if (token != JSON_STRING) {
			TRY(json_skip(r, token, &text));
			*error = SELECTOR_ERROR_INVALID_FIELD;
			return err_set(err, STATUS_INVALID, "Invalid JSON for field spec: %.*s",
				       STR_ARG(text));
		}
		if (*ret_count == SELECTOR_FIELDS)
			return err_set(err, STATUS_LIMIT, "There are more than %d fields.",
				       (int)SELECTOR_FIELDS);
		TRY(selector_path_add(r->text, arena, &path, error, err));
		TRY(fields_add(fields, &path, arena));
	}
	return json_next(r, &token);
}

enum status
selector_fields_compile(struct str text, struct arena *arena, struct selector_fields **ret,
			enum selector_error *ret_error, struct err *err)
{
	struct json_reader AUTO(json_reader_release) r;
	struct selector_fields *fields = arena_zalloc(arena, sizeof(*fields));
	enum selector_error error = SELECTOR_ERROR_NONE;
	enum status status = STATUS_LIMIT;
	size_t count = 0;

	json_reader_init(&r, text, err);
	if (fields)
		status = fields_read(&r, text, arena, fields, &count, &error, err);
	if (ret_error)
		*ret_error = error;
	if (status == STATUS_OK)
		*ret = count ? fields : NULL;
	return status;
}

/* ---- Writing ---- */

static enum status
write_whole(const struct leaf_value *v, struct buf *out)
{
	struct doc_assembler AUTO(doc_assemble_release) a;

	doc_assemble_init(&a, out);
	for (size_t i = 0; i < v->count; i++)
		TRY(doc_assemble_leaf(&a, str_skip(v->leaves[i].key, v->at), v->leaves[i].value));
	return doc_assemble_end(&a);
}

static enum status write_fields(const struct field *list, const struct leaf_value *v,
				struct buf *out, bool *ret_any);

/* Writes the member if the value has it, or something of it that is wanted. */
static enum status
write_field(const struct field *f, const struct leaf_value *v, struct buf *out, bool *any)
{
	size_t begin = out->len;
	bool below = true;

	if (*any)
		buf_append_byte(out, ',');
	json_write_str(out, f->name.text);
	buf_append_byte(out, ':');
	if (f->whole)
		TRY(write_whole(v, out));
	else
		TRY(write_fields(f->first, v, out, &below));
	*any = *any || below;
	if (!below)
		out->len = begin;
	return buf_status(out);
}

static enum status
write_fields(const struct field *list, const struct leaf_value *v, struct buf *out, bool *ret_any)
{
	*ret_any = false;
	buf_append_byte(out, '{');
	for (const struct field *f = list; f; f = f->next) {
		enum selector_found found;
		struct leaf_value below;

		TRY(selector_step(v, &f->name, &below, &found));
		if (found == SELECTOR_FOUND)
			TRY(write_field(f, &below, out, ret_any));
	}
	buf_append_byte(out, '}');
	return buf_status(out);
}

static const struct field *
find_field(const struct field *list, struct str name)
{
	for (; list; list = list->next) {
		if (str_eq(list->name.text, name))
			return list;
	}
	return NULL;
}

enum status
selector_fields_write(const struct selector_fields *fields, const struct selector_doc *doc,
		      struct buf *out)
{
	const struct leaf_value body = { doc->leaves, doc->count, 0 };
	bool any = false;

	buf_append_byte(out, '{');
	for (size_t i = 0; i < doc->specials_count; i++) {
		const struct field *f = find_field(fields->first, doc->specials[i].name);

		if (f)
			TRY(write_field(f, &doc->specials[i].value, out, &any));
	}
	for (const struct field *f = fields->first; f; f = f->next) {
		enum selector_found found;
		struct leaf_value v;

		TRY(selector_step(&body, &f->name, &v, &found));
		if (found == SELECTOR_FOUND)
			TRY(write_field(f, &v, out, &any));
	}
	buf_append_byte(out, '}');
	return buf_status(out);
}
