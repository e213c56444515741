/* How a person is read, changed and written by statements about roles. */
#include "door/cql/run/role.h"
#include "settings/settings.h"

enum status
role_refuse_admin(struct cql_request *r, struct str name)
{
	if (!role_is_admin(r->door->config.live, name))
		return STATUS_OK;
	return request_fail(r, CQL_CODE_INVALID,
			    "'%.*s' is an administrator, whom the settings name: see frond config",
			    STR_ARG(name));
}

/* ---- Reading ---- */

struct door_reading {
	struct role_change *ch;
	struct arena_mark mark;
};

static enum status
door_read_body(struct kv_tx *tx, void *arg)
{
	struct door_reading *d = arg;
	struct role_change *ch = d->ch;
	struct person person;
	enum status status;

	arena_reset(ch->r->arena, d->mark);
	status = person_get(tx, ch->name, ch->r->arena, &person, &ch->r->err);
	ch->has_account = status == STATUS_OK && person.has_verifier;
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	return person_door_get(tx, ch->name, ROLE_DOOR, &ch->door, &ch->r->err);
}

/*
 * Reads the person's document first, and then the record for this door. Whoever changes that record
 * in between changes the document, too, so writing the document fails with a conflict.
 */
static enum status
change_read(struct role_change *ch)
{
	const struct door_people *people = ch->r->door->config.people;
	struct door_reading d = { .ch = ch };
	enum status status = people->get(people->arg, ch->name, ch->r->arena, &ch->doc,
					 &ch->r->err);

	if (status == STATUS_NOT_FOUND) {
		ch->doc = (struct door_person){ .name = ch->name };
		ch->r->err = (struct err){ 0 };
		status = STATUS_OK;
	}
	TRY(status);
	ch->known = ch->doc.source.len && !grants_are_dropped(ch->doc.roles, ch->doc.role_count);
	d.mark = arena_mark(ch->r->arena);
	return kv_run_read(ch->r->door->config.store, door_read_body, &d, &ch->r->err);
}

enum status
role_change_run(struct cql_request *r, struct str name,
		enum status (*attempt)(struct role_change *ch, void *arg), void *arg)
{
	struct arena_mark mark = arena_mark(r->arena);
	enum status status = STATUS_DOC_CONFLICT;

	TRY(role_refuse_admin(r, name));
	if (!person_name_is_sound(name))
		return request_fail(r, CQL_CODE_INVALID,
				    "people are those of every door: a name has 1 to %d bytes, and "
				    "no colon (PERSON_NAME_BYTES)",
				    PERSON_NAME_BYTES);
	r->writes = true;
	for (int i = 0; status == STATUS_DOC_CONFLICT && i < ROLE_ATTEMPTS; i++) {
		struct role_change ch = { .r = r, .name = name };

		arena_reset(r->arena, mark);
		r->err = (struct err){ 0 };
		status = change_read(&ch);
		if (status == STATUS_OK)
			status = attempt(&ch, arg);
	}
	if (status == STATUS_DOC_CONFLICT)
		return request_fail(r, CQL_CODE_INVALID,
				    "others change '%.*s' at the same time, again and again "
				    "(ROLE_ATTEMPTS)",
				    STR_ARG(name));
	return status;
}

/* ---- Changing ---- */

void
role_change_remove(struct role_change *ch, bool (*drops)(const struct grants_text *t, void *arg),
		   void *arg)
{
	size_t kept = 0;

	for (size_t i = 0; i < ch->doc.role_count; i++) {
		const struct grants_text t = grants_text_read(ch->doc.roles[i]);

		if (!drops(&t, arg))
			ch->doc.roles[kept++] = ch->doc.roles[i];
	}
	ch->doc.role_count = kept;
}

enum status
role_change_add(struct role_change *ch, struct str text)
{
	struct str *roles;

	for (size_t i = 0; i < ch->doc.role_count; i++)
		if (str_eq(ch->doc.roles[i], text))
			return STATUS_OK;
	roles = arena_alloc(ch->r->arena, (ch->doc.role_count + 1) * sizeof(*roles));
	if (!roles)
		return STATUS_LIMIT;
	if (ch->doc.role_count)
		memcpy(roles, ch->doc.roles, ch->doc.role_count * sizeof(*roles));
	roles[ch->doc.role_count++] = text;
	ch->doc.roles = roles;
	return STATUS_OK;
}

enum status
role_change_write(struct role_change *ch)
{
	const struct audit_by by = visit_audit_by(&ch->r->client->entry);
	const struct door_people *people = ch->r->door->config.people;

	if (!person_roles_fit(ch->doc.roles, ch->doc.role_count))
		return request_fail(ch->r, CQL_CODE_INVALID,
				    "'%.*s' has too many permissions and roles (PERSON_ROLES, "
				    "PERSON_ROLES_BYTES)",
				    STR_ARG(ch->name));
	ch->doc.own = &ch->door;
	ch->doc.own_door = ROLE_DOOR;
	TRY(people->put(people->arg, &by, &ch->doc, ch->r->arena, &ch->r->err));
	people_news_changed(ch->r->door->config.news);
	return STATUS_OK;
}

enum status
role_change_remove_person(struct role_change *ch)
{
	const struct audit_by by = visit_audit_by(&ch->r->client->entry);
	const struct door_people *people = ch->r->door->config.people;

	if (!ch->doc.bare || ch->doc.role_count || ch->has_account)
		return role_change_write(ch);
	TRY(people->remove(people->arg, &by, &ch->doc, ch->r->arena, &ch->r->err));
	people_news_changed(ch->r->door->config.news);
	return STATUS_OK;
}
