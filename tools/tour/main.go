// Command tour runs the tours of READMEs: it runs each command of the code blocks marked "console tour", in one shell
// for each file, prints the command and its output, and fails if the output differs from the text below the command.
//
// In that text … stands for any output. Commands find the platform's address in IDP, and the given program on the
// PATH. tour starts a platform in a temporary folder; one that runs already it uses only if it is told its address. In
// each file it then replaces acme by a tenant of its own.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/tools/internal/launch"
)

func main() {
	program := flag.String("program", "bin/idp-standalone", "the platform's program")
	address := flag.String("address", os.Getenv("IDP"),
		"the address of a running platform; empty: start one (default: IDP)")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: tour [-program P] [-address URL] README.md …")
		os.Exit(2)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, *program, *address, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "tour:", err)
		os.Exit(1)
	}
}

// step is a command and its expected output.
type step struct {
	place   string // file:line
	command string
	want    string
}

func run(ctx context.Context, program, address string, readmes []string) error {
	tours := make([][]step, len(readmes))
	for i, name := range readmes {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if tours[i] = parse(name, string(text)); len(tours[i]) == 0 {
			return fmt.Errorf("%s has no tour", name)
		}
	}
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "idp-tour-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// The command line has a configuration and a cache of its own, not the user's.
	env := append(os.Environ(), "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"), "LC_ALL=C.UTF-8",
		"XDG_CONFIG_HOME="+filepath.Join(dir, "config"), "XDG_CACHE_HOME="+filepath.Join(dir, "cache"))
	tenant := "acme"
	if address != "" {
		if err := running(ctx, address); err != nil {
			return fmt.Errorf("the platform at %s: %w", address, err)
		}
		tenant = "tour-" + strings.ToLower(regexp.MustCompile(`[^A-Za-z0-9]`).ReplaceAllString(secret.Token(8), ""))
		fmt.Printf("using the platform at %s\n\n", address)
		env = append(env, "IDP="+address)
	} else {
		data := filepath.Join(dir, "data")
		platform, err := launch.Start(ctx, program, data)
		if err != nil {
			return err
		}
		defer platform.Stop()
		fmt.Printf("started a platform at %s, with the data folder %s\n\n", platform.Address, data)
		env = append(env, "IDP="+platform.Address, "IDP_DATA_DIR="+data)
	}
	for i, name := range readmes {
		fmt.Printf("== %s\n\n", name)
		own := tenant
		if i > 0 {
			own = fmt.Sprintf("%s-%d", tenant, i+1)
		}
		if err := play(ctx, tours[i], own, env); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// parse finds the steps. A command starts with "$ " and continues after a backslash at the end of a line or in a
// here-document.
func parse(name, text string) []step {
	var steps []step
	inTour, more := false, ""
	for i, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			inTour, more = line == "```console tour", ""
		case !inTour:
		case more != "":
			s := &steps[len(steps)-1]
			s.command += "\n" + line
			if more == `\` && !strings.HasSuffix(line, `\`) || more == line {
				more = ""
			}
		case strings.HasPrefix(line, "$ "):
			steps = append(steps, step{place: fmt.Sprintf("%s:%d", name, i+1), command: line[2:]})
			if strings.HasSuffix(line, `\`) {
				more = `\`
			} else if m := regexp.MustCompile(`<<'?(\w+)'?`).FindStringSubmatch(line); m != nil {
				more = m[1]
			}
		case len(steps) > 0:
			steps[len(steps)-1].want += line + "\n"
		}
	}
	return steps
}

// running returns an error if no platform answers at an address, or it is not ready.
func running(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET /readyz: %s", response.Status)
	}
	return nil
}

// stepLimit is how long one step may take.
const stepLimit = 2 * time.Minute

// play runs the steps in one shell, so that a variable set in one step is set in the next.
func play(ctx context.Context, steps []step, tenant string, env []string) error {
	shell := exec.CommandContext(ctx, "bash", "--noprofile", "--norc")
	shell.Env, shell.Stderr = env, os.Stderr
	in, err := shell.StdinPipe()
	if err != nil {
		return err
	}
	out, err := shell.StdoutPipe()
	if err != nil {
		return err
	}
	if err := shell.Start(); err != nil {
		return err
	}
	defer func() {
		_ = in.Close()
		_ = shell.Wait()
	}()
	const end = "---end of step---"
	lines := bufio.NewReader(out)
	failed := 0
	for _, s := range steps {
		command, want := strings.ReplaceAll(s.command, "acme", tenant), strings.ReplaceAll(s.want, "acme", tenant)
		fmt.Printf("$ %s\n", command)
		if _, err := fmt.Fprintf(in, "%s\necho; echo '%s'\n", command, end); err != nil {
			return err
		}
		var got strings.Builder
		timeout := time.AfterFunc(stepLimit, func() { _ = shell.Process.Kill() })
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return fmt.Errorf("%s: the shell ended, or took more than %v: %w", s.place, stepLimit, err)
			}
			if strings.TrimSpace(line) == end {
				break
			}
			got.WriteString(line)
		}
		timeout.Stop()
		fmt.Println(strings.TrimSpace(got.String()))
		if !matches(want, got.String()) {
			failed++
			fmt.Printf("\n!!! %s expects:\n%s\n", s.place, strings.TrimSpace(want))
		}
		fmt.Println()
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d steps differ", failed, len(steps))
	}
	fmt.Printf("all %d steps agree\n\n", len(steps))
	return nil
}

// matches compares an output with the expected one, in which … stands for any text.
func matches(want, got string) bool {
	parts := strings.Split(strings.TrimSpace(want), "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	pattern := regexp.MustCompile(`(?s)^` + strings.Join(parts, `.*`) + `$`)
	return pattern.MatchString(strings.TrimSpace(strings.ReplaceAll(got, "\r", "")))
}
