package architecture

import (
	"bytes"
	"go/parser"
	"go/scanner"
	gotoken "go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/idplatform/idplatform/"

// layer says which imports a part of the source tree must not have. If several layers match a file, all of them
// apply.
type layer struct {
	part   func(file string) bool
	forbid []string // import paths; each stands for all paths below it too
	except func(file, path string) bool
	why    string
}

var technology = []string{
	"github.com/gin-gonic", "github.com/danielgtaylor/huma", module + "pkg/rest", "go.mongodb.org",
	"github.com/ncruces", "github.com/nats-io",
}

// layers enforce the section "Where things live" of README.md, for present and future services.
var layers = []layer{
	{part: below("pkg/"), forbid: []string{
		module + "services", module + "gateway", module + "deploy", module + "tools",
	}, why: "pkg is below the services and knows nothing about their records"},
	{part: below("gateway/"), forbid: []string{
		module + "services", module + "console", module + "deploy", module + "tools", module + "pkg/docstore",
	}, why: "the gateway routes paths and knows no service and no store"},
	{part: below("console/"), forbid: []string{
		module + "services", module + "gateway", module + "deploy", module + "tools", module + "pkg/docstore",
		module + "pkg/bus",
	}, why: "the console has no store, and calls the API as every client does"},
	{part: func(file string) bool { return below("sdk/")(file) || below("cli/")(file) }, forbid: []string{
		module + "pkg", module + "services", module + "gateway", module + "console", module + "deploy",
		module + "tools",
	}, why: "the SDK and the command line are clients: all they know is the public API"},
	{part: below("sdk/"), forbid: []string{module + "cli"}, why: "the SDK is below the command line"},
	{
		part: below("services/"), forbid: []string{module + "gateway", module + "deploy", module + "tools"},
		why: "services are below the gateway and deploy",
	},
	{part: below("services/"), forbid: []string{module + "services"}, except: ownOrQuestions,
		why: "services exchange only events and questions over NATS"},
	{part: func(file string) bool {
		return below("services/")(file) && strings.Contains(file, "/internal/") &&
			!strings.Contains(file, "/internal/httpapi/") && !isTest(file)
	}, forbid: technology, except: ofCallouts,
		why: "the domain uses no HTTP, database or NATS: those belong in httpapi, docstore, bus, stream and outbox"},
	{part: func(file string) bool { return below("services/")(file) && !isTest(file) }, forbid: []string{
		"github.com/nats-io/nats.go/jetstream",
	}, why: "services publish events by outbox and read them by stream"},
	{part: func(file string) bool { return !below("pkg/cache/")(file) }, forbid: []string{"github.com/maypok86"},
		why: "each package that uses otter compiles it again: see pkg/cache"},
	{part: below("deploy/"), forbid: []string{module + "tools"}, why: "tools run and check what is deployed"},
	{part: func(file string) bool { return !isTest(file) }, why: "the package is only for tests", forbid: []string{
		"testing", "github.com/stretchr/testify", module + "pkg/testkit", module + "pkg/docstore/docstoretest",
		module + "console/issuertest", module + "services/permissions/internal/enginetest",
		module + "services/sign-in/internal/testkit",
	}},
}

func below(folder string) func(string) bool {
	return func(file string) bool { return strings.HasPrefix(file, folder) }
}

// isTest reports whether a file is a test or belongs to a package that only tests import.
func isTest(file string) bool {
	return strings.HasSuffix(file, "_test.go") || strings.Contains(file, "/testkit/") ||
		strings.Contains(file, "/docstoretest/") || strings.Contains(file, "/mongotest/") ||
		strings.Contains(file, "/enginetest/")
}

// ofCallouts reports whether a file of the events service answers NATS servers.
func ofCallouts(file, path string) bool {
	return within(path, "github.com/nats-io") && below("services/events/internal/callout/")(file)
}

// ownOrQuestions reports whether path is of the file's own service or of the questions.
func ownOrQuestions(file, path string) bool {
	service := strings.Split(file, "/")[1]
	return within(path, module+"services/"+service) || within(path, module+"services/questions")
}

func within(path, root string) bool { return path == root || strings.HasPrefix(path, root+"/") }

// fault says which rule an import of a file breaks; "" if none.
func fault(file, path string) string {
	for _, l := range layers {
		if !l.part(file) || l.except != nil && l.except(file, path) {
			continue
		}
		for _, root := range l.forbid {
			if within(path, root) {
				return file + " imports " + path + ": " + l.why
			}
		}
	}
	return ""
}

// eachSource calls see with every Go file of all modules, so that a new service is checked without a change here.
func eachSource(t *testing.T, see func(file string, text []byte)) {
	t.Helper()
	root, seen := "../..", 0
	require.NoError(t, filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		skipped := strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || entry.Name() == "bin" ||
			entry.Name() == "node_modules"
		if entry.IsDir() && name != root && skipped {
			return fs.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		see(filepath.ToSlash(relative), text)
		seen++
		return err
	}))
	require.Greater(t, seen, 500, "the source tree was not found")
}

