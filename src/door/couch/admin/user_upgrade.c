/* Writes a stronger hash of a password into its user's document. */
#include "access/person.h"
#include "access/scram_table.h"
#include "door/couch/admin/user_doc.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/state.h"
#include "model/revisioned/revisioned.h"

struct upgrade {
	struct couch_req *r;
	const struct person *person; /* as the password was checked */
	const struct verifier *verifier;
	struct str id;
	struct arena_mark mark;
	bool written;
};

/* The document with the new hash. Another writer may have changed it: then STATUS_DOC_CONFLICT. */
static enum status
upgrade_make_edit(struct upgrade *u, struct kv_tx *tx, const struct catalog_db *db,
		  struct rev_edit *ret)
{
	const struct doc_limits limits = rev_doc_limits(db, DOC_LIMIT_DEFAULT_BYTES);
	struct buf AUTO(buf_release) before = couch_buf(u->r, COUCH_ANSWER_BYTES);
	struct buf AUTO(buf_release) after = couch_buf(u->r, COUCH_ANSWER_BYTES);
	struct arena *arena = u->r->arena;
	struct json_member *members;
	struct rev_doc doc;
	struct str text;
	size_t count;

	TRY(rev_doc_read(tx, db, u->id, arena, &doc));
	if (doc.atts_count)
		return STATUS_UNSUPPORTED; /* the edit would give them up */
	buf_append_byte(&before, '{');
	TRY(rev_body_write(&doc, false, &before));
	TRY(buf_status(&before));
	TRY(json_read_members(buf_str(&before), arena, &members, &count, NULL));
	couch_user_doc_write(u->verifier, members, count, &after);
	TRY(buf_copy(&after, arena, &text));
	*ret = (struct rev_edit){ .kind = REV_EDIT_INTERACTIVE, .id = u->id, .parent = doc.rev };
	return doc_explode_text(text, arena, &limits, rev_doc_prefix_bytes(db, u->id), &ret->doc,
				NULL);
}

static enum status
upgrade_attempt(struct kv_tx *tx, void *arg)
{
	struct upgrade *u = arg;
	struct arena *arena = u->r->arena;
	struct catalog_db *db = NULL;
	struct rev_result result;
	struct rev_edit edit;
	struct person now;
	enum status status;

	arena_reset(arena, u->mark);
	u->written = false;
	TRY(person_get(tx, u->person->name, arena, &now, NULL));
	if (memcmp(now.version, u->person->version, sizeof(now.version)) != 0)
		return STATUS_OK; /* it may be another password by now */
	TRY(rev_db_open(tx, NULL, STR(COUCH_USERS_DB), &db, NULL));
	status = upgrade_make_edit(u, tx, db, &edit);
	if (status == STATUS_OK)
		status = rev_write(tx, db, &edit, 1, 0, arena, &result, NULL);
	if (status == STATUS_OK)
		status = result.status;
	u->written = status == STATUS_OK;
	catalog_db_unref(db);
	return status;
}

static enum status
user_upgrade(void *arg, const struct person *person, const struct verifier *verifier,
	     const struct scram *scram)
{
	struct upgrade u = { .r = arg, .person = person, .verifier = verifier };
	struct buf AUTO(buf_release) id = BUF_SHORT(sizeof(COUCH_USER_PREFIX) + PERSON_NAME_BYTES);
	enum status status;

	buf_append_cstr(&id, COUCH_USER_PREFIX);
	buf_append_str(&id, person->name);
	TRY(buf_status(&id));
	u.id = buf_str(&id);
	u.mark = arena_mark(u.r->arena);
	scram_table_add(verifier, scram);
	status = kv_run(u.r->couch->config.store, upgrade_attempt, &u, NULL, NULL);
	arena_reset(u.r->arena, u.mark);
	if (status == STATUS_OK && u.written)
		couch_audit_changed(u.r, "hash_upgraded", "person", person->name);
	return status;
}

void
couch_user_may_upgrade(struct couch_req *r, struct auth_client *client)
{
	const struct access_settings *access = settings_of(r->held->settings,
							   &access_setting_group);

	if (!access->upgrade_hashes)
		return;
	client->upgrade = user_upgrade;
	client->upgrade_arg = r;
}
