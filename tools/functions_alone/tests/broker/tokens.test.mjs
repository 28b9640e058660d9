/** Which tokens of clients are good. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import test from 'node:test';

import { whyRefused } from '../../broker/tokens.mjs';

const NOW = Date.UTC(2026, 10, 25);
const RESOURCE = encodeURIComponent('sb://localhost/plain');

function token({ name = 'RootManageSharedAccessKey', key = 'SAS_KEY_VALUE', expiry = NOW / 1000 + 60, resource = RESOURCE } = {}) {
  const signature = createHmac('sha256', key).update(`${RESOURCE}\n${expiry}`).digest('base64');
  return `SharedAccessSignature sr=${resource}&sig=${encodeURIComponent(signature)}&se=${expiry}&skn=${name}`;
}

test('a token that the key has signed is good until it expires', () => {
  assert.equal(whyRefused(token(), NOW), null);
  assert.equal(whyRefused(token({ expiry: NOW / 1000 + 1 }), NOW + 999), null);
  assert.match(whyRefused(token({ expiry: NOW / 1000 + 1 }), NOW + 1000), /expired/);
});

const WRONG = {
  'of another key': [token({ key: 'another' }), /signature/],
  'for another resource than it was signed for': [token({ resource: 'sb%3A%2F%2Felsewhere' }), /signature/],
  'without a signature': [`SharedAccessSignature sr=${RESOURCE}&se=9999999999&skn=RootManageSharedAccessKey`, /signature/],
  'with half an escape in it': [token().replace(/sig=[^&]*/, 'sig=%E0%A4%A'), /signature/],
  'of a key that the broker does not have': [token({ name: 'Listen' }), /no key of the name 'Listen'/],
  'that never expires': [token({ expiry: 'never' }), /expired/],
  'of another kind': ['eyJhbGciOiJub25lIn0.e30.', /no shared access signature/],
  'that is no text': [undefined, /no shared access signature/],
};

for (const [name, [given, why]] of Object.entries(WRONG)) {
  test(`a token ${name} is refused with the reason`, () => assert.match(whyRefused(given, NOW), why));
}
