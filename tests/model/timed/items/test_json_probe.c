/*
 * Documents: what each operation answers when a call of the store fails, when its memory ends and
 * when what it reads is damaged; and by what it conflicts (probe.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "items_world.h"
#include "model/timed/items/json.h"

enum {
	ELEMENTS = 45, /* of ELEMENT_BYTES, so that the document lies in leaves */
	ELEMENT_BYTES = 100,
};

#define OF(key, name)                                                                              \
	static enum status name##_of(struct probe *p)                                              \
	{                                                                                          \
		return world_item(p, key, name);                                                   \
	}

static enum status
value(struct arena *arena, const char *text, struct jtree_node **ret)
{
	return jtree_read(str_from_cstr(text), arena, ret, NULL);
}

static enum status
member(struct timed_json *j, struct jtree_node *object, const char *name, struct jtree_node **ret)
{
	TRY(timed_json_member(j, object, str_from_cstr(name), ret));
	return *ret ? STATUS_OK : STATUS_NOT_FOUND;
}

static enum status
say_node(struct probe *p, const struct jtree_node *node)
{
	return jtree_write(node, &jtree_dense, 0, &p->said);
}

/* ---- Reading ---- */

static enum status
read_all(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct timed_json j;

	(void)t;
	TRY(timed_json_open(item, &j));
	TRY(timed_json_load(&j, j.root));
	return say_node(p, j.root);
}

static enum status
read_packed(struct probe *p, struct timed *t, struct timed_item *item)
{
	return read_all(p, t, item);
}

static enum status
read_member(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct jtree_node *found;
	struct timed_json j;

	(void)t;
	TRY(timed_json_open(item, &j));
	TRY(member(&j, j.root, "o", &found));
	TRY(member(&j, found, "n", &found));
	return say_node(p, found);
}

static enum status
read_element(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct jtree_node *found;
	struct timed_json j;

	(void)t;
	TRY(timed_json_open(item, &j));
	TRY(member(&j, j.root, "a", &found));
	TRY(j.source.element(j.source.arg, found, 3, &found));
	return say_node(p, found);
}

static enum status
say_pair(void *arg, const struct timed_json_pair *pair)
{
	struct probe *p = arg;

	buf_printf(&p->said, "%zu %d %llu|", pair->count, pair->leaf.form,
		   (unsigned long long)pair->leaf.count);
	return STATUS_OK;
}

static enum status
read_pairs(struct probe *p, struct timed *t, struct timed_item *item)
{
	(void)t;
	return timed_json_each(item, say_pair, p);
}

OF("leaves", read_all)
OF("packed", read_packed)
OF("leaves", read_member)
OF("leaves", read_element)
OF("leaves", read_pairs)

/* ---- Changing ---- */

static enum status
set_all(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct jtree_node *root;

	(void)t;
	TRY(value(p->arena, "{\"new\":[1]}", &root));
	return timed_json_set(item, root);
}

static enum status
set_packed(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct jtree_node *found, *now;
	struct timed_json j;

	(void)t;
	TRY(timed_json_open(item, &j));
	TRY(member(&j, j.root, "n", &found));
	TRY(value(p->arena, "2", &now));
	TRY(timed_json_assign(&j, found, now));
	return timed_json_finish(&j);
}

static enum status
assign_member(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct jtree_node *found, *now;
	struct timed_json j;

	(void)t;
	TRY(timed_json_open(item, &j));
	TRY(member(&j, j.root, "o", &found));
	TRY(value(p->arena, "[{}]", &now));
	TRY(timed_json_assign(&j, found, now));
	return timed_json_finish(&j);
}

static enum status
add_member(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct jtree_node *found, *now;
	struct timed_json j;

	(void)t;
	TRY(timed_json_open(item, &j));
	TRY(member(&j, j.root, "o", &found));
	TRY(value(p->arena, "7", &now));
	TRY(timed_json_add(&j, found, STR("new"), now));
	return timed_json_finish(&j);
}

static enum status
remove_member(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct jtree_node *found;
	struct timed_json j;

	(void)t;
	(void)p;
	TRY(timed_json_open(item, &j));
	TRY(member(&j, j.root, "o", &found));
	TRY(timed_json_remove(&j, &found, 1));
	return timed_json_finish(&j);
}

