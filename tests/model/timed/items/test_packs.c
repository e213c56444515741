/*
 * Small collections, whose members lie in the header: when they do, when they move into a body, who
 * conflicts, and that a check finds what cannot be in one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "items_model.h"
#include "kv/tuple.h"
#include "model/timed/items/item_int.h"
#include "model/timed/items/pack.h"
#include "store.h"
#include "verified.h"

enum {
	HISTORY_SECONDS = 1000,
	LATER_US = 5000,
	PAGE_MEMBERS = 8,
};

static const enum timed_type types[] = { TIMED_HASH, TIMED_SET, TIMED_ZSET };

/* Puts members into the item "c", each in a call of its own. */
struct put {
	enum timed_type type;
	unsigned first;
	unsigned count;
	size_t name_bytes; /* at least */
	uint64_t expires_ms;
	uint64_t written_us; /* 0: now */
};

static struct str
name_of(struct arena *arena, unsigned n, size_t least)
{
	struct str name = arena_printf(arena, "member%03u", n);
	char *bytes;

	if (name.len >= least)
		return name;
	bytes = arena_bytes(arena, least);
	memset(bytes, 'x', least);
	memcpy(bytes, name.ptr, name.len);
	return str_of(bytes, least);
}

static enum status
put_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct put *p = arg;
	struct timed_item item;

	if (p->written_us)
		TRY(timed_written_at(t, p->written_us));
	TRY(timed_item_open(t, STR("c"), arena, &item));
	for (unsigned i = p->first; i < p->first + p->count; i++) {
		struct timed_member m = { .name = name_of(arena, i, p->name_bytes),
					  .value = STR("value"),
					  .score = i,
					  .expires_ms = p->expires_ms };

		TRY(timed_members_put(&item, p->type, &m, 1));
	}
	return STATUS_OK;
}

static enum status
remove_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct put *p = arg;
	struct timed_item item;

	TRY(timed_item_open(t, STR("c"), arena, &item));
	for (unsigned i = p->first; i < p->first + p->count; i++) {
		struct timed_member m = { .name = name_of(arena, i, p->name_bytes) };

		TRY(timed_members_delete(&item, &m, 1));
		assert_true(m.found);
	}
	return STATUS_OK;
}

struct state {
	bool packed;
	uint64_t count;
	uint64_t write_us[ITEMS_POPPED]; /* of the first members, in the order of their hash */
};

static enum status
state_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_members page;
	struct state *ret = arg;
	struct timed_item item;

	TRY(timed_item_open(t, STR("c"), arena, &item));
	ret->packed = item.packed;
	TRY(timed_count(&item, &ret->count));
	TRY(timed_members_page(&item, 0, SIZE_MAX, &page));
	assert_int_equal(page.count, ret->count);
	for (size_t i = 0; i < page.count && i < ITEMS_POPPED; i++)
		ret->write_us[i] = page.members[i].write_us;
	return STATUS_OK;
}

static void
expect(struct items *f, bool packed, uint64_t count)
{
	struct state s;

	items_must(f, state_run, &s);
	assert_int_equal(s.packed, packed);
	assert_int_equal(s.count, count);
	if (packed)
		assert_int_equal(items_pairs(f, SPACE_BODY), 0);
	verified_none(f->store);
}

static enum status
clear_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_item item;

	(void)arg;
	TRY(timed_item_open(t, STR("c"), arena, &item));
	return timed_item_delete(&item);
}

static void
clear(struct items *f)
{
	items_must(f, clear_run, NULL);
	items_sweep(f);
	assert_int_equal(items_pairs(f, SPACE_ROWS), 0);
	assert_int_equal(items_pairs(f, SPACE_BODY), 0);
}

