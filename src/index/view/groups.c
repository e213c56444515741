/*
 * Groups of reduces. Narrow groups are read row by row, many in one scan. From the first wide one
 * on, and wherever groups are passed over or read backwards, a page is put together of the pieces
 * of a walk (walk.h).
 */
#include "index/view/read.h"
#include "index/view/walk.h"

#include "doc/json.h"

enum {
	NARROW_ROWS = 100,             /* after which a group is taken for a wide one */
	PAGE_GROUPS = 1000,            /* of one page */
	PAGE_ROWS = 20000,             /* rows and sums that a page reads before it ends */
	PAGE_KEPT_BYTES = 1024 * 1024, /* of pieces that it keeps: the same */
};

/* A result whose key is in a row that has been asked for. */
struct key_read {
	size_t result;
	struct kv_future *future;
};

struct grouping {
	struct sums s;
	const struct view_reducing *reducing;
	const struct view_groups_options *options;
	struct walk_range range; /* what is left of it */
	uint64_t skip;
	size_t rows; /* that have been read, and sums */
	struct reduce_acc *accs;
	struct view_result *results;
	size_t count;
	size_t most;
	bool over;

	/* The rows of narrow groups. */
	struct kv_scan scan;
	bool scanning;
	size_t prefix_len;
	struct kv_pair pair; /* that the scan stands at */
	bool is_first;       /* the scan is the first, short one, */
	size_t first_left;   /* which may still have so many rows */

	/* The walk. */
	struct str place;          /* of the group whose pieces come; ptr NULL: none yet */
	bool passing;              /* that group is passed over */
	struct sums_piece *pieces; /* of it: they come backwards, and are taken forwards */
	size_t piece_count;
	size_t piece_cap;
	size_t kept_bytes;
	struct key_read *keys;
	size_t key_count;
	size_t key_cap;
};

static bool
page_is_full(const struct grouping *g)
{
	return g->count >= g->most ||
	       (g->count && (g->rows >= PAGE_ROWS || g->kept_bytes >= PAGE_KEPT_BYTES));
}

/* ---- The scan over rows ---- */

static void
rows_close(struct grouping *g)
{
	if (g->scanning)
		kv_scan_release(&g->scan);
	g->scanning = false;
}

/* Opens a scan of what is left; `most` 0: of all, read ahead. */
static enum status
rows_open(struct grouping *g, size_t most)
{
	const struct kv_range_options options = {
		.limit = most,
		.ahead = !most,
		.limit_bytes = CATALOG_PAGE_BYTES,
		.mode = KV_SNAPSHOT,
	};
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;

	rows_close(g);
	TRY(view_key_places(g->s.db, g->s.group->number, g->s.map, 0, g->range.begin, g->range.end,
			    &lo, &hi, &g->prefix_len));
	TRY(kv_scan_init(&g->scan, g->s.tx, buf_str(&lo), buf_str(&hi), &options));
	g->scanning = true;
	g->is_first = most > 0;
	g->first_left = most;
	return STATUS_OK;
}

/* The first read is over: what a page of the narrowest groups needs was not enough. */
static enum status
rows_go_on(struct grouping *g)
{
	struct str last;

	TRY(arena_copy(g->s.w->arena, str_skip(g->pair.key, g->prefix_len), &last));
	/* With the NUL behind the copy this is the next possible place. */
	g->range.begin = str_of(last.ptr, last.len + 1);
	TRY(rows_open(g, 0));
	return kv_scan_next(&g->scan, &g->pair);
}

static enum status
rows_step(struct grouping *g)
{
	enum status status = kv_scan_next(&g->scan, &g->pair);

	if (status == STATUS_OK && g->first_left)
		g->first_left--;
	else if (status == STATUS_NOT_FOUND && g->is_first && !g->first_left)
		status = rows_go_on(g);
	g->over = status == STATUS_NOT_FOUND;
	if (!g->over)
		TRY(status);
	g->rows++;
	return index_count(g->s.w, 2);
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
	return arena_copy(arena, key, ret);
}

/* Appends a result, and begins to accumulate it. */
static enum status
result_begin(struct grouping *g, struct str place, struct str key)
{
	const struct view_reducing *r = g->reducing;

	g->results[g->count] = (struct view_result){ .key = key, .place = place };
	reduce_acc_init(&g->accs[g->count], &r->design->maps[r->map].reduces[r->reduce], g->s.w);
	g->count++;
	return STATUS_OK;
}

static enum status
result_take_row(struct grouping *g, struct str at, struct str value)
{
	struct reduce_acc *acc = &g->accs[g->count - 1];
	struct view_row_value row = { 0 };
	struct view_place place = { 0 };

	if (acc->reduce->kind != VIEW_REDUCE_COUNT)
		TRY(sums_row_texts(&g->s, at, value, &row));
	if (acc->reduce->kind == VIEW_REDUCE_FUNCTION)
		TRY(view_place_parse(at, g->s.group->partitioned, g->s.w->arena, &place));
	return reduce_acc_row(acc, row.key, place.id, row.value);
}

