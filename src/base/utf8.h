/* UTF-8 as RFC 3629 has it: no surrogates, no overlong forms, nothing above U+10FFFF. */
#ifndef FROND_BASE_UTF8_H
#define FROND_BASE_UTF8_H

#include "base/str.h"

/* The length of the longest valid prefix of `s`; s.len when all of it is valid. */
size_t utf8_valid_prefix(struct str s);

/* Writes 1 to 4 bytes and returns how many; `code` must be a valid scalar value. */
size_t utf8_encode(uint32_t code, char ret[4]);

#endif
