/*
 * What creating, building and changing an index answers when a call of the store fails, when memory
 * ends and when what it reads is damaged; and by what it conflicts (probe.h).
 */
#include "fixture.h"

#include <stdlib.h>

#include "index/engine/build.h"
#include "index/engine/draw.h"
#include "index/view/keys.h"
#include "probe.h"

enum {
	DOCS = 6,
	PAIRS_MOST = 500,
};

/* A database with documents and an index, each probe from the same state of it. */
struct building {
	struct fixture *f;
	uint64_t number;
	struct kv_pair *pairs;
	size_t count;
};

static struct str path_n[] = { { "n", 1 } };
static const struct index_column by_n[] = { { path_n, 1, false } };

static struct index_def
terms_of(void)
{
	return (struct index_def){ .state = INDEX_BUILDING,
				   .order = DOC_KEY_COUCH,
				   .name = STR("by-n"),
				   .owner = STR("owner"),
				   .columns = by_n,
				   .column_count = 1 };
}

/* ---- The state that is probed ---- */

static enum status
pairs_save(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf end = BUF_INIT(KV_LIMIT_KEY_BYTES);
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct building *b = arg;
	struct str begin = b->f->db->prefix;
	enum status status;
	struct kv_pair pair;

	b->count = 0;
	TRY(view_prefix_end(begin, &end));
	TRY(kv_scan_init(&scan, tx, begin, buf_str(&end), NULL));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		assert_true(b->count < PAIRS_MOST);
		b->pairs[b->count++] = (struct kv_pair){ arena_dup(b->f->arena, pair.key),
							 arena_dup(b->f->arena, pair.value) };
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
pairs_restore(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf end = BUF_INIT(KV_LIMIT_KEY_BYTES);
	const struct building *b = arg;
	struct str begin = b->f->db->prefix;

	TRY(view_prefix_end(begin, &end));
	TRY(kv_clear_range(tx, begin, buf_str(&end)));
	for (size_t i = 0; i < b->count; i++)
		TRY(kv_set(tx, b->pairs[i].key, b->pairs[i].value));
	return kv_touch_metadata_version(tx);
}

static void
restore(void *world)
{
	struct building *b = world;

	assert_int_equal(kv_run(b->f->calm, pairs_restore, b, NULL, NULL), STATUS_OK);
}

/* ---- Operations ---- */

static struct index_build_key
key_of(const struct building *b)
{
	return (struct index_build_key){ .space = CATALOG_SPACE_COUCH,
					 .db_name = b->f->db->name,
					 .db_number = b->f->db->number,
					 .number = b->number,
					 .claims = true };
}

/* The end is left to another thread, as it claims it. */
static enum status
look(struct kv_store *store, const struct building *b, enum index_state *ret_state, struct err *err)
{
	const struct index_build_key key = key_of(b);
	enum status status;

	assert_true(index_builds_claim(&key, INDEX_BUILD_STRETCHES));
	status = index_build_run(store, &key, 0, 0, ret_state, err);
	index_builds_leave(&key, INDEX_BUILD_STRETCHES);
	return status;
}

/* Makes the stretches. */
static enum status
plan(struct probe *p)
{
	enum index_state state;

	probe_begin(p);
	TRY(look(p->store, p->world, &state, &p->err));
	buf_append_cstr(&p->said, index_state_name(state));
	return STATUS_OK;
}

static enum status
progress(struct probe *p)
{
	struct index_progress *list;
	size_t count;

	probe_begin(p);
	TRY(index_progress_list(p->tx, 5, p->arena, &list, &count));
	for (size_t i = 0; i < count; i++)
		buf_printf(&p->said, "%.*s %llu of %llu", STR_ARG(list[i].name),
			   (unsigned long long)list[i].done, (unsigned long long)list[i].total);
	return STATUS_OK;
}

static enum status
create(struct probe *p)
{
	const struct building *b = p->world;
	const struct index_def terms = terms_of();
	uint64_t number;

	probe_begin(p);
	TRY(index_create(p->tx, b->f->db, &terms, &number, &p->err));
	buf_printf(&p->said, "%llu", (unsigned long long)number);
	return STATUS_OK;
}

static enum status
drop(struct probe *p)
{
	const struct building *b = p->world;

	probe_begin(p);
	return index_drop(p->tx, b->f->db, index_find(b->f->db, b->number));
}

static enum status
renew(struct probe *p)
{
	const struct building *b = p->world;
	uint64_t number;

	probe_begin(p);
	TRY(index_renew(p->tx, b->f->db, index_find(b->f->db, b->number), &number, &p->err));
	buf_printf(&p->said, "%llu", (unsigned long long)number);
	return STATUS_OK;
}

static enum status
note(struct probe *p, uint64_t many)
{
	const struct building *b = p->world;

	probe_begin(p);
	return index_many_note(p->tx, b->f->db, index_find(b->f->db, b->number), many);
}

static enum status
note_arrays(struct probe *p)
{
	return note(p, 1);
}

static enum status
note_nothing(struct probe *p)
{
	return note(p, 0);
}

static enum status
load(struct probe *p)
{
	const struct building *b = p->world;
	struct catalog_db db = *b->f->db;
	const struct index_set *set;
	void *loaded = NULL;

	probe_begin(p);
	db.by_version = false;
	TRY(index_set_load(p->tx, &db, &loaded, &p->err));
	set = loaded;
	for (size_t i = 0; set && i < set->count; i++)
		buf_append_cstr(&p->said, index_state_name(set->defs[i].state));
	index_set_free(loaded);
	return STATUS_OK;
}

static const struct probe_op planning = {
	"plan", plan,
	"ok, conflicts 3 0+0; 1: C/CNC~COCOCO 2-5: O/O 6: C/CNCOCOCOCOCOC 7: C/O 8: O/O 9-10: C/O"
};
static const struct probe_op changing[] = {
	{ "create", create, "ok, conflicts 1 0+0; 1: C/C~" },
	{ "drop", drop, "ok, conflicts 0 0+0" },
	{ "renew", renew, "ok, conflicts 1 0+0; 1: C/C~" },
	{ "note arrays", note_arrays, "ok, conflicts 1 0+0; 1: C/CNCOCOCOCOCOC" },
	{ "note nothing", note_nothing, "ok, conflicts 1 0+0; 1: C/CNCOCOCOCOCOC" },
	{ "load", load, "ok, conflicts 1 0+0; 1: C/CNCOCOCOCOCOC" },
	{ "progress", progress,
	  "ok, conflicts 2 0+0; 1: ~/~ 2: ~/~O~O~O 3-6: O/O 7: ~/~O~O~O~O~ 8: C/CNC~COCOC" },
};

/* ---- Tests ---- */

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	struct building *b = arg;
	const struct index_def terms = terms_of();

	return index_create(tx, b->f->db, &terms, &b->number, NULL);
}

