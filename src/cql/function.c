#include "base/rand.h"
#include "cql/expr_int.h"
#include "cql/json.h"
#include "cql/murmur3.h"
#include "cql/time.h"

static enum status
give(enum status status, struct str bytes, struct cql_value *ret)
{
	*ret = status == STATUS_OK ? CQL_VALUE(bytes) : CQL_VALUE_NULL;
	return status;
}

/* ---- UUIDs and moments ---- */

static enum status
run_uuid(const struct cql_expr *e, struct cql *q, struct cql_env *env, const struct cql_value *args,
	 struct cql_value *ret)
{
	char *bytes = arena_bytes(q->arena, DOC_UUID_BYTES);

	(void)e;
	(void)env;
	(void)args;
	if (!bytes)
		return STATUS_LIMIT;
	rand_bytes(bytes, DOC_UUID_BYTES);
	bytes[6] = (char)((bytes[6] & 0x0f) | 0x40);
	bytes[8] = (char)((bytes[8] & 0x3f) | 0x80);
	*ret = CQL_VALUE(str_of(bytes, DOC_UUID_BYTES));
	return STATUS_OK;
}

/* Each call of one statement is a unit of time later, and its last bytes are random. */
static enum status
run_now(const struct cql_expr *e, struct cql *q, struct cql_env *env, const struct cql_value *args,
	struct cql_value *ret)
{
	uint64_t last;
	struct str uuid = { NULL, 0 };

	(void)e;
	(void)args;
	rand_bytes(&last, sizeof(last));
	last = (last & UINT64_C(0x3fffffffffffffff)) | UINT64_C(0x8000010000000000);
	return give(cql_timeuuid_put(q, env->now_us * 10 + env->uuids++, last, &uuid), uuid, ret);
}

static enum status
run_current(const struct cql_expr *e, struct cql *q, struct cql_env *env,
	    const struct cql_value *args, struct cql_value *ret)
{
	int64_t ms = env->now_us / 1000;
	struct str bytes = { NULL, 0 };
	enum status status;

	(void)args;
	if (e->type->kind == CQL_TYPE_DATE)
		status = cql_date_put(q, ms, &bytes);
	else if (e->type->kind == CQL_TYPE_TIME)
		status = cql_int_put(q, ms % CQL_DAY_MS * 1000000, 8, &bytes);
	else
		status = cql_int_put(q, ms, 8, &bytes);
	return give(status, bytes, ret);
}

static enum status
run_least_timeuuid(const struct cql_expr *e, struct cql *q, struct cql_env *env,
		   const struct cql_value *args, struct cql_value *ret)
{
	bool most = str_eq(e->name, STR("maxtimeuuid"));
	int64_t ms = cql_int_read(args[0].bytes);
	struct str uuid = { NULL, 0 };

	(void)env;
	/* Bytes are compared with their signs: 0x80 is the least. */
	return give(
		cql_timeuuid_put(q, (int64_t)((uint64_t)ms * 10000 + (most ? 9999 : 0)),
				 most ? UINT64_C(0x7f7f7f7f7f7f7f7f) : UINT64_C(0x8080808080808080),
				 &uuid),
		uuid, ret);
}

/* From a timeuuid, date or timestamp to a date, timestamp or number. */
static enum status
run_moment(const struct cql_expr *e, struct cql *q, struct cql_env *env,
	   const struct cql_value *args, struct cql_value *ret)
{
	enum cql_type_kind from = e->args[0]->type->kind;
	struct str bytes = args[0].bytes, got = { NULL, 0 };
	int64_t ms;

	(void)env;
	*ret = CQL_VALUE_NULL;
	if (!bytes.len)
		return STATUS_OK;
	ms = from == CQL_TYPE_TIMEUUID ? cql_timeuuid_ms(bytes)
	     : from == CQL_TYPE_DATE   ? cql_date_ms(bytes)
				       : cql_int_read(bytes);
	if (e->type->kind == CQL_TYPE_DATE)
		return give(cql_date_put(q, ms, &got), got, ret);
	return give(cql_int_put(q, ms, 8, &got), got, ret);
}

/* ---- Blobs, tokens, JSON ---- */

enum status
cql_blob_run(const struct cql_expr *e, struct cql *q, struct cql_env *env,
	     const struct cql_value *args, struct cql_value *ret)
{
	struct buf hex;
	struct str shown;
	enum status status;

	(void)env;
	*ret = args[0];
	if (e->type->kind == CQL_TYPE_BLOB ||
	    cql_value_check(q, e->type, args[0].bytes) == STATUS_OK)
		return STATUS_OK;
	hex = cql_buf(q, CQL_STATEMENT_BYTES);
	buf_append_cstr(&hex, "0x");
	buf_append_hex(&hex, str_of(args[0].bytes.ptr, args[0].bytes.len < CQL_SHOWN_BYTES
							       ? args[0].bytes.len
							       : CQL_SHOWN_BYTES));
	status = buf_copy(&hex, q->arena, &shown);
	buf_release(&hex);
	TRY(status);
	return cql_fail(q, CQL_E_BAD_BLOB_VALUE, e->name, shown, cql_type_text(q, e->type));
}

