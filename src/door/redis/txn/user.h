/*
 * People as clients of Redis see them: a person of every door, with the rules of the roles that
 * begin with "redis:", and with what holds of the person at this door alone
 * (access/person_door.h). Whoever has neither rules nor a record of this door is none of Redis's
 * users; administrators, whom the settings name, always are.
 *
 * `default` is whom a connection stands for that nobody has logged in to. On a server without
 * administrators it may do everything, as everybody may there, unless there is a person of that
 * name with rules or a record of this door. With an administrator it is off until somebody who may
 * do so gives it a password; then it is a person like others, of this door.
 *
 * Threading: any fiber.
 */
#ifndef FROND_DOOR_REDIS_TXN_USER_H
#define FROND_DOOR_REDIS_TXN_USER_H

#include "access/person_door.h"
#include "door/redis/acl/acl.h"

struct redis;

#define USER_DOOR    STR("redis")
#define USER_DEFAULT STR("default")

enum {
	USER_ARENA_BYTES = 1024 * 1024, /* a person's roles and rules */
	USER_PASSWORD_TEXT_BYTES = 160, /* of the text below */
	USER_STEPS = 256,               /* that it costs to tell of one: rules become a text */
};

/* A plain value; its texts and lists are in the arena that it was read with. */
struct user {
	struct str name;
	bool known;       /* one of Redis's users */
	bool is_initial;  /* `default`, of which nobody has said anything */
	bool admin;       /* of the settings */
	bool is_person;   /* of the store */
	bool has_account; /* a password of every door, for an administrator or a person */
	struct person_door at;
	struct acl acl;
};

/* True without an administrator: everybody may do everything, by any door. */
bool users_are_open(struct redis *r);

/* True for the name of an administrator. */
bool user_is_admin(struct redis *r, struct str name);

/* Reads somebody by name: nobody, with `known` false, is no failure. STATUS_LIMIT; of the store. */
MUST_USE enum status user_read(struct redis *r, struct str name, struct arena *arena,
			       struct user *ret, struct err *err);

/* Called for each user; a failure ends the listing. */
typedef enum status user_take(void *arg, const struct user *user);

/*
 * Administrators, then people in the order of their names, and `default` among them in any case.
 * The memory for it is counted by `part`.
 */
MUST_USE enum status user_each(struct redis *r, struct budget_part *part, user_take *take,
			       void *arg, struct err *err);

/* True if any password is right for the user. */
bool user_needs_no_password(const struct user *user, bool open);

/*
 * A password of the user's as text, which ACL SETUSER takes behind "#": a hash that is salted and
 * slow, unlike Redis's.
 */
void user_password_text(const struct person_door *at, size_t i, struct buf *ret);
/* Reads one: its salt and rounds into `*ret`, and its hash as the only one. False: it is none. */
bool user_password_read(struct str text, struct person_door *ret);

#endif
