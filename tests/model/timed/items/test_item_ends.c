/* Ranges, positions and ids at their ends: of sorted sets by name, of lists and of streams. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "items_model.h"
#include "model/timed/items/item_int.h"
#include "model/timed/items/pack.h"
#include "store.h"

/* ---- Sorted sets by name ---- */

enum {
	NAMES = 8,
	/* Where a range by name may begin or end: at each name, and between them. */
	NAME_BOUNDS = 2 * NAMES + 1,
};

struct by_name {
	bool has_body;
	double score;
};

/* Names of members are those of odd bounds. */
static struct str
bound_name(struct arena *arena, unsigned bound)
{
	return arena_printf(arena, "n%02u", bound);
}

static enum status
names_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_member members[NAMES] = { 0 };
	const struct by_name *b = arg;
	struct timed_item item;

	TRY(timed_item_open(t, STR("z"), arena, &item));
	TRY(timed_item_delete(&item));
	for (unsigned i = 0; i < NAMES; i++)
		members[i] = (struct timed_member){ .name = bound_name(arena, 2 * i + 1),
						    .score = b->score };
	TRY(timed_members_put(&item, TIMED_ZSET, members, NAMES));
	if (item.packed && b->has_body)
		TRY(timed_packed_unfold(&item));
	return STATUS_OK;
}

static enum status
range_check(struct timed_item *item, const struct timed_zset_range *r, unsigned from, unsigned to)
{
	unsigned all = to > from ? to - from : 0;
	unsigned skip = r->skip < all ? (unsigned)r->skip : all;
	unsigned left = all - skip < r->limit ? all - skip : (unsigned)r->limit;
	struct timed_members got;
	uint64_t count;

	TRY(timed_zset_range_count(item, r, &count));
	assert_int_equal(count, all);
	TRY(timed_zset_range(item, r, &got));
	assert_int_equal(got.count, left);
	for (unsigned i = 0; i < left; i++) {
		unsigned n = r->reverse ? to - 1 - skip - i : from + skip + i;

		assert_true(str_eq(got.members[i].name, bound_name(item->arena, 2 * n + 1)));
	}
	return STATUS_OK;
}

/* How many names come before the bound, and the name itself if it does. */
static unsigned
names_before(unsigned bound, bool with)
{
	return bound % 2 ? bound / 2 + with : bound / 2;
}

/* All that may be left out and wanted of a range. */
static enum status
ranges_check(struct timed_item *item, struct timed_zset_range r, unsigned from, unsigned to)
{
	static const size_t limits[] = { 0, 1, 3, NAMES, SIZE_MAX };

	for (unsigned way = 0; way < 2; way++) {
		r.reverse = way;
		for (r.skip = 0; r.skip <= NAMES + 1; r.skip += 3) {
			for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
				r.limit = limits[i];
				TRY(range_check(item, &r, from, to));
			}
		}
	}
	return STATUS_OK;
}

static enum status
by_name_run(struct timed *t, struct arena *arena, void *arg)
{
	static const enum timed_bound_kind kinds[] = { TIMED_BOUND_INCLUSIVE,
						       TIMED_BOUND_EXCLUSIVE };
	struct timed_zset_range r = { .by = TIMED_BY_NAME };
	const struct by_name *b = arg;
	struct timed_item item;

	TRY(timed_item_open(t, STR("z"), arena, &item));
	TRY(timed_now(t));
	assert_int_equal(item.packed, !b->has_body);
	r.lower.kind = r.upper.kind = TIMED_BOUND_END;
	TRY(ranges_check(&item, r, 0, NAMES));
	for (unsigned i = 0; i < 2 * NAME_BOUNDS; i++) {
		unsigned lower = i / 2, lower_before;

		r.lower = (struct timed_bound){ .kind = kinds[i % 2],
						.name = bound_name(arena, lower) };
		lower_before = names_before(lower, i % 2);
		r.upper = (struct timed_bound){ .kind = TIMED_BOUND_END };
		TRY(ranges_check(&item, r, lower_before, NAMES));
		for (unsigned j = 0; j < 2 * NAME_BOUNDS; j += 3) {
			r.upper = (struct timed_bound){ .kind = kinds[j % 2],
							.name = bound_name(arena, j / 2) };
			r.skip = i % 3;
			r.reverse = j % 4 == 1;
			r.limit = i % 5 ? SIZE_MAX : 2;
			TRY(range_check(&item, &r, lower_before, names_before(j / 2, !(j % 2))));
		}
	}
	return STATUS_OK;
}

