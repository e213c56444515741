#include "index/view/reduce.h"

#include <math.h>

#include "base/hash.h"
#include "doc/json.h"
#include "index/collate.h"
#include "index/view/record.h"

enum {
	PRECISION = 11,
	SPARSE_BYTES = 3, /* of a register: its number, its rank */
	STATS_FIELDS = 5,
};

#define SUM_ERROR                                                                                  \
	"The _sum function requires that map values be numbers, arrays of numbers, or objects. "   \
	"Objects cannot be mixed with other data structures. Objects can be arbitrarily nested, "  \
	"provided that the values for all fields are themselves numbers, arrays of numbers, or "   \
	"objects."
#define STATS_ERROR                                                                                \
	"The _stats function requires that map values be numbers or arrays of numbers, not "

_Static_assert(1 << PRECISION == REDUCE_REGISTERS, "precision");

void
reduce_acc_init(struct reduce_acc *acc, const struct view_reduce *reduce, struct index_work *w)
{
	*acc = (struct reduce_acc){ .reduce = reduce, .w = w };
}

void
reduce_acc_release(struct reduce_acc *acc)
{
	for (size_t i = 0; i < acc->segment_count; i++) {
		buf_release(&acc->segments[i].keys);
		buf_release(&acc->segments[i].values);
	}
	acc->segment_count = 0;
}

/* A partial result that is an error. */
static enum status
acc_fail(struct reduce_acc *acc, struct str name, struct str reason_json)
{
	AUTO(buf_release) struct buf text = BUF_INIT(REDUCE_BUF_BYTES);

	if (acc->failed.ptr)
		return STATUS_OK;
	if (reason_json.len > VIEW_PARTIAL_BYTES / 2)
		reason_json = STR("\"The reason is too long.\"");
	buf_append_byte(&text, 'e');
	buf_append_str(&text, str_of(name.ptr, name.len < 256 ? name.len : 256));
	buf_append_byte(&text, '\0');
	buf_append_str(&text, reason_json);
	return buf_copy(&text, acc->w->arena, &acc->failed);
}

/* What is kept of a row outlives the read that has brought it. A number leaves nothing. */
static enum status
acc_keep(struct reduce_acc *acc, struct str *text)
{
	if (text->len && (text->ptr[0] == '-' || (text->ptr[0] >= '0' && text->ptr[0] <= '9')) &&
	    (acc->reduce->kind == VIEW_REDUCE_SUM || acc->reduce->kind == VIEW_REDUCE_STATS))
		return STATUS_OK;
	return arena_copy(acc->w->arena, *text, text);
}

/* ---- _sum ---- */

static enum status
sum_fail(struct reduce_acc *acc, const struct sum_value *cause)
{
	AUTO(buf_release) struct buf text = BUF_INIT(REDUCE_BUF_BYTES);
	struct str cause_text = cause->text.ptr && cause->text.len < VIEW_PARTIAL_BYTES / 2
					? cause->text
					: STR("null");

	buf_append_cstr(&text, "{\"error\":\"builtin_reduce_error\",\"reason\":");
	json_write_str(&text, STR(SUM_ERROR));
	buf_append_cstr(&text, ",\"caused_by\":");
	buf_append_str(&text, cause_text);
	buf_append_byte(&text, '}');
	return buf_copy(&text, acc->w->arena, &acc->sum_error);
}

static enum status
sum_take(struct reduce_acc *acc, struct str text)
{
	const struct sum_value *cause;
	const struct sum_value *error;
	struct sum_value value;

	if (acc->sum_error.ptr)
		return STATUS_OK;
	TRY(acc_keep(acc, &text));
	TRY(sum_value_read(text, acc->w->arena, &value));
	error = sum_value_member(&value, "error");
	if (error && str_eq(error->text, STR("\"builtin_reduce_error\""))) {
		acc->sum_error = text;
		return STATUS_OK;
	}
	TRY(sum_value_add(&acc->sum, &value, acc->w->arena, &cause));
	return cause ? sum_fail(acc, cause) : STATUS_OK;
}

/* ---- _stats ---- */

static enum status
stats_fail(struct reduce_acc *acc, struct str text)
{
	AUTO(buf_release) struct buf plain = BUF_INIT(VIEW_PARTIAL_BYTES);
	AUTO(buf_release) struct buf json = BUF_INIT(REDUCE_BUF_BYTES);

	buf_append_cstr(&plain, STATS_ERROR "'");
	buf_append_str(&plain, text.len < VIEW_PARTIAL_BYTES / 4 ? text : STR("…"));
	buf_append_byte(&plain, '\'');
	json_write_str(&json, buf_str(&plain));
	TRY(buf_status(&json));
	return acc_fail(acc, STR("invalid_value"), buf_str(&json));
}

