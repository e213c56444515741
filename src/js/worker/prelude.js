/*
 * The environment of a design document's functions. The worker evaluates this once in each new
 * context and calls the function that it gives with what the context needs of the worker:
 *
 *     evaluate(source, name)   runs a script in this context and returns its completion value
 *     log(text)                what log() of a function says
 *     design                   the design document's JSON text
 *     mostOutput               the most characters that one answer may have
 *     extension                the text of another environment (mongo.js), or undefined: the
 *                              functions see that one, and `design` holds their sources
 *
 * The result is the table of functions that the worker calls, by text only: each takes and returns
 * strings. An answer begins with "+" and the result, or with "-", the error's name, a line end and
 * its reason as JSON text. Nothing of `worker` is ever given to the functions of the design
 * document. They may replace any global of this context, so everything that is used here after the
 * start is held in constants, and what those can reach is frozen.
 */
(function (worker) {
	"use strict";

	const { evaluate, log: workerLog, mostOutput } = worker;
	const parse = JSON.parse;
	const stringify = JSON.stringify;
	const isArray = Array.isArray;
	const freeze = Object.freeze;
	const defineProperty = Object.defineProperty;
	const hasOwn = Object.hasOwn;
	const namesOf = Object.keys;
	const text = String;
	const apply = Reflect.apply;
	const global = globalThis;
	delete global.WebAssembly; /* much code to guard, and CouchDB has none */
	const ROW_CHARACTERS = 4; /* the least that a row has: a key, a value and their ends */

	const END = "\n"; /* none of these is in JSON text that stringify() makes */
	const FUNCTION_END = "\x01";
	const FUNCTION_FAILED = "\x02";

	/* ---- Errors ---- */

	/* The form in which errors of the environment are thrown, which functions may see. */
	const failure = (name, reason) => ["error", name, reason];

	const isObject = (value) => typeof value === "object" && value !== null;

	const looksLikeError = (value) =>
		isObject(value) && "stack" in value && "name" in value && "message" in value;

	/* An Error has no members that JSON shows. */
	const plainError = (value) =>
		looksLikeError(value) ? { error: value.name, message: value.message } : value;

	const describe = (error) => {
		try {
			return text(error);
		} catch {
			return "an error that has no text";
		}
	};

	const json = (value) => {
		try {
			return stringify(value) ?? "null";
		} catch (error) {
			return stringify(describe(error));
		}
	};

	/* An answer that says what was thrown. */
	const answerError = (error) => {
		try {
			if (isArray(error) && (error[0] === "error" || error[0] === "fatal"))
				return "-" + text(error[1]) + END + json(error[2]);
			if (isObject(error) && error.error && error.reason)
				return "-" + text(error.error) + END + json(error.reason);
			if (isObject(error) && error.name)
				return "-" + text(error.name) + END + json(text(error.message));
		} catch {
			/* Members that throw: the answer below. */
		}
		return "-unnamed_error" + END + stringify(describe(error));
	};

	const guarded = (f) => (...args) => {
		try {
			return f(...args);
		} catch (error) {
			return answerError(error);
		}
	};

	const log = (message) => {
		workerLog(typeof message === "string" ? message : json(plainError(message)));
	};

	/* ---- Compiling ---- */

	/*
	 * A function is the text of an expression, also of one without a name, or a script whose
	 * last statement is one.
	 */
	const compile = (source, name) => {
		let f;

		if (typeof source !== "string")
			throw failure("compilation_error",
				      "Expression does not eval to a function. (" + json(source) + ")");
		try {
			try {
				f = evaluate("0," + source, name);
			} catch (error) {
				if (!(error instanceof SyntaxError))
					throw error;
				try {
					f = evaluate(source, name);
				} catch (second) {
					throw second instanceof SyntaxError ? error : second;
				}
			}
		} catch (error) {
			throw failure("compilation_error", describe(error) + " (" + source + ")");
		}
		if (typeof f !== "function")
			throw failure("compilation_error",
				      "Expression does not eval to a function. (" + source + ")");
		return f;
	};

	const design = parse(worker.design);
	if (!isObject(design) || isArray(design))
		throw failure("compilation_error", "the design document is no object");

	const compiled = Object.create(null);

	/* The function at a path of the design document, such as filters/mine. */
	const find = (...path) => {
		const name = path.join(".");
		let at = design;

		if (compiled[name])
			return compiled[name];
		for (const member of path)
			at = isObject(at) && hasOwn(at, member) ? at[member] : undefined;
		if (!at)
			throw failure("not_found", "missing " + path[0] + " function " +
				      path[path[0] === "views" ? 1 : path.length - 1] +
				      " on design doc " + text(design._id));
		compiled[name] = compile(at, name);
		return compiled[name];
	};

	/* ---- require() ---- */

	const noPath = (reason) => failure("invalid_require_path", reason);

	/* What maps and reduces may require: views.lib only, since the index depends on it. */
	const viewsRoot = { content: { views: { lib: design.views?.lib } }, modules: Object.create(null) };
	const designRoot = { content: design, modules: Object.create(null) };
	let root = designRoot; /* of the function that runs */

	/* `from`: where the module that asks is; undefined: a function asks. */
	const locate = (path, from, content) => {
		let at = from;
		let first = true;

		for (const name of text(path).split("/")) {
			if (name === "..") {
				if (!at?.parent?.parent)
					throw noPath("Object has no parent " + json(at?.current));
				at = {
					id: at.id.slice(0, at.id.lastIndexOf("/")),
					parent: at.parent.parent,
					current: at.parent.current,
				};
			} else if (name === ".") {
				if (!at?.parent)
					throw noPath("Object has no parent " + json(at?.current));
			} else {
				if (first)
					at = { current: content };
				if (!isObject(at.current) || !hasOwn(at.current, name) ||
				    at.current[name] === undefined)
					throw noPath('Object has no property "' + name + '". ' +
						     json(at.current));
				at = {
					id: at.id ? at.id + "/" + name : name,
					parent: at,
					current: at.current[name],
				};
			}
			first = false;
		}
		if (typeof at.current !== "string")
			throw noPath("Must require a JavaScript string, not: " + typeof at.current);
		return at;
	};

	const requireFrom = (path, from, where) => {
		const place = locate(path, from, where.content);
		let module = where.modules[place.id];

		if (module)
			return module.exports; /* of a circle: what it has exported so far */
		module = { id: place.id, parent: place.parent, current: place.current, exports: {} };
		where.modules[place.id] = module;
		try {
			const f = evaluate("(function (module, exports, require) { " + place.current +
					   "\n })", place.id);

			apply(f, global, [module, module.exports,
					  (next) => requireFrom(next, place.parent, where)]);
		} catch (error) {
			delete where.modules[place.id];
			throw failure("compilation_error", "Module require('" + text(path) +
				      "') raised error " + describe(error));
		}
		return module.exports;
	};

	/* ---- What functions see ---- */

	let rows = []; /* key, value, key, value, ... of the map function that runs */
	let emitted = false;
	let collecting = false; /* false: the map function is a filter */
	let tooMany = false;

	const environment = {
		emit(key, value) {
			emitted = true;
			if (!collecting)
				return;
			if (rows.length * (ROW_CHARACTERS / 2) >= mostOutput) {
				tooMany = true;
				rows = [];
			}
			if (tooMany)
				throw new RangeError("the rows of one document pass [js] max_output");
			rows.push(key, plainError(value));
		},
		sum(values) {
			let total = 0;

			for (const i in values)
				total += values[i];
			return total;
		},
		log,
		toJSON: stringify,
		isArray: (value) => isArray(value),
		require: (path) => requireFrom(path, undefined, root),
	};
	for (const name of worker.extension ? [] : Object.keys(environment))
		defineProperty(global, name, { value: environment[name], writable: true,
					       configurable: true, enumerable: false });

	/* ---- Frozen built-ins ---- */

	/*
	 * A property that a frozen prototype has could not be set on an object that inherits from
	 * it, though scripts do that all the time: X.prototype.toString = ... So these become
	 * accessors, which set it on that object.
	 */
	const letInheritorsSet = (prototype, name) => {
		const was = Object.getOwnPropertyDescriptor(prototype, name);

		if (!was || !("value" in was) || !was.configurable)
			return;
		defineProperty(prototype, name, {
			get() {
				return was.value;
			},
			set(value) {
				if (this === prototype || !isObject(this) && typeof this !== "function")
					return; /* as scripts that are not strict are used to */
				defineProperty(this, name, { value, writable: true,
							     enumerable: true, configurable: true });
			},
			enumerable: false,
			configurable: false,
		});
	};

	const freezeEverything = (first) => {
		const seen = new Set([global]);
		const waiting = first;

		while (waiting.length > 0) {
			const at = waiting.pop();

			if (!isObject(at) && typeof at !== "function" || seen.has(at))
				continue;
			seen.add(at);
			freeze(at);
			waiting.push(Object.getPrototypeOf(at));
			for (const key of Reflect.ownKeys(at)) {
				const property = Object.getOwnPropertyDescriptor(at, key);

				if ("value" in property)
					waiting.push(property.value);
				else
					waiting.push(property.get, property.set);
			}
		}
	};

	const protect = () => {
		const errors = [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError,
				URIError, AggregateError];
		const hidden = [
			Object.getPrototypeOf(function* () {}),
			Object.getPrototypeOf(async function () {}),
			Object.getPrototypeOf(async function* () {}),
			Object.getPrototypeOf([][Symbol.iterator]()),
			Object.getPrototypeOf(""[Symbol.iterator]()),
			Object.getPrototypeOf(new Map()[Symbol.iterator]()),
			Object.getPrototypeOf(new Set()[Symbol.iterator]()),
			Object.getPrototypeOf("".matchAll(/(?:)/g)),
		];

		for (const name of ["constructor", "hasOwnProperty", "isPrototypeOf",
				    "propertyIsEnumerable", "toLocaleString", "toString", "valueOf"])
			letInheritorsSet(Object.prototype, name);
		for (const name of ["apply", "bind", "call", "constructor", "toString"])
			letInheritorsSet(Function.prototype, name);
		for (const error of errors)
			for (const name of ["constructor", "message", "name", "toString"])
				letInheritorsSet(error.prototype, name);
		for (const key of Reflect.ownKeys(global)) {
			const property = Object.getOwnPropertyDescriptor(global, key);

			hidden.push(property.value, property.get, property.set);
		}
		freezeEverything(hidden);
	};

	/* ---- Maps ---- */

	/* A document is shared by all functions of a batch, so that none may change it. */
	const freezeMember = (value) => {
		if (typeof value === "object" && value !== null)
			freezeTree(value);
	};

	/* By index: a loop over names would take a fifth of the time of a whole map. */
	const freezeTree = (tree) => {
		if (isArray(tree)) {
			for (let i = 0; i < tree.length; i++)
				freezeMember(tree[i]);
		} else {
			const names = namesOf(tree);

			for (let i = 0; i < names.length; i++)
				freezeMember(tree[names[i]]);
		}
		freeze(tree);
	};

	let maps = [];

	const rowsText = () => {
		let out = "";

		for (let i = 0; i < rows.length; i += 2) {
			out += (stringify(rows[i]) ?? "null") + END + (stringify(rows[i + 1]) ?? "null") +
			       END;
			if (out.length > mostOutput) {
				tooMany = true;
				throw new RangeError("the rows of one document pass [js] max_output");
			}
		}
		return out;
	};

	const mapFailed = (error, doc) => {
		if (error === "fatal_error")
			throw failure("map_runtime_error", "function raised 'fatal_error'");
		if (isArray(error) && error[0] === "fatal")
			throw error;
		return "function raised exception " + describe(error) + " with doc._id " +
		       describe(doc._id);
	};

	const mapOne = (f, doc) => {
		rows = [];
		tooMany = false;
		try {
			f(doc);
			if (tooMany)
				throw new RangeError("the rows of one document pass [js] max_output");
			return rowsText() + FUNCTION_END;
		} catch (error) {
			const reason = mapFailed(error, doc);

			log(reason);
			return FUNCTION_FAILED + stringify(reason) + FUNCTION_END;
		} finally {
			rows = [];
		}
	};

	/* ---- Reduces ---- */

	let reduces = [];
	let rereduce = false;
	let reduceLimit = "";
	const REDUCE_THRESHOLD = 4096; /* CouchDB's: up to it, a result is never too long, */
	const REDUCE_RATIO = 2;        /* and above it, it must be that much shorter than its input */

	const reduceOne = (f, keys, values) => {
		try {
			return stringify(f(keys, values, rereduce)) ?? "null";
		} catch (error) {
			if (isArray(error) && error[0] === "fatal")
				throw error;
			log("function raised exception " + describe(error));
			return "null";
		}
	};

	const checkReduced = (length, inputLength) => {
		const message = "Reduce output must shrink more rapidly: input size: " + inputLength +
				" output size: " + length;

		if (!reduceLimit || length <= REDUCE_THRESHOLD || length * REDUCE_RATIO <= inputLength)
			return;
		if (reduceLimit !== "log")
			throw failure("reduce_overflow_error", message);
		log("reduce_overflow_error: " + message);
	};

	/* ---- Validation ---- */

	let validator;
	let userCtx;
	let security;

	const verdict = (thrown) => {
		if (thrown === 1 || thrown === true || thrown === "ok")
			return "+";
		if (isObject(thrown) && !isArray(thrown)) {
			const names = Object.keys(thrown);

			if (names.length === 1 && names[0] === "forbidden")
				return "f" + json(thrown.forbidden);
			if (names.length === 1 && names[0] === "unauthorized")
				return "u" + json(thrown.unauthorized);
			if (names.length === 1)
				return "-unknown_error" + END + json(thrown[names[0]]);
		}
		return "-unknown_error" + END + json(thrown);
	};

	/* ---- Filters and updates ---- */

	let filter;
	let filterIsView = false;
	let request;

	const renderFailed = (error) => {
		if (isArray(error) && (error[0] === "error" || error[0] === "fatal") ||
		    isObject(error) && error.error && error.reason)
			throw error;
		const message = "function raised error: " + describe(error) + " \nstacktrace: " +
				describe(error?.stack);

		log(message);
		throw failure("render_error", message);
	};

	const table = {
		mapBegin: guarded((...names) => {
			maps = names.map((name) => find("views", name, "map"));
			return "+";
		}),

		mapDocument: guarded((documentText) => {
			const doc = parse(documentText);
			let out = "+";

			root = viewsRoot;
			collecting = true;
			freezeTree(doc);
			for (let i = 0; i < maps.length; i++)
				out += mapOne(maps[i], doc);
			return out;
		}),

		reduceBegin: guarded((again, limit, ...names) => {
			rereduce = again === "true";
			reduceLimit = limit;
			reduces = names.map((name) => find("views", name, "reduce"));
			return "+";
		}),

		reduceGroup: guarded((keysText, valuesText) => {
			let out = "+";
			let length = 1; /* as an array of results: CouchDB's measure */

			root = viewsRoot;
			for (let i = 0; i < reduces.length; i++) {
				const result = reduceOne(reduces[i],
							 rereduce ? null : parse(keysText),
							 parse(valuesText));

				length += result.length + 1;
				out += result + END;
			}
			checkReduced(length, keysText.length + valuesText.length);
			if (length > mostOutput)
				throw failure("reduce_overflow_error", "the result passes [js] max_output");
			return out;
		}),

		validateBegin: guarded((userCtxText, securityText) => {
			validator = find("validate_doc_update");
			userCtx = userCtxText;
			security = securityText;
			return "+";
		}),

		validateDocument: guarded((newText, oldText) => {
			root = designRoot;
			collecting = false;
			try {
				apply(validator, design, [parse(newText), parse(oldText), parse(userCtx),
							  parse(security)]);
			} catch (thrown) {
				if (looksLikeError(thrown) || isArray(thrown))
					throw thrown;
				return verdict(thrown);
			}
			return "+";
		}),

		filterBegin: guarded((kind, name, requestText) => {
			filterIsView = kind === "view";
			filter = filterIsView ? find("views", name, "map") : find("filters", name);
			request = requestText;
			return "+";
		}),

		filterDocument: guarded((documentText) => {
			const doc = parse(documentText);

			root = designRoot;
			collecting = false;
			emitted = false;
			if (!filterIsView)
				return apply(filter, design, [doc, parse(request)]) ? "+1" : "+0";
			filter(doc);
			return emitted ? "+1" : "+0";
		}),

		update: guarded((name, documentText, requestText) => {
			const f = find("updates", name);
			const asked = parse(requestText);
			const doc = parse(documentText);

			root = designRoot;
			collecting = false;
			if (asked?.method === "GET")
				throw failure("method_not_allowed", "Update functions do not allow GET");
			try {
				const result = apply(f, design, [doc, asked]);
				const response = result[1];
				const isText = typeof response === "string";

				if (!isText && (!isObject(response) || isArray(response)))
					throw failure("render_error",
						      "undefined response from update function");
				const out = "+" + (stringify(result[0]) ?? "null") + END +
					    stringify(isText ? { body: response } : response);

				if (out.length > mostOutput)
					throw failure("render_error", "the answer passes [js] max_output");
				return out;
			} catch (error) {
				return renderFailed(error);
			}
		}),
	};

	if (worker.extension)
		Object.assign(table, evaluate(worker.extension, "mongo")({
			evaluate, design, log, describe, json, looksLikeError, mostOutput, END,
		}));
	protect();
	return table;
});
