#include "model/revisioned/neighbours.h"

#include "model/revisioned/revisioned_int.h"

enum status
rev_neighbours_ask(struct rev_neighbours *n, struct kv_tx *tx, const struct catalog_db *db,
		   struct str first, struct str last, struct buf *key)
{
	const struct kv_range_options options = { .limit = REV_NEIGHBOURS_PAIRS,
						  .limit_bytes = REV_NEIGHBOURS_BYTES,
						  .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	*n = (struct rev_neighbours){ 0 };
	rev_key_named(key, db, REV_SUBSPACE_REVISIONS, first);
	TRY(catalog_key_status(key));
	rev_key_named(&end, db, REV_SUBSPACE_REVISIONS, last);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	n->future = kv_get_range(tx, buf_str(key), buf_str(&end), &options);
	return STATUS_OK;
}

enum status
rev_neighbours_look(struct rev_neighbours *n, struct kv_tx *tx, const struct catalog_db *db,
		    struct str id, struct buf *key, bool *ret_is_new)
{
	struct kv_range range;
	struct str begin, end;
	size_t prefix_len;

	*ret_is_new = false;
	TRY(kv_future_wait(n->future));
	range = kv_future_range(n->future);
	TRY(rev_branches_bounds(key, db, id, &prefix_len));
	begin = str_of(key->ptr, prefix_len);
	end = str_of(key->ptr + prefix_len, key->len - prefix_len);
	while (n->at < range.count && str_cmp(range.pairs[n->at].key, begin) < 0)
		n->at++;
	if (n->at == range.count ? range.more : str_cmp(range.pairs[n->at].key, end) < 0)
		return STATUS_OK;
	*ret_is_new = true;
	return kv_add_read_conflict_range(tx, begin, end);
}

void
rev_neighbours_release(struct rev_neighbours *n)
{
	kv_future_free(n->future);
	n->future = NULL;
}
