/*
 * Feeds and listings as the wire has them, while others write: rows come once, in order, and without
 * holes; a reader that stands still holds up nobody else.
 */
import assert from 'node:assert/strict';
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

import { startFrond } from '../lib/frond.mjs';
import { expectStatus, request } from '../lib/http.mjs';
import { note } from '../lib/tap.mjs';
import { byBytes, chunks, eventually } from '../lib/util.mjs';

const LATE_MS = 5000;
const MANY_FEEDS = 300;

async function setup(ctx) {
	const frond = await startFrond(ctx, 'feeds');
	return { frond, url: frond.url, databases: 0 };
}

const withDb = (test) => async (state, ctx) => {
	const db = `${state.url}/feeds-${++state.databases}`;
	await expectStatus(201, 'PUT', db);
	await test(db, ctx);
	await expectStatus(200, 'DELETE', db);
};

/* Opens an endless answer. → { text: what came so far, close, closed }, growing as it comes */
function open(url, headers = {}) {
	return new Promise((resolve, reject) => {
		const req = http.get(url, { headers, agent: false }, (res) => {
			const feed = { text: '', headers: res.headers, res, closed: false };
			feed.close = () => req.destroy();
			res.setEncoding('utf8');
			res.on('data', (chunk) => (feed.text += chunk));
			res.on('close', () => (feed.closed = true));
			res.on('error', () => {});
			resolve(feed);
		});
		req.on('error', reject);
	});
}

/* Rows of a continuous feed; only lines that are whole. */
const rowsOf = (feed) =>
	feed.text
		.slice(0, feed.text.lastIndexOf('\n') + 1)
		.split('\n')
		.filter((line) => line !== '')
		.map((line) => JSON.parse(line));

const put = (db, id, body = {}) => expectStatus(201, 'PUT', `${db}/${id}`, body);

/* Several writers, each of its own documents, one after the other. → id → last revision */
async function write(db, writers, each) {
	const revs = new Map();
	const one = async (w) => {
		for (let i = 0; i < each; i++) {
			const id = `w${w}-${i % Math.ceil(each / 2)}`;
			const _rev = revs.get(id);
			const { rev } = await put(db, id, _rev ? { i, _rev } : { i });
			revs.set(id, rev);
		}
	};
	await Promise.all(Array.from({ length: writers }, (_, w) => one(w)));
	return revs;
}

