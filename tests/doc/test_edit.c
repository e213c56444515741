#include "doc/edit.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rand.h"
#include "doc_test.h"
#include "kv/tuple.h"

/* The document's root key is (1, "doc"). */
#define ROOT                                                                                       \
	"\x15\x01\x02"                                                                             \
	"doc\0"

enum {
	OPERATIONS = 6000,
	PATH_STEPS = 4,
	CHILDREN = 8,
};

struct fixture {
	struct kv_store *store;
	struct kv_tx *tx;
	struct arena *arena;
	char dir[64];
	struct kv_tx_stats before; /* the last operation */
	struct kv_tx_stats after;
};

static void
begin(struct fixture *f)
{
	kv_tx_free(f->tx);
	assert_int_equal(kv_begin(f->store, KV_TX_READ_WRITE, &f->tx), STATUS_OK);
}

static int
open_store(void **state)
{
	struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = mem_zalloc(sizeof(*f));
	char url[96];
	struct err err = { 0 };

	assert_non_null(f);
	snprintf(f->dir, sizeof(f->dir), "/tmp/frond-edit-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(url, sizeof(url), "embedded:%s", f->dir);
	if (kv_open(url, &options, &f->store, &err) != STATUS_OK)
		fail_msg("%s", err.text);
	f->arena = arena_new(TEST_MAX_BYTES);
	assert_non_null(f->arena);
	begin(f);
	*state = f;
	return 0;
}

static int
close_store(void **state)
{
	struct fixture *f = *state;
	char command[96];

	kv_tx_free(f->tx);
	kv_close(f->store);
	arena_free(f->arena);
	snprintf(command, sizeof(command), "rm -r %s", f->dir);
	assert_int_equal(system(command), 0);
	mem_free(f);
	return 0;
}

/* ---- Documents as text ---- */

/* The document's leaves, and those of others beside it that nothing may touch. */
static void
put_document(struct fixture *f, const char *text)
{
	struct doc doc = explode_or_fail(str_from_cstr(text), f->arena);

	assert_int_equal(doc_clear(f->tx, STR(ROOT)), STATUS_OK);
	assert_int_equal(kv_set(f->tx, STR(ROOT), STR("\x15\x01")), STATUS_OK);
	assert_int_equal(doc_write(f->tx, STR(ROOT), doc.leaves, doc.count), STATUS_OK);
	assert_int_equal(kv_set(f->tx,
				STR("\x15\x01\x02"
				    "doa\0\x02y\0"),
				STR("\x00")),
			 STATUS_OK);
	assert_int_equal(kv_set(f->tx,
				STR("\x15\x01\x02"
				    "doc\0\xff\x02y\0"),
				STR("\x00")),
			 STATUS_OK);
}

static void
assert_document(struct fixture *f, const char *expected)
{
	const struct doc_place place = { .key = STR(ROOT) };
	const struct doc_pointer whole = { NULL, 0 };
	struct buf text = BUF_INIT(TEST_MAX_BYTES);
	struct err err = { 0 };

	if (doc_read_pointer(f->tx, place, &whole, KV_SNAPSHOT, f->arena, &text, &err) != STATUS_OK)
		fail_msg("%s: %s", expected, err.text);
	if (!str_eq(buf_str(&text), str_from_cstr(expected)))
		fail_msg("%.*s, should be %s", STR_ARG(buf_str(&text)), expected);
	buf_release(&text);
}

/* The path that a text like /a/0/b draws, digits being positions. */
static struct str
path_of(struct fixture *f, const char *drawn)
{
	struct buf path = BUF_INIT(KV_LIMIT_KEY_BYTES);
	struct doc_pointer p;
	struct str copy;
	uint64_t n;

	assert_int_equal(doc_pointer_parse(str_from_cstr(drawn), f->arena, &p, NULL), STATUS_OK);
	for (size_t i = 0; i < p.count; i++) {
		if (str_to_u64(p.tokens[i], &n))
			tuple_put_u64(&path, n);
		else
			tuple_put_str(&path, p.tokens[i]);
	}
	copy = arena_dup(f->arena, buf_str(&path));
	buf_release(&path);
	return copy;
}

static enum status
set(struct fixture *f, const char *path, const char *value, enum doc_set_mode mode)
{
	struct doc doc;
	enum status status;

	assert_int_equal(
		doc_explode_value_text(str_from_cstr(value), f->arena, &test_limits, &doc, NULL),
		STATUS_OK);
	f->before = kv_tx_stats(f->tx);
	status = doc_set(f->tx, STR(ROOT), path_of(f, path), doc.leaves, doc.count, mode, f->arena,
			 NULL);
	f->after = kv_tx_stats(f->tx);
	return status;
}

static enum status
unset(struct fixture *f, const char *path, bool *ret_found)
{
	enum status status;

	f->before = kv_tx_stats(f->tx);
	status = doc_unset(f->tx, STR(ROOT), path_of(f, path), f->arena, ret_found, NULL);
	f->after = kv_tx_stats(f->tx);
	return status;
}

/* What the last operation has read and written. */
static void
assert_cost(struct fixture *f, uint64_t reads, uint64_t keys, uint64_t trips, uint64_t sets,
	    uint64_t clears)
{
	assert_int_equal(f->after.reads - f->before.reads, reads);
	assert_int_equal(f->after.keys_read - f->before.keys_read, keys);
	assert_int_equal(f->after.round_trips - f->before.round_trips, trips);
	assert_int_equal(f->after.sets - f->before.sets, sets);
	assert_int_equal(f->after.clears - f->before.clears, clears);
}

static void
check_set(struct fixture *f, const char *before, const char *path, const char *value,
	  const char *after)
{
	put_document(f, before);
	assert_int_equal(set(f, path, value, DOC_SET_HERE), STATUS_OK);
	assert_document(f, after);
}

static void
check_set_fails(struct fixture *f, const char *document, const char *path, enum doc_set_mode mode,
		enum status status)
{
	put_document(f, document);
	assert_int_equal(set(f, path, "1", mode), status);
	assert_document(f, document);
}

static void
check_unset(struct fixture *f, const char *before, const char *path, const char *after)
{
	bool found;

	put_document(f, before);
	assert_int_equal(unset(f, path, &found), STATUS_OK);
	assert_int_equal(found, strcmp(before, after) != 0);
	assert_document(f, after);
}

/* ---- Setting ---- */

static void
values_of_all_shapes_replace_each_other(void **state)
{
	static const char *const values[] = {
		"1", "null", "\"x\"", "[]", "{}", "[1,[2],3]", "{\"a\":{}}", "{\"b\":[[]],\"c\":0}"
	};
	struct fixture *f = *state;
	char before[128];
	char after[128];

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		for (size_t j = 0; j < sizeof(values) / sizeof(values[0]); j++) {
			snprintf(before, sizeof(before), "{\"a\":0,\"b\":%s,\"ba\":1}", values[i]);
			snprintf(after, sizeof(after), "{\"a\":0,\"b\":%s,\"ba\":1}", values[j]);
			check_set(f, before, "/b", values[j], after);
			snprintf(before, sizeof(before), "{\"a\":[0,%s,2]}", values[i]);
			snprintf(after, sizeof(after), "{\"a\":[0,%s,2]}", values[j]);
			check_set(f, before, "/a/1", values[j], after);
		}
	}
}

