/*
 * The Incarnation of a store as it is stored: (ROOT, 6) → (Incarnation). It is a bare number; the
 * format of the store covers it.
 */
#include "catalog/catalog_int.h"
#include "kv/keyspace.h"

static void
incarnation_key(struct buf *key)
{
	buf_clear(key);
	tuple_put_u64(key, KV_ROOT);
	tuple_put_u64(key, KV_ROOT_INCARNATION);
}

enum status
catalog_store_incarnation(struct kv_tx *tx, uint8_t *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct str value;
	uint64_t n = 0;

	incarnation_key(&key);
	TRY(catalog_key_status(&key));
	f = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	if (kv_future_value(f, &value)) {
		struct tuple_reader r = tuple_reader(value);

		TRY(tuple_next_u64(&r, &n));
	}
	if (n > UINT8_MAX)
		return STATUS_CORRUPT;
	*ret = (uint8_t)n;
	return STATUS_OK;
}

enum status
catalog_store_incarnation_set(struct kv_tx *tx, uint8_t incarnation)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(16);

	incarnation_key(&key);
	tuple_put_u64(&value, incarnation);
	TRY(catalog_key_status(&key));
	TRY(buf_status(&value));
	return kv_set(tx, buf_str(&key), buf_str(&value));
}
