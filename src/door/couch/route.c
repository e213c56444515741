/* Which handler answers a path and a method. */
#include "door/couch/att.h"

struct route {
	const char *name;
	const char *allow; /* of the 405 */
	couch_handler *by_method[COUCH_METHOD_COUNT];
	size_t parts; /* of the path, this one included; more are 404 */
};

static const struct route root_routes[] = {
	{ "_up", "GET,HEAD", { [COUCH_GET] = couch_root_up }, 1 },
	{ "favicon.ico", "GET,HEAD", { [COUCH_GET] = couch_root_favicon }, 1 },
	{ "_uuids", "GET", { [COUCH_GET] = couch_root_uuids }, 1 },
	{ "_all_dbs", "GET,HEAD", { [COUCH_GET] = couch_root_all_dbs }, 1 },
	{ "_dbs_info",
	  "GET,HEAD,POST",
	  { [COUCH_GET] = couch_root_dbs_info_get, [COUCH_POST] = couch_root_dbs_info_post },
	  1 },
	{ "_db_updates", "GET", { [COUCH_GET] = couch_db_updates }, 1 },
	{ "_active_tasks", "GET,HEAD", { [COUCH_GET] = couch_active_tasks }, 1 },
	{ "_replicate", "POST", { [COUCH_POST] = couch_replicate }, 1 },
	{ "_scheduler", "GET,HEAD", { [COUCH_GET] = couch_scheduler }, 64 },
	{ "_membership", "GET", { [COUCH_GET] = couch_root_membership }, 1 },
	{ "_node",
	  "GET,PUT,POST,DELETE",
	  { [COUCH_GET] = couch_node_get,
	    [COUCH_PUT] = couch_node_put,
	    [COUCH_POST] = couch_node_post,
	    [COUCH_DELETE] = couch_node_delete },
	  5 },
	{ "_utils", "GET,HEAD", { [COUCH_GET] = couch_root_utils }, COUCH_PATH_PARTS },
	{ "_frond", "GET,POST", { [COUCH_GET] = couch_ops, [COUCH_POST] = couch_ops }, 2 },
	{ "_session",
	  "GET,HEAD,POST,DELETE",
	  { [COUCH_GET] = couch_session_get,
	    [COUCH_POST] = couch_session_post,
	    [COUCH_DELETE] = couch_session_delete },
	  1 },
};

static const struct route db_route = {
	"",
	"DELETE,GET,HEAD,POST",
	{ [COUCH_GET] = couch_db_get,
	  [COUCH_PUT] = couch_db_put,
	  [COUCH_POST] = couch_db_post,
	  [COUCH_DELETE] = couch_db_delete },
	1,
};

static const struct route db_routes[] = {
	{ "_all_docs",
	  "GET,HEAD,POST",
	  { [COUCH_GET] = couch_all_docs, [COUCH_POST] = couch_all_docs },
	  2 },
	{ "_design_docs",
	  "GET,HEAD,POST",
	  { [COUCH_GET] = couch_all_docs, [COUCH_POST] = couch_all_docs },
	  2 },
	{ "_local_docs",
	  "GET,HEAD,POST",
	  { [COUCH_GET] = couch_all_docs, [COUCH_POST] = couch_all_docs },
	  2 },
	{ "_bulk_docs", "POST", { [COUCH_POST] = couch_bulk_docs }, 2 },
	{ "_bulk_get", "POST", { [COUCH_POST] = couch_bulk_get }, 2 },
	{ "_revs_diff", "POST", { [COUCH_POST] = couch_revs_diff }, 2 },
	{ "_missing_revs", "POST", { [COUCH_POST] = couch_missing_revs }, 2 },
	{ "_changes",
	  "GET,POST,HEAD",
	  { [COUCH_GET] = couch_changes, [COUCH_POST] = couch_changes },
	  2 },
	{ "_ensure_full_commit", "POST", { [COUCH_POST] = couch_ensure_full_commit }, 2 },
	{ "_security",
	  "PUT,GET",
	  { [COUCH_GET] = couch_security_get, [COUCH_PUT] = couch_security_put },
	  2 },
	{ "_revs_limit",
	  "PUT,GET",
	  { [COUCH_GET] = couch_revs_limit_get, [COUCH_PUT] = couch_revs_limit_put },
	  2 },
	{ "_scheme",
	  "PUT,GET",
	  { [COUCH_GET] = couch_scheme_get, [COUCH_PUT] = couch_scheme_put },
	  2 },
	{ "_purge", "POST", { [COUCH_POST] = couch_purge }, 2 },
	{ "_purged_infos_limit",
	  "GET,PUT",
	  { [COUCH_GET] = couch_purged_infos_limit_get,
	    [COUCH_PUT] = couch_purged_infos_limit_put },
	  2 },
	{ "_compact", "POST", { [COUCH_POST] = couch_compact }, 3 },
	{ "_view_cleanup", "POST", { [COUCH_POST] = couch_compact }, 2 },
};

