/*
 * Where to cut a range of keys of which nobody has counted how many there are.
 *
 * Keys between the first and the last one are looked for at places that divide the space between
 * these evenly, as if what follows their common beginning were numbers. What lies between two such
 * keys may be much or little (numbers that follow each other have most of their keys at the end),
 * so the store is asked for an estimate, and as many of these keys are taken as there are parts.
 */
#include <assert.h>

#include "catalog/keys.h"
#include "index/engine/build.h"

enum {
	CUT_PLACES = 32,       /* that are looked at */
	CUT_NUMBER_BYTES = 7,  /* of a key, that are taken for a number */
	CUT_BYTES = 64 * 1024, /* a part has no less: a small range is one part */
};

struct cut {
	struct kv_tx *tx;
	struct str begin, end; /* of the range */
	struct arena *arena;
	struct str first, last;      /* the keys at its ends; NULL: it has none */
	size_t common;               /* bytes that both begin with */
	struct str keys[CUT_PLACES]; /* that were found, ascending */
	uint64_t before[CUT_PLACES]; /* by key: bytes since the one before, about */
	struct kv_future *asked[CUT_PLACES];
	size_t count;
};

static enum status
cut_take(struct cut *c, struct kv_future *f, struct str *ret)
{
	struct kv_range range;

	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	*ret = (struct str){ NULL, 0 };
	return range.count ? arena_copy(c->arena, range.pairs[0].key, ret) : STATUS_OK;
}

static enum status
cut_find_ends(struct cut *c)
{
	const struct kv_range_options forward = { .limit = 1, .mode = KV_SNAPSHOT };
	const struct kv_range_options backward = { .limit = 1,
						   .reverse = true,
						   .mode = KV_SNAPSHOT };
	struct kv_future *first = kv_get_range(c->tx, c->begin, c->end, &forward);
	struct kv_future *last = kv_get_range(c->tx, c->begin, c->end, &backward);

	TRY(cut_take(c, first, &c->first));
	return cut_take(c, last, &c->last);
}

/* What follows the common beginning, as a number. */
static uint64_t
cut_number(const struct cut *c, struct str key)
{
	uint64_t n = 0;

	for (size_t i = 0; i < CUT_NUMBER_BYTES; i++)
		n = n << 8 | (c->common + i < key.len ? (uint8_t)key.ptr[c->common + i] : 0);
	return n;
}

/* Asks for the first key at each place, all of them together. */
static enum status
cut_ask(struct cut *c)
{
	const struct kv_range_options options = { .limit = 1, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf at = CATALOG_KEY_INIT;
	uint64_t low, step;

	while (c->common < c->first.len && c->common < c->last.len &&
	       c->first.ptr[c->common] == c->last.ptr[c->common])
		c->common++;
	low = cut_number(c, c->first);
	step = (cut_number(c, c->last) - low) / (CUT_PLACES + 1);
	for (size_t i = 0; i < CUT_PLACES; i++) {
		uint64_t n = low + step * (i + 1);

		buf_set(&at, str_of(c->first.ptr, c->common));
		for (size_t byte = CUT_NUMBER_BYTES; byte > 0; byte--)
			buf_append_byte(&at, (uint8_t)(n >> 8 * (byte - 1)));
		TRY(catalog_key_status(&at));
		c->asked[i] = kv_get_range(c->tx, buf_str(&at), c->end, &options);
	}
	return STATUS_OK;
}

/* Takes the keys that were found, each once, and how much lies in front of each. */
static enum status
cut_find_keys(struct cut *c, uint64_t *ret_bytes)
{
	struct kv_store *store = kv_tx_store(c->tx);
	struct str last = c->first;
	uint64_t behind;

	*ret_bytes = 0;
	for (size_t i = 0; i < CUT_PLACES; i++) {
		struct str key;

		TRY(cut_take(c, c->asked[i], &key));
		if (!key.ptr || str_cmp(key, last) <= 0)
			continue;
		TRY(kv_estimate_bytes(store, last, key, &c->before[c->count]));
		*ret_bytes += c->before[c->count];
		c->keys[c->count++] = key;
		last = key;
	}
	TRY(kv_estimate_bytes(store, last, c->end, &behind));
	*ret_bytes += behind;
	return STATUS_OK;
}

enum status
index_cut_range(struct kv_tx *tx, struct str begin, struct str end, size_t parts,
		struct arena *arena, struct str *ret_keys, size_t *ret_count)
{
	struct cut c = { .tx = tx, .begin = begin, .end = end, .arena = arena };
	uint64_t bytes, seen = 0;

	assert(parts > 0);
	*ret_count = 0;
	TRY(cut_find_ends(&c));
	if (!c.first.ptr || !c.last.ptr || str_eq(c.first, c.last))
		return STATUS_OK;
	TRY(cut_ask(&c));
	TRY(cut_find_keys(&c, &bytes));
	if (parts > bytes / CUT_BYTES + 1)
		parts = (size_t)(bytes / CUT_BYTES + 1);
	for (size_t i = 0; i < c.count && *ret_count + 1 < parts; i++) {
		seen += c.before[i];
		if (seen >= bytes / parts * (*ret_count + 1))
			ret_keys[(*ret_count)++] = c.keys[i];
	}
	return STATUS_OK;
}
