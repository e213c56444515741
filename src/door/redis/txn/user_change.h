/*
 * Changes of Redis's users: ACL SETUSER, ACL DELUSER, CONFIG SET requirepass. They change the rules
 * of a person and what holds of the person at this door, and nothing else: the password of every
 * door, other roles and other people's rights stay, and whoever is made here can log in by no
 * other door.
 *
 * When a change has returned, it holds in this process: connections of the user that wait,
 * subscribe or have MONITOR have looked, or are ended. Other processes follow within about a
 * second.
 *
 * Threading: on the client's fiber, in no transaction: both wait.
 */
#ifndef FROND_DOOR_REDIS_TXN_USER_CHANGE_H
#define FROND_DOOR_REDIS_TXN_USER_CHANGE_H

#include "door/redis/txn/client.h"

enum {
	USER_ATTEMPTS = 16,    /* while others change the same person */
	USER_APPLY_MS = 1000,  /* that connections have to look; then they are ended */
	USER_RULE_SHOWN = 128, /* bytes of a rule that an error shows */
};

/* True for those who may change users: administrators, and everybody where there is none. */
bool user_may_change(struct client *c);

/*
 * Applies rules to a user, who is made if need be; all of them, or none. STATUS_INVALID with
 * Redis's text for a rule that cannot be read, or with a reason for one that cannot be kept;
 * STATUS_TOO_MANY and others of hashing.
 */
MUST_USE enum status user_change(struct client *c, struct str name, const struct str *rules,
				 size_t count, struct arena *arena, struct err *err);

/* STATUS_INVALID, explained, for `default` and for administrators: they stay. */
MUST_USE enum status user_may_be_removed(struct redis *r, struct str name, struct err *err);

/*
 * Takes everything away from a user that this door has given. `*ret`: there was something. A person
 * of whom nothing else is known is removed. STATUS_INVALID as above.
 */
MUST_USE enum status user_remove(struct client *c, struct str name, struct arena *arena, bool *ret,
				 struct err *err);

/*
 * Has `default` log in by this password alone. An empty password takes the one that was set away:
 * on a server without an administrator `default` then needs no password, and with one it cannot
 * log in.
 */
MUST_USE enum status user_require_password(struct client *c, struct str password,
					   struct arena *arena, struct err *err);

#endif
