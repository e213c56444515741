#include "index/plan/walk.h"

#include <assert.h>

#include "catalog/keys.h"

/* The range that is the `at`th one in the direction of the walk. */
static const struct index_range *
walk_range(const struct key_walk *w, size_t at)
{
	const struct key_walk_terms *t = &w->terms;

	assert(at < t->count);
	return &t->ranges[t->options.reverse ? t->count - 1 - at : at];
}

/* Passes the ranges that lie wholly in front of the place to go on from. */
static enum status
walk_pass(struct key_walk *w)
{
	AUTO(buf_release) struct buf place = CATALOG_KEY_INIT;
	const struct key_walk_terms *t = &w->terms;
	size_t end = t->count;

	index_key_entries(&place, t->db, t->def->number);
	buf_append_str(&place, t->options.after);
	TRY(catalog_key_status(&place));
	while (w->next < end) {
		size_t middle = w->next + (end - w->next) / 2;
		const struct index_range *range = walk_range(w, middle);

		if (t->options.reverse ? str_cmp(buf_str(&place), range->begin) <= 0
				       : str_cmp(buf_str(&place), range->end) >= 0)
			w->next = middle + 1;
		else
			end = middle;
	}
	return STATUS_OK;
}

/* Opens the next ranges, if there are any. Only the first of them can begin at the place. */
static enum status
walk_open(struct key_walk *w)
{
	struct key_walk_terms *t = &w->terms;

	assert(w->at == w->end);
	w->at = w->end = 0;
	while (w->end < t->together && w->next < t->count) {
		TRY(index_scan_init(&t->scans[w->end], t->tx, t->db, t->def, walk_range(w, w->next),
				    &t->options));
		t->options.after = (struct str){ 0 };
		w->end++;
		w->next++;
	}
	return STATUS_OK;
}

enum status
key_walk_init(struct key_walk *w, const struct key_walk_terms *terms)
{
	assert(terms->together);
	*w = (struct key_walk){ .terms = *terms, .limited = terms->options.limit };
	if (terms->options.after.ptr)
		TRY(walk_pass(w));
	return walk_open(w);
}

enum status
key_walk_next(struct key_walk *w, struct index_work *work, struct index_entry *ret)
{
	if (w->limited && !w->terms.options.limit)
		return STATUS_NOT_FOUND;
	assert(w->end <= w->terms.together && w->next <= w->terms.count);
	while (w->at < w->end) {
		enum status status = index_scan_next(&w->terms.scans[w->at], work, ret);

		if (status == STATUS_OK)
			w->terms.options.limit -= w->limited;
		if (status != STATUS_NOT_FOUND)
			return status;
		index_scan_release(&w->terms.scans[w->at++]);
		if (w->at == w->end)
			TRY(walk_open(w));
	}
	return STATUS_NOT_FOUND;
}

enum status
key_walk_jump(struct key_walk *w, struct str after)
{
	assert(w->at < w->end);
	/* The ranges that are open are the last ones that were begun. */
	assert(w->next >= w->end - w->at);
	w->next -= w->end - w->at;
	key_walk_release(w);
	w->terms.options.after = after;
	return walk_open(w);
}

void
key_walk_release(struct key_walk *w)
{
	while (w->at < w->end)
		index_scan_release(&w->terms.scans[w->at++]);
}
