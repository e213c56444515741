/*
 * Groups of consumers of a stream: random operations against a naive model, which reads all that
 * there is to read after each of them; names up to their limits; a stream that is not there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "items_model.h"
#include "model/timed/items/group.h"
#include "model/timed/items/item_int.h"
#include "store.h"

enum {
	GROUPS = 3,
	CONSUMERS = 3,
	ENTRIES = 12,
	GIVEN = 4, /* at a time */
	ROUNDS = 60,
	STEPS = 30,          /* of each round, a transaction each */
	MANY = 2 * 256 + 10, /* more than two pages of what is dropped */
};

/* Keys of items. */
static char stream[] = "x", copy[] = "copy";

/* Names as keys have them, at the most of that, and longer. In the order of what keys have. */
static const struct {
	size_t bytes;
	char c;
} name_forms[GROUPS] = { { 1, 'a' }, { TIMED_WHOLE_BYTES, 'b' }, { TIMED_WHOLE_BYTES + 1, 'c' } };

static struct str
name_of(struct arena *arena, unsigned n)
{
	char *text = arena_bytes(arena, name_forms[n].bytes);

	memset(text, name_forms[n].c, name_forms[n].bytes);
	return str_of(text, name_forms[n].bytes);
}

/* ---- The model ---- */

struct model_entry {
	bool pending;
	unsigned consumer;
	uint64_t delivered_ms, times;
};

struct model_group {
	bool there;
	struct timed_stream_id last;
	int64_t read;
	bool consumers[CONSUMERS];
	uint64_t seen_ms[CONSUMERS];
	struct model_entry entries[ENTRIES];
};

struct model {
	struct model_group groups[GROUPS];
};

enum operation {
	ADD,
	SET,
	DROP,
	CONSUMER,
	NO_CONSUMER,
	GIVE,
	ACKNOWLEDGE,
	OPERATIONS,
};

struct turn {
	struct model *model;
	enum operation operation;
	unsigned group, consumer;
	unsigned entries[GIVEN];
	size_t count;
	uint64_t number;
};

static struct timed_stream_id
id_of(unsigned entry)
{
	return (struct timed_stream_id){ 1 + entry / 2, entry % 2 };
}

/* ---- Changing both ---- */

static void
model_change(const struct turn *c)
{
	struct model_group *g = &c->model->groups[c->group];

	switch (c->operation) {
	case ADD:
		*g = (struct model_group){ .there = true,
					   .last = { c->number, 1 },
					   .read = TIMED_GROUP_UNREAD };
		break;
	case SET:
		g->last.ms = c->number;
		g->read = (int64_t)c->number;
		break;
	case DROP:
		*g = (struct model_group){ 0 };
		break;
	case CONSUMER:
		g->consumers[c->consumer] = true;
		g->seen_ms[c->consumer] = c->number;
		break;
	case NO_CONSUMER:
		g->consumers[c->consumer] = false;
		for (unsigned i = 0; i < ENTRIES; i++)
			if (g->entries[i].consumer == c->consumer)
				g->entries[i].pending = false;
		break;
	case GIVE:
		for (size_t i = 0; i < c->count; i++)
			g->entries[c->entries[i]] = (struct model_entry){ true, c->consumer,
									  c->number,
									  c->number / 2 };
		break;
	case ACKNOWLEDGE:
		for (size_t i = 0; i < c->count; i++)
			g->entries[c->entries[i]].pending = false;
		break;
	case OPERATIONS:
		break;
	}
}

static size_t
pending_of(const struct model_group *g, int consumer)
{
	size_t count = 0;

	for (unsigned i = 0; i < ENTRIES; i++)
		count += g->entries[i].pending &&
			 (consumer < 0 || g->entries[i].consumer == (unsigned)consumer);
	return count;
}

/* The operation, or another one where it does not apply. */
static enum operation
applied(const struct turn *c)
{
	const struct model_group *g = &c->model->groups[c->group];

	if (!g->there)
		return ADD;
	if (c->operation == ADD)
		return SET;
	if ((c->operation == GIVE || c->operation == NO_CONSUMER) && !g->consumers[c->consumer])
		return CONSUMER;
	return c->operation;
}

