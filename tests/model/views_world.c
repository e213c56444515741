/* The naive model of views, and what is compared with it. */
#include "views_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "doc/json_value.h"

const char views_design_text[] = "{\"_id\":\"_design/x\",\"views\":{"
				 "\"a_sum\":{\"map\":\"pairs\",\"reduce\":\"_sum\"},"
				 "\"b_count\":{\"map\":\"pairs\",\"reduce\":\"_count\"},"
				 "\"c_own\":{\"map\":\"pairs\",\"reduce\":\"own\"},"
				 "\"d_first\":{\"map\":\"pairs\",\"reduce\":\"_first\"},"
				 "\"e_last\":{\"map\":\"pairs\",\"reduce\":\"_last\"},"
				 "\"f_top\":{\"map\":\"pairs\",\"reduce\":\"_top_2\"},"
				 "\"g_ids\":{\"map\":\"ids\"}}}";

struct asked_reduces asked_reduces;

/* ---- Functions, as a worker would have them ---- */

static enum status
map_pairs(const struct json_value *rows, struct arena *arena, struct view_sink *sink)
{
	struct json_value *items, *pair;
	size_t count, two;

	TRY(json_value_items(rows, arena, &items, &count, NULL));
	for (size_t i = 0; i < count; i++) {
		TRY(json_value_items(&items[i], arena, &pair, &two, NULL));
		view_sink_row(sink, pair[0].text, pair[1].text);
	}
	return STATUS_OK;
}

static enum status
test_map(void *arg, const struct view_design *design, const struct str *docs, size_t count,
	 struct arena *arena, struct view_sink *sink, size_t *ret_done,
	 struct view_error *ret_error, struct err *err)
{
	size_t most = arg ? *(size_t *)arg : 300;

	(void)ret_error;
	for (*ret_done = 0; *ret_done < count && *ret_done < most; ++*ret_done) {
		struct json_member *members;
		struct json_value doc;
		const struct json_value *rows, *more;
		size_t n;

		TRY(json_value_read(docs[*ret_done], arena, &doc, err));
		TRY(json_value_members(&doc, arena, &members, &n, err));
		rows = json_value_find(members, n, "rows");
		more = json_value_find(members, n, "more");
		for (size_t i = 0; i < design->map_count; i++) {
			view_sink_next(sink);
			if (str_eq(design->maps[i].source, STR("ids")))
				view_sink_row(sink, json_value_find(members, n, "_id")->text,
					      more ? more->text : STR("null"));
			else if (rows)
				TRY(map_pairs(rows, arena, sink));
		}
	}
	return STATUS_OK;
}

static void
note_asked(struct str name, const struct view_group_input *group)
{
	uint64_t print = hash_keyed(0, name);

	print = hash_keyed(hash_keyed(print, group->keys), group->values);
	for (size_t i = 0; i < asked_reduces.count; i++)
		asked_reduces.again += asked_reduces.prints[i] == print;
	assert_true(asked_reduces.count < sizeof(asked_reduces.prints) / sizeof(print));
	asked_reduces.prints[asked_reduces.count++] = print;
}

/* The sum of the values, by an own sum. */
static enum status
test_reduce(void *arg, const struct view_design *design, const struct str *names, size_t name_count,
	    bool rereduce, const struct view_group_input *groups, size_t group_count,
	    struct arena *arena, struct str *ret_results, struct view_error *ret_errors,
	    struct view_error *ret_error, struct err *err)
{
	(void)arg, (void)design, (void)ret_errors, (void)ret_error;
	assert_int_equal(name_count, 1);
	for (size_t i = 0; asked_reduces.counting && !rereduce && i < group_count; i++)
		note_asked(names[0], &groups[i]);
	for (size_t i = 0; i < group_count; i++) {
		struct json_value array, *items;
		size_t count;
		long sum = 0;

		/* The memory may end here, too. */
		TRY(json_value_read(groups[i].keys, arena, &array, err));
		TRY(json_value_read(groups[i].values, arena, &array, err));
		TRY(json_value_items(&array, arena, &items, &count, err));
		assert_true(count > 0);
		for (size_t k = 0; k < count; k++)
			sum += strtol(items[k].text.ptr, NULL, 10);
		ret_results[i] = arena_printf(arena, "%ld", sum);
	}
	return STATUS_OK;
}

