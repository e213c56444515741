#include "net/tls_hello.h"

#include <stdint.h>

enum {
	RECORD_HEADER_BYTES = 5, /* type, version, length of what follows */
	RECORD_HANDSHAKE = 22,
	MESSAGE_HEADER_BYTES = 4, /* type, length */
	MESSAGE_CLIENT_HELLO = 1,
};

bool
tls_hello_length(struct str in, size_t *ret)
{
	uint8_t header[MESSAGE_HEADER_BYTES];
	size_t have = 0;

	*ret = 0;
	/* The header of the message may be in several records. */
	while (have < MESSAGE_HEADER_BYTES) {
		const uint8_t *record = (const uint8_t *)in.ptr;
		size_t length;

		if (in.len < RECORD_HEADER_BYTES)
			return false;
		length = (size_t)record[3] << 8 | record[4];
		/* OpenSSL refuses another record, and an empty one. */
		if (record[0] != RECORD_HANDSHAKE || !length)
			return true;
		in = str_skip(in, RECORD_HEADER_BYTES);
		for (; length && in.len && have < MESSAGE_HEADER_BYTES; length--) {
			header[have++] = (uint8_t)in.ptr[0];
			in = str_skip(in, 1);
		}
	}
	if (header[0] == MESSAGE_CLIENT_HELLO)
		*ret = (size_t)header[1] << 16 | (size_t)header[2] << 8 | header[3];
	return true;
}
