#include "door/redis/cmd/json.h"

#include <assert.h>

#include "loop/step.h"

/* ---- Arguments ---- */

/* True for a path of the second version: $ alone, or $. or $[ in front. */
static bool
path_is_new(struct str s)
{
	return s.len && s.ptr[0] == '$' && (s.len == 1 || s.ptr[1] == '.' || s.ptr[1] == '[');
}

/* A legacy path as one of the second version. */
static struct str
path_renewed(struct call *c, struct str s)
{
	if (str_eq(s, STR(".")))
		return STR("$");
	return arena_printf(c->arena, s.len && s.ptr[0] == '.' ? "$%.*s" : "$.%.*s", STR_ARG(s));
}

enum status
json_path(struct call *c, size_t i, struct json_path *ret)
{
	struct err err = { 0 };
	struct str text;
	enum status status;

	*ret = (struct json_path){ .text = i < c->argc ? c->argv[i] : STR(".") };
	ret->legacy = !path_is_new(ret->text);
	if (ret->text.len > JSONPATH_BYTES)
		return call_errorf(c, "ERR a path may have %d bytes (JSONPATH_BYTES)",
				   JSONPATH_BYTES);
	text = ret->legacy ? path_renewed(c, ret->text) : ret->text;
	if (!text.ptr)
		return STATUS_LIMIT;
	status = jsonpath_compile(text, c->arena, &ret->path, &err);
	if ((status == STATUS_INVALID || status == STATUS_LIMIT) && err.status)
		return call_errorf(c, "ERR %s", err.text);
	return status;
}

enum status
json_value(struct call *c, size_t i, struct jtree_node **ret)
{
	struct err err = { 0 };
	enum status status = jtree_read(c->argv[i], c->arena, ret, &err);

	switch ((int)status) {
	case STATUS_JSON_SYNTAX:
	case STATUS_JSON_UTF8:
	case STATUS_JSON_DEPTH:
		return call_errorf(c, "ERR %s", err.text);
	default:
		return status;
	}
}

enum status
json_open(struct call *c, size_t i, struct timed_json *ret)
{
	struct timed_item *item;

	TRY(data_item_read(c, i, TIMED_JSON, &item));
	return timed_json_open(item, ret);
}

enum status
json_begin(struct call *c, struct json_path *path, struct timed_json *ret)
{
	if (c->argc > 3)
		return call_wrong_arity(c);
	TRY(json_path(c, 2, path));
	return json_open(c, 1, ret);
}

/* ---- Errors ---- */

enum status
json_no_path(struct call *c, const struct json_path *path, const char *what)
{
	return call_errorf(c, "ERR Path '%.*s' does not exist%s%s", STR_ARG(call_shown(path->text)),
			   what ? " or " : "", what ? what : "");
}

enum status
json_no_key(struct call *c)
{
	return call_error(c, STR("ERR could not perform this operation on a key that doesn't "
				 "exist"));
}

enum status
json_check_depth(struct call *c, unsigned depth, const struct jtree_node *value)
{
	if (depth + jtree_height(value) <= JTREE_DEPTH)
		return STATUS_OK;
	return call_error(c, STR("ERR recursion limit exceeded"));
}

/* ---- Nodes ---- */

enum status
json_find(struct call *c, struct timed_json *j, const struct jsonpath *path,
	  struct jsonpath_matches *ret)
{
	struct err err = { 0 };
	enum status status = jsonpath_find(path, j->root, &j->source, c->arena, ret, &err);

	if (status == STATUS_LIMIT && err.status)
		return call_errorf(c, "ERR %s", err.text);
	return status;
}

