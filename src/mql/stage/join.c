/*
 * Stages that read other collections, or run pipelines of their own: $lookup, $unionWith, $facet.
 */
#include <assert.h>

#include "base/mem.h"
#include "mql/field_path.h"
#include "mql/stage/spool.h"
#include "mql/stage/join.h"

/* ---- Other collections ---- */

/* {$and: [a, b]}, or the one that is not empty. */
static enum status
filter_and(struct mql *q, struct str a, struct str b, struct str *ret)
{
	struct buf out = mql_buf(q, 2 * BSON_MOST_BYTES);
	struct bson_builder builder;

	*ret = bson_is_empty(a) ? b : a;
	if (bson_is_empty(a) || bson_is_empty(b))
		return STATUS_OK;
	bson_builder_init(&builder, &out);
	bson_begin(&builder);
	bson_begin_array(&builder, STR("$and"));
	bson_put_document(&builder, STR(""), a);
	bson_put_document(&builder, STR(""), b);
	bson_end(&builder);
	bson_end(&builder);
	return mql_keep(q, &out, ret);
}

enum status
mql_join_open(struct mql_stage_run *r, const struct mql_join *j, struct str filter,
	      const struct mql_bound *bound, struct mql_source **ret)
{
	const struct mql_store *store = r->run->options.store;
	struct mql_pipeline_front front = { .filter = BSON_EMPTY };
	struct mql_source *source;

	if (j->pipeline && mql_pipeline_has_source(j->pipeline))
		return mql_stages_open(r->run, j->pipeline, 0, bound, NULL, ret);
	if (!store)
		return mql_fail(&r->run->q, MQL_BAD_VALUE, "%.*s has no collections to read",
				STR_ARG(r->stage->name));
	if (j->pipeline)
		mql_pipeline_front(j->pipeline, &front);
	TRY(filter_and(mql_stage_mql(r), filter, front.filter, &filter));
	TRY(store->open(store, mql_stage_mql(r), j->db, j->collection, filter, &source));
	if (!j->pipeline) {
		*ret = source;
		return STATUS_OK;
	}
	return mql_stages_open(r->run, j->pipeline, front.filter_stages, bound, source, ret);
}

enum status
mql_join_from(struct mql_stages *c, struct mql_join *j, struct str stage,
	      const struct bson_value *v)
{
	struct bson_value part;

	if (v->type == BSON_DOCUMENT && bson_find(bson_text(v), STR("coll"), &part) &&
	    part.type == BSON_STRING) {
		j->collection = bson_text(&part);
		if (bson_find(bson_text(v), STR("db"), &part) && part.type != BSON_NULL) {
			if (part.type != BSON_STRING)
				return mql_fail(c->q, MQL_TYPE_MISMATCH,
						"BSON field 'from.db' is the wrong type '%s', "
						"expected type 'string'",
						bson_type_name(part.type));
			j->db = bson_text(&part);
		}
	} else if (v->type == BSON_STRING) {
		j->collection = bson_text(v);
	} else {
		return mql_fail(c->q, MQL_FAILED_TO_PARSE,
				"%.*s 'from' must be a string, but found %s", STR_ARG(stage),
				bson_type_name(v->type));
	}
	if (!j->collection.len)
		return mql_fail(c->q, 73, "Invalid namespace specified: an empty collection name");
	return mql_stage_reads(c, j->db, j->collection);
}

/* ---- $lookup ---- */

struct lookup_stage {
	struct mql_join join;
	struct str as;
	struct str local, foreign; /* ptr NULL: none */
	struct mql_expr **let;
	size_t let_count;
};

struct lookup_state {
	struct buf cache; /* what all documents get: nothing of them is asked */
	bool cached;
};

