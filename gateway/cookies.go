package gateway

import (
	"net/http"
	"strings"
)

// signInPath is where the sign-in service has its pages, and all that has cookies.
const signInPath = "/sign-in"

// signInMetadataPath is where the metadata of its tenants are besides (RFC 8414 §3).
const signInMetadataPath = "/.well-known/oauth-authorization-server" + signInPath

// signInCookies are the names of the sign-in service's cookies, without the prefix that they have over HTTPS. The last
// is followed by the tenant.
var signInCookies = []string{"idp_browser", "idp_lang", "idp_session_"}

// keepCookies leaves a request only those cookies that are the service's own: a session that leaked to another service
// would be good there. All but the console and the pages of sign-in take tokens alone.
func keepCookies(r *http.Request, service string) {
	values, ok := r.Header["Cookie"]
	if !ok {
		return
	}
	pages := service == SignIn && below(r.URL.Path, signInPath)
	if !pages && service != Console {
		delete(r.Header, "Cookie")
		return
	}
	var kept []string
	for pair := range strings.SplitSeq(strings.Join(values, ";"), ";") {
		pair = strings.TrimSpace(pair)
		if name, _, _ := strings.Cut(pair, "="); isSignIn(name) == pages && pair != "" {
			kept = append(kept, pair)
		}
	}
	if delete(r.Header, "Cookie"); len(kept) > 0 {
		r.Header["Cookie"] = []string{strings.Join(kept, "; ")}
	}
}

func isSignIn(cookie string) bool {
	cookie = strings.TrimPrefix(cookie, "__Host-")
	for _, name := range signInCookies {
		if cookie == name || strings.HasSuffix(name, "_") && strings.HasPrefix(cookie, name) {
			return true
		}
	}
	return false
}
