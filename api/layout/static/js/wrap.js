// Long lines go on in the next row: w says so, and this browser keeps it.
import { keys } from './keys.js';
import { say } from './part.js';

const most = 5000; // lines: of a longer file each line would be an element too many
const state = document.documentElement.dataset;

const blocks = () => document.querySelectorAll('#code .block');
const fits = () => [...blocks()].every(b => Number(b.dataset.first) <= most);

// wrapped reports whether long lines go on in the next row.
export const wrapped = () => state.wrap === '1';

// rows makes an element of each line of a block, since its number has to stand
// where it begins. A colour never goes over the end of a line.
export function rows(block) {
  const pre = block.querySelector('.text');
  if (!wrapped() || pre.querySelector('.line')) return;
  let n = Number(block.dataset.first), row;
  const all = [], begin = () => { row = document.createElement('div'); row.className = 'line'; row.dataset.n = n++; all.push(row); };
  begin();
  for (const node of [...pre.childNodes]) {
    if (node.nodeType !== Node.TEXT_NODE) { row.append(node); continue; }
    node.data.split('\n').forEach((part, i) => {
      if (i) { row.append('\n'); begin(); }
      if (part) row.append(part);
    });
  }
  if (!row.firstChild) all.pop();
  pre.replaceChildren(...all);
}

function plain(block) {
  const pre = block.querySelector('.text');
  pre.replaceChildren(...[...pre.querySelectorAll('.line')].flatMap(l => [...l.childNodes]));
  pre.normalize();
}

function set(on) {
  if (on && !fits()) { say('A file of so many lines is not wrapped.'); return; }
  if (on) state.wrap = '1'; else delete state.wrap;
  for (const b of blocks()) if (on) rows(b); else plain(b);
}

export function toggle() {
  localStorage.setItem('wrap', wrapped() ? '' : '1');
  set(!wrapped());
}
keys.add('w', toggle);
if (localStorage.getItem('wrap') === '1') set(true);
