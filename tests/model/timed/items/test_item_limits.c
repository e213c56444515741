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

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define WITH_STORE(name) cmocka_unit_test_setup_teardown(name, items_setup, items_teardown)
		WITH_STORE(a_page_has_as_many_members_as_are_asked_for),
		WITH_STORE(a_value_that_is_too_long_is_read_by_who_wants_all_of_it),
		WITH_STORE(an_element_has_as_many_bytes_as_it_may),
	};

	return cmocka_run_group_tests_name("item limits", tests, NULL, NULL);
}