static void
names_are_in_a_range_of_one_score(void **state)
{
	static const double scores[] = { 0, 1.5, -2, HUGE_VAL };

	for (size_t i = 0; i < sizeof(scores) / sizeof(scores[0]); i++) {
		struct by_name b = { .has_body = i % 2, .score = scores[i] };

		for (unsigned n = 0; n < 2; n++, b.has_body = !b.has_body) {
			items_must(*state, names_run, &b);
			items_must(*state, by_name_run, &b);
		}
	}
}

/* ---- Lists ---- */

enum {
	LIST_ELEMENTS = 8 * 1024, /* more than there can be between two */
	INSERTS = 100,            /* of a transaction */
};

struct between {
	unsigned model[LIST_ELEMENTS];
	size_t count;
	size_t at;       /* of the one to insert behind */
	unsigned pushed; /* they are numbered as they come */
	unsigned way;    /* how the next one is inserted */
	size_t longest;  /* position */
	bool full;
};

static enum status
two_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct str two[] = { STR("0"), STR("1") };
	struct timed_item item;

	(void)arg;
	TRY(timed_item_open(t, STR("l"), arena, &item));
	return timed_list_push(&item, false, two, 2);
}

static enum status
insert_one(struct timed_item *item, struct between *b)
{
	struct str value = arena_printf(item->arena, "%u", b->pushed);
	bool before = b->way % 3 == 0;
	struct timed_elements got;

	TRY(timed_list_range(item, b->at + before, 1, &got));
	assert_int_equal(got.count, 1);
	if (got.elements[0].place.len > b->longest)
		b->longest = got.elements[0].place.len;
	TRY(timed_list_insert(item, &got.elements[0], before, value));
	memmove(&b->model[b->at + 2], &b->model[b->at + 1],
		(b->count - b->at - 1) * sizeof(b->model[0]));
	b->model[b->at + 1] = b->pushed++;
	b->count++;
	/* The next one comes at one side of it or the other. */
	if (b->way++ % 2)
		b->at++;
	return STATUS_OK;
}

struct inserting {
	const struct between *b; /* before */
	struct between *after;
};

static enum status
insert_run(struct timed *t, struct arena *arena, void *arg)
{
	struct inserting *n = arg;
	struct timed_item item;

	*n->after = *n->b;
	TRY(timed_item_open(t, STR("l"), arena, &item));
	for (unsigned i = 0; i < INSERTS; i++) {
		enum status status = insert_one(&item, n->after);

		n->after->full = status == STATUS_LIMIT;
		if (n->after->full)
			break;
		TRY(status);
	}
	return STATUS_OK;
}

static enum status
list_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct between *b = arg;
	struct timed_elements got;
	struct timed_item item;

	TRY(timed_item_open(t, STR("l"), arena, &item));
	TRY(timed_list_range(&item, 0, SIZE_MAX, &got));
	assert_int_equal(got.count, b->count);
	for (size_t i = 0; i < b->count; i++)
		assert_true(str_eq(got.elements[i].value, arena_printf(arena, "%u", b->model[i])));
	return STATUS_OK;
}

static void
elements_are_inserted_until_no_position_is_left(void **state)
{
	struct between *b = calloc(2, sizeof(*b));
	struct inserting n = { .b = &b[0], .after = &b[1] };

	assert_non_null(b);
	b->model[1] = 1;
	b->count = b->pushed = 2;
	items_must(*state, two_run, NULL);
	while (!b->full) {
		assert_true(b->count < LIST_ELEMENTS - INSERTS);
		items_must(*state, insert_run, &n);
		b[0] = b[1];
	}
	assert_true(b->count > 1000);
	assert_int_equal(b->longest, TIMED_PLACE_BYTES);
	items_must(*state, list_run, b);
	items_verify(*state);
	free(b);
}

struct trimming {
	uint64_t from, count;
	size_t left;
};

