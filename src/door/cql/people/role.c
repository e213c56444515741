#include "door/cql/people/role.h"

#include "loop/step.h"
#include "settings/settings.h"

/* ---- One ---- */

static bool
is_admin(const struct settings_held *held, struct str name)
{
	const struct settings_entry *entries;
	size_t count = settings_people(held->settings, &entries);

	for (size_t i = 0; i < count; i++)
		if (str_eq(entries[i].name, name))
			return true;
	return false;
}

bool
role_is_admin(struct settings_live *live, struct str name)
{
	struct settings_held *held = settings_live_hold(live);
	bool is = is_admin(held, name);

	settings_held_unref(held);
	return is;
}

static struct role
role_of_admin(struct str name)
{
	return (struct role){ .name = name, .admin = true, .superuser = true, .login = true };
}

/* False for somebody who was dropped. */
static bool
role_of_person(const struct person *person, const struct person_door *at, struct role *ret)
{
	*ret = (struct role){ .name = person->name,
			      .texts = person->roles,
			      .text_count = person->roles_count };
	ret->login = !at->off && (person->has_verifier || at->by == PERSON_DOOR_BY_LIST);
	for (size_t i = 0; i < person->roles_count; i++)
		if (grants_text_read(person->roles[i]).kind == GRANTS_SUPERUSER)
			ret->superuser = true;
	return !grants_are_dropped(person->roles, person->roles_count);
}

enum status
role_read(struct kv_tx *tx, struct settings_live *live, struct str name, struct arena *arena,
	  struct role *ret, struct err *err)
{
	struct person_door at;
	struct person person;

	if (role_is_admin(live, name)) {
		*ret = role_of_admin(name);
		return STATUS_OK;
	}
	if (!person_name_is_sound(name))
		return STATUS_NOT_FOUND;
	TRY(person_get(tx, name, arena, &person, err));
	TRY(person_door_get(tx, name, ROLE_DOOR, &at, err));
	return role_of_person(&person, &at, ret) ? STATUS_OK : STATUS_NOT_FOUND;
}

/* ---- All of them ---- */

struct listing {
	const struct settings_held *held;
	role_take *take;
	void *arg;
};

static enum status
listing_tell(struct listing *l, const struct role *role)
{
	TRY(step_count(1 + (uint32_t)role->text_count));
	return l->take(l->arg, role);
}

static enum status
listing_take_person(void *arg, const struct person *person, const struct person_door *at)
{
	struct listing *l = arg;
	struct role role;

	if (is_admin(l->held, person->name) || !role_of_person(person, at, &role))
		return STATUS_OK;
	return listing_tell(l, &role);
}

static enum status
listing_run(struct listing *l, struct kv_tx *tx, struct arena *arena, struct err *err)
{
	const struct settings_entry *entries;
	size_t count = settings_people(l->held->settings, &entries);

	for (size_t i = 0; i < count; i++) {
		const struct role role = role_of_admin(entries[i].name);

		TRY(listing_tell(l, &role));
	}
	return person_at_door_each(tx, ROLE_DOOR, arena, listing_take_person, l, err);
}

enum status
role_each(struct kv_tx *tx, struct settings_live *live, struct budget_part *part, role_take *take,
	  void *arg, struct err *err)
{
	struct settings_held *held = settings_live_hold(live);
	struct listing l = { .held = held, .take = take, .arg = arg };
	struct arena *arena = arena_new(ROLE_PAGE_BYTES);
	enum status status = STATUS_NOMEM;

	if (arena) {
		arena_set_part(arena, part);
		status = listing_run(&l, tx, arena, err);
	}
	arena_free(arena);
	settings_held_unref(held);
	return status;
}

/* ---- Roles of roles ---- */

enum status
role_follow(struct kv_tx *tx, struct settings_live *live, struct grants *g, struct arena *arena)
{
	/* What is read names others, which stand behind. */
	for (size_t i = 0; i < g->role_count; i++) {
		struct person person;
		enum status status;

		/* A record of an administrator's name says nothing of the administrator. */
		if (role_is_admin(live, g->roles[i]) || !person_name_is_sound(g->roles[i]))
			continue;
		status = person_get(tx, g->roles[i], arena, &person, NULL);
		if (status == STATUS_LIMIT) /* what finds no room does not count */
			return STATUS_OK;
		if (status == STATUS_NOT_FOUND || status == STATUS_CORRUPT ||
		    status == STATUS_NEWER)
			continue;
		TRY(status);
		grants_add(g, person.roles, person.roles_count, arena);
	}
	return STATUS_OK;
}

struct following {
	struct settings_live *live;
	struct grants *grants, own;
	struct arena *arena;
	struct arena_mark mark;
};

static enum status
follow_body(struct kv_tx *tx, void *arg)
{
	struct following *f = arg;

	arena_reset(f->arena, f->mark);
	*f->grants = f->own;
	return role_follow(tx, f->live, f->grants, f->arena);
}

enum status
role_follow_all(struct kv_store *store, struct settings_live *live, struct grants *g,
		struct arena *arena, struct err *err)
{
	struct following f = {
		.live = live, .grants = g, .own = *g, .arena = arena, .mark = arena_mark(arena)
	};

	return g->role_count ? kv_run_read(store, follow_body, &f, err) : STATUS_OK;
}
