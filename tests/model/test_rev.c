/* Revision identifiers, their hashes, Sequences; roots of local documents. */
#include "fixture.h"

#include "model/revisioned/local_root.h"
#include "model/revisioned/revision.h"

static struct arena *arena;

static struct rev_id
parsed(const char *text)
{
	struct rev_id rev = { 0 };

	assert_int_equal(rev_id_parse(str_from_cstr(text), arena, &rev, NULL), STATUS_OK);
	return rev;
}

static void
assert_invalid(const char *text)
{
	struct rev_id rev = { 0 };
	struct err err = { 0 };

	if (rev_id_parse(str_from_cstr(text), arena, &rev, &err) != STATUS_INVALID)
		fail_msg("%s was taken", text);
	assert_string_equal(err.text, "Invalid rev format");
}

static void
assert_written(const char *in, const char *out)
{
	struct buf b = BUF_INIT(1024);

	rev_id_write(parsed(in), &b);
	buf_append_byte(&b, 0);
	assert_string_equal(b.ptr, out);
	buf_release(&b);
}

static void
revisions_are_read_and_written(void **state)
{
	(void)state;
	assert_int_equal(parsed("1-967a00dff5e02add41819138abb3284d").hash.len, 16);
	assert_written("1-967a00dff5e02add41819138abb3284d", "1-967a00dff5e02add41819138abb3284d");
	assert_written("12-967A00DFF5E02ADD41819138ABB3284D",
		       "12-967a00dff5e02add41819138abb3284d");
	assert_written("3-x", "3-x");
	assert_written("3-a-b", "3-a-b");
	assert_written("0-17", "0-17");
	assert_written("9223372036854775806-x", "9223372036854775806-x");
}

static void
what_is_no_revision_is_refused(void **state)
{
	char lengthy[REV_HASH_LIMIT_BYTES + 4];

	(void)state;
	assert_invalid("");
	assert_invalid("1");
	assert_invalid("-abc");
	assert_invalid("+1-abc");
	assert_invalid("x-abc");
	assert_invalid("1x-abc");
	assert_invalid("9223372036854775807-abc");
	assert_invalid("99999999999999999999-abc");
	assert_invalid("1-967a00dff5e02add41819138abb3284g"); /* 32 characters, one no digit */
	assert_invalid("1-\xff");
	memset(lengthy, 'x', sizeof(lengthy));
	memcpy(lengthy, "1-", 2);
	lengthy[sizeof(lengthy) - 1] = '\0';
	assert_invalid(lengthy);
	lengthy[sizeof(lengthy) - 2] = '\0';
	assert_written(lengthy, lengthy);
}

/* RFC 9110's etagc: a revision is shown in an ETag as it was written. */
static void
a_hash_that_no_etag_can_show_is_refused(void **state)
{
	struct rev_id rev;
	struct str hash;

	(void)state;
	assert_int_equal(rev_id_parse(str_of("2-\0x", 4), arena, &rev, NULL), STATUS_INVALID);
	assert_invalid("2-a\"b");
	assert_invalid("2-a b");
	assert_invalid("2-a\nb");
	assert_invalid("2-\x7f");
	assert_written("2-!#\\,;~\xc3\xa9", "2-!#\\,;~\xc3\xa9");
	assert_int_equal(rev_hash_parse(str_of("\0", 1), arena, &hash), STATUS_INVALID);
	assert_int_equal(rev_hash_parse(STR("967a00dff5e02add41819138abb3284g"), arena, &hash),
			 STATUS_INVALID);
	assert_int_equal(rev_hash_parse(STR("x"), arena, &hash), STATUS_OK);
	assert_true(str_eq(hash, STR("x")));
}

/* Its value. */
static enum status
local_root_again(const struct rev_local_root *root, struct buf *value, struct rev_local_root *ret)
{
	rev_local_root_put(value, root);
	return rev_local_root_read(buf_str(value), ret, NULL);
}

static void
a_root_of_a_local_document_is_nothing_but_what_was_written(void **state)
{
	static const struct rev_local_root roots[] = {
		{ .form = DOC_FORM_EXPLODED, .rev = 1 },
		{ .form = DOC_FORM_PACKED, .rev = 2, .packed = STR("{}") },
		{ .form = DOC_FORM_CHUNKED, .rev = 3, .text_bytes = DOC_LIMIT_MAX_BYTES },
	};
	const struct rev_local_root too_long = { .form = DOC_FORM_CHUNKED,
						 .rev = 3,
						 .text_bytes = DOC_LIMIT_MAX_BYTES + 1 };
	AUTO(buf_release) struct buf value = BUF_INIT(1024);
	struct rev_local_root read;

	(void)state;
	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		assert_int_equal(local_root_again(&roots[i], &value, &read), STATUS_OK);
		assert_int_equal(read.form, roots[i].form);
		assert_int_equal(read.rev, roots[i].rev);
		assert_true(str_eq(read.packed, roots[i].packed));
		assert_int_equal(read.text_bytes, roots[i].text_bytes);
		for (size_t len = 0; len < value.len; len++)
			assert_int_equal(rev_local_root_read(str_of(value.ptr, len), &read, NULL),
					 STATUS_CORRUPT);
		tuple_put_u64(&value, 0);
		assert_int_equal(rev_local_root_read(buf_str(&value), &read, NULL), STATUS_CORRUPT);
	}
	assert_int_equal(local_root_again(&too_long, &value, &read), STATUS_CORRUPT);
}

