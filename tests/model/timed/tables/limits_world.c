#include "limits_world.h"

#include "catalog/store_format.h"
#include "model/timed/tables/keyspaces.h"
#include "store.h"
#include "test_tables.h"

enum {
	ARENA_BYTES = 64 * 1024 * 1024,
};

#define START_MS UINT64_C(1700000000000)

static uint64_t
clock_now(void *arg)
{
	const struct fixture *f = arg;

	return f->now_ms;
}

struct work {
	struct fixture *f;
	const char *table; /* NULL: none is opened */
	work_body *body;
	void *arg;
};

static enum status
work_run(struct kv_tx *tx, void *arg)
{
	struct work *w = arg;
	struct catalog_db *db = NULL;
	enum status status;
	struct timed t;

	if (w->table)
		TRY(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, str_from_cstr(w->table), &db,
				 &w->f->err));
	timed_init(&t, tx, db, &w->f->clock, &w->f->err);
	status = w->body(&t, w->arg);
	catalog_db_unref(db);
	return status;
}

enum status
run(struct fixture *f, const char *table, work_body *body, void *arg)
{
	struct work w = { .f = f, .table = table, .body = body, .arg = arg };

	f->err = (struct err){ 0 };
	return kv_run(f->store, work_run, &w, NULL, &f->err);
}

void
expect(struct fixture *f, const char *table, work_body *body, void *arg, const char *refusal)
{
	enum status status = run(f, table, body, arg);

	if (status != (refusal ? STATUS_INVALID : STATUS_OK))
		fail_msg("%s: %s: %s", refusal ? refusal : "fine", status_name(status),
			 f->err.text);
	if (refusal && !strstr(f->err.text, refusal))
		fail_msg("\"%s\" does not say \"%s\"", f->err.text, refusal);
}

static enum status
create_all(struct timed *t, void *arg)
{
	const struct table_keyspace ks = { .name = STR("ks") };
	const struct table_schema msgs = { .columns = msgs_columns, .column_count = 6 };
	const struct table_schema hits = { .columns = hits_columns, .column_count = 3 };

	(void)arg;
	TRY(table_keyspace_create(t->tx, &ks, t->err));
	TRY(table_create(t->tx, STR("ks.msgs"), &msgs, 0, t->err));
	return table_create(t->tx, STR("ks.hits"), &hits, 0, t->err);
}

int
fixture_setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = calloc(1, sizeof(*f));
	char url[256];

	test_show_failures();
	tables_register();
	test_make_dir("table_limits", f->dir, sizeof(f->dir));
	test_store_url(f->dir, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &f->store, &f->err), STATUS_OK);
	f->arena = arena_new(ARENA_BYTES);
	f->now_ms = START_MS;
	f->clock = (struct timed_clock){ .now_ms = clock_now, .arg = f };
	assert_int_equal(run(f, NULL, create_all, NULL), STATUS_OK);
	*state = f;
	return 0;
}

int
fixture_teardown(void **state)
{
	struct fixture *f = *state;

	arena_free(f->arena);
	kv_close(f->store);
	test_remove_tree(f->dir);
	free(f);
	return 0;
}

struct str
letters(struct fixture *f, size_t len)
{
	char *bytes = arena_bytes(f->arena, len + 1);

	assert_non_null(bytes);
	memset(bytes, 'x', len);
	return str_of(bytes, len);
}
