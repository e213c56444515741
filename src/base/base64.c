#include "base/base64.h"

static const char alphabets[][65] = {
	[BASE64_STANDARD] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
	[BASE64_URL] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
};

void
base64_encode(struct buf *b, struct str s, enum base64_alphabet alphabet)
{
	const char *digits = alphabets[alphabet];

	if (!buf_reserve(b, (s.len + 2) / 3 * 4))
		return;
	for (size_t i = 0; i < s.len; i += 3) {
		size_t n = s.len - i < 3 ? s.len - i : 3;
		uint32_t bits = (uint32_t)(uint8_t)s.ptr[i] << 16;

		if (n > 1)
			bits |= (uint32_t)(uint8_t)s.ptr[i + 1] << 8;
		if (n > 2)
			bits |= (uint8_t)s.ptr[i + 2];
		for (size_t j = 0; j < 4; j++) {
			if (j <= n)
				buf_append_byte(b, (uint8_t)digits[bits >> (18 - 6 * j) & 63]);
			else if (alphabet == BASE64_STANDARD)
				buf_append_byte(b, '=');
		}
	}
}

/* Returns the digit's value, or -1. */
static int
base64_digit_value(char c, enum base64_alphabet alphabet)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == alphabets[alphabet][62])
		return 62;
	if (c == alphabets[alphabet][63])
		return 63;
	return -1;
}

enum status
base64_decode(struct buf *b, struct str s, enum base64_alphabet alphabet)
{
	size_t start = b->len;
	uint32_t bits = 0;
	unsigned have = 0;
	bool padded = s.len % 4 == 0;

	if (padded && s.len && s.ptr[s.len - 1] == '=')
		s.len -= s.ptr[s.len - 2] == '=' ? 2 : 1;
	else if (!padded && alphabet == BASE64_STANDARD)
		return STATUS_INVALID;
	if (s.len % 4 == 1)
		return STATUS_INVALID;

	for (size_t i = 0; i < s.len; i++) {
		int value = base64_digit_value(s.ptr[i], alphabet);

		if (value < 0)
			goto invalid;
		bits = bits << 6 | (uint32_t)value;
		have += 6;
		if (have >= 8) {
			have -= 8;
			buf_append_byte(b, (uint8_t)(bits >> have));
		}
	}
	if (bits & ((1U << have) - 1))
		goto invalid;
	return buf_status(b);

invalid:
	if (b->failed == STATUS_OK)
		b->len = start;
	return STATUS_INVALID;
}
