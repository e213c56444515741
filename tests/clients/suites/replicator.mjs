/* frond's own replicator, with pouchdb-server and another frond at the other end. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';

import { freePort, startFrond } from '../lib/frond.mjs';
import { expectStatus, request } from '../lib/http.mjs';

const START_TIMEOUT_MS = 30000;
const WAIT_MS = 20000;
const SETTINGS = `[replicator]
backoff = 200
checkpoint_interval = 300
retries_per_request = 1
connection_timeout = 5000
worker_batch_size = 100
`;

/* Of the other one, where more replications wait than may run. */
const FEW_SETTINGS = `[replicator]
max_jobs = 2
interval = 1000
`;

const withName = (url) => url.replace('://', '://anna:secret@');
const ANNA = `Basic ${Buffer.from('anna:secret').toString('base64')}`;

async function until(what, probe) {
	const deadline = Date.now() + WAIT_MS;
	for (;;) {
		const got = await probe();
		if (got) return got;
		assert.ok(Date.now() < deadline, `${what}: not within ${WAIT_MS} ms`);
		await sleep(50);
	}
}

/* ---- pouchdb-server ---- */

async function startPouch(ctx) {
	const bin = path.join(
		path.dirname(createRequire(import.meta.url).resolve('pouchdb-server/package.json')),
		'bin/pouchdb-server',
	);
	const port = await freePort();
	const dir = path.join(ctx.tmp, 'pouchdb-server');
	fs.mkdirSync(dir, { recursive: true });
	const child = spawn(
		process.execPath,
		[bin, '--in-memory', '--host', '127.0.0.1', '--port', String(port), '--no-stdout-logs'],
		{ cwd: dir, stdio: 'ignore' },
	);
	const url = `http://127.0.0.1:${port}`;
	const deadline = Date.now() + START_TIMEOUT_MS;
	process.on('exit', () => child.kill('SIGKILL'));
	for (;;) {
		try {
			await request('GET', `${url}/`);
			return { child, url };
		} catch (err) {
			if (Date.now() > deadline) throw err;
			await sleep(100);
		}
	}
}

/* ---- What a database holds ---- */

async function revisionOf(db, doc, options) {
	const { _attachments: atts = {}, ...body } = doc;
	const digests = {};
	for (const name of Object.keys(atts).sort()) {
		const id = `${encodeURIComponent(doc._id)}/${encodeURIComponent(name)}`;
		const response = await fetch(`${db}/${id}?rev=${doc._rev}`, options);
		assert.equal(response.status, 200);
		const bytes = Buffer.from(await response.arrayBuffer());
		digests[name] = [
			atts[name].content_type,
			crypto.createHash('md5').update(bytes).digest('hex'),
		];
	}
	return [doc._rev, body, digests];
}

/* Every leaf of every document, with its history, and what its attachments hold. */
async function contentOf(db, options = {}) {
	const { json } = await request('GET', `${db}/_changes?style=all_docs`, undefined, options);
	const content = {};
	for (const { id } of json.results) {
		const { json: leaves } = await request(
			'GET',
			`${db}/${encodeURIComponent(id)}?open_revs=all&revs=true`,
			undefined,
			{ headers: { Accept: 'application/json', ...options.headers } },
		);
		const revisions = [];
		for (const { ok } of leaves) revisions.push(await revisionOf(db, ok, options));
		content[id] = revisions.sort((a, b) => (a[0] < b[0] ? -1 : 1));
	}
	return content;
}

async function fill(db, ctx) {
	const hash = (n) => n.toString(16).padStart(32, '0');
	await expectStatus(201, 'PUT', db);
	await expectStatus(201, 'POST', `${db}/_bulk_docs`, { docs: ctx.docs.slice(0, 150) });
	const edits = [1, 2, 3].map((n) => ({ _id: 'conflict', _rev: `1-${hash(n)}`, n }));
	edits.push({
		_id: 'conflict',
		_rev: `2-${hash(9)}`,
		_revisions: { start: 2, ids: [hash(9), hash(1)] },
		_deleted: true,
	});
	await expectStatus(201, 'POST', `${db}/_bulk_docs`, { docs: edits, new_edits: false });
	const { rev } = await expectStatus(201, 'PUT', `${db}/gone`, {});
	await expectStatus(200, 'DELETE', `${db}/gone?rev=${rev}`);
	let last = '';
	for (const [name, type, bytes] of [
		['text.txt', 'text/plain', Buffer.from('hello world '.repeat(2000))],
		['b c.bin', 'application/octet-stream', crypto.randomBytes(700000)],
		['ü.txt', 'text/plain', Buffer.from('x')],
	]) {
		const response = await fetch(`${db}/photos/${encodeURIComponent(name)}${last}`, {
			method: 'PUT',
			body: bytes,
			headers: { 'Content-Type': type },
		});
		assert.equal(response.status, 201);
		last = `?rev=${(await response.json()).rev}`;
	}
}

