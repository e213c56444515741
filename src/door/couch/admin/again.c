#include "door/couch/admin/again.h"

#include <string.h>

#include "access/follow.h"
#include "door/couch/admin/access.h"
#include "door/couch/admin/tx.h"
#include "door/couch/wire/error.h"
#include "door/couch/admin/user_doc.h"

/*
 * Looks the user up again, with the present settings and records. Whoever has given another
 * password than the present one is nobody.
 */
static enum status
again_find_user(struct couch_req *r, struct auth_user *user)
{
	struct auth_client client = couch_auth_client(r);
	const struct auth_user before = *user;
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
	if (status == STATUS_OK && memcmp(user->key, before.key, sizeof(before.key)) != 0)
		return STATUS_UNAUTHORIZED;
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

static enum status
again_read_security(struct kv_tx *tx, void *arg)
{
	struct couch_req *r = arg;

	return couch_security_of(tx, r->db, r->arena, &r->judged.security);
}

/* What may be read of r->db, which views of an answer use and which is not opened anew. */
static enum status
again_check_db(struct couch_req *r)
{
	const struct couch_judged judged = r->judged;
	enum status status;

	if (r->user.admin)
		return STATUS_OK;
	r->judged = (struct couch_judged){ .known = true, .number = r->db->number };
	status = kv_run_read(r->couch->config.store, again_read_security, r, &r->fail.err);
	if (status == STATUS_OK)
		status = couch_judge(r);
	r->judged = judged;
	return status;
}

/* The same for what tells of many documents: of these databases only administrators see those. */
static enum status
again_check_list(struct couch_req *r)
{
	if (couch_in_users_db(r) || couch_in_replicator_db(r))
		return couch_require_admin(r);
	return again_check_db(r);
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

enum status
couch_check_reader(struct couch_req *r, bool lists)
{
	const struct people_news *news = r->couch->config.news;

	if (!auth_is_over(&r->user) && (!news || people_news_count(news) == r->rights_seen))
		return STATUS_OK;
	if (couch_may_still(r, lists ? again_check_list : again_check_db))
		return STATUS_OK;
	return couch_fail_set(&r->fail, COUCH_ERROR_FORBIDDEN,
			      "You are not allowed to access this db.");
}
