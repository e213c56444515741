/*
 * The audit lines of the log: logins, refusals, and changes of people, rights and settings. Each
 * tells who, from which address, through which door, and the id of the request where the protocol
 * has one. None has a password in it, a value of a setting, or the content of a document.
 *
 * Whoever may send requests can cause logins and refusals: at most AUDIT_LINES_PER_S of these are
 * written in a second, by all doors together, and the next one says how many were left out. Changes
 * are all written.
 *
 * The functions that check credentials (auth.h, auth_scram.h) write the lines of logins, so that no
 * door can leave them out.
 *
 * Threading: any thread. Nothing is allocated: a request that ran out of memory is told, too.
 */
#ifndef FROND_ACCESS_AUDIT_H
#define FROND_ACCESS_AUDIT_H

#include "base/status.h"
#include "base/str.h"

enum {
	AUDIT_LINES_PER_S = 20,
	AUDIT_VALUE_BYTES = 256, /* the longest value in a line */
};

/* Who does something. Texts are the caller's. */
struct audit_by {
	const char *door;      /* static; NULL: no door, and nothing is written */
	struct str address;    /* of the connection: "127.0.0.1:40312" */
	struct str user;       /* empty: nobody who has logged in */
	struct str request_id; /* empty: the protocol has none */
	struct str trace_id;   /* of the client's trace; empty: it has told of none */
};

/*
 * Writes a login (STATUS_OK) or a refused one (STATUS_FORBIDDEN: the name is locked out there; any
 * other status: name, password or token was wrong). `method` is how it was tried, such as "basic".
 * `failing`: the name has failed too often from this address.
 */
void audit_login(const struct audit_by *by, struct str name, const char *method, enum status status,
		 bool failing);

/*
 * Writes that a request was refused for want of rights: what it wanted to do, on what (empty:
 * nothing that has a name), and how the door's protocol calls the refusal ("401", "NOPERM").
 */
void audit_refused(const struct audit_by *by, struct str method, struct str path,
		   const char *status);

/* Writes a committed change as event=`event` `key`="`value`". */
void audit_changed(const struct audit_by *by, const char *event, const char *key, struct str value);

#endif
