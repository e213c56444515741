/* Items at their limits, to the byte and to the member, and one beyond. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "items_model.h"
#include "model/timed/items/item_int.h"
#include "model/timed/items/json.h"
#include "store.h"

enum {
	MEMBERS = 40,
	PIECES_BYTES = TIMED_RECORD_BYTES + 1,
};

static struct str
text_of(struct arena *arena, size_t bytes)
{
	char *text = arena_bytes(arena, bytes);

	assert_non_null(text);
	memset(text, 'x', bytes);
	return str_of(text, bytes);
}

/* ---- Members ---- */

static enum status
fill_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_member members[MEMBERS] = { 0 };
	struct timed_item item;

	(void)arg;
	TRY(timed_item_open(t, STR("s"), arena, &item));
	for (unsigned i = 0; i < MEMBERS; i++)
		members[i].name = arena_printf(arena, "m%u", i);
	/* This name is too long for a header. */
	members[0].name = text_of(arena, TIMED_WHOLE_BYTES + 1);
	return timed_members_put(&item, TIMED_SET, members, MEMBERS);
}

/* No two of these members have the same hash. */
static enum status
pages_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_members page;
	struct timed_item item;

	(void)arg;
	TRY(timed_item_open(t, STR("s"), arena, &item));
	for (size_t least = 1; least <= MEMBERS + 1; least++) {
		uint64_t from = 0;
		size_t count = 0;

		do {
			TRY(timed_members_page(&item, from, least, &page));
			count += page.count;
			assert_true(page.next ? page.count == least : page.count <= least);
			from = page.next;
		} while (from);
		assert_int_equal(count, MEMBERS);
	}
	return STATUS_OK;
}

static void
a_page_has_as_many_members_as_are_asked_for(void **state)
{
	items_must(*state, fill_run, NULL);
	items_must(*state, pages_run, NULL);
}

static enum status
long_fill_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_member member = { .name = STR("m"), .value = text_of(arena, PIECES_BYTES) };
	struct timed_item item;

	(void)arg;
	TRY(timed_item_open(t, STR("h"), arena, &item));
	return timed_members_put(&item, TIMED_HASH, &member, 1);
}

static enum status
long_get_run(struct timed *t, struct arena *arena, void *arg)
{
	static const size_t mosts[] = { 10, 0, PIECES_BYTES - 1, PIECES_BYTES };
	struct timed_item item;

	(void)arg;
	TRY(timed_item_open(t, STR("h"), arena, &item));
	for (size_t i = 0; i < sizeof(mosts) / sizeof(mosts[0]); i++) {
		bool fits = !mosts[i] || mosts[i] >= PIECES_BYTES;
		struct timed_member member = { .name = STR("m"), .most = mosts[i] };

		/* What an item remembers of its last member was looked for with another limit. */
		item.recent = i == 1 ? item.recent : NULL;
		TRY(timed_members_get(&item, &member, 1));
		assert_true(member.found);
		assert_int_equal(member.too_long, !fits);
		assert_int_equal(member.value_len, PIECES_BYTES);
		assert_int_equal(member.value.len, fits ? PIECES_BYTES : 0);
	}
	return STATUS_OK;
}

static void
a_value_that_is_too_long_is_read_by_who_wants_all_of_it(void **state)
{
	items_must(*state, long_fill_run, NULL);
	items_must(*state, long_get_run, NULL);
}

/* ---- Elements ---- */

enum element {
	FIELD,  /* of a hash: its name and its value */
	MEMBER, /* of a set */
	PUSHED, /* to a list */
	ELEMENTS,
};

struct attempt {
	enum element element;
	size_t more; /* bytes than are allowed */
};

static enum status
element_put(struct timed_item *item, enum element element, struct str value)
{
	struct timed_member field = { .name = str_of(value.ptr, 5), .value = str_skip(value, 5) };
	struct timed_member member = { .name = value };

	switch (element) {
	case FIELD:
		return timed_members_put(item, TIMED_HASH, &field, 1);
	case MEMBER:
		return timed_members_put(item, TIMED_SET, &member, 1);
	case PUSHED:
		return timed_list_push(item, false, &value, 1);
	case ELEMENTS:
		break;
	}
	return STATUS_INVALID;
}

static enum status
element_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct attempt *a = arg;
	struct timed_item item;

	TRY(timed_item_open(t, STR("large"), arena, &item));
	return element_put(&item, a->element, text_of(arena, TIMED_ELEMENT_BYTES + a->more));
}

static enum status
delete_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_item item;

	(void)arg;
	TRY(timed_item_open(t, STR("large"), arena, &item));
	return timed_item_delete(&item);
}

