/* What transactions ask of a store is counted, and spoiled where a test says so. */
#include "base/mem.h"
#include "kv/faulty/faulty_int.h"

void
kv_faulty_tap(struct kv_store *store, struct kv_faulty_tap *tap)
{
	((struct faulty_store *)store)->tap = tap;
}

enum status
faulty_tap_call(struct faulty_tx *tx)
{
	struct kv_faulty_tap *tap = tx->store->tap;

	if (!tap || ++tap->calls != tap->fail_call)
		return STATUS_OK;
	return err_set(&tx->base.err, tap->fail_with, "the tap says so");
}

enum status
faulty_tap_read(struct faulty_tx *tx, enum kv_read mode)
{
	if (tx->store->tap && mode == KV_READ)
		tx->store->tap->reads++;
	return faulty_tap_call(tx);
}

/*
 * Copies a value that was read into memory that ends where the value does, so that a sanitizer
 * reports an access beyond it.
 */
static enum status
tap_copy(struct kv_faulty_tap *tap, struct str value, struct str *ret)
{
	bool spoiled = ++tap->values == tap->spoil_value;
	size_t len = spoiled && tap->cut < value.len ? tap->cut : value.len;
	char *copy = mem_alloc(len ? len : 1);

	if (!copy)
		return STATUS_NOMEM;
	*ret = str_of(copy, len);
	if (len)
		memcpy(copy, value.ptr, len);
	if (spoiled)
		tap->length = value.len;
	if (spoiled && tap->flip < len)
		copy[tap->flip] ^= (char)0xff;
	return STATUS_OK;
}

void
faulty_tap_answer(struct faulty_tx *tx, struct faulty_future *f)
{
	struct kv_faulty_tap *tap = tx->store->tap;
	struct kv_range *range = &f->base.range;

	if (!tap || f->base.status != STATUS_OK)
		return;
	f->copies_count = f->base.kind == KV_FUTURE_RANGE ? range->count : f->base.present;
	f->copies = mem_zalloc(f->copies_count * sizeof(*f->copies) + 1);
	if (!f->copies) {
		f->base.status = STATUS_NOMEM;
		return;
	}
	if (f->base.kind != KV_FUTURE_RANGE) {
		if (f->base.present) {
			f->base.status = tap_copy(tap, f->base.value, &f->copies[0].value);
			f->base.value = f->copies[0].value;
		}
		return;
	}
	for (size_t i = 0; i < f->copies_count && f->base.status == STATUS_OK; i++) {
		f->copies[i].key = range->pairs[i].key;
		f->base.status = tap_copy(tap, range->pairs[i].value, &f->copies[i].value);
	}
	range->pairs = f->copies;
}

void
faulty_tap_free_copies(struct faulty_future *f)
{
	for (size_t i = 0; f->copies && i < f->copies_count; i++)
		mem_free((void *)(uintptr_t)f->copies[i].value.ptr);
	mem_free(f->copies);
}
