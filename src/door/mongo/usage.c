#include "door/mongo/usage.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

enum {
	STRIPE_FIRST = 8, /* slots */
	STRIPE_MOST = 2 * USAGE_COLLECTIONS / USAGE_STRIPES,
};

void
usages_init(struct usages *u)
{
	for (size_t i = 0; i < USAGE_STRIPES; i++)
		pthread_mutex_init(&u->stripes[i].lock, NULL);
}

static void
stripe_clear(struct usage_stripe *s)
{
	for (size_t i = 0; i < s->size; i++)
		mem_free(s->rows[i].name);
	mem_free(s->rows);
}

void
usages_fini(struct usages *u)
{
	for (size_t i = 0; i < USAGE_STRIPES; i++) {
		stripe_clear(&u->stripes[i]);
		pthread_mutex_destroy(&u->stripes[i].lock);
	}
}

/* ---- Collections ---- */

/* The slot of a name, or the empty one where it belongs. NULL: there are no slots. */
static struct usage_row *
stripe_find(const struct usage_stripe *s, uint64_t hash, struct str name)
{
	for (size_t at = hash / USAGE_STRIPES; s->size; at++) {
		struct usage_row *row = &s->rows[at & (s->size - 1)];

		if (!row->name || str_eq(str_of(row->name, row->name_len), name))
			return row;
	}
	return NULL;
}

/* False for an empty slot, and for a collection that has been dropped since it was counted. */
static bool
row_is_used(const struct usage_row *row)
{
	for (size_t kind = 0; row->name && kind < USAGE_KINDS; kind++)
		if (row->of[kind].count)
			return true;
	return false;
}

static size_t
stripe_count_used(const struct usage_stripe *s)
{
	size_t used = 0;

	for (size_t i = 0; i < s->size; i++)
		used += row_is_used(&s->rows[i]);
	return used;
}

/* Makes room for one more, without those that were dropped. False: there is none. */
static bool
stripe_grow(struct usage_stripe *s)
{
	struct usage_stripe larger = { .size = s->size ? s->size : STRIPE_FIRST };

	if (s->count < s->size / 2)
		return true;
	if (stripe_count_used(s) > larger.size / 4)
		larger.size *= 2;
	larger.rows = larger.size <= STRIPE_MOST ? mem_zalloc(larger.size * sizeof(*larger.rows))
						 : NULL;
	if (!larger.rows)
		return false;
	for (size_t i = 0; i < s->size; i++) {
		struct usage_row *row = &s->rows[i];
		struct str name = str_of(row->name, row->name_len);

		if (!row_is_used(row)) {
			mem_free(row->name);
			continue;
		}
		*stripe_find(&larger, hash_keyed(0, name), name) = *row;
		larger.count++;
	}
	mem_free(s->rows);
	s->rows = larger.rows;
	s->size = larger.size;
	s->count = larger.count;
	return true;
}

static struct usage_row *
stripe_add(struct usage_stripe *s, uint64_t hash, struct str name)
{
	struct usage_row *row = stripe_find(s, hash, name);
	char *copy;

	if (row && row->name)
		return row;
	copy = stripe_grow(s) ? mem_alloc(name.len) : NULL;
	if (!copy)
		return NULL;
	memcpy(copy, name.ptr, name.len);
	row = stripe_find(s, hash, name);
	row->name = copy;
	row->name_len = name.len;
	s->count++;
	return row;
}

void
usage_add(struct usages *u, struct str name, enum usage_kind kind, uint64_t us)
{
	uint64_t hash = hash_keyed(0, name);
	struct usage_stripe *s = &u->stripes[hash % USAGE_STRIPES];
	struct usage_row *row;

	pthread_mutex_lock(&s->lock);
	row = stripe_add(s, hash, name);
	if (row) {
		row->of[kind].count++;
		row->of[kind].us += us;
	}
	pthread_mutex_unlock(&s->lock);
}

void
usage_read(struct usages *u, struct str name, struct usage_row *ret)
{
	uint64_t hash = hash_keyed(0, name);
	struct usage_stripe *s = &u->stripes[hash % USAGE_STRIPES];
	const struct usage_row *row;

	*ret = (struct usage_row){ .name = NULL };
	pthread_mutex_lock(&s->lock);
	row = stripe_find(s, hash, name);
	if (row)
		memcpy(ret->of, row->of, sizeof(ret->of));
	pthread_mutex_unlock(&s->lock);
}

struct usage_figure
usage_sum(const struct usage_row *row, unsigned kinds)
{
	struct usage_figure all = { 0 };

	for (size_t i = 0; i < USAGE_KINDS; i++) {
		if (!(kinds & 1u << i))
			continue;
		all.count += row->of[i].count;
		all.us += row->of[i].us;
	}
	return all;
}

void
usage_each(struct usages *u, usage_take *take, void *arg)
{
	for (size_t i = 0; i < USAGE_STRIPES; i++) {
		struct usage_stripe *s = &u->stripes[i];

		pthread_mutex_lock(&s->lock);
		for (size_t k = 0; k < s->size; k++)
			if (row_is_used(&s->rows[k]))
				take(arg, &s->rows[k]);
		pthread_mutex_unlock(&s->lock);
	}
}

/* Those of that name, or of names that begin so. */
struct forgetting {
	struct str name;
	bool begins;
};

static void
forget_row(void *arg, struct usage_row *row)
{
	const struct forgetting *f = arg;
	struct str name = str_of(row->name, row->name_len);

	if (f->begins ? str_starts_with(name, f->name) : str_eq(name, f->name))
		memset(row->of, 0, sizeof(row->of));
}

void
usage_forget(struct usages *u, struct str name, bool begins)
{
	usage_each(u, forget_row, &(struct forgetting){ name, begins });
}
