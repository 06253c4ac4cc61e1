package scim_test

import (
	"bufio"
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
)

// others is a process with other implementations of SCIM. It answers line by line.
type others struct {
	t   *testing.T
	in  *json.Encoder
	out *bufio.Scanner
}

// question is a filter or operations on a resource.
type question struct {
	Filter     *string         `json:"filter,omitempty"`
	Operations []any           `json:"operations,omitempty"`
	Resource   resource.Object `json:"resource"`
}

// answer is what an implementation makes of a question.
type answer struct {
	Value json.RawMessage
	Error *string
}

const npm = "testdata/npm"

// install fetches the packages, unless they are there: once, because the tests run at the same time.
var install = sync.OnceValues(func() (said []byte, err error) {
	if _, err := os.Stat(npm + "/node_modules/.package-lock.json"); err == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	ci := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-progress")
	ci.Dir = npm
	return ci.CombinedOutput()
})

// startOthers starts the process. Without Node, or without the packages and a registry to have them from, the test is
// skipped, unless IDP_TEST_NPM_REQUIRED is 1.
func startOthers(t *testing.T) *others {
	t.Helper()
	unable := t.Skipf
	if required() {
		unable = t.Fatalf
	}
	if _, err := exec.LookPath("node"); err != nil {
		unable("node is needed to compare with other implementations: %v", err)
	}
	if text, err := install(); err != nil {
		unable("npm ci: %v\n%s", err, text)
	}
	command := exec.CommandContext(t.Context(), "node", "compare.mjs")
	command.Dir, command.Stderr = npm, os.Stderr
	in, err := command.StdinPipe()
	require.NoError(t, err)
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	t.Cleanup(func() { _ = command.Wait() })
	t.Cleanup(func() { _ = in.Close() })
	return &others{t, json.NewEncoder(in), bufio.NewScanner(out)}
}

// ask asks all questions at once, and returns the answers by implementation.
func (o *others) ask(questions []question) []map[string]answer {
	o.t.Helper()
	sent := make(chan error, 1)
	go func() {
		for i := range questions {
			if err := o.in.Encode(questions[i]); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	answers := make([]map[string]answer, len(questions))
	for i := range answers {
		require.True(o.t, o.out.Scan(), "the process with the other implementations has ended")
		require.NoError(o.t, json.Unmarshal(o.out.Bytes(), &answers[i]))
	}
	require.NoError(o.t, <-sent)
	return answers
}

// tally counts the named differences.
type tally map[string]int

// check shows that all of them are in the list, and where the comparison is required, that each of the list has had a
// case.
func (c tally) check(t *testing.T, names ...string) {
	t.Helper()
	slices.Sort(names)
	found := slices.Sorted(maps.Keys(c))
	for _, name := range found {
		t.Logf("%6d %s", c[name], name)
	}
	if required() {
		require.Equal(t, names, found)
	} else {
		require.Subset(t, names, found)
	}
}

// cases is how many random requests are compared: 10,000 where the comparison is required.
func cases() int {
	if required() {
		return 10000
	}
	return 500
}

func required() bool { return os.Getenv("IDP_TEST_NPM_REQUIRED") == "1" }

func text(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return strings.TrimSpace(b.String())
}
