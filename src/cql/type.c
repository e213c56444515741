#include "cql/type.h"

#include "cql/type_int.h"

#define TYPE_NATIVE(of) [CQL_TYPE_##of] = { .kind = CQL_TYPE_##of, .resolved = true }

const struct cql_type cql_native_types[CQL_NATIVE_COUNT] = {
	TYPE_NATIVE(ASCII),     TYPE_NATIVE(BIGINT),   TYPE_NATIVE(BLOB),    TYPE_NATIVE(BOOLEAN),
	TYPE_NATIVE(COUNTER),   TYPE_NATIVE(DATE),     TYPE_NATIVE(DECIMAL), TYPE_NATIVE(DOUBLE),
	TYPE_NATIVE(DURATION),  TYPE_NATIVE(FLOAT),    TYPE_NATIVE(INET),    TYPE_NATIVE(INT),
	TYPE_NATIVE(JSONB),     TYPE_NATIVE(SMALLINT), TYPE_NATIVE(TEXT),    TYPE_NATIVE(TIME),
	TYPE_NATIVE(TIMESTAMP), TYPE_NATIVE(TIMEUUID), TYPE_NATIVE(TINYINT), TYPE_NATIVE(UUID),
	TYPE_NATIVE(VARINT),
};

const struct cql_native cql_natives[CQL_NATIVE_COUNT] = {
	[CQL_TYPE_ASCII] = { "ascii", "AsciiType", 0x01, 0 },
	[CQL_TYPE_BIGINT] = { "bigint", "LongType", 0x02, 8 },
	[CQL_TYPE_BLOB] = { "blob", "BytesType", 0x03, 0 },
	[CQL_TYPE_BOOLEAN] = { "boolean", "BooleanType", 0x04, 1 },
	[CQL_TYPE_COUNTER] = { "counter", "CounterColumnType", 0x05, 8 },
	[CQL_TYPE_DATE] = { "date", "SimpleDateType", 0x11, 4 },
	[CQL_TYPE_DECIMAL] = { "decimal", "DecimalType", 0x06, 0 },
	[CQL_TYPE_DOUBLE] = { "double", "DoubleType", 0x07, 8 },
	[CQL_TYPE_DURATION] = { "duration", "DurationType", 0x15, 0 },
	[CQL_TYPE_FLOAT] = { "float", "FloatType", 0x08, 4 },
	[CQL_TYPE_INET] = { "inet", "InetAddressType", 0x10, 0 },
	[CQL_TYPE_INT] = { "int", "Int32Type", 0x09, 4 },
	[CQL_TYPE_JSONB] = { "jsonb", "JsonbType", 0x80, 0 },
	[CQL_TYPE_SMALLINT] = { "smallint", "ShortType", 0x13, 2 },
	[CQL_TYPE_TEXT] = { "text", "UTF8Type", 0x0d, 0 },
	[CQL_TYPE_TIME] = { "time", "TimeType", 0x12, 8 },
	[CQL_TYPE_TIMESTAMP] = { "timestamp", "TimestampType", 0x0b, 8 },
	[CQL_TYPE_TIMEUUID] = { "timeuuid", "TimeUUIDType", 0x0f, 16 },
	[CQL_TYPE_TINYINT] = { "tinyint", "ByteType", 0x14, 1 },
	[CQL_TYPE_UUID] = { "uuid", "UUIDType", 0x0c, 16 },
	[CQL_TYPE_VARINT] = { "varint", "IntegerType", 0x0e, 0 },
};

/* ---- Building ---- */

static bool
all_resolved(const struct cql_type *const *args, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!args[i]->resolved)
			return false;
	return true;
}

const struct cql_type *
cql_type_of(struct cql *q, enum cql_type_kind kind, bool frozen, const struct cql_type *const *args,
	    size_t count)
{
	struct cql_type *t = arena_alloc(q->arena, sizeof(*t));
	const struct cql_type **copy = arena_alloc(q->arena,
						   (count + 1) * sizeof(struct cql_type *));

	if (!t || !copy)
		return NULL;
	for (size_t i = 0; i < count; i++)
		copy[i] = args[i];
	*t = (struct cql_type){
		.kind = kind,
		.frozen = frozen || kind == CQL_TYPE_TUPLE,
		.resolved = all_resolved(args, count),
		.count = count,
		.args = copy,
	};
	return t;
}

