/*
 * $bucketAuto: documents come in the order of what they are grouped by, and are put aside to be
 * counted. Then they go into buckets of about the same size, one bucket after the other.
 */
#include "mql/stage/accum.h"
#include "mql/stage/rounder.h"
#include "mql/stage/spool.h"

struct bucket_stage {
	int64_t buckets;
	const struct mql_rounder *rounder; /* NULL: none */
	struct str *names;
	struct mql_accumulator **fields;
	size_t count;
};

struct bucket_state {
	struct mql_spool spool;
	struct mql_spool_reader reader;
	bool reads;
	struct arena *keep; /* what accumulators have of this bucket */
	struct mql_accumulator_state **states;
	int64_t documents;
	int64_t made;     /* buckets so far */
	struct str next;  /* the document that is next; ptr NULL: none */
	struct buf least; /* keys {v: value} */
	struct buf most;
	struct bson_value bound; /* the rounded one of the bucket before */
};

static struct bson_value
key_value(struct str key)
{
	struct bson_value v = BSON_OF_NULL;

	bson_find(key, STR("v"), &v);
	return v;
}

static struct bson_value
next_value(const struct bucket_state *s)
{
	struct str key, doc;

	mql_ordered_parts(s->next, &key, &doc);
	return key_value(key);
}

