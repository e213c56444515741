#include "door/couch/view/named.h"

#include "base/quote.h"
#include "door/couch/doc/functions.h"
#include "door/couch/wire/error.h"
#include "index/view/documents.h"
#include "model/revisioned/revisioned.h"

enum status
couch_view_named_choose(struct couch_req *r, struct str view, struct couch_view_named *named)
{
	named->view = view_design_find(&named->design, view);
	if (!named->view)
		return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND, "missing_named_view");
	named->reduce = view_design_reduce(&named->design, named->view);
	return STATUS_OK;
}

enum status
couch_view_named_read(struct couch_req *r, struct kv_tx *tx, struct str view,
		      struct couch_view_named *ret)
{
	const struct view_documents *documents = view_documents_of(r->db);
	struct couch_view_named n = { .id = arena_printf(r->arena, "_design/%.*s",
							 STR_ARG(r->parts[2])) };

	if (!n.id.ptr)
		return STATUS_LIMIT;
	if (!documents)
		return couch_fail_set(&r->fail, COUCH_ERROR_NOT_IMPLEMENTED,
				      "this database has no views");
	TRY(couch_function_design(r, tx, n.id, &n.version));
	TRY(view_design_parse(n.version.text, rev_db_is_partitioned(r->db), r->arena, &n.design,
			      &r->fail.err));
	TRY(documents->newest(tx, r->db, &n.newest));
	if (view.ptr)
		TRY(couch_view_named_choose(r, view, &n));
	*ret = n;
	return STATUS_OK;
}

enum status
couch_view_require_worker(struct couch_req *r)
{
	if (!r->couch->config.js || !r->couch->config.views)
		return couch_fail_set(&r->fail, COUCH_ERROR_NOT_IMPLEMENTED,
				      "this server cannot run functions: it has no frond-js");
	return js_check(r->couch->config.js, &r->fail.err);
}

enum status
couch_view_functions_of(struct couch_req *r, const struct couch_view_named *named,
			enum js_lane lane, struct couch_view_functions **ret)
{
	*ret = couch_view_functions_new(r->couch->config.js, &named->version, lane,
					couch_view_reduce_limit(r->settings));
	return *ret ? STATUS_OK : STATUS_NOMEM;
}

enum status
couch_view_fail(struct couch_req *r, enum status status, const struct view_error *error)
{
	if (status != STATUS_FUNCTION)
		return status;
	return couch_fail_function(&r->fail, error->name, error->reason, r->arena);
}

enum status
couch_view_bring_up(struct couch_req *r, const struct couch_view_named *named, bool waits)
{
	struct view_target target = {
		.space = CATALOG_SPACE_COUCH,
		.db_name = r->db->name,
		.db_number = r->db->number,
		.name = named->id,
		.design = &named->design,
		.functions = &couch_view_functions,
	};
	struct couch_view_functions *functions;
	struct view_error error = { 0 };
	enum status status;

	TRY(couch_view_functions_of(r, named, JS_LANE_INDEX, &functions));
	target.arg = functions;
	status = view_update(r->couch->config.views, &target, waits ? &named->newest : NULL,
			     WAIT_FOREVER, http_closed_event(r->x), r->arena, &error, &r->fail.err);
	couch_view_functions_release(functions);
	return couch_view_fail(r, status, &error);
}
