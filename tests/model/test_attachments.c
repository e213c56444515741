/* Attachments: what a revision has, shares and gives up, and how large ones get into the store. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <stdio.h>
#include <openssl/md5.h>

#include "fixture.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "model/revisioned/att_json.h"
#include "store.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/rand.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"
#include "loop/step.h"

enum {
	BATCH_BYTES = REV_ATT_CHUNK_BYTES * REV_ATT_BATCH_CHUNKS,
};

/* Revisions of a document without members: computed by hand from Erlang's term format. */
#define BOTH_1    "1-32a9cff735ee60e1f67f5cc2e39a2557"
#define ONE_2     "2-150db5c8d0730adc13c412eb48627adc"
#define DELETED_3 "3-c8b47c80729c3bd51ccad26167149c0b"

/* ---- Making attachments ---- */

static struct rev_att_edit
att_data(struct fixture *f, const char *name, const char *type, const char *data)
{
	struct rev_att_edit edit = {
		.source = REV_ATT_DATA,
		.att = { .name = str_from_cstr(name), .type = str_from_cstr(type) },
		.data = arena_dup(f->arena, str_from_cstr(data)),
	};

	edit.att.length = edit.att.encoded_length = edit.data.len;
	rand_bytes(edit.att.id, sizeof(edit.att.id));
	MD5((const unsigned char *)data, strlen(data), edit.att.digest);
	return edit;
}

static struct rev_att_edit
att_stub(const char *name, int revpos)
{
	struct rev_att_edit edit = { .source = REV_ATT_STUB,
				     .att = { .name = str_from_cstr(name) } };

	edit.has_revpos = revpos >= 0;
	edit.att.revpos = revpos >= 0 ? (uint64_t)revpos : 0;
	return edit;
}

/* The byte at a position of the large attachments here. */
static char
pattern(uint64_t at)
{
	return (char)(at * 2654435761U >> 13);
}

static struct rev_upload *
upload_new(struct fixture *f, int gzip_level, uint64_t max_bytes)
{
	struct rev_upload_options options = {
		.store = f->store,
		.db = f->db,
		.gzip_level = gzip_level,
		.max_bytes = max_bytes,
		.memory_bytes = 100000,
	};
	struct rev_upload *u;

	assert_int_equal(rev_upload_new(&options, &u), STATUS_OK);
	return u;
}

static void
upload_bytes(struct rev_upload *u, uint64_t begin, uint64_t end)
{
	static char piece[70001];
	struct err err = { 0 };

	while (begin < end) {
		size_t n = end - begin < sizeof(piece) ? (size_t)(end - begin) : sizeof(piece);

		for (size_t i = 0; i < n; i++)
			piece[i] = pattern(begin + i);
		if (rev_upload_write(u, str_of(piece, n), &err) != STATUS_OK)
			fail_msg("%s", err.text);
		begin += n;
	}
}

static struct rev_att_edit
upload_end(struct rev_upload *u, const char *name)
{
	struct rev_att_edit edit = { .att = { .name = str_from_cstr(name),
					      .type = STR("image/png") } };
	uint8_t md5[REV_ATT_DIGEST_BYTES];
	struct err err = { 0 };

	if (rev_upload_finish(u, &edit, md5, &err) != STATUS_OK)
		fail_msg("%s", err.text);
	return edit;
}

static struct rev_result
write_one(struct fixture *f, struct rev_edit edit, const struct rev_att_edit *atts, size_t count)
{
	struct rev_result result;

	edit.atts = atts;
	edit.atts_count = count;
	fixture_write(f, &edit, 1, &result);
	return result;
}

static const char *
put(struct fixture *f, const char *id, const char *parent, const struct rev_att_edit *atts,
    size_t count)
{
	struct rev_result result = write_one(f, fixture_edit(f, id, parent, "{}"), atts, count);

	if (result.status != STATUS_OK)
		fail_msg("%s: %s", id, status_name(result.status));
	return fixture_text(f, result.rev);
}

/* ---- Looking at them ---- */

