/*
 * /_cluster_setup: the wizard with which CouchDB's nodes are made a cluster. There is nothing to be
 * set up here, so this answers as a single node does that has been through it: clients that look
 * find a finished server, and whoever asks for another step is told that it was done.
 */
#include "door/couch/admin/access.h"
#include "door/couch/admin/endpoints.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"

/* The actions that CouchDB knows, and what it says of them on a node that has been set up. */
static const struct {
	const char *name;
	const char *refusal;
} actions[] = {
	{ "enable_single_node", "Cluster is already finished" },
	{ "finish_cluster", "Cluster is already finished" },
	{ "enable_cluster", "Cluster is already enabled" },
	{ "add_node", "There are no nodes to be joined here: every frond serve with the same store "
		      "is a server of the same databases." },
	{ "remove_node", "There are no nodes to be parted here." },
	{ "receive_cookie", "There are no nodes to be joined here." },
};

enum status
couch_cluster_setup_get(struct couch_req *r)
{
	TRY(couch_require_admin(r));
	return couch_reply_str(r, 200, STR("{\"state\":\"single_node_enabled\"}\n"));
}

enum status
couch_cluster_setup_post(struct couch_req *r)
{
	const struct json_value *action;
	struct json_member *members;
	size_t count;

	TRY(couch_require_admin(r));
	TRY(couch_require_json(r));
	TRY(couch_read_object(r, COUCH_SMALL_BODY_BYTES, &members, &count));
	action = json_value_find(members, count, "action");
	for (size_t i = 0; action && i < sizeof(actions) / sizeof(actions[0]); i++)
		if (action->kind == JSON_STRING &&
		    str_eq(action->string, str_from_cstr(actions[i].name)))
			return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST, "%s",
					      actions[i].refusal);
	return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST, "Invalid Action'");
}