const struct view_functions views_functions = { .map = test_map, .reduce = test_reduce };

/* ---- The naive model ---- */

static int
key_cmp(const struct naive_key *a, const struct naive_key *b)
{
	if (a->kind != b->kind)
		return a->kind - b->kind;
	if (a->kind == 1)
		return strcmp(a->word, b->word);
	if (a->number != b->number)
		return a->number - b->number;
	return a->kind == 2 ? strcmp(a->word, b->word) : 0;
}

static int
row_cmp(const void *x, const void *y)
{
	const struct naive_row *a = x, *b = y;
	int order = key_cmp(&a->key, &b->key);

	if (order == 0)
		order = strcmp(a->id, b->id);
	return order ? order : a->value - b->value;
}

static struct str
key_text(struct world *w, const struct naive_key *key)
{
	if (key->kind == 0)
		return arena_printf(w->f->arena, "%d", key->number);
	if (key->kind == 1)
		return arena_printf(w->f->arena, "\"%s\"", key->word);
	return arena_printf(w->f->arena, "[%d,\"%s\"]", key->number, key->word);
}

static struct naive_key
key_random(struct world *w)
{
	struct naive_key key = { .kind = (int)rand_seq_below(&w->rand, 3),
				 .number = (int)rand_seq_below(&w->rand, 5) };

	key.word[0] = (char)('a' + rand_seq_below(&w->rand, 4));
	if (key.kind == 1)
		key.number = 0;
	if (key.kind == 0)
		key.word[0] = '\0';
	return key;
}

void
naive_rows(struct world *w)
{
	w->row_count = 0;
	for (size_t i = 0; i < DOCS; i++) {
		const struct naive_doc *doc = &w->docs[i];

		for (int k = 0; doc->live && k < doc->count; k++) {
			struct naive_row *row = &w->rows[w->row_count++];

			*row = (struct naive_row){ .key = doc->keys[k], .value = doc->values[k] };
			memcpy(row->id, doc->id, sizeof(row->id));
		}
	}
	qsort(w->rows, w->row_count, sizeof(w->rows[0]), row_cmp);
}

/* ---- Edits ---- */

struct purge_arg {
	struct fixture *f;
	struct rev_purge_query query;
};

static enum status
purge_body(struct kv_tx *tx, void *arg)
{
	struct purge_arg *p = arg;
	struct rev_purge_result result;

	return rev_purge(tx, p->f->db, &p->query, 1, p->f->arena, &result, NULL);
}

static void
doc_purge(struct world *w, struct naive_doc *doc)
{
	struct rev_id rev = fixture_rev(w->f, doc->rev);
	struct purge_arg arg = { w->f, { str_from_cstr(doc->id), &rev, 1 } };

	assert_int_equal(kv_run(w->f->store, purge_body, &arg, NULL, NULL), STATUS_OK);
	doc->live = false;
	doc->rev[0] = '\0';
}

void
doc_put(struct world *w, struct naive_doc *doc)
{
	AUTO(buf_release) struct buf text = BUF_INIT(4096);
	const char *rev;

	doc->count = (int)rand_seq_below(&w->rand, PAIRS + 1);
	buf_append_cstr(&text, "{\"rows\":[");
	for (int k = 0; k < doc->count; k++) {
		/* Some rows stay as they are. */
		if (!doc->live || rand_seq_below(&w->rand, 2)) {
			doc->keys[k] = key_random(w);
			doc->values[k] = (int)rand_seq_below(&w->rand, 2000) - 1000;
		}
		buf_printf(&text, "%s[%s,%d]", k ? "," : "", key_text(w, &doc->keys[k]).ptr,
			   doc->values[k]);
	}
	buf_append_cstr(&text, "]}");
	buf_append_byte(&text, '\0');
	/* A number that came with fewer rows keeps no old ones. */
	for (int k = doc->count; k < PAIRS; k++) {
		doc->keys[k] = key_random(w);
		doc->values[k] = 1;
	}
	rev = fixture_put(w->f, doc->id, doc->live ? doc->rev : NULL, text.ptr);
	(void)snprintf(doc->rev, sizeof(doc->rev), "%s", rev);
	doc->live = true;
}

