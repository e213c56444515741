/*
 * HTTP without a client library between: no retries, no pooling but keep-alive, an error for every
 * answer that did not come whole. What the crash tests count as acknowledged is what arrives here.
 */
import http from 'node:http';

const REQUEST_TIMEOUT_MS = 30000;

/*
 * → { status, headers, text, json }, json being undefined where the body is none. `body`: an object
 * to send as JSON, or a string or Buffer to send as it is.
 */
export function request(method, url, body, { headers = {}, agent, timeoutMs } = {}) {
	const payload =
		body === undefined || typeof body === 'string' || Buffer.isBuffer(body)
			? body
			: JSON.stringify(body);

	return new Promise((resolve, reject) => {
		const req = http.request(
			url,
			{
				method,
				agent: agent ?? false,
				timeout: timeoutMs ?? REQUEST_TIMEOUT_MS,
				headers: {
					...(payload === undefined
						? {}
						: {
								'Content-Type': 'application/json',
								'Content-Length':
									Buffer.byteLength(payload),
							}),
					...headers,
				},
			},
			(res) => {
				const chunks = [];
				res.on('data', (chunk) => chunks.push(chunk));
				res.on('error', reject);
				res.on('end', () => {
					if (!res.complete)
						return reject(new Error('the answer was cut off'));
					const text = Buffer.concat(chunks).toString();
					let json;
					try {
						json = JSON.parse(text);
					} catch {
						json = undefined;
					}
					return resolve({
						status: res.statusCode,
						headers: res.headers,
						text,
						json,
					});
				});
			},
		);
		req.on('timeout', () => req.destroy(new Error(`no answer to ${method} ${url}`)));
		req.on('error', reject);
		req.end(payload);
	});
}

/* The same, where anything but one of the expected statuses is an error. */
export async function expectStatus(expected, method, url, body, options) {
	const answer = await request(method, url, body, options);
	if (![expected].flat().includes(answer.status))
		throw new Error(
			`${method} ${url}: ${answer.status} instead of ${expected}: ${answer.text.slice(
				0,
				500,
			)}`,
		);
	return answer.json;
}