static void
an_element_has_as_many_bytes_as_it_may(void **state)
{
	struct items *f = *state;

	for (enum element element = FIELD; element < ELEMENTS; element++) {
		struct attempt a = { .element = element };

		items_must(f, element_run, &a);
		items_must(f, delete_run, NULL);
		a.more = 1;
		assert_int_equal(items_try(f, "0", element_run, &a), STATUS_VALUE_TOO_LARGE);
	}
	items_sweep(f);
	items_verify(f);
}

/* ---- Items that are not there ---- */

/* Nothing is read of an item that is not there, in whichever way it is asked for. */
static enum status
absent_run(struct timed *t, struct arena *arena, void *arg)
{
	static const enum timed_zset_by ways[] = { TIMED_BY_RANK, TIMED_BY_SCORE, TIMED_BY_NAME };
	struct timed_members members;
	struct timed_item item;
	uint64_t count, reads;

	(void)arg;
	TRY(timed_item_open(t, STR("absent"), arena, &item));
	TRY(timed_now(t));
	reads = kv_tx_stats(t->tx).reads;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		for (uint64_t skip = 0; skip < 2; skip++) {
			struct timed_zset_range range = {
				.by = ways[i], .to = UINT64_MAX, .skip = skip, .limit = 10
			};

			range.reverse = skip;
			TRY(timed_zset_range(&item, &range, &members));
			assert_int_equal(members.count, 0);
			TRY(timed_zset_range_count(&item, &range, &count));
			assert_int_equal(count, 0);
		}
	}
	TRY(timed_zset_pop(&item, false, 5, &members));
	assert_int_equal(members.count, 0);
	assert_int_equal(kv_tx_stats(t->tx).reads, reads);
	return STATUS_OK;
}

/* The same of no members of an item that is there. */
static enum status
none_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_zset_range range = { .by = TIMED_BY_SCORE, .skip = 1 };
	struct timed_members members;
	struct timed_item item;
	uint64_t reads;

	(void)arg;
	TRY(timed_item_open(t, STR("z"), arena, &item));
	TRY(timed_now(t));
	assert_int_equal(item.type, TIMED_ZSET);
	reads = kv_tx_stats(t->tx).reads;
	TRY(timed_zset_range(&item, &range, &members));
	assert_int_equal(members.count, 0);
	TRY(timed_zset_pop(&item, false, 0, &members));
	assert_int_equal(members.count, 0);
	assert_int_equal(kv_tx_stats(t->tx).reads, reads);
	return STATUS_OK;
}

static enum status
zset_run(struct timed *t, struct arena *arena, void *arg)
{
	/* Too long for a header, so it is in the body. */
	struct timed_member member = { .name = text_of(arena, TIMED_WHOLE_BYTES + 1), .score = 1 };
	struct timed_item item;

	(void)arg;
	TRY(timed_item_open(t, STR("z"), arena, &item));
	return timed_members_put(&item, TIMED_ZSET, &member, 1);
}

static void
what_is_not_there_is_not_read(void **state)
{
	items_must(*state, absent_run, NULL);
	items_must(*state, zset_run, NULL);
	items_must(*state, none_run, NULL);
}

static enum status
packed_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_member member = { .name = STR("m") };
	struct timed_item item;

	(void)arg;
	TRY(timed_item_open(t, STR("packed"), arena, &item));
	return timed_members_put(&item, TIMED_SET, &member, 1);
}

/* Members of none, of a range that is empty, of a page behind the last one. */
static enum status
no_members_run(struct timed *t, struct arena *arena, void *arg)
{
	static const char *const keys[] = { "absent", "packed", "s" };
	struct timed_members members;
	struct kv_tx_stats before, after;
	struct timed_items page;
	struct timed_item item;
	enum timed_swept swept;
	enum timed_type type;
	uint64_t count;

	(void)arg;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		TRY(timed_item_open(t, str_from_cstr(keys[i]), arena, &item));
		TRY(timed_item_wait(&item));
		type = item.type;
		assert_int_equal(type, i ? TIMED_SET : TIMED_LEAF);
		before = kv_tx_stats(t->tx);
		TRY(timed_members_get(&item, NULL, 0));
		TRY(timed_members_put(&item, TIMED_SET, NULL, 0));
		TRY(timed_members_delete(&item, NULL, 0));
		TRY(timed_members_between(&item, 7, 7, 10, &members));
		assert_int_equal(members.count, 0);
		TRY(timed_members_between(&item, 8, 7, 10, &members));
		assert_int_equal(members.count, 0);
		TRY(timed_members_page(&item, TIMED_HASHES, 10, &members));
		assert_int_equal(members.count, 0);
		assert_int_equal(members.next, 0);
		TRY(timed_item_sweep(&item, &swept));
		assert_int_equal(swept, TIMED_SWEPT_NOTHING);
		after = kv_tx_stats(t->tx);
		assert_int_equal(after.sets, before.sets);
		assert_int_equal(after.clears, before.clears);
		assert_int_equal(item.type, type);
	}
	TRY(timed_items_page(t, TIMED_HASHES, 10, arena, &page));
	assert_int_equal(page.count, 0);
	assert_int_equal(page.next, 0);
	TRY(timed_item_open(t, STR("absent"), arena, &item));
	before = kv_tx_stats(t->tx);
	TRY(timed_item_delete(&item));
	TRY(timed_item_remove(&item));
	TRY(timed_count(&item, &count));
	assert_int_equal(count, 0);
	after = kv_tx_stats(t->tx);
	assert_int_equal(after.reads, before.reads);
	assert_int_equal(after.sets, before.sets);
	assert_int_equal(after.clears, before.clears);
	return STATUS_OK;
}

