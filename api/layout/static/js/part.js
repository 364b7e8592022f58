// The one place where markup of this site's own pages is put into a page. Only
// what the node has drawn comes here.
const policy = window.trustedTypes ? trustedTypes.createPolicy('shoal', { createHTML: s => s }) : { createHTML: s => s };

let seq = 0;

// fetchPart asks for a part of a page. It fails with the status in the error.
// heard is told of what has come so far.
export async function fetchPart(url, part, signal, heard) {
  const response = await fetch(url, { headers: { 'X-Shoal-Part': part }, signal, redirect: 'manual' });
  if (response.type === 'opaqueredirect' || response.status === 401) { location.href = '/login?next=' + encodeURIComponent(location.pathname + location.search); throw new Error('signed out'); }
  const html = heard ? await follow(response.body, heard) : await response.text();
  if (!response.ok && !html.startsWith('<div')) throw Object.assign(new Error('status ' + response.status), { status: response.status });
  return html;
}

async function follow(body, heard) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let html = ''; ;) {
    const { done, value } = await reader.read();
    if (done) return html;
    html += value;
    heard(html);
  }
}

// put makes html the content of an element, in place of what is there. before is
// shown the fragment, of which it may take a part.
export function put(element, html, before) {
  const from = parse(html);
  if (before) before(from);
  const inside = element.id && from.getElementById(element.id);
  if (inside) element.replaceWith(inside);
  else element.replaceChildren(from);
  document.documentElement.dataset.ready = document.documentElement.dataset.page + ':' + ++seq;
}

// parse makes a fragment of html without putting it anywhere.
export function parse(html) {
  const template = document.createElement('template');
  template.innerHTML = policy.createHTML(html);
  return template.content;
}

// progress shows a bar while a promise takes longer than a moment.
export async function progress(promise) {
  const bar = document.getElementById('progress'), main = document.getElementById('main');
  const timer = setTimeout(() => { bar.hidden = false; main.classList.add('stale'); }, 150);
  try { return await promise; } finally { clearTimeout(timer); bar.hidden = true; main.classList.remove('stale'); }
}

// say tells a screen reader something.
export function say(text) { document.getElementById('status').textContent = text; }
