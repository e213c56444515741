#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/budget.h"
#include "base/mem.h"

enum {
	BUF_FIRST_BYTES = 64,
};

void
buf_init(struct buf *b, size_t max_bytes)
{
	*b = BUF_INIT(max_bytes);
}

void
buf_release(struct buf *b)
{
	if (!b)
		return;
	mem_free(b->ptr);
	if (b->part)
		budget_unuse(b->part, b->cap);
	*b = BUF_INIT_OF(b->max_bytes, b->part);
}

bool
buf_grow(struct buf *b, size_t n)
{
	size_t cap = b->cap ? b->cap : BUF_FIRST_BYTES;
	char *ptr;

	if (b->failed != STATUS_OK)
		return false;
	if (n > b->max_bytes || b->len > b->max_bytes - n) {
		b->failed = STATUS_LIMIT;
		return false;
	}
	while (cap < b->len + n)
		cap = cap > b->max_bytes / 2 ? b->max_bytes : cap * 2;
	if (cap > b->max_bytes)
		cap = b->max_bytes;
	if (b->part && !budget_use(b->part, cap - b->cap)) {
		b->failed = STATUS_LIMIT;
		return false;
	}
	ptr = mem_realloc(b->ptr, cap);
	if (!ptr) {
		if (b->part)
			budget_unuse(b->part, cap - b->cap);
		b->failed = STATUS_NOMEM;
		return false;
	}
	b->ptr = ptr;
	b->cap = cap;
	return true;
}

void
buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	if (n < 0 || !buf_reserve(b, (size_t)n + 1))
		return;
	va_start(args, fmt);
	vsnprintf(b->ptr + b->len, (size_t)n + 1, fmt, args);
	va_end(args);
	b->len += (size_t)n;
}

void
buf_append_u64(struct buf *b, uint64_t n)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	buf_append(b, digits + at, sizeof(digits) - at);
}

void
buf_append_hex(struct buf *b, struct str s)
{
	static const char digits[] = "0123456789abcdef";
	char *to;

	if (!buf_reserve(b, s.len * 2))
		return;
	to = b->ptr + b->len;
	for (size_t i = 0; i < s.len; i++) {
		uint8_t c = (uint8_t)s.ptr[i];

		*to++ = digits[c >> 4];
		*to++ = digits[c & 15];
	}
	b->len += s.len * 2;
}

void
buf_consume(struct buf *b, size_t n)
{
	b->len -= n;
	if (b->len)
		memmove(b->ptr, b->ptr + n, b->len);
}
