#include "index/view/record.h"

#include "catalog/format.h"
#include "catalog/keys.h"
#include "kv/tuple.h"

enum {
	GROUP_FORMAT = 2, /* the newest of each */
	GROUP_PLAIN = 1,  /* lacks nothing, and has nothing large */
	ROW_FORMAT = 2,
	ROW_PLAIN = 1,
	ROW_CHUNKED = 2,
	SUM_FORMAT = 1,
	BACK_FORMAT = 2,
	BACK_PLAIN = 1, /* whole, and lacks nothing */
	LACK_FORMAT = 1,
};

/* ---- Groups ---- */

static struct str
seq_str(const struct catalog_seq *seq)
{
	return str_of((const char *)seq->bytes, CATALOG_SEQ_BYTES);
}

/*
 * A group is written in the first format as long as that format can hold all of it. If a group of
 * the first format lacks rows that were beyond a limit, an older frond has built it.
 */
static bool
group_is_plain(const struct view_group *g)
{
	for (size_t i = 0; i < g->map_count; i++)
		if (g->lacking[i])
			return false;
	return !g->halves && !g->large && g->unnoted == (g->refused > 0);
}

void
view_record_put(struct buf *value, const struct view_record *record)
{
	const struct view_group *g = &record->group;
	bool plain = group_is_plain(g);

	buf_clear(value);
	tuple_put_u64(value, plain ? GROUP_PLAIN : GROUP_FORMAT);
	tuple_put_u64(value, g->number);
	tuple_put_bytes(value, str_of((const char *)g->signature, VIEW_SIGNATURE_BYTES));
	tuple_put_bytes(value, str_of((const char *)g->seed, sizeof(g->seed)));
	tuple_put_u64(value, g->phase);
	tuple_put_bytes(value, seq_str(&g->covers));
	tuple_put_bytes(value, seq_str(&g->purge_seq));
	tuple_put_bytes(value, seq_str(&record->fresh));
	tuple_put_bool(value, g->partitioned);
	tuple_put_u64(value, record->work_map);
	tuple_put_u64(value, record->work_level);
	tuple_put_bytes(value, record->work_place);
	tuple_put_u64(value, record->done);
	tuple_put_u64(value, record->total);
	tuple_put_u64(value, g->refused);
	tuple_put_u64(value, g->map_count);
	for (size_t i = 0; i < g->map_count; i++) {
		tuple_put_u64(value, g->rows[i]);
		tuple_put_u64(value, g->tops[i]);
		if (!plain)
			tuple_put_u64(value, g->lacking[i]);
	}
	if (!plain) {
		tuple_put_u64(value, g->halves);
		tuple_put_bool(value, g->unnoted);
		tuple_put_bool(value, g->large);
	}
	for (size_t i = 0; i < g->refusal_count; i++) {
		tuple_put_str(value, g->refusals[i].id);
		tuple_put_str(value, g->refusals[i].view);
		tuple_put_str(value, g->refusals[i].limit);
	}
}

/* Bytes of a fixed length. */
static enum status
record_next_fixed(struct tuple_reader *r, struct arena *arena, void *ret, size_t len)
{
	struct str bytes;

	TRY(catalog_next_text(r, TUPLE_BYTES, arena, false, &bytes));
	if (bytes.len != len)
		return STATUS_CORRUPT;
	memcpy(ret, bytes.ptr, len);
	return STATUS_OK;
}

static enum status
record_parse_maps(struct tuple_reader *r, uint64_t format, struct view_group *g)
{
	uint64_t count, top;

	TRY(tuple_next_u64(r, &count));
	if (count > VIEW_VIEWS_MOST)
		return STATUS_CORRUPT;
	g->map_count = (size_t)count;
	for (size_t i = 0; i < g->map_count; i++) {
		TRY(tuple_next_u64(r, &g->rows[i]));
		TRY(tuple_next_u64(r, &top));
		if (top > UINT8_MAX)
			return STATUS_CORRUPT;
		g->tops[i] = (unsigned)top;
		if (format != GROUP_PLAIN)
			TRY(tuple_next_u64(r, &g->lacking[i]));
	}
	g->unnoted = g->refused > 0;
	if (format == GROUP_PLAIN)
		return STATUS_OK;
	TRY(tuple_next_u64(r, &g->halves));
	TRY(tuple_next_bool(r, &g->unnoted));
	return tuple_next_bool(r, &g->large);
}

