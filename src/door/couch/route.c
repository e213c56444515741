/* Which handler answers a path and a method. */
#include <stdio.h>

#include "base/words.h"
#include "door/couch/admin/endpoints.h"
#include "door/couch/admin/partition.h"
#include "door/couch/admin/tx.h"
#include "door/couch/admin/user_doc.h"
#include "door/couch/doc/endpoints.h"
#include "door/couch/list/endpoints.h"
#include "door/couch/look/endpoints.h"
#include "door/couch/query/endpoints.h"
#include "door/couch/route.h"
#include "door/couch/view/endpoints.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "kv/kv.h"

enum {
	COUCH_ROUTE_BYTES = 128, /* of a path, as couch_route_each() tells it */
};

struct route {
	const char *name;
	enum couch_endpoint endpoint; /* in metrics */
	const char *allow;            /* of the 405 */
	couch_handler *by_method[COUCH_METHOD_COUNT];
	size_t parts; /* of the path, this one included; a longer path is 404 */
};

static const struct route root_routes[] = {
	{ "_up", COUCH_ENDPOINT_UP, "GET,HEAD", { [COUCH_GET] = couch_root_up }, 1 },
	{ "favicon.ico",
	  COUCH_ENDPOINT_UTILS,
	  "GET,HEAD",
	  { [COUCH_GET] = couch_root_favicon },
	  1 },
	{ "_uuids", COUCH_ENDPOINT_UUIDS, "GET", { [COUCH_GET] = couch_root_uuids }, 1 },
	{ "_all_dbs", COUCH_ENDPOINT_ALL_DBS, "GET,HEAD", { [COUCH_GET] = couch_all_dbs }, 1 },
	{ "_dbs_info",
	  COUCH_ENDPOINT_DBS_INFO,
	  "GET,HEAD,POST",
	  { [COUCH_GET] = couch_dbs_info_get, [COUCH_POST] = couch_dbs_info_post },
	  1 },
	{ "_db_updates", COUCH_ENDPOINT_DB_UPDATES, "GET", { [COUCH_GET] = couch_db_updates }, 1 },
	{ "_active_tasks",
	  COUCH_ENDPOINT_ACTIVE_TASKS,
	  "GET,HEAD",
	  { [COUCH_GET] = couch_active_tasks },
	  1 },
	{ "_replicate", COUCH_ENDPOINT_REPLICATE, "POST", { [COUCH_POST] = couch_replicate }, 1 },
	{ "_scheduler",
	  COUCH_ENDPOINT_SCHEDULER,
	  "GET,HEAD",
	  { [COUCH_GET] = couch_scheduler },
	  64 },
	{ "_membership",
	  COUCH_ENDPOINT_MEMBERSHIP,
	  "GET",
	  { [COUCH_GET] = couch_root_membership },
	  1 },
	{ "_cluster_setup",
	  COUCH_ENDPOINT_CLUSTER_SETUP,
	  "GET,POST",
	  { [COUCH_GET] = couch_cluster_setup_get, [COUCH_POST] = couch_cluster_setup_post },
	  1 },
	{ "_node",
	  COUCH_ENDPOINT_NODE,
	  "GET,PUT,POST,DELETE",
	  { [COUCH_GET] = couch_node_get,
	    [COUCH_PUT] = couch_node_put,
	    [COUCH_POST] = couch_node_post,
	    [COUCH_DELETE] = couch_node_delete },
	  COUCH_PATH_PARTS },
	{ "_utils",
	  COUCH_ENDPOINT_UTILS,
	  "GET,HEAD",
	  { [COUCH_GET] = couch_root_utils },
	  COUCH_PATH_PARTS },
	{ "_frond",
	  COUCH_ENDPOINT_FROND,
	  "GET,POST",
	  { [COUCH_GET] = couch_look, [COUCH_POST] = couch_look },
	  2 },
	{ "_session",
	  COUCH_ENDPOINT_SESSION,
	  "GET,HEAD,POST,DELETE",
	  { [COUCH_GET] = couch_session_get,
	    [COUCH_POST] = couch_session_post,
	    [COUCH_DELETE] = couch_session_delete },
	  1 },
};

static const struct route db_route = {
	"",
	COUCH_ENDPOINT_DB,
	"DELETE,GET,HEAD,POST",
	{ [COUCH_GET] = couch_db_get,
	  [COUCH_PUT] = couch_db_put,
	  [COUCH_POST] = couch_db_post,
	  [COUCH_DELETE] = couch_db_delete },
	1,
};

