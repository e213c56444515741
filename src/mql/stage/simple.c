/* Stages that look at one document at a time. */
#include <math.h>

#include "base/mem.h"
#include "base/rand.h"
#include "mql/field_path.h"
#include "mql/stage/stages_int.h"

/* ---- $match ---- */

static enum status
match_next(struct mql_stage_run *r, struct str *ret)
{
	bool matches = false;

	while (!matches) {
		TRY(r->from->next(r->from, ret));
		TRY(mql_match_run_scoped(r->stage->more, mql_stage_begin(r), *ret, r->bound,
					 &matches, NULL));
	}
	return STATUS_OK;
}

const struct mql_stage_ops mql_match_ops = { .next = match_next };

enum status
mql_match_stage_of(struct mql_stages *c, struct str filter, struct mql_stage *ret)
{
	struct mql_match *match;

	TRY(mql_match_compile_scoped(c->q, filter, c->scope, &match));
	*ret = (struct mql_stage){ .ops = &mql_match_ops,
				   .name = STR("$match"),
				   .spec = BSON_OF_DOCUMENT(filter),
				   .more = match };
	return STATUS_OK;
}

MQL_STAGE_COMPILE(match)
{
	struct mql_stage s;

	if (v->type != BSON_DOCUMENT)
		return mql_fail(c->q, 15959, "the match filter must be an expression in an object");
	TRY(mql_match_stage_of(c, bson_text(v), &s));
	return mql_stage_add(c, stage, v, s.ops, s.more);
}

/* ---- $project, $set, $unset ---- */

static enum status
project_next(struct mql_stage_run *r, struct str *ret)
{
	struct str doc;

	TRY(r->from->next(r->from, &doc));
	return mql_projection_run(r->stage->more, mql_stage_begin(r), doc, -1, r->bound, ret);
}

const struct mql_stage_ops mql_project_ops = { .next = project_next };

MQL_STAGE_COMPILE(project)
{
	struct mql_projection *p;

	TRY(mql_projection_compile_project(c->q, v, c->scope, &p));
	return mql_stage_add(c, stage, v, &mql_project_ops, p);
}

MQL_STAGE_COMPILE(set)
{
	struct mql_projection *p;

	TRY(mql_projection_compile_set(c->q, stage, v, c->scope, &p));
	return mql_stage_add(c, stage, v, &mql_project_ops, p);
}

MQL_STAGE_COMPILE(unset)
{
	struct mql_projection *p;

	TRY(mql_projection_compile_unset(c->q, v, &p));
	return mql_stage_add(c, stage, v, &mql_project_ops, p);
}

const struct mql_projection *
mql_stage_projection(const struct mql_stage *s)
{
	return s->more;
}

/* ---- $replaceRoot, $replaceWith ---- */

static enum status
replace_next(struct mql_stage_run *r, struct str *ret)
{
	struct bson_value v;
	struct mql_env env;
	struct mql *q;
	struct str doc;

	TRY(r->from->next(r->from, &doc));
	q = mql_stage_begin(r);
	env = mql_stage_env(r, doc);
	TRY(mql_expr_run(r->stage->more, q, &env, &v));
	if (v.type != BSON_DOCUMENT) {
		bool missing = (int)v.type == MQL_MISSING;

		return mql_fail(q, 40228,
				"'newRoot' expression must evaluate to an object, but resulting "
				"value was: %s. Type of resulting value: '%s'. Input document: %s",
				missing ? "MISSING" : mql_text(q, STR(""), &v),
				missing ? "missing" : bson_type_name(v.type),
				mql_text(q, STR(""), &BSON_OF_DOCUMENT(doc)));
	}
	*ret = bson_text(&v);
	return STATUS_OK;
}

const struct mql_stage_ops mql_replace_ops = { .next = replace_next };

MQL_STAGE_COMPILE(replace_with)
{
	struct mql_expr *e;

	TRY(mql_expr_compile(c->q, v, c->scope, &e));
	return mql_stage_add(c, stage, v, &mql_replace_ops, e);
}

