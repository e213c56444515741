/*
 * Results of reduces over wide and narrow groups, side by side: compared with counts of their rows,
 * what they cost, and where their pages end.
 */
#include "views_world.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	WIDE = 27,       /* groups of about 400 rows; behind each are some of one row */
	SPACING = 10000, /* between their keys */
	KEYS = (WIDE + 1) * SPACING,
	ROWS = 12000,
	DOC_ROWS = 100,
	ASKED = 60,
	PAGE_MOST = 100,
	FEW_SUMS = 120, /* groups of 100 rows */

	/* Of groups that are too narrow for sums. A page ends behind PAGE_ROWS. */
	NARROW = 900,
	NARROW_ROWS = 30,
	NARROW_FIRST =
		19, /* rows of the first one: with it, PAGE_GROUPS have PAGE_ROWS to the row */
	PAGE_GROUPS = 667,
	NARROW_SKIP = 800, /* groups of more than PAGE_ROWS */
	DOC_GROUPS = 3,

	/* Rows with long values, of which a page keeps a megabyte. */
	LONG_ROWS = 200,
	LONG_BYTES = 8000,
};

/* How many rows each key has. */
static int counts[KEYS];

static int
row_key(int n, int groups, bool narrow)
{
	int key = n % groups * (WIDE * SPACING / groups);

	return narrow && n % 10 == 0 ? key + 1 + n / 10 : key;
}

/* So many groups; with `narrow`, groups of a row are among them. */
static struct world *
wide_world(void *fixture, int groups, bool narrow)
{
	struct world *w = world_new(fixture);
	AUTO(buf_release) struct buf text = BUF_INIT(64 * 1024);
	char part[64];

	memset(counts, 0, sizeof(counts));
	for (int n = 0; n < ROWS; n++) {
		counts[row_key(n, groups, narrow)]++;
		(void)snprintf(part, sizeof(part), "%s[%d,1]", n % DOC_ROWS ? "," : "{\"rows\":[",
			       row_key(n, groups, narrow));
		buf_append_cstr(&text, part);
		if ((n + 1) % DOC_ROWS)
			continue;
		buf_append_cstr(&text, "]}");
		buf_append_byte(&text, '\0');
		assert_int_equal(buf_status(&text), STATUS_OK);
		(void)snprintf(part, sizeof(part), "w%05d", n);
		(void)fixture_put(w->f, part, NULL, text.ptr);
		buf_clear(&text);
	}
	update(w);
	return w;
}

/* The next key in the direction that has rows; -1: none up to the other end. */
static int
next_key(int key, int end, bool descending)
{
	for (; descending ? key >= end : key <= end; key += descending ? -1 : 1)
		if (counts[key])
			return key;
	return -1;
}

static void
asked_keys(struct asked *a, int low, int high, bool descending)
{
	struct view_question *q = &a->question;
	struct err err = { 0 };

	*q = (struct view_question){
		.descending = descending,
		.start_key = arena_printf(a->w.arena, "%d", descending ? high : low),
		.end_key = arena_printf(a->w.arena, "%d", descending ? low : high),
	};
	assert_int_equal(view_range_make(&a->group, q, &a->w, &a->range, &err), STATUS_OK);
}

static void
check_group(struct world *w, const struct view_result *result, int key)
{
	assert_true(key >= 0);
	assert_int_equal(result->error.name.len, 0);
	assert_true(str_eq(result->key, arena_printf(w->f->arena, "%d", key)));
	assert_true(str_eq(result->value, arena_printf(w->f->arena, "%d", counts[key])));
}

