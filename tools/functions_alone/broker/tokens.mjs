/** The tokens of clients: shared access signatures, as an SDK makes them of a connection string. */
import { createHmac, timingSafeEqual } from 'node:crypto';

/** Those that Microsoft's emulator is documented with: no secret, since nobody else can reach either of them. */
const KEY_NAME = 'RootManageSharedAccessKey';
const KEY = 'SAS_KEY_VALUE';
const PREFIX = 'SharedAccessSignature ';

/** Why a token is refused; null when it is good. */
export function whyRefused(token, now) {
  if (typeof token !== 'string' || !token.startsWith(PREFIX)) return 'The token is no shared access signature.';
  const fields = new Map(token.slice(PREFIX.length).split('&').map(asPair));
  const { sr: resource, sig: signature, se: expiry, skn: name } = Object.fromEntries(fields);
  if (name !== KEY_NAME) return `There is no key of the name '${name}': the broker has ${KEY_NAME}.`;
  if (!(Number(expiry) * 1000 > now)) return 'The token has expired.';
  const expected = createHmac('sha256', KEY).update(`${resource}\n${expiry}`).digest();
  const given = Buffer.from(decoded(signature ?? ''), 'base64');
  const isSigned = given.length === expected.length && timingSafeEqual(given, expected);
  return isSigned ? null : `The signature is not that of the key ${KEY_NAME}, which is ${KEY} here.`;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
}

/** The values stay encoded: so they were signed. */
function asPair(field) {
  const at = field.indexOf('=');
  return [field.slice(0, at), field.slice(at + 1)];
}