static enum status
page_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_members page;
	struct timed_item item;

	(void)arg;
	TRY(timed_item_open(t, STR("c"), arena, &item));
	TRY(timed_members_page(&item, 0, SIZE_MAX, &page));
	assert_true(item.packed);
	assert_int_equal(page.count, PAGE_MEMBERS);
	for (size_t i = 1; i < page.count; i++)
		assert_true(timed_hash16(page.members[i - 1].name) <=
			    timed_hash16(page.members[i].name));
	return STATUS_OK;
}

/* As they would be in a body, whichever order the header has them in. */
static void
a_page_has_members_in_the_order_of_their_hashes(void **state)
{
	struct items *f = *state;

	for (size_t i = 0; i < 3; i++) {
		items_must(f, put_run, &(struct put){ .type = types[i], .count = PAGE_MEMBERS });
		items_must(f, page_run, NULL);
		clear(f);
	}
}

static void
a_new_small_collection_is_one_pair(void **state)
{
	struct items *f = *state;

	for (size_t i = 0; i < 3; i++) {
		items_must(f, put_run, &(struct put){ .type = types[i], .count = 3 });
		/* The header, the clock, the count of items. */
		assert_in_range(f->cost.sets, 3, 3 * 3);
		expect(f, true, 3);
		items_must(f, remove_run, &(struct put){ .type = types[i], .count = 3 });
		assert_int_equal(items_pairs(f, SPACE_ROWS), 0);
	}
}

static void
one_with_too_many_members_moves_into_a_body_and_stays_there(void **state)
{
	struct items *f = *state;

	for (size_t i = 0; i < 3; i++) {
		items_must(f, put_run,
			   &(struct put){ .type = types[i], .count = TIMED_PACK_MEMBERS });
		expect(f, true, TIMED_PACK_MEMBERS);
		items_must(
			f, put_run,
			&(struct put){ .type = types[i], .first = TIMED_PACK_MEMBERS, .count = 1 });
		expect(f, false, TIMED_PACK_MEMBERS + 1);
		items_must(
			f, remove_run,
			&(struct put){ .type = types[i], .first = 1, .count = TIMED_PACK_MEMBERS });
		expect(f, false, 1);
		clear(f);
		/* In one transaction. */
		items_must(f, put_run,
			   &(struct put){ .type = types[i], .count = 2 * TIMED_PACK_MEMBERS });
		expect(f, false, 2 * TIMED_PACK_MEMBERS);
		clear(f);
	}
}

static void
one_with_too_many_bytes_moves_into_a_body(void **state)
{
	struct items *f = *state;
	const size_t bytes = TIMED_PACK_BYTES / 4;

	for (size_t i = 0; i < 3; i++) {
		items_must(f, put_run,
			   &(struct put){
				   .type = types[i], .first = 0, .count = 3, .name_bytes = bytes });
		expect(f, true, 3);
		items_must(f, put_run,
			   &(struct put){
				   .type = types[i], .first = 3, .count = 1, .name_bytes = bytes });
		expect(f, false, 4);
		clear(f);
		items_must(f, put_run,
			   &(struct put){ .type = types[i],
					  .first = 0,
					  .count = 1,
					  .name_bytes = TIMED_WHOLE_BYTES });
		expect(f, true, 1);
		items_must(f, put_run,
			   &(struct put){ .type = types[i],
					  .first = 1,
					  .count = 1,
					  .name_bytes = TIMED_WHOLE_BYTES + 1 });
		expect(f, false, 2);
		clear(f);
	}
}

static void
one_whose_member_shall_expire_moves_into_a_body(void **state)
{
	struct items *f = *state;

	items_must(f, put_run, &(struct put){ .type = TIMED_HASH, .count = 3 });
	expect(f, true, 3);
	items_must(f, put_run,
		   &(struct put){ .type = TIMED_HASH,
				  .first = 1,
				  .count = 1,
				  .expires_ms = f->now_ms + 1000 * 1000 });
	expect(f, false, 3);
	clear(f);
}

