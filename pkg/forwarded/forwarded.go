// Package forwarded finds the address of the client that a request comes from. X-Forwarded-For is believed only from
// configured proxies, and from the gateway, which proves itself: whoever else sends it could write any address into the
// audit log, and use the limits of others.
package forwarded

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/secret"
)

const (
	addressHeader = "X-Forwarded-For"
	// ProofHeader is the gateway's proof of the address in X-Forwarded-For: a keyed hash of it and the request's id. So
	// whoever reads it can repeat only that request's address, and needs no clock to be checked.
	ProofHeader = "X-Forwarded-Proof"
)

// Proxies are the networks of load balancers whose X-Forwarded-* headers are trusted.
type Proxies []netip.Prefix

// ParseProxies reads networks like 10.0.0.0/8.
func ParseProxies(networks []string) (Proxies, error) {
	var proxies Proxies
	for _, n := range networks {
		p, err := netip.ParsePrefix(n)
		if err != nil {
			return nil, fmt.Errorf("trusted_proxies: %q is not a network like 10.0.0.0/8", n)
		}
		proxies = append(proxies, p.Masked())
	}
	return proxies, nil
}

// Contain reports whether an address is a proxy's.
func (t Proxies) Contain(ip netip.Addr) bool {
	return slices.ContainsFunc(t, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// Client follows X-Forwarded-For from the right, past the trusted proxies, to the first address that is not one of
// them. What is further left was sent by the client and proves nothing. Some proxies write the client's port, too.
func (t Proxies) Client(peer netip.Addr, forwardedFor []string) netip.Addr {
	hops := strings.Split(strings.Join(forwardedFor, ","), ",")
	for _, hop := range slices.Backward(hops) {
		hop = strings.TrimSpace(hop)
		ip, err := netip.ParseAddr(hop)
		if err != nil {
			with, err := netip.ParseAddrPort(hop)
			if err != nil {
				break
			}
			ip = with.Addr()
		}
		if peer = ip.Unmap(); !t.Contain(peer) {
			break
		}
	}
	return peer
}

// Peer is the address at the other end of the connection; invalid if there is none.
func Peer(r *http.Request) netip.Addr {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	return peer.Addr().Unmap()
}

// Key is what the gateway and the services prove X-Forwarded-For with. The nil Key proves nothing.
type Key struct{ sum func(text string) string } // a closure, because fmt would print the bytes of a field

// NewKey makes a key from the configured secret; nil without one.
func NewKey(s secret.String) *Key {
	if s.IsZero() {
		return nil
	}
	key, err := hkdf.Key(sha256.New, []byte(s.Reveal()), nil, "idplatform forwarded", sha256.Size)
	if err != nil {
		panic(err) // only for lengths over 255 hashes
	}
	return &Key{func(text string) string {
		mac := hmac.New(sha256.New, key)
		_, _ = mac.Write([]byte(text)) // never fails (hash.Hash)
		return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	}}
}

func (k *Key) proof(h http.Header) string {
	return k.sum(h.Get(addressHeader) + "\n" + h.Get("X-Request-Id"))
}

// Set writes the client's address into a request that has its id, with the proof; nothing if the address is invalid.
// What the sender set is dropped.
func (k *Key) Set(h http.Header, client netip.Addr) {
	delete(h, addressHeader)
	delete(h, ProofHeader)
	if !client.IsValid() {
		return
	}
	h[addressHeader] = []string{client.String()}
	if k != nil {
		h[ProofHeader] = []string{k.proof(h)}
	}
}

// Trust says whose X-Forwarded-For a service believes. The zero Trust believes nobody.
type Trust struct {
	Proxies Proxies
	Gateway *Key
}

// Client returns the address of the client; invalid if the connection has none and nobody trusted tells it.
func (t Trust) Client(r *http.Request) netip.Addr {
	peer := Peer(r)
	proof := r.Header.Get(ProofHeader)
	if proof != "" && t.Gateway != nil && hmac.Equal([]byte(proof), []byte(t.Gateway.proof(r.Header))) {
		if addr, err := netip.ParseAddr(r.Header.Get(addressHeader)); err == nil {
			return addr.Unmap()
		}
	}
	if t.Proxies.Contain(peer) {
		return t.Proxies.Client(peer, r.Header[addressHeader])
	}
	return peer
}
