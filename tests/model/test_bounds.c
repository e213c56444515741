/*
 * The longest id of a document: whoever asks by it finds the document, and whoever asks by a longer
 * one, which no document has, finds nothing and fails at nothing.
 */
#include "fixture.h"

#include "model/revisioned/revisioned_int.h"

enum {
	IDS = 3, /* the last of them is too long */
};

struct asking {
	struct fixture *f;
	struct kv_tx *tx;
	struct rev_id rev; /* of the documents */
	struct err err;
};

/* The n-th id in order: documents have the first two. */
static struct str
id_of(const struct asking *a, size_t n)
{
	size_t len = REV_DOC_ID_BYTES + (n == IDS - 1 ? 1 : 0);
	char *text = arena_bytes(a->f->arena, len);

	assert_non_null(text);
	memset(text, 'i', len);
	text[0] = (char)('a' + n);
	return str_of(text, len);
}

/* ---- Ways to ask: true if something was found ---- */

static bool
winner(struct asking *a, struct str id)
{
	struct rev_id rev = { .pos = 0 };

	assert_int_equal(rev_winners_read(a->tx, a->f->db, &id, 1, a->f->arena, &rev), STATUS_OK);
	return rev.hash.ptr != NULL;
}

static bool
branch(struct asking *a, struct str id)
{
	struct rev_branch found;
	enum status status = rev_branch_read(a->tx, a->f->db, id, a->rev, a->f->arena, &found);

	assert_true(status == STATUS_OK || status == STATUS_NOT_FOUND);
	return status == STATUS_OK;
}

/* Beside another that is found. */
static bool
live_branch(struct asking *a, struct str id)
{
	const struct rev_want wants[] = { { .id = id, .rev = a->rev },
					  { .id = id_of(a, 0), .rev = a->rev } };
	struct rev_branch found[2];

	assert_int_equal(rev_branches_read_live(a->tx, a->f->db, wants, 2, a->f->arena, found),
			 STATUS_OK);
	assert_int_equal(found[1].rev.pos, 1);
	return found[0].rev.pos == 1;
}

static bool
descent(struct asking *a, struct str id)
{
	struct rev_descent found;

	assert_int_equal(rev_descent_read(a->tx, a->f->db, id, &a->rev, 1, REV_DESCENT_WHOLE,
					  a->f->arena, &found),
			 STATUS_OK);
	return rev_descent_first(&found, a->rev) != 0;
}

static bool
change(struct asking *a, struct str id)
{
	const struct rev_change_range range = fixture_all_changes();
	struct rev_change_page page;

	assert_int_equal(rev_changes_of(a->tx, a->f->db, &range, &id, 1, a->f->arena, &page),
			 STATUS_OK);
	return page.count == 1;
}

static bool
known_revision(struct asking *a, struct str id)
{
	const struct rev_diff_query query = { .id = id, .revs = &a->rev, .count = 1 };
	struct rev_diff diff;

	assert_int_equal(rev_diff(a->tx, a->f->db, &query, 1, a->f->arena, &diff), STATUS_OK);
	return diff.missing_count == 0;
}

static bool
purged(struct asking *a, struct str id)
{
	const struct rev_purge_query query = { .id = id, .revs = &a->rev, .count = 1 };
	struct rev_purge_result result = { .count = 0 };

	assert_int_equal(rev_purge(a->tx, a->f->db, &query, 1, a->f->arena, &result, &a->err),
			 STATUS_OK);
	return result.count == 1;
}

static const struct {
	const char *name;
	bool (*finds)(struct asking *a, struct str id);
} ways[] = {
	{ "winner", winner },   { "branch", branch }, { "live branch", live_branch },
	{ "descent", descent }, { "change", change }, { "known revision", known_revision },
	{ "purged", purged },
};

static void
the_longest_id_is_found_and_a_longer_one_is_not(void **state)
{
	struct asking a = { .f = *state };
	struct fixture *f = *state;

	for (size_t n = 0; n < IDS - 1; n++) {
		struct rev_edit edit = fixture_edit(f, "", NULL, "{}");
		struct rev_result result;

		edit.id = id_of(&a, n);
		fixture_write(f, &edit, 1, &result);
		assert_int_equal(result.status, STATUS_OK);
		a.rev = result.rev;
	}
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		for (size_t n = 0; n < IDS; n++) {
			assert_int_equal(kv_begin(f->calm, KV_TX_READ_WRITE, &a.tx), STATUS_OK);
			if (ways[i].finds(&a, id_of(&a, n)) != (n < IDS - 1))
				fail_msg("%s: id %zu", ways[i].name, n);
			kv_tx_free(a.tx);
		}
	}
	fixture_check(f);
}

/* Of a local document, which is asked for like any other. */
static void
a_local_document_has_an_id_up_to_the_limit(void **state)
{
	struct asking a = { .f = *state };
	struct fixture *f = *state;
	const struct doc doc = fixture_doc(f, "{\"n\":1}");

	for (size_t n = 0; n < IDS; n++) {
		bool fits = n < IDS - 1;
		struct str id = id_of(&a, n);
		struct rev_doc found;
		uint64_t rev;

		assert_int_equal(kv_begin(f->calm, KV_TX_READ_WRITE, &a.tx), STATUS_OK);
		assert_int_equal(rev_local_put(a.tx, f->db, id, 0, &doc, f->arena, &rev, &a.err),
				 fits ? STATUS_OK : STATUS_KEY_TOO_LARGE);
		assert_int_equal(rev_local_get(a.tx, f->db, id, f->arena, &rev, &found),
				 fits ? STATUS_OK : STATUS_NOT_FOUND);
		kv_tx_free(a.tx);
	}
}

/* The number of a local document's revision ends where a revision's number does. */
static void
a_local_document_has_a_revision_up_to_the_limit(void **state)
{
	static const struct {
		uint64_t parent;
		enum status status;
	} cases[] = {
		{ 0, STATUS_OK },
		{ INT64_MAX - 1, STATUS_OK },
		{ INT64_MAX, STATUS_INVALID },
		{ UINT64_MAX, STATUS_INVALID },
	};
	struct asking a = { .f = *state };
	struct fixture *f = *state;
	const struct doc doc = fixture_doc(f, "{}");

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t rev;

		assert_int_equal(kv_begin(f->calm, KV_TX_READ_WRITE, &a.tx), STATUS_OK);
		assert_int_equal(rev_local_put(a.tx, f->db, STR("l"), cases[i].parent, &doc,
					       f->arena, &rev, &a.err),
				 cases[i].status);
		if (cases[i].status == STATUS_OK)
			assert_int_equal(rev, cases[i].parent + 1);
		kv_tx_free(a.tx);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
		TEST(the_longest_id_is_found_and_a_longer_one_is_not),
		TEST(a_local_document_has_an_id_up_to_the_limit),
		TEST(a_local_document_has_a_revision_up_to_the_limit),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
