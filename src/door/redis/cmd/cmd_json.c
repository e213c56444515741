/* Documents: setting, reading and deleting them or parts of them, as RedisJSON 2.x does. */
#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/json.h"

#include "doc/json.h"
#include "loop/step.h"

#define NEW_AT_ROOT "ERR new objects must be created at the root"

/* ---- JSON.SET, JSON.MSET, JSON.MERGE ---- */

enum set_how {
	SET_ANY,
	SET_NEW,   /* NX */
	SET_THERE, /* XX */
	SET_MERGE,
};

/* A value that a path of a document is to get. */
struct setting {
	size_t key; /* its argument */
	struct json_path path;
	struct jtree_node *value;
	enum set_how how;
};

/* The nodes that get the value. `name`: those get a member of that name. */
static enum status
set_find(struct call *c, struct timed_json *j, const struct setting *s, const struct jsonpath *path,
	 struct str name, struct jsonpath_matches *ret)
{
	bool fits;

	for (;;) {
		TRY(json_find(c, j, path, ret));
		TRY(json_topmost(c, ret));
		for (size_t i = 0; i < ret->count; i++)
			TRY(json_check_depth(c, jtree_depth(ret->nodes[i]) + (name.ptr != NULL),
					     s->value));
		TRY(timed_json_fits(j, ret->nodes, ret->count, name.ptr ? name : STR(""), s->value,
				    &fits));
		if (fits)
			return STATUS_OK;
		TRY(timed_json_unfold(j));
	}
}

static enum status
set_there(struct call *c, struct timed_json *j, const struct setting *s,
	  const struct jsonpath_matches *m)
{
	struct jtree_node *value;

	for (size_t i = 0; i < m->count; i++) {
		if (s->how == SET_MERGE) {
			TRY(timed_json_merge(j, m->nodes[i], s->value));
			continue;
		}
		TRY(jtree_copy(c->arena, s->value, &value));
		TRY(timed_json_assign(j, m->nodes[i], value));
	}
	return STATUS_OK;
}

/* Adds a member to objects that have none of that name. */
static enum status
set_add(struct call *c, struct timed_json *j, const struct setting *s, bool *ret_done)
{
	const struct jsonpath *parent = NULL;
	struct str name = { NULL, 0 };
	struct jtree_node *member, *value;
	struct jsonpath_matches m;
	bool fits;

	TRY(jsonpath_parent(s->path.path, c->arena, &parent, &name, &fits));
	if (!fits || !jsonpath_is_single(s->path.path))
		return call_error(c, STR("ERR wrong static path"));
	if (!name.ptr) {
		TRY(json_find(c, j, s->path.path, &m));
		return m.count ? STATUS_OK : call_error(c, STR("ERR array index out of range"));
	}
	TRY(set_find(c, j, s, parent, name, &m));
	for (size_t i = 0; i < m.count; i++) {
		if (m.nodes[i]->kind != JTREE_OBJECT)
			continue;
		TRY(timed_json_member(j, m.nodes[i], name, &member));
		if (member)
			continue;
		TRY(jtree_copy(c->arena, s->value, &value));
		TRY(timed_json_add(j, m.nodes[i], name, value));
		*ret_done = true;
	}
	return STATUS_OK;
}

/* Sets a part of a document that is there. */
static enum status
set_part(struct call *c, struct timed_json *j, const struct setting *s, bool *ret_done)
{
	struct jsonpath_matches m = { .count = 0 };

	if (s->how != SET_NEW)
		TRY(set_find(c, j, s, s->path.path, (struct str){ NULL, 0 }, &m));
	if (m.count) {
		*ret_done = true;
		return set_there(c, j, s, &m);
	}
	return s->how == SET_THERE ? STATUS_OK : set_add(c, j, s, ret_done);
}

