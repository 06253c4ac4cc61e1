// Package launch starts the platform's program for the commands that use it from outside, as a client does.
package launch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
)

// Platform is a platform in a process of its own. Stop ends it.
type Platform struct {
	Address string // such as http://127.0.0.1:34567
	dir     string
	cmd     *exec.Cmd
}

var apiLine = regexp.MustCompile(`API\s+(http://[^/]+)`)

// Start starts the program on a data folder, on a free port of 127.0.0.1, and returns when it prints its address. Its
// log, from warnings on, goes to the standard error. env are further settings, such as IDP_ADMIN_LISTEN=127.0.0.1:9090.
func Start(ctx context.Context, program, dir string, env ...string) (*Platform, error) {
	cmd := exec.CommandContext(ctx, program, "serve")
	cmd.Env = append(append(os.Environ(), "IDP_DATA_DIR="+dir, "IDP_LISTEN=127.0.0.1:0", "IDP_ADMIN_LISTEN=off",
		"IDP_NATS_LISTEN=127.0.0.1:0", "IDP_LOG_LEVEL=warn"), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Platform{dir: dir, cmd: cmd}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := apiLine.FindStringSubmatch(lines.Text()); m != nil {
			p.Address = m[1]
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return p, nil
		}
	}
	p.Stop()
	return nil, errors.Join(errors.New("the platform did not start"), lines.Err())
}

// Stop ends the platform in order and waits for that.
func (p *Platform) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	_ = p.cmd.Wait()
}

// Token returns a token of the administrator, with the scopes and for the tenant.
func (p *Platform) Token(ctx context.Context, tenant string, scopes ...string) (string, error) {
	cmd := exec.CommandContext(ctx, p.cmd.Path, "token", "--tenant", tenant, "--scope", strings.Join(scopes, " "))
	cmd.Env, cmd.Stderr = append(os.Environ(), "IDP_DATA_DIR="+p.dir), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