/* Two elements move to the left. */
static enum status
insert_element(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct jtree_node *found, *now;
	struct timed_json j;

	(void)t;
	TRY(timed_json_open(item, &j));
	TRY(member(&j, j.root, "a", &found));
	TRY(value(p->arena, "true", &now));
	TRY(timed_json_insert(&j, found, 2, &now, 1));
	return timed_json_finish(&j);
}

/* Two elements move to the right. */
static enum status
cut_element(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct jtree_node *found;
	struct timed_json j;

	(void)t;
	(void)p;
	TRY(timed_json_open(item, &j));
	TRY(member(&j, j.root, "a", &found));
	TRY(timed_json_cut(&j, found, 2, 1));
	return timed_json_finish(&j);
}

static enum status
remove_elements(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct jtree_node *array, *gone[2];
	struct timed_json j;

	(void)t;
	(void)p;
	TRY(timed_json_open(item, &j));
	TRY(member(&j, j.root, "a", &array));
	TRY(timed_json_load(&j, array));
	gone[0] = array->children[ELEMENTS - 3];
	gone[1] = array->children[ELEMENTS - 1];
	TRY(timed_json_remove(&j, gone, 2));
	return timed_json_finish(&j);
}

static enum status
merge_member(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct jtree_node *patch;
	struct timed_json j;

	(void)t;
	TRY(timed_json_open(item, &j));
	TRY(value(p->arena, "{\"o\":{\"n\":null,\"m\":{\"x\":1}}}", &patch));
	TRY(timed_json_merge(&j, j.root, patch));
	return timed_json_finish(&j);
}

static enum status
copy_document(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct timed_item to;

	TRY(timed_item_open(t, STR("new"), p->arena, &to));
	return timed_item_copy(item, &to);
}

static enum status
unfold(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct timed_json j;

	(void)t;
	(void)p;
	TRY(timed_json_open(item, &j));
	TRY(timed_json_unfold(&j));
	return timed_json_finish(&j);
}

OF("leaves", set_all)
OF("packed", set_packed)
OF("leaves", assign_member)
OF("leaves", add_member)
OF("leaves", remove_member)
OF("leaves", insert_element)
OF("leaves", cut_element)
OF("leaves", remove_elements)
OF("leaves", merge_member)
OF("leaves", copy_document)
OF("leaves", unfold)

static const struct probe_op reading[] = {
	{ "read_all", read_all_of,
	  "ok, conflicts 3 0+0; 1: C/O 2: C/CNCOC 3: C/CNCO 4: C/CNCOC 5-12: "
	  "C/CNC" },
	{ "read_packed", read_packed_of, "ok, conflicts 1 0+0; 1: C/O 2: C/CNCOC" },
	{ "read_member", read_member_of,
	  "ok, conflicts 4 0+0; 1: C/O 2: C/CNCOC 3-4: C/CNCOCO 5: C/CNC~" },
	{ "read_element", read_element_of,
	  "ok, conflicts 4 0+0; 1: C/O 2: C/CNCOC 3: C/CNCOCO 4: C/CNCOCOC 5: "
	  "C/CNC" },
	{ "read_pairs", read_pairs_of,
	  "ok, conflicts 2 0+0; 1: C/O 2: C/CNCOC~C 3: C/CNC~CO 4: C/CNCOC~C "
	  "5-12: C/CNC" },
};