static void
members_keep_their_write_times(void **state)
{
	const uint64_t at_us[] = { ITEMS_START_MS * 900, ITEMS_START_MS * 900 + LATER_US };
	struct items *f = *state;
	struct state packed, moved;

	for (unsigned i = 0; i < 2; i++)
		items_must(f, put_run,
			   &(struct put){ .type = TIMED_SET,
					  .first = i,
					  .count = 1,
					  .written_us = at_us[1 - i] });
	items_must(f, state_run, &packed);
	assert_true(packed.packed);
	assert_int_equal(packed.write_us[0] + packed.write_us[1], at_us[0] + at_us[1]);
	assert_int_not_equal(packed.write_us[0], packed.write_us[1]);
	items_must(f, put_run,
		   &(struct put){ .type = TIMED_SET,
				  .first = 2,
				  .count = 1,
				  .name_bytes = TIMED_PACK_BYTES,
				  .written_us = LATER_US });
	items_must(f, remove_run,
		   &(struct put){ .type = TIMED_SET,
				  .first = 2,
				  .count = 1,
				  .name_bytes = TIMED_PACK_BYTES });
	items_must(f, state_run, &moved);
	assert_false(moved.packed);
	assert_int_equal(moved.count, 2);
	assert_memory_equal(moved.write_us, packed.write_us, 2 * sizeof(packed.write_us[0]));
	clear(f);
}

static enum status
history_run(struct timed *t, struct arena *arena, void *arg)
{
	(void)arena;
	return timed_history_set(t, (struct timed_history_bounds){ .seconds = *(uint64_t *)arg });
}

static void
a_change_with_history_moves_members_into_a_body(void **state)
{
	struct items *f = *state;
	uint64_t seconds = HISTORY_SECONDS;

	for (size_t i = 0; i < 3; i++) {
		items_must(f, put_run, &(struct put){ .type = types[i], .count = 3 });
		expect(f, true, 3);
		items_must(f, history_run, &seconds);
		/* What a set has already is not written; a field of a hash is. */
		if (types[i] != TIMED_HASH)
			items_must(f, put_run, &(struct put){ .type = types[i], .count = 3 });
		expect(f, true, 3);
		if (i == 1)
			items_must(f, remove_run,
				   &(struct put){ .type = types[i], .first = 1, .count = 1 });
		else
			items_must(f, put_run,
				   &(struct put){ .type = types[i], .first = 3, .count = 1 });
		expect(f, false, i == 1 ? 2 : 4);
		items_must(f, clear_run, NULL);
		/* A new one is never packed. */
		items_must(f, put_run, &(struct put){ .type = types[i], .count = 1 });
		expect(f, false, 1);
		items_must(f, history_run, &(uint64_t){ 0 });
		items_sweep(f);
		clear(f);
	}
}

/* ---- Two at once ---- */

static void
writers_of_one_packed_collection_conflict(void **state)
{
	struct items *f = *state;
	struct put put[2] = { { .type = TIMED_HASH, .first = 1, .count = 1 },
			      { .type = TIMED_HASH, .first = 2, .count = 1 } };
	struct kv_tx *txs[2];

	/* With faults nobody knows what becomes of a commit. */
	if (test_store_fails())
		return;
	items_must(f, put_run, &(struct put){ .type = TIMED_HASH, .first = 0, .count = 1 });
	arena_clear(f->arena);
	for (size_t i = 0; i < 2; i++)
		txs[i] = items_open(f, false, put_run, &put[i]);
	assert_int_equal(items_commit(txs[0]), STATUS_OK);
	assert_int_equal(items_commit(txs[1]), STATUS_TX_CONFLICT);
	expect(f, true, 2);
	/* In a body they do not. */
	items_must(f, put_run,
		   &(struct put){ .type = TIMED_HASH, .first = 100, .count = TIMED_PACK_MEMBERS });
	arena_clear(f->arena);
	for (size_t i = 0; i < 2; i++) {
		put[i].first += 10;
		txs[i] = items_open(f, false, put_run, &put[i]);
	}
	assert_int_equal(items_commit(txs[0]), STATUS_OK);
	assert_int_equal(items_commit(txs[1]), STATUS_OK);
	expect(f, false, 2 + TIMED_PACK_MEMBERS + 2);
	clear(f);
}