static const struct route db_routes[] = {
	{ "_all_docs",
	  COUCH_ENDPOINT_ALL_DOCS,
	  "GET,HEAD,POST",
	  { [COUCH_GET] = couch_all_docs, [COUCH_POST] = couch_all_docs },
	  2 },
	{ "_design_docs",
	  COUCH_ENDPOINT_ALL_DOCS,
	  "GET,HEAD,POST",
	  { [COUCH_GET] = couch_all_docs, [COUCH_POST] = couch_all_docs },
	  2 },
	{ "_local_docs",
	  COUCH_ENDPOINT_LOCAL_DOCS,
	  "GET,HEAD,POST",
	  { [COUCH_GET] = couch_all_docs, [COUCH_POST] = couch_all_docs },
	  2 },
	{ "_bulk_docs", COUCH_ENDPOINT_BULK_DOCS, "POST", { [COUCH_POST] = couch_bulk_docs }, 2 },
	{ "_bulk_get", COUCH_ENDPOINT_BULK_GET, "POST", { [COUCH_POST] = couch_bulk_get }, 2 },
	{ "_revs_diff", COUCH_ENDPOINT_REVS_DIFF, "POST", { [COUCH_POST] = couch_revs_diff }, 2 },
	{ "_missing_revs",
	  COUCH_ENDPOINT_REVS_DIFF,
	  "POST",
	  { [COUCH_POST] = couch_missing_revs },
	  2 },
	{ "_changes",
	  COUCH_ENDPOINT_CHANGES,
	  "GET,POST,HEAD",
	  { [COUCH_GET] = couch_changes, [COUCH_POST] = couch_changes },
	  2 },
	{ "_find", COUCH_ENDPOINT_FIND, "POST", { [COUCH_POST] = couch_find }, 2 },
	{ "_explain", COUCH_ENDPOINT_EXPLAIN, "POST", { [COUCH_POST] = couch_explain }, 2 },
	{ "_index",
	  COUCH_ENDPOINT_INDEX,
	  "GET,POST",
	  { [COUCH_GET] = couch_index_list, [COUCH_POST] = couch_index_create },
	  2 },
	{ "_ensure_full_commit",
	  COUCH_ENDPOINT_DB,
	  "POST",
	  { [COUCH_POST] = couch_ensure_full_commit },
	  2 },
	{ "_security",
	  COUCH_ENDPOINT_DB_SETTING,
	  "PUT,GET",
	  { [COUCH_GET] = couch_security_get, [COUCH_PUT] = couch_security_put },
	  2 },
	{ "_revs_limit",
	  COUCH_ENDPOINT_DB_SETTING,
	  "PUT,GET",
	  { [COUCH_GET] = couch_revs_limit_get, [COUCH_PUT] = couch_revs_limit_put },
	  2 },
	{ "_scheme",
	  COUCH_ENDPOINT_DB_SETTING,
	  "PUT,GET",
	  { [COUCH_GET] = couch_scheme_get, [COUCH_PUT] = couch_scheme_put },
	  2 },
	{ "_purge", COUCH_ENDPOINT_PURGE, "POST", { [COUCH_POST] = couch_purge }, 2 },
	{ "_purged_infos", COUCH_ENDPOINT_PURGE, "GET", { [COUCH_GET] = couch_purged_infos }, 2 },
	{ "_purged_infos_limit",
	  COUCH_ENDPOINT_DB_SETTING,
	  "GET,PUT",
	  { [COUCH_GET] = couch_purged_infos_limit_get,
	    [COUCH_PUT] = couch_purged_infos_limit_put },
	  2 },
	{ "_compact", COUCH_ENDPOINT_COMPACT, "POST", { [COUCH_POST] = couch_compact }, 3 },
	{ "_view_cleanup",
	  COUCH_ENDPOINT_COMPACT,
	  "POST",
	  { [COUCH_POST] = couch_view_cleanup },
	  2 },
};

static const struct route queries_route = {
	"queries", COUCH_ENDPOINT_ALL_DOCS, "POST", { [COUCH_POST] = couch_all_docs_queries }, 3,
};

