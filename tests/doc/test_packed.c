/* Packed documents: the same as leaves in everything but how they lie in the store. */
#include "doc/packed.h"

#include <stdio.h>
#include <stdlib.h>

#include "doc/packed_find.h"
#include "doc_test.h"
#include "kv/tuple.h"
#include "random_json.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum {
	RANDOM_DOCS = 3000,
	RANDOM_DEPTH = 4,
};

static struct doc
pack_or_fail(struct str text, size_t packed_bytes, struct arena *arena)
{
	struct doc_limits limits = test_limits;
	struct err err = { 0 };
	struct doc doc;

	limits.packed_bytes = packed_bytes;
	if (doc_explode_text(text, arena, &limits, 0, &doc, &err) != STATUS_OK)
		fail_msg("%.*s: %s", STR_ARG(text), err.text);
	return doc;
}

static void
assert_leaves(const struct kv_pair *a, size_t a_count, const struct kv_pair *b, size_t b_count)
{
	assert_int_equal(a_count, b_count);
	for (size_t i = 0; i < a_count; i++) {
		assert_true(str_eq(a[i].key, b[i].key));
		assert_true(str_eq(a[i].value, b[i].value));
	}
}

/* Everything that is known of the text is the same from both. */
static void
assert_same(struct str text, struct arena *arena)
{
	struct doc leaves = explode_or_fail(text, arena);
	struct doc packed = pack_or_fail(text, TEST_MAX_BYTES, arena);
	struct buf out = BUF_INIT(TEST_MAX_BYTES);
	struct kv_pair *unpacked;
	struct str again;
	size_t count;

	assert_null(leaves.packed.ptr);
	assert_non_null(packed.packed.ptr);
	assert_int_equal(packed.count, 0);
	assemble_or_fail(&leaves, &out);
	if (!str_eq(buf_str(&out), packed.packed))
		fail_msg("%.*s: packed is %.*s, leaves are %.*s", STR_ARG(text),
			 STR_ARG(packed.packed), STR_ARG(buf_str(&out)));
	assert_true(str_eq(leaves.term, packed.term));
	assert_int_equal(leaves.json_bytes, packed.json_bytes);
	assert_int_equal(leaves.path_bytes, packed.path_bytes);
	assert_int_equal(leaves.specials_count, packed.specials_count);
	assert_int_equal(doc_is_empty(&leaves), doc_is_empty(&packed));
	assert_int_equal(doc_unpack(packed.packed, arena, &unpacked, &count), STATUS_OK);
	assert_leaves(leaves.leaves, leaves.count, unpacked, count);
	assert_int_equal(doc_pack(leaves.leaves, leaves.count, out.len, arena, &again), STATUS_OK);
	assert_true(str_eq(again, packed.packed));
	assert_int_equal(doc_pack(leaves.leaves, leaves.count, out.len - 1, arena, &again),
			 STATUS_OK);
	assert_null(again.ptr);
	assert_int_equal(doc_packed_check(packed.packed, arena), STATUS_OK);
	buf_release(&out);
}

static void
packed_text_is_what_leaves_make(void **state)
{
	static const struct str texts[] = {
		STR("{}"),
		STR(" { } "),
		STR("{\"_id\":\"x\",\"_rev\":\"1-a\"}"),
		STR("{\"b\":1,\"a\":2}"),
		STR("{\"a\":1,\"a\":2,\"b\":{\"x\":1,\"x\":[1,2]},\"a\":[3]}"),
		STR("{\"a\\u0000b\":1,\"a\":2,\"\":3,\"a\\u0000\":4}"),
		STR("{\"\\\"\":1,\"Z\":2,\"\\u005c\":3,\"\\n\":4,\"!\":5}"),
		STR("{\"\\ud83d\\ude00\":\"\\/\\u0008\\u0041\",\"\xf0\x9f\x98\x80\":2}"),
		STR("{\"n\":[1.10,-0,1e400,0.1,100000000000000000000,1E2,1.0,-0.0]}"),
		STR("{\"bytes\":[1,2,255],\"ints\":[1,256],\"e\":[[],{},[{}],{\"x\":[]}]}"),
		STR("{\"deep\":[[[[{\"b\":{\"c\":[1,{\"z\":1,\"a\":2}]},\"a\":null}]]]]}"),
	};
	struct arena *arena = arena_new(TEST_MAX_BYTES);

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++)
		assert_same(texts[i], arena);
	arena_free(arena);
}

