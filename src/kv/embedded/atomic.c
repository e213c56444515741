#include <assert.h>

#include "kv/embedded/atomic.h"

/* Byte `i` of a little-endian number, which has zeros behind its end. */
static unsigned
atomic_byte_at(struct str number, size_t i)
{
	return i < number.len ? (uint8_t)number.ptr[i] : 0;
}

static enum status
atomic_add(struct str old, struct str operand, struct arena *a, struct cell *ret)
{
	char *sum = arena_bytes(a, operand.len);
	unsigned carry = 0;

	if (!sum)
		return STATUS_NOMEM;
	for (size_t i = 0; i < operand.len; i++) {
		carry += atomic_byte_at(old, i) + atomic_byte_at(operand, i);
		sum[i] = (char)(carry & 0xff);
		carry >>= 8;
	}
	*ret = (struct cell){ true, str_of(sum, operand.len) };
	return STATUS_OK;
}

/* Compares the lower `n` bytes of two little-endian numbers. */
static int
atomic_number_cmp(struct str x, struct str y, size_t n)
{
	while (n-- > 0) {
		if (atomic_byte_at(x, n) != atomic_byte_at(y, n))
			return atomic_byte_at(x, n) < atomic_byte_at(y, n) ? -1 : 1;
	}
	return 0;
}

/* `old`, cut or extended with zeros to `len` bytes. */
static enum status
atomic_resize(struct str old, size_t len, struct arena *a, struct cell *ret)
{
	char *p;

	if (old.len >= len) {
		*ret = (struct cell){ true, str_of(old.ptr, len) };
		return STATUS_OK;
	}
	p = arena_bytes(a, len);
	if (!p)
		return STATUS_NOMEM;
	if (old.len)
		memcpy(p, old.ptr, old.len);
	memset(p + old.len, 0, len - old.len);
	*ret = (struct cell){ true, str_of(p, len) };
	return STATUS_OK;
}

enum status
atomic_apply(enum kv_atomic op, struct cell old, struct str operand, struct arena *a,
	     struct cell *ret)
{
	struct str value = old.present ? old.value : (struct str){ 0 };
	bool keep_old = false;

	assert(old.present || old.value.len == 0);
	*ret = (struct cell){ true, operand };
	switch (op) {
	case KV_ADD:
		return atomic_add(value, operand, a, ret);
	case KV_MAX:
		keep_old = atomic_number_cmp(value, operand, operand.len) > 0;
		return keep_old ? atomic_resize(value, operand.len, a, ret) : STATUS_OK;
	case KV_MIN:
		keep_old = old.present && atomic_number_cmp(value, operand, operand.len) < 0;
		return keep_old ? atomic_resize(value, operand.len, a, ret) : STATUS_OK;
	case KV_BYTE_MAX:
		keep_old = old.present && str_cmp(value, operand) > 0;
		break;
	case KV_BYTE_MIN:
		keep_old = old.present && str_cmp(value, operand) < 0;
		break;
	case KV_COMPARE_AND_CLEAR:
		if (old.present && str_eq(value, operand))
			*ret = (struct cell){ 0 };
		else
			keep_old = true;
		break;
	}
	if (keep_old)
		*ret = old;
	return STATUS_OK;
}
