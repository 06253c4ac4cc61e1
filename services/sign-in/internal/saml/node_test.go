package saml_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/url"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
	"github.com/idplatform/idplatform/services/sign-in/internal/saml"
	"github.com/idplatform/idplatform/services/sign-in/internal/testkit/npm"
)

type object = map[string]any

// nodeSAML is a service provider of node-saml, in a process of its own.
type nodeSAML struct {
	t       testing.TB
	in      io.Writer
	out     *bufio.Scanner
	options object
}

func startNode(t *testing.T, w *world) *nodeSAML {
	t.Helper()
	dir := npm.Install(t, "testdata/node")
	node := exec.CommandContext(t.Context(), "node", "client.mjs")
	node.Dir = dir
	in, err := node.StdinPipe()
	require.NoError(t, err)
	out, err := node.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, node.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = node.Wait()
	})
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	cert := w.metadata().IDPSSODescriptors[0].KeyDescriptors[0].KeyInfo.X509Data.X509Certificates[0].Data
	return &nodeSAML{t, in, lines, object{
		"idpCert": cert, "idpIssuer": issuer + "/saml/metadata", "issuer": entity, "callbackUrl": acs,
		"entryPoint": issuer + "/saml/sso", "logoutUrl": issuer + "/saml/slo", "identifierFormat": nil,
		"privateKey": spPair().keyPEM(t), "publicCert": spPair().pem(),
		"signatureAlgorithm": "sha256", "digestAlgorithm": "sha256",
	}}
}

// ask lets the service provider do something. more are further options.
func (n *nodeSAML) ask(do string, question, more object) (result any, fault string) {
	n.t.Helper()
	options := object{}
	for _, source := range []object{n.options, more} {
		for name, value := range source {
			options[name] = value
		}
	}
	line := object{"do": do, "options": options}
	for name, value := range question {
		line[name] = value
	}
	_, err := n.in.Write(append(marshal(n.t, line), '\n'))
	require.NoError(n.t, err)
	require.True(n.t, n.out.Scan(), "node has ended")
	var answer struct {
		Result any    `json:"result"`
		Error  string `json:"error"`
	}
	require.NoError(n.t, json.Unmarshal(n.out.Bytes(), &answer))
	return answer.Result, answer.Error
}

func (n *nodeSAML) must(do string, question, more object) any {
	n.t.Helper()
	result, fault := n.ask(do, question, more)
	require.Empty(n.t, fault, do)
	return result
}

// query is what a URL that node-saml has made brings to us.
func (n *nodeSAML) query(do string, question, more object) saml.Inbound {
	n.t.Helper()
	u, err := url.Parse(n.must(do, question, more).(string))
	require.NoError(n.t, err)
	return saml.Inbound{Query: u.RawQuery}
}

func TestNodeSAML(t *testing.T) {
	t.Parallel()
	w := signed(t)
	w.client.SAML.ResponseAttributes = []questions.Attribute{
		{Attribute: "mail", Value: "email"}, {Attribute: "groups", Value: "groups"},
	}
	n := startNode(t, w)
	t.Run("signs on", n.signsOn(w))
	t.Run("refused", n.isRefused(w))
	t.Run("signs out", n.signsOut(w))
	t.Run("is signed out", n.isSignedOut(w))
}

func (n *nodeSAML) signsOn(w *world) func(*testing.T) {
	return func(t *testing.T) {
		sha512 := object{"signatureAlgorithm": "sha512"}
		const state = "a b&c=d/é'()*!~+"
		forms := func(more object) saml.Inbound {
			f := url.Values{}
			for name, value := range n.must("authorizeMessage", object{"relayState": state}, more).(object) {
				f.Set(name, value.(string))
			}
			return saml.Inbound{Form: f}
		}
		for about, in := range map[string]saml.Inbound{
			"redirect":      n.query("authorizeURL", object{"relayState": state}, nil),
			"sha512":        n.query("authorizeURL", object{"relayState": state}, sha512),
			"post":          forms(object{"skipRequestCompression": true}),
			"deflated post": forms(nil),
		} {
			a := w.grant(w.sso(in), nil)
			require.Equal(t, state, a.Post.Get("RelayState"), about)
			result := n.must("validate", object{"message": a.Post.Get("SAMLResponse")}, nil).(object)
			profile := result["profile"].(object)
			require.Equal(t, "li.wei", profile["nameID"], about)
			require.Equal(t, "session-1", profile["sessionIndex"])
			require.Equal(t, "Li@example.com", profile["mail"])
			require.Equal(t, []any{"company/rd", "company"}, profile["groups"])
		}
	}
}