static enum status
list_trim_run(struct timed *t, struct arena *arena, void *arg)
{
	static const char *const letters[] = { "a", "b", "c", "d" };
	const struct trimming *trim = arg;
	struct timed_elements got;
	struct timed_item item;
	struct str values[4];

	for (size_t i = 0; i < 4; i++)
		values[i] = str_from_cstr(letters[i]);
	TRY(timed_item_open(t, STR("trimmed"), arena, &item));
	TRY(timed_list_trim(&item, trim->from, trim->count));
	assert_int_equal(item.type, TIMED_LEAF);
	TRY(timed_list_push(&item, false, values, 4));
	TRY(timed_list_trim(&item, trim->from, trim->count));
	assert_int_equal(item.type, trim->left ? TIMED_LIST : TIMED_LEAF);
	if (trim->left) {
		TRY(timed_list_range(&item, 0, 9, &got));
		assert_int_equal(got.count, trim->left);
		for (size_t i = 0; i < got.count; i++)
			assert_true(str_eq(got.elements[i].value, values[trim->from + i]));
		TRY(timed_item_delete(&item));
	}
	return STATUS_OK;
}

static void
a_list_is_cut_at_both_ends(void **state)
{
	struct trimming cases[] = {
		{ 0, 4, 4 }, { 0, 5, 4 }, { 0, UINT64_MAX, 4 }, { 0, 3, 3 }, { 0, 1, 1 },
		{ 0, 0, 0 }, { 1, 2, 2 }, { 1, 3, 3 },          { 1, 4, 3 }, { 3, 1, 1 },
		{ 3, 2, 1 }, { 3, 0, 0 }, { 4, 1, 0 },          { 5, 1, 0 }, { UINT64_MAX, 1, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		items_must(*state, list_trim_run, &cases[i]);
}

/* ---- Streams ---- */

static void
ids_have_a_next_one_and_one_before(void **state)
{
	static const struct {
		struct timed_stream_id id, next;
	} cases[] = {
		{ { 0, 0 }, { 0, 1 } },
		{ { 0, UINT64_MAX }, { 1, 0 } },
		{ { 7, UINT64_MAX - 1 }, { 7, UINT64_MAX } },
		{ { UINT64_MAX, 0 }, { UINT64_MAX, 1 } },
		{ { UINT64_MAX - 1, UINT64_MAX }, { UINT64_MAX, 0 } },
	};
	struct timed_stream_id id;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		id = cases[i].id;
		assert_int_equal(timed_stream_id_cmp(id, cases[i].next), -1);
		assert_true(timed_stream_id_next(&id));
		assert_int_equal(timed_stream_id_cmp(id, cases[i].next), 0);
		assert_true(timed_stream_id_before(&id));
		assert_int_equal(timed_stream_id_cmp(id, cases[i].id), 0);
		assert_int_equal(timed_stream_id_cmp(cases[i].next, id), 1);
	}
	id = (struct timed_stream_id){ UINT64_MAX, UINT64_MAX };
	assert_false(timed_stream_id_next(&id));
	assert_true(id.ms == UINT64_MAX && id.seq == UINT64_MAX);
	id = (struct timed_stream_id){ 0, 0 };
	assert_false(timed_stream_id_before(&id));
	assert_true(!id.ms && !id.seq);
}

enum {
	ENTRIES = 9,
};

struct stream_case {
	unsigned deleted; /* of the first, before */
	struct timed_stream_trim trim;
};

static enum status
entries_make(struct timed_item *item, unsigned deleted)
{
	struct str fields[] = { STR("f"), STR("v") };
	struct timed_stream stream;
	uint64_t gone;

	TRY(timed_item_delete(item));
	TRY(timed_stream_get(item, &stream));
	for (unsigned i = 1; i <= ENTRIES; i++) {
		const struct timed_entry entry = { .id = { .ms = i },
						   .fields = fields,
						   .count = 2 };

		TRY(timed_stream_add(item, &stream, &entry));
	}
	for (unsigned i = 1; i <= deleted; i++) {
		const struct timed_stream_id id = { .ms = i };

		TRY(timed_stream_delete(item, &stream, &id, 1, &gone));
		assert_int_equal(gone, 1);
	}
	return STATUS_OK;
}

/* How many are to go: the most that may, so that the next one begins a block. */
static unsigned
trim_model(const struct stream_case *c)
{
	const struct timed_stream_trim *trim = &c->trim;
	unsigned count = ENTRIES - c->deleted, most = count;
	uint64_t least = trim->least.ms + (trim->least.seq > 0);

	if (trim->by_length)
		most = count > trim->length ? count - (unsigned)trim->length : 0;
	else if (least <= ENTRIES)
		most = least > c->deleted + 1 ? (unsigned)least - 1 - c->deleted : 0;
	if (trim->limit && most > trim->limit)
		most = (unsigned)trim->limit;
	while (trim->step && most && most < count && (c->deleted + most) % trim->step)
		most--;
	return most;
}

static enum status
stream_trim_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct stream_case *c = arg;
	const struct timed_stream_range all = { .to = { UINT64_MAX, UINT64_MAX } };
	unsigned gone = trim_model(c);
	struct timed_entries got;
	struct timed_item item;
	uint64_t deleted, count;

	TRY(timed_item_open(t, STR("x"), arena, &item));
	TRY(entries_make(&item, c->deleted));
	TRY(timed_stream_trim(&item, &c->trim, &deleted));
	assert_int_equal(deleted, gone);
	TRY(timed_count(&item, &count));
	assert_int_equal(count, ENTRIES - c->deleted - gone);
	TRY(timed_stream_range(&item, &all, &got));
	assert_int_equal(got.count, count);
	for (size_t i = 0; i < got.count; i++)
		assert_int_equal(got.entries[i].id.ms, c->deleted + gone + i + 1);
	return STATUS_OK;
}

