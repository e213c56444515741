/*
 * hiredis, as a program uses it: commands with binary arguments, pipelines, transactions, messages.
 * Its argument is the port. Ends with 1, and says why, when an answer is wrong.
 */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	COMMANDS = 10000, /* of a pipeline */
};

static void
must(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "hiredis: %s\n", what);
	exit(1);
}

static void
must_answer(redisContext *c, const char *command, int type, const char *text)
{
	redisReply *reply = redisCommand(c, command);

	must(reply != NULL, c->errstr);
	if (reply->type != type || (text && strcmp(reply->str, text) != 0)) {
		fprintf(stderr, "hiredis: %s: type %d %s\n", command, reply->type,
			reply->str ? reply->str : "");
		exit(1);
	}
	freeReplyObject(reply);
}

static redisContext *
connect_to(int port)
{
	redisContext *c = redisConnect("127.0.0.1", port);

	must(c && !c->err, "no connection");
	return c;
}

static void
run_commands(redisContext *c)
{
	static const char bytes[] = { 'a', 0, '\r', '\n', (char)0xff };
	redisReply *reply;

	must_answer(c, "PING", REDIS_REPLY_STATUS, "PONG");
	must_answer(c, "SET name value", REDIS_REPLY_STATUS, "OK");
	must_answer(c, "GET name", REDIS_REPLY_STRING, "value");
	must_answer(c, "GET none", REDIS_REPLY_NIL, NULL);
	must_answer(c, "LPUSH name x", REDIS_REPLY_ERROR,
		    "WRONGTYPE Operation against a key holding the wrong kind of value");
	reply = redisCommand(c, "SET %b %b", bytes, sizeof(bytes), bytes, sizeof(bytes));
	must(reply && reply->type == REDIS_REPLY_STATUS, "a binary SET");
	freeReplyObject(reply);
	reply = redisCommand(c, "GET %b", bytes, sizeof(bytes));
	must(reply && reply->type == REDIS_REPLY_STRING && reply->len == sizeof(bytes) &&
		     memcmp(reply->str, bytes, sizeof(bytes)) == 0,
	     "a binary GET");
	freeReplyObject(reply);
}

static void
run_pipeline(redisContext *c)
{
	redisReply *reply;

	for (int i = 0; i < COMMANDS; i++)
		must(redisAppendCommand(c, "RPUSH list %d", i) == REDIS_OK, "a command of many");
	for (int i = 0; i < COMMANDS; i++) {
		must(redisGetReply(c, (void **)&reply) == REDIS_OK, "an answer of many");
		must(reply->type == REDIS_REPLY_INTEGER && reply->integer == i + 1,
		     "answers in order");
		freeReplyObject(reply);
	}
	reply = redisCommand(c, "LRANGE list 0 -1");
	must(reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == COMMANDS, "a list");
	for (int i = 0; i < COMMANDS; i++)
		must(atoi(reply->element[i]->str) == i, "elements in order");
	freeReplyObject(reply);
}

static void
run_transaction(redisContext *c)
{
	redisReply *reply;

	must_answer(c, "MULTI", REDIS_REPLY_STATUS, "OK");
	must_answer(c, "INCR n", REDIS_REPLY_STATUS, "QUEUED");
	must_answer(c, "INCR n", REDIS_REPLY_STATUS, "QUEUED");
	reply = redisCommand(c, "EXEC");
	must(reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
		     reply->element[1]->integer == 2,
	     "EXEC");
	freeReplyObject(reply);
	reply = redisCommand(c, "EVAL %s 1 n", "return {KEYS[1], redis.call('GET', KEYS[1])}");
	must(reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
		     strcmp(reply->element[1]->str, "2") == 0,
	     "EVAL");
	freeReplyObject(reply);
}

static void
run_messages(redisContext *c, int port)
{
	redisContext *other = connect_to(port);
	redisReply *reply = redisCommand(other, "SUBSCRIBE news");

	must(reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 3, "SUBSCRIBE");
	freeReplyObject(reply);
	reply = redisCommand(c, "PUBLISH news hello");
	must(reply && reply->integer == 1, "PUBLISH");
	freeReplyObject(reply);
	must(redisGetReply(other, (void **)&reply) == REDIS_OK && reply->elements == 3 &&
		     strcmp(reply->element[2]->str, "hello") == 0,
	     "a message");
	freeReplyObject(reply);
	redisFree(other);
}

int
main(int argc, char **argv)
{
	int port = argc > 1 ? atoi(argv[1]) : 0;
	redisContext *c = connect_to(port);

	run_commands(c);
	run_pipeline(c);
	run_transaction(c);
	run_messages(c, port);
	redisFree(c);
	return 0;
}