/* Does what is asked, and says so. `*ret_done` is false: it does not apply. */
static enum status
set_run(struct call *c, const struct setting *s, const char *event, bool *ret_done)
{
	struct timed_json j;
	bool root = jsonpath_is_root(s->path.path);

	*ret_done = false;
	TRY(json_open(c, s->key, &j));
	if (!j.root && s->how == SET_THERE)
		return STATUS_OK;
	if (!j.root && !root)
		return call_error(c, STR(NEW_AT_ROOT));
	if (j.root && root && s->how == SET_NEW)
		return STATUS_OK;
	if (root && (!j.root || s->how != SET_MERGE)) {
		*ret_done = true;
		TRY(timed_json_set(j.item, s->value));
		return txn_changed(c, c->argv[s->key], EVENT_MODULE, event);
	}
	TRY(set_part(c, &j, s, ret_done));
	return *ret_done ? json_changed(c, s->key, &j, event) : STATUS_OK;
}

static void
set_answer(struct call *c, bool done)
{
	if (done)
		reply_ok(c->reply);
	else
		reply_null(c->reply);
}

/* "FORMAT JSON" and "FORMAT STRING" say what is so anyway. */
static enum status
set_parse_format(struct call *c, size_t i)
{
	if (call_arg_is(c, i, "json") || call_arg_is(c, i, "string"))
		return STATUS_OK;
	return i < c->argc ? call_error(c, STR("ERR wrong format")) : call_wrong_arity(c);
}

enum status
cmd_json_set(struct call *c)
{
	struct setting s = { .key = 1 };
	bool done;

	TRY(json_path(c, 2, &s.path));
	for (size_t i = 4; i < c->argc; i++) {
		if (s.how == SET_ANY && call_arg_is(c, i, "nx"))
			s.how = SET_NEW;
		else if (s.how == SET_ANY && call_arg_is(c, i, "xx"))
			s.how = SET_THERE;
		else if (call_arg_is(c, i, "format"))
			TRY(set_parse_format(c, ++i));
		else
			return call_syntax_error(c);
	}
	TRY(json_value(c, 3, &s.value));
	TRY(set_run(c, &s, "json.set", &done));
	set_answer(c, done);
	return STATUS_OK;
}

enum status
cmd_json_merge(struct call *c)
{
	struct setting s = { .key = 1, .how = SET_MERGE };
	bool done;

	TRY(json_path(c, 2, &s.path));
	for (size_t i = 4; i < c->argc; i++) {
		if (!call_arg_is(c, i, "format"))
			return call_syntax_error(c);
		TRY(set_parse_format(c, ++i));
	}
	TRY(json_value(c, 3, &s.value));
	TRY(set_run(c, &s, "json.merge", &done));
	set_answer(c, done);
	return STATUS_OK;
}

/* Finds out what is wrong with a triple, before anything is written. */
static enum status
mset_check(struct call *c, const struct setting *s)
{
	struct jsonpath_matches m;
	struct timed_json j;

	TRY(json_open(c, s->key, &j));
	if (jsonpath_is_root(s->path.path))
		return STATUS_OK;
	if (!j.root)
		return call_error(c, STR(NEW_AT_ROOT));
	TRY(json_find(c, &j, s->path.path, &m));
	if (!m.count && !jsonpath_is_single(s->path.path))
		return call_error(c, STR("ERR wrong static path"));
	return STATUS_OK;
}

enum status
cmd_json_mset(struct call *c)
{
	size_t count = (c->argc - 1) / 3;
	struct setting *all;
	bool done = true, each;

	if ((c->argc - 1) % 3)
		return call_wrong_arity(c);
	all = arena_zalloc(c->arena, count * sizeof(*all));
	if (!all)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		all[i].key = 1 + 3 * i;
		TRY(json_path(c, all[i].key + 1, &all[i].path));
		TRY(json_value(c, all[i].key + 2, &all[i].value));
		TRY(mset_check(c, &all[i]));
	}
	for (size_t i = 0; i < count; i++) {
		TRY(set_run(c, &all[i], "json.mset", &each));
		done = done && each;
	}
	set_answer(c, done);
	return STATUS_OK;
}

/* ---- JSON.GET, JSON.MGET ---- */

struct getting {
	struct jtree_layout layout;
	struct json_path *paths;
	size_t count;
	bool legacy; /* all paths are */
};

