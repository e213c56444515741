/* JSON values as trees: reading, writing, changing, comparing and merging them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jtree/jtree.h"

enum {
	MEMBERS = 3 * JTREE_INDEXED_FROM, /* of an object with an index of their names */
	ROUNDS = 2000,                    /* of random changes */
	LONGEST = 40,                     /* array of those */
};

static int
setup(void **state)
{
	*state = arena_new(SIZE_MAX);
	return 0;
}

static int
teardown(void **state)
{
	arena_free(*state);
	return 0;
}

static struct jtree_node *
tree(struct arena *arena, const char *text)
{
	struct jtree_node *node;
	struct err err = { 0 };

	if (jtree_read(str_from_cstr(text), arena, &node, &err) != STATUS_OK)
		fail_msg("%s: %s", text, err.text);
	return node;
}

static void
assert_text(const struct jtree_node *node, const char *expected)
{
	struct buf text = BUF_INIT(1 << 20);

	assert_int_equal(jtree_write(node, &jtree_dense, 0, &text), STATUS_OK);
	buf_append_byte(&text, 0);
	assert_int_equal(buf_status(&text), STATUS_OK);
	assert_string_equal((const char *)text.ptr, expected);
	buf_release(&text);
}

static struct jtree_node *
member(struct arena *arena, struct jtree_node *object, const char *name)
{
	struct jtree_node *found;

	assert_int_equal(jtree_member(arena, object, str_from_cstr(name), &found), STATUS_OK);
	return found;
}

/* ---- Texts ---- */

static void
texts_are_written_as_they_were_read(void **state)
{
	static const char *const texts[][2] = {
		{ "null", "null" },
		{ " [ true , false ] ", "[true,false]" },
		{ "0", "0" },
		{ "-0", "-0.0" },
		{ "9223372036854775807", "9223372036854775807" },
		{ "-9223372036854775808", "-9223372036854775808" },
		{ "9223372036854775808", "9223372036854775808" },
		{ "18446744073709551615", "18446744073709551615" },
		{ "18446744073709551616", "1.8446744073709552e19" },
		{ "1.0", "1.0" },
		{ "1e2", "100.0" },
		{ "1e16", "1e16" },
		{ "1e-7", "1e-7" },
		{ "1e999", "1.7976931348623157e308" },
		{ "-1e999", "-1.7976931348623157e308" },
		{ "\"\\u00e9\\ud83d\\ude00\\u0000/\\/\"", "\"é😀\\u0000//\"" },
		{ "{\"a\":1,\"b\":{},\"a\":[]}", "{\"a\":[],\"b\":{}}" },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_text(tree(*state, texts[i][0]), texts[i][1]);
}

static void
texts_that_are_none_are_refused(void **state)
{
	static const struct {
		const char *text;
		enum status status;
	} bad[] = {
		{ "", STATUS_JSON_SYNTAX },        { "[1,]", STATUS_JSON_SYNTAX },
		{ "{\"a\"}", STATUS_JSON_SYNTAX }, { "1 2", STATUS_JSON_SYNTAX },
		{ "nan", STATUS_JSON_SYNTAX },     { "\"\xff\"", STATUS_JSON_UTF8 },
	};
	char deep[2 * JTREE_DEPTH + 3];
	struct jtree_node *node;
	struct err err;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err = (struct err){ 0 };
		assert_int_equal(jtree_read(str_from_cstr(bad[i].text), *state, &node, &err),
				 bad[i].status);
		assert_int_not_equal(err.text[0], 0);
	}
	memset(deep, '[', JTREE_DEPTH + 1);
	memset(deep + JTREE_DEPTH + 1, ']', JTREE_DEPTH + 1);
	assert_int_equal(jtree_read(str_of(deep, 2 * JTREE_DEPTH + 2), *state, &node, &err),
			 STATUS_JSON_DEPTH);
	assert_int_equal(jtree_read(str_of(deep + 1, 2 * JTREE_DEPTH), *state, &node, &err),
			 STATUS_OK);
	assert_int_equal(jtree_height(node), JTREE_DEPTH);
}