const struct cql_type *
cql_type_udt(struct cql *q, struct str keyspace, struct str name, bool frozen,
	     const struct str *fields, const struct cql_type *const *args, size_t count)
{
	struct cql_type *t = arena_alloc(q->arena, sizeof(*t));

	if (!t)
		return NULL;
	*t = (struct cql_type){
		.kind = CQL_TYPE_UDT,
		.frozen = frozen,
		.resolved = fields != NULL && all_resolved(args, count),
		.keyspace = keyspace,
		.name = name,
		.count = count,
		.args = args,
		.fields = fields,
	};
	return t;
}

/* A copy with its arguments put through `change`. */
typedef enum status type_change(void *arg, struct cql *q, const struct cql_type *type,
				const struct cql_type **ret);

static enum status
change_args(struct cql *q, const struct cql_type *type, bool frozen, type_change *change, void *arg,
	    const struct cql_type **ret)
{
	struct cql_type *t = arena_alloc(q->arena, sizeof(*t));
	const struct cql_type **args = arena_alloc(q->arena,
						   (type->count + 1) * sizeof(struct cql_type *));

	if (!t || !args)
		return STATUS_LIMIT;
	for (size_t i = 0; i < type->count; i++)
		TRY(change(arg, q, type->args[i], &args[i]));
	*t = *type;
	t->frozen = frozen;
	t->args = args;
	t->resolved = (type->kind != CQL_TYPE_UDT || type->fields) &&
		      all_resolved(args, type->count);
	*ret = t;
	return STATUS_OK;
}

static enum status
freeze(void *arg, struct cql *q, const struct cql_type *type, const struct cql_type **ret)
{
	if (type->kind < CQL_NATIVE_COUNT || type->kind >= CQL_TYPE_CUSTOM) {
		*ret = type;
		return STATUS_OK;
	}
	return change_args(q, type, true, freeze, arg, ret);
}

enum status
cql_type_freeze(struct cql *q, const struct cql_type *type, const struct cql_type **ret)
{
	return freeze(NULL, q, type, ret);
}

struct resolving {
	struct str keyspace;
	cql_type_find *find;
	void *arg;
};

static enum status
resolve_udt(const struct resolving *r, struct cql *q, const struct cql_type *type,
	    const struct cql_type **ret)
{
	struct str keyspace = type->keyspace.ptr ? type->keyspace : r->keyspace;
	const struct cql_type *found = NULL;
	struct cql_type *t;

	if (!str_eq(keyspace, r->keyspace))
		return cql_fail(q, CQL_E_UDT_ELSEWHERE, r->keyspace, keyspace);
	TRY(r->find(r->arg, q, keyspace, type->name, &found));
	if (!found)
		return cql_fail(q, CQL_E_UNKNOWN_TYPE_OF, keyspace, type->name);
	if (type->frozen)
		return cql_type_freeze(q, found, ret);
	t = arena_alloc(q->arena, sizeof(*t));
	if (!t)
		return STATUS_LIMIT;
	*t = *found;
	t->frozen = false;
	*ret = t;
	return STATUS_OK;
}

static enum status
resolve(void *arg, struct cql *q, const struct cql_type *type, const struct cql_type **ret)
{
	if (type->resolved) {
		*ret = type;
		return STATUS_OK;
	}
	if (type->kind == CQL_TYPE_UDT && !type->fields)
		return resolve_udt(arg, q, type, ret);
	return change_args(q, type, type->frozen, resolve, arg, ret);
}

enum status
cql_type_resolve(struct cql *q, struct str keyspace, const struct cql_type *type,
		 cql_type_find *find, void *arg, const struct cql_type **ret)
{
	struct resolving r = { keyspace, find, arg };

	return resolve(&r, q, type, ret);
}

/* ---- Questions ---- */