/* The values of a path that a document is joined by: those in arrays, too. */
static enum status
join_values(struct bson_builder *b, struct str doc, struct str path, size_t *count, bool *regex)
{
	struct str rest = path, name = str_cut(&rest, '.');
	struct bson_element e;
	struct bson_value v;
	struct bson_iter i;

	TRY(step_count_bytes(doc.len));
	if (!bson_find(doc, name, &v))
		return STATUS_OK;
	if (rest.len && v.type == BSON_DOCUMENT)
		return join_values(b, bson_text(&v), rest, count, regex);
	if (v.type != BSON_ARRAY) {
		if (!rest.len) {
			bson_put(b, STR(""), &v);
			*regex |= v.type == BSON_REGEX;
			++*count;
		}
		return STATUS_OK;
	}
	for (bson_iter_begin(&i, bson_text(&v)); bson_iter_read(&i, &e);) {
		TRY(step_count(1));
		if (rest.len) {
			if (e.value.type == BSON_DOCUMENT)
				TRY(join_values(b, bson_text(&e.value), rest, count, regex));
			continue;
		}
		bson_put(b, STR(""), &e.value);
		*regex |= e.value.type == BSON_REGEX;
		++*count;
	}
	return STATUS_OK;
}

static void
put_equal(struct bson_builder *b, struct str path, const struct bson_value *v)
{
	bson_begin_document(b, path);
	bson_put(b, STR("$eq"), v);
	bson_end(b);
}

/* {path: {$in: values}}; regular expressions are compared, not matched. */
enum status
mql_join_filter(struct mql *q, struct str path, struct str values, bool regex, struct str *ret)
{
	struct buf out = mql_buf(q, 4 * BSON_MOST_BYTES);
	struct bson_builder b;
	struct bson_element e;
	struct bson_iter i;

	bson_builder_init(&b, &out);
	bson_begin(&b);
	if (bson_find(values, STR("0"), &e.value) && !bson_find(values, STR("1"), NULL)) {
		put_equal(&b, path, &e.value);
	} else if (!regex) {
		bson_begin_document(&b, path);
		bson_put_array(&b, STR("$in"), values);
		bson_end(&b);
	} else {
		bson_begin_array(&b, STR("$or"));
		for (bson_iter_begin(&i, values); bson_iter_read(&i, &e);) {
			bson_begin_document(&b, STR(""));
			put_equal(&b, path, &e.value);
			bson_end(&b);
			step_pause(1);
		}
		bson_end(&b);
	}
	bson_end(&b);
	return mql_keep(q, &out, ret);
}

static enum status
lookup_filter(struct mql_stage_run *r, struct str doc, struct str *ret)
{
	const struct lookup_stage *l = r->stage->more;
	struct buf out = BUF_INIT_OF(BSON_MOST_BYTES, r->run->options.part);
	struct mql *q = mql_stage_mql(r);
	struct bson_builder b;
	struct str values;
	enum status status;
	bool regex = false;
	size_t count = 0;

	*ret = BSON_EMPTY;
	if (!l->local.ptr)
		return STATUS_OK;
	bson_builder_init(&b, &out);
	bson_begin_outer_array(&b);
	status = join_values(&b, doc, l->local, &count, &regex);
	if (!count)
		bson_put_null(&b, STR(""));
	bson_end(&b);
	if (status != STATUS_OK) {
		buf_release(&out);
		return status;
	}
	TRY(mql_keep(q, &out, &values));
	return mql_join_filter(q, l->foreign, values, regex, ret);
}

enum status
mql_join_let(struct mql_stage_run *r, struct mql_expr *const *let, size_t count, struct str doc,
	     const struct mql_bound **ret)
{
	const struct mql_bound *bound = r->bound;
	struct mql *q = mql_stage_mql(r);
	struct mql_env env = mql_stage_env(r, doc);

	for (size_t i = 0; i < count; i++) {
		struct mql_bound *b = arena_zalloc(q->arena, sizeof(*b));

		if (!b)
			return mql_full(q);
		TRY(mql_expr_run(let[i], q, &env, &b->value));
		b->outer = bound;
		bound = b;
	}
	*ret = bound;
	return STATUS_OK;
}

