package gateway

import (
	"context"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"sync/atomic"
	"time"
)

// countedConn counts the bytes written to it.
type countedConn struct {
	net.Conn
	written atomic.Int64
}

func (c *countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.written.Add(int64(n))
	return n, err
}

var dialer = net.Dialer{Timeout: 2 * time.Second}

func dialCounted(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &countedConn{Conn: conn}, nil
}

// delivery follows a write request on its way to a service. The transport may try several connections, one after the
// other.
type delivery struct {
	conn   *countedConn // the latest connection
	before int64        // the bytes written to conn for earlier requests
	began  bool         // bytes of the request were written to an earlier connection
}

type deliveryKey struct{}

// watchDelivery follows a write request's delivery, for answerFailure.
func watchDelivery(pr *httputil.ProxyRequest) {
	switch pr.Out.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return
	}
	d := &delivery{}
	ctx := context.WithValue(pr.Out.Context(), deliveryKey{}, d)
	pr.Out = pr.Out.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: d.gotConn}))
}

func deliveryOf(r *http.Request) *delivery {
	d, _ := r.Context().Value(deliveryKey{}).(*delivery)
	return d
}

func (d *delivery) gotConn(info httptrace.GotConnInfo) {
	d.began = d.began || d.written()
	conn := info.Conn
	if over, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = over.NetConn()
	}
	if d.conn, _ = conn.(*countedConn); d.conn != nil {
		d.before = d.conn.written.Load()
	}
}

func (d *delivery) written() bool { return d.conn != nil && d.conn.written.Load() > d.before }

// mayHaveArrived reports whether the service may have received the request. If the gateway gave up, the transport may
// still be writing it.
func (d *delivery) mayHaveArrived(givenUp bool) bool {
	return d.began || d.written() || givenUp && d.conn != nil
}