static void
winners_are_live_then_long_then_great(void **state)
{
	(void)state;
	assert_true(rev_id_cmp(true, parsed("1-a"), false, parsed("9-z")) > 0);
	assert_true(rev_id_cmp(false, parsed("9-z"), true, parsed("1-a")) < 0);
	assert_true(rev_id_cmp(true, parsed("10-a"), true, parsed("9-z")) > 0);
	assert_true(rev_id_cmp(true, parsed("2-b"), true, parsed("2-a")) > 0);
	assert_true(rev_id_cmp(true, parsed("2-aa"), true, parsed("2-a")) > 0);
	assert_true(rev_id_cmp(false, parsed("2-b"), false, parsed("2-c")) < 0);
	assert_int_equal(rev_id_cmp(true, parsed("2-b"), true, parsed("2-b")), 0);
	assert_true(rev_id_eq(parsed("2-b"), parsed("2-b")));
	assert_false(rev_id_eq(parsed("2-b"), parsed("3-b")));
	assert_false(rev_id_eq(parsed("2-b"), parsed("2-bb")));
}

static void
assert_hash(bool deleted, const char *parent, const char *json, const char *want)
{
	struct doc_limits limits = { .doc_bytes = DOC_LIMIT_DEFAULT_BYTES,
				     .path_bytes = KV_LIMIT_KEY_BYTES };
	uint8_t hash[REV_HASH_BYTES];
	struct doc doc;
	struct rev_id rev = { 0 };

	if (parent)
		rev = parsed(parent);
	assert_int_equal(doc_explode_text(str_from_cstr(json), arena, &limits, 64, &doc, NULL),
			 STATUS_OK);
	rev_hash(deleted, rev, doc.term, hash);
	assert_memory_equal(hash, parsed(want).hash.ptr, sizeof(hash));
}

static void
hashes_are_couchdbs(void **state)
{
	uint8_t hash[REV_HASH_BYTES];

	(void)state;
	assert_hash(false, NULL, "{}", "1-967a00dff5e02add41819138abb3284d");
	assert_hash(false, NULL, "{\"foo\":\"bar\"}", "1-4c6114c65e295552ab1019e2b046b10e");
	assert_hash(true, "1-967a00dff5e02add41819138abb3284d", "{}",
		    "2-eec205a9d413992850a6e32678485900");
	assert_hash(false, NULL, "{\"a\":[1,2,3]}", "1-308048961a84beb0c9e99e07facf0f5f");
	assert_hash(false, NULL, "{\"a\":1.0}", "1-8a159b695bf2bd957f1a435bfd6e1739");
	rev_hash(false, (struct rev_id){ 0 }, (struct str){ 0 }, hash);
	assert_memory_equal(hash, parsed("1-967a00dff5e02add41819138abb3284d").hash.ptr,
			    sizeof(hash));
}

/* Positions have three encodings; each must give a hash of its own. */
static void
hashes_differ_by_parent(void **state)
{
	static const char *const parents[] = { "1-a",          "255-a",        "256-a",
					       "2147483647-a", "2147483648-a", "1-b" };
	uint8_t hashes[6][REV_HASH_BYTES];

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		rev_hash(false, parsed(parents[i]), (struct str){ 0 }, hashes[i]);
		for (size_t j = 0; j < i; j++)
			assert_memory_not_equal(hashes[i], hashes[j], REV_HASH_BYTES);
	}
}

static void
sequences_are_read_and_written(void **state)
{
	struct catalog_seq seq, other;
	struct buf b = BUF_INIT(64);
	struct err err = { 0 };

	(void)state;
	assert_int_equal(catalog_seq_parse(STR("01000000000000abcdef00020003"), &seq, NULL),
			 STATUS_INVALID);
	assert_int_equal(catalog_seq_parse(STR("0100000000000abcdef0002003"), &seq, NULL),
			 STATUS_OK);
	assert_int_equal(seq.bytes[0], 1);
	assert_int_equal(seq.bytes[12], 3);
	catalog_seq_write(&seq, &b);
	assert_int_equal(b.len, CATALOG_SEQ_HEX_BYTES);
	assert_memory_equal(b.ptr, "0100000000000abcdef0002003", b.len);
	assert_int_equal(catalog_seq_parse(STR("0"), &other, NULL), STATUS_OK);
	assert_true(catalog_seq_cmp(&other, &seq) < 0);
	assert_int_equal(catalog_seq_parse(STR(""), &seq, &err), STATUS_INVALID);
	assert_int_equal(catalog_seq_parse(STR("now"), &seq, &err), STATUS_INVALID);
	assert_int_equal(catalog_seq_parse(STR("0100000000000abcdef000200g"), &seq, &err),
			 STATUS_INVALID);
	assert_string_equal(err.text, "Malformed sequence supplied in 'since' parameter.");
	buf_release(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(revisions_are_read_and_written),
		cmocka_unit_test(what_is_no_revision_is_refused),
		cmocka_unit_test(a_hash_that_no_etag_can_show_is_refused),
		cmocka_unit_test(a_root_of_a_local_document_is_nothing_but_what_was_written),
		cmocka_unit_test(winners_are_live_then_long_then_great),
		cmocka_unit_test(hashes_are_couchdbs),
		cmocka_unit_test(hashes_differ_by_parent),
		cmocka_unit_test(sequences_are_read_and_written),
	};
	int failed;

	arena = arena_new(16 * 1024 * 1024);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	arena_free(arena);
	return failed;
}
