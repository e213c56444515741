/*
 * The parts of frond user. A place, which is a store or a server, gives and takes documents of
 * _users; what is in them is user.c's affair. All of it belongs to one thread.
 */
#ifndef FROND_CLI_USER_H
#define FROND_CLI_USER_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"
#include "kv/kv.h"

enum {
	USER_ARENA_BYTES = 256 * 1024 * 1024, /* for one document, or a page of people */
	USER_ID_BYTES = 1024,
};

/* Told of each person; `roles` is a JSON array. */
typedef enum status user_take(void *arg, struct str name, struct str roles, struct err *err);

struct user_place {
	/*
	 * The text of a document with its _id and _rev, in the arena. STATUS_NOT_FOUND, which
	 * nobody has explained, if there is none.
	 */
	enum status (*get)(struct user_place *place, struct str id, struct arena *arena,
			   struct str *ret, struct err *err);
	/*
	 * Writes the document, with a plain password if it is to have a new one, as an
	 * administrator. `create`: makes the database if there is none. STATUS_DOC_CONFLICT if
	 * _rev is not the current revision.
	 */
	enum status (*put)(struct user_place *place, struct str id, struct str text, bool create,
			   struct arena *arena, struct err *err);
	/* Everybody, by name. A failure of `take` ends it. */
	enum status (*list)(struct user_place *place, user_take *take, void *arg, struct err *err);
	void (*free)(struct user_place *place);
};

/* In a store, which the place owns from now on and closes. */
MUST_USE enum status user_place_store(struct kv_store *store, struct user_place **ret,
				      struct err *err);

/* In the server at a URL. */
MUST_USE enum status user_place_server(const char *url, struct user_place **ret, struct err *err);

/*
 * Reads a password: the first line of standard input, or from a terminal, where it is not shown and
 * has to be given twice. `*ret` lives in the arena. STATUS_INVALID, explained.
 */
MUST_USE enum status user_read_password(struct str name, struct arena *arena, struct str *ret,
					struct err *err);

#endif
