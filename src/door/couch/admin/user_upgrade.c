/* Writes a stronger hash of a password into its user's document, whichever door it has come by. */
#include "access/auth.h"
#include "access/person.h"
#include "access/scram_table.h"
#include "door/couch/admin/user_doc.h"
#include "model/revisioned/revisioned.h"

enum {
	/* Of the document, and of what is made of it: a longer one keeps its hash. */
	UPGRADE_DOC_BYTES = 1024 * 1024,
	UPGRADE_ARENA_BYTES = 8 * UPGRADE_DOC_BYTES,
};

struct upgrade {
	struct arena *arena;
	const struct person *person; /* as the password was checked */
	const struct verifier *verifier;
	struct str id;
	bool written;
};

/* The document with the new hash. Another writer may have changed it: then STATUS_DOC_CONFLICT. */
static enum status
upgrade_make_edit(struct upgrade *u, struct kv_tx *tx, const struct catalog_db *db,
		  struct rev_edit *ret)
{
	const struct doc_limits limits = rev_doc_limits(db, DOC_LIMIT_DEFAULT_BYTES);
	struct buf AUTO(buf_release) before = BUF_INIT_OF(UPGRADE_DOC_BYTES, NULL);
	struct buf AUTO(buf_release) after = BUF_INIT_OF(UPGRADE_DOC_BYTES, NULL);
	struct arena *arena = u->arena;
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
	struct arena *arena = u->arena;
	struct catalog_db *db = NULL;
	struct rev_result result;
	struct rev_edit edit;
	struct person now;
	enum status status;

	arena_clear(arena);
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
user_upgrade(const struct auth_client *client, const struct person *person,
	     const struct verifier *verifier, const struct scram *scram)
{
	struct upgrade u = { .arena = arena_new(UPGRADE_ARENA_BYTES),
			     .person = person,
			     .verifier = verifier };
	struct buf AUTO(buf_release) id = BUF_SHORT(sizeof(COUCH_USER_PREFIX) + PERSON_NAME_BYTES);
	enum status status;

	if (!u.arena)
		return STATUS_NOMEM;
	buf_append_cstr(&id, COUCH_USER_PREFIX);
	buf_append_str(&id, person->name);
	u.id = buf_str(&id);
	scram_table_add(verifier, scram);
	status = buf_status(&id);
	if (status == STATUS_OK)
		status = kv_run(client->store, upgrade_attempt, &u, NULL, NULL);
	arena_free(u.arena);
	if (status == STATUS_OK && u.written)
		audit_changed(&client->by, "hash_upgraded", "person", person->name);
	return status;
}

void
couch_users_upgrade_hashes(void)
{
	auth_set_upgrade(user_upgrade);
}
