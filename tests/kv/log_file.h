/*
 * Logs as RocksDB writes them, made in memory byte by byte, so that tests know where each batch of
 * one begins and ends, and can spoil it.
 */
#ifndef FROND_TESTS_KV_LOG_FILE_H
#define FROND_TESTS_KV_LOG_FILE_H

#include "fixture.h"

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"
#include "kv/embedded/crc.h"
#include "kv/embedded/directory.h"

enum {
	LOG_FILE_MOST_BYTES = 1024 * 1024,
	LOG_FILE_BATCHES = 64,
	/* Types of records that log_record.h does not name. */
	LOG_FILE_MIDDLE = 3,
};

/* From its first header to behind its last record. */
struct log_file_batch {
	size_t begin;
	size_t end;
};

struct log_file {
	struct buf bytes;
	struct log_file_batch batches[LOG_FILE_BATCHES];
	size_t count; /* of batches */
	uint32_t crc_table[CRC_TABLE];
};

void log_file_init(struct log_file *f);
void log_file_fini(struct log_file *f);

/* Appends a record with the right checksum, whatever lies there. */
void log_file_add_record(struct log_file *f, uint8_t type, struct str payload);

/* Appends a batch in as many records as it takes, and notes where it is. */
void log_file_add_batch(struct log_file *f, struct str payload);

/* Appends bytes that are no record. */
void log_file_add(struct log_file *f, uint8_t byte, size_t count);

/* Puts the right checksum into the header of the record that begins there. */
void log_file_mend(struct log_file *f, size_t at);

/* Writes the first `len` bytes into the file, which is made or replaced. */
void log_file_write(const struct log_file *f, int dir, const char *name, size_t len);

/* ---- What batches consist of ---- */

/* The number of the first entry, and how many there are. */
void log_batch_begin(struct buf *b, uint64_t sequence, uint32_t count);

/* An entry of any type; without a value where `value.ptr` is NULL. */
void log_batch_entry(struct buf *b, uint8_t type, struct str key, struct str value);

/*
 * What batches of the engine end with where the log is kept: the version before and the time, with
 * the beginning of the history's name, and the version that the batch makes.
 */
void log_batch_link(struct buf *b, uint64_t before, uint64_t time_ms, const char history[8]);
void log_batch_version_end(struct buf *b, uint64_t version);

/* ---- A directory of logs ---- */

/* What a test of logs has: a cmocka setup and teardown. */
struct log_dir {
	struct fixture dir;
	char archive[300]; /* of the directory */
	int fd;
	struct log_file file; /* what is written next */
	struct err err;
};

int log_dir_setup(void **state);
int log_dir_teardown(void **state);

/* Begins another log. */
void log_dir_anew(struct log_dir *d);

/* Appends a batch that makes the version, with a value of so many bytes. */
void log_dir_add_version(struct log_dir *d, uint64_t version, size_t value_bytes);

/* Writes the first `len` bytes of the log. */
void log_dir_write(struct log_dir *d, const char *name, size_t len);

#endif
