#include "catalog/store_format.h"

#include "catalog/clock.h"
#include "catalog/format.h"
#include "catalog/keys.h"
#include "kv/keyspace.h"

enum {
	FORMAT_KEY_BYTES = 64,
};

struct format_check {
	uint64_t format;
	struct err *err;
};

static enum status
format_key(struct buf *key)
{
	tuple_put_u64(key, KV_ROOT);
	tuple_put_u64(key, KV_ROOT_FORMAT);
	return catalog_key_status(key);
}

/* The format as it is stored; 1 where there is none. */
static enum status
format_read(struct kv_tx *tx, uint64_t *ret, struct err *err)
{
	AUTO(buf_release) struct buf key = BUF_INIT(FORMAT_KEY_BYTES);
	struct tuple_reader r;
	struct kv_future *f;
	struct str value;
	enum status status;

	TRY(format_key(&key));
	f = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	*ret = 1;
	if (!kv_future_value(f, &value))
		return STATUS_OK;
	r = tuple_reader(value);
	status = catalog_format_next(&r, "store", CATALOG_STORE_FORMAT, ret, err);
	if (status == STATUS_CORRUPT)
		return err_set(err, status, "the store's format is not a number");
	return status;
}

static enum status
format_check_body(struct kv_tx *tx, void *arg)
{
	struct format_check *check = arg;

	return format_read(tx, &check->format, check->err);
}

enum status
catalog_store_check(struct kv_store *store, struct err *err)
{
	struct format_check check = { .err = err };

	return kv_run_read(store, format_check_body, &check, err);
}

enum status
catalog_store_open(const char *url, const struct kv_options *options, struct kv_store **ret,
		   struct err *err)
{
	struct kv_store *store;
	enum status status;

	TRY(kv_open(url, options, &store, err));
	status = catalog_store_check(store, err);
	if (status == STATUS_OK)
		status = catalog_clock_restore(store, err);
	if (status == STATUS_OK)
		*ret = store;
	else
		kv_close(store);
	return status;
}

enum status
catalog_store_format_raise(struct kv_tx *tx, uint64_t format)
{
	AUTO(buf_release) struct buf key = BUF_INIT(FORMAT_KEY_BYTES);
	AUTO(buf_release) struct buf value = BUF_INIT(FORMAT_KEY_BYTES);
	uint64_t now;

	TRY(format_read(tx, &now, NULL));
	if (now >= format)
		return STATUS_OK;
	TRY(format_key(&key));
	tuple_put_u64(&value, format);
	TRY(buf_status(&value));
	return kv_set(tx, buf_str(&key), buf_str(&value));
}
