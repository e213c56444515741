#include "index/plan/merge.h"

#include <assert.h>

#include "catalog/keys.h"

struct key_merged {
	struct key_merge_range of;
	struct index_scan scan;
	struct index_entry head; /* the next entry of the range */
	struct str order;        /* of its key, what is behind the columns */
	struct buf id;           /* of the entry */
	bool scans;
	bool has_head;
};

/* The first columns of a key. */
static enum status
merged_columns(const struct key_merge_range *r, struct str key, struct str *ret)
{
	struct tuple_reader reader = tuple_reader(key);

	*ret = str_of(key.ptr, 0);
	return r->columns ? tuple_skip_strings(&reader, r->columns, ret) : STATUS_OK;
}

/*
 * The key behind which a range goes on: the range's own columns, and behind them what the place has
 * there.
 */
static enum status
merged_after(const struct key_merge_terms *t, const struct key_merge_range *r, struct buf *ret)
{
	AUTO(buf_release) struct buf prefix = CATALOG_KEY_INIT;
	struct str own, columns = STR("");

	index_key_entries(&prefix, t->db, r->def->number);
	TRY(catalog_key_status(&prefix));
	TRY(merged_columns(r, str_skip(r->range->begin, prefix.len), &own));
	if (!t->several)
		TRY(merged_columns(r, t->options.after, &columns));
	assert(r->range->begin.len >= prefix.len && t->options.after.len >= columns.len);
	buf_append_str(ret, own);
	buf_append_str(ret, str_skip(t->options.after, columns.len));
	return buf_status(ret);
}

static enum status
merged_open(struct key_merged *m, const struct key_merge_terms *t)
{
	AUTO(buf_release) struct buf after = BUF_INIT(2 * KV_LIMIT_KEY_BYTES);
	struct index_scan_options options = t->options;

	assert(t->count && !m->scans);
	options.limit_bytes /= t->count;
	if (options.after.ptr) {
		TRY(merged_after(t, &m->of, &after));
		options.after = buf_str(&after);
	}
	TRY(index_scan_init(&m->scan, t->tx, t->db, m->of.def, m->of.range, &options));
	m->scans = true;
	return STATUS_OK;
}

enum status
key_merge_init(struct key_merge *m, const struct key_merge_terms *terms, struct arena *arena)
{
	*m = (struct key_merge){ .several = terms->several, .reverse = terms->options.reverse };
	m->items = arena_zalloc(arena, (terms->count + 1) * sizeof(*m->items));
	if (!m->items)
		return STATUS_LIMIT;
	for (; m->count < terms->count; m->count++) {
		struct key_merged *item = &m->items[m->count];

		*item = (struct key_merged){ .of = terms->ranges[m->count],
					     .id = BUF_INIT(KV_LIMIT_KEY_BYTES) };
		TRY(merged_open(item, terms));
	}
	return STATUS_OK;
}

/* Reads the next entry of a range. At its end the scan is closed. */
static enum status
merged_read(struct key_merged *m, struct index_work *work)
{
	enum status status;
	struct str columns;

	assert(m->scans && !m->has_head);
	m->head = (struct index_entry){ 0 };
	status = index_scan_next(&m->scan, work, &m->head);
	if (status == STATUS_NOT_FOUND) {
		index_scan_release(&m->scan);
		m->scans = false;
		return STATUS_OK;
	}
	TRY(status);
	/* It may lie in the arena, which is cleared before the entry's turn comes. */
	buf_set(&m->id, m->head.id);
	TRY(buf_status(&m->id));
	m->head.id = buf_str(&m->id);
	TRY(merged_columns(&m->of, m->head.key, &columns));
	m->order = str_skip(m->head.key, columns.len);
	m->has_head = true;
	return STATUS_OK;
}

enum status
key_merge_next(struct key_merge *m, struct index_work *work, struct index_entry *ret)
{
	struct key_merged *best = NULL;

	for (size_t i = 0; i < m->count; i++) {
		struct key_merged *item = &m->items[i];
		int order;

		if (item->scans && !item->has_head)
			TRY(merged_read(item, work));
		if (!item->scans)
			continue;
		order = best ? str_cmp(item->order, best->order) : 0;
		if (!best || (m->reverse ? order > 0 : order < 0))
			best = item;
	}
	if (!best)
		return STATUS_NOT_FOUND;
	assert(best->scans && best->has_head);
	*ret = best->head;
	if (m->several)
		ret->key = best->order;
	for (size_t i = 0; i < m->count; i++)
		if (m->items[i].has_head && str_eq(m->items[i].order, best->order))
			m->items[i].has_head = false;
	/* Or it would be given again. */
	assert(!best->has_head);
	return STATUS_OK;
}

void
key_merge_release(struct key_merge *m)
{
	for (size_t i = 0; i < m->count; i++) {
		if (m->items[i].scans)
			index_scan_release(&m->items[i].scan);
		buf_release(&m->items[i].id);
	}
	*m = (struct key_merge){ 0 };
}
