package secret_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/secret"
)

func recipient(t *testing.T, fill byte) *secret.Recipient {
	t.Helper()
	r, err := secret.NewRecipient(bytes.Repeat([]byte{fill}, 32))
	require.NoError(t, err)
	return r
}

const use = "users.verify-login acme"

func TestOnlyTheRecipientOpensWhatIsSealedForIt(t *testing.T) {
	t.Parallel()
	r := recipient(t, 1)
	sealed, err := r.Key().Seal("correct horse", use)
	require.NoError(t, err)
	require.NotContains(t, sealed, "horse")
	again, err := r.Key().Seal("correct horse", use)
	require.NoError(t, err)
	require.NotEqual(t, sealed, again, "equal values must not look equal")

	opened, err := recipient(t, 1).Open(sealed, use) // another replica with the same seed
	require.NoError(t, err)
	require.Equal(t, "correct horse", opened.Reveal())

	for name, try := range map[string]func() (secret.String, error){
		"another use":       func() (secret.String, error) { return r.Open(sealed, "users.verify-login globex") },
		"another recipient": func() (secret.String, error) { return recipient(t, 2).Open(sealed, use) },
		"cut off":           func() (secret.String, error) { return r.Open(sealed[:len(sealed)-4], use) },
		"no text":           func() (secret.String, error) { return r.Open("", use) },
		"plain text":        func() (secret.String, error) { return r.Open("correct horse", use) },
		"altered": func() (secret.String, error) {
			return r.Open(strings.ToUpper(sealed), use)
		},
	} {
		_, err := try()
		require.ErrorIs(t, err, secret.ErrOpen, name)
	}
}

func TestSealRefusesWhatIsNoKey(t *testing.T) {
	t.Parallel()
	for _, public := range []string{"", "AAAA", "not base64!"} {
		_, err := secret.TransitKey{ID: "x", Public: public}.Seal("correct horse", "use")
		require.Error(t, err)
		require.NotContains(t, err.Error(), "horse")
	}
}
