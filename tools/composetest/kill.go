//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	writers  = 8
	enough   = 100 // creations that are acknowledged before a kill, and after it
	patience = 3 * time.Minute
	tenant   = "killed"
)

// creations are users that are created until they are stopped.
type creations struct {
	url, token string

	mu           sync.Mutex
	acknowledged map[string]string // id → username
	twice        []string          // ids that were given twice
}

// killEach kills the process of each container in turn while users are created. Each must be healthy again, and all
// acknowledged users be there at the end.
func killEach(ctx context.Context, c *compose, pulls bool, told func(string, ...any)) error {
	token, err := c.token(ctx)
	if err != nil {
		return err
	}
	writing := &creations{url: address, token: token, acknowledged: map[string]string{}}
	containers, err := c.containers(ctx)
	if err != nil {
		return err
	}
	until, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	for n := range writers {
		all.Go(func() { writing.create(until, n) })
	}
	for _, one := range containers {
		if one.service == "mongo" && !pulls {
			continue // it keeps its data in memory
		}
		if err = writing.survive(ctx, one); err != nil {
			err = fmt.Errorf("%s was killed: %w", one.service, err)
			break
		}
	}
	stop()
	all.Wait()
	if err != nil {
		return err
	}
	told("each process was killed and is healthy again; %d users were acknowledged meanwhile", writing.count())
	missing, err := writing.missing(ctx)
	if err != nil {
		return err
	}
	if len(missing) > 0 || len(writing.twice) > 0 {
		return fmt.Errorf("missing users: %v; ids that were given twice: %v", missing, writing.twice)
	}
	told("none of them is missing")
	return nil
}

// container is one of the platform's.
type container struct{ service, id string }

func (c *compose) containers(ctx context.Context) ([]container, error) {
	out, err := c.command(ctx, "ps", "--format", "{{.Service}} {{.ID}}").Output()
	if err != nil {
		return nil, err
	}
	var list []container
	for line := range strings.Lines(string(out)) {
		service, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		list = append(list, container{service, id})
	}
	if len(list) == 0 {
		return nil, errors.New("no container runs")
	}
	return list, nil
}

// state is the process id of a container, and how healthy it is.
func (c container) state(ctx context.Context) (pid int, health string, err error) {
	out, err := output(ctx, "docker", "inspect", "--format", "{{.State.Pid}} {{.State.Health.Status}}", c.id)
	if err != nil {
		return 0, "", err
	}
	number, health, _ := strings.Cut(out, " ")
	pid, err = strconv.Atoi(number)
	return pid, health, err
}

// survive kills a container's process, not by the engine but as the kernel does where memory is short, and waits until
// another one is healthy and users are created again.
func (w *creations) survive(ctx context.Context, c container) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("too slow"))
	defer cancel()
	if err := w.await(ctx, w.count()+enough, func() bool { return true }); err != nil {
		return fmt.Errorf("before: %w", err)
	}
	killed, _, err := c.state(ctx)
	if err != nil {
		return err
	}
	since := time.Now()
	if err := syscall.Kill(killed, syscall.SIGKILL); err != nil {
		return err
	}
	var pid int
	var health string
	err = w.await(ctx, w.count()+enough, func() bool {
		pid, health, err = c.state(ctx)
		return err == nil && pid != 0 && pid != killed && health == "healthy"
	})
	if err != nil {
		return fmt.Errorf("%w: process %d is now %d and %s", err, killed, pid, health)
	}
	fmt.Printf("   %-18s healthy again after %4.1f s\n", c.service, time.Since(since).Seconds())
	return nil
}

// await waits for as many users, and for what else must be.
func (w *creations) await(ctx context.Context, users int, also func() bool) error {
	for w.count() < users || !also() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %d of %d users", context.Cause(ctx), w.count(), users)
		case <-time.After(200 * time.Millisecond):
		}
	}
	return nil
}

func (w *creations) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acknowledged)
}

// create creates users until ctx ends.
func (w *creations) create(ctx context.Context, writer int) {
	client := &http.Client{Transport: &http.Transport{}, Timeout: 30 * time.Second}
	defer client.CloseIdleConnections()
	for n := 0; ctx.Err() == nil; n++ {
		name := fmt.Sprintf("writer-%d-%d", writer, n)
		var made struct{ ID string }
		answer, err := w.ask(ctx, client, http.MethodPost, "/v1/users", fmt.Sprintf(`{"username":%q}`, name))
		if err == nil {
			err = errors.Join(json.NewDecoder(answer).Decode(&made), answer.Close())
		}
		if err != nil { // as it must be while a process is away
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
			continue
		}
		w.mu.Lock()
		if w.acknowledged[made.ID] != "" {
			w.twice = append(w.twice, made.ID)
		}
		w.acknowledged[made.ID] = name
		w.mu.Unlock()
	}
}

// ask sends a request. An answer other than 200 is an error; of another one, the caller closes the body.
func (w *creations) ask(ctx context.Context, client *http.Client, method, path, body string) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, method, w.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = http.Header{
		"Authorization": {"Bearer " + w.token}, "X-Tenant-Id": {tenant}, "Content-Type": {"application/json"},
	}
	response, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		return nil, fmt.Errorf("%s %s: %d: %s", method, path, response.StatusCode, text)
	}
	return response.Body, nil
}

// missing returns the acknowledged users that are not there, or have another name.
func (w *creations) missing(ctx context.Context) ([]string, error) {
	export, err := w.ask(ctx, http.DefaultClient, http.MethodGet, "/v1/users/export", "")
	if err != nil {
		return nil, err
	}
	defer export.Close()
	there := map[string]string{}
	lines := bufio.NewScanner(export)
	for lines.Scan() {
		var user struct{ ID, Username string }
		if err := json.Unmarshal(lines.Bytes(), &user); err != nil {
			return nil, err
		}
		there[user.ID] = user.Username
	}
	var missing []string
	for id, name := range w.acknowledged {
		if there[id] != name {
			missing = append(missing, name)
		}
	}
	return missing, lines.Err()
}

// token is the first token, as the README of deploy says.
func (c *compose) token(ctx context.Context) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/v1/oauth2/token",
		strings.NewReader("grant_type=client_credentials"))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(administrator, url.QueryEscape(c.values["BOOTSTRAP_CLIENT_SECRET"]))
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var answer struct {
		Token string `json:"access_token"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Token == "" {
		return "", fmt.Errorf("no token: %d %w", response.StatusCode, err)
	}
	return answer.Token, nil
}
