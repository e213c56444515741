/*
 * Hashes as CouchDB's ini files have them: "-pbkdf2:sha256-HASH,SALT,ROUNDS", "-pbkdf2-…" for
 * SHA-1, "-hashed-HASH,SALT" of old ones.
 */
#ifndef FROND_ACCESS_HASHED_TEXT_H
#define FROND_ACCESS_HASHED_TEXT_H

#include "access/verifier.h"
#include "base/buf.h"

/* False for what is no such hash. */
bool hashed_text_parse(struct str text, struct verifier *ret);
void hashed_text_write(const struct verifier *v, struct buf *out);

#endif
