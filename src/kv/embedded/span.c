/*
 * == Invariant ==
 *
 * The spans of a set have no key in common, and none ends where the next one begins. So at most one
 * span holds a key, and it is the last one that begins at or before the key.
 */
#include "kv/embedded/span.h"

#include <assert.h>

static struct span *
span_of(struct tree_node *n)
{
	return (struct span *)n;
}

const struct span *
span_around(const struct tree *spans, struct str key)
{
	struct tree_node *n = tree_find(spans, key);

	if (!n)
		n = tree_before(spans, key);
	return n && str_cmp(key, span_of(n)->end) < 0 ? span_of(n) : NULL;
}

const struct span *
span_first_in(const struct tree *spans, struct str begin, struct str end)
{
	const struct span *around = span_around(spans, begin);
	struct tree_node *n;

	if (around)
		return around;
	n = tree_at_or_after(spans, begin);
	return n && str_cmp(n->key, end) < 0 ? span_of(n) : NULL;
}

const struct span *
span_last_in(const struct tree *spans, struct str begin, struct str end)
{
	struct tree_node *n = tree_before(spans, end);

	return n && str_cmp(begin, span_of(n)->end) < 0 ? span_of(n) : NULL;
}

enum status
span_add(struct tree *spans, struct arena *a, struct str begin, struct str end)
{
	struct span *added = arena_alloc(a, sizeof(*added));
	struct tree_node *n;

	if (!added)
		return STATUS_NOMEM;
	assert(str_cmp(begin, end) < 0);
	/* Grows over every span that it meets or touches, and takes their place. */
	n = tree_before(spans, begin);
	if (n && str_cmp(span_of(n)->end, begin) >= 0)
		begin = n->key;
	while ((n = tree_at_or_after(spans, begin)) && str_cmp(n->key, end) <= 0) {
		if (str_cmp(span_of(n)->end, end) > 0)
			end = span_of(n)->end;
		tree_remove(spans, n);
	}
	added->node.key = begin;
	added->end = end;
	assert(!tree_find(spans, begin)); /* it would have been joined */
	tree_insert(spans, &added->node);
	return STATUS_OK;
}

enum status
span_subtract(struct tree *spans, struct arena *a, struct str begin, struct str end)
{
	struct span *rest = arena_alloc(a, sizeof(*rest));
	struct str rest_end = end;
	struct tree_node *n;

	assert(str_cmp(begin, end) < 0);
	if (!rest)
		return STATUS_NOMEM;
	/* What lies behind `end` of the last span that is cut: at most one piece is left over. */
	n = tree_before(spans, begin);
	if (n && str_cmp(span_of(n)->end, begin) > 0) {
		rest_end = span_of(n)->end;
		span_of(n)->end = begin;
	}
	while ((n = tree_at_or_after(spans, begin)) && str_cmp(n->key, end) < 0) {
		rest_end = span_of(n)->end;
		tree_remove(spans, n);
	}
	if (str_cmp(rest_end, end) > 0) {
		rest->node.key = end;
		rest->end = rest_end;
		tree_insert(spans, &rest->node);
	}
	return STATUS_OK;
}
