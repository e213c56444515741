#include "cql/number.h"

#include <math.h>
#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/big_endian.h"

enum {
	DECIMAL_DIVIDE_DIGITS = 32,  /* that a quotient has at least */
	DECIMAL_DIVIDE_SCALE = 1000, /* that it has at most */
	/* Aligning 10^9 and 10^-9 takes all digits between: more than that is refused. */
	DECIMAL_ALIGN_DIGITS = CQL_DIGITS,
	DOUBLE_TEXT_BYTES = 40,
};

static void
free_bignum(BIGNUM **n)
{
	BN_free(*n);
}

#define AUTO_BIGNUM AUTO(free_bignum) BIGNUM

/* ---- Bytes ---- */

struct str
cql_varint_minimal(struct str bytes)
{
	while (bytes.len > 1 && ((bytes.ptr[0] == 0 && !(bytes.ptr[1] & 0x80)) ||
				 (bytes.ptr[0] == -1 && (bytes.ptr[1] & 0x80))))
		bytes = str_skip(bytes, 1);
	return bytes;
}

enum status
cql_varint_of_int(struct cql *q, int64_t n, struct str *ret)
{
	char *bytes = arena_bytes(q->arena, sizeof(n));

	if (!bytes)
		return STATUS_LIMIT;
	big_endian_put_64(bytes, (uint64_t)n);
	*ret = cql_varint_minimal(str_of(bytes, sizeof(n)));
	return STATUS_OK;
}

bool
cql_varint_to_int(struct str bytes, int64_t *ret)
{
	uint64_t n = bytes.len && (bytes.ptr[0] & 0x80) ? UINT64_MAX : 0;

	bytes = cql_varint_minimal(bytes);
	if (bytes.len > sizeof(n))
		return false;
	for (size_t i = 0; i < bytes.len; i++)
		n = n << 8 | (uint8_t)bytes.ptr[i];
	*ret = (int64_t)n;
	return true;
}

/* The number of two's complement; NULL when memory is short. */
static BIGNUM *
big_read(struct str bytes)
{
	BIGNUM *n = BN_bin2bn((const unsigned char *)bytes.ptr, (int)bytes.len, NULL);
	AUTO_BIGNUM *power = NULL;

	if (!n || !bytes.len || !(bytes.ptr[0] & 0x80))
		return n;
	power = BN_new();
	if (!power || !BN_set_bit(power, (int)bytes.len * 8) || !BN_sub(n, n, power)) {
		BN_free(n);
		return NULL;
	}
	return n;
}

static enum status
too_long(struct cql *q)
{
	return cql_fail(q, CQL_E_NUMBER_LONG, STR("10000"));
}

/* As two's complement, behind `front` bytes that are the caller's. */
static enum status
big_put(struct cql *q, const BIGNUM *n, size_t front, struct str *ret)
{
	/* A negative number of k bits needs k + 1 of them, or k if it is a power of two. */
	size_t len = (size_t)BN_num_bits(n) / 8 + 1;
	char *bytes = arena_bytes(q->arena, front + len);
	struct str minimal;

	if (len > CQL_VARINT_BYTES)
		return too_long(q);
	if (!bytes)
		return STATUS_LIMIT;
	if (BN_bn2binpad(n, (unsigned char *)bytes + front, (int)len) < 0)
		return STATUS_NOMEM;
	if (BN_is_negative(n)) {
		unsigned carry = 1;

		for (size_t i = front + len; i-- > front;) {
			carry += (uint8_t)~bytes[i];
			bytes[i] = (char)carry;
			carry >>= 8;
		}
	}
	minimal = cql_varint_minimal(str_of(bytes + front, len));
	memmove(bytes + front, minimal.ptr, minimal.len);
	*ret = str_of(bytes, front + minimal.len);
	return STATUS_OK;
}

static int32_t
scale_of(struct str decimal)
{
	return (int32_t)big_endian_32(decimal.ptr);
}

static enum status
decimal_put(struct cql *q, const BIGNUM *n, int64_t scale, struct str *ret)
{
	struct str put;

	if (scale < INT32_MIN || scale > INT32_MAX)
		return too_long(q);
	TRY(big_put(q, n, CQL_SCALE_BYTES, &put));
	big_endian_put_32((char *)(uintptr_t)put.ptr, (uint32_t)scale);
	*ret = put;
	return STATUS_OK;
}

