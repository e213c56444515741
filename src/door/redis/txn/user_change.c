#include "door/redis/txn/user_change.h"

#include "access/door_password.h"
#include "access/people.h"
#include "access/settings.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "door/people.h"
#include "door/redis/acl/rules.h"
#include "door/redis/txn/redis_int.h"
#include "door/redis/txn/user.h"
#include "loop/pause.h"
#include "loop/step.h"
#include "loop/wait.h"
#include "serve/wanted.h"

enum {
	APPLY_LOOK_MS = 1,
	ROLE_BYTES = 64 * 1024, /* of the rules of a person as a role */
};

/* A change of one user. */
struct change {
	struct client *client;
	struct redis *redis;
	const struct settings_held *held;
	const struct access_settings *access;
	struct arena *arena;
	struct err *err;
	bool open;              /* there is no administrator */
	bool pubsub;            /* new selectors begin with all channels */
	struct user user;       /* as it is to be */
	struct door_person doc; /* as it was read; to be made: without a source */
};

bool
user_may_change(struct client *c)
{
	return c->entry.who.user.admin || users_are_open(c->redis);
}

/* ---- Rules about passwords ---- */

/* A record that says nothing has neither rounds nor a salt. */
static void
door_ready(const struct change *ch, struct person_door *at)
{
	bool off = at->off;
	enum person_door_by by = at->by;

	if (at->rounds)
		return;
	person_door_init(at, ch->access->iterations);
	at->off = off;
	at->by = by;
}

static void
door_set_by(const struct change *ch, struct person_door *at, enum person_door_by by)
{
	door_ready(ch, at);
	at->by = by;
	at->count = 0;
}

static bool
is_digest(struct str text)
{
	for (size_t i = 0; i < text.len; i++)
		if (!(text.ptr[i] >= '0' && text.ptr[i] <= '9') &&
		    !(text.ptr[i] >= 'a' && text.ptr[i] <= 'f'))
			return false;
	return text.len == PERSON_DOOR_DIGEST_BYTES;
}

/* The hash of a password, or of the digits of its SHA-256, under the salt of the list. */
static enum status
hash_password(struct change *ch, const struct person_door *at, struct str text, bool is_plain,
	      uint8_t *ret)
{
	const struct auth_client client = visit_auth(&ch->client->entry);

	return door_password_hash(ch->held, &client, at, text, is_plain, ret, ch->err);
}

/*
 * Finds the hash that a rule means: `*ret`, under the salt of `at`, which is that of the hash if
 * the list is empty and the rule has one with a salt of its own.
 */
static enum status
password_of_rule(struct change *ch, struct person_door *at, struct str rule, uint8_t *ret)
{
	bool is_plain = rule.ptr[0] == '>' || rule.ptr[0] == '<';
	struct str text = str_skip(rule, 1);
	struct person_door salted;

	if (is_plain) {
		if (rule.ptr[0] == '>')
			TRY(door_password_check(ch->held, text, ch->err));
		return hash_password(ch, at, text, true, ret);
	}
	if (!is_digest(text) && !user_password_read(text, &salted))
		return err_set(ch->err, STATUS_INVALID,
			       "The password hash must be exactly 64 characters and contain only "
			       "lowercase hexadecimal characters");
	if (rule.ptr[0] == '#' && ch->access->password_rules)
		return err_set(ch->err, STATUS_INVALID,
			       "a hash cannot be compared with password_regexp");
	if (is_digest(text))
		return hash_password(ch, at, text, false, ret);
	if (!at->count) {
		memcpy(at->salt, salted.salt, sizeof(at->salt));
		at->rounds = salted.rounds;
	}
	if (at->rounds != salted.rounds || memcmp(at->salt, salted.salt, sizeof(at->salt)) != 0)
		return err_set(
			ch->err, STATUS_INVALID,
			"a hash with another salt than those that are there, which resetpass "
			"would remove");
	memcpy(ret, salted.hashes[0], PERSON_DOOR_HASH_BYTES);
	return STATUS_OK;
}