/* All documents of a source as an array. */
static enum status
join_read_all(struct mql_stage_run *r, struct mql_source *source, struct buf *out)
{
	struct bson_builder b;
	enum status status;
	struct str doc;

	bson_builder_init(&b, out);
	bson_begin_outer_array(&b);
	while ((status = source->next(source, &doc)) == STATUS_OK) {
		bson_put_document(&b, STR(""), doc);
		TRY(step_count_bytes(doc.len));
		TRY(buf_status(out) == STATUS_LIMIT
			    ? mql_fail(&r->run->q, 4568,
				       "Total size of documents matching pipeline's %.*s stage "
				       "exceeds %d bytes",
				       STR_ARG(r->stage->name), BSON_MOST_BYTES)
			    : buf_status(out));
	}
	bson_end(&b);
	return status == STATUS_NOT_FOUND ? buf_status(out) : status;
}

static enum status
lookup_read(struct mql_stage_run *r, struct str doc, struct buf *out)
{
	const struct lookup_stage *l = r->stage->more;
	const struct mql_bound *bound;
	struct mql_source *source;
	enum status status;
	struct str filter;

	TRY(lookup_filter(r, doc, &filter));
	TRY(mql_join_let(r, l->let, l->let_count, doc, &bound));
	TRY(mql_join_open(r, &l->join, filter, bound, &source));
	status = join_read_all(r, source, out);
	source->close(source);
	return status;
}

static enum status
lookup_next(struct mql_stage_run *r, struct str *ret)
{
	const struct lookup_stage *l = r->stage->more;
	struct lookup_state *s = r->state;
	struct buf out = BUF_INIT_OF(BSON_MOST_BYTES, r->run->options.part);
	bool same = !l->local.ptr && !l->let_count;
	enum status status = STATUS_OK;
	struct bson_value v;
	struct str doc;

	TRY(r->from->next(r->from, &doc));
	mql_stage_begin(r);
	if (!same || !s->cached)
		status = lookup_read(r, doc, &out);
	if (status == STATUS_OK && same && !s->cached) {
		s->cache = out;
		s->cached = true;
		out = BUF_INIT_OF(BSON_MOST_BYTES, r->run->options.part);
	}
	if (status == STATUS_OK) {
		assert(same == s->cached);
		v = BSON_OF_ARRAY(buf_str(same ? &s->cache : &out));
		status = mql_set_path(mql_stage_mql(r), doc, l->as, &v, ret);
	}
	buf_release(&out);
	return status;
}

static void
lookup_fini(struct mql_stage_run *r)
{
	struct lookup_state *s = r->state;

	buf_release(&s->cache);
}

static const struct mql_stage_ops lookup_ops = { .next = lookup_next,
						 .fini = lookup_fini,
						 .state_bytes = sizeof(struct lookup_state) };

static enum status
lookup_let(struct mql_stages *c, struct lookup_stage *l, const struct bson_value *v,
	   const struct mql_scope **ret)
{
	struct bson_element e;
	struct bson_iter i;

	if (v->type != BSON_DOCUMENT)
		return mql_fail(c->q, MQL_FAILED_TO_PARSE,
				"$lookup argument 'let: %s' must be an object, is type %s",
				mql_text(c->q, STR(""), v), bson_type_name(v->type));
	l->let = mql_stage_alloc(c, (bson_count(bson_text(v)) + 1) * sizeof(struct mql_expr *));
	if (!l->let)
		return mql_full(c->q);
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);) {
		TRY(mql_scope_check_name(c->q, e.name));
		TRY(mql_expr_compile(c->q, &e.value, c->scope, &l->let[l->let_count++]));
	}
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);)
		TRY(mql_scope_add(c->q, *ret, e.name, ret));
	return STATUS_OK;
}

struct lookup_args {
	struct bson_value from, as, local, foreign, let, pipeline;
};

