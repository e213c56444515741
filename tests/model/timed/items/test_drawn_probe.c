/* Items as inspect draws them, whole and damaged, and what their keys lead it to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "items_world.h"
#include "model/timed/items/group.h"
#include "model/timed/items/item_int.h"
#include "model/timed/items/json.h"

enum {
	DRAWN_BYTES = 1024 * 1024,
	PIECES_BYTES = TIMED_RECORD_BYTES + 100,
	HEX_SHOWN = 16, /* more digits in a row are an id, and say nothing */
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const struct timed_expiry never = { TIMED_EXPIRY_NEVER, 0 };

/* ---- The world ---- */

static struct str
long_text(struct arena *arena, size_t bytes)
{
	return arena_printf(arena, "%0*d", (int)bytes, 7);
}

static enum status
fill_small(struct timed *t, struct world *w)
{
	struct timed_member fields[] = { { .name = STR("a"), .value = STR("it's") },
					 { .name = STR("b"), .value = STR("") } };
	struct timed_member names[] = { { .name = STR("a\x01\xff") }, { .name = STR("b") } };
	struct timed_member scores[] = { { .name = STR("low"), .score = -0.5 },
					 { .name = STR("top"), .score = 3 } };
	struct timed_item item;

	TRY(timed_item_open(t, STR("value"), w->arena, &item));
	TRY(timed_value_set(&item, STR("x"), (struct timed_expiry){ TIMED_EXPIRY_AFTER, 1500 }));
	TRY(timed_item_open(t, STR("small hash"), w->arena, &item));
	TRY(timed_members_put(&item, TIMED_HASH, fields, 2));
	TRY(timed_item_open(t, STR("small set"), w->arena, &item));
	TRY(timed_members_put(&item, TIMED_SET, names, 2));
	TRY(timed_item_open(t, STR("small zset"), w->arena, &item));
	return timed_members_put(&item, TIMED_ZSET, scores, 2);
}

static enum status
fill_bodies(struct timed *t, struct world *w)
{
	struct str long_name = long_text(w->arena, TIMED_WHOLE_BYTES + 1);
	struct timed_member members[] = {
		{ .name = STR("f"), .value = STR("1"), .expires_ms = START_MS + 9000 },
		{ .name = long_name, .value = STR("2") },
		{ .name = STR("pieces"), .value = long_text(w->arena, PIECES_BYTES) },
	};
	struct timed_member scored[] = { { .name = STR("m"), .score = 2 },
					 { .name = long_name, .score = 1 } };
	struct str lefts[] = { STR("b"), STR("a") }, rights[] = { STR("c"), STR("d") };
	struct str large = long_text(w->arena, UINT8_MAX + 1);
	struct timed_item item;

	TRY(timed_item_open(t, long_text(w->arena, TIMED_WHOLE_BYTES + 5), w->arena, &item));
	TRY(timed_members_put(&item, TIMED_HASH, members, COUNT(members)));
	TRY(timed_item_open(t, STR("zset"), w->arena, &item));
	TRY(timed_members_put(&item, TIMED_ZSET, scored, COUNT(scored)));
	TRY(timed_item_open(t, STR("list"), w->arena, &item));
	TRY(timed_list_push(&item, true, lefts, COUNT(lefts)));
	TRY(timed_list_push(&item, false, rights, COUNT(rights)));
	return timed_list_push(&item, false, &large, 1);
}

static enum status
fill_stream(struct timed *t, struct world *w)
{
	struct str fields[] = { STR("f"), STR("v") };
	struct timed_entry entry = { { 5, 1 }, fields, 2 };
	struct timed_group counted = { .name = STR("g"), .last = { 5, 1 }, .read = 1 };
	struct timed_group unread = { .name = STR("u"), .read = TIMED_GROUP_UNREAD };
	const struct timed_consumer consumer = { .name = STR("who"), .seen_ms = START_MS };
	struct timed_pending pending = { .id = { 5, 1 } };
	struct timed_stream stream = { 0 };
	struct timed_item item;

	TRY(timed_item_open(t, STR("stream"), w->arena, &item));
	TRY(timed_stream_add(&item, &stream, &entry));
	TRY(timed_group_add(&item, &counted));
	TRY(timed_group_add(&item, &unread));
	TRY(timed_consumer_put(&item, &counted, &consumer, true));
	TRY(timed_pending_get(&item, &counted, &pending, 1));
	pending.delivered_ms = START_MS;
	pending.times = 2;
	return timed_pending_give(&item, &counted, consumer.name, &pending, 1);
}

