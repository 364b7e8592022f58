// The lines that a link of an answer leads to, in a card beside it: under a resting
// mouse, and while the keyboard is at the link. Esc takes it away.
import { fetchPart, parse } from './part.js';

const rest = 250, shown = 12; // milliseconds; lines
const links = '#chat a.cite, #chat .sources a';
const place = new CSSStyleSheet();
const known = new Map(); // of addresses, to their lines
let card = null, at = null, timer = 0;

function make() {
  card = document.createElement('div');
  card.id = 'card';
  card.className = 'code';
  card.setAttribute('role', 'dialog');
  card.setAttribute('popover', 'manual');
  card.addEventListener('pointerleave', close);
  document.body.append(card);
  document.adoptedStyleSheets.push(place);
}

async function show(link) {
  const line = +(/^#L(\d+)/.exec(link.hash) || [0, 1])[1], url = link.pathname + '?first=' + line;
  try {
    if (!known.has(url)) {
      const block = parse(await fetchPart(url, 'block')).querySelector('pre');
      known.set(url, [...block.childNodes]);
    }
  } catch { return; /* no card */ }
  if (at !== link) return;
  if (!card) make();
  const pre = document.createElement('pre');
  pre.className = 'text';
  let lines = 0;
  for (const node of known.get(url)) {
    if (lines >= shown) break;
    lines += node.textContent.split('\n').length - 1;
    pre.append(node.cloneNode(true));
  }
  card.setAttribute('aria-label', 'Lines from ' + line);
  card.replaceChildren(pre);
  card.showPopover();
  const box = link.getBoundingClientRect(), size = card.getBoundingClientRect();
  const left = Math.max(4, Math.min(box.left, document.documentElement.clientWidth - size.width - 4));
  const top = box.bottom + size.height < innerHeight ? box.bottom : Math.max(0, box.top - size.height);
  place.replaceSync(`#card { left: ${left}px; top: ${top}px; }`);
}

function close() {
  clearTimeout(timer);
  at = null;
  if (card && card.matches(':popover-open')) card.hidePopover();
}

function come(e) {
  const link = e.target.closest(links);
  if (!link || link === at || e.pointerType && e.pointerType !== 'mouse') return;
  close();
  at = link;
  timer = setTimeout(show, rest, link);
}

document.addEventListener('pointerover', come);
document.addEventListener('focusin', come);
document.addEventListener('focusout', close);
document.addEventListener('pointerout', e => { if (e.target.closest(links) && !(card && card.contains(e.relatedTarget))) close(); });
document.addEventListener('keydown', e => { if (e.key === 'Escape') close(); });
addEventListener('scroll', e => { if (!card || e.target !== card) close(); }, { capture: true, passive: true });
