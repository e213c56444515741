#include "bson/bson.h"

#include <math.h>

#include "bson/scalar.h"
#include "peer.h"
#include "random_bson.h"

enum {
	ROUNDS = 3000,
	TEST_BYTES = 1 << 22,
};

#define BYTES(literal) str_of("" literal, sizeof(literal) - 1)

static void
assert_invalid(struct str bytes, const char *what)
{
	struct err err = { 0 };

	if (bson_check(bytes, &err) != STATUS_INVALID)
		fail_msg("%s is taken for a document", what);
	assert_true(err.text[0] != '\0');
}

static void
the_specification_s_examples_are_built(void **state)
{
	struct buf out = BUF_INIT(TEST_BYTES);
	struct bson_builder b;

	(void)state;
	bson_builder_init(&b, &out);
	bson_begin(&b);
	bson_put_string(&b, STR("hello"), STR("world"));
	bson_end(&b);
	assert_true(str_eq(buf_str(&out), BYTES("\x16\0\0\0\x02hello\0\x06\0\0\0world\0\0")));
	buf_clear(&out);
	bson_begin(&b);
	bson_begin_array(&b, STR("BSON"));
	bson_put_string(&b, STR(""), STR("awesome"));
	bson_put_double(&b, STR(""), 5.05);
	bson_put_int32(&b, STR(""), 1986);
	bson_end(&b);
	bson_end(&b);
	assert_true(str_eq(buf_str(&out), BYTES("1\0\0\0\x04"
						"BSON\0&\0\0\0\x02"
						"0\0\x08\0\0\0awesome\0\x01"
						"1\0"
						"333333\x14@\x10"
						"2\0\xc2\x07\0\0\0\0")));
	assert_int_equal(bson_check(buf_str(&out), NULL), STATUS_OK);
	buf_release(&out);
}

/* Writes the elements of a container again, one by one. */
static void
copy_elements(struct bson_builder *b, struct str container)
{
	struct bson_iter i;
	struct bson_element e;

	for (bson_iter_begin(&i, container); bson_iter_read(&i, &e);) {
		if (e.value.type == BSON_DOCUMENT)
			bson_begin_document(b, e.name);
		else if (e.value.type == BSON_ARRAY)
			bson_begin_array(b, e.name);
		else
			bson_put(b, e.name, &e.value);
		if (bson_is_container(&e.value)) {
			copy_elements(b, bson_text(&e.value));
			bson_end(b);
		}
	}
	assert_false(i.damaged);
}

static void
documents_come_back_bit_for_bit(void **state)
{
	struct arena *arena = arena_new(TEST_BYTES);
	struct buf out = BUF_INIT(TEST_BYTES);
	struct rand_seq r = { 1 };

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		struct str doc = random_document(&r, arena, 4);
		struct bson_builder b;

		assert_int_equal(bson_check(doc, NULL), STATUS_OK);
		assert_true(peer_accepts(doc.ptr, doc.len));
		buf_clear(&out);
		bson_builder_init(&b, &out);
		bson_begin(&b);
		copy_elements(&b, doc);
		bson_end(&b);
		assert_true(str_eq(buf_str(&out), doc));
		buf_clear(&out);
		bson_begin(&b);
		bson_put_elements(&b, doc);
		bson_end(&b);
		assert_true(str_eq(buf_str(&out), doc));
		arena_clear(arena);
	}
	buf_release(&out);
	arena_free(arena);
}