void
edit_randomly(struct world *w, size_t edits)
{
	for (size_t i = 0; i < edits; i++) {
		struct naive_doc *doc = &w->docs[rand_seq_below(&w->rand, DOCS)];
		uint64_t what = rand_seq_below(&w->rand, 10);

		if (what < 7 || !doc->live) {
			doc_put(w, doc);
		} else if (what < 9) {
			(void)fixture_delete(w->f, doc->id, doc->rev);
			doc->live = false;
		} else {
			doc_purge(w, doc);
		}
	}
}

/* ---- Reading ---- */

void
asked_open(struct world *w, struct asked *a)
{
	struct err err = { 0 };

	*a = (struct asked){ .tx = fixture_begin(w->f) };
	a->w.arena = arena_new(WORK_BYTES);
	assert_non_null(a->w.arena);
	assert_int_equal(view_group_open(a->tx, w->f->db, &w->design, a->w.arena, &a->group, &err),
			 STATUS_OK);
	assert_int_equal(a->group.phase, VIEW_PHASE_READY);
}

void
asked_close(struct asked *a)
{
	kv_tx_free(a->tx);
	arena_free(a->w.arena);
}

static void
asked_range(struct world *w, struct asked *a, bool whole)
{
	struct naive_key low = key_random(w), high = key_random(w);
	bool has_low = !whole && rand_seq_below(&w->rand, 3);
	bool has_high = !whole && rand_seq_below(&w->rand, 3);
	bool exclusive = rand_seq_below(&w->rand, 2);
	struct view_question *q = &a->question;
	struct err err = { 0 };

	*q = (struct view_question){ .descending = rand_seq_below(&w->rand, 2),
				     .exclusive_end = exclusive };
	if (has_low)
		*(q->descending ? &q->end_key : &q->start_key) = key_text(w, &low);
	if (has_high)
		*(q->descending ? &q->start_key : &q->end_key) = key_text(w, &high);
	assert_int_equal(view_range_make(&a->group, q, &a->w, &a->range, &err), STATUS_OK);
	a->low = 0;
	a->high = w->row_count;
	while (has_low && a->low < w->row_count) {
		int order = key_cmp(&w->rows[a->low].key, &low);

		if (order > 0 || (order == 0 && !(exclusive && q->descending)))
			break;
		a->low++;
	}
	while (has_high && a->high > 0) {
		int order = key_cmp(&w->rows[a->high - 1].key, &high);

		if (order < 0 || (order == 0 && !(exclusive && !q->descending)))
			break;
		a->high--;
	}
	if (a->high < a->low)
		a->high = a->low;
}

static const struct naive_row *
asked_row(const struct world *w, const struct asked *a, size_t at)
{
	return &w->rows[a->question.descending ? a->high - 1 - at : a->low + at];
}