static enum status
record_parse_refusals(struct tuple_reader *r, struct arena *arena, struct view_group *g)
{
	g->refusals = arena_zalloc(arena, VIEW_REFUSALS_SHOWN * sizeof(*g->refusals));
	if (!g->refusals)
		return STATUS_LIMIT;
	while (r->rest.len) {
		struct view_refusal *refusal = &g->refusals[g->refusal_count];

		if (g->refusal_count == VIEW_REFUSALS_SHOWN)
			return STATUS_CORRUPT;
		TRY(catalog_next_text(r, TUPLE_STRING, arena, true, &refusal->id));
		TRY(catalog_next_text(r, TUPLE_STRING, arena, true, &refusal->view));
		TRY(catalog_next_text(r, TUPLE_STRING, arena, true, &refusal->limit));
		g->refusal_count++;
	}
	return STATUS_OK;
}

static enum status
record_parse_work(struct tuple_reader *r, struct arena *arena, struct view_record *ret)
{
	uint64_t map, level;

	TRY(tuple_next_u64(r, &map));
	TRY(tuple_next_u64(r, &level));
	if (map > VIEW_VIEWS_MOST || level > UINT8_MAX)
		return STATUS_CORRUPT;
	ret->work_map = (size_t)map;
	ret->work_level = (unsigned)level;
	TRY(catalog_next_text(r, TUPLE_BYTES, arena, true, &ret->work_place));
	TRY(tuple_next_u64(r, &ret->done));
	return tuple_next_u64(r, &ret->total);
}

enum status
view_record_parse(struct str value, struct arena *arena, struct view_record *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	struct view_group *g = &ret->group;
	uint64_t format, phase;

	*ret = (struct view_record){ 0 };
	TRY(catalog_format_next(&r, "record of a group of views", GROUP_FORMAT, &format, err));
	TRY(tuple_next_u64(&r, &g->number));
	TRY(record_next_fixed(&r, arena, g->signature, sizeof(g->signature)));
	TRY(record_next_fixed(&r, arena, g->seed, sizeof(g->seed)));
	TRY(tuple_next_u64(&r, &phase));
	if (phase < VIEW_PHASE_ROWS || phase > VIEW_PHASE_READY)
		return STATUS_CORRUPT;
	g->phase = (enum view_phase)phase;
	TRY(record_next_fixed(&r, arena, g->covers.bytes, CATALOG_SEQ_BYTES));
	TRY(record_next_fixed(&r, arena, g->purge_seq.bytes, CATALOG_SEQ_BYTES));
	TRY(record_next_fixed(&r, arena, ret->fresh.bytes, CATALOG_SEQ_BYTES));
	TRY(tuple_next_bool(&r, &g->partitioned));
	TRY(record_parse_work(&r, arena, ret));
	TRY(tuple_next_u64(&r, &g->refused));
	TRY(record_parse_maps(&r, format, g));
	return record_parse_refusals(&r, arena, g);
}

/* ---- Rows ---- */

void
view_row_put(struct buf *value, const struct view_row_value *row)
{
	buf_clear(value);
	if (row->chunked) {
		tuple_put_u64(value, ROW_CHUNKED);
		tuple_put_u64(value, row->key_bytes);
		tuple_put_u64(value, row->value_bytes);
		return;
	}
	tuple_put_u64(value, ROW_PLAIN);
	tuple_put_str(value, row->key);
	tuple_put_str(value, row->value);
}

/* JSON text has no NUL. */
static enum status
row_next_text(struct tuple_reader *r, struct str *ret)
{
	struct tuple_elem e;

	if (tuple_next(r, &e) != STATUS_OK || e.kind != TUPLE_STRING || e.escaped)
		return STATUS_CORRUPT;
	*ret = e.raw;
	return STATUS_OK;
}

enum status
view_row_parse(struct str value, struct view_row_value *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format;

	*ret = (struct view_row_value){ 0 };
	TRY(catalog_format_next(&r, "row of a view", ROW_FORMAT, &format, err));
	if (format == ROW_PLAIN) {
		TRY(row_next_text(&r, &ret->key));
		TRY(row_next_text(&r, &ret->value));
		return r.rest.len ? STATUS_CORRUPT : STATUS_OK;
	}
	ret->chunked = true;
	TRY(tuple_next_u64(&r, &ret->key_bytes));
	TRY(tuple_next_u64(&r, &ret->value_bytes));
	if (r.rest.len || ret->key_bytes > VIEW_ROW_BYTES || ret->value_bytes > VIEW_ROW_BYTES)
		return STATUS_CORRUPT;
	return STATUS_OK;
}

