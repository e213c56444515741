#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/log.h"
#include "settings/settings.h"

enum {
	LAMP_WATTS = 40,
};

/* A module of the test's own: every type, range and flag that a declaration can have. */
/* clang-format off */
#define LAMP_SETTINGS(S, NUMBER, FLAG, TEXT)                                                       \
	TEXT(S, host, "chttpd", "bind_address", 1, NULL, "127.0.0.1", SETTING_LISTED, "Address.")  \
	NUMBER(S, port, "chttpd", "port", "", 0, 65535, 5984, SETTING_LISTED, "Port.")             \
	FLAG(S, cors, "chttpd", "enable_cors", false, SETTING_LIVE | SETTING_LISTED, "Pages.")     \
	NUMBER(S, watts, "lamp", "watts", "W", 1, 100, LAMP_WATTS, SETTING_LIVE, "Power.")         \
	NUMBER(S, hours, "lamp", "hours", "h", 1, 24, 0, SETTING_LIVE, "Without a limit by "       \
	       "default.")                                                                         \
	TEXT(S, colour, "lamp", "colour", 1, "white,warm", "warm", SETTING_LIVE, "Colour.")        \
	TEXT(S, secret, "lamp", "secret", 16, NULL, NULL, SETTING_LIVE | SETTING_SECRET, "Key.")
/* clang-format on */

SETTING_STRUCT(lamp_settings, LAMP_SETTINGS);
SETTING_GROUP(lamp_setting_group, lamp_settings, LAMP_SETTINGS);

static const struct setting_group *const groups[] = { &lamp_setting_group, &log_setting_group };

static struct settings *
new_settings(void)
{
	struct settings *s = settings_new(groups, 2);

	assert_non_null(s);
	return s;
}

static const struct lamp_settings *
lamp_of(const struct settings *s)
{
	return settings_of(s, &lamp_setting_group);
}

static enum status
read_text(struct settings *s, const char *text, struct err *err)
{
	FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	enum status status;

	assert_non_null(file);
	status = settings_read(s, file, "frond.ini", err);
	fclose(file);
	return status;
}

/* Reading `text` fails with exactly this explanation. */
static void
assert_refused(const char *text, const char *explanation)
{
	struct settings *s = new_settings();
	struct err err = { 0 };

	assert_int_equal(read_text(s, text, &err), STATUS_INVALID);
	assert_string_equal(err.text, explanation);
	settings_free(s);
}

/* Everything that settings_each() visits, as one text. */
static enum status
append_setting(void *arg, struct str section, struct str name, struct str text)
{
	char *all = arg;

	(void)sprintf(all + strlen(all), "%.*s.%.*s=%.*s\n", STR_ARG(section), STR_ARG(name),
		      STR_ARG(text));
	return STATUS_OK;
}

static void
assert_listed(const struct settings *s, const char *expected)
{
	char all[2048] = "";

	assert_int_equal(settings_each(s, append_setting, all), STATUS_OK);
	assert_string_equal(all, expected);
}

static void
defaults_hold_and_only_listed_ones_are_listed(void **state)
{
	struct settings *s = new_settings();
	const struct settings_entry *people;

	(void)state;
	assert_string_equal(lamp_of(s)->host, "127.0.0.1");
	assert_int_equal(lamp_of(s)->port, 5984);
	assert_int_equal(lamp_of(s)->watts, LAMP_WATTS);
	assert_int_equal(lamp_of(s)->hours, 0);
	assert_string_equal(lamp_of(s)->colour, "warm");
	assert_false(lamp_of(s)->cors);
	assert_null(lamp_of(s)->secret);
	assert_int_equal(settings_people(s, &people), 0);
	assert_listed(s, "chttpd.bind_address=127.0.0.1\n"
			 "chttpd.port=5984\n"
			 "chttpd.enable_cors=false\n"
			 "log.level=info\n");
	settings_free(s);
}

static void
a_file_sets_every_type_and_the_last_line_wins(void **state)
{
	struct settings *s = new_settings();
	const struct settings_entry *people;
	struct err err = { 0 };

	(void)state;
	if (read_text(s,
		      "; a comment\n"
		      "# another\n"
		      "\n"
		      "[chttpd]\n"
		      "bind_address = 0.0.0.0\n"
		      "  port = 6000 ; indented, and with a comment\n"
		      "enable_cors = true\n"
		      "[log]\n"
		      "level = warn\n"
		      "[admins]\n"
		      "anna = first\n"
		      "bert = -pbkdf2-0011,22,10\n"
		      "anna = se=cr:et\n"
		      "[lamp]\r\n"
		      "secret = 0123456789abcdef\r\n"
		      "colour = white\r\n"
		      "watts = 1\r\n"
		      "watts = 40\r\n"
		      "hours = 24",
		      &err) != STATUS_OK)
		fail_msg("%s", err.text);
	assert_string_equal(lamp_of(s)->host, "0.0.0.0");
	assert_int_equal(lamp_of(s)->port, 6000);
	assert_true(lamp_of(s)->cors);
	assert_int_equal(lamp_of(s)->hours, 24);
	assert_string_equal(lamp_of(s)->colour, "white");
	assert_string_equal(lamp_of(s)->secret, "0123456789abcdef");
	assert_int_equal(settings_people(s, &people), 2);
	assert_true(str_eq(people[0].name, STR("anna")));
	assert_true(str_eq(people[0].text, STR("se=cr:et")));
	assert_true(str_eq(people[1].text, STR("-pbkdf2-0011,22,10")));
	/* What a file sets to its default is set, and listed. */
	assert_listed(s, "chttpd.bind_address=0.0.0.0\n"
			 "chttpd.port=6000\n"
			 "chttpd.enable_cors=true\n"
			 "lamp.watts=40\n"
			 "lamp.hours=24\n"
			 "lamp.colour=white\n"
			 "lamp.secret=0123456789abcdef\n"
			 "log.level=warn\n"
			 "admins.anna=se=cr:et\n"
			 "admins.bert=-pbkdf2-0011,22,10\n");
	settings_free(s);
}

