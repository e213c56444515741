/*
 * What documents with revisions store: a record that is parsed is the one that was put, whatever
 * its bytes are; what is longer, shorter, or beyond a limit is corrupt.
 */
#include "again.h"
#include "doc/doc.h"
#include "model/revisioned/local_root.h"
#include "model/revisioned/record.h"
#include "model/revisioned/revisioned_int.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum {
	ARENA_BYTES = 1 << 20,
	VALUE_BYTES = 1000,
};

static struct arena *arena;
static struct err err;

static const struct rev_id rev = { 300, STR("ha\0sh") };

/* ---- Records: parsed, and put again ---- */

static enum status
entry_again(struct str value, struct arena *with, struct buf *ret, struct err *e)
{
	struct rev_id winner;

	TRY(rev_entry_parse(value, true, with, &winner, e));
	rev_entry_put(ret, winner);
	return STATUS_OK;
}

static enum status
change_again(struct str value, struct arena *with, struct buf *ret, struct err *e)
{
	struct rev_change change;

	TRY(rev_change_parse(value, true, with, &change, e));
	rev_change_put(ret, &change);
	return STATUS_OK;
}

static void
put_att_path(struct buf *ret, struct str name)
{
	tuple_put_null(ret);
	tuple_put_str(ret, name);
}

static enum status
att_again(struct str value, struct arena *with, struct buf *ret, struct err *e)
{
	AUTO(buf_release) struct buf path = BUF_INIT(VALUE_BYTES);
	struct rev_att att;
	uint64_t order;

	put_att_path(&path, STR("name"));
	TRY(rev_att_parse(buf_str(&path), value, with, &att, &order, e));
	rev_att_put(ret, &att, order);
	return STATUS_OK;
}

static enum status
upload_again(struct str value, struct arena *with, struct buf *ret, struct err *e)
{
	struct rev_upload_record record;

	(void)with;
	TRY(rev_upload_record_parse(value, &record, e));
	rev_upload_record_put(ret, &record);
	return STATUS_OK;
}

static enum status
purge_again(struct str value, struct arena *with, struct buf *ret, struct err *e)
{
	struct rev_purge purge;

	TRY(rev_purge_record_parse(value, with, &purge, e));
	rev_purge_record_begin(ret, purge.id, purge.doc_id);
	for (size_t i = 0; i < purge.count; i++)
		rev_purge_record_add(ret, purge.revs[i]);
	return STATUS_OK;
}

static enum status
mark_again(struct str value, struct arena *with, struct buf *ret, struct err *e)
{
	struct catalog_seq seq;

	(void)with;
	TRY(rev_purge_mark_parse(value, &seq, e));
	rev_purge_mark_put(ret, &seq);
	return STATUS_OK;
}

static enum status
local_again(struct str value, struct arena *with, struct buf *ret, struct err *e)
{
	struct rev_local_root root;

	(void)with;
	TRY(rev_local_root_read(value, &root, e));
	rev_local_root_put(ret, &root);
	return STATUS_OK;
}

static void
put_branch_tail(struct buf *ret, bool deleted, struct rev_id head)
{
	tuple_put_bool(ret, !deleted);
	tuple_put_u64(ret, head.pos);
	tuple_put_bytes(ret, head.hash);
}

/* A winner's Sequence is filled in, as its commit would. */
static void
put_branch(struct buf *ret, const struct rev_branch_record *row)
{
	size_t at;

	if (!row->winner) {
		rev_branch_record_put_loser(ret, row);
		return;
	}
	at = rev_branch_record_put_winner(ret, row->seq.bytes[0], 0, row->branch_count, row);
	assert_int_equal(buf_status(ret), STATUS_OK);
	memcpy(ret->ptr + at, row->seq.bytes + 1, KV_VERSIONSTAMP_BYTES);
}

static enum status
branch_again(struct str value, struct arena *with, struct buf *ret, struct err *e)
{
	AUTO(buf_release) struct buf tail = BUF_INIT(VALUE_BYTES);
	struct rev_branch_record row;

	put_branch_tail(&tail, true, rev);
	TRY(rev_branch_record_parse(buf_str(&tail), value, with, &row, e));
	assert_true(row.deleted && rev_id_eq(row.rev, rev));
	put_branch(ret, &row);
	return STATUS_OK;
}

