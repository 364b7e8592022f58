// The official TypeScript client signs in at URL and uses a tool. It prints the
// address that a person has to open, and reads where they were sent from its
// input; then it refreshes its tokens, twice at once.
//
//   node oauth.mjs URL register|document|ID
import readline from 'node:readline/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { refreshAuthorization, discoverOAuthProtectedResourceMetadata, discoverAuthorizationServerMetadata } from '@modelcontextprotocol/sdk/client/auth.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [url, how] = process.argv.slice(2);
const redirect = 'http://localhost:4711/callback';
const kept = how === 'register' || how === 'document' ? {} : { client: { client_id: how } };

const provider = {
  redirectUrl: redirect,
  clientMetadataUrl: how === 'document' ? 'https://claude.ai/oauth/claude-code-client-metadata' : undefined,
  clientMetadata: { client_name: 'TypeScript agent', redirect_uris: [redirect], grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'], token_endpoint_auth_method: 'none' },
  state: () => 'a state',
  clientInformation: () => kept.client,
  saveClientInformation: c => { kept.client = c; },
  tokens: () => kept.tokens,
  saveTokens: t => { kept.tokens = t; },
  redirectToAuthorization: to => { console.log(to.href); },
  saveCodeVerifier: v => { kept.verifier = v; },
  codeVerifier: () => kept.verifier,
};

async function connect() {
  const client = new Client({ name: 'shoal-checks', version: '1' });
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
  await client.connect(transport);
  const listing = await client.callTool({ name: 'list_repos', arguments: {} });
  if (listing.isError) throw new Error('list_repos: ' + JSON.stringify(listing));
  await client.close();
}

const input = readline.createInterface({ input: process.stdin });
const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
try {
  await new Client({ name: 'shoal-checks', version: '1' }).connect(transport);
  throw new Error('nobody was asked');
} catch (e) {
  if (e.constructor.name !== 'UnauthorizedError') throw e;
}
const back = new URL((await input[Symbol.asyncIterator]().next()).value);
input.close();
if (back.searchParams.get('state') !== 'a state') throw new Error('another state: ' + back);
await transport.finishAuth(back.searchParams.get('code'));
await connect();

// Two processes of one client refresh at once.
const resource = await discoverOAuthProtectedResourceMetadata(url);
const metadata = await discoverAuthorizationServerMetadata(resource.authorization_servers[0]);
const refresh = () => refreshAuthorization(resource.authorization_servers[0], { metadata, clientInformation: kept.client, refreshToken: kept.tokens.refresh_token, resource: new URL(resource.resource) });
const [one, other] = await Promise.all([refresh(), refresh()]);
if (one.refresh_token !== other.refresh_token || one.refresh_token === kept.tokens.refresh_token) throw new Error('two refreshes at once got different tokens');
kept.tokens = one;
await connect();
console.log('signed in');
