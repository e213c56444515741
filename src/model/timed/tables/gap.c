/*
 * Rows that are new, found out for many of them at once (row.h).
 *
 * Whoever inserts rows in the order of their keys asks for the first pair behind a row. All rows
 * before that pair are new, so that one read tells of many rows. The reads are no reason for a
 * conflict; the ranges of the rows that were asked for are.
 */
#include "model/timed/tables/tables_int.h"

enum {
	GAP_MISSES = 4, /* reads one after another that told of one row only: there is no order */
};

void
table_gap_init(struct table_gap *g)
{
	*g = (struct table_gap){ .end = CATALOG_KEY_INIT,
				 .from = CATALOG_KEY_INIT,
				 .until = CATALOG_KEY_INIT };
}

void
table_gap_release(struct table_gap *g)
{
	buf_release(&g->end);
	buf_release(&g->from);
	buf_release(&g->until);
}

/* The keys of a row are those from `begin` to `end`. */
static enum status
row_range(struct timed *t, const struct table_key *key, struct buf *begin, struct buf *end)
{
	TRY(table_key_row(t, key, begin));
	buf_append_buf(end, begin);
	buf_append_byte(end, CATALOG_KEY_LAST);
	return catalog_key_status(end);
}

enum status
table_gap_begin(struct table_gap *g, struct timed *t, const struct table_key *last)
{
	AUTO(buf_release) struct buf row = CATALOG_KEY_INIT;

	buf_clear(&g->end);
	return row_range(t, last, &row, &g->end);
}

/* Reads from the row on. Afterwards there is no pair between it and g->until. */
static enum status
gap_read(struct table_gap *g, struct timed *t, struct str row)
{
	const struct kv_range_options first = { .limit = 1, .mode = KV_SNAPSHOT };
	struct kv_future *f = kv_get_range(t->tx, row, buf_str(&g->end), &first);
	enum status status = kv_future_wait(f);

	if (status == STATUS_OK) {
		const struct kv_range range = kv_future_range(f);

		buf_set(&g->until, range.count ? range.pairs[0].key : buf_str(&g->end));
		status = buf_status(&g->until);
	}
	kv_future_free(f);
	return status;
}

static bool
gap_has(const struct table_gap *g, struct str begin, struct str end)
{
	return g->from.len && str_cmp(begin, buf_str(&g->from)) >= 0 &&
	       str_cmp(end, buf_str(&g->until)) <= 0;
}

enum status
table_gap_look(struct table_gap *g, struct timed *t, const struct table_key *key, bool *ret_is_new)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	*ret_is_new = false;
	TRY(row_range(t, key, &begin, &end));
	if (gap_has(g, buf_str(&begin), buf_str(&end))) {
		g->misses = 0;
	} else {
		if (g->misses == GAP_MISSES || str_cmp(buf_str(&end), buf_str(&g->end)) > 0)
			return STATUS_OK;
		g->misses++;
		TRY(gap_read(g, t, buf_str(&begin)));
		if (str_cmp(buf_str(&end), buf_str(&g->until)) > 0) {
			buf_clear(&g->from);
			return STATUS_OK;
		}
	}
	/* What is asked for next is behind the row, which the caller is about to write. */
	buf_set_buf(&g->from, &end);
	TRY(buf_status(&g->from));
	*ret_is_new = true;
	return kv_add_read_conflict_range(t->tx, buf_str(&begin), buf_str(&end));
}
