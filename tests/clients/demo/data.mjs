/*
 * Real documents to test with: MDN's browser compatibility data, cut into one document for every
 * feature (its whole subtree, under "feature"), every group of features that fits the limit of a
 * document (under "group") and every browser (under "browser"). Ids are dotted paths. The same
 * package gives the same documents in the same order.
 *
 *     node data.mjs [FILE]        writes JSON lines to FILE or standard output, counts to stderr
 */
import fs from 'node:fs';
import { createRequire } from 'node:module';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { pathToFileURL } from 'node:url';

import { byBytes } from '../lib/util.mjs';

/* Largest document made, as JSON: under the 1,000,000 bytes that CouchDB 4 and frond agree on. */
const DOCUMENT_BYTES = 950000;

const isGroup = (v) => v !== null && typeof v === 'object' && !Array.isArray(v);

/* Every document, in the order of the package. */
export function* documents() {
	const require = createRequire(import.meta.url);
	const data = require('@mdn/browser-compat-data');

	for (const [name, top] of Object.entries(data)) {
		if (name === '__meta') continue; // the package's version: no document
		if (name === 'browsers') {
			for (const [id, browser] of Object.entries(top))
				yield { _id: `browsers.${id}`, browser };
			continue;
		}
		yield* walk(name, top);
	}
}

function* walk(id, tree) {
	const member = tree.__compat ? 'feature' : 'group';
	const doc = { _id: id, [member]: tree };

	if (member === 'feature' || Buffer.byteLength(JSON.stringify(doc)) <= DOCUMENT_BYTES)
		yield doc;
	for (const [name, child] of Object.entries(tree))
		if (name !== '__compat' && isGroup(child)) yield* walk(`${id}.${name}`, child);
}

/*
 * About `count` of the documents, spread evenly over all of them, and with them the `largest` with
 * the most leaves.
 */
export function sample(all, count, largest = 10) {
	const step = Math.max(1, all.length / count);
	const chosen = new Set();

	for (let i = 0; i < all.length; i += step) chosen.add(all[Math.floor(i)]);
	const bySize = all.map((doc) => [countLeaves(doc), doc]).sort((a, b) => b[0] - a[0]);
	for (const [, doc] of bySize.slice(0, largest)) chosen.add(doc);
	return all.filter((doc) => chosen.has(doc));
}

/* Empty objects and arrays are leaves, too. "_id" is none. */
export function countLeaves(doc) {
	const { _id, ...body } = doc;
	return leavesOf(body);
}

function leavesOf(v) {
	if (v === null || typeof v !== 'object') return 1;
	const children = Object.values(v);
	return children.length === 0
		? 1
		: children.reduce((sum, child) => sum + leavesOf(child), 0);
}

function depthOf(v) {
	if (v === null || typeof v !== 'object') return 0;
	return 1 + Object.values(v).reduce((max, child) => Math.max(max, depthOf(child)), 0);
}

/* Documents, bytes (of the lines), leaves, and what the extremes are. */
export function measure(docs) {
	const sum = {
		documents: 0,
		bytes: 0,
		leaves: 0,
		over_100_leaves: 0,
		over_1000_leaves: 0,
		max_leaves: 0,
		max_depth: 0,
		max_bytes: 0,
	};

	for (const doc of docs) {
		const bytes = Buffer.byteLength(JSON.stringify(doc)) + 1;
		const leaves = countLeaves(doc);
		sum.documents++;
		sum.bytes += bytes;
		sum.leaves += leaves;
		sum.over_100_leaves += leaves > 100 ? 1 : 0;
		sum.over_1000_leaves += leaves > 1000 ? 1 : 0;
		sum.max_leaves = Math.max(sum.max_leaves, leaves);
		sum.max_depth = Math.max(sum.max_depth, depthOf(doc));
		sum.max_bytes = Math.max(sum.max_bytes, bytes);
	}
	return sum;
}

/* JSON lines into a stream; a thousand at a time, because a write each is slow. */
export async function writeLines(docs, out) {
	await pipeline(Readable.from(stretches(docs), { objectMode: true }), out);
}

/*
 * JSON with members in the order of their bytes (`_id` first), as a dump has them, so that the two
 * files can be compared: JavaScript puts members that look like numbers first.
 */
function textOf(value, first) {
	if (value === null || typeof value !== 'object') return JSON.stringify(value);
	if (Array.isArray(value)) return `[${value.map((element) => textOf(element)).join(',')}]`;
	const names = Object.keys(value)
		.filter((name) => name !== first)
		.sort(byBytes);
	if (first) names.unshift(first);
	return `{${names.map((name) => `${JSON.stringify(name)}:${textOf(value[name])}`).join(',')}}`;
}

function* stretches(docs) {
	let lines = [];
	for (const doc of docs) {
		lines.push(`${textOf(doc, '_id')}\n`);
		if (lines.length === 1000) {
			yield lines.join('');
			lines = [];
		}
	}
	yield lines.join('');
}

if (process.argv[1] && import.meta.url === pathToFileURL(fs.realpathSync(process.argv[1])).href) {
	const all = [...documents()].sort((a, b) => byBytes(a._id, b._id));
	const file = process.argv[2];
	await writeLines(all, file === undefined ? process.stdout : fs.createWriteStream(file));
	for (const [name, value] of Object.entries(measure(all)))
		process.stderr.write(`${name.padEnd(18)}${value.toLocaleString('en')}\n`);
}
