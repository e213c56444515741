/* What commands do with their keys, and where these are: for COMMAND, and for people's rights. */
#ifndef FROND_DOOR_REDIS_ACL_KEY_SPECS_H
#define FROND_DOOR_REDIS_ACL_KEY_SPECS_H

#include "door/redis/acl/command.h"

struct subcommand;

enum {
	KEY_SPECS = 4, /* of one command */
};

/*
 * What the call does with one of its keys, in Redis's words with spaces between them. `key` counts
 * the keys from 0, as command_keys() orders them.
 */
struct str key_flags_of(const struct command *command, const struct str *argv, size_t argc,
			size_t key);

/* The rights to that key that the call needs: both may be false. */
void key_rights_of(const struct command *command, const struct str *argv, size_t argc, size_t key,
		   bool *ret_reads, bool *ret_writes);

/* Some keys of a command: where they begin, how many they are, and what becomes of them. */
struct key_spec {
	struct str flags;  /* as of key_flags_of() */
	const char *notes; /* NULL: there is nothing more to say */
	bool unknown;      /* the places in the arguments do not tell: no other member is used */
	const char *word;  /* they begin behind this word; NULL: at `at` */
	int at;            /* where they begin, or the word is looked for; < 0: from the end */
	bool counted;      /* how many they are stands in front of them: `last` is not used */
	int last;          /* how far the last one is from the first; < 0: from the end */
	int step;          /* from one to the next */
	int limit;         /* with `last` -1: 2 for half of the arguments that follow; 0: all */
};

/* Of a command, or of one of its subcommands unless that is NULL. Returns how many there are. */
size_t key_specs_of(const struct command *command, const struct subcommand *sub,
		    struct key_spec ret[static KEY_SPECS]);

#endif
