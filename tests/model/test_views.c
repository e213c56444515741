/*
 * Views over documents that are edited, deleted and purged: whatever happens, and wherever a build
 * ends or who else builds, every question is answered as a naive model answers it, which sorts and
 * adds by itself. The functions are in C: nothing here needs a worker.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/rand.h"
#include "catalog/keys.h"
#include "catalog/verify.h"
#include "doc/json_value.h"
#include "fixture.h"
#include "index/view/build.h"
#include "index/view/keys.h"
#include "index/view/order.h"
#include "index/view/read.h"
#include "index/view/run.h"
#include "kv/faulty/faulty.h"

enum {
	DOCS = 60,   /* of the random workload */
	ROUNDS = 25, /* of it */
	EDITS = 40,  /* of a round, at most */
	PAIRS = 4,   /* rows of a document, at most */
	MANY = 4500, /* documents of a first build in several steps */
	BATCH = 250,
	QUESTIONS = 40, /* after each round */
	WORK_BYTES = 64 * 1024 * 1024,
	GROUPS_PAGE = 7,
};

/* A document has "rows", [[key, value], …], which "pairs" emits; "ids" emits its id once. */
static const char design_text[] = "{\"_id\":\"_design/x\",\"views\":{"
				  "\"a_sum\":{\"map\":\"pairs\",\"reduce\":\"_sum\"},"
				  "\"b_count\":{\"map\":\"pairs\",\"reduce\":\"_count\"},"
				  "\"c_own\":{\"map\":\"pairs\",\"reduce\":\"own\"},"
				  "\"d_first\":{\"map\":\"pairs\",\"reduce\":\"_first\"},"
				  "\"e_last\":{\"map\":\"pairs\",\"reduce\":\"_last\"},"
				  "\"f_top\":{\"map\":\"pairs\",\"reduce\":\"_top_2\"},"
				  "\"g_ids\":{\"map\":\"ids\"}}}";

enum {
	PAIRS_MAP = 0,
	IDS_MAP = 1,
};

/* ---- Functions, as a worker would have them ---- */

static void
map_pairs(const struct json_value *rows, struct arena *arena, struct view_sink *sink)
{
	struct json_value *items, *pair;
	size_t count, two;

	assert_int_equal(json_value_items(rows, arena, &items, &count, NULL), STATUS_OK);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(json_value_items(&items[i], arena, &pair, &two, NULL), STATUS_OK);
		view_sink_row(sink, pair[0].text, pair[1].text);
	}
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
		const struct json_value *rows;
		size_t n;

		assert_int_equal(json_value_read(docs[*ret_done], arena, &doc, err), STATUS_OK);
		assert_int_equal(json_value_members(&doc, arena, &members, &n, err), STATUS_OK);
		rows = json_value_find(members, n, "rows");
		for (size_t i = 0; i < design->map_count; i++) {
			view_sink_next(sink);
			if (str_eq(design->maps[i].source, STR("ids")))
				view_sink_row(sink, json_value_find(members, n, "_id")->text,
					      STR("null"));
			else if (rows)
				map_pairs(rows, arena, sink);
		}
	}
	return STATUS_OK;
}

/* The sum of the values, by an own sum. */
static enum status
test_reduce(void *arg, const struct view_design *design, const struct str *names, size_t name_count,
	    bool rereduce, const struct view_group_input *groups, size_t group_count,
	    struct arena *arena, struct str *ret_results, struct view_error *ret_errors,
	    struct view_error *ret_error, struct err *err)
{
	(void)arg, (void)design, (void)names, (void)rereduce, (void)ret_errors, (void)ret_error;
	assert_int_equal(name_count, 1);
	for (size_t i = 0; i < group_count; i++) {
		struct json_value array, *items;
		size_t count;
		long sum = 0;

		assert_int_equal(json_value_read(groups[i].keys, arena, &array, err), STATUS_OK);
		assert_int_equal(json_value_read(groups[i].values, arena, &array, err), STATUS_OK);
		assert_int_equal(json_value_items(&array, arena, &items, &count, err), STATUS_OK);
		assert_true(count > 0);
		for (size_t k = 0; k < count; k++)
			sum += strtol(items[k].text.ptr, NULL, 10);
		ret_results[i] = arena_printf(arena, "%ld", sum);
	}
	return STATUS_OK;
}

