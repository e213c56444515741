/*
 * What edits answer in a database with indexes, with followed documents or with partitions, when a
 * call of the store fails, when their memory ends and when what they read is damaged; and by what
 * they conflict (probe.h). Batches of new documents, too.
 */
#include "between.h"

#include <stdlib.h>

#include "probe.h"

enum {
	EDITS = 12,
	FULL_BYTES = 10, /* of a partition, which all that have a document have */
};

static const struct catalog_db *
begin(struct probe *p)
{
	const struct fixture *f = p->world;

	probe_begin(p);
	return f->db;
}

static void
say_rev(struct probe *p, struct rev_id rev)
{
	rev_id_write(rev, &p->said);
	buf_append_byte(&p->said, '|');
}

static enum status
write_edits(struct probe *p, const struct rev_edit *edits, size_t count, size_t first)
{
	struct rev_result results[EDITS];

	TRY(rev_write(p->tx, begin(p), edits, count, first, p->arena, results, &p->err));
	for (size_t i = 0; i < count; i++) {
		/* There is no memory for that edit. */
		if (results[i].status == STATUS_NOMEM)
			return STATUS_NOMEM;
		buf_printf(&p->said, "%s ", status_name(results[i].status));
		buf_append_str(&p->said, results[i].index);
		if (results[i].status == STATUS_OK)
			say_rev(p, results[i].rev);
	}
	return STATUS_OK;
}

static enum status
edit(struct probe *p, const char *id, const char *parent, const char *json)
{
	const struct rev_edit one = fixture_edit(p->world, id, parent, json);

	return write_edits(p, &one, 1, 0);
}

static enum status
copy(struct probe *p, const char *id, const char *history, bool deleted, const char *json)
{
	const struct rev_edit one = fixture_copy(p->world, id, history, deleted, json);

	return write_edits(p, &one, 1, 0);
}

/* ---- Indexes ---- */

static enum status
enter(struct probe *p)
{
	return edit(p, "new", NULL, "{\"n\":50}");
}

static enum status
move(struct probe *p)
{
	return edit(p, "a", "2-x", "{\"n\":51}");
}

static enum status
stay(struct probe *p)
{
	return edit(p, "a", "2-x", "{\"n\":1,\"m\":2}");
}

static enum status
leave(struct probe *p)
{
	return edit(p, "a", "2-x", "{\"m\":2}");
}

static enum status
duplicate(struct probe *p)
{
	return edit(p, "new", NULL, "{\"n\":2}");
}

static enum status
duplicate_of_a_move(struct probe *p)
{
	return edit(p, "a", "2-x", "{\"n\":2}");
}

static enum status
delete_winner(struct probe *p)
{
	return edit(p, "a", "2-x", NULL);
}

static enum status
delete_only(struct probe *p)
{
	return edit(p, "b", "1-b", NULL);
}

static enum status
begin_again(struct probe *p)
{
	return edit(p, "d", NULL, "{\"n\":52}");
}

static enum status
loser_stays(struct probe *p)
{
	return copy(p, "a", "2-v a", false, "{\"n\":53}");
}

static enum status
loser_wins(struct probe *p)
{
	return edit(p, "a", "2-w", "{\"n\":54}");
}

static enum status
branch_wins(struct probe *p)
{
	return copy(p, "a", "3-q w a", false, "{\"n\":55}");
}

static enum status
tombstone_of_the_winner(struct probe *p)
{
	return copy(p, "a", "3-q x a", true, "{}");
}

static enum status
merged(struct probe *p)
{
	const struct rev_edit edits[] = {
		fixture_copy(p->world, "a", "3-q x a", false, "{\"n\":56}"),
		fixture_copy(p->world, "a", "4-r q x a", false, "{\"n\":57}"),
		fixture_copy(p->world, "a", "2-u a", false, "{\"n\":58}"),
		fixture_copy(p->world, "b", "2-c b", false, "{\"n\":59}"),
		fixture_copy(p->world, "b", "2-d b", true, "{}"),
	};

	return write_edits(p, edits, 5, 0);
}

/* What is merged is refused, and so is only one of two. */
static enum status
merged_duplicate(struct probe *p)
{
	const struct rev_edit edits[] = {
		fixture_copy(p->world, "a", "3-q x a", false, "{\"n\":2}"),
		fixture_copy(p->world, "a", "4-r q x a", false, "{\"n\":2}"),
		fixture_copy(p->world, "new", "1-n", false, "{\"n\":60}"),
	};

	return write_edits(p, edits, 3, 0);
}

