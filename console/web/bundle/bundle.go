package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// output is the built files.
type output struct {
	manifest manifest
	files    map[string][]byte   // name → content
	scripts  map[string][]string // language → the names of its scripts
}

// manifest tells the console's pages package which files the page needs.
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

// targets are the oldest browsers: those with CSS nesting, light-dark() and popover.
var targets = []api.Engine{
	{Name: api.EngineChrome, Version: "125"}, {Name: api.EngineFirefox, Version: "125"},
	{Name: api.EngineSafari, Version: "17.5"},
}

// bundle builds everything in memory. The same sources give the same bytes.
func bundle(web string, maps bool) (*output, error) {
	web, err := filepath.Abs(web)
	if err != nil {
		return nil, err
	}
	b := &output{files: map[string][]byte{}, scripts: map[string][]string{}}
	b.manifest.Languages = map[string]scripts{}
	for _, language := range languages {
		if err := b.addScripts(web, language, maps); err != nil {
			return nil, err
		}
	}
	if err := b.styles(web, maps); err != nil {
		return nil, err
	}
	icon, err := os.ReadFile(filepath.Join(web, "src/icon.svg"))
	if err != nil {
		return nil, err
	}
	b.manifest.Icon = "icon-" + hash(icon) + ".svg"
	b.files[b.manifest.Icon] = icon
	return b, nil
}

func hash(body []byte) string {
	sum := sha256.Sum256(body)
	return base32.StdEncoding.EncodeToString(sum[:5])
}

func (b *output) addScripts(web, language string, maps bool) error {
	vendor := func(name string) string { return filepath.Join(web, "vendor", name) }
	sdk := filepath.Join(web, "../../sdk/typescript/src")
	options := api.BuildOptions{
		EntryPoints: []string{filepath.Join(web, "src/main.tsx")}, AbsWorkingDir: web,
		Bundle: true, Splitting: true, Format: api.FormatESModule, Outdir: "/out", Write: false, Metafile: true,
		EntryNames: "[name]-[hash]", ChunkNames: "[name]-[hash]",
		MinifyWhitespace: !maps, MinifyIdentifiers: !maps, MinifySyntax: !maps,
		Engines: targets, Charset: api.CharsetUTF8, LegalComments: api.LegalCommentsNone, LogLevel: api.LogLevelError,
		JSX: api.JSXAutomatic, JSXImportSource: "preact",
		TsconfigRaw: `{"compilerOptions":{"verbatimModuleSyntax":true}}`, // its paths are for types
		Alias: map[string]string{
			"preact": vendor("preact/dist/preact.mjs"), "preact/hooks": vendor("preact/hooks/dist/hooks.mjs"),
			"preact/jsx-runtime":   vendor("preact/jsx-runtime/dist/jsxRuntime.mjs"),
			"@preact/signals-core": vendor("signals-core/dist/signals-core.mjs"),
			"@preact/signals":      vendor("signals/dist/signals.mjs"),
			"@idplatform/sdk":      filepath.Join(sdk, "index.ts"),
		},
		Define:  map[string]string{"BUILT_FOR": `"` + language + `"`},
		Plugins: []api.Plugin{operationsPlugin(sdk), languagePlugin(filepath.Join(web, "src"), language)},
	}
	if maps {
		options.Sourcemap = api.SourceMapLinked
	}
	result := api.Build(options)
	if len(result.Errors) > 0 {
		return failed(result.Errors)
	}
	for _, file := range result.OutputFiles {
		name := filepath.Base(file.Path)
		b.files[name] = file.Contents
		if strings.HasSuffix(name, ".js") {
			b.scripts[language] = append(b.scripts[language], name)
		}
	}
	found, err := readMeta(result.Metafile)
	b.manifest.Languages[language] = found
	return err
}

