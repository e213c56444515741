/* Stages that are written as others: $count, $sortByCount, $bucket, $fill. */
#include <stdio.h>

#include "mql/expr/expr.h"
#include "mql/field_path.h"
#include "mql/stage/stages_int.h"

/* A stage whose specification was built. */
static enum status
add_built(struct mql_stages *c, const char *stage, struct buf *built)
{
	struct bson_value v = BSON_OF_DOCUMENT(BSON_EMPTY);

	TRY(mql_keep(c->q, built, &v.as_text));
	return mql_stage_compile(c, str_from_cstr(stage), &v);
}

/* {$group: {_id: id, name: {$sum: 1}}} */
static enum status
add_counting_group(struct mql_stages *c, const struct bson_value *id, struct str name)
{
	struct buf group = mql_buf(c->q, BSON_MOST_BYTES);
	struct bson_builder b;

	bson_builder_init(&b, &group);
	bson_begin(&b);
	bson_put(&b, STR("_id"), id);
	bson_begin_document(&b, name);
	bson_put_int32(&b, STR("$sum"), 1);
	bson_end(&b);
	bson_end(&b);
	return add_built(c, "$group", &group);
}

/* A stage whose specification is one number: {name: number}. */
static enum status
add_one_number(struct mql_stages *c, const char *stage, struct str name, int32_t number)
{
	struct buf out = mql_buf(c->q, BSON_MOST_BYTES);
	struct bson_builder b;

	bson_builder_init(&b, &out);
	bson_begin(&b);
	bson_put_int32(&b, name, number);
	bson_end(&b);
	return add_built(c, stage, &out);
}

/* ---- Documents in the order of an expression ---- */

static void
put_sort(struct bson_builder *b, struct str sort)
{
	struct bson_element e;
	struct bson_iter i;

	bson_begin(b);
	bson_put_int32(b, STR("k"), 1);
	for (bson_iter_begin(&i, sort); bson_iter_read(&i, &e);) {
		char name[MQL_SORT_NAME_BYTES + 2] = "d.";

		memcpy(name + 2, e.name.ptr, e.name.len);
		bson_put(b, str_of(name, e.name.len + 2), &e.value);
	}
	bson_end(b);
}

enum status
mql_stage_ordered(struct mql_stages *c, const struct bson_value *by, struct str sort)
{
	struct buf wrap = mql_buf(c->q, BSON_MOST_BYTES), order = mql_buf(c->q, BSON_MOST_BYTES);
	struct bson_element e;
	struct bson_builder b;
	struct bson_iter i;

	for (bson_iter_begin(&i, sort); bson_iter_read(&i, &e);)
		if (e.name.len > MQL_SORT_NAME_BYTES)
			return mql_fail(c->q, MQL_BAD_VALUE,
					"A path of a sort has more than %d bytes "
					"(MQL_SORT_NAME_BYTES)",
					MQL_SORT_NAME_BYTES);
	bson_builder_init(&b, &wrap);
	bson_begin(&b);
	bson_begin_document(&b, STR("k"));
	bson_begin_document(&b, STR("v"));
	bson_begin_array(&b, STR("$ifNull"));
	if (by)
		bson_put(&b, STR(""), by);
	bson_put_null(&b, STR(""));
	if (!by)
		bson_put_null(&b, STR(""));
	bson_end(&b);
	bson_end(&b);
	bson_end(&b);
	bson_put_string(&b, STR("d"), STR("$$ROOT"));
	bson_end(&b);
	TRY(add_built(c, "$replaceWith", &wrap));
	bson_builder_init(&b, &order);
	put_sort(&b, sort);
	return add_built(c, "$sort", &order);
}

void
mql_ordered_parts(struct str ordered, struct str *ret_key, struct str *ret_doc)
{
	struct bson_element e;
	struct bson_iter i;

	*ret_key = *ret_doc = BSON_EMPTY;
	for (bson_iter_begin(&i, ordered); bson_iter_read(&i, &e);)
		*(mql_is(e.name, "k") ? ret_key : ret_doc) = bson_text(&e.value);
}

/* ---- $count ---- */

static enum status
count_check(struct mql *q, const struct bson_value *v)
{
	if (v->type != BSON_STRING)
		return mql_fail(q, 40156, "the count field must be a non-empty string");
	if (!bson_text(v).len)
		return mql_fail(q, 40157, "the count field must be a non-empty string");
	if (bson_text(v).ptr[0] == '$')
		return mql_fail(q, 40158, "the count field cannot be a $-prefixed path");
	if (memchr(bson_text(v).ptr, '\0', bson_text(v).len))
		return mql_fail(q, 40159, "the count field cannot contain a null byte");
	if (memchr(bson_text(v).ptr, '.', bson_text(v).len))
		return mql_fail(q, 40160, "the count field cannot contain '.'");
	if (mql_is(bson_text(v), "_id"))
		return mql_fail(q, 9039800, "the count field cannot be '_id'");
	return STATUS_OK;
}

