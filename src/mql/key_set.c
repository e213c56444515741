#include "mql/key_set.h"

#include "base/hash.h"
#include "mql/mql_int.h"

enum {
	SET_FIRST_SLOTS = 16,
};

/* Room for one more in a table that is at most half full. */
static enum status
set_grow(struct mql_key_set *s, struct arena *keep)
{
	size_t slots = s->slots ? 2 * s->slots : SET_FIRST_SLOTS;
	struct str *table;

	if (2 * s->count < s->slots)
		return STATUS_OK;
	table = arena_zalloc(keep, slots * sizeof(*table));
	if (!table)
		return STATUS_LIMIT;
	for (size_t i = 0; i < s->slots; i++) {
		size_t at;

		TRY(step_count(1));
		if (!s->table[i].ptr)
			continue;
		at = hash_keyed(0, s->table[i]) & (slots - 1);
		while (table[at].ptr)
			at = (at + 1) & (slots - 1);
		table[at] = s->table[i];
	}
	s->table = table;
	s->slots = slots;
	return STATUS_OK;
}

static enum status
key_set_insert(struct mql_key_set *s, struct arena *keep, struct str key, bool *ret_added)
{
	size_t at;

	*ret_added = false;
	TRY(step_count_bytes(key.len));
	TRY(set_grow(s, keep));
	/* At most half full, so the search ends at an empty slot. */
	assert(2 * s->count <= s->slots);
	at = hash_keyed(0, key) & (s->slots - 1);
	for (; s->table[at].ptr; at = (at + 1) & (s->slots - 1)) {
		TRY(step_count(1));
		if (str_eq(s->table[at], key))
			return STATUS_OK;
	}
	s->table[at] = arena_dup(keep, key);
	if (!s->table[at].ptr)
		return STATUS_LIMIT;
	s->count++;
	*ret_added = true;
	return STATUS_OK;
}

enum status
mql_key_set_add(struct mql_key_set *s, struct mql *q, struct arena *keep,
		const struct bson_value *v, bool *ret_added)
{
	struct buf key = mql_buf(q, BSON_KEY_ROOM(BSON_MOST_BYTES));
	enum status status;
	bool cut = false;

	status = bson_key_put(&key, v, BSON_MOST_BYTES, q->texts, &cut);
	if (status == STATUS_OK)
		status = key_set_insert(s, keep, buf_str(&key), ret_added);
	buf_release(&key);
	return status;
}
