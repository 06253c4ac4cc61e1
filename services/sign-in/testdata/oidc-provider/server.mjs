// An unmodified OpenID provider. Its development pages sign in whoever says who they are.
import Provider from 'oidc-provider';

const [, , port, callback, logout, secret] = process.argv;
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    {
      client_id: 'idplatform',
      client_secret: secret,
      redirect_uris: [callback],
      response_types: ['code'],
      backchannel_logout_uri: logout,
      backchannel_logout_session_required: true,
    },
  ],
  claims: {openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'preferred_username']},
  conformIdTokenClaims: false,
  findAccount: (ctx, id) => ({
    accountId: id,
    claims: () => ({
      sub: id,
      name: `${id} at Corp`,
      preferred_username: id,
      email: `${id}@acme.test`,
      email_verified: true,
    }),
  }),
  pkce: {required: () => true},
  features: {devInteractions: {enabled: true}, backchannelLogout: {enabled: true}},
});
provider.listen(Number(port), '127.0.0.1', () => console.log('ready'));
