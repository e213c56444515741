/* Documents as values: their members, documents and arrays of pairs, sizes. */
#include "mql/expr/expr_int.h"

/* ---- $objectToArray, $arrayToObject ---- */

static enum status
run_to_array(struct mql *q, const struct bson_value *args, size_t count, struct bson_value *ret)
{
	static const struct str names[] = { { "k", 1 }, { "v", 1 } };
	struct bson_value *pairs;
	struct bson_iter i;
	struct bson_element e;
	size_t n = 0;

	if (mql_gives_null(&args[0], ret))
		return STATUS_OK;
	if (args[0].type != BSON_DOCUMENT)
		return mql_fail(q, 40390, "$objectToArray requires a document input, found: %s",
				mql_expr_type(&args[0]));
	count = bson_count(bson_text(&args[0]));
	pairs = arena_alloc(q->arena, count * sizeof(*pairs));
	if (!pairs)
		return mql_full(q);
	for (bson_iter_begin(&i, bson_text(&args[0])); n < count && bson_iter_read(&i, &e); n++) {
		const struct bson_value pair[] = { BSON_OF_STRING(e.name), e.value };

		TRY(mql_expr_document(q, names, pair, 2, &pairs[n]));
	}
	return mql_expr_array(q, pairs, n, ret);
}

/* {k: name, v: value} */
static enum status
read_object_pair(struct mql *q, const struct bson_value *v, struct bson_value ret[2])
{
	size_t count = bson_count(bson_text(v));

	if (count != 2)
		return mql_fail(q, 40392,
				"$arrayToObject requires an object keys of 'k' and 'v'. Found "
				"incorrect number of keys:%zu",
				count);
	if (!bson_find(bson_text(v), STR("k"), &ret[0]) ||
	    !bson_find(bson_text(v), STR("v"), &ret[1]))
		return mql_fail(q, 40393,
				"$arrayToObject requires an object with keys 'k' and 'v'. Missing "
				"either or both keys from: %s",
				mql_text(q, STR(""), v));
	if (ret[0].type != BSON_STRING)
		return mql_fail(q, 40394,
				"$arrayToObject requires an object with keys 'k' and 'v', where "
				"the value of 'k' must be of type string. Found type: %s",
				mql_expr_type(&ret[0]));
	if (bson_text(&ret[0]).len && memchr(bson_text(&ret[0]).ptr, 0, bson_text(&ret[0]).len))
		return mql_fail(q, 4940401, "Key field cannot contain an embedded null byte");
	return STATUS_OK;
}

/* [name, value] */
static enum status
read_array_pair(struct mql *q, const struct bson_value *v, struct bson_value ret[2])
{
	size_t count = bson_count(bson_text(v));

	if (count != 2 || !bson_find(bson_text(v), STR("0"), &ret[0]) ||
	    !bson_find(bson_text(v), STR("1"), &ret[1]))
		return mql_fail(q, 40397,
				"$arrayToObject requires an array of size 2 arrays,found array of "
				"size: %zu",
				count);
	if (ret[0].type != BSON_STRING)
		return mql_fail(q, 40395,
				"$arrayToObject requires an array of key-value pairs, where the "
				"key must be of type string. Found key type: %s",
				mql_expr_type(&ret[0]));
	if (bson_text(&ret[0]).len && memchr(bson_text(&ret[0]).ptr, 0, bson_text(&ret[0]).len))
		return mql_fail(q, 4940400, "Key field cannot contain an embedded null byte");
	return STATUS_OK;
}

static enum status
read_pair(struct mql *q, enum bson_type first, const struct bson_value *v, struct bson_value ret[2])
{
	bool objects = first == BSON_DOCUMENT;

	if (!objects && first != BSON_ARRAY)
		return mql_fail(q, 40398, "Unrecognised input type format for $arrayToObject: %s",
				mql_expr_type(v));
	if (v->type != first)
		return mql_fail(q, objects ? 40391 : 40396,
				"$arrayToObject requires a consistent input format. Elements must "
				"all be arrays or all be objects. %s was detected, now found: %s",
				objects ? "Object" : "Array", mql_expr_type(v));
	return objects ? read_object_pair(q, v, ret) : read_array_pair(q, v, ret);
}