/* "name=content@revpos …", in their order, of a live leaf. */
static const char *
atts_of(struct fixture *f, const char *id, const char *rev, bool deleted)
{
	struct buf b = BUF_INIT(1 << 24);
	struct rev_doc doc = { 0 };
	struct kv_tx *tx;
	struct str kept;

	assert_int_equal(kv_begin(f->calm, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(rev_doc_read_head(tx, f->db, str_from_cstr(id), fixture_rev(f, rev),
					   deleted, f->arena, &doc),
			 STATUS_OK);
	for (size_t i = 0; i < doc.atts_count; i++) {
		const struct rev_att *att = &doc.atts[i];
		struct rev_att_reader *reader;
		struct rev_att single;
		struct str piece;

		buf_printf(&b, "%s%.*s=", i ? " " : "", STR_ARG(att->name));
		assert_int_equal(
			rev_att_reader_new(f->db, att, true, 0, att->encoded_length, &reader),
			STATUS_OK);
		while (rev_att_reader_next(reader, tx, &piece) == STATUS_OK)
			buf_append_str(&b, piece);
		rev_att_reader_free(reader);
		buf_printf(&b, "@%d", (int)att->revpos);
		/* One alone is found, too. */
		assert_int_equal(rev_att_read(tx, f->db, str_from_cstr(id), fixture_rev(f, rev),
					      deleted, att->name, f->arena, &single),
				 STATUS_OK);
		assert_memory_equal(single.id, att->id, sizeof(att->id));
	}
	kv_tx_free(tx);
	buf_append_byte(&b, 0);
	assert_int_equal(buf_status(&b), STATUS_OK);
	kept = arena_dup(f->arena, buf_str(&b));
	buf_release(&b);
	return kept.ptr;
}

static size_t
count_below(struct fixture *f, struct buf *prefix)
{
	struct buf end = BUF_INIT(64);
	struct kv_scan scan = { 0 };
	struct kv_pair pair;
	struct kv_tx *tx;
	size_t n = 0;

	assert_int_equal(tuple_prefix_end(buf_str(prefix), &end), STATUS_OK);
	assert_int_equal(kv_begin(f->calm, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(kv_scan_init(&scan, tx, buf_str(prefix), buf_str(&end), NULL), STATUS_OK);
	while (kv_scan_next(&scan, &pair) == STATUS_OK)
		n++;
	kv_scan_release(&scan);
	kv_tx_free(tx);
	buf_release(prefix);
	buf_release(&end);
	return n;
}

/* Pairs in the subspace of attachments, data and counters. */
static size_t
pairs(struct fixture *f)
{
	struct buf prefix = BUF_INIT(64);

	buf_append_str(&prefix, f->db->prefix);
	tuple_put_u64(&prefix, REV_SUBSPACE_ATTACHMENTS);
	return count_below(f, &prefix);
}

static size_t
uploads(struct fixture *f)
{
	struct buf prefix = BUF_INIT(64);

	tuple_put_u64(&prefix, KV_ROOT);
	tuple_put_u64(&prefix, KV_ROOT_UPLOADS);
	return count_below(f, &prefix);
}

/* ---- Revisions and their attachments ---- */

static void
hash_counts_attachments_in_reverse(void **state)
{
	struct fixture *f = *state;
	struct rev_att_edit atts[] = { att_data(f, "a.txt", "x/y", "hello"),
				       att_data(f, "b", "image/png", "") };
	struct rev_att_edit kept = att_stub("b", -1);
	struct rev_result result;

	assert_string_equal(put(f, "d", NULL, atts, 2), BOTH_1);
	assert_string_equal(atts_of(f, "d", BOTH_1, false), "a.txt=hello@1 b=@1");
	assert_string_equal(put(f, "d", BOTH_1, &kept, 1), ONE_2);
	assert_string_equal(atts_of(f, "d", ONE_2, false), "b=@1");
	result = write_one(f, fixture_edit(f, "d", ONE_2, NULL), &kept, 1);
	assert_int_equal(result.status, STATUS_OK);
	assert_string_equal(fixture_text(f, result.rev), DELETED_3);
	assert_string_equal(atts_of(f, "d", DELETED_3, true), "b=@1");
	fixture_check(f);
}

static void
order_is_that_of_the_edit(void **state)
{
	struct fixture *f = *state;
	struct rev_att_edit first[] = { att_data(f, "z", "x/y", "1"), att_data(f, "a", "x/y", "2"),
					att_data(f, "m", "x/y", "3") };
	struct rev_att_edit second[] = { att_data(f, "new", "x/y", "4"), att_stub("m", 1),
					 att_stub("z", -1) };
	const char *rev = put(f, "d", NULL, first, 3);

	assert_string_equal(atts_of(f, "d", rev, false), "z=1@1 a=2@1 m=3@1");
	rev = put(f, "d", rev, second, 3);
	assert_string_equal(atts_of(f, "d", rev, false), "new=4@2 m=3@1 z=1@1");
	fixture_check(f);
}

static void
what_no_revision_has_is_cleared(void **state)
{
	struct fixture *f = *state;
	struct rev_att_edit atts[] = { att_data(f, "a", "x/y", "one"),
				       att_data(f, "b", "x/y", "two") };
	struct rev_att_edit again[] = { att_stub("a", -1), att_data(f, "b", "x/y", "three") };
	const char *rev = put(f, "d", NULL, atts, 2);

	assert_int_equal(pairs(f), 4);
	rev = put(f, "d", rev, again, 2);
	assert_int_equal(pairs(f), 4);
	assert_string_equal(atts_of(f, "d", rev, false), "a=one@1 b=three@2");
	/* A writer that does not name them gives them up. */
	rev = fixture_put(f, "d", rev, "{\"x\":1}");
	assert_int_equal(pairs(f), 0);
	assert_string_equal(atts_of(f, "d", rev, false), "");
	rev = put(f, "d", rev, atts, 2);
	fixture_delete(f, "d", rev);
	assert_int_equal(pairs(f), 0);
	fixture_check(f);
}

static void
stub_for_nothing_is_refused(void **state)
{
	struct fixture *f = *state;
	struct rev_att_edit att = att_data(f, "a", "x/y", "one");
	struct rev_att_edit stale = att_stub("a", 7);
	struct rev_att_edit absent[] = { att_stub("a", 1), att_stub("b", -1) };
	struct rev_result result;
	const char *rev;

	result = write_one(f, fixture_edit(f, "d", NULL, "{}"), absent, 1);
	assert_int_equal(result.status, STATUS_ATT_MISSING);
	rev = put(f, "d", NULL, &att, 1);
	result = write_one(f, fixture_edit(f, "d", rev, "{}"), &stale, 1);
	assert_int_equal(result.status, STATUS_ATT_MISSING);
	assert_true(str_eq(result.att, STR("a")));
	result = write_one(f, fixture_edit(f, "d", rev, NULL), absent, 2);
	assert_int_equal(result.status, STATUS_ATT_MISSING);
	assert_true(str_eq(result.att, STR("b")));
	/* Whose revision is not there has a conflict, whatever it says of attachments. */
	result = write_one(f, fixture_edit(f, "d", "1-abc", "{}"), absent, 2);
	assert_int_equal(result.status, STATUS_DOC_CONFLICT);
	result = write_one(f, fixture_edit(f, "d", "1-abc", NULL), absent, 2);
	assert_int_equal(result.status, STATUS_DOC_CONFLICT);
	result = write_one(f, fixture_copy(f, "d", "2-c b", false, "{}"), absent, 1);
	assert_int_equal(result.status, STATUS_ATT_MISSING);
	assert_string_equal(atts_of(f, "d", rev, false), "a=one@1");
	fixture_check(f);
}

static void
two_of_one_name_are_invalid(void **state)
{
	struct fixture *f = *state;
	struct rev_att_edit atts[] = { att_data(f, "a", "x/y", "1"), att_data(f, "b", "x/y", "2"),
				       att_data(f, "a", "x/y", "3") };

	assert_int_equal(write_one(f, fixture_edit(f, "d", NULL, "{}"), atts, 3).status,
			 STATUS_INVALID);
	assert_int_equal(pairs(f), 0);
}

static void
name_that_fits_no_key_is_refused(void **state)
{
	struct fixture *f = *state;
	char *name = arena_alloc(f->arena, KV_LIMIT_KEY_BYTES + 1);
	struct rev_att_edit att;

	memset(name, 'n', KV_LIMIT_KEY_BYTES);
	name[KV_LIMIT_KEY_BYTES] = '\0';
	att = att_data(f, name, "x/y", "1");
	assert_int_equal(write_one(f, fixture_edit(f, "d", NULL, "{}"), &att, 1).status,
			 STATUS_KEY_TOO_LARGE);
	name[KV_LIMIT_KEY_BYTES - 200] = '\0';
	att = att_data(f, name, "x/y", "1");
	put(f, "d", NULL, &att, 1);
	fixture_check(f);
}

/* ---- Branches ---- */

/* Which of the two is missing, whether or not a key can have the name. */
static void
attachments_of_no_revision_are_told_from_those_it_lacks(void **state)
{
	static char long_name[KV_LIMIT_KEY_BYTES + 1];
	struct fixture *f = *state;
	struct rev_att_edit att = att_data(f, "f", "x/y", "data");
	const char *rev = put(f, "a", NULL, &att, 1);
	const struct {
		const char *rev;
		struct str name;
		enum status status;
	} cases[] = {
		{ rev, STR("f"), STATUS_OK },
		{ rev, STR("g"), STATUS_DELETED },
		{ rev, { long_name, sizeof(long_name) }, STATUS_DELETED },
		{ ONE_2, STR("f"), STATUS_NOT_FOUND },
		{ ONE_2, { long_name, sizeof(long_name) }, STATUS_NOT_FOUND },
	};
	struct kv_tx *tx = fixture_begin(f);
	struct rev_att found;

	memset(long_name, 'n', sizeof(long_name));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(rev_att_read(tx, f->db, STR("a"), fixture_rev(f, cases[i].rev),
					      false, cases[i].name, f->arena, &found),
				 cases[i].status);
	kv_tx_free(tx);
}

static void
each_branch_keeps_its_own(void **state)
{
	struct fixture *f = *state;
	struct rev_att_edit a = att_data(f, "f", "x/y", "left");
	struct rev_att_edit b = att_data(f, "f", "x/y", "right");
	struct rev_att_edit keep = att_stub("f", -1);
	struct rev_result result;

	a.att.revpos = b.att.revpos = 2;
	result = write_one(f, fixture_copy(f, "d", "2-a x", false, "{}"), &a, 1);
	assert_int_equal(result.status, STATUS_OK);
	result = write_one(f, fixture_copy(f, "d", "2-b y", false, "{}"), &b, 1);
	assert_int_equal(result.status, STATUS_OK);
	assert_string_equal(atts_of(f, "d", "2-a", false), "f=left@2");
	assert_string_equal(atts_of(f, "d", "2-b", false), "f=right@2");
	assert_int_equal(pairs(f), 4);
	/* The losing branch goes on, by replication and by an edit. */
	result = write_one(f, fixture_copy(f, "d", "3-c a x", false, "{}"), &keep, 1);
	assert_int_equal(result.status, STATUS_OK);
	assert_string_equal(atts_of(f, "d", "3-c", false), "f=left@2");
	assert_string_equal(atts_of(f, "d", put(f, "d", "2-b", &keep, 1), false), "f=right@2");
	fixture_check(f);
	/* Known revisions change nothing, and their attachments are not taken. */
	result = write_one(f, fixture_copy(f, "d", "2-a x", false, "{}"), &a, 1);
	assert_true(result.unchanged);
	assert_int_equal(pairs(f), 4);
	fixture_delete(f, "d", "3-c");
	assert_int_equal(pairs(f), 2);
	fixture_check(f);
}

static void
history_that_ties_branches_gives_up_all_they_had(void **state)
{
	struct fixture *f = *state;
	struct rev_att_edit a = att_data(f, "f", "x/y", "left");
	struct rev_att_edit b = att_data(f, "f", "x/y", "right");
	struct rev_att_edit keep = att_stub("f", -1);
	struct rev_result result;

	assert_int_equal(write_one(f, fixture_copy(f, "d", "1-a", false, "{}"), &a, 1).status,
			 STATUS_OK);
	assert_int_equal(write_one(f, fixture_copy(f, "d", "2-b", false, "{}"), &b, 1).status,
			 STATUS_OK);
	result = write_one(f, fixture_copy(f, "d", "3-c b a", false, "{}"), &keep, 1);
	assert_int_equal(result.status, STATUS_OK);
	assert_string_equal(fixture_tree(f, "d", false), "3-c!");
	/* The stub means the newest of what is replaced. */
	assert_string_equal(atts_of(f, "d", "3-c", false), "f=right@0");
	assert_int_equal(pairs(f), 2);
	fixture_check(f);
}

static void
shared_data_goes_with_the_last_that_has_it(void **state)
{
	struct fixture *f = *state;
	struct rev_att_edit att = att_data(f, "f", "x/y", "shared");
	const char *first = put(f, "a", NULL, &att, 1);
	struct rev_att_edit share = att;
	const char *second;

	share.source = REV_ATT_SHARED;
	second = put(f, "b", NULL, &share, 1);
	assert_int_equal(pairs(f), 2);
	fixture_check(f);
	fixture_delete(f, "a", first);
	assert_string_equal(atts_of(f, "b", second, false), "f=shared@1");
	fixture_check(f);
	fixture_delete(f, "b", second);
	assert_int_equal(pairs(f), 0);
	fixture_check(f);
}

static void
two_edits_of_a_batch_count_what_they_share_together(void **state)
{
	struct fixture *f = *state;
	struct rev_att_edit att = att_data(f, "f", "x/y", "shared");
	const char *a = put(f, "a", NULL, &att, 1);
	struct rev_att_edit share = att;
	struct rev_edit both[2];
	struct rev_result results[2];

	share.source = REV_ATT_SHARED;
	both[0] = fixture_edit(f, "a", a, NULL);
	both[1] = fixture_edit(f, "b", put(f, "b", NULL, &share, 1), NULL);
	fixture_write(f, both, 2, results);
	assert_int_equal(results[0].status, STATUS_OK);
	assert_int_equal(results[1].status, STATUS_OK);
	assert_int_equal(pairs(f), 0);
	fixture_check(f);
}

static void
edits_that_merge_leave_the_attachments_of_what_remains(void **state)
{
	struct fixture *f = *state;
	struct rev_att_edit stored = att_data(f, "f", "x/y", "stored");
	struct rev_att_edit passed = att_data(f, "f", "x/y", "passed over");
	struct rev_att_edit kept = att_data(f, "f", "x/y", "kept");
	struct rev_edit edits[4];
	struct rev_result results[4];

	edits[0] = fixture_copy(f, "a", "1-a", false, "{}");
	(void)write_one(f, edits[0], &stored, 1);
	assert_int_equal(pairs(f), 2);
	edits[0] = fixture_copy(f, "a", "2-b a", false, "{\"n\":2}");
	edits[0].atts = &passed;
	edits[0].atts_count = 1;
	edits[1] = fixture_copy(f, "a", "2-b a", false, "{}"); /* again */
	edits[2] = fixture_copy(f, "a", "3-c b a", false, "{\"n\":3}");
	edits[2].atts = &kept;
	edits[2].atts_count = 1;
	edits[3] = fixture_copy(f, "a", "9-t", true, "{}");
	fixture_write(f, edits, 4, results);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(results[i].status, STATUS_OK);
		assert_int_equal(results[i].unchanged, i == 1);
	}
	assert_string_equal(fixture_tree(f, "a", true), "3-c(2-b 1-a)! 9-t#");
	assert_string_equal(atts_of(f, "a", "3-c", false), "f=kept@0");
	assert_int_equal(pairs(f), 2);
	fixture_check(f);

	/* An upload has to be taken over alone. */
	assert_true(rev_edit_can_merge(&edits[3]));
	kept.source = REV_ATT_STUB;
	assert_true(rev_edit_can_merge(&edits[2]));
	kept.source = REV_ATT_STAGED;
	assert_false(rev_edit_can_merge(&edits[2]));
}

/* A replicated edit of "a" with one attachment. */
static struct rev_edit
copy_with(struct fixture *f, const char *history, const struct rev_att_edit *att)
{
	struct rev_edit edit = fixture_copy(f, "a", history, false, "{}");

	edit.atts = att;
	edit.atts_count = 1;
	return edit;
}

static void
stubs_of_edits_that_merge_mean_what_is_stored_or_what_came_before(void **state)
{
	struct fixture *f = *state;
	const struct rev_att_edit keep = att_stub("f", -1);
	const struct rev_att_edit lost = att_stub("nowhere", -1);
	struct rev_att_edit brought = att_data(f, "f", "x/y", "brought");
	struct rev_att_edit stored;
	struct rev_edit edits[7];
	struct rev_result results[7];

	stored = att_data(f, "f", "x/y", "stored");
	(void)write_one(f, fixture_copy(f, "a", "1-a", false, "{}"), &stored, 1);
	stored = att_data(f, "f", "x/y", "other");
	(void)write_one(f, fixture_copy(f, "a", "1-b", false, "{}"), &stored, 1);
	edits[0] = copy_with(f, "2-a a", &keep);
	edits[1] = copy_with(f, "2-b b", &keep);
	edits[2] = copy_with(f, "3-b b b", &keep); /* of a head that the edit before has made */
	edits[3] = copy_with(f, "1-c", &brought);
	edits[4] = copy_with(f, "2-c c", &keep); /* what its parent has brought becomes its own */
	edits[5] = copy_with(f, "3-a a a", &lost);
	edits[6] = copy_with(f, "3-c c c", &keep);
	fixture_write(f, edits, 7, results);
	for (size_t i = 0; i < 7; i++)
		assert_int_equal(results[i].status, i == 5 ? STATUS_ATT_MISSING : STATUS_OK);
	assert_true(str_eq(results[5].att, STR("nowhere")));
	assert_string_equal(fixture_tree(f, "a", true), "3-c(2-c 1-c)! 3-b(2-b 1-b) 2-a(1-a)");
	assert_string_equal(atts_of(f, "a", "2-a", false), "f=stored@0");
	assert_string_equal(atts_of(f, "a", "3-b", false), "f=other@0");
	assert_string_equal(atts_of(f, "a", "3-c", false), "f=brought@0");
	assert_int_equal(pairs(f), 6);
	fixture_check(f);
}

enum {
	STUB_BRANCHES = 300,
};

/* Each branch is read once, not once for each edit. */
static void
stubs_of_many_branches_are_read_once(void **state)
{
	struct fixture *f = *state;
	const struct rev_att_edit keep = att_stub("f", -1);
	static struct rev_att_edit data[STUB_BRANCHES];
	static struct rev_edit edits[STUB_BRANCHES];
	static struct rev_result results[STUB_BRANCHES];
	char history[64];

	for (int i = 0; i < STUB_BRANCHES; i++) {
		data[i] = att_data(f, "f", "x/y", "data");
		(void)snprintf(history, sizeof(history), "1-%d", i);
		edits[i] = copy_with(f, history, &data[i]);
	}
	fixture_write(f, edits, STUB_BRANCHES, results);
	for (int i = 0; i < STUB_BRANCHES; i++) {
		(void)snprintf(history, sizeof(history), "2-n%d %d", i, i);
		edits[i] = copy_with(f, history, &keep);
	}
	fixture_write(f, edits, STUB_BRANCHES, results);
	for (int i = 0; i < STUB_BRANCHES; i++)
		assert_int_equal(results[i].status, STATUS_OK);
	if (!test_store_fails())
		assert_in_range(f->cost.keys_read, 1, 6 * STUB_BRANCHES);
	assert_string_equal(atts_of(f, "a", "2-n7", false), "f=data@0");
	fixture_check(f);
}

/* ---- What it costs ---- */

static void
documents_without_attachments_cost_what_they_did(void **state)
{
	struct fixture *f = *state;
	struct rev_att_edit att = att_data(f, "f", "x/y", "data");
	struct rev_att_edit keep = att_stub("f", -1);
	const char *rev;

	if (test_store_fails() || getenv("FROND_TEST_INDEXES")) /* edits read more */
		return;
	put(f, "other", NULL, &att, 1);
	rev = fixture_put(f, "d", NULL, "{}");
	rev = fixture_put(f, "d", rev, "{\"x\":1}");
	assert_int_equal(f->cost.keys_read, 1);
	assert_int_equal(f->cost.round_trips, 1);
	/* Attaching reads nothing more: there is nothing at the parent. */
	att = att_data(f, "f", "x/y", "data");
	rev = put(f, "d", rev, &att, 1);
	assert_int_equal(f->cost.keys_read, 1);
	assert_int_equal(f->cost.round_trips, 1);
	/* Keeping: the parent's branch and its pointer, in one wave; then what is given up. */
	rev = put(f, "d", rev, &keep, 1);
	assert_in_range(f->cost.keys_read, 2, 3);
	assert_in_range(f->cost.round_trips, 1, 2);
	/* Giving up: the branch, the pointer, the counter. */
	fixture_put(f, "d", rev, "{}");
	assert_int_equal(f->cost.keys_read, 3);
	assert_int_equal(f->cost.round_trips, 3);
	fixture_check(f);
}

/* ---- Uploads ---- */

static void
small_upload_stays_in_memory(void **state)
{
	struct fixture *f = *state;
	struct rev_upload *u = upload_new(f, 0, 0);
	struct rev_att_edit att;

	upload_bytes(u, 0, 100000);
	att = upload_end(u, "f");
	assert_int_equal(att.source, REV_ATT_DATA);
	assert_int_equal(att.att.length, 100000);
	assert_int_equal(uploads(f), 0);
	assert_int_equal(pairs(f), 0);
	put(f, "d", NULL, &att, 1);
	assert_int_equal(pairs(f), 3);
	rev_upload_free(u, true);
	fixture_check(f);
}

static void
large_upload_goes_ahead_and_is_published_by_one_pointer(void **state)
{
	struct fixture *f = *state;
	struct rev_upload *u = upload_new(f, 0, 0);
	const uint64_t bytes = 3 * BATCH_BYTES + 12345;
	struct rev_att_edit att;
	const char *text;
	const char *rev;

	upload_bytes(u, 0, 2 * BATCH_BYTES);
	assert_int_equal(uploads(f), 1);
	assert_int_equal(pairs(f), 2 * REV_ATT_BATCH_CHUNKS);
	fixture_check(f);
	upload_bytes(u, 2 * BATCH_BYTES, bytes);
	att = upload_end(u, "f");
	assert_int_equal(att.source, REV_ATT_STAGED);
	rev = put(f, "d", NULL, &att, 1);
	assert_int_equal(uploads(f), 0);
	rev_upload_free(u, false); /* it is the revision's: nothing is taken back */
	text = atts_of(f, "d", rev, false);
	assert_int_equal(strncmp(text, "f=", 2), 0);
	for (uint64_t i = 0; i < bytes; i++)
		if (text[2 + i] != pattern(i))
			fail_msg("byte %llu", (unsigned long long)i);
	assert_string_equal(text + 2 + bytes, "@1");
	fixture_check(f);
	fixture_delete(f, "d", rev);
	assert_int_equal(pairs(f), 0);
	fixture_check(f);
}

static void
refused_edit_leaves_the_upload_to_be_taken_back(void **state)
{
	struct fixture *f = *state;
	struct rev_upload *u = upload_new(f, 0, 0);
	struct rev_att_edit att;

	fixture_put(f, "d", NULL, "{}");
	upload_bytes(u, 0, BATCH_BYTES + 1);
	att = upload_end(u, "f");
	assert_int_equal(write_one(f, fixture_edit(f, "d", NULL, "{}"), &att, 1).status,
			 STATUS_DOC_CONFLICT);
	assert_int_equal(uploads(f), 1);
	fixture_check(f);
	rev_upload_free(u, false);
	assert_int_equal(uploads(f), 0);
	assert_int_equal(pairs(f), 0);
	fixture_check(f);
}

static void
sweep_gives_up_what_has_rested(void **state)
{
	struct fixture *f = *state;
	struct rev_upload *u = upload_new(f, 0, 0);
	struct rev_att_edit att;
	uint64_t removed;
	struct err err = { 0 };

	upload_bytes(u, 0, BATCH_BYTES + 1);
	assert_int_equal(rev_uploads_sweep(f->calm, REV_UPLOAD_AGE_MS, &removed, &err), STATUS_OK);
	assert_int_equal(removed, 0);
	assert_int_equal(uploads(f), 1);
	event_wait(&(struct event){ .state = NULL }, clock_after_ms(2));
	assert_int_equal(rev_uploads_sweep(f->calm, 0, &removed, &err), STATUS_OK);
	assert_int_equal(removed, 1);
	assert_int_equal(uploads(f), 0);
	assert_int_equal(pairs(f), 0);
	/* Who comes back is told, and neither goes on nor becomes a revision's. */
	upload_bytes(u, BATCH_BYTES + 1, 2 * BATCH_BYTES - 1);
	att = (struct rev_att_edit){ .att = { .name = STR("f"), .type = STR("x/y") } };
	assert_int_equal(rev_upload_write(u, STR("xx"), &err), STATUS_TIMEOUT);
	att.source = REV_ATT_STAGED;
	assert_int_equal(write_one(f, fixture_edit(f, "d", NULL, "{}"), &att, 1).status,
			 STATUS_TIMEOUT);
	rev_upload_free(u, false);
	assert_int_equal(pairs(f), 0);
	fixture_check(f);
}

enum {
	RACED_UPLOADS = 200,
	RACED_BYTES = 150000, /* more than an upload keeps in memory */
	RACED_PAUSE_US = 3000,
};

struct sweeper {
	struct kv_store *store;
	_Atomic bool stop;
	uint64_t removed;
};

static void *
sweep_all_the_time(void *arg)
{
	struct sweeper *s = arg;
	unsigned seed = 1;

	while (!s->stop) {
		uint64_t removed;

		assert_int_equal(rev_uploads_sweep(s->store, 0, &removed, NULL), STATUS_OK);
		s->removed += removed;
		usleep((unsigned)rand_r(&seed) % RACED_PAUSE_US);
	}
	return NULL;
}

/* An upload that becomes a revision's, or not: true if it does. */
static bool
race_one(struct fixture *f, const char *id, const char *bytes)
{
	struct rev_upload *u = upload_new(f, 0, 0);
	struct rev_att_edit edit = { .att = { .name = STR("f"), .type = STR("x/y") } };
	uint8_t md5[REV_ATT_DIGEST_BYTES];
	struct err err = { 0 };
	enum status status = rev_upload_write(u, str_of(bytes, RACED_BYTES), &err);

	if (status == STATUS_OK)
		status = rev_upload_finish(u, &edit, md5, &err);
	if (status == STATUS_OK) {
		assert_int_equal(edit.source, REV_ATT_STAGED);
		status = write_one(f, fixture_edit(f, id, NULL, "{}"), &edit, 1).status;
	}
	if (status != STATUS_OK)
		assert_int_equal(status, STATUS_TIMEOUT);
	rev_upload_free(u, status == STATUS_OK);
	return status == STATUS_OK;
}

static void
sweep_takes_nothing_that_a_revision_has_taken_over(void **state)
{
	static char bytes[RACED_BYTES];
	struct fixture *f = *state;
	struct sweeper s = { .store = f->calm };
	int taken = 0;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, sweep_all_the_time, &s), 0);
	for (int i = 0; i < RACED_UPLOADS; i++) {
		char id[16];

		snprintf(id, sizeof(id), "d%d", i);
		taken += race_one(f, id, bytes);
	}
	s.stop = true;
	pthread_join(thread, NULL);
	printf("# %d taken over, %llu swept\n", taken, (unsigned long long)s.removed);
	/* All that revisions have is there: verify looks for the pieces. */
	fixture_check(f);
}

static void
sweep_of_many_takes_several_transactions(void **state)
{
	struct fixture *f = *state;
	struct catalog_db *db = f->db;
	struct kv_tx *tx;
	uint64_t removed;

	/* What crashed processes leave behind, without their bytes. */
	for (int round = 0; round < 3; round++) {
		assert_int_equal(kv_begin(f->calm, KV_TX_READ_WRITE, &tx), STATUS_OK);
		for (int i = 0; i < 400; i++) {
			struct buf key = BUF_INIT(64), value = BUF_INIT(64);
			uint8_t id[REV_ATT_ID_BYTES];

			rand_bytes(id, sizeof(id));
			tuple_put_u64(&key, KV_ROOT);
			tuple_put_u64(&key, KV_ROOT_UPLOADS);
			tuple_put_u64(&key, db->number);
			tuple_put_uuid(&key, id);
			tuple_put_u64(&value, 1);
			tuple_put_u64(&value, 1000);
			tuple_put_u64(&value, i % 4 ? 1000 : UINT64_C(1) << 60);
			assert_int_equal(kv_set(tx, buf_str(&key), buf_str(&value)), STATUS_OK);
			buf_release(&key);
			buf_release(&value);
		}
		assert_int_equal(kv_future_wait(kv_commit(tx)), STATUS_OK);
		kv_tx_free(tx);
	}
	assert_int_equal(uploads(f), 1200);
	assert_int_equal(rev_uploads_sweep(f->calm, REV_UPLOAD_AGE_MS, &removed, NULL), STATUS_OK);
	assert_int_equal(removed, 900);
	assert_int_equal(uploads(f), 300);
}

static enum status
delete_db(struct kv_tx *tx, void *arg)
{
	(void)arg;
	return catalog_delete(tx, CATALOG_SPACE_COUCH, STR("db"), NULL);
}

static void
upload_into_a_deleted_database_ends(void **state)
{
	struct fixture *f = *state;
	struct rev_upload *u = upload_new(f, 0, 0);
	struct err err = { 0 };
	static char bytes[BATCH_BYTES];

	upload_bytes(u, 0, BATCH_BYTES);
	assert_int_equal(kv_run(f->calm, delete_db, NULL, NULL, &err), STATUS_OK);
	assert_int_equal(rev_upload_write(u, str_of(bytes, sizeof(bytes)), &err), STATUS_NOT_FOUND);
	rev_upload_free(u, false);
	assert_int_equal(uploads(f), 0);
}

static void
upload_past_its_limit_is_refused(void **state)
{
	struct fixture *f = *state;
	struct rev_upload *u = upload_new(f, 0, 1000);
	struct err err = { 0 };

	upload_bytes(u, 0, 1000);
	assert_int_equal(rev_upload_write(u, STR("x"), &err), STATUS_LIMIT);
	rev_upload_free(u, false);
}

static void
compressed_data_has_couchdbs_digest(void **state)
{
	struct fixture *f = *state;
	static const char text[] = "This is a text document to save";
	struct rev_upload *u = upload_new(f, 8, 0);
	struct rev_att_edit att;
	uint8_t md5[REV_ATT_DIGEST_BYTES];
	struct buf known = BUF_INIT(64);
	char *stored;

	assert_int_equal(rev_upload_write(u, str_from_cstr(text), NULL), STATUS_OK);
	att = upload_end(u, "f");
	assert_int_equal(att.att.encoding, REV_ATT_GZIP);
	assert_int_equal(att.att.length, strlen(text));
	assert_int_equal(att.att.encoded_length, att.data.len);
	/* CouchDB's tests name the digest that this has on a Mac, which gzip's header tells of. */
	stored = (char *)(uintptr_t)arena_dup(f->arena, att.data).ptr;
	assert_int_equal(stored[9], 3);
	stored[9] = 19;
	MD5((const unsigned char *)stored, att.data.len, md5);
	assert_int_equal(base64_decode(&known, STR("OW2BoZAtMqs1E+fAnLpNBw=="), BASE64_STANDARD),
			 STATUS_OK);
	assert_memory_equal(md5, known.ptr, sizeof(md5));
	buf_release(&known);
	assert_string_equal(atts_of(f, "d", put(f, "d", NULL, &att, 1), false),
			    "f=This is a text document to save@1");
	rev_upload_free(u, true);
	fixture_check(f);
}

static void
types_are_compared_with_patterns(void **state)
{
	static const struct {
		const char *type, *patterns;
		bool is_in;
	} cases[] = {
		{ "text/plain", "text/*, application/json", true },
		{ "TEXT/Plain", "text/*", true },
		{ " application/json ; charset=utf-8", "text/*, application/json", true },
		{ "application/json-seq", "text/*, application/json", false },
		{ "image/png", "text/*", false },
		{ "image/png", "", false },
	};
	static char long_type[REV_ATT_TYPE_BYTES + 1];
	char long_pattern[200] = "";

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(rev_att_type_in(str_from_cstr(cases[i].type),
						 str_from_cstr(cases[i].patterns)),
				 cases[i].is_in);
	memset(long_type, 'x', sizeof(long_type));
	assert_true(rev_att_type_in(str_of(long_type, sizeof(long_type) - 1), STR("x*")));
	assert_false(rev_att_type_in(str_of(long_type, sizeof(long_type)), STR("x*")));
	/* A pattern that is too long is passed over, and not those behind it. */
	memset(long_pattern, '*', sizeof(long_pattern) - 1);
	assert_false(rev_att_type_in(STR("text/plain"), str_from_cstr(long_pattern)));
	memcpy(long_pattern + sizeof(long_pattern) - 9, ", text/*", 8);
	assert_true(rev_att_type_in(STR("text/plain"), str_from_cstr(long_pattern)));
}

static void
cuts_do_not_change_what_is_stored(void **state)
{
	struct fixture *f = *state;
	struct rev_upload *whole = upload_new(f, 8, 0);
	struct rev_upload *cut = upload_new(f, 8, 0);
	struct rev_att_edit a, b;
	static char text[200000];
	const char *rev, *read;

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)('a' + (i * i >> 7) % 20);
	assert_int_equal(rev_upload_write(whole, str_of(text, sizeof(text)), NULL), STATUS_OK);
	for (size_t i = 0; i < sizeof(text); i += 777)
		assert_int_equal(
			rev_upload_write(
				cut,
				str_of(text + i, sizeof(text) - i < 777 ? sizeof(text) - i : 777),
				NULL),
			STATUS_OK);
	a = upload_end(whole, "f");
	b = upload_end(cut, "f");
	assert_memory_equal(a.att.digest, b.att.digest, sizeof(a.att.digest));
	assert_int_equal(a.att.encoded_length, b.att.encoded_length);
	rev_upload_free(whole, false);
	/* It is read in more than one piece. */
	rev = put(f, "d", NULL, &b, 1);
	read = atts_of(f, "d", rev, false);
	assert_string_equal(read, arena_printf(f->arena, "f=%.*s@1", (int)sizeof(text), text).ptr);
	rev_upload_free(cut, true);
}

