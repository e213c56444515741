#include "door/mongo/cmd/walk.h"

#include "door/mongo/txn/mongo_int.h"

enum {
	WALK_PAGE_NAMES = 1000,
};

struct walk {
	struct call *call;
	struct str prefix; /* "db." or empty */
	walk_take *take;
	void *arg;
	struct str after; /* the last name of the page before */
	bool more;
};

static enum status
walk_page(struct kv_tx *tx, void *arg)
{
	struct walk *w = arg;
	struct call *c = w->call;
	struct name_range range = { .begin = w->after.ptr ? w->after : w->prefix,
				    .has_begin = w->after.ptr || w->prefix.len,
				    .exclusive_begin = w->after.ptr,
				    .limit = WALK_PAGE_NAMES };
	struct name_page page;
	struct str last = w->after;

	TRY(catalog_list(tx, CATALOG_SPACE_MONGO, &range, c->arena, &page));
	w->more = page.more;
	for (size_t i = 0; i < page.count; i++) {
		if (!str_starts_with(page.names[i], w->prefix)) {
			w->more = false;
			break;
		}
		TRY(w->take(c, w->arg, tx, page.names[i]));
		last = page.names[i];
	}
	w->after = last;
	return STATUS_OK;
}

enum status
walk_collections(struct call *c, struct str prefix, walk_take *take, void *arg)
{
	struct walk w = { .call = c, .prefix = prefix, .take = take, .arg = arg, .more = true };
	struct kv_tx *tx;
	enum status status = STATUS_OK;

	while (status == STATUS_OK && w.more) {
		TRY(kv_begin(c->mongo->config.store, KV_TX_READ_ONLY, &tx));
		status = walk_page(tx, &w);
		kv_tx_free(tx);
	}
	return status;
}