static void
setting_below_an_empty_container_removes_its_leaf(void **state)
{
	struct fixture *f = *state;

	check_set(f, "{\"a\":{}}", "/a/b", "1", "{\"a\":{\"b\":1}}");
	assert_cost(f, 1, 1, 1, 1, 2);
	check_set(f, "{\"a\":[]}", "/a/0", "1", "{\"a\":[1]}");
	check_set(f, "{\"a\":[{}]}", "/a/0/x", "[]", "{\"a\":[{\"x\":[]}]}");
	check_set(f, "{}", "/a", "{}", "{\"a\":{}}");
}

static void
setting_costs_the_same_whatever_the_document_has(void **state)
{
	struct fixture *f = *state;
	struct buf text = BUF_INIT(TEST_MAX_BYTES);

	buf_append_cstr(&text, "{\"a\":{\"b\":[");
	for (int i = 0; i < 1000; i++)
		buf_printf(&text, "{\"x\":%d},", i);
	buf_append_cstr(&text, "{}]}}");
	buf_append_byte(&text, 0);
	put_document(f, text.ptr);
	assert_int_equal(set(f, "/c", "1", DOC_SET_HERE), STATUS_OK);
	assert_cost(f, 0, 0, 0, 1, 1);
	assert_int_equal(set(f, "/a/c", "[1,2]", DOC_SET_HERE), STATUS_OK);
	assert_cost(f, 1, 1, 1, 2, 1);
	assert_int_equal(set(f, "/a/b/500/x", "7", DOC_SET_HERE), STATUS_OK);
	assert_cost(f, 1, 1, 1, 1, 1);
	assert_int_equal(set(f, "/a/b/1001", "7", DOC_SET_HERE), STATUS_OK);
	assert_cost(f, 1, 1, 1, 1, 1);
	assert_int_equal(set(f, "/m/n/o/p", "7", DOC_SET_CREATE), STATUS_OK);
	assert_cost(f, 3, 0, 2, 1, 1);
	buf_release(&text);
}