static enum status
lookup_option(struct mql *q, const struct bson_element *e, struct lookup_args *a)
{
	const struct {
		const char *name;
		struct bson_value *value;
		bool text;
	} options[] = { { "from", &a->from, false },
			{ "as", &a->as, true },
			{ "localField", &a->local, true },
			{ "foreignField", &a->foreign, true },
			{ "let", &a->let, false },
			{ "pipeline", &a->pipeline, false },
			{ "_internalCollation", NULL, false } };

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]) && options[i].value; i++) {
		if (!mql_is(e->name, options[i].name))
			continue;
		if (options[i].text && e->value.type != BSON_STRING)
			return mql_fail(q, MQL_FAILED_TO_PARSE,
					"$lookup argument '%s' must be a string, found %s: %s",
					options[i].name, mql_text(q, e->name, &e->value),
					bson_type_name(e->value.type));
		*options[i].value = e->value;
		return STATUS_OK;
	}
	return mql_fail(q, MQL_FAILED_TO_PARSE, "unknown argument to $lookup: %.*s",
			STR_ARG(e->name));
}

static enum status
lookup_check(struct mql_stages *c, const struct lookup_args *a)
{
	struct mql *q = c->q;

	if (!a->as.type)
		return mql_fail(q, MQL_FAILED_TO_PARSE, "must specify 'as' field for a $lookup");
	if (!a->pipeline.type && (!a->local.type || !a->foreign.type))
		return mql_fail(q, MQL_FAILED_TO_PARSE,
				"$lookup requires either 'pipeline' or both 'localField' and "
				"'foreignField' to be specified");
	if (!a->local.type != !a->foreign.type)
		return mql_fail(q, MQL_FAILED_TO_PARSE,
				"$lookup requires both or neither of 'localField' and "
				"'foreignField' to be specified");
	if (!a->pipeline.type && a->let.type)
		return mql_fail(q, MQL_FAILED_TO_PARSE,
				"$lookup with a 'let' argument must also specify 'pipeline'");
	TRY(mql_field_path_check(q, bson_text(&a->as)));
	if (a->local.type) {
		TRY(mql_field_path_check(q, bson_text(&a->local)));
		TRY(mql_field_path_check(q, bson_text(&a->foreign)));
	}
	return STATUS_OK;
}

MQL_STAGE_COMPILE(lookup)
{
	struct lookup_stage *l = mql_stage_alloc(c, sizeof(*l));
	const struct mql_scope *scope = c->scope;
	struct lookup_args a = { .from = { 0 } };
	struct mql_pipeline *p;
	struct bson_element e;
	struct bson_iter i;

	if (!l)
		return mql_full(c->q);
	if (v->type != BSON_DOCUMENT)
		return mql_fail(c->q, MQL_FAILED_TO_PARSE,
				"the $lookup stage specification must be an object, but found %s",
				bson_type_name(v->type));
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);)
		TRY(lookup_option(c->q, &e, &a));
	TRY(lookup_check(c, &a));
	assert(!a.local.type == !a.foreign.type && (a.local.type || a.pipeline.type));
	l->as = bson_text(&a.as);
	if (a.local.type) {
		l->local = bson_text(&a.local);
		l->foreign = bson_text(&a.foreign);
	}
	if (a.let.type)
		TRY(lookup_let(c, l, &a.let, &scope));
	if (a.pipeline.type) {
		if (a.pipeline.type != BSON_ARRAY)
			return mql_fail(c->q, MQL_TYPE_MISMATCH,
					"'pipeline' option must be specified as an array");
		TRY(mql_stage_pipeline(c, &a.pipeline, scope, false, true, &p));
		l->join.pipeline = p;
	}
	if (a.from.type)
		TRY(mql_join_from(c, &l->join, stage, &a.from));
	else if (!l->join.pipeline || !mql_pipeline_has_source(l->join.pipeline))
		return mql_fail(c->q, MQL_FAILED_TO_PARSE,
				"must specify 'from' field for a $lookup");
	return mql_stage_add(c, stage, v, &lookup_ops, l);
}

/* ---- $unionWith ---- */

struct union_state {
	struct mql_source *other;
	bool began;
};

