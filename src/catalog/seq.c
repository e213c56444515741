#include "catalog/seq.h"

enum status
catalog_seq_parse(struct str text, struct catalog_seq *ret, struct err *err)
{
	struct catalog_seq seq = { { 0 } };

	if (!str_eq(text, STR("0")) &&
	    (text.len != CATALOG_SEQ_HEX_BYTES || !str_from_hex(text, seq.bytes)))
		return err_set(err, STATUS_INVALID,
			       "Malformed sequence supplied in 'since' parameter.");
	*ret = seq;
	return STATUS_OK;
}

void
catalog_seq_write(const struct catalog_seq *seq, struct buf *ret)
{
	buf_append_hex(ret, str_of(seq->bytes, sizeof(seq->bytes)));
}

int
catalog_seq_cmp(const struct catalog_seq *a, const struct catalog_seq *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

void
catalog_stamp(uint16_t order, uint8_t ret[KV_VERSIONSTAMP_BYTES])
{
	memset(ret, 0xff, KV_VERSIONSTAMP_TX_BYTES);
	ret[KV_VERSIONSTAMP_TX_BYTES] = (uint8_t)(order >> 8);
	ret[KV_VERSIONSTAMP_TX_BYTES + 1] = (uint8_t)order;
}
