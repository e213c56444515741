/* How long a client's first message of TLS says that it is (RFC 8446, sections 4 and 5.1). */
#ifndef FROND_NET_TLS_HELLO_H
#define FROND_NET_TLS_HELLO_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

enum {
	/*
	 * The longest ClientHello that is accepted. Clients send one or two thousand bytes. OpenSSL
	 * would accept 131,396, and takes memory for all of them as soon as it has seen the length.
	 */
	TLS_HELLO_BYTES = 16 * 1024,
};

/* The answer to a longer one: the alert `decode_error`, as a record. */
#define TLS_HELLO_ALERT str_of("\x15\x03\x01\x00\x02\x02\x32", 7)

/*
 * `in` are the first bytes that a client has sent, of which the first is that of a handshake.
 * Returns false if they are too few to tell. Otherwise `*ret` is the length of the message, or 0 if
 * it is no ClientHello. OpenSSL refuses such a message before it takes memory for it.
 */
bool tls_hello_length(struct str in, size_t *ret);

#endif
