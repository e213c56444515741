#include "door/mongo/cmd/aggregate.h"

#include <assert.h>

#include "base/mem.h"
#include "catalog/catalog.h"
#include "door/mongo/cmd/view.h"
#include "door/mongo/plan/query.h"
#include "door/mongo/txn/client.h"
#include "door/mongo/txn/mongo_int.h"
#include "door/mongo/txn/run.h"
#include "mql/collation.h"
#include "net/memory.h"

struct aggregate {
	struct mql_store store; /* first: it is what the callbacks are given */
	struct call *call;      /* the command that runs now */
	struct arena *arena;
	struct budget_part part;
	struct aggregate_ask ask;
	struct mql mql;
	struct mql_collation *collation;
	struct mql_pipeline *pipeline;
	struct mql_run *run;
	struct collection *collections; /* that are read */
	struct views views;
	unsigned open_views;
	struct str base;        /* the collection below the view that the command names */
	struct collection *own; /* that of the command; NULL: none, or it is closed */
	size_t done;            /* stages that its query does */
	bool counts;            /* the counter of its collection does the first $group */
	struct bson_value hint;
	struct buf back; /* a document that is given once more */
	bool has_back;
};

/* ---- Collections that are read ---- */

struct collection {
	struct mql_source source;
	struct aggregate *a;
	struct query_ask ask;
	struct plan_cover cover;
	struct str ns;
	struct query query;
	bool open;
	bool ended;
	struct buf place;
	struct buf filter;
	struct collection *next, **link;
};

/* Ends the transaction; the query goes on behind its place. */
static enum status
collection_rest(struct collection *s)
{
	if (!s->open)
		return STATUS_OK;
	buf_clear(&s->place);
	buf_append_str(&s->place, query_place(&s->query));
	query_close(&s->query);
	s->open = false;
	return buf_status(&s->place);
}

static enum status
collection_next(struct mql_source *source, struct str *ret)
{
	struct collection *s = (struct collection *)source;
	enum status status = STATUS_OK;

	/* Nothing is read of a pipeline that rests: it has no transaction, and its call is gone. */
	assert(s->a->call);
	if (s->ended)
		return STATUS_NOT_FOUND;
	TRY(buf_status(&s->place));
	if (!s->open) {
		s->ask.place = buf_str(&s->place);
		status = query_open(&s->query, s->a->call, s->ns, &s->ask);
		s->open = true;
	}
	if (status == STATUS_OK)
		status = query_next(&s->query, ret);
	if (status == STATUS_NOT_FOUND) {
		s->ended = true;
		query_close(&s->query);
		s->open = false;
	}
	return status;
}

static void
collection_close(struct mql_source *source)
{
	struct collection *s = (struct collection *)source;

	if (s->open)
		query_close(&s->query);
	if (s->a->own == s)
		s->a->own = NULL;
	*s->link = s->next;
	if (s->next)
		s->next->link = s->link;
	buf_release(&s->place);
	buf_release(&s->filter);
	mem_free(s);
}

static enum status
collection_new(struct aggregate *a, struct str ns, struct str filter, struct collection **ret)
{
	struct collection *s = mem_zalloc(sizeof(*s));

	if (!s)
		return STATUS_NOMEM;
	s->source = (struct mql_source){ collection_next, collection_close };
	s->a = a;
	s->ns = ns;
	s->place = BUF_SHORT(QUERY_PLACE_BYTES);
	s->filter = BUF_INIT_OF(AGGREGATE_BYTES, &a->part);
	s->ask.texts = a->mql.texts;
	s->next = a->collections;
	s->link = &a->collections;
	if (s->next)
		s->next->link = &s->next;
	a->collections = s;
	buf_append_str(&s->filter, filter);
	s->ask.filter = buf_str(&s->filter);
	if (buf_status(&s->filter) != STATUS_OK) {
		enum status status = buf_status(&s->filter);

		s->source.close(&s->source);
		return status;
	}
	*ret = s;
	return STATUS_OK;
}