/* ---- The suite ---- */

async function setup(ctx) {
	const settings = path.join(ctx.tmp, 'replicator.ini');
	const few = path.join(ctx.tmp, 'few.ini');
	fs.writeFileSync(settings, SETTINGS);
	fs.writeFileSync(few, FEW_SETTINGS);
	const [frond, other, pouch] = await Promise.all([
		startFrond(ctx, 'replicator', ['--config', settings]),
		startFrond(ctx, 'other', ['--config', few, '--admin', 'anna:secret']),
		startPouch(ctx),
	]);
	await fill(`${frond.url}/full`, ctx);
	await expectStatus(201, 'PUT', `${frond.url}/_replicator`);
	return { frond, other, pouch };
}

const replicate = (frond, body, status = 200) =>
	expectStatus(status, 'POST', `${frond.url}/_replicate`, body);
const jobs = async (frond) => (await expectStatus(200, 'GET', `${frond.url}/_scheduler/jobs`)).jobs;
const docState = async (frond, id) =>
	(await request('GET', `${frond.url}/_scheduler/docs/_replicator/${id}`)).json;
const asAnna = { headers: { Authorization: ANNA } };

async function numbered(db, count, options) {
	const docs = Array.from({ length: count }, (_, i) => ({
		_id: `doc-${String(i).padStart(5, '0')}`,
		even: i % 2 === 0,
	}));
	await request('PUT', db, undefined, options);
	const { status } = await request('POST', `${db}/_bulk_docs`, { docs }, options);
	assert.equal(status, 201);
}

const countOf = async (db, options) =>
	(await request('GET', db, undefined, options)).json?.doc_count ?? 0;