/* ---- Texts ---- */

/* Digits in the arena, so that they end in a NUL. NULL: not a number, or too long. */
static BIGNUM *
big_parse(struct cql *q, struct str digits, bool negative)
{
	struct str text;
	BIGNUM *n = NULL;

	if (!digits.len || digits.len > CQL_DIGITS)
		return NULL;
	for (size_t i = 0; i < digits.len; i++)
		if (digits.ptr[i] < '0' || digits.ptr[i] > '9')
			return NULL;
	text = arena_dup(q->arena, digits);
	if (!text.ptr || !BN_dec2bn(&n, text.ptr))
		return NULL;
	BN_set_negative(n, negative);
	return n;
}

static bool
skip_sign(struct str *text)
{
	bool negative = text->len && text->ptr[0] == '-';

	if (text->len && (text->ptr[0] == '-' || text->ptr[0] == '+'))
		*text = str_skip(*text, 1);
	return negative;
}

bool
cql_varint_parse(struct cql *q, struct str text, struct str *ret)
{
	bool negative = skip_sign(&text);
	AUTO_BIGNUM *n = big_parse(q, text, negative);

	*ret = (struct str){ NULL, 0 };
	return n && big_put(q, n, 0, ret) == STATUS_OK;
}

void
cql_varint_print(struct buf *out, struct str bytes)
{
	int64_t small;
	AUTO_BIGNUM *n = NULL;
	char *digits;

	if (cql_varint_to_int(bytes, &small)) {
		buf_printf(out, "%lld", (long long)small);
		return;
	}
	n = big_read(bytes);
	digits = n ? BN_bn2dec(n) : NULL;
	if (!digits) {
		out->failed = STATUS_NOMEM;
		return;
	}
	buf_append_cstr(out, digits);
	OPENSSL_free(digits);
}

/*
 * Cuts the exponent off the text's end. Only the scale has to fit into 32 bits, which is the number
 * of digits behind the point minus the exponent. So an exponent may be somewhat larger than that.
 */
static bool
cut_exponent(struct str *text, int64_t *ret)
{
	for (size_t i = 0; i < text->len; i++) {
		if (text->ptr[i] != 'e' && text->ptr[i] != 'E')
			continue;
		struct str exponent = str_skip(*text, i + 1);

		text->len = i;
		return str_to_i64(exponent, ret) && *ret >= 2LL * INT32_MIN &&
		       *ret <= 2LL * INT32_MAX;
	}
	*ret = 0;
	return true;
}

bool
cql_decimal_parse(struct cql *q, struct str text, struct str *ret)
{
	bool negative = skip_sign(&text);
	int64_t exponent;
	const char *point;
	char *digits;
	size_t behind = 0;

	*ret = (struct str){ NULL, 0 };
	if (!cut_exponent(&text, &exponent) || !text.len || text.len > CQL_DIGITS)
		return false;
	digits = arena_bytes(q->arena, text.len);
	if (!digits)
		return false;
	memcpy(digits, text.ptr, text.len);
	point = memchr(text.ptr, '.', text.len);
	if (point) {
		size_t at = (size_t)(point - text.ptr);

		behind = text.len - at - 1;
		memmove(digits + at, digits + at + 1, behind);
		text.len--;
	}
	AUTO_BIGNUM *n = big_parse(q, str_of(digits, text.len), negative);

	return n && decimal_put(q, n, (int64_t)behind - exponent, ret) == STATUS_OK;
}

/* Digits without a sign, with the point where the scale says, or an exponent. */
static void
print_scaled(struct buf *out, struct str digits, int64_t scale)
{
	int64_t adjusted = (int64_t)digits.len - 1 - scale;

	if (scale == 0) {
		buf_append_str(out, digits);
	} else if (scale > 0 && adjusted >= -6) {
		int64_t front = (int64_t)digits.len - scale;

		if (front > 0) {
			buf_append(out, digits.ptr, (size_t)front);
			buf_append_byte(out, '.');
			buf_append_str(out, str_skip(digits, (size_t)front));
			return;
		}
		buf_append_cstr(out, "0.");
		for (; front < 0; front++)
			buf_append_byte(out, '0');
		buf_append_str(out, digits);
	} else {
		buf_append_byte(out, (uint8_t)digits.ptr[0]);
		if (digits.len > 1) {
			buf_append_byte(out, '.');
			buf_append_str(out, str_skip(digits, 1));
		}
		buf_printf(out, "E%+lld", (long long)adjusted);
	}
}