static enum status
rule_add_password(struct change *ch, struct str rule)
{
	struct person_door at = ch->user.at;
	uint8_t hash[PERSON_DOOR_HASH_BYTES];

	if (at.by != PERSON_DOOR_BY_LIST)
		door_set_by(ch, &at, PERSON_DOOR_BY_LIST);
	TRY(password_of_rule(ch, &at, rule, hash));
	if (person_door_find(&at, hash) == at.count) {
		if (at.count == PERSON_DOOR_PASSWORDS)
			return err_set(ch->err, STATUS_INVALID,
				       "a user has at most %d passwords (PERSON_DOOR_PASSWORDS)",
				       PERSON_DOOR_PASSWORDS);
		memcpy(at.hashes[at.count++], hash, sizeof(hash));
	}
	ch->user.at = at;
	return STATUS_OK;
}

static enum status
rule_remove_password(struct change *ch, struct str rule)
{
	struct person_door *at = &ch->user.at;
	uint8_t hash[PERSON_DOOR_HASH_BYTES];
	size_t i = 0;

	/* What the hash is compared with must not take the salt of the rule. */
	if (at->by == PERSON_DOOR_BY_LIST && at->count) {
		TRY(password_of_rule(ch, at, rule, hash));
		i = person_door_find(at, hash);
	}
	if (i == at->count)
		return err_set(ch->err, STATUS_INVALID,
			       "The password you are trying to remove from the user does not "
			       "exist");
	for (at->count--; i < at->count; i++)
		memcpy(at->hashes[i], at->hashes[i + 1], sizeof(at->hashes[i]));
	return STATUS_OK;
}

static void
rule_reset(struct change *ch)
{
	door_set_by(ch, &ch->user.at, PERSON_DOOR_BY_LIST);
	ch->user.at.off = true;
	ch->user.acl = (struct acl){ .root = { .all_channels = ch->pubsub } };
}

/* ---- Rules ---- */

/* Rules that are one word and are about how somebody logs in. `*ret_is`: this is one. */
static enum status
rule_word(struct change *ch, struct str rule, bool *ret_is)
{
	*ret_is = true;
	if (str_eq_nocase(rule, STR("on")) || str_eq_nocase(rule, STR("off"))) {
		door_ready(ch, &ch->user.at);
		ch->user.at.off = str_eq_nocase(rule, STR("off"));
	} else if (str_eq_nocase(rule, STR("resetpass"))) {
		door_set_by(ch, &ch->user.at, PERSON_DOOR_BY_LIST);
	} else if (str_eq_nocase(rule, STR("ownpass"))) {
		door_set_by(ch, &ch->user.at, PERSON_DOOR_BY_OWN);
	} else if (str_eq_nocase(rule, STR("nopass"))) {
		if (!ch->open)
			return err_set(ch->err, STATUS_INVALID,
				       "nobody logs in without a password where there is an "
				       "administrator");
		door_set_by(ch, &ch->user.at, PERSON_DOOR_BY_ANY);
	} else if (str_eq_nocase(rule, STR("reset"))) {
		rule_reset(ch);
	} else if (str_eq_nocase(rule, STR("skip-sanitize-payload"))) {
		return err_set(ch->err, STATUS_INVALID,
			       "RESTORE reads every payload to its end before it writes anything");
	} else {
		/* As it is in any case. */
		*ret_is = str_eq_nocase(rule, STR("sanitize-payload")) || !rule.len;
	}
	return STATUS_OK;
}

static enum status
rule_apply(struct change *ch, struct str rule)
{
	enum acl_rule_error error;
	bool is_word;

	TRY(rule_word(ch, rule, &is_word));
	if (is_word)
		return STATUS_OK;
	switch (rule.ptr[0]) {
	case '>':
	case '#':
		return rule_add_password(ch, rule);
	case '<':
	case '!':
		return rule_remove_password(ch, rule);
	default:
		error = acl_rule_apply(&ch->user.acl, rule, ch->pubsub, ch->arena);
	}
	return error == ACL_RULE_OK
		       ? STATUS_OK
		       : err_set(ch->err, STATUS_INVALID, "%s", acl_rule_errors[error]);
}

/* The beginning of a rule, as much as an error shows; of a password nothing. */
static struct str
rule_shown(struct str rule)
{
	size_t most = USER_RULE_SHOWN;

	if (rule.len && (rule.ptr[0] == '>' || rule.ptr[0] == '<'))
		most = 1;
	return str_of(rule.ptr, rule.len < most ? rule.len : most);
}