static void
check_question(struct world *w, struct asked *a, struct view_reducing *reducing)
{
	int low = (int)rand_seq_below(&w->rand, KEYS);
	int high = low + (int)rand_seq_below(&w->rand, (uint64_t)(KEYS - low));
	bool descending = rand_seq_below(&w->rand, 2);
	size_t most = 1 + rand_seq_below(&w->rand, PAGE_MOST);
	struct view_groups_options options = { .level = VIEW_LEVEL_EXACT,
					       .skip = rand_seq_below(&w->rand, 50),
					       .limit = UINT64_MAX };
	int step = descending ? -1 : 1, end = descending ? low : high;
	int key = next_key(descending ? high : low, end, descending);
	struct view_results page;
	struct arena_mark mark;

	asked_keys(a, low, high, descending);
	mark = arena_mark(a->w.arena);
	for (uint64_t i = 0; i < options.skip && key >= 0; i++)
		key = next_key(key + step, end, descending);
	do {
		groups_page(w, a, reducing, &options, most, &page);
		assert_true(page.count <= most);
		for (size_t i = 0; i < page.count; i++) {
			check_group(w, &page.results[i], key);
			key = next_key(key + step, end, descending);
		}
		if (page.count)
			options.after = arena_dup(w->f->arena, page.results[page.count - 1].place);
		options.skip = 0;
		arena_reset(a->w.arena, mark);
	} while (page.more);
	assert_int_equal(key, -1);
}

static void
groups_of_any_width_are_added_up(void **state)
{
	struct world *w = wide_world(*state, WIDE, true);
	const struct view_map *map = &w->design.maps[PAIRS_MAP];
	struct view_reducing reducing = { .design = &w->design,
					  .map = PAIRS_MAP,
					  .functions = &views_functions };

	for (int i = 0; i < ASKED; i++) {
		struct arena_mark mark = arena_mark(w->f->arena);
		struct asked a;

		/* _sum, _count and a function: as many as there are rows. */
		reducing.reduce = (size_t)i % 3;
		assert_true(map->reduce_count > 3);
		asked_open(w, &a);
		check_question(w, &a, &reducing);
		asked_close(&a);
		arena_reset(w->f->arena, mark);
	}
	world_free(w);
}

/*
 * Each level of sums is gone through once, and read in waves. At the end of a group are some 64
 * rows, twice what a sum covers on average, since it is the longer ones that ends fall into.
 */
static void
wide_groups_are_read_in_one_pass(void **state)
{
	struct world *w = wide_world(*state, WIDE, false);
	struct view_reducing reducing = { .design = &w->design, .map = PAIRS_MAP };
	struct view_groups_options options = { .level = VIEW_LEVEL_EXACT, .limit = UINT64_MAX };
	struct view_results page;
	struct asked a;

	for (int descending = 0; descending < 2; descending++) {
		struct kv_tx_stats before, after;

		asked_open(w, &a);
		asked_keys(&a, 0, KEYS, descending);
		before = kv_tx_stats(a.tx);
		groups_page(w, &a, &reducing, &options, PAGE_MOST, &page);
		after = kv_tx_stats(a.tx);
		assert_int_equal(page.count, WIDE);
		assert_false(page.more);
		for (int i = 0; i < WIDE; i++)
			check_group(w, &page.results[i], (descending ? WIDE - 1 - i : i) * SPACING);
		assert_in_range(after.reads - before.reads, 1, WIDE * 2);
		assert_in_range(after.round_trips - before.round_trips, 0, WIDE / 2);
		asked_close(&a);
	}
	world_free(w);
}

/* A few sums each, between which are more gaps than a wave has. */
static void
groups_of_few_sums_are_read_in_waves(void **state)
{
	struct world *w = wide_world(*state, FEW_SUMS, false);
	struct view_reducing reducing = { .design = &w->design, .map = PAIRS_MAP };
	struct view_groups_options options = { .level = VIEW_LEVEL_EXACT, .limit = UINT64_MAX };
	struct view_results page;
	struct asked a;

	for (int descending = 0; descending < 2; descending++) {
		int key = next_key(descending ? KEYS - 1 : 0, descending ? 0 : KEYS - 1,
				   descending);

		asked_open(w, &a);
		asked_keys(&a, 0, KEYS, descending);
		groups_page(w, &a, &reducing, &options, 2 * FEW_SUMS, &page);
		assert_int_equal(page.count, FEW_SUMS);
		for (int i = 0; i < FEW_SUMS; i++) {
			check_group(w, &page.results[i], key);
			key = next_key(key + (descending ? -1 : 1), descending ? 0 : KEYS - 1,
				       descending);
		}
		asked_close(&a);
	}
	world_free(w);
}

