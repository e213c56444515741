#include "door/couch/admin/peruser.h"

#include "access/person.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/quote.h"
#include "catalog/chores.h"
#include "door/couch/admin/access.h"
#include "door/couch/admin/security_names.h"
#include "door/couch/admin/user_doc.h"
#include "settings/live.h"

enum {
	PERUSER_PAUSE_MS = 200, /* between two looks, so the longest wait of a new user */
	PERUSER_MORE_MS = 10,
	PERUSER_FAILED_MS = 1000,
	PERUSER_TURN_MS = 100,     /* quick chores share a thread */
	PERUSER_TRANSACTIONS = 50, /* transactions in one turn */
	PERUSER_PAGE = 50,         /* documents that one transaction looks at */
	PERUSER_ARENA_BYTES = 64 * 1024 * 1024,
	PERUSER_SECURITY_BYTES = 96 * 1024, /* of a security object that a name is put into */
};

/*
 * The stored place up to which _users has been followed: a format number, the settings that were in
 * force, and a Sequence. It is kept with the configuration of _users, so it goes away when that
 * database is deleted. If the format or the settings differ, all users are looked at again.
 */
#define PERUSER_PLACE "couch_peruser"

/* A document for which no database can be made, and why. */
struct refusal {
	struct str id;
	struct err err;
};

/* A turn, and the present attempt of its transaction. */
struct turn {
	struct couch *couch;
	const struct couch_settings *settings;
	enum rev_scheme scheme;
	struct arena *arena;

	bool more;
	bool event;  /* the attempt has created or deleted a database */
	size_t done; /* documents that the attempt has handled */
	struct refusal *refusals;
	size_t refused;
};

/* ---- The place ---- */

static struct str
place_begin(const struct turn *t)
{
	return arena_printf(t->arena, "1 %d %s ", t->settings->peruser_deletes,
			    t->settings->peruser_prefix);
}

static enum status
place_read(struct turn *t, struct kv_tx *tx, const struct catalog_db *db, struct catalog_seq *ret)
{
	struct str begin = place_begin(t);
	struct str text;
	enum status status;

	*ret = (struct catalog_seq){ { 0 } };
	if (!begin.ptr)
		return STATUS_LIMIT;
	status = rev_config_get(tx, db, STR(PERUSER_PLACE), t->arena, &text);
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	TRY(status);
	if (str_starts_with(text, begin) &&
	    catalog_seq_parse(str_skip(text, begin.len), ret, NULL) != STATUS_OK)
		*ret = (struct catalog_seq){ { 0 } };
	return STATUS_OK;
}

static enum status
place_write(struct turn *t, struct kv_tx *tx, const struct catalog_db *db,
	    const struct catalog_seq *seq)
{
	struct buf AUTO(buf_release) text = BUF_SHORT(KV_LIMIT_VALUE_BYTES);
	struct str begin = place_begin(t);

	if (!begin.ptr)
		return STATUS_LIMIT;
	buf_append_str(&text, begin);
	catalog_seq_write(seq, &text);
	TRY(buf_status(&text));
	return rev_config_set(tx, db, STR(PERUSER_PLACE), buf_str(&text), kv_tx_err(tx));
}

/* ---- One user ---- */

static enum status
user_set_security(struct turn *t, struct kv_tx *tx, const struct catalog_db *db, struct str name,
		  bool listed, struct err *err)
{
	struct buf AUTO(buf_release) text = BUF_SHORT(PERUSER_SECURITY_BYTES);
	struct str before;
	enum status status;
	bool changed;

	TRY(couch_security_of(tx, db, t->arena, &before));
	status = couch_security_list_name(before, name, listed, t->arena, &text, &changed);
	if (text.failed == STATUS_LIMIT)
		return err_set(err, STATUS_INVALID, "its security object becomes too large");
	TRY(status);
	return changed ? couch_security_set(tx, db, buf_str(&text), err) : STATUS_OK;
}

static enum status
user_create_db(struct turn *t, struct kv_tx *tx, struct str db_name, struct catalog_db **ret,
	       struct err *err)
{
	TRY(rev_db_create(tx, db_name, t->scheme, err));
	t->event = true;
	return rev_db_open(tx, NULL, db_name, ret, err);
}

/*
 * Each byte becomes two hexadecimal digits. CouchDB writes one digit for a byte below 16, so two
 * names could share a database there.
 */
static enum status
user_db_name(struct turn *t, struct str name, struct str *ret, struct err *err)
{
	struct buf AUTO(buf_release) text = BUF_SHORT(CATALOG_NAME_BYTES);

	buf_append_cstr(&text, t->settings->peruser_prefix);
	buf_append_hex(&text, name);
	if (buf_status(&text) == STATUS_LIMIT)
		return err_set(err, STATUS_INVALID,
			       "the name of its database would be longer than %d bytes",
			       CATALOG_NAME_BYTES);
	return buf_copy(&text, t->arena, ret);
}

static enum status
user_see_to(struct turn *t, struct kv_tx *tx, struct str name, bool deleted, struct err *err)
{
	struct catalog_db *db = NULL;
	struct str db_name;
	enum status status;

	if (!person_name_is_sound(name))
		return err_set(err, STATUS_INVALID, "nobody can have this name");
	TRY(user_db_name(t, name, &db_name, err));
	status = rev_db_open(tx, NULL, db_name, &db, err);
	if (status == STATUS_NOT_FOUND && deleted)
		return STATUS_OK;
	if (status == STATUS_NOT_FOUND)
		status = user_create_db(t, tx, db_name, &db, err);
	if (status == STATUS_OK && deleted && t->settings->peruser_deletes) {
		t->event = true;
		status = catalog_delete(tx, CATALOG_SPACE_COUCH, db_name, err);
	} else if (status == STATUS_OK) {
		status = user_set_security(t, tx, db, name, !deleted, err);
	}
	catalog_db_unref(db);
	return status;
}