MQL_STAGE_COMPILE(replace_root)
{
	struct bson_element e;
	struct bson_iter i;
	struct bson_value root;

	if (v->type != BSON_DOCUMENT)
		return mql_fail(c->q, 40229,
				"expected an object as specification for $replaceRoot stage, got "
				"%s",
				bson_type_name(v->type));
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);)
		if (!mql_is(e.name, "newRoot"))
			return mql_fail(c->q, 40415,
					"BSON field '$replaceRoot.%.*s' is an unknown field.",
					STR_ARG(e.name));
	if (!bson_find(bson_text(v), STR("newRoot"), &root))
		return mql_fail(c->q, 40414,
				"BSON field '$replaceRoot.newRoot' is missing but a required "
				"field");
	return mql_stage_replace_with(c, stage, &root);
}

/* ---- $limit, $skip ---- */

struct number_stage {
	int64_t n;
};

int64_t
mql_stage_number(const struct mql_stage *s)
{
	const struct number_stage *n = s->more;

	return n->n;
}

struct number_state {
	int64_t done;
};

static enum status
limit_next(struct mql_stage_run *r, struct str *ret)
{
	struct number_state *s = r->state;

	if (s->done == mql_stage_number(r->stage))
		return STATUS_NOT_FOUND;
	s->done++;
	return r->from->next(r->from, ret);
}

static enum status
skip_next(struct mql_stage_run *r, struct str *ret)
{
	struct number_state *s = r->state;

	for (; s->done < mql_stage_number(r->stage); s->done++)
		TRY(r->from->next(r->from, ret));
	return r->from->next(r->from, ret);
}

const struct mql_stage_ops mql_limit_ops = { .next = limit_next,
					     .state_bytes = sizeof(struct number_state) };
const struct mql_stage_ops mql_skip_ops = { .next = skip_next,
					    .state_bytes = sizeof(struct number_state) };

static enum status
number_stage(struct mql_stages *c, struct str stage, const struct bson_value *v, int code,
	     const struct mql_stage_ops *ops)
{
	struct number_stage *n = mql_stage_alloc(c, sizeof(*n));
	double d = bson_to_double(v);

	if (!n)
		return mql_full(c->q);
	if (!bson_to_int64(v, &n->n)) {
		if (!bson_is_number(v))
			return mql_fail(c->q, code,
					"invalid argument to %.*s stage: Expected a number in: %s",
					STR_ARG(stage), mql_text(c->q, stage, v));
		if (isnan(d) || d != trunc(d) || d < 0)
			return mql_fail(c->q, code,
					"invalid argument to %.*s stage: Expected an integer: %s",
					STR_ARG(stage), mql_text(c->q, stage, v));
		return mql_fail(c->q, code,
				"invalid argument to %.*s stage: Cannot represent as a 64-bit "
				"integer: %s",
				STR_ARG(stage), mql_text(c->q, stage, v));
	}
	if (n->n < 0)
		return mql_fail(c->q, code,
				"invalid argument to %.*s stage: Expected a non-negative number "
				"in: %s",
				STR_ARG(stage), mql_text(c->q, stage, v));
	if (!n->n && ops == &mql_limit_ops)
		return mql_fail(c->q, 15958, "the limit must be positive");
	return mql_stage_add(c, stage, v, ops, n);
}

MQL_STAGE_COMPILE(limit)
{
	return number_stage(c, stage, v, 5107201, &mql_limit_ops);
}

MQL_STAGE_COMPILE(skip)
{
	return number_stage(c, stage, v, 5107200, &mql_skip_ops);
}

/* ---- $unwind ---- */

struct unwind_stage {
	struct str path;
	struct str index; /* empty: none */
	bool preserve;
};

struct unwind_state {
	struct arena *keep; /* the document that is being unwound */
	struct str doc;
	struct bson_iter iter;
	int64_t at;
	bool open;
};

struct str
mql_unwind_path(const struct mql_stage *s, struct str *ret_index)
{
	const struct unwind_stage *u = s->more;

	*ret_index = u->index;
	return u->path;
}

