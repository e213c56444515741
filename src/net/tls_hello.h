/* How long a client's first message of TLS says that it is (RFC 8446, sections 4 and 5.1). */
#ifndef FROND_NET_TLS_HELLO_H
#define FROND_NET_TLS_HELLO_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

enum {
	/*
	 * The longest ClientHello that is taken. OpenSSL takes 131,396 bytes, and has memory for
	 * all of them as soon as the length has come. Clients send one or two thousand.
	 */
	TLS_HELLO_BYTES = 16 * 1024,
};

/* The alert `decode_error`, as a record: the answer to a longer one. */
#define TLS_HELLO_ALERT str_of("\x15\x03\x01\x00\x02\x02\x32", 7)

/*
 * `in` are the first bytes that a client has sent, of which the first is that of a handshake.
 * Returns false if they are too few to tell. Otherwise `*ret` is the length of the message, or 0 if
 * it is no ClientHello, which OpenSSL refuses before it has memory for it.
 */
bool tls_hello_length(struct str in, size_t *ret);

#endif
