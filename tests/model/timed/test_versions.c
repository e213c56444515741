/*
 * A past that is bounded by versions of each item: what is kept is read as it was, exactly so many
 * states of each item are kept, what is beyond them is refused and leaves nothing behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "catalog/check.h"
#include "items/items_model.h"
#include "kv/tuple.h"
#include "model/timed/items/item_int.h"
#include "model/timed/versions.h"
#include "store.h"

enum {
	VERSIONS = 5,
	WINDOW_SECONDS = 1000 * 1000,
	REST_MS = 3000, /* after which the sweep looks at what was changed */
	RESTS = 5,      /* random items and members live for six seconds at most */
	CHANGES = 20,
	LONG_BYTES = 20 * 1000,
	LARGE = 1000, /* members: more pairs than the sweep clears in one transaction */
	LARGE_A_TX = 100,
	SNAPSHOTS = 100,
	SPACE_VERSIONS = 49,
	SPACE_TRIM = 50,
	SPACE_RETRIM = 51,
	DIGEST_BYTES = 4096,
};

#define BOUNDED(n) ((struct timed_history_bounds){ .seconds = WINDOW_SECONDS, .versions = (n) })

static enum status
history_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct timed_history_bounds *bounds = arg;

	(void)arena;
	return timed_history_set(t, *bounds);
}

static void
history_set(struct items *f, struct timed_history_bounds bounds)
{
	items_must(f, history_run, &bounds);
	items_sweep(f);
	f->now_ms++;
}

static void
rest(struct items *f)
{
	/* What the sweep removes since it has expired is changed by that: until nothing does. */
	for (int i = 0; i < RESTS; i++) {
		f->now_ms += REST_MS;
		items_sweep(f);
	}
	assert_int_equal(items_pairs(f, SPACE_TRIM), 0);
	assert_int_equal(items_pairs(f, SPACE_RETRIM), 0);
	items_verify(f);
}

/* Sweeps, and checks the store between any two transactions of that. */
static void
rest_in_slices(struct items *f)
{
	bool more = true;
	uint64_t done;

	f->now_ms += REST_MS;
	for (int i = 0; more; i++) {
		assert_int_equal(timed_sweep(f->store, &f->clock, 1, &done, &more, &f->err),
				 STATUS_OK);
		if (i < 40 || i % 20 == 0)
			items_verify(f);
	}
	rest(f);
}

/* ---- What an item is, as a text ---- */

struct digest {
	const char *key;
	uint64_t at_us; /* 0: the present */
	char text[DIGEST_BYTES];
};

static enum status
digest_members(struct timed_item *item, struct digest *d)
{
	struct timed_members page;
	size_t len = strlen(d->text);

	TRY(timed_members_page(item, 0, SIZE_MAX, &page));
	for (size_t i = 0; i < page.count && len < sizeof(d->text) - 200; i++)
		len += (size_t)snprintf(d->text + len, sizeof(d->text) - len, " %.*s=%.*s/%zu/%g",
					(int)page.members[i].name.len, page.members[i].name.ptr,
					(int)(page.members[i].value.len % 64),
					page.members[i].value.len ? page.members[i].value.ptr : "",
					page.members[i].value.len, page.members[i].score);
	return STATUS_OK;
}

static enum status
digest_list(struct timed_item *item, struct digest *d)
{
	struct timed_elements elements;
	size_t len = strlen(d->text);

	TRY(timed_list_range(item, 0, SIZE_MAX, &elements));
	for (size_t i = 0; i < elements.count && len < sizeof(d->text) - 200; i++)
		len += (size_t)snprintf(d->text + len, sizeof(d->text) - len, " %.*s/%zu",
					(int)(elements.elements[i].value.len % 64),
					elements.elements[i].value.ptr,
					elements.elements[i].value.len);
	return STATUS_OK;
}

static enum status
digest_run(struct timed *t, struct arena *arena, void *arg)
{
	struct digest *d = arg;
	struct timed_item item;
	uint64_t count = 0;
	struct str value;

	if (d->at_us)
		timed_at_us(t, d->at_us);
	TRY(timed_item_open(t, str_from_cstr(d->key), arena, &item));
	if (item.type != TIMED_VALUE)
		TRY(timed_count(&item, &count));
	snprintf(d->text, sizeof(d->text), "type %d expires %llu count %llu", (int)item.type,
		 (unsigned long long)item.expires_ms, (unsigned long long)count);
	if (item.type == TIMED_LIST)
		return digest_list(&item, d);
	if (item.type != TIMED_VALUE)
		return item.type == TIMED_LEAF ? STATUS_OK : digest_members(&item, d);
	TRY(timed_value_get(&item, 0, TIMED_LENGTH_BYTES, &value));
	snprintf(d->text + strlen(d->text), 100, " %.*s/%zu", (int)(value.len % 64), value.ptr,
		 value.len);
	return STATUS_OK;
}

/* ---- Changes, one transaction each ---- */

struct change {
	const char *key, *other;
	unsigned n;
	uint64_t at_us; /* when it took place */
};

static enum status
set_run(struct timed *t, struct arena *arena, void *arg)
{
	struct change *c = arg;
	struct timed_item item;

	TRY(timed_item_open(t, str_from_cstr(c->key), arena, &item));
	c->at_us = t->now_us;
	return timed_value_set(&item, arena_printf(arena, "value %u", c->n),
			       (struct timed_expiry){ TIMED_EXPIRY_NEVER, 0 });
}

