/*
 * The parts of frond user. A place is a store or a server; it reads and writes documents of _users
 * as texts. user.c makes and reads these texts. Everything runs on one thread.
 */
#ifndef FROND_CLI_USER_H
#define FROND_CLI_USER_H

#include "access/person_door.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"
#include "kv/kv.h"
#include "settings/live.h"

enum {
	USER_ARENA_BYTES = 256 * 1024 * 1024, /* for one document, or a page of people */
	USER_ID_BYTES = 1024,
};

/* Called for each person; `roles` is a JSON array. */
typedef enum status user_take(void *arg, struct str name, struct str roles, struct err *err);

/* What is to hold of a person at one door alone (access/person_door.h). */
struct user_at_door {
	struct str name; /* the person's */
	struct str door;
	const struct person_door *at;
};

struct user_place {
	/*
	 * Reads the text of a document with its _id and _rev, into the arena. STATUS_NOT_FOUND,
	 * without a text in `err`, if there is none.
	 */
	enum status (*get)(struct user_place *place, struct str id, struct arena *arena,
			   struct str *ret, struct err *err);
	/*
	 * Writes the document as an administrator; a plain password in it is hashed. `create`:
	 * makes the database if it is missing. STATUS_DOC_CONFLICT if _rev is not the current
	 * revision. `own` is written in the same transaction, unless it is NULL; a server takes
	 * none.
	 */
	enum status (*put)(struct user_place *place, struct str id, struct str text, bool create,
			   const struct user_at_door *own, struct arena *arena, struct err *err);
	/* Lists all people by name. A failure of `take` ends the listing. */
	enum status (*list)(struct user_place *place, user_take *take, void *arg, struct err *err);
	void (*free)(struct user_place *place);
};

/* Makes a place of a store, which the place owns and closes. */
MUST_USE enum status user_place_store(struct kv_store *store, struct user_place **ret,
				      struct err *err);

/*
 * The same of a store that is somebody else's, with the settings that hold there: what is made of
 * it serves all threads. Both outlive it.
 */
MUST_USE enum status user_place_lent(struct kv_store *store, struct settings_live *live,
				     struct user_place **ret, struct err *err);

/* Makes a place of the server at a URL. */
MUST_USE enum status user_place_server(const char *url, struct user_place **ret, struct err *err);

/*
 * Reads a password: the first line of standard input, or from a terminal, where it is not shown and
 * has to be given twice. `*ret` lives in the arena. STATUS_INVALID, explained.
 */
MUST_USE enum status user_read_password(struct str name, struct arena *arena, struct str *ret,
					struct err *err);

#endif
