/* Documents: numbers, texts, booleans, arrays and objects at paths, as RedisJSON 2.x has them. */
#include <math.h>

#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/json.h"
#include "loop/step.h"

/* ---- JSON.NUMINCRBY, JSON.NUMMULTBY ---- */

static enum status
number_apply(struct call *c, const struct jtree_node *a, const struct jtree_node *b,
	     struct jtree_node **ret)
{
	bool multiplies = call_is(c, HOW_MULTIPLIES), over;
	struct jtree_node *sum;

	TRY(jtree_new(c->arena, JTREE_INT, &sum));
	*ret = sum;
	if (a->kind == JTREE_INT && b->kind == JTREE_INT) {
		over = multiplies ? __builtin_mul_overflow(a->i, b->i, &sum->i)
				  : __builtin_add_overflow(a->i, b->i, &sum->i);
		return over ? call_error(c, STR("ERR numeric overflow")) : STATUS_OK;
	}
	sum->kind = JTREE_DOUBLE;
	sum->d = multiplies ? jtree_number(a) * jtree_number(b) : jtree_number(a) + jtree_number(b);
	return isfinite(sum->d) ? STATUS_OK : call_error(c, STR("ERR result is not a number"));
}

/* RESP3: an array of numbers. RESP2: that array as text, or of a legacy path the last number. */
static enum status
numbers_answer(struct call *c, const struct json_path *path, const struct json_targets *t)
{
	AUTO(buf_release) struct buf text = json_buf(c);
	bool array = !path->legacy;
	char number[JTREE_NUMBER_BYTES];

	if (c->reply->version == 3) {
		reply_array(c->reply, t->count);
		for (size_t i = 0; i < t->count; i++) {
			if (!t->nodes[i])
				reply_null(c->reply);
			else if (t->nodes[i]->kind == JTREE_INT)
				reply_int(c->reply, t->nodes[i]->i);
			else
				reply_double(c->reply, jtree_number(t->nodes[i]));
		}
		return STATUS_OK;
	}
	if (array)
		buf_append_byte(&text, '[');
	for (size_t i = array ? 0 : t->count - 1; i < t->count; i++) {
		if (array && i)
			buf_append_byte(&text, ',');
		if (t->nodes[i])
			buf_append_str(&text, jtree_write_number(t->nodes[i], number));
		else
			buf_append_cstr(&text, "null");
	}
	if (array)
		buf_append_byte(&text, ']');
	TRY(buf_status(&text));
	reply_bulk(c->reply, buf_str(&text));
	return STATUS_OK;
}

enum status
cmd_json_number(struct call *c)
{
	struct jtree_node *operand, *sum;
	struct json_targets t;
	struct json_path path;
	struct timed_json j;
	bool done = false;

	TRY(json_path(c, 2, &path));
	TRY(json_open(c, 1, &j));
	if (!j.root)
		return json_no_key(c);
	TRY(json_value(c, 3, &operand));
	if (!(JSON_KIND(operand->kind) & JSON_NUMBERS))
		return call_error(c, STR("ERR bad input number"));
	TRY(json_targets(c, &j, &path, JSON_NUMBERS, "does not contains a number", &t));
	/* Nothing is written if one of them cannot be calculated. */
	for (size_t i = 0; i < t.count; i++)
		if (t.nodes[i])
			TRY(number_apply(c, t.nodes[i], operand, &sum));
	for (size_t i = 0; i < t.count; i++) {
		if (!t.nodes[i])
			continue;
		TRY(number_apply(c, t.nodes[i], operand, &sum));
		TRY(timed_json_assign(&j, t.nodes[i], sum));
		done = true;
	}
	TRY(numbers_answer(c, &path, &t));
	return done ? json_changed(c, 1, &j, c->command->name) : STATUS_OK;
}

/* ---- JSON.TOGGLE ---- */