/* Whatever frond takes, libbson takes; and a reader of any bytes stays inside of them. */
static void
damaged_documents_are_refused_as_libbson_does(void **state)
{
	struct arena *arena = arena_new(TEST_BYTES);
	struct rand_seq r = { 2 };

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		struct str doc = random_document(&r, arena, 3);
		char *bytes = malloc(doc.len);
		struct str damaged = str_of(bytes, doc.len);
		struct bson_iter iter;
		struct bson_element e;

		memcpy(bytes, doc.ptr, doc.len);
		for (uint64_t n = rand_seq_below(&r, 3) + 1; n > 0; n--)
			bytes[rand_seq_below(&r, doc.len)] = (char)rand_seq_next(&r);
		if (bson_check(damaged, NULL) == STATUS_OK)
			assert_true(peer_accepts(damaged.ptr, damaged.len));
		for (bson_iter_begin(&iter, damaged); bson_iter_read(&iter, &e);)
			assert_true(e.bytes.ptr >= bytes &&
				    e.bytes.ptr + e.bytes.len < bytes + doc.len);
		free(bytes);
		arena_clear(arena);
	}
	arena_free(arena);
}

static void
each_mistake_is_refused(void **state)
{
	(void)state;
	assert_invalid(BYTES(""), "nothing");
	assert_invalid(BYTES("\x05\0\0\0"), "a document without its end");
	assert_invalid(BYTES("\x04\0\0\0"), "a length of 4");
	assert_invalid(BYTES("\x05\0\0\0\x01"), "a document that does not end in NUL");
	assert_invalid(BYTES("\x05\0\0\0\0\0"), "a document with a byte behind it");
	assert_invalid(BYTES("\xff\xff\xff\xff\0"), "a negative length");
	assert_invalid(BYTES("\x08\0\0\0\x14"
			     "a\0\0"),
		       "a type that does not exist");
	assert_invalid(BYTES("\x07\0\0\0\x0a"
			     "a\0"),
		       "a name that takes the document's end");
	assert_invalid(BYTES("\x09\0\0\0\x08"
			     "a\0\x02\0"),
		       "a boolean of 2");
	assert_invalid(BYTES("\x08\0\0\0\x0a\xff\0\0"), "a name that is not UTF-8");
	assert_invalid(BYTES("\x0e\0\0\0\x02"
			     "a\0\x02\0\0\0\xff\0\0"),
		       "a string that is not UTF-8");
	assert_invalid(BYTES("\x0e\0\0\0\x02"
			     "a\0\x02\0\0\0aa\0"),
		       "a string without its end");
	assert_invalid(BYTES("\x0c\0\0\0\x02"
			     "a\0\0\0\0\0\0"),
		       "a string of no bytes");
	assert_invalid(BYTES("\x0d\0\0\0\x03"
			     "a\0\x06\0\0\0\0\0"),
		       "a document that takes its parent's end");
	assert_invalid(BYTES("\x10\0\0\0\x10"
			     "a\0\x01\0\0\0\0\0\0\0\0"),
		       "bytes between the last element and the end");
	assert_invalid(BYTES("\x12\0\0\0\x05"
			     "a\0\x05\0\0\0\x02\x02\0\0\0b\0"),
		       "binary data of subtype 2 of another length inside");
	assert_invalid(BYTES("\x19\0\0\0\x0f"
			     "a\0\x10\0\0\0\x02\0\0\0b\0\x05\0\0\0\0\0\0\0\0"),
		       "code with scope of another length than it says");
}

