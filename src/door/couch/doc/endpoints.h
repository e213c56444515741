/* The handlers of documents and attachments, which route.c names. */
#ifndef FROND_DOOR_COUCH_DOC_ENDPOINTS_H
#define FROND_DOOR_COUCH_DOC_ENDPOINTS_H

#include "door/couch/wire/request.h"

couch_handler couch_db_post;
couch_handler couch_bulk_docs, couch_bulk_get, couch_revs_diff, couch_missing_revs;
couch_handler couch_purge, couch_purged_infos;
couch_handler couch_purged_infos_limit_get, couch_purged_infos_limit_put;

/* Documents, by id. */
MUST_USE enum status couch_doc_get(struct couch_req *r, struct str id);
/* GET of a document in _users by a user who is not an administrator of _users. */
MUST_USE enum status couch_user_doc_get(struct couch_req *r, struct str id);
/*
 * GET of a document in _replicator by a user who is not an administrator of it: others' documents
 * are shown without credentials.
 */
MUST_USE enum status couch_replication_doc_get(struct couch_req *r, struct str id);
MUST_USE enum status couch_doc_put(struct couch_req *r, struct str id);
MUST_USE enum status couch_doc_delete(struct couch_req *r, struct str id);
MUST_USE enum status couch_doc_copy(struct couch_req *r, struct str id);
MUST_USE enum status couch_doc_patch(struct couch_req *r, struct str id);
/* With a parameter `paths`. */
MUST_USE enum status couch_doc_get_paths(struct couch_req *r, struct str id);
/* Any method, on a path below a design document's. */
MUST_USE enum status couch_update(struct couch_req *r, struct str design_id);
/* Checks that the design document is there, before something of it is refused or done. */
MUST_USE enum status couch_design_require(struct couch_req *r, struct str id);
MUST_USE enum status couch_local_get(struct couch_req *r, struct str id);
MUST_USE enum status couch_local_put(struct couch_req *r, struct str id);
MUST_USE enum status couch_local_delete(struct couch_req *r, struct str id);

/* Attachments, by id and name. */
/* POST of a form to a document. */
MUST_USE enum status couch_doc_form(struct couch_req *r, struct str id);

MUST_USE enum status couch_att_get(struct couch_req *r, struct str id, struct str name);
MUST_USE enum status couch_att_put(struct couch_req *r, struct str id, struct str name);
MUST_USE enum status couch_att_delete(struct couch_req *r, struct str id, struct str name);

#endif
