/*
 * A script of Lua's that is given any bytes, in the sandbox in which scripts of Redis's door run.
 */
#ifndef FROND_FUZZ_SCRIPT_RUN_H
#define FROND_FUZZ_SCRIPT_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Runs it, with the bytes as the global `D` and Lua's own library of strings as `plain`. An error
 * that it raises ends the process. False: it took so many steps that it was dropped.
 */
bool script_run_with(const char *text, const uint8_t *data, size_t size);

#endif
