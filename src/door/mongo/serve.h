/* A connection's fiber: messages in, answers out. */
#ifndef FROND_DOOR_MONGO_SERVE_H
#define FROND_DOOR_MONGO_SERVE_H

#include "net/stream.h"

bool mongo_serve(struct net_stream *s, void *mongo);

#endif
