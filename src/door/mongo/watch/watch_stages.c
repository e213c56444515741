/*
 * What stands behind $changeStream: stages that take events one by one. Each batch of events runs
 * through the pipeline anew, which therefore keeps nothing between two of them.
 */
#include "base/mem.h"
#include "base/words.h"
#include "door/mongo/watch/watch_int.h"
#include "net/memory.h"
#include "mql/collation.h"

enum {
	STAGES_BYTES = 16 * 1024 * 1024, /* of the pipeline and what is compiled of it */
};

struct watch_stages {
	struct budget_part part;
	struct arena *arena;
	struct mql mql;
	struct mql_collation *collation;
	const struct mql_scope *scope;
	const struct mql_bound *bound;
	struct mql_pipeline *pipeline;
};

enum {
	SPLIT_IS_NOT_EMPTY = 7182800, /* MongoDB's numbers */
	SPLIT_IS_NOT_LAST = 7182802,
};

static const char *const allowed[] = {
	"$match", "$project",     "$addFields",   "$set",
	"$unset", "$replaceRoot", "$replaceWith", "$redact",
};

/* True for $changeStreamSplitLargeEvent; `*ret` is what stands behind the name. */
static bool
stage_splits(const struct bson_value *stage, struct bson_value *ret)
{
	struct bson_element e;
	struct bson_iter i;

	if (stage->type != BSON_DOCUMENT)
		return false;
	bson_iter_begin(&i, bson_text(stage));
	if (!bson_iter_read(&i, &e) || !str_eq(e.name, STR("$changeStreamSplitLargeEvent")))
		return false;
	*ret = e.value;
	return true;
}

static bool
is_allowed(struct str name)
{
	return WORDS_HAVE(allowed, name);
}

/*
 * The pipeline without its first stage, and without $changeStreamSplitLargeEvent at its end, as an
 * array in the arena.
 */
static enum status
stages_copy(struct call *c, struct arena *arena, struct str pipeline, struct str *ret,
	    size_t *ret_count, bool *ret_splits)
{
	struct buf AUTO(buf_release) made = BUF_INIT_OF(BSON_MOST_BYTES, arena_part(c->arena));
	struct bson_builder b;
	struct bson_element e;
	struct bson_value spec;
	struct bson_iter i;
	bool first = true;

	*ret_splits = false;
	*ret_count = 0;
	bson_builder_init(&b, &made);
	bson_begin(&b);
	bson_begin_array(&b, STR("p"));
	for (bson_iter_begin(&i, pipeline); bson_iter_read(&i, &e); first = false) {
		if (first)
			continue;
		if (*ret_splits)
			return call_fail(c, SPLIT_IS_NOT_LAST,
					 "$changeStreamSplitLargeEvent must be the last stage in "
					 "the pipeline");
		*ret_splits = stage_splits(&e.value, &spec);
		if (*ret_splits && (spec.type != BSON_DOCUMENT || !bson_is_empty(bson_text(&spec))))
			return call_fail(c, SPLIT_IS_NOT_EMPTY,
					 "$changeStreamSplitLargeEvent spec should be an empty "
					 "object");
		if (*ret_splits)
			continue;
		bson_put(&b, STR(""), &e.value);
		(*ret_count)++;
	}
	bson_end(&b);
	bson_end(&b);
	TRY(buf_status(&made));
	bson_iter_begin(&i, buf_str(&made));
	if (!bson_iter_read(&i, &e))
		return STATUS_CORRUPT;
	*ret = arena_dup(arena, bson_text(&e.value));
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
stages_check(struct call *c, struct str array)
{
	struct bson_element e, stage;
	struct bson_iter i, in;

	for (bson_iter_begin(&i, array); bson_iter_read(&i, &e);) {
		bson_iter_begin(&in, bson_text(&e.value));
		if (bson_iter_read(&in, &stage) && !is_allowed(stage.name))
			return call_fail(c, MONGO_ILLEGAL_OPERATION,
					 "%.*s is not permitted in a $changeStream pipeline",
					 STR_ARG(stage.name));
	}
	return STATUS_OK;
}

static enum status
stages_compile(struct watch_stages *s, struct call *c, struct str array, struct str let,
	       struct str collation)
{
	struct mql_pipeline_options options = { 0 };

	data_mql(c, s->arena, NULL, &s->mql);
	if (collation.len && !bson_is_empty(collation)) {
		TRY(data_mql_status(c, &s->mql,
				    mql_collation_new(&s->mql, collation, &s->collation)));
		s->mql.texts = s->collation ? mql_collation_texts(s->collation) : NULL;
	}
	let = arena_dup(s->arena, let.len ? let : BSON_EMPTY);
	if (!let.ptr)
		return STATUS_LIMIT;
	TRY(data_mql_status(c, &s->mql, data_let(&s->mql, let, &s->scope, &s->bound)));
	options.scope = s->scope;
	TRY(data_mql_status(c, &s->mql,
			    mql_pipeline_compile(&s->mql, array, &options, &s->pipeline)));
	return stages_check(c, array);
}

enum status
watch_stages_new(struct call *c, struct str pipeline, struct str let, struct str collation,
		 struct watch_stages **ret, bool *ret_splits)
{
	struct watch_stages *s;
	struct str array;
	size_t count;

	*ret = NULL;
	TRY(stages_copy(c, c->arena, pipeline, &array, &count, ret_splits));
	if (!count)
		return STATUS_OK;
	*ret = s = mem_zalloc(sizeof(*s));
	if (!s)
		return STATUS_NOMEM;
	net_memory_part_init(&s->part, arena_part(c->arena), true);
	net_memory_part_keep(&s->part);
	s->arena = arena_new(STAGES_BYTES);
	if (!s->arena)
		return STATUS_NOMEM;
	arena_set_part(s->arena, &s->part);
	array = arena_dup(s->arena, array);
	return array.ptr ? stages_compile(s, c, array, let, collation) : STATUS_LIMIT;
}

void
watch_stages_free(struct watch_stages *s)
{
	if (!s)
		return;
	mql_collation_free(s->collation);
	arena_free(s->arena);
	budget_part_release(&s->part);
	mem_free(s);
}

enum status
watch_stages_run(struct watch_stages *s, struct call *c, struct watch_source *from, watch_put *put)
{
	const struct mql_store store = { 0 };
	struct mql_run_options options = { .store = &store, .one_by_one = true };
	struct mql_source *next = &from->source;
	struct mql_run *run = NULL;
	enum status status;
	struct str event;
	bool more = true;
	struct mql q;

	if (!s) {
		do {
			status = next->next(next, &event);
			if (status == STATUS_OK)
				status = put(from, event, &more);
		} while (status == STATUS_OK && more);
		next->close(next);
		return status == STATUS_NOT_FOUND ? STATUS_OK : status;
	}
	options.let = s->bound;
	options.part = &s->part;
	q = s->mql;
	/* The command that has made the stream is over. */
	scripts_init(&c->scripts, c);
	q.scripts = &c->scripts.scripts;
	q.err = &c->err;
	q.code = 0;
	TRY(data_mql_status(c, &q, mql_run_new(s->pipeline, &q, &options, next, &run)));
	while ((status = mql_run_next(run, &q, &event)) == STATUS_OK) {
		status = put(from, event, &more);
		if (status != STATUS_OK || !more)
			break;
	}
	if (status != STATUS_OK && status != STATUS_NOT_FOUND && !c->code)
		status = data_mql_status(c, &q, status);
	mql_run_free(run);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}
