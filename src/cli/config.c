/* frond config: which settings there are, and whether a file of them makes sense. */
#include <stdio.h>
#include <stdlib.h>

#include "access/people.h"
#include "cli/cli.h"
#include "cli/serve_settings.h"
#include "cli/settings.h"

enum {
	OPTION_LIST = 'l',
	OPTION_CHECK = 'c',
	OPTION_MARKDOWN = 'm',
};

struct config_args {
	bool list;
	bool markdown;
	const char *check;
};

static const struct argp_option argp_options[] = {
	{ "list", OPTION_LIST, NULL, 0, "List every setting, as a file that could be edited", 0 },
	{ "markdown", OPTION_MARKDOWN, NULL, 0, "List them as docs/SETTINGS.md does", 0 },
	{ "check", OPTION_CHECK, "FILE", 0,
	  "Read FILE, and tell what would be wrong with it; print what it sets", 0 },
	{ 0 },
};

static const char argp_doc[] = "Tell of the settings that `frond serve` has.\v" CLI_EXIT_TEXT;

static error_t
config_parse_option(int key, char *text, struct argp_state *state)
{
	struct config_args *args = state->input;

	switch (key) {
	case OPTION_LIST:
		args->list = true;
		return 0;
	case OPTION_MARKDOWN:
		args->markdown = true;
		return 0;
	case OPTION_CHECK:
		args->check = text;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "what is \"%s\"?", text);
		return 0;
	case ARGP_KEY_END:
		if (args->list + args->markdown + (args->check != NULL) != 1)
			argp_error(state, "one of --list, --markdown and --check is needed");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- Lists ---- */

typedef void print_setting(const struct setting *setting);

struct lister {
	void (*print_section)(const char *section);
	print_setting *print_setting;
};

/* Settings of one section may come from several modules. They are told together. */
static void
list_section(const struct lister *lister, const char *section)
{
	size_t count;
	const struct setting_group *const *groups = cli_setting_groups(&count);

	lister->print_section(section);
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < groups[i]->count; j++) {
			const struct setting *setting = &groups[i]->settings[j];

			if (strcmp(setting->section, section) == 0)
				lister->print_setting(setting);
		}
}

/* True if a setting before this one has the same section. */
static bool
section_was_told(size_t group, size_t index)
{
	size_t count;
	const struct setting_group *const *groups = cli_setting_groups(&count);
	const char *section = groups[group]->settings[index].section;

	for (size_t i = 0; i <= group; i++)
		for (size_t j = 0; j < groups[i]->count; j++) {
			if (i == group && j == index)
				return false;
			if (strcmp(groups[i]->settings[j].section, section) == 0)
				return true;
		}
	return false;
}

static void
list_settings(const struct lister *lister)
{
	size_t count;
	const struct setting_group *const *groups = cli_setting_groups(&count);

	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < groups[i]->count; j++)
			if (!section_was_told(i, j))
				list_section(lister, groups[i]->settings[j].section);
}

/* What a setting accepts: "1 to 100 ms", "true or false", "packed or exploded", "text". */
static void
print_range(const struct setting *setting)
{
	const char *choice = setting->choices;

	if (setting->type == SETTING_TYPE_NUMBER) {
		printf("%llu to %llu%s%s", (unsigned long long)setting->least,
		       (unsigned long long)setting->most, *setting->unit ? " " : "", setting->unit);
	} else if (setting->type == SETTING_TYPE_FLAG) {
		printf("true or false");
	} else if (!choice) {
		if (setting->least > 1)
			printf("text of at least %llu characters",
			       (unsigned long long)setting->least);
		else
			printf("text");
	} else {
		for (size_t left = strcspn(choice, ";"); left > 0;) {
			size_t n = strcspn(choice, ",;");

			printf("%s%.*s", choice == setting->choices ? "" : ", ", (int)n, choice);
			left -= n < left ? n + 1 : n;
			choice += n + 1;
		}
	}
}

/* ---- As a file ---- */

static void
print_file_section(const char *section)
{
	printf("[%s]\n", section);
}

static void
print_file_setting(const struct setting *setting)
{
	char digits[SETTINGS_NUMBER_BYTES];
	struct str value = settings_default_text(setting, digits);

	printf("; %s\n; ", setting->help);
	print_range(setting);
	printf("%s\n", setting->flags & SETTING_LIVE ? "; can change while servers run" : "");
	printf(";%s = %.*s\n\n", setting->name, STR_ARG(value));
}

/* ---- As a page ---- */

static void
print_page_section(const char *section)
{
	printf("\n## [%s]\n\n| name | takes | default | live | |\n|---|---|---|---|---|\n",
	       section);
}