static enum status
union_next(struct mql_stage_run *r, struct str *ret)
{
	struct union_state *s = r->state;

	if (!s->began) {
		enum status status = r->from->next(r->from, ret);

		if (status != STATUS_NOT_FOUND)
			return status;
		s->began = true;
		mql_stage_begin(r);
		TRY(mql_join_open(r, r->stage->more, BSON_EMPTY, r->bound, &s->other));
	}
	return s->other ? s->other->next(s->other, ret) : STATUS_NOT_FOUND;
}

static void
union_fini(struct mql_stage_run *r)
{
	struct union_state *s = r->state;

	if (s->other)
		s->other->close(s->other);
}

static const struct mql_stage_ops union_ops = { .next = union_next,
						.fini = union_fini,
						.state_bytes = sizeof(struct union_state) };

MQL_STAGE_COMPILE(union_with)
{
	struct mql_join *j = mql_stage_alloc(c, sizeof(*j));
	struct mql_pipeline *p;
	struct bson_element e;
	struct bson_iter i;
	bool has_from = false;

	if (!j)
		return mql_full(c->q);
	if (v->type != BSON_STRING && v->type != BSON_DOCUMENT)
		return mql_fail(c->q, MQL_FAILED_TO_PARSE,
				"the $unionWith stage specification must be an object or string, "
				"but found %s",
				bson_type_name(v->type));
	if (v->type == BSON_STRING) {
		TRY(mql_join_from(c, j, stage, v));
		return mql_stage_add(c, stage, v, &union_ops, j);
	}
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);) {
		if (mql_is(e.name, "coll")) {
			if (e.value.type != BSON_STRING)
				return mql_fail(c->q, MQL_TYPE_MISMATCH,
						"BSON field '$unionWith.coll' is the wrong type "
						"'%s', expected type 'string'",
						bson_type_name(e.value.type));
			TRY(mql_join_from(c, j, stage, &e.value));
			has_from = true;
		} else if (mql_is(e.name, "pipeline")) {
			if (e.value.type != BSON_ARRAY)
				return mql_fail(c->q, MQL_TYPE_MISMATCH,
						"BSON field '$unionWith.pipeline' is the wrong "
						"type '%s', expected type 'array'",
						bson_type_name(e.value.type));
			TRY(mql_stage_pipeline(c, &e.value, c->scope, false, false, &p));
			j->pipeline = p;
		} else {
			return mql_fail(c->q, 40415,
					"BSON field '$unionWith.%.*s' is an unknown field.",
					STR_ARG(e.name));
		}
	}
	if (!has_from && (!j->pipeline || !mql_pipeline_has_source(j->pipeline)))
		return mql_fail(c->q, MQL_FAILED_TO_PARSE,
				"$unionWith stage without explicit collection must have a pipeline "
				"with $documents as first stage");
	return mql_stage_add(c, stage, v, &union_ops, j);
}

/* ---- $facet ---- */

struct facet_stage {
	struct str *names;
	struct mql_pipeline **pipelines;
	size_t count;
};

struct facet_state {
	struct mql_spool spool;
	bool has_spool;
	bool done;
};

/* Reads what was put aside, once for each pipeline. */
struct facet_source {
	struct mql_source source;
	struct mql_stage_run *r;
	struct mql_spool_reader reader;
};

static enum status
facet_source_next(struct mql_source *s, struct str *ret)
{
	struct facet_source *f = (struct facet_source *)s;

	return mql_spool_next(&f->reader, f->r, ret);
}

static void
facet_source_close(struct mql_source *s)
{
	struct facet_source *f = (struct facet_source *)s;

	mql_spool_reader_fini(&f->reader);
}