static void
check_rows(struct world *w, struct asked *a)
{
	size_t count = a->high - a->low;
	struct view_rows_options options = { .skip = rand_seq_below(&w->rand, count + 3),
					     .limit = rand_seq_below(&w->rand, count + 3) };
	size_t at = options.skip, taken = 0;
	struct view_rows rows;
	struct view_row row;
	enum status status;
	uint64_t n;

	if (rand_seq_below(&w->rand, 2))
		options.limit = UINT64_MAX;
	assert_int_equal(view_rows_begin(&rows, a->tx, w->f->db, &a->group, PAIRS_MAP, &a->range,
					 &options, &a->w),
			 STATUS_OK);
	while ((status = view_rows_next(&rows, &a->w, &row)) == STATUS_OK) {
		const struct naive_row *expected;
		struct str place = arena_dup(a->w.arena, row.place);

		assert_true(at < count);
		assert_true(taken < options.limit);
		expected = asked_row(w, a, at);
		assert_true(str_eq(row.id, str_from_cstr(expected->id)));
		assert_true(str_eq(row.key, key_text(w, &expected->key)));
		assert_int_equal(strtol(row.value.ptr, NULL, 10), expected->value);
		at++;
		taken++;
		if (rand_seq_below(&w->rand, 8))
			continue;
		/* The rest from another cursor, behind this row. */
		view_rows_end(&rows);
		options.skip = 0;
		options.after = place;
		if (options.limit != UINT64_MAX)
			options.limit -= taken;
		taken = 0;
		assert_int_equal(view_rows_begin(&rows, a->tx, w->f->db, &a->group, PAIRS_MAP,
						 &a->range, &options, &a->w),
				 STATUS_OK);
	}
	assert_int_equal(status, STATUS_NOT_FOUND);
	view_rows_end(&rows);
	if (options.limit == UINT64_MAX && at < count)
		fail_msg("%zu rows of %zu; skip %llu, descending %d, low %zu, high %zu, all %zu",
			 at, count, (unsigned long long)options.skip, a->range.descending, a->low,
			 a->high, w->row_count);
	assert_int_equal(
		view_rows_count(a->tx, w->f->db, &a->group, PAIRS_MAP, &a->range, &a->w, &n),
		STATUS_OK);
	assert_int_equal(n, count);
	assert_int_equal(
		view_rows_offset(a->tx, w->f->db, &a->group, PAIRS_MAP, &a->range, &a->w, &n),
		STATUS_OK);
	if (count && !a->range.descending)
		assert_int_equal(n, a->low);
	if (count && a->range.descending)
		assert_int_equal(n, w->row_count - a->high);
}

/* True if two rows are of one group. */
static bool
same_group(const struct naive_row *a, const struct naive_row *b, unsigned level)
{
	if (level == VIEW_LEVEL_ALL)
		return true;
	if (level == 1 && a->key.kind == 2 && b->key.kind == 2)
		return a->key.number == b->key.number;
	return key_cmp(&a->key, &b->key) == 0;
}

static struct str
group_text(struct world *w, const struct naive_row *row, unsigned level)
{
	if (level == VIEW_LEVEL_ALL)
		return STR("null");
	if (level == 1 && row->key.kind == 2)
		return arena_printf(w->f->arena, "[%d]", row->key.number);
	return key_text(w, &row->key);
}

static struct str
value_expected(struct world *w, const struct asked *a, size_t from, size_t to,
	       const struct view_reduce *reduce)
{
	bool descending = a->question.descending;
	int sum = 0, first = INT32_MIN, second = INT32_MIN;

	for (size_t i = from; i < to; i++) {
		int value = asked_row(w, a, i)->value;

		sum += value;
		if (value > first) {
			second = first;
			first = value;
		} else if (value > second && value != first) {
			second = value;
		}
	}
	if (reduce->kind == VIEW_REDUCE_COUNT)
		return arena_printf(w->f->arena, "%zu", to - from);
	if (reduce->kind == VIEW_REDUCE_FIRST)
		return arena_printf(w->f->arena, "%d",
				    asked_row(w, a, descending ? to - 1 : from)->value);
	if (reduce->kind == VIEW_REDUCE_LAST)
		return arena_printf(w->f->arena, "%d",
				    asked_row(w, a, descending ? from : to - 1)->value);
	if (reduce->kind == VIEW_REDUCE_TOP)
		return second == INT32_MIN ? arena_printf(w->f->arena, "[%d]", first)
					   : arena_printf(w->f->arena, "[%d,%d]", first, second);
	return arena_printf(w->f->arena, "%d", sum);
}