/* Whether there are as many rules as it seems is asked before any of them is looked at. */
static enum status
rules_check_ends(struct change *ch, const struct str *rules, size_t count)
{
	for (size_t i = 0; i < count;) {
		struct str shown = rule_shown(rules[i]), rule;

		if (!acl_rule_next(rules, count, &i, ch->arena, &rule))
			return err_set(ch->err, STATUS_INVALID,
				       "Unmatched parenthesis in acl selector starting at '%.*s'.",
				       STR_ARG(shown));
	}
	return STATUS_OK;
}

static enum status
rules_apply_all(struct change *ch, const struct str *rules, size_t count)
{
	enum status status = rules_check_ends(ch, rules, count);
	struct str rule;
	struct err why;

	TRY(status);
	for (size_t i = 0; i < count && status == STATUS_OK;) {
		if (!acl_rule_next(rules, count, &i, ch->arena, &rule))
			return STATUS_LIMIT;
		status = rule_apply(ch, rule);
	}
	if (status != STATUS_INVALID)
		return status;
	why = *ch->err;
	return err_set(ch->err, STATUS_INVALID, "Error in ACL SETUSER modifier '%.*s': %s",
		       STR_ARG(rule_shown(rule)), why.text);
}

/* ---- Reading and writing the person ---- */

static enum status
check_name(struct change *ch, struct str name)
{
	if (!acl_is_one_word(name))
		return err_set(ch->err, STATUS_INVALID,
			       "Usernames can't contain spaces or null characters");
	if (person_name_is_sound(name) && utf8_valid_prefix(name) == name.len)
		return STATUS_OK;
	return err_set(ch->err, STATUS_INVALID,
		       "people are those of every door: a name has 1 to %d bytes of UTF-8, and no "
		       "colon (PERSON_NAME_BYTES)",
		       PERSON_NAME_BYTES);
}

static enum status
refuse_admin(struct str name, struct err *err)
{
	return err_set(err, STATUS_INVALID,
		       "'%.*s' is an administrator, whom the settings name: see frond config",
		       STR_ARG(name));
}

/*
 * Reads the person, and then the user: whoever changes either of them in between changes the
 * document, too, so that writing it fails.
 */
static enum status
change_read(struct change *ch, struct str name)
{
	const struct door_people *people = ch->redis->config.people;
	enum status status = people->get(people->arg, name, ch->arena, &ch->doc, ch->err);

	if (status == STATUS_NOT_FOUND) {
		ch->doc = (struct door_person){ .name = name };
		*ch->err = (struct err){ 0 };
		status = STATUS_OK;
	}
	TRY(status);
	TRY(user_read(ch->redis, name, ch->arena, &ch->user, ch->err));
	/* The rules of the document: where nothing is to be written, nothing tells of a change. */
	if (ch->user.is_person && !ch->user.is_initial)
		acl_of_roles(&ch->user.acl, ch->doc.roles, ch->doc.role_count, ch->arena);
	return STATUS_OK;
}

/* The roles of other doors, and the rules unless they are NULL. */
static enum status
change_roles(struct change *ch, const struct acl *rules, bool *ret_changed)
{
	AUTO(buf_release) struct buf text = BUF_SHORT(ROLE_BYTES);
	struct str *roles = arena_alloc(ch->arena, (ch->doc.role_count + 1) * sizeof(*roles));
	size_t count = 0, own = 0;
	struct str role = { 0 };
	bool same = false;

	if (!roles)
		return STATUS_LIMIT;
	if (rules) {
		acl_describe_role(rules, &text);
		if (buf_copy(&text, ch->arena, &role) != STATUS_OK)
			return err_set(ch->err, STATUS_INVALID,
				       "the rules are too long together (PERSON_ROLES_BYTES)");
	}
	for (size_t i = 0; i < ch->doc.role_count; i++) {
		if (!str_starts_with(ch->doc.roles[i], STR(ACL_ROLE))) {
			roles[count++] = ch->doc.roles[i];
			continue;
		}
		same = str_eq(ch->doc.roles[i], role);
		own++;
	}
	if (rules)
		roles[count++] = role;
	if (!person_roles_fit(roles, count))
		return err_set(ch->err, STATUS_INVALID,
			       "the rules are too long together with the other roles "
			       "(PERSON_ROLES_BYTES)");
	*ret_changed = rules ? own != 1 || !same : own > 0;
	ch->doc.roles = roles;
	ch->doc.role_count = count;
	return STATUS_OK;
}

