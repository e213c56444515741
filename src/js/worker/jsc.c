/* The engine on JavaScriptCore's C interface. Each context has a heap of its own. */
#include <assert.h>
#include <JavaScriptCore/JavaScript.h>

#include "base/mem.h"
#include "js/worker/engine.h"
#include "js/worker/mongo.h"
#include "js/worker/prelude.h"

/* The library exports this function, but no header of it that is installed declares it. */
void JSGlobalContextSetEvalEnabled(JSGlobalContextRef ctx, bool enabled, JSStringRef message);

static const char *const op_names[ENGINE_OPS] = {
	[ENGINE_MAP_BEGIN] = "mapBegin",
	[ENGINE_MAP_DOCUMENT] = "mapDocument",
	[ENGINE_REDUCE_BEGIN] = "reduceBegin",
	[ENGINE_REDUCE_GROUP] = "reduceGroup",
	[ENGINE_VALIDATE_BEGIN] = "validateBegin",
	[ENGINE_VALIDATE_DOCUMENT] = "validateDocument",
	[ENGINE_FILTER_BEGIN] = "filterBegin",
	[ENGINE_FILTER_DOCUMENT] = "filterDocument",
	[ENGINE_UPDATE] = "update",
	[ENGINE_SCRIPT_BEGIN] = "scriptBegin",
	[ENGINE_SCRIPT_CALL] = "scriptCall",
};

struct engine_context {
	JSGlobalContextRef ctx;
	const struct engine_host *host;
	JSObjectRef functions[ENGINE_OPS];
};

/* ---- Texts ---- */

/* A value of a text that has a NUL behind it. What is no UTF-8 becomes an empty text. */
static JSValueRef
jsc_make_text(JSContextRef ctx, struct str text)
{
	JSStringRef string = JSStringCreateWithUTF8CString(text.ptr);
	JSValueRef value = JSValueMakeString(ctx, string);

	JSStringRelease(string);
	return value;
}

static void
jsc_append_string(struct buf *out, JSStringRef string)
{
	size_t room = JSStringGetMaximumUTF8CStringSize(string);

	if (!buf_reserve(out, room))
		return;
	out->len += JSStringGetUTF8CString(string, out->ptr + out->len, room) - 1;
}

/* Nothing is appended if the value has no text, which only an object can be without. */
static void
jsc_append_value(JSContextRef ctx, struct buf *out, JSValueRef value)
{
	JSStringRef string = JSValueToStringCopy(ctx, value, NULL);

	if (!string)
		return;
	jsc_append_string(out, string);
	JSStringRelease(string);
}

/*
 * The answer to a call whose exception the prelude did not catch: there was no stack or no memory
 * left for it. Such an exception is the engine's, but may be anything, so it is only named.
 */
static void
jsc_answer_exception(struct buf *answer)
{
	buf_clear(answer);
	buf_append_cstr(answer,
			"-InternalError\n\"the engine gave up: no memory or stack is left\"");
}

/* ---- What the prelude calls ---- */

static JSValueRef
jsc_evaluate(JSContextRef ctx, JSObjectRef function, JSObjectRef this, size_t count,
	     const JSValueRef args[], JSValueRef *exception)
{
	JSStringRef source;
	JSStringRef name;
	JSValueRef value = NULL;

	(void)function;
	(void)this;
	if (count < 2)
		return JSValueMakeUndefined(ctx);
	source = JSValueToStringCopy(ctx, args[0], exception);
	if (!source)
		return NULL;
	name = JSValueToStringCopy(ctx, args[1], exception);
	if (name) {
		value = JSEvaluateScript(ctx, source, NULL, name, 1, exception);
		JSStringRelease(name);
	}
	JSStringRelease(source);
	return value;
}

static JSValueRef
jsc_log(JSContextRef ctx, JSObjectRef function, JSObjectRef this, size_t count,
	const JSValueRef args[], JSValueRef *exception)
{
	const struct engine_context *c = JSObjectGetPrivate(JSContextGetGlobalObject(ctx));
	struct buf text = BUF_INIT(1024 * 1024);

	(void)function;
	(void)this;
	(void)exception;
	if (count > 0)
		jsc_append_value(ctx, &text, args[0]);
	if (buf_status(&text) == STATUS_OK)
		c->host->log(c->host->arg, buf_str(&text));
	buf_release(&text);
	return JSValueMakeUndefined(ctx);
}

static void
jsc_set(JSContextRef ctx, JSObjectRef object, const char *name, JSValueRef value)
{
	JSStringRef string = JSStringCreateWithUTF8CString(name);

	JSObjectSetProperty(ctx, object, string, value, kJSPropertyAttributeNone, NULL);
	JSStringRelease(string);
}

static void
jsc_set_function(JSContextRef ctx, JSObjectRef object, const char *name,
		 JSObjectCallAsFunctionCallback callback)
{
	JSStringRef string = JSStringCreateWithUTF8CString(name);
	JSObjectRef function = JSObjectMakeFunctionWithCallback(ctx, string, callback);

	JSObjectSetProperty(ctx, object, string, function, kJSPropertyAttributeNone, NULL);
	JSStringRelease(string);
}