enum status
cmd_json_toggle(struct call *c)
{
	struct json_targets t;
	struct json_path path;
	struct jtree_node *value;
	struct timed_json j;
	bool done = false;

	TRY(json_path(c, 2, &path));
	TRY(json_open(c, 1, &j));
	TRY(json_targets(c, &j, &path, JSON_KIND(JTREE_BOOL), "not a bool", &t));
	for (size_t i = 0; i < t.count; i++) {
		if (!t.nodes[i])
			continue;
		TRY(jtree_new(c->arena, JTREE_BOOL, &value));
		value->truth = !t.nodes[i]->truth;
		t.results[i].there = done = true;
		t.results[i].n = value->truth;
		TRY(timed_json_assign(&j, t.nodes[i], value));
	}
	if (path.legacy)
		reply_bulk_cstr(c->reply, t.results[t.count - 1].n ? "true" : "false");
	else
		json_reply_targets(c, &path, &t);
	return done ? json_changed(c, 1, &j, "json.toggle") : STATUS_OK;
}

/* ---- JSON.STRAPPEND, JSON.STRLEN ---- */

static enum status
wrong_type(struct call *c, const char *expected)
{
	return call_errorf(c, "WRONGTYPE wrong type of path value - expected %s", expected);
}

static enum status
text_append(struct call *c, struct jtree_node *node, struct str more, struct jtree_node **ret)
{
	char *bytes = arena_bytes(c->arena, node->text.len + more.len);

	if (!bytes)
		return STATUS_LIMIT;
	TRY(step_count_bytes(node->text.len + more.len));
	if (node->text.len)
		memcpy(bytes, node->text.ptr, node->text.len);
	if (more.len)
		memcpy(bytes + node->text.len, more.ptr, more.len);
	TRY(jtree_new(c->arena, JTREE_TEXT, ret));
	(*ret)->text = str_of(bytes, node->text.len + more.len);
	return STATUS_OK;
}

enum status
cmd_json_strappend(struct call *c)
{
	struct jtree_node *more, *value;
	struct json_targets t;
	struct json_path path;
	struct timed_json j;
	bool done = false;

	if (c->argc > 4)
		return call_wrong_arity(c);
	TRY(json_path(c, c->argc == 4 ? 2 : c->argc, &path));
	TRY(json_open(c, 1, &j));
	if (!j.root)
		return json_no_key(c);
	TRY(json_value(c, c->argc - 1, &more));
	if (more->kind != JTREE_TEXT)
		return wrong_type(c, "string");
	TRY(json_targets(c, &j, &path, JSON_KIND(JTREE_TEXT), "not a string", &t));
	for (size_t i = 0; i < t.count; i++) {
		if (!t.nodes[i])
			continue;
		TRY(text_append(c, t.nodes[i], more->text, &value));
		t.results[i].there = done = true;
		t.results[i].n = (int64_t)value->text.len;
		TRY(timed_json_assign(&j, t.nodes[i], value));
	}
	json_reply_targets(c, &path, &t);
	return done ? json_changed(c, 1, &j, "json.strappend") : STATUS_OK;
}

/*
 * JSON.STRLEN, JSON.ARRLEN, JSON.OBJLEN: what they say of a legacy path that leads to nothing, or
 * to another kind, differs.
 */
static enum status
length_of_first(struct call *c, const struct json_path *path, const struct jsonpath_matches *m,
		enum jtree_kind kind)
{
	const struct jtree_node *node = m->count ? m->nodes[0] : NULL;

	if (!node && kind == JTREE_OBJECT) {
		reply_null(c->reply);
		return STATUS_OK;
	}
	if (!node)
		return json_no_path(c, path, NULL);
	if (node->kind != kind && kind == JTREE_ARRAY)
		return json_no_path(c, path, "not an array");
	if (node->kind != kind)
		return wrong_type(c, kind == JTREE_TEXT ? "string" : "object");
	reply_int(c->reply, (int64_t)(kind == JTREE_TEXT ? node->text.len : node->count));
	return STATUS_OK;
}