static bool
doors_are_equal(const struct person_door *a, const struct person_door *b)
{
	if (person_door_is_plain(a) || person_door_is_plain(b))
		return person_door_is_plain(a) == person_door_is_plain(b);
	return a->off == b->off && a->by == b->by && a->rounds == b->rounds &&
	       a->count == b->count && memcmp(a->salt, b->salt, sizeof(a->salt)) == 0 &&
	       memcmp(a->hashes, b->hashes, a->count * sizeof(a->hashes[0])) == 0;
}

static enum status
change_write(struct change *ch)
{
	const struct audit_by by = visit_audit_by(&ch->client->entry);
	const struct door_people *people = ch->redis->config.people;

	ch->doc.own = &ch->user.at;
	ch->doc.own_door = USER_DOOR;
	return people->put(people->arg, &by, &ch->doc, ch->arena, ch->err);
}

/* ---- What follows ---- */

/* Connections of a user that get something unasked, and have not looked since a change. */
struct following {
	struct str name;
	uint64_t count; /* of people_news_count() */
	const struct client *self;
};

static bool
is_behind(void *arg, struct clients_entry *e)
{
	const struct following *f = arg;
	const struct client *c = (const struct client *)e;

	return c != f->self && str_eq(f->name, str_from_cstr(e->user)) && client_gets_more(c) &&
	       atomic_load(&c->entry.followed) < f->count;
}

/*
 * Has the change hold in this process. A connection that cannot look in time, since its client does
 * not read, is ended: it might get what the user may not have any more.
 */
static void
change_apply(struct change *ch)
{
	struct people_news *news = ch->redis->config.news;
	struct clients *clients = &ch->redis->clients;
	uint64_t until_ns = clock_after_ms(USER_APPLY_MS);
	struct following f = { .name = ch->user.name, .self = ch->client };

	people_news_changed(news);
	f.count = people_news_count(news);
	while (clients_signal_each(clients, CLIENT_LOOK, is_behind, &f)) {
		if (clock_mono_ns() >= until_ns) {
			(void)clients_signal_each(clients, CLIENT_KILLED, is_behind, &f);
			break;
		}
		wait_pause(APPLY_LOOK_MS);
	}
}

/* Makes attempts until nobody else has written the person in between. */
static enum status
change_run(struct change *ch, struct str name, enum status (*attempt)(struct change *, void *),
	   void *arg)
{
	struct settings_held *held = settings_live_hold(ch->redis->config.live);
	struct arena_mark mark = arena_mark(ch->arena);
	enum status status = STATUS_DOC_CONFLICT;

	ch->held = held;
	ch->access = settings_of(held->settings, &access_setting_group);
	ch->open = !auth_has_admins(people_of(held));
	ch->pubsub = atomic_load(&ch->redis->acl_pubsub);
	for (int i = 0; status == STATUS_DOC_CONFLICT && i < USER_ATTEMPTS; i++) {
		arena_reset(ch->arena, mark);
		*ch->err = (struct err){ 0 };
		status = change_read(ch, name);
		if (status == STATUS_OK)
			status = attempt(ch, arg);
	}
	settings_held_unref(held);
	if (status == STATUS_DOC_CONFLICT)
		return err_set(ch->err, STATUS_INVALID,
			       "others change '%.*s' at the same time, again and again "
			       "(USER_ATTEMPTS)",
			       STR_ARG(name));
	return status;
}

/* ---- SETUSER ---- */

struct setting_user {
	const struct str *rules;
	size_t count;
};

/* What a user begins with whom nobody knows yet. A person can log in already. */
static void
change_begin(struct change *ch)
{
	if (ch->user.known)
		return;
	ch->user.acl.root.all_channels = ch->pubsub;
	if (!ch->user.is_person)
		person_door_init(&ch->user.at, ch->access->iterations);
}