/* ---- Samples ---- */

static void
put_entry(struct buf *ret)
{
	rev_entry_put(ret, rev);
}

static void
put_change(struct buf *ret)
{
	const struct rev_change change = {
		.id = STR("i\0d"), .rev = rev, .deleted = true, .branch_count = 3
	};

	rev_change_put(ret, &change);
}

static void
put_att(struct buf *ret)
{
	const struct rev_att att = { .type = STR("text/pl\0ain"),
				     .id = { 1, 2, 3 },
				     .length = 1000,
				     .encoded_length = 900,
				     .encoding = REV_ATT_GZIP,
				     .digest = { 4, 0, 5 },
				     .revpos = 6 };

	rev_att_put(ret, &att, 7);
}

static void
put_upload(struct buf *ret)
{
	const struct rev_upload_record record = { .begun_ms = 1000, .last_ms = 2000 };

	rev_upload_record_put(ret, &record);
}

static void
put_purge(struct buf *ret)
{
	static const uint8_t id[REV_PURGE_ID_BYTES] = { 8, 9 };

	rev_purge_record_begin(ret, id, STR("id"));
	rev_purge_record_add(ret, (struct rev_id){ 1, STR("first") });
	rev_purge_record_add(ret, (struct rev_id){ 2, STR("second") });
}

static void
put_mark(struct buf *ret)
{
	const struct catalog_seq seq = { .bytes = { UINT8_MAX, 1, 2 } };

	rev_purge_mark_put(ret, &seq);
}

static void
put_local_in_leaves(struct buf *ret)
{
	const struct rev_local_root root = { .form = DOC_FORM_EXPLODED, .rev = 300 };

	rev_local_root_put(ret, &root);
}

static void
put_packed_local(struct buf *ret)
{
	const struct rev_local_root root = { .form = DOC_FORM_PACKED,
					     .rev = 3,
					     .packed = STR("{\"a\":1}") };

	rev_local_root_put(ret, &root);
}

static void
put_local_in_chunks(struct buf *ret)
{
	const struct rev_local_root root = { .form = DOC_FORM_CHUNKED,
					     .rev = 3,
					     .text_bytes = DOC_LIMIT_MAX_BYTES };

	rev_local_root_put(ret, &root);
}

/* Two ancestors, "a" and "bc". */
static const struct rev_branch_record loser = { .ancestors = STR("\1a\0\1bc\0") };

static struct rev_branch_record
winner_sample(void)
{
	struct rev_branch_record row = loser;

	row.winner = true;
	row.seq = (struct catalog_seq){ .bytes = { 2, 1, 0, 3 } };
	row.branch_count = 4;
	return row;
}

static void
put_loser(struct buf *ret)
{
	put_branch(ret, &loser);
}

static void
put_winner(struct buf *ret)
{
	const struct rev_branch_record row = winner_sample();

	put_branch(ret, &row);
}

static void
put_winner_with_atts(struct buf *ret)
{
	struct rev_branch_record row = winner_sample();

	row.has_atts = true;
	put_branch(ret, &row);
}

static void
put_loser_with_one_key(struct buf *ret)
{
	struct rev_branch_record row = loser;

	row.has_one_key = true;
	put_branch(ret, &row);
}

static void
put_winner_with_text(struct buf *ret)
{
	struct rev_branch_record row = winner_sample();

	row.has_one_key = true;
	row.has_text = true;
	row.text_id[3] = 5;
	put_branch(ret, &row);
}

static void
put_loser_with_sizes(struct buf *ret)
{
	struct rev_branch_record row = loser;

	row.has_sizes = true;
	row.sizes = (struct rev_sizes){ .external = 1000, .active = 20 };
	put_branch(ret, &row);
}

static void
put_winner_with_all(struct buf *ret)
{
	struct rev_branch_record row = winner_sample();

	row.has_atts = true;
	row.has_text = true;
	row.text_id[0] = 6;
	row.has_sizes = true;
	row.sizes = (struct rev_sizes){ .external = 1, .active = 2 };
	put_branch(ret, &row);
}