static enum status
length_answer(struct call *c, enum jtree_kind kind)
{
	struct jsonpath_matches m;
	struct json_path path;
	struct timed_json j;

	TRY(json_begin(c, &path, &j));
	if (!j.root && path.legacy) {
		reply_null(c->reply);
		return STATUS_OK;
	}
	if (!j.root)
		return json_no_key(c);
	TRY(json_find(c, &j, path.path, &m));
	if (path.legacy)
		return length_of_first(c, &path, &m, kind);
	reply_array(c->reply, m.count);
	for (size_t i = 0; i < m.count; i++) {
		if (m.nodes[i]->kind != kind)
			reply_null(c->reply);
		else
			reply_int(c->reply, (int64_t)(kind == JTREE_TEXT ? m.nodes[i]->text.len
									 : m.nodes[i]->count));
	}
	return STATUS_OK;
}

enum status
cmd_json_strlen(struct call *c)
{
	return length_answer(c, JTREE_TEXT);
}

enum status
cmd_json_arrlen(struct call *c)
{
	return length_answer(c, JTREE_ARRAY);
}

enum status
cmd_json_objlen(struct call *c)
{
	return length_answer(c, JTREE_OBJECT);
}

/* ---- JSON.OBJKEYS ---- */

static enum status
keys_answer(struct call *c, struct timed_json *j, struct jtree_node *node)
{
	TRY(timed_json_load(j, node));
	reply_array(c->reply, (size_t)node->count);
	for (uint64_t i = 0; i < node->count; i++)
		reply_bulk(c->reply, node->children[i]->name);
	return STATUS_OK;
}

enum status
cmd_json_objkeys(struct call *c)
{
	struct jsonpath_matches m = { .count = 0 };
	struct json_path path;
	struct timed_json j;

	TRY(json_begin(c, &path, &j));
	if (!j.root && !path.legacy)
		return json_no_key(c);
	if (j.root)
		TRY(json_find(c, &j, path.path, &m));
	if (path.legacy && !m.count) {
		reply_null(c->reply);
		return STATUS_OK;
	}
	if (path.legacy)
		return m.nodes[0]->kind == JTREE_OBJECT ? keys_answer(c, &j, m.nodes[0])
							: json_no_path(c, &path, "not an object");
	reply_array(c->reply, m.count);
	for (size_t i = 0; i < m.count; i++) {
		if (m.nodes[i]->kind == JTREE_OBJECT)
			TRY(keys_answer(c, &j, m.nodes[i]));
		else
			reply_null(c->reply);
	}
	return STATUS_OK;
}

/* ---- Arrays ---- */

#define NOT_AN_ARRAY "not an array"

/* The values of the arguments from `from` on. */
static enum status
values_parse(struct call *c, size_t from, struct jtree_node ***ret, size_t *ret_count)
{
	size_t count = c->argc - from;

	*ret = arena_alloc(c->arena, count * sizeof(struct jtree_node *));
	if (!*ret)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		TRY(json_value(c, from + i, &(*ret)[i]));
	*ret_count = count;
	return STATUS_OK;
}

static enum status
values_insert(struct call *c, struct timed_json *j, struct jtree_node *array, uint64_t at,
	      struct jtree_node *const *values, size_t count)
{
	struct jtree_node **copies = arena_alloc(c->arena, count * sizeof(*copies));

	if (!copies)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		TRY(jtree_copy(c->arena, values[i], &copies[i]));
	return timed_json_insert(j, array, at, copies, count);
}

