// An OpenID Connect provider that others wrote (oidc-provider), with its own pages for
// signing in and consent. Its fields change it while it runs.
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import http from 'node:http'
import Provider, { errors } from 'oidc-provider'

export class Acme {
  /** The accounts' claims by login. Every other login is refused. @type {Record<string, Record<string, unknown>>} */
  people = {}
  /** Results of back-channel logouts: an error, or undefined. @type {(Error | undefined)[]} */
  logouts = []
  /** Codes that were exchanged for tokens. */
  exchanges = 0
  client = { id: 'nize', secret: 'the secret of nize' }
  /** What a provider keeps, by kind and id. @type {Map<string, any>} */
  kept = new Map()
  server = http.createServer((req, res) => this.answer(req, res))

  /** Starts it for a nize at an origin. @param {string} origin */
  async begin(origin) {
    await new Promise((done) => this.server.listen(0, '127.0.0.1', () => done(undefined)))
    this.issuer = `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (this.server.address()).port}`
    this.origin = origin
    this.rotate('rsa')
  }

  /**
   * Replaces the signing key. Sessions and sign-ins that are under way continue.
   * @param {'rsa' | 'ec'} type
   */
  rotate(type) {
    this.type = type
    const { privateKey } = type === 'rsa' ? generateKeyPairSync('rsa', { modulusLength: 2048 }) : generateKeyPairSync('ec', { namedCurve: 'P-256' })
    this.key = { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), use: 'sig' }
    this.make()
  }

  /** Registers nize under another secret. @param {string} secret */
  register(secret) {
    this.client.secret = secret
    this.make()
  }

  make() {
    const provider = new Provider(this.issuer, {
      clients: [{
        client_id: this.client.id, client_secret: this.client.secret, redirect_uris: [this.origin + '/login/oidc'], application_type: 'web',
        id_token_signed_response_alg: this.type === 'rsa' ? 'RS256' : 'ES256',
        backchannel_logout_uri: this.origin + '/login/oidc/logout', backchannel_logout_session_required: true,
      }],
      adapter: (kind) => new Kept(kind, this.kept),
      clientDefaults: { grant_types: ['authorization_code', 'refresh_token'] },
      jwks: { keys: [this.key] },
      cookies: { keys: ['of a test'] },
      pkce: { required: () => true },
      scopes: ['openid', 'offline_access', 'groups'],
      claims: { profile: ['name'], email: ['email', 'email_verified'], groups: ['groups'] },
      features: { devInteractions: { enabled: true }, backchannelLogout: { enabled: true }, rpInitiatedLogout: { enabled: true } },
      findAccount: (_, id) => {
        if (!this.people[id]) throw new errors.AccessDenied('no such account')
        return { accountId: id, claims: () => ({ sub: id, ...this.people[id] }) }
      },
      fetch: (url, { dispatcher: _, ...options }) => fetch(url, options), // the dispatcher refuses loopback addresses
    })
    provider.on('backchannel.success', () => this.logouts.push(undefined))
    provider.on('backchannel.error', (_, err) => this.logouts.push(err))
    provider.on('grant.success', () => this.exchanges++)
    this.answer = provider.callback()
  }

  end() {
    this.server.closeAllConnections()
    this.server.close()
  }
}

/** What a provider keeps of one kind, in the form that oidc-provider asks for. */
class Kept {
  /** @param {string} kind @param {Map<string, any>} all */
  constructor(kind, all) {
    this.all = all
    this.key = (/** @type {string} */ id) => kind + ' ' + id
    this.search = (/** @type {(v: any) => boolean} */ ok) => [...all].find(([k, v]) => k.startsWith(kind + ' ') && ok(v))?.[1]
  }
  async upsert(id, payload) { this.all.set(this.key(id), payload) }
  async find(id) { return this.all.get(this.key(id)) }
  async findByUid(uid) { return this.search((v) => v.uid === uid) }
  async findByUserCode(code) { return this.search((v) => v.userCode === code) }
  async consume(id) { this.all.get(this.key(id)).consumed = Math.floor(Date.now() / 1000) }
  async destroy(id) { this.all.delete(this.key(id)) }
  async revokeByGrantId(grant) {
    for (const [k, v] of this.all) if (v.grantId === grant) this.all.delete(k)
  }
}
