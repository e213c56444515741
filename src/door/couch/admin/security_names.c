#include "door/couch/admin/security_names.h"

#include "doc/json.h"
#include "doc/json_value.h"

struct edit {
	struct str name;
	bool listed;
	struct arena *arena;
	struct buf *out;
	bool changed;
};

/* The value of `names` or `roles` in a group. A value that is not an array counts as empty. */
struct list {
	struct json_value *items;
	size_t count;
};

static enum status
list_read(struct edit *e, const struct json_member *members, size_t count, const char *name,
	  struct list *ret)
{
	const struct json_value *value = json_value_find(members, count, name);

	*ret = (struct list){ NULL, 0 };
	if (!value || value->kind != JSON_ARRAY_BEGIN)
		return STATUS_OK;
	return json_value_items(value, e->arena, &ret->items, &ret->count, NULL);
}

static bool
item_is(const struct json_value *item, struct str name)
{
	return item->kind == JSON_STRING && str_eq(item->string, name);
}

static size_t
list_occurrences(const struct list *list, struct str name)
{
	size_t n = 0;

	for (size_t i = 0; i < list->count; i++)
		n += item_is(&list->items[i], name);
	return n;
}

static void
edit_member(struct edit *e, struct str name, bool *first)
{
	if (!*first)
		buf_append_byte(e->out, ',');
	*first = false;
	json_write_str(e->out, name);
	buf_append_byte(e->out, ':');
}

/* Writes the names of a list. An added name comes first, as in CouchDB. */
static void
names_write(struct edit *e, const struct list *names, bool is_listed)
{
	bool first = true;

	buf_append_byte(e->out, '[');
	if (e->listed && !is_listed) {
		json_write_str(e->out, e->name);
		first = false;
	}
	for (size_t i = 0; i < names->count; i++) {
		if (!e->listed && item_is(&names->items[i], e->name))
			continue;
		if (!first)
			buf_append_byte(e->out, ',');
		first = false;
		buf_append_str(e->out, names->items[i].text);
	}
	buf_append_byte(e->out, ']');
}

/* `value` NULL: the object has no such group. */
static enum status
group_write(struct edit *e, const struct json_value *value, bool of_members)
{
	struct json_member *members = NULL;
	struct list names, roles;
	size_t count = 0, occurrences;
	bool first = true, closed;

	if (value && value->kind == JSON_OBJECT_BEGIN)
		TRY(json_value_members(value, e->arena, &members, &count, NULL));
	TRY(list_read(e, members, count, "names", &names));
	TRY(list_read(e, members, count, "roles", &roles));
	occurrences = list_occurrences(&names, e->name);
	if (value && (occurrences > 0) == e->listed) {
		buf_append_str(e->out, value->text);
		return STATUS_OK;
	}
	e->changed = true;
	/* A list of members without any name and role would make the database public. */
	closed = of_members && !e->listed && occurrences == names.count && !roles.count;
	buf_append_byte(e->out, '{');
	for (size_t i = 0; i < count; i++) {
		if (str_eq(members[i].name, STR("names")) ||
		    (closed && str_eq(members[i].name, STR("roles"))))
			continue;
		edit_member(e, members[i].name, &first);
		buf_append_str(e->out, members[i].value.text);
	}
	edit_member(e, STR("names"), &first);
	names_write(e, &names, occurrences > 0);
	if (closed) {
		edit_member(e, STR("roles"), &first);
		buf_append_cstr(e->out, "[\"_admin\"]");
	}
	buf_append_byte(e->out, '}');
	return STATUS_OK;
}

enum status
couch_security_list_name(struct str text, struct str name, bool listed, struct arena *arena,
			 struct buf *out, bool *ret_changed)
{
	static const char *const groups[] = { "admins", "members" };
	struct edit e = { .name = name, .listed = listed, .arena = arena, .out = out };
	struct json_member *members;
	bool first = true;
	size_t count;

	TRY(json_read_members(text, arena, &members, &count, NULL));
	buf_append_byte(out, '{');
	for (size_t i = 0; i < count; i++) {
		if (str_eq(members[i].name, STR("admins")) ||
		    str_eq(members[i].name, STR("members")))
			continue;
		edit_member(&e, members[i].name, &first);
		buf_append_str(out, members[i].value.text);
	}
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		const struct json_value *group = json_value_find(members, count, groups[i]);

		if (!group && !listed)
			continue;
		edit_member(&e, str_from_cstr(groups[i]), &first);
		TRY(group_write(&e, group, i == 1));
	}
	buf_append_byte(out, '}');
	*ret_changed = e.changed;
	return buf_status(out);
}