static void
entries_go_in_blocks(void **state)
{
	static const unsigned befores[] = { 0, 1, 4 };

	for (uint64_t step = 0; step <= 5; step++) {
		for (uint64_t limit = 0; limit <= 6; limit += 2) {
			for (unsigned n = 0; n <= ENTRIES + 1; n++) {
				struct stream_case c = {
					.deleted = befores[(n + limit / 2) % 3],
					.trim = { .by_length = true,
						  .length = n,
						  .limit = limit,
						  .step = step },
				};

				items_must(*state, stream_trim_run, &c);
				c.trim.by_length = false;
				c.trim.least = (struct timed_stream_id){ .ms = n, .seq = n % 2 };
				items_must(*state, stream_trim_run, &c);
			}
		}
	}
	items_verify(*state);
}

static enum status
stream_ends_run(struct timed *t, struct arena *arena, void *arg)
{
	static const struct {
		uint64_t from, to;
		size_t limit, count;
	} cases[] = {
		{ 1, ENTRIES, 0, ENTRIES },
		{ 2, ENTRIES - 1, 0, ENTRIES - 2 },
		{ 3, 3, 0, 1 },
		{ 4, 3, 0, 0 },
		{ ENTRIES, ENTRIES + 9, 0, 1 },
		{ 0, 1, 0, 1 },
		{ 1, ENTRIES, 2, 2 },
		{ ENTRIES + 1, UINT64_MAX, 0, 0 },
	};
	struct timed_stream_trim trim = { .by_length = true };
	struct timed_entries got;
	struct timed_item item;
	uint64_t gone;

	(void)arg;
	TRY(timed_item_open(t, STR("y"), arena, &item));
	TRY(timed_stream_trim(&item, &trim, &gone));
	assert_int_equal(gone, 0);
	assert_int_equal(item.type, TIMED_LEAF);
	TRY(entries_make(&item, 0));
	for (size_t i = 0; i < 2 * (sizeof(cases) / sizeof(cases[0])); i++) {
		struct timed_stream_range range = { .from = { .ms = cases[i / 2].from },
						    .to = { .ms = cases[i / 2].to },
						    .limit = cases[i / 2].limit,
						    .reverse = i % 2 };

		TRY(timed_stream_range(&item, &range, &got));
		assert_int_equal(got.count, cases[i / 2].count);
		for (size_t n = 0; n < got.count; n++) {
			uint64_t first = cases[i / 2].from ? cases[i / 2].from : 1;
			uint64_t last = cases[i / 2].to < ENTRIES ? cases[i / 2].to : ENTRIES;

			assert_int_equal(got.entries[n].id.ms, i % 2 ? last - n : first + n);
			assert_int_equal(got.entries[n].count, 2);
		}
	}
	return timed_item_delete(&item);
}

