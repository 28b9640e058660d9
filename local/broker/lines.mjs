/** Reads a file of lines that may be longer than a string can be. */
import { closeSync, openSync, readSync } from 'node:fs';

const CHUNK_BYTES = 1024 * 1024;
const LINE_END = 0x0a;

/** The lines with their numbers, from 1 on. A last one without its end, whose writing was cut short, is left out. */
export function* readLines(path) {
  const file = openSync(path, 'r');
  try {
    let number = 0;
    let rest = Buffer.alloc(0);
    for (let chunk = readChunk(file); chunk.length > 0; chunk = readChunk(file)) {
      let start = 0;
      const bytes = Buffer.concat([rest, chunk]);
      for (let end = bytes.indexOf(LINE_END); end >= 0; end = bytes.indexOf(LINE_END, start)) {
        yield [number += 1, bytes.toString('utf8', start, end)];
        start = end + 1;
      }
      rest = bytes.subarray(start);
    }
  } finally {
    closeSync(file);
  }
}

function readChunk(file) {
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  return chunk.subarray(0, readSync(file, chunk));
}
