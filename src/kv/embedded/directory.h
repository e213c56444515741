/*
 * What a store's directory needs beside RocksDB's own care: directory.c and logs.c. Nothing here
 * knows the engine's structs. Thread-safe, but for what another thread does to the same files.
 */
#ifndef FROND_KV_EMBEDDED_DIRECTORY_H
#define FROND_KV_EMBEDDED_DIRECTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum {
	EMB_MANIFEST_NAME_BYTES = 64,
};

/* ---- Logs: logs.c ---- */

/*
 * RocksDB's logs are blocks. A record has a header, and as many parts, each with a header, as it
 * takes to fit the blocks. What a block has left at its end for less than a header stays empty.
 */
enum {
	LOG_BLOCK_BYTES = 32 * 1024,
	LOG_HEADER_BYTES = 7,
};

/* The unfinished write over a filling (fill.h) at the end of a log. */
struct log_torn {
	uint64_t number; /* of the log; 0: no log has one */
	uint64_t bytes;  /* of the log that are whole: the unfinished write begins behind them */
};

/*
 * Finds damage in a store's logs that RocksDB would take for their end, before it does so and
 * begins a new one. STATUS_CORRUPT, STATUS_IO, STATUS_NOMEM. A directory that is not there is fine.
 *
 * `*ret_torn`: the unfinished write at the end of the newest log, if it has one. RocksDB's strict
 * recovery would refuse it. Everything before it, and all of the other logs, has been found whole,
 * checksums included, so RocksDB may be told to stop at the first record that is not whole.
 */
MUST_USE enum status emb_logs_check(const char *path, struct log_torn *ret_torn, struct err *err);

/* Opens the log with the unfinished write, for emb_logs_end_torn(). Returns -1 with errno. */
int emb_logs_open_torn(const char *path, const struct log_torn *torn);

/*
 * Cuts the unfinished write off the log. To be called when RocksDB has opened the store, and before
 * anything is written to a newer log: RocksDB deletes the old log only later, and a power cut may
 * bring it back. The next opening would find an unfinished write in a log that is not the newest,
 * and take it for damage. STATUS_IO.
 */
MUST_USE enum status emb_logs_end_torn(int fd, const struct log_torn *torn, struct err *err);

/* The CRC32C of a file. False if it cannot be read. */
bool emb_file_crc(const char *path, uint32_t *ret);

/*
 * For a backup that cannot be restored: STATUS_CORRUPT, explained with the files of it that do not
 * match their checksums. STATUS_OK if all do.
 */
MUST_USE enum status emb_backup_find_damage(const char *dir, uint32_t id, struct err *err);

/*
 * For a store that RocksDB does not open: STATUS_CORRUPT, explained with the log and the byte, if a
 * log has a record that does not match its checksum.
 */
MUST_USE enum status emb_logs_find_damage(const char *path, struct err *err);

/*
 * Opens the log with that number, or for 0 the newest, whose number is then in `*number`, for
 * appending. Returns -1 if it is not there or cannot be opened.
 */
int emb_logs_open_to_append(const char *path, uint64_t *number);

/*
 * Takes out of the logs what is newer than the version `published`, and makes sure that no crash
 * brings it back. Only the thread that writes to the store may call it. After STATUS_OK no commit
 * that has failed is in the store; otherwise (STATUS_IO, STATUS_NOMEM) nobody knows.
 *
 * With `newest_is_new` nothing that is in the newest log has been published, so nothing of it
 * stays, whatever a failing disk has made of it. Otherwise bytes that are no record are left to
 * RocksDB.
 */
MUST_USE enum status emb_logs_cut(const char *path, uint64_t published, bool newest_is_new,
				  struct err *err);

/* How long all logs are together. */
uint64_t emb_logs_bytes(const char *path);

/* ---- The directory: directory.c ---- */

/* The record of a store's files, which is appended to or replaced whenever these change. */
struct emb_manifest {
	char name[EMB_MANIFEST_NAME_BYTES]; /* empty: there is none */
	uint64_t bytes;
};

void emb_manifest_look(const char *path, struct emb_manifest *ret);
bool emb_manifest_eq(const struct emb_manifest *a, const struct emb_manifest *b);

/* True if there is nothing in it. STATUS_NOT_FOUND if it is not there, STATUS_IO. */
MUST_USE enum status emb_directory_is_empty(const char *path, bool *ret, struct err *err);

/* Removes a directory of files; what cannot be removed stays. */
void emb_directory_remove(const char *path);

/* Brings the directory and every file in it to the disk. */
MUST_USE enum status emb_directory_sync_all(const char *path, struct err *err);

/*
 * Whether a new store may be made in this directory, which is there: STATUS_OK if nothing is in it
 * but the lost+found of a file system and what an interrupted making of a store leaves.
 * STATUS_EXISTS names a file that is another program's; STATUS_CORRUPT if files of a store are
 * there without CURRENT, which names the newest manifest: RocksDB would begin anew and remove
 * them. STATUS_IO.
 */
MUST_USE enum status emb_directory_check_vacant(const char *path, struct err *err);

/* How many files of tables are in a store's directory; 0 if it cannot be read. */
size_t emb_directory_tables(const char *path);

/*
 * Tries whether the directory can be written to and has so much room, with a file that is written,
 * synced if `syncs`, and removed again. Returns 0 or an errno: ENOSPC, EROFS, EIO, ENOENT, …
 */
int emb_directory_probe(const char *path, uint64_t room_bytes, bool syncs);

#endif