static void
every_level_has_a_name(void **state)
{
	enum log_level level = LOG_LEVEL_DEBUG;

	(void)state;
	assert_true(log_level_parse("warning", &level));
	assert_int_equal(level, LOG_LEVEL_WARN);
	assert_true(log_level_parse("none", &level));
	assert_int_equal(level, LOG_LEVEL_ERROR);
	assert_false(log_level_parse("loud", &level));
	assert_int_equal(level, LOG_LEVEL_ERROR);
}

static void
old_section_httpd_is_taken_too(void **state)
{
	struct settings *s = new_settings();

	(void)state;
	assert_int_equal(read_text(s, "[httpd]\nbind_address = ::1\nport = 0\n", NULL), STATUS_OK);
	assert_string_equal(lamp_of(s)->host, "::1");
	assert_int_equal(lamp_of(s)->port, 0);
	settings_free(s);
}

static void
mistakes_name_file_line_and_key(void **state)
{
	(void)state;
	assert_refused("[chttpd]\nenable_cors = yes\n",
		       "frond.ini:2: [chttpd] enable_cors: \"yes\" is neither true nor false");
	assert_refused("[chttpd]\n\nprot = 1\n", "frond.ini:3: [chttpd] has no setting \"prot\"");
	assert_refused("[chtpd]\nport = 1\n",
		       "frond.ini:2: there is no section [chtpd] (with \"port\" in it)");
	assert_refused("port = 1\n", "frond.ini:1: \"port\" stands before the first [section]");
	assert_refused("[log]\nlevel\n",
		       "frond.ini:2: this is neither \"name = value\" nor a [section]");
	assert_refused("[log\n", "frond.ini:1: the section's name has no ]");
	assert_refused("[chttpd]\nport = 65536\n",
		       "frond.ini:2: [chttpd] port: \"65536\" is not a whole number from 0 to "
		       "65535");
	assert_refused("[chttpd]\nport = eighty\n",
		       "frond.ini:2: [chttpd] port: \"eighty\" is not a whole number from 0 to "
		       "65535");
	assert_refused("[lamp]\nwatts = 0\n",
		       "frond.ini:2: [lamp] watts: \"0\" is not a whole number from 1 to 100");
	assert_refused("[chttpd]\nbind_address =\n",
		       "frond.ini:2: [chttpd] bind_address: must not be empty");
	assert_refused("[admins]\nanna =\n",
		       "frond.ini:2: [admins] anna: the password must not be empty");
	assert_refused("[lamp]\nsecret = short\n",
		       "frond.ini:2: [lamp] secret: must have at least 16 characters");
	assert_refused("[lamp]\ncolour = red\n",
		       "frond.ini:2: [lamp] colour: \"red\" is neither \"white\" nor \"warm\"");
	assert_refused("[log]\nlevel = loud\n",
		       "frond.ini:2: [log] level: \"loud\" is none of debug, info, notice, "
		       "warning, error, critical, none");
}

static void
first_of_several_mistakes_is_told(void **state)
{
	(void)state;
	assert_refused("[log]\nlevl = info\n[chttpd]\nport = x\n",
		       "frond.ini:2: [log] has no setting \"levl\"");
}

static void
long_lines_are_refused_and_not_cut(void **state)
{
	char text[SETTINGS_LINE_BYTES + 100] = "[chttpd]\nbind_address = ";

	(void)state;
	memset(text + strlen(text), 'x', SETTINGS_LINE_BYTES);
	assert_refused(text, "frond.ini:2: the line is longer than 8192 bytes");
}