/* ---- Pages that end early ---- */

static struct world *
narrow_world(void *fixture)
{
	struct world *w = world_new(fixture);
	AUTO(buf_release) struct buf text = BUF_INIT(64 * 1024);
	char id[16];

	for (int i = 0; i < NARROW; i++) {
		int rows = i ? NARROW_ROWS : NARROW_FIRST;

		buf_append_cstr(&text, i % DOC_GROUPS ? "" : "{\"rows\":[");
		for (int n = 0; n < rows; n++)
			buf_printf(&text, "%s[%d,1]", n || i % DOC_GROUPS ? "," : "", i);
		if ((i + 1) % DOC_GROUPS)
			continue;
		buf_append(&text, "]}", sizeof("]}"));
		assert_int_equal(buf_status(&text), STATUS_OK);
		(void)snprintf(id, sizeof(id), "n%05d", i);
		(void)fixture_put(w->f, id, NULL, text.ptr);
		buf_clear(&text);
	}
	update(w);
	return w;
}

static void
check_narrow(struct world *w, const struct view_results *page, int first)
{
	for (size_t i = 0; i < page->count; i++) {
		int key = first + (int)i;

		assert_true(str_eq(page->results[i].key, arena_printf(w->f->arena, "%d", key)));
		assert_true(
			str_eq(page->results[i].value,
			       arena_printf(w->f->arena, "%d", key ? NARROW_ROWS : NARROW_FIRST)));
	}
}

static void
a_page_ends_when_it_has_read_many_rows(void **state)
{
	struct world *w = narrow_world(*state);
	struct view_reducing reducing = { .design = &w->design, .map = PAIRS_MAP };
	struct view_groups_options options = { .level = VIEW_LEVEL_EXACT, .limit = UINT64_MAX };
	struct view_results page;
	struct asked a;

	asked_open(w, &a);
	asked_keys(&a, 0, NARROW, false);
	groups_page(w, &a, &reducing, &options, NARROW, &page);
	assert_int_equal(page.count, PAGE_GROUPS);
	assert_true(page.more);
	check_narrow(w, &page, 0);
	options.after = page.results[PAGE_GROUPS - 1].place;
	groups_page(w, &a, &reducing, &options, NARROW, &page);
	assert_int_equal(page.count, NARROW - PAGE_GROUPS);
	assert_false(page.more);
	check_narrow(w, &page, PAGE_GROUPS);

	/* One that has passed over so many has a group, so that whoever asks for more gets on. */
	options = (struct view_groups_options){ .level = VIEW_LEVEL_EXACT,
						.skip = NARROW_SKIP,
						.limit = UINT64_MAX };
	groups_page(w, &a, &reducing, &options, NARROW, &page);
	assert_int_equal(page.count, 1);
	assert_true(page.more);
	check_narrow(w, &page, NARROW_SKIP);
	asked_close(&a);
	world_free(w);
}

/* Brings a view of one map and _count up to date. */
static void
update_counted(struct world *w, const struct view_functions *functions)
{
	struct view_target target = target_of(w);
	struct catalog_seq least = newest(w);
	struct view_error error;
	struct err err = { 0 };

	assert_int_equal(view_design_parse(STR("{\"views\":{\"p\":{\"map\":\"pairs\",\"reduce\":"
					       "\"_count\"}}}"),
					   false, w->f->arena, &w->design, &err),
			 STATUS_OK);
	target.functions = functions;
	assert_int_equal(view_update(w->engine, &target, &least, WAIT_FOREVER, NULL, w->f->arena,
				     &error, &err),
			 STATUS_OK);
}

static void
asked_all(struct asked *a, bool descending)
{
	struct err err = { 0 };

	a->question = (struct view_question){ .descending = descending };
	assert_int_equal(view_range_make(&a->group, &a->question, &a->w, &a->range, &err),
			 STATUS_OK);
}

/* A row for each document, which is its key. */
static enum status
map_long_value(void *arg, const struct view_design *design, const struct str *docs, size_t count,
	       struct arena *arena, struct view_sink *sink, size_t *ret_done,
	       struct view_error *ret_error, struct err *err)
{
	char *value = arena_bytes(arena, LONG_BYTES);

