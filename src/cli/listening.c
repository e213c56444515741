#include "cli/listening.h"

#include <stdio.h>

#include "base/address_path.h"
#include "cli/manager.h"
#include "cli/serve_settings.h"
#include "door/couch/couch.h"

enum {
	LISTENING_PLACES = 2 + 2 * CLI_DOORS + 1, /* two of each door, and that of the metrics */
	SOCKET_NAMES_BYTES = 1024,
};

/* ---- Doors ---- */

static enum status
find_http(struct listening *l, const struct settings *settings, const struct listening_given *given,
	  struct err *err)
{
	const struct couch_settings *s = settings_of(settings, &couch_setting_group);
	const struct tls_settings *tls = settings_of(settings, &tls_setting_group);
	bool nowhere = given->http && strcmp(given->http, LISTENING_NOWHERE) == 0;
	const struct door_wish wish = {
		.section = "chttpd",
		.name = "http",
		.enabled = !nowhere,
		.tls_enabled = tls->enabled,
		.host = s->host,
		.port = s->port,
		.tls_port = tls->port,
		.given = nowhere ? NULL : given->http,
		.tls_given = given->https,
	};

	TRY(door_find(&l->http, &wish, err));
	if (door_is_wanted(&l->http))
		return STATUS_OK;
	return err_set(err, STATUS_INVALID,
		       "--http " LISTENING_NOWHERE " without --https leaves nowhere to listen");
}

static enum status
find_door(struct listening *l, size_t i, const struct settings *settings,
	  const struct listening_given *given, struct err *err)
{
	const struct door_settings *s = settings_of(settings, cli_doors[i]->settings);
	const struct door_wish wish = {
		.section = cli_doors[i]->name,
		.name = cli_doors[i]->name,
		.enabled = s->enabled,
		.tls_enabled = s->tls_enabled,
		.host = s->host,
		.port = s->port,
		.tls_port = s->tls_port,
		.given = given->doors[i].clear,
		.tls_given = given->doors[i].tls,
		.takes_paths = true,
	};

	return door_find(&l->doors[i], &wish, err);
}

/* ---- All together ---- */

struct place {
	const char *name;
	const char *suffix; /* " with TLS" behind a name that does not say so */
	const char *host;
	uint16_t port;
};

static size_t
list_door(const struct door *d, const char *name, const char *tls_name, const char *tls_suffix,
	  struct place *ret)
{
	size_t count = 0;

	if (d->wanted)
		ret[count++] = (struct place){ name, "", d->host, d->port };
	if (d->tls_wanted)
		ret[count++] = (struct place){ tls_name, tls_suffix, d->tls_host, d->tls_port };
	return count;
}

static size_t
list_places(const struct listening *l, const struct couch_settings *metrics,
	    struct place ret[LISTENING_PLACES])
{
	size_t count = list_door(&l->http, "HTTP", "HTTPS", "", ret);

	for (size_t i = 0; i < cli_doors_count; i++)
		count += list_door(&l->doors[i], cli_doors[i]->clients, cli_doors[i]->clients,
				   " with TLS", &ret[count]);
	if (metrics->metrics_apart)
		ret[count++] = (struct place){ "metrics", "", metrics->metrics_host,
					       (uint16_t)metrics->metrics_port };
	return count;
}

/* The kernel would tell of the second one only when the first one already listens. */
static enum status
check_ports(const struct listening *l, const struct couch_settings *metrics, struct err *err)
{
	struct place places[LISTENING_PLACES];
	size_t count = list_places(l, metrics, places);

	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < i; j++) {
			if (!address_overlaps(places[i].host, places[j].host))
				continue;
			if (address_is_path(places[i].host))
				return err_set(err, STATUS_INVALID,
					       "%s%s and %s%s cannot both listen at %s",
					       places[j].name, places[j].suffix, places[i].name,
					       places[i].suffix, places[i].host);
			if (places[i].port && places[i].port == places[j].port)
				return err_set(err, STATUS_INVALID,
					       "%s%s and %s%s cannot both listen at port %u of %s",
					       places[j].name, places[j].suffix, places[i].name,
					       places[i].suffix, (unsigned)places[i].port,
					       places[i].host);
		}
	return STATUS_OK;
}

