/*
 * The environment of functions that MongoDB's clients send: $where, $function, $accumulator. The
 * prelude evaluates this once in each context of such functions, in place of its own environment,
 * and calls the function that it gives with what it shares (`tools`). `design` holds the sources.
 *
 * Values come and go as JSON text in which types that JSON lacks are tagged strings: "\x01", a
 * letter, a text (bson/tagged.h has the list). An object whose members' order JavaScript would
 * change comes as an array: "\x01O", name, value, name, value, …
 */
(function (tools) {
	"use strict";

	const { evaluate, design, log, describe, json, looksLikeError, mostOutput, END } = tools;
	/* Functions may replace any global, so that what is used later is held in constants. */
	const {
		Array, BigInt, Boolean, Date, Error, Function, JSON, Math, Number, Object, RangeError,
		Reflect, RegExp, Set, String, SyntaxError, TypeError, WeakMap, isNaN, parseInt,
	} = globalThis;
	const parse = JSON.parse;
	const stringify = JSON.stringify;
	const isArray = Array.isArray;
	const namesOf = Object.keys;
	const defineProperty = Object.defineProperty;
	const apply = Reflect.apply;
	const text = String;
	const sourceOf = Function.prototype.toString;
	const now = Date.now;
	const global = globalThis;

	const MARK = "\x01";
	const DEPTH_MOST = 200; /* containers inside each other, as in BSON */

	const fail = (message) => {
		throw new TypeError(message);
	};

	const define = (name, value) => {
		defineProperty(global, name, { value, writable: true, configurable: true,
					       enumerable: false });
	};

	/* ---- Types that JavaScript lacks ---- */

	/* The tagged text of a value of such a type. Written at its construction, read at its end. */
	const tags = new WeakMap();

	const isHex = (value, length) =>
		typeof value === "string" && value.length === length && /^[0-9a-fA-F]*$/.test(value);

	/*
	 * A constructor that may be called without `new`, as those of MongoDB's shell. `begin` gives
	 * the object its members and returns its tagged text.
	 */
	const type = (name, begin, methods) => {
		const made = function (...args) {
			const self = new.target ? this : Object.create(made.prototype);

			tags.set(self, begin(self, ...args));
			return self;
		};

		defineProperty(made, "name", { value: name });
		for (const method of namesOf(methods))
			defineProperty(made.prototype, method, { value: methods[method],
								 writable: true, configurable: true });
		define(name, made);
		return made;
	};

	const member = (self, name, value) => {
		defineProperty(self, name, { value, enumerable: true });
	};

	/* The text behind the tag, which is two characters long. */
	const tagged = (self) => tags.get(self).slice(2);

	const randomHex = (length) => {
		let out = "";

		while (out.length < length)
			out += Math.floor(Math.random() * 16).toString(16);
		return out;
	};

	const newId = () =>
		Math.floor(now() / 1000).toString(16).padStart(8, "0") + randomHex(16);

	const ObjectId = type("ObjectId", (self, hex) => {
		const str = hex === undefined ? newId() : text(hex instanceof ObjectId ? hex.str : hex);

		if (!isHex(str, 24))
			fail("invalid object id: length");
		member(self, "str", str.toLowerCase());
		return MARK + "o" + self.str;
	}, {
		toString() {
			return 'ObjectId("' + this.str + '")';
		},
		valueOf() {
			return this.str;
		},
		toJSON() {
			return { $oid: this.str };
		},
		equals(other) {
			return this.str === other?.str;
		},
		getTimestamp() {
			return new Date(parseInt(this.str.slice(0, 8), 16) * 1000);
		},
	});

	/* The integer that a text or a number is, which fits so many bits. */
	const integerOf = (value, bits, name) => {
		let n;

		try {
			if (value instanceof NumberLong || value instanceof NumberInt)
				n = BigInt(tagged(value));
			else
				n = typeof value === "number" ? BigInt(Math.trunc(value))
							      : BigInt(value ?? 0);
		} catch {
			fail("could not convert " + describe(value) + " to " + name);
		}
		if (BigInt.asIntN(bits, n) !== n)
			fail("could not convert " + describe(value) + " to " + name +
			     ": it is out of range");
		return n;
	};

	const NumberLong = type("NumberLong", (self, value) => {
		const n = integerOf(value, 64, "NumberLong");

		member(self, "floatApprox", Number(n));
		member(self, "top", Number(BigInt.asIntN(32, n >> 32n)));
		member(self, "bottom", Number(BigInt.asUintN(32, n)));
		return MARK + "l" + n;
	}, {
		toNumber() {
			return this.floatApprox;
		},
		valueOf() {
			return this.floatApprox;
		},
		toString() {
			const digits = tagged(this);

			return Number.isSafeInteger(this.floatApprox) ? "NumberLong(" + digits + ")"
								      : 'NumberLong("' + digits + '")';
		},
		toJSON() {
			return { $numberLong: tagged(this) };
		},
		compare(other) {
			const left = BigInt(tagged(this));
			const right = integerOf(other, 64, "NumberLong");

			return left < right ? -1 : left > right ? 1 : 0;
		},
	});

	const NumberInt = type("NumberInt", (self, value) =>
		MARK + "i" + integerOf(value, 32, "NumberInt"), {
		toNumber() {
			return Number(tagged(this));
		},
		valueOf() {
			return Number(tagged(this));
		},
		toString() {
			return "NumberInt(" + tagged(this) + ")";
		},
		toJSON() {
			return Number(tagged(this));
		},
	});

	const NumberDecimal = type("NumberDecimal", (self, value) => {
		const digits = value instanceof NumberDecimal || value instanceof NumberLong ||
			       value instanceof NumberInt ? tagged(value) : text(value ?? 0);

		if (!/^[-+]?(\d+\.?\d*(e[-+]?\d+)?|\.\d+(e[-+]?\d+)?|inf(inity)?|nan)$/i.test(digits))
			fail("input is not a valid Decimal128 value: " + digits);
		return MARK + "n" + digits;
	}, {
		toString() {
			return 'NumberDecimal("' + tagged(this) + '")';
		},
		toJSON() {
			return { $numberDecimal: tagged(this) };
		},
	});

	const BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	const hexOfBase64 = (base64) => {
		const digits = base64.replace(/=+$/, "");
		let bits = "";
		let out = "";

		for (let i = 0; i < digits.length; i++) {
			bits += BASE64.indexOf(digits[i]).toString(2).padStart(6, "0");
			while (bits.length >= 8) {
				out += parseInt(bits.slice(0, 8), 2).toString(16).padStart(2, "0");
				bits = bits.slice(8);
			}
		}
		return out;
	};

	const base64OfHex = (hex) => {
		let out = "";

		for (let i = 0; i < hex.length; i += 6) {
			const some = hex.slice(i, i + 6);
			const bits = parseInt(some.padEnd(6, "0"), 16);

			for (let j = 0; j < 4; j++)
				out += j * 6 >= some.length * 4 ? "=" : BASE64[bits >> (18 - 6 * j) & 63];
		}
		return out;
	};

	const BinData = type("BinData", (self, subtype, base64) => {
		const n = Number(subtype);
		const bytes = text(base64);

		if (!(Number.isInteger(n) && n >= 0 && n <= 255))
			fail("invalid BinData subtype -- range is [0..255]: " + describe(subtype));
		if (bytes.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(bytes))
			fail("BinData wants base64");
		member(self, "type", n);
		member(self, "len", bytes.length / 4 * 3 - (bytes.match(/=/g) ?? []).length);
		return MARK + "b" + n.toString(16).padStart(2, "0") + bytes;
	}, {
		subtype() {
			return this.type;
		},
		length() {
			return this.len;
		},
		base64() {
			return tagged(this).slice(2);
		},
		hex() {
			return hexOfBase64(this.base64());
		},
		toString() {
			return "BinData(" + this.type + ',"' + this.base64() + '")';
		},
		toJSON() {
			return { $binary: this.base64(),
				 $type: this.type.toString(16).padStart(2, "0") };
		},
	});

	const fromHex = (subtype, hex, length) => {
		if (!isHex(hex, length ?? hex?.length) || hex.length % 2 !== 0)
			fail("a text of hexadecimal digits is expected");
		return new BinData(subtype, base64OfHex(hex));
	};

	const Timestamp = type("Timestamp", (self, seconds, increment) => {
		const [t, i] = [Number(seconds ?? 0), Number(increment ?? 0)];

		for (const n of [t, i])
			if (!(Number.isInteger(n) && n >= 0 && n <= 0xffffffff))
				fail("Timestamp wants numbers from 0 to 4294967295");
		member(self, "t", t);
		member(self, "i", i);
		return MARK + "t" + (BigInt(t) << 32n | BigInt(i));
	}, {
		getTime() {
			return this.t;
		},
		getInc() {
			return this.i;
		},
		toString() {
			return "Timestamp(" + this.t + ", " + this.i + ")";
		},
		toJSON() {
			return { $timestamp: { t: this.t, i: this.i } };
		},
	});

	const MinKey = type("MinKey", () => MARK + "m", {
		toString() {
			return '{ "$minKey" : 1 }';
		},
		toJSON() {
			return { $minKey: 1 };
		},
	});
	const MaxKey = type("MaxKey", () => MARK + "M", {
		toString() {
			return '{ "$maxKey" : 1 }';
		},
		toJSON() {
			return { $maxKey: 1 };
		},
	});

	const Code = type("Code", (self, code) => {
		member(self, "code", typeof code === "function" ? apply(sourceOf, code, []) : text(code));
		return MARK + "c" + self.code;
	}, {
		toString() {
			return 'Code("' + this.code + '")';
		},
	});

	/* Values that functions cannot look into: they may only be given back. */
	const Opaque = function (tag) {
		tags.set(this, tag);
	};

	/* ---- What else functions see ---- */

	const isDate = (value) => value instanceof Date;

	/* As MongoDB's shell prints values. */
	const tojson = (value) => {
		if (typeof value === "number" || typeof value === "boolean" || value === undefined)
			return text(value);
		if (typeof value === "bigint")
			return text(value);
		if (typeof value === "function")
			return apply(sourceOf, value, []);
		if (typeof value !== "object" || value === null)
			return json(value);
		if (isDate(value))
			return isNaN(value) ? "new Date(NaN)" : 'ISODate("' + value.toISOString() + '")';
		if (value instanceof RegExp || tags.has(value))
			return describe(value);
		if (isArray(value))
			return value.length ? "[ " + value.map(tojson).join(", ") + " ]" : "[ ]";
		const members = namesOf(value).map((name) => stringify(name) + " : " + tojson(value[name]));

		return members.length ? "{ " + members.join(", ") + " }" : "{ }";
	};

	const doassert = (message) => {
		throw new Error(typeof message === "function" ? message() : text(message));
	};

	const print = (...values) => {
		log(values.map((value) => typeof value === "string" ? value : tojson(value)).join(" "));
	};

	const environment = {
		UUID: (hex) => fromHex(4, hex === undefined
			? randomHex(12) + "4" + randomHex(3) + "8" + randomHex(15)
			: text(hex).replace(/-/g, ""), 32),
		MD5: (hex) => fromHex(5, text(hex), 32),
		HexData: (subtype, hex) => fromHex(subtype, text(hex)),
		ISODate: (value) => {
			if (value === undefined)
				return new Date();
			const zoned = /T.*(Z|[-+]\d\d:?\d\d)$/i.test(value) || !/[T ]/.test(value);
			const date = new Date(zoned ? value : text(value).replace(" ", "T") + "Z");

			if (isNaN(date))
				throw new Error("invalid ISO date: " + describe(value));
			return date;
		},
		DBRef: (collection, id, db) => db === undefined ? { $ref: collection, $id: id }
								: { $ref: collection, $id: id, $db: db },
		isNumber: (value) => typeof value === "number",
		isString: (value) => typeof value === "string",
		isObject: (value) => typeof value === "object" && value !== null,
		assert: (value, message) => {
			if (!value)
				doassert(message ?? "assert failed");
		},
		doassert,
		gc: () => {},
		print,
		printjson: (value) => print(tojson(value)),
		printjsononeline: (value) => print(tojson(value)),
		sleep: (ms) => {
			const until = now() + Number(ms);

			while (now() < until)
				;
			return true;
		},
		tojson,
		tojsononeline: tojson,
		tojsonObject: tojson,
		version: () => "8.0.0",
	};
	for (const name of namesOf(environment))
		define(name, environment[name]);

	const arrayTools = {
		sum: (list) => list.length ? list.reduce((a, b) => a + b) : null,
		avg: (list) => list.length ? list.reduce((a, b) => a + b) / list.length : null,
		contains: (list, value) => list.indexOf(value) >= 0,
		unique: (list) => list.filter((value, i) => list.indexOf(value) === i),
	};
	for (const name of namesOf(arrayTools))
		defineProperty(Array, name, { value: arrayTools[name], writable: true,
					      configurable: true });

	/* ---- Values that come ---- */

	/* What JavaScript does not tell of an object that has come: names of its int32, its order. */
	const shapes = new WeakMap();

	const regexOf = (tag) => {
		const slash = tag.indexOf("/");
		const flags = tag.slice(2, slash).replace(/[^ims]/g, "");
		let regex;

		try {
			regex = new RegExp(tag.slice(slash + 1), flags);
		} catch {
			return new Opaque(tag); /* a pattern that only PCRE knows */
		}
		tags.set(regex, tag);
		return regex;
	};

	const special = (tag) => {
		const rest = tag.slice(2);

		switch (tag[1]) {
		case "s": return rest;
		case "f": return Number(rest);
		case "i": return Number(rest);
		case "l": return new NumberLong(rest);
		case "n": return new NumberDecimal(rest);
		case "o": return new ObjectId(rest);
		case "d": return new Date(Number(rest));
		case "b": return new BinData(parseInt(rest.slice(0, 2), 16), rest.slice(2));
		case "t": {
			const n = BigInt(rest);

			return new Timestamp(Number(n >> 32n), Number(n & 0xffffffffn));
		}
		case "r": return regexOf(tag);
		case "c": return new Code(rest);
		case "u": return undefined;
		case "m": return new MinKey();
		case "M": return new MaxKey();
		default: return new Opaque(tag);
		}
	};

	const ORDERED = MARK + "O";

	/* An object from its names and values in turn. */
	const readOrdered = (list) => {
		const object = {};
		const order = [];
		const ints = new Set();

		for (let i = 1; i < list.length; i += 2) {
			const [name, value] = [list[i], list[i + 1]];

			if (typeof value === "string" && value[0] === MARK && value[1] === "i")
				ints.add(name);
			order.push(name);
			defineProperty(object, name, { value: read(value), writable: true,
						       enumerable: true, configurable: true });
		}
		shapes.set(object, { ints, order });
		return object;
	};

	/* Objects and arrays are changed in place. By index: a loop over names takes much longer. */
	const read = (value) => {
		if (typeof value === "string")
			return value.charCodeAt(0) === 1 ? special(value) : value;
		if (typeof value !== "object" || value === null)
			return value;
		if (isArray(value)) {
			if (value[0] === ORDERED)
				return readOrdered(value);
			for (let i = 0; i < value.length; i++) {
				const v = value[i];

				if (typeof v === "string" ? v.charCodeAt(0) === 1 : typeof v === "object")
					value[i] = read(v);
			}
			return value;
		}
		const names = namesOf(value);
		let ints;

		for (let i = 0; i < names.length; i++) {
			const v = value[names[i]];

			if (typeof v === "string") {
				if (v.charCodeAt(0) !== 1)
					continue;
				if (v[1] === "i")
					(ints ??= new Set()).add(names[i]);
				value[names[i]] = special(v);
			} else if (typeof v === "object") {
				value[names[i]] = read(v);
			}
		}
		if (ints)
			shapes.set(value, { ints });
		return value;
	};

	/* ---- Values that go ---- */

	const writeNumber = (n) => {
		if (Number.isFinite(n) && !Object.is(n, -0))
			return text(n);
		return stringify(MARK + "f" + (Object.is(n, -0) ? "-0" : n));
	};

	const writeDate = (date) => {
		const ms = date.getTime();

		if (isNaN(ms))
			fail("an invalid Date cannot be given back");
		return stringify(MARK + "d" + ms);
	};

	const checkLength = (out) => {
		if (out.length > mostOutput)
			throw new RangeError("the result passes [js] max_output");
	};

	const writeMembers = (object, depth) => {
		const shape = shapes.get(object);
		const names = namesOf(object);
		const order = shape?.order
			? [...shape.order.filter((name) => Object.hasOwn(object, name)),
			   ...names.filter((name) => !shape.order.includes(name))]
			: names;
		let out = "";

		for (const name of order) {
			const value = object[name];
			const isInt = typeof value === "number" && shape?.ints.has(name) &&
				      (value | 0) === value;

			out += (out && ",") + stringify(name) + ":" +
			       (isInt ? stringify(MARK + "i" + value) : write(value, depth + 1));
			checkLength(out);
		}
		return "{" + out + "}";
	};

	const writeElements = (list, depth) => {
		let out = "";

		for (let i = 0; i < list.length; i++) {
			out += (i ? "," : "") + write(list[i], depth + 1);
			checkLength(out);
		}
		return "[" + out + "]";
	};

	const writeObject = (value, depth) => {
		if (value === null)
			return "null";
		if (tags.has(value))
			return stringify(tags.get(value));
		if (depth > DEPTH_MOST)
			fail("the result has more than " + DEPTH_MOST +
			     " objects and arrays inside each other");
		if (isDate(value))
			return writeDate(value);
		if (value instanceof RegExp)
			return stringify(MARK + "r" + value.flags.replace(/[^ims]/g, "") + "/" +
					 value.source);
		if (value instanceof Number || value instanceof String || value instanceof Boolean)
			return write(value.valueOf(), depth);
		return isArray(value) ? writeElements(value, depth) : writeMembers(value, depth);
	};

	const write = (value, depth) => {
		switch (typeof value) {
		case "string":
			return stringify(value.charCodeAt(0) === 1 ? MARK + "s" + value : value);
		case "number":
			return writeNumber(value);
		case "boolean":
			return value ? "true" : "false";
		case "undefined":
			return stringify(MARK + "u");
		case "bigint":
			return stringify(MARK + "l" + integerOf(value, 64, "NumberLong"));
		case "function":
			return stringify(MARK + "c" + apply(sourceOf, value, []));
		case "symbol":
			return fail("a Symbol cannot be given back");
		default:
			return writeObject(value, depth);
		}
	};

	/* A result: MongoDB gives null for a function that returns nothing. */
	const answer = (value) => {
		const out = value === undefined ? "null" : write(value, 0);

		checkLength(out);
		return "+" + out;
	};

	/* ---- Functions ---- */

	const answerThrown = (error) => {
		try {
			if (looksLikeError(error) && /^\w+$/.test(error.name))
				return "-" + error.name + END + json(text(error.message));
		} catch {
			/* Members that throw: the answer below. */
		}
		return "-uncaught exception" + END + json(describe(error));
	};

	const guarded = (f) => (...args) => {
		try {
			return f(...args);
		} catch (error) {
			return answerThrown(error);
		}
	};

	const looksLikeFunction =
		/^(async\s+)?(function\b|([A-Za-z_$][\w$]*|\([^()]*\))\s*=>)/;

	const tryEvaluate = (source, name) => {
		try {
			return evaluate(source, name);
		} catch (error) {
			if (!(error instanceof SyntaxError))
				throw error;
			return undefined;
		}
	};

	/* A function's text, an expression, or statements with a return. */
	const compile = (name) => {
		const source = design[name].replace(/^(\s|\/\/[^\n]*\n|\/\*[^]*?\*\/)+/, "");
		let f;

		if (looksLikeFunction.test(source))
			f = tryEvaluate("0,(" + source.replace(/[;\s]+$/, "") + "\n)", name);
		f ??= tryEvaluate("0,(function () { return (" + source.replace(/[;\s]+$/, "") + "\n); })",
				  name);
		f ??= evaluate("0,(function () { " + source + "\n})", name);
		if (typeof f !== "function")
			fail(name + " is no function");
		return f;
	};

	const functions = Object.create(null);

	/*
	 * The ask is {"i": arguments of init} or {"s": state}, {"a": [arguments…]} of accumulate,
	 * and {"f": true} when the group has ended.
	 */
	const accumulate = (ask) => {
		let state = Object.hasOwn(ask, "s") ? read(ask.s)
						    : apply(functions.init, {}, read(ask.i));

		for (let i = 0; i < ask.a.length; i++)
			state = apply(functions.accumulate, {}, [state, ...read(ask.a[i])]);
		return ask.f && functions.finalize ? apply(functions.finalize, {}, [state]) : state;
	};

	const calls = {
		where(ask) {
			const obj = read(ask);

			global.obj = obj;
			global.fullObject = true;
			return apply(functions.where, obj, []) ? true : false;
		},
		call: (ask) => apply(functions.body, {}, read(ask)),
		accumulate,
	};
	let how;

	return {
		scriptBegin: guarded((name) => {
			how = calls[name];
			for (const each of namesOf(design))
				functions[each] ??= compile(each);
			return "+";
		}),
		scriptCall: guarded((ask) => answer(how(parse(ask)))),
	};
});
