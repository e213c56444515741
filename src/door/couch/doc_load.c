/* Documents that a program writes into a store itself, shown to validators. */
#include "base/mem.h"
#include "base/quote.h"
#include "doc/json_value.h"
#include "door/couch/couch.h"
#include "door/couch/doc/vet.h"

struct couch_loader {
	struct js *js;
	struct couch_kept_table kept; /* validators that have been read */
	struct couch_validators *validators;
	struct catalog_db *db; /* of the last attempt */
	struct couch_vettings vettings;
	struct couch_fail fail;
};

struct couch_loader *
couch_loader_new(struct js *js)
{
	struct couch_loader *l = mem_zalloc(sizeof(*l));

	if (l)
		l->js = js;
	return l;
}

void
couch_loader_free(struct couch_loader *l)
{
	if (!l)
		return;
	couch_validators_unref(l->validators);
	couch_kept_table_release(&l->kept);
	catalog_db_unref(l->db);
	mem_free(l);
}

void
couch_loader_begin(struct couch_loader *l)
{
	l->vettings = (struct couch_vettings){ 0 };
}

/* What whoever holds the store is for functions: the administrator that CouchDB's replicator is. */
static struct couch_vetter
vetter_of(struct couch_loader *l, struct arena *arena)
{
	static struct str roles[] = { STR("_admin") };
	static const struct auth_user admin = { .roles = roles, .roles_count = 1, .admin = true };

	return (struct couch_vetter){
		.js = l->js,
		.db = l->db,
		.validators = l->validators,
		.user = &admin,
		.arena = arena,
		.fail = &l->fail,
	};
}

enum status
couch_loader_vet(struct couch_loader *l, struct kv_tx *tx, struct catalog_db *db,
		 const struct rev_edit *edits, size_t count, struct arena *arena, struct err *err)
{
	struct couch_vetter by;

	catalog_db_unref(l->db);
	l->db = catalog_db_ref(db);
	TRY(couch_validators_find(&l->kept, tx, db, &l->validators, err));
	by = vetter_of(l, arena);
	return couch_vetting_compare(&by, tx, edits, count, &l->vettings);
}

enum status
couch_loader_run(struct couch_loader *l, struct arena *arena, struct err *err)
{
	const struct couch_vetter by = vetter_of(l, arena);
	enum status status = couch_vetting_run(&by, &l->vettings);

	if (status != STATUS_OK)
		*err = l->fail.err;
	return status;
}

const char *
couch_loader_denial(const struct couch_loader *l, size_t i, struct arena *arena)
{
	const struct couch_fail *denial = couch_vet_denial(&l->vettings, i);
	struct json_value value;
	struct str text;

	if (!denial)
		return NULL;
	text = denial->reason;
	if (json_value_read(text, arena, &value, NULL) == STATUS_OK && value.kind == JSON_STRING)
		text = value.string;
	text = arena_printf(arena, "%s: %s", denial->err.text, QUOTE_SHOW(text));
	return text.ptr ? text.ptr : denial->err.text;
}
