package k8s

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// values are the Secret's, by key, as its owner would make them.
var values = map[string]string{
	"mongo-uri":               "mongodb://127.0.0.1:1/?replicaSet=rs0",
	"nats-password":           "a-long-random-text",
	"encryption-keys":         "k1:MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI=",
	"gateway-secret":          "b7QxV2mT9sKcPzLwY4hRfJ6nGdAe83uX",
	"bootstrap-client-secret": "Zk4vR8qLw2TnYc6HsJ9mXb3GfPd7AeUt",
	"console-keys":            "k1:MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI=",
}

// Every program starts with the variables and files of its pod, although neither MongoDB nor NATS are there, answers
// the liveness probe with 200, and ends when it is told to. The readiness probe of a service is answered with 503.
func TestProgramsStartWithTheirSettings(t *testing.T) {
	t.Parallel()
	for _, overlay := range overlays {
		m := build(t, overlay)
		for name, d := range m.deployments {
			if overlay != overlays[0] {
				other := program(t, build(t, overlays[0]).deployments[name])
				require.Equal(t, other.Env, program(t, d).Env)
				require.Equal(t, other.VolumeMounts, program(t, d).VolumeMounts)
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c := program(t, d)
				address := freeAddress(t)
				cmd := exec.Command(buildProgram(t, name))
				cmd.Dir, cmd.Env = t.TempDir(), append(environment(t, m, d.Spec.Template.Spec), "IDP_LISTEN="+address)
				log := &bytes.Buffer{}
				cmd.Stdout, cmd.Stderr = log, log
				require.NoError(t, cmd.Start())
				ended := make(chan error, 1)
				go func() { ended <- cmd.Wait() }()
				live := "http://" + address + c.LivenessProbe.HTTPGet.Path
				for status := 0; status != 200; status = get(t, live) {
					select {
					case err := <-ended:
						t.Fatalf("%s ended: %v\n%s", name, err, log)
					case <-time.After(50 * time.Millisecond): // between two tries
					}
				}
				ready := http.StatusServiceUnavailable
				if name == "console" || name == "gateway" { // they need nothing to serve; what is away answers 503
					ready = http.StatusOK
				}
				require.Equal(t, ready, get(t, "http://"+address+c.ReadinessProbe.HTTPGet.Path))
				require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
				require.NoError(t, <-ended, log)
			})
		}
	}
}

func get(t *testing.T, url string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0 // it does not listen yet
	}
	response.Body.Close()
	return response.StatusCode
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// environment is a container's, with the files of its secrets in a folder of the test.
func environment(t *testing.T, m manifests, pod corev1.PodSpec) (env []string) {
	t.Helper()
	c, dir := pod.Containers[0], t.TempDir()
	for _, mount := range c.VolumeMounts {
		for _, v := range pod.Volumes {
			if v.Name != mount.Name || v.Secret == nil {
				continue
			}
			require.True(t, mount.ReadOnly)
			require.NotEmpty(t, v.Secret.Items, "a pod gets only the keys of the Secret that it needs")
			require.NoError(t, os.MkdirAll(filepath.Join(dir, mount.MountPath), 0o700))
			for _, item := range v.Secret.Items {
				require.Contains(t, values, item.Key)
				file := filepath.Join(dir, mount.MountPath, item.Path)
				require.NoError(t, os.WriteFile(file, []byte(values[item.Key]+"\n"), 0o600))
			}
		}
	}
	for _, from := range c.EnvFrom {
		require.Equal(t, "services", from.ConfigMapRef.Name)
		for name, value := range m.config {
			env = append(env, name+"="+value)
		}
	}
	for _, e := range c.Env {
		if strings.HasSuffix(e.Name, "_FILE") {
			e.Value = filepath.Join(dir, e.Value)
			require.FileExists(t, e.Value)
		}
		if e.Name == "IDP_DRAIN_DELAY" {
			e.Value = "0s" // nothing routes to it
		}
		env = append(env, fmt.Sprintf("%s=%s", e.Name, e.Value))
	}
	return append(env, "IDP_ADMIN_LISTEN=off")
}

// buildProgram builds the program of an image, as make build does.
func buildProgram(t *testing.T, name string) string {
	t.Helper()
	module := filepath.Join("..", "..", "services", name)
	if _, err := os.Stat(module); err != nil {
		module = filepath.Join("..", "..", name)
	}
	file := filepath.Join(t.TempDir(), name)
	out, err := exec.Command("go", "build", "-C", module, "-trimpath", "-tags", "nomsgpack",
		"-ldflags", "-s -w", "-o", file, "./cmd/idp-"+name).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return file
}