/* ---- A transaction ---- */

/*
 * True for a failure that would repeat in every turn and keep all later users from getting a
 * database. Such a document is logged and skipped.
 */
static bool
failure_stays(enum status status)
{
	return status == STATUS_INVALID || status == STATUS_FORBIDDEN || status == STATUS_NEWER ||
	       status == STATUS_CORRUPT || status == STATUS_JSON_SYNTAX ||
	       status == STATUS_JSON_UTF8 || status == STATUS_JSON_DEPTH;
}

static enum status
row_take(struct turn *t, struct kv_tx *tx, const struct rev_change *change)
{
	struct str name = couch_user_of_id(change->id);
	struct arena_mark mark = arena_mark(t->arena);
	struct err err = { 0 };
	enum status status;

	if (!name.ptr)
		return STATUS_OK; /* a design document */
	status = user_see_to(t, tx, name, change->deleted, &err);
	arena_reset(t->arena, mark);
	if (failure_stays(status)) {
		t->refusals[t->refused].id = change->id;
		t->refusals[t->refused++].err = err;
		return STATUS_OK;
	}
	if (status != STATUS_OK && err.text[0])
		*kv_tx_err(tx) = err;
	return status;
}

static enum status
peruser_page_take(struct turn *t, struct kv_tx *tx, const struct catalog_db *db)
{
	struct rev_change_range range = { .limit = PERUSER_PAGE };
	struct rev_change_page page;
	size_t i = 0;

	memset(range.until.bytes, 0xff, sizeof(range.until.bytes));
	TRY(place_read(t, tx, db, &range.since));
	TRY(rev_changes_page(tx, db, &range, t->arena, &page));
	if (!page.count)
		return STATUS_OK;
	t->refusals = arena_alloc(t->arena, page.count * sizeof(*t->refusals));
	if (!t->refusals)
		return STATUS_LIMIT;
	/*
	 * Readers of events go by their Sequence. Two events of one transaction would have the
	 * same, so the page ends after one.
	 */
	while (i < page.count && !t->event)
		TRY(row_take(t, tx, &page.changes[i++]));
	t->done = i;
	t->more = page.more || i < page.count;
	return place_write(t, tx, db, &page.changes[i - 1].seq);
}

static void
attempt_begin(struct turn *t)
{
	arena_clear(t->arena);
	t->more = t->event = false;
	t->done = t->refused = 0;
}

static enum status
turn_body(struct kv_tx *tx, void *arg)
{
	struct turn *t = arg;
	struct catalog_db *db = NULL;
	enum status status;

	attempt_begin(t);
	status = rev_db_open(tx, NULL, STR(COUCH_USERS_DB), &db, NULL);
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	TRY(status);
	status = peruser_page_take(t, tx, db);
	catalog_db_unref(db);
	return status;
}

/* ---- Turns ---- */

static enum status
turn_run(struct turn *t, struct chore_turn *turn, struct err *err)
{
	uint64_t end_ns = clock_after_ms(PERUSER_TURN_MS);

	for (unsigned n = 0; n < turn->budget; n++) {
		TRY(kv_run(t->couch->config.store, turn_body, t, NULL, err));
		turn->done += t->done;
		for (size_t i = 0; i < t->refused; i++)
			log_event(LOG_LEVEL_WARN, "peruser_refused", "id=\"%s\" reason=\"%s\"",
				  QUOTE_VALUE(t->refusals[i].id),
				  QUOTE_SHOW(str_from_cstr(t->refusals[i].err.text)));
		turn->more = t->more;
		if (!t->more || clock_mono_ns() >= end_ns)
			break;
	}
	return STATUS_OK;
}

/* Takes the present settings, including changes by other servers of the store. */
static enum status
peruser_hold_settings(struct couch *couch, struct settings_held **ret, struct err *err)
{
	struct settings_held *cached = settings_live_hold(couch->config.live);
	struct kv_tx *tx = NULL;
	enum status status;

	status = settings_live_take(couch->config.live, &cached, KV_TX_READ_ONLY, ret, &tx, err);
	kv_tx_free(tx);
	settings_held_unref(cached);
	return status;
}

static enum status
peruser_run(void *arg, struct chore_turn *turn, struct err *err)
{
	struct turn t = { .couch = arg, .scheme = REV_SCHEME_DEFAULT };
	struct settings_held *held = NULL;
	enum status status;

	status = peruser_hold_settings(t.couch, &held, err);
	if (held)
		t.settings = settings_of(held->settings, &couch_setting_group);
	if (status == STATUS_OK && t.settings && t.settings->peruser) {
		/* Cannot fail: the setting's declaration admits only the names of schemes. */
		(void)!rev_scheme_parse(str_from_cstr(t.settings->scheme), &t.scheme);
		t.arena = arena_new(PERUSER_ARENA_BYTES);
		status = t.arena ? turn_run(&t, turn, err) : STATUS_NOMEM;
		arena_free(t.arena);
	}
	settings_held_unref(held);
	return status;
}

void
couch_peruser_chores_add(struct couch *couch, struct chores *chores)
{
	chores_add(chores, &(struct chore){
				   .name = "couch_peruser",
				   .run = peruser_run,
				   .arg = couch,
				   .thread = CHORE_QUICK,
				   .leased = true,
				   .budget = PERUSER_TRANSACTIONS,
				   .pause_ms = PERUSER_PAUSE_MS,
				   .more_ms = PERUSER_MORE_MS,
				   .failed_ms = PERUSER_FAILED_MS,
			   });
}
