/*
 * What a person may do: commands, keys and channels. Administrators may do everything. Others have
 * rules in roles of their own: a role that begins with "redis:" has Redis's ACL rules behind it, as
 * in "redis:~cache:* +@read -keys". Who has none may do nothing here.
 *
 * A plain value; belongs to its connection.
 */
#ifndef FROND_DOOR_REDIS_ACL_ACL_H
#define FROND_DOOR_REDIS_ACL_ACL_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

struct call;
struct command;
struct subcommand;

enum {
	ACL_COMMANDS = 512, /* rows of the tables of commands and of subcommands */
	ACL_PATTERNS = 256, /* of keys and channels together */
};

#define ACL_ROLE "redis:"

struct acl_pattern {
	struct str glob;
	bool channel;
	bool read;
	bool write;
};

struct acl {
	bool all_keys;
	bool all_channels;
	uint64_t commands[ACL_COMMANDS / 64];
	struct acl_pattern *patterns; /* in the arena */
	size_t pattern_count;
};

void acl_allow_all(struct acl *a);

/* No commands, no keys; then the rules of the roles. One that cannot be read counts for nothing. */
void acl_of_roles(struct acl *a, const struct str *roles, size_t count, struct arena *arena);

/* The arguments tell the subcommand, which may be allowed without the others. */
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
 * is the argument that is denied, a key or a channel. What is allocated in the arena is of no use
 * afterwards; if there is no room in it, a call whose keys have to be checked is denied.
 */
enum acl_denial acl_check(const struct acl *a, const struct command *command,
			  const struct str *argv, size_t argc, struct arena *arena,
			  struct str *ret_object);

/* True if every key may be read. */
bool acl_reads_all_keys(const struct acl *a);

/* The rules as text, each with a space before it: " ~* &* +@all"; or those of one kind. */
void acl_describe(const struct acl *a, struct buf *ret);
void acl_describe_keys(const struct acl *a, struct buf *ret);
void acl_describe_channels(const struct acl *a, struct buf *ret);
void acl_describe_commands(const struct acl *a, struct buf *ret);

/* The names of categories, by enum acl_category; which a command is in. */
extern const char *const acl_categories[];
extern const size_t acl_category_count;
bool acl_is_in_category(const struct command *command, size_t category);
/* The same of a subcommand of the command. */
bool acl_has_subcommand(const struct command *command, const struct subcommand *sub,
			size_t category);

#endif
