// Single keys and pairs of them ("g h"). A reader may switch them off.
const table = new Map();
let before = '';

export const keys = {
  // add names what a key does; the last one to say so wins.
  add(key, act) { table.set(key, act); },

  // press runs what stands for an event, alone or after the key before it.
  press(e) {
    if (localStorage.getItem('keysOff') === '1') return;
    const act = table.get(before + ' ' + e.key) || table.get(e.key);
    before = e.key;
    if (act) { before = ''; e.preventDefault(); act(e); }
  },
};
