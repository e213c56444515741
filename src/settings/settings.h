/*
 * The settings of a process: what its modules declare (base/setting.h), read from defaults, then a
 * file, then the command line and the environment, then what administrators have set in the store.
 * Each wins over what came before.
 *
 * The file has CouchDB's form and, where CouchDB has a setting, its name: sections in brackets,
 * `name = value` lines, comments after ';' or '#'. docs/SETTINGS.md lists every setting. An
 * unknown section or name and a value that makes no sense are errors that name the file, the line
 * and the setting: a typing mistake must not become a default.
 *
 * Two sections, [admins] and [jwt_keys], are open: their names are not declared, since they are
 * people and keys. Their entries are kept as they are, for access/ to read.
 *
 * Settings belong to one thread while they are changed. Once they are no longer changed, any
 * thread may read them.
 */
#ifndef FROND_SETTINGS_SETTINGS_H
#define FROND_SETTINGS_SETTINGS_H

#include <stdio.h>

#include "base/arena.h"
#include "base/setting.h"
#include "base/status.h"
#include "base/str.h"

enum {
	SETTINGS_LINE_BYTES = 8192,  /* a line of the file, without its end */
	SETTINGS_SECTION_BYTES = 64, /* a section's name in the file */
	SETTINGS_PEOPLE_LIMIT = 64,  /* entries of [admins] */
	SETTINGS_KEYS_LIMIT = 64,    /* entries of [jwt_keys] */
};

/* The open sections. */
#define SETTINGS_PEOPLE "admins"
#define SETTINGS_KEYS   "jwt_keys"

/* An entry of an open section. */
struct settings_entry {
	struct str name;
	struct str text; /* a password, plain or hashed; or a key */
	/*
	 * Given by the command line or the environment: settings_set_live() changes the password,
	 * but does not take the person away, who would be back at the next start.
	 */
	bool fixed;
};

struct settings;

/*
 * Settings with their defaults. The table of groups and what it points to are the caller's, and
 * outlive the settings. NULL when out of memory.
 */
struct settings *settings_new(const struct setting_group *const *groups, size_t count);

/*
 * A copy, to be changed; the texts that are not changed still belong to `from`, which must outlive
 * it. NULL when out of memory.
 */
struct settings *settings_copy(const struct settings *from);
void settings_free(struct settings *s); /* NULL is fine */

/*
 * The struct of a group that settings_new() was given, as SETTING_STRUCT() defines it. It is the
 * settings', and its texts end in NUL.
 */
const void *settings_of(const struct settings *s, const struct setting_group *group);

/* The entries of [admins], and of [jwt_keys]. */
size_t settings_people(const struct settings *s, const struct settings_entry **ret);
size_t settings_keys(const struct settings *s, const struct settings_entry **ret);

/* STATUS_NOT_FOUND, STATUS_IO; STATUS_INVALID; STATUS_NOMEM. `path` is only borrowed. */
MUST_USE enum status settings_read_file(struct settings *s, const char *path, struct err *err);

/* The same from an open file, called `name` in errors. */
MUST_USE enum status settings_read(struct settings *s, FILE *file, const char *name,
				   struct err *err);

/*
 * Sets one, from its text as a file has it. STATUS_NOT_FOUND: no setting is called that;
 * STATUS_INVALID; STATUS_LIMIT; STATUS_NOMEM.
 */
MUST_USE enum status settings_set(struct settings *s, struct str section, struct str name,
				  struct str text, struct err *err);

/* Adds an entry of [admins], or replaces the one that is there. Errors as above. */
MUST_USE enum status settings_set_person(struct settings *s, struct str name, struct str text,
					 bool fixed, struct err *err);

/*
 * The same for what can change while a server runs: the open sections, and settings that are
 * SETTING_LIVE. `text` ptr NULL: back to the default, or no such entry. STATUS_FORBIDDEN: it is
 * fixed when a server starts; otherwise as settings_set().
 */
MUST_USE enum status settings_set_live(struct settings *s, struct str section, struct str name,
				       struct str text, struct err *err);

/* CouchDB moved settings from one section to another: what the section is called now. */
struct str settings_section(struct str section);

/* Called with one setting; `text` as a file would have it, for the time of the call. */
typedef enum status settings_visit(void *arg, struct str section, struct str name, struct str text);

/*
 * Visits what is set or SETTING_LISTED, the open sections last, until a visit fails; returns that
 * failure.
 */
MUST_USE enum status settings_each(const struct settings *s, settings_visit *visit, void *arg);

/*
 * Writes the text of a setting's default into `ret` (SETTINGS_NUMBER_BYTES), or returns the text
 * that the declaration has. ptr NULL: none.
 */
struct str settings_default_text(const struct setting *setting, char *ret);

enum {
	SETTINGS_NUMBER_BYTES = 24,
};

#endif
