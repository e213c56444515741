/*
 * Asks whether the standby of a store has been promoted meanwhile: a first that comes back after a
 * failure must not take writes that the clients of the promoted one never see.
 *
 * What serves at the standby's URL is asked, which nothing does before it is promoted. If it has
 * taken this store's place, the store is marked (kv_log_replaced()), so that it is not served again
 * whether that server can be asked or not. A server that cannot be asked is no reason not to serve:
 * that is how it is as long as nobody has promoted the standby.
 */
#ifndef FROND_CLI_REPLACED_H
#define FROND_CLI_REPLACED_H

#include "base/status.h"

struct kv_store;

enum {
	REPLACED_EVERY_MS = 5000, /* how often a server asks */
	REPLACED_ASK_S = 2,       /* for how long it waits for an answer */
};

/*
 * Asks once, with the URL of the standby (cli/remote.h). STATUS_FORBIDDEN, explained: it has taken
 * this store's place, or serves the store of another history. STATUS_OK otherwise; a log event if
 * there was no answer.
 */
MUST_USE enum status replaced_ask(const char *url, struct kv_store *store, struct err *err);

/*
 * Asks again and again, on a thread of its own, until replaced_unwatch(). `told` is called on it
 * once when the standby has taken the store's place. The URL and the store stay the caller's. For
 * one store of a process. STATUS_LIMIT when there can be no thread.
 */
MUST_USE enum status replaced_watch(const char *url, struct kv_store *store,
				    void (*told)(void *arg, const struct err *why), void *arg,
				    struct err *err);
void replaced_unwatch(void); /* after REPLACED_ASK_S at most; nothing if nobody watches */

#endif
