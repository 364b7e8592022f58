// Lines of a file: ranges of them in the address, and colours near the window.
import { fetchPart, parse } from './part.js';
import { rows, wrapped } from './wrap.js';

const code = document.getElementById('code');
const height = 20;

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

// span is the text of some lines of an element with lines, counted from 0.
function span(pre, from, to) {
  const range = document.createRange(), walk = document.createTreeWalker(pre, NodeFilter.SHOW_TEXT);
  let line = 0, begun = from === 0;
  range.selectNodeContents(pre);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    for (let i = node.data.indexOf('\n'); i >= 0; i = node.data.indexOf('\n', i + 1)) {
      line++;
      if (!begun && line === from) { range.setStart(node, i + 1); begun = true; }
      if (line === to) { range.setEnd(node, i); return range; }
    }
  }
  return range;
}

// mark shows the lines of the address. Nothing is put into the text: it is
// the browser that draws over it.
export function mark() {
  document.querySelectorAll('.nums .on').forEach(e => e.classList.remove('on'));
  const r = code && picked(), ranges = [];
  if (r) {
    for (const block of blocks()) {
      const first = firstOf(block), from = Math.max(r[0] - first, 0), to = Math.min(r[1] - first + 1, 200);
      if (from >= to) continue;
      for (const pre of block.children) ranges.push(span(pre, from, to));
      for (let n = first + from; n < first + to; n++) { const e = document.getElementById('L' + n); if (e) e.classList.add('on'); }
    }
  }
  if (window.Highlight) CSS.highlights.set('lines', new Highlight(...ranges));
}

// show scrolls to the lines of the address.
export function show() {
  const r = code && picked();
  if (!r) return;
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
  if (!block.classList || !block.classList.contains('plain')) return;
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
  });
  addEventListener('hashchange', () => { mark(); show(); });
  mark();
  show();
}
