/* Partitioned databases: which ids they take, and what is counted of partitions. */
#include "fixture.h"

/* Deprecated by OpenSSL 3 because MD5 is weak; here it is a checksum of the protocol. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/md5.h>
#include <stdio.h>

#include "catalog/verify.h"
#include "kv/tuple.h"

static int
setup(void **state)
{
	(void)fixture_setup(state);
	fixture_make_partitioned(*state);
	return 0;
}

static struct rev_partition_info
info_of(struct fixture *f, const char *partition)
{
	struct kv_tx *tx = fixture_begin(f);
	struct rev_partition_info info;

	assert_int_equal(rev_partition_info(tx, f->db, str_from_cstr(partition), &info), STATUS_OK);
	kv_tx_free(tx);
	return info;
}

static void
expect_info(struct fixture *f, const char *partition, uint64_t docs, uint64_t deleted,
	    uint64_t external, uint64_t active)
{
	const struct rev_partition_info info = info_of(f, partition);

	assert_int_equal(info.doc_count, docs);
	assert_int_equal(info.doc_del_count, deleted);
	assert_int_equal(info.sizes.external, external);
	assert_int_equal(info.sizes.active, active);
	fixture_check(f);
}

static void
description_says_that_it_is_partitioned(void **state)
{
	struct fixture *f = *state;

	assert_true(rev_db_is_partitioned(f->db));
	assert_int_equal(rev_db_scheme(f->db), fixture_scheme());
	assert_int_equal(rev_db_revs_limit(f->db), REV_LIMIT_DEFAULT);
}

static void
summary_says_how_documents_are_kept(void **state)
{
	static const struct {
		enum rev_scheme scheme;
		uint64_t partitioned;
		const char *summary;
	} cases[] = {
		{ REV_SCHEME_PACKED, 0, "packed" },
		{ REV_SCHEME_EXPLODED, 0, "exploded" },
		{ REV_SCHEME_PACKED, 1, "packed, partitioned" },
		{ REV_SCHEME_EXPLODED, 1, "exploded, partitioned" },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct catalog_db db = *f->db;

		db.options[REV_OPTION_SCHEME] = cases[i].scheme;
		db.options[REV_OPTION_PARTITIONED] = cases[i].partitioned;
		assert_string_equal(db.kind->summary(&db), cases[i].summary);
	}
}

static void
ids_that_no_partition_has_are_refused(void **state)
{
	static const char *const refused[] = { "a", ":a", "a:", "_a:b", "a:_b", "a:_design/", "" };
	static const char *const taken[] = { "a:b", "a:b:c", "a::", "_design/x", "a:_design/x" };
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct rev_edit edits[] = {
			fixture_edit(f, refused[i], NULL, "{}"),
			fixture_copy(f, refused[i], "1-a", false, "{}"),
		};
		struct rev_result result;

		for (size_t j = 0; j < 2; j++) {
			fixture_write(f, &edits[j], 1, &result);
			assert_int_equal(result.status, STATUS_INVALID);
		}
	}
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		fixture_put(f, taken[i], NULL, "{}");
}

static void
ids_have_reasons(void **state)
{
	(void)state;
	assert_null(rev_partition_id_fault(STR("a:b")));
	assert_null(rev_partition_id_fault(STR("_design/b")));
	assert_string_equal(rev_partition_id_fault(STR("a")),
			    "Doc id must be of form partition:id");
	assert_string_equal(rev_partition_id_fault(STR(":a")), "Partition must not be empty");
	assert_string_equal(rev_partition_id_fault(STR("_a:b")),
			    "Partition must not start with an underscore");
	assert_string_equal(rev_partition_id_fault(STR("a:")), "Document id must not be empty");
	assert_null(rev_partition_id_fault(STR("a:_design/b")));
	assert_null(rev_partition_id_fault(STR("a:_local/b")));
	assert_string_equal(rev_partition_id_fault(STR("a:_design/")),
			    "Illegal document id `_design/`");
	assert_string_equal(rev_partition_id_fault(STR("a:_local/")),
			    "Illegal document id `_local/`");
	assert_string_equal(rev_partition_id_fault(STR("a:_b")),
			    "Only reserved document ids may start with underscore.");
	assert_string_equal(rev_partition_name_fault(STR("a:b")),
			    "Partition must not contain a colon");
	assert_string_equal(rev_partition_name_fault(STR("a\xff")),
			    "Partition must be valid UTF-8");
}

static void
range_has_the_partition_and_nothing_else(void **state)
{
	static const char *const ids[] = { "a:1", "a!:1", "a;:1", "a0:1", "a:", "a:z", "aa:1" };
	struct fixture *f = *state;
	struct name_range range;
	unsigned in = 0;

	assert_int_equal(rev_partition_range(STR("a"), f->arena, &range), STATUS_OK);
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		if (str_cmp(str_from_cstr(ids[i]), range.begin) >= 0 &&
		    str_cmp(str_from_cstr(ids[i]), range.end) < 0)
			in |= 1u << i;
	assert_int_equal(in, 1u << 0 | 1u << 4 | 1u << 5);
}

/* {"n":1} is stored as its seven bytes, or as a leaf: the path "n" and the number. */
static uint64_t
small_bytes(void)
{
	return fixture_scheme() == REV_SCHEME_PACKED ? 7 : 3 + 2;
}

