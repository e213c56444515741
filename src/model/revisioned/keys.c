#include "kv/keyspace.h"
#include "model/revisioned/revisioned_int.h"

void
rev_key_space(struct buf *key, const struct rev_db *db, enum rev_subspace space)
{
	buf_clear(key);
	buf_append_str(key, db->prefix);
	tuple_put_u64(key, space);
}

void
rev_key_named(struct buf *key, const struct rev_db *db, enum rev_subspace space, struct str name)
{
	rev_key_space(key, db, space);
	tuple_put_str(key, name);
}

void
rev_key_rev(struct buf *key, const struct rev_db *db, enum rev_subspace space, struct str id,
	    bool deleted, struct rev_id rev)
{
	rev_key_named(key, db, space, id);
	tuple_put_bool(key, !deleted);
	tuple_put_u64(key, rev.pos);
	tuple_put_bytes(key, rev.hash);
}

void
rev_key_change(struct buf *key, const struct rev_db *db, const struct rev_seq *seq)
{
	rev_key_space(key, db, REV_SUBSPACE_CHANGES);
	tuple_put_u64(key, seq->bytes[0]);
	tuple_put_versionstamp(key, seq->bytes + 1);
}

struct str
rev_key_tail(const struct buf *key, const struct rev_db *db)
{
	return str_skip(buf_str(key), db->prefix.len + REV_KEY_SPACE_BYTES);
}

enum status
rev_key_status(const struct buf *key)
{
	enum status status = buf_status(key);

	return status == STATUS_LIMIT ? STATUS_KEY_TOO_LARGE : status;
}

size_t
rev_encoded_bytes(struct str s)
{
	size_t n = s.len + 2; /* the type code and the NUL at the end */

	for (size_t i = 0; i < s.len; i++)
		n += s.ptr[i] == '\0';
	return n;
}

static enum status
unescape(const struct tuple_elem *e, struct arena *arena, struct str *ret)
{
	AUTO(buf_release) struct buf plain = BUF_INIT(KV_LIMIT_VALUE_BYTES);

	tuple_unescape(e, &plain);
	TRY(buf_status(&plain));
	*ret = arena_dup(arena, buf_str(&plain));
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

enum status
rev_next_text(struct tuple_reader *r, enum tuple_kind kind, struct arena *arena, bool copy,
	      struct str *ret)
{
	struct tuple_elem e;

	if (tuple_next(r, &e) != STATUS_OK || e.kind != kind)
		return STATUS_CORRUPT;
	if (e.escaped)
		return unescape(&e, arena, ret);
	*ret = e.raw;
	if (copy)
		*ret = arena_dup(arena, e.raw);
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

enum status
rev_next_format(struct tuple_reader *r)
{
	uint64_t format;

	TRY(tuple_next_u64(r, &format));
	return format == REV_FORMAT ? STATUS_OK : STATUS_CORRUPT;
}

enum status
rev_root_scan(struct kv_tx *tx, uint64_t space, rev_take_root *take, void *arg)
{
	AUTO(buf_release) struct buf lo = REV_KEY_INIT;
	AUTO(buf_release) struct buf hi = REV_KEY_INIT;
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	const struct kv_range_options options = { .mode = KV_SNAPSHOT,
						  .limit_bytes = REV_PAGE_BYTES };
	struct kv_pair pair;
	enum status status;

	tuple_put_u64(&lo, KV_ROOT);
	tuple_put_u64(&lo, space);
	buf_append_str(&hi, buf_str(&lo));
	buf_append_byte(&hi, REV_KEY_LAST);
	TRY(rev_key_status(&lo));
	TRY(rev_key_status(&hi));
	TRY(kv_scan_init(&scan, tx, buf_str(&lo), buf_str(&hi), &options));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK)
		TRY(take(arg, tuple_reader(str_skip(pair.key, lo.len)), pair.value));
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}
