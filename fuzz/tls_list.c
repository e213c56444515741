/* Any bytes as a list of the settings of TLS: its elements lie in it, in order, and are text. */
#include <stdlib.h>

#include "net/tls_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = str_of(data, size);
	const char *at = rest.ptr;
	struct str element;

	while (tls_list_next(&rest, &element)) {
		if (!element.len || element.ptr < at ||
		    element.ptr + element.len > (const char *)data + size)
			abort();
		if (memchr(element.ptr, ',', element.len) || !str_eq(str_trim(element), element))
			abort();
		at = element.ptr + element.len;
	}
	return 0;
}
