/* What a store needs that goes on elsewhere than where its readers have known it. */
#include "model/revisioned/revisioned_int.h"

enum {
	RELOCATE_NAMES = 500, /* databases in one transaction */
	RELOCATE_ARENA_BYTES = 4 * 1024 * 1024,
};

struct relocation {
	struct arena *arena;
	uint8_t least;   /* what is there already is enough; 0: one more for each */
	struct buf last; /* the name of the last database that is done */
	struct rev_name_page page;
	struct err *err;
};

static enum status
raise_to(struct kv_tx *tx, struct str name, uint8_t least, struct err *err)
{
	struct rev_db description;

	TRY(rev_description_get(tx, name, &description, err));
	if (description.incarnation >= least)
		return STATUS_OK;
	description.incarnation = least;
	TRY(rev_description_set(tx, &description));
	return kv_touch_metadata_version(tx);
}

/* Raises a page of databases, those behind the last one. */
static enum status
raise_page(struct kv_tx *tx, void *arg)
{
	struct relocation *r = arg;
	struct rev_name_range range = {
		.begin = buf_str(&r->last),
		.has_begin = r->last.len > 0,
		.exclusive_begin = true,
		.limit = RELOCATE_NAMES,
	};

	arena_clear(r->arena);
	TRY(rev_db_list(tx, &range, r->arena, &r->page));
	for (size_t i = 0; i < r->page.count; i++)
		TRY(r->least ? raise_to(tx, r->page.names[i], r->least, r->err)
			     : rev_incarnation_raise(tx, r->page.names[i], r->err));
	return STATUS_OK;
}

/* First: a raising that was interrupted leaves no database above the store. */
static enum status
raise_store(struct kv_tx *tx, void *arg)
{
	struct relocation *r = arg;
	uint8_t now;

	TRY(rev_store_incarnation(tx, &now));
	if (r->least)
		return now < r->least ? rev_store_incarnation_set(tx, r->least) : STATUS_OK;
	return now < UINT8_MAX ? rev_store_incarnation_set(tx, (uint8_t)(now + 1)) : STATUS_OK;
}

static enum status
raise_all(struct relocation *r, struct kv_store *store, uint64_t *ret_count)
{
	*ret_count = 0;
	TRY(kv_run(store, raise_store, r, NULL, r->err));
	do {
		TRY(kv_run(store, raise_page, r, NULL, r->err));
		*ret_count += r->page.count;
		if (r->page.count == 0)
			break;
		buf_clear(&r->last);
		buf_append_str(&r->last, r->page.names[r->page.count - 1]);
		TRY(buf_status(&r->last));
	} while (r->page.more);
	return STATUS_OK;
}

static enum status
raise_any(struct kv_store *store, uint8_t least, uint64_t *ret_count, struct err *err)
{
	struct relocation r = {
		.least = least,
		.arena = arena_new(RELOCATE_ARENA_BYTES),
		.last = BUF_INIT(KV_LIMIT_KEY_BYTES),
		.err = err,
	};
	uint64_t count = 0;
	enum status status = r.arena ? raise_all(&r, store, &count)
				     : err_set(err, STATUS_NOMEM, "out of memory");

	buf_release(&r.last);
	arena_free(r.arena);
	if (status == STATUS_OK && ret_count)
		*ret_count = count;
	return status;
}

enum status
rev_incarnations_raise(struct kv_store *store, uint64_t *ret_count, struct err *err)
{
	return raise_any(store, 0, ret_count, err);
}

enum status
rev_incarnations_raise_to(struct kv_store *store, uint8_t least, struct err *err)
{
	return raise_any(store, least, NULL, err);
}