/* In leaves, since one of its texts is long; the first element of its array has place -1. */
static enum status
fill_document(struct timed *t, struct world *w)
{
	struct jtree_node *root, *array, *text, *element;
	struct timed_item item;
	struct timed_json j;

	TRY(timed_item_open(t, STR("doc"), w->arena, &item));
	TRY(jtree_read(STR("{\"az_AZ09\":{},\"\":null,\"a.b\":\"t\",\"A[\":[1.5,true]}"), w->arena,
		       &root, NULL));
	TRY(jtree_new(w->arena, JTREE_TEXT, &text));
	text->text = long_text(w->arena, TIMED_JSON_PIECE_BYTES + 1);
	TRY(jtree_add(w->arena, root, STR("long"), text));
	TRY(timed_json_set(&item, root));
	TRY(timed_json_open(&item, &j));
	TRY(timed_json_member(&j, j.root, STR("A["), &array));
	TRY(jtree_read(STR("-2"), w->arena, &element, NULL));
	TRY(timed_json_insert(&j, array, 0, &element, 1));
	/* In the middle, elements behind it make room. */
	TRY(jtree_read(STR("3"), w->arena, &element, NULL));
	TRY(timed_json_insert(&j, array, 3, &element, 1));
	TRY(jtree_read(STR("\"mid\""), w->arena, &element, NULL));
	TRY(timed_json_insert(&j, array, 2, &element, 1));
	TRY(timed_json_finish(&j));
	TRY(timed_item_open(t, STR("chunks"), w->arena, &item));
	return timed_value_set(&item, long_text(w->arena, TIMED_INLINE_BYTES + 1), never);
}

static world_fill *const fills[] = { fill_small, fill_bodies, fill_stream, fill_document };

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

/* ---- Drawing ---- */

struct drawing {
	struct catalog_db *db;
	struct arena *arena;
	struct buf one; /* a pair */
	struct buf out; /* a line for each */
};

static bool
draw(struct drawing *d, enum timed_space space, struct str tail, struct str value)
{
	bool drawn;

	buf_clear(&d->one);
	buf_append_cstr(&d->one, "> ");
	drawn = d->db->kind->draw_pair(d->db, space, tail, value, &d->one);
	/* What is not drawn leaves nothing behind. */
	assert_true(drawn || d->one.len == 2);
	assert_int_equal(buf_status(&d->one), STATUS_OK);
	return drawn;
}

/* A copy that ends where the bytes do, so that a sanitizer sees what is read behind it. */
static unsigned
cuts_drawn(struct drawing *d, enum timed_space space, struct str tail, struct str value,
	   bool of_tail)
{
	struct str cut = of_tail ? tail : value;
	unsigned drawn = 0;

	for (size_t len = 0; len < cut.len && len < 100; len++) {
		char *copy = malloc(len + !len);

		assert_non_null(copy);
		memcpy(copy, cut.ptr, len);
		drawn += draw(d, space, of_tail ? str_of(copy, len) : tail,
			      of_tail ? value : str_of(copy, len));
		free(copy);
	}
	return drawn;
}

/* Long rows of digits are ids or long texts, and what is no ASCII is of hashes of long names. */
static void
shorten(const struct buf *drawn, struct buf *ret)
{
	size_t row = 0;

	for (size_t i = 0; i <= drawn->len; i++) {
		char c = i < drawn->len ? drawn->ptr[i] : ' ';

		if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')) {
			row++;
			continue;
		}
		if (row > HEX_SHOWN)
			buf_append_cstr(ret, "#");
		else
			buf_append_str(ret, str_of(drawn->ptr + i - row, row));
		row = 0;
		if (i < drawn->len)
			buf_append_byte(ret, (uint8_t)c < 0x80 ? (uint8_t)c : '.');
	}
}

static void
draw_and_cut(struct drawing *d, enum timed_space space, struct str tail, struct str value)
{
	unsigned values = cuts_drawn(d, space, tail, value, false);
	unsigned keys = cuts_drawn(d, space, tail, value, true);

	if (draw(d, space, tail, value))
		shorten(&d->one, &d->out);
	else
		buf_append_cstr(&d->out, "-");
	buf_printf(&d->out, " | %u %u", values, keys);
	buf_clear(&d->one);
	if (timed_kind_of(d->db)->draw_key(d->db, space, tail, d->arena, &d->one) == STATUS_OK) {
		buf_append_cstr(&d->out, " | ");
		shorten(&d->one, &d->out);
	}
	buf_append_byte(&d->out, '\n');
}