static void
entries_are_read_from_one_id_to_another(void **state)
{
	items_must(*state, stream_ends_run, NULL);
}

/* ---- Several items ---- */

enum {
	ASKED = 5,
};

static const char *const asked_keys[ASKED] = { "set", "nothing", "stream", "value", "set" };

static enum status
several_put_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct timed_expiry never = { .kind = TIMED_EXPIRY_NEVER };
	struct timed_member member = { .name = STR("m") };
	struct timed_item item;

	(void)arg;
	TRY(timed_item_open(t, STR("set"), arena, &item));
	TRY(timed_members_put(&item, TIMED_SET, &member, 1));
	TRY(timed_item_open(t, STR("value"), arena, &item));
	TRY(timed_value_set(&item, STR("v"), never));
	TRY(timed_item_open(t, STR("stream"), arena, &item));
	return entries_make(&item, 0);
}

static enum status
several_run(struct timed *t, struct arena *arena, void *arg)
{
	static const enum timed_type types[ASKED] = { TIMED_SET, TIMED_LEAF, TIMED_STREAM,
						      TIMED_VALUE, TIMED_SET };
	struct kv_future *watches[TIMED_WATCHES];
	struct timed_item items[ASKED];
	struct timed_item *asked[ASKED];

	(void)arg;
	for (size_t i = 0; i < ASKED; i++) {
		TRY(timed_item_name(t, str_from_cstr(asked_keys[i]), arena, &items[i]));
		asked[i] = &items[i];
	}
	timed_items_ask(t, asked, ASKED);
	for (size_t i = 0; i < ASKED; i++) {
		TRY(timed_item_wait(&items[i]));
		assert_int_equal(items[i].type, types[i]);
	}
	for (size_t i = 0; i < ASKED; i++) {
		TRY(timed_item_watch(&items[i], watches));
		assert_non_null(watches[0]);
		assert_int_equal(watches[1] != NULL, types[i] == TIMED_STREAM);
		kv_future_free(watches[0]);
		kv_future_free(watches[1]);
	}
	return STATUS_OK;
}

static void
several_items_are_asked_for_at_once(void **state)
{
	items_must(*state, several_put_run, NULL);
	items_must(*state, several_run, NULL);
}

/* ---- Versions ---- */

struct versioned {
	const char *key;
	bool changes;
	char text[2][TIMED_BASE_BYTES]; /* before the change of the transaction, and behind it */
	size_t lengths[2];
};

static enum status
version_get(struct timed_item *item, struct versioned *v, size_t n)
{
	struct kv_future *asked;
	struct str version;

	TRY(timed_item_version_ask(item, &asked));
	TRY(timed_item_version(item, asked, &version));
	assert_true(version.len <= TIMED_BASE_BYTES);
	memcpy(v->text[n], version.ptr, version.len);
	v->lengths[n] = version.len;
	return STATUS_OK;
}

static enum status
version_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct timed_expiry never = { .kind = TIMED_EXPIRY_NEVER };
	struct str fields[] = { STR("f"), STR("v") };
	struct timed_entry entry = { .fields = fields, .count = 2 };
	struct timed_stream stream;
	struct versioned *v = arg;
	struct timed_item item;

	TRY(timed_item_open(t, str_from_cstr(v->key), arena, &item));
	TRY(version_get(&item, v, 0));
	if (v->changes && item.type == TIMED_STREAM) {
		TRY(timed_stream_get(&item, &stream));
		entry.id = stream.last;
		assert_true(timed_stream_id_next(&entry.id));
		TRY(timed_stream_add(&item, &stream, &entry));
	} else if (v->changes) {
		TRY(timed_value_set(&item, STR("w"), never));
	}
	return version_get(&item, v, 1);
}

static bool
version_eq(const struct versioned *v, size_t n, const struct versioned *w, size_t m)
{
	return str_eq(str_of(v->text[n], v->lengths[n]), str_of(w->text[m], w->lengths[m]));
}