	(void)arg, (void)docs, (void)ret_error, (void)err;
	if (!value)
		return STATUS_LIMIT;
	memset(value, 'v', LONG_BYTES);
	value[0] = value[LONG_BYTES - 1] = '"';
	for (*ret_done = 0; *ret_done < count; ++*ret_done) {
		for (size_t i = 0; i < design->map_count; i++) {
			view_sink_next(sink);
			view_sink_row(sink, docs[*ret_done], str_of(value, LONG_BYTES));
		}
	}
	return STATUS_OK;
}

/* Read backwards, what a group is made of is kept until the group has begun. */
static void
a_page_ends_when_it_has_kept_many_bytes(void **state)
{
	const struct view_functions functions = { .map = map_long_value };
	struct world *w = world_new(*state);
	struct view_reducing reducing = { .design = &w->design, .map = PAIRS_MAP };
	struct view_groups_options options = { .level = VIEW_LEVEL_EXACT, .limit = UINT64_MAX };
	struct view_results page;
	struct asked a;
	size_t first;
	char id[16];

	for (int i = 0; i < LONG_ROWS; i++) {
		(void)snprintf(id, sizeof(id), "l%05d", i);
		(void)fixture_put(w->f, id, NULL, "{}");
	}
	update_counted(w, &functions);
	asked_open(w, &a);
	asked_all(&a, true);
	groups_page(w, &a, &reducing, &options, LONG_ROWS, &page);
	assert_in_range(page.count, LONG_ROWS / 2, LONG_ROWS - 1);
	assert_true(page.more);
	first = page.count;
	options.after = page.results[first - 1].place;
	groups_page(w, &a, &reducing, &options, LONG_ROWS, &page);
	assert_int_equal(page.count, LONG_ROWS - first);
	assert_false(page.more);
	asked_close(&a);
	world_free(w);
}

/* ---- Keys ---- */

#define SPACED_KEY "[1, \"x\" ]"

static enum status
map_spaced_key(void *arg, const struct view_design *design, const struct str *docs, size_t count,
	       struct arena *arena, struct view_sink *sink, size_t *ret_done,
	       struct view_error *ret_error, struct err *err)
{
	(void)arg, (void)docs, (void)arena, (void)ret_error, (void)err;
	for (*ret_done = 0; *ret_done < count; ++*ret_done) {
		for (size_t i = 0; i < design->map_count; i++) {
			view_sink_next(sink);
			view_sink_row(sink, STR(SPACED_KEY), STR("1"));
		}
	}
	return STATUS_OK;
}

/* The key of a group of exact keys is that of its row, which has blanks of its own. */
static void
an_exact_key_stays_as_it_was_emitted(void **state)
{
	static const struct {
		unsigned level;
		const char *key;
	} cases[] = { { VIEW_LEVEL_EXACT, SPACED_KEY }, { 2, "[1, \"x\"]" }, { 1, "[1]" } };
	const struct view_functions functions = { .map = map_spaced_key };
	struct world *w = world_new(*state);
	struct view_reducing reducing = { .design = &w->design, .map = PAIRS_MAP };

	(void)fixture_put(w->f, "d", NULL, "{}");
	update_counted(w, &functions);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct view_groups_options options = { .level = cases[i].level,
						       .limit = UINT64_MAX };
		struct view_results page;
		struct asked a;

		asked_open(w, &a);
		asked_all(&a, false);
		groups_page(w, &a, &reducing, &options, PAGE_MOST, &page);
		assert_int_equal(page.count, 1);
		assert_true(str_eq(page.results[0].key, str_from_cstr(cases[i].key)));
		asked_close(&a);
	}
	world_free(w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(groups_of_any_width_are_added_up, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(wide_groups_are_read_in_one_pass, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(groups_of_few_sums_are_read_in_waves, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(a_page_ends_when_it_has_read_many_rows,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(a_page_ends_when_it_has_kept_many_bytes,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(an_exact_key_stays_as_it_was_emitted, fixture_setup,
						fixture_teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
