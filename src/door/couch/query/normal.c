#include "door/couch/query/normal.h"

#include "doc/json.h"
#include "loop/sort.h"
#include "loop/step.h"

static const struct {
	const char *name;
	enum normal_op opposite;
} ops[] = {
#define NORMAL_OP_ROW(op, name, opposite) { name, NORMAL_##opposite },
	SELECTOR_OPERATORS(NORMAL_OP_ROW)
};

enum {
	OPS_COUNT = sizeof(ops) / sizeof(ops[0]),
};

static const char *const combination_names[] = {
	[NORMAL_AND] = "$and",
	[NORMAL_OR] = "$or",
	[NORMAL_NOT] = "$not",
	[NORMAL_NOR] = "$nor",
};

/* Where the reading stands. */
struct normal_reader {
	struct arena *arena;
	const struct normal_path *path; /* to the value that is read */
	bool negated;
	bool inside; /* of $elemMatch and the like, where negations stay where they are */
};

static enum status normal_read_value(const struct normal_reader *r, const struct json_value *v,
				     struct normal_node **ret);

/* ---- Paths ---- */

static size_t
path_count_names(struct str field)
{
	size_t count = 1;

	for (size_t i = 0; i < field.len; i++)
		count += field.ptr[i] == '.' && (i == 0 || field.ptr[i - 1] != '\\');
	return count;
}

/* Appends the names of the field to the path, whose array has room for them. */
static enum status
path_split(struct str field, struct arena *arena, struct normal_path *path)
{
	bool more = true;

	while (more) {
		TRY(selector_name_cut(&field, arena, &path->names[path->count], &more));
		path->count++;
	}
	return STATUS_OK;
}

static enum status
path_join(struct normal_path *path, struct arena *arena)
{
	size_t len = path->count ? path->count - 1 : 0;
	char *at;

	for (size_t i = 0; i < path->count; i++)
		len += path->names[i].len;
	at = arena_bytes(arena, len + 1);
	if (!at)
		return STATUS_LIMIT;
	path->joined = str_of(at, len);
	for (size_t i = 0; i < path->count; i++) {
		if (i)
			*at++ = '.';
		memcpy(at, path->names[i].ptr, path->names[i].len);
		at += path->names[i].len;
	}
	return STATUS_OK;
}

/* The path `above` and then the field's own names. */
static enum status
path_extend(const struct normal_path *above, struct str field, struct arena *arena,
	    struct normal_path *ret)
{
	size_t most = above->count + path_count_names(field);

	*ret = (struct normal_path){ .names = arena_alloc(arena, most * sizeof(*ret->names)) };
	if (!ret->names)
		return STATUS_LIMIT;
	if (above->count)
		memcpy(ret->names, above->names, above->count * sizeof(*ret->names));
	ret->count = above->count;
	TRY(path_split(field, arena, ret));
	return path_join(ret, arena);
}

enum status
normal_path_read(struct str field, struct arena *arena, struct normal_path *ret)
{
	const struct normal_path above = { 0 };

	return path_extend(&above, field, arena, ret);
}

bool
normal_path_eq(const struct normal_path *a, const struct normal_path *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = a->count; i--;) {
		if (!str_eq(a->names[i], b->names[i]))
			return false;
	}
	return true;
}

bool
normal_path_is(const struct normal_path *path, const char *name)
{
	return path->count == 1 && str_eq(path->names[0], str_from_cstr(name));
}

/* ---- Reading ---- */

static enum status
node_new(struct arena *arena, enum normal_kind kind, struct normal_node **ret)
{
	*ret = arena_zalloc(arena, sizeof(**ret));
	if (!*ret)
		return STATUS_LIMIT;
	(*ret)->kind = kind;
	return step_count(1);
}

static enum status
read_condition(const struct normal_reader *r, enum normal_op op, const struct json_value *arg,
	       struct normal_node **ret)
{
	static const struct normal_path nowhere = { .joined = { "", 0 } };
	struct normal_reader inside = { r->arena, &nowhere, false, true };
	struct normal_node *n;