/* A value in chunks, which has a body. */
static enum status
set_long_run(struct timed *t, struct arena *arena, void *arg)
{
	struct change *c = arg;
	struct timed_item item;
	char *bytes = arena_bytes(arena, LONG_BYTES + c->n);

	memset(bytes, 'a' + (int)(c->n % 26), LONG_BYTES + c->n);
	TRY(timed_item_open(t, str_from_cstr(c->key), arena, &item));
	c->at_us = t->now_us;
	return timed_value_set(&item, str_of(bytes, LONG_BYTES + c->n),
			       (struct timed_expiry){ TIMED_EXPIRY_NEVER, 0 });
}

static enum status
put(struct timed *t, struct arena *arena, struct change *c, enum timed_type type, size_t len)
{
	char *bytes = arena_bytes(arena, len);
	struct timed_item item;
	struct timed_member member = {
		.name = arena_printf(arena, "member %u", c->n % 3),
		.value = type == TIMED_HASH ? str_of(bytes, len) : STR(""),
		.score = c->n,
	};

	memset(bytes, 'a' + (int)(c->n % 26), len);
	TRY(timed_item_open(t, str_from_cstr(c->key), arena, &item));
	c->at_us = t->now_us;
	return timed_members_put(&item, type, &member, 1);
}

static enum status
hash_run(struct timed *t, struct arena *arena, void *arg)
{
	return put(t, arena, arg, TIMED_HASH, 10 + ((struct change *)arg)->n);
}

/* Values in pieces. */
static enum status
hash_pieces_run(struct timed *t, struct arena *arena, void *arg)
{
	return put(t, arena, arg, TIMED_HASH, TIMED_RECORD_BYTES + 10 + ((struct change *)arg)->n);
}

static enum status
zset_run(struct timed *t, struct arena *arena, void *arg)
{
	return put(t, arena, arg, TIMED_ZSET, 1);
}

static enum status
push_run(struct timed *t, struct arena *arena, void *arg)
{
	struct change *c = arg;
	struct timed_item item;
	struct str value = arena_printf(arena, "element %u", c->n);

	TRY(timed_item_open(t, str_from_cstr(c->key), arena, &item));
	c->at_us = t->now_us;
	return timed_list_push(&item, c->n % 2, &value, 1);
}

/* An element in pieces, which is set anew. */
static enum status
set_pieces_run(struct timed *t, struct arena *arena, void *arg)
{
	struct change *c = arg;
	struct timed_elements got;
	struct timed_item item;
	struct str value = { arena_zalloc(arena, TIMED_RECORD_BYTES + 10 + c->n),
			     TIMED_RECORD_BYTES + 10 + c->n };

	TRY(timed_item_open(t, str_from_cstr(c->key), arena, &item));
	c->at_us = t->now_us;
	if (item.type == TIMED_LEAF)
		return timed_list_push(&item, true, &value, 1);
	TRY(timed_list_range(&item, 0, 1, &got));
	return timed_list_set(&item, got.elements, value);
}

static enum status
delete_run(struct timed *t, struct arena *arena, void *arg)
{
	struct change *c = arg;
	struct timed_item item;

	TRY(timed_item_open(t, str_from_cstr(c->key), arena, &item));
	c->at_us = t->now_us;
	return timed_item_delete(&item);
}

/* A hash that comes and goes. */
static enum status
come_and_go_run(struct timed *t, struct arena *arena, void *arg)
{
	return ((struct change *)arg)->n % 3 == 2 ? delete_run(t, arena, arg)
						  : hash_run(t, arena, arg);
}

/* The header and the body are changed in turns. */
static enum status
expire_run(struct timed *t, struct arena *arena, void *arg)
{
	struct change *c = arg;
	struct timed_item item;

	if (c->n % 2 == 0)
		return hash_run(t, arena, arg);
	TRY(timed_item_open(t, str_from_cstr(c->key), arena, &item));
	c->at_us = t->now_us;
	return timed_item_expire(&item,
				 (struct timed_expiry){ TIMED_EXPIRY_AFTER, 3600000 + c->n });
}

static enum status
rename_run(struct timed *t, struct arena *arena, void *arg)
{
	struct change *c = arg;
	struct timed_item item, to;

	TRY(timed_item_open(t, str_from_cstr(c->key), arena, &item));
	TRY(timed_item_open(t, str_from_cstr(c->other), arena, &to));
	c->at_us = t->now_us;
	return timed_item_rename(&item, &to);
}

static const struct kind {
	const char *name;
	items_step *run;
} kinds[] = {
	{ "value", set_run },
	{ "long value", set_long_run },
	{ "hash", hash_run },
	{ "hash with long values", hash_pieces_run },
	{ "sorted set", zset_run },
	{ "list", push_run },
	{ "deleted", come_and_go_run },
	{ "header and body", expire_run },
	{ "list with long elements", set_pieces_run },
};

/* The states of one item, each from the moment of a transaction. */
struct states {
	uint64_t from_us[2 * CHANGES + 1];
	char text[2 * CHANGES + 1][DIGEST_BYTES];
	unsigned count;
};

static void
states_change(struct items *f, struct states *s, const char *key, items_step *run)
{
	struct change c = { .key = key, .n = s->count };
	struct digest d = { .key = key };

	f->now_ms += 700;
	items_must(f, run, &c);
	items_must(f, digest_run, &d);
	s->from_us[s->count] = c.at_us;
	memcpy(s->text[s->count++], d.text, sizeof(d.text));
}

