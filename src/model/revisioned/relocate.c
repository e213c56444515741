/* What a store needs that goes on elsewhere than where its readers have known it. */
#include "model/revisioned/revisioned_int.h"

enum {
	RELOCATE_NAMES = 500, /* databases in one transaction */
	RELOCATE_ARENA_BYTES = 4 * 1024 * 1024,
};

struct relocation {
	struct arena *arena;
	struct buf last; /* the name of the last database that is done */
	struct rev_name_page page;
	struct err *err;
};

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
		TRY(rev_incarnation_raise(tx, r->page.names[i], r->err));
	return STATUS_OK;
}

/* First: a raising that was interrupted leaves no database above the store. */
static enum status
raise_store(struct kv_tx *tx, void *arg)
{
	(void)arg;
	return rev_store_incarnation_raise(tx);
}

static enum status
raise_all(struct relocation *r, struct kv_store *store, uint64_t *ret_count)
{
	*ret_count = 0;
	TRY(kv_run(store, raise_store, NULL, NULL, r->err));
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

enum status
rev_incarnations_raise(struct kv_store *store, uint64_t *ret_count, struct err *err)
{
	struct relocation r = {
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
