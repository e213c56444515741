/*
 * Groups of reduces. The rows of a narrow group are read one after the other, together with those
 * of the groups behind it; a wide one is put together of sums.
 */
#include "index/view/read.h"
#include "index/view/sums.h"

#include "doc/json.h"

enum {
	NARROW_ROWS = 100,  /* after which a group is taken for a wide one */
	PAGE_GROUPS = 1000, /* of one page */
	PAGE_ROWS = 20000,  /* that a page reads before it ends */
};

struct grouping {
	struct sums s;
	const struct view_reducing *reducing;
	const struct view_groups_options *options;
	bool descending;
	struct str begin; /* what is left of the range */
	struct str end;
	uint64_t skip;
	bool wide;   /* the last group was */
	size_t rows; /* that have been read */
	struct reduce_acc *accs;
	struct view_result *results;
	size_t count;
	size_t most;

	/* The rows, from `begin` on. */
	struct kv_scan scan;
	bool scanning;
	size_t prefix_len;
	struct kv_pair pair; /* that it stands at */
	bool over;
};

/* ---- The scan over rows ---- */

static void
rows_close(struct grouping *g)
{
	if (g->scanning)
		kv_scan_release(&g->scan);
	g->scanning = false;
}

static enum status
rows_step(struct grouping *g)
{
	enum status status = kv_scan_next(&g->scan, &g->pair);

	g->over = status == STATUS_NOT_FOUND;
	if (!g->over)
		TRY(status);
	g->rows++;
	return index_count(g->s.w, 2);
}

/* Stands at the first row of what is left. */
static enum status
rows_open(struct grouping *g)
{
	const struct kv_range_options options = {
		.reverse = g->descending,
		.limit = g->descending ? 1 : 0,
		.ahead = !g->descending,
		.limit_bytes = CATALOG_PAGE_BYTES,
		.mode = KV_SNAPSHOT,
	};
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;

	rows_close(g);
	g->over = g->end.len && str_cmp(g->begin, g->end) >= 0;
	if (g->over)
		return STATUS_OK;
	TRY(view_key_places(g->s.db, g->s.group->number, g->s.map, 0, g->begin, g->end, &lo, &hi,
			    &g->prefix_len));
	TRY(kv_scan_init(&g->scan, g->s.tx, buf_str(&lo), buf_str(&hi), &options));
	g->scanning = true;
	return rows_step(g);
}

/* ---- One group ---- */