/* The last states can be read, as far as `versions` before the present one; none before. */
static void
states_compare(struct items *f, const struct states *s, const char *key, unsigned versions)
{
	for (unsigned i = 0; i < s->count; i++) {
		struct digest d = { .key = key, .at_us = s->from_us[i] };
		enum status status = items_try(f, "0", digest_run, &d);

		if (i + versions + 1 < s->count) {
			assert_int_equal(status, STATUS_INVALID);
			assert_non_null(strstr(f->err.text, "the history of a key"));
			continue;
		}
		assert_int_equal(status, STATUS_OK);
		assert_string_equal(d.text, s->text[i]);
		/* Until right before the next one. */
		d.at_us = i + 1 < s->count ? s->from_us[i + 1] - 1 : f->now_ms * 1000;
		assert_int_equal(items_try(f, "0", digest_run, &d), STATUS_OK);
		assert_string_equal(d.text, s->text[i]);
	}
}

/*
 * Each change of a member makes one record, as each of a value does, and the value in pieces that
 * it takes the place of has gone. Of changes before the last ones nothing is left.
 */
static void
assert_few_records(struct items *f, items_step *run)
{
	bool in_pieces = run == hash_pieces_run || run == set_pieces_run;

	if (run == set_run || run == hash_run || in_pieces)
		assert_int_equal(items_pairs(f, SPACE_UNDO), VERSIONS + 1);
	if (run == hash_run || in_pieces)
		assert_int_equal(items_pairs(f, SPACE_GONE), in_pieces ? VERSIONS : 0);
}

static void
exactly_so_many_states_of_an_item_are_kept(void **state)
{
	static struct states s;
	struct items *f = *state;

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		struct change gone = { .key = "x" };

		print_message("# %s\n", kinds[k].name);
		history_set(f, BOUNDED(VERSIONS));
		s.count = 0;
		for (int i = 0; i <= VERSIONS; i++)
			states_change(f, &s, "x", kinds[k].run);
		rest(f);
		states_compare(f, &s, "x", VERSIONS);
		/* The first note is of the transaction that has made it. */
		assert_int_equal(items_pairs(f, SPACE_VERSIONS), VERSIONS + 1);
		for (int i = 0; i < CHANGES; i++) {
			states_change(f, &s, "x", kinds[k].run);
			if (i % 3 == 0)
				items_sweep(f);
		}
		rest_in_slices(f);
		states_compare(f, &s, "x", VERSIONS);
		assert_few_records(f, kinds[k].run);
		/* What nobody can read is gone. */
		items_must(f, delete_run, &gone);
		for (int i = 0; i <= VERSIONS; i++)
			states_change(f, &s, "x", set_run);
		rest(f);
		assert_int_equal(items_pairs(f, SPACE_BODY), 0);
		assert_int_equal(items_pairs(f, SPACE_GONE), 0);
		items_must(f, delete_run, &gone);
		history_set(f, (struct timed_history_bounds){ 0 });
		assert_int_equal(items_pairs(f, SPACE_VERSIONS), 0);
		assert_int_equal(items_pairs(f, SPACE_UNDO), 0);
		items_verify(f);
	}
}

/* Others are as they were: the bound is one of each item. */
static void
an_item_that_was_changed_less_keeps_all(void **state)
{
	static struct states often, seldom;
	struct items *f = *state;

	often.count = seldom.count = 0;
	history_set(f, BOUNDED(VERSIONS));
	for (int i = 0; i < CHANGES; i++) {
		if (i % 4 == 0)
			states_change(f, &seldom, "seldom", hash_run);
		states_change(f, &often, "often", hash_run);
		items_sweep(f);
	}
	rest(f);
	states_compare(f, &often, "often", VERSIONS);
	states_compare(f, &seldom, "seldom", VERSIONS);
	assert_int_equal(seldom.count, VERSIONS);
}

/* ---- Ranges of items ---- */

struct page {
	uint64_t at_us;
	size_t count;
};

static enum status
page_run(struct timed *t, struct arena *arena, void *arg)
{
	struct page *p = arg;
	struct timed_items items;

	timed_at_us(t, p->at_us);
	TRY(timed_items_page(t, 0, SIZE_MAX, arena, &items));
	p->count = items.count;
	return STATUS_OK;
}

static void
a_range_of_items_is_refused_where_one_is_not_known(void **state)
{
	static struct states s, others;
	struct items *f = *state;
	struct page p;

	s.count = others.count = 0;
	history_set(f, BOUNDED(VERSIONS));
	for (unsigned i = 0; i < 3; i++)
		states_change(f, &others, i % 2 ? "y" : "z", set_run);
	for (int i = 0; i < CHANGES; i++)
		states_change(f, &s, "x", set_run);
	rest(f);
	for (unsigned i = 0; i < s.count; i++) {
		p.at_us = s.from_us[i];
		if (i + VERSIONS + 1 < s.count) {
			assert_int_equal(items_try(f, "0", page_run, &p), STATUS_INVALID);
			assert_non_null(strstr(f->err.text, "the history of a key"));
		} else {
			assert_int_equal(items_try(f, "0", page_run, &p), STATUS_OK);
			assert_int_equal(p.count, 3);
		}
	}
}

/* ---- Names that change ---- */

