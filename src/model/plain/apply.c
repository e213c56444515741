/* Changes of a document in memory. */
#include "model/plain/plain_int.h"

#include "base/quote.h"
#include "loop/step.h"
#include "model/plain/path.h"

struct apply_level {
	struct bson_iter rest;
	uint32_t count; /* elements that were read */
	bool array;
	bool found;
};

struct application {
	const struct plain_path *path;
	const struct bson_value *value; /* NULL: take it out */
	struct bson_builder b;
	struct err *err;
	size_t depth;
	struct apply_level levels[PLAIN_PATH_STEPS + 1];
};

enum status
plain_path_parse(struct str text, struct plain_path *ret, struct err *err)
{
	bool more = true;

	ret->count = 0;
	while (more) {
		struct str step;

		more = text.len && memchr(text.ptr, '.', text.len);
		step = str_cut(&text, '.');
		if (!step.len)
			return err_set(err, STATUS_INVALID, "a path has an empty name");
		if (ret->count == PLAIN_PATH_STEPS)
			return err_set(err, STATUS_INVALID,
				       "a path may have %d steps (PLAIN_PATH_STEPS)",
				       PLAIN_PATH_STEPS);
		ret->steps[ret->count++] = step;
	}
	if (str_eq(ret->steps[0], STR("_id")))
		return err_set(err, STATUS_INVALID, "the _id of a document cannot be changed");
	return STATUS_OK;
}

enum status
plain_path_fail_scalar(const struct plain_path *path, size_t step, struct err *err)
{
	return err_set(err, STATUS_INVALID,
		       "cannot make \"%s\" in what is neither a document nor an array",
		       QUOTE_SHOW(path->steps[step]));
}

enum status
plain_path_check_position(const struct plain_path *path, size_t step, uint64_t count, uint32_t *ret,
			  struct err *err)
{
	if (!plain_step_is_position(path->steps[step], ret))
		return err_set(err, STATUS_INVALID, "cannot make the member \"%s\" in an array",
			       QUOTE_SHOW(path->steps[step]));
	if (*ret > count && *ret - count > PLAIN_PADDING)
		return err_set(err, STATUS_INVALID,
			       "at most %d elements are put in front of a new one (PLAIN_PADDING)",
			       PLAIN_PADDING);
	return STATUS_OK;
}

/* ---- One change ---- */

static void
level_push(struct application *a, struct str container, bool array)
{
	struct apply_level *level = &a->levels[a->depth++];

	*level = (struct apply_level){ .array = array };
	bson_iter_begin(&level->rest, container);
}

static bool
level_matches(const struct application *a, const struct apply_level *level,
	      const struct bson_element *e)
{
	struct str step = a->path->steps[a->depth - 1];
	uint32_t position;

	if (level->array)
		return plain_step_is_position(step, &position) && position == level->count;
	return str_eq(step, e->name);
}

/* The element that the path goes through, or ends at. */
static enum status
apply_here(struct application *a, struct apply_level *level, const struct bson_element *e)
{
	level->found = true;
	if (a->depth == a->path->count) {
		if (a->value)
			bson_put(&a->b, e->name, a->value);
		else if (level->array)
			bson_put_null(&a->b, e->name);
		return STATUS_OK;
	}
	if (e->value.type == BSON_DOCUMENT)
		bson_begin_document(&a->b, e->name);
	else if (e->value.type == BSON_ARRAY)
		bson_begin_array(&a->b, e->name);
	else if (a->value)
		return plain_path_fail_scalar(a->path, a->depth, a->err);
	else
		bson_put_element(&a->b, e);
	if (bson_is_container(&e->value))
		level_push(a, bson_text(&e->value), e->value.type == BSON_ARRAY);
	return STATUS_OK;
}

/* Behind the last element of a level that the rest of the path is not in. */
static enum status
apply_missing(struct application *a, const struct apply_level *level)
{
	const struct plain_path *path = a->path;
	uint32_t position;

	if (level->array) {
		TRY(plain_path_check_position(path, a->depth - 1, level->count, &position, a->err));
		for (uint32_t i = level->count; i < position; i++)
			bson_put_null(&a->b, STR(""));
	}
	for (size_t i = a->depth - 1; i + 1 < path->count; i++)
		bson_begin_document(&a->b, path->steps[i]);
	bson_put(&a->b, path->steps[path->count - 1], a->value);
	for (size_t i = a->depth - 1; i + 1 < path->count; i++)
		bson_end(&a->b);
	return STATUS_OK;
}

static enum status
apply_level(struct application *a)
{
	struct apply_level *level = &a->levels[a->depth - 1];
	struct bson_element e;

	TRY(step_count(1));
	if (!bson_iter_read(&level->rest, &e)) {
		if (!level->found && a->value)
			TRY(apply_missing(a, level));
		bson_end(&a->b);
		a->depth--;
		return STATUS_OK;
	}
	if (!level->found && level_matches(a, level, &e)) {
		/* The level may be left before it is at its next element. */
		level->count++;
		return apply_here(a, level, &e);
	}
	level->count++;
	bson_put_element(&a->b, &e);
	return STATUS_OK;
}

static enum status
apply_change(struct str doc, const struct plain_change *change, struct buf *out, struct err *err)
{
	struct plain_path path;
	struct application a;

	TRY(plain_path_parse(change->path, &path, err));
	a.path = &path;
	a.value = change->value;
	a.err = err;
	a.depth = 0;
	bson_builder_init(&a.b, out);
	bson_begin(&a.b);
	level_push(&a, doc, false);
	while (a.depth)
		TRY(apply_level(&a));
	if (a.b.too_deep || buf_status(out) == STATUS_LIMIT)
		return err_set(err, STATUS_DOC_TOO_LARGE,
			       "the document would have more than %d bytes, or more than %d "
			       "documents and arrays inside each other",
			       BSON_DOCUMENT_BYTES, BSON_DEPTH);
	return buf_status(out);
}

enum status
plain_apply(struct str doc, const struct plain_change *changes, size_t count, struct arena *arena,
	    struct str *ret, struct err *err)
{
	AUTO(buf_release) struct buf from = BUF_INIT_OF(BSON_DOCUMENT_BYTES, arena_part(arena));
	AUTO(buf_release) struct buf to = BUF_INIT_OF(BSON_DOCUMENT_BYTES, arena_part(arena));

	for (size_t i = 0; i < count; i++) {
		struct buf swapped = from;

		buf_clear(&to);
		TRY(apply_change(i ? buf_str(&from) : doc, &changes[i], &to, err));
		from = to;
		to = swapped;
	}
	*ret = arena_dup(arena, count ? buf_str(&from) : doc);
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}
