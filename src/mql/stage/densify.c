/*
 * $densify: documents come in the order of their partitions and of the field, and between two of
 * them documents are made with the values that are missing. For partitions that all reach from the
 * least value of all to the greatest one, the documents are put aside first, to know these two.
 */
#include <assert.h>
#include <stdio.h>

#include "mql/expr/date.h"
#include "mql/expr/expr_int.h"
#include "mql/field_path.h"
#include "mql/number.h"
#include "mql/stage/spool.h"

enum densify_bounds {
	DENSIFY_FULL,
	DENSIFY_PARTITION,
	DENSIFY_EXPLICIT,
};

struct densify_stage {
	struct str field;
	struct str *partition; /* paths */
	size_t partition_count;
	struct bson_value step;
	int unit; /* -1: numbers */
	enum densify_bounds bounds;
	struct bson_value lower, upper; /* of DENSIFY_EXPLICIT: without the upper one */
};

struct densify_state {
	bool begun, ended, inside;
	bool spools;
	struct mql_spool spool;
	struct mql_spool_reader reader;
	struct str next; /* ptr NULL: has to be read */
	struct buf key;  /* of the partition */
	bool has_grid;
	struct bson_value grid; /* the next value that is to be there */
	bool has_most;
	struct bson_value least, most; /* of all documents */
	int64_t made;
};

/* ---- Values ---- */

static enum status
value_of(const struct densify_stage *stage, struct mql *q, struct str doc, struct bson_value *ret)
{
	TRY(mql_path_value(q, &BSON_OF_DOCUMENT(doc), stage->field, ret));
	if (mql_is_nullish(ret))
		return STATUS_OK;
	if (stage->unit < 0 && !bson_is_number(ret))
		return mql_fail(q, 5733201,
				"PlanExecutor error during aggregation :: caused by :: Densify "
				"field type must be numeric, but found %s",
				bson_type_name(ret->type));
	if (stage->unit >= 0 && ret->type != BSON_DATE)
		return mql_fail(q, 6053600,
				"PlanExecutor error during aggregation :: caused by :: Densify "
				"field type must be a date with a unit, but found %s",
				bson_type_name(ret->type));
	return STATUS_OK;
}

static enum status
grid_advance(const struct densify_stage *stage, struct mql *q, struct densify_state *s)
{
	struct bson_value before = s->grid;
	int64_t n = 0, ms;

	if (stage->unit < 0) {
		if (!mql_add(&before, &stage->step, &s->grid))
			s->grid = BSON_OF_DOUBLE(bson_to_double(&before) +
						 bson_to_double(&stage->step));
	} else {
		bson_to_int64(&stage->step, &n);
		TRY(mql_date_add(q, bson_integer(&before), stage->unit, n, &ms));
		s->grid = BSON_OF_DATE(ms);
	}
	/* A step that is too small for a large double leads nowhere. */
	if (bson_compare_values(&before, &s->grid, NULL) >= 0)
		return mql_fail(q, MQL_BAD_VALUE,
				"$densify's step is too small for the values of its field");
	return STATUS_OK;
}

/* ---- Input ---- */

static enum status
read_input(struct mql_stage_run *r)
{
	struct densify_state *s = r->state;
	enum status status = s->spools ? mql_spool_next(&s->reader, r, &s->next)
				       : r->from->next(r->from, &s->next);

	s->ended = status == STATUS_NOT_FOUND;
	if (status != STATUS_OK)
		s->next = (struct str){ 0 };
	return s->ended ? STATUS_OK : status;
}