static enum status
renamed_digest(struct items *f, const char *key, uint64_t at_us, char text[DIGEST_BYTES])
{
	struct digest d = { .key = key, .at_us = at_us };
	enum status status = items_try(f, "0", digest_run, &d);

	memcpy(text, d.text, sizeof(d.text));
	return status;
}

static void
what_was_renamed_has_its_past_with_its_new_name(void **state)
{
	static struct states before, after;
	struct items *f = *state;
	struct change rename = { .key = "old", .other = "new" };
	char text[DIGEST_BYTES];

	before.count = after.count = 0;
	history_set(f, BOUNDED(VERSIONS));
	for (int i = 0; i < 3; i++)
		states_change(f, &before, "old", hash_run);
	f->now_ms += 700;
	items_must(f, rename_run, &rename);
	rest(f);
	assert_int_equal(renamed_digest(f, "old", before.from_us[2], text), STATUS_OK);
	assert_string_equal(text, before.text[2]);
	/* What the body was under the old name goes when the new one has been changed often. */
	for (int i = 0; i < CHANGES; i++)
		states_change(f, &after, "new", hash_run);
	rest(f);
	assert_int_equal(renamed_digest(f, "old", before.from_us[2], text), STATUS_INVALID);
	assert_int_equal(renamed_digest(f, "old", rename.at_us, text), STATUS_OK);
	states_compare(f, &after, "new", VERSIONS);
	/* So does the body itself. */
	items_must(f, delete_run, &(struct change){ .key = "new" });
	after.count = 0;
	for (int i = 0; i <= VERSIONS; i++)
		states_change(f, &after, "new", set_run);
	rest(f);
	assert_int_equal(items_pairs(f, SPACE_BODY), 0);
	assert_int_equal(renamed_digest(f, "old", before.from_us[2], text), STATUS_INVALID);
	states_compare(f, &after, "new", VERSIONS);
}

/* A value that is made under another name and then takes the place, as SORT … STORE is used. */
static void
bodies_that_get_their_place_by_renaming_go_like_others(void **state)
{
	static struct states s;
	struct items *f = *state;

	s.count = 0;
	history_set(f, BOUNDED(VERSIONS));
	for (unsigned i = 0; i < CHANGES; i++) {
		struct change rename = { .key = "made", .other = "x" };
		struct digest d = { .key = "x" };

		f->now_ms += 700;
		items_must(f, set_long_run, &(struct change){ .key = "made", .n = i });
		f->now_ms += 700;
		items_must(f, rename_run, &rename);
		items_must(f, digest_run, &d);
		s.from_us[s.count] = rename.at_us;
		memcpy(s.text[s.count++], d.text, sizeof(d.text));
	}
	rest_in_slices(f);
	states_compare(f, &s, "x", VERSIONS);
	/* A chunk and a stamp of each state. */
	assert_int_equal(items_pairs(f, SPACE_BODY), 2 * (VERSIONS + 1));
}

/* ---- Bounds that change ---- */

static void
a_bound_can_be_changed(void **state)
{
	static struct states s, quiet;
	struct items *f = *state;
	uint64_t until_ms;

	s.count = quiet.count = 0;
	history_set(f, (struct timed_history_bounds){ .seconds = WINDOW_SECONDS });
	/* What was there before the bound stays as long as the window, if it is not changed. */
	for (int i = 0; i < CHANGES; i++)
		states_change(f, &quiet, "quiet", hash_run);
	for (int i = 0; i < 5; i++)
		states_change(f, &s, "x", hash_run);
	history_set(f, BOUNDED(VERSIONS + 3));
	for (int i = 0; i < CHANGES; i++)
		states_change(f, &s, "x", hash_run);
	rest(f);
	states_compare(f, &s, "x", VERSIONS + 3);
	states_compare(f, &quiet, "quiet", CHANGES);
	/* A lower one holds for items that nobody changes. */
	history_set(f, BOUNDED(VERSIONS));
	rest(f);
	states_compare(f, &s, "x", VERSIONS);
	/* What has gone does not come back by a higher one, or by none. */
	history_set(f, BOUNDED(VERSIONS + 3));
	rest(f);
	states_compare(f, &s, "x", VERSIONS);
	history_set(f, (struct timed_history_bounds){ .seconds = WINDOW_SECONDS });
	rest(f);
	states_compare(f, &s, "x", VERSIONS);
	for (int i = 0; i < 10; i++)
		states_change(f, &s, "x", hash_run);
	rest(f);
	states_compare(f, &s, "x", VERSIONS + 10);
	assert_true(items_pairs(f, SPACE_VERSIONS) > 0);
	/* In the end nothing of the bound is left. */
	until_ms = f->now_ms + 2 * WINDOW_SECONDS * UINT64_C(1000);
	while (f->now_ms < until_ms) {
		f->now_ms += WINDOW_SECONDS * UINT64_C(1000) / 10;
		items_must(f, set_run, &(struct change){ .key = "tick" });
		items_sweep(f);
	}
	items_verify(f);
	assert_int_equal(items_pairs(f, SPACE_VERSIONS), 0);
}