// readMeta finds the entry, the screens, and what they import at once.
func readMeta(text string) (found scripts, err error) {
	var meta metafile
	if err := json.Unmarshal([]byte(text), &meta); err != nil {
		return found, err
	}
	screens := map[string]string{} // name → its file
	for name, o := range meta.Outputs {
		if o.EntryPoint == "src/main.tsx" {
			found.Script, found.Preload = filepath.Base(name), meta.imports(name, nil)
		} else if m := screenEntry.FindStringSubmatch(o.EntryPoint); m != nil {
			screens[m[1]] = name
		}
	}
	if found.Script == "" {
		return found, errors.New("the bundle has no entry point")
	}
	found.Screens = map[string][]string{}
	for screen, name := range screens {
		files := meta.imports(name, append([]string{found.Script}, found.Preload...))
		found.Screens[screen] = append([]string{filepath.Base(name)}, files...)
	}
	return found, nil
}

var screenEntry = regexp.MustCompile(`^src/screens/([a-z]+)/index\.tsx$`)

// metafile is what esbuild tells of the files that it wrote.
type metafile struct {
	Outputs map[string]struct {
		EntryPoint string `json:"entryPoint"`
		Imports    []struct{ Path, Kind string }
	}
}

// imports are the files that a file imports at once, and what those import, without the known ones.
func (m metafile) imports(name string, known []string) []string {
	found := []string{}
	var follow func(name string)
	follow = func(name string) {
		for _, i := range m.Outputs[name].Imports {
			file := filepath.Base(i.Path)
			if i.Kind == "import-statement" && !slices.Contains(known, file) && !slices.Contains(found, file) {
				found = append(found, file)
				follow(i.Path)
			}
		}
	}
	follow(name)
	sort.Strings(found)
	return found
}

// styles joins src/styles/*.css, then those of the screens, in the order of their names.
func (b *output) styles(web string, maps bool) error {
	var imports strings.Builder
	for _, pattern := range []string{"src/styles/*.css", "src/screens/*/*.css"} {
		found, err := filepath.Glob(filepath.Join(web, pattern))
		if err != nil {
			return err
		}
		for _, file := range found {
			fmt.Fprintf(&imports, "@import %q;\n", file)
		}
	}
	result := api.Build(api.BuildOptions{
		Stdin:  &api.StdinOptions{Contents: imports.String(), ResolveDir: web, Loader: api.LoaderCSS},
		Bundle: true, Write: false, Outdir: "/out", LogLevel: api.LogLevelError, Engines: targets,
		MinifyWhitespace: !maps, MinifySyntax: !maps,
	})
	if len(result.Errors) > 0 {
		return failed(result.Errors)
	}
	body := result.OutputFiles[0].Contents
	name := "styles-" + hash(body) + ".css"
	b.manifest.Styles, b.files[name] = []string{name}, body
	return nil
}

func failed(messages []api.Message) error {
	lines := api.FormatMessages(messages, api.FormatMessagesOptions{Kind: api.ErrorMessage})
	return errors.New(strings.Join(lines, "\n"))
}

func compress(body []byte) []byte {
	var text bytes.Buffer
	w, _ := gzip.NewWriterLevel(&text, gzip.BestCompression) // the level is valid
	_, _ = w.Write(body)                                     // a buffer takes everything
	_ = w.Close()
	return text.Bytes()
}

// sizes are the gzipped bytes of a language's scripts: of the first screen (without the screen itself, which is loaded
// with its data), and of all.
func (b *output) sizes(language string) (first, all int) {
	of := b.manifest.Languages[language]
	for _, name := range b.scripts[language] {
		size := len(compress(b.files[name]))
		all += size
		if name == of.Script || slices.Contains(of.Preload, name) {
			first += size
		}
	}
	return first, all
}

// write replaces the files in the folder.
func (b *output) write(out string) error {
	assets := filepath.Join(out, "assets")
	if err := os.RemoveAll(assets); err != nil {
		return err
	}
	if err := os.MkdirAll(assets, 0o755); err != nil {
		return err
	}
	for name, body := range b.files {
		if small := compress(body); len(small) < len(body) {
			name, body = name+".gz", small
		}
		if err := os.WriteFile(filepath.Join(assets, name), body, 0o644); err != nil {
			return err
		}
	}
	text, err := json.Marshal(b.manifest)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "manifest.json"), text, 0o644)
}