static void
counters_follow_the_edits(void **state)
{
	uint64_t one = small_bytes();
	struct fixture *f = *state;
	const char *rev;

	expect_info(f, "a", 0, 0, 0, 0);
	rev = fixture_put(f, "a:1", NULL, "{\"n\":1}");
	expect_info(f, "a", 1, 0, one, one);
	fixture_put(f, "a1:1", NULL, "{\"n\":1}");
	fixture_put(f, "a:2", NULL, "{\"n\":1}");
	expect_info(f, "a", 2, 0, 2 * one, 2 * one);
	rev = fixture_put(f, "a:1", rev, "{\"n\":2}");
	expect_info(f, "a", 2, 0, 2 * one, 2 * one);
	fixture_replicate(f, "a:1", "2-zz 1-zz", false, "{\"n\":3}");
	expect_info(f, "a", 2, 0, 3 * one, 3 * one);
	fixture_delete(f, "a:1", rev);
	expect_info(f, "a", 2, 0, 2 * one, 2 * one);
	fixture_delete(f, "a:1", "2-zz");
	expect_info(f, "a", 1, 1, one, one);
	fixture_put(f, "a:1", NULL, "{\"n\":1}");
	expect_info(f, "a", 2, 0, 2 * one, 2 * one);
	expect_info(f, "a1", 1, 0, one, one);
}

static void
a_batch_counts_for_many_partitions(void **state)
{
	enum {
		DOCS = 300,
		PARTITIONS = 7
	};
	struct fixture *f = *state;
	struct rev_edit edits[DOCS];
	struct rev_result results[DOCS];
	uint64_t docs = 0;

	for (size_t i = 0; i < DOCS; i++)
		edits[i] = fixture_edit(
			f, arena_printf(f->arena, "p%zu:%zu", i * i % PARTITIONS, i).ptr, NULL,
			"{\"n\":1}");
	fixture_write(f, edits, DOCS, results);
	for (size_t p = 0; p < PARTITIONS; p++) {
		const struct rev_partition_info info = info_of(
			f, arena_printf(f->arena, "p%zu", p).ptr);

		assert_int_equal(info.sizes.external, info.doc_count * small_bytes());
		docs += info.doc_count;
	}
	assert_int_equal(docs, DOCS);
	fixture_check(f);
}

static void
long_bodies_count_whatever_their_form(void **state)
{
	struct fixture *f = *state;
	struct str text = arena_printf(f->arena, "{\"s\":\"%0*d\"}", 150000, 0);
	uint64_t bytes;
	const char *rev;

	assert_non_null(text.ptr);
	rev = fixture_put(f, "a:1", NULL, text.ptr);
	bytes = info_of(f, "a").sizes.external;
	assert_in_range(bytes, 150000, 150100);
	fixture_check(f);
	fixture_put(f, "a:1", rev, "{\"n\":1}");
	expect_info(f, "a", 1, 0, small_bytes(), small_bytes());
}

