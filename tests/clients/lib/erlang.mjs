/*
 * CouchDB's revision hash, computed apart from the server: md5 over a list in Erlang's external term
 * format. A document's members count in the order in which a client sends them.
 */
import { createHash } from 'node:crypto';

const TAG = {
	version: 131,
	float: 70,
	small: 97,
	integer: 98,
	atom: 100,
	tuple: 104,
	nil: 106,
	string: 107,
	list: 108,
	binary: 109,
	big: 110,
};
const STRING_LENGTH = 65535;

function bytes(...list) {
	return Buffer.from(list);
}

function uint32(n) {
	const b = Buffer.alloc(4);
	b.writeUInt32BE(n >>> 0);
	return b;
}

const atom = (name) => Buffer.concat([bytes(TAG.atom, 0, name.length), Buffer.from(name)]);

function binary(data) {
	const b = Buffer.from(data);
	return Buffer.concat([bytes(TAG.binary), uint32(b.length), b]);
}

function integer(n) {
	if (n >= 0 && n <= 255) return bytes(TAG.small, n);
	if (n >= -(2 ** 31) && n < 2 ** 31) return Buffer.concat([bytes(TAG.integer), uint32(n)]);
	const digits = [];
	for (let rest = BigInt(n < 0 ? -n : n); rest > 0n; rest >>= 8n)
		digits.push(Number(rest & 0xffn));
	return bytes(TAG.big, digits.length, n < 0 ? 1 : 0, ...digits);
}

function double(n) {
	const b = Buffer.alloc(9);
	b[0] = TAG.float;
	b.writeDoubleBE(n, 1);
	return b;
}

function list(terms) {
	if (terms.length === 0) return bytes(TAG.nil);
	return Buffer.concat([bytes(TAG.list), uint32(terms.length), ...terms, bytes(TAG.nil)]);
}

function array(values) {
	const small = values.every((v) => Number.isInteger(v) && v >= 0 && v <= 255);
	if (small && values.length > 0 && values.length <= STRING_LENGTH)
		return bytes(TAG.string, values.length >> 8, values.length & 255, ...values);
	return list(values.map(term));
}

const object = (members) =>
	Buffer.concat([
		bytes(TAG.tuple, 1),
		list(
			members.map(([name, v]) =>
				Buffer.concat([bytes(TAG.tuple, 2), binary(name), term(v)]),
			),
		),
	]);

function term(v) {
	switch (typeof v) {
		case 'string':
			return binary(v);
		case 'number':
			return Number.isInteger(v) ? integer(v) : double(v);
		case 'boolean':
			return atom(String(v));
		default:
			if (v === null) return atom('null');
			return Array.isArray(v) ? array(v) : object(Object.entries(v));
	}
}

/*
 * "N-hash" of the edit that makes `doc` out of the revision `parent` (undefined: none). Members
 * that begin with '_' do not count. A number that is an integer in JavaScript is taken for one.
 */
export function revisionOf(doc, parent, deleted = false) {
	const [pos, hash] = parent ? parent.split('-') : ['0'];
	const body = Object.entries(doc).filter(([name]) => !name.startsWith('_'));
	const terms = [
		atom(String(deleted)),
		integer(Number(pos)),
		hash ? binary(Buffer.from(hash, 'hex')) : integer(0),
		object(body),
		bytes(TAG.nil),
	];
	const digest = createHash('md5')
		.update(bytes(TAG.version))
		.update(list(terms))
		.digest('hex');
	return `${Number(pos) + 1}-${digest}`;
}
