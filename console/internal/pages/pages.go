// Package pages serves the browser application: its page, and its files with hashed names.
package pages

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"html/template"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/problem"
)

// AssetPrefix is where the files are. A tenant's name cannot be ~, so no screen has such a path.
const AssetPrefix = "/console/~/assets/"

// policy lets the page run its own scripts and call this host, and nothing else; no text can become a script.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; " +
	"connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// manifest is what the build says about its files.
type manifest struct {
	Languages map[string]scripts `json:"languages"`
	Styles    []string           `json:"styles"`
	Icon      string             `json:"icon"`
}

// scripts are the scripts of a language.
type scripts struct {
	Script  string              `json:"script"`
	Preload []string            `json:"preload"` // what the script imports at once
	Screens map[string][]string `json:"screens"` // what the screen of that name needs besides
}

// The languages that the build makes scripts for.
const english, chinese = "en", "zh"

// languageCookie is set by the browser application when somebody chooses a language.
const languageCookie = "idp_console_lang"

// languageOf is the language that a browser has chosen, or Chinese for one that reads it.
func languageOf(r *http.Request) string {
	if c, err := r.Cookie(languageCookie); err == nil && (c.Value == english || c.Value == chinese) {
		return c.Value
	}
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Language"), ","), ",") {
		if strings.HasPrefix(strings.ToLower(strings.TrimSpace(part)), chinese) {
			return chinese
		}
	}
	return english
}

// Pages serves the application's files from a folder. It is safe for concurrent use.
type Pages struct {
	page  *template.Template
	files map[string]file
	manifest
	Built bool // false if `make build` has not run
}

// file is a file as it is sent: compressed, unless that does not make it smaller.
type file struct {
	contentType string
	body        []byte
	compressed  bool
}

// New reads the folder that the build wrote. Without a build the page says so.
func New(dist fs.FS) (*Pages, error) {
	p := &Pages{files: map[string]file{}}
	text, err := fs.ReadFile(dist, "manifest.json")
	if errors.Is(err, fs.ErrNotExist) {
		p.page = template.Must(template.New("").Parse(unbuilt))
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &p.manifest); err != nil {
		return nil, err
	}
	p.Built, p.page = true, template.Must(template.New("").Parse(built))
	entries, err := fs.ReadDir(dist, "assets")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		body, err := fs.ReadFile(dist, "assets/"+entry.Name())
		if err != nil {
			return nil, err
		}
		name, compressed := strings.CutSuffix(entry.Name(), ".gz")
		p.files[name] = file{mime.TypeByExtension(path.Ext(name)), body, compressed}
	}
	return p, nil
}

// Page writes the page, which has what the console knows about the session, and the script of the browser's language.
// It is the same at every path, except that it begins to load the files of the screen that the script will show; "" is
// none.
func (p *Pages) Page(w http.ResponseWriter, r *http.Request, session any, screen string) {
	about, err := json.Marshal(session)
	if err != nil {
		problem.Write(w, err)
		return
	}
	var body bytes.Buffer
	language := languageOf(r)
	of := p.Languages[language]
	if err := p.page.Execute(&body, map[string]any{
		"Prefix": AssetPrefix, "Manifest": p.manifest, "Language": language, "Scripts": of, "Session": string(about),
		"Screen": of.Screens[screen],
	}); err != nil {
		problem.Write(w, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(body.Len()))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body.Bytes())
	}
}

// Asset writes a file of the build. Its name has a hash of its content, so it can be kept for ever.
func (p *Pages) Asset(w http.ResponseWriter, r *http.Request) {
	f, ok := p.files[strings.TrimPrefix(r.URL.Path, AssetPrefix)]
	if !ok {
		problem.Write(w, apperr.New(apperr.NotFound, "no such path"))
		return
	}
	h, body := w.Header(), f.body
	if f.compressed {
		h.Set("Vary", "Accept-Encoding")
		if acceptsGzip(r.Header.Get("Accept-Encoding")) {
			h.Set("Content-Encoding", "gzip")
		} else {
			var err error
			if body, err = expand(body); err != nil {
				problem.Write(w, err)
				return
			}
		}
	}
	h.Set("Content-Type", f.contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}

func acceptsGzip(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, params, _ := strings.Cut(strings.TrimSpace(part), ";")
		if name == "gzip" || name == "*" {
			q := strings.ReplaceAll(params, " ", "")
			return q != "q=0" && q != "q=0.0"
		}
	}
	return false
}

func expand(body []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}

const built = `<!doctype html>
<html lang="{{.Language}}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
<meta name="idp-session" content="{{.Session}}">
<title>idplatform</title>
{{with .Manifest.Icon}}<link rel="icon" type="image/svg+xml" href="{{$.Prefix}}{{.}}">
{{end}}{{range .Manifest.Styles}}<link rel="stylesheet" href="{{$.Prefix}}{{.}}">
{{end}}{{range .Scripts.Preload}}<link rel="modulepreload" href="{{$.Prefix}}{{.}}">
{{end}}{{range .Screen}}<link rel="modulepreload" href="{{$.Prefix}}{{.}}">
{{end}}<script type="module" src="{{.Prefix}}{{.Scripts.Script}}"></script>
</head>
<body><div id="app"></div><noscript>The console needs JavaScript. The API does not: see /docs.</noscript></body>
</html>
`

const unbuilt = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>idplatform</title></head>
<body><h1>The console is not built</h1>
<p>This program was built without the console's files. Run <code>make build</code>, which needs Go alone.</p></body>
</html>
`
