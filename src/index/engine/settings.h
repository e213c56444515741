/* What the index engine declares of settings (base/setting.h). */
#ifndef FROND_INDEX_ENGINE_SETTINGS_H
#define FROND_INDEX_ENGINE_SETTINGS_H

#include "base/setting.h"

enum {
	INDEX_BUILD_THREADS = 2,
	INDEX_BUILD_THREADS_MAX = 64,
};

/* clang-format off */
#define INDEX_SETTINGS(S, NUMBER, FLAG, TEXT)                                                      \
	NUMBER(S, build_threads, "indexes", "build_threads", "", 1, INDEX_BUILD_THREADS_MAX,       \
	       INDEX_BUILD_THREADS, SETTING_AT_START,                                              \
	       "Threads of this process that build an index over existing documents side by side. "\
	       "They have a lower priority than those that serve requests.")                       \
	NUMBER(S, build_percent, "indexes", "build_percent", "%", 1, 100, 100, SETTING_AT_START,   \
	       "The part of its time that each of these threads works; it sleeps for the rest.")
/* clang-format on */

SETTING_STRUCT(index_settings, INDEX_SETTINGS);

extern const struct setting_group index_setting_group;

#endif