static enum status
result_take_sum(struct grouping *g, struct str value)
{
	struct view_sum sum;

	TRY(view_sum_parse(value, g->s.w->arena, &sum, g->s.err));
	if (g->reducing->reduce >= sum.count)
		return STATUS_CORRUPT;
	return sum.rows ? reduce_acc_partial(&g->accs[g->count - 1],
					     sum.partials[g->reducing->reduce])
			: STATUS_OK;
}

/* What the places of the row's group begin with; in the arena. */
static enum status
group_place(const struct grouping *g, struct str at, struct str *ret)
{
	struct arena *arena = g->s.w->arena;
	struct view_place place;
	size_t len;

	if (g->options->level == VIEW_LEVEL_ALL) {
		*ret = STR("");
		return STATUS_OK;
	}
	TRY(view_place_parse(at, g->s.group->partitioned, arena, &place));
	TRY(view_place_group(&place, at, g->options->level, &len));
	return arena_copy(arena, str_of(at.ptr, len), ret);
}

static enum status
group_key(const struct grouping *g, struct str at, struct str value, struct str *ret)
{
	struct view_row_value row;

	TRY(sums_row_texts(&g->s, at, value, &row));
	return group_key_text(row.key, g->options->level, g->s.w->arena, ret);
}

/* ---- Narrow groups ---- */

/* Takes the rows of the group that the scan stands at. `*ret_wide`: there are more than a few. */
static enum status
narrow_take(struct grouping *g, struct str place, bool *ret_wide)
{
	size_t rows = 0;

	while (!g->over) {
		struct str at = str_skip(g->pair.key, g->prefix_len);

		if (!str_starts_with(at, place))
			return STATUS_OK;
		*ret_wide = ++rows > NARROW_ROWS && g->s.group->tops[g->s.map];
		if (*ret_wide)
			return STATUS_OK;
		TRY(result_take_row(g, at, g->pair.value));
		TRY(rows_step(g));
	}
	return STATUS_OK;
}

/* Ends with a full page, with the range, or before a wide group. */
static enum status
groups_take_narrow(struct grouping *g, bool *ret_wide)
{
	struct str begin, place, key;

	TRY(rows_open(g, g->most + NARROW_ROWS + 1));
	TRY(rows_step(g));
	while (!g->over && !page_is_full(g)) {
		struct str at = str_skip(g->pair.key, g->prefix_len);

		begin = g->range.begin;
		TRY(group_place(g, at, &place));
		TRY(group_key(g, at, g->pair.value, &key));
		TRY(result_begin(g, place, key));
		TRY(narrow_take(g, place, ret_wide));
		if (!*ret_wide)
			continue;
		reduce_acc_release(&g->accs[--g->count]);
		g->range.begin = str_cmp(place, begin) > 0 ? place : begin;
		return STATUS_OK;
	}
	return STATUS_OK;
}

/* ---- Groups of a walk ---- */

/*
 * The key of the newest result: that of the first row of its group. A sum begins there, so the row
 * itself has not been read. It is waited for when the page is over, together with others.
 */
static enum status
key_ask(struct grouping *g, struct str place)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	TRY(arena_room(g->s.w->arena, &g->keys, g->key_count, &g->key_cap, sizeof(*g->keys)));
	view_key_level(&key, g->s.db, g->s.group->number, g->s.map, 0);
	buf_append_str(&key, place);
	TRY(catalog_key_status(&key));
	g->keys[g->key_count++] = (struct key_read){
		.result = g->count - 1, .future = kv_get(g->s.tx, buf_str(&key), KV_SNAPSHOT)
	};
	return STATUS_OK;
}

static enum status
keys_wait(struct grouping *g)
{
	struct str value;

	for (size_t i = 0; i < g->key_count; i++) {
		struct view_result *result = &g->results[g->keys[i].result];

		TRY(kv_future_wait(g->keys[i].future));
		if (!kv_future_value(g->keys[i].future, &value))
			return STATUS_CORRUPT;
		TRY(group_key(g, result->key, value, &result->key));
		kv_future_free(g->keys[i].future);
	}
	return STATUS_OK;
}

/* `piece` is the first of the newest result's, in the order of the rows. */
static enum status
walk_take_key(struct grouping *g, const struct sums_piece *piece)
{
	struct view_result *result = &g->results[g->count - 1];

	if (g->options->level == VIEW_LEVEL_ALL) {
		result->key = STR("null");
		return STATUS_OK;
	}
	if (piece->level == 0)
		return group_key(g, piece->place, piece->value, &result->key);
	result->key = arena_dup(g->s.w->arena, piece->place);
	return result->key.ptr ? key_ask(g, piece->place) : STATUS_LIMIT;
}

