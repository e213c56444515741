#include "peer.h"

#include <bson/bson.h>

bool
peer_accepts(const char *document, size_t len)
{
	bson_t b;

	return bson_init_static(&b, (const uint8_t *)document, len) &&
	       bson_validate(&b, BSON_VALIDATE_UTF8 | BSON_VALIDATE_UTF8_ALLOW_NULL, NULL);
}

char *
peer_write_json(const char *document, size_t len)
{
	bson_t b;

	if (!bson_init_static(&b, (const uint8_t *)document, len))
		return NULL;
	return bson_as_canonical_extended_json(&b, NULL);
}

char *
peer_read_json(const char *text, size_t len, size_t *ret_len)
{
	bson_error_t error;
	char *bytes;
	bson_t b;

	if (!bson_init_from_json(&b, text, (ssize_t)len, &error))
		return NULL;
	*ret_len = b.len;
	bytes = bson_malloc(b.len);
	memcpy(bytes, bson_get_data(&b), b.len);
	bson_destroy(&b);
	return bytes;
}

void
peer_print_decimal(uint64_t low, uint64_t high, char ret[PEER_DECIMAL_BYTES])
{
	const bson_decimal128_t d = { .low = low, .high = high };

	_Static_assert(PEER_DECIMAL_BYTES == BSON_DECIMAL128_STRING, "libbson's own");
	bson_decimal128_to_string(&d, ret);
}