func TestImports(t *testing.T) {
	t.Parallel()
	eachSource(t, func(file string, text []byte) {
		source, err := parser.ParseFile(gotoken.NewFileSet(), file, text, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range source.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			assert.Empty(t, fault(file, path))
		}
	})
}

// TestWaits: tests wait with pkg/testkit/wait, which is patient and asks in the test's goroutine. Those that do not
// import pkg do without.
func TestWaits(t *testing.T) {
	t.Parallel()
	eachSource(t, func(file string, text []byte) {
		if !strings.HasPrefix(file, "cli/") && !strings.HasPrefix(file, "console/browsertest/") {
			assert.False(t, bytes.Contains(text, []byte("."+"Eventually")), file)
		}
	})
}

// TestLines: a line has at most 120 columns, of which a tab takes four, unless it is a field with its tag, or half
// of it is literals that cannot be broken: JSON, and those without a space, such as hashes.
func TestLines(t *testing.T) {
	t.Parallel()
	const columns = 120
	eachSource(t, func(file string, text []byte) {
		set, literals := gotoken.NewFileSet(), map[int]int{}
		source := set.AddFile(file, -1, len(text))
		var s scanner.Scanner
		s.Init(source, text, nil, 0)
		for at, kind, literal := s.Scan(); kind != gotoken.EOF; at, kind, literal = s.Scan() {
			if kind == gotoken.STRING && (literal[0] == '`' || !strings.Contains(literal, " ")) {
				for i, line := range strings.Split(literal, "\n") {
					literals[source.Line(at)+i] += len(line)
				}
			}
			if fieldTag.MatchString(literal) {
				literals[source.Line(at)] = columns
			}
		}
		for i, line := range strings.Split(string(text), "\n") {
			width := utf8.RuneCountInString(line) + 3*strings.Count(line, "\t")
			assert.True(t, width <= columns || literals[i+1] > columns/2, "%s:%d has %d columns", file, i+1, width)
		}
	})
}

var fieldTag = regexp.MustCompile("^`[a-z]+:\".*\"`$")

// TestDecisions shows that the index of the decisions has each page, with its title.
func TestDecisions(t *testing.T) {
	t.Parallel()
	index, err := os.ReadFile("../../deploy/adr/README.md")
	require.NoError(t, err)
	pages, err := filepath.Glob("../../deploy/adr/0*.md")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		title, _, _ := strings.Cut(strings.TrimPrefix(string(text), "# "), "\n")
		number, title, _ := strings.Cut(title, ". ")
		line := "| [" + number + "](" + filepath.Base(page) + ") | " + title + " |"
		require.Contains(t, string(index), line+"\n")
	}
}

// TestServices: each service is deployed in every way in which the others are, and its events are in the catalogue.
func TestServices(t *testing.T) {
	t.Parallel()
	programs, err := filepath.Glob("../../services/*/cmd/idp-*")
	require.NoError(t, err)
	require.NotEmpty(t, programs)
	for _, program := range programs {
		name := strings.TrimPrefix(filepath.Base(program), "idp-")
		for file, line := range map[string]string{
			"README.md":                          "(services/" + name + "/README.md)",
			"deploy/README.md":                   "`idp-" + name + "`",
			"deploy/standalone/go.mod":           "services/" + name + " => ../../services/" + name,
			"docker-compose.yml":                 "PROGRAM: idp-" + name + "}",
			"deploy/k8s/base/kustomization.yaml": "  - " + name + ".yaml",
			"deploy/monitoring/prometheus.yml":   "service: " + name + "}",
			"services/" + name + "/README.md":    "# ",
			"services/events/internal/catalogue/types/" + name + ".json": `"type": `,
		} {
			text, err := os.ReadFile("../../" + file)
			require.NoError(t, err, name)
			assert.True(t, strings.Contains(string(text), line), "%s lacks %s", file, line)
		}
	}
}

