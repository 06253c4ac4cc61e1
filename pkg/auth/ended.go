package auth

import (
	"fmt"
	"sync"

	"github.com/idplatform/idplatform/pkg/clock"
)

// Ended says which unexpired tokens of an issuer are no longer valid: one token, those that a key signed, or those that
// a client got while its record had an earlier version (before its secret was refreshed, or the client disabled or
// deleted). Versions are compared, not times, because each token carries the version of the record that its credential
// was checked against (deploy/adr/0025).
type Ended struct {
	Issuer        string
	TokenID       string     // the jti of one token; or else
	KeyID         string     // the kid of a key that others may know; or else
	ClientID      string     // the client, and
	ClientVersion int64      // the first version whose tokens are valid
	Until         clock.Time // when the last of these tokens expires; Ended is not kept longer
}

// HasEnded reports whether tokens that a client got at a version of its record have ended.
func (v *Verifier) HasEnded(issuer, clientID string, version int64) bool {
	return v.ended.has(&Principal{Issuer: issuer, ClientID: clientID, ClientVersion: version})
}

type endedKey struct{ issuer, token, key, client string }

type endedTokens struct {
	mu    sync.RWMutex
	list  map[endedKey]Ended
	sweep int // the size at which expired entries are removed
}

const firstSweep = 1024

// End refuses the tokens from now on. It is kept in memory only: code that starts a verifier must tell it what has
// ended before.
func (v *Verifier) End(e Ended) error {
	named := 0
	for _, id := range []string{e.TokenID, e.KeyID, e.ClientID} {
		if id != "" {
			named++
		}
	}
	if e.Issuer == "" || e.Until.IsZero() || named != 1 || (e.ClientID != "") != (e.ClientVersion > 0) {
		return fmt.Errorf("auth: an Ended needs an issuer, an expiry, and a token, a key, or a client and a version")
	}
	v.ended.add(e, v.clock.Now())
	return nil
}

func (t *endedTokens) add(e Ended, now clock.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := endedKey{e.Issuer, e.TokenID, e.KeyID, e.ClientID}
	if old, known := t.list[key]; known { // of two ends of one client, the later version and expiry hold
		e.ClientVersion = max(e.ClientVersion, old.ClientVersion)
		if e.Until.Before(old.Until) {
			e.Until = old.Until
		}
	}
	t.list[key] = e
	if len(t.list) < t.sweep {
		return
	}
	for key, e := range t.list {
		if e.Until.Add(Leeway).Before(now) {
			delete(t.list, key)
		}
	}
	t.sweep = max(firstSweep, 2*len(t.list))
}

func (t *endedTokens) has(p *Principal) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if len(t.list) == 0 {
		return false
	}
	if _, ended := t.list[endedKey{issuer: p.Issuer, token: p.TokenID}]; ended && p.TokenID != "" {
		return true
	}
	if _, ended := t.list[endedKey{issuer: p.Issuer, key: p.keyID}]; ended && p.keyID != "" {
		return true
	}
	e, ended := t.list[endedKey{issuer: p.Issuer, client: p.ClientID}]
	return ended && p.ClientID != "" && p.ClientVersion < e.ClientVersion
}