static enum status
entries_ask(struct timed_item *item, const struct timed_group *group, const struct turn *c,
	    struct timed_pending entries[GIVEN])
{
	for (size_t i = 0; i < c->count; i++)
		entries[i] = (struct timed_pending){ .id = id_of(c->entries[i]) };
	return timed_pending_get(item, group, entries, c->count);
}

static enum status
consumer_drop(struct timed_item *item, const struct timed_group *group, const struct turn *c)
{
	uint64_t pending;

	TRY(timed_consumer_drop(item, group, name_of(item->arena, c->consumer), &pending));
	assert_int_equal(pending, pending_of(&c->model->groups[c->group], (int)c->consumer));
	return STATUS_OK;
}

static enum status
store_change(struct timed_item *item, const struct turn *c)
{
	const struct model_group *g = &c->model->groups[c->group];
	struct timed_pending entries[GIVEN];
	struct timed_group group = { .name = name_of(item->arena, c->group),
				     .last = { c->number, 1 },
				     .read = TIMED_GROUP_UNREAD };
	struct timed_consumer consumer = { .name = name_of(item->arena, c->consumer),
					   .seen_ms = c->number };

	if (c->operation == ADD)
		return timed_group_add(item, &group);
	TRY(timed_group_get(item, group.name, &group));
	TRY(entries_ask(item, &group, c, entries));
	switch (c->operation) {
	case SET:
		group.last.ms = c->number;
		group.read = (int64_t)c->number;
		return timed_group_set(item, &group);
	case DROP:
		return timed_group_drop(item, &group);
	case CONSUMER:
		return timed_consumer_put(item, &group, &consumer, !g->consumers[c->consumer]);
	case NO_CONSUMER:
		return consumer_drop(item, &group, c);
	case GIVE:
		for (size_t i = 0; i < c->count; i++) {
			entries[i].delivered_ms = c->number;
			entries[i].times = c->number / 2;
		}
		return timed_pending_give(item, &group, consumer.name, entries, c->count);
	case ACKNOWLEDGE:
		return timed_pending_drop(item, &group, entries, c->count);
	case ADD:
	case OPERATIONS:
		break;
	}
	return STATUS_OK;
}

static enum status
change_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_item item;

	TRY(timed_item_open(t, STR("x"), arena, &item));
	return store_change(&item, arg);
}

/* ---- Comparing ---- */

/* A status that is to be another one; any failure of the store is handed on. */
static enum status
expect(enum status status, enum status expected)
{
	if (status == expected)
		return STATUS_OK;
	if (status == STATUS_OK || status == STATUS_NOT_FOUND || status == STATUS_KEY_TOO_LARGE)
		fail_msg("%s, not %s", status_name(status), status_name(expected));
	return status;
}

static enum status
is_entry(struct timed_item *item, const struct timed_group *group, const struct model_entry *m,
	 const struct timed_pending *e)
{
	struct str owner;
	bool is_of;

	assert_int_equal(e->found, m->pending);
	if (!m->pending)
		return STATUS_OK;
	assert_int_equal(e->delivered_ms, m->delivered_ms);
	assert_int_equal(e->times, m->times);
	TRY(timed_pending_owner(item, group, e, &owner));
	assert_true(str_eq(owner, name_of(item->arena, m->consumer)));
	for (unsigned n = 0; n < CONSUMERS; n++) {
		TRY(timed_pending_is_of(item, e, name_of(item->arena, n), &is_of));
		assert_int_equal(is_of, n == m->consumer);
	}
	return STATUS_OK;
}