/* Arrays inside of others come first, so that what is told of those is right as they are then. */
static enum status
insert_all(struct call *c, int64_t index, bool at_end, size_t first_value)
{
	struct jtree_node **values;
	struct json_targets t;
	struct json_path path;
	struct timed_json j;
	size_t count;
	bool done = false;

	TRY(json_path(c, 2, &path));
	TRY(values_parse(c, first_value, &values, &count));
	TRY(json_open(c, 1, &j));
	TRY(json_targets_for(c, &j, &path, JSON_KIND(JTREE_ARRAY), NOT_AN_ARRAY, values, count,
			     &t));
	for (size_t i = 0; i < t.count && !at_end; i++) {
		int64_t length = t.nodes[i] ? (int64_t)t.nodes[i]->count : 0;

		if (t.nodes[i] && (index > length || index < -length))
			return call_error(c, STR("ERR index out of bounds"));
	}
	for (size_t i = t.count; i-- > 0;) {
		struct jtree_node *array = t.nodes[i];
		uint64_t at;

		if (!array)
			continue;
		at = at_end || index >= 0 ? (uint64_t)index : array->count - (uint64_t)-index;
		TRY(values_insert(c, &j, array, at_end ? array->count : at, values, count));
		t.results[i].there = done = true;
		t.results[i].n = (int64_t)array->count;
	}
	json_reply_targets(c, &path, &t);
	return done ? json_changed(c, 1, &j, c->command->name) : STATUS_OK;
}

enum status
cmd_json_arrappend(struct call *c)
{
	if (c->argc < 4)
		return call_wrong_arity(c);
	return insert_all(c, 0, true, 3);
}

enum status
cmd_json_arrinsert(struct call *c)
{
	int64_t index;

	TRY(call_int(c, 3, &index));
	return insert_all(c, index, false, 4);
}

/* A position that a client names, within an array that is not empty. */
static uint64_t
position_within(int64_t index, uint64_t count)
{
	int64_t length = (int64_t)count;

	if (index < 0)
		return index < -length ? 0 : (uint64_t)(length + index);
	return index < length ? (uint64_t)index : count - 1;
}

/* The first element from `from` on, in front of `to`, that equals the value; -1: none. */
static enum status
index_find(struct call *c, struct timed_json *j, struct jtree_node *array, struct jtree_node *value,
	   int64_t from, int64_t to, int64_t *ret)
{
	uint64_t first, last = array->count;
	bool equal = false;

	*ret = -1;
	if (!array->count)
		return STATUS_OK;
	TRY(timed_json_load(j, array));
	first = position_within(from, array->count);
	if (to < 0)
		last = to < -(int64_t)array->count ? 0 : array->count - (uint64_t)-to;
	else if (to > 0 && (uint64_t)to < last)
		last = (uint64_t)to;
	for (uint64_t i = first; i < last && *ret < 0; i++) {
		TRY(jtree_equal(c->arena, array->children[i], value, &equal));
		if (equal)
			*ret = (int64_t)i;
	}
	return STATUS_OK;
}

enum status
cmd_json_arrindex(struct call *c)
{
	struct jsonpath_matches m;
	struct jtree_node *value;
	struct json_path path;
	struct timed_json j;
	int64_t from = 0, to = 0, found;

	if (c->argc > 6)
		return call_wrong_arity(c);
	TRY(json_path(c, 2, &path));
	if (c->argc > 4)
		TRY(call_int(c, 4, &from));
	if (c->argc > 5)
		TRY(call_int(c, 5, &to));
	TRY(json_value(c, 3, &value));
	TRY(json_open(c, 1, &j));
	if (!j.root)
		return json_no_path(c, &path, NULL);
	TRY(json_find(c, &j, path.path, &m));
	if (path.legacy && !m.count)
		return json_no_path(c, &path, NULL);
	if (path.legacy && m.nodes[0]->kind != JTREE_ARRAY)
		return wrong_type(c, "array");
	if (path.legacy)
		m.count = 1;
	else
		reply_array(c->reply, m.count);
	for (size_t i = 0; i < m.count; i++) {
		if (m.nodes[i]->kind != JTREE_ARRAY) {
			reply_null(c->reply);
			continue;
		}
		TRY(index_find(c, &j, m.nodes[i], value, from, to, &found));
		reply_int(c->reply, found);
	}
	return STATUS_OK;
}