static enum status
draw_space(struct kv_tx *tx, struct drawing *d, enum timed_space space)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct kv_pair pair;
	enum status status;

	timed_key_space(&begin, d->db, space);
	timed_key_space(&end, d->db, space + 1);
	TRY(kv_scan_init(&scan, tx, buf_str(&begin), buf_str(&end), NULL));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK)
		draw_and_cut(d, space, str_skip(pair.key, begin.len), pair.value);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
drawing_body(struct kv_tx *tx, void *arg)
{
	struct drawing *d = arg;
	enum status status;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_REDIS, STR("0"), &d->db, NULL));
	status = draw_space(tx, d, TIMED_SPACE_ROWS);
	if (status == STATUS_OK)
		status = draw_space(tx, d, TIMED_SPACE_BODY);
	catalog_db_unref(d->db);
	return status;
}

/*
 * Of each pair what is drawn, how many of its cut values and of its cut keys still are, and how a
 * note of the past names it.
 */
static void
pairs_are_drawn_unless_they_are_damaged(void **state)
{
	static const char expected[] =
		"> (0x1c4e, 'zset'), 1970-01-01T00:16:40.000001Z -> [Redis-SortedSet-Type] body # "
		"| 0 0 | (0x1c4e, 'zset')\n"
		"> (0x1cc7, 'doc'), 1970-01-01T00:16:40.000003Z -> [Redis-JSON-Type] body # | 0 0 "
		"| (0x1cc7, 'doc')\n"
		"> (0x661c, '#'), 1970-01-01T00:16:40.000001Z -> [Redis-Hash-Type] body # | 0 0 | "
		"(0x661c, "
		"'#\\x12\\x94w\\x1d\\xae\\xfd\\x82\\xf2\\xfd\\xc0\\xf8.."
		"w\\xcf\\xe6\\x8e\\x13\\xbf\\xb5..\\xe5...\\xb8\\x05vo\\x15\\x96')\n"
		"> (0x83a9, 'value'), 1970-01-01T00:16:40.000000Z -> (expires "
		"1970-01-01T00:16:41.500000Z) 'x' | 0 0 | (0x83a9, 'value')\n"
		"> (0xc28f, 'small set'), 1970-01-01T00:16:40.000000Z -> [Redis-Set-Type] {'b', "
		"'a\\x01\\xff'} | 1 0 | (0xc28f, 'small set')\n"
		"> (0xc3dd, 'chunks'), 1970-01-01T00:16:40.000003Z -> [Redis-String-Type] body # | "
		"0 0 | (0xc3dd, 'chunks')\n"
		"> (0xc49f, 'small hash'), 1970-01-01T00:16:40.000000Z -> [Redis-Hash-Type] {'b': "
		"'', 'a': 'it''s'} | 1 0 | (0xc49f, 'small hash')\n"
		"> (0xc59e, 'list'), 1970-01-01T00:16:40.000001Z -> [Redis-List-Type] body # | 0 0 "
		"| (0xc59e, 'list')\n"
		"> (0xe156, 'small zset'), 1970-01-01T00:16:40.000000Z -> [Redis-SortedSet-Type] "
		"{'low': -0.5, 'top': 3} | 1 0 | (0xe156, 'small zset')\n"
		"> (0xe54f, 'stream'), 1970-01-01T00:16:40.000002Z -> [Redis-Stream-Type] body # | "
		"0 0 | (0xe54f, 'stream')\n"
		"- | 0 0\n"
		"> body #, $ -> {} of 5 members | 0 0\n"
		"> body #, $[\"\"] -> null | 0 1\n"
		"> body #, $[\"A[\"] -> [] of 5 elements from [-1] on | 0 1\n"
		"> body #, $[\"A[\"][-1] -> -2 | 0 2\n"
		"> body #, $[\"A[\"][0] -> 1.5 | 0 2\n"
		"> body #, $[\"A[\"][1] -> \"mid\" | 0 2\n"
		"> body #, $[\"A[\"][2] -> true | 0 2\n"
		"> body #, $[\"A[\"][3] -> 3 | 0 2\n"
		"> body #, $[\"a.b\"] -> \"t\" | 0 1\n"
		"> body #, $.az_AZ09 -> {} of 0 members | 0 1\n"
		"> body #, $.long -> a text of 60001 bytes | 0 1\n"
		"> body #, $.long -> '#' | 100 1\n"
		"> body #, $.long -> '7' | 1 2\n"
		"> body #, 'f', 1970-01-01T00:16:40.000001Z -> (expires "
		"1970-01-01T00:16:49.000000Z) '1' | 1 0 | body #, 'f'\n"
		"> body #, '#', 1970-01-01T00:16:40.000001Z -> '2' | 0 0 | body #, "
		"'#~\\xc4\\xe3\\xe2\\x08\\xe8\\xb9\\xda\\xf8\\xec\\xd5\\x18x[\\x86b\\x80..#"
		"\\xd7s\\x84\\xe2_\\x82\\xe64\\x04N\\x1fZ'\n"
		"> body #, 'pieces', 1970-01-01T00:16:40.000001Z -> 60100 bytes in pieces # | 0 0 "
		"| body #, 'pieces'\n"
		"- | 0 0\n"
		"- | 0 0\n"
		"- | 0 0\n"
		"- | 0 0\n"
		"- | 0 0\n"
		"- | 0 0\n"
		"> body #, #, 1970-01-01T00:16:40.000002Z -> '\\x15\\x02\\x15\\x01\\x15\\x01fv' | "
		"8 14\n"
		"- | 0 0\n"
		"- | 0 0\n"
		"- | 0 0\n"
		"> body #, group 'g' -> 5-1, 1 entries read, # | 0 0\n"
		"> body #, group 'u' -> 0-0, # | 0 0\n"
		"- | 0 0\n"
		"- | 0 0\n"
		"- | 0 0\n"
		"- | 0 0\n"
		"- | 0 0\n"
		"> body #, group #, consumer 'who' -> seen 1970-01-01T00:16:40.000000Z | 0 0\n"
		"- | 0 0\n"
		"> body #, group #, pending 5-1 -> 'who', 2 times, last "
		"1970-01-01T00:16:40.000000Z | 3 0\n"
		"- | 0 0\n"
		"> body #, 7fffffffffff0000, 1970-01-01T00:16:40.000001Z -> 'a' | 1 2\n"
		"> body #, 8000000000000000, 1970-01-01T00:16:40.000001Z -> 'b' | 1 7\n"
		"> body #, 8000000000010000, 1970-01-01T00:16:40.000001Z -> ['c', 'd'] | 0 6\n"
		"> body #, 8000000000030000, 1970-01-01T00:16:40.000001Z -> '#' | 91 6\n"
		"- | 0 0\n"
		"- | 0 0\n"
		"- | 0 0\n"
		"- | 0 0\n"
		"- | 0 0\n"
		"- | 0 0\n"
		"> body #, 'm', 1970-01-01T00:16:40.000001Z -> "
		"'@\\x00\\x00\\x00\\x00\\x00\\x00\\x00' | 8 0 | body #, 'm'\n"
		"> body #, '#', 1970-01-01T00:16:40.000001Z -> "
		"'?\\xf0\\x00\\x00\\x00\\x00\\x00\\x00' | 0 0 | body #, "
		"'#~\\xc4\\xe3\\xe2\\x08\\xe8\\xb9\\xda\\xf8\\xec\\xd5\\x18x[\\x86b\\x80..#"
		"\\xd7s\\x84\\xe2_\\x82\\xe64\\x04N\\x1fZ'\n"
		"- | 0 0\n"
		"- | 0 0\n"
		"- | 0 0\n"
		"- | 0 0\n";
	struct world *w = *state;
	struct drawing d = { .arena = w->arena,
			     .one = BUF_INIT(DRAWN_BYTES),
			     .out = BUF_INIT(DRAWN_BYTES) };

	assert_int_equal(kv_run_read(w->store, drawing_body, &d, NULL), STATUS_OK);
	buf_append_byte(&d.out, 0);
	assert_int_equal(buf_status(&d.out), STATUS_OK);
	if (strcmp(d.out.ptr, expected) != 0)
		(void)fprintf(stderr, "%s", d.out.ptr);
	assert_string_equal(d.out.ptr, expected);
	buf_release(&d.one);
	buf_release(&d.out);
}

