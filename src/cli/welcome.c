#include "cli/welcome.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/address.h"
#include "base/log.h"

enum {
	WELCOME_USER_BYTES = 256,
	WELCOME_URL_BYTES = ADDRESS_TEXT_BYTES + 16,
};

/*
 * The option of curl that names the first administrator. Curl then asks for the password, which is
 * not printed: the terminal may be a log. A name that a shell would read otherwise is left to the
 * reader.
 */
static void
welcome_user(const struct settings *settings, char ret[WELCOME_USER_BYTES])
{
	const struct settings_entry *people;

	ret[0] = '\0';
	if (settings_people(settings, &people) == 0)
		return;
	for (size_t i = 0; i < people[0].name.len; i++)
		if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.@",
			    people[0].name.ptr[i]) ||
		    people[0].name.len >= WELCOME_USER_BYTES / 2) {
			(void)snprintf(ret, WELCOME_USER_BYTES, "-u NAME ");
			return;
		}
	(void)snprintf(ret, WELCOME_USER_BYTES, "-u %.*s ", STR_ARG(people[0].name));
}

/* Makes the URL of a server that listens there. */
static void
welcome_write_url(bool with_tls, const char *host, uint16_t port, char ret[WELCOME_URL_BYTES])
{
	char address[ADDRESS_TEXT_BYTES];

	address_write(host, port, address);
	(void)snprintf(ret, WELCOME_URL_BYTES, "%s://%s/", with_tls ? "https" : "http", address);
}

static void
welcome_log(const struct welcome *w)
{
	char address[ADDRESS_TEXT_BYTES] = "none";
	char tls_address[ADDRESS_TEXT_BYTES] = "none";

	if (w->http->wanted)
		address_write(w->http->host, w->http->port, address);
	if (w->http->tls_wanted)
		address_write(w->http->tls_host, w->http->tls_port, tls_address);
	log_event(LOG_LEVEL_INFO, "start",
		  "version=" FROND_VERSION " address=%s https=%s store=\"%s\" pid=%ld", address,
		  tls_address, w->store, (long)getpid());
}

void
welcome_print(const struct settings *settings, const struct welcome *w)
{
	const struct door *http = w->http;
	char bound[WELCOME_URL_BYTES];
	char url[WELCOME_URL_BYTES];
	char user[WELCOME_USER_BYTES];

	welcome_write_url(!http->wanted, door_host(http), door_port(http), bound);
	welcome_write_url(!http->wanted, address_to_reach(door_host(http)), door_port(http), url);
	welcome_user(settings, user);
	printf("frond " FROND_VERSION " serves %s at %s\n", w->store, bound);
	if (http->wanted && http->tls_wanted) {
		welcome_write_url(true, http->tls_host, http->tls_port, bound);
		printf("With TLS: %s\n", bound);
	}
	printf("In a browser: %s_utils/%s\n"
	       "Try:\n"
	       "  curl %s-X PUT %smydb\n"
	       "  curl %s-X PUT %smydb/mydoc -d '{\"hello\":\"world\"}'\n"
	       "  curl %s%smydb/mydoc\n",
	       url, w->has_pages ? "" : " (once `make fauxton` has fetched it)", user, url, user,
	       url, user, url);
	fflush(stdout);
	welcome_log(w);
}