/* What is left of items that nobody changes any more goes with the window. */
static void
notes_go_with_their_buckets(void **state)
{
	struct items *f = *state;

	history_set(f, (struct timed_history_bounds){ .seconds = 1000, .versions = VERSIONS });
	for (unsigned i = 0; i < CHANGES; i++) {
		char key[16];

		f->now_ms += 500;
		snprintf(key, sizeof(key), "%u", i % 4);
		items_must(f, hash_run, &(struct change){ .key = key, .n = i });
	}
	rest(f);
	assert_true(items_pairs(f, SPACE_VERSIONS) > 0);
	for (unsigned i = 0; i < 100; i++) {
		f->now_ms += 100 * 1000;
		items_must(f, set_run, &(struct change){ .key = "tick", .n = i });
		items_sweep(f);
		items_verify(f);
	}
	/* Those of the item that is still changed, with its horizons: of three eras at most. */
	assert_in_range(items_pairs(f, SPACE_VERSIONS), 1, 3 * (VERSIONS + 2));
}

/* ---- Bytes as well ---- */

static enum status
info_run(struct timed *t, struct arena *arena, void *arg)
{
	(void)arena;
	return timed_history_info_get(t, arg);
}

static void
bytes_are_counted_of_what_is_left(void **state)
{
	static struct states s;
	struct items *f = *state;
	struct timed_history_info info;

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		s.count = 0;
		history_set(f, (struct timed_history_bounds){
				       .seconds = WINDOW_SECONDS,
				       .bytes = INT64_MAX,
				       .versions = VERSIONS,
			       });
		for (int i = 0; i < 2 * CHANGES; i++) {
			states_change(f, &s, "x", kinds[k].run);
			if (i % 4 == 0)
				items_sweep(f);
		}
		rest_in_slices(f);
		states_compare(f, &s, "x", VERSIONS);
		items_must(f, info_run, &info);
		assert_true(info.held_all);
		assert_true(info.held_bytes > 0);
		items_must(f, delete_run, &(struct change){ .key = "x" });
		history_set(f, (struct timed_history_bounds){ 0 });
	}
}

/* ---- At random ---- */

struct snapshots {
	uint64_t at_ms[SNAPSHOTS];
	struct items_model models[SNAPSHOTS];
	size_t count;
	int seen, gone;
};

static void
snapshots_add(struct snapshots *s, const struct items_model *model, uint64_t at_ms)
{
	size_t at = s->count++ % SNAPSHOTS;

	for (size_t i = 0; i < SNAPSHOTS; i++)
		if (s->at_ms[i] >= at_ms)
			s->at_ms[i] = 0;
	s->at_ms[at] = at_ms;
	for (int i = 0; i < ITEMS_KEYS; i++)
		items_model_copy(&s->models[at].items[i], &model->items[i]);
}

/* The notes of all items, and the moments from which on they can be read. */
struct notes {
	uint64_t most_us;  /* of all horizons */
	uint64_t least_us; /* of the latest horizons of items that have one */
	size_t notes;      /* of the item that has most of them */
	size_t rows;
};