static enum status
purge(struct probe *p, const char *id, const char *rev)
{
	const struct rev_id gone = fixture_rev(p->world, rev);
	const struct rev_purge_query query = { str_from_cstr(id), &gone, 1 };
	struct rev_purge_result result;

	TRY(rev_purge(p->tx, begin(p), &query, 1, p->arena, &result, &p->err));
	for (size_t i = 0; i < result.count; i++)
		say_rev(p, result.revs[i]);
	return STATUS_OK;
}

static enum status
purge_winner(struct probe *p)
{
	return purge(p, "a", "2-x");
}

static enum status
purge_only(struct probe *p)
{
	return purge(p, "b", "1-b");
}

/* Two of them follow each other, whose entries go into one index. */
static enum status
several(struct probe *p)
{
	const struct rev_edit edits[] = {
		fixture_edit(p->world, "b", "1-b", "{\"n\":2,\"m\":0}"),
		fixture_edit(p->world, "new", NULL, "{\"n\":2}"),
		fixture_edit(p->world, "other", NULL, "{\"n\":61}"),
		fixture_edit(p->world, "d", "1-d", NULL),
	};

	return write_edits(p, edits, 4, 0);
}

static enum status
design(struct probe *p)
{
	return edit(p, "_design/x", "1-x", "{\"n\":7}");
}

static enum status
design_deleted(struct probe *p)
{
	return edit(p, "_design/x", "1-x", NULL);
}

static enum status
design_begins(struct probe *p)
{
	return copy(p, "_design/y", "1-y", false, "{\"n\":7}");
}

static enum status
design_purged(struct probe *p)
{
	return purge(p, "_design/x", "1-x");
}

static const struct probe_op indexed[] = {
	{ "enter", enter, "ok, conflicts 2 0+0" },
	{ "move", move, "ok, conflicts 2 0+0; 1: C/CNCOC 2: CO/CNCOCOCOC" },
	{ "stay", stay, "ok, conflicts 1 0+0; 1: C/CNCOC 2: CO/CNCOCOCOC" },
	{ "leave", leave, "ok, conflicts 1 0+0; 1: C/CNCOC 2: CO/CNCOCOCOC" },
	{ "duplicate", duplicate, "ok, conflicts 2 0+0; 1: O/O" },
	{ "duplicate of a move", duplicate_of_a_move,
	  "ok, conflicts 2 0+0; 1: C/CNCOC 2: CO/CNCOCOCOC 3: O/O" },
	{ "delete the winner", delete_winner,
	  "ok, conflicts 3 0+0; 1: C/CNCOC 2: CO/CNCOCOCOC 3: CO/CNCOC 4: C/CNCOC" },
	{ "delete the only one", delete_only, "ok, conflicts 2 0+0; 1: C/CNCOC 2: CO/CNCOCOC" },
	{ "begin again", begin_again, "ok, conflicts 2 0+0; 1: CO/CNCOCOC" },
	{ "a loser stays one", loser_stays,
	  "ok, conflicts 1 0+0; despite 1=ok; 1: CO/CNCOC 2: CO/CNCOCOCOC" },
	{ "a loser wins", loser_wins,
	  "ok, conflicts 4 0+0; despite 1=ok; 1: O/O 2: CO/CNCOC 3: CO/CNCOCOCOC 4: C/CNCOC" },
	{ "a branch wins", branch_wins,
	  "ok, conflicts 2 0+0; despite 1=ok; 1: O/O 2: CO/CNCOC 3: CO/CNCOCOCOC 4: C/CNCOC" },
	{ "a tombstone of the winner", tombstone_of_the_winner,
	  "ok, conflicts 2 0+0; 1: C/CNCOC 2: CO/CNCOC 3: CO/CNCOCOCOC 4: C/CNCOC" },
	{ "merged", merged,
	  "ok, conflicts 4 0+0; 1: CO/CNCOC 2: CO/CNCOCOCOC 3: CO/CNCOCOC 4-5: C/CNCOC" },
	{ "a duplicate that is merged", merged_duplicate,
	  "ok, conflicts 4 0+0; 1: CO/CNCOC 2: CO/CNCOCOCOC 3: C/CNCOC 4: O/O" },
	{ "purge the winner", purge_winner,
	  "ok, conflicts 2 0+0; 1: CO/CNCOCOCOC 2: CO/CNCOC 3-4: C/CNCOC" },
	{ "purge the only one", purge_only, "ok, conflicts 1 0+0; 1: CO/CNCOCOC 2: C/CNCOC" },
	{ "several", several,
	  "ok, conflicts 7 0+0; despite 3=ok; 1: C/CNCOC 2-3: CO/CNCOCOC 4: O/O" },
	{ "a design document", design, "ok, conflicts 2 0+0; 1: C/CNCOC 2: CO/CNCOCOC" },
	{ "a design document goes", design_deleted,
	  "ok, conflicts 3 0+0; 1: C/CNCOC 2: CO/CNCOCOC" },
	{ "a design document comes", design_begins, "ok, conflicts 2 0+0" },
	{ "a design document is purged", design_purged,
	  "ok, conflicts 2 0+0; 1: CO/CNCOCOC 2: C/CNCOC" },
};