/* Where a mistake is, and what it is. */
static void
mistakes_are_told_with_their_places(void **state)
{
	const struct {
		struct str bytes;
		const char *said;
	} cases[] = {
		{ BYTES(""), "the BSON's length is not that of its 0 bytes" },
		{ BYTES("\x05\0\0\0"), "the BSON's length is not that of its 4 bytes" },
		{ BYTES("\x05\0\0\0\0\0"), "the BSON's length is not that of its 6 bytes" },
		{ BYTES("\x05\0\0\0\x01"),
		  "the BSON is not valid at byte 4: it does not end in a NUL" },
		{ BYTES("\x08\0\0\0\x14"
			"a\0\0"),
		  "the BSON is not valid at byte 4: an element has a type that does not exist" },
		{ BYTES("\x0b\0\0\0\x10"
			"a\0\x01\0\0\0"),
		  "the BSON is not valid at byte 7: a value's length does not fit what it is in" },
		{ BYTES("\x07\0\0\0\x0a"
			"a\0"),
		  "the BSON is not valid at byte 4: an element has no end of its name" },
		{ BYTES("\x09\0\0\0\x08"
			"a\0\x02\0"),
		  "the BSON is not valid at byte 7: a boolean is neither 0 nor 1" },
		{ BYTES("\x09\0\0\0\x0a"
			"a\xff\0\0"),
		  "the BSON is not valid at byte 6: a name is not UTF-8" },
		{ BYTES("\x0f\0\0\0\x02"
			"a\0\x03\0\0\0a\xff\0\0"),
		  "the BSON is not valid at byte 12: a string is not UTF-8" },
		{ BYTES("\x0b\0\0\0\x0b"
			"a\0\xff\0\0\0"),
		  "the BSON is not valid at byte 7: a pattern is not UTF-8" },
		{ BYTES("\x0b\0\0\0\x0b"
			"a\0\0\xff\0\0"),
		  "the BSON is not valid at byte 8: options of a pattern are not UTF-8" },
		{ BYTES("\x17\0\0\0\x0f"
			"a\0\x0f\0\0\0\x02\0\0\0\xff\0\x05\0\0\0\0\0"),
		  "the BSON is not valid at byte 15: code is not UTF-8" },
		{ BYTES("\x12\0\0\0\x05"
			"a\0\x05\0\0\0\x02\x02\0\0\0b\0"),
		  "the BSON is not valid at byte 7: binary data of subtype 2 has another length" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = { 0 };

		assert_int_equal(bson_check(cases[i].bytes, &err), STATUS_INVALID);
		assert_string_equal(err.text, cases[i].said);
	}
}

/* Not even the NUL that is counted: its text would have a length of -1. */
static void
a_string_of_no_bytes_is_not_read(void **state)
{
	const struct str texts[] = {
		BYTES("\x0f\0\0\0\x02"
		      "a\0\0\0\0\0\x0a"
		      "b\0\0"),
		BYTES("\x15\0\0\0\x0f"
		      "a\0\x0d\0\0\0\0\0\0\0\x05\0\0\0\0\0"),
	};
	struct bson_element e;
	struct bson_iter i;

	(void)state;
	for (size_t n = 0; n < sizeof(texts) / sizeof(texts[0]); n++) {
		assert_invalid(texts[n], "a string of no bytes");
		bson_iter_begin(&i, texts[n]);
		assert_false(bson_iter_read(&i, &e));
		assert_true(i.damaged);
	}
}

static void
nesting_has_a_limit(void **state)
{
	struct buf out = BUF_INIT(TEST_BYTES);
	struct bson_builder b;
	struct buf outer = BUF_INIT(TEST_BYTES);

	(void)state;
	bson_builder_init(&b, &out);
	bson_begin(&b);
	for (int i = 1; i < BSON_DEPTH; i++)
		bson_begin_document(&b, STR("a"));
	for (int i = 0; i < BSON_DEPTH; i++)
		bson_end(&b);
	assert_int_equal(buf_status(&out), STATUS_OK);
	assert_int_equal(bson_check(buf_str(&out), NULL), STATUS_OK);

	bson_builder_init(&b, &outer);
	bson_begin(&b);
	bson_put_document(&b, STR("a"), buf_str(&out));
	bson_end(&b);
	assert_invalid(buf_str(&outer), "a document of one level too many");

	buf_clear(&out);
	bson_builder_init(&b, &out);
	bson_begin(&b);
	for (int i = 0; i < BSON_DEPTH + 5; i++)
		bson_begin_array(&b, STR("a"));
	bson_put_null(&b, STR("a"));
	for (int i = 0; i < BSON_DEPTH + 6; i++)
		bson_end(&b);
	assert_int_equal(buf_status(&out), STATUS_LIMIT);
	buf_release(&outer);
	buf_release(&out);
}

static void
values_are_found_by_name_and_path(void **state)
{
	struct buf out = BUF_INIT(TEST_BYTES);
	struct bson_builder b;
	struct bson_value v;
	struct str doc;

	(void)state;
	bson_builder_init(&b, &out);
	bson_begin(&b);
	bson_put_int32(&b, STR("a"), 1);
	bson_put_int32(&b, STR("a"), 2);
	bson_begin_document(&b, STR("b"));
	bson_begin_array(&b, STR("c"));
	for (int i = 0; i < 12; i++)
		bson_put_int64(&b, STR("ignored"), i);
	bson_end(&b);
	bson_put_null(&b, STR("0"));
	bson_end(&b);
	bson_end(&b);
	doc = buf_str(&out);
	assert_true(bson_find(doc, STR("a"), &v) && v.type == BSON_INT32 && bson_integer(&v) == 1);
	assert_true(bson_find_path(doc, STR("b.c.11"), &v) && v.type == BSON_INT64 &&
		    bson_integer(&v) == 11);
	assert_true(bson_find_path(doc, STR("b.0"), &v) && v.type == BSON_NULL);
	assert_true(bson_find_path(doc, STR("b.c"), &v) && v.type == BSON_ARRAY);
	assert_int_equal(bson_count(bson_text(&v)), 12);
	assert_false(bson_find_path(doc, STR("b.c.12"), &v));
	assert_false(bson_find_path(doc, STR("a.b"), &v));
	assert_false(bson_find_path(doc, STR("b."), &v));
	assert_false(bson_find(doc, STR("c"), NULL));
	assert_true(bson_find_nested(doc, STR("b.0"), &v) && v.type == BSON_NULL);
	assert_true(bson_find_nested(doc, STR("b.c"), &v) && v.type == BSON_ARRAY);
	assert_false(bson_find_nested(doc, STR("b.c.0"), &v));
	assert_false(bson_find_nested(doc, STR("a.b"), &v));
	assert_false(bson_find_nested(doc, STR("b.d"), &v));
	assert_int_equal(bson_count(bson_find_document(doc, STR("b"))), 2);
	assert_true(bson_is_empty(bson_find_document(doc, STR("a"))));
	assert_true(bson_is_empty(bson_find_document(doc, STR("d"))));
	assert_true(bson_find_true(doc, STR("a")) && bson_find_true(doc, STR("b")));
	assert_false(bson_find_true(doc, STR("d")));
	assert_true(bson_find_path(doc, STR("b"), &v));
	assert_false(bson_find_true(bson_text(&v), STR("0")));
	assert_true(bson_is_empty(BSON_EMPTY));
	assert_int_equal(bson_check(BSON_EMPTY, NULL), STATUS_OK);
	assert_false(bson_is_empty(doc));
	buf_release(&out);
}

static void
types_have_mongodb_s_names(void **state)
{
	enum bson_type type;

	(void)state;
	assert_string_equal(bson_type_name(BSON_DOCUMENT), "object");
	assert_string_equal(bson_type_name(BSON_DECIMAL), "decimal");
	assert_string_equal(bson_type_name(BSON_MIN_KEY), "minKey");
	assert_null(bson_type_name((enum bson_type)0));
	assert_null(bson_type_name((enum bson_type)20));
	for (int i = 0; i < 256; i++)
		if (bson_type_name((enum bson_type)i)) {
			const char *name = bson_type_name((enum bson_type)i);

			assert_true(bson_type_of_name(str_from_cstr(name), &type));
			assert_int_equal(type, i);
		}
	assert_true(bson_type_of_name(STR("number"), &type) && !type);
	assert_false(bson_type_of_name(STR("Double"), &type));
}

static void
numbers_are_integers_where_they_are(void **state)
{
	const struct bson_value yes[] = { BSON_OF_INT32(-5), BSON_OF_INT64(INT64_MIN),
					  BSON_OF_DOUBLE(-0.0), BSON_OF_DOUBLE(-0x1p63) };
	const struct bson_value no[] = { BSON_OF_DOUBLE(0.5),      BSON_OF_DOUBLE(0x1p63),
					 BSON_OF_DOUBLE(NAN),      BSON_OF_DOUBLE(-INFINITY),
					 BSON_OF_STRING(STR("1")), BSON_OF_BOOL(true) };
	const int64_t as[] = { -5, INT64_MIN, 0, INT64_MIN };
	int64_t n;

	(void)state;
	for (size_t i = 0; i < 4; i++)
		assert_true(bson_to_int64(&yes[i], &n) && n == as[i]);
	for (size_t i = 0; i < 6; i++)
		assert_false(bson_to_int64(&no[i], &n));
	assert_true(bson_is_true(&BSON_OF_INT32(-1)) && bson_is_true(&BSON_OF_INT64(1)));
	assert_false(bson_is_true(&BSON_OF_INT32(0)) || bson_is_true(&BSON_OF_INT64(0)));
	assert_true(bson_is_true(&BSON_OF_DOUBLE(NAN)));
	assert_true(bson_is_true(&BSON_OF_STRING(STR(""))));
	assert_false(bson_is_true(&BSON_OF_DOUBLE(-0.0)));
	assert_false(bson_is_true(&BSON_OF_NULL));
	assert_true(isnan(bson_to_double(&BSON_OF_NULL)));
}

static void
scalars_give_values_back(void **state)
{
	struct arena *arena = arena_new(TEST_BYTES);
	struct buf a = BUF_INIT(TEST_BYTES), b = BUF_INIT(TEST_BYTES);
	struct buf leaf = BUF_INIT(TEST_BYTES), scratch = BUF_INIT(TEST_BYTES);
	struct rand_seq r = { 3 };

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		struct bson_value v = random_value(&r, arena, 1), again;
		struct doc_scalar s, read;

		if (bson_is_container(&v))
			v.as_text = BSON_EMPTY;
		bson_to_scalar(&v, &s);
		buf_clear(&leaf);
		doc_scalar_put(&leaf, &s);
		assert_int_equal(doc_scalar_read(buf_str(&leaf), &scratch, &read), STATUS_OK);
		assert_int_equal(bson_of_scalar(&read, &again), STATUS_OK);
		assert_int_equal(again.type, v.type);
		buf_clear(&a);
		buf_clear(&b);
		bson_value_write(&a, &v);
		bson_value_write(&b, &again);
		assert_true(str_eq(buf_str(&a), buf_str(&b)));
		arena_clear(arena);
	}
	buf_release(&a);
	buf_release(&b);
	buf_release(&leaf);
	buf_release(&scratch);
	arena_free(arena);
}

