/* CRC-32C (Castagnoli), the checksum of OP_MSG. Thread-safe. */
#ifndef FROND_DOOR_MONGO_WIRE_CRC32C_H
#define FROND_DOOR_MONGO_WIRE_CRC32C_H

#include "base/str.h"

/* The checksum of `s`; `crc` is that of the bytes before it, or 0. */
uint32_t crc32c(uint32_t crc, struct str s);

#endif