static const struct route queries_route = {
	"queries",
	"POST",
	{ [COUCH_POST] = couch_all_docs_queries },
	3,
};

/* Parts of CouchDB's API that this server does not offer: 501, and 410 for what CouchDB gave up. */
struct not_offered {
	const char *name;
	bool gone;
};

static const struct not_offered not_offered_at_root[] = {
	{ "_search_analyze", false },
	{ "_nouveau_analyze", false },
	{ "_cluster_setup", false },
	{ "_reshard", false },
	{ "_config", true },
	{ "_stats", true },
	{ "_reload_query_servers", false },
	{ NULL, false },
};

static const struct not_offered not_offered_in_db[] = {
	{ "_find", false },         { "_explain", false },   { "_index", false },
	{ "_purged_infos", false }, { "_partition", false }, { "_shards", false },
	{ "_sync_shards", false },  { "_time_seq", false },  { "_auto_purge", false },
	{ "_temp_view", true },     { NULL, false },
};

static const struct not_offered not_offered_in_design[] = {
	{ "_view", false },         { "_info", false }, { "_update", false },
	{ "_search", false },       { "_show", true },  { "_search_info", false },
	{ "_nouveau", false },      { "_list", true },  { "_rewrite", true },
	{ "_nouveau_info", false }, { NULL, false },
};

static enum status
refuse_if_listed(struct couch_req *r, const struct not_offered *list, struct str part)
{
	for (; list->name; list++) {
		if (!str_eq(part, str_from_cstr(list->name)))
			continue;
		if (str_eq(part, STR("_temp_view")))
			return couch_fail_set(&r->fail, COUCH_ERROR_GONE,
					      "Temporary views are not supported in CouchDB");
		if (list->gone)
			return couch_fail_set(&r->fail, COUCH_ERROR_GONE,
					      "%s is no longer part of this API.", list->name);
		return couch_fail_set(&r->fail, COUCH_ERROR_NOT_IMPLEMENTED,
				      "%s is not supported by this server.", list->name);
	}
	return STATUS_OK;
}

static enum status
call_route(struct couch_req *r, const struct route *route)
{
	couch_handler *handler = r->method < COUCH_METHOD_COUNT ? route->by_method[r->method]
								: NULL;

	if (r->parts_count > route->parts)
		return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND, "missing");
	if (!handler)
		return couch_method_refused(r, route->allow);
	return handler(r);
}

static enum status
route_doc(struct couch_req *r, struct str id)
{
	bool local = couch_is_local(id);
	struct str paths;

	switch (r->method) {
	case COUCH_GET:
		if (!local && couch_param(r, "paths", &paths))
			return couch_doc_get_paths(r, id);
		return local ? couch_local_get(r, id) : couch_doc_get(r, id);
	case COUCH_PUT:
		return local ? couch_local_put(r, id) : couch_doc_put(r, id);
	case COUCH_DELETE:
		return local ? couch_local_delete(r, id) : couch_doc_delete(r, id);
	case COUCH_COPY:
		return couch_doc_copy(r, id);
	case COUCH_PATCH:
		if (!local)
			return couch_doc_patch(r, id);
		break;
	case COUCH_POST:
		if (!local)
			return couch_doc_form(r, id);
		break;
	case COUCH_OTHER_METHOD:
		break;
	}
	return couch_method_refused(r, local ? "DELETE,GET,HEAD,PUT,COPY"
					     : "DELETE,GET,HEAD,POST,PUT,COPY,PATCH");
}

