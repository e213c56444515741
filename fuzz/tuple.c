/* Any bytes: what decodes is encoded again as it was; everything can be drawn. */
#include <stdlib.h>

#include "kv/tuple.h"

enum {
	MAX_BYTES = 1 << 24,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void encode_all(struct tuple_reader r, bool nested, struct buf *ret);

static void
encode(const struct tuple_elem *e, bool nested, struct buf *ret)
{
	struct buf scratch = BUF_INIT(MAX_BYTES);

	switch (e->kind) {
	case TUPLE_NULL:
		if (nested)
			tuple_put_nested_null(ret);
		else
			tuple_put_null(ret);
		break;
	case TUPLE_BYTES:
		tuple_unescape(e, &scratch);
		tuple_put_bytes(ret, buf_str(&scratch));
		break;
	case TUPLE_STRING:
		tuple_unescape(e, &scratch);
		tuple_put_str(ret, buf_str(&scratch));
		break;
	case TUPLE_NESTED:
		tuple_open(ret);
		encode_all(tuple_reader_nested(e), true, ret);
		tuple_close(ret);
		break;
	case TUPLE_INT:
		if (e->negative)
			tuple_put_i64(ret, (int64_t)-e->magnitude);
		else
			tuple_put_u64(ret, e->magnitude);
		break;
	case TUPLE_BIGINT:
		tuple_bigint(e, &scratch);
		tuple_put_bigint(ret, e->negative, buf_str(&scratch));
		break;
	case TUPLE_FLOAT:
		tuple_put_float(ret, e->f);
		break;
	case TUPLE_DOUBLE:
		tuple_put_double(ret, e->d);
		break;
	case TUPLE_FALSE:
	case TUPLE_TRUE:
		tuple_put_bool(ret, e->kind == TUPLE_TRUE);
		break;
	case TUPLE_UUID:
		tuple_put_uuid(ret, (const uint8_t *)e->raw.ptr);
		break;
	case TUPLE_VERSIONSTAMP:
		tuple_put_versionstamp(ret, (const uint8_t *)e->raw.ptr);
		break;
	}
	buf_release(&scratch);
}

static void
encode_all(struct tuple_reader r, bool nested, struct buf *ret)
{
	struct tuple_elem e;

	while (tuple_next(&r, &e) == STATUS_OK)
		encode(&e, nested, ret);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str encoded = str_of(data, size);
	struct tuple_reader r = tuple_reader(encoded);
	struct buf again = BUF_INIT(MAX_BYTES);
	struct buf drawn = BUF_INIT(MAX_BYTES);
	struct tuple_elem e;

	while (tuple_next(&r, &e) == STATUS_OK) {
		buf_clear(&again);
		encode(&e, false, &again);
		if (!str_eq(buf_str(&again), e.encoding))
			abort();
	}
	tuple_draw(encoded, &drawn);
	if (buf_status(&drawn) != STATUS_OK)
		abort();
	buf_release(&again);
	buf_release(&drawn);
	return 0;
}
