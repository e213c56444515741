/* What commands do with their keys, and where these are: for COMMAND, and for people's rights. */
#ifndef FROND_DOOR_REDIS_KEY_SPECS_H
#define FROND_DOOR_REDIS_KEY_SPECS_H

#include "door/redis/command.h"

struct subcommand;

enum {
	KEY_SPECS = 4, /* of one command */
};

/* What the call does with its key of that number, in Redis's words with spaces between them. */
struct str key_flags_of(const struct command *command, const struct str *argv, size_t argc,
			size_t key);

/* The rights that this needs. */
void key_rights_of(const struct command *command, const struct str *argv, size_t argc, size_t key,
		   bool *ret_reads, bool *ret_writes);

/* Some keys of a command: where they begin, how many they are, and what becomes of them. */
struct key_spec {
	struct str flags;  /* as of key_flags_of() */
	const char *notes; /* NULL: there is nothing more to say */
	bool unknown;      /* where they are follows from more than their places */
	const char *word;  /* behind which they begin; NULL: at `at` */
	int at;       /* where they begin, or where the word is looked for; < 0: from the end */
	bool counted; /* a number of them comes first, and what follows is not used */
	int last;     /* how far the last one is from the first; < 0: from the end */
	int step;
	int limit; /* with `last` -1: the last one is at that part of what follows; 0: the end */
};

/* Of a command, or of one of its subcommands unless that is NULL. Returns how many there are. */
size_t key_specs_of(const struct command *command, const struct subcommand *sub,
		    struct key_spec ret[static KEY_SPECS]);

#endif