static void
builds_hand_failures_on_and_conflict(void **state)
{
	struct building b = { .f = *state };
	enum index_state now;

	b.pairs = arena_alloc(b.f->arena, PAIRS_MOST * sizeof(*b.pairs));
	assert_non_null(b.pairs);
	for (int i = 0; i < DOCS; i++)
		fixture_put(b.f, arena_printf(b.f->arena, "d%d", i).ptr, NULL, "{\"n\":7}");
	assert_int_equal(kv_run(b.f->calm, create_body, &b, NULL, NULL), STATUS_OK);
	fixture_reopen(b.f);
	assert_int_equal(kv_run_read(b.f->calm, pairs_save, &b, NULL), STATUS_OK);
	probe_each_alone(b.f->store, &b, restore, &planning, 1);
	restore(&b);
	assert_int_equal(look(b.f->calm, &b, &now, NULL), STATUS_OK);
	assert_int_equal(now, INDEX_BUILDING);
	probe_each(b.f->store, &b, changing, sizeof(changing) / sizeof(changing[0]));
}

static int
setup(void **state)
{
	assert_int_equal(setenv("FROND_TEST_FAULTS", "rate=0,delay=0,watch=0", 1), 0);
	return fixture_setup(state);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(builds_hand_failures_on_and_conflict, setup,
						fixture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