static void
missing_containers_are_made_if_so_wanted(void **state)
{
	struct fixture *f = *state;

	put_document(f, "{\"a\":1,\"b\":{\"c\":[]}}");
	assert_int_equal(set(f, "/b/c/0/d/0/e", "true", DOC_SET_CREATE), STATUS_OK);
	assert_document(f, "{\"a\":1,\"b\":{\"c\":[{\"d\":[{\"e\":true}]}]}}");
	assert_int_equal(set(f, "/b/c/1/d", "2", DOC_SET_CREATE), STATUS_OK);
	assert_document(f, "{\"a\":1,\"b\":{\"c\":[{\"d\":[{\"e\":true}]},{\"d\":2}]}}");
	assert_int_equal(set(f, "/x/y", "{}", DOC_SET_CREATE), STATUS_OK);
	assert_document(f, "{\"a\":1,\"b\":{\"c\":[{\"d\":[{\"e\":true}]},{\"d\":2}]},"
			   "\"x\":{\"y\":{}}}");
}

static void
places_that_cannot_be_set_are_refused_and_nothing_is_written(void **state)
{
	struct fixture *f = *state;

	check_set_fails(f, "{\"a\":1}", "/b/c", DOC_SET_HERE, STATUS_NOT_FOUND);
	check_set_fails(f, "{\"a\":1}", "/a/c", DOC_SET_CREATE, STATUS_INVALID);
	check_set_fails(f, "{\"a\":1}", "/a/b/c", DOC_SET_CREATE, STATUS_INVALID);
	check_set_fails(f, "{\"a\":{}}", "/a/0", DOC_SET_CREATE, STATUS_INVALID);
	check_set_fails(f, "{\"a\":[]}", "/a/x", DOC_SET_CREATE, STATUS_INVALID);
	check_set_fails(f, "{\"a\":[1]}", "/a/x", DOC_SET_CREATE, STATUS_INVALID);
	check_set_fails(f, "{\"a\":{\"b\":1}}", "/a/0", DOC_SET_CREATE, STATUS_INVALID);
	check_set_fails(f, "{\"a\":[1]}", "/a/2", DOC_SET_CREATE, STATUS_NOT_FOUND);
	check_set_fails(f, "{\"a\":[]}", "/a/1", DOC_SET_CREATE, STATUS_NOT_FOUND);
	check_set_fails(f, "{\"a\":1}", "/b/1/c", DOC_SET_CREATE, STATUS_NOT_FOUND);
	check_set_fails(f, "{\"a\":1}", "/b/c/1", DOC_SET_CREATE, STATUS_NOT_FOUND);
	check_set_fails(f, "{\"a\":1}", "", DOC_SET_CREATE, STATUS_INVALID);
	check_set_fails(f, "{\"a\":1}", "/0", DOC_SET_CREATE, STATUS_INVALID);
}