void
groups_page(struct world *w, struct asked *a, const struct view_reducing *reducing,
	    const struct view_groups_options *options, size_t most, struct view_results *ret)
{
	struct view_error error;
	struct err err = { 0 };

	assert_int_equal(view_groups_page(a->tx, w->f->db, &a->group, reducing, &a->range, options,
					  most, &a->w, ret),
			 STATUS_OK);
	assert_int_equal(view_groups_reduce(reducing, &a->w, ret, &error, &err), STATUS_OK);
	view_results_release(ret);
}

static void
check_groups(struct world *w, struct asked *a, unsigned level)
{
	const struct view_map *map = &w->design.maps[PAIRS_MAP];
	struct view_reducing reducing = { .design = &w->design,
					  .map = PAIRS_MAP,
					  .reduce = rand_seq_below(&w->rand, map->reduce_count),
					  .functions = &views_functions };
	struct view_groups_options options = { .level = level, .limit = UINT64_MAX };
	size_t at = 0, count = a->high - a->low;
	struct view_results page;

	for (uint64_t skip = rand_seq_below(&w->rand, 3); skip && at < count; skip--) {
		size_t from = at;

		options.skip++;
		while (at < count && same_group(asked_row(w, a, from), asked_row(w, a, at), level))
			at++;
	}
	do {
		groups_page(w, a, &reducing, &options, GROUPS_PAGE, &page);
		for (size_t i = 0; i < page.count; i++) {
			const struct view_result *result = &page.results[i];
			size_t from = at;
			struct str value;

			assert_true(at < count);
			while (at < count &&
			       same_group(asked_row(w, a, from), asked_row(w, a, at), level))
				at++;
			value = value_expected(w, a, from, at, &map->reduces[reducing.reduce]);
			assert_int_equal(result->error.name.len, 0);
			assert_true(
				str_eq(result->key, group_text(w, asked_row(w, a, from), level)));
			assert_true(str_eq(result->value, value));
			options.after = result->place;
		}
		options.skip = 0;
	} while (page.more);
	assert_int_equal(at, count);
}

void
check_all(struct world *w)
{
	static const unsigned levels[] = { VIEW_LEVEL_ALL, 1, 2, VIEW_LEVEL_EXACT };
	struct arena_mark mark = arena_mark(w->f->arena);
	struct asked a;
	uint64_t total;

	naive_rows(w);
	for (size_t i = 0; i < QUESTIONS; i++) {
		asked_open(w, &a);
		asked_range(w, &a, i == 0);
		assert_int_equal(
			view_rows_total(a.tx, w->f->db, &a.group, PAIRS_MAP, STR(""), &a.w, &total),
			STATUS_OK);
		assert_int_equal(total, w->row_count);
		check_rows(w, &a);
		check_groups(w, &a, levels[rand_seq_below(&w->rand, 4)]);
		asked_close(&a);
		arena_reset(w->f->arena, mark);
	}
}

/* ---- Updating ---- */

struct view_target
target_of(struct world *w)
{
	return (struct view_target){ .space = CATALOG_SPACE_COUCH,
				     .db_name = w->f->db->name,
				     .db_number = w->f->db->number,
				     .name = STR("_design/x"),
				     .design = &w->design,
				     .functions = &views_functions };
}

struct catalog_seq
newest(struct world *w)
{
	struct kv_tx *tx = fixture_begin(w->f);
	struct rev_db_info info;

	assert_int_equal(rev_db_info(tx, w->f->db, &info), STATUS_OK);
	kv_tx_free(tx);
	return info.update_seq;
}

void
update(struct world *w)
{
	struct view_target target = target_of(w);
	struct catalog_seq least = newest(w);
	struct view_error error;
	struct err err = { 0 };
	enum status status = view_update(w->engine, &target, &least, WAIT_FOREVER, NULL,
					 w->f->arena, &error, &err);

	if (status != STATUS_OK)
		fail_msg("view_update: %s %s", status_name(status), err.text);
}

void
updates_end(struct world *w)
{
	struct view_activity activity;

	for (;;) {
		view_activity_get(w->engine, w->f->db->number, w->design.signature, &activity);
		if (!activity.updating)
			return;
		(void)usleep(1000);
	}
}