static void
ranges_are_read_from_where_they_begin(void **state)
{
	struct fixture *f = *state;
	struct rev_upload *u = upload_new(f, 0, 0);
	const uint64_t bytes = BATCH_BYTES + 5000;
	static const uint64_t ranges[][2] = {
		{ 0, 1 },
		{ REV_ATT_CHUNK_BYTES - 1, REV_ATT_CHUNK_BYTES + 1 },
		{ REV_ATT_CHUNK_BYTES, 2 * REV_ATT_CHUNK_BYTES },
		{ 5, BATCH_BYTES + 4999 },
		{ BATCH_BYTES + 4999, BATCH_BYTES + 5000 },
		{ 7, 7 },
	};
	struct rev_att_edit att;
	struct kv_tx *tx;

	upload_bytes(u, 0, bytes);
	att = upload_end(u, "f");
	put(f, "d", NULL, &att, 1);
	rev_upload_free(u, true);
	assert_int_equal(kv_begin(f->calm, KV_TX_READ_ONLY, &tx), STATUS_OK);
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		struct rev_att_reader *reader;
		uint64_t at = ranges[i][0], end = ranges[i][1];
		/* No chunk is read of which nothing is wanted. */
		uint64_t chunks = at == end ? 0
					    : (end - 1) / REV_ATT_CHUNK_BYTES -
						      at / REV_ATT_CHUNK_BYTES + 1;
		uint64_t before = kv_tx_stats(tx).keys_read;
		struct str piece;

		assert_int_equal(rev_att_reader_new(f->db, &att.att, false, at, end, &reader),
				 STATUS_OK);
		while (rev_att_reader_next(reader, tx, &piece) == STATUS_OK)
			for (size_t j = 0; j < piece.len; j++)
				assert_int_equal(piece.ptr[j], pattern(at++));
		assert_int_equal(at, end);
		assert_int_equal(kv_tx_stats(tx).keys_read - before, chunks);
		rev_att_reader_free(reader);
	}
	kv_tx_free(tx);
}