enum status
cql_token_run(const struct cql_expr *e, struct cql *q, struct cql_env *env,
	      const struct cql_value *args, struct cql_value *ret)
{
	struct buf key = cql_buf(q, arena_limit_bytes(q->arena));
	struct str *columns = arena_alloc(q->arena, (e->count + 1) * sizeof(*columns));
	struct str bytes = { NULL, 0 };
	enum status status;

	(void)env;
	if (!columns)
		return STATUS_LIMIT;
	for (size_t i = 0; i < e->count; i++)
		columns[i] = args[i].bytes;
	status = cql_partition_key_put(&key, columns, e->count);
	if (status == STATUS_INVALID)
		status = cql_fail(q, CQL_E_KEY_LONG);
	if (status == STATUS_OK)
		status = cql_int_put(q, cql_token(buf_str(&key)), 8, &bytes);
	buf_release(&key);
	return give(status, bytes, ret);
}

enum status
cql_to_json_run(const struct cql_expr *e, struct cql *q, struct cql_env *env,
		const struct cql_value *args, struct cql_value *ret)
{
	struct buf out = cql_buf(q, arena_limit_bytes(q->arena));
	struct str json = { NULL, 0 };
	enum status status;

	(void)env;
	cql_json_print(&out, e->args[0]->type, args[0]);
	status = buf_copy(&out, q->arena, &json);
	buf_release(&out);
	return give(status, json, ret);
}

enum status
cql_from_json_run(const struct cql_expr *e, struct cql *q, struct cql_env *env,
		  const struct cql_value *args, struct cql_value *ret)
{
	struct err inner = { 0 }, *err = q->err;
	enum status status;

	(void)env;
	q->err = &inner;
	status = cql_json_read(q, e->type, args[0].bytes, ret);
	q->err = err;
	return status == STATUS_INVALID ? cql_fail(q, CQL_E_FROM_JSON, str_from_cstr(inner.text))
					: status;
}

/* ---- The table ---- */

/* Those of one name stand together. */
static const struct cql_function functions[] = {
	{ "now", CQL_TYPE_TIMEUUID, 0, { 0 }, false, run_now },
	{ "currenttimeuuid", CQL_TYPE_TIMEUUID, 0, { 0 }, false, run_now },
	{ "uuid", CQL_TYPE_UUID, 0, { 0 }, false, run_uuid },
	{ "currenttimestamp", CQL_TYPE_TIMESTAMP, 0, { 0 }, false, run_current },
	{ "currentdate", CQL_TYPE_DATE, 0, { 0 }, false, run_current },
	{ "currenttime", CQL_TYPE_TIME, 0, { 0 }, false, run_current },
	{ "mintimeuuid", CQL_TYPE_TIMEUUID, 1, { CQL_TYPE_TIMESTAMP }, false, run_least_timeuuid },
	{ "maxtimeuuid", CQL_TYPE_TIMEUUID, 1, { CQL_TYPE_TIMESTAMP }, false, run_least_timeuuid },
	{ "dateof", CQL_TYPE_TIMESTAMP, 1, { CQL_TYPE_TIMEUUID }, false, run_moment },
	{ "unixtimestampof", CQL_TYPE_BIGINT, 1, { CQL_TYPE_TIMEUUID }, false, run_moment },
	{ "todate", CQL_TYPE_DATE, 1, { CQL_TYPE_TIMEUUID }, false, run_moment },
	{ "todate", CQL_TYPE_DATE, 1, { CQL_TYPE_TIMESTAMP }, false, run_moment },
	{ "totimestamp", CQL_TYPE_TIMESTAMP, 1, { CQL_TYPE_TIMEUUID }, false, run_moment },
	{ "totimestamp", CQL_TYPE_TIMESTAMP, 1, { CQL_TYPE_DATE }, false, run_moment },
	{ "tounixtimestamp", CQL_TYPE_BIGINT, 1, { CQL_TYPE_TIMEUUID }, false, run_moment },
	{ "tounixtimestamp", CQL_TYPE_BIGINT, 1, { CQL_TYPE_TIMESTAMP }, false, run_moment },
	{ "tounixtimestamp", CQL_TYPE_BIGINT, 1, { CQL_TYPE_DATE }, false, run_moment },
	{ "tojson", CQL_TYPE_TEXT, 1, { CQL_ANY_TYPE }, true, cql_to_json_run },
};

enum {
	FUNCTIONS = sizeof(functions) / sizeof(functions[0]),
};

const struct cql_function *
cql_functions_of(struct str name, size_t *ret_count)
{
	const struct cql_function *first = NULL;

	*ret_count = 0;
	for (size_t i = 0; i < FUNCTIONS; i++) {
		if (!str_eq(name, str_from_cstr(functions[i].name)))
			continue;
		if (!first)
			first = &functions[i];
		++*ret_count;
	}
	return first;
}

const struct cql_type *
cql_blob_function(struct str name, bool *ret_from_blob)
{
	struct str of = name;
	const struct cql_type *type;

	*ret_from_blob = str_starts_with(name, STR("blobas"));
	if (*ret_from_blob)
		of = str_skip(name, 6);
	else if (name.len > 6 && str_eq(str_skip(name, name.len - 6), STR("asblob")))
		of.len -= 6;
	else
		return NULL;
	for (type = cql_native_types; type < cql_native_types + CQL_NATIVE_COUNT; type++) {
		struct buf text = BUF_SHORT(32);
		bool same;

		cql_type_print(&text, type);
		same = str_eq(buf_str(&text), of);
		buf_release(&text);
		if (same)
			break;
	}
	if (str_eq(of, STR("varchar")))
		return CQL_NATIVE(TEXT);
	if (type == cql_native_types + CQL_NATIVE_COUNT || type->kind == CQL_TYPE_BLOB ||
	    type->kind == CQL_TYPE_JSONB)
		return NULL;
	return type;
}