/* Takes an element out, as a text; `ret->ptr` NULL: the array is empty. */
static enum status
pop_one(struct call *c, struct timed_json *j, struct jtree_node *array, int64_t index,
	struct str *ret)
{
	AUTO(buf_release) struct buf text = json_buf(c);
	struct jtree_node *element;
	uint64_t at;

	*ret = (struct str){ NULL, 0 };
	if (!array->count)
		return STATUS_OK;
	at = position_within(index, array->count);
	if (array->whole)
		element = array->children[at];
	else
		TRY(j->source.element(j->source.arg, array, at, &element));
	TRY(json_write(j, element, &jtree_dense, 0, &text));
	TRY(buf_copy(&text, c->arena, ret));
	return timed_json_cut(j, array, at, 1);
}

enum status
cmd_json_arrpop(struct call *c)
{
	size_t path_at = 2;
	int64_t index = -1;
	struct json_targets t;
	struct json_path path;
	struct timed_json j;
	struct str *texts;
	bool done = false;

	if (c->argc > 3 && call_arg_is(c, 2, "format")) {
		if (!call_arg_is(c, 3, "strings"))
			return call_error(c, STR("ERR wrong reply format"));
		path_at = 4;
	}
	if (c->argc > path_at + 2)
		return call_wrong_arity(c);
	TRY(json_path(c, path_at, &path));
	if (c->argc > path_at + 1)
		TRY(call_int(c, path_at + 1, &index));
	TRY(json_open(c, 1, &j));
	TRY(json_targets(c, &j, &path, JSON_KIND(JTREE_ARRAY), NOT_AN_ARRAY, &t));
	texts = arena_zalloc(c->arena, (t.count + 1) * sizeof(*texts));
	if (!texts)
		return STATUS_LIMIT;
	for (size_t i = t.count; i-- > 0;) {
		if (t.nodes[i])
			TRY(pop_one(c, &j, t.nodes[i], index, &texts[i]));
		done = done || texts[i].ptr;
	}
	if (!path.legacy)
		reply_array(c->reply, t.count);
	for (size_t i = path.legacy ? t.count - 1 : 0; i < t.count; i++)
		reply_bulk_if(c->reply, texts[i].ptr != NULL, texts[i]);
	return done ? json_changed(c, 1, &j, "json.arrpop") : STATUS_OK;
}

/* Keeps the elements from `start` to `stop`, both included. */
static enum status
trim_one(struct timed_json *j, struct jtree_node *array, int64_t start, int64_t stop)
{
	uint64_t first, last;

	if (!array->count)
		return STATUS_OK;
	last = position_within(stop, array->count);
	first = start < (int64_t)array->count ? position_within(start, array->count) : last + 1;
	if (first > last)
		return timed_json_cut(j, array, 0, array->count);
	TRY(timed_json_cut(j, array, last + 1, array->count - last - 1));
	return timed_json_cut(j, array, 0, first);
}

enum status
cmd_json_arrtrim(struct call *c)
{
	struct json_targets t;
	struct json_path path;
	struct timed_json j;
	int64_t start, stop;
	bool done = false;

	TRY(json_path(c, 2, &path));
	TRY(call_int(c, 3, &start));
	TRY(call_int(c, 4, &stop));
	TRY(json_open(c, 1, &j));
	TRY(json_targets(c, &j, &path, JSON_KIND(JTREE_ARRAY), NOT_AN_ARRAY, &t));
	for (size_t i = t.count; i-- > 0;) {
		if (!t.nodes[i])
			continue;
		TRY(trim_one(&j, t.nodes[i], start, stop));
		t.results[i].there = done = true;
		t.results[i].n = (int64_t)t.nodes[i]->count;
	}
	json_reply_targets(c, &path, &t);
	return done ? json_changed(c, 1, &j, "json.arrtrim") : STATUS_OK;
}
