// Lines of a file: ranges of them in the address, and colours near the window.
import { fetchPart, parse } from './part.js';
import { rows, wrapped } from './wrap.js';

const code = document.getElementById('code');
const height = 20, most = 10000; // of a line; lines that are marked one by one

// picked reads #L5, #L5-L9 and ?highlightRange=5,9 or 5:1,9:4.
export function picked() {
  const hash = location.hash.match(/^#L(\d+)(?:-L?(\d+))?$/);
  const query = (new URLSearchParams(location.search).get('highlightRange') || '').match(/^(\d+)(?::\d+)?(?:,(\d+)(?::\d+)?)?$/);
  const m = hash || query;
  if (!m) return null;
  const a = Number(m[1]), b = Number(m[2] || m[1]);
  return [Math.min(a, b), Math.max(a, b)];
}

export const blocks = () => [...code.querySelectorAll('.block')];
const firstOf = block => Number(block.dataset.first);

// mark shows the lines of the address. Nothing is put into the text: what lies behind
// it has another colour.
export function mark() {
  document.querySelectorAll('.nums .on, .row.blame.on, .block.on, .line.on').forEach(e => e.classList.remove('on'));
  const r = picked();
  if (!r) return;
  for (let n = r[0]; n <= Math.min(r[1], r[0] + most); n++) {
    const number = document.getElementById('L' + n);
    if (number) (code ? number : number.parentElement).classList.add('on');
    if (wrapped()) code?.querySelector(`.line[data-n="${n}"]`)?.classList.add('on');
  }
  if (!code || wrapped()) return;
  let rules = '';
  for (const block of blocks()) {
    const first = firstOf(block), from = Math.max(r[0] - first, 0), to = Math.min(r[1] - first + 1, 200);
    block.classList.toggle('on', from < to);
    if (from < to) rules += `[data-first="${first}"] { --from: ${from * height}px; --tall: ${(to - from) * height}px; } `;
  }
  place(0, rules);
}

// place puts a rule for where something stands into the style of the page.
const sheets = [new CSSStyleSheet(), new CSSStyleSheet()];
function place(i, rules) {
  if (!document.adoptedStyleSheets.includes(sheets[i])) document.adoptedStyleSheets.push(sheets[i]);
  sheets[i].replaceSync(rules);
}

// show scrolls to the lines of the address.
export function show() {
  const r = picked();
  if (!r) return;
  if (!code) { document.getElementById('L' + r[0])?.scrollIntoView({ block: 'center' }); return; }
  const block = blocks().findLast(b => firstOf(b) <= r[0]);
  if (!block) return;
  const line = wrapped() && block.querySelector(`.line[data-n="${r[0]}"]`);
  const top = line ? line.getBoundingClientRect().top + scrollY : block.getBoundingClientRect().top + scrollY + (r[0] - firstOf(block)) * height;
  scrollTo({ top: Math.max(0, top - innerHeight / 3) });
  document.documentElement.dataset.line = r[0];
}

// at is the line at a place of the window.
export function at(block, y) { return firstOf(block) + Math.max(0, Math.floor((y - block.getBoundingClientRect().top) / height)); }

// A block far from the window is plain; one that comes near is given its colours,
// and loses them when it leaves.
const waiting = new Map();

function near(e) {
  const block = e.target;
  if (!block.classList || !block.classList.contains('bare')) return;
  const pre = block.querySelector('.text');
  if (waiting.has(block)) { waiting.get(block).abort(); waiting.delete(block); }
  if (e.skipped) {
    if (pre.firstElementChild && !busy(pre)) { pre.textContent = pre.textContent; rows(block); mark(); }
    return;
  }
  const stop = new AbortController();
  waiting.set(block, stop);
  setTimeout(async () => {
    if (stop.signal.aborted) return;
    const url = new URL(location.href);
    url.hash = '';
    url.searchParams.set('first', block.dataset.first);
    try {
      const text = parse(await fetchPart(url, 'block', stop.signal)).querySelector('.text');
      if (busy(pre) || text.textContent !== pre.textContent) return;
      pre.replaceChildren(...text.childNodes);
      rows(block);
      mark();
    } catch { /* it stays plain */ }
  }, 60);
}

// busy reports whether somebody has selected a part of an element.
function busy(e) {
  const s = getSelection();
  return !s.isCollapsed && s.containsNode(e, true);
}

if (code) {
  code.addEventListener('contentvisibilityautostatechange', near, true);
  code.addEventListener('click', e => {
    const nums = e.target.closest('.nums'), line = e.target.closest('.line');
    if (!nums && !(line && e.clientX < line.getBoundingClientRect().left + 64)) return;
    const n = line ? Number(line.dataset.n) : at(nums.parentElement, e.clientY), before = picked();
    const hash = e.shiftKey && before ? '#L' + Math.min(before[0], n) + '-L' + Math.max(before[0], n) : '#L' + n;
    history.replaceState(null, '', location.pathname + location.search + hash);
    mark();
    offer();
  });
}
addEventListener('hashchange', () => { mark(); show(); offer(); });
// What there is to do with the lines that were picked stands above the end of the first.
const menu = document.getElementById('lines');

// said is the first of some lines that says something, in quotes.
function said(block, [from, to]) {
  const text = block.querySelector('.text'), rows = wrapped() ? [...text.querySelectorAll('.line')].map(l => l.textContent) : text.textContent.split('\n');
  const line = rows.slice(from - firstOf(block), to - firstOf(block) + 1).map(l => l.trim()).find(l => l) || '';
  return '"' + line.slice(0, 200).replace(/[\\"]/g, '\\$&') + '"';
}

function offer() {
  const r = menu && picked();
  const block = r && blocks().findLast(b => firstOf(b) <= r[0]);
  if (!block) return;
  const lines = '#L' + r[0] + (r[1] > r[0] ? '-L' + r[1] : ''), name = r[0] + (r[1] > r[0] ? '-' + r[1] : '');
  menu.querySelector('[data-copy]').dataset.copy = new URL(document.querySelector('[data-permalink]').dataset.permalink + lines, location.href);
  for (const a of menu.querySelectorAll('[data-form]')) a.href = a.dataset.form.replace('LINES', encodeURIComponent(name)).replace(/TEXT$/, encodeURIComponent(said(block, r)));
  const sheet = code.getBoundingClientRect();
  const row = wrapped() && block.querySelector(`.line[data-n="${r[0]}"]`);
  menu.showPopover();
  const top = row ? row.getBoundingClientRect().top : block.getBoundingClientRect().top + (r[0] - firstOf(block)) * height;
  place(1, `#lines { top: ${top + scrollY - menu.offsetHeight - 2}px; left: ${Math.max(4, sheet.right - menu.offsetWidth - 8)}px; }`);
}
document.addEventListener('keydown', e => { if (e.key === 'Escape' && menu) menu.hidePopover(); });

// Another view of the file, or another revision, has the same lines.
document.addEventListener('click', e => {
  const link = e.target.closest('[data-key=b], .picker li a, [data-lines]');
  if (link && picked()) link.hash = location.hash;
  if (menu && !menu.contains(e.target) && !e.target.closest('#code')) menu.hidePopover();
  const no = e.target.closest('.row.blame > .no');
  if (no) location.hash = no.id;
}, true);

mark();
show();
