/* The person of a connection, who may be removed or get other rights while it is open. */
#ifndef FROND_DOOR_REDIS_PERSON_H
#define FROND_DOOR_REDIS_PERSON_H

#include "door/redis/txn/client.h"

/*
 * What the door makes of the people on its connections. One ends when its person is gone, or may
 * not have any more what it goes on getting by itself, of channels or of MONITOR.
 */
struct visit_rules person_visit_rules(const struct redis_config *config);
/*
 * visit_follow() for a client whose unit waits: it ends also if the person may not wait for that
 * now.
 */
bool client_may_wait(struct client *c, const struct unit *unit, struct arena *arena);
/* For people_news_listen(): wakes clients that wait or get messages, so that they look. */
void client_tell_all(void *redis);

#endif