/* An edit with an attachment of so many bytes, compressed or not. */
static struct rev_edit
with_attachment(struct fixture *f, const char *history, size_t length, size_t encoded)
{
	struct rev_edit edit = fixture_copy(f, "a:1", history, false, "{\"n\":1}");
	struct rev_att_edit *att = arena_zalloc(f->arena, sizeof(*att));
	const struct rev_att_edit data = {
		.source = REV_ATT_DATA,
		.att = { .name = STR("f"),
			 .type = STR("x/y"),
			 .encoding = length == encoded ? REV_ATT_IDENTITY : REV_ATT_GZIP,
			 .length = length,
			 .encoded_length = encoded },
		.data = str_of(arena_zalloc(f->arena, encoded), encoded),
	};
	assert_non_null(att);
	*att = data;
	att->att.id[0] = (uint8_t)length;
	MD5((const unsigned char *)att->data.ptr, encoded, att->att.digest);
	edit.atts = att;
	edit.atts_count = 1;
	return edit;
}

static void
attachments_count_as_they_are_and_as_they_are_stored(void **state)
{
	uint64_t one = small_bytes();
	struct fixture *f = *state;
	struct rev_result result;
	struct rev_edit edit;

	edit = with_attachment(f, "1-x", 100, 30);
	fixture_write(f, &edit, 1, &result);
	assert_int_equal(result.status, STATUS_OK);
	expect_info(f, "a", 1, 0, one + 100, one + 30);
	edit = with_attachment(f, "2-y x", 40, 40);
	fixture_write(f, &edit, 1, &result);
	assert_int_equal(result.status, STATUS_OK);
	expect_info(f, "a", 1, 0, one + 40, one + 40);
	fixture_put(f, "a:1", "2-y", "{\"n\":1}");
	expect_info(f, "a", 1, 0, one, one);
}

static void
a_body_without_members_counts_as_something(void **state)
{
	const uint64_t bytes = 2; /* of "{}", in whichever form */
	struct fixture *f = *state;

	fixture_put(f, "a:1", NULL, "{}");
	expect_info(f, "a", 1, 0, bytes, bytes);
	fixture_replicate(f, "a:2", "1-x", true, "{}");
	expect_info(f, "a", 1, 1, bytes, bytes);
}

struct purge_call {
	struct fixture *f;
	const struct rev_purge_query *query;
};

static enum status
purge_body(struct kv_tx *tx, void *arg)
{
	struct purge_call *c = arg;
	struct rev_purge_result result;

	return rev_purge(tx, c->f->db, c->query, 1, c->f->arena, &result, NULL);
}

static void
purging_takes_back_what_was_counted(void **state)
{
	uint64_t one = small_bytes();
	struct fixture *f = *state;
	struct rev_id rev = fixture_rev(f, "1-a");
	const struct rev_purge_query query = { STR("a:1"), &rev, 1 };
	struct purge_call call = { f, &query };

	fixture_replicate(f, "a:1", "1-a", false, "{\"n\":1}");
	fixture_replicate(f, "a:1", "2-b", true, "{\"n\":1}");
	expect_info(f, "a", 1, 0, 2 * one, 2 * one);
	assert_int_equal(kv_run(f->store, purge_body, &call, NULL, NULL), STATUS_OK);
	expect_info(f, "a", 0, 1, one, one);
	rev = fixture_rev(f, "2-b");
	assert_int_equal(kv_run(f->store, purge_body, &call, NULL, NULL), STATUS_OK);
	expect_info(f, "a", 0, 0, 0, 0);
}

static void
a_full_partition_refuses_what_grows(void **state)
{
	struct fixture *f = *state;
	const char *rev = fixture_put(f, "a:1", NULL, "{\"long\":\"enough to be full\"}");
	struct rev_edit edits[] = {
		fixture_edit(f, "a:1", rev, "{\"n\":1}"),
		fixture_edit(f, "a:2", NULL, "{\"n\":1}"),
		fixture_edit(f, "b:2", NULL, "{\"n\":1}"),
		fixture_copy(f, "a:3", "1-a", false, "{\"n\":1}"),
		fixture_edit(f, "_design/x", NULL, "{\"n\":1}"),
	};
	struct rev_result results[5];

	for (size_t i = 0; i < 5; i++)
		edits[i].max_partition_bytes = 10;
	fixture_write(f, edits, 5, results);
	assert_int_equal(results[0].status, STATUS_OK);
	assert_int_equal(results[1].status, STATUS_PARTITION_FULL);
	assert_int_equal(results[2].status, STATUS_OK);
	assert_int_equal(results[3].status, STATUS_OK);
	assert_int_equal(results[4].status, STATUS_OK);
}