/* ---- Views that are read ---- */

/* A view's pipeline, with what is asked of its documents behind it. */
struct view_source {
	struct mql_source source;
	struct aggregate *a;
	struct arena *arena;
	struct mql mql;
	struct mql_run *run;
};

static enum status
view_next(struct mql_source *source, struct str *ret)
{
	struct view_source *s = (struct view_source *)source;

	/* A getMore has its own, and not those of the aggregate that has opened the view. */
	s->mql.err = s->a->mql.err;
	s->mql.scripts = s->a->mql.scripts;
	return data_mql_status(s->a->call, &s->mql, mql_run_next(s->run, &s->mql, ret));
}

static void
view_close(struct mql_source *source)
{
	struct view_source *s = (struct view_source *)source;

	/* The run first: what it has open lies in the arena. */
	mql_run_free(s->run);
	arena_free(s->arena);
	assert(s->a->open_views > 0);
	s->a->open_views--;
	mem_free(s);
}

/* Where stages whose memory is full put files, which have no names. */
static const char *
aggregate_directory(const struct aggregate *a)
{
	return a->call->mongo->config.settings->spill_directory;
}

/* The view's stages and a $match, in the arena. */
static enum status
view_stages(const struct view *view, struct str filter, struct arena *arena, struct str *ret)
{
	struct buf AUTO(buf_release) match = BUF_INIT_OF(2 * BSON_MOST_BYTES, arena_part(arena));
	struct bson_builder b;

	*ret = view->pipeline;
	if (bson_is_empty(filter))
		return STATUS_OK;
	bson_builder_init(&b, &match);
	bson_begin_outer_array(&b);
	bson_begin_document(&b, STR(""));
	bson_put_document(&b, STR("$match"), filter);
	bson_end(&b);
	bson_end(&b);
	TRY(buf_status(&match));
	return view_concat(view->pipeline, buf_str(&match), arena, ret);
}

static enum status
view_run_new(struct view_source *s, const struct view *view, struct str filter)
{
	struct aggregate *a = s->a;
	const struct mql_pipeline_options compile = { .scope = NULL };
	struct mql_run_options options = { .store = &a->store,
					   .part = &a->part,
					   .disk = a->ask.disk,
					   .directory = aggregate_directory(a) };
	struct mql_pipeline_front front;
	struct collection *input = NULL;
	struct mql_pipeline *p;
	struct str stages;

	arena_set_part(s->arena, &a->part);
	data_mql(a->call, s->arena, a->mql.texts, &s->mql);
	TRY(view_stages(view, filter, s->arena, &stages));
	TRY(mql_pipeline_compile(&s->mql, stages, &compile, &p));
	if (!mql_pipeline_has_source(p)) {
		mql_pipeline_front(p, &front);
		TRY(collection_new(a, view->base, front.filter, &input));
		options.skip_stages = front.filter_stages;
	}
	return mql_run_new(p, &s->mql, &options, input ? &input->source : NULL, &s->run);
}

static enum status
view_open(struct aggregate *a, const struct view *view, struct str filter, struct mql_source **ret)
{
	struct view_source *s;
	enum status status;

	/* Views cannot read themselves when they are made, but may have been renamed since. */
	if (a->open_views == VIEW_DEPTH)
		return call_fail(a->call, MONGO_VIEW_DEPTH,
				 "more than %d views read each other (VIEW_DEPTH)", VIEW_DEPTH);
	s = mem_zalloc(sizeof(*s));
	if (!s)
		return STATUS_NOMEM;
	s->source = (struct mql_source){ view_next, view_close };
	s->a = a;
	a->open_views++;
	s->arena = arena_new(AGGREGATE_BYTES);
	status = s->arena ? data_mql_status(a->call, &s->mql, view_run_new(s, view, filter))
			  : STATUS_NOMEM;
	if (status == STATUS_OK)
		*ret = &s->source;
	else
		view_close(&s->source);
	return status;
}

/* ---- What pipelines ask for ---- */

