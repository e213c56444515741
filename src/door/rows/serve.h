/* A connection: requests in their order, answers, errors. */
#ifndef FROND_DOOR_ROWS_SERVE_H
#define FROND_DOOR_ROWS_SERVE_H

#include <stdbool.h>

struct net_stream;

/* net_stream_options.serve; `door` is the struct rows_door. */
bool rows_serve(struct net_stream *s, void *door);

#endif
