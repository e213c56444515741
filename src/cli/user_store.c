/* frond user with a store: documents of _users, each in a transaction of its own. */
#include "cli/user.h"

#include "access/settings.h"
#include "base/mem.h"
#include "cli/settings.h"
#include "doc/doc.h"
#include "doc/json.h"
#include "doc/json_value.h"
#include "door/couch/couch.h"
#include "model/revisioned/revisioned.h"

struct user_store {
	struct user_place place;
	struct kv_store *store;
	struct settings *settings;  /* of the store: how passwords are hashed; NULL: not read yet */
	struct settings_live *live; /* of a server, instead; it and the store are its own */
};

/* What a transaction of one call needs. */
struct store_call {
	struct str id;
	struct str text;
	bool create;
	const struct user_at_door *own; /* or NULL */
	struct arena *arena;
	struct arena_mark mark;
	struct str found;
	struct rev_result result;
	struct err err;
};

/* Turns the outcome of a transaction into a status and a reason; the reason of its body wins. */
static enum status
store_explain(const struct store_call *c, enum status status, struct err *err)
{
	if (status != STATUS_OK && c->err.text[0])
		*err = c->err;
	return status;
}

/* ---- Reading a document ---- */

static enum status
store_write_text(struct store_call *c, const struct rev_doc *doc)
{
	AUTO(buf_release) struct buf out = BUF_INIT(COUCH_USER_DOC_BYTES);

	if (doc->atts_count)
		return err_set(&c->err, STATUS_UNSUPPORTED,
			       "the document \"%.*s\" has attachments, which only a server keeps: "
			       "use --to",
			       STR_ARG(c->id));
	buf_append_cstr(&out, "{\"_id\":");
	json_write_str(&out, c->id);
	buf_append_cstr(&out, ",\"_rev\":\"");
	rev_id_write(doc->rev, &out);
	buf_append_byte(&out, '"');
	TRY(rev_body_write(doc, true, &out));
	TRY(buf_status(&out));
	c->found = buf_dup(&out, c->arena);
	return c->found.ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
store_get_body(struct kv_tx *tx, void *arg)
{
	struct store_call *c = arg;
	struct catalog_db *db = NULL;
	struct rev_doc doc;
	enum status status;

	arena_reset(c->arena, c->mark);
	status = rev_db_open(tx, NULL, STR(COUCH_USERS_DB), &db, &c->err);
	if (status == STATUS_OK)
		status = rev_doc_read(tx, db, c->id, c->arena, &doc);
	if (status == STATUS_OK)
		status = store_write_text(c, &doc);
	catalog_db_unref(db);
	return status == STATUS_DELETED ? STATUS_NOT_FOUND : status;
}

static enum status
user_store_get(struct user_place *place, struct str id, struct arena *arena, struct str *ret,
	       struct err *err)
{
	struct user_store *s = (struct user_store *)place;
	struct store_call c = { .id = id, .arena = arena, .mark = arena_mark(arena) };

	TRY(store_explain(&c, kv_run(s->store, store_get_body, &c, NULL, err), err));
	*ret = c.found;
	return STATUS_OK;
}

/* ---- Writing one ---- */

/* Reads the parent revision that the text names; pos 0: it names none. */
static enum status
store_read_parent(struct store_call *c, const struct doc *doc, struct rev_id *ret)
{
	const struct doc_special *rev = doc_find_special(doc, STR("_rev"));
	struct json_value value;

	*ret = (struct rev_id){ 0 };
	if (!rev)
		return STATUS_OK;
	TRY(json_value_read(rev->text, c->arena, &value, &c->err));
	return rev_id_parse(value.string, c->arena, ret, &c->err);
}

static enum status
store_make_edit(struct store_call *c, const struct catalog_db *db, struct rev_edit *ret)
{
	const struct doc_limits limits = rev_doc_limits(db, DOC_LIMIT_DEFAULT_BYTES);

	*ret = (struct rev_edit){ .kind = REV_EDIT_INTERACTIVE, .id = c->id };
	TRY(doc_explode_text(c->text, c->arena, &limits, rev_doc_prefix_bytes(db, c->id), &ret->doc,
			     &c->err));
	ret->deleted = doc_find_special(&ret->doc, STR("_deleted")) != NULL;
	return store_read_parent(c, &ret->doc, &ret->parent);
}

static enum status
store_put_body(struct kv_tx *tx, void *arg)
{
	struct store_call *c = arg;
	struct catalog_db *db = NULL;
	struct rev_edit edit;
	enum status status;

	arena_reset(c->arena, c->mark);
	TRY(rev_db_open(tx, NULL, STR(COUCH_USERS_DB), &db, &c->err));
	status = store_make_edit(c, db, &edit);
	if (status == STATUS_OK)
		status = rev_write(tx, db, &edit, 1, 0, c->arena, &c->result, &c->err);
	catalog_db_unref(db);
	/* A refused edit ends the attempt with a failure, so nothing is committed. */
	if (status == STATUS_OK)
		status = c->result.status;
	if (status == STATUS_OK && c->own)
		status = person_door_put(tx, c->own->name, c->own->door, c->own->at, &c->err);
	return status;
}

static enum status
store_create_body(struct kv_tx *tx, void *arg)
{
	struct store_call *c = arg;
	struct catalog_db *db = NULL;
	enum status status = rev_db_open(tx, NULL, STR(COUCH_USERS_DB), &db, &c->err);

	catalog_db_unref(db);
	if (status != STATUS_NOT_FOUND)
		return status;
	return rev_db_create(tx, STR(COUCH_USERS_DB), REV_SCHEME_DEFAULT, &c->err);
}

/* Checks the document, and hashes a password in it. */
static enum status
store_prepare(struct user_store *s, struct store_call *c, struct str text, struct err *err)
{
	struct settings_held *held = s->live ? settings_live_hold(s->live) : NULL;
	enum status status = STATUS_OK;

	if (!held && !s->settings)
		status = cli_settings_of_store(s->store, &s->settings, err);
	if (status == STATUS_OK)
		status = couch_prepare_user_doc(
			c->id, text,
			settings_of(held ? held->settings : s->settings, &access_setting_group),
			c->arena, &c->text, err);
	if (held)
		settings_held_unref(held);
	return status;
}

static enum status
user_store_put(struct user_place *place, struct str id, struct str text, bool create,
	       const struct user_at_door *own, struct arena *arena, struct err *err)
{
	struct user_store *s = (struct user_store *)place;
	struct store_call c = { .id = id, .own = own, .arena = arena };
	enum status status;

	TRY(store_prepare(s, &c, text, err));
	c.mark = arena_mark(arena);
	if (create)
		TRY(store_explain(&c, kv_run(s->store, store_create_body, &c, NULL, err), err));
	c.err = (struct err){ 0 };
	status = kv_run(s->store, store_put_body, &c, NULL, err);
	return store_explain(&c, status, err);
}

/* ---- Everybody ---- */

struct store_listing {
	user_take *take;
	void *arg;
	struct arena *arena; /* for one person at a time */
	struct err *err;
};

static enum status
store_take_person(void *arg, const struct person *person)
{
	struct store_listing *l = arg;
	AUTO(buf_release) struct buf roles = BUF_INIT(COUCH_USER_DOC_BYTES);

	buf_append_byte(&roles, '[');
	for (size_t i = 0; i < person->roles_count; i++) {
		if (i)
			buf_append_byte(&roles, ',');
		json_write_str(&roles, person->roles[i]);
	}
	buf_append_byte(&roles, ']');
	TRY(buf_status(&roles));
	TRY(l->take(l->arg, person->name, buf_str(&roles), l->err));
	arena_clear(l->arena);
	return STATUS_OK;
}

static enum status
user_store_list(struct user_place *place, user_take *take, void *arg, struct err *err)
{
	struct user_store *s = (struct user_store *)place;
	struct arena *arena = arena_new(USER_ARENA_BYTES);
	struct store_listing listing = { take, arg, arena, err };
	struct kv_tx *tx = NULL;
	enum status status = arena ? kv_begin(s->store, KV_TX_READ_ONLY, &tx) : STATUS_NOMEM;

	if (status == STATUS_OK)
		status = person_each(tx, arena, store_take_person, &listing, err);
	kv_tx_free(tx);
	arena_free(arena);
	return status;
}

static void
user_store_free(struct user_place *place)
{
	struct user_store *s = (struct user_store *)place;

	settings_free(s->settings);
	if (!s->live)
		kv_close(s->store);
	mem_free(s);
}

enum status
user_place_store(struct kv_store *store, struct user_place **ret, struct err *err)
{
	struct user_store *s = mem_zalloc(sizeof(*s));

	if (!s) {
		kv_close(store);
		return err_set(err, STATUS_NOMEM, "out of memory");
	}
	s->place = (struct user_place){ user_store_get, user_store_put, user_store_list,
					user_store_free };
	s->store = store;
	*ret = &s->place;
	return STATUS_OK;
}

enum status
user_place_lent(struct kv_store *store, struct settings_live *live, struct user_place **ret,
		struct err *err)
{
	struct user_store *s = mem_zalloc(sizeof(*s));

	if (!s)
		return err_set(err, STATUS_NOMEM, "out of memory");
	s->place = (struct user_place){ user_store_get, user_store_put, user_store_list,
					user_store_free };
	s->store = store;
	s->live = live;
	*ret = &s->place;
	return STATUS_OK;
}