static const struct probe_op building[] = {
	{ "beside a build: enter", enter, "ok, conflicts 2 0+0" },
	{ "beside a build: move", move, "ok, conflicts 3 0+0; 1: C/CNCOC 2: CO/CNCOCOCOC" },
	{ "beside a build: stay", stay, "ok, conflicts 2 0+0; 1: C/CNCOC 2: CO/CNCOCOCOC" },
	{ "beside a build: delete the winner", delete_winner,
	  "ok, conflicts 4 0+0; 1: C/CNCOC 2: CO/CNCOCOCOC 3: CO/CNCOC 4: C/CNCOC" },
	{ "beside a build: delete the only one", delete_only,
	  "ok, conflicts 3 0+0; 1: C/CNCOC 2: CO/CNCOCOC" },
	{ "beside a build: merged", merged,
	  "ok, conflicts 6 0+0; 1: CO/CNCOC 2: CO/CNCOCOCOC 3: CO/CNCOCOC 4-5: C/CNCOC" },
	{ "beside a build: purge the winner", purge_winner,
	  "ok, conflicts 3 0+0; 1: CO/CNCOCOCOC 2: CO/CNCOC 3-4: C/CNCOC" },
	{ "beside a build: several", several,
	  "ok, conflicts 8 0+0; despite 3=ok; 1: C/CNCOC 2-3: CO/CNCOCOC 4: O/O" },
};

static const struct probe_op checks[] = {
	{ "verify", probe_verify,
	  "ok, conflicts 5 0+0; 1: ~/~O 2: ~/~O~O~O 3: ~/~O 4: ~/O 5: ~/~O 6: ~/~O~O~ 7-15: "
	  "~O~/~O~O~O 16: ~O/~ 17-18: ~O/~O~ 19-20: ~O/~ 21-31: ~/~ 32-35: ~/~O~O~O~O~ 36-38: ~/~ "
	  "39-46: O/O 47: ~/~ 48: ~/~O 49-51: ~/~O~O~O~O~ 52-53: ~/~O~O~O~ 54: ~/~O~O~O~O~ 55-59: "
	  "O/O 60-61: ~/~ 62-63: O/O 64-65: ~/~ 66-73: O/O 74-76: ~/O 77: O/O 78: O/~ 79-83: O/O "
	  "84: O/~ 85-89: O/O 90: O/~ 91-104: O/O" },
};

/* ---- Partitions ---- */

static enum status
part_enter(struct probe *p)
{
	return edit(p, "p:new", NULL, "{\"n\":7}");
}

static enum status
part_grow(struct probe *p)
{
	return edit(p, "p:a", "1-a", "{\"n\":7,\"m\":\"longer than it was\"}");
}

static enum status
part_delete(struct probe *p)
{
	return edit(p, "p:a", "1-a", NULL);
}

static enum status
part_purge(struct probe *p)
{
	return purge(p, "p:a", "1-a");
}

static enum status
part_copies(struct probe *p)
{
	const struct rev_edit edits[] = {
		fixture_copy(p->world, "p:a", "2-b a", false, "{\"n\":8}"),
		fixture_copy(p->world, "p:a", "2-c a", true, "{}"),
		fixture_copy(p->world, "q:n", "1-n", false, "{}"),
	};

	return write_edits(p, edits, 3, 0);
}

/* Of a partition that is full two may not grow, and one may shrink. */
static enum status
part_full(struct probe *p)
{
	struct rev_edit edits[] = {
		fixture_edit(p->world, "p:a", "1-a", "{}"),
		fixture_edit(p->world, "p:b", "1-b", "{\"n\":7,\"m\":\"longer than it was\"}"),
		fixture_edit(p->world, "p:new", NULL, "{}"),
		fixture_edit(p->world, "new:new", NULL, "{}"),
		fixture_edit(p->world, "_design/x", NULL, "{}"),
	};

	for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++)
		edits[i].max_partition_bytes = FULL_BYTES;
	return write_edits(p, edits, sizeof(edits) / sizeof(edits[0]), 0);
}