static enum status
targets_take(struct call *c, const struct json_path *path, unsigned kinds, const char *what,
	     const struct jsonpath_matches *m, struct json_targets *ret)
{
	*ret = (struct json_targets){ .nodes = m->nodes };
	for (size_t i = 0; i < m->count; i++) {
		struct jtree_node *node = m->nodes[i];

		TRY(step_count(1));
		if (JSON_KIND(node->kind) & kinds)
			ret->nodes[ret->count++] = node;
		else if (!path->legacy)
			ret->nodes[ret->count++] = NULL;
	}
	if (path->legacy && !ret->count)
		return json_no_path(c, path, what);
	ret->results = arena_zalloc(c->arena, (ret->count + 1) * sizeof(*ret->results));
	return ret->results ? STATUS_OK : STATUS_LIMIT;
}

enum status
json_targets(struct call *c, struct timed_json *j, const struct json_path *path, unsigned kinds,
	     const char *what, struct json_targets *ret)
{
	struct jsonpath_matches m;

	if (!j->root)
		return json_no_key(c);
	TRY(json_find(c, j, path->path, &m));
	return targets_take(c, path, kinds, what, &m, ret);
}

enum status
json_targets_for(struct call *c, struct timed_json *j, const struct json_path *path, unsigned kinds,
		 const char *what, struct jtree_node *const *values, size_t value_count,
		 struct json_targets *ret)
{
	bool fits = true;

	TRY(json_targets(c, j, path, kinds, what, ret));
	for (size_t i = 0; i < ret->count; i++) {
		if (!ret->nodes[i])
			continue;
		for (size_t k = 0; k < value_count; k++)
			TRY(json_check_depth(c, jtree_depth(ret->nodes[i]) + 1, values[k]));
		for (size_t k = 0; k < value_count && fits; k++)
			TRY(timed_json_fits(j, &ret->nodes[i], 1, STR(""), values[k], &fits));
	}
	if (fits)
		return STATUS_OK;
	TRY(timed_json_unfold(j));
	return json_targets(c, j, path, kinds, what, ret);
}

void
json_reply_targets(struct call *c, const struct json_path *path, const struct json_targets *t)
{
	if (!path->legacy)
		reply_array(c->reply, t->count);
	for (size_t i = path->legacy ? t->count - 1 : 0; i < t->count; i++) {
		if (t->results[i].there)
			reply_int(c->reply, t->results[i].n);
		else
			reply_null(c->reply);
	}
}

enum status
json_topmost(struct call *c, struct jsonpath_matches *m)
{
	struct jtree_node **kept = arena_alloc(c->arena, (m->count + 1) * sizeof(*kept));
	size_t count = 0;

	if (!kept)
		return STATUS_LIMIT;
	for (size_t i = 0; i < m->count; i++) {
		if (!m->nodes[i]->marked)
			kept[count++] = m->nodes[i];
		m->nodes[i]->marked = true;
	}
	m->count = 0;
	for (size_t i = 0; i < count; i++) {
		const struct jtree_node *above = kept[i]->parent;

		TRY(step_count(1));
		while (above && !above->marked)
			above = above->parent;
		if (!above)
			m->nodes[m->count++] = kept[i];
	}
	for (size_t i = 0; i < count; i++)
		kept[i]->marked = false;
	return STATUS_OK;
}

enum status
json_changed(struct call *c, size_t i, struct timed_json *j, const char *event)
{
	TRY(timed_json_finish(j));
	return txn_changed(c, c->argv[i], EVENT_MODULE, event);
}

/* ---- Answers ---- */

struct buf
json_buf(struct call *c)
{
	return BUF_INIT_OF(DATA_VALUE_BYTES, arena_part(c->arena));
}

enum status
json_write(struct timed_json *j, struct jtree_node *node, const struct jtree_layout *layout,
	   unsigned level, struct buf *out)
{
	TRY(timed_json_load(j, node));
	return jtree_write(node, layout, level, out);
}

enum status
json_reply_node(struct call *c, struct timed_json *j, struct jtree_node *node)
{
	AUTO(buf_release) struct buf text = json_buf(c);

	TRY(json_write(j, node, &jtree_dense, 0, &text));
	TRY(buf_status(&text));
	reply_bulk(c->reply, buf_str(&text));
	return STATUS_OK;
}