/* Puts the document with `v` at the path, or without it if `v` is NULL. */
static void
put_at_path(struct bson_builder *b, struct str doc, struct str path, const struct bson_value *v)
{
	struct str rest = path, name = str_cut(&rest, '.');
	struct bson_element e;
	struct bson_iter i;
	bool found = false;

	for (bson_iter_begin(&i, doc); bson_iter_read(&i, &e);) {
		if (found || !str_eq(e.name, name)) {
			bson_put_element(b, &e);
			continue;
		}
		found = true;
		if (!rest.len) {
			if (v)
				bson_put(b, name, v);
		} else if (e.value.type == BSON_DOCUMENT || v) {
			bool inside = e.value.type == BSON_DOCUMENT;

			bson_begin_document(b, name);
			put_at_path(b, inside ? bson_text(&e.value) : BSON_EMPTY, rest, v);
			bson_end(b);
		} else {
			bson_put_element(b, &e);
		}
	}
	if (found || !v)
		return;
	if (!rest.len) {
		bson_put(b, name, v);
		return;
	}
	bson_begin_document(b, name);
	put_at_path(b, BSON_EMPTY, rest, v);
	bson_end(b);
}

enum status
mql_set_path(struct mql *q, struct str doc, struct str path, const struct bson_value *v,
	     struct str *ret)
{
	struct buf out = mql_buf(q, BSON_MOST_BYTES);
	struct bson_builder b;
	enum status status;

	bson_builder_init(&b, &out);
	bson_begin(&b);
	put_at_path(&b, doc, path, v);
	bson_end(&b);
	/* What was there before may be much longer, and is passed over: the array of an $unwind. */
	status = step_count_bytes(out.len);
	if (status != STATUS_OK) {
		buf_release(&out);
		return status;
	}
	return mql_keep(q, &out, ret);
}

/* One output: the element, or a value that is no array, with its index or null. */
static enum status
unwind_put(struct mql_stage_run *r, struct str doc, const struct bson_value *v, int64_t at,
	   struct str *ret)
{
	const struct unwind_stage *u = r->stage->more;
	struct mql *q = mql_stage_begin(r);
	struct bson_value index = at < 0 ? BSON_OF_NULL : BSON_OF_INT64(at);

	*ret = doc;
	if (at >= 0 || !v)
		TRY(mql_set_path(q, doc, u->path, v, ret));
	return u->index.len ? mql_set_path(q, *ret, u->index, &index, ret) : STATUS_OK;
}

/* What the path leads to: names in documents only. */
static bool
unwind_find(struct str doc, struct str path, struct bson_value *ret)
{
	for (;;) {
		struct str name = str_cut(&path, '.');

		if (!bson_find(doc, name, ret))
			return false;
		if (!path.len)
			return true;
		if (ret->type != BSON_DOCUMENT)
			return false;
		doc = bson_text(ret);
	}
}

static enum status
unwind_begin(struct mql_stage_run *r, bool *ret_done, struct str *ret)
{
	const struct unwind_stage *u = r->stage->more;
	struct unwind_state *s = r->state;
	struct bson_value v;
	bool found, none;

	*ret_done = false;
	arena_clear(s->keep);
	TRY(r->from->next(r->from, &s->doc));
	TRY(step_count_bytes(s->doc.len));
	s->doc = arena_dup(s->keep, s->doc);
	if (!s->doc.ptr)
		return mql_full(&r->run->q);
	found = unwind_find(s->doc, u->path, &v);
	none = !found || v.type == BSON_NULL || v.type == BSON_UNDEFINED ||
	       (v.type == BSON_ARRAY && bson_is_empty(bson_text(&v)));
	if (!none && v.type == BSON_ARRAY) {
		bson_iter_begin(&s->iter, bson_text(&v));
		s->at = 0;
		s->open = true;
		return STATUS_OK;
	}
	if (none && !u->preserve)
		return STATUS_OK;
	*ret_done = true;
	return unwind_put(r, s->doc, found && v.type != BSON_ARRAY ? &v : NULL, -1, ret);
}

static enum status
unwind_next(struct mql_stage_run *r, struct str *ret)
{
	struct unwind_state *s = r->state;
	struct bson_element e;
	bool done;

	if (!s->keep)
		s->keep = mql_run_arena(r->run, MQL_SCRATCH_BYTES);
	if (!s->keep)
		return STATUS_NOMEM;
	for (;;) {
		if (s->open && bson_iter_read(&s->iter, &e))
			return unwind_put(r, s->doc, &e.value, s->at++, ret);
		s->open = false;
		TRY(unwind_begin(r, &done, ret));
		if (done)
			return STATUS_OK;
	}
}

static void
unwind_fini(struct mql_stage_run *r)
{
	struct unwind_state *s = r->state;

	arena_free(s->keep);
}