/* ---- Keys ---- */

static enum status
say_prefix(void *arg, struct str prefix)
{
	struct probe *p = arg;

	buf_append_hex(&p->said, prefix);
	buf_append_byte(&p->said, '|');
	return STATUS_OK;
}

static enum status
inspect(struct probe *p, const char *key)
{
	struct catalog_db *db = NULL;
	enum status status;

	TRY(catalog_open(p->tx, NULL, CATALOG_SPACE_REDIS, STR("0"), &db, &p->err));
	probe_begin(p);
	status = timed_items_inspect(p->tx, db, str_from_cstr(key), p->arena, say_prefix, p);
	catalog_db_unref(db);
	return status;
}

#define INSPECT(name, key, prefixes)                                                               \
	static enum status name(struct probe *p)                                                   \
	{                                                                                          \
		size_t found = 0;                                                                  \
                                                                                                   \
		TRY(inspect(p, key));                                                              \
		for (size_t i = 0; i < p->said.len; i++)                                           \
			found += p->said.ptr[i] == '|';                                            \
		return found == (prefixes) ? STATUS_OK : STATUS_EXISTS;                            \
	}

/* All that is beside and in these items, by the check of the store. */
static const struct probe_op checking[] = {
	{ "verify", probe_verify,
	  "ok, conflicts 0 0+0; 1: ~/~O 2: ~/~O~O~ 3: ~/~O 4: ~/O 5: ~/~O~O 6-11: "
	  "~O~/~O~O~O 12-14: ~/~O~ 15-16: ~/~O~O 17: ~/~O~O~ 18: ~/~O~O 19: ~/~O~O~O 20: "
	  "~/~O~O 21: ~/~O~O~O~O~O 22: ~/~O~ 23-25: O/O 26: O/ 27-29: O/O 30-36: ~/~ 37: "
	  "~/O 38: ~/~O 39-40: ~/~ 41-42: ~/~O 43-44: ~/~ 45: ~/~O 46-48: ~/~ 49-50: ~/O "
	  "51: ~O/~O~O~O 52: ~O/~O~O 53: ~/~O~O~O~O~ 54: ~/~ 55: ~/O 56: ~O/O 57: O/ 58: "
	  "~/~ 59: ~/O 60: ~O/~O~O 61: ~/~ 62-63: ~/O 64: ~/~O~O~O 65-66: ~/~ 67-68: O/O "
	  "69-70: ~/~ 71: ~/~O 72: ~/~ 73: ~/~O~O~ 74: O/ 75-76: ~O/~O~O 77: ~/~O~O~O 78: "
	  "~O/~O~O 79-81: ~/~ 82: ~/O 83: O/O 84: ~/O 85-86: ~O/~O~O 87: ~O/O 88: ~/O 89: "
	  "~/~ 90: ~/O 91-92: O/O 93: ~/~O~O~O 94: O/O 95-96: O/ 97: ~O/O 98-99: ~/O "
	  "100-101: O/O" }
};

