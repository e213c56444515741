#include "cli/listening.h"

#include <stdio.h>

#include "cli/serve_settings.h"
#include "door/couch/couch.h"
#include "door/mongo/settings.h"
#include "door/redis/settings.h"

enum {
	LISTENING_PLACES = 7, /* two of each door, and that of the metrics */
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
find_redis(struct listening *l, const struct settings *settings,
	   const struct listening_given *given, struct err *err)
{
	const struct redis_settings *s = settings_of(settings, &redis_setting_group);
	const struct door_wish wish = {
		.section = "redis",
		.enabled = s->enabled,
		.tls_enabled = s->tls_enabled,
		.host = s->host,
		.port = s->port,
		.tls_port = s->tls_port,
		.given = given->redis,
		.tls_given = given->rediss,
	};

	return door_find(&l->redis, &wish, err);
}

static enum status
find_mongo(struct listening *l, const struct settings *settings,
	   const struct listening_given *given, struct err *err)
{
	const struct mongo_settings *s = settings_of(settings, &mongo_setting_group);
	const struct door_wish wish = {
		.section = "mongo",
		.enabled = s->enabled,
		.tls_enabled = s->tls_enabled,
		.host = s->host,
		.port = s->port,
		.tls_port = s->tls_port,
		.given = given->mongo,
		.tls_given = given->mongos,
	};
	char host[ADDRESS_HOST_BYTES];
	uint16_t port;

	/* Clients are told this one, so it may be a name. */
	if (s->told_host && address_parse(s->told_host, host, &port, err) != STATUS_OK)
		return err_set(err, STATUS_INVALID, "[mongo] host: \"%s\" is not HOST:PORT",
			       s->told_host);
	return door_find(&l->mongo, &wish, err);
}

/* ---- All together ---- */

struct place {
	const char *name;
	const char *host;
	uint16_t port;
};

static size_t
list_places(const struct listening *l, const struct couch_settings *metrics,
	    struct place ret[LISTENING_PLACES])
{
	const struct {
		const char *name, *tls_name;
		const struct door *door;
	} doors[] = { { "HTTP", "HTTPS", &l->http },
		      { "Redis", "Redis with TLS", &l->redis },
		      { "MongoDB", "MongoDB with TLS", &l->mongo } };
	size_t count = 0;

	for (size_t i = 0; i < sizeof(doors) / sizeof(doors[0]); i++) {
		const struct door *d = doors[i].door;

		if (d->wanted)
			ret[count++] = (struct place){ doors[i].name, d->host, d->port };
		if (d->tls_wanted)
			ret[count++] = (struct place){ doors[i].tls_name, d->tls_host,
						       d->tls_port };
	}
	if (metrics->metrics_apart)
		ret[count++] = (struct place){ "metrics", metrics->metrics_host,
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
		for (size_t j = 0; j < i; j++)
			if (places[i].port && places[i].port == places[j].port &&
			    address_overlaps(places[i].host, places[j].host))
				return err_set(err, STATUS_INVALID,
					       "%s and %s cannot both listen at port %u of %s",
					       places[j].name, places[i].name,
					       (unsigned)places[i].port, places[i].host);
	return STATUS_OK;
}

const char *
listening_exposed(const struct listening *l)
{
	const struct door *const doors[] = { &l->http, &l->redis, &l->mongo };

	for (size_t i = 0; i < sizeof(doors) / sizeof(doors[0]); i++) {
		const char *host = door_exposed(doors[i]);

		if (host)
			return host;
	}
	return NULL;
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
	static const struct door_names redis = { "redis", "redis", "enable", "tls_enable",
						 "tls_port" };
	static const struct door_names mongo = { "mongo", "mongo", "enable", "tls_enable",
						 "tls_port" };

	TRY(tell_door(&l->http, &http, settings, err));
	TRY(tell_door(&l->redis, &redis, settings, err));
	return tell_door(&l->mongo, &mongo, settings, err);
}

enum status
listening_find(struct listening *l, const struct settings *settings,
	       const struct listening_given *given, struct err *err)
{
	const struct couch_settings *couch = settings_of(settings, &couch_setting_group);

	TRY(find_http(l, settings, given, err));
	TRY(find_redis(l, settings, given, err));
	TRY(find_mongo(l, settings, given, err));
	if (couch->metrics_apart)
		TRY(address_check_host(couch->metrics_host, couch->metrics_host, err));
	TRY(check_ports(l, couch, err));
	TRY(check_in_charge(l, settings, err));
	if (l->http.tls_wanted || l->redis.tls_wanted || l->mongo.tls_wanted)
		return certificates_read(&l->certificates, settings, err);
	return STATUS_OK;
}
