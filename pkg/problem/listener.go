package problem

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
)

// Listener wraps the listener of an http.Server that serves plain HTTP/1, so that the responses that net/http writes
// before any handler runs are problem documents too. They answer a malformed or too large request line or header, a
// missing Host, a bad percent-encoding in the path, and an unknown transfer encoding, protocol version or
// expectation. All become 400 invalid_parameters, and the connection ends. Under TLS the text of net/http remains,
// because its server needs the *tls.Conn itself.
func Listener(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{c}, nil
}

type conn struct{ net.Conn }

// CloseWrite lets net/http end a connection in a way that the client can still read the response.
func (c *conn) CloseWrite() error {
	if c, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}

// Write replaces the refusals of net/http. It writes each of them in one call, and no response of a handler looks
// like them, because a handler's response has a Date.
func (c *conn) Write(b []byte) (int, error) {
	if !isOwnRefusal(b) {
		return c.Conn.Write(b)
	}
	if _, err := c.Conn.Write(malformed(b)); err != nil {
		return 0, err
	}
	return len(b), nil
}

var (
	statusLine   = []byte("HTTP/1.1 ")
	ownHeaders   = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")
	expectation  = []byte("HTTP/1.1 417 ")
	headersLarge = []byte("HTTP/1.1 431 ")
)

func isOwnRefusal(b []byte) bool {
	const longest = 512
	if len(b) > longest || !bytes.HasPrefix(b, statusLine) {
		return false
	}
	end := bytes.Index(b, []byte("\r\n"))
	return end >= 0 && bytes.HasPrefix(b[end:], ownHeaders) || bytes.HasPrefix(b, expectation)
}

func malformed(refusal []byte) []byte {
	err := apperr.New(apperr.InvalidParameters, "the request is malformed")
	switch {
	case bytes.HasPrefix(refusal, headersLarge):
		err = apperr.Invalid("header", "is too large, together with the request line")
	case bytes.HasPrefix(refusal, expectation):
		err = apperr.Invalid("header.Expect", "must be 100-continue")
	}
	doc := Of(err, request.NewID())
	body, _ := json.Marshal(doc) // strings and numbers always marshal
	return fmt.Appendf(nil, "HTTP/1.1 400 Bad Request\r\nContent-Type: %s\r\nContent-Length: %d\r\n"+
		"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nX-Request-Id: %s\r\nConnection: close\r\n\r\n%s",
		ContentType, len(body), doc.RequestID, body)
}