static enum status
run_to_object(struct mql *q, const struct bson_value *args, size_t count, struct bson_value *ret)
{
	struct mql_members members = { 0 };
	enum bson_type first = (enum bson_type)MQL_MISSING;
	struct bson_value pair[2];
	struct bson_iter i;
	struct bson_element e;

	(void)count;
	if (mql_gives_null(&args[0], ret))
		return STATUS_OK;
	if (args[0].type != BSON_ARRAY)
		return mql_fail(q, 40386, "$arrayToObject requires an array input, found: %s",
				mql_expr_type(&args[0]));
	for (bson_iter_begin(&i, bson_text(&args[0])); bson_iter_read(&i, &e);) {
		if (!members.count)
			first = e.value.type;
		TRY(step_count_bytes(e.bytes.len));
		TRY(read_pair(q, first, &e.value, pair));
		TRY(mql_members_set(q, &members, bson_text(&pair[0]), &pair[1]));
	}
	return mql_members_end(q, &members, ret);
}

/* ---- $mergeObjects ---- */

enum {
	/* A shorter document has so few members that a table costs more than it saves. */
	MERGE_FEW_BYTES = 256,
};

static enum status
merge_few(struct mql *q, struct str document, struct str few, struct bson_value *ret)
{
	struct buf AUTO(buf_release) out = mql_buf(q, BSON_MOST_BYTES);
	struct bson_builder b;
	struct bson_element e;
	struct bson_value v;
	struct bson_iter i;

	bson_builder_init(&b, &out);
	bson_begin(&b);
	for (bson_iter_begin(&i, document); bson_iter_read(&i, &e);) {
		TRY(step_count(1));
		bson_put(&b, e.name, bson_find(few, e.name, &v) ? &v : &e.value);
	}
	for (bson_iter_begin(&i, few); bson_iter_read(&i, &e);) {
		TRY(step_count_bytes(document.len));
		if (!bson_find(document, e.name, NULL))
			bson_put_element(&b, &e);
	}
	bson_end(&b);
	*ret = BSON_OF_DOCUMENT(BSON_EMPTY);
	return mql_keep(q, &out, &ret->as_text);
}

enum status
mql_expr_merge(struct mql *q, struct str document, struct str more, struct bson_value *ret)
{
	struct mql_members members = { 0 };

	if (more.len <= MERGE_FEW_BYTES)
		return merge_few(q, document, more, ret);
	TRY(mql_members_set_all(q, &members, document));
	TRY(mql_members_set_all(q, &members, more));
	return mql_members_end(q, &members, ret);
}

static enum status
merge(struct mql *q, struct mql_members *members, const struct bson_value *v)
{
	if (mql_is_nullish(v))
		return STATUS_OK;
	if (v->type != BSON_DOCUMENT)
		return mql_fail(q, 40400,
				"$mergeObjects requires object inputs, but input %s is of type %s",
				mql_text(q, STR(""), v), mql_expr_type(v));
	return mql_members_set_all(q, members, bson_text(v));
}

static enum status
run_merge(struct mql *q, const struct bson_value *args, size_t count, struct bson_value *ret)
{
	struct mql_members members = { 0 };
	struct bson_iter i;
	struct bson_element e;

	if (count == 1 && args[0].type == BSON_ARRAY) {
		for (bson_iter_begin(&i, bson_text(&args[0])); bson_iter_read(&i, &e);)
			TRY(merge(q, &members, &e.value));
		return mql_members_end(q, &members, ret);
	}
	for (size_t n = 0; n < count; n++)
		TRY(merge(q, &members, &args[n]));
	return mql_members_end(q, &members, ret);
}

/* ---- $getField ---- */

static enum status
run_get(const struct mql_expr *e, struct mql *q, const struct mql_env *env, struct bson_value *ret)
{
	struct bson_value args[2];

	TRY(mql_expr_run_args(e, q, env, args));
	if (args[0].type != BSON_STRING)
		return mql_fail(q, 3041704,
				"$getField requires 'field' to evaluate to type String, but got %s",
				mql_expr_type(&args[0]));
	*ret = MQL_NO_VALUE;
	if (args[1].type == BSON_NULL || args[1].type == BSON_UNDEFINED) {
		*ret = BSON_OF_NULL;
	} else if (args[1].type == BSON_DOCUMENT) {
		TRY(step_count_bytes(bson_text(&args[1]).len));
		if (!bson_find(bson_text(&args[1]), bson_text(&args[0]), ret))
			*ret = MQL_NO_VALUE;
	}
	return STATUS_OK;
}

