// The panel of a name: where it is defined and used. It opens by r with a word
// selected or the cursor on it, by a double click with Alt, and from the outline.
// Without a mouse nothing is selected: r asks for a name then.
import { keys } from './keys.js';
import { fetchPart, parse, say } from './part.js';

const root = document.querySelector('[data-names]');
let panel = null, back = null;

function make() {
  panel = document.createElement('dialog');
  panel.id = 'panel';
  panel.setAttribute('aria-label', 'Definitions and references');
  panel.addEventListener('click', e => {
    const scope = e.target.closest('a[data-scope]');
    if (scope && !e.ctrlKey && !e.metaKey) { e.preventDefault(); fill(scope.getAttribute('href')); }
  });
  document.body.append(panel);
}

async function fill(url) {
  try {
    const from = parse(await fetchPart(url, 'names'));
    panel.replaceChildren(...from.querySelector('#names').childNodes);
    if (!panel.open) panel.show();
    const first = panel.querySelector('.named a') || panel.querySelector('a');
    if (first) first.focus();
    document.documentElement.dataset.ready = 'names:' + url;
    say(panel.innerText.slice(0, 100));
  } catch { say('The name could not be looked up.'); }
}

// show opens the panel for a name.
export function show(name) {
  if (!name || name.length > 200) return;
  if (!panel) make();
  back = document.activeElement;
  fill(root.dataset.names + '?' + new URLSearchParams({ name }));
}

// shut gives the focus back at once, not when the browser tells that it is closed: a
// key that is pressed meanwhile may have moved it by then.
function shut() {
  panel.close();
  if (back) back.focus();
}

// word is what is selected, or the word at the caret.
function word() {
  const s = getSelection(), picked = String(s).trim();
  if (picked) return /\s/.test(picked) ? '' : picked;
  const node = s.anchorNode;
  if (!node || node.nodeType !== Node.TEXT_NODE || !node.parentElement.closest('#code .text')) return '';
  const [from, to] = around(node.data, s.anchorOffset);
  return node.data.slice(from, to);
}

// around is where the word at a place of a text begins and ends.
export function around(text, at) {
  const before = text.slice(0, at).match(/[\p{L}\p{N}_$]*$/u)[0], after = text.slice(at).match(/^[\p{L}\p{N}_$]*/u)[0];
  return [at - before.length, at + after.length];
}

// What r asks with: a box that knows the names of the text.
const form = document.getElementById('lookup'), most = 1000, far = 500000; // names that are offered, and letters that are read for them

function ask() {
  const known = new Set();
  for (const [name] of (document.getElementById('code')?.textContent || '').slice(0, far).matchAll(/[\p{L}_$][\p{L}\p{N}_$]+/gu)) {
    if (known.add(name).size === most) break;
  }
  document.getElementById('namesHere').replaceChildren(...[...known].map(name => new Option(name, name)));
  form.hidden = false;
  form.querySelector('input').select();
  form.querySelector('input').focus();
}

// asked ends that, with the focus in the text.
function asked() {
  form.hidden = true;
  (document.getElementById('code') || document.getElementById('main')).focus({ preventScroll: true });
}

if (form) {
  form.addEventListener('submit', e => { e.preventDefault(); asked(); show(form.querySelector('input').value.trim()); });
  form.addEventListener('keydown', e => { if (e.key === 'Escape') asked(); });
}

if (root) {
  keys.add('r', () => { const name = word(); if (name) show(name); else if (form) ask(); });
  document.addEventListener('dblclick', e => { if (e.altKey && e.target.closest('#code .text')) show(word()); });
  document.addEventListener('click', e => {
    const link = e.target.closest('a[data-name]');
    if (link && !e.ctrlKey && !e.metaKey) { e.preventDefault(); show(link.dataset.name); }
  });
  document.addEventListener('keydown', e => { if (e.key === 'Escape' && panel && panel.open) shut(); });
}
