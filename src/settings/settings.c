#include "settings/settings.h"

#include <assert.h>

#include "base/mem.h"
#include "base/quote.h"
#include "settings/rules.h"

enum {
	SETTINGS_ARENA_BYTES = 1024 * 1024,
	SETTINGS_CHOICES_BYTES = 200,
};

/* The values of one group. */
struct settings_part {
	void *values;     /* the group's struct */
	bool *set_values; /* by the group's order: which of them somebody has set */
};

enum open_kind {
	OPEN_PEOPLE,
	OPEN_KEYS,
	OPEN_KINDS,
};

enum {
	OPEN_LIMIT = SETTINGS_PEOPLE_LIMIT,
};

_Static_assert((int)SETTINGS_KEYS_LIMIT == (int)OPEN_LIMIT, "both sections have the same room");

static const struct {
	const char *section;
	const char *text;    /* what an entry's text is called */
	const char *entries; /* what the entries are called */
} opens[OPEN_KINDS] = {
	[OPEN_PEOPLE] = { SETTINGS_PEOPLE, "password", "administrators" },
	[OPEN_KEYS] = { SETTINGS_KEYS, "key", "keys" },
};

/* The entries of an open section. */
struct settings_open {
	struct settings_entry entries[OPEN_LIMIT];
	size_t count;
};

struct settings {
	const struct setting_group *const *groups;
	size_t groups_count;
	struct arena *arena; /* the texts that were set */
	struct settings_open open[OPEN_KINDS];
	struct settings_part parts[]; /* one for each group */
};

static void
member_set_default(const struct setting *setting, void *values)
{
	void *member = (char *)values + setting->offset;

	switch (setting->type) {
	case SETTING_TYPE_NUMBER:
		*(uint64_t *)member = setting->default_number;
		break;
	case SETTING_TYPE_FLAG:
		*(bool *)member = setting->default_number != 0;
		break;
	case SETTING_TYPE_TEXT:
		*(const char **)member = setting->default_text;
		break;
	}
}

static struct settings *
settings_alloc(const struct setting_group *const *groups, size_t count)
{
	struct settings *s = mem_zalloc(sizeof(*s) + count * sizeof(s->parts[0]));

	if (!s)
		return NULL;
	s->groups = groups;
	s->groups_count = count;
	s->arena = arena_new(SETTINGS_ARENA_BYTES);
	for (size_t i = 0; i < count; i++) {
		s->parts[i].values = mem_zalloc(groups[i]->bytes);
		s->parts[i].set_values = mem_zalloc(groups[i]->count * sizeof(bool));
		if (!s->parts[i].values || !s->parts[i].set_values) {
			settings_free(s);
			return NULL;
		}
	}
	if (!s->arena) {
		settings_free(s);
		return NULL;
	}
	return s;
}

struct settings *
settings_new(const struct setting_group *const *groups, size_t count)
{
	struct settings *s = settings_alloc(groups, count);

	for (size_t i = 0; s && i < count; i++)
		for (size_t j = 0; j < groups[i]->count; j++)
			member_set_default(&groups[i]->settings[j], s->parts[i].values);
	return s;
}

struct settings *
settings_copy(const struct settings *from)
{
	struct settings *s = settings_alloc(from->groups, from->groups_count);

	if (!s)
		return NULL;
	for (size_t i = 0; i < s->groups_count; i++) {
		memcpy(s->parts[i].values, from->parts[i].values, s->groups[i]->bytes);
		memcpy(s->parts[i].set_values, from->parts[i].set_values,
		       s->groups[i]->count * sizeof(bool));
	}
	memcpy(s->open, from->open, sizeof(s->open));
	return s;
}

void
settings_free(struct settings *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->groups_count; i++) {
		mem_free(s->parts[i].values);
		mem_free(s->parts[i].set_values);
	}
	arena_free(s->arena);
	mem_free(s);
}

const void *
settings_of(const struct settings *s, const struct setting_group *group)
{
	size_t i = 0;

	while (i < s->groups_count && s->groups[i] != group)
		i++;
	assert(i < s->groups_count);
	return s->parts[i].values;
}

size_t
settings_people(const struct settings *s, const struct settings_entry **ret)
{
	*ret = s->open[OPEN_PEOPLE].entries;
	return s->open[OPEN_PEOPLE].count;
}

size_t
settings_keys(const struct settings *s, const struct settings_entry **ret)
{
	*ret = s->open[OPEN_KEYS].entries;
	return s->open[OPEN_KEYS].count;
}