/* ---- Sums ---- */

void
view_sum_put(struct buf *value, const struct view_sum *sum)
{
	buf_clear(value);
	tuple_put_u64(value, SUM_FORMAT);
	tuple_put_u64(value, sum->rows);
	for (size_t i = 0; i < sum->count; i++)
		tuple_put_bytes(value, sum->partials[i]);
}

enum status
view_sum_parse(struct str value, struct arena *arena, struct view_sum *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format;

	ret->count = 0;
	TRY(catalog_format_next(&r, "sum of a view", SUM_FORMAT, &format, err));
	TRY(tuple_next_u64(&r, &ret->rows));
	while (r.rest.len) {
		if (ret->count == VIEW_VIEWS_MOST)
			return STATUS_CORRUPT;
		TRY(catalog_next_text(&r, TUPLE_BYTES, arena, false, &ret->partials[ret->count]));
		ret->count++;
	}
	return STATUS_OK;
}

enum status
view_sum_rows(struct str value, uint64_t *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format;

	TRY(catalog_format_next(&r, "sum of a view", SUM_FORMAT, &format, err));
	return tuple_next_u64(&r, ret);
}

/* ---- The rows of a document ---- */

void
view_back_head_put(struct buf *value, const struct view_back_head *head)
{
	bool plain = !head->half && !head->lacking;

	buf_clear(value);
	tuple_put_u64(value, plain ? BACK_PLAIN : BACK_FORMAT);
	tuple_put_u64(value, head->chunks);
	if (plain)
		return;
	tuple_put_bool(value, head->half);
	tuple_put_u64(value, head->lacking);
}

enum status
view_back_head_parse(struct str *value, struct view_back_head *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(*value);
	uint64_t format;

	*ret = (struct view_back_head){ 0 };
	TRY(catalog_format_next(&r, "rows of a document", BACK_FORMAT, &format, err));
	TRY(tuple_next_u64(&r, &ret->chunks));
	if (format != BACK_PLAIN) {
		TRY(tuple_next_bool(&r, &ret->half));
		TRY(tuple_next_u64(&r, &ret->lacking));
	}
	*value = r.rest;
	return ret->chunks > 2 * VIEW_DOC_BYTES / VIEW_CHUNK_BYTES + 1 ? STATUS_CORRUPT : STATUS_OK;
}

/* ---- What a document lacks ---- */

void
view_lack_put(struct buf *value, const struct view_lack *lack)
{
	buf_clear(value);
	tuple_put_u64(value, LACK_FORMAT);
	tuple_put_u64(value, lack->rows);
	tuple_put_str(value, lack->limit);
}

enum status
view_lack_parse(struct str value, struct view_lack *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format;

	TRY(catalog_format_next(&r, "note of what a view lacks", LACK_FORMAT, &format, err));
	TRY(tuple_next_u64(&r, &ret->rows));
	TRY(row_next_text(&r, &ret->limit));
	return r.rest.len ? STATUS_CORRUPT : STATUS_OK;
}

void
view_back_put(struct buf *value, const struct view_back *back)
{
	tuple_put_u64(value, back->map);
	tuple_put_bytes(value, back->component);
	tuple_put_u64(value, back->ordinal);
	tuple_put_u64(value, back->hash);
	tuple_put_u64(value, back->chunks);
}

enum status
view_backs_parse(struct str value, struct arena *arena, struct view_back **ret, size_t *ret_count)
{
	struct tuple_reader r = tuple_reader(value);
	struct view_back *backs = NULL;
	size_t count = 0, cap = 0;
	uint64_t map;

	while (r.rest.len) {
		TRY(catalog_array_grow(arena, (void **)&backs, sizeof(*backs), count, &cap));
		TRY(tuple_next_u64(&r, &map));
		if (map >= VIEW_VIEWS_MOST)
			return STATUS_CORRUPT;
		backs[count].map = (size_t)map;
		TRY(catalog_next_text(&r, TUPLE_BYTES, arena, false, &backs[count].component));
		TRY(tuple_next_u64(&r, &backs[count].ordinal));
		TRY(tuple_next_u64(&r, &backs[count].hash));
		TRY(tuple_next_u64(&r, &backs[count].chunks));
		count++;
	}
	*ret = backs;
	*ret_count = count;
	return STATUS_OK;
}
