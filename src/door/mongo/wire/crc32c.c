#include "door/mongo/wire/crc32c.h"

#include <pthread.h>

enum {
	CRC_SLICES = 8, /* bytes that are taken in one step */
	CRC_BYTES = 256,
};

#define CRC_POLYNOMIAL UINT32_C(0x82f63b78) /* Castagnoli's, its bits reversed */

static uint32_t table[CRC_SLICES][CRC_BYTES];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void
table_make(void)
{
	for (uint32_t i = 0; i < CRC_BYTES; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? CRC_POLYNOMIAL : 0);
		table[0][i] = crc;
	}
	for (int slice = 1; slice < CRC_SLICES; slice++)
		for (uint32_t i = 0; i < CRC_BYTES; i++)
			table[slice][i] = table[slice - 1][i] >> 8 ^
					  table[0][table[slice - 1][i] & 0xff];
}

uint32_t
crc32c(uint32_t crc, struct str s)
{
	const uint8_t *p = (const uint8_t *)s.ptr;
	size_t left = s.len;

	pthread_once(&table_once, table_make);
	crc = ~crc;
	for (; left >= CRC_SLICES; left -= CRC_SLICES, p += CRC_SLICES) {
		crc ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
		       (uint32_t)p[3] << 24;
		crc = table[7][crc & 0xff] ^ table[6][crc >> 8 & 0xff] ^
		      table[5][crc >> 16 & 0xff] ^ table[4][crc >> 24] ^ table[3][p[4]] ^
		      table[2][p[5]] ^ table[1][p[6]] ^ table[0][p[7]];
	}
	for (; left; left--)
		crc = crc >> 8 ^ table[0][(crc ^ *p++) & 0xff];
	return ~crc;
}