static enum status
part_info(struct probe *p)
{
	struct rev_partition_info info;

	TRY(rev_partition_info(p->tx, begin(p), STR("p"), &info));
	buf_printf(&p->said, "%llu %llu %llu %llu", (unsigned long long)info.doc_count,
		   (unsigned long long)info.doc_del_count, (unsigned long long)info.sizes.external,
		   (unsigned long long)info.sizes.active);
	return STATUS_OK;
}

static enum status
part_sizes(struct probe *p)
{
	struct rev_sizes sizes;

	TRY(rev_partitions_sizes(p->tx, begin(p), &sizes));
	buf_printf(&p->said, "%llu %llu", (unsigned long long)sizes.external,
		   (unsigned long long)sizes.active);
	return STATUS_OK;
}

static const struct probe_op parted[] = {
	{ "a new one", part_enter, "ok, conflicts 1 0+0" },
	{ "a longer one", part_grow, "ok, conflicts 1 0+0; 1: C/CNCOCOCOCO" },
	{ "delete", part_delete, "ok, conflicts 2 0+0; 1: C/CNCOCOCOCO" },
	{ "purge", part_purge, "ok, conflicts 1 0+0; 1: C/CNCOCOCOCO" },
	{ "copies", part_copies, "ok, conflicts 2 0+0; 1: C/CNCOCOCOCO" },
	{ "a full one", part_full, "ok, conflicts 5 0+0; 1: C/O 2: C/CNCOCOCOCO 3: C/CNCOCOC~CO" },
	{ "what is in one", part_info, "ok, conflicts 0 0+0; 1-3: C/~ 4-7: C/O 8-9: O/O" },
	{ "the sizes of all", part_sizes, "ok, conflicts 0 0+0; 1-2: C/~" },
};

static const struct probe_op parted_checks[] = {
	{ "verify partitions", probe_verify,
	  "ok, conflicts 2 0+0; 1: ~/~O 2: ~/~O~O~O 3: ~/~O~O~O~ 4: ~/~O 5: ~/O 6-7: ~/~O 8-15: "
	  "~O~/~O~O~O 16-34: ~/~ 35-38: ~/~O~O~O~O~ 39-43: ~/~ 44-48: O/O 49-50: ~/O 51: O/O 52: "
	  "O/~ 53-57: O/O 58: O/~ 59-71: O/O" },
};

/* ---- Batches ---- */

static enum status
batch(struct probe *p, bool copies, size_t first)
{
	static const char *const ids[EDITS] = { "a",  "aa", "ab", "b",  "ba", "bb",
						"bc", "bd", "c",  "ca", "cb", "zz" };
	struct rev_edit edits[EDITS];

	for (size_t i = 0; i < EDITS; i++)
		edits[i] = copies ? fixture_copy(p->world, ids[i], "1-m", false, "{}")
				  : fixture_edit(p->world, ids[i], NULL, "{}");
	return write_edits(p, edits, EDITS, first);
}

static enum status
new_ones(struct probe *p)
{
	return batch(p, false, 0);
}

static enum status
copied_ones(struct probe *p)
{
	return batch(p, true, 0);
}

static enum status
later_ones(struct probe *p)
{
	return batch(p, false, 3);
}

static enum status
no_ones(struct probe *p)
{
	return write_edits(p, NULL, 0, 0);
}

static const struct probe_op batches[] = {
	{ "new ones", new_ones, "ok, conflicts 2 10+0; 1-3: O/O 4-5: CO/CNCOCOC" },
	{ "copied ones", copied_ones, "ok, conflicts 2 10+0; 1-3: O/O 4-5: CO/CNCOCOC" },
	{ "later ones", later_ones, "ok, conflicts 12 0+0; 1-2: CO/CNCOCOC" },
	{ "no ones", no_ones, "ok, conflicts 0 0+0" },
};

/* ---- The world ---- */

static enum status
indexes_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	uint64_t number;

	TRY(between_index(tx, f->db, INDEX_SPARSE, INDEX_READY, &number));
	return between_index(tx, f->db, INDEX_SPARSE | INDEX_UNIQUE, INDEX_READY, &number);
}

static enum status
building_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	uint64_t number;

	return between_index(tx, f->db, INDEX_SPARSE, INDEX_BUILDING, &number);
}

static enum status
design_changed(struct kv_tx *tx, const struct catalog_db *db,
	       const struct rev_design_change *change, struct arena *arena)
{
	struct kv_future *f;

	(void)db;
	(void)arena;
	(void)change;
	f = kv_get(tx, STR("what a hook reads"), KV_READ);
	return kv_future_wait(f);
}

