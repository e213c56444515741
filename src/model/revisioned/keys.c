#include "kv/keyspace.h"
#include "model/revisioned/revisioned_int.h"

void
rev_key_space(struct buf *key, const struct catalog_db *db, enum rev_subspace space)
{
	buf_clear(key);
	buf_append_str(key, db->prefix);
	tuple_put_u64(key, space);
}

void
rev_key_named(struct buf *key, const struct catalog_db *db, enum rev_subspace space,
	      struct str name)
{
	rev_key_space(key, db, space);
	tuple_put_str(key, name);
}

void
rev_key_rev(struct buf *key, const struct catalog_db *db, enum rev_subspace space, struct str id,
	    bool deleted, struct rev_id rev)
{
	rev_key_named(key, db, space, id);
	tuple_put_bool(key, !deleted);
	tuple_put_u64(key, rev.pos);
	tuple_put_bytes(key, rev.hash);
}

void
rev_key_change(struct buf *key, const struct catalog_db *db, const struct catalog_seq *seq)
{
	rev_key_space(key, db, REV_SUBSPACE_CHANGES);
	tuple_put_u64(key, seq->bytes[0]);
	tuple_put_versionstamp(key, seq->bytes + 1);
}

struct str
rev_key_tail(const struct buf *key, const struct catalog_db *db)
{
	return str_skip(buf_str(key), db->prefix.len + REV_KEY_SPACE_BYTES);
}

size_t
rev_encoded_bytes(struct str s)
{
	size_t n = s.len + 2; /* the type code and the NUL at the end */
	const char *nul;

	/* Nearly no text has a NUL, and looking for one is faster than counting them. */
	while (s.len && (nul = memchr(s.ptr, 0, s.len))) {
		s = str_skip(s, (size_t)(nul - s.ptr) + 1);
		n++;
	}
	return n;
}

size_t
rev_local_prefix_bytes(const struct catalog_db *db, struct str id)
{
	return db->prefix.len + 2 + rev_encoded_bytes(id);
}

size_t
rev_doc_prefix_bytes(const struct catalog_db *db, struct str id)
{
	return rev_local_prefix_bytes(db, id) + REV_KEY_TAIL_BYTES + REV_KEY_HASH_BYTES;
}