const struct mql_stage_ops mql_unwind_ops = { .next = unwind_next,
					      .fini = unwind_fini,
					      .state_bytes = sizeof(struct unwind_state) };

static enum status
unwind_option(struct mql_stages *c, struct unwind_stage *u, const struct bson_element *e,
	      struct bson_value *path)
{
	if (mql_is(e->name, "path")) {
		if (e->value.type != BSON_STRING)
			return mql_fail(c->q, 28808,
					"expected a string as the path for $unwind stage, got %s",
					bson_type_name(e->value.type));
		*path = e->value;
	} else if (mql_is(e->name, "preserveNullAndEmptyArrays")) {
		if (e->value.type != BSON_BOOL)
			return mql_fail(c->q, 28809,
					"expected a boolean for the preserveNullAndEmptyArrays "
					"option to $unwind stage, got %s",
					bson_type_name(e->value.type));
		u->preserve = bson_truth(&e->value);
	} else if (mql_is(e->name, "includeArrayIndex")) {
		if (e->value.type != BSON_STRING || !bson_text(&e->value).len)
			return mql_fail(c->q, 28810,
					"expected a non-empty string for the includeArrayIndex  "
					"option to $unwind stage, got %s",
					bson_type_name(e->value.type));
		u->index = bson_text(&e->value);
		if (u->index.ptr[0] == '$')
			return mql_fail(c->q, 28822,
					"includeArrayIndex option to $unwind stage should not be "
					"prefixed with a '$': %.*s",
					STR_ARG(u->index));
		TRY(mql_field_path_check(c->q, u->index));
	} else {
		return mql_fail(c->q, 28811, "unrecognized option to $unwind stage: %.*s",
				STR_ARG(e->name));
	}
	return STATUS_OK;
}

MQL_STAGE_COMPILE(unwind)
{
	struct unwind_stage *u = mql_stage_alloc(c, sizeof(*u));
	struct bson_value path = { 0 };
	struct bson_element e;
	struct bson_iter i;

	if (!u)
		return mql_full(c->q);
	if (v->type == BSON_STRING)
		path = *v;
	else if (v->type != BSON_DOCUMENT)
		return mql_fail(c->q, 15981,
				"expected either a string or an object as specification for "
				"$unwind stage, got %s",
				bson_type_name(v->type));
	else
		for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);)
			TRY(unwind_option(c, u, &e, &path));
	if (path.type != BSON_STRING || !bson_text(&path).len)
		return mql_fail(c->q, 28812, "no path specified to $unwind stage");
	if (bson_text(&path).ptr[0] != '$')
		return mql_fail(c->q, 28818,
				"path option to $unwind stage should be prefixed with a '$': %.*s",
				STR_ARG(bson_text(&path)));
	u->path = str_skip(bson_text(&path), 1);
	TRY(mql_field_path_check(c->q, u->path));
	return mql_stage_add(c, stage, v, &mql_unwind_ops, u);
}

/* ---- $redact ---- */

struct redact {
	struct mql_stage_run *r;
	struct mql *q;
	struct str root;
	struct bson_builder out;
};

static enum status redact_document(struct redact *d, struct str name, struct str doc, bool outer,
				   bool *ret_kept);

static enum status
redact_value(struct redact *d, const struct bson_element *e)
{
	struct bson_element inner;
	struct bson_iter i;
	bool kept;

	TRY(step_count(1));
	if (e->value.type == BSON_DOCUMENT)
		return redact_document(d, e->name, bson_text(&e->value), false, &kept);
	if (e->value.type != BSON_ARRAY) {
		bson_put(&d->out, e->name, &e->value);
		return STATUS_OK;
	}
	bson_begin_array(&d->out, e->name);
	for (bson_iter_begin(&i, bson_text(&e->value)); bson_iter_read(&i, &inner);)
		TRY(redact_value(d, &inner));
	bson_end(&d->out);
	return STATUS_OK;
}

static enum status
redact_members(struct redact *d, struct str doc)
{
	struct bson_element e;
	struct bson_iter i;

	for (bson_iter_begin(&i, doc); bson_iter_read(&i, &e);)
		TRY(redact_value(d, &e));
	return STATUS_OK;
}

