/* Payloads: a type's code, a value, a version of two bytes, a checksum of eight. */
#include "rdb/bytes.h"
#include "rdb/crc64.h"
#include "rdb/rdb.h"

enum {
	VERSION_BYTES = 2,
};

bool
rdb_payload_is_sound(struct str payload, struct str *ret)
{
	struct str footer, signed_bytes;

	if (payload.len < RDB_FOOTER_BYTES)
		return false;
	*ret = str_of(payload.ptr, payload.len - RDB_FOOTER_BYTES);
	footer = str_skip(payload, ret->len);
	signed_bytes = str_of(payload.ptr, ret->len + VERSION_BYTES);
	return bytes_le(str_of(footer.ptr, VERSION_BYTES)) <= RDB_VERSION_FIELDS &&
	       bytes_le(str_skip(footer, VERSION_BYTES)) == rdb_crc64(0, signed_bytes);
}

void
rdb_put_footer(struct buf *out, size_t from, unsigned version)
{
	rdb_put_number(out, VERSION_BYTES, version);
	if (buf_status(out) == STATUS_OK)
		rdb_put_number(out, 8, rdb_crc64(0, str_skip(buf_str(out), from)));
}