static enum status
store_open(const struct mql_store *store, struct mql *q, struct str db, struct str collection,
	   struct str filter, struct mql_source **ret)
{
	struct aggregate *a = (struct aggregate *)(uintptr_t)store;
	const struct view *view;
	struct collection *s;
	struct str ns;

	(void)q;
	ns = arena_printf(a->arena, "%.*s.%.*s", STR_ARG(db.len ? db : a->ask.db),
			  STR_ARG(collection));
	if (!ns.ptr)
		return STATUS_LIMIT;
	view = views_find(&a->views, ns);
	if (view)
		return view_open(a, view, filter, ret);
	TRY(collection_new(a, ns, filter, &s));
	*ret = &s->source;
	return STATUS_OK;
}

static enum status
store_write(const struct mql_store *store, struct mql *q, const struct mql_write *w,
	    struct mql_source *from)
{
	struct aggregate *a = (struct aggregate *)(uintptr_t)store;

	return mongo_aggregate_write(a->call, w, q, from);
}

static enum status
store_stats(const struct mql_store *store, struct mql *q, struct str stage, struct str spec,
	    struct mql_source **ret)
{
	struct aggregate *a = (struct aggregate *)(uintptr_t)store;

	(void)q;
	TRY(api_check_stage(a->call, stage, spec));
	if (str_eq(stage, STR("$currentOp")) || str_eq(stage, STR("$listLocalSessions")))
		return mongo_aggregate_server(a->call, a->ask.no_collection, a->arena, stage, spec,
					      ret);
	if (str_eq(stage, STR("$indexStats")))
		return mongo_aggregate_indexes(a->call, a->ask.ns, a->arena, ret);
	return mongo_aggregate_stats(a->call, a->ask.ns, a->arena, spec, a->mql.now_ms, ret);
}

/* ---- Beginning ---- */

/* The command's variables, whose values are constants. */
static enum status
compile_let(struct aggregate *a, const struct mql_scope **scope, const struct mql_bound **bound)
{
	const struct mql_env env = { .root = BSON_EMPTY, .current = MQL_NO_VALUE };
	struct bson_element e;
	struct mql_expr *expr;
	struct bson_iter i;

	for (bson_iter_begin(&i, a->ask.let); bson_iter_read(&i, &e);) {
		struct mql_bound *b = arena_zalloc(a->arena, sizeof(*b));

		if (!b)
			return STATUS_LIMIT;
		TRY(mql_scope_check_name(&a->mql, e.name));
		TRY(mql_expr_compile(&a->mql, &e.value, NULL, &expr));
		TRY(mql_expr_run(expr, &a->mql, &env, &b->value));
		TRY(mql_scope_add(&a->mql, *scope, e.name, scope));
		b->outer = *bound;
		*bound = b;
	}
	return STATUS_OK;
}

/* Other databases have rights of their own, and so has writing. */
static enum status
check_rights(struct aggregate *a)
{
	const struct mql_write *w = mql_pipeline_write(a->pipeline);
	const struct rights *rights = &a->call->client->rights;
	struct str db, collection;

	for (size_t i = 0; mql_pipeline_reads(a->pipeline, i, &db, &collection); i++)
		if (db.len && !(rights_on(rights, db) & RIGHT_READ))
			return call_fail(a->call, MONGO_UNAUTHORIZED,
					 "not authorized on %.*s to read a collection",
					 STR_ARG(db));
	db = w && w->db.len ? w->db : a->ask.db;
	if (w && !(rights_on(rights, db) & RIGHT_WRITE))
		return call_fail(a->call, MONGO_UNAUTHORIZED,
				 "not authorized on %.*s to write a collection", STR_ARG(db));
	return STATUS_OK;
}

/* {_id: 1} or {_id: -1}: an order that the collection can be read in. */
static int
order_of(struct str sort)
{
	struct bson_element e;
	struct bson_iter i;
	int64_t n;

	if (!sort.ptr || bson_count(sort) != 1)
		return 0;
	bson_iter_begin(&i, sort);
	if (!bson_iter_read(&i, &e) || !str_eq(e.name, STR("_id")) || !bson_to_int64(&e.value, &n))
		return 0;
	return n < 0 ? -1 : 1;
}

