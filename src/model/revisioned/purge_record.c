/* The records of purges and of those that read them. */
#include "catalog/keys.h"
#include "model/revisioned/record.h"

void
rev_purge_record_begin(struct buf *value, const uint8_t id[REV_PURGE_ID_BYTES], struct str doc_id)
{
	buf_clear(value);
	tuple_put_u64(value, REV_PURGE_FORMAT);
	tuple_put_uuid(value, id);
	tuple_put_str(value, doc_id);
}

void
rev_purge_record_add(struct buf *value, struct rev_id rev)
{
	tuple_put_u64(value, rev.pos);
	tuple_put_bytes(value, rev.hash);
}

enum status
rev_purge_record_parse(struct str value, struct arena *arena, struct rev_purge *ret,
		       struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	struct rev_purge purge = { 0 };
	struct tuple_elem id;
	size_t cap = 0;
	uint64_t format;

	TRY(catalog_format_next(&r, "record of a purge", REV_PURGE_FORMAT, &format, err));
	if (tuple_next(&r, &id) != STATUS_OK || id.kind != TUPLE_UUID)
		return STATUS_CORRUPT;
	memcpy(purge.id, id.raw.ptr, sizeof(purge.id));
	TRY(catalog_next_text(&r, TUPLE_STRING, arena, true, &purge.doc_id));
	while (r.rest.len) {
		struct rev_id rev;
		void *revs = purge.revs;

		TRY(tuple_next_u64(&r, &rev.pos));
		TRY(catalog_next_text(&r, TUPLE_BYTES, arena, true, &rev.hash));
		TRY(catalog_array_grow(arena, &revs, sizeof(*purge.revs), purge.count, &cap));
		purge.revs = revs;
		purge.revs[purge.count++] = rev;
	}
	*ret = purge;
	return purge.count ? STATUS_OK : STATUS_CORRUPT;
}

void
rev_purge_mark_put(struct buf *value, const struct catalog_seq *seq)
{
	buf_clear(value);
	tuple_put_u64(value, REV_PURGE_MARK_FORMAT);
	tuple_put_u64(value, seq->bytes[0]);
	tuple_put_versionstamp(value, seq->bytes + 1);
}

enum status
rev_purge_mark_parse(struct str value, struct catalog_seq *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format, incarnation;
	const uint8_t *stamp;

	TRY(catalog_format_next(&r, "place in the record of purges", REV_PURGE_MARK_FORMAT, &format,
				err));
	TRY(tuple_next_u64(&r, &incarnation));
	TRY(tuple_next_versionstamp(&r, &stamp));
	if (r.rest.len || incarnation > UINT8_MAX)
		return STATUS_CORRUPT;
	ret->bytes[0] = (uint8_t)incarnation;
	memcpy(ret->bytes + 1, stamp, KV_VERSIONSTAMP_BYTES);
	return STATUS_OK;
}
