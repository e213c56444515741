/*
 * Documents: random changes of one that lies in leaves, of one that is a text, and of a tree in
 * memory have the same outcome, and what lies in the store fits together.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "items_model.h"
#include "jtree/jsonpath.h"
#include "model/timed/items/json.h"
#include "store.h"

enum {
	ROUNDS = 40,  /* documents */
	CHANGES = 40, /* of each, some of them in one transaction */
	PATH_STEPS = 4,
	TEXT_BYTES = 1 << 20,
	/* 12 bytes for each step and on either side of all; a byte of a name may take two. */
	NAME_MOST = (KV_LIMIT_KEY_BYTES - 36) / 2,
	PAD_BYTES = TIMED_JSON_PACKED_BYTES + 1, /* by which a document lies in leaves */
};

enum change_kind {
	ASSIGN,
	ADD,
	INSERT,
	CUT,
	REMOVE,
	MERGE,
	CHANGE_KINDS,
};

/* A change of what a path leads to. */
struct change {
	enum change_kind kind;
	struct str path;
	struct str value; /* as JSON */
	struct str name;
	uint64_t at, count;
};

/* ---- Random changes ---- */

static struct str
random_value(struct rand_seq *r, struct arena *arena, unsigned depth)
{
	static const char *const scalars[] = {
		"null", "true", "-3", "18446744073709551615", "2.5", "\"\"", "\"text\\u0000\""
	};
	unsigned kind = (unsigned)rand_seq_below(r, depth > 2 ? 7 : 11);
	struct str a, b;

	if (kind < 7)
		return str_from_cstr(scalars[kind]);
	if (kind == 7)
		return rand_seq_below(r, 2) ? STR("[]") : STR("{}");
	a = random_value(r, arena, depth + 1);
	b = random_value(r, arena, depth + 1);
	return arena_printf(arena, kind < 10 ? "[%.*s,%.*s]" : "{\"a\":%.*s,\"b\\u0000\":%.*s}",
			    STR_ARG(a), STR_ARG(b));
}

static struct change
random_change(struct rand_seq *r, struct arena *arena)
{
	static const struct str steps[] = { STR(".a"),  STR(".a"),   STR(".c"),     STR("[0]"),
					    STR("[1]"), STR("[-1]"), STR("['b\0']") };
	struct change c = { .kind = (enum change_kind)rand_seq_below(r, CHANGE_KINDS) };
	size_t count = rand_seq_below(r, PATH_STEPS);

	c.path = STR("$.d");
	for (size_t i = 0; i < count; i++) {
		struct str step = steps[rand_seq_below(r, sizeof(steps) / sizeof(steps[0]))];
		char *text = arena_bytes(arena, c.path.len + step.len);

		memcpy(text, c.path.ptr, c.path.len);
		memcpy(text + c.path.len, step.ptr, step.len);
		c.path = str_of(text, c.path.len + step.len);
	}
	c.value = random_value(r, arena, 0);
	c.name = rand_seq_below(r, 2) ? STR("a") : STR("c");
	c.at = rand_seq_below(r, 8);
	c.count = rand_seq_below(r, 4);
	return c;
}

/* ---- Changing a document ---- */

static enum status
find_one(const struct change *c, struct jtree_node *root, const struct jtree_source *source,
	 struct arena *arena, struct jtree_node **ret)
{
	const struct jsonpath *path;
	struct jsonpath_matches m;

	*ret = NULL;
	TRY(jsonpath_compile(c->path, arena, &path, NULL));
	TRY(jsonpath_find(path, root, source, arena, &m, NULL));
	*ret = m.count ? m.nodes[0] : NULL;
	return STATUS_OK;
}

/* What a change that does not apply to this node becomes. */
static enum change_kind
change_for(const struct change *c, const struct jtree_node *node)
{
	if (c->kind == ADD && node->kind != JTREE_OBJECT)
		return ASSIGN;
	if ((c->kind == INSERT || c->kind == CUT) && node->kind != JTREE_ARRAY)
		return ASSIGN;
	return c->kind == REMOVE && !node->parent->parent ? ASSIGN : c->kind;
}

static uint64_t
cut_count(const struct change *c, uint64_t at, const struct jtree_node *array)
{
	return c->count < array->count - at ? c->count : array->count - at;
}