/* An edit of a partition that is full with `max_bytes`. */
static enum status
try_in_partition(struct fixture *f, struct rev_edit edit, uint64_t max_bytes)
{
	struct rev_result result;

	edit.max_partition_bytes = max_bytes;
	fixture_write(f, &edit, 1, &result);
	return result.status;
}

static void
a_partition_is_full_with_as_many_bytes_as_it_may_have(void **state)
{
	uint64_t one = small_bytes();
	struct fixture *f = *state;
	const char *rev = fixture_put(f, "a:1", NULL, "{\"n\":1}");

	assert_int_equal(try_in_partition(f, fixture_edit(f, "a:2", NULL, "{\"n\":1}"), one),
			 STATUS_PARTITION_FULL);
	/* A document of a full partition is changed as long as it does not grow. */
	assert_int_equal(try_in_partition(f, fixture_edit(f, "a:1", rev, "{\"nn\":1}"), one),
			 STATUS_PARTITION_FULL);
	assert_int_equal(try_in_partition(f, fixture_edit(f, "a:1", rev, "{\"n\":2}"), one),
			 STATUS_OK);
	expect_info(f, "a", 1, 0, one, one);
	assert_int_equal(try_in_partition(f, fixture_edit(f, "a:2", NULL, "{\"n\":1}"), one + 1),
			 STATUS_OK);
	expect_info(f, "a", 2, 0, 2 * one, 2 * one);
}

/* Of a document with several branches, the one that is replaced is what an edit is compared to. */
static void
a_full_partition_compares_an_edit_with_what_it_replaces(void **state)
{
	struct fixture *f = *state;

	fixture_replicate(f, "a:1", "1-b", false, "{\"n\":1}");
	fixture_replicate(f, "a:1", "1-a", false, "{\"much\":\"longer than the other\"}");
	assert_int_equal(try_in_partition(f, fixture_edit(f, "a:1", "1-b", "{\"nn\":1}"), 1),
			 STATUS_PARTITION_FULL);
	assert_int_equal(try_in_partition(f, fixture_edit(f, "a:1", "1-a", "{\"nn\":1}"), 1),
			 STATUS_OK);
	assert_int_equal(try_in_partition(f, fixture_edit(f, "a:1", "1-b", "{\"n\":2}"), 1),
			 STATUS_OK);
	fixture_check(f);
}

static void
an_edit_reads_no_more_for_its_partition(void **state)
{
	struct fixture *f = *state;
	const char *rev = fixture_put(f, "a:1", NULL, "{}");

	assert_int_equal(f->cost.keys_read, 0);
	assert_int_equal(f->cost.round_trips, 1);
	rev = fixture_put(f, "a:1", rev, "{\"n\":1}");
	assert_int_equal(f->cost.keys_read, 1);
	assert_int_equal(f->cost.round_trips, 1);
	fixture_delete(f, "a:1", rev);
	assert_int_equal(f->cost.keys_read, 1);
}

/* ---- The check ---- */

struct change {
	struct fixture *f;
	const char *partition;
	uint64_t counter;
	struct str value; /* ptr NULL: cleared */
};

static enum status
change_body(struct kv_tx *tx, void *arg)
{
	const struct change *c = arg;
	struct buf key = BUF_INIT(KV_LIMIT_KEY_BYTES);
	enum status status;

	buf_append_str(&key, c->f->db->prefix);
	tuple_put_u64(&key, REV_SUBSPACE_PARTITIONS);
	tuple_put_str(&key, str_from_cstr(c->partition));
	tuple_put_u64(&key, c->counter);
	status = c->value.ptr ? kv_set(tx, buf_str(&key), c->value) : kv_clear(tx, buf_str(&key));
	buf_release(&key);
	return status;
}

