/*
 * Any bytes as what a store's files have: entries of a block, a block, a log, and records of a log
 * whose checksums are right. Behind a byte that says which. What is read lies in memory that is
 * there.
 */
#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kv/embedded/crc.h"
#include "kv/embedded/directory.h"
#include "kv/embedded/raw.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	ARENA_BYTES = 16 * 1024 * 1024,
	AS_ENTRIES = 0,
	AS_BLOCK = 1,
	AS_LOG = 2,
	AS_RECORDS = 3,
	CRC_BYTES = 4,
};

#define LOG_NAME "log"

static struct arena *arena;
static int dir = -1;

/* Looks at each byte, so that the sanitizer does. */
static uint64_t
sum_of(struct str s)
{
	uint64_t sum = s.len;

	for (size_t i = 0; i < s.len; i++)
		sum = sum * 31 + (uint8_t)s.ptr[i];
	return sum;
}

static void
walk(struct raw_walk *w)
{
	struct raw_entry entry;
	struct str key, value;
	size_t left = w->rest.len;

	while (raw_block_next(w, &key, &value)) {
		(void)sum_of(key);
		(void)sum_of(value);
		if (raw_entry_parse(key, value, &entry))
			(void)sum_of(entry.key);
		if (w->rest.len >= left)
			abort();
		left = w->rest.len;
	}
}

static void
read_block(struct str bytes)
{
	struct raw_finder f;
	uint32_t found;

	if (raw_finder_init(&f) != STATUS_OK)
		return;
	if (raw_block_find(&f, bytes, &found)) {
		if (found > bytes.len)
			abort();
		walk(&f.walk);
	}
	raw_finder_fini(&f);
}

static void
read_log(const uint8_t *bytes, size_t size)
{
	int fd = openat(dir, LOG_NAME, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	struct raw_log log;
	struct err err;

	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
		abort();
	close(fd);
	if (raw_log_read(dir, LOG_NAME, arena, &log, &err) != STATUS_OK)
		return;
	for (size_t i = 0; i < log.count; i++) {
		(void)sum_of(log.entries[i].key);
		(void)sum_of(log.entries[i].value);
	}
	for (size_t i = 0; i < log.hole_count; i++)
		if (log.holes[i].begin >= log.holes[i].end || log.holes[i].end > size)
			abort();
}

/* Records of a type and a length each, with checksums, as a log has them. */
static void
read_records(const uint8_t *data, size_t size)
{
	uint32_t table[CRC_TABLE];
	uint8_t *log = calloc(1, (LOG_HEADER_BYTES + 1) * (size + 1));
	size_t len = 0;

	if (!log)
		abort();
	crc_make_table(table);
	while (size >= 2) {
		uint8_t *header = log + len;
		size_t n = data[1] < size - 2 ? data[1] : size - 2;
		uint32_t crc = crc_add(table, crc_begin, data[0]);

		for (size_t i = 0; i < n; i++)
			crc = crc_add(table, crc, data[2 + i]);
		crc = htole32(crc_finish(crc));
		memcpy(header, &crc, CRC_BYTES);
		header[CRC_BYTES] = (uint8_t)n;
		header[CRC_BYTES + 2] = data[0];
		memcpy(header + LOG_HEADER_BYTES, data + 2, n);
		len += LOG_HEADER_BYTES + n;
		data += 2 + n;
		size -= 2 + n;
	}
	read_log(log, len);
	free(log);
}

static void
begin(void)
{
	char path[] = "/tmp/frond-fuzz-raw-XXXXXX";

	arena = arena_new(ARENA_BYTES);
	if (!arena || !mkdtemp(path))
		abort();
	dir = open(path, O_RDONLY | O_DIRECTORY);
	if (dir < 0)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct raw_walk w = RAW_WALK_INIT;

	if (!arena)
		begin();
	arena_clear(arena);
	if (!size)
		return 0;
	switch (data[0]) {
	case AS_ENTRIES:
		w.rest = str_of(data + 1, size - 1);
		walk(&w);
		buf_release(&w.key);
		break;
	case AS_BLOCK:
		read_block(str_of(data + 1, size - 1));
		break;
	case AS_LOG:
		read_log(data + 1, size - 1);
		break;
	case AS_RECORDS:
		read_records(data + 1, size - 1);
		break;
	default:
		break;
	}
	return 0;
}
