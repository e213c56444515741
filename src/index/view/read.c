/* Ranges of rows, rows, and how many there are. */
#include "index/view/read.h"

#include "index/view/sums.h"

/* ---- Ranges ---- */

/* A bound: the key's place, and its end; everything is in the arena. */
struct bound {
	bool given;
	struct str from; /* the first place that could have the key (and the id) */
	struct str to;   /* the end of those places */
};

static enum status
bound_make(const struct view_group *group, const struct view_question *q, struct str key,
	   struct str id, struct index_work *w, struct bound *ret, struct err *err)
{
	AUTO(buf_release) struct buf component = BUF_INIT(2 * VIEW_KEY_BYTES);
	AUTO(buf_release) struct buf place = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	enum status status;

	*ret = (struct bound){ 0 };
	if (!key.ptr)
		return STATUS_OK;
	if (!view_text_is_json(key))
		return err_set(err, STATUS_INVALID, "A key is no JSON.");
	status = view_component(&component, q->collation, key, w);
	if (status == STATUS_KEY_TOO_LARGE)
		return err_set(err, STATUS_INVALID,
			       "A key is longer than any that a view can have (%d bytes).",
			       VIEW_KEY_BYTES);
	TRY(status);
	if (group->partitioned)
		tuple_put_str(&place, q->partition);
	tuple_put_bytes(&place, buf_str(&component));
	if (id.ptr)
		tuple_put_str(&place, id);
	TRY(buf_status(&place));
	TRY(view_prefix_end(buf_str(&place), &end));
	ret->given = true;
	ret->from = buf_dup(&place, w->arena);
	ret->to = buf_dup(&end, w->arena);
	return ret->from.ptr && ret->to.ptr ? STATUS_OK : STATUS_LIMIT;
}

/* All places of the partition, or all there are. */
static enum status
range_whole(const struct view_group *group, struct str partition, struct index_work *w,
	    struct view_range *ret)
{
	AUTO(buf_release) struct buf place = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	ret->begin = ret->end = STR("");
	if (!group->partitioned)
		return STATUS_OK;
	tuple_put_str(&place, partition);
	TRY(buf_status(&place));
	TRY(view_prefix_end(buf_str(&place), &end));
	ret->begin = buf_dup(&place, w->arena);
	ret->end = buf_dup(&end, w->arena);
	return ret->begin.ptr && ret->end.ptr ? STATUS_OK : STATUS_LIMIT;
}

enum status
view_range_make(const struct view_group *group, const struct view_question *q, struct index_work *w,
		struct view_range *ret, struct err *err)
{
	const struct bound *low, *high;
	struct bound start, end;

	*ret = (struct view_range){ .descending = q->descending };
	TRY(bound_make(group, q, q->start_key, q->start_id, w, &start, err));
	TRY(bound_make(group, q, q->end_key, q->end_id, w, &end, err));
	TRY(range_whole(group, q->partition, w, ret));
	low = q->descending ? &end : &start;
	high = q->descending ? &start : &end;
	if (low->given)
		ret->begin = low == &end && q->exclusive_end ? low->to : low->from;
	if (high->given)
		ret->end = high == &end && q->exclusive_end ? high->from : high->to;
	ret->inverted = low->given && high->given && str_cmp(low->from, high->to) >= 0;
	return STATUS_OK;
}

/* ---- Counts ---- */

enum status
view_rows_total(struct kv_tx *tx, const struct catalog_db *db, const struct view_group *group,
		size_t map, struct str partition, struct index_work *w, uint64_t *ret)
{
	const struct sums s = sums_of(tx, db, group, map, w);
	struct view_range range = { 0 };

	*ret = 0;
	if (group->phase != VIEW_PHASE_READY)
		return STATUS_OK;
	*ret = group->rows[map];
	if (!group->partitioned)
		return STATUS_OK;
	TRY(range_whole(group, partition, w, &range));
	return sums_count(&s, range.begin, range.end, ret);
}

/* The bounds of the range's partition, from one of its own places. */
static enum status
range_partition(const struct view_group *group, const struct view_range *range,
		struct index_work *w, struct view_range *ret)
{
	struct tuple_reader r = tuple_reader(range->begin);
	struct str partition = STR("");

	if (group->partitioned)
		TRY(catalog_next_text(&r, TUPLE_STRING, w->arena, false, &partition));
	return range_whole(group, partition, w, ret);
}

