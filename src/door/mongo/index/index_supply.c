#include "catalog/chore_pass.h"
#include "door/mongo/index/index_supply.h"

#include "base/log.h"
#include "base/quote.h"
#include "door/mongo/txn/index_id.h"

struct supply {
	struct kv_store *store;
	bool renews;
	struct arena *arena;
	struct err *err;
	struct str name; /* of the collection */
	/* What the last attempt has found and done. */
	bool failed; /* there is an index whose build has failed */
	bool made;   /* an index was made */
};

/* The definition of the index if its build has failed; NULL: it has not. */
static const struct index_def *
find_failed(const struct catalog_db *db)
{
	const struct index_set *set = index_set_of(db);

	for (size_t i = 0; set && i < set->count; i++)
		if (set->defs[i].state == INDEX_FAILED && index_def_is_of_id(&set->defs[i]))
			return &set->defs[i];
	return NULL;
}

static enum status
supply_opened(struct supply *s, struct kv_tx *tx, const struct catalog_db *db)
{
	const struct index_def *failed = find_failed(db);
	uint64_t number;

	s->failed = failed != NULL;
	if (failed && !s->renews)
		return STATUS_OK;
	/* A collection that is being moved gets it in its new store. */
	if (catalog_db_check_writable(db, s->err) != STATUS_OK) {
		*s->err = (struct err){ 0 };
		return STATUS_OK;
	}
	s->made = true;
	return failed ? index_renew(tx, db, failed, &number, s->err)
		      : index_create_of_id(tx, db, s->arena, s->err);
}

static enum status
supply_body(struct kv_tx *tx, void *arg)
{
	struct supply *s = arg;
	struct catalog_db *db;
	enum status status;

	s->failed = s->made = false;
	status = catalog_open(tx, NULL, CATALOG_SPACE_MONGO, s->name, &db, s->err);
	if (status != STATUS_OK) /* it may have been dropped meanwhile */
		return status == STATUS_NOT_FOUND ? STATUS_OK : status;
	if (plain_wants_id_index(db) && !index_of_id(db))
		status = supply_opened(s, tx, db);
	catalog_db_unref(db);
	return status;
}

static void
supply_log(const struct supply *s)
{
	if (s->failed)
		log_event(LOG_LEVEL_WARN, "index_failed",
			  "db=\"%s\" index=\"_id_\" reason=\"the collation of the collection holds "
			  "some of its _ids equal: remove all but one of these documents and start "
			  "the server again\"",
			  QUOTE_VALUE(s->name));
	if (s->made)
		log_event(
			LOG_LEVEL_WARN, "index_made",
			"db=\"%s\" index=\"_id_\" reason=\"the collection has a collation, and had "
			"no index of its _ids\"",
			QUOTE_VALUE(s->name));
}

/* The collection has too many indexes: the others get theirs. */
static void
supply_log_limit(struct supply *s)
{
	log_event(LOG_LEVEL_WARN, "index_failed", "db=\"%s\" index=\"_id_\" reason=\"%s\"",
		  QUOTE_VALUE(s->name), QUOTE_SHOW(str_from_cstr(s->err->text)));
	*s->err = (struct err){ 0 };
}

static enum status
supply_collections(struct supply *s, struct buf *place, bool *ret_more, uint64_t *ret_made)
{
	struct arena_mark mark;
	struct name_page page;
	enum status status;

	TRY(catalog_list_behind(s->store, CATALOG_SPACE_MONGO, buf_str(place),
				INDEX_SUPPLY_COLLECTIONS, s->arena, &page, s->err));
	mark = arena_mark(s->arena);
	for (size_t i = 0; i < page.count; i++) {
		s->name = page.names[i];
		arena_reset(s->arena, mark);
		status = kv_run(s->store, supply_body, s, NULL, s->err);
		if (status == STATUS_LIMIT)
			supply_log_limit(s);
		else if (status != STATUS_OK)
			TRY(chore_pass_over(INDEX_SUPPLY_CHORE, s->name, status, s->err));
		if (status == STATUS_OK)
			supply_log(s);
		*ret_made += status == STATUS_OK && s->made;
		buf_set(place, s->name);
		TRY(buf_status(place));
	}
	*ret_more = page.more;
	if (!page.more)
		buf_clear(place);
	return STATUS_OK;
}

enum status
index_supply_turn(struct kv_store *store, bool renews, struct buf *place, bool *ret_more,
		  uint64_t *ret_made, struct err *err)
{
	struct supply s = { .store = store, .renews = renews, .err = err };
	enum status status;

	*ret_more = false;
	*ret_made = 0;
	s.arena = arena_new(INDEX_SUPPLY_ARENA_BYTES);
	if (!s.arena)
		return STATUS_NOMEM;
	status = supply_collections(&s, place, ret_more, ret_made);
	arena_free(s.arena);
	return status;
}
