#include "serve/visit.h"

#include <assert.h>

#include "net/memory.h"
#include "net/session.h"
#include "serve/clients.h"
#include "serve/wanted.h"

/*
 * In `who.follow.seen`: the connection ends with its person. It was found by a wait below a command
 * perhaps, which only that fails with, and the next one must not go on.
 */
#define VISIT_ENDS UINT64_MAX

/* ---- Coming and going ---- */

/* Nobody gets memory before they are known. */
static void
visit_limit_memory(struct clients_entry *e)
{
	if (e->stream)
		net_stream_set_stranger(e->stream, !e->who.authenticated);
}

static void
visit_tell(struct clients_entry *e)
{
	const struct visitor *who = &e->who;

	clients_set_user(e, who->entered ? who->user.name : e->clients->rules.nobody,
			 visitor_is_limited(who));
	visit_limit_memory(e);
}

/*
 * Counts what is kept of the person. That there is no room for it ends no login: it is
 * PERSON_ROLES_BYTES and what the door makes of these, VISITOR_BYTES at most.
 */
static void
visit_count(struct clients_entry *e)
{
	(void)net_memory_part_resize(&e->person, visitor_bytes(&e->who));
}

/* As visit_check_waiting() for the person alone. */
static enum status
visit_look_waiting(struct clients_entry *e)
{
	if (visit_is_current(e))
		return STATUS_OK;
	if (!visitor_may_change(&e->who))
		return STATUS_CANCELLED;
	TRY(visit_follow(e));
	if (e->may.ask)
		return e->may.ask(e->may.arg);
	return e->who.authenticated ? STATUS_OK : STATUS_UNAUTHORIZED;
}

void
visit_reset(struct clients_entry *e)
{
	const struct visit_rules *rules = &e->clients->rules;

	e->may.look = visit_look_waiting;
	visitor_reset(&e->who, rules->live);
	rules->forget(e);
	visit_count(e);
	visit_tell(e);
}

enum status
visit_enter(struct clients_entry *e, const struct visitor_found *found, struct err *err)
{
	enum status status = e->clients->rules.know(e, found, err);

	if (status != STATUS_OK) {
		arena_free(found->arena);
		return status;
	}
	visitor_enter(&e->who, found);
	visit_count(e);
	visit_tell(e);
	return STATUS_OK;
}

enum status
visit_login(struct clients_entry *e, const char *method, struct str name, struct str password,
	    struct err *err)
{
	const struct auth_client client = visit_auth(e);
	struct visitor_found found;

	TRY(visitor_login(e->clients->rules.live, method, name, password, &client, &found, err));
	return visit_enter(e, &found, err);
}

struct audit_by
visit_audit_by(const struct clients_entry *e)
{
	return (struct audit_by){ .door = e->clients->rules.door,
				  .address = str_from_cstr(e->peer),
				  .user = e->who.entered ? e->who.user.name : STR("") };
}

struct auth_client
visit_auth(const struct clients_entry *e)
{
	const struct visit_rules *rules = &e->clients->rules;

	return (struct auth_client){ .by = visit_audit_by(e),
				     .gone = e->stream ? net_stream_closed_event(e->stream) : NULL,
				     .store = rules->store,
				     .door = rules->own };
}

/* ---- Following ---- */

bool
visit_is_current(const struct clients_entry *e)
{
	return visitor_is_current(&e->who, e->clients->rules.news);
}

/* What runs on the connection may point to what is known of the person. */
static void
visit_keep_former(struct clients_entry *e)
{
	if (e->op.link)
		visitor_keep_former(&e->who);
}

/*
 * The person is known, and what the person may is to be. While that cannot be told, what was known
 * holds, and the next command looks again. Takes the arena of `found`. False: the connection ends.
 */
static bool
visit_renew(struct clients_entry *e, const struct visitor_found *found)
{
	const struct visit_rules *rules = &e->clients->rules;

	if (rules->know(e, found, NULL) != STATUS_OK) {
		e->who.follow = (struct follow){ 0 };
		arena_free(found->arena);
		return true;
	}
	visit_keep_former(e);
	visitor_change(&e->who, found);
	visit_count(e);
	visit_tell(e);
	return !rules->changed || rules->changed(e);
}

