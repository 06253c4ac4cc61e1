package gateway

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"io"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/openapi"
	"github.com/idplatform/idplatform/pkg/problem"
)

const (
	openAPIPath     = "/openapi.json"
	openAPIPathYAML = "/openapi.yaml"
	openAPIPath30   = "/openapi-3.0.json"
)

// packed is builtDocument, compressed. make generate writes it.
//
//go:embed openapi.json.gz
var packed []byte

// builtDocument has the operations of all services as they were when the gateway was built.
func builtDocument() ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// newOpenAPI serves the operations of the deployed services as one OpenAPI document. It is made at the first request.
func newOpenAPI(deployed map[string]service) http.Handler {
	made := sync.OnceValues(func() (map[string]openAPIForm, error) { return openAPIForms(deployed) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			problem.Write(w, apperr.New(apperr.MethodNotAllowed, "the path has only GET and HEAD"))
			return
		}
		forms, err := made()
		if err != nil {
			problem.Write(w, err)
			return
		}
		form, h := forms[r.URL.Path], w.Header()
		h.Set("Content-Type", form.contentType)
		h.Set("Cache-Control", "no-cache")
		h.Set("Etag", form.etag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(form.body)) // If-None-Match, HEAD
	})
}

type openAPIForm struct {
	contentType, etag string
	body              []byte
}

// openAPIForms returns the forms of the document by their paths.
func openAPIForms(deployed map[string]service) (map[string]openAPIForm, error) {
	text, err := builtDocument()
	if err != nil {
		return nil, err
	}
	document, err := openapi.Parse(text)
	if err != nil {
		return nil, err
	}
	paths, _ := document["paths"].(map[string]any)
	maps.DeleteFunc(paths, func(path string, _ any) bool {
		name, _ := routes.find(path)
		_, is := deployed[name]
		return !is
	})
	forms, err := openapi.FormsOf(document)
	if err != nil {
		return nil, err
	}
	of := func(contentType string, body []byte) openAPIForm {
		sum := sha256.Sum256(body)
		return openAPIForm{contentType, `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`, body}
	}
	return map[string]openAPIForm{
		openAPIPath:     of("application/json; charset=utf-8", forms.JSON),
		openAPIPathYAML: of("application/yaml; charset=utf-8", forms.YAML),
		openAPIPath30:   of("application/json; charset=utf-8", forms.JSON30),
	}, nil
}
