/*
 * Lists of fields. The names of the wanted fields form a tree, and the reading of a document
 * follows this tree.
 */
#include "base/quote.h"
#include "index/selector/selector_int.h"

struct fields_node {
	struct selector_name name;
	bool whole; /* the value and all below it */
	struct fields_node *first;
	struct fields_node *next; /* in the order of names */
};

struct selector_fields {
	struct fields_node *first;
};

/* Returns the node of that name in the list, where it is put if it is not there. */
static enum status
fields_node_get(struct fields_node **list, const struct selector_name *name, struct index_work *w,
		struct fields_node **ret)
{
	struct fields_node *f;
	int c = -1;

	for (; *list && (c = str_cmp((*list)->name.text, name->text)) < 0; list = &(*list)->next)
		TRY(index_count_bytes(w, name->text.len));
	if (*list && c == 0) {
		*ret = *list;
		return STATUS_OK;
	}
	f = arena_zalloc(w->arena, sizeof(*f));
	if (!f)
		return STATUS_LIMIT;
	f->name = *name;
	f->next = *list;
	*list = f;
	*ret = f;
	return STATUS_OK;
}

static enum status
fields_add(struct selector_fields *fields, const struct selector_path *path, struct index_work *w)
{
	struct fields_node **list = &fields->first;
	struct fields_node *f = NULL;

	for (size_t i = 0; i < path->count; i++) {
		TRY(fields_node_get(list, &path->names[i], w, &f));
		list = &f->first;
	}
	if (f)
		f->whole = true;
	return STATUS_OK;
}

static enum status
fields_read(struct json_reader *r, struct str text, struct index_work *w,
	    struct selector_fields *fields, size_t *ret_count, enum selector_error *error,
	    struct err *err)
{
	enum json_token token;

	TRY(json_next(r, &token));
	if (token != JSON_ARRAY_BEGIN) {
		*error = SELECTOR_ERROR_INVALID_FIELDS;
		return err_set(err, STATUS_INVALID, "Fields must be an array of strings, not: %s",
			       QUOTE_SHOW(text));
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
			return err_set(err, STATUS_INVALID, "Invalid JSON for field spec: %s",
				       QUOTE_SHOW(text));
		}
		if (*ret_count == SELECTOR_FIELDS)
			return err_set(err, STATUS_LIMIT, "There are more than %d fields.",
				       (int)SELECTOR_FIELDS);
		TRY(selector_path_add(r->text, w->arena, &path, error, err));
		TRY(fields_add(fields, &path, w));
	}
	return json_next(r, &token);
}

enum status
selector_fields_compile(struct str text, struct index_work *w, struct selector_fields **ret,
			enum selector_error *ret_error, struct err *err)
{
	struct json_reader AUTO(json_reader_release) r;
	struct selector_fields *fields = arena_zalloc(w->arena, sizeof(*fields));
	enum selector_error error = SELECTOR_ERROR_NONE;
	enum status status = STATUS_LIMIT;
	size_t count = 0;

	json_reader_init(&r, text, err);
	r.scratch.part = arena_part(w->arena);
	if (fields)
		status = fields_read(&r, text, w, fields, &count, &error, err);
	if (ret_error)
		*ret_error = error;
	if (status == STATUS_OK)
		*ret = count ? fields : NULL;
	return status;
}

enum status
selector_fields_members(const struct selector_fields *fields, struct arena *arena, struct str **ret,
			size_t *ret_count)
{
	size_t count = 0;

	for (const struct fields_node *f = fields->first; f; f = f->next)
		count++;
	*ret = arena_alloc(arena, (count + 1) * sizeof(**ret));
	if (!*ret)
		return STATUS_LIMIT;
	*ret_count = 0;
	for (const struct fields_node *f = fields->first; f; f = f->next)
		(*ret)[(*ret_count)++] = f->name.text;
	return STATUS_OK;
}

/* ---- Writing ---- */

static enum status
fields_write_whole(const struct leaf_value *v, struct index_work *w, struct buf *out)
{
	struct doc_assembler AUTO(doc_assemble_release) a;

	doc_assemble_init(&a, out);
	for (size_t i = 0; i < v->count; i++) {
		TRY(index_count_bytes(w, v->leaves[i].value.len));
		TRY(doc_assemble_leaf(&a, str_skip(v->leaves[i].key, v->at), v->leaves[i].value));
	}
	return doc_assemble_end(&a);
}

static enum status fields_write_all(const struct fields_node *list, const struct leaf_value *v,
				    struct index_work *w, struct buf *out, bool *ret_any);

/* Writes the member if the value has it, or those parts of it that are wanted. */
static enum status
fields_write_one(const struct fields_node *f, const struct leaf_value *v, struct index_work *w,
		 struct buf *out, bool *any)
{
	size_t begin = out->len;
	bool below = true;

	if (*any)
		buf_append_byte(out, ',');
	json_write_str(out, f->name.text);
	buf_append_byte(out, ':');
	if (f->whole)
		TRY(fields_write_whole(v, w, out));
	else
		TRY(fields_write_all(f->first, v, w, out, &below));
	*any = *any || below;
	if (!below)
		out->len = begin;
	return buf_status(out);
}

static enum status
fields_write_all(const struct fields_node *list, const struct leaf_value *v, struct index_work *w,
		 struct buf *out, bool *ret_any)
{
	*ret_any = false;
	buf_append_byte(out, '{');
	for (const struct fields_node *f = list; f; f = f->next) {
		enum selector_found found;
		struct leaf_value below;

		TRY(index_count(w, SELECTOR_NAME_STEPS));
		TRY(selector_step(v, &f->name, &below, &found));
		if (found == SELECTOR_FOUND)
			TRY(fields_write_one(f, &below, w, out, ret_any));
	}
	buf_append_byte(out, '}');
	return buf_status(out);
}

static const struct fields_node *
fields_find(const struct fields_node *list, struct str name)
{
	for (; list; list = list->next) {
		if (str_eq(list->name.text, name))
			return list;
	}
	return NULL;
}

enum status
selector_fields_write(const struct selector_fields *fields, const struct selector_doc *doc,
		      struct index_work *w, struct buf *out)
{
	const struct leaf_value body = { doc->leaves, doc->count, 0 };
	bool any = false;

	buf_append_byte(out, '{');
	for (size_t i = 0; i < doc->specials_count; i++) {
		const struct fields_node *f = fields_find(fields->first, doc->specials[i].name);

		if (f)
			TRY(fields_write_one(f, &doc->specials[i].value, w, out, &any));
	}
	for (const struct fields_node *f = fields->first; f; f = f->next) {
		enum selector_found found;
		struct leaf_value v;

		TRY(index_count(w, SELECTOR_NAME_STEPS));
		TRY(selector_step(&body, &f->name, &v, &found));
		if (found == SELECTOR_FOUND)
			TRY(fields_write_one(f, &v, w, out, &any));
	}
	buf_append_byte(out, '}');
	return buf_status(out);
}