MQL_STAGE_COMPILE(count)
{
	(void)stage;
	TRY(count_check(c->q, v));
	TRY(add_counting_group(c, &BSON_OF_NULL, bson_text(v)));
	return add_one_number(c, "$project", STR("_id"), 0);
}

/* ---- $sortByCount ---- */

static enum status
sort_by_count_check(struct mql *q, const struct bson_value *v)
{
	struct bson_element e;
	struct bson_iter i;

	if (v->type == BSON_STRING) {
		if (!bson_text(v).len || bson_text(v).ptr[0] != '$')
			return mql_fail(q, 40148,
					"the sortByCount field must be defined as a $-prefixed "
					"path or an expression inside an object");
		return STATUS_OK;
	}
	if (v->type != BSON_DOCUMENT)
		return mql_fail(q, 40149,
				"the sortByCount field must be specified as a string or as an "
				"object");
	bson_iter_begin(&i, bson_text(v));
	if (!bson_iter_read(&i, &e) || !e.name.len || e.name.ptr[0] != '$')
		return mql_fail(q, 40147,
				"the sortByCount field must be defined as a $-prefixed path or an "
				"expression inside an object");
	return STATUS_OK;
}

MQL_STAGE_COMPILE(sort_by_count)
{
	(void)stage;
	TRY(sort_by_count_check(c->q, v));
	TRY(add_counting_group(c, v, STR("count")));
	return add_one_number(c, "$sort", STR("count"), -1);
}

/* ---- $bucket ---- */

struct bucket {
	struct bson_value by;
	struct bson_value boundaries;
	struct bson_value otherwise; /* `default` */
	struct bson_value output;
	bool has_by, has_boundaries, has_otherwise, has_output;
};

static enum status
bucket_option(struct mql *q, struct bucket *b, const struct bson_element *e)
{
	if (mql_is(e->name, "groupBy")) {
		if (e->value.type != BSON_DOCUMENT &&
		    (e->value.type != BSON_STRING || !bson_text(&e->value).len ||
		     bson_text(&e->value).ptr[0] != '$'))
			return mql_fail(
				q, 40202,
				"The $bucket 'groupBy' field must be defined as a $-prefixed "
				"path or an expression, but found: %s.",
				mql_text(q, STR(""), &e->value));
		b->by = e->value;
		b->has_by = true;
	} else if (mql_is(e->name, "boundaries")) {
		if (e->value.type != BSON_ARRAY)
			return mql_fail(q, 40200,
					"The $bucket 'boundaries' field must be an array, but "
					"found type: %s.",
					bson_type_name(e->value.type));
		b->boundaries = e->value;
		b->has_boundaries = true;
	} else if (mql_is(e->name, "default")) {
		b->otherwise = e->value;
		b->has_otherwise = true;
	} else if (mql_is(e->name, "output")) {
		if (e->value.type != BSON_DOCUMENT)
			return mql_fail(q, 40196,
					"The $bucket 'output' field must be an object, but found "
					"type: %s.",
					bson_type_name(e->value.type));
		b->output = e->value;
		b->has_output = true;
	} else {
		return mql_fail(q, 40197, "Unrecognized option to $bucket: %.*s.",
				STR_ARG(e->name));
	}
	return STATUS_OK;
}

/* Boundaries are constants of one kind, in order. */
static enum status
bucket_boundaries(struct mql_stages *c, struct bucket *b, struct bson_value *values, size_t *ret)
{
	struct mql *q = c->q;
	struct bson_element e;
	struct mql_expr *expr;
	struct bson_iter i;
	size_t count = 0;

	for (bson_iter_begin(&i, bson_text(&b->boundaries)); bson_iter_read(&i, &e); count++) {
		TRY(mql_expr_compile(q, &e.value, c->scope, &expr));
		if (!mql_expr_constant(expr, &values[count]))
			return mql_fail(q, 40191,
					"The $bucket 'boundaries' field must be an array of "
					"constant values, but found value: %s.",
					mql_text(q, STR(""), &e.value));
		if (!count)
			continue;
		if (bson_type_rank(values[count].type) != bson_type_rank(values[0].type))
			return mql_fail(q, 40193,
					"All values in the 'boundaries' option to $bucket must "
					"have the same type. Found conflicting types %s and %s.",
					bson_type_name(values[count - 1].type),
					bson_type_name(values[count].type));
		if (bson_compare_values(&values[count - 1], &values[count], q->texts) >= 0)
			return mql_fail(q, 40194,
					"The 'boundaries' option to $bucket must be sorted, but "
					"elements %zu and %zu are not in ascending order (%s is "
					"not less than %s).",
					count - 1, count, mql_text(q, STR(""), &values[count - 1]),
					mql_text(q, STR(""), &values[count]));
	}
	if (count < 2)
		return mql_fail(q, 40192,
				"The $bucket 'boundaries' field must have at least 2 values, but "
				"found %zu value(s).",
				count);
	*ret = count;
	return STATUS_OK;
}