static void
a_version_is_of_no_other_transaction(void **state)
{
	static const char *const keys[] = { "stream", "value" };
	struct items *f = *state;

	items_must(f, several_put_run, NULL);
	for (size_t i = 0; i < 2; i++) {
		struct versioned before = { .key = keys[i] };
		struct versioned change = { .key = keys[i], .changes = true };
		struct versioned after = { .key = keys[i] };

		items_must(f, version_run, &before);
		f->now_ms++;
		items_must(f, version_run, &change);
		items_must(f, version_run, &after);
		assert_true(before.lengths[0]);
		assert_true(version_eq(&before, 0, &before, 1));
		assert_true(version_eq(&before, 0, &change, 0));
		assert_false(version_eq(&change, 0, &change, 1));
		assert_true(version_eq(&after, 0, &after, 1));
		assert_false(version_eq(&before, 0, &after, 0));
	}
	{
		struct versioned absent = { .key = "absent" };

		items_must(f, version_run, &absent);
		assert_int_equal(absent.lengths[0], 0);
		assert_int_equal(absent.lengths[1], 0);
	}
}

/* ---- Databases ---- */

struct naming {
	const char *name;
	enum status want;
};

static enum status
name_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct naming *n = arg;

	(void)arena;
	TRY_WANT(n->want, timed_items_create(t->tx, str_from_cstr(n->name), t->err));
	return STATUS_OK;
}

static void
a_database_has_a_number_or_is_of_functions(void **state)
{
	static const struct naming cases[] = {
		{ "0", STATUS_EXISTS },     { "15", STATUS_EXISTS },
		{ "16", STATUS_INVALID },   { "1", STATUS_OK },
		{ "9", STATUS_OK },         { "10", STATUS_OK },
		{ "00", STATUS_INVALID },   { "01", STATUS_INVALID },
		{ "001", STATUS_INVALID },  { "-1", STATUS_INVALID },
		{ "a", STATUS_INVALID },    { "18446744073709551617", STATUS_INVALID },
		{ "functions", STATUS_OK }, { "function", STATUS_INVALID },
	};
	struct naming naming;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		naming = cases[i];
		items_must(*state, name_run, &naming);
	}
}

static enum status
keep_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct timed_history_bounds *bounds = arg;

	(void)arena;
	return timed_history_set(t, *bounds);
}

static enum status
flush_run(struct timed *t, struct arena *arena, void *arg)
{
	(void)arena;
	(void)arg;
	return timed_items_flush(t);
}

static enum status
bounds_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct timed_history_bounds *want = arg;
	struct timed_history_bounds got = { 0 };
	struct timed_item item;
	uint64_t count;

	TRY(timed_items_count(t, &count));
	assert_int_equal(count, 0);
	TRY(timed_item_open(t, STR("set"), arena, &item));
	assert_int_equal(item.type, TIMED_LEAF);
	assert_int_equal(timed_history_seconds(t->db), want->seconds);
	if (want->seconds) {
		TRY(timed_history_bounds_get(t, &got));
		assert_int_equal(got.seconds, want->seconds);
		assert_int_equal(got.bytes, want->bytes);
		assert_int_equal(got.versions, want->versions);
	}
	return STATUS_OK;
}

static void
an_emptied_database_keeps_a_history_if_it_did(void **state)
{
	struct timed_history_bounds cases[] = {
		{ 0 },
		{ .seconds = 100 },
		{ .seconds = 7, .bytes = 1000 * 1000, .versions = 3 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		items_must(*state, several_put_run, NULL);
		if (cases[i].seconds)
			items_must(*state, keep_run, &cases[i]);
		items_must(*state, flush_run, NULL);
		items_must(*state, bounds_run, &cases[i]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define WITH_STORE(name) cmocka_unit_test_setup_teardown(name, items_setup, items_teardown)
		WITH_STORE(names_are_in_a_range_of_one_score),
		WITH_STORE(elements_are_inserted_until_no_position_is_left),
		WITH_STORE(a_list_is_cut_at_both_ends),
		cmocka_unit_test(ids_have_a_next_one_and_one_before),
		WITH_STORE(entries_go_in_blocks),
		WITH_STORE(entries_are_read_from_one_id_to_another),
		WITH_STORE(several_items_are_asked_for_at_once),
		WITH_STORE(a_version_is_of_no_other_transaction),
		WITH_STORE(a_database_has_a_number_or_is_of_functions),
		WITH_STORE(an_emptied_database_keeps_a_history_if_it_did),
	};

	return cmocka_run_group_tests_name("item ends", tests, NULL, NULL);
}
