// The card of the name under the pointer: where it is defined, and how often it
// stands. It comes when a mouse rests on a name, stays while the pointer is on the
// name or the card, and Esc takes it away. By the keyboard the same is told by r.
// data-card of the root says which name is shown, or that it has none.
import { under } from './names.js';
import { fetchPart, parse } from './part.js';

const rest = 300; // milliseconds on a name until it is asked for, and beside it until the card goes
const most = 100; // cards that are kept

const code = document.getElementById('code'), root = document.querySelector('[data-names]');
const state = document.documentElement.dataset;
const known = new Map(); // of names, to what their cards hold
const place = new CSSStyleSheet();
let card = null, on = '', timer = 0, running = null;

// later does something unless the pointer goes elsewhere meanwhile.
function later(act) {
  clearTimeout(timer);
  timer = setTimeout(act, rest);
}

function make() {
  card = document.createElement('div');
  card.id = 'card';
  card.setAttribute('role', 'dialog');
  card.setAttribute('popover', 'manual');
  card.addEventListener('pointerenter', () => { clearTimeout(timer); on = state.card || ''; });
  card.addEventListener('pointerleave', () => later(close));
  card.addEventListener('click', e => { if (e.target.closest('a')) close(); });
  document.body.append(card);
  document.adoptedStyleSheets.push(place);
}

async function ask(name, box) {
  if (running) running.abort();
  const mine = running = new AbortController();
  try {
    if (!known.has(name)) {
      const url = root.dataset.names + '?' + new URLSearchParams({ name });
      const found = parse(await fetchPart(url, 'card', mine.signal)).firstElementChild;
      if (known.size >= most) known.clear();
      known.set(name, found);
    }
    if (!mine.signal.aborted && on === name) show(name, known.get(name), box);
  } catch { /* no card */ }
}

// show puts a card below its name, or above where there is no room below.
function show(name, found, box) {
  if (!found.childElementCount) { close(); state.card = 'none:' + name; return; }
  if (!card) make();
  card.setAttribute('aria-label', 'About ' + name);
  card.replaceChildren(...found.cloneNode(true).childNodes);
  card.showPopover();
  const size = card.getBoundingClientRect();
  const left = Math.max(4, Math.min(box.left, document.documentElement.clientWidth - size.width - 4));
  const top = box.bottom + size.height < innerHeight ? box.bottom : Math.max(0, box.top - size.height);
  place.replaceSync(`#card { left: ${left}px; top: ${top}px; }`);
  state.card = name;
}

function close() {
  clearTimeout(timer);
  if (running) running.abort();
  on = '';
  delete state.card;
  if (card && card.matches(':popover-open')) card.hidePopover();
}

if (code && root && localStorage.getItem('cardOff') !== '1') {
  code.addEventListener('pointermove', e => {
    if (e.pointerType !== 'mouse') return;
    const at = e.buttons ? null : under(e.clientX, e.clientY), name = at ? at.name : '';
    if (name === on) return;
    on = name;
    later(() => { if (name) ask(name, at.box); else close(); });
  });
  code.addEventListener('pointerleave', () => { if (!card || !card.matches(':hover')) { on = ''; later(close); } });
  addEventListener('scroll', e => { if (!card || e.target !== card) close(); }, { capture: true, passive: true });
  addEventListener('pointerdown', e => { if (!e.target.closest('#card')) close(); });
  document.addEventListener('keydown', e => { if (e.key === 'Escape') close(); });
}
