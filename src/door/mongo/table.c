/* The table of all commands, by name. */
#include "door/mongo/cmd/commands.h"

const struct arg args_none[] = { { .name = NULL } };

#define COMMAND_ROW(name_, run_, args_, needs_, flags_, ...)                                       \
	{ .name = (name_),                                                                         \
	  .run = (run_),                                                                           \
	  .needs = (needs_),                                                                       \
	  .flags = (flags_),                                                                       \
	  .args = (args_),                                                                         \
	  .help = __VA_ARGS__ },

const struct command mongo_commands[] = { MONGO_COMMANDS(COMMAND_ROW) };

const size_t mongo_command_count = sizeof(mongo_commands) / sizeof(mongo_commands[0]);