static enum status
read_next(struct mql_stage_run *r)
{
	struct bucket_state *s = r->state;
	enum status status = mql_spool_next(&s->reader, r, &s->next);

	if (status == STATUS_NOT_FOUND)
		s->next = (struct str){ 0 };
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
buckets_begin(struct mql_stage_run *r)
{
	struct bucket_state *s = r->state;
	enum status status;
	struct str doc;

	s->least = s->most = BUF_INIT_OF(BSON_MOST_BYTES, r->run->options.part);
	mql_spool_init(&s->spool, r);
	mql_spool_read(&s->reader, &s->spool, r, 0, 0);
	s->reads = true;
	s->keep = mql_run_arena(r->run, r->run->options.stage_bytes);
	if (!s->keep)
		return STATUS_NOMEM;
	while ((status = r->from->next(r->from, &doc)) == STATUS_OK) {
		TRY(mql_spool_put(&s->spool, r, doc));
		s->documents++;
	}
	if (status != STATUS_NOT_FOUND)
		return status;
	s->reader.end = mql_spool_end(&s->spool);
	return read_next(r);
}

static enum status
fail_full(struct mql_stage_run *r)
{
	struct bucket_state *s = r->state;

	if (mql_stage_is_starved(r, s->keep))
		return STATUS_NOMEM;
	return mql_fail(&r->run->q, MQL_MEMORY_LIMIT,
			"$bucketAuto used too much memory for one of its buckets. Memory limit "
			"(MQL_STAGE_BYTES): %zu bytes",
			r->run->options.stage_bytes);
}

static enum status
bucket_new(struct mql_stage_run *r)
{
	const struct bucket_stage *stage = r->stage->more;
	const struct mql_env env = mql_stage_env(r, BSON_EMPTY);
	struct bucket_state *s = r->state;

	arena_clear(s->keep);
	s->states = arena_alloc(s->keep,
				(stage->count + 1) * sizeof(struct mql_accumulator_state *));
	if (!s->states)
		return fail_full(r);
	for (size_t i = 0; i < stage->count; i++) {
		s->states[i] = arena_alloc(s->keep, mql_accumulator_bytes());
		if (!s->states[i])
			return fail_full(r);
		TRY(mql_accumulator_begin(stage->fields[i], mql_stage_begin(r), &env, s->keep,
					  s->states[i]));
	}
	return STATUS_OK;
}

/* Takes the document that is next, and reads the one behind it. */
static enum status
bucket_add(struct mql_stage_run *r)
{
	const struct bucket_stage *stage = r->stage->more;
	struct bucket_state *s = r->state;
	struct mql *q = mql_stage_begin(r);
	enum status status;
	struct mql_env env;
	struct str key, doc;

	mql_ordered_parts(s->next, &key, &doc);
	env = mql_stage_env(r, doc);
	for (size_t i = 0; i < stage->count; i++) {
		status = mql_accumulator_add(stage->fields[i], q, &env, s->keep, s->states[i]);
		if (status != STATUS_OK)
			return status == STATUS_LIMIT ? fail_full(r) : status;
	}
	buf_clear(&s->most);
	buf_append_str(&s->most, key);
	TRY(buf_status(&s->most));
	return read_next(r);
}

/* Takes all that are next and not beyond the bucket's bound, which is `*ret` then. */
static enum status
bucket_bound(struct mql_stage_run *r, struct bson_value *ret)
{
	const struct bucket_stage *stage = r->stage->more;
	struct bucket_state *s = r->state;
	struct mql *q = &r->run->q;
	struct bson_value most = key_value(buf_str(&s->most)), next;

	if (stage->rounder) {
		TRY(mql_round_up(stage->rounder, q, &most, &s->bound));
		while (s->next.ptr) {
			next = next_value(s);
			if (bson_compare_values(&s->bound, &next, q->texts) <= 0)
				break;
			TRY(bucket_add(r));
		}
		most = key_value(buf_str(&s->most));
		if (!s->next.ptr)
			TRY(mql_round_up(stage->rounder, q, &most, &s->bound));
		*ret = s->bound;
		return STATUS_OK;
	}
	while (s->next.ptr) {
		next = next_value(s);
		most = key_value(buf_str(&s->most));
		if (bson_compare_values(&most, &next, q->texts) != 0)
			break;
		TRY(bucket_add(r));
	}
	*ret = s->next.ptr ? next_value(s) : key_value(buf_str(&s->most));
	return STATUS_OK;
}

static enum status
bucket_put(struct mql_stage_run *r, const struct bson_value *least, const struct bson_value *most,
	   struct str *ret)
{
	const struct bucket_stage *stage = r->stage->more;
	struct buf out = BUF_INIT_OF(BSON_MOST_BYTES, r->run->options.part);
	struct bucket_state *s = r->state;
	struct mql *q = mql_stage_begin(r);
	enum status status = STATUS_OK;
	struct bson_builder b;

	bson_builder_init(&b, &out);
	bson_begin(&b);
	bson_begin_document(&b, STR("_id"));
	bson_put(&b, STR("min"), least);
	bson_put(&b, STR("max"), most);
	bson_end(&b);
	for (size_t i = 0; i < stage->count && status == STATUS_OK; i++)
		status = mql_accumulator_put(stage->fields[i], q, s->states[i], stage->names[i],
					     &b);
	bson_end(&b);
	if (status == STATUS_OK)
		return mql_keep(q, &out, ret);
	buf_release(&out);
	return status;
}

static enum status
bucket_next(struct mql_stage_run *r, struct str *ret)
{
	const struct bucket_stage *stage = r->stage->more;
	struct bucket_state *s = r->state;
	struct bson_value least, most;
	struct str key, doc;
	int64_t size;

	if (!s->reads)
		TRY(buckets_begin(r));
	if (!s->next.ptr)
		return STATUS_NOT_FOUND;
	mql_ordered_parts(s->next, &key, &doc);
	buf_clear(&s->least);
	buf_append_str(&s->least, key);
	TRY(buf_status(&s->least));
	least = key_value(buf_str(&s->least));
	if (stage->rounder && s->made)
		least = s->bound;
	else if (stage->rounder)
		TRY(mql_round_down(stage->rounder, &r->run->q, &least, &least));
	/* As many as are left go into the last one. */
	s->made++;
	size = (2 * s->documents + stage->buckets) / (2 * stage->buckets);
	if (s->made == stage->buckets)
		size = s->documents;
	TRY(bucket_new(r));
	TRY(bucket_add(r));
	for (int64_t i = 1; i < size && s->next.ptr; i++)
		TRY(bucket_add(r));
	TRY(bucket_bound(r, &most));
	return bucket_put(r, &least, &most, ret);
}

static void
bucket_fini(struct mql_stage_run *r)
{
	struct bucket_state *s = r->state;

	if (s->reads) {
		mql_spool_reader_fini(&s->reader);
		mql_spool_fini(&s->spool);
	}
	buf_release(&s->least);
	buf_release(&s->most);
	arena_free(s->keep);
}

static const struct mql_stage_ops bucket_ops = { .next = bucket_next,
						 .fini = bucket_fini,
						 .state_bytes = sizeof(struct bucket_state) };

/* ---- Compiling ---- */

static enum status
bucket_count(struct mql *q, const struct bson_value *v, int64_t *ret)
{
	if (!bson_is_number(v))
		return mql_fail(q, 40241,
				"The $bucketAuto 'buckets' field must be a numeric value, but "
				"found type: %s.",
				bson_type_name(v->type));
	if (!bson_to_int64(v, ret) || *ret < INT32_MIN || *ret > INT32_MAX)
		return mql_fail(q, 40242,
				"The $bucketAuto 'buckets' field must be representable as a 32-bit "
				"integer, but found %s.",
				mql_text(q, STR(""), v));
	if (*ret <= 0)
		return mql_fail(q, 40243,
				"The $bucketAuto 'buckets' field must be greater than 0, but "
				"found: %lld.",
				(long long)*ret);
	return STATUS_OK;
}

static bool
is_expression(const struct bson_value *v)
{
	struct bson_element e = { 0 };
	struct bson_iter i;

	if (v->type == BSON_STRING)
		return bson_text(v).len && bson_text(v).ptr[0] == '$';
	if (v->type != BSON_DOCUMENT)
		return false;
	bson_iter_begin(&i, bson_text(v));
	return bson_iter_read(&i, &e) && e.name.len && e.name.ptr[0] == '$';
}

static enum status
bucket_option(struct mql_stages *c, struct bucket_stage *s, const struct bson_element *e,
	      struct bson_value *by, struct str *output)
{
	const struct bson_value *v = &e->value;

	if (mql_is(e->name, "groupBy")) {
		*by = *v;
		if (!is_expression(v))
			return mql_fail(c->q, 40239,
					"The $bucketAuto 'groupBy' field must be defined as a "
					"$-prefixed path or an expression object, but found: %s.",
					mql_text(c->q, STR(""), v));
		return STATUS_OK;
	}
	if (mql_is(e->name, "buckets"))
		return bucket_count(c->q, v, &s->buckets);
	if (mql_is(e->name, "output")) {
		if (v->type != BSON_DOCUMENT)
			return mql_fail(c->q, 40244,
					"The $bucketAuto 'output' field must be an object, but "
					"found type: %s.",
					bson_type_name(v->type));
		*output = bson_text(v);
		return STATUS_OK;
	}
	if (!mql_is(e->name, "granularity"))
		return mql_fail(c->q, 40245, "Unrecognized option to $bucketAuto: %.*s.",
				STR_ARG(e->name));
	if (v->type != BSON_STRING)
		return mql_fail(c->q, 40261,
				"The $bucketAuto 'granularity' field must be a string, but found "
				"type: %s.",
				bson_type_name(v->type));
	return mql_rounder_of(c->q, bson_text(v), &s->rounder);
}

static enum status
bucket_output(struct mql_stages *c, struct bucket_stage *s, struct str output)
{
	size_t most = bson_count(output);
	struct bson_element e;
	struct bson_iter i;

	s->names = mql_stage_alloc(c, most * sizeof(*s->names));
	s->fields = mql_stage_alloc(c, most * sizeof(struct mql_accumulator *));
	if (!s->names || !s->fields)
		return mql_full(c->q);
	for (bson_iter_begin(&i, output); bson_iter_read(&i, &e); s->count++) {
		TRY(step_count(1));
		s->names[s->count] = e.name;
		TRY(mql_stage_accumulator(c, &e, &s->fields[s->count]));
	}
	return STATUS_OK;
}

/* {count: {$sum: 1}} */
#define COUNT_OUTPUT                                                                               \
	STR("\x1b\0\0\0"                                                                           \
	    "\x03"                                                                                 \
	    "count\0"                                                                              \
	    "\x0f\0\0\0"                                                                           \
	    "\x10"                                                                                 \
	    "$sum\0"                                                                               \
	    "\x01\0\0\0\0\0")

MQL_STAGE_COMPILE(bucket_auto)
{
	struct bucket_stage *s = mql_stage_alloc(c, sizeof(*s));
	struct bson_value by = MQL_NO_VALUE;
	struct str output = COUNT_OUTPUT;
	struct bson_element e;
	struct bson_iter i;

	if (!s)
		return mql_full(c->q);
	if (v->type != BSON_DOCUMENT)
		return mql_fail(c->q, 40240,
				"The argument to $bucketAuto must be an object, but found type: "
				"%s.",
				bson_type_name(v->type));
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);)
		TRY(bucket_option(c, s, &e, &by, &output));
	if ((int)by.type == MQL_MISSING || !s->buckets)
		return mql_fail(c->q, 40246,
				"$bucketAuto requires 'groupBy' and 'buckets' to be specified.");
	TRY(bucket_output(c, s, bson_is_empty(output) ? COUNT_OUTPUT : output));
	TRY(mql_stage_ordered(c, &by, BSON_EMPTY));
	return mql_stage_add(c, stage, v, &bucket_ops, s);
}
