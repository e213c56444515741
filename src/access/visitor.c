#include "access/visitor.h"

#include <assert.h>

#include "access/people.h"

void
visitor_reset(struct visitor *v, struct settings_live *live)
{
	struct settings_held *held = settings_live_hold(live);
	bool everybody = !auth_has_admins(people_of(held));

	settings_held_unref(held);
	arena_free(v->arena);
	v->arena = NULL;
	v->user = (struct auth_user){ .admin = everybody };
	v->authenticated = everybody;
	v->entered = v->undecided = false;
	v->follow = (struct follow){ 0 };
}

void
visitor_keep_former(struct visitor *v)
{
	assert(visitor_may_change(v));
	if (!v->arena)
		return;
	v->former[v->former_count++] = v->arena;
	v->arena = NULL;
}

void
visitor_forget_formers(struct visitor *v)
{
	while (v->former_count)
		arena_free(v->former[--v->former_count]);
}

size_t
visitor_bytes(const struct visitor *v)
{
	size_t bytes = v->arena ? arena_used_bytes(v->arena) : 0;

	for (unsigned i = 0; i < v->former_count; i++)
		bytes += arena_used_bytes(v->former[i]);
	return bytes;
}

void
visitor_release(struct visitor *v)
{
	visitor_forget_former(v);
	arena_free(v->arena);
	*v = (struct visitor){ 0 };
}

enum status
visitor_login(struct settings_live *live, const char *method, struct str name, struct str password,
	      const struct auth_client *client, struct visitor_found *ret, struct err *err)
{
	struct settings_held *held;
	enum status status;

	*ret = (struct visitor_found){ .arena = arena_new(VISITOR_BYTES) };
	if (!ret->arena)
		return STATUS_NOMEM;
	held = settings_live_hold(live);
	status = auth_login(people_of(held), method, name, password, client, ret->arena, &ret->user,
			    err);
	settings_held_unref(held);
	if (status != STATUS_OK)
		arena_free(ret->arena);
	return status;
}

void
visitor_change(struct visitor *v, const struct visitor_found *found)
{
	arena_free(v->arena);
	v->arena = found->arena;
	v->user = found->user;
	v->authenticated = v->entered = true;
	v->undecided = false;
}

void
visitor_enter(struct visitor *v, const struct visitor_found *found)
{
	visitor_change(v, found);
	v->follow = (struct follow){ 0 };
}

/* True for a copy of the user in the arena. */
static bool
user_copy(const struct auth_user *user, struct arena *arena, struct auth_user *ret)
{
	*ret = *user;
	ret->name = arena_dup(arena, user->name);
	ret->roles = arena_alloc(arena, (user->roles_count + 1) * sizeof(*ret->roles));
	if (!ret->name.ptr || !ret->roles)
		return false;
	for (size_t i = 0; i < user->roles_count; i++) {
		ret->roles[i] = arena_dup(arena, user->roles[i]);
		if (!ret->roles[i].ptr)
			return false;
	}
	return true;
}

bool
visitor_copy(const struct visitor *v, struct visitor_found *ret)
{
	*ret = (struct visitor_found){ .arena = arena_new(VISITOR_BYTES) };
	if (ret->arena && user_copy(&v->user, ret->arena, &ret->user))
		return true;
	arena_free(ret->arena);
	return false;
}

enum follow_result
visitor_look(struct visitor *v, const struct people_news *news, struct settings_live *live,
	     const struct auth_client *client, struct visitor_found *ret)
{
	enum follow_result result;

	*ret = (struct visitor_found){ .arena = arena_new(VISITOR_BYTES) };
	if (!ret->arena)
		return FOLLOW_SAME;
	result = follow_look(&v->follow, news, live, client, &v->user, ret->arena, &ret->user);
	if (result != FOLLOW_CHANGED)
		arena_free(ret->arena);
	return result;
}