static void
layouts_have_lines_and_indents(void **state)
{
	const struct jtree_layout layout = { STR("--"), STR("\n"), STR(" ") };
	struct buf text = BUF_INIT(4096);

	assert_int_equal(jtree_write(tree(*state, "{\"a\":[1,{}],\"b\":[]}"), &layout, 1, &text),
			 STATUS_OK);
	buf_append_byte(&text, 0);
	assert_string_equal((const char *)text.ptr,
			    "{\n----\"a\": [\n------1,\n------{}\n----],\n----\"b\": []\n--}");
	buf_release(&text);
}

/* ---- Changes ---- */

static void
members_are_found_added_and_removed_in_objects_of_any_size(void **state)
{
	struct arena *arena = *state;
	struct jtree_node *object = tree(arena, "{}"), *gone[MEMBERS / 2], *node;
	char name[16];

	for (int i = 0; i < MEMBERS; i++) {
		snprintf(name, sizeof(name), "m%d", i);
		assert_null(member(arena, object, name));
		assert_int_equal(jtree_new(arena, JTREE_INT, &node), STATUS_OK);
		node->i = i;
		assert_int_equal(jtree_add(arena, object, arena_printf(arena, "m%d", i), node),
				 STATUS_OK);
		assert_ptr_equal(member(arena, object, name), node);
	}
	assert_int_equal(object->count, MEMBERS);
	for (int i = 0; i < MEMBERS / 2; i++)
		gone[i] = object->children[2 * i];
	assert_int_equal(jtree_remove(gone, MEMBERS / 2), STATUS_OK);
	assert_int_equal(object->count, MEMBERS / 2);
	for (int i = 0; i < MEMBERS; i++) {
		snprintf(name, sizeof(name), "m%d", i);
		node = member(arena, object, name);
		assert_int_equal(node != NULL, i % 2);
		if (node)
			assert_int_equal(node->i, i);
	}
}

/* An array beside plain numbers, changed by the same random steps. */
static void
arrays_are_changed_as_plain_lists_are(void **state)
{
	struct arena *arena = *state;
	struct jtree_node *array = tree(arena, "[]"), *node, *gone[LONGEST];
	int64_t list[LONGEST];
	size_t count = 0, cut;

	srandom(1);
	for (int n = 0; n < ROUNDS; n++) {
		size_t at = count ? (size_t)random() % (count + 1) : 0;

		if (random() % 2 && count < LONGEST) {
			assert_int_equal(jtree_new(arena, JTREE_INT, &node), STATUS_OK);
			node->i = n;
			assert_int_equal(jtree_insert(arena, array, at, &node, 1), STATUS_OK);
			memmove(list + at + 1, list + at, (count - at) * sizeof(*list));
			list[at] = n;
			count++;
		} else if (random() % 2) {
			cut = (size_t)random() % (count - at + 1);
			jtree_cut(array, at, cut);
			memmove(list + at, list + at + cut, (count - at - cut) * sizeof(*list));
			count -= cut;
		} else {
			size_t kept = 0, removed = 0;

			for (size_t i = 0; i < count; i++) {
				if (random() % 4 == 0)
					gone[removed++] = array->children[i];
				else
					list[kept++] = list[i];
			}
			assert_int_equal(jtree_remove(gone, removed), STATUS_OK);
			count = kept;
		}
		assert_int_equal(array->count, count);
		for (size_t i = 0; i < count; i++) {
			assert_int_equal(array->children[i]->i, list[i]);
			assert_ptr_equal(array->children[i]->parent, array);
		}
	}
}

static void
what_is_assigned_takes_the_place(void **state)
{
	struct jtree_node *root = tree(*state, "{\"a\":[1,2],\"b\":3}");
	struct jtree_node *a = member(*state, root, "a");

	jtree_assign(a, tree(*state, "{\"x\":[{}]}"));
	assert_text(root, "{\"a\":{\"x\":[{}]},\"b\":3}");
	assert_ptr_equal(a->parent, root);
	assert_ptr_equal(member(*state, a, "x")->parent, a);
	assert_int_equal(jtree_depth(member(*state, a, "x")), 2);
	assert_int_equal(jtree_height(root), 4);
	assert_int_equal(jtree_height(tree(*state, "1")), 0);
}