/* The path from part `first` on is an attachment's name, slashes and all. */
static enum status
route_att(struct couch_req *r, struct str id, size_t first)
{
	struct buf AUTO(buf_release) joined = BUF_INIT(KV_LIMIT_KEY_BYTES);
	struct str name;

	for (size_t i = first; i < r->parts_count; i++) {
		if (i > first)
			buf_append_byte(&joined, '/');
		buf_append_str(&joined, r->parts[i]);
	}
	if (buf_status(&joined) == STATUS_LIMIT)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "The attachment's name is too long.");
	TRY(buf_status(&joined));
	name = arena_dup(r->arena, buf_str(&joined));
	if (!name.ptr)
		return STATUS_LIMIT;
	switch (r->method) {
	case COUCH_GET:
		return couch_att_get(r, id, name);
	case COUCH_PUT:
		return couch_att_put(r, id, name);
	case COUCH_DELETE:
		return couch_att_delete(r, id, name);
	case COUCH_POST:
	case COUCH_COPY:
	case COUCH_PATCH:
	case COUCH_OTHER_METHOD:
		break;
	}
	return couch_method_refused(r, "DELETE,GET,HEAD,PUT");
}

/* "_design" and "x" are one id; the slash between them may be escaped or not. */
static enum status
join_id(struct couch_req *r, const char *space, struct str *ret)
{
	*ret = arena_printf(r->arena, "%s/%.*s", space, STR_ARG(r->parts[2]));
	return ret->ptr ? STATUS_OK : STATUS_NOMEM;
}

static enum status
route_design(struct couch_req *r)
{
	struct str id;

	TRY(join_id(r, "_design", &id));
	if (r->parts_count > 3) {
		TRY(refuse_if_listed(r, not_offered_in_design, r->parts[3]));
		return route_att(r, id, 3);
	}
	return route_doc(r, id);
}

static enum status
route_local(struct couch_req *r)
{
	struct str id;

	if (r->parts_count == 2)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Invalid _local document id.");
	if (r->parts_count > 3)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "_local documents do not accept attachments.");
	TRY(join_id(r, "_local", &id));
	return route_doc(r, id);
}

static const struct route *
find_route(const struct route *routes, size_t count, struct str name)
{
	for (size_t i = 0; i < count; i++) {
		if (str_eq(name, str_from_cstr(routes[i].name)))
			return &routes[i];
	}
	return NULL;
}

static enum status
route_in_db(struct couch_req *r)
{
	struct str part = r->parts[1];
	const struct route *route = find_route(db_routes, sizeof(db_routes) / sizeof(db_routes[0]),
					       part);

	if (route) {
		if (route->by_method[COUCH_GET] == couch_all_docs && r->parts_count == 3 &&
		    str_eq(r->parts[2], STR("queries")))
			route = &queries_route;
		return call_route(r, route);
	}
	if (str_eq(part, STR("_design")) && r->parts_count > 2)
		return route_design(r);
	if (str_eq(part, STR("_local")) || (str_eq(part, STR("_local/")) && r->parts_count == 2))
		return route_local(r);
	TRY(refuse_if_listed(r, not_offered_in_db, part));
	if (r->parts_count > 2)
		return route_att(r, part, 2);
	return route_doc(r, part);
}

static const struct route welcome_route = {
	"",
	"GET,HEAD",
	{ [COUCH_GET] = couch_root_welcome },
	0,
};

/* "OPTIONS *" is about the server as a whole, and no database (RFC 9110, section 9.3.7). */
static enum status
answer_server_options(struct couch_req *r)
{
	http_set_header(r->x, STR("Allow"), STR("DELETE,GET,HEAD,POST,PUT,COPY,PATCH,OPTIONS"));
	http_set_status(r->x, 204);
	return http_send(r->x, STR(""));
}

enum status
couch_route(struct couch_req *r)
{
	const struct route *route;

	if (str_eq(http_path(r->x), STR("*")) && str_eq(http_method(r->x), STR("OPTIONS")))
		return answer_server_options(r);
	if (r->parts_count == 0)
		return call_route(r, &welcome_route);
	route = find_route(root_routes, sizeof(root_routes) / sizeof(root_routes[0]), r->parts[0]);
	if (route)
		return call_route(r, route);
	TRY(refuse_if_listed(r, not_offered_at_root, r->parts[0]));
	if (r->parts_count == 1)
		return call_route(r, &db_route);
	return route_in_db(r);
}