/* *ret_fits is false for a value that has no statistics. */
static enum status
stats_read(const struct sum_value *value, struct arena *arena, struct reduce_stats *ret,
	   bool *ret_fits)
{
	static const char *const names[STATS_FIELDS] = { "sum", "count", "min", "max", "sumsqr" };
	struct sum_number *const fields[STATS_FIELDS] = { &ret->sum, &ret->count, &ret->min,
							  &ret->max, &ret->sumsqr };

	*ret = (struct reduce_stats){ 0 };
	if (value->kind == SUM_NUMBER) {
		ret->sum = ret->min = ret->max = value->number;
		ret->count.i = 1;
		ret->sumsqr = sum_number_multiply(value->number, value->number);
		return STATUS_OK;
	}
	if (value->kind == SUM_ARRAY) {
		ret->is_array = true;
		ret->item_count = value->count;
		ret->items = arena_zalloc(arena, value->count * sizeof(*ret->items));
		if (!ret->items)
			return STATUS_LIMIT;
		for (size_t i = 0; i < value->count && *ret_fits; i++)
			TRY(stats_read(&value->items[i], arena, &ret->items[i], ret_fits));
		return STATUS_OK;
	}
	for (size_t i = 0; i < STATS_FIELDS; i++) {
		const struct sum_value *field = sum_value_member(value, names[i]);

		if (!field || field->kind != SUM_NUMBER) {
			*ret_fits = false;
			return STATUS_OK;
		}
		*fields[i] = field->number;
	}
	return STATUS_OK;
}

/* False: they have no statistics in common, such as a number and an array. */
static bool
stats_add(struct reduce_stats *acc, const struct reduce_stats *value)
{
	if (acc->is_array != value->is_array || acc->item_count != value->item_count)
		return false;
	for (size_t i = 0; i < acc->item_count; i++)
		if (!stats_add(&acc->items[i], &value->items[i]))
			return false;
	if (acc->is_array)
		return true;
	acc->sum = sum_number_add(acc->sum, value->sum);
	acc->count = sum_number_add(acc->count, value->count);
	acc->sumsqr = sum_number_add(acc->sumsqr, value->sumsqr);
	if (sum_number_cmp(value->min, acc->min) < 0)
		acc->min = value->min;
	if (sum_number_cmp(value->max, acc->max) > 0)
		acc->max = value->max;
	return true;
}

static enum status
stats_take(struct reduce_acc *acc, struct str text)
{
	struct sum_value value;
	struct reduce_stats stats;
	bool fits = true;

	if (acc->failed.ptr)
		return STATUS_OK;
	TRY(acc_keep(acc, &text));
	TRY(sum_value_read(text, acc->w->arena, &value));
	TRY(stats_read(&value, acc->w->arena, &stats, &fits));
	if (acc->rows == 0)
		acc->stats = stats;
	else
		fits = fits && stats_add(&acc->stats, &stats);
	return fits ? STATUS_OK : stats_fail(acc, text);
}

static void
stats_write(const struct reduce_stats *stats, struct buf *out)
{
	if (stats->is_array) {
		buf_append_byte(out, '[');
		for (size_t i = 0; i < stats->item_count; i++) {
			if (i)
				buf_append_byte(out, ',');
			stats_write(&stats->items[i], out);
		}
		buf_append_byte(out, ']');
		return;
	}
	buf_append_cstr(out, "{\"sum\":");
	sum_number_write(stats->sum, out);
	buf_append_cstr(out, ",\"count\":");
	sum_number_write(stats->count, out);
	buf_append_cstr(out, ",\"min\":");
	sum_number_write(stats->min, out);
	buf_append_cstr(out, ",\"max\":");
	sum_number_write(stats->max, out);
	buf_append_cstr(out, ",\"sumsqr\":");
	sum_number_write(stats->sumsqr, out);
	buf_append_byte(out, '}');
}

/* ---- _approx_count_distinct ---- */

static enum status
distinct_make(struct reduce_acc *acc)
{
	if (!acc->registers)
		acc->registers = arena_zalloc(acc->w->arena, REDUCE_REGISTERS);
	return acc->registers ? STATUS_OK : STATUS_LIMIT;
}