/* Puts all documents aside, and finds the least and the greatest value. */
static enum status
densify_read_all(struct mql_stage_run *r)
{
	const struct densify_stage *stage = r->stage->more;
	struct densify_state *s = r->state;
	struct str ordered, key, doc;
	enum status status;
	struct bson_value v;

	mql_spool_init(&s->spool, r);
	mql_spool_read(&s->reader, &s->spool, r, 0, 0);
	s->spools = true;
	while ((status = r->from->next(r->from, &ordered)) == STATUS_OK) {
		mql_ordered_parts(ordered, &key, &doc);
		TRY(value_of(stage, mql_stage_begin(r), doc, &v));
		if (!mql_is_nullish(&v)) {
			if (!s->has_most || bson_compare_values(&v, &s->least, NULL) < 0)
				s->least = v;
			if (!s->has_most || bson_compare_values(&v, &s->most, NULL) > 0)
				s->most = v;
			s->has_most = true;
		}
		TRY(mql_spool_put(&s->spool, r, ordered));
	}
	s->reader.end = mql_spool_end(&s->spool);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
densify_begin(struct mql_stage_run *r)
{
	const struct densify_stage *stage = r->stage->more;
	struct densify_state *s = r->state;

	s->key = BUF_INIT_OF(BSON_MOST_BYTES, r->run->options.part);
	s->begun = true;
	if (stage->bounds == DENSIFY_FULL && stage->partition_count)
		TRY(densify_read_all(r));
	/* Explicit bounds without partitions are filled even where there is no document. */
	if (stage->bounds == DENSIFY_EXPLICIT && !stage->partition_count) {
		s->inside = s->has_grid = true;
		s->grid = stage->lower;
		buf_append_str(&s->key, BSON_EMPTY);
	}
	return buf_status(&s->key);
}

/* ---- Output ---- */

/* {partition's fields, field: the grid's value} */
static enum status
densify_make(struct mql_stage_run *r, struct str *ret)
{
	const struct densify_stage *stage = r->stage->more;
	struct densify_state *s = r->state;
	struct mql *q = mql_stage_begin(r);
	struct bson_value values, v;
	struct str doc = BSON_EMPTY;
	char name[24];

	if (s->made == MQL_DENSIFY_DOCUMENTS)
		return mql_fail(q, 5897900,
				"Generated %lld documents in $densify, which is over the limit of "
				"%d (MQL_DENSIFY_DOCUMENTS).",
				(long long)s->made + 1, MQL_DENSIFY_DOCUMENTS);
	s->made++;
	if (!bson_find(buf_str(&s->key), STR("v"), &values) || values.type != BSON_DOCUMENT)
		values = BSON_OF_DOCUMENT(BSON_EMPTY);
	for (size_t i = 0; i < stage->partition_count; i++) {
		snprintf(name, sizeof(name), "%zu", i);
		if (bson_find(bson_text(&values), str_from_cstr(name), &v))
			TRY(mql_set_path(q, doc, stage->partition[i], &v, &doc));
	}
	TRY(mql_set_path(q, doc, stage->field, &s->grid, ret));
	return grid_advance(stage, q, s);
}

/* Whether something is to be made behind the last document of a partition. */
static bool
densify_has_tail(const struct densify_stage *stage, const struct densify_state *s)
{
	if (!s->inside || !s->has_grid)
		return false;
	if (stage->bounds == DENSIFY_EXPLICIT)
		return bson_compare_values(&s->grid, &stage->upper, NULL) < 0;
	return s->has_most && bson_compare_values(&s->grid, &s->most, NULL) <= 0;
}

static enum status
partition_begin(struct mql_stage_run *r, struct str key)
{
	const struct densify_stage *stage = r->stage->more;
	struct densify_state *s = r->state;

	if (stage->partition_count || !s->inside) {
		s->has_grid = stage->bounds == DENSIFY_EXPLICIT || s->has_most;
		s->grid = stage->bounds == DENSIFY_EXPLICIT ? stage->lower : s->least;
	}
	s->inside = true;
	buf_clear(&s->key);
	buf_append_str(&s->key, key);
	return buf_status(&s->key);
}

static bool
is_of_partition(const struct mql_stage_run *r, struct str key)
{
	const struct densify_stage *stage = r->stage->more;
	const struct densify_state *s = r->state;

	return s->inside && (!stage->partition_count ||
			     bson_compare_documents(key, buf_str(&s->key), r->run->q.texts) == 0);
}

/* Whether a document is to be made in front of the next one. */
static enum status
densify_is_due(struct mql_stage_run *r, struct str doc, bool *ret)
{
	const struct densify_stage *stage = r->stage->more;
	struct densify_state *s = r->state;
	struct mql *q = mql_stage_begin(r);
	struct bson_value v;
	int order;

	*ret = false;
	TRY(value_of(stage, q, doc, &v));
	if (mql_is_nullish(&v))
		return STATUS_OK;
	if (!s->has_grid)
		s->grid = v;
	s->has_grid = true;
	order = bson_compare_values(&s->grid, &v, NULL);
	if (order == 0)
		return grid_advance(stage, q, s);
	*ret = order < 0 && (stage->bounds != DENSIFY_EXPLICIT ||
			     bson_compare_values(&s->grid, &stage->upper, NULL) < 0);
	return STATUS_OK;
}

static enum status
densify_next(struct mql_stage_run *r, struct str *ret)
{
	const struct densify_stage *stage = r->stage->more;
	struct densify_state *s = r->state;
	struct str key, doc;
	bool due;

	TRY(step_count(1));
	if (!s->begun)
		TRY(densify_begin(r));
	if (!s->next.ptr && !s->ended)
		TRY(read_input(r));
	if (s->ended)
		return densify_has_tail(stage, s) ? densify_make(r, ret) : STATUS_NOT_FOUND;
	/* `next` stays until it is given out: documents are made in front of it. */
	assert(s->next.ptr);
	mql_ordered_parts(s->next, &key, &doc);
	if (!is_of_partition(r, key)) {
		if (densify_has_tail(stage, s))
			return densify_make(r, ret);
		TRY(partition_begin(r, key));
	}
	TRY(densify_is_due(r, doc, &due));
	if (due)
		return densify_make(r, ret);
	s->next = (struct str){ 0 };
	*ret = doc;
	return STATUS_OK;
}

static void
densify_fini(struct mql_stage_run *r)
{
	struct densify_state *s = r->state;

	if (s->spools) {
		mql_spool_reader_fini(&s->reader);
		mql_spool_fini(&s->spool);
	}
	buf_release(&s->key);
}

static const struct mql_stage_ops densify_ops = { .next = densify_next,
						  .fini = densify_fini,
						  .state_bytes = sizeof(struct densify_state) };

/* ---- Compiling ---- */

static enum status
densify_array(struct mql *q, struct densify_stage *s, const struct bson_value *v)
{
	if (bson_count(bson_text(v)) != 2 || !bson_find(bson_text(v), STR("0"), &s->lower) ||
	    !bson_find(bson_text(v), STR("1"), &s->upper))
		return mql_fail(q, 5733403,
				"a bounding array in a range statement must have exactly two "
				"elements");
	s->bounds = DENSIFY_EXPLICIT;
	if (bson_is_number(&s->lower) && bson_is_number(&s->upper)) {
		if (s->unit >= 0)
			return mql_fail(q, 5733409, "numeric bounds may not have unit parameter");
	} else if (s->lower.type == BSON_DATE && s->upper.type == BSON_DATE) {
		if (s->unit < 0)
			return mql_fail(q, 5733409, "date bounds must have a unit parameter");
	} else {
		return mql_fail(q, 5733402,
				"a bounding array must contain either both dates or both numeric "
				"types");
	}
	if (bson_compare_values(&s->lower, &s->upper, NULL) > 0)
		return mql_fail(q, 5733402,
				"a bounding array in a range statement must be ascending");
	return STATUS_OK;
}

static enum status
densify_bounds(struct mql *q, struct densify_stage *s, const struct bson_value *v)
{
	if (v->type == BSON_ARRAY)
		return densify_array(q, s, v);
	if (v->type == BSON_STRING && mql_is(bson_text(v), "full"))
		s->bounds = DENSIFY_FULL;
	else if (v->type == BSON_STRING && mql_is(bson_text(v), "partition"))
		s->bounds = DENSIFY_PARTITION;
	else if (v->type == BSON_STRING)
		return mql_fail(q, 5946802, "Bounds string must either be 'full' or 'partition'");
	else
		return mql_fail(q, 5733402,
				"The bounds in a range statement must be the string 'full', "
				"'partition', or an ascending array of two numbers or two dates");
	return STATUS_OK;
}

static enum status
densify_range(struct mql *q, struct densify_stage *s, const struct bson_value *range)
{
	struct bson_value bounds = MQL_NO_VALUE;
	struct bson_element e;
	struct bson_iter i;
	int64_t n;

	for (bson_iter_begin(&i, bson_text(range)); bson_iter_read(&i, &e);) {
		if (mql_is(e.name, "step"))
			s->step = e.value;
		else if (mql_is(e.name, "bounds"))
			bounds = e.value;
		else if (!mql_is(e.name, "unit"))
			return mql_fail(q, 40415,
					"BSON field '$densify.range.%.*s' is an unknown field.",
					STR_ARG(e.name));
		else if (e.value.type != BSON_STRING ||
			 !mql_date_unit(bson_text(&e.value), &s->unit))
			return mql_fail(q, MQL_FAILED_TO_PARSE, "unknown time unit value: %s",
					mql_text(q, STR(""), &e.value));
	}
	if (mql_is_missing(&s->step) || mql_is_missing(&bounds))
		return mql_fail(q, 40414,
				"BSON field '$densify.range.%s' is missing but a required field",
				mql_is_missing(&s->step) ? "step" : "bounds");
	if (!bson_is_number(&s->step) || !(bson_to_double(&s->step) > 0))
		return mql_fail(q, 5733401,
				"The step parameter in a range statement must be a strictly "
				"positive numeric value");
	if (s->unit >= 0 && !bson_to_int64(&s->step, &n))
		return mql_fail(q, 6586400,
				"The step parameter in a range satement must be a whole number "
				"when densifying a date range");
	return densify_bounds(q, s, &bounds);
}

static enum status
densify_partition(struct mql_stages *c, struct densify_stage *s, const struct bson_value *v)
{
	struct bson_element e;
	struct bson_iter i;

	if (v->type != BSON_ARRAY)
		return mql_fail(c->q, MQL_TYPE_MISMATCH,
				"BSON field '$densify.partitionByFields' is the wrong type '%s', "
				"expected type 'array'",
				bson_type_name(v->type));
	s->partition = mql_stage_alloc(c, (bson_count(bson_text(v)) + 1) * sizeof(*s->partition));
	if (!s->partition)
		return mql_full(c->q);
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);) {
		if (e.value.type != BSON_STRING)
			return mql_fail(c->q, MQL_TYPE_MISMATCH,
					"BSON field '$densify.partitionByFields.%.*s' is the wrong "
					"type '%s', expected type 'string'",
					STR_ARG(e.name), bson_type_name(e.value.type));
		TRY(mql_field_path_check(c->q, bson_text(&e.value)));
		if (str_eq(bson_text(&e.value), s->field))
			return mql_fail(c->q, 8993000,
					"BSON field '$densify.partitionByFields' contains the "
					"field that is being densified");
		s->partition[s->partition_count++] = bson_text(&e.value);
	}
	return STATUS_OK;
}

