/*
 * How a module declares its settings: the values that an operator can choose.
 *
 * A module lists its settings once, in a macro with one entry for each setting. Other macros turn
 * this list into a struct with one member for each setting, which the module reads, and into a
 * table that settings/ uses to read files, to check values and to document the settings:
 *
 *     #define LAMP_SETTINGS(S, NUMBER, FLAG, TEXT)                                           \
 *             NUMBER(S, watts, "lamp", "watts", "W", 1, 100, 40, SETTING_LIVE,               \
 *                    "Power that the lamp takes.")
 *     SETTING_STRUCT(lamp_settings, LAMP_SETTINGS);      defines struct lamp_settings
 *     extern const struct setting_group lamp_setting_group;
 *
 * and in one .c file
 *
 *     SETTING_GROUP(lamp_setting_group, lamp_settings, LAMP_SETTINGS);
 *
 * Everything here is constant data that any thread may read.
 */
#ifndef FROND_BASE_SETTING_H
#define FROND_BASE_SETTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum setting_type {
	SETTING_TYPE_NUMBER, /* a uint64_t */
	SETTING_TYPE_FLAG,   /* a bool: "true" or "false" */
	SETTING_TYPE_TEXT,   /* a const char *, as long as `least` at least; NULL: not set */
};

enum setting_flags {
	SETTING_AT_START = 0,
	SETTING_LIVE = 1, /* administrators can change it while servers run */
	/*
	 * A list of all settings shows this setting even if nobody has set it, as CouchDB lists
	 * what its own default files set. Other settings appear in such a list only when they are
	 * set.
	 */
	SETTING_LISTED = 2,
	SETTING_SECRET = 4, /* `frond config` never shows its value */
	/*
	 * The text becomes a part of a header of HTTP. It must not have control characters in it: a
	 * line end would begin another header.
	 */
	SETTING_HEADER = 8,
	/*
	 * The text is what names of databases begin with: a letter from a to z, then these, digits
	 * and any of _ $ ( ) + - /, no more than SETTING_DB_PREFIX_BYTES.
	 */
	SETTING_DB_PREFIX = 16,
	SETTING_RULES = 32, /* the text is a list of regular expressions (settings/rules.h) */
};

enum {
	SETTING_DB_PREFIX_BYTES = 100, /* less than half of what a database's name may have */
};

struct setting {
	const char *section;
	const char *name;
	enum setting_type type;
	unsigned flags;
	uint64_t least; /* the least number, or the least length of a text in bytes */
	uint64_t most;  /* the greatest number */
	/*
	 * The value of a setting that nobody has set. A number below `least` or above `most` stands
	 * for "none", or for a value that the module computes; `help` then says which.
	 */
	uint64_t default_number; /* for a flag: 0 or 1 */
	const char *default_text;
	const char *unit; /* for a number: "ms", "bytes", …; empty: none */
	/*
	 * The allowed texts, separated by commas. Texts behind a ';' are other spellings, which are
	 * allowed but not documented. NULL: any text is allowed.
	 */
	const char *choices;
	const char *help; /* a sentence for operators */
	size_t offset;    /* offset of the member in the group's struct */
};

/* The settings of one module. */
struct setting_group {
	const struct setting *settings;
	size_t count;
	size_t bytes; /* size of the struct */
};

#define SETTING_MEMBER_NUMBER(S, member, ...) uint64_t member;
#define SETTING_MEMBER_FLAG(S, member, ...)   bool member;
#define SETTING_MEMBER_TEXT(S, member, ...)   const char *member;

#define SETTING_STRUCT(name, LIST)                                                                 \
	struct name {                                                                              \
		LIST(name, SETTING_MEMBER_NUMBER, SETTING_MEMBER_FLAG, SETTING_MEMBER_TEXT)        \
	}

#define SETTING_ROW_NUMBER(S, member, section_, name_, unit_, least_, most_, default_, flags_,     \
			   help_)                                                                  \
	{ .section = (section_),                                                                   \
	  .name = (name_),                                                                         \
	  .type = SETTING_TYPE_NUMBER,                                                             \
	  .flags = (flags_),                                                                       \
	  .least = (least_),                                                                       \
	  .most = (most_),                                                                         \
	  .default_number = (default_),                                                            \
	  .unit = (unit_),                                                                         \
	  .help = (help_),                                                                         \
	  .offset = offsetof(struct S, member) },
#define SETTING_ROW_FLAG(S, member, section_, name_, default_, flags_, help_)                      \
	{ .section = (section_),                                                                   \
	  .name = (name_),                                                                         \
	  .type = SETTING_TYPE_FLAG,                                                               \
	  .flags = (flags_),                                                                       \
	  .default_number = (default_),                                                            \
	  .help = (help_),                                                                         \
	  .offset = offsetof(struct S, member) },
#define SETTING_ROW_TEXT(S, member, section_, name_, least_, choices_, default_, flags_, help_)    \
	{ .section = (section_),                                                                   \
	  .name = (name_),                                                                         \
	  .type = SETTING_TYPE_TEXT,                                                               \
	  .flags = (flags_),                                                                       \
	  .least = (least_),                                                                       \
	  .choices = (choices_),                                                                   \
	  .default_text = (default_),                                                              \
	  .help = (help_),                                                                         \
	  .offset = offsetof(struct S, member) },

#define SETTING_GROUP(variable, name, LIST)                                                        \
	static const struct setting variable##_rows[] = { LIST(                                    \
		name, SETTING_ROW_NUMBER, SETTING_ROW_FLAG, SETTING_ROW_TEXT) };                   \
	const struct setting_group variable = {                                                    \
		.settings = variable##_rows,                                                       \
		.count = sizeof(variable##_rows) / sizeof(variable##_rows[0]),                     \
		.bytes = sizeof(struct name),                                                      \
	}

#endif
