// Completion in the search box: a list below it that is walked by arrows, taken
// by Tab or Enter, closed by Esc. The focus stays in the box.
import { fetchPart, parse } from './part.js';

const box = document.getElementById('query'), form = document.getElementById('search');
let list = null, at = -1, running = null, timer = 0, quiet = false;
let none = ''; // a text whose last word nothing can follow: more letters of it find nothing either
let base = ''; // the text that the list in sight was asked for
let coming = false, waiting = []; // a list for what stands in the box is on its way, and keys that are for it

box.setAttribute('role', 'combobox');
box.setAttribute('aria-autocomplete', 'list');
box.setAttribute('aria-haspopup', 'listbox');
box.setAttribute('aria-controls', 'suggest');
box.setAttribute('aria-expanded', 'false');

// open reports whether the list is shown.
export const open = () => list !== null;

// close takes the list away, and keeps an answer that comes late from opening it.
export function close() {
  clearTimeout(timer);
  if (running) running.abort();
  coming = false;
  waiting = [];
  if (list) list.remove();
  list = null;
  at = -1;
  box.setAttribute('aria-expanded', 'false');
  box.removeAttribute('aria-activedescendant');
}

async function ask() {
  // A longer text was pasted: nothing completes it, and the server refuses it.
  if (box.value.length > 1000) return close();
  clearTimeout(timer);
  if (running) running.abort();
  coming = true;
  const mine = running = new AbortController(), text = box.value, place = box.selectionStart;
  const cursor = new TextEncoder().encode(text.slice(0, place)).length;
  let next = null;
  try {
    next = parse(await fetchPart('/suggest?' + new URLSearchParams({ query: text, cursor }), 'suggest', mine.signal)).querySelector('ul');
  } catch { /* without suggestions */ }
  if (mine.signal.aborted || text !== box.value || document.activeElement !== box) return;
  none = next && !next.children.length && place === text.length && /\w{3}$/.test(text) ? text : '';
  show(next);
}

// show puts a list in the place of the one before, and presses what was pressed
// for it.
function show(next) {
  const keys = waiting;
  close();
  if (next && next.children.length) {
    list = next;
    base = box.value;
    form.append(list);
    box.setAttribute('aria-expanded', 'true');
  }
  for (const key of keys) {
    if (list) walk(key);
    else if (key === 'Enter') { form.requestSubmit(); return; }
  }
}

function choose(i) {
  if (at >= 0) list.children[at].setAttribute('aria-selected', 'false');
  at = i;
  if (at < 0) { box.removeAttribute('aria-activedescendant'); return; }
  const option = list.children[at];
  option.setAttribute('aria-selected', 'true');
  option.scrollIntoView({ block: 'nearest' });
  box.setAttribute('aria-activedescendant', option.id);
}

function take(option) {
  box.value = option.dataset.query;
  const place = Number(option.dataset.at);
  box.setSelectionRange(place, place);
  close();
  quiet = box.value[place - 1] === ' ';
  box.dispatchEvent(new Event('input', { bubbles: true }));
}

// walk does what a key does to the list, and reports whether it does anything.
function walk(key) {
  const n = list.children.length;
  if (key === 'ArrowDown') choose(at + 1 < n ? at + 1 : -1);
  else if (key === 'ArrowUp') choose(at < 0 ? n - 1 : at - 1);
  else if ((key === 'Enter' || key === 'Tab') && at >= 0) take(list.children[at]);
  else return false;
  return true;
}

// fits reports whether each entry of the list has the letters that were typed since, so that it
// would come again as it is.
function fits() {
  const text = box.value, word = text.match(/[\w.\/-]*$/)[0].toLowerCase();
  return list && box.selectionStart === text.length && text.startsWith(base) && word.length > text.length - base.length
    && [...list.children].every(li => li.firstElementChild.textContent.toLowerCase().includes(word));
}

// A list of what was typed before stays in sight until the next one comes, but keys
// mean the next one.
box.addEventListener('input', () => {
  clearTimeout(timer);
  if (quiet || !box.value || none && box.value.startsWith(none) && /^\w*$/.test(box.value.slice(none.length))) { quiet = false; close(); return; }
  if (list) choose(-1);
  waiting = [];
  coming = !fits();
  if (running) running.abort();
  if (!coming) return;
  timer = setTimeout(ask, 100);
});
box.addEventListener('keydown', e => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.key === 'Shift') return;
  const arrow = e.key === 'ArrowDown' || e.key === 'ArrowUp';
  if (e.key === 'Escape' && (list || waiting.length)) { e.stopImmediatePropagation(); e.preventDefault(); close(); return; }
  if (e.key === 'Escape' && coming) { e.preventDefault(); close(); return; } // the list is on its way
  if (coming && (arrow || waiting.length && (e.key === 'Enter' || e.key === 'Tab' && !e.shiftKey))) {
    e.preventDefault();
    if (!waiting.length) ask();
    waiting.push(e.key);
    return;
  }
  if (!list) {
    if (e.key === 'ArrowDown') { e.preventDefault(); ask(); }
    else if (e.key === 'Enter') close();
    return;
  }
  if (!(e.key === 'Tab' && e.shiftKey) && walk(e.key)) e.preventDefault();
  else if (e.key === 'Enter') close();
}, true); // before what the key means to results
form.addEventListener('mousedown', e => {
  const option = e.target.closest('#suggest li');
  if (option) { e.preventDefault(); take(option); }
});
form.addEventListener('submit', close);
box.addEventListener('blur', () => close());
if (document.activeElement === box && box.value !== box.defaultValue) ask(); // letters were faster than this script
