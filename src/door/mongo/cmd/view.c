#include "door/mongo/cmd/view.h"

#include "door/mongo/txn/client.h"
#include "door/mongo/txn/data.h"
#include "door/mongo/txn/run.h"
#include "mql/stage/stages.h"

const struct view *
views_find(const struct views *v, struct str ns)
{
	for (size_t i = 0; i < v->count; i++)
		if (str_eq(v->list[i].ns, ns))
			return &v->list[i];
	return NULL;
}

enum status
view_concat(struct str first, struct str second, struct arena *arena, struct str *ret)
{
	struct buf AUTO(buf_release) made = BUF_INIT_OF(2 * BSON_MOST_BYTES, arena_part(arena));
	const struct str arrays[] = { first, second };
	struct bson_builder b;
	struct bson_element e;
	struct bson_iter i;

	bson_builder_init(&b, &made);
	bson_begin_outer_array(&b);
	for (size_t k = 0; k < 2; k++)
		for (bson_iter_begin(&i, arrays[k]); bson_iter_read(&i, &e);)
			bson_put(&b, STR(""), &e.value);
	bson_end(&b);
	return buf_copy(&made, arena, ret);
}

/* ---- What views read ---- */

struct adding {
	struct views *views;
	struct call *call;
	struct arena *arena;
	struct data data;
	size_t from; /* the first name of this attempt, and the first view */
	size_t from_view;
	struct str name;
};

static enum status
fail_depth(struct call *c)
{
	return call_fail(c, MONGO_VIEW_DEPTH,
			 "View depth too deep or view cycle detected; maximum depth is %d",
			 VIEW_DEPTH);
}

