/** Memory that messages needed goes back to the operating system after the rush: by itself V8 keeps what it once had. */
import v8 from 'node:v8';
import vm from 'node:vm';

const LOOK_MS = 5000;
const BUSY_SHARE = 0.1;

v8.setFlagsFromString('--expose-gc');
const collect = vm.runInNewContext('gc');

/** Looks at the process's CPU time, and collects once when a busy time is over. */
export function giveMemoryBack() {
  let before = process.cpuUsage();
  let wasBusy = false;
  setInterval(() => {
    const { user, system } = process.cpuUsage(before);
    const busy = (user + system) / 1000 > BUSY_SHARE * LOOK_MS;
    // Only this kind of collection also gives up the pages that V8 holds ready.
    if (wasBusy && !busy) collect({ execution: 'sync', flavor: 'last-resort' });
    wasBusy = busy;
    before = process.cpuUsage();
  }, LOOK_MS).unref();
}