static void
keys_have_colons_and_what_ends_a_name_in_them(void **state)
{
	struct settings *s = new_settings();
	const struct settings_entry *keys;
	struct err err = { 0 };

	(void)state;
	if (read_text(s,
		      "[jwt_keys]\n"
		      "hmac:_default=aGVsbG8=\n"
		      "rsa:a=b= = -----BEGIN PUBLIC KEY-----\\nMIIB=\n"
		      "; a comment\n"
		      "ec:x = 1\n"
		      "ec:x = 2 ; the last one holds\n",
		      &err) != STATUS_OK)
		fail_msg("%s", err.text);
	assert_int_equal(settings_keys(s, &keys), 3);
	assert_true(str_eq(keys[0].name, STR("hmac:_default")));
	assert_true(str_eq(keys[0].text, STR("aGVsbG8=")));
	assert_true(str_eq(keys[1].name, STR("rsa:a=b=")));
	assert_true(str_eq(keys[1].text, STR("-----BEGIN PUBLIC KEY-----\\nMIIB=")));
	assert_true(str_eq(keys[2].text, STR("2")));
	settings_free(s);
	assert_refused("[jwt_keys]\nnothing\n",
		       "frond.ini:2: this is neither \"name = value\" nor a [section]");
	assert_refused("[jwt_keys]\nhmac:x =\n",
		       "frond.ini:2: [jwt_keys] hmac:x: the key must not be empty");
}

static void
too_many_people_are_refused_by_their_limit(void **state)
{
	struct settings *s = new_settings();
	struct err err = { 0 };
	char name[16];

	(void)state;
	for (int i = 0; i < SETTINGS_PEOPLE_LIMIT; i++) {
		(void)snprintf(name, sizeof(name), "p%d", i);
		assert_int_equal(settings_set_person(s, str_from_cstr(name), STR("x"), false, &err),
				 STATUS_OK);
	}
	assert_int_equal(settings_set_person(s, STR("one more"), STR("x"), false, &err),
			 STATUS_LIMIT);
	assert_string_equal(err.text, "[admins] one more: more than 64 administrators");
	assert_int_equal(settings_set_person(s, STR("p0"), STR("y"), false, &err), STATUS_OK);
	settings_free(s);
}

static void
missing_file_is_not_found(void **state)
{
	struct settings *s = new_settings();
	struct err err = { 0 };

	(void)state;
	assert_int_equal(settings_read_file(s, "/nonexistent/frond.ini", &err), STATUS_NOT_FOUND);
	assert_string_equal(err.text, "/nonexistent/frond.ini: No such file or directory");
	settings_free(s);
}

static void
live_changes_leave_the_original_and_go_back_to_defaults(void **state)
{
	struct settings *s = new_settings();
	struct settings *copy;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(settings_set(s, STR("lamp"), STR("watts"), STR("60"), &err), STATUS_OK);
	assert_int_equal(settings_set_person(s, STR("anna"), STR("x"), true, &err), STATUS_OK);
	copy = settings_copy(s);
	assert_non_null(copy);
	assert_int_equal(settings_set_live(copy, STR("lamp"), STR("watts"), STR("70"), &err),
			 STATUS_OK);
	assert_int_equal(lamp_of(copy)->watts, 70);
	assert_int_equal(lamp_of(s)->watts, 60);
	assert_int_equal(
		settings_set_live(copy, STR("lamp"), STR("watts"), (struct str){ 0 }, &err),
		STATUS_OK);
	assert_int_equal(lamp_of(copy)->watts, LAMP_WATTS);
	assert_int_equal(settings_set_live(copy, STR("chttpd"), STR("port"), STR("1"), &err),
			 STATUS_FORBIDDEN);
	assert_string_equal(err.text, "[chttpd] port: fixed when the server starts");
	assert_int_equal(settings_set_live(copy, STR("admins"), STR("anna"), STR("y"), &err),
			 STATUS_OK);
	assert_int_equal(
		settings_set_live(copy, STR("admins"), STR("anna"), (struct str){ 0 }, &err),
		STATUS_FORBIDDEN);
	assert_string_equal(err.text, "[admins] anna: given where the server was started");
	assert_int_equal(settings_set_live(copy, STR("admins"), STR("bert"), STR("y"), &err),
			 STATUS_OK);
	assert_int_equal(
		settings_set_live(copy, STR("admins"), STR("bert"), (struct str){ 0 }, &err),
		STATUS_OK);
	assert_int_equal(settings_set_live(copy, STR("nothing"), STR("x"), STR("y"), &err),
			 STATUS_NOT_FOUND);
	assert_listed(copy, "chttpd.bind_address=127.0.0.1\n"
			    "chttpd.port=5984\n"
			    "chttpd.enable_cors=false\n"
			    "log.level=info\n"
			    "admins.anna=y\n");
	settings_free(copy);
	settings_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_hold_and_only_listed_ones_are_listed),
		cmocka_unit_test(a_file_sets_every_type_and_the_last_line_wins),
		cmocka_unit_test(every_level_has_a_name),
		cmocka_unit_test(old_section_httpd_is_taken_too),
		cmocka_unit_test(mistakes_name_file_line_and_key),
		cmocka_unit_test(first_of_several_mistakes_is_told),
		cmocka_unit_test(long_lines_are_refused_and_not_cut),
		cmocka_unit_test(keys_have_colons_and_what_ends_a_name_in_them),
		cmocka_unit_test(too_many_people_are_refused_by_their_limit),
		cmocka_unit_test(missing_file_is_not_found),
		cmocka_unit_test(live_changes_leave_the_original_and_go_back_to_defaults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