static void
limits_of_paths_hold(void **state)
{
	struct fixture *f = *state;
	struct buf path = BUF_INIT(TEST_MAX_BYTES);
	struct buf value = BUF_INIT(TEST_MAX_BYTES);

	put_document(f, "{}");
	for (int i = 0; i < KV_LIMIT_KEY_BYTES - 100; i++)
		buf_append_byte(&path, i ? 'n' : '/');
	buf_append_byte(&path, 0);
	assert_int_equal(set(f, path.ptr, "1", DOC_SET_HERE), STATUS_OK);
	for (int i = 0; i < 200; i++)
		buf_append_byte(&value, i < 100 ? '[' : ']');
	buf_append_byte(&value, 0);
	assert_int_equal(set(f, path.ptr, value.ptr, DOC_SET_HERE), STATUS_PATH_TOO_LONG);
	path.len--;
	for (int i = 0; i < 95; i++)
		buf_append_byte(&path, 'n');
	buf_append_byte(&path, 0);
	assert_int_equal(set(f, path.ptr, "1", DOC_SET_HERE), STATUS_PATH_TOO_LONG);
	buf_clear(&path);
	for (int i = 0; i < JSON_DEPTH_LIMIT; i++)
		buf_append_cstr(&path, "/n");
	buf_append_byte(&path, 0);
	assert_int_equal(set(f, path.ptr, "1", DOC_SET_CREATE), STATUS_OK);
	assert_int_equal(set(f, path.ptr, "[1]", DOC_SET_CREATE), STATUS_JSON_DEPTH);
	buf_release(&value);
	buf_release(&path);
}

/* ---- Taking out ---- */

static void
taking_out_the_last_child_leaves_the_empty_container(void **state)
{
	struct fixture *f = *state;

	check_unset(f, "{\"a\":{\"b\":1}}", "/a/b", "{\"a\":{}}");
	assert_cost(f, 3, 1, 1, 1, 1);
	check_unset(f, "{\"a\":[1]}", "/a/0", "{\"a\":[]}");
	check_unset(f, "{\"a\":[{\"x\":{\"y\":1,\"z\":2}}]}", "/a/0/x", "{\"a\":[{}]}");
	check_unset(f, "{\"a\":[{\"x\":1}]}", "/a/0", "{\"a\":[]}");
	check_unset(f, "{\"a\":{\"b\":[]}}", "/a/b", "{\"a\":{}}");
	check_unset(f, "{\"a\":1}", "/a", "{}");
	assert_cost(f, 1, 1, 1, 0, 1);
	check_unset(f, "{\"a\":1,\"a\\u0000\":2,\"b\":3}", "/a", "{\"a\\u0000\":2,\"b\":3}");
	check_unset(f, "{\"o\":{\"a\":1,\"a\\u0000\":2}}", "/o/a", "{\"o\":{\"a\\u0000\":2}}");
}

static void
members_beside_it_stay(void **state)
{
	struct fixture *f = *state;

	check_unset(f, "{\"o\":{\"a\":1,\"b\":{\"c\":2,\"d\":3},\"e\":4}}", "/o/b",
		    "{\"o\":{\"a\":1,\"e\":4}}");
	assert_cost(f, 3, 3, 1, 0, 1);
	check_unset(f, "{\"o\":{\"a\":1,\"b\":2}}", "/o/b", "{\"o\":{\"a\":1}}");
	check_unset(f, "{\"o\":{\"a\":1,\"b\":2}}", "/o/a", "{\"o\":{\"b\":2}}");
}

static void
what_is_not_there_is_not_taken_out(void **state)
{
	static const char *const paths[] = { "/x",   "/a/x", "/a/0", "/b/2", "/b/x", "/c/x",
					     "/c/0", "/d/0", "/d/x", "/e/0", "/e/x", "/x/y/z" };
	static const char document[] =
		"{\"a\":{\"b\":1},\"b\":[0,1],\"c\":{},\"d\":[],\"e\":\"text\"}";
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		check_unset(f, document, paths[i], document);
}

