/* Limits that a server and its workers both know. */
#ifndef FROND_JS_BOUNDS_H
#define FROND_JS_BOUNDS_H

enum {
	JS_CONTEXTS_MOST = 32, /* design documents that one worker has loaded */
	JS_LOGS_MOST = 16,     /* lines of log() that one call may send; further ones are dropped */
	JS_FUNCTIONS_MOST = 64, /* maps or reduces of one call */
	JS_WORKER_SOCKET = 3,   /* the descriptor by which a worker speaks to its server */
};

#endif
