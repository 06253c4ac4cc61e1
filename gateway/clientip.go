package gateway

import (
	"net/http"
	"net/netip"

	"github.com/idplatform/idplatform/pkg/forwarded"
)

// origin sets the X-Forwarded-* headers of requests.
type origin struct{ trust forwarded.Trust }

// forward sets X-Forwarded-For, -Proto and -Host for the services to values that can be trusted, and drops what
// untrusted senders set. Load balancers are trusted, and the console, which passes on the proof that it got.
// X-Forwarded-For then holds one address, the client's, which forward returns, and the services can see that the
// gateway wrote it; the address is invalid if the connection has none. The request has its id.
func (o origin) forward(r *http.Request) netip.Addr {
	h := r.Header
	peer, client := forwarded.Peer(r), o.trust.Client(r)
	proto, host := "http", r.Host
	if r.TLS != nil {
		proto = "https"
	}
	if client != peer || o.trust.Proxies.Contain(peer) {
		if p := h.Get("X-Forwarded-Proto"); p == "http" || p == "https" {
			proto = p
		}
		if sent := h.Get("X-Forwarded-Host"); sent != "" {
			host = sent
		}
	}
	delete(h, "Forwarded")
	o.trust.Gateway.Set(h, client)
	h["X-Forwarded-Proto"] = []string{proto}
	h["X-Forwarded-Host"] = []string{host}
	return client
}
