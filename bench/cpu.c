#include "cpu.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

uint64_t
cpu_of_process_us(int pid)
{
	char path[64];
	char text[1024];
	const char *fields;
	unsigned long long user;
	unsigned long long system;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	if (!f)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	/* The second field is the program's name, in parentheses and with whatever is in it. */
	fields = strrchr(text, ')');
	if (!fields || sscanf(fields + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu",
			      &user, &system) != 2)
		return 0;
	return (uint64_t)(user + system) * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
}