static enum status
change_stored(const struct change *c, struct timed_json *j, struct arena *arena)
{
	struct jtree_node *node, *value, *member;
	uint64_t at;

	TRY(find_one(c, j->root, &j->source, arena, &node));
	if (!node)
		return STATUS_OK;
	TRY(jtree_read(c->value, arena, &value, NULL));
	at = node->kind == JTREE_ARRAY ? c->at % (node->count + 1) : 0;
	switch (change_for(c, node)) {
	case ADD:
		TRY(timed_json_member(j, node, c->name, &member));
		return member ? timed_json_assign(j, member, value)
			      : timed_json_add(j, node, c->name, value);
	case INSERT:
		return timed_json_insert(j, node, at, &value, 1);
	case CUT:
		return timed_json_cut(j, node, at, cut_count(c, at, node));
	case REMOVE:
		return timed_json_remove(j, &node, 1);
	case MERGE:
		return timed_json_merge(j, node, value);
	case ASSIGN:
	case CHANGE_KINDS:
		break;
	}
	return timed_json_assign(j, node, value);
}

static enum status
change_tree(const struct change *c, struct jtree_node *root, struct arena *arena)
{
	struct jtree_node *node, *value, *member;
	uint64_t at;

	TRY(find_one(c, root, NULL, arena, &node));
	if (!node)
		return STATUS_OK;
	TRY(jtree_read(c->value, arena, &value, NULL));
	at = node->kind == JTREE_ARRAY ? c->at % (node->count + 1) : 0;
	switch (change_for(c, node)) {
	case ADD:
		TRY(jtree_member(arena, node, c->name, &member));
		if (!member)
			return jtree_add(arena, node, c->name, value);
		jtree_assign(member, value);
		return STATUS_OK;
	case INSERT:
		return jtree_insert(arena, node, at, &value, 1);
	case CUT:
		jtree_cut(node, at, cut_count(c, at, node));
		return STATUS_OK;
	case REMOVE:
		return jtree_remove(&node, 1);
	case MERGE:
		return jtree_merge(arena, node, value);
	case ASSIGN:
	case CHANGE_KINDS:
		break;
	}
	jtree_assign(node, value);
	return STATUS_OK;
}

/* ---- In the store ---- */

struct step {
	struct str key;
	const struct change *changes;
	size_t count;
	struct str text;     /* to be set; what the document has at "d" */
	struct arena *arena; /* that has it */
};

static enum status
set_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct step *s = arg;
	struct timed_item item;
	struct jtree_node *root;

	TRY(timed_item_open(t, s->key, arena, &item));
	TRY(jtree_read(s->text, arena, &root, NULL));
	return timed_json_set(&item, root);
}

static enum status
change_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct step *s = arg;
	struct timed_item item;
	struct timed_json j;

	TRY(timed_item_open(t, s->key, arena, &item));
	TRY(timed_json_open(&item, &j));
	for (size_t i = 0; i < s->count; i++)
		TRY(change_stored(&s->changes[i], &j, arena));
	return timed_json_finish(&j);
}

static enum status
read_run(struct timed *t, struct arena *arena, void *arg)
{
	struct buf text = BUF_INIT(TEXT_BYTES);
	struct jtree_node *node = NULL;
	struct step *s = arg;
	struct timed_item item;
	struct timed_json j;
	enum status status;

	TRY(timed_item_open(t, s->key, arena, &item));
	TRY(timed_json_open(&item, &j));
	assert_true(j.leaves || str_eq(s->key, STR("text")));
	TRY(timed_json_member(&j, j.root, STR("d"), &node));
	assert_non_null(node);
	TRY(timed_json_load(&j, node));
	status = jtree_write(node, &jtree_dense, 0, &text);
	if (status == STATUS_OK)
		status = buf_copy(&text, s->arena, &s->text);
	buf_release(&text);
	return status;
}

static void
assert_same(struct items *f, const char *key, struct jtree_node *tree, struct arena *arena)
{
	struct step s = { .key = str_from_cstr(key), .arena = arena };
	struct buf expected = BUF_INIT(TEXT_BYTES);

	items_must(f, read_run, &s);
	assert_int_equal(jtree_write(tree, &jtree_dense, 0, &expected), STATUS_OK);
	if (!str_eq(s.text, buf_str(&expected)))
		fail_msg("%s: %.*s\nnot %.*s", key, STR_ARG(s.text), STR_ARG(buf_str(&expected)));
	buf_release(&expected);
}

/* ---- As another one has lain ---- */

static enum status
pair_put(void *arg, const struct timed_json_pair *pair)
{
	return timed_json_put_pair(arg, pair);
}

