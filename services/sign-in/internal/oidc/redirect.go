package oidc

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

// The response modes (OAuth 2.0 Multiple Response Types §2.1, Form Post Response Mode).
const (
	query    = "query"
	formPost = "form_post"
)

// isRegistered reports whether a redirect_uri is one of an application's: the same text or, for a program on the
// person's device, at a loopback host over http, the same but for the port (RFC 8252 §7.3).
func isRegistered(client questions.Client, uri string) bool {
	if slices.Contains(client.RedirectURLs, uri) {
		return true
	}
	given, ok := withoutPort(uri)
	if !ok || client.Category != questions.ClientProgram {
		return false
	}
	return slices.ContainsFunc(client.RedirectURLs, func(registered string) bool {
		own, ok := withoutPort(registered)
		return ok && own == given
	})
}

// withoutPort returns an http URL of a loopback host without its port. ok is false for others, and for one that is not
// written as the parser understands it.
func withoutPort(uri string) (text string, ok bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "http" || u.User != nil || strings.ContainsAny(uri, "#\\") || u.String() != uri {
		return "", false
	}
	host := u.Hostname()
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", false
	}
	u.Host = host
	return u.String(), true
}

// respond makes the answer that goes to an application's redirect_uri.
func respond(redirect, mode string, members url.Values) protocol.Answer {
	if mode == formPost {
		return protocol.Answer{URL: redirect, Post: members}
	}
	return protocol.Answer{URL: withQuery(redirect, members)}
}
