//go:build linux

// Command composetest runs docker-compose.yml as the README says, on a Docker engine of its own: it builds the images,
// starts the platform, runs a command against the published port, kills each container's process once while users are
// created, looks for every acknowledged one, and takes all down again.
//
//	composetest [-programs bin] [-- command arguments…]
//
// The command finds the platform in IDP, IDP_PUBLIC_URL and IDP_BOOTSTRAP_….
//
// The engine runs in namespaces of processes, mounts and network that end with this program, however that ends: it
// shares no port, bridge, packet filter, socket or image with the machine's engine, and nothing of it stays. Where the
// images' registry answers, they are pulled; elsewhere stand-ins are made of what this machine has (see images.go), of
// which MongoDB's keeps its data in memory, so that its process is not killed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// Variables that the program outside tells the one inside.
const (
	envFolder = "COMPOSETEST_FOLDER" // of the engine
	envPulls  = "COMPOSETEST_PULLS"  // "1": the registry answers
)

func main() {
	programs := flag.String("programs", "bin", "folder of nats-server, and in tools, docker-compose and mongod")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	var err error
	if folder := os.Getenv(envFolder); folder != "" {
		err = inside(ctx, folder, *programs, os.Getenv(envPulls) == "1", flag.Args())
	} else {
		err = outside(ctx)
	}
	if _, told := errors.AsType[*exec.ExitError](err); told && os.Getenv(envFolder) == "" { // by the program inside
		os.Exit(1)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "composetest:", err)
		os.Exit(1)
	}
}

// outside starts this program again inside the namespaces, gives it a way out, and removes what it leaves.
func outside(ctx context.Context) error {
	if err := canRun(); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "idp-compose-*")
	if err != nil {
		return err
	}
	defer func() {
		removeGroups(filepath.Base(folder))
		_ = os.RemoveAll(folder)
	}()
	ended := make(chan error)
	go func() {
		// The thread is in another network from here on. It ends with the goroutine, and the child with it.
		runtime.LockOSThread()
		ended <- enter(ctx, folder)
	}()
	return <-ended
}

// canRun says what is missing.
func canRun() error {
	if os.Geteuid() != 0 {
		return errors.New("a Docker engine of its own needs root")
	}
	var faults []error
	for _, program := range []string{"dockerd", "containerd", "runc", "iptables", "docker", "busybox"} {
		if _, err := exec.LookPath(program); err != nil {
			faults = append(faults, err)
		}
	}
	if len(faults) > 0 {
		faults = append(faults, errors.New("on Debian: apt-get install docker.io iptables busybox-static"))
	}
	return errors.Join(faults...)
}

// enter runs the program inside, from a thread of its own.
func enter(ctx context.Context, folder string) error {
	pulls := "0"
	if registryAnswers(ctx) {
		pulls = "1"
	}
	if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
		return fmt.Errorf("a network of its own: %w", err)
	}
	listener, err := net.Listen("tcp4", ":"+proxyPort)
	if err != nil {
		return err
	}
	defer listener.Close()
	go func() { _ = http.Serve(listener, http.HandlerFunc(tunnel)) }() //nolint:gosec // only this program connects
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), envFolder+"="+folder, envPulls+"="+pulls)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL, Setpgid: true,
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("namespaces of its own: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer stop()
	return cmd.Wait()
}

// registryAnswers reports whether images can be pulled.
func registryAnswers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://registry-1.docker.io/v2/", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK || response.StatusCode == http.StatusUnauthorized
}

// removeGroups removes the empty control groups that containers leave.
func removeGroups(parent string) {
	var groups []string
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		roots, _ := filepath.Glob(pattern + parent)
		for _, root := range roots {
			_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
				if err == nil && entry.IsDir() {
					groups = append(groups, path)
				}
				return nil
			})
		}
	}
	for _, group := range slices.Backward(groups) { // those inside come after those around
		_ = os.Remove(group)
	}
}