static enum status
set_attempt(struct change *ch, void *arg)
{
	const struct setting_user *set = arg;
	struct person_door before = ch->user.at;
	struct acl rules;
	bool changed;

	if (ch->user.admin)
		return refuse_admin(ch->user.name, ch->err);
	change_begin(ch);
	if (!acl_copy(&ch->user.acl, &rules, ch->arena))
		return STATUS_LIMIT;
	ch->user.acl = rules;
	TRY(rules_apply_all(ch, set->rules, set->count));
	TRY(change_roles(ch, &ch->user.acl, &changed));
	if (ch->doc.source.len && !changed && doors_are_equal(&before, &ch->user.at))
		return STATUS_OK;
	TRY(change_write(ch));
	change_apply(ch);
	return STATUS_OK;
}

enum status
user_change(struct client *c, struct str name, const struct str *rules, size_t count,
	    struct arena *arena, struct err *err)
{
	struct change ch = { .client = c, .redis = c->redis, .arena = arena, .err = err };
	struct setting_user set = { .rules = rules, .count = count };

	TRY(check_name(&ch, name));
	return change_run(&ch, name, set_attempt, &set);
}

/* ---- DELUSER ---- */

static bool
is_of_user(void *arg, struct clients_entry *e)
{
	const struct following *f = arg;

	return (const struct client *)e != f->self && str_eq(f->name, str_from_cstr(e->user));
}

static enum status
remove_attempt(struct change *ch, void *arg)
{
	const struct audit_by by = visit_audit_by(&ch->client->entry);
	const struct door_people *people = ch->redis->config.people;
	struct following f = { .name = ch->user.name, .self = ch->client };
	bool *removed = arg, changed;

	*removed = false;
	if (!ch->user.known || !ch->doc.source.len)
		return STATUS_OK;
	TRY(change_roles(ch, NULL, &changed));
	ch->user.at = (struct person_door){ .by = PERSON_DOOR_BY_OWN };
	if (ch->doc.bare && !ch->doc.role_count)
		TRY(people->remove(people->arg, &by, &ch->doc, ch->arena, ch->err));
	else
		TRY(change_write(ch));
	*removed = true;
	(void)clients_signal_each(&ch->redis->clients, CLIENT_KILLED, is_of_user, &f);
	if (str_eq(ch->user.name, ch->client->entry.who.user.name))
		ch->client->end = CLIENT_ENDS;
	change_apply(ch);
	return STATUS_OK;
}

enum status
user_may_be_removed(struct redis *r, struct str name, struct err *err)
{
	if (str_eq(name, USER_DEFAULT))
		return err_set(err, STATUS_INVALID, "The 'default' user cannot be removed");
	return user_is_admin(r, name) ? refuse_admin(name, err) : STATUS_OK;
}

enum status
user_remove(struct client *c, struct str name, struct arena *arena, bool *ret, struct err *err)
{
	struct change ch = { .client = c, .redis = c->redis, .arena = arena, .err = err };

	TRY(user_may_be_removed(c->redis, name, err));
	return change_run(&ch, name, remove_attempt, ret);
}

/* ---- requirepass ---- */

enum status
user_require_password(struct client *c, struct str password, struct arena *arena, struct err *err)
{
	bool open = users_are_open(c->redis);
	struct str rules[3];
	size_t count = 0;
	struct user user;
	char *rule;

	TRY(user_read(c->redis, USER_DEFAULT, arena, &user, err));
	if (!password.len) {
		if (user.is_initial)
			return STATUS_OK;
		rules[count++] = open ? STR("nopass") : STR("resetpass");
		return user_change(c, USER_DEFAULT, rules, count, arena, err);
	}
	/* With an administrator it is off as long as nobody has said anything of it. */
	if (user.is_initial)
		rules[count++] = STR("on");
	rules[count++] = STR("resetpass");
	rule = arena_bytes(arena, password.len + 1);
	if (!rule)
		return STATUS_LIMIT;
	rule[0] = '>';
	memcpy(rule + 1, password.ptr, password.len);
	rules[count++] = str_of(rule, password.len + 1);
	return user_change(c, USER_DEFAULT, rules, count, arena, err);
}
