/*
 * Pipelines as cases: on documents each gives documents, or fails with a code. Other collections
 * are the members of `other_documents`.
 */
#ifndef FROND_TESTS_MQL_STAGES_CASE_H
#define FROND_TESTS_MQL_STAGES_CASE_H

#include "mql/stage/stages.h"

#include "mql_case.h"

enum {
	RUN_DEFAULT = 0,
	RUN_SMALL = 1, /* stages have little memory, and may use files */
	RUN_NO_DISK = 2,
	RUN_NOWHERE = 3, /* there is no folder for files */
	STAGE_BYTES = 64 * 1024,
};

/* A source of the documents of an array. */
struct source {
	struct mql_source source;
	struct bson_iter iter;
	bool closed;
};

static inline enum status
source_next(struct mql_source *s, struct str *ret)
{
	struct source *a = (struct source *)s;
	struct bson_element e;

	assert_false(a->closed);
	if (!bson_iter_read(&a->iter, &e))
		return STATUS_NOT_FOUND;
	*ret = bson_text(&e.value);
	return STATUS_OK;
}

static inline void
source_close(struct mql_source *s)
{
	struct source *a = (struct source *)s;

	assert_false(a->closed);
	a->closed = true;
}

/* Another collection, whose filter is run here. */
struct other {
	struct mql_source source;
	struct bson_iter iter;
	struct mql_match *match;
	struct arena *arena;
};

static const char *other_documents = "{}";

static inline enum status
other_next(struct mql_source *s, struct str *ret)
{
	struct other *o = (struct other *)s;
	struct mql q = { .arena = o->arena };
	struct bson_element e;
	bool matches = false;

	while (!matches) {
		if (!bson_iter_read(&o->iter, &e))
			return STATUS_NOT_FOUND;
		TRY(mql_match_run(o->match, &q, bson_text(&e.value), &matches, NULL));
	}
	*ret = bson_text(&e.value);
	return STATUS_OK;
}

static inline void
other_close(struct mql_source *s)
{
	struct other *o = (struct other *)s;

	arena_free(o->arena);
	free(o);
}

/* Read once: what fails where memory is short is the pipeline alone. */
static inline struct str
other_bson(void)
{
	static const char *of;
	static struct arena *arena;
	static struct str read;

	if (of != other_documents) {
		arena_free(arena);
		arena = arena_new(CASE_BYTES);
		read = case_bson(arena, other_documents);
		of = other_documents;
	}
	return read;
}

static inline enum status
other_open(const struct mql_store *store, struct mql *q, struct str db, struct str collection,
	   struct str filter, struct mql_source **ret)
{
	struct arena *arena = arena_new(CASE_BYTES);
	struct other *o = calloc(1, sizeof(*o));
	struct bson_value array;
	enum status status;
	struct mql own;

	(void)store;
	assert_int_equal(db.len, 0);
	if (!arena) {
		free(o);
		return STATUS_NOMEM;
	}
	o->arena = arena;
	own = (struct mql){ .arena = o->arena };
	o->source = (struct mql_source){ other_next, other_close };
	status = mql_match_compile(&own, filter, &o->match);
	if (status != STATUS_OK) {
		q->code = own.code;
		other_close(&o->source);
		return status;
	}
	if (!bson_find(other_bson(), collection, &array))
		array = BSON_OF_ARRAY(BSON_EMPTY);
	bson_iter_begin(&o->iter, bson_text(&array));
	*ret = &o->source;
	return STATUS_OK;
}

/* No figures of indexes: there are none. */
static inline enum status
other_stats(const struct mql_store *store, struct mql *q, struct str stage, struct str spec,
	    struct mql_source **ret)
{
	(void)store;
	(void)q;
	(void)stage;
	(void)spec;
	(void)ret;
	return STATUS_NOT_FOUND;
}

static const struct mql_store other_store = { .open = other_open, .stats = other_stats };

