#include "kv/embedded/filling.h"

enum {
	FIRST_BYTE = 5, /* of four */
	LAST_BYTE = 8,
};

void
fill_make(uint8_t page[FILL_PAGE_BYTES])
{
	uint64_t n = 1;

	for (size_t i = 0; i < FILL_PAGE_BYTES; i++) {
		n = n * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		page[i] = (uint8_t)(FIRST_BYTE + (n >> 62));
	}
}

bool
fill_is(const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (bytes[i] < FIRST_BYTE || bytes[i] > LAST_BYTE)
			return false;
	return true;
}
