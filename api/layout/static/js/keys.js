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