/* Writes "copy" pair by pair, in an arena of its own, since each pair takes back what it took. */
static enum status
copy_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct step *s = arg;
	struct arena *other = arena_new(SIZE_MAX);
	struct timed_item from, to;
	enum status status;

	assert_non_null(other);
	status = timed_item_open(t, s->key, arena, &from);
	if (status == STATUS_OK)
		status = timed_item_open(t, STR("copy"), other, &to);
	if (status == STATUS_OK)
		status = timed_item_delete(&to);
	if (status == STATUS_OK)
		status = timed_json_each(&from, pair_put, &to);
	arena_free(other);
	return status;
}

static void
random_changes_agree(void **state)
{
	struct arena *arena = arena_new(SIZE_MAX);
	struct items *f = *state;
	struct rand_seq r = { test_seed() };
	int rounds = test_rounds(ROUNDS);

	while (rounds-- > 0) {
		struct arena_mark mark = arena_mark(arena);
		struct str first = random_value(&r, arena, 0);
		struct change changes[CHANGES];
		struct jtree_node *root, *d;
		struct step s;

		s = (struct step){ .key = STR("text"),
				   .text = arena_printf(arena, "{\"d\":%.*s}", STR_ARG(first)) };
		items_must(f, set_run, &s);
		assert_int_equal(jtree_read(s.text, arena, &root, NULL), STATUS_OK);
		s = (struct step){ .key = STR("leaves"),
				   .text = arena_printf(arena, "{\"pad\":\"%0*d\",\"d\":%.*s}",
							PAD_BYTES, 0, STR_ARG(first)) };
		items_must(f, set_run, &s);
		for (size_t i = 0; i < CHANGES; i++)
			changes[i] = random_change(&r, arena);
		for (size_t from = 0, count; from < CHANGES; from += count) {
			count = 1 + rand_seq_below(&r, 4);
			if (count > CHANGES - from)
				count = CHANGES - from;
			for (size_t i = 0; i < count; i++)
				assert_int_equal(change_tree(&changes[from + i], root, arena),
						 STATUS_OK);
			assert_int_equal(jtree_member(arena, root, STR("d"), &d), STATUS_OK);
			s = (struct step){ .key = STR("text"),
					   .changes = changes + from,
					   .count = count };
			items_must(f, change_run, &s);
			assert_same(f, "text", d, arena);
			s.key = STR("leaves");
			items_must(f, change_run, &s);
			assert_same(f, "leaves", d, arena);
		}
		items_must(f, copy_run, &s);
		assert_same(f, "copy", d, arena);
		arena_reset(arena, mark);
	}
	items_verify(f);
	arena_free(arena);
}

/* As many containers as there may be inside each other, and within them a text in pieces. */
static void
the_deepest_document_is_kept(void **state)
{
	struct arena *arena = arena_new(SIZE_MAX);
	struct items *f = *state;
	char open[JTREE_DEPTH], close[JTREE_DEPTH];
	struct jtree_node *root, *d;
	struct step s = { .key = STR("leaves") };

	memset(open, '[', sizeof(open));
	memset(close, ']', sizeof(close));
	s.text = arena_printf(arena, "{\"d\":%.*s\"%0*d\"%.*s}", JTREE_DEPTH - 1, open,
			      TIMED_JSON_PIECE_BYTES + 1, 0, JTREE_DEPTH - 1, close);
	items_must(f, set_run, &s);
	assert_int_equal(jtree_read(s.text, arena, &root, NULL), STATUS_OK);
	assert_int_equal(jtree_member(arena, root, STR("d"), &d), STATUS_OK);
	assert_same(f, "leaves", d, arena);
	items_must(f, copy_run, &s);
	assert_same(f, "copy", d, arena);
	items_verify(f);
	arena_free(arena);
}

static const char *
repeated(struct arena *arena, char c, size_t bytes)
{
	char *text = arena_bytes(arena, bytes + 1);

	memset(text, c, bytes);
	text[bytes] = '\0';
	return text;
}

struct fitting {
	size_t name_bytes;
	bool near, far, both;
};

