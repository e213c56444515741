/*
 * A door that sends each line back: what a protocol beside HTTP takes to write. For the tests.
 *
 * "who" is answered with the client's address, "thread" with the number of the thread that serves
 * it, and "wait" with "over" once the client ends its side or the server stops, "rest" with
 * "rested" once there is more, "alone" with whether the fiber is alone on its loop. "quit" ends the
 * connection; so does a line that is too long, or that does not come to its end.
 */
#ifndef FROND_TESTS_NET_ECHO_H
#define FROND_TESTS_NET_ECHO_H

#include "net/stream.h"

/* For net_stream_options: with `arg` NULL. */
bool echo_serve(struct net_stream *s, void *arg);

#endif
