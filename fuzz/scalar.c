/*
 * Any bytes as a leaf's value: what is read is written as the same bytes, so that each scalar has
 * one encoding, and its key ends by itself and is passed over in both directions.
 */
#include <stdlib.h>

#include "doc/key.h"
#include "doc/scalar.h"

enum {
	MAX_BYTES = 1 << 20,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool good)
{
	if (!good)
		abort();
}

static void
check_key(const struct doc_scalar *s, enum doc_key_order order)
{
	struct buf key = BUF_INIT(MAX_BYTES);
	enum status status = doc_key_put(&key, order, s);
	size_t len;

	must(status == STATUS_OK || status == STATUS_LIMIT);
	if (status == STATUS_OK) {
		must(doc_key_skip(buf_str(&key), false, &len) == STATUS_OK && len == key.len);
		must(doc_key_skip(str_of(key.ptr, key.len - 1), false, &len) == STATUS_CORRUPT);
		doc_key_invert(&key, 0);
		must(doc_key_skip(buf_str(&key), true, &len) == STATUS_OK && len == key.len);
	}
	buf_release(&key);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf again = BUF_INIT(MAX_BYTES);
	struct buf scratch = BUF_INIT(MAX_BYTES);
	struct doc_scalar s;
	size_t len;

	if (doc_scalar_read(str_of(data, size), &scratch, &s) == STATUS_OK) {
		doc_scalar_put(&again, &s);
		must(str_eq(buf_str(&again), str_of(data, size)));
		check_key(&s, DOC_KEY_BSON);
		check_key(&s, DOC_KEY_COUCH);
		check_key(&s, DOC_KEY_TYPED);
		check_key(&s, DOC_KEY_RAW);
	}
	/* And any bytes as keys. */
	if (doc_key_skip(str_of(data, size), false, &len) == STATUS_OK)
		must(len && len <= size);
	buf_release(&again);
	buf_release(&scratch);
	return 0;
}