static enum status
bucket_default(struct mql_stages *c, struct bucket *b, const struct bson_value *values,
	       size_t count)
{
	struct mql *q = c->q;
	struct mql_expr *expr;
	struct bson_value v;

	if (!b->has_otherwise)
		return STATUS_OK;
	TRY(mql_expr_compile(q, &b->otherwise, c->scope, &expr));
	if (!mql_expr_constant(expr, &v))
		return mql_fail(q, 40195,
				"The $bucket 'default' field must be specified as a constant "
				"expression, but found: %s.",
				mql_text(q, STR(""), &b->otherwise));
	if (bson_compare_values(&values[0], &v, q->texts) <= 0 &&
	    bson_compare_values(&values[count - 1], &v, q->texts) > 0)
		return mql_fail(q, 40199,
				"The $bucket 'default' field must be less than the lowest "
				"boundary or greater than or equal to the highest boundary.");
	b->otherwise = v;
	return STATUS_OK;
}

static void
put_literal(struct bson_builder *b, struct str name, const struct bson_value *v)
{
	bson_begin_document(b, name);
	bson_put(b, STR("$literal"), v);
	bson_end(b);
}

/* {$gte: [by, value]}, or $lt. */
static void
put_compare(struct bson_builder *b, struct str op, const struct bson_value *by,
	    const struct bson_value *v)
{
	bson_begin_document(b, STR(""));
	bson_begin_array(b, op);
	bson_put(b, STR(""), by);
	put_literal(b, STR(""), v);
	bson_end(b);
	bson_end(b);
}

/* $switch: {branches: [{case: between two boundaries, then: the lower one}], default} */
static void
put_switch(struct bson_builder *b, const struct bucket *bucket, const struct bson_value *by,
	   const struct bson_value *values, size_t count)
{
	bson_begin_document(b, STR("$switch"));
	bson_begin_array(b, STR("branches"));
	for (size_t i = 0; i + 1 < count; i++) {
		bson_begin_document(b, STR(""));
		bson_begin_document(b, STR("case"));
		bson_begin_array(b, STR("$and"));
		put_compare(b, STR("$gte"), by, &values[i]);
		put_compare(b, STR("$lt"), by, &values[i + 1]);
		bson_end(b);
		bson_end(b);
		put_literal(b, STR("then"), &values[i]);
		bson_end(b);
	}
	bson_end(b);
	if (bucket->has_otherwise)
		put_literal(b, STR("default"), &bucket->otherwise);
	bson_end(b);
}

/*
 * _id: the $switch, of the value of `groupBy`. An expression is evaluated once a document, whatever
 * the boundaries: _id: {$let: {vars: {by: groupBy}, in: the $switch of "$$by"}}.
 */
static void
put_bucket_id(struct bson_builder *b, const struct bucket *bucket, const struct bson_value *values,
	      size_t count)
{
	const struct bson_value by = BSON_OF_STRING(STR("$$by"));

	bson_begin_document(b, STR("_id"));
	if (bucket->by.type != BSON_DOCUMENT) {
		put_switch(b, bucket, &bucket->by, values, count);
		bson_end(b);
		return;
	}
	bson_begin_document(b, STR("$let"));
	bson_begin_document(b, STR("vars"));
	bson_put(b, STR("by"), &bucket->by);
	bson_end(b);
	bson_begin_document(b, STR("in"));
	put_switch(b, bucket, &by, values, count);
	bson_end(b);
	bson_end(b);
	bson_end(b);
}