void
cql_decimal_print(struct buf *out, struct str bytes)
{
	AUTO_BIGNUM *n = big_read(str_skip(bytes, CQL_SCALE_BYTES));
	char *text = n ? BN_bn2dec(n) : NULL;
	struct str digits;

	if (!text) {
		out->failed = STATUS_NOMEM;
		return;
	}
	digits = str_from_cstr(text);
	if (skip_sign(&digits))
		buf_append_byte(out, '-');
	print_scaled(out, digits, scale_of(bytes));
	OPENSSL_free(text);
}

/* ---- Arithmetic ---- */

/* STATUS_INVALID without words: by zero. */
static enum status
big_compute(enum cql_sum op, BIGNUM *ret, const BIGNUM *a, const BIGNUM *b, BN_CTX *context)
{
	int done;

	if ((op == CQL_SUM_DIVIDE || op == CQL_SUM_MODULO) && BN_is_zero(b))
		return STATUS_INVALID;
	switch (op) {
	case CQL_SUM_ADD:
		done = BN_add(ret, a, b);
		break;
	case CQL_SUM_SUBTRACT:
		done = BN_sub(ret, a, b);
		break;
	case CQL_SUM_MULTIPLY:
		done = BN_mul(ret, a, b, context);
		break;
	case CQL_SUM_DIVIDE:
		done = BN_div(ret, NULL, a, b, context);
		break;
	case CQL_SUM_MODULO:
	default:
		done = BN_div(NULL, ret, a, b, context);
		break;
	}
	return done ? STATUS_OK : STATUS_NOMEM;
}

static void
free_context(BN_CTX **context)
{
	BN_CTX_free(*context);
}

enum status
cql_varint_compute(struct cql *q, enum cql_sum op, struct str a, struct str b, struct str *ret)
{
	AUTO_BIGNUM *first = big_read(a), *second = big_read(b), *n = BN_new();
	AUTO(free_context) BN_CTX *context = BN_CTX_new();

	if (!first || !second || !n || !context)
		return STATUS_NOMEM;
	TRY(big_compute(op, n, first, second, context));
	return big_put(q, n, 0, ret);
}

/* n · 10^digits. */
static enum status
shift(struct cql *q, BIGNUM *n, int64_t digits, BN_CTX *context)
{
	AUTO_BIGNUM *power = BN_new(), *ten = BN_new(), *exponent = BN_new();

	if (digits > DECIMAL_ALIGN_DIGITS)
		return too_long(q);
	if (!power || !ten || !exponent || !BN_set_word(ten, 10) ||
	    !BN_set_word(exponent, (BN_ULONG)digits) || !BN_exp(power, ten, exponent, context) ||
	    !BN_mul(n, n, power, context))
		return STATUS_NOMEM;
	return STATUS_OK;
}

static int64_t
precision(const BIGNUM *n)
{
	char *digits = BN_bn2dec(n);
	int64_t count;

	if (!digits)
		return -1;
	count = (int64_t)strlen(digits) - (digits[0] == '-');
	OPENSSL_free(digits);
	return count;
}

/* Without zeros at the end; 0 has the scale 0. */
static enum status
strip(BIGNUM *n, int64_t *scale)
{
	AUTO_BIGNUM *rest = BN_dup(n);

	if (!rest)
		return STATUS_NOMEM;
	if (BN_is_zero(n)) {
		*scale = 0;
		return STATUS_OK;
	}
	while (BN_div_word(rest, 10) == 0) {
		if (!BN_copy(n, rest))
			return STATUS_NOMEM;
		--*scale;
	}
	return STATUS_OK;
}

