// The panel of a name: where it is defined and used. It opens by r with a word
// selected or the cursor on it, by a double click with Alt, and from the outline. A
// click goes to the definition, where there is one; on the definition itself it opens the panel.
// Without a mouse nothing is selected: r asks for a name then. The panel stays when one goes
// from it to another file.
import { keys } from './keys.js';
import { fetchPart, parse, say } from './part.js';

const root = document.querySelector('[data-names]'), places = '.uses a';
let panel = null, back = null, shown = ''; // the address of what the panel shows

function make() {
  panel = document.createElement('dialog');
  panel.id = 'panel';
  panel.setAttribute('aria-label', 'Definitions and references');
  panel.addEventListener('click', e => {
    if (e.target.closest('[data-shut]')) shut();
    if (e.target.closest(places)) sessionStorage.setItem('panel', shown);
    const scope = e.target.closest('a[data-scope]');
    if (scope && !e.ctrlKey && !e.metaKey) { e.preventDefault(); fill(scope.getAttribute('href')); }
  });
  document.body.append(panel);
}

// go leads to the only definition of a name; one is there already where the address is
// its own.
function go(from) {
  const defined = from.querySelectorAll('#names .uses:first-of-type a');
  if (defined.length !== 1 || !/^1 definition/.test(from.querySelector('#names h2').textContent)) return false;
  const to = new URL(defined[0].getAttribute('href'), location); // a parsed page has no address of its own
  if (to.pathname + to.hash === location.pathname + location.hash) return false;
  location.href = to.href;
  return true;
}

async function fill(url, direct, beside) {
  try {
    const from = parse(await fetchPart(url, 'names'));
    if (direct && go(from)) return;
    panel.replaceChildren(...from.querySelector('#names').childNodes);
    panel.querySelector('[data-shut]').hidden = false;
    if (!panel.open) panel.show();
    shown = url;
    current();
    if (!beside) panel.querySelector(places)?.focus();
    document.documentElement.dataset.ready = 'names:' + url;
    say(panel.innerText.slice(0, 100));
  } catch { say('The name could not be looked up.'); }
}

// current marks the place in the panel that the page shows.
function current() {
  for (const a of panel?.querySelectorAll(places) || []) {
    if (a.pathname + a.hash !== location.pathname + location.hash) a.removeAttribute('aria-current');
    else { a.setAttribute('aria-current', 'location'); a.scrollIntoView({ block: 'nearest' }); }
  }
}

// show opens the panel for a name, or goes directly to its definition.
export function show(name, direct) {
  if (!name || name.length > 200) return;
  if (!panel) make();
  back = document.activeElement;
  fill(root.dataset.names + '?' + new URLSearchParams({ name }), direct);
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

// under is the name at a point of the window and where it stands, null where there
// is none: comments, texts, numbers and words of the language have no card.
export function under(x, y) {
  const p = document.caretPositionFromPoint ? document.caretPositionFromPoint(x, y) : document.caretRangeFromPoint(x, y);
  const node = p && (p.offsetNode || p.startContainer);
  if (!node || node.nodeType !== Node.TEXT_NODE) return null;
  const inside = node.parentElement;
  if (!inside.closest('#code .text') || inside.closest('i.c, i.s, i.n, i.k, .hid, .cut')) return null;

  const range = document.createRange();
  const [from, to] = around(node.data, p.offsetNode ? p.offset : p.startOffset);
  const name = node.data.slice(from, to);
  if (to - from < 2 || to - from > 200 || /^\p{N}/u.test(name)) return null;
  range.setStart(node, from);
  range.setEnd(node, to);
  const box = range.getBoundingClientRect();
  return x >= box.left && x <= box.right && y >= box.top && y <= box.bottom ? { name, box } : null;
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
  const open = sessionStorage.getItem('panel');
  sessionStorage.removeItem('panel');
  if (open) { make(); fill(open, false, true); }
  addEventListener('hashchange', () => { sessionStorage.removeItem('panel'); current(); });
  keys.add('r', () => { const name = word(); if (name) show(name); else if (form) ask(); });
  // A click on a name goes to its definition, unless it begins a selection.
  let clicked = 0;
  document.addEventListener('click', e => {
    clearTimeout(clicked);
    if (e.detail !== 1 || e.button || e.ctrlKey || e.metaKey || e.shiftKey || e.altKey || e.target.closest('a, button') || !getSelection().isCollapsed) return;
    const at = under(e.clientX, e.clientY);
    if (at) clicked = setTimeout(() => { if (getSelection().isCollapsed) show(at.name, true); }, 250);
  });
  document.addEventListener('dblclick', e => { if (e.altKey && e.target.closest('#code .text')) show(word()); });
  document.addEventListener('click', e => {
    const link = e.target.closest('a[data-name]');
    if (link && !e.ctrlKey && !e.metaKey) { e.preventDefault(); show(link.dataset.name); }
  });
  document.addEventListener('keydown', e => { if (e.key === 'Escape' && panel && panel.open) shut(); });
}