static bool
same(const struct cql_type *a, const struct cql_type *b, bool frozen_counts)
{
	if (a == b)
		return true;
	if (a->kind != b->kind || a->count != b->count || (frozen_counts && a->frozen != b->frozen))
		return false;
	if (!str_eq(a->name, b->name))
		return false;
	if (a->keyspace.ptr && b->keyspace.ptr && !str_eq(a->keyspace, b->keyspace))
		return false;
	for (size_t i = 0; i < a->count; i++) {
		if (a->fields && b->fields && !str_eq(a->fields[i], b->fields[i]))
			return false;
		if (!same(a->args[i], b->args[i], frozen_counts))
			return false;
	}
	return true;
}

bool
cql_type_eq(const struct cql_type *a, const struct cql_type *b)
{
	return same(a, b, true);
}

bool
cql_type_same_bytes(const struct cql_type *a, const struct cql_type *b)
{
	return same(a, b, false);
}

bool
cql_type_is_collection(const struct cql_type *type)
{
	return type->kind == CQL_TYPE_LIST || type->kind == CQL_TYPE_SET ||
	       type->kind == CQL_TYPE_MAP;
}

bool
cql_type_is_multicell(const struct cql_type *type)
{
	return !type->frozen && (cql_type_is_collection(type) || type->kind == CQL_TYPE_UDT);
}

bool
cql_type_is_number(const struct cql_type *type)
{
	const unsigned numbers = 1u << CQL_TYPE_BIGINT | 1u << CQL_TYPE_COUNTER |
				 1u << CQL_TYPE_DECIMAL | 1u << CQL_TYPE_DOUBLE |
				 1u << CQL_TYPE_FLOAT | 1u << CQL_TYPE_INT |
				 1u << CQL_TYPE_SMALLINT | 1u << CQL_TYPE_TINYINT |
				 1u << CQL_TYPE_VARINT;

	return type->kind < CQL_NATIVE_COUNT && (numbers >> type->kind & 1);
}

bool
cql_type_has(const struct cql_type *type, enum cql_type_kind kind)
{
	if (type->kind == kind)
		return true;
	for (size_t i = 0; i < type->count; i++)
		if (cql_type_has(type->args[i], kind))
			return true;
	return false;
}

bool
cql_type_can_be_key(const struct cql_type *type)
{
	return !cql_type_is_multicell(type) && type->kind < CQL_TYPE_CUSTOM &&
	       !cql_type_has(type, CQL_TYPE_COUNTER) && !cql_type_has(type, CQL_TYPE_DURATION) &&
	       !cql_type_has(type, CQL_TYPE_JSONB);
}

bool
cql_type_uses(const struct cql_type *type, struct str keyspace, struct str name)
{
	if (type->kind == CQL_TYPE_UDT && str_eq(type->name, name) &&
	    (!type->keyspace.ptr || str_eq(type->keyspace, keyspace)))
		return true;
	for (size_t i = 0; i < type->count; i++)
		if (cql_type_uses(type->args[i], keyspace, name))
			return true;
	return false;
}

bool
cql_type_takes_empty(const struct cql_type *type)
{
	const unsigned never = 1u << CQL_TYPE_COUNTER | 1u << CQL_TYPE_DURATION |
			       1u << CQL_TYPE_TINYINT | 1u << CQL_TYPE_SMALLINT |
			       1u << CQL_TYPE_DATE | 1u << CQL_TYPE_TIME | 1u << CQL_TYPE_JSONB;

	if (type->kind >= CQL_NATIVE_COUNT)
		return type->kind == CQL_TYPE_TUPLE || type->kind == CQL_TYPE_UDT ||
		       type->kind == CQL_TYPE_CUSTOM;
	return !(never >> type->kind & 1);
}

size_t
cql_type_fixed_bytes(const struct cql_type *type)
{
	return type->kind < CQL_NATIVE_COUNT ? cql_natives[type->kind].bytes : 0;
}

static bool
takes_native(enum cql_type_kind to, enum cql_type_kind from)
{
	switch ((int)to) {
	case CQL_TYPE_TEXT:
		return from == CQL_TYPE_ASCII;
	case CQL_TYPE_UUID:
		return from == CQL_TYPE_TIMEUUID;
	case CQL_TYPE_BIGINT:
	case CQL_TYPE_COUNTER:
		return from == CQL_TYPE_BIGINT || from == CQL_TYPE_COUNTER;
	case CQL_TYPE_TIMESTAMP:
		return from == CQL_TYPE_BIGINT;
	default:
		return false;
	}
}