static void
copies_share_nothing(void **state)
{
	char text[] = "{\"name\":[\"text\",1.5,null]}";
	struct jtree_node *copy;

	assert_int_equal(jtree_copy(*state, tree(*state, text), &copy), STATUS_OK);
	memset(text, 'x', sizeof(text) - 1);
	assert_text(copy, "{\"name\":[\"text\",1.5,null]}");
	assert_null(copy->parent);
}

/* ---- Comparing and merging ---- */

static void
values_are_equal_if_they_are_of_one_kind(void **state)
{
	static const struct {
		const char *a, *b;
		bool equal;
	} pairs[] = {
		{ "1", "1", true },
		{ "1", "1.0", false },
		{ "18446744073709551615", "18446744073709551615", true },
		{ "18446744073709551615", "-1", false },
		{ "1.5", "1.5", true },
		{ "true", "false", false },
		{ "null", "false", false },
		{ "\"a\"", "\"a\"", true },
		{ "\"a\"", "\"ab\"", false },
		{ "[1,[2]]", "[1,[2]]", true },
		{ "[1,2]", "[2,1]", false },
		{ "[1]", "[1,2]", false },
		{ "{\"a\":1,\"b\":[]}", "{\"b\":[],\"a\":1}", true },
		{ "{\"a\":1}", "{\"b\":1}", false },
		{ "{\"a\":1}", "{\"a\":1,\"b\":1}", false },
		{ "{}", "[]", false },
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		struct jtree_node *a = tree(*state, pairs[i].a), *b = tree(*state, pairs[i].b);
		bool equal;

		for (int turn = 0; turn < 2; turn++) {
			assert_int_equal(jtree_equal(*state, turn ? b : a, turn ? a : b, &equal),
					 STATUS_OK);
			if (equal != pairs[i].equal)
				fail_msg("%s and %s", pairs[i].a, pairs[i].b);
		}
	}
}

/* The examples of RFC 7396, appendix A. */
static void
patches_are_merged_as_the_standard_says(void **state)
{
	static const char *const cases[][3] = {
		{ "{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
		{ "{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}" },
		{ "{\"a\":\"b\"}", "{\"a\":null}", "{}" },
		{ "{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}" },
		{ "{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
		{ "{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}" },
		{ "{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}",
		  "{\"a\":{\"b\":\"d\"}}" },
		{ "{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}" },
		{ "[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]" },
		{ "{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]" },
		{ "{\"a\":\"foo\"}", "null", "null" },
		{ "{\"a\":\"foo\"}", "\"bar\"", "\"bar\"" },
		{ "{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}" },
		{ "[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}" },
		{ "{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct jtree_node *node = tree(*state, cases[i][0]);
		struct jtree_node *patch = tree(*state, cases[i][1]);

		assert_int_equal(jtree_merge(*state, node, patch), STATUS_OK);
		assert_text(node, cases[i][2]);
		assert_text(patch, cases[i][1]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(texts_are_written_as_they_were_read, setup,
						teardown),
		cmocka_unit_test_setup_teardown(texts_that_are_none_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(layouts_have_lines_and_indents, setup, teardown),
		cmocka_unit_test_setup_teardown(
			members_are_found_added_and_removed_in_objects_of_any_size, setup,
			teardown),
		cmocka_unit_test_setup_teardown(arrays_are_changed_as_plain_lists_are, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_is_assigned_takes_the_place, setup, teardown),
		cmocka_unit_test_setup_teardown(copies_share_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(values_are_equal_if_they_are_of_one_kind, setup,
						teardown),
		cmocka_unit_test_setup_teardown(patches_are_merged_as_the_standard_says, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
