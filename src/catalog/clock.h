/*
 * What a store keeps of the clocks of the processes that serve it (base/steady.h), so that the next
 * process goes on where the last one was:
 *
 *     (ROOT, 17, b"id of the machine's start") → (format, boot_us, steady_us, date_us, wall_us)
 *
 * All are microseconds, and of one moment. As long as the machine runs, one record says exactly
 * what the clocks show, however old it is. So it is written when a process begins, when the clocks
 * have gone otherwise than it says, and once an hour, which tells the next start of the machine
 * that it is not earlier than that.
 *
 * A store of one process goes on from the latest record of an earlier start of the machine. In
 * front of a cluster those are other machines' clocks, and are left alone.
 *
 * Threading: any thread that may wait.
 */
#ifndef FROND_CATALOG_CLOCK_H
#define FROND_CATALOG_CLOCK_H

#include "base/status.h"
#include "base/steady.h"
#include "base/str.h"

struct buf;
struct chores;
struct kv_store;

/* Restores the clocks of the process from the store, unless they have been from another store. */
MUST_USE enum status catalog_clock_restore(struct kv_store *store, struct err *err);

/* Stores what the clocks show, if that is not there yet; `*ret_written` is true if it was not. */
MUST_USE enum status catalog_clock_keep(struct kv_store *store, bool *ret_written, struct err *err);

/* A chore that calls catalog_clock_keep(), and logs when the machine's clock was set. */
void catalog_clock_chores_add(struct chores *chores, struct kv_store *store);

/* ---- The record (clock_record.c) ---- */

/* The value; the id of the machine's start is in the key. */
void catalog_clock_record_put(const struct steady_state *state, struct buf *value);
MUST_USE enum status catalog_clock_record_parse(struct str value, struct steady_state *ret,
						struct err *err);

#endif