static void
random_documents_are_the_same_packed_and_in_leaves(void **state)
{
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct buf text = BUF_INIT(TEST_MAX_BYTES);
	struct rand_seq r = { 5 };

	(void)state;
	for (int i = 0; i < RANDOM_DOCS; i++) {
		buf_clear(&text);
		random_object(&r, RANDOM_DEPTH, true, &text);
		assert_same(buf_str(&text), arena);
		arena_clear(arena);
	}
	buf_release(&text);
	arena_free(arena);
}

static void
text_past_the_limit_becomes_leaves(void **state)
{
	struct str text = STR(
		"{\"b\": [1, 2], \"a\": \"x\", \"_id\": \"long enough to not count\"}");
	size_t bytes = sizeof("{\"a\":\"x\",\"b\":[1,2]}") - 1;
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct doc fits = pack_or_fail(text, bytes, arena);
	struct doc over = pack_or_fail(text, bytes - 1, arena);

	(void)state;
	assert_int_equal(fits.packed.len, bytes);
	assert_int_equal(fits.unpackable, 0);
	assert_null(over.packed.ptr);
	assert_int_equal(over.count, 3);
	assert_int_equal(over.unpackable, bytes - 1);
	assert_int_equal(over.specials_count, 1);
	assert_true(str_eq(over.term, fits.term));
	arena_free(arena);
}

/* A document of a list is read on behind the one that had to be read twice. */
static void
list_goes_on_behind_a_text_past_the_limit(void **state)
{
	struct str text = STR("[{\"a\":\"0123456789\"},{\"b\":1},{\"c\":\"0123456789\"}]");
	struct doc_limits limits = test_limits;
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct json_reader r;
	enum json_token token;
	struct doc docs[3];

	(void)state;
	limits.packed_bytes = 10;
	json_reader_init(&r, text, NULL);
	assert_int_equal(json_next(&r, &token), STATUS_OK);
	for (size_t i = 0; i < COUNT(docs); i++) {
		assert_int_equal(json_next(&r, &token), STATUS_OK);
		assert_int_equal(token, JSON_OBJECT_BEGIN);
		assert_int_equal(doc_explode(&r, NULL, arena, &limits, 0, &docs[i], NULL),
				 STATUS_OK);
		assert_int_equal(docs[i].packed.ptr != NULL, i == 1);
	}
	assert_int_equal(json_next(&r, &token), STATUS_OK);
	assert_int_equal(token, JSON_ARRAY_END);
	json_reader_release(&r);
	arena_free(arena);
}

static void
limits_hold_for_packed_documents_all_the_same(void **state)
{
	static const struct str texts[] = {
		STR("{\"abc\":{\"defg\":[1,2]}}"),
		STR("{\"a\":\"0123456789012345678901234567\"}"),
		STR("{\"a\":[1,2],\"_id\":\"0123456789012345678901234567890123456789\"}"),
		STR("{\"abcdefghijklmnopqrst\":{},\"abcdefghijklmnopqrst\":1}"),
		STR("{\"a\":}"),
	};
	struct arena *arena = arena_new(TEST_MAX_BYTES);

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		for (size_t bytes = 10; bytes < 40; bytes++) {
			struct doc_limits limits = { .doc_bytes = bytes, .path_bytes = 50 - bytes };
			struct err of_leaves = { 0 };
			struct err of_packed = { 0 };
			struct doc doc;
			enum status status = doc_explode_text(texts[i], arena, &limits, 3, &doc,
							      &of_leaves);

			limits.packed_bytes = 1000;
			assert_int_equal(
				doc_explode_text(texts[i], arena, &limits, 3, &doc, &of_packed),
				status);
			assert_string_equal(of_packed.text, of_leaves.text);
		}
	}
	arena_free(arena);
}

static void
text_in_any_other_form_is_damaged(void **state)
{
	static const struct str texts[] = {
		STR(""),
		STR("[]"),
		STR("{}{}"),
		STR("{} "),
		STR("{ }"),
		STR("{\"b\":1,\"a\":2}"),
		STR("{\"a\":1,\"a\":2}"),
		STR("{\"_id\":1}"),
		STR("{\"a\":[1, 2]}"),
		STR("{\"a\":\"\\u0041\"}"),
		STR("{\"a\":\"\\/\"}"),
		STR("{\"a\":\"\xc3\"}"),
		STR("{\"a\":01}"),
		STR("{\"a\":tru}"),
		STR("{\"a\":{\"c\":1,\"b\":2}}"),
	};
	struct arena *arena = arena_new(TEST_MAX_BYTES);

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++)
		if (doc_packed_check(texts[i], arena) != STATUS_CORRUPT)
			fail_msg("%.*s", STR_ARG(texts[i]));
	assert_int_equal(arena_used_bytes(arena), 0);
	arena_free(arena);
}

