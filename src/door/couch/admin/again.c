#include "door/couch/admin/again.h"

#include "door/couch/admin/tx.h"
#include "door/couch/admin/user_doc.h"

/* Looks the user up again, with the present settings and records. */
static enum status
again_find_user(struct couch_req *r, struct auth_user *user)
{
	struct auth_client client = couch_auth_client(r);
	struct settings_held *held;
	struct kv_tx *tx;
	enum status status;

	status = settings_live_take(r->couch->config.live, &r->loop->held, KV_TX_READ_ONLY, &held,
				    &tx, &r->fail.err);
	client.tx = tx;
	if (status == STATUS_OK)
		status = auth_again(people_of(held), &client, r->arena, user, &r->fail.err);
	kv_tx_free(tx);
	settings_held_unref(held);
	return status;
}

static enum status
again_check(struct couch_req *r)
{
	bool of_server = r->parts_count == 1 && str_starts_with(r->parts[0], STR("_")) && !r->db;

	TRY(again_find_user(r, &r->user));
	/*
	 * Only administrators of the server may read what belongs to the server, and lists of
	 * users and replications.
	 */
	if (of_server || couch_in_users_db(r) || couch_in_replicator_db(r))
		return couch_require_admin(r);
	return couch_db_read(r, COUCH_ACCESS_MEMBER, NULL, NULL);
}

bool
couch_may_still_read(struct couch_req *r)
{
	uint64_t changes = atomic_load(&r->couch->rights_changes);
	const struct auth_user user = r->user;
	const struct couch_fail fail = r->fail;
	struct arena_mark mark;
	enum status status;

	if (auth_is_over(&r->user))
		return false;
	if (changes == r->rights_seen && !kv_is_shared(r->couch->config.store))
		return true;
	mark = arena_mark(r->arena);
	status = again_check(r);
	/*
	 * The new roles are in memory that is freed here, so the user from before is kept. The next
	 * look comes within a second.
	 */
	r->user = user;
	r->fail = fail;
	arena_reset(r->arena, mark);
	if (status == STATUS_OK)
		r->rights_seen = changes;
	return status == STATUS_OK;
}

void
couch_note_rights(struct couch_req *r)
{
	if (r->method == COUCH_GET || !r->parts_count)
		return;
	if (couch_in_users_db(r) || str_eq(r->parts[0], STR("_node")) ||
	    (r->parts_count > 1 && str_eq(r->parts[1], STR("_security"))))
		atomic_fetch_add(&r->couch->rights_changes, 1);
}