static void
elements_behind_the_one_taken_out_move_up(void **state)
{
	struct fixture *f = *state;

	check_unset(f, "{\"a\":[0,1,2]}", "/a/0", "{\"a\":[1,2]}");
	check_unset(f, "{\"a\":[0,1,2]}", "/a/1", "{\"a\":[0,2]}");
	assert_cost(f, 2, 2, 1, 1, 1);
	check_unset(f, "{\"a\":[0,1,2]}", "/a/2", "{\"a\":[0,1]}");
	check_unset(f, "{\"a\":[[0,{\"x\":{}}],{\"y\":[1,2],\"z\":3},[],\"t\"],\"b\":[1]}", "/a/0",
		    "{\"a\":[{\"y\":[1,2],\"z\":3},[],\"t\"],\"b\":[1]}");
}

static void
elements_move_up_past_positions_of_other_lengths(void **state)
{
	struct fixture *f = *state;
	struct buf before = BUF_INIT(TEST_MAX_BYTES);
	struct buf after = BUF_INIT(TEST_MAX_BYTES);
	bool found;

	buf_append_cstr(&before, "{\"a\":[");
	buf_append_cstr(&after, "{\"a\":[");
	for (int i = 0; i < 70000; i++) {
		buf_printf(&before, "%s%d", i ? "," : "", i);
		if (i != 1)
			buf_printf(&after, "%s%d", i ? "," : "", i);
	}
	buf_append(&before, "]}", 3);
	buf_append(&after, "]}", 3);
	put_document(f, before.ptr);
	/* Moving so many elements takes most of a transaction: it gets one of its own. */
	assert_int_equal(kv_future_wait(kv_commit(f->tx)), STATUS_OK);
	begin(f);
	assert_int_equal(unset(f, "/a/1", &found), STATUS_OK);
	assert_true(found);
	assert_document(f, after.ptr);
	buf_release(&before);
	buf_release(&after);
}

/* ---- Against a model ---- */

/* A value in memory: a text without quotes for scalars, or children. */
struct node {
	char kind; /* 's', '{', '[' */
	int scalar;
	size_t count;
	struct {
		char name;
		struct node *node;
	} children[CHILDREN + 1];
};

static struct node *
node_new(struct fixture *f, char kind, int scalar)
{
	struct node *n = arena_zalloc(f->arena, sizeof(*n));

	assert_non_null(n);
	n->kind = kind;
	n->scalar = scalar;
	return n;
}

static void
node_draw(const struct node *n, struct buf *out)
{
	if (n->kind == 's') {
		buf_printf(out, "%d", n->scalar);
		return;
	}
	buf_append_byte(out, (uint8_t)n->kind);
	for (size_t i = 0; i < n->count; i++) {
		if (i)
			buf_append_byte(out, ',');
		if (n->kind == '{')
			buf_printf(out, "\"%c\":", n->children[i].name);
		node_draw(n->children[i].node, out);
	}
	buf_append_byte(out, n->kind == '{' ? '}' : ']');
}

static struct node *
node_random(struct fixture *f, struct rand_seq *r, int depth)
{
	char kind = "ss{["[rand_seq_below(r, depth ? 4 : 2)];
	struct node *n = node_new(f, kind, (int)rand_seq_below(r, 1000));

	if (kind == 's')
		return n;
	for (uint64_t i = 0, count = rand_seq_below(r, 4); i < count; i++) {
		n->children[i].name = (char)('a' + i);
		n->children[n->count++].node = node_random(f, r, depth - 1);
	}
	return n;
}

/* A step of a path: a letter is a member, a digit a position. The place of it in the container. */
static bool
node_place(const struct node *n, char step, size_t *ret)
{
	if (n->kind == '[' && step < 'a') {
		*ret = (size_t)(step - '0');
		return *ret < n->count;
	}
	*ret = 0;
	if (n->kind != '{' || step < 'a')
		return false;
	while (*ret < n->count && n->children[*ret].name < step)
		++*ret;
	return *ret < n->count && n->children[*ret].name == step;
}

static void
node_insert(struct node *n, size_t at, char name, struct node *child)
{
	assert_true(n->count < CHILDREN);
	memmove(&n->children[at + 1], &n->children[at], (n->count - at) * sizeof(n->children[0]));
	n->children[at].name = name;
	n->children[at].node = child;
	n->count++;
}

