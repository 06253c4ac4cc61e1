// Command quickstart plays the quick starts of the SDKs' READMEs, the blocks of code marked "quickstart". Each runs
// against a fresh platform. The command fails if one does not print what its README says.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/idplatform/idplatform/tools/internal/launch"
)

// quickstart is where a README is, and how its program runs: in a folder from which the SDK is found.
type quickstart struct {
	folder, file string
	command      []string
}

var quickstarts = []quickstart{
	{"sdk/go", "main.go", []string{"go", "run"}},
	{"sdk/typescript", "main.mjs", []string{"node"}},
}

func main() {
	program := flag.String("program", "bin/idp-standalone", "the platform's program")
	flag.Parse()
	for _, q := range quickstarts {
		if err := q.play(context.Background(), *program); err != nil {
			fmt.Fprintf(os.Stderr, "quickstart: %s: %v\n", q.folder, err)
			os.Exit(1)
		}
		fmt.Println(q.folder + ": the quick start prints what its README says")
	}
}

var block = regexp.MustCompile("(?s)```\\w+ quickstart\n(.*?)```\n\nIt prints `([^`]+)`")

// play runs the program of the README in a folder of its own below the SDK's, so that its imports are the SDK.
func (q quickstart) play(ctx context.Context, program string) error {
	readme, err := os.ReadFile(filepath.Join(q.folder, "README.md"))
	if err != nil {
		return err
	}
	found := block.FindSubmatch(readme)
	if found == nil {
		return errors.New("the README has no quick start")
	}
	data, err := os.MkdirTemp("", "idp-quickstart-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(data)
	below, err := os.MkdirTemp(q.folder, "quickstart-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(below)
	if err := os.WriteFile(filepath.Join(below, q.file), found[1], 0o600); err != nil {
		return err
	}
	platform, err := launch.Start(ctx, program, data)
	if err != nil {
		return err
	}
	defer platform.Stop()
	var administrator struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	text, err := os.ReadFile(filepath.Join(data, "administrator.json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &administrator); err != nil {
		return err
	}
	run := exec.CommandContext(ctx, q.command[0], append(q.command[1:], q.file)...)
	run.Dir, run.Stderr = below, os.Stderr
	run.Env = append(os.Environ(), "URL="+platform.Address, "CLIENT_ID="+administrator.ID,
		"CLIENT_SECRET="+administrator.Secret)
	got, err := run.Output()
	if err != nil {
		return err
	}
	if want := string(found[2]); strings.TrimSpace(string(got)) != want {
		return fmt.Errorf("it prints %q, and the README says %q", got, want)
	}
	return nil
}
