/* The settings that CONFIG has: their first values. */
#ifndef FROND_DOOR_REDIS_CMD_CONFIG_H
#define FROND_DOOR_REDIS_CMD_CONFIG_H

#include <stdbool.h>

struct redis;

bool config_init(struct redis *r); /* false when out of memory; config_fini() is called anyway */
void config_fini(struct redis *r);

#endif