/* ---- Parts ---- */

static enum status
find(struct str packed, const char *text, struct arena *arena, struct str *ret)
{
	struct doc_pointer pointer;

	assert_int_equal(doc_pointer_parse(str_from_cstr(text), arena, &pointer, NULL), STATUS_OK);
	return doc_packed_find(packed, &pointer, ret);
}

/* Feeds the text in pieces of random lengths; the finder's failure, or STATUS_OK. */
static enum status
feed_in_pieces(struct doc_finder *f, struct str text, struct rand_seq *r)
{
	while (text.len && !f->done) {
		size_t n = 1 + rand_seq_below(r, text.len < 9 ? text.len : 9);

		TRY(doc_finder_feed(f, str_of(text.ptr, n)));
		text = str_skip(text, n);
	}
	return STATUS_OK;
}

/* A finder that gets the text in pieces finds the same value; `value` ptr NULL: there is none. */
static void
assert_found_in_pieces(struct str packed, const struct doc_pointer *pointer, struct str value,
		       struct rand_seq *r)
{
	struct buf out = BUF_INIT(TEST_MAX_BYTES);
	struct doc_finder f;

	doc_finder_init(&f, pointer, &out);
	assert_int_equal(feed_in_pieces(&f, packed, r), value.ptr ? STATUS_OK : STATUS_NOT_FOUND);
	assert_int_equal(f.done, value.ptr != NULL);
	if (value.ptr && !str_eq(buf_str(&out), value))
		fail_msg("%.*s instead of %.*s", STR_ARG(buf_str(&out)), STR_ARG(value));
	doc_finder_release(&f);
	buf_release(&out);
}

static void
values_are_found_by_their_paths(void **state)
{
	const struct str packed = STR("{\"\":0,\"0\":{\"1\":\"x\"},\"a\":[1,[true,{\"b\":null}],"
				      "{}],\"q\\\"\\\\\":\"}\\\"{\",\"z~/\":-1.5e3}");
	static const struct {
		const char *path;
		const char *value; /* NULL: there is none */
	} cases[] = {
		{ "/", "0" },
		{ "/0", "{\"1\":\"x\"}" },
		{ "/0/1", "\"x\"" },
		{ "/0/01", NULL },
		{ "/a", "[1,[true,{\"b\":null}],{}]" },
		{ "/a/0", "1" },
		{ "/a/1/1/b", "null" },
		{ "/a/1/1/b/c", NULL },
		{ "/a/1/0", "true" },
		{ "/a/2", "{}" },
		{ "/a/2/x", NULL },
		{ "/a/3", NULL },
		{ "/a/-", NULL },
		{ "/a/00", NULL },
		{ "/a/99999999999999999999", NULL },
		{ "/a/1/2", NULL },
		{ "/q\"\\", "\"}\\\"{\"" },
		{ "/q\"\\/0", NULL },
		{ "/z~0~1", "-1.5e3" },
		{ "/b", NULL },
		{ "/1", NULL },
	};
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct rand_seq r = { 5 };
	struct doc_pointer pointer;
	struct str value;

	(void)state;
	assert_int_equal(doc_packed_check(packed, arena), STATUS_OK);
	for (size_t i = 0; i < COUNT(cases); i++) {
		enum status status = find(packed, cases[i].path, arena, &value);

		assert_int_equal(status, cases[i].value ? STATUS_OK : STATUS_NOT_FOUND);
		if (cases[i].value && !str_eq(value, str_from_cstr(cases[i].value)))
			fail_msg("%s: %.*s", cases[i].path, STR_ARG(value));
		assert_int_equal(
			doc_pointer_parse(str_from_cstr(cases[i].path), arena, &pointer, NULL),
			STATUS_OK);
		for (int j = 0; j < 50; j++)
			assert_found_in_pieces(packed, &pointer,
					       cases[i].value ? value : (struct str){ NULL, 0 },
					       &r);
	}
	assert_int_equal(find(packed, "", arena, &value), STATUS_OK);
	assert_true(str_eq(value, packed));
	assert_int_equal(find(STR("{}"), "/a", arena, &value), STATUS_NOT_FOUND);
	arena_free(arena);
}

