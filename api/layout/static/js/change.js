// Keys of a commit and of a comparison: j and k go through the files, n and p
// through the places that changed, and w counts blanks or not. data-change of the
// root is the place.
import { keys } from './keys.js';

const files = [...document.querySelectorAll('article.file')];
const changed = row => row && row.matches('.row.add, .row.del, .pair:not(.same)');
const places = [...document.querySelectorAll('.row.add, .row.del, .pair:not(.same)')].filter(row => !changed(row.previousElementSibling));
let file = -1, place = -1;

const inside = (list, i) => Math.max(0, Math.min(list.length - 1, i));

function toFile(step) {
  if (!files.length) return;
  file = inside(files, file + step);
  files.forEach((f, i) => f.classList.toggle('on', i === file));
  files[file].scrollIntoView({ block: 'start' });
  files[file].querySelector('a.path').focus({ preventScroll: true });
}

function toPlace(step) {
  if (!places.length) return;
  place = inside(places, place + step);
  places.forEach((p, i) => p.classList.toggle('on', i === place));
  places[place].scrollIntoView({ block: 'center' });
  places[place].closest('.code').focus({ preventScroll: true });
  document.documentElement.dataset.change = place;
}

// The files beside the change are filtered by letters of their paths.
const only = document.getElementById('only');
if (only) {
  only.hidden = false;
  only.addEventListener('input', () => {
    const wanted = only.value.toLowerCase();
    for (const li of document.querySelectorAll('#changed li')) li.hidden = !li.firstElementChild.title.toLowerCase().includes(wanted);
    for (const dir of document.querySelectorAll('#changed .dir')) dir.hidden = !dir.querySelector('li:not([hidden])');
  });
}

keys.add('j', () => toFile(1));
keys.add('k', () => toFile(-1));
keys.add('n', () => toPlace(1));
keys.add('p', () => toPlace(-1));
keys.add('w', () => { const a = document.querySelector('[aria-label="Blanks"] a:not([aria-current])'); if (a) location.href = a.href; });