/* The person's own record is as it was. */
static bool
visit_renew_same(struct clients_entry *e)
{
	const struct visit_rules *rules = &e->clients->rules;
	struct visitor_found found;

	if (!rules->depends || !rules->depends(e))
		return true;
	if (visitor_copy(&e->who, &found))
		return visit_renew(e, &found);
	e->who.follow = (struct follow){ 0 };
	return true;
}

/* False: the connection ends. */
static bool
visit_look(struct clients_entry *e)
{
	const struct visit_rules *rules = &e->clients->rules;
	const struct auth_client client = visit_auth(e);
	struct visitor_found found;

	if (!e->who.entered && rules->look_nobody)
		return rules->look_nobody(e);
	switch (visitor_look(&e->who, rules->news, rules->live, &client, &found)) {
	case FOLLOW_SAME:
		return visit_renew_same(e);
	case FOLLOW_CHANGED:
		return visit_renew(e, &found);
	case FOLLOW_GONE:
		break;
	}
	if (rules->ends_with_person)
		return false;
	visit_keep_former(e);
	visit_reset(e);
	return true;
}

enum status
visit_follow(struct clients_entry *e)
{
	/* What runs beside uses the person; the connection's fiber asks again when it has ended. */
	if (visit_is_current(e) || e->beside)
		return STATUS_OK;
	if (e->who.follow.seen == VISIT_ENDS || !visit_look(e)) {
		e->who.follow.seen = VISIT_ENDS;
		e->who.undecided = true; /* so nobody is current any more */
		return STATUS_CANCELLED;
	}
	visit_limit_memory(e); /* `look_nobody` of the rules may have decided otherwise */
	atomic_store(&e->followed, e->who.follow.seen);
	return STATUS_OK;
}

enum status
visit_goes_on(struct clients_entry *e, bool removed_self)
{
	step_unit();
	TRY(wanted_check(&e->op));
	return removed_self ? STATUS_OK : visit_follow(e);
}

/* ---- Commands ---- */

static const char *
visit_word(const char *word)
{
	return word ? word : "Unauthorized";
}

static void
visit_log_refusal(const struct clients_entry *e, struct str name, struct str on, const char *word)
{
	const struct audit_by by = visit_audit_by(e);

	audit_refused(&by, name, on, visit_word(word));
}

static enum status
visit_ask_limits(struct clients_entry *e, struct ops_op *op, struct err *err)
{
	if (e->op.session && !net_session_may_begin(e->op.session))
		return err_set(err, STATUS_CANCELLED, "the server stops");
	return ops_admit(op, e->limited ? str_from_cstr(e->user) : STR(""), err);
}

enum status
visit_admit_beside(struct clients_entry *e, struct ops_op *op, const struct visit_command *command,
		   struct err *err)
{
	if (command->always)
		ops_admit_always(op);
	else
		TRY(visit_ask_limits(e, op, err));
	if (command->is_open || e->who.authenticated)
		return STATUS_OK;
	visit_log_refusal(e, command->name, STR(""), e->clients->rules.no_login);
	return err_set(err, STATUS_UNAUTHORIZED, "nobody has logged in");
}

enum status
visit_admit(struct clients_entry *e, const struct visit_command *command, struct err *err)
{
	if (visit_follow(e) != STATUS_OK)
		return err_set(err, STATUS_CANCELLED, "the person has gone");
	return visit_admit_beside(e, &e->op, command, err);
}

void
visit_op_end(struct clients_entry *e, struct ops_op *op, const struct visit_refused *refused)
{
	const char *status = visit_word(e->clients->rules.no_right);

	ops_end(op, refused ? &(struct ops_refusal){ .by = visit_audit_by(e),
						     .on = refused->on,
						     .on_more = refused->on_more,
						     .status = status }
			    : NULL);
	if (op != &e->op)
		return;
	e->may.ask = NULL;
	visitor_forget_former(&e->who);
}

void
visit_refuse(const struct clients_entry *e, struct str name, struct str on)
{
	visit_log_refusal(e, name, on, e->clients->rules.no_right);
}

/* ---- Commands that wait ---- */

void
visit_may(struct clients_entry *e, enum status (*ask)(void *arg), void *arg)
{
	assert(e->op.link);
	e->may.ask = ask;
	e->may.arg = arg;
}

enum status
visit_check_waiting(struct clients_entry *e)
{
	TRY(wanted_check_waiting(&e->op));
	return visit_look_waiting(e);
}
