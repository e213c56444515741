/*
 * Keeps a standby: reads the log of the server that it follows, and applies it (kv/log.h). Where
 * there is no standby yet, or it is further behind than that server's log reaches, all is copied.
 *
 * Threading: a struct following belongs to one thread. The functions beside a server are called by
 * the thread that runs the server.
 */
#ifndef FROND_CLI_FOLLOWING_H
#define FROND_CLI_FOLLOWING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct kv_store;
struct following;

struct following_options {
	const char *url;            /* of the server that is followed (cli/remote.h) */
	const char *store_url;      /* the standby's */
	const char *name;           /* what the server calls it: following_name_check() */
	bool (*stopped)(void *arg); /* asked once a second, and between steps: whether to end */
	void (*turn)(void *arg);    /* called after each answer and each failure; or NULL */
	void *arg;                  /* of both */
};

/* The texts are the caller's and outlive it. STATUS_INVALID; STATUS_NOMEM. */
MUST_USE enum status following_new(const struct following_options *options, struct following **ret,
				   struct err *err);
void following_free(struct following *f); /* NULL is fine; closes the standby */

/* 1 to KV_LOG_NAME_BYTES letters, digits, '-', '_' and '.'. */
bool following_name_check(const char *name);

/* The server's address for people, without the password. */
const char *following_first(const struct following *f);
/* The version that the standby has. */
uint64_t following_version(const struct following *f);

/*
 * Follows until it is stopped; with `once`, until the standby has all that the server had when it
 * was asked. A failure that may be over soon is logged, and tried again after a pause; any other is
 * returned, and with `once` all are. STATUS_OK if it was stopped.
 */
MUST_USE enum status following_run(struct following *f, bool once, struct err *err);

/* ---- Beside a server ---- */

/*
 * Sees to it that there is a standby which can be opened with kv_options.follows, and as new as it
 * can be had now. A server that does not answer is a failure only if there is no standby yet.
 */
MUST_USE enum status following_prepare(const struct following_options *options, struct err *err);

/*
 * Starts a thread that follows until following_end(). The store, opened with kv_options.follows,
 * stays the caller's. If following fails for good, that thread calls `told` once. One store of a
 * process at a time. `stopped` and `turn` of the options are not used. STATUS_LIMIT if no thread
 * can be started.
 */
MUST_USE enum status following_begin(const struct following_options *options,
				     struct kv_store *store,
				     void (*told)(void *arg, const struct err *why),
				     struct err *err);
void following_end(void); /* nothing if nobody follows */

#endif
