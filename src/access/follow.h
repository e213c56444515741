/*
 * Following people who have logged in on a connection that stays: once somebody is removed, gets
 * other roles or another password, or there are other administrators, their connections know it
 * within about a second, in every process of the store.
 *
 * One chore of the process looks, every FOLLOW_LOOK_MS, whether any person or any setting has
 * changed, and counts the changes. A connection compares that count with the one at which it last
 * looked its person up: one load while nothing has changed. A door whose connections may rest for
 * long asks to be told, and wakes them.
 *
 * Threading: people_news_listen() before the chores start; people_news_count() and
 * people_news_changed() from any thread; a struct follow belongs to its connection's fiber.
 */
#ifndef FROND_ACCESS_FOLLOW_H
#define FROND_ACCESS_FOLLOW_H

#include <stdatomic.h>

#include "access/auth.h"
#include "settings/live.h"

struct chores;

enum {
	FOLLOW_LOOK_MS = 500,
	FOLLOW_LISTENERS = 4,
};

/* Counts the changes of people and of settings. One for all doors of a process. */
struct people_news;

/* NULL when out of memory. Both arguments outlive it. */
struct people_news *people_news_new(struct kv_store *store, struct settings_live *live);
/* After the chores have stopped. NULL is fine. */
void people_news_free(struct people_news *news);
void people_news_chores_add(struct people_news *news, struct chores *chores);
/* Has `changed(arg)` called after each change, on any thread. FOLLOW_LISTENERS at most. */
void people_news_listen(struct people_news *news, void (*changed)(void *arg), void *arg);

/* Counts a change that this process has committed: its connections need not wait for the look. */
void people_news_changed(struct people_news *news);

/* Begins with 1. 0 for NULL: nothing is ever known to change. */
uint64_t people_news_count(const struct people_news *news);

/* Somebody on a connection. Zeroed, it looks the person up at the first question. */
struct follow {
	uint64_t seen; /* people_news_count() when the person was looked up; 0: not yet */
};

enum follow_result {
	FOLLOW_SAME,
	FOLLOW_CHANGED, /* there are other roles */
	FOLLOW_GONE,    /* removed, or with another password than the one that was given */
};

/* True if there is nothing to look up. One load. */
static inline bool
follow_is_current(const struct follow *f, const struct people_news *news)
{
	return people_news_count(news) == f->seen;
}

/*
 * Looks a user up who has logged in by name and password, or an unnamed one who is in charge as
 * long as there is no administrator. FOLLOW_CHANGED: `*ret` is the user with the present roles, in
 * the arena. While the store cannot be read the answer is FOLLOW_SAME, and the next question looks
 * again.
 */
enum follow_result follow_look(struct follow *f, const struct people_news *news,
			       struct settings_live *live, const struct auth_client *client,
			       const struct auth_user *user, struct arena *arena,
			       struct auth_user *ret);

#endif