/* Whether a member's value fits into "e", into what has the long name, and into both. */
static enum status
fit_run(struct timed *t, struct arena *arena, void *arg)
{
	char name[TIMED_JSON_PATH_BYTES];
	struct jtree_node *nodes[2], *value;
	struct fitting *g = arg;
	struct timed_item item;
	struct timed_json j;

	memset(name, 'n', g->name_bytes);
	TRY(timed_item_open(t, STR("leaves"), arena, &item));
	TRY(timed_json_open(&item, &j));
	assert_true(j.leaves);
	TRY(timed_json_member(&j, j.root, str_of(name, g->name_bytes), &nodes[0]));
	TRY(timed_json_member(&j, j.root, STR("e"), &nodes[1]));
	assert_true(nodes[0] && nodes[1]);
	TRY(jtree_read(STR("1"), arena, &value, NULL));
	TRY(timed_json_fits(&j, nodes, 1, str_of(name, g->name_bytes), value, &g->far));
	TRY(timed_json_fits(&j, nodes + 1, 1, str_of(name, g->name_bytes), value, &g->near));
	return timed_json_fits(&j, nodes, 2, str_of(name, g->name_bytes), value, &g->both);
}

static void
what_fits_into_one_node_need_not_fit_into_all(void **state)
{
	struct fitting g = { .name_bytes = TIMED_JSON_PATH_BYTES / 3 };
	struct arena *arena = arena_new(SIZE_MAX);
	struct items *f = *state;
	struct step s = { .key = STR("leaves") };

	s.text = arena_printf(arena, "{\"pad\":\"%0*d\",\"%s\":{},\"e\":{}}", PAD_BYTES, 0,
			      repeated(arena, 'n', g.name_bytes));
	items_must(f, set_run, &s);
	items_must(f, fit_run, &g);
	assert_true(g.near);
	assert_false(g.far || g.both);
	arena_free(arena);
}

/* Names that no leaf has room for make a document a text in chunks. */
static void
a_text_of_whole_chunks_is_sound(void **state)
{
	struct arena *arena = arena_new(SIZE_MAX);
	struct items *f = *state;
	const char *name = repeated(arena, 'n', TIMED_JSON_PATH_BYTES);
	struct step s = { .key = STR("text") };

	for (int bytes = 2 * TIMED_CHUNK_BYTES - 1; bytes <= 2 * TIMED_CHUNK_BYTES + 1; bytes++) {
		int rest = bytes - (int)strlen("{'':''}") - TIMED_JSON_PATH_BYTES;

		s.text = arena_printf(arena, "{\"%s\":\"%0*d\"}", name, rest, 0);
		assert_int_equal(s.text.len, bytes);
		items_must(f, set_run, &s);
		items_verify(f);
	}
	arena_free(arena);
}

/* A part of a text that is put at its place in "put". */
struct part {
	uint64_t offset;
	struct str bytes;
	bool anew; /* the item goes first */
};

static enum status
part_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct part *p = arg;
	struct timed_item item;

	TRY(timed_item_open(t, STR("put"), arena, &item));
	if (p->anew)
		TRY(timed_item_delete(&item));
	return timed_json_put_text(&item, p->offset, p->bytes);
}

static void
put_is(struct items *f, uint64_t offset, struct str bytes, enum status expected)
{
	struct part p = { .offset = offset, .bytes = bytes };

	assert_int_equal(items_try(f, "0", part_run, &p), expected);
}

/* Over what is there, as if there were nothing. */
static void
put_anew_is(struct items *f, struct str bytes, enum status expected)
{
	struct part p = { .bytes = bytes, .anew = true };

	assert_int_equal(items_try(f, "0", part_run, &p), expected);
}

static enum status
put_length_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_item item;
	struct str *text = arg;
	struct str got;

	TRY(timed_item_open(t, STR("put"), arena, &item));
	assert_int_equal(item.length, text->len);
	TRY(timed_json_text(&item, 0, text->len, &got));
	assert_true(str_eq(got, *text));
	return STATUS_OK;
}