/* ---- Damage ---- */

/* Makes a pack that cannot be, or a count that is not that of its members. */
static enum status
damage_run(struct timed *t, struct arena *arena, void *arg)
{
	const unsigned *kind = arg;
	struct timed_header h;
	struct buf value = timed_arena_buf(arena, 4096);
	struct timed_item item;
	struct str stored;
	char *bytes;

	TRY(timed_item_open(t, STR("c"), arena, &item));
	TRY(timed_data_get(t, item.row, KV_READ, arena, &stored));
	TRY(timed_header_parse(stored, &h, t->err));
	assert_true(h.packed);
	if (*kind == 0) {
		h.length++;
	} else if (*kind == 1) { /* another name with that hash */
		bytes = arena_bytes(arena, h.value.len);
		memcpy(bytes, h.value.ptr, h.value.len);
		bytes[h.value.len - 1] ^= 1;
		h.value.ptr = bytes;
	} else {
		h.value.len--;
	}
	timed_header_put(&h, &value);
	TRY(buf_status(&value));
	return timed_data_set(t, item.row, buf_str(&value));
}

static enum status
read_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_member m = { .name = STR("member000") };
	struct timed_item item;
	struct err err = { 0 };

	(void)arg;
	t->err = &err;
	TRY(timed_item_open(t, STR("c"), arena, &item));
	return timed_members_get(&item, &m, 1) == STATUS_CORRUPT ? STATUS_INVALID : STATUS_OK;
}

static void
a_check_finds_members_that_cannot_be(void **state)
{
	struct items *f = *state;
	struct verified found;

	for (unsigned kind = 0; kind < 3; kind++) {
		items_must(f, put_run, &(struct put){ .type = TIMED_SET, .count = 3 });
		verified_none(f->store);
		items_must(f, damage_run, &kind);
		verified_read(f->store, &found);
		assert_true(found.count == 1);
		assert_string_equal(found.last, "item_header: not the members of an item");
		/* Who reads one whose hash is wrong does not see that. */
		assert_int_equal(items_try(f, "0", read_run, NULL),
				 kind == 1 ? STATUS_OK : STATUS_INVALID);
		clear(f);
	}
}

static enum status
open_run(struct timed *t, struct arena *arena, void *arg)
{
	const size_t *bytes = arg;
	struct timed_item item;

	return timed_item_open(t, str_of(arena_zalloc(arena, *bytes), *bytes), arena, &item);
}

static void
a_key_has_bounded_bytes(void **state)
{
	struct items *f = *state;
	size_t bytes = TIMED_ITEM_KEY_BYTES;

	assert_int_equal(items_try(f, "0", open_run, &bytes), STATUS_OK);
	bytes++;
	assert_int_equal(items_try(f, "0", open_run, &bytes), STATUS_KEY_TOO_LARGE);
}

/* Numbers are in their shortest form, also where records are read faster. */
static void
a_zero_of_two_bytes_is_no_type(void **state)
{
	const struct timed_cell leaf = { .type = TIMED_LEAF,
					 .write_us = UINT64_C(1) << 50,
					 .by_default = true,
					 .at_ms = TIMED_CELL_NEVER,
					 .value = STR("\x15\x07") };
	AUTO(buf_release) struct buf value = BUF_INIT(100);
	AUTO(buf_release) struct buf longer = BUF_INIT(100);
	struct timed_cell read;
	struct err err;

	(void)state;
	timed_cell_put(&leaf, &value);
	assert_int_equal(timed_cell_parse(buf_str(&value), &read, &err), STATUS_OK);
	assert_int_equal(read.type, TIMED_LEAF);
	assert_int_equal(read.write_us, leaf.write_us);
	/* (format, 0, …) */
	assert_memory_equal(value.ptr + 2, "\x14", 1);
	buf_append(&longer, value.ptr, 2);
	buf_append(&longer, "\x15\0", 2);
	buf_append(&longer, value.ptr + 3, value.len - 3);
	assert_int_equal(timed_cell_parse(buf_str(&longer), &read, &err), STATUS_CORRUPT);
}

