#include "rdb/crc64.h"

#include <pthread.h>

#include "loop/step.h"

enum {
	CRC_SLICES = 8, /* bytes that are taken at once */
	CRC_BYTES = 256,
	CRC_COUNT_BYTES = 64 * 1024, /* between two counts of steps */
};

#define CRC_POLYNOMIAL UINT64_C(0x95ac9329ac4bc9b5) /* Jones's, its bits reversed */

static uint64_t table[CRC_SLICES][CRC_BYTES];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void
table_make(void)
{
	for (uint64_t i = 0; i < CRC_BYTES; i++) {
		uint64_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? CRC_POLYNOMIAL : 0);
		table[0][i] = crc;
	}
	for (int slice = 1; slice < CRC_SLICES; slice++)
		for (int i = 0; i < CRC_BYTES; i++)
			table[slice][i] = table[slice - 1][i] >> 8 ^
					  table[0][table[slice - 1][i] & 0xff];
}

static uint64_t
crc_add(uint64_t crc, struct str s)
{
	const uint8_t *p = (const uint8_t *)s.ptr;
	size_t left = s.len;

	for (; left >= CRC_SLICES; left -= CRC_SLICES, p += CRC_SLICES) {
		uint64_t mixed = 0;

		for (int i = 0; i < CRC_SLICES; i++)
			mixed ^= table[CRC_SLICES - 1 - i][(crc >> 8 * i & 0xff) ^ p[i]];
		crc = mixed;
	}
	for (; left; left--)
		crc = crc >> 8 ^ table[0][(crc ^ *p++) & 0xff];
	return crc;
}

uint64_t
rdb_crc64(uint64_t crc, struct str s)
{
	pthread_once(&table_once, table_make);
	while (s.len) {
		size_t n = s.len < CRC_COUNT_BYTES ? s.len : CRC_COUNT_BYTES;

		crc = crc_add(crc, str_of(s.ptr, n));
		step_pause((uint32_t)(n / STEP_COPIED_BYTES));
		s = str_skip(s, n);
	}
	return crc;
}