static const struct probe_op changing[] = {
	{ "set_all", set_all_of, "ok, conflicts 1 0+0; 1: C/O 2: C/CNCOCOC" },
	{ "set_packed", set_packed_of, "ok, conflicts 1 0+0; 1: C/O 2: C/CNCOC" },
	{ "assign_member", assign_member_of,
	  "ok, conflicts 3 0+0; 1: C/O 2: C/CNCOC 3-4: C/CNCOCO" },
	{ "add_member", add_member_of, "ok, conflicts 3 0+0; 1: C/O 2: C/CNCOC 3-4: C/CNCOCO" },
	{ "remove_member", remove_member_of,
	  "ok, conflicts 3 0+0; 1: C/O 2: C/CNCOC 3-4: C/CNCOCO" },
	{ "insert_element", insert_element_of,
	  "ok, conflicts 4 0+0; 1: C/O 2: C/CNCOC 3: C/CNCOCO 4: C/CNCOCOC 5-6: "
	  "O/O" },
	{ "cut_element", cut_element_of,
	  "ok, conflicts 4 0+0; 1: C/O 2: C/CNCOC 3: C/CNCOCO 4: C/CNCOCOC 5-6: "
	  "O/O" },
	{ "remove_elements", remove_elements_of,
	  "ok, conflicts 5 0+0; 1: C/O 2: C/CNCOC 3: C/CNCOCO 4: C/CNCOC 5-12: "
	  "C/CNC" },
	{ "merge_member", merge_member_of,
	  "ok, conflicts 5 0+0; 1: C/O 2: C/CNCOC 3-4: C/CNCOCO 5: C/CNCO 6: "
	  "C/CNCOCO" },
	{ "copy_document", copy_document_of, "ok, conflicts 4 0+0; 1: C/O 2: C/CNCOCOC 3-12: O/O" },
	{ "unfold", unfold_of,
	  "ok, conflicts 3 0+0; 1: C/O 2: C/CNCOC 3: C/CNCO 4: C/CNCOC 5-12: "
	  "C/CNC" },
};

static const struct probe_op checks[] = {
	{ "verify", probe_verify,
	  "ok, conflicts 0 0+0; 1: ~/~O 2: ~/~O~O~ 3: ~/~O 4: ~/O 5: ~/~O~O 6-9: "
	  "~O~/~O~O~O 10-12: ~/~O~ 13: O/O 14: ~/~ 15: ~/O 16: ~/~O 17-62: ~/~ "
	  "63-65: ~/~O 66: ~O/O 67-68: ~/O 69-70: O/O" },
};

/* ---- The world ---- */

static enum status
fill_packed(struct timed *t, struct world *w)
{
	struct timed_item item;
	struct jtree_node *root;

	TRY(timed_item_open(t, STR("packed"), w->arena, &item));
	TRY(value(w->arena, "{\"n\":1,\"t\":\"x\"}", &root));
	return timed_json_set(&item, root);
}

static enum status
fill_leaves(struct timed *t, struct world *w)
{
	struct timed_item item;
	struct jtree_node *root, *array, *element;

	TRY(timed_item_open(t, STR("leaves"), w->arena, &item));
	TRY(value(w->arena, "{\"o\":{\"n\":1,\"m\":18446744073709551615},\"a\":[]}", &root));
	TRY(jtree_member(w->arena, root, STR("a"), &array));
	for (int i = 0; i < ELEMENTS; i++) {
		TRY(jtree_new(w->arena, JTREE_TEXT, &element));
		element->text = arena_printf(w->arena, "%0*d", ELEMENT_BYTES, i);
		TRY(jtree_insert(w->arena, array, array->count, &element, 1));
	}
	return timed_json_set(&item, root);
}

static world_fill *const fills[] = { fill_packed, fill_leaves };

#define COUNT(ops) (sizeof(ops) / sizeof((ops)[0]))

static int
setup(void **state)
{
	return world_open(fills, COUNT(fills), (struct world **)state);
}

static int
teardown(void **state)
{
	world_close(*state);
	return 0;
}

static void
reading_hands_failures_on(void **state)
{
	struct world *w = *state;

	probe_each(w->store, w, reading, COUNT(reading));
}

static void
changing_hands_failures_on(void **state)
{
	struct world *w = *state;

	probe_each(w->store, w, changing, COUNT(changing));
}

static void
checks_find_what_is_damaged(void **state)
{
	struct world *w = *state;

	probe_each_throughout(w->store, w, checks, COUNT(checks));
}

static void
checks_find_what_is_lost_or_foreign(void **state)
{
	struct world *w = *state;

	probe_pairs(w->store, w, &checks[0], "1: O 2-3: ~ 4-9: O 10-12: ~ 13-14: O 15-66: ~",
		    "1-66: ~");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(reading_hands_failures_on, setup, teardown),
		cmocka_unit_test_setup_teardown(changing_hands_failures_on, setup, teardown),
		cmocka_unit_test_setup_teardown(checks_find_what_is_damaged, setup, teardown),
		cmocka_unit_test_setup_teardown(checks_find_what_is_lost_or_foreign, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
