#include "cli/serve_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "access/people.h"
#include "cli/manager.h"
#include "kv/kv.h"
#include "kv/settings.h"

static enum status
add_admin(struct settings *settings, const char *text, const char *where, struct err *err)
{
	const char *colon = strchr(text, ':');

	if (!colon || colon == text || colon[1] == '\0')
		return err_set(err, STATUS_INVALID, "%s is not NAME:PASSWORD", where);
	return settings_set_person(settings, str_of(text, (size_t)(colon - text)),
				   str_from_cstr(colon + 1), true, err);
}

static enum status
add_admins(const struct serve_given *given, struct settings *settings, struct err *err)
{
	const char *env = getenv(SERVE_ADMIN_ENV);

	if (env && *env)
		TRY(add_admin(settings, env, SERVE_ADMIN_ENV, err));
	for (size_t i = 0; i < given->admins_count; i++) {
		TRY(add_admin(settings, given->admins[i], "--admin", err));
		/* Out of the list of processes, as far as that is possible. */
		memset(given->admins[i], '*', strlen(given->admins[i]));
	}
	return STATUS_OK;
}

/* The port of metrics is no door: where it listens is in the settings alone. */
static enum status
find_metrics_socket(struct settings *settings, struct err *err)
{
	char host[ADDRESS_HOST_BYTES];
	char port[SETTINGS_NUMBER_BYTES];
	uint16_t number;

	if (!manager_socket("metrics", "", host, &number))
		return STATUS_OK;
	(void)snprintf(port, sizeof(port), "%u", (unsigned)number);
	TRY(settings_set(settings, STR("prometheus"), STR("additional_port"), STR("true"), err));
	TRY(settings_set(settings, STR("prometheus"), STR("bind_address"), str_from_cstr(host),
			 err));
	return settings_set(settings, STR("prometheus"), STR("port"), str_from_cstr(port), err);
}

enum status
serve_settings_read(const struct serve_given *given, struct settings *settings,
		    struct listening *listening, struct err *err)
{
	const struct kv_settings *kv = settings_of(settings, &kv_setting_group);

	if (given->config)
		TRY(settings_read_file(settings, given->config, err));
	TRY(add_admins(given, settings, err));
	if (given->store)
		TRY(settings_set(settings, STR("frond"), STR("store"), str_from_cstr(given->store),
				 err));
	TRY(kv_check_url(kv->url, err));
	if (given->utils)
		TRY(settings_set(settings, STR("frond"), STR("utils_dir"),
				 str_from_cstr(given->utils), err));
	TRY(find_metrics_socket(settings, err));
	TRY(listening_find(listening, settings, &given->listening, err));
	for (size_t i = 0; i < cli_doors_count; i++)
		if (cli_doors[i]->check)
			TRY(cli_doors[i]->check(settings, door_is_wanted(&listening->doors[i]),
						err));
	return people_check(settings, err);
}