/* The first `level` elements of an array, as JSON text; any other value as it is. */
static enum status
group_key_text(struct str key, unsigned level, struct arena *arena, struct str *ret)
{
	struct json_reader r;
	enum json_token token;
	enum status status;
	struct str item, all = STR("[");
	const char *end = NULL;
	unsigned count = 0;

	if (level == VIEW_LEVEL_ALL) {
		*ret = STR("null");
		return STATUS_OK;
	}
	json_reader_init(&r, key, NULL);
	status = json_next(&r, &token);
	if (status == STATUS_OK && token == JSON_ARRAY_BEGIN && level < VIEW_LEVEL_EXACT) {
		all.ptr = r.token_begin;
		while (count < level && (status = json_next(&r, &token)) == STATUS_OK &&
		       token != JSON_ARRAY_END &&
		       (status = json_skip(&r, token, &item)) == STATUS_OK) {
			end = item.ptr + item.len;
			count++;
		}
	}
	json_reader_release(&r);
	TRY(status);
	if (end) {
		size_t len = (size_t)(end - all.ptr);
		char *text = arena_bytes(arena, len + 1);

		if (!text)
			return STATUS_LIMIT;
		memcpy(text, all.ptr, len);
		text[len] = ']';
		*ret = str_of(text, len + 1);
		return STATUS_OK;
	}
	*ret = arena_dup(arena, key);
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

/* A group, from its first row. In the arena. */
struct one_group {
	struct str place; /* what all its places begin with; empty: of all rows */
	struct str begin; /* its part of the range */
	struct str end;
	struct str key;
};

static enum status
group_find(struct grouping *g, struct one_group *ret)
{
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct str at = str_skip(g->pair.key, g->prefix_len);
	struct arena *arena = g->s.w->arena;
	struct view_row_value row;
	struct view_place place;
	size_t len;

	*ret = (struct one_group){ .place = STR(""), .begin = g->begin, .end = g->end };
	TRY(view_place_parse(at, g->s.group->partitioned, arena, &place));
	TRY(view_place_group(&place, at, g->options->level, &len));
	TRY(sums_row_texts(&g->s, at, g->pair.value, &row));
	TRY(group_key_text(row.key, g->options->level, arena, &ret->key));
	if (len == 0)
		return STATUS_OK;
	ret->place = arena_dup(arena, str_of(at.ptr, len));
	if (!ret->place.ptr)
		return STATUS_LIMIT;
	TRY(view_prefix_end(ret->place, &end));
	if (str_cmp(ret->place, g->begin) > 0)
		ret->begin = ret->place;
	if (!g->end.len || str_cmp(buf_str(&end), g->end) < 0)
		ret->end = arena_dup(arena, buf_str(&end));
	return ret->end.ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
group_take_row(struct grouping *g, struct reduce_acc *acc, struct str at, struct str value)
{
	struct view_row_value row = { 0 };
	struct view_place place = { 0 };

	if (acc->reduce->kind != VIEW_REDUCE_COUNT) {
		TRY(sums_row_texts(&g->s, at, value, &row));
		TRY(view_place_parse(at, g->s.group->partitioned, g->s.w->arena, &place));
	}
	return reduce_acc_row(acc, row.key, place.id, row.value);
}

struct folding {
	struct grouping *g;
	struct reduce_acc *acc;
};

static enum status
folding_visit(void *arg, const struct sums_piece *piece)
{
	struct folding *f = arg;
	struct view_sum sum;

	f->g->rows++;
	if (piece->level == 0)
		return group_take_row(f->g, f->acc, piece->place, piece->value);
	TRY(view_sum_parse(piece->value, f->g->s.w->arena, &sum, f->g->s.err));
	if (f->g->reducing->reduce >= sum.count)
		return STATUS_CORRUPT;
	return sum.rows ? reduce_acc_partial(f->acc, sum.partials[f->g->reducing->reduce])
			: STATUS_OK;
}

/* Reads the rows of the group; `*ret_wide`: there are many, and they are not all read. */
static enum status
group_take_rows(struct grouping *g, const struct one_group *group, struct reduce_acc *acc,
		bool *ret_wide)
{
	size_t rows = 0;

	*ret_wide = false;
	while (!g->over) {
		struct str at = str_skip(g->pair.key, g->prefix_len);

		if (!str_starts_with(at, group->place))
			return STATUS_OK;
		if (++rows > NARROW_ROWS && g->s.group->tops[g->s.map]) {
			*ret_wide = true;
			return STATUS_OK;
		}
		TRY(group_take_row(g, acc, at, g->pair.value));
		TRY(rows_step(g));
	}
	return STATUS_OK;
}

/* What is left of the range lies behind the group. */
static enum status
group_leave(struct grouping *g, const struct one_group *group)
{
	if (group->place.len == 0) {
		g->over = true;
		return STATUS_OK;
	}
	if (g->descending)
		g->end = group->begin;
	else
		g->begin = group->end;
	return rows_open(g);
}

static enum status
group_reduce(struct grouping *g, const struct one_group *group)
{
	const struct view_reducing *r = g->reducing;
	struct reduce_acc *acc = &g->accs[g->count];
	struct folding folding = { g, acc };
	struct view_result *result = &g->results[g->count];
	bool wide = g->wide || g->descending || !group->place.len;

	*result = (struct view_result){ .key = group->key, .place = group->place };
	reduce_acc_init(acc, &r->design->maps[r->map].reduces[r->reduce], g->s.w);
	g->count++;
	if (!wide) {
		TRY(group_take_rows(g, group, acc, &g->wide));
		if (!g->wide)
			return STATUS_OK;
		reduce_acc_release(acc);
		reduce_acc_init(acc, acc->reduce, g->s.w);
	}
	TRY(sums_fold(&g->s, group->begin, group->end, folding_visit, &folding));
	g->wide = acc->rows > NARROW_ROWS / 4 && !g->descending;
	return group_leave(g, group);
}

/* ---- Pages ---- */

static enum status
groups_take(struct grouping *g)
{
	struct one_group group;

	TRY(rows_open(g));
	while (!g->over && g->count < g->most && (g->rows < PAGE_ROWS || g->count == 0)) {
		TRY(group_find(g, &group));
		if (g->skip == 0) {
			TRY(group_reduce(g, &group));
			continue;
		}
		g->skip--;
		TRY(group_leave(g, &group));
	}
	return STATUS_OK;
}

/* Where the page begins: behind the group with the place `after`. */
static enum status
grouping_place(struct grouping *g, struct str after)
{
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	if (!after.ptr)
		return STATUS_OK;
	if (after.len == 0) { /* the one group of all rows */
		g->most = 0;
		return STATUS_OK;
	}
	if (g->descending) {
		if (!g->end.len || str_cmp(after, g->end) < 0)
			g->end = after;
		return STATUS_OK;
	}
	TRY(view_prefix_end(after, &end));
	if (str_cmp(buf_str(&end), g->begin) > 0)
		g->begin = arena_dup(g->s.w->arena, buf_str(&end));
	return g->begin.ptr ? STATUS_OK : STATUS_LIMIT;
}

enum status
view_groups_page(struct kv_tx *tx, const struct catalog_db *db, const struct view_group *group,
		 const struct view_reducing *reducing, const struct view_range *range,
		 const struct view_groups_options *options, size_t most, struct index_work *w,
		 struct view_results *ret)
{
	struct grouping g = {
		.s = { tx, db, group, reducing->map, w, kv_tx_err(tx) },
		.reducing = reducing,
		.options = options,
		.descending = range->descending,
		.begin = range->begin,
		.end = range->end,
		.skip = options->skip,
		.most = most < PAGE_GROUPS ? most : PAGE_GROUPS,
	};
	enum status status;

	*ret = (struct view_results){ 0 };
	if (options->limit < g.most)
		g.most = (size_t)options->limit;
	TRY(grouping_place(&g, options->after));
	if (group->phase != VIEW_PHASE_READY || g.most == 0)
		return STATUS_OK;
	g.accs = arena_zalloc(w->arena, g.most * sizeof(*g.accs));
	g.results = arena_zalloc(w->arena, g.most * sizeof(*g.results));
	if (!g.accs || !g.results)
		return STATUS_LIMIT;
	status = groups_take(&g);
	rows_close(&g);
	*ret = (struct view_results){ .results = g.results,
				      .count = g.count,
				      .more = !g.over && g.count < options->limit,
				      .accs = g.accs };
	if (status != STATUS_OK)
		view_results_release(ret);
	return status;
}

/* ---- Values ---- */

enum status
view_groups_reduce(const struct view_reducing *reducing, struct index_work *w,
		   struct view_results *results, struct view_error *ret_error, struct err *err)
{
	const struct reduce_run run = { .design = reducing->design,
					.functions = reducing->functions,
					.arg = reducing->arg,
					.w = w,
					.error = ret_error,
					.err = err };
	const struct view_reduce *reduce =
		&reducing->design->maps[reducing->map].reduces[reducing->reduce];
	struct str partial;

	*ret_error = (struct view_error){ 0 };
	TRY(reduce_run(&run, results->accs, results->count));
	for (size_t i = 0; i < results->count; i++) {
		struct view_result *result = &results->results[i];

		TRY(reduce_acc_result(&results->accs[i], &partial));
		TRY(reduce_finalize(reduce, partial, w->arena, &result->value, &result->error));
	}
	return STATUS_OK;
}

void
view_results_release(struct view_results *results)
{
	for (size_t i = 0; results->accs && i < results->count; i++)
		reduce_acc_release(&results->accs[i]);
	results->accs = NULL;
}
