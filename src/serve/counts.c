#include "serve/counts.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

enum {
	STRIPE_FIRST = 8, /* slots */
};

void
counts_init(struct counts *c, size_t figures, size_t most)
{
	assert(figures && figures <= COUNTS_FIGURES);
	assert(most >= COUNTS_STRIPES * STRIPE_FIRST && (most & (most - 1)) == 0);
	*c = (struct counts){ .figures = figures, .most = 2 * most / COUNTS_STRIPES };
	for (size_t i = 0; i < COUNTS_STRIPES; i++)
		pthread_mutex_init(&c->stripes[i].lock, NULL);
}

void
counts_fini(struct counts *c)
{
	for (size_t i = 0; i < COUNTS_STRIPES; i++) {
		struct counts_stripe *s = &c->stripes[i];

		for (size_t k = 0; k < s->size; k++)
			mem_free(s->rows[k]);
		mem_free(s->rows);
		pthread_mutex_destroy(&s->lock);
	}
}

/* ---- With the stripe's lock ---- */

static bool
row_is_used(const struct counts *c, const struct counts_row *row)
{
	for (size_t i = 0; row && i < c->figures; i++)
		if (row->figures[i])
			return true;
	return false;
}

/* The slot of a key, or the empty one where it belongs. NULL: there are no slots. */
static struct counts_row **
stripe_find(const struct counts_stripe *s, uint64_t hash, struct str key)
{
	for (size_t at = hash / COUNTS_STRIPES; s->size; at++) {
		struct counts_row **row = &s->rows[at & (s->size - 1)];

		if (!*row || str_eq((*row)->key, key))
			return row;
	}
	return NULL;
}

/* The number of slots that the stripe's rows need with one more, without those forgotten. */
static size_t
stripe_wants(const struct counts *c, const struct counts_stripe *s)
{
	size_t used = 0;

	for (size_t i = 0; i < s->size; i++)
		used += row_is_used(c, s->rows[i]);
	if (!s->size)
		return STRIPE_FIRST;
	return used > s->size / 4 ? 2 * s->size : s->size;
}

/* Makes room for one more. False: there is none. */
static bool
stripe_grow(const struct counts *c, struct counts_stripe *s)
{
	struct counts_stripe larger = { .size = 0 };

	if (s->count < s->size / 2)
		return true;
	larger.size = stripe_wants(c, s);
	if (larger.size <= c->most)
		larger.rows = mem_zalloc(larger.size * sizeof(struct counts_row *));
	if (!larger.rows)
		return false;
	for (size_t i = 0; i < s->size; i++) {
		struct counts_row *row = s->rows[i];

		if (row_is_used(c, row)) {
			*stripe_find(&larger, hash_keyed(0, row->key), row->key) = row;
			larger.count++;
		} else {
			mem_free(row);
		}
	}
	mem_free(s->rows);
	s->rows = larger.rows;
	s->size = larger.size;
	s->count = larger.count;
	return true;
}

static struct counts_row *
stripe_add(const struct counts *c, struct counts_stripe *s, uint64_t hash, struct str key)
{
	struct counts_row **slot = stripe_find(s, hash, key);
	size_t head = sizeof(struct counts_row) + c->figures * sizeof(uint64_t);
	struct counts_row *row;

	if (slot && *slot)
		return *slot;
	row = stripe_grow(c, s) ? mem_zalloc(head + key.len) : NULL;
	if (!row)
		return NULL;
	memcpy((char *)row + head, key.ptr, key.len);
	row->key = str_of((char *)row + head, key.len);
	*stripe_find(s, hash, key) = row;
	s->count++;
	return row;
}

/* ---- For all ---- */

void
counts_add(struct counts *c, struct str key, size_t at, const uint64_t *by, size_t count)
{
	uint64_t hash = hash_keyed(0, key);
	struct counts_stripe *s = &c->stripes[hash % COUNTS_STRIPES];
	struct counts_row *row;

	assert(key.len && at + count <= c->figures);
	pthread_mutex_lock(&s->lock);
	row = stripe_add(c, s, hash, key);
	for (size_t i = 0; row && i < count; i++)
		row->figures[at + i] += by[i];
	pthread_mutex_unlock(&s->lock);
}

bool
counts_read(struct counts *c, struct str key, uint64_t *ret)
{
	uint64_t hash = hash_keyed(0, key);
	struct counts_stripe *s = &c->stripes[hash % COUNTS_STRIPES];
	struct counts_row **slot;
	bool known;

	memset(ret, 0, c->figures * sizeof(*ret));
	pthread_mutex_lock(&s->lock);
	slot = stripe_find(s, hash, key);
	known = slot && *slot;
	if (known)
		memcpy(ret, (*slot)->figures, c->figures * sizeof(*ret));
	else
		known = stripe_grow(c, s);
	pthread_mutex_unlock(&s->lock);
	return known;
}

void
counts_each(struct counts *c, void (*see)(void *arg, struct str key, const uint64_t *figures),
	    void *arg)
{
	for (size_t i = 0; i < COUNTS_STRIPES; i++) {
		struct counts_stripe *s = &c->stripes[i];

		pthread_mutex_lock(&s->lock);
		for (size_t k = 0; k < s->size; k++)
			if (row_is_used(c, s->rows[k]))
				see(arg, s->rows[k]->key, s->rows[k]->figures);
		pthread_mutex_unlock(&s->lock);
	}
}

void
counts_forget(struct counts *c, struct str key, bool begins)
{
	for (size_t i = 0; i < COUNTS_STRIPES; i++) {
		struct counts_stripe *s = &c->stripes[i];

		pthread_mutex_lock(&s->lock);
		for (size_t k = 0; k < s->size; k++) {
			struct counts_row *row = s->rows[k];

			if (row &&
			    (begins ? str_starts_with(row->key, key) : str_eq(row->key, key)))
				memset(row->figures, 0, c->figures * sizeof(uint64_t));
		}
		pthread_mutex_unlock(&s->lock);
	}
}
