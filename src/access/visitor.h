/*
 * Who is on a connection that stays: somebody who has logged in by name and password, or nobody
 * yet. The entry of each such connection has one of these, and serve/visit.h, which calls what is
 * here, has the door make of the person's roles what they mean there.
 *
 * As long as there is no administrator everybody is one, without logging in.
 *
 * Threading: on the connection's fiber.
 */
#ifndef FROND_ACCESS_VISITOR_H
#define FROND_ACCESS_VISITOR_H

#include "access/follow.h"

enum {
	VISITOR_BYTES = 256 * 1024, /* what is kept of a person: roles, and what they mean */
	VISITOR_FORMER = 4, /* changes of a person while one command waits; then that ends */
};

struct visitor {
	bool authenticated;    /* somebody has logged in, or nobody has to */
	bool entered;          /* somebody has logged in */
	bool undecided;        /* it could not be told what nobody may: each look asks again */
	struct auth_user user; /* its texts are in `arena` */
	struct arena *arena;   /* NULL: nobody has logged in */
	/* What was known before, to which a command that waits may still point. */
	struct arena *former[VISITOR_FORMER];
	unsigned former_count;
	struct follow follow;
};

/* Somebody whom visitor_login() or visitor_look() has found, with an arena of their own. */
struct visitor_found {
	struct auth_user user;
	struct arena *arena;
};

/* Nobody is there, at first and when the person has gone. */
void visitor_reset(struct visitor *v, struct settings_live *live);
/* The connection ends. */
void visitor_release(struct visitor *v);

/*
 * Before a change of the person while a command waits: what is known now lasts until
 * visitor_forget_former(). visitor_may_change() says whether there is room for one more.
 */
void visitor_keep_former(struct visitor *v);
void visitor_forget_formers(struct visitor *v);
static inline bool
visitor_may_change(const struct visitor *v)
{
	return v->former_count < VISITOR_FORMER;
}
/* When the command has ended. */
static inline void
visitor_forget_former(struct visitor *v)
{
	if (v->former_count)
		visitor_forget_formers(v);
}

/* The memory of all that is known. */
size_t visitor_bytes(const struct visitor *v);

/* True for a person whom limits by person are for: none in charge, and not nobody. */
static inline bool
visitor_is_limited(const struct visitor *v)
{
	return v->entered && !v->user.admin;
}

/*
 * Checks a name and a password, and changes nothing else. `method` is how the audit lines call that
 * way of logging in. The caller gives what was found to visitor_enter(), or frees its arena. Fails
 * as auth_login() does; STATUS_NOMEM.
 */
MUST_USE enum status visitor_login(struct settings_live *live, const char *method, struct str name,
				   struct str password, const struct auth_client *client,
				   struct visitor_found *ret, struct err *err);

/* Somebody comes in: they are looked up once more at the first visitor_look(). Takes the arena. */
void visitor_enter(struct visitor *v, const struct visitor_found *found);
/* The person whom visitor_look() has found to have changed. Takes the arena. */
void visitor_change(struct visitor *v, const struct visitor_found *found);

/* True if there is nobody to look up, or nobody has changed. One load. */
static inline bool
visitor_is_current(const struct visitor *v, const struct people_news *news)
{
	return !v->undecided && (!v->authenticated || follow_is_current(&v->follow, news));
}

/* The person as they were found last, in an arena of their own. False: there is no memory. */
bool visitor_copy(const struct visitor *v, struct visitor_found *ret);

/*
 * Looks the person up (follow_look()). FOLLOW_CHANGED: `*ret` is the person as they are now, for
 * visitor_change(). While there is no memory or the store cannot be read the answer is FOLLOW_SAME.
 */
enum follow_result visitor_look(struct visitor *v, const struct people_news *news,
				struct settings_live *live, const struct auth_client *client,
				struct visitor_found *ret);

#endif
