#include "kv/embedded/crc.h"

static const uint32_t crc_polynomial = 0x82f63b78; /* CRC32C, reflected */
static const uint32_t crc_mask_delta = 0xa282ead8;

void
crc_make_table(uint32_t ret[CRC_TABLE])
{
	for (uint32_t i = 0; i < CRC_TABLE; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ crc_polynomial : crc >> 1;
		ret[i] = crc;
	}
}

uint32_t
crc_add(const uint32_t table[CRC_TABLE], uint32_t crc, uint8_t byte)
{
	return crc >> 8 ^ table[(uint8_t)(crc ^ byte)];
}

uint32_t
crc_finish(uint32_t crc)
{
	crc = ~crc;
	return (crc >> 15 | crc << 17) + crc_mask_delta;
}