/* Who has few members has to read them all. */
static enum status
draw_none_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_members members;
	struct timed_item item;

	(void)arg;
	TRY(timed_item_open(t, STR("absent"), arena, &item));
	TRY(timed_members_draw(&item, 3, true, &members));
	assert_int_equal(members.count, 0);
	TRY(timed_item_open(t, STR("packed"), arena, &item));
	TRY_WANT(STATUS_NOT_FOUND, timed_members_draw(&item, 1, false, &members));
	TRY(timed_item_open(t, STR("s"), arena, &item));
	TRY_WANT(STATUS_NOT_FOUND, timed_members_draw(&item, 0, true, &members));
	TRY_WANT(STATUS_NOT_FOUND, timed_members_draw(&item, 1, true, &members));
	assert_int_equal(members.count, 0);
	return STATUS_OK;
}

static void
nothing_is_done_with_no_members(void **state)
{
	struct items *f = *state;

	items_must(f, fill_run, NULL);
	items_must(f, packed_run, NULL);
	items_must(f, no_members_run, NULL);
	items_must(f, draw_none_run, NULL);
	items_verify(f);
}

enum {
	DRAWN = 64, /* at once: about one in two such draws would have a member twice by chance */
	DRAWN_MEMBERS = TIMED_DRAW_SHARE * DRAWN,
	DRAWS = 32,
};

static enum status
many_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_member *members = arena_zalloc(arena, DRAWN_MEMBERS * sizeof(*members));
	size_t count = *(size_t *)arg;
	struct timed_item item;

	TRY(timed_item_open(t, STR("h"), arena, &item));
	TRY(timed_item_delete(&item));
	for (size_t i = 0; i < count; i++)
		members[i].name = arena_printf(arena, "m%zu", i);
	return timed_members_put(&item, TIMED_HASH, members, count);
}

static enum status
draw_run(struct timed *t, struct arena *arena, void *arg)
{
	size_t count = *(size_t *)arg, most = count / TIMED_DRAW_SHARE;
	struct timed_members members;
	struct timed_item item;

	TRY(timed_item_open(t, STR("h"), arena, &item));
	TRY_WANT(STATUS_NOT_FOUND, timed_members_draw(&item, most + 1, true, &members));
	TRY_WANT(STATUS_NOT_FOUND, timed_members_draw(&item, most + 1, false, &members));
	if (!most)
		return STATUS_OK;
	TRY(timed_members_draw(&item, most, true, &members));
	assert_int_equal(members.count, most);
	TRY(timed_members_draw(&item, most, false, &members));
	assert_int_equal(members.count, most);
	for (size_t i = 0; i < most; i++)
		for (size_t j = 0; j < i; j++)
			assert_false(str_eq(members.members[i].name, members.members[j].name));
	return STATUS_OK;
}

static enum status
draws_run(struct timed *t, struct arena *arena, void *arg)
{
	for (unsigned i = 0; i < DRAWS; i++)
		TRY(draw_run(t, arena, arg));
	return STATUS_OK;
}

static void
a_share_of_the_members_is_drawn(void **state)
{
	size_t most = DRAWN_MEMBERS;

	for (size_t n = 2; n <= 3; n++) {
		size_t counts[] = { TIMED_DRAW_SHARE * n - 1, TIMED_DRAW_SHARE * n };

		for (size_t i = 0; i < 2; i++) {
			items_must(*state, many_run, &counts[i]);
			items_must(*state, draw_run, &counts[i]);
		}
	}
	items_must(*state, many_run, &most);
	items_must(*state, draws_run, &most);
}

