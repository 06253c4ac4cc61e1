package auth

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeysRotate(t *testing.T) {
	t.Parallel()
	a, b, c := newTestKey(t), newTestKey(t), newTestKey(t)
	one := NewKeys(a)
	all := one.Add(b).Add(c)
	require.Equal(t, []string{a.ID, b.ID, c.ID}, all.IDs(), "a new key does not sign")
	active, err := all.Activate(c.ID)
	require.NoError(t, err)
	require.Equal(t, []string{c.ID, a.ID, b.ID}, active.IDs())
	less, err := active.Remove(a.ID)
	require.NoError(t, err)
	require.Equal(t, []string{c.ID, b.ID}, less.IDs())

	_, err = less.Remove(c.ID)
	require.Error(t, err, "the signing key stays")
	_, err = less.Remove(a.ID)
	require.Error(t, err)
	_, err = less.Activate(a.ID)
	require.Error(t, err)

	require.Equal(t, []string{a.ID}, one.IDs(), "sets do not change")
	require.Equal(t, []string{a.ID, b.ID, c.ID}, all.IDs())
	require.Equal(t, []string{a.ID, b.ID}, one.Add(b).IDs())
}

func TestPrivateJWKSRoundTrip(t *testing.T) {
	t.Parallel()
	s := NewKeys(newTestKey(t)).Add(newTestKey(t))
	raw, err := s.PrivateJWKS()
	require.NoError(t, err)
	back, err := ParsePrivateJWKS(raw)
	require.NoError(t, err)
	require.True(t, s.list[0].private.Equal(back.list[0].private))
	require.True(t, s.list[1].private.Equal(back.list[1].private))
	require.Equal(t, s.IDs(), back.IDs())

	public, err := s.PublicJWKS()
	require.NoError(t, err)
	require.NotContains(t, string(public), `"d"`)
	_, err = ParsePrivateJWKS(public)
	require.Error(t, err)
	_, err = parseKeySet(raw)
	require.Error(t, err, "private keys must not be published, nor moved")
}

func TestPublicJWKSHasRFC7638KeyIDs(t *testing.T) {
	t.Parallel()
	// RFC 8037 appendix A.1 to A.3: key and thumbprint.
	raw := `{"keys":[{"kty":"OKP","crv":"Ed25519","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A",
		"x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","kid":"kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"}]}`
	s, err := ParsePrivateJWKS([]byte(raw))
	require.NoError(t, err)
	public, err := s.PublicJWKS()
	require.NoError(t, err)
	require.JSONEq(t, `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
		"kid":"kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k","alg":"EdDSA","use":"sig"}]}`, string(public))
}

func TestDamagedPrivateKeysAreRefused(t *testing.T) {
	t.Parallel()
	a, b := newTestKey(t), newTestKey(t)
	raw, err := NewKeys(a).PrivateJWKS()
	require.NoError(t, err)
	seed := func(k Key) string { return base64.RawURLEncoding.EncodeToString(k.private.Seed()) }
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	require.NoError(t, json.Unmarshal(raw, &set))
	for name, text := range map[string]string{
		"no JSON":      "not JSON",
		"empty set":    `{"keys":[]}`,
		"other seed":   strings.Replace(string(raw), seed(a), seed(b), 1),
		"other kid":    strings.Replace(string(raw), a.ID, b.ID, 1),
		"repeated key": fmt.Sprintf(`{"keys":[%s,%s]}`, set.Keys[0], set.Keys[0]),
		"symmetric":    `{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}`,
	} {
		_, err := ParsePrivateJWKS([]byte(text))
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), seed(a), name)
		require.NotContains(t, err.Error(), "c2VjcmV0", name)
	}
}

func TestPrintingKeysShowsNoSecret(t *testing.T) {
	t.Parallel()
	s := newTestSigner(t, newClock())
	k := s.Keys().list[0]
	var out bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&out, nil))
	text := slog.New(slog.NewTextHandler(&out, nil))
	for _, v := range []any{k, &k, s.Keys(), s, []Key{k}, map[string]Keys{"k": s.Keys()}} {
		fmt.Fprintf(&out, "%v %+v %#v %s\n", v, v, v, v)
		log.Info("x", "v", v)
		text.Info("x", "v", v)
	}
	seed := k.private.Seed()
	for _, secret := range []string{
		base64.StdEncoding.EncodeToString(seed), base64.RawURLEncoding.EncodeToString(seed), fmt.Sprintf("%x", seed),
		string(seed),
		strings.Trim(fmt.Sprint(seed[:8]), "[]"), strings.Trim(fmt.Sprintf("%#v", seed[:4]), "[]byte{}"),
	} {
		require.NotContains(t, out.String(), secret)
	}
	require.Contains(t, out.String(), k.ID)
}
