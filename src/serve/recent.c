#include "serve/recent.h"

#include <assert.h>

#include "base/mem.h"

void
recent_init(struct recent *r)
{
	*r = (struct recent){ .newest = NULL };
	pthread_mutex_init(&r->lock, NULL);
}

void
recent_fini(struct recent *r)
{
	recent_clear(r);
	pthread_mutex_destroy(&r->lock);
}

static void
entries_free(struct recent_entry *e)
{
	while (e) {
		struct recent_entry *older = e->older;

		mem_free(e);
		e = older;
	}
}

/* With the lock: takes the first of the newest that `join` says is the same out of the list. */
static struct recent_entry *
recent_take_same(struct recent *r, struct recent_entry *e, recent_join *join, size_t looks)
{
	struct recent_entry **at = &r->newest;
	struct recent_entry *same;

	while (*at && looks && !join(e, *at)) {
		at = &(*at)->older;
		looks--;
	}
	if (!*at || !looks)
		return NULL;
	same = *at;
	*at = same->older;
	same->older = NULL;
	r->count--;
	return same;
}

/* With the lock: takes all entries behind the newest `most` out of the list. */
static struct recent_entry *
recent_cut(struct recent *r, size_t most)
{
	struct recent_entry **at = &r->newest;
	struct recent_entry *rest;

	if (r->count <= most)
		return NULL;
	for (size_t i = 0; i < most; i++)
		at = &(*at)->older;
	rest = *at;
	*at = NULL;
	r->count = most;
	return rest;
}

void
recent_add(struct recent *r, struct recent_entry *e, size_t most, recent_join *join, size_t looks)
{
	struct recent_entry *same = NULL, *rest;

	assert(most);
	pthread_mutex_lock(&r->lock);
	if (join)
		same = recent_take_same(r, e, join, looks);
	e->number = r->next++;
	e->older = r->newest;
	r->newest = e;
	r->count++;
	rest = recent_cut(r, most);
	pthread_mutex_unlock(&r->lock);
	entries_free(same);
	entries_free(rest);
}

void
recent_clear(struct recent *r)
{
	struct recent_entry *all;

	pthread_mutex_lock(&r->lock);
	all = recent_cut(r, 0);
	pthread_mutex_unlock(&r->lock);
	entries_free(all);
}

size_t
recent_count(struct recent *r)
{
	size_t count;

	pthread_mutex_lock(&r->lock);
	count = r->count;
	pthread_mutex_unlock(&r->lock);
	return count;
}

void
recent_show(struct recent *r, uint64_t most, void (*begin)(void *arg, size_t count),
	    void (*see)(void *arg, const struct recent_entry *e), void *arg)
{
	const struct recent_entry *e;
	size_t count;

	pthread_mutex_lock(&r->lock);
	count = most < r->count ? (size_t)most : r->count;
	begin(arg, count);
	for (e = r->newest; count; count--, e = e->older)
		see(arg, e);
	pthread_mutex_unlock(&r->lock);
}