MQL_STAGE_COMPILE(bucket)
{
	struct buf group = mql_buf(c->q, 4 * BSON_MOST_BYTES);
	struct bucket bucket = { .has_by = false };
	struct bson_value *values;
	struct bson_element e;
	struct bson_builder b;
	struct bson_iter i;
	size_t count;

	(void)stage;
	if (v->type != BSON_DOCUMENT)
		return mql_fail(c->q, 40201,
				"Argument to $bucket stage must be an object, but found type: %s.",
				bson_type_name(v->type));
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);)
		TRY(bucket_option(c->q, &bucket, &e));
	if (!bucket.has_by || !bucket.has_boundaries)
		return mql_fail(c->q, 40198,
				"$bucket requires 'groupBy' and 'boundaries' to be specified.");
	values = mql_stage_alloc(c,
				 (bson_count(bson_text(&bucket.boundaries)) + 1) * sizeof(*values));
	if (!values)
		return mql_full(c->q);
	TRY(bucket_boundaries(c, &bucket, values, &count));
	TRY(bucket_default(c, &bucket, values, count));
	bson_builder_init(&b, &group);
	bson_begin(&b);
	put_bucket_id(&b, &bucket, values, count);
	if (bucket.has_output) {
		bson_put_elements(&b, bson_text(&bucket.output));
	} else {
		bson_begin_document(&b, STR("count"));
		bson_put_int32(&b, STR("$sum"), 1);
		bson_end(&b);
	}
	bson_end(&b);
	TRY(add_built(c, "$group", &group));
	return add_one_number(c, "$sort", STR("_id"), 1);
}

/* ---- $fill ---- */

/* {"0": "$a", "1": "$b.c"}: what documents of one partition have in common. */
enum status
mql_stage_paths(struct mql_stages *c, const struct str *paths, size_t count, struct bson_value *ret)
{
	struct buf out = mql_buf(c->q, BSON_MOST_BYTES);
	struct bson_builder b;
	char name[24];

	bson_builder_init(&b, &out);
	bson_begin(&b);
	for (size_t i = 0; i < count; i++) {
		struct str path = arena_printf(c->q->arena, "$%.*s", STR_ARG(paths[i]));

		snprintf(name, sizeof(name), "%zu", i);
		bson_put_string(&b, str_from_cstr(name), path.ptr ? path : STR("$"));
	}
	bson_end(&b);
	*ret = BSON_OF_DOCUMENT(BSON_EMPTY);
	return mql_keep(c->q, &out, &ret->as_text);
}

struct fill {
	struct bson_value partition, fields, sort, output;
};

static enum status
fill_read(struct mql *q, const struct bson_value *v, struct fill *f)
{
	struct bson_element e;
	struct bson_iter i;

	if (v->type != BSON_DOCUMENT)
		return mql_fail(q, MQL_FAILED_TO_PARSE,
				"The $fill stage specification must be an object, found %s",
				bson_type_name(v->type));
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);) {
		bool fields = mql_is(e.name, "partitionByFields");
		bool sort = mql_is(e.name, "sortBy"), output = mql_is(e.name, "output");

		if (!fields && !sort && !output && !mql_is(e.name, "partitionBy"))
			return mql_fail(q, 40415, "BSON field '$fill.%.*s' is an unknown field.",
					STR_ARG(e.name));
		if ((fields && e.value.type != BSON_ARRAY) ||
		    ((sort || output) && e.value.type != BSON_DOCUMENT) ||
		    (!fields && !sort && !output && e.value.type != BSON_DOCUMENT &&
		     e.value.type != BSON_STRING))
			return mql_fail(q, MQL_TYPE_MISMATCH,
					"BSON field '$fill.%.*s' is the wrong type '%s'",
					STR_ARG(e.name), bson_type_name(e.value.type));
		*(fields   ? &f->fields
		  : sort   ? &f->sort
		  : output ? &f->output
			   : &f->partition) = e.value;
	}
	if ((int)f->output.type == MQL_MISSING)
		return mql_fail(q, 40414,
				"BSON field '$fill.output' is missing but a required field");
	if ((int)f->partition.type != MQL_MISSING && (int)f->fields.type != MQL_MISSING)
		return mql_fail(q, 6050204,
				"Maximum one of 'partitionBy' and 'partitionByFields can be "
				"specified in '$fill'");
	return STATUS_OK;
}