static void
checks_find_what_is_damaged(void **state)
{
	struct world *w = *state;

	probe_each_throughout(w->store, w, checking, 1);
}

static void
checks_find_what_is_lost_or_foreign(void **state)
{
	struct world *w = *state;

	probe_pairs(w->store, w, checking,
		    "1: O 2-3: ~ 4-11: O 12-23: ~ 24-26: O 27-44: ~ 45-46: O 47-51: ~ 52-53: O "
		    "54-71: ~ 72-73: O 74-79: ~ 80: O 81-87: ~",
		    "1-22: ~ 23-24: O 25-87: ~");
}

INSPECT(inspect_none, "nothing", 0)
INSPECT(inspect_value, "value", 1)
INSPECT(inspect_list, "list", 2)

/* A damaged header leads to itself, which is not as many as there are of the list. */
static const struct probe_op inspecting[] = {
	{ "nothing", inspect_none, "ok, conflicts 1 0+0" },
	{ "a value", inspect_value, "ok, conflicts 1 0+0; 1: O/O" },
	{ "a list", inspect_list, "ok, conflicts 1 0+0; 1: ?/?O?~?O" },
};

static void
a_key_leads_to_its_header_and_its_body(void **state)
{
	struct world *w = *state;

	probe_each(w->store, w, inspecting, COUNT(inspecting));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(pairs_are_drawn_unless_they_are_damaged, setup,
						teardown),
		cmocka_unit_test_setup_teardown(checks_find_what_is_damaged, setup, teardown),
		cmocka_unit_test_setup_teardown(checks_find_what_is_lost_or_foreign, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_key_leads_to_its_header_and_its_body, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