static enum status
densify_read(struct mql_stages *c, struct densify_stage *s, const struct bson_value *v)
{
	struct bson_value field = MQL_NO_VALUE, range = MQL_NO_VALUE, partition = MQL_NO_VALUE;
	struct bson_element e;
	struct bson_iter i;

	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);) {
		if (mql_is(e.name, "field"))
			field = e.value;
		else if (mql_is(e.name, "range"))
			range = e.value;
		else if (mql_is(e.name, "partitionByFields"))
			partition = e.value;
		else
			return mql_fail(c->q, 40415,
					"BSON field '$densify.%.*s' is an unknown field.",
					STR_ARG(e.name));
	}
	if (mql_is_missing(&field) || mql_is_missing(&range))
		return mql_fail(c->q, 40414,
				"BSON field '$densify.%s' is missing but a required field",
				mql_is_missing(&field) ? "field" : "range");
	if (field.type != BSON_STRING || range.type != BSON_DOCUMENT)
		return mql_fail(c->q, MQL_TYPE_MISMATCH,
				"BSON field '$densify.%s' is the wrong type",
				field.type != BSON_STRING ? "field" : "range");
	TRY(mql_field_path_check(c->q, bson_text(&field)));
	s->field = bson_text(&field);
	TRY(densify_range(c->q, s, &range));
	if (!mql_is_missing(&partition))
		TRY(densify_partition(c, s, &partition));
	if (s->bounds == DENSIFY_PARTITION && !s->partition_count)
		return mql_fail(c->q, 5733408,
				"one may not specify the bounds as 'partition' without specifying "
				"a non-empty array of partitionByFields. You may have meant to "
				"specify 'full' bounds.");
	return STATUS_OK;
}

MQL_STAGE_COMPILE(densify)
{
	struct buf out = mql_buf(c->q, BSON_MOST_BYTES);
	struct densify_stage *s = mql_stage_alloc(c, sizeof(*s));
	struct bson_value by = BSON_OF_DOCUMENT(BSON_EMPTY);
	struct bson_builder b;
	struct str sort;

	if (!s)
		return mql_full(c->q);
	s->unit = -1;
	s->step = MQL_NO_VALUE;
	if (v->type != BSON_DOCUMENT)
		return mql_fail(c->q, 5733200,
				"The $densify stage specification must be an object, found %s",
				bson_type_name(v->type));
	TRY(densify_read(c, s, v));
	TRY(mql_stage_paths(c, s->partition, s->partition_count, &by));
	bson_builder_init(&b, &out);
	bson_begin(&b);
	bson_put_int32(&b, s->field, 1);
	bson_end(&b);
	TRY(mql_keep(c->q, &out, &sort));
	TRY(mql_stage_ordered(c, s->partition_count ? &by : NULL, sort));
	return mql_stage_add(c, stage, v, &densify_ops, s);
}
