// The official TypeScript client calls every tool, round after round, through
// whatever stands at URL. In the middle it kills the process PID, if given.
//
//   node client.mjs URL [PID]
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [url, pid] = process.argv.slice(2);
const rounds = 20;
const wanted = ['grep', 'list_repos', 'read_file', 'list_tree', 'list_commits', 'list_branches', 'glob', 'get_diff',
  'find_symbol_definitions', 'find_symbol_references', 'list_language_models', 'search', 'outline', 'blame',
  'find_implementations', 'dependencies'];

const headers = process.env.SHOAL_API_KEY ? { Authorization: 'Bearer ' + process.env.SHOAL_API_KEY } : {};
const client = new Client({ name: 'shoal-checks', version: '1' });
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));

const { tools } = await client.listTools();
const names = tools.map(t => t.name).sort();
if (JSON.stringify(names) !== JSON.stringify([...wanted].sort())) throw new Error('tools: ' + names);
for (const t of tools) {
  if (!t.description || !t.annotations?.readOnlyHint || !t.inputSchema) throw new Error('tool ' + t.name + ' lacks a description, a hint or a schema');
}

async function call(name, args) {
  const result = await client.callTool({ name, arguments: args });
  const text = result.content.map(c => c.text).join('\n');
  if (result.isError) throw new Error(`${name}: ${text}`);
  if (!text) throw new Error(`${name}: no text`);
  return text;
}

const listing = await call('list_repos', {});
const repo = process.env.SHOAL_CHECK_REPO;
if (!listing.includes(repo)) throw new Error('list_repos does not name ' + repo + ':\n' + listing);

let calls = 0;
for (let round = 0; round < rounds; round++) {
  if (pid && round === rounds / 2) process.kill(Number(pid), 'SIGKILL');
  const tree = await call('list_tree', { repo, depth: 2 });
  if (!tree.includes('README')) throw new Error('list_tree:\n' + tree);
  const read = await call('read_file', { repo, path: 'README.md', limit: 5 });
  if (!read.includes('Checks')) throw new Error('read_file:\n' + read);
  const grep = await call('grep', { pattern: 'func Answer', repo });
  if (!grep.includes('answer.go')) throw new Error('grep:\n' + grep);
  if (!(await call('grep', { pattern: 'func Answer' })).includes('answer.go')) throw new Error('grep over all repositories');
  if (!(await call('glob', { pattern: '**/*.go', repo })).includes('answer.go')) throw new Error('glob');
  if (!(await call('list_commits', { repo })).includes('second')) throw new Error('list_commits');
  if (!(await call('list_branches', { repo })).includes('main')) throw new Error('list_branches');
  if (!(await call('get_diff', { repo, base: 'HEAD~1', head: 'HEAD' })).includes('answer.go')) throw new Error('get_diff');
  if (!(await call('find_symbol_definitions', { symbol: 'Answer', repo })).includes('answer.go')) throw new Error('find_symbol_definitions');
  if (!(await call('find_symbol_references', { symbol: 'Answer', repo })).includes('use.go')) throw new Error('find_symbol_references');
  if (!(await call('search', { query: 'answers', repo })).includes('answer.go')) throw new Error('search');
  if (!(await call('outline', { repo, path: 'answer.go' })).includes('Answer')) throw new Error('outline');
  if (!(await call('blame', { repo, path: 'answer.go' })).includes('second')) throw new Error('blame');
  if (!(await call('find_implementations', { symbol: 'Answer', repo })).includes('Answer')) throw new Error('find_implementations');
  if (!(await call('dependencies', { repo })).includes('manifest')) throw new Error('dependencies');
  await call('list_language_models', {});
  if (!(await call('list_repos', { query: 'checks' })).includes(repo)) throw new Error('list_repos');
  calls += 17;
}
await client.close();
console.log(`${calls} calls, none failed`);
