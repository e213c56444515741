/* Checks that what expires has an entry. */
#include "model/timed/timed_int.h"

enum status
timed_verify_entry(struct catalog_verify *v, const char *finding, struct str key, uint64_t ms)
{
	AUTO(buf_release) struct buf entry = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct str ignored;

	if (!ms)
		return STATUS_OK;
	TRY(timed_key_expiry(v->db, key, ms, &entry));
	TRY(catalog_verify_get(v, buf_str(&entry), &f));
	if (!kv_future_value(f, &ignored))
		catalog_verify_found(v, finding, key, "it expires, and no entry says so");
	kv_future_free(f);
	return STATUS_OK;
}
