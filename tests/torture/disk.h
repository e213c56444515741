/*
 * A disk that can be interrupted: stands between RocksDB and the C library's file functions of the
 * program it is linked into, and watches the files of one directory. It can end the process at a
 * named point, as a crash or as a power cut, and make operations fail.
 *
 * A power cut loses what no sync has brought to the disk: files are cut back to their last synced
 * length, or somewhere behind it; of logs, sectors that were written over are as they were, or
 * written, in any order; logs and tables whose directory was not synced since they were made may be
 * gone.
 */
#ifndef FROND_TESTS_TORTURE_DISK_H
#define FROND_TESTS_TORTURE_DISK_H

#include <stdbool.h>
#include <stdint.h>

enum disk_file {
	DISK_LOG,
	DISK_TABLE,
	DISK_MANIFEST,
	DISK_CURRENT,  /* or what is about to be renamed to it */
	DISK_INFO_LOG, /* of RocksDB about its own doings */
	DISK_FILES,    /* any other, and how many there are */
};

enum disk_op {
	DISK_WRITE,
	DISK_SYNC,
	DISK_RENAME,
	DISK_UNLINK,
	DISK_CREATE, /* opening a file that is made if it is not there */
	DISK_CUT,    /* by frond, not by RocksDB */
	DISK_READ,   /* of a part of a file; never ends the process, and is no disk_operation */
};

enum disk_moment {
	DISK_BEFORE,
	DISK_HALFWAY, /* of a write: some of the bytes are in the file */
	DISK_AFTER,
};

struct disk_point {
	enum disk_file file;
	enum disk_op op;
	enum disk_moment moment;
};

/* From now on the directory's files are watched. What is in them counts as synced. */
void disk_watch(const char *dir);
void disk_unwatch(void);

/* Ends the process when the point is reached for the `nth` time; 1 is the next. */
void disk_end_at(struct disk_point point, uint32_t nth, bool power_cut, uint64_t seed);

/* Ends the process now. */
_Noreturn void disk_end(bool power_cut, uint64_t seed);

/* The next `count` such operations fail with `error`; UINT32_MAX: until told otherwise. */
void disk_fail(enum disk_file file, enum disk_op op, int error, uint32_t count);
/* The same, beside what disk_fail() has ordered. */
void disk_fail_also(enum disk_file file, enum disk_op op, int error, uint32_t count);

/*
 * Of all operations but reads, on whatever file of the directory, `count` fail with `error`, from
 * the `nth` on; 1 is the next. UINT32_MAX: until told otherwise. With `nth` 0 none does.
 */
void disk_fail_at(uint32_t nth, int error, uint32_t count);

/* Ends the process, as kill -9 does, before the `nth` of all operations; 1 is the next. */
void disk_end_at_operation(uint32_t nth);

/* How many operations have failed so since disk_watch(). */
uint32_t disk_failures(void);

#endif
