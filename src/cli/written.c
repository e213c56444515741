#include "cli/written.h"

#include <stdlib.h>

#include "kv/log.h"

struct written {
	struct arena *arena;
	struct written_key *keys;
	size_t count;
	size_t cap;
};

static enum status
written_add(void *arg, const struct kv_log_key *key)
{
	struct written *w = arg;
	struct written_key *added;

	TRY(arena_room(w->arena, &w->keys, w->count, &w->cap, sizeof(*w->keys)));
	added = &w->keys[w->count];
	*added = (struct written_key){ 0 };
	TRY(arena_copy(w->arena, key->key, &added->key));
	if (key->end.ptr)
		TRY(arena_copy(w->arena, key->end, &added->end));
	w->count++;
	return STATUS_OK;
}

static int
written_cmp(const void *a, const void *b)
{
	const struct written_key *x = a, *y = b;
	int order = str_cmp(x->key, y->key);

	return order ? order : str_cmp(x->end, y->end);
}

enum status
written_read(struct kv_store *store, uint64_t after, struct arena *arena, struct written_key **ret,
	     size_t *ret_count, struct err *err)
{
	struct written w = { .arena = arena };
	size_t count = 0;
	enum status status = kv_log_keys(store, after, written_add, &w, err);

	if (status == STATUS_LIMIT)
		return err_set(err, status,
			       "more was written after version %llu than can be shown at once: "
			       "begin later",
			       (unsigned long long)after);
	TRY(status);
	if (w.count)
		qsort(w.keys, w.count, sizeof(*w.keys), written_cmp);
	for (size_t i = 0; i < w.count; i++)
		if (!count || written_cmp(&w.keys[count - 1], &w.keys[i]) != 0)
			w.keys[count++] = w.keys[i];
	*ret = w.keys;
	*ret_count = count;
	return STATUS_OK;
}
