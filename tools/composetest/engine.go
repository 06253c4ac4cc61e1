//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// bridge is the address of the engine on the network of builds.
const bridge = "172.17.0.1"

// engine is a Docker engine in this program's namespaces.
type engine struct {
	folder  string
	command *exec.Cmd
	ended   chan error
}

// startEngine makes the namespaces usable, starts the engine in them, and waits for it.
func startEngine(ctx context.Context, folder string) (*engine, error) {
	// /run is empty, so that no program finds the sockets of the machine's engine there.
	for _, m := range []struct {
		kind, at string
		flags    uintptr
	}{{"", "/", syscall.MS_REC | syscall.MS_PRIVATE}, {"proc", "/proc", 0}, {"tmpfs", "/run", 0}} {
		if err := syscall.Mount(m.kind, m.at, m.kind, m.flags, ""); err != nil {
			return nil, fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	if _, err := output(ctx, "busybox", "ip", "link", "set", "lo", "up"); err != nil {
		return nil, err
	}
	e := &engine{folder: folder, ended: make(chan error, 1)}
	if err := os.WriteFile(filepath.Join(folder, "daemon.json"), []byte("{}"), 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(folder, "dockerd.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	e.command = exec.Command("dockerd", "--config-file", filepath.Join(folder, "daemon.json"),
		"--data-root", filepath.Join(folder, "data"), "--cgroup-parent", "/"+filepath.Base(folder),
		"--bip", bridge+"/16")
	e.command.Env = append(os.Environ(), "HTTPS_PROXY=http://127.0.0.1:"+proxyPort)
	e.command.Stdout, e.command.Stderr = log, log
	if err := e.command.Start(); err != nil {
		return nil, err
	}
	go func() { e.ended <- e.command.Wait() }()
	return e, e.await(ctx)
}

// await waits until the engine answers.
func (e *engine) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("it does not answer"))
	defer cancel()
	for {
		if _, err := output(ctx, "docker", "version"); err == nil {
			return nil
		}
		select {
		case err := <-e.ended:
			e.ended <- err
			return fmt.Errorf("the Docker engine ended (%w):\n%s", err, lastLines(e.folder+"/dockerd.log", 20))
		case <-ctx.Done():
			return fmt.Errorf("the Docker engine: %w:\n%s", context.Cause(ctx), lastLines(e.folder+"/dockerd.log", 20))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// stop ends the engine in order, so that it unmounts what it mounted.
func (e *engine) stop() {
	_ = e.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-e.ended:
	case <-time.After(15 * time.Second): // it ends with this program
	}
}

// output runs a program and returns what it prints; an error has what it says.
func output(ctx context.Context, name string, args ...string) (string, error) {
	var out, faults bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &out, &faults
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(faults.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

func lastLines(file string, n int) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