/* What doc_set() is to do; false if it is to refuse, and then nothing has happened. */
static bool
node_set(struct fixture *f, struct node *root, const char *steps, struct node *value, bool create)
{
	struct node *n = root;
	size_t depth = 0;
	size_t at;

	for (; steps[depth + 1] && node_place(n, steps[depth], &at); depth++)
		n = n->children[at].node;
	if (steps[depth + 1] && !create)
		return false;
	if (n->kind != (steps[depth] < 'a' ? '[' : '{'))
		return false;
	if (!node_place(n, steps[depth], &at) && n->kind == '[' && at > n->count)
		return false;
	for (size_t i = depth + 1; steps[i]; i++)
		if (steps[i] < 'a' && steps[i] != '0')
			return false;
	for (size_t i = strlen(steps); --i > depth;) {
		struct node *outer = node_new(f, steps[i] < 'a' ? '[' : '{', 0);

		node_insert(outer, 0, steps[i], value);
		value = outer;
	}
	if (node_place(n, steps[depth], &at))
		n->children[at].node = value;
	else
		node_insert(n, at, steps[depth], value);
	return true;
}

static bool
node_unset(struct node *root, const char *steps)
{
	struct node *n = root;
	size_t at;

	for (; steps[1]; steps++) {
		if (!node_place(n, steps[0], &at))
			return false;
		n = n->children[at].node;
	}
	if (!node_place(n, steps[0], &at))
		return false;
	n->count--;
	memmove(&n->children[at], &n->children[at + 1], (n->count - at) * sizeof(n->children[0]));
	return true;
}

static void
random_operations_do_what_they_do_in_memory(void **state)
{
	struct fixture *f = *state;
	struct rand_seq r = { 1 };
	struct node *root = node_new(f, '{', 0);
	struct buf text = BUF_INIT(TEST_MAX_BYTES);
	size_t done = 0;

	put_document(f, "{}");
	for (int i = 0; i < OPERATIONS; i++) {
		char steps[PATH_STEPS + 1] = { 0 };
		char path[2 * PATH_STEPS + 1] = { 0 };
		bool found;

		for (size_t j = 0, n = 1 + rand_seq_below(&r, PATH_STEPS); j < n; j++) {
			steps[j] = "ab0012"[rand_seq_below(&r, j ? 6 : 2)];
			path[2 * j] = '/';
			path[2 * j + 1] = steps[j];
		}
		buf_clear(&text);
		if (rand_seq_below(&r, 5) < 3) {
			struct node *value = node_random(f, &r, 2);
			bool create = rand_seq_below(&r, 2);
			enum status status;

			node_draw(value, &text);
			buf_append_byte(&text, 0);
			status = set(f, path, text.ptr, create ? DOC_SET_CREATE : DOC_SET_HERE);
			found = node_set(f, root, steps, value, create);
			if ((status == STATUS_OK) != found)
				fail_msg("round %d: %s at %s: %s", i, text.ptr, path,
					 status_name(status));
		} else {
			bool told;

			assert_int_equal(unset(f, path, &told), STATUS_OK);
			found = node_unset(root, steps);
			assert_int_equal(told, found);
		}
		done += found;
		buf_clear(&text);
		node_draw(root, &text);
		buf_append_byte(&text, 0);
		assert_document(f, text.ptr);
	}
	assert_true(done > OPERATIONS / 4);
	buf_release(&text);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_store, close_store)
	const struct CMUnitTest tests[] = {
		TEST(values_of_all_shapes_replace_each_other),
		TEST(setting_below_an_empty_container_removes_its_leaf),
		TEST(setting_costs_the_same_whatever_the_document_has),
		TEST(missing_containers_are_made_if_so_wanted),
		TEST(places_that_cannot_be_set_are_refused_and_nothing_is_written),
		TEST(limits_of_paths_hold),
		TEST(taking_out_the_last_child_leaves_the_empty_container),
		TEST(members_beside_it_stay),
		TEST(what_is_not_there_is_not_taken_out),
		TEST(elements_behind_the_one_taken_out_move_up),
		TEST(elements_move_up_past_positions_of_other_lengths),
		TEST(random_operations_do_what_they_do_in_memory),
	};

	return cmocka_run_group_tests_name("edit", tests, NULL, NULL);
}
