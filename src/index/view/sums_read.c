/* Reading the skip list: counts, the nth row, texts of rows. */
#include "index/view/read.h"
#include "index/view/walk.h"

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
	const struct kv_range_options options = { .limit_bytes = WALK_GAP_BYTES,
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

/* ---- Counting ---- */

static enum status
count_pieces(const struct sums *s, struct sums_walk *walk, uint64_t *rows)
{
	struct sums_piece piece;
	enum status status;
	uint64_t more = 1;

	while ((status = sums_walk_next(walk, WALK_WAVE, &piece)) == STATUS_OK) {
		if (piece.level)
			TRY(view_sum_rows(piece.value, &more, s->err));
		*rows += piece.level ? more : 1;
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status
sums_count(const struct sums *s, struct str begin, struct str end, uint64_t *ret)
{
	const struct walk_range range = { .begin = begin, .end = end };
	struct sums_walk walk;
	enum status status;

	*ret = 0;
	TRY(sums_walk_begin(&walk, s, &range, VIEW_LEVEL_ALL));
	status = count_pieces(s, &walk, ret);
	sums_walk_end(&walk);
	return status;
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

	buf_append_buf(&begin, place);
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
		buf_set(place, at);
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
	return arena_copy(s->w->arena, buf_str(&place), ret);
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