static const struct route bulk_delete_route = {
	"_bulk_delete", COUCH_ENDPOINT_INDEX, "POST", { [COUCH_POST] = couch_index_bulk_delete }, 3,
};

static const struct route index_route = {
	"", COUCH_ENDPOINT_INDEX, "DELETE", { [COUCH_DELETE] = couch_index_delete }, 6,
};

/* What lies below an endpoint and is nothing: 404, whatever the method. */
static const struct route nowhere_route = { "", COUCH_ENDPOINT_OTHER, "", { NULL }, 0 };

/*
 * Parts of CouchDB's API that this server does not offer: 501, or 410 for what CouchDB has dropped.
 */
#define WHAT_INSTEAD "docs/COUCHDB.md, \"What is absent\", says what to use instead."

struct not_offered {
	const char *name;
	bool gone;
};

static const struct not_offered not_offered_at_root[] = {
	{ "_search_analyze", false },
	{ "_nouveau_analyze", false },
	{ "_reshard", false },
	{ "_config", true },
	{ "_stats", true },
	{ "_reload_query_servers", false },
	{ NULL, false },
};

static const struct not_offered not_offered_in_db[] = {
	{ "_shards", false },     { "_sync_shards", false }, { "_time_seq", false },
	{ "_auto_purge", false }, { "_temp_view", true },    { NULL, false },
};

static const struct not_offered not_offered_in_design[] = {
	{ "_search", false },       { "_show", true }, { "_search_info", false },
	{ "_nouveau", false },      { "_list", true }, { "_rewrite", true },
	{ "_nouveau_info", false }, { NULL, false },
};

static enum status
route_refuse_if_listed(struct couch_req *r, const struct not_offered *list, struct str part)
{
	for (; list->name; list++) {
		if (!str_eq(part, str_from_cstr(list->name)))
			continue;
		if (str_eq(part, STR("_temp_view")))
			return couch_fail_set(&r->fail, COUCH_ERROR_GONE,
					      "Temporary views are not supported in CouchDB");
		if (list->gone)
			return couch_fail_set(&r->fail, COUCH_ERROR_GONE,
					      "%s is no longer part of this API; " WHAT_INSTEAD,
					      list->name);
		return couch_fail_set(&r->fail, COUCH_ERROR_NOT_IMPLEMENTED,
				      "%s is not supported by this server; " WHAT_INSTEAD,
				      list->name);
	}
	return STATUS_OK;
}

static bool
route_is_listed(const struct not_offered *list, struct str part)
{
	while (list->name && !str_eq(part, str_from_cstr(list->name)))
		list++;
	return list->name != NULL;
}

