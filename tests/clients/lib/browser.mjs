/*
 * A real browser: the Chromium of the system, or the one that $CHROMIUM names, without a window.
 * It is driven by playwright-core, which brings no browser of its own.
 */
import { execFileSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { chromium } from 'playwright-core';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];
const ACTION_TIMEOUT_MS = 20000;

/* Its path, or undefined where there is none. */
export function findBrowser() {
	if (process.env.CHROMIUM) return process.env.CHROMIUM;
	for (const dir of (process.env.PATH ?? '').split(':'))
		for (const name of NAMES) {
			const file = path.join(dir, name);
			if (fs.existsSync(file)) return file;
		}
	return undefined;
}

/* Why a suite that needs a browser cannot run, or undefined. */
export const withoutBrowser = () =>
	findBrowser() ? undefined : 'no Chromium on this machine (CHROMIUM names one elsewhere)';

/* A certificate for the loopback, signed by itself: → { cert, key, spki }, paths and a hash. */
export function makeCertificate(dir) {
	const cert = path.join(dir, 'cert.pem'),
		key = path.join(dir, 'cert.key');
	execFileSync(
		'openssl',
		[
			...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'],
			...['-nodes', '-days', '2', '-subj', '/CN=localhost'],
			...['-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'],
			...['-keyout', key, '-out', cert],
		],
		{ stdio: 'pipe' },
	);
	const { publicKey } = new crypto.X509Certificate(fs.readFileSync(cert));
	const der = publicKey.export({ type: 'spki', format: 'der' });
	return { cert, key, spki: crypto.createHash('sha256').update(der).digest('base64') };
}

/*
 * A browser that takes certificates of that one key without asking, and no others. `profile`: a
 * directory, empty at first; what the browser keeps is there, databases and cookies.
 */
export async function openBrowser(profile, { spki, ...options } = {}) {
	const context = await chromium.launchPersistentContext(profile, {
		executablePath: findBrowser(),
		headless: true,
		args: [
			'--no-proxy-server',
			...(process.getuid() === 0 ? ['--no-sandbox'] : []),
			...(spki ? [`--ignore-certificate-errors-spki-list=${spki}`] : []),
		],
		...options,
	});
	context.setDefaultTimeout(ACTION_TIMEOUT_MS);
	return context;
}
