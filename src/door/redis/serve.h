/* A connection from its first byte to its last (net/stream.h). */
#ifndef FROND_DOOR_REDIS_SERVE_H
#define FROND_DOOR_REDIS_SERVE_H

#include "net/stream.h"

bool redis_serve(struct net_stream *s, void *redis);

#endif
