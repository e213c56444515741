/* JSONPaths: what they lead to, which are refused, what they read of a tree that is not whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jtree/jsonpath.h"

/* The example that JSONPath was first described with, made shorter. */
static const char *const store =
	"{\"store\":{\"book\":[{\"title\":\"A\",\"price\":8,\"isbn\":\"1\"},"
	"{\"title\":\"B b\",\"price\":12},{\"title\":\"C\",\"price\":8.5,\"tags\":[\"x\",\"y\"]}],"
	"\"open\":true,\"owner\":null},\"max\":10,\"odd name\":{\"q'\\\"\":2},\"m\":[[1,2],[3]]}";

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

	assert_int_equal(jtree_read(str_from_cstr(text), arena, &node, NULL), STATUS_OK);
	return node;
}

static const struct jsonpath *
compile(struct arena *arena, const char *text)
{
	const struct jsonpath *path = NULL;
	struct err err = { 0 };

	if (jsonpath_compile(str_from_cstr(text), arena, &path, &err) != STATUS_OK)
		fail_msg("%s: %s", text, err.text);
	return path;
}

/* What a path leads to, as the text of an array. */
static void
assert_leads_to(struct arena *arena, struct jtree_node *root, const struct jtree_source *source,
		const char *text, const char *expected)
{
	struct buf found = BUF_INIT(1 << 20);
	struct jsonpath_matches m;
	struct err err = { 0 };

	if (jsonpath_find(compile(arena, text), root, source, arena, &m, &err) != STATUS_OK)
		fail_msg("%s: %s", text, err.text);
	buf_append_byte(&found, '[');
	for (size_t i = 0; i < m.count; i++) {
		if (i)
			buf_append_byte(&found, ',');
		assert_int_equal(jtree_write(m.nodes[i], &jtree_dense, 0, &found), STATUS_OK);
	}
	buf_append_cstr(&found, "]");
	buf_append_byte(&found, 0);
	if (strcmp((const char *)found.ptr, expected) != 0)
		fail_msg("%s leads to %s, not %s", text, (const char *)found.ptr, expected);
	buf_release(&found);
}

static void
paths_lead_where_they_say(void **state)
{
	static const char *const paths[][2] = {
		{ "$.max", "[10]" },
		{ " $ . max ", "[10]" },
		{ "$.[\"max\"]", "[10]" },
		{ "$['max','none','max']", "[10,10]" },
		{ "$[\"odd name\"]['q\\'\"']", "[2]" },
		{ "$.max.none", "[]" },
		{ "$.m.none", "[]" },
		{ "$.store[0]", "[]" },
		{ "$.m[0]", "[[1,2]]" },
		{ "$.m[-1]", "[[3]]" },
		{ "$.m[2]", "[]" },
		{ "$.m[-9]", "[[1,2]]" },
		{ "$.m[0,1,0]", "[[1,2],[3],[1,2]]" },
		{ "$.store.book[1:].price", "[12,8.5]" },
		{ "$.store.book[:-1].price", "[8,12]" },
		{ "$.store.book[-2:].price", "[12,8.5]" },
		{ "$.store.book[::2].price", "[8,8.5]" },
		{ "$.store.book[0:9:3].price", "[8]" },
		{ "$.store.book[2:1]", "[]" },
		{ "$.store.book[*].isbn", "[\"1\"]" },
		{ "$.odd.*", "[]" },
		{ "$.m.*", "[[1,2],[3]]" },
		{ "$..price", "[8,12,8.5]" },
		{ "$.m..*", "[[1,2],[3],1,2,3]" },
		{ "$.m..[0]", "[[1,2],1,3]" },
		{ "$..book[1].title", "[\"B b\"]" },
		{ "$.store.book[?(@.isbn)].title", "[\"A\"]" },
		{ "$.store.book[?@.price<10].title", "[\"A\",\"C\"]" },
		{ "$.store.book[?(@.price<=8)].title", "[\"A\"]" },
		{ "$.store.book[?(@.price>8)].title", "[\"B b\",\"C\"]" },
		{ "$.store.book[?(@.price>=$.max)].title", "[\"B b\"]" },
		{ "$.store.book[?(@.price==8.0)].title", "[\"A\"]" },
		{ "$.store.book[?(@.price!=8)].title", "[\"B b\",\"C\"]" },
		{ "$.store.book[?(@.isbn!='1')].title", "[\"B b\",\"C\"]" },
		{ "$.store.book[?(@.title=='A' || @.price>10 && @.title=='x')].price", "[8]" },
		{ "$.store.book[?((@.title=='A' || @.price>10) && @.price>9)].price", "[12]" },
		{ "$.store.book[?(@.title =~ '^[AB]')].price", "[8,12]" },
		{ "$.store.book[?(@.title =~ '(')].price", "[]" },
		{ "$.store.book[?(@.price =~ '8')].price", "[]" },
		{ "$.store.book[?('A' =~ @.title)].price", "[8]" },
		{ "$.store.book[?(@.tags==$.store.book[2].tags)].price", "[8.5]" },
		{ "$.store.book[?(@.tags>$.max)].price", "[]" },
		{ "$.store[?(@==true)]", "[true]" },
		{ "$.store[?(@==null)]", "[null]" },
		{ "$.m[?(@[?(@==3)])]", "[[3]]" },
		{ "$.m[*][?(@ > -1.5 && @ < 2)]", "[1]" },
	};
	struct jtree_node *root = tree(*state, store);

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		assert_leads_to(*state, root, NULL, paths[i][0], paths[i][1]);
}

