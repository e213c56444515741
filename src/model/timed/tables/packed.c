/* What is packed into a row's own cell, read and written. */
#include "kv/tuple.h"
#include "model/timed/tables/packed.h"

enum status
table_packed_next(struct table_packed *p, uint64_t *ret_column, struct str *ret_value)
{
	struct tuple_reader r = tuple_reader(p->rest);
	uint64_t column, len;

	if (!p->rest.len)
		return STATUS_NOT_FOUND;
	if (tuple_next_u64(&r, &column) != STATUS_OK || column <= p->last ||
	    tuple_next_u64(&r, &len) != STATUS_OK || !len || len > r.rest.len)
		return STATUS_CORRUPT;
	*ret_column = p->last = column;
	*ret_value = str_of(r.rest.ptr, (size_t)len);
	p->rest = str_skip(r.rest, (size_t)len);
	return STATUS_OK;
}

void
table_packed_put(uint64_t column, struct str value, struct buf *packed)
{
	tuple_put_u64(packed, column);
	tuple_put_u64(packed, value.len);
	buf_append_str(packed, value);
}

enum status
table_packed_scalar(struct str value, struct arena *arena, struct doc_scalar *ret)
{
	const struct timed_cell cell = { .type = TIMED_LEAF, .value = value };

	return timed_cell_scalar(&cell, arena, ret);
}