static inline enum status
run_stages_with(struct mql *q, struct str stages, struct str documents,
		const struct mql_run_options *options, struct buf *out)
{
	const struct mql_pipeline_options compile = { .scope = NULL };
	struct source source = { .source = { source_next, source_close } };
	struct bson_value docs;
	struct bson_builder b;
	struct mql_pipeline *p;
	struct mql_run *run;
	enum status status;
	struct str doc;

	docs = BSON_OF_ARRAY(documents);
	bson_iter_begin(&source.iter, bson_text(&docs));
	TRY(mql_pipeline_compile(q, stages, &compile, &p));
	TRY(mql_run_new(p, q, options, mql_pipeline_has_source(p) ? NULL : &source.source, &run));
	bson_builder_init(&b, out);
	bson_begin(&b);
	bson_begin_array(&b, STR("d"));
	while ((status = mql_run_next(run, q, &doc)) == STATUS_OK) {
		assert_int_equal(bson_check(doc, NULL), STATUS_OK);
		bson_put_document(&b, STR(""), doc);
	}
	bson_end(&b);
	bson_end(&b);
	mql_run_free(run);
	assert_true(source.closed || mql_pipeline_has_source(p));
	return status == STATUS_NOT_FOUND ? buf_status(out) : status;
}

static inline enum status
run_stages(struct mql *q, struct str stages, struct str documents, int flags, struct buf *out)
{
	const struct mql_run_options options = {
		.store = &other_store,
		.disk = flags != RUN_NO_DISK,
		.directory = flags == RUN_NOWHERE ? "/tmp/frond/none" : "/tmp",
		.stage_bytes = flags ? STAGE_BYTES : 0,
	};

	return run_stages_with(q, stages, documents, &options, out);
}

static inline enum status
run_documents(struct mql *q, const char *pipeline, struct str documents, int flags, struct buf *out)
{
	struct bson_value stages;

	assert_true(bson_find(case_bson(q->arena, pipeline), STR("p"), &stages));
	return run_stages(q, bson_text(&stages), documents, flags, out);
}

struct stages_run {
	struct str stages;
	struct str documents;
};

static inline enum status
stages_again(struct mql *q, const void *arg, struct buf *said)
{
	const struct stages_run *run = arg;

	return run_stages(q, run->stages, run->documents, RUN_DEFAULT, said);
}

static inline void
check_memory(struct arena *arena, const char *pipeline, const char *documents)
{
	struct str both = case_bson(
		arena, arena_printf(arena, "{'p':[%s],'d':[%s]}", pipeline, documents).ptr);
	struct bson_value stages = BSON_OF_ARRAY(BSON_EMPTY), docs = BSON_OF_ARRAY(BSON_EMPTY);
	struct stages_run run;

	assert_true(bson_find(both, STR("p"), &stages) && bson_find(both, STR("d"), &docs));
	run = (struct stages_run){ bson_text(&stages), bson_text(&docs) };
	case_memory(stages_again, &run, pipeline);
}

/* What a pipeline makes, as the text of an array. */
static inline const char *
run_text(struct mql *q, const char *pipeline, const char *documents)
{
	struct buf out = BUF_INIT(CASE_BYTES);
	const char *text, *wrapped;
	struct bson_value docs = { .as_text = BSON_EMPTY };
	char *cut;

	wrapped = arena_printf(q->arena, "{'d':[%s]}", documents).ptr;
	assert_true(bson_find(case_bson(q->arena, wrapped), STR("d"), &docs));
	if (run_documents(q, arena_printf(q->arena, "{'p':[%s]}", pipeline).ptr, bson_text(&docs),
			  RUN_DEFAULT, &out) != STATUS_OK) {
		buf_release(&out);
		return arena_printf(q->arena, "%d %s", q->code, case_err.text).ptr;
	}
	text = case_json(q->arena, buf_str(&out));
	buf_release(&out);
	/* {'d':[ … ]} */
	cut = arena_bytes(q->arena, strlen(text));
	memcpy(cut, text + 6, strlen(text) - 8);
	cut[strlen(text) - 8] = '\0';
	return cut;
}

struct stage_case {
	const char *pipeline;
	const char *documents;
	const char *expected;
};

static inline void
check_pipelines(struct arena *arena, const struct stage_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct mql q = case_mql(arena);
		const char *text = run_text(&q, cases[i].pipeline, cases[i].documents);

		if (strcmp(text, cases[i].expected) != 0)
			fail_msg("%s on %s: %s, not %s", cases[i].pipeline, cases[i].documents,
				 text, cases[i].expected);
		check_memory(arena, cases[i].pipeline, cases[i].documents);
	}
}

#endif
