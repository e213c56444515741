#include "cli/welcome.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/address.h"
#include "base/log.h"

enum {
	WELCOME_USER_BYTES = 256
};

/*
 * The option of curl that names the first administrator. Curl then asks for the password, which is
 * not printed: the terminal may be a log. A name that a shell would read otherwise is left to the
 * reader.
 */
static void
welcome_user(const struct settings *settings, char ret[WELCOME_USER_BYTES])
{
	const struct settings_person *people;

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

void
welcome_print(const struct settings *settings, const char *host, uint16_t port, const char *store,
	      bool has_pages)
{
	char bound[ADDRESS_TEXT_BYTES];
	char address[ADDRESS_TEXT_BYTES];
	char user[WELCOME_USER_BYTES];

	address_write(host, port, bound);
	address_write(address_to_reach(host), port, address);
	welcome_user(settings, user);
	printf("frond " FROND_VERSION " serves %s at http://%s/\n"
	       "In a browser: http://%s/_utils/%s\n"
	       "Try:\n"
	       "  curl %s-X PUT http://%s/mydb\n"
	       "  curl %s-X PUT http://%s/mydb/mydoc -d '{\"hello\":\"world\"}'\n"
	       "  curl %shttp://%s/mydb/mydoc\n",
	       store, bound, address, has_pages ? "" : " (once `make fauxton` has fetched it)",
	       user, address, user, address, user, address);
	fflush(stdout);
	log_event(LOG_LEVEL_INFO, "start",
		  "version=" FROND_VERSION " address=%s store=\"%s\" pid=%ld", bound, store,
		  (long)getpid());
}