static enum status
notes_run(struct timed *t, struct arena *arena, void *arg)
{
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	AUTO(buf_release) struct buf begin = BUF_INIT(64);
	AUTO(buf_release) struct buf end = BUF_INIT(64);
	struct notes *n = arg;
	struct {
		struct str row;
		size_t notes;
	} rows[64] = { 0 };
	struct kv_pair pair;
	enum status status;

	*n = (struct notes){ 0 };
	buf_append_str(&begin, t->db->prefix);
	tuple_put_u64(&begin, SPACE_VERSIONS);
	buf_append_str(&end, buf_str(&begin));
	buf_append_byte(&end, 0xff);
	TRY(kv_scan_init(&scan, t->tx, buf_str(&begin), buf_str(&end), NULL));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		struct tuple_reader r = tuple_reader(str_skip(pair.key, begin.len));
		uint64_t era, kind, us;
		struct str row;
		size_t len, i = 0;

		TRY(tuple_next_u64(&r, &era));
		TRY(tuple_next_u64(&r, &kind));
		if (kind == TIMED_VERSION_HORIZON) {
			assert_true(timed_version_number(pair.value, &us));
			n->most_us = us > n->most_us ? us : n->most_us;
		}
		if (kind != TIMED_VERSION_NOTE)
			continue;
		len = tuple_skip(r.rest, 0, TUPLE_SKIP_TEXT);
		len = tuple_skip(r.rest, len, TUPLE_SKIP_TEXT);
		row = str_of(r.rest.ptr, len);
		while (i < n->rows && !str_eq(rows[i].row, row))
			i++;
		assert_true(i < 64);
		if (i == n->rows) {
			rows[i].row = arena_dup(arena, row);
			n->rows++;
		}
		rows[i].notes++;
		n->notes = rows[i].notes > n->notes ? rows[i].notes : n->notes;
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Each item at a moment of the past is as it was, or is refused because of a horizon. */
static void
compare_snapshot(struct items *f, struct snapshots *s, struct rand_seq *r)
{
	size_t at = rand_seq_below(r, s->count < SNAPSHOTS ? s->count : SNAPSHOTS);
	struct items_compare c = { .f = f, .random = rand_seq_next(r), .at_ms = s->at_ms[at] };
	struct timed_history_info info;
	struct notes notes;

	if (!c.at_ms)
		return;
	items_must(f, info_run, &info);
	items_must(f, notes_run, &notes);
	for (c.key = 0; c.key < ITEMS_KEYS; c.key++) {
		enum status status;

		c.m = &s->models[at].items[c.key];
		status = items_try(f, "0", items_compare, &c);
		if (status == STATUS_OK) {
			s->seen++;
			continue;
		}
		s->gone++;
		if (status != STATUS_INVALID)
			fail_msg("%s: %s", status_name(status), f->err.text);
		if (c.at_ms >= info.oldest_ms)
			assert_true(notes.most_us > c.at_ms * 1000 + 999);
	}
}

static void
random_rounds(struct items *f, struct timed_history_bounds bounds)
{
	struct snapshots *s = calloc(1, sizeof(*s));
	struct rand_seq r = { test_seed() };
	int rounds = test_rounds(500);
	/* Comparing is most of the work, each item of it a round trip to a cluster. */
	int compared_every = test_store_is_cluster() ? 3 : 1;
	struct items_model model = { 0 };
	struct notes notes;

	assert_non_null(s);
	history_set(f, bounds);
	for (int i = 0; i < rounds; i++) {
		struct items_change c = items_change(f, &model, &r);
		bool more;
		uint64_t done;

		snapshots_add(s, &model, c.now_us / 1000);
		f->now_ms += 1 + rand_seq_below(&r, 1500);
		if (rand_seq_below(&r, 10) == 0)
			f->now_ms -= rand_seq_below(&r, 1000);
		if (f->now_ms < f->expired_ms)
			f->now_ms = f->expired_ms;
		/* One transaction of the sweep, so that others write in the middle of it. */
		if (rand_seq_below(&r, 2) == 0)
			assert_int_equal(timed_sweep(f->store, &f->clock, 1, &done, &more, &f->err),
					 STATUS_OK);
		if (rand_seq_below(&r, 30) == 0)
			items_sweep(f);
		if (rand_seq_below(&r, 30) == 0)
			items_verify(f);
		if (i % compared_every == 0)
			compare_snapshot(f, s, &r);
	}
	rest(f);
	items_must(f, notes_run, &notes);
	/* Of what other bounds leave there may be less. */
	assert_in_range(notes.notes, bounds.bytes ? 0 : bounds.versions, bounds.versions);
	print_message("# %d items read, %d refused\n", s->seen, s->gone);
	assert_true(s->seen > rounds / 4);
	assert_true(s->gone > rounds / 4);
	history_set(f, (struct timed_history_bounds){ 0 });
	items_sweep(f);
	items_verify(f);
	assert_int_equal(items_pairs(f, SPACE_UNDO), 0);
	assert_int_equal(items_pairs(f, SPACE_GONE), 0);
	assert_int_equal(items_pairs(f, SPACE_VERSIONS), 0);
	for (int i = 0; i < ITEMS_KEYS; i++) {
		items_model_clear(&model.items[i]);
		for (int j = 0; j < SNAPSHOTS; j++)
			items_model_clear(&s->models[j].items[i]);
	}
	free(s);
}

static void
what_is_within_the_versions_is_read_as_it_was(void **state)
{
	random_rounds(*state, BOUNDED(VERSIONS));
}

static void
what_is_within_all_bounds_is_read_as_it_was(void **state)
{
	random_rounds(*state, (struct timed_history_bounds){
				      .seconds = 200,
				      .bytes = 200 * 1000,
				      .versions = VERSIONS,
			      });
}

/* ---- The check ---- */

static void
count_found(const struct catalog_finding *finding, void *arg)
{
	unsigned *count = arg;

	(void)finding;
	++*count;
}

static enum status
check_body(struct kv_tx *tx, void *arg)
{
	const struct catalog_verify_options options = { .found = count_found, .arg = arg };
	struct catalog_verify_sum sum;

	*(unsigned *)arg = 0;
	return catalog_verify_store(tx, &options, &sum, NULL);
}

static enum status
large_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_member *members = arena_zalloc(arena, LARGE_A_TX * sizeof(*members));
	const unsigned *first = arg;
	struct timed_item item;

	for (unsigned i = 0; i < LARGE_A_TX; i++) {
		members[i].name = arena_printf(arena, "member%u", *first + i);
		members[i].score = *first + i;
	}
	TRY(timed_item_open(t, STR("large"), arena, &item));
	return timed_members_put(&item, TIMED_ZSET, members, LARGE_A_TX);
}

static enum status
large_delete_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_item item;

	(void)arg;
	TRY(timed_item_open(t, STR("large"), arena, &item));
	return timed_item_delete(&item);
}

/*
 * A sorted set without members, whose order is still there, is what the sweep has come to. Where
 * clearing a range is cheap nothing is left to it: the body goes with the item.
 */
static void
what_the_sweep_has_yet_to_clear_is_no_damage(void **state)
{
	struct items *f = *state;
	bool more = true;
	uint64_t done;
	int slices = 0;

	for (unsigned first = 0; first < LARGE; first += LARGE_A_TX)
		items_must(f, large_run, &first);
	items_must(f, large_delete_run, NULL);
	if (kv_clears_cheaply(f->store)) {
		assert_int_equal(items_pairs(f, SPACE_GONE), 0);
		assert_int_equal(items_pairs(f, SPACE_BODY), 0);
		items_verify(f);
		return;
	}
	for (; more; slices++) {
		assert_int_equal(timed_sweep(f->store, &f->clock, 1, &done, &more, &f->err),
				 STATUS_OK);
		items_verify(f);
	}
	assert_true(slices > 2);
	assert_int_equal(items_pairs(f, SPACE_GONE), 0);
}

/* The first pair of a subspace is cleared, or gets another value, or another one is beside it. */
struct damage {
	uint64_t space;
	struct str value; /* `ptr` NULL: it is cleared */
	bool beside;
};

