/* What a store needs that goes on elsewhere than where its readers have known it. */
#include "kv/keyspace.h"
#include "catalog/catalog_int.h"
#include "catalog/incarnation.h"

enum {
	RELOCATE_NAMES = 500, /* databases in one transaction */
	RELOCATE_ARENA_BYTES = 4 * 1024 * 1024,
};

/* ---- Whether a reader can go on there ---- */

struct seq_reach {
	const struct catalog_seq *seq;
	bool reached;
};

/* Asks whether the store can have given out the Sequence by the transaction's read version. */
static enum status
seq_reach_attempt(struct kv_tx *tx, void *arg)
{
	struct seq_reach *reach = arg;
	uint8_t incarnation;
	uint64_t version;
	uint64_t at;

	/* No database of the store has a higher Incarnation than the store itself. */
	TRY(catalog_store_incarnation(tx, &incarnation));
	TRY(kv_get_read_version(tx, &version));
	at = catalog_seq_version(reach->seq);
	reach->reached = reach->seq->bytes[0] < incarnation ||
			 (reach->seq->bytes[0] == incarnation && at <= version);
	return STATUS_OK;
}

enum status
catalog_seq_check_reached(struct kv_tx *tx, const struct catalog_seq *since, struct err *err)
{
	struct seq_reach reach = { .seq = since };

	TRY(seq_reach_attempt(tx, &reach));
	if (!reach.reached)
		TRY(kv_run_read(kv_tx_store(tx), seq_reach_attempt, &reach, err));
	if (reach.reached)
		return STATUS_OK;
	return err_set(err, STATUS_INVALID,
		       "The sequence in 'since' lies beyond every event of this server.");
}

/* ---- Those of databases ---- */

enum status
catalog_incarnation_raise(struct kv_tx *tx, enum catalog_space space, struct str name,
			  struct err *err)
{
	struct catalog_db description;
	uint8_t of_store;

	TRY(catalog_description_get(tx, space, name, &description, err));
	TRY(catalog_store_incarnation(tx, &of_store));
	if (description.incarnation == UINT8_MAX)
		return STATUS_OK;
	description.incarnation++;
	if (description.incarnation < of_store)
		description.incarnation = of_store;
	TRY(catalog_description_set(tx, &description));
	return kv_touch_metadata_version(tx);
}

struct relocation {
	struct arena *arena;
	uint8_t least;   /* what is there already is enough; 0: one more for each */
	struct buf last; /* the key of the last database that is done */
	struct buf next; /* that of the page on its way */
	struct catalog_page page;
	struct err *err;
};

static enum status
incarnation_raise_to(struct kv_tx *tx, enum catalog_space space, struct str name, uint8_t least,
		     struct err *err)
{
	struct catalog_db description;

	TRY(catalog_description_get(tx, space, name, &description, err));
	if (description.incarnation >= least)
		return STATUS_OK;
	description.incarnation = least;
	TRY(catalog_description_set(tx, &description));
	return kv_touch_metadata_version(tx);
}

/* Raises a page of databases, those behind the last one. */
static enum status
incarnation_raise_page(struct kv_tx *tx, void *arg)
{
	struct relocation *r = arg;

	arena_clear(r->arena);
	/* `last` moves on only once this has been committed: the body may run again. */
	buf_clear(&r->next);
	buf_append_buf(&r->next, &r->last);
	TRY(buf_status(&r->next));
	TRY(catalog_all(tx, &r->next, RELOCATE_NAMES, r->arena, &r->page, r->err));
	for (size_t i = 0; i < r->page.count; i++) {
		const struct catalog_db *db = &r->page.dbs[i];

		TRY(r->least ? incarnation_raise_to(tx, db->kind->space, db->name, r->least, r->err)
			     : catalog_incarnation_raise(tx, db->kind->space, db->name, r->err));
	}
	return STATUS_OK;
}

/* First: a raising that was interrupted leaves no database above the store. */
static enum status
incarnation_raise_store(struct kv_tx *tx, void *arg)
{
	struct relocation *r = arg;
	uint8_t now;

	TRY(catalog_store_incarnation(tx, &now));
	if (r->least)
		return now < r->least ? catalog_store_incarnation_set(tx, r->least) : STATUS_OK;
	return now < UINT8_MAX ? catalog_store_incarnation_set(tx, (uint8_t)(now + 1)) : STATUS_OK;
}

static enum status
incarnation_raise_all(struct relocation *r, struct kv_store *store, uint64_t *ret_count)
{
	*ret_count = 0;
	TRY(kv_run(store, incarnation_raise_store, r, NULL, r->err));
	do {
		TRY(kv_run(store, incarnation_raise_page, r, NULL, r->err));
		*ret_count += r->page.count;
		if (r->page.count == 0)
			break;
		buf_clear(&r->last);
		buf_append_buf(&r->last, &r->next);
		TRY(buf_status(&r->last));
	} while (r->page.more);
	return STATUS_OK;
}

static enum status
incarnation_raise_any(struct kv_store *store, uint8_t least, uint64_t *ret_count, struct err *err)
{
	struct relocation r = {
		.least = least,
		.arena = arena_new(RELOCATE_ARENA_BYTES),
		.last = CATALOG_KEY_INIT,
		.next = CATALOG_KEY_INIT,
		.err = err,
	};
	uint64_t count = 0;
	enum status status = r.arena ? incarnation_raise_all(&r, store, &count)
				     : err_set(err, STATUS_NOMEM, "out of memory");

	buf_release(&r.last);
	buf_release(&r.next);
	arena_free(r.arena);
	if (status == STATUS_OK && ret_count)
		*ret_count = count;
	return status;
}

enum status
catalog_incarnations_raise(struct kv_store *store, uint64_t *ret_count, struct err *err)
{
	return incarnation_raise_any(store, 0, ret_count, err);
}

enum status
catalog_incarnations_raise_to(struct kv_store *store, uint8_t least, struct err *err)
{
	return incarnation_raise_any(store, least, NULL, err);
}
