package secret_test

import (
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/secret"
)

func TestCheckChosen(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty": "", "short": "Xk29dkfjLLpq81mzBnWqe7Rt5yUi0oP", "one character": strings.Repeat("x", 64),
		"few characters":           strings.Repeat("1001110100101101", 4),
		"a word again and again":   strings.Repeat("Passw0rd!ab", 4),
		"a repetition that is cut": strings.Repeat("correct-horse-b", 3)[:40],
		"the alphabet":             "abcdefghijklmnopqrstuvwxyz0123456789",
		"digits down":              "9876543210987654321098765432109876543210",
		"nearly counted":           "0123456789abcdefghijklmnop!qrstuvwxyz",
	} {
		err := secret.CheckChosen(secret.New(text))
		require.Error(t, err, name)
		if text != "" {
			require.NotContains(t, err.Error(), text, name)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		key := make([]byte, 20)
		for i := range key {
			key[i] = byte(random.Uint32())
		}
		require.NoError(t, secret.CheckChosen(secret.New(hex.EncodeToString(key))))
		require.NoError(t, secret.CheckChosen(secret.New(secret.Token(32))))
	}
}
