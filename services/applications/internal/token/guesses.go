package token

import (
	"net/netip"
	"time"

	"github.com/idplatform/idplatform/pkg/cache"
)

// fromEverywhere is how many times as many wrong guesses of a client's secret may come from all addresses together as
// from one.
const fromEverywhere = 10

// guesses limits how often a secret that people chose is compared. Wrong guesses count for their address and for the
// client. Once either has used up its share, the secret is not looked at: a right one is refused, too, because the
// answer would tell. So that nobody can lock a client out by guessing wrongly, its addresses are known once they have
// sent a right secret: for them only their own wrong guesses count. Limits hold for one replica, in memory.
type guesses struct {
	ofAddress, ofClient buckets
	known               *cache.Cache[string, struct{}]
}

func guessKey(clientID string, from netip.Addr) string { return network(from) + " " + clientID }

// wait returns how long a client's secret is not to be looked at.
func (g *guesses) wait(clientID string, from netip.Addr) time.Duration {
	key := guessKey(clientID, from)
	if wait := g.ofAddress.Empty(key); wait > 0 {
		return wait
	}
	if _, known := g.known.Get(key); known {
		return 0
	}
	return g.ofClient.Empty(clientID)
}

// wrong counts a wrong guess.
func (g *guesses) wrong(clientID string, from netip.Addr) {
	key := guessKey(clientID, from)
	g.ofAddress.Take(key)
	if _, known := g.known.Get(key); !known {
		g.ofClient.Take(clientID)
	}
}

// right remembers the address of the client.
func (g *guesses) right(clientID string, from netip.Addr) {
	g.known.Set(guessKey(clientID, from), struct{}{})
}