static enum status
get_parse(struct call *c, struct getting *ret)
{
	*ret = (struct getting){ .legacy = true };
	ret->paths = arena_alloc(c->arena, c->argc * sizeof(*ret->paths));
	if (!ret->paths)
		return STATUS_LIMIT;
	for (size_t i = 2; i < c->argc; i++) {
		struct str *text = call_arg_is(c, i, "indent")    ? &ret->layout.indent
				   : call_arg_is(c, i, "newline") ? &ret->layout.newline
				   : call_arg_is(c, i, "space")   ? &ret->layout.space
								  : NULL;

		if (text || call_arg_is(c, i, "format")) {
			if (++i == c->argc)
				return call_wrong_arity(c);
			if (text)
				*text = c->argv[i];
			else if (!call_arg_is(c, i, "string"))
				return call_error(c, STR("ERR wrong reply format"));
		} else if (!call_arg_is(c, i, "noescape")) {
			TRY(json_path(c, i, &ret->paths[ret->count]));
			ret->legacy = ret->legacy && ret->paths[ret->count].legacy;
			ret->count++;
		}
	}
	if (!ret->count)
		TRY(json_path(c, c->argc, &ret->paths[ret->count++]));
	return STATUS_OK;
}

/* Appends what a path leads to: of a legacy one the first node, else an array. */
static enum status
get_write(struct call *c, struct timed_json *j, const struct jtree_layout *layout, unsigned level,
	  const struct json_path *path, bool legacy, struct buf *out)
{
	struct jsonpath_matches m;

	TRY(json_find(c, j, path->path, &m));
	if (legacy && !m.count)
		return json_no_path(c, path, NULL);
	if (legacy)
		return json_write(j, m.nodes[0], layout, level, out);
	buf_append_byte(out, '[');
	for (size_t i = 0; i < m.count; i++) {
		if (i)
			buf_append_byte(out, ',');
		jtree_write_line(layout, level + 1, out);
		TRY(json_write(j, m.nodes[i], layout, level + 1, out));
		TRY(buf_status(out));
	}
	if (m.count)
		jtree_write_line(layout, level, out);
	buf_append_byte(out, ']');
	return STATUS_OK;
}

/* Several paths: an object with a member for each. */
static enum status
get_write_all(struct call *c, struct timed_json *j, const struct getting *g, struct buf *out)
{
	bool first = true, again;

	buf_append_byte(out, '{');
	for (size_t i = 0; i < g->count; i++) {
		again = false;
		for (size_t k = 0; k < i && !again; k++) {
			TRY(step_count(1));
			again = str_eq(g->paths[k].text, g->paths[i].text);
		}
		if (again)
			continue;
		if (!first)
			buf_append_byte(out, ',');
		first = false;
		jtree_write_line(&g->layout, 1, out);
		json_write_str(out, g->paths[i].text);
		buf_append_byte(out, ':');
		buf_append_str(out, g->layout.space);
		TRY(get_write(c, j, &g->layout, 1, &g->paths[i], g->legacy, out));
	}
	jtree_write_line(&g->layout, 0, out);
	buf_append_byte(out, '}');
	return STATUS_OK;
}

enum status
cmd_json_get(struct call *c)
{
	AUTO(buf_release) struct buf text = json_buf(c);
	struct timed_json j;
	struct getting g;

	TRY(get_parse(c, &g));
	TRY(json_open(c, 1, &j));
	if (!j.root) {
		reply_null(c->reply);
		return STATUS_OK;
	}
	if (g.count == 1)
		TRY(get_write(c, &j, &g.layout, 0, &g.paths[0], g.legacy, &text));
	else
		TRY(get_write_all(c, &j, &g, &text));
	TRY(buf_status(&text));
	reply_bulk(c->reply, buf_str(&text));
	return STATUS_OK;
}

static enum status
mget_answer(struct call *c, const struct json_path *path, struct timed_item *item)
{
	AUTO(buf_release) struct buf text = json_buf(c);
	struct jsonpath_matches m = { .count = 0 };
	struct timed_json j = { .root = NULL };

	/* What is no document has no such path. */
	if (item->type == TIMED_JSON)
		TRY(timed_json_open(item, &j));
	if (j.root && path->legacy)
		TRY(json_find(c, &j, path->path, &m));
	if (!j.root || (path->legacy && !m.count)) {
		reply_null(c->reply);
		return STATUS_OK;
	}
	TRY(get_write(c, &j, &jtree_dense, 0, path, path->legacy, &text));
	TRY(buf_status(&text));
	reply_bulk(c->reply, buf_str(&text));
	return STATUS_OK;
}