/* True in `*ret` if an index gives the documents in the order of the pipeline's first sort. */
static enum status
collection_sort(struct collection *s, const struct mql_pipeline_front *front, bool *ret)
{
	s->ask.sort = front->sort;
	s->ask.most = (uint64_t)front->limit;
	s->open = true;
	TRY(query_open(&s->query, s->a->call, s->ns, &s->ask));
	TRY(query_is_sorted(&s->query, ret));
	s->ask.sorted = *ret;
	if (!*ret)
		s->ask.sort = (struct str){ 0 };
	return STATUS_OK;
}

/* What a $group looks at may be in an index. */
static void
collection_cover(struct collection *s, size_t stage)
{
	struct aggregate *a = s->a;
	struct str *fields = arena_alloc(a->arena, INDEX_COLUMNS * sizeof(*fields));

	s->cover = (struct plan_cover){ .filter = s->ask.filter, .fields = fields };
	if (fields &&
	    mql_pipeline_needs(a->pipeline, stage, fields, INDEX_COLUMNS, &s->cover.count))
		s->ask.cover = &s->cover;
}

/* `*ret_spec`: of a $group that counts all documents of the collection, and comes first. */
static bool
begins_with_counting(const struct aggregate *a, const struct mql_pipeline_front *front,
		     struct bson_value *ret_spec)
{
	struct str name;

	return !a->ask.hint && bson_is_empty(front->filter) && !front->sort.ptr && !front->limit &&
	       mql_pipeline_stage(a->pipeline, front->filter_stages, &name, ret_spec) &&
	       mongo_aggregate_only_counts(name, ret_spec);
}

static enum status
open_input(struct aggregate *a, struct mql_run_options *options, struct mql_source **ret)
{
	struct mql_pipeline_front front;
	struct bson_value spec;
	struct collection *s;
	bool sorted = false;
	enum status status;

	*ret = NULL;
	if (mql_pipeline_has_source(a->pipeline))
		return STATUS_OK;
	if (a->ask.no_collection)
		return call_fail(a->call, MONGO_INVALID_NAMESPACE,
				 "{aggregate: 1} is not valid for a pipeline that begins with a "
				 "stage which needs a collection");
	mql_pipeline_front(a->pipeline, &front);
	a->counts = begins_with_counting(a, &front, &spec);
	if (a->counts) {
		options->skip_stages = front.filter_stages + 1;
		return mongo_aggregate_counted(&a->call, a->base, bson_text(&spec), ret);
	}
	TRY(collection_new(a, a->base, front.filter, &s));
	options->skip_stages = front.filter_stages;
	*ret = &s->source;
	a->own = s;
	s->ask.figures = a->ask.figures;
	s->ask.hint = a->ask.hint;
	s->ask.first = front.limit <= PLAN_FIRST_MOST ? (size_t)front.limit : 0;
	s->ask.order = order_of(front.sort);
	/* A collation orders strings otherwise than the collection does. */
	if (s->ask.order && !a->mql.texts && (!s->ask.hint || plan_hint_is_id(s->ask.hint))) {
		options->skip_stages += 1;
		return STATUS_OK;
	}
	s->ask.order = 0;
	collection_cover(s, front.filter_stages);
	status = front.sort.ptr ? collection_sort(s, &front, &sorted) : STATUS_OK;
	if (status != STATUS_OK) {
		collection_close(&s->source);
		*ret = NULL;
	}
	options->skip_stages += sorted;
	return status;
}

/* Strings are compared in one way by all that a command reads. */
static enum status
check_view_collation(struct aggregate *a, const struct view *view)
{
	struct str own = a->collation ? mql_collation_document(a->collation) : STR("");

	if (str_eq(own, view->collation))
		return STATUS_OK;
	return call_fail(a->call, MONGO_OPTION_NOT_ON_VIEW,
			 "the view %.*s has another collation than the command", STR_ARG(view->ns));
}