static enum status
fault_get(struct mql *q, const struct mql_expr_op *op, enum mql_expr_fault fault, struct str name,
	  const struct bson_value *arg)
{
	(void)arg;
	if (fault == MQL_FAULT_UNKNOWN)
		return mql_fail(q, 3041701, "%s found an unknown argument: %.*s", op->name,
				STR_ARG(name));
	return mql_fail(q, mql_is(name, "field") ? 3041702 : 3041703,
			"%s requires '%.*s' to be specified", op->name, STR_ARG(name));
}

/* The name alone, or an expression for it, is a field of the document itself. */
static enum status
compile_get(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
	    const struct mql_scope *scope, struct mql_expr **ret)
{
	const struct bson_value current = BSON_OF_STRING(STR("$$CURRENT"));
	struct bson_value parts[2] = { *arg, current };
	struct bson_iter i;
	struct bson_element e;
	bool named = false;

	if (arg->type == BSON_DOCUMENT) {
		bson_iter_begin(&i, bson_text(arg));
		named = !bson_iter_read(&i, &e) || !str_starts_with(e.name, STR("$"));
	}
	if (named)
		TRY(mql_expr_named(q, op, arg, parts));
	TRY(mql_expr_new(q, op, run_get, 2, ret));
	TRY(mql_expr_compile(q, &parts[0], scope, &(*ret)->args[0]));
	TRY(mql_expr_compile(q, &parts[1], scope, &(*ret)->args[1]));
	return mql_expr_fold(q, *ret);
}

/* ---- $setField, $unsetField ---- */

static enum status
run_set(const struct mql_expr *e, struct mql *q, const struct mql_env *env, struct bson_value *ret)
{
	struct mql_members members = { 0 };
	struct bson_value args[2];

	TRY(mql_expr_run_args(e, q, env, args));
	if (mql_gives_null(&args[0], ret))
		return STATUS_OK;
	if (args[0].type != BSON_DOCUMENT)
		return mql_fail(q, 4161105, "%s requires 'input' to evaluate to type Object",
				e->op->name);
	TRY(mql_members_set_all(q, &members, bson_text(&args[0])));
	TRY(mql_members_set(q, &members, bson_text(&e->value), &args[1]));
	return mql_members_end(q, &members, ret);
}

static enum status
fault_set(struct mql *q, const struct mql_expr_op *op, enum mql_expr_fault fault, struct str name,
	  const struct bson_value *arg)
{
	(void)arg;
	if (fault == MQL_FAULT_NOT_OBJECT)
		return mql_fail(q, 4161100, "%s only supports an object as its argument", op->name);
	if (fault == MQL_FAULT_UNKNOWN)
		return mql_fail(q, 4161101, "%s found an unknown argument: %.*s", op->name,
				STR_ARG(name));
	return mql_fail(q,
			mql_is(name, "field")   ? 4161102
			: mql_is(name, "value") ? 4161103
						: 4161109,
			"%s requires '%.*s' to be specified", op->name, STR_ARG(name));
}

/* MongoDB takes only what is a constant as it stands: no computation of constants. */
static bool
is_constant_text(const struct bson_value *v)
{
	struct bson_iter i;
	struct bson_element e;

	if (v->type == BSON_ARRAY)
		return false;
	if (v->type != BSON_DOCUMENT || bson_is_empty(bson_text(v)))
		return true;
	bson_iter_begin(&i, bson_text(v));
	return bson_iter_read(&i, &e) && (mql_is(e.name, "$literal") || mql_is(e.name, "$const"));
}