static enum status
route_call(struct couch_req *r, const struct route *route)
{
	couch_handler *handler = r->method < COUCH_METHOD_COUNT ? route->by_method[r->method]
								: NULL;

	r->endpoint = route->endpoint;
	/* Documents and attachments alone are read and written in the transaction that there is. */
	couch_drop_begun(r);
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

	r->endpoint = local                 ? COUCH_ENDPOINT_LOCAL_DOC
		      : couch_is_design(id) ? COUCH_ENDPOINT_DESIGN_DOC
					    : COUCH_ENDPOINT_DOC;
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

/* The parts of the path from `first` on are an attachment's name, which may have slashes. */
static enum status
route_att(struct couch_req *r, struct str id, size_t first)
{
	struct buf AUTO(buf_release) joined = BUF_SHORT(KV_LIMIT_KEY_BYTES);
	struct str name;

	r->endpoint = COUCH_ENDPOINT_ATTACHMENT;
	for (size_t i = first; i < r->parts_count; i++) {
		if (i > first)
			buf_append_byte(&joined, '/');
		buf_append_str(&joined, r->parts[i]);
	}
	if (buf_status(&joined) == STATUS_LIMIT)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "The attachment's name is too long: the limit is %d bytes.",
				      KV_LIMIT_KEY_BYTES);
	TRY(buf_copy(&joined, r->arena, &name));
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

/* Joins "_design" and "x" to one id: a client may escape the slash between them or not. */
static enum status
route_join_id(struct couch_req *r, const char *space, struct str *ret)
{
	*ret = arena_printf(r->arena, "%s/%.*s", space, STR_ARG(r->parts[2]));
	return ret->ptr ? STATUS_OK : STATUS_NOMEM;
}

static const struct route view_route = {
	"_view",
	COUCH_ENDPOINT_VIEW,
	"GET,POST,HEAD",
	{ [COUCH_GET] = couch_view, [COUCH_POST] = couch_view },
	5,
};

static const struct route view_queries_route = {
	"queries", COUCH_ENDPOINT_VIEW, "POST", { [COUCH_POST] = couch_view_queries }, 6,
};

static const struct route view_info_route = {
	"_info", COUCH_ENDPOINT_VIEW_INFO, "GET", { [COUCH_GET] = couch_view_info }, 4,
};

/* What is asked of the views of a design document; NULL for all else below it. */
static const struct route *
route_find_view(const struct couch_req *r)
{
	if (str_eq(r->parts[3], STR("_info")))
		return &view_info_route;
	if (!str_eq(r->parts[3], STR("_view")) || r->parts_count < 5)
		return NULL;
	return r->parts_count == 6 && str_eq(r->parts[5], STR("queries")) ? &view_queries_route
									  : &view_route;
}

static enum status
route_update(struct couch_req *r, struct str design_id)
{
	r->endpoint = COUCH_ENDPOINT_UPDATE;
	return couch_update(r, design_id);
}

static enum status
route_design(struct couch_req *r)
{
	const struct route *view = r->parts_count > 3 ? route_find_view(r) : NULL;
	struct str id;

	if (view)
		return route_call(r, view);
	TRY(route_join_id(r, "_design", &id));
	if (r->parts_count > 3) {
		if (str_eq(r->parts[3], STR("_update")))
			return route_update(r, id);
		/* As in CouchDB, nothing can be asked of a design document that is not there. */
		if (route_is_listed(not_offered_in_design, r->parts[3]))
			TRY(couch_design_require(r, id));
		TRY(route_refuse_if_listed(r, not_offered_in_design, r->parts[3]));
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
	TRY(route_join_id(r, "_local", &id));
	return route_doc(r, id);
}

static const struct route *
route_find(const struct route *routes, size_t count, struct str name)
{
	for (size_t i = 0; i < count; i++) {
		if (str_eq(name, str_from_cstr(routes[i].name)))
			return &routes[i];
	}
	return NULL;
}

/* The route of a longer path, for those endpoints that have something below them. */
static const struct route *
route_below(const struct couch_req *r, const struct route *route)
{
	if (route->by_method[COUCH_GET] == couch_all_docs && r->parts_count == 3 &&
	    str_eq(r->parts[2], STR("queries")))
		return &queries_route;
	if (route->endpoint != COUCH_ENDPOINT_INDEX || r->parts_count == 2)
		return route;
	if (r->parts_count == 3 && str_eq(r->parts[2], STR("_bulk_delete")))
		return &bulk_delete_route;
	if (r->parts_count == 5 || (r->parts_count == 6 && str_eq(r->parts[2], STR("_design"))))
		return &index_route;
	return &nowhere_route;
}

/* A route below a database, by the first parts behind it. */
static const struct route *
route_find_in_db(const struct couch_req *r)
{
	const struct route *route = route_find(db_routes, sizeof(db_routes) / sizeof(db_routes[0]),
					       r->parts[1]);

	return route ? route_below(r, route) : NULL;
}

static const struct route partition_route = {
	"_partition", COUCH_ENDPOINT_PARTITION, "GET", { [COUCH_GET] = couch_partition_get }, 3,
};

/* Rows of db_routes whose handlers heed r->partition. */
static const char *const partition_names[] = { "_all_docs", "_find", "_explain", "_index" };

static bool
route_is_of_partitions(struct str name)
{
	return WORDS_HAVE(partition_names, name);
}

/* What is asked of a partition: /{db}/_partition/{partition}/…. */
static enum status
route_in_partition(struct couch_req *r)
{
	const struct route *route;
	struct str id;

	r->endpoint = COUCH_ENDPOINT_PARTITION;
	if (r->parts_count == 2)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST, "invalid_partition_req");
	if (r->parts_count == 3) {
		if (r->method == COUCH_POST && str_starts_with(r->parts[2], STR("_")))
			return couch_partition_check_name(r, r->parts[2]);
		return route_call(r, &partition_route);
	}
	TRY(couch_partition_take(r));
	route = str_eq(r->parts[1], STR("_design")) && r->parts_count > 3 ? route_find_view(r)
									  : NULL;
	if (route)
		return route_call(r, route);
	route = route_is_of_partitions(r->parts[1]) ? route_find_in_db(r) : NULL;
	if (route)
		return route_call(r, route);
	TRY(couch_db_ensure(r));
	TRY(couch_partition_check_db(r));
	if (!str_eq(r->parts[1], STR("_design")) || r->parts_count < 4 ||
	    !str_starts_with(r->parts[3], STR("_")))
		return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND, "missing");
	TRY(route_join_id(r, "_design", &id));
	TRY(couch_design_require(r, id));
	if (str_eq(r->parts[3], STR("_update")))
		return route_update(r, id);
	TRY(route_refuse_if_listed(r, not_offered_in_design, r->parts[3]));
	return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND, "missing");
}

