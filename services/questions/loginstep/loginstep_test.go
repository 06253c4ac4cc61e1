package loginstep

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHolds(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	in := Input{
		User:    json.RawMessage(`{"username":"ann","free_ext_props":{"contractor":true}}`),
		Groups:  func() ([]string, error) { return []string{"company/rd"}, nil },
		Address: "::ffff:10.1.2.3", KnownBrowser: func() (bool, error) { return false, nil },
		Application: Application{ID: "9", ClientID: "portal", Name: "Portal", Category: "1"},
		ACR:         []string{"urn:idplatform:aal:2"},
	}
	for text, want := range map[string]bool{
		`user.username == "ann"`:                        true,
		`user.free_ext_props.contractor`:                true,
		`"company/rd" in groups`:                        true,
		`"company/hr" in groups`:                        false,
		`!cidr("10.0.0.0/8").containsIP(address)`:       false,
		`cidr("fd00::/8").containsIP(address)`:          false,
		`known_browser`:                                 false,
		`application.client_id == "portal"`:             true,
		`"phr" in acr`:                                  false,
		`user.nothing == 1`:                             true, // cannot be decided
		`user.username`:                                 true,
		`this is no condition`:                          true,
		`application.name == "Portal" && known_browser`: false,
	} {
		t.Run(text, func(t *testing.T) { //nolint:paralleltest // the input changes below
			holds, err := Holds(t.Context(), text, in)
			require.NoError(t, err)
			require.Equal(t, want, holds)
		})
	}

	in.Groups = func() ([]string, error) { return nil, away }
	in.KnownBrowser = func() (bool, error) { return false, away }
	_, err := Holds(t.Context(), `"company/rd" in groups`, in)
	require.ErrorIs(t, err, away)
	_, err = Holds(t.Context(), `!known_browser`, in)
	require.ErrorIs(t, err, away)
	holds, err := Holds(t.Context(), `user.username == "ann" || known_browser`, in)
	require.NoError(t, err, "what a condition does not read is not asked for")
	require.True(t, holds)
}

func TestCost(t *testing.T) {
	t.Parallel()
	cost, err := Cost(`"company/rd" in groups`)
	require.NoError(t, err)
	require.Positive(t, cost)
	for _, text := range []string{`nobody.x`, `address`, `cidr("10.0.0.0/80").containsIP(address)`, `1 +`} {
		_, err := Cost(text)
		require.Error(t, err, text)
	}
}
