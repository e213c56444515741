/*
 * Who is on a connection that stays, and the admission of its commands: for all doors whose
 * connections have an entry (serve/clients.h).
 *
 * A door gives its struct visit_rules with its list of connections: what it makes of a person's
 * roles, and nothing else. Whoever is removed, or gets other roles or another password, is treated
 * so at the next command: visit_admit() looks the person up when people have changed
 * (access/follow.h), which costs one load while they have not, and ops_begin() asserts that its
 * operation was admitted.
 *
 * Operations beside the entry's own (serve/beside.h) use the person without a lock. So the person
 * is looked up only while there are none, and none begins before the person is current.
 *
 * Threading: on the connection's fiber, unless a function says otherwise.
 */
#ifndef FROND_SERVE_VISIT_H
#define FROND_SERVE_VISIT_H

#include "access/visitor.h"

struct clients_entry;
struct kv_store;
struct ops_op;
struct people_news;

/* What a door knows of the people on its connections. */
struct visit_rules {
	const char *door; /* in lines of the audit log: "mongo" */
	struct str own;   /* the door of passwords of its own (struct auth_client); empty: none */
	/* A name for others to see of a connection on which nobody has logged in; may be empty. */
	struct str nobody;
	/* How audit lines call what is refused: NULL for both is "Unauthorized". */
	const char *no_login; /* for want of a login */
	const char *no_right;

	struct kv_store *store;
	struct settings_live *live;     /* who may log in */
	const struct people_news *news; /* NULL: people never change */

	/*
	 * Has the connection know what the person `found` may, who comes in or has other rights.
	 * What it keeps may lie in the arena of `found`, which lasts as long as the person is
	 * there. If it fails, what it knew before still holds.
	 */
	enum status (*know)(struct clients_entry *e, const struct visitor_found *found,
			    struct err *err);
	/*
	 * Nobody is there, at first and when the person has gone: everybody is in charge if
	 * `who.authenticated` says so, which it may change.
	 */
	void (*forget)(struct clients_entry *e);

	/* Each of these may be NULL. */

	/* True if what the person may also depends on the records of others. */
	bool (*depends)(const struct clients_entry *e);
	/*
	 * Looks up, in place of visitor_look(), what a connection may on which nobody has logged
	 * in. False: the connection ends.
	 */
	bool (*look_nobody)(struct clients_entry *e);
	/* The person has other rights now. False: the connection ends. */
	bool (*changed)(struct clients_entry *e);
	/* The connection of somebody who has gone ends; otherwise it is nobody's from then on. */
	bool ends_with_person;
};

/* ---- Coming and going ---- */

/* Nobody is there: the connection begins, or its person logs out. */
void visit_reset(struct clients_entry *e);

/*
 * Logs in by a name and a password. `method` names this way to log in, in audit lines. Fails as
 * auth_login() and visit_enter() do: then nothing has changed.
 */
MUST_USE enum status visit_login(struct clients_entry *e, const char *method, struct str name,
				 struct str password, struct err *err);
/*
 * Somebody has logged in otherwise. Takes the arena of `found`, which counts in the memory of all
 * connections from then on. Fails as `rules->know` does: then nothing has changed.
 */
MUST_USE enum status visit_enter(struct clients_entry *e, const struct visitor_found *found,
				 struct err *err);

/*
 * The person for audit lines, and for access/. What these point to lasts until the operation has
 * ended that runs, and otherwise as long as the person.
 */
struct audit_by visit_audit_by(const struct clients_entry *e);
struct auth_client visit_auth(const struct clients_entry *e);

/* ---- Commands ---- */

/* What asks to be admitted. */
struct visit_command {
	struct str name; /* for the log */
	bool is_open;    /* it is for those, too, who have not logged in */
	bool always;     /* no limit refuses it, and no stop (ops_admit_always()) */
};

/*
 * Asks for one command of the connection, before clients_op_begin(): looks up who asks for it, if
 * people have changed, and asks the limits (ops_admit()). STATUS_UNAUTHORIZED, explained: nobody
 * has logged in, and the audit log tells so. STATUS_CANCELLED, explained: the connection ends with
 * its person, or the process stops and no further command begins. When all commands that came
 * together are answered, clients_leave() has to be called.
 */
MUST_USE enum status visit_admit(struct clients_entry *e, const struct visit_command *command,
				 struct err *err);
/* The same for an operation beside the entry's own (serve/beside.h), without looking anybody up. */
MUST_USE enum status visit_admit_beside(struct clients_entry *e, struct ops_op *op,
					const struct visit_command *command, struct err *err);

/* What a command wanted to work on that its person has no right to: "db", "collection". */
struct visit_refused {
	struct str on, on_more;
};

/*
 * Ends an operation that clients_op_begin() or beside_op_begin() has begun. `refused` is NULL
 * unless its person has no right to it: then the audit log tells so.
 */
void visit_op_end(struct clients_entry *e, struct ops_op *op, const struct visit_refused *refused);

/*
 * Writes to the audit log that the person has no right to a command. For one of several that are an
 * operation together, such as a pipeline's or a script's: others are told of by visit_op_end().
 */
void visit_refuse(const struct clients_entry *e, struct str name, struct str on);

/*
 * Looks the person up if people have changed: of a connection that gets something unasked, and of a
 * command that runs again. STATUS_CANCELLED: the connection ends.
 */
MUST_USE enum status visit_follow(struct clients_entry *e);

/*
 * Between two parts of the entry's operation that are committed one by one: each part is a unit of
 * work (loop/step.h). Fails as wanted_check() does, and as visit_follow() does unless the operation
 * has `removed_self`, its own person: it then goes on to its end.
 */
MUST_USE enum status visit_goes_on(struct clients_entry *e, bool removed_self);

/* ---- Commands that wait: between clients_op_begin() and visit_op_end() ---- */

/*
 * Says how visit_check_waiting() finds out, when people have changed, whether the person may still
 * have what the operation waits for: it calls `ask(arg)`, and fails as that does. `ask` NULL: it is
 * enough that the person is still there.
 */
void visit_may(struct clients_entry *e, enum status (*ask)(void *arg), void *arg);

/*
 * Between two looks at what others do; a wait_asking() (loop/asking.h) looks at the person by
 * itself. Fails as wanted_check_waiting() does for the entry's operation; with STATUS_CANCELLED
 * also if the connection ends with its person; and if the person has no right any more to what the
 * operation waits for, as visit_may() says, by default with STATUS_UNAUTHORIZED.
 */
MUST_USE enum status visit_check_waiting(struct clients_entry *e);

/* True if visit_follow() has nothing to do. Any thread that keeps the person from changing. */
bool visit_is_current(const struct clients_entry *e);

#endif
