/*
 * Keeps a standby: reads the log of the server that it follows, and applies it (kv/log.h). Where
 * there is no standby yet, or it is further behind than that server's log reaches, all is copied.
 *
 * Threading: one thread's, but for following_end() of a server's.
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
	void (*turn)(void *arg);    /* called whenever something is known anew; NULL: nobody is */
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
 * Follows until it is stopped, with `once` until it has all that the server had when it was asked.
 * Failures that may be over soon are logged, and waited for; with `once` they are returned as all
 * others are. STATUS_OK when it was stopped.
 */
MUST_USE enum status following_run(struct following *f, bool once, struct err *err);

/* ---- Beside a server ---- */

/*
 * Sees to it that there is a standby which can be opened with kv_options.follows, and as new as it
 * can be had now. A server that does not answer is a failure only if there is no standby yet.
 */
MUST_USE enum status following_prepare(const struct following_options *options, struct err *err);

/*
 * Follows on a thread of its own, until following_end(). The store is open with kv_options.follows
 * and stays the caller's. `told` is called on that thread once if it cannot go on. For one store of
 * a process. `stopped` and `turn` of the options are not used. STATUS_LIMIT when there can be no
 * thread.
 */
MUST_USE enum status following_begin(const struct following_options *options,
				     struct kv_store *store,
				     void (*told)(void *arg, const struct err *why),
				     struct err *err);
void following_end(void); /* nothing if nobody follows */

#endif