static const struct view_functions functions = { .map = test_map, .reduce = test_reduce };

/* ---- The naive model ---- */

/* A key is a number, a word, or an array [number, word]. */
struct naive_key {
	int kind; /* 0: number, 1: word, 2: array */
	int number;
	char word[8];
};

struct naive_row {
	struct naive_key key;
	char id[16];
	int value;
};

struct naive_doc {
	char id[16];
	char rev[64];
	bool live;
	int count;
	struct naive_key keys[PAIRS];
	int values[PAIRS];
};

struct world {
	struct fixture *f;
	struct rand_seq rand;
	struct view_engine *engine;
	struct view_design design;
	struct naive_doc docs[DOCS];
	struct naive_row rows[DOCS * PAIRS];
	size_t row_count;
};

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

static void
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

static void
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

static void
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

/* A question, and which rows of the naive model answer it. */
struct asked {
	struct kv_tx *tx;
	struct index_work w;
	struct view_group group;
	struct view_question question;
	struct view_range range;
	size_t low; /* rows [low, high) */
	size_t high;
};

static void
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

static void
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

static void
check_groups(struct world *w, struct asked *a, unsigned level)
{
	const struct view_map *map = &w->design.maps[PAIRS_MAP];
	struct view_reducing reducing = { .design = &w->design,
					  .map = PAIRS_MAP,
					  .reduce = rand_seq_below(&w->rand, map->reduce_count),
					  .functions = &functions };
	struct view_groups_options options = { .level = level, .limit = UINT64_MAX };
	size_t at = 0, count = a->high - a->low;
	struct view_error error;
	struct view_results page;

	for (uint64_t skip = rand_seq_below(&w->rand, 3); skip && at < count; skip--) {
		size_t from = at;

		options.skip++;
		while (at < count && same_group(asked_row(w, a, from), asked_row(w, a, at), level))
			at++;
	}
	do {
		struct err err = { 0 };

		assert_int_equal(view_groups_page(a->tx, w->f->db, &a->group, &reducing, &a->range,
						  &options, GROUPS_PAGE, &a->w, &page, &error,
						  &err),
				 STATUS_OK);
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

static void
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

static struct view_target
target_of(struct world *w)
{
	return (struct view_target){ .space = CATALOG_SPACE_COUCH,
				     .db_name = w->f->db->name,
				     .db_number = w->f->db->number,
				     .name = STR("_design/x"),
				     .design = &w->design,
				     .functions = &functions };
}

static struct catalog_seq
newest(struct world *w)
{
	struct kv_tx *tx = fixture_begin(w->f);
	struct rev_db_info info;

	assert_int_equal(rev_db_info(tx, w->f->db, &info), STATUS_OK);
	kv_tx_free(tx);
	return info.update_seq;
}

static void
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

static struct world *
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
	assert_int_equal(
		view_design_parse(str_from_cstr(design_text), false, f->arena, &w->design, &err),
		STATUS_OK);
	assert_int_equal(view_engine_new(&config, &w->engine, &err), STATUS_OK);
	for (size_t i = 0; i < DOCS; i++)
		(void)snprintf(w->docs[i].id, sizeof(w->docs[i].id), "d%zu", i);
	return w;
}

static void
world_free(struct world *w)
{
	view_engine_free(w->engine);
	fixture_check(w->f);
	free(w);
}

/* ---- Tests ---- */

static void
random_edits_are_followed(void **state)
{
	struct world *w = world_new(*state);

	for (size_t i = 0; i < ROUNDS; i++) {
		struct arena_mark mark = arena_mark(w->f->arena);

		edit_randomly(w, rand_seq_below(&w->rand, EDITS));
		update(w);
		arena_reset(w->f->arena, mark);
		check_all(w);
	}
	world_free(w);
}

/* A build that ends after each of its steps, and edits in between. */
struct stopping {
	unsigned steps;
};

static bool
stop_after_step(void *arg, const struct view_step *step, struct catalog_seq *ret_least)
{
	struct stopping *s = arg;

	(void)step, (void)ret_least;
	return s->steps-- > 1;
}

static enum status
run_steps(struct world *w, unsigned steps)
{
	struct stopping stopping = { steps };
	const struct view_run_hooks hooks = { .stepped = stop_after_step, .arg = &stopping };
	const struct view_build build = { .store = w->f->store,
					  .space = CATALOG_SPACE_COUCH,
					  .db_name = w->f->db->name,
					  .db_number = w->f->db->number,
					  .design = &w->design,
					  .functions = &functions };
	struct catalog_seq least = newest(w);
	struct view_error error;
	struct err err = { 0 };
	enum status status = view_run(&build, &least, &hooks, w->f->arena, &error, &err);

	if (status != STATUS_OK && status != STATUS_CANCELLED)
		fail_msg("view_run: %s %s", status_name(status), err.text);
	return status;
}

static void
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
static void
check_many(struct world *w, size_t docs)
{
	struct view_reducing reducing = { .design = &w->design, .map = PAIRS_MAP };
	struct view_groups_options options = { .level = 1, .limit = UINT64_MAX };
	struct view_question all = { 0 };
	struct view_error error;
	struct view_results page;
	struct asked a;
	struct err err = { 0 };

	asked_open(w, &a);
	assert_int_equal(a.group.rows[IDS_MAP], docs);
	assert_int_equal(view_range_make(&a.group, &all, &a.w, &a.range, &err), STATUS_OK);
	assert_int_equal(view_groups_page(a.tx, w->f->db, &a.group, &reducing, &a.range, &options,
					  10, &a.w, &page, &error, &err),
			 STATUS_OK);
	assert_int_equal(page.count, 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(strtol(page.results[i].value.ptr, NULL, 10), (docs + 2 - i) / 3);
	asked_close(&a);
}

static void
first_build_goes_on_wherever_it_ends(void **state)
{
	struct world *w = world_new(*state);
	unsigned runs = 1;

	put_many(w, 0, MANY - 300);
	assert_int_equal(run_steps(w, 1), STATUS_CANCELLED);
	put_many(w, MANY - 300, MANY - 200);
	while (run_steps(w, 1) == STATUS_CANCELLED)
		runs++;
	assert_true(runs > 1); /* a commit of unknown outcome advances it without a step */
	put_many(w, MANY - 200, MANY);
	update(w);
	check_many(w, MANY);
	world_free(w);
}

static void *
race_main(void *arg)
{
	struct world *w = arg;
	struct view_engine *engine;
	const struct view_engine_config config = { .store = w->f->store };
	struct view_target target = target_of(w);
	struct catalog_seq least = newest(w);
	struct arena *arena = arena_new(WORK_BYTES);
	struct view_error error;
	struct err err = { 0 };

	assert_int_equal(view_engine_new(&config, &engine, &err), STATUS_OK);
	assert_int_equal(
		view_update(engine, &target, &least, WAIT_FOREVER, NULL, arena, &error, &err),
		STATUS_OK);
	view_engine_free(engine);
	arena_free(arena);
	return NULL;
}

static void
two_builders_do_no_harm(void **state)
{
	struct world *w = world_new(*state);
	pthread_t threads[2];

	put_many(w, 0, MANY);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, race_main, w), 0);
	for (size_t i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	check_many(w, MANY);
	world_free(w);
}

static void
rows_past_limits_are_left_out_and_told(void **state)
{
	struct world *w = world_new(*state);
	AUTO(buf_release) struct buf text = BUF_INIT(4 * VIEW_ROW_BYTES);
	struct asked a;

	buf_append_cstr(&text, "{\"rows\":[[1,1],[\"");
	for (int i = 0; i < 2 * VIEW_KEY_BYTES; i++)
		buf_append_byte(&text, 'x');
	buf_append_cstr(&text, "\",2],[3,\"");
	for (int i = 0; i < 3 * VIEW_CHUNK_BYTES; i++)
		buf_append_byte(&text, 'y');
	buf_append_cstr(&text, "\"],[4,4]]}");
	buf_append_byte(&text, '\0');
	(void)fixture_put(w->f, "big", NULL, text.ptr);
	update(w);
	asked_open(w, &a);
	assert_int_equal(a.group.rows[PAIRS_MAP], 3);
	assert_int_equal(a.group.refused, 1);
	assert_int_equal(a.group.refusal_count, 1);
	assert_true(str_eq(a.group.refusals[0].id, STR("big")));
	assert_true(str_eq(a.group.refusals[0].view, STR("a_sum")));
	assert_true(str_eq(a.group.refusals[0].limit, STR("view_key_bytes")));
	asked_close(&a);
	world_free(w);
}

/* In Erlang's order of terms. */
static const char *const terms[] = {
	"-1e300",
	"-2",
	"0",
	"0.1",
	"1",
	"1.5",
	"123456789",
	"1234567890123456789012",
	"1e300",
	"false",
	"null",
	"true",
	"{}",
	"{\"a\":1}",
	"{\"a\":1,\"b\":0}",
	"{\"a\":2}",
	"{\"b\":0}",
	"[]",
	"[1]",
	"[1,1]",
	"[1,[]]",
	"[1,\"a\"]",
	"[null]",
	"\"\"",
	"\"A\"",
	"\"B\"",
	"\"a\"",
	"\"a\\u0000\"",
	"\"aa\"",
	"\"b\"",
};

enum {
	TERMS = sizeof(terms) / sizeof(terms[0])
};

static void
assert_values_ascend(struct world *w, const char *id, bool descending)
{
	struct view_rows_options options = { .limit = UINT64_MAX };
	struct view_rows rows;
	struct view_row row;
	struct asked a;
	struct err err = { 0 };

	asked_open(w, &a);
	a.question = (struct view_question){ .start_key = STR("7"),
					     .end_key = STR("7"),
					     .descending = descending };
	assert_int_equal(view_range_make(&a.group, &a.question, &a.w, &a.range, &err), STATUS_OK);
	assert_int_equal(view_rows_begin(&rows, a.tx, w->f->db, &a.group, PAIRS_MAP, &a.range,
					 &options, &a.w),
			 STATUS_OK);
	for (size_t i = 0; i < TERMS; i++) {
		const char *term = terms[descending ? TERMS - 1 - i : i];

		assert_int_equal(view_rows_next(&rows, &a.w, &row), STATUS_OK);
		assert_true(str_eq(row.id, str_from_cstr(id)));
		assert_true(str_eq(row.value, str_from_cstr(term)));
	}
	assert_int_equal(view_rows_next(&rows, &a.w, &row), STATUS_NOT_FOUND);
	view_rows_end(&rows);
	asked_close(&a);
}

static void
equal_keys_of_a_document_come_by_value(void **state)
{
	static const char only_pairs[] =
		"{\"_id\":\"_design/p\",\"views\":{\"p\":{\"map\":\"pairs\"}}}";
	struct world *w = world_new(*state);
	struct err err = { 0 };
	const char *rev = NULL;
	int order;

	assert_int_equal(
		view_design_parse(str_from_cstr(only_pairs), false, w->f->arena, &w->design, &err),
		STATUS_OK);
	for (size_t i = 0; i < TERMS; i++)
		for (size_t k = 0; k < TERMS; k++) {
			assert_int_equal(view_term_cmp(str_from_cstr(terms[i]),
						       str_from_cstr(terms[k]), &order),
					 STATUS_OK);
			assert_int_equal((order > 0) - (order < 0), (i > k) - (i < k));
		}
	/* Between rows of other keys, in any order, and in another one at the next update. */
	for (size_t step = 7; step <= 11; step += 4) {
		AUTO(buf_release) struct buf text = BUF_INIT(8192);

		buf_append_cstr(&text, "{\"rows\":[[8,0]");
		for (size_t i = 0; i < TERMS; i++)
			buf_printf(&text, ",[7,%s],[6,%zu]", terms[i * step % TERMS], i);
		buf_append_cstr(&text, "]}");
		buf_append_byte(&text, '\0');
		rev = fixture_put(w->f, "many", rev, text.ptr);
		update(w);
		assert_values_ascend(w, "many", false);
		assert_values_ascend(w, "many", true);
	}
	world_free(w);
}

static void
large_rows_come_back_whole(void **state)
{
	struct world *w = world_new(*state);
	AUTO(buf_release) struct buf text = BUF_INIT(4 * VIEW_ROW_BYTES);
	const struct view_rows_options options = { .limit = UINT64_MAX };
	struct view_question question = { .start_key = STR("3"), .end_key = STR(" 3.0 ") };
	struct err err = { 0 };
	struct view_rows rows;
	struct view_row row;
	const char *rev;
	struct asked a;

	buf_append_cstr(&text, "{\"rows\":[[3,\"");
	for (int i = 0; i < 3 * VIEW_CHUNK_BYTES; i++)
		buf_append_byte(&text, (uint8_t)('a' + i % 26));
	buf_append_cstr(&text, "\"],[4,4]]}");
	buf_append_byte(&text, '\0');
	rev = fixture_put(w->f, "big", NULL, text.ptr);
	update(w);
	asked_open(w, &a);
	assert_int_equal(view_range_make(&a.group, &question, &a.w, &a.range, &err), STATUS_OK);
	assert_int_equal(view_rows_begin(&rows, a.tx, w->f->db, &a.group, PAIRS_MAP, &a.range,
					 &options, &a.w),
			 STATUS_OK);
	assert_int_equal(view_rows_next(&rows, &a.w, &row), STATUS_OK);
	assert_int_equal(row.value.len, 3 * VIEW_CHUNK_BYTES + 2);
	assert_int_equal(row.value.ptr[27], 'a');
	assert_int_equal(view_rows_next(&rows, &a.w, &row), STATUS_NOT_FOUND);
	view_rows_end(&rows);
	asked_close(&a);
	(void)fixture_put(w->f, "big", rev, "{\"rows\":[[3,3]]}");
	update(w);
	asked_open(w, &a);
	assert_int_equal(a.group.rows[PAIRS_MAP], 1);
	asked_close(&a);
	world_free(w);
}

static size_t
keys_of_views(struct fixture *f)
{
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;
	struct kv_tx *tx = fixture_begin(f);
	struct kv_scan scan;
	struct kv_pair pair;
	size_t count = 0;

	buf_append_str(&lo, f->db->prefix);
	tuple_put_u64(&lo, REV_SUBSPACE_VIEWS);
	assert_int_equal(tuple_prefix_end(buf_str(&lo), &hi), STATUS_OK);
	assert_int_equal(kv_scan_init(&scan, tx, buf_str(&lo), buf_str(&hi), NULL), STATUS_OK);
	while (kv_scan_next(&scan, &pair) == STATUS_OK)
		count++;
	kv_scan_release(&scan);
	kv_tx_free(tx);
	return count;
}

static void
cleanup_clears_groups_that_nobody_has(void **state)
{
	struct world *w = world_new(*state);
	const struct str name = w->f->db->name;
	uint8_t live[1][VIEW_SIGNATURE_BYTES];
	struct err err = { 0 };
	uint64_t cleared;

	edit_randomly(w, EDITS);
	update(w);
	memcpy(live[0], w->design.signature, sizeof(live[0]));
	assert_int_equal(
		view_cleanup(w->f->store, CATALOG_SPACE_COUCH, name, live, 1, &cleared, &err),
		STATUS_OK);
	assert_int_equal(cleared, 0);
	check_all(w);
	assert_int_equal(
		view_cleanup(w->f->store, CATALOG_SPACE_COUCH, name, NULL, 0, &cleared, &err),
		STATUS_OK);
	assert_int_equal(cleared, 1);
	assert_int_equal(keys_of_views(w->f), 1); /* the number of the next group */
	update(w);
	check_all(w);
	world_free(w);
}

static void
other_collations_are_refused(void **state)
{
	static const char in_view[] =
		"{\"views\":{\"v\":{\"map\":\"f\",\"options\":{\"collation\":\"raw\"}}}}";
	static const char in_design[] = "{\"options\":{\"collation\":\"raw\"}}";
	struct fixture *f = *state;
	struct view_design design;

	for (int i = 0; i < 2; i++)
		assert_int_equal(view_design_parse(str_from_cstr(i ? in_view : in_design), false,
						   f->arena, &design, NULL),
				 STATUS_INVALID);
}

static void
equal_views_have_equal_signatures(void **state)
{
	static const char renamed[] = "{\"_id\":\"_design/y\",\"views\":{"
				      "\"g_ids\":{\"map\":\"ids\"},"
				      "\"f_top\":{\"map\":\"pairs\",\"reduce\":\"_top_2\"},"
				      "\"e_last\":{\"map\":\"pairs\",\"reduce\":\"_last\"},"
				      "\"d_first\":{\"map\":\"pairs\",\"reduce\":\"_first\"},"
				      "\"c_own\":{\"map\":\"pairs\",\"reduce\":\"own\"},"
				      "\"b_count\":{\"map\":\"pairs\",\"reduce\":\"_count\"},"
				      "\"a_sum\":{\"map\":\"pairs\",\"reduce\":\"_sum\"}},\"x\":1}";
	struct world *w = world_new(*state);
	struct view_design other;
	struct err err = { 0 };

	assert_int_equal(w->design.map_count, 2);
	assert_int_equal(w->design.maps[PAIRS_MAP].reduce_count, 6);
	assert_int_equal(
		view_design_parse(str_from_cstr(renamed), false, w->f->arena, &other, &err),
		STATUS_OK);
	assert_memory_equal(other.signature, w->design.signature, VIEW_SIGNATURE_BYTES);
	assert_int_equal(view_design_parse(str_from_cstr(renamed), true, w->f->arena, &other, &err),
			 STATUS_OK);
	assert_memory_not_equal(other.signature, w->design.signature, VIEW_SIGNATURE_BYTES);
	assert_int_equal(view_design_parse(STR("{\"views\":{\"v\":{\"map\":\"m\","
					       "\"reduce\":\"_top_101\"}}}"),
					   false, w->f->arena, &other, &err),
			 STATUS_INVALID);
	world_free(w);
}

/* ---- What verify finds ---- */

static void
count_finding(const struct catalog_finding *finding, void *arg)
{
	(void)finding;
	++*(size_t *)arg;
}

static size_t
findings_of(struct fixture *f)
{
	size_t findings = 0;
	const struct catalog_verify_options options = { .found = count_finding, .arg = &findings };
	struct catalog_verify_sum sum;
	struct kv_tx *tx = fixture_begin(f);

	assert_int_equal(
		catalog_verify_db(tx, CATALOG_SPACE_COUCH, f->db->name, &options, &sum, NULL),
		STATUS_OK);
	kv_tx_free(tx);
	return findings;
}

struct damage {
	struct fixture *f;
	unsigned level; /* whose first pair goes */
	struct kv_pair pair;
};

static enum status
damage_body(struct kv_tx *tx, void *arg)
{
	struct damage *d = arg;
	const struct kv_range_options options = { .limit = 1 };
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;
	struct kv_future *future;

	if (d->pair.key.ptr)
		return kv_set(tx, d->pair.key, d->pair.value);
	view_key_level(&lo, d->f->db, 1, PAIRS_MAP, d->level);
	TRY(view_prefix_end(buf_str(&lo), &hi));
	future = kv_get_range(tx, buf_str(&lo), buf_str(&hi), &options);
	TRY(kv_future_wait(future));
	assert_int_equal(kv_future_range(future).count, 1);
	d->pair.key = arena_dup(d->f->arena, kv_future_range(future).pairs[0].key);
	d->pair.value = arena_dup(d->f->arena, kv_future_range(future).pairs[0].value);
	return kv_clear(tx, d->pair.key);
}

static void
verify_finds_rows_and_sums_that_do_not_agree(void **state)
{
	struct world *w = world_new(*state);

	for (size_t i = 0; i < DOCS; i++)
		doc_put(w, &w->docs[i]);
	update(w);
	naive_rows(w);
	assert_true(w->row_count > 0);
	assert_int_equal(findings_of(w->f), 0);
	for (unsigned level = 0; level <= 2; level++) {
		struct damage damage = { .f = w->f, .level = level };

		/* The first kv_run() of each pair clears it, the second one puts it back. */
		assert_int_equal(kv_run(w->f->calm, damage_body, &damage, NULL, NULL), STATUS_OK);
		assert_true(findings_of(w->f) > 0);
		assert_int_equal(kv_run(w->f->calm, damage_body, &damage, NULL, NULL), STATUS_OK);
		assert_int_equal(findings_of(w->f), 0);
	}
	world_free(w);
}

/* ---- Partitions ---- */

static void
partitions_are_read_by_themselves(void **state)
{
	struct fixture *f = *state;
	struct view_question question = { .partition = STR("b") };
	const struct view_rows_options options = { .limit = UINT64_MAX };
	struct world *w;
	struct err err = { 0 };
	struct view_rows rows;
	struct view_row row;
	struct asked a;
	uint64_t n;

	fixture_make_partitioned(f);
	w = world_new(f);
	assert_int_equal(
		view_design_parse(str_from_cstr(design_text), true, f->arena, &w->design, &err),
		STATUS_OK);
	(void)fixture_put(f, "a:1", NULL, "{\"rows\":[[1,1],[2,2]]}");
	(void)fixture_put(f, "b:1", NULL, "{\"rows\":[[1,3],[2,4],[3,5]]}");
	(void)fixture_put(f, "c:1", NULL, "{\"rows\":[[1,6]]}");
	update(w);
	asked_open(w, &a);
	assert_true(a.group.partitioned);
	assert_int_equal(view_rows_total(a.tx, f->db, &a.group, PAIRS_MAP, STR("b"), &a.w, &n),
			 STATUS_OK);
	assert_int_equal(n, 3);
	for (int descending = 0; descending < 2; descending++) {
		question.descending = descending;
		question.start_key = STR("2");
		assert_int_equal(view_range_make(&a.group, &question, &a.w, &a.range, &err),
				 STATUS_OK);
		assert_int_equal(
			view_rows_offset(a.tx, f->db, &a.group, PAIRS_MAP, &a.range, &a.w, &n),
			STATUS_OK);
		assert_int_equal(n, 1);
		assert_int_equal(view_rows_begin(&rows, a.tx, f->db, &a.group, PAIRS_MAP, &a.range,
						 &options, &a.w),
				 STATUS_OK);
		assert_int_equal(view_rows_next(&rows, &a.w, &row), STATUS_OK);
		assert_true(str_eq(row.id, STR("b:1")));
		assert_true(str_eq(row.value, STR("4")));
		assert_int_equal(view_rows_next(&rows, &a.w, &row), STATUS_OK);
		assert_true(str_eq(row.value, descending ? STR("3") : STR("5")));
		assert_int_equal(view_rows_next(&rows, &a.w, &row), STATUS_NOT_FOUND);
		view_rows_end(&rows);
	}
	asked_close(&a);
	world_free(w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(random_edits_are_followed, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(first_build_goes_on_wherever_it_ends, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(two_builders_do_no_harm, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(rows_past_limits_are_left_out_and_told,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(equal_keys_of_a_document_come_by_value,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(large_rows_come_back_whole, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(cleanup_clears_groups_that_nobody_has,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(verify_finds_rows_and_sums_that_do_not_agree,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(partitions_are_read_by_themselves, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(other_collations_are_refused, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(equal_views_have_equal_signatures, fixture_setup,
						fixture_teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