const char *
listening_exposed(const struct listening *l)
{
	const char *host = door_exposed(&l->http);

	for (size_t i = 0; i < cli_doors_count && !host; i++)
		host = door_exposed(&l->doors[i]);
	return host;
}

static enum status
check_in_charge(const struct listening *l, const struct settings *settings, struct err *err)
{
	const struct settings_entry *people;
	const char *exposed = listening_exposed(l);

	if (!exposed || settings_people(settings, &people) > 0)
		return STATUS_OK;
	return err_set(err, STATUS_INVALID,
		       "refusing to listen on %s without an administrator: everybody who "
		       "reaches it could read and delete everything; give one by "
		       "--admin, " SERVE_ADMIN_ENV " or the section [" SETTINGS_PEOPLE
		       "], or listen on 127.0.0.1",
		       exposed);
}

/* The names of the settings of one door. */
struct door_names {
	const char *section, *tls_section;
	const char *enable; /* NULL: it always listens */
	const char *tls_enable;
	const char *tls_port;
};

static enum status
tell_text(struct settings *settings, const char *section, const char *name, const char *text,
	  struct err *err)
{
	return settings_set(settings, str_from_cstr(section), str_from_cstr(name),
			    str_from_cstr(text), err);
}

static enum status
tell_port(struct settings *settings, const char *section, const char *name, uint16_t port,
	  struct err *err)
{
	char text[SETTINGS_NUMBER_BYTES];

	(void)snprintf(text, sizeof(text), "%u", (unsigned)port);
	return tell_text(settings, section, name, text, err);
}

static enum status
tell_door(const struct door *d, const struct door_names *names, struct settings *settings,
	  struct err *err)
{
	if (!door_is_wanted(d))
		return STATUS_OK;
	TRY(tell_text(settings, names->section, "bind_address", door_host(d), err));
	if (d->wanted && names->enable)
		TRY(tell_text(settings, names->section, names->enable, "true", err));
	if (d->wanted)
		TRY(tell_port(settings, names->section, "port", d->port, err));
	if (!d->tls_wanted)
		return STATUS_OK;
	TRY(tell_text(settings, names->tls_section, names->tls_enable, "true", err));
	return tell_port(settings, names->tls_section, names->tls_port, d->tls_port, err);
}

enum status
listening_tell(const struct listening *l, struct settings *settings, struct err *err)
{
	static const struct door_names http = { "chttpd", "ssl", NULL, "enable", "port" };

	TRY(tell_door(&l->http, &http, settings, err));
	for (size_t i = 0; i < cli_doors_count; i++) {
		const struct door_names names = { cli_doors[i]->name, cli_doors[i]->name, "enable",
						  "tls_enable", "tls_port" };

		TRY(tell_door(&l->doors[i], &names, settings, err));
	}
	return STATUS_OK;
}

static enum status
check_sockets(struct err *err)
{
	struct buf AUTO(buf_release) names = BUF_INIT(SOCKET_NAMES_BYTES);

	buf_append_cstr(&names, "http, https, ");
	for (size_t i = 0; i < cli_doors_count; i++)
		buf_printf(&names, "%s, %ss, ", cli_doors[i]->name, cli_doors[i]->name);
	buf_append_cstr(&names, "or metrics");
	buf_append_byte(&names, 0);
	TRY(buf_status(&names));
	return manager_check_sockets((const char *)names.ptr, err);
}

enum status
listening_find(struct listening *l, const struct settings *settings,
	       const struct listening_given *given, struct err *err)
{
	const struct couch_settings *couch = settings_of(settings, &couch_setting_group);
	bool tls_wanted = false;

	TRY(find_http(l, settings, given, err));
	for (size_t i = 0; i < cli_doors_count; i++) {
		TRY(find_door(l, i, settings, given, err));
		tls_wanted = tls_wanted || l->doors[i].tls_wanted;
	}
	tls_wanted = tls_wanted || l->http.tls_wanted;
	if (couch->metrics_apart)
		TRY(address_check_host(couch->metrics_host, couch->metrics_host, err));
	TRY(check_sockets(err));
	TRY(check_ports(l, couch, err));
	TRY(check_in_charge(l, settings, err));
	if (tls_wanted)
		return certificates_read(&l->certificates, settings, err);
	return STATUS_OK;
}
