/* What loops and connections ask of their server. */
#ifndef FROND_SERVER_SERVER_INT_H
#define FROND_SERVER_SERVER_INT_H

#include "server/server.h"

struct loop;
struct pool;

/* How often server_stop() was called. Any thread. */
unsigned server_stops(const struct server *s);
struct pool *server_pool(const struct server *s);
/* What all exchanges take their memory of. */
struct budget *server_memory(struct server *s);

/* Does something on the loop that accepts, nothing on others. */
void server_close_listeners(struct server *s, struct loop *l);

/* One connection less. Any thread. */
void server_conn_closed(struct server *s);

#endif
