/*
 * Any bytes as a part of a store's files. The first byte says which part: entries of a block, a
 * block, a log, or records of a log, whose checksums are then made right. Nothing outside of the
 * input may be read, and holes lie inside of the log.
 */
#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kv/embedded/crc.h"
#include "kv/embedded/directory.h"
#include "kv/embedded/raw.h"
#include "look.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	ARENA_BYTES = 16 * 1024 * 1024,
	AS_ENTRIES = 0,
	AS_BLOCK = 1,
	AS_LOG = 2,
	AS_RECORDS = 3,
	CRC_BYTES = 4,
};

static struct arena *arena;
/* Of the log: a file in memory, which is opened by its number. */
static int dir = -1, file = -1;
static char name[16];
static volatile uint64_t looked; /* so that the looks are not left out */

static void
walk(struct raw_walk *w)
{
	struct raw_entry entry;
	struct str key, value;
	size_t left = w->rest.len;

	while (raw_block_next(w, &key, &value)) {
		looked += look(key);
		looked += look(value);
		if (raw_entry_parse(key, value, &entry))
			looked += look(entry.key);
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
	struct raw_log log;
	struct err err;

	if (ftruncate(file, 0) != 0 || pwrite(file, bytes, size, 0) != (ssize_t)size)
		abort();
	if (raw_log_read(dir, name, arena, &log, &err) != STATUS_OK)
		return;
	for (size_t i = 0; i < log.count; i++) {
		looked += look(log.entries[i].key);
		looked += look(log.entries[i].value);
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
	arena = arena_new(ARENA_BYTES);
	file = memfd_create("log", MFD_CLOEXEC);
	dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!arena || file < 0 || dir < 0)
		abort();
	(void)snprintf(name, sizeof(name), "%d", file);
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