static void
distinct_raise(struct reduce_acc *acc, size_t at, uint8_t rank)
{
	if (acc->registers[at] < rank)
		acc->registers[at] = rank;
}

static enum status
distinct_row(struct reduce_acc *acc, struct str key)
{
	static const uint8_t seed[HASH_SEED_BYTES];
	uint64_t hash = hash_seeded(seed, key);
	uint64_t rest = hash << PRECISION | UINT64_C(1) << (PRECISION - 1);

	TRY(distinct_make(acc));
	distinct_raise(acc, hash >> (64 - PRECISION), (uint8_t)(__builtin_clzll(rest) + 1));
	return STATUS_OK;
}

/* All registers, or the number and the rank of those that are not 0. */
static enum status
distinct_merge(struct reduce_acc *acc, struct str text)
{
	TRY(distinct_make(acc));
	if (text.len == REDUCE_REGISTERS) {
		for (size_t i = 0; i < REDUCE_REGISTERS; i++)
			distinct_raise(acc, i, (uint8_t)text.ptr[i]);
		return STATUS_OK;
	}
	if (text.len % SPARSE_BYTES)
		return STATUS_CORRUPT;
	for (size_t i = 0; i < text.len; i += SPARSE_BYTES) {
		size_t at = (size_t)(uint8_t)text.ptr[i] << 8 | (uint8_t)text.ptr[i + 1];

		if (at >= REDUCE_REGISTERS)
			return STATUS_CORRUPT;
		distinct_raise(acc, at, (uint8_t)text.ptr[i + 2]);
	}
	return STATUS_OK;
}

static void
distinct_write(const struct reduce_acc *acc, struct buf *out)
{
	size_t used = 0;

	for (size_t i = 0; acc->registers && i < REDUCE_REGISTERS; i++)
		used += acc->registers[i] != 0;
	if (used * SPARSE_BYTES >= REDUCE_REGISTERS - SPARSE_BYTES) {
		buf_append(out, acc->registers, REDUCE_REGISTERS);
		return;
	}
	for (size_t i = 0; used && i < REDUCE_REGISTERS; i++) {
		if (!acc->registers[i])
			continue;
		buf_append_byte(out, (uint8_t)(i >> 8));
		buf_append_byte(out, (uint8_t)i);
		buf_append_byte(out, acc->registers[i]);
	}
}

static uint64_t
distinct_estimate(const struct reduce_acc *acc)
{
	const double m = REDUCE_REGISTERS;
	const double alpha = 0.7213 / (1 + 1.079 / m);
	double sum = 0, estimate;
	size_t empty = 0;

	for (size_t i = 0; i < REDUCE_REGISTERS; i++) {
		sum += ldexp(1, -(int)acc->registers[i]);
		empty += acc->registers[i] == 0;
	}
	estimate = alpha * m * m / sum;
	if (estimate <= 2.5 * m && empty)
		estimate = m * log(m / (double)empty);
	return (uint64_t)llround(estimate);
}

/* ---- _first and _last ---- */

static enum status
pick_take(struct reduce_acc *acc, struct str text)
{
	if (acc->reduce->kind == VIEW_REDUCE_FIRST && acc->rows)
		return STATUS_OK;
	TRY(acc_keep(acc, &text));
	acc->pick = text;
	return STATUS_OK;
}

/* ---- _top_N and _bottom_N ---- */

/* Different values, the best ones first. */
static enum status
top_take(struct reduce_acc *acc, struct str text)
{
	struct arena_mark mark = arena_mark(acc->w->arena);
	int sign = acc->reduce->kind == VIEW_REDUCE_TOP ? -1 : 1;
	struct reduce_top new = { 0 };
	size_t lo = 0, hi = acc->top_count;

	if (!acc->top) {
		acc->top = arena_alloc(acc->w->arena, (acc->reduce->n + 1) * sizeof(*acc->top));
		if (!acc->top)
			return STATUS_LIMIT;
		mark = arena_mark(acc->w->arena);
	}
	TRY(acc_keep(acc, &text));
	new.text = text;
	TRY(leaf_parse(text, acc->w->arena, &new.leaf, NULL));
	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;
		int order;

		TRY(collate_compare(&new.leaf, &acc->top[middle].leaf, acc->w, &order));
		if (order == 0) {
			arena_reset(acc->w->arena, mark);
			return STATUS_OK;
		}
		if (order * sign < 0)
			hi = middle;
		else
			lo = middle + 1;
	}
	if (lo == acc->reduce->n) {
		arena_reset(acc->w->arena, mark);
		return STATUS_OK;
	}
	memmove(acc->top + lo + 1, acc->top + lo, (acc->top_count - lo) * sizeof(*acc->top));
	acc->top[lo] = new;
	if (acc->top_count < acc->reduce->n)
		acc->top_count++;
	return STATUS_OK;
}