static enum status
walk_take_piece(struct grouping *g, const struct sums_piece *piece)
{
	return piece->level ? result_take_sum(g, piece->value)
			    : result_take_row(g, piece->place, piece->value);
}

/* Keeps a piece that has come before those in front of it. */
static enum status
walk_keep_piece(struct grouping *g, const struct sums_piece *piece)
{
	struct arena *arena = g->s.w->arena;
	struct sums_piece *kept;

	TRY(arena_room(arena, &g->pieces, g->piece_count, &g->piece_cap, sizeof(*kept)));
	kept = &g->pieces[g->piece_count++];
	*kept = (struct sums_piece){ .level = piece->level,
				     .place = arena_dup(arena, piece->place),
				     .value = arena_dup(arena, piece->value) };
	g->kept_bytes += piece->place.len + piece->value.len;
	return kept->place.ptr && kept->value.ptr ? STATUS_OK : STATUS_LIMIT;
}

/* The group is over: takes the pieces that were kept. */
static enum status
walk_end_group(struct grouping *g)
{
	if (g->piece_count)
		TRY(walk_take_key(g, &g->pieces[g->piece_count - 1]));
	while (g->piece_count)
		TRY(walk_take_piece(g, &g->pieces[--g->piece_count]));
	return STATUS_OK;
}

/* Begins the group that the piece is of. `*ret_full`: it is for the next page. */
static enum status
walk_begin_group(struct grouping *g, const struct sums_piece *piece, bool *ret_full)
{
	TRY(walk_end_group(g));
	*ret_full = page_is_full(g);
	if (*ret_full)
		return STATUS_OK;
	TRY(group_place(g, piece->place, &g->place));
	g->passing = g->skip > 0;
	if (g->passing) {
		g->skip--;
		return STATUS_OK;
	}
	TRY(result_begin(g, g->place, STR("null")));
	return g->range.descending ? STATUS_OK : walk_take_key(g, piece);
}

static enum status
walk_take(struct grouping *g, const struct sums_piece *piece, bool *ret_full)
{
	uint64_t rows = 1;

	/* The only sum that may be without rows is the first one of all. */
	if (piece->level && !piece->place.len)
		TRY(view_sum_rows(piece->value, &rows, g->s.err));
	if (!rows)
		return STATUS_OK;
	if (!g->place.ptr || !str_starts_with(piece->place, g->place))
		TRY(walk_begin_group(g, piece, ret_full));
	if (*ret_full || g->passing)
		return STATUS_OK;
	return g->range.descending ? walk_keep_piece(g, piece) : walk_take_piece(g, piece);
}

static enum status
walk_run(struct grouping *g, struct sums_walk *walk)
{
	struct sums_piece piece;
	enum status status;
	bool full = false;

	for (;;) {
		size_t wanted = g->most - g->count;

		if (g->skip < SIZE_MAX - wanted)
			wanted += (size_t)g->skip;
		status = sums_walk_next(walk, wanted, &piece);
		if (status == STATUS_NOT_FOUND)
			break;
		TRY(status);
		TRY(walk_take(g, &piece, &full));
		g->rows++;
		if (full)
			return STATUS_OK;
	}
	g->over = true;
	return walk_end_group(g);
}

static enum status
groups_walk(struct grouping *g)
{
	struct sums_walk walk;
	enum status status;

	rows_close(g);
	TRY(sums_walk_begin(&walk, &g->s, &g->range, g->options->level));
	status = walk_run(g, &walk);
	sums_walk_end(&walk);
	return status == STATUS_OK ? keys_wait(g) : status;
}

/* ---- Pages ---- */

static enum status
groups_take(struct grouping *g)
{
	bool wide = g->range.descending || g->skip || g->options->level == VIEW_LEVEL_ALL;

	if (g->range.end.len && str_cmp(g->range.begin, g->range.end) >= 0) {
		g->over = true;
		return STATUS_OK;
	}
	if (!wide)
		TRY(groups_take_narrow(g, &wide));
	return wide ? groups_walk(g) : STATUS_OK;
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
	if (g->range.descending) {
		if (!g->range.end.len || str_cmp(after, g->range.end) < 0)
			g->range.end = after;
		return STATUS_OK;
	}
	TRY(view_prefix_end(after, &end));
	if (str_cmp(buf_str(&end), g->range.begin) > 0)
		TRY(arena_copy(g->s.w->arena, buf_str(&end), &g->range.begin));
	return STATUS_OK;
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
		.range = { range->begin, range->end, range->descending },
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