/* A short text is put as a whole, and has to be one; parts of a long one follow each other. */
static void
a_text_is_put_in_parts_that_follow_each_other(void **state)
{
	struct arena *arena = arena_new(SIZE_MAX);
	struct items *f = *state;
	struct str packed = arena_printf(arena, "\"%0*d\"", TIMED_JSON_PACKED_BYTES - 2, 0);
	struct str wrong = arena_printf(arena, "\"%0*d", TIMED_JSON_PACKED_BYTES - 1, 0);
	struct str name = str_from_cstr(repeated(arena, 'n', TIMED_JSON_PATH_BYTES));
	struct str text = arena_printf(arena, "{\"%.*s\":\"%0*d\"}", STR_ARG(name),
				       2 * TIMED_CHUNK_BYTES, 0);
	struct str large = str_from_cstr(repeated(arena, 'x', TIMED_WRITE_BYTES + 1));
	size_t last;

	put_is(f, 0, STR(""), STATUS_INVALID);
	put_is(f, 1, STR("1"), STATUS_INVALID);
	put_is(f, 0, wrong, STATUS_INVALID);
	put_is(f, 0, STR("1 "), STATUS_INVALID);
	put_is(f, 0, large, STATUS_INVALID);
	put_is(f, 0, packed, STATUS_OK);
	items_verify(f);
	/* It has no body, in which more could follow. */
	put_is(f, packed.len, STR("1"), STATUS_INVALID);
	/* One that is longer is not looked at. */
	put_anew_is(f, str_from_cstr(repeated(arena, 'x', TIMED_JSON_PACKED_BYTES + 1)), STATUS_OK);
	put_anew_is(f, str_of(text.ptr, TIMED_CHUNK_BYTES + 7), STATUS_OK);
	put_is(f, TIMED_CHUNK_BYTES + 6, STR("x"), STATUS_INVALID);
	put_is(f, TIMED_CHUNK_BYTES + 8, STR("x"), STATUS_INVALID);
	put_is(f, TIMED_CHUNK_BYTES + 7,
	       str_of(large.ptr, TIMED_WRITE_BYTES - TIMED_CHUNK_BYTES - 6), STATUS_INVALID);
	last = text.len - 10;
	put_is(f, TIMED_CHUNK_BYTES + 7,
	       str_of(text.ptr + TIMED_CHUNK_BYTES + 7, last - TIMED_CHUNK_BYTES - 7), STATUS_OK);
	/* A part that is short is no document of its own. */
	put_is(f, last, str_skip(text, last), STATUS_OK);
	items_must(f, put_length_run, &text);
	items_verify(f);
	put_anew_is(f, str_of(large.ptr, TIMED_WRITE_BYTES), STATUS_OK);
	put_anew_is(f, STR("1"), STATUS_OK);
	items_sweep(f);
	items_verify(f);
	arena_free(arena);
}

/* A leaf that is put at the end of so many steps, each the first element or a member's name. */
struct way {
	size_t steps;
	size_t name_bytes; /* 0: elements */
};

static enum status
way_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_json_step steps[JTREE_DEPTH + 1] = { 0 };
	const struct way *w = arg;
	const struct timed_json_pair pair = { .steps = steps,
					      .count = w->steps,
					      .leaf = { .form = TIMED_JSON_SCALAR } };
	struct timed_item item;

	for (size_t i = 0; i < w->steps; i++) {
		steps[i].element = !w->name_bytes;
		steps[i].name = str_of(repeated(arena, 'n', w->name_bytes), w->name_bytes);
	}
	TRY(timed_item_open(t, STR("way"), arena, &item));
	return timed_json_put_pair(&item, &pair);
}

static void
a_way_to_a_leaf_has_a_depth_and_a_length(void **state)
{
	static const struct {
		struct way way;
		enum status expected;
	} cases[] = {
		{ { JTREE_DEPTH, 0 }, STATUS_OK },
		{ { JTREE_DEPTH + 1, 0 }, STATUS_INVALID },
		{ { JTREE_DEPTH + 1, 1 }, STATUS_INVALID },
		{ { 1, NAME_MOST }, STATUS_OK },
		{ { 1, NAME_MOST + 1 }, STATUS_INVALID },
		{ { 2, (NAME_MOST - 6) / 2 }, STATUS_OK },
		{ { 2, (NAME_MOST - 6) / 2 + 1 }, STATUS_INVALID },
	};
	struct items *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct way way = cases[i].way;
		enum status status = items_try(f, "0", way_run, &way);

		if (status != cases[i].expected)
			fail_msg("%zu steps of %zu bytes: %s", way.steps, way.name_bytes,
				 status_name(status));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(random_changes_agree, items_setup, items_teardown),
		cmocka_unit_test_setup_teardown(the_deepest_document_is_kept, items_setup,
						items_teardown),
		cmocka_unit_test_setup_teardown(what_fits_into_one_node_need_not_fit_into_all,
						items_setup, items_teardown),
		cmocka_unit_test_setup_teardown(a_text_of_whole_chunks_is_sound, items_setup,
						items_teardown),
		cmocka_unit_test_setup_teardown(a_way_to_a_leaf_has_a_depth_and_a_length,
						items_setup, items_teardown),
		cmocka_unit_test_setup_teardown(a_text_is_put_in_parts_that_follow_each_other,
						items_setup, items_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
