/* The settings of Redis's door (base/setting.h): the section [redis]. */
#ifndef FROND_DOOR_REDIS_SETTINGS_H
#define FROND_DOOR_REDIS_SETTINGS_H

#include "base/setting.h"

enum {
	REDIS_PORT = 6379,
	REDIS_TLS_PORT = 6380,
};

/* clang-format off */
#define REDIS_SETTINGS(S, NUMBER, FLAG, TEXT)                                                      \
	FLAG(S, enabled, "redis", "enable", false, SETTING_AT_START,                               \
	     "Whether clients of Redis are served, at the address below. The option --redis of "   \
	     "frond serve says so, too, with an address of its own.")                              \
	TEXT(S, host, "redis", "bind_address", 1, NULL, "127.0.0.1", SETTING_AT_START,             \
	     "The IP address that is listened on for clients of Redis, an IPv6 one without "       \
	     "brackets. Any but the loopback address needs an administrator.")                     \
	NUMBER(S, port, "redis", "port", "", 0, 65535, REDIS_PORT, SETTING_AT_START,               \
	       "The port that is listened on. 0: any free one.")                                   \
	FLAG(S, tls_enabled, "redis", "tls_enable", false, SETTING_AT_START,                       \
	     "Whether clients of Redis are served with TLS, at the bind_address above and the "    \
	     "port below, by the certificates of [ssl]. The option --rediss of frond serve says "  \
	     "so, too, with an address of its own.")                                               \
	NUMBER(S, tls_port, "redis", "tls_port", "", 0, 65535, REDIS_TLS_PORT, SETTING_AT_START,   \
	       "The port that is listened on with TLS. 0: any free one.")                          \
	NUMBER(S, loops, "redis", "loops", "", 1, 1024, 0, SETTING_AT_START,                       \
	       "How many of the threads that serve connections serve those of Redis's clients. "   \
	       "By default half of them: commands that write are run in groups, and the fewer "    \
	       "threads a group comes from, the less it costs.")
/* clang-format on */

SETTING_STRUCT(redis_settings, REDIS_SETTINGS);

extern const struct setting_group redis_setting_group;

#endif
