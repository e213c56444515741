/*
 * What stands behind $changeStream: stages that take events one by one. Each batch of events runs
 * through the pipeline anew, which therefore keeps nothing between two of them.
 */
#include "base/budget.h"
#include "base/mem.h"
#include "door/mongo/watch_int.h"
#include "mql/collation.h"

enum {
	STAGES_BYTES = 16 * 1024 * 1024, /* of the pipeline and what is compiled of it */
};

struct watch_stages {
	struct budget_part part;
	bool has_part;
	struct arena *arena;
	struct mql mql;
	struct mql_collation *collation;
	const struct mql_scope *scope;
	const struct mql_bound *bound;
	struct mql_pipeline *pipeline;
};

static const char *const allowed[] = {
	"$match", "$project",     "$addFields",   "$set",
	"$unset", "$replaceRoot", "$replaceWith", "$redact",
};

static bool
is_allowed(struct str name)
{
	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
		if (str_eq(name, str_from_cstr(allowed[i])))
			return true;
	return false;
}

/* The pipeline without its first stage, as an array in the arena. */
static enum status
stages_copy(struct call *c, struct arena *arena, struct str pipeline, struct str *ret)
{
	struct buf AUTO(buf_release) made = BUF_INIT(BSON_MOST_BYTES);
	struct bson_builder b;
	struct bson_element e, stage;
	struct bson_iter i, in;
	bool first = true;

	bson_builder_init(&b, &made);
	bson_begin(&b);
	bson_begin_array(&b, STR("p"));
	for (bson_iter_begin(&i, pipeline); bson_iter_read(&i, &e); first = false) {
		if (first)
			continue;
		bson_put(&b, STR(""), &e.value);
		if (e.value.type != BSON_DOCUMENT)
			continue;
		bson_iter_begin(&in, e.value.text);
		if (bson_iter_read(&in, &stage) &&
		    str_eq(stage.name, STR("$changeStreamSplitLargeEvent")))
			return call_fail(c, MONGO_NOT_IMPLEMENTED,
					 "$changeStreamSplitLargeEvent is not there");
	}
	bson_end(&b);
	bson_end(&b);
	TRY(buf_status(&made));
	bson_iter_begin(&i, buf_str(&made));
	if (!bson_iter_read(&i, &e))
		return STATUS_CORRUPT;
	*ret = arena_dup(arena, e.value.text);
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
stages_check(struct call *c, struct str array)
{
	struct bson_element e, stage;
	struct bson_iter i, in;

	for (bson_iter_begin(&i, array); bson_iter_read(&i, &e);) {
		bson_iter_begin(&in, e.value.text);
		if (bson_iter_read(&in, &stage) && !is_allowed(stage.name))
			return call_fail(c, MONGO_ILLEGAL_OPERATION,
					 "%.*s is not permitted in a $changeStream pipeline",
					 STR_ARG(stage.name));
	}
	return STATUS_OK;
}

static enum status
stages_compile(struct watch_stages *s, struct call *c, struct str pipeline, struct str let,
	       struct str collation)
{
	struct mql_pipeline_options options = { 0 };
	struct str array;

	TRY(stages_copy(c, s->arena, pipeline, &array));
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
		 struct watch_stages **ret)
{
	const struct budget_part *part = arena_part(c->arena);
	struct watch_stages *s;

	*ret = NULL;
	if (bson_count(pipeline) < 2)
		return STATUS_OK;
	*ret = s = mem_zalloc(sizeof(*s));
	if (!s)
		return STATUS_NOMEM;
	budget_part_init(&s->part, part ? part->budget : NULL);
	budget_enter(&s->part);
	s->has_part = true;
	s->arena = arena_new(STAGES_BYTES);
	if (!s->arena)
		return STATUS_NOMEM;
	arena_set_part(s->arena, &s->part);
	return stages_compile(s, c, pipeline, let, collation);
}

void
watch_stages_free(struct watch_stages *s)
{
	if (!s)
		return;
	mql_collation_free(s->collation);
	arena_free(s->arena);
	if (s->has_part)
		budget_part_release(&s->part);
	mem_free(s);
}

static enum status
put_result(struct call *c, const struct watch_source *from, struct str event)
{
	struct bson_value id;

	if (!bson_find(event, STR("_id"), &id) || id.type != BSON_DOCUMENT ||
	    !str_eq(id.text, from->id))
		return call_fail(
			c, MONGO_CHANGE_STREAM_FATAL,
			"Encountered an event whose _id field, which contains the resume token, "
			"was modified by the pipeline. Modifying the _id field of an event makes "
			"it impossible to resume the stream from that point. Only transformations "
			"that retain the unmodified _id field are allowed.");
	bson_put_document(c->reply, STR(""), event);
	return buf_status(c->reply->out);
}

enum status
watch_stages_run(struct watch_stages *s, struct call *c, struct watch_source *from,
		 size_t *ret_count)
{
	const struct mql_store store = { 0 };
	struct mql_run_options options = { .store = &store, .let = s->bound, .part = &s->part };
	struct mql_run *run = NULL;
	struct mql q = s->mql;
	enum status status;
	struct str event;

	q.err = &c->err;
	q.code = 0;
	TRY(data_mql_status(c, &q, mql_run_new(s->pipeline, &q, &options, &from->source, &run)));
	while ((status = mql_run_next(run, &q, &event)) == STATUS_OK) {
		status = put_result(c, from, event);
		if (status != STATUS_OK)
			break;
		(*ret_count)++;
	}
	if (status != STATUS_NOT_FOUND && !c->code)
		status = data_mql_status(c, &q, status);
	mql_run_free(run);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}