static const struct again_record records[] = {
	{ "entry of _all_docs", put_entry, entry_again, 1, 1 }, /* at the NUL of the hash */
	{ "entry of _changes", put_change, change_again, 1, 0 },
	{ "attachment", put_att, att_again, 1, 0 },
	{ "upload", put_upload, upload_again, 1, 0 },
	{ "purge", put_purge, purge_again, 1, 1 },
	{ "place in the record of purges", put_mark, mark_again, 1, 0 },
	{ "local document in leaves", put_local_in_leaves, local_again, 1, 0 },
	{ "packed local document", put_packed_local, local_again, 2, 0 },
	{ "local document in chunks", put_local_in_chunks, local_again, 3, 0 },
	/* Where an ancestor ends, since nobody looks at these before they are read. */
	{ "loser", put_loser, branch_again, 1, 2 },
	{ "winner", put_winner, branch_again, 1, 2 },
	{ "winner with attachments", put_winner_with_atts, branch_again, 1, 3 },
	{ "loser with one key", put_loser_with_one_key, branch_again, 1, 3 },
	{ "winner with a text", put_winner_with_text, branch_again, 2, 0 },
	{ "loser with sizes", put_loser_with_sizes, branch_again, 3, 0 },
	{ "winner with a text and sizes", put_winner_with_all, branch_again, 3, 0 },
};

/* ---- Tests ---- */

static void
a_record_that_is_read_is_the_one_that_was_put(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(records); i++)
		again_check(&records[i], arena);
}

static enum status
att_path_status(struct str path)
{
	AUTO(buf_release) struct buf value = BUF_INIT(VALUE_BYTES);
	struct rev_att att;
	uint64_t order;

	put_att(&value);
	return rev_att_parse(path, buf_str(&value), arena, &att, &order, &err);
}

/* The key of an attachment, below its revision's: cut, longer, and what has no null. */
static void
the_path_of_an_attachment_is_a_null_and_its_name(void **state)
{
	AUTO(buf_release) struct buf path = BUF_INIT(VALUE_BYTES);

	(void)state;
	put_att_path(&path, STR("name"));
	assert_int_equal(att_path_status(buf_str(&path)), STATUS_OK);
	for (size_t len = 0; len < path.len; len++)
		assert_int_equal(att_path_status(str_of(path.ptr, len)), STATUS_CORRUPT);
	assert_int_equal(att_path_status(str_skip(buf_str(&path), 1)), STATUS_CORRUPT);
	tuple_put_u64(&path, 7);
	assert_int_equal(att_path_status(buf_str(&path)), STATUS_CORRUPT);
	buf_clear(&path);
	tuple_put_null(&path);
	tuple_put_bytes(&path, STR("name"));
	assert_int_equal(att_path_status(buf_str(&path)), STATUS_CORRUPT);
}

/* The end of a branch's key, behind the id of its document. */
static void
the_key_of_a_branch_ends_with_its_head(void **state)
{
	AUTO(buf_release) struct buf tail = BUF_INIT(VALUE_BYTES);
	AUTO(buf_release) struct buf value = BUF_INIT(VALUE_BYTES);
	struct rev_branch_record row;

	(void)state;
	put_winner(&value);
	put_branch_tail(&tail, false, (struct rev_id){ 300, STR("hash") });
	assert_int_equal(
		rev_branch_record_parse(buf_str(&tail), buf_str(&value), arena, &row, &err),
		STATUS_OK);
	assert_false(row.deleted);
	assert_int_equal(row.rev.pos, 300);
	assert_true(str_eq(row.rev.hash, STR("hash")));
	for (size_t len = 0; len < tail.len; len++)
		assert_int_equal(rev_branch_record_parse(str_of(tail.ptr, len), buf_str(&value),
							 arena, &row, &err),
				 STATUS_CORRUPT);
	tuple_put_u64(&tail, 7);
	assert_int_equal(
		rev_branch_record_parse(buf_str(&tail), buf_str(&value), arena, &row, &err),
		STATUS_CORRUPT);
}

