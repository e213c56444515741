/*
 * frond as a process: started on a free port, killed in the middle of things, started again.
 */
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from './http.mjs';

const START_TIMEOUT_MS = 30000;
const STOP_TIMEOUT_MS = 45000; // more than the 30 s of drain_timeout_ms, and less than a test has
const LOG_TAIL_BYTES = 4000;

export function freePort() {
	return new Promise((resolve, reject) => {
		const server = net.createServer();
		server.on('error', reject);
		server.listen(0, '127.0.0.1', () => {
			const { port } = server.address();
			server.close(() => resolve(port));
		});
	});
}

const running = new Set();
process.on('exit', () => {
	for (const child of running) child.kill('SIGKILL');
});

export class Frond {
	/* `dir`: the store's directory; the log lies beside it. `args`: more options of serve. */
	constructor(bin, dir, args = []) {
		this.args = args;
		this.bin = bin;
		this.dir = dir;
		this.store = `embedded:${dir}`;
		this.log = `${dir}.log`;
	}

	async start() {
		this.port ??= await freePort();
		this.url = `http://127.0.0.1:${this.port}`;
		const out = fs.openSync(this.log, 'a');
		const child = spawn(
			this.bin,
			['serve', '--store', this.store, '--http', `127.0.0.1:${this.port}`, ...this.args],
			{ stdio: ['ignore', out, out] },
		);
		fs.closeSync(out);
		running.add(child);
		this.child = child;
		this.exited = new Promise((resolve) => {
			child.on('error', (err) => resolve({ code: null, signal: null, err }));
			child.on('exit', (code, signal) => resolve({ code, signal }));
		}).then((how) => {
			running.delete(child);
			this.ended = how;
			return how;
		});
		this.ended = null;
		await this.#ready();
		return this;
	}

	async #ready() {
		const deadline = Date.now() + START_TIMEOUT_MS;
		for (;;) {
			if (this.ended)
				throw new Error(
					`frond ended ${JSON.stringify(this.ended)}: ${this.logTail()}`,
				);
			try {
				await request('GET', `${this.url}/`);
				return;
			} catch (err) {
				if (Date.now() > deadline)
					throw new Error(`no answer on ${this.url}: ${err.message}`);
			}
			await sleep(20);
		}
	}

	/* As a power cut would end it. */
	async kill() {
		this.child.kill('SIGKILL');
		await this.exited;
	}

	/* As an operator ends it; anything but a clean end within the time is an error. */
	async stop() {
		const timer = setTimeout(() => this.child.kill('SIGKILL'), STOP_TIMEOUT_MS);
		this.child.kill('SIGTERM');
		const how = await this.exited;
		clearTimeout(timer);
		if (how.code !== 0)
			throw new Error(
				`a stop ended with ${JSON.stringify(how)}: ${this.logTail()}`,
			);
	}

	logTail() {
		const text = fs.existsSync(this.log) ? fs.readFileSync(this.log, 'utf8') : '';
		return text.slice(-LOG_TAIL_BYTES);
	}

	/* Runs another command of the binary over this store, to its end. */
	command(name, ...args) {
		return this.commandStart(name, ...args).done;
	}

	commandStart(name, ...args) {
		return this.runStart(name, '--store', this.store, ...args);
	}

	/* → { child, done: Promise of { code, signal, stdout, stderr } } */
	runStart(...args) {
		const child = spawn(this.bin, args, { stdio: ['ignore', 'pipe', 'pipe'] });
		const chunks = { stdout: [], stderr: [] };
		running.add(child);
		for (const stream of ['stdout', 'stderr'])
			child[stream].on('data', (chunk) => chunks[stream].push(chunk));
		const done = new Promise((resolve, reject) => {
			child.on('error', reject);
			child.on('close', (code, signal) => {
				running.delete(child);
				resolve({
					code,
					signal,
					stdout: Buffer.concat(chunks.stdout).toString(),
					stderr: Buffer.concat(chunks.stderr).toString(),
				});
			});
		});
		return { child, done };
	}
}

/* A server of its own in a fresh directory under ctx.tmp, started. */
export async function startFrond(ctx, name, args) {
	return new Frond(ctx.frond, path.join(ctx.tmp, name), args).start();
}