static enum status
top_merge(struct reduce_acc *acc, struct str text)
{
	AUTO(json_reader_release) struct json_reader r;
	enum json_token token;
	struct str item;

	json_reader_init(&r, text, NULL);
	TRY(json_next(&r, &token));
	for (;;) {
		TRY(json_next(&r, &token));
		if (token == JSON_ARRAY_END)
			return STATUS_OK;
		TRY(json_skip(&r, token, &item));
		TRY(top_take(acc, item));
	}
}

/* ---- Functions ---- */

static struct reduce_segment *
segment_add(struct reduce_acc *acc, bool is_partial)
{
	struct reduce_segment *segment;

	acc->segments = arena_grow(acc->w->arena, acc->segments, acc->segment_count,
				   &acc->segment_cap, sizeof(*acc->segments));
	if (!acc->segments)
		return NULL;
	segment = &acc->segments[acc->segment_count++];
	*segment = (struct reduce_segment){ .is_partial = is_partial };
	buf_init(&segment->keys, REDUCE_BUF_BYTES);
	buf_init(&segment->values, REDUCE_BUF_BYTES);
	return segment;
}

static enum status
function_row(struct reduce_acc *acc, struct str key, struct str id, struct str value)
{
	struct reduce_segment *s = acc->segment_count ? &acc->segments[acc->segment_count - 1]
						      : NULL;

	if (!s || s->is_partial || s->rows >= REDUCE_RUN_ROWS ||
	    s->keys.len + s->values.len > REDUCE_RUN_BYTES)
		s = segment_add(acc, false);
	if (!s)
		return STATUS_LIMIT;
	buf_append_byte(&s->keys, s->rows ? ',' : '[');
	buf_append_byte(&s->keys, '[');
	buf_append_str(&s->keys, key);
	buf_append_byte(&s->keys, ',');
	json_write_str(&s->keys, id);
	buf_append_byte(&s->keys, ']');
	buf_append_byte(&s->values, s->rows ? ',' : '[');
	buf_append_str(&s->values, value);
	s->rows++;
	TRY(buf_status(&s->keys));
	return buf_status(&s->values);
}

static enum status
function_partial(struct reduce_acc *acc, struct str partial)
{
	struct reduce_segment *s = segment_add(acc, true);

	if (!s)
		return STATUS_LIMIT;
	return arena_copy(acc->w->arena, partial, &s->partial);
}

/* ---- All reduces ---- */

enum status
reduce_acc_row(struct reduce_acc *acc, struct str key, struct str id, struct str value)
{
	enum status status = STATUS_OK;

	TRY(index_count_bytes(acc->w, value.len));
	switch (acc->reduce->kind) {
	case VIEW_REDUCE_FUNCTION:
		status = function_row(acc, key, id, value);
		break;
	case VIEW_REDUCE_SUM:
		status = sum_take(acc, value);
		break;
	case VIEW_REDUCE_COUNT:
		break;
	case VIEW_REDUCE_STATS:
		status = stats_take(acc, value);
		break;
	case VIEW_REDUCE_DISTINCT:
		status = distinct_row(acc, key);
		break;
	case VIEW_REDUCE_FIRST:
	case VIEW_REDUCE_LAST:
		status = pick_take(acc, value);
		break;
	case VIEW_REDUCE_TOP:
	case VIEW_REDUCE_BOTTOM:
		status = top_take(acc, value);
		break;
	}
	acc->rows++;
	return status;
}

static enum status
acc_merge(struct reduce_acc *acc, struct str partial)
{
	struct str text = str_skip(partial, 1);
	struct sum_number count;

	switch (acc->reduce->kind) {
	case VIEW_REDUCE_FUNCTION:
		return function_partial(acc, partial);
	case VIEW_REDUCE_SUM:
		return sum_take(acc, text);
	case VIEW_REDUCE_COUNT:
		count = sum_number_read(text, true);
		acc->rows += (uint64_t)count.i - 1;
		return STATUS_OK;
	case VIEW_REDUCE_STATS:
		return stats_take(acc, text);
	case VIEW_REDUCE_DISTINCT:
		return distinct_merge(acc, text);
	case VIEW_REDUCE_FIRST:
	case VIEW_REDUCE_LAST:
		return pick_take(acc, text);
	case VIEW_REDUCE_TOP:
	case VIEW_REDUCE_BOTTOM:
		return top_merge(acc, text);
	}
	return STATUS_CORRUPT;
}