static char found[4][ERR_TEXT_BYTES + 64];
static size_t found_count;

static void
note_found(const struct catalog_finding *finding, void *arg)
{
	(void)arg;
	assert_true(found_count < 4);
	(void)snprintf(found[found_count++], sizeof(found[0]), "%s: %s", finding->kind,
		       finding->text);
}

/* Damages one counter, which must be all that the check finds. */
static void
expect_found(struct fixture *f, const char *partition, uint64_t counter, struct str value,
	     const char *text)
{
	struct catalog_verify_options options = { .found = note_found };
	struct change change = { f, partition, counter, value };
	struct catalog_verify_sum sum;
	struct kv_tx *tx;

	assert_int_equal(kv_run(f->store, change_body, &change, NULL, NULL), STATUS_OK);
	tx = fixture_begin(f);
	found_count = 0;
	assert_int_equal(catalog_verify_store(tx, &options, &sum, NULL), STATUS_OK);
	kv_tx_free(tx);
	assert_int_equal(found_count, 1);
	if (!strstr(found[0], text))
		fail_msg("%s", found[0]);
}

static void
verify_finds_counters(void **state)
{
	struct fixture *f = *state;
	struct change mend = { f, "b:", 0, STR("\1\0\0\0\0\0\0\0") };

	fixture_replicate(f, "b:1", "1-a", true, "{}");
	expect_found(f, "b:", 0, STR("\2\0\0\0\0\0\0\0"),
		     "counter: the counter says 2, and there are 1");
	expect_found(f, "b:", 0, (struct str){ NULL, 0 },
		     "counter: the counter says 0, and there are 1");
	assert_int_equal(kv_run(f->store, change_body, &mend, NULL, NULL), STATUS_OK);
	mend.value.ptr = NULL;
	mend.partition = "a:";
	expect_found(f, "a:", 0, STR("\1\0\0\0\0\0\0\0"),
		     "counter: the counter says 1, and there are 0");
	expect_found(f, "a:", 0, STR("\0\0\0\0\0\0\0\0"), "should have been cleared");
	expect_found(f, "a:", 0, STR("\0"), "not a counter");
	assert_int_equal(kv_run(f->store, change_body, &mend, NULL, NULL), STATUS_OK);
	expect_found(f, "z:", 2, STR("\1\0\0\0\0\0\0\0"),
		     "counter: the counter says 1, and there are 0");
	mend.partition = "z:";
	mend.counter = 2;
	assert_int_equal(kv_run(f->store, change_body, &mend, NULL, NULL), STATUS_OK);
	expect_found(f, "z:", 3, STR("\1\0\0\0\0\0\0\0"),
		     "unknown_key: not a counter of a partition");
	mend.counter = 3;
	assert_int_equal(kv_run(f->store, change_body, &mend, NULL, NULL), STATUS_OK);
	expect_found(f, "z", 0, STR("\1\0\0\0\0\0\0\0"),
		     "unknown_key: not a counter of a partition");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(description_says_that_it_is_partitioned, setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(summary_says_how_documents_are_kept, setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(ids_that_no_partition_has_are_refused, setup,
						fixture_teardown),
		cmocka_unit_test(ids_have_reasons),
		cmocka_unit_test_setup_teardown(range_has_the_partition_and_nothing_else, setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(counters_follow_the_edits, setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(
			attachments_count_as_they_are_and_as_they_are_stored, setup,
			fixture_teardown),
		cmocka_unit_test_setup_teardown(a_body_without_members_counts_as_something, setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(a_batch_counts_for_many_partitions, setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(long_bodies_count_whatever_their_form, setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(purging_takes_back_what_was_counted, setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(a_full_partition_refuses_what_grows, setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(
			a_partition_is_full_with_as_many_bytes_as_it_may_have, setup,
			fixture_teardown),
		cmocka_unit_test_setup_teardown(
			a_full_partition_compares_an_edit_with_what_it_replaces, setup,
			fixture_teardown),
		cmocka_unit_test_setup_teardown(an_edit_reads_no_more_for_its_partition, setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(verify_finds_counters, setup, fixture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
