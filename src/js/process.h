/*
 * The processes of workers: starting, watching and killing them. A struct js_process is a plain
 * value of one owner, who kills it before it goes. One thread starts all of them and lives for as
 * long as they do: the system kills them when that thread ends.
 */
#ifndef FROND_JS_PROCESS_H
#define FROND_JS_PROCESS_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/status.h"

struct js_process {
	pid_t pid;
	int socket;      /* to speak to it; does not block */
	int statm;       /* what the system tells of its memory; -1: nothing */
	clockid_t clock; /* of what it has had of processors */
};

/*
 * Starts the program at that path. STATUS_UNSUPPORTED: it is not there, or cannot be executed;
 * STATUS_UNAVAILABLE: there can be no more processes or files; STATUS_IO.
 */
MUST_USE enum status js_process_start(const char *path, struct js_process *ret, struct err *err);

/* The memory that it has resident, or -1. */
int64_t js_process_resident_bytes(const struct js_process *p);

/* The time that it has had of processors, in nanoseconds; 0 if the system does not tell. */
uint64_t js_process_computed_ns(const struct js_process *p);

/*
 * Lowers its priority to `more` nice values above this process's, at most to the lowest. For good:
 * raising a priority takes rights that the server need not have.
 */
void js_process_give_way(const struct js_process *p, int more);

/* Kills it. Its files here stay open until js_process_close(). */
void js_process_signal(const struct js_process *p);
void js_process_close(struct js_process *p);

/* True if the killed process has ended, and its id is free. To be asked until then. */
bool js_process_is_gone(const struct js_process *p);

#endif
