#include "door/couch/admin/again.h"

#include "access/follow.h"
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

/* What may be read of a path. */
static enum status
again_check_path(struct couch_req *r)
{
	bool of_server = r->parts_count == 1 && str_starts_with(r->parts[0], STR("_")) && !r->db;

	/*
	 * Only administrators of the server may read what belongs to the server, and lists of
	 * users and replications.
	 */
	if (of_server || couch_in_users_db(r) || couch_in_replicator_db(r))
		return couch_require_admin(r);
	return couch_db_read(r, COUCH_ACCESS_MEMBER, NULL, NULL);
}

bool
couch_may_still(struct couch_req *r, enum status (*check)(struct couch_req *r))
{
	const struct people_news *news = r->couch->config.news;
	uint64_t changes = people_news_count(news);
	const struct auth_user user = r->user;
	const struct couch_fail fail = r->fail;
	uint64_t number = r->db ? r->db->number : 0;
	struct arena_mark mark;
	enum status status;

	if (auth_is_over(&r->user))
		return false;
	if (news && changes == r->rights_seen)
		return true;
	mark = arena_mark(r->arena);
	status = again_find_user(r, &r->user);
	if (status == STATUS_OK)
		status = check(r);
	/*
	 * The new roles are in memory that is freed here, so the user from before is kept. The next
	 * look comes within a second.
	 */
	r->user = user;
	r->fail = fail;
	arena_reset(r->arena, mark);
	/* The look has opened what has the name now, which may be another database. */
	if (status != STATUS_OK || (number && r->db->number != number))
		return false;
	r->rights_seen = changes;
	return true;
}

bool
couch_may_still_read(struct couch_req *r)
{
	return couch_may_still(r, again_check_path);
}
