package session

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
)

// A session ends with a credential that it rests on, and with no other one.
func TestWhatASessionRestsOn(t *testing.T) {
	t.Parallel()
	set := clock.FromMillis(1000)
	byPassword := &Session{Proofs: []proof.Proof{proof.ByPassword(set.Add(time.Hour), set)}}
	byKey := &Session{Proofs: []proof.Proof{{
		Method: "webauthn", Channel: "key", Credential: "7", TimeSet: clock.FromMillis(1),
	}}}
	earlier := &Session{TimePasswordChanged: set} // stored by a version without proofs
	never := &Session{Proofs: []proof.Proof{proof.ByPassword(set, clock.Time{})}}
	for name, c := range map[string]struct {
		session    *Session
		credential string
		set        int64 // in milliseconds
		want       bool
	}{
		"the same password":               {byPassword, proof.Password, 1000, false},
		"a later password":                {byPassword, proof.Password, 1001, true},
		"the same password, stored early": {earlier, proof.Password, 1000, false},
		"a later password, stored early":  {earlier, proof.Password, 1001, true},
		"a first password":                {never, proof.Password, 1, true},
		"a password that was not used":    {byKey, proof.Password, 1001, false},
		"the key":                         {byKey, "7", 2, true},
		"another key":                     {byKey, "8", 2, false},
		"a key, stored early":             {earlier, "7", 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, proof.RestsOn(c.session.Shown(), c.credential, clock.FromMillis(c.set)))
		})
	}
}
