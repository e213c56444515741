/*
 * Records of RocksDB's logs, as bytes: a checksum, a length and a type, then the payload. RocksDB's
 * wiki describes them in "Write Ahead Log File Format"; directory.h has the sizes.
 */
#ifndef FROND_KV_EMBEDDED_LOG_RECORD_H
#define FROND_KV_EMBEDDED_LOG_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/big_endian.h"
#include "kv/embedded/crc.h"
#include "kv/embedded/directory.h"

enum {
	LOG_MOST_BYTES = 1024 * 1024 * 1024, /* of a log: RocksDB begins a new one far below that */

	LOG_RECORD_LENGTH = 4, /* where in the header it is; little-endian */
	LOG_RECORD_TYPE = 6,

	LOG_RECORD_FULL = 1, /* types: a whole batch, or the first or last part of one */
	LOG_RECORD_FIRST = 2,
	LOG_RECORD_LAST = 4, /* the largest type of a log that is not recycled */

	/*
	 * What a batch of this engine ends with: a put (1) of a key of nine bytes and a value of
	 * eight.
	 */
	LOG_BATCH_END_BYTES = 20,
	LOG_BATCH_END_VALUE = 12, /* where the value is */

	/*
	 * What it has in front of that where the log is kept: a put of a key of six bytes and a
	 * value: the version before, the time, and how the name of the history begins.
	 */
	LOG_LINK_BYTES = 33,
	LOG_LINK_KEY = 9, /* as many bytes, then the value: */
	LOG_LINK_VALUE_BYTES = 24,
	LOG_LINK_TIME = 8, /* where in the value it is */
	LOG_LINK_HISTORY = 16,
	LOG_LINK_HISTORY_BYTES = 8,
};

static inline uint32_t
log_record_crc(const uint8_t *header)
{
	return (uint32_t)header[0] | (uint32_t)header[1] << 8 | (uint32_t)header[2] << 16 |
	       (uint32_t)header[3] << 24;
}

/* Of the payload. */
static inline size_t
log_record_length(const uint8_t *header)
{
	return (size_t)header[LOG_RECORD_LENGTH] | (size_t)header[LOG_RECORD_LENGTH + 1] << 8;
}

/* True if a record that begins at `at` ends at `end` or before, and has the right checksum. */
static inline bool
log_record_is_whole(const uint32_t crc_table[CRC_TABLE], const uint8_t *bytes, size_t at,
		    size_t end)
{
	const uint8_t *header = bytes + at;
	uint32_t crc = crc_begin;
	size_t behind;

	if (at + LOG_HEADER_BYTES > end)
		return false;
	behind = at + LOG_HEADER_BYTES + log_record_length(header);
	if (behind > end)
		return false;
	crc = crc_add(crc_table, crc, header[LOG_RECORD_TYPE]);
	for (size_t i = at + LOG_HEADER_BYTES; i < behind; i++)
		crc = crc_add(crc_table, crc, bytes[i]);
	return crc_finish(crc) == log_record_crc(header);
}

/*
 * The version that a batch makes, by the last LOG_BATCH_END_BYTES of its record; 0 if it is no
 * batch of this engine.
 */
static inline uint64_t
log_batch_version(const uint8_t end[LOG_BATCH_END_BYTES])
{
	static const uint8_t put[LOG_BATCH_END_VALUE] = "\x01\x09\xff/version\x08";

	return memcmp(end, put, sizeof(put)) == 0 ? big_endian_64(end + LOG_BATCH_END_VALUE) : 0;
}

/* What a batch of a log that is kept says of itself. */
struct log_link {
	uint64_t version; /* that it makes; 0: it is no batch of this engine */
	bool linked;      /* the rest is there */
	uint64_t before;  /* the version that was published when it was written */
	uint64_t time_ms; /* since 1970 */
	uint8_t history[LOG_LINK_HISTORY_BYTES]; /* how its name begins */
};

static inline struct log_link
log_link_of(const char *payload, size_t len)
{
	static const uint8_t put[LOG_LINK_KEY] = "\x01\x06\xff/link\x18";
	const uint8_t *end = (const uint8_t *)payload + len;
	struct log_link link = { 0 };
	const uint8_t *value;

	if (len < LOG_BATCH_END_BYTES)
		return link;
	link.version = log_batch_version(end - LOG_BATCH_END_BYTES);
	if (!link.version || len < LOG_BATCH_END_BYTES + LOG_LINK_BYTES)
		return link;
	value = end - LOG_BATCH_END_BYTES - LOG_LINK_VALUE_BYTES;
	link.linked = memcmp(value - LOG_LINK_KEY, put, sizeof(put)) == 0;
	link.before = big_endian_64(value);
	link.time_ms = big_endian_64(value + LOG_LINK_TIME);
	memcpy(link.history, value + LOG_LINK_HISTORY, sizeof(link.history));
	return link;
}

#endif
