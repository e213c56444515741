#include "cql/json.h"

#include "doc/json_value.h"
#include "loop/sort.h"
#include "loop/step.h"

static enum status
bad(struct cql *q, enum status status, struct str json)
{
	if (status == STATUS_LIMIT || status == STATUS_NOMEM || status == STATUS_CANCELLED ||
	    status == STATUS_STEPS)
		return status;
	return cql_fail(q, CQL_E_BAD_JSONB, json);
}

static enum status
compare_members(const void *arg, const void *a, const void *b, int *ret)
{
	const struct json_member *first = a, *second = b;

	(void)arg;
	return sort_compare_strs(first->name, second->name, ret);
}

static enum status write_value(struct cql *q, struct buf *out, const struct json_value *v,
			       unsigned depth);

/* Sorted by their names; of those of one name the last. */
static enum status
write_object(struct cql *q, struct buf *out, const struct json_value *v, unsigned depth)
{
	struct json_member *members;
	size_t count;
	bool any = false;

	TRY(json_value_members(v, q->arena, &members, &count, NULL));
	TRY(sort_items(members, count, sizeof(*members), compare_members, NULL, q->arena));
	buf_append_byte(out, '{');
	for (size_t i = 0; i < count; i++) {
		if (i + 1 < count && str_eq(members[i].name, members[i + 1].name))
			continue;
		if (any)
			buf_append_byte(out, ',');
		any = true;
		json_write_str(out, members[i].name);
		buf_append_byte(out, ':');
		TRY(write_value(q, out, &members[i].value, depth + 1));
	}
	buf_append_byte(out, '}');
	return STATUS_OK;
}

static enum status
write_array(struct cql *q, struct buf *out, const struct json_value *v, unsigned depth)
{
	struct json_value *items;
	size_t count;

	TRY(json_value_items(v, q->arena, &items, &count, NULL));
	buf_append_byte(out, '[');
	for (size_t i = 0; i < count; i++) {
		if (i)
			buf_append_byte(out, ',');
		TRY(write_value(q, out, &items[i], depth + 1));
	}
	buf_append_byte(out, ']');
	return STATUS_OK;
}

static enum status
write_value(struct cql *q, struct buf *out, const struct json_value *v, unsigned depth)
{
	if (depth > CQL_DEPTH)
		return STATUS_INVALID;
	TRY(step_count_bytes(v->text.len));
	if (v->kind == JSON_OBJECT_BEGIN)
		return write_object(q, out, v, depth);
	if (v->kind == JSON_ARRAY_BEGIN)
		return write_array(q, out, v, depth);
	if (v->kind == JSON_STRING)
		json_write_str(out, v->string);
	else
		buf_append_str(out, v->text);
	return buf_status(out);
}

enum status
cql_jsonb_normalize(struct cql *q, struct str json, struct str *ret)
{
	struct buf out = cql_buf(q, arena_limit_bytes(q->arena));
	struct json_value v;
	enum status status = json_value_read(json, q->arena, &v, NULL);

	if (status == STATUS_OK)
		status = write_value(q, &out, &v, 0);
	if (status == STATUS_OK)
		status = buf_copy(&out, q->arena, ret);
	buf_release(&out);
	return status == STATUS_OK ? STATUS_OK : bad(q, status, json);
}

enum status
cql_jsonb_get(struct cql *q, struct str json, const struct str *path, size_t count, bool as_text,
	      struct str *ret)
{
	struct json_value root;
	const struct json_value *v = NULL;
	enum status status = json_value_read(json, q->arena, &root, NULL);

	if (status == STATUS_OK)
		status = json_value_at(&root, path, count, q->arena, &v);
	if (status != STATUS_OK)
		return bad(q, status, json);
	if (!v || (as_text && v->kind == JSON_NULL))
		*ret = (struct str){ NULL, 0 };
	else
		*ret = as_text && v->kind == JSON_STRING ? v->string : v->text;
	if (v && !ret->ptr && !(as_text && v->kind == JSON_NULL))
		*ret = STR("");
	return STATUS_OK;
}

static enum status set_value(struct cql *q, struct buf *out, const struct json_value *v,
			     const struct str *path, size_t count, struct str value);

static enum status
set_member(struct cql *q, struct buf *out, const struct json_value *v, const struct str *path,
	   size_t count, struct str value)
{
	struct json_member *members;
	size_t members_count;
	bool there = false;

	TRY(json_value_members(v, q->arena, &members, &members_count, NULL));
	buf_append_byte(out, '{');
	for (size_t i = 0; i < members_count; i++) {
		bool here = str_eq(members[i].name, path[0]);

		if (i)
			buf_append_byte(out, ',');
		json_write_str(out, members[i].name);
		buf_append_byte(out, ':');
		there = there || here;
		if (here)
			TRY(set_value(q, out, &members[i].value, path + 1, count - 1, value));
		else
			buf_append_str(out, members[i].value.text);
	}
	/* A new member, but nothing below one that is not there. */
	if (!there && count > 1)
		return STATUS_INVALID;
	if (!there) {
		if (members_count)
			buf_append_byte(out, ',');
		json_write_str(out, path[0]);
		buf_append_byte(out, ':');
		buf_append_str(out, value);
	}
	buf_append_byte(out, '}');
	return STATUS_OK;
}

static enum status
set_element(struct cql *q, struct buf *out, const struct json_value *v, const struct str *path,
	    size_t count, struct str value)
{
	struct json_value *items;
	size_t items_count;
	uint64_t n;

	TRY(json_value_items(v, q->arena, &items, &items_count, NULL));
	if (!str_to_u64(path[0], &n) || n >= items_count)
		return STATUS_INVALID;
	buf_append_byte(out, '[');
	for (size_t i = 0; i < items_count; i++) {
		if (i)
			buf_append_byte(out, ',');
		if (i == n)
			TRY(set_value(q, out, &items[i], path + 1, count - 1, value));
		else
			buf_append_str(out, items[i].text);
	}
	buf_append_byte(out, ']');
	return STATUS_OK;
}

static enum status
set_value(struct cql *q, struct buf *out, const struct json_value *v, const struct str *path,
	  size_t count, struct str value)
{
	TRY(step_count_bytes(v->text.len));
	if (count == 0) {
		buf_append_str(out, value);
		return buf_status(out);
	}
	if (v->kind == JSON_OBJECT_BEGIN)
		return set_member(q, out, v, path, count, value);
	if (v->kind == JSON_ARRAY_BEGIN)
		return set_element(q, out, v, path, count, value);
	return STATUS_INVALID;
}

enum status
cql_jsonb_set(struct cql *q, struct str json, const struct str *path, size_t count,
	      struct str value, struct str *ret)
{
	struct buf out = cql_buf(q, arena_limit_bytes(q->arena));
	struct json_value root;
	enum status status;
	struct str set;

	/* A path is as deep as what it leads into may be. */
	if (count > CQL_DEPTH)
		return cql_fail(q, CQL_E_BAD_JSONB, json);
	status = json_value_read(json, q->arena, &root, NULL);
	if (status == STATUS_OK)
		status = set_value(q, &out, &root, path, count, value);
	if (status == STATUS_OK)
		status = buf_copy(&out, q->arena, &set);
	buf_release(&out);
	if (status != STATUS_OK)
		return bad(q, status, json);
	return cql_jsonb_normalize(q, set, ret);
}
