/* UTF-8 as RFC 3629 defines it: no surrogates, no overlong forms, nothing above U+10FFFF. */
#ifndef FROND_BASE_UTF8_H
#define FROND_BASE_UTF8_H

#include "base/str.h"

/*
 * Returns the length of the longest valid prefix of `s`, which is s.len when all of `s` is valid.
 */
size_t utf8_valid_prefix(struct str s);

/* Writes 1 to 4 bytes and returns their number. `code` must be a valid scalar value. */
size_t utf8_encode(uint32_t code, char ret[4]);

#endif