/* Figures of a collection are none of a view. */
static enum status
check_view_stage(struct aggregate *a)
{
	struct bson_element stage, name;
	struct bson_iter i;

	bson_iter_begin(&i, a->ask.pipeline);
	if (!bson_iter_read(&i, &stage) || stage.value.type != BSON_DOCUMENT)
		return STATUS_OK;
	bson_iter_begin(&i, bson_text(&stage.value));
	if (!bson_iter_read(&i, &name) ||
	    (!str_eq(name.name, STR("$collStats")) && !str_eq(name.name, STR("$indexStats"))))
		return STATUS_OK;
	return call_fail(a->call, MONGO_NOT_ON_VIEW, "Namespace %.*s is a view, not a collection",
			 STR_ARG(a->ask.ns));
}

/* Where the command names a view: begins with that one's stages. */
static enum status
begin_with_view(struct aggregate *a)
{
	const struct view *view;

	a->base = a->ask.ns;
	if (a->ask.no_collection)
		return STATUS_OK;
	TRY(views_add(&a->views, a->call, a->arena, a->ask.ns));
	view = views_find(&a->views, a->ask.ns);
	if (!view) {
		a->ask.collation = data_choose_collation(a->ask.collation, a->views.collation);
		return STATUS_OK;
	}
	a->base = view->base;
	if (bson_is_empty(a->ask.collation) && view->collation.len)
		a->ask.collation = view->collation;
	TRY(check_view_stage(a));
	return view_concat(view->pipeline, a->ask.pipeline, a->arena, &a->ask.pipeline);
}

static enum status
check_views(struct aggregate *a)
{
	TRY(views_add_reads(&a->views, a->call, a->arena, a->pipeline, a->ask.db));
	for (size_t i = 0; i < a->views.count; i++)
		TRY(check_view_collation(a, &a->views.list[i]));
	return STATUS_OK;
}

static enum status
aggregate_compile(struct aggregate *a)
{
	struct mql_pipeline_options compile = { .scope = NULL };
	struct mql_run_options options = { .store = &a->store,
					   .part = &a->part,
					   .disk = a->ask.disk,
					   .directory = aggregate_directory(a) };
	struct mql_source *input;

	TRY(begin_with_view(a));
	if (a->ask.collation.len && !bson_is_empty(a->ask.collation)) {
		TRY(mql_collation_new(&a->mql, a->ask.collation, &a->collation));
		a->mql.texts = a->collation ? mql_collation_texts(a->collation) : NULL;
	}
	TRY(compile_let(a, &compile.scope, &options.let));
	TRY(mql_pipeline_compile(&a->mql, a->ask.pipeline, &compile, &a->pipeline));
	TRY(check_rights(a));
	TRY(check_views(a));
	TRY(open_input(a, &options, &input));
	a->done = options.skip_stages;
	return mql_run_new(a->pipeline, &a->mql, &options, input, &a->run);
}

/* What the command has told is kept for as long as the cursor lives. */
static enum status
keep_ask(struct aggregate *a, const struct aggregate_ask *ask)
{
	struct str *texts[] = { &a->ask.ns, &a->ask.db, &a->ask.pipeline, &a->ask.let,
				&a->ask.collation };

	a->ask = *ask;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		*texts[i] = arena_dup(a->arena, *texts[i]);
		if (!texts[i]->ptr)
			return STATUS_LIMIT;
	}
	if (!ask->hint)
		return STATUS_OK;
	a->hint = *ask->hint;
	a->hint.as_text = arena_dup(a->arena, bson_text(ask->hint));
	a->ask.hint = &a->hint;
	return bson_text(&a->hint).ptr ? STATUS_OK : STATUS_LIMIT;
}