/* ---- What is refused ---- */

static void
assert_refused(struct arena *arena, const char *text, enum status status, const char *why)
{
	const struct jsonpath *path;
	struct err err = { 0 };

	assert_int_equal(jsonpath_compile(str_from_cstr(text), arena, &path, &err), status);
	if (!strstr(err.text, why))
		fail_msg("%s: %s", text, err.text);
}

static void
paths_that_are_none_are_refused_where_they_go_wrong(void **state)
{
	static const char *const bad[][2] = {
		{ "", "no $ at byte 1" },
		{ "a", "no $ at byte 1" },
		{ "$.", "a name is missing at byte 3" },
		{ "$..", "a name is missing at byte 4" },
		{ "$[", "a number is missing" },
		{ "$['a'", "a bracket does not end at byte 6" },
		{ "$['a", "a quote does not end at byte 3" },
		{ "$['a\\'", "a quote does not end at byte 3" },
		{ "$['a',]", "a name in quotes is missing" },
		{ "$['a',1]", "a name in quotes is missing" },
		{ "$[1,]", "a number is missing" },
		{ "$[99999999999999999999]", "too large" },
		{ "$[1:2:0]", "no positive number" },
		{ "$[1:2:-1]", "no positive number" },
		{ "$[?(@.a=1)]", "a bracket does not end" },
		{ "$[?(@.a>)]", "a filter cannot be read" },
		{ "$[?(@.a>1.)]", "a number cannot be read" },
		{ "$[?(@.a>nul)]", "a filter cannot be read" },
		{ "$[?(@.a>trues)]", "a filter cannot be read" },
		{ "$[?(@.a && )]", "a filter cannot be read" },
		{ "$.a b", "something that is no step at byte 5" },
		{ "$.\xc3\xa9", "a name is missing" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_refused(*state, bad[i][0], STATUS_INVALID, bad[i][1]);
}

/* `count` times the part, behind "$". */
static const char *
repeated(struct arena *arena, const char *part, int count, const char *end)
{
	struct buf text = BUF_INIT(1 << 20);
	struct str ret;

	buf_append_byte(&text, '$');
	while (count-- > 0)
		buf_append_cstr(&text, part);
	buf_append_cstr(&text, end);
	buf_append_byte(&text, 0);
	assert_int_equal(buf_copy(&text, arena, &ret), STATUS_OK);
	buf_release(&text);
	return ret.ptr;
}

static void
limits_of_paths_hold(void **state)
{
	struct jtree_node *root = tree(*state, "[1]");

	assert_leads_to(*state, root, NULL, repeated(*state, ".a", JSONPATH_STEPS, ""), "[]");
	assert_refused(*state, repeated(*state, ".a", JSONPATH_STEPS + 1, ""), STATUS_LIMIT,
		       "256 steps (JSONPATH_STEPS)");
	assert_refused(*state, repeated(*state, "[?(@", JSONPATH_NESTED, ""), STATUS_INVALID,
		       "does not end");
	assert_refused(*state, repeated(*state, "[?(@", JSONPATH_NESTED + 1, ""), STATUS_LIMIT,
		       "8 filters inside each other (JSONPATH_NESTED)");
	assert_refused(*state, repeated(*state, "[?((((((((((((((((((((((((((((((((", 1, ""),
		       STATUS_INVALID, "a filter cannot be read");
	assert_refused(*state, repeated(*state, "[?(((((((((((((((((((((((((((((((((", 1, ""),
		       STATUS_LIMIT, "32 brackets inside each other (JSONPATH_BRACKETS)");
	assert_leads_to(*state, root, NULL, repeated(*state, " ", JSONPATH_BYTES - 1, ""), "[[1]]");
	assert_refused(*state, repeated(*state, " ", JSONPATH_BYTES, ""), STATUS_LIMIT,
		       "65536 bytes (JSONPATH_BYTES)");
}

static void
paths_that_ask_for_too_much_end(void **state)
{
	struct jtree_node *root = tree(*state, "[]"), *node;
	struct jsonpath_matches m;
	struct err err = { 0 };

	/* Sixty arrays inside each other: C(60, 6) ways to go down six steps. */
	for (int i = 0; i < 60; i++) {
		struct jtree_node *outer = tree(*state, "[]");

		node = root;
		assert_int_equal(jtree_insert(*state, outer, 0, &node, 1), STATUS_OK);
		root = outer;
	}
	assert_int_equal(
		jsonpath_find(compile(*state, "$..*..*..*..*..*..*"), root, NULL, *state, &m, &err),
		STATUS_LIMIT);
	assert_non_null(strstr(err.text, "JSONPATH_MATCHES"));
}

/* ---- What a path is ---- */

static void
single_paths_are_told_and_have_a_parent(void **state)
{
	static const struct {
		const char *path;
		bool single, has_parent;
		const char *name; /* of the last step; NULL: it is an element, or there is none */
	} paths[] = {
		{ "$", true, false, NULL },
		{ "$.a", true, true, "a" },
		{ "$.a[1]['b c']", true, true, "b c" },
		{ "$.a[-1]", true, true, NULL },
		{ "$.a[1,2]", false, false, NULL },
		{ "$['a','b']", false, false, NULL },
		{ "$.*", false, false, NULL },
		{ "$..a", false, false, NULL },
		{ "$.*.a", false, true, "a" },
		{ "$.a[1:2]", false, false, NULL },
		{ "$[?(@)]", false, false, NULL },
	};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		const struct jsonpath *path = compile(*state, paths[i].path), *parent = NULL;
		struct str name = STR("?");
		bool fits;

		assert_int_equal(jsonpath_is_single(path), paths[i].single);
		assert_int_equal(jsonpath_is_root(path), !strcmp(paths[i].path, "$"));
		assert_int_equal(jsonpath_parent(path, *state, &parent, &name, &fits), STATUS_OK);
		assert_int_equal(fits, paths[i].has_parent);
		if (!fits)
			continue;
		assert_non_null(parent);
		if (paths[i].name)
			assert_true(str_eq(name, str_from_cstr(paths[i].name)));
		else
			assert_null(name.ptr);
	}
}

/* ---- Trees that are not whole ---- */

/* A tree of which no container is in memory but those that were asked for. */
struct lazy {
	struct arena *arena;
	struct jtree_node
		*full; /* the whole tree; nodes that stand for its nodes have them in `next` */
	int members, elements, loads;
};

static struct jtree_node *
stands_for(struct lazy *l, struct jtree_node *full)
{
	struct jtree_node *node;

	assert_int_equal(jtree_new(l->arena, full->kind, &node), STATUS_OK);
	if (!jtree_is_container(full)) {
		*node = *full;
		return node;
	}
	node->count = full->count;
	node->whole = false;
	node->next = (int64_t)(intptr_t)full;
	return node;
}

static struct jtree_node *
full_of(const struct jtree_node *node)
{
	return (struct jtree_node *)(intptr_t)node->next;
}

static enum status
lazy_member(void *arg, struct jtree_node *object, struct str name, struct jtree_node **ret)
{
	struct lazy *l = arg;
	struct jtree_node *found;

	assert_false(object->whole);
	l->members++;
	TRY(jtree_member(l->arena, full_of(object), name, &found));
	*ret = found ? stands_for(l, found) : NULL;
	return STATUS_OK;
}

static enum status
lazy_element(void *arg, struct jtree_node *array, uint64_t index, struct jtree_node **ret)
{
	struct lazy *l = arg;

	assert_false(array->whole);
	assert_true(index < array->count);
	l->elements++;
	*ret = stands_for(l, full_of(array)->children[index]);
	return STATUS_OK;
}

static enum status
lazy_load(void *arg, struct jtree_node *node)
{
	struct lazy *l = arg;
	struct jtree_node *copy;

	assert_false(node->whole);
	l->loads++;
	TRY(jtree_copy(l->arena, full_of(node), &copy));
	jtree_assign(node, copy);
	return STATUS_OK;
}

static void
only_what_a_path_needs_is_read(void **state)
{
	static const struct {
		const char *path, *found;
		int members, elements, loads;
	} reads[] = {
		{ "$.max", "[10]", 1, 0, 0 },
		{ "$.none.at.all", "[]", 1, 0, 0 },
		{ "$.store.book[1].price", "[12]", 3, 1, 0 },
		{ "$.m[-1][0]", "[3]", 1, 2, 0 },
		{ "$.store.book[9]", "[]", 2, 0, 0 },
		{ "$.m[*][0]", "[1,3]", 1, 0, 1 },
		{ "$.m[0,1][0]", "[1,3]", 1, 0, 1 },
		{ "$.m[1:][0]", "[3]", 1, 0, 1 },
		{ "$['max','none']", "[10]", 0, 0, 1 },
		{ "$..price", "[8,12,8.5]", 0, 0, 1 },
		{ "$.store.book[?(@.price>$.max)].title", "[\"B b\"]", 0, 0, 1 },
		{ "$.m[0][?(@>1)]", "[2]", 1, 1, 1 },
	};

	for (size_t i = 0; i < sizeof(reads) / sizeof(reads[0]); i++) {
		struct lazy l = { .arena = *state, .full = tree(*state, store) };
		const struct jtree_source source = { lazy_member, lazy_element, lazy_load, &l };

		assert_leads_to(*state, stands_for(&l, l.full), &source, reads[i].path,
				reads[i].found);
		if (l.members != reads[i].members || l.elements != reads[i].elements ||
		    l.loads != reads[i].loads)
			fail_msg("%s: %d members, %d elements, %d loads", reads[i].path, l.members,
				 l.elements, l.loads);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(paths_lead_where_they_say, setup, teardown),
		cmocka_unit_test_setup_teardown(paths_that_are_none_are_refused_where_they_go_wrong,
						setup, teardown),
		cmocka_unit_test_setup_teardown(limits_of_paths_hold, setup, teardown),
		cmocka_unit_test_setup_teardown(paths_that_ask_for_too_much_end, setup, teardown),
		cmocka_unit_test_setup_teardown(single_paths_are_told_and_have_a_parent, setup,
						teardown),
		cmocka_unit_test_setup_teardown(only_what_a_path_needs_is_read, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
