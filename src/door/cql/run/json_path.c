#include "door/cql/run/json_path.h"

#include "cql/json.h"

enum status
json_path_compile(struct run *run, const struct schema_column *c,
		  const struct cql_term *const *path, size_t count, bool as_text,
		  struct json_path *ret, const struct cql_type **ret_type)
{
	*ret = (struct json_path){ .count = count, .is_text = as_text };
	if (c->type->kind != CQL_TYPE_JSONB)
		return cql_fail(run->q, CQL_E_NOT_JSONB, c->name, cql_type_text(run->q, c->type));
	ret->steps = arena_alloc(run->r->arena, (count + 1) * sizeof(struct cql_expr *));
	if (!ret->steps)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		TRY(run_compile(run, path[i],
				path[i]->kind == CQL_TERM_INTEGER ? CQL_NATIVE(INT)
								  : CQL_NATIVE(TEXT),
				STR("path"), &ret->steps[i]));
	*ret_type = as_text ? CQL_NATIVE(TEXT) : CQL_NATIVE(JSONB);
	return STATUS_OK;
}

enum status
json_path_compute(struct run *run, struct json_path *p)
{
	p->keys = arena_alloc(run->r->arena, (p->count + 1) * sizeof(*p->keys));
	if (!p->keys)
		return STATUS_LIMIT;
	for (size_t i = 0; i < p->count; i++) {
		struct cql_value v;

		TRY(run_value(run, p->steps[i], &v));
		if (v.presence != CQL_SET)
			return request_fail(run->r, CQL_CODE_INVALID,
					    "Invalid %s value in a path into jsonb",
					    v.presence == CQL_UNSET ? "unset" : "null");
		p->keys[i] = v.bytes;
		if (cql_expr_type(p->steps[i])->kind != CQL_TYPE_INT)
			continue;
		p->keys[i] = arena_printf(run->r->arena, "%lld", (long long)cql_int_read(v.bytes));
		if (!p->keys[i].ptr)
			return STATUS_LIMIT;
	}
	return STATUS_OK;
}

enum status
json_path_get(struct cql *q, const struct json_path *p, struct str json, struct cql_value *ret)
{
	struct str found;

	TRY(cql_jsonb_get(q, json, p->keys, p->count, p->is_text, &found));
	*ret = found.ptr ? CQL_VALUE(found) : CQL_VALUE_NULL;
	return STATUS_OK;
}