const tests = {
	'pouchdb-server gets and gives back every revision and attachment': async ({ frond, pouch }) => {
		const there = `${pouch.url}/copy`;
		const pushed = await replicate(frond, {
			source: 'full',
			target: there,
			create_target: true,
		});
		assert.equal(pushed.ok, true);
		assert.equal(pushed.history[0].doc_write_failures, 0);
		await replicate(frond, { source: there, target: 'back', create_target: true });
		const content = await contentOf(`${frond.url}/full`);
		assert.deepEqual(await contentOf(there), content);
		assert.deepEqual(await contentOf(`${frond.url}/back`), content);
	},

	'another frond gets them, and nothing twice': async ({ frond, other }) => {
		const body = {
			source: 'full',
			target: withName(`${other.url}/copy`),
			create_target: true,
		};
		await replicate(frond, body);
		assert.deepEqual(
			await contentOf(`${other.url}/copy`, asAnna),
			await contentOf(`${frond.url}/full`),
		);
		const again = await replicate(frond, { ...body, create_target: false });
		assert.equal(again.no_changes, true);
		await expectStatus(201, 'PUT', `${frond.url}/full/one-more`, {});
		const more = await replicate(frond, body);
		// The figures of an entry are of all runs together.
		assert.equal(more.history[0].docs_written, more.history[1].docs_written + 1);
		assert.equal(more.history.length, 2);
	},

	'only what is asked for by ids or by selector': async ({ frond }) => {
		await numbered(`${frond.url}/many`, 200);
		const base = { source: `${frond.url}/many`, create_target: true };
		const ids = ['doc-00007', 'doc-00100', 'not there'];
		await replicate(frond, { ...base, target: 'by-ids', doc_ids: ids });
		const { rows } = await expectStatus(200, 'GET', `${frond.url}/by-ids/_all_docs`);
		assert.deepEqual(rows.map((row) => row.id), ids.slice(0, 2));
		const selector = { even: true, _id: { $gt: 'doc-00150' } };
		await replicate(frond, { ...base, target: 'by-selector', selector });
		assert.equal(await countOf(`${frond.url}/by-selector`), 24);
	},

	'only what a function of the source lets pass, local or not': async ({ frond }) => {
		await numbered(`${frond.url}/odd`, 100);
		await expectStatus(201, 'PUT', `${frond.url}/odd/_design/d`, {
			filters: { f: 'function (doc, req) { return doc.even === (req.query.even === "yes"); }' },
			views: { v: { map: 'function (doc) { if (doc.even) emit(doc._id, null); }' } },
		});
		const ask = { create_target: true, filter: 'd/f', query_params: { even: 'yes' } };
		await replicate(frond, { ...ask, source: 'odd', target: 'odd-local' });
		assert.equal(await countOf(`${frond.url}/odd-local`), 50);
		await replicate(frond, { ...ask, source: `${frond.url}/odd`, target: 'odd-far' });
		assert.equal(await countOf(`${frond.url}/odd-far`), 50);
		const view = { source: 'odd', filter: '_view', query_params: { view: 'd/v' } };
		await replicate(frond, { ...view, target: 'odd-view', create_target: true });
		assert.equal(await countOf(`${frond.url}/odd-view`), 50);
		const none = { source: 'odd', target: 'odd-none', create_target: true, filter: 'd/none' };
		const missing = await request('POST', `${frond.url}/_replicate`, none);
		assert.ok(missing.status >= 400, `${missing.status}`);
	},

	'a continuous one brings changes at once, is told of and cancelled': async ({ frond }) => {
		await numbered(`${frond.url}/live`, 10);
		const body = { source: 'live', target: 'live2', create_target: true, continuous: true };
		const { _local_id: id } = await replicate(frond, body, 202);
		await until('the first changes', async () => (await countOf(`${frond.url}/live2`)) === 10);
		await expectStatus(201, 'PUT', `${frond.url}/live/new`, {});
		await until('a change', async () => (await countOf(`${frond.url}/live2`)) === 11);
		const tasks = await expectStatus(200, 'GET', `${frond.url}/_active_tasks`);
		const task = tasks.find((one) => one.replication_id === id);
		assert.equal(task.type, 'replication');
		assert.equal(task.continuous, true);
		await until('its figures', async () => {
			const [job] = (await jobs(frond)).filter((one) => one.id === id);
			return job.info.docs_written === 11 && job.info.changes_pending === 0;
		});
		const cancelled = await replicate(frond, { ...body, cancel: true });
		assert.equal(cancelled._local_id, id);
		await replicate(frond, { cancel: true, replication_id: id }, 404);
		assert.deepEqual((await jobs(frond)).filter((one) => one.id === id), []);
	},

	'a document is a job until it is done, and is told how that ended': async ({ frond }) => {
		const doc = `${frond.url}/_replicator/copy`;
		await expectStatus(403, 'PUT', doc, { source: 'many' });
		await expectStatus(201, 'PUT', doc, { source: 'many', target: 'm2', create_target: true });
		const told = await until('completed', async () => {
			const { json } = await request('GET', doc);
			return json._replication_state && json;
		});
		assert.equal(told._replication_state, 'completed');
		assert.equal(told._replication_stats.docs_written, 200);
		assert.equal((await docState(frond, 'copy')).state, 'completed');
		assert.equal(await countOf(`${frond.url}/m2`), 200);
	},

	'wrong credentials and a missing database crash, and right ones help': async ({ frond, other }) => {
		const doc = `${frond.url}/_replicator/locked`;
		const source = `${other.url}/copy`;
		const target = 'unlocked';
		const { rev } = await expectStatus(201, 'PUT', doc, {
			source: source.replace('://', '://anna:wrong@'),
			target,
			create_target: true,
		});
		const state = await until('a second crash', async () => {
			const found = await docState(frond, 'locked');
			return found.error_count > 1 && found;
		});
		assert.equal(state.state, 'crashing');
		assert.match(state.info.error, /^unauthorized: /);
		assert.doesNotMatch(JSON.stringify(state), /wrong/);
		const { json: refused } = await request('POST', `${frond.url}/_replicate`, {
			source,
			target: 'many',
		});
		assert.equal(refused.error, 'unauthorized');
		const missing = await replicate(frond, { source: 'nowhere', target: 'many' }, 500);
		assert.equal(missing.error, 'db_not_found');
		await expectStatus(201, 'PUT', doc, {
			_rev: rev,
			source: { url: source, auth: { basic: { username: 'anna', password: 'secret' } } },
			target,
			create_target: true,
		});
		await until('completed', async () => (await docState(frond, 'locked')).state === 'completed');
		assert.ok((await countOf(`${frond.url}/${target}`)) > 100);
	},

	'a kill -9 in the middle loses nothing': async ({ frond, other }) => {
		const source = `${other.url}/long`;
		await numbered(source, 6000, asAnna);
		await expectStatus(201, 'PUT', `${frond.url}/_replicator/long`, {
			source: withName(source),
			target: 'long',
			create_target: true,
			continuous: true,
			worker_batch_size: 20,
			worker_processes: 1,
		});
		await until('the middle', async () => (await countOf(`${frond.url}/long`)) > 500);
		await frond.kill();
		await frond.start();
		assert.ok((await countOf(`${frond.url}/long`)) < 6000, 'it was over before the kill');
		await until('all', async () => (await countOf(`${frond.url}/long`)) === 6000);
	},

	'a target that is away is waited for': async ({ frond, other }) => {
		const target = `${other.url}/late`;
		await other.kill();
		await expectStatus(201, 'PUT', `${frond.url}/_replicator/late`, {
			source: 'many',
			target: withName(target),
			create_target: true,
		});
		const state = await until('crashes', async () => {
			const found = await docState(frond, 'late');
			return found.error_count >= 2 && found;
		});
		assert.equal(state.state, 'crashing');
		await other.start();
		await until('completed', async () => (await docState(frond, 'late')).state === 'completed');
		assert.equal(await countOf(target, asAnna), 200);
	},

	'more than may run take turns, as those whose they are': async ({ other }) => {
		const { url } = other;
		const put = (where, body) => request('PUT', `${url}/${where}`, body, asAnna);
		await numbered(`${url}/turns`, 10, asAnna);
		assert.equal((await put('_replicator')).status, 201);
		for (let n = 0; n < 5; n++) {
			const body = { source: 'turns', target: `turn${n}`, create_target: true, continuous: true };
			assert.equal((await put(`_replicator/turn${n}`, body)).status, 201);
		}
		const states = async () => {
			const { json } = await request('GET', `${url}/_scheduler/docs`, undefined, asAnna);
			return json.docs.map((doc) => doc.state);
		};
		await until('a turn of each', async () => {
			assert.ok((await states()).filter((state) => state === 'running').length <= 2);
			const counts = [0, 1, 2, 3, 4].map((n) => countOf(`${url}/turn${n}`, asAnna));
			return (await Promise.all(counts)).every((count) => count === 10);
		});
		const { json: doc } = await request('GET', `${url}/_replicator/turn0`, undefined, asAnna);
		assert.equal(doc.owner, 'anna');
		for (const where of ['_replicator/turn0', '_scheduler/jobs', '_active_tasks'])
			assert.equal((await request('GET', `${url}/${where}`)).status, 401);
		const stranger = { source: 'turns', target: 'turn0' };
		assert.equal((await request('POST', `${url}/_replicate`, stranger)).status, 401);
	},

	'a stop leaves a checkpoint, and a start goes on from there': async ({ frond }) => {
		await expectStatus(201, 'PUT', `${frond.url}/_replicator/on`, {
			source: 'many',
			target: 'on',
			create_target: true,
			continuous: true,
			checkpoint_interval: 600000,
		});
		await until('all', async () => (await countOf(`${frond.url}/on`)) === 200);
		await frond.stop();
		await frond.start();
		const info = await until('a job', async () => {
			const found = await docState(frond, 'on');
			return found.state === 'running' && found.info;
		});
		assert.notEqual(info.checkpointed_source_seq, 0);
		/* Figures count over all runs, as CouchDB's do: nothing was checked again. */
		assert.equal(info.revisions_checked, 200);
		const { json: doc } = await request('GET', `${frond.url}/_replicator/on`);
		await expectStatus(200, 'DELETE', `${frond.url}/_replicator/on?rev=${doc._rev}`);
		await until('no job', async () => !(await jobs(frond)).some((job) => job.doc_id === 'on'));
	},
};

async function teardown({ frond, other, pouch }) {
	pouch.child.kill('SIGKILL');
	await frond.stop();
	await other.stop();
}

export default { name: 'replicator', ownsServer: true, setup, tests, teardown };
