/*
 * Fauxton as `make fauxton` leaves it, in a real browser, for people who are no administrators: the list
 * of databases ends, and everybody can change the own password.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { openBrowser, withoutBrowser } from '../lib/browser.mjs';
import { startFrond } from '../lib/frond.mjs';
import { expectStatus } from '../lib/http.mjs';
import { eventually } from '../lib/util.mjs';

const TOP = path.join(path.dirname(fileURLToPath(import.meta.url)), '../../..');
const BUSY_MS = 240000; // a browser on a busy machine
const ADMIN = { headers: { Authorization: `Basic ${btoa('root:secret')}` } };

/* The pages, of the version that the Makefile names, mended. */
function fetchPages(dir) {
	const [, version] = fs.readFileSync(path.join(TOP, 'Makefile'), 'utf8').match(/^FAUXTON_VERSION = (\S+)$/m);
	execFileSync('npm', ['pack', '--silent', `fauxton@${version}`], { cwd: dir, stdio: 'pipe' });
	execFileSync('tar', ['xzf', `fauxton-${version}.tgz`], { cwd: dir });
	const pages = path.join(dir, 'package/dist/release');
	execFileSync('node', [path.join(TOP, 'scripts/mend-fauxton.js'), pages]);
	return pages;
}

async function setup(ctx) {
	const dir = fs.mkdtempSync(path.join(ctx.tmp, 'fauxton-'));
	const ini = path.join(dir, 'frond.ini');
	fs.writeFileSync(ini, '[couchdb]\nusers_db_security_editable = true\n');
	const frond = await startFrond(ctx, 'fauxton', [
		...['--config', ini, '--utils', fetchPages(dir), '--admin', 'root:secret'],
	]);
	const anna = { name: 'anna', password: 'apple', type: 'user', roles: [], kept: 1 };
	await expectStatus(201, 'PUT', `${frond.url}/_users`, undefined, ADMIN);
	await expectStatus(200, 'PUT', `${frond.url}/_users/_security`, {}, ADMIN);
	await expectStatus(201, 'PUT', `${frond.url}/_users/org.couchdb.user:anna`, anna, ADMIN);
	const context = await openBrowser(path.join(dir, 'profile'));
	const page = context.pages()[0] ?? (await context.newPage());
	page.setDefaultTimeout(BUSY_MS);
	return { frond, context, page, errors: collectErrors(page) };
}

function collectErrors(page) {
	const errors = [];
	page.on('pageerror', (error) => errors.push(error.message));
	return errors;
}

const textOf = (page) => page.evaluate(() => document.body.innerText.replace(/\s+/g, ' '));

async function logIn({ frond, page }, name, password) {
	await page.goto(`${frond.url}/_utils/#login`);
	await page.fill('#username', name);
	await page.fill('#password', password);
	await page.click('#submit');
	await eventually(async () => (await textOf(page)).includes('Log Out'), BUSY_MS);
}

const tests = {
	'the list of databases ends for an ordinary user': async (state) => {
		const { page, errors } = state;
		await logIn(state, 'anna', 'apple');
		await eventually(async () => (await textOf(page)).includes('of 0 databases') &&
			(await page.locator('.loading-lines').count()) === 0, BUSY_MS);
		assert.match(await textOf(page), /You are not a server admin/);
		assert.deepEqual(errors, []);
	},

	'an ordinary user changes the own password, and stays logged in': async ({ frond, page, errors }) => {
		const own = `${frond.url}/_users/org.couchdb.user:anna`;
		const as = (password) => ({ headers: { Authorization: `Basic ${btoa(`anna:${password}`)}` } });
		await page.goto(`${frond.url}/_utils/#changePassword`);
		await page.fill('#change-password #password', 'pear');
		await page.fill('#change-password #password-confirm', 'pear');
		await page.click('#change-password button');
		await eventually(
			async () => (await fetch(`${frond.url}/_session`, as('pear'))).status === 200,
			BUSY_MS,
		);
		assert.equal((await expectStatus(200, 'GET', own, undefined, as('pear'))).kept, 1);
		await expectStatus(401, 'GET', own, undefined, as('apple'));
		await eventually(
			() => page.evaluate(async () => (await (await fetch('/_session')).json()).userCtx.name === 'anna'),
			BUSY_MS,
		);
		assert.deepEqual(errors, []);
	},
};

async function teardown({ frond, context }) {
	await context.close();
	await frond.stop();
}

export default { name: 'fauxton', ownsServer: true, skip: withoutBrowser, setup, tests, teardown };