enum status
cmd_json_mget(struct call *c)
{
	size_t count = c->argc - 2;
	struct timed_item **items = arena_alloc(c->arena, count * sizeof(struct timed_item *));
	struct json_path path;

	if (!items)
		return STATUS_LIMIT;
	TRY(json_path(c, c->argc - 1, &path));
	TRY(txn_items(c, c->argv + 1, count, 1, items));
	reply_array(c->reply, count);
	for (size_t i = 0; i < count; i++)
		TRY(mget_answer(c, &path, items[i]));
	return STATUS_OK;
}

/* ---- JSON.DEL, JSON.FORGET, JSON.CLEAR ---- */

static enum status
del_all(struct call *c, struct timed_item *item)
{
	TRY(timed_item_delete(item));
	return txn_changed(c, c->argv[1], EVENT_MODULE, "json.del");
}

enum status
cmd_json_del(struct call *c)
{
	struct jsonpath_matches m = { .count = 0 };
	struct json_path path;
	struct timed_json j;

	TRY(json_begin(c, &path, &j));
	if (j.root && jsonpath_is_root(path.path)) {
		reply_int(c->reply, 1);
		return del_all(c, j.item);
	}
	if (j.root)
		TRY(json_find(c, &j, path.path, &m));
	TRY(json_topmost(c, &m));
	reply_int(c->reply, (int64_t)m.count);
	if (!m.count)
		return STATUS_OK;
	TRY(timed_json_remove(&j, m.nodes, m.count));
	/* A document of which nothing is left goes. */
	if (!j.root->count)
		return del_all(c, j.item);
	return json_changed(c, 1, &j, "json.del");
}

static bool
clear_applies(const struct jtree_node *node)
{
	switch (node->kind) {
	case JTREE_ARRAY:
	case JTREE_OBJECT:
		return node->count > 0;
	case JTREE_INT:
	case JTREE_UNSIGNED:
		return node->u != 0;
	case JTREE_DOUBLE:
		return node->d != 0;
	case JTREE_NULL:
	case JTREE_BOOL:
	case JTREE_TEXT:
		return false;
	}
	return false;
}

enum status
cmd_json_clear(struct call *c)
{
	struct jtree_node *value;
	struct jsonpath_matches m;
	struct json_path path;
	struct timed_json j;
	int64_t cleared = 0;

	TRY(json_path(c, 2, &path));
	TRY(json_open(c, 1, &j));
	if (!j.root)
		return json_no_key(c);
	TRY(json_find(c, &j, path.path, &m));
	/* What is below a container that is cleared would be cleared in vain. */
	TRY(json_topmost(c, &m));
	for (size_t i = 0; i < m.count; i++) {
		if (!clear_applies(m.nodes[i]))
			continue;
		TRY(jtree_new(c->arena,
			      jtree_is_container(m.nodes[i]) ? m.nodes[i]->kind : JTREE_INT,
			      &value));
		TRY(timed_json_assign(&j, m.nodes[i], value));
		cleared++;
	}
	reply_int(c->reply, cleared);
	return cleared ? json_changed(c, 1, &j, "json.clear") : STATUS_OK;
}

/* ---- JSON.TYPE, JSON.RESP, JSON.DEBUG ---- */

static const char *
type_name(const struct jtree_node *node)
{
	static const char *const names[] = {
		[JTREE_NULL] = "null",        [JTREE_BOOL] = "boolean",  [JTREE_INT] = "integer",
		[JTREE_UNSIGNED] = "integer", [JTREE_DOUBLE] = "number", [JTREE_TEXT] = "string",
		[JTREE_ARRAY] = "array",      [JTREE_OBJECT] = "object",
	};

	return names[node->kind];
}

enum status
cmd_json_type(struct call *c)
{
	struct jsonpath_matches m = { .count = 0 };
	struct json_path path;
	struct timed_json j;

	TRY(json_begin(c, &path, &j));
	if (j.root)
		TRY(json_find(c, &j, path.path, &m));
	/* RESP3 has one array more. */
	if (c->reply->version == 3)
		reply_array(c->reply, 1);
	if (!j.root || (path.legacy && !m.count)) {
		reply_null(c->reply);
		return STATUS_OK;
	}
	if (path.legacy)
		m.count = 1;
	else
		reply_array(c->reply, m.count);
	for (size_t i = 0; i < m.count; i++)
		reply_bulk_cstr(c->reply, type_name(m.nodes[i]));
	return STATUS_OK;
}

