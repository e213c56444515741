/*
 * What COMMAND DOCS tells of commands beside command.h: how each is called. The syntax is a text of
 * arguments, one behind the other with a space between them:
 *
 *     syntax   = [argument *(" " argument)]
 *     argument = "[" one "]" | one                  in brackets: it may be left out
 *     one      = name ["#" spec] ["=" token] [":" type] ["*" | "+"] ["@" since] ["!" until] [group]
 *     group    = "(" syntax ")" | "<" argument *("|" argument) ">"
 *
 * `spec` is the number of a key's specification (key_specs.h); `token` stands in front of the
 * argument, and alone if it has neither type nor group. `type` is one of i(nteger), d(ouble),
 * k(ey), p(attern), s(tring) and u(nix-time); without one, token and group it is a string. `*`: it
 * may be said several times, `+`: each time with its token. `since` and `until`: versions of Redis.
 * A group in parentheses is said as a whole, of one in angle brackets one. Names and tokens of
 * other characters than letters, digits, '-' and '_' are in single quotes.
 */
#ifndef FROND_DOOR_REDIS_ACL_DOCS_H
#define FROND_DOOR_REDIS_ACL_DOCS_H

#include "door/redis/acl/command.h"

struct command_docs {
	const char *name; /* "set", "config|get" */
	/* Or NULL, each. Of `since` and `summary` a command has its own. */
	const char *since;
	const char *deprecated; /* the version from which on another command is preferred */
	const char *summary;
	const char *syntax;
};

/* All commands and subcommands, sorted by name. */
extern const struct command_docs docs_table[];
extern const size_t docs_count;

/* Of a command, or a subcommand of that name; NULL: there is none. */
const struct command_docs *docs_find(const char *name, const char *subcommand);

/*
 * Answers with the arguments of a syntax, as an array of maps. False if the text is no syntax: then
 * the answer is of no use.
 */
MUST_USE bool docs_answer_syntax(struct reply *r, const char *syntax);

#endif