static enum status
damage_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct kv_range_options options = { .limit = 1 };
	AUTO(buf_release) struct buf begin = BUF_INIT(KV_LIMIT_KEY_BYTES);
	AUTO(buf_release) struct buf end = BUF_INIT(KV_LIMIT_KEY_BYTES);
	const struct damage *d = arg;
	struct kv_future *future;
	struct kv_range range;

	(void)arena;
	buf_append_str(&begin, t->db->prefix);
	tuple_put_u64(&begin, d->space);
	buf_append_str(&end, buf_str(&begin));
	buf_append_byte(&end, 0xff);
	future = kv_get_range(t->tx, buf_str(&begin), buf_str(&end), &options);
	TRY(kv_future_wait(future));
	range = kv_future_range(future);
	assert_int_equal(range.count, 1);
	buf_clear(&begin);
	buf_append_str(&begin, range.pairs[0].key);
	if (d->beside)
		tuple_put_u64(&begin, 1);
	return d->value.ptr ? kv_set(t->tx, buf_str(&begin), d->value)
			    : kv_clear(t->tx, buf_str(&begin));
}

static void
versions_that_cannot_be_are_found(void **state)
{
	static const struct damage damages[] = {
		{ SPACE_VERSIONS, { NULL, 0 }, false }, /* a record without its note */
		{ SPACE_VERSIONS, { "x", 1 }, false },
		{ SPACE_VERSIONS, { "\1\0\0\0\0\0\0\0", 8 }, false }, /* of another era */
		{ SPACE_VERSIONS, { "\1\0\0\0\0\0\0\0", 8 }, true },
		{ SPACE_TRIM, { NULL, 0 }, false }, /* too many notes, and nobody looks */
		{ SPACE_TRIM, { "x", 1 }, false },
		{ SPACE_TRIM, { "", 0 }, true },
	};
	struct items *f = *state;
	unsigned count;

	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		history_set(f, BOUNDED(1));
		for (unsigned n = 0; n < 3; n++)
			items_must(f, set_run, &(struct change){ .key = "x", .n = n });
		items_verify(f);
		items_must(f, damage_run, (void *)(uintptr_t)&damages[i]);
		assert_int_equal(kv_run_read(f->store, check_body, &count, NULL), STATUS_OK);
		if (!count)
			fail_msg("damage %zu is not found", i);
		history_set(f, (struct timed_history_bounds){ 0 });
		items_verify(f);
	}
}

/* One of all notes is missing. */
struct lost {
	size_t at;
	bool put_back;
	struct buf key, value; /* of the note */
	bool there;
	size_t most; /* changes that are compared at once */
	unsigned found;
};

static enum status
lose_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct kv_range_options options = { .limit = 1000 };
	AUTO(buf_release) struct buf begin = BUF_INIT(KV_LIMIT_KEY_BYTES);
	AUTO(buf_release) struct buf end = BUF_INIT(KV_LIMIT_KEY_BYTES);
	struct kv_future *future;
	struct lost *lost = arg;
	struct kv_range range;

	(void)arena;
	TRY(timed_write_begin(t)); /* reads the state of the history */
	if (lost->put_back)
		return kv_set(t->tx, buf_str(&lost->key), buf_str(&lost->value));
	timed_versions_key(t->db, timed_versions_era(t->state.buckets[0].number),
			   TIMED_VERSION_NOTE, &begin);
	buf_append_str(&end, buf_str(&begin));
	buf_append_byte(&end, 0xff);
	future = kv_get_range(t->tx, buf_str(&begin), buf_str(&end), &options);
	TRY(kv_future_wait(future));
	range = kv_future_range(future);
	assert_false(range.more);
	lost->there = lost->at < range.count;
	if (!lost->there)
		return STATUS_OK;
	buf_clear(&lost->key);
	buf_append_str(&lost->key, range.pairs[lost->at].key);
	buf_clear(&lost->value);
	buf_append_str(&lost->value, range.pairs[lost->at].value);
	return kv_clear(t->tx, buf_str(&lost->key));
}

static enum status
notes_check_run(struct timed *t, struct arena *arena, void *arg)
{
	struct lost *lost = arg;
	const struct catalog_verify_options options = { .found = count_found, .arg = &lost->found };
	struct catalog_verify v = {
		.tx = t->tx,
		.options = &options,
		.scratch = arena,
		.key = BUF_INIT(KV_LIMIT_KEY_BYTES),
		.value = BUF_INIT(KV_LIMIT_VALUE_BYTES),
		.db = t->db,
	};
	enum status status = timed_write_begin(t);

	lost->found = 0;
	if (status == STATUS_OK)
		status = timed_verify_body_notes(&v, &t->state, lost->most);
	buf_release(&v.key);
	buf_release(&v.value);
	return status;
}