static int
setup_indexed(void **state)
{
	struct fixture *f;

	assert_int_equal(setenv("FROND_TEST_FAULTS", "rate=0,delay=0,watch=0", 1), 0);
	assert_int_equal(fixture_setup(state), 0);
	f = *state;
	assert_int_equal(kv_run(f->store, indexes_body, f, NULL, NULL), STATUS_OK);
	fixture_reopen(f);
	(void)fixture_replicate(f, "_design/x", "1-x", false, "{\"n\":0}");
	(void)fixture_replicate(f, "a", "2-x a", false, "{\"n\":1}");
	(void)fixture_replicate(f, "a", "2-w a", false, "{\"n\":12}");
	(void)fixture_replicate(f, "b", "1-b", false, "{\"n\":2}");
	(void)fixture_replicate(f, "d", "1-d", true, "{}");
	rev_design_hook(design_changed);
	return 0;
}

/* The documents are older than one of the indexes. */
static int
setup_building(void **state)
{
	struct fixture *f;

	assert_int_equal(setup_indexed(state), 0);
	f = *state;
	assert_int_equal(kv_run(f->store, building_body, f, NULL, NULL), STATUS_OK);
	fixture_reopen(f);
	return 0;
}

static int
teardown_indexed(void **state)
{
	rev_design_hook(NULL);
	return fixture_teardown(state);
}

static int
setup_parted(void **state)
{
	struct fixture *f;

	assert_int_equal(setenv("FROND_TEST_FAULTS", "rate=0,delay=0,watch=0", 1), 0);
	assert_int_equal(fixture_setup(state), 0);
	f = *state;
	fixture_make_partitioned(f);
	(void)fixture_replicate(f, "p:a", "1-a", false, "{\"n\":1}");
	(void)fixture_replicate(f, "p:b", "1-b", false, "{\"n\":2}");
	(void)fixture_replicate(f, "p:d", "1-d", true, "{}");
	(void)fixture_replicate(f, "q:a", "1-a", false, "{}");
	return 0;
}

static int
setup_batches(void **state)
{
	struct fixture *f;

	assert_int_equal(setenv("FROND_TEST_FAULTS", "rate=0,delay=0,watch=0", 1), 0);
	assert_int_equal(fixture_setup(state), 0);
	f = *state;
	(void)fixture_replicate(f, "ab", "1-a", false, "{\"n\":1}");
	(void)fixture_replicate(f, "b", "1-b", true, "{\"n\":2}");
	(void)fixture_replicate(f, "be", "1-b", false, "{\"n\":2}");
	return 0;
}

#define COUNT(ops) (sizeof(ops) / sizeof((ops)[0]))

static void
edits_with_indexes_hand_failures_on(void **state)
{
	struct fixture *f = *state;

	probe_each(f->store, f, indexed, COUNT(indexed));
}

static void
edits_beside_a_build_hand_failures_on(void **state)
{
	struct fixture *f = *state;

	probe_each(f->store, f, building, COUNT(building));
}

static void
checks_find_what_is_damaged(void **state)
{
	struct fixture *f = *state;

	probe_each_throughout(f->store, f, checks, COUNT(checks));
}

static void
edits_in_partitions_hand_failures_on(void **state)
{
	struct fixture *f = *state;

	probe_each(f->store, f, parted, COUNT(parted));
}

/* Of a pair that is lost some are missed: what nothing refers to, and what may be there or not. */
static void
checks_find_what_is_damaged_in_partitions(void **state)
{
	struct fixture *f = *state;

	probe_each_throughout(f->store, f, parted_checks, COUNT(parted_checks));
	probe_pairs(f->store, f, &parted_checks[0],
		    "1-2: O 3-4: ~ 5-15: O 16-34: ~ 35-36: O 37-41: ~", "1-41: ~");
}

static void
batches_hand_failures_on(void **state)
{
	struct fixture *f = *state;

	probe_each(f->store, f, batches, COUNT(batches));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(edits_with_indexes_hand_failures_on, setup_indexed,
						teardown_indexed),
		cmocka_unit_test_setup_teardown(edits_beside_a_build_hand_failures_on,
						setup_building, teardown_indexed),
		cmocka_unit_test_setup_teardown(checks_find_what_is_damaged, setup_building,
						teardown_indexed),
		cmocka_unit_test_setup_teardown(edits_in_partitions_hand_failures_on, setup_parted,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(checks_find_what_is_damaged_in_partitions,
						setup_parted, fixture_teardown),
		cmocka_unit_test_setup_teardown(batches_hand_failures_on, setup_batches,
						fixture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
