#include "base/big_endian.h"
#include "cql/number.h"
#include "cql/value_int.h"
#include "doc/key.h"

void
cql_varint_scalar(struct str bytes, char *scratch, struct doc_scalar *ret)
{
	unsigned carry = 1;
	size_t len;

	bytes = cql_varint_minimal(bytes);
	len = bytes.len < CQL_VARINT_BYTES ? bytes.len : CQL_VARINT_BYTES;
	ret->negative = len && (bytes.ptr[0] & 0x80);
	memcpy(scratch, bytes.ptr, len);
	for (size_t i = len; ret->negative && i-- > 0;) {
		carry += (uint8_t)~scratch[i];
		scratch[i] = (char)carry;
		carry >>= 8;
	}
	ret->text = str_of(scratch, len);
	while (ret->text.len && ret->text.ptr[0] == 0)
		ret->text = str_skip(ret->text, 1);
}

enum status
cql_decimal_put_key(struct buf *key, struct str bytes)
{
	char scratch[CQL_VARINT_BYTES];
	struct doc_scalar s = { .kind = DOC_DECIMAL };

	s.n = (int32_t)big_endian_32(bytes.ptr);
	cql_varint_scalar(str_skip(bytes, CQL_SCALE_BYTES), scratch, &s);
	return doc_key_put(key, DOC_KEY_TYPED, &s);
}
