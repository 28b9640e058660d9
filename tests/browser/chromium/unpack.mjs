// Unpacks the browser beside its package, with the libraries that a machine without any browser may lack.
import { mkdirSync } from 'node:fs';
import path from 'node:path';

const folder = path.join(import.meta.dirname, 'node_modules/.unpacked');
mkdirSync(folder, { recursive: true });
process.env.TMPDIR = folder;
process.env.AWS_EXECUTION_ENV = 'nodejs22.x'; // there these libraries are missing too
const { default: chromium } = await import('@sparticuz/chromium');
await chromium.executablePath();
