// Single keys and pairs of them ("g h"). A reader may switch them off, and have
// others in their place.
const table = new Map();
let before = '';

// own is the keys that the reader has instead of others: {j: 'd'} makes d what j is.
export function own() {
  try { return Object.fromEntries(Object.entries(JSON.parse(localStorage.getItem('keys') || '{}')).filter(([, to]) => typeof to === 'string')); } catch { return {}; }
}

// meant is what a key that was pressed stands for, '' where it stands for nothing.
function meant(key) {
  const mine = own();
  const from = Object.keys(mine).find(k => mine[k] === key);
  return from || (key in mine ? '' : key);
}

export const keys = {
  // add names what a key does; the last one to say so wins.
  add(key, act) { table.set(key, act); },

  // known reports whether a key does something by now, alone or before another.
  known(key) {
    const is = meant(key);
    return table.has(before + ' ' + is) || [...table.keys()].some(k => k.split(' ')[0] === is);
  },

  // press runs what stands for an event, alone or after the key before it.
  press(e) {
    if (localStorage.getItem('keysOff') === '1') return;
    const key = meant(e.key), act = table.get(before + ' ' + key) || table.get(key);
    before = key;
    if (act) { before = ''; e.preventDefault(); act(e); }
  },
};

// Keys that are pressed before there is anything to take them: while the scripts
// of a page are on their way, and while a dialog that was asked for is. They are
// held, and pressed again when it is there.

const most = 100; // keys that are held
const held = [];
let booting = true, waits = 0;

// field is where what is typed goes, null where keys are orders.
export function field(e) {
  const inside = e && e.closest && e.closest('input, textarea, select, [contenteditable]');
  return inside && inside.checkVisibility() ? inside : null; // one in a dialog that has closed may have the focus for a moment more
}

// until holds keys until what is waited for has come, or has failed.
export function until(promise) {
  waits++;
  const over = () => { waits--; release(); };
  promise.then(over, over);
}

// hold keeps a key for later, and reports whether it did. While a page is on its
// way fields take what is typed, and keys that are known already act at once: the
// box is there before results.
export function hold(e) {
  if (!waits && (!booting || field(e.target) || !held.length && keys.known(e.key))) return false;
  const taken = e.key.length === 1 && e.key !== ' ' || waits && [' ', 'Enter', 'Backspace'].includes(e.key);
  if (!taken) return false;
  if (held.length < most) held.push(e.key);
  e.preventDefault();
  return true;
}

// release presses the keys that were held. One of them may open a field: those
// after it are typed there.
function release() {
  if (booting || waits) return;
  for (const key of held.splice(0)) {
    const to = field(document.activeElement);
    if (!to) { keys.press(new KeyboardEvent('keydown', { key })); continue; }
    if (key === 'Enter') { to.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true })); continue; }
    if (to.tagName === 'SELECT') continue;
    const from = to.selectionStart, end = to.selectionEnd;
    to.setRangeText(key === 'Backspace' ? '' : key, key === 'Backspace' && from === end ? Math.max(0, from - 1) : from, end, 'end');
    to.dispatchEvent(new Event('input', { bubbles: true }));
  }
}

// The modules of a page have all run when the document says so. A script that
// comes later than that has missed it.
const done = performance.getEntriesByType('navigation')[0];
export const booted = done && done.domContentLoadedEventStart > 0
  ? Promise.resolve()
  : new Promise(resolve => document.addEventListener('DOMContentLoaded', resolve, { once: true }));
booted.then(() => {
  // The browser moves the focus only when it draws: what is pressed before that would be lost.
  const first = document.querySelector('[autofocus]');
  if (first && document.activeElement === document.body) first.focus({ preventScroll: true });
  booting = false;
  release();
});
