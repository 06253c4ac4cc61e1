package gateway

import (
	"mime"
	"net/http"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/problem"
)

const (
	consolePath = "/console"
	// consoleAPI is where the console's page calls operations: the console puts the session's token on the request and
	// hands it to the gateway, so the limits of each operation apply here too.
	consoleAPI = "/console/api"
)

func isConsole(path string) bool {
	return below(path, consolePath)
}

// below reports whether a path is a prefix or lies below it.
func below(path, prefix string) bool { return path == prefix || strings.HasPrefix(path, prefix+"/") }

// consoleCall returns the path of the operation that a path below consoleAPI stands for.
func consoleCall(path string) (operation string, ok bool) {
	operation, ok = strings.CutPrefix(path, consoleAPI)
	return operation, ok && strings.HasPrefix(operation, "/")
}

// isConsoleCall reports whether the console hands a request back to the gateway, which then counts its failures.
func isConsoleCall(path string) bool {
	_, ok := consoleCall(path)
	return ok
}

// wantsPage reports whether a browser asks for a page: its Accept header names HTML; a wildcard does not count.
func wantsPage(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		if name, params, err := mime.ParseMediaType(part); err == nil && name == "text/html" && params["q"] != "0" {
			return true
		}
	}
	return false
}

// redirectToPage answers a browser at / with the page that people start at.
func (g *Gateway) redirectToPage(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		problem.Write(w, apperr.New(apperr.MethodNotAllowed, "the path has only GET and HEAD"))
		return
	}
	target := "/docs"
	if _, deployed := g.services[Console]; deployed {
		target = consolePath
	}
	w.Header().Set("Vary", "Accept")
	w.Header().Set("Cache-Control", "no-store") // a console can be added later
	http.Redirect(w, r, target, http.StatusFound)
}
