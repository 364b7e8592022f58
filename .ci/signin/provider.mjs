// A certified OpenID provider, at which anybody signs in by any name:
//   CLIENT_SECRET=... node provider.mjs ISSUER REDIRECT_URI
import Provider from 'oidc-provider'

const [issuer, redirect] = process.argv.slice(2)
const provider = new Provider(issuer, {
  clients: [{ client_id: 'shoal', client_secret: process.env.CLIENT_SECRET, redirect_uris: [redirect] }],
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'preferred_username'] },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: `${id}@example.com`, email_verified: id !== 'eve', name: id, preferred_username: id }),
  }),
  pkce: { required: () => true },
})
provider.listen(Number(new URL(issuer).port), '127.0.0.1', () => console.log('listening'))
