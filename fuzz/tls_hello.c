/*
 * Any bytes as the first ones of a connection with TLS: a length that is known stays the same
 * whatever follows, and is not known from fewer bytes than a header has.
 */
#include <stdlib.h>

#include "net/tls_hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t length, less;
	bool known = tls_hello_length(str_of(data, size), &length);

	if (length && (!known || size < 9))
		abort();
	for (size_t n = 0; n < size && n < 64; n++) {
		if (tls_hello_length(str_of(data, n), &less) && (!known || less != length))
			abort();
	}
	return 0;
}