static enum status
redact_document(struct redact *d, struct str name, struct str doc, bool outer, bool *ret_kept)
{
	struct mql_env env = mql_stage_env(d->r, d->root);
	struct bson_value v;
	bool text;

	env.current = BSON_OF_DOCUMENT(doc);
	TRY(mql_expr_run(d->r->stage->more, d->q, &env, &v));
	text = v.type == BSON_STRING;
	*ret_kept = false;
	if (text && mql_is(bson_text(&v), "prune"))
		return STATUS_OK;
	*ret_kept = true;
	if (text && mql_is(bson_text(&v), "keep")) {
		if (outer)
			bson_put_elements(&d->out, doc);
		else
			bson_put_document(&d->out, name, doc);
		return step_count_bytes(doc.len);
	}
	if (!text || !mql_is(bson_text(&v), "descend"))
		return mql_fail(d->q, 17053,
				"$redact's expression should not return anything aside from the "
				"variables $$KEEP, $$DESCEND, and $$PRUNE, but returned %s",
				(int)v.type == MQL_MISSING ? "missing"
							   : mql_text(d->q, STR(""), &v));
	if (outer)
		return redact_members(d, doc);
	bson_begin_document(&d->out, name);
	TRY(redact_members(d, doc));
	bson_end(&d->out);
	return STATUS_OK;
}

/*
 * STATUS_NOT_FOUND: nothing of it is kept. Not a part of redact_next(), whose frame is on the stack
 * while all stages before it run.
 */
__attribute__((noinline)) static enum status
redact_root(struct mql_stage_run *r, struct str doc, struct str *ret)
{
	struct buf out = BUF_INIT_OF(BSON_MOST_BYTES, r->run->options.part);
	struct redact d = { .r = r, .root = doc, .q = mql_stage_begin(r) };
	enum status status;
	bool kept;

	bson_builder_init(&d.out, &out);
	bson_begin(&d.out);
	status = redact_document(&d, STR(""), d.root, true, &kept);
	bson_end(&d.out);
	if (status == STATUS_OK && kept)
		return mql_keep(d.q, &out, ret);
	buf_release(&out);
	return status == STATUS_OK ? STATUS_NOT_FOUND : status;
}

static enum status
redact_next(struct mql_stage_run *r, struct str *ret)
{
	enum status status = STATUS_NOT_FOUND;
	struct str doc;

	while (status == STATUS_NOT_FOUND) {
		TRY(r->from->next(r->from, &doc));
		status = redact_root(r, doc, ret);
	}
	return status;
}

const struct mql_stage_ops mql_redact_ops = { .next = redact_next };

MQL_STAGE_COMPILE(redact)
{
	struct mql_expr *e;

	TRY(mql_expr_compile(c->q, v, c->scope, &e));
	return mql_stage_add(c, stage, v, &mql_redact_ops, e);
}

/* ---- $sample ---- */

struct sample_state {
	struct arena *keep;
	struct str *docs;
	size_t count;
	size_t cap;
	size_t next;
	bool read;
};

/* Each document so far is among the chosen ones with the same chance. */
static enum status
sample_add(struct mql_stage_run *r, struct str doc, int64_t seen)
{
	struct sample_state *s = r->state;
	int64_t size = mql_stage_number(r->stage);
	size_t at = s->count;
	uint64_t random;

	if (seen >= size) {
		rand_bytes(&random, sizeof(random));
		random %= (uint64_t)seen + 1;
		if (random >= (uint64_t)size)
			return STATUS_OK;
		at = random;
	} else {
		struct str *docs = arena_grow(s->keep, s->docs, s->count, &s->cap, sizeof(*docs));

		if (!docs)
			return mql_stage_no_disk(r, s->keep);
		s->docs = docs;
		s->count++;
	}
	s->docs[at] = arena_dup(s->keep, doc);
	return s->docs[at].ptr ? STATUS_OK : mql_stage_no_disk(r, s->keep);
}