func (n *nodeSAML) isRefused(w *world) func(*testing.T) {
	return func(t *testing.T) {
		for about, more := range map[string]object{
			"SHA-1":    {"signatureAlgorithm": "sha1"},
			"unsigned": {"privateKey": nil},
			"another":  {"privateKey": otherPair().keyPEM(t)},
		} {
			_, err := w.provider.SSO(w.ctx, issuer, n.query("authorizeURL", object{"relayState": "x"}, more))
			requirePage(t, err, about)
		}
		r := w.sso(n.query("authorizeURL", object{"relayState": ""}, object{"passive": true}))
		require.True(t, r.Passive)
		a, err := w.provider.Refuse(w.ctx, issuer, r, protocol.LoginRequired)
		require.NoError(t, err)
		result := n.must("validate", object{"message": a.Post.Get("SAMLResponse")}, nil).(object)
		require.Equal(t, object{"profile": nil, "loggedOut": false}, result) // NoPassive
		a, err = w.provider.Refuse(w.ctx, issuer, r, protocol.AccessDenied)
		require.NoError(t, err)
		_, fault := n.ask("validate", object{"message": a.Post.Get("SAMLResponse")}, nil)
		require.Equal(t, "SAML provider returned Responder error: RequestDenied", fault)
	}
}

func (n *nodeSAML) signsOut(w *world) func(*testing.T) {
	return func(t *testing.T) {
		w.enter("session-4")
		profile := object{"nameID": "li.wei", "nameIDFormat": unspecified, "sessionIndex": "session-4"}
		m, err := w.slo(n.query("logoutURL", object{"profile": profile, "relayState": "x y"}, nil))
		require.NoError(t, err)
		require.True(t, m.Logout.Certain)
		require.Equal(t, []string{"session-4"}, m.Logout.SessionIDs)
		a, err := w.provider.AnswerLogout(w.ctx, issuer, m.Logout.Reply, saml.AllEnded)
		require.NoError(t, err)
		u, err := url.Parse(a.URL)
		require.NoError(t, err)
		require.Equal(t, "x y", u.Query().Get("RelayState"))
		result := n.must("validateQuery", object{"query": u.RawQuery}, nil)
		require.Equal(t, object{"profile": nil, "loggedOut": true}, result)
		m.Logout.Reply.Post = true
		a, err = w.provider.AnswerLogout(w.ctx, issuer, m.Logout.Reply, saml.AllEnded)
		require.NoError(t, err)
		result = n.must("validate", object{"message": a.Post.Get("SAMLResponse")}, nil)
		require.Equal(t, object{"profile": nil, "loggedOut": true}, result)
	}
}

func (n *nodeSAML) isSignedOut(w *world) func(*testing.T) {
	return func(t *testing.T) {
		w.enter("session-5")
		notice := w.take("session-5")[0]
		a, err := w.provider.FrontRequest(w.ctx, issuer, notice, "chain")
		require.NoError(t, err)
		u, err := url.Parse(a.URL)
		require.NoError(t, err)
		profile := n.must("validateQuery", object{"query": u.RawQuery}, nil).(object)["profile"].(object)
		require.Equal(t, "session-5", profile["sessionIndex"])
		m, err := w.slo(n.query("logoutResponseURL", object{"profile": profile, "relayState": ""}, nil))
		require.NoError(t, err)
		require.Equal(t, &saml.Finished{AppID: "2001", Chain: "chain"}, m.Finished)

		w.client.SignIn.SLOByPost = true
		a, err = w.provider.FrontRequest(w.ctx, issuer, notice, "chain")
		require.NoError(t, err)
		result := n.must("validateLogoutRequest", object{"message": a.Post.Get("SAMLRequest")}, nil).(object)
		require.Equal(t, "li.wei", result["profile"].(object)["nameID"])
	}
}