	TRY(node_new(r->arena, NORMAL_FIELD, ret));
	n = *ret;
	n->path = *r->path;
	n->op = op;
	n->arg = *arg;
	if (op == NORMAL_EXISTS)
		n->exists = (arg->kind == JSON_TRUE) != r->negated;
	else if (r->negated && ops[op].opposite != op)
		n->op = ops[op].opposite;
	else
		n->negated = r->negated;
	if (op < NORMAL_ELEM_MATCH)
		return STATUS_OK;
	return normal_read_value(&inside, arg, &n->sub);
}

/* De Morgan's law: a negated $and is an $or of negated members. */
static enum status
read_combination(const struct normal_reader *r, enum normal_kind kind, const struct json_value *arg,
		 struct normal_node **ret)
{
	struct normal_reader below = *r;
	struct normal_node **end;
	struct json_value *items;
	size_t count;

	if (!r->inside && (kind == NORMAL_NOT || kind == NORMAL_NOR)) {
		below.negated = !r->negated;
		kind = kind == NORMAL_NOR ? NORMAL_OR : kind;
	}
	if (kind == NORMAL_NOT && !r->inside)
		return normal_read_value(&below, arg, ret);
	if (below.negated)
		kind = kind == NORMAL_AND ? NORMAL_OR : NORMAL_AND;
	TRY(node_new(r->arena, kind, ret));
	if (kind == NORMAL_NOT)
		return normal_read_value(&below, arg, &(*ret)->first);
	TRY(json_value_items(arg, r->arena, &items, &count, NULL));
	end = &(*ret)->first;
	for (size_t i = 0; i < count; i++, end = &(*end)->next)
		TRY(normal_read_value(&below, &items[i], end));
	return STATUS_OK;
}

static enum status
read_member(const struct normal_reader *r, const struct json_member *m, struct normal_node **ret)
{
	struct normal_reader below = *r;
	struct normal_path path;

	if (m->name.len && m->name.ptr[0] == '$') {
		for (unsigned i = NORMAL_AND; i <= NORMAL_NOR; i++) {
			if (str_eq(m->name, str_from_cstr(combination_names[i])))
				return read_combination(r, i, &m->value, ret);
		}
		for (unsigned i = 0; i < OPS_COUNT; i++) {
			if (str_eq(m->name, str_from_cstr(ops[i].name)))
				return read_condition(r, i, &m->value, ret);
		}
		return STATUS_INVALID;
	}
	TRY(path_extend(r->path, m->name, r->arena, &path));
	below.path = &path;
	return normal_read_value(&below, &m->value, ret);
}

/* A member, and where it stands in its object. */
struct placed {
	const struct json_member *member;
	size_t place;
};

static enum status
placed_compare(const void *arg, const void *a, const void *b, int *ret)
{
	const struct placed *x = a, *y = b;

	(void)arg;
	return sort_compare_strs(x->member->name, y->member->name, ret);
}

/* Of several members of one name the last one counts, in the place of the first. */
static enum status
drop_doubles(struct arena *arena, struct json_member *members, size_t *count)
{
	struct placed *sorted = arena_alloc(arena, (*count + 1) * sizeof(*sorted));
	bool *dropped = arena_zalloc(arena, *count + 1);
	size_t first = 0;
	size_t kept = 0;

	if (!sorted || !dropped)
		return STATUS_LIMIT;
	TRY(step_count((uint32_t)*count + 1));
	for (size_t i = 0; i < *count; i++)
		sorted[i] = (struct placed){ &members[i], i };
	TRY(sort_items(sorted, *count, sizeof(*sorted), placed_compare, NULL, arena));
	for (size_t i = 1; i < *count; i++) {
		if (!str_eq(sorted[i].member->name, sorted[first].member->name)) {
			first = i;
			continue;
		}
		members[sorted[first].place].value = members[sorted[i].place].value;
		dropped[sorted[i].place] = true;
	}
	for (size_t i = 0; i < *count; i++) {
		if (!dropped[i])
			members[kept++] = members[i];
	}
	*count = kept;
	return STATUS_OK;
}

