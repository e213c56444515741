/* The subcommands of commands such as CONFIG, as Redis 7.0.15 has them. */
#ifndef FROND_DOOR_REDIS_ACL_SUBCOMMAND_H
#define FROND_DOOR_REDIS_ACL_SUBCOMMAND_H

#include "door/redis/acl/command.h"

enum {
	SUBCOMMAND_NAME_BYTES = 64, /* of a command with its subcommand, and the NUL behind them */
};

struct subcommand {
	const char *container; /* in lower case, as the name is */
	const char *name;
	int arity;      /* with both names; negative: at least so many */
	int key;        /* the place of its key; 0: it has none */
	unsigned flags; /* enum command_flags */
	/* As of a command: NULL without. */
	const char *key_flags;
	const char *tips;
};

/* The whole table, sorted by container and name. */
extern const struct subcommand subcommand_table[];
extern const size_t subcommand_count;

/* The first of the command's subcommands, which `*ret_count` follow; 0: it has none. */
const struct subcommand *subcommands_of(const struct command *command, size_t *ret_count);

/* The command's subcommand of that name, in any case; NULL: there is none. */
const struct subcommand *subcommand_find(const struct command *command, struct str name);

/* The subcommand that the arguments of a call name; NULL: none, or the command has no such ones. */
const struct subcommand *subcommand_called(const struct command *command, const struct str *argv,
					   size_t argc);

/*
 * Writes the name of a command's subcommand into `room`, "config|set", or that of the command if
 * `sub` is NULL. A NUL follows it; returns it without.
 */
struct str subcommand_name(const struct command *command, const struct subcommand *sub,
			   char room[static SUBCOMMAND_NAME_BYTES]);

/* The same of the subcommand that the arguments of a call name, or of the command. */
struct str subcommand_name_call(const struct command *command, const struct str *argv, size_t argc,
				char room[static SUBCOMMAND_NAME_BYTES]);

/* True for a call that only administrators make, also as a subcommand: CONFIG SET, CLIENT KILL. */
bool subcommand_is_admin(const struct command *command, const struct str *argv, size_t argc);

/*
 * True for an argument of a call that says who somebody is, or what they log in by: SLOWLOG and
 * MONITOR do not show it.
 */
bool subcommand_arg_is_secret(const struct command *command, const struct str *argv, size_t i);

#endif
