/* What access/ declares of settings (base/setting.h). */
#ifndef FROND_ACCESS_SETTINGS_H
#define FROND_ACCESS_SETTINGS_H

#include "access/auth.h"
#include "base/setting.h"

#define ACCESS_SECRET_SECTION "chttpd_auth"
#define ACCESS_SECRET_NAME    "secret"

/* clang-format off */
#define ACCESS_SETTINGS(S, NUMBER, FLAG, TEXT)                                                     \
	TEXT(S, secret, ACCESS_SECRET_SECTION, ACCESS_SECRET_NAME, AUTH_SECRET_MIN_BYTES, NULL,  \
	     NULL, SETTING_LIVE | SETTING_SECRET,                                                  \
	     "The key that signs cookies. By default the first server of a store makes one and "   \
	     "keeps it there.")                                                                    \
	NUMBER(S, iterations, ACCESS_SECRET_SECTION, "iterations", "", 1, AUTH_ROUNDS_LIMIT,       \
	       AUTH_ROUNDS, SETTING_LIVE,                                                          \
	       "Rounds of PBKDF2 for passwords that are set in plain. Those that are hashed "      \
	       "already keep the rounds that they have.")                                          \
	NUMBER(S, hash_threads, "frond", "hash_threads", "", 1, 1024, AUTH_HASH_THREADS,           \
	       SETTING_LIVE,                                                                       \
	       "Passwords that are hashed at a time, in threads of low priority, pool_threads.")   \
	NUMBER(S, hash_queue, "frond", "hash_queue", "", 1, 100000, AUTH_HASH_QUEUE, SETTING_LIVE, \
	       "Logins that wait for their passwords to be hashed, in turns by address; more are " \
	       "answered 429.")
/* clang-format on */

SETTING_STRUCT(access_settings, ACCESS_SETTINGS);

extern const struct setting_group access_setting_group;

#endif
