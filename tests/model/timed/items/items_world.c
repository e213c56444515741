#include "items_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "catalog/store_format.h"
#include "store.h"

static uint64_t
world_now(void *arg)
{
	return ((const struct world *)arg)->now_ms;
}

enum status
world_item(struct probe *p, const char *key, world_body *body)
{
	struct world *w = p->world;
	struct catalog_db *db = NULL;
	struct timed_item item;
	enum status status;
	struct timed t;

	TRY(catalog_open(p->tx, NULL, CATALOG_SPACE_REDIS, STR("0"), &db, &p->err));
	timed_init(&t, p->tx, db, &w->clock, &p->err);
	probe_begin(p);
	status = key ? timed_item_open(&t, str_from_cstr(key), p->arena, &item) : STATUS_OK;
	if (status == STATUS_OK)
		status = body(p, &t, &item);
	catalog_db_unref(db);
	return status;
}

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	(void)arg;
	return timed_items_create(tx, STR("0"), NULL);
}

struct filling {
	struct world *w;
	world_fill *fill;
};

static enum status
fill_body(struct kv_tx *tx, void *arg)
{
	struct filling *g = arg;
	struct catalog_db *db = NULL;
	struct err err = { 0 };
	enum status status;
	struct timed t;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_REDIS, STR("0"), &db, NULL));
	timed_init(&t, tx, db, &g->w->clock, &err);
	status = g->fill(&t, g->w);
	catalog_db_unref(db);
	return status;
}

int
world_open(world_fill *const *fills, size_t count, struct world **ret)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct world *w = calloc(1, sizeof(*w));
	struct err err = { 0 };
	char url[256];

	test_show_failures();
	timed_items_register();
	test_make_dir("probe", w->dir, sizeof(w->dir));
	probe_store_url(w->dir, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &w->store, &err), STATUS_OK);
	w->arena = arena_new(SIZE_MAX);
	w->clock = (struct timed_clock){ .now_ms = world_now, .arg = w };
	w->now_ms = START_MS;
	assert_int_equal(kv_run(w->store, create_body, NULL, NULL, &err), STATUS_OK);
	/* Each in a transaction, so that blocks of sorted sets are known from what is stored. */
	for (size_t i = 0; i < count; i++) {
		struct filling g = { w, fills[i] };

		if (kv_run(w->store, fill_body, &g, NULL, &err) != STATUS_OK)
			fail_msg("%s", err.text);
	}
	w->now_ms = LATER_MS;
	*ret = w;
	return 0;
}

void
world_close(struct world *w)
{
	arena_free(w->arena);
	kv_close(w->store);
	test_remove_tree(w->dir);
	free(w);
}
