/*
 * The audit lines of the log: logins, refusals, and changes of people, rights and settings. Each
 * tells who, from which address, through which door, and the id of the request. None has a password
 * in it, a value of a setting, or the content of a document.
 *
 * Whoever may send requests can cause logins and refusals: at most AUDIT_LINES_PER_S of these are
 * written in a second, and the next one says how many were left out. Changes are all written.
 */
#ifndef FROND_DOOR_COUCH_WIRE_AUDIT_H
#define FROND_DOOR_COUCH_WIRE_AUDIT_H

#include "door/couch/wire/request.h"

enum {
	AUDIT_LINES_PER_S = 20,
	AUDIT_VALUE_BYTES = 256, /* the longest value in a line */
};

/*
 * Logs a login (STATUS_OK) or a refused one, by this method ("session", "basic", "jwt"). `failing`:
 * the name has failed too often from this address.
 */
void couch_audit_login(struct couch_req *r, struct str name, const char *method, enum status status,
		       bool failing);

/*
 * Logs that the request is answered 401 or 403. Writes nothing if an earlier line of the request
 * tells why.
 */
void couch_audit_refused(struct couch_req *r, int code);

/* Logs a committed change of the request as event=`event` `key`="`value`". */
void couch_audit_changed(struct couch_req *r, const char *event, const char *key, struct str value);

#endif
