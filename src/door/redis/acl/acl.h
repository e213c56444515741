/*
 * What a person may do: commands, keys and channels. Administrators may do everything. Others have
 * rules in roles of their own: a role that begins with "redis:" has Redis's ACL rules behind it, as
 * in "redis:~cache:* +@read -keys (~log:* +append)". Who has none may do nothing here. rules.h
 * reads and writes them.
 *
 * Rules are in selectors: one that everybody has, the root, and those in parentheses. A call is
 * allowed if one of the selectors allows all of it.
 *
 * A plain value; belongs to its connection.
 */
#ifndef FROND_DOOR_REDIS_ACL_ACL_H
#define FROND_DOOR_REDIS_ACL_ACL_H

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"

struct command;
struct subcommand;

enum {
	/* Rows of the tables of commands and of subcommands, and ACL_LATER. */
	ACL_COMMANDS = 512,
	ACL_WORDS = ACL_COMMANDS / 64,
	/*
	 * A bit that +@all sets and -@all clears, and nothing else: what is not denied is allowed,
	 * also when there are more commands one day.
	 */
	ACL_LATER = ACL_COMMANDS - 1,
	ACL_PATTERNS = 256,  /* of keys and channels, of all selectors of a person together */
	ACL_SELECTORS = 64,  /* of a person, beside the root */
	ACL_FIRST_ARGS = 64, /* of all selectors of a person together */
};

#define ACL_ROLE "redis:"

struct acl_pattern {
	struct str glob;
	bool channel;
	bool read;
	bool write;
};

/* A command that is denied, but for calls with this first argument: "+select|0". */
struct acl_first_arg {
	size_t command; /* its place in the table */
	struct str arg; /* in any case */
};

struct acl_selector {
	bool all_keys;
	bool all_channels;
	uint64_t commands[ACL_WORDS];
	/* In the arena that the rules were read with, both. */
	struct acl_pattern *patterns;
	size_t pattern_count, pattern_cap;
	struct acl_first_arg *first_args;
	size_t first_arg_count, first_arg_cap;
};

struct acl {
	struct acl_selector root;
	struct acl_selector *others; /* likewise */
	size_t other_count, other_cap;
};

/* The command itself, or its subcommand unless that is NULL: its bit. */
size_t acl_bit(const struct command *command, const struct subcommand *sub);

static inline bool
acl_has_bit(const uint64_t bits[static ACL_WORDS], size_t bit)
{
	return bits[bit / 64] >> bit % 64 & 1;
}

void acl_allow_all(struct acl *a);

/*
 * True if a selector allows the command. The arguments tell the subcommand, which may be allowed
 * without the others.
 */
bool acl_allows_command(const struct acl *a, const struct command *command, const struct str *argv,
			size_t argc);

enum acl_denial {
	ACL_ALLOWED,
	ACL_DENIED_COMMAND,
	ACL_DENIED_KEY,
	ACL_DENIED_CHANNEL,
	ACL_DENIED_AUTH, /* a login has failed: acl_check() never returns it */
};

/*
 * Checks whether the call is allowed: the command, then its keys, then its channels. `*ret_object`
 * is the argument that is denied, a key or a channel; where several selectors allow the command,
 * the last argument that one of them has come to. What is allocated in the arena is of no use
 * afterwards; if there is no room in it, a call whose keys have to be checked is denied.
 */
enum acl_denial acl_check(const struct acl *a, const struct command *command,
			  const struct str *argv, size_t argc, struct arena *arena,
			  struct str *ret_object);

/* True if a selector allows the call, and to read every key besides. As acl_check(). */
bool acl_allows_reading_all(const struct acl *a, const struct command *command,
			    const struct str *argv, size_t argc, struct arena *arena);

/* The names of categories; which a command is in. */
extern const char *const acl_categories[];
extern const size_t acl_category_count;
bool acl_is_in_category(const struct command *command, size_t category);
/* The same of a subcommand of the command. */
bool acl_has_subcommand(const struct command *command, const struct subcommand *sub,
			size_t category);

#endif