/* ---- Values ---- */

static enum status
copy_text(struct settings *s, struct str text, struct str *ret, struct err *err)
{
	*ret = arena_dup(s->arena, text);
	return ret->ptr ? STATUS_OK : err_set(err, STATUS_NOMEM, "out of memory");
}

static enum status
set_number(const struct setting *setting, struct str text, uint64_t *ret, struct err *err)
{
	uint64_t n;

	if (!str_to_u64(text, &n) || n < setting->least || n > setting->most)
		return err_set(err, STATUS_INVALID,
			       "[%s] %s: \"%s\" is not a whole number from %llu to %llu",
			       setting->section, setting->name, QUOTE_SHOW(text),
			       (unsigned long long)setting->least,
			       (unsigned long long)setting->most);
	*ret = n;
	return STATUS_OK;
}

static enum status
set_flag(const struct setting *setting, struct str text, bool *ret, struct err *err)
{
	*ret = str_eq(text, STR("true"));
	if (*ret || str_eq(text, STR("false")))
		return STATUS_OK;
	return err_set(err, STATUS_INVALID, "[%s] %s: \"%s\" is neither true nor false",
		       setting->section, setting->name, QUOTE_SHOW(text));
}

static bool
choices_have(const char *choices, struct str text)
{
	for (;;) {
		size_t n = strcspn(choices, ",;");

		if (str_eq(text, str_of(choices, n)))
			return true;
		if (!choices[n])
			return false;
		choices += n + 1;
	}
}

/* Names the choices: "neither "a" nor "b"", or "none of a, b, c". */
static enum status
refuse_choice(const struct setting *setting, struct str text, struct err *err)
{
	char names[SETTINGS_CHOICES_BYTES];
	size_t used = 0;
	const char *first = setting->choices;
	size_t n = strcspn(first, ",;");
	size_t rest = strcspn(first, ";");

	if (first[n] == ',' && !memchr(first + n + 1, ',', rest - n - 1))
		return err_set(err, STATUS_INVALID,
			       "[%s] %s: \"%s\" is neither \"%.*s\" nor \"%.*s\"", setting->section,
			       setting->name, QUOTE_SHOW(text), (int)n, first, (int)(rest - n - 1),
			       first + n + 1);
	for (size_t i = 0; i < rest && used + 3 < sizeof(names); i++) {
		names[used++] = first[i];
		if (first[i] == ',')
			names[used++] = ' ';
	}
	names[used] = '\0';
	return err_set(err, STATUS_INVALID, "[%s] %s: \"%s\" is none of %s", setting->section,
		       setting->name, QUOTE_SHOW(text), names);
}

static bool
has_control_character(struct str text)
{
	for (size_t i = 0; i < text.len; i++)
		if ((unsigned char)text.ptr[i] < ' ' || text.ptr[i] == 0x7f)
			return true;
	return false;
}

static bool
begins_names_of_databases(struct str text)
{
	if (!text.len || text.len > SETTING_DB_PREFIX_BYTES || text.ptr[0] < 'a' ||
	    text.ptr[0] > 'z')
		return false;
	for (size_t i = 0; i < text.len; i++)
		if (!text.ptr[i] ||
		    !strchr("abcdefghijklmnopqrstuvwxyz0123456789_$()+-/", text.ptr[i]))
			return false;
	return true;
}

static enum status
check_rules(const struct setting *setting, struct str text, struct err *err)
{
	struct err why = { 0 };
	enum status status = rules_check(text, &why);

	if (status != STATUS_INVALID)
		return status;
	return err_set(err, STATUS_INVALID, "[%s] %s: %s", setting->section, setting->name,
		       why.text);
}

static enum status
set_text(struct settings *s, const struct setting *setting, struct str text, const char **ret,
	 struct err *err)
{
	struct str copy;