/* Each leaf's path, and each that it goes through, leads to what the leaves below it make. */
static void
every_path_leads_to_the_same_in_both_forms(void **state)
{
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct buf text = BUF_INIT(TEST_MAX_BYTES);
	struct rand_seq r = { 11 };
	size_t paths = 0;

	(void)state;
	for (int i = 0; i < RANDOM_DOCS / 10; i++) {
		struct doc leaves, packed;

		buf_clear(&text);
		random_object(&r, RANDOM_DEPTH, true, &text);
		leaves = explode_or_fail(buf_str(&text), arena);
		packed = pack_or_fail(buf_str(&text), TEST_MAX_BYTES, arena);
		for (size_t j = 0; j < leaves.count; j++) {
			struct tuple_reader path = tuple_reader(leaves.leaves[j].key);
			struct str tokens[RANDOM_DEPTH + 2];
			struct doc_pointer pointer = { tokens, 0 };
			struct tuple_elem e;

			while (tuple_next(&path, &e) == STATUS_OK) {
				struct str below = str_of(leaves.leaves[j].key.ptr,
							  leaves.leaves[j].key.len - path.rest.len);
				struct buf token = BUF_INIT(1000);
				struct buf want = BUF_INIT(TEST_MAX_BYTES);
				struct doc_assembler a;
				struct str value;

				if (e.kind == TUPLE_INT)
					buf_append_u64(&token, e.magnitude);
				else
					tuple_unescape(&e, &token);
				tokens[pointer.count++] = arena_dup(arena, buf_str(&token));
				doc_assemble_init(&a, &want);
				for (size_t k = 0; k < leaves.count; k++)
					if (str_starts_with(leaves.leaves[k].key, below) &&
					    (leaves.leaves[k].key.len == below.len ||
					     (uint8_t)leaves.leaves[k].key.ptr[below.len] != 0xff))
						assert_int_equal(
							doc_assemble_leaf(
								&a,
								str_skip(leaves.leaves[k].key,
									 below.len),
								leaves.leaves[k].value),
							STATUS_OK);
				assert_int_equal(doc_assemble_end(&a), STATUS_OK);
				assert_int_equal(doc_packed_find(packed.packed, &pointer, &value),
						 STATUS_OK);
				assert_true(str_eq(value, buf_str(&want)));
				assert_found_in_pieces(packed.packed, &pointer, value, &r);
				doc_assemble_release(&a);
				buf_release(&token);
				buf_release(&want);
				paths++;
			}
		}
		arena_clear(arena);
	}
	assert_true(paths > 1000);
	buf_release(&text);
	arena_free(arena);
}

static void
damaged_text_is_found_and_never_read_past_its_end(void **state)
{
	static const struct str text = STR("{\"a\":[1,{\"b\":\"t\\\"x\"},2.5],\"d\":{\"e\":null},"
					   "\"h\":[[true],[\"\\u0000x\"]]}");
	static const char *const paths[] = { "/a/1/b", "/d/e", "/h/1/0", "/x/y", "/h/5" };
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct rand_seq r = { 3 };
	size_t damaged = 0;

	(void)state;
	for (int i = 0; i < 5000; i++) {
		size_t len = text.len - rand_seq_below(&r, 8) / 7 * rand_seq_below(&r, text.len);
		char *bytes = malloc(len); /* so that the sanitizer knows its end */
		struct str value;

		assert_non_null(bytes);
		memcpy(bytes, text.ptr, len);
		bytes[rand_seq_below(&r, len)] = (char)rand_seq_next(&r);
		for (size_t j = 0; j < COUNT(paths); j++) {
			enum status status = find(str_of(bytes, len), paths[j], arena, &value);

			assert_true(status == STATUS_OK || status == STATUS_NOT_FOUND ||
				    status == STATUS_CORRUPT);
		}
		damaged += doc_packed_check(str_of(bytes, len), arena) == STATUS_CORRUPT;
		free(bytes);
		arena_clear(arena);
	}
	assert_true(damaged > 2000);
	arena_free(arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packed_text_is_what_leaves_make),
		cmocka_unit_test(random_documents_are_the_same_packed_and_in_leaves),
		cmocka_unit_test(text_past_the_limit_becomes_leaves),
		cmocka_unit_test(list_goes_on_behind_a_text_past_the_limit),
		cmocka_unit_test(limits_hold_for_packed_documents_all_the_same),
		cmocka_unit_test(text_in_any_other_form_is_damaged),
		cmocka_unit_test(values_are_found_by_their_paths),
		cmocka_unit_test(every_path_leads_to_the_same_in_both_forms),
		cmocka_unit_test(damaged_text_is_found_and_never_read_past_its_end),
	};

	return cmocka_run_group_tests_name("packed", tests, NULL, NULL);
}
