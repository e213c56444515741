/*
 * Which of many documents that are to be inserted are new, found out before the first of them is
 * written. A transaction that reads a key after it has written has to order its own writes first,
 * so an insert that looks for its own key costs more the more documents are in front of it; and on
 * a cluster each look waits for the one before.
 */
#include <assert.h>
#include <stdlib.h>

#include "model/plain/plain_int.h"

enum {
	LOOKS = 32, /* under way at the same time */
};

/* The key of a record, and which of the ids it is. */
struct new_key {
	struct str key;
	size_t at;
};

static int
new_key_compare(const void *a, const void *b)
{
	const struct new_key *x = a, *y = b;
	int c = str_cmp(x->key, y->key);

	/* Of ids that are alike the first one comes first. */
	return c ? c : (x->at > y->at) - (x->at < y->at);
}

/* The keys of all ids that have one, in their order; of those that come twice the first one. */
static enum status
keys_make(struct plain *p, const struct bson_value *ids, size_t count, struct arena *arena,
	  struct new_key **ret, size_t *ret_count)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct new_key *keys = arena_alloc(arena, count * sizeof(*keys));
	bool ascend = true;
	size_t n = 0, kept = 0;

	if (!keys)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		enum status status = plain_key_record(p->db, &ids[i], &key, NULL);

		/* One that is too long is refused when it is inserted. */
		if (status == STATUS_INVALID)
			continue;
		TRY(status);
		/* With room for the byte that makes it the next possible key. */
		buf_append_byte(&key, CATALOG_KEY_NEXT);
		TRY(catalog_key_status(&key));
		keys[n] = (struct new_key){ buf_dup(&key, arena), i };
		if (!keys[n].key.ptr)
			return STATUS_LIMIT;
		keys[n].key.len--;
		ascend = ascend && (!n || str_cmp(keys[n - 1].key, keys[n].key) < 0);
		n++;
	}
	if (!ascend)
		qsort(keys, n, sizeof(*keys), new_key_compare);
	for (size_t i = 0; i < n; i++)
		if (!kept || !str_eq(keys[kept - 1].key, keys[i].key))
			keys[kept++] = keys[i];
	*ret = keys;
	*ret_count = kept;
	return STATUS_OK;
}

static struct str
behind(struct str key)
{
	assert(key.ptr[key.len] == CATALOG_KEY_NEXT);
	return str_of(key.ptr, key.len + 1);
}

/* True if no record lies between the first key and the last, which ids that ascend often have. */
static enum status
stretch_is_empty(struct plain *p, const struct new_key *keys, size_t count, bool *ret)
{
	const struct kv_range_options options = { .limit = 1, .mode = KV_SNAPSHOT };
	struct kv_future *f = kv_get_range(p->tx, keys[0].key, behind(keys[count - 1].key),
					   &options);
	enum status status = kv_future_wait(f);

	*ret = status == STATUS_OK && !kv_future_range(f).count;
	kv_future_free(f);
	return status;
}

/* Looks for up to LOOKS keys. */
static enum status
look(struct plain *p, const struct new_key *keys, size_t count, bool *ret_new)
{
	struct kv_future *looks[LOOKS];
	enum status status = STATUS_OK;
	struct str ignored;

	assert(count <= LOOKS);
	for (size_t i = 0; i < count; i++)
		looks[i] = kv_get(p->tx, keys[i].key, KV_READ);
	for (size_t i = 0; i < count; i++) {
		enum status one = kv_future_wait(looks[i]);

		if (one == STATUS_OK)
			ret_new[keys[i].at] = !kv_future_value(looks[i], &ignored);
		else if (status == STATUS_OK)
			status = one;
		kv_future_free(looks[i]);
	}
	return status;
}

enum status
plain_find_new(struct plain *p, const struct bson_value *ids, size_t count, struct arena *arena,
	       bool *ret_new)
{
	struct new_key *keys;
	size_t n;
	bool empty;

	memset(ret_new, 0, count * sizeof(*ret_new));
	TRY(keys_make(p, ids, count, arena, &keys, &n));
	if (!n)
		return STATUS_OK;
	TRY(stretch_is_empty(p, keys, n, &empty));
	for (size_t i = 0; empty && i < n; i++) {
		/* Only these: others may be inserted between them meanwhile. */
		TRY(kv_add_read_conflict_range(p->tx, keys[i].key, behind(keys[i].key)));
		ret_new[keys[i].at] = true;
	}
	for (size_t i = 0; !empty && i < n; i += LOOKS)
		TRY(look(p, keys + i, n - i < LOOKS ? n - i : LOOKS, ret_new));
	return STATUS_OK;
}