static void
print_page_setting(const struct setting *setting)
{
	char digits[SETTINGS_NUMBER_BYTES];
	struct str value = settings_default_text(setting, digits);

	printf("| `%s` | ", setting->name);
	print_range(setting);
	printf(value.ptr ? " | `%.*s` | " : " | %.*s | ", STR_ARG(value));
	printf("%s | %s |\n", setting->flags & SETTING_LIVE ? "yes" : "", setting->help);
}

static void
print_page(void)
{
	static const struct lister lister = { print_page_section, print_page_setting };

	fputs("# Settings\n\n"
	      "`frond config --markdown` prints this page from the declarations in the program, "
	      "and "
	      "a test\ncompares the two. `frond config --list` prints the same as a file to edit, "
	      "and `frond config\n--check FILE` tells whether a file makes sense. "
	      "[OPERATING.md](OPERATING.md#settings) says where\nsettings come from. Those that "
	      "are "
	      "live can also be changed over HTTP while servers run\n([how]"
	      "(OPERATING.md#settings-that-change-while-servers-run)).\n"
	      "\n"
	      "## [" SETTINGS_PEOPLE "]\n\n"
	      "Each name is that of an administrator, and its value is the password: plain, or as "
	      "CouchDB hashes it,\n`-pbkdf2-HASH,SALT,ROUNDS` (SHA-1) or "
	      "`-pbkdf2:sha256-HASH,SALT,ROUNDS`. Live.\n"
	      "\n"
	      "## [" SETTINGS_KEYS "]\n\n"
	      "Each name is `hmac:`, `rsa:`, `ec:` or `eddsa:` and the `kid` of the tokens that "
	      "the "
	      "key is for, or\n`_default`. The value is the secret in base64, or the public key in "
	      "PEM, with `\\n` for the ends of its\nlines. At most 64 keys. Live.\n",
	      stdout);
	list_settings(&lister);
}

/* ---- Checking a file ---- */

struct shown_section {
	char name[64];
};

static bool
is_secret(struct str section, struct str name)
{
	size_t count;
	const struct setting_group *const *groups = cli_setting_groups(&count);

	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < groups[i]->count; j++) {
			const struct setting *setting = &groups[i]->settings[j];

			if (str_eq(section, str_from_cstr(setting->section)) &&
			    str_eq(name, str_from_cstr(setting->name)))
				return setting->flags & SETTING_SECRET;
		}
	return true; /* a person's password, or a key */
}

static enum status
print_value(void *arg, struct str section, struct str name, struct str text)
{
	struct shown_section *shown = arg;

	if (!str_eq(section, str_from_cstr(shown->name))) {
		snprintf(shown->name, sizeof(shown->name), "%.*s", STR_ARG(section));
		printf("[%s]\n", shown->name);
	}
	if (is_secret(section, name))
		text = STR("…");
	printf("%.*s = %.*s\n", STR_ARG(name), STR_ARG(text));
	return STATUS_OK;
}

/* What the file alone sets: without what the environment adds for a server. */
static enum status
print_file(const char *path, struct err *err)
{
	struct settings *settings = cli_settings_new();
	struct shown_section shown = { "" };
	enum status status = settings ? settings_read_file(settings, path, err)
				      : err_set(err, STATUS_NOMEM, "out of memory");

	if (status == STATUS_OK)
		status = settings_each(settings, print_value, &shown);
	settings_free(settings);
	return status;
}

/* Refuses what `frond serve --config FILE` would refuse before it opens its store. */
static enum status
check_file(const char *path, struct err *err)
{
	struct settings *settings = cli_settings_new();
	const struct serve_given given = { .config = path };
	struct listening listening = { 0 };
	struct auth *auth = NULL;
	enum status status = settings ? serve_settings_read(&given, settings, &listening, err)
				      : err_set(err, STATUS_NOMEM, "out of memory");

	if (status == STATUS_OK)
		status = people_auth(settings, &auth, err);
	if (status == STATUS_OK)
		auth_free(auth);
	certificates_fini(&listening.certificates);
	settings_free(settings);
	return status;
}

static int
check_and_print_file(const char *path)
{
	struct err err = { 0 };
	enum status status = check_file(path, &err);

	if (status == STATUS_OK)
		status = print_file(path, &err);
	if (status == STATUS_OK)
		return cli_finish_output();
	cli_complain("%s", err.text);
	return CLI_USAGE;
}

static int
run_config(int argc, char **argv)
{
	static const struct lister file_lister = { print_file_section, print_file_setting };
	static const struct argp argp = { .options = argp_options,
					  .parser = config_parse_option,
					  .doc = argp_doc };
	struct config_args args = { 0 };

	cli_parse(&argp, argc, argv, &args);
	if (args.check)
		return check_and_print_file(args.check);
	if (args.markdown)
		print_page();
	else
		list_settings(&file_lister);
	return cli_finish_output();
}

const struct cli_command cli_config = { "config", "list settings, check a file of them",
					run_config };