static enum status
resp_answer(struct call *c, const struct jtree_node *node)
{
	char number[JTREE_NUMBER_BYTES];

	TRY(step_count(1));
	switch (node->kind) {
	case JTREE_NULL:
		reply_null(c->reply);
		return STATUS_OK;
	case JTREE_BOOL:
		reply_simple(c->reply, node->truth ? "true" : "false");
		return STATUS_OK;
	case JTREE_INT:
		reply_int(c->reply, node->i);
		return STATUS_OK;
	case JTREE_UNSIGNED:
		reply_bulk(c->reply, jtree_write_number(node, number));
		return STATUS_OK;
	case JTREE_DOUBLE:
		reply_double(c->reply, node->d);
		return STATUS_OK;
	case JTREE_TEXT:
		reply_bulk(c->reply, node->text);
		return STATUS_OK;
	case JTREE_ARRAY:
	case JTREE_OBJECT:
		break;
	}
	reply_array(c->reply, 1 + (size_t)node->count * (node->kind == JTREE_OBJECT ? 2 : 1));
	reply_simple(c->reply, node->kind == JTREE_OBJECT ? "{" : "[");
	for (uint64_t i = 0; i < node->count; i++) {
		if (node->kind == JTREE_OBJECT)
			reply_bulk(c->reply, node->children[i]->name);
		TRY(resp_answer(c, node->children[i]));
	}
	return STATUS_OK;
}

enum status
cmd_json_resp(struct call *c)
{
	struct jsonpath_matches m;
	struct json_path path;
	struct timed_json j;

	TRY(json_begin(c, &path, &j));
	if (!j.root) {
		reply_null(c->reply);
		return STATUS_OK;
	}
	TRY(json_find(c, &j, path.path, &m));
	if (path.legacy && !m.count)
		return json_no_path(c, &path, NULL);
	if (path.legacy)
		m.count = 1;
	else
		reply_array(c->reply, m.count);
	for (size_t i = 0; i < m.count; i++) {
		TRY(timed_json_load(&j, m.nodes[i]));
		TRY(resp_answer(c, m.nodes[i]));
	}
	return STATUS_OK;
}

/* About what a value takes. */
static int64_t
memory_of(const struct jtree_node *node)
{
	int64_t bytes = 8 + (int64_t)node->name.len;

	step_pause(1);
	if (node->kind == JTREE_TEXT)
		return bytes + (int64_t)node->text.len;
	for (uint64_t i = 0; jtree_is_container(node) && i < node->count; i++)
		bytes += memory_of(node->children[i]);
	return bytes;
}

static enum status
debug_memory(struct call *c)
{
	struct jsonpath_matches m = { .count = 0 };
	struct json_path path;
	struct timed_json j;

	TRY(json_path(c, 3, &path));
	TRY(json_open(c, 2, &j));
	if (j.root)
		TRY(json_find(c, &j, path.path, &m));
	if (j.root && path.legacy && !m.count)
		return json_no_path(c, &path, NULL);
	if (!path.legacy)
		reply_array(c->reply, m.count);
	else if (!j.root)
		reply_int(c->reply, 0);
	else
		m.count = 1;
	for (size_t i = 0; i < m.count; i++) {
		TRY(timed_json_load(&j, m.nodes[i]));
		reply_int(c->reply, memory_of(m.nodes[i]));
	}
	return STATUS_OK;
}

enum status
cmd_json_debug(struct call *c)
{
	if (call_arg_is(c, 1, "memory") && (c->argc == 3 || c->argc == 4))
		return debug_memory(c);
	if (call_arg_is(c, 1, "help") && c->argc == 2) {
		reply_array(c->reply, 2);
		reply_bulk_cstr(c->reply, "MEMORY <key> [path] - reports memory usage");
		reply_bulk_cstr(c->reply, "HELP                - this message");
		return STATUS_OK;
	}
	return call_error(c, STR("ERR unknown subcommand - try `JSON.DEBUG HELP`"));
}
