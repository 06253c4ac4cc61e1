package gateway

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// trustedProxies are the networks of the load balancers in front of the gateway, whose X-Forwarded-* headers are
// trusted.
type trustedProxies []netip.Prefix

func (t trustedProxies) contain(ip netip.Addr) bool {
	return slices.ContainsFunc(t, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// forward sets X-Forwarded-For, -Proto and -Host for the services to values that can be trusted, and drops what
// untrusted senders set. X-Forwarded-For then holds one address, the client's, which forward returns; the address is
// invalid if the connection has none.
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

// client follows X-Forwarded-For from the right, past the trusted proxies, to the first address that is not one of
// them. What is further left was sent by the client and proves nothing.
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
