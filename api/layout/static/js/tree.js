// The last commit of each entry of a directory comes after the page: the cells that wait
// for it are filled, so that nothing moves. Without it they stay empty.
import { fetchPart, parse } from './part.js';

const list = document.getElementById('entries');
if (list) fetchPart(list.dataset.last, 'last').then(html => {
  const told = parse(html).querySelector('table');
  if (!told || told.rows.length !== list.rows.length) return;
  [...list.rows].forEach((row, i) => {
    const [, last, when] = told.rows[i].cells;
    row.cells[1].replaceWith(last);
    row.cells[2].replaceWith(when);
  });
  document.documentElement.dataset.last = 'told';
}).catch(() => {});
