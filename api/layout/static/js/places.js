// places is what this browser has read last, the newest first: {href, name}.
export function places() {
  try { return JSON.parse(localStorage.getItem('places') || '[]').filter(p => p && typeof p.name === 'string' && typeof p.href === 'string' && p.href.startsWith('/browse/')); } catch { return []; }
}