/* In one pass over the headers, and in as many as the changes of bodies need by threes. */
static void
a_note_that_is_lost_is_found_by_what_changed_of_a_body(void **state)
{
	struct lost lost = { .key = BUF_INIT(KV_LIMIT_KEY_BYTES), .value = BUF_INIT(64) };
	struct items *f = *state;
	unsigned bodies = 0;

	history_set(f, BOUNDED(CHANGES));
	for (unsigned i = 0; i < CHANGES; i++) {
		char key[16];

		f->now_ms += 5;
		snprintf(key, sizeof(key), "%u", i % 4);
		items_must(f, hash_run, &(struct change){ .key = key, .n = i });
	}
	items_must(f, rename_run, &(struct change){ .key = "1", .other = "renamed" });
	items_must(f, hash_run, &(struct change){ .key = "renamed", .n = CHANGES });
	items_verify(f);
	for (;; lost.at++) {
		unsigned once;

		items_must(f, lose_run, &lost);
		if (!lost.there)
			break;
		lost.most = 1000;
		items_must(f, notes_check_run, &lost);
		once = lost.found;
		lost.most = 3;
		items_must(f, notes_check_run, &lost);
		assert_int_equal(lost.found > 0, once > 0);
		bodies += once;
		lost.put_back = true;
		items_must(f, lose_run, &lost);
		lost.put_back = false;
	}
	items_verify(f);
	/* Each change of the three that were not renamed, and what came after that to the other. */
	assert_int_equal(lost.at, CHANGES + 3);
	assert_int_equal(bodies, CHANGES / 4 * 3 + 1);
	buf_release(&lost.key);
	buf_release(&lost.value);
}

/* ---- Writers ---- */

/* Two transactions that change different members of an item do not conflict, nor does the sweep. */
static void
writers_and_the_sweep_do_not_conflict(void **state)
{
	struct change one = { .key = "x", .n = 0 }, two = { .key = "x", .n = 1 };
	struct items *f = *state;
	struct kv_tx *a, *b;

	history_set(f, BOUNDED(1));
	for (unsigned n = 0; n < 4; n++)
		items_must(f, hash_run, &(struct change){ .key = "x", .n = n });
	f->now_ms += REST_MS;
	arena_clear(f->arena);
	a = items_open(f, false, hash_run, &one);
	b = items_open(f, false, hash_run, &two);
	items_sweep(f);
	assert_int_equal(items_commit(a), STATUS_OK);
	assert_int_equal(items_commit(b), STATUS_OK);
	rest(f);
}

/* The bound costs whoever changes an item two writes that read nothing, and others nothing. */
static void
a_change_costs_two_writes_more(void **state)
{
	items_step *const runs[] = { set_run, hash_run };
	struct items *f = *state;
	struct kv_tx_stats without;

	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		struct change c = { .key = "x", .n = 3 };

		history_set(f, (struct timed_history_bounds){ .seconds = WINDOW_SECONDS });
		for (int n = 0; n < 2; n++) {
			f->now_ms++;
			items_must(f, runs[i], &c);
		}
		without = f->cost;
		history_set(f, BOUNDED(VERSIONS));
		items_must(f, runs[i], &c);
		assert_int_equal(f->cost.reads, without.reads);
		assert_int_equal(f->cost.keys_read, without.keys_read);
		assert_int_equal(f->cost.sets, without.sets + 2);
		assert_int_equal(f->cost.clears, without.clears);
		items_must(f, delete_run, &c);
		history_set(f, (struct timed_history_bounds){ 0 });
	}
}

/* A note from before the horizon, by a transaction that took long, is no state that is kept. */
static void
a_change_that_comes_late_is_forgotten(void **state)
{
	static struct states s;
	struct change late = { .key = "x", .n = 100 };
	struct items *f = *state;
	struct kv_tx *tx;

	s.count = 0;
	history_set(f, BOUNDED(VERSIONS));
	for (int i = 0; i < CHANGES / 2; i++)
		states_change(f, &s, "x", hash_run);
	arena_clear(f->arena);
	f->now_ms += 10;
	tx = items_open(f, false, hash_run, &late);
	for (unsigned i = 0; i < CHANGES; i++) {
		/* Of members that the late one does not change. */
		f->now_ms += 700;
		items_must(f, hash_run,
			   &(struct change){ .key = "x", .n = i % 3 == 1 ? i + 1 : i });
	}
	f->now_ms += REST_MS;
	items_sweep(f);
	assert_int_equal(items_commit(tx), STATUS_OK);
	rest(f);
	assert_int_equal(items_pairs(f, SPACE_TRIM), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define WITH_STORE(name) cmocka_unit_test_setup_teardown(name, items_setup, items_teardown)
		WITH_STORE(exactly_so_many_states_of_an_item_are_kept),
		WITH_STORE(an_item_that_was_changed_less_keeps_all),
		WITH_STORE(a_range_of_items_is_refused_where_one_is_not_known),
		WITH_STORE(what_was_renamed_has_its_past_with_its_new_name),
		WITH_STORE(bodies_that_get_their_place_by_renaming_go_like_others),
		WITH_STORE(a_bound_can_be_changed),
		WITH_STORE(notes_go_with_their_buckets),
		WITH_STORE(bytes_are_counted_of_what_is_left),
		WITH_STORE(what_is_within_the_versions_is_read_as_it_was),
		WITH_STORE(what_is_within_all_bounds_is_read_as_it_was),
		WITH_STORE(what_the_sweep_has_yet_to_clear_is_no_damage),
		WITH_STORE(versions_that_cannot_be_are_found),
		WITH_STORE(a_note_that_is_lost_is_found_by_what_changed_of_a_body),
		WITH_STORE(writers_and_the_sweep_do_not_conflict),
		WITH_STORE(a_change_costs_two_writes_more),
		WITH_STORE(a_change_that_comes_late_is_forgotten),
	};

	return cmocka_run_group_tests_name("versions", tests, NULL, NULL);
}
