package secret_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/secret"
)

const hidden = "hunter2-Geheimnis"

func TestStringIsNeverPrinted(t *testing.T) {
	t.Parallel()
	type config struct {
		Shown    secret.String
		unshown  secret.String
		Pointer  *secret.String
		List     []secret.String
		Map      map[string]secret.String
		Any      any
		embedded struct{ deep secret.String }
	}
	s := secret.New(hidden)
	c := config{s, s, &s, []secret.String{s}, map[string]secret.String{"k": s}, s, struct{ deep secret.String }{s}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T", "%10.20s", "%p", "%!"} {
		for _, value := range []any{s, &s, c, &c, []any{c}} {
			require.NotContains(t, fmt.Sprintf(verb, value), hidden, verb)
			require.NotContains(t, fmt.Sprintf(verb, value), fmt.Sprintf("%x", hidden), verb)
		}
	}
	require.Equal(t, secret.Mask, fmt.Sprint(s))
	require.NotContains(t, fmt.Errorf("bad %v %s: %w", s, s, fmt.Errorf("%q", s)).Error(), hidden)

	encoded, err := json.Marshal(c)
	require.NoError(t, err)
	require.NotContains(t, string(encoded), hidden)
	require.Contains(t, string(encoded), `"Shown":"******"`)

	var logged bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewJSONHandler(&logged, nil), slog.NewTextHandler(&logged, nil)} {
		slog.New(handler).With("with", s).Info("m", "s", s, "p", &s, "c", c, slog.Group("g", "s", s))
	}
	require.NotContains(t, logged.String(), hidden)
	require.Contains(t, logged.String(), secret.Mask)
}

func TestStringText(t *testing.T) {
	t.Parallel()
	var s secret.String
	require.True(t, s.IsZero())
	require.Empty(t, s.Reveal())
	require.Empty(t, s.String())
	require.Equal(t, s, secret.New(""))

	require.NoError(t, json.Unmarshal([]byte(`"`+hidden+`"`), &s))
	require.False(t, s.IsZero())
	require.Equal(t, hidden, s.Reveal())

	require.Error(t, s.UnmarshalText([]byte(secret.Mask)))
	require.Equal(t, hidden, s.Reveal(), "a refused text changes nothing")
	require.NoError(t, s.UnmarshalText(nil))
	require.True(t, s.IsZero())
}
