/*
 * Base64 (RFC 4648) in two alphabets: the standard one, with padding, and the one for URLs and
 * cookies, without padding. Thread-safe.
 */
#ifndef FROND_BASE_BASE64_H
#define FROND_BASE_BASE64_H

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

enum base64_alphabet {
	BASE64_STANDARD, /* '+' and '/', padded with '=' */
	BASE64_URL,      /* '-' and '_', no padding */
};

/* Appends the encoding of `s`. The buffer remembers a failure (buf_status()). */
void base64_encode(struct buf *b, struct str s, enum base64_alphabet alphabet);

/*
 * Appends the bytes that `s` encodes and returns buf_status(). Returns STATUS_INVALID and appends
 * nothing if `s` has a character outside the alphabet (white space included), missing or needless
 * padding, or left-over bits that are not zero. BASE64_URL also accepts complete padding.
 */
MUST_USE enum status base64_decode(struct buf *b, struct str s, enum base64_alphabet alphabet);

#endif