enum status
reduce_acc_partial(struct reduce_acc *acc, struct str partial)
{
	enum status status = STATUS_OK;

	TRY(index_count_bytes(acc->w, partial.len));
	if (partial.len == 0)
		return STATUS_OK; /* of no rows */
	if (partial.ptr[0] == 'e') {
		if (!acc->failed.ptr)
			TRY(arena_copy(acc->w->arena, partial, &acc->failed));
	} else {
		status = acc_merge(acc, partial);
	}
	acc->rows++;
	return status;
}

static enum status
acc_write(struct reduce_acc *acc, struct buf *out)
{
	buf_append_byte(out, 'r');
	switch (acc->reduce->kind) {
	case VIEW_REDUCE_FUNCTION:
		if (acc->segment_count != 1 || !acc->segments[0].is_partial)
			return STATUS_INVALID; /* reduce_run() was not called */
		buf_set(out, acc->segments[0].partial);
		break;
	case VIEW_REDUCE_SUM:
		if (acc->sum_error.ptr)
			buf_append_str(out, acc->sum_error);
		else
			sum_value_write(&acc->sum, out);
		break;
	case VIEW_REDUCE_COUNT:
		buf_append_u64(out, acc->rows);
		break;
	case VIEW_REDUCE_STATS:
		stats_write(&acc->stats, out);
		break;
	case VIEW_REDUCE_DISTINCT:
		distinct_write(acc, out);
		break;
	case VIEW_REDUCE_FIRST:
	case VIEW_REDUCE_LAST:
		buf_append_str(out, acc->pick);
		break;
	case VIEW_REDUCE_TOP:
	case VIEW_REDUCE_BOTTOM:
		buf_append_byte(out, '[');
		for (size_t i = 0; i < acc->top_count; i++) {
			if (i)
				buf_append_byte(out, ',');
			buf_append_str(out, acc->top[i].text);
		}
		buf_append_byte(out, ']');
		break;
	}
	return buf_status(out);
}

enum status
reduce_acc_result(struct reduce_acc *acc, struct str *ret_partial)
{
	AUTO(buf_release) struct buf text = BUF_INIT(REDUCE_BUF_BYTES);

	*ret_partial = (struct str){ "", 0 };
	if (acc->rows == 0)
		return STATUS_OK;
	if (!acc->failed.ptr)
		TRY(acc_write(acc, &text));
	if (!acc->failed.ptr && text.len > VIEW_PARTIAL_BYTES)
		TRY(acc_fail(acc, STR("reduce_overflow_error"),
			     STR("\"Reduce output must shrink more rapidly: a result has more than "
				 "16384 bytes.\"")));
	*ret_partial = acc->failed.ptr ? acc->failed : buf_dup(&text, acc->w->arena);
	return ret_partial->ptr ? STATUS_OK : STATUS_LIMIT;
}

enum status
reduce_finalize(const struct view_reduce *reduce, struct str partial, struct arena *arena,
		struct str *ret_value, struct view_error *ret_error)
{
	struct index_work w = { .arena = arena };
	struct reduce_acc acc;
	const char *nul;

	*ret_error = (struct view_error){ 0 };
	*ret_value = STR("null");
	if (partial.len == 0)
		return STATUS_OK;
	if (partial.ptr[0] == 'e') {
		nul = memchr(partial.ptr, '\0', partial.len);
		if (!nul)
			return STATUS_CORRUPT;
		ret_error->name = str_of(partial.ptr + 1, (size_t)(nul - partial.ptr) - 1);
		ret_error->reason = str_skip(partial, (size_t)(nul - partial.ptr) + 1);
		return STATUS_OK;
	}
	*ret_value = str_skip(partial, 1);
	if (reduce->kind != VIEW_REDUCE_DISTINCT)
		return STATUS_OK;
	reduce_acc_init(&acc, reduce, &w);
	TRY(distinct_merge(&acc, *ret_value));
	*ret_value = arena_printf(arena, "%llu", (unsigned long long)distinct_estimate(&acc));
	return ret_value->ptr ? STATUS_OK : STATUS_LIMIT;
}
