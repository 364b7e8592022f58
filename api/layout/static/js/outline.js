// The symbols beside a file: a filter of them, and which of them the picked line, or else the first
// in sight, is in. That stands above the text once the head of the page is out of sight.
import { at, blocks, picked } from './lines.js';
import { wrapped } from './wrap.js';

const aside = document.getElementById('symbols'), most = 250; // rows that are shown at once
const ends = []; // last lines of what a symbol is in
const symbols = aside ? aside.dataset.all.trimEnd().split('\n').map(line => {
  const [from, to, kind, name] = line.split('\t'), first = Number(from), last = Number(to);
  while (ends.length && ends.at(-1) < Math.max(first, last)) ends.pop();
  const level = Math.min(ends.length + 1, 6);
  if (last > first) ends.push(last);
  return { first, last, kind, name, level };
}) : [];

const names = document.querySelector('[data-names]')?.dataset.names;
const make = (tag, from) => Object.assign(document.createElement(tag), from);

// row is a symbol as the page has it.
function row({ first, name, kind, level }) {
  const li = make('li', { className: level > 1 ? 'level' + level : '' }), link = make('a', { href: '#L' + first });
  link.append(make('bdi', { textContent: name }));
  const uses = make('a', { className: 'not', href: names + '?' + new URLSearchParams({ name }), title: 'references, by name and not by compiler', textContent: '⤳' });
  uses.dataset.name = name;
  uses.setAttribute('aria-label', 'references of ' + name);
  li.append(link, ' ', make('span', { className: 'dim', textContent: kind }), ' ', uses);
  return li;
}

const filter = document.getElementById('outline');
if (filter) {
  const list = aside.querySelector('ul'), more = document.getElementById('moreSymbols');
  const whole = [...list.children];
  filter.hidden = false;
  filter.addEventListener('input', () => {
    const wanted = filter.value.toLowerCase();
    const found = symbols.filter(s => s.name.toLowerCase().includes(wanted));
    list.replaceChildren(...wanted ? found.slice(0, most).map(row) : whole);
    more.textContent = !wanted ? more.dataset.more : found.length > most ? `The first ${most} of ${found.length}.` : found.length ? '' : 'None.';
    if (here) outlined(here);
  });
}

const code = document.getElementById('code'), bar = document.getElementById('where');
let here = '';

// around is what a line is in, outermost first.
const around = line => symbols.filter(s => s.first <= line && line <= s.last && s.first < s.last).slice(-3);

// topLine is the first line below a height of the window.
function topLine(edge) {
  const block = blocks().findLast(b => b.getBoundingClientRect().top <= edge);
  if (!block) return 1;
  if (!wrapped()) return at(block, edge);
  const line = [...block.querySelectorAll('.line')].findLast(l => l.getBoundingClientRect().top <= edge);
  return line ? Number(line.dataset.n) : 1;
}

// outlined shows in the list which of the symbols it is.
function outlined(href) {
  aside.querySelectorAll('[aria-current]').forEach(a => a.removeAttribute('aria-current'));
  let link = aside.querySelector(`a[href="${href}"]`);
  const i = symbols.findIndex(s => '#L' + s.first === href), list = aside.querySelector('ul');
  if (!link && filter && !filter.value && i >= 0) {
    list.replaceChildren(...symbols.slice(Math.max(0, i - most / 2), i + most / 2).map(row)); // the rows around it
    link = list.querySelector(`a[href="${href}"]`);
  }
  if (!link) return;
  link.setAttribute('aria-current', 'location');
  // Whoever is in the list moves it himself.
  if (!aside.matches(':hover, :focus-within')) aside.scrollTop = link.offsetTop - aside.clientHeight / 3;
}

function follow() {
  const edge = parseFloat(getComputedStyle(bar).top), sheet = code.getBoundingClientRect();
  bar.hidden = sheet.top >= edge || sheet.bottom < edge + 60;
  if (bar.hidden) return;

  // A line that was picked says where one is, as long as it is in sight.
  const first = topLine(edge + bar.firstElementChild.offsetHeight), line = picked()?.[0];
  const top = line >= first && line <= topLine(innerHeight) ? line : first, inside = around(top), links = inside.map(s => '#L' + s.first).join();
  if (links === bar.dataset.links) return;
  bar.dataset.links = links;
  bar.firstElementChild.replaceChildren(bar.firstElementChild.firstElementChild, ...inside.flatMap(s => {
    const link = make('a', { href: '#L' + s.first });
    link.append(make('bdi', { textContent: s.name }));
    return [' › ', link];
  }));
  const last = inside.at(-1) || symbols.findLast(s => s.first <= top); // of one line, what begins last
  here = last ? '#L' + last.first : '';
  if (aside) outlined(here);
}

if (code && bar) {
  let asked = false;
  const soon = () => { if (!asked) { asked = true; requestAnimationFrame(() => { asked = false; follow(); }); } };
  addEventListener('scroll', soon, { passive: true });
  addEventListener('resize', soon);
  code.addEventListener('click', soon);
  soon();
}
