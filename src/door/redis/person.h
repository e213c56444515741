/* The person of a connection, who may be removed or get other rights while it is open. */
#ifndef FROND_DOOR_REDIS_PERSON_H
#define FROND_DOOR_REDIS_PERSON_H

#include "door/redis/txn/client.h"

/*
 * What the door makes of the people on its connections. One ends when its person is gone, or may
 * not have any more what it goes on getting by itself, of channels or of MONITOR.
 */
struct visit_rules person_visit_rules(const struct redis_config *config);

/* What a client runs that waits, or is waited for behind a pause. */
struct person_waits {
	struct client *client;
	const struct unit *units;
	size_t count;
	struct arena *arena;
};

/*
 * From now on its operation needs that its person may run all of these (visit_may()): otherwise the
 * connection ends. `w` lasts until the operation has ended, or this is called again.
 */
void person_wait(struct person_waits *w);
/* For people_news_listen(): wakes clients that wait or get messages, so that they look. */
void client_tell_all(void *redis);

#endif