	if (text.len == 0 && setting->least > 0)
		return err_set(err, STATUS_INVALID, "[%s] %s: must not be empty", setting->section,
			       setting->name);
	if (text.len > 0 && memchr(text.ptr, '\0', text.len))
		return err_set(err, STATUS_INVALID, "[%s] %s: must not have a NUL in it",
			       setting->section, setting->name);
	if (setting->flags & SETTING_HEADER && has_control_character(text))
		return err_set(err, STATUS_INVALID,
			       "[%s] %s: must not have a control character in it, such as a line "
			       "end, because it becomes a part of a header",
			       setting->section, setting->name);
	if (setting->flags & SETTING_DB_PREFIX && !begins_names_of_databases(text))
		return err_set(err, STATUS_INVALID,
			       "[%s] %s: must begin with a letter from a to z, have only these, "
			       "digits and any of _, $, (, ), +, -, / in it, and at most %d bytes",
			       setting->section, setting->name, SETTING_DB_PREFIX_BYTES);
	if (setting->flags & SETTING_RULES)
		TRY(check_rules(setting, text, err));
	if (text.len < setting->least)
		return err_set(err, STATUS_INVALID, "[%s] %s: must have at least %llu characters",
			       setting->section, setting->name, (unsigned long long)setting->least);
	if (setting->choices && !choices_have(setting->choices, text))
		return refuse_choice(setting, text, err);
	TRY(copy_text(s, text, &copy, err));
	*ret = copy.ptr;
	return STATUS_OK;
}

static enum status
set_member(struct settings *s, const struct setting *setting, void *member, struct str text,
	   struct err *err)
{
	switch (setting->type) {
	case SETTING_TYPE_NUMBER:
		return set_number(setting, text, member, err);
	case SETTING_TYPE_FLAG:
		return set_flag(setting, text, member, err);
	case SETTING_TYPE_TEXT:
		break;
	}
	return set_text(s, setting, text, member, err);
}

/* ---- Finding them ---- */

struct str
settings_section(struct str section)
{
	return str_eq(section, STR("httpd")) ? STR("chttpd") : section;
}

/* A declaration and where its value is. */
struct settings_place {
	const struct setting *setting;
	void *values; /* the group's struct */
	bool *is_set;
};

/* STATUS_NOT_FOUND explains whether the section or the name is unknown. */
static enum status
find_setting(const struct settings *s, struct str section, struct str name,
	     struct settings_place *ret, struct err *err)
{
	bool known_section = false;

	section = settings_section(section);
	for (size_t i = 0; i < s->groups_count; i++) {
		for (size_t j = 0; j < s->groups[i]->count; j++) {
			const struct setting *setting = &s->groups[i]->settings[j];

			if (!str_eq(str_from_cstr(setting->section), section))
				continue;
			known_section = true;
			if (!str_eq(str_from_cstr(setting->name), name))
				continue;
			*ret = (struct settings_place){ setting, s->parts[i].values,
							&s->parts[i].set_values[j] };
			return STATUS_OK;
		}
	}
	if (known_section)
		return err_set(err, STATUS_NOT_FOUND, "[%s] has no setting \"%s\"",
			       QUOTE_SHOW(section), QUOTE_SHOW(name));
	return err_set(err, STATUS_NOT_FOUND, "there is no section [%s] (with \"%s\" in it)",
		       QUOTE_SHOW(section), QUOTE_SHOW(name));
}

static enum status
set_value(struct settings *s, const struct settings_place *place, struct str text, struct err *err)
{
	TRY(set_member(s, place->setting, (char *)place->values + place->setting->offset, text,
		       err));
	*place->is_set = true;
	return STATUS_OK;
}

/* ---- Setting them ---- */

/* False: the section is not open. */
static bool
open_find(struct str section, enum open_kind *ret)
{
	for (size_t i = 0; i < OPEN_KINDS; i++) {
		if (str_eq(section, str_from_cstr(opens[i].section))) {
			*ret = (enum open_kind)i;
			return true;
		}
	}
	return false;
}

static struct settings_entry *
open_find_entry(struct settings_open *open, struct str name)
{
	for (size_t i = 0; i < open->count; i++)
		if (str_eq(open->entries[i].name, name))
			return &open->entries[i];
	return NULL;
}

static enum status
open_set(struct settings *s, enum open_kind kind, struct str name, struct str text, bool fixed,
	 struct err *err)
{
	struct settings_open *open = &s->open[kind];
	struct settings_entry *entry = open_find_entry(open, name);
	struct settings_entry copy = { .fixed = fixed };

	if (text.len == 0)
		return err_set(err, STATUS_INVALID, "[%s] %s: the %s must not be empty",
			       opens[kind].section, QUOTE_SHOW(name), opens[kind].text);
	if (!entry && open->count == OPEN_LIMIT)
		return err_set(err, STATUS_LIMIT, "[%s] %s: more than %d %s", opens[kind].section,
			       QUOTE_SHOW(name), OPEN_LIMIT, opens[kind].entries);
	TRY(copy_text(s, name, &copy.name, err));
	TRY(copy_text(s, text, &copy.text, err));
	if (!entry)
		entry = &open->entries[open->count++];
	*entry = copy;
	return STATUS_OK;
}