enum view_phase
phase_of(struct world *w)
{
	struct kv_tx *tx = fixture_begin(w->f);
	struct view_group group;

	assert_int_equal(view_group_open(tx, w->f->db, &w->design, w->f->arena, &group, NULL),
			 STATUS_OK);
	kv_tx_free(tx);
	return group.phase;
}

struct world *
world_new(struct fixture *f)
{
	const struct view_engine_config config = { .store = f->store };
	struct world *w = calloc(1, sizeof(*w));
	const char *seed = getenv("FROND_TEST_SEED");
	struct err err = { 0 };

	assert_non_null(w);
	w->f = f;
	w->rand.state = seed ? strtoull(seed, NULL, 10) : clock_mono_ns();
	print_message("# FROND_TEST_SEED=%llu\n", (unsigned long long)w->rand.state);
	assert_int_equal(view_design_parse(str_from_cstr(views_design_text), false, f->arena,
					   &w->design, &err),
			 STATUS_OK);
	assert_int_equal(view_engine_new(&config, &w->engine, &err), STATUS_OK);
	for (size_t i = 0; i < DOCS; i++)
		(void)snprintf(w->docs[i].id, sizeof(w->docs[i].id), "d%zu", i);
	return w;
}

void
world_put_design(struct world *w)
{
	AUTO(buf_release) struct buf text = BUF_INIT(4096);

	/* Without its _id. */
	buf_append_byte(&text, '{');
	buf_append_cstr(&text, strchr(views_design_text, ',') + 1);
	buf_append_byte(&text, '\0');
	assert_int_equal(buf_status(&text), STATUS_OK);
	fixture_put(w->f, "_design/x", NULL, text.ptr);
}

void
world_free(struct world *w)
{
	view_engine_free(w->engine);
	fixture_check(w->f);
	free(w);
}

void
put_many(struct world *w, int from, int to)
{
	static struct rev_result results[BATCH];
	static struct rev_edit edits[BATCH];
	static char ids[BATCH][16];
	static char bodies[BATCH][64];
	struct arena_mark mark = arena_mark(w->f->arena);
	size_t n = 0;

	for (int i = from; i < to; i++) {
		(void)snprintf(ids[n], sizeof(ids[n]), "m%05d", i * 7919 % MANY);
		(void)snprintf(bodies[n], sizeof(bodies[n]), "{\"rows\":[[[%d,\"x\"],1]]}", i % 3);
		edits[n] = fixture_edit(w->f, ids[n], NULL, bodies[n]);
		n++;
		if (n < BATCH && i + 1 < to)
			continue;
		fixture_write(w->f, edits, n, results);
		for (size_t k = 0; k < n; k++)
			assert_int_equal(results[k].status, STATUS_OK);
		n = 0;
		arena_reset(w->f->arena, mark);
	}
}

/* With group_level=1 and _sum: as many as there are of each number; and all ids. */
void
check_many(struct world *w, size_t docs)
{
	struct view_reducing reducing = { .design = &w->design, .map = PAIRS_MAP };
	struct view_groups_options options = { .level = 1, .limit = UINT64_MAX };
	struct view_question all = { 0 };
	struct view_results page;
	struct asked a;
	struct err err = { 0 };

	asked_open(w, &a);
	assert_int_equal(a.group.rows[IDS_MAP], docs);
	assert_int_equal(view_range_make(&a.group, &all, &a.w, &a.range, &err), STATUS_OK);
	groups_page(w, &a, &reducing, &options, 10, &page);
	assert_int_equal(page.count, 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(strtol(page.results[i].value.ptr, NULL, 10), (docs + 2 - i) / 3);
	asked_close(&a);
}

struct view_build
build_of(struct world *w, const struct view_functions *functions)
{
	return (struct view_build){ .store = w->f->calm,
				    .space = CATALOG_SPACE_COUCH,
				    .db_name = w->f->db->name,
				    .db_number = w->f->db->number,
				    .design = &w->design,
				    .functions = functions };
}
