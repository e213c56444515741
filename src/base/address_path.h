/*
 * Paths of Unix sockets. Such a path stands where an address of TCP does (base/address.h): as the
 * host of it, with 0 as the port.
 */
#ifndef FROND_BASE_ADDRESS_PATH_H
#define FROND_BASE_ADDRESS_PATH_H

#include "base/status.h"

enum {
	ADDRESS_PATH_BYTES = 108, /* with the NUL at its end: what the kernel allows */
};

/* True for the path of a Unix socket: it begins with a slash, as no other address does. */
bool address_is_path(const char *text);

/* STATUS_INVALID if the path is one of a directory, or longer than the kernel allows. */
MUST_USE enum status address_check_path(const char *path, struct err *err);

#endif