/* Adds 1 away from zero to the quotient if the remainder is half of the divisor or more. */
static enum status
round_half_up(BIGNUM *quotient, BIGNUM *rest, const BIGNUM *divisor, bool negative)
{
	if (!BN_lshift1(rest, rest))
		return STATUS_NOMEM;
	if (BN_ucmp(rest, divisor) < 0)
		return STATUS_OK;
	return (negative ? BN_sub_word(quotient, 1) : BN_add_word(quotient, 1)) ? STATUS_OK
										: STATUS_NOMEM;
}

/* As Cassandra's DecimalType: the scale follows from where the first digit is expected. */
static enum status
decimal_divide(struct cql *q, BIGNUM *a, int64_t a_scale, BIGNUM *b, int64_t b_scale,
	       BN_CTX *context, struct str *ret)
{
	AUTO_BIGNUM *quotient = BN_new(), *rest = BN_new();
	int64_t scale = DECIMAL_DIVIDE_DIGITS -
			((precision(a) - a_scale) - (precision(b) - b_scale));
	bool negative = BN_is_negative(a) != BN_is_negative(b);
	int64_t by;

	if (!quotient || !rest)
		return STATUS_NOMEM;
	if (BN_is_zero(b))
		return STATUS_INVALID;
	scale = scale > a_scale ? scale : a_scale;
	scale = scale > b_scale ? scale : b_scale;
	scale = scale > DECIMAL_DIVIDE_DIGITS ? scale : DECIMAL_DIVIDE_DIGITS;
	scale = scale < DECIMAL_DIVIDE_SCALE ? scale : DECIMAL_DIVIDE_SCALE;
	by = scale - a_scale + b_scale;
	TRY(by >= 0 ? shift(q, a, by, context) : shift(q, b, -by, context));
	if (!BN_div(quotient, rest, a, b, context))
		return STATUS_NOMEM;
	TRY(round_half_up(quotient, rest, b, negative));
	TRY(strip(quotient, &scale));
	return decimal_put(q, quotient, scale, ret);
}

enum status
cql_decimal_compute(struct cql *q, enum cql_sum op, struct str a, struct str b, struct str *ret)
{
	AUTO_BIGNUM *first = big_read(str_skip(a, CQL_SCALE_BYTES));
	AUTO_BIGNUM *second = big_read(str_skip(b, CQL_SCALE_BYTES)), *n = BN_new();
	AUTO(free_context) BN_CTX *context = BN_CTX_new();
	int64_t a_scale = scale_of(a), b_scale = scale_of(b);
	int64_t scale = a_scale > b_scale ? a_scale : b_scale;

	if (!first || !second || !n || !context)
		return STATUS_NOMEM;
	if (op == CQL_SUM_DIVIDE)
		return decimal_divide(q, first, a_scale, second, b_scale, context, ret);
	if (op == CQL_SUM_MULTIPLY) {
		scale = a_scale + b_scale;
	} else {
		TRY(shift(q, first, scale - a_scale, context));
		TRY(shift(q, second, scale - b_scale, context));
	}
	TRY(big_compute(op, n, first, second, context));
	return decimal_put(q, n, scale, ret);
}

/* ---- Other types ---- */

double
cql_double_of_text(struct buf *text, double without)
{
	double d = without;

	buf_append_byte(text, '\0');
	if (buf_status(text) == STATUS_OK)
		d = strtod(text->ptr, NULL);
	buf_release(text);
	return d;
}

double
cql_varint_to_double(struct str bytes)
{
	struct buf text = BUF_SHORT(CQL_DIGITS * 2);

	cql_varint_print(&text, bytes);
	return cql_double_of_text(&text, 0);
}

double
cql_decimal_to_double(struct str bytes)
{
	struct buf text = BUF_SHORT(CQL_DIGITS * 2);

	cql_varint_print(&text, str_skip(bytes, CQL_SCALE_BYTES));
	buf_printf(&text, "e%lld", -(long long)scale_of(bytes));
	return cql_double_of_text(&text, 0);
}

enum status
cql_decimal_of_double(struct cql *q, double d, struct str *ret)
{
	struct buf text = BUF_SHORT(DOUBLE_TEXT_BYTES);
	bool done;

	cql_double_print(&text, d);
	done = buf_status(&text) == STATUS_OK && cql_decimal_parse(q, buf_str(&text), ret);
	buf_release(&text);
	return done ? STATUS_OK : STATUS_LIMIT;
}