const tests = {
	'a continuous feed misses nothing that many writers write': withDb(async (db) => {
		const feed = await open(`${db}/_changes?feed=continuous&since=0&heartbeat=1000`);
		const revs = await write(db, 6, 60);
		const latest = () =>
			new Map(rowsOf(feed).map((row) => [row.id, row.changes[0].rev]));
		await eventually(
			() => [...revs].every(([id, rev]) => latest().get(id) === rev),
			LATE_MS,
		);
		const seqs = rowsOf(feed).map((row) => row.seq);
		assert.deepEqual(seqs, [...new Set(seqs)].sort());
		feed.close();
	}),

	'a quiet feed beats at its pace, and one with a timeout ends': withDb(async (db) => {
		const beating = await open(`${db}/_changes?feed=continuous&heartbeat=100`);
		await sleep(1000);
		assert.match(beating.text, /^\n{3,20}$/);
		beating.close();
		const begin = performance.now();
		const { text } = await request('GET', `${db}/_changes?feed=continuous&timeout=300`);
		assert.ok(performance.now() - begin >= 250);
		assert.equal(typeof JSON.parse(text).last_seq, 'string');
	}),

	'an event source tells changes and goes on after the last': withDb(async (db) => {
		for (let i = 0; i < 5; i++) await put(db, `doc-${i}`);
		const feed = await open(`${db}/_changes?feed=eventsource&heartbeat=200`);
		assert.match(feed.headers['content-type'], /^text\/event-stream/);
		const events = (text) =>
			text
				.split('\n\n')
				.map((event) => /^data: (\{.*)\nid: (.*)$/m.exec(event))
				.filter((match) => match)
				.map(([, data, id]) => ({
					row: JSON.parse(data),
					id: JSON.parse(id),
				}));
		await eventually(() => events(feed.text).length === 5, LATE_MS);
		await eventually(() => feed.text.includes('event: heartbeat'), LATE_MS);
		feed.close();
		const first = events(feed.text);
		for (const { row, id } of first) assert.equal(row.seq, id);
		const next = await open(`${db}/_changes?feed=eventsource&since=0`, {
			'Last-Event-ID': JSON.stringify(first[2].id),
		});
		await eventually(() => events(next.text).length === 2, LATE_MS);
		assert.deepEqual(events(next.text), first.slice(3));
		next.close();
	}),

	'many long polls wake for one change': withDb(async (db) => {
		const waiting = Array.from({ length: 100 }, () =>
			request('GET', `${db}/_changes?feed=longpoll&since=now&timeout=10000`),
		);
		await sleep(500); // until they wait
		const { rev } = await put(db, 'it');
		for (const { json } of await Promise.all(waiting))
			assert.deepEqual(json.results[0]?.changes, [{ rev }]);
	}),

	'one write reaches hundreds of quiet feeds': withDb(async (db) => {
		const url = `${db}/_changes?feed=continuous&since=now&heartbeat=1000`;
		const feeds = await Promise.all(
			Array.from({ length: MANY_FEEDS }, () => open(url)),
		);
		const begin = performance.now();
		const { rev } = await put(db, 'it');
		await eventually(() => feeds.every((feed) => rowsOf(feed).length > 0), LATE_MS, 5);
		note(`${feeds.length} feeds told in ${Math.round(performance.now() - begin)} ms`);
		for (const feed of feeds) {
			const [row, ...more] = rowsOf(feed);
			assert.deepEqual(row.changes, [{ rev }]);
			assert.deepEqual(more, []);
			feed.close();
		}
	}),

	'a feed ends when its database does': withDb(async (db) => {
		await put(db, 'it');
		const feed = await open(`${db}/_changes?feed=continuous&heartbeat=1000`);
		await eventually(() => rowsOf(feed).length === 1, LATE_MS);
		await expectStatus(200, 'DELETE', db);
		await eventually(() => feed.closed, LATE_MS);
		await expectStatus(201, 'PUT', db);
	}),

	'a listing that others write into stays in order and whole': withDb(
		async (db, { docs }) => {
			const before = docs.filter((doc) => JSON.stringify(doc).length < 20000);
			for (const some of chunks(before, 500))
				await expectStatus(201, 'POST', `${db}/_bulk_docs`, { docs: some });
			const writing = write(db, 2, 150);
			for (let i = 0; i < 5; i++) {
				const { rows } = await expectStatus(200, 'GET', `${db}/_all_docs`);
				const ids = rows.map((row) => row.id);
				assert.deepEqual(ids, [...new Set(ids)].sort(byBytes));
				const listed = new Set(ids);
				for (const doc of before) assert.ok(listed.has(doc._id), doc._id);
				const feed = await expectStatus(200, 'GET', `${db}/_changes`);
				const seqs = feed.results.map((row) => row.seq);
				assert.deepEqual(seqs, [...new Set(seqs)].sort());
			}
			await writing;
		},
	),

	'a reader that stands still gets the rest when it goes on': withDb(async (db, { docs }) => {
		for (const some of chunks(docs, 500))
			await expectStatus(201, 'POST', `${db}/_bulk_docs`, { docs: some });
		const slow = await open(`${db}/_all_docs?include_docs=true`);
		slow.res.pause();
		for (let i = 0; i < 20; i++) await put(db, `zzz-${i}`);
		await sleep(500);
		slow.res.resume();
		await eventually(() => slow.closed, 4 * LATE_MS);
		const { rows } = JSON.parse(slow.text);
		const there = new Map(rows.map((row) => [row.id, row.doc]));
		for (const doc of docs) {
			const { _rev, ...body } = there.get(doc._id);
			assert.deepEqual(body, doc);
		}
	}),

	'one value is read out of a document': withDb(async (db, { docs }) => {
		const doc = docs.find((one) => one.feature?.__compat?.support);
		await expectStatus(201, 'POST', `${db}/_bulk_docs`, { docs: [doc] });
		const at = (pointer) =>
			request('GET', `${db}/${encodeURIComponent(doc._id)}?path=${pointer}`);
		const whole = await at('/feature/__compat/support');
		assert.deepEqual(whole.json, doc.feature.__compat.support);
		const leaf = await at('/feature/__compat/status/deprecated');
		assert.deepEqual(leaf.json, doc.feature.__compat.status.deprecated);
		assert.equal((await at('/feature/nowhere')).status, 404);
	}),
};

export default {
	name: 'feeds',
	ownsServer: true,
	setup,
	tests,
	teardown: ({ frond }) => frond.stop(),
};
