#include "door/mongo/access.h"

#include "base/hash.h"
#include "base/mem.h"

enum {
	STRIPE_FIRST = 16, /* slots */
	STRIPE_MOST = 2 * ACCESS_INDEXES / ACCESS_STRIPES,
};

void
accesses_init(struct accesses *a)
{
	for (size_t i = 0; i < ACCESS_STRIPES; i++)
		pthread_mutex_init(&a->stripes[i].lock, NULL);
}

void
accesses_fini(struct accesses *a)
{
	for (size_t i = 0; i < ACCESS_STRIPES; i++) {
		mem_free(a->stripes[i].slots);
		pthread_mutex_destroy(&a->stripes[i].lock);
	}
}

static uint64_t
access_hash(uint64_t db, uint64_t index)
{
	return hash_keyed(db, str_of((const char *)&index, sizeof(index)));
}

/* The slot of an index, or the empty one where it belongs. NULL: there are no slots. */
static struct access *
stripe_find(const struct access_stripe *s, uint64_t db, uint64_t index)
{
	size_t at = access_hash(db, index) / ACCESS_STRIPES;

	for (; s->size; at++) {
		struct access *one = &s->slots[at & (s->size - 1)];

		if (!one->ops || (one->db == db && one->index == index))
			return one;
	}
	return NULL;
}

/* Makes room for one more. False: there is none. */
static bool
stripe_grow(struct access_stripe *s)
{
	struct access_stripe larger = { .size = s->size ? 2 * s->size : STRIPE_FIRST };

	if (s->size && s->count < s->size / 2)
		return true;
	if (s->size == STRIPE_MOST)
		return false;
	larger.slots = mem_zalloc(larger.size * sizeof(*larger.slots));
	if (!larger.slots)
		return false;
	for (size_t i = 0; i < s->size; i++)
		if (s->slots[i].ops)
			*stripe_find(&larger, s->slots[i].db, s->slots[i].index) = s->slots[i];
	mem_free(s->slots);
	s->slots = larger.slots;
	s->size = larger.size;
	return true;
}

static struct access_stripe *
stripe_of(struct accesses *a, uint64_t db, uint64_t index)
{
	return &a->stripes[access_hash(db, index) % ACCESS_STRIPES];
}

void
access_count(struct accesses *a, uint64_t db, uint64_t index, uint64_t ops)
{
	struct access_stripe *s = stripe_of(a, db, index);
	struct access *one;

	pthread_mutex_lock(&s->lock);
	one = stripe_find(s, db, index);
	if (one && one->ops) {
		one->ops += ops;
	} else if (stripe_grow(s)) {
		*stripe_find(s, db, index) = (struct access){ db, index, ops };
		s->count++;
	}
	pthread_mutex_unlock(&s->lock);
}

bool
access_read(struct accesses *a, uint64_t db, uint64_t index, uint64_t *ret_ops)
{
	struct access_stripe *s = stripe_of(a, db, index);
	const struct access *one;
	bool known;

	pthread_mutex_lock(&s->lock);
	one = stripe_find(s, db, index);
	*ret_ops = one ? one->ops : 0;
	known = *ret_ops || stripe_grow(s);
	pthread_mutex_unlock(&s->lock);
	return known;
}

void
access_use(struct accesses *a, struct access_uses *u, uint64_t db, uint64_t index)
{
	for (size_t i = 0; u && i < u->count; i++)
		if (u->all[i].db == db && u->all[i].index == index) {
			u->all[i].ops++;
			return;
		}
	if (!u || u->count == ACCESS_USES)
		access_count(a, db, index, 1);
	else
		u->all[u->count++] = (struct access){ db, index, 1 };
}

void
access_count_uses(struct accesses *a, const struct access_uses *u)
{
	for (size_t i = 0; i < u->count; i++)
		access_count(a, u->all[i].db, u->all[i].index, u->all[i].ops);
}