static enum status
route_ordinary_doc(struct couch_req *r)
{
	return r->parts_count > 2 ? route_att(r, r->parts[1], 2) : route_doc(r, r->parts[1]);
}

static enum status
route_in_db(struct couch_req *r)
{
	struct str part = r->parts[1];
	const struct route *route;

	if (!str_starts_with(part, STR("_")))
		return route_ordinary_doc(r);
	route = route_find_in_db(r);
	if (route)
		return route_call(r, route);
	if (str_eq(part, STR("_partition")))
		return route_in_partition(r);
	if (str_eq(part, STR("_design")) && r->parts_count > 2)
		return route_design(r);
	if (str_eq(part, STR("_local")) || (str_eq(part, STR("_local/")) && r->parts_count == 2))
		return route_local(r);
	TRY(route_refuse_if_listed(r, not_offered_in_db, part));
	return route_ordinary_doc(r);
}

/* ---- Users and replications, for those who are no administrators of the server ---- */

static enum status
route_find_db_admin(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	return couch_db_is_admin(r, tx, arg);
}

static enum status
route_refuse_in_users(struct couch_req *r)
{
	if (str_eq(r->parts[1], STR("_design")) || couch_is_design(r->parts[1]))
		return couch_fail_set(&r->fail, COUCH_ERROR_FORBIDDEN,
				      "Only administrators can view design docs in the users "
				      "database.");
	return couch_fail_set(&r->fail, COUCH_ERROR_FORBIDDEN,
			      "Only administrators can do this in the users database.");
}

/* Users may use their own documents, and the writes that admin/user_doc.h checks. */
static enum status
route_in_users(struct couch_req *r)
{
	struct str part = r->parts[1];
	bool special = str_starts_with(part, STR("_"));

	if (special && r->parts_count == 2 &&
	    (str_eq(part, STR("_security")) || str_eq(part, STR("_bulk_docs"))))
		return route_in_db(r);
	if (special)
		return route_refuse_in_users(r);
	if (r->parts_count > 2)
		return r->user.name.len && str_eq(couch_user_of_id(part), r->user.name)
			       ? route_att(r, part, 2)
			       : route_refuse_in_users(r);
	r->endpoint = COUCH_ENDPOINT_DOC;
	if (r->method == COUCH_GET)
		return couch_user_doc_get(r, part);
	if (r->method == COUCH_PUT || r->method == COUCH_DELETE)
		return route_doc(r, part);
	return route_refuse_in_users(r);
}

/*
 * Users may use their own documents, and see those of others without credentials. Whatever else
 * reads documents would have to hide these, too.
 */
static enum status
route_in_replicator(struct couch_req *r)
{
	struct str part = r->parts[1];
	bool special = str_starts_with(part, STR("_"));

	if (special && r->parts_count == 2 &&
	    (str_eq(part, STR("_security")) || str_eq(part, STR("_bulk_docs"))))
		return route_in_db(r);
	r->endpoint = COUCH_ENDPOINT_DOC;
	if (!special && r->parts_count == 2 && r->method == COUCH_GET)
		return couch_replication_doc_get(r, part);
	if (!special && r->parts_count == 2 &&
	    (r->method == COUCH_PUT || r->method == COUCH_DELETE))
		return route_doc(r, part);
	return couch_fail_set(&r->fail, couch_not_db_admin_error(r),
			      "Only administrators can do this in the replicator database.");
}

/*
 * In a database that documents of several people share, whoever does not administer it is given
 * `limited`. Listings would show everybody's.
 */
