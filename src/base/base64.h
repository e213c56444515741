/*
 * Base64 (RFC 4648): the standard alphabet with its padding, and the one for URLs and cookies
 * without it. Thread-safe.
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

/* Appends the encoding of `s`; a failure is remembered by the buffer. */
void base64_encode(struct buf *b, struct str s, enum base64_alphabet alphabet);

/*
 * Appends what `s` stands for. Strict: STATUS_INVALID for any other character, white space
 * included, for missing or needless padding and for bits left over that are not zero; nothing is
 * appended then. BASE64_URL takes padding too, where it is complete. Otherwise buf_status().
 */
MUST_USE enum status base64_decode(struct buf *b, struct str s, enum base64_alphabet alphabet);

#endif
