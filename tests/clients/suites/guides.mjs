/*
 * The guides of docs/guides for apps, as a reader does what they say: files are written, the server is
 * started, lines of the shell are run, and what a page shows as printed is compared. A line of `npm
 * install` is not run: what it names are packages of these tests.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { Frond, freePort } from '../lib/frond.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const top = path.join(here, '../../..');
const PORTS = ['5984', '6379', '27017'];
const MODULES = path.join(here, '../node_modules');
const known = JSON.parse(fs.readFileSync(path.join(here, '../package.json'), 'utf8')).dependencies;

/* Its blocks in their order: { language, text, name }, the name of the file that the line before says. */
export function blocksOf(text) {
	return [...text.matchAll(/([^\n]*)\n\n```(\w*)\n(.*?)```/gs)].map(([, before, language, body]) => ({
		language,
		text: body,
		name: before.match(/`([\w.-]+)`:$/)?.[1],
	}));
}

/* Runs a line of the shell to its end, and returns what it has printed. */
function runLine(line, cwd, bin) {
	const env = { ...process.env, PATH: `${path.dirname(bin)}:${process.env.PATH}` };
	const child = spawn('sh', ['-c', line], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
	const out = { stdout: '', stderr: '' };
	for (const name of ['stdout', 'stderr'])
		child[name].on('data', (chunk) => (out[name] += chunk));
	return new Promise((resolve, reject) => {
		child.on('error', reject);
		child.on('close', (code) =>
			code === 0
				? resolve(out.stdout)
				: reject(new Error(`${line}: ${code}\n${out.stdout}${out.stderr}`)),
		);
	});
}

class Walk {
	constructor(ctx, dir) {
		this.ctx = ctx;
		this.dir = dir;
		this.printed = null;
		this.ran = 0;
	}

	/* Ports of the page are those of this run. */
	here(text) {
		return PORTS.reduce(
			(done, port, i) =>
				done.replaceAll(`127.0.0.1:${port}`, `127.0.0.1:${this.ports[i]}`).replaceAll(
					`port: ${port}`,
					`port: ${this.ports[i]}`,
				),
			text,
		);
	}

	async serve(words) {
		this.frond = new Frond(this.ctx.frond, path.join(this.dir, 'data'), this.here(words).split(' '));
		this.frond.port = this.ports[0];
		// A file that is named lies where the reader is.
		this.frond.args = this.frond.args.map((arg) =>
			arg.endsWith('.ini') ? path.join(this.dir, arg) : arg,
		);
		await this.frond.start();
	}

	async line(line) {
		if (line.startsWith('npm install ')) {
			for (const name of line.split(' ').slice(2)) assert.ok(known[name], `${name} is unknown`);
			return;
		}
		if (line.startsWith('build/frond serve ')) {
			await this.serve(line.slice('build/frond serve '.length));
			return;
		}
		this.ran++;
		const words = line.replace('build/frond inspect', `frond inspect --store ${this.frond.store}`);
		this.printed += await runLine(this.here(words), this.dir, this.ctx.frond);
	}

	async block({ language, text, name }) {
		if (language === 'sh') {
			this.printed = '';
			for (const line of text.trim().split('\n')) await this.line(line);
		} else if (language === '') {
			assert.equal(this.printed, this.here(text));
			this.compared = (this.compared ?? 0) + 1;
		} else {
			assert.ok(name, `a file without a name:\n${text}`);
			fs.writeFileSync(path.join(this.dir, name), this.here(text));
		}
	}
}

const followed = (page) => async (_, ctx) => {
	const dir = fs.mkdtempSync(path.join(ctx.tmp, 'guide-'));
	const walk = new Walk(ctx, dir);
	walk.ports = [await freePort(), await freePort(), await freePort()];
	fs.symlinkSync(MODULES, path.join(dir, 'node_modules'));
	try {
		for (const block of blocksOf(fs.readFileSync(path.join(top, 'docs/guides', page), 'utf8')))
			await walk.block(block);
	} finally {
		await walk.frond?.stop();
	}
	assert.ok(walk.ran > 0 && walk.compared > 0, 'nothing was run and compared');
};

// The operator's is walked in a machine of its own (tests/bare).
const pages = fs.readdirSync(path.join(top, 'docs/guides')).filter((name) => name !== 'OPERATOR.md');

export default {
	name: 'guides',
	ownsServer: true,
	setup: async () => ({}),
	tests: Object.fromEntries(pages.map((page) => [`${page} does what it says`, followed(page)])),
};