static JSObjectRef
jsc_make_worker(JSContextRef ctx, struct str design, enum engine_environment environment,
		const struct engine_host *host)
{
	JSObjectRef worker = JSObjectMake(ctx, NULL, NULL);

	jsc_set_function(ctx, worker, "evaluate", jsc_evaluate);
	jsc_set_function(ctx, worker, "log", jsc_log);
	jsc_set(ctx, worker, "design", jsc_make_text(ctx, design));
	jsc_set(ctx, worker, "mostOutput", JSValueMakeNumber(ctx, (double)host->output_bytes));
	if (environment == ENGINE_MONGO)
		jsc_set(ctx, worker, "extension",
			jsc_make_text(ctx, str_of(mongo_text, sizeof(mongo_text) - 1)));
	return worker;
}

/* ---- Contexts ---- */

/* The exception's text behind its name, for a design document that cannot be loaded. */
static void
jsc_answer_load_failure(JSContextRef ctx, JSValueRef exception, struct buf *answer)
{
	JSStringRef json = NULL;
	JSStringRef string = exception ? JSValueToStringCopy(ctx, exception, NULL) : NULL;

	buf_clear(answer);
	buf_append_cstr(answer, "-compilation_error\n");
	if (string) {
		json = JSValueCreateJSONString(ctx, JSValueMakeString(ctx, string), 0, NULL);
		JSStringRelease(string);
	}
	if (json) {
		jsc_append_string(answer, json);
		JSStringRelease(json);
	} else {
		buf_append_cstr(answer, "\"the design document cannot be loaded\"");
	}
}

/* Runs the prelude; NULL with the exception set if it fails. */
static JSObjectRef
jsc_run_prelude(JSContextRef ctx, struct str design, enum engine_environment environment,
		const struct engine_host *host, JSValueRef *exception)
{
	JSStringRef source = JSStringCreateWithUTF8CString(prelude_text);
	JSStringRef name = JSStringCreateWithUTF8CString("prelude");
	JSValueRef prelude = JSEvaluateScript(ctx, source, NULL, name, 1, exception);
	JSValueRef table = NULL;

	JSStringRelease(source);
	JSStringRelease(name);
	if (prelude) {
		JSValueRef worker = jsc_make_worker(ctx, design, environment, host);

		table = JSObjectCallAsFunction(ctx, JSValueToObject(ctx, prelude, NULL), NULL, 1,
					       &worker, exception);
	}
	return table ? JSValueToObject(ctx, table, exception) : NULL;
}

static void
jsc_unload(struct engine_context *c)
{
	for (size_t i = 0; i < ENGINE_OPS; i++)
		if (c->functions[i])
			JSValueUnprotect(c->ctx, c->functions[i]);
	JSGlobalContextRelease(c->ctx);
	mem_free(c);
}

static struct engine_context *
jsc_load(struct str design, enum engine_environment environment, const struct engine_host *host,
	 struct buf *answer)
{
	struct engine_context *c = mem_zalloc(sizeof(*c));
	JSClassDefinition definition = kJSClassDefinitionEmpty;
	JSValueRef exception = NULL;
	JSStringRef no_eval;
	JSClassRef class;
	JSObjectRef table;

	if (!c) {
		jsc_answer_exception(answer);
		return NULL;
	}
	definition.className = "global";
	class = JSClassCreate(&definition);
	c->host = host;
	c->ctx = JSGlobalContextCreate(class); /* in a group, and so with a heap, of its own */
	JSClassRelease(class);
	JSObjectSetPrivate(JSContextGetGlobalObject(c->ctx), c);
	no_eval = JSStringCreateWithUTF8CString("eval() and new Function() are not allowed here");
	JSGlobalContextSetEvalEnabled(c->ctx, false, no_eval);
	JSStringRelease(no_eval);

	table = jsc_run_prelude(c->ctx, design, environment, host, &exception);
	for (size_t i = 0; table && i < ENGINE_OPS; i++) {
		JSStringRef name = JSStringCreateWithUTF8CString(op_names[i]);
		JSValueRef value = JSObjectGetProperty(c->ctx, table, name, NULL);

		JSStringRelease(name);
		if (!JSValueIsObject(c->ctx, value))
			continue; /* another environment has it */
		c->functions[i] = JSValueToObject(c->ctx, value, NULL);
		JSValueProtect(c->ctx, c->functions[i]);
	}
	if (table)
		return c;
	jsc_answer_load_failure(c->ctx, exception, answer);
	jsc_unload(c);
	return NULL;
}

static void
jsc_call(struct engine_context *c, enum engine_op op, const struct str *args, size_t count,
	 struct buf *answer)
{
	JSValueRef values[ENGINE_ARGS_MOST];
	JSValueRef exception = NULL;
	JSValueRef result;

	assert(count <= ENGINE_ARGS_MOST);
	if (!c->functions[op]) {
		buf_clear(answer);
		buf_append_cstr(answer, "-not_found\n\"these functions cannot be called so\"");
		return;
	}
	for (size_t i = 0; i < count; i++)
		values[i] = jsc_make_text(c->ctx, args[i]); /* on the stack, where the GC looks */
	result = JSObjectCallAsFunction(c->ctx, c->functions[op], NULL, count, values, &exception);
	buf_clear(answer);
	if (result && !exception)
		jsc_append_value(c->ctx, answer, result);
	if (answer->len == 0)
		jsc_answer_exception(answer);
}

const struct engine engine_jsc = {
	.load = jsc_load,
	.unload = jsc_unload,
	.call = jsc_call,
};
