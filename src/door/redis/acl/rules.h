/*
 * Redis's ACL rules: reading texts of rules into a struct acl, and writing one as rules.
 *
 * Rules about what a person may do are read here, from roles and from ACL SETUSER alike. Those
 * about how a person logs in (`on`, `>password`) are the command's.
 *
 * Threading: none of its own.
 */
#ifndef FROND_DOOR_REDIS_ACL_RULES_H
#define FROND_DOOR_REDIS_ACL_RULES_H

#include "base/buf.h"
#include "door/redis/acl/acl.h"

/* What is wrong with a rule. */
enum acl_rule_error {
	ACL_RULE_OK,
	ACL_RULE_SYNTAX,
	ACL_RULE_UNKNOWN,      /* there is no such command or category */
	ACL_RULE_ALL_KEYS,     /* a pattern behind that of all keys */
	ACL_RULE_ALL_CHANNELS, /* the same of channels */
	ACL_RULE_FIRST_ARG,    /* a first argument of a subcommand */
	ACL_RULE_TOO_MANY, /* patterns, selectors or first arguments: ACL_PATTERNS and its kin */
	ACL_RULE_TEXT,     /* no UTF-8, as which rules are kept */
	ACL_RULE_NO_MEMORY,
	ACL_RULE_ERRORS,
};

/* What Redis says of each, and what is said of those that Redis does not have. */
extern const char *const acl_rule_errors[ACL_RULE_ERRORS];

/* False for a text with a space or a NUL: spaces separate rules, and names of users, in texts. */
bool acl_is_one_word(struct str s);

/*
 * Applies a rule: "~cache:*", "-@all", "(~log:* +append)", "clearselectors". A selector begins
 * with all channels if `pubsub`. On an error nothing has changed. What is kept of the rule is
 * copied into the arena.
 */
MUST_USE enum acl_rule_error acl_rule_apply(struct acl *a, struct str rule, bool pubsub,
					    struct arena *arena);

/*
 * A copy whose lists can grow without changing those of the original. Their texts are the same.
 * False: no memory.
 */
MUST_USE bool acl_copy(const struct acl *from, struct acl *ret, struct arena *arena);

/* No commands, no keys; then the rules of the roles. One that cannot be read counts for nothing. */
void acl_of_roles(struct acl *a, const struct str *roles, size_t count, struct arena *arena);

/*
 * Takes the next rule of several arguments, where the parts of a selector may be arguments of their
 * own: "(~log:*" "+append)". `*at` goes behind it. False: there is no end of the selector that
 * begins there, or no memory.
 */
MUST_USE bool acl_rule_next(const struct str *args, size_t count, size_t *at, struct arena *arena,
			    struct str *ret);

/* ---- As text ---- */

/* The rules of a selector, each with a space before it: " ~cache:* %R~log:*". */
void acl_describe_keys(const struct acl_selector *s, struct buf *ret);
void acl_describe_channels(const struct acl_selector *s, struct buf *ret);
void acl_describe_commands(const struct acl_selector *s, struct buf *ret);

/* All selectors, those beside the root in parentheses; a space before all of it. */
void acl_describe(const struct acl *a, struct buf *ret);

/*
 * The same as the text of a role. It takes nothing away that another role gives: it has no -@all in
 * front, which would be what it begins with.
 */
void acl_describe_role(const struct acl *a, struct buf *ret);

#endif