enum status
view_rows_offset(struct kv_tx *tx, const struct catalog_db *db, const struct view_group *group,
		 size_t map, const struct view_range *range, struct index_work *w, uint64_t *ret)
{
	const struct sums s = sums_of(tx, db, group, map, w);
	struct view_range whole = { 0 };

	*ret = 0;
	if (group->phase != VIEW_PHASE_READY)
		return STATUS_OK;
	TRY(range_partition(group, range, w, &whole));
	if (!range->descending)
		return range->begin.len ? sums_count(&s, whole.begin, range->begin, ret)
					: STATUS_OK;
	return range->end.len ? sums_count(&s, range->end, whole.end, ret) : STATUS_OK;
}

enum status
view_rows_count(struct kv_tx *tx, const struct catalog_db *db, const struct view_group *group,
		size_t map, const struct view_range *range, struct index_work *w, uint64_t *ret)
{
	const struct sums s = sums_of(tx, db, group, map, w);

	*ret = 0;
	if (group->phase != VIEW_PHASE_READY)
		return STATUS_OK;
	return sums_count(&s, range->begin, range->end, ret);
}

/* ---- Rows ---- */

/* Moves the bound at which reading begins behind the rows that are passed over. */
static enum status
rows_skip(const struct sums *s, uint64_t skip, bool descending, struct str *begin, struct str *end)
{
	uint64_t before = 0, rows = s->group->rows[s->map];

	if (descending && !end->len)
		before = rows;
	else if (descending || begin->len)
		TRY(sums_count(s, STR(""), descending ? *end : *begin, &before));
	if (descending)
		return skip >= before ? STATUS_NOT_FOUND : sums_select(s, before - skip, end);
	return skip >= rows - before ? STATUS_NOT_FOUND : sums_select(s, before + skip, begin);
}

static enum status
rows_open(struct view_rows *rows, const struct view_rows_options *options, bool descending,
	  struct str begin, struct str end)
{
	const struct kv_range_options scan = {
		.reverse = descending,
		.ahead = options->ahead,
		.limit = options->limit < SIZE_MAX ? (size_t)options->limit : 0,
		.mode = KV_SNAPSHOT,
	};
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;

	TRY(view_key_places(rows->db, rows->group->number, rows->map, 0, begin, end, &lo, &hi,
			    &rows->prefix_len));
	TRY(kv_scan_init(&rows->scan, rows->tx, buf_str(&lo), buf_str(&hi), &scan));
	rows->open = true;
	return STATUS_OK;
}

enum status
view_rows_begin(struct view_rows *rows, struct kv_tx *tx, const struct catalog_db *db,
		const struct view_group *group, size_t map, const struct view_range *range,
		const struct view_rows_options *options, struct index_work *w)
{
	const struct sums s = sums_of(tx, db, group, map, w);
	struct str begin = range->begin, end = range->end;
	enum status status = STATUS_OK;
	char *next;

	*rows = (struct view_rows){
		.tx = tx, .db = db, .group = group, .map = map, .left = options->limit
	};
	if (group->phase != VIEW_PHASE_READY)
		rows->left = 0;
	if (options->after.ptr && range->descending) {
		if (!end.len || str_cmp(options->after, end) < 0)
			end = options->after;
	} else if (options->after.ptr && str_cmp(options->after, begin) >= 0) {
		next = arena_bytes(w->arena, options->after.len + 1);
		if (!next)
			return STATUS_LIMIT;
		memcpy(next, options->after.ptr, options->after.len);
		next[options->after.len] = '\0';
		begin = str_of(next, options->after.len + 1);
	}
	if (rows->left && options->skip)
		status = rows_skip(&s, options->skip, range->descending, &begin, &end);
	if (status == STATUS_NOT_FOUND || (end.len && str_cmp(begin, end) >= 0))
		rows->left = 0;
	else
		TRY(status);
	return rows->left ? rows_open(rows, options, range->descending, begin, end) : STATUS_OK;
}

enum status
view_rows_next(struct view_rows *rows, struct index_work *w, struct view_row *ret)
{
	const struct sums s = sums_of(rows->tx, rows->db, rows->group, rows->map, w);
	struct view_row_value value;
	struct view_place place;
	struct kv_pair pair;

	if (!rows->left || !rows->open)
		return STATUS_NOT_FOUND;
	TRY(kv_scan_next(&rows->scan, &pair));
	rows->left--;
	ret->place = str_skip(pair.key, rows->prefix_len);
	TRY(index_count_bytes(w, pair.value.len));
	TRY(sums_row_texts(&s, ret->place, pair.value, &value));
	TRY(view_place_parse(ret->place, rows->group->partitioned, w->arena, &place));
	ret->id = place.id;
	ret->key = value.key;
	ret->value = value.value;
	return STATUS_OK;
}

void
view_rows_end(struct view_rows *rows)
{
	if (rows->open)
		kv_scan_release(&rows->scan);
	rows->open = false;
}