/* Sets when the item expires, and says whether it is there then. */
struct lapsing {
	struct timed_expiry expiry;
	int64_t after_ms; /* behind the moment of the transaction, of TIMED_EXPIRY_AT */
	bool gone;
};

static enum status
lapse_run(struct timed *t, struct arena *arena, void *arg)
{
	struct lapsing *l = arg;
	struct timed_member member = { .name = STR("m") };
	struct timed_item item;

	TRY(timed_item_open(t, STR("lapsing"), arena, &item));
	TRY(timed_members_put(&item, TIMED_SET, &member, 1));
	TRY(timed_now(t));
	if (l->expiry.kind == TIMED_EXPIRY_AT)
		l->expiry.ms = (uint64_t)((int64_t)(t->now_us / TIMED_US_PER_MS) + l->after_ms);
	TRY(timed_item_expire(&item, l->expiry));
	timed_item_lapse(&item);
	l->gone = item.type == TIMED_LEAF;
	assert_true(l->gone || item.type == TIMED_SET);
	return STATUS_OK;
}

static void
an_item_lapses_with_the_moment_of_its_expiry(void **state)
{
	struct lapsing cases[] = {
		{ .expiry.kind = TIMED_EXPIRY_NEVER },
		{ .expiry.kind = TIMED_EXPIRY_AT, .after_ms = 1 },
		{ .expiry.kind = TIMED_EXPIRY_AT, .after_ms = 0, .gone = true },
		{ .expiry.kind = TIMED_EXPIRY_AT, .after_ms = -1, .gone = true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool gone = cases[i].gone;

		items_must(*state, lapse_run, &cases[i]);
		if (cases[i].gone != gone)
			fail_msg("%lld ms behind it is%s there", (long long)cases[i].after_ms,
				 gone ? "" : " not");
	}
}

/* ---- Values ---- */

struct ends {
	uint64_t offset;
	size_t len;
};

/* Where more bytes would be too many, they are not looked at. */
static enum status
end_write_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct ends *e = arg;
	struct timed_item item;

	TRY(timed_item_open(t, STR("v"), arena, &item));
	return timed_value_write(&item, e->offset, str_of("abc", e->len));
}

static enum status
end_set_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct timed_expiry never = { TIMED_EXPIRY_NEVER, 0 };
	const struct ends *e = arg;
	struct timed_item item;

	TRY(timed_item_open(t, STR("v"), arena, &item));
	return timed_value_set(&item, str_of("abc", e->len), never);
}

static enum status
end_get_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_item item;
	struct str value;

	(void)arg;
	TRY(timed_item_open(t, STR("v"), arena, &item));
	assert_int_equal(item.length, TIMED_LENGTH_BYTES);
	TRY(timed_value_get(&item, TIMED_LENGTH_BYTES - 4, 4, &value));
	assert_true(str_eq(value, STR("\0abc")));
	return STATUS_OK;
}

static void
a_value_ends_where_values_may_end(void **state)
{
	static const struct ends beyond[] = {
		{ TIMED_LENGTH_BYTES - 2, 3 }, { TIMED_LENGTH_BYTES, 1 },
		{ TIMED_LENGTH_BYTES + 1, 0 }, { UINT64_MAX, 3 },
		{ 0, TIMED_LENGTH_BYTES + 1 }, { UINT64_MAX, SIZE_MAX },
	};
	struct ends last = { TIMED_LENGTH_BYTES - 3, 3 };

	items_must(*state, end_write_run, &last);
	for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
		struct ends e = beyond[i];

		assert_int_equal(items_try(*state, "0", end_write_run, &e), STATUS_VALUE_TOO_LARGE);
		if (e.len > TIMED_LENGTH_BYTES)
			assert_int_equal(items_try(*state, "0", end_set_run, &e),
					 STATUS_VALUE_TOO_LARGE);
	}
	items_must(*state, end_get_run, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define WITH_STORE(name) cmocka_unit_test_setup_teardown(name, items_setup, items_teardown)
		WITH_STORE(a_page_has_as_many_members_as_are_asked_for),
		WITH_STORE(a_value_that_is_too_long_is_read_by_who_wants_all_of_it),
		WITH_STORE(what_is_not_there_is_not_read),
		WITH_STORE(nothing_is_done_with_no_members),
		WITH_STORE(a_share_of_the_members_is_drawn),
		WITH_STORE(an_item_lapses_with_the_moment_of_its_expiry),
		WITH_STORE(an_element_has_as_many_bytes_as_it_may),
		WITH_STORE(a_value_ends_where_values_may_end),
	};

	return cmocka_run_group_tests_name("item limits", tests, NULL, NULL);
}