// TestMakefile: no target takes the result of an earlier run. go test does so when only files outside the test's module
// have changed, and many tests read such files.
func TestMakefile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	runs := regexp.MustCompile(`(?m)^[^#\n]*(?:go test |--packages=).*`).FindAllString(string(text), -1)
	require.NotEmpty(t, runs)
	for _, run := range runs {
		assert.Regexp(t, ` -(count=1|c|fuzz|bench)\b`, run)
	}
}

// TestReadmes: the README of each service begins with its tour, ends with its settings and its events, and leaves the
// figures to FIGURES.md.
func TestReadmes(t *testing.T) {
	t.Parallel()
	readmes, err := filepath.Glob("../../services/*/README.md")
	require.NoError(t, err)
	require.NotEmpty(t, readmes)
	questions := questionsOf(t)
	for _, readme := range readmes {
		t.Run(filepath.Base(filepath.Dir(readme)), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(readme)
			require.NoError(t, err)
			var sections []string
			for line := range strings.Lines(string(text)) {
				if name, ok := strings.CutPrefix(line, "## "); ok {
					sections = append(sections, strings.TrimSpace(name))
				}
			}
			require.GreaterOrEqual(t, len(sections), 2)
			assert.LessOrEqual(t, slices.Index(sections, "A tour"), 0)
			assert.Equal(t, []string{"Settings", "Events and questions"}, sections[len(sections)-2:])
			assert.Contains(t, string(text), "(FIGURES.md)")
			assert.FileExists(t, filepath.Join(filepath.Dir(readme), "FIGURES.md"))
			for _, question := range questions[filepath.Base(filepath.Dir(readme))] {
				assert.Contains(t, string(text), "`"+question+"`", "a question that the service answers")
			}
		})
	}
}

var declaredQuestion = regexp.MustCompile(`Service: "([a-z-]+)", Name: "([a-z-]+)"`)

// questionsOf are the names of the questions that each service answers.
func questionsOf(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("../../services/questions/*.go")
	require.NoError(t, err)
	questions := map[string][]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, found := range declaredQuestion.FindAllStringSubmatch(string(text), -1) {
			questions[found[1]] = append(questions[found[1]], found[2])
		}
	}
	require.Greater(t, len(questions), 4)
	return questions
}

// TestImportRules shows that each rule refuses what it should, and nothing else.
func TestImportRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file, path string
		refused    bool
	}{
		{"pkg/rest/rest.go", module + "services/users", true},
		{"pkg/rest/rest.go", module + "pkg/docstore", false},
		{"gateway/proxy.go", module + "pkg/docstore/sqlitestore", true},
		{"gateway/proxy.go", module + "services/users", true},
		{"gateway/proxy.go", module + "console", true},
		{"console/console.go", module + "gateway", true},
		{"console/console.go", module + "services/users", true},
		{"console/console.go", module + "pkg/secret", false},
		{"cli/main.go", module + "pkg/secret", true},
		{"cli/main.go", module + "sdk/go", false},
		{"sdk/go/client.go", module + "gateway", true},
		{"sdk/go/client_test.go", module + "services/users", true},
		{"sdk/go/client.go", module + "cli/internal/output", true},
		{"services/users/users.go", module + "services/organization", true},
		{"services/users/users_test.go", module + "services/organization", true},
		{"services/users/users.go", module + "services/users/internal/user", false},
		{"services/users/users.go", module + "services/questions", false},
		{"services/users/users.go", module + "gateway", true},
		{"services/questions/users.go", module + "services/users", true},
		{"services/events/internal/delivery/webhook.go", "github.com/nats-io/nats.go", true},
		{"services/events/internal/delivery/webhook.go", module + "pkg/rest", true},
		{"services/events/internal/callout/callout.go", "github.com/nats-io/nats.go", false},
		{"services/events/internal/callout/callout.go", module + "pkg/rest", true},
		{"services/events/events.go", "github.com/nats-io/nats.go/jetstream", true},
		{"pkg/stream/log.go", "github.com/nats-io/nats.go/jetstream", false},
		{"services/events/internal/httpapi/api.go", module + "pkg/rest", false},
		{"services/events/internal/delivery/webhook_test.go", "github.com/nats-io/nats.go", false},
		{"services/events/events.go", "testing", true},
		{"services/events/events.go", "testing/fstest", true},
		{"pkg/testkit/service.go", "testing", false},
		{"deploy/standalone/platform.go", module + "services/users", false},
	} {
		assert.Equal(t, c.refused, fault(c.file, c.path) != "", "%s imports %s", c.file, c.path)
	}
}
