/* What no client should send, and clients that leave in the middle: the server serves on. */
import assert from 'node:assert/strict';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

import { startFrond } from '../lib/frond.mjs';
import { expectStatus, request } from '../lib/http.mjs';
import { eventually, pick, random } from '../lib/util.mjs';

const ANSWER_MS = 5000;

async function setup(ctx) {
	const frond = await startFrond(ctx, 'garbage');
	const db = `${frond.url}/garbage`;
	await expectStatus(201, 'PUT', db);
	const docs = Array.from({ length: 300 }, (_, i) => ({
		_id: `doc-${i}`,
		text: 'x'.repeat(2000),
	}));
	await expectStatus(201, 'POST', `${db}/_bulk_docs`, { docs });
	const { text } = await request('GET', `${db}/doc-7`);
	return { frond, db, text, rand: random(ctx.seed) };
}

/*
 * Sends stretches of bytes with a pause between them, then half-closes. → { answer, closed }, once
 * the server has closed or `ms` have passed.
 */
function talk(port, stretches, { ms = ANSWER_MS, pauseMs = 0, end = true } = {}) {
	return new Promise((resolve) => {
		const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
		const chunks = [];
		let timer;
		const done = (closed) => {
			clearTimeout(timer);
			socket.destroy();
			resolve({ answer: Buffer.concat(chunks).toString('latin1'), closed });
		};
		timer = setTimeout(() => done(false), ms);
		socket.on('data', (chunk) => chunks.push(chunk));
		socket.on('end', () => done(true));
		socket.on('error', () => done(true));
		socket.on('connect', async () => {
			for (const stretch of stretches) {
				socket.write(stretch);
				if (pauseMs > 0) await sleep(pauseMs);
			}
			if (end) socket.end();
		});
	});
}

const statuses = (answer) => [...answer.matchAll(/HTTP\/1\.1 (\d{3})/g)].map((m) => Number(m[1]));

/* The same process still serves, and what it had is as it was. */
async function assertServes({ frond, db, text }) {
	assert.equal(frond.ended, null, `ended: ${JSON.stringify(frond.ended)}`);
	const answer = await request('GET', `${db}/doc-7`);
	assert.equal(answer.status, 200);
	assert.equal(answer.text, text);
}

const bytes = (rand, n) => Buffer.from(Array.from({ length: n }, () => Math.floor(rand() * 256)));

/* Requests that a server must take, to be broken in many ways. */
function requests(path) {
	const post = (target, body, more = '') =>
		`POST ${path}${target} HTTP/1.1\r\nHost: localhost\r\n` +
		`Content-Type: application/json\r\n${more}Content-Length: ${Buffer.byteLength(body)}` +
		`\r\n\r\n${body}`;
	return [
		`GET ${path}/doc-7 HTTP/1.1\r\nHost: localhost\r\n\r\n`,
		`GET ${path}/_all_docs?startkey=%22doc-2%22&limit=3&include_docs=true HTTP/1.1\r\n` +
			'Host: localhost\r\nAccept: application/json\r\n\r\n',
		`GET ${path}/_changes?since=0&limit=2&style=all_docs HTTP/1.1\r\nHost: localhost\r\n\r\n`,
		`GET ${path}/doc-7?open_revs=[%221-a%22]&revs=true HTTP/1.1\r\nHost: localhost\r\n\r\n`,
		`HEAD ${path}/doc-7 HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: "1-x"\r\n\r\n`,
		post(
			'/_bulk_docs',
			'{"docs":[{"_id":"doc-7","a":[1,2.5e3,"\\u00fc",{"b":null}]}]}',
		),
		post(
			'/_bulk_docs',
			'{"new_edits":false,"docs":[{"_id":"fuzzed","_rev":"2-b","_revisions":' +
				'{"start":2,"ids":["b","a"]}}]}',
		),
		post('/_bulk_get', '{"docs":[{"id":"doc-7","rev":"1-x"},{"id":"absent"}]}'),
		post('/_revs_diff', '{"doc-7":["1-x","2-y"]}'),
		post('/_all_docs', '{"keys":["doc-1","absent",7]}'),
		`POST ${path}/_revs_diff HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n` +
			'Transfer-Encoding: chunked\r\n\r\n5\r\n{"a":\r\n7\r\n["1-x"]\r\n1\r\n}\r\n0\r\n\r\n',
	];
}