/* A range of the entries, of all consumers or of one. */
static enum status
compare_range(struct timed_item *item, const struct timed_group *group, const struct model_group *g,
	      int consumer, bool reverse, unsigned from, unsigned to, size_t limit)
{
	const struct timed_pending_range range = {
		.consumer = consumer < 0 ? (struct str){ NULL, 0 }
					 : name_of(item->arena, (unsigned)consumer),
		.from = id_of(from),
		.to = id_of(to),
		.reverse = reverse,
		.limit = limit,
	};
	struct timed_pendings got;
	size_t n = 0;

	TRY(timed_pending_range(item, group, &range, &got));
	for (unsigned i = from; i <= to && n < limit; i++) {
		unsigned at = reverse ? to - (i - from) : i;
		const struct model_entry *m = &g->entries[at];

		if (!m->pending || (consumer >= 0 && m->consumer != (unsigned)consumer))
			continue;
		assert_true(n < got.count);
		assert_int_equal(timed_stream_id_cmp(got.entries[n].id, id_of(at)), 0);
		TRY(is_entry(item, group, m, &got.entries[n++]));
	}
	assert_int_equal(got.count, n);
	return STATUS_OK;
}

static enum status
compare_pending(struct timed_item *item, const struct timed_group *group,
		const struct model_group *g)
{
	struct timed_pending all[ENTRIES];
	uint64_t count;

	for (unsigned i = 0; i < ENTRIES; i++)
		all[i] = (struct timed_pending){ .id = id_of(i) };
	TRY(timed_pending_get(item, group, all, ENTRIES));
	for (unsigned i = 0; i < ENTRIES; i++)
		TRY(is_entry(item, group, &g->entries[i], &all[i]));
	for (int consumer = -1; consumer < CONSUMERS; consumer++) {
		struct str name = consumer < 0 ? (struct str){ NULL, 0 }
					       : name_of(item->arena, (unsigned)consumer);

		TRY(timed_pending_count(item, group, name, &count));
		assert_int_equal(count, pending_of(g, consumer));
		for (int reverse = 0; reverse < 2; reverse++) {
			TRY(compare_range(item, group, g, consumer, reverse, 0, ENTRIES - 1,
					  ENTRIES));
			TRY(compare_range(item, group, g, consumer, reverse, 2, 5, 2));
			TRY(compare_range(item, group, g, consumer, reverse, 3, 3, 1));
			TRY(compare_range(item, group, g, consumer, reverse, 4, 3, 1));
		}
	}
	return STATUS_OK;
}

/* In pages of `limit`; `ret` has a place for each of them. */
static enum status
consumers_paged(struct timed_item *item, const struct timed_group *group, size_t limit,
		struct timed_consumer *ret, size_t *ret_count)
{
	struct str after = { NULL, 0 };
	struct timed_consumers page;

	*ret_count = 0;
	do {
		TRY(timed_consumers_page(item, group, after, limit, &page));
		assert_true(page.count <= limit && *ret_count + page.count <= CONSUMERS);
		for (size_t i = 0; i < page.count; i++)
			ret[(*ret_count)++] = page.consumers[i];
		if (page.count)
			after = page.consumers[page.count - 1].name;
	} while (page.count);
	return STATUS_OK;
}

static enum status
compare_consumers(struct timed_item *item, const struct timed_group *group,
		  const struct model_group *g)
{
	struct timed_consumer one, all[CONSUMERS];
	uint64_t count;
	size_t n, at = 0;

	TRY(consumers_paged(item, group, 2, all, &n));
	TRY(timed_consumers_count(item, group, &count));
	assert_int_equal(count, n);
	for (unsigned i = 0; i < CONSUMERS; i++) {
		struct str name = name_of(item->arena, i);

		TRY(expect(timed_consumer_get(item, group, name, &one),
			   g->consumers[i] ? STATUS_OK : STATUS_NOT_FOUND));
		if (!g->consumers[i])
			continue;
		assert_true(str_eq(one.name, name));
		assert_int_equal(one.seen_ms, g->seen_ms[i]);
		assert_true(at < n && str_eq(all[at].name, name));
		assert_int_equal(all[at++].seen_ms, g->seen_ms[i]);
	}
	assert_int_equal(at, n);
	return STATUS_OK;
}

static void
is_group(const struct timed_group *group, const struct model_group *g, struct str name)
{
	assert_true(str_eq(group->name, name));
	assert_int_equal(group->last.ms, g->last.ms);
	assert_int_equal(group->last.seq, 1);
	assert_int_equal(group->read, g->read);
}

struct compared {
	const struct model *model;
	const char *item;
};

