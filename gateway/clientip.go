package gateway

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// trustedProxies are the networks whose X-Forwarded-* headers are believed: load balancers in front of the gateway.
type trustedProxies []netip.Prefix

func (t trustedProxies) contain(ip netip.Addr) bool {
	return slices.ContainsFunc(t, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// forward sets X-Forwarded-For, -Proto and -Host to what can be believed, for the services, and drops what was sent otherwise.
// X-Forwarded-For holds one address, the client's, which forward returns; it is invalid where the connection has none.
func (t trustedProxies) forward(r *http.Request) netip.Addr {
	h := r.Header
	var client netip.Addr
	if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		client = peer.Addr().Unmap()
	}
	proto, host := "http", r.Host
	if r.TLS != nil {
		proto = "https"
	}
	if len(t) > 0 && t.contain(client) {
		client = t.client(client, h["X-Forwarded-For"])
		if p := h.Get("X-Forwarded-Proto"); p == "http" || p == "https" {
			proto = p
		}
		if sent := h.Get("X-Forwarded-Host"); sent != "" {
			host = sent
		}
	}
	delete(h, "Forwarded")
	delete(h, "X-Forwarded-For")
	if client.IsValid() {
		h["X-Forwarded-For"] = []string{client.String()}
	}
	h["X-Forwarded-Proto"] = []string{proto}
	h["X-Forwarded-Host"] = []string{host}
	return client
}

// client walks X-Forwarded-For from the right, over our own proxies, to the first address that one of them saw and we do not trust.
// What stands further left is the client's word.
func (t trustedProxies) client(peer netip.Addr, forwardedFor []string) netip.Addr {
	hops := strings.Split(strings.Join(forwardedFor, ","), ",")
	for _, hop := range slices.Backward(hops) {
		ip, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			break
		}
		if peer = ip.Unmap(); !t.contain(peer) {
			break
		}
	}
	return peer
}
