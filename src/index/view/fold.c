/* Reading the skip list: ranges as rows and sums, counts, the nth row. */
#include "index/view/sums.h"

enum {
	PLACE_STEPS = 2, /* of passing over a row or a sum */
};

/* A scan over one level, between two places. */
struct level_scan {
	struct kv_scan scan;
	size_t prefix_len;
};

static enum status
level_scan_open(const struct sums *s, unsigned level, struct str begin, struct str end,
		struct level_scan *ret)
{
	const struct kv_range_options options = { .limit_bytes = CATALOG_PAGE_BYTES,
						  .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;

	TRY(view_key_places(s->db, s->group->number, s->map, level, begin, end, &lo, &hi,
			    &ret->prefix_len));
	return kv_scan_init(&ret->scan, s->tx, buf_str(&lo), buf_str(&hi), &options);
}

static enum status
level_scan_next(const struct sums *s, struct level_scan *l, struct str *ret_place,
		struct str *ret_value)
{
	struct kv_pair pair;

	TRY(kv_scan_next(&l->scan, &pair));
	TRY(index_count(s->w, PLACE_STEPS));
	*ret_place = str_skip(pair.key, l->prefix_len);
	*ret_value = pair.value;
	return STATUS_OK;
}

/* ---- Folding ---- */

static enum status
fold_rows(const struct sums *s, struct str begin, struct str end, sums_visitor *visit, void *arg)
{
	struct sums_piece piece = { .level = 0 };
	struct level_scan scan;
	enum status status;

	TRY(level_scan_open(s, 0, begin, end, &scan));
	while ((status = level_scan_next(s, &scan, &piece.place, &piece.value)) == STATUS_OK) {
		status = visit(arg, &piece);
		if (status != STATUS_OK)
			break;
	}
	kv_scan_release(&scan.scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* The sum before the one that the scan stands at, which is known to lie in the range. */
struct fold_last {
	struct buf place;
	struct buf value;
	bool any;
};

static enum status fold_level(const struct sums *s, unsigned level, struct str begin,
			      struct str end, sums_visitor *visit, void *arg);

static enum status
fold_sums(const struct sums *s, unsigned level, struct level_scan *scan, struct str begin,
	  struct fold_last *last, sums_visitor *visit, void *arg)
{
	struct str place, value;
	enum status status;

	while ((status = level_scan_next(s, scan, &place, &value)) == STATUS_OK) {
		if (last->any)
			TRY(visit(arg, &(struct sums_piece){ level, buf_str(&last->place),
							     buf_str(&last->value) }));
		else if (str_cmp(begin, place) < 0)
			TRY(fold_level(s, level - 1, begin, place, visit, arg));
		last->any = true;
		buf_clear(&last->place);
		buf_clear(&last->value);
		buf_append_str(&last->place, place);
		buf_append_str(&last->value, value);
		TRY(buf_status(&last->place));
		TRY(buf_status(&last->value));
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
fold_level(const struct sums *s, unsigned level, struct str begin, struct str end,
	   sums_visitor *visit, void *arg)
{
	struct fold_last last = { .place = CATALOG_KEY_INIT,
				  .value = BUF_INIT(KV_LIMIT_VALUE_BYTES) };
	struct level_scan scan;
	enum status status;

	if (level == 0)
		return fold_rows(s, begin, end, visit, arg);
	TRY(level_scan_open(s, level, begin, end, &scan));
	status = fold_sums(s, level, &scan, begin, &last, visit, arg);
	kv_scan_release(&scan.scan);
	if (status == STATUS_OK && !last.any)
		status = fold_level(s, level - 1, begin, end, visit, arg);
	else if (status == STATUS_OK && end.len)
		status = fold_level(s, level - 1, buf_str(&last.place), end, visit, arg);
	else if (status == STATUS_OK)
		status = visit(arg, &(struct sums_piece){ level, buf_str(&last.place),
							  buf_str(&last.value) });
	buf_release(&last.place);
	buf_release(&last.value);
	return status;
}

enum status
sums_fold(const struct sums *s, struct str begin, struct str end, sums_visitor *visit, void *arg)
{
	if (end.len && str_cmp(begin, end) >= 0)
		return STATUS_OK;
	return fold_level(s, s->group->tops[s->map], begin, end, visit, arg);
}

/* ---- Counting ---- */

struct counting {
	const struct sums *s;
	uint64_t rows;
};

static enum status
counting_visit(void *arg, const struct sums_piece *piece)
{
	struct counting *c = arg;
	uint64_t rows = 1;

	if (piece->level)
		TRY(view_sum_rows(piece->value, &rows, c->s->err));
	c->rows += rows;
	return STATUS_OK;
}

enum status
sums_count(const struct sums *s, struct str begin, struct str end, uint64_t *ret)
{
	struct counting counting = { .s = s };

	TRY(sums_fold(s, begin, end, counting_visit, &counting));
	*ret = counting.rows;
	return STATUS_OK;
}

/* Goes through a level from `*place` until the row lies below a sum, whose place this becomes. */
static enum status
select_step(const struct sums *s, unsigned level, uint64_t *index, struct buf *place)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	struct level_scan scan;
	struct str at, value;
	enum status status;
	uint64_t rows = 1;

	buf_append_str(&begin, buf_str(place));
	TRY(buf_status(&begin));
	TRY(level_scan_open(s, level, buf_str(&begin), STR(""), &scan));
	while ((status = level_scan_next(s, &scan, &at, &value)) == STATUS_OK) {
		if (level)
			status = view_sum_rows(value, &rows, s->err);
		if (status != STATUS_OK)
			break;
		if (*index >= rows) {
			*index -= rows;
			continue;
		}
		buf_clear(place);
		buf_append_str(place, at);
		status = buf_status(place);
		break;
	}
	kv_scan_release(&scan.scan);
	return status;
}

enum status
sums_select(const struct sums *s, uint64_t index, struct str *ret)
{
	AUTO(buf_release) struct buf place = CATALOG_KEY_INIT;

	for (unsigned level = s->group->tops[s->map] + 1; level-- > 0;)
		TRY(select_step(s, level, &index, &place));
	*ret = arena_dup(s->w->arena, buf_str(&place));
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

/* ---- Texts ---- */

static enum status
chunks_read(const struct sums *s, struct str place, size_t bytes, char *ret)
{
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;
	const struct kv_range_options options = { .mode = KV_SNAPSHOT };
	struct kv_scan scan;
	struct kv_pair pair;
	enum status status;
	size_t at = 0;

	view_key_text(&lo, s->db, s->group->number, s->map, place, 0);
	view_key_text(&hi, s->db, s->group->number, s->map, place, UINT32_MAX);
	TRY(catalog_key_status(&lo));
	TRY(catalog_key_status(&hi));
	TRY(kv_scan_init(&scan, s->tx, buf_str(&lo), buf_str(&hi), &options));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		if (pair.value.len > bytes - at) {
			status = STATUS_CORRUPT;
			break;
		}
		memcpy(ret + at, pair.value.ptr, pair.value.len);
		at += pair.value.len;
	}
	kv_scan_release(&scan);
	if (status != STATUS_NOT_FOUND)
		return status;
	return at == bytes ? STATUS_OK : STATUS_CORRUPT;
}

enum status
sums_row_texts(const struct sums *s, struct str place, struct str value, struct view_row_value *ret)
{
	size_t bytes;
	char *text;

	TRY(view_row_parse(value, ret, s->err));
	if (!ret->chunked)
		return STATUS_OK;
	bytes = (size_t)(ret->key_bytes + ret->value_bytes);
	text = arena_bytes(s->w->arena, bytes + 1);
	if (!text)
		return STATUS_LIMIT;
	TRY(chunks_read(s, place, bytes, text));
	ret->key = str_of(text, (size_t)ret->key_bytes);
	ret->value = str_of(text + ret->key_bytes, (size_t)ret->value_bytes);
	return STATUS_OK;
}
