/* The directory that a path is in. Waits for the disk: not on a loop. */
#ifndef FROND_BASE_PARENT_H
#define FROND_BASE_PARENT_H

#include "base/status.h"

/*
 * Syncs the directory that has the entry `path`, so that a file or directory which was just made or
 * renamed there still has that name after a power failure.
 */
MUST_USE enum status parent_sync(const char *path, struct err *err);

#endif