static enum status
normal_read_value(const struct normal_reader *r, const struct json_value *v,
		  struct normal_node **ret)
{
	struct json_member *members = NULL;
	struct normal_node **end;
	size_t count = 0;

	if (v->kind == JSON_OBJECT_BEGIN) {
		TRY(json_value_members(v, r->arena, &members, &count, NULL));
		TRY(drop_doubles(r->arena, members, &count));
	}
	if (count == 0)
		return read_condition(r, NORMAL_EQ, v, ret);
	if (count == 1)
		return read_member(r, &members[0], ret);
	TRY(node_new(r->arena, r->negated ? NORMAL_OR : NORMAL_AND, ret));
	end = &(*ret)->first;
	for (size_t i = 0; i < count; i++, end = &(*end)->next)
		TRY(read_member(r, &members[i], end));
	return STATUS_OK;
}

enum status
normal_read(struct str text, struct arena *arena, struct normal_node **ret)
{
	static const struct normal_path root = { .joined = { "", 0 } };
	const struct normal_reader r = { .arena = arena, .path = &root };
	struct json_value value;

	TRY(json_value_read(text, arena, &value, NULL));
	TRY(normal_read_value(&r, &value, ret));
	if ((*ret)->kind == NORMAL_FIELD && (*ret)->path.count == 0)
		(*ret)->kind = NORMAL_ANYTHING;
	return STATUS_OK;
}

/* ---- Writing ---- */

static void
write_condition(const struct normal_node *n, struct buf *out)
{
	json_write_str(out, n->path.joined);
	buf_append_cstr(out, n->negated ? ":{\"$not\":{\"" : ":{\"");
	buf_append_cstr(out, ops[n->op].name);
	buf_append_cstr(out, "\":");
	if (n->sub)
		normal_write(n->sub, out);
	else if (n->op == NORMAL_EXISTS)
		buf_append_cstr(out, n->exists ? "true" : "false");
	else
		buf_append_str(out, n->arg.text);
	buf_append_cstr(out, n->negated ? "}}" : "}");
}

void
normal_write(const struct normal_node *n, struct buf *out)
{
	buf_append_byte(out, '{');
	if (n->kind == NORMAL_FIELD) {
		write_condition(n, out);
	} else if (n->kind != NORMAL_ANYTHING) {
		buf_append_byte(out, '"');
		buf_append_cstr(out, combination_names[n->kind]);
		buf_append_cstr(out, n->kind == NORMAL_NOT ? "\":" : "\":[");
		for (const struct normal_node *i = n->first; i; i = i->next) {
			if (i != n->first)
				buf_append_byte(out, ',');
			normal_write(i, out);
		}
		if (n->kind != NORMAL_NOT)
			buf_append_byte(out, ']');
	}
	buf_append_byte(out, '}');
}

/* ---- What a match needs ---- */

bool
normal_requires(const struct normal_node *n, const struct normal_path *path)
{
	if (n->kind == NORMAL_FIELD)
		return normal_path_eq(&n->path, path) && !(n->op == NORMAL_EXISTS && !n->exists);
	if (n->kind == NORMAL_AND) {
		for (const struct normal_node *i = n->first; i; i = i->next) {
			if (normal_requires(i, path))
				return true;
		}
	}
	if (n->kind == NORMAL_OR) {
		for (const struct normal_node *i = n->first; i; i = i->next) {
			if (!normal_requires(i, path))
				return false;
		}
		return n->first != NULL;
	}
	return false;
}

bool
normal_is_constant(const struct normal_node *n, const struct normal_path *path)
{
	if (n->kind == NORMAL_FIELD)
		return n->op == NORMAL_EQ && normal_path_eq(&n->path, path);
	if (n->kind == NORMAL_AND) {
		for (const struct normal_node *i = n->first; i; i = i->next) {
			if (normal_is_constant(i, path))
				return true;
		}
	}
	return false;
}