bool
cql_type_takes(const struct cql_type *to, const struct cql_type *from, bool loosely)
{
	if (from->kind == CQL_TYPE_EMPTY || same(to, from, false))
		return true;
	if (loosely && to->kind == CQL_TYPE_BLOB)
		return true;
	if (to->kind < CQL_NATIVE_COUNT)
		return takes_native(to->kind, from->kind);
	if (to->kind != from->kind || to->kind == CQL_TYPE_UDT || to->count != from->count)
		return false;
	for (size_t i = 0; i < to->count; i++)
		if (!cql_type_takes(to->args[i], from->args[i], loosely))
			return false;
	return to->count > 0;
}

/* The order of the values stays: text is compared as ascii, and blobs as either. */
bool
cql_type_compatible(const struct cql_type *to, const struct cql_type *from)
{
	if (same(to, from, true))
		return true;
	if (to->kind == CQL_TYPE_BLOB)
		return from->kind == CQL_TYPE_TEXT || from->kind == CQL_TYPE_ASCII;
	if (to->kind < CQL_NATIVE_COUNT)
		return to->kind == CQL_TYPE_TEXT && from->kind == CQL_TYPE_ASCII;
	if (to->kind != from->kind || to->frozen != from->frozen || to->count < from->count ||
	    (to->kind != CQL_TYPE_TUPLE && to->kind != CQL_TYPE_UDT && to->count != from->count))
		return false;
	for (size_t i = 0; i < from->count; i++)
		if (!cql_type_compatible(to->args[i], from->args[i]))
			return false;
	return true;
}

/* ---- Checks ---- */

static enum status
check_element(struct cql *q, const struct cql_type *outer, const struct cql_type *inner)
{
	if (inner->kind == CQL_TYPE_COUNTER)
		return cql_fail(q, CQL_E_COUNTER_INSIDE, STR("collections"),
				cql_type_text(q, outer));
	if (cql_type_is_multicell(inner))
		return cql_fail(q,
				inner->kind == CQL_TYPE_UDT ? CQL_E_UNFROZEN_UDT : CQL_E_UNFROZEN,
				cql_type_text(q, outer));
	return STATUS_OK;
}

static enum status
check_inner(struct cql *q, const struct cql_type *type)
{
	if (type->kind == CQL_TYPE_CUSTOM)
		return cql_fail(q, CQL_E_CUSTOM_TYPE, type->name);
	if (type->kind == CQL_TYPE_SET && cql_type_has(type->args[0], CQL_TYPE_DURATION))
		return cql_fail(q, CQL_E_DURATION_INSIDE, STR("inside sets"),
				cql_type_text(q, type));
	if (type->kind == CQL_TYPE_MAP && cql_type_has(type->args[0], CQL_TYPE_DURATION))
		return cql_fail(q, CQL_E_DURATION_INSIDE, STR("as map keys"),
				cql_type_text(q, type));
	for (size_t i = 0; i < type->count; i++) {
		const struct cql_type *inner = type->args[i];

		if (type->kind != CQL_TYPE_UDT)
			TRY(check_element(q, type, inner));
		else if (!type->frozen && cql_type_is_multicell(inner))
			return cql_fail(q, CQL_E_UNFROZEN_IN_UDT, cql_type_text(q, type));
		TRY(check_inner(q, inner));
	}
	return STATUS_OK;
}

/* User types that have each other twice or more make a tree that is far larger than their texts. */
static bool
fits(const struct cql_type *type, unsigned depth, size_t *parts)
{
	if (!depth || !*parts)
		return false;
	--*parts;
	for (size_t i = 0; i < type->count; i++)
		if (!fits(type->args[i], depth - 1, parts))
			return false;
	return true;
}

enum status
cql_type_check_size(struct cql *q, const struct cql_type *type)
{
	size_t parts = CQL_TYPE_PARTS;

	if (fits(type, CQL_DEPTH, &parts))
		return STATUS_OK;
	return cql_fail(q, CQL_E_TYPE_LARGE, STR("10000"), STR("64"));
}

enum status
cql_type_check(struct cql *q, const struct cql_type *type)
{
	TRY(cql_type_check_size(q, type));
	return check_inner(q, type);
}