static enum status
route_in_shared(struct couch_req *r, enum status (*limited)(struct couch_req *r))
{
	bool admin = false;

	if (r->parts_count == 1)
		return route_call(r, &db_route);
	if (str_eq(r->parts[1], STR("_all_docs")) || str_eq(r->parts[1], STR("_changes")))
		TRY(couch_require_admin(r));
	TRY(couch_db_read(r, COUCH_ACCESS_MEMBER, route_find_db_admin, &admin));
	return admin ? route_in_db(r) : limited(r);
}

static const struct route welcome_route = {
	"", COUCH_ENDPOINT_ROOT, "GET,HEAD", { [COUCH_GET] = couch_root_welcome }, 0,
};

/* "OPTIONS *" asks about the server as a whole, and about no database (RFC 9110, section 9.3.7). */
static enum status
route_answer_server_options(struct couch_req *r)
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
		return route_answer_server_options(r);
	if (r->parts_count == 0)
		return route_call(r, &welcome_route);
	route = route_find(root_routes, sizeof(root_routes) / sizeof(root_routes[0]), r->parts[0]);
	if (route)
		return route_call(r, route);
	TRY(route_refuse_if_listed(r, not_offered_at_root, r->parts[0]));
	if (couch_in_users_db(r) && !r->user.admin)
		return route_in_shared(r, route_in_users);
	if (couch_in_replicator_db(r) && !r->user.admin)
		return route_in_shared(r, route_in_replicator);
	if (r->parts_count == 1)
		return route_call(r, &db_route);
	return route_in_db(r);
}

/* ---- All of them ---- */

/* What lies below those of db_routes, and what route_in_db() finds by itself. */
static const struct {
	const char *path;
	const struct route *route;
} deep_routes[] = {
	{ "_all_docs/queries", &queries_route },
	{ "_design_docs/queries", &queries_route },
	{ "_local_docs/queries", &queries_route },
	{ "_index/_bulk_delete", &bulk_delete_route },
	{ "_index/*/json/*", &index_route },
	{ "_design/*/_view/*", &view_route },
	{ "_design/*/_view/*/queries", &view_queries_route },
	{ "_design/*/_info", &view_info_route },
	{ "_partition/*", &partition_route },
};

/* Paths that no row names: documents, attachments, and functions that write. */
static const char *const document_routes[][2] = {
	{ "GET", "*" },           { "PUT", "*" },
	{ "DELETE", "*" },        { "COPY", "*" },
	{ "PATCH", "*" },         { "GET", "*/*" },
	{ "PUT", "*/*" },         { "DELETE", "*/*" },
	{ "GET", "_local/*" },    { "PUT", "_local/*" },
	{ "DELETE", "_local/*" }, { "GET", "_design/*" },
	{ "PUT", "_design/*" },   { "DELETE", "_design/*" },
	{ "GET", "_design/*/*" }, { "POST", "_design/*/_update/*" },
};

static void
route_tell(const struct route *route, const char *below, const char *path, couch_route_take *take,
	   void *arg)
{
	char whole[COUCH_ROUTE_BYTES];

	(void)snprintf(whole, sizeof(whole), "%s%s", below, path);
	for (size_t i = 0; i < COUCH_METHOD_COUNT; i++)
		if (route->by_method[i])
			take(arg, couch_method_name((enum couch_method)i), whole);
}

void
couch_route_each(couch_route_take *take, void *arg)
{
	char whole[COUCH_ROUTE_BYTES];

	route_tell(&welcome_route, "/", "", take, arg);
	for (size_t i = 0; i < sizeof(root_routes) / sizeof(root_routes[0]); i++)
		route_tell(&root_routes[i], "/", root_routes[i].name, take, arg);
	route_tell(&db_route, "/*", "", take, arg);
	for (size_t i = 0; i < sizeof(db_routes) / sizeof(db_routes[0]); i++)
		route_tell(&db_routes[i], "/*/", db_routes[i].name, take, arg);
	for (size_t i = 0; i < sizeof(deep_routes) / sizeof(deep_routes[0]); i++)
		route_tell(deep_routes[i].route, "/*/", deep_routes[i].path, take, arg);
	for (size_t i = 0; i < sizeof(document_routes) / sizeof(document_routes[0]); i++) {
		(void)snprintf(whole, sizeof(whole), "/*/%s", document_routes[i][1]);
		take(arg, document_routes[i][0], whole);
	}
}
