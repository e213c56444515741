/*
 * A store with tables of two levels, deletions among them, and a log, which tests damage; and what
 * a salvage brings back of it, compared with what was written.
 */
#ifndef FROND_TESTS_KV_SALVAGE_STORE_H
#define FROND_TESTS_KV_SALVAGE_STORE_H

#include "fixture.h"

#include <sys/types.h>

#include "kv/salvage.h"

enum {
	KEYS = 1500,
	KEY_BYTES = 16,
	BATCH_KEYS = 25,
	DELETED_KEYS = 800, /* from here on by a deletion of a range */
	DELETED_KEYS_END = 815,
	VALUE_BYTES = 900, /* most of them are shorter */
	LONG_VALUE_BYTES = 60000,
	LOSSES = 64,
	/* A block has 8 KB and is filled up to 9: so many keys have at most one block. */
	BLOCK_KEYS = 600,
	SHORT_BYTES = 100, /* of a table that is zeros */
	PLACES = 12,       /* of a file that are spoiled, one after the other */
	FILES = 64,
	PATH_BYTES = 400,
	NAME_BYTES = 100,
	TEXT_BYTES = 200,
	ARENA_BYTES = 64 * 1024 * 1024,
};

struct pair {
	bool there;
	uint32_t round; /* which of the key's values */
};

struct loss {
	bool has_keys;
	char after[KEY_BYTES + 1];
	char until[KEY_BYTES + 1];
	bool endless;
	uint64_t elsewhere;
	char text[TEXT_BYTES];
};

struct salvage_test {
	struct fixture dir;
	struct pair expected[KEYS];
	struct loss losses[LOSSES];
	size_t loss_count;
	size_t missing;
	size_t other;  /* than it was last */
	size_t untold; /* differences that no loss has */
	bool has_format;
	uint64_t told; /* bytes that were read, when it was told last */
};

/* A cmocka setup and teardown, for all tests of a group. */
int salvage_setup(void **state);
int salvage_teardown(void **state);

/* Writes every `step`-th key with its value of that round; clears some keys, and a range. */
void put_all(struct salvage_test *t, struct kv_store *store, unsigned step, uint32_t round);
void clear_some(struct salvage_test *t, struct kv_store *store);

/* Puts three texts together; fails if they do not fit. */
void join(char *ret, size_t size, const char *first, const char *between, const char *last);
void copy_file(const char *from, const char *to);

/* The names of the files in a directory, at most FILES. */
size_t list_files(const char *path, char names[FILES][NAME_BYTES]);
void remove_directory(const char *path);
void copy_store(const struct salvage_test *t, const char *to);

/* Changes all bits of a byte. */
void flip(const char *path, off_t at);
void key_copy(struct str key, char ret[KEY_BYTES + 1]);

/* Of `t`: notes losses and progress, and compares all keys with what they should have. */
struct kv_salvage_how salvage_how(struct salvage_test *t);
enum status compare_all(const char *url, bool has_format, void *arg, struct err *err);

/* Salvages the store in that directory, which must succeed, and compares all. */
void salvage(struct salvage_test *t, const char *source);

#endif