static enum status
compile_set_name(struct mql *q, const struct mql_expr_op *op, const struct bson_value *v,
		 const struct mql_scope *scope, struct bson_value *ret)
{
	struct mql_expr *name;

	if (v->type == BSON_STRING && str_starts_with(bson_text(v), STR("$")))
		return mql_fail(q, 4161108,
				"'%.*s' is a field path reference which is not allowed in this "
				"context. Did you mean {$literal: '%.*s'}?",
				STR_ARG(bson_text(v)), STR_ARG(bson_text(v)));
	TRY(mql_expr_compile(q, v, scope, &name));
	if (!is_constant_text(v) || !mql_expr_constant(name, ret))
		return mql_fail(q, 4161106,
				"%s requires 'field' to evaluate to a constant, but got a "
				"non-constant argument",
				op->name);
	if (ret->type != BSON_STRING)
		return mql_fail(q, 4161107,
				"%s requires 'field' to evaluate to type String, but got %s",
				op->name, mql_expr_type(ret));
	if (bson_text(ret).len && memchr(bson_text(ret).ptr, 0, bson_text(ret).len))
		return mql_fail(q, 9534700, "%s: 'field' must not contain null characters",
				op->name);
	return STATUS_OK;
}

/* $unsetField has no value: the member is left out. */
static enum status
compile_set(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
	    const struct mql_scope *scope, struct mql_expr **ret)
{
	bool sets = op->required == 7;
	struct bson_value parts[3] = { 0 }, name;

	TRY(mql_expr_named(q, op, arg, parts));
	TRY(compile_set_name(q, op, &parts[0], scope, &name));
	TRY(mql_expr_new(q, op, run_set, 2, ret));
	(*ret)->value = name;
	TRY(mql_expr_compile(q, &parts[sets ? 2 : 1], scope, &(*ret)->args[0]));
	if (sets)
		TRY(mql_expr_compile(q, &parts[1], scope, &(*ret)->args[1]));
	return mql_expr_fold(q, *ret);
}

/* ---- $bsonSize, and what is refused ---- */

static enum status
run_bson_size(struct mql *q, const struct bson_value *args, size_t count, struct bson_value *ret)
{
	(void)count;
	if (mql_gives_null(&args[0], ret))
		return STATUS_OK;
	if (args[0].type != BSON_DOCUMENT)
		return mql_fail(q, 31393, "$bsonSize requires a document input, found: %s",
				mql_expr_type(&args[0]));
	*ret = BSON_OF_INT32((int64_t)bson_text(&args[0]).len);
	return STATUS_OK;
}

static enum status
compile_meta(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
	     const struct mql_scope *scope, struct mql_expr **ret)
{
	static const char *const known[] = {
		"textScore",
		"randVal",
		"searchScore",
		"searchHighlights",
		"geoNearDistance",
		"geoNearPoint",
		"recordId",
		"indexKey",
		"sortKey",
		"searchScoreDetails",
		"searchSequenceToken",
		"timeseriesBucketMinTime",
		"timeseriesBucketMaxTime",
		"vectorSearchScore",
		"score",
		"scoreDetails",
		"stream",
	};

	(void)scope;
	(void)ret;
	if (arg->type != BSON_STRING)
		return mql_fail(q, 17307, "$meta only supports string arguments");
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (mql_is(bson_text(arg), known[i]))
			return mql_refuse(q, str_from_cstr(op->name));
	}
	return mql_fail(q, 17308, "Unsupported argument to $meta: %.*s", STR_ARG(bson_text(arg)));
}

static const char *const get_names[] = { "field", "input", NULL };
static const char *const set_names[] = { "field", "value", "input", NULL };
static const char *const unset_names[] = { "field", "input", NULL };

const struct mql_expr_op mql_expr_object_ops[] = {
	{ .name = "$arrayToObject", .least = 1, .most = 1, .run = run_to_object },
	{ .name = "$bsonSize", .least = 1, .most = 1, .run = run_bson_size },
	{ .name = "$getField",
	  .names = get_names,
	  .required = 3,
	  .fault = fault_get,
	  .compile = compile_get },
	{ .name = "$mergeObjects", .most = -1, .run = run_merge },
	{ .name = "$meta", .compile = compile_meta },
	{ .name = "$objectToArray", .least = 1, .most = 1, .run = run_to_array },
	{ .name = "$setField",
	  .names = set_names,
	  .required = 7,
	  .fault = fault_set,
	  .compile = compile_set },
	{ .name = "$unsetField",
	  .names = unset_names,
	  .required = 3,
	  .fault = fault_set,
	  .compile = compile_set },
	{ 0 },
};
