#include "door/couch/doc/compile.h"

#include "base/quote.h"
#include "doc/json_value.h"
#include "door/couch/doc/functions.h"
#include "index/view/design.h"
#include "model/revisioned/revisioned.h"

bool
couch_designs_are_compiled(const struct couch_req *r)
{
	const struct js *js = r->couch->config.js;
	struct err err = { 0 };

	return js && js_check(js, &err) == STATUS_OK;
}

/* Makes the reason of a worker's error readable. It is JSON text, usually a string. */
static struct str
compile_reason(const struct js_error *error, struct arena *arena)
{
	struct json_value value;

	if (json_value_read(error->reason, arena, &value, NULL) == STATUS_OK &&
	    value.kind == JSON_STRING)
		return value.string;
	return error->reason;
}

/* Compiles one function. An error is reported in CouchDB's words. */
static enum status
compile_one(struct couch_req *r, const struct js_design *design, enum js_view_function kind,
	    struct str view, struct couch_fail *fail)
{
	struct js_call call;
	struct str reason;
	enum status status;

	TRY(couch_function_call(r, design, &call));
	status = js_compile(&call, kind, &view, 1, &r->fail.err);
	if (status != STATUS_FUNCTION)
		return status;
	reason = compile_reason(&call.error, r->arena);
	return couch_fail_set(fail, COUCH_ERROR_COMPILATION,
			      "Compilation of the %s function in the '%s' view failed: %s",
			      kind == JS_VIEW_MAP ? "map" : "reduce", QUOTE_SHOW(view),
			      QUOTE_SHOW(reason));
}

/*
 * Compiles all functions of one kind in one call. If that fails, compiles them one by one to find
 * the faulty one.
 */
static enum status
compile_all(struct couch_req *r, const struct js_design *design, enum js_view_function kind,
	    const struct str *views, size_t count, struct couch_fail *fail)
{
	struct js_call call;
	enum status status;

	if (count == 0)
		return STATUS_OK;
	TRY(couch_function_call(r, design, &call));
	status = js_compile(&call, kind, views, count, &r->fail.err);
	if (status != STATUS_FUNCTION)
		return status;
	for (size_t i = 0; i < count; i++)
		TRY(compile_one(r, design, kind, views[i], fail));
	return STATUS_OK;
}

static enum status
compile_views(struct couch_req *r, const struct js_design *design, const struct view_design *views,
	      struct couch_fail *fail)
{
	struct str *maps = arena_alloc(r->arena, (views->map_count + 1) * sizeof(*maps));
	struct str *reduces = arena_alloc(r->arena, (views->view_count + 1) * sizeof(*reduces));
	size_t reduce_count = 0;

	if (!maps || !reduces)
		return STATUS_LIMIT;
	for (size_t i = 0; i < views->map_count; i++) {
		const struct view_map *map = &views->maps[i];

		maps[i] = map->name;
		for (size_t k = 0; k < map->reduce_count; k++)
			if (map->reduces[k].kind == VIEW_REDUCE_FUNCTION)
				reduces[reduce_count++] = map->reduces[k].name;
	}
	TRY(compile_all(r, design, JS_VIEW_MAP, maps, views->map_count, fail));
	return compile_all(r, design, JS_VIEW_REDUCE, reduces, reduce_count, fail);
}

enum status
couch_design_compile(struct couch_req *r, struct str id, struct str text, struct couch_fail *fail)
{
	struct err err = { 0 };
	struct view_design views;
	struct js_design design;
	enum status status = view_design_parse(text, rev_db_is_partitioned(r->db), r->arena, &views,
					       &err);

	/*
	 * Other mistakes do not refuse the design document: a request for one of its views reports
	 * them.
	 */
	if (status == STATUS_INVALID || (status == STATUS_LIMIT && *err.text))
		return STATUS_OK;
	TRY(status);
	if (views.view_count == 0 || !str_eq(views.language, STR("javascript")))
		return STATUS_OK;
	TRY(couch_function_version(r->db, id, text, r->arena, &design));
	return compile_views(r, &design, &views, fail);
}