static void
an_attachment_has_a_known_encoding_and_a_digest(void **state)
{
	static const struct {
		uint64_t encoding;
		size_t digest_bytes;
		enum status status;
	} cases[] = {
		{ REV_ATT_IDENTITY, REV_ATT_DIGEST_BYTES, STATUS_OK },
		{ REV_ATT_GZIP, REV_ATT_DIGEST_BYTES, STATUS_OK },
		{ REV_ATT_GZIP + 1, REV_ATT_DIGEST_BYTES, STATUS_CORRUPT },
		{ REV_ATT_GZIP, REV_ATT_DIGEST_BYTES - 1, STATUS_CORRUPT },
		{ REV_ATT_GZIP, REV_ATT_DIGEST_BYTES + 1, STATUS_CORRUPT },
	};
	static const char digest[REV_ATT_DIGEST_BYTES + 1] = "0123456789abcdef";

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(buf_release) struct buf value = BUF_INIT(VALUE_BYTES);
		AUTO(buf_release) struct buf again = BUF_INIT(VALUE_BYTES);

		tuple_put_u64(&value, REV_ATT_FORMAT);
		tuple_put_uuid(&value, (const uint8_t *)digest);
		tuple_put_str(&value, STR("type"));
		tuple_put_u64(&value, 1);
		tuple_put_u64(&value, 2);
		tuple_put_u64(&value, cases[i].encoding);
		tuple_put_bytes(&value, str_of(digest, cases[i].digest_bytes));
		tuple_put_u64(&value, 3);
		tuple_put_u64(&value, 4);
		assert_int_equal(att_again(buf_str(&value), arena, &again, &err), cases[i].status);
	}
}

/* An incarnation is a byte, and a text in chunks is no longer than a document may be. */
static void
numbers_have_their_limits(void **state)
{
	static const uint8_t stamp[KV_VERSIONSTAMP_BYTES] = { 1 };

	(void)state;
	for (uint64_t more = 0; more < 2; more++) {
		enum status expected = more ? STATUS_CORRUPT : STATUS_OK;
		AUTO(buf_release) struct buf value = BUF_INIT(VALUE_BYTES);
		AUTO(buf_release) struct buf again = BUF_INIT(VALUE_BYTES);

		tuple_put_u64(&value, REV_PURGE_MARK_FORMAT);
		tuple_put_u64(&value, UINT8_MAX + more);
		tuple_put_versionstamp(&value, stamp);
		assert_int_equal(mark_again(buf_str(&value), arena, &again, &err), expected);

		buf_clear(&value);
		tuple_put_u64(&value, 1);
		tuple_open(&value);
		tuple_put_u64(&value, UINT8_MAX + more);
		tuple_put_versionstamp(&value, stamp);
		tuple_close(&value);
		tuple_put_u64(&value, 1);
		tuple_open(&value);
		tuple_close(&value);
		assert_int_equal(branch_again(buf_str(&value), arena, &again, &err), expected);

		buf_clear(&value);
		tuple_put_u64(&value, DOC_FORM_CHUNKED);
		tuple_put_u64(&value, 1);
		tuple_put_u64(&value, DOC_LIMIT_MAX_BYTES + more);
		assert_int_equal(local_again(buf_str(&value), arena, &again, &err), expected);
	}
}

/* What has gone is a head at least. */
static void
a_purge_of_nothing_is_corrupt(void **state)
{
	static const uint8_t id[REV_PURGE_ID_BYTES] = { 1 };
	AUTO(buf_release) struct buf value = BUF_INIT(VALUE_BYTES);
	struct rev_purge purge;

	(void)state;
	rev_purge_record_begin(&value, id, STR("id"));
	assert_int_equal(rev_purge_record_parse(buf_str(&value), arena, &purge, &err),
			 STATUS_CORRUPT);
}

static int
setup(void **state)
{
	(void)state;
	arena = arena_new(ARENA_BYTES);
	return arena ? 0 : -1;
}

static int
teardown(void **state)
{
	(void)state;
	arena_free(arena);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_record_that_is_read_is_the_one_that_was_put),
		TEST(the_path_of_an_attachment_is_a_null_and_its_name),
		TEST(the_key_of_a_branch_ends_with_its_head),
		TEST(an_attachment_has_a_known_encoding_and_a_digest),
		TEST(numbers_have_their_limits),
		TEST(a_purge_of_nothing_is_corrupt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