/* Fields to partition by, as an expression. */
static enum status
fill_partition(struct mql_stages *c, struct fill *f)
{
	struct bson_element e;
	struct bson_iter i;
	struct str *paths;
	size_t count = 0;

	if ((int)f->fields.type == MQL_MISSING || bson_is_empty(bson_text(&f->fields)))
		return STATUS_OK;
	paths = mql_stage_alloc(c, bson_count(bson_text(&f->fields)) * sizeof(*paths));
	if (!paths)
		return mql_full(c->q);
	for (bson_iter_begin(&i, bson_text(&f->fields)); bson_iter_read(&i, &e);) {
		if (e.value.type != BSON_STRING)
			return mql_fail(c->q, MQL_TYPE_MISMATCH,
					"BSON field '$fill.partitionByFields.%.*s' is the wrong "
					"type '%s', expected type 'string'",
					STR_ARG(e.name), bson_type_name(e.value.type));
		if (bson_text(&e.value).len && bson_text(&e.value).ptr[0] == '$')
			return mql_fail(c->q, 6050203,
					"Each field in 'partitionByFields' cannot begin with '$'");
		TRY(mql_field_path_check(c->q, bson_text(&e.value)));
		paths[count++] = bson_text(&e.value);
	}
	return mql_stage_paths(c, paths, count, &f->partition);
}

/* A field's operator or value, into one of the two stages. */
static enum status
fill_field(struct mql_stages *c, const struct bson_element *e, struct bson_builder *windows,
	   struct bson_builder *values)
{
	struct str path = arena_printf(c->q->arena, "$%.*s", STR_ARG(e->name));
	struct bson_element how = { .name = STR("") };
	struct bson_iter i;

	if (!path.ptr)
		return mql_full(c->q);
	if (e->value.type != BSON_DOCUMENT)
		return mql_fail(c->q, MQL_TYPE_MISMATCH,
				"The output field '%.*s' of $fill must be an object",
				STR_ARG(e->name));
	TRY(mql_field_path_check(c->q, e->name));
	bson_iter_begin(&i, bson_text(&e->value));
	if (bson_count(bson_text(&e->value)) != 1 || !bson_iter_read(&i, &how) ||
	    !(mql_is(how.name, "value") || mql_is(how.name, "method")))
		return mql_fail(c->q, 6050200,
				"Each fill output specification must have exactly one of 'method' "
				"or 'value' fields");
	if (mql_is(how.name, "value")) {
		bson_begin_document(values, e->name);
		bson_begin_array(values, STR("$ifNull"));
		bson_put_string(values, STR(""), path);
		bson_put(values, STR(""), &how.value);
		bson_end(values);
		bson_end(values);
		return STATUS_OK;
	}
	if (how.value.type != BSON_STRING ||
	    !(mql_is(bson_text(&how.value), "linear") || mql_is(bson_text(&how.value), "locf")))
		return mql_fail(c->q, 6050202, "Method must be either locf or linear");
	bson_begin_document(windows, e->name);
	bson_put_string(windows,
			mql_is(bson_text(&how.value), "linear") ? STR("$linearFill") : STR("$locf"),
			path);
	bson_end(windows);
	return STATUS_OK;
}

static enum status
fill_build(struct mql_stages *c, const struct fill *f, struct buf *windows, struct buf *values)
{
	struct bson_builder w, set;
	struct bson_element e;
	struct bson_iter i;

	bson_builder_init(&w, windows);
	bson_builder_init(&set, values);
	bson_begin(&w);
	bson_begin(&set);
	if ((int)f->partition.type != MQL_MISSING)
		bson_put(&w, STR("partitionBy"), &f->partition);
	if ((int)f->sort.type != MQL_MISSING)
		bson_put(&w, STR("sortBy"), &f->sort);
	bson_begin_document(&w, STR("output"));
	for (bson_iter_begin(&i, bson_text(&f->output)); bson_iter_read(&i, &e);) {
		TRY(step_count(1));
		TRY(fill_field(c, &e, &w, &set));
	}
	bson_end(&w);
	bson_end(&w);
	bson_end(&set);
	TRY(buf_status(windows));
	return buf_status(values);
}

MQL_STAGE_COMPILE(fill)
{
	struct fill f = { MQL_NO_VALUE, MQL_NO_VALUE, MQL_NO_VALUE, MQL_NO_VALUE };
	struct buf windows = mql_buf(c->q, BSON_MOST_BYTES),
		   values = mql_buf(c->q, BSON_MOST_BYTES);
	struct bson_value output = MQL_NO_VALUE;
	enum status status;

	(void)stage;
	TRY(fill_read(c->q, v, &f));
	TRY(fill_partition(c, &f));
	status = fill_build(c, &f, &windows, &values);
	if (status == STATUS_OK && bson_find(buf_str(&windows), STR("output"), &output) &&
	    !bson_is_empty(bson_text(&output)))
		status = add_built(c, "$setWindowFields", &windows);
	if (status == STATUS_OK && !bson_is_empty(buf_str(&values)))
		status = add_built(c, "$set", &values);
	buf_release(&windows);
	buf_release(&values);
	return status;
}