static enum status
facet_run(struct mql_stage_run *r, size_t i, struct bson_builder *b)
{
	const struct facet_stage *f = r->stage->more;
	struct facet_state *s = r->state;
	struct facet_source source = { { facet_source_next, facet_source_close }, r, { 0 } };
	struct mql_source *top;
	enum status status;
	struct str doc;

	mql_spool_read(&source.reader, &s->spool, r, 0, mql_spool_end(&s->spool));
	TRY(mql_stages_open(r->run, f->pipelines[i], 0, r->bound, &source.source, &top));
	bson_begin_array(b, f->names[i]);
	while ((status = top->next(top, &doc)) == STATUS_OK) {
		bson_put_document(b, STR(""), doc);
		if (buf_status(b->out) != STATUS_OK)
			break;
	}
	bson_end(b);
	top->close(top);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Not a part of facet_next(), whose frame is on the stack while all stages before it run. */
__attribute__((noinline)) static enum status
facet_build(struct mql_stage_run *r, struct str *ret)
{
	const struct facet_stage *f = r->stage->more;
	struct buf out = BUF_INIT_OF(BSON_MOST_BYTES, r->run->options.part);
	enum status status = STATUS_OK;
	struct bson_builder b;

	bson_builder_init(&b, &out);
	bson_begin(&b);
	for (size_t i = 0; i < f->count && status == STATUS_OK; i++)
		status = facet_run(r, i, &b);
	bson_end(&b);
	if (status == STATUS_OK)
		return mql_keep(mql_stage_begin(r), &out, ret);
	buf_release(&out);
	return status;
}

static enum status
facet_next(struct mql_stage_run *r, struct str *ret)
{
	struct facet_state *s = r->state;
	enum status status;
	struct str doc;

	if (s->done)
		return STATUS_NOT_FOUND;
	s->done = true;
	mql_spool_init(&s->spool, r);
	s->has_spool = true;
	while ((status = r->from->next(r->from, &doc)) == STATUS_OK)
		TRY(mql_spool_put(&s->spool, r, doc));
	return status == STATUS_NOT_FOUND ? facet_build(r, ret) : status;
}

static void
facet_fini(struct mql_stage_run *r)
{
	struct facet_state *s = r->state;

	if (s->has_spool)
		mql_spool_fini(&s->spool);
}

static const struct mql_stage_ops facet_ops = { .next = facet_next,
						.fini = facet_fini,
						.state_bytes = sizeof(struct facet_state) };

static enum status
facet_add(struct mql_stages *c, struct facet_stage *f, const struct bson_element *e)
{
	struct bson_element s;
	struct bson_iter i;

	TRY(mql_field_name_check(c->q, e->name));
	if (e->value.type != BSON_ARRAY)
		return mql_fail(c->q, 40170, "arguments to $facet must be arrays, %.*s is type %s",
				STR_ARG(e->name), bson_type_name(e->value.type));
	for (bson_iter_begin(&i, bson_text(&e->value)); bson_iter_read(&i, &s);)
		if (s.value.type != BSON_DOCUMENT)
			return mql_fail(
				c->q, 40171,
				"elements of arrays in $facet spec must be non-empty "
				"objects, %.*s argument contained an element of type %s: %s",
				STR_ARG(e->name), bson_type_name(s.value.type),
				mql_text(c->q, STR(""), &s.value));
	f->names[f->count] = e->name;
	TRY(mql_stage_pipeline(c, &e->value, c->scope, true, false, &f->pipelines[f->count]));
	f->count++;
	return STATUS_OK;
}

MQL_STAGE_COMPILE(facet)
{
	struct facet_stage *f = mql_stage_alloc(c, sizeof(*f));
	struct bson_element e;
	struct bson_iter i;
	size_t most;

	if (!f)
		return mql_full(c->q);
	if (v->type != BSON_DOCUMENT || bson_is_empty(bson_text(v)))
		return mql_fail(c->q, 40169,
				"the $facet specification must be a non-empty object, but found: "
				"%s",
				mql_text(c->q, stage, v));
	most = bson_count(bson_text(v));
	f->names = mql_stage_alloc(c, most * sizeof(*f->names));
	f->pipelines = mql_stage_alloc(c, most * sizeof(struct mql_pipeline *));
	if (!f->names || !f->pipelines)
		return mql_full(c->q);
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);)
		TRY(facet_add(c, f, &e));
	return mql_stage_add(c, stage, v, &facet_ops, f);
}