const tests = {
	'the requests to be broken are good ones': async ({ frond }) => {
		for (const text of requests('/garbage')) {
			const { answer } = await talk(frond.port, [text]);
			assert.ok(
				[200, 201].includes(statuses(answer)[0]),
				`${text}\n${answer.slice(0, 300)}`,
			);
		}
	},

	'random bytes are refused or dropped': async (state) => {
		const { frond, rand } = state;
		for (let i = 0; i < 60; i++) {
			const noise = bytes(rand, 1 + Math.floor(rand() * 20000));
			const { answer, closed } = await talk(frond.port, [noise]);
			assert.ok(closed, 'the connection was left open');
			for (const status of statuses(answer))
				assert.ok(status >= 400 && status !== 500, answer.slice(0, 200));
		}
		await assertServes(state);
	},

	'other protocols are refused or dropped': async (state) => {
		const hellos = [
			'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
			Buffer.from('16030100f8010000f40303', 'hex'),
			'SSH-2.0-OpenSSH_9.2\r\n',
			'*1\r\n$4\r\nPING\r\n',
			'GET /\r\n\r\n',
			'\r\n\r\n\r\n',
			'\0\0\0\0',
			'GET / HTTP/9.9\r\n\r\n',
			'GET  /  HTTP/1.1\r\n\r\n',
			'G@T / HTTP/1.1\r\n\r\n',
		];
		for (const hello of hellos) {
			const { answer, closed } = await talk(state.frond.port, [hello]);
			assert.ok(closed, `left open: ${hello}`);
			for (const status of statuses(answer))
				assert.ok(
					status >= 400,
					`${JSON.stringify(hello)}: ${answer.slice(0, 200)}`,
				);
		}
		await assertServes(state);
	},

	'ambiguous lengths are refused': async (state) => {
		const head =
			'POST /garbage/_revs_diff HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';
		const bodies = [
			'Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
			'Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x',
			'Content-Length: -2\r\n\r\n{}',
			'Content-Length: 0x2\r\n\r\n{}',
			'Content-Length: 99999999999999999999999\r\n\r\n{}',
			'Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n',
			'Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}\r\n0\r\n\r\n',
			'Transfer-Encoding: chunked\r\n\r\n2\r\n{}x\r\n0\r\n\r\n',
			'Transfer-Encoding: wild\r\n\r\n{}',
			'Content-Length : 2\r\n\r\n{}',
			' folded: x\r\n\r\n',
			'bad\0header: x\r\n\r\n',
		];
		for (const body of bodies) {
			const { answer } = await talk(state.frond.port, [head + body]);
			const status = statuses(answer)[0];
			assert.ok(
				status === undefined ||
					(status >= 400 && status <= 501 && status !== 500),
				`${JSON.stringify(body)}: ${answer.slice(0, 200)}`,
			);
		}
		await assertServes(state);
	},

	'headers and bodies without end are cut off': async (state) => {
		const { frond } = state;
		const long = await talk(frond.port, [
			`GET / HTTP/1.1\r\nHost: localhost\r\nLong: ${'y'.repeat(1000000)}`,
		]);
		assert.ok(
			statuses(long.answer).every((status) => status >= 400),
			long.answer.slice(0, 200),
		);
		assert.ok(long.closed);
		const many = await talk(frond.port, [
			'GET / HTTP/1.1\r\n',
			'A: b\r\n'.repeat(100000),
		]);
		assert.ok(
			statuses(many.answer).every((status) => status >= 400),
			many.answer.slice(0, 200),
		);
		assert.ok(many.closed);
		const announced = await talk(
			frond.port,
			[
				'POST /garbage/_bulk_docs HTTP/1.1\r\nHost: localhost\r\n' +
					'Content-Type: application/json\r\nContent-Length: 9000000000\r\n\r\n{"docs":[',
			],
			{ end: false },
		);
		assert.equal(statuses(announced.answer)[0], 413);
		await assertServes(state);
	},

	'a request cut off anywhere changes nothing': async (state) => {
		const { frond, db } = state;
		const body = JSON.stringify({ docs: [{ _id: 'cut', n: 1 }] });
		const whole =
			'POST /garbage/_bulk_docs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n' +
			`Content-Length: ${body.length}\r\n\r\n${body}`;
		for (let at = 1; at < whole.length; at += 3) {
			const { closed } = await talk(frond.port, [whole.slice(0, at)]);
			assert.ok(closed, `left open after ${at} bytes`);
		}
		await expectStatus(404, 'GET', `${db}/cut`);
		await assertServes(state);
	},

	'a request byte by byte is served': async (state) => {
		const text = 'GET /garbage/doc-7 HTTP/1.1\r\nHost: localhost\r\n\r\n';
		const { answer } = await talk(state.frond.port, [...text], { pauseMs: 2 });
		assert.equal(statuses(answer)[0], 200);
	},

	'pipelined requests are answered in order': async (state) => {
		const text = Array.from(
			{ length: 50 },
			(_, i) => `GET /garbage/doc-${i} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
		).join('');
		const { answer } = await talk(state.frond.port, [text]);
		assert.deepEqual(statuses(answer), Array(50).fill(200));
		const ids = [...answer.matchAll(/"_id":"(doc-\d+)"/g)].map((m) => m[1]);
		assert.deepEqual(
			ids,
			Array.from({ length: 50 }, (_, i) => `doc-${i}`),
		);
	},

	'damaged requests get an answer that blames them': async (state, { full }) => {
		const { frond, rand } = state;
		const good = requests('/garbage');
		const damage = (buffer) => {
			const at = Math.floor(rand() * buffer.length);
			switch (Math.floor(rand() * 4)) {
				case 0:
					return Buffer.concat([
						buffer.subarray(0, at),
						buffer.subarray(at + 1),
					]);
				case 1:
					return Buffer.concat([
						buffer.subarray(0, at),
						bytes(rand, 3),
						buffer.subarray(at),
					]);
				case 2:
					return Buffer.concat([
						buffer.subarray(0, at),
						buffer.subarray(at / 2, at),
						buffer.subarray(at),
					]);
				default:
					buffer[at] ^= 1 << Math.floor(rand() * 8);
					return buffer;
			}
		};
		for (let i = 0; i < (full ? 5000 : 500); i++) {
			let text = Buffer.from(pick(rand, good));
			for (let n = 1 + Math.floor(rand() * 3); n > 0; n--) text = damage(text);
			const { answer, closed } = await talk(frond.port, [text]);
			assert.ok(closed, `left open: ${JSON.stringify(text.toString('latin1'))}`);
			for (const status of statuses(answer))
				assert.ok(
					status < 500 || status === 501 || status === 505,
					`${JSON.stringify(text.toString('latin1'))}: ${answer.slice(0, 300)}`,
				);
		}
		assert.equal(frond.ended, null, JSON.stringify(frond.ended));
		await expectStatus(200, 'GET', state.db);
	},

	'clients that leave in the middle of an answer are forgotten': async (state) => {
		const { frond } = state;
		const leave = (target) =>
			new Promise((resolve) => {
				const socket = net.connect(frond.port, '127.0.0.1');
				socket.on('connect', () =>
					socket.write(`GET ${target} HTTP/1.1\r\nHost: localhost\r\n\r\n`),
				);
				socket.once('data', () => {
					socket.resetAndDestroy?.() ?? socket.destroy();
					resolve();
				});
				socket.on('error', resolve);
			});
		for (let i = 0; i < 40; i++) await leave('/garbage/_all_docs?include_docs=true');
		await Promise.all(
			Array.from({ length: 100 }, () =>
				leave('/garbage/_changes?feed=continuous&since=0&heartbeat=1000'),
			),
		);
		await assertServes(state);
	},

	'a client that does not read its answer holds nobody up': async (state) => {
		const { frond, db } = state;
		const sockets = Array.from({ length: 20 }, () => {
			const socket = net.connect(frond.port, '127.0.0.1');
			socket.pause();
			socket.on('error', () => {});
			socket.write(
				'GET /garbage/_all_docs?include_docs=true HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(
					20,
				),
			);
			return socket;
		});
		await sleep(300);
		for (let i = 0; i < 20; i++)
			await expectStatus([201, 409], 'PUT', `${db}/busy-${i}`, {});
		await assertServes(state);
		for (const socket of sockets) socket.destroy();
	},

	'hundreds of idle connections hold nobody up': async (state) => {
		const sockets = await Promise.all(
			Array.from(
				{ length: 400 },
				() =>
					new Promise((resolve, reject) => {
						const socket = net.connect(
							state.frond.port,
							'127.0.0.1',
							() => resolve(socket),
						);
						socket.on('error', reject);
					}),
			),
		);
		for (const socket of sockets) socket.write('GET / HTTP/1.1\r\nHo');
		await assertServes(state);
		for (const socket of sockets) socket.destroy();
		await eventually(() =>
			request('GET', state.frond.url).then(
				() => true,
				() => false,
			),
		);
	},
};

export default {
	name: 'garbage',
	ownsServer: true,
	setup,
	tests,
	teardown: ({ frond }) => frond.stop(),
};
