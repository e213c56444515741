/*
 * MD5 (RFC 1321) of many messages at once. One message after another is slow, since each step of
 * the function waits for the one before; messages beside each other, one a lane of the processor's
 * vectors, take hardly longer than one of them. It protects nothing: it names revisions as CouchDB
 * does.
 */
#ifndef FROND_BASE_MD5_H
#define FROND_BASE_MD5_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum {
	MD5_BYTES = 16,
	MD5_PARTS = 3,
};

/* What is hashed is the parts, one behind the other. */
struct md5_message {
	struct str parts[MD5_PARTS];
	uint8_t *ret; /* MD5_BYTES */
};

/*
 * Sixteen at a time take as long as two or three that libcrypto hashes one by one, whether there
 * are as many or not; the most is won where they are about equally long.
 */
void md5_many(const struct md5_message *messages, size_t count);

#endif
