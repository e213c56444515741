/*
 * Transactions whose caller wants to know the version of their commit, and not its order there: a
 * cluster tells the version with the commit's answer, and has to be asked for a stamp beside it.
 */
#ifndef FROND_KV_VERSION_H
#define FROND_KV_VERSION_H

#include "kv/kv.h"

/*
 * As kv_run(). `*ret_version` is the version of the commit, the first eight bytes of its stamp; 0:
 * nothing was written.
 */
MUST_USE enum status kv_run_versioned(struct kv_store *store, kv_body *body, void *arg,
				      uint64_t *ret_version, struct err *err);

#endif
