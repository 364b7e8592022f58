// Completion in the search box: a list below it that is walked by arrows, taken
// by Tab or Enter, closed by Esc. The focus stays in the box.
import { fetchPart, parse } from './part.js';

const box = document.getElementById('query'), form = document.getElementById('search');
let list = null, at = -1, running = null, timer = 0, quiet = false;

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
  if (list) list.remove();
  list = null;
  at = -1;
  box.setAttribute('aria-expanded', 'false');
  box.removeAttribute('aria-activedescendant');
}

async function ask() {
  if (running) running.abort();
  const mine = running = new AbortController(), text = box.value, place = box.selectionStart;
  const cursor = new TextEncoder().encode(text.slice(0, place)).length;
  try {
    const html = await fetchPart('/suggest?' + new URLSearchParams({ query: text, cursor }), 'suggest', mine.signal);
    if (mine.signal.aborted || text !== box.value || document.activeElement !== box) return;
    show(parse(html).querySelector('ul'));
  } catch { /* without suggestions */ }
}

function show(next) {
  const before = list && at >= 0 ? list.children[at].dataset.query : null;
  close();
  if (!next || !next.children.length) return;
  list = next;
  form.append(list);
  box.setAttribute('aria-expanded', 'true');
  if (before) choose([...list.children].findIndex(e => e.dataset.query === before));
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

box.addEventListener('input', () => {
  clearTimeout(timer);
  if (quiet || !box.value) { quiet = false; close(); return; }
  timer = setTimeout(ask, 60);
});
box.addEventListener('keydown', e => {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const n = list ? list.children.length : 0;
  if (e.key === 'ArrowDown' && !n) { e.preventDefault(); ask(); return; }
  if (!n) { if (e.key === 'Enter') close(); return; }
  if (e.key === 'ArrowDown') choose(at + 1 < n ? at + 1 : -1);
  else if (e.key === 'ArrowUp') choose(at < 0 ? n - 1 : at - 1);
  else if (e.key === 'Enter' && at >= 0) take(list.children[at]);
  else if (e.key === 'Tab' && !e.shiftKey && at >= 0) take(list.children[at]);
  else if (e.key === 'Escape') { e.stopImmediatePropagation(); close(); }
  else { if (e.key === 'Enter') close(); return; }
  e.preventDefault();
});
form.addEventListener('mousedown', e => {
  const option = e.target.closest('#suggest li');
  if (option) { e.preventDefault(); take(option); }
});
form.addEventListener('submit', close);
box.addEventListener('blur', () => close());