static enum status
compare_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct compared *c = arg;
	const struct model *m = c->model;
	struct timed_groups page = { 0 };
	struct str after = { NULL, 0 };
	struct timed_group one;
	struct timed_item item;
	uint64_t count, there = 0;

	TRY(timed_item_open(t, str_from_cstr(c->item), arena, &item));
	for (unsigned i = 0; i < GROUPS; i++) {
		const struct model_group *g = &m->groups[i];
		struct str name = name_of(arena, i);

		TRY(expect(timed_group_get(&item, name, &one),
			   g->there ? STATUS_OK : STATUS_NOT_FOUND));
		if (!g->there)
			continue;
		there++;
		is_group(&one, g, name);
		TRY(timed_groups_page(&item, after, 1, &page));
		assert_int_equal(page.count, 1);
		is_group(&page.groups[0], g, name);
		after = page.groups[0].name;
		TRY(compare_consumers(&item, &page.groups[0], g));
		TRY(compare_pending(&item, &one, g));
	}
	TRY(timed_groups_page(&item, after, 1, &page));
	assert_int_equal(page.count, 0);
	TRY(timed_groups_count(&item, &count));
	assert_int_equal(count, there);
	return STATUS_OK;
}

/* ---- Random operations ---- */

static struct turn
random_turn(struct rand_seq *r, struct model *model)
{
	struct turn c = { .model = model,
			  .operation = (enum operation)rand_seq_below(r, OPERATIONS),
			  .group = (unsigned)rand_seq_below(r, GROUPS),
			  .consumer = (unsigned)rand_seq_below(r, CONSUMERS),
			  .number = 1 + rand_seq_below(r, 1000) };
	unsigned entry = (unsigned)rand_seq_below(r, ENTRIES / 2);

	/* Groups and consumers mostly stay, so that there is something to give and to take. */
	if (c.operation <= NO_CONSUMER && rand_seq_below(r, 2))
		c.operation = GIVE;
	for (; c.count < GIVEN && entry < ENTRIES; entry += 1 + (unsigned)rand_seq_below(r, 4))
		c.entries[c.count++] = entry;
	return c;
}

static enum status
clear_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_item item;

	TRY(timed_item_open(t, str_from_cstr(arg), arena, &item));
	return timed_item_delete(&item);
}

static enum status
copy_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_item item, to;

	(void)arg;
	TRY(timed_item_open(t, str_from_cstr(stream), arena, &item));
	TRY(timed_item_open(t, str_from_cstr(copy), arena, &to));
	return timed_item_copy(&item, &to);
}

static void
groups_are_as_the_model_says(void **state)
{
	struct items *f = *state;
	struct rand_seq r = { test_seed() };
	int rounds = test_rounds(ROUNDS);

	while (rounds-- > 0) {
		struct model model = { 0 };
		struct compared here = { &model, stream }, copied = { &model, copy };

		for (int i = 0; i < STEPS; i++) {
			struct turn c = random_turn(&r, &model);

			c.operation = applied(&c);
			items_must(f, change_run, &c);
			model_change(&c);
			items_must(f, compare_run, &here);
		}
		/* A copy has the groups, and nothing of those that were removed. */
		items_must(f, copy_run, NULL);
		items_must(f, compare_run, &copied);
		items_verify(f);
		items_must(f, clear_run, stream);
		items_must(f, compare_run, &copied);
		items_must(f, clear_run, copy);
		items_sweep(f);
		items_verify(f);
	}
}

/* ---- Many entries ---- */

static enum status
many_give_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_pending *entries = arena_zalloc(arena, MANY * sizeof(*entries));
	const struct timed_consumer consumer = { .name = STR("c") };
	struct timed_group group = { .name = STR("g") };
	struct timed_item item;

	(void)arg;
	for (unsigned i = 0; i < MANY; i++)
		entries[i].id = (struct timed_stream_id){ i + 1, UINT64_MAX };
	TRY(timed_item_open(t, STR("x"), arena, &item));
	TRY(timed_group_add(&item, &group));
	TRY(timed_consumer_put(&item, &group, &consumer, true));
	return timed_pending_give(&item, &group, consumer.name, entries, MANY);
}