enum status
cql_decimal_of_varint(struct cql *q, struct str bytes, struct str *ret)
{
	char *copy = arena_bytes(q->arena, CQL_SCALE_BYTES + bytes.len);

	if (!copy)
		return STATUS_LIMIT;
	memset(copy, 0, CQL_SCALE_BYTES);
	memcpy(copy + CQL_SCALE_BYTES, bytes.ptr, bytes.len);
	*ret = str_of(copy, CQL_SCALE_BYTES + bytes.len);
	return STATUS_OK;
}

enum status
cql_decimal_to_varint(struct cql *q, struct str bytes, struct str *ret)
{
	AUTO_BIGNUM *n = big_read(str_skip(bytes, CQL_SCALE_BYTES)), *power = BN_new();
	AUTO(free_context) BN_CTX *context = BN_CTX_new();
	int64_t scale = scale_of(bytes);

	if (!n || !power || !context || !BN_one(power))
		return STATUS_NOMEM;
	if (scale > precision(n))
		return cql_varint_of_int(q, 0, ret);
	if (scale <= 0) {
		TRY(shift(q, n, BN_is_zero(n) ? 0 : -scale, context));
	} else {
		TRY(shift(q, power, scale, context));
		if (!BN_div(n, NULL, n, power, context))
			return STATUS_NOMEM;
	}
	return big_put(q, n, 0, ret);
}

/* ---- Doubles as Java writes them ---- */

/* "d.ddde±x" as Java has it: with a point, and an exponent from 10^7 on and below 10^-3. */
static void
print_java(struct buf *out, char *text)
{
	char *e = strchr(text, 'e'), digits[DOUBLE_TEXT_BYTES];
	int exponent = atoi(e + 1);
	size_t count = 0;
	struct str sign = text[0] == '-' ? STR("-") : STR("");

	for (const char *c = text; c < e; c++)
		if (*c >= '0' && *c <= '9')
			digits[count++] = *c;
	while (count > 1 && digits[count - 1] == '0')
		count--;
	buf_append_str(out, sign);
	if (exponent >= -3 && exponent < 7) {
		for (int i = 0; i <= exponent; i++)
			buf_append_byte(out, (size_t)i < count ? (uint8_t)digits[i] : '0');
		if (exponent < 0)
			buf_append_byte(out, '0');
		buf_append_byte(out, '.');
		for (int i = exponent + 1; i < 0; i++)
			buf_append_byte(out, '0');
		size_t from = exponent < 0 ? 0 : (size_t)exponent + 1;

		if (from >= count)
			buf_append_byte(out, '0');
		else
			buf_append(out, digits + from, count - from);
		return;
	}
	buf_append_byte(out, (uint8_t)digits[0]);
	buf_append_byte(out, '.');
	if (count == 1)
		buf_append_byte(out, '0');
	else
		buf_append(out, digits + 1, count - 1);
	buf_printf(out, "E%d", exponent);
}

/* True where Java has a word, or a zero. */
static bool
print_special(struct buf *out, double d)
{
	if (isnan(d))
		buf_append_cstr(out, "NaN");
	else if (isinf(d))
		buf_append_cstr(out, d < 0 ? "-Infinity" : "Infinity");
	else if (d == 0)
		buf_append_cstr(out, signbit(d) ? "-0.0" : "0.0");
	else
		return false;
	return true;
}

void
cql_double_print(struct buf *out, double d)
{
	char text[DOUBLE_TEXT_BYTES];

	if (print_special(out, d))
		return;
	for (int digits = 14; digits <= 16; digits++) {
		snprintf(text, sizeof(text), "%.*e", digits, d);
		if (strtod(text, NULL) == d)
			break;
	}
	print_java(out, text);
}

void
cql_float_print(struct buf *out, float f)
{
	char text[DOUBLE_TEXT_BYTES];

	if (print_special(out, (double)f))
		return;
	for (int digits = 5; digits <= 8; digits++) {
		snprintf(text, sizeof(text), "%.*e", digits, (double)f);
		if (strtof(text, NULL) == f)
			break;
	}
	print_java(out, text);
}
