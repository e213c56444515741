/*
 * What the worker gives up before it runs anybody's function. From then on the process can compute,
 * take memory, start threads of its own and speak on the descriptors that are open. It cannot open
 * a file or a socket, start a process or a program, or touch another process; such calls fail with
 * EPERM.
 */
#ifndef FROND_JS_WORKER_SANDBOX_H
#define FROND_JS_WORKER_SANDBOX_H

#include "base/status.h"

/*
 * Closes every descriptor above standard error but `keep`, and replaces the standard ones by
 * /dev/null, but for standard error. STATUS_IO.
 */
MUST_USE enum status sandbox_close_files(int keep, struct err *err);

/*
 * Enters the sandbox, for all threads of the process and for good. STATUS_UNSUPPORTED if the
 * system has no seccomp, or this architecture no filter here; STATUS_IO.
 */
MUST_USE enum status sandbox_enter(struct err *err);

#endif
