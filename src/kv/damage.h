/*
 * Damaged files of a store: what reads have met, and a check of all of them. A store of a cluster
 * has none that a process sees.
 *
 * Threading: any thread; kv_files_check() blocks it.
 */
#ifndef FROND_KV_DAMAGE_H
#define FROND_KV_DAMAGE_H

#include "kv/kv.h"

enum {
	KV_DAMAGE_FILE_BYTES = 64,
	KV_DAMAGE_TEXT_BYTES = 320,
	KV_DAMAGE_KEY_BYTES = 128,
	KV_DAMAGES_KEPT = 32, /* files that a store remembers by name */
};

/* A file with bytes that do not match their checksum, as a read has met it. */
struct kv_damage {
	char file[KV_DAMAGE_FILE_BYTES]; /* its name in the store's directory */
	char text[KV_DAMAGE_TEXT_BYTES]; /* the engine's words, with the place in the file */
	char key[KV_DAMAGE_KEY_BYTES];   /* the beginning of the key where the read began */
	size_t key_len;
};

/*
 * Copies those behind the first `from` that reads have met since the store was opened, at most
 * `most`. Returns how many the store remembers in all.
 */
size_t kv_damages(struct kv_store *store, size_t from, struct kv_damage *ret, size_t most);

/* A damaged file, and which keys it has. Borrowed for the call. */
struct kv_damaged_file {
	const char *file;
	const char *text;
	struct str first; /* its first key */
	struct str last;
	struct str before; /* the last key that could be read, of any file; empty: there is none */
};

/*
 * Reads every block of every file, and tells of each damaged file once. Blocks of other files that
 * lie wholly between the first and the last key of a damaged block are not read.
 */
typedef void kv_damaged_found(void *arg, const struct kv_damaged_file *file);
MUST_USE enum status kv_files_check(struct kv_store *store, kv_damaged_found *found, void *arg,
				    struct err *err);

#endif