static void
missing_chunk_and_broken_gzip_are_corrupt(void **state)
{
	struct fixture *f = *state;
	struct rev_att_edit att = att_data(f, "f", "x/y", "this is no gzip file");
	struct rev_att_reader *reader;
	struct str piece;
	struct kv_tx *tx;

	att.att.encoding = REV_ATT_GZIP;
	put(f, "d", NULL, &att, 1);
	assert_int_equal(kv_begin(f->calm, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(
		rev_att_reader_new(f->db, &att.att, true, 0, att.att.encoded_length, &reader),
		STATUS_OK);
	assert_int_equal(rev_att_reader_next(reader, tx, &piece), STATUS_CORRUPT);
	rev_att_reader_free(reader);
	att.att.encoded_length += REV_ATT_CHUNK_BYTES;
	assert_int_equal(
		rev_att_reader_new(f->db, &att.att, false, 0, att.att.encoded_length, &reader),
		STATUS_OK);
	assert_int_equal(rev_att_reader_next(reader, tx, &piece), STATUS_CORRUPT);
	rev_att_reader_free(reader);
	kv_tx_free(tx);
}

/* A gzip file of many members that stand for nothing: other fibers run between them. */
static void
inflating_nothing_is_counted_in_steps(void **state)
{
	enum {
		MEMBERS = 1000,
		LEAST_STEPS = 4 * MEMBERS,
	};
	static const uint8_t empty[] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3,
					 3,    0,    0, 0, 0, 0, 0, 0, 0, 0 };
	AUTO(buf_release) struct buf body = BUF_INIT(1 << 20);
	struct fixture *f = *state;
	struct rev_att_edit att = att_data(f, "f", "x/y", "");
	struct rev_att_reader *reader;
	struct str piece;
	struct kv_tx *tx;
	int64_t begin;

	for (int i = 0; i < MEMBERS; i++)
		buf_append(&body, empty, sizeof(empty));
	att.data = buf_str(&body);
	att.att.encoding = REV_ATT_GZIP;
	att.att.encoded_length = body.len;
	put(f, "d", NULL, &att, 1);
	assert_int_equal(kv_begin(f->calm, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(rev_att_reader_new(f->db, &att.att, true, 0, body.len, &reader),
			 STATUS_OK);
	/* On this thread, which is no fiber, the steps are what the credit has fallen by. */
	assert_int_equal(step_count(1), STATUS_OK);
	begin = step_credit;
	assert_int_equal(rev_att_reader_next(reader, tx, &piece), STATUS_NOT_FOUND);
	assert_true(begin - step_credit >= LEAST_STEPS);
	rev_att_reader_free(reader);
	kv_tx_free(tx);
}

/*
 * Each allocation of an upload and its publication fails in turn: nothing half is ever published.
 */
static void
every_failed_allocation_is_reported(void **state)
{
	struct fixture *f = *state;
	static char bytes[BATCH_BYTES + 1000];

	if (test_store_fails())
		return;
	for (uint64_t n = 1;; n++) {
		struct rev_upload_options options = {
			.store = f->store, .db = f->db, .gzip_level = 1, .memory_bytes = 0
		};
		struct rev_att_edit att = { .att = { .name = STR("f"), .type = STR("x/y") } };
		uint8_t md5[REV_ATT_DIGEST_BYTES];
		struct rev_upload *u = NULL;
		enum status status;
		uint64_t made;

		(void)mem_fail_after(n);
		status = rev_upload_new(&options, &u);
		if (status == STATUS_OK)
			status = rev_upload_write(u, str_of(bytes, sizeof(bytes)), NULL);
		if (status == STATUS_OK)
			status = rev_upload_finish(u, &att, md5, NULL);
		made = mem_fail_after(0);
		rev_upload_free(u, false);
		assert_int_equal(uploads(f), 0);
		assert_int_equal(pairs(f), 0);
		if (status == STATUS_OK && made < n)
			break;
		assert_true(n < 500);
	}
	fixture_check(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(hash_counts_attachments_in_reverse),
		TEST(order_is_that_of_the_edit),
		TEST(what_no_revision_has_is_cleared),
		TEST(stub_for_nothing_is_refused),
		TEST(two_of_one_name_are_invalid),
		TEST(name_that_fits_no_key_is_refused),
		TEST(attachments_of_no_revision_are_told_from_those_it_lacks),
		TEST(each_branch_keeps_its_own),
		TEST(history_that_ties_branches_gives_up_all_they_had),
		TEST(shared_data_goes_with_the_last_that_has_it),
		TEST(two_edits_of_a_batch_count_what_they_share_together),
		TEST(edits_that_merge_leave_the_attachments_of_what_remains),
		TEST(stubs_of_edits_that_merge_mean_what_is_stored_or_what_came_before),
		TEST(stubs_of_many_branches_are_read_once),
		TEST(documents_without_attachments_cost_what_they_did),
		TEST(small_upload_stays_in_memory),
		TEST(large_upload_goes_ahead_and_is_published_by_one_pointer),
		TEST(refused_edit_leaves_the_upload_to_be_taken_back),
		TEST(sweep_gives_up_what_has_rested),
		TEST(sweep_takes_nothing_that_a_revision_has_taken_over),
		TEST(sweep_of_many_takes_several_transactions),
		TEST(upload_into_a_deleted_database_ends),
		TEST(upload_past_its_limit_is_refused),
		TEST(compressed_data_has_couchdbs_digest),
		TEST(types_are_compared_with_patterns),
		TEST(cuts_do_not_change_what_is_stored),
		TEST(ranges_are_read_from_where_they_begin),
		TEST(missing_chunk_and_broken_gzip_are_corrupt),
		TEST(inflating_nothing_is_counted_in_steps),
		TEST(every_failed_allocation_is_reported),
	};

	return cmocka_run_group_tests_name("revisioned attachments", tests, NULL, NULL);
}
