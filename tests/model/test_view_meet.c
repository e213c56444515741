/* Groups of a view that begin in each other's transactions. */
#include "views_world.h"

#include "index/view/build.h"
#include "index/view/run.h"

static struct {
	struct world *w;
	const struct view_documents *documents;
	struct view_design design;
	uint64_t number; /* of the other group */
	bool done;
} beginning;

/* In the middle of the first attempt, another group begins, and is there before this one. */
static enum status
newest_after_another(struct kv_tx *tx, const struct catalog_db *db, struct catalog_seq *ret)
{
	if (!beginning.done) {
		struct view_build build = build_of(beginning.w, &views_functions);
		struct view_record record;
		struct err err = { 0 };

		beginning.done = true;
		build.design = &beginning.design;
		assert_int_equal(view_build_state(&build, beginning.w->f->arena, &record, &err),
				 STATUS_OK);
		beginning.number = record.group.number;
	}
	return beginning.documents->newest(tx, db, ret);
}

/* Another design (`same` false), or this one. */
static uint64_t
begin_beside(struct world *w, bool same)
{
	static struct view_documents hooked;
	struct view_build build = build_of(w, &views_functions);
	struct view_record record;
	struct err err = { 0 };

	beginning.w = w;
	beginning.documents = view_documents_of(w->f->db);
	beginning.design = w->design;
	beginning.design.signature[0] ^= !same;
	beginning.done = false;
	hooked = *beginning.documents;
	hooked.newest = newest_after_another;
	view_documents_register(&hooked);
	assert_int_equal(view_build_state(&build, w->f->arena, &record, &err), STATUS_OK);
	view_documents_register(beginning.documents);
	assert_true(beginning.done);
	return record.group.number;
}

static void
groups_that_meet_have_numbers_of_their_own(void **state)
{
	struct world *w = world_new(*state);

	assert_int_not_equal(begin_beside(w, false), beginning.number);
	world_free(w);
}

static void
two_that_begin_one_group_have_one(void **state)
{
	struct world *w = world_new(*state);

	assert_int_equal(begin_beside(w, true), beginning.number);
	world_free(w);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(groups_that_meet_have_numbers_of_their_own),
		TEST(two_that_begin_one_group_have_one),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