static enum status
many_drop_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_group group;
	struct timed_item item;
	uint64_t pending;

	(void)arg;
	TRY(timed_item_open(t, STR("x"), arena, &item));
	TRY(timed_group_get(&item, STR("g"), &group));
	TRY(timed_pending_count(&item, &group, STR("c"), &pending));
	assert_int_equal(pending, MANY);
	TRY(timed_consumer_drop(&item, &group, STR("c"), &pending));
	assert_int_equal(pending, MANY);
	TRY(timed_pending_count(&item, &group, (struct str){ NULL, 0 }, &pending));
	assert_int_equal(pending, 0);
	return STATUS_OK;
}

static void
a_consumer_goes_with_all_its_entries(void **state)
{
	struct items *f = *state;

	items_must(f, many_give_run, NULL);
	items_verify(f);
	items_must(f, many_drop_run, NULL);
	items_verify(f);
}

/* ---- Limits ---- */

/* `arg`: how many bytes more a name has than it may. */
static enum status
limits_run(struct timed *t, struct arena *arena, void *arg)
{
	const size_t *more = arg;
	struct str name = arena_printf(arena, "%0*d", (int)(TIMED_GROUP_NAME_BYTES + *more), 1);
	enum status expected = *more ? STATUS_KEY_TOO_LARGE : STATUS_OK;
	enum status found = *more ? STATUS_NOT_FOUND : STATUS_OK;
	struct timed_consumer consumer = { .name = name };
	struct timed_group group = { .name = name }, other = { .name = STR("g") };
	struct timed_item item;

	TRY(timed_item_open(t, STR("x"), arena, &item));
	TRY(expect(timed_group_get(&item, name, &group), STATUS_NOT_FOUND));
	TRY(expect(timed_group_add(&item, &group), expected));
	TRY(expect(timed_group_get(&item, name, &group), found));
	TRY(timed_group_add(&item, &other));
	TRY(expect(timed_consumer_put(&item, &other, &consumer, true), expected));
	TRY(expect(timed_consumer_get(&item, &other, name, &consumer), found));
	return STATUS_OK;
}

static void
names_have_as_many_bytes_as_they_may(void **state)
{
	struct items *f = *state;

	for (size_t more = 0; more < 2; more++) {
		items_must(f, limits_run, &more);
		items_verify(f);
		items_must(f, clear_run, stream);
	}
}

static enum status
none_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_groups page = { NULL, 7 };
	struct timed_group group;
	struct timed_item item;
	uint64_t count = 7;

	(void)arg;
	TRY(timed_item_open(t, STR("nothing"), arena, &item));
	TRY(expect(timed_group_get(&item, STR("g"), &group), STATUS_NOT_FOUND));
	TRY(timed_groups_page(&item, (struct str){ NULL, 0 }, 1, &page));
	assert_int_equal(page.count, 0);
	TRY(timed_groups_count(&item, &count));
	assert_int_equal(count, 0);
	assert_int_equal(item.type, TIMED_LEAF);
	return STATUS_OK;
}

static enum status
open_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_item item;

	(void)arg;
	return timed_item_open(t, STR("nothing"), arena, &item);
}

static void
a_stream_that_is_not_there_has_no_groups(void **state)
{
	struct items *f = *state;
	uint64_t reads;

	items_must(f, open_run, NULL);
	reads = f->cost.reads;
	items_must(f, none_run, NULL);
	/* Nothing is looked for below it. Faults cost reads of their own. */
	if (!getenv("FROND_TEST_FAULTS"))
		assert_int_equal(f->cost.reads, reads);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define WITH_STORE(name) cmocka_unit_test_setup_teardown(name, items_setup, items_teardown)
		WITH_STORE(groups_are_as_the_model_says),
		WITH_STORE(a_consumer_goes_with_all_its_entries),
		WITH_STORE(names_have_as_many_bytes_as_they_may),
		WITH_STORE(a_stream_that_is_not_there_has_no_groups),
	};

	return cmocka_run_group_tests_name("groups", tests, NULL, NULL);
}