static enum status
pack_status(enum timed_type type, const char *first, const char *second)
{
	AUTO(buf_release) struct buf bytes = BUF_INIT(TIMED_PACK_BYTES);
	const char *const names[] = { first, second };
	struct timed_pack pack = { .type = type, .count = 2 }, read;

	for (size_t i = 0; i < 2; i++)
		pack.members[i] = (struct timed_pack_member){ .name = str_from_cstr(names[i]),
							      .value = STR(""),
							      .write_us = LATER_US };
	timed_pack_put(&pack, &bytes);
	assert_int_equal(buf_status(&bytes), STATUS_OK);
	return timed_pack_parse(type, buf_str(&bytes), &read);
}

static void
members_of_a_pack_are_in_their_order(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		assert_int_equal(pack_status(types[i], "a", "b"), STATUS_OK);
		assert_int_equal(pack_status(types[i], "b", "a"), STATUS_CORRUPT);
		assert_int_equal(pack_status(types[i], "a", "a"), STATUS_CORRUPT);
	}
}

/* And nothing is read behind it: sanitizers look at that. */
static void
a_pack_that_is_cut_is_damage(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		AUTO(buf_release) struct buf bytes = BUF_INIT(TIMED_PACK_BYTES);
		struct timed_pack pack = { .type = types[i], .count = 1 }, read;

		pack.members[0] = (struct timed_pack_member){ .name = STR(""),
							      .value = STR(""),
							      .write_us = LATER_US };
		timed_pack_put(&pack, &bytes);
		assert_int_equal(buf_status(&bytes), STATUS_OK);
		assert_int_equal(timed_pack_parse(types[i], buf_str(&bytes), &read), STATUS_OK);
		for (size_t len = 1; len < bytes.len; len++) {
			char *cut = malloc(len);

			assert_non_null(cut);
			memcpy(cut, bytes.ptr, len);
			assert_int_equal(timed_pack_parse(types[i], str_of(cut, len), &read),
					 STATUS_CORRUPT);
			free(cut);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_new_small_collection_is_one_pair, items_setup,
						items_teardown),
		cmocka_unit_test_setup_teardown(a_page_has_members_in_the_order_of_their_hashes,
						items_setup, items_teardown),
		cmocka_unit_test_setup_teardown(
			one_with_too_many_members_moves_into_a_body_and_stays_there, items_setup,
			items_teardown),
		cmocka_unit_test_setup_teardown(one_with_too_many_bytes_moves_into_a_body,
						items_setup, items_teardown),
		cmocka_unit_test_setup_teardown(one_whose_member_shall_expire_moves_into_a_body,
						items_setup, items_teardown),
		cmocka_unit_test_setup_teardown(members_keep_their_write_times, items_setup,
						items_teardown),
		cmocka_unit_test_setup_teardown(a_change_with_history_moves_members_into_a_body,
						items_setup, items_teardown),
		cmocka_unit_test_setup_teardown(writers_of_one_packed_collection_conflict,
						items_setup, items_teardown),
		cmocka_unit_test_setup_teardown(a_check_finds_members_that_cannot_be, items_setup,
						items_teardown),
		cmocka_unit_test(members_of_a_pack_are_in_their_order),
		cmocka_unit_test(a_pack_that_is_cut_is_damage),
		cmocka_unit_test(a_zero_of_two_bytes_is_no_type),
		cmocka_unit_test_setup_teardown(a_key_has_bounded_bytes, items_setup,
						items_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
