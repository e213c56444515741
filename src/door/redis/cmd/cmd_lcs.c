/* LCS: the longest common subsequence of two strings. */
#include <assert.h>

#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/data.h"
#include "loop/step.h"

enum {
	LCS_CELLS = 32 * 1024 * 1024, /* of the table: the product of both lengths */
};

struct lcs {
	struct str a, b;
	uint32_t *cells; /* (a.len + 1) rows of b.len + 1 */
	bool want_idx, want_len, want_matches;
	int64_t least;
	char *text; /* the subsequence */
	size_t ranges;
};

static uint32_t *
lcs_cell(const struct lcs *l, size_t i, size_t j)
{
	return &l->cells[i * (l->b.len + 1) + j];
}

static enum status
lcs_fill(struct lcs *l)
{
	for (size_t i = 1; i <= l->a.len; i++) {
		TRY(step_count((uint32_t)(l->b.len / 16 + 1)));
		for (size_t j = 1; j <= l->b.len; j++) {
			uint32_t up = *lcs_cell(l, i - 1, j);
			uint32_t left = *lcs_cell(l, i, j - 1);

			if (l->a.ptr[i - 1] == l->b.ptr[j - 1])
				*lcs_cell(l, i, j) = *lcs_cell(l, i - 1, j - 1) + 1;
			else
				*lcs_cell(l, i, j) = up > left ? up : left;
		}
	}
	return STATUS_OK;
}

/* A stretch that both have, which begins at these places. */
static void
lcs_answer_range(struct lcs *l, struct reply *r, size_t a, size_t b, size_t len)
{
	if (!l->want_idx || !len || (int64_t)len < l->least)
		return;
	reply_array(r, l->want_matches ? 3 : 2);
	reply_array(r, 2);
	reply_int(r, (int64_t)a);
	reply_int(r, (int64_t)(a + len - 1));
	reply_array(r, 2);
	reply_int(r, (int64_t)b);
	reply_int(r, (int64_t)(b + len - 1));
	if (l->want_matches)
		reply_int(r, (int64_t)len);
	l->ranges++;
}

/* Goes back through the table from its end. */
static void
lcs_walk(struct lcs *l, struct reply *r)
{
	size_t i = l->a.len, j = l->b.len;
	size_t at = *lcs_cell(l, i, j);
	size_t run = 0;

	while (i && j) {
		if (l->a.ptr[i - 1] == l->b.ptr[j - 1]) {
			l->text[--at] = l->a.ptr[i - 1];
			run++;
			i--;
			j--;
			continue;
		}
		lcs_answer_range(l, r, i, j, run);
		run = 0;
		if (*lcs_cell(l, i - 1, j) > *lcs_cell(l, i, j - 1))
			i--;
		else
			j--;
	}
	lcs_answer_range(l, r, i, j, run);
	assert(at == 0); /* as many characters were found as the table has counted */
}

static enum status
lcs_answer(struct call *c, struct lcs *l)
{
	size_t cells = (l->a.len + 1) * (l->b.len + 1);
	struct reply *r = c->reply;
	size_t place = 0;
	uint32_t length;

	l->cells = cells <= LCS_CELLS ? arena_zalloc(c->arena, cells * sizeof(*l->cells)) : NULL;
	if (!l->cells)
		return call_errorf(
			c,
			"ERR Insufficient memory, the lengths of both strings multiplied "
			"may be %d (LCS_CELLS)",
			LCS_CELLS);
	TRY(lcs_fill(l));
	length = *lcs_cell(l, l->a.len, l->b.len);
	l->text = arena_bytes(c->arena, length + 1);
	if (!l->text)
		return STATUS_LIMIT;
	if (l->want_idx) {
		reply_map(r, 2);
		reply_bulk_cstr(r, "matches");
		place = reply_later(r);
	}
	lcs_walk(l, r);
	if (l->want_idx) {
		reply_later_end(r, place, '*', l->ranges);
		reply_bulk_cstr(r, "len");
		reply_int(r, length);
	} else if (l->want_len) {
		reply_int(r, length);
	} else {
		reply_bulk(r, str_of(l->text, length));
	}
	return STATUS_OK;
}

enum status
cmd_lcs(struct call *c)
{
	struct timed_item *a, *b;
	struct lcs l = { 0 };

	TRY(txn_item(c, c->argv[1], &a));
	TRY(txn_item(c, c->argv[2], &b));
	if ((a->type != TIMED_LEAF && a->type != TIMED_VALUE) ||
	    (b->type != TIMED_LEAF && b->type != TIMED_VALUE))
		return call_error(c, STR("ERR The specified keys must contain string values"));
	for (size_t i = 3; i < c->argc; i++) {
		if (call_arg_is(c, i, "idx"))
			l.want_idx = true;
		else if (call_arg_is(c, i, "len"))
			l.want_len = true;
		else if (call_arg_is(c, i, "withmatchlen"))
			l.want_matches = true;
		else if (!call_arg_is(c, i, "minmatchlen") || i + 1 == c->argc)
			return call_syntax_error(c);
		else
			TRY(call_int(c, ++i, &l.least));
	}
	if (l.want_idx && l.want_len)
		return call_error(
			c,
			STR("ERR If you want both the length and indexes, please just use IDX."));
	TRY(data_value(a, &l.a));
	TRY(data_value(b, &l.b));
	return lcs_answer(c, &l);
}