static enum status
sample_read(struct mql_stage_run *r)
{
	struct sample_state *s = r->state;
	enum status status;
	int64_t seen = 0;
	struct str doc;

	s->keep = mql_run_arena(r->run, r->run->options.stage_bytes);
	if (!s->keep)
		return STATUS_NOMEM;
	while ((status = r->from->next(r->from, &doc)) == STATUS_OK) {
		TRY(step_count_bytes(doc.len));
		TRY(sample_add(r, doc, seen++));
	}
	if (status != STATUS_NOT_FOUND)
		return status;
	for (size_t i = s->count; i > 1; i--) {
		uint64_t random;
		struct str swap = s->docs[i - 1];

		rand_bytes(&random, sizeof(random));
		s->docs[i - 1] = s->docs[random % i];
		s->docs[random % i] = swap;
		TRY(step_count(1));
	}
	return STATUS_OK;
}

static enum status
sample_next(struct mql_stage_run *r, struct str *ret)
{
	struct sample_state *s = r->state;

	if (!s->read)
		TRY(sample_read(r));
	s->read = true;
	if (s->next == s->count)
		return STATUS_NOT_FOUND;
	*ret = s->docs[s->next++];
	return STATUS_OK;
}

static void
sample_fini(struct mql_stage_run *r)
{
	struct sample_state *s = r->state;

	arena_free(s->keep);
}

static const struct mql_stage_ops sample_ops = { .next = sample_next,
						 .fini = sample_fini,
						 .state_bytes = sizeof(struct sample_state) };

MQL_STAGE_COMPILE(sample)
{
	struct number_stage *n = mql_stage_alloc(c, sizeof(*n));
	struct bson_value size;
	struct bson_element e;
	struct bson_iter i;
	double d;

	if (!n)
		return mql_full(c->q);
	if (v->type != BSON_DOCUMENT)
		return mql_fail(c->q, 28745, "the $sample stage specification must be an object");
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);)
		if (!mql_is(e.name, "size"))
			return mql_fail(c->q, 28748, "unrecognized option to $sample: %.*s",
					STR_ARG(e.name));
	if (!bson_find(bson_text(v), STR("size"), &size))
		return mql_fail(c->q, 28749, "$sample stage must specify a size");
	if (!bson_is_number(&size))
		return mql_fail(c->q, 28746, "size argument to $sample must be a number");
	d = trunc(bson_to_double(&size));
	if (isnan(d) || d < 1)
		return mql_fail(c->q, 28747, "size argument to $sample must be a positive integer");
	n->n = d >= 0x1p62 ? INT64_MAX : (int64_t)d;
	return mql_stage_add(c, stage, v, &sample_ops, n);
}

/* ---- $documents ---- */

struct documents_state {
	struct bson_iter iter;
	bool read;
};

static enum status
documents_read(struct mql_stage_run *r)
{
	struct documents_state *s = r->state;
	struct mql *q = mql_stage_begin(r);
	struct mql_env env = mql_stage_env(r, BSON_EMPTY);
	struct bson_element e;
	struct bson_iter i;
	struct bson_value v;

	TRY(mql_expr_run(r->stage->more, q, &env, &v));
	if (v.type != BSON_ARRAY)
		return mql_fail(q, 5858203, "$documents: expected an array, but got %s",
				(int)v.type == MQL_MISSING ? "missing" : bson_type_name(v.type));
	for (bson_iter_begin(&i, bson_text(&v)); bson_iter_read(&i, &e);)
		if (e.value.type != BSON_DOCUMENT)
			return mql_fail(q, 40228,
					"'newRoot' expression must evaluate to an object, but "
					"resulting value was: %s. Type of resulting value: '%s'.",
					mql_text(q, STR(""), &e.value),
					bson_type_name(e.value.type));
	bson_iter_begin(&s->iter, bson_text(&v));
	s->read = true;
	return STATUS_OK;
}

static enum status
documents_next(struct mql_stage_run *r, struct str *ret)
{
	struct documents_state *s = r->state;
	struct bson_element e;

	if (!s->read)
		TRY(documents_read(r));
	TRY(step_count(1));
	if (!bson_iter_read(&s->iter, &e))
		return STATUS_NOT_FOUND;
	*ret = bson_text(&e.value);
	return STATUS_OK;
}

static const struct mql_stage_ops documents_ops = { .next = documents_next,
						    .state_bytes = sizeof(struct documents_state) };

MQL_STAGE_COMPILE(documents)
{
	struct mql_expr *e;

	TRY(mql_expr_compile(c->q, v, c->scope, &e));
	return mql_stage_add(c, stage, v, &documents_ops, e);
}
