/*
 * CRC32C, byte by byte: the checksum of log records, of files of backups and, in old formats, of
 * blocks of tables. Nothing here is fast; it serves what looks at damage.
 */
#ifndef FROND_KV_EMBEDDED_CRC_H
#define FROND_KV_EMBEDDED_CRC_H

#include <stdint.h>

enum {
	CRC_TABLE = 256,
};

static const uint32_t crc_begin = UINT32_MAX;

void crc_make_table(uint32_t ret[CRC_TABLE]);
uint32_t crc_add(const uint32_t table[CRC_TABLE], uint32_t crc, uint8_t byte);

/* The checksum as RocksDB stores it: masked, since a checksum of checksums is weak. */
uint32_t crc_finish(uint32_t crc);

#endif
