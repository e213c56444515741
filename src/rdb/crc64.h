/* CRC-64 as Redis has it at the end of its files and payloads (Jones). Thread-safe. */
#ifndef FROND_RDB_CRC64_H
#define FROND_RDB_CRC64_H

#include "base/str.h"

/* The checksum of `s`; `crc` is that of the bytes before it, or 0. Counts steps. */
uint64_t rdb_crc64(uint64_t crc, struct str s);

#endif
