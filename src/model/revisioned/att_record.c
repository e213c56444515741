#include "catalog/keys.h"
#include "model/revisioned/record.h"

void
rev_att_put(struct buf *value, const struct rev_att *att, uint64_t order)
{
	buf_clear(value);
	tuple_put_u64(value, REV_ATT_FORMAT);
	tuple_put_uuid(value, att->id);
	tuple_put_str(value, att->type);
	tuple_put_u64(value, att->length);
	tuple_put_u64(value, att->encoded_length);
	tuple_put_u64(value, att->encoding);
	tuple_put_bytes(value, str_of(att->digest, sizeof(att->digest)));
	tuple_put_u64(value, att->revpos);
	tuple_put_u64(value, order);
}

enum status
rev_att_parse(struct str path, struct str value, struct arena *arena, struct rev_att *ret,
	      uint64_t *ret_order, struct err *err)
{
	struct tuple_reader k = tuple_reader(path);
	struct tuple_reader v = tuple_reader(value);
	struct tuple_elem e;
	struct rev_att att;
	struct str digest;
	uint64_t encoding, format;

	if (tuple_next(&k, &e) != STATUS_OK || e.kind != TUPLE_NULL)
		return STATUS_CORRUPT;
	TRY(catalog_next_text(&k, TUPLE_STRING, arena, true, &att.name));
	TRY(catalog_format_next(&v, "description of an attachment", REV_ATT_FORMAT, &format, err));
	if (tuple_next(&v, &e) != STATUS_OK || e.kind != TUPLE_UUID)
		return STATUS_CORRUPT;
	memcpy(att.id, e.raw.ptr, sizeof(att.id));
	TRY(catalog_next_text(&v, TUPLE_STRING, arena, true, &att.type));
	TRY(tuple_next_u64(&v, &att.length));
	TRY(tuple_next_u64(&v, &att.encoded_length));
	TRY(tuple_next_u64(&v, &encoding));
	TRY(catalog_next_text(&v, TUPLE_BYTES, arena, false, &digest));
	TRY(tuple_next_u64(&v, &att.revpos));
	TRY(tuple_next_u64(&v, ret_order));
	if (k.rest.len || v.rest.len || encoding > REV_ATT_GZIP || digest.len != sizeof(att.digest))
		return STATUS_CORRUPT;
	att.encoding = (enum rev_att_encoding)encoding;
	memcpy(att.digest, digest.ptr, sizeof(att.digest));
	*ret = att;
	return STATUS_OK;
}