/* Remembers a name; STATUS_EXISTS if it was looked at. */
static enum status
name_add(struct views *v, struct call *c, struct arena *arena, struct str ns)
{
	for (size_t i = 0; i < v->known_count; i++)
		if (str_eq(v->known[i], ns))
			return STATUS_EXISTS;
	if (!v->known)
		v->known = arena_alloc(arena, VIEWS_MOST * sizeof(*v->known));
	if (!v->list)
		v->list = arena_alloc(arena, VIEWS_MOST * sizeof(*v->list));
	if (!v->known || !v->list)
		return STATUS_LIMIT;
	if (v->known_count == VIEWS_MOST)
		return call_fail(c, MONGO_VIEW_DEPTH,
				 "a pipeline and its views read more than %d collections "
				 "(VIEWS_MOST)",
				 VIEWS_MOST);
	v->known[v->known_count] = arena_dup(arena, ns);
	return v->known[v->known_count++].ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
member_dup(struct arena *arena, struct str options, struct str name, struct str otherwise,
	   struct str *ret)
{
	struct bson_value v;
	bool there = bson_find(options, name, &v);

	return arena_copy(arena, there ? bson_text(&v) : otherwise, ret);
}

static enum status
collation_dup(struct adding *a, struct view *view)
{
	view->collation = data_collation_document(&a->data);
	if (!view->collation.len)
		return STATUS_OK;
	return arena_copy(a->arena, view->collation, &view->collation);
}

/* Follows a name down to a collection. `view->pipeline.ptr` stays NULL for what is no view. */
static enum status
view_follow(struct adding *a, struct kv_tx *tx, struct view *view)
{
	struct call *c = a->call;
	struct str rest = view->ns, db = str_cut(&rest, '.');
	struct str ns = view->ns, pipeline, on, options;
	enum status status;

	for (int depth = 0;; depth++) {
		data_init(&a->data, c, ns, false);
		a->data.takes_views = true;
		TRY(data_open(&a->data, tx));
		view->base = ns;
		if (!a->data.is_there || !plain_options_are_view(plain_options_of(a->data.db)))
			return view->pipeline.ptr ? STATUS_OK : collation_dup(a, view);
		if (depth == VIEW_DEPTH)
			return fail_depth(c);
		options = plain_options_of(a->data.db);
		TRY(member_dup(a->arena, options, STR("viewOn"), STR(""), &on));
		TRY(member_dup(a->arena, options, STR("pipeline"), BSON_EMPTY, &pipeline));
		if (!view->pipeline.ptr) {
			TRY(member_dup(a->arena, options, STR("collation"), STR(""),
				       &view->collation));
			view->pipeline = pipeline;
		} else {
			TRY(view_concat(pipeline, view->pipeline, a->arena, &view->pipeline));
		}
		data_fini(&a->data);
		ns = arena_printf(a->arena, "%.*s.%.*s", STR_ARG(db), STR_ARG(on));
		if (!ns.ptr)
			return STATUS_LIMIT;
		view->depth++;
		status = name_add(a->views, c, a->arena, ns);
		if (status != STATUS_OK && status != STATUS_EXISTS)
			return status;
	}
}

/* The names that a pipeline reads are looked at, too. */
static enum status
reads_add(struct views *v, struct call *c, struct arena *arena, const struct mql_pipeline *p,
	  struct str own)
{
	struct str db, collection, ns;

	for (size_t i = 0; mql_pipeline_reads(p, i, &db, &collection); i++) {
		enum status status;

		if (db.len)
			TRY(call_check_rights(c, db, RIGHT_READ));
		ns = arena_printf(arena, "%.*s.%.*s", STR_ARG(db.len ? db : own),
				  STR_ARG(collection));
		if (!ns.ptr)
			return STATUS_LIMIT;
		status = name_add(v, c, arena, ns);
		if (status != STATUS_OK && status != STATUS_EXISTS)
			return status;
	}
	return STATUS_OK;
}

static enum status
adding_name(struct adding *a, struct kv_tx *tx, struct str ns)
{
	struct view view = { .ns = ns };
	struct str rest = ns, db = str_cut(&rest, '.');
	struct mql_pipeline_options options = { .scope = NULL };
	struct mql_pipeline *p;
	struct mql q;

	TRY(view_follow(a, tx, &view));
	data_fini(&a->data);
	if (!view.pipeline.ptr) {
		if (ns.ptr == a->views->known[0].ptr)
			a->views->collation = view.collation;
		return STATUS_OK;
	}
	a->views->list[a->views->count++] = view;
	data_mql(a->call, a->arena, NULL, &q);
	TRY(data_mql_status(a->call, &q, mql_pipeline_compile(&q, view.pipeline, &options, &p)));
	return reads_add(a->views, a->call, a->arena, p, db);
}

/* Names that are added on the way come behind those that are looked at. */
static enum status
adding_body(struct kv_tx *tx, void *arg)
{
	struct adding *a = arg;
	struct views *v = a->views;
	enum status status = STATUS_OK;

	v->count = a->from_view;
	for (size_t i = a->from; status == STATUS_OK && i < v->known_count; i++)
		status = adding_name(a, tx, v->known[i]);
	data_fini(&a->data);
	return status;
}

static enum status
adding_run(struct views *v, struct call *c, struct arena *arena, size_t from)
{
	struct adding a = {
		.views = v, .call = c, .arena = arena, .from = from, .from_view = v->count
	};

	return from < v->known_count ? call_read(c, adding_body, &a) : STATUS_OK;
}

enum status
views_add(struct views *v, struct call *c, struct arena *arena, struct str ns)
{
	size_t from = v->known_count;
	enum status status = name_add(v, c, arena, ns);

	if (status != STATUS_OK && status != STATUS_EXISTS)
		return status;
	return adding_run(v, c, arena, from);
}

enum status
views_add_reads(struct views *v, struct call *c, struct arena *arena, const struct mql_pipeline *p,
		struct str db)
{
	size_t from = v->known_count;

	TRY(reads_add(v, c, arena, p, db));
	return adding_run(v, c, arena, from);
}

/* ---- Making them ---- */

enum status
view_read(struct call *c, const struct bson_element *e, struct view_ask *ask, bool *ret_known)
{
	*ret_known = true;
	if (str_eq(e->name, STR("viewOn"))) {
		if (e->value.type != BSON_STRING)
			return call_type_mismatch(c, &e->value, "type 'string'", "%s.%.*s",
						  c->command->name, STR_ARG(e->name));
		ask->on = bson_text(&e->value);
		return STATUS_OK;
	}
	if (str_eq(e->name, STR("pipeline"))) {
		if (e->value.type != BSON_ARRAY)
			return call_type_mismatch(c, &e->value, "type 'array'", "%s.%.*s",
						  c->command->name, STR_ARG(e->name));
		ask->pipeline = bson_text(&e->value);
		return STATUS_OK;
	}
	*ret_known = false;
	return STATUS_OK;
}

static enum status
check_pipeline(struct call *c, const struct view_ask *ask, struct mql_pipeline **ret)
{
	struct mql_pipeline_options options = { .scope = NULL };
	struct mql q;

	*ret = NULL;
	if (!ask->pipeline.ptr)
		return STATUS_OK;
	data_mql(c, c->arena, NULL, &q);
	TRY(data_mql_status(c, &q, mql_pipeline_compile(&q, ask->pipeline, &options, ret)));
	if (mql_pipeline_write(*ret))
		return call_fail(c, MONGO_OPTION_NOT_ON_VIEW,
				 "The aggregation stage %s in the pipeline of the view is not "
				 "supported",
				 mql_pipeline_write(*ret)->replaces ? "$out" : "$merge");
	return STATUS_OK;
}

enum status
view_options(struct call *c, const struct view_ask *ask, struct str *ret)
{
	struct buf AUTO(buf_release) made = BUF_INIT_OF(BSON_MOST_BYTES, arena_part(c->arena));
	struct mql_pipeline *pipeline;
	struct bson_builder b;

	if (!ask->on.len || ask->on.ptr[0] == '.' || memchr(ask->on.ptr, '$', ask->on.len) ||
	    memchr(ask->on.ptr, '\0', ask->on.len) || c->db.len + 1 + ask->on.len > DATA_NS_BYTES)
		return call_fail(c, ask->on.len ? MONGO_INVALID_NAMESPACE : MONGO_BAD_VALUE,
				 "'viewOn' has to be the name of a collection or a view");
	TRY(check_pipeline(c, ask, &pipeline));
	bson_open(&b, &made);
	bson_put_string(&b, STR("viewOn"), ask->on);
	bson_begin_array(&b, STR("pipeline"));
	if (ask->pipeline.ptr) {
		struct bson_element e;
		struct bson_iter i;

		for (bson_iter_begin(&i, ask->pipeline); bson_iter_read(&i, &e);)
			bson_put(&b, STR(""), &e.value);
	}
	bson_end(&b);
	if (ask->collation.len)
		bson_put_document(&b, STR("collation"), ask->collation);
	bson_end(&b);
	return buf_copy(&made, c->arena, ret);
}

enum status
view_options_keep(struct call *c, struct str old, struct str options, struct str *ret)
{
	struct buf AUTO(buf_release) made = BUF_INIT_OF(BSON_MOST_BYTES, arena_part(c->arena));
	struct bson_value collation;
	struct bson_builder b;

	*ret = options;
	if (!bson_find(old, STR("collation"), &collation))
		return STATUS_OK;
	bson_open(&b, &made);
	bson_put_elements(&b, options);
	bson_put(&b, STR("collation"), &collation);
	bson_end(&b);
	return buf_copy(&made, c->arena, ret);
}

enum status
view_check(struct call *c, const struct view_ask *ask)
{
	struct str ns = arena_printf(c->arena, "%.*s.%.*s", STR_ARG(c->db), STR_ARG(ask->on));
	struct str own = arena_printf(c->arena, "%.*s.%.*s", STR_ARG(c->db),
				      STR_ARG(c->collection));
	struct mql_pipeline *pipeline;
	const struct view *below;
	struct views v = { 0 };

	if (!ns.ptr || !own.ptr)
		return STATUS_LIMIT;
	TRY(check_pipeline(c, ask, &pipeline));
	TRY(views_add(&v, c, c->arena, ns));
	if (pipeline)
		TRY(views_add_reads(&v, c, c->arena, pipeline, c->db));
	below = views_find(&v, ns);
	if (below && below->depth == VIEW_DEPTH)
		return fail_depth(c);
	for (size_t i = 0; i < v.known_count; i++)
		if (str_eq(v.known[i], own))
			return call_fail(c, MONGO_GRAPH_CYCLE,
					 "Introducing a view cycle is not allowed: %.*s reads "
					 "itself",
					 STR_ARG(own));
	return STATUS_OK;
}
