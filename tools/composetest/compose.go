//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	composeFile   = "docker-compose.yml"
	exampleFile   = "deploy/docker/example.env"
	address       = "http://127.0.0.1:8080" // that the compose file publishes
	administrator = "administrator"
	largeImage    = 40 // MiB; larger images are pointed out
)

// inside is the test itself, in the namespaces.
func inside(ctx context.Context, folder, programs string, pulls bool, command []string) (err error) {
	begun := time.Now()
	told := func(format string, args ...any) {
		fmt.Printf("== %3.0f s: %s\n", time.Since(begun).Seconds(), fmt.Sprintf(format, args...))
	}
	e, err := startEngine(ctx, folder)
	if err != nil {
		return err
	}
	defer e.stop()
	version, err := output(ctx, "docker", "version", "--format", "{{.Server.Version}}")
	if err != nil {
		return err
	}
	told("Docker engine %s runs", version)
	if err := prepare(ctx, programs, pulls); err != nil {
		return err
	}
	told("base images are there (%s)", map[bool]string{true: "pulled", false: "stand-ins: no registry answers"}[pulls])
	c, err := newCompose(folder, programs)
	if err != nil {
		return err
	}
	if err := c.build(ctx); err != nil {
		return err
	}
	told("images are built")
	if err := c.sizes(ctx); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			c.explain()
		}
		// A context that has ended must not keep the platform running.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
		defer cancel()
		err = cmp.Or(err, c.down(ctx, pulls))
		told("all is down")
	}()
	since := time.Now()
	if err := c.run(ctx, "up", "--build", "--wait"); err != nil {
		return err
	}
	told("up --build --wait: all is healthy after %.1f s", time.Since(since).Seconds())
	if len(command) > 0 {
		if err := c.play(ctx, command); err != nil {
			return err
		}
		told("%s passed at %s", filepath.Base(command[0]), address)
	}
	return killEach(ctx, c, pulls, told)
}

// prepare makes the base images known to the engine.
func prepare(ctx context.Context, programs string, pulls bool) error {
	images, err := baseImages(ctx, programs)
	if err != nil {
		return err
	}
	for _, i := range images {
		if pulls {
			_, err = output(ctx, "docker", "pull", "--quiet", i.name)
		} else {
			err = i.load(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// compose is docker compose on the repository's file.
type compose struct {
	program, folder, secrets string
	values                   map[string]string // of the .env file
}

func newCompose(folder, programs string) (*compose, error) {
	program, err := filepath.Abs(filepath.Join(programs, "tools/docker-compose"))
	if err != nil {
		return nil, err
	}
	example, err := os.ReadFile(exampleFile)
	if err != nil {
		return nil, err
	}
	c := &compose{program: program, folder: folder, secrets: filepath.Join(folder, ".env"), values: map[string]string{}}
	text := fill(string(example)) + "SMTP_URL=log:\n" // as the one program does on the machine itself
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(name, "#") {
			c.values[name] = value
		}
	}
	return c, os.WriteFile(c.secrets, []byte(text), 0o600)
}

var placeholder = regexp.MustCompile(`put-[a-z0-9-]+`)

// fill puts secrets in an example of settings.
func fill(example string) string {
	return placeholder.ReplaceAllStringFunc(example, func(string) string {
		secret := make([]byte, 32)
		_, _ = rand.Read(secret) // it does not fail
		return base64.StdEncoding.EncodeToString(secret)
	})
}

func (c *compose) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.program, append([]string{"--env-file", c.secrets, "-f", composeFile}, args...)...)
	// One image after the other: programs have most packages in common, and only one that is ready finds those of the
	// others in the build cache. Compose's own builder needs no further program.
	cmd.Env = append(os.Environ(), "COMPOSE_PARALLEL_LIMIT=1", "COMPOSE_BAKE=false", "BUILDKIT_PROGRESS=plain",
		"COMPOSE_PROGRESS=plain", "DOCKER_CONFIG="+c.folder)
	return cmd
}

// run runs a command of compose. What it prints is told if it fails.
func (c *compose) run(ctx context.Context, args ...string) error {
	cmd := c.command(ctx, args...)
	return c.logged(cmd, args[0])
}

func (c *compose) logged(cmd *exec.Cmd, name string) error {
	log, err := os.Create(filepath.Join(c.folder, name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("docker compose %s: %w:\n%s", name, err, lastLines(log.Name(), 40))
	}
	return nil
}

// build builds the images. Only builds know the way out of the engine's network: containers that knew it would call
// others through it.
func (c *compose) build(ctx context.Context) error {
	config := filepath.Join(c.folder, "build")
	if err := os.Mkdir(config, 0o700); err != nil {
		return err
	}
	proxy := fmt.Sprintf(`{"proxies":{"default":{"httpsProxy":"http://%s:%s"}}}`, bridge, proxyPort)
	if err := os.WriteFile(filepath.Join(config, "config.json"), []byte(proxy), 0o600); err != nil {
		return err
	}
	cmd := c.command(ctx, "build")
	cmd.Env = append(cmd.Env, "DOCKER_CONFIG="+config)
	return c.logged(cmd, "build")
}

// sizes prints those of the images that are built here.
func (c *compose) sizes(ctx context.Context) error {
	out, err := c.command(ctx, "config", "--images").Output()
	if err != nil {
		return err
	}
	names := strings.Fields(string(out))
	slices.Sort(names)
	for _, name := range names {
		if !strings.HasPrefix(name, "idplatform") {
			continue
		}
		text, err := output(ctx, "docker", "image", "inspect", "--format", "{{.Size}}", name)
		if err != nil {
			return err
		}
		bytes, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		fmt.Printf("   %-32s %5.1f MiB%s\n", name, float64(bytes)/(1<<20),
			map[bool]string{true: "  (large)"}[bytes > largeImage<<20])
	}
	return nil
}

// play runs a command that is given the platform's address and its administrator.
func (c *compose) play(ctx context.Context, command []string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "IDP="+address, "IDP_PUBLIC_URL="+address,
		"IDP_DATA_DIR="+filepath.Join(c.folder, "none"), "IDP_BOOTSTRAP_CLIENT_ID="+administrator,
		"IDP_BOOTSTRAP_CLIENT_SECRET="+c.values["BOOTSTRAP_CLIENT_SECRET"], "TMPDIR="+c.folder)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w:\n%s", strings.Join(command, " "), err, out.String())
	}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "== ") || strings.HasPrefix(line, "all ") {
			fmt.Print("   ", line)
		}
	}
	return nil
}

// explain prints the state of the containers, and the end of their logs.
func (c *compose) explain() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, args := range [][]string{{"ps", "--all"}, {"logs", "--tail", "15", "--no-color"}} {
		out, _ := c.command(ctx, args...).CombinedOutput()
		fmt.Printf("-- docker compose %s\n%s\n", strings.Join(args, " "), out)
	}
}

// down stops and removes all. The simulated replica set then says what it was asked for and does not know.
func (c *compose) down(ctx context.Context, pulls bool) error {
	if err := c.run(ctx, "stop"); err != nil {
		return err
	}
	if !pulls {
		out, err := c.command(ctx, "ps", "--all", "--format", "{{.ExitCode}}", "mongo").Output()
		if err != nil {
			return err
		}
		if code := strings.TrimSpace(string(out)); code != "" && code != "0" {
			log, _ := c.command(ctx, "logs", "--no-color", "mongo").CombinedOutput()
			return fmt.Errorf("the simulated replica set: exit code %s: %s", code, log)
		}
	}
	return c.run(ctx, "down", "--volumes")
}
