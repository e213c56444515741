/*
 * What a store's files have, read without RocksDB: entries of tables block by block, and of logs
 * record by record. Each block and each record has a checksum of its own, and is read without
 * anything else of the file: so damage costs the blocks and records that it has hit, and no more.
 *
 * An entry is a put or a deletion with its sequence number; the newest entry of a key counts
 * (salvage.c). Memory comes from the caller's arena. Threading: one thread.
 */
#ifndef FROND_KV_EMBEDDED_RAW_H
#define FROND_KV_EMBEDDED_RAW_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"
#include "kv/embedded/crc.h"

/* RocksDB's numbers; others are of uses that frond makes none of. */
enum raw_type {
	RAW_DELETE = 0,
	RAW_PUT = 1,
	RAW_DELETE_SINGLE = 7,
	RAW_DELETE_RANGE = 15, /* from `key` to in front of `value` */
};

struct raw_entry {
	struct str key;
	struct str value;
	uint64_t sequence;
	enum raw_type type;
};

/* True if an entry can have this type. */
bool raw_type_known(uint64_t type);

/* A number of RocksDB's, seven bits a byte. False: the bytes end inside it, or it is too large. */
bool raw_varint(struct str *rest, uint64_t *ret);

/* Bytes behind their length. False likewise. */
bool raw_bytes(struct str *rest, struct str *ret);

/*
 * Reads a file into memory from `at` on, `*len` bytes at most, and sets `*len` to how many there
 * were. What the disk does not give is zeros, which no checksum matches. STATUS_NOT_FOUND,
 * STATUS_IO if it cannot be opened.
 */
MUST_USE enum status raw_read(int dir, const char *name, uint64_t at, uint8_t *to, size_t *len,
			      struct err *err);

/* The size of a file. Statuses as those of raw_read(). */
MUST_USE enum status raw_size(int dir, const char *name, uint64_t *ret, struct err *err);

/* ---- Tables (raw_table.c, raw_block.c) ---- */

enum {
	/* No block has more, nor does what it unpacks to: one is full at 8 KB, or with a pair. */
	RAW_BLOCK_BYTES = 256 * 1024,
	RAW_TABLE_BYTES = 1024 * 1024 * 1024, /* a larger table is not read */
	RAW_TRAILER_BYTES = 5,                /* behind each block: its compression, its checksum */
};

/* A block whose checksum is right. */
struct raw_block {
	uint64_t at;    /* in the file */
	uint32_t bytes; /* without its trailer */
};

/* A part of a table in which there may have been blocks, and none could be read. */
struct raw_gap {
	uint64_t begin; /* in the file */
	uint64_t end;
	struct str before; /* the last key in front of it; empty: there is none */
	struct str after;  /* the first key behind it; ptr NULL: there is none */
};

struct raw_table {
	const char *name;
	struct raw_block *blocks; /* with data, in the order of the file, which is that of keys */
	size_t block_count;
	size_t block_cap;
	struct raw_gap *gaps;
	size_t gap_count;
	size_t gap_cap;
	struct raw_entry *ranges; /* deletions of ranges */
	size_t range_count;
	size_t range_cap;
	uint64_t entries; /* that were read, those deletions included */
	/* What the table says of itself, if that could be read. */
	bool told;
	uint64_t told_entries;
	uint64_t told_ranges;
	uint64_t told_bytes; /* of all blocks with data and their trailers: they are in front */
};

/* Finds the blocks of a table that are whole. Statuses as those of raw_read(), STATUS_NOMEM. */
MUST_USE enum status raw_table_survey(int dir, const char *name, struct arena *arena,
				      struct raw_table *ret, struct err *err);

/* The entries of a block, one after the other. */
struct raw_walk {
	struct str rest; /* behind the entry, without the block's end */
	struct buf key;  /* of the entry, with its trailer */
};

#define RAW_WALK_INIT                                                                              \
	{                                                                                          \
		.key = BUF_INIT(RAW_BLOCK_BYTES)                                                   \
	}

/* The next key and value, as they are; valid until the next call. False at the end. */
bool raw_block_next(struct raw_walk *w, struct str *ret_key, struct str *ret_value);

/* What finds blocks. */
struct raw_finder {
	uint8_t *bytes; /* RAW_BLOCK_BYTES: of a block that was found, as it is used */
	struct raw_walk walk;
	uint32_t crc_table[CRC_TABLE];
};

MUST_USE enum status raw_finder_init(struct raw_finder *f);
void raw_finder_fini(struct raw_finder *f);

/*
 * True if there is a whole block with entries or properties at the beginning of `from`. Then the
 * finder's walk is at its beginning, and `*ret_bytes` is how long it is, without its trailer.
 */
bool raw_block_find(struct raw_finder *f, struct str from, uint32_t *ret_bytes);

/* A key of a table as an entry. False: it is none. */
bool raw_entry_parse(struct str key, struct str value, struct raw_entry *ret);

/* ---- Logs (raw_log.c) ---- */

/* A part of a log that is no record and no filling. */
struct raw_hole {
	uint64_t begin; /* in the file */
	uint64_t end;
	bool cut; /* the file ends inside a record, as a write that was not finished leaves it */
};

struct raw_log {
	const char *name;
	struct raw_entry *entries; /* in the arena, in the order of sequence numbers */
	size_t count;
	size_t cap;
	uint64_t batches;
	struct raw_hole *holes;
	size_t hole_count;
	size_t hole_cap;
};

/* Reads all of a log that is whole. Statuses as those of raw_read(), STATUS_NOMEM. */
MUST_USE enum status raw_log_read(int dir, const char *name, struct arena *arena,
				  struct raw_log *ret, struct err *err);

#endif
