/* A connection of Cassandra's protocol: frames in, requests, answers out. */
#ifndef FROND_DOOR_CQL_SERVE_H
#define FROND_DOOR_CQL_SERVE_H

#include <stdbool.h>

struct net_stream;

/* net_stream_options.serve; `door` is a struct cql_door. */
bool cql_serve(struct net_stream *s, void *door);

#endif