static void
object_ids_begin_with_the_time_and_differ(void **state)
{
	char ids[3][BSON_OBJECT_ID_BYTES];

	(void)state;
	for (int i = 0; i < 3; i++)
		bson_object_id_new(0x01020304, ids[i]);
	assert_memory_equal(ids[0], "\x01\x02\x03\x04", 4);
	assert_memory_equal(ids[0], ids[1], 9);
	assert_memory_not_equal(ids[0], ids[1], BSON_OBJECT_ID_BYTES);
	assert_memory_not_equal(ids[1], ids[2], BSON_OBJECT_ID_BYTES);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_specification_s_examples_are_built),
		cmocka_unit_test(documents_come_back_bit_for_bit),
		cmocka_unit_test(damaged_documents_are_refused_as_libbson_does),
		cmocka_unit_test(each_mistake_is_refused),
		cmocka_unit_test(mistakes_are_told_with_their_places),
		cmocka_unit_test(a_string_of_no_bytes_is_not_read),
		cmocka_unit_test(nesting_has_a_limit),
		cmocka_unit_test(values_are_found_by_name_and_path),
		cmocka_unit_test(types_have_mongodb_s_names),
		cmocka_unit_test(numbers_are_integers_where_they_are),
		cmocka_unit_test(scalars_give_values_back),
		cmocka_unit_test(object_ids_begin_with_the_time_and_differ),
	};

	return cmocka_run_group_tests_name("bson", tests, NULL, NULL);
}