enum status
mongo_aggregate_new(struct call *c, const struct aggregate_ask *ask, struct aggregate **ret)
{
	struct aggregate *a = mem_zalloc(sizeof(*a));

	*ret = a;
	if (!a)
		return STATUS_NOMEM;
	a->store = (struct mql_store){ store_open, store_write, store_stats };
	a->call = c;
	net_memory_part_init(&a->part, arena_part(c->arena), true);
	a->back = BUF_INIT_OF(BSON_MOST_BYTES, &a->part);
	a->arena = arena_new(AGGREGATE_BYTES);
	if (!a->arena)
		return STATUS_NOMEM;
	arena_set_part(a->arena, &a->part);
	TRY(keep_ask(a, ask));
	data_mql(c, a->arena, NULL, &a->mql);
	return data_mql_status(c, &a->mql, aggregate_compile(a));
}

void
mongo_aggregate_free(struct aggregate *a)
{
	if (!a)
		return;
	mql_run_free(a->run);
	/* All that is read stands below a stage of the run, and was closed with it. */
	assert(!a->collections && !a->open_views);
	mql_collation_free(a->collation);
	buf_release(&a->back);
	arena_free(a->arena);
	budget_part_release(&a->part);
	mem_free(a);
}

enum status
mongo_aggregate_query(struct aggregate *a, struct query **ret, bool *ret_sorted)
{
	struct collection *s = a->own;
	struct mql_pipeline_front front;
	bool sorted;

	*ret = NULL;
	*ret_sorted = false;
	if (!s)
		return STATUS_OK;
	mql_pipeline_front(a->pipeline, &front);
	*ret_sorted = a->done > front.filter_stages;
	*ret = &s->query;
	if (!s->open) {
		s->open = true;
		TRY(query_open(&s->query, a->call, s->ns, &s->ask));
	}
	return query_is_sorted(&s->query, &sorted);
}

struct budget_part *
mongo_aggregate_part(struct aggregate *a)
{
	return &a->part;
}

bool
mongo_aggregate_counts(const struct aggregate *a)
{
	return a->counts;
}

bool
mongo_aggregate_stage(const struct aggregate *a, size_t i, struct str *ret_name,
		      struct bson_value *ret_spec)
{
	return mql_pipeline_stage(a->pipeline, a->done + i, ret_name, ret_spec);
}

bool
mongo_aggregate_writes(const struct aggregate *a)
{
	return mql_pipeline_write(a->pipeline);
}

enum status
mongo_aggregate_check_write(struct aggregate *a)
{
	const struct mql_write *w = mql_pipeline_write(a->pipeline);

	return w ? mongo_aggregate_write_check(a->call, w, &a->mql) : STATUS_OK;
}

/* ---- Running ---- */

enum status
mongo_aggregate_resume(struct aggregate *a, struct call *c)
{
	/* It rests between two commands, which may be of different connections. */
	assert(!a->call);
	a->call = c;
	a->mql.err = &c->err;
	scripts_init(&c->scripts, c);
	a->mql.scripts = &c->scripts.scripts;
	/* The person's rights may have changed since the last command. */
	return check_rights(a);
}

void
mongo_aggregate_rest(struct aggregate *a)
{
	for (struct collection *s = a->collections; s; s = s->next) {
		/* A place that finds no memory fails the next reading. */
		enum status status = collection_rest(s);

		(void)status;
	}
	a->call = NULL;
	a->mql.err = NULL;
	a->mql.scripts = NULL;
}

enum status
mongo_aggregate_next(struct aggregate *a, struct str *ret)
{
	if (a->has_back) {
		a->has_back = false;
		*ret = buf_str(&a->back);
		return STATUS_OK;
	}
	return data_mql_status(a->call, &a->mql, mql_run_next(a->run, &a->mql, ret));
}

const struct bson_texts *
mongo_aggregate_texts(const struct aggregate *a)
{
	return a->mql.texts;
}

enum status
mongo_aggregate_back(struct aggregate *a, struct str doc)
{
	buf_clear(&a->back);
	buf_append_str(&a->back, doc);
	a->has_back = true;
	return buf_status(&a->back);
}