enum status
settings_set_person(struct settings *s, struct str name, struct str text, bool fixed,
		    struct err *err)
{
	return open_set(s, OPEN_PEOPLE, name, text, fixed, err);
}

enum status
settings_set(struct settings *s, struct str section, struct str name, struct str text,
	     struct err *err)
{
	struct settings_place place;
	enum open_kind kind;

	if (open_find(section, &kind))
		return open_set(s, kind, name, text, false, err);
	TRY(find_setting(s, section, name, &place, err));
	return set_value(s, &place, text, err);
}

static enum status
open_set_live(struct settings *s, enum open_kind kind, struct str name, struct str text,
	      struct err *err)
{
	struct settings_open *open = &s->open[kind];
	struct settings_entry *entry = open_find_entry(open, name);

	if (text.ptr)
		return open_set(s, kind, name, text, entry && entry->fixed, err);
	if (entry && entry->fixed)
		return err_set(err, STATUS_FORBIDDEN, "[%s] %s: given where the server was started",
			       opens[kind].section, QUOTE_SHOW(name));
	if (entry)
		*entry = open->entries[--open->count];
	return STATUS_OK;
}

enum status
settings_set_live(struct settings *s, struct str section, struct str name, struct str text,
		  struct err *err)
{
	struct settings_place place;
	enum open_kind kind;

	if (open_find(section, &kind))
		return open_set_live(s, kind, name, text, err);
	TRY(find_setting(s, section, name, &place, err));
	if (!(place.setting->flags & SETTING_LIVE))
		return err_set(err, STATUS_FORBIDDEN, "[%s] %s: fixed when the server starts",
			       place.setting->section, place.setting->name);
	if (text.ptr)
		return set_value(s, &place, text, err);
	member_set_default(place.setting, place.values);
	*place.is_set = false;
	return STATUS_OK;
}

/* ---- Showing them ---- */

/* A value as a file would have it. Numbers are written into `digits`. */
static struct str
value_text(const struct setting *setting, const void *values, char digits[SETTINGS_NUMBER_BYTES])
{
	const void *member = (const char *)values + setting->offset;
	const char *text;
	uint64_t n;

	switch (setting->type) {
	case SETTING_TYPE_NUMBER:
		n = *(const uint64_t *)member;
		if (n < setting->least || n > setting->most)
			return (struct str){ 0 };
		return str_of(digits, (size_t)snprintf(digits, SETTINGS_NUMBER_BYTES, "%llu",
						       (unsigned long long)n));
	case SETTING_TYPE_FLAG:
		return *(const bool *)member ? STR("true") : STR("false");
	case SETTING_TYPE_TEXT:
		break;
	}
	text = *(const char *const *)member;
	return text ? str_from_cstr(text) : (struct str){ 0 };
}

struct str
settings_default_text(const struct setting *setting, char *ret)
{
	if (setting->type == SETTING_TYPE_FLAG)
		return setting->default_number ? STR("true") : STR("false");
	if (setting->type == SETTING_TYPE_TEXT)
		return setting->default_text ? str_from_cstr(setting->default_text)
					     : (struct str){ 0 };
	if (setting->default_number < setting->least || setting->default_number > setting->most)
		return (struct str){ 0 };
	return str_of(ret, (size_t)snprintf(ret, SETTINGS_NUMBER_BYTES, "%llu",
					    (unsigned long long)setting->default_number));
}

enum status
settings_each(const struct settings *s, settings_visit *visit, void *arg)
{
	char digits[SETTINGS_NUMBER_BYTES];

	for (size_t i = 0; i < s->groups_count; i++) {
		for (size_t j = 0; j < s->groups[i]->count; j++) {
			const struct setting *setting = &s->groups[i]->settings[j];
			struct str text = value_text(setting, s->parts[i].values, digits);

			if (text.ptr &&
			    (setting->flags & SETTING_LISTED || s->parts[i].set_values[j]))
				TRY(visit(arg, str_from_cstr(setting->section),
					  str_from_cstr(setting->name), text));
		}
	}
	for (size_t i = 0; i < OPEN_KINDS; i++)
		for (size_t j = 0; j < s->open[i].count; j++)
			TRY(visit(arg, str_from_cstr(opens[i].section), s->open[i].entries[j].name,
				  s->open[i].entries[j].text));
	return STATUS_OK;
}
