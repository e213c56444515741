/*
 * SCRAM-SHA-256 (RFC 5802, RFC 7677): a login in which the password is never sent. The client shows
 * that it knows the password, and the server shows that it knows the keys made of it.
 *
 * Two messages of the client are answered by two of the server:
 *
 *     n,,n=jan,r=fyko+d2lbbFgONRv9qkxdawL                      auth_scram_begin()
 *     r=fyko+d2lbbFgONRv9qkxdawL…,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=600000
 *     c=biws,r=fyko+d2lbbFgONRv9qkxdawL…,p=dHzbZapWIk4jUhN+…   auth_scram_end()
 *     v=6rriTRBi23WpRR/wtup+mMhUZUn/…
 *
 * A name that nobody has, or that has no keys of SCRAM yet, is answered alike, and fails at the
 * end: with a salt that is always the same for that name.
 *
 * A login belongs to one fiber.
 */
#ifndef FROND_ACCESS_AUTH_SCRAM_H
#define FROND_ACCESS_AUTH_SCRAM_H

#include "access/auth.h"

enum {
	AUTH_SCRAM_MESSAGE_BYTES = 4096, /* of a message of the client */
	AUTH_SCRAM_NONCE_BYTES = 1024,   /* of the client's nonce */
};

struct auth_scram;

/*
 * Answers the first message. `*ret_answer` lives in the arena. STATUS_INVALID: it is no such
 * message, explained; STATUS_FORBIDDEN: the name is locked out; errors of the store.
 */
MUST_USE enum status auth_scram_begin(struct auth *a, struct str message,
				      const struct auth_client *client, struct arena *arena,
				      struct auth_scram **ret, struct str *ret_answer,
				      struct err *err);

/*
 * Answers the second message. STATUS_UNAUTHORIZED: the password is another one; otherwise as
 * auth_scram_begin().
 */
MUST_USE enum status auth_scram_end(struct auth_scram *s, struct auth *a, struct str message,
				    const struct auth_client *client, struct arena *arena,
				    struct str *ret_answer, struct auth_user *ret_user,
				    struct err *err);

void auth_scram_free(struct auth_scram *s); /* NULL is fine */

#endif
