/*
 * What views store, and design documents: any bytes are refused or read. Built-in reduces over any
 * values: what they come to is JSON, and the same whether it is put together of one part or two.
 */
#include <stdint.h>
#include <stdlib.h>

#include "index/view/keys.h"
#include "index/view/record.h"
#include "index/view/reduce.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	ARENA_BYTES = 16 * 1024 * 1024,
	REDUCES = 7,
};

static void
records_read(struct str text, struct arena *arena)
{
	struct view_design design;
	struct view_record record;
	struct view_row_value row;
	struct view_place place;
	struct view_back *backs;
	struct view_sum sum;
	struct err err = { 0 };
	size_t count, len;
	uint64_t rows;

	(void)!view_design_parse(text, false, arena, &design, &err);
	(void)!view_record_parse(text, arena, &record, &err);
	(void)!view_row_parse(text, &row, &err);
	(void)!view_sum_rows(text, &rows, &err);
	(void)!view_sum_parse(text, arena, &sum, &err);
	(void)!view_backs_parse(text, arena, &backs, &count);
	for (unsigned level = 0; level < 3; level++)
		if (view_place_parse(text, level == 1, arena, &place) == STATUS_OK &&
		    view_place_group(&place, text, level, &len) == STATUS_OK && len > text.len)
			abort();
}

/* The lines that are JSON become values; the first half of them may be a part by itself. */
static struct str
lines_reduce(const struct view_reduce *reduce, struct str text, bool parts, struct index_work *w)
{
	struct reduce_acc acc, part;
	struct str partial;
	size_t lines = 0;

	reduce_acc_init(&acc, reduce, w);
	reduce_acc_init(&part, reduce, w);
	while (text.len) {
		const char *end = memchr(text.ptr, '\n', text.len);
		struct str line = str_of(text.ptr, end ? (size_t)(end - text.ptr) : text.len);

		text = str_skip(text, line.len + (end != NULL));
		if (!view_text_is_json(line))
			continue;
		if (reduce_acc_row(&part, line, STR("id"), line) != STATUS_OK)
			return (struct str){ 0 };
		if (!parts || ++lines % 2)
			continue;
		if (reduce_acc_result(&part, &partial) != STATUS_OK ||
		    reduce_acc_partial(&acc, partial) != STATUS_OK)
			return (struct str){ 0 };
		reduce_acc_init(&part, reduce, w);
	}
	if (reduce_acc_result(&part, &partial) != STATUS_OK ||
	    reduce_acc_partial(&acc, partial) != STATUS_OK ||
	    reduce_acc_result(&acc, &partial) != STATUS_OK)
		return (struct str){ 0 };
	return partial;
}

static void
values_reduce(unsigned which, struct str text, struct arena *arena)
{
	static const struct view_reduce reduces[REDUCES] = {
		{ .kind = VIEW_REDUCE_SUM },         { .kind = VIEW_REDUCE_COUNT },
		{ .kind = VIEW_REDUCE_STATS },       { .kind = VIEW_REDUCE_DISTINCT },
		{ .kind = VIEW_REDUCE_FIRST },       { .kind = VIEW_REDUCE_LAST },
		{ .kind = VIEW_REDUCE_TOP, .n = 3 },
	};
	const struct view_reduce *reduce = &reduces[which % REDUCES];
	struct index_work w = { .arena = arena };
	struct str whole = lines_reduce(reduce, text, false, &w);
	struct str parts = lines_reduce(reduce, text, true, &w);
	struct view_error error;
	struct str value;

	if (!whole.ptr || !parts.ptr)
		return;
	if (reduce_finalize(reduce, whole, arena, &value, &error) != STATUS_OK ||
	    !view_text_is_json(value))
		abort();
	/* Sums of fractions depend on the order in which they are added. */
	if (reduce->kind != VIEW_REDUCE_SUM && reduce->kind != VIEW_REDUCE_STATS &&
	    !str_eq(whole, parts))
		abort();
	if (whole.len)
		records_read(whole, arena);
	/* A partial result that is stored may be any bytes, too. */
	if (reduce->kind == VIEW_REDUCE_DISTINCT) {
		struct reduce_acc acc;

		reduce_acc_init(&acc, reduce, &w);
		(void)!reduce_acc_partial(&acc, text);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *arena = arena_new(ARENA_BYTES);

	if (arena && size) {
		struct str text = str_of((const char *)data + 1, size - 1);

		if (data[0] % 2)
			records_read(text, arena);
		else
			values_reduce(data[0] / 2, text, arena);
	}
	arena_free(arena);
	return 0;
}
