// Keeps #live as the node has it, without moving what did not change: the same
// page is asked for again, and only elements that differ are touched. It rests
// while nobody looks, and says how old the page is when an answer is late.
import { fetchPart, parse } from './part.js';

const every = 5000, late = 15000;
const live = document.getElementById('live'), age = document.getElementById('age');
let fresh = Date.now(), timer = 0, seq = 0;

// same makes an element like another one, and keeps what the reader opened.
function same(to, from) {
  if (to.isEqualNode(from)) return;
  if (to.nodeType !== from.nodeType || to.nodeName !== from.nodeName || to.nodeType !== Node.ELEMENT_NODE) { to.replaceWith(from.cloneNode(true)); return; }
  for (const a of [...to.attributes]) if (!from.hasAttribute(a.name) && a.name !== 'open') to.removeAttribute(a.name);
  for (const a of from.attributes) if (to.getAttribute(a.name) !== a.value) to.setAttribute(a.name, a.value);
  if (from.querySelector(':scope > [data-key]')) rows(to, from);
  else order(to, [...from.childNodes], i => to.childNodes[i]);
}

// rows pairs children by their keys, so that a new row moves no other's focus.
function rows(to, from) {
  const by = new Map([...to.children].map(c => [c.dataset.key, c]));
  order(to, [...from.children], (i, c) => by.get(c.dataset.key));
}

// order makes the children of an element those that are wanted.
function order(to, wanted, old) {
  const kept = wanted.map((c, i) => old(i, c));
  const keep = new Set(kept.filter(k => k));
  for (const c of [...to.childNodes]) if (!keep.has(c)) c.remove();
  wanted.forEach((c, i) => {
    const at = to.childNodes[i];
    if (!kept[i]) { to.insertBefore(c.cloneNode(true), at || null); return; }
    if (at !== kept[i]) to.insertBefore(kept[i], at || null);
    same(kept[i], c);
  });
}

async function refresh() {
  timer = 0;
  try {
    const next = parse(await fetchPart(location.href, 'live')).querySelector('#live');
    if (next) {
      same(live, next);
      fresh = Date.now();
      document.documentElement.dataset.live = String(++seq);
    }
  } catch { /* the age says it */ }
  tell();
  plan();
}

// tell says how old the page is, where it is too old.
function tell() {
  const old = Date.now() - fresh;
  age.textContent = old > late ? 'not refreshed for ' + Math.round(old / 1000) + ' s' : '';
}

function plan() {
  if (!timer && !document.hidden) timer = setTimeout(refresh, every);
}

document.addEventListener('visibilitychange', () => {
  clearTimeout(timer);
  timer = 0;
  if (!document.hidden) refresh();
});
if (live && age) plan();
